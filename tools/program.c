#include "tools/program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/compile/compile.h"
#include "launch/report.h"

/* ---- words ---- */

static void set_file(TileProgram *program, char *word) {
    char *colon = strrchr(word, ':');
    program->path = word;
    if (!colon || strchr(colon, '/') || strstr(colon, ".tile")) return;
    *colon = 0;
    program->kernel_name = colon + 1;
}

int tile_program_word(TileProgram *program, char *word, bool *taken) {
    TileArena *arena = program->session->arena;
    const char *target = tile_option_value(word, "--target"), *plugin = tile_option_value(word, "--load-pass");
    char *equals = strchr(word, '=');
    *taken = true;
    if (target)
        program->options.target = target;
    else if (plugin)
        tile_list_push(arena, &program->plugins, plugin);
    else if (strcmp(word, "--debug") == 0)
        program->options.flags |= TILE_COMPILE_DEBUG;
    else if (strcmp(word, "--emulate") == 0)
        program->options.flags |= TILE_COMPILE_EMULATE;
    else if (strcmp(word, "--no-contract") == 0)
        program->options.flags |= TILE_COMPILE_NO_CONTRACT;
    else if (*word == '-')
        *taken = false;
    else if (equals) {
        *equals = 0;
        tile_list_push(arena, &program->given, (TileNamedValue){word, equals + 1});
    } else if (!program->path) {
        set_file(program, word);
    } else {
        return tile_session_fail(program->session, TILE_INVALID_ARGUMENT, "'%s' is neither NAME=value nor an option",
                                 word);
    }
    return 0;
}

/* ---- opening ---- */

static int list_kernels(TileProgram *program) {
    TileText text = {.arena = program->session->arena};
    size_t count = tile_library_kernel_count(program->library);
    if (count == 0)
        return tile_session_fail(program->session, TILE_INVALID_ARGUMENT, "%s has no kernel", program->path);
    if (program->kernel_name)
        tile_text_format(&text, "%s has no kernel '%s'; its kernels are:", program->path, program->kernel_name);
    else
        tile_text_format(&text, "%s has %zu kernels; name one, as in %s:%s", program->path, count, program->path,
                         tile_kernel_name(tile_library_kernel_at(program->library, 0)));
    for (size_t i = 0; i < count; i++)
        tile_text_format(&text, "\n  %s", tile_kernel_signature(tile_library_kernel_at(program->library, i)));
    return tile_session_fail(program->session, TILE_INVALID_ARGUMENT, "%s", tile_text_get(&text));
}

static int compile(TileProgram *program, const char *signature) {
    TileReport *report = NULL;
    program->options.settings = program->settings.items;
    program->options.setting_count = program->settings.count;
    tile_compiler_warn_of(program->compiler, program->kernel_name);
    tile_status status =
        tile_compile_file(program->compiler, program->path, &program->options, &program->library, &report);
    if (status != TILE_OK && !report && status != TILE_OUT_OF_MEMORY)
        return tile_session_fail(program->session, status, "%s: %s", program->path, tile_status_text(status));
    int exit_status = tile_session_report(program->session, status, report);
    if (status == TILE_INVALID_ARGUMENT && signature && !program->session->json)
        fprintf(stderr, "the kernel is\n  %s\n", signature);
    if (exit_status) return exit_status;
    if (tile_library_kernel(program->library, program->kernel_name, &program->kernel) != TILE_OK)
        return list_kernels(program);
    return 0;
}

static int complain(TileProgram *program, const char *what, const char *name) {
    return tile_session_fail(program->session, TILE_INVALID_ARGUMENT, "%s '%s'; the kernel is\n  %s", what, name,
                             tile_kernel_signature(program->kernel));
}

static TileProgramArgument *find_argument(TileProgram *program, const char *name) {
    for (size_t i = 0; i < program->argument_count; i++)
        if (strcmp(program->arguments[i].info.name, name) == 0) return &program->arguments[i];
    return NULL;
}

/* Data must be for a tensor; anything else may be a setting. */
static bool is_data(TileProgram *program, const char *value) {
    TileText ignored = {.arena = program->session->arena};
    TileSource source;
    return tile_source_parse(value, &source, &ignored) == TILE_OK;
}

/* A name is the parameter's where there is one; `const.NAME` is always a setting. Before the settings are known, a
 * function parameter such as `epi=bias_gelu` may still bring parameters: then data without one waits (`last` false). */
