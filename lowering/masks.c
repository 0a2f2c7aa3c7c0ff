/* Purpose: let loads fill their invalid lanes, and drop what fills lanes that hold the wanted value already.
 *
 * A `fill` of a value that elementwise ops compute from loads is not needed when filling those loads, with the
 * wanted value or with zero, makes the invalid lanes come out as wanted. Filling a load changes only lanes that
 * were poison. Masks that are always true and fills that can never act go as well.
 *
 * Before:
 *     func kernel tile @k(%x: tensor<bf16, 1, in>, %y: tensor<f32, 1, out>, %hi: i64) {
 *       grid {
 *         %zero = const {value = 0} : i64
 *         %one = const {value = 1} : i64
 *         %v = load_tile %x, %zero, %one, %zero, %hi {access = [range]} : bf16[64]
 *         %w = convert %v : f32[64]
 *         %s = mul %w, %w : f32[64]
 *         %f = const {value = 0} : f32
 *         %t = fill %s, %f, %zero, %hi {axes = [0]} : f32[64]
 *         %r = reduce %t {axis = 0, kind = sum} : f32
 *         store_tile %y, %r, %zero {access = [index]}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func kernel tile @k(%x: tensor<bf16, 1, in>, %y: tensor<f32, 1, out>, %hi: i64) {
 *       grid {
 *         %zero = const {value = 0} : i64
 *         %one = const {value = 1} : i64
 *         %0 = const {value = 0} : bf16
 *         %v = load_tile %x, %zero, %one, %zero, %hi, %0 {access = [range], parts = [fill]} : bf16[64]
 *         %w = convert %v : f32[64]
 *         %s = mul %w, %w : f32[64]
 *         %f = const {value = 0} : f32
 *         %r = reduce %s {axis = 0, kind = sum} : f32
 *         store_tile %y, %r, %zero {access = [index]}
 *         yield
 *       }
 *       return
 *     }
 * Needs: cse, so that equal bounds are one value. Keeps: all valid lanes.
 * Cost: for each fill, the elementwise ops between it and its loads. */
#include "lang/build.h"
#include "lang/eval.h"
#include "lowering/memory.h"
#include "lowering/pass.h"

enum { MAX_LOADS = 8, MAX_DEPTH = 32 };

/* Lanes outside [lo, hi) along any of the axes. */
typedef struct Outside {
    unsigned count, axis[TILE_MAX_TILE_RANK];
    const TileValue *lo[TILE_MAX_TILE_RANK], *hi[TILE_MAX_TILE_RANK];
} Outside;

/* The loads that have no fill so far, and what they would be filled with. */
typedef struct Proposal {
    bool allowed;
    TileScalar wanted_scalar;
    uint64_t wanted; /* of the wanted scalar type; converted to each load's */
    unsigned count;
    TileOp *loads[MAX_LOADS];
    uint64_t bits[MAX_LOADS];
} Proposal;

static bool propose(Proposal *proposal, TileOp *load, uint64_t *bits) {
    for (unsigned i = 0; i < proposal->count; i++)
        if (proposal->loads[i] == load) {
            *bits = proposal->bits[i];
            return true;
        }
    TileScalar scalar = load->results[0].type->scalar;
    if (!proposal->allowed || proposal->count == MAX_LOADS) return false;
    if (!tile_eval(TILE_OP_CONVERT, proposal->wanted_scalar, scalar, &proposal->wanted, bits)) return false;
    proposal->loads[proposal->count] = load;
    proposal->bits[proposal->count++] = *bits;
    return true;
}

/* What a load holds in lanes outside: its fill, if all of them are invalid. */
static bool load_outside(TileOp *load, const Outside *outside, Proposal *proposal, uint64_t *bits) {
    for (unsigned i = 0; i < outside->count; i++) {
        TileValue *lo, *hi;
        if (!tile_access_bounds(load, outside->axis[i], &lo, &hi) || !tile_value_is_same(lo, outside->lo[i]) ||
            !tile_value_is_same(hi, outside->hi[i]))
            return false;
    }
    if (tile_op_has_part(load, TILE_PARTS_FILL))
        return tile_value_bits(tile_op_operand(load, load->operand_count - 1), bits);
    return propose(proposal, load, bits);
}

