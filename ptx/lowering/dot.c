/* Products by fused multiply-adds: both operands lie in shared memory, and each thread computes its own elements of the
 * result, step by step along k, rounding each step once. An operand of two axes is read as it lies, transposed or not: of
 * one that lies along k a thread loads a few steps at once, of the other one neighbours along its own axis. Operands of
 * more axes are stored here, row by row. */
#include "ptx/lowering/machine.h"
#include "ptx/target/multiply_adds.h"
#include "lang/ir/operands.h"

enum { MOST_STEPS = 4, ROW = 0, COLUMN = 1 };

typedef struct Operand {
    unsigned own; /* the axis of the result that it has: m or n */
    TileScalar scalar;
    bool along_k;       /* its neighbours in shared memory are steps of k */
    GpuSharedTile tile; /* of two axes: how rows are swizzled */
    int64_t own_bytes, k_bytes, bytes[TILE_MAX_TILE_RANK]; /* from an index to the next one; those of leading axes */
    unsigned width;     /* neighbours that are loaded together */
    TileValue *base, *row;  /* the thread's first element at k = 0, without its swizzle; its row, or column */
    bool swizzled_rows;     /* rows of k are swizzled: `base` is that of the tile */
    uint32_t *vectors; /* registers of the result whose elements begin vectors across k */
    unsigned vector_count;
    uint32_t *first; /* of each register of the result: the first one that takes the same element */
} Operand;

typedef struct Dot {
    Gpu *gpu;
    const TileOp *op;
    TileLayout layout; /* of the result */
    unsigned rank;
    int64_t steps; /* of k */
    Operand operands[2];
    TileScalar sum;
    uint32_t registers;
    uint32_t *order; /* of registers, in which their products are computed; NULL: as one op on all of them */
} Dot;

/* ---- which elements ---- */

/* The bytes from the thread's first element to that of a register of the result, without the swizzle. */
static int64_t register_offset(const Dot *dot, const Operand *operand, uint32_t reg) {
    int64_t offset = gpu_register_index(&dot->layout, operand->own, reg) * operand->own_bytes;
    for (unsigned a = 0; a + 2 < dot->rank; a++)
        offset += gpu_register_index(&dot->layout, a, reg) * operand->bytes[a];
    return offset;
}

/* Finds registers that take the same element; returns how many elements there are. */
static unsigned find_same(const Dot *dot, Operand *operand) {
    TileArena *arena = dot->gpu->arena;
    int64_t *offsets = TILE_NEW_ARRAY(arena, int64_t, dot->registers);
    unsigned count = 0;
    operand->first = TILE_NEW_ARRAY(arena, uint32_t, dot->registers);
    for (uint32_t r = 0; r < dot->registers; r++) {
        uint32_t same = 0;
        offsets[r] = register_offset(dot, operand, r);
        while (offsets[same] != offsets[r]) same++;
        operand->first[r] = same;
        count += same == r;
    }
    return count;
}

/* The register that takes the neighbour at this distance along the operand's own axis; the number of registers: none. */
static uint32_t find_neighbour(const Dot *dot, const Operand *operand, uint32_t reg, unsigned distance) {
    int64_t offset = register_offset(dot, operand, reg) + (int64_t)distance * operand->own_bytes;
    uint32_t other = 0;
    while (other < dot->registers && register_offset(dot, operand, other) != offset) other++;
    return other;
}

/* Elements of the own axis that a thread loads together: the lowest bits of their indices are a register's, so that the
 * first of them lies at an aligned address. */
static unsigned neighbours_together(const Dot *dot, const Operand *operand) {
    unsigned bytes = tile_scalar_bytes(operand->scalar), width = 1;
    while (2 * width * bytes <= GPU_VECTOR_ALIGN && operand->k_bytes % (2 * width * bytes) == 0 &&
           find_neighbour(dot, operand, 0, width) < dot->registers)
        width *= 2;
    return width;
}

/* Steps of k of one iteration: as many as operands along k have in a vector and have registers for beside the sums.
 * `elements`: of such operands, at one step. */
static unsigned steps_together(const Dot *dot, unsigned elements) {
    enum { MOST_LOADED = 64 };
    unsigned steps = MOST_STEPS;
    for (unsigned o = 0; o < 2; o++) {
        const Operand *operand = &dot->operands[o];
        while (operand->along_k && steps * tile_scalar_bytes(operand->scalar) > GPU_VECTOR_ALIGN) steps /= 2;
    }
    while (steps > 1 && (dot->steps % steps || steps * elements > MOST_LOADED)) steps /= 2;
    return steps;
}

