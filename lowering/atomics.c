/* Purpose: expand atomic ops that machines do not have, so that none is masked, and floats are only added, where the
 * target's memory does so (TileTarget.atomic_adds). Another atomic op on floats becomes a loop around a compare-and-swap
 * of their bits, a masked one is put into a branch.
 *
 * Before:
 *     func phase machine @k.0(%p: ptr<global>, %q: ptr<global>, %v: f32) {
 *       %old = atomic %p, %v {update = add} : f32
 *       store %old, %q
 *       return
 *     }
 * After:
 *     func phase machine @k.0(%p: ptr<global>, %q: ptr<global>, %v: f32) {
 *       %0 = atomic %p {update = read} : u32
 *       %1 = while %0 : u32 (%2: u32) {
 *         %3 = bitcast %2 : f32
 *         %4 = add %3, %v : f32
 *         %5 = bitcast %4 : u32
 *         %6 = atomic %p, %5, %2 {update = cas} : u32
 *         %7 = ne %6, %2 : bool
 *         condition %7, %6
 *       } (%8: u32) {
 *         yield %8
 *       }
 *       %old = bitcast %1 : f32
 *       store %old, %q
 *       return
 *     }
 * Bits are compared, so the loop ends for NaN too, and -0 differs from 0. A minimum or maximum that is there already is
 * not stored again: most updates of this kind change nothing, and a read does not keep others from the element.
 *
 * Needs: atomic ops on scalars; `legalise` after it, which expands the arithmetic. Keeps: machine form, the order of
 * accesses. Cost: linear; a few ops for each atomic op on floats. */
#include "lang/scalar/scalar.h"
#include "lang/ir/operands.h"
#include "lowering/emit.h"

static TileValue *build_atomic(TileBuilder *b, TileName update, TileValue *const *operands, unsigned count,
                               TileScalar scalar) {
    TileAttribute attribute = {.key = TILE_ATTRIBUTE_UPDATE, .integer = update};
    const TileType *type = tile_type_scalar(b->module->context, scalar);
    return tile_op_result(tile_build_op(b, TILE_OP_ATOMIC, operands, count, &attribute, 1, &type, 1), 0);
}

static TileScalar bits_of(TileScalar scalar) {
    switch (tile_scalar_bits(scalar)) {
    case 8: return TILE_U8;
    case 16: return TILE_U16;
    case 32: return TILE_U32;
    default: return TILE_U64;
    }
}

static TileOpId combiner(TileName update) {
    return update == TILE_UPDATE_ADD ? TILE_OP_ADD : update == TILE_UPDATE_MIN ? TILE_OP_MIN : TILE_OP_MAX;
}

static TileValue *swap_bits(TileBuilder *b, const TileOp *op, TileScalar bits) {
    TileValue *operands[] = {tile_op_operand(op, 0), tile_build_bitcast(b, tile_op_operand(op, 1), bits),
                             tile_build_bitcast(b, tile_op_named(op, TILE_OPERAND_EXPECTED), bits)};
    return build_atomic(b, TILE_UPDATE_CAS, operands, 3, bits);
}

/* What is there after a compare-and-swap of `seen`, unless `next` is the same: then `seen`, and nothing is stored. */
static TileValue *build_swap(TileBuilder *b, TileValue *pointer, TileValue *next, TileValue *seen, bool may_stay) {
    TileValue *operands[] = {pointer, next, seen};
    TileScalar bits = seen->type->scalar;
    if (!may_stay) return build_atomic(b, TILE_UPDATE_CAS, operands, 3, bits);
    TileOp *branch = tile_build_if(b, tile_build_binary(b, TILE_OP_NE, next, seen), &seen->type, 1);
    TileBuilder inner = tile_builder_at_end(b->module, &branch->regions[0]);
    inner.location = b->location;
    TileValue *now = build_atomic(&inner, TILE_UPDATE_CAS, operands, 3, bits);
    tile_build_end(&inner, TILE_OP_YIELD, &now, 1);
    inner = tile_builder_at_end(b->module, &branch->regions[1]);
    inner.location = b->location;
    tile_build_end(&inner, TILE_OP_YIELD, &seen, 1);
    return tile_op_result(branch, 0);
}

