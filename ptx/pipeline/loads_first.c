/* Purpose: load what a program takes before it stores, where no store writes it. A text that updates several tensors in place stores one and then loads the
 * next: threads wait for memory once more, and ptxas moves no load in front of a store. So the load moves in front of the first store that it stands behind, and is in flight
 * together with those of what was stored. What is loaded lies in registers meanwhile, so it is a few vectors of a thread at most.
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
 *       %b = add %a, %a : f32[128]
 *       %c = load_tile %p, %zero, %one, %zero, %all {access = [range]} : f32[128]
 *       store_tile %m, %b, %zero, %one, %zero, %all {access = [range]}
 *       %d = sub %c, %b : f32[128]
 *       store_tile %p, %d, %zero, %one, %zero, %all {access = [range]}
 *       return
 *     }
 * Needs: gpu-threads. Keeps: tile form, the order of stores, and what each load reads. Cost: linear in the ops, times those between a load and the first store. */
#include "lang/ir/operands.h"
#include "lowering/memory.h"
#include "ptx/passes.h"

/* Bytes of a thread, of all loads of a block of ops that move: four vectors. */
enum { MOST_BYTES = 64 };

static bool defines_operand(const TileOp *op, const TileOp *load) {
    for (unsigned i = 0; i < load->operand_count; i++)
        if (tile_op_operand(load, i)->op == op) return true;
    return false;
}

/* May the load stand in front of the op? Not of what has iterations or branches: it would be in registers for long. */
static bool may_precede(const TileOp *load, const TileOp *op) {
    if (op->region_count || defines_operand(op, load)) return false;
    if (op->id == TILE_OP_STORE_TILE) return !tile_memory_overlaps(tile_memory_tensor(op), tile_memory_tensor(load));
    return op->id == TILE_OP_LOAD_TILE || tile_op_is_pure(op);
}

/* The first store that the load may move in front of, if something is loaded before it; NULL: there is none. */
static TileOp *find_store(const TileOp *load) {
    TileOp *first = NULL, *op = load->previous;
    for (; op && may_precede(load, op); op = op->previous)
        if (op->id == TILE_OP_STORE_TILE) first = op;
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
    bool changed = false;
    int64_t moved = 0;
    for (TileOp *op = block->first, *next; op; op = next) {
        next = op->next;
        for (unsigned i = 0; i < op->region_count; i++) changed |= visit(context, func, &op->regions[i]);
        TileOp *store = op->id == TILE_OP_LOAD_TILE ? find_store(op) : NULL;
        if (!store) continue;
        int64_t bytes = bytes_of(func, op->results[0].type);
        if (moved + bytes > MOST_BYTES) {
            tile_pass_remark(context, op, TILE_DECISION_NOT_LOADED_FIRST, tile_op_operand(op, 0)->name, "it would take %lld bytes of a thread meanwhile", (long long)(moved + bytes));
            continue;
        }
        moved += bytes;
        tile_op_detach(op);
        tile_op_insert_before(op, store);
        tile_pass_remark(context, op, TILE_DECISION_LOADED_FIRST, tile_op_operand(op, 0)->name, "no store in front of it writes it");
        changed = true;
    }
    return changed;
}

TileResult tile_pass_gpu_loads_first(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE || !func->threads) return TILE_RESULT_UNCHANGED;
    return visit(context, func, &func->body) ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
