/* The implementation of an operator of PyTorch at its Autograd key (tile/torch.py): arguments that need gradients go to
 * an autograd.Function; plain tensors, outside of all modes, straight to the kernel; everything else on through
 * PyTorch's dispatcher. In Python this took longer than a launch. */
#include "extension.h"

#include <stddef.h>
#include <structmember.h>

typedef struct Dispatch {
    PyObject_HEAD Vectorcall call;
    State *state;
    Kernel *kernel;   /* one that ignores gradients */
    PyObject *apply;  /* of the autograd.Function; NULL: gradients are dealt with */
    PyObject *below;  /* goes on through the dispatcher */
    PyObject *modes;  /* gives the number of modes that see each operator */
    PyObject *plain;  /* a tuple of types of tensors that nothing else sees */
    bool has_context; /* the first argument is the context of an autograd.Function, which is not asked for anything */
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

/* The number of modes; -1: an exception is set. */
static long count_modes(const Dispatch *dispatch) {
    PyObject *count = PyObject_CallNoArgs(dispatch->modes);
    long number = count ? PyLong_AsLong(count) : -1;
    Py_XDECREF(count);
    return number;
}

static PyObject *call_tuple(PyObject *function, PyObject *const *args, Py_ssize_t count) {
    PyObject *tuple = PyTuple_New(count), *result = NULL;
    for (Py_ssize_t i = 0; tuple && i < count; i++) {
        Py_INCREF(args[i]);
        PyTuple_SetItem(tuple, i, args[i]);
    }
    if (tuple) result = PyObject_Call(function, tuple, NULL);
    Py_XDECREF(tuple);
    return result;
}

static PyObject *dispatch_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {
    Dispatch *dispatch = (Dispatch *)self;
    Py_ssize_t count = ARGUMENT_COUNT(nargsf), skipped = dispatch->has_context;
    Needs needs;
    needs.grad = needs.dispatcher = false;
    if ((names && PyTuple_Size(names)) || count < skipped) {
        PyErr_SetString(PyExc_TypeError, "an operator's implementation takes its arguments in order");
        return NULL;
    }
    args += skipped;
    count -= skipped;
    for (Py_ssize_t i = 0; i < count; i++)
        if (look_at(dispatch, args[i], &needs)) return NULL;
    int enabled = needs.grad && dispatch->apply ? torch_grad_enabled(dispatch->state, needs.torch) : 0;
    if (enabled < 0) return NULL;
    if (enabled) return call_tuple(dispatch->apply, args, count);
    long modes = needs.dispatcher ? 1 : count_modes(dispatch);
    if (modes < 0) return NULL;
    return modes ? call_tuple(dispatch->below, args, count)
                 : dispatch->kernel->call((PyObject *)dispatch->kernel, args, (size_t)count, NULL);
}

static PyObject *dispatch_tp_call(PyObject *self, PyObject *args, PyObject *keywords) {
    return call_by_tuple(dispatch_call, self, args, keywords);
}

/* dispatch(kernel, apply or None, below, modes, plain types, has_context) */
PyObject *dispatch_create(PyObject *module, PyObject *args) {
    State *state = PyModule_GetState(module);
    PyObject *kernel, *apply, *below, *modes, *plain;
    int has_context;
    if (!PyArg_ParseTuple(args, "O!OOOO!p", state->kernel_type, &kernel, &apply, &below, &modes, &PyTuple_Type, &plain,
                          &has_context))
        return NULL;
    allocfunc allocate = (allocfunc)PyType_GetSlot(state->dispatch_type, Py_tp_alloc);
    Dispatch *made = (Dispatch *)allocate(state->dispatch_type, 0);
    if (!made) return NULL;
    made->call = dispatch_call;
    made->state = state;
    made->has_context = has_context;
    Py_INCREF(kernel);
    made->kernel = (Kernel *)kernel;
    if (apply != Py_None) Py_INCREF(made->apply = apply);
    Py_INCREF(made->below = below);
    Py_INCREF(made->modes = modes);
    Py_INCREF(made->plain = plain);
    return (PyObject *)made;
}

/* ---- the type ---- */

static int dispatch_traverse(PyObject *self, visitproc visit, void *arg) {
    Dispatch *dispatch = (Dispatch *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT((PyObject *)dispatch->kernel);
    Py_VISIT(dispatch->apply);
    Py_VISIT(dispatch->below);
    Py_VISIT(dispatch->modes);
    Py_VISIT(dispatch->plain);
    return 0;
}

/* What a cycle can go through are functions of Python, which break it. */
static int dispatch_clear(PyObject *self) { return 0; }

static void dispatch_dealloc(PyObject *self) {
    Dispatch *dispatch = (Dispatch *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_XDECREF((PyObject *)dispatch->kernel);
    Py_XDECREF(dispatch->apply);
    Py_XDECREF(dispatch->below);
    Py_XDECREF(dispatch->modes);
    Py_XDECREF(dispatch->plain);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF((PyObject *)type);
}

static PyMemberDef dispatch_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Dispatch, call), READONLY, NULL}, {NULL, 0, 0, 0, NULL}};
static PyType_Slot dispatch_slots[] = {{Py_tp_call, (void *)dispatch_tp_call},
                                       {Py_tp_traverse, (void *)dispatch_traverse},
                                       {Py_tp_clear, (void *)dispatch_clear},
                                       {Py_tp_dealloc, (void *)dispatch_dealloc},
                                       {Py_tp_members, dispatch_members},
                                       {0, NULL}};
PyType_Spec dispatch_spec = {.name = "tile._tile.Dispatch",
                             .basicsize = sizeof(Dispatch),
                             .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                                      Py_TPFLAGS_DISALLOW_INSTANTIATION,
                             .slots = dispatch_slots};
