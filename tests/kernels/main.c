/* Runs the rows of tests/matrix.tsv: every standard kernel, type, size and view on every target.
 *
 * usage: tile_kernel_tests [--part] [--alone] [--interior] [--grant=all|nothing] [--between=FILE] [--removals=FILE] [--few=N]
 *                         [--jobs=N] MATRIX STDLIB [PATTERN]
 *  PATTERN     only rows whose line contains it, or all of its parts, separated by `&`
 *  --part      MATRIX need not have a row for each kernel
 *  --alone     all in this process, for tools that watch one process
 *  --interior  MATRIX is tests/interior.tsv: sizes that tiles divide, for which no target may execute masked operations
 *  --grant     the facts that compilers are given about the arguments (granted.h)
 *  --between=F canonicalise, cse and dce between all passes: results must be correct, and decisions the same except for
 *              those listed in file F, each of which has to differ in some row (reviewed.h)
 *  --removals=F each op that orders threads is taken out of a GPU's code, and the executor has to report it, but for those
 *              listed in file F (removals.h)
 *  --few       N rows of each kernel: of several types, including bf16, and the least regular views
 *  --jobs      N processes at once, by default as many as there are processors
 *
 * Exit status 0; 1 if a row failed; 77 if none can run on this machine.
 *
 * Rows run in child processes, one for each kernel and type, so that a crash affects only one row and is reported as
 * its failure. A child is killed after two minutes in one row. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "interior.h"
#include "removals.h"

enum { MAX_WORKERS = 64, ROW_SECONDS = 120, MAX_REPORTED = 60, STATUS_SKIPPED = 77 };

/* Shared memory for messages of a child to its parent. */
typedef struct Progress {
    size_t current; /* the row that is running */
    size_t ran, failed, skipped;
    bool told; /* the reason why rows are skipped was printed */
} Progress;

typedef struct Worker {
    pid_t process; /* 0: idle */
    size_t end;    /* one past its last row */
    Progress *progress;
} Worker;

typedef struct Plan {
    Matrix matrix;
    int workers;
    const char *stdlib, *pattern;
    bool interior;
    Grant grant;
    char *removals; /* the list of removals.h; or NULL */
    Reviewed *reviewed; /* NULL: no passes are inserted between others */
    bool *left_out; /* by row; NULL: all rows are run */
    size_t next;    /* the first row that is not assigned to a worker */
    size_t reported;
} Plan;

static bool is_wanted(const Plan *plan, const Row *row) {
    if (!plan->pattern) return true;
    char line[1024];
    snprintf(line, sizeof line, "%s %s %s %s %s %s %s %s", row->kernel, row->types, row->target, row->sizes, row->views,
             row->data, row->placement, row->tune);
    char part[256];
    for (const char *at = plan->pattern; *at; at += strcspn(at, "&"), at += *at == '&') {
        snprintf(part, sizeof part, "%.*s", (int)strcspn(at, "&"), at);
        if (!strstr(line, part)) return false;
    }
    return true;
}

/* ---- a few rows of each kernel ---- */

static bool same_kernel(const Row *a, const Row *b) { return strcmp(a->kernel, b->kernel) == 0; }

/* A score for choosing rows: counts views that are not contiguous and, with a greater weight, types that no chosen row
 * of begin .. end has; lowest for a size of 0, with which little code runs. */
static int worth_of(const Plan *plan, size_t begin, size_t end, size_t row) {
    const Row *rows = plan->matrix.rows;
    bool new_type = true, bf16 = strncmp(rows[row].types, "bf16", 4) == 0;
    for (size_t i = begin; i < end; i++) new_type &= plan->left_out[i] || strcmp(rows[i].types, rows[row].types);
    int worth = (new_type ? 100 : 0) + (new_type && bf16 ? 50 : 0);
    for (const char *at = rows[row].views; (at = strchr(at, '=')); at++) worth += strncmp(at, "=contiguous", 11) != 0;
    for (const char *at = rows[row].sizes; (at = strchr(at, '=')); at++)
        if (at[1] == '0') worth -= 1000;
    return worth;
}

