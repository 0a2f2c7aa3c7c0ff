#include "ptx/layouts/blocked.h"

#include "lang/ir/operands.h"
#include "ptx/target/dot.h"

/* The warps' bits are the last ones. */
static void add_copies(TileLayout *layout, unsigned log) {
    layout->bits[TILE_LAYOUT_WARP] = (uint8_t)(layout->bits[TILE_LAYOUT_WARP] + log);
    layout->map.inputs = (uint8_t)(layout->map.inputs + log);
}

unsigned gpu_log_divided(int64_t extent) { return gpu_least(gpu_floor_log2(extent), tile_layout_log_extent(extent)); }

TileLayout gpu_spread(const TileLayoutShape *shape, unsigned log_vector, unsigned log_rows, uint32_t threads) {
    TileLayoutBlocked blocked = {0};
    unsigned left[TILE_MAX_TILE_RANK] = {0}, lanes = TILE_LANE_BITS, warps = gpu_log_shared_warps(threads),
             copies = gpu_log_warps(threads) - warps,
             last = (shape->rank - 1u) % TILE_MAX_TILE_RANK;
    for (unsigned a = 0; a < shape->rank; a++) {
        left[a] = gpu_log_divided(shape->extent[a]);
        blocked.order[a] = (uint8_t)(last - a);
    }
    blocked.elements[last] = (uint8_t)gpu_least(log_vector, left[last]);
    left[last] -= blocked.elements[last];
    if (last) {
        blocked.elements[last - 1] = (uint8_t)gpu_least(log_rows, left[last - 1]);
        left[last - 1] -= blocked.elements[last - 1];
    }
    for (unsigned a = shape->rank; a-- > 0;) {
        blocked.lanes[a] = (uint8_t)gpu_least(lanes, left[a]);
        lanes -= blocked.lanes[a];
        left[a] -= blocked.lanes[a];
    }
    blocked.lanes[0] = (uint8_t)(blocked.lanes[0] + lanes);
    for (unsigned a = 0; a < shape->rank; a++) {
        blocked.warps[a] = (uint8_t)gpu_least(warps, left[a]);
        warps -= blocked.warps[a];
    }
    blocked.warps[last] = (uint8_t)(blocked.warps[last] + warps);
    TileLayout layout = tile_layout_blocked(shape, &blocked);
    add_copies(&layout, copies);
    return layout;
}

static void survey_type(GpuSurvey *survey, const TileType *type) {
    if (!tile_type_is_tile(type)) return;
    if (gpu_tile_registers(type) > survey->registers) survey->registers = gpu_tile_registers(type);
    const TileType *best = survey->largest;
    int64_t lanes = tile_type_lanes(type), most = best ? tile_type_lanes(best) : 0;
    if (lanes > most || (lanes == most && type->rank > best->rank)) survey->largest = type;
}

static int64_t multiplied_elements(const TileOp *dot) {
    int64_t elements = tile_type_lanes(dot->results[0].type);
    for (unsigned i = 0; i < 2; i++) elements += tile_type_lanes(tile_op_operand(dot, i)->type);
    return elements;
}

/* Does the op reduce whole rows at once, and not tile after tile in a loop? */
static bool reduces_whole_rows(const TileOp *op) {
    const TileOp *loop = op->block->op;
    return op->id == TILE_OP_REDUCE && loop && loop->id == TILE_OP_FOR &&
           tile_loop_is_of_programs(loop) &&
           tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0) + 1 == tile_op_operand(op, 0)->type->rank;
}

static void survey_reduction(GpuSurvey *survey, const TileOp *op) {
    bool rows = reduces_whole_rows(op), piece = rows && tile_op_integer(op, TILE_ATTRIBUTE_PIECEWISE, 0);
    survey->combines = true;
    survey->reduces_rows |= rows && !piece;
    survey->reduces_others |= !piece;
    int64_t row = piece ? tile_op_operand(op, 0)->type->extent[tile_op_operand(op, 0)->type->rank - 1] : 0;
    if (row > survey->piece) survey->piece = row;
}

