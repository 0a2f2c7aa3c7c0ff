/* Tokens and syntax trees as text, for people who want to see what the parser saw. */
#ifndef TILE_PARSER_SYNTAX_PRINT_H
#define TILE_PARSER_SYNTAX_PRINT_H

#include "parser/syntax/ast.h"

/* One token a line: line:column, what it is, its text. */
void tile_tokens_print(TileArena *arena, TileDiagnostics *diagnostics, uint32_t file, TileText *text);
/* One item, statement or expression in parentheses; statements on lines of their own. Imports stay closed. */
void tile_ast_print(const TileAst *ast, TileText *text);

#endif
