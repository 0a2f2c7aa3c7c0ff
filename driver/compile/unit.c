/* One compilation, from text to IR. */
#include "driver/compile/unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/stack.h"
#include "driver/compile/backend.h"
#include "driver/compile/ir_text.h"
#include "driver/compile/own_pass.h"
#include "driver/compile/stages.h"
#include "launch/clock.h"
#include "parser/syntax/syntax.h"

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

/* All that may run out of memory. */
static tile_status run_guarded(TileUnit *unit, tile_status (*body)(TileUnit *unit, void *state), void *state,
                               TileReport **report) {
    if (setjmp(unit->guard)) {
        unit->keep = false;
        return TILE_OUT_OF_MEMORY;
    }
    tile_arena_set_guard(unit->arena, &unit->guard);
    unit->context = tile_ir_context_create();
    if (!unit->context) return TILE_OUT_OF_MEMORY;
    tile_arena_set_guard(unit->context->arena, &unit->guard);
    unit->message.arena = unit->arena;
    tile_status status = tile_image_run(&(TileImageJob){.unit = unit}, TILE_IMAGE_PARSE);
    if (status == TILE_OK) status = body(unit, state);
    *report = tile_report_from_unit(unit);
    return status;
}

static tile_status run_once(TileInput *input, bool verify, tile_status (*body)(TileUnit *unit, void *state),
                            void *state, TileReport **report) {
    TileUnit *unit = calloc(1, sizeof *unit);
    if (!unit) return TILE_OUT_OF_MEMORY;
    unit->input = input;
    unit->verify = verify;
    unit->clock = tile_clock_ns();
    unit->arena = tile_arena_create(NULL);
    tile_status status = unit->arena ? run_guarded(unit, body, state, report) : TILE_OUT_OF_MEMORY;
    if (!unit->keep) {
        tile_unit_destroy(unit);
        return status;
    }
    tile_arena_set_guard(unit->arena, NULL);
    tile_arena_set_guard(unit->context->arena, NULL);
    tile_arena_set_guard(unit->module->arena, NULL);
    return status;
}

/* The arguments and results of tile_unit_run. */
typedef struct Run {
    TileInput *input;
    tile_status (*body)(TileUnit *unit, void *state);
    void *state;
    TileReport *report;
    tile_status status;
} Run;

static void run(void *state) {
    Run *run = state;
    bool verify = run->input->flags & TILE_COMPILE_DEBUG;
    run->status = run_once(run->input, verify, run->body, run->state, &run->report);
    if (run->status != TILE_INTERNAL || verify) return;
    tile_report_destroy(run->report); /* a compiler bug: run again with verification, to find the pass */
    run->report = NULL;
    run->status = run_once(run->input, true, run->body, run->state, &run->report);
}

tile_status tile_unit_run(TileInput *input, tile_status (*body)(TileUnit *unit, void *state), void *state,
                          TileReport **report) {
    Run given = {.input = input, .body = body, .state = state};
    if (!tile_stack_run(run, &given)) {
        given.status = TILE_OUT_OF_MEMORY;
        given.report = tile_report_from_text("there is no memory for a stack to compile on");
    }
    if (report)
        *report = given.report;
    else
        tile_report_destroy(given.report);
    return given.status;
}

void tile_unit_destroy(TileUnit *unit) {
    tile_code_release(&unit->code);
    free(unit->cached);
    if (unit->bridge) tile_compiler_give_bridge(unit->input->compiler, unit->bridge);
    tile_module_destroy(unit->module);
    tile_ir_context_destroy(unit->context);
    tile_arena_destroy(unit->arena);
    free(unit);
}

/* ---- lowering ---- */

tile_status tile_unit_list(TileUnit *unit, TileProgramInfo *program) {
    if (unit->input->is_ir) {
        tile_ir_text_list(unit, program);
        return TILE_OK;
    }
    TILE_TRY(tile_list_kernels(unit->diagnostics, unit->ast, program));
    tile_list_exported(unit->arena, program);
    return TILE_OK;
}

tile_status tile_unit_check(TileUnit *unit, TileProgramInfo *program) {
    if (unit->input->is_ir) return tile_unit_list(unit, program);
    const uint64_t *clean = tile_unit_check_ahead(unit);
    TILE_TRY(tile_check_module(unit->context, unit->diagnostics, unit->ast, unit->verify, clean, program));
    tile_list_exported(unit->arena, program);
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
                                .debug = unit->input->flags & TILE_COMPILE_DEBUG};
    unit->item = kernel->item;
    unit->lowering = options;
    return tile_lower_kernel_for(unit->context, unit->diagnostics, unit->ast, kernel->item->name, &options,
                                 &unit->module);
}

