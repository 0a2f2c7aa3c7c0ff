/* Lowering of elementwise ops, constants, indices and changes of shape. */
#include "ptx/lowering/machine.h"
#include "lang/ir/operands.h"

static TileValue *like(Gpu *gpu, const TileOp *op, TileOpId id, TileValue *const *operands, unsigned count,
                       const TileType *type) {
    return tile_op_result(tile_build_op(&gpu->b, id, operands, count, op->attributes, op->attribute_count, &type, 1),
                          0);
}

/* The condition of a select may be a scalar where the operands are tiles; all other operands have one shape. */
static TileValue *lower_elementwise(Gpu *gpu, const TileOp *op) {
    TileValue *operands[3];
    const TileType *old = op->results[0].type, *type = old;
    if (tile_type_is_tile(old)) type = gpu_type(gpu, old->layout, old->scalar);
    for (unsigned i = 0; i < op->operand_count; i++) operands[i] = gpu_value(gpu, tile_op_operand(op, i));
    return like(gpu, op, (TileOpId)op->id, operands, op->operand_count, type);
}

/* Is it a uniform division of 64 bits by a value that is not constant? */
static bool is_long_division(const TileOp *op) {
    return op->id == TILE_OP_DIV && op->results[0].type->scalar == TILE_U64 &&
           !tile_type_is_tile(op->results[0].type) && !tile_value_def(tile_op_operand(op, 1), TILE_OP_CONST);
}

/* A division of 64 bits takes a hundred cycles and more, and all addresses of a program depend on it. For programs of
 * a grid's first row, which is often the only row, a comparison replaces it. */
static TileValue *lower_long_division(Gpu *gpu, const TileOp *op) {
    TileValue *x = gpu_value(gpu, tile_op_operand(op, 0)), *y = gpu_value(gpu, tile_op_operand(op, 1));
    const TileType *type = op->results[0].type;
    TileOp *branch = tile_build_if(&gpu->b, gpu_binary(gpu, TILE_OP_LT, x, y), &type, 1);
    TileBuilder below = tile_builder_at_end(gpu->module, &branch->regions[0]),
                otherwise = tile_builder_at_end(gpu->module, &branch->regions[1]);
    below.location = otherwise.location = op->location;
    TileValue *none = tile_build_bits(&below, type, 0), *quotient = tile_build_binary(&otherwise, TILE_OP_DIV, x, y);
    tile_build_end(&below, TILE_OP_YIELD, &none, 1);
    tile_build_end(&otherwise, TILE_OP_YIELD, &quotient, 1);
    return tile_op_result(branch, 0);
}

static TileValue *lower_const(Gpu *gpu, const TileOp *op) {
    const TileType *type = gpu_type(gpu, op->results[0].type->layout, op->results[0].type->scalar);
    return tile_build_bits(&gpu->b, type, tile_op_get(op, TILE_ATTRIBUTE_VALUE)->bits);
}

static TileValue *spread_scalar(Gpu *gpu, TileValue *scalar, const TileType *type) {
    return type->kind == TILE_TYPE_VECTOR ? tile_build_splat(&gpu->b, scalar, type) : scalar;
}

static TileValue *lower_splat(Gpu *gpu, const TileOp *op) {
    const TileType *type = gpu_type(gpu, op->results[0].type->layout, op->results[0].type->scalar);
    return spread_scalar(gpu, gpu_value(gpu, tile_op_operand(op, 0)), type);
}

static TileValue *lower_iota(Gpu *gpu, const TileOp *op) {
    const TileType *type = op->results[0].type;
    TileValue *index = gpu_indices(gpu, type->layout, (unsigned)tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0));
    return type->scalar == TILE_I64 ? index : tile_build_convert(&gpu->b, index, type->scalar);
}

/* The operand has the layout of the result, less the axes that it is broadcast along, so each thread already has
 * every element. */
static TileValue *lower_broadcast(Gpu *gpu, const TileOp *op) {
    const TileType *from = tile_op_operand(op, 0)->type, *to = op->results[0].type;
    TileValue *value = gpu_value(gpu, tile_op_operand(op, 0));
    uint32_t count = tile_layout_registers(to->layout), distinct = tile_layout_registers(from->layout);
    TileValue **registers = TILE_NEW_ARRAY(gpu->arena, TileValue *, count);
    for (uint32_t r = 0; r < count; r++) {
        uint32_t source = 0;
        for (uint32_t s = 0; s < distinct; s++) {
            bool same = true;
            for (unsigned a = 0; a < to->rank; a++)
                same &= gpu_register_index(from->layout, a, s) ==
                        (from->extent[a] == to->extent[a] ? gpu_register_index(to->layout, a, r) : 0);
            if (same) source = s;
        }
        registers[r] = gpu_register(gpu, value, source);
    }
    return gpu_join(gpu, registers, count);
}

