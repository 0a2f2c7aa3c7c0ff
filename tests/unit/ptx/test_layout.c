/* Layouts compared with brute force, and fragments with the tables of the PTX manual. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/target/dot.h"
#include "ptx/lowering/swizzle.h"

static uint32_t next(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33);
}

static void fisher_yates(uint64_t *state, uint8_t *items, unsigned count) {
    for (unsigned i = count; i > 1; i--) {
        unsigned k = next(state) % i;
        uint8_t item = items[k];
        items[k] = items[i - 1];
        items[i - 1] = item;
    }
}

static void deal(uint64_t *state, uint8_t *logs, unsigned rank, unsigned bits) {
    for (unsigned i = 0; i < bits; i++) logs[next(state) % rank]++;
}

/* With at most 2^11 elements, on 4 warps. */
static TileLayout random_blocked(uint64_t *state, TileLayoutShape *shape) {
    static const int64_t extents[] = {1, 2, 4, 8, 16, 32, 24, 48, 5, 100};
    TileLayoutBlocked blocked = {0};
    if (!shape->rank) {
        shape->rank = (uint8_t)(1 + next(state) % 3);
        for (unsigned a = 0; a < shape->rank; a++) shape->extent[a] = extents[next(state) % 10];
        if (shape->rank == 3) shape->extent[0] = 1 + next(state) % 2;
    }
    for (unsigned a = 0; a < shape->rank; a++) blocked.order[a] = (uint8_t)a;
    fisher_yates(state, blocked.order, shape->rank);
    deal(state, blocked.elements, shape->rank, next(state) % 4);
    deal(state, blocked.lanes, shape->rank, TILE_LANE_BITS);
    deal(state, blocked.warps, shape->rank, 2);
    return tile_layout_blocked(shape, &blocked);
}

static TileLayoutInput place_of(const TileLayout *layout, uint32_t input) {
    TileLayoutInput place;
    place.reg = input & ((1u << layout->bits[TILE_LAYOUT_REGISTER]) - 1);
    input >>= layout->bits[TILE_LAYOUT_REGISTER];
    place.lane = input & ((1u << layout->bits[TILE_LAYOUT_LANE]) - 1);
    input >>= layout->bits[TILE_LAYOUT_LANE];
    place.warp = input & ((1u << layout->bits[TILE_LAYOUT_WARP]) - 1);
    place.block = input >> layout->bits[TILE_LAYOUT_WARP];
    return place;
}

static int64_t flat_index(const TileLayout *layout, TileLayoutInput place) {
    int64_t index[TILE_MAX_TILE_RANK], flat = 0;
    tile_layout_apply(layout, place, index);
    for (unsigned a = 0; a < layout->rank; a++) flat = flat * tile_layout_extent(layout, a) + index[a];
    return flat;
}

static int64_t element_count(const TileLayout *layout) {
    int64_t count = 1;
    for (unsigned a = 0; a < layout->rank; a++) count *= tile_layout_extent(layout, a);
    return count;
}

Test(layout, blocked_layouts_hold_every_element_equally_often) {
    uint64_t state = 1;
    for (int round = 0; round < 2000; round++) {
        TileLayoutShape shape = {0};
        TileLayout layout = random_blocked(&state, &shape);
        cr_assert(tile_layout_is_surjective(&layout));
        for (unsigned a = 0; a < shape.rank; a++) cr_assert_geq(tile_layout_extent(&layout, a), shape.extent[a]);
        int64_t elements = element_count(&layout);
        int *times = calloc((size_t)elements, sizeof *times);
        uint32_t registers = tile_layout_registers(&layout);
        for (uint32_t warp = 0; warp < 4; warp++)
            for (uint32_t lane = 0; lane < 32; lane++)
                for (uint32_t reg = 0; reg < registers; reg++)
                    times[flat_index(&layout, (TileLayoutInput){reg, lane, warp, 0})]++;
        for (int64_t i = 0; i < elements; i++) cr_assert_eq(times[i] * elements, (int64_t)registers * 128);
        free(times);
    }
}

/* Do the first `warps` hold all elements of the shape? */
static bool holds_all(const TileLayout *layout, uint32_t warps, const TileLayoutShape *shape) {
    bool all = true, *held = calloc((size_t)element_count(layout), sizeof *held);
    for (uint32_t warp = 0; warp < warps; warp++)
        for (uint32_t lane = 0; lane < 32; lane++)
            for (uint32_t reg = 0; reg < tile_layout_registers(layout); reg++)
                held[flat_index(layout, (TileLayoutInput){reg, lane, warp, 0})] = true;
    for (int64_t i = 0; i < element_count(layout); i++) {
        int64_t left = i;
        bool inside = true;
        for (unsigned a = layout->rank; a-- > 0; left /= tile_layout_extent(layout, a))
            inside &= left % tile_layout_extent(layout, a) < shape->extent[a];
        all &= !inside || held[i];
    }
    free(held);
    return all;
}

