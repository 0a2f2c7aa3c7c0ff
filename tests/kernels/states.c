#include "states.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/compile/unit.h"
#include "lang/ir/text.h"
#include "lang/ir/verify.h"

typedef struct States {
    const char *kernel;
    bool specialised;
    const char *last; /* the text of the state before, which was read back */
    char *reason;
    size_t size;
} States;

static tile_status fail(States *states, const char *state, const char *what, const char *detail) {
    snprintf(states->reason, states->size, "IR after %s %s: %s", state, what, detail);
    return TILE_INTERNAL;
}

/* The first line that differs between two texts. */
static const char *first_difference(const char *a, const char *b) {
    const char *line = a;
    for (; *a && *a == *b; a++, b++)
        if (*a == '\n') line = a + 1;
    return line;
}

static tile_status check_state(TileUnit *unit, States *states, const char *state) {
    TileText errors = {.arena = unit->arena}, first = {.arena = unit->arena}, second = {.arena = unit->arena};
    if (!tile_module_verify(unit->module, &errors)) return fail(states, state, "is not sound", tile_text_get(&errors));
    tile_module_print(&first, unit->module, 0);
    if (states->last && strcmp(states->last, tile_text_get(&first)) == 0) return TILE_OK; /* many passes change nothing */
    states->last = tile_text_get(&first);
    TileContext *context = tile_ir_context_create();
    TileModule *copy = NULL;
    if (!context) return TILE_OUT_OF_MEMORY;
    tile_status status = tile_module_read(context, tile_text_get(&first), first.length, &copy, &errors);
    if (status != TILE_OK) {
        fail(states, state, "cannot be read back", tile_text_get(&errors));
    } else {
        tile_module_print(&second, copy, 0);
        if (!tile_module_verify(copy, &errors))
            status = fail(states, state, "is not sound once read back", tile_text_get(&errors));
        else if (strcmp(tile_text_get(&first), tile_text_get(&second)) != 0)
            status = fail(states, state, "prints otherwise once read back",
                          first_difference(tile_text_get(&first), tile_text_get(&second)));
    }
    tile_module_destroy(copy);
    tile_ir_context_destroy(context);
    return status;
}

/* The facts for a call with contiguous tensors that are aligned to 64 bytes. */
static void assume_contiguous(TileFunc *kernel) {
    for (uint32_t i = 0; i < kernel->body.argument_count; i++) {
        const TileType *type = kernel->body.arguments[i]->type;
        if (type->kind != TILE_TYPE_TENSOR) continue;
        kernel->parameters[i].facts.align = 64;
        if (type->rank > 0) kernel->parameters[i].facts.stride[type->rank - 1] = tile_scalar_bytes(type->scalar);
    }
}

static const TileKernelInfo *find_kernel(const TileProgramInfo *program, const char *name) {
    for (size_t i = 0; i < program->kernels.count; i++)
        if (strcmp(program->kernels.items[i].name, name) == 0) return &program->kernels.items[i];
    return NULL;
}

static tile_status walk_states(TileUnit *unit, void *state) {
    States *states = state;
    states->last = NULL; /* of another run's memory */
    TileProgramInfo program = {0};
    TILE_TRY(tile_list_kernels(unit->diagnostics, unit->ast, &program));
    const TileKernelInfo *kernel = find_kernel(&program, states->kernel);
    if (!kernel) return fail(states, "parsing", "has no kernel", states->kernel);
    TILE_TRY(tile_unit_lower(unit, kernel, NULL, 0));
    TileFunc *func = tile_unit_kernel(unit, kernel);
    if (states->specialised && func) assume_contiguous(func);
    TILE_TRY(check_state(unit, states, "the checker"));
    TilePipeline pipeline = {0};
    TILE_TRY(tile_unit_pipeline(unit, &pipeline));
    for (size_t i = 0; i < pipeline.count; i++) {
        TILE_TRY(tile_unit_passes(unit, &pipeline.items[i], 1));
        TILE_TRY(check_state(unit, states, pipeline.items[i]->name));
    }
    return TILE_OK;
}

/* The contents of the file, terminated; NULL if it cannot be read. */
static char *read_text(const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    enum { LARGEST_SOURCE = 1 << 20 };
    char *text = malloc(LARGEST_SOURCE);
    *length = text ? fread(text, 1, LARGEST_SOURCE - 1, file) : 0;
    if (text) text[*length] = 0;
    fclose(file);
    return text;
}

bool states_check(TileCompiler *compiler, const char *path, const char *kernel, const char *target,
                  const TileSetting *settings, size_t setting_count, bool specialised, char *reason, size_t size) {
    States states = {.kernel = kernel, .specialised = specialised, .reason = reason, .size = size};
    TileCompileOptions options = {.struct_size = sizeof options,
                                  .file = path,
                                  .target = target,
                                  .settings = settings,
                                  .setting_count = setting_count};
    size_t length;
    char *text = read_text(path, &length);
    TileInput *input = NULL;
    TileReport *report = NULL;
    reason[0] = 0;
    tile_status status = text ? tile_input_create(compiler, text, length, &options, &input, &report) : TILE_IO;
    if (status == TILE_OK) status = tile_unit_run(input, walk_states, &states, &report);
    if (status != TILE_OK && !reason[0])
        snprintf(reason, size, "lowering for the IR's states: %s: %s", tile_status_text(status),
                 report ? tile_report_text(report, false) : "no report");
    tile_report_destroy(report);
    if (input) tile_input_destroy(input);
    free(text);
    return status == TILE_OK;
}
