/* One layout for the largest tile of a function, those of the others follow from it, so that a row's statistics lie
 * where the row does and elementwise ops need no movement. Where there are products for tensor cores the layout is that
 * of their sums, and each product's result has one of its own, with the warps alike along the rows. */
#include "ptx/dot.h"
#include "ptx/lower.h"

#include <string.h>

enum {
    ACCESS_BYTES = 16,
    LOG_ACCESSES_OF_A_THREAD = 2,
    LEAST_LOG_ELEMENTS = 4,
    MOST_LOG_ELEMENTS = 5,
    MOST_LOG_WARPS = 5,
    LOG_ROW_OF_A_WARP = 10,
    MOST_MULTIPLIED = 160 /* of a thread */
};

typedef struct Survey {
    const TileType *largest;
    unsigned least_bytes; /* of an element that is loaded or stored */
    bool turns;           /* tiles change the order of their axes */
    bool reduces_rows;    /* whole rows are reduced, as one tile */
    int64_t multiplied;   /* elements of the operands and sums of products by fused multiply-adds */
} Survey;

static void look_at(Survey *survey, const TileType *type) {
    if (!tile_type_is_tile(type)) return;
    const TileType *best = survey->largest;
    int64_t lanes = tile_type_lanes(type), most = best ? tile_type_lanes(best) : 0;
    if (lanes > most || (lanes == most && type->rank > best->rank)) survey->largest = type;
}

static int64_t multiplied_elements(const TileOp *dot) {
    int64_t elements = tile_type_lanes(dot->results[0].type);
    for (unsigned i = 0; i < 2; i++) elements += tile_type_lanes(tile_op_operand(dot, i)->type);
    return elements;
}

/* Along the last axis, and not tile after tile in a loop. */
static bool reduces_whole_rows(const TileOp *op) {
    const TileOp *loop = op->block->op;
    return op->id == TILE_OP_REDUCE && loop && loop->id == TILE_OP_FOR &&
           tile_value_def(tile_op_operand(loop, 2), TILE_OP_BLOCK_COUNT) &&
           tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0) + 1 == tile_op_operand(op, 0)->type->rank;
}

static void survey_block(Survey *survey, const TileBlock *block) {
    for (uint32_t i = 0; i < block->argument_count; i++) look_at(survey, block->arguments[i]->type);
    for (const TileOp *op = block->first; op; op = op->next) {
        for (unsigned i = 0; i < op->result_count; i++) look_at(survey, op->results[i].type);
        const TileType *moved = op->id == TILE_OP_LOAD_TILE    ? op->results[0].type
                                : op->id == TILE_OP_STORE_TILE ? tile_op_operand(op, 1)->type
                                                               : NULL;
        survey->turns |= op->id == TILE_OP_PERMUTE;
        survey->reduces_rows |= reduces_whole_rows(op);
        if (op->id == TILE_OP_DOT) survey->multiplied += multiplied_elements(op);
        if (moved && tile_type_is_tile(moved) && tile_scalar_bytes(moved->scalar) < survey->least_bytes)
            survey->least_bytes = tile_scalar_bytes(moved->scalar);
        for (unsigned i = 0; i < op->region_count; i++) survey_block(survey, &op->regions[i]);
    }
}

static unsigned floor_log2(int64_t value) { return 63u - (unsigned)__builtin_clzll((unsigned long long)value); }
static unsigned least(unsigned a, unsigned b) { return a < b ? a : b; }

TileLayoutShape gpu_shape(const TileType *tile) {
    TileLayoutShape shape = {.rank = tile->rank};
    memcpy(shape.extent, tile->extent, sizeof shape.extent);
    return shape;
}

/* Vectors and lanes along the last axis, `rows` neighbours of each along the axis before it, warps along the first
 * ones. */
static TileLayout spread(const TileLayoutShape *shape, unsigned log_vector, unsigned log_rows, unsigned log_warps) {
    TileLayoutBlocked blocked = {0};
    unsigned left[TILE_MAX_TILE_RANK] = {0}, lanes = TILE_LANE_BITS, warps = log_warps,
             last = (shape->rank - 1u) % TILE_MAX_TILE_RANK;
    for (unsigned a = 0; a < shape->rank; a++) {
        left[a] = floor_log2(shape->extent[a]);
        blocked.order[a] = (uint8_t)(last - a);
    }
    blocked.elements[last] = (uint8_t)least(log_vector, left[last]);
    left[last] -= blocked.elements[last];
    if (last) {
        blocked.elements[last - 1] = (uint8_t)least(log_rows, left[last - 1]);
        left[last - 1] -= blocked.elements[last - 1];
    }
    for (unsigned a = shape->rank; a-- > 0;) {
        blocked.lanes[a] = (uint8_t)least(lanes, left[a]);
        lanes -= blocked.lanes[a];
        left[a] -= blocked.lanes[a];
    }
    blocked.lanes[0] = (uint8_t)(blocked.lanes[0] + lanes);
    for (unsigned a = 0; a < shape->rank; a++) {
        blocked.warps[a] = (uint8_t)least(warps, left[a]);
        warps -= blocked.warps[a];
    }
    blocked.warps[last] = (uint8_t)(blocked.warps[last] + warps);
    return tile_layout_blocked(shape, &blocked);
}

/* Of a tile that is turned round a thread has a block, so that both ways it is vectors that pass through shared memory.
 */
static unsigned choose_log_rows(const Gpu *gpu, const Survey *survey, unsigned log) {
    unsigned others = gpu->log_vector + TILE_LANE_BITS + gpu->log_warps;
    return survey->turns && log > others ? least(log - others, gpu->log_vector) : 0;
}

