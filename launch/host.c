#include "launch/host.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    uint8_t code, bits, class;
} types[TILE_HOST_TYPE_COUNT] = {
#define TYPE_ROW(id, name, code, bits, class) {name, code, bits, TILE_HOST_CLASS_##class},
    TILE_HOST_TYPE_LIST(TYPE_ROW)
#undef TYPE_ROW
};

const char *tile_host_type_name(TileHostType type) { return types[type].name; }
TileHostClass tile_host_type_class(TileHostType type) { return (TileHostClass)types[type].class; }
DLDataType tile_host_type_dtype(TileHostType type) { return (DLDataType){types[type].code, types[type].bits, 1}; }

/* A number for the size of a type: 8, 16, 32 or 64 bits give 0 to 3. */
#define SIZE_INDEX(bits) ((bits) == 8 ? 0 : (bits) == 16 ? 1 : (bits) == 32 ? 2 : 3)

TileHostType tile_host_type_find(DLDataType dtype) {
    enum { CODES = kDLFloat8_e5m2 + 1 };
    static const uint8_t found[CODES][4] = {/* the type + 1 */
#define TYPE_ENTRY(id, name, code, bits, class) [code][SIZE_INDEX(bits)] = TILE_HOST_##id + 1,
                                            TILE_HOST_TYPE_LIST(TYPE_ENTRY)
#undef TYPE_ENTRY
    };
    if (dtype.code >= CODES || dtype.lanes != 1) return TILE_HOST_TYPE_COUNT;
    unsigned type = found[dtype.code][SIZE_INDEX(dtype.bits)];
    return type && types[type - 1].bits == dtype.bits ? (TileHostType)(type - 1) : TILE_HOST_TYPE_COUNT;
}

/* ---- rounding ---- */

typedef struct FloatFormat {
    int precision, least_exponent; /* bits of the significand; of the least normal number */
    double greatest;
    bool saturates;
} FloatFormat;

static FloatFormat float_format(TileHostType type) {
    switch (type) {
    case TILE_HOST_F8E4M3: return (FloatFormat){4, -6, 448, true};
    case TILE_HOST_F8E5M2: return (FloatFormat){3, -14, 57344, true};
    case TILE_HOST_F16: return (FloatFormat){11, -14, 65504, false};
    default: return (FloatFormat){8, -126, 0x1.fep127, false}; /* bf16 */
    }
}

double tile_host_round(TileHostType type, double number) {
    if (type == TILE_HOST_F64 || isnan(number)) return number;
    if (type == TILE_HOST_F32) return (double)(float)number;
    FloatFormat format = float_format(type);
    if (isinf(number)) return format.saturates ? copysign(format.greatest, number) : number;
    int exponent;
    frexp(number, &exponent); /* number = m * 2**exponent with 0.5 <= |m| < 1 */
    if (exponent - 1 < format.least_exponent) exponent = format.least_exponent + 1;
    double quantum = ldexp(1.0, exponent - format.precision);
    double rounded = rint(number / quantum) * quantum;
    if (fabs(rounded) > format.greatest) return copysign(format.saturates ? format.greatest : INFINITY, number);
    return rounded;
}

/* An integer cut to the type's width and extended again. */
static int64_t wrap(TileHostType type, uint64_t bits) {
    unsigned unused = 64u - types[type].bits;
    if (type == TILE_HOST_BOOL) return (int64_t)(bits & 1);
    if (types[type].class == TILE_HOST_CLASS_SIGNED) return (int64_t)(bits << unused) >> unused;
    return (int64_t)(bits << unused >> unused);
}

/* ---- operations ---- */

static int64_t divide_signed(int64_t x, int64_t y, int64_t *remainder) {
    if (y == 0) return *remainder = 0;
    if (y == -1) { /* the least integer divided by -1 wraps */
        *remainder = 0;
        return (int64_t)(0 - (uint64_t)x);
    }
    int64_t quotient = x / y;
    *remainder = x % y;
    if (*remainder != 0 && (*remainder < 0) != (y < 0)) {
        quotient--;
        *remainder += y;
    }
    return quotient;
}

static int64_t shift_right(bool is_signed, int64_t x, uint64_t by) {
    if (is_signed) return x >> (by > 63 ? 63 : by);
    return by > 63 ? 0 : (int64_t)((uint64_t)x >> by);
}

