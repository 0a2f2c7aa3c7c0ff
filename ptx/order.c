/* Purpose: choose the order in which the blocks of a launch take the programs of a grid. The longest programs begin
 * first, so that none is left over when all others have ended: where the bound of a loop grows with the last number of
 * a program, as with causal attention, the last number is counted down, for 8 rows of programs together: more would not
 * share what they read with those that run at the same time. And without products, where a grid has two numbers and all
 * that a program stores goes on along the first one, as in a transpose, programs follow one another along it: memory
 * takes whole pages of what is written better than of what is read.
 *
 * Before:
 *     func phase tile @k.0(%a: tensor<f16, 2, in> {noalias}, %c: tensor<f32, 2, out> {noalias}, %columns: i64,
 *                          %begin: i64, %end: i64) threads = 64 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 16} : i64
 *       %none = const {value = 0.0} : f32[16, 16]
 *       %0 = block : i64
 *       %1 = add %begin, %0 : i64
 *       %2 = block_count : i64
 *       for %1, %end, %2 (%program: i64) {
 *         %3 = bitcast %program : u64
 *         %4 = bitcast %columns : u64
 *         %5 = div %3, %4 : u64
 *         %i = bitcast %5 : i64
 *         %6 = mul %i, %columns : i64
 *         %j = sub %program, %6 : i64
 *         %7 = mul %j, %n : i64
 *         %8 = add %7, %n : i64
 *         %sum = for %zero, %8, %n, %none : f32[16, 16] (%k: i64, %acc: f32[16, 16]) {
 *           %x = load_tile %a, %7, %one, %zero, %n, %k, %one, %zero, %n {access = [range, range]} : f16[16, 16]
 *           %y = dot %x, %x, %acc {instruction = mma} : f32[16, 16]
 *           yield %y
 *         }
 *         store_tile %c, %sum, %i, %one, %zero, %n, %7, %one, %zero, %n {access = [range, range]}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%a: tensor<f16, 2, in> {noalias}, %c: tensor<f32, 2, out> {noalias}, %columns: i64,
 *         %begin: i64, %end: i64) threads = 64 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 16} : i64
 *       %none = const {value = 0.0} : f32[16, 16]
 *       %0 = block : i64
 *       %1 = add %begin, %0 : i64
 *       %2 = block_count : i64
 *       for %1, %end, %2 (%program: i64) {
 *         %3 = bitcast %program : u64
 *         %4 = bitcast %columns : u64
 *         %5 = div %3, %4 : u64
 *         %i = bitcast %5 : i64
 *         %6 = mul %i, %columns : i64
 *         %j = sub %program, %6 : i64
 *         %7 = const {value = 8} : i64
 *         %8 = bitcast %end : u64
 *         %9 = bitcast %columns : u64
 *         %10 = div %8, %9 : u64
 *         %11 = bitcast %10 : i64
 *         %12 = mul %columns, %7 : i64
 *         %13 = bitcast %program : u64
 *         %14 = bitcast %12 : u64
 *         %15 = div %13, %14 : u64
 *         %16 = bitcast %15 : i64
 *         %17 = mul %16, %7 : i64
 *         %18 = sub %11, %17 : i64
 *         %19 = min %18, %7 : i64
 *         %20 = mul %17, %columns : i64
 *         %21 = sub %program, %20 : i64
 *         %22 = bitcast %21 : u64
 *         %23 = bitcast %19 : u64
 *         %24 = div %22, %23 : u64
 *         %25 = bitcast %24 : i64
 *         %26 = mul %25, %19 : i64
 *         %27 = sub %21, %26 : i64
 *         %28 = add %27, %17 : i64
 *         %29 = const {value = 1} : i64
 *         %30 = sub %columns, %29 : i64
 *         %31 = sub %30, %25 : i64
 *         %32 = mul %11, %columns : i64
 *         %33 = eq %32, %end : bool
 *         %34 = const {value = 0} : i64
 *         %35 = eq %begin, %34 : bool
 *         %36 = and %35, %33 : bool
 *         %37 = select %36, %28, %i : i64
 *         %38 = select %36, %31, %j : i64
 *         %39 = mul %38, %n : i64
 *         %40 = add %39, %n : i64
 *         %sum = for %zero, %40, %n, %none : f32[16, 16] (%k: i64, %acc: f32[16, 16]) {
 *           %x = load_tile %a, %39, %one, %zero, %n, %k, %one, %zero, %n {access = [range, range]} : f16[16, 16]
 *           %y = dot %x, %x, %acc {instruction = mma} : f32[16, 16]
 *           yield %y
 *         }
 *         store_tile %c, %sum, %37, %one, %zero, %n, %39, %one, %zero, %n {access = [range, range]}
 *         yield
 *       }
 *       return
 *     }
 * Needs: gpu-blocks. Keeps: tile form; each program of the whole grid runs once. Cost: linear in the loops of a
 * program.
 */
#include "lang/build.h"
#include "ptx/dot.h"
#include "ptx/passes.h"
#include "ptx/reuse.h"

enum { ROWS = 8, MOST_DEPTH = 12 };

