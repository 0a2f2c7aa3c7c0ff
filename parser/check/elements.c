/* Loads and stores of the elements that an index names: which tensors a place may access, whether a value fits, and the ops. */
#include "parser/check/covered.h"
#include "parser/check/emit.h"
#include "parser/check/expression.h"
#include "parser/check/literal.h"
#include "parser/check/meaning.h"
#include "parser/check/meet.h"
#include "parser/check/overwrite.h"
#include "parser/check/packed_access.h"
#include "parser/check/propose.h"
#include "parser/check/report.h"
#include "parser/check/shape.h"
#include "parser/check/stand_in.h"
#include "parser/check/validity.h"
#include "parser/check/warn.h"

static TileMeaning emit_load(TileChecker *c, const TileAccessed *access) {
    TileAccessOperands operands = {0};
    TileAttribute attributes[2];
    tile_access_push(&operands, access->tensor->value);
    tile_emit_at(c, access->span);
    tile_access_add_operands(c, access, tile_valid_union(c, access->valid, access->chosen), &operands);
    TileMeaning shape = {
        .kind = TILE_MEANING_VALUE, .scalar = (uint8_t)access->tensor->scalar, .rank = (uint8_t)access->rank};
    memcpy(shape.extent, access->extent, sizeof access->extent);
    const TileType *type = tile_meaning_type(c, &shape);
    unsigned count = tile_access_attributes(access, &operands, attributes);
    tile_emit_at(c, access->span);
    TileOp *op =
        tile_build_op(tile_emitter(c), TILE_OP_LOAD_TILE, operands.items, operands.count, attributes, count, &type, 1);
    TileMeaning loaded = tile_value_meaning(c, tile_op_result(op, 0), access->extent, access->valid);
    if (!access->chosen) return loaded;
    TileMeaning zero = tile_bits_meaning(access->tensor->scalar, 0);
    TileValue *filled = tile_emit_filled(c, &loaded, access->chosen, tile_emit_value(c, &zero));
    return tile_value_meaning(c, filled, access->extent, access->valid);
}

TileMeaning tile_access_emit_load(TileChecker *c, const TileAccessed *access) {
    if (!access->tensor->format) return emit_load(c, access);
    TileAccessed bytes;
    tile_packed_bytes(c, access, &bytes);
    TileMeaning loaded = emit_load(c, &bytes);
    return tile_packed_decode(c, access, &loaded);
}

static bool fail_host_access(TileChecker *c, const TileTensor *tensor, TileSpan span) {
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_HOST_ACCESS, span, tensor->name);
    tile_diagnostic_note(c->diagnostics, d, (TileSpan){0},
                         "this is computed before anything runs; an earlier `grid` can store what the "
                         "programs need to a `temp`");
    tile_report(c, d);
    return false;
}

bool tile_access_may_read(TileChecker *c, const TileTensor *tensor, TileSpan span) {
    if (!c->in_grid) return fail_host_access(c, tensor, span);
    if (tensor->access != TILE_ACCESS_OUT || tile_cover_is_whole(c, tensor)) return true;
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_WRITE_ONLY, span, tensor->name);
    tile_diagnostic_note(c->diagnostics, d, tensor->span, "`inout` makes it readable");
    if (c->grid_count > 1)
        tile_diagnostic_note(c->diagnostics, d, (TileSpan){0},
                             "a later grid reads what an earlier one certainly stores whole: `y[m, n] = ..` without a "
                             "condition, where `m` and `n` run over its dimensions");
    tile_propose_inout(c, d, tensor->span, "out");
    tile_report(c, d);
    return false;
}

bool tile_access_may_write(TileChecker *c, const TileTensor *tensor, TileSpan span) {
    if (!tile_may_act(c, span, "a store")) return false;
    if (!c->in_grid) return fail_host_access(c, tensor, span);
    if (tensor->access != TILE_ACCESS_IN) return true;
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_READ_ONLY, span, tensor->name);
    tile_diagnostic_note(c->diagnostics, d, tensor->span, "`out` or `inout` makes it writable");
    tile_propose_inout(c, d, tensor->span, "in");
    tile_report(c, d);
    return false;
}

