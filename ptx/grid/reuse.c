#include "ptx/grid/reuse.h"
#include "lang/ir/operands.h"

#include <stdlib.h>

/* Each load is compared with all other uses of its tensor, so tensors with more uses than this are not analysed. */
enum { MOST_COORDINATES = 8, MOST_USES = 64 };

/* The indices of a program in its grid. */
typedef struct Coordinates {
    const TileValue *values[MOST_COORDINATES];
    unsigned count;
} Coordinates;

/* ---- what an index depends on ---- */

/* Does one of the load's indices depend on the value? */
static bool index_depends(TileIndices *indices, const TileOp *load, const TileValue *on) {
    for (unsigned i = tile_access_first(load); i < load->operand_count; i++)
        if (tile_index_depends(indices, tile_op_operand(load, i), on)) return true;
    return false;
}

static void add_coordinate(Coordinates *found, const TileValue *number) {
    if (tile_value_has_uses(number) && found->count < MOST_COORDINATES) found->values[found->count++] = number;
}

static void find_coordinates(Coordinates *found, const TileValue *program) {
    const TileOp *program_id = NULL;
    for (const TileUse *use = program->first_use; use && !program_id; use = use->next)
        if (use->user->id == TILE_OP_PROGRAM_ID && use->index == 0) program_id = use->user;
    if (!program_id) add_coordinate(found, program);
    for (unsigned i = 0; program_id && i < program_id->result_count; i++)
        add_coordinate(found, tile_op_result(program_id, i));
}

/* Does each program, and each iteration of the loops around the load, read elements of its own? */
static bool reads_own(TileIndices *indices, const TileOp *load) {
    for (const TileOp *op = load->block->op; op; op = op->block->op) {
        if (op->id == TILE_OP_IF) continue;
        if (op->id != TILE_OP_FOR) return false;
        const TileValue *induction = op->regions[0].arguments[0];
        Coordinates coordinates = {.count = 0};
        if (tile_loop_is_of_programs(op))
            find_coordinates(&coordinates, induction);
        else
            coordinates = (Coordinates){{induction}, 1};
        for (unsigned i = 0; i < coordinates.count; i++)
            if (!index_depends(indices, load, coordinates.values[i])) return false;
    }
    return true;
}

/* ---- other loads ---- */

/* Is `later`, or an op around it, behind `op` or an op around `op` in one block? It runs after it in each iteration
 * of the loops around both. */
static bool runs_later(const TileOp *later, const TileOp *op) {
    for (const TileOp *outer = op; outer; outer = outer->block->op)
        for (const TileOp *next = outer->next; next && outer != op; next = next->next)
            for (const TileOp *inner = later; inner; inner = inner->block->op)
                if (inner == next) return true;
    return false;
}

/* Are the ops in different regions of one branch, so that no program executes both in one iteration? */
static bool exclude_one_another(const TileOp *a, const TileOp *b) {
    for (const TileOp *x = a; x; x = x->block->op)
        for (const TileOp *y = b; y; y = y->block->op)
            if (x->block->op && x->block->op == y->block->op && x->block != y->block) return x->block->op->id == TILE_OP_IF;
    return false;
}

/* Are two ranges along one axis disjoint: are their first indices at least `length` apart? */
static bool are_disjoint(TileIndices *indices, const TileAccessIndex *a, const TileAccessIndex *b, int64_t length) {
    int64_t distance;
    if (!tile_index_offset(indices, a->first, b->first, &distance)) return false;
    if (!tile_value_is_integer(a->step, 1) || !tile_value_is_integer(b->step, 1)) return false;
    return distance != INT64_MIN && llabs(distance) >= length;
}

/* Do two loads of a tensor certainly read different elements, since their ranges along one dimension are disjoint? */
static bool reads_are_disjoint(TileIndices *indices, const TileOp *load, const TileOp *other) {
    const TileType *type = load->results[0].type;
    TileAccessIndex mine[TILE_MAX_TENSOR_RANK], its[TILE_MAX_TENSOR_RANK];
    unsigned rank = tile_access_read(load, mine);
    tile_access_read(other, its);
    for (unsigned d = 0; d < rank; d++) {
        if (mine[d].kind != its[d].kind || mine[d].kind == TILE_ACCESS_GATHER) return false;
        if (mine[d].kind == TILE_ACCESS_RANGE && tile_type_same_shape(type, other->results[0].type) &&
            are_disjoint(indices, &mine[d], &its[d], type->extent[mine[d].axis]))
            return true;
    }
    return false;
}

static bool has_many_uses(const TileValue *tensor) {
    unsigned count = 0;
    for (const TileUse *use = tensor->first_use; use && count <= MOST_USES; use = use->next) count++;
    return count > MOST_USES;
}

TileName gpu_load_reuse(TileIndices *indices, const TileFunc *func, const TileOp *load) {
    bool again = false, before = false;
    if (has_many_uses(tile_op_operand(load, 0)) || !reads_own(indices, load)) return TILE_CACHE_DEFAULT;
    for (const TileUse *use = tile_op_operand(load, 0)->first_use; use; use = use->next) {
        const TileOp *user = use->user;
        if (user == load || user->id == TILE_OP_DIM) continue;
        if (user->id != TILE_OP_LOAD_TILE) return TILE_CACHE_DEFAULT;
        if (!tile_type_is_tile(user->results[0].type)) continue; /* a single element */
        if (exclude_one_another(load, user)) continue;
        bool later = runs_later(user, load), earlier = runs_later(load, user);
        if (!later && !earlier && !reads_are_disjoint(indices, load, user))
            return TILE_CACHE_DEFAULT; /* they may read the same */
        again |= later;
        before |= earlier;
    }
    return again ? TILE_CACHE_L2 : before || func->stream ? TILE_CACHE_STREAM : TILE_CACHE_DEFAULT;
}

static bool has_reuse(TileIndices *indices, const TileFunc *func, const TileBlock *block) {
    for (const TileOp *op = block->first; op; op = op->next) {
        if (op->id == TILE_OP_LOAD_TILE && tile_type_is_tile(op->results[0].type) &&
            gpu_load_reuse(indices, func, op) == TILE_CACHE_L2)
            return true;
        for (unsigned i = 0; i < op->region_count; i++)
            if (has_reuse(indices, func, &op->regions[i])) return true;
    }
    return false;
}

bool gpu_reads_again(TileIndices *indices, const TileFunc *func) { return has_reuse(indices, func, &func->body); }

TileName gpu_store_reuse(const TileOp *store, bool reads_again) {
    if (!reads_again || has_many_uses(tile_op_operand(store, 0))) return TILE_CACHE_DEFAULT;
    for (const TileUse *use = tile_op_operand(store, 0)->first_use; use; use = use->next)
        if (use->user->id != TILE_OP_STORE_TILE && use->user->id != TILE_OP_DIM) return TILE_CACHE_DEFAULT;
    return TILE_CACHE_STREAM;
}
