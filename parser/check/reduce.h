/* Reductions and dot. Invalid elements along the reduced axis are replaced by the identity element before the op. */
#ifndef TILE_PARSER_CHECK_REDUCE_H
#define TILE_PARSER_CHECK_REDUCE_H

#include "parser/check/check.h"

TileMeaning tile_check_reduction(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
TileMeaning tile_check_mean(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
TileMeaning tile_check_arg_reduction(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
/* The set of axes in `axis =`, or all of them. False if an error was reported. */
bool tile_check_axes(TileChecker *c, const TileExpr *call, unsigned rank, unsigned *axes);
bool tile_check_axes_of(TileChecker *c, const TileExpr *expr, unsigned rank, unsigned *axes);
/* The operand of a reduction: a tile. */
TileMeaning tile_check_reduced(TileChecker *c, const TileExpr *call, const char *const *names);
/* The type in which sums and products of the scalar type are accumulated. */
TileScalar tile_accumulator(TileName kind, TileScalar scalar);
TileMeaning tile_check_dot(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
/* `exprs`: the operands' expressions. */
TileMeaning tile_apply_dot(TileChecker *c, TileMeaning a, TileMeaning b, const TileMeaning *acc, TileName precision,
                           const TileExpr *const *exprs, TileSpan span);

/* Axis `number`, which is `sum`, of `rank`; negative ones count from the end. False if an error was reported. */
bool tile_find_axis(TileChecker *c, const TileSum *sum, int64_t number, unsigned rank, const TileExpr *expr,
                    int64_t *axis);

#endif
