/* Operations whose semantics differ between machines and C: division, remainder and shifts of integers, cdiv, clamp,
 * bitcast, copysign and isinf, for all pairs of edge values, on every target. */
#include "effects.h"

#include <math.h>
#include <stdio.h>

typedef __int128 Wide;

static const struct {
    const char *name;
    uint8_t code, bits;
} types[] = {{"i8", kDLInt, 8},  {"i16", kDLInt, 16},  {"i32", kDLInt, 32},  {"i64", kDLInt, 64},
             {"u8", kDLUInt, 8}, {"u16", kDLUInt, 16}, {"u32", kDLUInt, 32}, {"u64", kDLUInt, 64}};

enum { EDGES = 12, PAIRS = EDGES * EDGES, RESULTS = 6 };

static const char integer_text[] = "kernel k(x: in %1$s[N], y: in %1$s[N], r: out %1$s[6, N]) tune B in {16} {\n"
                                   "    grid n in tiles(N, B) {\n"
                                   "        r[0, n] = x[n] / y[n]\n"
                                   "        r[1, n] = x[n] %% y[n]\n"
                                   "        r[2, n] = x[n] << y[n]\n"
                                   "        r[3, n] = x[n] >> y[n]\n"
                                   "        r[4, n] = cdiv(x[n], y[n])\n"
                                   "        r[5, n] = clamp(x[n], y[n], 5)\n"
                                   "    }\n"
                                   "}\n";

static uint64_t cut(Wide value, unsigned bits) { return (uint64_t)value & (UINT64_MAX >> (64 - bits)); }

static Wide extend(uint64_t value, unsigned bits, bool is_signed) {
    uint64_t low = cut((Wide)value, bits);
    return is_signed ? (Wide)((int64_t)(low << (64 - bits)) >> (64 - bits)) : (Wide)low;
}

static Wide floor_quotient(Wide x, Wide y) {
    if (y == 0) return 0;
    Wide q = x / y;
    return q - (x % y != 0 && (x < 0) != (y < 0));
}

static Wide expected(int operation, Wide x, Wide y, unsigned bits, bool is_signed) {
    bool inside = y >= 0 && y < bits;
    Wide above;
    switch (operation) {
    case 0: return floor_quotient(x, y);
    case 1: return y ? x - floor_quotient(x, y) * y : 0;
    case 2: return inside ? (Wide)((uint64_t)x << y) : 0;
    case 3: return inside ? x >> y : x < 0 ? -1 : 0;
    case 4: /* a + b - 1 would wrap */
        above = extend((uint64_t)(x + y - 1), bits, is_signed);
        return floor_quotient(above, y);
    default: x = x > y ? x : y; return x < 5 ? x : 5;
    }
}

static uint64_t get(const void *data, unsigned bits, size_t i) {
    uint64_t value = 0;
    memcpy(&value, (const char *)data + i * bits / 8, bits / 8);
    return value;
}

static void check_integers(const Way *way, size_t t) {
    static char x[PAIRS * 8], y[PAIRS * 8], r[RESULTS * PAIRS * 8];
    unsigned bits = types[t].bits;
    bool is_signed = types[t].code == kDLInt;
    uint64_t top = UINT64_C(1) << (bits - 1), all = UINT64_MAX >> (64 - bits);
    const uint64_t edges[EDGES] = {0, 1, 2, 3, 7, bits - 1, bits, bits + 1, top - 1, top, top + 1, all};
    char text[700];
    Array arrays[3];
    TileArg args[3];
    for (int i = 0; i < PAIRS; i++) {
        memcpy(x + i * (int)bits / 8, &edges[i / EDGES], bits / 8);
        memcpy(y + i * (int)bits / 8, &edges[i % EDGES], bits / 8);
    }
    snprintf(text, sizeof text, integer_text, types[t].name);
    array_of(&arrays[0], x, types[t].code, types[t].bits, 1, (int64_t[]){PAIRS});
    array_of(&arrays[1], y, types[t].code, types[t].bits, 1, (int64_t[]){PAIRS});
    array_of(&arrays[2], r, types[t].code, types[t].bits, 2, (int64_t[]){RESULTS, PAIRS});
    for (int i = 0; i < 3; i++) args[i] = TILE_TENSOR(&arrays[i].dl);
    run_way(text, way, args, 3);
    for (int i = 0; i < PAIRS; i++)
        for (int o = 0; o < RESULTS; o++) {
            Wide a = extend(get(x, bits, (size_t)i), bits, is_signed),
                 b = extend(get(y, bits, (size_t)i), bits, is_signed);
            uint64_t want = cut(expected(o, a, b, bits, is_signed), bits), got = get(r, bits, (size_t)(o * PAIRS + i));
            cr_assert_eq(got, want, "%s %s: operation %d of %lld, %lld gave %llx, not %llx", way->target, types[t].name,
                         o, (long long)a, (long long)b, (unsigned long long)got, (unsigned long long)want);
        }
}