/* ---- operands in shared memory ---- */

/* The address of the thread's first element. Lanes past the result's extents read a row that exists. */
static void find_address(const Dot *dot, Operand *operand, TileValue *pointer) {
    Gpu *gpu = dot->gpu;
    operand->row = gpu_thread_index(gpu, &dot->layout, operand->own);
    TileValue *offset = gpu_binary(gpu, TILE_OP_MUL, operand->row, gpu_i64(gpu, operand->own_bytes));
    for (unsigned a = 0; a + 2 < dot->rank; a++) {
        TileValue *part = gpu_binary(gpu, TILE_OP_MUL, gpu_thread_index(gpu, &dot->layout, a), gpu_i64(gpu, operand->bytes[a]));
        offset = gpu_binary(gpu, TILE_OP_ADD, offset, part);
    }
    operand->base = operand->swizzled_rows ? pointer : tile_build_ptr_add(&gpu->b, pointer, offset);
}

/* The source of an operand of two axes is in shared memory, or is stored there as it lies. */
static void place_tile(Dot *dot, Operand *operand, TileValue *old) {
    Gpu *gpu = dot->gpu;
    bool transposed;
    TileValue *source = gpu_multiplied_source(old, &transposed), *pointer;
    const TileOp *shared = tile_value_def(source, TILE_OP_SHARED_TILE);
    const TileType *place;
    operand->along_k = transposed != (operand->own == ROW);
    if (shared && gpu_stays_shared(shared)) {
        place = tile_op_operand(shared, 0)->type;
        pointer = gpu_value(gpu, tile_op_operand(shared, 0));
        operand->tile = gpu_shared_tile(place);
        operand->along_k ^= operand->tile.by_columns;
    } else {
        place = gpu_put_type(gpu->module->context, source->type, operand->along_k, gpu_turns_rows(dot->op, source->type));
        operand->tile = gpu_shared_tile(place);
        operand->along_k ^= operand->tile.by_columns;
        gpu_open_shared(gpu, (uint64_t)gpu_shared_tile_bytes(&operand->tile), GPU_TILE_ALIGN);
        pointer = gpu->shared;
        gpu_put_tile(gpu, gpu_value(gpu, source), source->type, place, pointer);
    }
    int64_t bytes = tile_scalar_bytes(operand->scalar), row = operand->tile.row_bytes;
    operand->swizzled_rows = operand->tile.log_chunks && !operand->along_k;
    operand->own_bytes = operand->along_k ? row : bytes;
    operand->k_bytes = operand->along_k ? bytes : row;
    find_address(dot, operand, pointer);
}

/* The operand's shape with padding. Rows and columns of padding are never written; results that depend on them are
 * never used. */
static TileLayoutShape padded_shape(const Dot *dot, const Operand *operand, const TileType *type) {
    TileLayoutShape shape = tile_layout_shape(type);
    for (unsigned a = 0; a + 2 < dot->rank; a++) shape.extent[a] = tile_layout_extent(&dot->layout, a);
    shape.extent[operand->own] = tile_layout_extent(&dot->layout, operand->own);
    return shape;
}

/* Stores an operand of more axes row by row. */
static void store_rows(Dot *dot, Operand *operand, const TileValue *old) {
    Gpu *gpu = dot->gpu;
    TileLayoutShape shape = padded_shape(dot, operand, old->type);
    uint64_t bytes = tile_scalar_bytes(operand->scalar);
    GpuStrides strides = gpu_row_major(&shape, (unsigned)bytes);
    for (unsigned a = 0; a < shape.rank; a++) {
        bytes *= (uint64_t)shape.extent[a];
        operand->bytes[a] = strides.bytes[a];
    }
    gpu_open_shared(gpu, bytes, GPU_VECTOR_ALIGN);
    operand->along_k = operand->own + 2 == dot->rank;
    operand->own_bytes = strides.bytes[operand->own];
    operand->k_bytes = strides.bytes[2 * dot->rank - 3 - operand->own];
    find_address(dot, operand, gpu->shared);
    gpu_write_shared(gpu, gpu_value(gpu, old), old->type->layout, &strides);
}

