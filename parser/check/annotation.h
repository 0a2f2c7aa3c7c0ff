/* Annotations: findings in words. */
#ifndef TILE_PARSER_CHECK_ANNOTATION_H
#define TILE_PARSER_CHECK_ANNOTATION_H

#include "parser/check/check.h"

/* Puts what was found in the check of an item into words, while its meanings are there. */
void tile_annotate_item(TileChecker *c);

#endif
