/* Bound calls and steps, preparing without memory, observers, and which argument an error is about. */
#include <criterion/criterion.h>

#include "counters.h"
#include "fixture.h"
#include "parameter.h"

static float memory[4][64] __attribute__((aligned(128)));

typedef struct Bench {
    Compiler compiler;
    TileLibrary *library;
    TileKernel *kernel;
    Tensor x, y;
    TileArg args[2];
    TileError error;
    TileLaunchOptions options;
} Bench;

static void set_up(Bench *b) {
    *b = (Bench){.compiler = {.code = row_copy_code(), .relies = true}};
    b->library = make_library(&row_copy, &b->compiler);
    b->kernel = tile_library_kernel_at(b->library, 0);
    make_tensor(&b->x, memory[0], f32_type, 2, SHAPE(2, 8), NULL);
    make_tensor(&b->y, memory[1], f32_type, 2, SHAPE(2, 8), NULL);
    b->args[0] = TILE_TENSOR(&b->x.dl);
    b->args[1] = TILE_TENSOR(&b->y.dl);
    b->options = (TileLaunchOptions){.struct_size = sizeof b->options, .error = &b->error};
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 64; k++) memory[i][k] = (float)(100 * i + k);
}

static TileBound *bind(Bench *b) {
    TileBound *bound = NULL;
    cr_assert_eq(tile_bind(b->kernel, b->args, 2, &b->options, &bound), TILE_OK);
    cr_assert_not_null(bound);
    return bound;
}

Test(bound, launches_on_its_own_addresses_and_on_others) {
    Bench b;
    set_up(&b);
    TileBound *bound = bind(&b);
    b.x.shape[0] = 99; /* the structs are not kept */
    cr_assert_eq(tile_launch_bound(bound, NULL, &b.options), TILE_OK);
    cr_assert(memory[1][15] == 15 && memory[1][16] == 116);
    void *other[] = {memory[2], memory[3]};
    cr_assert_eq(tile_launch_bound(bound, other, &b.options), TILE_OK);
    cr_assert(memory[3][15] == 215 && memory[3][16] == 316);
    TileKernelStats stats;
    tile_kernel_stats(b.kernel, &stats);
    cr_assert_eq(stats.launches, 2);
    tile_bound_destroy(bound);
    tile_library_destroy(b.library);
}

Test(bound, refuses_addresses_that_do_not_fit) {
    Bench b;
    set_up(&b);
    TileBound *bound = bind(&b);
    void *same[] = {memory[2], memory[2]}, *odd[] = {(char *)memory[2] + 2, memory[3]}, *none[] = {NULL, memory[3]};
    cr_assert_eq(tile_launch_bound(bound, same, &b.options), TILE_INVALID_ARGUMENT);
    cr_assert(b.error.code == TILE_ERROR_OVERLAP && b.error.argument == 1, "%s", b.error.message);
    cr_assert_eq(tile_launch_bound(bound, odd, &b.options), TILE_INVALID_ARGUMENT);
    cr_assert(b.error.code == TILE_ERROR_ADDRESS && b.error.argument == 0, "%s", b.error.message);
    cr_assert_eq(tile_launch_bound(bound, none, &b.options), TILE_INVALID_ARGUMENT);
    cr_assert(b.error.code == TILE_ERROR_ADDRESS && b.error.argument == 0, "%s", b.error.message);
    tile_bound_destroy(bound);
    tile_library_destroy(b.library);
}

Test(bound, without_memory_it_needs_addresses) {
    Bench b;
    set_up(&b);
    b.x.dl.data = b.y.dl.data = NULL;
    cr_assert_eq(tile_launch(b.kernel, b.args, 2, &b.options), TILE_INVALID_ARGUMENT);
    cr_assert_eq(tile_prepare(b.kernel, b.args, 2, &b.options), TILE_OK);
    cr_assert_eq(b.compiler.compiled, 1);
    TileBound *bound = bind(&b);
    cr_assert_eq(b.compiler.compiled, 1);
    cr_assert_eq(tile_launch_bound(bound, NULL, &b.options), TILE_INVALID_ARGUMENT);
    void *addresses[] = {memory[2], memory[3]};
    cr_assert_eq(tile_launch_bound(bound, addresses, &b.options), TILE_OK);
    cr_assert_eq(memory[3][15], 215);
    tile_bound_destroy(bound);
    tile_library_destroy(b.library);
}

