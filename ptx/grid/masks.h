/* Masks of tiles: fills outside of a range, and selects by comparisons of indices. Whether a mask changes any lane can be
 * tested once for the whole tile. Private to ptx/. */
#ifndef TILE_PTX_GRID_MASKS_H
#define TILE_PTX_GRID_MASKS_H

#include "lang/index/index.h"
#include "lang/ir/build.h"
#include "lowering/pass.h"

typedef struct GpuMasks {
    TilePassContext *context;
    TileIndexView view; /* index sums of tiles */
    TileBuilder b;      /* has the error, if one occurred */
} GpuMasks;

void gpu_masks_init(GpuMasks *masks, TilePassContext *context, TileFunc *func);

/* Does the op say of each lane whether it lies inside of bounds, which may be all of them: true inside, false outside? */
bool gpu_says_lanes(const TileOp *op);
/* Smaller tiles are masked element by element: a branch costs more. */
bool gpu_mask_is_large(const TileOp *op);
/* Is the op a mask of a large tile that may change no lane, and can that be tested with scalars? Fills whose constant
 * bounds keep all lanes are none. */
bool gpu_mask_has_test(GpuMasks *masks, const TileOp *op);
/* The same of the mask of a load of a tile of any size: what bounds its ranges is tested by branches, too. */
bool gpu_load_mask_is_testable(GpuMasks *masks, const TileOp *op);
/* Is a branch for this load alone worth it, for its mask or a part of that, all of whose parts have to hold? In loops only of tiles of which a thread has few elements: a branch has all of them in
 * registers at its end. */
bool gpu_load_mask_has_test(GpuMasks *masks, const TileOp *op);
/* The same of updates in memory one by one, of which nobody takes the old values. */
bool gpu_update_mask_has_test(GpuMasks *masks, const TileOp *op);
/* The operand that is the result where the mask changes no lane. */
/* So many elements of a thread. Measured in loops of products: with 64 elements a load (matmul_awq in bf16) it took 1.11 times as long,
 * with 16 (in f32) 1.15 times; with 2 to 8 (matmul_gptq) 0.86 to 1 of the time. */
enum { GPU_MOST_BRANCHED = 8 };
unsigned gpu_mask_kept(const TileOp *op);
/* Builds the condition that the mask changes no lane, in front of an op. Requires that one of the above holds. The bounds of both
 * sides of a comparison are compared: for x < y the greatest x with the least y. */
TileValue *gpu_mask_build_test(GpuMasks *masks, const TileOp *op, TileOp *before);

/* What is left of the mask of a load or update where that condition holds, in front of an op; NULL: nothing. */
TileValue *gpu_mask_build_rest(GpuMasks *masks, const TileOp *op, TileOp *before);

/* Removes the mask of a load, scan or fold, of which other parts remain. */
void gpu_mask_remove(TileModule *module, TileOp *op);

/* Does a range of a load or store tell lanes that exist from others, in a tile that may be whole? Its extent is a power of two then,
 * since layouts round extents up. */
bool gpu_access_has_test(const TileOp *op);
/* Builds the condition that all lanes exist, in front of an op; `idle` is what has to hold as well, or NULL. */
TileValue *gpu_access_build_test(GpuMasks *masks, const TileOp *op, TileOp *before, TileValue *idle);
/* Does the fill change no lane where that condition holds? */
bool gpu_fill_is_idle_where(const TileOp *op, const TileValue *idle);
/* Makes all lanes exist. */
void gpu_access_make_whole(GpuMasks *masks, TileOp *op);

#endif
