/* Products by wgmma. A warpgroup computes 64 rows of sums, the warps' fragments of which are those of mma. `b` lies in
 * shared memory, in panels (TILE_SWIZZLE_PANELS), and `a` there or in registers, as fragments of mma. Sums are pending
 * until the product's dot_wait: an instruction's sums stay one value until then. */
#include "lang/ir/operands.h"
#include "ptx/lowering/machine.h"
#include "ptx/pipeline/copies.h"
#include "ptx/target/map.h"

enum { GROUP_ROWS = 64, MOST_COLUMNS = 256, STEP_BYTES = 32, UNIT_BYTES = 16, PART = 4, A_ELEMENTS = 8 };
enum { OTHER_REGISTERS = 72, COPYING_REGISTERS = 56, MOST_REGISTERS = 240 };

/* An operand in shared memory: its descriptor, for the warpgroup's first row. */
typedef struct Described {
    GpuSharedTile tile;
    TileValue *descriptor;
    bool along_k;
    int64_t panel_bytes, columns; /* of a panel */
} Described;

typedef struct Wgmma {
    Gpu *gpu;
    const TileOp *op;
    TileLayout layout; /* of the sums */
    int64_t columns;   /* of an instruction */
    int64_t step;      /* elements of k of an instruction */
    TileScalar scalar[2];
    Described a, b;
    TileValue *registers; /* a, if it is in registers */
    TileLayout fragments; /* their layout */
    uint32_t *sum_at;     /* the register of the sums' layout by row and column of the thread's part */
    uint32_t *a_at;       /* likewise of a */
    TileValue **words;    /* of a, by row of instructions and step of k; NULL: a is in shared memory */
} Wgmma;

/* ---- registers ---- */

GpuRegisters gpu_share_registers(const Gpu *gpu, const int64_t *warps) {
    const TilePtxTarget *target = tile_ptx_target_of(gpu->context->target);
    int64_t all = target->registers, multiplying = warps[0] * TILE_WARP_THREADS,
            copying = warps[1] * TILE_WARP_THREADS, each = all / (multiplying + copying) & ~INT64_C(7);
    if (gpu->sums / multiplying + OTHER_REGISTERS <= each || each > target->registers_thread) return (GpuRegisters){0};
    int64_t most = (all - COPYING_REGISTERS * copying) / multiplying & ~INT64_C(7);
    return (GpuRegisters){(uint32_t)each, (uint32_t)(most < MOST_REGISTERS ? most : MOST_REGISTERS), COPYING_REGISTERS};
}

uint32_t *gpu_index_registers(Gpu *gpu, const TileLayout *layout) {
    int64_t rows = tile_layout_extent(layout, 0), columns = tile_layout_extent(layout, 1);
    uint32_t *at = TILE_NEW_ARRAY(gpu->arena, uint32_t, (size_t)(rows * columns));
    for (uint32_t r = 0; r < tile_layout_registers(layout); r++)
        at[gpu_register_index(layout, 0, r) * columns + gpu_register_index(layout, 1, r)] = r;
    return at;
}

/* ---- operands in shared memory ---- */

static TileValue *build_descriptor(Gpu *gpu, TileValue *pointer, const Described *d) {
    TileAttribute attributes[] = {
        {.key = TILE_ATTRIBUTE_SWIZZLE, .integer = d->tile.row_bytes},
        {.key = TILE_ATTRIBUTE_STRIDE, .integer = 8 * d->tile.row_bytes},
        {.key = TILE_ATTRIBUTE_LEADING, .integer = d->along_k ? UNIT_BYTES : d->panel_bytes}};
    return tile_op_result(tile_build_op(&gpu->b, TILE_OP_WGMMA_DESCRIPTOR, &pointer, 1, attributes, 3, NULL, 1), 0);
}

/* Bytes from the operand's first element to the one at this index along its own axis and along k. */
static int64_t described_offset(const Described *d, int64_t own, int64_t k) {
    int64_t row = d->along_k ? own : k, column = d->along_k ? k : own;
    return column / d->columns * d->panel_bytes + row * d->tile.row_bytes +
           column % d->columns * tile_scalar_bytes(d->tile.scalar);
}

void gpu_number_warpgroups(Gpu *gpu) {
    enum { LOG_THREADS = 7 };
    TileValue *number = gpu_binary(gpu, TILE_OP_SHR, gpu->thread, gpu_i64(gpu, LOG_THREADS));
    gpu->warpgroup = tile_build_convert(&gpu->b, gpu_uniform(gpu, number), TILE_I64);
}

static bool take_shared(Wgmma *w, Described *d, unsigned number) {
    Gpu *gpu = w->gpu;
    bool transposed;
    const TileOp *shared = gpu_find_shared(tile_op_operand(w->op, number), &transposed);
    if (!shared) return false;
    const TileValue *place = tile_op_operand(shared, 0);
    *d = (Described){.tile = gpu_shared_tile(place->type), .along_k = transposed != (number == 0)};
    d->panel_bytes = d->tile.row_bytes * d->tile.shape.extent[0];
    d->columns = d->tile.shape.extent[1] / d->tile.panels;
    d->descriptor = build_descriptor(gpu, gpu_value(gpu, place), d);
    if (number) return true;
    TileValue *units = gpu_i64(gpu, described_offset(d, GROUP_ROWS, 0) / UNIT_BYTES);
    d->descriptor = gpu_binary(gpu, TILE_OP_ADD, d->descriptor, gpu_binary(gpu, TILE_OP_MUL, gpu->warpgroup, units));
    return true;
}

