#include "numbers.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const words[OP_COUNT] = {
#define OP_WORD(id, word) word,
    OP_LIST(OP_WORD)
#undef OP_WORD
};

const char *op_word(Op op) { return op == OP_REM ? "%" : words[op]; }

bool type_is_float(Type type) { return type <= TYPE_F64; }
bool type_is_int(Type type) { return type > TYPE_F64 && type != TYPE_BOOL; }
bool type_is_signed(Type type) { return type >= TYPE_I8 && type <= TYPE_I64; }
bool type_is_f8(Type type) { return type == TYPE_F8E4M3 || type == TYPE_F8E5M2; }

/* ---- bits and numbers ---- */

double number_value(Type type, uint64_t bits) { return value_load(type, &bits); }

uint64_t number_from(Type type, double value) {
    uint64_t bits = 0;
    value_store(type, &bits, value);
    /* A conversion to f8 saturates, infinities too. */
    if (type == TYPE_F8E5M2 && isinf(value)) bits = (bits & 0x80) | 0x7b;
    return bits;
}

Wide number_integer(Type type, uint64_t bits) {
    unsigned unused = 64 - 8 * type_bytes(type);
    if (type_is_signed(type)) return (int64_t)(bits << unused) >> unused;
    return bits << unused >> unused;
}

/* To a float with a single rounding: the bits that a double cannot hold are kept as a sticky bit. */
static uint64_t float_from_integer(Type type, Wide integer) {
    if (type == TYPE_F64) return number_from(type, (double)integer);
    if (type == TYPE_F32) {
        float value = (float)integer;
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        return bits;
    }
    Wide size = integer < 0 ? -integer : integer;
    int shift = 0;
    bool sticky = false;
    for (; size >> 40; shift++, size >>= 1) sticky = sticky || (size & 1);
    return number_from(type, ldexp((double)(size << 1 | sticky), shift - 1) * (integer < 0 ? -1 : 1));
}

uint64_t number_from_integer(Type type, Wide integer) {
    if (type_is_float(type)) return float_from_integer(type, integer);
    if (type == TYPE_BOOL) return integer != 0;
    unsigned unused = 64 - 8 * type_bytes(type);
    return (uint64_t)integer << unused >> unused;
}

bool number_is_nan(Type type, uint64_t bits) { return type_is_float(type) && isnan(number_value(type, bits)); }

Number number_unknown(void) { return (Number){0, INFINITY}; }

static double greatest(Type type) {
    switch (type) {
    case TYPE_F16: return 65504;
    case TYPE_BF16: return 0x1.fep127;
    case TYPE_F8E4M3: return 448;
    case TYPE_F8E5M2: return 57344;
    case TYPE_F64: return 0x1.fffffffffffffp1023;
    default: return 0x1.fffffep127;
    }
}

double number_ulp(Type type, double value) {
    double least = type_denormal(type), size = fabs(value);
    if (!isfinite(value) || size == 0) return least;
    double ulp = ldexp(type_roundoff(type) * 2, ilogb(size));
    return ulp < least ? least : ulp;
}

Number number_off(Type type, double value, double off) {
    Number result = {number_from(type, value), 0};
    if (off == 0 || isnan(value)) return result;
    if (isinf(value)) return result;
    if (fabs(value) + off >= greatest(type) || !(off < INFINITY)) return number_unknown();
    result.off = off + fabs(number_value(type, result.bits) - value) + number_ulp(type, value);
    return result;
}

bool number_agrees(Type type, Number expected, uint64_t bits) {
    if (isinf(expected.off)) return true;
    if (!type_is_float(type)) return expected.bits == bits;
    double want = number_value(type, expected.bits), got = number_value(type, bits);
    if (isnan(want) || isnan(got)) return isnan(want) && isnan(got);
    if (expected.off == 0) return expected.bits == bits;
    if (expected.off < 0 || isinf(want)) return want == got;
    return fabs(got - want) <= expected.off * 1.0001;
}

/* ---- floats ---- */

static double whole(Op op, double x) {
    switch (op) {
    case OP_FLOOR: return floor(x);
    case OP_CEIL: return ceil(x);
    case OP_ROUND: return nearbyint(x);
    default: return trunc(x);
    }
}

