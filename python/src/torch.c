/* PyTorch's tensors by PyTorch's own functions: what a tensor is, whether it requires a gradient, whether it is a view
 * that negates its elements, and results.
 *
 * The exchange API of DLPack and the attributes in Python say most of this at several times the cost (ADR 46). The
 * functions take the C++ tensor that a Python object holds. Where it lies in objects of a type is found in the first of
 * them, by the address that `_cdata` gives, and the functions are used if they agree with the exchange API and the
 * attributes on this first one. Else these are asked each time. */
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

static const DLDataType dtypes[] = {
#define TYPE_ROW(code, bits, name) {code, bits, 1},
    TORCH_TYPES(TYPE_ROW)
#undef TYPE_ROW
};
static const char *const dtype_names[] = {
#define TYPE_NAME(code, bits, name) "aoti_torch_dtype_" #name,
    TORCH_TYPES(TYPE_NAME)
#undef TYPE_NAME
};
_Static_assert(sizeof dtypes / sizeof *dtypes == TORCH_TYPE_COUNT, "a number for each type");

/* PyTorch's stable C functions. */
static bool find_stable(const char *name, void *function) { return find_function("libtorch_cpu.so", name, function); }

static bool find_number(const char *name, int32_t *number) {
    int32_t (*function)(void);
    bool found = find_stable(name, &function);
    if (found) *number = function();
    return found;
}

static bool find_numbers(TorchCalls *calls) {
    for (int i = 0; i < TORCH_TYPE_COUNT; i++) {
        if (!find_number(dtype_names[i], &calls->types[i])) return false;
        if (calls->types[i] >= 0 && calls->types[i] < TORCH_NUMBERS) calls->dtypes[calls->types[i]] = dtypes[i];
    }
    return find_number("aoti_torch_device_type_cpu", &calls->cpu) &&
           find_number("aoti_torch_device_type_cuda", &calls->cuda) &&
           find_number("aoti_torch_layout_strided", &calls->strided) &&
           find_stable("aoti_torch_get_data_ptr", &calls->data) && find_stable("aoti_torch_get_sizes", &calls->sizes) &&
           find_stable("aoti_torch_get_strides", &calls->strides);
}

/* The stable function for Python objects is of PyTorch 2.14, what it calls is older. */
static bool find_makers(TorchCalls *calls) {
    return find_stable("aoti_torch_empty_strided", &calls->empty) &&
           find_stable("aoti_torch_delete_tensor_object", &calls->drop) &&
           (find_stable("torch_tensor_to_pyobject", &calls->to_python) ||
            find_function("libtorch_python.so", "_Z16THPVariable_WrapRKN2at10TensorBaseE", &calls->wrap));
}

