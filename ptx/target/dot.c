#include "ptx/target/dot.h"
#include "lang/ir/operands.h"

#include <string.h>


enum { M = 16, N = 8, STEP_BYTES = 32 };
/* MOST_SUMS: registers of a thread for the sums of all products; with more, ptxas spills some of them. */
enum { LEAST_LOG_SUMS = 5, MOST_LOG_SUMS = 7, MOST_SUMS = 192, USUAL_LOG_WARPS = 2, MOST_LOG_WARPS = 4 };

static bool is_byte(TileScalar scalar) { return tile_scalar_is_int(scalar) && tile_scalar_bits(scalar) == 8; }

bool gpu_dot_fits_mma(const TilePtxTarget *target, const TileOp *dot) {
    const TileType *a = tile_op_operand(dot, 0)->type, *b = tile_op_operand(dot, 1)->type;
    if (a->rank != 2 || tile_op_integer(dot, TILE_ATTRIBUTE_ORDERED, 0)) return false;
    if (is_byte(a->scalar)) return is_byte(b->scalar);
    if (a->scalar == TILE_F64) return target->mma_f64_rate != 0;
    bool tf32 = tile_op_integer(dot, TILE_ATTRIBUTE_PRECISION, TILE_PRECISION_IEEE) == TILE_PRECISION_TF32;
    if (tile_scalar_bits(a->scalar) == 8) return target->has_fp8_mma;
    return a->scalar == TILE_F16 || a->scalar == TILE_BF16 || (a->scalar == TILE_F32 && tf32);
}

bool gpu_dot_takes_maps(const TilePtxTarget *target, const TileOp *dot) {
    return gpu_dot_fits_mma(target, dot) && tile_op_operand(dot, 0)->type->scalar != TILE_F64;
}

/* ---- shapes ---- */

static int64_t at_least(int64_t extent, int64_t least) { return extent < least ? least : extent; }

/* Every tile is rounded up to an instruction's extent along both axes, whichever operand it is. */
TileLayoutShape gpu_dot_shape(const TileType *tile) {
    int64_t step = STEP_BYTES / (int64_t)tile_scalar_bytes(tile->scalar);
    TileLayoutShape shape = {.rank = 2};
    for (unsigned a = 0; a < 2; a++) shape.extent[a] = at_least(at_least(tile->extent[a], M), step);
    TileLayout plain = tile_layout_blocked(&shape, &(TileLayoutBlocked){.order = {1, 0}});
    for (unsigned a = 0; a < 2; a++) {
        int64_t power = M;
        while (power < shape.extent[a] || power < step) power *= 2;
        int64_t pieces = INT64_C(1) << plain.log_extent[a];
        /* Pieces smaller than one step of an instruction would split that instruction's operand. */
        shape.extent[a] = pieces < at_least(M, step) ? power : tile_layout_extent(&plain, a);
    }
    return shape;
}

TileLayoutShape gpu_rows_shape(const TileType *tile, const TileFragmentPlan *plan) {
    TileLayoutShape shape = gpu_dot_shape(tile);
    int64_t power = M;
    while (power < shape.extent[0]) power *= 2;
    if (power == (int64_t)M << plan->log_warps_m) shape.extent[0] = power;
    return shape;
}

static TileSwizzle choose_swizzle(TileScalar scalar, unsigned log_chunks) {
    if (!log_chunks) return TILE_SWIZZLE_NONE;
    unsigned bytes = tile_scalar_bytes(scalar);
    if (log_chunks == 1 || bytes == 2) return TILE_SWIZZLE_ROWS;
    return bytes == 1 ? TILE_SWIZZLE_BYTES : TILE_SWIZZLE_WORDS;
}

bool gpu_has_rows(const TileType *tile) {
    for (unsigned a = 0; tile->rank > 2 && a < tile->rank; a++)
        if (tile->extent[a] & (tile->extent[a] - 1)) return false;
    return tile->rank >= 2;
}

const TileType *gpu_rows_type(TileContext *context, const TileType *tile) {
    if (tile->rank == 2 || !gpu_has_rows(tile)) return tile->rank == 2 ? tile : NULL;
    int64_t extent[2] = {1, tile->extent[tile->rank - 1]};
    for (unsigned a = 0; a + 1 < tile->rank; a++) extent[0] *= tile->extent[a];
    return tile_type_tile(context, tile->scalar, 2, extent);
}

