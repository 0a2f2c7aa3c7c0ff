/* What was decided about tiles, for `tilec explain`. */
#include "ptx/lower.h"

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
                             .func = gpu->func->name,
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
                         .func = gpu->func->name,
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
                         .func = gpu->func->name,
                         .name = tensor->name,
                         .way = op->id == TILE_OP_STORE_TILE ? "store" : "load",
                         .cache = cache};
    tile_list_push(gpu->arena, gpu->context->remarks, remark);
}
