/* Leaving a sequence early, by `return`, `break` or `continue`: which statements may, and the flags that then guard the
 * statements behind them. */
#include "parser/check/claim.h"
#include "parser/check/emit.h"
#include "parser/check/leave.h"
#include "parser/check/meaning.h"
#include "parser/check/report.h"
#include "parser/check/shape.h"
#include "parser/check/validity.h"

typedef struct Search {
    bool loops;   /* break and continue are counted */
    bool returns; /* return is counted */
} Search;

static bool sequence_has(const TileSequence *sequence, Search search);

static bool expr_has(const TileExpr *expr, Search search) {
    if (expr->kind != TILE_EXPR_IF) return false;
    return (expr->then && sequence_has(expr->then, search)) ||
           (expr->otherwise && sequence_has(expr->otherwise, search));
}

static bool statement_has(const TileStatement *statement, Search search) {
    switch (statement->kind) {
    case TILE_STATEMENT_BREAK:
    case TILE_STATEMENT_CONTINUE: return search.loops;
    case TILE_STATEMENT_RETURN: return search.returns;
    case TILE_STATEMENT_EXPR: return expr_has(statement->value, search);
    default: break;
    }
    search.loops = false;
    return statement->body && sequence_has(statement->body, search);
}

static bool sequence_has(const TileSequence *sequence, Search search) {
    for (size_t i = 0; i < sequence->statements.count; i++)
        if (statement_has(sequence->statements.items[i], search)) return true;
    return sequence->value && expr_has(sequence->value, search);
}

bool tile_statement_returns(const TileStatement *statement) {
    return statement_has(statement, (Search){.returns = true});
}
bool tile_expr_leaves(const TileExpr *expr) { return expr_has(expr, (Search){true, true}); }
bool tile_expr_returns(const TileExpr *expr) { return expr_has(expr, (Search){.returns = true}); }
bool tile_sequence_returns(const TileSequence *sequence) { return sequence_has(sequence, (Search){.returns = true}); }
bool tile_sequence_leaves(const TileSequence *sequence) { return sequence_has(sequence, (Search){true, true}); }
bool tile_statement_leaves(const TileStatement *statement) { return statement_has(statement, (Search){true, true}); }

static bool has_break_below(const TileSequence *sequence);

static bool expr_has_break(const TileExpr *expr) {
    if (expr->kind != TILE_EXPR_IF) return false;
    return (expr->then && has_break_below(expr->then)) || (expr->otherwise && has_break_below(expr->otherwise));
}

static bool has_break_below(const TileSequence *sequence) {
    for (size_t i = 0; i < sequence->statements.count; i++) {
        const TileStatement *statement = sequence->statements.items[i];
        if (statement->kind == TILE_STATEMENT_BREAK) return true;
        if (statement->kind == TILE_STATEMENT_EXPR && expr_has_break(statement->value)) return true;
    }
    return sequence->value && expr_has_break(sequence->value);
}

bool tile_sequence_breaks(const TileSequence *sequence) { return has_break_below(sequence); }

/* ---- which sequences end in a return ---- */

/* Both sides of an `if` return, so code after it is not reached. */
static bool expr_ends(const TileExpr *expr) {
    return expr && expr->kind == TILE_EXPR_IF && expr->otherwise && tile_sequence_ends(expr->then) &&
           tile_sequence_ends(expr->otherwise);
}

bool tile_sequence_ends(const TileSequence *sequence) {
    for (size_t i = 0; i < sequence->statements.count; i++) {
        const TileStatement *statement = sequence->statements.items[i];
        if (statement->kind == TILE_STATEMENT_RETURN) return true;
        if (statement->kind == TILE_STATEMENT_EXPR && expr_ends(statement->value)) return true;
    }
    return expr_ends(sequence->value);
}

/* ---- results ---- */

const TileTypeExpr *tile_result_type(const TileTypeExpr *type, unsigned part) {
    if (!type || type->kind != TILE_TYPE_EXPR_TUPLE) return type;
    return type->items.items[part];
}

/* ---- flags ---- */

TileMeaning tile_none_set(TileChecker *c, TileVar *const *flags, unsigned count, TileSpan span) {
    TileMeaning none = tile_bool_meaning(true);
    for (unsigned i = 0; i < count; i++) {
        if (!flags[i]) continue;
        TileMeaning flag = flags[i]->now;
        if (flag.constant && !flag.bits) continue;
        if (flag.constant) return tile_bool_meaning(false);
        tile_emit_at(c, span);
        TileMeaning both[] = {none, flag};
        both[1].value = tile_emit_unary(c, TILE_OP_NOT, tile_emit_value(c, &flag));
        if (!none.constant && !tile_unify_shapes(c, both, 2, span)) return tile_error_meaning();
        TileValue *clear =
            none.constant ? both[1].value : tile_emit_binary(c, TILE_OP_AND, both[0].value, both[1].value);
        TileMeaning was = none;
        none = tile_value_meaning(c, clear, both[1].extent, tile_valid_union(c, none.valid, flag.valid));
        const TileClaim *clear_by = tile_claim_not(c, tile_claim_within(c, &flag, &none));
        none.claim = tile_claim_both(c, tile_claim_within(c, &was, &none), clear_by);
    }
    return none;
}

bool tile_any_undecided(TileVar *const *flags, unsigned count) {
    for (unsigned i = 0; i < count; i++)
        if (flags[i] && flags[i]->undecided) return true;
    return false;
}
