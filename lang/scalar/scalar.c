#include "lang/scalar/scalar.h"

#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- float formats ---- */

typedef struct Format {
    int mantissa, exponent; /* widths in bits */
    uint64_t largest;       /* bits of the greatest finite number */
    uint64_t infinity;      /* bits of the result of an overflow */
    uint64_t nan;
} Format;

static const Format f8e4m3 = {3, 4, 0x7e, 0x7e, 0x7f};
static const Format f8e5m2 = {2, 5, 0x7b, 0x7b, 0x7e};
static const Format f16 = {10, 5, 0x7bff, 0x7c00, 0x7e00};
static const Format bf16 = {7, 8, 0x7f7f, 0x7f80, 0x7fc0};
static const Format f32 = {23, 8, 0x7f7fffff, 0x7f800000, 0x7fc00000};
static const Format f64 = {52, 11, 0x7fefffffffffffff, 0x7ff0000000000000, 0x7ff8000000000000};

/* NULL if the type is not a float. */
static const Format *format_of(TileScalar scalar) {
    switch (scalar) {
    case TILE_F8E4M3: return &f8e4m3;
    case TILE_F8E5M2: return &f8e5m2;
    case TILE_F16: return &f16;
    case TILE_BF16: return &bf16;
    case TILE_F32: return &f32;
    case TILE_F64: return &f64;
    case TILE_BOOL:
    case TILE_I8:
    case TILE_I16:
    case TILE_I32:
    case TILE_I64:
    case TILE_U8:
    case TILE_U16:
    case TILE_U32:
    case TILE_U64:
    case TILE_SCALAR_COUNT: break;
    }
    return NULL;
}

static int bias(const Format *format) { return (1 << (format->exponent - 1)) - 1; }
static uint64_t sign_bit(const Format *format) { return (uint64_t)1 << (format->mantissa + format->exponent); }

/* x / 2^shift to the nearest integer, ties to even. */
static uint64_t shift_to_even(uint64_t x, int shift) {
    if (shift > 64) return 0;
    uint64_t half = (uint64_t)1 << (shift - 1), rest = shift == 64 ? x : x & ((half << 1) - 1);
    uint64_t quotient = shift == 64 ? 0 : x >> shift;
    return quotient + (rest > half || (rest == half && (quotient & 1)));
}

/* The bits of significand * 2^exponent, without the sign. A carry out of the mantissa increments the exponent field, so
 * the fields are added, not or-ed. */
static uint64_t encode(const Format *format, uint64_t significand, int exponent) {
    if (!significand) return 0;
    int leading = exponent + 63 - __builtin_clzll(significand), least = 1 - bias(format);
    int unit = (leading < least ? least : leading) - format->mantissa, shift = unit - exponent;
    uint64_t rounded = shift <= 0 ? significand << -shift : shift_to_even(significand, shift);
    if (leading > bias(format) + 1) return format->infinity;
    if (leading >= least) rounded += (uint64_t)(leading - least) << format->mantissa;
    return rounded > format->largest ? format->infinity : rounded;
}