static bool known_outside(TileValue *value, const Outside *outside, Proposal *proposal, unsigned depth, uint64_t *bits);

static bool elementwise_outside(TileOp *op, const Outside *outside, Proposal *proposal, unsigned depth,
                                uint64_t *bits) {
    uint64_t operands[3];
    if (op->operand_count > 3 || tile_op_integer(op, TILE_ATTRIBUTE_APPROX, 0)) return false;
    for (unsigned i = 0; i < op->operand_count; i++)
        if (!known_outside(tile_op_operand(op, i), outside, proposal, depth, &operands[i])) return false;
    TileScalar scalar = tile_op_operand(op, op->id == TILE_OP_SELECT ? 1 : 0)->type->scalar;
    return tile_eval((TileOpId)op->id, scalar, op->results[0].type->scalar, operands, bits);
}

/* Axis of the operand that a result's axis of a broadcast, permutation or reshape by extents of 1 stands for. */
static bool source_axis(const TileOp *op, unsigned axis, unsigned *source) {
    const TileType *from = tile_op_operand(op, 0)->type, *to = op->results[0].type;
    if (op->id == TILE_OP_PERMUTE) {
        *source = (unsigned)tile_op_get(op, TILE_ATTRIBUTE_AXES)->integers[axis];
        return true;
    }
    if (op->id == TILE_OP_BROADCAST) {
        *source = axis;
        return from->extent[axis] == to->extent[axis];
    }
    unsigned at = 0;
    for (unsigned i = 0; i < to->rank; i++) {
        if (to->extent[i] == 1) {
            if (i == axis) return false;
            continue;
        }
        while (at < from->rank && from->extent[at] == 1) at++;
        if (at == from->rank || from->extent[at] != to->extent[i]) return false;
        *source = at++;
        if (i == axis) return true;
    }
    return false;
}

static bool shape_outside(TileOp *op, const Outside *outside, Proposal *proposal, unsigned depth, uint64_t *bits) {
    Outside inner = *outside;
    for (unsigned i = 0; i < outside->count; i++)
        if (!source_axis(op, outside->axis[i], &inner.axis[i])) return false;
    return known_outside(tile_op_operand(op, 0), &inner, proposal, depth, bits);
}

static bool fill_outside(const TileOp *fill, const Outside *outside, uint64_t *bits) {
    const TileAttribute *axes = tile_op_get(fill, TILE_ATTRIBUTE_AXES);
    for (unsigned i = 0; i < outside->count; i++) {
        unsigned j = 0;
        while (j < axes->count && !(axes->integers[j] == (int64_t)outside->axis[i] &&
                                    tile_value_is_same(tile_op_operand(fill, 2 + 2 * j), outside->lo[i]) &&
                                    tile_value_is_same(tile_op_operand(fill, 3 + 2 * j), outside->hi[i])))
            j++;
        if (j == axes->count) return false;
    }
    return tile_value_bits(tile_op_operand(fill, 1), bits);
}

/* Do all lanes outside hold one known value? */
static bool known_outside(TileValue *value, const Outside *outside, Proposal *proposal, unsigned depth,
                          uint64_t *bits) {
    TileOp *op = value->op;
    if (!op || depth == 0) return false;
    switch (op->id) {
    case TILE_OP_CONST: return tile_value_bits(value, bits);
    case TILE_OP_SPLAT: return tile_value_bits(tile_op_operand(op, 0), bits);
    case TILE_OP_LOAD_TILE: return load_outside(op, outside, proposal, bits);
    case TILE_OP_FILL: return fill_outside(op, outside, bits);
    case TILE_OP_BROADCAST:
    case TILE_OP_PERMUTE:
    case TILE_OP_RESHAPE: return shape_outside(op, outside, proposal, depth - 1, bits);
    default: break;
    }
    return tile_op_info((TileOpId)op->id)->class == TILE_CLASS_ELEMENTWISE &&
           elementwise_outside(op, outside, proposal, depth - 1, bits);
}