/* ---- products ---- */

/* Where the elements of a step of k lie: the thread's own for each swizzle of a register's row. */
typedef struct Step {
    const Dot *dot;
    const Operand *operand;
    TileValue *k;
    TileValue *at[1 << TILE_MAX_LOG_CHUNKS];
} Step;

/* A row of k's chunks are permuted: those of the thread's columns, and of a register's, which have no bit in common. */
static TileValue *address_in_row(Step *step, uint32_t reg, int64_t row) {
    Gpu *gpu = step->dot->gpu;
    const Operand *operand = step->operand;
    int64_t bytes = register_offset(step->dot, operand, reg), mask = ((INT64_C(1) << operand->tile.log_chunks) - 1) * TILE_CHUNK_BYTES;
    TileValue *k = row ? gpu_binary(gpu, TILE_OP_ADD, step->k, gpu_i64(gpu, row)) : step->k;
    TileValue *offset = gpu_swizzled_column(gpu, &operand->tile, k, operand->row);
    if (bytes & mask) offset = gpu_binary(gpu, TILE_OP_XOR, offset, gpu_i64(gpu, bytes & mask));
    offset = gpu_binary(gpu, TILE_OP_ADD, offset, gpu_binary(gpu, TILE_OP_MUL, k, gpu_i64(gpu, operand->k_bytes)));
    if (bytes & ~mask) offset = gpu_binary(gpu, TILE_OP_ADD, offset, gpu_i64(gpu, bytes & ~mask));
    return tile_build_ptr_add(&gpu->b, operand->base, offset);
}

/* Of an operand that is swizzled, a row's part is exclusive-ored to k's. */
static TileValue *address_at(Step *step, int64_t swizzle) {
    Gpu *gpu = step->dot->gpu;
    const Operand *operand = step->operand;
    TileValue **at = &step->at[swizzle], *offset;
    if (*at) return *at;
    if (operand->tile.log_chunks && operand->along_k) {
        offset = gpu_swizzled_column(gpu, &operand->tile, operand->row, step->k);
        if (swizzle) offset = gpu_binary(gpu, TILE_OP_XOR, offset, gpu_i64(gpu, swizzle * TILE_CHUNK_BYTES));
    } else {
        offset = gpu_binary(gpu, TILE_OP_MUL, step->k, gpu_i64(gpu, operand->k_bytes));
    }
    return *at = tile_build_ptr_add(&gpu->b, operand->base, offset);
}

/* Loads the neighbours of which a register of the result takes the first one, `more` steps of k behind the step. */
static TileValue *load_neighbours(Step *step, uint32_t reg, int64_t more) {
    const Dot *dot = step->dot;
    const Operand *operand = step->operand;
    Gpu *gpu = dot->gpu;
    bool swizzled = operand->tile.log_chunks && operand->along_k;
    int64_t swizzle = swizzled ? gpu_chunk_swizzle(&operand->tile, gpu_register_index(&dot->layout, operand->own, reg)) : 0;
    int64_t offset = operand->swizzled_rows ? 0 : register_offset(dot, operand, reg) + more * operand->k_bytes;
    TileValue *address = operand->swizzled_rows ? address_in_row(step, reg, more) : address_at(step, swizzle);
    if (offset) address = tile_build_ptr_add(&gpu->b, address, gpu_i64(gpu, offset));
    const TileType *type = tile_type_vector(gpu->module->context, operand->scalar, operand->width, false);
    TileValue *value =
        tile_build_load(&gpu->b, type, address, NULL, NULL, (int64_t)operand->width * tile_scalar_bytes(operand->scalar));
    return operand->scalar == dot->sum ? value : tile_build_convert(&gpu->b, value, dot->sum);
}

static TileValue *lane_of(Gpu *gpu, TileValue *loaded, unsigned width, unsigned lane) {
    return width == 1 ? loaded : gpu_register(gpu, loaded, lane);
}

/* For each register of the result its element at each of the steps of k from this one on, loaded along k. */
static void load_along_k(Step *step, TileValue **values[], unsigned steps) {
    const Dot *dot = step->dot;
    const Operand *operand = step->operand;
    Gpu *gpu = dot->gpu;
    TileValue **loaded = TILE_NEW_ARRAY(gpu->arena, TileValue *, dot->registers);
    for (unsigned i = 0; i < steps; i++) {
        values[i] = TILE_NEW_ARRAY(gpu->arena, TileValue *, dot->registers);
        for (uint32_t r = 0; r < dot->registers; r++) {
            uint32_t first = operand->first[r];
            if (!loaded[first]) loaded[first] = load_neighbours(step, first, 0);
            values[i][r] = first == r ? lane_of(gpu, loaded[r], steps, i) : values[i][first];
        }
    }
}

