/* Computes neighbours together: axes that grow get their extents, ranges and fills the bounds of all, and points become
 * ranges of rows, which are merged with the axis behind them. */
#include "base/temp.h"
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "lowering/joined.h"

enum { MOST_OPERANDS = 3 + 4 * TILE_MAX_TENSOR_RANK };

typedef struct Rewrite {
    TileJoin *join;
    int64_t factor;
    TileValue *left; /* programs from the first of those that are joined on; NULL: of a loop */
    TileValue *lanes_left; /* the same in lanes of ranges */
    TILE_LIST(TileOp *) ops; /* loads, stores and fills */
} Rewrite;

static const TileType *grown(const Rewrite *rewrite, const TileValue *tile) {
    const TileType *type = tile->type;
    int64_t extents[TILE_MAX_TILE_RANK];
    for (unsigned i = 0; i < type->rank; i++)
        extents[i] = type->extent[i] * (tile_joined_grows(rewrite->join, tile, i) ? rewrite->factor : 1);
    return tile_type_tile(rewrite->join->context->module->context, type->scalar, type->rank, extents);
}

/* ---- bounds ---- */

/* The bound of a fill; and of a range, whose numbers say that there is all of one's range: of the ranges of programs that
 * there are. */
static void widen_range(const Rewrite *rewrite, TileOp *op, unsigned hi) {
    int64_t number;
    bool fixed = tile_value_integer(tile_op_operand(op, hi), &number);
    if (fixed && rewrite->lanes_left && op->id != TILE_OP_FILL) {
        TileBuilder b = tile_builder_before(rewrite->join->context->module, op);
        TileValue *all = tile_build_i64(&b, rewrite->join->size * rewrite->factor);
        tile_op_set_operand(op, hi, tile_build_binary(&b, TILE_OP_MIN, rewrite->lanes_left, all));
        return;
    }
    tile_widen_number(rewrite->join, rewrite->factor, op, hi);
}

static void widen_bounds(const Rewrite *rewrite, TileOp *op) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    const TileJoin *join = rewrite->join;
    if (op->id == TILE_OP_FILL) {
        const TileAttribute *axes = tile_op_get(op, TILE_ATTRIBUTE_AXES);
        unsigned count, first = tile_op_operands(op, TILE_OPERAND_BOUNDS, &count);
        for (unsigned i = 0; i < axes->count; i++)
            if (tile_joined_grows(join, &op->results[0], (unsigned)axes->integers[i])) widen_range(rewrite, op, first + 2 * i + 1);
        return;
    }
    unsigned rank = tile_access_read(op, indices);
    for (unsigned d = 0; d < rank; d++)
        if (indices[d].kind == TILE_ACCESS_RANGE && tile_joined_part(join, indices[d].first) == TILE_JOIN_FIRST)
            widen_range(rewrite, op, indices[d].operand + 3);
}

/* ---- points that become rows ---- */

/* Of `factor` points from `point` on those that the test lets through; without one, those that there are. */
typedef struct Rows {
    TileValue *lo, *hi;
    bool ends; /* a test says where they end */
} Rows;

static void add_test(const Rewrite *rewrite, TileBuilder *b, const TileValue *test, Rows *rows) {
    const TileOp *op = test->op;
    if (op->id == TILE_OP_AND) {
        for (unsigned i = 0; i < 2; i++) add_test(rewrite, b, tile_op_operand(op, i), rows);
        return;
    }
    TileValue *distance = tile_build_binary(b, TILE_OP_SUB, tile_op_operand(op, 1), tile_op_operand(op, 0));
    if (op->id == TILE_OP_GE)
        rows->lo = tile_build_binary(b, TILE_OP_MAX, distance, rows->lo);
    else
        rows->hi = tile_build_binary(b, TILE_OP_MIN, distance, rows->hi);
    rows->ends |= op->id != TILE_OP_GE;
}

static Rows no_rows(const Rewrite *rewrite, TileBuilder *b) {
    return (Rows){tile_build_i64(b, 0), tile_build_i64(b, rewrite->factor), false};
}

/* A bound without its test, which goes to the rows. */
static TileValue *without_test(const Rewrite *rewrite, TileBuilder *b, TileValue *bound, Rows *rows, bool *tested) {
    if (tile_joined_part(rewrite->join, bound) != TILE_JOIN_LIMITED) return bound;
    if (!*tested) add_test(rewrite, b, tile_op_operand(bound->op, 0), rows);
    *tested = true;
    return tile_op_operand(bound->op, 1);
}

