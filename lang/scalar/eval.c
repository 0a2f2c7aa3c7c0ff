#include "lang/scalar/eval.h"

#include <math.h>
#include <string.h>

#include "lang/scalar/eval_i64.h"
#include "lang/scalar/math.h"
#include "lang/scalar/scalar.h"

#define S(x) ((int64_t)(x))

/* ---- loops for the rows of eval.def: one for each operation and class of types ---- */

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

/* ---- instructions of GPUs; these functions are exact, except for instructions that PTX calls approximate ---- */

/* .ftz: subnormal operands and results are flushed to a zero of the same sign. */
static float flush(float x) { return fpclassify(x) == FP_SUBNORMAL ? copysignf(0, x) : x; }

/* The hardware's error is at most 2 ulp (recorded in tests/gpu/vectors.txt); this uses the language's exp2, which has
 * the same zeros, ones and infinities. */
static float tile_ex2_approx(float x) { return flush(tile_math_f32(TILE_EVAL_EXP2, false, flush(x), 0)); }

/* The hardware's error is at most 1 ulp; this rounds to nearest. */
static float tile_rcp_approx(float x) { return flush(1 / flush(x)); }

#define STORE_SAME(class, type, value) store_##class(type, value)
#define STORE_TEST(class, type, value) ((value) ? 1u : 0u)

/* Absent operands are replaced by the first one; the compiler removes reads that the expression does not use. */
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
#include "lang/scalar/eval.def"

#define F(name) name##f
#define EVAL_FLOAT(id, operands, result, float_)                                                                       \
    LOOP(f32, float, id, operands, result, float_)                                                                     \
    LOOP(small, float, id, operands, result, float_)
#include "lang/scalar/eval.def"
#undef F

#define F(name) name
#define EVAL_FLOAT(id, operands, result, float_) LOOP(f64, double, id, operands, result, float_)
#include "lang/scalar/eval.def"
#undef F

/* ---- transcendental operations ---- */

