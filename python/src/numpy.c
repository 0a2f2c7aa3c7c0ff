/* NumPy's arrays by the public part of its C ABI, which is the same in NumPy 1 and 2 (PyArrayObject of ndarraytypes.h,
 * whose members macros of NumPy's own headers read). A buffer says the same, at five times the cost; the first array of
 * each type is read in both ways, and the type is known only if they agree. */
#include "extension.h"

#include <string.h>

typedef struct Array {
    PyObject_HEAD char *data;
    int rank;
    Py_ssize_t *shape, *strides; /* bytes */
    PyObject *base, *descriptor;
    int flags;
} Array;

typedef struct Descriptor {
    PyObject_HEAD PyTypeObject *type;
    char kind, letter, order, flags;
    int number;
} Descriptor;

enum { WRITEABLE = 0x400, NUMBERS = 24 };

/* By NumPy's number of a type, NPY_BOOL .. NPY_HALF; bits 0: no kernel takes it. */
static const DLDataType types[NUMBERS] = {
    [0] = {kDLBool, 8, 1},
    [1] = {kDLInt, 8, 1},
    [2] = {kDLUInt, 8, 1},
    [3] = {kDLInt, 16, 1},
    [4] = {kDLUInt, 16, 1},
    [5] = {kDLInt, 32, 1},
    [6] = {kDLUInt, 32, 1},
    [7] = {kDLInt, 8 * sizeof(long), 1},
    [8] = {kDLUInt, 8 * sizeof(long), 1},
    [9] = {kDLInt, 64, 1},
    [10] = {kDLUInt, 64, 1},
    [11] = {kDLFloat, 32, 1},
    [12] = {kDLFloat, 64, 1},
    [23] = {kDLFloat, 16, 1},
};

static const DLDataType *type_of(const Array *array) {
    const Descriptor *descriptor = (const Descriptor *)array->descriptor;
    bool known = (unsigned)descriptor->number < NUMBERS && (descriptor->order == '=' || descriptor->order == '|');
    return known && types[descriptor->number].bits ? &types[descriptor->number] : NULL;
}

int numpy_read(Call *call, PyObject *object, int parameter) {
    const Array *array = (const Array *)object;
    const DLDataType *type = type_of(array);
    if (!type || array->rank > TILE_MAX_RANK) return 1;
    DLTensor *tensor = &call->tensors[parameter];
    int64_t *strides = call->strides[parameter];
    int shift = __builtin_ctz(type->bits / 8u);
    int64_t odd = 0;
    for (int i = 0; i < array->rank; i++) {
        strides[i] = array->strides[i] >> shift;
        odd |= array->shape[i] > 1 ? array->strides[i] - (int64_t)((uint64_t)strides[i] << shift) : 0;
    }
    if (odd) return 1;
    *tensor = (DLTensor){.data = array->data,
                         .device = {kDLCPU, 0},
                         .ndim = array->rank,
                         .dtype = *type,
                         .shape = (int64_t *)array->shape,
                         .strides = strides};
    call->args[parameter] = TILE_TENSOR(tensor);
    if (!(array->flags & WRITEABLE)) call->args[parameter].flags = TILE_ARG_READ_ONLY;
    return 0;
}

static bool agrees(const Array *array, const Py_buffer *view) {
    const DLDataType *type = type_of(array);
    bool same = array->data == view->buf && array->rank == view->ndim && array->shape != array->strides &&
                !(array->flags & WRITEABLE) == !!view->readonly && (!type || type->bits == 8 * view->itemsize);
    for (int i = 0; same && i < view->ndim; i++)
        same = array->shape[i] == view->shape[i] && array->strides[i] == view->strides[i];
    return same;
}

static bool is_named_ndarray(PyTypeObject *type) {
    PyObject *name = PyType_GetName(type), *module = PyObject_GetAttrString((PyObject *)type, "__module__");
    bool named = name && module && PyUnicode_Check(module) && PyUnicode_CompareWithASCIIString(name, "ndarray") == 0 &&
                 PyUnicode_CompareWithASCIIString(module, "numpy") == 0;
    Py_XDECREF(name);
    Py_XDECREF(module);
    PyErr_Clear();
    return named;
}

static bool is_as_its_buffer(PyObject *object) {
    Py_buffer view;
    if (PyObject_GetBuffer(object, &view, PyBUF_STRIDES | PyBUF_FORMAT)) return false;
    bool same = agrees((const Array *)object, &view);
    PyBuffer_Release(&view);
    return same;
}

bool numpy_is_known(const State *state, PyObject *object) {
    if (!is_named_ndarray(Py_TYPE(object))) return false;
    bool known = is_as_its_buffer(object);
    PyErr_Clear();
    if (known) return true;
    /* The first array of all may have elements that no buffer names, bf16 and f8: the hook views it as one that has. */
    PyObject *found = PyObject_CallFunctionObjArgs(state->hooks.describe, object, NULL), *other;
    int code, bits;
    if (found && found != Py_None && PyArg_ParseTuple(found, "Oii", &other, &code, &bits))
        known = Py_TYPE(other) == Py_TYPE(object) && is_as_its_buffer(other);
    Py_XDECREF(found);
    PyErr_Clear();
    return known;
}
