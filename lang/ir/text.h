/* The text form of the IR. What the printer writes, the reader reads back to an equal module, and printing that
 * gives the same text:
 *
 *   func kernel tile @double(%x: tensor<f32, 1, in> {align = 64, stride0 = 4}, %y: tensor<f32, 1, out>) {
 *     %n = dim %x {axis = 0} : i64
 *     grid %n (%i: i64) {
 *       %v = load_tile %x, %i {access = [index]} : f32
 *       %0 = add %v, %v : f32
 *       store_tile %y, %0, %i {access = [index]}
 *       yield
 *     }
 *     return
 *   }
 *
 * A value is called by its hint, made unique by a number after a point, or by a number alone. Words in quotes
 * stand for names of other characters. Tiles on a GPU have layouts (lang/layout/layout.h), which stand by number behind their
 * types, as in f32[64] layout 0, and in full at the top of the function: layout 0 = [64] register 1 lane 2 4 ...
 * Operands begin on the line of the op's name; otherwise line ends mean nothing. Comments run from // to the end of the
 * line. */
#ifndef TILE_LANG_IR_TEXT_H
#define TILE_LANG_IR_TEXT_H

#include "lang/ir/ir.h"
#include "tile/status.h"

enum {
    TILE_PRINT_LOCATIONS = 1,  /* @line:column after ops and functions that have a location */
    TILE_PRINT_NO_REGIONS = 2, /* tile_op_print: only the line of the op itself */
    TILE_PRINT_FILES = 4,      /* tile_module_print: first, file "name" for each file that locations refer to */
};

void tile_module_print(TileText *text, const TileModule *module, unsigned options);
void tile_func_print(TileText *text, const TileFunc *func, unsigned options);
/* Prints the op with the value names of its function's text. */
void tile_op_print(TileText *text, const TileOp *op, unsigned options);

/* Reads functions into a new module. Checks only the syntax and that names are defined before use: the caller has to
 * run the verifier. On TILE_INVALID_SOURCE, `errors` holds "line:column: reason". */
tile_status tile_module_read(TileContext *context, const char *text, size_t length, TileModule **module,
                             TileText *errors);
/* The same; ops and functions without a location get their location in this text, which is this file of the context. */
tile_status tile_module_read_file(TileContext *context, uint32_t file, const char *text, size_t length,
                                  TileModule **module, TileText *errors);
/* Does the text begin as the IR's text form does? No text of the language does. */
bool tile_text_is_ir(const char *text, size_t length);

/* A type, as in "f32[4, 64]"; NULL if it is not one, and `errors` says why. */
const TileType *tile_type_read(TileContext *context, const char *text, TileText *errors);
/* Reads attributes without their braces, as in "kind = sum, axis = 1", and sets them. A constant's result type has to
 * be known. False on an error, described by `errors`. */
bool tile_op_read_attributes(TileModule *module, TileOp *op, const char *text, TileText *errors);

#endif
