/* Inside of the checker of tests: check_test.c (tensors, assertions, the whole) and check_run.c (runs of kernels). */
#ifndef TILE_PARSER_CHECK_TEST_H
#define TILE_PARSER_CHECK_TEST_H

#include "parser/check/check.h"

struct TileTestState {
    TileTest *plan;
    TileTestStage *stage;
    TileArena *arena; /* of the plan */
    uint32_t number;  /* of the stage */
    TileBlock *block; /* the top of the test */
    unsigned branches; /* of an `if` around: also one that is always taken is no place for what is done once */
    bool done;        /* what the stage computes is there: the rest is not looked at */
};

uint32_t tile_test_add(TileChecker *c, const TileTestTensor *tensor);
/* The tensor as a tile, or as a tensor where no tile has its shape. */
TileMeaning tile_test_meaning(TileChecker *c, uint32_t number, TileSpan span);
/* Stores a value into a tensor of the plan, which is new; in the stage that wants it. */
uint32_t tile_test_store(TileChecker *c, TileMeaning value, TileTestSource source, const TileExpr *expr);
/* Is this outside of what is not unrolled? False when reported. */
bool tile_at_top_of_test(TileChecker *c, TileSpan span, const char *what);

#endif
