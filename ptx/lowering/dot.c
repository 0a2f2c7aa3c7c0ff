/* Products by fused multiply-adds: both operands are stored in shared memory, and each thread computes its own
 * elements of the result, step by step along k, rounding each step once. */
#include "ptx/lowering/machine.h"
#include "lang/ir/operands.h"

enum { MOST_STEPS = 4 };

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

/* Loads `width` neighbouring elements of the operand, of which the first is the one that a register of the result needs. */
static TileValue *load_operand(const Dot *dot, const Operand *operand, TileValue *base, unsigned own_axis, uint32_t reg,
                               unsigned width) {
    Gpu *gpu = dot->gpu;
    int64_t offset = gpu_register_index(&dot->layout, own_axis, reg) * operand->strides.bytes[own_axis];
    for (unsigned a = 0; a + 2 < dot->rank; a++)
        offset += gpu_register_index(&dot->layout, a, reg) * operand->strides.bytes[a];
    const TileType *type = tile_type_vector(gpu->module->context, operand->scalar, width, false);
    TileValue *address = offset ? tile_build_ptr_add(&gpu->b, base, gpu_i64(gpu, offset)) : base;
    TileValue *value =
        tile_build_load(&gpu->b, type, address, NULL, NULL, (int64_t)width * tile_scalar_bytes(operand->scalar));
    return operand->scalar == dot->sum ? value : tile_build_convert(&gpu->b, value, dot->sum);
}

/* Do two registers of the result take the same element of an operand? */
static bool take_same(const Dot *dot, unsigned own_axis, uint32_t r, uint32_t s) {
    bool same = gpu_register_index(&dot->layout, own_axis, s) == gpu_register_index(&dot->layout, own_axis, r);
    for (unsigned a = 0; a + 2 < dot->rank; a++)
        same &= gpu_register_index(&dot->layout, a, s) == gpu_register_index(&dot->layout, a, r);
    return same;
}

/* For each register of the result its element of a, at as many steps of k as there are in `steps`: neighbours, which are
 * loaded together. */
static void load_rows(const Dot *dot, TileValue *base, TileValue **steps, unsigned count) {
    Gpu *gpu = dot->gpu;
    TileValue **loaded = TILE_NEW_ARRAY(gpu->arena, TileValue *, dot->registers),
              **registers = TILE_NEW_ARRAY(gpu->arena, TileValue *, dot->registers);
    for (uint32_t r = 0; r < dot->registers; r++) {
        for (uint32_t s = 0; s < r && !loaded[r]; s++)
            if (take_same(dot, dot->rank - 2, r, s)) loaded[r] = loaded[s];
        if (!loaded[r]) loaded[r] = load_operand(dot, &dot->a, base, dot->rank - 2, r, count);
    }
    for (unsigned i = 0; i < count; i++) {
        for (uint32_t r = 0; r < dot->registers; r++)
            registers[r] = count == 1 ? loaded[r] : gpu_register(gpu, loaded[r], i);
        steps[i] = gpu_join(gpu, registers, dot->registers);
    }
}

/* For each register of the result its element of b at one step of k: neighbours along n are loaded together. */
static TileValue *load_columns(const Dot *dot, TileValue *base, unsigned width) {
    Gpu *gpu = dot->gpu;
    unsigned n = dot->rank - 1;
    TileValue **registers = TILE_NEW_ARRAY(gpu->arena, TileValue *, dot->registers);
    for (uint32_t r = 0; r < dot->registers; r += width) {
        for (uint32_t s = 0; s < r && !registers[r]; s += width)
            for (uint32_t i = 0; i < width && take_same(dot, n, r, s); i++) registers[r + i] = registers[s + i];
        if (registers[r]) continue;
        TileValue *loaded = load_operand(dot, &dot->b, base, n, r, width);
        for (uint32_t i = 0; i < width; i++) registers[r + i] = width == 1 ? loaded : gpu_register(gpu, loaded, i);
    }
    return gpu_join(gpu, registers, dot->registers);
}

/* The address of the thread's elements of an operand, at k = 0. Lanes past the result's extents read a row that
 * exists. */
