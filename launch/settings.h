/* Settings as they are after the environment and the caller had their say. */
#ifndef TILE_LAUNCH_SETTINGS_H
#define TILE_LAUNCH_SETTINGS_H

#include "tile/launch.h"

/* What is not set in `given` (NULL: nothing) is what the environment says. Texts are borrowed. False where the struct
 * is of no version. */
bool tile_settings_merge(TileSettings *settings, const TileSettings *given);

/* A line for those who asked for it; ends in no newline. */
void tile_log(const TileSettings *settings, uint32_t kinds, const char *format, ...) TILE_PRINTF(3, 4);
/* A line for everybody, where those of the log go; `settings` may be NULL. */
void tile_warn(const TileSettings *settings, const char *format, ...) TILE_PRINTF(2, 3);

#endif