/* By Newton's method on erf, or erfc near 1. */
static long double inverse_erf(long double x) {
    long double a = fabsl(x), y = a < 0.5L ? a : sqrtl(-log1pl(-a * a));
    if (!(a < 1)) return a == 1 ? x * INFINITY : NAN;
    for (int i = 0; i < 40; i++) {
        long double off = (y < 0.5L ? erfl(y) - a : 1 - a - erfcl(y)) * expl(y * y) * 0.88622692545275801365L;
        y -= off / (1 + y * off);
    }
    return copysignl(a == 0 ? 0 : y, x);
}

static long double smooth(Op op, long double x) {
    switch (op) {
    case OP_RSQRT: return 1 / sqrtl(x);
    case OP_EXP: return expl(x);
    case OP_EXP2: return exp2l(x);
    case OP_EXPM1: return expm1l(x);
    case OP_LOG: return logl(x);
    case OP_LOG2: return log2l(x);
    case OP_LOG1P: return log1pl(x);
    case OP_SIN: return sinl(x);
    case OP_COS: return cosl(x);
    case OP_TAN: return tanl(x);
    case OP_TANH: return tanhl(x);
    case OP_ERF: return erfl(x);
    case OP_ASIN: return asinl(x);
    case OP_ACOS: return acosl(x);
    case OP_ATAN: return atanl(x);
    case OP_SINH: return sinhl(x);
    case OP_COSH: return coshl(x);
    case OP_ASINH: return asinhl(x);
    case OP_ACOSH: return acoshl(x);
    case OP_ATANH: return atanhl(x);
    case OP_CBRT: return cbrtl(x);
    case OP_ERFC: return erfcl(x);
    case OP_ERFINV: return inverse_erf(x);
    case OP_LGAMMA: return lgammal(x);
    default: return 1 / (1 + expl(-x));
    }
}

/* docs/math.md guarantees 2 ulp in f32 and f64; narrower floats are rounded once from f32. */
static Number inexact(Type type, long double value) {
    bool narrow = type != TYPE_F32 && type != TYPE_F64;
    double near = (double)value;
    if (isnan(near) || isinf((double)value) || value == 0) {
        Number result = {number_from(type, near), value == 0 ? SIGN : 0};
        if (isinf(near) && !isinf((double)value)) return number_unknown();
        return result;
    }
    double f32 = number_ulp(type == TYPE_F64 ? TYPE_F64 : TYPE_F32, near);
    double off = 4 * f32;
    if (fabs(near) >= greatest(type) * 0.9999) return number_unknown();
    Number result = {number_from(type, near), 0};
    result.off = off + (narrow ? number_ulp(type, near) * 0.51 : 0) + fabs(number_value(type, result.bits) - near);
    return result;
}

static double sums_off(double a, double b) { return (a > 0 ? a : 0) + (b > 0 ? b : 0); }

static Number float_unary(Op op, Type type, Number x) {
    double v = number_value(type, x.bits);
    switch (op) {
    case OP_NEG: return (Number){number_from(type, -v), x.off};
    case OP_ABS: return (Number){number_from(type, fabs(v)), x.off > 0 ? x.off : 0};
    case OP_ISNAN: return x.off > 0 ? number_unknown() : (Number){isnan(v), 0};
    case OP_ISINF: return x.off > 0 ? number_unknown() : (Number){isinf(v) != 0, 0};
    default: break;
    }
    if (x.off > 0) return number_unknown();
    switch (op) {
    case OP_FLOOR:
    case OP_CEIL:
    case OP_ROUND:
    case OP_TRUNC: return (Number){number_from(type, whole(op, v)), x.off};
    case OP_SQRT: return (Number){number_from(type, type == TYPE_F64 ? sqrt(v) : (double)sqrtf((float)v)), x.off};
    default: break;
    }
    /* Near a zero for a negative argument only the absolute error is small. */
    if (op == OP_LGAMMA && type == TYPE_F64 && v < 0) return number_unknown();
    if (x.off < 0 && v == 0) return op == OP_RSQRT ? number_unknown() : inexact(type, smooth(op, v));
    return inexact(type, smooth(op, v));
}

/* The result in the type in which the float is computed, before rounding to its own type. */
static double arithmetic(Op op, Type type, double x, double y) {
    if (type == TYPE_F64) return op == OP_ADD ? x + y : op == OP_SUB ? x - y : op == OP_MUL ? x * y : x / y;
    float a = (float)x, b = (float)y, r = op == OP_ADD ? a + b : op == OP_SUB ? a - b : op == OP_MUL ? a * b : a / b;
    return (double)r;
}

