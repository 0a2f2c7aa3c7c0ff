/* Shapes: agreement of extents, broadcasting, and the same elements in another shape. */
#ifndef TILE_PARSER_CHECK_SHAPE_H
#define TILE_PARSER_CHECK_SHAPE_H

#include "parser/check/check.h"

TileMeaning tile_stretch(TileChecker *c, TileMeaning m, unsigned rank, const TileSum *const *extent);
/* In a lifted function: broadcasts a scalar to the common shape of the arguments. */
TileMeaning tile_lift(TileChecker *c, TileMeaning m);
/* Broadcasts all to a common shape. False if an error was reported. */
bool tile_unify_shapes(TileChecker *c, TileMeaning *operands, unsigned count, TileSpan span);
/* The same; from the expressions, proposes edits that make the ranks equal. */
bool tile_unify_shapes_of(TileChecker *c, TileMeaning *operands, const TileExpr *const *exprs, unsigned count,
                          TileSpan span);
/* v[0] ? v[1] : v[2], elementwise; v[1] and v[2] have a common type. */
TileMeaning tile_select_meaning(TileChecker *c, TileMeaning *v, TileSpan span);
TileMeaning tile_transpose(TileChecker *c, TileMeaning m, const int64_t *axes);
/* Another shape with the same elements; map gives the new index of each old axis. */
TileMeaning tile_reshape_to(TileChecker *c, TileMeaning m, unsigned rank, const TileSum *const *extent,
                            const int8_t *map);

#endif
