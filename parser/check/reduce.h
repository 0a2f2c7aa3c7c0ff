/* Reductions and dot. What is invalid along the reduced axis becomes the identity before the op. */
#ifndef TILE_PARSER_CHECK_REDUCE_H
#define TILE_PARSER_CHECK_REDUCE_H

#include "parser/check/check.h"

TileMeaning tile_check_reduction(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
TileMeaning tile_check_mean(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
TileMeaning tile_check_arg_reduction(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
/* The set of axes named by `axis =`, all of them where none is. False when reported. */
bool tile_check_axes(TileChecker *c, const TileExpr *call, unsigned rank, unsigned *axes);
bool tile_check_axes_of(TileChecker *c, const TileExpr *expr, unsigned rank, unsigned *axes);
/* The operand of a reduction: a tile. */
TileMeaning tile_check_reduced(TileChecker *c, const TileExpr *call, const char *const *names);
/* The type that sums and products of the scalar are computed in. */
TileScalar tile_accumulator(TileName kind, TileScalar scalar);
TileMeaning tile_check_dot(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
/* `exprs`: what the operands are in the text. */
TileMeaning tile_apply_dot(TileChecker *c, TileMeaning a, TileMeaning b, const TileMeaning *acc, TileName precision,
                           const TileExpr *const *exprs, TileSpan span);

#endif
