/* A libFuzzer target: any text is rejected with a message, or gives a module, which may or may not be valid; the text
 * of a valid one is a fixpoint of reading and printing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lang/ir/program.h"
#include "lang/ir/text.h"
#include "lang/ir/verify.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fail(const char *text, const char *why) {
    fprintf(stderr, "the printed module %s:\n%s", why, text);
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    TileArena *arena = tile_arena_create(NULL);
    TileContext *context = tile_ir_context_create();
    TileModule *module = NULL, *again = NULL;
    TileText errors = {.arena = arena}, first = {.arena = arena}, second = {.arena = arena};
    tile_status status = tile_module_read(context, (const char *)data, size, &module, &errors);
    if (status != TILE_OK && !*tile_text_get(&errors)) abort();
    if (status == TILE_OK && tile_module_verify(module, &errors)) {
        tile_program_complaints(module, arena);
        tile_module_print(&first, module, TILE_PRINT_LOCATIONS);
        const char *text = tile_text_get(&first);
        if (tile_module_read(context, text, strlen(text), &again, &errors) != TILE_OK) fail(text, "is not read back");
        tile_module_print(&second, again, TILE_PRINT_LOCATIONS);
        if (strcmp(text, tile_text_get(&second)) != 0) fail(text, "is read back as another text");
    }
    tile_module_destroy(module);
    tile_module_destroy(again);
    tile_ir_context_destroy(context);
    tile_arena_destroy(arena);
    return 0;
}
