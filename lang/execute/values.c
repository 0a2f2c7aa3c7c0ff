/* Elementwise ops, shapes and vectors. */
#include <string.h>

#include "lang/execute/state.h"
#include "lang/scalar/scalar.h"

void tile_exec_clear_poison(ExecValue value) { *value.any = 0; }

void tile_exec_set_poison(TileExecutor *e, ExecValue value, uint32_t lane, uint8_t poison) {
    if (e->options.no_poison) return;
    if (!*value.any) memset(value.poison, 0, value.count);
    *value.any = 1;
    value.poison[lane] = poison;
}

void tile_exec_set_scalar(ExecValue value, uint64_t bits) {
    value.lanes[0] = bits;
    *value.any = 0;
}

void tile_exec_copy(ExecValue from, ExecValue to) {
    memmove(to.lanes, from.lanes, from.count * sizeof *to.lanes);
    if (to.slack) memmove(to.slack, from.slack, from.count * sizeof *to.slack);
    if (*from.any) memmove(to.poison, from.poison, from.count);
    *to.any = *from.any;
}

/* A lane is poison if that lane of any operand is. */
static void join_poison(TileExecutor *e, const ExecInstruction *in, ExecValue result) {
    memset(result.poison, 0, result.count);
    for (unsigned i = 0; i < in->operand_count; i++) {
        ExecValue operand = tile_exec_operand(e, in, i);
        if (!*operand.any) continue;
        for (uint32_t l = 0; l < result.count; l++) result.poison[l] |= operand.poison[l];
    }
    *result.any = 1;
}

bool tile_exec_elementwise(TileExecutor *e, const ExecInstruction *in) {
    const ExecActivation *activation = tile_exec_frame(e)->activation;
    const ExecRegister *registers = activation->program->registers;
    const uint64_t *operands[3] = {NULL, NULL, NULL};
    uint8_t any = 0;
    for (unsigned i = 0; i < in->operand_count; i++) {
        operands[i] = activation->lanes + registers[in->operands[i]].offset;
        any |= activation->any[in->operands[i]];
    }
    in->loop(in->from, in->to, operands, activation->lanes + registers[in->result].offset, in->lanes);
    activation->any[in->result] = 0;
    if (any) join_poison(e, in, tile_exec_result(e, in));
    if (activation->slack) tile_exec_slack_elementwise(e, in);
    return true;
}

/* `any` says whether a lane is poison; users of scalars read only that. */
static void settle(ExecValue result, bool any) {
    uint8_t found = 0;
    for (uint32_t i = 0; any && i < result.count; i++) found |= result.poison[i];
    *result.any = found != 0;
}

/* The condition is a scalar, or has a lane for each lane of the values. Only the poison of the chosen value matters. */
bool tile_exec_select(TileExecutor *e, const ExecInstruction *in) {
    ExecValue c = tile_exec_operand(e, in, 0), x = tile_exec_operand(e, in, 1), y = tile_exec_operand(e, in, 2);
    ExecValue result = tile_exec_result(e, in);
    uint32_t step = c.count == result.count ? 1 : 0;
    bool any = *c.any || *x.any || *y.any;
    for (uint32_t i = 0; i < result.count; i++) result.lanes[i] = c.lanes[i * step] ? x.lanes[i] : y.lanes[i];
    if (any)
        for (uint32_t i = 0; i < result.count; i++)
            result.poison[i] = tile_exec_poisoned(c, i * step) | tile_exec_poisoned(c.lanes[i * step] ? x : y, i);
    settle(result, any);
    if (result.slack) tile_exec_slack_select(c, x, y, result, in->op->results[0].type->scalar);
    return true;
}

bool tile_exec_splat(TileExecutor *e, const ExecInstruction *in) {
    ExecValue x = tile_exec_operand(e, in, 0), result = tile_exec_result(e, in);
    for (uint32_t i = 0; i < result.count; i++) result.lanes[i] = x.lanes[0];
    for (uint32_t i = 0; result.slack && i < result.count; i++) result.slack[i] = x.slack[0];
    if (*x.any) memset(result.poison, x.poison[0], result.count);
    *result.any = *x.any;
    return true;
}

