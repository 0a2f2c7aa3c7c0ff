/* Expressions of each kind. */
#include "parser/check/annotate.h"
#include "parser/check/bounds.h"
#include "parser/check/branch.h"
#include "parser/check/builtin.h"
#include "parser/check/callee.h"
#include "parser/check/claim.h"
#include "parser/check/emit.h"
#include "parser/check/expression.h"
#include "parser/check/index.h"
#include "parser/check/item.h"
#include "parser/check/meaning.h"
#include "parser/check/names.h"
#include "parser/check/operand.h"
#include "parser/check/operator.h"
#include "parser/check/propose.h"
#include "parser/check/range.h"
#include "parser/check/report.h"
#include "parser/check/run.h"
#include "parser/check/sequence.h"
#include "parser/check/shape.h"
#include "parser/check/stand_in.h"
#include "parser/check/type.h"
#include "parser/check/untaken.h"
#include "parser/check/validity.h"
#include "parser/check/warn.h"

#include <string.h>

/* ---- else ---- */

/* The entries of `valid` that `other` has too, or those that it does not have. */
static const TileValidity *part_of(TileChecker *c, const TileValidity *valid, const TileValidity *other, bool common) {
    const TileValidity *part = NULL;
    for (unsigned i = 0; valid && i < valid->count; i++) {
        const TileValidEntry *entry = &valid->entries[i];
        if (tile_valid_has(other, entry) == common)
            part = tile_valid_add(c, part, entry->atom, entry->axes, entry->where);
    }
    return part;
}

/* Where one of two values of a shape is valid: the common atoms hold, and either those of the one only or those of the
 * other only. */
static const TileValidity *valid_either(TileChecker *c, const TileValidity *a, const TileValidity *b,
                                        const TileMeaning *shape, TileSpan where) {
    a = tile_valid_implied(c, a);
    b = tile_valid_implied(c, b);
    const TileValidity *common = part_of(c, a, b, true), *own[] = {part_of(c, a, b, false), part_of(c, b, a, false)};
    if (!own[0] || !own[1]) return common;
    TileValue *ok[2], *mask;
    for (unsigned i = 0; i < 2; i++) ok[i] = tile_emit_valid(c, own[i], shape);
    if (!ok[0] || !ok[1]) return common;
    mask = tile_emit_binary(c, TILE_OP_OR, ok[0], ok[1]);
    int8_t axes[TILE_MAX_TILE_RANK] = {0, 1, 2, 3, 4};
    const int64_t one = 1;
    bool scalar = shape->rank == 0;
    if (scalar) mask = tile_build_splat(tile_emitter(c), mask, tile_type_tile(c->context, TILE_BOOL, 1, &one));
    TileAtom *atom = tile_atom_mask(c, mask, mask, NULL, NULL, where, tile_atom_words(c, own[1]->entries[0].atom));
    const TileValidity *either = tile_valid_add(c, NULL, atom, axes, where);
    return tile_valid_union(c, common, scalar ? tile_valid_stretch(c, either, 1) : either);
}

static TileMeaning apply_else(TileChecker *c, TileMeaning v, TileMeaning fill, const TileExpr *expr) {
    if (tile_is_error(&v) || tile_is_error(&fill)) return tile_error_meaning();
    TileMeaning operands[] = {v, fill};
    const TileExpr *const exprs[] = {expr->a, expr->b};
    if (!tile_unify_scalars(c, operands, exprs, 2, expr->span)) return tile_error_meaning();
    v = operands[0];
    fill = operands[1];
    if (!v.valid) return v;
    tile_emit_at(c, expr->span);
    bool scalar_fill = fill.rank == 0 && v.rank > 0;
    if (!scalar_fill && !tile_unify_shapes(c, operands, 2, expr->span)) return tile_error_meaning();
    v = operands[0];
    if (!scalar_fill) fill = operands[1];
    TileValue *value;
    if (scalar_fill || v.rank == 0) {
        value = tile_emit_filled(c, &v, v.valid, tile_emit_value(c, &fill));
    } else {
        TileValue *ok = tile_emit_valid(c, v.valid, &v);
        value = tile_emit_select(c, ok, tile_emit_value(c, &v), tile_emit_value(c, &fill));
    }
    TileMeaning result =
        tile_value_meaning(c, value, v.extent, valid_either(c, v.valid, fill.valid, &v, expr->b->span));
    if (v.rank == 0 && fill.constant)
        result.claim = fill.bits ? tile_claim_either(c, v.claim, NULL) : tile_claim_both(c, v.claim, NULL);
    if (v.rank && fill.constant) result.claim = tile_claim_filled(v.claim); /* which is about the lanes where `v` is valid */
    return tile_bounded(c, result, tile_bounds_of_either(c, tile_bounds_of(c, &v), tile_bounds_of(c, &fill)));
}

