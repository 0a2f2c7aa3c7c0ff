/* Sets of lanes, by the bounds of an axis. */
#include "cpu/nest.h"

static bool same_bound(const TileValue *a, const TileValue *b) {
    int64_t x, y;
    return a == b || (tile_value_integer(a, &x) && tile_value_integer(b, &y) && x == y);
}

bool nest_atoms_have(const NestAtoms *atoms, const NestAtom *atom) {
    for (unsigned i = 0; i < atoms->count; i++)
        if (same_bound(atoms->items[i].lo, atom->lo) && same_bound(atoms->items[i].hi, atom->hi)) return true;
    return false;
}

bool nest_atoms_equal(const NestAtoms *a, const NestAtoms *b) {
    if (a->count != b->count) return false;
    for (unsigned i = 0; i < a->count; i++)
        if (!nest_atoms_have(b, &a->items[i])) return false;
    return true;
}

void nest_atoms_add(NestAtoms *atoms, TileValue *lo, TileValue *hi, int64_t extent) {
    int64_t low, high;
    if (tile_value_integer(lo, &low) && low <= 0 && tile_value_integer(hi, &high) && high >= extent) return;
    NestAtom atom = {lo, hi};
    if (atoms->count < NEST_ATOMS && !nest_atoms_have(atoms, &atom)) atoms->items[atoms->count++] = atom;
}

void nest_atoms_join(NestAtoms *atoms, const NestAtoms *more, int64_t extent) {
    for (unsigned i = 0; i < more->count; i++) nest_atoms_add(atoms, more->items[i].lo, more->items[i].hi, extent);
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
