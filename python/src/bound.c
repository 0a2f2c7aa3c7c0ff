/* Bound calls: the launch of a kernel on given arrays as a function without arguments, and several of them in one call.
 *
 * Letting go of the GIL takes as long as a short launch; so one of TIMED_CALLS launches is timed, and where that was short
 * (kernel.c) the GIL is kept. Nothing else needs it while they run, since lines are printed by the thread that
 * launches.
 */
#include "extension.h"

#include <stddef.h>
#include <structmember.h>
#include <time.h>

typedef struct Bound {
    PyObject_HEAD Vectorcall call;
    State *state;
    PyObject *references; /* weak ones; CPython's */
    PyObject *parts;      /* a tuple: the arrays, or the bound calls of several steps */
    Kernel *kernel;       /* of the first step */
    TileBound *own;       /* NULL: several steps */
    TileLaunchStep *steps;
    size_t count;
    void *stream;
    const Known *like; /* GPUs: whose current stream is asked for at each call; NULL: `stream` is kept */
    DLDevice device;
    bool is_mixed; /* GPUs: arrays are of several libraries, or of one whose stream is not asked for; steps, on several GPUs */
    _Atomic uint32_t calls, ns;
    Call *arrays; /* what `own` was read from, released at the end; NULL: several steps */
} Bound;

