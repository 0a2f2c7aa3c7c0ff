#include "values.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *name;
    uint8_t code, bytes;
    double roundoff, denormal;
} types[TYPE_COUNT] = {
    [TYPE_F32] = {"f32", kDLFloat, 4, 0x1p-24, 0x1p-149},
    [TYPE_F16] = {"f16", kDLFloat, 2, 0x1p-11, 0x1p-24},
    [TYPE_BF16] = {"bf16", kDLBfloat, 2, 0x1p-8, 0x1p-133},
    [TYPE_F8E4M3] = {"f8e4m3", kDLFloat8_e4m3fn, 1, 0x1p-4, 0x1p-9},
    [TYPE_F8E5M2] = {"f8e5m2", kDLFloat8_e5m2, 1, 0x1p-3, 0x1p-16},
    [TYPE_F64] = {"f64", kDLFloat, 8, 0x1p-53, 0x1p-1074},
    [TYPE_I8] = {"i8", kDLInt, 1, 0, 0},
    [TYPE_I16] = {"i16", kDLInt, 2, 0, 0},
    [TYPE_I32] = {"i32", kDLInt, 4, 0, 0},
    [TYPE_I64] = {"i64", kDLInt, 8, 0, 0},
    [TYPE_U8] = {"u8", kDLUInt, 1, 0, 0},
    [TYPE_U16] = {"u16", kDLUInt, 2, 0, 0},
    [TYPE_U32] = {"u32", kDLUInt, 4, 0, 0},
    [TYPE_U64] = {"u64", kDLUInt, 8, 0, 0},
    [TYPE_BOOL] = {"bool", kDLBool, 1, 0, 0},
};

const char *type_name(Type type) { return types[type].name; }
unsigned type_bytes(Type type) { return types[type].bytes; }
double type_roundoff(Type type) { return types[type].roundoff; }
double type_denormal(Type type) { return types[type].denormal; }

bool type_find(const char *name, Type *type) {
    for (int i = 0; i < TYPE_COUNT; i++)
        if (strcmp(types[i].name, name) == 0) {
            *type = (Type)i;
            return true;
        }
    return false;
}

DLDataType type_dlpack(Type type) {
    return (DLDataType){.code = types[type].code, .bits = (uint8_t)(types[type].bytes * 8), .lanes = 1};
}