Test(bound, what_does_not_fit_is_not_bound) {
    Bench b;
    set_up(&b);
    TileBound *bound = NULL;
    b.y.shape[1] = 7;
    cr_assert_eq(tile_bind(b.kernel, b.args, 2, &b.options, &bound), TILE_INVALID_ARGUMENT);
    cr_assert(!bound && b.error.code == TILE_ERROR_EXTENT && b.error.argument == 1, "%s", b.error.message);
    cr_assert_eq(tile_bind(b.kernel, b.args, 1, &b.options, &bound), TILE_INVALID_ARGUMENT);
    cr_assert(!bound && b.error.code == TILE_ERROR_COUNT && b.error.argument == -1, "%s", b.error.message);
    cr_assert_eq(tile_bind(b.kernel, b.args, 2, &b.options, NULL), TILE_INVALID_ARGUMENT);
    cr_assert_eq(tile_launch_bound(NULL, NULL, &b.options), TILE_INVALID_ARGUMENT);
    tile_bound_destroy(NULL);
    tile_library_destroy(b.library);
}

Test(bound, steps_run_in_order_and_end_at_the_first_that_fails) {
    Bench b;
    set_up(&b);
    TileBound *bound = bind(&b);
    void *first[] = {memory[0], memory[1]}, *second[] = {memory[1], memory[2]}, *wrong[] = {memory[3], memory[3]};
    TileLaunchStep steps[] = {
        {bound, first}, {bound, second}, {bound, wrong}, {bound, (void *[]){memory[0], memory[3]}}};
    cr_assert_eq(tile_launch_steps(steps, 2, &b.options), TILE_OK);
    cr_assert_eq(memory[2][15], 15);
    cr_assert_eq(tile_launch_steps(steps, 4, &b.options), TILE_INVALID_ARGUMENT);
    cr_assert_eq(memory[3][0], 300);
    cr_assert_eq(tile_launch_steps(NULL, 0, &b.options), TILE_OK);
    cr_assert_eq(tile_launch_steps(NULL, 1, &b.options), TILE_INVALID_ARGUMENT);
    tile_bound_destroy(bound);
    tile_library_destroy(b.library);
}

Test(bound, a_launch_allocates_nothing_and_locks_nothing) {
    Bench b;
    set_up(&b);
    TileThreadPoolOptions one = {.struct_size = sizeof one, .threads = 1};
    cr_assert_eq(tile_thread_pool_create(&one, &b.options.threads), TILE_OK);
    TileBound *bound = bind(&b);
    void *other[] = {memory[2], memory[3]};
    cr_assert_eq(tile_launch_bound(bound, NULL, &b.options), TILE_OK);
    CallCounts before = count_calls();
    for (int i = 0; i < 100; i++) cr_assert_eq(tile_launch_bound(bound, i % 2 ? other : NULL, &b.options), TILE_OK);
    CallCounts after = count_calls();
    cr_assert_eq(after.allocations, before.allocations);
    cr_assert_eq(after.locks, before.locks);
    tile_bound_destroy(bound);
    tile_library_destroy(b.library);
    tile_thread_pool_destroy(b.options.threads);
}

/* ---- phases with bands and scratch ---- */

enum { BANDS = 4, MOST_ROWS = 64 };
static _Atomic int band_runs[BANDS * MOST_ROWS];

static void count_bands(const uint64_t *slots, int64_t begin, int64_t end, void *scratch) {
    (void)slots;
    if (scratch) memset(scratch, 1, 64);
    for (int64_t i = begin; i < end; i++) atomic_fetch_add(&band_runs[i % (BANDS * MOST_ROWS)], 1);
}

static void bind_bands(Bench *b, TileImageCode *code, const TileImagePhase *phase, int64_t rows, TileBound **bound) {
    static float long_memory[2][8 * MOST_ROWS] __attribute__((aligned(128)));
    *b = (Bench){.compiler = {.code = code}};
    *code = *row_copy_code();
    code->phases = phase;
    b->library = make_library(&row_copy, &b->compiler);
    b->kernel = tile_library_kernel_at(b->library, 0);
    make_tensor(&b->x, long_memory[0], f32_type, 2, SHAPE(rows, 8), NULL);
    make_tensor(&b->y, long_memory[1], f32_type, 2, SHAPE(rows, 8), NULL);
    b->args[0] = TILE_TENSOR(&b->x.dl);
    b->args[1] = TILE_TENSOR(&b->y.dl);
    b->options = (TileLaunchOptions){.struct_size = sizeof b->options, .error = &b->error};
    cr_assert_eq(tile_bind(b->kernel, b->args, 2, &b->options, bound), TILE_OK);
}

