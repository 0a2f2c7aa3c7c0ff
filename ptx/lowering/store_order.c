/* Which stores and updates of a block need barriers around them. A barrier makes what the threads have stored visible to
 * the others and keeps accesses of one place in the order of the text; it also keeps later loads from being under way
 * meanwhile. So there is none where two accesses have no element in common, or each thread meets its own elements only. */
#include "lang/ir/access.h"
#include "lang/ir/operands.h"
#include "ptx/lowering/machine.h"
#include "ptx/pipeline/copies.h"
#include "ptx/target/map.h"

/* Does the op store a tile? A scalar is stored by one thread, always the same. */
static bool stores_tile(const TileOp *store) { return tile_type_is_tile(tile_op_operand(store, 1)->type); }

static bool is_loop(const TileOp *op) {
    return (op->id == TILE_OP_FOR || op->id == TILE_OP_WHILE) && !tile_loop_is_of_programs(op);
}

/* ---- two accesses ---- */

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

/* Do indices of one dimension count the same in both accesses? Not where they count elements from there on in one of them only. */
static bool count_alike(const TileOp *a, const TileOp *b) {
    return tile_op_integer(a, TILE_ATTRIBUTE_FLAT, -1) == tile_op_integer(b, TILE_ATTRIBUTE_FLAT, -1);
}

/* Do the accesses of one tensor have no element in common, in an iteration of no loop? */
static bool are_disjoint(TileIndices *indices, const TileOp *a, const TileOp *b) {
    TileAccessIndex of_a[TILE_MAX_TENSOR_RANK], of_b[TILE_MAX_TENSOR_RANK];
    if (!count_alike(a, b)) return false;
    unsigned rank = tile_access_read(a, of_a);
    tile_access_read(b, of_b);
    for (unsigned d = 0; d < rank; d++) {
        Span x, y;
        if (read_span(a, &of_a[d], &x) && read_span(b, &of_b[d], &y) && are_apart(indices, &x, &y)) return true;
    }
    return false;
}

/* Do the accesses of one tensor certainly have the same elements, in an iteration of all loops around both? */
static bool are_same(const TileOp *a, const TileOp *b) {
    TileAccessIndex of_a[TILE_MAX_TENSOR_RANK], of_b[TILE_MAX_TENSOR_RANK];
    if (!count_alike(a, b)) return false;
    unsigned rank = tile_access_read(a, of_a);
    tile_access_read(b, of_b);
    for (unsigned d = 0; d < rank; d++) {
        if (of_a[d].kind != of_b[d].kind || of_a[d].axis != of_b[d].axis || of_a[d].first != of_b[d].first) return false;
        if (of_a[d].kind == TILE_ACCESS_GATHER) return false;
        if (of_a[d].kind == TILE_ACCESS_RANGE && of_a[d].step != of_b[d].step) return false;
    }
    return true;
}

/* Does each thread access the elements with both ops that it accesses with one? No other thread has copies of them. */
static bool are_own(const TileOp *a, const TileOp *b) {
    const TileValue *x = tile_accessed_tile(a), *y = tile_accessed_tile(b);
    if (!x || !y || !x->type->layout || x->type->layout != y->type->layout || gpu_by_map(a) || gpu_by_map(b)) return false;
    const TileLayout *layout = x->type->layout;
    if (tile_layout_free_bits(layout, TILE_LAYOUT_LANE) || tile_layout_free_bits(layout, TILE_LAYOUT_WARP)) return false;
    return are_same(a, b);
}

/* Are they updates of one kind that nobody asks for old values? Then they may happen in any order. */
static bool commute(const TileOp *a, const TileOp *b) {
    if (a->id != TILE_OP_ATOMIC_TILE || b->id != TILE_OP_ATOMIC_TILE) return false;
    int64_t update = tile_op_integer(a, TILE_ATTRIBUTE_UPDATE, 0);
    return update == tile_op_integer(b, TILE_ATTRIBUTE_UPDATE, 0) && update != TILE_UPDATE_CAS &&
           !a->results[0].first_use && !b->results[0].first_use;
}

/* Are they in different branches of an `if`, so that an iteration comes to one of them only? */
static bool are_exclusive(const TileOp *a, const TileOp *b) {
    for (const TileBlock *branch = a->block; branch->op; branch = branch->op->block)
        for (unsigned i = 0; i < branch->op->region_count; i++)
            if (tile_block_inside(b->block, &branch->op->regions[i]))
                return branch->op->id == TILE_OP_IF && &branch->op->regions[i] != branch;
    return false;
}

/* ---- loops ---- */

