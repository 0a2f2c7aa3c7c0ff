/* Names that say nothing, for tests. */
#ifndef TILE_LOWERING_RENAME_H
#define TILE_LOWERING_RENAME_H

#include "lang/ir/ir.h"

/* The names from before. */
typedef struct TileKeptNames TileKeptNames;
TileKeptNames *tile_module_keep_names(TileModule *module, TileArena *scratch);

/* Gives each function, parameter and value of the module a random name that follows from the seed. Calls follow their
 * functions. With seed 0 functions and parameters are numbered, and values have no names: modules that differ in names
 * alone are then the same text. `scratch` holds what is needed meanwhile; `kept` (or NULL) learns which value is which. */
void tile_module_rename(TileModule *module, TileArena *scratch, uint64_t seed, TileKeptNames *kept);
/* Gives the names back. A phase that was made meanwhile has its kernel's name and its number, and its parameters those of
 * the kernel's that they stand for. */
void tile_module_restore_names(TileModule *module, TileArena *scratch, TileKeptNames *kept);

#endif
