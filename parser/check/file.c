/* Checks a whole file: its kernels, at one or two instances each, its functions, constants, tests and exports. */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "parser/check/annotation.h"
#include "parser/check/bindings.h"
#include "parser/check/call.h"
#include "parser/check/emit.h"
#include "parser/check/formats.h"
#include "parser/check/item.h"
#include "parser/check/kernel.h"
#include "parser/check/module.h"
#include "parser/check/names.h"
#include "parser/check/parameter.h"
#include "parser/check/range.h"
#include "parser/check/report.h"
#include "parser/check/statement.h"
#include "parser/check/type.h"
#include "parser/check/warn.h"

typedef struct ModuleCheck {
    TileContext *context;
    TileDiagnostics *diagnostics;
    const TileAst *ast;
    TileArena *arena;  /* for the item that is being checked */
    TileMap instances; /* the names of instances already checked */
    TileMap wrong;     /* items with errors */
    bool clean;        /* nothing is reported for the current part */
    const uint64_t *known;  /* by part: what tile_check_ahead found; or NULL */
    const TileAhead *ahead; /* for tile_check_ahead; or NULL */
    TileInterner *names;    /* instead of those of the tree; or NULL */
    size_t part;            /* the first of the item or export that is being checked */
    bool verify;       /* also verify the IR */
    bool spent;        /* a limit was exceeded: the rest of the file is not checked */
    TileAnnotations *annotations; /* to be made; or NULL */
} ModuleCheck;

/* Frees the memory of the previous check. */
static void begin_check(ModuleCheck *check, TileChecker *c, const TileLowerOptions *options) {
    tile_arena_reset(check->arena);
    tile_checker_init(c, check->context, check->diagnostics, check->arena, check->ast, options);
    c->module = tile_module_create_in(check->context, check->arena);
    if (check->names) c->names = check->names;
    c->representative = true;
    c->annotations = check->annotations;
}

/* ---- parts, which threads may check ahead: the instances of a kernel, or another item as a whole ---- */

enum { ITEM_PARTS = 3 };

typedef struct Part {
    size_t number, said;
    uint32_t errors;
    uint64_t work;
} Part;

static Part begin_part(ModuleCheck *check, size_t part) {
    const TileDiagnostics *diagnostics = check->diagnostics;
    size_t number = check->part + part;
    check->clean = check->ahead ? atomic_exchange_explicit(&check->ahead->begun[number], true, memory_order_relaxed)
                                : check->known && check->known[number];
    return (Part){number, diagnostics->list.count, diagnostics->error_count, diagnostics->work};
}

static tile_status end_part(ModuleCheck *check, Part part, tile_status status) {
    TileDiagnostics *diagnostics = check->diagnostics;
    bool silent = status == TILE_OK && diagnostics->list.count == part.said && diagnostics->error_count == part.errors && !check->spent;
    if (!check->clean && check->ahead && silent) check->ahead->clean[part.number] = 1 + diagnostics->work - part.work;
    if (check->clean && check->known) diagnostics->work += check->known[part.number] - 1;
    check->clean = false;
    return status;
}

/* Does the program exceed a limit itself, and not only with the stand-in for a trip count? */
static bool is_spent(const TileChecker *c) { return tile_is_spent(c) && !c->unrolled; }

static bool differs_by_choice(const TileItem *kernel) {
    for (size_t i = 0; i < kernel->generics.count; i++)
        if (kernel->generics.items[i].kind == TILE_GENERIC_TYPE) return true;
    for (size_t i = 0; i < kernel->params.count; i++)
        if (kernel->params.items[i].type && kernel->params.items[i].type->is_const) return true;
    return false;
}

