#include "lang/execute/execute.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lang/execute/state.h"
#include "lang/scalar/scalar.h"
#include "lang/ir/text.h"

/* ---- creation and destruction ---- */

static TileExecutor *create(TileArena *arena, TileFunc *func, const TileExecutorOptions *options) {
    TileExecutor *e = TILE_NEW(arena, TileExecutor);
    e->arena = arena;
    e->func = func;
    if (options) e->options = *options;
    e->undefined = TILE_NEW(arena, ExecUndefined);
    if (!e->options.vector_scale) e->options.vector_scale = 1;
    e->random = e->options.seed;
    e->message.arena = arena;
    e->state = TILE_EXECUTION_PAUSED;
    e->root = tile_exec_activate(e, tile_exec_decode(e, func));
    if (e->root && tile_exec_push(e, &(ExecFrame){.activation = e->root, .code = &e->root->program->body, .active = 1}))
        return e;
    tile_executor_destroy(e);
    return NULL;
}

/* Calls that may allocate set their own guard on the executor's arena: the code that compiled the module may have
 * returned long ago, and its guard with it. */
TileExecutor *tile_executor_create(TileFunc *func, const TileExecutorOptions *options) {
    TileArena *arena = tile_arena_create(NULL);
    if (!arena) return NULL;
    jmp_buf guard;
    if (setjmp(guard)) {
        tile_arena_destroy(arena);
        return NULL;
    }
    tile_arena_set_guard(arena, &guard);
    return create(arena, func, options);
}

void tile_executor_destroy(TileExecutor *e) {
    if (!e) return;
    for (size_t i = 0; i < e->depth; i++)
        if (!e->frames[i].owner || e->frames[i].owner->op->id == TILE_OP_CALL)
            if (e->frames[i].activation != e->root) free(e->frames[i].activation);
    tile_exec_release(e, 0);
    free(e->root);
    free(e->frames);
    tile_exec_free_partition(e);
    free(e->objects);
    free(e->tensors);
    free(e->scratch);
    tile_arena_destroy(e->arena);
}

/* ---- binding ---- */

static ExecValue parameter_value(TileExecutor *e, unsigned parameter) {
    return tile_exec_register(e->root, e->root->program->body.first_argument + parameter);
}

static const char *parameter_name(const TileExecutor *e, unsigned parameter) {
    return e->func->parameters[parameter].name;
}

/* Are all elements in the memory that may be accessed? */
static bool lies_inside(const TileExecutorTensor *tensor, const TileType *type) {
    __int128 low = 0, high = tile_scalar_bytes(type->scalar);
    for (unsigned d = 0; d < type->rank; d++) {
        if (tensor->extent[d] <= 0) return tensor->extent[d] == 0;
        __int128 reach = (__int128)(tensor->extent[d] - 1) * tensor->stride[d];
        if (reach < 0)
            low += reach;
        else
            high += reach;
    }
    return -low <= (__int128)tensor->below && high <= (__int128)tensor->above;
}

static bool disagree(TileExecutor *e, unsigned parameter, const char *what, unsigned dimension, int64_t is,
                     int64_t assumed) {
    return tile_exec_stop(e, NULL, TILE_EXECUTION_FAULT, "%s %u of tensor %s is %lld where the function assumes %lld",
                          what, dimension, parameter_name(e, parameter), (long long)is, (long long)assumed);
}

/* Does every element begin less than 2**31 bytes after the first one, and none before it? */
static bool is_narrow(const TileExecutorTensor *tensor, unsigned rank) {
    __int128 last = 0;
    bool forwards = true, empty = false;
    for (unsigned d = 0; d < rank; d++) {
        empty |= tensor->extent[d] == 0;
        forwards &= tensor->extent[d] < 2 || tensor->stride[d] >= 0;
        if (tensor->extent[d] > 1) last += (__int128)(tensor->extent[d] - 1) * tensor->stride[d];
    }
    return empty || (forwards && last <= INT32_MAX);
}

