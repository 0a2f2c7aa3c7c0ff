/* Products by tensor cores. The sums are fragments of mma, and stay them from product to product. An operand that lies
 * in shared memory comes from there by load_matrix, or element by element where elements are not of 16 bits and lie
 * along the wrong axis; one in registers is taken as it is where the threads have what they need, else it goes through
 * shared memory. */
#include "ptx/lower.h"

#include "lang/scalar.h"

enum { WORD_BITS = 32, A_WORDS = 4, B_WORDS = 2, LOAD_WORDS = 4 };
/* How many instructions ahead fragments are loaded, as an H200 runs them fastest. */
enum { AHEAD = 16, AHEAD_OF_TF32 = 8, AHEAD_OF_F8 = 8, AHEAD_OF_SEVERAL = 4 };

/* An operand's fragments: one for each block of its rows (A) or columns (B) and each step of k. */
typedef struct Operand {
    const TileType *type; /* as the product names it */
    TileLayout layout;
    unsigned own, k;           /* axes */
    uint32_t words, registers; /* of one fragment: of 32 bits, of elements */
    uint32_t count;
    TileValue **fragments; /* NULL until they are loaded */
    TileValue *value;      /* in registers of the layout; NULL where it lies in shared memory */
    GpuPlaces places;
    bool by_matrix, stored_transposed;
    bool clears; /* elements past the end of k are whatever they are */
} Operand;

typedef struct Mma {
    Gpu *gpu;
    const TileOp *op;
    Operand a, b;
    TileLayout layout; /* of the sums */
} Mma;

static uint32_t packed(const Operand *operand) { return WORD_BITS / tile_scalar_bits(operand->type->scalar); }

static const TileType *vector_of(Gpu *gpu, TileScalar scalar, uint32_t lanes) {
    return tile_type_vector(gpu->module->context, scalar, lanes, false);
}

/* ---- where an operand is ---- */

/* The rows of matrices lie along the axis across the chunks; each lane gives the address of one. */
static TileLayout lanes_of_matrices(const Operand *operand, unsigned log_packed) {
    TileLayout layout = operand->layout;
    unsigned lane = tile_layout_first_bit(&layout, TILE_LAYOUT_LANE), first = layout.bits[TILE_LAYOUT_REGISTER],
             rows = operand->stored_transposed == (operand->own == 0) ? operand->k : operand->own;
    for (unsigned i = 0; i < 3; i++)
        layout.map.column[lane + i] = UINT32_C(1) << (tile_layout_axis_bit(&layout, rows) + i);
    for (unsigned i = 0; i < 2; i++) {
        unsigned word = log_packed + i;
        layout.map.column[lane + 3 + i] = word < first ? layout.map.column[word] : 0;
    }
    return layout;
}

static void take_shared(Mma *mma, Operand *operand, TileValue *pointer, const TileType *stored) {
    GpuSharedTile tile = gpu_shared_tile(stored);
    unsigned log_packed = (unsigned)__builtin_ctz(packed(operand));
    bool along_k = operand->stored_transposed != (operand->own == 0); /* do chunks lie along k? */
    operand->by_matrix = along_k || tile_scalar_bits(stored->scalar) == 16;
    TileLayout lanes = operand->by_matrix ? lanes_of_matrices(operand, log_packed) : operand->layout;
    operand->places = gpu_places(mma->gpu, pointer, &tile, &lanes, operand->stored_transposed);
}

/* Past the end of k zeros have to stand in both operands. */
static TileValue *clear_past_end(Gpu *gpu, const Operand *operand, TileValue *value, uint32_t first) {
    int64_t extent = operand->type->extent[operand->k];
    if (tile_layout_extent(&operand->layout, operand->k) == extent) return value;
    TileValue *own = gpu_thread_index(gpu, &operand->layout, operand->k), *zero = NULL;
    uint32_t count = (uint32_t)tile_type_lanes(value->type);
    TileValue **registers = TILE_NEW_ARRAY(gpu->arena, TileValue *, count);
    zero = tile_build_bits(&gpu->b, tile_type_scalar(gpu->module->context, value->type->scalar), 0);
    for (uint32_t r = 0; r < count; r++) {
        TileValue *k = gpu_binary(gpu, TILE_OP_ADD, own,
                                  gpu_i64(gpu, gpu_register_index(&operand->layout, operand->k, first + r)));
        registers[r] = tile_build_ternary(&gpu->b, TILE_OP_SELECT, gpu_binary(gpu, TILE_OP_LT, k, gpu_i64(gpu, extent)),
                                          gpu_register(gpu, value, r), zero);
    }
    return gpu_join(gpu, registers, count);
}

