/* Prints the table of scripts/bench.sh: kernels of the standard library compared with the same loops in plain C, matrix
 * products with the machine's peak and with OpenBLAS, and compile times. Everything is single-threaded and measured in
 * processor time.
 *
 * usage: tile_bench PEERS STDLIB TILEC MANY ONE [PATTERN]
 *  PEERS     the shared object built from peers.c      STDLIB  directory of the standard library
 *  TILEC     the compiler, for compile times           PATTERN only lines whose name contains it
 *  MANY, ONE texts of 10,000 lines, from long_text.py: with many kernels, and with one */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/peers.h"
#include "tools/limits.h"

enum { ROUNDS = 11, MAX_TENSORS = 6 };
static const double sample_seconds = 0.004;

/* What to measure: the tensors by their dimensions (R rows, C columns, E elements; r and c are i64 tensors with as many
 * elements as there are rows, values below R and C), in the order of the kernel's parameters, then a scalar. */
typedef struct Entry {
    const char *name, *file, *kernel, *function; /* function: the value of setting f, or NULL */
    const char *tensors[MAX_TENSORS];
    int x, w, b, y; /* the tensors that a peer gets as its x, w, b, y; -1: none */
    bool index;     /* the result is i64 */
    bool has_scalar;
    double scalar;
    double bytes; /* minimum memory traffic per element of x */
} Entry;

static const Entry entries[] = {
    {"add", "elementwise", "add", NULL, {"RC", "RC", "RC"}, 0, 1, -1, 2, false, false, 0, 12},
    {"axpy", "elementwise", "axpy", NULL, {"E", "E"}, 0, -1, -1, 1, false, true, -1.7, 12},
    {"relu", "elementwise", "map", "relu", {"RC", "RC"}, 0, -1, -1, 1, false, false, 0, 8},
    {"gelu_tanh", "elementwise", "map", "gelu_tanh", {"RC", "RC"}, 0, -1, -1, 1, false, false, 0, 8},
    {"silu", "elementwise", "map", "silu", {"RC", "RC"}, 0, -1, -1, 1, false, false, 0, 8},
    {"chain", "elementwise", "chain", NULL, {"RC", "R"}, 0, -1, -1, 1, false, false, 0, 4},
    {"softmax", "softmax", "softmax", NULL, {"RC", "RC"}, 0, -1, -1, 1, false, false, 0, 8},
    {"softmax", "softmax", "softmax_passes", NULL, {"RC", "RC"}, 0, -1, -1, 1, false, false, 0, 8},
    {"softmax", "softmax", "softmax_row", NULL, {"RC", "RC"}, 0, -1, -1, 1, false, false, 0, 8},
    {"layernorm", "norm", "layernorm", NULL, {"RC", "C", "C", "RC"}, 0, 1, 2, 3, false, true, 1e-5, 8},
    {"rmsnorm", "norm", "rmsnorm", NULL, {"RC", "C", "RC"}, 0, 1, -1, 2, false, true, 1e-5, 8},
    {"sum_rows", "reduce", "sum_rows", NULL, {"RC", "R"}, 0, -1, -1, 1, false, false, 0, 4},
    {"sum_columns", "reduce", "sum_columns", NULL, {"RC", "C"}, 0, -1, -1, 1, false, false, 0, 4},
    {"argmax_rows", "reduce", "argmax_rows", NULL, {"RC", "R"}, 0, -1, -1, 1, true, false, 0, 4},
    {"logsumexp", "softmax", "logsumexp", NULL, {"RC", "R"}, 0, -1, -1, 1, false, false, 0, 4},
    {"cross_entropy", "loss", "cross_entropy", NULL, {"RC", "c", "R", "R"}, 0, -1, -1, 2, false, false, 0, 4},
    {"cross_entropy_backward",
     "loss",
     "cross_entropy_backward",
     NULL,
     {"RC", "c", "R", "R", "RC"},
     0,
     -1,
     -1,
     4,
     false,
     false,
     0,
     8},
    {"layernorm_backward",
     "norm",
     "layernorm_backward",
     NULL,
     {"RC", "RC", "C", "R", "R", "RC"},
     0,
     1,
     2,
     5,
     false,
     false,
     0,
     12},
    {"layernorm_backward_params",
     "norm",
     "layernorm_backward_params",
     NULL,
     {"RC", "RC", "R", "R", "C", "C"},
     0,
     1,
     -1,
     4,
     false,
     false,
     0,
     8},
    {"rmsnorm_backward",
     "norm",
     "rmsnorm_backward",
     NULL,
     {"RC", "RC", "C", "R", "RC"},
     0,
     1,
     2,
     4,
     false,
     false,
     0,
     12},
    {"sum_all", "reduce", "sum_all", NULL, {"RC", ""}, 0, -1, -1, 1, false, false, 0, 4},
    {"norm_all", "reduce", "norm_all", NULL, {"RC", ""}, 0, -1, -1, 1, false, false, 0, 4},
    {"cumsum_rows", "cumsum", "cumsum_rows", NULL, {"RC", "RC"}, 0, -1, -1, 1, false, false, 0, 8},
    {"cumsum_columns", "cumsum", "cumsum_columns", NULL, {"RC", "RC"}, 0, -1, -1, 1, false, false, 0, 8},
    {"take_rows", "index", "take_rows", NULL, {"RC", "r", "RC"}, 0, -1, -1, 2, false, false, 0, 8},
    {"transpose", "transpose", "transpose", NULL, {"RC", "CR"}, 0, -1, -1, 1, false, false, 0, 8},
};

