/* Code that the launcher runs: native, from the disk cache, or on the executor. */
#include <stdlib.h>
#include <string.h>

#include "driver/compile/backend.h"
#include "driver/compile/cached.h"
#include "lang/ir/assertion.h"
#include "lang/execute/execute.h"
#include "launch/clock.h"
#include "launch/cuda.h"

/* Code and what it owns. `code` is the first member, so that the launcher's pointer can be cast. */
typedef struct BuiltCode {
    TileImageCode code;
    TileArena *arena;
    TileBackendLoaded loaded;
    TileUnit *unit; /* interpreted code */
    TileFunc *kernel;
    bool machine;          /* the executor runs the phases' machine form */
    pthread_mutex_t mutex; /* the executor numbers the values of what it runs */
} BuiltCode;

static void release_loaded(BuiltCode *built) {
    tile_loaded_release(built->loaded.native);
    tile_cuda_module_destroy(built->loaded.device);
    built->loaded = (TileBackendLoaded){0};
    built->code.gpu = NULL;
}

static void destroy_code(TileImageCode *code) {
    BuiltCode *built = (BuiltCode *)code;
    release_loaded(built);
    if (built->unit) tile_unit_destroy(built->unit);
    tile_arena_destroy(built->arena);
    pthread_mutex_destroy(&built->mutex);
    free(built);
}

/* Is the code for another machine, which an emulator runs? */
static bool is_foreign(const TileUnit *unit) {
    const TileBackend *backend = tile_unit_backend(unit);
    return unit->input->foreign && backend && backend->emulated && backend->obstacle(unit->input->target);
}

/* By the executor: the interpreter's tile form, or a target's machine form. */
static bool is_executed(const TileUnit *unit) {
    return !unit->input->target || (unit->input->flags & TILE_COMPILE_EMULATE);
}

/* ---- code of the target ---- */

static tile_status refuse_phase(TileUnit *unit, const TileFunc *kernel, uint32_t number) {
    tile_text_format(&unit->message, "%s: grid %u has no code", kernel->name, number);
    return TILE_INTERNAL;
}

/* The launcher's messages for the phase's assertions, by number. */
static void keep_assertions(TileUnit *unit, TileFunc *func, TileArena *arena, TileImagePhase *phase) {
    TileAssertions found = tile_func_assertions(func, unit->arena);
    const char **texts = TILE_NEW_ARRAY(arena, const char *, found.count);
    for (size_t k = 0; k < found.count; k++) {
        TileText text = {.arena = arena};
        tile_assertion_describe(&text, found.items[k], "");
        texts[k] = tile_text_get(&text);
    }
    phase->assertions = texts;
    phase->assertion_count = (uint32_t)found.count;
}

/* The templates of the lines that the phase prints. */
static void keep_prints(TileUnit *unit, TileFunc *func, TileArena *arena, TileImagePhase *phase) {
    TileAssertions found = tile_func_prints(func, unit->arena);
    const char **texts = TILE_NEW_ARRAY(arena, const char *, found.count);
    for (size_t k = 0; k < found.count; k++) {
        const char *text = tile_op_get(found.items[k], TILE_ATTRIBUTE_TEXT)->text;
        texts[k] = tile_arena_string(arena, text, strlen(text));
    }
    phase->prints = texts;
    phase->print_count = (uint32_t)found.count;
}

tile_status tile_image_describe_phases(TileUnit *unit, const TileFunc *kernel, TileArena *arena, TileImageCode *code) {
    TileImagePhase *phases = (TileImagePhase *)code->phases;
    for (uint32_t i = 0; i < code->phase_count; i++) {
        TileFunc *func = tile_func_phase(kernel, i);
        if (!func) return refuse_phase(unit, kernel, i);
        phases[i].scratch_bytes = func->scratch_bytes;
        keep_assertions(unit, func, arena, &phases[i]);
        keep_prints(unit, func, arena, &phases[i]);
    }
    return TILE_OK;
}

/* Hands the code to the emulator, which gives an entry for each phase. */
static tile_status link_foreign(TileUnit *unit, const TileFunc *kernel, const TileImageSignature *signature,
                                const TileImageRequest *request, BuiltCode *built) {
    TileImagePhase *phases = (TileImagePhase *)built->code.phases;
    uint32_t count = built->code.phase_count;
    const char **symbols = TILE_NEW_ARRAY(built->arena, const char *, count);
    TilePhaseEntry *entries = TILE_NEW_ARRAY(built->arena, TilePhaseEntry, count);
    for (uint32_t i = 0; i < count; i++) symbols[i] = tile_func_phase(kernel, i)->name;
    TileForeignObject object = {unit->code.data, unit->code.size, symbols, &built->code, signature, request, entries};
    const TileForeign *foreign = unit->input->foreign;
    TILE_TRY(foreign->load(foreign->state, &object));
    for (uint32_t i = 0; i < count; i++) phases[i].entry = entries[i];
    return TILE_OK;
}

