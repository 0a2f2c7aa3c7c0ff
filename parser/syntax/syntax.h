/* From .tile text to a syntax tree. Opens no files.
 *
 * A call returns TILE_INVALID_SOURCE if it reported an error of the text. */
#ifndef TILE_PARSER_SYNTAX_SYNTAX_H
#define TILE_PARSER_SYNTAX_SYNTAX_H

#include "parser/syntax/ast.h"

/* The text must outlive the arena's and the diagnostics' use. */
tile_status tile_parse_file(TileArena *arena, TileDiagnostics *diagnostics, const char *name, const char *text,
                            size_t length, TileAst **out) TILE_MUST_CHECK;

/* Loads an import: a module's name ("math") or a path as written. `from` is the name of the importing file. Gives a
 * name for messages and a text that outlives the tree; false if there is none. */
typedef struct TileImporter {
    bool (*read)(void *state, const char *from, const char *path, bool is_path, const char **name, const char **text,
                 size_t *length);
    void *state;
} TileImporter;

/* Parses all files that the tree imports, directly or indirectly. */
tile_status tile_resolve_imports(TileDiagnostics *diagnostics, TileAst *ast,
                                 const TileImporter *importer) TILE_MUST_CHECK;

/* Text from elsewhere than the file, such as the command line; `name` identifies it in messages. An export clause
 * without the word `export`, `softmax[f32], add[f16] as half`: added to the tree. */
tile_status tile_parse_exports(TileDiagnostics *diagnostics, TileAst *ast, const char *name,
                               const char *text) TILE_MUST_CHECK;
/* A condition on dimensions and scalars, `N % 16 == 0`: added to the requirements of a kernel of the file or, if
 * `owner` is one, of an import of it. */
tile_status tile_parse_condition(TileDiagnostics *diagnostics, TileAst *ast, const TileAst *owner, const char *kernel,
                                 const char *name, const char *text) TILE_MUST_CHECK;

/* An expression: the value of a setting. */
tile_status tile_parse_value(TileDiagnostics *diagnostics, TileAst *ast, const char *name, const char *text,
                             TileExpr **value) TILE_MUST_CHECK;

#endif
