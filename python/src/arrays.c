/* Arrays of other libraries as tensors of the launcher: by DLPack's exchange API where their type has it (PyTorch), as
 * a buffer (NumPy), or by __dlpack__ (CuPy, JAX). Nothing is copied. */
#include "extension.h"

#include <string.h>

enum { MOST_REASON_BYTES = 400 };

void call_release(Call *call) {
    for (int i = 0; i < call->views; i++) PyBuffer_Release(&call->view[i]);
    for (int i = 0; i < call->holds; i++) Py_DECREF(call->hold[i]);
    call->views = call->holds = 0;
}

/* ---- types of arrays ---- */

static const DLPackExchangeAPI *find_exchange(State *state, PyTypeObject *type) {
    const DLPackExchangeAPI *api = NULL;
    PyObject *capsule = PyObject_GetAttr((PyObject *)type, state->exchange_name);
    if (capsule && PyCapsule_IsValid(capsule, "dlpack_exchange_api"))
        api = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
    Py_XDECREF(capsule); /* the struct is static */
    PyErr_Clear();
    return api && api->header.version.major == DLPACK_MAJOR_VERSION && api->dltensor_from_py_object_no_sync ? api
                                                                                                            : NULL;
}

/* Does the object give a buffer? Types may say so whose objects on a GPU do not (CuPy). */
static bool gives_buffer(PyObject *object) {
    Py_buffer view;
    if (!PyObject_CheckBuffer(object)) return false;
    bool gives = PyObject_GetBuffer(object, &view, PyBUF_STRIDES | PyBUF_FORMAT) == 0;
    if (gives) PyBuffer_Release(&view);
    PyErr_Clear();
    return gives;
}

static void learn(State *state, PyTypeObject *type, PyObject *object, Known *known) {
    *known = (Known){.type = type, .api = find_exchange(state, type), .way = WAY_NONE};
    if (known->api) {
        known->way = WAY_EXCHANGE;
        torch_learn(state, object, known->api, &known->torch);
    } else if (numpy_is_known(state, object)) {
        known->way = WAY_NUMPY;
    } else {
        bool dlpack = PyObject_HasAttr(object, state->dlpack_name);
        if (dlpack ? gives_buffer(object) : PyObject_CheckBuffer(object))
            known->way = WAY_BUFFER;
        else if (dlpack)
            known->way = WAY_DLPACK;
    }
}

/* Any thread may add a type; one that finds another at it does without. */
const Known *array_type(State *state, PyObject *object, Known *local) {
    PyTypeObject *type = Py_TYPE(object);
    unsigned count = atomic_load_explicit(&state->known_count, memory_order_acquire);
    for (unsigned i = 0; i < count; i++)
        if (state->known[i].type == type) return &state->known[i];
    learn(state, type, object, local);
    if (local->way == WAY_NONE || atomic_flag_test_and_set(&state->learning)) return local;
    const Known *found = local;
    count = atomic_load(&state->known_count);
    if (count < KNOWN_TYPES) {
        Py_INCREF((PyObject *)type);
        state->known[count] = *local;
        atomic_store_explicit(&state->known_count, count + 1, memory_order_release);
        found = &state->known[count];
    }
    atomic_flag_clear(&state->learning);
    return found;
}

/* DLPack's function takes five times as long as PyTorch's. */
int current_stream_handle(const Known *known, DLDevice device, void **stream) {
    if (known->torch.current_stream && known->torch.current_stream(device.device_id, stream) == 0) return 0;
    return known->api->current_work_stream(device.device_type, device.device_id, stream);
}

/* ---- buffers ---- */

static bool is_native(const char *format) {
    const uint16_t one = 1;
    bool little = *(const char *)&one == 1;
    return !strchr(little ? ">!" : "<", *format);
}

