/* Tests. A test becomes a plan (program.h): tensors, runs of kernels, assertions. Other statements are checked and
 * emitted as usual, with whole tensors as tiles, into a function with one program that reads tensors and writes others;
 * shapes are known, so all of this is checked without running anything. */
#ifndef TILE_PARSER_CHECK_TEST_H
#define TILE_PARSER_CHECK_TEST_H

#include "parser/check/check.h"

/* The comparison that a condition is, or that it is `all` of; else NULL. */
const TileExpr *tile_compared(const TileExpr *expr);
bool tile_is_maker(const TileChecker *c, const TileExpr *call);
TileMeaning tile_check_maker(TileChecker *c, const TileExpr *call);
void tile_test_assert(TileChecker *c, const TileStatement *statement, const char *text);
bool tile_test_allows(const TileStatement *statement);
bool tile_test_is_done(const TileChecker *c);
/* An `if` of a test, whether or not its condition is a constant. */
void tile_test_enter_branch(TileChecker *c);
void tile_test_leave_branch(TileChecker *c);

/* ---- what test.c and run.c share ---- */

struct TileTestState {
    TileTest *plan;
    TileTestStage *stage;
    TileArena *arena;  /* for the plan */
    uint32_t number;   /* of the stage */
    TileBlock *block;  /* the top of the test */
    unsigned branches; /* enclosing `if`s, even with constant conditions: things that happen once are not allowed in
                        * them */
    bool done;         /* the stage's results have been computed: later statements are skipped */
};

uint32_t tile_test_add(TileChecker *c, const TileTestTensor *tensor);
/* The tensor as a tile; or as a tensor, if no tile can have its shape. */
TileMeaning tile_test_meaning(TileChecker *c, uint32_t number, TileSpan span);
/* Stores a value to a new tensor of the plan, in the stage that needs it. */
uint32_t tile_test_store(TileChecker *c, TileMeaning value, TileTestSource source, const TileExpr *expr);
/* Is this at the top level or in an unrolled loop? False if an error was reported. */
bool tile_at_top_of_test(TileChecker *c, TileSpan span, const char *what);

#endif
