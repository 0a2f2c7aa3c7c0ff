/* Names that say nothing, for tests. */
#ifndef TILE_LOWERING_RENAME_H
#define TILE_LOWERING_RENAME_H

#include "lang/ir.h"

/* Gives each function, parameter and value of the module a random name that follows from the seed. Calls follow their
 * functions. With seed 0 functions and parameters are numbered, and values have no names: modules that differ in names
 * alone are then the same text. `scratch` holds what is needed meanwhile. */
void tile_module_rename(TileModule *module, TileArena *scratch, uint64_t seed);

/* The names of a module's functions and parameters. */
typedef struct TileKeptNames TileKeptNames;
const TileKeptNames *tile_module_keep_names(TileModule *module, TileArena *scratch);
/* Gives them back. A phase that was made meanwhile has its kernel's name and its number, and its parameters those of the
 * kernel's that they stand for; values have no names. */
void tile_module_restore_names(TileModule *module, TileArena *scratch, const TileKeptNames *kept);

#endif
