/* tilec run: compiles a kernel, runs it on data, writes the results. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "driver/compile/backend.h"
#include "driver/compile/compile.h"
#include "driver/compile/compiler.h"
#include "driver/compile/choice.h"
#include "lang/scalar/scalar.h"
#include "tools/npy.h"
#include "tools/program.h"
#include "tools/unfinished.h"

typedef struct RunOptions {
    bool check, scheduled;
    long repeat;
    uint64_t seed;
    TILE_LIST(TileNamedValue) outputs; /* --out NAME=FILE */
} RunOptions;

/* ---- options ---- */

static bool read_count(const char *text, long least, long *value) {
    char *end;
    errno = 0;
    *value = strtol(text, &end, 10);
    return end != text && !*end && !errno && *value >= least;
}

static int add_output(TileSession *session, RunOptions *options, char *word) {
    char *equals = word ? strchr(word, '=') : NULL;
    if (!equals) return tile_session_fail(session, TILE_INVALID_ARGUMENT, "--out needs NAME=FILE");
    *equals = 0;
    tile_list_push(session->arena, &options->outputs, (TileNamedValue){word, equals + 1});
    return 0;
}

/* The value of `--name=N` or `--name N`, which takes the next word; NULL: another word. */
static const char *value_of(const char *name, char **words, int count, int *i) {
    const char *value = tile_option_value(words[*i], name);
    if (value || strcmp(words[*i], name) != 0 || *i + 1 >= count) return value;
    return words[++*i];
}

static int read_seed(TileSession *session, const char *option, const char *text, uint64_t *seed) {
    char *end;
    errno = 0;
    *seed = strtoull(text, &end, 0);
    if (end != text && !*end && !errno) return 0;
    return tile_session_fail(session, TILE_INVALID_ARGUMENT, "%s needs a number of 64 bits", option);
}

static int read_option(TileSession *session, TileProgram *program, RunOptions *options, char **words, int count,
                       int *i) {
    const char *value;
    bool taken = true;
    if (strcmp(words[*i], "--check") == 0) {
        options->check = true;
    } else if (strcmp(words[*i], "--out") == 0) {
        char *word = *i + 1 < count ? words[++*i] : NULL;
        return add_output(session, options, word);
    } else if ((value = value_of("--seed", words, count, i))) {
        return read_seed(session, "--seed", value, &options->seed);
    } else if ((value = value_of("--schedule-seed", words, count, i))) {
        options->scheduled = true;
        return read_seed(session, "--schedule-seed", value, &program->schedule_seed);
    } else if (strcmp(words[*i], "--mark-padding") == 0) {
        program->mark_padding = true;
    } else if ((value = value_of("--repeat", words, count, i))) {
        if (!read_count(value, 1, &options->repeat))
            return tile_session_fail(session, TILE_INVALID_ARGUMENT, "--repeat needs a positive number");
    } else {
        int failed = tile_program_word(program, words[*i], &taken);
        if (failed) return failed;
    }
    return taken ? 0 : tile_session_unknown(session, words[*i]);
}

static int read_options(TileSession *session, TileProgram *program, RunOptions *options, char **words, int count) {
    for (int i = 0; i < count; i++) {
        int failed = read_option(session, program, options, words, count, &i);
        if (failed) return failed;
    }
    bool executed = program->options.flags & TILE_COMPILE_EMULATE ||
                    (program->options.target && strcmp(program->options.target, "interp") == 0);
    if (options->scheduled && !executed)
        return tile_session_fail(session, TILE_INVALID_ARGUMENT,
                                 "--schedule-seed is for --emulate and --target=interp: native code has no schedule");
    if (program->mark_padding && !(program->options.flags & TILE_COMPILE_EMULATE))
        return tile_session_fail(session, TILE_INVALID_ARGUMENT, "--mark-padding is for --emulate");
    return 0;
}

/* ---- copies of what a kernel writes, for --check and --repeat ---- */

/* The same bytes at the same distance from the start of the storage, whatever the view. */
static bool copy_argument(TileProgramArgument *argument, TileArray *copy, TileText *error) {
    const TileArray *base = &argument->base;
    if (tile_array_create(copy, TILE_U8, 1, &(int64_t){(int64_t)base->storage_size}, error) != TILE_OK) return false;
    memcpy(copy->data, base->storage, base->storage_size);
    return true;
}

