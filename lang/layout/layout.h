/* Layouts of tiles on a GPU: a linear map from the bits of (register, lane, warp, block) to the bits of an element's
 * position in the tile.
 *
 * A position is the row-major index with every axis rounded up to a power of two, so axis 0 has the highest bits. An
 * input bit whose column is zero does not affect the position: the element is replicated. An axis whose extent is an
 * odd multiple of a power of two (96 = 3 x 32) consists of `pieces[axis]` equal pieces. All pieces have the same
 * layout, and each has its own registers: above the register bits, those of the last axis running fastest.
 *
 * Every function is pure and thread safe. Source: Zhou et al., "Linear Layouts", 2025, sections 4 and 5. */
#ifndef TILE_LANG_LAYOUT_LAYOUT_H
#define TILE_LANG_LAYOUT_LAYOUT_H

#include "base/limits.h"
#include "base/string.h"
#include "lang/layout/linear.h"

enum { TILE_LANE_BITS = 5, TILE_LANES = 32 };

typedef enum TileLayoutDim {
    TILE_LAYOUT_REGISTER,
    TILE_LAYOUT_LANE,
    TILE_LAYOUT_WARP,
    TILE_LAYOUT_BLOCK, /* of a cluster */
    TILE_LAYOUT_DIMS
} TileLayoutDim;

typedef struct TileLayout {
    uint8_t bits[TILE_LAYOUT_DIMS];         /* of each input; their sum is map.inputs */
    uint8_t rank;                           /* 1 to 5 */
    uint8_t log_extent[TILE_MAX_TILE_RANK]; /* of one piece; their sum is map.outputs */
    uint8_t pieces[TILE_MAX_TILE_RANK];     /* 1, or an odd number */
    TileLinear map;                         /* of one piece; register bits lowest, then lane, warp, block */
} TileLayout;

/* A register of a thread: an input of the layout. */
typedef struct TileLayoutInput {
    uint32_t reg, lane, warp, block;
} TileLayoutInput;

/* The first input bit of a dimension. */
static inline unsigned tile_layout_first_bit(const TileLayout *layout, TileLayoutDim dim) {
    unsigned first = 0;
    for (unsigned d = 0; d < dim; d++) first += layout->bits[d];
    return first;
}
/* The lowest output bit of an axis. */
static inline unsigned tile_layout_axis_bit(const TileLayout *layout, unsigned axis) {
    unsigned first = 0;
    for (unsigned a = layout->rank; a-- > axis + 1;) first += layout->log_extent[a];
    return first;
}
/* Registers of one thread, for all pieces. */
uint32_t tile_layout_registers(const TileLayout *layout);
/* The extent of an axis: pieces times a power of two, at least the tile's own. */
int64_t tile_layout_extent(const TileLayout *layout, unsigned axis);

/* The indices, one for each axis, of the element in a thread's register. */
void tile_layout_apply(const TileLayout *layout, TileLayoutInput place, int64_t *index);
/* Are positions, columns and pieces the same? */
bool tile_layout_equal(const TileLayout *a, const TileLayout *b);
/* Are they equal, apart from copies of an element in several registers of a thread? */
bool tile_layout_same_elements(const TileLayout *a, const TileLayout *b);
/* The same layout, without copies of an element in several registers of a thread. */
TileLayout tile_layout_without_copies(const TileLayout *layout);
/* Is every element of the tile held by some thread? The verifier checks this, besides sizes. */
bool tile_layout_is_surjective(const TileLayout *layout);
/* Do the first `warps` of the layout's warps hold all elements of a tile with these extents? The others have what these have as
 * well, or what pads the tile. */
bool tile_layout_is_complete(const TileLayout *layout, uint32_t warps, const int64_t *extent);
/* Input bits of a dimension that do not affect the position. */
uint32_t tile_layout_free_bits(const TileLayout *layout, TileLayoutDim dim);

/* ---- builders: layouts of a tile of this shape; extents that are not an odd multiple (see above) of a power of two
 * are padded to the next power of two ---- */

typedef struct TileLayoutShape {
    uint8_t rank;
    int64_t extent[TILE_MAX_TILE_RANK];
} TileLayoutShape;

/* The logarithm of the extent of one piece of an axis of this extent; it may be padded. */
unsigned tile_layout_log_extent(int64_t extent);

/* Numbers of bits for each axis. `order` has the axes, fastest first, for the elements of a thread as for lanes and
 * warps. */
typedef struct TileLayoutBlocked {
    uint8_t elements[TILE_MAX_TILE_RANK], lanes[TILE_MAX_TILE_RANK], warps[TILE_MAX_TILE_RANK];
    uint8_t order[TILE_MAX_TILE_RANK];
} TileLayoutBlocked;
/* Blocked: elements of a thread, then lanes, then warps. Remaining elements are in further registers; surplus bits are
 * replication. The lanes' numbers of bits sum up to 5. */
