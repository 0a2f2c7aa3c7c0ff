/* tilec bench: the speed of a kernel, compared with another kernel or target, and with the machine's limits. */
#include "tools/bench.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/limits.h"
#include "tools/measure.h"
#include "tools/replace.h"

typedef struct BenchOptions {
    const char *against, *plot;
    const char *target; /* as given; NULL for cpu */
    const char *file;   /* FILE[:KERNEL] as given */
    double seconds;     /* for one size */
    uint64_t seed;
    bool json;
    TILE_LIST(const char *) words;  /* words for the program, without FILE and --target */
    TILE_LIST(const char *) values; /* of the swept name */
    const char *swept;
} BenchOptions;

/* ---- words ---- */

/* `1024,4096`: numbers separated by commas. */
static bool is_sweep(const char *value) {
    bool several = false;
    for (const char *c = value; *c; c++) {
        if (*c == ',')
            several = true;
        else if (!isdigit((unsigned char)*c))
            return false;
        if (*c == ',' && (c == value || c[-1] == ',' || !c[1])) return false;
    }
    return several;
}

static int read_sweep(TileSession *session, BenchOptions *options, const char *name, const char *values) {
    if (options->swept)
        return tile_session_fail(session, TILE_INVALID_ARGUMENT, "%s and %s both have several values; sweep one",
                                 options->swept, name);
    options->swept = name;
    while (*values) {
        size_t length = strcspn(values, ",");
        tile_list_push(session->arena, &options->values, tile_arena_string(session->arena, values, length));
        values += length + (values[length] == ',');
    }
    return 0;
}

static int read_seconds(TileSession *session, BenchOptions *options, const char *text) {
    char *end;
    options->seconds = strtod(text, &end);
    if (end != text && !*end && options->seconds > 0 && options->seconds <= 3600) return 0;
    return tile_session_fail(session, TILE_INVALID_ARGUMENT, "--seconds needs a number above 0, up to 3600");
}

static int read_seed(TileSession *session, BenchOptions *options, const char *text) {
    char *end;
    options->seed = strtoull(text, &end, 0);
    if (end != text && !*end) return 0;
    return tile_session_fail(session, TILE_INVALID_ARGUMENT, "--seed needs a number of 64 bits");
}

static int read_word(TileSession *session, BenchOptions *options, char *word) {
    const char *against = tile_option_value(word, "--against"), *plot = tile_option_value(word, "--plot");
    const char *seconds = tile_option_value(word, "--seconds"), *seed = tile_option_value(word, "--seed");
    const char *format = tile_option_value(word, "--format"), *target = tile_option_value(word, "--target");
    const char *equals = strchr(word, '=');
    if (seconds) return read_seconds(session, options, seconds);
    if (seed) return read_seed(session, options, seed);
    if (format && strcmp(format, "json") != 0 && strcmp(format, "text") != 0)
        return tile_session_unknown(session, word);
    if (against)
        options->against = against;
    else if (plot)
        options->plot = plot;
    else if (target)
        options->target = target;
    else if (format)
        options->json = *format == 'j';
    else if (*word != '-' && equals && is_sweep(equals + 1))
        return read_sweep(session, options, tile_arena_string(session->arena, word, (size_t)(equals - word)),
                          equals + 1);
    else if (*word != '-' && !equals && !options->file)
        options->file = word;
    else
        tile_list_push(session->arena, &options->words, word);
    return 0;
}

/* The word with the name replaced by `value`, wherever it is a whole identifier after the first bracket. */
static char *replace_name(TileArena *arena, const char *word, const char *name, const char *value, bool *replaced) {
    TileText text = {.arena = arena};
    size_t length = strlen(name);
    const char *c = word, *bracket = strchr(word, '[');
    while (*c) {
        size_t letters = 0;
        while (isalnum((unsigned char)c[letters]) || c[letters] == '_') letters++;
        if (bracket && c > bracket && letters == length && memcmp(c, name, length) == 0) {
            tile_text_add(&text, value);
            *replaced = true;
        } else {
            tile_text_add_bytes(&text, c, letters ? letters : 1);
        }
        c += letters ? letters : 1;
    }
    return (char *)tile_text_get(&text);
}

typedef TILE_LIST(char *) Words;

/* NAME=value of a name that other words have in brackets is not passed to the program. */
static void put_name(TileArena *arena, Words *words, const char *name, const char *value) {
    bool used = false;
    for (size_t i = 0; i < words->count; i++)
        words->items[i] = replace_name(arena, words->items[i], name, value, &used);
    if (!used) tile_list_push(arena, words, tile_arena_format(arena, "%s=%s", name, value));
}

