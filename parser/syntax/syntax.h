/* From .tile text to a syntax tree. No file is opened here.
 *
 * A call returns TILE_INVALID_SOURCE when it reported an error of the text. */
#ifndef TILE_PARSER_SYNTAX_SYNTAX_H
#define TILE_PARSER_SYNTAX_SYNTAX_H

#include "parser/syntax/ast.h"

/* The text must stay alive as long as the arena and the diagnostics. */
tile_status tile_parse_file(TileArena *arena, TileDiagnostics *diagnostics, const char *name, const char *text,
                            size_t length, TileAst **out) TILE_MUST_CHECK;

/* Finds the text of an import: a module's name ("math") or a path as it is written. `from` is the name of the
 * importing file. Gives a name for messages and a text that outlives the tree; false when there is none. */
typedef struct TileImporter {
    bool (*read)(void *state, const char *from, const char *path, bool is_path, const char **name, const char **text,
                 size_t *length);
    void *state;
} TileImporter;

/* Reads and parses what the tree imports, and what that imports. */
tile_status tile_resolve_imports(TileDiagnostics *diagnostics, TileAst *ast,
                                 const TileImporter *importer) TILE_MUST_CHECK;

/* Text that stands elsewhere than in the file, such as on a command line; `name` is what messages call that place.
 * An export clause without its word, `softmax[f32], add[f16] as half`: becomes part of the tree. */
tile_status tile_parse_exports(TileDiagnostics *diagnostics, TileAst *ast, const char *name,
                               const char *text) TILE_MUST_CHECK;
/* A condition on dimensions and scalars, `N % 16 == 0`: the kernel requires it from now on. */
tile_status tile_parse_condition(TileDiagnostics *diagnostics, TileAst *ast, const char *kernel, const char *name,
                                 const char *text) TILE_MUST_CHECK;

/* An expression: the value of a setting. */
tile_status tile_parse_value(TileDiagnostics *diagnostics, TileAst *ast, const char *name, const char *text,
                             TileExpr **value) TILE_MUST_CHECK;

#endif
