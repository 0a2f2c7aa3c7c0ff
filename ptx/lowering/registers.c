/* What all files of gpu-machine ask: the registers of a tile, the indices of the elements in them, and predicates. */
#include "ptx/lowering/machine.h"

TileValue *gpu_value(Gpu *gpu, const TileValue *old) {
    TileValue *value = tile_map_get(&gpu->values, old);
    return value ? value : tile_build_bool(&gpu->b, false); /* only after a failure */
}

void gpu_refuse(Gpu *gpu, const TileOp *op, const char *why) {
    if (gpu->refused) return;
    gpu->refused = op;
    gpu->why = why;
}

const TileType *gpu_type(Gpu *gpu, const TileLayout *layout, TileScalar scalar) {
    return tile_type_vector(gpu->module->context, scalar, tile_layout_registers(layout), false);
}

/* ---- registers ---- */

TileValue *gpu_and(Gpu *gpu, TileValue *x, TileValue *y) {
    if (!x || !y) return x ? x : y;
    return gpu_binary(gpu, TILE_OP_AND, x, y);
}

TileValue *gpu_both(Gpu *gpu, TileValue *x, TileValue *y) {
    if (!x || !y) return x ? x : y;
    return tile_build_ternary(&gpu->b, TILE_OP_SELECT, x, y, tile_build_bool(&gpu->b, false));
}

TileValue *gpu_register(Gpu *gpu, TileValue *value, uint32_t reg) {
    return value->type->kind == TILE_TYPE_VECTOR ? tile_build_extract(&gpu->b, value, reg) : value;
}

/* The vector of the type that has all the registers in their places, as where a tile only changes its shape; NULL: there is none. */
static TileValue *vector_of(TileValue *const *registers, uint32_t count, const TileType *type) {
    TileValue *vector = NULL;
    for (uint32_t i = 0; i < count; i++) {
        const TileOp *extract = tile_value_def(registers[i], TILE_OP_EXTRACT);
        if (!extract || tile_op_integer(extract, TILE_ATTRIBUTE_AXIS, -1) != i) return NULL;
        if (i && tile_op_operand(extract, 0) != vector) return NULL;
        vector = tile_op_operand(extract, 0);
    }
    return vector && vector->type == type ? vector : NULL;
}

TileValue *gpu_join(Gpu *gpu, TileValue *const *registers, uint32_t count) {
    if (count == 1) return registers[0];
    const TileType *type = tile_type_vector(gpu->module->context, registers[0]->type->scalar, count, false);
    TileValue *same = vector_of(registers, count, type);
    if (same) return same;
    TileValue *value = tile_build_splat(&gpu->b, registers[0], type);
    for (uint32_t i = 1; i < count; i++)
        if (registers[i] != registers[0]) value = tile_build_insert(&gpu->b, value, registers[i], i);
    return value;
}

/* ---- indices ---- */

/* Consecutive bits of the thread's number that are consecutive bits of the index. */
typedef struct Run {
    unsigned from, to, count;
} Run;

/* The next run of thread bits from bit `at` on that belong to the axis; false: there is none. */
static bool next_run(const TileLayout *layout, unsigned axis, unsigned *at, Run *run) {
    unsigned first = layout->bits[TILE_LAYOUT_REGISTER], low = tile_layout_axis_bit(layout, axis);
    unsigned threads = (unsigned)layout->bits[TILE_LAYOUT_LANE] + layout->bits[TILE_LAYOUT_WARP];
    uint32_t mask = ((UINT32_C(1) << layout->log_extent[axis]) - 1) << low;
    for (; *at < threads; (*at)++) {
        uint32_t column = layout->map.column[first + *at] & mask;
        if (!column) continue;
        *run = (Run){*at, (unsigned)__builtin_ctz(column) - low, 0};
        while (*at < threads && (layout->map.column[first + *at] & mask) == column) {
            run->count++;
            (*at)++;
            column <<= 1;
        }
        return true;
    }
    return false;
}

/* In the layouts that this pass chooses, each bit of a thread's number is one bit of one axis, and no register has
 * it; so parts are added, where in general they would be exclusive-ored. */
TileValue *gpu_thread_index(Gpu *gpu, const TileLayout *layout, unsigned axis) {
    TileValue *index = NULL;
    Run run;
    for (unsigned at = 0; next_run(layout, axis, &at, &run);) {
        TileValue *bits = gpu->thread;
        if (run.from) bits = gpu_binary(gpu, TILE_OP_SHR, bits, gpu_i64(gpu, run.from));
        bits = gpu_binary(gpu, TILE_OP_AND, bits, gpu_i64(gpu, (INT64_C(1) << run.count) - 1));
        if (run.to) bits = gpu_binary(gpu, TILE_OP_SHL, bits, gpu_i64(gpu, run.to));
        index = index ? gpu_binary(gpu, TILE_OP_ADD, index, bits) : bits;
    }
    return index ? index : gpu_i64(gpu, 0);
}

int64_t gpu_register_index(const TileLayout *layout, unsigned axis, uint32_t reg) {
    int64_t index[TILE_MAX_TILE_RANK];
    tile_layout_apply(layout, (TileLayoutInput){.reg = reg}, index);
    return index[axis];
}

