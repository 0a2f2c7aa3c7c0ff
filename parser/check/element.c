/* Elements of tiles. A condition that is a tile tells something of each of its lanes: that is kept as a claim about
 * symbols that stand for any element. `all(c)` turns it into facts; `where` and `keep` use it for the elements that
 * they choose, and so does each side of an `if` in a function that lifts.
 *
 * A symbol is the element of a value of the IR in the lane that a condition is about. Elementwise operations keep lanes,
 * so their results are sums of such symbols; what moves elements makes a value with a symbol of its own. There may be no
 * valid lane at all: so facts about elements tell nothing of other numbers (lang/affine/facts.c). */
#include "parser/check/element.h"
#include "parser/check/emit.h"

#include <string.h>

/* The symbol of a value, and where it stands for its elements. */
typedef struct Element {
    const TileSum *sum;
    const TileValidity *valid;
} Element;

static bool has_entry(const TileValidity *valid, const TileValidEntry *entry) {
    for (unsigned i = 0; valid && i < valid->count; i++)
        if (valid->entries[i].atom == entry->atom &&
            memcmp(valid->entries[i].axes, entry->axes, sizeof entry->axes) == 0)
            return true;
    return false;
}

const TileSum *tile_element_find(const TileChecker *c, const TileMeaning *m) {
    const Element *element = m->rank && m->value ? tile_map_get(&c->elements, m->value) : NULL;
    for (unsigned i = 0; element && element->valid && i < element->valid->count; i++)
        if (!has_entry(m->valid, &element->valid->entries[i])) return NULL;
    return element ? element->sum : NULL;
}

const TileSum *tile_element_make(TileChecker *c, const TileMeaning *m, const TileSum *lowest, const TileSum *highest) {
    if (!m->rank || !m->value || m->scalar == TILE_U64 || tile_map_get(&c->elements, m->value)) return NULL;
    TileSymbol *symbol = tile_value_symbol(c, NULL, m->value);
    symbol->lane = true;
    if (lowest || highest) tile_symbol_bound(&c->sums, symbol, lowest, highest);
    Element *element = TILE_NEW(c->arena, Element);
    *element = (Element){tile_sum_symbol(&c->sums, symbol), m->valid};
    tile_map_set(&c->elements, m->value, element);
    return element->sum;
}

void tile_element_move(TileChecker *c, const TileValue *from, const TileValue *to) {
    Element *element = tile_map_get(&c->elements, from);
    if (element) tile_map_set(&c->elements, to, element);
}

/* The only product of the sum that is about lanes, of one symbol, and what is added to it; NULL: there is no such product. */
static const TileProduct *lane_of(TileSumTable *t, const TileSum *element, const TileSum **past) {
    const TileProduct *lane = NULL;
    *past = tile_sum_integer(t, element->constant);
    for (uint32_t i = 0; i < element->count; i++) {
        const TileProduct *product = &element->products[i];
        const TileSum *term = tile_sum_term(t, product);
        if (!tile_sum_has_lanes(term)) {
            *past = tile_sum_add(t, *past, term);
            continue;
        }
        if (lane || product->degree != 1) return NULL;
        lane = product;
    }
    return lane;
}

const TileSum *tile_element_known(TileChecker *c, const TileSum *element, bool most) {
    TileSumTable *t = &c->sums;
    element = tile_sum_code(t, element); /* where it may wrap, one symbol that facts are about */
    const TileSum *past;
    tile_sum_inexact(t);
    const TileProduct *lane = lane_of(t, element, &past);
    if (!lane || lane->factor == INT64_MIN) return NULL;
    for (size_t i = t->facts.count; i-- > 0;) {
        const TileFact *fact = &t->facts.items[i]; /* fact->factor * symbol >= -rest, and so `times` as much */
        if (fact->symbol != lane->symbols[0] || fact->needs || tile_sum_has_lanes(fact->rest)) continue;
        int64_t times = lane->factor / fact->factor;
        if (lane->factor % fact->factor || (times < 0) != most) continue;
        const TileSum *rest = tile_sum_multiply(t, fact->rest, tile_sum_integer(t, times));
        const TileSum *bound = tile_sum_subtract(t, past, rest);
        return tile_sum_inexact(t) ? NULL : bound;
    }
    return NULL;
}
