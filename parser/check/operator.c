/* Binary operators, on the meanings of their operands. */
#include "parser/check/bounds.h"
#include "parser/check/claim.h"
#include "parser/check/debug.h"
#include "parser/check/emit.h"
#include "parser/check/meaning.h"
#include "parser/check/operator.h"
#include "parser/check/range.h"
#include "parser/check/reduce.h"
#include "parser/check/propose.h"
#include "parser/check/report.h"
#include "parser/check/shape.h"
#include "parser/check/type.h"
#include "parser/check/validity.h"

#include <math.h>

static TileOpId binary_op(TileTokenKind op) {
    switch (op) {
    case TILE_TOKEN_PLUS: return TILE_OP_ADD;
    case TILE_TOKEN_MINUS: return TILE_OP_SUB;
    case TILE_TOKEN_STAR: return TILE_OP_MUL;
    case TILE_TOKEN_SLASH: return TILE_OP_DIV;
    case TILE_TOKEN_PERCENT: return TILE_OP_REM;
    case TILE_TOKEN_SHL: return TILE_OP_SHL;
    case TILE_TOKEN_SHR: return TILE_OP_SHR;
    case TILE_TOKEN_AMPERSAND:
    case TILE_TOKEN_AND: return TILE_OP_AND;
    case TILE_TOKEN_BAR:
    case TILE_TOKEN_OR: return TILE_OP_OR;
    case TILE_TOKEN_CARET: return TILE_OP_XOR;
    case TILE_TOKEN_EQUAL: return TILE_OP_EQ;
    case TILE_TOKEN_NOT_EQUAL: return TILE_OP_NE;
    case TILE_TOKEN_LESS: return TILE_OP_LT;
    case TILE_TOKEN_LESS_EQUAL: return TILE_OP_LE;
    case TILE_TOKEN_GREATER: return TILE_OP_GT;
    case TILE_TOKEN_GREATER_EQUAL: return TILE_OP_GE;
    default: return TILE_OP_COUNT;
    }
}

static bool is_comparison(TileTokenKind op) { return op >= TILE_TOKEN_EQUAL && op <= TILE_TOKEN_GREATER_EQUAL; }

static bool compare_numbers(TileTokenKind op, double a, double b) {
    switch (op) {
    case TILE_TOKEN_EQUAL: return a == b;
    case TILE_TOKEN_NOT_EQUAL: return a != b;
    case TILE_TOKEN_LESS: return a < b;
    case TILE_TOKEN_LESS_EQUAL: return a <= b;
    case TILE_TOKEN_GREATER: return a > b;
    default: return a >= b;
    }
}

static bool compare_integers(TileTokenKind op, __int128 a, __int128 b) {
    return compare_numbers(op, a < b ? -1 : a > b, 0);
}

static __int128 floor_divide(__int128 a, __int128 b) {
    if (b == 0) return 0;
    __int128 q = a / b;
    return q - (a % b != 0 && (a < 0) != (b < 0));
}

/* Literals stay literals, exact if they fit into 64 bits. */
static TileMeaning fold_integers(TileChecker *c, TileTokenKind op, __int128 a, __int128 b, const TileExpr *expr) {
    __int128 r = 0;
    bool shift = b >= 0 && b < 64;
    if (is_comparison(op)) return tile_bool_meaning(compare_integers(op, a, b));
    switch (op) {
    case TILE_TOKEN_PLUS: r = a + b; break;
    case TILE_TOKEN_MINUS: r = a - b; break;
    case TILE_TOKEN_STAR: r = a * b; break;
    case TILE_TOKEN_SLASH: r = floor_divide(a, b); break;
    case TILE_TOKEN_PERCENT: r = b ? a - floor_divide(a, b) * b : 0; break;
    case TILE_TOKEN_SHL: r = shift ? (__int128)((unsigned __int128)a << b) : 0; break;
    case TILE_TOKEN_SHR: r = shift ? a >> b : a < 0 ? -1 : 0; break;
    case TILE_TOKEN_AMPERSAND: r = a & b; break;
    case TILE_TOKEN_BAR: r = a | b; break;
    case TILE_TOKEN_CARET: r = a ^ b; break;
    default: return tile_fail(c, BAD_OPERAND, expr->op_span, tile_token_text(op), "an integer");
    }
    if (r > UINT64_MAX || r < INT64_MIN) return tile_fail(c, LITERAL_FIT, expr->span, "any integer type");
    return tile_integer_meaning(r);
}

