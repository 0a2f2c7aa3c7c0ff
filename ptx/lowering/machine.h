/* Internals of gpu-machine, shared by its files:
 *   machine.c        the pass: parameters, blocks, control
 *   values.c         elementwise ops, constants, indices, shapes
 *   access.c         load_tile, store_tile and atomic_tile
 *   move.c           a tile from one layout to another
 *   reduce.c         reductions
 *   fold.c           folds and scans by a combiner
 *   dot.c            products by fused multiply-adds
 *   mma.c            products by tensor cores
 *   print.c          what programs print
 *   shared_tiles.c   tiles in shared memory, and the copies that bring them there
 *   remark.c         what was decided, for `tilec explain`
 *
 * A tile becomes a vector of the registers that each thread has of it, a scalar where it has one. Scalars are computed
 * by every thread. Private to ptx/. */
#ifndef TILE_PTX_LOWERING_MACHINE_H
#define TILE_PTX_LOWERING_MACHINE_H

#include "lang/ir/build.h"
#include "ptx/layouts/blocked.h"
#include "ptx/target/dot.h"
#include "lang/layout/layout.h"
#include "ptx/passes.h"
#include "ptx/lowering/swizzle.h"

/* A tensor parameter as machine form has it; extents and strides in bytes by dimension. */
typedef struct GpuTensor {
    TileValue *pointer, *extent[TILE_MAX_TENSOR_RANK], *stride[TILE_MAX_TENSOR_RANK];
    TileParameter *parameter;
} GpuTensor;

/* What a scan has found of whole lines, before its init: for each register of the lines, in the tile's own layout. */
typedef struct GpuScanned {
    const TileOp *scan; /* NULL: none yet */
    TileValue **totals;
} GpuScanned;

typedef struct Gpu {
    TilePassContext *context;
    TileModule *module;
    TileArena *arena;
    TileFunc *func;
    TileBuilder b;
    TileMap values;  /* old TileValue to new */
    TileMap tensors; /* old TileValue to GpuTensor */
    unsigned products; /* shapes of sums that mma computes */
    unsigned log_warps;
    TileValue *thread;     /* i64 */
    TileValue *shared;     /* the buffer that what lives for the op at hand lies in */
    GpuScanned scanned;    /* the last one */
    int64_t meeting;       /* stores so far whose lanes may meet */
    const TileOp *refused; /* what this back end cannot do yet, and why */
    const char *why;
} Gpu;

/* ---- lower.c ---- */
TileValue *gpu_value(Gpu *gpu, const TileValue *old);
/* The first one counts; lowering goes on with anything. */
void gpu_refuse(Gpu *gpu, const TileOp *op, const char *why);
/* Do all offsets into the tensor fit into 31 bits? Then the function relies on it from now on. */
bool gpu_is_narrow(const GpuTensor *tensor);
/* An i64 as it is, of which more is known: it fits into 32 bits without a sign. */
TileValue *gpu_narrow(Gpu *gpu, TileValue *value);

/* The type of a tile's registers. */
const TileType *gpu_type(Gpu *gpu, const TileLayout *layout, TileScalar scalar);

/* ---- values.c ---- */
static inline TileValue *gpu_i64(Gpu *gpu, int64_t number) { return tile_build_i64(&gpu->b, number); }
static inline TileValue *gpu_binary(Gpu *gpu, TileOpId id, TileValue *x, TileValue *y) {
    return tile_build_binary(&gpu->b, id, x, y);
}
TileValue *gpu_and(Gpu *gpu, TileValue *x, TileValue *y); /* either may be NULL: true */
/* The same where `y` may be undefined where `x` is false: a mask that is a tile, in the padding of its layout. */
TileValue *gpu_both(Gpu *gpu, TileValue *x, TileValue *y);
/* One register of many, and many put together. */
TileValue *gpu_register(Gpu *gpu, TileValue *value, uint32_t reg);
TileValue *gpu_join(Gpu *gpu, TileValue *const *registers, uint32_t count);
/* Indices along an axis: what the thread adds (i64), and what a register adds. Their sum is the index. */
TileValue *gpu_thread_index(Gpu *gpu, const TileLayout *layout, unsigned axis);
int64_t gpu_register_index(const TileLayout *layout, unsigned axis, uint32_t reg);
/* The same for all registers at once, as i64. */
TileValue *gpu_indices(Gpu *gpu, const TileLayout *layout, unsigned axis);
/* Is the index that a register stands for in lo .. hi (i64)? NULL: certainly. */
TileValue *gpu_lies_between(Gpu *gpu, const TileLayout *layout, unsigned axis, uint32_t reg, TileValue *lo,
                            TileValue *hi);
/* Is what the thread has in a register an element of the tile, and no padding of its layout? NULL: certainly. */
TileValue *gpu_is_element(Gpu *gpu, const TileType *tile, uint32_t reg);
/* Is this thread the one with the lowest number among those that hold the same elements? NULL: every thread is. */
TileValue *gpu_holds_first_copy(Gpu *gpu, const TileLayout *layout);
bool gpu_lower_value(Gpu *gpu, TileOp *op);

/* ---- access.c ---- */
void gpu_lower_load(Gpu *gpu, TileOp *op);
void gpu_lower_store(Gpu *gpu, TileOp *op);
void gpu_lower_atomic(Gpu *gpu, TileOp *op);

/* ---- move.c ---- */
/* A tile of this type, whose own layout does not matter, from one layout to another. */
TileValue *gpu_move(Gpu *gpu, TileValue *value, const TileType *type, const TileLayout *from, const TileLayout *to);
/* Does that take no shared memory? `source` is as of tile_layout_conversion. */
bool gpu_stays_in_warp(const TileLayout *from, const TileLayout *to, TileLinear *source);
/* Where elements lie in shared memory: bytes for axis index i are i * bytes, behind the first `offset` bytes, and
 * indices from `extent` on have no place. */