/* A copy of the program whose written arguments have memory of their own. */
static bool make_twin(const TileProgram *program, TileProgramArgument *twin, TileArray *copies, TileText *error) {
    for (size_t i = 0; i < program->argument_count; i++) {
        twin[i] = program->arguments[i];
        if (twin[i].info.kind == TILE_PARAMETER_SCALAR) continue;
        TileArray view = twin[i].view;
        if (tile_argument_is_written(&twin[i])) {
            if (!copy_argument(&twin[i], &copies[i], error)) return false;
            view.data = copies[i].data + (view.data - (char *)twin[i].base.storage);
            twin[i].base.storage = copies[i].storage;
        }
        tile_program_bind(&twin[i], &view);
    }
    return true;
}

static void release_copies(TileArray *copies, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (copies[i].storage) tile_array_release(&copies[i]);
}

/* Runs and waits. */
static tile_status run_once(const TileProgram *program, TileKernel *kernel, const TileProgramArgument *arguments,
                            TileError *error, TileReport **report) {
    size_t count = program->argument_count;
    TileLaunchOptions options = {.struct_size = sizeof options, .error = error, .report = report};
    TileArg *args = TILE_NEW_ARRAY(program->session->arena, TileArg, count);
    for (size_t i = 0; i < count; i++) args[i] = arguments[i].arg;
    TILE_TRY(tile_launch(kernel, args, count, &options));
    return tile_kernel_is_gpu(kernel) ? tile_device_synchronize(0, NULL, error) : TILE_OK;
}

static int launch(TileProgram *program, TileKernel *kernel, TileProgramArgument *arguments) {
    TileError error = {0};
    TileReport *report = NULL;
    bool gpu = tile_kernel_is_gpu(kernel);
    tile_status status = gpu ? tile_program_send(program, arguments, &error) : TILE_OK;
    if (status == TILE_OK) status = run_once(program, kernel, arguments, &error, &report);
    if (status == TILE_OK && gpu) status = tile_program_fetch(program, arguments, &error);
    tile_program_forget(program, arguments);
    if (status == TILE_OK) return 0;
    return tile_program_refuse(program, status, &error, report);
}

/* ---- --check ---- */

typedef struct Comparison {
    const TileArray *expected;
    const char *other; /* first byte of the other storage */
    const char *storage;
    const double *slack; /* tolerance of each element; NULL: 0 */
    int64_t different, beyond, unknown;
    double largest; /* difference */
    double allowed; /* of those within tolerance, the largest slack */
    double worst;   /* of those beyond tolerance, the slack of the one that differs most */
} Comparison;

static uint64_t read_bits(const char *element, TileScalar scalar) {
    uint64_t bits = 0;
    memcpy(&bits, element, tile_scalar_bytes(scalar));
    return bits;
}

static void compare_element(void *state, char *element, int64_t index) {
    Comparison *c = state;
    TileScalar scalar = c->expected->scalar;
    const char *other = c->other + (element - c->storage);
    uint64_t found = read_bits(element, scalar), expected = read_bits(other, scalar);
    (void)index;
    if (found == expected) return;
    double a = tile_scalar_to_double(scalar, found), b = tile_scalar_to_double(scalar, expected);
    if (isnan(a) && isnan(b)) return;
    double difference = isnan(a - b) ? (double)INFINITY : fabs(a - b);
    double slack = c->slack ? c->slack[(element - c->storage) / tile_scalar_bytes(scalar)] : 0;
    bool within = c->slack && difference <= slack, first = !c->beyond;
    c->different++;
    c->beyond += !within;
    c->unknown += within && isinf(slack);
    if (within && !isinf(slack) && slack > c->allowed) c->allowed = slack;
    if (!within && (first || difference > c->largest)) c->worst = slack;
    if (within ? !c->beyond && difference > c->largest : first || difference > c->largest) c->largest = difference;
}

