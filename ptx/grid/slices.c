/* Programs that are divided along an axis of their tiles: what computes each element by itself can be computed by several. */
#include "ptx/grid/slices.h"

#include "lang/ir/build.h"
#include "lang/ir/operands.h"

enum { WHOLE = -1, NOT_DIVIDED = -2 };

/* ---- which axis of an operand ---- */

/* The axis of the reshaped tile that this one is: as many elements lie in it, before it and behind it. */
static int reshaped_axis(const TileType *from, const TileType *to, int axis) {
    int64_t before = 1, others = 1;
    for (int a = 0; a < axis; a++) before *= to->extent[a];
    for (int a = 0; a < from->rank; others *= from->extent[a++])
        if (others == before && from->extent[a] == to->extent[axis]) return a;
    return NOT_DIVIDED;
}

/* The axis of the i-th operand that is divided where this one of the result is. */
static int operand_axis(const TileOp *op, unsigned i, int axis) {
    const TileType *type = tile_op_operand(op, i)->type;
    if (!tile_type_is_tile(type)) return WHOLE;
    if (tile_op_info((TileOpId)op->id)->class == TILE_CLASS_ELEMENTWISE) return axis;
    switch (op->id) {
    case TILE_OP_FILL: return i == 0 ? axis : NOT_DIVIDED;
    case TILE_OP_BROADCAST: return type->extent[axis] == 1 ? WHOLE : axis;
    case TILE_OP_RESHAPE: return reshaped_axis(type, op->results[0].type, axis);
    case TILE_OP_PERMUTE: return (int)tile_op_get(op, TILE_ATTRIBUTE_AXES)->integers[axis];
    case TILE_OP_REDUCE: return axis + (axis >= tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0));
    }
    return NOT_DIVIDED;
}

static int axis_of(const GpuSlices *s, const TileValue *value) { return (int)(intptr_t)tile_map_get(&s->axes, value) - 1; }

int gpu_slices_axis(const GpuSlices *s, const TileValue *value) { return axis_of(s, value); }

/* It is made anew where it is used. */
static bool is_constant(const TileValue *value) { return value->op && value->op->id == TILE_OP_CONST; }

/* ---- what can be divided ---- */

static bool divide_value(GpuSlices *s, TileValue *value, int axis);

static int range_of(const TileOp *op, TileAccessIndex *indices, int axis) {
    unsigned rank = tile_access_read(op, indices);
    for (unsigned d = 0; d < rank; d++)
        if (indices[d].kind == TILE_ACCESS_RANGE && indices[d].axis == axis) return (int)d;
    return -1;
}

static bool divide_access(const TileOp *op, int axis) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    return !tile_op_has_part(op, TILE_PARTS_MASK) && range_of(op, indices, axis) >= 0;
}

static bool divide_carried(GpuSlices *s, TileOp *loop, unsigned i, int axis) {
    tile_map_set(&s->axes, &loop->results[i], (void *)(intptr_t)(axis + 1));
    tile_map_set(&s->axes, loop->regions[0].arguments[1 + i], (void *)(intptr_t)(axis + 1));
    if (!divide_value(s, tile_loop_carried(loop, i), axis)) return false;
    return loop == s->loop || divide_value(s, tile_op_operand(loop->regions[0].last, i), axis);
}

static bool divide_op(GpuSlices *s, TileOp *op, int axis) {
    if (op->id == TILE_OP_LOAD_TILE) return divide_access(op, axis);
    if (op->id == TILE_OP_IOTA) return true;
    if (op->id == TILE_OP_CLUSTER_REDUCE) return axis == tile_op_integer(op, TILE_ATTRIBUTE_AXIS, NOT_DIVIDED);
    if (op->id == TILE_OP_REDUCE && tile_op_integer(op, TILE_ATTRIBUTE_ORDERED, 0)) return false;
    for (unsigned i = 0; i < op->operand_count; i++) {
        int wanted = operand_axis(op, i, axis);
        if (wanted == NOT_DIVIDED || (wanted >= 0 && !divide_value(s, tile_op_operand(op, i), wanted))) return false;
    }
    return op->region_count == 0 && op->operand_count > 0;
}

static bool divide_value(GpuSlices *s, TileValue *value, int axis) {
    if (is_constant(value)) return true;
    int known = axis_of(s, value);
    if (known >= 0) return known == axis;
    if (tile_value_outside(value, s->grid)) return false;
    TileOp *op = value->op ? value->op : value->block->op;
    if (op->id == TILE_OP_FOR) {
        int64_t i = value->op ? value - op->results : (int64_t)value->index - 1;
        return i >= 0 && divide_carried(s, op, (unsigned)i, axis);
    }
    tile_map_set(&s->axes, value, (void *)(intptr_t)(axis + 1));
    return value->op && divide_op(s, op, axis);
}

