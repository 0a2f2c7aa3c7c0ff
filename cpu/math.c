/* Purpose: expand the transcendental ops (lang/math.def) into the straight-line programs of lang/math_f32.def, on
 * scalars and on vectors of any length.
 *
 * Before:
 *     %y = log2 %x {approx = 1} : vec<16 x f32>
 * After:
 *     %c = const {value = ..} : vec<16 x f32>     at the front of the function, once for each constant
 *     ..
 *     %y = select %finite, %r, %s : vec<16 x f32>
 * f16 and bf16 (and f8) are converted to f32 and the result is rounded once. A part of a program that hardly any
 * argument needs (sin and cos of huge ones) stands in an `if`.
 *
 * Needs: no tile-typed values. Keeps: every result, bit for bit: lang/math.c runs the same programs.
 * Cost: linear; 10 to 60 ops for each op replaced, the constants aside. */
#include <math.h>
#include <string.h>

#include "cpu/passes.h"
#include "lang/build.h"
#include "lang/math.h"
#include "lang/scalar.h"

typedef struct Constant {
    const TileType *type;
    uint64_t bits;
    TileValue *value;
} Constant;

typedef struct Emitter {
    TileBuilder builder;
    TileBuilder front; /* constants of the whole function */
    TileArena *arena;
    const TileType *shape; /* of the op that is being replaced */
    TILE_LIST(Constant) constants;
    bool changed;
    const char *error;
    const TileOp *unsupported;
} Emitter;

static const TileType *type_of(Emitter *emit, TileScalar scalar) {
    return tile_type_with_scalar(emit->builder.module->context, emit->shape, scalar);
}

static TileValue *constant(Emitter *emit, TileScalar scalar, uint64_t bits) {
    const TileType *type = type_of(emit, scalar);
    for (size_t i = 0; i < emit->constants.count; i++)
        if (emit->constants.items[i].type == type && emit->constants.items[i].bits == bits)
            return emit->constants.items[i].value;
    TileValue *value = tile_build_bits(&emit->front, type, bits);
    tile_list_push(emit->arena, &emit->constants, (Constant){type, bits, value});
    return value;
}

static TileValue *constant_f32(Emitter *emit, float number) {
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return constant(emit, TILE_F32, bits);
}

static TileValue *constant_f64(Emitter *emit, double number) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return constant(emit, TILE_F64, bits);
}

/* x op count, the count being of x's type. */
static TileValue *shift(Emitter *emit, TileOpId id, TileValue *x, unsigned count) {
    return tile_build_binary(&emit->builder, id, x, constant(emit, x->type->scalar, count));
}

/* ---- parts that few arguments need ---- */

/* An `if` on whether some lane of m is true; until rare_end, ops go to its first region. */
static TileOp *rare_begin(Emitter *emit, TileValue *m, const TileType *type) {
    TileValue *some = m->type->kind == TILE_TYPE_VECTOR ? tile_build_unary(&emit->builder, TILE_OP_ANY_LANE, m) : m;
    TileOp *op = tile_build_if(&emit->builder, some, &type, 1);
    emit->builder.block = &op->regions[0];
    emit->builder.before = NULL;
    return op;
}

static TileValue *rare_end(Emitter *emit, TileOp *op, TileValue *m, TileValue *rare, TileValue *common) {
    TileValue *value = tile_build_ternary(&emit->builder, TILE_OP_SELECT, m, rare, common);
    tile_build_end(&emit->builder, TILE_OP_YIELD, &value, 1);
    emit->builder.block = &op->regions[1];
    tile_build_end(&emit->builder, TILE_OP_YIELD, &common, 1);
    emit->builder.block = op->block;
    emit->builder.before = op->next;
    return tile_op_result(op, 0);
}

/* ---- the operations of the programs ---- */

typedef TileValue *F, *D, *I, *U, *M;
typedef struct {
    D radians;
    U quarters;
} ANGLE;

#define UNARY(id, x) tile_build_unary(&emit->builder, TILE_OP_##id, x)
#define BINARY(id, x, y) tile_build_binary(&emit->builder, TILE_OP_##id, x, y)
#define TERNARY(id, x, y, z) tile_build_ternary(&emit->builder, TILE_OP_##id, x, y, z)