static Outside outside_of(const TileOp *fill) {
    const TileAttribute *axes = tile_op_get(fill, TILE_ATTRIBUTE_AXES);
    Outside outside = {.count = axes->count};
    for (unsigned i = 0; i < axes->count; i++) {
        outside.axis[i] = (unsigned)axes->integers[i];
        outside.lo[i] = tile_op_operand(fill, 2 + 2 * i);
        outside.hi[i] = tile_op_operand(fill, 3 + 2 * i);
    }
    return outside;
}

static void add_part(TileModule *module, TileOp *op, TileName part, TileValue *operand) {
    int64_t parts[2] = {TILE_PARTS_MASK, part};
    bool masked = tile_op_has_part(op, TILE_PARTS_MASK);
    tile_op_add_operand(module, op, operand);
    tile_op_set_integers(module, op, TILE_ATTRIBUTE_PARTS, masked ? parts : parts + 1, masked ? 2 : 1);
}

static void accept(TileModule *module, const Proposal *proposal) {
    for (unsigned i = 0; i < proposal->count; i++) {
        TileOp *load = proposal->loads[i];
        TileBuilder builder = tile_builder_before(module, load);
        const TileType *scalar = tile_type_scalar(module->context, load->results[0].type->scalar);
        add_part(module, load, TILE_PARTS_FILL, tile_build_bits(&builder, scalar, proposal->bits[i]));
    }
}

static bool drop_fill(TileModule *module, TileOp *fill) {
    uint64_t wanted, found;
    TileValue *x = tile_op_operand(fill, 0);
    if (!tile_value_bits(tile_op_operand(fill, 1), &wanted)) return false;
    Outside outside = outside_of(fill);
    for (int attempt = 0; attempt < 3; attempt++) {
        Proposal proposal = {
            .allowed = attempt > 0, .wanted_scalar = x->type->scalar, .wanted = attempt == 1 ? wanted : 0};
        if (!known_outside(x, &outside, &proposal, MAX_DEPTH, &found) || found != wanted) continue;
        accept(module, &proposal);
        tile_value_replace(fill->results, x);
        tile_op_erase(fill);
        return true;
    }
    return false;
}

/* ---- parts of loads and stores that never act ---- */

static bool is_whole(const TileOp *load) {
    const TileType *type = load->results[0].type;
    int64_t lo, hi;
    TileValue *from, *to;
    if (tile_op_has_part(load, TILE_PARTS_MASK)) return false;
    for (unsigned axis = 0; axis < type->rank; axis++)
        if (!tile_access_bounds(load, axis, &from, &to) || !tile_value_integer(from, &lo) || lo > 0 ||
            !tile_value_integer(to, &hi) || hi < type->extent[axis])
            return false;
    return true;
}

static bool drop_parts(TileModule *module, TileOp *op) {
    unsigned end = tile_access_end(op);
    bool filled = tile_op_has_part(op, TILE_PARTS_FILL), changed = false;
    if (tile_op_has_part(op, TILE_PARTS_MASK) && tile_value_is_integer(tile_op_operand(op, end), 1)) {
        const int64_t fill[] = {TILE_PARTS_FILL};
        tile_op_remove_operand(op, end);
        tile_op_clear(op, TILE_ATTRIBUTE_PARTS);
        if (filled) tile_op_set_integers(module, op, TILE_ATTRIBUTE_PARTS, fill, 1);
        changed = true;
    }
    if (filled && is_whole(op)) {
        tile_op_remove_operand(op, end);
        tile_op_clear(op, TILE_ATTRIBUTE_PARTS);
        changed = true;
    }
    return changed;
}

typedef struct Masks {
    TileModule *module;
    bool changed;
} Masks;

static void visit(TileOp *op, void *state) {
    Masks *masks = state;
    if (op->id == TILE_OP_FILL)
        masks->changed |= drop_fill(masks->module, op);
    else if (op->id == TILE_OP_LOAD_TILE || op->id == TILE_OP_STORE_TILE || op->id == TILE_OP_ATOMIC_TILE)
        masks->changed |= drop_parts(masks->module, op);
}

TileResult tile_pass_masks(TilePassContext *context, TileFunc *func) {
    Masks masks = {context->module, false};
    tile_block_walk(&func->body, visit, &masks);
    return masks.changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
