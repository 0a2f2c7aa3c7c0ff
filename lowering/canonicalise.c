/* Purpose: bring ops into a canonical form, so that other passes need to match one form only: constants are folded,
 * algebraic identities (rewrites.def) applied, changes of shape composed, branches and loops with known conditions
 * folded, unused ops removed, and constants are the right operand of commutative ops.
 *
 * Before:
 *     func kernel tile @k(%n: i64, %f: f32, %out: tensor<f32, 1, out>) {
 *       grid %n (%i: i64) {
 *         %one = const {value = 1} : i64
 *         %two = const {value = 2} : i64
 *         %a = add %one, %i : i64
 *         %b = add %a, %two : i64
 *         %c = sub %b, %i : i64
 *         %x = const {value = 1} : f32
 *         %g = mul %x, %f : f32
 *         %s = splat %g : f32[8]
 *         %e = exp %s : f32[8]
 *         %z = const {value = 0} : i64
 *         store_tile %out, %e, %i, %c, %z, %b {access = [range]}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func kernel tile @k(%n: i64, %f: f32, %out: tensor<f32, 1, out>) {
 *       grid %n (%i: i64) {
 *         %c = const {value = 3} : i64
 *         %b = add %i, %c : i64
 *         %0 = exp %f : f32
 *         %e = splat %0 : f32[8]
 *         %z = const {value = 0} : i64
 *         store_tile %out, %e, %i, %c, %z, %b {access = [range]}
 *         yield
 *       }
 *       return
 *     }
 * Needs: contract, since it may merge products with other users. Keeps: every result bit for bit, where all NaNs count
 * as equal. Cost: linear in practice; repeats up to a fixpoint. */
#include "lowering/fold.h"
#include "lowering/rewrite.h"

typedef struct Canonicaliser {
    TilePassContext *context;
    bool changed;
} Canonicaliser;

static bool commutes(const TileOp *op) {
    if (tile_op_info((TileOpId)op->id)->traits & TILE_TRAIT_COMMUTATIVE) return true;
    bool least = op->id == TILE_OP_MIN || op->id == TILE_OP_MAX; /* of floats: not for NaN and zeros */
    return least && !tile_scalar_is_float(op->results[0].type->scalar);
}

static bool order_operands(TileOp *op) {
    if (!commutes(op)) return false;
    TileValue *x = tile_op_operand(op, 0), *y = tile_op_operand(op, 1);
    if (!tile_value_def(x, TILE_OP_CONST) || tile_value_def(y, TILE_OP_CONST)) return false;
    tile_op_set_operand(op, 0, y);
    tile_op_set_operand(op, 1, x);
    return true;
}

static bool simplify(Canonicaliser *canonicaliser, TileOp *op) {
    const TileOpInfo *info = tile_op_info((TileOpId)op->id);
    if (!(info->traits & TILE_TRAIT_PURE) || op->id == TILE_OP_DIM)
        return tile_fold_control(canonicaliser->context, op);
    if (op->id == TILE_OP_CONST) return false;
    bool ordered = order_operands(op);
    TileBuilder builder = tile_builder_before(canonicaliser->context->module, op);
    TileValue *value = tile_fold_constant(&builder, op);
    if (!value) value = tile_rewrite_op(&builder, op);
    if (!value) value = tile_fold_shape(&builder, op);
    if (!value) return ordered;
    tile_value_replace(op->results, value);
    tile_op_erase(op);
    return true;
}

/* After a change, the op in the same position is simplified again. */
static void walk(Canonicaliser *canonicaliser, TileBlock *block) {
    for (TileOp *op = block->first, *next; op; op = next) {
        TileOp *previous = op->previous;
        if (simplify(canonicaliser, op)) {
            canonicaliser->changed = true;
            next = previous ? previous->next : block->first;
            continue;
        }
        for (unsigned r = 0; r < op->region_count; r++) walk(canonicaliser, &op->regions[r]);
        next = op->next;
    }
}

static bool is_used(const TileOp *op) {
    for (unsigned i = 0; i < op->result_count; i++)
        if (tile_value_has_uses(&op->results[i])) return true;
    return false;
}

/* Removes ops without uses; whole loops are left to dce. */
static void sweep(Canonicaliser *canonicaliser, TileBlock *block) {
    for (TileOp *op = block->last, *previous; op; op = previous) {
        previous = op->previous;
        for (unsigned r = 0; r < op->region_count; r++) sweep(canonicaliser, &op->regions[r]);
        if (!(tile_op_info((TileOpId)op->id)->traits & TILE_TRAIT_PURE) || is_used(op)) continue;
        tile_op_erase(op);
        canonicaliser->changed = true;
    }
}

TileResult tile_pass_canonicalise(TilePassContext *context, TileFunc *func) {
    bool changed = false;
    Canonicaliser canonicaliser = {.context = context};
    do {
        canonicaliser.changed = false;
        walk(&canonicaliser, &func->body);
        sweep(&canonicaliser, &func->body);
        changed |= canonicaliser.changed;
    } while (canonicaliser.changed);
    return changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
