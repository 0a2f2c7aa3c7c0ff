/* Meaningless names, for tests. */
#ifndef TILE_LOWERING_RENAME_H
#define TILE_LOWERING_RENAME_H

#include "lang/ir/ir.h"

/* The original names. */
typedef struct TileKeptNames TileKeptNames;
TileKeptNames *tile_module_keep_names(TileModule *module, TileArena *scratch);

/* Gives each function, parameter and value of the module a random name that follows from the seed; calls refer to the
 * new names. With seed 0, functions and parameters are numbered and values have no names: modules that differ only in
 * names then have the same text. `scratch` is temporary memory; `kept`, which may be NULL, records the values'
 * original names. */
void tile_module_rename(TileModule *module, TileArena *scratch, uint64_t seed, TileKeptNames *kept);
/* Restores the original names. A phase that was created since is named after its kernel and its number, and its
 * parameters after those of the kernel. */
void tile_module_restore_names(TileModule *module, TileArena *scratch, TileKeptNames *kept);

#endif
