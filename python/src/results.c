/* Results that a call allocates: by the library of its first tensor, with the type and shape that the launcher infers.
 */
#include "extension.h"

#include <string.h>

static void set_error(void *context, const char *kind, const char *message) {
    (void)context;
    if (!PyErr_Occurred()) PyErr_Format(PyExc_RuntimeError, "%s: %s", kind, message);
}

static int allocate_by_exchange(Call *call, int parameter, DLTensor *prototype, Result *result) {
    result->api = call->like->api;
    if (result->api->managed_tensor_allocator(prototype, &result->managed, NULL, set_error)) return -1;
    call->tensors[parameter] = result->managed->dl_tensor;
    call->args[parameter] = TILE_TENSOR(&call->tensors[parameter]);
    return 0;
}

/* By the library's own functions, where it has such. */
static bool allocate_by_torch(Call *call, int parameter, const DLTensor *prototype, Result *result) {
    DLTensor *tensor = &call->tensors[parameter];
    *tensor = *prototype;
    if (!torch_make(&call->like->torch, tensor, &result->torch)) return false;
    result->calls = &call->like->torch;
    call->args[parameter] = TILE_TENSOR(tensor);
    return true;
}

PyObject *result_finish(Result *result) {
    void *made = NULL;
    if (result->object) return result->object;
    if (result->torch) return torch_finish(result->calls, result->torch);
    /* takes it, also on failure */
    return result->api->managed_tensor_to_py_object_no_sync(result->managed, &made) ? NULL : made;
}

void result_drop(Result *result) {
    Py_XDECREF(result->object);
    if (result->torch) result->calls->drop(result->torch);
    if (result->managed && result->managed->deleter) result->managed->deleter(result->managed);
}

/* A new reference. */
static PyObject *find_maker(State *state, DLDataType dtype) {
    unsigned count = atomic_load_explicit(&state->maker_count, memory_order_acquire);
    for (unsigned i = 0; i < count; i++)
        if (state->makers[i].dtype.code == dtype.code && state->makers[i].dtype.bits == dtype.bits) {
            Py_INCREF(state->makers[i].function);
            return state->makers[i].function;
        }
    PyObject *function = PyObject_CallFunction(state->hooks.numpy_maker, "ii", (int)dtype.code, (int)dtype.bits);
    if (!function || atomic_flag_test_and_set(&state->learning)) return function;
    count = atomic_load(&state->maker_count);
    if (count < KNOWN_MAKERS) {
        Py_INCREF(function);
        state->makers[count] = (Maker){dtype, function};
        atomic_store_explicit(&state->maker_count, count + 1, memory_order_release);
    }
    atomic_flag_clear(&state->learning);
    return function;
}

static PyObject *make_by_hook(const Call *call, const DLTensor *prototype, PyObject *shape) {
    State *state = call->kernel->state;
    if (!call->like || call->like->way != WAY_NUMPY)
        return PyObject_CallFunction(state->hooks.empty, "OOii", call->like_object ? call->like_object : Py_None, shape,
                                     (int)prototype->dtype.code, (int)prototype->dtype.bits);
    PyObject *maker = find_maker(state, prototype->dtype);
    PyObject *made = maker ? PyObject_CallFunctionObjArgs(maker, shape, NULL) : NULL;
    Py_XDECREF(maker);
    return made;
}

static PyObject *allocate_by_hook(Call *call, int parameter, const DLTensor *prototype) {
    PyObject *shape = PyTuple_New(prototype->ndim);
    for (int i = 0; shape && i < prototype->ndim; i++) {
        PyObject *extent = PyLong_FromLongLong(prototype->shape[i]);
        if (!extent || PyTuple_SetItem(shape, i, extent)) {
            Py_DECREF(shape);
            return NULL;
        }
    }
    if (!shape) return NULL;
    PyObject *made = make_by_hook(call, prototype, shape);
    Py_DECREF(shape);
    if (!made) return NULL;
    if (call_read(call, made, parameter) == 0) return made;
    Py_DECREF(made);
    return NULL;
}