/* What is said of the first warps is so; it is not said of a layout in which a warp's padding is some of each of two axes. */
Test(layout, first_warps_hold_all_elements) {
    uint64_t state = 9;
    unsigned complete = 0, others = 0;
    for (int round = 0; round < 400; round++) {
        TileLayoutShape shape = {0};
        TileLayout layout = random_blocked(&state, &shape);
        for (uint32_t warps = 1; warps <= 4; warps++) {
            bool said = tile_layout_is_complete(&layout, warps, shape.extent), right = holds_all(&layout, warps, &shape);
            cr_assert(right || !said, "round %d, %u warps", round, warps);
            complete += said;
            others += !right;
            if (shape.rank == 1) cr_assert_eq(said, right, "round %d, %u warps", round, warps);
        }
    }
    cr_assert(complete > 400 && others > 100, "%u, %u", complete, others);
    TileLayoutShape rows = {2, {256, 64}};
    const int64_t extent[] = {192, 64}, more[] = {193, 64};
    TileLayout sums = tile_layout_fragment(&rows, TILE_FRAGMENT_WGMMA_C, 32, (TileFragmentPlan){.log_warps_m = 4});
    cr_assert(tile_layout_is_complete(&sums, 12, extent));
    cr_assert_not(tile_layout_is_complete(&sums, 11, extent));
    cr_assert_not(tile_layout_is_complete(&sums, 12, more));
}