/* The element type of a buffer's format: one letter, behind the byte order. */
static bool read_format(const Py_buffer *view, DLDataType *dtype) {
    const char *format = view->format ? view->format : "B";
    if (!is_native(format)) return false;
    if (strchr("@=<>!", *format)) format++;
    dtype->lanes = 1;
    dtype->bits = (uint8_t)(view->itemsize * 8);
    if (!*format || format[1]) return false;
    if (strchr("efd", *format))
        dtype->code = kDLFloat;
    else if (strchr("bhilqn", *format))
        dtype->code = kDLInt;
    else if (strchr("BHILQN", *format))
        dtype->code = kDLUInt;
    else if (*format == '?')
        dtype->code = kDLBool;
    else
        return false;
    return true;
}

static int refuse_view(Call *call, int parameter, const Py_buffer *view, const char *why) {
    return raise_argument(call->kernel, parameter, TILE_ERROR_TYPE, "%s '%s'%s", "the array's elements are of format",
                          view->format ? view->format : "B", why);
}

/* `dtype`: of the elements, where the buffer's format does not say it; or NULL. */
static int read_buffer(Call *call, PyObject *object, int parameter, const DLDataType *dtype) {
    Py_buffer *view = &call->view[call->views];
    if (PyObject_GetBuffer(object, view, PyBUF_STRIDES | PyBUF_FORMAT)) return -1;
    call->views++;
    DLTensor *tensor = &call->tensors[parameter];
    int64_t *strides = call->strides[parameter];
    *tensor = (DLTensor){.data = view->buf, .device = {kDLCPU, 0}, .ndim = view->ndim, .shape = (int64_t *)view->shape};
    if (dtype)
        tensor->dtype = *dtype;
    else if (!read_format(view, &tensor->dtype))
        return refuse_view(call, parameter, view, ", which no kernel takes");
    if (view->ndim > TILE_MAX_RANK)
        return raise_argument(call->kernel, parameter, TILE_ERROR_RANK, "rank is %d, and the most is %d", view->ndim,
                              TILE_MAX_RANK);
    /* Arrays of ctypes give no strides, though they are asked for them: then there are no gaps. */
    for (int d = 0; view->strides && d < view->ndim; d++) {
        strides[d] = view->strides[d] / view->itemsize;
        if (strides[d] * view->itemsize != view->strides[d] && view->shape[d] > 1)
            return raise_argument(call->kernel, parameter, TILE_ERROR_ADDRESS,
                                  "dimension %d has a stride of %zd bytes, which is no multiple of an element's %zd", d,
                                  view->strides[d], view->itemsize);
    }
    tensor->strides = view->strides ? strides : NULL;
    call->args[parameter] = TILE_TENSOR(tensor);
    if (view->readonly) call->args[parameter].flags = TILE_ARG_READ_ONLY;
    return 0;
}

/* Types that a buffer cannot name, bf16 and f8: the hook has another view of the memory. */
static int read_described(Call *call, PyObject *object, int parameter) {
    PyObject *type = NULL, *value = NULL, *trace = NULL;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *found = PyObject_CallFunctionObjArgs(call->kernel->state->hooks.describe, object, NULL);
    if (!found || found == Py_None) {
        if (found) PyErr_Restore(type, value, trace);
        Py_XDECREF(found);
        return -1;
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    PyObject *other;
    int code, bits;
    if (!PyArg_ParseTuple(found, "Oii", &other, &code, &bits)) {
        Py_DECREF(found);
        return -1;
    }
    DLDataType dtype = {(uint8_t)code, (uint8_t)bits, 1};
    call->hold[call->holds++] = found;
    return read_buffer(call, other, parameter, &dtype);
}

static int read_any_buffer(Call *call, PyObject *object, int parameter) {
    if (read_buffer(call, object, parameter, NULL) == 0) return 0;
    if (!PyErr_ExceptionMatches(PyExc_ValueError) && !PyErr_ExceptionMatches(PyExc_BufferError)) return -1;
    if (call->views && call->view[call->views - 1].obj == object) return -1; /* it has a buffer, which was refused */
    return read_described(call, object, parameter);
}

/* ---- DLPack ---- */

static int read_capsule(Call *call, PyObject *object, int parameter) {
    PyObject *found = PyObject_CallFunctionObjArgs(call->kernel->state->hooks.dlpack, object, NULL), *capsule;
    unsigned long long stream;
    int shows_streams;
    if (!found) return -1;
    call->hold[call->holds++] = found;
    if (!PyArg_ParseTuple(found, "OKp", &capsule, &stream, &shows_streams)) return -1;
    if (!call->device.device_type) call->stream = (void *)(uintptr_t)stream; /* the first one's */
    call->is_mixed |= !shows_streams;
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        DLManagedTensorVersioned *managed = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        call->args[parameter] = TILE_MANAGED(managed);
        call->tensors[parameter] = managed->dl_tensor;
    } else {
        DLManagedTensor *managed = PyCapsule_GetPointer(capsule, "dltensor");
        if (!managed) return -1;
        call->args[parameter] = TILE_TENSOR(&managed->dl_tensor);
        call->tensors[parameter] = managed->dl_tensor;
    }
    call->args[parameter].value.tensor = &call->tensors[parameter];
    return 0;
}