static TileValue *thread_address(const Dot *dot, const Operand *operand, unsigned own_axis) {
    Gpu *gpu = dot->gpu;
    TileValue *offset = gpu_i64(gpu, 0);
    for (unsigned a = 0; a < dot->rank; a++) {
        if (a + 2 >= dot->rank && a != own_axis) continue;
        TileValue *index = gpu_thread_index(gpu, &dot->layout, a);
        offset = gpu_binary(gpu, TILE_OP_ADD, offset,
                            gpu_binary(gpu, TILE_OP_MUL, index, gpu_i64(gpu, operand->strides.bytes[a])));
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

/* Elements of a that a thread needs at one step of k. */
static unsigned count_rows(const Dot *dot) {
    unsigned rows = 0;
    for (uint32_t r = 0; r < dot->registers; r++) {
        bool same = false;
        for (uint32_t s = 0; s < r && !same; s++) same = take_same(dot, dot->rank - 2, r, s);
        rows += !same;
    }
    return rows;
}

/* Steps of k whose elements of a row are loaded together, as far as they have registers beside the sums. */
static unsigned steps_together(const Dot *dot) {
    enum { MOST_LOADED = 64 };
    unsigned most = GPU_VECTOR_ALIGN / tile_scalar_bytes(dot->a.scalar), rows = count_rows(dot);
    unsigned steps = most > MOST_STEPS ? MOST_STEPS : most;
    while (steps > 1 && (dot->extent[2] % steps || steps * rows > MOST_LOADED)) steps /= 2;
    return steps;
}

/* Elements of a row of b that a thread loads together: neighbours in its registers, at an aligned address. */
static unsigned columns_together(const Dot *dot) {
    unsigned n = dot->rank - 1, bytes = tile_scalar_bytes(dot->b.scalar);
    unsigned width = tile_layout_vector(&dot->layout, n, GPU_VECTOR_ALIGN / bytes);
    while (width > 1 && dot->b.strides.bytes[n - 1] % (width * bytes)) width /= 2;
    return width;
}

/* The sum after the steps of k from this one on, in order. */
static TileValue *multiply_steps(const Dot *dot, TileValue *a, TileValue *b, TileValue *sum, unsigned steps) {
    Gpu *gpu = dot->gpu;
    TileValue *rows[MOST_STEPS];
    unsigned width = columns_together(dot);
    load_rows(dot, a, rows, steps);
    for (unsigned i = 0; i < steps; i++) {
        int64_t offset = i * dot->b.strides.bytes[dot->rank - 2];
        TileValue *y = load_columns(dot, i ? tile_build_ptr_add(&gpu->b, b, gpu_i64(gpu, offset)) : b, width);
        if (tile_scalar_is_float(dot->sum))
            sum = tile_build_ternary(&gpu->b, TILE_OP_FMA, rows[i], y, sum);
        else
            sum = gpu_binary(gpu, TILE_OP_ADD, sum, gpu_binary(gpu, TILE_OP_MUL, rows[i], y));
    }
    return sum;
}

static TileValue *multiply(Dot *dot, TileValue *acc) {
    Gpu *gpu = dot->gpu;
    unsigned m = dot->rank - 2, n = dot->rank - 1, steps = steps_together(dot);
    TileValue *a_base = thread_address(dot, &dot->a, m), *b_base = thread_address(dot, &dot->b, n);
    TileBuilder outer = gpu->b;
    TileOp *loop = tile_build_for(&outer, gpu_i64(gpu, 0), gpu_i64(gpu, dot->extent[2]), gpu_i64(gpu, steps), &acc, 1);
    outer = gpu->b;
    gpu->b.block = &loop->regions[0];
    gpu->b.before = NULL;
    TileValue *k = loop->regions[0].arguments[0], *sum = loop->regions[0].arguments[1];
    TileValue *a_step = gpu_binary(gpu, TILE_OP_MUL, k, gpu_i64(gpu, dot->a.strides.bytes[n])),
              *b_step = gpu_binary(gpu, TILE_OP_MUL, k, gpu_i64(gpu, dot->b.strides.bytes[m]));
    sum = multiply_steps(dot, tile_build_ptr_add(&gpu->b, a_base, a_step), tile_build_ptr_add(&gpu->b, b_base, b_step),
                         sum, steps);
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
