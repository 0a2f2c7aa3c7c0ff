/* What the IR of kernels has to be that did not come from the parser: text of other compilers, or what a pass of
 * another project leaves. */
#ifndef TILE_LANG_IR_PROGRAM_H
#define TILE_LANG_IR_PROGRAM_H

#include "lang/ir/verify.h"

/* Beside what the verifier asks of it: kernels, and functions that they call, in tile form; kernels take tensors and
 * scalars, read none that is `out` and write none that is `in`, and do outside of their grids only what a launcher can
 * compute; no function calls itself; no op is one that only our own passes make. Empty where all is well. */
TileComplaints tile_program_complaints(const TileModule *module, TileArena *arena);

#endif
