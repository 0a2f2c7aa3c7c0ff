/* Purpose: lower the tiles of a phase to registers of the threads of a block. A tensor parameter becomes a pointer,
 * extents and strides in bytes; `shared`, the block's shared memory, is the last parameter. A tile becomes a vector of
 * each thread's registers, by the layout of its type. Every thread computes all scalars, so control flow is uniform.
 *
 * Before:
 *     func phase tile @k.0(%x: tensor<f32, 1, inout> {role = data, argument = 0}, %begin: i64 {role = begin},
 *       %end: i64 {role = end}) threads = 32 {
 *       %v = load_tile %x, %begin {access = [index]} : f32
 *       %two = const {value = 2.0} : f32
 *       %w = mul %v, %two : f32
 *       store_tile %x, %w, %begin {access = [index]}
 *       return
 *     }
 * After:
 *     func phase machine @k.0(%x: ptr<global> {role = data, argument = 0, asked_stride = 1, asked_narrow},
 *       %x.dim0: i64 {role = extent, argument = 0, axis = 0}, %x.stride0: i64 {role = stride, argument = 0, axis = 0},
 *       %begin: i64 {role = begin}, %end: i64 {role = end}, %shared: ptr<shared> {role = scratch}) threads = 32 {
 *       %0 = thread : i32
 *       %1 = convert %0 : i64
 *       %2 = mul %begin, %x.stride0 : i64
 *       %3 = ptr_add %x, %2 : ptr<global>
 *       %4 = load %3 : f32
 *       %two = const {value = 2.0} : f32
 *       %w = mul %4, %two : f32
 *       barrier
 *       %5 = mul %begin, %x.stride0 : i64
 *       %6 = ptr_add %x, %5 : ptr<global>
 *       %7 = const {value = 0} : i64
 *       %8 = eq %1, %7 : bool
 *       store %w, %6, %8 {parts = [mask]}
 *       return
 *     }
 * Needs: gpu-threads, gpu-rematerialise. Keeps: the order of memory accesses to each tensor, as observed by the
 * threads of a block. Cost: linear in the registers of all tiles. */
#include "ptx/target/map.h"
#include "ptx/lowering/machine.h"
#include "ptx/pipeline/copies.h"

/* ---- control ---- */

static void lower_block(Gpu *gpu, const TileBlock *old, TileBlock *block);

/* Pointers lose the type of their elements: ops that need it are lowered together with the pointer. */
static const TileType *new_type(Gpu *gpu, const TileType *old) {
    if (old->kind == TILE_TYPE_POINTER) return tile_type_pointer(gpu->module->context, (TileSpace)old->space);
    return tile_type_is_tile(old) ? gpu_type(gpu, old->layout, old->scalar) : old;
}

/* Is the op a branch with tiles as results in a loop of products, as gpu-whole builds it? Such a branch is rarely
 * taken, and registers are few. */
static bool is_rare(const Gpu *gpu, const TileOp *op) {
    bool in_loop = false;
    for (const TileOp *outer = op->block->op; outer; outer = outer->block->op) in_loop |= outer->id == TILE_OP_FOR;
    return gpu->products && in_loop && op->id == TILE_OP_IF && op->result_count;
}

static bool is_index_code(const TileOp *op) {
    if (op->result_count != 1 || !tile_type_is_tile(op->results[0].type)) return false;
    if (op->results[0].type->scalar != TILE_I64 && op->results[0].type->scalar != TILE_I32) return false;
    return op->id == TILE_OP_IOTA || op->id == TILE_OP_SPLAT || op->id == TILE_OP_RESHAPE ||
           op->id == TILE_OP_BROADCAST || op->id == TILE_OP_ADD || op->id == TILE_OP_SUB;
}

static void lower_op(Gpu *gpu, TileOp *op);

/* Rematerialises index tiles, which a region takes from outside, inside of the region. */
typedef struct Rematerialise {
    Gpu *gpu;
    const TileBlock *region;
    TileMap outside; /* index tiles to their values outside of the region */
} Rematerialise;

static void rematerialise(Rematerialise *state, TileValue *value) {
    Gpu *gpu = state->gpu;
    if (!value->op || !is_index_code(value->op) || tile_block_inside(value->op->block, state->region) ||
        tile_map_get(&state->outside, value))
        return;
    tile_map_set(&state->outside, value, gpu_value(gpu, value));
    for (unsigned i = 0; i < value->op->operand_count; i++) rematerialise(state, tile_op_operand(value->op, i));
    lower_op(gpu, value->op);
}

