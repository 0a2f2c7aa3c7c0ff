/* The addresses of load_tile, store_tile, atomic_tile and copy_tile. Private to ptx/. */
#ifndef TILE_PTX_LOWERING_ACCESS_H
#define TILE_PTX_LOWERING_ACCESS_H

#include "ptx/lowering/machine.h"

typedef struct GpuDimension {
    TileName kind;
    int axis;                          /* of the tile; -1 for an index */
    TileValue *first, *step, *lo, *hi; /* ranges; an index is `first` */
    TileValue *gather;                 /* indices in the registers of the tile */
    TileValue *stride;                 /* of the tensor; of a flat access's last dimension, that of one element */
    TileValue *thread;                 /* byte offset of the thread: ranges */
    TileValue *per_lane;               /* byte distance of neighbouring lanes: ranges */
} GpuDimension;

typedef struct GpuAccess {
    const TileOp *op;
    const TileType *type;
    TileLayout layout;
    const GpuTensor *tensor;
    GpuDimension dimensions[TILE_MAX_TENSOR_RANK];
    unsigned rank;
    TileValue *mask, *fill; /* NULL where absent */
    TileValue *origin;      /* address of lane 0 of each range, without gathers */
    TileValue *base;        /* address of the thread's register 0, without gathers */
    bool gathers;
    bool flat; /* the last dimension is all elements from some dimension on, without gaps */
} GpuAccess;

/* Reads the operands of the op; the layout is that of the type, if none is given. */
void gpu_read_access(Gpu *gpu, const TileOp *op, const TileType *type, const TileLayout *layout,
                     GpuAccess *access);
/* The address of the element in a register. */
TileValue *gpu_access_address(Gpu *gpu, const GpuAccess *access, uint32_t reg);
/* The predicate of a register; NULL: it is certainly valid. That of the gathers and the mask alone, where all lanes lie
 * within their ranges. */
TileValue *gpu_access_mask(Gpu *gpu, const GpuAccess *access, uint32_t reg);
TileValue *gpu_picked_mask(Gpu *gpu, const GpuAccess *access, uint32_t reg);
/* Does every lane lie within its ranges? Uniform over the block; NULL: certainly. */
TileValue *gpu_is_inside(Gpu *gpu, const GpuAccess *access);
/* Are the elements certainly not contiguous? Then they are accessed one by one. */
bool gpu_is_scattered(const GpuAccess *access);
/* The access with the constant stride of contiguous elements, for code where they are known to be contiguous. */
GpuAccess gpu_as_dense(Gpu *gpu, const GpuAccess *access);
/* The tensor's last dimension, if it is a range along the tile's last axis, so that its elements may be contiguous;
 * NULL: they are not. */
const GpuDimension *gpu_unit_dimension(const GpuAccess *access);
/* How many of `width` elements may be accessed as one vector, given the alignment that the function may assume of its
 * parameter; records the assumption. If no alignment is known, `width`: then gpu_is_in_vectors tests the address. */
unsigned gpu_aligned_width(GpuAccess *access, unsigned width);
/* Are the elements along the unit dimension contiguous, and are vectors of `width` aligned to their size? Uniform
 * over the block; NULL: certainly. Asks for the facts. */
TileValue *gpu_is_in_vectors(Gpu *gpu, const GpuAccess *access, unsigned width);

/* ---- widths.c ---- */
/* The width of vectors where all lanes are valid. */
unsigned gpu_vector_width(const GpuAccess *access);
/* How many elements behind a multiple of `width` the access begins, by a constant that the text adds, where two vectors are worth it; else 0. */
unsigned gpu_shift(Gpu *gpu, const GpuAccess *access, unsigned width);
/* Is it known how many elements behind a multiple of `width` it begins? */
bool gpu_row_begins_behind(Gpu *gpu, const GpuAccess *access, unsigned width, unsigned *shift);
/* Does it certainly begin behind one, in memory that is aligned to vectors? */
bool gpu_misses_vectors(Gpu *gpu, const GpuAccess *access, unsigned width);
/* The width of vectors that have a predicate each; 1: there are none. Rows of many lengths consist of vectors of 8 bytes
 * that do not consist of longer ones; others of pairs of 16 bits. Asks for the facts. */
unsigned gpu_predicated_width(Gpu *gpu, const GpuAccess *access, unsigned width);
/* Do several rows follow one another without gaps, of a length that is odd? Then no question is asked of them, whose branches would wait
 * for one another's loads: elements are accessed one by one. Asks for the facts. */
bool gpu_is_of_odd_rows(const GpuAccess *access);
/* The width of vectors of an access with gathers or a mask: rows that lie anywhere, but each contiguous. Asks for the
 * facts. */
unsigned gpu_picked_width(GpuAccess *access);
/* Do gathers and the mask choose whole lines along the tile's last axis, of elements that may be contiguous? */
bool gpu_is_picked_by_lines(const GpuAccess *access);
/* Is each vector of this width aligned, and all its lanes valid or none? Uniform over the block; NULL: certainly. Asks for the facts. */
TileValue *gpu_is_whole_in_vectors(Gpu *gpu, const GpuAccess *access, unsigned width);

/* ---- turned.c ---- */
/* A layout in which bits of the register's number are exchanged with bits of the lane's. */
typedef struct GpuTurned {
    TileLayout layout;
    unsigned count, bits[4], lanes[4];
} GpuTurned;
/* Are elements exchanged between lanes, so that neighbouring ones access neighbours? */
bool gpu_is_turned(const GpuAccess *access, GpuTurned *turned);
/* From the access's layout to the turned one, or back. */
/* The value of `old`, a tile that is stored; of sums of multiply-adds, in other registers than during their products. */
TileValue *gpu_settle_sums(Gpu *gpu, TileValue *value, const TileValue *old);
TileValue *gpu_turn(Gpu *gpu, TileValue *value, const GpuTurned *turned);

/* ---- collected.c ---- */
/* Does the block collect the updates? NULL: no block does. */
TileValue *gpu_is_collected(Gpu *gpu, const TileOp *update);
/* Updates what the block has collected; `first` as of gpu_holds_first_copy. */
void gpu_update_collected(Gpu *gpu, const GpuAccess *access, TileValue *value, TileValue *first);

/* Combines the updates of a tile in shared memory (`in_shared`), and updates the tensor; `first` as above. */
void gpu_update_in_shared(Gpu *gpu, const GpuAccess *access, TileValue *value, TileValue *first);

/* Goes on building in a region; ends it with a yield of the value, or of nothing (NULL). */
void gpu_enter(Gpu *gpu, TileBlock *block);
void gpu_end_region(Gpu *gpu, TileValue *value);

#endif
