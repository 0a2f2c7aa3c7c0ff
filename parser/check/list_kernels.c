/* The interfaces of a file's kernels: signatures, generics, tune names, exports. */
#include <string.h>

#include "parser/check/bindings.h"
#include "parser/check/formats.h"
#include "parser/check/item.h"
#include "parser/check/module.h"
#include "parser/check/operand.h"
#include "parser/check/propose.h"
#include "parser/check/report.h"
#include "parser/check/scope.h"
#include "parser/check/type.h"
#include "parser/syntax/syntax.h"

/* ---- listing ---- */

typedef struct Lister {
    TileChecker *checker;
    TileArena *arena;
    const TileAst *ast;
    TileMap kernels; /* by name: index in the list, plus 1 */
    TileMap exports; /* by name: the last file that exports it */
} Lister;

/* The source text, with white space replaced by single blanks. */
static const char *flat_text(const Lister *l, TileSpan span) {
    TileText text = {.arena = l->arena};
    const char *source = l->checker->diagnostics->files.items[span.file].text;
    bool space = false;
    for (uint32_t i = span.begin; i < span.end; i++) {
        char ch = source[i];
        if (ch == ' ' || ch == '\t' || ch == '\n' || ch == '\r') {
            space = true;
            continue;
        }
        char last = text.length ? text.text[text.length - 1] : '(';
        if (space && last != '(' && last != '[' && !(text.length && ch == '(' && last == ']'))
            tile_text_add_char(&text, ' ');
        space = false;
        tile_text_add_char(&text, ch);
    }
    return tile_text_get(&text);
}

static TileKernelGeneric list_generic(const Lister *l, const TileGeneric *generic) {
    TileKernelGeneric info = {
        .name = generic->name, .kind = (TileGenericKind)generic->kind, .has_default = generic->value != NULL};
    TileText text = {.arena = l->arena};
    for (size_t i = 0; i < generic->classes.count; i++) {
        tile_text_format(&text, "%s%s", i ? " | " : "", generic->classes.items[i].name);
        tile_class_types(generic->classes.items[i].name, &info.types);
    }
    info.class = tile_text_get(&text);
    if (generic->kind == TILE_GENERIC_FN && generic->value) info.function = flat_text(l, generic->value->span);
    return info;
}

static bool is_generic_type(const TileItem *kernel, const char *name) {
    for (size_t i = 0; i < kernel->generics.count; i++)
        if (kernel->generics.items[i].name == name && kernel->generics.items[i].kind == TILE_GENERIC_TYPE) return true;
    return false;
}

void tile_kernel_parameter_bytes(TileKernelParameter *parameter, TileArena *arena, const TileTypeExpr *type) {
    TileFormat format = parameter->is_tensor ? tile_format_find(parameter->type) : TILE_FORMAT_PLAIN;
    if (!format) return;
    parameter->format = format;
    parameter->scalar = TILE_U8;
    if (!tile_format_is_packed(format) || !parameter->rank) return;
    unsigned last = parameter->rank - 1;
    parameter->dims[last] = tile_halved_text(arena, type->extents.items[last], parameter->dims[last]);
    parameter->dim_is_name[last] = false;
}

static TileKernelParameter list_parameter(const Lister *l, const TileItem *kernel, const TileParam *param) {
    static const TileAccess accesses[] = {TILE_ACCESS_IN, TILE_ACCESS_IN, TILE_ACCESS_OUT, TILE_ACCESS_INOUT};
    const TileTypeExpr *type = param->type;
    TileKernelParameter info = {
        .name = param->name, .is_const = type->is_const, .is_tensor = type->access != TILE_WORD_NONE};
    info.is_static = tile_is_static(kernel, param->name);
    info.access = accesses[type->access];
    info.type = type->name ? type->name : "";
    info.generic_type = is_generic_type(kernel, type->name);
    if (!info.generic_type) tile_scalar_find(info.type, strlen(info.type), &info.scalar);
    info.rank = (unsigned)(type->extents.count < TILE_MAX_TENSOR_RANK ? type->extents.count : TILE_MAX_TENSOR_RANK);
    for (unsigned d = 0; d < info.rank; d++) {
        info.dims[d] = flat_text(l, type->extents.items[d]->span);
        info.dim_is_name[d] = type->extents.items[d]->kind == TILE_EXPR_NAME;
    }
    if (!info.generic_type) tile_kernel_parameter_bytes(&info, l->arena, type);
    return info;
}

