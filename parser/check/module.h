/* Lowers one kernel of a file to tile form, in its own module. */
#ifndef TILE_PARSER_CHECK_MODULE_H
#define TILE_PARSER_CHECK_MODULE_H

#include "parser/check/check.h"

/* Verifies the new module; an error is a bug of the compiler. */
tile_status tile_checker_verify(TileChecker *c, const TileItem *item, bool whole);
void tile_checker_init(TileChecker *c, TileContext *context, TileDiagnostics *diagnostics, TileArena *arena,
                       const TileAst *ast, const TileLowerOptions *options);
/* tile_lower_test for all assertions, with annotations (may be NULL). */
tile_status tile_check_test(TileContext *context, TileDiagnostics *diagnostics, TileArena *arena, const TileAst *ast,
                            const TileItem *item, TileAnnotations *annotations, TileTest *test, TileTestStage *stage);
const TileItem *tile_check_find_kernel(const TileAst *ast, const char *name);

#endif