static void rematerialise_operands(TileOp *op, void *state) {
    for (unsigned i = 0; i < op->operand_count; i++) rematerialise(state, tile_op_operand(op, i));
}

/* A rare block: its indices are computed in it, so that they are not live throughout the loop. */
static void lower_rare_block(Gpu *gpu, TileBlock *old, TileBlock *block) {
    TileValue *thread = gpu->thread;
    Rematerialise state = {.gpu = gpu, .region = old};
    tile_map_init(&state.outside, gpu->arena);
    gpu->b.block = block;
    gpu->b.before = NULL;
    TileOp *here = tile_build_op(&gpu->b, TILE_OP_HERE, &thread, 1, NULL, 0, NULL, 1);
    gpu->thread = tile_op_result(here, 0);
    tile_block_walk(old, rematerialise_operands, &state);
    lower_block(gpu, old, block);
    gpu->thread = thread;
    for (size_t i = 0; i < state.outside.count; i++)
        tile_map_set(&gpu->values, state.outside.entries[i].key, state.outside.entries[i].value);
    if (!tile_value_has_uses(tile_op_result(here, 0))) tile_op_erase(here);
}

static void lower_region(Gpu *gpu, TileBlock *old, TileBlock *block, bool rare) {
    TileBuilder outer = gpu->b;
    if (!block->argument_count) /* tile_build_op leaves regions empty */
        for (uint32_t i = 0; i < old->argument_count; i++)
            tile_block_add_argument(gpu->module, block, new_type(gpu, old->arguments[i]->type),
                                    old->arguments[i]->name);
    for (uint32_t i = 0; i < old->argument_count; i++)
        tile_map_set(&gpu->values, old->arguments[i], block->arguments[i]);
    if (rare)
        lower_rare_block(gpu, old, block);
    else
        lower_block(gpu, old, block);
    gpu->b = outer;
}

static void lower_control(Gpu *gpu, const TileOp *op) {
    TileValue **operands = TILE_NEW_ARRAY(gpu->arena, TileValue *, op->operand_count + 1);
    const TileType **types = TILE_NEW_ARRAY(gpu->arena, const TileType *, op->result_count + 1);
    for (unsigned i = 0; i < op->operand_count; i++) operands[i] = gpu_value(gpu, tile_op_operand(op, i));
    for (unsigned i = 0; i < op->result_count; i++) types[i] = new_type(gpu, op->results[i].type);
    gpu_order_before(gpu, op);
    GpuUpdates collected = gpu_begin_collecting(gpu, op);
    TileOp *made = tile_op_create(gpu->module, (TileOpId)op->id, op->location, operands, op->operand_count, types,
                                  op->result_count);
    for (unsigned i = 0; i < op->attribute_count; i++) tile_op_set(gpu->module, made, op->attributes[i]);
    tile_builder_insert(&gpu->b, made);
    for (unsigned i = 0; i < op->region_count; i++)
        lower_region(gpu, &op->regions[i], &made->regions[i], is_rare(gpu, op));
    for (unsigned i = 0; i < op->result_count; i++) {
        made->results[i].name = op->results[i].name;
        tile_map_set(&gpu->values, &op->results[i], &made->results[i]);
    }
    gpu_end_collecting(gpu, &collected);
    gpu_order_behind(gpu, op);
}

/* ---- ops ---- */

static void lower_store(Gpu *gpu, TileOp *op) {
    if (gpu_by_map(op)) {
        gpu_store_by_map(gpu, op);
        return;
    }
    gpu_order_before(gpu, op);
    if (op->id == TILE_OP_ATOMIC_TILE)
        gpu_lower_atomic(gpu, op);
    else
        gpu_lower_store(gpu, op);
    gpu_order_behind(gpu, op);
}

static void lower_dim(Gpu *gpu, const TileOp *op) {
    const GpuTensor *tensor = tile_map_get(&gpu->tensors, tile_op_operand(op, 0));
    tile_map_set(&gpu->values, &op->results[0], tensor->extent[tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0)]);
}

static void lower_dot(Gpu *gpu, TileOp *op) {
    if (gpu_dot_is_wgmma(op))
        gpu_lower_wgmma(gpu, op);
    else if (gpu_dot_is_mma(op))
        gpu_lower_mma(gpu, op);
    else
        gpu_lower_dot(gpu, op);
}

