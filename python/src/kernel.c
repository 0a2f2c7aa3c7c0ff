/* A kernel as a callable object. m.softmax(x, y) writes y; m.softmax(x) allocates it and returns it. */
#include "extension.h"

#include <stddef.h>
#include <structmember.h>
#include <time.h>

/* ---- a launch ---- */

/* Letting go of the GIL takes some 100 ns, a good part of a short launch. So one of TIMED_CALLS launches is timed, and
 * those of as few elements as one that was shorter than SHORT_NS keep it, where the kernel remembers such a launch, so that
 * nothing is compiled. On GPUs, where a launch only queues and the driver takes several microseconds for it, all are
 * short as long as the queue has room. Nothing else needs the GIL while they run: lines are printed by the thread that
 * launches. */
enum { MOST_ELEMENTS = 1 << 16 };

static int64_t count_elements(const Call *call) {
    int64_t total = 0;
    for (int i = 0; i < call->kernel->count; i++) {
        if (call->args[i].kind != TILE_ARG_TENSOR) continue;
        uint64_t elements = 1;
        for (int d = 0; d < call->tensors[i].ndim && d < TILE_MAX_RANK; d++)
            elements *= (uint64_t)call->tensors[i].shape[d];
        total += elements < (uint64_t)MOST_ELEMENTS * 2 ? (int64_t)elements : MOST_ELEMENTS * 2;
    }
    return total;
}

static uint64_t clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void keep_time(Kernel *kernel, int64_t elements, uint64_t ns) {
    bool is_short = ns < (kernel->is_gpu ? SHORT_ON_GPU_NS : SHORT_NS) && elements <= MOST_ELEMENTS;
    int64_t known = atomic_load_explicit(&kernel->short_elements, memory_order_relaxed);
    if (is_short ? elements > known : elements <= known)
        atomic_store_explicit(&kernel->short_elements, is_short ? elements : elements / 2, memory_order_relaxed);
}

/* timed: two looks at the clock take half as long as letting go of the GIL does. */
static tile_status launch_without_gil(Kernel *kernel, const Call *call, const TileLaunchOptions *options,
                                      int64_t elements, bool timed) {
    PyThreadState *released = PyEval_SaveThread();
    uint64_t from = timed ? clock_ns() : 0;
    tile_status status = tile_launch(kernel->kernel, call->args, (size_t)kernel->count, options);
    if (timed) keep_time(kernel, elements, clock_ns() - from);
    PyEval_RestoreThread(released);
    return status;
}

/* Whoever runs a kernel keeps it, and it keeps its library. objects: the arguments, or NULL: they will not come again. */
static int run_alone(Kernel *kernel, Call *call, PyObject *const *objects) {
    TileError error;
    TileReport *report = NULL;
    Kernel *called = kernel;
    kernel = kernel_for(kernel, call);
    if (!kernel) return -1;
    TileLaunchOptions options = launch_options(kernel, kernel->is_gpu ? call->stream : NULL, &error, &report);
    int64_t elements = kernel->is_gpu ? 1 : count_elements(call);
    uint32_t calls = atomic_load_explicit(&kernel->calls, memory_order_relaxed); /* threads may count one twice */
    atomic_store_explicit(&kernel->calls, calls + 1, memory_order_relaxed);
    if (calls % TIMED_CALLS && elements <= atomic_load_explicit(&kernel->short_elements, memory_order_relaxed)) {
        options.flags = TILE_LAUNCH_REMEMBERED;
        tile_status status = tile_launch(kernel->kernel, call->args, (size_t)kernel->count, &options);
        if (status == TILE_OK && objects) again_note(called, kernel, objects, call, elements);
        if (status == TILE_OK) return 0;
        if (status != TILE_NOT_FOUND) return raise_status(kernel, status, &error, report);
        tile_report_destroy(report);
        report = NULL;
        options.flags = 0;
    }
    tile_status status = launch_without_gil(kernel, call, &options, elements, calls < TIMED_CALLS || calls % TIMED_CALLS == 0);
    return status == TILE_OK ? 0 : raise_status(kernel, status, &error, report);
}

