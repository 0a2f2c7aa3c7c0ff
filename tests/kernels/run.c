#include "run.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "decisions.h"
#include "device.h"
#include "guest.h"
#include "observer.h"
#include "row_target.h"
#include "states.h"

enum { MAX_CHECKED = 64, MAX_OPENED = 24, ALL_SETTINGS = MAX_SETTINGS + 4 };

struct Session {
    Grant grant;
    const Reviewed *reviewed; /* with passes inserted between all others; else NULL */
    const char *stdlib;
    TileCompiler *compiler;
    Guest *guest; /* created for the first row that needs it */
    /* A cache of libraries, with the key that each was created from; `oldest` is evicted next. */
    struct {
        TileLibrary *library;
        char key[512];
    } opened[MAX_OPENED];
    size_t oldest;
    bool whole; /* see session_divide */
    Observing observing; /* every second row, in the interpreter */
    TileMaskedCounts masked; /* masked operations of the last launch, if the executor ran it */
    /* The bits of the last outputs, and the configuration that they are from. */
    uint64_t *bits;
    int64_t bit_count;
    char bits_key[1024], bits_target[32];
    /* Kernels, types, tune settings and targets whose IR was checked. */
    char *checked[MAX_CHECKED];
    size_t checked_count;
};

/* A parsed row. */
typedef struct Run {
    const Row *row;
    const Case *kernel;
    Type type, output_type;
    int parameter_count;
    Array arrays[MAX_PARAMETERS];
    bool made[MAX_PARAMETERS];
    int outputs[MAX_OUTPUTS]; /* indices of the output parameters */
    int output_count;
    TileArg arguments[MAX_PARAMETERS];
    Problem problem;
    double *dense[MAX_INPUTS];
    char *reason;
} Run;

