/* Properties of folds and scans that gpu-whole and gpu-machine share. Private to ptx/. */
#ifndef TILE_PTX_GRID_SCANS_H
#define TILE_PTX_GRID_SCANS_H

#include "lang/ir/build.h"

/* The commutative op that is the whole combiner of a fold or scan, with its identity element (of a sum of floats:
 * -0); TILE_OP_COUNT if the combiner is anything else. */
TileOpId gpu_scan_op(const TileOp *fold, uint64_t *identity);

/* Do an unmasked scan and a reduction by `id` combine the same elements along the same axis? Fills with the identity
 * element are looked through. */
bool gpu_scan_matches_reduce(const TileOp *scan, const TileOp *reduce, TileOpId id);

/* Does the fold combine what the scan combines, from the same beginning on, so that its results are what the scan ends with? */
bool gpu_scan_matches_fold(const TileOp *scan, const TileOp *fold, TileArena *scratch);

#endif