static TileValue *descriptor_at(Gpu *gpu, const Described *d, int64_t own, int64_t k) {
    int64_t units = described_offset(d, own, k) / UNIT_BYTES;
    return units ? gpu_binary(gpu, TILE_OP_ADD, d->descriptor, gpu_i64(gpu, units)) : d->descriptor;
}

/* ---- an operand in registers ---- */

static void take_registers(Wgmma *w, const TileFragmentPlan *plan) {
    Gpu *gpu = w->gpu;
    const TileValue *old = tile_op_operand(w->op, 0);
    TileLayoutShape shape = gpu_dot_shape(old->type);
    w->fragments = tile_layout_fragment(&shape, TILE_FRAGMENT_MMA_A, tile_scalar_bits(old->type->scalar), *plan);
    w->registers = gpu_move(gpu, gpu_value(gpu, old), old->type, old->type->layout, &w->fragments);
    w->a_at = gpu_index_registers(gpu, &w->fragments);
}

/* The words of an instruction: rows g and g + 8 of the first columns, then those of the columns 8 further. */
static TileValue *fragment_at(const Wgmma *w, int64_t row, int64_t k) {
    int64_t lanes[A_ELEMENTS], columns = tile_layout_extent(&w->fragments, 1);
    for (unsigned i = 0; i < A_ELEMENTS; i++)
        lanes[i] = w->a_at[(row + (i >> 1 & 1) * 8) * columns + k + (i >> 2) * 8 + (i & 1)];
    return tile_build_shuffle(&w->gpu->b, w->registers, w->registers, lanes, A_ELEMENTS);
}

/* ---- sums ---- */

/* The registers of the layout that an instruction's sums are, in its order. */
static int64_t *lanes_of_sums(const Wgmma *w, int64_t row, int64_t column) {
    int64_t *lanes = TILE_NEW_ARRAY(w->gpu->arena, int64_t, (size_t)(w->columns / 2)),
            columns = tile_layout_extent(&w->layout, 1);
    for (int64_t i = 0; i < w->columns / 2; i++)
        lanes[i] = w->sum_at[(row + (i >> 1 & 1) * 8) * columns + column + i / PART * 8 + (i & 1)];
    return lanes;
}

/* The first rows of the instructions of a warpgroup, as the thread's part of the index. */
static unsigned find_rows(const Wgmma *w, int64_t rows[], unsigned most) {
    unsigned count = 0;
    for (uint32_t r = 0; r < tile_layout_registers(&w->layout); r++) {
        int64_t row = gpu_register_index(&w->layout, 0, r);
        bool known = (row & 8) != 0;
        for (unsigned i = 0; i < count; i++) known |= rows[i] == row;
        if (!known && count < most) rows[count++] = row;
    }
    return count;
}

static int64_t choose_columns(int64_t columns) { return columns <= MOST_COLUMNS ? columns : MOST_COLUMNS; }

/* ---- the product ---- */

static TileValue *multiply(const Wgmma *w, TileValue *words, int64_t row, int64_t column, int64_t k, TileValue *sum) {
    Gpu *gpu = w->gpu;
    const TileType *types[] = {tile_type_scalar(gpu->module->context, w->scalar[0]),
                               tile_type_scalar(gpu->module->context, w->scalar[1])};
    int64_t transposed[] = {!w->registers && !w->a.along_k, !w->b.along_k}, init = TILE_PARTS_INIT;
    TileAttribute attributes[] = {{.key = TILE_ATTRIBUTE_TYPES, .count = 2, .types = types},
                                  {.key = TILE_ATTRIBUTE_TRANSPOSED_AB, .count = 2, .integers = transposed},
                                  {.key = TILE_ATTRIBUTE_PARTS, .count = 1, .integers = &init}};
    TileValue *operands[] = {words ? words : descriptor_at(gpu, &w->a, row, k),
                             descriptor_at(gpu, &w->b, column, k), sum};
    const TileType *sums = tile_type_vector(gpu->module->context, w->op->results[0].type->scalar, w->columns / 2, false);
    return tile_op_result(
        tile_build_op(&gpu->b, TILE_OP_WGMMA, operands, sum ? 3 : 2, attributes, sum ? 3 : 2, &sums, 1), 0);
}

/* In front of the fence, behind which no ordinary op may write them. */
static void take_words(Wgmma *w, const int64_t *rows, unsigned count, int64_t depth) {
    int64_t steps = depth / w->step;
    w->words = TILE_NEW_ARRAY(w->gpu->arena, TileValue *, (size_t)(count * steps));
    for (unsigned r = 0; r < count; r++)
        for (int64_t k = 0; k < steps; k++) w->words[r * steps + k] = fragment_at(w, rows[r], k * w->step);
}