static unsigned growing_axis(const Rewrite *rewrite, const TileValue *tile) {
    unsigned axis = 0;
    while (!tile_joined_grows(rewrite->join, tile, axis)) axis++;
    return axis;
}

/* The tile of all with the rows as an axis of their own, in front of the axis that they are merged with. */
static const TileType *split_type(const Rewrite *rewrite, const TileType *type, unsigned axis) {
    int64_t extents[TILE_MAX_TILE_RANK];
    for (unsigned i = 0; i < type->rank; i++) extents[i + (i >= axis)] = type->extent[i];
    extents[axis] = rewrite->factor;
    extents[axis + 1] = type->extent[axis] / rewrite->factor;
    return tile_type_tile(rewrite->join->context->module->context, type->scalar, type->rank + 1u, extents);
}

/* What is stored as it was loaded or filled has the axes of that. */
static void replace_tile(const Rewrite *rewrite, TileValue *tile, TileValue *with) {
    tile_map_set(&rewrite->join->tiles, with, tile_map_get(&rewrite->join->tiles, tile));
    tile_value_replace(tile, with);
}

static void split_fill(const Rewrite *rewrite, TileOp *op) {
    const TileAttribute *given = tile_op_get(op, TILE_ATTRIBUTE_AXES);
    TileBuilder b = tile_builder_before(rewrite->join->context->module, op);
    TileValue *result = &op->results[0], *bounds[2 * TILE_MAX_TILE_RANK];
    int64_t axes[TILE_MAX_TILE_RANK];
    unsigned axis = growing_axis(rewrite, result), count = 0;
    bool tested = false, needed = false;
    Rows rows = no_rows(rewrite, &b);
    for (unsigned i = 0; i < given->count; i++) {
        axes[count] = given->integers[i] + (given->integers[i] >= axis);
        bounds[2 * count] = tile_fill_lo(op, i);
        bounds[2 * count++ + 1] = without_test(rewrite, &b, tile_fill_hi(op, i), &rows, &tested);
        needed |= given->integers[i] == axis;
    }
    if (!tested && !needed) return;
    if (tested) {
        axes[count] = axis;
        bounds[2 * count] = rows.lo;
        bounds[2 * count++ + 1] = rows.hi;
    }
    for (unsigned i = count; tested && i-- > 1 && axes[i] < axes[i - 1];) { /* ascending */
        TileValue *lo = bounds[2 * i], *hi = bounds[2 * i + 1];
        int64_t last = axes[i];
        axes[i] = axes[i - 1], bounds[2 * i] = bounds[2 * i - 2], bounds[2 * i + 1] = bounds[2 * i - 1];
        axes[i - 1] = last, bounds[2 * i - 2] = lo, bounds[2 * i - 1] = hi;
    }
    const TileType *type = split_type(rewrite, result->type, axis);
    const TileOp *merge = tile_value_def(tile_op_operand(op, 0), TILE_OP_RESHAPE);
    bool merges = merge && tile_op_operand(merge, 0)->type == type;
    TileValue *tile = merges ? tile_op_operand(merge, 0)
                             : tile_build_reshape(&b, tile_op_operand(op, 0), type->rank, type->extent);
    tile = tile_build_fill(&b, tile, tile_op_named(op, TILE_OPERAND_FILLING), axes, bounds, count);
    tile = tile_build_reshape(&b, tile, result->type->rank, result->type->extent);
    replace_tile(rewrite, result, tile);
    tile_op_erase(op);
    if (merges && !merge->results[0].first_use) tile_op_erase((TileOp *)merge);
}

static bool has_point(const Rewrite *rewrite, const TileAccessIndex *indices, unsigned rank) {
    for (unsigned d = 0; d < rank; d++)
        if (indices[d].kind == TILE_ACCESS_INDEX && tile_joined_part(rewrite->join, indices[d].first) != TILE_JOIN_SAME) return true;
    return false;
}

