#include "lang/eval.h"

#include <math.h>
#include <string.h>

#include "lang/math.h"
#include "lang/scalar.h"

#define S(x) ((int64_t)(x))

static uint64_t floor_quotient(uint64_t x, uint64_t y) {
    if (y == 0) return 0;
    if (S(y) == -1) return 0 - x; /* the one quotient that C leaves undefined wraps */
    int64_t quotient = S(x) / S(y);
    return (uint64_t)(quotient - (S(x) % S(y) != 0 && (S(x) < 0) != (S(y) < 0)));
}

static uint64_t floor_remainder(uint64_t x, uint64_t y) { return y == 0 ? 0 : x - floor_quotient(x, y) * y; }

/* ---- loops of eval.def: one for each operation and class of types ---- */

static uint64_t load_signed(TileScalar type, uint64_t bits) {
    unsigned unused = 64 - tile_scalar_bits(type);
    return (uint64_t)(S(bits << unused) >> unused);
}
static uint64_t load_unsigned(TileScalar type, uint64_t bits) { return bits; }
static float load_f32(TileScalar type, uint64_t bits) {
    uint32_t low = (uint32_t)bits;
    float value;
    memcpy(&value, &low, sizeof value);
    return value;
}
static double load_f64(TileScalar type, uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
static float load_small(TileScalar type, uint64_t bits) { return tile_scalar_to_float(type, bits); }

static uint64_t store_signed(TileScalar type, uint64_t value) { return value & tile_scalar_mask(type); }
static uint64_t store_unsigned(TileScalar type, uint64_t value) { return value & tile_scalar_mask(type); }
static uint64_t store_f32(TileScalar type, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
static uint64_t store_f64(TileScalar type, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
static uint64_t store_small(TileScalar type, float value) { return tile_scalar_from_float(type, value); }

#define STORE_SAME(class, type, value) store_##class(type, value)
#define STORE_TEST(class, type, value) ((value) ? 1u : 0u)

/* Absent operands read as the first one; the compiler drops what the expression does not use. */
#define LOOP(class, C, id, operands, result_kind, expression)                                                          \
    static void class##_##id(TileScalar from, TileScalar to, const uint64_t *const *in, uint64_t *out, size_t count) { \
        const unsigned WIDTH = tile_scalar_bits(from);                                                                 \
        const uint64_t *in_y = in[operands > 1 ? 1 : 0], *in_z = in[operands > 2 ? 2 : 0];                             \
        for (size_t i = 0; i < count; i++) {                                                                           \
            C x = load_##class(from, in[0][i]), y = load_##class(from, in_y[i]), z = load_##class(from, in_z[i]);      \
            (void)WIDTH, (void)y, (void)z;                                                                             \
            out[i] = STORE_##result_kind(class, from, expression);                                                     \
        }                                                                                                              \
    }

#define EVAL_INT(id, operands, result, signed_, unsigned_)                                                             \
    LOOP(signed, uint64_t, id, operands, result, signed_)                                                              \
    LOOP(unsigned, uint64_t, id, operands, result, unsigned_)
#include "lang/eval.def"

#define F(name) name##f
#define EVAL_FLOAT(id, operands, result, float_)                                                                       \
    LOOP(f32, float, id, operands, result, float_)                                                                     \
    LOOP(small, float, id, operands, result, float_)
#include "lang/eval.def"
#undef F

#define F(name) name
#define EVAL_FLOAT(id, operands, result, float_) LOOP(f64, double, id, operands, result, float_)
#include "lang/eval.def"
#undef F

enum { SIGNED, UNSIGNED, F32, F64, SMALL, CLASS_COUNT };

static const TileEvalLoop loops[TILE_OP_COUNT][CLASS_COUNT] = {
#define EVAL_INT(id, operands, result, s, u)                                                                           \
    [TILE_OP_##id][SIGNED] = signed_##id, [TILE_OP_##id][UNSIGNED] = unsigned_##id,
#define EVAL_FLOAT(id, operands, result, f)                                                                            \
    [TILE_OP_##id][F32] = f32_##id, [TILE_OP_##id][F64] = f64_##id, [TILE_OP_##id][SMALL] = small_##id,
#include "lang/eval.def"
};

/* ---- transcendental operations ---- */

#define MATH_LOOP(class, id, operands, approx)                                                                         \
    static void class##_##id(TileScalar from, TileScalar to, const uint64_t *const *in, uint64_t *out, size_t count) { \
        const uint64_t *in_y = in[operands > 1 ? 1 : 0];                                                               \
        for (size_t i = 0; i < count; i++) {                                                                           \
            float x = tile_scalar_to_float(from, in[0][i]), y = tile_scalar_to_float(from, in_y[i]);                   \
            out[i] = tile_scalar_from_float(from, tile_math_f32(TILE_OP_##id, approx, x, y));                          \
        }                                                                                                              \
    }
#define MATH(id, name, operands, program)                                                                              \
    MATH_LOOP(full, id, operands, false)                                                                               \
    MATH_LOOP(approx, id, operands, true)                                                                              \
    static void f64_##id(TileScalar from, TileScalar to, const uint64_t *const *in, uint64_t *out, size_t count) {     \
        const uint64_t *in_y = in[operands > 1 ? 1 : 0];                                                               \
        for (size_t i = 0; i < count; i++) {                                                                           \
            double x = load_f64(from, in[0][i]), y = load_f64(from, in_y[i]);                                          \
            out[i] = store_f64(from, tile_math_f64(TILE_OP_##id, x, y));                                               \
        }                                                                                                              \
    }
#include "lang/math.def"
#undef MATH

enum { MATH_FULL, MATH_APPROX, MATH_F64, MATH_COUNT };

static const TileEvalLoop math_loops[TILE_OP_COUNT][MATH_COUNT] = {
#define MATH(id, name, operands, program) [TILE_OP_##id] = {full_##id, approx_##id, f64_##id},
#include "lang/math.def"
#undef MATH
};

/* ---- the rest ---- */

static void select_lanes(TileScalar from, TileScalar to, const uint64_t *const *in, uint64_t *out, size_t count) {
    for (size_t i = 0; i < count; i++) out[i] = in[0][i] ? in[1][i] : in[2][i];
}

static void copy_lanes(TileScalar from, TileScalar to, const uint64_t *const *in, uint64_t *out, size_t count) {
    memmove(out, in[0], count * sizeof *out);
}

static void convert_lanes(TileScalar from, TileScalar to, const uint64_t *const *in, uint64_t *out, size_t count) {
    for (size_t i = 0; i < count; i++) out[i] = tile_scalar_convert(from, to, in[0][i]);
}

static void rand_lanes(TileScalar from, TileScalar to, const uint64_t *const *in, uint64_t *out, size_t count) {
    for (size_t i = 0; i < count; i++) out[i] = store_f32(to, tile_math_rand(in[0][i], in[1][i]));
}

static int class_of(TileScalar scalar) {
    switch (tile_scalar_class(scalar)) {
    case TILE_CLASS_SIGNED: return SIGNED;
    case TILE_CLASS_BOOL:
    case TILE_CLASS_UNSIGNED: return UNSIGNED;
    case TILE_CLASS_FLOAT: break;
    }
    return scalar == TILE_F32 ? F32 : scalar == TILE_F64 ? F64 : SMALL;
}

TileEvalLoop tile_eval_loop(TileOpId id, TileScalar from, TileScalar to, bool approx) {
    if (id == TILE_OP_SELECT) return select_lanes;
    if (id == TILE_OP_OPAQUE) return copy_lanes;
    if (id == TILE_OP_CONVERT) return from == to ? copy_lanes : convert_lanes;
    if (id == TILE_OP_BITCAST) return tile_scalar_bits(from) == tile_scalar_bits(to) ? copy_lanes : NULL;
    if (id == TILE_OP_RAND) return from == TILE_I64 && to == TILE_F32 ? rand_lanes : NULL;
    int class = class_of(from);
    if (!tile_math_has(id)) return loops[id][class];
    if (class == SIGNED || class == UNSIGNED) return NULL;
    return math_loops[id][class == F64 ? MATH_F64 : approx ? MATH_APPROX : MATH_FULL];
}

bool tile_eval(TileOpId id, TileScalar operand_type, TileScalar result_type, const uint64_t *operands,
               uint64_t *result) {
    TileEvalLoop loop = tile_eval_loop(id, operand_type, result_type, false);
    if (!loop) return false;
    const uint64_t *in[3];
    for (int i = 0; i < 3; i++) in[i] = i < tile_op_info(id)->operands ? &operands[i] : operands;
    loop(operand_type, result_type, in, result, 1);
    return true;
}

TileOpId tile_eval_combiner(int64_t kind) {
    switch (kind) {
    case TILE_KIND_PROD:
    case TILE_COMBINE_PROD: return TILE_OP_MUL;
    case TILE_KIND_MIN:
    case TILE_COMBINE_MIN: return TILE_OP_MIN;
    case TILE_KIND_MAX:
    case TILE_COMBINE_MAX: return TILE_OP_MAX;
    case TILE_KIND_ANY:
    case TILE_COMBINE_ANY: return TILE_OP_OR;
    case TILE_KIND_ALL:
    case TILE_COMBINE_ALL: return TILE_OP_AND;
    default: return TILE_OP_ADD;
    }
}

uint64_t tile_eval_identity(int64_t kind, TileScalar scalar) {
    switch (tile_eval_combiner(kind)) {
    case TILE_OP_MUL: return tile_scalar_from_unsigned(scalar, 1);
    case TILE_OP_MIN: return tile_scalar_greatest(scalar);
    case TILE_OP_MAX: return tile_scalar_least(scalar);
    case TILE_OP_AND: return tile_scalar_mask(scalar);
    default: return 0;
    }
}

uint64_t tile_eval_update(int64_t update, TileScalar scalar, uint64_t old, uint64_t value, uint64_t expected) {
    uint64_t operands[] = {old, value}, result = old;
    TileOpId combiner = TILE_OP_ADD;
    if (update == TILE_UPDATE_READ) return old;
    if (update == TILE_UPDATE_CAS) return old == expected ? value : old;
    if (update == TILE_UPDATE_MIN) combiner = TILE_OP_MIN;
    if (update == TILE_UPDATE_MAX) combiner = TILE_OP_MAX;
    tile_eval(combiner, scalar, scalar, operands, &result);
    return result;
}

float tile_eval_tf32(float value) {
    if (isnan(value) || isinf(value)) return value;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = (bits + 0xfff + (bits >> 13 & 1)) & ~(uint32_t)0x1fff;
    memcpy(&value, &bits, sizeof value);
    return value;
}
