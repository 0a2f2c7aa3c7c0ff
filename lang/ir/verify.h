/* The verifier: every rule that holds between passes. */
#ifndef TILE_LANG_IR_VERIFY_H
#define TILE_LANG_IR_VERIFY_H

#include "base/list.h"
#include "lang/ir/ir.h"

/* What is wrong, and where. */
typedef struct TileComplaint {
    const TileFunc *func;
    const TileOp *op;  /* NULL: the function */
    const char *words; /* the op with its types, and the reason */
} TileComplaint;
typedef TILE_LIST(TileComplaint) TileComplaints;

/* Checks structure (lists, uses, blocks, terminators), definition before use, forms, attributes, counts and type
 * rules. Reports every complaint, each on a line of its own together with the op it is about, into `errors`
 * (which may be NULL). True when there is none. */
bool tile_func_verify(const TileFunc *func, TileText *errors);
bool tile_module_verify(const TileModule *module, TileText *errors);
/* The same as a list in `arena`, which is empty where there is none. At most 50 for each function. */
TileComplaints tile_module_complaints(const TileModule *module, TileArena *arena);

/* verify_channels.c: what is wrong with how the op, which is of its type, or the slot that it takes is used; NULL:
 * nothing. */
const char *tile_channel_misuse(const TileOp *op);

#endif
