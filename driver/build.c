/* From the tile form of a kernel to code that the launcher runs: native, or on the executor. */
#include <stdlib.h>
#include <string.h>

#include "driver/image.h"
#include "lang/assertion.h"
#include "lang/execute.h"
#include "launch/clock.h"
#include "mlir_bridge/load.h"

/* Code and all that it needs. `code` is the first member: the launcher's pointer is the whole. */
typedef struct BuiltCode {
    TileImageCode code;
    TileArena *arena;
    TileLoaded *loaded; /* native code */
    TileUnit *unit;     /* interpreted code */
    TileFunc *kernel;
    bool machine;          /* runs the phases' machine form */
    pthread_mutex_t mutex; /* the executor numbers the values of what it runs */
} BuiltCode;

static void destroy_code(TileImageCode *code) {
    BuiltCode *built = (BuiltCode *)code;
    tile_loaded_release(built->loaded);
    if (built->unit) tile_unit_destroy(built->unit);
    tile_arena_destroy(built->arena);
    pthread_mutex_destroy(&built->mutex);
    free(built);
}

/* ---- native code ---- */

/* The function of the grid of this number. */
static TileFunc *find_phase(const TileUnit *unit, const TileFunc *kernel, uint32_t number) {
    const char *name = tile_arena_format(unit->arena, "%s.%u", kernel->name, number);
    return tile_unit_kernel(unit, name);
}

static tile_status link_phases(TileUnit *unit, const TileFunc *kernel, BuiltCode *built) {
    TileImagePhase *phases = (TileImagePhase *)built->code.phases;
    for (uint32_t i = 0; i < built->code.phase_count; i++) {
        const TileFunc *phase = find_phase(unit, kernel, i);
        if (!phase) {
            tile_text_format(&unit->message, "%s: grid %u has no code", kernel->name, i);
            return TILE_INTERNAL;
        }
        void *entry;
        TILE_TRY(tile_loaded_find(built->loaded, phase->name, &entry, &unit->message));
        memcpy(&phases[i].entry, &entry, sizeof entry);
        phases[i].scratch_bytes = phase->scratch_bytes;
    }
    return TILE_OK;
}

/* What the launcher says of the assertions that the phases' code is about to be made with. */
static void keep_assertions(TileUnit *unit, const TileFunc *kernel, BuiltCode *built) {
    TileImagePhase *phases = (TileImagePhase *)built->code.phases;
    for (uint32_t i = 0; i < built->code.phase_count; i++) {
        TileFunc *phase = find_phase(unit, kernel, i);
        TileAssertions found = {0};
        if (phase) found = tile_func_assertions(phase, unit->arena);
        const char **texts = TILE_NEW_ARRAY(built->arena, const char *, found.count);
        for (size_t k = 0; k < found.count; k++) {
            TileText text = {.arena = built->arena};
            tile_assertion_describe(&text, found.items[k]);
            texts[k] = tile_text_get(&text);
        }
        phases[i].assertions = texts;
        phases[i].assertion_count = (uint32_t)found.count;
    }
}

static tile_status build_native(TileUnit *unit, const TileFunc *kernel, BuiltCode *built) {
    keep_assertions(unit, kernel, built);
    TILE_TRY(tile_unit_emit(unit, TILE_CODE_OBJECT));
    tile_status status = tile_object_load(unit->code.data, unit->code.size, &built->loaded, &unit->message);
    if (status == TILE_OK) status = link_phases(unit, kernel, built);
    tile_input_step(unit->input, TILE_STEP_LOAD, &unit->clock);
    return status;
}

/* ---- code for the executor ---- */

/* A stride that is never taken may be anything: it becomes what the facts say of it. */
static const uint64_t *read_tensor(const TileType *type, const TileTensorFacts *facts, const uint64_t *slot,
                                   TileExecutorTensor *tensor) {
    uint64_t size = tile_scalar_bytes(type->scalar);
    bool empty = false;
    *tensor = (TileExecutorTensor){.data = (void *)(uintptr_t)slot[0], .above = size};
    for (unsigned i = 0; i < type->rank; i++) {
        tensor->extent[i] = (int64_t)slot[1 + i];
        tensor->stride[i] = (int64_t)slot[1 + type->rank + i];
        if (tensor->extent[i] < 2 && facts->stride[i] != TILE_UNKNOWN) tensor->stride[i] = facts->stride[i];
        empty |= tensor->extent[i] == 0;
    }
    for (unsigned i = 0; i < type->rank && !empty; i++) {
        int64_t reach = tensor->stride[i] * (tensor->extent[i] - 1);
        if (reach < 0)
            tensor->below += (uint64_t)-reach;
        else
            tensor->above += (uint64_t)reach;
    }
    if (empty) tensor->above = 0;
    return slot + 1 + 2 * type->rank;
}