static int sort_words(TileProgram *program, bool last) {
    TileArena *arena = program->session->arena;
    program->settings.count = 0;
    program->argument_count = tile_kernel_parameter_count(program->kernel);
    program->arguments = TILE_NEW_ARRAY(arena, TileProgramArgument, program->argument_count);
    for (size_t i = 0; i < program->argument_count; i++)
        tile_kernel_parameter(program->kernel, i, &program->arguments[i].info);
    for (size_t i = 0; i < program->given.count; i++) {
        TileNamedValue word = program->given.items[i];
        TileProgramArgument *argument = find_argument(program, word.name);
        if (strncmp(word.name, "const.", 6) == 0) {
            tile_list_push(arena, &program->settings, (TileSetting){word.name + 6, word.value});
        } else if (!argument && is_data(program, word.value)) {
            if (last) return complain(program, "no parameter is called", word.name);
        } else if (!argument) {
            tile_list_push(arena, &program->settings, (TileSetting){word.name, word.value});
        } else if (argument->text) {
            return complain(program, "two values for", word.name);
        } else {
            argument->text = word.value;
        }
    }
    return 0;
}

/* A kernel that the settings do not fit has no parameters; it is refused with the reason when it is used. */
static int check_refused(TileProgram *program) {
    TileError error = {0};
    TileLaunchOptions options = {.struct_size = sizeof options, .error = &error};
    if (program->argument_count) return 0;
    tile_status status = tile_prepare(program->kernel, NULL, 0, &options);
    return status == TILE_OK ? 0 : tile_session_fail(program->session, status, "%s", error.message);
}

/* Before functions are chosen, a name that the library does not know may be a scalar that one of them brings: it waits
 * where there is a setting that is known. */
static int check_settings(TileProgram *program, bool last) {
    size_t known = 0;
    const char *unknown = NULL;
    for (size_t i = 0; i < program->settings.count; i++) {
        TileSetting setting = program->settings.items[i];
        if (tile_library_has_setting(program->library, setting.name))
            program->settings.items[known++] = setting;
        else if (!unknown)
            unknown = setting.name;
    }
    if (unknown && (last || !known)) return complain(program, "no parameter and no setting is called", unknown);
    program->settings.count = known;
    return 0;
}

int tile_program_compiler(TileProgram *program) {
    return tile_session_compiler(program->session, program->plugins.items, program->plugins.count, &program->compiler);
}

int tile_program_open(TileProgram *program, TileSession *session) {
    if (!program->path)
        return tile_session_fail(session, TILE_INVALID_ARGUMENT, "no file; see `tilec help %s`", session->command);
    program->options.struct_size = sizeof program->options;
    int exit_status = tile_program_compiler(program);
    if (exit_status) return exit_status;
    tile_compiler_schedule(program->compiler, program->schedule_seed);
    tile_compiler_mark_padding(program->compiler, program->mark_padding);
    exit_status = compile(program, NULL);
    if (exit_status) return exit_status;
    exit_status = sort_words(program, false);
    if (exit_status) return exit_status;
    if (!program->settings.count) return sort_words(program, true);
    exit_status = check_settings(program, false);
    if (exit_status) return exit_status;
    const char *signature = tile_arena_format(session->arena, "%s", tile_kernel_signature(program->kernel));
    tile_library_destroy(program->library);
    program->library = NULL;
    exit_status = compile(program, signature);
    if (exit_status) return exit_status;
    program->argument_count = tile_kernel_parameter_count(program->kernel);
    exit_status = check_refused(program);
    if (exit_status) return exit_status;
    exit_status = sort_words(program, true);
    return exit_status ? exit_status : check_settings(program, true);
}

/* ---- arguments ---- */

static const struct {
    TileScalar scalar;
    uint8_t code, bits;
} dlpack_types[] = {
    {TILE_BOOL, kDLBool, 8},          {TILE_I8, kDLInt, 8},
    {TILE_I16, kDLInt, 16},           {TILE_I32, kDLInt, 32},
    {TILE_I64, kDLInt, 64},           {TILE_U8, kDLUInt, 8},
    {TILE_U16, kDLUInt, 16},          {TILE_U32, kDLUInt, 32},
    {TILE_U64, kDLUInt, 64},          {TILE_F16, kDLFloat, 16},
    {TILE_F32, kDLFloat, 32},         {TILE_F64, kDLFloat, 64},
    {TILE_BF16, kDLBfloat, 16},       {TILE_F8E4M3, kDLFloat8_e4m3fn, 8},
    {TILE_F8E5M2, kDLFloat8_e5m2, 8},
};
enum { DLPACK_TYPE_COUNT = sizeof dlpack_types / sizeof *dlpack_types };

