/* Random numbers: rand, randn, randint and randperm. Each is a function of a seed and an index. */
#include "parser/check/arguments.h"
#include "parser/check/bounds.h"
#include "parser/check/builtin.h"
#include "parser/check/draw.h"
#include "parser/check/elementwise.h"
#include "parser/check/emit.h"
#include "parser/check/literal.h"
#include "parser/check/meaning.h"
#include "parser/check/operand.h"
#include "parser/check/report.h"
#include "parser/check/shape.h"
#include "parser/check/type.h"
#include "parser/check/validity.h"

/* Integers of any type, widened to i64. */
static bool read_integers(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin, unsigned count, TileMeaning *v) {
    for (unsigned i = 0; i < count; i++) {
        const TileExpr *expr = call->arguments.items[i].value;
        v[i] = tile_as_value(c, tile_check_value(c, expr), expr->span);
        if (tile_is_error(&v[i])) return false;
        if (!tile_scalar_is_int((TileScalar)v[i].scalar))
            return tile_fail(c, BAD_ARGUMENT, expr->span, builtin->name, "integers", tile_meaning_words(c, &v[i])), false;
        v[i] = tile_convert(c, v[i], TILE_I64, expr->span);
    }
    return true;
}

/* `rand` of values of one shape, as f32 or as words. */
static TileValue *emit_rand(TileChecker *c, TileValue *seed, TileValue *index, TileScalar scalar) {
    TileValue *operands[] = {seed, index};
    const TileType *type = tile_type_with_scalar(c->context, index->type, scalar);
    return tile_op_result(tile_build_op(tile_emitter(c), TILE_OP_RAND, operands, 2, NULL, 0, &type, 1), 0);
}

/* The number of seed and index v[0] and v[1]. */
static TileMeaning draw(TileChecker *c, const TileExpr *call, TileMeaning *v, TileScalar scalar) {
    tile_emit_at(c, call->span);
    if (!tile_unify_shapes(c, v, 2, call->span)) return tile_error_meaning();
    TileValue *seed = tile_emit_value(c, &v[0]), *index = tile_emit_value(c, &v[1]);
    const TileValidity *valid = tile_valid_union(c, v[0].valid, v[1].valid);
    tile_emit_at(c, call->span);
    return tile_value_meaning(c, emit_rand(c, seed, index, scalar), v[1].extent, valid);
}

TileMeaning tile_check_rand(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    TileMeaning v[2];
    if (!tile_check_arguments(c, call, 2, 2, NULL) || !read_integers(c, call, builtin, 2, v)) return tile_error_meaning();
    return draw(c, call, v, TILE_F32);
}

/* The inverse of the normal distribution's integral, at the middle of the interval that the number of `rand` begins:
 * sqrt(2) erfinv(2 u - 1 + 2^-24), whose argument is exact. */
TileMeaning tile_check_randn(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    TileMeaning v[2];
    if (!tile_check_arguments(c, call, 2, 2, NULL) || !read_integers(c, call, builtin, 2, v)) return tile_error_meaning();
    TileMeaning u = draw(c, call, v, TILE_F32);
    if (tile_is_error(&u)) return u;
    TileBuilder *b = tile_emitter(c);
    TileValue *x = tile_emit_value(c, &u);
    x = tile_build_binary(b, TILE_OP_MUL, x, tile_build_number(b, x->type, 2));
    x = tile_build_binary(b, TILE_OP_ADD, x, tile_build_number(b, x->type, 0x1p-24 - 1));
    x = tile_build_unary(b, TILE_OP_ERFINV, x);
    x = tile_build_binary(b, TILE_OP_MUL, x, tile_build_number(b, x->type, 0x1.6a09e667f3bcdp+0));
    return tile_value_meaning(c, x, u.extent, u.valid);
}

/* low + word * (high - low) / 2^32. */
static TileValue *scaled(TileChecker *c, TileValue *word, TileValue *low, TileValue *high) {
    TileBuilder *b = tile_emitter(c);
    TileValue *range = tile_build_bitcast(b, tile_build_binary(b, TILE_OP_SUB, high, low), TILE_U64);
    TileValue *product = tile_build_binary(b, TILE_OP_MUL, tile_build_convert(b, word, TILE_U64), range);
    product = tile_build_binary(b, TILE_OP_SHR, product, tile_build_integer(b, product->type, 32));
    return tile_build_binary(b, TILE_OP_ADD, low, tile_build_bitcast(b, product, TILE_I64));
}

