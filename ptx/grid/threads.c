/* Purpose: decide on the number of threads of a block, and on the instructions of each product. Products of two axes
 * with types of tensor cores are computed by mma, all others by fused multiply-adds. The number of threads follows from
 * the sums of the products for tensor cores, or if there are none, from the largest tile.
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
    MOST_MULTIPLIED = 160 /* elements of a thread */
};

/* So many warps that a thread's operands and sums of products by fused multiply-adds, which are live together, fit
 * into its registers. */
static unsigned least_log_warps(const GpuSurvey *survey) {
    unsigned log = 0;
    while (log < MOST_LOG_WARPS && survey->multiplied > (int64_t)MOST_MULTIPLIED << (TILE_LANE_BITS + log)) log++;
    return log;
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
    if (warps < 2 && log >= TILE_LANE_BITS + log_vector) warps = gpu_least(log - TILE_LANE_BITS - log_vector, 2);
    return warps;
}

static unsigned choose_log_warps(const TileFunc *func) {
    GpuDots dots = gpu_find_dots(func, &func->body);
    if (dots.count) return dots.plan.log_warps_m + dots.plan.log_warps_n;
    GpuSurvey survey = gpu_survey(&func->body);
    if (!survey.largest) return 0; /* scalars only: one warp */
    unsigned log_warps = log_warps_of_tiles(func, &survey), least = least_log_warps(&survey);
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

/* ---- tiles that are too large ---- */

static uint64_t registers_of(const TileType *type) {
    unsigned bytes = tile_scalar_bytes(type->scalar), word = sizeof(uint32_t);
    return (uint64_t)tile_type_lanes(type) * (bytes > word ? bytes / word : 1);
}

typedef struct Search {
    uint64_t most; /* registers */
    const TileOp *found;
    const TileType *type;
} Search;

/* The first op with a tile of more registers than there are. An element narrower than a register takes one. */
static void look_for_large(TileOp *op, void *state) {
    Search *search = state;
    for (unsigned i = 0; i < op->result_count && !search->found; i++) {
        const TileType *type = op->results[i].type;
        if (!tile_type_is_tile(type) || registers_of(type) <= search->most) continue;
        search->found = op;
        search->type = type;
    }
}

static TileResult refuse_large(TilePassContext *context, const TileFunc *func, const Search *search) {
    TileText type = {.arena = context->scratch};
    tile_type_print(&type, search->type);
    return tile_pass_exceed(context, TILE_LIMIT_TILE_REGISTERS, TILE_DIAGNOSTIC_TILE_TOO_LARGE, search->found->location,
                            "a tile of %s takes %llu registers, and the %u threads of a block have %llu on %s",
                            tile_text_get(&type), (unsigned long long)registers_of(search->type), func->threads,
                            (unsigned long long)search->most, context->target->name);
}

TileResult tile_pass_gpu_threads(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE || func->threads) return TILE_RESULT_UNCHANGED;
    tile_block_walk(&func->body, choose_instruction, context);
    func->threads = TILE_WARP_THREADS << choose_log_warps(func);
    uint64_t limit = context->limits->most[TILE_LIMIT_TILE_REGISTERS];
    Search search = {.most = limit ? limit
                                   : (uint64_t)func->threads * tile_ptx_target_of(context->target)->registers_thread};
    tile_block_walk(&func->body, look_for_large, &search);
    return search.found ? refuse_large(context, func, &search) : TILE_RESULT_CHANGED;
}