/* A kernel with its tensors, ready to launch. */
typedef struct Work {
    TileLibrary *library;
    TileKernel *kernel;
    TileThreadPool *pool;
    DLTensor tensors[MAX_TENSORS];
    int64_t shapes[MAX_TENSORS][2];
    TileArg arguments[MAX_TENSORS + 1];
    size_t count;
    TileError error;
    Peer *peer;
    const float *x, *w, *b;
    float *y;
    long rows, columns;
} Work;

static bool run_tile(void *state) {
    Work *work = state;
    TileLaunchOptions options = {.struct_size = sizeof options, .error = &work->error, .threads = work->pool};
    if (tile_launch(work->kernel, work->arguments, work->count, &options) == TILE_OK) return true;
    fprintf(stderr, "%s\n", work->error.message);
    return false;
}

static bool run_peer(void *state) {
    Work *work = state;
    void *all[MAX_TENSORS];
    for (int i = 0; i < MAX_TENSORS; i++) all[i] = work->tensors[i].data;
    work->peer(work->x, work->w, work->b, work->y, work->rows, work->columns, all);
    return true;
}

static float *tensor_data(const Work *work, int index) { return index < 0 ? NULL : work->tensors[index].data; }

/* Random numbers in -2 .. 2; also touches the pages, before anything is timed. */
static bool make_tensor(Work *work, int index, const int64_t *shape, int rank, bool index_type) {
    int64_t count = 1;
    for (int i = 0; i < rank; i++) count *= work->shapes[index][i] = shape[i];
    size_t bytes = ((size_t)count * (index_type ? 8 : 4) + 63) / 64 * 64;
    float *data = aligned_alloc(64, bytes);
    if (!data) return false;
    uint32_t seed = 1 + (uint32_t)index;
    for (size_t i = 0; i < bytes / 4; i++) {
        seed = seed * 1664525 + 1013904223;
        data[i] = (float)(seed >> 8) * 0x1p-22f - 2;
    }
    work->tensors[index] = (DLTensor){.data = data,
                                      .device = {kDLCPU, 0},
                                      .ndim = rank,
                                      .dtype = {index_type ? kDLInt : kDLFloat, index_type ? 64 : 32, 1},
                                      .shape = work->shapes[index]};
    work->arguments[index] = TILE_TENSOR(&work->tensors[index]);
    work->count = (size_t)index + 1;
    return true;
}

/* Random indices below `limit`. */
static void fill_indices(Work *work, int index, long limit) {
    int64_t *data = work->tensors[index].data;
    for (int64_t i = 0; i < work->shapes[index][0]; i++)
        data[i] = (int64_t)((uint64_t)i * 2654435761u % (uint64_t)limit);
}

static void close_work(Work *work) {
    for (int i = 0; i < MAX_TENSORS; i++) free(work->tensors[i].data);
    tile_library_destroy(work->library);
}

static bool open_entry(const Bench *bench, const Entry *entry, Work *work, long rows, long columns) {
    TileSetting setting = {entry->function ? "f" : NULL, entry->function};
    *work = (Work){.pool = bench->pool, .rows = rows, .columns = columns};
    if (!bench_open(bench, &work->library, &work->kernel, entry->file, entry->kernel, &setting)) return false;
    for (int i = 0; i < MAX_TENSORS && entry->tensors[i]; i++) {
        int64_t shape[2];
        int rank = 0;
        for (const char *letter = entry->tensors[i]; *letter; letter++)
            shape[rank++] = strchr("Rrc", *letter) ? rows : *letter == 'C' ? columns : rows * columns;
        bool indices = strcmp(entry->tensors[i], "r") == 0 || strcmp(entry->tensors[i], "c") == 0;
        if (!make_tensor(work, i, shape, rank, indices || (entry->index && i == entry->y))) return false;
        if (indices) fill_indices(work, i, *entry->tensors[i] == 'r' ? rows : columns);
    }
    if (entry->has_scalar) work->arguments[work->count++] = TILE_NUMBER(entry->scalar);
    return true;
}

