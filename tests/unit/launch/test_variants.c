/* The selection of code for arguments, and which thread compiles it. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"
#include "launch/guard.h"

static float memory[1 << 16] __attribute__((aligned(128)));

static tile_status copy(TileLibrary *library, const int64_t *x_strides, size_t x_offset, TileError *error) {
    Tensor x, y;
    make_tensor(&x, memory + x_offset, f32_type, 2, SHAPE(4, 8), x_strides);
    make_tensor(&y, memory + 1024, f32_type, 2, SHAPE(4, 8), NULL);
    TileArg args[] = {TILE_TENSOR(&x.dl), TILE_TENSOR(&y.dl)};
    TileLaunchOptions options = {.struct_size = sizeof options, .error = error};
    return tile_launch(tile_library_kernel_at(library, 0), args, 2, &options);
}

static TileKernelStats stats_of(TileLibrary *library) {
    TileKernelStats stats;
    tile_kernel_stats(tile_library_kernel_at(library, 0), &stats);
    return stats;
}

Test(variants, specialised_then_general) {
    Compiler compiler = {.code = row_copy_code(), .relies = true};
    TileLibrary *library = make_library(&row_copy, &compiler);
    cr_assert_eq(copy(library, NULL, 0, NULL), TILE_OK);
    uint64_t extents = tile_guard_extent(2, 0, 4) | tile_guard_extent(2, 1, 8);
    cr_assert_eq(compiler.last.facts[0], TILE_GUARD_ALIGN | TILE_GUARD_NARROW | tile_guard_rows(8) |
                                             tile_guard_dimension(0, TILE_GUARD_DENSE) |
                                             tile_guard_dimension(1, TILE_GUARD_STRIDE_UNIT) | extents);
    cr_assert_eq(copy(library, NULL, 0, NULL), TILE_OK);
    cr_assert_eq(compiler.compiled, 1, "a hit compiles nothing");
    cr_assert_eq(copy(library, SHAPE(16, 2), 0, NULL), TILE_OK);
    cr_assert_eq(compiler.compiled, 2, "other strides miss");
    cr_assert_eq(compiler.last.facts[0], TILE_GUARD_ALIGN | TILE_GUARD_NARROW | tile_guard_rows(8) | extents,
                 "aligned to 128 bytes");
    cr_assert_eq(copy(library, SHAPE(32, 3), 0, NULL), TILE_OK);
    cr_assert_eq(copy(library, NULL, 0, NULL), TILE_OK);
    cr_assert_eq(compiler.compiled, 2, "both are kept");
    TileKernelStats stats = stats_of(library);
    cr_assert_eq(stats.launches, 5);
    cr_assert_eq(stats.misses, 2);
    cr_assert_eq(stats.variants, 2);
    tile_library_destroy(library);
}

/* The facts of memory as a tensor of these extents whose rows repeat. */
static uint64_t facts_of_repeated(int64_t rows, int64_t columns) {
    TileView view = {.data = (char *)memory, .rank = 2, .type = TILE_HOST_F32, .extent = {rows, columns}, .stride = {0, 4}};
    view.low = view.high = (uint64_t)(uintptr_t)memory;
    if (rows && columns) view.high += (uint64_t)columns * 4;
    tile_guard_read(&view);
    cr_assert_eq(view.word & TILE_GUARD_NARROW, view.offer & TILE_GUARD_NARROW);
    return view.word;
}

Test(variants, tensors_with_long_extents_are_not_narrow) {
    cr_assert(facts_of_repeated(4, 8) & TILE_GUARD_NARROW);
    cr_assert(facts_of_repeated(TILE_GREATEST_NARROW_EXTENT, 8) & TILE_GUARD_NARROW);
    cr_assert_not(facts_of_repeated(TILE_GREATEST_NARROW_EXTENT + INT64_C(1), 8) & TILE_GUARD_NARROW);
    cr_assert_not(facts_of_repeated(0, INT64_C(1) << 31) & TILE_GUARD_NARROW, "no elements");
    cr_assert_not(facts_of_repeated(INT64_C(1) << 40, 0) & TILE_GUARD_NARROW);
}

Test(variants, facts_that_are_not_used_are_not_guarded) {
    Compiler compiler = {.code = row_copy_code()};
    TileLibrary *library = make_library(&row_copy, &compiler);
    cr_assert_eq(copy(library, NULL, 0, NULL), TILE_OK);
    cr_assert_eq(copy(library, NULL, 1, NULL), TILE_OK); /* aligned to 4 bytes only */
    cr_assert_eq(compiler.compiled, 1);
    tile_library_destroy(library);
}