static uint32_t clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint32_t)((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
}

static tile_status launch(const Bound *bound, const TileLaunchOptions *options) {
    return bound->own ? tile_launch_bound(bound->own, NULL, options)
                      : tile_launch_steps(bound->steps, bound->count, options);
}

static tile_status launch_without_gil(Bound *bound, const TileLaunchOptions *options) {
    PyThreadState *released = PyEval_SaveThread();
    uint32_t from = clock_ns();
    tile_status status = launch(bound, options);
    atomic_store_explicit(&bound->ns, clock_ns() - from, memory_order_relaxed);
    PyEval_RestoreThread(released);
    return status;
}

static int launch_on(Bound *bound, void *stream) {
    TileError error;
    TileReport *report = NULL;
    TileLaunchOptions options = launch_options(bound->kernel, stream, &error, &report);
    uint32_t calls = atomic_load_explicit(&bound->calls, memory_order_relaxed); /* threads may count one twice */
    atomic_store_explicit(&bound->calls, calls + 1, memory_order_relaxed);
    uint32_t is_short = bound->kernel->is_gpu ? SHORT_ON_GPU_NS : SHORT_NS;
    bool keeps = calls % TIMED_CALLS && atomic_load_explicit(&bound->ns, memory_order_relaxed) < is_short;
    tile_status status = keeps ? launch(bound, &options) : launch_without_gil(bound, &options);
    return status == TILE_OK ? 0 : raise_status(bound->kernel, status, &error, report);
}

/* The streams of all libraries are ordered around each launch. */
static __attribute__((noinline)) int launch_mixed(Bound *bound, void *stream) {
    PyObject *found, *objects[MOST_PARAMETERS];
    for (int i = 0; bound->own && i < bound->kernel->count; i++) objects[i] = PyTuple_GetItem(bound->parts, i);
    for (Py_ssize_t i = 0; !bound->own && i < PyTuple_Size(bound->parts); i++) {
        PyObject *none = PyObject_CallNoArgs(PyTuple_GetItem(bound->parts, i));
        Py_XDECREF(none);
        if (!none) return -1;
    }
    if (!bound->own) return 0;
    if (order_before(bound->kernel, objects, bound->device, stream, &found)) return -1;
    if (launch_on(bound, stream) == 0) return order_behind(bound->kernel, found, bound->device, stream);
    Py_XDECREF(found);
    return -1;
}

static PyObject *bound_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {
    Bound *bound = (Bound *)self;
    if (ARGUMENT_COUNT(nargsf) || (names && PyTuple_Size(names))) {
        PyErr_SetString(PyExc_TypeError, "a bound call takes no arguments: they are bound");
        return NULL;
    }
    void *stream = bound->stream;
    if (bound->like && current_stream(bound->like, bound->device, &stream)) return NULL;
    if (bound->is_mixed ? launch_mixed(bound, stream) : launch_on(bound, stream)) return NULL;
    Py_INCREF(Py_None);
    return Py_None;
}

static PyObject *bound_tp_call(PyObject *self, PyObject *args, PyObject *keywords) {
    return call_by_tuple(bound_call, self, args, keywords);
}

/* ---- binding ---- */

static Bound *create(State *state, Kernel *kernel) {
    allocfunc allocate = (allocfunc)PyType_GetSlot(state->bound_type, Py_tp_alloc);
    Bound *bound = (Bound *)allocate(state->bound_type, 0);
    if (!bound) return NULL;
    bound->call = bound_call;
    bound->state = state;
    bound->kernel = kernel;
    Py_INCREF((PyObject *)kernel);
    return bound;
}

/* Reads the arguments into bound->arrays, and makes those that are missing. The results come last among its parts. */
static int read_arguments(Bound *bound, PyObject **objects) {
    Kernel *kernel = bound->kernel;
    Call *call = bound->arrays;
    for (int i = 0; i < kernel->count; i++) {
        call->args[i] = (TileArg){.kind = TILE_ARG_NONE};
        if (objects[i] && call_read(call, objects[i], i)) return -1;
    }
    Kernel *runs = kernel_for(kernel, call);
    if (!runs) return -1;
    Py_INCREF((PyObject *)runs);
    Py_DECREF((PyObject *)kernel);
    bound->kernel = call->kernel = runs;
    bound->parts = PyTuple_New(kernel->count);
    for (int i = 0; i < runs->count && bound->parts; i++) {
        Result result;
        PyObject *object = objects[i];
        if (object) Py_INCREF(object);
        if (!object && result_make(call, i, &result) == 0) object = result_finish(&result);
        if (!object) return -1;
        PyTuple_SetItem(bound->parts, i, object);
    }
    return bound->parts ? 0 : -1;
}

static int bind(Bound *bound) {
    TileError error;
    TileReport *report = NULL;
    Call *call = bound->arrays;
    bound->stream = call->stream;
    bound->device = call->device;
    if (bound->kernel->is_gpu && call->like && call->like->way == WAY_EXCHANGE && call->like != &call->local)
        bound->like = call->like;
    bound->is_mixed = bound->kernel->is_gpu && (call->is_mixed || !bound->like);
    TileLaunchOptions options = launch_options(bound->kernel, NULL, &error, &report);
    PyThreadState *released = PyEval_SaveThread();
    tile_status status =
        tile_bind(bound->kernel->kernel, call->args, (size_t)bound->kernel->count, &options, &bound->own);
    PyEval_RestoreThread(released);
    return status == TILE_OK ? 0 : raise_status(bound->kernel, status, &error, report);
}

PyObject *bound_create(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    Kernel *kernel = (Kernel *)self;
    PyObject *objects[MOST_PARAMETERS], *settings;
    int failed = kernel_arguments(kernel, args, count, names, objects, &settings);
    if (!failed && settings) {
        PyErr_SetString(PyExc_TypeError,
                        "bind takes arrays; settings are given before: kernel.with_settings(..).bind(..)");
        failed = -1;
    }
    Py_XDECREF(settings);
    Bound *bound = failed ? NULL : create(kernel->state, kernel);
    if (!bound) return NULL;
    bound->arrays = PyMem_Malloc(sizeof *bound->arrays);
    if (bound->arrays) {
        call_begin(bound->arrays, kernel);
        bound->arrays->keeps = true;
        if (read_arguments(bound, objects) == 0 && bind(bound) == 0) return (PyObject *)bound;
    } else {
        PyErr_NoMemory();
    }
    Py_DECREF((PyObject *)bound);
    return NULL;
}

/* plan(bound calls) -> one that launches all of them, in order. */
PyObject *bound_join(PyObject *module, PyObject *parts) {
    State *state = PyModule_GetState(module);
    Py_ssize_t count = PyTuple_Check(parts) ? PyTuple_Size(parts) : 0;
    size_t total = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (Py_TYPE(PyTuple_GetItem(parts, i)) != state->bound_type) count = 0;
        if (count) total += ((Bound *)PyTuple_GetItem(parts, i))->own ? 1 : ((Bound *)PyTuple_GetItem(parts, i))->count;
    }
    if (!count) {
        PyErr_SetString(PyExc_TypeError, "a plan is made of bound calls, at least one");
        return NULL;
    }
    Bound *first = (Bound *)PyTuple_GetItem(parts, 0), *bound = create(state, first->kernel);
    if (!bound) return NULL;
    bound->parts = parts;
    Py_INCREF(parts);
    bound->like = first->like;
    bound->device = first->device;
    bound->stream = first->stream;
    bound->steps = PyMem_Calloc(total, sizeof *bound->steps);
    for (Py_ssize_t i = 0; bound->steps && i < count; i++) {
        Bound *part = (Bound *)PyTuple_GetItem(parts, i);
        bound->is_mixed |= part->is_mixed || part->device.device_id != first->device.device_id;
        for (size_t k = 0; k < (part->own ? 1 : part->count); k++)
            bound->steps[bound->count++] = part->own ? (TileLaunchStep){part->own, NULL} : part->steps[k];
    }
    if (bound->steps) return (PyObject *)bound;
    Py_DECREF((PyObject *)bound);
    return PyErr_NoMemory();
}