/* The registers whose elements, and those of their neighbours, are loaded together; returns how many there are. */
static unsigned find_vectors(const Dot *dot, Operand *operand) {
    unsigned count = 0;
    bool *covered = TILE_NEW_ARRAY(dot->gpu->arena, bool, dot->registers);
    operand->vectors = TILE_NEW_ARRAY(dot->gpu->arena, uint32_t, dot->registers);
    for (uint32_t r = 0; r < dot->registers; r++) {
        if (operand->first[r] != r || covered[r]) continue;
        operand->vectors[count++] = r;
        for (unsigned n = 0; n < operand->width; n++) covered[find_neighbour(dot, operand, r, n)] = true;
    }
    return count;
}

/* The elements of one step, in vectors along the operand's own axis. */
static void load_vectors(Step *step, unsigned i, TileValue **vectors) {
    const Operand *operand = step->operand;
    for (unsigned v = 0; v < operand->vector_count; v++)
        vectors[v] = load_neighbours(step, operand->vectors[v], i);
}

/* For each register of the result its element of the vectors. */
static TileValue **elements_of(const Dot *dot, const Operand *operand, TileValue *const *vectors) {
    TileValue **registers = TILE_NEW_ARRAY(dot->gpu->arena, TileValue *, dot->registers);
    for (unsigned v = 0; v < operand->vector_count; v++)
        for (unsigned n = 0; n < operand->width; n++)
            registers[find_neighbour(dot, operand, operand->vectors[v], n)] = lane_of(dot->gpu, vectors[v], operand->width, n);
    for (uint32_t r = 0; r < dot->registers; r++) registers[r] = registers[operand->first[r]];
    return registers;
}

/* For each register of the result its element at one step, loaded along the operand's own axis. */
static TileValue **load_across(Step *step, unsigned i) {
    TileValue **vectors = TILE_NEW_ARRAY(step->dot->gpu->arena, TileValue *, step->dot->registers);
    load_vectors(step, i, vectors);
    return elements_of(step->dot, step->operand, vectors);
}

static TileValue *multiply_add(const Dot *dot, TileValue *a, TileValue *b, TileValue *sum) {
    Gpu *gpu = dot->gpu;
    if (tile_scalar_is_float(dot->sum)) return tile_build_ternary(&gpu->b, TILE_OP_FMA, a, b, sum);
    return gpu_binary(gpu, TILE_OP_ADD, sum, gpu_binary(gpu, TILE_OP_MUL, a, b));
}

/* The sums after the steps of k from this one on, in order: of each register, or all of them as one vector. */
static void multiply_steps(const Dot *dot, TileValue *k, TileValue **sums, unsigned steps) {
    TileValue **values[2][MOST_STEPS];
    Step at[2];
    for (unsigned o = 0; o < 2; o++) {
        at[o] = (Step){.dot = dot, .operand = &dot->operands[o], .k = k};
        if (dot->operands[o].along_k) load_along_k(&at[o], values[o], steps);
    }
    for (unsigned i = 0; i < steps; i++) {
        for (unsigned o = 0; o < 2; o++)
            if (!dot->operands[o].along_k) values[o][i] = load_across(&at[o], i);
        if (!dot->order)
            *sums = multiply_add(dot, gpu_join(dot->gpu, values[ROW][i], dot->registers),
                                 gpu_join(dot->gpu, values[COLUMN][i], dot->registers), *sums);
        for (uint32_t n = 0; dot->order && n < dot->registers; n++) {
            uint32_t r = dot->order[n];
            sums[r] = multiply_add(dot, values[ROW][i][r], values[COLUMN][i][r], sums[r]);
        }
    }
}

/* Has a thread so many sums that few warps hide from one another what they wait for, and registers for what is loaded ahead? */
static bool has_many_sums(const Dot *dot) {
    enum { MANY_SUMS = 128 };
    return dot->registers >= MANY_SUMS;
}

