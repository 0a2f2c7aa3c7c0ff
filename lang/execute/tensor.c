/* Tensors: load_tile, store_tile, and the host ops on tensors. */
#include <math.h>
#include <string.h>

#include "lang/execute/state.h"
#include "base/temp.h"
#include "lang/ir/operands.h"
#include "lang/scalar/scalar.h"

/* The state of a lane along one axis; several are combined to the least. An invalid lane is not accessed, so its index
 * may be any. */
enum { INVALID, POISON, OUTSIDE, VALID };

/* A kept axis: for each of its lanes, the byte offset that it adds to the address, and whether it is valid. */
typedef struct Axis {
    uint32_t extent;
    int64_t *offset;
    uint8_t *state;
} Axis;

typedef struct Access {
    const ExecTensor *tensor;
    const TileType *type; /* of the tensor */
    unsigned rank;
    Axis axes[TILE_MAX_TILE_RANK];
    int64_t offset; /* of the indices that drop their dimension */
    uint8_t state;
    bool has_mask;
    ExecValue mask;
    unsigned first_operand; /* the first index */
    const Axis *positions;  /* the axis of positions; NULL: there is none */
    bool flat;              /* the last index counts the elements of several dimensions, `elements` in all */
    int64_t elements;
} Access;

static int64_t end_of(const Access *a, unsigned dimension) {
    return a->flat && dimension + 1 == a->type->rank ? a->elements : a->tensor->extent[dimension];
}

/* That of a dimension of one element may be any. */
static int64_t stride_of(const Access *a, unsigned dimension) {
    bool all = a->flat && dimension + 1 == a->type->rank;
    return all ? (int64_t)tile_scalar_bytes(a->type->scalar) : a->tensor->stride[dimension];
}

static uint8_t index_state(const Access *a, unsigned dimension, int64_t index) {
    return index >= 0 && index < end_of(a, dimension) ? VALID : OUTSIDE;
}

static void narrow(uint8_t *state, uint8_t with) {
    if (with < *state) *state = with;
}

/* Wraps, like address arithmetic; only addresses inside the tensor are accessed. */
static int64_t scale(int64_t index, int64_t stride) { return (int64_t)((uint64_t)index * (uint64_t)stride); }

static bool take_range(TileExecutor *e, const ExecInstruction *in, Access *a, unsigned dimension, unsigned operand,
                       Axis *axis) {
    int64_t lo, hi;
    if (!tile_exec_integer(e, in, operand + 2, "a bound of the access", &lo) ||
        !tile_exec_integer(e, in, operand + 3, "a bound of the access", &hi))
        return false;
    ExecValue first = tile_exec_operand(e, in, operand), step = tile_exec_operand(e, in, operand + 1);
    tile_exec_slack_unknown(e, first);
    tile_exec_slack_unknown(e, step);
    bool poison = tile_exec_poisoned(first, 0) || tile_exec_poisoned(step, 0);
    for (uint32_t l = 0; l < axis->extent; l++) {
        int64_t index = (int64_t)(first.lanes[0] + l * step.lanes[0]);
        axis->offset[l] = scale(index, stride_of(a, dimension));
        axis->state[l] = poison ? POISON : index_state(a, dimension, index);
        if (l < lo || l >= hi) axis->state[l] = INVALID;
    }
    return true;
}

/* Gathers of one access share their axis: offsets add up. */
static void take_gather(Access *a, unsigned dimension, ExecValue index, Axis *axis, bool first) {
    for (uint32_t l = 0; l < axis->extent; l++) {
        int64_t offset = scale((int64_t)index.lanes[l], a->tensor->stride[dimension]);
        uint8_t state = tile_exec_poisoned(index, l) ? POISON : index_state(a, dimension, (int64_t)index.lanes[l]);
        axis->offset[l] = first ? offset : axis->offset[l] + offset;
        if (first) axis->state[l] = VALID;
        narrow(&axis->state[l], state);
    }
}

/* ---- positions ---- */

