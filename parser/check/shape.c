/* Shapes: agreement of extents, broadcasting, and the same elements in another shape. */
#include "parser/check/bounds.h"
#include "parser/check/claim.h"
#include "parser/check/emit.h"
#include "parser/check/propose.h"
#include "parser/check/report.h"
#include "parser/check/shape.h"
#include "parser/check/stand_in.h"
#include "parser/check/validity.h"

TileMeaning tile_stretch(TileChecker *c, TileMeaning m, unsigned rank, const TileSum *const *extent) {
    int64_t numbers[TILE_MAX_TILE_RANK];
    unsigned stretched = 0;
    for (unsigned i = 0; i < rank && m.rank == rank; i++)
        if (m.extent[i] != extent[i]) stretched |= 1u << i;
    if (rank == 0 || (m.rank == rank && !stretched)) return m;
    TileMeaning result = m;
    for (unsigned i = 0; i < rank; i++) {
        result.extent[i] = extent[i];
        numbers[i] = tile_extent_value(c, extent[i]);
    }
    result.rank = (uint8_t)rank;
    const TileType *type = tile_type_tile(c->context, (TileScalar)m.scalar, rank, numbers);
    int64_t known;
    if (m.rank == 0 && m.constant)
        result.value = tile_build_bits(tile_emitter(c), type, m.bits);
    else if (m.rank == 0 && m.sum && tile_sum_known(&c->sums, m.sum, &known))
        result.value = tile_build_integer(tile_emitter(c), type, known);
    else if (m.rank == 0)
        result.value = tile_build_splat(tile_emitter(c), tile_emit_value(c, &m), type);
    else if (m.value->type != type)
        result.value = tile_build_broadcast(tile_emitter(c), m.value, numbers);
    if (result.value != m.value) result.element = NULL;
    if (m.rank == 0) {
        TileBounds bounds = tile_bounds_of(c, &m);
        const TileSum *sum = tile_scalar_sum(c, &m);
        result.element = sum ? tile_sum_code(&c->sums, sum) : NULL; /* what a tile is compared with is the number itself */
        result.lowest = bounds.lowest;
        result.highest = bounds.highest;
    }
    result.constant = false;
    result.sum = NULL;
    result.claim = tile_claim_of_fewer(c, m.claim); /* of lanes that stand at one element, or of none */
    if (stretched) result.valid = tile_valid_stretch(c, m.valid, stretched);
    return result;
}

TileMeaning tile_lift(TileChecker *c, TileMeaning m) {
    return tile_stretch(c, m, c->frame->shape.rank, c->frame->shape.extent);
}

static void report_shapes(TileChecker *c, const TileMeaning *a, const TileExpr *a_expr, const TileMeaning *b,
                          const TileExpr *b_expr, TileSpan span) {
    if (a->rank == b->rank) tile_about_shapes(c, a, b);
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_SHAPE_MISMATCH, span, tile_meaning_words(c, a),
                                      tile_meaning_words(c, b));
    if (a->rank != b->rank)
        tile_diagnostic_note(c->diagnostics, d, (TileSpan){0},
                             "ranks have to be equal: `v[_, :]` adds an axis in front, `v[:, _]` behind");
    tile_propose_axis(c, d, a, a_expr, b);
    tile_propose_axis(c, d, b, b_expr, a);
    tile_report(c, d);
}

bool tile_unify_shapes(TileChecker *c, TileMeaning *operands, unsigned count, TileSpan span) {
    return tile_unify_shapes_of(c, operands, NULL, count, span);
}

bool tile_unify_shapes_of(TileChecker *c, TileMeaning *operands, const TileExpr *const *exprs, unsigned count,
                          TileSpan span) {
    const TileMeaning *tile = NULL;
    const TileExpr *tile_expr = NULL;
    const TileSum *extent[TILE_MAX_TILE_RANK] = {0};
    for (unsigned i = 0; i < count; i++) {
        if (operands[i].rank == 0) continue;
        if (tile && operands[i].rank != tile->rank) {
            report_shapes(c, tile, tile_expr, &operands[i], exprs ? exprs[i] : NULL, span);
            return false;
        }
        for (unsigned k = 0; k < operands[i].rank; k++) {
            const TileSum *e = operands[i].extent[k];
            if (tile && !tile_extents_agree(extent[k], e)) {
                report_shapes(c, tile, tile_expr, &operands[i], exprs ? exprs[i] : NULL, span);
                return false;
            }
            if (!tile || tile_sum_is_literal(extent[k], 1)) extent[k] = e;
        }
        if (tile) continue;
        tile = &operands[i];
        tile_expr = exprs ? exprs[i] : NULL;
    }
    if (!tile) return true;
    unsigned rank = tile->rank;
    for (unsigned i = 0; i < count; i++) operands[i] = tile_stretch(c, operands[i], rank, extent);
    return true;
}

TileMeaning tile_select_meaning(TileChecker *c, TileMeaning *v, TileSpan span) {
    if (!tile_unify_shapes(c, v, 3, span)) return tile_error_meaning();
    TileValue *mask = tile_emit_value(c, &v[0]), *x = tile_emit_value(c, &v[1]), *y = tile_emit_value(c, &v[2]);
    const TileValidity *valid = tile_valid_union(c, tile_valid_union(c, v[0].valid, v[1].valid), v[2].valid);
    TileMeaning m = tile_value_meaning(c, tile_emit_select(c, mask, x, y), v[1].extent, valid);
    TileBounds a = tile_claim_bounds(c, &v[1], v[0].claim, true), b = tile_claim_bounds(c, &v[2], v[0].claim, false);
    return tile_bounded(c, m, tile_bounds_of_either(c, a, b));
}

/* ---- the same elements in another shape ---- */

TileMeaning tile_transpose(TileChecker *c, TileMeaning m, const int64_t *axes) {
    const TileSum *extent[TILE_MAX_TILE_RANK];
    int8_t map[TILE_MAX_TILE_RANK] = {0};
    for (int i = 0; i < m.rank; i++) {
        extent[i] = m.extent[axes[i]];
        map[axes[i]] = (int8_t)i;
    }
    TileValue *value = tile_build_permute(tile_emitter(c), tile_emit_value(c, &m), axes);
    TileMeaning result = tile_value_meaning(c, value, extent, tile_valid_map(c, m.valid, map));
    return tile_bounded(c, result, tile_bounds_of(c, &m));
}

TileMeaning tile_reshape_to(TileChecker *c, TileMeaning m, unsigned rank, const TileSum *const *extent,
                            const int8_t *map) {
    int64_t numbers[TILE_MAX_TILE_RANK];
    for (unsigned i = 0; i < rank; i++) numbers[i] = tile_extent_value(c, extent[i]);
    TileValue *value = tile_build_reshape(tile_emitter(c), tile_emit_value(c, &m), rank, numbers);
    TileMeaning result = tile_value_meaning(c, value, extent, tile_valid_map(c, m.valid, map));
    return tile_bounded(c, result, tile_bounds_of(c, &m));
}