/* randint(seed, index, low, high): of the type of the bounds. */
TileMeaning tile_check_randint(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    TileMeaning v[2], bounds[2], all[3];
    const TileExpr *exprs[2];
    if (!tile_check_arguments(c, call, 4, 4, NULL) || !read_integers(c, call, builtin, 2, v)) return tile_error_meaning();
    for (unsigned i = 0; i < 2; i++) {
        exprs[i] = call->arguments.items[2 + i].value;
        bounds[i] = tile_check_value(c, exprs[i]);
        if (tile_is_error(&bounds[i])) return bounds[i];
    }
    if (!tile_unify_scalars(c, bounds, exprs, 2, call->span)) return tile_error_meaning();
    TileScalar scalar = (TileScalar)bounds[0].scalar;
    if (!tile_scalar_is_int(scalar))
        return tile_fail(c, BAD_ARGUMENT, exprs[0]->span, builtin->name, "integers", tile_meaning_words(c, &bounds[0]));
    all[0] = draw(c, call, v, TILE_U32);
    if (tile_is_error(&all[0])) return all[0];
    for (unsigned i = 0; i < 2; i++) all[1 + i] = tile_convert(c, bounds[i], TILE_I64, exprs[i]->span);
    if (!tile_unify_shapes(c, all, 3, call->span)) return tile_error_meaning();
    TileValue *values[3];
    const TileValidity *valid = NULL;
    for (unsigned i = 0; i < 3; i++) {
        values[i] = tile_emit_value(c, &all[i]);
        valid = tile_valid_union(c, valid, all[i].valid);
    }
    tile_emit_at(c, call->span);
    TileMeaning result = tile_value_meaning(c, scaled(c, values[0], values[1], values[2]), all[0].extent, valid);
    return tile_convert(c, result, scalar, call->span);
}

/* randperm[B](seed, index): the order in which the words of seed and index, index + 1, .. sort, which is one of 0 .. B. */
TileMeaning tile_check_randperm(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    TileMeaning v[2], shape = {0};
    if (!tile_check_extents(c, call, &shape) || !tile_check_arguments(c, call, 2, 2, NULL)) return tile_error_meaning();
    if (shape.rank != 1) return tile_fail(c, BAD_RANK, call->a->span, builtin->name, "1", "more extents");
    if (!read_integers(c, call, builtin, 2, v)) return tile_error_meaning();
    for (unsigned i = 0; i < 2; i++)
        if (v[i].rank)
            return tile_fail(c, BAD_RANK, call->arguments.items[i].value->span, builtin->name, "0", tile_meaning_words(c, &v[i]));
    const TileValidity *valid = tile_valid_union(c, v[0].valid, v[1].valid);
    for (unsigned i = 0; i < 2; i++) v[i] = tile_stretch(c, v[i], shape.rank, shape.extent);
    TileValue *seed = tile_emit_value(c, &v[0]), *first = tile_emit_value(c, &v[1]);
    tile_emit_at(c, call->span);
    TileBuilder *b = tile_emitter(c);
    TileValue *lane = tile_build_iota(b, first->type, 0), *index = tile_build_binary(b, TILE_OP_ADD, first, lane);
    TileValue *operands[] = {emit_rand(c, seed, index, TILE_U32), lane};
    TileAttribute axis = {.key = TILE_ATTRIBUTE_AXIS, .integer = 0};
    TileOp *op = tile_build_op(tile_emitter(c), TILE_OP_SORT, operands, 2, &axis, 1, NULL, 2);
    const TileSum *last = tile_sum_subtract(&c->sums, shape.extent[0], tile_sum_integer(&c->sums, 1));
    TileMeaning order = tile_value_meaning(c, tile_op_result(op, 1), shape.extent, valid);
    return tile_bounded(c, order, (TileBounds){tile_sum_integer(&c->sums, 0), last});
}
