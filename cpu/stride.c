/* Strides of addresses, optionally under the assumption that parameters have their likely values (TileParameter). */
#include "cpu/vectorise.h"

int64_t tile_likely_number(const TileValue *parameter) {
    const TileBlock *block = parameter->op ? NULL : parameter->block;
    return block && !block->op ? block->func->parameters[parameter->index].likely : 0;
}

static bool is_assumed(const TileStrides *strides, const TileValue *value) {
    for (size_t i = 0; i < strides->assumed.count; i++)
        if (strides->assumed.items[i] == value) return true;
    return false;
}

static bool assumed_number(void *state, TileValue *value, int64_t *number) {
    TileStrides *strides = state;
    *number = tile_likely_number(value);
    if (*number && strides->assumes && !is_assumed(strides, value))
        tile_list_push(strides->arena, &strides->assumed, value);
    return *number && is_assumed(strides, value);
}

void tile_strides_init(TileStrides *strides, TilePassContext *context, TileOp *loop) {
    *strides = (TileStrides){.loop = loop, .target = context->target, .arena = context->scratch};
    tile_slopes_init(&strides->slopes, tile_pass_indices(context, loop->block->func), loop);
}

TileSlope tile_stride_of(TileStrides *strides, TileValue *value) {
    strides->slopes.given = assumed_number;
    strides->slopes.state = strides;
    return tile_index_slope(&strides->slopes, value);
}