/* Instances with the same name are the same: an exported one has often been checked for the kernel already. */
static const char *instance_name(ModuleCheck *check, const TileItem *kernel, const TileLowerOptions *options,
                                 bool second) {
    TileText text = {.arena = check->arena};
    bool only_types = true;
    tile_text_add(&text, kernel->name);
    if (options->target) tile_text_format(&text, " on %s", options->target);
    for (size_t i = 0; i < options->binding_count; i++) {
        if (options->bindings[i].kind == TILE_BINDING_TYPE) continue;
        tile_text_format(&text, " %s=", options->bindings[i].name);
        tile_binding_print(&text, &options->bindings[i]);
    }
    for (size_t i = 0; i < kernel->generics.count; i++) {
        const TileGeneric *generic = &kernel->generics.items[i];
        uint32_t types = 0;
        if (generic->kind != TILE_GENERIC_TYPE) {
            only_types = only_types && generic->value;
            continue;
        }
        for (size_t k = 0; k < generic->classes.count; k++) tile_class_types(generic->classes.items[k].name, &types);
        TileBinding choice = {.kind = TILE_BINDING_TYPE, .type = types ? tile_stand_in_type(types, second) : TILE_F32};
        for (size_t k = 0; k < options->binding_count; k++)
            if (strcmp(options->bindings[k].name, generic->name) == 0) choice = options->bindings[k];
        tile_text_add_char(&text, ' ');
        tile_binding_print(&text, &choice);
    }
    for (size_t i = 0; i < kernel->params.count; i++)
        only_types = only_types && !(kernel->params.items[i].type && kernel->params.items[i].type->is_const);
    if (second && !only_types) tile_text_add(&text, " second");
    return tile_text_get(&text);
}

static bool is_checked(ModuleCheck *check, const char *instance) {
    const char *name = tile_intern_string(check->context->strings, instance);
    if (tile_map_get(&check->instances, name)) return true;
    tile_map_set(&check->instances, name, (void *)name);
    return false;
}

static tile_status check_once(ModuleCheck *check, const TileItem *kernel, const TileLowerOptions *options,
                              bool second) {
    uint32_t errors = check->diagnostics->error_count;
    TileChecker c;
    begin_check(check, &c, options);
    c.second = second;
    tile_check_kernel(&c, kernel);
    tile_annotate_item(&c);
    tile_status status = check->diagnostics->error_count == errors
                             ? tile_checker_verify(&c, kernel, check->verify && !c.incomplete)
                             : TILE_INVALID_SOURCE;
    check->spent = check->spent || is_spent(&c);
    return status;
}

/* ---- compatible types ---- */

typedef struct TypeChoices {
    ModuleCheck *check;
    const TileItem *kernel;
    const TileLowerOptions *options;
    bool second;
    TILE_LIST(TileBinding) bindings; /* those of the options, then one for each open type */
    TILE_LIST(uint32_t) types;       /* the candidates for each of the latter */
    unsigned tried;
} TypeChoices;

static bool is_bound(const TileLowerOptions *options, const char *name) {
    for (size_t i = 0; i < options->binding_count; i++)
        if (strcmp(options->bindings[i].name, name) == 0) return true;
    return false;
}

static void list_open_types(TypeChoices *choices, TileArena *arena) {
    for (size_t i = 0; i < choices->options->binding_count; i++)
        tile_list_push(arena, &choices->bindings, choices->options->bindings[i]);
    for (size_t i = 0; i < choices->kernel->generics.count; i++) {
        const TileGeneric *generic = &choices->kernel->generics.items[i];
        uint32_t types = 0;
        if (generic->kind != TILE_GENERIC_TYPE || is_bound(choices->options, generic->name)) continue;
        for (size_t k = 0; k < generic->classes.count; k++) tile_class_types(generic->classes.items[k].name, &types);
        if (!(types & (types - 1))) continue;
        TileBinding binding = {.name = generic->name, .kind = TILE_BINDING_TYPE};
        binding.type = tile_stand_in_type(types, choices->second);
        tile_list_push(arena, &choices->bindings, binding);
        tile_list_push(arena, &choices->types, types);
    }
}

