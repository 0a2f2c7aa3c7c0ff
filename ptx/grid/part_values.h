/* Values of the parts of a split loop: temporaries of [programs, parts, the value's own extents]. Private to ptx/. */
#ifndef TILE_PTX_GRID_PART_VALUES_H
#define TILE_PTX_GRID_PART_VALUES_H

#include "lang/ir/build.h"

void gpu_part_store(TileBuilder *b, TileValue *temp, TileValue *value, TileValue *program, TileValue *part);
/* The value, of this type, of one part. */
TileValue *gpu_part_load(TileBuilder *b, TileValue *temp, const TileType *type, TileValue *program, TileValue *part);
/* Those of `together` parts from this one on, as a tile; of which only the first `count` are there. */
TileValue *gpu_parts_load(TileBuilder *b, TileValue *temp, const TileType *type, TileValue *program, TileValue *part,
                          int64_t together, TileValue *count);
/* How many parts' values of this type, of so many, are loaded together, so that their loads overlap, by programs that have one of so many slices of
 * each. */
int64_t gpu_parts_together(const TileType *type, int64_t slices, int64_t wanted);

#endif
