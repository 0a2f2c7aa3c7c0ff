/* What the blocks of a cluster combine: each stores what it has in a place of its shared memory that nothing else has, the blocks meet, and each thread
 * loads what all of them have of its elements, in order of their numbers. A block must not end, nor store there again, before all have loaded: the
 * next such op makes them meet, which has a place of its own, or they meet behind the last. */
#include "lang/ir/eval.h"
#include "ptx/lowering/machine.h"
#include "ptx/pipeline/copies.h"

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

/* Is there another one behind it, which all threads come to that came to this one? */
static bool is_followed(const TileOp *op) {
    while (op->next && op->next->id != TILE_OP_CLUSTER_REDUCE) op = op->next;
    return op->next;
}

static TileValue *lower_tile(Gpu *gpu, const TileOp *op, TileValue *value) {
    const TileType *type = op->results[0].type;
    const TileLayout *layout = type->layout;
    TileLayoutShape shape = {.rank = layout->rank};
    for (unsigned a = 0; a < shape.rank; a++) shape.extent[a] = tile_layout_extent(layout, a);
    GpuStrides strides = gpu_row_major(&shape, tile_scalar_bytes(type->scalar));
    uint32_t count = tile_layout_registers(layout);
    TileValue **registers = TILE_NEW_ARRAY(gpu->arena, TileValue *, count);
    gpu_write_shared(gpu, value, layout, &strides);
    gpu_build_plain(&gpu->b, TILE_OP_CLUSTER_BARRIER);
    TileValue *base = gpu_shared_address(gpu, layout, &strides);
    for (uint32_t r = 0; r < count; r++) {
        int64_t offset = gpu_shared_register_offset(layout, &strides, r);
        registers[r] = combine_peers(gpu, op, offset ? tile_build_ptr_add(&gpu->b, base, gpu_i64(gpu, offset)) : base);
    }
    return gpu_join(gpu, registers, count);
}

static TileValue *lower_scalar(Gpu *gpu, const TileOp *op, TileValue *value) {
    tile_build_store(&gpu->b, value, gpu->shared, gpu_binary(gpu, TILE_OP_EQ, gpu->thread, gpu_i64(gpu, 0)), 0);
    gpu_build_plain(&gpu->b, TILE_OP_CLUSTER_BARRIER);
    return combine_peers(gpu, op, gpu->shared);
}

void gpu_lower_cluster_reduce(Gpu *gpu, TileOp *op) {
    const TileType *type = op->results[0].type;
    TileValue *value = gpu_value(gpu, tile_op_operand(op, 0));
    int64_t offset = tile_op_integer(op, TILE_ATTRIBUTE_OFFSET, 0), lanes = tile_type_is_tile(type) ? tile_type_lanes(type) : 1;
    uint64_t end = (uint64_t)(offset + lanes * tile_scalar_bytes(type->scalar) + GRAIN - 1) / GRAIN * GRAIN;
    if (gpu->func->scratch_bytes < end) gpu->func->scratch_bytes = end;
    gpu->shared = offset ? tile_build_ptr_add(&gpu->b, shared_memory(gpu), gpu_i64(gpu, offset)) : shared_memory(gpu);
    value = tile_type_is_tile(type) ? lower_tile(gpu, op, value) : lower_scalar(gpu, op, value);
    if (!is_followed(op)) gpu_build_plain(&gpu->b, TILE_OP_CLUSTER_BARRIER);
    tile_map_set(&gpu->values, &op->results[0], value);
}
