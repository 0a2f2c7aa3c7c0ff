/* Products by tensor cores. The sums are fragments of mma, and stay so from product to product. An operand in shared
 * memory is loaded by load_matrix: directly if it is contiguous along k, as transposed matrices if elements of 16
 * bits are contiguous along its own axis. Elements of 8 bits that are contiguous along its own axis are loaded as
 * pairs by transposed matrices, and then rows or columns of the product must be in pairs, too (`pairs`, gpu-anchor):
 * of rows k and k + 1 of a matrix, lane 4 i + j gets elements 2 i and 2 i + 1. Two matrices, the second one beginning
 * two rows later, give it four neighbours along k of both elements, and a permutation of bytes collects those of each
 * in one word. Any other operand (f32 along its own axis, f64, bytes where columns could not be in pairs) is loaded
 * element by element. An operand in registers is used directly if the threads hold what they need, and otherwise
 * converted through shared memory. On a GPU whose mma on f8 is expanded to that on f16, a fragment is converted to
 * two of f16: once, and not for each instruction. */
#include "ptx/lowering/machine.h"

#include "lang/ir/operands.h"
#include "lang/scalar/scalar.h"

enum { WORD_BITS = 32, A_WORDS = 4, B_WORDS = 2, LOAD_WORDS = 4, SUMS = 4, STEP_BITS = 256 };
/* How many instructions ahead fragments are loaded, as an H200 runs them fastest. */
enum { AHEAD_OF_HALVES = 16, AHEAD = 8, AHEAD_OF_SEVERAL = 4 };

/* The registers of one instruction's fragment of an operand (or of the sums): consecutive registers of the layout;
 * or, for columns in pairs, the registers of two fragments alternate, `interleave` registers at a time. */
typedef struct Split {
    uint32_t registers, interleave; /* of a fragment; 0: they do not alternate */
} Split;

/* An operand's fragments: one for each block of its rows (A) or columns (B) and each step of k. */
typedef struct Operand {
    const TileType *type; /* as the product names it */
    TileLayout layout;
    unsigned own, k; /* axes */
    Split split;
    uint32_t words; /* of 32 bits, of a fragment */
    uint32_t count;
    uint32_t parts;        /* that an instruction takes one after the other */
    TileValue **fragments; /* so many for each; NULL until they are loaded */
    TileValue *value;      /* in registers of the layout; NULL: it is in shared memory */
    GpuTileAddresses places;
    bool along_k, by_matrix, stored_transposed;
    bool clears; /* elements past the end of k are undefined and must be cleared */
} Operand;

typedef struct Mma {
    Gpu *gpu;
    const TileOp *op;
    Operand a, b;
    TileLayout layout; /* of the sums */
    Split split;
    TileFragmentPlan plan;
} Mma;

/* Elements in a register of 32 bits. One of f64 takes two. */
static uint32_t packed(const Operand *operand) {
    uint32_t bits = tile_scalar_bits(operand->type->scalar);
    return bits < WORD_BITS ? WORD_BITS / bits : 1;
}

static const TileType *vector_of(Gpu *gpu, TileScalar scalar, uint32_t lanes) {
    return tile_type_vector(gpu->module->context, scalar, lanes, false);
}

/* The register that is number `at` of a fragment. */
static uint32_t register_of(Split split, uint32_t number, uint32_t at) {
    if (!split.interleave) return number * split.registers + at;
    uint32_t pair = number / 2 * 2 * split.registers, own = number % 2 * split.interleave;
    return pair + at / split.interleave * 2 * split.interleave + own + at % split.interleave;
}

/* Of `value`, which has the registers from that of fragment `first` on. */
static TileValue *pick(Gpu *gpu, TileValue *value, Split split, uint32_t first, uint32_t number) {
    if (tile_type_lanes(value->type) == (int64_t)split.registers) return value;
    int64_t *lanes = TILE_NEW_ARRAY(gpu->arena, int64_t, split.registers);
    for (uint32_t i = 0; i < split.registers; i++)
        lanes[i] = (int64_t)register_of(split, number, i) - register_of(split, first, 0);
    return tile_build_shuffle(&gpu->b, value, value, lanes, split.registers);
}

