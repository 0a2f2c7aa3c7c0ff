/* Tensor maps: what they can copy, and in which boxes. Private to ptx/. */
#ifndef TILE_PTX_TARGET_MAP_H
#define TILE_PTX_TARGET_MAP_H

#include "lang/ir/operands.h"
#include "ptx/target/dot.h"

/* NULL: boxes of equal height can make up the tile, whose rows are those of a tensor, or one box of more axes does; else why
 * not. */
const char *gpu_map_fits_tile(const TileType *tile);
const char *gpu_map_fits_vector(const TileType *tile);
/* NULL: a map can describe the tensor; else why it cannot. Records that the fact was asked for. */
const char *gpu_map_fits_tensor(TileParameter *parameter, const TileType *tensor);
/* From one lane of the index to the next, in elements of the tensor: 1 for an index of a point; 0: it is not known, or none. */
int64_t gpu_step_of_index(const TileAccessIndex *index);
/* Is the tile, or part of it, copied by a tensor map? */
static inline bool gpu_by_map(const TileOp *op) { return tile_op_integer(op, TILE_ATTRIBUTE_TENSOR_MAP, 0) != 0; }

/* Does the store's tile pass through shared memory, without a map? */
static inline bool gpu_by_rows(const TileOp *op) { return tile_op_integer(op, TILE_ATTRIBUTE_BY_ROWS, 0) != 0; }

/* The type of a tile that maps read or write: in panels of at most 128 bytes of each row. */
const TileType *gpu_panel_type(TileContext *context, const TileType *tile);
/* That of a tile that a map copies there, for wgmma: where these panels would have less than 64 bytes, they have 128, if rows are long
 * enough. The last one then holds what lies behind the tile, too, which nothing reads. */
const TileType *gpu_copied_panel_type(TileContext *context, const TileType *tile);
/* The type of a vector in shared memory, which threads read as they need it: a row without a swizzle. */
const TileType *gpu_vector_type(TileContext *context, const TileType *tile);
/* The type of a tile or vector as it is read from a slot: rows. */
const TileType *gpu_copied_type(TileContext *context, const TileType *tile);
/* Alignment of such a tile: the bits of an address that decide on the swizzle are those of the place in the tile. */
enum { GPU_PANEL_ALIGN = 1024, GPU_PANEL_BYTES = 128, GPU_BOX_ROWS = 256 };

/* In which parts so many blocks copy a tile of two axes by a map, each the same: 0: they cannot; panels, of which a row has several; or
 * rows of each panel. */
typedef enum GpuCopyParts { GPU_PARTS_NONE, GPU_PARTS_PANELS, GPU_PARTS_ROWS } GpuCopyParts;
GpuCopyParts gpu_parts_of_copy(const TileType *tile, int64_t blocks);

#endif
