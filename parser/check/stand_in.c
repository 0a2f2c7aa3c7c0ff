/* Stand-ins for values that are not chosen yet. A file is checked before anything is launched: static dimensions,
 * constants and the arguments of functions have some value in the check, and another one later. What depends on them is
 * open:
 *
 *  sums       by their symbols, their operands and bounds (TileSymbol.open);
 *  scalars    by the names that their expression reads (TileMeaning.open), conditions among them;
 *  code       that is reached by a condition that is open (tile_doubt).
 *
 * An error about something open is withdrawn: other values may have no error, and if they do, the check of that
 * instance reports it. An error that depends on nothing open is an error for all values. */
#include "parser/check/meaning.h"
#include "parser/check/stand_in.h"
#include "parser/check/type.h"

/* ---- values ---- */

unsigned tile_meaning_open(const TileMeaning *m) {
    return m->kind == TILE_MEANING_VALUE ? m->open | tile_sum_open(m->sum) : m->open;
}

void tile_open_meaning(TileChecker *c, TileMeaning *m, unsigned open) {
    bool scalar = tile_is_scalar_value(m) || tile_is_literal(m);
    if (!open || !scalar) return;
    m->open |= (uint8_t)open;
    int64_t number;
    if (m->kind != TILE_MEANING_VALUE || !m->sum || tile_sum_open(m->sum)) return;
    if (!tile_sum_known(&c->sums, m->sum, &number)) return;
    TileSymbol *symbol = tile_symbol_known(&c->sums, tile_arena_format(c->arena, "%lld", (long long)number), number);
    symbol->open = (uint8_t)(open | TILE_OPEN_NAME);
    m->sum = tile_sum_symbol(&c->sums, symbol);
}

/* ---- the subject of a message ---- */

void tile_about_sum(TileChecker *c, const TileSum *sum) { c->about |= (uint8_t)tile_sum_open(sum); }

static const TileValidEntry *open_entry(const TileValidity *valid) {
    for (unsigned i = 0; valid && i < valid->count; i++)
        if (tile_is_open_atom(valid->entries[i].atom)) return &valid->entries[i];
    return NULL;
}

/* A value computed from an argument may be a constant; an induction variable with an argument as bound is not. */
void tile_about_unknown(TileChecker *c, const TileSum *sum) {
    if (tile_sum_open(sum) & TILE_OPEN_NAME) c->about |= TILE_OPEN_NAME;
}

/* In a function that is checked without a call, any value may be computed from its arguments, which may be
 * constants. */
void tile_about_constant(TileChecker *c, const TileMeaning *m) {
    c->about |= (uint8_t)(tile_meaning_open(m) | (c->stands_alone ? TILE_OPEN_NUMBER : 0));
}

bool tile_is_open_atom(const TileAtom *atom) {
    const TileSum *const parts[] = {atom->first, atom->step, atom->dim,   atom->lo,
                                    atom->hi,    atom->size, atom->index, atom->limit};
    unsigned open = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) open |= tile_sum_open(parts[i]);
    return open || (atom->of && tile_is_open_atom(atom->of)) || open_entry(atom->guard);
}

void tile_about_atom(TileChecker *c, const TileAtom *atom) {
    if (tile_is_open_atom(atom)) c->about |= TILE_OPEN_NUMBER;
}

const TileValidEntry *tile_settled_entry(const TileValidity *valid) {
    for (unsigned i = 0; valid && i < valid->count; i++)
        if (!tile_is_open_atom(valid->entries[i].atom)) return &valid->entries[i];
    return valid && valid->count ? &valid->entries[0] : NULL;
}

static unsigned shape_open(const TileMeaning *m) {
    unsigned open = 0;
    for (unsigned i = 0; m->kind == TILE_MEANING_VALUE && i < m->rank; i++) open |= tile_sum_open(m->extent[i]);
    return open;
}

