/* What calls of all kinds share: arguments to parameters, the kernel that they are for, the options of its launch. */
#include "extension.h"

#include <string.h>

static int find_parameter(const Kernel *kernel, PyObject *name) {
    for (int i = 0; i < kernel->count; i++)
        if (kernel->parameters[i].name == name) return i;
    for (int i = 0; i < kernel->count; i++)
        if (PyUnicode_Compare(kernel->parameters[i].name, name) == 0) return i;
    return -1;
}

/* A kernel that its settings do not fit has no parameters; preparing a launch says why. */
static bool refuse_settings(const Kernel *kernel) {
    TileError error = {.message = ""};
    TileReport *report = NULL;
    TileLaunchOptions options = {.struct_size = sizeof options, .error = &error, .report = &report};
    tile_status status = tile_prepare(kernel->kernel, NULL, 0, &options);
    PyObject *made = NULL;
    if (status == TILE_INVALID_ARGUMENT && report)
        made = PyObject_CallFunction(kernel->state->hooks.compile_error, "Oiss", Py_None, (int)status, tile_report_json(report),
                                     tile_report_text(report, false));
    if (made) PyErr_SetObject((PyObject *)Py_TYPE(made), made);
    Py_XDECREF(made);
    tile_report_destroy(report);
    return PyErr_Occurred();
}

int kernel_refuse_count(const Kernel *kernel, Py_ssize_t given) {
    if (!kernel->count && refuse_settings(kernel)) return -1;
    if (kernel->given_count == kernel->count)
        PyErr_Format(PyExc_TypeError, "%s() takes %d arguments, but %zd are given: %s",
                     tile_kernel_name(kernel->kernel), kernel->count, given, tile_kernel_signature(kernel->kernel));
    else
        PyErr_Format(PyExc_TypeError, "%s() takes %d arguments, or %d and returns the others, but %zd are given: %s",
                     tile_kernel_name(kernel->kernel), kernel->count, kernel->given_count, given,
                     tile_kernel_signature(kernel->kernel));
    return -1;
}

static int read_keyword(const Kernel *kernel, PyObject *name, PyObject *value, PyObject **objects, PyObject **other) {
    int parameter = find_parameter(kernel, name);
    if (parameter >= 0 && objects[parameter]) {
        PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument %R", tile_kernel_name(kernel->kernel),
                     name);
        return -1;
    }
    if (parameter >= 0) {
        objects[parameter] = value;
        return 0;
    }
    if (!*other && !(*other = PyDict_New())) return -1;
    return PyDict_SetItem(*other, name, value);
}

/* Is one of the first `count` parameters, or of those that are not `out`, given by keyword, too? */
static bool are_named(const Kernel *kernel, Py_ssize_t count, bool all, PyObject *names) {
    for (Py_ssize_t i = 0, keywords = PyTuple_Size(names); i < keywords; i++) {
        int parameter = find_parameter(kernel, PyTuple_GetItem(names, i)), before = 0;
        for (int k = 0; k < parameter; k++) before += all || !kernel->parameters[k].is_out;
        if (parameter >= 0 && before < count && (all || !kernel->parameters[parameter].is_out)) return true;
    }
    return false;
}

/* Arguments without a name are those of all parameters in order, or of those that are not `out`: the latter, where both
 * would do, unless a keyword has one of them. */
static bool takes_all(const Kernel *kernel, Py_ssize_t count, PyObject *names) {
    if (count > kernel->given_count || kernel->given_count == kernel->count) return true;
    return names && are_named(kernel, count, false, names) && !are_named(kernel, count, true, names);
}

int kernel_arguments(Kernel *kernel, PyObject *const *args, Py_ssize_t count, PyObject *names, PyObject **objects,
                     PyObject **other) {
    Py_ssize_t keywords = names ? PyTuple_Size(names) : 0;
    bool all = takes_all(kernel, count, names);
    memset(objects, 0, (size_t)kernel->count * sizeof *objects);
    *other = NULL;
    if (count > kernel->count || (all && count != kernel->count && !keywords))
        return kernel_refuse_count(kernel, count);
    for (int i = 0, next = 0; i < kernel->count && next < count; i++)
        if (all || !kernel->parameters[i].is_out) objects[i] = args[next++];
    for (Py_ssize_t i = 0; i < keywords; i++)
        if (read_keyword(kernel, PyTuple_GetItem(names, i), args[count + i], objects, other)) return -1;
    for (int i = 0; i < kernel->count && !*other; i++)
        if (!objects[i] && !kernel->parameters[i].is_out) {
            PyErr_Format(PyExc_TypeError, "%s() misses the argument %R: %s", tile_kernel_name(kernel->kernel),
                         kernel->parameters[i].name, tile_kernel_signature(kernel->kernel));
            return -1;
        }
    return 0;
}

PyObject *call_by_tuple(Vectorcall function, PyObject *self, PyObject *args, PyObject *keywords) {
    PyObject *list[2 * MOST_PARAMETERS + 64];
    Py_ssize_t count = PyTuple_Size(args), extra = keywords ? PyDict_Size(keywords) : 0, at = 0, place = 0;
    if (count + extra > (Py_ssize_t)(sizeof list / sizeof *list)) {
        PyErr_SetString(PyExc_TypeError, "too many arguments");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++) list[i] = PyTuple_GetItem(args, i);
    PyObject *names = extra ? PyTuple_New(extra) : NULL, *name, *value;
    if (extra && !names) return NULL;
    while (extra && PyDict_Next(keywords, &place, &name, &value)) {
        Py_INCREF(name);
        PyTuple_SetItem(names, at, name);
        list[count + at++] = value;
    }
    PyObject *result = function(self, list, (size_t)count, names);
    Py_XDECREF(names);
    return result;
}

TileLaunchOptions launch_options(Kernel *kernel, void *stream, TileError *error, TileReport **report) {
    State *state = kernel->state;
    TileLaunchOptions options = {.struct_size = sizeof options, .stream = stream, .error = error, .report = report};
    error->message[0] = 0;
    if (kernel->prints) {
        options.print = print_from_kernel;
        options.print_host = state;
    }
    if (is_observed(state)) options.observer = &state->observer;
    return options;
}

Kernel *kernel_make_for_gpu(Kernel *kernel, int device) {
    PyObject *none = NULL;
    PyObject *found = PyObject_CallFunction(kernel->state->hooks.for_gpu, "Oi", (PyObject *)kernel, device);
    if (!found) return NULL;
    if (Py_TYPE(found) != kernel->state->kernel_type || ((Kernel *)found)->count != kernel->count) {
        Py_DECREF(found);
        PyErr_SetString(PyExc_TypeError, "for_gpu gives a kernel with the same parameters");
        return NULL;
    }
    if (atomic_compare_exchange_strong(&kernel->on_gpu, &none, found)) return (Kernel *)found;
    Py_DECREF(found); /* another thread was first */
    return (Kernel *)none;
}
