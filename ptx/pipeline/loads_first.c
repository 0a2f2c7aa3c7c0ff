/* Purpose: load what a program takes before it computes with what it has loaded before, and before it stores, where no store writes it. Threads wait for memory where they first
 * compute with what is loaded, and once more for a load that stands behind that: of a line of numbers, which asks for itself whether it is whole, or of the second one of the tensors that
 * a text updates in place. ptxas moves no load out of a branch, nor in front of a store. So the load moves behind the load in front of it, and both are in flight together. What is loaded
 * lies in registers meanwhile, so it is a few vectors of a thread at most, and nothing moves in grids that multiply, whose threads have few registers beside sums.
 *
 * Before:
 *     func phase tile @k.0(%m: tensor<f32, 1, inout> {noalias}, %p: tensor<f32, 1, inout> {noalias}, %begin: i64, %end: i64) threads = 32 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %all = const {value = 128} : i64
 *       %a = load_tile %m, %zero, %one, %zero, %all {access = [range]} : f32[128]
 *       %b = add %a, %a : f32[128]
 *       store_tile %m, %b, %zero, %one, %zero, %all {access = [range]}
 *       %c = load_tile %p, %zero, %one, %zero, %all {access = [range]} : f32[128]
 *       %d = sub %c, %b : f32[128]
 *       store_tile %p, %d, %zero, %one, %zero, %all {access = [range]}
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%m: tensor<f32, 1, inout> {noalias}, %p: tensor<f32, 1, inout> {noalias}, %begin: i64, %end: i64) threads = 32 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %all = const {value = 128} : i64
 *       %a = load_tile %m, %zero, %one, %zero, %all {access = [range]} : f32[128]
 *       %c = load_tile %p, %zero, %one, %zero, %all {access = [range]} : f32[128]
 *       %b = add %a, %a : f32[128]
 *       store_tile %m, %b, %zero, %one, %zero, %all {access = [range]}
 *       %d = sub %c, %b : f32[128]
 *       store_tile %p, %d, %zero, %one, %zero, %all {access = [range]}
 *       return
 *     }
 * Needs: gpu-threads. Keeps: tile form, the order of stores, and what each load reads. Cost: linear in the ops, times those between a load and the first store. */
#include "lang/ir/eval.h"
#include "lang/ir/operands.h"
#include "lowering/memory.h"
#include "ptx/passes.h"

/* Bytes of a thread, of all loads of a block of ops that move in front of stores, and in front of what only computes: those are often in registers together in any case. */
enum { MOST_BEFORE_STORES = 64, MOST_BEFORE_COMPUTING = 128 };

static bool defines_operand(const TileOp *op, const TileOp *load) {
    for (unsigned i = 0; i < load->operand_count; i++)
        if (tile_op_operand(load, i)->op == op) return true;
    return false;
}

/* Does the op compute with tiles, each element by itself? */
static bool computes(const TileOp *op) {
    return op->result_count == 1 && op->operand_count && tile_type_is_tile(op->results[0].type) && (op->id == TILE_OP_CONVERT || tile_eval_op_of((TileOpId)op->id) != TILE_EVAL_COUNT);
}

/* Does it move no tile's elements? */
static bool is_cheap(const TileOp *op) {
    bool tiles = op->result_count && tile_type_is_tile(op->results[0].type);
    return tile_op_is_pure(op) && (!tiles || !op->operand_count || op->id == TILE_OP_SPLAT || computes(op));
}

/* May the load stand in front of the op? Not of what has iterations or branches, or where threads exchange what they have: it would be in registers for long. */
static bool may_precede(const TileOp *load, const TileOp *op) {
    if (op->region_count || defines_operand(op, load)) return false;
    if (op->id == TILE_OP_STORE_TILE) return !tile_memory_overlaps(tile_memory_tensor(op), tile_memory_tensor(load));
    return op->id == TILE_OP_LOAD_TILE || is_cheap(op);
}

/* The first op that stores or computes that the load may move in front of, if something is loaded before it, and whether one of them stores; NULL: there is none. */
static TileOp *find_position(const TileOp *load, bool *stores) {
    TileOp *first = NULL, *op = load->previous;
    *stores = false;
    for (; op && may_precede(load, op); op = op->previous) {
        *stores |= op->id == TILE_OP_STORE_TILE;
        if (op->id == TILE_OP_STORE_TILE || computes(op)) first = op;
    }
    for (op = first; op; op = op->previous)
        if (op->id == TILE_OP_LOAD_TILE) return first;
    return NULL;
}

/* Of one thread, if the tile is spread over all of them. */
static int64_t bytes_of(const TileFunc *func, const TileType *type) {
    int64_t lanes = tile_type_is_tile(type) ? tile_type_lanes(type) : 1;
    return (lanes + func->threads - 1) / func->threads * (int64_t)tile_scalar_bytes(type->scalar);
}

static bool visit(TilePassContext *context, TileFunc *func, TileBlock *block) {
    bool changed = false, stores;
    int64_t moved[2] = {0}; /* in front of what only computes, of stores */
    for (TileOp *op = block->first, *next; op; op = next) {
        next = op->next;
        for (unsigned i = 0; i < op->region_count; i++) changed |= visit(context, func, &op->regions[i]);
        TileOp *position = op->id == TILE_OP_LOAD_TILE ? find_position(op, &stores) : NULL;
        if (!position) continue;
        int64_t bytes = bytes_of(func, op->results[0].type);
        if (moved[stores] + bytes > (stores ? MOST_BEFORE_STORES : MOST_BEFORE_COMPUTING)) {
            tile_pass_remark(context, op, TILE_DECISION_NOT_LOADED_FIRST, tile_op_operand(op, 0)->name, "it would take %lld bytes of a thread meanwhile", (long long)(moved[stores] + bytes));
            continue;
        }
        moved[stores] += bytes;
        tile_op_detach(op);
        tile_op_insert_before(op, position);
        tile_pass_remark(context, op, TILE_DECISION_LOADED_FIRST, tile_op_operand(op, 0)->name, "nothing in between writes it");
        changed = true;
    }
    return changed;
}

static void find_product(TileOp *op, void *found) { *(bool *)found |= op->id == TILE_OP_DOT; }

TileResult tile_pass_gpu_loads_first(TilePassContext *context, TileFunc *func) {
    bool multiplies = false;
    if (func->kind != TILE_FUNC_PHASE || !func->threads) return TILE_RESULT_UNCHANGED;
    tile_block_walk(&func->body, find_product, &multiplies);
    return !multiplies && visit(context, func, &func->body) ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