static __attribute__((noinline)) int run_mixed(Kernel *kernel, Call *call, PyObject *const *objects) {
    PyObject *found;
    if (order_before(kernel, objects, call->device, call->stream, &found)) return -1;
    int failed = run_alone(kernel, call, NULL);
    if (!failed) return order_behind(kernel, found, call->device, call->stream);
    Py_XDECREF(found);
    return failed;
}

/* objects: NULL where results are made. */
static int run(Kernel *kernel, Call *call, PyObject *const *objects, bool come_again) {
    return call->is_mixed ? run_mixed(kernel, call, objects) : run_alone(kernel, call, come_again ? objects : NULL);
}

/* ---- settings ---- */

/* m.softmax(x, BM = 4): the kernel for these settings, called with the rest. */
static PyObject *call_special(Kernel *kernel, PyObject *const *args, Py_ssize_t count, PyObject *names,
                              PyObject *settings) {
    PyObject *special =
        PyObject_CallFunctionObjArgs(kernel->state->hooks.specialise, (PyObject *)kernel, settings, NULL);
    Py_ssize_t keywords = PyTuple_Size(names);
    PyObject *positional = special ? PyTuple_New(count) : NULL, *rest = positional ? PyDict_New() : NULL,
             *result = NULL;
    bool good = rest;
    for (Py_ssize_t i = 0; good && i < count; i++) {
        Py_INCREF(args[i]);
        good = PyTuple_SetItem(positional, i, args[i]) == 0;
    }
    for (Py_ssize_t i = 0; good && i < keywords; i++) {
        PyObject *name = PyTuple_GetItem(names, i);
        int set = PyDict_Contains(settings, name);
        good = set > 0 || (set == 0 && PyDict_SetItem(rest, name, args[count + i]) == 0);
    }
    if (good) result = PyObject_Call(special, positional, rest);
    Py_XDECREF(rest);
    Py_XDECREF(positional);
    Py_XDECREF(special);
    return result;
}

/* ---- results ---- */

/* The arrays, one alone or several as a tuple; takes them. */
static PyObject *pack(Result *made, int count) {
    PyObject *tuple = count == 1 ? NULL : PyTuple_New(count), *object = NULL;
    bool good = count == 1 || tuple;
    for (int i = 0; i < count; i++) {
        object = good ? result_finish(&made[i]) : NULL;
        if (!good) result_drop(&made[i]);
        good = good && object;
        if (good && tuple) PyTuple_SetItem(tuple, i, object);
    }
    if (good) return tuple ? tuple : object;
    Py_XDECREF(tuple);
    return NULL;
}

/* With results to be made; call->args of those are NONE. */
static PyObject *run_with_results(Kernel *kernel, Call *call, PyObject *const *objects, bool come_again) {
    Result made[MOST_PARAMETERS];
    int count = 0;
    Kernel *runs = kernel_for(kernel, call);
    bool good = runs;
    call->kernel = runs;
    for (int i = 0; good && i < kernel->count; i++) {
        if (objects[i]) continue;
        good = result_make(call, i, &made[count]) == 0;
        count += good;
    }
    if (good && run(kernel, call, objects, come_again) == 0) return pack(made, count);
    for (int i = 0; i < count; i++) result_drop(&made[i]);
    return NULL;
}

static PyObject *call_general(Kernel *kernel, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    PyObject *objects[MOST_PARAMETERS], *settings, *result = NULL;
    if (kernel_arguments(kernel, args, count, names, objects, &settings)) {
        Py_XDECREF(settings);
        return NULL;
    }
    if (settings) {
        result = call_special(kernel, args, count, names, settings);
        Py_DECREF(settings);
        return result;
    }
    Call call;
    bool good = true, complete = true;
    call_begin(&call, kernel);
    for (int i = 0; good && i < kernel->count; i++) {
        call.args[i] = (TileArg){.kind = TILE_ARG_NONE};
        complete &= objects[i] != NULL;
        if (objects[i]) good = call_read(&call, objects[i], i) == 0;
    }
    if (good && !complete) {
        result = run_with_results(kernel, &call, objects, !names);
    } else if (good && run(kernel, &call, objects, false) == 0) {
        Py_INCREF(Py_None);
        result = Py_None;
    }
    call_end(&call);
    return result;
}