void tile_about_shapes(TileChecker *c, const TileMeaning *a, const TileMeaning *b) {
    unsigned open = shape_open(a) | (b ? shape_open(b) : 0);
    if (open & TILE_OPEN_NAME) c->about |= (uint8_t)open;
}

void tile_about_extents(TileChecker *c, const TileSum *a, const TileSum *b) {
    if ((tile_sum_open(a) | tile_sum_open(b)) & TILE_OPEN_NAME) c->about |= TILE_OPEN_NUMBER;
}

/* ---- messages ---- */

/* Errors in names and in syntax do not depend on values. */
static bool holds_anyway(TileDiagnosticCode code) {
    switch (code) {
    case TILE_DIAGNOSTIC_UNKNOWN_NAME:
    case TILE_DIAGNOSTIC_AMBIGUOUS_NAME:
    case TILE_DIAGNOSTIC_UNKNOWN_TYPE:
    case TILE_DIAGNOSTIC_NAME_TAKEN:
    case TILE_DIAGNOSTIC_NAME_FIXED:
    case TILE_DIAGNOSTIC_NOT_TYPE:
    case TILE_DIAGNOSTIC_NOT_FUNCTION:
    case TILE_DIAGNOSTIC_NOT_TENSOR:
    case TILE_DIAGNOSTIC_NOT_CALLABLE:
    case TILE_DIAGNOSTIC_NUMBER_OF_ARGUMENTS:
    case TILE_DIAGNOSTIC_ARGUMENT_NAME:
    case TILE_DIAGNOSTIC_GIVEN_TWICE:
    case TILE_DIAGNOSTIC_GENERIC_COUNT:
    case TILE_DIAGNOSTIC_RECURSIVE:
    case TILE_DIAGNOSTIC_ENTRY_COUNT:
    case TILE_DIAGNOSTIC_ENTRY_PLACE:
    case TILE_DIAGNOSTIC_NEWAXIS_TENSOR:
    case TILE_DIAGNOSTIC_READ_ONLY:
    case TILE_DIAGNOSTIC_WRITE_ONLY:
    case TILE_DIAGNOSTIC_TILES_PLACE:
    case TILE_DIAGNOSTIC_NOT_VARIABLE:
    case TILE_DIAGNOSTIC_FOR_NAMES:
    case TILE_DIAGNOSTIC_OUTSIDE_LOOP:
    case TILE_DIAGNOSTIC_RUN_PLACE:
    case TILE_DIAGNOSTIC_SPREAD_PLACE:
    case TILE_DIAGNOSTIC_GRID_PLACE:
    case TILE_DIAGNOSTIC_TEMP_PLACE:
    case TILE_DIAGNOSTIC_HOST_STATEMENT:
    case TILE_DIAGNOSTIC_UNSUPPORTED: return true;
    default: return false;
    }
}

unsigned tile_doubt(const TileChecker *c) {
    unsigned doubt = c->doubt;
    for (const TileFrame *frame = c->frame; frame; frame = frame->parent) doubt |= frame->left;
    return doubt;
}

/* A branch that a bool selects exists for one of its values: errors in it are errors, unless that value implies other
 * choices. */
static bool is_in_doubt(const TileChecker *c, TileDiagnosticCode code) {
    unsigned doubt = tile_doubt(c);
    if (!doubt || holds_anyway(code)) return false;
    bool chosen = code == TILE_DIAGNOSTIC_ASSERTION_FAILED || code == TILE_DIAGNOSTIC_REQUIRE_FAILED;
    return doubt & TILE_OPEN_NUMBER || c->type_stand_ins || c->unreal || chosen;
}

bool tile_leave_open(TileChecker *c, const TileDiagnostic *d) {
    bool about = c->about;
    c->about = 0;
    if (!c->representative || !d || d->severity != TILE_SEVERITY_ERROR) return false;
    if (!about && !is_in_doubt(c, d->code)) return false;
    tile_diagnostics_withdraw(c->diagnostics, d);
    c->incomplete = true;
    return true;
}