/* Of a dimension of positions: the first number, and what makes an index of one. */
typedef struct Position {
    unsigned dimension;
    int64_t first, step, added, count;
} Position;

static bool read_position(TileExecutor *e, const ExecInstruction *in, unsigned operand, Position *position) {
    return tile_exec_integer(e, in, operand, "the first position", &position->first) &&
           tile_exec_integer(e, in, operand + 1, "a step of positions", &position->step) &&
           tile_exec_integer(e, in, operand + 2, "what is added to positions", &position->added) &&
           tile_exec_integer(e, in, operand + 3, "a number of positions", &position->count);
}

/* The lane's number behind the first position, from the last dimension on; what is outside is not valid. */
static void take_position(const Access *a, const Position *positions, unsigned count, Axis *axis, uint32_t lane) {
    int64_t rest = lane;
    axis->offset[lane] = 0;
    axis->state[lane] = VALID;
    for (unsigned i = count; i-- > 0;) {
        const Position *position = &positions[i];
        int64_t number = position->first + rest, turn = i && position->count > 0 ? position->count : INT64_MAX;
        int64_t index = number % turn * position->step + position->added;
        rest = number / turn;
        axis->offset[lane] += scale(index, stride_of(a, position->dimension));
        if (index_state(a, position->dimension, index) != VALID) axis->state[lane] = INVALID;
    }
}

static bool take_positions(TileExecutor *e, const ExecInstruction *in, Access *a, Axis *axis) {
    Position positions[TILE_MAX_TENSOR_RANK];
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    unsigned count = 0, rank = tile_access_read(in->op, indices);
    for (unsigned d = 0; d < rank; d++) {
        if (indices[d].kind != TILE_ACCESS_POSITION) continue;
        positions[count].dimension = d;
        if (!read_position(e, in, indices[d].operand, &positions[count++])) return false;
    }
    for (uint32_t lane = 0; lane < axis->extent; lane++) take_position(a, positions, count, axis, lane);
    return true;
}

static void take_index(Access *a, unsigned dimension, ExecValue index) {
    a->offset += scale((int64_t)index.lanes[0], stride_of(a, dimension));
    narrow(&a->state, tile_exec_poisoned(index, 0) ? POISON : index_state(a, dimension, (int64_t)index.lanes[0]));
}

bool tile_exec_is_dense(const int64_t *extent, const int64_t *stride, unsigned rank, unsigned from, int64_t bytes) {
    bool dense = true, empty = false;
    for (unsigned d = rank; d-- > from;) {
        dense &= extent[d] < 2 || stride[d] == bytes;
        empty |= extent[d] == 0;
        bytes = (int64_t)((uint64_t)bytes * (uint64_t)extent[d]);
    }
    return dense || empty;
}

/* An access that goes through the elements from a dimension on, as they lie in memory. */
static bool read_flat(TileExecutor *e, const ExecInstruction *in, Access *a) {
    const TileAttribute *flat = tile_op_get(in->op, TILE_ATTRIBUTE_FLAT);
    const ExecTensor *tensor = a->tensor;
    if (!flat) return true;
    unsigned from = (unsigned)flat->integer, rank = a->type->rank;
    a->flat = true;
    a->elements = 1;
    for (unsigned d = from; d < rank; d++) a->elements = scale(a->elements, tensor->extent[d]);
    if (tile_exec_is_dense(tensor->extent, tensor->stride, rank, from, (int64_t)tile_scalar_bytes(a->type->scalar)))
        return true;
    return tile_exec_fault(e, in, "the tensor has gaps behind dimension %u", from);
}

static bool make_axes(TileExecutor *e, Access *a, const TileType *value) {
    size_t lanes = 0;
    for (unsigned i = 0; i < value->rank; i++) lanes += (size_t)value->extent[i];
    int64_t *offsets = tile_exec_scratch(e, lanes * (sizeof *offsets + 1));
    if (!offsets) return false;
    uint8_t *states = (uint8_t *)(offsets + lanes);
    for (unsigned i = 0; i < value->rank; i++) {
        a->axes[i] = (Axis){(uint32_t)value->extent[i], offsets, states};
        offsets += value->extent[i];
        states += value->extent[i];
    }
    a->rank = value->rank;
    return true;
}