/* The operands of the access by rows, from those in front of its indices on. */
static unsigned split_indices(const Rewrite *rewrite, TileBuilder *b, TileOp *op, TileValue **operands, int64_t *kinds) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    unsigned rank = tile_access_read(op, indices), count = 0, at = 0;
    bool tested = false;
    Rows rows = no_rows(rewrite, b);
    while (count < tile_access_first(op)) operands[count] = tile_op_operand(op, count), count++;
    for (unsigned d = 0; d < rank; d++) {
        TileJoinPart part = indices[d].kind == TILE_ACCESS_INDEX ? tile_joined_part(rewrite->join, indices[d].first) : TILE_JOIN_SAME;
        kinds[d] = part == TILE_JOIN_SAME ? (int64_t)indices[d].kind : TILE_ACCESS_RANGE;
        operands[count++] = part == TILE_JOIN_SAFE ? tile_op_operand(indices[d].first->op, 1) : indices[d].first;
        if (part != TILE_JOIN_SAME) {
            operands[count++] = tile_build_i64(b, 1);
            at = count;
            count += 2;
        }
        if (indices[d].kind != TILE_ACCESS_RANGE) continue;
        operands[count++] = indices[d].step;
        operands[count++] = indices[d].lo;
        operands[count++] = without_test(rewrite, b, indices[d].hi, &rows, &tested);
    }
    if (!rows.ends && rewrite->left) rows.hi = tile_build_binary(b, TILE_OP_MIN, rewrite->left, rows.hi);
    operands[at] = rows.lo;
    operands[at + 1] = rows.hi;
    return count;
}

static void split_access(const Rewrite *rewrite, TileOp *op) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    TileValue *operands[MOST_OPERANDS];
    int64_t kinds[TILE_MAX_TENSOR_RANK];
    bool loads = op->id == TILE_OP_LOAD_TILE;
    TileValue *tile = loads ? &op->results[0] : tile_op_named(op, TILE_OPERAND_VALUE);
    unsigned rank = tile_access_read(op, indices);
    if (!has_point(rewrite, indices, rank)) return;
    TileBuilder b = tile_builder_before(rewrite->join->context->module, op);
    const TileType *type = split_type(rewrite, tile->type, growing_axis(rewrite, tile));
    unsigned count = split_indices(rewrite, &b, op, operands, kinds);
    if (!loads) operands[1] = tile_build_reshape(&b, tile, type->rank, type->extent);
    TileAttribute access = {.key = TILE_ATTRIBUTE_ACCESS, .count = rank, .integers = kinds};
    TileOp *made = tile_build_op(&b, (TileOpId)op->id, operands, count, &access, 1, &type, loads);
    if (loads) {
        made->results[0].name = tile->name;
        replace_tile(rewrite, tile, tile_build_reshape(&b, &made->results[0], tile->type->rank, tile->type->extent));
    }
    tile_op_erase(op);
}

/* ---- all ---- */

/* A broadcast from elsewhere with the extents of all, for uses in `around`. */
static void spread(const Rewrite *rewrite, TileValue *tile) {
    const TileJoin *join = rewrite->join;
    const TileType *type = grown(rewrite, tile);
    if (type == tile->type) return;
    TileBuilder b = tile_builder_before(join->context->module, join->around);
    TileValue *longer = tile_build_broadcast(&b, tile_op_operand(tile->op, 0), type->extent);
    for (TileUse *use = tile->first_use, *next; use; use = next) {
        const TileOp *at = use->user;
        next = use->next;
        while (at && at != join->around) at = at->block->op;
        if (at) tile_op_set_operand(use->user, use->index, longer);
    }
}

static void collect(TileOp *op, void *state) {
    Rewrite *rewrite = state;
    if (op->id == TILE_OP_LOAD_TILE || op->id == TILE_OP_STORE_TILE || op->id == TILE_OP_FILL)
        tile_list_push(rewrite->join->context->scratch, &rewrite->ops, op);
}

/* Where an operand has to be of the type of another value, and is the same whatever its extents are. */
static void take_over(const Rewrite *rewrite, TileOp *op, unsigned operand, const TileType *like) {
    TileValue *tile = tile_op_operand(op, operand);
    if (!tile_type_is_tile(tile->type) || !tile_type_is_tile(like) || !tile_joined_is_any(rewrite->join, tile)) return;
    TileContext *context = rewrite->join->context->module->context;
    const TileType *type = tile_type_tile(context, tile->type->scalar, like->rank, like->extent);
    if (type == tile->type) return;
    TileBuilder b = tile_builder_before(rewrite->join->context->module, op);
    if (tile->op->id == TILE_OP_SPLAT)
        tile_op_set_operand(op, operand, tile_build_splat(&b, tile_op_operand(tile->op, 0), type));
    else
        tile_op_set_operand(op, operand, tile_build_bits(&b, type, tile_op_get(tile->op, TILE_ATTRIBUTE_VALUE)->bits));
}