const TileType *gpu_shared_type(TileContext *context, const TileType *tile) {
    TileLayoutShape shape = gpu_dot_shape(tile);
    int64_t row_bytes = shape.extent[1] * tile_scalar_bytes(tile->scalar);
    unsigned log_chunks = 0;
    while (log_chunks < TILE_MAX_LOG_CHUNKS && row_bytes % ((int64_t)TILE_CHUNK_BYTES << (log_chunks + 1)) == 0)
        log_chunks++;
    return tile_type_shared(context, tile->scalar, shape.extent, choose_swizzle(tile->scalar, log_chunks), log_chunks);
}

const TileType *gpu_multiplied_type(TileContext *context, const TileType *tile, bool along_k) {
    if (along_k) return gpu_shared_type(context, tile);
    TileLayoutShape shape = gpu_dot_shape(tile);
    return tile_type_shared(context, tile->scalar, shape.extent, TILE_SWIZZLE_NONE, 0);
}

const TileType *gpu_columns_type(TileContext *context, const TileType *tile) {
    TileLayoutShape shape = gpu_dot_shape(tile);
    return tile_type_shared(context, tile->scalar, shape.extent, TILE_SWIZZLE_COLUMNS, 0);
}

const TileType *gpu_put_type(TileContext *context, const TileType *tile, bool along_k, bool turns) {
    return along_k && turns ? gpu_columns_type(context, tile) : gpu_multiplied_type(context, tile, along_k);
}

GpuSharedTile gpu_shared_tile(const TileType *pointer) {
    if (pointer->swizzle == TILE_SWIZZLE_COLUMNS)
        return (GpuSharedTile){.shape = {.rank = 2, .extent = {pointer->extent[1], pointer->extent[0]}},
                               .scalar = pointer->scalar,
                               .row_bytes = pointer->extent[0] * tile_scalar_bytes(pointer->scalar) + TILE_CHUNK_BYTES,
                               .panels = 1,
                               .columns = pointer->extent[0],
                               .by_columns = true};
    int64_t bytes = pointer->extent[1] * tile_scalar_bytes(pointer->scalar),
            panel = pointer->swizzle == TILE_SWIZZLE_PANELS ? (int64_t)TILE_CHUNK_BYTES << pointer->log_chunks : bytes;
    return (GpuSharedTile){.shape = {.rank = 2, .extent = {pointer->extent[0], pointer->extent[1]}},
                           .scalar = pointer->scalar,
                           .swizzle = (TileSwizzle)pointer->swizzle,
                           .row_bytes = panel,
                           .panels = (bytes + panel - 1) / panel,
                           .columns = panel / (int64_t)tile_scalar_bytes(pointer->scalar),
                           .log_chunks = pointer->log_chunks};
}

/* ---- shared memory ---- */

const TileOp *gpu_find_shared(const TileValue *value, bool *transposed) {
    bool is_transposed = false;
    const TileOp *op = value->op;
    for (; op && op->id == TILE_OP_PERMUTE; op = tile_op_operand(op, 0)->op)
        is_transposed ^= tile_op_get(op, TILE_ATTRIBUTE_AXES)->integers[0] != 0;
    bool found = op && op->id == TILE_OP_SHARED_TILE;
    *transposed = found && is_transposed;
    return found ? op : NULL;
}

bool gpu_lies_along_k(const TileOp *dot, unsigned operand) {
    bool transposed;
    gpu_find_shared(tile_op_operand(dot, operand), &transposed);
    return transposed != (operand == 0);
}

bool gpu_dot_reads_shared(const TileOp *dot) {
    return dot->id == TILE_OP_DOT && (gpu_dot_is_mma(dot) || dot->results[0].type->rank == 2);
}

bool gpu_stays_shared(const TileOp *op) {
    bool transposed;
    if (!op->result_count || !gpu_find_shared(&op->results[0], &transposed)) return false;
    for (const TileUse *use = op->results[0].first_use; use; use = use->next) {
        bool multiplied = use->index < 2 && gpu_dot_reads_shared(use->user);
        if (!multiplied && (use->user->id != TILE_OP_PERMUTE || !gpu_stays_shared(use->user))) return false;
    }
    return true;
}