/* `a else 0 + b`: the fill is probably meant to be the number only. */
static void warn_of_fill(TileChecker *c, const TileExpr *expr) {
    const TileExpr *fill = expr->b;
    while (fill->kind == TILE_EXPR_BINARY && fill->op != TILE_TOKEN_ELSE && !fill->parenthesised) fill = fill->a;
    bool number = fill->kind == TILE_EXPR_INTEGER || fill->kind == TILE_EXPR_FLOAT;
    if (fill == expr->b || !number) return;
    TileSpan rest = {expr->span.file, fill->span.end, expr->b->span.end};
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_ELSE_BINDS_LOOSELY, expr->b->span);
    tile_diagnostic_note(c->diagnostics, d, (TileSpan){0}, "if that is meant, put parentheses around it");
    tile_diagnostic_edit(c->diagnostics, d, (TileSpan){expr->span.file, expr->a->span.begin, expr->b->span.end},
                         "(%s else %s)%s", tile_span_text(c, expr->a->span), tile_span_text(c, fill->span),
                         tile_span_text(c, rest));
    tile_report(c, d);
}

static TileMeaning check_else(TileChecker *c, const TileExpr *expr) {
    if (expr->b->kind == TILE_EXPR_SKIP) return tile_fail(c, SKIP_PLACE, expr->b->span);
    TileMeaning v = tile_check_value(c, expr->a);
    if (tile_warns(c, TILE_WARN_ELSE)) warn_of_fill(c, expr);
    return apply_else(c, v, tile_check_value(c, expr->b), expr);
}

/* ---- operators ---- */

static TileMeaning run_right(TileChecker *c, const void *state) { return tile_check_value(c, state); }
static TileMeaning run_truth(TileChecker *c, const void *state) { return tile_bool_meaning(*(const bool *)state); }

/* The left side, a constant, decides: a scalar on the right is not computed. If the right side may be invalid, so may
 * the result. */
static TileMeaning check_decided(TileChecker *c, const TileExpr *expr, TileMeaning left) {
    if (!c->in_grid) return left;
    TileDiagnosticsMark before = tile_diagnostics_mark(c->diagnostics);
    TileMeaning right = tile_check_untaken(c, expr->b);
    if (tile_is_error(&right)) return left;
    if (right.kind != TILE_MEANING_VALUE || right.scalar != TILE_BOOL) return tile_fail_not_bool(c, expr->b, &right);
    if (right.rank) {
        tile_diagnostics_rewind(c->diagnostics, before);
        return tile_apply_binary(c, (TileTokenKind)expr->op, left, tile_check_value(c, expr->b), expr);
    }
    left.valid = tile_valid_union(c, left.valid, right.valid);
    return left;
}

/* May it access a tensor? */
static bool may_access(const TileExpr *expr) {
    if (expr->kind == TILE_EXPR_UNARY) return may_access(expr->a);
    if (expr->kind == TILE_EXPR_BINARY) return may_access(expr->a) || may_access(expr->b);
    return expr->kind == TILE_EXPR_INDEX || expr->kind == TILE_EXPR_CALL || expr->kind == TILE_EXPR_IF;
}

static TileMeaning apply_lazily(TileChecker *c, const TileExpr *expr, TileMeaning left) {
    bool is_or = expr->op == TILE_TOKEN_OR;
    TileBranch right = {.run = run_right, .state = expr->b}, truth = {.run = run_truth, .state = &is_or};
    return tile_join_branches(c, left, is_or ? truth : right, is_or ? right : truth, true, expr->span);
}

/* A right side that is small is computed in any case; unless it accesses an element that exists only where it counts.
 */
