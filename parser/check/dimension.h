/* Dimensions of the tensors of a kernel: names that they bind or are solved for, and expressions that are compared. */
#ifndef TILE_PARSER_CHECK_DIMENSION_H
#define TILE_PARSER_CHECK_DIMENSION_H

#include "parser/check/check.h"

typedef struct TileBoundParam {
    const TileParam *param;
    TileTensor *tensor; /* NULL for scalars */
} TileBoundParam;

typedef struct TileBoundParams {
    const TileItem *item;
    TILE_LIST(TileBoundParam) params;
} TileBoundParams;

/* Is the extent, if it is known, valid for a tensor? False if an error was reported. */
bool tile_check_dimension(TileChecker *c, const TileSum *extent, const TileExpr *expr);
/* Records that a launch checks that the extent, which a tensor has, does not wrap. */
void tile_require_exact(TileChecker *c, const TileSum *extent, TileSpan span);
/* The extent of the IR's tensor: along an axis whose elements share bytes, the number of bytes. */
const TileSum *tile_tensor_extent(TileChecker *c, const TileTensor *tensor, unsigned d);
/* Binds the names in dimensions, and emits the checks of a launch. */
void tile_bind_dimensions(TileChecker *c, const TileBoundParams *kernel);

#endif
