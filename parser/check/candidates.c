/* Candidates for a call by an ambiguous name: the functions of this name in several imports. Notes list each with the
 * reason why it does not fit. */

#include "parser/check/call.h"
#include "parser/check/candidates.h"
#include "parser/check/expression.h"
#include "parser/check/item.h"
#include "parser/check/report.h"

/* Checks the call tentatively; NULL if it is correct, else the first error. */
static const char *why_not_function(TileChecker *c, const TileCandidate *candidate, const TileExpr *call,
                                    const TileExpr *index) {
    TileMeaning function = {.kind = TILE_MEANING_FUNCTION, .item = candidate->item, .ast = candidate->ast};
    if (candidate->item->kind == TILE_ITEM_CONST) return "it is a constant";
    TileDiagnosticsMark mark = tile_diagnostics_mark(c->diagnostics);
    uint32_t errors = c->diagnostics->error_count;
    TileMeaning result = tile_check_function_call(c, call, &function, index);
    const char *reason = NULL;
    if (tile_is_error(&result) || c->diagnostics->error_count != errors) reason = "it does not fit";
    for (size_t i = c->diagnostics->list.count; i-- > mark.count;)
        if (c->diagnostics->list.items[i]->severity == TILE_SEVERITY_ERROR)
            reason = c->diagnostics->list.items[i]->message;
    tile_diagnostics_rewind(c->diagnostics, mark);
    return reason;
}

/* Are the arguments correct by themselves? Errors in them do not depend on the candidate. */
static bool arguments_are_right(TileChecker *c, const TileExpr *call) {
    TileDiagnosticsMark mark = tile_diagnostics_mark(c->diagnostics);
    uint32_t errors = c->diagnostics->error_count;
    bool right = true;
    for (size_t i = 0; i < call->arguments.count; i++) {
        const TileExpr *expr = call->arguments.items[i].value;
        if (expr->kind == TILE_EXPR_SPREAD) continue;
        TileMeaning m = tile_check_expr(c, expr);
        right = right && !tile_is_error(&m);
    }
    right = right && c->diagnostics->error_count == errors;
    tile_diagnostics_rewind(c->diagnostics, mark);
    return right;
}

void tile_fail_ambiguous(TileChecker *c, const char *name, TileSpan span, const TileExpr *call, const TileExpr *index) {
    TileCandidate found[TILE_MAX_CANDIDATES];
    unsigned count = tile_find_candidates(c, name, found);
    const char *reasons[TILE_MAX_CANDIDATES] = {NULL};
    bool tried = arguments_are_right(c, call);
    for (unsigned i = 0; i < count && tried; i++) reasons[i] = why_not_function(c, &found[i], call, index);
    tile_fail_candidates(c, name, span, found, count, tried ? reasons : NULL);
}