/* What `again` cannot launch. */
static __attribute__((noinline)) PyObject *call_anew(Kernel *kernel, PyObject *const *args) {
    Call call;
    call_begin(&call, kernel);
    PyObject *result = NULL;
    if (call_read_all(&call, args) == 0 && run(kernel, &call, args, true) == 0) {
        Py_INCREF(Py_None);
        result = Py_None;
    }
    call_end(&call);
    return result;
}

/* With results that are made, which `again` may do. */
static PyObject *call_or_make(Kernel *kernel, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    Result made[MOST_PARAMETERS];
    int launched = !names && count == kernel->given_count ? again_make(kernel, args, made) : 0;
    if (!launched) return call_general(kernel, args, count, names);
    return launched > 0 ? pack(made, kernel->count - kernel->given_count) : NULL;
}

static PyObject *kernel_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {
    Kernel *kernel = (Kernel *)self;
    Py_ssize_t count = ARGUMENT_COUNT(nargsf);
    if (names || count != kernel->count) return call_or_make(kernel, args, count, names);
    int launched = again_launch(kernel, args);
    if (launched <= 0) return launched ? NULL : call_anew(kernel, args);
    Py_INCREF(Py_None);
    return Py_None;
}

static PyObject *kernel_tp_call(PyObject *self, PyObject *args, PyObject *keywords) {
    return call_by_tuple(kernel_call, self, args, keywords);
}

/* ---- without running ---- */

static PyObject *give_line(PyObject *lines) {
    PyObject *empty = PyUnicode_FromString(""), *text = empty ? PyUnicode_Join(empty, lines) : NULL;
    Py_XDECREF(empty);
    Py_DECREF(lines);
    return text;
}

static void add_line(void *host, const char *line, size_t length) {
    PyObject *text = PyUnicode_DecodeUTF8(line, (Py_ssize_t)length, "replace");
    if (text) PyList_Append(host, text);
    Py_XDECREF(text);
    PyErr_Clear();
}

/* Reads the arguments, and makes results that are not given as a launch does; *made counts them. */
static int read_all(Call *call, PyObject *const *args, Py_ssize_t count, Result *results, int *made) {
    PyObject *objects[MOST_PARAMETERS], *settings;
    Kernel *kernel = call->kernel;
    int failed = kernel_arguments(kernel, args, count, NULL, objects, &settings);
    Py_XDECREF(settings); /* there are none without names */
    for (int i = 0; !failed && i < kernel->count; i++) {
        call->args[i] = (TileArg){.kind = TILE_ARG_NONE};
        if (objects[i]) failed = call_read(call, objects[i], i);
    }
    Kernel *runs = failed ? NULL : kernel_for(kernel, call);
    if (!runs) return -1;
    call->kernel = runs;
    for (int i = 0; i < runs->count; i++) {
        if (objects[i]) continue;
        if (result_make(call, i, &results[*made])) return -1;
        ++*made;
    }
    return 0;
}

/* explain(arrays..) -> text */
static PyObject *kernel_explain(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    Call call;
    Result results[MOST_PARAMETERS];
    int made = 0;
    TileError error;
    TileReport *report = NULL;
    call_begin(&call, (Kernel *)self);
    PyObject *lines = read_all(&call, args, count, results, &made) ? NULL : PyList_New(0);
    Kernel *kernel = call.kernel;
    if (lines) {
        TileLaunchOptions options = launch_options(kernel, NULL, &error, &report);
        tile_status status = tile_explain(kernel->kernel, call.args, (size_t)kernel->count, add_line, lines, &options);
        if (status != TILE_OK) raise_status(kernel, status, &error, report);
    }
    while (made) result_drop(&results[--made]);
    call_end(&call);
    if (lines && PyErr_Occurred()) Py_CLEAR(lines);
    return lines ? give_line(lines) : NULL;
}