/* The sums that the product goes on with: pending ones of the product before it, or registers; NULL: 0. */
static TileValue *first_sum(const Wgmma *w, const GpuPendingSums *before, unsigned number, int64_t row, int64_t column) {
    const TileOp *constant = tile_value_def(tile_op_named(w->op, TILE_OPERAND_SUM), TILE_OP_CONST);
    if (before) return before->sums[number];
    if (constant && !tile_op_get(constant, TILE_ATTRIBUTE_VALUE)->bits) return NULL;
    TileValue *acc = gpu_value(w->gpu, tile_op_named(w->op, TILE_OPERAND_SUM));
    return tile_build_shuffle(&w->gpu->b, acc, acc, lanes_of_sums(w, row, column), (unsigned)(w->columns / 2));
}

static void build_products(Wgmma *w) {
    Gpu *gpu = w->gpu;
    enum { MOST_ROWS = 8 };
    int64_t rows[MOST_ROWS], depth = tile_op_operand(w->op, 0)->type->extent[1];
    unsigned row_count = find_rows(w, rows, MOST_ROWS);
    const GpuPendingSums *before = tile_map_get(&gpu->pending, tile_op_named(w->op, TILE_OPERAND_SUM));
    GpuPendingSums *pending = TILE_NEW(gpu->arena, GpuPendingSums);
    int64_t columns = w->op->results[0].type->extent[1];
    pending->sums = TILE_NEW_ARRAY(gpu->arena, TileValue *, (size_t)(row_count * (columns / w->columns)));
    pending->lanes = TILE_NEW_ARRAY(gpu->arena, int64_t *, (size_t)(row_count * (columns / w->columns)));
    for (unsigned r = 0; r < row_count; r++)
        for (int64_t column = 0; column < columns; column += w->columns) {
            pending->sums[pending->count] = first_sum(w, before, pending->count, rows[r], column);
            pending->lanes[pending->count++] = lanes_of_sums(w, rows[r], column);
        }
    if (w->registers) take_words(w, rows, row_count, depth);
    gpu_build_plain(&gpu->b, TILE_OP_WGMMA_FENCE);
    for (int64_t k = 0; k < depth; k += w->step)
        for (unsigned i = 0; i < pending->count; i++) {
            int64_t parts = columns / w->columns, row = i / parts;
            TileValue *words = w->words ? w->words[row * (depth / w->step) + k / w->step] : NULL;
            pending->sums[i] = multiply(w, words, rows[row], i % parts * w->columns, k, pending->sums[i]);
        }
    gpu_build_plain(&gpu->b, TILE_OP_WGMMA_COMMIT);
    tile_map_set(&gpu->pending, &w->op->results[0], pending);
}

void gpu_lower_wgmma(Gpu *gpu, TileOp *op) {
    const TileType *a = tile_op_operand(op, 0)->type, *b = tile_op_operand(op, 1)->type;
    Wgmma w = {.gpu = gpu, .op = op, .layout = *op->results[0].type->layout, .scalar = {a->scalar, b->scalar}};
    TileFragmentPlan plan;
    if (!gpu_dot_plan(op, &plan) || !take_shared(&w, &w.b, 1)) {
        gpu_refuse(gpu, op, "has no warps, or its second operand is not in shared memory");
        return;
    }
    w.columns = choose_columns(op->results[0].type->extent[1]);
    w.step = STEP_BYTES / tile_scalar_bytes(a->scalar);
    w.sum_at = gpu_index_registers(gpu, &w.layout);
    if (!take_shared(&w, &w.a, 0)) take_registers(&w, &plan);
    build_products(&w);
}

void gpu_lower_dot_wait(Gpu *gpu, TileOp *op) {
    const GpuPendingSums *pending = tile_map_get(&gpu->pending, tile_op_operand(op, 0));
    if (!pending) {
        gpu_refuse(gpu, op, "waits for no product by wgmma");
        return;
    }
    TileLayout layout = *op->results[0].type->layout;
    const TileAttribute *groups = tile_op_get(op, TILE_ATTRIBUTE_PENDING);
    const TileType **types = TILE_NEW_ARRAY(gpu->arena, const TileType *, pending->count);
    TileValue **registers = TILE_NEW_ARRAY(gpu->arena, TileValue *, tile_layout_registers(&layout));
    for (unsigned i = 0; i < pending->count; i++) types[i] = pending->sums[i]->type;
    TileOp *wait =
        tile_build_op(&gpu->b, TILE_OP_WGMMA_WAIT, pending->sums, pending->count, groups, 1, types, pending->count);
    for (unsigned i = 0; wait && i < pending->count; i++)
        for (int64_t lane = 0; lane < tile_type_lanes(types[i]); lane++)
            registers[pending->lanes[i][lane]] = gpu_register(gpu, tile_op_result(wait, i), (uint32_t)lane);
    if (wait) tile_map_set(&gpu->values, &op->results[0], gpu_join(gpu, registers, tile_layout_registers(&layout)));
}
