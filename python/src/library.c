/* Compilers and libraries: texts become kernels. */
#include "extension.h"

#include <string.h>

enum { MOST_SETTINGS = 128 };

/* ---- compilers ---- */

static void destroy_compiler(PyObject *capsule) {
    tile_compiler_destroy(PyCapsule_GetPointer(capsule, "tile.compiler"));
}

/* compiler(imports, cpu_capability, on_miss, variant_limit, log, deterministic, allow_tf32, tuning) -> capsule */
PyObject *library_compiler(PyObject *module, PyObject *args) {
    const char *paths[MOST_SETTINGS];
    PyObject *imports;
    int on_miss, deterministic, allow_tf32;
    TileSettings settings = {
        .struct_size = sizeof settings, .log_print = print_log, .log_host = PyModule_GetState(module)};
    if (!PyArg_ParseTuple(args, "O!ziiIppz", &PyTuple_Type, &imports, &settings.cpu_capability, &on_miss,
                          &settings.variant_limit, &settings.log, &deterministic, &allow_tf32, &settings.tuning))
        return NULL;
    settings.on_miss = (TileOnMiss)on_miss;
    settings.deterministic = deterministic;
    settings.allow_tf32 = allow_tf32;
    TileCompilerOptions options = {.struct_size = sizeof options, .settings = &settings, .import_paths = paths};
    for (Py_ssize_t i = 0; i < PyTuple_Size(imports) && i < MOST_SETTINGS; i++)
        if (!(paths[options.import_path_count++] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(imports, i), NULL)))
            return NULL;
    TileCompiler *compiler;
    tile_status status = tile_compiler_create(&options, &compiler);
    if (status == TILE_OUT_OF_MEMORY) return PyErr_NoMemory();
    if (status != TILE_OK) return PyErr_Format(PyExc_ValueError, "%s", tile_status_text(status));
    PyObject *capsule = PyCapsule_New(compiler, "tile.compiler", destroy_compiler);
    if (!capsule) tile_compiler_destroy(compiler);
    return capsule;
}

/* ---- compiling ---- */

typedef struct Source {
    PyObject *capsule;
    TileCompiler *compiler;
    const char *text, *file, *target;
    Py_ssize_t length;
    PyObject *dict;
    int flags;
    TileSetting settings[MOST_SETTINGS];
    TileCompileOptions options;
} Source;

static int read_source(Source *source) {
    PyObject *name, *value;
    Py_ssize_t place = 0;
    source->compiler = PyCapsule_GetPointer(source->capsule, "tile.compiler");
    if (!source->compiler) return -1;
    source->options = (TileCompileOptions){.struct_size = sizeof source->options,
                                           .file = source->file,
                                           .target = source->target,
                                           .settings = source->settings,
                                           .flags = (uint32_t)source->flags};
    while (PyDict_Next(source->dict, &place, &name, &value)) {
        TileSetting *setting = &source->settings[source->options.setting_count++];
        setting->name = PyUnicode_AsUTF8AndSize(name, NULL);
        setting->value = PyUnicode_AsUTF8AndSize(value, NULL);
        if (!setting->name || !setting->value) return -1;
        if (source->options.setting_count == MOST_SETTINGS) break;
    }
    return 0;
}

/* Sets the exception that the hook makes of the report, which it takes. */
static PyObject *refuse(State *state, tile_status status, TileReport *report) {
    const char *text = report ? tile_report_text(report, false) : tile_status_text(status);
    PyObject *made = PyObject_CallFunction(state->hooks.compile_error, "Oiss", Py_None, (int)status,
                                           report ? tile_report_json(report) : "[]", text);
    tile_report_destroy(report);
    if (made) PyErr_SetObject((PyObject *)Py_TYPE(made), made);
    Py_XDECREF(made);
    return NULL;
}

