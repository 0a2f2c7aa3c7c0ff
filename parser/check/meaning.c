/* Meanings that need no op: sums, constants and literals. */
#include "parser/check/meaning.h"

TileMeaning tile_sum_meaning(const TileSum *sum) {
    return (TileMeaning){.kind = TILE_MEANING_VALUE, .scalar = TILE_I64, .sum = sum};
}

TileMeaning tile_bits_meaning(TileScalar scalar, uint64_t bits) {
    return (TileMeaning){.kind = TILE_MEANING_VALUE, .scalar = (uint8_t)scalar, .constant = true, .bits = bits};
}

TileMeaning tile_bool_meaning(bool truth) { return tile_bits_meaning(TILE_BOOL, truth); }

TileMeaning tile_integer_meaning(__int128 integer) {
    return (TileMeaning){.kind = TILE_MEANING_INTEGER, .integer = integer};
}

/* ---- literals ---- */

TileMeaning tile_choice_meaning(TileChecker *c, TileMeaning condition, TileMeaning a, TileMeaning b) {
    TileMeaning m = {.kind = TILE_MEANING_CHOICE, .count = 3, .items = TILE_NEW_ARRAY(c->arena, TileMeaning, 3)};
    m.items[0] = condition;
    m.items[1] = a;
    m.items[2] = b;
    return m;
}

bool tile_literal_is_integer(const TileMeaning *m) {
    if (m->kind == TILE_MEANING_CHOICE)
        return tile_literal_is_integer(&m->items[1]) && tile_literal_is_integer(&m->items[2]);
    return m->kind == TILE_MEANING_INTEGER;
}

unsigned tile_literal_count(const TileMeaning *m) {
    if (m->kind != TILE_MEANING_CHOICE) return 1;
    return tile_literal_count(&m->items[1]) + tile_literal_count(&m->items[2]);
}

/* ---- constants ---- */

bool tile_constant_bits(TileChecker *c, const TileMeaning *m, TileScalar scalar, uint64_t *bits) {
    int64_t known;
    if (m->kind != TILE_MEANING_VALUE || m->rank || m->scalar != scalar) return false;
    *bits = m->bits;
    if (m->constant) return true;
    if (!m->sum || !tile_sum_known(&c->sums, m->sum, &known)) return false;
    *bits = (uint64_t)known;
    return true;
}
