/* Purpose: hoist loop-invariant code. Pure ops are hoisted; loads are, if no op of the loop may write the memory that
 * they read and they may also run with a trip count of 0. Only what the host can compute is hoisted out of a grid:
 * scalar arithmetic on dimensions and parameters.
 *
 * Before:
 *     func kernel tile @k(%x: tensor<f32, 1, in> {noalias}, %y: tensor<f32, 1, out>, %a: i64, %n: i64) {
 *       grid %n (%i: i64) {
 *         %zero = const {value = 0} : i64
 *         %one = const {value = 1} : i64
 *         for %zero, %n, %one (%j: i64) {
 *           %b = mul %a, %a : i64
 *           %eight = const {value = 8} : i64
 *           %v = load_tile %x, %b, %one, %zero, %eight {access = [range]} : f32[8]
 *           store_tile %y, %v, %j, %one, %zero, %eight {access = [range]}
 *           yield
 *         }
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func kernel tile @k(%x: tensor<f32, 1, in> {noalias}, %y: tensor<f32, 1, out>, %a: i64, %n: i64) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %b = mul %a, %a : i64
 *       %eight = const {value = 8} : i64
 *       grid %n (%i: i64) {
 *         %v = load_tile %x, %b, %one, %zero, %eight {access = [range]} : f32[8]
 *         for %zero, %n, %one (%j: i64) {
 *           store_tile %y, %v, %j, %one, %zero, %eight {access = [range]}
 *           yield
 *         }
 *         yield
 *       }
 *       return
 *     }
 * Needs: nothing. Keeps: effects and their order. Cost: linear times the depth of loops. */
#include "lowering/fold.h"
#include "lang/ir/operands.h"
#include "lowering/memory.h"

typedef struct Licm {
    bool changed;
} Licm;

static bool is_loop(const TileOp *op) {
    return op->id == TILE_OP_FOR || op->id == TILE_OP_WHILE || op->id == TILE_OP_LOOP || op->id == TILE_OP_GRID ||
           op->id == TILE_OP_FOLD_LOOP;
}

static bool operands_outside(const TileOp *op, const TileOp *loop) {
    for (unsigned i = 0; i < op->operand_count; i++)
        if (!tile_value_outside(tile_op_operand(op, i), loop)) return false;
    return true;
}

static bool is_host_scalar(const TileValue *value) {
    return tile_type_is_scalar(value->type) && !tile_scalar_is_float(value->type->scalar);
}

/* The host computes bools and integers. */
static bool is_host_op(const TileOp *op) {
    const TileOpInfo *info = tile_op_info((TileOpId)op->id);
    if (op->id == TILE_OP_CONST) return tile_type_is_scalar(op->results[0].type);
    if (op->id == TILE_OP_DIM) return true;
    if (info->class != TILE_CLASS_ELEMENTWISE || !is_host_scalar(op->results)) return false;
    for (unsigned i = 0; i < op->operand_count; i++)
        if (!is_host_scalar(tile_op_operand(op, i))) return false;
    return true;
}

/* A load of ranges may run although the loop would not: its ranges are then empty, and it loads nothing. An index may
 * have been proven in bounds only for programs that enter the loop. */
static bool loads_ranges_only(const TileOp *load) {
    const TileAttribute *access = tile_op_get(load, TILE_ATTRIBUTE_ACCESS);
    for (unsigned i = 0; i < access->count; i++)
        if (access->integers[i] != TILE_ACCESS_RANGE) return false;
    return true;
}

static bool can_hoist(const TileOp *op, const TileOp *loop) {
    if (!operands_outside(op, loop)) return false;
    if (loop->id == TILE_OP_GRID) return is_host_op(op);
    if (op->id == TILE_OP_LOAD_TILE)
        return loads_ranges_only(op) && !tile_memory_is_written(loop, tile_memory_tensor(op));
    return (tile_op_info((TileOpId)op->id)->traits & TILE_TRAIT_PURE) != 0;
}

/* The loop over the programs of a GPU's block has one iteration, or few long ones: hoisting would only extend live
 * ranges. */
static bool runs_rarely(const TileOp *loop) { return tile_loop_is_of_programs(loop); }

static void hoist_block(Licm *licm, TileBlock *block, TileOp *loop) {
    for (TileOp *op = block->first, *next; op; op = next) {
        next = op->next;
        if (!can_hoist(op, loop)) continue;
        tile_op_detach(op);
        tile_op_insert_before(op, loop);
        licm->changed = true;
    }
}

/* Inner loops first, so that hoisted ops can be hoisted further. Ops inside of an if are hoisted only with the if. */
static void walk(Licm *licm, TileBlock *block) {
    for (TileOp *op = block->first, *next; op; op = next) {
        next = op->next;
        for (unsigned r = 0; r < op->region_count; r++) walk(licm, &op->regions[r]);
        for (unsigned r = 0; is_loop(op) && !runs_rarely(op) && r < op->region_count; r++)
            if (&op->regions[r] != tile_op_combiner(op)) hoist_block(licm, &op->regions[r], op);
    }
}

TileResult tile_pass_licm(TilePassContext *context, TileFunc *func) {
    Licm licm = {0};
    walk(&licm, &func->body);
    return licm.changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
