/* Purpose: choose the order in which the blocks of a launch take the programs of a grid. The longest programs begin
 * first, so that none is left over when all others have ended: where the bound of a loop grows with the last number of
 * a program, as with causal attention, the last number is counted down, for some rows of programs together. And without
 * products, where a grid has two numbers and all that a program stores goes on along the first one, as in a transpose,
 * programs follow one another along it: memory takes whole pages of what is written better than of what is read.
 *
 * Before:
 *     func phase tile @k.0(%a: tensor<f16, 2, in> {noalias}, %c: tensor<f32, 2, out> {noalias}, %columns: i64,
 *       %begin: i64 {role = begin}, %end: i64 {role = end}) threads = 64 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 16} : i64
 *       %none = const {value = 0.0} : f32[16, 16]
 *       for %begin, %end, %one (%program: i64) {
 *         %i, %j = program_id %program, %columns, %columns : i64, i64
 *         %0 = mul %j, %n : i64
 *         %1 = add %0, %n : i64
 *         %sum = for %zero, %1, %n, %none : f32[16, 16] (%k: i64, %acc: f32[16, 16]) {
 *           %x = load_tile %a, %0, %one, %zero, %n, %k, %one, %zero, %n {access = [range, range]} : f16[16, 16]
 *           %y = dot %x, %x, %acc {instruction = mma} : f32[16, 16]
 *           yield %y
 *         }
 *         store_tile %c, %sum, %i, %one, %zero, %n, %0, %one, %zero, %n {access = [range, range]}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%a: tensor<f16, 2, in> {noalias}, %c: tensor<f32, 2, out> {noalias}, %columns: i64,
 *       %begin: i64 {role = begin}, %end: i64 {role = end}) threads = 64 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 16} : i64
 *       %none = const {value = 0.0} : f32[16, 16]
 *       for %begin, %end, %one (%program: i64) {
 *         %i, %j = program_id %program, %columns, %columns, %begin, %end {programs = longest_first} : i64, i64
 *         %0 = mul %j, %n : i64
 *         %1 = add %0, %n : i64
 *         %sum = for %zero, %1, %n, %none : f32[16, 16] (%k: i64, %acc: f32[16, 16]) {
 *           %x = load_tile %a, %0, %one, %zero, %n, %k, %one, %zero, %n {access = [range, range]} : f16[16, 16]
 *           %y = dot %x, %x, %acc {instruction = mma} : f32[16, 16]
 *           yield %y
 *         }
 *         store_tile %c, %sum, %i, %one, %zero, %n, %0, %one, %zero, %n {access = [range, range]}
 *         yield
 *       }
 *       return
 *     }
 * Needs: the pass programs. Keeps: tile form; each program of the whole grid runs once. Cost: linear in the loops of a
 * program.
 */
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "ptx/target/dot.h"
#include "ptx/passes.h"

typedef struct Order {
    const TileOp *place; /* the program_id */
    const TileBlock *program;
    TileIndices *indices;
    const TileValue *row, *column;
} Order;

/* ---- long programs ---- */

static bool is_longer_later(const Order *order) {
    for (const TileOp *op = order->program->first; op; op = op->next) {
        if (op->id == TILE_OP_FOR &&
            tile_index_growth(order->indices, tile_op_operand(op, 1), order->column) == TILE_GROWTH_RISES)
            return true;
    }
    return false;
}

/* ---- stores along the first number ---- */

/* Where the last dimension of a store begins: its neighbours lie side by side in memory. */
static const TileValue *last_index(const TileOp *store) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    unsigned rank = tile_access_read(store, indices);
    return rank && indices[rank - 1].kind == TILE_ACCESS_RANGE ? indices[rank - 1].first : NULL;
}

/* Do all stores of tiles go on, from program to program, along the first number and not along the last? */
static bool stores_along_rows(const Order *order, const TileBlock *block, unsigned *stores) {
    for (const TileOp *op = block->first; op; op = op->next) {
        if (op->id == TILE_OP_ATOMIC_TILE) return false;
        if (op->id == TILE_OP_STORE_TILE) {
            const TileValue *index = last_index(op);
            if (!index || !tile_index_depends(order->indices, index, order->row) ||
                tile_index_depends(order->indices, index, order->column))
                return false;
            ++*stores;
        }
        for (unsigned i = 0; i < op->region_count; i++)
            if (!stores_along_rows(order, &op->regions[i], stores)) return false;
    }
    return true;
}

static bool is_written_along_rows(const Order *order) {
    unsigned stores = 0;
    return order->place->result_count == 2 && stores_along_rows(order, order->program, &stores) && stores;
}

/* ---- the order ---- */

static TileOp *find_place(const TileFunc *func) {
    for (TileOp *loop = func->body.first; loop; loop = loop->next)
        for (TileOp *op = loop->id == TILE_OP_FOR ? loop->regions[0].first : NULL; op; op = op->next)
            if (op->id == TILE_OP_PROGRAM_ID && tile_op_operand(op, 0) == loop->regions[0].arguments[0]) return op;
    return NULL;
}

static TileValue *range_end(const TileFunc *func, TileParameterRole role) {
    for (uint32_t i = 0; i < func->body.argument_count; i++)
        if (func->parameters[i].role == role) return func->body.arguments[i];
    return NULL;
}

TileResult tile_pass_gpu_order(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    TileOp *place = find_place(func);
    TileValue *begin = range_end(func, TILE_ROLE_BEGIN), *end = range_end(func, TILE_ROLE_END);
    if (!place || place->result_count < 2 || !begin || !end || tile_op_get(place, TILE_ATTRIBUTE_PROGRAMS))
        return TILE_RESULT_UNCHANGED;
    Order order = {.place = place,
                   .program = place->block,
                   .indices = tile_pass_indices(context, func),
                   .row = tile_op_result(place, place->result_count - 2u),
                   .column = tile_op_result(place, place->result_count - 1u)};
    bool multiplies = gpu_find_dots(func, &func->body).count != 0;
    bool longest = multiplies && is_longer_later(&order), columns = !multiplies && is_written_along_rows(&order);
    if (!longest && !columns) return TILE_RESULT_UNCHANGED;
    tile_pass_remark(context, place, TILE_DECISION_PROGRAMS_REORDERED, "programs", "%s",
                     longest ? "the longest first" : "along the columns, in the order of their stores");
    tile_op_add_operand(context->module, place, begin);
    tile_op_add_operand(context->module, place, end);
    tile_op_set_integer(context->module, place, TILE_ATTRIBUTE_PROGRAMS,
                        longest ? TILE_PROGRAMS_LONGEST_FIRST : TILE_PROGRAMS_COLUMNS);
    return TILE_RESULT_CHANGED;
}
