#include "lang/scalar.h"

#include <math.h>
#include <string.h>

/* Binary formats narrower than f32, described by their fields. */
typedef struct Format {
    int exponent_bits, mantissa_bits, bias;
    bool has_infinity; /* f8e4m3 uses the top exponent for numbers; only all ones is NaN */
} Format;

static Format format_of(TileScalar scalar) {
    switch (scalar) {
    case TILE_F16: return (Format){5, 10, 15, true};
    case TILE_BF16: return (Format){8, 7, 127, true};
    case TILE_F8E5M2: return (Format){5, 2, 15, true};
    case TILE_F8E4M3: return (Format){4, 3, 7, false};
    default: return (Format){8, 23, 127, true};
    }
}

static uint64_t largest_finite(Format f) {
    uint64_t top = (UINT64_C(1) << (f.exponent_bits + f.mantissa_bits)) - 1;
    return f.has_infinity ? top - (UINT64_C(1) << f.mantissa_bits) : top - 1;
}

static uint64_t quiet_nan(Format f) {
    uint64_t top = (UINT64_C(1) << (f.exponent_bits + f.mantissa_bits)) - 1;
    if (!f.has_infinity) return top;
    return (((UINT64_C(1) << f.exponent_bits) - 1) << f.mantissa_bits) | (UINT64_C(1) << (f.mantissa_bits - 1));
}

/* Scaling by a power of two is exact, so one rint (nearest even) rounds once, denormals included. */
static uint64_t round_magnitude(Format f, double magnitude, bool saturate) {
    int exponent;
    frexp(magnitude, &exponent);
    int field = exponent - 1 + f.bias;
    if (field < 1) field = 1;
    double units = rint(ldexp(magnitude, f.mantissa_bits + f.bias - field));
    uint64_t bits = ((uint64_t)(field - 1) << f.mantissa_bits) + (uint64_t)units;
    if (bits <= largest_finite(f)) return bits;
    if (saturate || !f.has_infinity) return largest_finite(f);
    return largest_finite(f) + 1;
}

static uint64_t narrow_from_double(TileScalar scalar, double value) {
    Format f = format_of(scalar);
    uint64_t sign = signbit(value) ? UINT64_C(1) << (f.exponent_bits + f.mantissa_bits) : 0;
    bool saturate = scalar == TILE_F8E4M3 || scalar == TILE_F8E5M2;
    if (isnan(value)) return sign | quiet_nan(f);
    if (isinf(value)) return sign | (saturate ? largest_finite(f) : largest_finite(f) + 1);
    if (value == 0) return sign;
    if (fabs(value) >= 0x1p200) return sign | (saturate ? largest_finite(f) : largest_finite(f) + 1);
    return sign | round_magnitude(f, fabs(value), saturate);
}

static double narrow_to_double(TileScalar scalar, uint64_t bits) {
    Format f = format_of(scalar);
    uint64_t magnitude = bits & ((UINT64_C(1) << (f.exponent_bits + f.mantissa_bits)) - 1);
    bool negative = (bits >> (f.exponent_bits + f.mantissa_bits) & 1) != 0;
    double value;
    if (magnitude > largest_finite(f)) {
        value = f.has_infinity && magnitude == largest_finite(f) + 1 ? (double)INFINITY : (double)NAN;
    } else {
        int field = (int)(magnitude >> f.mantissa_bits);
        double mantissa = (double)(magnitude & ((UINT64_C(1) << f.mantissa_bits) - 1));
        if (field) mantissa += (double)(UINT64_C(1) << f.mantissa_bits);
        value = ldexp(mantissa, (field ? field : 1) - f.bias - f.mantissa_bits);
    }
    return negative ? -value : value;
}

static uint64_t integer_from_double(TileScalar scalar, double value) {
    if (isnan(value)) return 0;
    unsigned bits = tile_scalar_bits(scalar);
    uint64_t mask = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    if (tile_scalar_class(scalar) == TILE_CLASS_UNSIGNED) {
        if (value <= 0) return 0;
        return value >= ldexp(1, (int)bits) ? mask : (uint64_t)value;
    }
    if (value >= ldexp(1, (int)bits - 1)) return mask >> 1;
    if (value <= -ldexp(1, (int)bits - 1)) return (mask >> 1) + 1;
    return (uint64_t)(int64_t)value & mask;
}

uint64_t tile_scalar_from_double(TileScalar scalar, double value) {
    if (scalar == TILE_BOOL) return value != 0;
    if (!tile_scalar_is_float(scalar)) return integer_from_double(scalar, value);
    if (scalar == TILE_F64) {
        uint64_t bits;
        memcpy(&bits, &value, sizeof bits);
        return bits;
    }
    if (scalar != TILE_F32) return narrow_from_double(scalar, value);
    float narrowed = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrowed, sizeof bits);
    return bits;
}

double tile_scalar_to_double(TileScalar scalar, uint64_t bits) {
    if (!tile_scalar_is_float(scalar)) {
        unsigned unused = 64 - tile_scalar_bits(scalar);
        if (tile_scalar_class(scalar) == TILE_CLASS_SIGNED) return (double)((int64_t)(bits << unused) >> unused);
        return (double)(bits << unused >> unused);
    }
    if (scalar == TILE_F64) {
        double value;
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    if (scalar != TILE_F32) return narrow_to_double(scalar, bits);
    uint32_t low = (uint32_t)bits;
    float value;
    memcpy(&value, &low, sizeof value);
    return (double)value;
}