/* Compares results whose sums are added in another order than the reference's. */
static int report_order(TileProgram *program, const char *name, const Comparison *c) {
    if (c->beyond)
        return tile_session_fail(program->session, TILE_INTERNAL,
                                 "%s: %lld elements differ from the reference interpreter's by more than another order of "
                                 "sums can explain: by %g where that is at most %g",
                                 name, (long long)c->beyond, c->largest, c->worst);
    if (program->session->quiet) return 0;
    printf("%s: %lld elements differ from the reference interpreter's, by at most %g", name, (long long)c->different,
           c->largest);
    if (c->different > c->unknown)
        printf("; each by no more than its sums in another order can, which is at most %g", c->allowed);
    if (c->unknown)
        printf("; for %lld of them no bound is known, since rounding decides what is chosen or added",
               (long long)c->unknown);
    putchar('\n');
    return 0;
}

static int compare_results(TileProgram *program, const TileArray *copies, const TileSlack *slack) {
    int failed = 0;
    size_t next = 0;
    for (size_t i = 0; i < program->argument_count; i++) {
        TileProgramArgument *argument = &program->arguments[i];
        if (!tile_argument_is_written(argument)) continue;
        Comparison c = {.expected = &argument->view, .other = copies[i].data, .storage = argument->base.storage};
        if (slack) c.slack = slack->items[next++].slack;
        tile_array_visit(&argument->view, compare_element, &c);
        if (!c.different) {
            if (!program->session->quiet)
                printf("%s: equal to the reference interpreter's, bit for bit\n", argument->info.name);
            continue;
        }
        if (slack) {
            int wrong = report_order(program, argument->info.name, &c);
            if (wrong) failed = wrong;
            continue;
        }
        failed = tile_session_fail(program->session, TILE_INTERNAL,
                                   "%s: %lld elements differ from the reference interpreter's, by at most %g",
                                   argument->info.name, (long long)c.different, c.largest);
    }
    return failed;
}

/* Constants of a tuning file are the reference's too: sums depend on the sizes of tiles. A GPU's are for clauses that
 * the reference does not have. */
static void add_tuned(TileProgram *program, TileCompileOptions *options) {
    const TileTunedRow *row =
        tile_kernel_is_gpu(program->kernel)
            ? NULL
            : tile_chosen_for(program->library, program->kernel, tile_program_args(program), program->argument_count);
    TileArena *arena = program->session->arena;
    if (!row) return;
    TileSetting *settings = TILE_NEW_ARRAY(arena, TileSetting, options->setting_count + row->constant_count);
    if (options->setting_count) memcpy(settings, options->settings, options->setting_count * sizeof *settings);
    for (size_t i = 0; i < row->constant_count; i++)
        settings[options->setting_count++] = (TileSetting){
            row->constants[i].name, tile_arena_format(arena, "%lld", (long long)row->constants[i].integer)};
    options->settings = settings;
}

/* The family of the target, if that has an order of its own; else NULL. */
static const TileBackend *adds_otherwise(const TileProgram *program) {
    const TileTarget *target;
    TileText why = {.arena = program->session->arena};
    bool known = tile_target_choose(program->options.target, NULL, &target, &why) == TILE_OK;
    return known && target && target->own_order ? tile_backend_of(target) : NULL;
}

/* The slack, for targets with orders of their own. */
static const TileSlack *make_slack(const TileProgram *program, const TileArray *copies) {
    TileArena *arena = program->session->arena;
    TileSlack *slack = TILE_NEW(arena, TileSlack);
    TileSlackMemory *items = TILE_NEW_ARRAY(arena, TileSlackMemory, program->argument_count);
    for (size_t i = 0; i < program->argument_count; i++) {
        const TileProgramArgument *argument = &program->arguments[i];
        if (!tile_argument_is_written(argument)) continue;
        size_t element = (size_t)tile_scalar_bytes(argument->view.scalar), bytes = argument->base.storage_size;
        double *values = TILE_NEW_ARRAY(arena, double, bytes / element + 1);
        items[slack->count++] = (TileSlackMemory){copies[i].data, bytes, element, values};
    }
    slack->items = items;
    slack->family = adds_otherwise(program)->family->name;
    slack->has_tf32 = adds_otherwise(program)->has_tf32;
    return slack;
}