static bool read_access(TileExecutor *e, const ExecInstruction *in, const TileType *value, Access *a) {
    unsigned operand = tile_access_first(in->op);
    const TileAttribute *kinds = tile_op_get(in->op, TILE_ATTRIBUTE_ACCESS);
    *a = (Access){.tensor = &e->tensors[tile_exec_operand(e, in, 0).lanes[0]],
                  .type = in->op->operands[0].value->type,
                  .state = VALID,
                  .has_mask = in->mask >= 0,
                  .first_operand = operand};
    a->offset = a->tensor->offset;
    if (a->has_mask) {
        a->mask = tile_exec_operand(e, in, (unsigned)in->mask);
        tile_exec_slack_unknown(e, a->mask);
    }
    if (!make_axes(e, a, value) || !read_flat(e, in, a)) return false;
    unsigned next = 0;
    Axis *gathered = NULL;
    for (unsigned d = 0; d < kinds->count; d++) {
        if (kinds->integers[d] == TILE_ACCESS_RANGE) {
            if (!take_range(e, in, a, d, operand, &a->axes[next++])) return false;
            operand += 4;
            continue;
        }
        if (kinds->integers[d] == TILE_ACCESS_POSITION) {
            operand += 4;
            if (gathered) continue;
            gathered = &a->axes[next++];
            a->positions = gathered;
            if (!take_positions(e, in, a, gathered)) return false;
            continue;
        }
        ExecValue index = tile_exec_operand(e, in, operand++);
        tile_exec_slack_unknown(e, index);
        if (kinds->integers[d] == TILE_ACCESS_INDEX) {
            take_index(a, d, index);
        } else {
            bool first = !gathered;
            if (first) gathered = &a->axes[next++];
            take_gather(a, d, index, gathered, first);
        }
    }
    return true;
}

/* ---- walking the lanes ---- */

typedef bool (*LaneVisitor)(TileExecutor *e, const ExecInstruction *in, const Access *a, uint32_t lane, int64_t offset,
                            bool valid);

/* The index of a lane in the dimension whose operands start at `operand`; `along` is the lane's index on its axis. */
static int64_t index_of(TileExecutor *e, const ExecInstruction *in, int64_t kind, unsigned operand, uint32_t along) {
    const uint64_t *first = tile_exec_operand(e, in, operand).lanes;
    if (kind != TILE_ACCESS_RANGE) return (int64_t)first[kind == TILE_ACCESS_GATHER ? along : 0];
    return (int64_t)(first[0] + along * tile_exec_operand(e, in, operand + 1).lanes[0]);
}

/* The poison of the access's indices, for messages. */
static uint8_t index_poison(TileExecutor *e, const ExecInstruction *in, const Access *a) {
    const TileAttribute *kinds = tile_op_get(in->op, TILE_ATTRIBUTE_ACCESS);
    unsigned operand = a->first_operand;
    uint8_t poison = 0;
    for (unsigned d = 0; d < kinds->count; d++) {
        unsigned operands = tile_access_operands(kinds->integers[d]);
        for (unsigned i = 0; i < (operands > 1 ? 2u : 1u); i++) {
            ExecValue index = tile_exec_operand(e, in, operand + i);
            for (uint32_t l = 0; l < index.count; l++) poison |= tile_exec_poisoned(index, l);
        }
        operand += operands;
    }
    return poison;
}