static bool list_tune(Lister *l, const TileTune *tune, TileKernelInfo *info) {
    TileChecker *c = l->checker;
    for (size_t i = 0; i < tune->names.count; i++) {
        const TileTuneName *name = &tune->names.items[i];
        TileKernelTune row = {.name = name->name, .target = tune->target};
        if (tune->where) row.where = flat_text(l, tune->where->span);
        for (size_t k = 0; k < name->candidates.count; k++) {
            int64_t value;
            if (!tile_check_constant(c, name->candidates.items[k], "a candidate", &value)) return false;
            tile_list_push(l->arena, &row.candidates, value);
        }
        TileBound *bound = tile_scope_find(c, name->name);
        if (!bound || !bound->meaning.sum || !tile_sum_known(&c->sums, bound->meaning.sum, &row.value))
            row.value = row.candidates.items[0];
        tile_list_push(l->arena, &info->tunes, row);
    }
    return true;
}

static bool list_tunes(Lister *l, const TileItem *kernel, TileKernelInfo *info) {
    static const TileLowerOptions targets[] = {{.target = "cpu"}, {.target = "gpu"}};
    TileChecker *c = l->checker;
    bool ok = true;
    for (int t = 0; ok && t < 2; t++) {
        size_t bounds = c->bounds.count;
        c->options = &targets[t];
        ok = tile_bind_generics(c, kernel) && tile_bind_tunes(c, kernel);
        for (size_t i = 0; ok && i < kernel->tunes.count; i++) {
            const TileTune *tune = &kernel->tunes.items[i];
            const char *target = tune->target ? tune->target : "cpu";
            if (strcmp(target, targets[t].target) == 0) ok = list_tune(l, tune, info);
        }
        tile_scope_cut(c, bounds);
    }
    return ok;
}

/* `name`: of the kernel itself, or with the module that has it. */
static bool list_kernel(Lister *l, const char *name, const TileItem *kernel, const TileAst *ast, TileProgramInfo *out) {
    TileKernelInfo info = {
        .name = name, .doc = kernel->doc, .item = kernel, .ast = ast, .signature = flat_text(l, kernel->signature)};
    if (name != kernel->name)
        info.signature =
            tile_arena_format(l->arena, "%.*s%s", (int)(strlen(name) - strlen(kernel->name)), name, info.signature);
    TileFrame frame = {.item = kernel, .ast = ast};
    l->checker->frame = &frame;
    l->checker->op_count = 0;
    for (size_t i = 0; i < kernel->generics.count; i++)
        tile_list_push(l->arena, &info.generics, list_generic(l, &kernel->generics.items[i]));
    for (size_t i = 0; i < kernel->params.count; i++)
        if (!kernel->params.items[i].spread)
            tile_list_push(l->arena, &info.parameters, list_parameter(l, kernel, &kernel->params.items[i]));
    for (size_t i = 0; i < kernel->statics.count; i++)
        tile_list_push(l->arena, &info.statics, kernel->statics.items[i].name);
    for (size_t i = 0; i < kernel->overlaps.count; i++)
        tile_list_push(l->arena, &info.overlaps, kernel->overlaps.items[i].name);
    if (!list_tunes(l, kernel, &info)) return false;
    tile_list_push(l->arena, &out->kernels, info);
    if (!tile_map_get(&l->kernels, name)) tile_map_set(&l->kernels, name, (void *)(uintptr_t)out->kernels.count);
    return true;
}

