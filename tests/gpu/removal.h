/* Ops that order threads, copies and products, which tests take out of machine code, one at a time; and the list of those whose
 * absence nobody need notice. */
#ifndef TESTS_GPU_REMOVAL_H
#define TESTS_GPU_REMOVAL_H

#include "lang/ir/ir.h"
#include "lang/ir/text.h"

/* The op with this number among those of the block, counted from 1; otherwise NULL, and `left` is less by their count. */
TileOp *removal_find(TileBlock *block, unsigned *left);
/* The results of a wait for products become its operands. */
void removal_erase(TileOp *op);
/* Puts an assertion that fails in front of the op, with this text: whether a run reaches it. */
#define REMOVAL_PROBE "this is not reached"
void removal_probe(TileModule *module, TileOp *op);

/* How many ops of each kind were taken out of a kernel without a report. */
typedef struct Removals {
    unsigned unnoticed[TILE_OP_COUNT];
} Removals;

/* Compares with lines `NAME OP COUNT reason` of the list, whose text begins with a line break: adds a line to `report` for each
 * kind whose count is another one. Returns how many are listed; `good` becomes false if the counts differ. */
unsigned removals_compare(const Removals *removals, const char *list, const char *name, TileText *report, bool *good);

#endif