/* The element of a tile of one element. Every thread has it, unless the layout has padding. */
static TileValue *only_element(Gpu *gpu, TileValue *value, const TileLayout *layout) {
    TileValue *element = gpu_register(gpu, value, 0), *holds = NULL;
    for (unsigned a = 0; a < layout->rank; a++) {
        if (tile_layout_extent(layout, a) == 1) continue;
        TileValue *index = gpu_thread_index(gpu, layout, a);
        holds = gpu_and(gpu, holds, gpu_binary(gpu, TILE_OP_EQ, index, gpu_i64(gpu, 0)));
    }
    if (!holds) return element;
    return gpu_share_scalar(gpu, element, gpu_and(gpu, holds, gpu_holds_first_copy(gpu, layout)));
}

/* If the result's layout follows from the operand's, registers stay the same; otherwise the tile is converted through
 * shared memory in row-major order. */
static TileValue *lower_reshape(Gpu *gpu, const TileOp *op) {
    const TileType *from = tile_op_operand(op, 0)->type, *to = op->results[0].type;
    TileValue *value = gpu_value(gpu, tile_op_operand(op, 0));
    TileLayout same;
    if (!tile_type_is_tile(from))
        return tile_type_is_tile(to) ? spread_scalar(gpu, value, gpu_type(gpu, to->layout, to->scalar)) : value;
    if (!tile_type_is_tile(to)) return only_element(gpu, value, from->layout);
    if (tile_layout_of_result(op, from->layout, &same)) return value;
    TileLayoutShape shape = tile_layout_shape(to), old = tile_layout_shape(from);
    GpuStrides write = gpu_row_major(&old, tile_scalar_bytes(to->scalar)),
               read = gpu_row_major(&shape, tile_scalar_bytes(to->scalar));
    return gpu_move_through_shared(gpu, value, to->scalar, from->layout, &write, to->layout, &read,
                                   tile_type_lanes(to));
}

static TileValue *lower_permute(Gpu *gpu, const TileOp *op) {
    const TileType *from = tile_op_operand(op, 0)->type, *to = op->results[0].type;
    const TileAttribute *axes = tile_op_get(op, TILE_ATTRIBUTE_AXES);
    TileValue *value = gpu_value(gpu, tile_op_operand(op, 0));
    TileLayout same;
    if (tile_layout_of_result(op, from->layout, &same)) return value;
    TileLayoutShape shape = tile_layout_shape(from);
    GpuStrides write = gpu_row_major(&shape, tile_scalar_bytes(to->scalar)), read = {{0}, {0}, 0};
    for (unsigned i = 0; i < axes->count; i++) {
        read.bytes[i] = write.bytes[axes->integers[i]];
        read.extent[i] = write.extent[axes->integers[i]];
    }
    return gpu_move_through_shared(gpu, value, to->scalar, from->layout, &write, to->layout, &read,
                                   tile_type_lanes(to));
}

static TileValue *lower_convert_layout(Gpu *gpu, const TileOp *op) {
    const TileType *from = tile_op_operand(op, 0)->type, *to = op->results[0].type;
    return gpu_move(gpu, gpu_value(gpu, tile_op_operand(op, 0)), to, from->layout, to->layout);
}

/* A thread's own registers, or those of other lanes; across warps through shared memory. */
static TileValue *lower_flip(Gpu *gpu, const TileOp *op) {
    const TileType *type = op->results[0].type;
    int64_t axis = tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0);
    TileValue *value = gpu_value(gpu, tile_op_operand(op, 0)), *flipped = gpu_flip_in_warp(gpu, value, type, (unsigned)axis);
    if (flipped) return flipped;
    TileLayoutShape shape = tile_layout_shape(type);
    GpuStrides write = gpu_row_major(&shape, tile_scalar_bytes(type->scalar)), read = write;
    read.bytes[axis] = -write.bytes[axis];
    read.offset = (type->extent[axis] - 1) * write.bytes[axis];
    return gpu_move_through_shared(gpu, value, type->scalar, type->layout, &write, type->layout, &read,
                                   tile_type_lanes(type));
}