Test(variants, extents_as_facts) {
    static const unsigned multiples[] = {2, 4, 8, 16};
    for (unsigned rank = 1; rank <= TILE_MAX_RANK; rank++)
        for (unsigned axis = 0; axis < rank; axis++)
            for (int64_t extent = 0; extent < 70; extent++)
                for (int i = 0; i < 4; i++) {
                    uint64_t bit = tile_guard_multiple(rank, axis, multiples[i]);
                    bool says = tile_guard_extent(rank, axis, extent) & bit;
                    cr_assert_eq(bit != 0, axis + 4 >= rank, "the last four dimensions have bits");
                    if (bit) cr_assert_eq(says, extent % multiples[i] == 0, "%d of %d", (int)extent, multiples[i]);
                }
}

/* Written from what it says: the places of the elements, one after the other, against strides of every kind. */
Test(variants, gaps_as_facts) {
    static const int64_t extents[] = {0, 1, 2, 3}, strides[] = {0, 1, 2, 3, 4, 6, -1};
    for (unsigned code = 0; code < 4 * 4 * 4 * 7 * 7 * 7; code++) {
        int64_t extent[3], stride[3], bytes[3];
        unsigned rest = code;
        for (unsigned d = 0; d < 3; d++, rest /= 4) extent[d] = extents[rest % 4];
        for (unsigned d = 0; d < 3; d++, rest /= 7) bytes[d] = 2 * (stride[d] = strides[rest % 7]);
        uint64_t word = tile_guard_dense(extent, bytes, 3, 2);
        if (extent[0] == 0 || extent[1] == 0 || extent[2] == 0) continue; /* nothing is accessed */
        for (unsigned from = 0; from < 3; from++) {
            bool dense = from < 2;
            int64_t next = 0;
            int64_t first[3] = {from > 0 ? 1 : extent[0], from > 1 ? 1 : extent[1], extent[2]};
            for (int64_t i = 0; i < first[0]; i++)
                for (int64_t j = 0; j < first[1]; j++)
                    for (int64_t k = 0; k < first[2]; k++)
                        dense &= i * stride[0] + j * stride[1] + k * stride[2] == next++;
            cr_assert_eq((word & tile_guard_dimension(from, TILE_GUARD_DENSE)) != 0, dense, "%u from %u", code, from);
        }
        cr_assert_eq(word & ~(tile_guard_dimension(0, TILE_GUARD_DENSE) | tile_guard_dimension(1, TILE_GUARD_DENSE)),
                     0);
    }
}

Test(variants, short_rows_as_facts) {
    for (int64_t extent = 0; extent < 9000; extent++) {
        uint64_t bits = tile_guard_rows(extent), seen = 0;
        for (unsigned most = TILE_LEAST_SHORT_ROW; most <= TILE_GREATEST_SHORT_ROW; most *= 2) {
            cr_assert_eq((bits & tile_guard_row(most)) != 0, extent >= 1 && extent <= most, "%d, %u", (int)extent,
                         most);
            seen |= tile_guard_row(most);
        }
        cr_assert_eq(bits & ~seen, 0);
        cr_assert_eq(seen & (TILE_GUARD_ALIGN | TILE_GUARD_NARROW | TILE_GUARD_DISJOINT | TILE_GUARD_MAP), 0);
        cr_assert(seen < UINT64_C(1) << TILE_GUARD_DIMENSIONS, "the dimensions' bits are others");
    }
    cr_assert_eq(tile_guard_rows(INT64_MAX), 0);
}

/* The tensor's rows have 8 elements: code that relies on rows of at most 128 serves them, and none of 200. */
Test(variants, the_fact_goes_with_the_rows) {
    static float wide[2 * 200] __attribute__((aligned(128)));
    Compiler compiler = {.code = row_copy_code(), .relies = true};
    TileLibrary *library = make_library(&row_copy, &compiler);
    cr_assert_eq(copy(library, NULL, 0, NULL), TILE_OK);
    cr_assert(compiler.last.facts[0] & tile_guard_row(128));
    Tensor x, y;
    make_tensor(&x, wide, f32_type, 2, SHAPE(2, 200), NULL);
    make_tensor(&y, memory + 1024, f32_type, 2, SHAPE(2, 200), NULL);
    TileArg args[] = {TILE_TENSOR(&x.dl), TILE_TENSOR(&y.dl)};
    cr_assert_eq(tile_launch(tile_library_kernel_at(library, 0), args, 2, NULL), TILE_OK);
    cr_assert_eq(compiler.compiled, 2, "longer rows are served by other code");
    cr_assert(!(compiler.last.facts[0] & tile_guard_row(128)));
    cr_assert(compiler.last.facts[0] & tile_guard_row(256));
    tile_library_destroy(library);
}