/* Is there a choice for the types from `next` on, other than `fixed`, without errors? */
static bool some_choice_is_right(TypeChoices *choices, size_t next, size_t fixed) {
    enum { MOST = 256 };
    if (next == choices->types.count) {
        TileLowerOptions options = *choices->options;
        TileDiagnosticsMark mark = tile_diagnostics_mark(choices->check->diagnostics);
        options.bindings = choices->bindings.items;
        options.binding_count = choices->bindings.count;
        options.places = NULL;
        if (choices->tried++ >= MOST) return false;
        tile_status status = check_once(choices->check, choices->kernel, &options, choices->second);
        tile_diagnostics_rewind(choices->check->diagnostics, mark);
        return status == TILE_OK;
    }
    if (next == fixed) return some_choice_is_right(choices, next + 1, fixed);
    TileBinding *binding = &choices->bindings.items[choices->options->binding_count + next];
    TileScalar before = binding->type;
    for (int scalar = 0; scalar < TILE_SCALAR_COUNT; scalar++) {
        binding->type = (TileScalar)scalar;
        if (choices->types.items[next] >> scalar & 1 && some_choice_is_right(choices, next + 1, fixed)) return true;
    }
    binding->type = before;
    return false;
}

/* A kernel with several types may be meant for compatible ones only: each type has to be correct with some choice of
 * the others. */
static bool types_go_together(ModuleCheck *check, const TileItem *kernel, const TileLowerOptions *options,
                              bool second) {
    TileArena *arena = tile_arena_create(check->context->arena);
    TypeChoices choices = {.check = check, .kernel = kernel, .options = options, .second = second};
    if (!arena) return false;
    list_open_types(&choices, arena);
    bool right = choices.types.count > 1;
    for (size_t fixed = 0; right && fixed < choices.types.count; fixed++) {
        choices.tried = 0;
        right = some_choice_is_right(&choices, 0, fixed);
    }
    tile_arena_destroy(arena);
    return right;
}

static tile_status check_instance(ModuleCheck *check, const TileItem *kernel, const TileLowerOptions *options,
                                  bool second) {
    if (is_checked(check, instance_name(check, kernel, options, second)) || check->clean) return TILE_OK;
    TileDiagnosticsMark mark = tile_diagnostics_mark(check->diagnostics);
    tile_status status = check_once(check, kernel, options, second);
    if (status != TILE_INVALID_SOURCE || check->spent || !types_go_together(check, kernel, options, second))
        return status;
    tile_diagnostics_rewind(check->diagnostics, mark);
    return TILE_OK;
}

/* Are some of its tune names or values specific to a kind of target? */
static bool has_gpu_names(const TileItem *kernel) {
    for (size_t i = 0; i < kernel->tunes.count; i++)
        if (kernel->tunes.items[i].target) return true;
    return false;
}

static tile_status check_part(ModuleCheck *check, size_t number, const TileItem *kernel, const TileLowerOptions *options, bool second) {
    Part part = begin_part(check, number);
    return end_part(check, part, check_instance(check, kernel, options, second));
}

static tile_status check_kernel_item(ModuleCheck *check, const TileItem *kernel) {
    static const TileLowerOptions none = {0}, gpu = {.target = "gpu"};
    tile_status status = check_part(check, 0, kernel, &none, false);
    if (status == TILE_OK && differs_by_choice(kernel)) status = check_part(check, 1, kernel, &none, true);
    if (status == TILE_OK && has_gpu_names(kernel)) status = check_part(check, 2, kernel, &gpu, false);
    return status;
}

/* A stand-in for an argument of a function that is checked without a call. */
static const TileSum *stand_in_extent(TileChecker *c, TileMap *extents, const TileExpr *expr, bool constant) {
    enum { EXTENT = 8 };
    if (expr->kind != TILE_EXPR_NAME || tile_is_constant(c, c->ast, expr->name)) return NULL;
    const TileSum *sum = tile_map_get(extents, expr->name);
    if (sum) return sum;
    TileSymbol *symbol;
    if (constant) {
        symbol = tile_symbol_known(&c->sums, expr->name, EXTENT);
    } else {
        symbol = tile_symbol_value(&c->sums, expr->name, tile_build_i64(tile_emitter(c), EXTENT));
        tile_symbol_bound(&c->sums, symbol, tile_sum_integer(&c->sums, 0), tile_sum_integer(&c->sums, TILE_MAX_EXTENT));
    }
    symbol->open = TILE_OPEN_NUMBER | TILE_OPEN_NAME;
    sum = tile_sum_symbol(&c->sums, symbol);
    tile_map_set(extents, expr->name, (void *)sum);
    return sum;
}

