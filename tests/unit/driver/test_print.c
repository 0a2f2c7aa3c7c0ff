/* print: complete lines through the launch's hook, on every target and from many threads. */
#include "effects.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char values_text[] =
    "kernel show(x: in f32[N], y: inout i32[N], h: in f16[2, 2], big: in u64[1]) tune B in {4} {\n"
    "    grid n in tiles(N, B) {\n"
    "        print(\"{x} =\", x[n], \"sum\", sum(x[n]), n.start, x[n] > 1)\n"
    "        y[n] = y[n] + 1\n"
    "        print(y[n], h[:, :], big[0], f64(0.1), n.start == 4, i8(-3))\n"
    "        print(\"left\", x[n - 1])\n"
    "    }\n"
    "}\n";

static const char expected[] = "show[0]: {x} = [0.5, -0, inf, 30] sum inf 0 [false, false, true, true]\n"
                               "show[0]: [8, 10, 12, 14] [[1, 2], [0.099975586, -65504]] 18446744073709551615 0.1 false -3\n"
                               "show[0]: left [_, 0.5, -0, inf]\n"
                               "show[1]: {x} = [1e-20, 16777216, _, _] sum 16777216 4 [false, true, _, _]\n"
                               "show[1]: [16, 18, _, _] [[1, 2], [0.099975586, -65504]] 18446744073709551615 0.1 true -3\n"
                               "show[1]: left [30, 1e-20, _, _]\n";

typedef struct Page {
    char text[1 << 20];
    size_t length, lines;
    bool inside;
} Page;

static void keep_line(void *host, const char *line, size_t length) {
    Page *page = host;
    cr_expect(!page->inside, "two lines at once");
    page->inside = true;
    cr_expect(length && line[length - 1] == '\n' && !memchr(line, '\n', length - 1), "not one line");
    cr_assert(page->length + length < sizeof page->text);
    memcpy(page->text + page->length, line, length);
    page->length += length;
    page->lines++;
    page->text[page->length] = 0;
    page->inside = false;
}

static void print_all(const char *source, const Way *way, const TileArg *args, size_t count, int threads, Page *page) {
    TileThreadPool *pool = NULL;
    TileThreadPoolOptions pool_options = {.struct_size = sizeof pool_options, .threads = threads};
    cr_assert_eq(tile_thread_pool_create(&pool_options, &pool), TILE_OK);
    Program program = compile_way(source, way);
    TileLaunchOptions options = {.threads = pool, .print = keep_line, .print_host = page};
    launch_with(&program, args, count, &options);
    release_program(&program);
    tile_thread_pool_destroy(pool);
}

Test(print, values) {
    for (int w = 0; w < WAYS_WITH_GPU; w++) {
        if (!way_usable(&all_ways[w])) continue;
        float x[6] = {0.5f, -0.0f, INFINITY, 30, 1e-20f, 16777216};
        int32_t y[6] = {7, 9, 11, 13, 15, 17};
        uint16_t h[4] = {0x3c00, 0x4000, 0x2e66, 0xfbff};
        uint64_t big = UINT64_MAX;
        Array arrays[4];
        array_of(&arrays[0], x, kDLFloat, 32, 1, (int64_t[]){6});
        array_of(&arrays[1], y, kDLInt, 32, 1, (int64_t[]){6});
        array_of(&arrays[2], h, kDLFloat, 16, 2, (int64_t[]){2, 2});
        array_of(&arrays[3], &big, kDLUInt, 64, 1, (int64_t[]){1});
        TileArg args[4];
        for (int i = 0; i < 4; i++) args[i] = TILE_TENSOR(&arrays[i].dl);
        Page *page = calloc(1, sizeof *page);
        print_all(values_text, &all_ways[w], args, 4, 1, page);
        cr_expect_str_eq(page->text, expected, "%s:\n%s", all_ways[w].target, page->text);
        free(page);
    }
}

static const char many_text[] = "kernel many(y: out i32[P]) {\n"
                                "    grid p in P {\n"
                                "        for i in 0..3 { print(\"turn\", i, iota[40]) }\n"
                                "        y[p] = 1\n"
                                "    }\n"
                                "}\n";

Test(print, whole_lines_from_many_threads) {
    enum { PROGRAMS = 300 };
    static int32_t y[PROGRAMS];
    for (int w = 0; w < WAYS_WITH_GPU; w++) {
        if (!way_usable(&all_ways[w])) continue;
        Array array;
        array_of(&array, y, kDLInt, 32, 1, (int64_t[]){PROGRAMS});
        TileArg args[] = {TILE_TENSOR(&array.dl)};
        Page *page = calloc(1, sizeof *page);
        print_all(many_text, &all_ways[w], args, 1, 8, page);
        cr_expect_eq(page->lines, 3 * PROGRAMS, "%s: %zu lines", all_ways[w].target, page->lines);
        for (int p = 0; p < PROGRAMS; p++) {
            char first[64], second[64];
            snprintf(first, sizeof first, "many[%d]: turn 0 [0, 1, 2,", p);
            snprintf(second, sizeof second, "many[%d]: turn 1 [0, 1, 2,", p);
            const char *before = strstr(page->text, first), *after = strstr(page->text, second);
            cr_assert(before && after && before < after, "%s: program %d", all_ways[w].target, p);
        }
        free(page);
    }
}