static TileMeaning apply_simple(TileChecker *c, const TileExpr *expr, TileMeaning left) {
    TileTokenKind op = (TileTokenKind)expr->op;
    TileDiagnosticsMark before = tile_diagnostics_mark(c->diagnostics);
    TileMeaning right = tile_check_value(c, expr->b);
    bool retry = left.claim && !left.valid && !left.rank && right.kind == TILE_MEANING_VALUE && !right.rank &&
                 right.valid && may_access(expr->b) && !c->frame->lifted && !c->in_combiner;
    if (retry) {
        tile_diagnostics_rewind(c->diagnostics, before);
        TileMeaning m = apply_lazily(c, expr, left);
        if (!tile_is_error(&m)) return m;
        tile_diagnostics_rewind(c->diagnostics, before);
        right = tile_check_value(c, expr->b);
    }
    return tile_apply_binary(c, op, left, right, expr);
}

/* Is it a tile that is computed of what there is? It is not worth a branch, whose results would lie in memory. */
static bool is_plain_tile(TileChecker *c, const TileExpr *expr) {
    if (may_access(expr)) return false;
    TileDiagnosticsMark before = tile_diagnostics_mark(c->diagnostics);
    TileMeaning m = tile_check_untaken(c, expr);
    tile_diagnostics_rewind(c->diagnostics, before);
    return m.kind == TILE_MEANING_VALUE && m.rank;
}

/* Scalars: short-circuit evaluation. */
static TileMeaning check_lazy(TileChecker *c, const TileExpr *expr) {
    TileTokenKind op = (TileTokenKind)expr->op;
    TileMeaning left = tile_check_value(c, expr->a);
    if (tile_is_error(&left)) return left;
    if (left.kind != TILE_MEANING_VALUE || left.scalar != TILE_BOOL) return tile_fail_not_bool(c, expr->a, &left);
    bool is_or = op == TILE_TOKEN_OR;
    if (left.rank == 0 && left.constant && left.bits == is_or) return check_decided(c, expr, left);
    bool simple = left.kind != TILE_MEANING_VALUE || left.rank || left.constant || left.valid ||
                  left.scalar != TILE_BOOL || expr->b->kind == TILE_EXPR_NAME || expr->b->depth <= 2;
    if (simple || c->frame->lifted || c->in_combiner || is_plain_tile(c, expr->b)) return apply_simple(c, expr, left);
    return apply_lazily(c, expr, left);
}

static TileMeaning check_binary(TileChecker *c, const TileExpr *expr) {
    TileTokenKind op = (TileTokenKind)expr->op;
    if (op == TILE_TOKEN_ELSE) return check_else(c, expr);
    if (op == TILE_TOKEN_AND || op == TILE_TOKEN_OR) return check_lazy(c, expr);
    TileDiagnosticsMark before = tile_diagnostics_mark(c->diagnostics);
    TileMeaning a = tile_check_expr(c, expr->a), b = tile_check_expr(c, expr->b);
    if (op == TILE_TOKEN_DOTS) {
        if (tile_is_error(&a) || tile_is_error(&b)) return tile_error_meaning();
        TileMeaning dots = {.kind = TILE_MEANING_DOTS, .count = 2, .items = TILE_NEW_ARRAY(c->arena, TileMeaning, 2)};
        dots.items[0] = a;
        dots.items[1] = b;
        return dots;
    }
    TileMeaning m = tile_apply_binary(c, op, a, b, expr);
    tile_warn_rounding(c, expr, &m, before);
    return m;
}

static TileMeaning negate_literal(TileChecker *c, const TileMeaning *m) {
    TileMeaning r = *m;
    r.number = -r.number;
    r.integer = -r.integer;
    if (m->kind != TILE_MEANING_CHOICE) return r;
    return tile_choice_meaning(c, m->items[0], negate_literal(c, &m->items[1]), negate_literal(c, &m->items[2]));
}

/* `-n`: a range has no negation, and a stride is written after it. */
static TileMeaning fail_negated_range(TileChecker *c, const TileExpr *expr, const TileMeaning *m) {
    TileDiagnostic *d =
        tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_BAD_OPERAND, expr->span, "-", tile_meaning_words(c, m));
    tile_diagnostic_edit(c->diagnostics, d, expr->span, "%s * -1", tile_operand_text(c, expr->a));
    tile_report(c, d);
    return tile_error_meaning();
}

