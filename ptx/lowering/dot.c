/* Products by fused multiply-adds: both operands are stored in shared memory, and each thread computes its own
 * elements of the result, step by step along k, rounding each step once. */
#include "ptx/lowering/machine.h"
#include "lang/ir/operands.h"

typedef struct Operand {
    GpuStrides strides; /* by axis of the operand */
    TileScalar scalar;
    TileValue *pointer; /* in shared memory */
} Operand;

typedef struct Dot {
    Gpu *gpu;
    TileLayout layout; /* of the result */
    unsigned rank;
    int64_t extent[3]; /* m, n, k */
    Operand a, b;
    TileScalar sum;
    uint32_t registers;
} Dot;

/* Loads the operand's element that a register of the result needs. */
static TileValue *load_operand(const Dot *dot, const Operand *operand, TileValue *base, unsigned own_axis,
                               const unsigned *axis_of, uint32_t reg) {
    Gpu *gpu = dot->gpu;
    int64_t offset = gpu_register_index(&dot->layout, own_axis, reg) * operand->strides.bytes[axis_of[own_axis]];
    for (unsigned a = 0; a + 2 < dot->rank; a++)
        offset += gpu_register_index(&dot->layout, a, reg) * operand->strides.bytes[a];
    const TileType *type = tile_type_scalar(gpu->module->context, operand->scalar);
    TileValue *address = offset ? tile_build_ptr_add(&gpu->b, base, gpu_i64(gpu, offset)) : base;
    TileValue *value = tile_build_load(&gpu->b, type, address, NULL, NULL, 0);
    return operand->scalar == dot->sum ? value : tile_build_convert(&gpu->b, value, dot->sum);
}

/* The operand's element for each register of the result; registers with the same element share one load. */
static TileValue *load_registers(const Dot *dot, const Operand *operand, TileValue *base, unsigned own_axis,
                                 const unsigned *axis_of) {
    Gpu *gpu = dot->gpu;
    TileValue **registers = TILE_NEW_ARRAY(gpu->arena, TileValue *, dot->registers);
    for (uint32_t r = 0; r < dot->registers; r++) {
        for (uint32_t s = 0; s < r && !registers[r]; s++) {
            bool same = gpu_register_index(&dot->layout, own_axis, s) == gpu_register_index(&dot->layout, own_axis, r);
            for (unsigned a = 0; a + 2 < dot->rank; a++)
                same &= gpu_register_index(&dot->layout, a, s) == gpu_register_index(&dot->layout, a, r);
            if (same) registers[r] = registers[s];
        }
        if (!registers[r]) registers[r] = load_operand(dot, operand, base, own_axis, axis_of, r);
    }
    return gpu_join(gpu, registers, dot->registers);
}

/* The address of the thread's elements of an operand, at k = 0. Lanes past the result's extents read a row that
 * exists. */
static TileValue *thread_address(const Dot *dot, const Operand *operand, unsigned own_axis, const unsigned *axis_of) {
    Gpu *gpu = dot->gpu;
    TileValue *offset = gpu_i64(gpu, 0);
    for (unsigned a = 0; a < dot->rank; a++) {
        if (a + 2 >= dot->rank && a != own_axis) continue;
        TileValue *index = gpu_thread_index(gpu, &dot->layout, a);
        offset = gpu_binary(gpu, TILE_OP_ADD, offset,
                            gpu_binary(gpu, TILE_OP_MUL, index, gpu_i64(gpu, operand->strides.bytes[axis_of[a]])));
    }
    return tile_build_ptr_add(&gpu->b, operand->pointer, offset);
}

static Operand allocate_operand(Gpu *gpu, const TileLayoutShape *padded, TileScalar scalar) {
    uint64_t bytes = tile_scalar_bytes(scalar);
    for (unsigned a = 0; a < padded->rank; a++) bytes *= (uint64_t)padded->extent[a];
    gpu_open_shared(gpu, bytes, GPU_VECTOR_ALIGN);
    return (Operand){
        .scalar = scalar, .pointer = gpu->shared, .strides = gpu_row_major(padded, tile_scalar_bytes(scalar))};
}

/* The operand's shape with padding. Rows and columns of padding are never written; results that depend on them are
 * never used. */
static TileLayoutShape padded_shape(const Dot *dot, const TileType *type, bool is_a) {
    TileLayoutShape shape = tile_layout_shape(type);
    for (unsigned a = 0; a + 2 < dot->rank; a++) shape.extent[a] = tile_layout_extent(&dot->layout, a);
    unsigned own = is_a ? dot->rank - 2 : dot->rank - 1;
    shape.extent[own] = tile_layout_extent(&dot->layout, own);
    return shape;
}

