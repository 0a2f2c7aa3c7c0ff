/* Which stores and updates of a block need barriers around them. A barrier makes what the threads have stored visible to
 * the others and keeps accesses of one place in the order of the text; it also keeps later loads from being under way
 * meanwhile. So there is none where two accesses have no element in common, or each thread meets its own elements only. */
#include "lang/ir/access.h"
#include "lang/ir/operands.h"
#include "ptx/lowering/machine.h"
#include "ptx/target/map.h"

/* Does the op store a tile? A scalar is stored by one thread, always the same. */
static bool stores_tile(const TileOp *store) { return tile_type_is_tile(tile_op_operand(store, 1)->type); }

static bool is_loop(const TileOp *op) {
    return (op->id == TILE_OP_FOR || op->id == TILE_OP_WHILE) && !tile_loop_is_of_programs(op);
}

/* ---- two accesses ---- */

static bool is_in_loop(const TileOp *op) {
    for (const TileOp *outer = op->block->op; outer; outer = outer->block->op)
        if (is_loop(outer)) return true;
    return false;
}

/* The elements of a dimension that an access covers: first, first + step, .. , `count` of them. */
typedef struct Span {
    const TileValue *first;
    int64_t step, count;
} Span;

static bool read_span(const TileOp *op, const TileAccessIndex *index, Span *span) {
    *span = (Span){index->first, 1, 1};
    if (index->kind == TILE_ACCESS_GATHER) return false;
    if (index->kind == TILE_ACCESS_INDEX) return true;
    span->count = tile_accessed_tile(op)->type->extent[index->axis];
    return tile_value_integer(index->step, &span->step) && span->step > 0;
}

/* Have the spans certainly no element in common? The valid ones are within the tensor, so that nothing wraps around. */
static bool are_apart(TileIndices *indices, const Span *a, const Span *b) {
    int64_t distance; /* from b to a */
    if (!tile_index_offset(indices, a->first, b->first, &distance) || distance == INT64_MIN) return false;
    int64_t step = a->count == 1 ? b->step : a->step;
    if ((a->count == 1 || b->count == 1 || a->step == b->step) && distance % step != 0) return true;
    return distance >= 0 ? distance / b->step >= b->count : -(distance / a->step) >= a->count;
}

/* Do the accesses of one tensor have no element in common, in an iteration of no loop? */
static bool are_disjoint(TileIndices *indices, const TileOp *a, const TileOp *b) {
    TileAccessIndex of_a[TILE_MAX_TENSOR_RANK], of_b[TILE_MAX_TENSOR_RANK];
    unsigned rank = tile_access_read(a, of_a);
    tile_access_read(b, of_b);
    for (unsigned d = 0; d < rank; d++) {
        Span x, y;
        if (read_span(a, &of_a[d], &x) && read_span(b, &of_b[d], &y) && are_apart(indices, &x, &y)) return true;
    }
    return false;
}

/* Does each thread access the elements with both ops that it accesses with one? No other thread has copies of them. */
static bool are_own(const TileOp *a, const TileOp *b) {
    const TileValue *x = tile_accessed_tile(a), *y = tile_accessed_tile(b);
    if (!x || !y || !x->type->layout || x->type->layout != y->type->layout || gpu_by_map(a) || gpu_by_map(b)) return false;
    const TileLayout *layout = x->type->layout;
    if (tile_layout_free_bits(layout, TILE_LAYOUT_LANE) || tile_layout_free_bits(layout, TILE_LAYOUT_WARP)) return false;
    TileAccessIndex of_a[TILE_MAX_TENSOR_RANK], of_b[TILE_MAX_TENSOR_RANK];
    unsigned rank = tile_access_read(a, of_a);
    tile_access_read(b, of_b);
    for (unsigned d = 0; d < rank; d++) {
        if (of_a[d].kind != of_b[d].kind || of_a[d].axis != of_b[d].axis || of_a[d].first != of_b[d].first) return false;
        if (of_a[d].kind == TILE_ACCESS_GATHER) return false;
        if (of_a[d].kind == TILE_ACCESS_RANGE && of_a[d].step != of_b[d].step) return false;
    }
    return true;
}

/* Are they updates of one kind that nobody asks for old values? Then they may happen in any order. */
static bool commute(const TileOp *a, const TileOp *b) {
    if (a->id != TILE_OP_ATOMIC_TILE || b->id != TILE_OP_ATOMIC_TILE) return false;
    int64_t update = tile_op_integer(a, TILE_ATTRIBUTE_UPDATE, 0);
    return update == tile_op_integer(b, TILE_ATTRIBUTE_UPDATE, 0) && update != TILE_UPDATE_CAS &&
           !a->results[0].first_use && !b->results[0].first_use;
}

/* ---- the decision ---- */

/* Does the store have to be ordered with another access of its tensor? */
static bool conflicts(TileIndices *indices, const TileOp *store, const TileOp *other) {
    switch ((TileOpId)other->id) {
    case TILE_OP_LOAD_TILE: break;
    case TILE_OP_ATOMIC_TILE:
        if (other == store || commute(store, other)) return false;
        break;
    case TILE_OP_STORE_TILE:
        if (other == store || (!stores_tile(store) && !stores_tile(other))) return false;
        break;
    default: return false;
    }
    if (is_in_loop(store) || is_in_loop(other)) return true;
    return !are_own(store, other) && !are_disjoint(indices, store, other);
}

/* A store needs barriers if the tensor has another access that may overlap: a load, an update, another store, or the
 * store itself in another iteration of a loop. */
static bool needs_order(TileIndices *indices, const TileOp *store) {
    if (tile_op_get(store, TILE_ATTRIBUTE_APART)) return false;
    for (const TileUse *use = tile_op_operand(store, 0)->first_use; use; use = use->next)
        if (conflicts(indices, store, use->user)) return true;
    if (!stores_tile(store) || commute(store, store)) return false;
    for (const TileOp *op = store->block->op; op; op = op->block->op)
        if (is_loop(op) && !tile_access_is_apart(store, op)) return true; /* programs are unordered: any of them may store last */
    return false;
}

typedef struct Search {
    TileIndices *indices;
    TileMap *ordered;
} Search;

static void look(TileOp *op, void *state) {
    Search *search = state;
    if (op->id != TILE_OP_STORE_TILE && op->id != TILE_OP_ATOMIC_TILE) return;
    if (needs_order(search->indices, op)) tile_map_set(search->ordered, op, op);
}

void gpu_find_order(Gpu *gpu) {
    tile_map_init(&gpu->ordered, gpu->arena);
    Search search = {tile_pass_indices(gpu->context, gpu->func), &gpu->ordered};
    tile_block_walk(&gpu->func->body, look, &search);
}