static bool complain(TileExecutor *e, const ExecInstruction *in, const Access *a, uint8_t state, uint32_t lane) {
    if (state == POISON)
        return tile_exec_poison(e, in, index_poison(e, in, a), "has as an index", "an index of lane %u is poison", lane);
    const TileAttribute *kinds = tile_op_get(in->op, TILE_ATTRIBUTE_ACCESS);
    uint32_t along[TILE_MAX_TILE_RANK + 1] = {0}, rest = lane;
    for (unsigned i = a->rank; i-- > 0; rest /= a->axes[i].extent) along[i] = rest % a->axes[i].extent;
    unsigned operand = a->first_operand, next = 0, gathered = TILE_MAX_TILE_RANK;
    for (unsigned d = 0; d < kinds->count; d++) {
        int64_t kind = kinds->integers[d];
        unsigned axis = TILE_MAX_TILE_RANK;
        if (kind == TILE_ACCESS_RANGE) axis = next++;
        if (kind == TILE_ACCESS_GATHER || kind == TILE_ACCESS_POSITION) axis = gathered = gathered < TILE_MAX_TILE_RANK ? gathered : next++;
        if (kind == TILE_ACCESS_POSITION) {
            operand += 4; /* lanes that are outside are not valid */
            continue;
        }
        int64_t index = index_of(e, in, kind, operand, along[axis]);
        if (index_state(a, d, index) == OUTSIDE)
            return tile_exec_fault(
                e, in, "lane %u lies outside of the tensor: index %lld of dimension %u, whose extent is %lld", lane,
                (long long)index, d, (long long)end_of(a, d));
        operand += tile_access_operands(kind);
    }
    return tile_exec_fault(e, in, "lane %u lies outside of the tensor", lane);
}

static bool visit(TileExecutor *e, const ExecInstruction *in, const Access *a, LaneVisitor visitor, uint32_t lane,
                  int64_t offset, uint8_t state) {
    if (state != INVALID && a->has_mask) {
        uint8_t poison = tile_exec_poisoned(a->mask, lane);
        if (poison) return tile_exec_poison(e, in, poison, "depends on", "the mask is poison in lane %u", lane);
        if (!a->mask.lanes[lane]) state = INVALID;
    }
    if (state == POISON || state == OUTSIDE) return complain(e, in, a, state, lane);
    return visitor(e, in, a, lane, offset, state == VALID);
}

static bool walk(TileExecutor *e, const ExecInstruction *in, const Access *a, LaneVisitor visitor) {
    if (!a->rank) return visit(e, in, a, visitor, 0, a->offset, a->state);
    uint32_t index[TILE_MAX_TILE_RANK] = {0}, lane = 0;
    const Axis *last = &a->axes[a->rank - 1];
    for (;;) {
        int64_t offset = a->offset;
        uint8_t state = a->state;
        for (unsigned i = 0; i + 1 < a->rank; i++) {
            offset += a->axes[i].offset[index[i]];
            narrow(&state, a->axes[i].state[index[i]]);
        }
        for (uint32_t l = 0; l < last->extent; l++, lane++) {
            uint8_t both = last->state[l] < state ? last->state[l] : state;
            if (!visit(e, in, a, visitor, lane, offset + last->offset[l], both)) return false;
        }
        unsigned axis = a->rank - 1;
        while (axis > 0 && ++index[axis - 1] == a->axes[axis - 1].extent) index[--axis] = 0;
        if (axis == 0) return true;
    }
}

/* Is the lane's position outside of the tensor, where what is loaded is 0? */
static bool is_outside(const Access *a, uint32_t lane) {
    for (unsigned i = a->rank; i-- > 0; lane /= a->axes[i].extent)
        if (&a->axes[i] == a->positions) return a->positions->state[lane % a->axes[i].extent] != VALID;
    return false;
}