/* `whole`: both literals can only be integers. */
static TileMeaning fold_literals(TileChecker *c, TileTokenKind op, const TileMeaning *a, const TileMeaning *b,
                                 bool whole, const TileExpr *expr) {
    for (int i = 0; i < 2; i++) {
        const TileMeaning *choice = i ? b : a;
        if (choice->kind != TILE_MEANING_CHOICE) continue;
        TileMeaning v[3] = {choice->items[0]};
        for (int k = 1; k < 3; k++) {
            const TileMeaning *one = &choice->items[k];
            v[k] = fold_literals(c, op, i ? a : one, i ? one : b, whole, expr);
            if (tile_is_error(&v[k])) return v[k];
        }
        return tile_choice_meaning(c, v[0], v[1], v[2]);
    }
    if (whole) return fold_integers(c, op, a->integer, b->integer, expr);
    double x = a->kind == TILE_MEANING_INTEGER ? (double)a->integer : a->number;
    double y = b->kind == TILE_MEANING_INTEGER ? (double)b->integer : b->number;
    if (is_comparison(op)) return tile_bool_meaning(compare_numbers(op, x, y));
    TileMeaning r = {.kind = TILE_MEANING_NUMBER};
    switch (op) {
    case TILE_TOKEN_PLUS: r.number = x + y; break;
    case TILE_TOKEN_MINUS: r.number = x - y; break;
    case TILE_TOKEN_STAR: r.number = x * y; break;
    case TILE_TOKEN_SLASH: r.number = x / y; break;
    case TILE_TOKEN_PERCENT: r.number = x - floor(x / y) * y; break;
    default: return tile_fail(c, BAD_OPERAND, expr->op_span, tile_token_text(op), "a number");
    }
    return r;
}

static bool is_bitwise(TileTokenKind op, TileSymbolKind *kind) {
    switch (op) {
    case TILE_TOKEN_SHL: return *kind = TILE_SYMBOL_SHL, true;
    case TILE_TOKEN_SHR: return *kind = TILE_SYMBOL_SHR, true;
    case TILE_TOKEN_AMPERSAND: return *kind = TILE_SYMBOL_AND, true;
    case TILE_TOKEN_BAR: return *kind = TILE_SYMBOL_OR, true;
    case TILE_TOKEN_CARET: return *kind = TILE_SYMBOL_XOR, true;
    default: return false;
    }
}

/* i64 scalars: sums, if the operation has a normal form. */
static bool apply_sums(TileChecker *c, TileTokenKind op, const TileMeaning *a, const TileMeaning *b, TileMeaning *out) {
    TileSymbolKind kind;
    TileSumTable *t = &c->sums;
    const TileSum *x = a->sum, *y = b->sum;
    switch (op) {
    case TILE_TOKEN_PLUS: *out = tile_sum_meaning(tile_sum_add(t, x, y)); return true;
    case TILE_TOKEN_MINUS: *out = tile_sum_meaning(tile_sum_subtract(t, x, y)); return true;
    case TILE_TOKEN_STAR: *out = tile_sum_meaning(tile_sum_multiply(t, x, y)); return true;
    case TILE_TOKEN_SLASH: *out = tile_sum_meaning(tile_sum_divide(t, x, y)); return true;
    case TILE_TOKEN_PERCENT: *out = tile_sum_meaning(tile_sum_remainder(t, x, y)); return true;
    default: break;
    }
    if (is_bitwise(op, &kind)) {
        const TileSum *bits = tile_sum_bits(t, kind, x, y);
        if (bits) *out = tile_sum_meaning(bits);
        return bits != NULL;
    }
    int64_t u, v;
    if (!is_comparison(op) || !tile_sum_known(t, x, &u) || !tile_sum_known(t, y, &v)) return false;
    *out = tile_bool_meaning(compare_integers(op, u, v));
    return true;
}

/* Operations on few choices of literals give choices; comparisons need a type. */
static bool folds(TileTokenKind op, const TileMeaning *a, const TileMeaning *b) {
    enum { MOST = 64 };
    if (!tile_is_literal(a) || !tile_is_literal(b)) return false;
    bool choice = a->kind == TILE_MEANING_CHOICE || b->kind == TILE_MEANING_CHOICE;
    return !choice || (!is_comparison(op) && tile_literal_count(a) * tile_literal_count(b) <= MOST);
}

static bool takes(TileTokenKind op, TileScalar scalar) {
    bool is_bool = scalar == TILE_BOOL, is_float = tile_scalar_is_float(scalar);
    switch (op) {
    case TILE_TOKEN_AND:
    case TILE_TOKEN_OR: return is_bool;
    case TILE_TOKEN_AMPERSAND:
    case TILE_TOKEN_BAR:
    case TILE_TOKEN_CARET:
    case TILE_TOKEN_EQUAL:
    case TILE_TOKEN_NOT_EQUAL: return is_bool || !is_float || op >= TILE_TOKEN_EQUAL;
    case TILE_TOKEN_SHL:
    case TILE_TOKEN_SHR: return !is_bool && !is_float;
    default: return !is_bool;
    }
}