static void fit_constants(TileOp *op, void *state) {
    const Rewrite *rewrite = state;
    bool elementwise = tile_op_info((TileOpId)op->id)->class == TILE_CLASS_ELEMENTWISE || op->id == TILE_OP_FILL;
    for (unsigned i = 0; elementwise && i < op->operand_count; i++) take_over(rewrite, op, i, op->results[0].type);
    if (op->id == TILE_OP_DOT) take_over(rewrite, op, 2, op->results[0].type);
    if (op->id == TILE_OP_FOR)
        for (unsigned i = 0; i < op->result_count; i++) take_over(rewrite, op, 3 + i, op->results[i].type);
    TileOp *owner = op->block->op;
    if (op->id != TILE_OP_YIELD || !owner || (owner->id != TILE_OP_FOR && owner->id != TILE_OP_IF)) return;
    for (unsigned i = 0; i < owner->result_count; i++) take_over(rewrite, op, i, owner->results[i].type);
}

/* The number of the first of those that a program computes; and how many are left from there. */
static void begin_programs(Rewrite *rewrite, TileValue *programs) {
    TileJoin *join = rewrite->join;
    TileOp *grid = join->around;
    TileBuilder host = tile_builder_before(join->context->module, grid),
                b = tile_builder_before(join->context->module, grid->regions[0].first);
    TileValue *rounded = tile_build_binary(&host, TILE_OP_ADD, programs, tile_build_i64(&host, rewrite->factor - 1));
    for (unsigned i = 0; i < grid->operand_count; i++)
        if (grid->regions[0].arguments[i] == join->number)
            tile_op_set_operand(grid, i, tile_build_binary(&host, TILE_OP_DIV, rounded, tile_build_i64(&host, rewrite->factor)));
    TileValue *number = join->number;
    if (join->size > 1) {
        TileValue *lanes = tile_build_binary(&host, TILE_OP_MUL, programs, tile_build_i64(&host, join->size)),
                  *first = tile_build_binary(&b, TILE_OP_MUL, number, tile_build_i64(&b, join->size * rewrite->factor));
        rewrite->lanes_left = tile_build_binary(&b, TILE_OP_SUB, lanes, first);
        return;
    }
    TileValue *first = tile_build_binary(&b, TILE_OP_MUL, number, tile_build_i64(&b, rewrite->factor));
    TileValue *left = tile_build_binary(&b, TILE_OP_SUB, programs, first);
    if (join->size)
        rewrite->lanes_left = left;
    else
        rewrite->left = left;
    for (TileUse *use = number->first_use, *next; use; use = next) {
        next = use->next;
        if (use->user != first->op) tile_op_set_operand(use->user, use->index, first);
    }
    tile_map_set(&join->parts, first, (void *)(uintptr_t)(join->size ? TILE_JOIN_FIRST : TILE_JOIN_POINT));
    join->number = first;
}

void tile_join_neighbours(TileJoin *join, int64_t factor, TileValue *programs) {
    Rewrite rewrite = {.join = join, .factor = factor};
    TileBlock *body = &join->around->regions[0];
    tile_block_walk(body, collect, &rewrite);
    tile_widen_joined(join, factor);
    if (programs) begin_programs(&rewrite, programs);
    for (size_t i = 0; join->size && i < rewrite.ops.count; i++) widen_bounds(&rewrite, rewrite.ops.items[i]);
    for (size_t i = 0; i < join->tiles.count; i++) {
        TileValue *tile = (TileValue *)join->tiles.entries[i].key;
        if (tile_joined_is_any(join, tile)) continue;
        if (tile_value_outside(tile, join->around))
            spread(&rewrite, tile);
        else
            tile->type = grown(&rewrite, tile);
    }
    tile_block_walk(body, fit_constants, &rewrite);
    if (join->size) return;
    for (size_t i = 0; i < rewrite.ops.count; i++) {
        TileOp *op = rewrite.ops.items[i];
        if (op->id == TILE_OP_FILL)
            split_fill(&rewrite, op);
        else
            split_access(&rewrite, op);
    }
}
