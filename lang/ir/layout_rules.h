/* Constraints on the layouts of an op's tiles (lang/layout/layout.h). Values of elementwise ops, loops and branches
 * that have one type have one layout; ops that change a tile's shape have their own rules. All other ops accept any
 * layouts of operands and results.
 *
 * Every function is pure. */
#ifndef TILE_LANG_IR_LAYOUT_RULES_H
#define TILE_LANG_IR_LAYOUT_RULES_H

#include "lang/ir/ir.h"
#include "lang/layout/layout.h"

TileLayoutShape tile_layout_shape(const TileType *tile);
/* Is the op a slice without lanes at the end, or a cat whose second tile is uniform, so that a layout can have the same place for
 * each lane of both tiles: are the lanes that only one of them has padding of the other, up to the next power of two? */
bool tile_op_cuts_padding(const TileOp *op);
/* Can the op leave elements in their threads: does it cut padding, or is it a slice that is one half of its operand, or a cat of two
 * halves, of extents that are powers of two? */
bool tile_op_cuts_registers(const TileOp *op);
/* The layout of a result if operand 0 has this one: reductions, folds, permute, reshape, and what cuts registers. False if the
 * result may have any layout. */
bool tile_layout_of_result(const TileOp *op, const TileLayout *operand, TileLayout *result);
/* The layout of an operand if the op's result, or accessed tile, has this one: broadcast and the indices of gathers;
 * for permute and reshape one that implies that of the result. False if the operand may have any layout. */
bool tile_layout_of_operand(const TileOp *op, unsigned index, const TileLayout *result, TileLayout *operand);
/* The tile that a load, a store or an update accesses; NULL for other ops and for scalars. */
const TileValue *tile_accessed_tile(const TileOp *op);
/* NULL, or what is wrong with the layouts of the op's tiles, for so many threads of a block. Tiles without a layout are
 * compatible with any. */
const char *tile_op_check_layouts(const TileOp *op, uint32_t threads);

#endif
