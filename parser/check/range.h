/* Ranges: tiles, spans, shifts, fields. A range is not a value of the IR: only its arithmetic is emitted. */
#ifndef TILE_PARSER_CHECK_RANGE_H
#define TILE_PARSER_CHECK_RANGE_H

#include "parser/check/check.h"

TileMeaning tile_shift_range(TileChecker *c, TileTokenKind op, const TileMeaning *a, const TileMeaning *b,
                             const TileExpr *expr);
TileMeaning tile_range_field(TileChecker *c, const TileRange *range, const TileExpr *expr);
/* tiles(..) in grid and for: start, limit, size. False if an error was reported. */
typedef struct TileTiles {
    const TileSum *lo, *hi, *size;
    TileSpan span;
} TileTiles;
bool tile_check_tiles(TileChecker *c, const TileExpr *expr, TileTiles *tiles);
bool tile_is_call_of(const TileExpr *expr, const char *name);
TileMeaning tile_check_span(TileChecker *c, const TileExpr *call);
/* The range that begins at `first`, with the tiles' size and limit. */
TileMeaning tile_range_of(TileChecker *c, const TileTiles *tiles, const TileSum *first, TileNameRef name);
TileMeaning tile_whole_range(TileChecker *c, const TileSum *extent, TileSpan span);

#endif
