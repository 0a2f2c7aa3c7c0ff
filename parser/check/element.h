/* Elements of tiles of integers: symbols that stand for any valid one. */
#ifndef TILE_PARSER_CHECK_ELEMENT_H
#define TILE_PARSER_CHECK_ELEMENT_H

#include "parser/check/check.h"

/* The symbol of the tile's value as a sum; NULL if it has none, or one that stands for fewer elements. */
const TileSum *tile_element_find(const TileChecker *c, const TileMeaning *m);
/* The value has none: `lowest` and `highest` bound its elements; or NULL. */
const TileSum *tile_element_make(TileChecker *c, const TileMeaning *m, const TileSum *lowest, const TileSum *highest);
/* Of the indices of a range, which each access to its field makes anew: one symbol stands for them. */
const TileSum *tile_element_of_range(TileChecker *c, const TileRange *range, const TileMeaning *indices);
/* `to` is the value in another region. */
void tile_element_move(TileChecker *c, const TileValue *from, const TileValue *to);
/* The least (greatest) number that the conditions around allow for the element, or for the number; or NULL. */
const TileSum *tile_element_known(TileChecker *c, const TileSum *element, bool most);

#endif
