/* Tokens and syntax trees as text, for inspection of the parser's results. */
#ifndef TILE_PARSER_SYNTAX_PRINT_H
#define TILE_PARSER_SYNTAX_PRINT_H

#include "parser/syntax/ast.h"

/* One token a line: line:column, its kind, its text. */
void tile_tokens_print(TileArena *arena, TileDiagnostics *diagnostics, uint32_t file, TileText *text);
/* Each item, statement and expression in parentheses; statements on lines of their own. Imported files are not
 * included. */
void tile_ast_print(const TileAst *ast, TileText *text);

#endif
