/* The message of a launch in which an assertion failed. */
#ifndef TILE_LAUNCH_FAILURE_H
#define TILE_LAUNCH_FAILURE_H

#include "launch/image.h"

enum { TILE_VALUES_BYTES = 400 }; /* size of the text of values in the message */

/* A TilePrintLine that copies the line without its newline, truncated, to the TILE_VALUES_BYTES at `values`. */
void tile_failure_keep(void *values, const char *line, size_t length);
/* number: of the assertion, from 1; values: "" where it shows none. */
tile_status tile_failure_set(const char *kernel, const TileImagePhase *phase, int64_t number, const char *values,
                             TileError *error);

#endif
