/* Changing a tuning file that other processes may be changing too: it is read, changed and written under a lock, and is
 * there as it was or as it is then. */
#ifndef TILE_TOOLS_TUNE_UPDATE_H
#define TILE_TOOLS_TUNE_UPDATE_H

#include "driver/cache/tuning.h"

typedef void (*TileTuneChange)(void *state, TileTuning *tuning);
tile_status tile_tune_update(TileArena *arena, const char *path, TileTuneChange change, void *state, TileText *error);

#endif