/* ---- the products of a function ---- */

bool gpu_dot_is_wgmma(const TileOp *dot) {
    return tile_op_integer(dot, TILE_ATTRIBUTE_INSTRUCTION, TILE_INSTRUCTION_FMA) == TILE_INSTRUCTION_WGMMA;
}

bool gpu_dot_is_mma(const TileOp *dot) {
    return tile_op_integer(dot, TILE_ATTRIBUTE_INSTRUCTION, TILE_INSTRUCTION_FMA) != TILE_INSTRUCTION_FMA;
}

bool gpu_dot_promotes(const TileOp *dot) {
    TileScalar scalar = tile_op_operand(dot, 0)->type->scalar;
    return tile_scalar_is_float(scalar) && tile_scalar_bits(scalar) == 8;
}

static bool loop_uses_sums(const TileOp *dot) {
    enum { SUMS = 2 };
    const TileOp *loop = dot->block->op;
    if (!loop || loop->id != TILE_OP_FOR || tile_loop_is_of_programs(loop)) return false;
    for (const TileUse *use = dot->results[0].first_use; use; use = use->next)
        if (use->user->id != TILE_OP_YIELD && (use->user->id != TILE_OP_DOT || use->index != SUMS)) return true;
    return false;
}

static void look_for_used_sums(TileOp *op, void *found) {
    *(bool *)found |= op->id == TILE_OP_DOT && loop_uses_sums(op);
}

bool gpu_loops_use_sums(TileBlock *body) {
    bool found = false;
    tile_block_walk(body, look_for_used_sums, &found);
    return found;
}

int64_t gpu_dot_parts(const TileOp *dot) { return tile_op_integer(dot, TILE_ATTRIBUTE_K_PARTS, 1); }

TileLayout gpu_first_fragments(const TileOp *dot, const TileFragmentPlan *plan) {
    const TileType *a = tile_op_operand(dot, 0)->type;
    TileFragmentPlan own = *plan;
    own.log_parts = (uint8_t)gpu_floor_log2(gpu_dot_parts(dot));
    own.log_warps_m -= own.log_parts;
    TileLayoutShape shape = gpu_rows_shape(a, &own);
    return tile_layout_fragment(&shape, TILE_FRAGMENT_MMA_A, tile_scalar_bits(a->scalar), own);
}

bool gpu_begins_at_zero(const TileOp *dot) {
    const TileOp *constant = tile_value_def(tile_op_named(dot, TILE_OPERAND_SUM), TILE_OP_CONST);
    return constant && !tile_op_get(constant, TILE_ATTRIBUTE_VALUE)->bits;
}

/* Does the product that has this sum go on with the registers of another's: of one in front of it, or of one in a loop that has ended,
 * where nobody else takes its sum? */
static bool goes_on(const TileValue *sum) {
    for (;;) {
        const TileOp *op = sum->op;
        if (op && op->id == TILE_OP_FOR) {
            sum = tile_op_named_at(op->regions[0].last, TILE_OPERAND_VALUES, sum->index);
        } else if (op) {
            return op->id == TILE_OP_DOT || op->id == TILE_OP_DOT_WAIT;
        } else {
            const TileOp *loop = sum->block->op;
            if (!tile_op_is(loop, TILE_OP_FOR) || sum->index == 0) return false;
            sum = tile_loop_carried(loop, sum->index - 1);
            if (!sum->first_use || sum->first_use->next) return false;
        }
    }
}

int64_t gpu_dot_sums(const TileOp *dot) {
    TileLayoutShape shape = gpu_dot_shape(dot->results[0].type);
    return goes_on(tile_op_named(dot, TILE_OPERAND_SUM)) ? 0 : shape.extent[0] * shape.extent[1];
}

/* Sums of an instruction beside as many that others are added to, and what else a thread has: of more columns there is one at a time. Measured, 8192 x 8192 x 8192
 * by 128 x 192: two of 96 columns take 0.93 of the time of one after the other. */
