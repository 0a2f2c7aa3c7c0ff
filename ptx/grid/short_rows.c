/* Purpose: replace the loop over the tiles of a row by its body, where rows are known to have at least one element and
 * to fit into one tile. What several loops load of a row then is loaded once, and values stay in registers.
 *
 * Before:
 *     func kernel tile @k(%x: tensor<f32, 2, in> {most = 256}, %y: tensor<f32, 1, out>) {
 *       %M = dim %x {axis = 0} : i64
 *       %N = dim %x {axis = 1} : i64
 *       check_dim %y, %M {axis = 0, text = "M"}
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %1024 = const {value = 1024} : i64
 *       %none = const {value = 0.0} : f32
 *       grid %M (%m: i64) {
 *         %sum = for %zero, %N, %1024, %none : f32 (%n: i64, %before: f32) {
 *           %left = sub %N, %n : i64
 *           %hi = min %left, %1024 : i64
 *           %v = load_tile %x, %m, %n, %one, %zero, %hi {access = [index, range]} : f32[1024]
 *           %w = fill %v, %none, %zero, %hi {axes = [0]} : f32[1024]
 *           %s = reduce %w {axis = 0, kind = sum} : f32
 *           %all = add %before, %s : f32
 *           yield %all
 *         }
 *         store_tile %y, %sum, %m {access = [index]}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func kernel tile @k(%x: tensor<f32, 2, in> {most = 256, used_most = 1024, asked_most = 1024},
 *       %y: tensor<f32, 1, out>) {
 *       %M = dim %x {axis = 0} : i64
 *       %N = dim %x {axis = 1} : i64
 *       check_dim %y, %M {axis = 0, text = "M"}
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %1024 = const {value = 1024} : i64
 *       %none = const {value = 0.0} : f32
 *       grid %M (%m: i64) {
 *         %left = sub %N, %zero : i64
 *         %hi = min %left, %1024 : i64
 *         %v = load_tile %x, %m, %zero, %one, %zero, %hi {access = [index, range]} : f32[1024]
 *         %w = fill %v, %none, %zero, %hi {axes = [0]} : f32[1024]
 *         %s = reduce %w {axis = 0, kind = sum, piecewise = 1} : f32
 *         %all = add %none, %s : f32
 *         store_tile %y, %all, %m {access = [index]}
 *         yield
 *       }
 *       return
 *     }
 * Whether rows fit is asked for each such loop in tiles of at least 128 elements that loads, but for loops of products:
 * those have stages. Its answer has few values (launch/guard.h), so that one variant serves rows of many lengths.
 *
 * Needs: inline, and cse, so that a row's length is one value. Keeps: tile form, and the order of all sums:
 * `piecewise` keeps gpu-threads from taking the tile for a whole row, of which it gives each to one warp. Cost: linear.
 */
#include "base/limits.h"
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "ptx/passes.h"

typedef struct Rows {
    TilePassContext *context;
    TileFunc *kernel;
    bool changed;
} Rows;

/* The tensor whose last extent the value is; NULL: there is none. */
static TileValue *tensor_of_rows(const Rows *rows, const TileValue *extent) {
    for (uint32_t i = 0; i < rows->kernel->body.argument_count; i++) {
        TileValue *tensor = rows->kernel->body.arguments[i];
        int64_t last = (int64_t)tensor->type->rank - 1;
        if (tensor->type->kind != TILE_TYPE_TENSOR) continue;
        for (const TileUse *use = tensor->first_use; use; use = use->next) {
            const TileOp *op = use->user;
            if (tile_op_integer(op, TILE_ATTRIBUTE_AXIS, -1) != last) continue;
            if (op->id == TILE_OP_DIM && &op->results[0] == extent) return tensor;
            if (op->id == TILE_OP_CHECK_DIM && tile_op_operand(op, 1) == extent) return tensor;
        }
    }
    return NULL;
}

typedef struct Contents {
    bool loads, multiplies;
} Contents;

static void look(TileOp *op, void *state) {
    Contents *contents = state;
    contents->loads |= op->id == TILE_OP_LOAD_TILE && tile_type_is_tile(op->results[0].type);
    contents->multiplies |= op->id == TILE_OP_DOT;
}

/* Is the row certainly one tile? Asks for the fact. */
static bool is_one_tile(Rows *rows, const TileOp *loop) {
    int64_t step, most = TILE_GREATEST_SHORT_ROW;
    Contents contents = {false, false};
    if (!tile_value_is_integer(tile_op_operand(loop, 0), 0)) return false;
    if (!tile_value_integer(tile_op_named(loop, TILE_OPERAND_STEP), &step) || step < TILE_LEAST_SHORT_ROW) return false;
    TileValue *tensor = tensor_of_rows(rows, tile_op_operand(loop, 1));
    tile_block_walk(&loop->regions[0], look, &contents);
    if (!tensor || !contents.loads || contents.multiplies) return false;
    while (most > step) most /= 2;
    TileParameter *parameter = &rows->kernel->parameters[tensor->index];
    rows->changed |= !(parameter->asked_most & most);
    parameter->asked_most |= (uint32_t)most;
    if (!parameter->facts.most || parameter->facts.most > most) return false;
    parameter->used_most |= (uint32_t)most;
    return true;
}

static void mark(TileOp *op, void *state) {
    if (op->id == TILE_OP_REDUCE) tile_op_set_integer(state, op, TILE_ATTRIBUTE_PIECEWISE, 1);
}

static void take_body(TileModule *module, TileOp *loop) {
    TileBlock *body = &loop->regions[0];
    TileOp *yield = body->last;
    tile_block_walk(body, mark, module);
    tile_value_replace(body->arguments[0], tile_op_operand(loop, 0));
    for (unsigned i = 0; i < loop->result_count; i++)
        tile_value_replace(body->arguments[1 + i], tile_loop_carried(loop, i));
    while (body->first != yield) {
        TileOp *op = body->first;
        tile_op_detach(op);
        tile_op_insert_before(op, loop);
    }
    for (unsigned i = 0; i < loop->result_count; i++)
        tile_value_replace(&loop->results[i], tile_op_named_at(yield, TILE_OPERAND_VALUES, i));
    tile_op_erase(loop);
}

static void visit(Rows *rows, TileBlock *block) {
    for (TileOp *op = block->first, *next; op; op = next) {
        for (unsigned i = 0; i < op->region_count; i++) visit(rows, &op->regions[i]);
        next = op->next;
        if (op->id != TILE_OP_FOR || !is_one_tile(rows, op)) continue;
        const TileValue *tensor = tensor_of_rows(rows, tile_op_operand(op, 1));
        tile_pass_remark(rows->context, op, TILE_DECISION_ONE_TILE, tensor->name, "%s", "no loop goes over it");
        take_body(rows->context->module, op);
        rows->changed = true;
    }
}

TileResult tile_pass_gpu_short_rows(TilePassContext *context, TileFunc *func) {
    Rows rows = {context, func, false};
    if (func->kind != TILE_FUNC_KERNEL) return TILE_RESULT_UNCHANGED;
    for (TileOp *op = func->body.first; op; op = op->next)
        if (op->id == TILE_OP_GRID) visit(&rows, &op->regions[0]);
    return rows.changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