Test(edges, of_integers) {
    for (int w = 0; w < WAY_COUNT; w++)
        for (size_t t = 0; way_usable(&all_ways[w]) && t < sizeof types / sizeof *types; t++)
            check_integers(&all_ways[w], t);
}

static const char float_text[] = "kernel k(x: in f32[N], y: in f32[N], s: out f32[N], c: out f32[N], b: out u32[N],\n"
                                 "         r: out f32[N], i: out bool[N]) tune B in {16} {\n"
                                 "    grid n in tiles(N, B) {\n"
                                 "        s[n] = copysign(x[n], y[n])\n"
                                 "        c[n] = clamp(x[n], y[n], 2)\n"
                                 "        b[n] = bitcast[u32](x[n])\n"
                                 "        r[n] = bitcast[f32](bitcast[i32](x[n]) ^ 1)\n"
                                 "        i[n] = isinf(x[n])\n"
                                 "    }\n"
                                 "}\n";

static uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* The definition of min and max: the second operand if it is NaN or is less (greater). */
static float clamped(float x, float low) {
    float most = isnan(low) || low > x ? low : x;
    return 2 < most ? 2 : most;
}

Test(edges, of_floats) {
    static const float edges[EDGES] = {0,          -0.0f,           1, -1, INFINITY, -INFINITY, NAN, 0x1p-149f,
                                       -0x1p-126f, 0x1.fffffep127f, 2, -3};
    for (int w = 0; w < WAY_COUNT; w++) {
        static float x[PAIRS], y[PAIRS], s[PAIRS], c[PAIRS], r[PAIRS];
        static uint32_t b[PAIRS];
        static uint8_t i8[PAIRS];
        if (!way_usable(&all_ways[w])) continue;
        for (int i = 0; i < PAIRS; i++) x[i] = edges[i / EDGES], y[i] = edges[i % EDGES];
        void *data[] = {x, y, s, c, b, r, i8};
        Array arrays[7];
        TileArg args[7];
        for (int i = 0; i < 7; i++) {
            array_of(&arrays[i], data[i],
                     i == 4   ? kDLUInt
                     : i == 6 ? kDLBool
                              : kDLFloat,
                     i == 6 ? 8 : 32, 1, (int64_t[]){PAIRS});
            args[i] = TILE_TENSOR(&arrays[i].dl);
        }
        run_way(float_text, &all_ways[w], args, 7);
        for (int i = 0; i < PAIRS; i++) {
            float clamp = clamped(x[i], y[i]);
            cr_assert_eq(bits_of(s[i]), bits_of(copysignf(x[i], y[i])), "%s: copysign %g %g", all_ways[w].target,
                         (double)x[i], (double)y[i]);
            cr_assert(isnan(clamp) ? isnan(c[i]) : c[i] == clamp, "%s: clamp %g %g is %g", all_ways[w].target,
                      (double)x[i], (double)y[i], (double)c[i]);
            cr_assert(b[i] == bits_of(x[i]) && bits_of(r[i]) == (bits_of(x[i]) ^ 1));
            cr_assert_eq(i8[i], isinf(x[i]) != 0);
        }
    }
}

/* Strides of 0 allow dimensions of any size: their product is 2^64, which overflows. */
Test(edges, of_products_of_dimensions) {
    static const char text[] = "kernel k(a: in i8[N], b: in i8[M], x: in f32[N * M], y: out f32[])\n"
                               "{ grid (i, j) in (N, M) { y[] = x[i * M + j] } }\n";
    for (int w = 0; w < WAY_COUNT; w++) {
        static char one;
        static float x, y;
        int64_t large = INT64_C(1) << 32, none = 0;
        if (!way_usable(&all_ways[w])) continue;
        Program program = compile_way(text, &all_ways[w]);
        Array arrays[4];
        TileArg args[4];
        array_of(&arrays[0], &one, kDLInt, 8, 1, &large);
        array_of(&arrays[1], &one, kDLInt, 8, 1, &large);
        array_of(&arrays[2], &x, kDLFloat, 32, 1, &none);
        array_of(&arrays[3], &y, kDLFloat, 32, 0, NULL);
        arrays[0].strides[0] = arrays[1].strides[0] = 0;
        for (int i = 0; i < 4; i++) args[i] = TILE_TENSOR(&arrays[i].dl);
        TileError error = {.message = ""};
        TileLaunchOptions options = {.struct_size = sizeof options, .error = &error};
        cr_expect_eq(tile_launch(program.kernel, args, 4, &options), TILE_INVALID_ARGUMENT);
        cr_expect(strstr(error.message, "requires N * M without overflow"), "%s", error.message);
        release_program(&program);
    }
}