static int infer(Call *call, int parameter, DLDataType *dtype, int64_t *shape) {
    Kernel *kernel = call->kernel;
    const Parameter *at = &kernel->parameters[parameter];
    TileError error;
    TileReport *report = NULL;
    uint32_t known = 0;
    TileLaunchOptions options = launch_options(kernel, NULL, &error, &report);
    PyThreadState *released = PyEval_SaveThread();
    tile_status status = tile_kernel_infer(kernel->kernel, call->args, (size_t)kernel->count, (size_t)parameter, dtype,
                                           shape, &known, &options);
    PyEval_RestoreThread(released);
    if (status != TILE_OK) return raise_status(kernel, status, &error, report);
    if (!dtype->bits)
        return raise_argument(kernel, parameter, TILE_ERROR_TYPE,
                              "its type %s follows from no other argument: set it (%s='f32'), or pass an array",
                              at->info.type, at->info.type);
    for (int i = 0; i < at->info.rank; i++)
        if (!(known >> i & 1))
            return raise_argument(kernel, parameter, TILE_ERROR_EXTENT,
                                  "dimension %d (%s) follows from no other argument: pass an array", i,
                                  at->info.dimensions[i]);
    return 0;
}

/* ---- what was inferred before ---- */

/* All that a type or a shape can follow from; 0: it is too much to be kept. */
static int list_words(const Call *call, uint64_t *words) {
    int count = 1;
    words[0] = (uint64_t)call->device.device_type;
    for (int i = 0; i < call->kernel->count; i++) {
        const DLTensor *tensor = &call->tensors[i];
        if (count + 2 + TILE_MAX_RANK > INFERRED_WORDS) return 0;
        words[count++] = (uint64_t)call->args[i].kind;
        if (call->args[i].kind != TILE_ARG_TENSOR) {
            words[count++] = call->args[i].kind == TILE_ARG_NONE ? 0 : call->args[i].value.unsigned_integer;
            continue;
        }
        words[count++] = (uint64_t)tensor->ndim << 32 | (uint64_t)tensor->dtype.code << 8 | tensor->dtype.bits;
        for (int d = 0; d < tensor->ndim && d < TILE_MAX_RANK; d++) words[count++] = (uint64_t)tensor->shape[d];
    }
    return count;
}

static bool recall(Kernel *kernel, int parameter, const uint64_t *words, int count, DLTensor *prototype) {
    const Inferred *known = &kernel->inferred[parameter];
    if (!count || atomic_flag_test_and_set_explicit(&kernel->inferring, memory_order_acquire)) return false;
    bool same = known->count == count && memcmp(known->words, words, (size_t)count * sizeof *words) == 0;
    if (same) {
        prototype->dtype = known->dtype;
        memcpy(prototype->shape, known->shape, sizeof known->shape);
    }
    atomic_flag_clear_explicit(&kernel->inferring, memory_order_release);
    return same;
}

static void keep(Kernel *kernel, int parameter, const uint64_t *words, int count, const DLTensor *prototype) {
    Inferred *known = &kernel->inferred[parameter];
    if (!count || atomic_flag_test_and_set_explicit(&kernel->inferring, memory_order_acquire)) return;
    known->count = count;
    memcpy(known->words, words, (size_t)count * sizeof *words);
    known->dtype = prototype->dtype;
    memcpy(known->shape, prototype->shape, sizeof known->shape);
    atomic_flag_clear_explicit(&kernel->inferring, memory_order_release);
}

int result_make(Call *call, int parameter, Result *result) {
    int64_t shape[TILE_MAX_RANK];
    uint64_t words[INFERRED_WORDS];
    DLTensor prototype = {
        .device = call->device, .ndim = call->kernel->parameters[parameter].info.rank, .shape = shape};
    *result = (Result){.object = NULL};
    int count = list_words(call, words);
    if (!recall(call->kernel, parameter, words, count, &prototype)) {
        if (infer(call, parameter, &prototype.dtype, shape)) return -1;
        keep(call->kernel, parameter, words, count, &prototype);
    }
    if (!prototype.device.device_type) prototype.device.device_type = kDLCPU;
    if (call->like && allocate_by_torch(call, parameter, &prototype, result)) return 0;
    bool exchange = call->like && call->like->way == WAY_EXCHANGE && call->like->api->managed_tensor_allocator &&
                    call->like->api->managed_tensor_to_py_object_no_sync;
    if (exchange) return allocate_by_exchange(call, parameter, &prototype, result);
    result->object = allocate_by_hook(call, parameter, &prototype);
    return result->object ? 0 : -1;
}
