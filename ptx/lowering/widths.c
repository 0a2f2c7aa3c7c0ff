/* How wide the vectors of an access may be, and the questions that are asked once for a whole block. */
#include "ptx/lowering/access.h"
#include "lang/ir/access.h"
#include "lang/ir/operands.h"
#include "ptx/layouts/beside.h"
#include "ptx/target/target.h"

const GpuDimension *gpu_unit_dimension(const GpuAccess *access) {
    const GpuDimension *last = &access->dimensions[access->rank - 1];
    bool along = last->kind == TILE_ACCESS_RANGE && (unsigned)last->axis + 1 == access->type->rank;
    return along ? last : NULL;
}

bool gpu_is_scattered(const GpuAccess *access) {
    const GpuDimension *unit = gpu_unit_dimension(access);
    int64_t step;
    return !unit || (tile_value_integer(unit->step, &step) && step != 1);
}

unsigned gpu_vector_width(const GpuAccess *access) {
    if (access->gathers || access->mask || gpu_is_scattered(access)) return 1;
    unsigned limit = GPU_ACCESS_BYTES / tile_scalar_bytes(access->type->scalar);
    return tile_layout_vector(&access->layout, access->type->rank - 1u, limit);
}

bool gpu_row_begins_behind(Gpu *gpu, const GpuAccess *access, unsigned width, unsigned *shift) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    int64_t distance;
    if (width == 1 || access->flat || tile_access_read(access->op, indices) != access->rank) return false;
    if (!gpu_begins_behind(tile_pass_indices(gpu->context, gpu->func), indices[access->rank - 1].first, width, &distance)) return false;
    *shift = (unsigned)distance;
    return true;
}

/* How many elements behind a multiple of `width` the access begins, by constants that the text adds or iterations that are unrolled; 0: none, or
 * it is not known. */
static unsigned constant_shift(Gpu *gpu, const GpuAccess *access, unsigned width) {
    unsigned shift;
    return gpu_row_begins_behind(gpu, access, width, &shift) ? shift : 0;
}

/* Of elements of more than 16 bits two vectors cost as much as the four elements of one (measured: 0.95 of the speed of a stencil of seven). */
unsigned gpu_shift(Gpu *gpu, const GpuAccess *access, unsigned width) {
    return tile_scalar_bytes(access->type->scalar) > sizeof(uint16_t) ? 0 : constant_shift(gpu, access, width);
}

bool gpu_misses_vectors(Gpu *gpu, const GpuAccess *access, unsigned width) {
    unsigned bytes = width * tile_scalar_bytes(access->type->scalar);
    return access->tensor->parameter->facts.align >= bytes && constant_shift(gpu, access, width);
}

TileValue *gpu_is_inside(Gpu *gpu, const GpuAccess *access) {
    TileValue *inside = NULL;
    for (unsigned d = 0; d < access->rank; d++) {
        const GpuDimension *dimension = &access->dimensions[d];
        if (dimension->kind != TILE_ACCESS_RANGE) continue;
        int64_t extent = tile_layout_extent(&access->layout, (unsigned)dimension->axis), lo, hi;
        if (!tile_value_integer(dimension->lo, &lo) || lo > 0)
            inside = gpu_and(gpu, inside, gpu_binary(gpu, TILE_OP_LE, dimension->lo, gpu_i64(gpu, 0)));
        if (!tile_value_integer(dimension->hi, &hi) || hi < extent)
            inside = gpu_and(gpu, inside, gpu_binary(gpu, TILE_OP_GE, dimension->hi, gpu_i64(gpu, extent)));
    }
    return inside;
}

unsigned gpu_aligned_width(GpuAccess *access, unsigned width) {
    TileParameter *parameter = access->tensor->parameter;
    unsigned size = tile_scalar_bytes(access->type->scalar), align = parameter->facts.align;
    if (width == 1) return 1;
    if (parameter->asked_align < width * size) parameter->asked_align = width * size;
    if (!align) return width;
    while (width > 1 && width * size > align) width /= 2;
    if (width > 1 && parameter->used_align < width * size) parameter->used_align = width * size;
    return width;
}

/* Is the only index of the dimension 0, so that its stride does not matter? */
static bool is_first(const GpuDimension *dimension) {
    return dimension->kind == TILE_ACCESS_INDEX && tile_value_is_integer(dimension->first, 0);
}

/* Is the number a multiple of a power of two, by what this variant knows of extents? Asks for the facts. */
static bool is_multiple(Gpu *gpu, const TileValue *value, unsigned width) {
    TileIndices **supposed = &gpu->supposed[gpu_floor_log2(width)];
    if (gpu->products || gpu->sums) return false; /* matmul_grouped of bf16 spilled for sm_89 */
    if (!*supposed) *supposed = tile_indices_suppose(gpu->context->scratch, gpu->func, width);
    TileIndexRange range = tile_index_range(*supposed, value);
    return range.multiple % width == 0 && tile_index_ask(*supposed, range.because);
}

