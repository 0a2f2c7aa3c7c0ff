/* Values that are known at compile time, for messages: of the names in a condition, and the bindings of the instance of
 * a kernel. */
#include "lang/scalar/scalar.h"
#include "parser/check/builtin.h"
#include "parser/check/constant.h"
#include "parser/check/scope.h"
#include "parser/check/values.h"

typedef struct Listing {
    TileText text;
    TILE_LIST(const char *) seen;
} Listing;

static bool is_listed(Listing *listing, TileChecker *c, const char *name) {
    for (size_t i = 0; i < listing->seen.count; i++)
        if (listing->seen.items[i] == name) return true;
    tile_list_push(c->arena, &listing->seen, name);
    return false;
}

/* " 7", " f16", " gelu"; false if the name has no known value. */
static bool add_meaning(TileChecker *c, TileText *text, const TileMeaning *m) {
    uint64_t bits;
    switch ((TileMeaningKind)m->kind) {
    case TILE_MEANING_TYPE: tile_text_add(text, tile_scalar_name((TileScalar)m->scalar)); return true;
    case TILE_MEANING_FUNCTION: tile_text_add(text, m->item->name); return true;
    case TILE_MEANING_BUILTIN: tile_text_add(text, m->builtin->name); return true;
    case TILE_MEANING_VALUE:
        if (!tile_constant_bits(c, m, (TileScalar)m->scalar, &bits)) return false;
        tile_scalar_print(text, (TileScalar)m->scalar, bits);
        return true;
    default: return false;
    }
}

static void add_name(TileChecker *c, Listing *listing, const char *name, const TileMeaning *m) {
    TileText value = {.arena = c->arena};
    if (is_listed(listing, c, name) || !add_meaning(c, &value, m)) return;
    tile_text_format(&listing->text, "%s%s = %s", listing->text.length ? ", " : "", name, tile_text_get(&value));
}

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
    if (bound && !bound->var) add_name(c, state, name, &bound->meaning);
}

const char *tile_known_values(TileChecker *c, const TileExpr *expr) {
    Listing listing = {.text = {.arena = c->arena}};
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

/* ---- the instance ---- */

static void add_choice(TileChecker *c, Listing *listing, const char *name) {
    for (size_t i = 0; i < c->bounds.count; i++) {
        if (c->bounds.items[i].name != name) continue;
        add_name(c, listing, name, &c->bounds.items[i].meaning);
        return;
    }
}

void tile_note_instance(TileChecker *c, TileDiagnostic *d, const TileItem *kernel) {
    Listing listing = {.text = {.arena = c->arena}};
    if (!d || kernel->kind != TILE_ITEM_KERNEL || (!c->options->binding_count && !c->second)) return;
    for (size_t i = 0; i < kernel->generics.count; i++) add_choice(c, &listing, kernel->generics.items[i].name);
    for (size_t i = 0; i < kernel->statics.count; i++) add_choice(c, &listing, kernel->statics.items[i].name);
    for (size_t i = 0; i < kernel->params.count; i++) {
        const TileParam *param = &kernel->params.items[i];
        if (param->type && param->type->is_const) add_choice(c, &listing, param->name);
    }
    if (!listing.text.length) return;
    tile_diagnostic_note(c->diagnostics, d, kernel->name_span, "in the instance `%s[%s]`", kernel->name,
                         tile_text_get(&listing.text));
}
