/* Are lanes of a tile certainly equal? For the warning that they access one element. */
#ifndef TILE_PARSER_CHECK_MEET_H
#define TILE_PARSER_CHECK_MEET_H

#include "parser/check/check.h"

/* Are all lanes along the axis certainly equal? */
bool tile_lanes_agree(const TileMeaning *m, unsigned axis);

#endif