/* The result, with what follows from the operands: bounds of an integer, claims of a bool. */
static TileMeaning with_knowledge(TileChecker *c, TileTokenKind op, const TileMeaning *operands, TileMeaning result) {
    const TileMeaning *a = &operands[0], *b = &operands[1];
    if (result.scalar != TILE_BOOL) {
        if (result.rank) result.element = tile_element_of_operator(c, op, a, b);
        const TileSum *narrow = result.rank ? NULL : tile_narrow_sum(c, op, a, b);
        if (!narrow) return tile_bounded(c, result, tile_bounds_of_operator(c, op, a, b));
        result.lowest = result.highest = narrow;
    } else {
        const TileClaim *x = tile_claim_within(c, a, &result), *y = tile_claim_within(c, b, &result);
        bool both = op == TILE_TOKEN_AND || op == TILE_TOKEN_AMPERSAND;
        bool either = op == TILE_TOKEN_OR || op == TILE_TOKEN_BAR;
        result.claim = both     ? tile_claim_both(c, x, y)
                       : either ? tile_claim_either(c, x, y)
                                : tile_claim_compare(c, op, a, b, &result);
    }
    return result;
}

/* In a lifted function the side that a constant excludes is checked, too, and what guards it proves there what it would. */
static TileMeaning with_claim(TileChecker *c, TileTokenKind op, const TileMeaning *operands, TileMeaning result) {
    return c->frame->lifted && result.scalar == TILE_BOOL ? with_knowledge(c, op, operands, result) : result;
}

static TileMeaning apply_values(TileChecker *c, TileTokenKind op, TileMeaning *operands, const TileExpr *expr);

/* f8 is computed in f32, and rounded. */
static TileMeaning apply_widened(TileChecker *c, TileTokenKind op, TileMeaning *operands, const TileExpr *expr) {
    TileScalar scalar = (TileScalar)operands[0].scalar;
    tile_emit_at(c, expr->span);
    for (unsigned i = 0; i < 2; i++) operands[i] = tile_convert(c, operands[i], TILE_F32, expr->span);
    TileMeaning result = apply_values(c, op, operands, expr);
    return tile_is_error(&result) || is_comparison(op) ? result : tile_convert(c, result, scalar, expr->span);
}

/* `*` of a matrix and one that it can be multiplied by. */
static void propose_product(TileChecker *c, const TileMeaning *v, const TileExpr *expr) {
    TileDiagnostic *d = tile_reported_last(c, TILE_DIAGNOSTIC_SHAPE_MISMATCH, expr->span);
    if (!d || v[0].rank != 2 || v[1].rank != 2 || !tile_extents_agree(v[0].extent[1], v[1].extent[0])) return;
    tile_diagnostic_note(c->diagnostics, d, (TileSpan){0}, "`*` multiplies by element; `@` is the product of matrices");
    tile_diagnostic_edit(c->diagnostics, d, expr->op_span, "@");
}

static bool stands_apart(const TileExpr *expr) { return expr->kind != TILE_EXPR_BINARY || expr->parenthesised; }

static TileMeaning fail_type(TileChecker *c, TileTokenKind op, const TileMeaning *operand, const TileExpr *expr) {
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_BAD_OPERAND, expr->op_span, tile_token_text(op),
                                      tile_meaning_words(c, operand));
    if (op == TILE_TOKEN_CARET && tile_scalar_is_float((TileScalar)operand->scalar) && expr->b) {
        tile_diagnostic_note(c->diagnostics, d, (TileSpan){0}, "`pow(x, y)` raises a float to the power y");
        if (stands_apart(expr->a) && stands_apart(expr->b)) /* 1 + x ^ 2 means others than the operands of `^` */
            tile_diagnostic_edit(c->diagnostics, d, expr->span, "pow(%s, %s)", tile_bare_text(c, expr->a->span),
                                 tile_bare_text(c, expr->b->span));
    }
    tile_report(c, d);
    return tile_error_meaning();
}