/* One argument of _prepare: a number, or (shape, strides or None, DLPack code, bits, device type, device). */
static int read_spec(Call *call, PyObject *spec, int i, int64_t *extents) {
    PyObject *shape, *strides;
    int code, bits, type, device;
    DLTensor *tensor = &call->tensors[i];
    if (!call->kernel->parameters[i].is_tensor) return call_read(call, spec, i);
    if (!PyArg_ParseTuple(spec, "O!Oiiii", &PyTuple_Type, &shape, &strides, &code, &bits, &type, &device)) return -1;
    *tensor = (DLTensor){.device = {(DLDeviceType)type, device},
                         .ndim = (int32_t)PyTuple_Size(shape),
                         .dtype = {(uint8_t)code, (uint8_t)bits, 1},
                         .shape = extents};
    for (int d = 0; d < tensor->ndim && d < TILE_MAX_RANK; d++) {
        extents[d] = PyLong_AsLongLong(PyTuple_GetItem(shape, d));
        if (strides != Py_None) call->strides[i][d] = PyLong_AsLongLong(PyTuple_GetItem(strides, d));
    }
    if (strides != Py_None) tensor->strides = call->strides[i];
    call->args[i] = TILE_TENSOR(tensor);
    if (!call->device.device_type) call->device = tensor->device;
    return PyErr_Occurred() ? -1 : 0;
}

static int prepare(Kernel *kernel, Call *call) {
    TileError error;
    TileReport *report = NULL;
    kernel = kernel_for(kernel, call);
    if (!kernel) return -1;
    TileLaunchOptions options = launch_options(kernel, NULL, &error, &report);
    PyThreadState *released = PyEval_SaveThread();
    tile_status status = tile_prepare(kernel->kernel, call->args, (size_t)kernel->count, &options);
    PyEval_RestoreThread(released);
    return status == TILE_OK ? 0 : raise_status(kernel, status, &error, report);
}

/* _prepare(specs): compiles without memory. */
static PyObject *kernel_prepare(PyObject *self, PyObject *specs) {
    Kernel *kernel = (Kernel *)self;
    Call call;
    int64_t extents[MOST_PARAMETERS][TILE_MAX_RANK];
    if (!PyTuple_Check(specs) || PyTuple_Size(specs) != kernel->count) {
        kernel_refuse_count(kernel, PyTuple_Check(specs) ? PyTuple_Size(specs) : 0);
        return NULL;
    }
    call_begin(&call, kernel);
    int failed = 0;
    for (int i = 0; i < kernel->count && !failed; i++)
        failed = read_spec(&call, PyTuple_GetItem(specs, i), i, extents[i]);
    if (!failed) failed = prepare(kernel, &call);
    call_end(&call);
    if (failed) return NULL;
    Py_INCREF(Py_None);
    return Py_None;
}

/* ---- what is known of it ---- */

/* Of the kernel on CPUs and GPUs together. */
static PyObject *kernel_stats(PyObject *self, PyObject *none) {
    TileKernelStats stats, more;
    PyObject *on_gpu = atomic_load_explicit(&((Kernel *)self)->on_gpu, memory_order_acquire);
    tile_kernel_stats(((Kernel *)self)->kernel, &stats);
    if (on_gpu) {
        tile_kernel_stats(((Kernel *)on_gpu)->kernel, &more);
        stats.launches += more.launches;
        stats.hits += more.hits;
        stats.misses += more.misses;
        stats.variants += more.variants;
        stats.evictions += more.evictions;
        stats.compile_ns += more.compile_ns;
        stats.guard_ns += more.guard_ns;
    }
    return Py_BuildValue("(KKKKKKK)", stats.launches, stats.hits, stats.misses, stats.variants, stats.evictions,
                         stats.compile_ns, stats.guard_ns);
}

