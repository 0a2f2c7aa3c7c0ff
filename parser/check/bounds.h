/* Bounds of integers: between which numbers a scalar, or the valid elements of a tile, lie. */
#ifndef TILE_PARSER_CHECK_BOUNDS_H
#define TILE_PARSER_CHECK_BOUNDS_H

#include "parser/check/check.h"
#include "parser/syntax/lex.h"

/* Exact integers, inclusive; NULL: unknown. */
typedef struct TileBounds {
    const TileSum *lowest, *highest;
} TileBounds;

/* The value of an integer of rank 0, that of a u64 as an i64 of the same bits; NULL if it has no sum. */
const TileSum *tile_scalar_sum(TileChecker *c, const TileMeaning *m);
TileBounds tile_bounds_of(TileChecker *c, const TileMeaning *m);
/* Numbers that bound it where the conditions that hold here do not: for what leaves the side of an `if`. */
TileBounds tile_bounds_told(TileChecker *c, const TileMeaning *m);
/* Of an operator, a minimum, a maximum, or one of two values, for operands of one type; unknown where the operation may
 * wrap. */
TileBounds tile_bounds_of_operator(TileChecker *c, TileTokenKind op, const TileMeaning *a, const TileMeaning *b);
TileBounds tile_bounds_of_extremum(TileChecker *c, TileOpId op, TileBounds a, TileBounds b);
TileBounds tile_bounds_of_clamp(TileChecker *c, TileBounds x, TileBounds low, TileBounds high);
TileBounds tile_bounds_of_either(TileChecker *c, TileBounds a, TileBounds b);
/* The bounds of a value that is converted to another type of integers; unknown where it may wrap. */
TileBounds tile_bounds_as(TileChecker *c, const TileMeaning *m, TileScalar to);
/* Any valid element of a tile as a sum, the number itself of a scalar (element.c); the same of an operator's result. NULL
 * if it has none. Of a tile that is the same number in all lanes it is no sum of that number: there may be no valid lane. */
const TileSum *tile_element_sum(TileChecker *c, const TileMeaning *m);
const TileSum *tile_element_of_operator(TileChecker *c, TileTokenKind op, const TileMeaning *a, const TileMeaning *b);
/* Names the symbol that stands for a scalar, if it has no name; for messages. */
void tile_name_symbol(const TileMeaning *m, const char *name);
/* Of a scalar that may wrap in a narrower type: what is not negative does not grow. */
TileBounds tile_bounds_truncated(TileChecker *c, const TileMeaning *m);
/* The result of an operation with these bounds. */
TileMeaning tile_bounded(TileChecker *c, TileMeaning m, TileBounds bounds);
/* The same of a scalar that has bounds: these hold, too. */
void tile_bound_also(TileChecker *c, const TileMeaning *m, TileBounds bounds);
/* An operator of scalars of a narrower type than i64 as a sum; NULL where it may wrap. */
const TileSum *tile_narrow_sum(TileChecker *c, TileTokenKind op, const TileMeaning *a, const TileMeaning *b);

/* Are all indices from `lowest` to `highest`, as the code computes them, proven to be in bounds of the dimension? What
 * a launch has to check for that is added to the grid's conditions. */
bool tile_proven_inside(TileChecker *c, const TileSum *lowest, const TileSum *highest, const TileSum *dim);
/* The same where nothing else makes the program right: also that a divisor is at least 1 is then a condition. */
bool tile_required_inside(TileChecker *c, const TileSum *lowest, const TileSum *highest, const TileSum *dim);

/* The same of all valid elements of an index tile. */
bool tile_elements_inside(TileChecker *c, const TileMeaning *index, const TileSum *dim);

#endif