/* Loops until no other thread has changed the value between the read and the compare-and-swap. */
static TileValue *build_swap_loop(TileBuilder *b, const TileOp *op, TileName update, TileScalar bits) {
    TileValue *pointer = tile_op_operand(op, 0), *value = tile_op_operand(op, 1);
    TileValue *first = build_atomic(b, TILE_UPDATE_READ, &pointer, 1, bits);
    TileOp *loop = tile_build_while(b, &first, 1);
    TileBuilder inner = tile_builder_at_end(b->module, &loop->regions[0]);
    inner.location = b->location;
    TileValue *seen = loop->regions[0].arguments[0];
    TileValue *next =
        tile_build_binary(&inner, combiner(update), tile_build_bitcast(&inner, seen, value->type->scalar), value);
    TileValue *now =
        build_swap(&inner, pointer, tile_build_bitcast(&inner, next, bits), seen, update != TILE_UPDATE_ADD);
    TileValue *carried[] = {tile_build_binary(&inner, TILE_OP_NE, now, seen), now};
    tile_build_end(&inner, TILE_OP_CONDITION, carried, 2);
    inner = tile_builder_at_end(b->module, &loop->regions[1]);
    inner.location = b->location;
    tile_build_end(&inner, TILE_OP_YIELD, &loop->regions[1].arguments[0], 1);
    return tile_op_result(loop, 0);
}

/* Does the target's memory add the float? */
static bool is_added(const TileTarget *target, const TileOp *op) {
    bool adds = tile_op_integer(op, TILE_ATTRIBUTE_UPDATE, TILE_UPDATE_ADD) == TILE_UPDATE_ADD;
    return adds && target->atomic_adds >> op->results[0].type->scalar & 1;
}

static bool flushes(const TileTarget *target, const TileOp *op) {
    return is_added(target, op) && op->results[0].type->scalar == TILE_F32 && target->atomic_adds_flush;
}

/* Builds the op without its mask. */
static TileValue *expand_unmasked(TileBuilder *b, const TileTarget *target, const TileOp *op) {
    TileName update = (TileName)tile_op_integer(op, TILE_ATTRIBUTE_UPDATE, TILE_UPDATE_ADD);
    TileScalar scalar = op->results[0].type->scalar;
    if (tile_scalar_is_float(scalar) && !is_added(target, op)) {
        TileScalar bits = bits_of(scalar);
        TileValue *old = update == TILE_UPDATE_CAS ? swap_bits(b, op, bits) : build_swap_loop(b, op, update, bits);
        return tile_build_bitcast(b, old, scalar);
    }
    TileValue *operands[3];
    unsigned count = update == TILE_UPDATE_CAS ? 3 : 2;
    for (unsigned i = 0; i < count; i++) operands[i] = tile_op_operand(op, i);
    TileValue *old = build_atomic(b, update, operands, count, scalar);
    if (flushes(target, op)) tile_op_set_integer(b->module, old->op, TILE_ATTRIBUTE_FLUSH, 1);
    return old;
}

static TileValue *expand_masked(TileBuilder *b, const TileTarget *target, const TileOp *op) {
    const TileType *type = op->results[0].type;
    TileOp *branch = tile_build_if(b, tile_op_named(op, TILE_OPERAND_MASK), &type, 1);
    TileBuilder inner = tile_builder_at_end(b->module, &branch->regions[0]);
    inner.location = b->location;
    TileValue *old = expand_unmasked(&inner, target, op);
    tile_build_end(&inner, TILE_OP_YIELD, &old, 1);
    inner = tile_builder_at_end(b->module, &branch->regions[1]);
    inner.location = b->location;
    TileValue *none = tile_build_bits(&inner, type, 0);
    tile_build_end(&inner, TILE_OP_YIELD, &none, 1);
    return tile_op_result(branch, 0);
}

static void visit(TileOp *op, void *state) {
    TileEmitter *e = state;
    if (op->id != TILE_OP_ATOMIC || tile_op_integer(op, TILE_ATTRIBUTE_UPDATE, 0) == TILE_UPDATE_READ) return;
    bool masked = tile_op_get(op, TILE_ATTRIBUTE_PARTS) != NULL;
    bool done = !tile_scalar_is_float(op->results[0].type->scalar) || (is_added(&e->target, op) && !flushes(&e->target, op)) ||
                tile_op_get(op, TILE_ATTRIBUTE_FLUSH);
    if (!masked && done) return;
    tile_emit_before(e, op);
    tile_emit_replace(e, op, masked ? expand_masked(&e->builder, &e->target, op)
                                    : expand_unmasked(&e->builder, &e->target, op));
}

TileResult tile_pass_atomics(TilePassContext *context, TileFunc *func) {
    TileEmitter emitter = tile_emitter_create(context, func);
    tile_block_walk(&func->body, visit, &emitter);
    return tile_emit_finish(&emitter, context);
}