static Number compare(Op op, double x, double y) {
    bool truth = op == OP_EQ   ? x == y
                 : op == OP_NE ? x != y
                 : op == OP_LT ? x < y
                 : op == OP_LE ? x <= y
                 : op == OP_GT ? x > y
                               : x >= y;
    return (Number){truth, 0};
}

/* The documentation gives a formula, which may be fused. */
static Number float_remainder(Type type, double x, double y) {
    Type wide = type == TYPE_F64 ? TYPE_F64 : TYPE_F32;
    double times = floor(arithmetic(OP_DIV, wide, x, y));
    uint64_t apart = number_from(type, arithmetic(OP_SUB, wide, x, arithmetic(OP_MUL, wide, times, y)));
    double once = type == TYPE_F64 ? fma(-times, y, x) : (double)fmaf(-(float)times, (float)y, (float)x);
    uint64_t fused = number_from(type, once);
    if (isnan(number_value(type, apart)) && isnan(number_value(type, fused))) return (Number){apart, 0};
    return apart == fused ? (Number){apart, 0} : number_unknown();
}

static Number extremum(Op op, Type type, Number x, Number y) {
    double a = number_value(type, x.bits), b = number_value(type, y.bits);
    if (isnan(a) || isnan(b)) return (Number){number_from(type, NAN), x.off > 0 || y.off > 0 ? INFINITY : 0};
    bool first = op == OP_MIN ? a < b : a > b;
    Number result = first ? x : y;
    if (x.off > 0 || y.off > 0)
        result.off = fmax(x.off, y.off);
    else if (a == 0 && b == 0)
        result.off = x.bits == y.bits && x.off == 0 && y.off == 0 ? 0 : SIGN;
    return result;
}

static double both_off(Op op, double x, double y, Number a, Number b) {
    double p = a.off > 0 ? a.off : 0, q = b.off > 0 ? b.off : 0;
    switch (op) {
    case OP_ADD:
    case OP_SUB: return p + q;
    case OP_MUL: return fabs(x) * q + fabs(y) * p + p * q;
    default: {
        double least = fabs(y) - q;
        return least > 0 ? (p + fabs(x / y) * q) / least : INFINITY;
    }
    }
}

/* An unknown sign of zero matters if the result is a zero, or for a divisor. */
static Number with_sign(Op op, Type type, Number result, Number x, Number y) {
    if (x.off == 0 && y.off == 0) return result;
    if (op == OP_DIV && y.off < 0 && number_value(type, y.bits) == 0) return number_unknown();
    if (number_value(type, result.bits) == 0) result.off = SIGN;
    return result;
}

static Number neighbour(Type type, Number x, Number y) {
    double a = number_value(type, x.bits), b = number_value(type, y.bits);
    if (isnan(a) || isnan(b)) return (Number){number_from(type, NAN), 0};
    if (a == b) return y;
    bool outwards = a == 0 || (b > a) == (a > 0);
    uint64_t sign = (uint64_t)1 << (type_bytes(type) * 8 - 1);
    if (a == 0) return (Number){(b < 0 ? sign : 0) + 1, 0};
    return (Number){outwards ? x.bits + 1 : x.bits - 1, 0};
}

/* Of those whose result depends on the sign of a zero. */
static Number float_function(Op op, Type type, Number x, Number y) {
    double a = number_value(type, x.bits), b = number_value(type, y.bits);
    if ((op == OP_ATAN2 || op == OP_NEXTAFTER) && (x.off < 0 || y.off < 0)) return number_unknown();
    if (x.off < 0 && a == 0 && op == OP_POW) return number_unknown();
    switch (op) {
    case OP_ATAN2: return inexact(type, atan2l(a, b));
    case OP_HYPOT: return inexact(type, hypotl(a, b));
    case OP_FMOD: return (Number){number_from(type, fmod(a, b)), x.off};
    case OP_NEXTAFTER: return neighbour(type, x, y);
    default: return inexact(type, powl(a, b));
    }
}

static Number float_binary(Op op, Type type, Number x, Number y) {
    double a = number_value(type, x.bits), b = number_value(type, y.bits);
    if (isinf(x.off) || isinf(y.off)) return number_unknown();
    if (op == OP_MIN || op == OP_MAX) return extremum(op, type, x, y);
    bool near = x.off > 0 || y.off > 0;
    if (op >= OP_EQ && op <= OP_GE) return near ? number_unknown() : compare(op, a, b);
    if (op >= OP_ADD && op <= OP_DIV) {
        double value = arithmetic(op, type, a, b);
        if (near && !(isfinite(a) && isfinite(b))) return number_unknown();
        Number result =
            near ? number_off(type, value, both_off(op, a, b, x, y)) : (Number){number_from(type, value), 0};
        return result.off == 0 ? with_sign(op, type, result, x, y) : result;
    }
    if (near) return number_unknown();
    switch (op) {
    case OP_REM: return x.off < 0 || y.off < 0 ? number_unknown() : float_remainder(type, a, b);
    case OP_COPYSIGN: return y.off < 0 || isnan(b) ? number_unknown() : (Number){number_from(type, copysign(a, b)), 0};
    default: return float_function(op, type, x, y);
    }
}