static bool load_lane(TileExecutor *e, const ExecInstruction *in, const Access *a, uint32_t lane, int64_t offset,
                      bool valid) {
    ExecValue result = tile_exec_result(e, in);
    uint8_t poison = valid ? 0 : EXEC_POISON;
    if (valid) {
        if (!tile_exec_load_element(e, in, a->tensor->object, offset, a->type->scalar, &result.lanes[lane], &poison))
            return false;
    } else if (in->fill >= 0) {
        ExecValue fill = tile_exec_operand(e, in, (unsigned)in->fill);
        uint32_t from = fill.count > 1 ? lane : 0;
        result.lanes[lane] = fill.lanes[from];
        poison = tile_exec_poisoned(fill, from);
    } else if (is_outside(a, lane)) {
        result.lanes[lane] = poison = 0;
    } else {
        result.lanes[lane] = tile_scalar_mask(a->type->scalar);
    }
    if (result.slack) {
        const double *slack = e->objects[a->tensor->object].slack;
        bool filled = !valid && in->fill >= 0;
        ExecValue fill = filled ? tile_exec_operand(e, in, (unsigned)in->fill) : result;
        result.slack[lane] = filled          ? fill.slack[fill.count > 1 ? lane : 0]
                             : valid && slack ? slack[offset / tile_scalar_bytes(a->type->scalar)]
                                              : 0;
    }
    if (poison)
        tile_exec_set_poison(e, result, lane, poison);
    else if (*result.any)
        result.poison[lane] = 0;
    return true;
}

static bool store_lane(TileExecutor *e, const ExecInstruction *in, const Access *a, uint32_t lane, int64_t offset,
                       bool valid) {
    if (!valid) return true;
    ExecValue value = tile_exec_operand(e, in, 1);
    double *slack = e->objects[a->tensor->object].slack;
    if (value.slack && slack) slack[offset / tile_scalar_bytes(a->type->scalar)] = value.slack[lane];
    return tile_exec_store_element(e, in, a->tensor->object, offset, a->type->scalar, value.lanes[lane],
                                   tile_exec_poisoned(value, lane));
}

/* Programs run in any order, so atomic sums of floats have no known bound. */
static void update_slack(TileExecutor *e, const ExecInstruction *in, const Access *a, uint32_t lane, int64_t offset) {
    ExecValue value = tile_exec_operand(e, in, 1), result = tile_exec_result(e, in);
    double *slack = e->objects[a->tensor->object].slack;
    int64_t at = offset / tile_scalar_bytes(a->type->scalar);
    int64_t update = tile_op_integer(in->op, TILE_ATTRIBUTE_UPDATE, TILE_UPDATE_ADD);
    bool adds = update == TILE_UPDATE_ADD && tile_scalar_is_float(a->type->scalar);
    double both = fmax(slack ? slack[at] : 0, value.slack[lane]);
    if (adds || (update == TILE_UPDATE_CAS && both > 0)) both = (double)INFINITY;
    result.slack[lane] = both;
    if (slack) slack[at] = both;
}

static bool update_lane(TileExecutor *e, const ExecInstruction *in, const Access *a, uint32_t lane, int64_t offset,
                        bool valid) {
    ExecValue result = tile_exec_result(e, in);
    if (valid && result.slack) update_slack(e, in, a, lane, offset);
    if (valid) return tile_exec_update_element(e, in, a->tensor->object, offset, a->type->scalar, lane, 1);
    result.lanes[lane] = tile_scalar_mask(a->type->scalar);
    tile_exec_set_poison(e, result, lane, EXEC_POISON);
    return true;
}

/* Does a lane outside of its range lie in the tensor? */
static bool is_in_tensor(TileExecutor *e, const ExecInstruction *in, const Access *a, uint32_t lane) {
    const TileAttribute *kinds = tile_op_get(in->op, TILE_ATTRIBUTE_ACCESS);
    uint32_t along[TILE_MAX_TILE_RANK] = {0};
    for (unsigned i = a->rank; i-- > 0; lane /= a->axes[i].extent) along[i] = lane % a->axes[i].extent;
    unsigned operand = a->first_operand, next = 0;
    bool positions = false;
    for (unsigned d = 0; d < kinds->count; d++) {
        bool range = kinds->integers[d] == TILE_ACCESS_RANGE, position = kinds->integers[d] == TILE_ACCESS_POSITION;
        if (position && !positions && a->axes[next].state[along[next]] != VALID) return false;
        next += position && !positions;
        positions |= position;
        if (!position && index_state(a, d, index_of(e, in, kinds->integers[d], operand, range ? along[next++] : 0)) == OUTSIDE) return false;
        operand += tile_access_operands(kinds->integers[d]);
    }
    return true;
}

