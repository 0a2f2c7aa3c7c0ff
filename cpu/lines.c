#include "cpu/lines.h"

#include "lang/ir/operands.h"

void tile_lines_init(TileLines *lines, TileFunc *func, TileArena *scratch) {
    *lines = (TileLines){.scratch = scratch};
    lines->bases = TILE_NEW_ARRAY(scratch, uint32_t, tile_func_number(func) + 1);
}

static TileLine root(TileLines *lines, TileLine line) {
    TileLinesAxis *axes = lines->axes.items;
    while (axes[line].parent != line) line = axes[line].parent = axes[axes[line].parent].parent;
    return line;
}

TileLine tile_lines_of(TileLines *lines, const TileValue *value, unsigned axis) {
    uint32_t *base = &lines->bases[value->number];
    if (!*base) {
        *base = (uint32_t)lines->axes.count + 1;
        for (unsigned i = 0; i < value->type->rank; i++) {
            TileLinesAxis created = {.parent = (uint32_t)lines->axes.count};
            tile_list_push(lines->scratch, &lines->axes, created);
        }
    }
    return root(lines, *base - 1 + axis);
}

bool tile_lines_is_mixed(TileLines *lines, TileLine line) { return lines->axes.items[root(lines, line)].mixed; }
bool tile_lines_is_product(TileLines *lines, TileLine line) { return lines->axes.items[root(lines, line)].product; }

static void mix(TileLines *lines, const TileValue *value, unsigned axis) {
    TileLine line = tile_lines_of(lines, value, axis);
    lines->axes.items[line].mixed = true;
}

static void mix_all(TileLines *lines, const TileValue *value) {
    for (unsigned i = 0; tile_type_is_tile(value->type) && i < value->type->rank; i++)
        if (value->type->extent[i] > 1) mix(lines, value, i);
}

/* Is every lane the same? One such value may stand for many, along axes that have nothing to do with one another. */
static bool is_uniform(const TileValue *value) {
    return tile_value_def(value, TILE_OP_CONST) || tile_value_def(value, TILE_OP_SPLAT);
}

/* An axis of extent 1 that meets a longer one has the same lane for all of these. */
static void link(TileLines *lines, const TileValue *x, unsigned i, const TileValue *y, unsigned j) {
    if (x->type->extent[i] != y->type->extent[j] || is_uniform(x) || is_uniform(y)) return;
    TileLine a = tile_lines_of(lines, x, i), b = tile_lines_of(lines, y, j);
    if (a == b) return;
    TileLinesAxis *axes = lines->axes.items;
    axes[a].parent = b;
    axes[b].mixed |= axes[a].mixed;
    axes[b].product |= axes[a].product;
}

static void link_all(TileLines *lines, const TileValue *x, const TileValue *y) {
    if (!tile_type_is_tile(x->type) || !tile_type_is_tile(y->type)) return;
    for (unsigned i = 0; i < x->type->rank && i < y->type->rank; i++) link(lines, x, i, y, i);
}

/* y is x without an axis, or with all of its axes. */
static void link_without(TileLines *lines, const TileValue *x, unsigned axis, const TileValue *y) {
    if (!tile_type_is_tile(y->type)) return;
    if (y->type->rank == x->type->rank) link_all(lines, x, y);
    if (y->type->rank == x->type->rank) return;
    for (unsigned i = 0; i < x->type->rank; i++)
        if (i != axis) link(lines, x, i, y, i > axis ? i - 1 : i);
}

/* Axes of extent 1 come and go; with any other change each lane is somewhere else. */
static void add_reshape(TileLines *lines, const TileValue *x, const TileValue *y) {
    unsigned i = 0, j = 0, xs = tile_type_is_tile(x->type) ? x->type->rank : 0,
             ys = tile_type_is_tile(y->type) ? y->type->rank : 0;
    for (;; i++, j++) {
        while (i < xs && x->type->extent[i] == 1) i++;
        while (j < ys && y->type->extent[j] == 1) j++;
        if (i == xs || j == ys || x->type->extent[i] != y->type->extent[j]) break;
        link(lines, x, i, y, j);
    }
    if (i == xs && j == ys) return;
    mix_all(lines, x);
    mix_all(lines, y);
}

/* Lanes of the operands and results along the op's axis depend on one another; along others they are the same. */
static void add_along_axis(TileLines *lines, const TileOp *op) {
    unsigned axis = (unsigned)tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0);
    const TileValue *x = tile_op_operand(op, 0);
    mix(lines, x, axis);
    for (unsigned i = 1; i < op->operand_count; i++) link_without(lines, x, axis, tile_op_operand(op, i));
    for (unsigned i = 0; i < op->result_count; i++) link_without(lines, x, axis, tile_op_result(op, i));
}

/* Slices and concatenations: an axis of another extent is another line. */
static void add_pieces(TileLines *lines, const TileOp *op) {
    unsigned axis = (unsigned)tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0);
    const TileValue *result = tile_op_result(op, 0);
    mix(lines, result, axis);
    for (unsigned i = 0; i < op->operand_count; i++) {
        mix(lines, tile_op_operand(op, i), axis);
        link_all(lines, result, tile_op_operand(op, i));
    }
}

