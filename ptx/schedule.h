/* Internals of gpu-schedule, shared by its files; private to ptx/. */
#ifndef TILE_PTX_SCHEDULE_H
#define TILE_PTX_SCHEDULE_H

#include "base/map.h"
#include "lang/build.h"
#include "lowering/pass.h"

/* Copies of a later trip, which stand under a condition, taken apart: those that are nothing but copies and the values
 * they need come one by one between products, each under a mask; all else (loops, copies element by element) stays
 * behind branches. */
typedef struct GpuSpread GpuSpread;

/* The map speaks of the trip for which copies are made: of values of the loop's body that stand before. It grows. */
GpuSpread *gpu_spread_begin(TilePassContext *context, TileOp *loop, TileOp *copies, TileValue *exists, TileMap *map);
/* What stays behind branches. */
void gpu_spread_branches(GpuSpread *spread, TileBuilder *b);
unsigned gpu_spread_count(const GpuSpread *spread);
/* The next copy. */
void gpu_spread_copy(GpuSpread *spread, TileBuilder *b);
/* The value for the trip of the map: pure ops of the body and of the copies' regions are made again. */
TileValue *gpu_follow(TilePassContext *context, TileBuilder *b, const TileOp *loop, TileMap *map, TileValue *value);

#endif
