/* Purpose: decide on the number of threads of a block, and on the instructions of each product. Products of two axes
 * with types of tensor cores are computed by mma, all others by fused multiply-adds. The number of threads follows from
 * the sums of the products for tensor cores, or if there are none, from the largest tile. Where fused multiply-adds compute
 * products of two axes, `registers` limits a thread's registers so that several blocks share a multiprocessor.
 *
 * Before:
 *     func phase tile @k.0(%x: tensor<f32, 1, inout>, %begin: i64, %end: i64) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 1024} : i64
 *       %v = load_tile %x, %begin, %one, %zero, %n {access = [range]} : f32[1024]
 *       store_tile %x, %v, %begin, %one, %zero, %n {access = [range]}
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%x: tensor<f32, 1, inout>, %begin: i64, %end: i64) threads = 128 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 1024} : i64
 *       %v = load_tile %x, %begin, %one, %zero, %n {access = [range]} : f32[1024]
 *       store_tile %x, %v, %begin, %one, %zero, %n {access = [range]}
 *       return
 *     }
 * Needs: the pass programs. Keeps: tile form. Cost: linear. */
#include "ptx/layouts/blocked.h"
#include "ptx/target/dot.h"
#include "ptx/passes.h"

enum {
    LOG_ACCESSES_OF_A_THREAD = 2,
    LEAST_LOG_ELEMENTS = 4,
    MOST_LOG_ELEMENTS = 5,
    MOST_LOG_WARPS = 5,
    ROW_OF_A_WARP = 1024,
    MOST_MULTIPLIED = 160, /* elements of a thread */
    MOST_BESIDE_PRODUCTS = 128, /* registers of a thread for a tile beside products for tensor cores */
    MOST_LIVE_OF_MANY = 168, /* eight warps */
    MOST_LIVE = 104        /* of products that read operands from shared memory: twelve warps have registers for them */
};

/* Do products of one shape make up large tiles of sums, with which nothing is computed in registers?  A thread then has 128 of
 * them. */
static bool has_many_sums(const TileFunc *func, const GpuSums *sums) {
    return sums->count == 1 && !sums->rows && !func->warps && gpu_has_many_sums(sums->types[0], &func->body);
}

/* So many warps that a thread's operands and sums of products by fused multiply-adds, which are live together, fit
 * into its registers. */
static unsigned least_log_warps(const TileFunc *func, const GpuSurvey *survey) {
    unsigned log = 0;
    GpuSums sums = gpu_find_sums(func, &func->body);
    int64_t live = sums.count ? gpu_live_sums(&sums, &func->body) : survey->multiplied,
            most = !sums.count ? MOST_MULTIPLIED : has_many_sums(func, &sums) ? MOST_LIVE_OF_MANY : MOST_LIVE;
    while (log < MOST_LOG_WARPS && live > most << (TILE_LANE_BITS + log)) log++;
    return log;
}

/* Rows that are known to be one tile have the order of sums that tiles of longer rows have, which other variants of the code
 * take them for. Is that the same with one warp, since a row belongs to one warp either way? */
static bool is_row_of_a_warp(const GpuSurvey *survey, unsigned log_vector, unsigned log_warps) {
    unsigned log = gpu_floor_log2(tile_type_lanes(survey->largest)), threads = TILE_LANE_BITS + log_warps;
    unsigned shorter = log > threads ? gpu_least(log - threads, log_vector) : 0;
    return survey->piece && !survey->reduces_others && tile_type_lanes(survey->largest) <= ROW_OF_A_WARP &&
           shorter == log_vector && survey->piece <= TILE_WARP_THREADS << log_vector;
}

/* Does a loop carry the tile, with whose elements each iteration computes? What an iteration takes beside them, indices and bounds,
 * each warp computes by itself. One that combines parts has few iterations, and takes little beside them. */
static bool is_carried(const TileBlock *block, const TileType *tile) {
    for (const TileOp *op = block->first; op; op = op->next) {
        bool carries = op->id == TILE_OP_FOR && tile_op_integer(op, TILE_ATTRIBUTE_PART, 0) != TILE_PART_OVER_SUMS;
        for (unsigned i = 0; carries && i < op->result_count; i++)
            if (tile_type_same_shape(op->results[i].type, tile)) return true;
        for (unsigned r = 0; r < op->region_count; r++)
            if (is_carried(&op->regions[r], tile)) return true;
    }
    return false;
}

static void look_for_collected(TileOp *op, void *found) {
    *(bool *)found |= op->id == TILE_OP_ATOMIC_TILE && tile_op_get(op, TILE_ATTRIBUTE_COLLECTED);
}

/* Each block that collects updates has shared memory for all elements, so that few blocks have room at a time: these have many threads. */
static unsigned least_log_warps_of_collecting(TileFunc *func, const GpuSurvey *survey) {
    enum { LOG_WARPS = 3 };
    bool collects = false;
    unsigned log = gpu_floor_log2(tile_type_lanes(survey->largest));
    tile_block_walk(&func->body, look_for_collected, &collects);
    return collects && !func->warps && log > TILE_LANE_BITS ? gpu_least(log - TILE_LANE_BITS, LOG_WARPS) : 0;
}

