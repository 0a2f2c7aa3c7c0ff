/* How load_tile, store_tile, atomic_tile and copy_tile reach memory. Private to ptx/. */
#ifndef TILE_PTX_LOWERING_ACCESS_H
#define TILE_PTX_LOWERING_ACCESS_H

#include "ptx/lowering/machine.h"

typedef struct GpuDimension {
    TileName kind;
    int axis;                          /* of the tile; -1 for an index */
    TileValue *first, *step, *lo, *hi; /* ranges; an index is `first` */
    TileValue *gather;                 /* indices in the registers of the tile */
    TileValue *stride;                 /* of the tensor */
    TileValue *thread;                 /* bytes that the thread adds: ranges */
    TileValue *per_lane;               /* bytes from one lane to the next: ranges */
} GpuDimension;

typedef struct GpuAccess {
    const TileOp *op;
    const TileType *type;
    TileLayout layout;
    const GpuTensor *tensor;
    GpuDimension dimensions[TILE_MAX_TENSOR_RANK];
    unsigned rank;
    TileValue *mask, *fill; /* NULL where absent */
    TileValue *origin;      /* address without gathers, of lane 0 of each range */
    TileValue *base;        /* the same of the thread's register 0 */
    bool gathers;
} GpuAccess;

/* Indices begin at operand `first`; without a layout, that of the type. */
void gpu_read_access(Gpu *gpu, const TileOp *op, const TileType *type, const TileLayout *layout,
                     GpuAccess *access);
/* Of the element that a register has. */
TileValue *gpu_access_address(Gpu *gpu, const GpuAccess *access, uint32_t reg);
/* The dimension whose elements lie one after the other, and run along the tile's last axis; NULL: none may. */
const GpuDimension *gpu_unit_dimension(const GpuAccess *access);
/* How many of `width` elements may be accessed at once: by what the function may assume of its parameter, and from now
 * on does. Where it is told nothing, as many as gpu_is_in_vectors then asks for. */
unsigned gpu_aligned_width(GpuAccess *access, unsigned width);
/* Do the elements along the unit dimension lie one after the other, in vectors of `width` whose addresses are multiples
 * of their size? One answer for the whole block. */
TileValue *gpu_is_in_vectors(Gpu *gpu, const GpuAccess *access, unsigned width);

#endif