#define K(number) constant_f32(emit, number)
#define KI(number) constant(emit, TILE_I32, (uint32_t)(number))
#define KD(number) constant_f64(emit, number)
#define KU(number) constant(emit, TILE_U64, number)
#define BITS(x) tile_build_bitcast(&emit->builder, x, TILE_I32)
#define FLOAT(x) tile_build_bitcast(&emit->builder, x, TILE_F32)
#define DBITS(x) tile_build_bitcast(&emit->builder, x, TILE_U64)
#define DOUBLE(x) tile_build_bitcast(&emit->builder, x, TILE_F64)
#define WIDE(x) tile_build_convert(&emit->builder, x, TILE_F64)
#define NARROW(x) tile_build_convert(&emit->builder, x, TILE_F32)

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
        TileOp *rare_op = rare_begin(emit, rare_m, rare_common->type);                                                 \
        rare_end(emit, rare_op, rare_m, (x), rare_common);                                                             \
    })

#define IADD(x, y) BINARY(ADD, x, y)
#define ISUB(x, y) BINARY(SUB, x, y)
#define IAND(x, y) BINARY(AND, x, y)
#define IXOR(x, y) BINARY(XOR, x, y)
#define INOT(x) UNARY(NOT, x)
#define ISHL(x, count) shift(emit, TILE_OP_SHL, x, count)
#define ISHR(x, count) shift(emit, TILE_OP_SHR, x, count)

#define UADD(x, y) BINARY(ADD, x, y)
#define UAND(x, y) BINARY(AND, x, y)
#define UOR(x, y) BINARY(OR, x, y)
#define UXOR(x, y) BINARY(XOR, x, y)
#define UEQ(x, y) BINARY(EQ, x, y)
#define USHL(x, count) shift(emit, TILE_OP_SHL, x, count)
#define USHR(x, count) shift(emit, TILE_OP_SHR, x, count)

#define PARAMETERS(...) __VA_ARGS__

#define PROGRAM(name, R, parameters) static R f32_##name(Emitter *emit, PARAMETERS parameters)
#define CALL(name, ...) f32_##name(emit, __VA_ARGS__)
#include "lang/math_f32.def"
#undef PROGRAM
#undef CALL

/* ---- the pass ---- */

#define ARGUMENTS_1 (emit, x)
#define ARGUMENTS_2 (emit, x, y)

static TileValue *expand_f32(Emitter *emit, TileOpId id, bool approx, TileValue *x, TileValue *y) {
    switch (id) {
#define MATH(id, name, operands, approx_name)                                                                          \
    case TILE_OP_##id:                                                                                                 \
        return approx ? f32_##approx_name ARGUMENTS_##operands : f32_##name ARGUMENTS_##operands;
#include "lang/math.def"
#undef MATH
    default: return NULL;
    }
}

static void expand(TileOp *op, void *state) {
    Emitter *emit = state;
    if (!tile_math_has(op->id)) return;
    TileScalar scalar = tile_op_result(op, 0)->type->scalar;
    if (scalar == TILE_F64) {
        emit->unsupported = op;
        return;
    }
    emit->shape = tile_op_result(op, 0)->type;
    emit->builder = tile_builder_before(emit->builder.module, op);
    TileValue *x = tile_op_operand(op, 0), *y = op->operand_count > 1 ? tile_op_operand(op, 1) : NULL;
    x = tile_build_convert(&emit->builder, x, TILE_F32);
    if (y) y = tile_build_convert(&emit->builder, y, TILE_F32);
    TileValue *result = expand_f32(emit, op->id, tile_op_integer(op, TILE_ATTRIBUTE_APPROX, 0) != 0, x, y);
    result = tile_build_convert(&emit->builder, result, scalar);
    result->name = tile_op_result(op, 0)->name;
    tile_value_replace(tile_op_result(op, 0), result);
    tile_op_erase(op);
    emit->changed = true;
    if (emit->builder.error) emit->error = emit->builder.error;
}

TileResult tile_pass_cpu_math(TilePassContext *context, TileFunc *func) {
    TileModule *module = context->module;
    Emitter e = {
        .builder = {.module = module}, .front = tile_builder_at_end(module, &func->body), .arena = context->scratch};
    e.front.before = func->body.first;
    tile_block_walk(&func->body, expand, &e);
    if (e.unsupported)
        return tile_pass_fail(context, TILE_UNSUPPORTED, e.unsupported, "%s of f64",
                              tile_op_info(e.unsupported->id)->mnemonic);
    if (e.front.error) e.error = e.front.error;
    if (e.error) return tile_pass_fail(context, TILE_INTERNAL, NULL, "%s", e.error);
    return e.changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
