/* The module: its types, functions, and the hooks that Python code gives it. */
#include "extension.h"

#include <string.h>

/* hooks(**functions): once, before anything else. */
static PyObject *set_hooks(PyObject *module, PyObject *args, PyObject *keywords) {
    State *state = PyModule_GetState(module);
    static const char *const names[] = {
#define HOOK_NAME(name) #name,
        HOOK_LIST(HOOK_NAME)
#undef HOOK_NAME
    };
    PyObject **members[] = {
#define HOOK_PLACE(name) &state->hooks.name,
        HOOK_LIST(HOOK_PLACE)
#undef HOOK_PLACE
    };
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        PyObject *hook = keywords ? PyDict_GetItemString(keywords, names[i]) : NULL;
        if (!hook) return PyErr_Format(PyExc_TypeError, "the hook %s is missing", names[i]);
        Py_INCREF(hook);
        Py_XDECREF(*members[i]);
        *members[i] = hook;
    }
    Py_INCREF(Py_None);
    return Py_None;
}

static PyObject *function_or_null(PyObject *function) {
    if (function == Py_None) return NULL;
    Py_INCREF(function);
    return function;
}

/* observe(before, after): functions of (kernel's name, status) around each launch, or None. */
static PyObject *set_observer(PyObject *module, PyObject *args) {
    State *state = PyModule_GetState(module);
    PyObject *before, *after;
    if (!PyArg_ParseTuple(args, "OO", &before, &after)) return NULL;
    before = function_or_null(before);
    after = function_or_null(after);
    while (atomic_flag_test_and_set(&state->observing)) continue;
    PyObject *old_before = atomic_exchange(&state->before, before), *old_after = atomic_exchange(&state->after, after);
    atomic_flag_clear(&state->observing);
    Py_XDECREF(old_before);
    Py_XDECREF(old_after);
    Py_INCREF(Py_None);
    return Py_None;
}

static PyObject *thread_count(PyObject *module, PyObject *none) { return PyLong_FromLong(tile_thread_pool_size(NULL)); }

/* synchronize(device, stream): waits for all that is queued on it. */
static PyObject *synchronize(PyObject *module, PyObject *args) {
    int device;
    unsigned long long stream;
    TileError error;
    if (!PyArg_ParseTuple(args, "iK", &device, &stream)) return NULL;
    PyThreadState *released = PyEval_SaveThread();
    tile_status status = tile_device_synchronize(device, (void *)(uintptr_t)stream, &error);
    PyEval_RestoreThread(released);
    if (status != TILE_OK) {
        PyErr_SetString(PyExc_RuntimeError, error.message);
        return NULL;
    }
    Py_INCREF(Py_None);
    return Py_None;
}

static PyMethodDef methods[] = {{"hooks", (PyCFunction)(void (*)(void))set_hooks, METH_VARARGS | METH_KEYWORDS, NULL},
                                {"observe", set_observer, METH_VARARGS, NULL},
                                {"compiler", library_compiler, METH_VARARGS, NULL},
                                {"compile", library_compile, METH_VARARGS, NULL},
                                {"emit", library_emit, METH_VARARGS, NULL},
                                {"targets", library_targets, METH_NOARGS, NULL},
                                {"standard", library_standard, METH_NOARGS, NULL},
                                {"xla_handlers", xla_handlers, METH_NOARGS, NULL},
                                {"dispatch", dispatch_create, METH_VARARGS, NULL},
                                {"plan", bound_join, METH_O, NULL},
                                {"synchronize", synchronize, METH_VARARGS, NULL},
                                {"threads", thread_count, METH_NOARGS, NULL},
                                {"torch_layout", torch_show_layout, METH_VARARGS, NULL},
                                {NULL, NULL, 0, NULL}};

static int add_type(PyObject *module, PyType_Spec *spec, const char *name, PyTypeObject **type) {
    *type = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
    return *type ? PyModule_AddObjectRef(module, name, (PyObject *)*type) : -1;
}

static int execute(PyObject *module) {
    State *state = PyModule_GetState(module);
    state->observer = (TileObserver){observe_before, observe_after, state};
    atomic_flag_clear(&state->learning);
    atomic_flag_clear(&state->observing);
    state->exchange_name = PyUnicode_InternFromString("__dlpack_c_exchange_api__");
    state->dlpack_name = PyUnicode_InternFromString("__dlpack__");
    if (!state->exchange_name || !state->dlpack_name) return -1;
    if (add_type(module, &kernel_spec, "Kernel", &state->kernel_type) ||
        add_type(module, &bound_spec, "Bound", &state->bound_type) ||
        add_type(module, &dispatch_spec, "Dispatch", &state->dispatch_type) ||
        add_type(module, &library_spec, "Library", &state->library_type))
        return -1;
    return 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)execute},
#ifdef Py_GIL_DISABLED
                                   {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
                                   {0, NULL}};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "tile._tile", NULL, sizeof(State), methods, slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__tile(void);
PyMODINIT_FUNC PyInit__tile(void) { return PyModuleDef_Init(&definition); }
