/* Purpose: expand the transcendental ops (lang/scalar/math.def) into the straight-line programs of math_f32.def and
 * math_f64.def there, on scalars and on vectors of any length.
 *
 * Before:
 *     func phase machine @k.0(%x: ptr<global>) {
 *       %v = load %x : vec<8 x f16>
 *       %y = rsqrt %v : vec<8 x f16>
 *       store %y, %x
 *       return
 *     }
 * After:
 *     func phase machine @k.0(%x: ptr<global>) {
 *       %0 = const {value = 1.0} : vec<8 x f32>
 *       %v = load %x : vec<8 x f16>
 *       %1 = convert %v : vec<8 x f32>
 *       %2 = sqrt %1 : vec<8 x f32>
 *       %3 = div %0, %2 : vec<8 x f32>
 *       %y = convert %3 : vec<8 x f16>
 *       store %y, %x
 *       return
 *     }
 * Constants are built at the front of the function, each once. f16, bf16 and f8 are converted to f32, and the result is
 * rounded once. Code that few arguments need (sin and cos of huge ones) is in an `if`; where vectors are longer than a register of f64,
 * in a loop over parts of them.
 *
 * Needs: no tile-typed values. Keeps: every result, bit for bit: lang/scalar/math.c runs the same programs.
 * Cost: linear; 10 to 60 ops for each op, without constants. */
#include <math.h>

#include "base/map.h"
#include "lang/ir/eval.h"
#include "lang/scalar/math.h"
#include "lang/scalar/scalar.h"
#include "lowering/emit.h"

/* What is known of an op's argument, which may be NaN. */
typedef enum Sign {
    SIGN_UNKNOWN,
    SIGN_POSITIVE, /* it is at least 0 */
    SIGN_NEGATIVE, /* at most 0 */
} Sign;

typedef struct Program {
    TileEmitter *emitter;
    TileBuilder *builder;  /* the emitter's */
    const TileType *shape; /* of the op that is being replaced */
    bool multiplies;       /* the function has products by tensor cores */
    Sign sign;             /* of the argument of an exp or log1p that is being replaced */
    TileValue **parts;     /* where vectors lie of which code takes a part at a time; NULL: not made yet */
} Program;

static TileValue *constant(Program *program, TileScalar scalar, uint64_t bits) {
    return tile_emit_bits_like(program->emitter, program->shape, scalar, bits);
}

/* ---- code that few arguments need ---- */

/* An `if` on whether any lane of m is true; until rare_end, ops are inserted into its first region. */
static TileOp *rare_begin(Program *program, TileValue *m, const TileType *type) {
    TileValue *some = tile_build_unary(program->builder, TILE_OP_ANY_LANE, m);
    TileOp *op = tile_build_if(program->builder, some, &type, 1);
    program->builder->block = &op->regions[0];
    program->builder->before = NULL;
    return op;
}

static TileValue *rare_end(Program *program, TileOp *op, TileValue *m, TileValue *rare, TileValue *common) {
    TileValue *value = tile_build_ternary(program->builder, TILE_OP_SELECT, m, rare, common);
    tile_build_end(program->builder, TILE_OP_YIELD, &value, 1);
    program->builder->block = &op->regions[1];
    tile_build_end(program->builder, TILE_OP_YIELD, &common, 1);
    program->builder->block = op->block;
    program->builder->before = op->next;
    return tile_op_result(op, 0);
}

/* Lanes of one register of f64, where the vector is longer; else 0. */
static int64_t part_lanes(const Program *program) {
    const TileTarget *target = &program->emitter->target;
    int64_t part = (int64_t)target->vector_bytes / 8;
    bool is_long = !target->exchanges_lanes && program->shape->kind == TILE_TYPE_VECTOR && !program->shape->scalable && tile_type_lanes(program->shape) > part;
    return part && is_long && tile_type_lanes(program->shape) <= TILE_STRIPES ? part : 0;
}

typedef TileValue *Compute(Program *program, TileValue *x);

