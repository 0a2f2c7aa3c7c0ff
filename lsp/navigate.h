/* The places where a name stands, in all files of the workspace. */
#ifndef TILE_LSP_NAVIGATE_H
#define TILE_LSP_NAVIGATE_H

#include "lsp/request.h"

/* Calls `visit` for each mention of what the mention stands for. False if memory runs out. */
typedef void (*TileMentionVisit)(TileRequest *request, void *state, TileAnalysis *analysis, const TileMention *mention);
bool tile_visit_mentions(TileRequest *request, const TileMention *mention, TileMentionVisit visit, void *state);
/* Can other files use it? */
bool tile_named_is_shared(const TileNamed *named);

#endif
