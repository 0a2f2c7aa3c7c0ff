/* Files that outlive a process, under concurrency and failures: processes compile and launch kernels with one disk
 * cache, store bytes in it, damage it, and write one tuning file, and are killed at random times. Every launch and
 * every byte must be correct, no process may terminate by itself, and a written row of the tuning file must persist.
 * Then the same on a full disk.
 *
 * usage: tile_cache_tests KILLS [SEED] */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver/cache/cache.h"
#include "tile/tile.h"
#include "tools/tune_update.h"

#include "entries.h"

enum {
    PROCESSES = 16,
    KERNELS = 24,
    COUNT = 100,
    KEYS = 32,
    CACHE_BYTES = 300000, /* less than the size of all entries, so that some are always evicted */
    MOST_WAIT = 30000,    /* microseconds between kills */
    SMALL_DISK = 512 << 10,
};

typedef enum Job { JOB_LAUNCH, JOB_PUT, JOB_DAMAGE, JOB_TUNE } Job;

/* The task of each process. */
static const Job jobs[PROCESSES] = {JOB_LAUNCH, JOB_LAUNCH, JOB_LAUNCH, JOB_LAUNCH, JOB_LAUNCH, JOB_LAUNCH,
                                    JOB_LAUNCH, JOB_LAUNCH, JOB_PUT,    JOB_PUT,    JOB_PUT,    JOB_DAMAGE,
                                    JOB_DAMAGE, JOB_TUNE,   JOB_TUNE,   JOB_TUNE};

/* Shared by all processes. */
typedef struct Shared {
    _Atomic unsigned launches, puts, damages, wrong;
    _Atomic unsigned rows[PROCESSES]; /* for each process, the least value that its row may have: that of the last write
                                       * that was reported done */
} Shared;

typedef struct Campaign {
    Shared *shared;
    char folder[64], tuning[80];
    uint32_t random;
} Campaign;

static uint32_t below(Campaign *campaign, uint32_t bound) {
    campaign->random = campaign->random * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(campaign->random >> 4) * bound >> 28);
}

