/* Tests. A test becomes a plan (parser.h): tensors that are made, runs of kernels, assertions. What stands between is
 * checked and emitted as anywhere else, over whole tensors as tiles, into a function of one program that reads tensors
 * and writes others; shapes are known, so all of it is checked without running anything. */
#ifndef TILE_PARSER_CHECK_TEST_H
#define TILE_PARSER_CHECK_TEST_H

#include "parser/check/check.h"

/* The comparison that a condition is, or is `all` of; else NULL. */
const TileExpr *tile_compared(const TileExpr *expr);
bool tile_is_maker(const TileChecker *c, const TileExpr *call);
TileMeaning tile_check_maker(TileChecker *c, const TileExpr *call);
void tile_test_assert(TileChecker *c, const TileStatement *statement, const char *text);
bool tile_test_allows(const TileStatement *statement);
bool tile_test_is_done(const TileChecker *c);
/* An `if` of a test, whether or not its condition is known. */
void tile_test_enter_branch(TileChecker *c);
void tile_test_leave_branch(TileChecker *c);

/* ---- what test.c and run.c share ---- */

struct TileTestState {
    TileTest *plan;
    TileTestStage *stage;
    TileArena *arena;  /* of the plan */
    uint32_t number;   /* of the stage */
    TileBlock *block;  /* the top of the test */
    unsigned branches; /* of an `if` around: also one that is always taken is no place for what is done once */
    bool done;         /* what the stage computes is there: the rest is not looked at */
};

uint32_t tile_test_add(TileChecker *c, const TileTestTensor *tensor);
/* The tensor as a tile, or as a tensor where no tile has its shape. */
TileMeaning tile_test_meaning(TileChecker *c, uint32_t number, TileSpan span);
/* Stores a value into a tensor of the plan, which is new; in the stage that wants it. */
uint32_t tile_test_store(TileChecker *c, TileMeaning value, TileTestSource source, const TileExpr *expr);
/* Is this outside of what is not unrolled? False when reported. */
bool tile_at_top_of_test(TileChecker *c, TileSpan span, const char *what);

#endif
