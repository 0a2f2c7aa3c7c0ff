/* Launches on GPUs of arrays of several libraries, whose streams are ordered around them (tile/_streams.py). */
#include "extension.h"

int order_before(const Kernel *kernel, PyObject *const *objects, DLDevice device, void *stream, PyObject **found) {
    PyObject *arrays = PyList_New(0);
    int failed = arrays ? 0 : -1;
    *found = NULL;
    for (int i = 0; i < kernel->count && !failed; i++)
        if (objects[i] && kernel->parameters[i].is_tensor) failed = PyList_Append(arrays, objects[i]);
    if (!failed)
        *found = PyObject_CallFunction(kernel->state->hooks.before, "OiK", arrays, (int)device.device_id,
                                       (unsigned long long)(uintptr_t)stream);
    Py_XDECREF(arrays);
    if (*found == Py_None) Py_CLEAR(*found);
    return PyErr_Occurred() ? -1 : 0;
}

int order_behind(const Kernel *kernel, PyObject *found, DLDevice device, void *stream) {
    if (!found) return 0;
    PyObject *done = PyObject_CallFunction(kernel->state->hooks.behind, "OiK", found, (int)device.device_id,
                                           (unsigned long long)(uintptr_t)stream);
    Py_DECREF(found);
    Py_XDECREF(done);
    return done ? 0 : -1;
}
