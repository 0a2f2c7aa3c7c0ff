/* The rewrite table (rewrites.def) and its matcher. */
#ifndef TILE_LOWERING_REWRITE_H
#define TILE_LOWERING_REWRITE_H

#include "lang/ir/build.h"

/* A code of a pattern: below TILE_OP_COUNT an operation, followed by its operands, else one of these. */
enum {
    TILE_REWRITE_X = TILE_OP_COUNT,
    TILE_REWRITE_Y,
    TILE_REWRITE_Z,
    TILE_REWRITE_W,
    TILE_REWRITE_C,
    TILE_REWRITE_D,
    TILE_REWRITE_ZERO,
    TILE_REWRITE_ONE,
    TILE_REWRITE_MINUS_ONE,
    TILE_REWRITE_MINUS_ZERO,
    TILE_REWRITE_ONES,
    TILE_REWRITE_END
};
_Static_assert(TILE_REWRITE_END <= UINT8_MAX, "codes are bytes");

/* Sets of types: bits. */
enum {
    TILE_REWRITE_INT = 1,
    TILE_REWRITE_FLOAT = 2,
    TILE_REWRITE_BOOL = 4,
};

enum { TILE_REWRITE_LENGTH = 8 };

typedef struct TileRewrite {
    const char *name;
    uint8_t types;
    uint8_t pattern[TILE_REWRITE_LENGTH], replacement[TILE_REWRITE_LENGTH];
} TileRewrite;

const TileRewrite *tile_rewrites(size_t *count);
/* Bits of a constant code in an element type. */
uint64_t tile_rewrite_constant(unsigned code, TileScalar scalar);
/* f8 is not rewritten, since its operations saturate infinities. */
bool tile_rewrite_takes(const TileRewrite *rewrite, TileScalar scalar);

/* A value equal to the op's result, by the first row that matches; built at the builder's insertion point. NULL: none
 * matches. */
TileValue *tile_rewrite_op(TileBuilder *builder, const TileOp *op);

#endif
