/* Kernels that come as text of the IR, instead of as text of the language. */
#ifndef TILE_DRIVER_COMPILE_IR_TEXT_H
#define TILE_DRIVER_COMPILE_IR_TEXT_H

#include "driver/compile/unit.h"
#include "lang/ir/verify.h"

/* Reads the input's text into unit->module and checks it as code that strangers wrote. */
tile_status tile_ir_text_parse(TileUnit *unit);
/* The kernels of unit->module, in the arena of the unit. */
void tile_ir_text_list(TileUnit *unit, TileProgramInfo *program);
/* What to export of them, as `--export` names it: "softmax", "softmax as my_softmax"; without any, all. taken[i]: the
 * text has the kernel of words[i]. TILE_INVALID_ARGUMENT, and the unit's message, where a word is none. */
tile_status tile_ir_text_exports(TileUnit *unit, const char *const *words, size_t count, bool *taken,
                                 TileProgramInfo *program);
/* Leaves of the kernels of unit->module only this one, with nothing assumed of its parameters. */
void tile_ir_text_lower(TileUnit *unit, const TileKernelInfo *kernel);

/* Adds what is wrong to the unit's diagnostics, or where it stands in another file than the input's, to its message. */
void tile_ir_text_report(TileUnit *unit, const TileComplaints *complaints);

#endif
