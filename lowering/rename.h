/* Names that say nothing, for tests. */
#ifndef TILE_LOWERING_RENAME_H
#define TILE_LOWERING_RENAME_H

#include "lang/ir.h"

/* Gives each function, parameter and value of the module a random name that follows from the seed. Calls follow their
 * functions. With seed 0 functions and parameters are numbered, and values have no names: modules that differ in names
 * alone are then the same text. `scratch` holds what is needed meanwhile. */
void tile_module_rename(TileModule *module, TileArena *scratch, uint64_t seed);

#endif
