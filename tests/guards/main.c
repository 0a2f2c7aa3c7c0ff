/* Random launches: whatever came before, a launch gives the same as the general variant, and the number of compilations
 * is limited; tensors whose offsets are near 2**31, below and above; and libraries that are created, launched and
 * destroyed, without leaks.
 *
 * usage: tile_guard_tests [--jobs=N] SEQUENCES MODULES [SEED [FIRST]] sequences FIRST .. of the seed
 *  --jobs   N sequences at once, by default as many as there are processors */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/kernels/granted.h"
#include "tile/tile.h"

enum { LAUNCHES = 24, MOST = 40, ROOM = 3 * MOST * MOST + 64, TYPES = 2, LIMIT = 4 };

static const char text[] =
    "/// y = x * w + m: by rows, by columns, from anywhere.\n"
    "kernel mix[T: f16 | f32](x: in T[M, N], w: in T[N], y: out T[M, N], s: out f32[M]) tune BN in {16} {\n"
    "    grid m in tiles(M, 2) {\n"
    "        var total = zeros[2](f32)\n"
    "        for n in tiles(N, BN) {\n"
    "            let v = f32(x[m, n]) * f32(w[n])[_, :]\n"
    "            y[m, n] = T(v + 1)\n"
    "            total = total + sum(v, axis = 1)\n"
    "        }\n"
    "        s[m] = total\n"
    "    }\n"
    "}\n";

static uint32_t state;
static uint32_t below(uint32_t bound) {
    state = state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(state >> 4) * bound >> 28);
}

/* A tensor somewhere in its memory. */
typedef struct Place {
    DLTensor tensor;
    int64_t shape[2], strides[2];
} Place;

static const DLDataType types[TYPES] = {{kDLFloat, 32, 1}, {kDLFloat, 16, 1}};

/* Random strides that stay in the memory and, for outputs, give each element its own address. */
static void put(Place *place, char *memory, DLDataType type, int rank, const int64_t *shape, bool written) {
    int64_t rows = rank == 2 ? shape[0] : 1, columns = shape[rank - 1], bytes = type.bits / 8, first = below(9);
    int64_t column = 1 + below(2) * below(2), row = columns * column + below(3);
    if (rank == 2 && below(4) == 0) row = 1, column = rows + below(3); /* column-major */
    if (!written && below(5) == 0) row = 0;
    if (!written && below(6) == 0) column = 0;
    if (below(6) == 0 && columns) first += (columns - 1) * column, column = -column;
    bool plain = below(3) == 0;
    place->shape[0] = shape[0];
    place->shape[rank - 1] = columns;
    place->strides[0] = row;
    place->strides[rank - 1] = column;
    place->tensor = (DLTensor){.data = memory + (plain ? 0 : first * bytes),
                               .device = {kDLCPU, 0},
                               .ndim = rank,
                               .dtype = type,
                               .shape = place->shape,
                               .strides = plain ? NULL : place->strides};
}

typedef struct Memory {
    _Alignas(128) char x[4 * ROOM], w[4 * ROOM], y[4 * ROOM], s[4 * ROOM];
} Memory;

static void fill(Memory *memory) {
    memset(memory, 0, sizeof *memory);
    for (int i = 0; i < ROOM; i++) { /* bytes that are small numbers in both types */
        ((uint16_t *)(void *)memory->x)[2 * i + 1] = (uint16_t)(0x3c00 + below(0x400));
        ((uint16_t *)(void *)memory->w)[2 * i + 1] = (uint16_t)(0x3c00 + below(0x400));
        ((uint16_t *)(void *)memory->x)[2 * i] = (uint16_t)(0x3800 + below(0x100));
        ((uint16_t *)(void *)memory->w)[2 * i] = (uint16_t)(0x3800 + below(0x100));
    }
}

static void print_place(const char *name, const Place *place) {
    const DLTensor *tensor = &place->tensor;
    printf("     %s: f%d", name, tensor->dtype.bits);
    for (int i = 0; i < tensor->ndim; i++)
        printf(", %lld elements of stride %lld", (long long)place->shape[i], (long long)place->strides[i]);
    printf("%s\n", tensor->strides ? "" : ", which are not given");
}

static const char *const names[] = {"x", "w", "y", "s"};

static void print_launch(const char *what, const Place *places) {
    printf("FAIL: %s\n", what);
    for (int i = 0; i < 4; i++) print_place(names[i], &places[i]);
}

