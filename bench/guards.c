/* The overhead of a launch before the kernel's own code runs: an empty call, tile_prepare (reads the arguments, finds
 * the variant, checks) and tile_launch of code that does nothing, for four tensors of rank four.
 *
 * usage: tile_bench_guards [CALLS [same|varying]]
 * With CALLS, makes so many calls once and prints nothing: for `valgrind --tool=cachegrind --cache-sim=no`, whose
 * instruction counts do not depend on other load. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "launch/image.h"

enum { TENSORS = 4, RANK = 4, ROUNDS = 15, SHAPES = 2 };

static const char *const names[RANK] = {"A", "B", "C", "D"};
#define PARAMETER(id, how)                                                                                             \
    {                                                                                                                  \
        .name = id, .type_text = "f32", .dimensions = names, .kind = TILE_PARAMETER_TENSOR, .access = how,             \
        .rank = RANK, .type = TILE_HOST_F32, .generic = -1                                                             \
    }
static const TileImageParameter parameters[TENSORS] = {
    PARAMETER("a", TILE_PARAMETER_IN), PARAMETER("b", TILE_PARAMETER_IN), PARAMETER("c", TILE_PARAMETER_IN),
    PARAMETER("y", TILE_PARAMETER_OUT)};
static const TileImageSignature signature = {.name = "four",
                                             .text = "four(a: in f32[A, B, C, D], b: .., c: .., y: out ..)",
                                             .parameters = parameters,
                                             .parameter_count = TENSORS};

/* The host program that the compiler makes for a grid of tiles(A, 1), tiles(B, 1), tiles(C, 4), tiles(D, 16). */
#define DIM(axis)                                                                                                      \
    { .op = TILE_HOST_DIM, .type = TILE_HOST_I64, .a = 0, .b = axis }
#define CONST(value)                                                                                                   \
    { .op = TILE_HOST_CONST, .type = TILE_HOST_I64, .bits = value }