/* Are all tensors of at most two axes, and contiguous along one? */
static bool are_addresses_short(const TileFunc *func) {
    for (uint32_t i = 0; i < func->body.argument_count; i++) {
        const TileParameter *parameter = &func->parameters[i];
        const int64_t *stride = parameter->facts.stride;
        if (parameter->role == TILE_ROLE_EXTENT && parameter->axis > 1) return false;
        if (parameter->role == TILE_ROLE_DATA && stride[0] == TILE_UNKNOWN && stride[1] == TILE_UNKNOWN) return false;
    }
    return true;
}

/* Each product has a factor in common with the one before it: the columns of a row, and those of the next row backwards. A
 * register file delivers two operands in a cycle, a third one is what the instruction before has read in its place. Where
 * operands are not laid out for that, or addresses have more parts, the assembler gets one op, since it needs fewer
 * registers in an order of its own. */
static void choose_order(Dot *dot) {
    if (!gpu_turns_rows(dot->op, tile_op_operand(dot->op, 0)->type) || (!has_many_sums(dot) && !are_addresses_short(dot->gpu->func)))
        return;
    const uint32_t *row = dot->operands[ROW].first;
    dot->order = TILE_NEW_ARRAY(dot->gpu->arena, uint32_t, dot->registers);
    uint32_t count = 0, rows = 0;
    for (uint32_t first = 0; first < dot->registers; first++) {
        if (row[first] != first) continue;
        bool backwards = rows++ % 2;
        for (uint32_t i = 0; i < dot->registers; i++) {
            uint32_t r = backwards ? dot->registers - 1 - i : i;
            if (row[r] == first) dot->order[count++] = r;
        }
    }
}

/* Groups of so many steps in an iteration: while the last products of one are computed, the assembler lets the elements of
 * the next one be loaded, which it does not do from iteration to iteration. */
static unsigned count_groups(const Dot *dot, unsigned steps) {
    enum { STEPS_OF_ITERATION = 8, MOST_PRODUCTS = 512 };
    unsigned times = 1, most = has_many_sums(dot) ? 2 * MOST_PRODUCTS : MOST_PRODUCTS;
    if (dot->operands[0].along_k && dot->operands[1].along_k) return times; /* there are no registers for them */
    while (2 * times * steps <= STEPS_OF_ITERATION && 2 * times * steps * dot->registers <= most &&
           dot->steps % (2 * times * steps) == 0)
        times *= 2;
    return times;
}

/* One step on sums of single registers. */
static void multiply_step(const Dot *dot, TileValue **const values[2], TileValue **sums) {
    for (uint32_t n = 0; n < dot->registers; n++) {
        uint32_t r = dot->order[n];
        sums[r] = multiply_add(dot, values[ROW][r], values[COLUMN][r], sums[r]);
    }
}

/* The elements of one step of both operands. */
static void load_step(const Dot *dot, TileValue *k, unsigned i, TileValue **vectors) {
    for (unsigned o = 0; o < 2; o++) {
        Step step = {.dot = dot, .operand = &dot->operands[o], .k = k};
        load_vectors(&step, i, vectors);
        vectors += dot->operands[o].vector_count;
    }
}

/* Each iteration of the loop over k loads the elements of the next one's first step before the products of its own last one. The last
 * iteration loads those of the first step again, which are not used. */
static TileValue *multiply_ahead(Dot *dot, TileValue *acc, unsigned steps) {
    Gpu *gpu = dot->gpu;
    unsigned rows = dot->operands[ROW].vector_count, count = rows + dot->operands[COLUMN].vector_count;
    TileValue **carried = TILE_NEW_ARRAY(gpu->arena, TileValue *, count + 1), **vectors = carried + 1;
    TileValue **sums = TILE_NEW_ARRAY(gpu->arena, TileValue *, dot->registers);
    carried[0] = acc;
    load_step(dot, gpu_i64(gpu, 0), 0, vectors);
    TileBuilder outer = gpu->b;
    TileOp *loop = tile_build_for(&outer, gpu_i64(gpu, 0), gpu_i64(gpu, dot->steps), gpu_i64(gpu, steps), carried, count + 1);
    outer = gpu->b;
    gpu->b.block = &loop->regions[0];
    gpu->b.before = NULL;
    TileValue *k = loop->regions[0].arguments[0], *next = gpu_binary(gpu, TILE_OP_ADD, k, gpu_i64(gpu, steps));
    next = tile_build_ternary(&gpu->b, TILE_OP_SELECT, gpu_binary(gpu, TILE_OP_LT, next, gpu_i64(gpu, dot->steps)), next, gpu_i64(gpu, 0));
    for (unsigned i = 0; i < count; i++) vectors[i] = loop->regions[0].arguments[i + 2];
    for (uint32_t r = 0; r < dot->registers; r++) sums[r] = lane_of(gpu, loop->regions[0].arguments[1], dot->registers, r);
    for (unsigned i = 0; i < steps; i++) {
        TileValue **values[2] = {elements_of(dot, &dot->operands[ROW], vectors),
                                 elements_of(dot, &dot->operands[COLUMN], vectors + rows)};
        load_step(dot, i + 1 < steps ? k : next, i + 1 < steps ? i + 1 : 0, vectors);
        multiply_step(dot, (TileValue **const *)values, sums);
    }
    carried[0] = gpu_join(gpu, sums, dot->registers);
    tile_build_end(&gpu->b, TILE_OP_YIELD, carried, count + 1);
    gpu->b = outer;
    return tile_op_result(loop, 0);
}

