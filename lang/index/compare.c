/* Is an analysis still valid? Compares its cached results with those of a new one, for each value of the function. */
#include "lang/index/internal.h"

typedef struct Comparison {
    TileIndices *kept, *fresh;
    const TileValue *different;
} Comparison;

static bool has_symbols(const TileProduct *product, const TileProduct *other) {
    for (uint32_t i = 0; i < product->degree; i++) {
        bool found = false;
        for (uint32_t k = 0; k < other->degree && !found; k++)
            found = product->symbols[i]->value == other->symbols[k]->value;
        if (!found) return false;
    }
    return product->degree == other->degree && product->factor == other->factor;
}

/* The order of symbols differs between two analyses. */
static bool is_same_sum(const TileSum *a, const TileSum *b) {
    if (a->constant != b->constant || a->count != b->count) return false;
    for (uint32_t i = 0; i < a->count; i++) {
        bool found = false;
        for (uint32_t k = 0; k < b->count && !found; k++) found = has_symbols(&a->products[i], &b->products[k]);
        if (!found) return false;
    }
    return true;
}

static void compare_value(Comparison *comparison, const TileValue *value) {
    const TileIndexRange *range = tile_map_get(&comparison->kept->ranges, value);
    const TileSum *sum = tile_map_get(&comparison->kept->view.sums, value);
    if (range) {
        TileIndexRange other = tile_index_range(comparison->fresh, value);
        if (range->lo != other.lo || range->hi != other.hi || range->multiple != other.multiple)
            comparison->different = value;
    }
    if (sum && !is_same_sum(sum, tile_index_sum(&comparison->fresh->view, value))) comparison->different = value;
}

static void compare_block(Comparison *comparison, const TileBlock *block) {
    for (unsigned i = 0; i < block->argument_count; i++) compare_value(comparison, block->arguments[i]);
    for (const TileOp *op = block->first; op && !comparison->different; op = op->next) {
        for (unsigned i = 0; i < op->result_count; i++) compare_value(comparison, &op->results[i]);
        for (unsigned i = 0; i < op->region_count; i++) compare_block(comparison, &op->regions[i]);
    }
}

const TileValue *tile_indices_compare(TileIndices *indices, TileArena *arena) {
    Comparison comparison = {indices, tile_indices_create(arena, indices->func), NULL};
    compare_block(&comparison, &indices->func->body);
    return comparison.different;
}
