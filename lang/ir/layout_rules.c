#include "lang/ir/layout_rules.h"
#include "lang/ir/operands.h"

#include <string.h>

TileLayoutShape tile_layout_shape(const TileType *tile) {
    TileLayoutShape shape = {.rank = tile->rank};
    memcpy(shape.extent, tile->extent, sizeof shape.extent);
    return shape;
}

const TileValue *tile_accessed_tile(const TileOp *op) {
    const TileValue *value = op->id == TILE_OP_LOAD_TILE || op->id == TILE_OP_ATOMIC_TILE ? &op->results[0]
                             : op->id == TILE_OP_STORE_TILE                               ? tile_op_operand(op, 1)
                                                                                          : NULL;
    return value && tile_type_is_tile(value->type) ? value : NULL;
}

/* ---- shapes ---- */

static bool is_whole(const TileLayout *layout) {
    for (unsigned a = 0; a < layout->rank; a++)
        if (layout->pieces[a] != 1) return false;
    return true;
}

static TileLayout without_axis(const TileLayout *layout, unsigned axis) {
    TileLayout slice = tile_layout_slice(layout, axis);
    return tile_layout_without_copies(&slice);
}

/* Removes the axes of extent 1 of `from` and adds those of `to`. False if the shapes differ in more than such axes, if
 * an intermediate shape has too many axes for a layout, or if a removed axis was padded: lanes of padding hold no
 * copies of the element. */
static bool change_ones(const TileLayout *layout, const TileType *from, const TileType *to, TileLayout *result) {
    unsigned a = 0, b = 0, rank = layout->rank;
    *result = *layout;
    while (a < from->rank || b < to->rank) {
        if (a < from->rank && b < to->rank && from->extent[a] == to->extent[b]) {
            a++, b++;
        } else if (b < to->rank && to->extent[b] == 1 && rank < TILE_MAX_TILE_RANK) {
            *result = tile_layout_expand(result, b++);
            rank++;
        } else if (a < from->rank && from->extent[a] == 1 && rank > 1 && tile_layout_extent(layout, a) == 1) {
            *result = tile_layout_slice(result, b);
            a++, rank--;
        } else {
            return false;
        }
    }
    *result = tile_layout_without_copies(result);
    return true;
}

/* A first axis that both shapes have keeps its padding: that lies behind all elements. */
static bool reshape(const TileLayout *layout, const TileType *from, const TileType *to, TileLayout *result) {
    TileLayoutShape shape = tile_layout_shape(to);
    if (!tile_type_is_tile(from) || !tile_type_is_tile(to)) return false;
    if (from->extent[0] == to->extent[0]) shape.extent[0] = tile_layout_extent(layout, 0);
    return change_ones(layout, from, to, result) || tile_layout_reshape(layout, &shape, result);
}

/* Pieces are numbered in the order of the axes, which a permutation changes. */
static bool permute(const TileLayout *layout, const TileAttribute *axes, bool back, TileLayout *result) {
    unsigned order[TILE_MAX_TILE_RANK];
    for (unsigned i = 0; i < axes->count; i++)
        if (back)
            order[axes->integers[i]] = i;
        else
            order[i] = (unsigned)axes->integers[i];
    *result = tile_layout_permute(layout, order);
    return is_whole(layout);
}

/* ---- halves and padding ---- */

/* The tile of a slice or a cat that is shorter along the axis, and the longer one. */
static const TileType *shorter(const TileOp *op) { return op->id == TILE_OP_SLICE ? op->results[0].type : tile_op_operand(op, 0)->type; }

static const TileType *longer(const TileOp *op) { return op->id == TILE_OP_SLICE ? tile_op_operand(op, 0)->type : op->results[0].type; }

static bool cuts_halves(const TileOp *op) {
    if (op->id != TILE_OP_SLICE && op->id != TILE_OP_CAT) return false;
    int64_t axis = tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0), half = shorter(op)->extent[axis];
    return longer(op)->extent[axis] == 2 * half && (half & (half - 1)) == 0 && tile_op_integer(op, TILE_ATTRIBUTE_OFFSET, 0) % half == 0;
}

bool tile_op_cuts_padding(const TileOp *op) {
    if (op->id != TILE_OP_SLICE && op->id != TILE_OP_CAT) return false;
    const TileOp *second = op->id == TILE_OP_CAT ? tile_op_operand(op, 1)->op : NULL;
    if (op->id == TILE_OP_CAT && (!second || (second->id != TILE_OP_CONST && second->id != TILE_OP_SPLAT))) return false;
    int64_t axis = tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0), places = 1;
    while (places < shorter(op)->extent[axis]) places *= 2;
    return !tile_op_integer(op, TILE_ATTRIBUTE_OFFSET, 0) && longer(op)->extent[axis] <= places;
}