static int run_reference(TileProgram *program, TileProgramArgument *twin, const TileSlack *slack) {
    TileCompileOptions options = program->options;
    add_tuned(program, &options);
    options.flags &= ~(uint32_t)TILE_COMPILE_EMULATE;
    tile_compiler_slack(program->compiler, slack);
    TileReport *report = NULL;
    TileLibrary *library = NULL;
    TileKernel *kernel = NULL;
    options.target = "interp";
    tile_status status = tile_compile_file(program->compiler, program->path, &options, &library, &report);
    if (status == TILE_OK) status = tile_library_kernel(library, tile_kernel_name(program->kernel), &kernel);
    if (status != TILE_OK) return tile_session_report(program->session, status, report);
    tile_report_destroy(report);
    int failed = launch(program, kernel, twin);
    tile_library_destroy(library);
    return failed;
}

/* ---- --repeat ---- */

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int time_repeats(TileProgram *program, TileProgramArgument *twin, long repeat) {
    double *seconds = TILE_NEW_ARRAY(program->session->arena, double, repeat);
    TileError error = {0};
    TileReport *report = NULL;
    tile_status status = TILE_OK;
    if (tile_kernel_is_gpu(program->kernel)) status = tile_program_send(program, twin, &error);
    for (long i = 0; i < repeat && status == TILE_OK; i++) {
        double start = now();
        status = run_once(program, program->kernel, twin, &error, &report);
        seconds[i] = now() - start;
    }
    tile_program_forget(program, twin);
    if (status != TILE_OK) return tile_program_refuse(program, status, &error, report);
    qsort(seconds, (size_t)repeat, sizeof *seconds, compare_doubles);
    printf("median %.3f us, least %.3f us of %ld runs\n", 1e6 * seconds[repeat / 2], 1e6 * seconds[0], repeat);
    return 0;
}

/* ---- results ---- */

static const char *output_path(const TileProgramArgument *argument, const RunOptions *options) {
    for (size_t i = 0; i < options->outputs.count; i++)
        if (strcmp(options->outputs.items[i].name, argument->info.name) == 0)
            return strcmp(options->outputs.items[i].value, "@") == 0 ? NULL : options->outputs.items[i].value;
    return argument->source.kind == TILE_SOURCE_FILE ? argument->source.path : NULL;
}

/* All results are written under temporary names before the first one gets its name. An inout argument that is a
 * view of a file is written as the whole file. */
static int write_results(TileProgram *program, const RunOptions *options) {
    TileText error = {.arena = program->session->arena};
    TileReplacement *writers = TILE_NEW_ARRAY(program->session->arena, TileReplacement, program->argument_count);
    tile_status status = TILE_OK;
    for (size_t i = 0; i < program->argument_count && status == TILE_OK; i++) {
        TileProgramArgument *argument = &program->arguments[i];
        const char *path = tile_argument_is_written(argument) ? output_path(argument, options) : NULL;
        if (path) status = tile_npy_write(&writers[i], path, &argument->base, &error);
    }
    tile_unfinished_hold(true);
    for (size_t i = 0; i < program->argument_count; i++) {
        if (status == TILE_OK && writers[i].path) status = tile_replacement_commit(&writers[i], &error);
        if (status != TILE_OK) tile_replacement_abandon(&writers[i]);
    }
    tile_unfinished_hold(false);
    return status == TILE_OK ? 0 : tile_session_fail(program->session, status, "%s", tile_text_get(&error));
}

static void print_element(void *state, char *element, int64_t index) {
    const TileArray *array = state;
    uint64_t bits = read_bits(element, array->scalar);
    if (index) putchar(' ');
    double number = tile_scalar_to_double(array->scalar, bits);
    if (isnan(number))
        printf("nan"); /* the sign of a NaN is not part of a result */
    else if (tile_scalar_is_float(array->scalar))
        printf("%.9g", number);
    else if (array->scalar == TILE_U64)
        printf("%llu", (unsigned long long)bits);
    else if (array->scalar == TILE_I64)
        printf("%lld", (long long)bits);
    else
        printf("%.0f", number);
}

enum { SHOWN_ELEMENTS = 8 };

/* One line for each result: its type, and its elements if they are few. */
static void show_results(TileProgram *program, const RunOptions *options) {
    for (size_t i = 0; i < program->argument_count && !program->session->quiet; i++) {
        TileProgramArgument *argument = &program->arguments[i];
        if (!tile_argument_is_written(argument)) continue;
        TileText text = {.arena = program->session->arena};
        tile_array_describe(&text, &argument->view);
        const char *path = output_path(argument, options);
        printf("%s: %s%s%s", argument->info.name, tile_text_get(&text), path ? " -> " : "", path ? path : "");
        if (tile_array_count(argument->view.scalar, argument->view.rank, argument->view.extent) <= SHOWN_ELEMENTS) {
            printf(" = ");
            tile_array_visit(&argument->view, print_element, &argument->view);
        }
        putchar('\n');
    }
}

