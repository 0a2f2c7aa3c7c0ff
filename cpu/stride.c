/* How the values of a loop's body change from one iteration to the next. */
#include "cpu/vectorise.h"

static const TileStride uniform = {TILE_STRIDE_UNIFORM, 0, NULL};
static const TileStride varying = {TILE_STRIDE_VARYING, 0, NULL};

void tile_strides_init(TileStrides *strides, TileOp *loop, TileArena *arena) {
    *strides = (TileStrides){.loop = loop, .arena = arena};
    tile_map_init(&strides->known, arena);
}

static TileStride affine(int64_t step, TileValue *factor) {
    return step ? (TileStride){TILE_STRIDE_AFFINE, step, factor} : uniform;
}

static TileStride add(TileStride x, TileStride y, int64_t sign) {
    int64_t step;
    if (x.kind == TILE_STRIDE_VARYING || y.kind == TILE_STRIDE_VARYING) return varying;
    if (y.kind == TILE_STRIDE_UNIFORM) return x;
    if (__builtin_mul_overflow(y.step, sign, &y.step)) return varying;
    if (x.kind == TILE_STRIDE_UNIFORM) return y;
    if (x.factor != y.factor || __builtin_add_overflow(x.step, y.step, &step)) return varying;
    return affine(step, x.factor);
}

int64_t tile_likely_number(const TileValue *parameter) {
    const TileBlock *block = parameter->op ? NULL : parameter->block;
    return block && !block->op ? block->func->parameters[parameter->index].likely : 0;
}

static bool is_assumed(const TileStrides *strides, const TileValue *value) {
    for (size_t i = 0; i < strides->assumed.count; i++)
        if (strides->assumed.items[i] == value) return true;
    return false;
}

static bool known_factor(TileStrides *strides, TileValue *value, int64_t *number) {
    if (tile_value_integer(value, number)) return true;
    *number = tile_likely_number(value);
    if (*number && strides->assumes && !is_assumed(strides, value))
        tile_list_push(strides->arena, &strides->assumed, value);
    return *number && is_assumed(strides, value);
}

static TileStride scale(TileStrides *strides, TileStride x, TileValue *by) {
    int64_t constant, step;
    if (x.kind == TILE_STRIDE_UNIFORM) return uniform;
    if (known_factor(strides, by, &constant))
        return __builtin_mul_overflow(x.step, constant, &step) ? varying : affine(step, x.factor);
    return x.factor ? varying : affine(x.step, by);
}

static TileStride multiply(TileStrides *strides, const TileOp *op) {
    TileValue *a = tile_op_operand(op, 0), *b = tile_op_operand(op, 1);
    TileStride x = tile_stride_of(strides, a), y = tile_stride_of(strides, b);
    if (y.kind == TILE_STRIDE_UNIFORM && x.kind == TILE_STRIDE_AFFINE) return scale(strides, x, b);
    if (x.kind == TILE_STRIDE_UNIFORM && y.kind == TILE_STRIDE_AFFINE) return scale(strides, y, a);
    return varying;
}

static TileStride shift(TileStrides *strides, const TileOp *op) {
    int64_t bits, step;
    TileStride x = tile_stride_of(strides, tile_op_operand(op, 0));
    if (x.kind != TILE_STRIDE_AFFINE || !tile_value_integer(tile_op_operand(op, 1), &bits) || bits < 0 || bits > 62)
        return varying;
    return __builtin_mul_overflow(x.step, INT64_C(1) << bits, &step) ? varying : affine(step, x.factor);
}

static bool all_uniform(TileStrides *strides, const TileOp *op) {
    for (unsigned i = 0; i < op->operand_count; i++)
        if (tile_stride_of(strides, tile_op_operand(op, i)).kind != TILE_STRIDE_UNIFORM) return false;
    return true;
}

/* Only 64-bit integers are followed: narrower ones may wrap between two lanes. */
static TileStride stride_of_op(TileStrides *strides, const TileOp *op) {
    const TileType *type = op->results[0].type;
    if (op->region_count) return varying;
    if (all_uniform(strides, op)) return op->id == TILE_OP_BUFFER ? varying : uniform;
    bool followed = tile_type_is_scalar(type) && type->scalar == TILE_I64;
    if (op->id == TILE_OP_PTR_ADD || (followed && op->id == TILE_OP_ADD))
        return add(tile_stride_of(strides, tile_op_operand(op, 0)), tile_stride_of(strides, tile_op_operand(op, 1)), 1);
    if (!followed) return varying;
    if (op->id == TILE_OP_SUB)
        return add(tile_stride_of(strides, tile_op_operand(op, 0)), tile_stride_of(strides, tile_op_operand(op, 1)),
                   -1);
    if (op->id == TILE_OP_NEG) return add(uniform, tile_stride_of(strides, tile_op_operand(op, 0)), -1);
    if (op->id == TILE_OP_MUL) return multiply(strides, op);
    return op->id == TILE_OP_SHL ? shift(strides, op) : varying;
}

/* The induction variable of an inner loop is the same in all lanes; what it carries need not be. */
static TileStride stride_of_argument(const TileStrides *strides, const TileValue *value) {
    if (value->index != 0) return varying;
    return value->block->op == strides->loop ? affine(1, NULL) : uniform;
}

TileStride tile_stride_of(TileStrides *strides, TileValue *value) {
    TileStride *known = tile_map_get(&strides->known, value);
    if (known) return *known;
    TileStride stride;
    if (tile_value_outside(value, strides->loop))
        stride = uniform;
    else
        stride = value->op ? stride_of_op(strides, value->op) : stride_of_argument(strides, value);
    known = TILE_NEW(strides->arena, TileStride);
    *known = stride;
    tile_map_set(&strides->known, value, known);
    return stride;
}
