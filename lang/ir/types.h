/* Types of values in both forms of the IR. Types are interned in a context: equal types are equal pointers. */
#ifndef TILE_LANG_IR_TYPES_H
#define TILE_LANG_IR_TYPES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/limits.h"
#include "base/string.h"
#include "lang/scalar/types.h"

enum { TILE_CHUNK_BYTES = 16, TILE_MAX_LOG_CHUNKS = 3 };

typedef enum TileTypeKind {
    TILE_TYPE_SCALAR,  /* f32 */
    TILE_TYPE_TILE,    /* f32[4, 64]; rank 1 to 5. A rank-0 tile is a scalar. */
    TILE_TYPE_TENSOR,  /* tensor<f32, 2, in>: a view of memory with run-time extents and strides */
    TILE_TYPE_POINTER, /* ptr<global>; ptr<shared, f16[64, 32], swizzle 64 rows>: to a tile of two axes */
    TILE_TYPE_VECTOR,  /* vec<16 x f32>; scalable: vec<[4] x f32> */
    TILE_TYPE_CHANNEL, /* channel<f16[64, 32], swizzle 64 rows>: slots of shared memory for tiles of two axes */
} TileTypeKind;

typedef enum TileAccess { TILE_ACCESS_IN, TILE_ACCESS_OUT, TILE_ACCESS_INOUT, TILE_ACCESS_TEMP } TileAccess;
/* A pointer to a map is a parameter of a phase and nothing else: it points to a tensor map (base/tensor_map.h). */
typedef enum TileSpace { TILE_SPACE_GLOBAL, TILE_SPACE_SHARED, TILE_SPACE_SCRATCH, TILE_SPACE_MAP } TileSpace;

/* How chunks of 16 bytes are permuted in a tile of shared memory, whose rows are contiguous (but for PANELS): within each
 * group of 2, 4 or 8 chunks, the chunk's number is xor-ed with a number derived from the row. */
typedef enum TileSwizzle {
    TILE_SWIZZLE_NONE,
    TILE_SWIZZLE_ROWS,  /* neighbouring rows by 1: the same chunk of 8 rows is in different banks */
    TILE_SWIZZLE_WORDS, /* by 2: for reads of single words of 32 bits, from two chunks of four rows at a time */
    TILE_SWIZZLE_BYTES, /* also by bits of row / 8: for reads of bytes along a column of 16 rows */
    TILE_SWIZZLE_PANELS, /* as ROWS; each group of chunks, of all rows, is a panel, and panels lie one after another: as
                          * tensor maps write and wgmma reads it */
    TILE_SWIZZLE_COLUMNS /* no chunk is permuted: the columns lie one after another, each a chunk apart from the next, so that
                          * the neighbours of a row are in different banks */
} TileSwizzle;

struct TileLayout; /* lang/layout/layout.h */

typedef struct TileType {
    TileTypeKind kind;
    TileScalar scalar;                  /* element; of pointers where they have a rank */
    uint8_t rank;                       /* tiles, tensors, channels; pointers: 2 if they point to a tile, else 0 */
    uint8_t access;                     /* tensors: TileAccess */
    uint8_t space;                      /* pointers: TileSpace */
    bool scalable;                      /* vectors */
    uint8_t swizzle, log_chunks;        /* of pointers with extents: TileSwizzle; log2 of the number of chunks in a
                                         * group */
    int64_t extent[TILE_MAX_TILE_RANK]; /* tiles: extents; pointers, channels: as stored; vectors: extent[0] lanes (per
                                         * 128 bits if scalable) */
    const struct TileLayout *layout;    /* tiles: which thread holds which elements, interned; NULL: not decided */
} TileType;

typedef struct TileTypeTable TileTypeTable;
TileTypeTable *tile_type_table_create(TileArena *arena);
const TileType *tile_type_intern(TileTypeTable *table, const TileType *type);
const TileType *tile_type_intern_scalar(TileTypeTable *table, TileScalar scalar);
/* Equal layouts are equal pointers. */
const struct TileLayout *tile_layout_intern(TileTypeTable *table, const struct TileLayout *layout);

static inline bool tile_type_is_scalar(const TileType *type) { return type->kind == TILE_TYPE_SCALAR; }
static inline bool tile_type_is_tile(const TileType *type) { return type->kind == TILE_TYPE_TILE; }
/* The number of lanes of a scalar (1), tile or fixed vector. */
int64_t tile_type_lanes(const TileType *type);
/* Same kind and extents, whatever element type and layout: required of the operands of elementwise ops. */
bool tile_type_same_shape(const TileType *a, const TileType *b);
void tile_type_print(TileText *text, const TileType *type);

#endif