/* ---- where an operand is ---- */

/* Are the operand's rows or columns in pairs, so that 8-bit elements along m or n can be loaded by transposed
 * matrices? */
static bool is_paired(const Mma *mma, const Operand *operand) {
    return operand->own ? mma->plan.pairs_n : mma->plan.pairs_m;
}

/* Each lane supplies the address of a row of a matrix. Along k, rows are those of the operand's own axis; otherwise
 * they are steps of k, of which pairs of bytes need four in a lane. */
static TileLayout lanes_of_matrices(const Operand *operand, unsigned log_packed) {
    static const uint8_t pairs[] = {0, 2, 3, 1, 4};
    TileLayout layout = operand->layout;
    unsigned lane = tile_layout_first_bit(&layout, TILE_LAYOUT_LANE), first = layout.bits[TILE_LAYOUT_REGISTER];
    uint32_t k = UINT32_C(1) << tile_layout_axis_bit(&layout, operand->k);
    if (!operand->along_k && tile_scalar_bits(operand->type->scalar) == 8) {
        for (unsigned i = 0; i < TILE_LANE_BITS; i++) layout.map.column[lane + i] = k << pairs[i];
        return layout;
    }
    for (unsigned i = 0; i < 3; i++)
        layout.map.column[lane + i] = operand->along_k ? operand->layout.map.column[lane + 2 + i] : k << i;
    for (unsigned i = 0; i < 2; i++) {
        unsigned word = log_packed + i;
        layout.map.column[lane + 3 + i] = word < first ? layout.map.column[word] : 0;
    }
    return layout;
}

/* The operand is at the pointer, in the layout of the pointer type `place`. */
static void take_shared(Mma *mma, Operand *operand, TileValue *pointer, const TileType *place) {
    GpuSharedTile tile = gpu_shared_tile(place);
    unsigned log_packed = (unsigned)__builtin_ctz(packed(operand)), bits = tile_scalar_bits(place->scalar);
    operand->along_k = operand->stored_transposed != (operand->own == 0);
    operand->by_matrix = bits <= WORD_BITS && (operand->along_k || bits == (is_paired(mma, operand) ? 8 : 16));
    TileLayout lanes = operand->by_matrix ? lanes_of_matrices(operand, log_packed) : operand->layout;
    operand->places = gpu_tile_addresses(mma->gpu, pointer, &tile, &lanes, operand->stored_transposed);
}

/* Past the end of k both operands must be 0. */
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
        operand->value = gpu_move(gpu, gpu_value(gpu, old), operand->type, &have, &operand->layout);
        operand->value = clear_past_end(gpu, operand, operand->value, 0);
        return;
    }
    const TileType *place = gpu_shared_type(gpu->module->context, operand->type);
    GpuSharedTile tile = gpu_shared_tile(place);
    gpu_open_shared(gpu, (uint64_t)gpu_shared_tile_bytes(&tile), GPU_TILE_ALIGN);
    gpu_put_tile(gpu, gpu_value(gpu, old), operand->type, place, gpu->shared);
    take_shared(mma, operand, gpu->shared, place);
    operand->clears = true;
}