#define BINARY(name, x, y)                                                                                             \
    { .op = TILE_HOST_##name, .type = TILE_HOST_I64, .from = TILE_HOST_I64, .a = x, .b = y, .c = x }
static const TileHostInstruction host[] = {DIM(0),    DIM(1),
                                           DIM(2),    DIM(3),
                                           CONST(3),  BINARY(ADD, 2, 4),
                                           CONST(4),  BINARY(DIV, 5, 6),
                                           CONST(15), BINARY(ADD, 3, 8),
                                           CONST(16), BINARY(DIV, 9, 10)};

static void do_nothing(const uint64_t *slots, int64_t begin, int64_t end, void *scratch) {
    (void)slots, (void)begin, (void)end, (void)scratch;
}
static const TileImagePhase phases[] = {{.entry = do_nothing, .rank = RANK, .extents = {0, 1, 7, 11}}};

static void destroy_code(TileImageCode *code) { free(code); }

/* Like code for CPUs: has asked for all strides, and requires that the last ones are 1 element. */
static tile_status compile(void *state, uint32_t kernel, const TileImageRequest *request, TileImageCode **code,
                           TileReport **report) {
    static TileImageDimension dimensions[(TENSORS - 1) * RANK];
    static const uint8_t order[TENSORS] = {0, 1, 2, 3};
    (void)state, (void)kernel, (void)report;
    TileImageCode *made = calloc(1, sizeof *made);
    if (!made) return TILE_OUT_OF_MEMORY;
    for (uint16_t i = 0; i < (TENSORS - 1) * RANK; i++)
        dimensions[i] = (TileImageDimension){
            .parameter = 1 + i / RANK, .axis = i % RANK, .expected = i % RANK, .text = names[i % RANK]};
    *made = (TileImageCode){.host = host,
                            .host_count = sizeof host / sizeof *host,
                            .dimensions = dimensions,
                            .dimension_count = (TENSORS - 1) * RANK,
                            .phases = phases,
                            .phase_count = 1,
                            .order = order,
                            .order_count = TENSORS,
                            .destroy = destroy_code};
    for (int i = 0; i < TENSORS; i++) {
        made->asked[i] = UINT64_C(0x3333) << 16;
        made->need[i] = request->facts[i] & made->asked[i];
    }
    *code = made;
    return TILE_OK;
}

static void keep(void *state) { (void)state; }

typedef tile_status Call(TileKernel *kernel, const TileArg *arguments, size_t count, const TileLaunchOptions *options);

static __attribute__((noinline)) tile_status call_nothing(TileKernel *kernel, const TileArg *arguments, size_t count,
                                                          const TileLaunchOptions *options) {
    __asm__ volatile("" : : "r"(kernel), "r"(arguments), "r"(count), "r"(options) : "memory");
    return TILE_OK;
}

typedef struct Calls {
    TileKernel *kernel;
    TileArg arguments[SHAPES][TENSORS];
    TileLaunchOptions options;
    bool vary;
} Calls;

static bool make_calls(Calls *calls, Call *volatile call, long count) {
    bool good = true;
    for (long i = 0; i < count; i++)
        good &=
            call(calls->kernel, calls->arguments[calls->vary ? i % SHAPES : 0], TENSORS, &calls->options) == TILE_OK;
    return good;
}

static double now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* The minimum of several repetitions: other load only adds time. */
static double measure(Calls *calls, Call *call) {
    enum { COUNT = 100000 };
    double best = 1e30;
    for (int round = 0; round < ROUNDS; round++) {
        double begin = now_ns();
        if (!make_calls(calls, call, COUNT)) return -1;
        double each = (now_ns() - begin) / COUNT;
        best = each < best ? each : best;
    }
    return best;
}

static void print_table(Calls *calls) {
    static const struct {
        const char *name;
        Call *call;
        bool vary;
    } rows[] = {{"a call that does nothing", call_nothing, false},
                {"tile_prepare, the same arguments", tile_prepare, false},
                {"tile_prepare, two shapes alternately", tile_prepare, true},
                {"tile_launch, the same arguments", tile_launch, false},
                {"tile_launch, two shapes alternately", tile_launch, true}};
    double empty = 0;
    printf("\n## Guard and look-up, four tensors of rank four, one thread\n\n| call | ns | times an empty call "
           "|\n|---|---|---|\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        calls->vary = rows[i].vary;
        double each = measure(calls, rows[i].call);
        if (i == 0) empty = each;
        printf("| %s | %.1f | %.0f |\n", rows[i].name, each, each / empty);
    }
}

int main(int count, char **words) {
    static float memory[TENSORS][1024] __attribute__((aligned(64)));
    static int64_t shapes[SHAPES][RANK] = {{1, 2, 4, 16}, {1, 3, 5, 17}};
    static int64_t strides[SHAPES][RANK] = {{128, 64, 16, 1}, {255, 85, 17, 1}};
    TileImageSource source = {.compile = compile, .destroy = keep};
    TileLibrary *library;
    TileThreadPool *pool;
    TileThreadPoolOptions one = {.struct_size = sizeof one, .threads = 1};
    if (tile_library_create(&signature, 1, source, &library) != TILE_OK) return 2;
    if (tile_thread_pool_create(&one, &pool) != TILE_OK) return 2;
    DLTensor tensors[SHAPES][TENSORS];
    Calls calls = {.kernel = tile_library_kernel_at(library, 0),
                   .options = {.struct_size = sizeof calls.options, .threads = pool}};
    for (int s = 0; s < SHAPES; s++)
        for (int i = 0; i < TENSORS; i++) {
            tensors[s][i] = (DLTensor){.data = memory[i],
                                       .device = {kDLCPU, 0},
                                       .ndim = RANK,
                                       .dtype = {kDLFloat, 32, 1},
                                       .shape = shapes[s],
                                       .strides = strides[s]};
            calls.arguments[s][i] = TILE_TENSOR(&tensors[s][i]);
        }
    calls.vary = count > 2 && strcmp(words[2], "varying") == 0;
    bool good = true;
    for (int s = 0; s < SHAPES; s++) good &= tile_launch(calls.kernel, calls.arguments[s], TENSORS, NULL) == TILE_OK;
    if (count > 1)
        good &= make_calls(&calls, tile_prepare, atol(words[1]));
    else
        print_table(&calls);
    tile_thread_pool_destroy(pool);
    tile_library_destroy(library);
    return good ? 0 : 1;
}
