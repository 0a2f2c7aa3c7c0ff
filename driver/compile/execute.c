/* Code that the executor runs: reads a launch's arguments, and translates what came of it. */
#include <stdlib.h>
#include <string.h>

#include "driver/compile/built.h"
#include "lang/execute/execute.h"
#include "lang/ir/assertion.h"

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
    case TILE_EXECUTION_DONE:
    case TILE_EXECUTION_STOPPED: return TILE_OK; /* as the observer wanted */
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

static tile_status execute(const TileBuiltCode *built, TileArena *arena, const uint64_t *slots, TilePrintLine print,
                           void *print_host, TileError *error) {
    jmp_buf guard;
    if (setjmp(guard)) return TILE_OUT_OF_MEMORY;
    tile_arena_set_guard(arena, &guard);
    TileExecutorArgument arguments[TILE_MAX_PARAMETERS] = {0};
    read_arguments(built->kernel, slots, arguments);
    const TileSlack *slack = built->machine ? NULL : built->unit->input->slack;
    if (slack) give_slack(built->kernel, slack, arena, arguments);
    const TileOp *assertion = NULL;
    TileMaskedCounts masked = {0};
    TileText message = {.arena = arena}, values = {.arena = arena};
    TileExecutorOptions options = {.phases = built->machine,
                                   .vector_scale = built->unit->input->vector_scale,
                                   .seed = built->unit->input->schedule_seed,
                                   .chunks = built->unit->input->ranges,
                                   .print = print,
                                   .print_host = print_host,
                                   .assertion = &assertion,
                                   .values = &values,
                                   .slack = slack != NULL,
                                   .observer = built->machine ? NULL : built->unit->input->compiler->observer,
                                   .masked = &masked};
    TileExecution execution = tile_execute_kernel(built->kernel, arguments, &options, &message);
    atomic_fetch_add_explicit(&built->unit->input->masked_lanes, masked.lanes, memory_order_relaxed);
    atomic_fetch_add_explicit(&built->unit->input->masked_data, masked.data, memory_order_relaxed);
    tile_status status = execution_status(execution);
    if (slack) take_slack(built->kernel, slack, arguments);
    if (execution == TILE_EXECUTION_ASSERT) {
        message.length = 0;
        tile_assertion_describe(&message, assertion, tile_text_get(&values));
    }
    if (status != TILE_OK) tile_error_set(error, status, "%s: %s", built->kernel->name, tile_text_get(&message));
    return status;
}

tile_status tile_built_interpret(const TileImageCode *code, const uint64_t *slots, TilePrintLine print,
                                 void *print_host, TileError *error) {
    TileBuiltCode *built = (TileBuiltCode *)code;
    TileArena *arena = tile_arena_create(NULL);
    if (!arena) return TILE_OUT_OF_MEMORY;
    pthread_mutex_lock(&built->mutex);
    tile_status status = execute(built, arena, slots, print, print_host, error);
    pthread_mutex_unlock(&built->mutex);
    tile_arena_destroy(arena);
    return status;
}
