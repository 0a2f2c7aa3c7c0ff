/* Purpose: compute in each program of a block that stays what all of them have in common. Where registers are shared out among a block's
 * warps (`set_registers`), those that multiply have few beside their sums, and those that copy few in all. What is known before the loop
 * over the programs would take one or two of them throughout, and is an instruction or two of a program; the parameters that it is made
 * of take none, since they are read where they lie. Quotients, which take a hundred cycles, stay in front of the loop, but
 * nothing that is made of them does.
 *
 * Before:
 *     func phase machine @k.0(%y: ptr<global> {role = data}, %n: i64, %begin: i64, %end: i64) threads = 256 registers = 136 {
 *       %one = const {value = 1} : i64
 *       %half = shr %n, %one : i64
 *       partitions {warps = [4, 4]} {
 *         set_registers {registers = 232}
 *         for %begin, %end, %one {resident = 1} (%i: i64) {
 *           %at = mul %i, %half : i64
 *           %place = ptr_add %y, %at : ptr<global>
 *           store %at, %place
 *           yield
 *         }
 *         yield
 *       } {
 *         set_registers {registers = 40, release = 1}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func phase machine @k.0(%y: ptr<global> {role = data, argument = 0}, %n: i64, %begin: i64, %end: i64) threads = 256 registers = 136 {
 *       %one = const {value = 1} : i64
 *       %half = shr %n, %one : i64
 *       partitions {warps = [4, 4]} {
 *         set_registers {registers = 232}
 *         for %begin, %end, %one {resident = 1} (%i: i64) {
 *           %0 = here %n {each = 1} : i64
 *           %half.1 = shr %0, %one : i64
 *           %at = mul %i, %half.1 : i64
 *           %place = ptr_add %y, %at : ptr<global>
 *           store %at, %place
 *           yield
 *         }
 *         yield
 *       } {
 *         set_registers {registers = 40, release = 1}
 *         yield
 *       }
 *       return
 *     }
 * Needs: to come behind the last licm and cse, which undo it; `here` hides it from the back end. Keeps: machine form. Cost: linear; of a
 * value MOST_OPS ops are looked at. */
#include "lang/ir/build.h"
#include "lowering/each.h"
#include "ptx/passes.h"

enum { MOST_OPS = 24 };

typedef struct Again {
    TileOp *loop;
    TileMap made;  /* what is outside of the loop, to what stands for it in the loop */
    TileBuilder b; /* where the body begins */
    bool changed;
} Again;

static bool is_cheap(const TileOp *op) {
    bool quotient = op && (op->id == TILE_OP_DIV || op->id == TILE_OP_REM);
    return op && !quotient && !op->region_count && op->operand_count && op->result_count == 1 && tile_op_is_pure(op) &&
           op->results[0].type->kind == TILE_TYPE_SCALAR;
}

/* A word that is not computed once more: a parameter, a quotient, a thread's number. */
static bool is_leaf(const TileValue *value) {
    return value->type->kind == TILE_TYPE_SCALAR && value->type->scalar == TILE_I64 && (!is_cheap(value->op) || value->op->id == TILE_OP_CONVERT);
}

/* Is the value computed of leaves and constants, by few ops? */
static bool can_make(const TileValue *value, unsigned *budget) {
    if (tile_value_def(value, TILE_OP_CONST) || is_leaf(value)) return true;
    if (!is_cheap(value->op) || !*budget) return false;
    --*budget;
    for (unsigned i = 0; i < value->op->operand_count; i++)
        if (!can_make(tile_op_operand(value->op, i), budget)) return false;
    return true;
}

/* Of a value that can be made. A leaf is the same, as something new. */
static TileValue *make(Again *a, TileValue *value) {
    TileValue *made = tile_map_get(&a->made, value);
    if (made || tile_value_def(value, TILE_OP_CONST)) return made ? made : value;
    TileAttribute each = {.key = TILE_ATTRIBUTE_EACH, .integer = 1};
    if (is_leaf(value)) {
        made = tile_op_result(tile_build_op(&a->b, TILE_OP_HERE, &value, 1, &each, 1, NULL, 1), 0);
    } else {
        for (unsigned i = 0; i < value->op->operand_count; i++) make(a, tile_op_operand(value->op, i));
        TileOp *clone = tile_op_clone(a->b.module, value->op, &a->made);
        tile_builder_insert(&a->b, clone);
        made = tile_op_result(clone, 0);
    }
    tile_map_set(&a->made, value, made);
    return made;
}

static void visit(TileOp *op, void *state) {
    Again *a = state;
    for (unsigned i = 0; i < op->operand_count; i++) {
        TileValue *value = tile_op_operand(op, i);
        unsigned budget = MOST_OPS;
        if (!tile_value_outside(value, a->loop) || tile_value_def(value, TILE_OP_CONST) || !can_make(value, &budget)) continue;
        tile_op_set_operand(op, i, make(a, value));
        a->changed = true;
    }
}

static bool shares_registers(const TileOp *loop) {
    const TileOp *outer = loop->block->op;
    while (outer && outer->id != TILE_OP_PARTITIONS) outer = outer->block->op;
    return outer && tile_op_is(outer->regions[0].first, TILE_OP_SET_REGISTERS);
}

static bool try_loop(TilePassContext *context, TileOp *loop, const char **error) {
    if (!tile_op_integer(loop, TILE_ATTRIBUTE_RESIDENT, 0) || !shares_registers(loop)) return false;
    TileOp *first = loop->regions[0].first;
    Again a = {.loop = loop, .b = tile_builder_before(context->module, first)};
    tile_map_init(&a.made, context->scratch);
    for (TileOp *op = first; op; op = op->next) {
        visit(op, &a);
        for (unsigned i = 0; i < op->region_count; i++) tile_block_walk(&op->regions[i], visit, &a);
    }
    *error = a.b.error;
    return a.changed;
}

TileResult tile_pass_gpu_again(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    return tile_try_each(context, func, TILE_OP_FOR, try_loop, "gpu-again");
}
