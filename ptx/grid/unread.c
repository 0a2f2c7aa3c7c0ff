/* Lanes that no store takes. `x[b, w + (j - 1), c] else 0`, with w a program's range, is bounded twice: by the tensor's end, behind
 * which there are zeros, and by the end of w, behind which there is nothing. What is computed of lanes behind the end of w is
 * not stored; along that axis lanes are computed apart, as tile_can_join has found. A map cannot end a box there. */
#include "base/temp.h"
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "ptx/grid/joined.h"

typedef struct Unread {
    TileJoin *join;
    TileIndexView *view;
    TileValue *bound; /* of all stores along the axis */
    bool known;       /* it is one, and nothing gathers */
    TileMap bounds;   /* those of loads to what they become */
    bool changed;
} Unread;

static void look(TileOp *op, void *state) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    Unread *unread = state;
    if (op->id != TILE_OP_STORE_TILE && op->id != TILE_OP_LOAD_TILE) return;
    unsigned rank = tile_access_read(op, indices);
    for (unsigned d = 0; d < rank; d++) {
        if (indices[d].kind == TILE_ACCESS_GATHER) unread->known = false;
        bool grows = indices[d].kind == TILE_ACCESS_RANGE && tile_joined_part(unread->join, indices[d].first) == TILE_JOIN_FIRST;
        if (op->id != TILE_OP_STORE_TILE || !grows) continue;
        if (unread->bound && unread->bound != indices[d].hi) unread->known = false;
        unread->bound = indices[d].hi;
    }
}

/* Is it the tensor's extent? */
static bool is_extent(const TileFunc *func, const TileValue *value, TileValue *tensor, int64_t axis) {
    for (const TileUse *use = tensor->first_use; use; use = use->next) {
        const TileOp *op = use->user;
        if (op->block != &func->body || tile_op_integer(op, TILE_ATTRIBUTE_AXIS, -1) != axis) continue;
        if (op->id == TILE_OP_DIM && &op->results[0] == value) return true;
        if (op->id == TILE_OP_CHECK_DIM && tile_op_operand(op, 1) == value) return true;
    }
    return false;
}

/* Does the bound end with the tensor: is it the lesser of the lanes and of what is left from the first one on? */
static bool ends_with_tensor(const Unread *unread, const TileOp *load, const TileAccessIndex *index, unsigned axis, TileValue *bound) {
    int64_t number;
    const TileOp *least = tile_value_def(bound, TILE_OP_MIN);
    for (unsigned i = 0; least && i < 2; i++) {
        if (!tile_value_integer(tile_op_operand(least, i), &number) || number < unread->join->size) continue;
        TileSumTable *table = tile_index_table(unread->view->indices);
        const TileSum *sum = tile_sum_add(table, tile_index_sum(unread->view, tile_op_operand(least, 1 - i)),
                                          tile_index_sum(unread->view, index->first));
        bool one = sum->count == 1 && !sum->constant && sum->products[0].factor == 1 && sum->products[0].degree == 1;
        const TileValue *value = one ? sum->products[0].symbols[0]->value : NULL;
        return value && is_extent(tile_op_func(load), value, tile_op_operand(load, 0), axis);
    }
    return false;
}

/* The bound without that of the stores; NULL: it has not both. Behind a condition that all lanes share it is the same. */
static TileValue *without_stores(Unread *unread, const TileOp *load, const TileAccessIndex *index, unsigned axis, TileValue *bound) {
    TileOp *op = bound->op;
    if (op && op->id == TILE_OP_SELECT && tile_value_is_integer(tile_op_named(op, TILE_OPERAND_Y), 0)) {
        TileValue *rest = without_stores(unread, load, index, axis, tile_op_named(op, TILE_OPERAND_X));
        TileBuilder b = tile_builder_before(unread->join->context->module, op);
        return rest ? tile_build_ternary(&b, TILE_OP_SELECT, tile_op_operand(op, 0), rest, tile_op_named(op, TILE_OPERAND_Y)) : NULL;
    }
    for (unsigned i = 0; op && op->id == TILE_OP_MIN && i < 2; i++) {
        TileValue *rest = tile_op_operand(op, 1 - i);
        if (tile_op_operand(op, i) == unread->bound && ends_with_tensor(unread, load, index, axis, rest)) return rest;
    }
    return NULL;
}

static void relax_load(TileOp *op, void *state) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    Unread *unread = state;
    if (op->id != TILE_OP_LOAD_TILE) return;
    unsigned rank = tile_access_read(op, indices);
    for (unsigned d = 0; d < rank; d++) {
        bool grows = indices[d].kind == TILE_ACCESS_RANGE && tile_joined_part(unread->join, indices[d].first) == TILE_JOIN_FIRST;
        TileValue *rest = grows ? without_stores(unread, op, &indices[d], d, indices[d].hi) : NULL;
        if (!rest) continue;
        tile_map_set(&unread->bounds, indices[d].hi, rest);
        tile_op_set_operand(op, indices[d].operand + 3, rest);
        unread->changed = true;
    }
}

static void relax_fill(TileOp *op, void *state) {
    Unread *unread = state;
    const TileAttribute *axes = tile_op_get(op, TILE_ATTRIBUTE_AXES);
    if (op->id != TILE_OP_FILL) return;
    unsigned count, first = tile_op_operands(op, TILE_OPERAND_BOUNDS, &count);
    for (unsigned i = 0; i < axes->count; i++) {
        TileValue *rest = tile_map_get(&unread->bounds, tile_fill_hi(op, i));
        if (rest && tile_joined_grows(unread->join, &op->results[0], (unsigned)axes->integers[i]))
            tile_op_set_operand(op, first + 2 * i + 1, rest);
    }
}

bool gpu_keep_unread_lanes(TileJoin *join, TileIndexView *view) {
    Unread unread = {.join = join, .view = view, .known = true};
    TileBlock *body = &join->around->regions[0];
    tile_map_init(&unread.bounds, join->context->scratch);
    tile_block_walk(body, look, &unread);
    if (!unread.known || !unread.bound) return false;
    tile_block_walk(body, relax_load, &unread);
    tile_block_walk(body, relax_fill, &unread);
    return unread.changed;
}
