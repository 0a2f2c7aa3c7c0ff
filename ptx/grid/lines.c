/* Lanes at equal distances and lanes between bounds. Lane l of a line is first + l * step, along the axis that grows; a mask is true for
 * lo <= l < hi, if there are such bounds, where its condition holds. */
#include "ptx/grid/lines.h"

#include "base/temp.h"
#include "lang/ir/build.h"
#include "lang/ir/operands.h"

typedef struct Line {
    TileValue *first;
    int64_t step;
} Line;

typedef struct Mask {
    TileValue *condition, *lo, *hi; /* or NULL */
} Mask;

typedef struct Lines {
    GpuJoin *join;
    TileMap lines, masks;
    TileOp *place; /* where scalars are computed: the op, or the branch that it stands in */
    bool changed;
} Lines;

static TileBuilder builder(const Lines *lines) { return tile_builder_before(lines->join->context->module, lines->place); }

static int growing_axis(const Lines *lines, const TileValue *tile) {
    int axis = -1;
    for (unsigned i = 0; i < tile->type->rank; i++)
        if (gpu_joined_grows(lines->join, tile, i)) axis = axis < 0 ? (int)i : (int)TILE_MAX_TILE_RANK;
    return axis < (int)TILE_MAX_TILE_RANK ? axis : -1;
}

/* ---- what is known of a tile ---- */

static bool is_known_there(const Lines *lines, const TileValue *scalar) {
    return lines->place->id != TILE_OP_IF || tile_value_outside(scalar, lines->place);
}

static const Line *line_of(Lines *lines, TileValue *tile) {
    Line *line = tile_map_get(&lines->lines, tile);
    const TileOp *op = tile->op;
    int64_t number;
    if (line || !op || tile->type->scalar != TILE_I64) return line;
    TileBuilder b = builder(lines);
    Line made = {.step = 0};
    if (op->id == TILE_OP_CONST) {
        number = (int64_t)tile_op_get(op, TILE_ATTRIBUTE_VALUE)->bits;
        made.first = tile_build_i64(&b, number);
    } else if (op->id == TILE_OP_SPLAT && is_known_there(lines, tile_op_operand(op, 0))) {
        made.first = tile_op_operand(op, 0);
    } else {
        return NULL;
    }
    return tile_arena_copy(lines->join->context->scratch, &made, sizeof made);
}

static const Mask *mask_of(Lines *lines, TileValue *tile) {
    Mask *mask = tile_map_get(&lines->masks, tile);
    const TileOp *op = tile->op;
    if (mask || !op || tile->type->scalar != TILE_BOOL) return mask;
    TileBuilder b = builder(lines);
    Mask made = {NULL, NULL, NULL};
    if (op->id == TILE_OP_CONST)
        made.condition = tile_build_bool(&b, tile_op_get(op, TILE_ATTRIBUTE_VALUE)->bits != 0);
    else if (op->id == TILE_OP_SPLAT && is_known_there(lines, tile_op_operand(op, 0)))
        made.condition = tile_op_operand(op, 0);
    else
        return NULL;
    return tile_arena_copy(lines->join->context->scratch, &made, sizeof made);
}

static void set_line(Lines *lines, const TileOp *op, TileValue *first, int64_t step) {
    Line line = {first, step};
    tile_map_set(&lines->lines, &op->results[0], tile_arena_copy(lines->join->context->scratch, &line, sizeof line));
}

static void set_mask(Lines *lines, const TileValue *tile, Mask mask) {
    tile_map_set(&lines->masks, tile, tile_arena_copy(lines->join->context->scratch, &mask, sizeof mask));
}

/* ---- lines ---- */

static void visit_arithmetic(Lines *lines, TileOp *op) {
    const Line *x = line_of(lines, tile_op_operand(op, 0)), *y = line_of(lines, tile_op_operand(op, 1));
    int64_t number;
    if (!x || !y) return;
    TileBuilder b = builder(lines);
    bool by_number = y->step == 0 && tile_value_integer(y->first, &number) && number > 0;
    if (op->id == TILE_OP_ADD) set_line(lines, op, tile_build_binary(&b, TILE_OP_ADD, x->first, y->first), x->step + y->step);
    if (op->id == TILE_OP_SUB) set_line(lines, op, tile_build_binary(&b, TILE_OP_SUB, x->first, y->first), x->step - y->step);
    if (!by_number) return;
    if (op->id == TILE_OP_MUL) set_line(lines, op, tile_build_binary(&b, TILE_OP_MUL, x->first, y->first), x->step * number);
    if (x->step % number) return;
    if (op->id == TILE_OP_DIV) set_line(lines, op, tile_build_binary(&b, TILE_OP_DIV, x->first, y->first), x->step / number);
    if (op->id == TILE_OP_REM) set_line(lines, op, tile_build_binary(&b, TILE_OP_REM, x->first, y->first), 0);
}

