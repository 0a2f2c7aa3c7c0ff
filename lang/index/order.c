/* Values in an order in which each stands behind what it is computed from: a depth-first walk with a stack of its own.
 */
#include "lang/index/internal.h"

/* Calls of it may be nested: each has the part of the stack above those around it. */
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
