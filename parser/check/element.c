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

const TileSum *tile_element_of_range(TileChecker *c, const TileRange *range, const TileMeaning *indices) {
    const Element *known = tile_map_get(&c->elements, range);
    if (known) return known->sum;
    const TileSum *element = tile_element_make(c, indices, indices->lowest, indices->highest);
    if (element) tile_map_set(&c->elements, range, tile_map_get(&c->elements, indices->value));
    return element;
}

/* The only product of the sum that is about lanes, or of a number the only one, if it is one symbol, and what is added to it; NULL: there
 * is no such product. */
static const TileProduct *lane_of(TileSumTable *t, const TileSum *element, const TileSum **past) {
    const TileProduct *lane = NULL;
    bool number = !tile_sum_has_lanes(element);
    *past = tile_sum_integer(t, element->constant);
    for (uint32_t i = 0; i < element->count; i++) {
        const TileProduct *product = &element->products[i];
        const TileSum *term = tile_sum_term(t, product);
        if (!number && !tile_sum_has_lanes(term)) {
            *past = tile_sum_add(t, *past, term);
            continue;
        }
        if (lane || product->degree != 1) return NULL;
        lane = product;
    }
    return lane;
}

/* Of floor(a / b) for b >= 0, by what is known of a. */
static const TileSum *known_quotient(TileChecker *c, const TileSymbol *symbol, bool most) {
    TileSumTable *t = &c->sums;
    bool plain = symbol->kind == TILE_SYMBOL_DIV && !tile_sum_has_lanes(symbol->b) && !tile_sum_wraps(t, symbol->b);
    if (!plain || !tile_sum_proves(t, tile_sum_integer(t, 0), symbol->b, NULL)) return NULL;
    const TileSum *a = tile_element_known(c, symbol->a, most);
    return a ? tile_sum_divide(t, a, symbol->b) : NULL;
}

/* What is known of an operand, or itself if it is a number. */
static const TileSum *known_operand(TileChecker *c, const TileSum *operand, bool most) {
    const TileSum *known = tile_element_known(c, operand, most);
    return known || tile_sum_has_lanes(operand) ? known : operand;
}

/* Of a greatest (least) number each operand has to be bounded from above (below), else one. */
static const TileSum *known_extremum(TileChecker *c, const TileSymbol *symbol, bool most) {
    if (symbol->kind != TILE_SYMBOL_MIN && symbol->kind != TILE_SYMBOL_MAX) return NULL;
    const TileSum *a = known_operand(c, symbol->a, most), *b = known_operand(c, symbol->b, most);
    bool both = symbol->kind == (most ? TILE_SYMBOL_MAX : TILE_SYMBOL_MIN);
    if (!a || !b) return both ? NULL : a ? a : b;
    return symbol->kind == TILE_SYMBOL_MAX ? tile_sum_max(&c->sums, a, b) : tile_sum_min(&c->sums, a, b);
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
    const TileSum *part = lane->factor == 1 ? known_quotient(c, lane->symbols[0], most) : NULL;
    if (!part && lane->factor == 1) part = known_extremum(c, lane->symbols[0], most);
    tile_sum_inexact(t);
    const TileSum *sum = part ? tile_sum_add(t, past, part) : NULL;
    return tile_sum_inexact(t) ? NULL : sum;
}