/* ---- exports ---- */

static const TileKernelInfo *find_info(const Lister *l, const TileProgramInfo *program, const char *name) {
    size_t at = (size_t)(uintptr_t)tile_map_get(&l->kernels, name);
    return at ? &program->kernels.items[at - 1] : NULL;
}

bool tile_kernel_has_setting(const TileKernelInfo *kernel, const char *name) {
    for (size_t i = 0; i < kernel->generics.count; i++)
        if (strcmp(kernel->generics.items[i].name, name) == 0) return true;
    for (size_t i = 0; i < kernel->tunes.count; i++)
        if (strcmp(kernel->tunes.items[i].name, name) == 0) return true;
    for (size_t i = 0; i < kernel->statics.count; i++)
        if (strcmp(kernel->statics.items[i], name) == 0) return true;
    for (size_t i = 0; i < kernel->parameters.count; i++) {
        const TileKernelParameter *parameter = &kernel->parameters.items[i];
        if ((parameter->is_const || parameter->is_static) && strcmp(parameter->name, name) == 0) return true;
    }
    return false;
}

bool tile_kernel_has_dimension(const TileKernelInfo *kernel, const char *name) {
    for (size_t i = 0; i < kernel->parameters.count; i++) {
        const TileKernelParameter *parameter = &kernel->parameters.items[i];
        for (unsigned d = 0; parameter->is_tensor && d < parameter->rank; d++)
            if (parameter->dim_is_name[d] && strcmp(parameter->dims[d], name) == 0) return true;
    }
    return false;
}

/* A value as part of an identifier: "0.5" is 0_5, "leaky_relu[0.3]" is leaky_relu_0_3. */
static void add_to_name(TileText *name, const char *text) {
    tile_text_add_char(name, '_');
    for (; *text; text++) {
        if (*text == ']' || *text == ' ') continue;
        bool plain = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') || (*text >= '0' && *text <= '9');
        tile_text_add_char(name, plain ? *text : '_');
    }
}

/* Exports have unique names, as C functions; exports from elsewhere than the file (tile_parse_exports) are separate. */
static bool check_export_name(Lister *l, const TileExportInfo *info) {
    uintptr_t file = info->span.file;
    const char *why = tile_is_reserved_in_c(info->name) ? "is no name that a C or C++ function can have" : NULL;
    if ((uintptr_t)tile_map_get(&l->exports, info->name) == file) why = "is the name of two exports";
    tile_map_set(&l->exports, info->name, (void *)file);
    if (why) tile_fail(l->checker, EXPORT_NAME, info->span, info->name, why);
    return !why;
}

/* Proposes the setting with the most similar name. */
static void fail_setting(TileChecker *c, const TileKernelInfo *kernel, const TileArgumentExpr *setting) {
    TileDiagnostic *d =
        tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_EXPORT_SETTING, setting->name_span, kernel->name, setting->name);
    if (!d) return;
    TileNearest nearest = tile_nearest(setting->name);
    for (size_t i = 0; i < kernel->generics.count; i++) tile_nearest_try(&nearest, kernel->generics.items[i].name);
    for (size_t i = 0; i < kernel->tunes.count; i++) tile_nearest_try(&nearest, kernel->tunes.items[i].name);
    for (size_t i = 0; i < kernel->statics.count; i++) tile_nearest_try(&nearest, kernel->statics.items[i]);
    for (size_t i = 0; i < kernel->parameters.count; i++)
        if (kernel->parameters.items[i].is_const) tile_nearest_try(&nearest, kernel->parameters.items[i].name);
    tile_propose_nearest(c, d, setting->name_span, &nearest);
    tile_report(c, d);
}