Test(layout, text_reads_back) {
    uint64_t state = 2;
    TileArena *arena = tile_arena_create(NULL);
    for (int round = 0; round < 2000; round++) {
        TileLayoutShape shape = {0};
        TileLayout layout = random_blocked(&state, &shape), again;
        TileText text = {.arena = arena};
        tile_layout_print(&text, &layout);
        cr_assert(tile_layout_read(tile_text_get(&text), &again), "%s", tile_text_get(&text));
        cr_assert(tile_layout_equal(&layout, &again), "%s", tile_text_get(&text));
    }
    TileLayout layout;
    static const char *const wrong[] = {"",
                                        "[",
                                        "[]",
                                        "[3] register lane warp block",
                                        "[4] register 4 lane warp block",
                                        "[2*4] register 1 2 lane warp block",
                                        "[4] register 1 2 lane warp",
                                        "[4] register 1 2 lane warp block 1 x",
                                        "[1073741824, 4] register lane warp block"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        cr_expect_not(tile_layout_read(wrong[i], &layout), "%s", wrong[i]);
    tile_arena_destroy(arena);
}

/* ---- fragments: the manual's tables for lane `lane` and register i ---- */

static void expect_place(const TileLayout *layout, uint32_t reg, uint32_t lane, int64_t row, int64_t column) {
    int64_t index[TILE_MAX_TILE_RANK];
    tile_layout_apply(layout, (TileLayoutInput){reg, lane, 0, 0}, index);
    cr_expect(index[0] == row && index[1] == column, "register %u of lane %u: (%d, %d), not (%d, %d)", reg, lane,
              (int)index[0], (int)index[1], (int)row, (int)column);
}

static const TileFragmentPlan one_warp, four_warps = {.log_warps_m = 2};

Test(layout, fragments_of_m16n8k16) {
    TileLayout a = tile_layout_fragment(&(TileLayoutShape){2, {16, 16}}, TILE_FRAGMENT_MMA_A, 16, one_warp),
               b = tile_layout_fragment(&(TileLayoutShape){2, {16, 8}}, TILE_FRAGMENT_MMA_B, 16, one_warp),
               c = tile_layout_fragment(&(TileLayoutShape){2, {16, 8}}, TILE_FRAGMENT_MMA_C, 16, one_warp);
    cr_expect_eq(tile_layout_registers(&a), 8);
    cr_expect_eq(tile_layout_registers(&b), 4);
    cr_expect_eq(tile_layout_registers(&c), 4);
    for (uint32_t lane = 0; lane < 32; lane++) {
        uint32_t group = lane >> 2, thread = lane % 4;
        for (uint32_t i = 0; i < 8; i++)
            expect_place(&a, i, lane, i < 2 || (i >= 4 && i < 6) ? group : group + 8,
                         thread * 2 + (i & 1) + (i >= 4 ? 8 : 0));
        for (uint32_t i = 0; i < 4; i++) {
            expect_place(&b, i, lane, thread * 2 + (i & 1) + (i >= 2 ? 8 : 0), group);
            expect_place(&c, i, lane, i < 2 ? group : group + 8, thread * 2 + (i & 1));
        }
    }
}

/* The highest bits of k are those of the warp's number above the ones of rows: the second warpgroup has the second half of k. */
Test(layout, fragments_of_parts_of_k) {
    TileLayout a = tile_layout_fragment(&(TileLayoutShape){2, {64, 64}}, TILE_FRAGMENT_MMA_A, 16, (TileFragmentPlan){.log_warps_m = 2, .log_parts = 1});
    cr_expect_eq(tile_layout_registers(&a), 16);
    for (uint32_t warp = 0; warp < 8; warp++)
        for (uint32_t i = 0; i < 16; i++) {
            int64_t index[TILE_MAX_TILE_RANK];
            tile_layout_apply(&a, (TileLayoutInput){i, 5, warp, 0}, index);
            cr_expect_eq(index[0], warp % 4 * 16 + 1 + (i & 2 ? 8 : 0));
            cr_expect_eq(index[1], warp / 4 * 32 + i / 8 * 16 + (i & 4 ? 8 : 0) + 2 + (i & 1));
        }
}

Test(layout, fragments_of_other_widths) {
    TileLayout a8 = tile_layout_fragment(&(TileLayoutShape){2, {16, 32}}, TILE_FRAGMENT_MMA_A, 8, one_warp),
               b8 = tile_layout_fragment(&(TileLayoutShape){2, {32, 8}}, TILE_FRAGMENT_MMA_B, 8, one_warp),
               a32 = tile_layout_fragment(&(TileLayoutShape){2, {16, 8}}, TILE_FRAGMENT_MMA_A, 32, one_warp),
               b32 = tile_layout_fragment(&(TileLayoutShape){2, {8, 8}}, TILE_FRAGMENT_MMA_B, 32, one_warp);
    for (uint32_t lane = 0; lane < 32; lane++) {
        uint32_t group = lane >> 2, thread = lane % 4;
        for (uint32_t i = 0; i < 16; i++) /* m16n8k32: rows by i/4 odd, columns by i/8 */
            expect_place(&a8, i, lane, group + (i / 4 % 2 ? 8 : 0), thread * 4 + (i & 3) + (i >= 8 ? 16 : 0));
        for (uint32_t i = 0; i < 8; i++) expect_place(&b8, i, lane, thread * 4 + (i & 3) + (i >= 4 ? 16 : 0), group);
        for (uint32_t i = 0; i < 4; i++) /* m16n8k8: a1 is eight rows down, a2 four columns on */
            expect_place(&a32, i, lane, group + (i % 2 ? 8 : 0), thread + (i >= 2 ? 4 : 0));
        for (uint32_t i = 0; i < 2; i++) expect_place(&b32, i, lane, thread + (i ? 4 : 0), group);
    }
}

/* Paired: an instruction's rows g and g + 8 are rows 2 g and 2 g + 1, and so are the columns g of two instructions. */
Test(layout, fragments_in_pairs) {
    const TileFragmentPlan pairs = {.pairs_m = true, .pairs_n = true};
    TileLayout a = tile_layout_fragment(&(TileLayoutShape){2, {16, 32}}, TILE_FRAGMENT_MMA_A, 8, pairs),
               b = tile_layout_fragment(&(TileLayoutShape){2, {32, 16}}, TILE_FRAGMENT_MMA_B, 8, pairs),
               c = tile_layout_fragment(&(TileLayoutShape){2, {16, 16}}, TILE_FRAGMENT_MMA_C, 32, pairs);
    for (uint32_t lane = 0; lane < 32; lane++) {
        uint32_t group = lane >> 2, thread = lane % 4;
        for (uint32_t i = 0; i < 16; i++) {
            int64_t k = thread * 4 + i % 4 + (i >= 8 ? 16 : 0), own = 2 * group + i / 4 % 2;
            expect_place(&a, i, lane, own, k);
            expect_place(&b, i, lane, k, own);
        }
        for (uint32_t i = 0; i < 8; i++) expect_place(&c, i, lane, 2 * group + i / 4, 4 * thread + i % 4);
    }
}

/* The accumulator's bytes of one product are the operand's bytes of the next one, in the same registers. */
Test(layout, sums_in_pairs_are_an_operand_of_bytes) {
    const TileFragmentPlan pairs = {.log_warps_m = 2, .pairs_n = true};
    TileLayoutShape shape = {2, {64, 64}};
    TileLayout c = tile_layout_fragment(&shape, TILE_FRAGMENT_MMA_C, 32, pairs),
               a = tile_layout_fragment(&shape, TILE_FRAGMENT_MMA_A, 8, pairs);
    cr_expect(tile_layout_equal(&c, &a));
}

Test(layout, wgmma_accumulator) {
    TileLayout c = tile_layout_fragment(&(TileLayoutShape){2, {64, 32}}, TILE_FRAGMENT_WGMMA_C, 16, four_warps);
    for (uint32_t thread = 0; thread < 128; thread++)
        for (uint32_t i = 0; i < 16; i++) {
            int64_t index[TILE_MAX_TILE_RANK];
            tile_layout_apply(&c, (TileLayoutInput){i, thread % 32, thread / 32, 0}, index);
            cr_expect_eq(index[0], thread / 32 * 16 + thread % 32 / 4 + (i & 2 ? 8 : 0));
            cr_expect_eq(index[1], i / 4 * 8 + thread % 4 * 2 + (i & 1));
        }
}

/* The accumulator of one product is, in registers, the A operand of the next one: it is only repacked. */
Test(layout, accumulator_repacks_to_operand) {
    TileLayoutShape shape = {2, {64, 64}};
    TileLayout c = tile_layout_fragment(&shape, TILE_FRAGMENT_MMA_C, 16, four_warps),
               a = tile_layout_fragment(&shape, TILE_FRAGMENT_MMA_A, 16, four_warps);
    TileLinear source;
    TileConversionKind kind = tile_layout_conversion(&c, &a, &source);
    cr_expect(kind == TILE_CONVERSION_NONE || kind == TILE_CONVERSION_REGISTERS);
}

/* Copies in registers are ignored; copies in other lanes are not. */
Test(layout, same_elements_leaves_copies_in_registers_out) {
    TileLayout plain, copied, lanes;
    cr_assert(tile_layout_read("[8, 4] register 1 2 lane 4 8 16 0 0 warp block", &plain));
    cr_assert(tile_layout_read("[8, 4] register 0 1 0 2 lane 4 8 16 0 0 warp block", &copied));
    cr_assert(tile_layout_read("[8, 4] register 1 2 lane 4 8 0 16 0 warp block", &lanes));
    cr_expect_not(tile_layout_equal(&plain, &copied));
    cr_expect(tile_layout_same_elements(&plain, &copied));
    cr_expect_not(tile_layout_same_elements(&plain, &lanes));
    TileLayout without = tile_layout_without_copies(&copied);
    cr_expect(tile_layout_equal(&plain, &without));
}

/* ---- tiles in shared memory ---- */

/* The rows of matrix `matrix` that lower_mma.c loads, with elements along k or, for pairs of bytes, across. */
static int64_t row_of_matrix(bool pairs, int64_t matrix, int64_t row) {
    return pairs ? matrix / 2 * 16 + matrix % 2 * 2 + row / 2 * 4 + row % 2 : 8 * matrix + row;
}

/* A matrix has 16 bytes of each row: they are in all 32 banks. For bytes that are read across, that requires rows of 64
 * bytes. */
Test(shared_tile, rows_of_a_matrix_lie_on_different_banks) {
    static const struct {
        TileScalar scalar;
        int64_t columns;
        bool pairs;
    } cases[] = {{TILE_I8, 32, false},  {TILE_I8, 48, false},    {TILE_U8, 64, false}, {TILE_F8E4M3, 128, false},
                 {TILE_F16, 64, false}, {TILE_F32, 64, false},   {TILE_I8, 64, true},  {TILE_U8, 128, true},
                 {TILE_I8, 192, true},  {TILE_F8E5M2, 512, true}};
    enum { ROWS = 64, GROUPS = 8, CHUNK = 16 };
    TileContext *context = tile_ir_context_create();
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        TileType type = {
            .kind = TILE_TYPE_TILE, .scalar = cases[i].scalar, .rank = 2, .extent = {ROWS, cases[i].columns}};
        GpuSharedTile tile = gpu_shared_tile(gpu_shared_type(context, &type));
        for (int64_t matrix = 0; matrix < ROWS / 8; matrix++)
            for (int64_t chunk = 0; chunk < tile.row_bytes / CHUNK; chunk++) {
                unsigned groups = 0;
                for (int64_t r = 0; r < 8; r++) {
                    int64_t row = row_of_matrix(cases[i].pairs, matrix, r), swizzled = chunk ^ gpu_chunk_swizzle(&tile, row);
                    groups |= 1u << (row * tile.row_bytes / CHUNK + swizzled) % GROUPS;
                }
                cr_expect_eq(groups, (1u << GROUPS) - 1, "case %u, matrix %d, chunk %d", i, (int)matrix, (int)chunk);
            }
    }
    tile_ir_context_destroy(context);
}

