/* Products by wgmma. A warpgroup computes 64 rows of sums, the warps' fragments of which are those of mma. `b` lies in
 * shared memory, in panels (TILE_SWIZZLE_PANELS), and `a` there or in registers, as fragments of mma. Sums are pending
 * until the product's dot_wait: an instruction's sums stay one value until then. */
#include "lang/ir/operands.h"
#include "ptx/lowering/machine.h"
#include "ptx/pipeline/copies.h"

enum { GROUP_ROWS = 64, STEP_BYTES = 32, UNIT_BYTES = 16, PART = 4 };
enum { WORD_BITS = 32, A_WORDS = 4, GROUP_LANES = 4, HALF_ROWS = 8 };

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
    bool pairs;        /* its columns are the even ones of the sums, then the odd ones */
    TileScalar scalar[2];
    Described a, b;
    TileValue *registers; /* a, if it is in registers */
    TileLayout fragments; /* their layout */
    uint32_t *sum_at;     /* the register of the sums' layout by row and column of the thread's part */
    uint32_t *a_at;       /* likewise of a */
    TileValue **taken;    /* fragments of a, of each step of k one after the other, for each of the part's rows */
} Wgmma;

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

/* Of k, which warpgroups share. */
static int64_t depth_of(const Wgmma *w) { return tile_op_operand(w->op, 0)->type->extent[1] / gpu_dot_parts(w->op); }

static void move_descriptor(Gpu *gpu, Described *d, TileValue *count, int64_t k) {
    TileValue *units = gpu_i64(gpu, described_offset(d, 0, k) / UNIT_BYTES);
    d->descriptor = gpu_binary(gpu, TILE_OP_ADD, d->descriptor, gpu_binary(gpu, TILE_OP_MUL, count, units));
}

/* Several parts may share a panel. */
static void begin_at_part(const Wgmma *w, Described *d) {
    Gpu *gpu = w->gpu;
    int64_t depth = depth_of(w), together = d->along_k && depth < d->columns ? d->columns / depth : 1;
    if (together == 1 || gpu_dot_parts(w->op) <= together) {
        move_descriptor(gpu, d, gpu->warpgroup, depth);
        return;
    }
    move_descriptor(gpu, d, gpu_binary(gpu, TILE_OP_SHR, gpu->warpgroup, gpu_i64(gpu, gpu_floor_log2(together))), d->columns);
    move_descriptor(gpu, d, gpu_binary(gpu, TILE_OP_AND, gpu->warpgroup, gpu_i64(gpu, together - 1)), depth);
}

static bool take_shared(Wgmma *w, Described *d, unsigned number) {
    Gpu *gpu = w->gpu;
    bool transposed;
    const TileOp *shared = gpu_find_shared(tile_op_operand(w->op, number), &transposed);
    if (!shared) return false;
    const TileValue *place = tile_op_operand(shared, 0);
    *d = (Described){.tile = gpu_shared_tile(place->type), .along_k = transposed != (number == 0)};
    d->panel_bytes = d->tile.row_bytes * d->tile.shape.extent[0];
    d->columns = d->tile.columns;
    d->descriptor = build_descriptor(gpu, gpu_value(gpu, place), d);
    if (number && gpu_dot_parts(w->op) > 1) begin_at_part(w, d);
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
    w->fragments = gpu_first_fragments(w->op, plan);
    w->registers = gpu_move(gpu, gpu_value(gpu, old), old->type, old->type->layout, &w->fragments);
    if (old->type->scalar == TILE_F32) w->registers = tile_build_unary(&gpu->b, TILE_OP_ROUND_TF32, w->registers);
    w->a_at = gpu_index_registers(gpu, &w->fragments);
}

/* The words of an instruction: rows g and g + 8 of the first columns, then those of the columns 4 words further. */
static TileValue *fragment_at(const Wgmma *w, int64_t row, int64_t k) {
    enum { MOST = A_WORDS * WORD_BITS / 8 };
    int64_t lanes[MOST], columns = tile_layout_extent(&w->fragments, 1);
    unsigned packed = WORD_BITS / tile_scalar_bits(w->scalar[0]);
    for (unsigned i = 0; i < A_WORDS * packed; i++) {
        unsigned word = i / packed, column = word / 2 * GROUP_LANES * packed + i % packed;
        lanes[i] = w->a_at[(row + word % 2 * HALF_ROWS) * columns + k + column];
    }
    return tile_build_shuffle(&w->gpu->b, w->registers, w->registers, lanes, A_WORDS * packed);
}

