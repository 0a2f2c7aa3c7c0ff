/* Conversions to and from f8 on every target: all codes, and for each pair of neighbours numbers between them, at the
 * midpoint and next to it, compared with the formats' definition (OCP 8-bit floating point). */
#include "effects.h"

#include <math.h>
#include <stdio.h>

typedef struct Format {
    const char *name;
    uint8_t code, mantissa;
    int bias;
    double largest;
} Format;

static const Format formats[] = {{"f8e4m3", kDLFloat8_e4m3fn, 3, 7, 448}, {"f8e5m2", kDLFloat8_e5m2, 2, 15, 57344}};

static double decode(const Format *format, unsigned code) {
    unsigned exponent = (code & 0x7f) >> format->mantissa, fraction = code & ((1u << format->mantissa) - 1);
    double sign = code & 0x80 ? -1 : 1, unit = ldexp(1, -(int)format->mantissa);
    if (format->mantissa == 3 && (code & 0x7f) == 0x7f) return NAN;
    if (format->mantissa == 2 && exponent == 31) return fraction ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * ldexp(fraction * unit, 1 - format->bias);
    return sign * ldexp(1 + fraction * unit, (int)exponent - format->bias);
}

/* The nearest finite number, ties to the even code; larger numbers, including infinity, saturate. */
static unsigned encode(const Format *format, double number) {
    unsigned best = 0, sign = signbit(number) ? 0x80 : 0;
    double magnitude = fmin(fabs(number), format->largest);
    for (unsigned code = 0; code < 0x7f; code++) {
        double value = decode(format, code), near = fabs(decode(format, best) - magnitude);
        if (isnan(value) || isinf(value)) continue;
        if (fabs(value - magnitude) < near) best = code;
        if (fabs(value - magnitude) == near && code % 2 == 0) best = code;
    }
    return best | sign;
}

enum { MOST = 256 * 5 + 16 };

static const char widen_text[] = "kernel k(c: in %s[N], w: out f32[N], d: out f64[N], b: out u8[N]) tune B in {32} {\n"
                                 "    grid n in tiles(N, B) {\n"
                                 "        w[n] = f32(c[n])\n"
                                 "        d[n] = f64(c[n])\n"
                                 "        b[n] = bitcast[u8](c[n])\n"
                                 "    }\n"
                                 "}\n";

static void check_widening(const Way *way, const Format *format) {
    uint8_t codes[256], bits[256];
    float wide[256];
    double exact[256];
    char text[400];
    Array arrays[4];
    TileArg args[4];
    for (int i = 0; i < 256; i++) codes[i] = (uint8_t)i;
    snprintf(text, sizeof text, widen_text, format->name);
    array_of(&arrays[0], codes, format->code, 8, 1, (int64_t[]){256});
    array_of(&arrays[1], wide, kDLFloat, 32, 1, (int64_t[]){256});
    array_of(&arrays[2], exact, kDLFloat, 64, 1, (int64_t[]){256});
    array_of(&arrays[3], bits, kDLUInt, 8, 1, (int64_t[]){256});
    for (int i = 0; i < 4; i++) args[i] = TILE_TENSOR(&arrays[i].dl);
    run_way(text, way, args, 4);
    for (unsigned i = 0; i < 256; i++) {
        double expected = decode(format, i);
        bool same = isnan(expected)
                        ? isnan(wide[i]) && isnan(exact[i])
                        : wide[i] == expected && exact[i] == expected && !signbit(wide[i]) == !signbit(expected);
        cr_assert(same && bits[i] == i, "%s %s: %u gave %g, %g", way->target, format->name, i, (double)wide[i],
                  exact[i]);
    }
}

static const char narrow_text[] = "kernel k(x: in f64[N], a: out %s[N], b: out %s[N], c: out %s[N]) tune B in {32} {\n"
                                  "    grid n in tiles(N, B) {\n"
                                  "        a[n] = %s(x[n])\n"
                                  "        b[n] = %s(f32(x[n]))\n"
                                  "        c[n] = %s(i32(x[n]))\n"
                                  "    }\n"
                                  "}\n";

static size_t collect_numbers(const Format *format, double *numbers) {
    static const double special[] = {0,     -0.0,   INFINITY, -INFINITY, NAN,   1e30,  -1e30,
                                     1e-30, -1e-30, 464,      465,       57345, 61440, 3};
    size_t count = sizeof special / sizeof *special;
    memcpy(numbers, special, sizeof special);
    for (unsigned code = 0; code < 256; code++) {
        double value = decode(format, code), next = code % 128 < 127 ? decode(format, code + 1) : NAN;
        if (isnan(value) || isinf(value)) continue;
        numbers[count++] = value;
        if (isnan(next) || isinf(next)) continue;
        double middle = (value + next) / 2;
        numbers[count++] = middle;
        numbers[count++] = nextafterf((float)middle, INFINITY);
        numbers[count++] = nextafterf((float)middle, -INFINITY);
        numbers[count++] = nextafter(middle, -INFINITY);
    }
    return count;
}

static void expect_code(const Way *way, const Format *format, const char *from, double number, unsigned got) {
    if (isnan(number)) {
        cr_assert(isnan(decode(format, got)), "%s: NaN as %s gave %u", way->target, format->name, got);
        return;
    }
    cr_assert_eq(got, encode(format, number), "%s: %.17g, %s to %s, gave %u, not %u", way->target, number, from,
                 format->name, got, encode(format, number));
}

static void check_narrowing(const Way *way, const Format *format) {
    static double numbers[MOST];
    static uint8_t codes[3][MOST];
    char text[600];
    const char *t = format->name;
    size_t count = collect_numbers(format, numbers);
    Array arrays[4];
    TileArg args[4];
    snprintf(text, sizeof text, narrow_text, t, t, t, t, t, t);
    array_of(&arrays[0], numbers, kDLFloat, 64, 1, (int64_t[]){(int64_t)count});
    for (int i = 0; i < 3; i++) array_of(&arrays[1 + i], codes[i], format->code, 8, 1, (int64_t[]){(int64_t)count});
    for (int i = 0; i < 4; i++) args[i] = TILE_TENSOR(&arrays[i].dl);
    run_way(text, way, args, 4);
    for (size_t i = 0; i < count; i++) {
        double whole = isnan(numbers[i]) ? 0 : fmax(fmin(trunc(numbers[i]), INT32_MAX), INT32_MIN);
        expect_code(way, format, "f64", numbers[i], codes[0][i]);
        expect_code(way, format, "f32", (float)numbers[i], codes[1][i]);
        expect_code(way, format, "i32", whole == 0 ? 0 : whole, codes[2][i]);
    }
}

Test(float8, converts_all_codes_and_midpoints) {
    for (int w = 0; w < WAY_COUNT; w++)
        for (int f = 0; way_usable(&all_ways[w]) && f < 2; f++) {
            check_widening(&all_ways[w], &formats[f]);
            check_narrowing(&all_ways[w], &formats[f]);
        }
}