/* The register of the half that has the place of a register of the whole, less `offset` along the axis. */
static uint32_t register_of_half(const TileLayout *half, const TileLayout *whole, unsigned axis, int64_t offset,
                                 uint32_t reg) {
    int64_t wanted[TILE_MAX_TILE_RANK], index[TILE_MAX_TILE_RANK];
    tile_layout_apply(whole, (TileLayoutInput){.reg = reg}, wanted);
    wanted[axis] -= offset;
    for (uint32_t r = 0; r < tile_layout_registers(half); r++) {
        bool same = true;
        tile_layout_apply(half, (TileLayoutInput){.reg = r}, index);
        for (unsigned a = 0; a < half->rank; a++) same &= index[a] == wanted[a];
        if (same) return r;
    }
    return UINT32_MAX;
}

/* A slice in whose layout each thread has its own registers of the half. */
static TileValue *pick_half(Gpu *gpu, const TileOp *op) {
    const TileLayout *from = tile_op_operand(op, 0)->type->layout, *to = op->results[0].type->layout;
    unsigned axis = (unsigned)tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0);
    TileValue *value = gpu_value(gpu, tile_op_operand(op, 0));
    TileValue **registers = TILE_NEW_ARRAY(gpu->arena, TileValue *, tile_layout_registers(to));
    for (uint32_t r = 0; r < tile_layout_registers(from); r++) {
        uint32_t at = register_of_half(to, from, axis, tile_op_integer(op, TILE_ATTRIBUTE_OFFSET, 0), r);
        if (at != UINT32_MAX) registers[at] = gpu_register(gpu, value, r);
    }
    return gpu_join(gpu, registers, tile_layout_registers(to));
}

static TileValue *join_halves(Gpu *gpu, const TileOp *op) {
    const TileType *half = tile_op_operand(op, 0)->type;
    const TileLayout *whole = op->results[0].type->layout;
    unsigned axis = (unsigned)tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0);
    TileValue *values[] = {gpu_value(gpu, tile_op_operand(op, 0)), gpu_value(gpu, tile_op_operand(op, 1))};
    uint32_t count = tile_layout_registers(whole);
    TileValue **registers = TILE_NEW_ARRAY(gpu->arena, TileValue *, count);
    for (uint32_t r = 0; r < count; r++)
        for (unsigned i = 0; i < 2; i++) {
            uint32_t at = register_of_half(half->layout, whole, axis, i * half->extent[axis], r);
            if (at != UINT32_MAX) registers[r] = gpu_register(gpu, values[i], at);
        }
    return gpu_join(gpu, registers, count);
}

/* Without such a layout the whole tile is stored to shared memory, and the slice loaded from it. */
static TileValue *lower_slice(Gpu *gpu, const TileOp *op) {
    const TileType *from = tile_op_operand(op, 0)->type, *to = op->results[0].type;
    TileLayout same;
    if (tile_layout_of_result(op, from->layout, &same)) return pick_half(gpu, op);
    TileLayoutShape shape = tile_layout_shape(from);
    GpuStrides write = gpu_row_major(&shape, tile_scalar_bytes(to->scalar)), read = write;
    for (unsigned a = 0; a < to->rank; a++) read.extent[a] = to->extent[a];
    read.offset =
        tile_op_integer(op, TILE_ATTRIBUTE_OFFSET, 0) * read.bytes[tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0)];
    return gpu_move_through_shared(gpu, gpu_value(gpu, tile_op_operand(op, 0)), to->scalar, from->layout, &write,
                                   to->layout, &read, tile_type_lanes(from));
}

/* The places of the second tile's elements, which are all alike, are padding of the first one. */
static TileValue *fill_padding(Gpu *gpu, const TileOp *op) {
    const TileType *to = op->results[0].type;
    unsigned axis = (unsigned)tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0);
    uint32_t count = tile_layout_registers(to->layout);
    TileValue *first = gpu_value(gpu, tile_op_operand(op, 0)), *second = gpu_value(gpu, tile_op_operand(op, 1));
    TileValue **registers = TILE_NEW_ARRAY(gpu->arena, TileValue *, count);
    TileValue *begin = tile_build_i64(&gpu->b, 0), *end = tile_build_i64(&gpu->b, tile_op_operand(op, 0)->type->extent[axis]);
    for (uint32_t r = 0; r < count; r++) {
        TileValue *inside = gpu_lies_between(gpu, to->layout, axis, r, begin, end), *other = gpu_register(gpu, second, 0);
        registers[r] = gpu_register(gpu, first, r);
        if (inside) registers[r] = tile_build_ternary(&gpu->b, TILE_OP_SELECT, inside, registers[r], other);
    }
    return gpu_join(gpu, registers, count);
}

