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

bool nest_reshape_map(const TileType *from, const TileType *to, int8_t *axis) {
    unsigned next = 0, from_rank = tile_type_is_tile(from) ? from->rank : 0;
    unsigned to_rank = tile_type_is_tile(to) ? to->rank : 0;
    for (unsigned i = 0; i < from_rank; i++) {
        axis[i] = -1;
        if (from->extent[i] == 1) continue;
        while (next < to_rank && to->extent[next] == 1) next++;
        if (next == to_rank || to->extent[next] != from->extent[i]) return false;
        axis[i] = (int8_t)next++;
    }
    return true;
}