static void write_operand(Gpu *gpu, const TileValue *old, const Operand *operand) {
    TileLayout layout = *old->type->layout;
    gpu->shared = operand->pointer;
    TileValue *value = gpu_value(gpu, old), *base = gpu_shared_address(gpu, &layout, &operand->strides);
    TileValue *first = gpu_holds_first_copy(gpu, &layout);
    for (uint32_t r = 0; r < tile_layout_registers(&layout); r++) {
        TileValue *mask = first;
        for (unsigned a = 0; a < layout.rank; a++) {
            if (tile_layout_extent(&layout, a) <= operand->strides.extent[a]) continue;
            TileValue *index = gpu_binary(gpu, TILE_OP_ADD, gpu_thread_index(gpu, &layout, a),
                                          gpu_i64(gpu, gpu_register_index(&layout, a, r)));
            mask = gpu_and(gpu, mask, gpu_binary(gpu, TILE_OP_LT, index, gpu_i64(gpu, operand->strides.extent[a])));
        }
        int64_t offset = gpu_shared_register_offset(&layout, &operand->strides, r);
        tile_build_store(&gpu->b, gpu_register(gpu, value, r), tile_build_ptr_add(&gpu->b, base, gpu_i64(gpu, offset)),
                         mask, 0);
    }
}

static TileValue *multiply(Dot *dot, TileValue *acc) {
    Gpu *gpu = dot->gpu;
    unsigned m = dot->rank - 2, n = dot->rank - 1, axis_of[TILE_MAX_TILE_RANK];
    for (unsigned a = 0; a < dot->rank; a++) axis_of[a] = a;
    TileValue *a_base = thread_address(dot, &dot->a, m, axis_of), *b_base = thread_address(dot, &dot->b, n, axis_of);
    TileBuilder outer = gpu->b;
    TileOp *loop = tile_build_for(&outer, gpu_i64(gpu, 0), gpu_i64(gpu, dot->extent[2]), gpu_i64(gpu, 1), &acc, 1);
    outer = gpu->b;
    gpu->b.block = &loop->regions[0];
    gpu->b.before = NULL;
    TileValue *k = loop->regions[0].arguments[0], *sum = loop->regions[0].arguments[1];
    TileValue *a_step = gpu_binary(gpu, TILE_OP_MUL, k, gpu_i64(gpu, dot->a.strides.bytes[n])),
              *b_step = gpu_binary(gpu, TILE_OP_MUL, k, gpu_i64(gpu, dot->b.strides.bytes[m]));
    TileValue *x = load_registers(dot, &dot->a, tile_build_ptr_add(&gpu->b, a_base, a_step), m, axis_of),
              *y = load_registers(dot, &dot->b, tile_build_ptr_add(&gpu->b, b_base, b_step), n, axis_of);
    if (tile_scalar_is_float(dot->sum))
        sum = tile_build_ternary(&gpu->b, TILE_OP_FMA, x, y, sum);
    else
        sum = gpu_binary(gpu, TILE_OP_ADD, sum, gpu_binary(gpu, TILE_OP_MUL, x, y));
    tile_build_end(&gpu->b, TILE_OP_YIELD, &sum, 1);
    gpu->b = outer;
    return tile_op_result(loop, 0);
}

void gpu_lower_dot(Gpu *gpu, TileOp *op) {
    const TileValue *a = tile_op_operand(op, 0), *b = tile_op_operand(op, 1);
    const TileType *type = op->results[0].type;
    Dot dot = {.gpu = gpu, .layout = *type->layout, .rank = type->rank, .sum = type->scalar};
    dot.registers = tile_layout_registers(&dot.layout);
    dot.extent[2] = a->type->extent[type->rank - 1];
    TileLayoutShape a_shape = padded_shape(&dot, a->type, true), b_shape = padded_shape(&dot, b->type, false);
    dot.a = allocate_operand(gpu, &a_shape, a->type->scalar);
    dot.b = allocate_operand(gpu, &b_shape, b->type->scalar);
    write_operand(gpu, a, &dot.a);
    write_operand(gpu, b, &dot.b);
    tile_map_set(&gpu->values, &op->results[0], multiply(&dot, gpu_value(gpu, tile_op_named(op, TILE_OPERAND_SUM))));
}