/* Operands and sums of products by fused multiply-adds are in registers at the same time. */
static unsigned least_log_warps(const Survey *survey) {
    unsigned log = 0;
    while (log < MOST_LOG_WARPS && survey->multiplied > (int64_t)MOST_MULTIPLIED << (TILE_LANE_BITS + log)) log++;
    return log;
}

/* Four accesses of 16 bytes under way in each thread reach the memory's bandwidth. A short row is left to one warp,
 * whose sums meet at no barrier. */
static unsigned choose_log_warps(const Gpu *gpu, const Survey *survey, unsigned log_vector, unsigned log) {
    if (gpu->func->warps) return floor_log2(gpu->func->warps);
    if (survey->reduces_rows && log <= LOG_ROW_OF_A_WARP) return 0;
    unsigned elements = least(log_vector + LOG_ACCESSES_OF_A_THREAD, MOST_LOG_ELEMENTS);
    if (elements < LEAST_LOG_ELEMENTS) elements = LEAST_LOG_ELEMENTS;
    unsigned of_a_warp = TILE_LANE_BITS + elements,
             warps = log > of_a_warp ? least(log - of_a_warp, MOST_LOG_WARPS) : 0;
    if (warps < 2 && log >= TILE_LANE_BITS + log_vector) warps = least(log - TILE_LANE_BITS - log_vector, 2);
    return warps;
}

static TileLayout blocked_layout(Gpu *gpu, const Survey *survey) {
    TileLayoutShape shape = gpu_shape(survey->largest);
    gpu->log_vector = floor_log2(ACCESS_BYTES / survey->least_bytes);
    unsigned log = floor_log2(tile_type_lanes(survey->largest));
    gpu->log_warps = choose_log_warps(gpu, survey, gpu->log_vector, log);
    if (gpu->log_warps < least_log_warps(survey)) gpu->log_warps = least_log_warps(survey);
    gpu->log_rows = choose_log_rows(gpu, survey, log);
    return spread(&shape, gpu->log_vector, gpu->log_rows, gpu->log_warps);
}

void gpu_choose_layouts(Gpu *gpu, const TileBlock *body) {
    gpu->dots = gpu_find_dots(tile_ptx_target_of(gpu->context->target), gpu->func, body);
    if (gpu->dots.count) {
        gpu->log_warps = gpu->dots.log_warps_m + gpu->dots.log_warps_n;
        gpu->family_count = gpu->dots.count;
        for (unsigned i = 0; i < gpu->dots.count; i++)
            gpu->family[i] = (GpuFamily){gpu_shape(gpu->dots.types[i]), gpu_sum_layout(&gpu->dots, gpu->dots.types[i])};
        return;
    }
    Survey survey = {.least_bytes = 8};
    survey_block(&survey, body);
    if (!survey.largest) return; /* scalars only: one warp */
    gpu->family_count = 1;
    gpu->family[0] = (GpuFamily){gpu_shape(survey.largest), blocked_layout(gpu, &survey)};
}

/* Axes of extent 1 take the place of axes of the main tile. */
static bool fits(const TileLayoutShape *shape, const TileType *tile, unsigned without) {
    unsigned axis = 0;
    for (unsigned a = 0; a < shape->rank; a++) {
        if (a == without) continue;
        if (tile->extent[axis] != shape->extent[a] && tile->extent[axis] != 1) return false;
        axis++;
    }
    return true;
}

static TileLayout flatten_ones(TileLayout layout, const TileType *tile) {
    for (unsigned a = 0; a < tile->rank; a++) {
        if (tile->extent[a] != 1 || tile_layout_extent(&layout, a) == 1) continue;
        TileLayout without = tile_layout_slice(&layout, a);
        layout = tile->rank == 1 ? without : tile_layout_expand(&without, a);
    }
    return tile_layout_without_copies(&layout);
}

/* A vector is a column of some product's rows before it is a row of its columns. */
TileLayout gpu_layout(const Gpu *gpu, const TileType *tile) {
    for (unsigned i = 0; i < gpu->dots.count; i++)
        if (tile_type_same_shape(tile, gpu->dots.types[i])) return gpu->family[i].layout;
    for (unsigned i = 0; i < gpu->family_count; i++) {
        const TileLayoutShape *shape = &gpu->family[i].shape;
        if (tile->rank == shape->rank && fits(shape, tile, shape->rank))
            return flatten_ones(gpu->family[i].layout, tile);
    }
    for (unsigned back = 1; back <= TILE_MAX_TILE_RANK; back++)
        for (unsigned i = 0; i < gpu->family_count; i++) {
            const TileLayoutShape *shape = &gpu->family[i].shape;
            if (tile->rank + 1 == shape->rank && back <= shape->rank && fits(shape, tile, shape->rank - back))
                return flatten_ones(tile_layout_slice(&gpu->family[i].layout, shape->rank - back), tile);
        }
    if (gpu->dots.count && tile->rank == 2) return gpu_sum_layout(&gpu->dots, tile);
    TileLayoutShape own = gpu_shape(tile);
    unsigned threads = TILE_LANE_BITS + gpu->log_warps, log = floor_log2(tile_type_lanes(tile));
    return spread(&own, log > threads ? least(log - threads, gpu->log_vector) : 0, gpu->log_rows, gpu->log_warps);
}

TileLayout gpu_copy_layout(const TileLayoutShape *shape, unsigned scalar_bytes, unsigned log_warps) {
    return spread(shape, floor_log2(ACCESS_BYTES / scalar_bytes), 0, log_warps);
}

const TileType *gpu_type(Gpu *gpu, const TileLayout *layout, TileScalar scalar) {
    return tile_type_vector(gpu->module->context, scalar, tile_layout_registers(layout), false);
}