/* Proposes the import with the most similar name. */
static void fail_module(Lister *l, const TileNameRef *module) {
    TileDiagnostic *d =
        tile_diagnose(l->checker->diagnostics, TILE_DIAGNOSTIC_UNKNOWN_NAME, module->span, module->name);
    TileNearest nearest = tile_nearest(module->name);
    for (size_t i = 0; i < l->ast->items.count; i++) {
        const TileItem *item = l->ast->items.items[i];
        if (item->kind == TILE_ITEM_IMPORT && !item->is_path) tile_nearest_try(&nearest, item->name);
    }
    tile_propose_nearest(l->checker, d, module->span, &nearest);
    tile_report(l->checker, d);
}

/* The interface of the kernel that is exported, in the list that a kernel of an import then joins. NULL with a message.
 */
static const TileKernelInfo *find_exported(Lister *l, const TileExport *export, TileProgramInfo *out) {
    const TileNameRef *module = &export->module;
    if (module->name && !tile_find_module(l->ast, module->name)) return fail_module(l, module), NULL;
    TileFoundKernel found = tile_find_kernel(l->checker, l->ast, module->name, export->kernel, false);
    if (found.reported) return NULL;
    if (!found.item) return tile_fail_no_kernel(l->checker, found.ast, export->kernel.span, export->kernel.name), NULL;
    const char *name = found.item->name;
    if (found.ast != l->ast && found.module)
        name = tile_intern_string(l->ast->names, tile_arena_format(l->arena, "%s.%s", found.module, name));
    const TileKernelInfo *info = find_info(l, out, name);
    if (info || found.ast == l->ast || found.item->broken)
        return info; /* without it: it has errors, which are reported */
    TileFrame *frame = l->checker->frame;
    bool listed = list_kernel(l, name, found.item, found.ast, out);
    l->checker->frame = frame;
    return listed ? find_info(l, out, name) : NULL;
}

static bool list_export(Lister *l, const TileExport *export, TileProgramInfo *out) {
    TileChecker *c = l->checker;
    const TileKernelInfo *kernel = find_exported(l, export, out);
    if (!kernel) return false;
    if (export->arguments.count > kernel->generics.count)
        return tile_fail(c, GENERIC_COUNT, export->span, kernel->name,
                         tile_count_words(c, kernel->generics.count, "generic", "generics"),
                         (unsigned)export->arguments.count, export->arguments.count == 1 ? "is" : "are"),
               false;
    TileExportInfo info = {.kernel = kernel->name, .item = kernel->item, .ast = kernel->ast, .span = export->span};
    TileText name = {.arena = l->arena};
    tile_text_add(&name, kernel->item->name);
    for (size_t i = 0; i < export->arguments.count; i++) {
        const char *text = flat_text(l, export->arguments.items[i]->span);
        tile_list_push(l->arena, &info.bindings, tile_binding_read(kernel->generics.items[i].name, text));
        tile_list_push(l->arena, &info.places, export->arguments.items[i]->span);
        add_to_name(&name, text);
    }
    for (size_t i = 0; i < export->settings.count; i++) {
        const TileArgumentExpr *setting = &export->settings.items[i];
        const char *text = flat_text(l, setting->value->span);
        if (!tile_kernel_has_setting(kernel, setting->name)) return fail_setting(c, kernel, setting), false;
        for (size_t k = 0; k < info.bindings.count; k++)
            if (strcmp(info.bindings.items[k].name, setting->name) == 0)
                return tile_fail(c, GIVEN_TWICE, setting->name_span, setting->name, kernel->name), false;
        tile_list_push(l->arena, &info.bindings, tile_binding_read(setting->name, text));
        tile_list_push(l->arena, &info.places, setting->value->span);
        add_to_name(&name, tile_arena_format(l->arena, "%s%s", setting->name, text));
    }
    info.name = tile_intern_string(l->ast->names, export->name ? export->name : tile_text_get(&name));
    if (!check_export_name(l, &info)) return false;
    tile_list_push(l->arena, &out->exports, info);
    return true;
}