static PyObject *list_parameters(const Kernel *kernel) {
    static const char *const access[] = {"in", "out", "inout"};
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < kernel->count; i++) {
        const TileParameterInfo *info = &kernel->parameters[i].info;
        PyObject *dimensions = PyTuple_New(info->rank);
        for (int d = 0; dimensions && d < info->rank; d++)
            PyTuple_SetItem(dimensions, d, PyUnicode_FromString(info->dimensions[d]));
        PyObject *row =
            Py_BuildValue("(szsNii)", info->name, kernel->parameters[i].is_tensor ? access[info->access] : NULL,
                          info->type, dimensions, (int)info->dtype.code, (int)info->dtype.bits);
        if (!row || PyList_Append(list, row)) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

static PyObject *list_types(const TileSettingInfo *info) {
    PyObject *types = PyTuple_New((Py_ssize_t)info->type_count);
    for (size_t i = 0; types && i < info->type_count; i++)
        PyTuple_SetItem(types, (Py_ssize_t)i,
                        Py_BuildValue("(ii)", (int)info->types[i].code, (int)info->types[i].bits));
    return types;
}

static PyObject *list_settings(const Kernel *kernel) {
    static const char *const kinds[] = {"type", "constant", "function", "static", "tune"};
    PyObject *list = PyList_New(0);
    TileSettingInfo info = {.struct_size = sizeof info};
    for (size_t i = 0; list && tile_kernel_setting(kernel->kernel, i, &info); i++) {
        PyObject *row = Py_BuildValue("(ssszzzN)", info.name, kinds[info.kind], info.allowed, info.value,
                                      info.otherwise, info.family, list_types(&info));
        if (!row || PyList_Append(list, row)) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

/* (name, signature, doc, prints, is for GPUs, parameters, settings) */
static PyObject *kernel_interface(PyObject *self, PyObject *none) {
    Kernel *kernel = (Kernel *)self;
    return Py_BuildValue("(sssNNNN)", tile_kernel_name(kernel->kernel), tile_kernel_signature(kernel->kernel),
                         tile_kernel_doc(kernel->kernel), PyBool_FromLong(kernel->prints),
                         PyBool_FromLong(kernel->is_gpu), list_parameters(kernel), list_settings(kernel));
}

/* ---- the type ---- */

static int init_parameters(Kernel *kernel) {
    for (int i = 0; i < kernel->count; i++) {
        Parameter *at = &kernel->parameters[i];
        tile_kernel_parameter(kernel->kernel, (size_t)i, &at->info);
        at->name = PyUnicode_InternFromString(at->info.name);
        if (!at->name) return -1;
        at->is_tensor = at->info.kind == TILE_PARAMETER_TENSOR;
        at->is_out = at->is_tensor && at->info.access == TILE_PARAMETER_OUT;
        at->is_float = !at->info.dtype.bits || at->info.dtype.code == kDLFloat || at->info.dtype.code == kDLBfloat ||
                       at->info.dtype.code >= kDLFloat8_e3m4;
        at->is_bool = at->info.dtype.code == kDLBool && at->info.dtype.bits;
        kernel->given_count += !at->is_out;
    }
    return 0;
}

PyObject *kernel_create(State *state, Library *library, TileKernel *kernel, PyObject *module) {
    size_t count = tile_kernel_parameter_count(kernel);
    allocfunc allocate = (allocfunc)PyType_GetSlot(state->kernel_type, Py_tp_alloc);
    Kernel *made = (Kernel *)allocate(state->kernel_type, (Py_ssize_t)count);
    if (!made) return NULL;
    made->call = kernel_call;
    made->state = state;
    made->library = library;
    Py_INCREF((PyObject *)library);
    made->kernel = kernel;
    made->module = module;
    Py_INCREF(module);
    made->is_gpu = tile_kernel_is_gpu(kernel);
    made->prints = tile_kernel_prints(kernel);
    made->count = (int)count;
    made->dict = PyDict_New();
    made->inferred = PyMem_Calloc(count + 1, sizeof *made->inferred);
    if (made->dict && made->inferred && init_parameters(made) == 0) {
        while (made->leading < made->count && made->parameters[made->leading].is_tensor) made->leading++;
        return (PyObject *)made;
    }
    Py_DECREF((PyObject *)made);
    return NULL;
}

/* The address of the C API's kernel, which lives as long as this object. */
static PyObject *kernel_address(PyObject *self, PyObject *none) { return PyLong_FromVoidPtr(((Kernel *)self)->kernel); }

/* For tests: how many launches are noted (again.c). */
static PyObject *kernel_noted(PyObject *self, PyObject *none) {
    return PyLong_FromLong(again_count((const Kernel *)self));
}

/* As of a function: functools.wraps and tools that show functions look for it. */
static PyObject *kernel_name(PyObject *self, void *unused) {
    return PyUnicode_FromString(tile_kernel_name(((Kernel *)self)->kernel));
}

/* The same kernel, which takes tensors that require gradients: for autograd, which deals with them itself. */
static PyObject *kernel_detached(PyObject *self, PyObject *none) {
    Kernel *kernel = (Kernel *)self;
    Kernel *made = (Kernel *)kernel_create(kernel->state, kernel->library, kernel->kernel, kernel->module);
    if (made) made->ignores_grad = true;
    return (PyObject *)made;
}

static int kernel_traverse(PyObject *self, visitproc visit, void *arg) {
    Kernel *kernel = (Kernel *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT((PyObject *)kernel->library);
    Py_VISIT(kernel->module);
    Py_VISIT(kernel->dict);
    PyObject *on_gpu = atomic_load(&kernel->on_gpu);
    Py_VISIT(on_gpu);
    return 0;
}

static int kernel_clear(PyObject *self) {
    Kernel *kernel = (Kernel *)self;
    Py_CLEAR(kernel->module);
    Py_CLEAR(kernel->dict);
    again_drop(kernel); /* before the kernel for GPUs, of which they are */
    PyObject *on_gpu = atomic_exchange(&kernel->on_gpu, NULL);
    Py_XDECREF(on_gpu);
    return 0;
}

static void kernel_dealloc(PyObject *self) {
    Kernel *kernel = (Kernel *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (kernel->references) PyObject_ClearWeakRefs(self);
    kernel_clear(self);
    for (int i = 0; i < kernel->count; i++) Py_XDECREF(kernel->parameters[i].name);
    Py_XDECREF((PyObject *)kernel->library);
    PyMem_Free(kernel->inferred);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF((PyObject *)type);
}

static PyMethodDef kernel_methods[] = {
    {"_explain", (PyCFunction)(void (*)(void))kernel_explain, METH_FASTCALL, NULL},
    {"_prepare", kernel_prepare, METH_O, NULL},
    {"_stats", kernel_stats, METH_NOARGS, NULL},
    {"_address", kernel_address, METH_NOARGS, NULL},
    {"_noted", kernel_noted, METH_NOARGS, NULL},
    {"_detached", kernel_detached, METH_NOARGS, NULL},
    {"_interface", kernel_interface, METH_NOARGS, NULL},
    {"bind", (PyCFunction)(void (*)(void))bound_create, METH_FASTCALL | METH_KEYWORDS,
     "bind(*arrays)\n--\n\nThe launch on these arrays as a function without arguments: all is checked here, once.\n"
     "The arrays are kept, and must not be resized."},
    {NULL, NULL, 0, NULL}};
static PyMemberDef kernel_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Kernel, call), READONLY, NULL},
    {"__dictoffset__", T_PYSSIZET, offsetof(Kernel, dict), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Kernel, references), READONLY, NULL},
    {"module", T_OBJECT, offsetof(Kernel, module), READONLY, "the tile.Module that it is of"},
    {NULL, 0, 0, 0, NULL}};
static PyGetSetDef kernel_getters[] = {{"__dict__", PyObject_GenericGetDict, NULL, NULL, NULL},
                                       {"__name__", kernel_name, NULL, NULL, NULL},
                                       {"__qualname__", kernel_name, NULL, NULL, NULL},
                                       {NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot kernel_slots[] = {{Py_tp_call, (void *)kernel_tp_call}, {Py_tp_traverse, (void *)kernel_traverse},
                                     {Py_tp_clear, (void *)kernel_clear},  {Py_tp_dealloc, (void *)kernel_dealloc},
                                     {Py_tp_methods, kernel_methods},      {Py_tp_members, kernel_members},
                                     {Py_tp_getset, kernel_getters},       {0, NULL}};
PyType_Spec kernel_spec = {.name = "tile.Kernel",
                           .basicsize = sizeof(Kernel),
                           .itemsize = sizeof(Parameter),
                           .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                                    Py_TPFLAGS_DISALLOW_INSTANTIATION,
                           .slots = kernel_slots};