/* Code that few arguments need, on a register of f64 at a time, in a loop: of four registers of f32 it would have eight copies of each
 * instruction, most of what there is to compile. */
static TileValue *in_parts(Program *program, TileValue *x, Compute *compute) {
    TileBuilder *b = program->builder, outside = *b;
    int64_t part = part_lanes(program), size = tile_scalar_bytes(TILE_F32);
    if (!part) return compute(program, x);
    if (!*program->parts) *program->parts = tile_build_buffer(&program->emitter->front, TILE_STRIPES * size, 64);
    tile_build_store(b, x, *program->parts, NULL, 0);
    TileValue *zero = tile_emit_i64(program->emitter, 0), *step = tile_emit_i64(program->emitter, part * size);
    TileValue *end = tile_emit_i64(program->emitter, tile_type_lanes(program->shape) * size);
    TileOp *loop = tile_build_for(b, zero, end, step, NULL, 0);
    Program narrow = *program;
    narrow.shape = tile_type_vector(b->module->context, TILE_F32, part, false);
    b->block = &loop->regions[0];
    b->before = NULL;
    TileValue *place = tile_build_ptr_add(b, *program->parts, loop->regions[0].arguments[0]);
    tile_build_store(b, compute(&narrow, tile_build_load(b, narrow.shape, place, NULL, NULL, 0)), place, NULL, 0);
    tile_build_end(b, TILE_OP_YIELD, NULL, 0);
    b->block = outside.block;
    b->before = outside.before;
    return tile_build_load(b, x->type, *program->parts, NULL, NULL, 0);
}

/* Is it asked once for all lanes of a vector, or of a thread, whether an argument is unusual? A processor compares and branches in three
 * instructions, in place of eight and more that usual arguments do not need. A GPU's branch costs more than it saves for few lanes, and
 * beside products, which have to be a straight line. */
static bool asks_for_all(const Program *program) {
    enum { LEAST_LANES = 4 };
    if (program->shape->kind != TILE_TYPE_VECTOR) return false;
    return !program->emitter->target.exchanges_lanes || (!program->multiplies && tile_type_lanes(program->shape) >= LEAST_LANES);
}

/* An `if` on the same as rare_begin, whose regions compute apart: the first one what serves all lanes, the second what serves usual ones, so
 * that no lane is there twice. */
static TileOp *unusual_begin(Program *program, TileValue *m) {
    return rare_begin(program, m, tile_type_with_scalar(program->builder->module->context, m->type, TILE_F32));
}

static void unusual_else(Program *program, TileOp *op, TileValue *value) {
    tile_build_end(program->builder, TILE_OP_YIELD, &value, 1);
    program->builder->block = &op->regions[1];
    program->builder->before = NULL;
}

static TileValue *unusual_end(Program *program, TileOp *op, TileValue *value) {
    tile_build_end(program->builder, TILE_OP_YIELD, &value, 1);
    program->builder->block = op->block;
    program->builder->before = op->next;
    return tile_op_result(op, 0);
}

/* ---- bounds and quotients, by a machine's instructions ---- */

static TileValue *at_least(Program *program, TileValue *x, TileValue *low) {
    TileBuilder *b = program->builder;
    if (program->emitter->target.has_maximum) return tile_build_binary(b, TILE_OP_MAXIMUM, x, low);
    return tile_build_ternary(b, TILE_OP_SELECT, tile_build_binary(b, TILE_OP_LT, x, low), low, x);
}

static TileValue *at_most(Program *program, TileValue *x, TileValue *high) {
    TileBuilder *b = program->builder;
    if (program->emitter->target.has_maximum) return tile_build_binary(b, TILE_OP_MINIMUM, x, high);
    return tile_build_ternary(b, TILE_OP_SELECT, tile_build_binary(b, TILE_OP_LT, high, x), high, x);
}

/* One step of Newton's method rounds to nearest if the first approximation is within a unit of the last place, for each
 * mantissa; but for that with all bits set, of which it has to be exact. */
