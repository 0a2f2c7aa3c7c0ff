/* A libFuzzer target: for any bytes, the tokens are in the text, in order and without overlap, and the diagnostics can
 * be printed in every form. */
#include <stdio.h>
#include <stdlib.h>

#include "parser/syntax/lex.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    TileArena *arena = tile_arena_create(NULL);
    TileDiagnostics *diagnostics = tile_diagnostics_create(arena);
    uint32_t file = tile_diagnostics_add_file(diagnostics, "fuzz.tile", (const char *)data, size), last = 0;
    TileTokens tokens = {0};
    TileText text = {.arena = arena};
    tile_lex(arena, diagnostics, file, &tokens);
    for (size_t i = 0; i < tokens.list.count; i++) {
        const TileToken *token = &tokens.list.items[i];
        if (token->begin < last || token->end < token->begin || token->end > size) abort();
        last = token->end;
    }
    if (!tokens.list.count || tokens.list.items[tokens.list.count - 1].kind != TILE_TOKEN_END) abort();
    tile_diagnostics_render(diagnostics, &text, size % 2);
    tile_diagnostics_render_json(diagnostics, &text);
    tile_arena_destroy(arena);
    return 0;
}
