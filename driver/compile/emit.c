/* The stages of a compilation as text. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "driver/compile/backend.h"
#include "lang/ir/text.h"
#include "launch/guard.h"
#include "launch/options.h"
#include "parser/syntax/print.h"

typedef struct Emission {
    TileEmitOptions options;
    char *output; /* allocated */
} Emission;

void tile_string_destroy(char *string) { free(string); }

static tile_status finish(Emission *emission, const char *text) {
    emission->output = strdup(text);
    return emission->output ? TILE_OK : TILE_OUT_OF_MEMORY;
}

/* ---- the kernel and its arguments ---- */

static tile_status find_kernel(TileUnit *unit, const TileProgramInfo *program, const char *name,
                               const TileKernelInfo **kernel) {
    size_t own = 0;
    *kernel = NULL;
    while (own < program->kernels.count && !program->kernels.items[own].is_export) own++;
    for (size_t i = 0; i < program->kernels.count; i++)
        if (name ? strcmp(program->kernels.items[i].name, name) == 0 : own == 1 && i == 0)
            *kernel = &program->kernels.items[i];
    if (*kernel) return TILE_OK;
    if (name)
        tile_text_format(&unit->message, "there is no kernel '%s'; kernels are", name);
    else
        tile_text_add(&unit->message, "name one of the kernels:");
    for (size_t i = 0; i < program->kernels.count; i++)
        tile_text_format(&unit->message, "%s %s", i ? "," : "", program->kernels.items[i].name);
    return TILE_INVALID_ARGUMENT;
}

/* The facts of a launch with contiguous tensors on 64-byte boundaries. */
static void grant_contiguous(const TileFunc *kernel, const TileImageSignature *signature, TileImageRequest *request) {
    for (uint32_t i = 0; i < kernel->body.argument_count; i++) {
        const TileType *type = kernel->body.arguments[i]->type;
        int number = tile_image_parameter(signature, kernel->parameters[i].name);
        if (type->kind != TILE_TYPE_TENSOR || number < 0) continue;
        request->facts[number] = tile_guard_align(64) | TILE_GUARD_NARROW;
        if (type->rank) request->facts[number] |= tile_guard_dimension(type->rank - 1u, TILE_GUARD_STRIDE_UNIT);
        for (unsigned k = 0; k + 1 < type->rank; k++)
            request->facts[number] |= tile_guard_dimension(k, TILE_GUARD_DENSE);
        if (!type->rank || type->rank > TILE_MAP_MOST_RANK) continue;
        request->facts[number] |= TILE_GUARD_MAP;
        /* Rows that lie one after another at multiples of 16 bytes are so long. CPU code is shown for any length. */
        unsigned grain = TILE_MAP_GRAIN / tile_scalar_bytes(type->scalar);
        for (unsigned divisor = 2; signature->gpu && type->rank > 1 && divisor <= grain; divisor *= 2)
            request->facts[number] |= tile_guard_multiple(type->rank, type->rank - 1u, divisor);
    }
}

/* ---- stages of the IR ---- */

/* How many passes to run: up to the one that is named, or all. */
static tile_status count_passes(TileUnit *unit, const TileEmitOptions *options, const TilePipeline *pipeline,
                                size_t *count) {
    *count = pipeline->count;
    if (!options->after) return TILE_OK;
    if (options->stage > TILE_STAGE_MACHINE) {
        tile_text_add(&unit->message,
                      "the state after a pass is IR: `after` goes with the stages tile and machine only");
        return TILE_INVALID_ARGUMENT;
    }
    while (*count && strcmp(pipeline->items[*count - 1]->name, options->after)) --*count;
    if (*count) return TILE_OK;
    tile_text_format(&unit->message, "no pass '%s' runs; passes are", options->after);
    for (size_t i = 0; i < pipeline->count; i++)
        tile_text_format(&unit->message, "%s %s", i ? "," : "", pipeline->items[i]->name);
    return TILE_INVALID_ARGUMENT;
}

/* With `--after`, `emit tile` too may run passes of the target. */
static tile_status emit_ir(TileImageJob *job, Emission *emission) {
    const TileEmitOptions *options = &emission->options;
    static const TileCodeKind kinds[TILE_STAGE_COUNT] = {[TILE_STAGE_MLIR] = TILE_CODE_MLIR,
                                                         [TILE_STAGE_LLVM] = TILE_CODE_LLVM,
                                                         [TILE_STAGE_ASM] = TILE_CODE_ASSEMBLY,
                                                         [TILE_STAGE_PTX] = TILE_CODE_ASSEMBLY};
    size_t count;
    job->kind = kinds[options->stage];
    TILE_TRY(tile_image_run(job, TILE_IMAGE_ASSUME));
    TILE_TRY(count_passes(job->unit, options, &job->pipeline, &count));
    job->pipeline.count = count;
    TILE_TRY(tile_image_run(job, tile_stage_end(options->after ? TILE_STAGE_MACHINE : options->stage)));
    if (options->stage > TILE_STAGE_MACHINE) return finish(emission, job->unit->code.data);
    TileText text = {.arena = job->unit->arena};
    tile_module_print(&text, job->unit->module, 0);
    return finish(emission, tile_text_get(&text));
}

