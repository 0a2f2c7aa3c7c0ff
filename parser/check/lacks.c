/* What a proof that an index is inside of its dimension lacked, for messages. Facts hold in a scope, and a message may
 * come behind it: so what is known is kept where the access is. */
#include "parser/check/lacks.h"
#include "parser/check/report.h"

/* Can it be written as users would, without values that have no name? */
static bool is_named(const TileSum *sum) {
    for (uint32_t i = 0; sum && i < sum->count; i++)
        for (uint32_t k = 0; k < sum->products[i].degree; k++) {
            const TileSymbol *symbol = sum->products[i].symbols[k];
            if (symbol->a ? !is_named(symbol->a) || !is_named(symbol->b) : !symbol->name) return false;
        }
    return true;
}

/* The last symbol of the sum that stands alone in its product with the factor 1. */
static const TileSymbol *moving_symbol(const TileSum *sum) {
    const TileSymbol *found = NULL;
    for (uint32_t i = 0; i < sum->count; i++) {
        const TileProduct *product = &sum->products[i];
        bool alone = product->degree == 1 && product->factor == 1 && (!found || product->symbols[0]->id > found->id);
        if (alone) found = product->symbols[0];
    }
    return found;
}

/* A known bound of the sum, which is another sum with names, or NULL. */
static const TileSum *known_bound(TileChecker *c, const TileSum *sum, bool upper) {
    TileSumTable *t = &c->sums;
    const TileSymbol *symbol = moving_symbol(sum);
    const TileSum *bound = NULL;
    if (!symbol) return NULL;
    for (size_t i = t->facts.count; i-- > 0 && !bound;) {
        const TileFact *fact = &t->facts.items[i];
        if (fact->symbol != symbol || fact->factor != (upper ? -1 : 1)) continue;
        bound = upper ? fact->rest : tile_sum_subtract(t, tile_sum_integer(t, 0), fact->rest);
        if (!is_named(bound)) bound = NULL;
    }
    if (!bound && (upper ? symbol->upper_count : symbol->lower_count))
        bound = upper ? symbol->upper[0] : symbol->lower[0];
    if (!bound || !is_named(bound)) return NULL;
    const TileSum *rest = tile_sum_subtract(t, sum, tile_sum_symbol(t, (TileSymbol *)symbol));
    bound = tile_sum_add(t, bound, rest);
    bool plain = bound->count || (bound->constant > INT32_MIN && bound->constant < INT32_MAX);
    return plain && is_named(bound) ? bound : NULL;
}

/* A product that a launch can compute and that may leave 64 bits, among the operands that the sum is made of. */
static const TileSum *wide_product(TileChecker *c, const TileSum *sum) {
    TileSumTable *t = &c->sums;
    for (uint32_t i = 0; sum && i < sum->count; i++) {
        const TileProduct *product = &sum->products[i];
        const TileSum *term = product->degree > 1 ? tile_sum_product(t, product) : NULL;
        if (term && tile_sum_is_host(term) && is_named(term) && tile_sum_may_exceed(t, term)) return term;
        for (uint32_t k = 0; k < product->degree; k++) {
            const TileSum *found = wide_product(c, product->symbols[k]->a);
            if (!found) found = wide_product(c, product->symbols[k]->b);
            if (!found && product->symbols[k]->lane && product->symbols[k]->upper_count) found = wide_product(c, product->symbols[k]->upper[0]);
            if (found) return found;
        }
    }
    return NULL;
}

