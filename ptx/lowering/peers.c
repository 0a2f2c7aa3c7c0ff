/* What the blocks of a cluster combine: each stores what it has in a place of its shared memory that nothing else has, the blocks meet, and each thread
 * loads what all of them have of its elements, in order of their numbers. A block must not end, nor store there again, before all have loaded: the
 * next such op makes them meet, which has a place of its own, or they meet behind the last. */
#include "lang/ir/eval.h"
#include "ptx/lowering/machine.h"
#include "ptx/pipeline/copies.h"
#include "ptx/target/peers.h"

enum { GRAIN = 16 };

static TileValue *shared_memory(const Gpu *gpu) { return gpu->func->body.arguments[gpu->func->body.argument_count - 1]; }

static TileValue *load_peer(Gpu *gpu, const TileType *type, TileValue *address, int64_t rank) {
    TileAttribute attribute = {.key = TILE_ATTRIBUTE_RANK, .integer = rank};
    return tile_op_result(tile_build_op(&gpu->b, TILE_OP_LOAD_PEER, &address, 1, &attribute, 1, &type, 1), 0);
}

static TileValue *combine_peers(Gpu *gpu, const TileOp *op, TileValue *address) {
    TileName kind = (TileName)tile_op_integer(op, TILE_ATTRIBUTE_KIND, TILE_KIND_SUM);
    const TileType *type = tile_type_scalar(gpu->module->context, op->results[0].type->scalar);
    TileValue *values[TILE_MAX_CLUSTER] = {NULL}, *all;
    for (unsigned i = 0; i < gpu->func->cluster; i++) values[i] = load_peer(gpu, type, address, i);
    all = values[0];
    for (unsigned i = 1; i < gpu->func->cluster; i++) all = gpu_binary(gpu, tile_eval_combiner(kind), all, values[i]);
    return all;
}

/* The next one behind it, which all threads come to that came to this one; NULL: there is none. */
static TileOp *next_of(const TileOp *op) {
    TileOp *next = op->next;
    while (next && next->id != TILE_OP_CLUSTER_REDUCE) next = next->next;
    return next;
}

static GpuStrides strides_of(const TileType *type) {
    TileLayoutShape shape = {.rank = type->layout->rank};
    for (unsigned a = 0; a < shape.rank; a++) shape.extent[a] = tile_layout_extent(type->layout, a);
    return gpu_row_major(&shape, tile_scalar_bytes(type->scalar));
}

/* The op's place in shared memory is the current one. */
static void open_place(Gpu *gpu, const TileOp *op) {
    const TileType *type = op->results[0].type;
    int64_t offset = tile_op_integer(op, TILE_ATTRIBUTE_OFFSET, 0), bytes = tile_scalar_bytes(type->scalar);
    for (unsigned a = 0; tile_type_is_tile(type) && a < type->layout->rank; a++) bytes *= tile_layout_extent(type->layout, a);
    uint64_t end = (uint64_t)(offset + bytes + GRAIN - 1) / GRAIN * GRAIN;
    if (gpu->func->scratch_bytes < end) gpu->func->scratch_bytes = end;
    gpu->shared = offset ? tile_build_ptr_add(&gpu->b, shared_memory(gpu), gpu_i64(gpu, offset)) : shared_memory(gpu);
}

static void store_own(Gpu *gpu, const TileOp *op) {
    const TileType *type = op->results[0].type;
    TileValue *value = gpu_value(gpu, tile_op_operand(op, 0));
    open_place(gpu, op);
    tile_map_set(&gpu->shared_ahead, op, (void *)(uintptr_t)op);
    if (!tile_type_is_tile(type)) {
        tile_build_store(&gpu->b, value, gpu->shared, gpu_binary(gpu, TILE_OP_EQ, gpu->thread, gpu_i64(gpu, 0)), 0);
        return;
    }
    GpuStrides strides = strides_of(type);
    gpu_write_shared(gpu, value, type->layout, &strides);
}

