/* Diagnostics as the protocol has them. */
#ifndef TILE_LSP_DIAGNOSE_H
#define TILE_LSP_DIAGNOSE_H

#include "lsp/workspace.h"

json_t *tile_diagnostic_json(const TileWorkspace *workspace, TileAnalysis *analysis, TileArena *arena,
                             const TileDiagnostic *diagnostic);
/* Those of a document, as parameters of textDocument/publishDiagnostics. NULL if memory runs out. */
json_t *tile_diagnostics_json(TileWorkspace *workspace, TileDocument *document, TileArena *arena);

#endif