/* The lanes are contiguous. A map copies what lies beyond a range in the tensor, and 0 for what lies beyond the tensor. */
static bool copy_lane(TileExecutor *e, const ExecInstruction *in, const Access *a, uint32_t lane, int64_t offset,
                      bool valid) {
    ExecValue place = tile_exec_operand(e, in, 1);
    uint64_t bits = 0;
    uint8_t poison = 0;
    TileScalar scalar = a->type->scalar;
    if (!valid && tile_op_get(in->op, TILE_ATTRIBUTE_CLEARS) && is_in_tensor(e, in, a, lane)) poison = EXEC_POISON;
    if (valid && !tile_exec_load_element(e, in, a->tensor->object, offset, scalar, &bits, &poison)) return false;
    int64_t to = (int64_t)place.lanes[1] + (int64_t)lane * tile_scalar_bytes(scalar);
    return tile_exec_store_element(e, in, place.lanes[0], to, scalar, bits, poison);
}

bool tile_exec_copy_tile(TileExecutor *e, const ExecInstruction *in) {
    Access access;
    const TileType *type = tile_op_get(in->op, TILE_ATTRIBUTE_TYPES)->types[0];
    return read_access(e, in, type, &access) && walk(e, in, &access, copy_lane);
}

/* The tile lies there row by row. */
bool tile_exec_clear_tile(TileExecutor *e, const ExecInstruction *in) {
    ExecValue place = tile_exec_operand(e, in, 0);
    const TileAttribute *axes = tile_op_get(in->op, TILE_ATTRIBUTE_AXES), *types = tile_op_get(in->op, TILE_ATTRIBUTE_TYPES);
    const TileType *type = types ? types->types[0] : in->op->operands[0].value->type;
    int64_t lo[TILE_MAX_TILE_RANK] = {0}, hi[TILE_MAX_TILE_RANK], bytes = tile_scalar_bytes(type->scalar), elements = 1;
    for (unsigned a = 0; a < type->rank; a++) hi[a] = type->extent[a], elements *= type->extent[a];
    for (unsigned i = 0; i < axes->count; i++)
        if (!tile_exec_integer(e, in, 1 + 2 * i, "a bound", &lo[axes->integers[i]]) ||
            !tile_exec_integer(e, in, 2 + 2 * i, "a bound", &hi[axes->integers[i]]))
            return false;
    for (int64_t i = 0; i < elements; i++) {
        bool inside = true;
        int64_t rest = i;
        for (unsigned a = type->rank; a-- > 0; rest /= type->extent[a])
            inside &= rest % type->extent[a] >= lo[a] && rest % type->extent[a] < hi[a];
        if (inside) continue;
        if (!tile_exec_store_element(e, in, place.lanes[0], (int64_t)place.lanes[1] + i * bytes, type->scalar, 0, 0))
            return false;
    }
    return true;
}

bool tile_exec_put_tile(TileExecutor *e, const ExecInstruction *in) {
    ExecValue place = tile_exec_operand(e, in, 0), value = tile_exec_operand(e, in, 1);
    TileScalar scalar = in->op->operands[1].value->type->scalar;
    for (uint32_t i = 0; i < value.count; i++) {
        int64_t offset = (int64_t)place.lanes[1] + (int64_t)i * tile_scalar_bytes(scalar);
        if (!tile_exec_store_element(e, in, place.lanes[0], offset, scalar, value.lanes[i], tile_exec_poisoned(value, i))) return false;
    }
    return true;
}