bool tile_op_cuts_registers(const TileOp *op) { return cuts_halves(op) || tile_op_cuts_padding(op); }

/* Is the layout of either tile one of the other? It has as many places along the axis as there are up to the power of two. */
static bool has_padding(const TileOp *op, const TileLayout *layout) {
    return tile_op_cuts_padding(op) && layout->pieces[tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0)] == 1;
}

/* Lanes of padding would lie between the halves. */
static bool has_halves(const TileOp *op, const TileType *type, const TileLayout *layout) {
    unsigned axis = (unsigned)tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0);
    return cuts_halves(op) && tile_layout_extent(layout, axis) == type->extent[axis];
}

/* The layout of the longer tile from that of the shorter one, or the other way round. */
static bool lengthen(const TileOp *op, const TileLayout *layout, TileLayout *result) {
    *result = *layout;
    if (has_padding(op, layout)) return true;
    return has_halves(op, shorter(op), layout) &&
           tile_layout_double(layout, (unsigned)tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0), result);
}

static bool shorten(const TileOp *op, const TileLayout *layout, TileLayout *result) {
    *result = *layout;
    if (has_padding(op, layout)) return true;
    return has_halves(op, longer(op), layout) &&
           tile_layout_halve(layout, (unsigned)tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0), result);
}

/* ---- rules ---- */

bool tile_layout_of_result(const TileOp *op, const TileLayout *operand, TileLayout *result) {
    switch (op->id) {
    case TILE_OP_REDUCE:
    case TILE_OP_ARG_REDUCE:
    case TILE_OP_FOLD:
        *result = without_axis(operand, (unsigned)tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0));
        return tile_type_is_tile(op->results[0].type);
    case TILE_OP_PERMUTE: return permute(operand, tile_op_get(op, TILE_ATTRIBUTE_AXES), false, result);
    case TILE_OP_RESHAPE: return reshape(operand, tile_op_operand(op, 0)->type, op->results[0].type, result);
    case TILE_OP_SLICE: return shorten(op, operand, result);
    case TILE_OP_CAT: return lengthen(op, operand, result);
    default: return false;
    }
}

/* The layout of the result without the axes that the operand does not have. */
static TileLayout before_broadcast(const TileType *from, const TileType *to, TileLayout layout) {
    for (unsigned a = 0; a < to->rank; a++) {
        if (from->extent[a] == to->extent[a]) continue;
        TileLayout without = tile_layout_slice(&layout, a);
        layout = to->rank == 1 ? without : tile_layout_expand(&without, a);
    }
    return tile_layout_without_copies(&layout);
}

/* The axis of the accessed tile along which the operand gives indices; -1: the operand is not an index of a gather. */
static int gathered_axis(const TileOp *op, unsigned index) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    unsigned rank = tile_access_read(op, indices);
    for (unsigned d = 0; d < rank; d++)
        if (indices[d].kind == TILE_ACCESS_GATHER && indices[d].operand == index) return indices[d].axis;
    return -1;
}

bool tile_layout_of_operand(const TileOp *op, unsigned index, const TileLayout *result, TileLayout *operand) {
    const TileType *from = tile_op_operand(op, index)->type;
    if (op->id == TILE_OP_BROADCAST) *operand = before_broadcast(from, op->results[0].type, *result);
    if (op->id == TILE_OP_BROADCAST) return true;
    if (op->id == TILE_OP_PERMUTE) return permute(result, tile_op_get(op, TILE_ATTRIBUTE_AXES), true, operand);
    if (op->id == TILE_OP_RESHAPE) return reshape(result, op->results[0].type, from, operand);
    if (op->id == TILE_OP_CAT && (index == 0 || !tile_op_cuts_padding(op)) && shorten(op, result, operand)) return true;
    if (op->id == TILE_OP_SLICE) return lengthen(op, result, operand);
    int axis = tile_accessed_tile(op) ? gathered_axis(op, index) : -1;
    if (axis < 0) return false;
    *operand = *result;
    for (unsigned a = result->rank; a-- > 0;)
        if ((int)a != axis) *operand = tile_layout_slice(operand, a);
    *operand = tile_layout_without_copies(operand);
    return true;
}

/* ---- checks ---- */