void tile_list_exported(TileArena *arena, TileProgramInfo *program) {
    TileMap places;
    tile_map_init(&places, arena);
    for (size_t i = program->kernels.count; i-- > 0;)
        tile_map_set(&places, program->kernels.items[i].name, (void *)(uintptr_t)(i + 1));
    for (size_t i = 0; i < program->exports.count; i++) {
        const TileExportInfo *export = &program->exports.items[i];
        if (tile_map_get(&places, export->name)) continue;
        const TileKernelInfo *kernel = &program->kernels.items[(uintptr_t)tile_map_get(&places, export->kernel) - 1];
        TileKernelInfo info = *kernel;
        TileText text = {.arena = arena};
        tile_text_format(&text, "%s: %s", export->name, kernel->signature);
        for (size_t k = 0; k < export->bindings.count; k++) {
            tile_text_format(&text, "%s%s = ", k ? ", " : " with ", export->bindings.items[k].name);
            tile_binding_print(&text, &export->bindings.items[k]);
            tile_list_push(arena, &info.chosen, export->bindings.items[k]);
        }
        info.name = export->name;
        info.signature = tile_text_get(&text);
        info.is_export = true;
        tile_list_push(arena, &program->kernels, info);
        tile_map_set(&places, info.name, (void *)(uintptr_t)program->kernels.count);
    }
}

/* A checker for headers, without options. False if out of memory. */
static bool begin_listing(TileChecker *c, TileDiagnostics *diagnostics, const TileAst *ast) {
    static const TileLowerOptions none = {0};
    TileContext *context = tile_ir_context_create();
    TileModule *module = context ? tile_module_create(context) : NULL;
    if (!module) {
        tile_ir_context_destroy(context);
        return false;
    }
    tile_checker_init(c, context, diagnostics, ast->arena, ast, &none);
    c->module = module;
    c->func = tile_func_create(module, "list", TILE_FUNC_DEVICE, TILE_FORM_TILE);
    c->builder = tile_builder_at_end(module, &c->func->body);
    c->representative = true;
    return true;
}

static void end_listing(TileChecker *c) {
    tile_module_destroy(c->module);
    tile_ir_context_destroy(c->context);
}

tile_status tile_list_points(TileDiagnostics *diagnostics, const TileAst *ast, const TileItem *kernel,
                             const TileLowerOptions *options, size_t most, TileTunePoints *out) {
    TileChecker c;
    TileFrame frame = {.item = kernel, .ast = ast};
    if (!begin_listing(&c, diagnostics, ast)) return TILE_OUT_OF_MEMORY;
    c.options = options;
    c.frame = &frame;
    bool ok = tile_bind_generics(&c, kernel) && tile_search_points(&c, kernel, most, out);
    end_listing(&c);
    return ok ? TILE_OK : TILE_INVALID_SOURCE;
}

tile_status tile_list_kernels(TileDiagnostics *diagnostics, const TileAst *ast, TileProgramInfo *out) {
    *out = (TileProgramInfo){0};
    TileChecker c;
    if (!begin_listing(&c, diagnostics, ast)) return TILE_OUT_OF_MEMORY;
    Lister lister = {.checker = &c, .arena = ast->arena, .ast = ast};
    tile_map_init(&lister.kernels, ast->arena);
    tile_map_init(&lister.exports, ast->arena);
    bool ok = true;
    for (size_t i = 0; i < ast->items.count; i++) {
        const TileItem *item = ast->items.items[i];
        if (item->kind == TILE_ITEM_KERNEL && !item->broken)
            ok = list_kernel(&lister, item->name, item, ast, out) && ok;
    }
    static const TileItem nowhere = {.kind = TILE_ITEM_FN};
    TileFrame frame = {.item = &nowhere, .ast = ast};
    c.frame = &frame;
    c.op_count = 0;
    for (size_t i = 0; i < ast->items.count; i++)
        for (size_t k = 0; k < ast->items.items[i]->exports.count; k++)
            ok = list_export(&lister, &ast->items.items[i]->exports.items[k], out) && ok;
    end_listing(&c);
    return ok ? TILE_OK : TILE_INVALID_SOURCE;
}