static bool is_size(const char *word) {
    const char *equals = strchr(word, '=');
    return *word != '-' && equals && equals[1] && strspn(equals + 1, "0123456789") == strlen(equals + 1);
}

static Words make_words(TileArena *arena, const BenchOptions *options, const char *value) {
    Words words = {0};
    for (size_t i = 0; i < options->words.count; i++)
        if (!is_size(options->words.items[i]))
            tile_list_push(arena, &words, tile_arena_format(arena, "%s", options->words.items[i]));
    for (size_t i = 0; i < options->words.count; i++) {
        const char *word = options->words.items[i], *equals = strchr(word, '=');
        if (is_size(word)) put_name(arena, &words, tile_arena_string(arena, word, (size_t)(equals - word)), equals + 1);
    }
    if (options->swept) put_name(arena, &words, options->swept, value);
    return words;
}

/* ---- one kernel ---- */

typedef struct Subject {
    TileProgram program;
    TileArg *args;
    bool opened;
    TileError error;
    TileReport *report;
    tile_status status;
} Subject;

/* Launches, and waits. */
static bool run_subject(void *state) {
    Subject *subject = state;
    const TileProgram *program = &subject->program;
    TileLaunchOptions options = {.struct_size = sizeof options, .error = &subject->error, .report = &subject->report};
    subject->status = tile_launch(program->kernel, subject->args, program->argument_count, &options);
    if (subject->status == TILE_OK && tile_kernel_is_gpu(program->kernel))
        subject->status = tile_device_synchronize(0, NULL, &subject->error);
    return subject->status == TILE_OK;
}

static int refuse(Subject *subject) {
    TileReport *report = subject->report;
    subject->report = NULL;
    return tile_program_refuse(&subject->program, subject->status, &subject->error, report);
}

static int open_subject(Subject *subject, TileSession *session, const BenchOptions *options, const char *file,
                        const char *target, const char *value) {
    TileProgram *program = &subject->program;
    TileArena *arena = session->arena;
    Words words = make_words(arena, options, value);
    bool taken;
    *subject = (Subject){.program = {.session = session}, .opened = true};
    int failed = file ? tile_program_word(program, tile_arena_format(arena, "%s", file), &taken) : 0;
    for (size_t i = 0; i < words.count && !failed; i++) {
        failed = tile_program_word(program, words.items[i], &taken);
        if (!failed && !taken) return tile_session_unknown(session, words.items[i]);
    }
    program->options.target = target;
    if (!failed) failed = tile_program_open(program, session);
    if (!failed) failed = tile_program_load(program, options->seed);
    if (failed) return failed;
    if (tile_kernel_is_gpu(program->kernel))
        subject->status = tile_program_send(program, program->arguments, &subject->error);
    if (subject->status != TILE_OK) return refuse(subject);
    subject->args = tile_program_args(program);
    return run_subject(subject) ? 0 : refuse(subject);
}

static void close_subject(Subject *subject) {
    if (!subject->opened) return;
    tile_program_forget(&subject->program, subject->program.arguments);
    tile_program_close(&subject->program);
}

static const char *describe_arguments(const TileProgram *program) {
    TileText text = {.arena = program->session->arena};
    for (size_t i = 0; i < program->argument_count; i++) {
        const TileProgramArgument *argument = &program->arguments[i];
        tile_text_format(&text, "%s%s: ", i ? ", " : "", argument->info.name);
        if (argument->info.kind == TILE_PARAMETER_TENSOR)
            tile_array_describe(&text, &argument->view);
        else
            tile_text_add(&text, argument->text);
    }
    return tile_text_get(&text);
}

/* ---- one size ---- */

enum { ROUNDS = 11 };

/* Measures alternately the kernels, a copy and, if there are dots, the FMA peak. */
static bool measure_interleaved(const BenchOptions *options, Subject *subjects, unsigned count, TileBenchSize *size) {
    bool dots = false, gpu = size->results[0].on_gpu;
    TileClock clock = tile_thread_pool_size(NULL) == 1 && !gpu ? TILE_CLOCK_OF_THREAD : TILE_CLOCK_ON_WALL;
    double bytes = 0;
    TileCandidate candidates[TILE_MAX_CANDIDATES] = {{0}};
    int candidate_count = 0;
    for (unsigned i = 0; i < count; i++) {
        candidates[candidate_count++] = (TileCandidate){.run = run_subject, .state = &subjects[i]};
        dots |= size->results[i].flops_known == TILE_FLOPS_COUNTED;
        bytes = size->results[i].bytes > bytes ? size->results[i].bytes : bytes;
    }
    TileCopyWork copy;
    TileFmaWork fma = tile_fma_work();
    bool limits = !gpu && tile_copy_create(&copy, bytes);
    if (limits) candidates[candidate_count++] = (TileCandidate){.run = tile_copy_run, .state = &copy};
    if (limits && dots) candidates[candidate_count++] = (TileCandidate){.run = tile_fma_run, .state = &fma};
    bool good = tile_measure(candidates, candidate_count, clock, ROUNDS, options->seconds / (ROUNDS * candidate_count));
    for (unsigned i = 0; i < count; i++) {
        size->results[i].seconds = candidates[i].seconds;
        size->results[i].ratio = candidates[i].ratio;
    }
    if (limits) size->copy_rate = 2 * (double)copy.bytes / candidates[count].seconds;
    if (limits && dots) size->flop_rate = fma.flops / candidates[count + 1].seconds;
    if (limits) tile_copy_destroy(&copy);
    return good;
}