static tile_status execution_status(TileExecution execution) {
    switch (execution) {
    case TILE_EXECUTION_DONE: return TILE_OK;
    case TILE_EXECUTION_OUT_OF_MEMORY: return TILE_OUT_OF_MEMORY;
    case TILE_EXECUTION_ASSERT:
    case TILE_EXECUTION_REQUIRE:
    case TILE_EXECUTION_CHECK_DIM: return TILE_INVALID_ARGUMENT;
    case TILE_EXECUTION_FAULT:
    case TILE_EXECUTION_PAUSED: break;
    }
    return TILE_INTERNAL;
}

static void read_arguments(const TileFunc *kernel, const uint64_t *slots, TileExecutorArgument *arguments) {
    for (uint32_t i = 0; i < kernel->body.argument_count; i++) {
        const TileType *type = kernel->body.arguments[i]->type;
        if (type->kind == TILE_TYPE_TENSOR)
            slots = read_tensor(type, &kernel->parameters[i].facts, slots, &arguments[i].tensor);
        else
            arguments[i].bits = *slots++;
    }
}

static tile_status execute(const BuiltCode *built, TileArena *arena, const uint64_t *slots, TileError *error) {
    jmp_buf guard;
    if (setjmp(guard)) return TILE_OUT_OF_MEMORY;
    tile_arena_set_guard(arena, &guard);
    TileExecutorArgument arguments[TILE_MAX_PARAMETERS] = {0};
    read_arguments(built->kernel, slots, arguments);
    const TileOp *assertion = NULL;
    TileExecutorOptions options = {.phases = built->machine ? built->unit->module : NULL,
                                   .debug = built->unit->input->flags & TILE_COMPILE_DEBUG,
                                   .assertion = &assertion};
    TileText message = {.arena = arena};
    TileExecution execution = tile_execute_kernel(built->kernel, arguments, &options, &message);
    tile_status status = execution_status(execution);
    if (execution == TILE_EXECUTION_ASSERT) {
        message.length = 0;
        tile_assertion_describe(&message, assertion);
    }
    if (status != TILE_OK) tile_error_set(error, status, "%s: %s", built->kernel->name, tile_text_get(&message));
    return status;
}

static tile_status interpret(const TileImageCode *code, const uint64_t *slots, TileError *error) {
    BuiltCode *built = (BuiltCode *)code;
    TileArena *arena = tile_arena_create(NULL);
    if (!arena) return TILE_OUT_OF_MEMORY;
    pthread_mutex_lock(&built->mutex);
    tile_status status = execute(built, arena, slots, error);
    pthread_mutex_unlock(&built->mutex);
    tile_arena_destroy(arena);
    return status;
}

/* ---- both ---- */

/* Takes the arena for the code, which is freed by its destroy. */
static BuiltCode *create_code(TileUnit *unit) {
    BuiltCode *built = calloc(1, sizeof *built);
    if (!built) return NULL;
    built->arena = tile_arena_create(unit->arena);
    if (!built->arena) {
        free(built);
        return NULL;
    }
    pthread_mutex_init(&built->mutex, NULL);
    built->code.destroy = destroy_code;
    return built;
}

static tile_status build(TileUnit *unit, TileFunc *kernel, const TileImageSignature *signature,
                         const TileImageRequest *request, BuiltCode *built) {
    const TileInput *input = unit->input;
    TilePipeline pipeline = {0};
    tile_image_assume(kernel, signature, request);
    TILE_TRY(tile_unit_pipeline(unit, &pipeline));
    /* The target's passes take the grids out of the kernel, and then temporaries look unused. */
    size_t shared = tile_unit_shared_passes(&pipeline);
    TILE_TRY(tile_unit_passes(unit, pipeline.items, shared));
    TILE_TRY(tile_image_describe(unit, kernel, signature, built->arena, &built->code));
    TILE_TRY(tile_unit_passes(unit, pipeline.items + shared, pipeline.count - shared));
    tile_image_collect(unit->module, kernel, signature, &built->code);
    if (input->target && !(input->flags & TILE_COMPILE_EMULATE)) return build_native(unit, kernel, built);
    built->unit = unit;
    built->kernel = kernel;
    built->machine = input->target != NULL;
    built->code.interpret = interpret;
    built->code.temp_count = 0; /* the executor makes its own */
    unit->keep = true;
    return TILE_OK;
}

tile_status tile_image_build(TileUnit *unit, TileFunc *kernel, const TileImageSignature *signature,
                             const TileImageRequest *request, TileImageCode **code) {
    BuiltCode *built = create_code(unit);
    if (!built) return TILE_OUT_OF_MEMORY;
    *code = &built->code; /* known to the caller from now on: memory that runs out does not come back here */
    tile_status status = build(unit, kernel, signature, request, built);
    tile_arena_set_guard(built->arena, NULL);
    return status;
}