/* Marks lanes of padding as undefined, whatever the op has computed there. */
static void mark_padding(Gpu *gpu, const TileValue *old) {
    const TileLayout *layout = old->type->layout;
    TileValue *value = layout ? tile_map_get(&gpu->values, old) : NULL;
    if (!value) return;
    uint32_t count = tile_layout_registers(layout);
    TileValue **registers = TILE_NEW_ARRAY(gpu->arena, TileValue *, count);
    bool any = false;
    for (uint32_t r = 0; r < count; r++) {
        TileValue *own = gpu_is_element(gpu, old->type, r);
        registers[r] = gpu_register(gpu, value, r);
        any |= own != NULL;
        if (!own) continue;
        TileValue *operands[] = {registers[r], own};
        registers[r] =
            tile_op_result(tile_build_op(&gpu->b, TILE_OP_DEFINED_WHERE, operands, 2, NULL, 0, NULL, 1), 0);
    }
    if (any) tile_map_set(&gpu->values, old, gpu_join(gpu, registers, count));
}

static void lower_any_op(Gpu *gpu, TileOp *op) {
    switch ((TileOpId)op->id) {
    case TILE_OP_LOAD_TILE:
        if (!gpu_load_beside(gpu, op)) gpu_lower_load(gpu, op);
        return;
    case TILE_OP_STORE_TILE:
    case TILE_OP_ATOMIC_TILE: lower_store(gpu, op); return;
    case TILE_OP_REDUCE: gpu_lower_reduce(gpu, op); return;
    case TILE_OP_CLUSTER_REDUCE: gpu_lower_cluster_reduce(gpu, op); return;
    case TILE_OP_ARG_REDUCE: gpu_lower_arg_reduce(gpu, op); return;
    case TILE_OP_FOLD:
    case TILE_OP_SCAN: gpu_lower_fold(gpu, op); return;
    case TILE_OP_DOT: lower_dot(gpu, op); return;
    case TILE_OP_SHARED_TILE:
        if (!gpu_stays_shared(op)) gpu_lower_shared_tile(gpu, op);
        return;
    case TILE_OP_PERMUTE:
        if (!gpu_stays_shared(op)) gpu_lower_value(gpu, op);
        return;
    case TILE_OP_PUT_TILE: gpu_lower_put(gpu, op); return;
    case TILE_OP_CLEAR_TILE: gpu_lower_clear(gpu, op); return;
    case TILE_OP_DOT_WAIT: gpu_lower_dot_wait(gpu, op); return;
    case TILE_OP_PARTITIONS: gpu_lower_partitions(gpu, op); return;
    case TILE_OP_TURN:
    case TILE_OP_TURN_BEGIN:
    case TILE_OP_TURN_END: gpu_lower_turn(gpu, op); return;
    case TILE_OP_CHANNEL: gpu_lower_channel(gpu, op); return;
    case TILE_OP_CHANNEL_ACQUIRE:
    case TILE_OP_CHANNEL_WAIT: gpu_lower_take(gpu, op); return;
    case TILE_OP_CHANNEL_COMMIT:
    case TILE_OP_CHANNEL_RELEASE: gpu_lower_take_end(gpu, op); return;
    case TILE_OP_COPY_TILE:
        if (gpu_by_map(op))
            gpu_copy_by_map(gpu, op);
        else
            gpu_lower_copy(gpu, op);
        return;
    case TILE_OP_DIM: lower_dim(gpu, op); return;
    case TILE_OP_PRINT: gpu_lower_print(gpu, op); return;
    case TILE_OP_CONST:
    case TILE_OP_FOR:
    case TILE_OP_WHILE:
    case TILE_OP_IF:
    case TILE_OP_YIELD:
    case TILE_OP_CONDITION:
    case TILE_OP_RETURN:
    case TILE_OP_ASSERT:
    case TILE_OP_BLOCK:
    case TILE_OP_BLOCK_COUNT:
    case TILE_OP_PTR_ADD:
    case TILE_OP_BUFFER:
    case TILE_OP_BARRIER:
    case TILE_OP_COPY_COMMIT:
    case TILE_OP_COPY_WAIT:
        if (!gpu_lower_value(gpu, op)) lower_control(gpu, op);
        return;
    default:
        if (!gpu_lower_value(gpu, op)) gpu_refuse(gpu, op, "is not supported on GPUs yet");
    }
}

static void lower_op(Gpu *gpu, TileOp *op) {
    gpu->b.location = op->location;
    lower_any_op(gpu, op);
    for (unsigned i = 0; i < op->result_count && gpu->context->settings.mark_padding; i++)
        mark_padding(gpu, &op->results[i]);
}

void gpu_lower_block_here(Gpu *gpu, const TileBlock *old) {
    for (TileOp *op = old->first; op && !gpu->refused; op = op->next) {
        gpu_remark_tiles(gpu, op);
        gpu_remark_order(gpu, op);
        lower_op(gpu, op);
    }
}

