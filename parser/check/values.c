/* Values that are known at compile time, of the names in a condition; for messages. */
#include "parser/check/listing.h"
#include "parser/check/scope.h"
#include "parser/check/values.h"

/* Calls `visit` for each name in the expression that is a value, a type or a function. */
typedef void (*Visit)(TileChecker *c, void *state, const char *name);

static void visit_names(TileChecker *c, const TileExpr *expr, Visit visit, void *state) {
    if (!expr) return;
    switch ((TileExprKind)expr->kind) {
    case TILE_EXPR_NAME: visit(c, state, expr->name); return;
    case TILE_EXPR_UNARY:
    case TILE_EXPR_FIELD: visit_names(c, expr->a, visit, state); return;
    case TILE_EXPR_BINARY:
        visit_names(c, expr->a, visit, state);
        visit_names(c, expr->b, visit, state);
        return;
    case TILE_EXPR_INDEX: visit_names(c, expr->a, visit, state); /* fall through */
    case TILE_EXPR_TUPLE:
        for (size_t i = 0; i < expr->items.count; i++) visit_names(c, expr->items.items[i], visit, state);
        return;
    case TILE_EXPR_CALL:
        for (size_t i = 0; i < expr->arguments.count; i++) visit_names(c, expr->arguments.items[i].value, visit, state);
        return;
    case TILE_EXPR_IF: visit_names(c, expr->a, visit, state); return;
    case TILE_EXPR_INTEGER:
    case TILE_EXPR_FLOAT:
    case TILE_EXPR_BOOL:
    case TILE_EXPR_STRING:
    case TILE_EXPR_COLON:
    case TILE_EXPR_NEWAXIS:
    case TILE_EXPR_SKIP:
    case TILE_EXPR_SPREAD:
    case TILE_EXPR_RUN: return;
    }
}

static void list_name(TileChecker *c, void *state, const char *name) {
    const TileBound *bound = tile_scope_find(c, name);
    if (bound && !bound->var) tile_listing_add(c, state, name, &bound->meaning);
}

const char *tile_known_values(TileChecker *c, const TileExpr *expr) {
    TileListing listing = {.text = {.arena = c->arena}};
    visit_names(c, expr, list_name, &listing);
    return tile_text_get(&listing.text);
}

void tile_note_values(TileChecker *c, TileDiagnostic *d, const TileExpr *expr) {
    const char *values = tile_known_values(c, expr);
    if (*values) tile_diagnostic_note(c->diagnostics, d, (TileSpan){0}, "here %s", values);
}

/* ---- stand-ins ---- */

/* A name of the signature without a stand-in has its actual value; others may depend on one. */
static void check_chosen(TileChecker *c, void *state, const char *name) {
    bool *chosen = state;
    const TileBound *bound = tile_scope_find(c, name);
    if (bound && !bound->fixed) *chosen = false;
    for (size_t i = 0; i < c->stand_ins.count; i++) *chosen = *chosen && c->stand_ins.items[i] != name;
}

bool tile_is_chosen(TileChecker *c, const TileExpr *expr) {
    bool chosen = true;
    if (c->stand_ins.count == 0) return true;
    if (c->frame->parent) return false;
    visit_names(c, expr, check_chosen, &chosen);
    return chosen;
}