static bool prepare_entry(const Bench *bench, const Entry *entry, Work *work, long rows, long columns) {
    if (!open_entry(bench, entry, work, rows, columns)) return false;
    char symbol[64];
    snprintf(symbol, sizeof symbol, "peer_%s", entry->name);
    *(void **)&work->peer = dlsym(bench->peers, symbol);
    work->x = tensor_data(work, entry->x);
    work->w = tensor_data(work, entry->w);
    work->b = tensor_data(work, entry->b);
    work->y = tensor_data(work, entry->y);
    return work->peer != NULL;
}

static bool bench_entry(const Bench *bench, const Entry *entry, const char *size, long rows, long columns, int rounds) {
    if (!bench_wanted(bench, entry->kernel) && !bench_wanted(bench, entry->name)) return true;
    Work work;
    TileCandidate candidates[] = {{run_peer, &work, 0, 0}, {run_tile, &work, 0, 0}};
    bool good = prepare_entry(bench, entry, &work, rows, columns) &&
                tile_measure(candidates, 2, TILE_CLOCK_OF_THREAD, rounds, sample_seconds);
    double elements = (double)rows * (double)columns;
    if (good)
        printf("| %s%s%s | %s | %.3f | %.3f | %.1f | %.2f |\n", entry->kernel, entry->function ? " " : "",
               entry->function ? entry->function : "", size, 1e9 * candidates[1].seconds / elements,
               1e9 * candidates[0].seconds / elements, 1e-9 * entry->bytes * elements / candidates[1].seconds,
               candidates[1].ratio);
    else
        printf("| %s | %s | failed | | | |\n", entry->kernel, size);
    fflush(stdout);
    close_work(&work);
    return good;
}

static bool bench_kernels(const Bench *bench) {
    printf("\n## Kernels against clang on the same loop in C, f32, one thread\n\n"
           "| kernel | size | Tile ns/element | clang | GB/s | Tile / clang |\n|---|---|---|---|---|---|\n");
    bool good = true;
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        good &= bench_entry(bench, &entries[i], "L2: 64 x 1024", 64, 1024, ROUNDS);
        good &= bench_entry(bench, &entries[i], "memory: 65536 x 1024", 65536, 1024, 5);
    }
    return good;
}

/* ---- matrix products ---- */

static bool run_peak(void *state) { return tile_fma_flops(*(long *)state) > 0; }

typedef struct Gemm {
    Work *work;
    Sgemm *sgemm;
    int size;
} Gemm;

static bool run_sgemm(void *state) {
    Gemm *gemm = state;
    int n = gemm->size;
    enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111 };
    gemm->sgemm(ROW_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, n, n, n, 1, gemm->work->tensors[0].data, n,
                gemm->work->tensors[1].data, n, 0, gemm->work->tensors[2].data, n);
    return true;
}

/* OpenBLAS, single-threaded; or NULL if it is not installed. */
static Sgemm *find_openblas(void) {
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!library) return NULL;
    void (*set_threads)(int);
    Sgemm *sgemm;
    *(void **)&set_threads = dlsym(library, "openblas_set_num_threads");
    *(void **)&sgemm = dlsym(library, "cblas_sgemm");
    if (set_threads) set_threads(1);
    return sgemm;
}

static bool bench_matmul_size(const Bench *bench, Sgemm *openblas, int size) {
    Work work = {.pool = bench->pool};
    TileSetting none = {NULL, NULL};
    int64_t shape[2] = {size, size};
    bool good = bench_open(bench, &work.library, &work.kernel, "matmul", "matmul", &none);
    for (int i = 0; i < 3 && good; i++) good = make_tensor(&work, i, shape, 2, false);
    double flops = 2.0 * size * size * size;
    long peak_rounds = (long)(flops / tile_fma_flops(1)) + 1;
    Gemm gemm = {&work, openblas, size};
    TileCandidate candidates[] = {{run_peak, &peak_rounds, 0, 0}, {run_tile, &work, 0, 0}, {run_sgemm, &gemm, 0, 0}};
    good = good &&
           tile_measure(candidates, openblas ? 3 : 2, TILE_CLOCK_OF_THREAD, size > 1500 ? 5 : ROUNDS, sample_seconds);
    if (!good)
        printf("| %d | failed | | | |\n", size);
    else if (openblas)
        printf("| %d | %.1f | %.0f %% | %.1f | %.2f |\n", size, 1e-9 * flops / candidates[1].seconds,
               100 / candidates[1].ratio, 1e-9 * flops / candidates[2].seconds,
               candidates[1].ratio / candidates[2].ratio);
    else
        printf("| %d | %.1f | %.0f %% | not installed | |\n", size, 1e-9 * flops / candidates[1].seconds,
               100 / candidates[1].ratio);
    fflush(stdout);
    close_work(&work);
    return good;
}

