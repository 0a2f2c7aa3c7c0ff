/* Lanes at equal distances and lanes between bounds. Lane l of a line is first + l * step, along the axis that grows; a mask is true for
 * lo <= l < hi, if there are such bounds, where its condition holds. */
#include "lowering/lines.h"

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
    TileJoin *join;
    TileMap lines, masks, filled; /* filled: tiles that are 0 outside of such a mask */
    TileOp *place; /* where scalars are computed: the op, or the branch that it stands in */
    bool changed;
} Lines;

static TileBuilder builder(const Lines *lines) { return tile_builder_before(lines->join->context->module, lines->place); }

static int growing_axis(const Lines *lines, const TileValue *tile) {
    int axis = -1;
    for (unsigned i = 0; i < tile->type->rank; i++)
        if (tile_joined_grows(lines->join, tile, i)) axis = axis < 0 ? (int)i : (int)TILE_MAX_TILE_RANK;
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

/* An index that is inside of the tensor where the mask's condition holds, and another one elsewhere: a range of one row, whose bounds
 * say the same. -1: there is none. */
static int find_row(const TileAccessIndex *indices, unsigned rank, const Mask *mask, Bounds *row, TileBuilder *b) {
    for (unsigned d = 0; mask->condition && d < rank && indices[d].kind != TILE_ACCESS_GATHER; d++) {
        const TileOp *chosen = indices[d].kind == TILE_ACCESS_INDEX ? tile_value_def(indices[d].first, TILE_OP_SELECT) : NULL;
        const TileOp *test = chosen && tile_op_operand(chosen, 0) == mask->condition ? tile_value_def(mask->condition, TILE_OP_AND) : NULL;
        *row = (Bounds){NULL, NULL};
        for (unsigned i = 0; test && i < 2; i++) {
            const TileOp *part = tile_op_operand(test, i)->op;
            bool compares = part && (part->id == TILE_OP_GE || part->id == TILE_OP_LT) && tile_op_operand(part, 0) == tile_op_operand(chosen, 1);
            if (!compares) continue;
            TileValue *distance = tile_build_binary(b, TILE_OP_SUB, tile_op_operand(part, 1), tile_op_operand(part, 0));
            if (part->id == TILE_OP_GE) row->lo = tile_build_binary(b, TILE_OP_MAX, distance, tile_build_i64(b, 0));
            if (part->id == TILE_OP_LT) row->hi = tile_build_binary(b, TILE_OP_MIN, distance, tile_build_i64(b, 1));
        }
        bool no_range = true;
        for (unsigned k = 0; k < d; k++) no_range &= indices[k].kind == TILE_ACCESS_INDEX;
        if (row->lo && row->hi && no_range) return (int)d;
    }
    return -1;
}

/* What fills the lanes that the load leaves out, and the row, which is the first axis and goes. */
static TileValue *fill_row(TileBuilder *b, TileValue *made, const TileType *type, unsigned axis, Bounds row, Bounds bounds) {
    TileValue *nothing = tile_build_bits(b, tile_type_scalar(b->module->context, type->scalar), 0);
    TileValue *values[] = {row.lo, row.hi, bounds.lo, bounds.hi};
    made = tile_build_fill(b, made, nothing, (const int64_t[]){0, axis + 1}, values, 2);
    return tile_build_reshape(b, made, type->rank, type->extent);
}

static void add_range(TileBuilder *b, TileValue **operands, unsigned *count, TileValue *first, Bounds bounds) {
    operands[(*count)++] = first;
    operands[(*count)++] = tile_build_i64(b, 1);
    operands[(*count)++] = bounds.lo;
    operands[(*count)++] = bounds.hi;
}

typedef struct Gather {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    unsigned rank, d; /* the dimension that is gathered */
    const Line *line;
    const Mask *mask;
} Gather;

static bool find_gather(Lines *lines, TileOp *op, Gather *gather) {
    unsigned gathers = 0;
    gather->rank = tile_access_read(op, gather->indices);
    for (unsigned d = 0; d < gather->rank; d++)
        if (gather->indices[d].kind == TILE_ACCESS_GATHER && ++gathers == 1) gather->d = d;
    if (gathers != 1 || !tile_op_has_part(op, TILE_PARTS_MASK) || tile_op_has_part(op, TILE_PARTS_FILL)) return false;
    gather->line = line_of(lines, gather->indices[gather->d].first);
    gather->mask = mask_of(lines, tile_op_named(op, TILE_OPERAND_MASK));
    return gather->line && gather->line->step == 1 && gather->mask;
}

/* A gather along a line is a range. */
static void use_in_load(Lines *lines, TileOp *op) {
    enum { MOST_OPERANDS = 1 + 4 * TILE_MAX_TENSOR_RANK };
    TileValue *operands[MOST_OPERANDS], *tile = &op->results[0];
    int64_t kinds[TILE_MAX_TENSOR_RANK], extents[TILE_MAX_TILE_RANK] = {1};
    Gather g;
    if (!find_gather(lines, op, &g)) return;
    const TileType *type = tile->type;
    TileBuilder b = tile_builder_before(lines->join->context->module, op);
    unsigned count = 0, axis = (unsigned)g.indices[g.d].axis;
    Bounds row, bounds;
    int d_row = type->rank < TILE_MAX_TILE_RANK ? find_row(g.indices, g.rank, g.mask, &row, &b) : -1;
    Mask columns = {d_row < 0 ? g.mask->condition : NULL, g.mask->lo, g.mask->hi};
    bounds = bounds_of(&b, &columns, type->extent[axis]);
    operands[count++] = tile_op_operand(op, 0);
    for (unsigned d = 0; d < g.rank; d++) {
        const TileAccessIndex *index = &g.indices[d];
        bool is_row = (int)d == d_row;
        kinds[d] = d == g.d || is_row ? TILE_ACCESS_RANGE : (int64_t)index->kind;
        if (is_row) add_range(&b, operands, &count, tile_op_operand(index->first->op, 1), row);
        if (d == g.d) add_range(&b, operands, &count, g.line->first, bounds);
        for (unsigned i = 0; d != g.d && !is_row && i < tile_access_operands(index->kind); i++)
            operands[count++] = tile_op_operand(op, index->operand + i);
    }
    for (unsigned i = 0; i < type->rank; i++) extents[i + 1] = type->extent[i];
    const TileType *wide = d_row < 0 ? type : tile_type_tile(b.module->context, type->scalar, type->rank + 1u, extents);
    TileAttribute access = {.key = TILE_ATTRIBUTE_ACCESS, .count = g.rank, .integers = kinds};
    TileValue *made = tile_op_result(tile_build_op(&b, TILE_OP_LOAD_TILE, operands, count, &access, 1, &wide, 1), 0);
    made->name = tile->name;
    if (d_row >= 0) {
        made = fill_row(&b, made, type, axis, row, bounds);
        tile_map_set(&lines->filled, made, (void *)g.mask);
    }
    tile_value_replace(tile, made);
    tile_op_erase(op);
    lines->changed = true;
}

/* ---- what is 0 already ---- */

/* A fill by 0 of lanes that are 0 already has one axis less; NULL: none is left. */
static TileValue *without_axis(TileBuilder *b, TileOp *fill, unsigned dropped) {
    const TileAttribute *axes = tile_op_get(fill, TILE_ATTRIBUTE_AXES);
    int64_t others[TILE_MAX_TILE_RANK];
    TileValue *bounds[2 * TILE_MAX_TILE_RANK];
    unsigned count = 0;
    for (unsigned i = 0; i < axes->count; i++) {
        if (i == dropped) continue;
        others[count] = axes->integers[i];
        bounds[2 * count] = tile_fill_lo(fill, i);
        bounds[2 * count++ + 1] = tile_fill_hi(fill, i);
    }
    if (!count) return NULL;
    return tile_build_fill(b, tile_op_operand(fill, 0), tile_op_named(fill, TILE_OPERAND_FILLING), others, bounds, count);
}

static bool is_zero(const TileValue *value) {
    uint64_t bits;
    return tile_value_bits(value, &bits) && bits == 0;
}

/* Does the fill leave nothing where the condition does not hold, and everything where it does? */
static bool fills_by_condition(const TileOp *fill, unsigned i, const TileValue *condition, int64_t lanes) {
    const TileOp *chosen = tile_value_def(tile_fill_hi(fill, i), TILE_OP_SELECT);
    return chosen && tile_op_operand(chosen, 0) == condition && tile_value_is_integer(tile_op_named(chosen, TILE_OPERAND_X), lanes) &&
           tile_value_is_integer(tile_op_named(chosen, TILE_OPERAND_Y), 0) && tile_value_is_integer(tile_fill_lo(fill, i), 0);
}

static void use_in_fill(Lines *lines, TileOp *op) {
    const Mask *done = tile_map_get(&lines->filled, tile_op_operand(op, 0));
    const TileAttribute *axes = tile_op_get(op, TILE_ATTRIBUTE_AXES);
    TileValue *result = &op->results[0];
    int axis = done ? growing_axis(lines, result) : -1;
    if (axis < 0 || !is_zero(tile_op_named(op, TILE_OPERAND_FILLING))) return;
    tile_map_set(&lines->filled, result, (void *)done);
    for (unsigned i = 0; i < axes->count; i++) {
        if (axes->integers[i] != axis || !fills_by_condition(op, i, done->condition, result->type->extent[axis])) continue;
        TileBuilder b = tile_builder_before(lines->join->context->module, op);
        TileValue *rest = without_axis(&b, op, i);
        if (!rest) rest = tile_op_operand(op, 0);
        else tile_map_set(&lines->filled, rest, (void *)done);
        tile_value_replace(result, rest);
        tile_op_erase(op);
        return;
    }
}

/* Is the tile 0 already outside of the mask? */
static bool is_filled(const Lines *lines, const TileValue *tile, const Mask *mask) {
    const Mask *done = tile_map_get(&lines->filled, tile);
    return done && done->lo == mask->lo && done->hi == mask->hi && (!mask->condition || mask->condition == done->condition);
}

/* A choice between a tile and a number by lanes is a fill; by a condition alone, it chooses by that. */
static void use_in_select(Lines *lines, TileOp *op) {
    TileValue *result = &op->results[0], *chooser = tile_op_operand(op, 0);
    const TileOp *other = tile_value_def(tile_op_named(op, TILE_OPERAND_Y), TILE_OP_CONST);
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
    if (tile_op_get(other, TILE_ATTRIBUTE_VALUE)->bits == 0 && is_filled(lines, tile_op_operand(op, 1), mask)) {
        tile_value_replace(result, tile_op_operand(op, 1));
        tile_op_erase(op);
        return;
    }
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
        else if (op->id == TILE_OP_FILL) use_in_fill(lines, op);
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

bool tile_use_lines(TileJoin *join) {
    Lines lines = {.join = join};
    tile_map_init(&lines.lines, join->context->scratch);
    tile_map_init(&lines.masks, join->context->scratch);
    tile_map_init(&lines.filled, join->context->scratch);
    visit(&lines, &join->around->regions[0], NULL);
    return lines.changed;
}
