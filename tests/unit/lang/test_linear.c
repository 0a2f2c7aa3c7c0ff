/* Linear maps against brute force over all inputs, on random maps of up to ten bits. */
#include <criterion/criterion.h>
#include <string.h>

#include "lang/layout/linear.h"

enum { ROUNDS = 4000, MOST_BITS = 10 };

static uint32_t next(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33);
}

/* Sparse ones too: dependent and zero columns are the interesting cases. */
static TileLinear random_map(uint64_t *state, unsigned inputs, unsigned outputs) {
    TileLinear map = tile_linear_zero(inputs, outputs);
    uint32_t keep = next(state) % 3 ? UINT32_MAX : next(state);
    for (unsigned i = 0; i < inputs; i++)
        map.column[i] = next(state) & keep & ((UINT32_C(1) << outputs) - 1) & (next(state) % 5 ? UINT32_MAX : 0);
    return map;
}

static bool in_image(const TileLinear *map, uint32_t output) {
    for (uint32_t x = 0; x < UINT32_C(1) << map->inputs; x++)
        if (tile_linear_apply(map, x) == output) return true;
    return false;
}

static unsigned image_size(const TileLinear *map) {
    unsigned count = 0;
    for (uint32_t y = 0; y < UINT32_C(1) << map->outputs; y++) count += in_image(map, y);
    return count;
}

Test(linear, compose_is_application_in_turn) {
    uint64_t state = 1;
    for (int round = 0; round < ROUNDS; round++) {
        unsigned a = next(&state) % MOST_BITS, b = next(&state) % MOST_BITS, c = next(&state) % MOST_BITS;
        TileLinear inner = random_map(&state, a, b), outer = random_map(&state, b, c);
        TileLinear both = tile_linear_compose(&outer, &inner);
        for (int k = 0; k < 8; k++) {
            uint32_t x = next(&state) & ((UINT32_C(1) << a) - 1);
            cr_assert_eq(tile_linear_apply(&both, x), tile_linear_apply(&outer, tile_linear_apply(&inner, x)));
        }
    }
}

Test(linear, rank_and_kernel) {
    uint64_t state = 2;
    for (int round = 0; round < 300; round++) {
        TileLinear map = random_map(&state, next(&state) % 8, next(&state) % 8), kernel = tile_linear_kernel(&map);
        cr_assert_eq(1u << tile_linear_rank(&map), image_size(&map));
        cr_assert_eq(kernel.inputs + tile_linear_rank(&map), map.inputs);
        cr_assert_eq(tile_linear_rank(&kernel), kernel.inputs, "the basis is independent");
        for (uint32_t i = 0; i < UINT32_C(1) << kernel.inputs; i++)
            cr_assert_eq(tile_linear_apply(&map, tile_linear_apply(&kernel, i)), 0);
    }
}

Test(linear, division_solves_or_says_that_nothing_does) {
    uint64_t state = 3;
    unsigned solved = 0;
    for (int round = 0; round < 600; round++) {
        unsigned outputs = next(&state) % 8;
        TileLinear a = random_map(&state, next(&state) % 8, outputs), b = random_map(&state, next(&state) % 4, outputs),
                   x;
        bool possible = true;
        for (unsigned i = 0; i < b.inputs; i++) possible &= in_image(&a, b.column[i]);
        cr_assert_eq(tile_linear_divide(&a, &b, &x), possible);
        if (!possible) continue;
        solved++;
        TileLinear again = tile_linear_compose(&a, &x);
        cr_assert(tile_linear_equal(&again, &b));
    }
    cr_assert_gt(solved, 50);
}

Test(linear, pseudo_inverse) {
    uint64_t state = 4;
    for (int round = 0; round < ROUNDS; round++) {
        TileLinear map = random_map(&state, next(&state) % MOST_BITS, next(&state) % MOST_BITS);
        TileLinear inverse = tile_linear_pseudo_inverse(&map), back = tile_linear_compose(&inverse, &map),
                   again = tile_linear_compose(&map, &back);
        cr_assert(tile_linear_equal(&again, &map));
        if (tile_linear_rank(&map) == map.inputs && map.inputs == map.outputs) {
            TileLinear identity = tile_linear_identity(map.inputs);
            cr_assert(tile_linear_equal(&back, &identity));
        }
    }
}

Test(linear, left_division_takes_a_factor_off) {
    uint64_t state = 5;
    for (int round = 0; round < ROUNDS; round++) {
        TileLinear factor = random_map(&state, next(&state) % 5, next(&state) % 5),
                   rest = random_map(&state, next(&state) % 5, next(&state) % 5), found;
        TileLinear map = tile_linear_zero(factor.inputs + rest.inputs, factor.outputs + rest.outputs);
        memcpy(map.column, factor.column, factor.inputs * sizeof *map.column);
        for (unsigned i = 0; i < rest.inputs; i++) map.column[factor.inputs + i] = rest.column[i] << factor.outputs;
        cr_assert(tile_linear_divide_left(&map, &factor, &found));
        cr_assert(tile_linear_equal(&found, &rest));
        if (rest.inputs && factor.outputs) {
            map.column[factor.inputs] ^= 1;
            cr_assert_not(tile_linear_divide_left(&map, &factor, &found), "the rest touches the factor's outputs");
        }
    }
}

static uint32_t span_element(const TileLinearSpan *span, uint32_t choice) {
    uint32_t element = 0;
    for (unsigned i = 0; i < span->dimension; i++)
        if (choice >> i & 1) element ^= span->vector[i];
    return element;
}

Test(linear, spans_intersect_in_what_both_have) {
    uint64_t state = 6;
    for (int round = 0; round < 1000; round++) {
        TileLinearSpan a = {0}, b = {0};
        for (unsigned i = next(&state) % 6; i > 0; i--) tile_span_add(&a, next(&state) & 127);
        for (unsigned i = next(&state) % 6; i > 0; i--) tile_span_add(&b, next(&state) & 127);
        TileLinearSpan both = tile_span_intersect(&a, &b);
        unsigned common = 0;
        for (uint32_t i = 0; i < UINT32_C(1) << a.dimension; i++) common += tile_span_has(&b, span_element(&a, i));
        cr_assert_eq(common, 1u << both.dimension);
        for (unsigned i = 0; i < both.dimension; i++)
            cr_assert(tile_span_has(&a, both.vector[i]) && tile_span_has(&b, both.vector[i]));
    }
}
