/* Lowers one kernel of a file to tile form, in its own module. */
#include <string.h>

#include "parser/check/kernel.h"
#include "parser/check/module.h"
#include "parser/check/report.h"

#include "lang/ir/verify.h"

void tile_checker_init(TileChecker *c, TileContext *context, TileDiagnostics *diagnostics, TileArena *arena,
                       const TileAst *ast, const TileLowerOptions *options) {
    *c = (TileChecker){.context = context,
                       .diagnostics = diagnostics,
                       .arena = arena,
                       .names = ast->names,
                       .ast = ast,
                       .options = options,
                       .fill_word = "0"};
    tile_sum_table_init(&c->sums, arena);
    tile_map_init(&c->innermost, arena);
    tile_map_init(&c->builtins, arena);
    tile_map_init(&c->lost, arena);
    tile_map_init(&c->elements, arena);
    c->file_numbers = TILE_NEW_ARRAY(arena, uint32_t, diagnostics->files.count);
    for (size_t i = 1; i < diagnostics->files.count; i++) {
        const char *name = tile_intern_string(context->strings, diagnostics->files.items[i].name);
        size_t at = 1;
        while (at < context->files.count && context->files.items[at] != name) at++;
        if (at == context->files.count) tile_list_push(context->arena, &context->files, name);
        c->file_numbers[i] = (uint32_t)at;
    }
}

const TileItem *tile_check_find_kernel(const TileAst *ast, const char *name) {
    const TileItem *item = tile_map_get(&ast->named, tile_interned(ast->names, name, strlen(name)));
    return item && item->kind == TILE_ITEM_KERNEL ? item : NULL;
}

/* Errors in the bindings of an instance, not in the text. */
static bool is_binding_error(TileDiagnosticCode code) {
    return code == TILE_DIAGNOSTIC_UNBOUND || code == TILE_DIAGNOSTIC_WRONG_BINDING ||
           code == TILE_DIAGNOSTIC_NO_SUCH_BINDING || code == TILE_DIAGNOSTIC_BINDING_CLASS ||
           code == TILE_DIAGNOSTIC_REQUIRE_FAILED;
}

static tile_status status_since(const TileDiagnostics *diagnostics, size_t count, uint32_t errors) {
    if (diagnostics->error_count == errors) return TILE_OK;
    for (size_t i = count; i < diagnostics->list.count; i++) {
        const TileDiagnostic *d = diagnostics->list.items[i];
        if (d->severity == TILE_SEVERITY_ERROR && !is_binding_error(d->code)) return TILE_INVALID_SOURCE;
    }
    return TILE_INVALID_ARGUMENT;
}

tile_status tile_checker_verify(TileChecker *c, const TileItem *kernel, bool whole) {
    TileText text = {.arena = c->arena};
    if (!c->builder.error && (!whole || tile_module_verify(c->module, &text))) return TILE_OK;
    tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_INTERNAL, kernel->name_span, kernel->name,
                  c->builder.error ? c->builder.error : tile_text_get(&text));
    return TILE_INTERNAL;
}

tile_status tile_lower_kernel_for(TileContext *context, TileDiagnostics *diagnostics, const TileAst *ast,
                                  const char *kernel, const TileLowerOptions *options, TileModule **out) {
    *out = NULL;
    const TileItem *item = tile_check_find_kernel(ast, kernel);
    if (!item) {
        tile_diagnose(diagnostics, TILE_DIAGNOSTIC_NO_KERNEL, (TileSpan){ast->file, 0, 0}, kernel);
        return TILE_INVALID_ARGUMENT;
    }
    TileArena *arena = tile_arena_create(context->arena);
    TileModule *module = arena ? tile_module_create(context) : NULL;
    if (!module) {
        tile_arena_destroy(arena);
        return TILE_OUT_OF_MEMORY;
    }
    TileChecker c;
    size_t count = diagnostics->list.count;
    uint32_t errors = diagnostics->error_count;
    tile_checker_init(&c, context, diagnostics, arena, ast, options);
    c.module = module;
    tile_check_kernel(&c, item);
    tile_status status = status_since(diagnostics, count, errors);
    if (status == TILE_OK) status = tile_checker_verify(&c, item, true);
    tile_arena_destroy(arena);
    if (status == TILE_OK)
        *out = module;
    else
        tile_module_destroy(module);
    return status;
}

tile_status tile_lower_kernel(TileContext *context, TileDiagnostics *diagnostics, const TileAst *ast,
                              const char *kernel, const TileBinding *bindings, size_t count, TileModule **out) {
    TileLowerOptions options = {.bindings = bindings, .binding_count = count};
    return tile_lower_kernel_for(context, diagnostics, ast, kernel, &options, out);
}