/* The innermost loop around both; NULL: none. */
static const TileOp *common_loop(const TileOp *a, const TileOp *b) {
    for (const TileOp *outer = a->block->op; outer; outer = outer->block->op)
        for (unsigned i = 0; i < outer->region_count; i++)
            if (is_loop(outer) && tile_block_inside(b->block, &outer->regions[i])) return outer;
    return NULL;
}

/* The outermost loop around the op within the other loop, or the op itself. */
static const TileOp *outermost(const TileOp *op, const TileOp *within) {
    const TileOp *place = op;
    for (const TileOp *outer = op->block->op; outer && outer != within; outer = outer->block->op)
        if (is_loop(outer)) place = outer;
    return place;
}

/* Does the store go to other elements in each iteration of the loop, and of those around it? */
static bool is_apart(const TileOp *store, const TileOp *loop) {
    for (; loop; loop = loop->block->op)
        if (is_loop(loop) && !tile_access_is_apart(store, loop)) return false;
    return true;
}

/* ---- the decision ---- */

/* Does the store have to be ordered with another access of its tensor? What is disjoint in one iteration of a loop may not be
 * so in two. */
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
    const TileOp *loop = common_loop(store, other);
    if (are_own(store, other) && is_apart(store, loop)) return false;
    return loop || (!are_exclusive(store, other) && !are_disjoint(indices, store, other));
}

/* Which barriers an op needs: a store, or a loop around stores. */
enum { BEFORE = 1, BEHIND = 2 };

typedef struct Search {
    TileIndices *indices;
    TileMap places;   /* of ops to their number in the order of the text, from 1 on */
    TileMap *ordered; /* of ops to BEFORE, BEHIND or both */
    uintptr_t count;
} Search;

static void add_barrier(const Search *search, const TileOp *op, unsigned where) {
    uintptr_t around = (uintptr_t)tile_map_get(search->ordered, op);
    tile_map_set(search->ordered, op, (void *)(around | where));
}

/* What of two accesses is stored first keeps the barrier between them, behind itself or the outermost loop that the other is
 * not in; what is loaded first leaves it to the store. In a loop around both either of them is the first in some iteration,
 * unless they have the same elements, and others in each iteration. */
static void order(const Search *search, const TileOp *store, const TileOp *other) {
    if (!conflicts(search->indices, store, other)) return;
    const TileOp *loop = common_loop(store, other), *place = outermost(store, loop);
    bool again = loop && !(are_same(store, other) && is_apart(store, loop)), loads = other->id == TILE_OP_LOAD_TILE,
         later = (uintptr_t)tile_map_get(&search->places, other) > (uintptr_t)tile_map_get(&search->places, store);
    if (again || later) add_barrier(search, place, BEHIND);
    if (loads && (again || !later)) add_barrier(search, place, BEFORE);
}

/* A store needs barriers if the tensor has another access that may overlap: a load, an update, another store, or the
 * store itself in another iteration of a loop. */
static void look(TileOp *store, void *state) {
    const Search *search = state;
    if (store->id != TILE_OP_STORE_TILE && store->id != TILE_OP_ATOMIC_TILE) return;
    if (tile_op_get(store, TILE_ATTRIBUTE_APART)) return;
    for (const TileUse *use = tile_op_operand(store, 0)->first_use; use; use = use->next) order(search, store, use->user);
    if (!stores_tile(store) || commute(store, store)) return;
    for (const TileOp *op = store->block->op; op; op = op->block->op) /* programs are unordered: any of them may store last */
        if (is_loop(op) && !tile_access_is_apart(store, op)) add_barrier(search, outermost(store, op), BEHIND);
}

static void number(TileOp *op, void *state) {
    Search *search = state;
    tile_map_set(&search->places, op, (void *)++search->count);
}

void gpu_find_order(Gpu *gpu) {
    tile_map_init(&gpu->ordered, gpu->arena);
    Search search = {.indices = tile_pass_indices(gpu->context, gpu->func), .ordered = &gpu->ordered};
    tile_map_init(&search.places, gpu->arena);
    tile_block_walk(&gpu->func->body, number, &search);
    tile_block_walk(&gpu->func->body, look, &search);
}

static void build_barrier(Gpu *gpu, const TileOp *op, unsigned where) {
    if ((uintptr_t)tile_map_get(&gpu->ordered, op) & where) gpu_build_plain(&gpu->b, TILE_OP_BARRIER);
}

void gpu_order_before(Gpu *gpu, const TileOp *op) { build_barrier(gpu, op, BEFORE); }

void gpu_order_behind(Gpu *gpu, const TileOp *op) { build_barrier(gpu, op, BEHIND); }