Number number_fma(Type type, Number x, Number y, Number z) {
    double a = number_value(type, x.bits), b = number_value(type, y.bits), c = number_value(type, z.bits);
    double value = type == TYPE_F64 ? fma(a, b, c) : (double)fmaf((float)a, (float)b, (float)c);
    if (isinf(x.off) || isinf(y.off) || isinf(z.off)) return number_unknown();
    if (x.off > 0 || y.off > 0 || z.off > 0) {
        if (!(isfinite(a) && isfinite(b) && isfinite(c))) return number_unknown();
        return number_off(type, value, sums_off(both_off(OP_MUL, a, b, x, y), z.off));
    }
    Number result = {number_from(type, value), 0};
    if ((x.off < 0 || y.off < 0 || z.off < 0) && value == 0) result.off = SIGN;
    return result;
}

/* ---- integers ---- */

static Wide floor_divide(Wide x, Wide y) { return y == 0 ? 0 : x / y - (x % y != 0 && (x < 0) != (y < 0)); }

static Wide shift(Op op, Type type, Wide x, Wide y) {
    int width = (int)type_bytes(type) * 8;
    if (y >= 0 && y < width) return op == OP_SHL ? (Wide)((unsigned __int128)x << y) : x >> y;
    return op == OP_SHR && x < 0 ? -1 : 0;
}

static Wide integer_arithmetic(Op op, Type type, Wide x, Wide y) {
    switch (op) {
    case OP_ADD: return x + y;
    case OP_SUB: return x - y;
    case OP_MUL: return (Wide)((unsigned __int128)x * (unsigned __int128)y);
    case OP_DIV: return floor_divide(x, y);
    case OP_REM: return y == 0 ? 0 : x - floor_divide(x, y) * y;
    case OP_CDIV: {
        Wide above = number_integer(type, number_from_integer(type, x + y - 1));
        return floor_divide(above, y);
    }
    case OP_AND: return x & y;
    case OP_OR: return x | y;
    case OP_XOR: return x ^ y;
    case OP_MIN: return y < x ? y : x;
    case OP_MAX: return y > x ? y : x;
    case OP_MULHI: {
        int width = (int)type_bytes(type) * 8;
        return type_is_signed(type) ? x * y >> width : (Wide)((unsigned __int128)x * (unsigned __int128)y >> width);
    }
    default: return shift(op, type, x, y);
    }
}

static Number integer_binary(Op op, Type type, Number x, Number y) {
    Wide a = number_integer(type, x.bits), b = number_integer(type, y.bits);
    if (op == OP_BOTH || op == OP_EITHER) {
        bool decided = op == OP_EITHER, left = a != 0, right = b != 0;
        if ((x.off == 0 && left == decided) || (y.off == 0 && right == decided)) return (Number){decided, 0};
        if (x.off != 0 || y.off != 0) return number_unknown();
        return (Number){!decided, 0};
    }
    if (x.off != 0 || y.off != 0) return number_unknown();
    switch (op) {
    case OP_EQ: return (Number){a == b, 0};
    case OP_NE: return (Number){a != b, 0};
    case OP_LT: return (Number){a < b, 0};
    case OP_LE: return (Number){a <= b, 0};
    case OP_GT: return (Number){a > b, 0};
    case OP_GE: return (Number){a >= b, 0};
    default: return (Number){number_from_integer(type, integer_arithmetic(op, type, a, b)), 0};
    }
}

/* One bit after the other. */
static Wide count_bits(Op op, Type type, uint64_t bits) {
    int width = (int)type_bytes(type) * 8, ones = 0, first = width, last = -1;
    for (int i = 0; i < width; i++) {
        if (!(bits >> i & 1)) continue;
        ones++;
        last = i;
        if (first == width) first = i;
    }
    return op == OP_POPCOUNT ? ones : op == OP_CTZ ? first : width - 1 - last;
}

/* ---- all types ---- */