/* ---- sums of fused multiply-adds ---- */

static int64_t own_index(const TileLayout *layout, unsigned axis, uint32_t reg, uint32_t lane) {
    int64_t index[TILE_MAX_TILE_RANK];
    tile_layout_apply(layout, (TileLayoutInput){.reg = reg, .lane = lane}, index);
    return index[axis];
}

/* The chunk of shared memory that a lane reads for a register, of an operand of `k` steps. */
static int64_t chunk_read(const TileLayout *layout, const GpuSharedTile *tile, unsigned axis, bool along_k, uint32_t reg,
                          uint32_t lane) {
    enum { CHUNK = 16, BYTES = 4 };
    int64_t own = own_index(layout, axis, reg, lane);
    return along_k ? own * tile->row_bytes / CHUNK + gpu_chunk_swizzle(tile, own) : own * BYTES / CHUNK;
}

/* Lanes of half a warp read chunks of 16 bytes that lie on different banks, and every two neighbours, by bit 0 or bit 1 of
 * their numbers, the same one. */
static void check_reads(const TileLayout *layout, const GpuSharedTile *tile, unsigned axis, bool along_k) {
    enum { HALF = 16, GROUPS = 8 };
    for (uint32_t r = 0; r < tile_layout_registers(layout); r++)
        for (uint32_t half = 0; half < TILE_LANES; half += HALF) {
            int64_t group[GROUPS];
            bool twins = true;
            for (unsigned g = 0; g < GROUPS; g++) group[g] = -1;
            for (uint32_t lane = half; lane < half + HALF; lane++) {
                int64_t chunk = chunk_read(layout, tile, axis, along_k, r, lane), *other = &group[chunk % GROUPS];
                cr_expect(*other < 0 || *other == chunk, "axis %u, register %u, lane %u", axis, r, lane);
                *other = chunk;
                twins &= chunk == chunk_read(layout, tile, axis, along_k, r, lane ^ (axis ? 1 : 2));
            }
            cr_expect(twins, "axis %u, register %u", axis, r);
        }
}

