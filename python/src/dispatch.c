/* The implementation of an operator of PyTorch at its Autograd key (tile/torch.py). Plain tensors, outside of all modes,
 * go straight to the kernel, all else on through PyTorch's dispatcher; both through an autograd.Function where an
 * argument needs a gradient. In Python this took longer than a launch. */
#include "extension.h"

typedef struct Dispatch {
    PyObject_HEAD State *state;
    Kernel *kernel;        /* one that ignores gradients */
    PyObject *below;       /* goes on through the dispatcher */
    PyObject *apply;       /* of the autograd.Function that calls `kernel`, */
    PyObject *apply_below; /* and of that which calls `below` */
    PyObject *modes;       /* a tuple of functions: how many modes or transforms see each operator, if any */
    PyObject *levels;      /* the module whose _current_level is not negative in forward mode */
    PyObject *level_name;
    PyObject *plain;       /* a tuple of types of tensors that nothing else sees */
} Dispatch;

typedef struct Needs {
    bool grad, dispatcher;
    const TorchCalls *torch; /* of a tensor that needs a gradient */
    Known local;
} Needs;

static bool is_plain(const Dispatch *dispatch, PyTypeObject *type) {
    for (Py_ssize_t i = 0; i < PyTuple_Size(dispatch->plain); i++)
        if ((PyObject *)type == PyTuple_GetItem(dispatch->plain, i)) return true;
    return false;
}

static int look_at(const Dispatch *dispatch, PyObject *object, Needs *needs) {
    PyTypeObject *type = Py_TYPE(object);
    if (PyFloat_CheckExact(object) || PyLong_CheckExact(object) || PyBool_Check(object)) return 0;
    if (!is_plain(dispatch, type)) needs->dispatcher = true;
    const Known *known = array_type(dispatch->state, object, &needs->local);
    if (!known->torch.is_torch) return 0;
    int grad = torch_requires_grad(&known->torch, object), negative = torch_is_negative(&known->torch, object);
    if (grad < 0 || negative < 0) return -1;
    if (negative) needs->dispatcher = true;
    if (grad) needs->grad = true;
    if (grad) needs->torch = &known->torch;
    return 0;
}

static int find_level(const Dispatch *dispatch) {
    PyObject *level = PyObject_GetAttr(dispatch->levels, dispatch->level_name);
    long number = level ? PyLong_AsLong(level) : -1;
    Py_XDECREF(level);
    return PyErr_Occurred() ? -1 : number >= 0;
}

/* Does any mode or transform see operators? -1: an exception is set. */
static int find_modes(const Dispatch *dispatch) {
    int found = find_level(dispatch);
    for (Py_ssize_t i = 0; i < PyTuple_Size(dispatch->modes) && !found; i++) {
        PyObject *count = PyObject_CallNoArgs(PyTuple_GetItem(dispatch->modes, i));
        found = count ? PyObject_IsTrue(count) : -1;
        Py_XDECREF(count);
    }
    return found;
}

static PyObject *call_kernel(const Dispatch *dispatch, PyObject *args, Py_ssize_t from) {
    PyObject *list[MOST_PARAMETERS];
    Py_ssize_t count = PyTuple_Size(args) - from;
    if (count > dispatch->kernel->count) {
        kernel_refuse_count(dispatch->kernel, count);
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++) list[i] = PyTuple_GetItem(args, from + i);
    return dispatch->kernel->call((PyObject *)dispatch->kernel, list, (size_t)count, NULL);
}

static PyObject *dispatch_call(PyObject *self, PyObject *args, PyObject *keywords) {
    Dispatch *dispatch = (Dispatch *)self;
    Needs needs;
    needs.grad = needs.dispatcher = false;
    if (keywords && PyDict_Size(keywords)) {
        PyErr_SetString(PyExc_TypeError, "an operator's implementation takes its arguments in order");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyTuple_Size(args); i++)
        if (look_at(dispatch, PyTuple_GetItem(args, i), &needs)) return NULL;
    int modes = needs.dispatcher ? 1 : find_modes(dispatch);
    int enabled = needs.grad && modes >= 0 ? torch_grad_enabled(dispatch->state, needs.torch) : 0;
    if (modes < 0 || enabled < 0) return NULL;
    if (enabled) return PyObject_Call(modes ? dispatch->apply_below : dispatch->apply, args, NULL);
    return modes ? PyObject_Call(dispatch->below, args, NULL) : call_kernel(dispatch, args, 0);
}