static TileScalar stand_in_type(const TileItem *item, const TileTypeExpr *type, bool *ok) {
    TileScalar scalar = TILE_F32;
    for (size_t i = 0; i < item->generics.count; i++) {
        const TileGeneric *generic = &item->generics.items[i];
        if (generic->name != type->name) continue;
        uint32_t types = 0;
        for (size_t k = 0; k < generic->classes.count; k++) tile_class_types(generic->classes.items[k].name, &types);
        *ok = types != 0;
        return types >> TILE_F32 & 1u || !types ? TILE_F32 : (TileScalar)__builtin_ctz(types);
    }
    *ok = type->name && tile_scalar_find(type->name, strlen(type->name), &scalar);
    return scalar;
}

/* Reports unknown type names in the function, even if it is never called. */
static bool check_type_name(TileChecker *c, const TileItem *item, const TileTypeExpr *type) {
    bool ok = true;
    if (!type->name || type->kind == TILE_TYPE_EXPR_RANGE) return true;
    stand_in_type(item, type, &ok);
    for (size_t i = 0; i < item->generics.count; i++)
        if (item->generics.items[i].name == type->name) return true;
    ok = ok || (type->access != TILE_WORD_NONE && tile_format_find(type->name));
    if (!ok) tile_fail_type(c, type->name_span, type->name);
    return ok;
}

static bool check_type_names(TileChecker *c, const TileItem *item) {
    bool ok = true;
    for (size_t i = 0; i < item->generics.count; i++)
        for (size_t k = 0; k < item->generics.items[i].classes.count; k++) {
            const TileNameRef *class = &item->generics.items[i].classes.items[k];
            uint32_t types = 0;
            if (!tile_class_types(class->name, &types)) ok = (tile_fail_type(c, class->span, class->name), false);
        }
    for (size_t i = 0; i < item->params.count; i++)
        if (item->params.items[i].type) ok = check_type_name(c, item, item->params.items[i].type) && ok;
    return ok;
}

static bool stand_in_argument(TileChecker *c, const TileItem *item, const TileParam *param, TileMap *extents,
                              TileMeaning *out) {
    const TileTypeExpr *type = param->type;
    const TileSum *extent[TILE_MAX_TENSOR_RANK];
    bool ok = true;
    if (!type || (type->kind != TILE_TYPE_EXPR_NAME && type->kind != TILE_TYPE_EXPR_RANGE)) return false;
    bool is_tensor = type->access != TILE_WORD_NONE;
    size_t limit = is_tensor ? TILE_MAX_TENSOR_RANK : TILE_MAX_TILE_RANK;
    if (type->extents.count > limit) return false;
    for (size_t i = 0; i < type->extents.count; i++)
        if (!(extent[i] = stand_in_extent(c, extents, type->extents.items[i], !is_tensor))) return false;
    if (type->kind == TILE_TYPE_EXPR_RANGE) {
        TileSymbol *first =
            tile_symbol_value(&c->sums, param->name,
                              tile_func_add_parameter(c->func, param->name, tile_type_scalar(c->context, TILE_I64)));
        TileTiles tiles = {.lo = tile_sum_integer(&c->sums, 0), .size = extent[0]};
        TileSymbol *limit = tile_symbol_value(&c->sums, "a limit", first->value);
        first->open = limit->open = TILE_OPEN_NUMBER | TILE_OPEN_NAME;
        tiles.hi = tile_sum_symbol(&c->sums, limit);
        *out = tile_range_of(c, &tiles, tile_sum_symbol(&c->sums, first), (TileNameRef){param->name, param->span});
        return true;
    }
    TileScalar scalar = stand_in_type(item, type, &ok);
    TileFormat format = ok || !is_tensor ? TILE_FORMAT_PLAIN : tile_format_find(type->name);
    if (format) scalar = tile_format_scalar(format);
    if ((!ok && !format) || tile_fail_single(c, type, format)) return false;
    unsigned rank = (unsigned)type->extents.count;
    if (is_tensor) {
        TileTensor *tensor = TILE_NEW(c->arena, TileTensor);
        TileAccess access = type->access == TILE_WORD_IN    ? TILE_ACCESS_IN
                            : type->access == TILE_WORD_OUT ? TILE_ACCESS_OUT
                                                            : TILE_ACCESS_INOUT;
        *tensor =
            (TileTensor){.name = param->name, .scalar = scalar, .format = format, .access = access, .rank = rank, .span = param->span};
        memcpy(tensor->dims, extent, rank * sizeof *extent);
        tensor->value =
            tile_func_add_parameter(c->func, param->name, tile_type_tensor(c->context, format ? TILE_U8 : scalar, rank, access));
        *out = (TileMeaning){.kind = TILE_MEANING_TENSOR, .tensor = tensor};
        return true;
    }
    TileMeaning shape = {.kind = TILE_MEANING_VALUE, .scalar = (uint8_t)scalar, .rank = (uint8_t)rank};
    memcpy(shape.extent, extent, rank * sizeof *extent);
    *out = tile_value_meaning(c, tile_func_add_parameter(c->func, param->name, tile_meaning_type(c, &shape)), extent,
                              NULL);
    return true;
}