typedef struct Order {
    TilePassContext *context;
    TileFunc *func;
    TileOp *loop;
    TileValue *program, *columns; /* numbers of the last dimension */
    TileValue *row, *column;
    TileBuilder b;
} Order;

/* ---- the numbers of a program ---- */

static TileOp *only_user(TileValue *value, TileOpId id) {
    for (TileUse *use = value->first_use; use; use = use->next)
        if (use->user->id == id) return use->user;
    return NULL;
}

/* bitcast, div, bitcast, mul, sub, as cpu-programs writes them. */
static bool find_numbers(Order *order) {
    order->program = order->loop->regions[0].arguments[0];
    TileOp *bits = only_user(order->program, TILE_OP_BITCAST);
    TileOp *quotient = bits ? only_user(&bits->results[0], TILE_OP_DIV) : NULL;
    TileOp *row = quotient ? only_user(&quotient->results[0], TILE_OP_BITCAST) : NULL;
    TileOp *column = only_user(order->program, TILE_OP_SUB);
    if (!row || !column || tile_op_operand(quotient, 0) != &bits->results[0]) return false;
    const TileOp *divisor = tile_value_def(tile_op_operand(quotient, 1), TILE_OP_BITCAST);
    const TileOp *start = tile_value_def(tile_op_operand(column, 1), TILE_OP_MUL);
    if (!divisor || !start || tile_op_operand(column, 0) != order->program) return false;
    order->columns = tile_op_operand(divisor, 0);
    order->row = &row->results[0];
    order->column = &column->results[0];
    return tile_op_operand(start, 0) == order->row && tile_op_operand(start, 1) == order->columns &&
           tile_value_outside(order->columns, order->loop);
}

/* ---- long programs ---- */

/* Is the value greater, or no less, for a greater `number`? `grows` is set where it depends on it at all. */
static bool follows(const TileValue *value, const TileValue *number, unsigned depth, bool *grows) {
    int64_t constant;
    if (value == number) return *grows = true;
    if (!value->op || !depth) return !value->op;
    const TileOp *op = value->op;
    if (op->id == TILE_OP_CONST || op->id == TILE_OP_DIM) return true;
    if (op->operand_count != 2) return false;
    const TileValue *x = tile_op_operand(op, 0), *y = tile_op_operand(op, 1);
    bool of_y = false;
    switch ((TileOpId)op->id) {
    case TILE_OP_ADD:
    case TILE_OP_MIN:
    case TILE_OP_MAX: return follows(x, number, depth - 1, grows) && follows(y, number, depth - 1, grows);
    case TILE_OP_SUB: return follows(x, number, depth - 1, grows) && follows(y, number, depth - 1, &of_y) && !of_y;
    case TILE_OP_MUL: return tile_value_integer(y, &constant) && constant > 0 && follows(x, number, depth - 1, grows);
    default: return false;
    }
}

static bool is_longer_later(const Order *order) {
    for (const TileOp *op = order->loop->regions[0].first; op; op = op->next) {
        bool grows = false;
        if (op->id == TILE_OP_FOR && follows(tile_op_operand(op, 1), order->column, MOST_DEPTH, &grows) && grows)
            return true;
    }
    return false;
}

/* ---- stores along the first number ---- */

/* Where the last dimension of a store begins: its neighbours lie side by side in memory. */
static const TileValue *last_index(const TileOp *store) {
    const TileAttribute *kinds = tile_op_get(store, TILE_ATTRIBUTE_ACCESS);
    unsigned operand = tile_access_first(store);
    if (!kinds || !kinds->count) return NULL;
    for (unsigned d = 0; d + 1 < kinds->count; d++) operand += kinds->integers[d] == TILE_ACCESS_RANGE ? 4 : 1;
    bool range = kinds->integers[kinds->count - 1] == TILE_ACCESS_RANGE;
    return range ? tile_op_operand(store, operand) : NULL;
}

/* Do all stores of tiles go on, from program to program, along the first number and not along the last? */
static bool stores_along_rows(const Order *order, const TileBlock *block, unsigned *stores) {
    for (const TileOp *op = block->first; op; op = op->next) {
        if (op->id == TILE_OP_ATOMIC_TILE) return false;
        if (op->id == TILE_OP_STORE_TILE) {
            const TileValue *index = last_index(op);
            if (!index || !gpu_depends(index, order->row) || gpu_depends(index, order->column)) return false;
            ++*stores;
        }
        for (unsigned i = 0; i < op->region_count; i++)
            if (!stores_along_rows(order, &op->regions[i], stores)) return false;
    }
    return true;
}

/* Has the grid just these two numbers? A first one that is taken apart stands for more. */
static bool has_two_numbers(const Order *order) {
    for (const TileUse *use = order->row->first_use; use; use = use->next)
        if (use->user->id == TILE_OP_BITCAST) return false;
    return true;
}

static bool is_written_along_rows(const Order *order) {
    unsigned stores = 0;
    return has_two_numbers(order) && stores_along_rows(order, &order->loop->regions[0], &stores) && stores;
}

/* ---- the order ---- */