/* Checks the facts that a specialised function relies on; a stride that is only multiplied by 0 may have any value. */
static bool check_facts(TileExecutor *e, unsigned parameter, const TileExecutorTensor *tensor, const TileType *type) {
    unsigned rank = type->rank, element_bytes = (unsigned)tile_scalar_bytes(type->scalar);
    const TileParameter *used = &e->func->parameters[parameter];
    const TileTensorFacts *facts = &used->facts;
    bool empty = false;
    for (unsigned d = 0; d < rank; d++) empty |= tensor->extent[d] == 0;
    if (used->used_align && !empty && (uintptr_t)tensor->data % used->used_align)
        return tile_exec_stop(e, NULL, TILE_EXECUTION_FAULT,
                              "tensor %s is not aligned to %u bytes as the function assumes",
                              parameter_name(e, parameter), used->used_align);
    if (used->used_narrow && !is_narrow(tensor, rank))
        return tile_exec_stop(
            e, NULL, TILE_EXECUTION_FAULT,
            "tensor %s reaches 2**31 bytes or before its first element, other than the function assumes",
            parameter_name(e, parameter));
    for (uint32_t most = used->used_most; most && rank; most &= most - 1)
        if (tensor->extent[rank - 1] < 1 || tensor->extent[rank - 1] > (int64_t)(most & -most))
            return disagree(e, parameter, "extent", rank - 1, tensor->extent[rank - 1], (int64_t)(most & -most));
    if (used->used_map && !tile_map_fits((uintptr_t)tensor->data, rank, element_bytes, tensor->extent,
                                         tensor->stride))
        return tile_exec_stop(e, NULL, TILE_EXECUTION_FAULT,
                              "no tensor map describes tensor %s, other than the function assumes",
                              parameter_name(e, parameter));
    for (unsigned d = 0; d < rank; d++) {
        if ((used->used_dense >> d & 1u) && !empty &&
            !tile_exec_is_dense(tensor->extent, tensor->stride, rank, d, element_bytes))
            return tile_exec_stop(e, NULL, TILE_EXECUTION_FAULT,
                                  "tensor %s has gaps behind dimension %u, other than the function assumes",
                                  parameter_name(e, parameter), d);
        bool strides = !empty && tensor->extent[d] > 1 && (used->used_stride >> d & 1u);
        if (strides && facts->stride[d] != tensor->stride[d])
            return disagree(e, parameter, "stride", d, tensor->stride[d], facts->stride[d]);
        if ((used->used_extent >> d & 1u) && facts->extent[d] != tensor->extent[d])
            return disagree(e, parameter, "extent", d, tensor->extent[d], facts->extent[d]);
    }
    return true;
}

static void bind_tensor(TileExecutor *e, unsigned parameter, const TileExecutorTensor *tensor) {
    const TileType *type = e->func->body.arguments[parameter]->type;
    ExecObject object = {.base = (unsigned char *)tensor->data - tensor->below,
                         .size = (int64_t)(tensor->below + tensor->above),
                         .slack = e->options.slack ? tensor->slack : NULL,
                         .writable = type->access != TILE_ACCESS_IN};
    ExecTensor bound = {.offset = (int64_t)tensor->below};
    memcpy(bound.extent, tensor->extent, sizeof bound.extent);
    memcpy(bound.stride, tensor->stride, sizeof bound.stride);
    uint32_t number;
    if (!lies_inside(tensor, type))
        tile_exec_stop(e, NULL, TILE_EXECUTION_FAULT, "tensor %s does not lie inside its memory",
                       parameter_name(e, parameter));
    else if (check_facts(e, parameter, tensor, type) && tile_exec_add_object(e, &object, &bound.object) &&
             tile_exec_add_tensor(e, &bound, &number))
        tile_exec_set_scalar(parameter_value(e, parameter), number);
}

void tile_executor_bind_tensor(TileExecutor *e, unsigned parameter, const TileExecutorTensor *tensor) {
    jmp_buf guard;
    if (setjmp(guard)) {
        tile_exec_out_of_memory(e);
        return;
    }
    tile_arena_set_guard(e->arena, &guard);
    bind_tensor(e, parameter, tensor);
}

void tile_executor_bind_pointer(TileExecutor *e, unsigned parameter, void *data, uint64_t below, uint64_t above,
                                bool writable) {
    ExecObject object = {.base = (unsigned char *)data - below, .size = (int64_t)(below + above), .writable = writable};
    uint32_t number;
    if (!tile_exec_add_object(e, &object, &number)) return;
    ExecValue value = parameter_value(e, parameter);
    value.lanes[0] = number;
    value.lanes[1] = below;
    *value.any = 0;
}