static unsigned indices_of_thread(const TileLayout *layout, unsigned axis) {
    bool seen[256] = {false};
    unsigned count = 0;
    for (uint32_t r = 0; r < tile_layout_registers(layout); r++) {
        int64_t index = own_index(layout, axis, r, 0);
        count += !seen[index];
        seen[index] = true;
    }
    return count;
}

Test(sums, threads_have_squares_and_read_without_conflicts) {
    static const struct {
        int64_t m, n, k;
        unsigned log_warps, rows, columns; /* of a thread */
    } cases[] = {{128, 128, 32, 3, 8, 8}, {128, 64, 32, 2, 8, 8}, {64, 64, 64, 2, 4, 8}, {64, 128, 128, 3, 4, 8},
                 {112, 64, 64, 2, 7, 8},  {96, 128, 32, 3, 6, 8}, {32, 32, 16, 0, 4, 8}, {256, 64, 8, 3, 8, 8}};
    TileContext *context = tile_ir_context_create();
    for (unsigned i = 0; i < 8 * sizeof cases / sizeof *cases; i++) {
        unsigned c = i / 8;
        bool along_m = i & 1, along_n = i & 2;
        TileType type = {.kind = TILE_TYPE_TILE, .scalar = TILE_F32, .rank = 2, .extent = {cases[c].m, cases[c].n}};
        GpuSums sums = {.types = {&type}, .along_n = {along_n}, .along_m = along_m, .rows = i & 4, .count = 1,
                        .log_warps = cases[c].log_warps};
        TileLayout layout = gpu_multiplied_layout(&sums, &type);
        cr_expect(tile_layout_is_surjective(&layout));
        if (sums.rows) continue;
        cr_expect_eq(indices_of_thread(&layout, 0), cases[c].rows, "case %u: %u", i, indices_of_thread(&layout, 0));
        cr_expect_eq(indices_of_thread(&layout, 1), cases[c].columns, "case %u: %u", i, indices_of_thread(&layout, 1));
        for (unsigned axis = 0; axis < 2; axis++) {
            TileType operand = {.kind = TILE_TYPE_TILE, .scalar = TILE_F32, .rank = 2,
                                .extent = {type.extent[axis], cases[c].k}};
            GpuSharedTile tile = gpu_shared_tile(gpu_multiplied_type(context, &operand, true));
            check_reads(&layout, &tile, axis, !(axis ? along_n : along_m));
        }
    }
    tile_ir_context_destroy(context);
}

/* ---- conversions, results, swizzles ---- */

Test(layout, conversions_find_the_element) {
    uint64_t state = 3;
    unsigned kinds[4] = {0};
    for (int round = 0; round < 20000; round++) {
        TileLayoutShape shape = {0};
        TileLayout from = random_blocked(&state, &shape), to = random_blocked(&state, &shape);
        TileLinear source;
        TileConversionKind kind = tile_layout_conversion(&from, &to, &source);
        kinds[kind]++;
        if (kind == TILE_CONVERSION_SHARED) continue;
        for (uint32_t x = 0; x < 1u << to.map.inputs; x++) {
            uint32_t y = tile_linear_apply(&source, x);
            cr_assert_eq(tile_linear_apply(&from.map, y), tile_linear_apply(&to.map, x));
            TileLayoutInput here = place_of(&to, x), there = place_of(&from, y);
            cr_assert_eq(here.warp, there.warp);
            if (kind != TILE_CONVERSION_SHUFFLES) cr_assert_eq(here.lane, there.lane);
        }
    }
    for (int i = 0; i < 4; i++) cr_expect_gt(kinds[i], 10, "conversions of kind %d: %u", i, kinds[i]);
}