static TileValue *binary(Order *order, TileOpId id, TileValue *x, TileValue *y) {
    return tile_build_binary(&order->b, id, x, y);
}

/* Of numbers that are not negative. */
static TileValue *divide(Order *order, TileValue *x, TileValue *y) {
    TileValue *dividend = tile_build_bitcast(&order->b, x, TILE_U64);
    TileValue *divisor = tile_build_bitcast(&order->b, y, TILE_U64);
    return tile_build_bitcast(&order->b, binary(order, TILE_OP_DIV, dividend, divisor), TILE_I64);
}

/* New numbers take the place of the old ones, but where they are made of them. */
static void replace_number(TileValue *old, TileValue *with, const TileOp *but) {
    for (TileUse *use = old->first_use, *next; use; use = next) {
        next = use->next;
        if (use->user != but && use->user != with->op) tile_op_set_operand(use->user, use->index, with);
    }
}

/* A part of a grid keeps its programs' numbers: only all of them together are the same programs in another order. */
static void build_order(Order *order) {
    TileBlock *body = &order->func->body;
    TileValue *end = body->arguments[body->argument_count - 1], *begin = body->arguments[body->argument_count - 2];
    TileOp *row_start = tile_op_operand(order->column->op, 1)->op;
    order->b = tile_builder_before(order->context->module, order->column->op->next);
    TileValue *many = tile_build_i64(&order->b, ROWS), *rows = divide(order, end, order->columns);
    TileValue *first = divide(order, order->program, binary(order, TILE_OP_MUL, order->columns, many));
    first = binary(order, TILE_OP_MUL, first, many);
    TileValue *size = binary(order, TILE_OP_MIN, binary(order, TILE_OP_SUB, rows, first), many);
    TileValue *start = binary(order, TILE_OP_MUL, first, order->columns);
    TileValue *within = binary(order, TILE_OP_SUB, order->program, start);
    TileValue *quotient = divide(order, within, size);
    TileValue *row = binary(order, TILE_OP_SUB, within, binary(order, TILE_OP_MUL, quotient, size));
    row = binary(order, TILE_OP_ADD, row, first);
    TileValue *column = binary(order, TILE_OP_SUB, order->columns, tile_build_i64(&order->b, 1));
    column = binary(order, TILE_OP_SUB, column, quotient);
    TileValue *whole = binary(order, TILE_OP_EQ, binary(order, TILE_OP_MUL, rows, order->columns), end);
    TileValue *all = binary(order, TILE_OP_EQ, begin, tile_build_i64(&order->b, 0));
    whole = binary(order, TILE_OP_AND, all, whole);
    row = tile_build_ternary(&order->b, TILE_OP_SELECT, whole, row, order->row);
    column = tile_build_ternary(&order->b, TILE_OP_SELECT, whole, column, order->column);
    replace_number(order->row, row, row_start);
    replace_number(order->column, column, NULL);
}

/* The programs of a column one after the other: what was the quotient of a program's number is now the remainder. */
static void build_columns(Order *order) {
    TileBlock *body = &order->func->body;
    TileValue *end = body->arguments[body->argument_count - 1], *begin = body->arguments[body->argument_count - 2];
    TileOp *row_start = tile_op_operand(order->column->op, 1)->op;
    order->b = tile_builder_before(order->context->module, order->column->op->next);
    TileValue *rows = divide(order, end, order->columns);
    TileValue *whole = binary(order, TILE_OP_EQ, binary(order, TILE_OP_MUL, rows, order->columns), end);
    TileValue *all = binary(order, TILE_OP_EQ, begin, tile_build_i64(&order->b, 0));
    whole = binary(order, TILE_OP_AND, all, whole);
    TileValue *column = divide(order, order->program, rows);
    TileValue *row = binary(order, TILE_OP_SUB, order->program, binary(order, TILE_OP_MUL, column, rows));
    row = tile_build_ternary(&order->b, TILE_OP_SELECT, whole, row, order->row);
    column = tile_build_ternary(&order->b, TILE_OP_SELECT, whole, column, order->column);
    replace_number(order->row, row, row_start);
    replace_number(order->column, column, NULL);
}

static TileOp *find_loop(const TileFunc *func) {
    for (TileOp *op = func->body.first; op; op = op->next)
        if (op->id == TILE_OP_FOR && tile_value_def(tile_op_operand(op, 2), TILE_OP_BLOCK_COUNT)) return op;
    return NULL;
}

TileResult tile_pass_gpu_order(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    Order order = {.context = context, .func = func, .loop = find_loop(func)};
    if (!order.loop || !find_numbers(&order)) return TILE_RESULT_UNCHANGED;
    bool multiplies = gpu_find_dots(func, &func->body).count != 0;
    if (multiplies && is_longer_later(&order))
        build_order(&order);
    else if (!multiplies && is_written_along_rows(&order))
        build_columns(&order);
    else
        return TILE_RESULT_UNCHANGED;
    if (order.b.error) return tile_pass_fail(context, TILE_INTERNAL, NULL, "gpu-order: %s", order.b.error);
    return TILE_RESULT_CHANGED;
}
