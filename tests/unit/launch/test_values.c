/* Code for the values of scalars: which launch asks for it, what it serves, and how much of it there is. */
#include <criterion/criterion.h>
#include <time.h>

#include "fixture.h"
#include "launch/guard.h"
#include "launch/variants.h"
#include "parameter.h"

/* apart(x: in f32[N], y: out f32[N], step: i64, from: i64): y gets step and from, as the code has them. */
static const char *const extents[] = {"N"};
static const TileImageParameter parameters[] = {
    F32_TENSOR("x", IN, extents),
    F32_TENSOR("y", OUT, extents),
    {.name = "step", .type_text = "i64", .kind = TILE_PARAMETER_SCALAR, .type = TILE_HOST_I64, .generic = -1},
    {.name = "from", .type_text = "i64", .kind = TILE_PARAMETER_SCALAR, .type = TILE_HOST_I64, .generic = -1}};
static const TileImageSignature signature = {.name = "apart",
                                             .text = "apart(x: in f32[N], y: out f32[N], step: i64, from: i64)",
                                             .parameters = parameters,
                                             .parameter_count = 4};

/* slots: x, N, stride; y, N, stride; step, from. */
static void run(const uint64_t *slots, int64_t begin, int64_t end, void *scratch) {
    (void)scratch;
    for (int64_t i = begin; i < end; i++) ((float *)slots[3])[i] = (float)(int64_t)(slots[6] + slots[7]);
}

static const TileHostInstruction host[] = {{.op = TILE_HOST_DIM, .type = TILE_HOST_I64}};
static const TileImagePhase phases[] = {{.entry = run, .rank = 1, .extents = {0}}};
static const uint8_t order[] = {0, 1, 2, 3};
/* The code asks for the value of `step` alone. */
static const TileImageCode code = {.host = host,
                                   .phases = phases,
                                   .order = order,
                                   .host_count = 1,
                                   .phase_count = 1,
                                   .order_count = 4,
                                   .asked = {[2] = TILE_GUARD_VALUE}};

static float memory[64] __attribute__((aligned(128)));

static void launch_on(TileLibrary *library, int64_t n, int64_t step, int64_t from) {
    Tensor x, y;
    TileError error = {.message = ""};
    make_tensor(&x, memory, f32_type, 1, &n, NULL);
    make_tensor(&y, memory + 32, f32_type, 1, &n, NULL);
    TileArg args[] = {TILE_TENSOR(&x.dl), TILE_TENSOR(&y.dl), TILE_INTEGER(step), TILE_INTEGER(from)};
    TileLaunchOptions options = {.struct_size = sizeof options, .error = &error};
    memory[32] = -1;
    cr_assert_eq(tile_launch(tile_library_kernel_at(library, 0), args, 4, &options), TILE_OK, "%s", error.message);
    cr_assert_eq(memory[32], (float)(step + from));
}

static void launch(TileLibrary *library, int64_t step) { launch_on(library, 8, step, 1); }

static TileKernelStats stats_of(TileLibrary *library) {
    TileKernelStats stats;
    tile_kernel_stats(tile_library_kernel_at(library, 0), &stats);
    return stats;
}

/* Waits for a thread that compiles. */
static void expect_variants(TileLibrary *library, uint64_t count) {
    const struct timespec pause = {0, 1000000};
    for (int i = 0; i < 5000 && stats_of(library).variants < count; i++) nanosleep(&pause, NULL);
    cr_assert_eq(stats_of(library).variants, count);
}

static TileVariant *last_of(TileLibrary *library) { return tile_library_kernel_at(library, 0)->last; }

Test(values, the_second_equal_launch_asks) {
    Compiler compiler = {.code = &code};
    TileLibrary *library = make_library(&signature, &compiler);
    launch(library, 3);
    launch(library, 4);
    launch(library, 5);
    expect_variants(library, 1);
    launch(library, 4);
    expect_variants(library, 2);
    cr_assert_eq(compiler.last.facts[2], TILE_GUARD_VALUE);
    cr_assert_eq(compiler.last.facts[3], 0, "code does not ask for it");
    cr_assert_eq(compiler.last.values[2], 4);
    cr_assert(!atomic_load(&last_of(library)->special));
    launch(library, 4);
    TileVariant *special = last_of(library);
    cr_assert(atomic_load(&special->special), "it serves as soon as it is there, though a launch was remembered");
    launch_on(library, 8, 4, 9);
    cr_assert_eq(last_of(library), special, "whatever the other scalar is");
    launch(library, 6);
    cr_assert_neq(last_of(library), special, "general code serves another value");
    launch(library, 4);
    cr_assert_eq(last_of(library), special);
    expect_variants(library, 2);
    cr_assert_eq(stats_of(library).misses, 1, "no launch waited for it");
    tile_library_destroy(library);
}

