/* The formatter of .tile texts: what `tilec fmt` writes.
 *
 * Spaces, indentation, the positions of braces and clauses, and blank lines are determined by the syntax. Where a list
 * or an expression is broken over lines, and whether a block of one statement is on one line, is the author's choice as
 * long as the lines fit into TILE_FORMAT_COLUMNS; longer lines are broken. Comments stay where they are. Formatting is
 * idempotent. */
#ifndef TILE_PARSER_SYNTAX_FORMAT_H
#define TILE_PARSER_SYNTAX_FORMAT_H

#include "base/diagnostic.h"

enum { TILE_FORMAT_INDENT = 4, TILE_FORMAT_COLUMNS = 120 };

/* TILE_INVALID_SOURCE: the text has syntax errors, which are in the diagnostics. The result is parsed and compared with
 * the text: TILE_INTERNAL if a token, a comment or the syntax tree differs. Name and text have to outlive the
 * diagnostics. */
tile_status tile_format(TileArena *arena, TileDiagnostics *diagnostics, const char *name, const char *text,
                        size_t length, TileText *out) TILE_MUST_CHECK;

#endif
