/* Which sums of products by fused multiply-adds a thread has. For each step of k it loads an element of `a` for each of
 * its rows and one of `b` for each of its columns, so that its part is nearly square; and it loads vectors: of
 * neighbours along k where the operand lies along k, of neighbouring rows or columns otherwise. Where lanes load along
 * k they have neighbouring rows or columns, whose chunks the swizzle puts into different banks. */
#include "ptx/target/multiply_adds.h"

#include "lang/ir/layout_rules.h"
#include "lang/ir/operands.h"
#include "ptx/target/dot.h"

enum { M, N, LOG_VECTOR = 2, USUAL_LANES_M = 2 };

TileValue *gpu_multiplied_source(const TileValue *operand, bool *transposed) {
    *transposed = false;
    for (const TileOp *op; (op = tile_value_def(operand, TILE_OP_PERMUTE)); operand = tile_op_operand(op, 0))
        *transposed ^= tile_op_get(op, TILE_ATTRIBUTE_AXES)->integers[0] != 0;
    return (TileValue *)operand;
}

/* Are all products of the block large enough? Those of one function share the rows that a thread has. */
static bool are_large(const TileBlock *block) {
    enum { LEAST_SUMS = 128 * 64 };
    for (const TileOp *op = block->first; op; op = op->next) {
        if (op->id == TILE_OP_DOT && tile_type_lanes(op->results[0].type) < LEAST_SUMS) return false;
        for (unsigned i = 0; i < op->region_count; i++)
            if (!are_large(&op->regions[i])) return false;
    }
    return true;
}

/* The body of the op's function, also of one that has got another body, as while it is lowered. */
static const TileBlock *outermost_block(const TileOp *op) {
    const TileBlock *block = op->block;
    while (block->op) block = block->op->block;
    return block;
}

bool gpu_turns_rows(const TileOp *op, const TileType *rows) {
    return rows->scalar == TILE_F32 && are_large(outermost_block(op));
}

bool gpu_is_multiplied_sum(const TileValue *value) {
    const TileOp *op = value->op;
    if (!op) return false;
    if (op->id == TILE_OP_FOR) return gpu_is_multiplied_sum(tile_op_operand(op->regions[0].last, value->index));
    bool multiplied = op->id == TILE_OP_DOT && tile_op_integer(op, TILE_ATTRIBUTE_INSTRUCTION, TILE_INSTRUCTION_FMA) == TILE_INSTRUCTION_FMA;
    return multiplied && value->type->rank == 2 && gpu_turns_rows(op, value->type);
}

bool gpu_multiplied_along_k(const TileOp *dot, unsigned operand) {
    bool transposed;
    const TileValue *source = gpu_multiplied_source(tile_op_operand(dot, operand), &transposed);
    const TileOp *shared = tile_value_def(source, TILE_OP_SHARED_TILE);
    if (!shared) return transposed != (operand == 0) && !gpu_turns_rows(dot, source->type); /* gpu_put_type */
    return (transposed != (operand == 0)) != (tile_op_operand(shared, 0)->type->swizzle == TILE_SWIZZLE_COLUMNS);
}

/* ---- which ---- */

/* The list is sorted by size. If it is full, the smallest type is dropped. */
static unsigned add_type(GpuSums *sums, const TileType *type) {
    for (unsigned i = 0; i < sums->count; i++)
        if (tile_type_same_shape(sums->types[i], type)) return i;
    unsigned at = sums->count < GPU_MOST_SUMS ? sums->count++ : GPU_MOST_SUMS - 1;
    for (; at && tile_type_lanes(sums->types[at - 1]) < tile_type_lanes(type); at--) {
        sums->types[at] = sums->types[at - 1];
        sums->along_n[at] = sums->along_n[at - 1];
        sums->along_k[at] = sums->along_k[at - 1];
    }
    sums->types[at] = type;
    sums->along_n[at] = sums->along_k[at] = false;
    return at;
}

static bool search_block(GpuSums *sums, const TileBlock *block) {
    for (const TileOp *op = block->first; op; op = op->next) {
        if (op->id == TILE_OP_DOT) {
            bool mma = tile_op_integer(op, TILE_ATTRIBUTE_INSTRUCTION, TILE_INSTRUCTION_FMA) != TILE_INSTRUCTION_FMA;
            if (mma || op->results[0].type->rank != 2) return false;
            unsigned at = add_type(sums, op->results[0].type);
            bool along_k = gpu_multiplied_along_k(op, N);
            sums->along_n[at] |= !along_k;
            sums->along_k[at] |= along_k;
            sums->along_m &= !gpu_multiplied_along_k(op, M);
        }
        if (op->id == TILE_OP_REDUCE && tile_op_operand(op, 0)->type->rank == 2) sums->rows = true;
        for (unsigned i = 0; i < op->region_count; i++)
            if (!search_block(sums, &op->regions[i])) return false;
    }
    return true;
}

GpuSums gpu_find_sums(const TileFunc *func, const TileBlock *body) {
    GpuSums sums = {.along_m = true};
    if (!search_block(&sums, body)) sums.count = 0;
    sums.rows |= sums.count > 1;
    sums.log_warps = func->threads ? gpu_floor_log2(func->threads / TILE_WARP_THREADS) : 0;
    return sums;
}

