/* A request of the client, and what answers share: places, ranges, locations. */
#ifndef TILE_LSP_REQUEST_H
#define TILE_LSP_REQUEST_H

#include "lsp/workspace.h"

/* Codes of JSON-RPC and of the protocol. */
enum {
    TILE_LSP_PARSE_ERROR = -32700,
    TILE_LSP_INVALID_REQUEST = -32600,
    TILE_LSP_UNKNOWN_METHOD = -32601,
    TILE_LSP_INVALID_PARAMS = -32602,
    TILE_LSP_INTERNAL = -32603,
    TILE_LSP_NOT_INITIALIZED = -32002,
    TILE_LSP_CANCELLED = -32800,
    TILE_LSP_FAILED = -32803,
};

typedef struct TileRequest {
    TileWorkspace *workspace;
    const json_t *params;
    TileArena *arena;       /* until it is answered */
    TileDocument *document; /* set by tile_request_place and tile_request_open */
    TileAnalysis *analysis;
    uint32_t offset; /* set by tile_request_place */
    int error;       /* 0, or a code, with its message */
    const char *message;
} TileRequest;

/* Sets the error; returns NULL. */
json_t *tile_request_fail(TileRequest *request, int error, const char *format, ...) TILE_PRINTF(3, 4);
/* Finds the document that the parameters name, and its analysis; or sets the error. */
bool tile_request_open(TileRequest *request);
/* The same, and the place in it. */
bool tile_request_place(TileRequest *request);
/* The mention at the place, NULL if there is none or an error was set. */
const TileMention *tile_request_mention(TileRequest *request);
json_t *tile_request_no_memory(TileRequest *request);

/* {"start": .., "end": ..} of a span of the analysis. */
json_t *tile_range_json(const TileWorkspace *workspace, TileAnalysis *analysis, TileSpan span);
/* Of bytes of a text with these lines. */
json_t *tile_lines_json(const TileWorkspace *workspace, const TileLines *lines, size_t begin, size_t end);
/* The URI of a file of the analysis: as the client wrote it, if the file is open. */
const char *tile_file_uri(const TileWorkspace *workspace, const TileAnalysis *analysis, TileArena *arena, uint32_t file);
json_t *tile_location_json(const TileWorkspace *workspace, TileAnalysis *analysis, TileArena *arena, TileSpan span);
/* The bytes of the range at this path of the parameters. */
void tile_request_range(const TileRequest *request, const char *path, size_t *begin, size_t *end);

/* The answers. */
json_t *tile_answer_hover(TileRequest *request);
json_t *tile_answer_definition(TileRequest *request);
json_t *tile_answer_references(TileRequest *request);
json_t *tile_answer_highlight(TileRequest *request);
json_t *tile_answer_prepare_rename(TileRequest *request);
json_t *tile_answer_rename(TileRequest *request);
json_t *tile_answer_completion(TileRequest *request);
json_t *tile_answer_formatting(TileRequest *request);
json_t *tile_answer_inlay_hints(TileRequest *request);
json_t *tile_answer_code_actions(TileRequest *request);
json_t *tile_answer_symbols(TileRequest *request);
json_t *tile_answer_content(TileRequest *request);

#endif