/* ---- the type ---- */

static PyObject *bound_arguments(PyObject *self, void *none) {
    PyObject *parts = ((Bound *)self)->parts;
    Py_INCREF(parts);
    return parts;
}

static int bound_traverse(PyObject *self, visitproc visit, void *arg) {
    Bound *bound = (Bound *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(bound->parts);
    Py_VISIT((PyObject *)bound->kernel);
    return 0;
}

/* Arrays are released with the object alone: they are what its launches write. */
static int bound_clear(PyObject *self) { return 0; }

static void bound_dealloc(PyObject *self) {
    Bound *bound = (Bound *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (bound->references) PyObject_ClearWeakRefs(self);
    tile_bound_destroy(bound->own);
    PyMem_Free(bound->steps);
    if (bound->arrays) call_end(bound->arrays);
    PyMem_Free(bound->arrays);
    Py_XDECREF(bound->parts);
    Py_XDECREF((PyObject *)bound->kernel);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF((PyObject *)type);
}

static PyMemberDef bound_members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(Bound, call), READONLY, NULL},
                                      {"__weaklistoffset__", T_PYSSIZET, offsetof(Bound, references), READONLY, NULL},
                                      {"kernel", T_OBJECT, offsetof(Bound, kernel), READONLY, "of the first step"},
                                      {NULL, 0, 0, 0, NULL}};
static PyGetSetDef bound_getters[] = {
    {"arguments", bound_arguments, NULL, "the arrays and numbers, results that were allocated included", NULL},
    {NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot bound_slots[] = {{Py_tp_call, (void *)bound_tp_call},
                                    {Py_tp_traverse, (void *)bound_traverse},
                                    {Py_tp_clear, (void *)bound_clear},
                                    {Py_tp_dealloc, (void *)bound_dealloc},
                                    {Py_tp_members, bound_members},
                                    {Py_tp_getset, bound_getters},
                                    {0, NULL}};
PyType_Spec bound_spec = {.name = "tile.Bound",
                          .basicsize = sizeof(Bound),
                          .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                                   Py_TPFLAGS_DISALLOW_INSTANTIATION,
                          .slots = bound_slots};
