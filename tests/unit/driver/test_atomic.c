/* Atomic updates: stored and returned values, on every target; and no update is lost between threads. */
#include "effects.h"

#include <math.h>
#include <stdio.h>

enum { PROGRAMS = 4000, BINS = 7 };

/* ---- threads ---- */

static const char count_text[] =
    "kernel count(at: in i32[N], bins: inout i64[B], total: inout f64[], ticket: inout i32[], mine: out i32[P],\n"
    "             low: inout f32[], high: inout i16[])\n"
    "    tune BN in {16}\n"
    "{\n"
    "    grid p in P {\n"
    "        let n = span(p * BN..N, BN)\n"
    "        atomic_add(bins[at[n]], 1)\n"
    "        atomic_add(total[], sum(f64(at[n])))\n"
    "        mine[p] = atomic_add(ticket[], 1)\n"
    "        atomic_min(low[], f32(min(at[n])))\n"
    "        atomic_max(high[], i16(max(at[n])))\n"
    "    }\n"
    "}\n";

static int32_t places[PROGRAMS * 16], tickets[PROGRAMS];
static bool taken[PROGRAMS];

/* Every update counts once: sums of integers are exact, also in f64, and fetch-and-add never returns a value twice. */
static void check_count(const Way *way, TileThreadPool *pool, int64_t programs) {
    int64_t bins[BINS] = {0}, expected[BINS] = {0}, n = programs * 16 - 5;
    double total = 0, sum = 0;
    int32_t ticket = 0;
    float low = INFINITY;
    int16_t high = -7;
    memset(taken, 0, sizeof taken);
    for (int64_t i = 0; i < n; i++) {
        places[i] = (int32_t)(i * 2654435761u % (BINS + 2)) - 1; /* some of them out of bounds */
        if (places[i] >= 0 && places[i] < BINS) expected[places[i]]++;
        sum += places[i];
    }
    Array arrays[7];
    array_of(&arrays[0], places, kDLInt, 32, 1, (int64_t[]){n});
    array_of(&arrays[1], bins, kDLInt, 64, 1, (int64_t[]){BINS});
    array_of(&arrays[2], &total, kDLFloat, 64, 0, NULL);
    array_of(&arrays[3], &ticket, kDLInt, 32, 0, NULL);
    array_of(&arrays[4], tickets, kDLInt, 32, 1, (int64_t[]){programs});
    array_of(&arrays[5], &low, kDLFloat, 32, 0, NULL);
    array_of(&arrays[6], &high, kDLInt, 16, 0, NULL);
    TileArg args[7];
    for (int i = 0; i < 7; i++) args[i] = TILE_TENSOR(&arrays[i].dl);
    Program program = compile_way(count_text, way);
    TileLaunchOptions options = {.threads = pool};
    launch_with(&program, args, 7, &options);
    release_program(&program);
    for (int i = 0; i < BINS; i++) cr_assert_eq(bins[i], expected[i], "%s: bin %d", way->target, i);
    cr_assert_eq(total, sum);
    cr_assert_eq(ticket, programs);
    cr_assert(low == -1 && high == BINS);
    for (int64_t i = 0; i < programs; i++) {
        cr_assert(tickets[i] >= 0 && tickets[i] < programs && !taken[tickets[i]], "%s: ticket twice", way->target);
        taken[tickets[i]] = true;
    }
}

Test(atomic, loses_no_update) {
    TileThreadPool *pool = NULL;
    TileThreadPoolOptions options = {.struct_size = sizeof options, .threads = 8};
    cr_assert_eq(tile_thread_pool_create(&options, &pool), TILE_OK);
    for (int w = 0; w < WAY_COUNT; w++) {
        bool native = !all_ways[w].flags && strcmp(all_ways[w].target, "interp") != 0;
        if (way_usable(&all_ways[w])) check_count(&all_ways[w], pool, native ? PROGRAMS : 40);
    }
    tile_thread_pool_destroy(pool);
}

/* ---- stored and returned values ---- */

static const char types_text[] = "kernel k[T: num](x: in T[N], y: inout T[N], old: out T[N]) tune B in {8} {\n"
                                 "    grid n in tiles(N, B) { old[n] = atomic_%s(y[n], x[n]) }\n"
                                 "}\n";

typedef struct Numbers {
    const char *name;
    uint8_t code, bits;
    uint16_t x[11], y[11], sums[11], least[11], most[11];
} Numbers;

/* f16 1 = 0x3c00, 2048 = 0x6800 (where 1 is half a unit), 65504 = 0x7bff, inf = 0x7c00, a NaN 0x7e00, -0 0x8000. */
static const Numbers numbers[] = {
    {"i8",
     kDLInt,
     8,
     {1, 0xff, 0x7f, 0x80, 5, 0, 9, 1, 2, 3, 4},
     {1, 1, 1, 0xff, 0xfb, 0, 9, 0xfe, 2, 3, 4},
     {2, 0, 0x80, 0x7f, 0, 0, 18, 0xff, 4, 6, 8},
     {1, 0xff, 1, 0x80, 0xfb, 0, 9, 0xfe, 2, 3, 4},
     {1, 1, 0x7f, 0xff, 5, 0, 9, 1, 2, 3, 4}},
    {"u16",
     kDLUInt,
     16,
     {1, 0xffff, 0x7fff, 0x8000, 5, 0, 9, 1, 2, 3, 4},
     {1, 1, 1, 0xffff, 3, 0, 9, 0, 2, 3, 4},
     {2, 0, 0x8000, 0x7fff, 8, 0, 18, 1, 4, 6, 8},
     {1, 1, 1, 0x8000, 3, 0, 9, 0, 2, 3, 4},
     {1, 0xffff, 0x7fff, 0xffff, 5, 0, 9, 1, 2, 3, 4}},
    {"f16",
     kDLFloat,
     16,
     {0x3c00, 0x3c00, 0x7bff, 0x7c00, 0x7e00, 0x8000, 0x3c00, 0xbc00, 0, 0x3c00, 0x4000},
     {0x3c00, 0x6800, 0x7bff, 0x3c00, 0x3c00, 0x8000, 0x7e00, 0x3c00, 0, 0x6801, 0x4000},
     {0x4000, 0x6800, 0x7c00, 0x7c00, 0x7e00, 0x8000, 0x7e00, 0, 0, 0x6802, 0x4400},
     {0x3c00, 0x3c00, 0x7bff, 0x3c00, 0x7e00, 0x8000, 0x7e00, 0xbc00, 0, 0x3c00, 0x4000},
     {0x3c00, 0x6800, 0x7bff, 0x7c00, 0x7e00, 0x8000, 0x7e00, 0x3c00, 0, 0x6801, 0x4000}},
};