Test(variants, the_fact_goes_with_the_strides) {
    Compiler compiler = {.code = row_copy_code(), .relies = true};
    TileLibrary *library = make_library(&row_copy, &compiler);
    cr_assert_eq(copy(library, SHAPE(8, 1), 0, NULL), TILE_OK);
    cr_assert(compiler.last.facts[0] & tile_guard_dimension(0, TILE_GUARD_DENSE));
    cr_assert_eq(copy(library, SHAPE(9, 1), 0, NULL), TILE_OK);
    cr_assert(!(compiler.last.facts[0] & tile_guard_dimension(0, TILE_GUARD_DENSE)));
    cr_assert(compiler.last.facts[0] & tile_guard_dimension(1, TILE_GUARD_STRIDE_UNIT));
    cr_assert_eq(compiler.compiled, 2, "rows with a gap are served by other code, which relied on none");
    cr_assert_eq(copy(library, SHAPE(8, 1), 0, NULL), TILE_OK);
    cr_assert_eq(copy(library, SHAPE(12, 1), 0, NULL), TILE_OK);
    cr_assert_eq(compiler.compiled, 2, "both are kept");
    tile_library_destroy(library);
}

Test(variants, at_most_eight_then_general) {
    Compiler compiler = {.code = row_copy_code(), .relies = true};
    TileLibrary *library = make_library(&row_copy, &compiler);
    static const int64_t strides[][2] = {{8, 1}, {0, 1}, {1, 4}, {1, 0}, {0, 0}, {9, 0}, {0, 2}, {9, 2}, {1, 7}};
    for (int align = 0; align < 2; align++)
        for (size_t i = 0; i < sizeof strides / sizeof *strides; i++)
            cr_assert_eq(copy(library, strides[i], (size_t)align, NULL), TILE_OK);
    cr_assert_eq(compiler.compiled, 9, "eight special ones and the general one");
    cr_assert_eq(compiler.last.facts[0] | compiler.last.facts[1], 0);
    tile_library_destroy(library);
}

static tile_status copy_rows(TileLibrary *library, int64_t rows) {
    Tensor x, y;
    make_tensor(&x, memory, f32_type, 2, SHAPE(rows, 8), SHAPE(8, 1));
    make_tensor(&y, memory + 1024, f32_type, 2, SHAPE(rows, 8), NULL);
    TileArg args[] = {TILE_TENSOR(&x.dl), TILE_TENSOR(&y.dl)};
    return tile_launch(tile_library_kernel_at(library, 0), args, 2, NULL);
}

/* Beyond the limit general code is cached like any other: only its first launch for a kind of arguments is a miss. */
Test(variants, beyond_the_limit_are_hits) {
    TileSettings settings = {.struct_size = sizeof settings, .variant_limit = 1};
    Compiler compiler = {.code = row_copy_code(), .relies = true, .settings = &settings};
    TileLibrary *library = make_library(&row_copy, &compiler);
    for (int round = 0; round < 3; round++) {
        uint64_t before = stats_of(library).misses;
        for (int64_t rows = 1; rows <= 40; rows++) cr_assert_eq(copy_rows(library, rows), TILE_OK);
        cr_assert(round == 0 || stats_of(library).misses == before, "round %d", round);
        cr_assert(stats_of(library).misses <= 6, "one row, and one for each power of two that divides them");
    }
    cr_assert_eq(compiler.compiled, 2, "a special one and the general one");
    tile_library_destroy(library);
}

Test(variants, types_are_compiled_apart) {
    Compiler compiler = {.code = row_copy_code()};
    TileLibrary *library = make_library(&row_copy, &compiler);
    Tensor x, y;
    make_tensor(&x, memory, f16_type, 2, SHAPE(1, 2), NULL);
    make_tensor(&y, memory + 1024, f16_type, 2, SHAPE(1, 2), NULL);
    TileArg args[] = {TILE_TENSOR(&x.dl), TILE_TENSOR(&y.dl)};
    cr_assert_eq(tile_prepare(tile_library_kernel_at(library, 0), args, 2, NULL), TILE_OK);
    cr_assert_eq(compiler.last.generics[0], TILE_HOST_F16);
    cr_assert_eq(copy(library, NULL, 0, NULL), TILE_OK);
    cr_assert_eq(compiler.last.generics[0], TILE_HOST_F32);
    cr_assert_eq(compiler.compiled, 2);
    cr_assert_eq(stats_of(library).launches, 1, "preparing launches nothing");
    tile_library_destroy(library);
}

