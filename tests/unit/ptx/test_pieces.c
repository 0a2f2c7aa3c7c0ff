/* Layouts of axes that consist of several pieces. */
#include <criterion/criterion.h>

#include "lang/layout/layout.h"

/* The number of the element in row-major order. */
static int64_t number_of(const TileLayout *layout, TileLayoutInput place) {
    int64_t index[TILE_MAX_TILE_RANK], number = 0;
    tile_layout_apply(layout, place, index);
    for (unsigned a = 0; a < layout->rank; a++) number = number * tile_layout_extent(layout, a) + index[a];
    return number;
}

Test(pieces, keep_their_elements_in_a_reshape) {
    TileLayoutBlocked blocked = {.elements = {0, 2}, .lanes = {2, 3}, .warps = {2, 0}, .order = {1, 0}};
    TileLayout layout = tile_layout_blocked(&(TileLayoutShape){2, {32, 96}}, &blocked), other, half;
    const TileLayoutShape same[] = {{3, {32, 48, 2}}, {3, {4, 8, 96}}, {4, {32, 24, 2, 2}}, {3, {32, 3 * 8, 4}}};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        cr_assert(tile_layout_reshape(&layout, &same[i], &other));
        for (uint32_t reg = 0; reg < tile_layout_registers(&layout); reg++)
            for (uint32_t lane = 0; lane < TILE_LANES; lane++)
                for (uint32_t warp = 0; warp < 4; warp++)
                    cr_assert_eq(number_of(&layout, (TileLayoutInput){reg, lane, warp, 0}), number_of(&other, (TileLayoutInput){reg, lane, warp, 0}));
    }
    cr_expect_not(tile_layout_reshape(&layout, &(TileLayoutShape){2, {96, 32}}, &other)); /* other elements in each piece */
    cr_expect_not(tile_layout_reshape(&layout, &(TileLayoutShape){1, {3072}}, &other));
    cr_expect_not(tile_layout_reshape(&layout, &(TileLayoutShape){2, {4 * 24, 32}}, &other));
    cr_assert(tile_layout_reshape(&layout, &same[0], &other) && tile_layout_halve(&other, 2, &half));
    cr_expect_not(tile_layout_halve(&other, 1, &half)); /* halves of three pieces */
}
