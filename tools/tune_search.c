/* tilec tune: the search. Points are compiled several at once and then measured one by one, each alternately with the
 * best so far. Results are written as they come, so that a search that was interrupted can be resumed. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/stack.h"
#include "driver/compile/compile.h"
#include "launch/cuda.h"
#include "tools/duel.h"
#include "tools/measure.h"
#include "tools/tune.h"
#include "tools/unfinished.h"

enum { MOST_AT_ONCE = 16, NONE = -1 };
static const double sample_seconds = 2e-3, saved_every = 1;

/* A point of the search, compiled. */
typedef struct Point {
    struct Search *search;
    long number; /* NONE: there is none */
    TileSetting *settings;
    size_t setting_count;
    TileLibrary *library;
    TileKernel *kernel;
    TileError error;
    TileReport *report;
    tile_status status;
} Point;

typedef struct Search {
    TileProgram *program;
    const TileTuneOptions *options;
    TileSession *session;
    TileArena *arena;
    const char *path;
    TileTunedSpace space;
    TileArg *args;
    TileClock clock;
    TileCudaTimer timer; /* GPUs */
    bool on_gpu, bar;    /* a bar is drawn */
    Point best;
    size_t measured; /* points that are done, in order */
    double best_seconds, usual_seconds;
    double best_ratio; /* of the best's time to the default's, by their duels */
    unsigned refused;
    double begin, saved;
} Search;

/* Set by signals. */
static volatile sig_atomic_t interrupted;

static void note_signal(int number) {
    if (interrupted) tile_unfinished_die(number);
    interrupted = number;
}

/* ---- words ---- */

static const char *constants_of(const Search *search, size_t number) {
    TileText text = {.arena = search->arena};
    const TileTunePoints *points = &search->space.points;
    for (size_t i = 0; i < points->names.count; i++)
        tile_text_format(&text, "%s%s=%lld", i ? " " : "", points->names.items[i],
                         (long long)points->points.items[number][i]);
    return tile_text_get(&text);
}

static void hide_bar(const Search *search) {
    if (search->bar) fputs("\r\033[K", stderr);
}

static void show_bar(const Search *search) {
    enum { WIDTH = 24 };
    char bar[WIDTH + 1];
    size_t total = search->space.points.points.count, full = search->measured * WIDTH / total;
    if (!search->bar) return;
    for (size_t i = 0; i < WIDTH; i++) bar[i] = i < full ? '#' : '.';
    bar[WIDTH] = 0;
    fprintf(stderr, "\r\033[K[%s] %zu/%zu  best %s", bar, search->measured, total,
            constants_of(search, (size_t)search->best.number));
    if (search->best_seconds > 0)
        fprintf(stderr, "  %s, %.3f of the default's", tile_tune_time(search->arena, search->best_seconds),
                search->best_ratio);
}

/* ---- points ---- */

static void release(Point *point) {
    tile_library_destroy(point->library);
    tile_report_destroy(point->report);
    *point = (Point){.number = NONE};
}

static Point make_point(Search *search, size_t number) {
    const TileProgram *program = search->program;
    const TileTunePoints *points = &search->space.points;
    Point point = {.search = search, .number = (long)number};
    point.setting_count = program->settings.count + points->names.count;
    point.settings = TILE_NEW_ARRAY(search->arena, TileSetting, point.setting_count);
    size_t count = 0;
    for (; count < program->settings.count; count++) point.settings[count] = program->settings.items[count];
    for (size_t i = 0; i < points->names.count; i++)
        point.settings[count++] =
            (TileSetting){points->names.items[i],
                          tile_arena_format(search->arena, "%lld", (long long)points->points.items[number][i])};
    return point;
}