Test(layout, results_keep_their_elements) {
    uint64_t state = 4;
    for (int round = 0; round < 2000; round++) {
        TileLayoutShape shape = {0};
        TileLayout layout = random_blocked(&state, &shape);
        unsigned axis = next(&state) % layout.rank;
        TileLayout expanded = tile_layout_expand(&layout, axis), sliced = tile_layout_slice(&expanded, axis);
        cr_assert(tile_layout_equal(&sliced, &layout));
        cr_assert_eq(tile_layout_extent(&expanded, axis), 1);
        unsigned axes[TILE_MAX_TILE_RANK];
        for (unsigned a = 0; a < layout.rank; a++) axes[a] = (a + 1) % layout.rank;
        TileLayout turned = tile_layout_permute(&layout, axes);
        for (uint32_t x = 0; x < 1u << layout.map.inputs; x++) {
            int64_t before[TILE_MAX_TILE_RANK], after[TILE_MAX_TILE_RANK];
            tile_layout_apply(&layout, place_of(&layout, x), before);
            tile_layout_apply(&turned, place_of(&turned, x), after);
            for (unsigned a = 0; a < layout.rank; a++) cr_assert_eq(after[a], before[axes[a]]);
        }
        if (layout.rank < 2) continue;
        TileLayout reduced = tile_layout_slice(&layout, axis);
        for (uint32_t x = 0; x < 1u << layout.map.inputs; x++) {
            int64_t before[TILE_MAX_TILE_RANK], after[TILE_MAX_TILE_RANK];
            tile_layout_apply(&layout, place_of(&layout, x), before);
            tile_layout_apply(&reduced, place_of(&reduced, x), after);
            for (unsigned a = 0; a < reduced.rank; a++) cr_assert_eq(after[a], before[a + (a >= axis)]);
        }
    }
}

/* A half keeps its threads, and doubling it puts the other half into as many more registers. */
Test(layout, halves_are_registers) {
    uint64_t state = 9;
    unsigned cut = 0;
    for (int round = 0; round < 2000; round++) {
        TileLayoutShape shape = {0};
        TileLayout layout = random_blocked(&state, &shape), whole, half;
        unsigned axis = next(&state) % layout.rank;
        if (!tile_layout_double(&layout, axis, &whole)) continue;
        int64_t extent = tile_layout_extent(&layout, axis);
        cr_assert(tile_layout_halve(&whole, axis, &half) && tile_layout_equal(&half, &layout));
        for (uint32_t x = 0; x < 1u << layout.map.inputs; x++) {
            TileLayoutInput place = place_of(&layout, x), other = place;
            int64_t before[TILE_MAX_TILE_RANK], first[TILE_MAX_TILE_RANK], second[TILE_MAX_TILE_RANK];
            other.reg += UINT32_C(1) << layout.bits[TILE_LAYOUT_REGISTER]; /* of the same piece */
            tile_layout_apply(&layout, place, before);
            tile_layout_apply(&whole, place, first);
            tile_layout_apply(&whole, other, second);
            for (unsigned a = 0; a < layout.rank; a++)
                cr_assert(first[a] == before[a] && second[a] == before[a] + (a == axis ? extent : 0));
        }
        cut++;
    }
    cr_expect_gt(cut, 200);
}

Test(layout, reshape_is_row_major) {
    TileLayoutBlocked blocked = {.elements = {0, 2}, .lanes = {2, 3}, .warps = {2, 0}, .order = {1, 0}};
    TileLayout layout = tile_layout_blocked(&(TileLayoutShape){2, {64, 32}}, &blocked), flat;
    cr_assert(tile_layout_reshape(&layout, &(TileLayoutShape){3, {8, 16, 16}}, &flat));
    for (uint32_t x = 0; x < 1u << layout.map.inputs; x++)
        cr_assert_eq(flat_index(&layout, place_of(&layout, x)), flat_index(&flat, place_of(&flat, x)));
    cr_expect_not(tile_layout_reshape(&layout, &(TileLayoutShape){2, {32, 32}}, &flat));
    cr_expect_not(tile_layout_reshape(&layout, &(TileLayoutShape){2, {2, 1000}}, &flat));
}

Test(layout, vectors_are_what_a_thread_has_in_a_row) {
    uint64_t state = 5;
    for (int round = 0; round < 2000; round++) {
        TileLayoutShape shape = {0};
        TileLayout layout = random_blocked(&state, &shape);
        unsigned axis = layout.rank - 1, width = tile_layout_vector(&layout, axis, 8);
        for (uint32_t lane = 0; lane < 32; lane++) {
            int64_t first[TILE_MAX_TILE_RANK], index[TILE_MAX_TILE_RANK];
            tile_layout_apply(&layout, (TileLayoutInput){0, lane, 1, 0}, first);
            cr_assert_eq(first[axis] % width, 0);
            for (uint32_t i = 0; i < width; i++) {
                tile_layout_apply(&layout, (TileLayoutInput){i, lane, 1, 0}, index);
                cr_assert_eq(index[axis], first[axis] + i);
                for (unsigned a = 0; a < axis; a++) cr_assert_eq(index[a], first[a]);
            }
        }
    }
}

