/* Checks that concern several arguments: dimensions, `require` clauses, shared memory. */
#ifndef TILE_LAUNCH_CHECK_H
#define TILE_LAUNCH_CHECK_H

#include "launch/host.h"

/* Each reports all errors, one per line. values: of the code's host program. */
tile_status tile_check_dimensions(const TileImageSignature *signature, const TileImageCode *code, const TileView *views,
                                  const uint64_t *values, TileError *error);
tile_status tile_check_requires(const TileImageSignature *signature, const TileImageCode *code,
                                const uint64_t *values, TileError *error);
/* No `out` or `inout` tensor shares memory with another argument or with itself. */
tile_status tile_check_overlap(const TileImageSignature *signature, const TileView *views, TileError *error);

#endif
