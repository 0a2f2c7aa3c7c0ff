/* Branches: both sides are emitted; variables that differ between them become results of the branch. */
#ifndef TILE_PARSER_CHECK_BRANCH_H
#define TILE_PARSER_CHECK_BRANCH_H

#include "parser/check/check.h"

/* Emits a branch with two sides, and joins their variables and values. */
typedef struct TileBranch {
    TileMeaning (*run)(TileChecker *c, const void *state);
    const void *state;
    const TileExpr *value; /* the expression of its value in the text; may be NULL */
} TileBranch;
/* A side without effect. */
TileMeaning tile_run_nothing(TileChecker *c, const void *state);
TileMeaning tile_join_branches(TileChecker *c, TileMeaning condition, TileBranch then, TileBranch otherwise,
                               bool want_value, TileSpan span);
/* The side that a constant condition chooses; the other one is not looked at. */
TileMeaning tile_run_chosen(TileChecker *c, TileMeaning condition, TileBranch then, TileBranch otherwise);
TileMeaning *tile_vars_snapshot(TileChecker *c);
void tile_vars_restore(TileChecker *c, const TileMeaning *before, size_t count);
bool tile_enter_region(TileChecker *c, TileSpan span);

#endif