int64_t gpu_promoted_together(const TileOp *dot) {
    enum { MOST_OF_TWO = 96 };
    int64_t columns = gpu_wgmma_columns(dot);
    return columns <= MOST_OF_TWO && dot->results[0].type->extent[1] > columns ? 2 : 1;
}

int64_t gpu_dot_promoted(const TileOp *dot) {
    enum { ROWS = 64, THREADS = 4 * TILE_WARP_THREADS };
    return gpu_dot_promotes(dot) && !gpu_begins_at_zero(dot) ? gpu_promoted_together(dot) * ROWS * gpu_wgmma_columns(dot) / THREADS : 0;
}

int64_t gpu_wgmma_columns(const TileOp *dot) {
    enum { MOST = 256, MOST_PROMOTED = 128, NARROW = 32 };
    const TileType *sums = dot->results[0].type;
    for (int64_t columns = gpu_dot_promotes(dot) ? MOST_PROMOTED : MOST; columns > 0; columns -= N) {
        bool has_instruction = !tile_scalar_is_int(sums->scalar) || columns <= NARROW || columns % (2 * N) == 0;
        if (has_instruction && sums->extent[1] % columns == 0) return columns;
    }
    return 0;
}

typedef struct Search {
    GpuDots dots;
    int64_t sums; /* accumulators of all products; one that continues another's sum is not counted again */
    bool wgmma;   /* computes the products: all warps lie along their rows */
    bool wide;    /* a sum takes two registers */
    bool rows;    /* a row is reduced, or is an operand of another product: it should belong to one warp */
    int64_t narrowest; /* columns of the product that has the fewest; 0: there is none */
    bool bytes_along[2], wider_along[2]; /* of a and b: elements of 8 bits, and wider ones, contiguous along m or n */
} Search;

/* The list is sorted by size. If it is full, the smallest type is dropped. */
static void add_type(Search *search, const TileType *type) {
    GpuDots *dots = &search->dots;
    for (unsigned i = 0; i < dots->count; i++)
        if (tile_type_same_shape(dots->types[i], type)) return;
    unsigned at = dots->count < GPU_MOST_DOTS ? dots->count++ : GPU_MOST_DOTS - 1;
    for (; at && tile_type_lanes(dots->types[at - 1]) < tile_type_lanes(type); at--)
        dots->types[at] = dots->types[at - 1];
    dots->types[at] = type;
}

static void add_dot(Search *search, const TileOp *dot) {
    add_type(search, dot->results[0].type);
    search->wgmma |= gpu_dot_is_wgmma(dot);
    search->wide |= dot->results[0].type->scalar == TILE_F64;
    search->sums += gpu_dot_sums(dot);
    int64_t columns = gpu_dot_shape(dot->results[0].type).extent[1];
    if (!search->narrowest || columns < search->narrowest) search->narrowest = columns;
    if (gpu_dot_is_wgmma(dot)) search->dots.promoted += gpu_dot_promoted(dot);
    for (unsigned i = 0; i < 2; i++) {
        bool byte = tile_scalar_bits(tile_op_operand(dot, i)->type->scalar) == 8;
        if (!gpu_lies_along_k(dot, i)) *(byte ? &search->bytes_along[i] : &search->wider_along[i]) = true;
    }
}

static void search_block(Search *search, const TileBlock *block) {
    for (const TileOp *op = block->first; op; op = op->next) {
        if (op->id == TILE_OP_DOT && gpu_dot_is_mma(op)) add_dot(search, op);
        if (op->id == TILE_OP_REDUCE && tile_op_operand(op, 0)->type->rank == 2) search->rows = true;
        for (unsigned i = 0; i < op->region_count; i++) search_block(search, &op->regions[i]);
    }
}

/* log2 of the number of warps whose threads hold `1 << log_of_a_thread` elements each. */
static unsigned log_warps_of(int64_t elements, unsigned log_of_a_thread) {
    unsigned log = gpu_floor_log2(elements), of_a_warp = log_of_a_thread + TILE_LANE_BITS;
    return log > of_a_warp ? log - of_a_warp : 0;
}

