/* Kernels given as text of the IR instead of text of the language. */
#ifndef TILE_DRIVER_COMPILE_IR_TEXT_H
#define TILE_DRIVER_COMPILE_IR_TEXT_H

#include "driver/compile/unit.h"
#include "lang/ir/verify.h"

/* Reads the input's text into unit->module and verifies it as untrusted input. */
tile_status tile_ir_text_parse(TileUnit *unit);
/* The kernels of unit->module, in the arena of the unit. */
void tile_ir_text_list(TileUnit *unit, TileProgramInfo *program);
/* The requested exports, as `--export` writes them: "softmax", "softmax as my_softmax"; if there are none, all kernels.
 * taken[i]: the text has the kernel of words[i]. TILE_INVALID_ARGUMENT, with the unit's message, where one is
 * malformed. */
tile_status tile_ir_text_exports(TileUnit *unit, const char *const *words, size_t count, bool *taken,
                                 TileProgramInfo *program);
/* Removes all other kernels from unit->module, and all facts about this one's parameters. */
void tile_ir_text_lower(TileUnit *unit, const TileKernelInfo *kernel);

/* Adds complaints to the unit's diagnostics; those located in another file, to its message. */
void tile_ir_text_report(TileUnit *unit, const TileComplaints *complaints);

#endif