static bool becomes_f16(const Gpu *gpu, TileScalar scalar) {
    bool f8 = tile_scalar_is_float(scalar) && tile_scalar_bits(scalar) == 8;
    return f8 && tile_ptx_target_of(gpu->context->target)->fp8_mma_is_f16;
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
    operand->layout = tile_layout_fragment(&shape, kind, tile_scalar_bits(old->type->scalar), mma->plan);
    operand->words = number ? B_WORDS : A_WORDS;
    operand->split.registers = operand->words * WORD_BITS / tile_scalar_bits(old->type->scalar);
    if (number && mma->plan.pairs_n) operand->split.interleave = packed(operand);
    operand->count = tile_layout_registers(&operand->layout) / operand->split.registers;
    operand->parts = becomes_f16(gpu, old->type->scalar) ? 2 : 1;
    operand->fragments = TILE_NEW_ARRAY(gpu->arena, TileValue *, (size_t)operand->count * operand->parts);
    const TileOp *shared = gpu_find_shared(old, &operand->stored_transposed);
    const TileValue *place = shared ? tile_op_operand(shared, 0) : NULL;
    if (place)
        take_shared(mma, operand, gpu_value(gpu, place), place->type);
    else
        take_registers(mma, operand, old);
}

/* ---- fragments ---- */

/* Loads `count` consecutive registers of the layout from `first` on. */
static TileValue *load_elements(Gpu *gpu, Operand *operand, uint32_t first, uint32_t count) {
    const TileType *type = tile_type_scalar(gpu->module->context, operand->type->scalar);
    TileValue **registers = TILE_NEW_ARRAY(gpu->arena, TileValue *, count);
    for (uint32_t r = 0; r < count; r++)
        registers[r] = tile_build_load(&gpu->b, type, gpu_register_address(&operand->places, first + r), NULL, NULL, 0);
    return gpu_join(gpu, registers, count);
}

/* Lane 4 i + j has pairs of elements of k, k + 1, k + 2 and k + 3, one pair after the other; they are permuted to
 * words of four steps of k. */
static TileValue *part_pairs(Gpu *gpu, TileValue *loaded) {
    enum { BYTES = LOAD_WORDS * WORD_BITS / 8, STEPS = 4 };
    int64_t lanes[BYTES];
    for (unsigned i = 0; i < BYTES; i++) {
        unsigned word = i / STEPS, step = i % STEPS;
        lanes[i] = word / 2 * 2 * STEPS + 2 * step + word % 2;
    }
    return tile_build_shuffle(&gpu->b, loaded, loaded, lanes, BYTES);
}

static TileValue *load_matrices(Gpu *gpu, Operand *operand, uint32_t first, uint32_t count) {
    const TileType *type = vector_of(gpu, operand->type->scalar, count);
    TileValue *place = gpu_register_address(&operand->places, first);
    TileAttribute transposed = {.key = TILE_ATTRIBUTE_TRANSPOSED, .integer = 1};
    bool along_k = operand->along_k, pairs = !along_k && tile_scalar_bits(operand->type->scalar) == 8;
    TileValue *loaded =
        tile_op_result(tile_build_op(&gpu->b, TILE_OP_LOAD_MATRIX, &place, 1, &transposed, !along_k, &type, 1), 0);
    return pairs ? part_pairs(gpu, loaded) : loaded;
}

/* An instruction on f16 has half as many steps of k: those of half of the words. The choice of steps is the same for
 * both operands, so their order is free: the first two and the last two of each word. */
static void set_fragment(Gpu *gpu, Operand *operand, uint32_t number, TileValue *value) {
    TileValue **parts = &operand->fragments[(size_t)number * operand->parts];
    uint32_t count = operand->split.registers / 2, blocks = operand->words / 2;
    if (operand->parts == 1) {
        *parts = value;
        return;
    }
    int64_t *lanes = TILE_NEW_ARRAY(gpu->arena, int64_t, count);
    value = tile_build_convert(&gpu->b, value, TILE_F16);
    for (uint32_t part = 0; part < 2; part++) {
        for (uint32_t i = 0; i < count; i++) lanes[i] = part * count + i / 2 % blocks * 4 + i / 2 / blocks * 2 + i % 2;
        parts[part] = tile_build_shuffle(&gpu->b, value, value, lanes, count);
    }
}

/* Two fragments of B are loaded at once if a piece of the layout has two and they are loaded by matrices, or if they
 * alternate. */