static TileValue *reciprocal(Program *program, TileValue *x) {
    TileBuilder *b = program->builder;
    TileValue *one = constant(program, TILE_F32, tile_scalar_from_float(TILE_F32, 1));
    if (!program->emitter->target.has_rcp_approx) return tile_build_binary(b, TILE_OP_DIV, one, x);
    TileValue *r = tile_build_unary(b, TILE_OP_RCP_APPROX, x);
    TileValue *error = tile_build_ternary(b, TILE_OP_FMA, tile_build_unary(b, TILE_OP_NEG, x), r, one);
    return tile_build_ternary(b, TILE_OP_FMA, r, error, r);
}

/* By Markstein's theorem the remainder's part, by an exact reciprocal, rounds the quotient to nearest. */
static TileValue *quotient(Program *program, TileValue *x, TileValue *y) {
    TileBuilder *b = program->builder;
    if (!program->emitter->target.has_rcp_approx) return tile_build_binary(b, TILE_OP_DIV, x, y);
    TileValue *r = reciprocal(program, y), *q = tile_build_binary(b, TILE_OP_MUL, x, r);
    TileValue *rest = tile_build_ternary(b, TILE_OP_FMA, tile_build_unary(b, TILE_OP_NEG, y), q, x);
    return tile_build_ternary(b, TILE_OP_FMA, rest, r, q);
}

/* ---- the operations of the programs ---- */

typedef TileValue *F, *D, *I, *U, *M;
typedef struct {
    D radians;
    U quarters;
} ANGLE;
typedef struct {
    D high, low;
} PAIR;

#define UNARY(id, x) tile_build_unary(program->builder, TILE_OP_##id, x)
#define BINARY(id, x, y) tile_build_binary(program->builder, TILE_OP_##id, x, y)
#define TERNARY(id, x, y, z) tile_build_ternary(program->builder, TILE_OP_##id, x, y, z)

#define K(number) constant(program, TILE_F32, tile_scalar_from_float(TILE_F32, number))
#define KI(number) constant(program, TILE_I32, (uint32_t)(number))
#define KD(number) constant(program, TILE_F64, tile_scalar_from_double(TILE_F64, number))
#define KU(number) constant(program, TILE_U64, number)
#define BITS(x) tile_build_bitcast(program->builder, x, TILE_I32)
#define FLOAT(x) tile_build_bitcast(program->builder, x, TILE_F32)
#define DBITS(x) tile_build_bitcast(program->builder, x, TILE_U64)
#define DOUBLE(x) tile_build_bitcast(program->builder, x, TILE_F64)
#define WIDE(x) tile_build_convert(program->builder, x, TILE_F64)
#define NARROW(x) tile_build_convert(program->builder, x, TILE_F32)

#define ADD(x, y) BINARY(ADD, x, y)
#define SUB(x, y) BINARY(SUB, x, y)
#define MUL(x, y) BINARY(MUL, x, y)
#define DIV(x, y) BINARY(DIV, x, y)
#define NEG(x) UNARY(NEG, x)
#define FMA(x, y, z) TERNARY(FMA, x, y, z)
#define SQRT(x) UNARY(SQRT, x)
#define ABS(x) UNARY(ABS, x)
#define FLOOR(x) UNARY(FLOOR, x)
#define ROUND(x) UNARY(ROUND, x)
#define COPYSIGN(x, y) BINARY(COPYSIGN, x, y)

#define LT(x, y) BINARY(LT, x, y)
#define LE(x, y) BINARY(LE, x, y)
#define EQ(x, y) BINARY(EQ, x, y)
#define NE(x, y) BINARY(NE, x, y)
#define MAND(x, y) BINARY(AND, x, y)
#define SELECT(m, x, y) TERNARY(SELECT, m, x, y)
#define RARE(m, x, y)                                                                                                  \
    ({                                                                                                                 \
        M rare_m = (m);                                                                                                \
        TileValue *rare_common = (y);                                                                                  \
        TileOp *rare_op = rare_begin(program, rare_m, rare_common->type);                                              \
        rare_end(program, rare_op, rare_m, (x), rare_common);                                                          \
    })