/* Four outstanding accesses of 16 bytes in each thread reach the memory's bandwidth. A short row belongs to one warp:
 * its reduction needs no barrier. */
static unsigned log_warps_of_tiles(const TileFunc *func, const GpuSurvey *survey) {
    if (func->warps) return gpu_floor_log2(func->warps);
    unsigned log_vector = gpu_floor_log2(GPU_ACCESS_BYTES / survey->least_bytes),
             log = gpu_floor_log2(tile_type_lanes(survey->largest));
    if (survey->reduces_rows && tile_type_lanes(survey->largest) <= ROW_OF_A_WARP) return 0;
    unsigned elements = gpu_least(log_vector + LOG_ACCESSES_OF_A_THREAD, MOST_LOG_ELEMENTS);
    if (elements < LEAST_LOG_ELEMENTS) elements = LEAST_LOG_ELEMENTS;
    unsigned of_a_warp = TILE_LANE_BITS + elements,
             warps = log > of_a_warp ? gpu_least(log - of_a_warp, MOST_LOG_WARPS) : 0;
    bool few = warps < 2 && (survey->combines || !is_carried(&func->body, survey->largest));
    if (few && log >= TILE_LANE_BITS + log_vector) warps = gpu_least(log - TILE_LANE_BITS - log_vector, 2);
    return is_row_of_a_warp(survey, log_vector, warps) ? 0 : warps;
}

/* A thread that multiplies has 64 elements of the largest tile, or 128, so that most of its instructions are products: it loads
 * one element of an operand for each 4 to 16 of them. Smaller tiles keep four warps busy. */
static unsigned log_warps_of_products(const TileFunc *func, const GpuSurvey *survey) {
    enum { LOG_FEWEST_SUMS = 4, LOG_WARPS = 2 };
    GpuSums sums = gpu_find_sums(func, &func->body);
    const unsigned LOG_SUMS = has_many_sums(func, &sums) ? 7 : 6;
    unsigned log = gpu_floor_log2(tile_type_lanes(survey->largest)), of_a_warp = TILE_LANE_BITS + LOG_FEWEST_SUMS;
    unsigned fewest = log > of_a_warp ? gpu_least(log - of_a_warp, LOG_WARPS) : 0;
    unsigned warps = log > TILE_LANE_BITS + LOG_SUMS ? gpu_least(log - TILE_LANE_BITS - LOG_SUMS, MOST_LOG_WARPS) : 0;
    return warps < fewest ? fewest : warps;
}

/* Small products beside a large tile: as many warps as the tile needs, of which some hold copies of the products' sums. */
static unsigned log_warps_beside_products(const TileFunc *func, const GpuSurvey *survey, const GpuDots *dots) {
    unsigned log = dots->plan.log_warps_m + dots->plan.log_warps_n;
    while (!func->warps && log < MOST_LOG_WARPS && survey->registers > MOST_BESIDE_PRODUCTS << (TILE_LANE_BITS + log)) log++;
    return log;
}

static unsigned choose_log_warps(TileFunc *func) {
    GpuDots dots = gpu_find_dots(func, &func->body);
    GpuSurvey survey = gpu_survey(&func->body);
    if (dots.count && !dots.multiplied.count) return log_warps_beside_products(func, &survey, &dots);
    if (!survey.largest) return 0; /* scalars only: one warp */
    bool products = survey.multiplied && !func->warps;
    unsigned log_warps = products ? log_warps_of_products(func, &survey) : log_warps_of_tiles(func, &survey),
             least = least_log_warps(func, &survey);
    unsigned collecting = least_log_warps_of_collecting(func, &survey);
    if (least < collecting) least = collecting;
    return log_warps < least ? least : log_warps;
}

static void choose_instruction(TileOp *op, void *state) {
    const TilePassContext *context = state;
    if (op->id != TILE_OP_DOT) return;
    bool fits = gpu_dot_fits_mma(tile_ptx_target_of(context->target), op);
    TileAttribute attribute = {.key = TILE_ATTRIBUTE_INSTRUCTION,
                               .integer = fits ? TILE_INSTRUCTION_MMA : TILE_INSTRUCTION_FMA};
    tile_op_set(context->module, op, attribute);
}

TileResult tile_pass_gpu_threads(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE || func->threads) return TILE_RESULT_UNCHANGED;
    tile_block_walk(&func->body, choose_instruction, context);
    func->threads = TILE_WARP_THREADS << choose_log_warps(func);
    const TilePtxTarget *target = tile_ptx_target_of(context->target);
    int64_t blocks = gpu_blocks_of_sums(target, func, &func->body);
    int64_t registers = blocks ? target->registers / (blocks * func->threads) & ~INT64_C(7) : 0;
    if (registers && registers < target->registers_thread) func->registers = (uint32_t)registers;
    return TILE_RESULT_CHANGED;
}
