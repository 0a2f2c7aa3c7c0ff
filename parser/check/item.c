/* Items: of a file and of its imports by name, and which names of a kernel are bound for each instance. */
#include "parser/check/item.h"
#include "parser/check/report.h"

const TileItem *tile_find_item(const TileAst *ast, const char *name, bool imports, const TileAst **where) {
    const TileItem *found = tile_map_get(&ast->named, name);
    if (found) {
        *where = ast;
        return found;
    }
    for (size_t i = 0; imports && i < ast->imports.count; i++) {
        const TileItem *item = ast->imports.items[i] ? tile_find_item(ast->imports.items[i], name, false, where) : NULL;
        if (item) return item;
    }
    return NULL;
}

/* ---- imports ---- */

typedef struct Imports {
    const TileAst *ast;
    size_t item, next; /* the item that is looked at, and the import that it is if it is one */
} Imports;

/* The next import of the file, and the file that it names: NULL if that could not be read. NULL: there are no more. */
static const TileItem *next_import(Imports *imports, const TileAst **module) {
    const TileAst *ast = imports->ast;
    while (imports->item < ast->items.count && imports->next < ast->imports.count) {
        const TileItem *item = ast->items.items[imports->item++];
        if (item->kind != TILE_ITEM_IMPORT) continue;
        *module = ast->imports.items[imports->next++];
        return item;
    }
    return NULL;
}

const TileAst *tile_find_module(const TileAst *ast, const char *name) {
    const TileAst *module;
    const TileItem *import;
    for (Imports imports = {.ast = ast}; (import = next_import(&imports, &module));)
        if (!import->is_path && import->name == name) return module;
    return NULL;
}

/* ---- items of the same name ---- */

unsigned tile_find_candidates(const TileChecker *c, const char *name, TileCandidate *found) {
    const TileAst *ast = c->frame->ast, *where;
    unsigned count = 0;
    const TileAst *module;
    const TileItem *import;
    for (Imports imports = {.ast = ast}; (import = next_import(&imports, &module));) {
        const TileItem *item = module ? tile_find_item(module, name, false, &where) : NULL;
        bool known = !item;
        for (unsigned k = 0; k < count; k++) known = known || found[k].item == item;
        if (known || count == TILE_MAX_CANDIDATES) continue;
        found[count++] = (TileCandidate){item, module, import->is_path ? NULL : import->name};
    }
    return count;
}

void tile_fail_candidates(TileChecker *c, const char *name, TileSpan span, const TileCandidate *found, unsigned count,
                          const char *const *reasons) {
    unsigned fitting = 0, last = 0;
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_AMBIGUOUS_NAME, span, name, name);
    for (unsigned i = 0; i < count; i++) {
        const char *file = c->diagnostics->files.items[found[i].ast->file].name;
        const char *from = found[i].module ? found[i].module : file, *reason = reasons ? reasons[i] : NULL;
        tile_diagnostic_note(c->diagnostics, d, found[i].item->name_span,
                             reason    ? "`%s` of `%s` does not fit: %s"
                             : reasons ? "`%s` of `%s` fits"
                                       : "`%s` of `%s` is declared here",
                             name, from, reason);
        if (reasons && !reason) last = i, fitting++;
    }
    if (fitting == 1 && found[last].module)
        tile_diagnostic_edit(c->diagnostics, d, span, "%s.%s", found[last].module, name);
    tile_report(c, d);
}

/* ---- kernels of imports ---- */

static const TileExport *find_export(const TileAst *ast, const char *name) {
    for (size_t i = 0; i < ast->items.count; i++)
        for (size_t k = 0; k < ast->items.items[i]->exports.count; k++) {
            const TileExport *export = &ast->items.items[i]->exports.items[k];
            if (export->name == name) return export;
        }
    return NULL;
}

static TileFoundKernel kernel_in(TileChecker *c, const TileAst *ast, const char *name, bool exports) {
    const TileExport *export = exports ? find_export(ast, name) : NULL;
    const TileItem *item = tile_map_get(&ast->named, export ? export->kernel.name : name);
    if (export && (!item || export->module.name)) { /* a kernel of an import */
        TileFoundKernel found = tile_find_kernel(c, ast, export->module.name, export->kernel, false);
        found.export = export;
        return found;
    }
    bool found = item && item->kind == TILE_ITEM_KERNEL;
    return (TileFoundKernel){.item = found ? item : NULL, .ast = ast, .export = export};
}

/* NULL if no import has it, or, with a message, several. */
static TileFoundKernel imported_kernel(TileChecker *c, const TileAst *ast, TileNameRef name, bool exports) {
    TileCandidate candidates[TILE_MAX_CANDIDATES];
    TileFoundKernel result = {.ast = ast};
    unsigned count = 0;
    const TileAst *module;
    const TileItem *import;
    for (Imports imports = {.ast = ast}; (import = next_import(&imports, &module));) {
        TileFoundKernel found = module ? kernel_in(c, module, name.name, exports) : (TileFoundKernel){.item = NULL};
        bool known = !found.item || count == TILE_MAX_CANDIDATES;
        for (unsigned k = 0; k < count; k++) known = known || candidates[k].item == found.item;
        if (known) continue;
        candidates[count++] = (TileCandidate){found.item, module, import->is_path ? NULL : import->name};
        result = found;
        result.module = import->is_path ? NULL : import->name;
    }
    if (count > 1) tile_fail_candidates(c, name.name, name.span, candidates, count, NULL);
    if (count > 1) result = (TileFoundKernel){.ast = ast, .reported = true};
    return result;
}

TileFoundKernel tile_find_kernel(TileChecker *c, const TileAst *ast, const char *module, TileNameRef name,
                                 bool exports) {
    if (module) {
        const TileAst *other = tile_find_module(ast, module);
        TileFoundKernel found = other ? kernel_in(c, other, name.name, exports) : (TileFoundKernel){.ast = ast};
        found.module = module;
        return found;
    }
    TileFoundKernel own = kernel_in(c, ast, name.name, exports);
    return own.item || own.reported || tile_map_get(&ast->named, name.name) ? own : imported_kernel(c, ast, name, exports);
}

/* ---- names of a kernel ---- */

bool tile_is_static(const TileItem *kernel, const char *name) {
    for (size_t i = 0; i < kernel->statics.count; i++)
        if (kernel->statics.items[i].name == name) return true;
    return false;
}

bool tile_names_setting(const TileItem *kernel, const char *name) {
    for (size_t i = 0; i < kernel->generics.count; i++)
        if (strcmp(kernel->generics.items[i].name, name) == 0) return true;
    for (size_t i = 0; i < kernel->statics.count; i++)
        if (strcmp(kernel->statics.items[i].name, name) == 0) return true;
    for (size_t i = 0; i < kernel->params.count; i++)
        if (strcmp(kernel->params.items[i].name, name) == 0 && kernel->params.items[i].type &&
            kernel->params.items[i].type->is_const)
            return true;
    for (size_t i = 0; i < kernel->tunes.count; i++)
        for (size_t k = 0; k < kernel->tunes.items[i].names.count; k++)
            if (strcmp(kernel->tunes.items[i].names.items[k].name, name) == 0) return true;
    return false;
}