/* Has each reader of the tile a part of it as well? */
static bool has_divided_readers(const GpuSlices *s, const TileValue *value) {
    for (const TileUse *use = value->first_use; use; use = use->next) {
        const TileOp *user = use->user;
        if (user->id == TILE_OP_STORE_TILE) continue;
        const TileOp *loop = user->id == TILE_OP_YIELD ? user->block->op : user;
        if (loop == s->loop) continue;
        for (unsigned i = 0; loop->id == TILE_OP_FOR && i < loop->result_count; i++) {
            bool carries = user == loop ? tile_loop_carried(loop, i) == value : tile_op_operand(user, i) == value;
            if (carries && axis_of(s, &loop->results[i]) < 0) return false;
        }
        if (loop->id != TILE_OP_FOR && (user->result_count != 1 || axis_of(s, &user->results[0]) < 0)) return false;
    }
    return true;
}

static bool are_consistent(const GpuSlices *s, const TileBlock *block) {
    for (uint32_t i = 0; i < block->argument_count; i++)
        if (axis_of(s, block->arguments[i]) >= 0 && !has_divided_readers(s, block->arguments[i])) return false;
    for (const TileOp *op = block->first; op; op = op->next) {
        for (unsigned i = 0; i < op->result_count; i++)
            if (axis_of(s, &op->results[i]) >= 0 && !has_divided_readers(s, &op->results[i])) return false;
        for (unsigned r = 0; r < op->region_count && op != s->loop; r++)
            if (!are_consistent(s, &op->regions[r])) return false;
    }
    return true;
}

/* All that the grid stores is divided along the first axis of its tile. */
static bool divide_stores(GpuSlices *s, int64_t *elements) {
    s->extent = 0;
    for (TileOp *op = s->grid->regions[0].first; op; op = op->next) {
        if (!tile_op_writes(op) || op->id == TILE_OP_CLUSTER_REDUCE) continue;
        TileValue *value = op->id == TILE_OP_STORE_TILE ? tile_op_named(op, TILE_OPERAND_VALUE) : NULL;
        if (!value || !tile_type_is_tile(value->type) || !divide_access(op, 0)) return false;
        if (s->extent && s->extent != value->type->extent[0]) return false;
        s->extent = value->type->extent[0];
        *elements = tile_type_lanes(value->type);
        if (!divide_value(s, value, 0)) return false;
    }
    return s->extent && are_consistent(s, &s->grid->regions[0]);
}

static bool find(GpuSlices *s, TilePassContext *context, TileOp *grid, const TileOp *loop, int64_t *elements) {
    *s = (GpuSlices){.context = context, .grid = grid, .loop = loop};
    tile_map_init(&s->axes, context->scratch);
    return divide_stores(s, elements);
}

int64_t gpu_slices_find(GpuSlices *s, TilePassContext *context, TileOp *grid, const TileOp *loop, int64_t least) {
    int64_t elements = 0, count = 1;
    if (!find(s, context, grid, loop, &elements)) return 1;
    while (s->extent % (2 * count) == 0 && elements / (2 * count) >= least) count *= 2;
    return count;
}

/* ---- dividing ---- */

static const TileType *part_of(const GpuSlices *s, const TileType *type, int axis) {
    int64_t extent[TILE_MAX_TILE_RANK];
    for (unsigned a = 0; a < type->rank; a++) extent[a] = (int)a == axis ? s->extent : type->extent[a];
    return tile_type_tile(s->context->module->context, type->scalar, type->rank, extent);
}

/* What of a range's elements is in the slice, counted from its first. */
static TileValue *bound_in_slice(const GpuSlices *s, TileBuilder *b, TileValue *bound) {
    int64_t known;
    bool constant = tile_value_integer(bound, &known);
    if (constant && (known <= 0 || known >= s->whole)) return tile_build_i64(b, known <= 0 ? 0 : s->extent);
    TileValue *further = tile_build_binary(b, TILE_OP_SUB, bound, s->offset);
    further = tile_build_binary(b, TILE_OP_MAX, further, tile_build_i64(b, 0));
    return tile_build_binary(b, TILE_OP_MIN, further, tile_build_i64(b, s->extent));
}

static void narrow_access(const GpuSlices *s, TileBuilder *b, TileOp *op, int axis) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    const TileAccessIndex *index = &indices[range_of(op, indices, axis)];
    TileValue *further = tile_build_binary(b, TILE_OP_MUL, s->offset, index->step);
    TileValue *lo = bound_in_slice(s, b, index->lo), *hi = bound_in_slice(s, b, index->hi);
    tile_op_set_operand(op, index->operand, tile_build_binary(b, TILE_OP_ADD, index->first, further));
    tile_op_set_operand(op, index->operand + 2, lo);
    tile_op_set_operand(op, index->operand + 3, hi);
}

static void narrow_fill(const GpuSlices *s, TileBuilder *b, TileOp *fill, int axis) {
    enum { BOUNDS = 2 }; /* behind the tile and the value */
    const TileAttribute *axes = tile_op_get(fill, TILE_ATTRIBUTE_AXES);
    for (unsigned i = 0; i < axes->count; i++)
        for (unsigned k = 0; k < 2 && axes->integers[i] == axis; k++)
            tile_op_set_operand(fill, BOUNDS + 2 * i + k, bound_in_slice(s, b, tile_op_operand(fill, BOUNDS + 2 * i + k)));
}