static uint64_t bits_of_double(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static double double_of_bits(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint64_t bits_of_float(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of_bits(uint64_t bits) {
    uint32_t low = (uint32_t)bits;
    float value;
    memcpy(&value, &low, sizeof value);
    return value;
}

static uint64_t encode_double(const Format *format, double value) {
    uint64_t bits = bits_of_double(value), fraction = bits & (((uint64_t)1 << 52) - 1);
    uint64_t sign = bits >> 63 ? sign_bit(format) : 0;
    int exponent = (int)(bits >> 52 & 0x7ff);
    if (exponent == 0x7ff && fraction) return sign | format->nan | fraction >> (52 - format->mantissa);
    if (exponent == 0x7ff) return sign | format->infinity;
    if (exponent == 0) return sign | encode(format, fraction, -1074);
    return sign | encode(format, fraction | (uint64_t)1 << 52, exponent - 1075);
}

static double decode(const Format *format, uint64_t bits) {
    uint64_t sign = bits & sign_bit(format) ? (uint64_t)1 << 63 : 0, magnitude = bits & (sign_bit(format) - 1);
    uint64_t fraction = magnitude & (((uint64_t)1 << format->mantissa) - 1);
    uint64_t wide = fraction << (52 - format->mantissa);
    if (magnitude > format->largest) return double_of_bits(sign | f64.infinity | wide);
    uint64_t exponent = magnitude >> format->mantissa;
    if (exponent) return double_of_bits(sign | (exponent + (uint64_t)(1023 - bias(format))) << 52 | wide);
    double small = (double)fraction * double_of_bits((uint64_t)(1024 - bias(format) - format->mantissa) << 52);
    return sign ? -small : small;
}

/* ---- conversions ---- */

/* Truncates and saturates to an integer type given by its width and signedness. */
static uint64_t integer_from_double(TileScalar scalar, double value) {
    unsigned bits = tile_scalar_bits(scalar);
    bool is_signed = tile_scalar_class(scalar) == TILE_CLASS_SIGNED;
    if (isnan(value)) return 0;
    double limit = ldexp(1.0, (int)bits - (is_signed ? 1 : 0));
    uint64_t greatest = tile_scalar_mask(scalar) >> (is_signed ? 1 : 0);
    if (value >= limit) return greatest;
    if (is_signed) return value <= -limit ? greatest + 1 : (uint64_t)(int64_t)value & tile_scalar_mask(scalar);
    return value <= 0 ? 0 : (uint64_t)value;
}

uint64_t tile_scalar_from_double(TileScalar scalar, double value) {
    if (scalar == TILE_F64) return bits_of_double(value);
    if (scalar == TILE_F32) return bits_of_float((float)value);
    if (scalar == TILE_BOOL) return value != 0;
    const Format *format = format_of(scalar);
    return format ? encode_double(format, value) : integer_from_double(scalar, value);
}

uint64_t tile_scalar_from_float(TileScalar scalar, float value) {
    if (scalar == TILE_F32) return bits_of_float(value);
    if (scalar == TILE_BF16 && !isnan(value)) {
        uint64_t bits = bits_of_float(value);
        return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    }
    return tile_scalar_from_double(scalar, (double)value);
}

uint64_t tile_scalar_from_unsigned(TileScalar scalar, uint64_t value) {
    if (scalar == TILE_BOOL) return value != 0;
    const Format *format = format_of(scalar);
    return format ? encode(format, value, 0) : value & tile_scalar_mask(scalar);
}

uint64_t tile_scalar_from_signed(TileScalar scalar, int64_t value) {
    const Format *format = format_of(scalar);
    if (format && value < 0) return sign_bit(format) | encode(format, 0 - (uint64_t)value, 0);
    return tile_scalar_from_unsigned(scalar, (uint64_t)value);
}

double tile_scalar_to_double(TileScalar scalar, uint64_t bits) {
    if (scalar == TILE_F32) return (double)float_of_bits(bits);
    if (scalar == TILE_F64) return double_of_bits(bits);
    const Format *format = format_of(scalar);
    if (format) return decode(format, bits);
    return tile_scalar_class(scalar) == TILE_CLASS_SIGNED ? (double)tile_scalar_to_integer(scalar, bits) : (double)bits;
}

float tile_scalar_to_float(TileScalar scalar, uint64_t bits) {
    if (scalar == TILE_F32) return float_of_bits(bits);
    if (scalar == TILE_BF16) return float_of_bits(bits << 16);
    return (float)tile_scalar_to_double(scalar, bits);
}

int64_t tile_scalar_to_integer(TileScalar scalar, uint64_t bits) {
    if (tile_scalar_class(scalar) != TILE_CLASS_SIGNED) return (int64_t)bits;
    unsigned unused = 64 - tile_scalar_bits(scalar);
    return (int64_t)(bits << unused) >> unused;
}

uint64_t tile_scalar_convert(TileScalar from, TileScalar to, uint64_t bits) {
    if (from == to) return bits;
    if (!format_of(from))
        return tile_scalar_class(from) == TILE_CLASS_SIGNED
                   ? tile_scalar_from_signed(to, tile_scalar_to_integer(from, bits))
                   : tile_scalar_from_unsigned(to, bits);
    if (from == TILE_F64) return tile_scalar_from_double(to, double_of_bits(bits));
    return tile_scalar_from_float(to, tile_scalar_to_float(from, bits));
}

bool tile_scalar_is_nan(TileScalar scalar, uint64_t bits) {
    const Format *format = format_of(scalar);
    if (!format) return false;
    uint64_t magnitude = bits & (sign_bit(format) - 1);
    uint64_t all_exponent = (sign_bit(format) - 1) & ~(((uint64_t)1 << format->mantissa) - 1);
    return scalar == TILE_F8E4M3 ? magnitude == format->nan : magnitude > all_exponent;
}

bool tile_scalar_same(TileScalar scalar, uint64_t a, uint64_t b) {
    return a == b || (tile_scalar_is_nan(scalar, a) && tile_scalar_is_nan(scalar, b));
}

uint64_t tile_scalar_greatest(TileScalar scalar) {
    const Format *format = format_of(scalar);
    if (scalar == TILE_F8E5M2) return 0x7c;
    if (format) return format->infinity;
    return tile_scalar_mask(scalar) >> (tile_scalar_class(scalar) == TILE_CLASS_SIGNED ? 1 : 0);
}

uint64_t tile_scalar_least(TileScalar scalar) {
    const Format *format = format_of(scalar);
    if (format) return sign_bit(format) | tile_scalar_greatest(scalar);
    return tile_scalar_class(scalar) == TILE_CLASS_SIGNED ? tile_scalar_greatest(scalar) + 1 : 0;
}

/* ---- text ---- */

/* The C library's conversions depend on the thread's locale; the language's do not. */
double tile_read_number(const char *text, char **end) {
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0), previous = uselocale(plain);
    double value = strtod(text, end);
    uselocale(previous);
    if (plain) freelocale(plain);
    return value;
}

static void format_double(char *buffer, size_t size, int digits, double value) {
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0), previous = uselocale(plain);
    snprintf(buffer, size, "%.*g", digits, value);
    uselocale(previous);
    if (plain) freelocale(plain);
}

static bool print_float(TileText *text, TileScalar scalar, uint64_t bits) {
    double value = tile_scalar_to_double(scalar, bits);
    if (isnan(value) || isinf(value)) {
        static const char *const words[] = {"nan", "-nan", "inf", "-inf"};
        const char *word = words[(isinf(value) ? 2 : 0) + (signbit(value) ? 1 : 0)];
        uint64_t back;
        if (!tile_scalar_read(scalar, word, strlen(word), &back) || back != bits) return false;
        tile_text_add(text, word);
        return true;
    }
    if (value == trunc(value) && fabs(value) < 1e7 && !(value == 0 && signbit(value))) {
        tile_text_format(text, "%lld.0", (long long)value);
        return true;
    }
    char buffer[40];
    for (int digits = 1; digits <= 17; digits++) {
        format_double(buffer, sizeof buffer, digits, value);
        uint64_t back;
        if (!tile_scalar_read(scalar, buffer, strlen(buffer), &back) || back != bits) continue;
        tile_text_add(text, buffer);
        if (!strpbrk(buffer, ".e")) tile_text_add(text, ".0");
        return true;
    }
    return false;
}

void tile_scalar_print(TileText *text, TileScalar scalar, uint64_t bits) {
    switch (tile_scalar_class(scalar)) {
    case TILE_CLASS_BOOL: tile_text_add(text, bits ? "true" : "false"); return;
    case TILE_CLASS_SIGNED: tile_text_format(text, "%lld", (long long)tile_scalar_to_integer(scalar, bits)); return;
    case TILE_CLASS_UNSIGNED: tile_text_format(text, "%llu", (unsigned long long)bits); return;
    case TILE_CLASS_FLOAT:
        if (!print_float(text, scalar, bits)) tile_text_format(text, "bits(0x%llx)", (unsigned long long)bits);
        return;
    }
}

/* bits(0x..): the spelling of values that have no other one. */
static bool read_raw(TileScalar scalar, const char *text, uint64_t *bits) {
    const char *digits = text + strlen("bits(0x");
    if (!isxdigit((unsigned char)*digits)) return false;
    char *end;
    errno = 0;
    *bits = strtoull(digits, &end, 16);
    return errno == 0 && strcmp(end, ")") == 0 && *bits <= tile_scalar_mask(scalar);
}

static bool read_integer(TileScalar scalar, const char *text, uint64_t *bits) {
    bool negative = text[0] == '-', is_signed = tile_scalar_class(scalar) == TILE_CLASS_SIGNED;
    const char *digits = text + negative;
    if (*digits < '0' || *digits > '9') return false;
    char *end;
    errno = 0;
    uint64_t magnitude = strtoull(digits, &end, digits[0] == '0' && digits[1] == 'x' ? 16 : 10);
    if (errno || *end) return false;
    uint64_t limit = tile_scalar_mask(scalar) >> (is_signed ? 1 : 0);
    if (magnitude > (negative ? is_signed ? limit + 1 : 0 : limit)) return false;
    *bits = (negative ? 0 - magnitude : magnitude) & tile_scalar_mask(scalar);
    return true;
}

static bool read_float(TileScalar scalar, const char *text, uint64_t *bits) {
    const Format *format = format_of(scalar);
    bool negative = text[0] == '-';
    const char *digits = text + negative;
    if (strcmp(digits, "nan") == 0)
        *bits = format->nan;
    else if (strcmp(digits, "inf") == 0)
        *bits = tile_scalar_greatest(scalar);
    else if (*digits < '0' || *digits > '9')
        return false;
    else {
        char *end;
        *bits = tile_scalar_from_double(scalar, tile_read_number(digits, &end));
        if (*end) return false;
    }
    if (negative) *bits |= sign_bit(format);
    return true;
}

bool tile_scalar_read(TileScalar scalar, const char *text, size_t length, uint64_t *bits) {
    char copy[512];
    if (length >= sizeof copy || memchr(text, 0, length)) return false;
    memcpy(copy, text, length);
    copy[length] = 0;
    if (strncmp(copy, "bits(0x", strlen("bits(0x")) == 0) return read_raw(scalar, copy, bits);
    switch (tile_scalar_class(scalar)) {
    case TILE_CLASS_BOOL: *bits = strcmp(copy, "true") == 0; return *bits || strcmp(copy, "false") == 0;
    case TILE_CLASS_SIGNED:
    case TILE_CLASS_UNSIGNED: return read_integer(scalar, copy, bits);
    case TILE_CLASS_FLOAT: return read_float(scalar, copy, bits);
    }
    return false;
}

enum { TF32_CUT_BITS = 13 };

/* A carry out of the mantissa increments the exponent; from the greatest number it gives infinity. */
static float add_and_cut(float value, uint32_t added) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = (bits + added) >> TF32_CUT_BITS << TF32_CUT_BITS;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The result for NaN has all bits set, as on an H200 (tests/gpu/vectors.txt). */
float tile_scalar_round_tf32(float value) {
    uint32_t bits = UINT32_C(0x7fffe000);
    if (isnan(value)) {
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    memcpy(&bits, &value, sizeof bits);
    return add_and_cut(value, (1u << (TF32_CUT_BITS - 1)) - 1 + (bits >> TF32_CUT_BITS & 1));
}

/* NaN is truncated, not rounded: one whose payload is only in the low 13 bits becomes an infinity, as on an H200. */
float tile_scalar_round_tf32_away(float value) {
    return add_and_cut(value, isnan(value) ? 0 : 1u << (TF32_CUT_BITS - 1));
}
