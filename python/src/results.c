/* Results that a call allocates: by the library of its first tensor, with the type and shape that the launcher infers.
 */
#include "extension.h"

#include <string.h>

static void set_error(void *context, const char *kind, const char *message) {
    (void)context;
    if (!PyErr_Occurred()) PyErr_Format(PyExc_RuntimeError, "%s: %s", kind, message);
}

static PyObject *allocate_by_exchange(Call *call, int parameter, DLTensor *prototype) {
    const DLPackExchangeAPI *api = call->like->api;
    DLManagedTensorVersioned *managed = NULL;
    void *made = NULL;
    if (api->managed_tensor_allocator(prototype, &managed, NULL, set_error)) return NULL;
    call->tensors[parameter] = managed->dl_tensor;
    if (api->managed_tensor_to_py_object_no_sync(managed, &made)) return NULL; /* takes it, also on failure */
    if (api->dltensor_from_py_object_no_sync(made, &call->tensors[parameter])) {
        Py_DECREF((PyObject *)made);
        return NULL;
    }
    call->args[parameter] = TILE_TENSOR(&call->tensors[parameter]);
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
    PyObject *made =
        PyObject_CallFunction(call->kernel->state->hooks.empty, "OOii", call->like_object ? call->like_object : Py_None,
                              shape, (int)prototype->dtype.code, (int)prototype->dtype.bits);
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

PyObject *result_make(Call *call, int parameter) {
    int64_t shape[TILE_MAX_RANK];
    DLTensor prototype = {
        .device = call->device, .ndim = call->kernel->parameters[parameter].info.rank, .shape = shape};
    if (infer(call, parameter, &prototype.dtype, shape)) return NULL;
    if (!prototype.device.device_type) prototype.device.device_type = kDLCPU;
    bool exchange = call->like && call->like->way == WAY_EXCHANGE && call->like->api->managed_tensor_allocator &&
                    call->like->api->managed_tensor_to_py_object_no_sync;
    return exchange ? allocate_by_exchange(call, parameter, &prototype) : allocate_by_hook(call, parameter, &prototype);
}