TileCudaPhase *tile_image_list_phases(TileUnit *unit, const TileFunc *kernel, TileArena *arena, uint32_t count) {
    const TileBackend *backend = tile_unit_backend(unit);
    TileCudaPhase *phases = TILE_NEW_ARRAY(arena, TileCudaPhase, count);
    for (uint32_t i = 0; i < count; i++) {
        const TileFunc *func = tile_func_phase(kernel, i);
        bool waits = backend->waits(func, unit->input->target);
        phases[i] = (TileCudaPhase){backend->symbol(func, arena), func->threads, func->scratch_bytes, waits};
    }
    return phases;
}

/* Loads the code; phases get their entries from it. */
static tile_status load(TileUnit *unit, const TileBackendCode *code, BuiltCode *built) {
    built->loaded.entries = TILE_NEW_ARRAY(unit->arena, TilePhaseEntry, code->phase_count);
    return tile_unit_backend(unit)->load(code, &built->loaded, &unit->message);
}

tile_status tile_image_load(TileImageJob *job) {
    TileUnit *unit = job->unit;
    BuiltCode *built = (BuiltCode *)job->code;
    uint32_t count = built->code.phase_count;
    if (is_foreign(unit)) return link_foreign(unit, job->func, job->signature, job->request, built);
    TileBackendCode code = {unit->code.data, unit->code.size,
                            tile_image_list_phases(unit, job->func, unit->arena, count), count};
    tile_status status = load(unit, &code, built);
    TileImagePhase *phases = (TileImagePhase *)built->code.phases;
    for (uint32_t i = 0; i < count && status == TILE_OK; i++) phases[i].entry = built->loaded.entries[i];
    built->code.gpu = built->loaded.device;
    tile_input_step(unit->input, TILE_STEP_LOAD, &unit->clock);
    return status;
}

/* ---- code from the disk ---- */

static void keep(TileUnit *unit, const TileFunc *kernel, const TileImageSignature *signature,
                 const TileImageRequest *request, const TileCodeKey *key, const BuiltCode *built) {
    TileCached cached = {.phases = tile_image_list_phases(unit, kernel, unit->arena, built->code.phase_count),
                         .phase_count = built->code.phase_count,
                         .code = unit->code.data,
                         .code_bytes = unit->code.size};
    tile_cached_put(unit, key, signature, request, &built->code, &cached);
}

static tile_status load_cached(TileUnit *unit, const TileCached *cached, const TileImageSignature *signature,
                               BuiltCode *built) {
    TileBackendCode code = {cached->code, cached->code_bytes, cached->phases, cached->phase_count};
    TILE_TRY(load(unit, &code, built));
    TILE_TRY(tile_cached_read(cached, built->arena, built->loaded.entries, signature, &built->code));
    built->code.gpu = built->loaded.device;
    return TILE_OK;
}

/* False where the kernel must be compiled: the cache has no code, or code that cannot be loaded. */
static bool restore(TileUnit *unit, const TileImageSignature *signature, const TileImageRequest *request,
                    const TileCodeKey *key, BuiltCode *built) {
    TileCached cached;
    if (!tile_cached_get(unit, key, signature, request, &cached)) return false;
    bool good = load_cached(unit, &cached, signature, built) == TILE_OK;
    tile_input_step(unit->input, TILE_STEP_LOAD, &unit->clock);
    if (good) return true;
    release_loaded(built);
    unit->message.length = 0;
    return false;
}

/* ---- code for the executor ---- */

/* The stride of a dimension with fewer than two elements is arbitrary: the facts' value is used. */
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
    case TILE_EXECUTION_UNDEFINED:
    case TILE_EXECUTION_RACE: return TILE_INVALID_SOURCE; /* a race of threads within a block is a compiler bug */
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

/* Allocates slack for results, if any is wanted. */
static void give_slack(const TileFunc *kernel, const TileSlack *wanted, TileArena *arena,
                       TileExecutorArgument *arguments) {
    for (uint32_t i = 0; i < kernel->body.argument_count; i++) {
        TileExecutorTensor *tensor = &arguments[i].tensor;
        const TileType *type = kernel->body.arguments[i]->type;
        bool written = type->kind == TILE_TYPE_TENSOR && type->access != TILE_ACCESS_IN;
        uint64_t count = (tensor->below + tensor->above) / (uint64_t)tile_scalar_bytes(type->scalar);
        if (written && wanted->count) tensor->slack = TILE_NEW_ARRAY(arena, double, count + 1);
    }
}

static void take_slack(const TileFunc *kernel, const TileSlack *wanted, const TileExecutorArgument *arguments) {
    for (uint32_t i = 0; i < kernel->body.argument_count; i++) {
        const TileExecutorTensor *tensor = &arguments[i].tensor;
        for (size_t k = 0; k < wanted->count && tensor->slack; k++) {
            const TileSlackMemory *memory = &wanted->items[k];
            const char *first = (const char *)tensor->data - tensor->below, *storage = memory->storage;
            uint64_t bytes = tensor->below + tensor->above;
            if (first < storage || first + bytes > storage + memory->bytes) continue;
            double *to = memory->slack + (size_t)(first - storage) / memory->element;
            memcpy(to, tensor->slack, bytes / memory->element * sizeof *to);
        }
    }
}