/* compile(compiler, text, file or None, target or None, settings, flags) -> (Library, report's text) */
PyObject *library_compile(PyObject *module, PyObject *args) {
    State *state = PyModule_GetState(module);
    Source source;
    TileLibrary *library = NULL;
    TileReport *report = NULL;
    if (!PyArg_ParseTuple(args, "Os#zzO!i", &source.capsule, &source.text, &source.length, &source.file, &source.target,
                          &PyDict_Type, &source.dict, &source.flags) ||
        read_source(&source))
        return NULL;
    PyThreadState *released = PyEval_SaveThread();
    tile_status status =
        tile_compile(source.compiler, source.text, (size_t)source.length, &source.options, &library, &report);
    PyEval_RestoreThread(released);
    if (status != TILE_OK) return refuse(state, status, report);
    allocfunc allocate = (allocfunc)PyType_GetSlot(state->library_type, Py_tp_alloc);
    Library *made = (Library *)allocate(state->library_type, 0);
    if (!made) {
        tile_report_destroy(report);
        tile_library_destroy(library);
        return NULL;
    }
    made->state = state;
    made->library = library;
    made->compiler = source.capsule;
    Py_INCREF(source.capsule);
    PyObject *result = Py_BuildValue("(Ns)", (PyObject *)made, report ? tile_report_text(report, false) : "");
    tile_report_destroy(report);
    return result;
}

/* emit(compiler, text, file, target, settings, flags, stage, kernel, after, general) -> text */
PyObject *library_emit(PyObject *module, PyObject *args) {
    Source source;
    const char *stage;
    int general;
    char *output = NULL;
    TileReport *report = NULL;
    TileEmitOptions emit = {.struct_size = sizeof emit};
    if (!PyArg_ParseTuple(args, "Os#zzO!iszzp", &source.capsule, &source.text, &source.length, &source.file,
                          &source.target, &PyDict_Type, &source.dict, &source.flags, &stage, &emit.kernel, &emit.after,
                          &general) ||
        read_source(&source))
        return NULL;
    emit.general = general;
    while (tile_stage_name(emit.stage) && strcmp(tile_stage_name(emit.stage), stage)) emit.stage++;
    if (!tile_stage_name(emit.stage)) return PyErr_Format(PyExc_ValueError, "no stage is called %s", stage);
    PyThreadState *released = PyEval_SaveThread();
    tile_status status =
        tile_emit_stage(source.compiler, source.text, (size_t)source.length, &source.options, &emit, &output, &report);
    PyEval_RestoreThread(released);
    if (status != TILE_OK) return refuse(PyModule_GetState(module), status, report);
    tile_report_destroy(report);
    PyObject *text = PyUnicode_DecodeUTF8(output, (Py_ssize_t)strlen(output), "replace");
    tile_string_destroy(output);
    return text;
}

/* ---- lists ---- */

PyObject *library_targets(PyObject *module, PyObject *none) {
    PyObject *list = PyList_New(0);
    TileTargetInfo info;
    for (size_t i = 0; list && tile_target_at(i, &info); i++) {
        PyObject *row =
            Py_BuildValue("(ssNz)", info.name, info.description, PyBool_FromLong(info.usable), info.why_not);
        if (!row || PyList_Append(list, row)) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

PyObject *library_standard(PyObject *module, PyObject *none) {
    PyObject *texts = PyDict_New();
    TileStandardText text;
    for (size_t i = 0; texts && tile_standard_text_at(i, &text); i++) {
        PyObject *value = PyUnicode_DecodeUTF8(text.text, (Py_ssize_t)text.length, NULL);
        if (!value || PyDict_SetItemString(texts, text.path, value)) Py_CLEAR(texts);
        Py_XDECREF(value);
    }
    return texts;
}

/* ---- the type ---- */

/* kernels(module) -> list of Kernel */
static PyObject *kernels_of(PyObject *self, PyObject *module) {
    Library *library = (Library *)self;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < tile_library_kernel_count(library->library); i++) {
        PyObject *kernel = kernel_create(library->state, library, tile_library_kernel_at(library->library, i), module);
        if (!kernel || PyList_Append(list, kernel)) Py_CLEAR(list);
        Py_XDECREF(kernel);
    }
    return list;
}

/* Background compilations end first, and may want to log. */
static void library_dealloc(PyObject *self) {
    Library *library = (Library *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyThreadState *released = PyEval_SaveThread();
    tile_library_destroy(library->library);
    PyEval_RestoreThread(released);
    Py_XDECREF(library->compiler);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF((PyObject *)type);
}

static PyMethodDef library_methods[] = {{"kernels", kernels_of, METH_O, NULL}, {NULL, NULL, 0, NULL}};
static PyType_Slot library_slots[] = {
    {Py_tp_dealloc, (void *)library_dealloc}, {Py_tp_methods, library_methods}, {0, NULL}};
PyType_Spec library_spec = {.name = "tile._tile.Library",
                            .basicsize = sizeof(Library),
                            .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                            .slots = library_slots};