/* Operations on f8 are rounded as conversions are: nothing becomes an infinity. */
static Number saturated(Type type, Number x) {
    if (type == TYPE_F8E5M2 && isinf(number_value(type, x.bits))) x.bits = number_from(type, number_value(type, x.bits));
    return x;
}

Number number_unary(Op op, Type type, Number x) {
    if (type_is_float(type)) return saturated(type, float_unary(op, type, x));
    if (x.off != 0) return number_unknown();
    Wide v = number_integer(type, x.bits);
    switch (op) {
    case OP_NEG: return (Number){number_from_integer(type, -v), 0};
    case OP_NOT: return (Number){number_from_integer(type, ~v), 0};
    case OP_UNTRUE: return (Number){v == 0, 0};
    case OP_POPCOUNT:
    case OP_CLZ:
    case OP_CTZ: return (Number){number_from_integer(type, count_bits(op, type, x.bits)), 0};
    default: return (Number){number_from_integer(type, v < 0 ? -v : v), 0};
    }
}

Number number_binary(Op op, Type type, Number x, Number y) {
    if (!type_is_float(type)) return integer_binary(op, type, x, y);
    bool decides = op >= OP_EQ && op <= OP_GE; /* a bool */
    return decides ? float_binary(op, type, x, y) : saturated(type, float_binary(op, type, x, y));
}

static Number float_to_integer(Type to, double value) {
    if (isnan(value)) return (Number){0, 0};
    int width = (int)type_bytes(to) * 8;
    bool is_signed = type_is_signed(to);
    double low = is_signed ? -ldexp(1, width - 1) : 0, high = ldexp(1, is_signed ? width - 1 : width);
    Wide most = ((Wide)1 << (is_signed ? width - 1 : width)) - 1;
    if (value >= high) return (Number){number_from_integer(to, most), 0};
    if (value <= low) return (Number){number_from_integer(to, is_signed ? -most - 1 : 0), 0};
    return (Number){number_from_integer(to, (Wide)value), 0};
}

Number number_convert(Type to, Type from, Number x) {
    if (to == from) return x;
    if (!type_is_float(from)) {
        if (x.off != 0) return number_unknown();
        return (Number){number_from_integer(to, number_integer(from, x.bits)), 0};
    }
    double value = number_value(from, x.bits);
    if (to == TYPE_BOOL) return x.off > 0 ? number_unknown() : (Number){value != 0, 0};
    if (!type_is_float(to)) return x.off > 0 ? number_unknown() : float_to_integer(to, value);
    if (x.off > 0) return isfinite(value) ? number_off(to, value, x.off) : number_unknown();
    return (Number){number_from(to, value), x.off};
}

/* The bits of a NaN are not defined. */
Number number_bitcast(Type to, Type from, Number x) {
    (void)to;
    bool zero = type_is_float(from) && number_value(from, x.bits) == 0;
    if (x.off > 0 || (x.off < 0 && zero) || number_is_nan(from, x.bits)) return number_unknown();
    return (Number){x.bits, 0};
}

/* Philox4x32-10: four words of each block. */
uint32_t number_word(int64_t seed, int64_t index) {
    uint64_t block = (uint64_t)index / 4;
    uint32_t c[4] = {(uint32_t)block, (uint32_t)(block >> 32), 0, 0};
    uint32_t k[2] = {(uint32_t)seed, (uint32_t)((uint64_t)seed >> 32)};
    for (int round = 0; round < 10; round++) {
        uint64_t p = (uint64_t)c[0] * 0xD2511F53u, q = (uint64_t)c[2] * 0xCD9E8D57u;
        uint32_t n[4] = {(uint32_t)(q >> 32) ^ c[1] ^ k[0], (uint32_t)q, (uint32_t)(p >> 32) ^ c[3] ^ k[1],
                         (uint32_t)p};
        memcpy(c, n, sizeof c);
        k[0] += 0x9E3779B9u;
        k[1] += 0xBB67AE85u;
    }
    return c[(uint64_t)index % 4];
}

Number number_random(int64_t seed, int64_t index) {
    return (Number){number_from(TYPE_F32, (number_word(seed, index) >> 8) * 0x1p-24), 0};
}

/* ---- sums and products of many numbers ---- */

/* The number of significant bits. */
static int digits_of(Type type) { return -ilogb(type_roundoff(type)); }