static bool bench_matmul(const Bench *bench, Sgemm *openblas) {
    if (!bench_wanted(bench, "matmul")) return true;
    printf(
        "\n## Matrix product, f32, square, one thread\n\n"
        "| size | Tile GFLOP/s | of the FMA peak | OpenBLAS GFLOP/s | Tile / OpenBLAS time |\n|---|---|---|---|---|\n");
    static const int sizes[] = {64, 128, 256, 512, 1024, 2048};
    bool good = true;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) good &= bench_matmul_size(bench, openblas, sizes[i]);
    return good;
}

/* ---- general code ---- */

/* With a limit of one variant: the first launch, on a view with a negative stride, gets that variant; all later ones
 * run the general code. */
static bool use_up_variants(Work *work) {
    DLTensor *first = &work->tensors[0], kept = *first;
    int64_t strides[2] = {0, -1}, count = 1;
    for (int i = 0; i < first->ndim; i++) count *= first->shape[i];
    strides[0] = first->ndim == 2 ? -first->shape[1] : -1;
    first->strides = strides;
    first->data = (float *)first->data + count - 1;
    bool good = run_tile(work);
    *first = kept;
    return good && run_tile(work);
}

static bool bench_general_entry(const Bench *bench, const Bench *limited, const Entry *entry, long rows, long columns) {
    if (!bench_wanted(bench, "general") && !bench_wanted(bench, entry->kernel)) return true;
    Work special, general = {0};
    TileCandidate candidates[] = {{run_tile, &special, 0, 0}, {run_tile, &general, 0, 0}};
    bool good = open_entry(bench, entry, &special, rows, columns) &&
                open_entry(limited, entry, &general, rows, columns) && use_up_variants(&general) &&
                tile_measure(candidates, 2, TILE_CLOCK_OF_THREAD, ROUNDS, sample_seconds);
    double elements = (double)rows * (double)columns;
    if (good)
        printf("| %s%s%s | %.3f | %.3f | %.2f |\n", entry->kernel, entry->function ? " " : "",
               entry->function ? entry->function : "", 1e9 * candidates[0].seconds / elements,
               1e9 * candidates[1].seconds / elements, candidates[1].ratio);
    else
        printf("| %s | failed | | |\n", entry->kernel);
    fflush(stdout);
    close_work(&special);
    close_work(&general);
    return good;
}

static bool bench_general(const Bench *bench) {
    static const Entry matmul = {"matmul", "matmul", "matmul", NULL, {"RC", "CR", "RR"}, 0, 1, -1, 2,
                                 false,    false,    0,        8};
    enum { ROWS = 64, COLUMNS = 1024 };
    TileSettings one = {.struct_size = sizeof one, .variant_limit = 1};
    TileCompilerOptions options = {
        .struct_size = sizeof options, .import_paths = &bench->stdlib, .import_path_count = 1, .settings = &one};
    Bench limited = *bench;
    if (tile_compiler_create(&options, &limited.compiler) != TILE_OK) return false;
    printf("\n## General code on contiguous tensors, f32, %d x %d, one thread\n\n"
           "| kernel | special ns/element | general | general / special |\n|---|---|---|---|\n",
           ROWS, COLUMNS);
    bool good = bench_general_entry(bench, &limited, &matmul, ROWS, COLUMNS);
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++)
        good &= bench_general_entry(bench, &limited, &entries[i], ROWS, COLUMNS);
    tile_compiler_destroy(limited.compiler);
    return good;
}

/* ---- compile times ---- */

/* `seconds` (may be NULL): the processor time. */
static bool run_program(char **words, double *seconds) {
    fflush(stdout); /* or the child writes the buffer, too */
    pid_t process = fork();
    if (process == 0) {
        if (!freopen("/dev/null", "w", stdout)) _exit(127);
        execvp(*words, words);
        _exit(127);
    }
    int status;
    struct rusage usage;
    if (process <= 0 || wait4(process, &status, 0, &usage) != process || status != 0) return false;
    if (seconds)
        *seconds = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                   1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    return true;
}