/* A failure is printed. */
static bool launch(TileLibrary *library, Place *places) {
    TileKernel *kernel;
    TileArg arguments[4];
    TileError error = {.message = ""};
    TileLaunchOptions options = {.struct_size = sizeof options, .error = &error};
    for (int i = 0; i < 4; i++) arguments[i] = TILE_TENSOR(&places[i].tensor);
    tile_status status = tile_library_kernel(library, NULL, &kernel);
    if (status == TILE_OK) status = tile_launch(kernel, arguments, 4, &options);
    if (status != TILE_OK) print_launch(error.message[0] ? error.message : tile_status_text(status), places);
    return status == TILE_OK;
}

static bool same_launch(TileLibrary *guarded, TileLibrary *general, Memory *memory, char *results) {
    Place places[4];
    int64_t shape[2] = {below(MOST), below(4) ? below(MOST) : below(3)};
    DLDataType type = types[below(TYPES)];
    put(&places[0], memory->x, type, 2, shape, false);
    put(&places[1], memory->w, type, 1, shape + 1, false);
    put(&places[2], memory->y, type, 2, shape, true);
    put(&places[3], memory->s, types[0], 1, shape, true);
    size_t half = sizeof memory->y;
    if (!launch(guarded, places)) return false;
    memcpy(results, memory->y, half);
    memcpy(results + half, memory->s, half);
    memset(memory->y, 0, half);
    memset(memory->s, 0, half);
    if (!launch(general, places)) return false;
    bool same = memcmp(results, memory->y, half) == 0 && memcmp(results + half, memory->s, half) == 0;
    if (!same) print_launch("other bits than the general variant gives", places);
    memset(memory->y, 0, half);
    memset(memory->s, 0, half);
    return same;
}

static bool run_sequence(TileCompiler *compiler, TileLibrary *general, Memory *memory, char *results) {
    TileLibrary *library;
    TileKernel *kernel;
    TileKernelStats stats;
    if (tile_compile(compiler, text, sizeof text - 1, NULL, &library, NULL) != TILE_OK) return false;
    fill(memory);
    bool good = tile_library_kernel(library, NULL, &kernel) == TILE_OK;
    for (int i = 0; i < LAUNCHES && good; i++) good = same_launch(library, general, memory, results);
    if (good) tile_kernel_stats(kernel, &stats);
    if (good && stats.variants > TYPES * (LIMIT + 1)) {
        printf("FAIL: %d variants were compiled, and the limit is %d for each of %d types and a general one\n",
               (int)stats.variants, LIMIT, TYPES);
        good = false;
    }
    tile_library_destroy(library);
    return good;
}

static TileCompiler *make_compiler(void) {
    TileCompiler *compiler = NULL;
    TileSettings settings = {.struct_size = sizeof settings, .variant_limit = LIMIT};
    TileCompilerOptions options = {.struct_size = sizeof options, .settings = &settings};
    if (tile_compiler_create(&options, &compiler) != TILE_OK) printf("FAIL: no compiler can be made\n");
    return compiler;
}

/* What the processes that run sequences share. */
typedef struct Sequences {
    uint32_t seed;
    long end;
    _Atomic long next; /* the next sequence to run */
    _Atomic long passed, failed;
} Sequences;

/* In a process of its own. */
static void take_sequences(Sequences *all) {
    TileCompiler *compiler = make_compiler();
    TileLibrary *general = NULL;
    Memory *memory = aligned_alloc(128, (sizeof *memory + 127) / 128 * 128);
    char *results = malloc(2 * sizeof memory->y);
    bool good = compiler && memory && results &&
                tile_compile(compiler, text, sizeof text - 1, NULL, &general, NULL) == TILE_OK &&
                grant_to_library(general, GRANT_NOTHING);
    for (long i; good && !all->failed && (i = all->next++) < all->end;) {
        state = all->seed * 2654435761u + (uint32_t)i * 40503u + 1;
        good = run_sequence(compiler, general, memory, results);
        if (good)
            all->passed++;
        else
            printf("FAIL: that was sequence %ld of seed %u\n", i, (unsigned)all->seed);
    }
    all->failed += !good;
    tile_library_destroy(general);
    tile_compiler_destroy(compiler);
    free(memory);
    free(results);
}