/* In a thread of its own. */
static void *compile_point(void *state) {
    Point *point = state;
    const TileProgram *program = point->search->program;
    TileCompileOptions options = program->options;
    TileReport *report = NULL;
    TileLaunchOptions launch = {.struct_size = sizeof launch, .error = &point->error, .report = &point->report};
    options.settings = point->settings;
    options.setting_count = point->setting_count;
    point->status = tile_compile_file(program->compiler, program->path, &options, &point->library, &report);
    tile_report_destroy(report);
    if (point->status == TILE_OK)
        point->status = tile_library_kernel(point->library, tile_kernel_name(program->kernel), &point->kernel);
    if (point->status == TILE_OK)
        point->status = tile_prepare(point->kernel, point->search->args, program->argument_count, &launch);
    return NULL;
}

static void compile_points(Point *points, size_t count) {
    pthread_t threads[MOST_AT_ONCE];
    bool started[MOST_AT_ONCE] = {false};
    sigset_t ours, old;
    sigfillset(&ours);
    pthread_sigmask(SIG_BLOCK, &ours, &old); /* signals are handled by this thread */
    for (size_t i = 1; i < count; i++) started[i] = tile_thread_create(&threads[i], compile_point, &points[i]) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    for (size_t i = 0; i < count; i++)
        if (!started[i]) compile_point(&points[i]);
    for (size_t i = 0; i < count; i++)
        if (started[i]) pthread_join(threads[i], NULL);
}

/* ---- measuring ---- */

/* Discards what the kernel prints. */
static void print_nothing(void *host, const char *line, size_t length) { (void)host, (void)line, (void)length; }

static double sample(void *state, int repeats) {
    Point *point = state;
    Search *search = point->search;
    TileLaunchOptions options = {
        .struct_size = sizeof options, .error = &point->error, .report = &point->report, .print = print_nothing};
    double seconds = 0, start = tile_clock_now(search->clock);
    if (search->on_gpu) point->status = tile_cuda_timer_start(&search->timer, NULL, &point->error);
    for (int i = 0; i < repeats && point->status == TILE_OK; i++)
        point->status = tile_launch(point->kernel, search->args, search->program->argument_count, &options);
    if (search->on_gpu && point->status == TILE_OK)
        point->status = tile_cuda_timer_stop(&search->timer, NULL, &seconds, &point->error);
    if (point->status != TILE_OK) return -1;
    return search->on_gpu ? seconds : tile_clock_now(search->clock) - start;
}

static TileDuel compare(Point *holder, Point *challenger) {
    TileDuelist one = {sample, holder}, other = {sample, challenger};
    return tile_duel(&one, &other, sample_seconds, &interrupted);
}

/* The reason why a point cannot be run, on one line. */
static const char *reason_of(const Point *point) {
    const char *text = *point->error.message ? point->error.message : tile_status_text(point->status);
    return tile_arena_string(point->search->arena, text, strcspn(text, "\n"));
}

static void refuse_point(Search *search, const Point *point) {
    search->refused++;
    hide_bar(search);
    fprintf(stderr, "left out: %s: %s\n", constants_of(search, (size_t)point->number), reason_of(point));
}

static void say_point(const Search *search, const Point *point, const TileDuel *duel) {
    static const char *const verdicts[] = {[TILE_VERDICT_OPEN] = "",
                                           [TILE_VERDICT_SAME] = ", no difference",
                                           [TILE_VERDICT_FASTER] = ", the best so far",
                                           [TILE_VERDICT_SLOWER] = ""};
    if (search->session->quiet || (search->bar && !search->session->verbose)) return;
    hide_bar(search);
    printf("%zu/%zu  %s  %s, %.3f of the best's time%s\n", search->measured, search->space.points.points.count,
           constants_of(search, (size_t)point->number), tile_tune_time(search->arena, duel->seconds[1]), duel->ratio,
           verdicts[duel->verdict]);
    fflush(stdout);
}

/* ---- keeping ---- */