/* Checks a function with stand-in arguments; one with function or const generics is only checked at calls. */
static tile_status check_function_item(ModuleCheck *check, const TileItem *item) {
    static const TileLowerOptions none = {0};
    static const TileItem nowhere = {.kind = TILE_ITEM_FN};
    uint32_t errors = check->diagnostics->error_count;
    for (size_t i = 0; i < item->generics.count; i++)
        if (item->generics.items[i].kind != TILE_GENERIC_TYPE && !item->generics.items[i].value) return TILE_OK;
    TileChecker c;
    begin_check(check, &c, &none);
    TileFrame frame = {.item = &nowhere, .ast = check->ast};
    TileMap extents;
    tile_map_init(&extents, check->arena);
    c.frame = &frame;
    c.in_grid = true;
    c.stands_alone = true;
    c.func = tile_func_create(c.module, item->name, TILE_FUNC_DEVICE, TILE_FORM_TILE);
    c.builder = tile_builder_at_end(c.module, &c.func->body);
    tile_list_push(check->arena, &c.stand_ins, item->name); /* stands for its arguments, whatever their names */
    TileMeaning *arguments = TILE_NEW_ARRAY(check->arena, TileMeaning, item->params.count);
    bool ok = check_type_names(&c, item);
    for (size_t i = 0; i < item->params.count; i++) ok = tile_check_parameter(&c, &item->params.items[i]) && ok;
    for (size_t i = 0; ok && i < item->params.count; i++)
        ok = stand_in_argument(&c, item, &item->params.items[i], &extents, &arguments[i]);
    TileMeaning function = {.kind = TILE_MEANING_FUNCTION, .item = item, .ast = check->ast};
    if (ok) tile_call_function(&c, &function, arguments, NULL, (unsigned)item->params.count, item->name_span);
    tile_annotate_item(&c);
    check->spent = check->spent || is_spent(&c);
    return check->diagnostics->error_count == errors ? TILE_OK : TILE_INVALID_SOURCE;
}

static tile_status check_constant_item(ModuleCheck *check, const TileItem *item) {
    static const TileLowerOptions none = {0};
    static const TileItem nowhere = {.kind = TILE_ITEM_FN};
    TileChecker c;
    begin_check(check, &c, &none);
    TileFrame frame = {.item = &nowhere, .ast = check->ast};
    TileFunc *func = tile_func_create(c.module, "const", TILE_FUNC_DEVICE, TILE_FORM_TILE);
    c.frame = &frame;
    c.builder = tile_builder_at_end(c.module, &func->body);
    TileMeaning m = tile_nothing();
    if (item->kind == TILE_ITEM_CONST) {
        m = tile_scope_meaning(&c, item->name, item->name_span);
    } else {
        TileStatement statement = {.kind = TILE_STATEMENT_STATIC_ASSERT, .span = item->span};
        statement.arguments.items = item->arguments.items;
        statement.arguments.count = item->arguments.count;
        c.representative = false;
        tile_check_statement(&c, &statement);
    }
    tile_annotate_item(&c);
    check->spent = check->spent || is_spent(&c);
    return tile_is_error(&m) ? TILE_INVALID_SOURCE : TILE_OK;
}

