/* Loops with further loop-carried values, and clones of ops for another iteration. Private to ptx/. */
#ifndef TILE_PTX_PIPELINE_LOOP_H
#define TILE_PTX_PIPELINE_LOOP_H

#include "base/map.h"
#include "lang/ir/build.h"
#include "lowering/pass.h"

/* Builds the same loop with further loop-carried values, whose initial values are `first`. Their arguments are the
 * body's last; the caller adds the yielded values. The old loop is erased. */
TileOp *gpu_loop_carry(TilePassContext *context, TileOp *loop, TileValue *const *first, unsigned more);
/* The branch with another result of this type, behind its own; its regions do not yield it yet. */
TileOp *gpu_branch_widen(TilePassContext *context, TileOp *branch, const TileType *type);

/* Is it a load of one element, which no op of the phase writes? It gives the same wherever it stands. */
bool gpu_loads_constant(const TileOp *op);
/* Is the value known before the loop, or computed in its body from the index alone, and from what memory has there? `loads`: such loads count, too. */
bool gpu_follows_index(const TileValue *value, const TileOp *loop, bool loads);

/* Cloning of ops: values inside of `outer` are replaced as the map says; those that it does not have are
 * rematerialised by their pure ops and loads of elements, once. A value that is neither in it nor defined by these sets `failed`. */
typedef struct GpuCopies {
    TilePassContext *context;
    const TileOp *outer;
    TileMap *map;
    bool failed;
} GpuCopies;

TileValue *gpu_follow(GpuCopies *copies, TileBuilder *b, TileValue *value);
/* Clones the operands of the region's ops that are defined elsewhere inside of `outer`. */
void gpu_follow_region(GpuCopies *copies, TileBuilder *b, TileBlock *region);
/* Clones the region's ops at the end of `to`, with operands that only they use, which are not added to the map. */
void gpu_copy_region(GpuCopies *copies, TileBlock *region, TileBlock *to);
/* A copy of the map. */
TileMap gpu_copy_map(TileArena *arena, const TileMap *map);

#endif
