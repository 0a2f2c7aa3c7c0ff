#include "ptx/grid/reuse.h"
#include "lang/ir/operands.h"

#include <stdlib.h>

/* Of a tensor with more uses than that nothing is said: each load is compared with all others. */
enum { MOST_COORDINATES = 8, MOST_USES = 64 };

/* The numbers that stand for a program's place in its grid. */
typedef struct Coordinates {
    const TileValue *values[MOST_COORDINATES];
    unsigned count;
} Coordinates;

/* ---- what an index depends on ---- */

/* Does one of the load's indices? */
static bool index_depends(TileIndices *indices, const TileOp *load, const TileValue *on) {
    for (unsigned i = tile_access_first(load); i < load->operand_count; i++)
        if (tile_index_depends(indices, tile_op_operand(load, i), on)) return true;
    return false;
}

static void add_coordinate(Coordinates *found, const TileValue *number) {
    if (tile_value_has_uses(number) && found->count < MOST_COORDINATES) found->values[found->count++] = number;
}

static void find_coordinates(Coordinates *found, const TileValue *program) {
    const TileOp *place = NULL;
    for (const TileUse *use = program->first_use; use && !place; use = use->next)
        if (use->user->id == TILE_OP_PROGRAM_ID && use->index == 0) place = use->user;
    if (!place) add_coordinate(found, program);
    for (unsigned i = 0; place && i < place->result_count; i++) add_coordinate(found, tile_op_result(place, i));
}

/* Does each program, and each turn of a loop, read elsewhere? */
static bool reads_own(TileIndices *indices, const TileOp *load) {
    for (const TileOp *op = load->block->op; op; op = op->block->op) {
        if (op->id == TILE_OP_IF) continue;
        if (op->id != TILE_OP_FOR) return false;
        const TileValue *turn = op->regions[0].arguments[0];
        Coordinates coordinates = {.count = 0};
        if (tile_value_def(tile_op_named(op, TILE_OPERAND_STEP), TILE_OP_BLOCK_COUNT))
            find_coordinates(&coordinates, turn);
        else
            coordinates = (Coordinates){{turn}, 1};
        for (unsigned i = 0; i < coordinates.count; i++)
            if (!index_depends(indices, load, coordinates.values[i])) return false;
    }
    return true;
}

/* ---- other loads ---- */

/* Does `later` run after the op in every turn of the loops that both are in, and in another block? */
static bool runs_later(const TileOp *later, const TileOp *op) {
    for (const TileOp *outer = op; outer; outer = outer->block->op)
        for (const TileOp *next = outer->next; next && outer != op; next = next->next)
            for (const TileOp *inner = later; inner; inner = inner->block->op)
                if (inner == next) return true;
    return false;
}

/* Do ranges of one axis begin further apart than they are long? */
static bool lie_apart(TileIndices *indices, const TileAccessIndex *a, const TileAccessIndex *b, int64_t length) {
    int64_t distance;
    if (!tile_index_offset(indices, a->first, b->first, &distance)) return false;
    if (!tile_value_is_integer(a->step, 1) || !tile_value_is_integer(b->step, 1)) return false;
    return distance != INT64_MIN && llabs(distance) >= length;
}

/* Do two loads of a tensor certainly read different elements: by ranges of one dimension that lie apart? */
static bool read_apart(TileIndices *indices, const TileOp *load, const TileOp *other) {
    const TileType *type = load->results[0].type;
    TileAccessIndex mine[TILE_MAX_TENSOR_RANK], its[TILE_MAX_TENSOR_RANK];
    unsigned rank = tile_access_read(load, mine);
    tile_access_read(other, its);
    for (unsigned d = 0; d < rank; d++) {
        if (mine[d].kind != its[d].kind || mine[d].kind == TILE_ACCESS_GATHER) return false;
        if (mine[d].kind == TILE_ACCESS_RANGE && tile_type_same_shape(type, other->results[0].type) &&
            lie_apart(indices, &mine[d], &its[d], type->extent[mine[d].axis]))
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
        bool later = runs_later(user, load), earlier = runs_later(load, user);
        if (!later && !earlier && !read_apart(indices, load, user))
            return TILE_CACHE_DEFAULT; /* they may read the same */
        again |= later;
        before |= earlier;
    }
    return again ? TILE_CACHE_L2 : before || func->stream ? TILE_CACHE_STREAM : TILE_CACHE_DEFAULT;
}

static bool keeps(TileIndices *indices, const TileFunc *func, const TileBlock *block) {
    for (const TileOp *op = block->first; op; op = op->next) {
        if (op->id == TILE_OP_LOAD_TILE && tile_type_is_tile(op->results[0].type) &&
            gpu_load_reuse(indices, func, op) == TILE_CACHE_L2)
            return true;
        for (unsigned i = 0; i < op->region_count; i++)
            if (keeps(indices, func, &op->regions[i])) return true;
    }
    return false;
}

bool gpu_reads_again(TileIndices *indices, const TileFunc *func) { return keeps(indices, func, &func->body); }

TileName gpu_store_reuse(const TileOp *store, bool reads_again) {
    if (!reads_again || has_many_uses(tile_op_operand(store, 0))) return TILE_CACHE_DEFAULT;
    for (const TileUse *use = tile_op_operand(store, 0)->first_use; use; use = use->next)
        if (use->user->id != TILE_OP_STORE_TILE && use->user->id != TILE_OP_DIM) return TILE_CACHE_DEFAULT;
    return TILE_CACHE_STREAM;
}