#define RARE_IN_PARTS(m, program_of_x, x, y)                                                                           \
    ({                                                                                                                 \
        M rare_m = (m);                                                                                                \
        TileValue *rare_common = (y);                                                                                  \
        TileOp *rare_op = rare_begin(program, rare_m, rare_common->type);                                              \
        rare_end(program, rare_op, rare_m, in_parts(program, x, f32_##program_of_x), rare_common);                     \
    })

#define MNOT(x) UNARY(NOT, x)
#define UNUSUAL(m, x, y) CHOSEN(asks_for_all(program), m, x, y)
#define CHOSEN(asks, m, x, y)                                                                                          \
    ({                                                                                                                 \
        TileOp *unusual_op = (asks) ? unusual_begin(program, m) : NULL;                                                \
        TileValue *unusual_value = (x);                                                                                \
        if (unusual_op) {                                                                                              \
            unusual_else(program, unusual_op, unusual_value);                                                          \
            unusual_value = unusual_end(program, unusual_op, (y));                                                     \
        }                                                                                                              \
        unusual_value;                                                                                                 \
    })

#define WHERE_POSITIVE(x, y) (program->sign == SIGN_POSITIVE ? (x) : (y))
#define WHERE_NEGATIVE(x, y) (program->sign == SIGN_NEGATIVE ? (x) : (y))
#define AVOIDING_SUBNORMALS(m, x, y, z) (program->emitter->target.slow_subnormals ? CHOSEN(true, m, x, y) : (z))
#define AT_LEAST(x, low) at_least(program, x, low)
#define AT_MOST(x, high) at_most(program, x, high)
#define RECIPROCAL(x) reciprocal(program, x)
#define QUOTIENT(x, y) quotient(program, x, y)

#define IADD(x, y) BINARY(ADD, x, y)
#define ISUB(x, y) BINARY(SUB, x, y)
#define IAND(x, y) BINARY(AND, x, y)
#define IXOR(x, y) BINARY(XOR, x, y)
#define INOT(x) UNARY(NOT, x)
#define ISHL(x, count) tile_emit_with_bits(program->emitter, TILE_OP_SHL, x, count)
#define ISHR(x, count) tile_emit_with_bits(program->emitter, TILE_OP_SHR, x, count)

#define UADD(x, y) BINARY(ADD, x, y)
#define USUB(x, y) BINARY(SUB, x, y)
#define UMUL(x, y) BINARY(MUL, x, y)
#define ULT(x, y) BINARY(LT, x, y)
#define UAND(x, y) BINARY(AND, x, y)
#define UOR(x, y) BINARY(OR, x, y)
#define UXOR(x, y) BINARY(XOR, x, y)
#define UEQ(x, y) BINARY(EQ, x, y)
#define USHL(x, count) tile_emit_with_bits(program->emitter, TILE_OP_SHL, x, count)
#define USHR(x, count) tile_emit_with_bits(program->emitter, TILE_OP_SHR, x, count)

#define PARAMETERS(...) __VA_ARGS__

#define PROGRAM(name, R, parameters) static R f64_##name(Program *program, PARAMETERS parameters)
#define CALL(name, ...) f64_##name(program, __VA_ARGS__)
#include "lang/scalar/math_f64.def"
#undef PROGRAM
#undef CALL

#define PROGRAM(name, R, parameters) static R f32_##name(Program *program, PARAMETERS parameters)
#define CALL(name, ...) f32_##name(program, __VA_ARGS__)
#define CALL_F64(name, ...) f64_##name(program, __VA_ARGS__)
#include "lang/scalar/math_f32.def"
#undef PROGRAM
#undef CALL
#undef CALL_F64

/* ---- the pass ---- */

#define ARGUMENTS_1 (program, x)
#define ARGUMENTS_2 (program, x, y)

static TileValue *expand_f32(Program *program, TileOpId id, bool approx, TileValue *x, TileValue *y) {
    switch (id) {
#define MATH(id, name, operands, approx_name)                                                                          \
    case TILE_OP_##id:                                                                                                 \
        return approx ? f32_##approx_name ARGUMENTS_##operands : f32_##name ARGUMENTS_##operands;
#include "lang/scalar/math.def"
#undef MATH
    default: return NULL;
    }
}

static TileValue *expand_f64(Program *program, TileOpId id, TileValue *x, TileValue *y) {
    switch (id) {
#define MATH(id, name, operands, approx_name)                                                                          \
    case TILE_OP_##id:                                                                                                 \
        return f64_##name ARGUMENTS_##operands;
#include "lang/scalar/math.def"
#undef MATH
    default: return NULL;
    }
}

typedef struct Expansion {
    TileEmitter *emitter;
    bool multiplies;
    TileMap signs; /* of the arguments of ops */
    TileValue *parts;
} Expansion;

static Sign sign_of(const TileValue *value, unsigned depth) {
    enum { DEEPEST = 4 };
    const TileOp *op = value->op;
    if (!op || depth == DEEPEST) return SIGN_UNKNOWN;
    if (op->id == TILE_OP_ABS || op->id == TILE_OP_EXP || op->id == TILE_OP_EXP2 || op->id == TILE_OP_SIGMOID) return SIGN_POSITIVE;
    if (op->id == TILE_OP_MUL && tile_op_operand(op, 0) == tile_op_operand(op, 1)) return SIGN_POSITIVE;
    Sign sign = op->id == TILE_OP_NEG ? sign_of(tile_op_operand(op, 0), depth + 1) : SIGN_UNKNOWN;
    return sign == SIGN_POSITIVE ? SIGN_NEGATIVE : sign == SIGN_NEGATIVE ? SIGN_POSITIVE : SIGN_UNKNOWN;
}

/* Before any is expanded: an exp says of which sign the argument of a log1p is. */
static void find_signs(TileOp *op, void *state) {
    Expansion *expansion = state;
    Sign sign = op->id == TILE_OP_EXP || op->id == TILE_OP_LOG1P ? sign_of(tile_op_operand(op, 0), 0) : SIGN_UNKNOWN;
    if (sign != SIGN_UNKNOWN) tile_map_set(&expansion->signs, op, (void *)(uintptr_t)sign);
}

static void find_products(TileOp *op, void *found) {
    *(bool *)found |= op->id == TILE_OP_MMA || op->id == TILE_OP_WGMMA;
}

static void expand(TileOp *op, void *state) {
    Expansion *expansion = state;
    TileEmitter *emitter = expansion->emitter;
    if (!tile_math_has(tile_eval_op_of((TileOpId)op->id))) return;
    bool approx = tile_op_integer(op, TILE_ATTRIBUTE_APPROX, 0) != 0;
    TileScalar scalar = tile_op_result(op, 0)->type->scalar;
    tile_emit_before(emitter, op);
    Sign sign = (Sign)(uintptr_t)tile_map_get(&expansion->signs, op);
    Program program = {emitter, &emitter->builder, tile_op_result(op, 0)->type, expansion->multiplies, sign, &expansion->parts};
    TileValue *x = tile_op_operand(op, 0), *y = op->operand_count > 1 ? tile_op_operand(op, 1) : NULL, *result;
    if (scalar == TILE_F64) {
        result = expand_f64(&program, op->id, x, y);
    } else {
        x = tile_build_convert(program.builder, x, TILE_F32);
        if (y) y = tile_build_convert(program.builder, y, TILE_F32);
        result = expand_f32(&program, op->id, approx, x, y);
    }
    tile_emit_replace(emitter, op, tile_build_convert(&emitter->builder, result, scalar));
}

TileResult tile_pass_math(TilePassContext *context, TileFunc *func) {
    TileEmitter emitter = tile_emitter_create(context, func);
    Expansion expansion = {.emitter = &emitter};
    tile_map_init(&expansion.signs, context->scratch);
    tile_block_walk(&func->body, find_products, &expansion.multiplies);
    tile_block_walk(&func->body, find_signs, &expansion);
    tile_block_walk(&func->body, expand, &expansion);
    return tile_emit_finish(&emitter, context);
}