static tile_status check_test_item(ModuleCheck *check, const TileItem *item) {
    TileTest test;
    TileTestStage stage;
    tile_arena_reset(check->arena);
    tile_status status = tile_check_test(check->context, check->diagnostics, check->arena, check->ast, item,
                                         check->annotations, &test, &stage);
    tile_module_destroy(stage.module);
    return status;
}

static void report_taken(ModuleCheck *check, const char *name, TileSpan span, TileSpan other) {
    TileDiagnostic *d = tile_diagnose(check->diagnostics, TILE_DIAGNOSTIC_NAME_TAKEN, span, name);
    tile_diagnostic_note(check->diagnostics, d, other, "`%s` is bound here", name);
}

/* Names of generics and parameters must be unique in an item. */
static void check_signature(ModuleCheck *check, const TileItem *item) {
    for (size_t i = 0; i < item->generics.count; i++)
        for (size_t k = 0; k < i; k++)
            if (item->generics.items[k].name == item->generics.items[i].name)
                report_taken(check, item->generics.items[i].name, item->generics.items[i].span,
                             item->generics.items[k].span);
    for (size_t i = 0; i < item->params.count; i++) {
        const TileParam *param = &item->params.items[i];
        for (size_t k = 0; k < i; k++)
            if (item->params.items[k].name == param->name && item->params.items[k].spread == param->spread)
                report_taken(check, param->name, param->span, item->params.items[k].span);
        for (size_t k = 0; k < item->generics.count && !param->spread; k++)
            if (item->generics.items[k].name == param->name)
                report_taken(check, param->name, param->span, item->generics.items[k].span);
    }
}

static void check_duplicates(ModuleCheck *check) {
    TileMap seen;
    tile_map_init(&seen, check->arena);
    for (size_t i = 0; i < check->ast->items.count; i++) {
        const TileItem *item = check->ast->items.items[i];
        if (item->kind != TILE_ITEM_CONST && item->kind != TILE_ITEM_FN && item->kind != TILE_ITEM_KERNEL) continue;
        check_signature(check, item);
        const TileItem *other = tile_map_get(&seen, item->name);
        if (other) {
            TileDiagnostic *d =
                tile_diagnose(check->diagnostics, TILE_DIAGNOSTIC_NAME_TAKEN, item->name_span, item->name);
            tile_diagnostic_note(check->diagnostics, d, other->name_span, "`%s` is declared here", item->name);
        }
        tile_map_set(&seen, item->name, (void *)item);
    }
}

/* The cost of an item without code. */
enum { ITEM_WORK = 16 };

/* Does the work for the file exceed the limit? Reported at the current item. */
static void weigh_file(ModuleCheck *check, const TileItem *item) {
    uint64_t most = check->diagnostics->limits->most[TILE_LIMIT_FILE_OPERATIONS];
    check->diagnostics->work += ITEM_WORK;
    if (check->diagnostics->work <= most || check->spent) return;
    check->spent = true;
    TileDiagnostic *d = tile_diagnose(check->diagnostics, TILE_DIAGNOSTIC_TOO_MANY_OPS, item->name_span, "the file",
                                      (unsigned long long)most);
    tile_diagnostic_note_limit(check->diagnostics, d, TILE_LIMIT_FILE_OPERATIONS);
}

static tile_status check_export(ModuleCheck *check, const TileExportInfo *export) {
    TileLowerOptions options = {.bindings = export->bindings.items,
                                .binding_count = export->bindings.count,
                                .places = export->places.items};
    const TileAst *own = check->ast;
    check->ast = export->ast; /* a kernel of an import knows what its own file knows */
    tile_status status = check_part(check, 0, export->item, &options, false);
    check->ast = own;
    return status;
}

