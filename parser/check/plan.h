/* The plan of a test under construction (program.h): its tensors, and where its statements stand. */
#ifndef TILE_PARSER_CHECK_PLAN_H
#define TILE_PARSER_CHECK_PLAN_H

#include "parser/check/check.h"

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
/* An `if` of a test, whether or not its condition is a constant. */
void tile_test_enter_branch(TileChecker *c);
void tile_test_leave_branch(TileChecker *c);
bool tile_test_is_done(const TileChecker *c);

#endif
