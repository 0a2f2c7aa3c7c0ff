#include "running.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lang/ir/verify.h"
#include "parser/syntax/syntax.h"

const char *source_directory(void) {
    const char *directory = getenv("TILE_SOURCE_DIR");
    return directory ? directory : ".";
}

char *read_file(TileArena *arena, const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    char *text = tile_arena_alloc(arena, (size_t)size + 1);
    *length = fread(text, 1, (size_t)size, file);
    fclose(file);
    return text;
}

static bool read_import(void *state, const char *from, const char *path, bool is_path, const char **name,
                        const char **text, size_t *length) {
    TileArena *arena = state;
    *name = is_path ? tile_arena_format(arena, "%s/%s", source_directory(), path)
                    : tile_arena_format(arena, "%s/stdlib/%s.tile", source_directory(), path);
    *text = read_file(arena, *name, length);
    return *text != NULL;
}

TileImporter test_importer(TileArena *arena) { return (TileImporter){read_import, arena}; }

unsigned read_bindings(TileArena *arena, const char *text, TileBinding *bindings) {
    unsigned count = 0;
    while (*text) {
        size_t length = strcspn(text, ",");
        char *pair = tile_arena_string(arena, text, length), *value = strchr(pair, '=');
        *value++ = 0;
        bindings[count++] = tile_binding_read(pair, value);
        text += length + (text[length] == ',');
    }
    return count;
}

static TileFunc *lower(TileArena *arena, TileContext *context, const char *text, const char *kernel,
                       const char *bindings) {
    TileDiagnostics *diagnostics = tile_diagnostics_create(arena);
    TileImporter importer = test_importer(arena);
    TileText report = {.arena = arena};
    TileBinding bound[16];
    TileModule *module = NULL;
    TileProgramInfo info;
    TileAst *ast;
    tile_status status = tile_parse_file(arena, diagnostics, "test.tile", text, strlen(text), &ast);
    if (status == TILE_OK) status = tile_resolve_imports(diagnostics, ast, &importer);
    if (status == TILE_OK) status = tile_list_kernels(diagnostics, ast, &info);
    if (status == TILE_OK && !kernel) kernel = info.kernels.items[0].name;
    if (status == TILE_OK)
        status =
            tile_lower_kernel(context, diagnostics, ast, kernel, bound, read_bindings(arena, bindings, bound), &module);
    tile_diagnostics_render(diagnostics, &report, false);
    cr_assert_eq(status, TILE_OK, "%s", tile_text_get(&report));
    return tile_func_find(module, kernel);
}

static TileExecutorArgument bind(const RunArgument *argument) {
    TileExecutorArgument bound = {.bits = argument->bits};
    int64_t stride = argument->bytes;
    for (unsigned i = argument->rank; i-- > 0;) {
        bound.tensor.extent[i] = argument->extent[i];
        bound.tensor.stride[i] = stride;
        stride *= argument->extent[i];
    }
    bound.tensor.data = argument->data;
    bound.tensor.above = argument->data ? (uint64_t)stride : 0;
    return bound;
}

static TileExecution run(const char *text, const char *kernel, const char *bindings, const RunArgument *arguments,
                         unsigned count, bool must_end) {
    TileArena *arena = tile_arena_create(NULL);
    TileContext *context = tile_ir_context_create();
    TileFunc *func = lower(arena, context, text, kernel, bindings);
    TileExecutorArgument bound[16];
    TileText message = {.arena = arena};
    cr_assert_eq(func->body.argument_count, count, "the kernel takes %u arguments", func->body.argument_count);
    for (unsigned i = 0; i < count; i++) bound[i] = bind(&arguments[i]);
    TileExecutorOptions options = {.seed = 7};
    TileExecution end = tile_execute_kernel(func, bound, &options, &message);
    if (must_end) cr_assert_eq(end, TILE_EXECUTION_DONE, "%s", tile_text_get(&message));
    tile_module_destroy(func->module);
    tile_ir_context_destroy(context);
    tile_arena_destroy(arena);
    return end;
}

void run_kernel(const char *text, const char *bindings, const RunArgument *arguments, unsigned count) {
    run(text, NULL, bindings, arguments, count, true);
}

TileExecution run_named(const char *text, const char *kernel, const char *bindings, const RunArgument *arguments,
                        unsigned count) {
    return run(text, kernel, bindings, arguments, count, false);
}

const char *check_text(TileArena *arena, const char *name, const char *text, size_t length, tile_status *status) {
    TileContext *context = tile_ir_context_create();
    TileDiagnostics *diagnostics = tile_diagnostics_create(arena);
    TileImporter importer = test_importer(arena);
    TileText report = {.arena = arena};
    TileAst *ast;
    *status = tile_parse_file(arena, diagnostics, name, text, length, &ast);
    if (*status == TILE_OK) *status = tile_resolve_imports(diagnostics, ast, &importer);
    if (*status == TILE_OK) *status = tile_check_module(context, diagnostics, ast, true, NULL, NULL);
    tile_diagnostics_render(diagnostics, &report, false);
    tile_ir_context_destroy(context);
    return tile_text_get(&report);
}