static void visit_comparison(Lines *lines, TileOp *op) {
    const Line *x = line_of(lines, tile_op_operand(op, 0)), *y = line_of(lines, tile_op_operand(op, 1));
    Mask mask = {NULL, NULL, NULL};
    if (!x || !y || y->step) return;
    TileBuilder b = builder(lines);
    if (x->step == 0)
        mask.condition = tile_build_binary(&b, (TileOpId)op->id, x->first, y->first);
    else if (x->step == 1 && op->id == TILE_OP_LT)
        mask.hi = tile_build_binary(&b, TILE_OP_SUB, y->first, x->first);
    else if (x->step == 1 && op->id == TILE_OP_GE)
        mask.lo = tile_build_binary(&b, TILE_OP_SUB, y->first, x->first);
    else
        return;
    set_mask(lines, &op->results[0], mask);
}

/* ---- masks ---- */

static TileValue *either(TileBuilder *b, TileOpId id, TileValue *x, TileValue *y) {
    return x && y && x != y ? tile_build_binary(b, id, x, y) : x ? x : y;
}

static Mask both(TileBuilder *b, const Mask *x, const Mask *y) {
    return (Mask){either(b, TILE_OP_AND, x->condition, y->condition), either(b, TILE_OP_MAX, x->lo, y->lo),
                  either(b, TILE_OP_MIN, x->hi, y->hi)};
}

static void visit_and(Lines *lines, TileOp *op) {
    const Mask *x = mask_of(lines, tile_op_operand(op, 0)), *y = mask_of(lines, tile_op_operand(op, 1));
    if (!x || !y) return;
    TileBuilder b = builder(lines);
    set_mask(lines, &op->results[0], both(&b, x, y));
}

/* The same lanes along the axis, of another shape. */
static void visit_shape(Lines *lines, TileOp *op) {
    TileValue *x = tile_op_operand(op, 0), *result = &op->results[0];
    if (!tile_type_is_tile(x->type) || !tile_type_is_tile(result->type)) return;
    Line *line = tile_map_get(&lines->lines, x);
    Mask *mask = tile_map_get(&lines->masks, x);
    bool along = growing_axis(lines, result) >= 0;
    if (line && (along || !line->step)) tile_map_set(&lines->lines, result, line);
    if (mask && (along || (!mask->lo && !mask->hi))) tile_map_set(&lines->masks, result, mask);
}

/* A mask by a branch that all lanes take, and false otherwise. */
static void visit_branch(Lines *lines, TileOp *op) {
    for (unsigned i = 0; i < op->result_count; i++) {
        TileValue *then = tile_op_operand(op->regions[0].last, i), *otherwise = tile_op_operand(op->regions[1].last, i);
        const TileOp *no = tile_value_def(otherwise, TILE_OP_CONST);
        const Mask *mask = tile_type_is_tile(then->type) ? mask_of(lines, then) : NULL;
        if (!mask || !no || tile_op_get(no, TILE_ATTRIBUTE_VALUE)->bits) continue;
        TileBuilder b = builder(lines);
        Mask known = {.condition = tile_op_operand(op, 0)};
        set_mask(lines, &op->results[i], both(&b, &known, mask));
    }
}

/* ---- who uses them ---- */

typedef struct Bounds {
    TileValue *lo, *hi;
} Bounds;

/* The bounds of the tile's axis; nothing is between them where the condition does not hold. */
static Bounds bounds_of(TileBuilder *b, const Mask *mask, int64_t lanes) {
    TileValue *zero = tile_build_i64(b, 0), *all = tile_build_i64(b, lanes);
    Bounds bounds = {mask->lo ? tile_build_binary(b, TILE_OP_MAX, mask->lo, zero) : zero,
                     mask->hi ? tile_build_binary(b, TILE_OP_MIN, mask->hi, all) : all};
    if (mask->condition) bounds.hi = tile_build_ternary(b, TILE_OP_SELECT, mask->condition, bounds.hi, zero);
    return bounds;
}