/* What was found ahead of exports counts only where all are listed. */
static tile_status check_exports(ModuleCheck *check, TileProgramInfo *program) {
    size_t first = check->ast->items.count * ITEM_PARTS;
    tile_status result = tile_list_kernels(check->diagnostics, check->ast, program);
    if (result == TILE_OUT_OF_MEMORY) return result;
    if (result != TILE_OK) check->known = NULL;
    for (size_t i = 0; i < program->exports.count && !check->spent; i++) {
        const TileExportInfo *export = &program->exports.items[i];
        if (tile_map_get(&check->wrong, export->item)) continue; /* reported already */
        check->part = first + i;
        tile_status status = check_export(check, export);
        if (status != TILE_OK) result = status;
        weigh_file(check, export->item);
    }
    return result;
}

static tile_status check_other_item(ModuleCheck *check, const TileItem *item) {
    switch ((TileItemKind)item->kind) {
    case TILE_ITEM_CONST:
    case TILE_ITEM_STATIC_ASSERT: return check_constant_item(check, item);
    case TILE_ITEM_FN: return check_function_item(check, item);
    case TILE_ITEM_TEST: return check_test_item(check, item);
    case TILE_ITEM_KERNEL:
    case TILE_ITEM_IMPORT:
    case TILE_ITEM_EXPORT: return TILE_OK;
    }
    return TILE_OK;
}

static tile_status check_item(ModuleCheck *check, const TileItem *item) {
    /* As one types, there is hardly ever an item without an error: what is right of it has annotations. */
    if (item->broken && !(check->annotations && item->header_right)) return TILE_INVALID_SOURCE;
    if (item->kind == TILE_ITEM_KERNEL) return check_kernel_item(check, item);
    Part part = begin_part(check, 0);
    return end_part(check, part, check->clean ? TILE_OK : check_other_item(check, item));
}

static bool begin_module(ModuleCheck *check, TileContext *context, TileDiagnostics *diagnostics, const TileAst *ast,
                         bool verify) {
    *check = (ModuleCheck){.context = context, .diagnostics = diagnostics, .ast = ast, .verify = verify};
    tile_map_init(&check->instances, context->arena);
    tile_map_init(&check->wrong, context->arena);
    check->arena = tile_arena_create(context->arena);
    return check->arena != NULL;
}

size_t tile_check_count(const TileAst *ast) {
    size_t count = ast->items.count * ITEM_PARTS;
    for (size_t i = 0; i < ast->items.count; i++) count += ast->items.items[i]->exports.count;
    return count;
}

void tile_check_ahead(TileContext *context, TileDiagnostics *diagnostics, const TileAst *ast, bool verify,
                      const TileAhead *ahead) {
    ModuleCheck check;
    TileProgramInfo program;
    TileAst own = *ast; /* kernels are listed in the memory of the tree */
    own.arena = context->arena;
    own.names = tile_interner_create_above(context->arena, ast->names);
    if (!begin_module(&check, context, diagnostics, &own, verify)) return;
    check.names = own.names;
    check.ahead = ahead;
    for (size_t i = 0; i < ast->items.count && !check.spent; i++) {
        check.part = i * ITEM_PARTS;
        (void)check_item(&check, ast->items.items[i]);
        if (!check.spent) weigh_file(&check, ast->items.items[i]);
    }
    if (!check.spent && tile_check_count(ast) > ast->items.count * ITEM_PARTS) (void)check_exports(&check, &program);
    tile_arena_destroy(check.arena);
}

tile_status tile_check_module(TileContext *context, TileDiagnostics *diagnostics, const TileAst *ast, bool verify,
                              const uint64_t *clean, TileProgramInfo *program) {
    TileProgramInfo own;
    uint32_t errors = diagnostics->error_count;
    ModuleCheck check;
    tile_status result = TILE_OK;
    if (!begin_module(&check, context, diagnostics, ast, verify)) return TILE_OUT_OF_MEMORY;
    check.known = clean;
    check_duplicates(&check);
    for (size_t i = 0; i < ast->items.count && result != TILE_OUT_OF_MEMORY && !check.spent; i++) {
        check.part = i * ITEM_PARTS;
        tile_status status = check_item(&check, ast->items.items[i]);
        if (!check.spent) weigh_file(&check, ast->items.items[i]);
        if (check.spent && status == TILE_OK) status = TILE_INVALID_SOURCE;
        if (status != TILE_OK)
            tile_map_set(&check.wrong, ast->items.items[i], ast->items.items[i]);
        else
            tile_warn_unused(diagnostics, check.arena, ast->items.items[i]);
        if (status != TILE_OK) result = status;
    }
    if (result == TILE_OUT_OF_MEMORY || check.spent) return tile_arena_destroy(check.arena), result;
    tile_status status = check_exports(&check, program ? program : &own);
    if (result == TILE_OK || status == TILE_OUT_OF_MEMORY) result = status;
    tile_arena_destroy(check.arena);
    tile_diagnostics_sort(diagnostics);
    if (result == TILE_OK && diagnostics->error_count != errors) result = TILE_INVALID_SOURCE;
    return result;
}