/* The result of a kernel has no gradient, so that of a tensor which needs one would silently be lost. */
static int refuse_grad(Call *call, const TorchCalls *torch, int parameter) {
    int enabled = torch_grad_enabled(call->kernel->state, torch);
    if (enabled <= 0) return enabled;
    return raise_argument(
        call->kernel, parameter, TILE_ERROR_OTHER,
        "the tensor requires a gradient, which a kernel does not compute: pass x.detach(), call under "
        "torch.no_grad(), or register the kernel and its backward by tile.torch.op");
}

/* An object of a type whose first one gave a buffer: another may be on a GPU. */
static int read_buffer_or_capsule(Call *call, PyObject *object, int parameter) {
    State *state = call->kernel->state;
    if (read_any_buffer(call, object, parameter) == 0) return 0;
    if (PyErr_ExceptionMatches(state->hooks.argument_class) || !PyErr_ExceptionMatches(PyExc_Exception)) return -1;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    bool dlpack = PyObject_HasAttr(object, state->dlpack_name);
    if (!dlpack) PyErr_Restore(type, value, trace);
    if (!dlpack) return -1;
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return read_capsule(call, object, parameter);
}

/* What DLPack does not say of a tensor. */
static int check_torch(Call *call, const TorchCalls *torch, PyObject *object, int parameter) {
    int needs_grad = call->kernel->ignores_grad ? 0 : torch_requires_grad(torch, object);
    if (needs_grad < 0 || (needs_grad && refuse_grad(call, torch, parameter))) return -1;
    int negative = torch_is_negative(torch, object);
    if (!negative) return 0;
    return negative < 0 ? -1
                        : raise_argument(call->kernel, parameter, TILE_ERROR_OTHER,
                                         "the tensor is a view that negates what is in memory, as x.conj().imag is: "
                                         "pass x.resolve_neg()");
}

static int refuse_layout(Call *call, int parameter) {
    return raise_argument(call->kernel, parameter, TILE_ERROR_OTHER,
                          "the tensor has no elements in memory by strides, as sparse tensors and those within "
                          "torch.func's transforms have none; for the latter register the kernel by tile.torch.op");
}

/* PyTorch below 2.14 has no function that says so beforehand: then its exception is about data that cannot be accessed. */
static int refuse_unread(Call *call, PyObject *object, int parameter) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *storage = PyObject_CallMethod(object, "untyped_storage", NULL);
    if (storage) {
        Py_DECREF(storage);
        PyErr_Restore(type, value, traceback);
        return -1;
    }
    PyErr_Clear();
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return refuse_layout(call, parameter);
}