static uint64_t integer_operation(TileHostOp op, TileHostType type, int64_t x, int64_t y) {
    bool is_signed = types[type].class == TILE_HOST_CLASS_SIGNED;
    bool less = is_signed ? x < y : (uint64_t)x < (uint64_t)y;
    int64_t remainder = 0;
    switch (op) {
    case TILE_HOST_NEG: return 0 - (uint64_t)x;
    case TILE_HOST_NOT: return ~(uint64_t)x;
    case TILE_HOST_ABS: return is_signed && x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
    case TILE_HOST_ADD: return (uint64_t)x + (uint64_t)y;
    case TILE_HOST_SUB: return (uint64_t)x - (uint64_t)y;
    case TILE_HOST_MUL: return (uint64_t)x * (uint64_t)y;
    case TILE_HOST_DIV:
        if (is_signed) return (uint64_t)divide_signed(x, y, &remainder);
        return y ? (uint64_t)x / (uint64_t)y : 0;
    case TILE_HOST_REM:
        if (!is_signed) return y ? (uint64_t)x % (uint64_t)y : 0;
        divide_signed(x, y, &remainder);
        return (uint64_t)remainder;
    case TILE_HOST_MIN: return (uint64_t)(less ? x : y);
    case TILE_HOST_MAX: return (uint64_t)(less ? y : x);
    case TILE_HOST_AND: return (uint64_t)(x & y);
    case TILE_HOST_OR: return (uint64_t)(x | y);
    case TILE_HOST_XOR: return (uint64_t)(x ^ y);
    case TILE_HOST_SHL: return (uint64_t)y < types[type].bits ? (uint64_t)x << y : 0;
    case TILE_HOST_SHR: return (uint64_t)shift_right(is_signed, x, (uint64_t)y);
    case TILE_HOST_EQ: return x == y;
    case TILE_HOST_NE: return x != y;
    case TILE_HOST_LT: return less;
    case TILE_HOST_LE: return less || x == y;
    case TILE_HOST_GT: return !less && x != y;
    case TILE_HOST_GE: return !less;
    default: return 0;
    }
}

/* x - floor(x / y) * y, each step rounded as in the type; 16-bit types compute in f32. */
static double float_remainder(TileHostType type, double x, double y) {
    if (type == TILE_HOST_F64) return x - floor(x / y) * y;
    float single_x = (float)x, single_y = (float)y;
    return (double)(single_x - floorf(single_x / single_y) * single_y);
}

static double float_operation(TileHostOp op, TileHostType type, double x, double y) {
    switch (op) {
    case TILE_HOST_NEG: return -x;
    case TILE_HOST_ABS: return fabs(x);
    case TILE_HOST_FLOOR: return floor(x);
    case TILE_HOST_CEIL: return ceil(x);
    case TILE_HOST_ROUND: return rint(x);
    case TILE_HOST_TRUNC: return trunc(x);
    case TILE_HOST_SQRT: return sqrt(x);
    case TILE_HOST_ADD: return x + y;
    case TILE_HOST_SUB: return x - y;
    case TILE_HOST_MUL: return x * y;
    case TILE_HOST_DIV: return x / y;
    case TILE_HOST_REM: return float_remainder(type, x, y);
    case TILE_HOST_MIN: return isnan(y) || y < x ? y : x;
    case TILE_HOST_MAX: return isnan(y) || y > x ? y : x;
    case TILE_HOST_COPYSIGN: return copysign(x, y);
    default: return 0;
    }
}

static bool float_comparison(TileHostOp op, double x, double y) {
    switch (op) {
    case TILE_HOST_EQ: return x == y;
    case TILE_HOST_NE: return x != y;
    case TILE_HOST_LT: return x < y;
    case TILE_HOST_LE: return x <= y;
    case TILE_HOST_GT: return x > y;
    case TILE_HOST_GE: return x >= y;
    case TILE_HOST_ISNAN: return isnan(x);
    case TILE_HOST_ISINF: return isinf(x);
    default: return false;
    }
}

static TileHostValue float_instruction(const TileHostInstruction *at, double x, double y, double z) {
    if ((at->op >= TILE_HOST_EQ && at->op <= TILE_HOST_GE) || at->op == TILE_HOST_ISNAN || at->op == TILE_HOST_ISINF)
        return (TileHostValue){.integer = float_comparison(at->op, x, y)};
    if (at->op == TILE_HOST_FMA) {
        double fused = at->type == TILE_HOST_F64 ? fma(x, y, z) : (double)fmaf((float)x, (float)y, (float)z);
        return (TileHostValue){.number = tile_host_round(at->type, fused)};
    }
    /* Rounding a double result of + - * / sqrt again to 24 bits or fewer is the same as rounding once. */
    return (TileHostValue){.number = tile_host_round(at->type, float_operation(at->op, at->type, x, y))};
}

