/* What the number of a `static for` is in its body. A walk over the tree, ahead of any check: whatever it does not know of is more than a
 * place. Names that stand for tensors outside of the loop are taken for these inside; where the body binds such a name anew, its check
 * as a loop fails, or gives what the unrolled one does. */
#include "parser/check/places.h"
#include "parser/check/scope.h"

#include <string.h>

typedef struct Walk {
    TileChecker *c;
    const char *number;
    bool more;  /* the number is more than a place */
    bool added; /* a variable becomes a product that is added to it */
} Walk;

static void walk_expr(Walk *walk, const TileExpr *expr, bool place);

static bool is_tensor(Walk *walk, const TileExpr *expr) {
    const TileBound *bound = expr->kind == TILE_EXPR_NAME ? tile_scope_find(walk->c, expr->name) : NULL;
    return bound && bound->meaning.kind == TILE_MEANING_TENSOR;
}

static bool is_call(const TileExpr *expr, const char *name) {
    return expr->kind == TILE_EXPR_CALL && expr->a->kind == TILE_EXPR_NAME && strcmp(expr->a->name, name) == 0;
}

static bool is_sum(const TileExpr *expr) {
    return expr->op == TILE_TOKEN_PLUS || expr->op == TILE_TOKEN_MINUS || expr->op == TILE_TOKEN_STAR;
}

/* An entry of an index, or a part of it: a range keeps its size wherever it begins. */
static void walk_call(Walk *walk, const TileExpr *expr, bool place) {
    bool begins = place && is_call(expr, "span");
    walk_expr(walk, expr->a, false);
    for (size_t i = 0; i < expr->arguments.count; i++)
        walk_expr(walk, expr->arguments.items[i].value, begins && i == 0 && !expr->arguments.items[i].name);
}

static void walk_expr(Walk *walk, const TileExpr *expr, bool place) {
    switch ((TileExprKind)expr->kind) {
    case TILE_EXPR_NAME: walk->more |= !place && expr->name == walk->number; return;
    case TILE_EXPR_INTEGER:
    case TILE_EXPR_FLOAT:
    case TILE_EXPR_BOOL:
    case TILE_EXPR_STRING:
    case TILE_EXPR_COLON:
    case TILE_EXPR_NEWAXIS: return;
    case TILE_EXPR_TUPLE:
        for (size_t i = 0; i < expr->items.count; i++) walk_expr(walk, expr->items.items[i], false);
        return;
    case TILE_EXPR_UNARY:
    case TILE_EXPR_FIELD: walk_expr(walk, expr->a, false); return;
    case TILE_EXPR_BINARY:
        walk_expr(walk, expr->a, place && is_sum(expr));
        walk_expr(walk, expr->b, place && is_sum(expr));
        return;
    case TILE_EXPR_INDEX:
        walk_expr(walk, expr->a, false);
        for (size_t i = 0; i < expr->items.count; i++) walk_expr(walk, expr->items.items[i], is_tensor(walk, expr->a));
        return;
    case TILE_EXPR_CALL: walk_call(walk, expr, place); return;
    case TILE_EXPR_IF:
    case TILE_EXPR_SKIP:
    case TILE_EXPR_SPREAD:
    case TILE_EXPR_RUN: break;
    }
    walk->more = true;
}

/* `dot`, also of another precision; not `dot[ordered]`, which has one order of its own. */
static bool is_product(const TileExpr *expr) {
    if (expr->kind != TILE_EXPR_CALL || expr->a->kind != TILE_EXPR_INDEX) return is_call(expr, "dot");
    for (size_t i = 0; i < expr->a->items.count; i++) {
        const TileExpr *item = expr->a->items.items[i];
        if (item->kind != TILE_EXPR_NAME || strcmp(item->name, "ordered") == 0) return false;
    }
    return expr->a->a->kind == TILE_EXPR_NAME && strcmp(expr->a->a->name, "dot") == 0;
}

/* `acc = dot(a, b, acc)` */
static bool adds_product(const TileStatement *statement) {
    const TileExpr *target = statement->target, *value = statement->value;
    if (statement->op != TILE_TOKEN_ASSIGN || !is_product(value)) return false;
    for (size_t i = 2; i < value->arguments.count; i++) {
        const TileExpr *sums = value->arguments.items[i].value;
        if (sums->kind == TILE_EXPR_NAME && sums->name == target->name) return true;
    }
    return false;
}

static void walk_sequence(Walk *walk, const TileSequence *sequence) {
    if (sequence->value) walk->more = true;
    for (size_t i = 0; i < sequence->statements.count && !walk->more; i++) {
        const TileStatement *statement = sequence->statements.items[i];
        bool binds = statement->kind == TILE_STATEMENT_LET || statement->kind == TILE_STATEMENT_VAR;
        bool assigns = statement->kind == TILE_STATEMENT_ASSIGN && statement->target->kind == TILE_EXPR_NAME;
        if (!binds && !assigns && statement->kind != TILE_STATEMENT_FOR) walk->more = true;
        if (walk->more) return;
        if (statement->value) walk_expr(walk, statement->value, false);
        if (statement->step) walk_expr(walk, statement->step, false);
        if (assigns) walk->added |= adds_product(statement);
        if (statement->body) walk_sequence(walk, statement->body);
    }
}

bool tile_only_places(TileChecker *c, const TileStatement *statement) {
    Walk walk = {.c = c, .number = statement->names.items[0].name};
    for (const TileLoopFrame *loop = c->frame->loop; loop; loop = loop->parent)
        if (loop->statement->is_ordered) return false;
    walk_sequence(&walk, statement->body);
    return walk.added && !walk.more;
}