/* The row with the highest score that is wanted and not chosen yet; `end` if there is none. */
static size_t best_of(const Plan *plan, size_t begin, size_t end) {
    size_t best = end;
    int worth = 0;
    for (size_t i = begin; i < end; i++) {
        if (!plan->left_out[i] || !is_wanted(plan, &plan->matrix.rows[i])) continue;
        int own = worth_of(plan, begin, end, i);
        if (best < end && own <= worth) continue;
        best = i;
        worth = own;
    }
    return best;
}

static bool choose_few(Plan *plan, long few) {
    const Matrix *matrix = &plan->matrix;
    plan->left_out = malloc(matrix->count);
    if (!plan->left_out) return false;
    memset(plan->left_out, true, matrix->count);
    for (size_t begin = 0, end; begin < matrix->count; begin = end) {
        for (end = begin + 1; end < matrix->count && same_kernel(&matrix->rows[end], &matrix->rows[begin]);) end++;
        for (long i = 0; i < few; i++) {
            size_t best = best_of(plan, begin, end);
            if (best < end) plan->left_out[best] = false;
        }
    }
    return true;
}

/* ---- running ---- */

static void report(const Row *row, const char *reason) {
    printf("FAIL line %d: %s %s %s, %s, %s, %s, %s, %s\n     %s\n", row->line, row->kernel, row->types, row->target,
           row->sizes, row->views, row->data, row->placement, row->tune, reason);
    fflush(stdout);
}

static bool run_row(const Plan *plan, Session *session, const Row *row, char *reason) {
    if (plan->interior) return interior_run(session, row, reason);
    return plan->removals ? removals_run(session, row, plan->removals, reason) : session_run(session, row, reason);
}

static bool run_rows(const Plan *plan, size_t begin, size_t end, Progress *progress) {
    Session *session = session_create(plan->stdlib, plan->grant, plan->reviewed);
    if (!session) return false;
    char *reason = malloc(MAX_REASON);
    for (size_t i = begin; i < end && reason; i++) {
        const Row *row = &plan->matrix.rows[i];
        if ((plan->left_out && plan->left_out[i]) || !is_wanted(plan, row)) continue;
        progress->current = i;
        if (!plan->interior && !session_can_run(session, row, reason)) {
            if (session_has_to_run(row)) {
                report(row, reason);
                progress->failed++;
                continue;
            }
            if (!progress->told) printf("SKIP rows: %s\n", reason);
            progress->told = true;
            progress->skipped++;
            continue;
        }
        alarm(ROW_SECONDS);
        if (!run_row(plan, session, row, reason)) {
            if (progress->failed < MAX_REPORTED) report(row, reason);
            progress->failed++;
        }
        progress->ran++;
    }
    alarm(0);
    free(reason);
    session_destroy(session);
    fflush(stdout);
    return true;
}

static void start(const Plan *plan, Worker *worker, size_t begin, size_t end) {
    fflush(stdout);
    worker->end = end;
    worker->progress->current = begin;
    worker->process = fork();
    if (worker->process == 0) _exit(run_rows(plan, begin, end, worker->progress) ? 0 : 2);
}

/* The end of the rows with the same kernel and type as row `begin`. */
static size_t unit_end(const Matrix *matrix, size_t begin) {
    size_t end = begin + 1;
    while (end < matrix->count && strcmp(matrix->rows[end].kernel, matrix->rows[begin].kernel) == 0 &&
           strcmp(matrix->rows[end].types, matrix->rows[begin].types) == 0)
        end++;
    return end;
}

static void start_next(Plan *plan, Worker *worker) {
    worker->process = 0;
    if (plan->next >= plan->matrix.count) return;
    size_t begin = plan->next;
    plan->next = unit_end(&plan->matrix, begin);
    start(plan, worker, begin, plan->next);
}

/* A child has exited: normally, or by a crash in a row, after which a new child runs the remaining rows. */
static void finish(Plan *plan, Worker *worker, int status) {
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        start_next(plan, worker);
        return;
    }
    size_t row = worker->progress->current;
    char reason[128];
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        snprintf(reason, sizeof reason, "still running after %d s", ROW_SECONDS);
    else if (WIFSIGNALED(status))
        snprintf(reason, sizeof reason, "ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(reason, sizeof reason, "the process ended with status %d", WEXITSTATUS(status));
    report(&plan->matrix.rows[row], reason);
    worker->progress->failed++;
    worker->progress->ran++;
    if (row + 1 < worker->end)
        start(plan, worker, row + 1, worker->end);
    else
        start_next(plan, worker);
}