/* Is it a tile whose lines are reduced in groups, by themselves? That is no other tile for the layout: groups follow from it. */
static bool groups_lines(const TileOp *op) {
    if (op->id != TILE_OP_RESHAPE || !tile_value_has_one_use(&op->results[0])) return false;
    const TileType *from = tile_op_operand(op, 0)->type, *to = op->results[0].type;
    const TileOp *user = op->results[0].first_use->user;
    bool groups = from->rank > 1 && to->rank == from->rank + 1 && user->id == TILE_OP_REDUCE &&
                  tile_op_integer(user, TILE_ATTRIBUTE_AXIS, 0) == 0;
    for (unsigned i = 1; groups && i < from->rank; i++) groups = from->extent[i] == to->extent[i + 1];
    return groups;
}

static void survey_block(GpuSurvey *survey, const TileBlock *block) {
    for (uint32_t i = 0; i < block->argument_count; i++) survey_type(survey, block->arguments[i]->type);
    for (const TileOp *op = block->first; op; op = op->next) {
        for (unsigned i = 0; i < op->result_count && !groups_lines(op); i++) survey_type(survey, op->results[i].type);
        const TileType *moved = op->id == TILE_OP_LOAD_TILE    ? op->results[0].type
                                : op->id == TILE_OP_STORE_TILE ? tile_op_operand(op, 1)->type
                                                               : NULL;
        survey->transposes |= op->id == TILE_OP_PERMUTE;
        survey->draws |= op->id == TILE_OP_RAND && tile_type_is_tile(op->results[0].type);
        if (tile_op_info((TileOpId)op->id)->class == TILE_CLASS_REDUCE) survey_reduction(survey, op);
        if (op->id == TILE_OP_DOT && !gpu_dot_is_mma(op)) survey->multiplied += multiplied_elements(op);
        if (moved && tile_type_is_tile(moved) && tile_scalar_bytes(moved->scalar) < survey->least_bytes)
            survey->least_bytes = tile_scalar_bytes(moved->scalar);
        for (unsigned i = 0; i < op->region_count; i++) survey_block(survey, &op->regions[i]);
    }
}

GpuSurvey gpu_survey(const TileBlock *body) {
    GpuSurvey survey = {.least_bytes = 8};
    survey_block(&survey, body);
    return survey;
}

bool gpu_is_in_order(const TileLayout *layout, unsigned axis, unsigned *log_segments) {
    enum { MOST_LOG_SEGMENTS = 4 };
    unsigned low = tile_layout_axis_bit(layout, axis), expected = 0, bits = layout->log_extent[axis];
    TileLayoutDim phase = TILE_LAYOUT_REGISTER;
    *log_segments = 0;
    for (unsigned a = 0; a < layout->rank; a++)
        if (layout->pieces[a] != 1) return false;
    for (unsigned bit = 0; bit < bits; bit++) {
        unsigned input = 0, found = 0;
        for (unsigned i = 0; i < layout->map.inputs; i++)
            if (layout->map.column[i] >> (low + bit) & 1) input = i, found++;
        if (found != 1 || layout->map.column[input] != UINT32_C(1) << (low + bit)) return false;
        TileLayoutDim dim = TILE_LAYOUT_REGISTER;
        while (dim < TILE_LAYOUT_WARP && input >= tile_layout_first_bit(layout, dim + 1)) dim++;
        if (dim == TILE_LAYOUT_REGISTER) {
            if (phase != TILE_LAYOUT_REGISTER) ++*log_segments;
            continue;
        }
        if (*log_segments || dim < phase || (dim == phase && input < expected)) return false;
        phase = dim;
        expected = input + 1;
    }
    return *log_segments <= MOST_LOG_SEGMENTS;
}

static void look_for_store(TileOp *op, void *found) { *(bool *)found |= op->id == TILE_OP_STORE_TILE; }

bool gpu_only_stores(const TileOp *op) {
    bool stores = false;
    if (op->id != TILE_OP_FOR || tile_loop_is_of_programs(op)) return false;
    TileBlock *body = (TileBlock *)(uintptr_t)&op->regions[0];
    GpuSurvey survey = gpu_survey(body);
    tile_block_walk(body, look_for_store, &stores);
    if (!stores || survey.combines || survey.draws || survey.transposes) return false;
    for (unsigned i = 0; i < op->result_count; i++)
        for (const TileUse *use = op->results[i].first_use; use; use = use->next)
            if (!gpu_only_stores(use->user)) return false;
    return true;
}
