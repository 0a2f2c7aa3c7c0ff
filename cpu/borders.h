/* Masks of the rows of a loop: which rows they are true for, where comparisons with bounds say so. */
#ifndef TILE_CPU_BORDERS_H
#define TILE_CPU_BORDERS_H

#include "lang/ir/build.h"

enum { TILE_ROW_BOUNDS = 8 };

/* A mask is true for the rows from each of `first` on and before each of `end`, where all of `all` are true. */
typedef struct TileRowMask {
    TileValue *first[TILE_ROW_BOUNDS], *end[TILE_ROW_BOUNDS], *all[TILE_ROW_BOUNDS];
    unsigned first_count, end_count, all_count;
} TileRowMask;

/* Reads what the loop's mask compares its row with, values from outside of the loop. False: it is another mask. */
bool tile_row_mask_read(const TileOp *loop, TileValue *mask, TileRowMask *read);

#endif
