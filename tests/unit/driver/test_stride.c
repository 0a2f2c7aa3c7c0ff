/* Ranges whose stride is known at launch only: positive, negative, zero, and strides whose indices overflow 64 bits,
 * compared with the definition, on every target. */
#include "effects.h"

#include <stdlib.h>

enum { MOST_X = 20, MOST_Y = 9, BLOCK = 8 };

static const char text[] = "kernel k(x: in f32[N], w: in f32[M], y: out f32[M], z: inout f32[N], s: out f32[M],\n"
                           "         count: inout i32[N], c: i64, d: i64)\n"
                           "    tune B in {8}\n"
                           "{\n"
                           "    grid m in tiles(M, B) {\n"
                           "        y[m] = x[m * c + d] else -1\n"
                           "        atomic_add(count[m * c + d], 1)\n"
                           "        s[m] = f32(sum(x[d - c * m]) + sum(x[span(m.start, B) * c + d]))\n"
                           "    }\n"
                           "    grid one in 1 {\n"
                           "        for m in tiles(M, B) { z[m * c + d] = w[m] else skip }\n"
                           "    }\n"
                           "}\n";

static const int64_t strides[] = {-3, -1, 0, 1, 2, INT64_C(1) << 62, INT64_MAX, INT64_MIN};
static const int64_t shifts[] = {0, 5, -4, 19, INT64_MAX, INT64_MIN + 100};

/* The element that the lane accesses, or -1: a range begins at an i64, and adds l * stride for lane l. */
static int64_t place(int64_t start, int64_t lane, int64_t step, int64_t shift, int64_t extent) {
    int64_t first = (int64_t)((uint64_t)start * (uint64_t)step + (uint64_t)shift);
    __int128 at = (__int128)first + (__int128)lane * step;
    return at >= 0 && at < extent ? (int64_t)at : -1;
}

typedef struct Data {
    float x[MOST_X], w[MOST_Y], y[MOST_Y], z[MOST_X], s[MOST_Y];
    int32_t count[MOST_X];
} Data;

static void expect_all(Data *data, int64_t n, int64_t m, int64_t c, int64_t d) {
    for (int64_t start = 0; start < m; start += BLOCK) {
        float back = 0, all = 0;
        for (int64_t l = 0; l < BLOCK; l++) {
            int64_t to = place(start, l, c, d, n), from = place(start, l, (int64_t)(0 - (uint64_t)c), d, n);
            if (to >= 0) all += data->x[to];
            if (start + l >= m) continue;
            if (from >= 0) back += data->x[from];
            data->y[start + l] = to >= 0 ? data->x[to] : -1;
            if (to < 0) continue;
            data->count[to]++;
            data->z[to] = data->w[start + l];
        }
        for (int64_t l = start; l < m && l < start + BLOCK; l++) data->s[l] = back + all;
    }
}

static void check_stride(const Way *way, const Program *program, int64_t n, int64_t m, int64_t c, int64_t d) {
    static Data before, wanted, got;
    for (int i = 0; i < MOST_X; i++) before.x[i] = (float)(i + 1), before.z[i] = -2, before.count[i] = 0;
    for (int i = 0; i < MOST_Y; i++) before.w[i] = (float)(100 + i), before.y[i] = before.s[i] = -3;
    wanted = got = before;
    Array arrays[6];
    TileArg args[8];
    void *of_n[] = {got.x, got.z, got.count}, *of_m[] = {got.w, got.y, got.s};
    static const int at_n[] = {0, 3, 5}, at_m[] = {1, 2, 4};
    for (int i = 0; i < 3; i++) {
        array_of(&arrays[at_n[i]], of_n[i], i == 2 ? kDLInt : kDLFloat, 32, 1, &n);
        array_of(&arrays[at_m[i]], of_m[i], kDLFloat, 32, 1, &m);
    }
    for (int i = 0; i < 6; i++) args[i] = TILE_TENSOR(&arrays[i].dl);
    args[6] = TILE_INTEGER(c);
    args[7] = TILE_INTEGER(d);
    launch_with(program, args, 8, NULL);
    expect_all(&wanted, n, m, c, d);
    cr_assert(memcmp(&got, &wanted, sizeof got) == 0, "%s%s: N = %lld, M = %lld, c = %lld, d = %lld", way->target,
              way->flags ? ", emulated" : "", (long long)n, (long long)m, (long long)c, (long long)d);
}

static void check_way(const Way *way) {
    static const int64_t sizes[] = {0, 1, BLOCK - 1, BLOCK, BLOCK + 1}, extents[] = {0, 1, MOST_X};
    Program program = compile_way(text, way);
    for (size_t n = 0; n < 3; n++)
        for (size_t m = 0; m < 5; m++)
            for (size_t c = 0; c < sizeof strides / sizeof *strides; c++)
                for (size_t d = 0; d < sizeof shifts / sizeof *shifts; d++)
                    check_stride(way, &program, extents[n], sizes[m], strides[c], shifts[d]);
    release_program(&program);
}

Test(stride, known_at_launch) {
    static const Way others[] = {{"sve", TILE_COMPILE_EMULATE}, {"sm_80", TILE_COMPILE_EMULATE}};
    for (int w = 0; w < WAY_COUNT; w++)
        if (way_usable(&all_ways[w])) check_way(&all_ways[w]);
    for (int w = 0; w < 2; w++) check_way(&others[w]);
}