tile_status tile_unit_lower(TileUnit *unit, const TileKernelInfo *kernel, const TileBinding *bindings, size_t count) {
    if (unit->input->is_ir)
        tile_ir_text_lower(unit, kernel);
    else
        TILE_TRY(lower_text(unit, kernel, bindings, count));
    tile_input_step(unit->input, TILE_STEP_CHECK, &unit->clock);
    const TileBackend *backend = tile_unit_backend(unit);
    if (backend && backend->has_tf32 && unit->input->compiler->settings.allow_tf32) allow_tf32(unit);
    if (unit->input->compiler->settings.deterministic) return check_deterministic(unit);
    return TILE_OK;
}

TileFunc *tile_unit_kernel(const TileUnit *unit, const TileKernelInfo *kernel) {
    return tile_unit_func(unit, kernel->item ? kernel->item->name : kernel->name);
}

TileFunc *tile_unit_func(const TileUnit *unit, const char *name) {
    return tile_func_find(unit->module, tile_intern_string(unit->context->strings, name));
}

/* ---- passes ---- */

static tile_status target_pipeline(TileUnit *unit, TilePipeline *pipeline) {
    const TileTarget *target = unit->input->target;
    TILE_TRY(tile_family_pipeline(tile_backend_of(target)->family, target, pipeline, unit->arena, &unit->message));
    tile_own_pass_place(unit->input->compiler, unit->arena, pipeline);
    const TileCompiler *compiler = unit->input->compiler;
    tile_pipeline_interleave(pipeline, unit->arena, compiler->between, compiler->between_count);
    for (size_t i = 0; i < compiler->behind_count; i++) tile_list_push(unit->arena, pipeline, compiler->behind[i]);
    return TILE_OK;
}

tile_status tile_unit_pipeline(TileUnit *unit, TilePipeline *pipeline) {
    if (unit->input->target) return target_pipeline(unit, pipeline);
    TILE_TRY(tile_family_pipeline(tile_backend_cpu.family, NULL, pipeline, unit->arena, &unit->message));
    /* The interpreter defines the meaning of a kernel, so it runs only the passes that are part of the meaning. */
    size_t count = 0;
    while (count < pipeline->count && pipeline->items[count]->stage == TILE_STAGE_MEANING) count++;
    pipeline->count = count;
    return TILE_OK;
}

size_t tile_unit_shared_passes(const TilePipeline *pipeline) {
    size_t count = 0;
    while (count < pipeline->count && pipeline->items[count]->stage != TILE_STAGE_TARGET) count++;
    return count;
}

/* Exceeding a limit is reported as a diagnostic with its location. */
static void report_excess(TileUnit *unit, const TilePassExcess *excess) {
    const char *file = unit->context->files.items[excess->place.file];
    TileSpan span = tile_source_span(unit->diagnostics, file, excess->place.line, excess->place.column);
    TileDiagnostic *d = tile_diagnose(unit->diagnostics, excess->code, span, excess->words);
    tile_diagnostic_note_limit(unit->diagnostics, d, excess->limit);
}

tile_status tile_unit_passes(TileUnit *unit, const TilePassInfo *const *passes, size_t count) {
    TilePassContext context = tile_pass_context(unit->module, unit->arena, unit->input->target);
    context.settings.no_contract = unit->input->flags & TILE_COMPILE_NO_CONTRACT;
    context.settings.mark_padding = unit->input->mark_padding && unit->input->flags & TILE_COMPILE_EMULATE;
    context.settings.debug = unit->input->flags & TILE_COMPILE_DEBUG;
    context.limits = &unit->input->compiler->limits;
    if (unit->input->compiler->explanation) context.remarks = &unit->remarks;
    uint64_t names = unit->input->compiler->names;
    TilePassOptions options = {.verify = unit->verify, .names = names, .restore = names};
    TilePassReport report = tile_pass_report(unit->arena);
    tile_status status = tile_passes_run(&context, passes, count, &options, &report);
    for (size_t i = 0; i < report.times.count; i++) {
        TilePassStage stage = report.times.items[i].pass->stage;
        bool shared = stage == TILE_STAGE_MEANING || stage == TILE_STAGE_SHARED;
        atomic_fetch_add(&unit->input->step_ns[shared ? TILE_STEP_LOWER : TILE_STEP_TARGET],
                         (uint64_t)(report.times.items[i].seconds * 1e9));
    }
    unit->clock = tile_clock_ns();
    if (status == TILE_OK) return TILE_OK;
    if (context.excess.found) return report_excess(unit, &context.excess), status;
    tile_text_add(&unit->message, tile_text_get(&context.message));
    if (status == TILE_INTERNAL && unit->verify) tile_unit_write_reproducer(unit, tile_text_get(&report.reproducer));
    return status;
}