/* The sums of the largest product must fit into registers, and those of all; those of f64 take two. Beyond that up to four warps are used while each thread
 * has 32 sums: with fewer sums, warps load more than they multiply and wait for each other. Where rows are reduced, a
 * third warp pays only if it has rows of its own, and a second one only if each has more than the columns of one instruction: else they exchange more
 * than they compute. Measured: docs/adr/0025-warps-of-small-products.md, 0147-products-of-few-rows.md. */
static unsigned choose_log_warps(const Search *search, const TileLayoutShape *shape, unsigned log_row_blocks) {
    int64_t words = search->wide ? 2 : 1;
    unsigned most = log_warps_of(words * shape->extent[0] * shape->extent[1], MOST_LOG_SUMS),
             wanted = gpu_least(log_warps_of(words * search->sums, LEAST_LOG_SUMS), USUAL_LOG_WARPS);
    while (most < MOST_LOG_WARPS && words * search->sums > (int64_t)MOST_SUMS << (TILE_LANE_BITS + most)) most++;
    unsigned apart = search->narrowest > 2 * N;
    if (search->rows) wanted = gpu_least(wanted, log_row_blocks ? log_row_blocks : apart);
    return gpu_least(wanted > most ? wanted : most, MOST_LOG_WARPS);
}

/* There are at most as many warps as instruction tiles. They are arranged so that the part of one warp is nearly
 * square, which loads the fewest operand elements; where rows are reduced, along the rows. */
static void place_warps(Search *search, unsigned asked) {
    TileFragmentPlan *plan = &search->dots.plan;
    TileLayoutShape shape = gpu_dot_shape(search->dots.types[0]);
    unsigned m = gpu_floor_log2(shape.extent[0] & -shape.extent[0]),
             n = gpu_floor_log2(shape.extent[1] & -shape.extent[1]);
    unsigned rows = m - gpu_floor_log2(M), columns = n - gpu_floor_log2(N);
    unsigned warps = !asked ? choose_log_warps(search, &shape, rows) : search->wgmma ? gpu_log_warps(asked * TILE_WARP_THREADS) : gpu_floor_log2(asked);
    if (search->wgmma) plan->log_warps_m = (uint8_t)warps;
    while (plan->log_warps_m + plan->log_warps_n < warps) {
        bool more_rows = plan->log_warps_m < rows, more_columns = plan->log_warps_n < columns;
        if (!more_rows && !more_columns) break;
        bool taller = m - plan->log_warps_m >= n - plan->log_warps_n;
        if (more_rows && (search->rows || taller || !more_columns))
            plan->log_warps_m++;
        else
            plan->log_warps_n++;
    }
}

/* One choice for all products, since they may share sums. Columns in pairs are those of two instructions. */
static void choose_pairs(Search *search) {
    TileFragmentPlan *plan = &search->dots.plan;
    int64_t columns = gpu_dot_shape(search->dots.types[0]).extent[1];
    if (search->wgmma) return;
    plan->pairs_m = search->bytes_along[0] && !search->wider_along[0];
    plan->pairs_n =
        search->bytes_along[1] && !search->wider_along[1] && (columns & -columns) >> plan->log_warps_n >= 2 * N;
}

/* Products of a function without tensor cores. */
static GpuDots find_multiplied(const TileFunc *func, const TileBlock *body) {
    GpuDots dots = {.multiplied = gpu_find_sums(func, body)};
    dots.count = dots.multiplied.count;
    for (unsigned i = 0; i < dots.count; i++) dots.types[i] = dots.multiplied.types[i];
    return dots;
}

GpuDots gpu_find_dots(const TileFunc *func, const TileBlock *body) {
    Search search = {0};
    search_block(&search, body);
    if (!search.dots.count) return find_multiplied(func, body);
    search.rows |= search.dots.count > 1;
    place_warps(&search, func->threads ? func->threads / TILE_WARP_THREADS : func->warps);
    TileFragmentPlan *plan = &search.dots.plan;
    while ((uint32_t)TILE_WARP_THREADS << (plan->log_warps_m + plan->log_warps_n) < func->threads)
        plan->log_warps_m++; /* the other warps hold copies */
    choose_pairs(&search);
    search.dots.sums = search.sums;
    search.dots.wgmma = search.wgmma;
    return search.dots;
}

typedef struct Plan {
    TileModule *module;
    int64_t warps[2], pairs[2];
} Plan;