void tile_executor_bind_scalar(TileExecutor *e, unsigned parameter, uint64_t bits) {
    tile_exec_set_scalar(parameter_value(e, parameter),
                         bits & tile_scalar_mask(e->func->body.arguments[parameter]->type->scalar));
}

void tile_executor_bind_lanes(TileExecutor *e, unsigned parameter, const uint64_t *bits) {
    ExecValue value = parameter_value(e, parameter);
    memcpy(value.lanes, bits, value.count * sizeof *bits);
    *value.any = 0;
}

/* ---- running ---- */

static bool start(TileExecutor *e) {
    e->started = true;
    for (uint32_t i = 0; i < e->func->body.argument_count; i++)
        if (*parameter_value(e, i).any)
            return tile_exec_stop(e, NULL, TILE_EXECUTION_FAULT, "parameter %s is not bound", parameter_name(e, i));
    return true;
}

static void note_written(const TileExecutor *e, const ExecActivation *activation, const ExecInstruction *in) {
    for (uint32_t i = 0; i < in->op->result_count; i++) activation->written[in->result + i] = e->steps;
}

TileExecution tile_exec_run(TileExecutor *e, uint64_t limit) {
    while (e->depth) {
        ExecFrame *frame = tile_exec_frame(e);
        if (!frame->code) {
            if (!tile_exec_next_phase(e)) return e->state;
            continue;
        }
        if (e->steps >= limit) return e->state;
        e->steps++;
        const ExecInstruction *in = &frame->code->items[frame->next++];
        if (frame->activation->written) note_written(e, frame->activation, in);
        if (!in->run(e, in)) return e->state;
    }
    return e->state = TILE_EXECUTION_DONE;
}

TileExecution tile_executor_run(TileExecutor *e, uint64_t max_steps) {
    if (e->state != TILE_EXECUTION_PAUSED) return e->state;
    jmp_buf guard;
    if (setjmp(guard)) {
        tile_exec_out_of_memory(e);
        return e->state;
    }
    tile_arena_set_guard(e->arena, &guard);
    if (!e->started && !start(e)) return e->state;
    return tile_exec_run(e, max_steps ? e->steps + max_steps : UINT64_MAX);
}

const char *tile_executor_message(const TileExecutor *e) {
    return e->state == TILE_EXECUTION_OUT_OF_MEMORY ? "out of memory" : tile_text_get(&e->message);
}
uint64_t tile_executor_steps(const TileExecutor *e) { return e->steps; }

const uint64_t *tile_executor_result(const TileExecutor *e, unsigned index, const uint8_t **poison) {
    ExecValue value = tile_exec_register(e->root, e->results[index]);
    if (!*value.any) memset(value.poison, 0, value.count);
    if (poison) *poison = value.poison;
    return value.lanes;
}

/* If slack decided what ran, no bound is known for any result. */
static void close_slack(const TileExecutor *e, const TileExecutorArgument *arguments) {
    for (uint32_t i = 0; i < e->func->body.argument_count && e->undecided; i++) {
        const TileExecutorTensor *tensor = &arguments[i].tensor;
        const TileType *type = e->func->body.arguments[i]->type;
        if (type->kind != TILE_TYPE_TENSOR || !tensor->slack) continue;
        uint64_t count = (tensor->below + tensor->above) / (uint64_t)tile_scalar_bytes(type->scalar);
        for (uint64_t k = 0; k < count; k++) tensor->slack[k] = (double)INFINITY;
    }
}

TileExecution tile_execute_kernel(TileFunc *kernel, const TileExecutorArgument *arguments,
                                  const TileExecutorOptions *options, TileText *message) {
    TileExecutor *e = tile_executor_create(kernel, options);
    if (!e) return TILE_EXECUTION_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < kernel->body.argument_count; i++) {
        if (kernel->body.arguments[i]->type->kind == TILE_TYPE_TENSOR)
            tile_executor_bind_tensor(e, i, &arguments[i].tensor);
        else
            tile_executor_bind_scalar(e, i, arguments[i].bits);
    }
    TileExecution state = tile_executor_run(e, 0);
    if (e->options.slack) close_slack(e, arguments);
    const TileExecutionObserver *observer = e->options.observer;
    if (observer && state != TILE_EXECUTION_DONE && state != TILE_EXECUTION_STOPPED && e->depth)
        observer->failure(observer->host, e, state);
    if (message) tile_text_add(message, tile_executor_message(e));
    tile_executor_destroy(e);
    return state;
}