/* Counts the accesses of a part of a warp to the bank with the most accesses. */
static unsigned count_conflicts(const TileSharedLayout *shared, const TileLayout *layout) {
    TileLinear offsets = tile_shared_offsets(shared, layout);
    unsigned bytes = shared->scalar_bytes * tile_shared_vector(shared, layout, NULL);
    unsigned together = bytes <= 4 ? 32 : 128 / bytes, worst = 0;
    for (unsigned begin = 0; begin < 32; begin += together) {
        uint32_t words[32][32];
        unsigned counts[32] = {0};
        for (unsigned lane = begin; lane < begin + together; lane++) {
            uint32_t at =
                tile_linear_apply(&offsets, lane << layout->bits[TILE_LAYOUT_REGISTER]) * shared->scalar_bytes;
            for (uint32_t word = at / 4; word <= (at + bytes - 1) / 4; word++) {
                unsigned bank = word % 32, k = 0;
                while (k < counts[bank] && words[bank][k] != word) k++;
                if (k == counts[bank]) words[bank][counts[bank]++] = word;
                if (counts[bank] > worst) worst = counts[bank];
            }
        }
    }
    return worst;
}

Test(swizzle, is_a_bijection_and_its_conflicts_are_predicted) {
    uint64_t state = 6;
    static const unsigned sizes[] = {1, 2, 4, 8};
    for (int round = 0; round < 4000; round++) {
        TileLayoutShape shape = {0};
        TileLayout from = random_blocked(&state, &shape), to = random_blocked(&state, &shape);
        TileSharedLayout shared = tile_shared_swizzle(&from, &to, sizes[next(&state) % 4]);
        cr_assert_eq(shared.map.inputs, shared.map.outputs);
        cr_assert_eq(tile_linear_rank(&shared.map), shared.map.outputs);
        cr_assert_eq(tile_shared_conflicts(&shared, &from), count_conflicts(&shared, &from));
        cr_assert_eq(tile_shared_conflicts(&shared, &to), count_conflicts(&shared, &to));
        cr_assert_geq(tile_shared_vector(&shared, &from, NULL), 1u << shared.log_vector);
        cr_assert_geq(tile_shared_vector(&shared, &to, NULL), 1u << shared.log_vector);
    }
}

/* A transpose: rows are stored, columns loaded, both without bank conflicts; the plain layout has a 32-way conflict for
 * one of them. */
Test(swizzle, transposes_are_free_of_conflicts) {
    static const unsigned sizes[] = {2, 4};
    for (unsigned s = 0; s < 2; s++) {
        TileLayoutShape shape = {2, {64, 64}};
        TileLayoutBlocked rows = {.lanes = {0, 5}, .warps = {2, 0}, .order = {1, 0}},
                          columns = {.lanes = {5, 0}, .warps = {0, 2}, .order = {0, 1}};
        TileLayout from = tile_layout_blocked(&shape, &rows), to = tile_layout_blocked(&shape, &columns);
        TileSharedLayout plain = tile_shared_linear(&from, sizes[s]),
                         shared = tile_shared_swizzle(&from, &to, sizes[s]);
        cr_expect_eq(tile_shared_conflicts(&shared, &from), 1, "%u bytes", sizes[s]);
        cr_expect_eq(tile_shared_conflicts(&shared, &to), 1, "%u bytes", sizes[s]);
        cr_expect_eq(tile_shared_conflicts(&plain, &to), 32);
    }
}

/* 16-byte vectors along rows for the global loads, rows of 16 bytes for ldmatrix: both without bank conflicts. */
Test(swizzle, operands_of_a_product) {
    TileLayoutShape shape = {2, {64, 64}};
    TileLayoutBlocked wide = {.elements = {0, 3}, .lanes = {2, 3}, .warps = {2, 0}, .order = {1, 0}},
                      row = {.elements = {0, 3}, .lanes = {5, 0}, .warps = {0, 2}, .order = {1, 0}};
    TileLayout from = tile_layout_blocked(&shape, &wide), to = tile_layout_blocked(&shape, &row);
    TileSharedLayout shared = tile_shared_swizzle(&from, &to, 2);
    cr_expect_eq(tile_shared_vector(&shared, &from, NULL), 8);
    cr_expect_eq(tile_shared_vector(&shared, &to, NULL), 8);
    cr_expect_eq(tile_shared_conflicts(&shared, &from), 1);
    cr_expect_eq(tile_shared_conflicts(&shared, &to), 1);
}

/* ---- matrices ---- */

/* The position of a byte of a lane's word in the matrix: PTX ISA 8.7, stmatrix and ldmatrix. */
static void locate_in_matrix(bool transposed, uint32_t lane, uint32_t byte, uint32_t *row, uint32_t *column) {
    *row = transposed ? 2 * (lane % 4) + byte / 2 : lane / 4;
    *column = transposed ? 2 * (lane / 4) + byte % 2 : 4 * (lane % 4) + byte;
}