/* Each band of each program is run once, whatever bands are taken together. */
Test(bound, bands_are_run_once) {
    for (int scratch = 0; scratch <= 64; scratch += 64) {
        const TileImagePhase phase = {.entry = count_bands, .scratch_bytes = (uint64_t)scratch, .rank = 1, .extents = {0}, .bands = BANDS};
        for (int64_t rows = 1; rows <= MOST_ROWS; rows *= 8) {
            Bench b;
            TileImageCode code;
            TileBound *bound;
            bind_bands(&b, &code, &phase, rows, &bound);
            memset(band_runs, 0, sizeof band_runs);
            for (int i = 0; i < 3; i++) cr_assert_eq(tile_launch_bound(bound, NULL, &b.options), TILE_OK);
            for (int64_t i = 0; i < BANDS * MOST_ROWS; i++) cr_assert_eq(band_runs[i], i < BANDS * rows ? 3 : 0);
            tile_bound_destroy(bound);
            tile_library_destroy(b.library);
        }
    }
}

Test(bound, scratch_that_there_is_no_memory_for) {
    const TileImagePhase phase = {.entry = count_bands, .scratch_bytes = SIZE_MAX - 64, .rank = 1, .extents = {0}};
    Bench b;
    TileImageCode code;
    TileBound *bound;
    bind_bands(&b, &code, &phase, 2, &bound);
    memset(band_runs, 0, sizeof band_runs);
    cr_assert_eq(tile_launch_bound(bound, NULL, &b.options), TILE_OUT_OF_MEMORY);
    cr_assert(strstr(b.error.message, "row_copy: out of memory") && band_runs[0] == 0);
    tile_bound_destroy(bound);
    tile_library_destroy(b.library);
}

/* ---- launches that must be remembered ---- */

/* The code relies on multiples of 128 bytes, which it was bound to. */
Test(bound, only_for_addresses_of_which_a_launch_takes_the_same_code) {
    Bench b;
    set_up(&b);
    b.compiler.relies = false;
    b.compiler.aligned = true;
    TileBound *bound = bind(&b);
    void *other[] = {memory[2], memory[3]}, *shared[] = {memory[2], memory[2]}, *none[] = {NULL, memory[3]};
    void *odd[] = {memory[2] + 1, memory[3]}, *far[] = {(void *)(UINTPTR_MAX - 127), memory[3]};
    b.options.flags = TILE_LAUNCH_REMEMBERED;
    cr_assert_eq(tile_launch_bound(bound, other, &b.options), TILE_OK);
    cr_assert(memory[3][15] == 215 && memory[3][16] == 316);
    cr_assert_eq(tile_launch_bound(bound, shared, &b.options), TILE_NOT_FOUND);
    cr_assert_eq(tile_launch_bound(bound, odd, &b.options), TILE_NOT_FOUND);
    cr_assert_eq(tile_launch_bound(bound, none, &b.options), TILE_NOT_FOUND);
    cr_assert_eq(tile_launch_bound(bound, far, &b.options), TILE_NOT_FOUND);
    cr_assert_eq(tile_launch_bound(bound, NULL, &b.options), TILE_NOT_FOUND);
    cr_assert_eq(memory[2][16], 216);
    TileLaunchStep steps[] = {{bound, NULL}, {bound, other}}; /* all of a plan runs */
    cr_assert_eq(tile_launch_steps(steps, 2, &b.options), TILE_OK);
    cr_assert_eq(memory[1][15], 15);
    tile_bound_destroy(bound);
    tile_library_destroy(b.library);
}

/* Bound to less than the code asked for: what is aligned better has better code. */
Test(bound, addresses_of_better_alignment_have_other_code) {
    Bench b;
    set_up(&b);
    b.compiler.relies = false;
    b.compiler.aligned = true;
    b.x.dl.data = memory[0] + 1;
    TileBound *bound = bind(&b);
    void *alike[] = {memory[2] + 3, memory[3]}, *better[] = {memory[2], memory[3]};
    b.options.flags = TILE_LAUNCH_REMEMBERED;
    cr_assert_eq(tile_launch_bound(bound, alike, &b.options), TILE_OK);
    cr_assert_eq(tile_launch_bound(bound, better, &b.options), TILE_NOT_FOUND);
    b.options.flags = 0;
    cr_assert_eq(tile_launch_bound(bound, better, &b.options), TILE_OK);
    tile_bound_destroy(bound);
    tile_library_destroy(b.library);
}

