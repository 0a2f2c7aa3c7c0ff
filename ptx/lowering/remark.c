/* Remarks of gpu-machine, for `tilec explain`. */
#include "ptx/lowering/machine.h"

static const char *layout_text(const Gpu *gpu, const TileLayout *layout) {
    TileText text = {.arena = gpu->arena};
    tile_layout_print(&text, layout);
    return tile_text_get(&text);
}

void gpu_remark_tiles(Gpu *gpu, const TileOp *op) {
    if (!gpu->context->remarks) return;
    for (unsigned i = 0; i < op->result_count; i++) {
        const TileValue *value = &op->results[i];
        if (!tile_type_is_tile(value->type) || !value->type->layout) continue;
        TileRemark remark = {.kind = TILE_REMARK_LAYOUT,
                             .place = op->location,
                             .func = gpu->func,
                             .name = value->name ? value->name : tile_op_info(op->id)->mnemonic,
                             .scalar = value->type->scalar,
                             .layout = layout_text(gpu, value->type->layout)};
        tile_list_push(gpu->arena, gpu->context->remarks, remark);
    }
}

void gpu_remark_move(Gpu *gpu, const GpuMove *move) {
    if (!gpu->context->remarks) return;
    TileRemark remark = {.kind = TILE_REMARK_MOVE,
                         .place = gpu->b.location,
                         .func = gpu->func,
                         .name = "",
                         .scalar = move->scalar,
                         .layout = layout_text(gpu, move->from),
                         .to = layout_text(gpu, move->to),
                         .way = move->way,
                         .shared_bytes = move->bytes,
                         .store_conflicts = move->store_conflicts,
                         .load_conflicts = move->load_conflicts};
    tile_list_push(gpu->arena, gpu->context->remarks, remark);
}

void gpu_remark_access(Gpu *gpu, const TileOp *op, const TileParameter *tensor, TileName cache) {
    if (!gpu->context->remarks) return;
    TileRemark remark = {.kind = TILE_REMARK_ACCESS,
                         .place = op->location,
                         .func = gpu->func,
                         .name = tensor->name,
                         .way = op->id == TILE_OP_STORE_TILE ? "store" : "load",
                         .cache = cache};
    tile_list_push(gpu->arena, gpu->context->remarks, remark);
}

static uint32_t spread(const TileLayout *layout, TileLayoutDim dim, unsigned axis) {
    return 1u << __builtin_popcount(gpu_axis_bits(layout, dim, axis));
}

void gpu_remark_reduction(Gpu *gpu, const TileOp *op, const TileLayout *layout, unsigned axis) {
    if (!gpu->context->remarks) return;
    const char *name = tile_reduction_words(gpu->context, op);
    if (!name) return;
    bool tree = op->id == TILE_OP_REDUCE;
    uint32_t lanes = spread(layout, TILE_LAYOUT_LANE, axis), warps = spread(layout, TILE_LAYOUT_WARP, axis);
    uint32_t elements = (uint32_t)(tile_layout_extent(layout, axis) / lanes / warps);
    const char *way = tree ? "%u elements of a thread halved, %u lanes pairwise, %u warps in turn"
                           : "%u elements of a thread in turn, %u lanes by growing groups, %u warps in turn";
    tile_remark_order(gpu->context, gpu->func, op, name,
                      tile_arena_format(gpu->arena, way, elements, lanes, warps));
}

static const char *product_order(Gpu *gpu, const TileOp *dot) {
    enum { STEP_BYTES = 32 };
    if (!gpu_dot_is_mma(dot))
        return tile_op_integer(dot, TILE_ATTRIBUTE_ORDERED, 0) ? "one fma after the other, as `ordered` says"
                                                               : "one fma after the other";
    unsigned step = STEP_BYTES / tile_scalar_bytes(tile_op_operand(dot, 0)->type->scalar);
    const char *name = gpu_dot_is_wgmma(dot) ? "wgmma.m64" : "mma.m16n8";
    return tile_arena_format(gpu->arena, "%sk%u after the other, the %u products of each at once", name, step, step);
}

void gpu_remark_order(Gpu *gpu, const TileOp *op) {
    if (!gpu->context->remarks) return;
    if (op->id == TILE_OP_FOR) tile_remark_loop(gpu->context, gpu->func, op);
    if (op->id == TILE_OP_DOT && tile_scalar_is_float(op->results[0].type->scalar))
        tile_remark_order(gpu->context, gpu->func, op, "dot", product_order(gpu, op));
}