/* Launches go on by general code while it is made. */
Test(values, nobody_waits) {
    Compiler compiler = {.code = &code};
    TileLibrary *library = make_library(&signature, &compiler);
    launch(library, 3);
    compiler.delay_ms = 300;
    for (int i = 0; i < 10; i++) launch(library, 3);
    cr_assert_eq(stats_of(library).variants, 1);
    cr_assert_eq(stats_of(library).launches, 11);
    expect_variants(library, 2);
    tile_library_destroy(library);
}

Test(values, other_facts_need_other_code) {
    Compiler compiler = {.code = &code};
    TileImageCode asks = code;
    asks.asked[0] = tile_guard_multiple(1, 0, 16);
    compiler.code = &asks;
    TileLibrary *library = make_library(&signature, &compiler);
    launch_on(library, 8, 3, 1);
    launch_on(library, 8, 3, 1);
    expect_variants(library, 2);
    launch_on(library, 16, 3, 1);
    cr_assert(!atomic_load(&last_of(library)->special), "the code for the value was not told of multiples of 16");
    expect_variants(library, 3);
    launch_on(library, 16, 3, 1);
    expect_variants(library, 4);
    launch_on(library, 16, 3, 1);
    cr_assert(atomic_load(&last_of(library)->special));
    cr_assert(last_of(library)->request.facts[0] & tile_guard_multiple(1, 0, 16));
    tile_library_destroy(library);
}

/* Half of the limit. */
Test(values, limit) {
    TileSettings settings = {.struct_size = sizeof settings, .variant_limit = 6};
    Compiler compiler = {.code = &code, .settings = &settings};
    TileLibrary *library = make_library(&signature, &compiler);
    for (int step = 1; step <= 5; step++) {
        launch(library, step);
        launch(library, step);
        expect_variants(library, step < 4 ? (uint64_t)step + 1 : 4);
    }
    for (int step = 1; step <= 5; step++) launch(library, step);
    cr_assert_eq(stats_of(library).variants, 4);
    tile_library_destroy(library);

    settings.variant_limit = 1;
    library = make_library(&signature, &compiler);
    for (int i = 0; i < 4; i++) launch(library, 2);
    cr_assert_eq(stats_of(library).variants, 1, "no code for values where one variant is all");
    tile_library_destroy(library);
}

Test(values, failures_are_not_repeated) {
    Compiler compiler = {.code = &code};
    TileLibrary *library = make_library(&signature, &compiler);
    launch(library, 3);
    compiler.status = TILE_INTERNAL;
    for (int i = 0; i < 20; i++) launch(library, 3);
    const struct timespec pause = {0, 50000000};
    nanosleep(&pause, NULL);
    launch(library, 3);
    cr_assert_eq(compiler.compiled, 2);
    tile_library_destroy(library);
}

static void keep(void *state, const char *text, size_t length) {
    char *all = state;
    size_t before = strlen(all);
    if (before + length < 2000) memcpy(all + before, text, length);
}

Test(values, explained) {
    Compiler compiler = {.code = &code};
    TileImageCode asks = code;
    asks.need[2] = TILE_GUARD_VALUE;
    TileLibrary *library = make_library(&signature, &compiler);
    char before[2001] = "", behind[2001] = "";
    Tensor x, y;
    make_tensor(&x, memory, f32_type, 1, SHAPE(8), NULL);
    make_tensor(&y, memory + 32, f32_type, 1, SHAPE(8), NULL);
    TileArg args[] = {TILE_TENSOR(&x.dl), TILE_TENSOR(&y.dl), TILE_INTEGER(7), TILE_INTEGER(0)};
    launch(library, -3);
    cr_assert_eq(tile_explain(tile_library_kernel_at(library, 0), args, 4, keep, before, NULL), TILE_OK);
    cr_assert(strstr(before, "a second launch with the same step has code compiled for that"), "%s", before);
    compiler.code = &asks;
    launch(library, -3);
    expect_variants(library, 2);
    cr_assert_eq(tile_explain(tile_library_kernel_at(library, 0), args, 4, keep, behind, NULL), TILE_OK);
    cr_assert(strstr(behind, "relies on: step: its value -3"), "%s", behind);
    cr_assert(strstr(behind, "step: its value 7, and the code relies on its value -3"), "%s", behind);
    tile_library_destroy(library);
}