static int read_exchange(Call *call, const Known *known, PyObject *object, int parameter) {
    DLTensor *tensor = &call->tensors[parameter];
    if (known->torch.is_torch && check_torch(call, &known->torch, object, parameter)) return -1;
    if (!(known->torch.reads && torch_read(&known->torch, object, 0, tensor))) {
        if (torch_lacks_strides(&known->torch, object)) return refuse_layout(call, parameter);
        if (known->api->dltensor_from_py_object_no_sync(object, tensor))
            return known->torch.is_torch ? refuse_unread(call, object, parameter) : -1;
    }
    call->args[parameter] = TILE_TENSOR(tensor);
    return 0;
}

/* ---- all ---- */

/* 1: the object is an integer of a type other than Python's, as those of NumPy are; 0: it is none; -1: an exception is set.
 * Types of arrays say that they may be integers, and not all of their objects are. */
static int is_integer(PyObject *object) {
    PyObject *integer = PyIndex_Check(object) ? PyNumber_Index(object) : NULL;
    Py_XDECREF(integer);
    if (integer || !PyErr_Occurred()) return integer != NULL;
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) return -1;
    PyErr_Clear();
    return 0;
}

static int read_scalar(Call *call, PyObject *object, int parameter) {
    const Parameter *at = &call->kernel->parameters[parameter];
    TileArg *arg = &call->args[parameter];
    if (at->is_bool || PyBool_Check(object)) {
        int truth = PyObject_IsTrue(object);
        *arg = TILE_TRUTH(truth > 0);
        return truth < 0 ? -1 : 0;
    }
    int integral = !at->is_float || PyLong_Check(object) ? 1 : PyFloat_Check(object) ? 0 : is_integer(object);
    if (integral < 0) return -1;
    if (!integral) {
        double number = PyFloat_AsDouble(object);
        *arg = TILE_NUMBER(number);
        return number == -1 && PyErr_Occurred() ? -1 : 0;
    }
    PyObject *integer = PyNumber_Index(object);
    if (!integer) return -1;
    int overflow = 0;
    long long value = PyLong_AsLongLongAndOverflow(integer, &overflow);
    *arg = TILE_INTEGER(value);
    if (overflow > 0) *arg = TILE_UNSIGNED(PyLong_AsUnsignedLongLong(integer));
    Py_DECREF(integer);
    if (overflow < 0) PyErr_SetString(PyExc_OverflowError, "");
    return PyErr_Occurred() ? -1 : 0;
}

static int refuse_object(Call *call, PyObject *object, int parameter) {
    const Parameter *at = &call->kernel->parameters[parameter];
    PyObject *name = PyType_GetName(Py_TYPE(object));
    const char *text = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    if (text && at->is_tensor)
        raise_argument(call->kernel, parameter, TILE_ERROR_KIND,
                       "an object of type %s is given, expected an array of %s%s", text, at->info.type,
                       PyList_Check(object) || PyTuple_Check(object) ? ": numpy.array(..) makes one of numbers" : "");
    else if (text)
        raise_argument(call->kernel, parameter, TILE_ERROR_KIND, "an object of type %s is given, expected %s", text,
                       at->info.type);
    Py_XDECREF(name);
    return -1;
}

static int read_tensor(Call *call, const Known *known, PyObject *object, int parameter) {
    int odd = 1;
    switch (known->way) {
    case WAY_NUMPY:
        if (!call->keeps) odd = numpy_read(call, object, parameter);
        return odd ? read_any_buffer(call, object, parameter) : 0;
    case WAY_EXCHANGE: return read_exchange(call, known, object, parameter);
    case WAY_BUFFER: return read_buffer_or_capsule(call, object, parameter);
    case WAY_DLPACK: return read_capsule(call, object, parameter);
    case WAY_NONE: break;
    }
    return refuse_object(call, object, parameter);
}

/* PyTorch says behind the reason from where in its own text it came. */
static int length_of_reason(const char *text) {
    const char *ends[] = {strstr(text, "\nException raised from "), strstr(text, "\n\nAt:\n")};
    size_t length = strlen(text);
    for (int i = 0; i < 2; i++)
        if (ends[i] && (size_t)(ends[i] - text) < length) length = (size_t)(ends[i] - text);
    return (int)(length < MOST_REASON_BYTES ? length : MOST_REASON_BYTES);
}