static void add_dot(TileLines *lines, const TileOp *op) {
    const TileValue *a = tile_op_named(op, TILE_OPERAND_A), *b = tile_op_named(op, TILE_OPERAND_B),
                    *sum = tile_op_named(op, TILE_OPERAND_SUM);
    unsigned rows = a->type->rank - 2, columns = a->type->rank - 1;
    mix(lines, a, columns);
    mix(lines, b, rows);
    for (unsigned i = 0; i < rows; i++) {
        link(lines, a, i, sum, i);
        link(lines, b, i, sum, i);
    }
    link(lines, a, rows, sum, rows);
    link(lines, b, columns, sum, columns);
    link_all(lines, sum, tile_op_result(op, 0));
    TileLine row = tile_lines_of(lines, sum, rows), column = tile_lines_of(lines, sum, columns);
    lines->axes.items[row].product = lines->axes.items[column].product = true;
}

/* Where to load is computed from a gather's lanes: one that is not computed must not be taken for an address. */
static void add_access(TileLines *lines, const TileOp *op, const TileValue *value) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    unsigned rank = tile_access_read(op, indices);
    const TileValue *mask = tile_op_named(op, TILE_OPERAND_MASK);
    for (unsigned d = 0; d < rank; d++) {
        if (indices[d].kind != TILE_ACCESS_GATHER) continue;
        mix_all(lines, indices[d].first);
        mix(lines, value, (unsigned)indices[d].axis);
    }
    if (mask) link_all(lines, value, mask);
}

/* ---- loops and branches ---- */

static void add_for(TileLines *lines, const TileOp *op) {
    for (unsigned i = 0; i < op->result_count; i++) {
        link_all(lines, tile_op_result(op, i), tile_loop_carried(op, i));
        link_all(lines, tile_op_result(op, i), op->regions[0].arguments[i + 1]);
    }
}

static void add_while(TileLines *lines, const TileOp *op) {
    for (unsigned i = 0; i < op->operand_count; i++)
        link_all(lines, tile_op_operand(op, i), op->regions[0].arguments[i]);
    for (unsigned i = 0; i < op->result_count; i++) link_all(lines, tile_op_result(op, i), op->regions[1].arguments[i]);
}

static void add_condition(TileLines *lines, const TileOp *op) {
    const TileOp *loop = op->block->op;
    for (unsigned i = 0; i + 1 < op->operand_count; i++)
        link_all(lines, tile_loop_carried(op, i), tile_op_result(loop, i));
}

static void add_yield(TileLines *lines, const TileOp *op) {
    const TileOp *outer = op->block->op;
    for (unsigned i = 0; i < op->operand_count; i++) {
        const TileValue *taken = outer->id == TILE_OP_WHILE ? outer->regions[0].arguments[i] : tile_op_result(outer, i);
        link_all(lines, tile_op_operand(op, i), taken);
    }
}

static bool has_tiles(const TileOp *op) {
    for (unsigned i = 0; i < op->operand_count; i++)
        if (tile_type_is_tile(tile_op_operand(op, i)->type)) return true;
    for (unsigned i = 0; i < op->result_count; i++)
        if (tile_type_is_tile(tile_op_result(op, i)->type)) return true;
    return false;
}

static bool add_shape(TileLines *lines, const TileOp *op) {
    const TileValue *y = tile_op_result(op, 0), *x = op->operand_count ? tile_op_operand(op, 0) : NULL;
    switch (op->id) {
    case TILE_OP_CONST:
    case TILE_OP_SPLAT:
    case TILE_OP_IOTA: return true;
    case TILE_OP_BROADCAST:
    case TILE_OP_FILL: link_all(lines, x, y); return true;
    case TILE_OP_RESHAPE: add_reshape(lines, x, y); return true;
    case TILE_OP_SLICE:
    case TILE_OP_CAT: add_pieces(lines, op); return true;
    case TILE_OP_PERMUTE:
        for (unsigned i = 0; i < y->type->rank; i++)
            link(lines, y, i, x, (unsigned)tile_op_get(op, TILE_ATTRIBUTE_AXES)->integers[i]);
        return true;
    }
    return false;
}

static bool add_control(TileLines *lines, const TileOp *op) {
    switch (op->id) {
    case TILE_OP_FOR: add_for(lines, op); return true;
    case TILE_OP_WHILE: add_while(lines, op); return true;
    case TILE_OP_CONDITION: add_condition(lines, op); return true;
    case TILE_OP_IF: return true;
    case TILE_OP_YIELD: add_yield(lines, op); return true;
    }
    return false;
}

bool tile_lines_add(TileLines *lines, const TileOp *op) {
    const TileOpInfo *info = tile_op_info((TileOpId)op->id);
    if (!has_tiles(op) && !op->region_count) return true;
    switch (op->id) {
    case TILE_OP_DOT: add_dot(lines, op); return true;
    case TILE_OP_REDUCE:
    case TILE_OP_ARG_REDUCE:
    case TILE_OP_FOLD:
    case TILE_OP_SCAN: add_along_axis(lines, op); return true;
    case TILE_OP_LOAD_TILE: add_access(lines, op, tile_op_result(op, 0)); return true;
    case TILE_OP_STORE_TILE: add_access(lines, op, tile_op_named(op, TILE_OPERAND_VALUE)); return true;
    }
    if (info->class == TILE_CLASS_SHAPE) return add_shape(lines, op);
    if (info->class == TILE_CLASS_CONTROL) return add_control(lines, op);
    if (info->class != TILE_CLASS_ELEMENTWISE) return false;
    for (unsigned i = 0; i < op->operand_count; i++) link_all(lines, tile_op_operand(op, i), tile_op_result(op, 0));
    return true;
}
