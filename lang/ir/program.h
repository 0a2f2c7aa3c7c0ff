/* Checks for kernels' IR that did not come from the parser: text of other compilers, or the result of a pass of another
 * project. */
#ifndef TILE_LANG_IR_PROGRAM_H
#define TILE_LANG_IR_PROGRAM_H

#include "lang/ir/verify.h"

/* Requirements beyond the verifier's: kernels, and the functions that they call, are in tile form; kernels have tensors
 * and scalars as parameters, do not read `out` tensors or write `in` tensors, and outside of grids do only what a
 * launcher can compute; there is no recursion; no op is one that only our own passes create. Empty if all hold. */
TileComplaints tile_program_complaints(const TileModule *module, TileArena *arena);

#endif