bool tile_exec_shared_tile(TileExecutor *e, const ExecInstruction *in) {
    ExecValue place = tile_exec_operand(e, in, 0), result = tile_exec_result(e, in);
    int64_t bytes = tile_scalar_bytes(in->to);
    *result.any = 0;
    for (uint32_t i = 0; i < result.count; i++) {
        uint8_t poison;
        int64_t offset = (int64_t)place.lanes[1] + i * bytes;
        if (!tile_exec_load_element(e, in, place.lanes[0], offset, in->to, &result.lanes[i], &poison)) return false;
        if (poison)
            tile_exec_set_poison(e, result, i, poison);
        else if (*result.any)
            result.poison[i] = 0;
    }
    return true;
}

bool tile_exec_load_tile(TileExecutor *e, const ExecInstruction *in) {
    Access access;
    if (!read_access(e, in, in->op->results[0].type, &access)) return false;
    *tile_exec_result(e, in).any = 0;
    return walk(e, in, &access, load_lane);
}

bool tile_exec_store_tile(TileExecutor *e, const ExecInstruction *in) {
    Access access;
    return read_access(e, in, in->op->operands[1].value->type, &access) && walk(e, in, &access, store_lane);
}

bool tile_exec_atomic_tile(TileExecutor *e, const ExecInstruction *in) {
    Access access;
    if (!read_access(e, in, in->op->results[0].type, &access)) return false;
    *tile_exec_result(e, in).any = 0;
    return walk(e, in, &access, update_lane);
}

/* ---- host ops ---- */

static int64_t extent_of(TileExecutor *e, const ExecInstruction *in) {
    const ExecTensor *tensor = &e->tensors[tile_exec_operand(e, in, 0).lanes[0]];
    return tensor->extent[tile_op_integer(in->op, TILE_ATTRIBUTE_AXIS, 0)];
}

bool tile_exec_dim(TileExecutor *e, const ExecInstruction *in) {
    tile_exec_set_scalar(tile_exec_result(e, in), (uint64_t)extent_of(e, in));
    return true;
}

/* Row-major, poison. */
bool tile_exec_temp(TileExecutor *e, const ExecInstruction *in) {
    const TileType *type = in->op->results[0].type;
    ExecTensor tensor = {0};
    int64_t bytes = tile_scalar_bytes(type->scalar);
    for (unsigned d = type->rank; d-- > 0;) {
        if (!tile_exec_integer(e, in, d, "an extent", &tensor.extent[d])) return false;
        if (tensor.extent[d] < 0) return tile_exec_fault(e, in, "an extent is negative");
        tensor.stride[d] = bytes;
        if (__builtin_mul_overflow(bytes, tensor.extent[d], &bytes) || bytes > INT64_MAX - TILE_MOST_TEMP_ALIGN)
            return tile_exec_out_of_memory(e);
        if (d + 1 == type->rank) bytes = tile_temp_row_bytes(bytes, tile_op_integer(in->op, TILE_ATTRIBUTE_ALIGN, 0));
    }
    uint32_t number;
    if (!tile_exec_allocate(e, (uint64_t)bytes, 64, false, &tensor.object)) return false;
    if (!tile_exec_add_tensor(e, &tensor, &number)) return false;
    ExecObject *object = &e->objects[tensor.object];
    if (e->options.slack) object->slack = TILE_NEW_ARRAY(e->arena, double, bytes / tile_scalar_bytes(type->scalar) + 1);
    object->temp = in->op;
    object->extent = tile_arena_copy(e->arena, tensor.extent, sizeof tensor.extent);
    tile_exec_set_scalar(tile_exec_result(e, in), number);
    return true;
}

bool tile_exec_check_dim(TileExecutor *e, const ExecInstruction *in) {
    int64_t expected, extent = extent_of(e, in);
    if (!tile_exec_integer(e, in, 1, "an extent", &expected)) return false;
    if (extent == expected) return true;
    return tile_exec_stop(e, in, TILE_EXECUTION_CHECK_DIM, "%s: the extent is %lld where %lld is expected",
                          tile_op_get(in->op, TILE_ATTRIBUTE_TEXT)->text, (long long)extent, (long long)expected);
}

