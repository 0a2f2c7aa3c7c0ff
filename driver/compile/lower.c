/* From a unit's text to tile form: parses, lists and checks the kernels, and lowers one of them. */
#include <string.h>

#include "driver/compile/backend.h"
#include "driver/compile/ir_text.h"

static tile_status parse_text(TileUnit *unit) {
    const TileInput *input = unit->input;
    tile_status status =
        tile_parse_file(unit->arena, unit->diagnostics, input->file, input->text, input->length, &unit->ast);
    if (status != TILE_OK && status != TILE_INVALID_SOURCE) return status;
    TileImporter importer = tile_unit_importer(unit);
    TILE_TRY(tile_resolve_imports(unit->diagnostics, unit->ast, &importer));
    /* Also report errors in the items that could be parsed. */
    tile_status rest = status == TILE_OK
                           ? TILE_OK
                           : tile_check_module(unit->context, unit->diagnostics, unit->ast, unit->verify, NULL, NULL);
    return status == TILE_OK || rest == TILE_OK ? status : rest;
}

tile_status tile_unit_parse(TileUnit *unit) {
    unit->diagnostics = tile_diagnostics_create(unit->arena);
    unit->diagnostics->limits = &unit->input->compiler->limits;
    TILE_TRY(unit->input->is_ir ? tile_ir_text_parse(unit) : parse_text(unit));
    tile_input_step(unit->input, TILE_STEP_PARSE, &unit->clock);
    return TILE_OK;
}

tile_status tile_unit_list(TileUnit *unit, TileProgramInfo *program) {
    if (unit->input->is_ir) {
        tile_ir_text_list(unit, program);
        return TILE_OK;
    }
    TILE_TRY(tile_list_kernels(unit->diagnostics, unit->ast, program));
    tile_list_exported(unit->arena, program);
    return TILE_OK;
}

/* The kernel of this name, or the one that the export of this name is of. */
static const TileItem *kernel_of(const TileUnit *unit, const TileProgramInfo *program, const char *name) {
    for (size_t i = 0; i < program->kernels.count; i++)
        if (strcmp(program->kernels.items[i].name, name) == 0) return program->kernels.items[i].item;
    return NULL;
}

/* Warnings within other kernels and tests than the one that is asked for are those of other commands. */
static void leave_out_warnings(TileUnit *unit, const TileProgramInfo *program) {
    const char *name = unit->input->compiler->warn_of;
    const TileItem *kernel = name ? kernel_of(unit, program, name) : NULL;
    size_t kept = 0;
    for (size_t i = 0; kernel && i < unit->diagnostics->list.count; i++) {
        TileDiagnostic *d = unit->diagnostics->list.items[i];
        bool other = false;
        for (size_t k = 0; k < unit->ast->items.count && d->severity == TILE_SEVERITY_WARNING; k++) {
            const TileItem *item = unit->ast->items.items[k];
            bool body = item->kind == TILE_ITEM_KERNEL || item->kind == TILE_ITEM_TEST;
            bool inside = d->span.file == item->span.file && d->span.begin >= item->span.begin && d->span.end <= item->span.end;
            other = other || (body && inside && item != kernel);
        }
        if (!other) unit->diagnostics->list.items[kept++] = d;
    }
    if (kernel) unit->diagnostics->list.count = kept;
}

tile_status tile_unit_check(TileUnit *unit, TileProgramInfo *program) {
    if (unit->input->is_ir) return tile_unit_list(unit, program);
    const uint64_t *clean = tile_unit_check_ahead(unit);
    TILE_TRY(tile_check_module(unit->context, unit->diagnostics, unit->ast, unit->verify, clean, program));
    tile_list_exported(unit->arena, program);
    leave_out_warnings(unit, program);
    return TILE_OK;
}

bool tile_unit_names_setting(const TileProgramInfo *program, const char *name) {
    for (size_t k = 0; k < program->kernels.count; k++)
        if (tile_kernel_has_setting(&program->kernels.items[k], name)) return true;
    return false;
}

tile_status tile_unit_check_settings(TileUnit *unit, const TileProgramInfo *program) {
    for (size_t i = 0; i < unit->input->binding_count; i++) {
        const char *name = unit->input->bindings[i].name;
        if (tile_unit_names_setting(program, name)) continue;
        tile_text_format(&unit->message, "there is nothing called '%s' that a setting could decide", name);
        return TILE_INVALID_ARGUMENT;
    }
    return TILE_OK;
}

