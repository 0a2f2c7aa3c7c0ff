/* Settings, merged from the caller's and the environment's. */
#ifndef TILE_LAUNCH_SETTINGS_H
#define TILE_LAUNCH_SETTINGS_H

#include "launch/log.h"

/* Members that `given` (NULL: none) does not set come from the environment. Texts are borrowed. False if the struct is
 * of no version. */
bool tile_settings_merge(TileSettings *settings, const TileSettings *given);

#endif