static TileValue *lower_cat(Gpu *gpu, const TileOp *op) {
    const TileType *to = op->results[0].type;
    TileLayout same;
    if (tile_layout_of_result(op, tile_op_operand(op, 0)->type->layout, &same))
        return tile_op_cuts_padding(op) ? fill_padding(gpu, op) : join_halves(gpu, op);
    TileLayoutShape shape = tile_layout_shape(to);
    GpuStrides whole = gpu_row_major(&shape, tile_scalar_bytes(to->scalar)), part = whole;
    unsigned axis = (unsigned)tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0);
    gpu_open_shared(gpu, (uint64_t)tile_type_lanes(to) * tile_scalar_bytes(to->scalar), GPU_VECTOR_ALIGN);
    for (unsigned i = 0; i < 2; i++) {
        TileValue *old = tile_op_operand(op, i);
        part.extent[axis] = old->type->extent[axis];
        gpu_write_shared(gpu, gpu_value(gpu, old), old->type->layout, &part);
        part.offset = part.extent[axis] * part.bytes[axis];
    }
    return gpu_read_shared(gpu, to->scalar, to->layout, &whole);
}

static TileValue *lower_fill(Gpu *gpu, const TileOp *op) {
    const TileType *type = op->results[0].type;
    const TileAttribute *axes = tile_op_get(op, TILE_ATTRIBUTE_AXES);
    const TileLayout *layout = type->layout;
    TileValue *value = gpu_value(gpu, tile_op_operand(op, 0)), *with = gpu_value(gpu, tile_op_operand(op, 1));
    uint32_t count = tile_layout_registers(layout);
    TileValue **registers = TILE_NEW_ARRAY(gpu->arena, TileValue *, count);
    for (uint32_t r = 0; r < count; r++) registers[r] = gpu_register(gpu, value, r);
    for (unsigned i = 0; i < axes->count; i++) {
        unsigned axis = (unsigned)axes->integers[i];
        TileValue *lo = gpu_value(gpu, tile_fill_lo(op, i)),
                  *hi = gpu_value(gpu, tile_fill_hi(op, i));
        for (uint32_t r = 0; r < count; r++) {
            TileValue *inside = gpu_lies_between(gpu, layout, axis, r, lo, hi);
            if (inside) registers[r] = tile_build_ternary(&gpu->b, TILE_OP_SELECT, inside, registers[r], with);
        }
    }
    return gpu_join(gpu, registers, count);
}

bool gpu_lower_value(Gpu *gpu, TileOp *op) {
    TileValue *value = NULL;
    bool tile = op->result_count == 1 && tile_type_is_tile(op->results[0].type);
    if (is_long_division(op))
        value = lower_long_division(gpu, op);
    else if (tile_op_info(op->id)->class == TILE_CLASS_ELEMENTWISE)
        value = lower_elementwise(gpu, op);
    else if (tile && op->id == TILE_OP_CONST)
        value = lower_const(gpu, op);
    else if (tile && op->id == TILE_OP_SPLAT)
        value = lower_splat(gpu, op);
    else if (tile && op->id == TILE_OP_IOTA)
        value = lower_iota(gpu, op);
    else if (op->id == TILE_OP_BROADCAST)
        value = lower_broadcast(gpu, op);
    else if (op->id == TILE_OP_RESHAPE)
        value = lower_reshape(gpu, op);
    else if (op->id == TILE_OP_PERMUTE)
        value = lower_permute(gpu, op);
    else if (op->id == TILE_OP_CONVERT_LAYOUT)
        value = lower_convert_layout(gpu, op);
    else if (op->id == TILE_OP_FLIP)
        value = lower_flip(gpu, op);
    else if (op->id == TILE_OP_SLICE)
        value = lower_slice(gpu, op);
    else if (op->id == TILE_OP_CAT)
        value = lower_cat(gpu, op);
    else if (op->id == TILE_OP_FILL)
        value = lower_fill(gpu, op);
    else
        return false;
    if (!value->name) value->name = op->results[0].name;
    tile_map_set(&gpu->values, &op->results[0], value);
    return true;
}
