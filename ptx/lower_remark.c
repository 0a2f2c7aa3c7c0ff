/* What was decided about tiles, for `tilec explain`. */
#include "ptx/lower.h"
#include "ptx/swizzle.h"

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

void gpu_remark_move(Gpu *gpu, TileScalar scalar, const TileLayout *from, const TileLayout *to, const char *way,
                     uint64_t bytes, const TileSharedLayout *shared) {
    if (!gpu->context->remarks) return;
    TileRemark remark = {.kind = TILE_REMARK_MOVE,
                         .place = gpu->b.location,
                         .func = gpu->func->name,
                         .name = "",
                         .scalar = scalar,
                         .layout = layout_text(gpu, from),
                         .to = layout_text(gpu, to),
                         .way = way,
                         .shared_bytes = bytes};
    if (shared) {
        remark.store_conflicts = tile_shared_conflicts(shared, from);
        remark.load_conflicts = tile_shared_conflicts(shared, to);
    }
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
