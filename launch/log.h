/* Lines for the log of a program that launches kernels. */
#ifndef TILE_LAUNCH_LOG_H
#define TILE_LAUNCH_LOG_H

#include "tile/launch.h"

/* Logs a line if logging is on; without a newline at the end. */
void tile_log(const TileSettings *settings, uint32_t kinds, const char *format, ...) TILE_PRINTF(3, 4);
/* Logs a line in any case; `settings` may be NULL. */
void tile_warn(const TileSettings *settings, const char *format, ...) TILE_PRINTF(2, 3);

#endif
