/* PyTorch's tensors beyond what DLPack says of them: whether one requires a gradient, whether it is a view that negates
 * its elements, and results by PyTorch's stable C functions.
 *
 * Python's attributes say the first two, at a third of a launch's cost for three tensors; C++ has functions for them,
 * which take the tensor that a Python object holds. Where it lies in objects of a type is found in the first of them, by
 * the address that `_cdata` gives, and the functions are used if they and the attributes agree. Else the attributes are
 * asked each time. */
#define _GNU_SOURCE
#include "extension.h"

#include <dlfcn.h>
#include <string.h>

/* ---- functions of its libraries, which are loaded wherever there is a tensor ---- */

static void *find(const char *library, const char *name) {
    void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD), *found = handle ? dlsym(handle, name) : NULL;
    if (handle) dlclose(handle); /* it stays loaded by its own module */
    return found;
}

/* A pointer to a function, as POSIX has dlsym give it. */
static bool find_function(const char *library, const char *name, void *function) {
    void *found = find(library, name);
    memcpy(function, &found, sizeof found);
    return found;
}

/* X(DLPack code, bits, name): types of which results may be. */
#define TORCH_TYPES(X)                                                                                                 \
    X(kDLFloat, 32, float32)                                                                                           \
    X(kDLFloat, 16, float16)                                                                                           \
    X(kDLBfloat, 16, bfloat16)                                                                                         \
    X(kDLFloat, 64, float64)                                                                                           \
    X(kDLInt, 64, int64)                                                                                               \
    X(kDLInt, 32, int32)                                                                                               \
    X(kDLInt, 16, int16)                                                                                               \
    X(kDLInt, 8, int8)                                                                                                 \
    X(kDLUInt, 8, uint8)                                                                                               \
    X(kDLUInt, 16, uint16)                                                                                             \
    X(kDLUInt, 32, uint32)                                                                                             \
    X(kDLUInt, 64, uint64)                                                                                             \
    X(kDLBool, 8, bool)                                                                                                \
    X(kDLFloat8_e4m3fn, 8, float8_e4m3fn)                                                                              \
    X(kDLFloat8_e5m2, 8, float8_e5m2)

#define STABLE_LIBRARY "libtorch_cpu.so"

/* Those of PyTorch 2.14 and later. */
static bool find_results(TorchCalls *calls) {
    static const char *const types[] = {
#define TYPE_NAME(code, bits, name) "aoti_torch_dtype_" #name,
        TORCH_TYPES(TYPE_NAME)
#undef TYPE_NAME
    };
    _Static_assert(sizeof types / sizeof *types == TORCH_TYPE_COUNT, "a number for each type");
    int32_t (*number)(void);
    bool good = find_function(STABLE_LIBRARY, "aoti_torch_empty_strided", &calls->empty) &&
                find_function(STABLE_LIBRARY, "aoti_torch_delete_tensor_object", &calls->drop) &&
                find_function(STABLE_LIBRARY, "aoti_torch_get_data_ptr", &calls->data) &&
                find_function(STABLE_LIBRARY, "aoti_torch_get_sizes", &calls->sizes) &&
                find_function(STABLE_LIBRARY, "aoti_torch_get_strides", &calls->strides) &&
                find_function(STABLE_LIBRARY, "torch_tensor_to_pyobject", &calls->to_python);
    for (int i = 0; good && i < TORCH_TYPE_COUNT; i++)
        if ((good = find_function(STABLE_LIBRARY, types[i], &number))) calls->types[i] = number();
    if (good && (good = find_function(STABLE_LIBRARY, "aoti_torch_device_type_cpu", &number))) calls->cpu = number();
    if (good && (good = find_function(STABLE_LIBRARY, "aoti_torch_device_type_cuda", &number))) calls->cuda = number();
    return good;
}

/* ---- where the tensor lies in an object ---- */

static size_t size_of(PyTypeObject *type) {
    PyObject *size = PyObject_GetAttrString((PyObject *)type, "__basicsize__");
    size_t bytes = size ? PyLong_AsSize_t(size) : 0;
    Py_XDECREF(size);
    if (PyErr_Occurred()) bytes = 0;
    return bytes;
}

static size_t find_place(PyObject *object) {
    size_t bytes = size_of(Py_TYPE(object)), place = 0;
    PyObject *address = PyObject_GetAttrString(object, "_cdata");
    void *wanted = address ? PyLong_AsVoidPtr(address) : NULL;
    for (size_t at = sizeof(PyObject); wanted && !place && at + sizeof wanted <= bytes; at += sizeof wanted)
        if (memcmp((const char *)object + at, &wanted, sizeof wanted) == 0) place = at;
    Py_XDECREF(address);
    PyErr_Clear();
    return place;
}