/* Does the tensor go on, along a dimension in front of the last one, at a multiple of so many elements: has it no gaps behind, and
 * rows that are such multiples? Asks for the facts. */
static bool is_stride_multiple(const Gpu *gpu, const GpuAccess *access, unsigned d, unsigned width) {
    TileParameter *parameter = access->tensor->parameter;
    unsigned last = access->rank - 1;
    uint32_t behind = (1u << last) - (1u << d);
    if (gpu->products || gpu->sums) return false;
    if (access->flat || parameter->facts.stride[last] != (int64_t)tile_scalar_bytes(access->type->scalar)) return false;
    parameter->asked_dense |= behind;
    for (unsigned wanted = width; wanted > 1; wanted /= 2) parameter->asked_multiple |= wanted;
    int64_t multiple = parameter->facts.multiple[last];
    if ((parameter->facts.dense & behind) != behind || multiple == TILE_UNKNOWN || multiple % width) return false;
    parameter->used_dense |= behind;
    parameter->used_multiple |= width;
    return true;
}

/* The bytes, or a sum of such, that have to be multiples of a vector's; NULL: they are. */
static TileValue *distances(Gpu *gpu, const GpuAccess *access, unsigned width) {
    const GpuDimension *unit = gpu_unit_dimension(access);
    TileValue *odd = is_multiple(gpu, unit->first, width) ? NULL : gpu_binary(gpu, TILE_OP_MUL, unit->first, unit->stride);
    for (unsigned d = 0; d < access->rank; d++) {
        const GpuDimension *dimension = &access->dimensions[d];
        if (dimension == unit || is_first(dimension) || is_stride_multiple(gpu, access, d, width)) continue;
        odd = odd ? gpu_binary(gpu, TILE_OP_OR, odd, dimension->stride) : dimension->stride;
    }
    return odd;
}

TileValue *gpu_is_in_vectors(Gpu *gpu, const GpuAccess *access, unsigned width) {
    const GpuDimension *unit = gpu_unit_dimension(access);
    int64_t bytes = (int64_t)width * tile_scalar_bytes(access->type->scalar), distance;
    bool known = tile_value_is_integer(unit->per_lane, bytes / width) ||
                 (tile_value_is_integer(unit->step, 1) && tile_value_integer(unit->stride, &distance) && distance == bytes / width);
    TileValue *even = known ? NULL : gpu_binary(gpu, TILE_OP_EQ, unit->per_lane, gpu_i64(gpu, bytes / width));
    if (width == 1) return even;
    TileValue *odd = distances(gpu, access, width);
    if (odd) odd = gpu_binary(gpu, TILE_OP_AND, odd, gpu_i64(gpu, bytes - 1));
    if (odd) even = gpu_and(gpu, even, gpu_binary(gpu, TILE_OP_EQ, odd, gpu_i64(gpu, 0)));
    if (access->tensor->parameter->facts.align >= bytes) return even;
    return gpu_and(gpu, even, tile_build_is_aligned(&gpu->b, access->tensor->pointer, bytes));
}

/* Do bounds that are constants fall between vectors of this width? */
static bool are_bounds_between(const GpuAccess *access, unsigned width) {
    const GpuDimension *unit = gpu_unit_dimension(access);
    int64_t lo, hi;
    return tile_value_integer(unit->lo, &lo) && tile_value_integer(unit->hi, &hi) && ((lo | hi) & (width - 1)) == 0;
}

/* The same of bounds that are multiples of extents. */
static bool are_bounds_multiples(Gpu *gpu, const GpuAccess *access, unsigned width) {
    const GpuDimension *unit = gpu_unit_dimension(access);
    return is_multiple(gpu, unit->lo, width) && is_multiple(gpu, unit->hi, width);
}

unsigned gpu_predicated_width(Gpu *gpu, const GpuAccess *access, unsigned width) {
    TileParameter *parameter = access->tensor->parameter;
    unsigned most = GPU_PREDICATED_BYTES / tile_scalar_bytes(access->type->scalar), whole = width;
    if (width == 1 || are_bounds_between(access, width) || are_bounds_multiples(gpu, access, width)) return width;
    if (most > 1 && width > most) width = most;
    int64_t multiple = parameter->facts.multiple[access->rank - 1];
    if (access->rank == 1 || access->flat || parameter->facts.stride[access->rank - 1] == TILE_UNKNOWN) return width;
    for (unsigned wanted = whole; wanted > 1; wanted /= 2) parameter->asked_multiple |= wanted;
    if (multiple != TILE_UNKNOWN && multiple >= whole) return whole;
    return multiple != TILE_UNKNOWN && multiple < width ? (unsigned)multiple : width;
}