static void run_all(Plan *plan, Worker *workers) {
    for (int i = 0; i < plan->workers; i++) start_next(plan, &workers[i]);
    int status;
    for (pid_t process; (process = wait(&status)) > 0;)
        for (int i = 0; i < plan->workers; i++)
            if (workers[i].process == process) {
                finish(plan, &workers[i], status);
                break;
            }
}

/* The number in an option NAME=.., or 0. */
static long take_number(const char *name, int *count, char ***arguments) {
    if (*count < 2 || strncmp((*arguments)[1], name, strlen(name)) != 0) return 0;
    long number = atol((*arguments)[1] + strlen(name));
    (*count)--;
    (*arguments)++;
    return number;
}

static bool take_option(const char *name, int *count, char ***arguments) {
    if (*count < 2 || strcmp((*arguments)[1], name) != 0) return false;
    (*count)--;
    (*arguments)++;
    return true;
}

/* The text in an option NAME=.., or NULL. */
static const char *take_text(const char *name, int *count, char ***arguments) {
    if (*count < 2 || strncmp((*arguments)[1], name, strlen(name)) != 0) return NULL;
    (*count)--;
    return *++*arguments + strlen(name);
}

/* Prints how many rows passed, failed and were skipped. Returns the exit status. */
static int run_plan(Plan *plan, bool alone) {
    Progress *progress =
        mmap(NULL, sizeof(Progress) * MAX_WORKERS, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (progress == MAP_FAILED) return 2;
    Worker workers[MAX_WORKERS] = {0};
    for (int i = 0; i < plan->workers; i++) workers[i].progress = &progress[i];
    if (!alone)
        run_all(plan, workers);
    else if (!run_rows(plan, 0, plan->matrix.count, &progress[0]))
        return 2;
    size_t ran = 0, failed = 0, skipped = 0;
    for (int i = 0; i < plan->workers; i++) {
        ran += progress[i].ran;
        failed += progress[i].failed;
        skipped += progress[i].skipped;
    }
    printf("kernel matrix: %zu rows ran, %zu failed, %zu skipped\n", ran, failed, skipped);
    if (failed) return 1;
    return ran ? 0 : skipped ? STATUS_SKIPPED : 1;
}

int main(int count, char **arguments) {
    bool part = take_option("--part", &count, &arguments), alone = take_option("--alone", &count, &arguments);
    bool interior = take_option("--interior", &count, &arguments);
    Grant grant = take_option("--grant=all", &count, &arguments)       ? GRANT_ALL
                  : take_option("--grant=nothing", &count, &arguments) ? GRANT_NOTHING
                                                                       : GRANT_TRUTH;
    const char *list = take_text("--between=", &count, &arguments), *removals = take_text("--removals=", &count, &arguments);
    long few = take_number("--few=", &count, &arguments), jobs = take_number("--jobs=", &count, &arguments);
    if (count < 3 || count > 4) {
        fprintf(stderr, "usage: tile_kernel_tests [--part] [--alone] [--interior] [--grant=all|nothing] [--between=FILE] "
                        "[--removals=FILE] [--few=N] [--jobs=N] MATRIX STDLIB [PATTERN]\n");
        return 2;
    }
    if (jobs < 1) jobs = sysconf(_SC_NPROCESSORS_ONLN);
    Plan plan = {.workers = jobs < 1             ? 1
                            : jobs < MAX_WORKERS ? (int)jobs
                                                 : MAX_WORKERS,
                 .stdlib = arguments[2],
                 .pattern = count > 3 ? arguments[3] : NULL,
                 .interior = interior,
                 .grant = grant};
    if (!matrix_read(&plan.matrix, arguments[1])) return 2;
    if (few && !choose_few(&plan, few)) return 2;
    if (list && !(plan.reviewed = reviewed_read(list))) return 2;
    if (removals && !(plan.removals = removals_read(removals))) return 2;
    bool covered = part || matrix_covers(&plan.matrix, plan.stdlib);
    int status = run_plan(&plan, alone);
    bool stale = plan.reviewed && !reviewed_all_apply(plan.reviewed, &plan.matrix, few != 0);
    reviewed_destroy(plan.reviewed);
    matrix_destroy(&plan.matrix);
    free(plan.left_out);
    free(plan.removals);
    return status ? status : !covered || stale;
}