static void take_registers(Mma *mma, Operand *operand, TileValue *old) {
    Gpu *gpu = mma->gpu;
    TileLayout have = *operand->type->layout;
    TileLinear source;
    if (gpu_stays_in_warp(&have, &operand->layout, &source)) {
        operand->value = gpu_move(gpu, gpu_value(gpu, old), operand->type->scalar, &have, &operand->layout);
        operand->value = clear_past_end(gpu, operand, operand->value, 0);
        return;
    }
    GpuSharedTile tile = gpu_shared_tile(operand->type);
    gpu_open_shared(gpu, (uint64_t)gpu_shared_tile_bytes(&tile), GPU_TILE_ALIGN);
    gpu_put_tile(gpu, gpu_value(gpu, old), operand->type, gpu->shared);
    take_shared(mma, operand, gpu->shared, operand->type);
    operand->clears = true;
}

static void take_operand(Mma *mma, Operand *operand, unsigned number) {
    Gpu *gpu = mma->gpu;
    TileValue *old = tile_op_operand(mma->op, number);
    TileFragment kind = number ? TILE_FRAGMENT_MMA_B : TILE_FRAGMENT_MMA_A;
    TileLayoutShape sums = gpu_dot_shape(mma->op->results[0].type), shape = gpu_dot_shape(old->type);
    operand->type = old->type;
    operand->own = number;
    operand->k = 1 - number;
    shape.extent[number] = sums.extent[number];
    operand->layout = tile_layout_fragment(&shape, kind, tile_scalar_bits(old->type->scalar), gpu->dots.log_warps_m,
                                           gpu->dots.log_warps_n);
    operand->words = number ? B_WORDS : A_WORDS;
    operand->registers = operand->words * packed(operand);
    operand->count = tile_layout_registers(&operand->layout) / operand->registers;
    operand->fragments = TILE_NEW_ARRAY(gpu->arena, TileValue *, operand->count);
    const TileOp *shared = gpu_find_shared(old, &operand->stored_transposed);
    if (shared)
        take_shared(mma, operand, gpu_value(gpu, tile_op_operand(shared, 0)), shared->results[0].type);
    else
        take_registers(mma, operand, old);
}

/* ---- fragments ---- */

static TileValue *load_elements(Gpu *gpu, Operand *operand, uint32_t first) {
    uint32_t count = operand->registers;
    const TileType *type = tile_type_scalar(gpu->module->context, operand->type->scalar);
    TileValue **registers = TILE_NEW_ARRAY(gpu->arena, TileValue *, count);
    for (uint32_t r = 0; r < count; r++)
        registers[r] = tile_build_load(&gpu->b, type, gpu_place(&operand->places, first + r), NULL, NULL, 0);
    TileValue *value = gpu_join(gpu, registers, count);
    return operand->clears ? clear_past_end(gpu, operand, value, first) : value;
}

static TileValue *pick(Gpu *gpu, TileValue *value, uint32_t first, uint32_t count) {
    if (tile_type_lanes(value->type) == (int64_t)count) return value;
    int64_t *lanes = TILE_NEW_ARRAY(gpu->arena, int64_t, count);
    for (uint32_t i = 0; i < count; i++) lanes[i] = first + i;
    return tile_build_shuffle(&gpu->b, value, value, lanes, count);
}

/* Two fragments of B come at once where a piece has two. */
static void load_matrices(Gpu *gpu, Operand *operand, uint32_t number) {
    uint32_t words = (1u << operand->layout.bits[TILE_LAYOUT_REGISTER]) / packed(operand);
    uint32_t together = words >= LOAD_WORDS ? LOAD_WORDS / operand->words : 1;
    number -= number % together;
    const TileType *type = vector_of(gpu, operand->type->scalar, together * operand->registers);
    TileValue *place = gpu_place(&operand->places, number * operand->registers);
    TileAttribute transposed = {.key = TILE_ATTRIBUTE_TRANSPOSED, .integer = 1};
    bool along_k = operand->stored_transposed != (operand->own == 0);
    TileValue *loaded =
        tile_op_result(tile_build_op(&gpu->b, TILE_OP_LOAD_MATRIX, &place, 1, &transposed, !along_k, &type, 1), 0);
    for (uint32_t i = 0; i < together; i++) {
        TileValue *picked = pick(gpu, loaded, i * operand->registers, operand->registers);
        if (operand->clears) picked = clear_past_end(gpu, operand, picked, (number + i) * operand->registers);
        operand->fragments[number + i] = picked;
    }
}

static TileValue *fragment(Gpu *gpu, Operand *operand, uint32_t number) {
    if (operand->fragments[number]) return operand->fragments[number];
    uint32_t first = number * operand->registers;
    if (operand->value)
        operand->fragments[number] = pick(gpu, operand->value, first, operand->registers);
    else if (operand->by_matrix)
        load_matrices(gpu, operand, number);
    else
        operand->fragments[number] = load_elements(gpu, operand, first);
    return operand->fragments[number];
}

/* ---- the product ---- */

/* An instruction: its sums, its operands' fragments. */
typedef struct Step {
    uint32_t sum, a, b;
} Step;

typedef struct Steps {
    Step *items;
    uint32_t count, ahead;
} Steps;

/* Where the fragments of an operand stand, along its own axis and k. */
typedef struct Stand {
    int64_t own, k;
} Stand;