TileValue *gpu_indices(Gpu *gpu, const TileLayout *layout, unsigned axis) {
    uint32_t count = tile_layout_registers(layout);
    TileValue *own = gpu_thread_index(gpu, layout, axis);
    TileValue **registers = TILE_NEW_ARRAY(gpu->arena, TileValue *, count);
    for (uint32_t r = 0; r < count; r++) {
        int64_t more = gpu_register_index(layout, axis, r);
        registers[r] = more ? gpu_binary(gpu, TILE_OP_ADD, own, gpu_i64(gpu, more)) : own;
    }
    return gpu_join(gpu, registers, count);
}

uint32_t *gpu_index_registers(Gpu *gpu, const TileLayout *layout) {
    int64_t rows = tile_layout_extent(layout, 0), columns = tile_layout_extent(layout, 1);
    uint32_t *at = TILE_NEW_ARRAY(gpu->arena, uint32_t, (size_t)(rows * columns));
    for (uint32_t r = 0; r < tile_layout_registers(layout); r++)
        at[gpu_register_index(layout, 0, r) * columns + gpu_register_index(layout, 1, r)] = r;
    return at;
}

uint32_t gpu_axis_bits(const TileLayout *layout, TileLayoutDim dim, unsigned axis) {
    unsigned first = tile_layout_first_bit(layout, dim), low = tile_layout_axis_bit(layout, axis);
    uint32_t mask = ((UINT32_C(1) << layout->log_extent[axis]) - 1) << low, bits = 0;
    for (unsigned i = 0; i < layout->bits[dim]; i++)
        if (layout->map.column[first + i] & mask) bits |= UINT32_C(1) << i;
    return bits;
}

/* ---- predicates ---- */

/* A bound along an axis, less the thread's own index, as i32. Bounds outside of the tile are clamped to it. */
static TileValue *bound_of_thread(Gpu *gpu, const TileLayout *layout, unsigned axis, TileValue *bound) {
    bound = gpu_binary(gpu, TILE_OP_MIN, bound, gpu_i64(gpu, tile_layout_extent(layout, axis)));
    bound = tile_build_convert(&gpu->b, gpu_binary(gpu, TILE_OP_MAX, bound, gpu_i64(gpu, 0)), TILE_I32);
    TileValue *own = tile_build_convert(&gpu->b, gpu_thread_index(gpu, layout, axis), TILE_I32);
    return gpu_binary(gpu, TILE_OP_SUB, bound, own);
}

/* The register's part of the index, a constant, is compared with a value that all registers of the thread share. */
TileValue *gpu_lies_between(Gpu *gpu, const TileLayout *layout, unsigned axis, uint32_t reg, TileValue *lo,
                            TileValue *hi) {
    int64_t least, end;
    bool above = tile_value_integer(lo, &least) && least <= 0,
         below = tile_value_integer(hi, &end) && end >= tile_layout_extent(layout, axis);
    TileValue *inside = NULL;
    const TileType *i32 = tile_type_scalar(gpu->module->context, TILE_I32);
    TileValue *more = tile_build_integer(&gpu->b, i32, gpu_register_index(layout, axis, reg));
    if (!above) inside = gpu_binary(gpu, TILE_OP_GE, more, bound_of_thread(gpu, layout, axis, lo));
    if (!below)
        inside = gpu_and(gpu, inside, gpu_binary(gpu, TILE_OP_LT, more, bound_of_thread(gpu, layout, axis, hi)));
    return inside;
}

TileValue *gpu_is_element(Gpu *gpu, const TileType *tile, uint32_t reg) {
    TileValue *inside = NULL, *zero = gpu_i64(gpu, 0);
    for (unsigned a = 0; a < tile->rank; a++) {
        if (tile_layout_extent(tile->layout, a) == tile->extent[a]) continue;
        TileValue *end = gpu_i64(gpu, tile->extent[a]);
        inside = gpu_and(gpu, inside, gpu_lies_between(gpu, tile->layout, a, reg, zero, end));
    }
    return inside;
}

TileValue *gpu_holds_first_copy(Gpu *gpu, const TileLayout *layout) {
    uint32_t free = tile_layout_free_bits(layout, TILE_LAYOUT_LANE) | tile_layout_free_bits(layout, TILE_LAYOUT_WARP)
                                                                          << layout->bits[TILE_LAYOUT_LANE];
    if (!free) return NULL;
    TileValue *bits = gpu_binary(gpu, TILE_OP_AND, gpu->thread, gpu_i64(gpu, free));
    return gpu_binary(gpu, TILE_OP_EQ, bits, gpu_i64(gpu, 0));
}

/* Numbers behind those of both partitions. */
void gpu_build_warpgroup_barrier(Gpu *gpu, int64_t groups) {
    TileAttribute attributes[] = {{.key = TILE_ATTRIBUTE_NUMBER, .integer = 2 + gpu->turns},
                                  {.key = TILE_ATTRIBUTE_THREADS, .integer = TILE_WARPGROUP_THREADS},
                                  {.key = TILE_ATTRIBUTE_TURNS, .integer = groups * gpu->turns}};
    tile_build_op(&gpu->b, TILE_OP_BARRIER, NULL, 0, attributes, 3, NULL, 0);
}