static uint64_t element(const void *data, unsigned bits, int i) {
    return bits == 8 ? ((const uint8_t *)data)[i] : ((const uint16_t *)data)[i];
}

static void check_type(const Way *way, const Numbers *row, const char *what, const uint16_t *expected) {
    char text[400];
    uint16_t x[11], y[11], old[11];
    Array arrays[3];
    TileArg args[3];
    for (int i = 0; i < 11; i++) {
        if (row->bits == 8)
            ((uint8_t *)x)[i] = (uint8_t)row->x[i], ((uint8_t *)y)[i] = (uint8_t)row->y[i];
        else
            x[i] = row->x[i], y[i] = row->y[i];
    }
    void *data[] = {x, y, old};
    for (int i = 0; i < 3; i++) {
        array_of(&arrays[i], data[i], row->code, row->bits, 1, (int64_t[]){11});
        args[i] = TILE_TENSOR(&arrays[i].dl);
    }
    snprintf(text, sizeof text, types_text, what);
    run_way(text, way, args, 3);
    for (int i = 0; i < 11; i++) {
        cr_assert_eq(element(old, row->bits, i), row->y[i], "%s %s %s: old %d", way->target, row->name, what, i);
        cr_assert_eq(element(y, row->bits, i), expected[i], "%s %s %s: %d is %llx", way->target, row->name, what, i,
                     (unsigned long long)element(y, row->bits, i));
    }
}

Test(atomic, combines_like_the_operators) {
    for (int w = 0; w < WAY_COUNT; w++)
        for (size_t i = 0; way_usable(&all_ways[w]) && i < sizeof numbers / sizeof *numbers; i++) {
            check_type(&all_ways[w], &numbers[i], "add", numbers[i].sums);
            check_type(&all_ways[w], &numbers[i], "min", numbers[i].least);
            check_type(&all_ways[w], &numbers[i], "max", numbers[i].most);
        }
}

/* ---- compare and swap, masks, repeated indices ---- */

static const char swap_text[] =
    "kernel k(x: in f32[N], y: inout f32[N], old: out f32[N], hits: inout i32[2]) tune B in {4} {\n"
    "    grid n in tiles(N, B) {\n"
    "        let was = atomic_cas(y[n], 0, x[n])\n"
    "        atomic_add(y[n + 1], keep(full[B](f32(100)), x[n] > 2) else skip)\n"
    "        old[n] = was\n"
    "        let before = atomic_add(hits[iota[B] % 2], 1)\n"
    "        assert(all(before < 1000), \"few\")\n"
    "    }\n"
    "}\n";

Test(atomic, swaps_masks_and_repeats) {
    for (int w = 0; w < WAY_COUNT; w++) {
        if (!way_usable(&all_ways[w])) continue;
        float x[6] = {1, 2, 3, 4, 5, 6}, y[6] = {0, -0.0f, 7, 0, NAN, 0}, old[6];
        int32_t hits[2] = {10, 20};
        /* -0 and NaN are not the bits of 0 */
        const float expected[6] = {1, -0.0f, 7, 104, NAN, 106};
        Array arrays[4];
        array_of(&arrays[0], x, kDLFloat, 32, 1, (int64_t[]){6});
        array_of(&arrays[1], y, kDLFloat, 32, 1, (int64_t[]){6});
        array_of(&arrays[2], old, kDLFloat, 32, 1, (int64_t[]){6});
        array_of(&arrays[3], hits, kDLInt, 32, 1, (int64_t[]){2});
        TileArg args[4];
        for (int i = 0; i < 4; i++) args[i] = TILE_TENSOR(&arrays[i].dl);
        TileThreadPool *pool = NULL;
        TileThreadPoolOptions one = {.struct_size = sizeof one, .threads = 1};
        cr_assert_eq(tile_thread_pool_create(&one, &pool), TILE_OK);
        Program program = compile_way(swap_text, &all_ways[w]);
        TileLaunchOptions options = {.threads = pool};
        launch_with(&program, args, 4, &options);
        release_program(&program);
        tile_thread_pool_destroy(pool);
        for (int i = 0; i < 6; i++)
            cr_expect(isnan(expected[i]) ? isnan(y[i]) : y[i] == expected[i], "%s: %d is %g", all_ways[w].target, i,
                      y[i]);
        cr_expect(y[2] == 7 && old[0] == 0 && old[2] == 7 && signbit(old[1]));
        cr_expect(hits[0] == 14 && hits[1] == 24, "%s: %d, %d", all_ways[w].target, hits[0], hits[1]);
    }
}