/* What those behind it combine, as far as it is there, is stored too: the blocks meet once for all of them. */
static void meet(Gpu *gpu, TileOp *op) {
    if (tile_map_get(&gpu->shared_ahead, op)) return;
    store_own(gpu, op);
    for (TileOp *next = next_of(op); next && tile_map_get(&gpu->values, tile_op_operand(next, 0)); next = next_of(next)) store_own(gpu, next);
    gpu_build_plain(&gpu->b, TILE_OP_CLUSTER_BARRIER);
}

static TileValue *combine_tile(Gpu *gpu, const TileOp *op) {
    const TileLayout *layout = op->results[0].type->layout;
    GpuStrides strides = strides_of(op->results[0].type);
    uint32_t count = tile_layout_registers(layout);
    TileValue **registers = TILE_NEW_ARRAY(gpu->arena, TileValue *, count), *base = gpu_shared_address(gpu, layout, &strides);
    for (uint32_t r = 0; r < count; r++) {
        int64_t offset = gpu_shared_register_offset(layout, &strides, r);
        registers[r] = combine_peers(gpu, op, offset ? tile_build_ptr_add(&gpu->b, base, gpu_i64(gpu, offset)) : base);
    }
    return gpu_join(gpu, registers, count);
}

/* ---- parts of tiles ---- */

static bool has_parts(const TileOp *op) { return tile_op_get(op, TILE_ATTRIBUTE_AXIS) != NULL; }

static bool is_in_partition(const TileOp *op) {
    while (op && op->id != TILE_OP_PARTITIONS) op = op->block->op;
    return op != NULL;
}

/* Neighbours of a row that move as one vector: of words. */
static uint32_t vector_width(const TileLayout *layout, TileScalar scalar) {
    enum { MOST = 4 };
    return tile_scalar_bits(scalar) == 32 ? tile_layout_vector(layout, layout->rank - 1u, MOST) : 1;
}

static GpuStrides strides_of_rows(const TileType *whole) {
    GpuStrides strides = {.extent = {whole->extent[0], whole->extent[1]}, .bytes = {gpu_peer_pitch(whole), tile_scalar_bytes(whole->scalar)}};
    return strides;
}

static void open_rows(Gpu *gpu, const TileOp *op) {
    const TileType *type = tile_op_operand(op, 0)->type;
    int64_t offset = tile_op_integer(op, TILE_ATTRIBUTE_OFFSET, 0);
    uint64_t end = (uint64_t)(offset + gpu_peer_bytes(type));
    if (gpu->func->scratch_bytes < end) gpu->func->scratch_bytes = end;
    gpu->shared = offset ? tile_build_ptr_add(&gpu->b, shared_memory(gpu), gpu_i64(gpu, offset)) : shared_memory(gpu);
}

static void store_rows(Gpu *gpu, const TileOp *op) {
    const TileType *type = tile_op_operand(op, 0)->type;
    TileValue *value = gpu_value(gpu, tile_op_operand(op, 0)), *registers[TILE_CHUNK_BYTES];
    open_rows(gpu, op);
    tile_map_set(&gpu->shared_ahead, op, (void *)(uintptr_t)op);
    GpuStrides strides = strides_of_rows(type);
    TileValue *base = gpu_shared_address(gpu, type->layout, &strides), *first = gpu_holds_first_copy(gpu, type->layout);
    uint32_t width = vector_width(type->layout, type->scalar);
    TileBuilder outer;
    TileOp *branch = first ? gpu_begin_branch(gpu, first, &outer) : NULL;
    for (uint32_t r = 0; r < tile_layout_registers(type->layout); r += width) {
        int64_t offset = gpu_shared_register_offset(type->layout, &strides, r);
        for (uint32_t i = 0; i < width; i++) registers[i] = gpu_register(gpu, value, r + i);
        tile_build_store(&gpu->b, gpu_join(gpu, registers, width), tile_build_ptr_add(&gpu->b, base, gpu_i64(gpu, offset)), NULL, width > 1 ? (int64_t)width * tile_scalar_bytes(type->scalar) : 0);
    }
    if (branch) gpu_end_branch(gpu, branch, &outer);
}

