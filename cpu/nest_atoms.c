/* Sets of lanes, by the bounds of an axis. */
#include "cpu/nest.h"

static bool same_bound(const TileValue *a, const TileValue *b) {
    int64_t x, y;
    return a == b || (tile_value_integer(a, &x) && tile_value_integer(b, &y) && x == y);
}

static bool same_bounds(const NestAtom *a, const NestAtom *b) {
    return same_bound(a->lo, b->lo) && same_bound(a->hi, b->hi);
}

bool nest_atoms_have(const NestAtoms *atoms, const NestAtom *atom) {
    for (unsigned i = 0; i < atoms->count; i++)
        if (atoms->items[i].block == atom->block && same_bounds(&atoms->items[i], atom)) return true;
    return false;
}

bool nest_atoms_equal(const NestAtoms *a, const NestAtoms *b) {
    if (a->count != b->count) return false;
    for (unsigned i = 0; i < a->count; i++)
        if (!nest_atoms_have(b, &a->items[i])) return false;
    return true;
}

static bool is_all(const NestAtom *atom, int64_t extent) {
    int64_t low, high;
    return tile_value_integer(atom->lo, &low) && low <= 0 && tile_value_integer(atom->hi, &high) && high >= extent;
}

/* Bounds that are not rounded take the place of the same ones in blocks. */
void nest_atoms_add_atom(NestAtoms *atoms, const NestAtom *atom, int64_t extent) {
    if (is_all(atom, extent)) return;
    for (unsigned i = 0; i < atoms->count; i++) {
        NestAtom *own = &atoms->items[i];
        if (!same_bounds(own, atom)) continue;
        if (atom->block < own->block) own->block = atom->block;
        return;
    }
    if (atoms->count < NEST_ATOMS) atoms->items[atoms->count++] = *atom;
}

void nest_atoms_add(NestAtoms *atoms, TileValue *lo, TileValue *hi, int64_t extent) {
    nest_atoms_add_atom(atoms, &(NestAtom){lo, hi, 1}, extent);
}

void nest_atoms_join(NestAtoms *atoms, const NestAtoms *more, int64_t extent) {
    for (unsigned i = 0; i < more->count; i++) nest_atoms_add_atom(atoms, &more->items[i], extent);
}

void nest_reshape_group(const TileType *from, const TileType *to, unsigned *from_axis, unsigned *to_axis) {
    int64_t lanes = 1, others = 1;
    unsigned rank = tile_type_is_tile(from) ? from->rank : 0;
    do {
        if (lanes <= others && *from_axis < rank)
            lanes *= from->extent[(*from_axis)++];
        else
            others *= to->extent[(*to_axis)++];
    } while (lanes != others);
}

/* The only axis of these with more than one lane; -1: there is none, or there are several. */
static int8_t only_axis(const TileType *type, unsigned first, unsigned end) {
    int8_t found = -1;
    for (unsigned i = first; i < end; i++) {
        if (type->extent[i] == 1) continue;
        if (found >= 0) return -1;
        found = (int8_t)i;
    }
    return found;
}

bool nest_reshape_map(const TileType *from, const TileType *to, int8_t *axis) {
    unsigned i = 0, j = 0, rank = tile_type_is_tile(from) ? from->rank : 0;
    bool all = true;
    while (i < rank) {
        unsigned first = i, other = j;
        nest_reshape_group(from, to, &i, &j);
        int8_t same = only_axis(from, first, i) >= 0 ? only_axis(to, other, j) : -1;
        for (unsigned a = first; a < i; a++) {
            axis[a] = from->extent[a] == 1 ? NEST_ONE_LANE : same >= 0 ? same : NEST_REGROUPED;
            all = all && axis[a] != NEST_REGROUPED;
        }
    }
    return all;
}