typedef struct GpuStrides {
    int64_t bytes[TILE_MAX_TILE_RANK], extent[TILE_MAX_TILE_RANK], offset;
} GpuStrides;
/* Through shared memory: elements of `from` are written by `write`, and those of `to` read by `read`. */
TileValue *gpu_move_through_shared(Gpu *gpu, TileValue *value, TileScalar scalar, const TileLayout *from,
                                   const GpuStrides *write, const TileLayout *to, const GpuStrides *read,
                                   int64_t elements);
/* Its halves. */
void gpu_write_shared(Gpu *gpu, TileValue *value, const TileLayout *layout, const GpuStrides *strides);
TileValue *gpu_read_shared(Gpu *gpu, TileScalar scalar, const TileLayout *layout, const GpuStrides *strides);
/* A scalar that one thread has, for all. */
TileValue *gpu_share_scalar(Gpu *gpu, TileValue *scalar, TileValue *has);
GpuStrides gpu_row_major(const TileLayoutShape *shape, unsigned scalar_bytes);
/* A place in shared memory. */
TileValue *gpu_shared_address(Gpu *gpu, const TileLayout *layout, const GpuStrides *strides);
int64_t gpu_shared_register_offset(const TileLayout *layout, const GpuStrides *strides, uint32_t reg);
/* exchange for a value of any scalar type. */
TileValue *gpu_exchange(Gpu *gpu, TileValue *value, uint32_t lanes);

/* ---- reduce.c ---- */
void gpu_lower_reduce(Gpu *gpu, TileOp *op);
void gpu_lower_arg_reduce(Gpu *gpu, TileOp *op);
/* Which bits of a thread's lane or warp number lie on the axis. */
uint32_t gpu_axis_bits(const TileLayout *layout, TileLayoutDim dim, unsigned axis);
/* The number of the warp among those that share a line, counted by the bits that are set in `bits`, not 0. */
TileValue *gpu_warp_rank(Gpu *gpu, uint32_t bits);
/* Lines along an axis, of which the lanes of a warp all have one value for each register of `result`. */
typedef struct GpuLines {
    Gpu *gpu;
    TileLayout layout, result; /* of the tile; of a value of each line, without copies in registers */
    unsigned axis;
} GpuLines;
/* How many warps share a line. */
uint32_t gpu_line_warps(const GpuLines *lines);
/* The values of all warps that share the thread's lines: number w * registers + r is warp w's for register r. */
TileValue **gpu_gather_lines(const GpuLines *lines, TileValue *const *values);

/* ---- fold.c ---- */
/* A fold or a scan. */
void gpu_lower_fold(Gpu *gpu, TileOp *op);
/* What the last scan has found of the lines that a reduction by `id` is about; NULL where it is about others. */
TileValue **gpu_scanned_totals(const Gpu *gpu, const TileOp *reduce, TileOpId id);

/* ---- remark.c: nothing where nobody asks ---- */
/* The layouts of the op's tiles. */
void gpu_remark_tiles(Gpu *gpu, const TileOp *op);
/* A tile that goes from one layout to another. */
typedef struct GpuMove {
    TileScalar scalar;
    const TileLayout *from, *to;
    const char *way;
    uint64_t bytes;                           /* of shared memory, that hold it meanwhile; 0: it moves without */
    unsigned store_conflicts, load_conflicts; /* there (tile_shared_conflicts) */
} GpuMove;
void gpu_remark_move(Gpu *gpu, const GpuMove *move);

/* An access in vectors, and a name of the attribute `cache`. */
/* Of a product or a loop; of a reduction or fold, by the layout that its elements have. */
void gpu_remark_order(Gpu *gpu, const TileOp *op);
void gpu_remark_reduction(Gpu *gpu, const TileOp *op, const TileLayout *layout, unsigned axis);
void gpu_remark_access(Gpu *gpu, const TileOp *op, const TileParameter *tensor, TileName cache);

/* ---- dot.c ---- */
void gpu_lower_dot(Gpu *gpu, TileOp *op);

/* ---- print.c ---- */
void gpu_lower_print(Gpu *gpu, const TileOp *op);

/* ---- mma.c ---- */
void gpu_lower_mma(Gpu *gpu, TileOp *op);

/* ---- shared.c ---- */
/* A buffer of its own for what lives for one op; it becomes gpu->shared. Barriers between those who write there and
 * those who read are gpu-barriers' business. */
enum { GPU_VECTOR_ALIGN = 16 };
void gpu_open_shared(Gpu *gpu, uint64_t bytes, unsigned align);
/* Addresses in a tile in shared memory (ptx/target/dot.h): of the elements that the registers of a layout stand for. */
typedef struct GpuPlaces {
    Gpu *gpu;
    GpuSharedTile tile;
    TileLayout layout;
    unsigned axis[2];          /* of the layout, for the tile's rows and columns */
    TileValue *base, *offset;  /* pointer, and bytes to the thread's register 0 */
    TileValue *at[TILE_LANES]; /* addresses found so far, by what is exclusive-ored to the column */
} GpuPlaces;
GpuPlaces gpu_places(Gpu *gpu, TileValue *pointer, const GpuSharedTile *tile, const TileLayout *layout,
                     bool transposed);
TileValue *gpu_place(GpuPlaces *places, uint32_t reg);
/* All registers of a tile into shared memory, where they lie as the type `place` says. */
void gpu_put_tile(Gpu *gpu, TileValue *value, const TileType *type, const TileType *place, TileValue *pointer);
void gpu_lower_copy(Gpu *gpu, TileOp *op);
void gpu_lower_shared_tile(Gpu *gpu, TileOp *op);

#endif
