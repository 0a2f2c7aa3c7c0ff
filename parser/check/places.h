/* Loops of the text that need not be unrolled. */
#ifndef TILE_PARSER_CHECK_PLACES_H
#define TILE_PARSER_CHECK_PLACES_H

#include "parser/check/check.h"

/* Does the body of the `static for` add up products, and is the loop's number nothing there but a part of places in tensors, as
 * in a window that is unrolled: `acc = dot(x[b, w + (j - 1), c] else 0, wt[j, c, o], acc)`? Iterations of a loop
 * then compute what the unrolled ones would. */
bool tile_only_places(TileChecker *c, const TileStatement *statement);

#endif