/* ---- all stages ---- */

/* The interpreter has no machine form; each family has an assembly of its own. */
static tile_status check_stage(TileUnit *unit, TileStage stage) {
    const TileTarget *target = unit->input->target;
    const TileBackend *backend = tile_backend_of(target);
    bool listing = stage == TILE_STAGE_ASM || stage == TILE_STAGE_PTX;
    if (unit->input->is_ir && stage < TILE_STAGE_TILE) {
        tile_text_format(&unit->message, "text of the IR has no stage '%s'", tile_stage_name(stage));
        return TILE_INVALID_ARGUMENT;
    }
    if (stage <= TILE_STAGE_TILE) return TILE_OK;
    if (backend && (!listing || stage == backend->listing)) return TILE_OK;
    tile_text_format(&unit->message, "the target '%s' has no stage '%s'", target ? target->name : "interp",
                     tile_stage_name(stage));
    if (stage == TILE_STAGE_PTX) tile_text_add(&unit->message, "; name a GPU, as in --target=sm_80");
    if (stage == TILE_STAGE_ASM && backend)
        tile_text_format(&unit->message, "; its assembly is the stage '%s'", tile_stage_name(backend->listing));
    return TILE_INVALID_ARGUMENT;
}

static tile_status emit_kernel(TileUnit *unit, Emission *emission) {
    TileProgramInfo program = {0};
    const TileKernelInfo *kernel;
    uint32_t count;
    TILE_TRY(tile_unit_list(unit, &program));
    TILE_TRY(tile_unit_check_settings(unit, &program));
    TILE_TRY(find_kernel(unit, &program, emission->options.kernel, &kernel));
    TILE_TRY(check_stage(unit, emission->options.stage));
    TILE_TRY(tile_signatures_create(unit, &program, true, &count));
    const TileImageSignature *signature = &unit->input->signatures[kernel - program.kernels.items];
    if (kernel->is_export && signature->refused) {
        tile_text_add(&unit->message, signature->refused);
        return TILE_INVALID_ARGUMENT;
    }
    TileImageRequest request = {.facts = {0}};
    TileImageJob job = {.unit = unit, .kernel = kernel, .signature = signature, .request = &request};
    TILE_TRY(tile_image_run(&job, TILE_IMAGE_CHECK));
    if (!emission->options.general) grant_contiguous(job.func, signature, &request);
    return emit_ir(&job, emission);
}

static tile_status emit_stage(TileUnit *unit, void *state) {
    Emission *emission = state;
    TileText text = {.arena = unit->arena};
    free(emission->output);
    emission->output = NULL;
    switch (emission->options.stage) {
    case TILE_STAGE_TOKENS:
        TILE_TRY(check_stage(unit, TILE_STAGE_TOKENS));
        tile_tokens_print(unit->arena, unit->diagnostics, unit->ast->file, &text);
        return finish(emission, tile_text_get(&text));
    case TILE_STAGE_AST:
        TILE_TRY(check_stage(unit, TILE_STAGE_AST));
        tile_ast_print(unit->ast, &text);
        return finish(emission, tile_text_get(&text));
    case TILE_STAGE_TILE:
    case TILE_STAGE_MACHINE:
    case TILE_STAGE_MLIR:
    case TILE_STAGE_LLVM:
    case TILE_STAGE_ASM:
    case TILE_STAGE_PTX: return emit_kernel(unit, emission);
    case TILE_STAGE_COUNT: break;
    }
    tile_text_add(&unit->message, "there is no such stage");
    return TILE_INVALID_ARGUMENT;
}

tile_status tile_emit_stage(TileCompiler *compiler, const char *text, size_t length, const TileCompileOptions *options,
                            const TileEmitOptions *emit, char **output, TileReport **report) {
    int saved = errno;
    Emission emission = {.output = NULL};
    TileReport *own = NULL;
    TileInput *input;
    if (report) *report = NULL;
    if (!emit || !output || !tile_options_read(&emission.options, sizeof emission.options, emit))
        return TILE_INVALID_ARGUMENT;
    tile_status status = tile_input_create(compiler, text, length, options, &input, &own);
    if (status == TILE_OK) {
        status = tile_unit_run(input, emit_stage, &emission, &own);
        tile_input_destroy(input);
    }
    if (status == TILE_OK)
        *output = emission.output;
    else
        free(emission.output);
    if (report)
        *report = own;
    else
        tile_report_destroy(own);
    errno = saved;
    return status;
}