static bool is_target(const char *name) {
    TileTargetInfo info;
    for (size_t i = 0; tile_target_at(i, &info); i++)
        if (strcmp(info.name, name) == 0) return true;
    return false;
}

static int measure_size(TileBench *bench, const BenchOptions *options, const char *value) {
    TileSession *session = bench->session;
    Subject subjects[TILE_BENCH_SUBJECTS] = {{.opened = false}};
    TileBenchSize size = {.value = value};
    bool target = options->against && is_target(options->against);
    int failed = open_subject(&subjects[0], session, options, options->file, options->target, value);
    if (!failed && options->against)
        failed = open_subject(&subjects[1], session, options, target ? options->file : options->against,
                              target ? options->against : options->target, value);
    for (unsigned i = 0; i < bench->subjects && !failed; i++) {
        TileProgram *program = &subjects[i].program;
        TileBenchResult *result = &size.results[i];
        bench->kernels[i] = tile_arena_format(session->arena, "%s", tile_kernel_signature(program->kernel));
        *result = (TileBenchResult){.bytes = tile_traffic_of_program(program), .on_gpu = tile_kernel_is_gpu(program->kernel)};
        result->flops_known = tile_flops_of_program(program, &result->flops);
        size.arguments = i ? size.arguments : describe_arguments(program);
    }
    if (!failed && !measure_interleaved(options, subjects, bench->subjects, &size)) {
        bool first = subjects[0].status != TILE_OK, second = subjects[1].status != TILE_OK;
        failed =
            first || second ? refuse(&subjects[first ? 0 : 1]) : tile_session_report(session, TILE_OUT_OF_MEMORY, NULL);
    }
    for (unsigned i = 0; i < TILE_BENCH_SUBJECTS; i++) close_subject(&subjects[i]);
    if (failed) return failed;
    if (!options->json && !bench->sizes.count) tile_bench_print_head(bench);
    if (!options->json) tile_bench_print_size(bench, &size);
    tile_list_push(session->arena, &bench->sizes, size);
    return 0;
}

/* ---- the command ---- */

static void name_subjects(TileBench *bench, const BenchOptions *options) {
    const char *target = options->target ? options->target : "cpu";
    bool other_target = options->against && is_target(options->against);
    bench->subjects = options->against ? 2 : 1;
    bench->names[0] = other_target || !options->against ? target : options->file;
    bench->names[1] = options->against;
}

static int save_plot(const TileBench *bench, const char *path) {
    TileText svg = {.arena = bench->session->arena}, error = {.arena = bench->session->arena};
    tile_bench_draw(bench, &svg);
    tile_status status = tile_file_write(path, tile_text_get(&svg), svg.length, &error);
    return status == TILE_OK ? 0 : tile_session_fail(bench->session, status, "%s", tile_text_get(&error));
}

int tile_command_bench(TileSession *session, char **words, int count) {
    BenchOptions options = {.seconds = 1};
    for (int i = 0; i < count; i++) {
        int failed = read_word(session, &options, words[i]);
        if (failed) return failed;
    }
    if (!options.file) return tile_session_fail(session, TILE_INVALID_ARGUMENT, "no file; see `tilec help bench`");
    TileBench bench = {.session = session, .swept = options.swept, .threads = tile_thread_pool_size(NULL)};
    name_subjects(&bench, &options);
    if (!options.swept) tile_list_push(session->arena, &options.values, "");
    for (size_t i = 0; i < options.values.count; i++) {
        int failed = measure_size(&bench, &options, options.values.items[i]);
        if (failed) return failed;
    }
    if (options.json) tile_bench_print_json(&bench);
    int failed = options.plot ? save_plot(&bench, options.plot) : 0;
    int result = tile_session_finish(session);
    return failed ? failed : result;
}
