/* How the layouts of an op's tiles hang together (lang/layout/layout.h): elementwise ops, loops and branches have one type,
 * and so one layout, for what belongs together; what changes a tile's shape has rules of its own. All else takes and
 * gives tiles in any layout.
 *
 * Every function is pure. */
#ifndef TILE_LANG_IR_LAYOUT_RULES_H
#define TILE_LANG_IR_LAYOUT_RULES_H

#include "lang/ir/ir.h"
#include "lang/layout/layout.h"

TileLayoutShape tile_layout_shape(const TileType *tile);
/* The layout of a result whose operand 0 has this one: reductions, folds, permute and reshape. False where the result
 * may have any. */
bool tile_layout_of_result(const TileOp *op, const TileLayout *operand, TileLayout *result);
/* The layout of an operand of an op whose result, or accessed tile, has this one: broadcast and the indices of gathers;
 * for permute and reshape one from which that result follows. False where the operand may have any. */
bool tile_layout_of_operand(const TileOp *op, unsigned index, const TileLayout *result, TileLayout *operand);
/* The tile that a load, a store or an update is about; NULL in other ops, and where it is a scalar. */
const TileValue *tile_accessed_tile(const TileOp *op);
/* NULL, or what is wrong with the layouts of the op's tiles in a function of so many threads a block. Tiles whose
 * layout is not decided agree with any. */
const char *tile_op_check_layouts(const TileOp *op, uint32_t threads);

#endif
