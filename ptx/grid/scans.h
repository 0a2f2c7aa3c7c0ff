/* What is known of folds, scans and the lines that they go along. Shared by gpu-whole and gpu-machine; private to ptx/.
 */
#ifndef TILE_PTX_GRID_SCANS_H
#define TILE_PTX_GRID_SCANS_H

#include "lang/ir/build.h"

/* The one op that a fold or scan combines by, which commutes, and the bits that change no number they are combined
 * with; TILE_OP_COUNT where the combiner is another. Of a sum of floats that is -0. */
TileOpId gpu_scan_op(const TileOp *fold, uint64_t *nothing);

/* Are the lines that a scan without a mask goes along those that a reduction by `id` is about? What fills put in the
 * place of missing elements changes neither. */
bool gpu_scans_lines(const TileOp *scan, const TileOp *reduce, TileOpId id);

#endif