Test(launch, only_if_it_is_remembered) {
    Bench b;
    set_up(&b);
    b.compiler.relies = false;
    b.options.flags = TILE_LAUNCH_REMEMBERED;
    cr_assert_eq(tile_launch(b.kernel, b.args, 2, &b.options), TILE_NOT_FOUND);
    cr_assert_eq(b.compiler.compiled, 0);
    cr_assert_eq(memory[1][0], 100);
    b.options.flags = 0;
    cr_assert_eq(tile_launch(b.kernel, b.args, 2, &b.options), TILE_OK);
    b.options.flags = TILE_LAUNCH_REMEMBERED;
    cr_assert_eq(tile_launch(b.kernel, b.args, 2, &b.options), TILE_OK);
    tile_library_destroy(b.library);
}

static tile_status launch_rows(Bench *b, int rows, int columns, uint32_t flags) {
    b->x.shape[0] = b->y.shape[0] = rows;
    b->x.shape[1] = b->y.shape[1] = columns;
    b->options.flags = flags;
    return tile_launch(b->kernel, b->args, 2, &b->options);
}

/* Whatever their keys are, sixteen are remembered, of one first shape too; the oldest gives way. */
Test(launch, as_many_are_remembered_as_there_is_room_for) {
    Bench b;
    set_up(&b);
    b.compiler.relies = false;
    for (int rows = 1; rows <= 16; rows++) cr_assert_eq(launch_rows(&b, rows, 4, 0), TILE_OK);
    for (int rows = 1; rows <= 16; rows++)
        cr_assert_eq(launch_rows(&b, rows, 4, TILE_LAUNCH_REMEMBERED), TILE_OK, "%d rows", rows);
    cr_assert_eq(launch_rows(&b, 1, 5, TILE_LAUNCH_REMEMBERED), TILE_NOT_FOUND);
    cr_assert_eq(launch_rows(&b, 1, 5, 0), TILE_OK);
    cr_assert_eq(launch_rows(&b, 1, 5, TILE_LAUNCH_REMEMBERED), TILE_OK);
    cr_assert_eq(launch_rows(&b, 1, 4, TILE_LAUNCH_REMEMBERED), TILE_NOT_FOUND);
    cr_assert_eq(launch_rows(&b, 2, 4, TILE_LAUNCH_REMEMBERED), TILE_OK);
    tile_library_destroy(b.library);
}

/* The same shapes with other strides take a record of their own. */
Test(launch, of_one_shape_with_other_strides) {
    Bench b;
    set_up(&b);
    b.compiler.relies = false;
    int64_t apart[] = {16, 1};
    cr_assert_eq(launch_rows(&b, 2, 8, 0), TILE_OK);
    b.x.dl.strides = apart;
    cr_assert_eq(launch_rows(&b, 2, 8, 0), TILE_OK);
    cr_assert_eq(launch_rows(&b, 2, 8, TILE_LAUNCH_REMEMBERED), TILE_OK);
    b.x.dl.strides = NULL;
    cr_assert_eq(launch_rows(&b, 2, 8, TILE_LAUNCH_REMEMBERED), TILE_OK);
    tile_library_destroy(b.library);
}

/* ---- words that are copied for a launch ---- */

enum { MOST_NUMBERS = 5 };

/* keep(y: out f32[N], s0: i64, ..), N - 1 numbers: y[i] gets the number i, the last element 0. Slots: y, N, a stride, the numbers. */
static void keep_numbers(const uint64_t *slots, int64_t begin, int64_t end, void *scratch) {
    (void)scratch;
    for (int64_t i = begin; i < end; i++) ((float *)slots[0])[i] = i + 1 < (int64_t)slots[1] ? (float)(int64_t)slots[3 + i] : 0;
}

typedef struct Numbers {
    TileImageSignature signature;
    TileImageCode code;
    Compiler compiler;
    TileLibrary *library;
    TileBound *bound;
} Numbers;

