/* Settings, merged from the caller's and the environment's. */
#ifndef TILE_LAUNCH_SETTINGS_H
#define TILE_LAUNCH_SETTINGS_H

#include "tile/launch.h"

/* Members that `given` (NULL: none) does not set come from the environment. Texts are borrowed. False if the struct is
 * of no version. */
bool tile_settings_merge(TileSettings *settings, const TileSettings *given);

/* Logs a line if logging is on; without a newline at the end. */
void tile_log(const TileSettings *settings, uint32_t kinds, const char *format, ...) TILE_PRINTF(3, 4);
/* Logs a line in any case; `settings` may be NULL. */
void tile_warn(const TileSettings *settings, const char *format, ...) TILE_PRINTF(2, 3);

#endif