static void set_plan(TileOp *op, void *state) {
    Plan *plan = state;
    if (op->id != TILE_OP_DOT || !gpu_dot_is_mma(op)) return;
    tile_op_set_integers(plan->module, op, TILE_ATTRIBUTE_WARPS, plan->warps, 2);
    if (plan->pairs[0] || plan->pairs[1]) tile_op_set_integers(plan->module, op, TILE_ATTRIBUTE_PAIRS, plan->pairs, 2);
}

void gpu_set_plan(TileModule *module, TileBlock *body, const TileFragmentPlan *plan) {
    Plan numbers = {
        module, {INT64_C(1) << plan->log_warps_m, INT64_C(1) << plan->log_warps_n}, {plan->pairs_m, plan->pairs_n}};
    tile_block_walk(body, set_plan, &numbers);
}

bool gpu_dot_plan(const TileOp *dot, TileFragmentPlan *plan) {
    const TileAttribute *warps = tile_op_get(dot, TILE_ATTRIBUTE_WARPS),
                        *pairs = tile_op_get(dot, TILE_ATTRIBUTE_PAIRS);
    if (!warps) return false;
    *plan = (TileFragmentPlan){(uint8_t)gpu_floor_log2(warps->integers[0]), (uint8_t)gpu_floor_log2(warps->integers[1]),
                               pairs && pairs->integers[0], pairs && pairs->integers[1], 0};
    return true;
}

TileLayout gpu_sum_layout(const GpuDots *dots, const TileType *tile) {
    if (dots->multiplied.count) return gpu_multiplied_layout(&dots->multiplied, tile);
    TileLayoutShape shape = dots->wgmma ? gpu_rows_shape(tile, &dots->plan) : gpu_dot_shape(tile);
    return tile_layout_fragment(&shape, TILE_FRAGMENT_MMA_C, 32, dots->plan);
}

bool gpu_lie_in_pairs(const TileValue *sums) {
    const TileOp *op = sums->op;
    while (tile_op_is(op, TILE_OP_DOT_WAIT) || tile_op_is(op, TILE_OP_CONVERT_LAYOUT)) op = tile_op_operand(op, 0)->op;
    return tile_op_is(op, TILE_OP_DOT) && gpu_dot_is_wgmma(op) && tile_op_get(op, TILE_ATTRIBUTE_PAIRS);
}

TileLayout gpu_paired_layout(const GpuDots *dots, const TileType *tile) {
    TileFragmentPlan plan = dots->plan;
    TileLayoutShape shape = gpu_rows_shape(tile, &plan);
    plan.pairs_n = true;
    return tile_layout_fragment(&shape, TILE_FRAGMENT_MMA_C, 32, plan);
}

int64_t gpu_tile_registers(const TileType *type) {
    unsigned bytes = tile_scalar_bytes(type->scalar), word = sizeof(uint32_t);
    int64_t registers = bytes > word ? bytes / word : 1;
    for (unsigned a = 0; a < type->rank; a++)
        for (int64_t extent = 1; extent < type->extent[a]; extent *= 2) registers *= 2;
    return registers;
}

int64_t gpu_copying_registers(int64_t copies, int64_t multiplying) {
    enum { FEWEST_COPIES = 3, OTHERS = 16, COPY = 6, UNIT = 8, THREE_WARPGROUPS = 384 };
    int64_t registers = OTHERS + COPY * (copies < FEWEST_COPIES ? FEWEST_COPIES : copies);
    return (registers + UNIT - 1) / UNIT * UNIT - (multiplying == THREE_WARPGROUPS ? UNIT : 0);
}

int64_t gpu_first_registers(const TilePtxTarget *target, int64_t threads) {
    return target->registers / threads & ~INT64_C(7);
}

int64_t gpu_multiplying_registers(const TilePtxTarget *target, int64_t multiplying, int64_t copying, int64_t kept) {
    enum { MOST_REGISTERS = 240 };
    int64_t first = gpu_first_registers(target, multiplying + copying);
    int64_t released = (first - kept) * copying;
    int64_t each = (first + released / multiplying) & ~INT64_C(7);
    return each < MOST_REGISTERS ? each : MOST_REGISTERS;
}
