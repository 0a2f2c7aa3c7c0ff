/* Where the elements of a tile lie on a GPU: a linear map from the bits of (register, lane, warp, block) to the bits of
 * the element's place in the tile.
 *
 * A place is the row-major index with every axis rounded up to a power of two, so axis 0 has the highest bits. A zero
 * column says that a bit does not matter: the element is there more than once (replication). An axis whose extent is an
 * odd number of powers of two (96 = 3 x 32) is a row of equal pieces: `pieces[axis]` of them, each laid out alike, and
 * each piece of each axis has registers of its own, those of the last axis running fastest above the register bits.
 *
 * Every function is pure and safe from any thread. Source: Zhou et al., "Linear Layouts", 2025, sections 4 and 5. */
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

/* Where the element is that a thread has in a register. */
typedef struct TileLayoutPlace {
    uint32_t reg, lane, warp, block;
} TileLayoutPlace;

/* The first input bit of a dimension. */
static inline unsigned tile_layout_first_bit(const TileLayout *layout, TileLayoutDim dim) {
    unsigned first = 0;
    for (unsigned d = 0; d < dim; d++) first += layout->bits[d];
    return first;
}
/* The lowest bit of an axis among the output bits. */
static inline unsigned tile_layout_axis_bit(const TileLayout *layout, unsigned axis) {
    unsigned first = 0;
    for (unsigned a = layout->rank; a-- > axis + 1;) first += layout->log_extent[a];
    return first;
}
/* Registers of one thread, all pieces included. */
uint32_t tile_layout_registers(const TileLayout *layout);
/* Extent of an axis: pieces times a power of two, not less than the tile's own. */
int64_t tile_layout_extent(const TileLayout *layout, unsigned axis);

/* The indices, one for each axis, of the element at a place. */
void tile_layout_apply(const TileLayout *layout, TileLayoutPlace place, int64_t *index);
/* Same places, columns and pieces. */
bool tile_layout_equal(const TileLayout *a, const TileLayout *b);
/* Equal when copies of the same element in other registers of a thread are left out. */
bool tile_layout_same_elements(const TileLayout *a, const TileLayout *b);
/* The same layout with each element at most once among the registers of a thread. */
TileLayout tile_layout_without_copies(const TileLayout *layout);
/* Does every element of the tile lie somewhere? What verification of a layout asks beside its sizes. */
bool tile_layout_is_surjective(const TileLayout *layout);
/* Input bits of a dimension on which nothing depends. */
uint32_t tile_layout_free_bits(const TileLayout *layout, TileLayoutDim dim);

/* ---- builders: layouts of a tile of this shape; extents that are no odd multiple of a power of two are rounded up to
 * the next power of two ---- */

typedef struct TileLayoutShape {
    uint8_t rank;
    int64_t extent[TILE_MAX_TILE_RANK];
} TileLayoutShape;

/* Powers of two for each axis, as logarithms. The fastest axis comes first in `order`, for elements of a thread as for
 * lanes and warps. */
typedef struct TileLayoutBlocked {
    uint8_t elements[TILE_MAX_TILE_RANK], lanes[TILE_MAX_TILE_RANK], warps[TILE_MAX_TILE_RANK];
    uint8_t order[TILE_MAX_TILE_RANK];
} TileLayoutBlocked;
/* Elements of a thread, then lanes, then warps; what is left of the tile goes to further registers, what is too much
 * holds copies. The lanes' logarithms add up to 5. */
TileLayout tile_layout_blocked(const TileLayoutShape *shape, const TileLayoutBlocked *blocked);

/* Fragments of the tensor core instructions: of mma.sync m16n8 with k of 32 bytes, and of wgmma m64. The last two axes
 * are rows and columns as the instruction names them (A: m, k; B: k, n; accumulator: m, n); leading axes go to
 * registers. */
typedef enum TileFragment {
    TILE_FRAGMENT_MMA_A,
    TILE_FRAGMENT_MMA_B,
    TILE_FRAGMENT_MMA_C,
    TILE_FRAGMENT_WGMMA_A,
    TILE_FRAGMENT_WGMMA_C
} TileFragment;
/* How a product's fragments lie on the warps of a block, and which rows and columns of the tile an instruction has.
 * Paired, what else would be two blocks of 8 neighbours is the even and the odd ones of 16: of mma's rows in m, of the
 * columns of two instructions in n. */
typedef struct TileFragmentPlan {
    uint8_t log_warps_m, log_warps_n;
    bool pairs_m, pairs_n;
} TileFragmentPlan;
/* `scalar_bits`: of one element of A or B (8, 16, 32). An operand is copied to the warps that differ along the axis
 * that it lacks. PTX ISA 8.7, "Matrix Fragments for mma.m16n8k16" and its kin, and "Register Fragments and Shared
 * Memory Matrix Layouts" of wgmma. */
TileLayout tile_layout_fragment(const TileLayoutShape *shape, TileFragment fragment, unsigned scalar_bits,
                                TileFragmentPlan plan);

/* ---- layouts of results ---- */

/* The axis is gone: the layout of a reduction's result, copies where the axis was spread. */
TileLayout tile_layout_slice(const TileLayout *layout, unsigned axis);
/* An axis of extent 1 is added before the axis. */
TileLayout tile_layout_expand(const TileLayout *layout, unsigned axis);
/* Result axis i is axis axes[i]. */
TileLayout tile_layout_permute(const TileLayout *layout, const unsigned *axes);
/* The same elements in row-major order under another shape, which costs nothing; false where pieces stand in the way.
 */
bool tile_layout_reshape(const TileLayout *layout, const TileLayoutShape *shape, TileLayout *result);

/* ---- what instructions ask ---- */

/* How many consecutive elements along the axis a thread has in consecutive registers from 0 on, aligned to that number:
 * the widest vector for memory that is contiguous along the axis. At most `limit`, a power of two. */
unsigned tile_layout_vector(const TileLayout *layout, unsigned axis, unsigned limit);

typedef enum TileConversionKind {
    TILE_CONVERSION_NONE,      /* the same registers */
    TILE_CONVERSION_REGISTERS, /* other registers of the same thread */
    TILE_CONVERSION_SHUFFLES,  /* lanes of the same warp */
    TILE_CONVERSION_SHARED     /* through shared memory */
} TileConversionKind;
/* The cheapest way from one layout of a shape to another. Unless it is SHARED, source(x) says where the element lies
 * that place x of the result wants, as bits of (register, lane, warp, block); of several copies the one in x's own
 * thread or warp. Both layouts have the same pieces, or it is SHARED. */
TileConversionKind tile_layout_conversion(const TileLayout *from, const TileLayout *to, TileLinear *source);

/* ---- text ---- */

/* `[64, 3*32] register 1 2 lane 4 8 16 0 0 warp 256 block`: shape in pieces, then the columns. Reads back to the same
 * layout. */
void tile_layout_print(TileText *text, const TileLayout *layout);
/* False where the text is no layout. */
bool tile_layout_read(const char *text, TileLayout *layout);

#endif