static bool fail(char *reason, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool fail(char *reason, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(reason, MAX_REASON, format, list);
    va_end(list);
    return false;
}

Session *session_create(const char *stdlib, Grant grant, const Reviewed *reviewed) {
    Session *session = calloc(1, sizeof *session);
    if (!session) return NULL;
    session->stdlib = stdlib;
    session->grant = grant;
    session->reviewed = reviewed;
    TileCompilerOptions options = {.struct_size = sizeof options, .import_paths = &stdlib, .import_path_count = 1};
    if (tile_compiler_create(&options, &session->compiler) == TILE_OK) {
        decisions_shake(session->compiler, reviewed != NULL);
        return session;
    }
    fprintf(stderr, "no compiler could be made\n");
    free(session);
    return NULL;
}

void session_forget(Session *session) {
    for (size_t i = 0; i < MAX_OPENED; i++) tile_library_destroy(session->opened[i].library);
    memset(session->opened, 0, sizeof session->opened);
}

TileCompiler *session_compiler(Session *session) { return session->compiler; }

void session_destroy(Session *session) {
    if (!session) return;
    session_forget(session);
    tile_compiler_destroy(session->compiler);
    guest_destroy(session->guest);
    for (size_t i = 0; i < session->checked_count; i++) free(session->checked[i]);
    free(session->bits);
    free(session);
}

/* ---- arguments ---- */

static bool parse_types(Run *run) {
    char first[16];
    const char *colon = strchr(run->row->types, ':');
    size_t length = colon ? (size_t)(colon - run->row->types) : strlen(run->row->types);
    snprintf(first, sizeof first, "%.*s", (int)length, run->row->types);
    if (!type_find(first, &run->type)) return fail(run->reason, "no type %s", first);
    run->output_type = run->type;
    if (colon && !type_find(colon + 1, &run->output_type)) return fail(run->reason, "no type %s", colon + 1);
    return true;
}

static Type parameter_type(const Run *run, const Parameter *parameter) {
    switch (parameter->kind) {
    case KIND_T: return run->type;
    case KIND_U: return run->output_type;
    case KIND_F32: return TYPE_F32;
    case KIND_I8: return TYPE_I8;
    case KIND_U8: return TYPE_U8;
    case KIND_I32: return TYPE_I32;
    case KIND_I64: return TYPE_I64;
    case KIND_BOOL: return TYPE_BOOL;
    }
    return TYPE_F32;
}

static void parse_sizes(Run *run) {
    for (char letter = 'A'; letter <= 'Z'; letter++) {
        char name[2] = {letter, 0}, value[32];
        run->problem.dimension[letter - 'A'] =
            matrix_value(run->row->sizes, name, value, sizeof value) ? strtoll(value, NULL, 10) : 0;
    }
}

static bool make_array(Run *run, int index) {
    const Parameter *parameter = &run->kernel->parameters[index];
    int rank = (int)strlen(parameter->dimensions);
    int64_t extent[ARRAY_MAX_RANK];
    for (int i = 0; i < rank; i++) extent[i] = problem_dimension(&run->problem, parameter->dimensions[i]);
    char name[32];
    View view = VIEW_CONTIGUOUS;
    if (matrix_value(run->row->views, parameter->name, name, sizeof name) && !view_find(name, &view))
        return fail(run->reason, "no view is called %s", name);
    if (parameter->role != ROLE_IN && !view_may_be_output(view))
        return fail(run->reason, "%s cannot be written through a %s view", parameter->name, name);
    Placement placement = strcmp(run->row->placement, "begin") == 0 ? PLACEMENT_BEGIN : PLACEMENT_END;
    run->made[index] = array_create(&run->arrays[index], parameter_type(run, parameter), rank, extent, view, placement);
    if (!run->made[index]) return fail(run->reason, "out of memory");
    run->arguments[index] = TILE_TENSOR(&run->arrays[index].tensor);
    return true;
}

/* Indices: all in bounds, if the dimension is not empty; or mixed with hostile ones. */
static void fill_indices(const Run *run, int index, Random *random) {
    const Array *array = &run->arrays[index];
    int64_t limit = problem_dimension(&run->problem, run->kernel->parameters[index].indexes);
    double hostile = strcmp(run->row->data, "hostile") == 0 ? 0.4 : 0;
    bool ascending = run->kernel->parameters[index].ascending;
    for (int64_t i = 0; i < array->count; i++) {
        int64_t value = limit > 0 ? (int64_t)(random_next(random) % (uint64_t)limit) : 0;
        if (ascending && array->count > 1) value = (limit - 1) * i * i / ((array->count - 1) * (array->count - 1));
        if (random_unit(random) < hostile) value = random_hostile(random, array->type, limit);
        if (array->type == TYPE_F32 || array->type == TYPE_F16 || array->type == TYPE_BF16)
            value_store(array->type, array_at(array, i), (double)value); /* numbers in order */
        else
            memcpy(array_at(array, i), &value, type_bytes(array->type)); /* little-endian */
    }
}

static void fill_array(const Run *run, int index, Random *random) {
    const Parameter *parameter = &run->kernel->parameters[index];
    if (parameter->indexes) {
        fill_indices(run, index, random);
        return;
    }
    const Array *array = &run->arrays[index];
    if (array->type == TYPE_I8 || array->type == TYPE_U8) {
        double least = array->type == TYPE_I8 ? -128 : 0;
        for (int64_t i = 0; i < array->count; i++)
            value_store(array->type, array_at(array, i), (double)(random_next(random) % 256) + least);
        return;
    }
    bool special = strcmp(run->row->data, "special") == 0, wide = strcmp(run->row->data, "wide") == 0;
    bool integers = strcmp(run->row->data, "integers") == 0;
    int64_t last = array->rank > 0 ? array->extent[array->rank - 1] : 1;
    /* For reductions, about half of the lines should have finite results. */
    double wild = run->kernel->elementwise ? 0.25 : 0.5 / (double)(last + 1);
    for (int64_t i = 0; i < array->count; i++) {
        double value = 1.5 * random_normal(random);
        if (array->type == TYPE_BOOL) value = random_unit(random) < 0.5;
        if (integers) value = (double)(random_next(random) % 17) - 8;
        if (wide) value = ldexp(value, (int)(random_next(random) % 20) - 12);
        if (special && random_unit(random) < 0.06) value = random_special(random, array->type, SPECIAL_FINITE);
        if (special && parameter->special == SPECIAL_ALL && random_unit(random) < wild)
            value = random_special(random, array->type, SPECIAL_ALL);
        value_store(array->type, array_at(array, i), value);
    }
}

/* From the case, or from the sizes of the row. */
static double scalar_value(const Run *run, int index, int number) {
    const char *letter = run->kernel->parameters[index].dimensions;
    return letter ? (double)problem_dimension(&run->problem, *letter) : run->kernel->scalar[number];
}

static void make_scalar(Run *run, int index, double value) {
    Role role = run->kernel->parameters[index].role;
    run->arguments[index] = role == ROLE_NUMBER    ? TILE_NUMBER(value)
                            : role == ROLE_INTEGER ? TILE_INTEGER((int64_t)value)
                                                   : TILE_TRUTH(value != 0);
}

static Expectation expectation(const Run *run, int number) {
    return number == 0 ? (Expectation){run->problem.expected, run->problem.slack} : run->problem.further[number - 1];
}

static bool make_expectations(Run *run) {
    for (int i = 0; i < run->output_count; i++) {
        size_t count = (size_t)run->arrays[run->outputs[i]].count + 1;
        Expectation made = {calloc(count, sizeof(double)), calloc(count, sizeof(double))};
        if (i == 0) {
            run->problem.expected = made.expected;
            run->problem.slack = made.slack;
        } else {
            run->problem.further[i - 1] = made;
        }
        if (!made.expected || !made.slack) return false;
    }
    return true;
}

/* The reference need not know which products are computed by instructions that flush. */
static void clear_subnormals(Array *array) {
    for (int64_t i = 0; array->type == TYPE_BF16 && i < array->count; i++) {
        double value = value_load(array->type, array_at(array, i));
        if (fabs(value) < 0x1p-126) value_store(array->type, array_at(array, i), copysign(0, value));
    }
}

static bool make_arguments(Run *run) {
    int inputs = 0, scalars = 0;
    Random random = random_create((uint64_t)strlen(run->row->sizes) * 131 + (uint64_t)run->row->views[2]);
    for (int i = 0; i < MAX_PARAMETERS && run->kernel->parameters[i].role != ROLE_NONE; i++) {
        Role role = run->kernel->parameters[i].role;
        run->parameter_count = i + 1;
        if (role == ROLE_NUMBER || role == ROLE_INTEGER || role == ROLE_TRUTH) {
            run->problem.scalar[scalars] = scalar_value(run, i, scalars);
            make_scalar(run, i, run->problem.scalar[scalars]);
            scalars++;
            continue;
        }
        if (!make_array(run, i)) return false;
        if (role != ROLE_OUT) fill_array(run, i, &random);
        if (row_own_words(run->row)) clear_subnormals(&run->arrays[i]);
        if (role != ROLE_IN) run->outputs[run->output_count++] = i;
        array_save(&run->arrays[i]);
        if (role == ROLE_OUT) continue;
        const Array *array = &run->arrays[i];
        double *dense = calloc((size_t)array->count + 1, sizeof *dense);
        run->problem.input[inputs] = run->dense[inputs] = dense;
        inputs++;
        if (!dense) return fail(run->reason, "out of memory");
        for (int64_t k = 0; k < array->count; k++) dense[k] = value_load(array->type, array_at(array, k));
    }
    run->problem.type = run->type;
    return make_expectations(run) || fail(run->reason, "out of memory");
}

static void release(Run *run) {
    for (int i = 0; i < MAX_PARAMETERS; i++)
        if (run->made[i]) array_destroy(&run->arrays[i]);
    for (int i = 0; i < MAX_INPUTS; i++) free(run->dense[i]);
    for (int i = 0; i < MAX_OUTPUTS; i++) {
        free(expectation(run, i).expected);
        free(expectation(run, i).slack);
    }
}

/* ---- compiling and launching ---- */

bool session_can_run(Session *session, const Row *row, char *reason) {
    TileTargetInfo info;
    char name[32];
    const char *why;
    if (row_is_emulated(row)) return true;
    if (row_is_foreign(row)) {
        if (!session->guest) session->guest = guest_create(&why);
        return session->guest || fail(reason, "%s cannot run here: %s", row->target, why);
    }
    row_target_name(row, name, sizeof name);
    for (size_t i = 0; tile_target_at(i, &info); i++)
        if (strcmp(info.name, name) == 0)
            return info.usable || fail(reason, "%s cannot run here: %s", info.name, info.why_not);
    return true;
}

bool session_has_to_run(const Row *row) { return row_is_foreign(row) && guest_is_required(); }

/* "BM=1 BN=2" as settings, appended to those of the case. `text` is modified. */
static size_t collect_settings(const Case *kernel, char *text, TileSetting *settings, size_t capacity) {
    size_t count = 0;
    for (int i = 0; i < MAX_SETTINGS && kernel->settings[i].name; i++) settings[count++] = kernel->settings[i];
    for (char *rest = text, *item; (item = strsep(&rest, " ")) && count < capacity;) {
        char *value = strchr(item, '=');
        if (!value) continue;
        *value = 0;
        settings[count++] = (TileSetting){item, value + 1};
    }
    return count;
}

static void source_path(const Session *session, const Row *row, char *path, size_t size) {
    snprintf(path, size, "%s/%.*s.tile", session->stdlib, (int)strcspn(row->kernel, ":"), row->kernel);
}

/* The part of the name between file and variant. */
static void kernel_name(const Row *row, char *name, size_t size) {
    const char *after = strchr(row->kernel, ':') + 1;
    snprintf(name, size, "%.*s", (int)strcspn(after, "/"), after);
}

static TileLibrary *compile_with(Session *session, const Run *run, uint32_t flags) {
    const Row *row = run->row;
    char tune[128], path[4096], target[32];
    TileSetting settings[ALL_SETTINGS];
    row_target_name(row, target, sizeof target);
    snprintf(tune, sizeof tune, "%s", row->tune);
    source_path(session, row, path, sizeof path);
    TileCompileOptions options = {
        .struct_size = sizeof options,
        .target = target,
        .settings = settings,
        .setting_count = collect_settings(run->kernel, tune, settings, ALL_SETTINGS),
        .flags = flags,
    };
    TileLibrary *library = NULL;
    TileReport *report = NULL;
    tile_status status = tile_compile_file(session->compiler, path, &options, &library, &report);
    if (status != TILE_OK)
        fail(run->reason, "does not compile (%s): %s", tile_status_text(status),
             report ? tile_report_text(report, false) : "no report");
    tile_report_destroy(report);
    if (status != TILE_OK || grant_to_library(library, session->grant)) return status == TILE_OK ? library : NULL;
    tile_library_destroy(library);
    return NULL;
}

void session_divide(Session *session, bool divide) { session->whole = !divide; }

static TileLibrary *compile(Session *session, const Run *run) {
    const Row *row = run->row;
    tile_compiler_emulate(session->compiler, row_is_foreign(row) ? guest_start(session->guest, row_vector_length(row)) : NULL,
                          row_vector_length(row) / 128);
    tile_compiler_mark_padding(session->compiler, row_is_emulated(row));
    tile_compiler_divide(session->compiler, session->whole || row->line % 2 ? 0 : 3);
    observe(&session->observing, session->compiler, row->line % 2 == 0);
    return compile_with(session, run, row_is_emulated(row) ? TILE_COMPILE_EMULATE : 0);
}

/* From the session's cache; NULL, with the reason, if it cannot be compiled. Several are kept, since rows of a
 * configuration alternate between targets. */
static TileLibrary *open_library(Session *session, const Run *run) {
    char key[sizeof session->opened[0].key];
    snprintf(key, sizeof key, "%s %s %s", run->row->kernel, run->row->target, run->row->tune);
    for (size_t i = 0; i < MAX_OPENED; i++)
        if (session->opened[i].library && strcmp(key, session->opened[i].key) == 0) return session->opened[i].library;
    TileLibrary *library = compile(session, run);
    if (!library) return NULL;
    size_t at = session->oldest++ % MAX_OPENED;
    tile_library_destroy(session->opened[at].library);
    session->opened[at].library = library;
    snprintf(session->opened[at].key, sizeof key, "%s", key);
    return library;
}

/* All arrays are copied to the GPU and back, with margins around them. */
static bool launch_on_device(TileKernel *kernel, const Run *run, const TileLaunchOptions *options) {
    DeviceCopy copies[MAX_PARAMETERS] = {0};
    TileArg arguments[MAX_PARAMETERS];
    const char *what = "sending an array";
    tile_status status = TILE_OK;
    for (int i = 0; i < run->parameter_count && status == TILE_OK; i++) {
        arguments[i] = run->arguments[i];
        if (!run->made[i]) continue;
        status = device_send(&copies[i], &run->arrays[i], options->error);
        arguments[i] = TILE_TENSOR(&copies[i].tensor);
    }
    if (status == TILE_OK) {
        what = "launch";
        status = tile_launch(kernel, arguments, (size_t)run->parameter_count, options);
    }
    size_t outside = 0;
    for (int i = 0; i < run->parameter_count && status == TILE_OK; i++) {
        what = "fetching an array";
        if (run->made[i]) status = device_fetch(&copies[i], &run->arrays[i], &outside, options->error);
    }
    for (int i = 0; i < run->parameter_count; i++) device_release(&copies[i]);
    if (status != TILE_OK)
        return fail(run->reason, "%s: %s: %s", what, tile_status_text(status), options->error->message);
    return outside == 0 || fail(run->reason, "%zu bytes around the arrays have changed", outside);
}

static bool launch_with(Session *session, TileLibrary *library, const Run *run) {
    char name[128];
    kernel_name(run->row, name, sizeof name);
    TileKernel *kernel;
    if (tile_library_kernel(library, name, &kernel) != TILE_OK)
        return fail(run->reason, "the library has no kernel %s", name);
    TileError error = {.message = ""};
    TileLaunchOptions options = {.struct_size = sizeof options, .error = &error};
    if (row_is_foreign(run->row)) options.threads = guest_prepare(session->guest);
    if (row_is_on_device(run->row)) return launch_on_device(kernel, run, &options);
    tile_status status = tile_launch(kernel, run->arguments, (size_t)run->parameter_count, &options);
    if (row_is_foreign(run->row) && guest_error(session->guest))
        return fail(run->reason, "%s", guest_error(session->guest));
    return status == TILE_OK || fail(run->reason, "launch: %s: %s", tile_status_text(status), error.message);
}

/* The guest loads one library at a time. */
static bool launch(Session *session, const Run *run) {
    TileLibrary *library = row_is_foreign(run->row) ? compile(session, run) : open_library(session, run);
    TileMaskedCounts before = {0};
    if (library) before = tile_library_masked(library);
    bool good = library && launch_with(session, library, run);
    if (library) {
        session->masked = tile_library_masked(library);
        session->masked.lanes -= before.lanes;
        session->masked.data -= before.data;
    }
    if (row_is_foreign(run->row)) tile_library_destroy(library);
    return good;
}

/* ---- the IR's states ---- */

/* False if it was checked before. */
static bool is_new(Session *session, const char *key) {
    for (size_t i = 0; i < session->checked_count; i++)
        if (strcmp(session->checked[i], key) == 0) return false;
    if (session->checked_count == MAX_CHECKED) return false;
    session->checked[session->checked_count] = strdup(key);
    session->checked_count += session->checked[session->checked_count] != NULL;
    return true;
}

/* Integers and bools as settings: `const` parameters need them. */
static void append_scalars(const Run *run, char *text, size_t size) {
    int scalars = 0;
    for (int i = 0; i < run->parameter_count; i++) {
        const Parameter *parameter = &run->kernel->parameters[i];
        if (parameter->role != ROLE_NUMBER && parameter->role != ROLE_INTEGER && parameter->role != ROLE_TRUTH)
            continue;
        double value = run->problem.scalar[scalars++];
        size_t used = strlen(text);
        if (parameter->role == ROLE_INTEGER)
            snprintf(text + used, size - used, " %s=%lld", parameter->name, (long long)value);
        if (parameter->role == ROLE_TRUTH)
            snprintf(text + used, size - used, " %s=%s", parameter->name, value != 0 ? "true" : "false");
    }
}

/* For native targets, once for each kernel and types. Sizes are the values of static dimensions. */
static bool check_states(Session *session, const Run *run) {
    const Row *row = run->row;
    char key[512], path[4096], name[128], text[512];
    char target[32];
    row_target_name(row, target, sizeof target);
    snprintf(key, sizeof key, "%s %s %s", row->kernel, row->types, target);
    bool twice = row_is_emulated(row) && !row_has_own_order(row); /* rows of a native target check the same states */
    if (twice || strcmp(target, "interp") == 0 || !is_new(session, key)) return true;
    source_path(session, row, path, sizeof path);
    kernel_name(row, name, sizeof name);
    char value[16];
    bool sized = matrix_value(row->sizes, "I", value, sizeof value); /* else it is a type */
    snprintf(text, sizeof text, "T=%s U=%s %s%s %s %s", type_name(run->type), type_name(run->output_type), sized ? "" : "I=",
             sized ? "" : type_name(run->output_type), row->sizes, row->tune);
    append_scalars(run, text, sizeof text);
    TileSetting settings[ALL_SETTINGS + 24];
    size_t count = collect_settings(run->kernel, text, settings, ALL_SETTINGS + 24);
    for (int specialised = 0; specialised < 2; specialised++)
        if (!states_check(session->compiler, path, name, target, settings, count, specialised, run->reason, MAX_REASON))
            return false;
    return true;
}

/* ---- decisions ---- */

/* With passes inserted between all others, or without. Nothing is run, so this works for any target. */
static bool explain(Session *session, const Run *run, bool shake, TileArena *arena, Decisions *decisions) {
    char name[128];
    TileExplanation explanation = {.arena = arena};
    TileError error = {.message = ""};
    TileLaunchOptions options = {.struct_size = sizeof options, .error = &error};
    TileKernel *kernel = NULL;
    kernel_name(run->row, name, sizeof name);
    tile_compiler_emulate(session->compiler, NULL, 0);
    tile_compiler_mark_padding(session->compiler, false);
    decisions_shake(session->compiler, shake);
    decisions_tidy(session->compiler, !row_has_own_order(run->row)); /* for CPUs, whose loops are counted */
    TileLibrary *library = compile_with(session, run, TILE_COMPILE_EMULATE);
    tile_status status = library ? tile_library_kernel(library, name, &kernel) : TILE_INVALID_SOURCE;
    tile_compiler_explain(session->compiler, &explanation);
    if (status == TILE_OK) status = tile_prepare(kernel, run->arguments, (size_t)run->parameter_count, &options);
    tile_compiler_explain(session->compiler, NULL);
    if (status == TILE_OK && explanation.done) *decisions = decisions_of(&explanation);
    tile_library_destroy(library);
    decisions_shake(session->compiler, true);
    decisions_tidy(session->compiler, false);
    if (library && status != TILE_OK) fail(run->reason, "explaining: %s: %s", tile_status_text(status), error.message);
    return status == TILE_OK;
}

/* For emulated targets: native code is the result of the same passes. For SVE, only results are checked. */
static bool check_decisions(Session *session, const Run *run) {
    char target[32];
    row_target_name(run->row, target, sizeof target);
    if (!row_is_emulated(run->row) || row_vector_length(run->row)) return true;
    TileArena *arena = tile_arena_create(NULL);
    Decisions plain = {0}, shaken = {0};
    bool good = arena && explain(session, run, false, arena, &plain) && explain(session, run, true, arena, &shaken);
    if (good) decisions_add_spills(&plain, &shaken, arena);
    unsigned kinds = good ? decisions_compare(&plain, &shaken) : 0;
    unsigned listed = reviewed_kinds(session->reviewed, run->row, target);
    reviewed_note(session->reviewed, run->row, target, kinds);
    if (kinds & ~listed) {
        unsigned kind = 0;
        while (!((kinds & ~listed) >> kind & 1)) kind++;
        decisions_describe(&plain, &shaken, kind, run->reason, MAX_REASON);
        good = false;
    }
    tile_arena_destroy(arena);
    return good;
}

/* ---- judging ---- */

static bool acceptable(Type type, double expected, double slack, double got) {
    if (slack < 0) return true;
    if (isnan(expected)) return isnan(got);
    if (isnan(got)) return false;
    if (isinf(expected) || isnan(slack)) return got == value_round(type, expected);
    return value_round(type, expected - slack) <= got && got <= value_round(type, expected + slack);
}

static bool check_memory(const Run *run) {
    for (int i = 0; i < run->parameter_count; i++) {
        if (!run->made[i]) continue;
        size_t changed = array_check(&run->arrays[i], run->kernel->parameters[i].role != ROLE_IN);
        if (changed > 0)
            return fail(run->reason, "%zu bytes of %s that are not its to write have changed", changed,
                        run->kernel->parameters[i].name);
    }
    return true;
}

static bool check_output(const Run *run, int number) {
    const Array *array = &run->arrays[run->outputs[number]];
    Expectation right = expectation(run, number);
    int64_t wrong = 0, first = 0;
    /* Thousands of sums that are 0 below 2**-126; of 16 bits on all targets, where fast forms of functions are (docs/math.md). */
    bool flushes = row_own_words(run->row) || type_bytes(array->type) <= 2;
    double flushed = flushes && array->type != TYPE_BOOL ? 0x1p-112 : 0; /* which is true */
    for (int64_t i = 0; i < array->count; i++) {
        double got = value_load(array->type, array_at(array, i));
        if (acceptable(array->type, right.expected[i], right.slack[i] + flushed, got)) continue;
        if (wrong++ == 0) first = i;
    }
    if (wrong == 0) return true;
    return fail(
        run->reason, "%lld of %lld elements of %s are wrong; element %lld is %.9g instead of %.9g (tolerance %.3g)",
        (long long)wrong, (long long)array->count, run->kernel->parameters[run->outputs[number]].name, (long long)first,
        value_load(array->type, array_at(array, first)), right.expected[first], right.slack[first]);
}

static bool check_values(const Run *run) {
    for (int i = 0; i < run->output_count; i++)
        if (!check_output(run, i)) return false;
    return true;
}

/* The bits of all outputs, concatenated, 0 where any number is correct; NULL if out of memory. */
static uint64_t *output_bits(const Run *run, int64_t *count) {
    *count = 0;
    for (int i = 0; i < run->output_count; i++) *count += run->arrays[run->outputs[i]].count;
    uint64_t *bits = calloc((size_t)*count + 1, sizeof *bits);
    for (int64_t i = 0, at = 0; i < run->output_count && bits; i++) {
        const Array *array = &run->arrays[run->outputs[i]];
        for (int64_t k = 0; k < array->count; k++, at++)
            if (!(expectation(run, (int)i).slack[k] < 0)) bits[at] = value_bits(array->type, array_at(array, k));
    }
    return bits;
}

/* The order of every computation is specified, so all targets must have the same bits (all NaNs are equal). */
static bool check_bits(Session *session, const Run *run) {
    const Row *row = run->row;
    char key[sizeof session->bits_key];
    snprintf(key, sizeof key, "%s %s %s %s %s %s %s %s", row->kernel, row->types, row->sizes, row->views, row->data,
             row->placement, row->tune, row_own_words(row) ? row_own_words(row) : "");
    int64_t count;
    uint64_t *bits = output_bits(run, &count);
    if (!bits) return fail(run->reason, "out of memory");
    if (strcmp(key, session->bits_key) == 0 && session->bit_count == count) {
        int64_t i = 0;
        while (i < count && bits[i] == session->bits[i]) i++;
        if (i < count)
            fail(run->reason, "element %lld of the outputs differs from target %s: bits %#llx, there %#llx",
                 (long long)i, session->bits_target, (unsigned long long)bits[i], (unsigned long long)session->bits[i]);
        free(bits);
        return i == count;
    }
    free(session->bits);
    session->bits = bits;
    session->bit_count = count;
    snprintf(session->bits_key, sizeof session->bits_key, "%s", key);
    snprintf(session->bits_target, sizeof session->bits_target, "%s", row->target);
    return true;
}

TileMaskedCounts session_masked(const Session *session) { return session->masked; }

bool session_run(Session *session, const Row *row, char *reason) {
    Run run = {.row = row, .kernel = case_find(row->kernel), .reason = reason};
    reason[0] = 0;
    if (!run.kernel) return fail(reason, "no such kernel in tests/kernels/cases.c");
    parse_sizes(&run);
    bool truth = session->grant == GRANT_TRUTH; /* other runs check the same states */
    bool good =
        parse_types(&run) && make_arguments(&run) && (!truth || check_states(session, &run)) && launch(session, &run);
    if (good) {
        run.problem.on_tensor_cores = row_has_own_order(run.row);
        run.kernel->reference(&run.problem);
        good = check_memory(&run) && check_values(&run) && (row_has_own_order(row) || check_bits(session, &run)) &&
               (!session->reviewed || check_decisions(session, &run));
    }
    release(&run);
    return good;
}