static void show_times(const TileProgram *program, double run_seconds) {
    TileStepTimes times = tile_library_times(program->library);
    double total = 0;
    for (int step = 0; step < TILE_STEP_COUNT; step++) {
        fprintf(stderr, "%-8s %8.3f ms\n", tile_step_name((TileStep)step), 1e3 * times.seconds[step]);
        total += times.seconds[step];
    }
    fprintf(stderr, "%-8s %8.3f ms\n%-8s %8.3f ms, compiling included\n", "compile", 1e3 * total, "run",
            1e3 * run_seconds);
}

/* ---- the command ---- */

static int check_outputs(TileProgram *program, const RunOptions *options) {
    for (size_t o = 0; o < options->outputs.count; o++) {
        const char *name = options->outputs.items[o].name;
        bool found = false;
        for (size_t i = 0; i < program->argument_count; i++)
            if (strcmp(program->arguments[i].info.name, name) == 0)
                found = tile_argument_is_written(&program->arguments[i]);
        if (!found)
            return tile_session_fail(program->session, TILE_INVALID_ARGUMENT,
                                     "--out: '%s' is no result of the kernel\n  %s", name,
                                     tile_kernel_signature(program->kernel));
    }
    return 0;
}

/* Refuses two results in one file: only the last would be left. */
static int check_paths(TileProgram *program, const RunOptions *options) {
    for (size_t i = 0; i < program->argument_count; i++) {
        const TileProgramArgument *one = &program->arguments[i];
        const char *path = tile_argument_is_written(one) ? output_path(one, options) : NULL;
        for (size_t k = 0; path && k < i; k++) {
            const TileProgramArgument *other = &program->arguments[k];
            const char *taken = tile_argument_is_written(other) ? output_path(other, options) : NULL;
            struct stat info;
            if (!taken || strcmp(path, taken) != 0 || (stat(path, &info) == 0 && !S_ISREG(info.st_mode))) continue;
            return tile_session_fail(program->session, TILE_INVALID_ARGUMENT, "%s and %s are both written to %s",
                                     other->info.name, one->info.name, path);
        }
    }
    return 0;
}

static int run_loaded(TileProgram *program, const RunOptions *options) {
    size_t count = program->argument_count;
    TileText error = {.arena = program->session->arena};
    TileProgramArgument *twin = TILE_NEW_ARRAY(program->session->arena, TileProgramArgument, count);
    TileArray *copies = TILE_NEW_ARRAY(program->session->arena, TileArray, count);
    if ((options->check || options->repeat) && !make_twin(program, twin, copies, &error)) {
        release_copies(copies, count);
        return tile_session_fail(program->session, TILE_OUT_OF_MEMORY, "%s", tile_text_get(&error));
    }
    double start = now();
    int failed = launch(program, program->kernel, program->arguments);
    double seconds = now() - start;
    const TileSlack *slack = options->check && adds_otherwise(program) ? make_slack(program, copies) : NULL;
    if (!failed && options->check) failed = run_reference(program, twin, slack);
    if (!failed && options->check) failed = compare_results(program, copies, slack);
    if (!failed && options->repeat) failed = time_repeats(program, twin, options->repeat);
    release_copies(copies, count);
    if (!failed) failed = write_results(program, options);
    if (failed) return failed;
    show_results(program, options);
    if (program->session->verbose) show_times(program, seconds);
    return tile_session_finish(program->session);
}

int tile_command_run(TileSession *session, char **words, int count) {
    TileProgram program = {.session = session};
    RunOptions options = {0};
    int failed = read_options(session, &program, &options, words, count);
    if (!failed) failed = tile_program_open(&program, session);
    if (!failed) failed = check_outputs(&program, &options);
    if (!failed) failed = tile_program_load(&program, options.seed);
    if (!failed) failed = check_paths(&program, &options);
    if (!failed) failed = run_loaded(&program, &options);
    tile_program_close(&program);
    return failed;
}