static const char *check_fit(const TileType *type, uint32_t threads) {
    const TileLayout *layout = type->layout, plain = tile_layout_without_copies(layout);
    if (layout->rank != type->rank) return "a tile's layout has another rank";
    for (unsigned a = 0; a < type->rank; a++)
        if (tile_layout_extent(layout, a) < type->extent[a]) return "a tile's layout is too small for it";
    if (!tile_layout_is_surjective(layout)) return "a tile's layout leaves out elements";
    if (!tile_layout_equal(layout, &plain)) return "a tile's layout has an element more than once in a thread";
    uint32_t warps = threads / TILE_WARP_THREADS, most = UINT32_C(1) << (layout->bits[TILE_LAYOUT_WARP] & 31u);
    bool fits = layout->bits[TILE_LAYOUT_LANE] == TILE_LANE_BITS && !layout->bits[TILE_LAYOUT_BLOCK] &&
                layout->bits[TILE_LAYOUT_WARP] <= TILE_LANE_BITS && most >= warps && most < 2 * warps && threads % TILE_WARP_THREADS == 0;
    if (!fits) return "a tile's layout is one for another number of threads";
    return tile_layout_is_complete(layout, warps, type->extent) ? NULL : "a tile's layout has elements in warps that do not exist";
}

/* Tiles of equal shape and different element types, which no type rule compares. */
static bool belongs_together(const TileOp *op, unsigned operand) {
    switch (op->id) {
    case TILE_OP_SELECT:
    case TILE_OP_ARG_REDUCE: return true;
    case TILE_OP_CAT: return cuts_halves(op);
    case TILE_OP_FOLD:
    case TILE_OP_SCAN: return operand < (unsigned)op->result_count + tile_op_has_part(op, TILE_PARTS_MASK);
    case TILE_OP_LOAD_TILE:
    case TILE_OP_STORE_TILE:
    case TILE_OP_ATOMIC_TILE:
        return tile_op_has_part(op, TILE_PARTS_MASK) && gathered_axis(op, operand) < 0 && operand > 0;
    default: return false;
    }
}

static const TileLayout *common_layout(const TileOp *op) {
    const TileValue *accessed = tile_accessed_tile(op);
    if (accessed) return accessed->type->layout;
    if (!op->operand_count) return NULL;
    return (op->id == TILE_OP_SELECT ? tile_op_named(op, TILE_OPERAND_X) : tile_op_operand(op, 0))->type->layout;
}

/* No rule applies to a layout of another rank, which check_fit reports. */
static bool is_laid_out(const TileType *type) {
    return tile_type_is_tile(type) && type->layout && type->layout->rank == type->rank;
}

/* A layout that the operand's implies is not required of the operand, too. A slice of a tile whose halves several threads have
 * goes through shared memory, from any layout to any other. */
static bool follows_rules(const TileOp *op) {
    TileLayout wanted;
    const TileValue *accessed = tile_accessed_tile(op), *result = op->result_count ? &op->results[0] : NULL;
    const TileType *first = op->operand_count ? tile_op_operand(op, 0)->type : NULL, *type = accessed ? accessed->type
                                                                                             : result ? result->type
                                                                                                      : NULL;
    if (first && is_laid_out(first) && result && tile_layout_of_result(op, first->layout, &wanted)) {
        for (unsigned i = 0; i < op->result_count; i++)
            if (is_laid_out(op->results[i].type) && !tile_layout_equal(op->results[i].type->layout, &wanted))
                return false;
        return true;
    }
    if (op->id == TILE_OP_SLICE) return true;
    for (unsigned i = 0; i < op->operand_count && type && is_laid_out(type); i++) {
        const TileType *operand = tile_op_operand(op, i)->type;
        if (is_laid_out(operand) && tile_layout_of_operand(op, i, type->layout, &wanted) &&
            !tile_layout_equal(operand->layout, &wanted))
            return false;
    }
    return true;
}

const char *tile_op_check_layouts(const TileOp *op, uint32_t threads) {
    const TileLayout *common = common_layout(op);
    const char *error = NULL;
    for (unsigned i = 0; i < op->result_count && !error; i++)
        if (op->results[i].type->layout) error = check_fit(op->results[i].type, threads);
    for (unsigned i = 0; i < op->operand_count && !error; i++) {
        const TileType *type = tile_op_operand(op, i)->type;
        if (common && is_laid_out(type) && belongs_together(op, i) && type->layout != common)
            error = "tiles that belong together differ in layout";
    }
    if (!error && !follows_rules(op)) error = "the layouts of operand and result do not fit together";
    return error;
}