static void complain(Campaign *campaign, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void complain(Campaign *campaign, const char *format, ...) {
    char line[400];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    if (campaign->shared->wrong++ < 20) fprintf(stderr, "FAIL: %s\n", line);
}

/* ---- kernels and bytes ---- */

static TileCompiler *make_compiler(Campaign *campaign) {
    TileCompiler *compiler = NULL;
    if (tile_compiler_create(NULL, &compiler) != TILE_OK) complain(campaign, "no compiler can be made");
    return compiler;
}

/* Kernel number k computes x * (k + 2) + 1. */
static tile_status launch_kernel(TileCompiler *compiler, unsigned number, float *x, float *y) {
    char text[200];
    TileLibrary *library;
    TileKernel *kernel;
    int64_t count = COUNT;
    DLTensor tx = {x, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &count, NULL, 0}, ty = tx;
    TileArg arguments[] = {TILE_TENSOR(&tx), TILE_TENSOR(&ty)};
    ty.data = y;
    snprintf(text, sizeof text,
             "kernel k(x: in f32[N], y: out f32[N]) { grid n in tiles(N, 16) { y[n] = x[n] * %u.0 + 1.0 } }",
             number + 2);
    TILE_TRY(tile_compile(compiler, text, strlen(text), NULL, &library, NULL));
    tile_status status = tile_library_kernel(library, "k", &kernel);
    if (status == TILE_OK) status = tile_launch(kernel, arguments, 2, NULL);
    tile_library_destroy(library);
    return status;
}

static void launch_and_check(Campaign *campaign, TileCompiler *compiler) {
    float x[COUNT], y[COUNT];
    unsigned number = below(campaign, KERNELS);
    for (int i = 0; i < COUNT; i++) x[i] = (float)i - 20, y[i] = -1;
    tile_status status = launch_kernel(compiler, number, x, y);
    if (status != TILE_OK) complain(campaign, "kernel %u does not launch: %s", number, tile_status_text(status));
    for (int i = 0; i < COUNT && status == TILE_OK; i++)
        if (y[i] != x[i] * (float)(number + 2) + 1) {
            complain(campaign, "kernel %u makes %g of %g", number, (double)y[i], (double)x[i]);
            break;
        }
    campaign->shared->launches++;
}

static void put(Campaign *campaign, TileCodeCache *cache, unsigned number) {
    static unsigned char data[MOST_BYTES];
    TileCodeKey key = key_of(number);
    tile_code_cache_put(cache, &key, "bytes", data, data_of(number, data));
    campaign->shared->puts++;
}

/* True if it is in the cache. */
static bool get(Campaign *campaign, TileCodeCache *cache, unsigned number) {
    static unsigned char wanted[MOST_BYTES];
    TileCodeKey key = key_of(number);
    size_t size = 0, length = data_of(number, wanted);
    void *data = tile_code_cache_get(cache, &key, &size);
    if (data && (size != length || memcmp(data, wanted, size) != 0))
        complain(campaign, "key %u has other bytes", number);
    free(data);
    return data != NULL;
}

/* ---- damage ---- */

/* The path of a random one of the files. */
static bool choose_file(Campaign *campaign, char *path, size_t size) {
    DIR *listing = opendir(campaign->folder);
    unsigned seen = 0;
    for (struct dirent *item; listing && (item = readdir(listing));) {
        size_t length = strlen(item->d_name);
        if (length < 9 || strcmp(item->d_name + length - 9, ".tilecode") != 0) continue;
        if (below(campaign, ++seen) == 0) snprintf(path, size, "%s/%s", campaign->folder, item->d_name);
    }
    if (listing) closedir(listing);
    return seen > 0;
}

static void flip_byte(Campaign *campaign, const char *path) {
    struct stat state;
    unsigned char byte;
    int file = open(path, O_RDWR | O_NONBLOCK | O_NOFOLLOW);
    if (file >= 0 && fstat(file, &state) == 0 && S_ISREG(state.st_mode) && state.st_size > 0) {
        off_t at = (off_t)below(campaign, (uint32_t)state.st_size);
        if (pread(file, &byte, 1, at) == 1) {
            byte ^= (unsigned char)(1u << below(campaign, 8));
            if (pwrite(file, &byte, 1, at) != 1) complain(campaign, "%s: %s", path, strerror(errno));
        }
    }
    if (file >= 0) close(file);
}

/* Files are created and removed concurrently, so any of these operations may fail. */
static void damage(Campaign *campaign) {
    char path[400] = "", other[400] = "";
    struct stat state;
    if (!choose_file(campaign, path, sizeof path) || !choose_file(campaign, other, sizeof other)) return;
    bool done = true;
    switch (below(campaign, 6)) {
    case 0: flip_byte(campaign, path); break;
    case 1:
        done = stat(path, &state) == 0 && truncate(path, (off_t)below(campaign, (uint32_t)state.st_size + 1)) == 0;
        break;
    case 2: done = rename(path, other) == 0; break;
    case 3: done = unlink(path) == 0; break;
    case 4: done = unlink(path) == 0 && symlink(other, path) == 0; break;
    default: done = unlink(path) == 0 && mkfifo(path, 0600) == 0;
    }
    campaign->shared->damages += done;
}

/* ---- the tuning file ---- */

typedef struct Step {
    unsigned process, value;
} Step;

static TileTuningRow row_of(TileArena *arena, unsigned process, unsigned value) {
    return (TileTuningRow){.kernel = tile_arena_format(arena, "kernel%u", process),
                           .space = "space",
                           .instance = "-",
                           .shape = "-",
                           .device = "device",
                           .constants = tile_arena_format(arena, "BM=%u", value),
                           .seconds = 1e-3,
                           .usual_seconds = 2e-3,
                           .measured = 1,
                           .total = 1};
}

static void put_row(void *state, TileTuning *tuning) {
    const Step *step = state;
    TileTuningRow row = row_of(tuning->arena, step->process, step->value);
    tile_tuning_put(tuning, &row);
}

static tile_status tune_once(Campaign *campaign, unsigned process, unsigned value) {
    TileArena *arena = tile_arena_create(NULL);
    TileText error = {.arena = arena};
    Step step = {process, value};
    tile_status status = tile_tune_update(arena, campaign->tuning, put_row, &step, &error);
    if (status == TILE_OK) campaign->shared->rows[process] = value;
    tile_arena_destroy(arena);
    return status;
}

/* No row may be older than the last write reported; a write that is in progress may be visible. */
static void check_tuning(Campaign *campaign) {
    TileArena *arena = tile_arena_create(NULL);
    TileText error = {.arena = arena};
    TileTuning tuning = {.arena = arena};
    unsigned written[PROCESSES];
    for (unsigned i = 0; i < PROCESSES; i++) written[i] = campaign->shared->rows[i];
    if (tile_tuning_read(&tuning, campaign->tuning, &error) != TILE_OK)
        complain(campaign, "the tuning file: %s", tile_text_get(&error));
    if (tuning.bad_line) complain(campaign, "line %u of the tuning file is no row", tuning.bad_line);
    for (unsigned i = 0; i < PROCESSES; i++) {
        TileTuningRow key = row_of(arena, i, 0), *row = tile_tuning_find(&tuning, &key);
        unsigned value = row ? (unsigned)strtoul(row->constants + 3, NULL, 10) : 0;
        if (value < written[i]) complain(campaign, "row %u has %u, and %u was written", i, value, written[i]);
    }
    tile_arena_destroy(arena);
}

/* ---- processes that are killed ---- */

static void work(Campaign *campaign, unsigned process) {
    TileCompiler *compiler = jobs[process] == JOB_LAUNCH ? make_compiler(campaign) : NULL;
    TileCodeCache *cache = tile_code_cache_open(NULL, NULL, 0);
    if (!cache) complain(campaign, "the cache cannot be opened");
    while (cache && !campaign->shared->wrong) {
        switch (jobs[process]) {
        case JOB_LAUNCH: launch_and_check(campaign, compiler); break;
        case JOB_PUT:
            get(campaign, cache, below(campaign, KEYS));
            put(campaign, cache, below(campaign, KEYS));
            break;
        case JOB_DAMAGE:
            damage(campaign);
            usleep(300);
            break;
        case JOB_TUNE:
            if (tune_once(campaign, process, campaign->shared->rows[process] + 1) != TILE_OK)
                complain(campaign, "the tuning file cannot be written");
        }
    }
    _exit(1);
}

static pid_t start(Campaign *campaign, unsigned process) {
    Campaign own = *campaign;
    own.random = campaign->random + 7919 * process;
    pid_t child = fork();
    if (child == 0) work(&own, process);
    return child;
}

/* No process may terminate unless it was killed. */
static void end_process(Campaign *campaign, pid_t process) {
    int status = 0;
    kill(process, SIGKILL);
    waitpid(process, &status, 0);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
        complain(campaign, "a process ended by itself, with %s %d", WIFSIGNALED(status) ? "signal" : "status",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

static void run_killed(Campaign *campaign, unsigned kills) {
    pid_t processes[PROCESSES];
    for (unsigned i = 0; i < PROCESSES; i++) processes[i] = start(campaign, i);
    for (unsigned i = 0; i < kills && !campaign->shared->wrong; i++) {
        unsigned victim = below(campaign, PROCESSES);
        usleep(below(campaign, MOST_WAIT));
        end_process(campaign, processes[victim]);
        check_tuning(campaign);
        processes[victim] = start(campaign, victim);
    }
    for (unsigned i = 0; i < PROCESSES; i++) end_process(campaign, processes[i]);
    TileCodeCache *cache = tile_code_cache_open(NULL, NULL, 0);
    for (unsigned i = 0; i < KEYS && cache; i++) get(campaign, cache, i);
    tile_code_cache_remove(cache, false);
    tile_code_cache_close(cache);
}

/* ---- a full disk ---- */

/* A small file system mounted for this process only; if that is not permitted, a limit on the size of files. */
static const char *make_small(Campaign *campaign) {
    struct rlimit small = {3000, 3000};
    char options[40];
    snprintf(options, sizeof options, "size=%d,mode=700", SMALL_DISK);
    bool own = unshare(CLONE_NEWNS) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0;
    if (own && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
        mount("tmpfs", campaign->folder, "tmpfs", 0, options) == 0)
        return "a full disk";
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    return "files that cannot grow (no disk can be mounted)";
}

static unsigned count_unfinished(const Campaign *campaign) {
    DIR *listing = opendir(campaign->folder);
    unsigned count = 0;
    for (struct dirent *item; listing && (item = readdir(listing));)
        count += strncmp(item->d_name, ".writing-", 9) == 0 || strncmp(item->d_name, "tuning.tsv.", 11) == 0;
    if (listing) closedir(listing);
    return count;
}

/* Fills the disk but for less than a page. */
static void fill_disk(const Campaign *campaign) {
    static char zeros[4096];
    char path[100];
    snprintf(path, sizeof path, "%s/ballast", campaign->folder);
    int file = open(path, O_WRONLY | O_CREAT, 0600);
    while (file >= 0 && write(file, zeros, sizeof zeros) == sizeof zeros) continue;
    if (file >= 0) close(file);
}

/* In a process of its own, with its own file system. */
static void run_full(Campaign *campaign) {
    char ballast[100];
    TileCompiler *compiler = make_compiler(campaign);
    TileCodeCache *cache = tile_code_cache_open(NULL, NULL, 0);
    unsigned value = 2, there = 0;
    if (tune_once(campaign, 0, 1) != TILE_OK) complain(campaign, "the tuning file cannot be written");
    fill_disk(campaign);
    while (value < 100 && tune_once(campaign, 0, value) == TILE_OK) value++;
    for (int i = 0; i < 200; i++) {
        launch_and_check(campaign, compiler);
        unsigned key = below(campaign, KEYS);
        put(campaign, cache, key);
        there += get(campaign, cache, key);
        tune_once(campaign, 1 + below(campaign, PROCESSES - 1), 1);
        check_tuning(campaign);
    }
    if (there > 100) complain(campaign, "the disk was not full: %u of 200 were kept", there);
    if (count_unfinished(campaign) > 1) complain(campaign, "half-written files are left"); /* 1: the lock file */
    snprintf(ballast, sizeof ballast, "%s/ballast", campaign->folder);
    struct rlimit usual = {RLIM_INFINITY, RLIM_INFINITY};
    unlink(ballast);
    setrlimit(RLIMIT_FSIZE, &usual);
    tile_code_cache_remove(cache, true);
    put(campaign, cache, 3);
    if (!get(campaign, cache, 3)) complain(campaign, "nothing is kept when there is room again");
    if (tune_once(campaign, 0, value + 1) != TILE_OK) complain(campaign, "no row is written when there is room again");
    check_tuning(campaign);
    launch_and_check(campaign, compiler);
    tile_code_cache_close(cache);
    tile_compiler_destroy(compiler);
}

static void try_full(Campaign *campaign) {
    char command[160];
    snprintf(command, sizeof command, "rm -rf %s/* %s/.writing-*", campaign->folder, campaign->folder);
    if (system(command) != 0) complain(campaign, "%s", command);
    memset(campaign->shared->rows, 0, sizeof campaign->shared->rows);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        printf("the same with %s\n", make_small(campaign));
        fflush(stdout);
        run_full(campaign);
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) complain(campaign, "the process died of it");
}

int main(int count, char **arguments) {
    Campaign campaign = {.folder = P_tmpdir "/tile-cache-XXXXXX"};
    char command[100], bytes[20];
    if (count < 2) return fprintf(stderr, "usage: tile_cache_tests KILLS [SEED]\n"), 2;
    unsigned kills = (unsigned)strtoul(arguments[1], NULL, 10);
    campaign.random = count > 2 ? (uint32_t)strtoul(arguments[2], NULL, 10) : 1;
    campaign.shared = mmap(NULL, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (campaign.shared == MAP_FAILED || !mkdtemp(campaign.folder)) return 2;
    snprintf(campaign.tuning, sizeof campaign.tuning, "%s/tuning.tsv", campaign.folder);
    snprintf(bytes, sizeof bytes, "%d", CACHE_BYTES);
    setenv("TILE_CACHE_DIR", campaign.folder, 1);
    setenv("TILE_CACHE_BYTES", bytes, 1);
    setenv("TILE_TUNING", "off", 1);
    unsigned rows = 0;
    run_killed(&campaign, kills);
    for (int i = 0; i < PROCESSES; i++) rows += campaign.shared->rows[i];
    try_full(&campaign);
    unsigned wrong = campaign.shared->wrong;
    printf("disk cache: %u processes killed, %u launches, %u puts, %u files damaged, %u rows tuned: %u wrong\n", kills,
           campaign.shared->launches, campaign.shared->puts, campaign.shared->damages, rows, wrong);
    snprintf(command, sizeof command, "rm -rf %s", campaign.folder);
    return system(command) == 0 && wrong == 0 ? 0 : 1;
}