/* forward(context, arguments..) of the first autograd.Function */
static PyObject *dispatch_forward(PyObject *self, PyObject *args) {
    return call_kernel((const Dispatch *)self, args, PyTuple_Size(args) ? 1 : 0);
}

/* set(apply, apply_below): the functions call this object, and it them */
static PyObject *dispatch_set(PyObject *self, PyObject *args) {
    Dispatch *dispatch = (Dispatch *)self;
    PyObject *apply, *apply_below;
    if (!PyArg_ParseTuple(args, "OO", &apply, &apply_below)) return NULL;
    Py_INCREF(apply);
    Py_INCREF(apply_below);
    Py_XDECREF(dispatch->apply);
    Py_XDECREF(dispatch->apply_below);
    dispatch->apply = apply;
    dispatch->apply_below = apply_below;
    Py_INCREF(Py_None);
    return Py_None;
}

/* dispatch(kernel, below, modes, levels, plain types) */
PyObject *dispatch_create(PyObject *module, PyObject *args) {
    State *state = PyModule_GetState(module);
    PyObject *kernel, *below, *modes, *levels, *plain;
    if (!PyArg_ParseTuple(args, "O!OO!OO!", state->kernel_type, &kernel, &below, &PyTuple_Type, &modes, &levels,
                          &PyTuple_Type, &plain))
        return NULL;
    allocfunc allocate = (allocfunc)PyType_GetSlot(state->dispatch_type, Py_tp_alloc);
    Dispatch *made = (Dispatch *)allocate(state->dispatch_type, 0);
    if (!made) return NULL;
    made->state = state;
    Py_INCREF(kernel);
    Py_INCREF(below);
    Py_INCREF(modes);
    Py_INCREF(plain);
    made->kernel = (Kernel *)kernel;
    made->below = made->apply = made->apply_below = below;
    Py_INCREF(below);
    Py_INCREF(below);
    made->modes = modes;
    made->plain = plain;
    Py_INCREF(levels);
    made->levels = levels;
    made->level_name = PyUnicode_InternFromString("_current_level");
    return (PyObject *)made;
}

/* ---- the type ---- */

static int dispatch_traverse(PyObject *self, visitproc visit, void *arg) {
    Dispatch *dispatch = (Dispatch *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT((PyObject *)dispatch->kernel);
    Py_VISIT(dispatch->apply);
    Py_VISIT(dispatch->apply_below);
    Py_VISIT(dispatch->below);
    Py_VISIT(dispatch->modes);
    Py_VISIT(dispatch->levels);
    Py_VISIT(dispatch->plain);
    return 0;
}

/* Classes and functions of Python, which are part of any cycle, break it. */
static int dispatch_clear(PyObject *self) { return 0; }

static void dispatch_dealloc(PyObject *self) {
    Dispatch *dispatch = (Dispatch *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_XDECREF((PyObject *)dispatch->kernel);
    Py_XDECREF(dispatch->apply);
    Py_XDECREF(dispatch->apply_below);
    Py_XDECREF(dispatch->below);
    Py_XDECREF(dispatch->modes);
    Py_XDECREF(dispatch->levels);
    Py_XDECREF(dispatch->level_name);
    Py_XDECREF(dispatch->plain);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF((PyObject *)type);
}

static PyMethodDef dispatch_methods[] = {{"forward", dispatch_forward, METH_VARARGS, NULL},
                                         {"set", dispatch_set, METH_VARARGS, NULL},
                                         {NULL, NULL, 0, NULL}};
static PyType_Slot dispatch_slots[] = {{Py_tp_call, (void *)dispatch_call},
                                       {Py_tp_traverse, (void *)dispatch_traverse},
                                       {Py_tp_clear, (void *)dispatch_clear},
                                       {Py_tp_dealloc, (void *)dispatch_dealloc},
                                       {Py_tp_methods, dispatch_methods},
                                       {0, NULL}};
PyType_Spec dispatch_spec = {.name = "tile._tile.Dispatch",
                             .basicsize = sizeof(Dispatch),
                             .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                             .slots = dispatch_slots};