static bool find_readers(TorchCalls *calls) {
    return find_stable("aoti_torch_get_dim", &calls->rank) && find_stable("aoti_torch_get_dtype", &calls->type) &&
           find_stable("aoti_torch_get_device_type", &calls->device_type) &&
           find_stable("aoti_torch_get_device_index", &calls->device_index) &&
           find_stable("aoti_torch_get_layout", &calls->layout_of);
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

static bool learn_place(PyObject *object, TorchCalls *calls) {
    size_t place = find_place(object);
    if (!place || place > UINT16_MAX ||
        !find_function("libc10.so", "_ZNK3c1010TensorImpl13requires_gradEv", &calls->requires_grad) ||
        !find_stable("_ZN2at6native6is_negERKNS_6TensorE", &calls->is_negative))
        return false;
    const char *tensor = (const char *)object + place;
    void *implementation;
    memcpy(&implementation, tensor, sizeof implementation);
    if (ask(object, "requires_grad", false) != calls->requires_grad(implementation) ||
        ask(object, "is_neg", true) != calls->is_negative(tensor))
        return false;
    calls->place = (uint16_t)place;
    return true;
}

static bool same_tensor(const DLTensor *a, const DLTensor *b) {
    size_t bytes = (size_t)(a->ndim > 0 ? a->ndim : 0) * sizeof(int64_t);
    return a->data == b->data && a->device.device_type == b->device.device_type &&
           a->device.device_id == b->device.device_id && a->ndim == b->ndim && a->dtype.code == b->dtype.code &&
           a->dtype.bits == b->dtype.bits && memcmp(a->shape, b->shape, bytes) == 0 &&
           memcmp(a->strides, b->strides, bytes) == 0 && a->byte_offset == b->byte_offset;
}

void torch_learn(State *state, PyObject *object, const DLPackExchangeAPI *api, TorchCalls *calls) {
    DLTensor here, there;
    *calls = (TorchCalls){.is_torch = PyObject_HasAttrString(object, "requires_grad") &&
                                      PyObject_HasAttrString(object, "is_neg")};
    if (!calls->is_torch) return;
    bool numbers = find_numbers(calls);
    calls->makes_results = numbers && find_makers(calls);
    find_stable("aoti_torch_grad_mode_is_enabled", &calls->grad_enabled);
    find_stable("torch_has_storage", &calls->has_storage); /* 2.14; without it, PyTorch logs what has none */
    find_function("libtorch_cuda.so", "aoti_torch_get_current_cuda_stream", &calls->current_stream);
    find_function("libc10_cuda.so", "_ZN3c104cuda20getCurrentCUDAStreamEa", &calls->stream_number);
    if (learn_place(object, calls) && numbers && find_readers(calls) &&
        api->dltensor_from_py_object_no_sync(object, &there) == 0)
        calls->reads = torch_read(calls, object, 0, &here) && same_tensor(&here, &there);
    PyErr_Clear();
    if (calls->reads) calls->layout = torch_layout(state, calls);
}

/* ---- what is asked of each tensor ---- */

int torch_requires_grad(const TorchCalls *calls, PyObject *object) {
    if (!calls->place) return ask(object, "requires_grad", false);
    return calls->requires_grad(torch_implementation(calls, object));
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

/* Each question is asked once, and little is kept meanwhile. */
static bool read_by_functions(const TorchCalls *calls, void *handle, TorchRefusal refusal, DLTensor *tensor) {
    void *implementation;
    int64_t rank;
    int32_t type, device;
    memcpy(&implementation, handle, sizeof implementation);
    if ((refusal & TORCH_REFUSE_GRAD) && calls->requires_grad(implementation)) return false;
    if ((refusal & TORCH_REFUSE_NEGATIVE) && calls->is_negative(handle)) return false;
    if (!torch_is_strided(calls, handle) || calls->type(handle, &type) || (uint32_t)type >= TORCH_NUMBERS) return false;
    tensor->dtype = calls->dtypes[type];
    if (!tensor->dtype.bits || calls->rank(handle, &rank) || calls->device_type(handle, &device)) return false;
    tensor->ndim = (int32_t)rank;
    tensor->byte_offset = 0;
    tensor->device = (DLDevice){kDLCPU, 0};
    if (device != calls->cpu) {
        tensor->device.device_type = kDLCUDA;
        if (device != calls->cuda || calls->device_index(handle, &tensor->device.device_id)) return false;
    }
    if (calls->sizes(handle, &tensor->shape) || calls->strides(handle, &tensor->strides) ||
        calls->data(handle, &tensor->data))
        return false;
    if (calls->layout) torch_learn_kind(calls, implementation, tensor);
    return true;
}

static inline bool is_of_kind(const TorchLayout *layout, const char *implementation, const TorchKind *kind) {
    return torch_word(implementation, 0) == kind->words[0] &&
           torch_kind_word(layout, implementation) == kind->words[1] &&
           torch_word(implementation, layout->kind + sizeof(uint64_t)) == kind->words[2];
}

static const TorchKind *find_kind(const TorchLayout *layout, const char *implementation) {
    uint64_t words[3] = {0, torch_kind_word(layout, implementation),
                         torch_word(implementation, layout->kind + sizeof(uint64_t))};
    for (unsigned way = 0; way < TORCH_KIND_WAYS; way++) {
        const TorchKind *kind = &layout->kinds[torch_kind_slot(words) ^ way];
        if (atomic_load_explicit(&kind->state, memory_order_acquire) != TORCH_KIND_READY) return NULL;
        if (is_of_kind(layout, implementation, kind)) return kind;
    }
    return NULL;
}

/* All but the address. */
static inline bool read_by_layout(const TorchCalls *calls, const char *implementation, const TorchKind *kind,
                                  TorchRefusal refusal, DLTensor *tensor) {
    const TorchLayout *layout = calls->layout;
    uint64_t rank = torch_word(implementation, layout->rank);
    if (rank > layout->most_rank) return false;
    if ((refusal & TORCH_REFUSE_GRAD) && torch_word(implementation, layout->grad) &&
        calls->requires_grad(implementation))
        return false;
    tensor->device = kind->device;
    tensor->ndim = (int32_t)rank;
    tensor->dtype = kind->dtype;
    tensor->shape = (int64_t *)(uintptr_t)(implementation + layout->shape);
    tensor->strides = (int64_t *)(uintptr_t)(implementation + layout->strides);
    tensor->byte_offset = 0;
    return true;
}

static inline void *handle_of(const TorchCalls *calls, PyObject *object) { return (char *)object + calls->place; }

bool torch_read(const TorchCalls *calls, PyObject *object, TorchRefusal refusal, DLTensor *tensor) {
    void *handle = handle_of(calls, object);
    const char *implementation = torch_implementation(calls, object);
    const TorchKind *kind = calls->layout ? find_kind(calls->layout, implementation) : NULL;
    return kind && read_by_layout(calls, implementation, kind, refusal, tensor)
               ? calls->data(handle, &tensor->data) == 0
               : read_by_functions(calls, handle, refusal, tensor);
}

/* Three tensors' questions are most of what a launch from Python costs: of those of a known kind only the address is
 * asked, and when all else is read, so that what the tensors are comes into the caches at once. */
int torch_read_known(const Known *known, PyObject *const *objects, int count, TorchRefusal refusal,
                     _Atomic(const TorchKind *) *last, DLTensor *tensors) {
    const TorchCalls *calls = &known->torch;
    const TorchKind *first = atomic_load_explicit(last, memory_order_acquire), *kind = first;
    int read = 0, i = 0;
    if (!calls->layout) return 0;
    for (; read < count && Py_TYPE(objects[read]) == known->type; read++) {
        const char *implementation = torch_implementation(calls, objects[read]);
        if (!kind || !is_of_kind(calls->layout, implementation, kind)) kind = find_kind(calls->layout, implementation);
        if (!kind || !read_by_layout(calls, implementation, kind, refusal, &tensors[read])) break;
    }
    if (kind && kind != first) atomic_store_explicit(last, kind, memory_order_release);
    while (i < read && calls->data(handle_of(calls, objects[i]), &tensors[i].data) == 0) i++;
    return i;
}

bool torch_lacks_strides(const TorchCalls *calls, PyObject *object) {
    return calls->reads && !torch_is_strided(calls, handle_of(calls, object));
}

/* ---- results ---- */

static bool find_type(const TorchCalls *calls, DLDataType dtype, int32_t *number) {
    for (int i = 0; i < TORCH_TYPE_COUNT; i++)
        if (dtypes[i].code == dtype.code && dtypes[i].bits == dtype.bits) return *number = calls->types[i], true;
    return false;
}

int32_t torch_type(const TorchCalls *calls, DLDataType dtype) {
    int32_t type;
    return calls->makes_results && find_type(calls, dtype, &type) ? type : -1;
}

bool torch_make_known(const TorchCalls *calls, const TorchMade *like, void **made, void **address) {
    int32_t device = like->device.device_type == kDLCUDA ? calls->cuda : calls->cpu;
    if (calls->empty(like->rank, like->shape, like->strides, like->type, device, like->device.device_id, made)) return false;
    if (calls->data(*made, address) == 0) return true;
    calls->drop(*made);
    return false;
}

bool torch_is_known(const TorchCalls *calls, PyObject *object) {
    const char *implementation = torch_implementation(calls, object);
    return find_kind(calls->layout, implementation) &&
           torch_word(implementation, calls->layout->rank) <= calls->layout->most_rank;
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
    if (!calls->to_python)
        object = calls->wrap(made);
    else if (calls->to_python(made, NULL, &object))
        object = NULL;
    calls->drop(made);
    if (object) return object;
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "PyTorch gives no Python object for a tensor");
    return NULL;
}
