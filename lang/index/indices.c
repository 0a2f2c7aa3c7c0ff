/* What the analyses share: assumptions about parameters, the numbers of a type, values in post-order. */
#include "lang/index/internal.h"

void tile_index_view_init(TileIndexView *view, TileIndices *indices, const TileOp *inside, bool tiles) {
    *view = (TileIndexView){.indices = indices, .inside = inside, .tiles = tiles};
    tile_map_init(&view->sums, indices->arena);
    tile_map_init(&view->lanes, indices->arena);
}

TileIndices *tile_indices_create(TileArena *arena, TileFunc *func) {
    TileIndices *indices = TILE_NEW(arena, TileIndices);
    *indices = (TileIndices){.arena = arena, .func = func};
    tile_map_init(&indices->ranges, arena);
    tile_map_init(&indices->symbols, arena);
    tile_sum_table_init(&indices->table, arena);
    tile_index_view_init(&indices->view, indices, NULL, false);
    return indices;
}

TileIndices *tile_indices_in_words(TileArena *arena, TileFunc *func) {
    TileIndices *indices = tile_indices_create(arena, func);
    indices->words = true;
    return indices;
}

TileIndices *tile_indices_suppose(TileArena *arena, TileFunc *func, int64_t divisor) {
    TileIndices *indices = tile_indices_create(arena, func);
    indices->divisor = divisor;
    return indices;
}

void tile_index_use(TileIndices *indices, uint64_t because) {
    for (unsigned i = 0; i < indices->assumption_count; i++) {
        TileAssumption assumption = indices->assumptions[i];
        if (!(because >> i & 1)) continue;
        TileParameter *parameter = &indices->func->parameters[assumption.parameter];
        if (assumption.dimension == TILE_ANY_DIMENSION)
            parameter->used_narrow = true;
        else
            parameter->used_extent |= 1u << assumption.dimension;
    }
}

bool tile_index_ask(TileIndices *indices, uint64_t because) {
    bool hold = true;
    for (unsigned i = 0; i < indices->assumption_count; i++) {
        if (!(because >> i & 1)) continue;
        TileParameter *parameter = &indices->func->parameters[indices->assumptions[i].parameter];
        parameter->asked_multiple |= (uint32_t)indices->divisor;
        int64_t known = parameter->facts.multiple[0];
        hold &= known != TILE_UNKNOWN && known % indices->divisor == 0;
    }
    for (unsigned i = 0; i < indices->assumption_count && hold; i++)
        if (because >> i & 1)
            indices->func->parameters[indices->assumptions[i].parameter].used_multiple |= (uint32_t)indices->divisor;
    return hold;
}

TileIndexRange tile_index_range_always(TileIndices *indices, const TileValue *value) {
    TileIndexRange range = tile_index_range(indices, value);
    if (!range.because) return range;
    if (!indices->less) {
        indices->less = tile_indices_create(indices->arena, indices->func);
        indices->less->unconditional = true;
    }
    return tile_index_range(indices->less, value);
}

/* ---- numbers ---- */

int64_t tile_index_common_divisor(int64_t a, int64_t b) {
    uint64_t x = a < 0 ? -(uint64_t)a : (uint64_t)a, y = b < 0 ? -(uint64_t)b : (uint64_t)b;
    while (y) {
        uint64_t rest = x % y;
        x = y;
        y = rest;
    }
    return x > INT64_MAX ? 1 : (int64_t)x;
}

TileIndexRange tile_index_range_of_type(const TileType *type) {
    TileIndexRange range = {INT64_MIN, INT64_MAX, 1, 0};
    unsigned bits =
        type->kind == TILE_TYPE_POINTER || type->kind == TILE_TYPE_TENSOR ? 64 : tile_scalar_bits(type->scalar);
    if (bits == 64 || tile_scalar_is_float(type->scalar)) return range;
    bool is_signed = tile_scalar_class(type->scalar) == TILE_CLASS_SIGNED;
    range.hi = (INT64_C(1) << (is_signed ? bits - 1 : bits)) - 1;
    range.lo = is_signed ? -range.hi - 1 : 0;
    return range;
}

TileIndexRange tile_index_in_type(const TileType *type, Wide lo, Wide hi, int64_t multiple, uint64_t because) {
    TileIndexRange all = tile_index_range_of_type(type);
    if (lo < all.lo || hi > all.hi || type->scalar == TILE_U64) {
        all.multiple = multiple > 0 ? multiple & -multiple : 1;
        all.because = all.multiple > 1 ? because : 0;
        return all;
    }
    TileIndexRange range = {(int64_t)lo, (int64_t)hi, multiple, because};
    if (lo == hi) range.multiple = (int64_t)lo < 0 && (int64_t)lo != INT64_MIN ? -(int64_t)lo : (int64_t)lo;
    return range.multiple < 0 ? (TileIndexRange){range.lo, range.hi, 1, because} : range;
}

/* ---- post-order ---- */

/* Each value comes after the values that it is computed from: a depth-first walk with an explicit stack. Calls may be
 * nested: each uses the part of the stack above those of its callers. */
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
