/* Keeps what is found at a place, where annotations are asked for: meanings as they are. annotation.c puts them into
 * words when the item has been checked. */
#include "parser/check/annotate.h"

static const TileBound *find_bound(const TileChecker *c, const char *name) {
    size_t place = (size_t)(uintptr_t)tile_map_get(&c->innermost, name);
    return place > c->frame->scope_base ? c->bounds.items[place - 1] : NULL;
}

/* A generic of the function or kernel that has this type in the instance. */
static const char *find_generic(const TileChecker *c, const TileMeaning *m) {
    const TileItem *item = c->frame->item;
    TileScalar scalar = (TileScalar)(m->kind == TILE_MEANING_TENSOR ? m->tensor->scalar : m->scalar);
    if (m->kind != TILE_MEANING_VALUE && m->kind != TILE_MEANING_TENSOR) return NULL;
    for (size_t i = 0; i < item->generics.count; i++) {
        const TileBound *bound = find_bound(c, item->generics.items[i].name);
        if (bound && bound->meaning.kind == TILE_MEANING_TYPE && bound->meaning.scalar == scalar)
            return item->generics.items[i].name;
    }
    return NULL;
}

static bool is_wanted(const TileChecker *c, TileSpan span, const TileMeaning *m) {
    if (!c->annotations || !c->frame || span.file != c->annotations->file || span.begin >= span.end) return false;
    return m->kind != TILE_MEANING_ERROR && m->kind != TILE_MEANING_NOTHING;
}

/* The work of the op that made the value, which is known for loads, products and functions of many cycles. */
static const char *cost_of(TileChecker *c, const TileMeaning *m) {
    const TileOp *op = m->kind == TILE_MEANING_VALUE && m->value ? m->value->op : NULL;
    if (!op || m->value->type->kind != TILE_TYPE_TILE) return NULL;
    const TileType *type = m->value->type;
    unsigned long long lanes = 1;
    for (unsigned i = 0; i < type->rank; i++) lanes *= (unsigned long long)type->extent[i];
    if (tile_op_is(op, TILE_OP_LOAD_TILE))
        return tile_arena_format(c->arena, "reads at most %llu bytes", lanes * tile_scalar_bytes(type->scalar));
    if (tile_op_is(op, TILE_OP_DOT)) {
        const TileType *a = op->operands[0].value->type;
        unsigned long long depth = (unsigned long long)a->extent[a->rank - 1];
        return tile_arena_format(c->arena, "%llu FLOP (2 for each of %llu elements and %llu terms)", 2 * lanes * depth,
                                 lanes, depth);
    }
    const TileOpInfo *info = tile_op_info(op->id);
    bool costly = info->traits & TILE_TRAIT_COSTLY && info->traits & TILE_TRAIT_FUNCTION;
    return costly ? tile_arena_format(c->arena, "%llu times `%s`", lanes, info->mnemonic) : NULL;
}

void tile_annotate_expr(TileChecker *c, const TileExpr *expr, const TileMeaning *m) {
    if (!is_wanted(c, expr->span, m)) return;
    TileFinding finding = {.span = expr->span, .meaning = *m, .candidate = find_generic(c, m)};
    if (expr->kind == TILE_EXPR_NAME) {
        const TileBound *bound = find_bound(c, expr->name);
        finding.bound = bound ? bound->span : m->kind == TILE_MEANING_FUNCTION ? m->item->name_span : (TileSpan){0};
    } else {
        finding.cost = cost_of(c, m);
    }
    tile_list_push(c->arena, &c->findings, finding);
}

void tile_annotate_binding(TileChecker *c, TileSpan span, const TileMeaning *m, bool is_var) {
    if (!is_wanted(c, span, m)) return;
    tile_list_push(c->arena, &c->findings,
                   (TileFinding){.span = span,
                                 .meaning = *m,
                                 .binds = true,
                                 .is_var = is_var,
                                 .candidate = find_generic(c, m)});
}