void tile_keep_known(TileChecker *c, TileAtom *atom, const TileSum *lowest, const TileSum *highest) {
    TileSumTable *t = &c->sums;
    const TileSum *zero = tile_sum_integer(t, 0), *last = tile_sum_subtract(t, atom->dim, tile_sum_integer(t, 1));
    atom->lowest = lowest;
    atom->highest = highest;
    atom->above = lowest && tile_sum_proves(t, zero, lowest, NULL);
    atom->below = highest && tile_sum_proves(t, highest, last, NULL);
    atom->wraps = (lowest && tile_sum_may_fall(t, lowest)) || (highest && tile_sum_may_exceed(t, highest));
    if (!atom->above || !atom->below) atom->product = wide_product(c, highest);
    if (!atom->product && !atom->above) atom->product = wide_product(c, lowest);
    if (atom->wraps) return;
    if (lowest && !atom->above) atom->least = known_bound(c, tile_sum_resolve(t, lowest), false);
    if (highest && !atom->below) atom->most = known_bound(c, tile_sum_resolve(t, highest), true);
}

/* ---- the note ---- */

static void add_part(TileText *text, const char *before, const char *left, const char *relation, const char *right) {
    tile_text_format(text, "%s`%s %s %s`", text->length ? " and " : before, left, relation, right);
}

/* `index < N` for `index <= N - 1`. */
static void add_most(TileChecker *c, TileText *known, const char *index, const TileSum *most) {
    const TileSum *past = tile_sum_add(&c->sums, most, tile_sum_integer(&c->sums, 1));
    bool less = most->count && most->constant == -1;
    add_part(known, "", index, less ? "<" : "<=", tile_sum_words(c, less ? past : most));
}

/* A range: which lanes are inside follows from its first and its last index. */
static void note_range(TileChecker *c, TileDiagnostic *d, const TileAtom *atom) {
    TileText text = {.arena = c->arena};
    TileSumTable *t = &c->sums;
    const TileSum *past = atom->highest ? tile_sum_add(t, atom->highest, tile_sum_integer(t, 1)) : NULL;
    bool low = atom->lowest && !atom->above && !atom->wraps && tile_sum_resolve(t, atom->lowest)->count &&
               is_named(atom->lowest);
    bool high = past && !atom->below && !atom->wraps &&
                tile_sum_resolve(t, tile_sum_subtract(t, atom->dim, past))->count && is_named(past) &&
                is_named(atom->dim);
    if (low) add_part(&text, "needs ", tile_sum_words(c, atom->lowest), ">=", "0");
    if (high) add_part(&text, "needs ", tile_sum_words(c, past), "<=", tile_sum_words(c, atom->dim));
    if (low || high) tile_diagnostic_note(c->diagnostics, d, (TileSpan){0}, "%s", tile_text_get(&text));
}

void tile_note_lacks(TileChecker *c, TileDiagnostic *d, const TileAtom *atom) {
    if (atom->of) atom = atom->of;
    if (!atom->dim || !d) return;
    if (atom->kind == TILE_ATOM_INTERVAL) {
        note_range(c, d, atom);
        return;
    }
    const char *index = tile_span_text(c, atom->span);
    TileText needs = {.arena = c->arena}, known = {.arena = c->arena};
    if (atom->product)
        tile_diagnostic_note(c->diagnostics, d, (TileSpan){0},
                             "`%s` may leave the 64 bits of an i64; where a tensor has it as a dimension, the launch checks that it does not",
                             tile_sum_words(c, atom->product));
    if (atom->wraps && !atom->product && (atom->above || atom->below))
        tile_diagnostic_note(c->diagnostics, d, (TileSpan){0}, "`%s` may leave the 64 bits of an i64, and wraps there",
                             index);
    if (atom->wraps) return;
    if (!atom->above) add_part(&needs, "", index, ">=", "0");
    if (!atom->below) add_part(&needs, "", index, "<", tile_sum_words(c, atom->dim));
    if (atom->above) add_part(&known, "", index, ">=", "0");
    if (atom->below) add_part(&known, "", index, "<", tile_sum_words(c, atom->dim));
    if (atom->least) add_part(&known, "", index, ">=", tile_sum_words(c, atom->least));
    if (atom->most) add_most(c, &known, index, atom->most);
    if (!needs.length || !known.length) return;
    tile_diagnostic_note(c->diagnostics, d, (TileSpan){0}, "needs %s; known: %s", tile_text_get(&needs),
                         tile_text_get(&known));
}