#define MATH_LOOP(class, id, operands, approx)                                                                         \
    static void class##_##id(TileScalar from, TileScalar to, const uint64_t *const *in, uint64_t *out, size_t count) { \
        const uint64_t *in_y = in[operands > 1 ? 1 : 0];                                                               \
        for (size_t i = 0; i < count; i++) {                                                                           \
            float x = tile_scalar_to_float(from, in[0][i]), y = tile_scalar_to_float(from, in_y[i]);                   \
            out[i] = tile_scalar_from_float(from, tile_math_f32(TILE_EVAL_##id, approx, x, y));                        \
        }                                                                                                              \
    }
#define MATH(id, name, operands, program)                                                                              \
    MATH_LOOP(full, id, operands, false)                                                                               \
    MATH_LOOP(approx, id, operands, true)                                                                              \
    static void f64_##id(TileScalar from, TileScalar to, const uint64_t *const *in, uint64_t *out, size_t count) {     \
        const uint64_t *in_y = in[operands > 1 ? 1 : 0];                                                               \
        for (size_t i = 0; i < count; i++) {                                                                           \
            double x = load_f64(from, in[0][i]), y = load_f64(from, in_y[i]);                                          \
            out[i] = store_f64(from, tile_math_f64(TILE_EVAL_##id, x, y));                                             \
        }                                                                                                              \
    }
#include "lang/scalar/math.def"
#undef MATH

/* ---- other operations ---- */

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
    for (size_t i = 0; i < count; i++)
        out[i] = to == TILE_U32 ? tile_math_rand_word(in[0][i], in[1][i]) : store_f32(to, tile_math_rand(in[0][i], in[1][i]));
}

/* A float's place among those of its type: -1, 0, 1 are the least negative number, both zeros and the least positive. */
static int64_t place_of(uint64_t bits, uint64_t sign) {
    return bits & sign ? -(int64_t)(bits & (sign - 1)) : (int64_t)bits;
}

/* The next of the places towards y. A zero that is reached keeps the sign of x. */
static uint64_t next_after(TileScalar type, uint64_t x, uint64_t y) {
    uint64_t sign = UINT64_C(1) << (tile_scalar_bits(type) - 1);
    if (tile_scalar_is_nan(type, x)) return x;
    if (tile_scalar_is_nan(type, y)) return y;
    int64_t from = place_of(x, sign), towards = place_of(y, sign);
    if (from == towards) return y;
    int64_t next = from + (towards > from ? 1 : -1);
    bool negative = from == 0 ? next < 0 : from < 0;
    return (uint64_t)(next < 0 ? -next : next) | (negative ? sign : 0);
}

static void nextafter_lanes(TileScalar from, TileScalar to, const uint64_t *const *in, uint64_t *out, size_t count) {
    for (size_t i = 0; i < count; i++) out[i] = next_after(from, in[0][i], in[1][i]);
}

/* ---- tables ---- */

enum { SIGNED, UNSIGNED, F32, F64, SMALL, CLASS_COUNT };

static int class_of(TileScalar scalar) {
    static const uint8_t classes[TILE_SCALAR_COUNT] = {
        [TILE_I8] = SIGNED,     [TILE_I16] = SIGNED,   [TILE_I32] = SIGNED,   [TILE_I64] = SIGNED,
        [TILE_BOOL] = UNSIGNED, [TILE_U8] = UNSIGNED,  [TILE_U16] = UNSIGNED, [TILE_U32] = UNSIGNED,
        [TILE_U64] = UNSIGNED,  [TILE_F8E4M3] = SMALL, [TILE_F8E5M2] = SMALL, [TILE_F16] = SMALL,
        [TILE_BF16] = SMALL,    [TILE_F32] = F32,      [TILE_F64] = F64,
    };
    return classes[scalar];
}

/* Operations whose result type is determined by the operand type. */
static const TileEvalLoop loops[TILE_EVAL_COUNT][CLASS_COUNT] = {
#define EVAL_INT(id, operands, result, s, u)                                                                           \
    [TILE_EVAL_##id][SIGNED] = signed_##id, [TILE_EVAL_##id][UNSIGNED] = unsigned_##id,
#define EVAL_FLOAT(id, operands, result, f)                                                                            \
    [TILE_EVAL_##id][F32] = f32_##id, [TILE_EVAL_##id][F64] = f64_##id, [TILE_EVAL_##id][SMALL] = small_##id,
#include "lang/scalar/eval.def"
#define MATH(id, name, operands, program)                                                                              \
    [TILE_EVAL_##id][F32] = full_##id, [TILE_EVAL_##id][F64] = f64_##id, [TILE_EVAL_##id][SMALL] = full_##id,
#include "lang/scalar/math.def"
#undef MATH
};

/* Approximate versions, for f32 and narrower types, which are computed in f32. */
static const TileEvalLoop approx_loops[TILE_EVAL_COUNT] = {
#define MATH(id, name, operands, program) [TILE_EVAL_##id] = approx_##id,
#include "lang/scalar/math.def"
#undef MATH
};

TileEvalLoop tile_eval_op_loop(TileEvalOp op, TileScalar from, TileScalar to, bool approx) {
    int class = class_of(from);
    TileEvalLoop loop = loops[op][class];
    if (loop) return approx && approx_loops[op] && class != F64 ? approx_loops[op] : loop;
    if (op == TILE_EVAL_SELECT) return select_lanes;
    if (op == TILE_EVAL_OPAQUE) return copy_lanes;
    if (op == TILE_EVAL_CONVERT) return from == to ? copy_lanes : convert_lanes;
    if (op == TILE_EVAL_BITCAST) return tile_scalar_bits(from) == tile_scalar_bits(to) ? copy_lanes : NULL;
    if (op == TILE_EVAL_NEXTAFTER) return tile_scalar_is_float(from) ? nextafter_lanes : NULL;
    if (op == TILE_EVAL_RAND) return from == TILE_I64 && (to == TILE_F32 || to == TILE_U32) ? rand_lanes : NULL;
    return NULL;
}

/* ---- rows ---- */

static const struct {
    const char *name;
    uint8_t operands;
} ops[TILE_EVAL_COUNT] = {
#define EVAL_OP(id, operands) [TILE_EVAL_##id] = {#id, operands},
#include "lang/scalar/eval_ops.def"
};

const char *tile_eval_op_name(TileEvalOp op) { return ops[op].name; }
unsigned tile_eval_op_operands(TileEvalOp op) { return ops[op].operands; }

TileEvalOp tile_eval_op_find(const char *name) {
    int op = 0;
    while (op < TILE_EVAL_COUNT && strcmp(ops[op].name, name) != 0) op++;
    return (TileEvalOp)op;
}

enum { RESULT_SAME, RESULT_TEST };

static const uint8_t results[TILE_EVAL_COUNT] = {
#define EVAL_INT(id, operands, result, s, u) [TILE_EVAL_##id] = RESULT_##result,
#define EVAL_FLOAT(id, operands, result, f) [TILE_EVAL_##id] = RESULT_##result,
#define EVAL(id, operands, result, s, u, f) [TILE_EVAL_##id] = RESULT_##result,
#include "lang/scalar/eval.def"
};

bool tile_eval_op_allows(TileEvalOp op, TileScalar from, TileScalar to) {
    if (!tile_eval_op_loop(op, from, to, false)) return false;
    if (op == TILE_EVAL_CONVERT || op == TILE_EVAL_BITCAST || op == TILE_EVAL_RAND) return true;
    return to == (results[op] == RESULT_TEST ? TILE_BOOL : from);
}

/* ---- reductions ---- */

enum { ORDER_FREE, ORDER_FLOATS };
enum { REPEATS_ONCE, REPEATS_IDEMPOTENT };
typedef enum Identity { IDENTITY_ZERO, IDENTITY_ONE, IDENTITY_ALL_ONES, IDENTITY_LEAST, IDENTITY_GREATEST } Identity;

static const struct {
    uint8_t op, identity, order, repeats;
} reductions[TILE_REDUCTION_COUNT] = {
#define REDUCTION(id, name, op, identity, order, repeats)                                                              \
    {TILE_EVAL_##op, IDENTITY_##identity, ORDER_##order, REPEATS_##repeats},
#include "lang/scalar/reductions.def"
};

TileEvalOp tile_reduction_op(TileReduction reduction) { return (TileEvalOp)reductions[reduction].op; }

uint64_t tile_reduction_identity(TileReduction reduction, TileScalar scalar) {
    switch ((Identity)reductions[reduction].identity) {
    case IDENTITY_ZERO: break;
    case IDENTITY_ONE: return tile_scalar_from_unsigned(scalar, 1);
    case IDENTITY_ALL_ONES: return tile_scalar_mask(scalar);
    case IDENTITY_LEAST: return tile_scalar_least(scalar);
    case IDENTITY_GREATEST: return tile_scalar_greatest(scalar);
    }
    return 0;
}

bool tile_reduction_is_ordered(TileReduction reduction, TileScalar scalar) {
    return reductions[reduction].order == ORDER_FLOATS && tile_scalar_is_float(scalar);
}

bool tile_reduction_is_idempotent(TileReduction reduction) {
    return reductions[reduction].repeats == REPEATS_IDEMPOTENT;
}