/* Each element is stored where the shared tile's layout has it, and each row at its lane's address. */
static void check_matrices(const TileSharedMatrices *matrices, const TileLayout *layout, unsigned bytes) {
    TileLinear offsets = tile_shared_offsets(&matrices->shared, layout),
               rows = tile_shared_offsets(&matrices->shared, &matrices->rows);
    uint32_t packed = matrices->packed, count = packed << matrices->log_count,
             accesses = 1u << (matrices->rows.bits[TILE_LAYOUT_REGISTER] - matrices->shared.log_vector);
    cr_assert_eq(accesses * count, tile_layout_registers(layout));
    for (uint32_t access = 0; access < accesses; access++)
        for (uint32_t lane = 0; lane < 32; lane++)
            for (uint32_t i = 0; i < count; i++) {
                uint32_t reg = tile_shared_matrices_register(matrices, access, i), row, column,
                         at = tile_linear_apply(&offsets, reg | lane << layout->bits[TILE_LAYOUT_REGISTER]);
                locate_in_matrix(matrices->transposed, lane, i % packed * bytes, &row, &column);
                uint32_t giver = i / packed * 8 + row, first = access << matrices->shared.log_vector;
                uint32_t place =
                    tile_linear_apply(&rows, first | giver << matrices->rows.bits[TILE_LAYOUT_REGISTER]) * bytes;
                cr_assert_eq(place % 16, 0);
                cr_assert_eq(at * bytes, place + column, "access %u lane %u element %u", access, lane, i);
            }
}

/* Accumulators and rows of eight elements, row-major and column-major: by matrices, without bank conflicts. */
Test(swizzle, fragments_and_rows_pass_by_matrices) {
    static const struct {
        unsigned m, n, log_m, log_n, bytes;
        bool turned;
    } cases[] = {{128, 128, 1, 1, 2, false}, {64, 64, 2, 0, 2, false}, {64, 64, 0, 2, 2, true},
                 {16, 64, 0, 0, 2, false},   {32, 32, 1, 0, 2, true},  {64, 64, 1, 1, 4, false},
                 {128, 64, 2, 0, 2, true}};
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        TileLayoutShape shape = {2, {cases[i].m, cases[i].n}};
        TileFragmentPlan plan = {.log_warps_m = (uint8_t)cases[i].log_m, .log_warps_n = (uint8_t)cases[i].log_n};
        TileLayout sums = tile_layout_fragment(&shape, TILE_FRAGMENT_MMA_C, 16, plan);
        if (cases[i].turned) sums = tile_layout_permute(&sums, (const unsigned[]){1, 0});
        TileLayoutShape turned = {2, {tile_layout_extent(&sums, 0), tile_layout_extent(&sums, 1)}};
        unsigned lanes = 0;
        while (lanes < 5 && 8 << (lanes + 1) <= turned.extent[1]) lanes++;
        TileLayoutBlocked wide = {.elements = {0, 3},
                                  .lanes = {(uint8_t)(5 - lanes), (uint8_t)lanes},
                                  .warps = {(uint8_t)(cases[i].log_m + cases[i].log_n), 0},
                                  .order = {1, 0}};
        TileLayout rows = tile_layout_blocked(&turned, &wide);
        TileSharedMatrices matrices;
        cr_assert(tile_shared_matrices(&sums, &rows, cases[i].bytes, &matrices), "case %u", i);
        cr_expect_eq(matrices.transposed, cases[i].turned);
        check_matrices(&matrices, &sums, cases[i].bytes);
        cr_expect_eq(tile_shared_conflicts(&matrices.shared, &matrices.rows), 1, "case %u", i);
        cr_expect_eq(tile_shared_conflicts(&matrices.shared, &rows), 1, "case %u", i);
        cr_expect_eq(tile_shared_vector(&matrices.shared, &rows, NULL) * cases[i].bytes, 16);
    }
}

Test(swizzle, whatever_passes_by_matrices_comes_to_its_place) {
    uint64_t state = 7;
    unsigned found = 0;
    static const unsigned sizes[] = {1, 2, 4};
    for (int round = 0; round < 8000; round++) {
        TileLayoutShape shape = {0};
        TileLayout layout = random_blocked(&state, &shape), other = random_blocked(&state, &shape);
        unsigned bytes = sizes[next(&state) % 3];
        TileSharedMatrices matrices;
        bool one_piece = tile_layout_registers(&layout) == 1u << layout.bits[TILE_LAYOUT_REGISTER];
        if (!one_piece || layout.map.inputs != layout.map.outputs) continue;
        if (!tile_shared_matrices(&layout, &other, bytes, &matrices)) continue;
        found++;
        cr_assert_eq(tile_linear_rank(&matrices.shared.map), matrices.shared.map.outputs);
        check_matrices(&matrices, &layout, bytes);
        cr_assert_eq(tile_shared_vector(&matrices.shared, &other, NULL) * bytes, 16);
    }
    cr_expect(found > 20, "%u", found);
}