/* What the array's own library says of it becomes the reason of an ArgumentError. */
static int explain_failure(Call *call, int parameter) {
    State *state = call->kernel->state;
    PyObject *type, *value, *trace;
    if (!PyErr_ExceptionMatches(PyExc_Exception)) return -1;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (PyErr_GivenExceptionMatches(type, state->hooks.argument_class)) {
        PyErr_Restore(type, value, trace);
        return -1;
    }
    PyObject *text = value ? PyObject_Str(value) : NULL;
    const char *why = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    PyErr_Clear();
    if (!why || !*why) why = "the object cannot be read";
    raise_argument(call->kernel, parameter, TILE_ERROR_OTHER, "%.*s", length_of_reason(why), why);
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return -1;
}

/* The first tensor of a call decides where it runs, and of which library results are. */
static int call_like(Call *call, const Known *known, PyObject *object, int parameter) {
    call->like = known;
    call->like_object = object;
    call->device = call->tensors[parameter].device;
    return call->device.device_type == kDLCUDA && known->way == WAY_EXCHANGE
               ? current_stream(known, call->device, &call->stream)
               : 0;
}

static int read_number(Call *call, PyObject *object, int parameter) {
    if (read_scalar(call, object, parameter) == 0) return 0;
    bool overflows = PyErr_ExceptionMatches(PyExc_OverflowError);
    if (overflows) PyErr_Clear();
    if (overflows)
        return raise_argument(call->kernel, parameter, TILE_ERROR_VALUE, "the integer has more than 64 bits");
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) return -1;
    PyErr_Clear();
    return refuse_object(call, object, parameter);
}

static bool are_of_one_library(const Known *a, const Known *b) {
    return a->type == b->type || (a->torch.is_torch && b->torch.is_torch);
}

static int read_array(Call *call, PyObject *object, int parameter) {
    Known local;
    const Known *known = array_type(call->kernel->state, object, &local);
    if (known != &local) atomic_store_explicit(&call->kernel->like, known, memory_order_release);
    if (read_tensor(call, known, object, parameter)) return explain_failure(call, parameter);
    if (call->device.device_type) {
        if (call->device.device_type == kDLCUDA) call->is_mixed |= !are_of_one_library(call->like, known);
        return 0;
    }
    if (known == &local) call->local = local;
    return call_like(call, known == &local ? &call->local : known, object, parameter);
}

int call_read(Call *call, PyObject *object, int parameter) {
    return call->kernel->parameters[parameter].is_tensor ? read_array(call, object, parameter)
                                                         : read_number(call, object, parameter);
}

/* Those at the beginning that are plain tensors of PyTorch, of the type that was seen last; their number. */
static int read_torch(Call *call, const Known *known, PyObject *const *objects) {
    Kernel *kernel = call->kernel;
    TorchRefusal refusal = TORCH_REFUSE_NEGATIVE | (kernel->ignores_grad ? 0 : TORCH_REFUSE_GRAD);
    int i = torch_read_known(known, objects, kernel->leading, refusal, &kernel->kind, call->tensors), known_kinds = i;
    while (i < kernel->leading && Py_TYPE(objects[i]) == known->type &&
           torch_read(&known->torch, objects[i], refusal, &call->tensors[i]))
        i++;
    for (int k = 0; k < i; k++) call->args[k] = TILE_TENSOR(&call->tensors[k]);
    call->is_plain = known_kinds == kernel->count;
    return i;
}

int call_read_all(Call *call, PyObject *const *objects) {
    const Known *known = atomic_load_explicit(&call->kernel->like, memory_order_acquire);
    int i = known && known->torch.reads ? read_torch(call, known, objects) : 0;
    int failed = i ? call_like(call, known, objects[0], 0) : 0;
    for (; i < call->kernel->count && !failed; i++) failed = call_read(call, objects[i], i);
    return failed;
}