/* Double to bf16 with a single rounding: to float with a sticky last bit, then to nearest even. */
static uint16_t bf16_from_double(double value) {
    if (isnan(value)) return 0x7fc0;
    float near = (float)value;
    uint32_t bits;
    memcpy(&bits, &near, sizeof bits);
    if (!isinf(near) && (double)near != value) {
        if (fabs((double)near) > fabs(value)) bits--;
        bits |= 1;
    }
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* 8-bit floats: a sign, an exponent, `fraction` bits of fraction. f8e4m3 has finite numbers where f8e5m2 has
 * infinities. */
static double float8_to_double(Type type, unsigned bits) {
    int fraction = type == TYPE_F8E4M3 ? 3 : 2, bias = type == TYPE_F8E4M3 ? 7 : 15;
    int exponent = (int)(bits >> fraction & (0x7fu >> fraction)), low = (int)(bits & ((1u << fraction) - 1));
    double size = exponent ? ldexp((1 << fraction) + low, exponent - bias - fraction) : ldexp(low, 1 - bias - fraction);
    if (type == TYPE_F8E4M3 && (bits & 0x7f) == 0x7f) size = NAN;
    if (type == TYPE_F8E5M2 && exponent == 31) size = low ? NAN : INFINITY;
    return bits & 0x80 ? -size : size;
}

/* The nearest finite number, ties to even; f8e5m2 keeps infinities. */
static unsigned char float8_from_double(Type type, double value) {
    unsigned sign = signbit(value) ? 0x80 : 0, best = 0;
    if (isnan(value)) return 0x7f;
    if (isinf(value) && type == TYPE_F8E5M2) return (unsigned char)(sign | 0x7c);
    if (fabs(value) >= (type == TYPE_F8E5M2 ? 57344 : 448))
        return (unsigned char)(sign | (type == TYPE_F8E5M2 ? 0x7b : 0x7e));
    for (unsigned bits = 1; bits < 0x7f && isfinite(float8_to_double(type, bits)); bits++) {
        double here = fabs(float8_to_double(type, bits) - fabs(value));
        double there = fabs(float8_to_double(type, best) - fabs(value));
        if (here < there || (here == there && bits % 2 == 0)) best = bits;
    }
    return (unsigned char)(sign | best);
}

/* Little-endian. */
static uint64_t unsigned_load(Type type, const void *address) {
    uint64_t bits = 0;
    memcpy(&bits, address, types[type].bytes);
    return bits;
}

static int64_t signed_load(Type type, const void *address) {
    unsigned unused = 64 - 8u * types[type].bytes;
    return (int64_t)(unsigned_load(type, address) << unused) >> unused;
}

double value_load(Type type, const void *address) {
    switch (type) {
    case TYPE_F32: {
        float value;
        memcpy(&value, address, sizeof value);
        return value;
    }
    case TYPE_F16: {
        _Float16 value;
        memcpy(&value, address, sizeof value);
        return (double)value;
    }
    case TYPE_BF16: {
        uint16_t half;
        memcpy(&half, address, sizeof half);
        uint32_t bits = (uint32_t)half << 16;
        float value;
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    case TYPE_F8E4M3:
    case TYPE_F8E5M2: return float8_to_double(type, *(const unsigned char *)address);
    case TYPE_F64: {
        double value;
        memcpy(&value, address, sizeof value);
        return value;
    }
    case TYPE_I8:
    case TYPE_I16:
    case TYPE_I32:
    case TYPE_I64: return (double)signed_load(type, address);
    case TYPE_U8:
    case TYPE_U16:
    case TYPE_U32:
    case TYPE_U64:
    case TYPE_BOOL: return (double)unsigned_load(type, address);
    case TYPE_COUNT: break;
    }
    return NAN;
}

void value_store(Type type, void *address, double value) {
    switch (type) {
    case TYPE_F32: {
        float narrow = (float)value;
        memcpy(address, &narrow, sizeof narrow);
        break;
    }
    case TYPE_F16: {
        _Float16 narrow = (_Float16)value;
        memcpy(address, &narrow, sizeof narrow);
        break;
    }
    case TYPE_BF16: {
        uint16_t narrow = bf16_from_double(value);
        memcpy(address, &narrow, sizeof narrow);
        break;
    }
    case TYPE_F8E4M3:
    case TYPE_F8E5M2: *(unsigned char *)address = float8_from_double(type, value); break;
    case TYPE_F64: memcpy(address, &value, sizeof value); break;
    case TYPE_I8:
    case TYPE_I16:
    case TYPE_I32:
    case TYPE_I64: {
        int64_t narrow = (int64_t)value;
        memcpy(address, &narrow, types[type].bytes);
        break;
    }
    case TYPE_U8:
    case TYPE_U16:
    case TYPE_U32:
    case TYPE_U64: {
        uint64_t narrow = (uint64_t)value;
        memcpy(address, &narrow, types[type].bytes);
        break;
    }
    case TYPE_BOOL: *(unsigned char *)address = value != 0; break;
    case TYPE_COUNT: break;
    }
}

uint64_t value_bits(Type type, const void *address) {
    if (isnan(value_load(type, address))) return UINT64_MAX;
    uint64_t bits = 0;
    memcpy(&bits, address, type_bytes(type));
    return bits;
}

double value_round(Type type, double value) {
    unsigned char storage[8];
    value_store(type, storage, value);
    return value_load(type, storage);
}

Random random_create(uint64_t seed) { return (Random){seed * 0x9e3779b97f4a7c15u + 1}; }

/* splitmix64. */
uint64_t random_next(Random *random) {
    uint64_t z = random->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

double random_unit(Random *random) { return (double)(random_next(random) >> 11) * 0x1p-53; }

double random_normal(Random *random) {
    double sum = -6;
    for (int i = 0; i < 12; i++) sum += random_unit(random);
    return sum;
}

int64_t random_hostile(Random *random, Type type, int64_t limit) {
    int64_t inside = limit > 0 ? (int64_t)(random_next(random) % (uint64_t)limit) : 0;
    const int64_t narrow[] = {-1, limit, limit + 1, -limit, -inside - 1, INT32_MIN, INT32_MAX, INT32_MIN + inside};
    const int64_t wide[] = {INT64_MIN,           INT64_MAX,          (INT64_C(1) << 32) + inside,
                            INT64_MIN + inside,  INT64_MAX - inside, (INT64_C(1) << 62) + inside,
                            -(INT64_C(1) << 61), INT64_C(1) << 61};
    uint64_t pick = random_next(random) % 16;
    return type == TYPE_I64 && pick >= 8 ? wide[pick - 8] : narrow[pick % 8];
}

double random_special(Random *random, Type type, Special special) {
    const double finite[] = {0.0, -0.0, types[type].denormal, -types[type].denormal, types[type].denormal * 5};
    const double wild[] = {NAN, INFINITY, -INFINITY};
    if (special == SPECIAL_ALL && random_unit(random) < 0.5) return wild[random_next(random) % 3];
    return finite[random_next(random) % 5];
}