/* Of all threads, for a tile. */
static int64_t registers_of(const TileType *tile) {
    int64_t words = tile_scalar_bytes(tile->scalar) / (int64_t)sizeof(uint32_t);
    return tile_type_lanes(tile) * (words > 1 ? words : 1);
}

/* Registers of all products' sums: one that goes on from another one's has the same. */
static int64_t count_sums(const TileBlock *block) {
    int64_t registers = 0;
    for (const TileOp *op = block->first; op; op = op->next) {
        const TileOp *before = op->id == TILE_OP_DOT ? tile_op_named(op, TILE_OPERAND_SUM)->op : NULL;
        if (op->id == TILE_OP_DOT && !tile_op_is(before, TILE_OP_DOT)) registers += registers_of(op->results[0].type);
        for (unsigned i = 0; i < op->region_count; i++) registers += count_sums(&op->regions[i]);
    }
    return registers;
}

/* Is the operand copied to shared memory as it is loaded? */
static bool is_loaded(const TileValue *operand) {
    const TileOp *op = operand->op;
    while (op && (op->id == TILE_OP_FILL || op->id == TILE_OP_PERMUTE || op->id == TILE_OP_RESHAPE))
        op = tile_op_operand(op, 0)->op;
    return op && op->id == TILE_OP_LOAD_TILE && !tile_op_has_part(op, TILE_PARTS_MASK);
}

/* Registers of operands that are computed before products read them from shared memory. */
static int64_t count_held(const TileBlock *block) {
    int64_t registers = 0;
    for (const TileOp *op = block->first; op; op = op->next) {
        for (unsigned i = 0; i < 2 && op->id == TILE_OP_DOT; i++)
            if (!is_loaded(tile_op_operand(op, i))) registers += registers_of(tile_op_operand(op, i)->type);
        for (unsigned i = 0; i < op->region_count; i++) registers += count_held(&op->regions[i]);
    }
    return registers;
}

int64_t gpu_live_sums(const GpuSums *sums, const TileBlock *body) {
    return count_sums(body) + (sums->rows ? registers_of(sums->types[sums->count - 1]) : count_held(body));
}

static bool is_reshaped(const TileValue *operand) {
    const TileOp *op = operand->op;
    while (op && (op->id == TILE_OP_FILL || op->id == TILE_OP_PERMUTE)) op = tile_op_operand(op, 0)->op;
    return tile_op_is(op, TILE_OP_RESHAPE);
}

/* Operands whose rows are several axes of memory: more parts of addresses, and a predicate for each. */
static int64_t count_reshaped(const TileBlock *block) {
    int64_t operands = 0;
    for (const TileOp *op = block->first; op; op = op->next) {
        for (unsigned i = 0; i < 2 && op->id == TILE_OP_DOT; i++)
            operands += is_loaded(tile_op_operand(op, i)) && is_reshaped(tile_op_operand(op, i));
        for (unsigned i = 0; i < op->region_count; i++) operands += count_reshaped(&op->regions[i]);
    }
    return operands;
}

static bool only_moves(const TileOp *op) { return op && (op->id == TILE_OP_FILL || op->id == TILE_OP_PERMUTE || op->id == TILE_OP_RESHAPE); }

/* Is what is loaded for the operand taken by other ops than products, too? */
static bool is_computed_with(const TileValue *operand) {
    for (const TileUse *use = operand->first_use; use; use = use->next)
        if (use->user->id != TILE_OP_DOT && !only_moves(use->user)) return true;
    return only_moves(operand->op) && is_computed_with(tile_op_operand(operand->op, 0));
}

/* Registers of operands that products read from shared memory, and threads have to compute something else. */
static int64_t count_computed_with(const TileBlock *block) {
    int64_t registers = 0;
    for (const TileOp *op = block->first; op; op = op->next) {
        for (unsigned i = 0; i < 2 && op->id == TILE_OP_DOT; i++) {
            const TileValue *operand = tile_op_operand(op, i);
            if (is_loaded(operand) && is_computed_with(operand)) registers += registers_of(operand->type);
        }
        for (unsigned i = 0; i < op->region_count; i++) registers += count_computed_with(&op->regions[i]);
    }
    return registers;
}

bool gpu_has_many_sums(const TileType *sums, const TileBlock *body) {
    enum { LEAST = 128 * 128, MOST = 128 * 256 };
    int64_t lanes = tile_type_lanes(sums);
    return sums->scalar == TILE_F32 && lanes >= LEAST && lanes <= MOST && are_large(body) && !count_reshaped(body);
}

bool gpu_multiplies_matrices(const TileOp *dot) {
    return gpu_turns_rows(dot, tile_op_operand(dot, 0)->type) && !count_reshaped(outermost_block(dot));
}

