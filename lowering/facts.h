/* What is known of integers: for each lane of a value of integer or bool type a range, and a number that divides it.
 *
 * Facts follow from constants, loop bounds, program numbers, comparisons of a value with its own bound, and from
 * what a specialised variant may assume of its parameters (TileTensorFacts). `because` says which assumptions
 * a fact rests on: whoever commits to a fact calls tile_facts_use, and only what was used is guarded at launch. */
#ifndef TILE_LOWERING_FACTS_H
#define TILE_LOWERING_FACTS_H

#include "lang/ir/ir.h"

typedef struct TileFact {
    int64_t lo, hi;   /* lo <= value <= hi; u64 beyond INT64_MAX is not described: then the range is whole */
    int64_t multiple; /* divides the value; 0 when the value is 0 */
    uint64_t because; /* set of assumptions of this TileFacts */
} TileFact;

typedef struct TileFacts TileFacts;

/* Facts are found when asked for and kept; a changed function needs a new TileFacts. */
TileFacts *tile_facts_create(TileArena *arena, TileFunc *func);
TileFact tile_facts_get(TileFacts *facts, const TileValue *value);
/* What is known of x - y, as a whole number that does not wrap; a bound past 64 bits is the outermost one. */
TileFact tile_facts_difference(TileFacts *facts, const TileValue *x, const TileValue *y);
/* Marks the assumptions in the function's parameters (used_extent). */
void tile_facts_use(TileFacts *facts, uint64_t because);

/* From now on extents that are parameters of machine form are multiples of a power of two; each is an assumption of its
 * own, of which tile_facts_ask knows whether it holds. */
void tile_facts_suppose(TileFacts *facts, int64_t divisor);
/* Do all of them hold? The parameters learn what was asked for and, where it holds, that it is relied on. */
bool tile_facts_ask(TileFacts *facts, uint64_t because);

static inline bool tile_fact_is_constant(TileFact fact) { return fact.lo == fact.hi; }

#endif