/* The answer of object.name, or of object.name(); -1: an exception is set. */
static int ask(PyObject *object, const char *name, bool is_method) {
    PyObject *answer = PyObject_GetAttrString(object, name);
    if (answer && is_method) {
        PyObject *method = answer;
        answer = PyObject_CallNoArgs(method);
        Py_DECREF(method);
    }
    int truth = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    return truth;
}

void torch_learn(PyObject *object, TorchCalls *calls) {
    *calls = (TorchCalls){.is_torch = PyObject_HasAttrString(object, "requires_grad") &&
                                      PyObject_HasAttrString(object, "is_neg")};
    if (!calls->is_torch) return;
    calls->makes_results = find_results(calls);
    find_function(STABLE_LIBRARY, "aoti_torch_grad_mode_is_enabled", &calls->grad_enabled);
    size_t place = find_place(object);
    if (!place || !find_function("libc10.so", "_ZNK3c1010TensorImpl13requires_gradEv", &calls->requires_grad) ||
        !find_function(STABLE_LIBRARY, "_ZN2at6native6is_negERKNS_6TensorE", &calls->is_negative))
        return;
    const char *tensor = (const char *)object + place;
    void *implementation;
    memcpy(&implementation, tensor, sizeof implementation);
    if (ask(object, "requires_grad", false) == calls->requires_grad(implementation) &&
        ask(object, "is_neg", true) == calls->is_negative(tensor))
        calls->place = place;
    PyErr_Clear();
}

/* ---- what is asked of each tensor ---- */

int torch_requires_grad(const TorchCalls *calls, PyObject *object) {
    if (!calls->place) return ask(object, "requires_grad", false);
    void *implementation;
    memcpy(&implementation, (const char *)object + calls->place, sizeof implementation);
    return calls->requires_grad(implementation);
}

int torch_is_negative(const TorchCalls *calls, PyObject *object) {
    return calls->place ? calls->is_negative((const char *)object + calls->place) : ask(object, "is_neg", true);
}

int torch_grad_enabled(State *state, const TorchCalls *calls) {
    if (calls->grad_enabled) return calls->grad_enabled();
    PyObject *enabled = PyObject_CallNoArgs(state->hooks.grad_enabled);
    int truth = enabled ? PyObject_IsTrue(enabled) : -1;
    Py_XDECREF(enabled);
    return truth;
}

/* ---- results ---- */

static bool find_type(const TorchCalls *calls, DLDataType dtype, int32_t *number) {
    static const DLDataType types[] = {
#define TYPE_ROW(code, bits, name) {code, bits, 1},
        TORCH_TYPES(TYPE_ROW)
#undef TYPE_ROW
    };
    for (int i = 0; i < TORCH_TYPE_COUNT; i++)
        if (types[i].code == dtype.code && types[i].bits == dtype.bits) return *number = calls->types[i], true;
    return false;
}

bool torch_make(const TorchCalls *calls, DLTensor *tensor, void **made) {
    int64_t strides[TILE_MAX_RANK], next = 1, *shape_there, *strides_there;
    int32_t type;
    bool on_gpu = tensor->device.device_type == kDLCUDA;
    if (!calls->makes_results || !find_type(calls, tensor->dtype, &type) ||
        (!on_gpu && tensor->device.device_type != kDLCPU))
        return false;
    for (int i = tensor->ndim - 1; i >= 0; i--) {
        strides[i] = next;
        next *= tensor->shape[i] ? tensor->shape[i] : 1;
    }
    if (calls->empty(tensor->ndim, tensor->shape, strides, type, on_gpu ? calls->cuda : calls->cpu,
                     tensor->device.device_id, made))
        return false;
    if (calls->data(*made, &tensor->data) == 0 && calls->sizes(*made, &shape_there) == 0 &&
        calls->strides(*made, &strides_there) == 0) {
        tensor->shape = shape_there;
        tensor->strides = strides_there;
        return true;
    }
    calls->drop(*made);
    return false;
}

PyObject *torch_finish(const TorchCalls *calls, void *made) {
    void *object = NULL;
    int32_t failed = calls->to_python(made, NULL, &object);
    calls->drop(made);
    if (!failed) return object;
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "PyTorch gives no Python object for a tensor");
    return NULL;
}