static void load_fragments(Gpu *gpu, Operand *operand, uint32_t number) {
    uint32_t words = (1u << operand->layout.bits[TILE_LAYOUT_REGISTER]) / packed(operand);
    bool several = operand->split.interleave || (operand->by_matrix && words >= LOAD_WORDS);
    uint32_t together = several ? LOAD_WORDS / operand->words : 1;
    number -= number % together;
    uint32_t first = register_of(operand->split, number, 0), count = together * operand->split.registers;
    TileValue *loaded =
        operand->by_matrix ? load_matrices(gpu, operand, first, count) : load_elements(gpu, operand, first, count);
    if (operand->clears) loaded = clear_past_end(gpu, operand, loaded, first);
    for (uint32_t i = 0; i < together; i++)
        set_fragment(gpu, operand, number + i, pick(gpu, loaded, operand->split, number, number + i));
}

static TileValue *const *fragment(Gpu *gpu, Operand *operand, uint32_t number) {
    TileValue *const *parts = &operand->fragments[(size_t)number * operand->parts];
    if (!*parts && operand->value)
        set_fragment(gpu, operand, number, pick(gpu, operand->value, operand->split, 0, number));
    else if (!*parts)
        load_fragments(gpu, operand, number);
    return parts;
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

/* Along an axis, of a fragment's first register. */
static int64_t fragment_index(const TileLayout *layout, Split split, unsigned axis, uint32_t number) {
    return gpu_register_index(layout, axis, register_of(split, number, 0));
}

/* The position of an operand's fragment, along its own axis and k. */
typedef struct FragmentPosition {
    int64_t own, k;
} FragmentPosition;

static FragmentPosition *fragment_positions(Gpu *gpu, const Operand *operand) {
    FragmentPosition *positions = TILE_NEW_ARRAY(gpu->arena, FragmentPosition, operand->count);
    for (uint32_t i = 0; i < operand->count; i++)
        positions[i] = (FragmentPosition){fragment_index(&operand->layout, operand->split, operand->own, i),
                                          fragment_index(&operand->layout, operand->split, operand->k, i)};
    return positions;
}

static uint32_t find_fragment(const FragmentPosition *positions, int64_t own, int64_t k) {
    uint32_t number = 0;
    while (positions[number].own != own || positions[number].k != k) number++;
    return number;
}

/* The order of all sums, such that consecutive ones share the operand of which a warp has more blocks: all fragments
 * of the other operand are live at a time, but few of this one. */
static uint32_t *order_sums(const Mma *mma, uint32_t count) {
    uint32_t *order = TILE_NEW_ARRAY(mma->gpu->arena, uint32_t, count), columns = 1, at = 0;
    while (columns < count &&
           fragment_index(&mma->layout, mma->split, 0, columns) == fragment_index(&mma->layout, mma->split, 0, 0))
        columns++;
    bool by_columns = count % columns == 0 && count / columns <= columns;
    for (uint32_t i = 0; i < count; i++) order[i] = i;
    if (!by_columns) return order;
    for (uint32_t column = 0; column < columns; column++)
        for (uint32_t row = 0; row < count / columns; row++) order[at++] = row * columns + column;
    return order;
}

static Steps plan_steps(const Mma *mma, uint32_t count) {
    Gpu *gpu = mma->gpu;
    int64_t extent = tile_layout_extent(&mma->a.layout, 1), step = STEP_BITS / (int64_t)tile_scalar_bits(mma->a.type->scalar);
    uint32_t k_steps = (uint32_t)(extent / step), *order = order_sums(mma, count);
    bool halves = tile_scalar_bits(mma->a.type->scalar) == 16, several = gpu->products > 1;
    Steps steps = {.items = TILE_NEW_ARRAY(gpu->arena, Step, (size_t)k_steps * count),
                   .ahead = several  ? AHEAD_OF_SEVERAL
                            : halves ? AHEAD_OF_HALVES
                                     : AHEAD};
    FragmentPosition *a = fragment_positions(gpu, &mma->a), *b = fragment_positions(gpu, &mma->b);
    for (uint32_t k_step = 0; k_step < k_steps; k_step++)
        for (uint32_t i = 0; i < count; i++) {
            int64_t m = fragment_index(&mma->layout, mma->split, 0, order[i]),
                    n = fragment_index(&mma->layout, mma->split, 1, order[i]);
            uint32_t from_a = find_fragment(a, m, k_step * step), from_b = find_fragment(b, n, k_step * step);
            steps.items[steps.count++] = (Step){order[i], from_a, from_b};
        }
    return steps;
}

/* A fragment as the instruction takes it: f32 is rounded to tf32, before the first product with the fragment. */
static TileValue *take_part(Gpu *gpu, Operand *operand, uint32_t number, uint32_t part) {
    fragment(gpu, operand, number);
    TileValue **value = &operand->fragments[(size_t)number * operand->parts + part];
    if (operand->type->scalar != TILE_F32) return *value;
    const TileTarget *target = gpu->context->target;
    TileOpId rounding = target && target->has_tf32_even ? TILE_OP_ROUND_TF32 : TILE_OP_ROUND_TF32_AWAY;
    if (!tile_value_def(*value, rounding)) *value = tile_build_unary(&gpu->b, rounding, *value);
    return *value;
}

static TileValue *multiply(Mma *mma, TileValue *acc) {
    Gpu *gpu = mma->gpu;
    uint32_t registers = tile_layout_registers(&mma->layout), count = registers / SUMS, loaded = 0;
    TileValue **sums = TILE_NEW_ARRAY(gpu->arena, TileValue *, count);
    TileValue **all = TILE_NEW_ARRAY(gpu->arena, TileValue *, registers);
    const TileAttribute *precision = tile_op_get(mma->op, TILE_ATTRIBUTE_PRECISION);
    bool tf32 = mma->a.type->scalar == TILE_F32;
    for (uint32_t i = 0; i < count; i++) sums[i] = pick(gpu, acc, mma->split, 0, i);
    Steps steps = plan_steps(mma, count);
    for (uint32_t at = 0; at < steps.count; at++) {
        for (; loaded < steps.count && loaded < at + steps.ahead; loaded++) {
            fragment(gpu, &mma->a, steps.items[loaded].a);
            fragment(gpu, &mma->b, steps.items[loaded].b);
        }
        const Step *step = &steps.items[at];
        for (uint32_t part = 0; part < mma->a.parts; part++) {
            TileValue *a = take_part(gpu, &mma->a, step->a, part), *b = take_part(gpu, &mma->b, step->b, part);
            TileValue *operands[] = {a, b, sums[step->sum]};
            sums[step->sum] =
                tile_op_result(tile_build_op(&gpu->b, TILE_OP_MMA, operands, 3, precision, tf32, NULL, 1), 0);
        }
    }
    for (uint32_t i = 0; i < registers; i++)
        all[register_of(mma->split, i / SUMS, i % SUMS)] = gpu_register(gpu, sums[i / SUMS], i % SUMS);
    return gpu_join(gpu, all, registers);
}

void gpu_lower_mma(Gpu *gpu, TileOp *op) {
    Mma mma = {.gpu = gpu, .op = op, .layout = *op->results[0].type->layout, .split = {.registers = SUMS}};
    if (!gpu_dot_plan(op, &mma.plan)) {
        gpu_refuse(gpu, op, "has no warps: gpu-anchor comes before");
        return;
    }
    if (mma.plan.pairs_n) mma.split.interleave = 1;
    take_operand(&mma, &mma.a, 0);
    take_operand(&mma, &mma.b, 1);
    tile_map_set(&gpu->values, &op->results[0], multiply(&mma, gpu_value(gpu, tile_op_named(op, TILE_OPERAND_SUM))));
}