static TileValue *multiply(Dot *dot, TileValue *acc, unsigned steps) {
    Gpu *gpu = dot->gpu;
    unsigned times = count_groups(dot, steps);
    bool across = !dot->operands[ROW].along_k && !dot->operands[COLUMN].along_k;
    if (dot->order && across && has_many_sums(dot)) return multiply_ahead(dot, acc, times * steps);
    TileBuilder outer = gpu->b;
    TileOp *loop = tile_build_for(&outer, gpu_i64(gpu, 0), gpu_i64(gpu, dot->steps), gpu_i64(gpu, times * steps), &acc, 1);
    outer = gpu->b;
    gpu->b.block = &loop->regions[0];
    gpu->b.before = NULL;
    TileValue *k = loop->regions[0].arguments[0], **sums = TILE_NEW_ARRAY(gpu->arena, TileValue *, dot->registers);
    sums[0] = loop->regions[0].arguments[1];
    for (uint32_t r = dot->registers; dot->order && r-- > 0;) sums[r] = lane_of(gpu, sums[0], dot->registers, r);
    for (unsigned i = 0; i < times; i++)
        multiply_steps(dot, i ? gpu_binary(gpu, TILE_OP_ADD, k, gpu_i64(gpu, i * steps)) : k, sums, steps);
    TileValue *sum = dot->order ? gpu_join(gpu, sums, dot->registers) : sums[0];
    tile_build_end(&gpu->b, TILE_OP_YIELD, &sum, 1);
    gpu->b = outer;
    return tile_op_result(loop, 0);
}

/* Steps of one iteration of the loop over k; each operand's width. */
static unsigned choose_widths(Dot *dot) {
    unsigned elements = 0;
    for (unsigned o = 0; o < 2; o++) {
        unsigned own = find_same(dot, &dot->operands[o]);
        if (dot->operands[o].along_k) elements += own;
    }
    unsigned steps = steps_together(dot, elements);
    for (unsigned o = 0; o < 2; o++) {
        Operand *operand = &dot->operands[o];
        operand->width = operand->along_k ? steps : neighbours_together(dot, operand);
        operand->vector_count = operand->along_k ? 0 : find_vectors(dot, operand);
    }
    return steps;
}

void gpu_lower_dot(Gpu *gpu, TileOp *op) {
    const TileType *type = op->results[0].type;
    Dot dot = {.gpu = gpu, .op = op, .layout = *type->layout, .rank = type->rank, .sum = type->scalar};
    dot.registers = tile_layout_registers(&dot.layout);
    dot.steps = tile_op_operand(op, 0)->type->extent[type->rank - 1];
    for (unsigned o = 0; o < 2; o++) {
        Operand *operand = &dot.operands[o];
        TileValue *old = tile_op_operand(op, o);
        operand->own = type->rank - 2u + o;
        operand->scalar = old->type->scalar;
        if (type->rank == 2)
            place_tile(&dot, operand, old);
        else
            store_rows(&dot, operand, old);
    }
    unsigned steps = choose_widths(&dot);
    choose_order(&dot);
    tile_map_set(&gpu->values, &op->results[0],
                 multiply(&dot, gpu_value(gpu, tile_op_named(op, TILE_OPERAND_SUM)), steps));
}