static void lower_block(Gpu *gpu, const TileBlock *old, TileBlock *block) {
    gpu->b.block = block;
    gpu->b.before = NULL;
    gpu_lower_block_here(gpu, old);
}

/* ---- the pass ---- */

/* Blocks of the next grid may come to the device as soon as all blocks of this one have begun. They wait for the end of this grid
 * before they access memory. So may, where blocks stay, those of a launch behind this one, or in front of it: a grid that others
 * may overtake has waited for the one before, so that what has ended has seen everything before it end. Where each program has a block,
 * 16,384 of a warp took 24.7 in place of 19.2 us with a wait in each. */
static void order_grids(Gpu *gpu) {
    const TileTarget *target = gpu->context->target;
    if (!target || !target->has_dependent_grids) return;
    const TileFunc *phase = gpu->func;
    bool first = phase->phase == 0, last = !phase->kernel || !tile_func_phase(phase->kernel, phase->phase + 1);
    if (!last || phase->resident) gpu_build_plain(&gpu->b, TILE_OP_GRID_LAUNCH);
    if (!first || phase->resident) gpu_build_plain(&gpu->b, TILE_OP_GRID_WAIT);
}

static void number_threads(Gpu *gpu) {
    TileOp *thread = tile_build_op(&gpu->b, TILE_OP_THREAD, NULL, 0, NULL, 0, NULL, 1);
    gpu->thread = tile_build_convert(&gpu->b, tile_op_result(thread, 0), TILE_I64);
}

static void drop_block(TileBlock *block) {
    while (block->last) tile_op_erase(block->last);
}

static bool is_undecided(const TileType *type) { return tile_type_is_tile(type) && !type->layout; }

/* An op with a tile without layout; NULL: there is none. */
static const TileOp *find_undecided(const TileBlock *block) {
    for (const TileOp *op = block->first; op; op = op->next) {
        for (unsigned i = 0; i < op->result_count; i++)
            if (is_undecided(op->results[i].type) && !gpu_stays_shared(op)) return op;
        for (unsigned i = 0; i < op->region_count; i++) {
            for (unsigned k = 0; k < op->regions[i].argument_count; k++)
                if (is_undecided(op->regions[i].arguments[k]->type)) return op;
            const TileOp *found = find_undecided(&op->regions[i]);
            if (found) return found;
        }
    }
    return NULL;
}

TileResult tile_pass_gpu_machine(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    const TileOp *undecided = find_undecided(&func->body);
    if (undecided || !func->threads)
        return tile_pass_fail(context, TILE_INTERNAL, undecided,
                              "gpu-machine: gpu-threads and gpu-propagate come before");
    Gpu gpu = {.context = context, .module = context->module, .arena = context->scratch, .func = func};
    tile_map_init(&gpu.values, gpu.arena);
    tile_map_init(&gpu.tensors, gpu.arena);
    tile_map_init(&gpu.beside, gpu.arena);
    gpu_find_order(&gpu);
    TileBlock old;
    gpu_replace_signature(&gpu, &old);
    tile_map_init(&gpu.pending, gpu.arena);
    tile_map_init(&gpu.stored, gpu.arena);
    tile_map_init(&gpu.collected, gpu.arena);
    tile_map_init(&gpu.shared_ahead, gpu.arena);
    GpuDots dots = gpu_find_dots(func, &old);
    gpu.products = dots.multiplied.count ? 0 : dots.count;
    gpu.sums = dots.sums;
    gpu.promoted = dots.promoted;
    gpu.uses_sums = gpu_loops_use_sums(&old);
    gpu_find_channels(&gpu, &old);
    gpu.turns = 1;
    gpu.log_warps = gpu_log_shared_warps(func->threads);
    gpu.b = tile_builder_at_end(gpu.module, &func->body);
    order_grids(&gpu);
    number_threads(&gpu);
    gpu_use_facts(&gpu, &old);
    lower_block(&gpu, &old, &func->body);
    func->form = TILE_FORM_MACHINE;
    if (gpu.block_threads) func->threads = gpu.block_threads;
    gpu_report_uses(&gpu);
    if (gpu.refused)
        return tile_pass_fail(context, TILE_UNSUPPORTED, gpu.refused, "`%s` %s",
                              tile_op_info(gpu.refused->id)->mnemonic, gpu.why);
    drop_block(&old);
    if (gpu.b.error) return tile_pass_fail(context, TILE_INTERNAL, NULL, "gpu-machine: %s", gpu.b.error);
    return TILE_RESULT_CHANGED;
}