static int last_bit(double x) {
    int exponent;
    double fraction = frexp(fabs(x), &exponent);
    uint64_t bits = (uint64_t)ldexp(fraction, 53);
    return bits ? exponent - 53 + __builtin_ctzll(bits) : 4096;
}

static void add_value(Sum *sum, double value, int least, double off) {
    sum->count++;
    if (off > 0) sum->off += off;
    if (isnan(value))
        sum->nan = true;
    else if (isinf(value))
        *(value > 0 ? &sum->up : &sum->down) = true;
    else if (value != 0) {
        if (sum->size == 0 || least < sum->least) sum->least = least;
        sum->total += value;
        sum->size += fabs(value);
    }
}

void sum_add(Sum *sum, Type type, Number x) {
    if (isinf(x.off)) sum->unknown = true;
    double value = number_value(type, x.bits);
    add_value(sum, value, last_bit(value), x.off);
}

void sum_add_product(Sum *sum, Type type, Number x, Number y) {
    if (isinf(x.off) || isinf(y.off)) {
        sum->unknown = true;
        return;
    }
    double a = number_value(type, x.bits), b = number_value(type, y.bits);
    if (isinf(a * b) && isfinite(a) && isfinite(b)) sum->unknown = true; /* with a fused operation there may have been
                                                                          * no overflow */
    double value = a * b, off = x.off > 0 || y.off > 0 ? both_off(OP_MUL, a, b, x, y) : 0;
    bool exact = type != TYPE_F64 || fma(a, b, -value) == 0;
    add_value(sum, value, exact ? last_bit(a) + last_bit(b) : -5000, off);
}

Number sum_result(const Sum *sum, Type accumulator, Type type) {
    if (sum->unknown) return number_unknown();
    if (sum->nan || (sum->up && sum->down)) return (Number){number_from(type, NAN), 0};
    double most = greatest(accumulator);
    bool overflows = sum->size + sum->off > most / 4;
    if (sum->up || sum->down)
        return overflows ? number_unknown() : (Number){number_from(type, sum->up ? INFINITY : -INFINITY), 0};
    if (overflows) return number_unknown();
    int digits = digits_of(accumulator), floor_exponent = ilogb(type_denormal(accumulator));
    bool exact = sum->size == 0 || (sum->least >= floor_exponent && sum->size < ldexp(1, sum->least + digits));
    if (exact && sum->off == 0) return (Number){number_from(type, sum->total), 0};
    double unit = ldexp(1, -digits);
    /* Tensor cores truncate bits far below the greatest of the products that they add. */
    double off = sum->off + (double)(sum->count + 4) * unit * 4 * sum->size +
                 (double)(sum->count + 1) * ldexp(1, floor_exponent);
    return number_off(type, sum->total, off);
}

void product_times(Product *product, Type type, Number x) {
    double value = number_value(type, x.bits);
    if (x.off > 0) {
        product->unknown = true;
        return;
    }
    if (isnan(value))
        product->nan = true;
    else if (isinf(value))
        product->infinite = true;
    else if (value == 0)
        product->zero = true;
    else {
        int exponent = ilogb(value);
        product->bits += exponent - last_bit(value) + 1;
        *(exponent < 0 ? &product->low : &product->high) += exponent;
        if (exponent >= 0) product->high++;
        product->total *= fabs(value);
    }
    product->sign = product->sign || (value == 0 && x.off < 0);
    if (signbit(value)) product->negative = !product->negative;
}

Number product_result(const Product *product, Type accumulator, Type type, int64_t count) {
    int most = ilogb(greatest(accumulator)) - 3, digits = digits_of(accumulator);
    if (product->unknown) return number_unknown();
    if (product->nan || (product->zero && product->infinite)) return (Number){number_from(type, NAN), 0};
    if (product->high > most || product->low < -most) return number_unknown();
    double sign = product->negative ? -1 : 1;
    if (product->zero) return (Number){number_from(type, sign * 0.0), product->sign ? SIGN : 0};
    if (product->infinite) return (Number){number_from(type, sign * INFINITY), 0};
    if (product->bits <= digits) return (Number){number_from(type, sign * product->total), 0};
    return number_off(type, sign * product->total, (double)(count + 2) * ldexp(1, 1 - digits) * product->total);
}

/* ---- names of operations ---- */

void number_say(char *words, size_t size, Type type, uint64_t bits) {
    if (type_is_float(type))
        snprintf(words, size, "%.9g (%#" PRIx64 ")", number_value(type, bits), bits);
    else
        snprintf(words, size, "%" PRId64, (int64_t)number_integer(type, bits));
}