/* Lanes of both operands, the second's numbered after the first's. */
bool tile_exec_map(TileExecutor *e, const ExecInstruction *in) {
    ExecValue x = tile_exec_operand(e, in, 0), result = tile_exec_result(e, in);
    ExecValue y = tile_exec_operand(e, in, in->operand_count - 1);
    bool any = *x.any || *y.any;
    for (uint32_t i = 0; i < result.count; i++) {
        uint32_t from = in->map[i];
        bool first = from < x.count;
        result.lanes[i] = first ? x.lanes[from] : y.lanes[from - x.count];
        if (any) result.poison[i] = first ? tile_exec_poisoned(x, from) : tile_exec_poisoned(y, from - x.count);
        if (result.slack) result.slack[i] = first ? x.slack[from] : y.slack[from - x.count];
    }
    settle(result, any);
    return true;
}

bool tile_exec_insert(TileExecutor *e, const ExecInstruction *in) {
    ExecValue x = tile_exec_operand(e, in, 0), scalar = tile_exec_operand(e, in, 1), result = tile_exec_result(e, in);
    int64_t lane = tile_op_integer(in->op, TILE_ATTRIBUTE_AXIS, 0);
    tile_exec_copy(x, result);
    result.lanes[lane] = scalar.lanes[0];
    if (*result.any) {
        result.poison[lane] = tile_exec_poisoned(scalar, 0);
        settle(result, true);
    } else if (tile_exec_poisoned(scalar, 0)) {
        tile_exec_set_poison(e, result, (uint32_t)lane, tile_exec_poisoned(scalar, 0));
    }
    return true;
}

/* Lanes begin .. end of each of `count` groups of `size` lanes. */
static void fill_lanes(ExecValue to, ExecValue value, int64_t count, int64_t size, int64_t begin, int64_t end) {
    for (int64_t group = 0; group < count; group++)
        for (int64_t i = group * size + begin; i < group * size + end; i++) {
            to.lanes[i] = value.lanes[0];
            if (*to.any) to.poison[i] = tile_exec_poisoned(value, 0);
            if (to.slack) to.slack[i] = value.slack[0];
        }
}

bool tile_exec_fill(TileExecutor *e, const ExecInstruction *in) {
    ExecValue value = tile_exec_operand(e, in, 1), result = tile_exec_result(e, in);
    const TileAttribute *axes = tile_op_get(in->op, TILE_ATTRIBUTE_AXES);
    const TileType *type = in->op->results[0].type;
    tile_exec_copy(tile_exec_operand(e, in, 0), result);
    if (*value.any && !*result.any) {
        memset(result.poison, 0, result.count);
        *result.any = 1;
    }
    for (unsigned i = 0; i < axes->count; i++) {
        int64_t lo, hi, inner = 1, extent = type->extent[axes->integers[i]];
        if (!tile_exec_integer(e, in, 2 + 2 * i, "a bound", &lo) ||
            !tile_exec_integer(e, in, 3 + 2 * i, "a bound", &hi))
            return false;
        for (unsigned a = (unsigned)axes->integers[i] + 1; a < type->rank; a++) inner *= type->extent[a];
        if (lo < 0) lo = 0;
        if (lo > extent) lo = extent;
        if (hi < lo) hi = lo;
        if (hi > extent) hi = extent;
        int64_t size = inner * extent, count = result.count / size;
        fill_lanes(result, value, count, size, 0, lo * inner);
        fill_lanes(result, value, count, size, hi * inner, size);
    }
    return true;
}

bool tile_exec_mask_lt(TileExecutor *e, const ExecInstruction *in) {
    ExecValue base = tile_exec_operand(e, in, 0), limit = tile_exec_operand(e, in, 1), result = tile_exec_result(e, in);
    *result.any = 0;
    tile_exec_count_mask(e, in);
    for (uint32_t i = 0; i < result.count; i++) {
        result.lanes[i] = (__int128)(int64_t)base.lanes[0] + i < (__int128)(int64_t)limit.lanes[0];
        uint8_t poison = tile_exec_poisoned(base, 0) | tile_exec_poisoned(limit, 0);
        if (poison) tile_exec_set_poison(e, result, i, poison);
    }
    return true;
}

bool tile_exec_any_lane(TileExecutor *e, const ExecInstruction *in) {
    ExecValue value = tile_exec_operand(e, in, 0), result = tile_exec_result(e, in);
    *result.any = 0;
    result.lanes[0] = 0;
    for (uint32_t i = 0; i < value.count; i++)
        if (!tile_exec_poisoned(value, i)) result.lanes[0] |= value.lanes[i];
    return true;
}
