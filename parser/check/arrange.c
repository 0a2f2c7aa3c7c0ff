/* broadcast, shift and valid. */
#include "parser/check/arguments.h"
#include "parser/check/arrange.h"
#include "parser/check/builtin.h"
#include "parser/check/emit.h"
#include "parser/check/literal.h"
#include "parser/check/meaning.h"
#include "parser/check/operand.h"
#include "parser/check/reduce.h"
#include "parser/check/report.h"
#include "parser/check/shape.h"
#include "parser/check/stand_in.h"
#include "parser/check/validity.h"

/* ---- broadcast(v, (A, B)) ---- */

static bool read_shape(TileChecker *c, const TileExpr *expr, TileMeaning *shape) {
    bool tuple = expr->kind == TILE_EXPR_TUPLE;
    size_t rank = tuple ? expr->items.count : 1;
    if (rank > TILE_MAX_TILE_RANK) return tile_fail(c, RANK_LIMIT, expr->span, (int)TILE_MAX_TILE_RANK), false;
    shape->kind = TILE_MEANING_VALUE;
    shape->rank = (uint8_t)rank;
    for (size_t i = 0; i < rank; i++) {
        shape->extent[i] = tile_check_extent(c, tuple ? expr->items.items[i] : expr);
        if (!shape->extent[i]) return false;
    }
    return true;
}

/* Does each axis have the shape's extent, or the literal extent 1? */
static bool stretches_to(const TileMeaning *m, const TileMeaning *shape) {
    if (m->rank == 0) return true;
    bool fits = m->rank == shape->rank;
    for (unsigned i = 0; fits && i < m->rank; i++)
        fits = m->extent[i] == shape->extent[i] || tile_sum_is_literal(m->extent[i], 1);
    return fits;
}

TileMeaning tile_check_broadcast(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    if (!tile_check_arguments(c, call, 2, 2, NULL)) return tile_error_meaning();
    const TileExpr *expr = call->arguments.items[0].value;
    TileMeaning m = tile_as_value(c, tile_check_value(c, expr), expr->span), shape = {0};
    if (tile_is_error(&m) || !read_shape(c, call->arguments.items[1].value, &shape)) return tile_error_meaning();
    shape.scalar = m.scalar;
    tile_emit_at(c, call->span);
    if (stretches_to(&m, &shape)) return tile_stretch(c, m, shape.rank, shape.extent);
    TileMeaning both[] = {m, shape};
    const TileExpr *exprs[] = {expr, NULL};
    bool larger = m.rank == shape.rank;
    for (unsigned i = 0; larger && i < m.rank; i++) larger = tile_extents_agree(m.extent[i], shape.extent[i]);
    if (larger)
        tile_fail(c, SHAPE_MISMATCH, call->span, tile_meaning_words(c, &m), tile_meaning_words(c, &shape));
    else
        tile_unify_shapes_of(c, both, exprs, 2, call->span); /* reports it */
    return tile_error_meaning();
}

/* ---- shift(v, axis, by) ---- */

/* Lanes lo .. hi along the axis, as a bool tile whose other axes have the extent 1. */
static TileValue *lanes_between(TileChecker *c, const TileMeaning *m, unsigned axis, int64_t lo, int64_t hi) {
    int64_t extent[TILE_MAX_TILE_RANK];
    for (unsigned i = 0; i < m->rank; i++) extent[i] = i == axis ? tile_extent_value(c, m->extent[i]) : 1;
    TileBuilder *b = tile_emitter(c);
    const TileType *type = tile_type_tile(c->context, TILE_I64, m->rank, extent);
    TileValue *lane = tile_build_iota(b, type, axis);
    TileValue *above = tile_build_binary(b, TILE_OP_GE, lane, tile_build_integer(b, type, lo));
    TileValue *below = tile_build_binary(b, TILE_OP_LT, lane, tile_build_integer(b, type, hi));
    return tile_build_binary(b, TILE_OP_AND, above, below);
}

static TileMeaning shifted(TileChecker *c, const TileMeaning *m, unsigned axis, int64_t by, TileSpan span) {
    int64_t extent = tile_extent_value(c, m->extent[axis]), split = by > 0 ? extent - by : -by;
    TileBuilder *b = tile_emitter(c);
    TileValue *x = tile_emit_value(c, m);
    TileValue *front = tile_build_slice(b, x, axis, split, extent - split);
    TileValue *rotated = tile_build_cat(b, front, tile_build_slice(b, x, axis, 0, split), axis);
    TileValue *mask = lanes_between(c, m, axis, by > 0 ? by : 0, by > 0 ? extent : extent + by);
    TileAtom *atom = tile_atom_mask(c, mask, mask, NULL, NULL, span, "what `shift` has nothing for");
    int8_t axes[TILE_MAX_TILE_RANK];
    for (unsigned i = 0; i < TILE_MAX_TILE_RANK; i++) axes[i] = i == axis ? (int8_t)axis : -1;
    return tile_value_meaning(c, rotated, m->extent, tile_valid_add(c, m->valid, atom, axes, span));
}

/* Lane i along the axis is lane i - by of v, and invalid where there is none. */
TileMeaning tile_check_shift(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    if (!tile_check_arguments(c, call, 3, 3, NULL)) return tile_error_meaning();
    const TileExpr *expr = call->arguments.items[0].value, *amount = call->arguments.items[2].value;
    TileMeaning m = tile_check_value(c, expr);
    if (tile_is_error(&m)) return m;
    if (m.kind != TILE_MEANING_VALUE || !m.rank)
        return tile_fail(c, BAD_RANK, expr->span, builtin->name, "at least 1", tile_meaning_words(c, &m));
    unsigned axes;
    int64_t by;
    if (!tile_check_axes_of(c, call->arguments.items[1].value, m.rank, &axes)) return tile_error_meaning();
    if (axes & (axes - 1)) return tile_fail_one_axis(c, call, builtin->name);
    const TileSum *sum = tile_check_constant(c, amount, "by how much is shifted", &by);
    if (!sum) return tile_error_meaning();
    unsigned axis = (unsigned)__builtin_ctz(axes);
    int64_t extent = tile_extent_value(c, m.extent[axis]);
    if (by <= -extent || by >= extent) {
        tile_about_sum(c, sum);
        tile_about_sum(c, m.extent[axis]);
        return tile_fail(c, BAD_SHIFT, amount->span, (long long)by, (long long)extent);
    }
    TileMeaning touched = m;
    touched.valid = tile_valid_select(c, m.valid, 1u << axis, false);
    if (touched.valid) return tile_fail_invalid(c, &touched, expr, "the axis along which is shifted");
    tile_emit_at(c, call->span);
    return by ? shifted(c, &m, axis, by, call->span) : m;
}

/* ---- valid(v) ---- */

TileMeaning tile_check_valid(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    if (!tile_check_arguments(c, call, 1, 1, NULL)) return tile_error_meaning();
    const TileExpr *expr = call->arguments.items[0].value;
    TileMeaning m = tile_as_value(c, tile_check_value(c, expr), expr->span);
    if (tile_is_error(&m)) return m;
    tile_emit_at(c, call->span);
    TileValue *where = tile_emit_valid(c, m.valid, &m);
    if (!where) return tile_stretch(c, tile_bool_meaning(true), m.rank, m.extent);
    return tile_value_meaning(c, where, m.extent, NULL);
}
