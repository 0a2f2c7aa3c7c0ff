/* The verifier: every invariant that holds between passes. */
#ifndef TILE_LANG_IR_VERIFY_H
#define TILE_LANG_IR_VERIFY_H

#include "base/list.h"
#include "lang/ir/ir.h"

/* What is wrong, and with which op. */
typedef struct TileComplaint {
    const TileFunc *func;
    const TileOp *op;  /* NULL: the function */
    const char *words; /* the op with its types, and the reason */
} TileComplaint;
typedef TILE_LIST(TileComplaint) TileComplaints;

/* Checks structure (lists, uses, blocks, terminators), dominance of uses by definitions, forms, attributes, counts and
 * type rules. Appends every complaint, each on a line of its own with its op, to `errors` (which may be NULL). True if
 * there are none. */
bool tile_func_verify(const TileFunc *func, TileText *errors);
bool tile_module_verify(const TileModule *module, TileText *errors);
/* The same as a list in `arena`, which is empty if nothing is wrong. At most 50 for each function. */
TileComplaints tile_module_complaints(const TileModule *module, TileArena *arena);

/* verify_channels.c: checks the type of an acquire, wait, commit or release, and the uses of the slot that it takes.
 * NULL, or what is wrong. */
const char *tile_channel_misuse(const TileOp *op);
/* verify_turns.c: checks where a turn stands, begins and ends. NULL, or what is wrong. */
const char *tile_turn_misuse(const TileOp *op);
/* verify_clusters.c: checks ops of clusters against their function. NULL, or what is wrong. */
const char *tile_cluster_misuse(const TileOp *op);

/* verify_homes.c: checks what the op says of where its tiles live, and of points that are computed together. NULL, or what is
 * wrong. */
const char *tile_home_misuse(const TileOp *op);

#endif