/* ---- sums ---- */

/* The column of the sums that is this one of the instructions, whose lanes have two of eight columns each, or of sixteen where these lie in
 * pairs. */
static int64_t column_of_sums(const Wgmma *w, int64_t column) {
    int64_t half = w->op->results[0].type->extent[1] / 2;
    return w->pairs ? column % half * 2 + column / half : column;
}

/* The registers of the layout that an instruction's sums are, in its order. */
static int64_t *lanes_of_sums(const Wgmma *w, int64_t row, int64_t column) {
    int64_t *lanes = TILE_NEW_ARRAY(w->gpu->arena, int64_t, (size_t)(w->columns / 2)),
            columns = tile_layout_extent(&w->layout, 1);
    for (int64_t i = 0; i < w->columns / 2; i++)
        lanes[i] = w->sum_at[(row + (i >> 1 & 1) * 8) * columns + column_of_sums(w, column + i / PART * 8 + (i & 1))];
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

/* ---- the product ---- */

/* The instructions of a product: rows and columns of sums. */
typedef struct Parts {
    int64_t rows[8], columns; /* columns: how many stand side by side */
    unsigned count;
} Parts;

static Parts find_parts(const Wgmma *w) {
    Parts parts = {.columns = w->op->results[0].type->extent[1] / w->columns};
    unsigned rows = find_rows(w, parts.rows, sizeof parts.rows / sizeof *parts.rows);
    parts.count = rows * (unsigned)parts.columns;
    return parts;
}

/* Fragments are made in front of the fence that tells the instructions of their registers. */
static void take_fragments(Wgmma *w, const Parts *parts) {
    int64_t depth = depth_of(w);
    unsigned rows = parts->count / (unsigned)parts->columns, at = 0;
    w->taken = TILE_NEW_ARRAY(w->gpu->arena, TileValue *, (size_t)(rows * depth / w->step));
    for (unsigned r = 0; r < rows; r++)
        for (int64_t k = 0; k < depth; k += w->step) w->taken[at++] = fragment_at(w, parts->rows[r], k);
}

static TileValue *operand_a(const Wgmma *w, const Parts *parts, unsigned row, int64_t k) {
    int64_t steps = depth_of(w) / w->step;
    return w->registers ? w->taken[row * steps + k / w->step] : descriptor_at(w->gpu, &w->a, parts->rows[row], k);
}

static TileValue *multiply(const Wgmma *w, const Parts *parts, unsigned part, int64_t k, TileValue *sum) {
    Gpu *gpu = w->gpu;
    int64_t column = part % parts->columns * w->columns;
    const TileType *types[] = {tile_type_scalar(gpu->module->context, w->scalar[0]),
                               tile_type_scalar(gpu->module->context, w->scalar[1])};
    int64_t transposed[] = {!w->registers && !w->a.along_k, !w->b.along_k}, init = TILE_PARTS_INIT;
    TileAttribute attributes[] = {{.key = TILE_ATTRIBUTE_TYPES, .count = 2, .types = types},
                                  {.key = TILE_ATTRIBUTE_TRANSPOSED_AB, .count = 2, .integers = transposed},
                                  {.key = TILE_ATTRIBUTE_PARTS, .count = 1, .integers = &init}};
    TileValue *operands[] = {operand_a(w, parts, part / (unsigned)parts->columns, k),
                             descriptor_at(gpu, &w->b, column, k), sum};
    const TileType *sums = tile_type_vector(gpu->module->context, w->op->results[0].type->scalar, w->columns / 2, false);
    return tile_op_result(
        tile_build_op(&gpu->b, TILE_OP_WGMMA, operands, sum ? 3 : 2, attributes, sum ? 3 : 2, &sums, 1), 0);
}

/* The sums that the instruction goes on from: pending ones of the product before it, or registers; NULL: 0. */
static TileValue *first_sum(const Wgmma *w, const GpuPendingSums *before, unsigned number, int64_t row, int64_t column) {
    if (gpu_dot_promotes(w->op) || gpu_begins_at_zero(w->op)) return NULL;
    if (before) return before->sums[number];
    TileValue *acc = gpu_value(w->gpu, tile_op_named(w->op, TILE_OPERAND_SUM));
    return tile_build_shuffle(&w->gpu->b, acc, acc, lanes_of_sums(w, row, column), (unsigned)(w->columns / 2));
}

/* Begins the products of so many parts from `first` on, which go on from the sums and give them. */
static void begin_parts(const Wgmma *w, const Parts *parts, unsigned first, unsigned count, TileValue **sums) {
    int64_t depth = depth_of(w);
    gpu_build_plain(&w->gpu->b, TILE_OP_WGMMA_FENCE);
    for (int64_t k = 0; k < depth; k += w->step)
        for (unsigned i = first; i < first + count; i++)
            sums[i] = multiply(w, parts, i, k, sums[i]);
    gpu_build_plain(&w->gpu->b, TILE_OP_WGMMA_COMMIT);
}

/* The sum of what is there and a complete sum of an instruction: one fma where what is there is multiplied first. */
static TileValue *promote(Gpu *gpu, const GpuPendingSums *pending, int64_t lane, TileValue *before, TileValue *complete) {
    if (!before) return complete;
    if (pending->factors) return tile_build_ternary(&gpu->b, TILE_OP_FMA, before, pending->factors[lane], complete);
    return gpu_binary(gpu, TILE_OP_ADD, before, complete);
}

/* Waits for the sums, which become registers of the layout, or are added to what is there. */
static void complete_sums(Gpu *gpu, const GpuPendingSums *pending, const TileAttribute *groups, TileValue **registers) {
    const TileType **types = TILE_NEW_ARRAY(gpu->arena, const TileType *, pending->count);
    for (unsigned i = 0; i < pending->count; i++) types[i] = pending->sums[i]->type;
    TileOp *wait =
        tile_build_op(&gpu->b, TILE_OP_WGMMA_WAIT, pending->sums, pending->count, groups, 1, types, pending->count);
    for (unsigned i = 0; wait && i < pending->count; i++)
        for (int64_t lane = 0; lane < tile_type_lanes(types[i]); lane++) {
            int64_t at = pending->lanes[i][lane];
            TileValue *complete = gpu_register(gpu, tile_op_result(wait, i), (uint32_t)lane);
            registers[at] = promote(gpu, pending, at, registers[at], complete);
        }
}

static TileValue **registers_of(const Wgmma *w, const TileValue *tile) {
    uint32_t count = tile_layout_registers(&w->layout);
    TileValue **registers = TILE_NEW_ARRAY(w->gpu->arena, TileValue *, count), *value = gpu_value(w->gpu, tile);
    for (uint32_t r = 0; r < count; r++) registers[r] = gpu_register(w->gpu, value, r);
    return registers;
}

/* The product that nothing but this op takes as what its sums are added to; NULL: it is none. */
static const TileOp *multiplied_before(const Wgmma *w) {
    const TileValue *sum = tile_op_named(w->op, TILE_OPERAND_SUM);
    const TileOp *mul = tile_value_def(sum, TILE_OP_MUL);
    return mul && tile_value_has_one_use(sum) && !w->gpu->context->settings.no_contract ? mul : NULL;
}

/* The registers that sums are added to; NULL for each: 0. */
static void begin_promoted(const Wgmma *w, GpuPendingSums *pending) {
    const TileOp *mul = multiplied_before(w);
    if (gpu_begins_at_zero(w->op)) {
        pending->promoted = TILE_NEW_ARRAY(w->gpu->arena, TileValue *, tile_layout_registers(&w->layout));
        return;
    }
    pending->promoted = registers_of(w, mul ? tile_op_operand(mul, 0) : tile_op_named(w->op, TILE_OPERAND_SUM));
    if (mul) pending->factors = registers_of(w, tile_op_operand(mul, 1));
}

/* One part after the other, or one while the next is under way, so that registers hold the sums of one or two; only the last one is left pending. */
static void promote_parts(const Wgmma *w, const Parts *parts, GpuPendingSums *pending) {
    unsigned ahead = (unsigned)gpu_promoted_together(w->op) - 1, last = parts->count - 1;
    begin_promoted(w, pending);
    for (unsigned begun = 0, i = 0; i < last; i++) {
        GpuPendingSums part = {.count = 1, .sums = &pending->sums[i], .lanes = &pending->lanes[i], .factors = pending->factors};
        for (; begun <= i + ahead; begun++) begin_parts(w, parts, begun, 1, pending->sums);
        TileAttribute groups = {.key = TILE_ATTRIBUTE_PENDING, .integer = ahead};
        complete_sums(w->gpu, &part, &groups, pending->promoted);
    }
    if (!ahead || !last) begin_parts(w, parts, last, 1, pending->sums);
    pending->sums += last, pending->lanes += last, pending->count = 1;
}

static void build_products(Wgmma *w) {
    Gpu *gpu = w->gpu;
    Parts parts = find_parts(w);
    if (w->registers) take_fragments(w, &parts);
    const GpuPendingSums *before = tile_map_get(&gpu->pending, tile_op_named(w->op, TILE_OPERAND_SUM));
    GpuPendingSums *pending = TILE_NEW(gpu->arena, GpuPendingSums);
    pending->sums = TILE_NEW_ARRAY(gpu->arena, TileValue *, parts.count);
    pending->lanes = TILE_NEW_ARRAY(gpu->arena, int64_t *, parts.count);
    for (; pending->count < parts.count; pending->count++) {
        unsigned i = pending->count;
        int64_t row = parts.rows[i / parts.columns], column = i % parts.columns * w->columns;
        pending->sums[i] = first_sum(w, before, i, row, column);
        pending->lanes[i] = lanes_of_sums(w, row, column);
    }
    if (gpu_dot_promotes(w->op))
        promote_parts(w, &parts, pending);
    else
        begin_parts(w, &parts, 0, parts.count, pending->sums);
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
    w.columns = gpu_wgmma_columns(op);
    w.pairs = gpu_lie_in_pairs(&op->results[0]);
    w.step = STEP_BYTES / tile_scalar_bytes(a->scalar);
    w.sum_at = gpu_index_registers(gpu, &w.layout);
    if (!take_shared(&w, &w.a, 0)) take_registers(&w, &plan);
    build_products(&w);
}

/* The product whose sums, still pending, the loop gives. */
static const TileOp *find_carried(const TileValue *value) {
    if (!value->op || value->op->id != TILE_OP_FOR) return NULL;
    const TileOp *wait = tile_value_def(tile_op_operand(value->op->regions[0].last, value->index), TILE_OP_DOT_WAIT);
    return wait ? tile_value_def(tile_op_operand(wait, 0), TILE_OP_DOT) : NULL;
}

/* The registers of the loop's result as sums of instructions. */
static const GpuPendingSums *take_carried(Gpu *gpu, const TileValue *result) {
    const TileOp *dot = find_carried(result);
    if (!dot || !gpu_dot_is_wgmma(dot)) return NULL;
    Wgmma w = {.gpu = gpu, .op = dot, .layout = *result->type->layout, .columns = gpu_wgmma_columns(dot), .pairs = gpu_lie_in_pairs(&dot->results[0])};
    w.sum_at = gpu_index_registers(gpu, &w.layout);
    Parts parts = find_parts(&w);
    TileValue *value = gpu_value(gpu, result);
    GpuPendingSums *pending = TILE_NEW(gpu->arena, GpuPendingSums);
    pending->sums = TILE_NEW_ARRAY(gpu->arena, TileValue *, parts.count);
    pending->lanes = TILE_NEW_ARRAY(gpu->arena, int64_t *, parts.count);
    for (; pending->count < parts.count; pending->count++) {
        unsigned i = pending->count;
        pending->lanes[i] = lanes_of_sums(&w, parts.rows[i / parts.columns], i % parts.columns * w.columns);
        pending->sums[i] = tile_build_shuffle(&gpu->b, value, value, pending->lanes[i], (unsigned)(w.columns / 2));
    }
    return pending;
}

void gpu_lower_dot_wait(Gpu *gpu, TileOp *op) {
    const TileValue *sum = tile_op_operand(op, 0);
    const GpuPendingSums *pending = tile_map_get(&gpu->pending, sum);
    if (!pending) pending = take_carried(gpu, sum);
    if (!pending) {
        gpu_refuse(gpu, op, "waits for no product by wgmma");
        return;
    }
    const TileType *type = op->results[0].type;
    uint32_t count = tile_layout_registers(type->layout);
    TileValue **registers = TILE_NEW_ARRAY(gpu->arena, TileValue *, count);
    for (uint32_t r = 0; pending->promoted && r < count; r++) registers[r] = pending->promoted[r];
    complete_sums(gpu, pending, tile_op_get(op, TILE_ATTRIBUTE_PENDING), registers);
    tile_map_set(&gpu->values, &op->results[0], gpu_join(gpu, registers, count));
    if (find_carried(sum)) gpu_release_pending(gpu, sum->op);
}