static TileTuningRow make_row(const Search *search) {
    TileTuningRow row = search->space.key;
    row.constants = constants_of(search, (size_t)search->best.number);
    row.seconds = search->best_seconds;
    row.usual_seconds = search->usual_seconds;
    row.measured = (unsigned)search->measured;
    row.total = (unsigned)search->space.points.points.count;
    return row;
}

static void put_row(void *state, TileTuning *tuning) { tile_tuning_put(tuning, state); }

static tile_status save(Search *search, TileText *error) {
    TileTuningRow row = make_row(search);
    search->saved = tile_clock_now(TILE_CLOCK_ON_WALL);
    return tile_tune_update(search->arena, search->path, put_row, &row, error);
}

static void drop_row(void *state, TileTuning *tuning) {
    TileTuningRow *row = tile_tuning_find(tuning, state);
    if (row && !row->pinned) *row = tuning->rows.items[--tuning->rows.count];
}

/* ---- earlier measurements ---- */

static long find_point(const Search *search, const char *constants) {
    for (size_t i = 0; i < search->space.points.points.count; i++)
        if (strcmp(constants_of(search, i), constants) == 0) return (long)i;
    return NONE;
}

static int show_known(const Search *search, const TileTuningRow *row) {
    TileSession *session = search->session;
    if (row->pinned)
        return tile_session_fail(session, TILE_INVALID_ARGUMENT,
                                 "constants for such arguments are pinned in %s: %s; `tilec tune --forget %s` removes "
                                 "them",
                                 search->path, row->constants, row->kernel);
    if (!session->quiet)
        printf("%s: %s was found to be the best of %u before, %.3f of the default's time; --again measures anew\n",
               search->path, row->constants, row->total,
               row->usual_seconds > 0 ? row->seconds / row->usual_seconds : 1);
    return tile_session_finish(session);
}

/* Continues a search that the file has a part of. *done: nothing is left to do. */
static int look_up(Search *search, long *first, bool *done) {
    TileTuning known = {.arena = search->arena};
    TileText error = {.arena = search->arena};
    TileTuningRow *key = &search->space.key;
    tile_status status = tile_tuning_read(&known, search->path, &error);
    if (status != TILE_OK) return tile_session_fail(search->session, status, "%s", tile_text_get(&error));
    const TileTuningRow *row = tile_tuning_find(&known, key);
    *first = 0;
    if (!row) return 0;
    if (row->pinned || (row->measured == row->total && !search->options->again)) {
        *done = true;
        return show_known(search, row);
    }
    if (search->options->again) {
        status = tile_tune_update(search->arena, search->path, drop_row, key, &error);
        return status == TILE_OK ? 0 : tile_session_fail(search->session, status, "%s", tile_text_get(&error));
    }
    long best = find_point(search, row->constants);
    if (best == NONE || row->total != search->space.points.points.count || !row->measured) return 0;
    *first = best;
    search->measured = row->measured;
    if (!search->session->quiet)
        fprintf(stderr, "%u of %u were measured before: going on\n", row->measured, row->total);
    return 0;
}

/* ---- the search ---- */

/* The point that others are compared with must run. */
static int begin_with(Search *search, long first) {
    Point both[2] = {make_point(search, (size_t)first), make_point(search, 0)};
    compile_points(both, first ? 2 : 1);
    search->best = both[0];
    int failed = 0;
    for (int i = 0; i < (first ? 2 : 1) && !failed; i++) {
        double seconds = both[i].status == TILE_OK && sample(&both[i], 1) >= 0 ? sample(&both[i], 1) : -1;
        if (seconds < 0) {
            TileReport *report = both[i].report;
            search->best.report = both[i].report = NULL;
            failed = tile_program_refuse(search->program, both[i].status, &both[i].error, report);
        }
        if (!i) search->best_seconds = seconds;
        search->usual_seconds = seconds;
    }
    if (!failed) search->best_ratio = search->best_seconds / search->usual_seconds;
    if (first) release(&both[1]);
    if (!search->measured) search->measured = 1;
    return failed;
}