static TileMeaning apply_values(TileChecker *c, TileTokenKind op, TileMeaning *operands, const TileExpr *expr) {
    TileMeaning result;
    const TileValidity *valid;
    if (!takes(op, (TileScalar)operands[0].scalar)) return fail_type(c, op, &operands[0], expr);
    if (tile_is_float8(&operands[0])) return apply_widened(c, op, operands, expr);
    if (operands[0].sum && operands[1].sum) tile_check_traps(c, op, &operands[0], &operands[1], expr);
    if (operands[0].sum && operands[1].sum && apply_sums(c, op, &operands[0], &operands[1], &result)) {
        result.valid = tile_valid_union(c, operands[0].valid, operands[1].valid);
        return with_claim(c, op, operands, result);
    }
    if (operands[0].constant && operands[1].constant && operands[0].scalar == TILE_BOOL) {
        bool x = operands[0].bits, y = operands[1].bits;
        TileTokenKind comparison = op == TILE_TOKEN_CARET ? TILE_TOKEN_NOT_EQUAL : op;
        bool both = op == TILE_TOKEN_AND || op == TILE_TOKEN_AMPERSAND;
        bool truth = is_comparison(comparison) ? compare_integers(comparison, x, y) : both ? x && y : x || y;
        result = tile_bool_meaning(truth);
        result.valid = tile_valid_union(c, operands[0].valid, operands[1].valid);
        return with_claim(c, op, operands, result);
    }
    tile_emit_at(c, expr->span);
    const TileExpr *exprs[] = {expr->a, expr->b};
    if (!tile_unify_shapes_of(c, operands, expr->b ? exprs : NULL, 2, expr->span)) {
        if (op == TILE_TOKEN_STAR) propose_product(c, operands, expr);
        return tile_error_meaning();
    }
    tile_check_traps(c, op, &operands[0], &operands[1], expr);
    valid = tile_valid_union(c, operands[0].valid, operands[1].valid);
    TileValue *x = tile_emit_value(c, &operands[0]), *y = tile_emit_value(c, &operands[1]);
    tile_emit_at(c, expr->span);
    result = tile_value_meaning(c, tile_emit_binary(c, binary_op(op), x, y), operands[0].extent, valid);
    return with_knowledge(c, op, operands, result);
}

/* A product that is an operand of a sum in the same expression is fused by a later pass, which does not know
 * expressions: so it is marked here. */
static void mark_product(TileChecker *c, const TileExpr *expr, const TileMeaning *m) {
    TileOp *op = m->kind == TILE_MEANING_VALUE && m->value ? m->value->op : NULL;
    if (expr && expr->kind == TILE_EXPR_UNARY && expr->op == TILE_TOKEN_MINUS && tile_op_is(op, TILE_OP_NEG)) {
        expr = expr->a;
        op = tile_op_operand(op, 0)->op;
    }
    bool product = expr && expr->kind == TILE_EXPR_BINARY && expr->op == TILE_TOKEN_STAR && tile_op_is(op, TILE_OP_MUL);
    if (product && tile_scalar_is_float((TileScalar)m->scalar))
        tile_op_set_integer(c->module, op, TILE_ATTRIBUTE_FUSE, 1);
}

static TileMeaning fail_operand(TileChecker *c, TileTokenKind op, const TileMeaning *m, TileSpan span) {
    TileDiagnostic *d =
        tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_BAD_OPERAND, span, tile_token_text(op), tile_meaning_words(c, m));
    if (m->kind == TILE_MEANING_TENSOR) tile_propose_whole(c, d, m->tensor, span, false);
    tile_report(c, d);
    return tile_error_meaning();
}

TileMeaning tile_apply_binary(TileChecker *c, TileTokenKind op, TileMeaning a, TileMeaning b, const TileExpr *expr) {
    if (tile_is_error(&a) || tile_is_error(&b)) return tile_error_meaning();
    if (a.kind == TILE_MEANING_RANGE || b.kind == TILE_MEANING_RANGE) return tile_shift_range(c, op, &a, &b, expr);
    const TileExpr *const exprs[] = {expr->a, expr->b};
    if (op == TILE_TOKEN_AT) return tile_apply_dot(c, a, b, NULL, TILE_PRECISION_IEEE, exprs, expr->span);
    if (folds(op, &a, &b))
        return fold_literals(c, op, &a, &b, tile_literal_is_integer(&a) && tile_literal_is_integer(&b), expr);
    TileMeaning operands[] = {a, b};
    if (op == TILE_TOKEN_PLUS || op == TILE_TOKEN_MINUS)
        for (int i = 0; i < 2; i++) mark_product(c, exprs[i], &operands[i]);
    for (int i = 0; i < 2; i++)
        if (!tile_is_literal(&operands[i]) && operands[i].kind != TILE_MEANING_VALUE)
            return fail_operand(c, op, &operands[i], exprs[i] ? exprs[i]->span : expr->span);
    if (!tile_unify_scalars(c, operands, expr->b ? exprs : NULL, 2, expr->span)) return tile_error_meaning();
    return apply_values(c, op, operands, expr);
}
