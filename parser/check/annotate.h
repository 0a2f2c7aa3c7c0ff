/* Keeps what is found at a place, where annotations are asked for. */
#ifndef TILE_PARSER_CHECK_ANNOTATE_H
#define TILE_PARSER_CHECK_ANNOTATE_H

#include "parser/check/check.h"

/* The value of an expression. */
void tile_annotate_expr(TileChecker *c, const TileExpr *expr, const TileMeaning *m);
/* A name that is bound. */
void tile_annotate_binding(TileChecker *c, TileSpan span, const TileMeaning *m, bool is_var);

#endif