static void bind_numbers(Numbers *n, uint32_t count, const TileLaunchOptions *options) {
    static const char *const extents[] = {"N"};
    static const TileImageParameter parameters[] = {F32_TENSOR("y", OUT, extents), SCALAR("s0", I64, "i64"), SCALAR("s1", I64, "i64"),
                                                    SCALAR("s2", I64, "i64"),      SCALAR("s3", I64, "i64"), SCALAR("s4", I64, "i64")};
    static const TileHostInstruction host[] = {{.op = TILE_HOST_DIM, .type = TILE_HOST_I64}};
    static const TileImagePhase phases[] = {{.entry = keep_numbers, .rank = 1, .extents = {0}}};
    static const uint8_t order[] = {0, 1, 2, 3, 4, 5};
    *n = (Numbers){.signature = {.name = "keep", .text = "keep", .parameters = parameters, .parameter_count = 1 + count},
                   .code = {.host = host, .phases = phases, .order = order, .host_count = 1, .phase_count = 1}};
    n->code.order_count = 1 + count;
    n->compiler.code = &n->code;
    n->library = make_library(&n->signature, &n->compiler);
    Tensor y;
    make_tensor(&y, memory[0], f32_type, 1, SHAPE(1 + count), NULL);
    TileArg args[1 + MOST_NUMBERS] = {TILE_TENSOR(&y.dl)};
    for (uint32_t i = 0; i < count; i++) args[1 + i] = TILE_INTEGER(10 * count + i);
    cr_assert_eq(tile_bind(tile_library_kernel_at(n->library, 0), args, 1 + count, options, &n->bound), TILE_OK);
}

/* However many are left over by a stride. All stay bound, so that no word is right because an earlier launch left it there. */
Test(bound, every_word_is_copied) {
    Numbers all[1 + MOST_NUMBERS];
    TileError error;
    TileLaunchOptions options = {.struct_size = sizeof options, .error = &error};
    void *addresses[1 + MOST_NUMBERS] = {memory[1]};
    for (uint32_t count = 0; count <= MOST_NUMBERS; count++) {
        options.flags = 0;
        bind_numbers(&all[count], count, &options);
        options.flags = TILE_LAUNCH_REMEMBERED;
        for (int k = 0; k < 64; k++) memory[1][k] = -1;
        cr_assert_eq(tile_launch_bound(all[count].bound, addresses, &options), TILE_OK, "%s", error.message);
        for (uint32_t i = 0; i < count; i++) cr_expect(memory[1][i] == (float)(10 * count + i), "number %u of %u", i, count);
        cr_expect(memory[1][count] == 0 && memory[1][count + 1] == -1);
    }
    for (uint32_t count = 0; count <= MOST_NUMBERS; count++) {
        tile_bound_destroy(all[count].bound);
        tile_library_destroy(all[count].library);
    }
}

/* ---- observers ---- */

typedef struct Seen {
    int before, after;
    size_t count;
    tile_status status;
} Seen;

static void see_before(void *host, const TileLaunchEvent *event) {
    Seen *seen = host;
    seen->before++;
    seen->count = event->argument_count;
    cr_assert_str_eq(tile_kernel_name(event->kernel), "row_copy");
}

static void see_after(void *host, const TileLaunchEvent *event) {
    Seen *seen = host;
    cr_assert_eq(++seen->after, seen->before);
    seen->status = event->status;
}

Test(launch, observers_see_each_launch_and_its_status) {
    Bench b;
    set_up(&b);
    Seen seen = {0};
    TileObserver observer = {see_before, see_after, &seen}, half = {NULL, NULL, NULL};
    b.options.observer = &observer;
    cr_assert_eq(tile_launch(b.kernel, b.args, 2, &b.options), TILE_OK);
    cr_assert(seen.after == 1 && seen.count == 2 && seen.status == TILE_OK);
    b.args[1] = b.args[0];
    cr_assert_eq(tile_launch(b.kernel, b.args, 2, &b.options), TILE_INVALID_ARGUMENT);
    cr_assert(seen.after == 2 && seen.status == TILE_INVALID_ARGUMENT);
    cr_assert_eq(tile_prepare(b.kernel, b.args, 2, &b.options), TILE_INVALID_ARGUMENT);
    cr_assert_eq(seen.after, 2);
    b.args[1] = TILE_TENSOR(&b.y.dl);
    TileBound *bound = bind(&b);
    cr_assert_eq(tile_launch_bound(bound, NULL, &b.options), TILE_OK);
    cr_assert(seen.after == 3 && seen.count == 0 && seen.status == TILE_OK);
    b.options.observer = &half;
    cr_assert_eq(tile_launch(b.kernel, b.args, 2, &b.options), TILE_OK);
    tile_bound_destroy(bound);
    tile_library_destroy(b.library);
}
