/* Loops that carry more, and ops made again for another trip. Private to ptx/. */
#ifndef TILE_PTX_PIPELINE_LOOP_H
#define TILE_PTX_PIPELINE_LOOP_H

#include "base/map.h"
#include "lang/ir/build.h"
#include "lowering/pass.h"

/* The same loop with further carried values, which begin as `first`. Their arguments are the body's last; what it
 * yields for them is the caller's to add. The old loop goes. */
TileOp *gpu_loop_carry(TilePassContext *context, TileOp *loop, TileValue *const *first, unsigned more);

/* What ops are made again from: values inside of `outer` are others in the copy, as the map says of them; those that it
 * does not have are made by their pure ops, once. A value that neither is in it nor made by an op sets `failed`. */
typedef struct GpuCopies {
    TilePassContext *context;
    const TileOp *outer;
    TileMap *map;
    bool failed;
} GpuCopies;

TileValue *gpu_follow(GpuCopies *copies, TileBuilder *b, TileValue *value);
/* What ops of the region take from elsewhere inside of `outer`. */
void gpu_follow_region(GpuCopies *copies, TileBuilder *b, TileBlock *region);
/* The region's ops at the end of `to`; what only they need is made there as well, and the map does not learn of it. */
void gpu_copy_region(GpuCopies *copies, TileBlock *region, TileBlock *to);
/* A map of its own that begins with what this one has. */
TileMap gpu_copy_map(TileArena *arena, const TileMap *map);

#endif
