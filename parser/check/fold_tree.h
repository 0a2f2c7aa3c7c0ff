/* Folds and scans whose function has a loop that is not unrolled, so that it is no combiner of an op. */
#ifndef TILE_PARSER_CHECK_FOLD_TREE_H
#define TILE_PARSER_CHECK_FOLD_TREE_H

#include "parser/check/check.h"

typedef struct TileFoldTree {
    unsigned count, axis; /* of values that are folded together; along which axis */
    bool reverse, exclusive;
    TileValue **init; /* of the lines' shape, or NULL */
    const TileValidity *rest; /* of the values along the other axes */
    TileSpan span;            /* of the call */
    /* Emits the function for tiles of one shape, `count` on its left and `count` on its right; false after an error. */
    bool (*apply)(TileChecker *c, void *host, TileMeaning *arguments, TileValue **results);
    void *host;
} TileFoldTree;

/* Folds or scans the values, of the shape, which become the results. `mask`, of the shape too, is true for the elements that
 * exist, NULL if all do. */
bool tile_fold_by_tree(TileChecker *c, const TileFoldTree *tree, const TileMeaning *shape, TileValue **values, TileValue *mask);
bool tile_scan_by_tree(TileChecker *c, const TileFoldTree *tree, const TileMeaning *shape, TileValue **values, TileValue *mask);

#endif