TileLayout tile_layout_blocked(const TileLayoutShape *shape, const TileLayoutBlocked *blocked);

/* Fragments of the tensor core instructions: of mma.sync m16n8 with k of 32 bytes, and of wgmma m64. The last two axes
 * are the instruction's rows and columns (A: m, k; B: k, n; accumulator: m, n); leading axes are in registers. */
typedef enum TileFragment {
    TILE_FRAGMENT_MMA_A,
    TILE_FRAGMENT_MMA_B,
    TILE_FRAGMENT_MMA_C,
    TILE_FRAGMENT_WGMMA_A,
    TILE_FRAGMENT_WGMMA_C
} TileFragment;
/* How the warps of a block divide a product, and which rows and columns of the tile an instruction has. Paired: instead
 * of two blocks of 8 consecutive rows or columns, the even and the odd ones of 16: of mma's rows in m, of the columns
 * of two instructions in n. */
typedef struct TileFragmentPlan {
    uint8_t log_warps_m, log_warps_n;
    bool pairs_m, pairs_n;
    uint8_t log_parts; /* of A: so many of the highest bits of k are of the warp's number, above those of rows */
} TileFragmentPlan;
/* `scalar_bits`: of one element of A or B (8, 16, 32). An operand is replicated in the warps that differ along the axis
 * that it does not have. PTX ISA 8.7, "Matrix Fragments for mma.m16n8k16" and the like, and "Register Fragments and
 * Shared Memory Matrix Layouts" of wgmma. */
TileLayout tile_layout_fragment(const TileLayoutShape *shape, TileFragment fragment, unsigned scalar_bits,
                                TileFragmentPlan plan);

/* Sums of a product by fused multiply-adds, a tile of two axes: bits of the rows (0) and the columns (1). A thread has
 * blocks of neighbouring `elements`, lanes and then warps have further ones, and what is left is in further registers.
 * The lowest bits of a lane's number belong to rows and columns in turn: of each operand, lanes of one half of a warp
 * then load few different elements. */
typedef struct TileSumsPlan {
    uint8_t elements[2], lanes[2], warps[2];
} TileSumsPlan;
TileLayout tile_layout_sums(const TileLayoutShape *shape, const TileSumsPlan *plan);

/* ---- layouts of results ---- */

/* Removes an axis: the layout of a reduction's result, replicated in the threads that divided the axis. */
TileLayout tile_layout_slice(const TileLayout *layout, unsigned axis);
/* Inserts an axis of extent 1 before the axis. */
TileLayout tile_layout_expand(const TileLayout *layout, unsigned axis);
/* Result axis i is axis axes[i]. */
/* The layout of either half of a tile, cut along the axis, where one register bit tells them apart and nothing else does;
 * false: they lie in different threads. */
bool tile_layout_halve(const TileLayout *layout, unsigned axis, TileLayout *half);
/* The layout of a tile twice as long along the axis: another register bit, the highest, for its second half. */
bool tile_layout_double(const TileLayout *layout, unsigned axis, TileLayout *whole);
TileLayout tile_layout_permute(const TileLayout *layout, const unsigned *axes);
/* Reshape: the same elements in row-major order with another shape, without data movement; false if pieces make that
 * impossible. */
bool tile_layout_reshape(const TileLayout *layout, const TileLayoutShape *shape, TileLayout *result);

/* ---- queries for instruction selection ---- */

/* How many consecutive elements along the axis are in consecutive registers of a thread, from 0 on and aligned to that
 * number: the widest vector access if memory is contiguous along the axis. At most `limit`, a power of two. */
unsigned tile_layout_vector(const TileLayout *layout, unsigned axis, unsigned limit);

typedef enum TileConversionKind {
    TILE_CONVERSION_NONE,      /* no data movement */
    TILE_CONVERSION_REGISTERS, /* a permutation of each thread's registers */
    TILE_CONVERSION_SHUFFLES,  /* between lanes of a warp */
    TILE_CONVERSION_SHARED     /* through shared memory */
} TileConversionKind;
/* The cheapest conversion between two layouts of a shape. Unless it is SHARED, source(x) is the input of `from`, as
 * bits of (register, lane, warp, block), that holds the element at input x of `to`: if there are several copies, one in
 * x's own thread or warp. Both layouts have the same pieces, or it is SHARED. */
TileConversionKind tile_layout_conversion(const TileLayout *from, const TileLayout *to, TileLinear *source);

/* ---- text ---- */

/* `[64, 3*32] register 1 2 lane 4 8 16 0 0 warp 256 block`: shape in pieces, then the columns. Reads back to the same
 * layout. */
void tile_layout_print(TileText *text, const TileLayout *layout);
/* False if the text is not a layout. */
bool tile_layout_read(const char *text, TileLayout *layout);

#endif
