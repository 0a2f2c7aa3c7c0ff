/* split, join and cat compared with their definition, element by element. */
#include "effects.h"

#include <math.h>

static const char rotary_text[] = "kernel k(x: in f32[M, 6], y: out f32[M, 6]) tune B in {4} {\n"
                                  "    grid m in tiles(M, B) {\n"
                                  "        let (even, odd) = split(reshape(x[m, :], (B, 3, 2)))\n"
                                  "        y[m, :] = reshape(join(-odd, even), (B, 6))\n"
                                  "    }\n"
                                  "}\n";

static const char cat_text[] = "kernel k(x: in f32[M, 6], y: out f32[M, 20]) tune B in {4} {\n"
                               "    grid m in tiles(M, B) {\n"
                               "        let v = x[m, :]\n"
                               "        let most = max(v, axis = 1, keep = true)\n"
                               "        y[m, :] = cat(v, cat(sqrt(abs(v)), most, axis = 1), most, v + 1, axis = 1)\n"
                               "    }\n"
                               "}\n";

static const char rows_text[] = "kernel k(x: in i16[M], y: out i16[M, 7, 2]) {\n"
                                "    grid m in M {\n"
                                "        let one = x[m] else 0\n"
                                "        let pair = join(one, 5)[_, :]\n"
                                "        y[m, :, :] = cat(pair, full[4, 2](i16(7)), pair * 2, pair * 3)\n"
                                "    }\n"
                                "}\n";

enum { MOST = 9 };

static float input[MOST * 6], output[MOST * 20];

static void run_floats(const char *source, const Way *way, int64_t rows, int64_t columns) {
    Array arrays[2];
    for (int i = 0; i < MOST * 6; i++) input[i] = (float)((i * 37 + 11) % 101) - 50;
    for (int i = 0; i < MOST * 20; i++) output[i] = -999;
    array_of(&arrays[0], input, kDLFloat, 32, 2, (int64_t[]){rows, 6});
    array_of(&arrays[1], output, kDLFloat, 32, 2, (int64_t[]){rows, columns});
    TileArg args[] = {TILE_TENSOR(&arrays[0].dl), TILE_TENSOR(&arrays[1].dl)};
    run_way(source, way, args, 2);
}

static void check_rotary(const Way *way, int64_t rows) {
    run_floats(rotary_text, way, rows, 6);
    for (int64_t i = 0; i < rows * 3; i++) {
        cr_assert_eq(output[2 * i], -input[2 * i + 1], "%s", way->target);
        cr_assert_eq(output[2 * i + 1], input[2 * i], "%s", way->target);
    }
}

static float expected_of_cat(const float *row, int column) {
    float most = row[0];
    for (int i = 1; i < 6; i++) most = fmaxf(most, row[i]);
    if (column < 6) return row[column];
    if (column < 12) return sqrtf(fabsf(row[column - 6]));
    return column < 14 ? most : row[column - 14] + 1;
}

static void check_cat(const Way *way, int64_t rows) {
    run_floats(cat_text, way, rows, 20);
    for (int64_t m = 0; m < rows; m++)
        for (int n = 0; n < 20; n++)
            cr_assert_eq(output[m * 20 + n], expected_of_cat(input + m * 6, n), "%s: %lld, %d", way->target,
                         (long long)m, n);
    for (int64_t i = rows * 20; i < MOST * 20; i++) cr_assert_eq(output[i], -999);
}

static void check_rows(const Way *way) {
    int16_t x[3] = {1, -2, 300}, y[3][7][2];
    Array arrays[2];
    array_of(&arrays[0], x, kDLInt, 16, 1, (int64_t[]){3});
    array_of(&arrays[1], y, kDLInt, 16, 3, (int64_t[]){3, 7, 2});
    TileArg args[] = {TILE_TENSOR(&arrays[0].dl), TILE_TENSOR(&arrays[1].dl)};
    run_way(rows_text, way, args, 2);
    for (int m = 0; m < 3; m++)
        for (int r = 0; r < 7; r++)
            for (int i = 0; i < 2; i++) {
                int factor = r == 0 ? 1 : r - 3, pair = i ? 5 : x[m];
                cr_assert_eq(y[m][r][i], r > 0 && r < 5 ? 7 : (int16_t)(pair * factor), "%s", way->target);
            }
}

Test(join, equals_the_definition) {
    for (int w = 0; w < WAY_COUNT; w++) {
        if (!way_usable(&all_ways[w])) continue;
        for (int64_t rows = 0; rows <= MOST; rows += rows < 5 ? 1 : 4) {
            check_rotary(&all_ways[w], rows);
            check_cat(&all_ways[w], rows);
        }
        check_rows(&all_ways[w]);
    }
}