/* A gather along a line is a range. */
static void use_in_load(Lines *lines, TileOp *op) {
    enum { MOST_OPERANDS = 1 + 4 * TILE_MAX_TENSOR_RANK };
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    TileValue *operands[MOST_OPERANDS], *tile = &op->results[0];
    int64_t kinds[TILE_MAX_TENSOR_RANK];
    unsigned rank = tile_access_read(op, indices), gathers = 0, count = 0;
    const Line *line = NULL;
    const Mask *mask = tile_op_has_part(op, TILE_PARTS_MASK) ? mask_of(lines, tile_op_named(op, TILE_OPERAND_MASK)) : NULL;
    for (unsigned d = 0; d < rank; d++)
        if (indices[d].kind == TILE_ACCESS_GATHER && ++gathers == 1) line = line_of(lines, indices[d].first);
    if (gathers != 1 || !line || line->step != 1 || !mask || tile_op_has_part(op, TILE_PARTS_FILL)) return;
    TileBuilder b = tile_builder_before(lines->join->context->module, op);
    operands[count++] = tile_op_operand(op, 0);
    for (unsigned d = 0; d < rank; d++) {
        kinds[d] = indices[d].kind;
        unsigned own = indices[d].kind == TILE_ACCESS_RANGE ? 4 : 1;
        for (unsigned i = 0; indices[d].kind != TILE_ACCESS_GATHER && i < own; i++)
            operands[count++] = tile_op_operand(op, indices[d].operand + i);
        if (indices[d].kind != TILE_ACCESS_GATHER) continue;
        Bounds bounds = bounds_of(&b, mask, tile->type->extent[indices[d].axis]);
        kinds[d] = TILE_ACCESS_RANGE;
        operands[count++] = line->first;
        operands[count++] = tile_build_i64(&b, 1);
        operands[count++] = bounds.lo;
        operands[count++] = bounds.hi;
    }
    TileAttribute access = {.key = TILE_ATTRIBUTE_ACCESS, .count = rank, .integers = kinds};
    TileOp *made = tile_build_op(&b, TILE_OP_LOAD_TILE, operands, count, &access, 1, &tile->type, 1);
    made->results[0].name = tile->name;
    tile_value_replace(tile, &made->results[0]);
    tile_op_erase(op);
    lines->changed = true;
}

/* A choice between a tile and a number by lanes is a fill; by a condition alone, it chooses by that. */
static void use_in_select(Lines *lines, TileOp *op) {
    TileValue *result = &op->results[0], *chooser = tile_op_operand(op, 0);
    const TileOp *other = tile_value_def(tile_op_operand(op, 2), TILE_OP_CONST);
    const Mask *mask = tile_type_is_tile(result->type) && tile_type_is_tile(chooser->type) ? mask_of(lines, chooser) : NULL;
    int axis = mask ? growing_axis(lines, result) : -1;
    if (!mask || !other) return;
    TileBuilder b = tile_builder_before(lines->join->context->module, op);
    if (!mask->lo && !mask->hi) {
        if (!mask->condition || chooser->op->id == TILE_OP_SPLAT) return;
        tile_op_set_operand(op, 0, tile_build_splat(&b, mask->condition, chooser->type));
        lines->changed = true;
        return;
    }
    if (axis < 0) return;
    const TileType *scalar = tile_type_scalar(b.module->context, result->type->scalar);
    TileValue *filling = tile_build_bits(&b, scalar, tile_op_get(other, TILE_ATTRIBUTE_VALUE)->bits);
    Bounds bounds = bounds_of(&b, mask, result->type->extent[axis]);
    TileValue *filled = tile_build_fill(&b, tile_op_operand(op, 1), filling, (const int64_t[]){axis},
                                        (TileValue *[]){bounds.lo, bounds.hi}, 1);
    tile_value_replace(result, filled);
    tile_op_erase(op);
    lines->changed = true;
}

/* ---- all ---- */

static bool compares(const TileOp *op) {
    return op->id == TILE_OP_EQ || op->id == TILE_OP_NE || op->id == TILE_OP_LT || op->id == TILE_OP_LE || op->id == TILE_OP_GT ||
           op->id == TILE_OP_GE;
}

static void visit(Lines *lines, TileBlock *block, TileOp *branch) {
    for (TileOp *op = block->first, *next; op; op = next) {
        next = op->next;
        TileOp *inner = op->id == TILE_OP_IF ? (branch ? branch : op) : NULL;
        for (unsigned i = 0; i < op->region_count; i++) visit(lines, &op->regions[i], inner);
        lines->place = branch ? branch : op;
        if (op->id == TILE_OP_LOAD_TILE) use_in_load(lines, op);
        else if (op->id == TILE_OP_SELECT) use_in_select(lines, op);
        else if (op->id == TILE_OP_IF) visit_branch(lines, op);
        else if (op->result_count != 1 || !tile_type_is_tile(op->results[0].type)) continue;
        else if (op->id == TILE_OP_IOTA && op->results[0].type->rank == 1) {
            TileBuilder b = builder(lines);
            set_line(lines, op, tile_build_i64(&b, 0), 1);
        } else if (op->id == TILE_OP_RESHAPE || op->id == TILE_OP_BROADCAST) visit_shape(lines, op);
        else if (op->id == TILE_OP_AND) visit_and(lines, op);
        else if (compares(op)) visit_comparison(lines, op);
        else if (op->operand_count == 2 && op->results[0].type->scalar == TILE_I64) visit_arithmetic(lines, op);
    }
}

bool gpu_use_lines(GpuJoin *join) {
    Lines lines = {.join = join};
    tile_map_init(&lines.lines, join->context->scratch);
    tile_map_init(&lines.masks, join->context->scratch);
    visit(&lines, &join->around->regions[0], NULL);
    return lines.changed;
}