/* The message of a launch of row_copy that cannot be compiled. */
static TileReport *failing_report(TileLibrary *library) {
    Tensor x, y;
    TileReport *report = NULL;
    TileLaunchOptions options = {.struct_size = sizeof options, .report = &report};
    make_tensor(&x, memory, f32_type, 2, SHAPE(4, 8), NULL);
    make_tensor(&y, memory + 1024, f32_type, 2, SHAPE(4, 8), NULL);
    TileArg args[] = {TILE_TENSOR(&x.dl), TILE_TENSOR(&y.dl)};
    cr_assert_eq(tile_launch(tile_library_kernel_at(library, 0), args, 2, &options), TILE_INVALID_SOURCE);
    return report;
}

Test(variants, failure_is_kept_or_tried_again) {
    Compiler compiler = {.code = row_copy_code(), .status = TILE_INVALID_SOURCE, .message = "wrong"};
    TileLibrary *library = make_library(&row_copy, &compiler);
    TileError error = {.message = ""};
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(copy(library, NULL, 0, &error), TILE_INVALID_SOURCE);
        cr_assert_str_eq(error.message, "row_copy: wrong");
    }
    cr_assert_eq(compiler.compiled, 1, "an error of the text stays");
    TileReport *first = failing_report(library), *second = failing_report(library);
    tile_library_destroy(library);
    cr_assert_eq(first, second, "what the compiler said stays too");
    tile_report_destroy(first);
    cr_assert_str_eq(tile_report_text(second, false), "error: wrong\n");
    tile_report_destroy(second);
    compiler = (Compiler){.code = row_copy_code(), .status = TILE_OUT_OF_MEMORY, .message = "no memory"};
    library = make_library(&row_copy, &compiler);
    cr_assert_eq(copy(library, NULL, 0, &error), TILE_OUT_OF_MEMORY);
    compiler.status = TILE_OK;
    cr_assert_eq(copy(library, NULL, 0, &error), TILE_OK);
    tile_library_destroy(library);
}

Test(variants, errno_is_kept) {
    Compiler compiler = {.code = row_copy_code()};
    TileLibrary *library = make_library(&row_copy, &compiler);
    errno = 77;
    cr_assert_eq(copy(library, NULL, 0, NULL), TILE_OK);
    cr_assert_eq(errno, 77);
    tile_library_destroy(library);
}

typedef struct Racer {
    TileLibrary *library;
    int number;
    tile_status status;
} Racer;

static void *race(void *state) {
    Racer *racer = state;
    Tensor x, y;
    make_tensor(&x, memory, f32_type, 2, SHAPE(4, 8), NULL);
    make_tensor(&y, memory + 1024 + racer->number * 64, f32_type, 2, SHAPE(4, 8), NULL);
    TileArg args[] = {TILE_TENSOR(&x.dl), TILE_TENSOR(&y.dl)};
    for (int i = 0; i < 100 && racer->status == TILE_OK; i++)
        racer->status = tile_launch(tile_library_kernel_at(racer->library, 0), args, 2, NULL);
    return NULL;
}

Test(variants, one_compiles_while_others_wait) {
    Compiler compiler = {.code = row_copy_code(), .delay_ms = 50, .relies = true};
    TileLibrary *library = make_library(&row_copy, &compiler);
    pthread_t threads[16];
    Racer racers[16];
    for (int i = 0; i < 32; i++) memory[i] = (float)i;
    for (int i = 0; i < 16; i++) {
        racers[i] = (Racer){library, i, TILE_OK};
        pthread_create(&threads[i], NULL, race, &racers[i]);
    }
    for (int i = 0; i < 16; i++) {
        pthread_join(threads[i], NULL);
        cr_assert_eq(racers[i].status, TILE_OK);
        cr_assert(memcmp(memory, memory + 1024 + i * 64, 32 * sizeof(float)) == 0);
    }
    cr_assert_eq(compiler.compiled, 1);
    cr_assert_eq(stats_of(library).launches, 1600);
    tile_library_destroy(library);
}

static void *launch_once(void *library) {
    copy(library, NULL, 0, NULL);
    return NULL;
}

/* A child that is forked while a thread of the parent compiles, compiles itself. */
Test(variants, fork_while_compiling) {
    Compiler compiler = {.code = row_copy_code(), .delay_ms = 200};
    TileLibrary *library = make_library(&row_copy, &compiler);
    pthread_t thread;
    pthread_create(&thread, NULL, launch_once, library);
    while (!atomic_load(&compiler.begun)) usleep(1000);
    pid_t child = fork();
    if (child == 0) {
        alarm(100);
        _exit(copy(library, NULL, 0, NULL) == TILE_OK ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    pthread_join(thread, NULL);
    tile_library_destroy(library);
}
