/* Failures of the C API as exceptions, and its callbacks as calls of Python. */
#include "extension.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Sets the exception that the hook has made; takes it. */
static int set_exception(PyObject *exception) {
    if (exception) PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    Py_XDECREF(exception);
    return -1;
}

static PyObject *text_of(const char *text) { return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace"); }

static int raise_about_argument(Kernel *kernel, const char *text, int parameter, TileErrorCode code) {
    static const char *const names[] = {
#define CODE_NAME(id, what) #id,
        TILE_ERROR_LIST(CODE_NAME)
#undef CODE_NAME
    };
    PyObject *message = text_of(text);
    if (!message) return -1;
    PyObject *made = PyObject_CallFunction(kernel->state->hooks.argument_error, "OOis", (PyObject *)kernel, message,
                                           parameter, names[code]);
    Py_DECREF(message);
    return set_exception(made);
}

int raise_argument(Kernel *kernel, int parameter, TileErrorCode code, const char *format, ...) {
    char text[512], whole[640];
    const char *name = PyUnicode_AsUTF8AndSize(kernel->parameters[parameter].name, NULL);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (!name) return -1;
    snprintf(whole, sizeof whole, "%s: %s: %s", tile_kernel_name(kernel->kernel), name, text);
    return raise_about_argument(kernel, whole, parameter, code);
}

int raise_status(Kernel *kernel, tile_status status, const TileError *error, TileReport *report) {
    const char *message = error && error->message[0] ? error->message : tile_status_text(status);
    bool may_be_setting = status == TILE_INVALID_ARGUMENT && error && error->code == TILE_ERROR_OTHER;
    if ((status == TILE_INVALID_SOURCE || may_be_setting) && report) {
        PyObject *made = PyObject_CallFunction(kernel->state->hooks.compile_error, "Oissz", (PyObject *)kernel, (int)status,
                                               tile_report_json(report), tile_report_text(report, false), message);
        tile_report_destroy(report);
        return set_exception(made);
    }
    tile_report_destroy(report);
    if (status == TILE_OUT_OF_MEMORY) {
        PyErr_NoMemory();
        return -1;
    }
    if (status == TILE_INVALID_ARGUMENT && error && error->code != TILE_ERROR_OTHER)
        return raise_about_argument(kernel, message, error->argument, error->code);
    return set_exception(PyObject_CallFunction(kernel->state->hooks.status_error, "is", (int)status, message));
}

/* ---- callbacks, on threads that may not hold the GIL ---- */

/* What a callback raises is reported, and the launch goes on; but an interrupt that came while it ran is the program's,
 * and comes again once the launch has returned. */
static void report_unraised(PyObject *function) {
    bool interrupted = PyErr_ExceptionMatches(PyExc_KeyboardInterrupt);
    if (!interrupted) PyErr_WriteUnraisable(function);
    PyErr_Clear();
    if (interrupted) PyErr_SetInterrupt();
}

static void call_with_line(PyObject *hook, const char *line, size_t length) {
    PyGILState_STATE held = PyGILState_Ensure();
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *text = PyUnicode_DecodeUTF8(line, (Py_ssize_t)length, "replace");
    PyObject *none = text ? PyObject_CallFunctionObjArgs(hook, text, NULL) : NULL;
    if (!none) report_unraised(hook);
    Py_XDECREF(none);
    Py_XDECREF(text);
    PyErr_Restore(type, value, trace);
    PyGILState_Release(held);
}

void print_from_kernel(void *host, const char *line, size_t length) {
    call_with_line(((State *)host)->hooks.print_line, line, length);
}

void print_log(void *host, const char *line, size_t length) {
    call_with_line(((State *)host)->hooks.log_line, line, length);
}

/* Another thread may set another observer meanwhile: the function is kept for as long as it runs. */
static void observe(State *state, _Atomic(PyObject *) *observer, const TileLaunchEvent *event) {
    PyGILState_STATE held = PyGILState_Ensure();
    while (atomic_flag_test_and_set(&state->observing)) continue;
    PyObject *function = atomic_load_explicit(observer, memory_order_relaxed), *none;
    Py_XINCREF(function);
    atomic_flag_clear(&state->observing);
    if (function) {
        none = PyObject_CallFunction(function, "si", tile_kernel_name(event->kernel), (int)event->status);
        if (!none) report_unraised(function);
        Py_XDECREF(none);
        Py_DECREF(function);
    }
    PyGILState_Release(held);
}

void observe_before(void *host, const TileLaunchEvent *event) { observe(host, &((State *)host)->before, event); }
void observe_after(void *host, const TileLaunchEvent *event) { observe(host, &((State *)host)->after, event); }