/* Of a partition the other one's threads meet those of the cluster at its end: what it has copied is there, and nothing reads it any more. */
static void meet_with_rows(Gpu *gpu, const TileOp *op) {
    if (tile_map_get(&gpu->shared_ahead, op)) return;
    if (is_in_partition(op)) gpu_build_plain(&gpu->b, TILE_OP_BARRIER);
    store_rows(gpu, op);
    for (TileOp *next = next_of(op); next && has_parts(next) && tile_map_get(&gpu->values, tile_op_operand(next, 0)); next = next_of(next)) store_rows(gpu, next);
    gpu_build_plain(&gpu->b, TILE_OP_CLUSTER_BARRIER);
}

/* Where the block's part begins. */
static void open_part(Gpu *gpu, const TileOp *op) {
    const TileType *part = op->results[0].type, *whole = tile_op_operand(op, 0)->type;
    int64_t axis = tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0), bytes = part->extent[axis] * strides_of_rows(whole).bytes[axis];
    open_rows(gpu, op);
    TileValue *rank = tile_build_convert(&gpu->b, tile_op_result(tile_build_op(&gpu->b, TILE_OP_CLUSTER_RANK, NULL, 0, NULL, 0, NULL, 1), 0), TILE_I64);
    gpu->shared = tile_build_ptr_add(&gpu->b, gpu->shared, gpu_binary(gpu, TILE_OP_MUL, rank, gpu_i64(gpu, bytes)));
}

static TileValue *combine_rows(Gpu *gpu, const TileOp *op) {
    const TileType *part = op->results[0].type;
    GpuStrides strides = strides_of_rows(tile_op_operand(op, 0)->type);
    uint32_t count = tile_layout_registers(part->layout), width = vector_width(part->layout, part->scalar);
    const TileType *vector = width > 1 ? tile_type_vector(gpu->module->context, part->scalar, width, false) : tile_type_scalar(gpu->module->context, part->scalar);
    TileName kind = (TileName)tile_op_integer(op, TILE_ATTRIBUTE_KIND, TILE_KIND_SUM);
    open_part(gpu, op);
    TileValue **registers = TILE_NEW_ARRAY(gpu->arena, TileValue *, count), *base = gpu_shared_address(gpu, part->layout, &strides);
    for (uint32_t r = 0; r < count; r += width) {
        TileValue *address = tile_build_ptr_add(&gpu->b, base, gpu_i64(gpu, gpu_shared_register_offset(part->layout, &strides, r))), *all = NULL;
        for (unsigned i = 0; i < gpu->func->cluster; i++) {
            TileValue *value = load_peer(gpu, vector, address, i);
            all = all ? gpu_binary(gpu, tile_eval_combiner(kind), all, value) : value;
        }
        for (uint32_t i = 0; i < width; i++) registers[r + i] = width > 1 ? gpu_register(gpu, all, i) : all;
    }
    return gpu_join(gpu, registers, count);
}

void gpu_count_meetings(TileOp *op, void *count) { *(unsigned *)count += op->id == TILE_OP_CLUSTER_BARRIER; }

void gpu_lower_cluster_reduce(Gpu *gpu, TileOp *op) {
    if (has_parts(op)) {
        meet_with_rows(gpu, op);
        tile_map_set(&gpu->values, &op->results[0], combine_rows(gpu, op));
        if (!next_of(op) && !is_in_partition(op)) gpu_build_plain(&gpu->b, TILE_OP_CLUSTER_BARRIER);
        return;
    }
    meet(gpu, op);
    open_place(gpu, op);
    TileValue *value = tile_type_is_tile(op->results[0].type) ? combine_tile(gpu, op) : combine_peers(gpu, op, gpu->shared);
    if (!next_of(op)) gpu_build_plain(&gpu->b, TILE_OP_CLUSTER_BARRIER);
    tile_map_set(&gpu->values, &op->results[0], value);
}
