/* The overlap tests compared with enumeration of all elements. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "launch/overlap.h"

enum { MEMORY = 4096 };

static uint64_t state = 1;
static int64_t pick(int64_t lo, int64_t hi) { /* lo .. hi */
    state = state * 6364136223846793005u + 1442695040888963407u;
    return lo + (int64_t)((state >> 33) % (uint64_t)(hi - lo + 1));
}

static TileView random_view(void) {
    static const TileHostType types[] = {TILE_HOST_I8, TILE_HOST_F16, TILE_HOST_F32, TILE_HOST_F64};
    TileView view = {.type = types[pick(0, 3)], .rank = (uint8_t)pick(0, 3), .tensor = true, .known = true};
    int64_t size = tile_host_type_bytes(view.type), below = 0, above = size;
    bool odd = pick(0, 3) == 0; /* strides that are not multiples of the element size */
    for (int i = 0; i < view.rank; i++) {
        view.extent[i] = pick(pick(0, 9) == 0 ? 0 : 1, 5);
        view.stride[i] = pick(-12, 12) * (odd ? 1 : size);
        int64_t reach = view.stride[i] * (view.extent[i] - 1);
        if (view.extent[i] > 0) *(reach < 0 ? &below : &above) += reach;
    }
    bool empty = false;
    for (int i = 0; i < view.rank; i++) empty |= view.extent[i] == 0;
    uint64_t base = (uint64_t)(MEMORY / 2 + pick(0, 40) * (odd ? 1 : size));
    view.data = (char *)(uintptr_t)base;
    view.low = empty ? base : base + (uint64_t)below;
    view.high = empty ? base : base + (uint64_t)above;
    return view;
}

/* Calls the function with the address of each element. */
static bool any_element(const TileView *view, int axis, uint64_t address, bool (*visit)(uint64_t, uint64_t, uint8_t *),
                        uint8_t *marks) {
    if (axis == view->rank) return visit(address, tile_host_type_bytes(view->type), marks);
    bool found = false;
    for (int64_t i = 0; i < view->extent[axis]; i++)
        found |= any_element(view, axis + 1, address + (uint64_t)(i * view->stride[axis]), visit, marks);
    return found;
}

static bool mark(uint64_t address, uint64_t size, uint8_t *marks) {
    bool twice = false;
    for (uint64_t i = 0; i < size; i++) twice |= marks[address + i]++ != 0;
    return twice;
}

static bool look(uint64_t address, uint64_t size, uint8_t *marks) {
    bool found = false;
    for (uint64_t i = 0; i < size; i++) found |= marks[address + i] != 0;
    return found;
}

Test(overlap, pairs_as_by_trying_all) {
    static uint8_t marks[MEMORY];
    int shared = 0;
    for (int n = 0; n < 40000; n++) {
        TileView a = random_view(), b = random_view();
        memset(marks, 0, sizeof marks);
        any_element(&a, 0, (uint64_t)(uintptr_t)a.data, mark, marks);
        bool expected = any_element(&b, 0, (uint64_t)(uintptr_t)b.data, look, marks);
        shared += expected;
        cr_assert_eq(tile_views_overlap(&a, &b), expected ? TILE_OVERLAP_SHARED : TILE_OVERLAP_NONE, "pair %d", n);
        cr_assert_eq(tile_views_overlap(&b, &a), expected ? TILE_OVERLAP_SHARED : TILE_OVERLAP_NONE, "pair %d", n);
    }
    cr_assert(shared > 4000 && shared < 36000, "%d of 40000 share memory", shared);
}

Test(overlap, itself_as_by_trying_all) {
    static uint8_t marks[MEMORY];
    int shared = 0;
    for (int n = 0; n < 40000; n++) {
        TileView view = random_view();
        memset(marks, 0, sizeof marks);
        bool expected = any_element(&view, 0, (uint64_t)(uintptr_t)view.data, mark, marks);
        shared += expected;
        cr_assert_eq(tile_view_overlaps_itself(&view), expected ? TILE_OVERLAP_SHARED : TILE_OVERLAP_NONE, "view %d",
                     n);
    }
    cr_assert(shared > 4000 && shared < 36000, "%d of 40000 overlap themselves", shared);
}

static TileView wide_view(uint64_t base, int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride) {
    TileView view = {.data = (char *)(uintptr_t)base,
                     .type = TILE_HOST_F32,
                     .rank = 2,
                     .extent = {rows, columns},
                     .stride = {row_stride, column_stride}};
    view.low = base;
    view.high = base + (uint64_t)((rows - 1) * row_stride + (columns - 1) * column_stride + 4);
    return view;
}

Test(overlap, large_views_are_decided) {
    uint64_t base = UINT64_C(1) << 40;
    /* The left and the right half of the columns of a matrix of 10**6 by 10**6. */
    TileView left = wide_view(base, 1000000, 500000, 4000000, 4);
    TileView right = wide_view(base + 2000000, 1000000, 500000, 4000000, 4);
    cr_assert_eq(tile_views_overlap(&left, &right), TILE_OVERLAP_NONE);
    right = wide_view(base + 1999996, 1000000, 500000, 4000000, 4);
    cr_assert_eq(tile_views_overlap(&left, &right), TILE_OVERLAP_SHARED);
    /* Even and odd columns. */
    TileView even = wide_view(base, 1000000, 500000, 4000000, 8),
             odd = wide_view(base + 4, 1000000, 500000, 4000000, 8);
    cr_assert_eq(tile_views_overlap(&even, &odd), TILE_OVERLAP_NONE);
    cr_assert_eq(tile_view_overlaps_itself(&even), TILE_OVERLAP_NONE);
}
