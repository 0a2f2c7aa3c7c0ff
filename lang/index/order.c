/* Values in post-order: each after the values that it is computed from. A depth-first walk with an explicit stack. */
#include "lang/index/internal.h"

/* Calls may be nested: each uses the part of the stack above those of its callers. */
void tile_index_in_order(TileIndices *indices, const TileIndexOrder *order, const TileValue *value) {
    size_t base = indices->pending.count;
    tile_list_push(indices->arena, &indices->pending, (TileIndexPending){value, 0});
    while (indices->pending.count > base) {
        TileIndexPending *top = &indices->pending.items[indices->pending.count - 1];
        const TileValue *at = top->value, *needed = order->needed(order->state, at, top->next++);
        if (needed) {
            if (!order->is_known(order->state, needed))
                tile_list_push(indices->arena, &indices->pending, (TileIndexPending){needed, 0});
            continue;
        }
        if (!order->is_known(order->state, at)) order->compute(order->state, at);
        indices->pending.count--;
    }
}
