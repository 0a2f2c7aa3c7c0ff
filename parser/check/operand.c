/* Expressions that must have a certain kind: a value, an integer, a constant, an extent, a condition. */
#include "parser/check/constant.h"
#include "parser/check/expression.h"
#include "parser/check/lacks.h"
#include "parser/check/literal.h"
#include "parser/check/meaning.h"
#include "parser/check/operand.h"
#include "parser/check/propose.h"
#include "parser/check/report.h"
#include "parser/check/scope.h"
#include "parser/check/stand_in.h"
#include "parser/check/type.h"
#include "parser/check/validity.h"

TileMeaning tile_value_of(TileChecker *c, TileMeaning m, const TileExpr *expr) {
    switch (m.kind) {
    case TILE_MEANING_ERROR:
    case TILE_MEANING_INTEGER:
    case TILE_MEANING_NUMBER:
    case TILE_MEANING_CHOICE:
    case TILE_MEANING_VALUE: return m;
    case TILE_MEANING_TENSOR: {
        TileDiagnostic *d =
            tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_NOT_VALUE, expr->span, tile_meaning_words(c, &m));
        tile_propose_whole(c, d, m.tensor, expr->span, false);
        tile_report(c, d);
        return tile_error_meaning();
    }
    case TILE_MEANING_TUPLE: {
        TileDiagnostic *d =
            tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_NOT_VALUE, expr->span, tile_meaning_words(c, &m));
        tile_diagnostic_note(c->diagnostics, d, (TileSpan){0}, "`let (a, b) = ..` takes a tuple apart");
        tile_report(c, d);
        return tile_error_meaning();
    }
    case TILE_MEANING_RANGE: {
        TileDiagnostic *d =
            tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_NOT_VALUE, expr->span, tile_meaning_words(c, &m));
        tile_diagnostic_edit(c->diagnostics, d, expr->span, "%s.idx", tile_operand_text(c, expr));
        tile_report(c, d);
        return tile_error_meaning();
    }
    default: return tile_fail(c, NOT_VALUE, expr->span, tile_meaning_words(c, &m));
    }
}

TileMeaning tile_check_value(TileChecker *c, const TileExpr *expr) {
    return tile_value_of(c, tile_check_expr(c, expr), expr);
}

TileMeaning tile_check_part(TileChecker *c, const TileExpr *expr) {
    TileMeaning m = tile_check_expr(c, expr);
    return m.kind == TILE_MEANING_TUPLE ? m : tile_value_of(c, m, expr);
}

const TileSum *tile_check_integer(TileChecker *c, const TileExpr *expr, const char *what) {
    return tile_integer_of(c, tile_check_expr(c, expr), expr->span, what, true);
}

const TileSum *tile_integer_of(TileChecker *c, TileMeaning m, TileSpan span, const char *what, bool must_be_valid) {
    if (tile_is_error(&m)) return NULL;
    if (tile_is_literal(&m) && tile_literal_is_integer(&m)) m = tile_literal_as(c, &m, TILE_I64, span);
    if (tile_is_error(&m)) return NULL;
    bool is_integer = m.kind == TILE_MEANING_VALUE && m.rank == 0 && tile_scalar_is_int((TileScalar)m.scalar);
    if (is_integer && m.scalar == TILE_U64 && must_be_valid) {
        TileDiagnostic *d =
            tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_NOT_INTEGER, span, what, "u64, whose numbers an i64 may not have");
        tile_diagnostic_edit(c->diagnostics, d, span, "i64(%s)", tile_span_text(c, span));
        tile_report(c, d);
        return NULL;
    }
    /* Other integers are widened; a u64 of 2^63 and more is a negative index, which is outside, too. */
    if (is_integer && m.scalar != TILE_I64) m = tile_convert(c, m, TILE_I64, span);
    if (!m.sum || m.rank) {
        const char *words = tile_meaning_words(c, &m);
        bool several = m.kind == TILE_MEANING_VALUE && m.rank && tile_scalar_is_int((TileScalar)m.scalar);
        tile_fail(c, NOT_INTEGER, span, what, several ? tile_arena_format(c->arena, "a tile, %s", words) : words);
        return NULL;
    }
    if (must_be_valid && m.valid) m.valid = tile_valid_settled(c, m.valid);
    if (must_be_valid && m.valid) {
        tile_about_atom(c, tile_settled_entry(m.valid)->atom);
        TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_INVALID_SCALAR, span, what);
        tile_note_lacks(c, d, tile_settled_entry(m.valid)->atom);
        tile_diagnostic_edit(c->diagnostics, d, span, "(%s else 0)", tile_span_text(c, span));
        tile_report(c, d);
        return NULL;
    }
    return m.sum;
}