/* The value, converted to the tensor's element type and the access's shape. */
bool tile_access_fit_value(TileChecker *c, const TileAccessed *access, TileMeaning *value, const TileExpr *expr) {
    TileSpan span = expr->span;
    TileScalar scalar = access->tensor->scalar;
    if (tile_is_literal(value)) *value = tile_literal_as(c, value, scalar, span);
    if (tile_is_error(value)) return false;
    if (value->scalar != scalar) {
        TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_STORE_TYPE, span,
                                          tile_meaning_words(c, value), access->tensor->name, tile_scalar_name(scalar));
        tile_diagnostic_edit(c->diagnostics, d, span, "%s(%s)", tile_scalar_name(scalar), tile_bare_text(c, span));
        tile_report(c, d);
        return false;
    }
    TileMeaning shape = {.kind = TILE_MEANING_VALUE, .scalar = (uint8_t)scalar, .rank = (uint8_t)access->rank};
    memcpy(shape.extent, access->extent, sizeof access->extent);
    bool fits = value->rank == 0 || value->rank == access->rank;
    for (unsigned i = 0; fits && i < value->rank; i++)
        fits = value->extent[i] == access->extent[i] || tile_sum_is_literal(value->extent[i], 1);
    if (!fits) {
        if (value->rank == shape.rank) tile_about_shapes(c, value, &shape);
        TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_SHAPE_MISMATCH, span,
                                          tile_meaning_words(c, &shape), tile_meaning_words(c, value));
        tile_diagnostic_note(c->diagnostics, d, access->span, "it is stored here");
        if (!shape.rank)
            tile_diagnostic_note(c->diagnostics, d, (TileSpan){0},
                                 "`sum(v)`, `max(v)` and other reductions make one value of a tile");
        tile_propose_axis(c, d, value, expr, &shape);
        bool transposed = value->rank == 2 && shape.rank == 2 && value->extent[0] == shape.extent[1] &&
                          value->extent[1] == shape.extent[0];
        if (transposed) tile_diagnostic_edit(c->diagnostics, d, span, "%s.T", tile_operand_text(c, expr));
        tile_report(c, d);
        return false;
    }
    *value = tile_stretch(c, *value, access->rank, access->extent);
    return true;
}

static void emit_store(TileChecker *c, const TileAccessed *target, const TileMeaning *value, const TileValidity *valid) {
    TileAccessOperands operands = {0};
    TileAccessed stored = *target, *access = &stored;
    stored.stores = !tile_valid_masks(c, valid);
    TileAttribute attributes[2];
    tile_emit_at(c, access->span);
    tile_access_push(&operands, access->tensor->value);
    tile_access_push(&operands, tile_emit_value(c, value));
    tile_access_add_operands(c, access, valid, &operands);
    unsigned count = tile_access_attributes(access, &operands, attributes);
    tile_emit_at(c, access->span);
    TileOp *op =
        tile_build_op(tile_emitter(c), TILE_OP_STORE_TILE, operands.items, operands.count, attributes, count, NULL, 0);
    tile_overwrite_note(c, op, access);
}

void tile_access_emit_store(TileChecker *c, const TileAccessed *target, const TileMeaning *value,
                            const TileValidity *valid) {
    if (!target->tensor->format) {
        emit_store(c, target, value, valid);
        return;
    }
    if (!tile_packed_may_store(c, target, valid)) return;
    TileAccessed bytes;
    tile_packed_bytes(c, target, &bytes);
    TileMeaning packed = tile_packed_encode(c, target, &bytes, *value, valid);
    emit_store(c, &bytes, &packed, valid);
}