static void narrow_iota(const GpuSlices *s, TileOp *iota, int axis) {
    if (tile_op_integer(iota, TILE_ATTRIBUTE_AXIS, 0) != axis) return;
    TileBuilder b = tile_builder_before(s->context->module, iota->next);
    TileValue *number = &iota->results[0];
    TileValue *offset = s->offset;
    if (number->type->scalar != TILE_I64) {
        const TileType *scalar = tile_type_scalar(b.module->context, number->type->scalar);
        offset = tile_op_result(tile_build_op(&b, TILE_OP_CONVERT, &offset, 1, NULL, 0, &scalar, 1), 0);
    }
    const TileType *type = number->type;
    TileValue *all = tile_op_result(tile_build_op(&b, TILE_OP_SPLAT, &offset, 1, NULL, 0, &type, 1), 0);
    TileValue *sum = tile_build_binary(&b, TILE_OP_ADD, all, all);
    tile_value_replace(number, sum);
    tile_op_set_operand(sum->op, 0, number);
}

/* A constant operand of which the op takes a slice. */
static void narrow_constant(const GpuSlices *s, TileBuilder *b, TileOp *op, unsigned i, int axis) {
    TileValue *constant = tile_op_operand(op, i);
    if (axis < 0 || !is_constant(constant)) return;
    const TileType *type = part_of(s, constant->type, axis);
    tile_op_set_operand(op, i, tile_op_result(tile_build_op(b, TILE_OP_CONST, NULL, 0, constant->op->attributes,
                                                            constant->op->attribute_count, &type, 1), 0));
}

static void narrow_operands(const GpuSlices *s, TileBuilder *b, TileOp *op) {
    unsigned count, first = 0;
    int axis = op->result_count ? axis_of(s, &op->results[0]) : -1;
    if (op->id == TILE_OP_STORE_TILE) narrow_constant(s, b, op, 1, 0);
    if (op->id == TILE_OP_FOR) first = tile_op_operands(op, TILE_OPERAND_CARRIED, &count);
    for (unsigned i = 0; op->id == TILE_OP_FOR && i < op->result_count; i++) {
        narrow_constant(s, b, op, first + i, axis_of(s, &op->results[i]));
        TileOp *yield = op->regions[0].last;
        TileBuilder end = tile_builder_before(s->context->module, yield);
        narrow_constant(s, &end, yield, i, axis_of(s, &op->results[i]));
    }
    for (unsigned i = 0; axis >= 0 && !op->region_count && op->id != TILE_OP_LOAD_TILE && i < op->operand_count; i++)
        narrow_constant(s, b, op, i, operand_axis(op, i, axis));
}

static void narrow_block(const GpuSlices *s, TileBlock *block) {
    for (TileOp *op = block->first, *next; op; op = next) {
        TileBuilder b = tile_builder_before(s->context->module, op);
        next = op->next;
        b.location = op->location;
        int axis = op->result_count ? axis_of(s, &op->results[0]) : -1;
        narrow_operands(s, &b, op);
        if (op->id == TILE_OP_STORE_TILE) narrow_access(s, &b, op, 0);
        if (axis >= 0 && op->id == TILE_OP_LOAD_TILE) narrow_access(s, &b, op, axis);
        if (axis >= 0 && op->id == TILE_OP_FILL) narrow_fill(s, &b, op, axis);
        for (unsigned i = 0; i < op->result_count; i++)
            if (axis_of(s, &op->results[i]) >= 0)
                op->results[i].type = part_of(s, op->results[i].type, axis_of(s, &op->results[i]));
        if (axis >= 0 && op->id == TILE_OP_IOTA) narrow_iota(s, op, axis);
        for (unsigned r = 0; r < op->region_count; r++) {
            TileBlock *body = &op->regions[r];
            for (uint32_t i = 0; i < body->argument_count; i++)
                if (axis_of(s, body->arguments[i]) >= 0)
                    body->arguments[i]->type = part_of(s, body->arguments[i]->type, axis_of(s, body->arguments[i]));
            narrow_block(s, body);
        }
    }
}

bool gpu_slices_divide_by(GpuSlices *s, TilePassContext *context, TileOp *grid, int64_t count, TileValue *slice) {
    TileBlock *body = &grid->regions[0];
    int64_t elements;
    if (!find(s, context, grid, NULL, &elements) || s->extent % count) return false;
    s->whole = s->extent;
    s->extent /= count;
    TileBuilder b = tile_builder_before(context->module, body->first);
    s->offset = tile_build_binary(&b, TILE_OP_MUL, slice, tile_build_i64(&b, s->extent));
    narrow_block(s, body);
    return true;
}

bool gpu_slices_divide(GpuSlices *s, TilePassContext *context, TileOp *grid, int64_t count) {
    TileModule *module = context->module;
    int64_t elements;
    if (!find(s, context, grid, NULL, &elements) || s->extent % count) return false;
    TileBuilder host = tile_builder_before(module, grid);
    tile_op_add_operand(module, grid, tile_build_i64(&host, count));
    return gpu_slices_divide_by(s, context, grid, count, tile_block_add_argument(module, &grid->regions[0], tile_type_scalar(module->context, TILE_I64), NULL));
}