static Stand *find_stands(Gpu *gpu, const Operand *operand) {
    Stand *stands = TILE_NEW_ARRAY(gpu->arena, Stand, operand->count);
    for (uint32_t i = 0; i < operand->count; i++)
        stands[i] = (Stand){gpu_register_index(&operand->layout, operand->own, i * operand->registers),
                            gpu_register_index(&operand->layout, operand->k, i * operand->registers)};
    return stands;
}

static uint32_t find_stand(const Stand *stands, int64_t own, int64_t k) {
    uint32_t number = 0;
    while (stands[number].own != own || stands[number].k != k) number++;
    return number;
}

/* The numbers of all sums, so that those that follow one another share the operand of which a warp has more blocks: of
 * the other all fragments are held at a time, and of this one few. */
static uint32_t *order_sums(const Mma *mma, uint32_t count) {
    enum { SUMS = 4 };
    uint32_t *order = TILE_NEW_ARRAY(mma->gpu->arena, uint32_t, count), columns = 1, at = 0;
    while (columns < count &&
           gpu_register_index(&mma->layout, 0, columns * SUMS) == gpu_register_index(&mma->layout, 0, 0))
        columns++;
    bool by_columns = count % columns == 0 && count / columns <= columns;
    for (uint32_t i = 0; i < count; i++) order[i] = i;
    if (!by_columns) return order;
    for (uint32_t column = 0; column < columns; column++)
        for (uint32_t row = 0; row < count / columns; row++) order[at++] = row * columns + column;
    return order;
}

static Steps plan_steps(const Mma *mma, uint32_t count) {
    enum { SUMS = 4 };
    Gpu *gpu = mma->gpu;
    int64_t extent = tile_layout_extent(&mma->a.layout, 1), step = 8 * (int64_t)packed(&mma->a);
    uint32_t trips = (uint32_t)(extent / step), *order = order_sums(mma, count);
    TileScalar scalar = mma->a.type->scalar;
    bool tf32 = scalar == TILE_F32, several = gpu->dots.count > 1,
         f8 = tile_scalar_is_float(scalar) && tile_scalar_bits(scalar) == 8;
    Steps steps = {.items = TILE_NEW_ARRAY(gpu->arena, Step, (size_t)trips * count),
                   .ahead = several ? AHEAD_OF_SEVERAL
                            : tf32  ? AHEAD_OF_TF32
                            : f8    ? AHEAD_OF_F8
                                    : AHEAD};
    Stand *a = find_stands(gpu, &mma->a), *b = find_stands(gpu, &mma->b);
    for (uint32_t trip = 0; trip < trips; trip++)
        for (uint32_t i = 0; i < count; i++) {
            int64_t m = gpu_register_index(&mma->layout, 0, order[i] * SUMS),
                    n = gpu_register_index(&mma->layout, 1, order[i] * SUMS);
            steps.items[steps.count++] = (Step){order[i], find_stand(a, m, trip * step), find_stand(b, n, trip * step)};
        }
    return steps;
}

static TileValue *multiply(Mma *mma, TileValue *acc) {
    enum { SUMS = 4 };
    Gpu *gpu = mma->gpu;
    uint32_t registers = tile_layout_registers(&mma->layout), count = registers / SUMS, loaded = 0;
    TileValue **sums = TILE_NEW_ARRAY(gpu->arena, TileValue *, count);
    TileValue **all = TILE_NEW_ARRAY(gpu->arena, TileValue *, registers);
    const TileAttribute *precision = tile_op_get(mma->op, TILE_ATTRIBUTE_PRECISION);
    bool tf32 = mma->a.type->scalar == TILE_F32;
    for (uint32_t i = 0; i < count; i++) sums[i] = pick(gpu, acc, i * SUMS, SUMS);
    Steps steps = plan_steps(mma, count);
    for (uint32_t at = 0; at < steps.count; at++) {
        for (; loaded < steps.count && loaded < at + steps.ahead; loaded++) {
            fragment(gpu, &mma->a, steps.items[loaded].a);
            fragment(gpu, &mma->b, steps.items[loaded].b);
        }
        const Step *step = &steps.items[at];
        TileValue *operands[] = {fragment(gpu, &mma->a, step->a), fragment(gpu, &mma->b, step->b), sums[step->sum]};
        sums[step->sum] = tile_op_result(tile_build_op(&gpu->b, TILE_OP_MMA, operands, 3, precision, tf32, NULL, 1), 0);
    }
    for (uint32_t r = 0; r < registers; r++) all[r] = gpu_register(gpu, sums[r / SUMS], r % SUMS);
    return gpu_join(gpu, all, registers);
}

void gpu_lower_mma(Gpu *gpu, TileOp *op) {
    Mma mma = {.gpu = gpu, .op = op, .layout = *op->results[0].type->layout};
    take_operand(&mma, &mma.a, 0);
    take_operand(&mma, &mma.b, 1);
    tile_map_set(&gpu->values, &op->results[0], multiply(&mma, gpu_value(gpu, tile_op_operand(op, 2))));
}