void tile_access_report_meeting(TileChecker *c, TileSpan span) {
    if (!tile_warns(c, TILE_WARN_LANES_MEET)) return;
    TileDiagnostic *diagnostic = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_LANES_MEET, span);
    tile_diagnostic_note(c->diagnostics, diagnostic, (TileSpan){0},
                         "`sum`, `max` and the like make one value of the lanes; `atomic_add` adds each of them");
    tile_report(c, diagnostic);
}

/* Do all lanes along this dimension certainly access one element? */
static bool lanes_meet(TileChecker *c, const TileAccessed *access, unsigned d) {
    int64_t step;
    switch (access->kinds[d]) {
    case TILE_ACCESS_RANGE: return tile_sum_known(&c->sums, access->ranges[d]->step, &step) && step == 0;
    case TILE_ACCESS_GATHER: return access->agree[d];
    default: return false;
    }
}

/* Warns of lanes that store different values to one element: which of them remains depends on the target. */
static void warn_of_meeting(TileChecker *c, const TileAccessed *access, const TileMeaning *value) {
    for (unsigned d = 0; d < access->tensor->rank; d++) {
        if (access->kinds[d] == TILE_ACCESS_INDEX || !lanes_meet(c, access, d)) continue;
        unsigned axis = (unsigned)access->axis_of[d];
        bool alone = tile_sum_is_literal(access->extent[axis], 1), other = false;
        for (unsigned k = 0; k < access->tensor->rank; k++)
            other = other || (access->kinds[k] == TILE_ACCESS_GATHER && (unsigned)access->axis_of[k] == axis &&
                              !lanes_meet(c, access, k));
        if (alone || other || tile_lanes_agree(value, axis)) continue;
        tile_access_report_meeting(c, access->span);
        return;
    }
}

void tile_access_store(TileChecker *c, const TileAccessed *access, TileMeaning value, const TileExpr *expr, bool skip) {
    const TileValidity *valid = access->valid;
    TileMeaning given = value;
    if (!tile_access_fit_value(c, access, &value, expr)) return;
    warn_of_meeting(c, access, &given);
    if (!tile_access_check_covers(c, access, &value, expr, skip, &valid)) return;
    if (!skip) tile_cover_store(c, access);
    tile_access_emit_store(c, access, &value, valid);
}

bool tile_access_target(TileChecker *c, const TileExpr *target, TileAccessed *access) {
    TileMeaning m = target->kind == TILE_EXPR_INDEX ? tile_check_expr(c, target->a) : tile_check_expr(c, target);
    if (tile_is_error(&m)) return false;
    if (m.kind != TILE_MEANING_TENSOR || target->kind != TILE_EXPR_INDEX) {
        TileDiagnostic *d =
            tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_NOT_ASSIGNABLE, target->span, tile_meaning_words(c, &m));
        if (m.kind == TILE_MEANING_TENSOR) tile_propose_whole(c, d, m.tensor, target->span, true);
        if (m.kind == TILE_MEANING_VALUE && m.rank)
            tile_diagnostic_note(c->diagnostics, d, (TileSpan){0},
                                 "elements of a tile are not addressed one by one: `where(c, a, b)` makes another tile, and a "
                                 "`temp` is stored to");
        tile_report(c, d);
        return false;
    }
    *access = (TileAccessed){.tensor = m.tensor, .span = target->span, .target = true};
    return tile_access_may_write(c, m.tensor, target->span) && tile_access_check_entries(c, target, access);
}

/* An index that consists of `:` only. */
TileExpr *tile_access_whole_index(TileChecker *c, unsigned rank, TileSpan span) {
    TileExpr *index = TILE_NEW(c->arena, TileExpr);
    *index = (TileExpr){.kind = TILE_EXPR_INDEX, .span = span};
    TileExpr *colon = TILE_NEW(c->arena, TileExpr);
    *colon = (TileExpr){.kind = TILE_EXPR_COLON, .span = span};
    for (unsigned d = 0; d < rank; d++) tile_list_push(c->arena, &index->items, colon);
    return index;
}