static DLDataType dlpack_type(TileScalar scalar) {
    for (int i = 0; i < DLPACK_TYPE_COUNT; i++)
        if (dlpack_types[i].scalar == scalar) return (DLDataType){dlpack_types[i].code, dlpack_types[i].bits, 1};
    return (DLDataType){0};
}

static TileScalar scalar_of(DLDataType type) {
    for (int i = 0; i < DLPACK_TYPE_COUNT; i++)
        if (dlpack_types[i].code == type.code && dlpack_types[i].bits == type.bits) return dlpack_types[i].scalar;
    return TILE_SCALAR_COUNT;
}

void tile_program_bind(TileProgramArgument *argument, const TileArray *view) {
    int64_t size = tile_scalar_bytes(view->scalar);
    argument->has_data = true;
    argument->view = *view;
    for (unsigned i = 0; i < view->rank; i++) {
        argument->shape[i] = view->extent[i];
        argument->strides[i] = view->stride[i] / size;
    }
    argument->tensor = (DLTensor){.data = view->data,
                                  .device = {kDLCPU, 0},
                                  .ndim = (int32_t)view->rank,
                                  .dtype = dlpack_type(view->scalar),
                                  .shape = argument->shape,
                                  .strides = argument->strides};
    argument->arg = TILE_TENSOR(&argument->tensor);
}

static int load_input(TileProgram *program, size_t index, uint64_t seed) {
    TileProgramArgument *argument = &program->arguments[index];
    TileText error = {.arena = program->session->arena};
    TileArray view;
    tile_status status = tile_source_load(&argument->source, seed, index, &argument->base, &view, &error);
    if (status != TILE_OK)
        return tile_session_fail(program->session, status, "%s: %s", argument->info.name, tile_text_get(&error));
    tile_program_bind(argument, &view);
    return 0;
}

static int read_scalar(TileProgram *program, TileProgramArgument *argument) {
    const char *text = argument->text;
    char *end;
    errno = 0;
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        argument->arg = TILE_TRUTH(*text == 't');
        return 0;
    }
    long long integer = strtoll(text, &end, 0);
    if (end != text && !*end && !errno) {
        argument->arg = TILE_INTEGER(integer);
        return 0;
    }
    errno = 0;
    unsigned long long positive = strtoull(text, &end, 0);
    if (end != text && !*end && !errno && *text != '-') {
        argument->arg = TILE_UNSIGNED(positive);
        return 0;
    }
    double number = strtod(text, &end);
    if (end == text || *end) return complain(program, "expected a number, true or false for", argument->info.name);
    argument->arg = TILE_NUMBER(number);
    return 0;
}

int tile_program_refuse(TileProgram *program, tile_status status, const TileError *error, TileReport *report) {
    const char *message = *error->message ? error->message : tile_status_text(status);
    const char *signature = tile_kernel_signature(program->kernel);
    bool mistake = status == TILE_INVALID_ARGUMENT;
    bool placed = report && tile_report_is_placed(report); /* an error of the text, or one of its conditions */
    bool several = report && tile_report_error_count(report) > 1;
    if (placed || (several && program->session->json)) return tile_session_report(program->session, status, report);
    tile_report_destroy(report);
    if (!mistake) return tile_session_fail(program->session, status, "%s", message);
    for (const char *next; (next = tile_next_mistake(message)); message = next)
        tile_session_fail(program->session, status, "%.*s", (int)(next - message - 1), message);
    return tile_session_fail(program->session, status, "%s; the kernel is\n  %s", message, signature);
}

/* Names the dimensions that nothing determines, and shows the word with all others filled in. */
static int refuse_shape(TileProgram *program, const TileProgramArgument *argument, TileScalar scalar, uint32_t known,
                        const int64_t *inferred) {
    TileText names = {.arena = program->session->arena}, shape = {.arena = program->session->arena};
    const TileParameterInfo *info = &argument->info;
    const char *path = argument->source.path;
    bool several = false;
    for (int i = 0; i < info->rank; i++) {
        bool open = !(known >> i & 1u);
        if (open) tile_text_format(&names, "%s%d (%s)", several ? ", " : "", i, info->dimensions[i]);
        several |= open;
        tile_text_format(&shape, "%s%lld", i ? "," : "", open ? 10LL : (long long)inferred[i]);
    }
    return tile_session_fail(program->session, TILE_INVALID_ARGUMENT,
                             "nothing decides dimension %s of '%s'; give the shape, as in %s=%s:%s[%s]; the kernel is\n"
                             "  %s",
                             tile_text_get(&names), info->name, info->name, path ? path : "@", tile_scalar_name(scalar),
                             tile_text_get(&shape), tile_kernel_signature(program->kernel));
}