/* False if the search cannot continue: the best so far fails. */
static bool try_point(Search *search, Point *point) {
    TileDuel duel = {.failed = point->status != TILE_OK};
    if (!duel.failed) duel = compare(&search->best, point);
    if (search->best.status != TILE_OK) return false;
    if (interrupted) return true;
    search->measured++;
    if (duel.failed) {
        refuse_point(search, point);
        return true;
    }
    if (duel.verdict == TILE_VERDICT_FASTER) {
        Point loser = search->best;
        search->best = *point;
        *point = loser;
        search->best_seconds = duel.seconds[1];
        search->best_ratio *= duel.ratio;
    } else {
        search->best_seconds = duel.seconds[0];
    }
    say_point(search, duel.verdict == TILE_VERDICT_FASTER ? &search->best : point, &duel);
    return true;
}

static bool has_time(const Search *search) {
    return !interrupted && tile_clock_now(TILE_CLOCK_ON_WALL) - search->begin < search->options->seconds;
}

static size_t at_once(void) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores < 1 ? 1 : cores > MOST_AT_ONCE ? MOST_AT_ONCE : (size_t)cores;
}

/* Returns an exit status, also of a failure to write. */
static int try_batch(Search *search) {
    Point points[MOST_AT_ONCE];
    TileText error = {.arena = search->arena};
    size_t left = search->space.points.points.count - search->measured, count = at_once();
    if (count > left) count = left;
    for (size_t i = 0; i < count; i++) points[i] = make_point(search, search->measured + i);
    compile_points(points, count);
    bool good = true;
    for (size_t i = 0; i < count && good && has_time(search); i++) {
        good = try_point(search, &points[i]);
        show_bar(search);
    }
    for (size_t i = 0; i < count; i++) release(&points[i]);
    tile_status status = TILE_OK;
    if (tile_clock_now(TILE_CLOCK_ON_WALL) - search->saved > saved_every) status = save(search, &error);
    if (status != TILE_OK) return tile_session_fail(search->session, status, "%s", tile_text_get(&error));
    if (good) return 0;
    TileReport *report = search->best.report;
    search->best.report = NULL;
    return tile_program_refuse(search->program, search->best.status, &search->best.error, report);
}

/* One of many points that are no better than the default may have won by chance: the winner must win once more. */
static void confirm(Search *search) {
    if (search->best.number == 0 || interrupted) return;
    Point usual = make_point(search, 0);
    compile_points(&usual, 1);
    TileDuel duel = {.failed = usual.status != TILE_OK};
    if (!duel.failed) duel = compare(&usual, &search->best);
    if (!duel.failed && !interrupted) {
        search->usual_seconds = duel.seconds[0];
        search->best_seconds = duel.seconds[1];
        if (duel.verdict != TILE_VERDICT_FASTER) {
            Point loser = search->best;
            search->best = usual;
            usual = loser;
            search->best_seconds = duel.seconds[0];
        }
    }
    release(&usual);
}

static void say_result(const Search *search) {
    const TileTuningRow *key = &search->space.key;
    size_t total = search->space.points.points.count;
    hide_bar(search);
    if (search->session->quiet) return;
    printf("%s  %s  %s  %s\n", key->kernel, key->instance, key->shape, key->device);
    printf("  default  %s  %s\n", constants_of(search, 0), tile_tune_time(search->arena, search->usual_seconds));
    if (search->best.number)
        printf("  best     %s  %s, %.3f of the default's time\n", constants_of(search, (size_t)search->best.number),
               tile_tune_time(search->arena, search->best_seconds), search->best_seconds / search->usual_seconds);
    else
        printf("  nothing is faster\n");
    printf("  %zu of %zu measured", search->measured, total);
    if (search->refused) printf(", %u of them cannot run", search->refused);
    printf("; kept in %s\n", search->path);
    if (search->measured < total) printf("  the next run goes on\n");
}