static TileMeaning check_unary(TileChecker *c, const TileExpr *expr) {
    TileTokenKind op = (TileTokenKind)expr->op;
    TileMeaning m = tile_check_expr(c, expr->a);
    if (m.kind == TILE_MEANING_RANGE && op == TILE_TOKEN_MINUS) return fail_negated_range(c, expr, &m);
    m = tile_value_of(c, m, expr->a);
    if (tile_is_error(&m)) return m;
    if (op == TILE_TOKEN_MINUS && tile_is_literal(&m)) return negate_literal(c, &m);
    if (op == TILE_TOKEN_TILDE && m.kind == TILE_MEANING_INTEGER) return m.integer = ~m.integer, m;
    if (m.kind != TILE_MEANING_VALUE)
        return tile_fail(c, BAD_OPERAND, expr->span, tile_token_text(op), tile_meaning_words(c, &m));
    bool is_bool = m.scalar == TILE_BOOL, is_int = tile_scalar_is_int((TileScalar)m.scalar);
    bool ok = op == TILE_TOKEN_BANG ? is_bool : op == TILE_TOKEN_TILDE ? is_int : !is_bool;
    if (!ok) return tile_fail(c, BAD_OPERAND, expr->span, tile_token_text(op), tile_meaning_words(c, &m));
    if (is_bool && m.constant) return m.bits = !m.bits, m.value = NULL, m;
    if (tile_is_float8(&m)) {
        tile_emit_at(c, expr->span);
        TileMeaning wide = tile_convert(c, m, TILE_F32, expr->span);
        TileValue *negative = tile_emit_unary(c, TILE_OP_NEG, tile_emit_value(c, &wide));
        return tile_convert(c, tile_value_meaning(c, negative, m.extent, m.valid), (TileScalar)m.scalar, expr->span);
    }
    if (m.sum && (op == TILE_TOKEN_MINUS || op == TILE_TOKEN_TILDE)) {
        m.sum = tile_sum_subtract(&c->sums, tile_sum_integer(&c->sums, op == TILE_TOKEN_TILDE ? -1 : 0), m.sum);
        m.value = NULL;
        return m;
    }
    TileValue *x = tile_emit_value(c, &m);
    tile_emit_at(c, expr->span);
    TileOpId id = op == TILE_TOKEN_MINUS ? TILE_OP_NEG : TILE_OP_NOT;
    TileMeaning result = tile_value_meaning(c, tile_emit_unary(c, id, x), m.extent, m.valid);
    TileMeaning zero = tile_bits_meaning((TileScalar)m.scalar, 0);
    if (op == TILE_TOKEN_MINUS) return tile_bounded(c, result, tile_bounds_of_operator(c, op, &zero, &m));
    if (is_bool) result.claim = tile_claim_not(c, m.claim);
    return result;
}

/* ---- fields ---- */

static TileMeaning fail_field(TileChecker *c, const TileMeaning *m, const TileExpr *expr) {
    TileDiagnostic *d =
        tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_NO_FIELD, expr->op_span, tile_meaning_words(c, m), expr->name);
    if (strcmp(expr->name, "shape") == 0)
        tile_diagnostic_note(c->diagnostics, d, (TileSpan){0},
                             "the dimensions of a tensor have names, those of its parameter: `x: in f32[M, N]`");
    if (strcmp(expr->name, "dtype") == 0)
        tile_diagnostic_note(c->diagnostics, d, (TileSpan){0},
                             "a kernel over any type names it: `kernel k[T: float](x: in T[N], ..)`");
    if (m->kind == TILE_MEANING_TUPLE) tile_note_parts(c, d);
    tile_report(c, d);
    return tile_error_meaning();
}

static TileMeaning value_field(TileChecker *c, const TileMeaning *m, const TileExpr *expr) {
    if (strcmp(expr->name, "T") != 0) return fail_field(c, m, expr);
    if (m->kind != TILE_MEANING_VALUE || m->rank != 2)
        return tile_fail(c, BAD_RANK, expr->op_span, ".T", "2", tile_meaning_words(c, m));
    tile_emit_at(c, expr->span);
    return tile_transpose(c, *m, (const int64_t[]){1, 0});
}