/* A result's type and extents: from the word, else inferred from the other arguments. */
static int create_result(TileProgram *program, size_t index, const TileArg *args) {
    TileProgramArgument *argument = &program->arguments[index];
    TileText error = {.arena = program->session->arena};
    bool given;
    unsigned rank = (unsigned)argument->info.rank;
    int64_t extent[TILE_MAX_TENSOR_RANK];
    tile_status status = tile_source_shape(&argument->source, &given, &rank, extent, &error);
    if (status != TILE_OK)
        return tile_session_fail(program->session, status, "%s: %s", argument->info.name, tile_text_get(&error));
    TileScalar scalar = argument->source.type;
    if (!given || scalar == TILE_SCALAR_COUNT) {
        TileError failure = {0};
        TileReport *report;
        TileLaunchOptions options = {.struct_size = sizeof options, .error = &failure, .report = &report};
        DLDataType type;
        int64_t inferred[TILE_MAX_RANK];
        uint32_t known;
        status =
            tile_kernel_infer(program->kernel, args, program->argument_count, index, &type, inferred, &known, &options);
        if (status != TILE_OK) return tile_program_refuse(program, status, &failure, report);
        if (scalar == TILE_SCALAR_COUNT) scalar = scalar_of(type);
        if (scalar == TILE_SCALAR_COUNT)
            return complain(program, "nothing decides the element type; name it, as in out.npy:f32, for",
                            argument->info.name);
        for (unsigned i = 0; !given && i < rank; i++) {
            if (!(known >> i & 1u)) return refuse_shape(program, argument, scalar, known, inferred);
            extent[i] = inferred[i] < 0 ? 0 : inferred[i]; /* the launch reports the error */
        }
    }
    if (tile_array_create(&argument->base, scalar, rank, extent, &error) != TILE_OK)
        return tile_session_fail(program->session, TILE_OUT_OF_MEMORY, "%s: %s", argument->info.name,
                                 tile_text_get(&error));
    tile_program_bind(argument, &argument->base);
    return 0;
}

int tile_program_load(TileProgram *program, uint64_t seed) {
    TileSession *session = program->session;
    for (size_t i = 0; i < program->argument_count; i++) {
        TileProgramArgument *argument = &program->arguments[i];
        if (!argument->text) return complain(program, "no value for", argument->info.name);
        if (argument->info.kind == TILE_PARAMETER_SCALAR) {
            int failed = read_scalar(program, argument);
            if (failed) return failed;
            continue;
        }
        TileText error = {.arena = session->arena};
        tile_status status = tile_source_parse(argument->text, &argument->source, &error);
        if (status != TILE_OK)
            return tile_session_fail(session, status, "%s: %s", argument->info.name, tile_text_get(&error));
        if (argument->info.access == TILE_PARAMETER_OUT) continue;
        int failed = load_input(program, i, seed);
        if (failed) return failed;
    }
    TileArg *args = tile_program_args(program);
    for (size_t i = 0; i < program->argument_count; i++) {
        TileProgramArgument *argument = &program->arguments[i];
        if (argument->info.kind != TILE_PARAMETER_TENSOR || argument->info.access != TILE_PARAMETER_OUT) continue;
        if (argument->source.kind == TILE_SOURCE_GENERATED)
            return complain(program, "a result goes to a .npy file or to @, not to made-up data, for",
                            argument->info.name);
        int failed = create_result(program, i, args);
        if (failed) return failed;
        args[i] = argument->arg;
    }
    return 0;
}

TileArg *tile_program_args(const TileProgram *program) {
    TileArg *args = TILE_NEW_ARRAY(program->session->arena, TileArg, program->argument_count);
    for (size_t i = 0; i < program->argument_count; i++) args[i] = program->arguments[i].arg;
    return args;
}

void tile_program_close(TileProgram *program) {
    for (size_t i = 0; i < program->argument_count; i++)
        if (program->arguments[i].base.storage) tile_array_release(&program->arguments[i].base);
    tile_library_destroy(program->library);
    tile_compiler_destroy(program->compiler);
}