static bool run_sequences(uint32_t seed, long first, long count, long jobs) {
    Sequences *all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status;
    if (all == MAP_FAILED) return false;
    *all = (Sequences){.seed = seed, .end = first + count, .next = first};
    for (long i = 0; i < jobs && i < count; i++) {
        fflush(stdout);
        if (fork()) continue;
        take_sequences(all);
        fflush(stdout);
        _exit(0);
    }
    while (wait(&status) > 0) all->failed += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    printf("%ld of %ld sequences of %d launches%s\n", all->passed, count, LAUNCHES, all->failed ? ": one failed" : "");
    return !all->failed && all->passed == count;
}

/* ---- offsets near 2**31 ----
 *
 * FAR elements, STEP elements apart: the last byte of the last one is the last below 2**31. */

enum { FAR = 234, STEP = 2304167 };
static const int64_t steps[] = {1, 5, STEP, STEP + 1, 2 * STEP, 3 * STEP, -1, -STEP, -STEP - 1, -3 * STEP};

static const char far_text[] =
    "kernel spread(x: in f32[N], y: out f32[N]) { grid n in tiles(N, 32) { y[n] = x[n] + 1 } }\n"
    "kernel pick(x: in f32[M, N], at: in i64[M], y: out f32[N, M]) {\n"
    "    grid (n, m) in (N, tiles(M, 32)) { y[n, m] = x[at[m], n] + 1 else 0 }\n"
    "}\n";

static const DLDataType index_type = {kDLInt, 64, 1};

/* FAR elements from `first` on, `step` apart; as rows of one element if `rank` is 2. */
static DLTensor far_tensor(Place *place, float *first, int64_t step, int rank) {
    place->shape[0] = FAR;
    place->shape[1] = place->strides[1] = 1;
    place->strides[0] = step;
    return (DLTensor){.data = first,
                      .device = {kDLCPU, 0},
                      .ndim = rank,
                      .dtype = types[0],
                      .shape = place->shape,
                      .strides = place->strides};
}

static bool are_next(const char *name, int64_t from, int64_t to, const float *x, const float *y, bool backwards) {
    for (int64_t i = 0; i < FAR; i++) {
        float wanted = x[(backwards ? FAR - 1 - i : i) * from] + 1;
        if (y[i * to] != wanted)
            return printf("%s: from %ld to %ld apart: element %ld is %g instead of %g\n", name, (long)from, (long)to,
                          (long)i, (double)y[i * to], (double)wanted),
                   false;
    }
    return true;
}

/* Copies between tensors with these steps; `near` and `far` are their first elements. */
static bool move_far(TileLibrary *library, int64_t from, int64_t to, float *near, float *far) {
    static int64_t at[FAR];
    Place places[2];
    TileKernel *spread, *pick;
    int64_t count = FAR, row[2] = {1, FAR}, row_strides[2] = {FAR, 1};
    DLTensor index = {.data = at, .device = {kDLCPU, 0}, .ndim = 1, .dtype = index_type, .shape = &count};
    DLTensor x = far_tensor(&places[0], near, from, 1), y = far_tensor(&places[1], far, to, 1);
    TileArg one[] = {TILE_TENSOR(&x), TILE_TENSOR(&y)};
    for (int64_t i = 0; i < FAR; i++) {
        near[i * from] = (float)i;
        at[i] = FAR - 1 - i;
    }
    if (tile_library_kernel(library, "spread", &spread) != TILE_OK || tile_launch(spread, one, 2, NULL) != TILE_OK ||
        !are_next("spread", from, to, near, far, false))
        return false;
    x.ndim = 2;
    y.ndim = 2;
    y.shape = row;
    row_strides[1] = to;
    y.strides = row_strides;
    TileArg two[] = {TILE_TENSOR(&x), TILE_TENSOR(&index), TILE_TENSOR(&y)};
    return tile_library_kernel(library, "pick", &pick) == TILE_OK && tile_launch(pick, two, 3, NULL) == TILE_OK &&
           are_next("pick", from, to, near, far, true);
}

static float *begin_of(float *memory, int64_t step) { return step < 0 ? memory - (FAR - 1) * step : memory; }