static TileMeaning unknown_member(TileChecker *c, const TileAst *module, const TileExpr *expr) {
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_UNKNOWN_NAME, expr->op_span, expr->name);
    TileNearest nearest = tile_nearest(expr->name);
    for (size_t i = 0; i < module->items.count; i++)
        if (module->items.items[i]->kind != TILE_ITEM_KERNEL) tile_nearest_try(&nearest, module->items.items[i]->name);
    tile_propose_nearest(c, d, expr->op_span, &nearest);
    if (tile_find_builtin(expr->name)) tile_diagnostic_edit(c->diagnostics, d, expr->span, "%s", expr->name);
    tile_report(c, d);
    return tile_error_meaning();
}

static TileMeaning check_field(TileChecker *c, const TileExpr *expr) {
    if (tile_check_foreign_member(c, expr)) return tile_error_meaning();
    TileMeaning m = tile_check_expr(c, expr->a);
    switch (m.kind) {
    case TILE_MEANING_ERROR: return m;
    case TILE_MEANING_RANGE: return tile_range_field(c, m.range, expr);
    case TILE_MEANING_MODULE: {
        const TileAst *ast = NULL;
        const TileItem *item = tile_find_item(m.ast, expr->name, false, &ast);
        if (!item || item->kind == TILE_ITEM_KERNEL) return unknown_member(c, m.ast, expr);
        if (item->kind == TILE_ITEM_FN) return (TileMeaning){.kind = TILE_MEANING_FUNCTION, .item = item, .ast = ast};
        TileFrame frame = {
            .parent = c->frame, .item = item, .ast = m.ast, .scope_base = c->bounds.count, .call = expr->span};
        TileFrame *caller = c->frame;
        c->frame = &frame;
        TileMeaning value = tile_scope_meaning(c, expr->name, expr->span);
        c->frame = caller;
        return value;
    }
    default: return value_field(c, &m, expr);
    }
}

/* ---- all kinds ---- */

static TileMeaning check_tuple(TileChecker *c, const TileExpr *expr) {
    TileMeaning tuple = {.kind = TILE_MEANING_TUPLE, .count = (uint32_t)expr->items.count};
    tuple.items = TILE_NEW_ARRAY(c->arena, TileMeaning, expr->items.count);
    for (size_t i = 0; i < expr->items.count; i++) {
        tuple.items[i] = tile_check_value(c, expr->items.items[i]);
        if (tile_is_error(&tuple.items[i])) return tuple.items[i];
    }
    return tuple;
}

static TileMeaning check_kind(TileChecker *c, const TileExpr *expr) {
    switch ((TileExprKind)expr->kind) {
    case TILE_EXPR_NAME: return tile_scope_meaning(c, expr->name, expr->span);
    case TILE_EXPR_INTEGER: return tile_integer_meaning(expr->integer);
    case TILE_EXPR_FLOAT: return (TileMeaning){.kind = TILE_MEANING_NUMBER, .number = expr->number};
    case TILE_EXPR_BOOL: return tile_bool_meaning(expr->truth);
    case TILE_EXPR_STRING: return (TileMeaning){.kind = TILE_MEANING_TEXT, .text = expr->name};
    case TILE_EXPR_TUPLE: return check_tuple(c, expr);
    case TILE_EXPR_UNARY: return check_unary(c, expr);
    case TILE_EXPR_BINARY: return check_binary(c, expr);
    case TILE_EXPR_FIELD: return check_field(c, expr);
    case TILE_EXPR_INDEX: return tile_check_index(c, expr);
    case TILE_EXPR_CALL: return tile_check_call(c, expr);
    case TILE_EXPR_IF: return tile_check_if(c, expr, true);
    case TILE_EXPR_COLON:
    case TILE_EXPR_NEWAXIS: return tile_fail(c, ENTRY_PLACE, expr->span);
    case TILE_EXPR_SKIP: return tile_fail(c, SKIP_PLACE, expr->span);
    case TILE_EXPR_SPREAD: return tile_fail(c, SPREAD_PLACE, expr->span, expr->name);
    case TILE_EXPR_RUN: return tile_check_run(c, expr);
    }
    return tile_error_meaning();
}

/* A value is as open as what its expression reads. */
TileMeaning tile_check_expr(TileChecker *c, const TileExpr *expr) {
    uint8_t met = c->met;
    c->met = 0;
    TileMeaning m = check_kind(c, expr);
    tile_open_meaning(c, &m, c->met);
    c->met |= met;
    if (c->annotations) tile_annotate_expr(c, expr, &m);
    return m;
}