/* A value that is computed from constants only is a constant, whatever the operations. */
static const TileSum *check_known(TileChecker *c, const TileExpr *expr, const char *what) {
    TileOp *last = c->builder.block->last;
    TileScopeMark mark = tile_scope_open(c);
    TileMeaning m = tile_check_expr(c, expr);
    unsigned open = m.open;
    int64_t value;
    bool computed = m.sum && !tile_sum_known(&c->sums, m.sum, &value) && tile_make_constant(c, &m);
    tile_scope_close(c, mark);
    if (computed) { /* nothing of the computation is left */
        tile_open_meaning(c, &m, open);
        while (c->builder.block->last != last) tile_op_erase(c->builder.block->last);
    }
    return tile_integer_of(c, m, expr->span, what, true);
}

const TileSum *tile_check_constant(TileChecker *c, const TileExpr *expr, const char *what, int64_t *value) {
    const TileSum *sum = check_known(c, expr, what);
    if (!sum || tile_sum_known(&c->sums, sum, value)) return sum;
    tile_about_unknown(c, sum);
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_NOT_CONSTANT, expr->span, what);
    tile_propose_constant(c, d, expr);
    tile_report(c, d);
    return NULL;
}

const TileSum *tile_check_extent(TileChecker *c, const TileExpr *expr) {
    const TileSum *sum = check_known(c, expr, "an extent");
    int64_t value;
    if (!sum) return NULL;
    if (!tile_sum_known(&c->sums, sum, &value)) {
        tile_about_unknown(c, sum);
        TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_NOT_CONSTANT, expr->span, "an extent");
        tile_propose_constant(c, d, expr);
        tile_report(c, d);
        return NULL;
    }
    if (value >= 1 && value <= TILE_MAX_TILE_EXTENT) return sum;
    tile_about_sum(c, sum);
    tile_fail(c, BAD_EXTENT, expr->span, (long long)value, (int)TILE_MAX_TILE_EXTENT);
    return NULL;
}

TileMeaning tile_check_condition(TileChecker *c, const TileExpr *expr) {
    TileMeaning m = tile_check_value(c, expr);
    if (tile_is_error(&m)) return m;
    if (m.kind == TILE_MEANING_VALUE && m.rank && !c->frame->lifted) return tile_fail_tile_condition(c, &m, expr->span);
    if (m.kind != TILE_MEANING_VALUE || m.scalar != TILE_BOOL) return tile_fail_not_bool(c, expr, &m);
    if (m.valid && m.rank == 0) m.valid = tile_valid_settled(c, m.valid);
    if (m.valid && m.rank == 0) {
        tile_about_atom(c, tile_settled_entry(m.valid)->atom);
        TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_INVALID_SCALAR, expr->span, "a condition");
        tile_note_lacks(c, d, tile_settled_entry(m.valid)->atom);
        tile_diagnostic_edit(c->diagnostics, d, expr->span, "(%s else false)", tile_span_text(c, expr->span));
        tile_report(c, d);
        return tile_error_meaning();
    }
    return m;
}

TileMeaning tile_fail_tile_condition(TileChecker *c, const TileMeaning *m, TileSpan span) {
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_TILE_CONDITION, span, tile_meaning_words(c, m));
    tile_diagnostic_note(c->diagnostics, d, (TileSpan){0},
                         "`where(c, a, b)` chooses for each element; `any(c)` and `all(c)` make one bool");
    tile_report(c, d);
    return tile_error_meaning();
}