unsigned gpu_small_rows_along_k(const TileOp *dot) {
    const TileBlock *body = outermost_block(dot);
    const TileType *sum = dot->results[0].type;
    unsigned count = 0;
    if (sum->rank != 2 || sum->scalar != TILE_F32 || are_large(body) || count_reshaped(body)) return 0;
    for (unsigned i = 0; i < 2; i++) {
        bool along = i == 0;
        for (const TileOp *op = tile_op_operand(dot, i)->op; op && (op->id == TILE_OP_FILL || op->id == TILE_OP_PERMUTE); op = tile_op_operand(op, 0)->op)
            along ^= op->id == TILE_OP_PERMUTE;
        count += along;
    }
    return count;
}

int64_t gpu_blocks_of_sums(const TilePtxTarget *target, const TileFunc *func, const TileBlock *body) {
    enum { WARPS = 16, OF_RESHAPED = 40 };
    GpuSums sums = gpu_find_sums(func, body);
    if (!sums.count) return 0;
    int64_t threads = func->threads, registers = gpu_live_sums(&sums, body) / threads + GPU_MULTIPLYING_REGISTERS;
    registers += OF_RESHAPED * count_reshaped(body) + count_computed_with(body) / threads;
    int64_t blocks = WARPS * TILE_WARP_THREADS / threads, most = target->registers / (threads * registers);
    if (blocks > most) blocks = most;
    return blocks < 2 ? 0 : blocks;
}

/* ---- layout ---- */

static unsigned between(int value, unsigned least, unsigned most) {
    return value < (int)least ? least : value > (int)most ? most : (unsigned)value;
}

/* Bits of the rows and the columns of one piece, and, rounded, of how many pieces there are. */
typedef struct Extents {
    unsigned log[2], pieces[2];
} Extents;

static Extents extents_of(const TileType *tile) {
    Extents extents;
    TileLayoutShape shape = tile_layout_shape(tile);
    TileLayout plain = tile_layout_blocked(&shape, &(TileLayoutBlocked){.order = {N, M}});
    for (unsigned a = 0; a < 2; a++) {
        extents.log[a] = plain.log_extent[a];
        extents.pieces[a] = gpu_floor_log2(plain.pieces[a] * 3 / 2);
    }
    return extents;
}

/* Threads along the rows: so many that what is left for each has as many rows as columns, if it can. The plan is that
 * of the largest sums, so that all sums' rows are in the same threads. */
static TileSumsPlan plan_threads(const GpuSums *sums) {
    Extents extents = extents_of(sums->types[0]);
    const unsigned *log = extents.log, threads = TILE_LANE_BITS + sums->log_warps;
    int excess = (int)(log[M] + extents.pieces[M]) - (int)(log[N] + extents.pieces[N]);
    unsigned least = threads > log[N] ? threads - log[N] : 0, most = gpu_least(threads, log[M]);
    unsigned rows = between((excess + (int)threads + 1) / 2, gpu_least(least, most), most);
    TileSumsPlan plan = {.lanes = {(uint8_t)gpu_least(rows, USUAL_LANES_M)}};
    if (sums->rows) { /* lanes share a row, warps do not */
        unsigned warps = gpu_least(sums->log_warps, log[M]);
        plan.lanes[M] = (uint8_t)between((int)rows - (int)warps, 0, gpu_least(TILE_LANE_BITS, log[M] - warps));
        plan.warps[M] = (uint8_t)warps;
    } else {
        plan.warps[M] = (uint8_t)gpu_least(rows - plan.lanes[M], sums->log_warps);
        plan.lanes[M] = (uint8_t)gpu_least(rows - plan.warps[M], TILE_LANE_BITS);
    }
    plan.lanes[N] = (uint8_t)(TILE_LANE_BITS - plan.lanes[M]);
    plan.warps[N] = (uint8_t)(sums->log_warps - plan.warps[M]);
    return plan;
}

static TileLayout layout_of(const GpuSums *sums, const TileType *tile, bool along_n) {
    TileSumsPlan plan = plan_threads(sums);
    TileLayoutShape shape = tile_layout_shape(tile);
    Extents extents = extents_of(tile);
    bool along[2] = {sums->along_m, along_n};
    for (unsigned a = 0; a < 2; a++) {
        unsigned taken = plan.lanes[a] + plan.warps[a], left = extents.log[a] > taken ? extents.log[a] - taken : 0;
        plan.elements[a] = (uint8_t)(along[a] ? gpu_least(left, LOG_VECTOR) : 0);
    }
    return tile_layout_sums(&shape, &plan);
}

TileLayout gpu_multiplied_layout(const GpuSums *sums, const TileType *tile) {
    bool along_n = true;
    for (unsigned i = 0; i < sums->count; i++)
        if (tile_type_same_shape(tile, sums->types[i])) along_n = sums->along_n[i];
    return layout_of(sums, tile, along_n);
}

TileLayout gpu_columns_layout(const GpuSums *sums, const TileType *tile) {
    bool along_n = true;
    for (unsigned i = 0; i < sums->count; i++)
        if (tile_type_same_shape(tile, sums->types[i])) along_n = !sums->along_k[i];
    return layout_of(sums, tile, along_n);
}

TileLayout gpu_product_layout(const GpuSums *sums, const TileOp *dot) {
    return layout_of(sums, dot->results[0].type, !gpu_multiplied_along_k(dot, N));
}