static bool run_command(void *state) { return run_program(state, NULL); }

/* Processor time, which other load disturbs less: the median and the minimum of many runs. */
static bool print_check(const Bench *bench, const char *words, char *text) {
    enum { RUNS = 31 };
    char *command[] = {(char *)bench->tilec, "check", text, NULL};
    double seconds[RUNS], least = 0;
    for (int i = 0; i < RUNS; i++) {
        if (!run_program(command, &seconds[i])) return false;
        if (i == 0 || seconds[i] < least) least = seconds[i];
    }
    printf("| `tilec check` of 10,000 lines, %s: processor time (the least: %.1f) | %.1f |\n", words, 1e3 * least,
           1e3 * tile_median(seconds, RUNS));
    return true;
}

/* Milliseconds from text to loaded code of a softmax, with its steps, in a warm process. */
static void print_compile_steps(const Bench *bench) {
    enum { COMPILES = 15 };
    double total[COMPILES], steps[TILE_STEP_COUNT][COMPILES];
    for (int i = 0; i < COMPILES; i++) {
        Work work;
        total[i] = 0;
        if (!prepare_entry(bench, &entries[6], &work, 4, 1000) || !run_tile(&work)) return;
        TileStepTimes times = tile_library_times(work.library);
        for (int step = 0; step < TILE_STEP_COUNT; step++) total[i] += steps[step][i] = 1e3 * times.seconds[step];
        close_work(&work);
    }
    printf("| compile part of softmax, in a warm process | %.1f |\n", tile_median(total, COMPILES));
    for (int step = 0; step < TILE_STEP_COUNT; step++)
        printf("| – %s | %.2f |\n", tile_step_name((TileStep)step), tile_median(steps[step], COMPILES));
}

static bool bench_compile(const Bench *bench) {
    if (!bench_wanted(bench, "compile")) return true;
    char file[4096], source[] = "bench/peers.c", object[] = "/dev/null";
    snprintf(file, sizeof file, "%s/softmax.tile:softmax", bench->stdlib);
    char *tilec[] = {(char *)bench->tilec, "run", file, "x=rand:f32[64,1000]", "y=@", NULL};
    char *clang[] = {"clang-22", "-I.",  "-O3", "-march=native", "-ffast-math", "-DONLY_SOFTMAX",
                     "-c",       source, "-o",  object,          NULL};
    TileCandidate candidates[] = {{run_command, clang, 0, 0}, {run_command, tilec, 0, 0}};
    printf("\n## Compile time, ms\n\n| what | median |\n|---|---|\n");
    if (!tile_measure(candidates, 2, TILE_CLOCK_ON_WALL, 15, 0)) {
        printf("| failed | |\n");
        return false;
    }
    printf(
        "| `tilec run` of softmax, whole process | %.1f |\n| clang-22 -O3 -c of the C of it, whole process | %.1f |\n",
        1e3 * candidates[1].seconds, 1e3 * candidates[0].seconds);
    print_compile_steps(bench);
    return print_check(bench, "many kernels", bench->long_texts[0]) &&
           print_check(bench, "one kernel", bench->long_texts[1]);
}

int main(int count, char **arguments) {
    if (count < 6 || count > 7) {
        fprintf(stderr, "usage: tile_bench PEERS STDLIB TILEC MANY ONE [PATTERN]\n");
        return 2;
    }
    Bench bench = {.stdlib = arguments[2],
                   .tilec = arguments[3],
                   .long_texts = {arguments[4], arguments[5]},
                   .pattern = count > 6 ? arguments[6] : NULL};
    bench.peers = dlopen(arguments[1], RTLD_NOW);
    if (!bench.peers) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    TileCompilerOptions options = {
        .struct_size = sizeof options, .import_paths = &bench.stdlib, .import_path_count = 1};
    TileThreadPoolOptions one = {.struct_size = sizeof one, .threads = 1};
    if (tile_compiler_create(&options, &bench.compiler) != TILE_OK) return 2;
    if (tile_thread_pool_create(&one, &bench.pool) != TILE_OK) return 2;
    bool good = bench_compile(&bench);
    Sgemm *openblas = find_openblas();
    good &= bench_matmul(&bench, openblas);
    good &= bench_products(&bench, openblas);
    good &= bench_kernels(&bench);
    good &= bench_general(&bench);
    tile_thread_pool_destroy(bench.pool);
    tile_compiler_destroy(bench.compiler);
    return good ? 0 : 1;
}
