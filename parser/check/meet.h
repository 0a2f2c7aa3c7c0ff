/* Which lanes of a tile are certainly equal: for the warning that they meet at one element. */
#ifndef TILE_PARSER_CHECK_MEET_H
#define TILE_PARSER_CHECK_MEET_H

#include "parser/check/check.h"

/* are all lanes along the axis certainly equal? */
bool tile_lanes_agree(const TileMeaning *m, unsigned axis);

#endif