static bool is_dimension(const TileItem *kernel, const char *name) {
    for (size_t i = 0; i < kernel->params.count; i++) {
        const TileTypeExpr *type = kernel->params.items[i].type;
        for (size_t d = 0; type && d < type->extents.count; d++) {
            const TileExpr *extent = type->extents.items[d];
            if (extent->kind == TILE_EXPR_NAME && strcmp(extent->name, name) == 0) return true;
        }
    }
    return false;
}

/* The kernel with the bindings that concern it; a dimension among them counts as one that `static` names, in a copy of
 * the item. */
static const TileItem *choose_bindings(TileArena *arena, const TileAst *ast, const TileItem *kernel,
                                       const TileBinding *bindings, size_t count, TileLowerOptions *options) {
    TILE_LIST(TileBinding) own = {0};
    TileItem *fixed = NULL;
    for (size_t i = 0; i < count; i++) {
        const char *name = bindings[i].name;
        bool setting = tile_names_setting(kernel, name);
        if (!setting && !is_dimension(kernel, name)) continue;
        tile_list_push(arena, &own, bindings[i]);
        if (setting) continue;
        TileNameRef reference = {.name = tile_intern_string(ast->names, name), .span = kernel->name_span};
        if (!fixed) {
            fixed = tile_arena_copy(arena, kernel, sizeof *kernel);
            fixed->statics.items = tile_arena_copy(arena, kernel->statics.items, kernel->statics.count * sizeof reference);
            fixed->statics.capacity = kernel->statics.count;
        }
        tile_list_push(arena, &fixed->statics, reference);
    }
    *options = (TileLowerOptions){.bindings = own.items, .binding_count = own.count};
    return fixed ? fixed : kernel;
}

tile_status tile_check_instances(TileContext *context, TileDiagnostics *diagnostics, const TileAst *ast, bool verify,
                                 const TileBinding *bindings, size_t count) {
    ModuleCheck check;
    tile_status result = TILE_OK;
    if (!begin_module(&check, context, diagnostics, ast, verify)) return TILE_OUT_OF_MEMORY;
    for (size_t i = 0; i < ast->items.count && !check.spent; i++) {
        const TileItem *kernel = ast->items.items[i];
        TileLowerOptions options;
        if (kernel->kind != TILE_ITEM_KERNEL || kernel->broken) continue;
        const TileItem *chosen = choose_bindings(context->arena, ast, kernel, bindings, count, &options);
        tile_status status = options.binding_count ? check_instance(&check, chosen, &options, false) : TILE_OK;
        if (status != TILE_OK) result = status;
        if (status == TILE_OUT_OF_MEMORY) break;
        weigh_file(&check, kernel);
    }
    tile_arena_destroy(check.arena);
    tile_diagnostics_sort(diagnostics);
    return result;
}

void tile_annotate_module(TileContext *context, TileDiagnostics *diagnostics, const TileAst *ast, TileAnnotations *out) {
    ModuleCheck check;
    tile_map_init(&out->places, out->arena);
    out->file = ast->file;
    if (!begin_module(&check, context, diagnostics, ast, false)) return;
    check.annotations = out;
    for (size_t i = 0; i < ast->items.count && !check.spent; i++) {
        if (check_item(&check, ast->items.items[i]) == TILE_OUT_OF_MEMORY) break;
        weigh_file(&check, ast->items.items[i]);
    }
    tile_arena_destroy(check.arena);
}