typedef struct Order {
    const TileOp *found; /* an op whose result depends on the order of programs */
} Order;

static void look_for_order(TileOp *op, void *state) {
    if (op->id != TILE_OP_ATOMIC_TILE || tile_op_get(op, TILE_ATTRIBUTE_UPDATE)->integer != TILE_UPDATE_ADD) return;
    if (tile_scalar_is_float(tile_op_operand(op, 0)->type->scalar)) ((Order *)state)->found = op;
}

/* Programs run in any order, and sums of floats depend on it. */
static tile_status check_deterministic(TileUnit *unit) {
    Order order = {NULL};
    for (TileFunc *func = unit->module->first; func; func = func->next)
        tile_block_walk(&func->body, look_for_order, &order);
    if (!order.found) return TILE_OK;
    tile_text_format(
        &unit->message,
        "floats are added atomically at %s:%u:%u, in an order that differs from run to run, which the setting "
        "`deterministic` refuses",
        unit->context->files.items[order.found->location.file], order.found->location.line,
        order.found->location.column);
    return TILE_UNSUPPORTED;
}

/* Lets a product of f32 round its operands, unless the text specifies a precision. */
static void round_to_tf32(TileOp *op, void *state) {
    if (op->id != TILE_OP_DOT || tile_op_get(op, TILE_ATTRIBUTE_PRECISION)) return;
    if (tile_op_integer(op, TILE_ATTRIBUTE_ORDERED, 0)) return;
    if (tile_op_operand(op, 0)->type->scalar != TILE_F32 || tile_op_operand(op, 1)->type->scalar != TILE_F32) return;
    tile_op_set_integer(state, op, TILE_ATTRIBUTE_PRECISION, TILE_PRECISION_TF32);
}

static void allow_tf32(TileUnit *unit) {
    for (TileFunc *func = unit->module->first; func; func = func->next)
        tile_block_walk(&func->body, round_to_tf32, unit->module);
}

/* Which `tune` clauses count. */
static const char *tune_class(const TileUnit *unit) {
    const TileBackend *backend = tile_unit_backend(unit);
    const TileSlack *slack = unit->input->slack;
    if (backend) return backend->family->name;
    return slack && slack->family ? slack->family : tile_backend_cpu.family->name;
}

static tile_status lower_text(TileUnit *unit, const TileKernelInfo *kernel, const TileBinding *bindings, size_t count) {
    const TileInput *input = unit->input;
    TILE_LIST(TileBinding) all = {0};
    for (size_t i = 0; i < kernel->chosen.count; i++) tile_list_push(unit->arena, &all, kernel->chosen.items[i]);
    for (size_t i = 0; i < input->binding_count; i++)
        if (tile_kernel_has_setting(kernel, input->bindings[i].name))
            tile_list_push(unit->arena, &all, input->bindings[i]);
    for (size_t i = 0; i < count; i++) tile_list_push(unit->arena, &all, bindings[i]);
    TileLowerOptions options = {.target = tune_class(unit),
                                .bindings = all.items,
                                .binding_count = all.count,
                                .debug = unit->input->flags & TILE_COMPILE_DEBUG,
                                .statements = !input->target && input->compiler->observer};
    unit->kernel = kernel;
    unit->lowering = options;
    return tile_lower_kernel_for(unit->context, unit->diagnostics, kernel->ast, kernel->item->name, &options,
                                 &unit->module);
}

tile_status tile_unit_lower(TileUnit *unit, const TileKernelInfo *kernel, const TileBinding *bindings, size_t count) {
    if (unit->input->is_ir)
        tile_ir_text_lower(unit, kernel);
    else
        TILE_TRY(lower_text(unit, kernel, bindings, count));
    tile_input_step(unit->input, TILE_STEP_CHECK, &unit->clock);
    const TileBackend *backend = tile_unit_backend(unit);
    bool has_tf32 = backend ? backend->has_tf32 : unit->input->slack && unit->input->slack->has_tf32;
    if (has_tf32 && unit->input->compiler->settings.allow_tf32) allow_tf32(unit);
    if (unit->input->compiler->settings.deterministic) return check_deterministic(unit);
    return TILE_OK;
}