/* Only values of this assertion are shown in its message. */
static void check_values(TileExecutor *e, const TileOp *assertion) {
    bool same = e->values_line == assertion->location.line && e->values_column == assertion->location.column;
    if (e->options.values && !same) e->options.values->length = 0;
}

bool tile_exec_require(TileExecutor *e, const ExecInstruction *in) {
    int64_t holds;
    if (!tile_exec_integer(e, in, 0, "the condition", &holds)) return false;
    if (holds) return true;
    bool asserts = in->op->id == TILE_OP_ASSERT;
    if (asserts && e->records) {
        tile_exec_note_assertion(e, in);
        return true;
    }
    if (asserts && e->options.assertion) *e->options.assertion = in->op;
    if (asserts) check_values(e, in->op);
    return tile_exec_stop(e, in, asserts ? TILE_EXECUTION_ASSERT : TILE_EXECUTION_REQUIRE, "%s",
                          tile_op_get(in->op, TILE_ATTRIBUTE_TEXT)->text);
}

/* ---- print ---- */

static void keep_line(void *host, const char *line, size_t length) {
    TileText *text = host;
    text->length = 0;
    tile_text_add_bytes(text, line, length - 1); /* without the newline */
}

static void print_items(TileExecutor *e, const ExecInstruction *in, const uint64_t *const *items) {
    const char *text = tile_op_get(in->op, TILE_ATTRIBUTE_TEXT)->text;
    if (tile_print_is_assertion(text, &e->values_line, &e->values_column)) {
        if (e->options.values) tile_print_line(text, items, keep_line, e->options.values);
        return;
    }
    if (e->options.print) tile_print_line(text, items, e->options.print, e->options.print_host);
}

/* Registers have a lane in each word, as the format of a line has. */
bool tile_exec_print(TileExecutor *e, const ExecInstruction *in) {
    const uint64_t **items = tile_exec_scratch(e, (in->operand_count + 1) * sizeof *items);
    if (!items) return false;
    for (unsigned i = 0; i < in->operand_count; i++) {
        ExecValue value = tile_exec_operand(e, in, i);
        for (uint32_t l = 0; l < value.count; l++)
            if (tile_exec_poisoned(value, l))
                return tile_exec_poison(e, in, value.poison[l], "prints", "prints a lane that is poison");
        items[i] = value.lanes;
    }
    print_items(e, in, items);
    return true;
}

/* Copies the words of operand `operand` to `words`. */
static bool read_words(TileExecutor *e, const ExecInstruction *in, unsigned operand, uint64_t *words, size_t lanes) {
    ExecValue pointer = tile_exec_operand(e, in, operand);
    for (size_t l = 0; l < lanes; l++) {
        uint8_t poison;
        int64_t offset = (int64_t)pointer.lanes[1] + 8 * (int64_t)l;
        if (!tile_exec_load_element(e, in, pointer.lanes[0], offset, TILE_U64, &words[l], &poison)) return false;
        if (poison) return tile_exec_poison(e, in, poison, "prints", "prints a lane that is poison");
    }
    return true;
}

bool tile_exec_print_items(TileExecutor *e, const ExecInstruction *in) {
    const char *text = tile_op_get(in->op, TILE_ATTRIBUTE_TEXT)->text, *rest = text;
    TilePrintPlace place;
    size_t lanes = 0, count = tile_print_count(text);
    while (tile_print_next(&rest, &place)) lanes += place.lanes * (1u + place.masked);
    const uint64_t **items = tile_exec_scratch(e, count * sizeof *items + (lanes + 1) * sizeof **items);
    if (!items) return false;
    uint64_t *words = (uint64_t *)(items + count);
    unsigned next = 0;
    for (rest = text; tile_print_next(&rest, &place);)
        for (unsigned i = 0; i < 1u + place.masked; i++, words += place.lanes) {
            items[next] = words;
            if (!read_words(e, in, 1 + next++, words, place.lanes)) return false;
        }
    print_items(e, in, items);
    return true;
}