static tile_status execute(const BuiltCode *built, TileArena *arena, const uint64_t *slots, TilePrintLine print,
                           void *print_host, TileError *error) {
    jmp_buf guard;
    if (setjmp(guard)) return TILE_OUT_OF_MEMORY;
    tile_arena_set_guard(arena, &guard);
    TileExecutorArgument arguments[TILE_MAX_PARAMETERS] = {0};
    read_arguments(built->kernel, slots, arguments);
    const TileSlack *slack = built->machine ? NULL : built->unit->input->slack;
    if (slack) give_slack(built->kernel, slack, arena, arguments);
    const TileOp *assertion = NULL;
    uint64_t masked = 0;
    TileText message = {.arena = arena}, values = {.arena = arena};
    TileExecutorOptions options = {.phases = built->machine,
                                   .vector_scale = built->unit->input->vector_scale,
                                   .seed = built->unit->input->schedule_seed,
                                   .print = print,
                                   .print_host = print_host,
                                   .assertion = &assertion,
                                   .values = &values,
                                   .slack = slack != NULL,
                                   .masked = &masked};
    TileExecution execution = tile_execute_kernel(built->kernel, arguments, &options, &message);
    atomic_fetch_add_explicit(&built->unit->input->masked, masked, memory_order_relaxed);
    tile_status status = execution_status(execution);
    if (slack) take_slack(built->kernel, slack, arguments);
    if (execution == TILE_EXECUTION_ASSERT) {
        message.length = 0;
        tile_assertion_describe(&message, assertion, tile_text_get(&values));
    }
    if (status != TILE_OK) tile_error_set(error, status, "%s: %s", built->kernel->name, tile_text_get(&message));
    return status;
}

static tile_status interpret(const TileImageCode *code, const uint64_t *slots, TilePrintLine print, void *print_host,
                             TileError *error) {
    BuiltCode *built = (BuiltCode *)code;
    TileArena *arena = tile_arena_create(NULL);
    if (!arena) return TILE_OUT_OF_MEMORY;
    pthread_mutex_lock(&built->mutex);
    tile_status status = execute(built, arena, slots, print, print_host, error);
    pthread_mutex_unlock(&built->mutex);
    tile_arena_destroy(arena);
    return status;
}

/* ---- both ---- */

/* The code owns its arena. */
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

static tile_status build_executed(TileUnit *unit, TileFunc *kernel, BuiltCode *built) {
    built->unit = unit;
    built->kernel = kernel;
    built->machine = unit->input->target != NULL;
    built->code.interpret = interpret;
    built->code.temp_count = 0; /* the executor allocates temporaries itself */
    unit->keep = true;
    return TILE_OK;
}

/* May the code be in the disk cache? Its keys do not cover passes of other projects or options of tests. */
static bool is_cacheable(const TileUnit *unit) {
    const TileCompiler *compiler = unit->input->compiler;
    bool plain = !compiler->passes.count && !compiler->between_count && !compiler->behind_count && !compiler->names;
    return compiler->cache && plain && !is_executed(unit) && !is_foreign(unit) && !unit->verify;
}

static tile_status build(TileImageJob *job, BuiltCode *built) {
    TileUnit *unit = job->unit;
    TileCodeKey key;
    TILE_TRY(tile_image_run(job, TILE_IMAGE_CHECK));
    bool kept = is_cacheable(unit) && tile_cached_key(unit, job->func, job->signature, job->request, &key);
    if (kept && restore(unit, job->signature, job->request, &key, built)) return TILE_OK;
    TILE_TRY(tile_image_run(job, TILE_IMAGE_COLLECT));
    TileExplanation *explanation = unit->input->compiler->explanation;
    if (explanation) TILE_TRY(tile_unit_explain(unit, job->func, job->signature, job->request, job->code, explanation));
    if (is_executed(unit)) return build_executed(unit, job->func, built);
    TILE_TRY(tile_image_run(job, TILE_IMAGE_LOAD));
    if (kept) keep(unit, job->func, job->signature, job->request, &key, built);
    return TILE_OK;
}

tile_status tile_image_build(TileImageJob *job, TileImageCode **code) {
    const TileBackend *backend = tile_unit_backend(job->unit);
    BuiltCode *built = create_code(job->unit);
    if (!built) return TILE_OUT_OF_MEMORY;
    *code = &built->code; /* before anything can run out of memory and not return here: the caller destroys it */
    job->code = &built->code;
    job->arena = built->arena;
    if (backend) job->kind = backend->code;
    tile_status status = build(job, built);
    tile_arena_set_guard(built->arena, NULL);
    return status;
}