static int run_search(Search *search, long first) {
    TileText error = {.arena = search->arena};
    size_t total = search->space.points.points.count;
    int failed = begin_with(search, first);
    search->saved = search->begin;
    if (!failed) show_bar(search);
    while (!failed && search->measured < total && has_time(search)) failed = try_batch(search);
    if (!failed) {
        confirm(search);
        tile_status status = save(search, &error);
        if (status != TILE_OK) failed = tile_session_fail(search->session, status, "%s", tile_text_get(&error));
    }
    if (!failed) say_result(search);
    release(&search->best);
    return failed;
}

/* ---- surroundings ---- */

/* The arguments are where the kernel wants them. */
static int search_with_arguments(Search *search) {
    const TileProgram *program = search->program;
    TileError error = {0};
    TileReport *report = NULL;
    long first = 0;
    bool done = false;
    search->args = tile_program_args(program);
    tile_status status = tile_tuned_space(program->library, program->kernel, search->args, program->argument_count,
                                          search->arena, &search->space, &error, &report);
    if (status != TILE_OK && report) return tile_session_report(search->session, status, report);
    if (status != TILE_OK) return tile_program_refuse(search->program, status, &error, NULL);
    int failed = look_up(search, &first, &done);
    return failed || done ? failed : run_search(search, first);
}

/* On a GPU, the arguments are copied, the context is current and the timer exists while the search runs. */
static int search_on_gpu(Search *search) {
    TileProgram *program = search->program;
    TileCudaScope scope;
    TileError error = {0};
    tile_status status = tile_cuda_enter(0, NULL, &scope, &error);
    if (status != TILE_OK) return tile_program_refuse(program, status, &error, NULL);
    status = tile_program_send(program, program->arguments, &error);
    if (status == TILE_OK) status = tile_cuda_timer_create(&search->timer, &error);
    int failed = status == TILE_OK ? search_with_arguments(search) : tile_program_refuse(program, status, &error, NULL);
    tile_cuda_timer_destroy(&search->timer);
    tile_program_forget(program, program->arguments);
    tile_cuda_leave(&scope);
    return failed;
}

/* Ctrl-C ends the search between two launches, and then this process as it would have without; a second one at once. */
static int search_with_signals(Search *search) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    enum { COUNT = sizeof numbers / sizeof *numbers };
    struct sigaction action = {.sa_handler = note_signal}, old[COUNT];
    sigfillset(&action.sa_mask);
    interrupted = 0;
    for (int i = 0; i < COUNT; i++) {
        sigaction(numbers[i], NULL, &old[i]);
        if (old[i].sa_handler != SIG_IGN) sigaction(numbers[i], &action, NULL);
    }
    int failed = search->on_gpu ? search_on_gpu(search) : search_with_arguments(search);
    for (int i = 0; i < COUNT; i++) sigaction(numbers[i], &old[i], NULL);
    if (interrupted) {
        tile_session_finish(search->session);
        raise(interrupted);
    }
    return failed ? failed : tile_session_finish(search->session);
}

int tile_tune_search(TileProgram *program, const TileTuneOptions *options) {
    TileSession *session = program->session;
    Search search = {.program = program, .options = options, .session = session, .arena = session->arena};
    search.best.number = NONE;
    search.path = tile_tune_path(search.arena, options->file);
    if (!search.path)
        return tile_session_fail(
            session, TILE_INVALID_ARGUMENT,
            "there is nowhere to keep what is found: TILE_CACHE_DIR is empty, or its folder is not "
            "this user's alone; name a file with --file");
    search.on_gpu = tile_kernel_is_gpu(program->kernel);
    search.bar = isatty(STDERR_FILENO) && !session->quiet;
    search.clock = tile_thread_pool_size(NULL) == 1 && !search.on_gpu ? TILE_CLOCK_OF_THREAD : TILE_CLOCK_ON_WALL;
    search.begin = tile_clock_now(TILE_CLOCK_ON_WALL);
    return search_with_signals(&search);
}