static int64_t integer_from_float(TileHostType type, double x) {
    bool is_signed = types[type].class == TILE_HOST_CLASS_SIGNED;
    double limit = ldexp(1.0, types[type].bits - is_signed); /* one past the greatest */
    if (type == TILE_HOST_BOOL) return x != 0;
    if (isnan(x)) return 0;
    x = trunc(x);
    if (x >= limit) return wrap(type, is_signed ? (UINT64_C(1) << (types[type].bits - 1)) - 1 : UINT64_MAX);
    if (is_signed) return x < -limit ? wrap(type, UINT64_C(1) << (types[type].bits - 1)) : (int64_t)x;
    return x <= 0 ? 0 : (int64_t)(uint64_t)x;
}

static TileHostValue convert(const TileHostInstruction *at, TileHostValue x) {
    bool from_float = types[at->from].class == TILE_HOST_CLASS_FLOAT;
    bool to_float = types[at->type].class == TILE_HOST_CLASS_FLOAT;
    if (from_float && to_float) return (TileHostValue){.number = tile_host_round(at->type, x.number)};
    if (from_float) return (TileHostValue){.integer = integer_from_float(at->type, x.number)};
    bool is_signed = types[at->from].class == TILE_HOST_CLASS_SIGNED;
    if (!to_float) {
        if (at->type == TILE_HOST_BOOL) return (TileHostValue){.integer = x.integer != 0};
        return (TileHostValue){.integer = wrap(at->type, x.bits)};
    }
    /* Through a double, a 64-bit integer would round twice on its way to f32. */
    double number = is_signed ? (double)x.integer : (double)x.bits;
    if (at->type == TILE_HOST_F32) number = is_signed ? (double)(float)x.integer : (double)(float)x.bits;
    return (TileHostValue){.number = tile_host_round(at->type, number)};
}

void tile_host_run(const TileHostInstruction *program, uint32_t count, const TileView *views, TileHostValue *values) {
    for (uint32_t i = 0; i < count; i++) {
        const TileHostInstruction *at = &program[i];
        switch ((TileHostOp)at->op) {
        case TILE_HOST_CONST: values[i].bits = at->bits; break;
        case TILE_HOST_DIM: values[i].integer = views[at->a].extent[at->b]; break;
        case TILE_HOST_SCALAR: values[i].bits = views[at->a].scalar; break;
        case TILE_HOST_SELECT: values[i] = values[at->a].integer ? values[at->b] : values[at->c]; break;
        case TILE_HOST_CONVERT: values[i] = convert(at, values[at->a]); break;
        default:
            if (types[at->type].class == TILE_HOST_CLASS_FLOAT) {
                values[i] = float_instruction(at, values[at->a].number, values[at->b].number, values[at->c].number);
            } else {
                uint64_t bits = integer_operation(at->op, at->type, values[at->a].integer, values[at->b].integer);
                bool compares = at->op >= TILE_HOST_EQ && at->op <= TILE_HOST_GE;
                values[i].integer = compares ? (int64_t)bits : wrap(at->type, bits);
            }
        }
    }
}

void tile_host_print(char *buffer, size_t size, TileHostType type, TileHostValue value) {
    if (type == TILE_HOST_BOOL) {
        snprintf(buffer, size, "%s", value.integer ? "true" : "false");
    } else if (types[type].class == TILE_HOST_CLASS_FLOAT) {
        /* The shortest digits that read back the same; a locale's decimal comma becomes a point. */
        for (int digits = 1; digits <= 17; digits++) {
            snprintf(buffer, size, "%.*g", digits, value.number);
            double back = 0;
            if (sscanf(buffer, "%lf", &back) == 1 && tile_host_round(type, back) == value.number) break;
        }
        for (char *c = buffer; *c; c++)
            if (*c == ',') *c = '.';
    } else if (types[type].class == TILE_HOST_CLASS_SIGNED) {
        snprintf(buffer, size, "%lld", (long long)value.integer);
    } else {
        snprintf(buffer, size, "%llu", (unsigned long long)value.bits);
    }
}