/* In loops only tiles of one row, of 16 bits, of which a branch makes words, and so waits for its loads: what is computed for each element
 * of others, addresses and masks, is in registers together (measured: 246 of a thread in a softmax that loads three tiles). */
bool gpu_is_of_odd_rows(const GpuAccess *access) {
    TileParameter *parameter = access->tensor->parameter;
    unsigned last = access->rank - 1, bytes = tile_scalar_bytes(access->type->scalar);
    if (access->rank == 1 || access->flat || access->gathers || access->mask || gpu_is_scattered(access)) return false;
    if (bytes >= GPU_PREDICATED_BYTES || parameter->facts.stride[last] != bytes) return false;
    if ((access->type->rank > 1 || bytes != sizeof(uint16_t)) && tile_op_is_repeated(access->op)) return false;
    bool one = true; /* row, or several */
    for (unsigned d = 0; d < last; d++) one &= is_first(&access->dimensions[d]);
    if (one) return false;
    parameter->asked_multiple |= 2;
    if (parameter->facts.multiple[last] != 1) return false;
    parameter->asked_dense |= 1u << (last - 1);
    if (!(parameter->facts.dense >> (last - 1) & 1)) return false;
    parameter->used_dense |= 1u << (last - 1);
    return true;
}

TileValue *gpu_is_whole_in_vectors(Gpu *gpu, const GpuAccess *access, unsigned width) {
    const GpuDimension *unit = gpu_unit_dimension(access);
    if (are_bounds_multiples(gpu, access, width)) return gpu_is_in_vectors(gpu, access, width);
    TileValue *bounds = gpu_binary(gpu, TILE_OP_OR, unit->lo, unit->hi);
    TileValue *rest = gpu_binary(gpu, TILE_OP_AND, bounds, gpu_i64(gpu, width - 1));
    return gpu_and(gpu, gpu_is_in_vectors(gpu, access, width), gpu_binary(gpu, TILE_OP_EQ, rest, gpu_i64(gpu, 0)));
}

/* Is the value, of tile form, the same for all elements of a line along the last axis? */
static bool is_same_along_lines(const TileValue *value) {
    if (!tile_type_is_tile(value->type)) return true;
    const TileOp *op = value->op;
    if (!op) return false;
    const TileOpInfo *info = tile_op_info((TileOpId)op->id);
    bool maps = op->id == TILE_OP_CONVERT_LAYOUT || op->id == TILE_OP_CONST || info->class == TILE_CLASS_ELEMENTWISE;
    if (op->id == TILE_OP_BROADCAST && tile_type_is_tile(tile_op_operand(op, 0)->type)) {
        const TileType *from = tile_op_operand(op, 0)->type;
        if (from->extent[from->rank - 1] == 1) return true;
        maps = true;
    }
    if (op->id == TILE_OP_SPLAT) return true;
    if (op->id == TILE_OP_IOTA) return tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0) + 1 < value->type->rank;
    for (unsigned i = 0; maps && i < op->operand_count; i++) maps = is_same_along_lines(tile_op_operand(op, i));
    return maps;
}

bool gpu_is_picked_by_lines(const GpuAccess *access) {
    const TileValue *mask = tile_op_named(access->op, TILE_OPERAND_MASK);
    bool by_lines = !gpu_is_scattered(access) && (!mask || is_same_along_lines(mask));
    for (unsigned d = 0; d < access->rank; d++)
        by_lines &= access->dimensions[d].kind != TILE_ACCESS_GATHER || access->dimensions[d].axis + 1 != (int)access->type->rank;
    return by_lines;
}

unsigned gpu_picked_width(GpuAccess *access) {
    unsigned last = access->type->rank - 1u, limit = GPU_ACCESS_BYTES / tile_scalar_bytes(access->type->scalar);
    if (!gpu_is_picked_by_lines(access)) return 1;
    unsigned width = tile_layout_vector(&access->layout, last, limit);
    while (width > 1 && access->type->extent[last] % width) width /= 2;
    width = gpu_aligned_width(access, width);
    if (width == 1 || access->rank == 1 || access->flat || are_bounds_between(access, width)) return width;
    TileParameter *parameter = access->tensor->parameter;
    if (parameter->facts.stride[access->rank - 1] == TILE_UNKNOWN) return width;
    int64_t multiple = parameter->facts.multiple[access->rank - 1];
    for (unsigned wanted = width; wanted > 1; wanted /= 2) parameter->asked_multiple |= wanted;
    return multiple != TILE_UNKNOWN && multiple < width ? (unsigned)multiple : width;
}