static bool run_far_on(TileCompiler *compiler, const char *target, uint32_t flags, float *memory, size_t floats) {
    TileLibrary *library;
    TileKernel *kernel;
    TileKernelStats stats;
    TileCompileOptions options = {.struct_size = sizeof options, .target = target, .flags = flags};
    if (tile_compile(compiler, far_text, sizeof far_text - 1, &options, &library, NULL) != TILE_OK) return false;
    bool good = true;
    uint64_t before = 0;
    for (size_t i = 0; i < sizeof steps / sizeof *steps && good; i++) {
        float *there = begin_of(memory + floats, steps[i]);
        good = move_far(library, steps[i], 2, there, memory) && move_far(library, 2, steps[i], memory, there);
        if (!good || tile_library_kernel(library, "pick", &kernel) != TILE_OK) break;
        tile_kernel_stats(kernel, &stats);
        if (steps[i] == STEP) before = stats.variants;
        if (!flags || steps[i] != STEP + 1 || stats.variants > before) continue;
        printf("%s: offsets from 2**31 on are served by code for less\n", target);
        good = false;
    }
    tile_library_destroy(library);
    return good;
}

static bool run_far(TileCompiler *compiler) {
    size_t floats = 4096, bytes = (floats + (FAR - 1) * 3 * (size_t)STEP + 1) * sizeof(float);
    float *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return printf("no address space of %zu bytes\n", bytes), false;
    bool good = run_far_on(compiler, "cpu", 0, memory, floats) &&
                run_far_on(compiler, "avx512", TILE_COMPILE_EMULATE, memory, floats) &&
                run_far_on(compiler, "sm_90a", TILE_COMPILE_EMULATE, memory, floats);
    munmap(memory, bytes);
    return good;
}

/* ---- modules ---- */

static long resident_bytes(void) {
    long size = 0, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld %ld", &size, &pages) != 2) pages = 0;
    if (file) fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

static bool load_once(TileCompiler *compiler, Memory *memory) {
    TileLibrary *library;
    Place places[4];
    int64_t shape[2] = {3, 5};
    if (tile_compile(compiler, text, sizeof text - 1, NULL, &library, NULL) != TILE_OK) return false;
    state = 7;
    put(&places[0], memory->x, types[0], 2, shape, false);
    put(&places[1], memory->w, types[0], 1, shape + 1, false);
    put(&places[2], memory->y, types[0], 2, shape, true);
    put(&places[3], memory->s, types[0], 1, shape, true);
    bool good = launch(library, places);
    tile_library_destroy(library);
    return good;
}

/* Memory use after the first tenth is the baseline: growth is what the others add. */
static bool run_modules(TileCompiler *compiler, long count) {
    enum { SLACK = 2 << 20 };
    static Memory memory;
    long warm = 0, first = count / 10;
    for (long i = 0; i < count; i++) {
        if (i == first) warm = resident_bytes();
        if (!load_once(compiler, &memory)) return printf("FAIL: module %ld does not launch\n", i), false;
    }
    long grown = count ? resident_bytes() - warm : 0;
    printf("%ld modules loaded, launched and unloaded: %ld KiB more than after %ld of them%s\n", count, grown / 1024,
           first, grown <= SLACK ? "" : ", which is too much");
    return grown <= SLACK;
}

int main(int argument_count, char **arguments) {
    char folder[] = P_tmpdir "/tile-guards-XXXXXX", command[64];
    long jobs = sysconf(_SC_NPROCESSORS_ONLN);
    if (argument_count > 1 && strncmp(arguments[1], "--jobs=", 7) == 0) {
        jobs = strtol(arguments[1] + 7, NULL, 10);
        argument_count--;
        arguments++;
    }
    if (argument_count < 3 || jobs < 1)
        return fprintf(stderr, "usage: tile_guard_tests [--jobs=N] SEQUENCES MODULES [SEED [FIRST]]\n"), 2;
    uint32_t seed = argument_count > 3 ? (uint32_t)strtoul(arguments[3], NULL, 10) : 1;
    long first = argument_count > 4 ? strtol(arguments[4], NULL, 10) : 0;
    if (!mkdtemp(folder)) return 2;
    setenv("TILE_CACHE_DIR", folder, 1); /* so that the same few variants are reused */
    bool good = run_sequences(seed, first, strtol(arguments[1], NULL, 10), jobs);
    TileCompiler *compiler = good ? make_compiler() : NULL;
    good = compiler && run_far(compiler) && run_modules(compiler, strtol(arguments[2], NULL, 10));
    tile_compiler_destroy(compiler);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) == 0 && good ? 0 : 1;
}
