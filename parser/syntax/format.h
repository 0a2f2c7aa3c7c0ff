/* The house style of .tile texts: what `tilec fmt` writes.
 *
 * Spaces, indentation, the places of braces and clauses, and blank lines follow from the syntax alone. Where a list
 * or an expression is broken over lines, and whether a block of one statement stands on one line, is the author's
 * choice as long as the lines fit into TILE_FORMAT_COLUMNS; what does not fit is broken. Comments stay where they are.
 * Formatting a formatted text changes nothing. */
#ifndef TILE_PARSER_SYNTAX_FORMAT_H
#define TILE_PARSER_SYNTAX_FORMAT_H

#include "base/diagnostic.h"

enum { TILE_FORMAT_INDENT = 4, TILE_FORMAT_COLUMNS = 120 };

/* TILE_INVALID_SOURCE: the text has errors of syntax, which the diagnostics tell. The result is read again and
 * compared with the text: TILE_INTERNAL if a token, a comment or the syntax tree differs. Name and text have to
 * outlive the diagnostics. */
tile_status tile_format(TileArena *arena, TileDiagnostics *diagnostics, const char *name, const char *text,
                        size_t length, TileText *out) TILE_MUST_CHECK;

#endif
