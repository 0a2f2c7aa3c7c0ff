/* Purpose: expand a program's indices in its grid (`program_id`) into divisions of its linear index, in the order that
 * the op asks for.
 *
 * Before:
 *     func phase tile @k.0(%x: tensor<f32, 2, inout>, %n: i64, %begin: i64, %end: i64) {
 *       %one = const {value = 1} : i64
 *       for %begin, %end, %one (%program: i64) {
 *         %i, %j = program_id %program, %n, %n : i64, i64
 *         %v = load_tile %x, %i, %j {access = [index, index]} : f32
 *         %w = neg %v : f32
 *         store_tile %x, %w, %i, %j {access = [index, index]}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%x: tensor<f32, 2, inout>, %n: i64, %begin: i64, %end: i64) {
 *       %one = const {value = 1} : i64
 *       for %begin, %end, %one (%program: i64) {
 *         %0 = bitcast %program : u64
 *         %1 = bitcast %n : u64
 *         %2 = div %0, %1 : u64
 *         %i = bitcast %2 : i64
 *         %3 = mul %i, %n : i64
 *         %j = sub %program, %3 : i64
 *         %v = load_tile %x, %i, %j {access = [index, index]} : f32
 *         %w = neg %v : f32
 *         store_tile %x, %w, %i, %j {access = [index, index]}
 *         yield
 *       }
 *       return
 *     }
 * Needs: nothing. Keeps: tile form. Cost: linear. */
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "lowering/pass.h"

typedef struct Expansion {
    TilePassContext *context;
    TileBuilder b;
    bool changed;
} Expansion;

static TileValue *binary(Expansion *x, TileOpId id, TileValue *left, TileValue *right) {
    return tile_build_binary(&x->b, id, left, right);
}

/* Neither is negative in a running program, so an unsigned division is exact. */
static TileValue *divide(Expansion *x, TileValue *left, TileValue *right) {
    TileValue *dividend = tile_build_bitcast(&x->b, left, TILE_U64), *divisor = tile_build_bitcast(&x->b, right, TILE_U64);
    return tile_build_bitcast(&x->b, binary(x, TILE_OP_DIV, dividend, divisor), TILE_I64);
}

static TileValue *remainder_of(Expansion *x, TileValue *number, TileValue *quotient, TileValue *divisor) {
    return binary(x, TILE_OP_SUB, number, binary(x, TILE_OP_MUL, quotient, divisor));
}

/* How programs are numbered: in another order, where the range of programs is the whole grid, which alone is a permutation of itself;
 * else row by row. */
typedef struct Order {
    TileValue *program, *rows, *columns;
    TileValue *whole; /* is the range the whole grid? */
    int64_t least;    /* rows together that are neighbours in any range */
} Order;

typedef struct Position {
    TileValue *row, *column;
} Position;

static TileValue *if_whole(Expansion *x, const Order *order, TileValue *then, TileValue *otherwise) {
    return tile_build_ternary(&x->b, TILE_OP_SELECT, order->whole, then, otherwise);
}

/* Some rows at a time, column by column; the last column first (`backwards`), where its programs take longest. One row at a time is
 * row by row: so the divisions are the same in both orders, and none waits for another to no purpose. */
static Position by_groups(Expansion *x, const Order *order, int64_t together, bool backwards) {
    TileValue *one = tile_build_i64(&x->b, 1);
    TileValue *many = if_whole(x, order, tile_build_i64(&x->b, together), tile_build_i64(&x->b, order->least));
    TileValue *first = divide(x, order->program, binary(x, TILE_OP_MUL, order->columns, many));
    first = binary(x, TILE_OP_MUL, first, many);
    TileValue *size = binary(x, TILE_OP_MIN, binary(x, TILE_OP_SUB, order->rows, first), many);
    TileValue *within = binary(x, TILE_OP_SUB, order->program, binary(x, TILE_OP_MUL, first, order->columns));
    TileValue *column = divide(x, within, size), *row = binary(x, TILE_OP_ADD, remainder_of(x, within, column, size), first);
    if (!backwards) return (Position){row, column};
    TileValue *last = binary(x, TILE_OP_SUB, order->columns, one);
    return (Position){row, if_whole(x, order, binary(x, TILE_OP_SUB, last, column), column)};
}

/* Column by column. */
static Position by_columns(Expansion *x, const Order *order) {
    TileValue *length = if_whole(x, order, order->rows, order->columns), *quotient = divide(x, order->program, length);
    TileValue *rest = remainder_of(x, order->program, quotient, length);
    return (Position){if_whole(x, order, rest, quotient), if_whole(x, order, quotient, rest)};
}

/* The number in a round of all blocks: in odd rounds that of the block which is as far from the round's end. So a block
 * that has a longer program than others in one round has a shorter one in the next. */
static TileValue *fold_rounds(Expansion *x, const TileOp *op, TileValue *program) {
    TileValue *blocks = tile_op_named(op, TILE_OPERAND_BLOCKS), *one = tile_build_i64(&x->b, 1);
    TileValue *round = divide(x, program, blocks), *first = binary(x, TILE_OP_MUL, round, blocks);
    TileValue *end = binary(x, TILE_OP_MIN, binary(x, TILE_OP_ADD, first, blocks), tile_op_named(op, TILE_OPERAND_LAST));
    TileValue *other = binary(x, TILE_OP_SUB, binary(x, TILE_OP_SUB, binary(x, TILE_OP_ADD, first, end), one), program);
    TileValue *odd = binary(x, TILE_OP_EQ, binary(x, TILE_OP_AND, round, one), one);
    return tile_build_ternary(&x->b, TILE_OP_SELECT, odd, other, program);
}

/* All axes but the last are rows. Multiplying their extents takes a few cycles, dividing the number of programs a hundred. */
static Order read_order(Expansion *x, const TileOp *op) {
    Order order = {.program = tile_op_operand(op, 0),
                   .least = tile_op_integer(op, TILE_ATTRIBUTE_MULTICAST, 1),
                   .rows = tile_op_named_at(op, TILE_OPERAND_EXTENTS, 0)};
    order.columns = tile_op_named_at(op, TILE_OPERAND_EXTENTS, op->result_count - 1u);
    for (unsigned i = 1; i + 1u < op->result_count; i++)
        order.rows = binary(x, TILE_OP_MUL, order.rows, tile_op_named_at(op, TILE_OPERAND_EXTENTS, i));
    TileValue *begin = tile_op_named(op, TILE_OPERAND_FIRST), *end = tile_op_named(op, TILE_OPERAND_LAST);
    TileValue *all = binary(x, TILE_OP_EQ, binary(x, TILE_OP_MUL, order.rows, order.columns), end);
    order.whole = binary(x, TILE_OP_AND, binary(x, TILE_OP_EQ, begin, tile_build_i64(&x->b, 0)), all);
    if (tile_op_named(op, TILE_OPERAND_BLOCKS)) order.program = if_whole(x, &order, fold_rounds(x, op, order.program), order.program);
    return order;
}

/* Its row among all rows, and its column. */
static Position find_position(Expansion *x, const TileOp *op, const TileAttribute *programs) {
    Order order = read_order(x, op);
    int64_t together = tile_op_integer(op, TILE_ATTRIBUTE_TOGETHER, TILE_PROGRAM_ROWS);
    bool backwards = programs->integer == TILE_PROGRAMS_LONGEST_FIRST;
    return programs->integer == TILE_PROGRAMS_COLUMNS ? by_columns(x, &order) : by_groups(x, &order, together, backwards);
}

static void replace_result(TileOp *op, unsigned axis, TileValue *with) {
    TileValue *result = tile_op_result(op, axis);
    if (!with->name || axis) with->name = result->name;
    tile_value_replace(result, with);
}

static void expand(TileOp *op, void *state) {
    Expansion *x = state;
    if (op->id != TILE_OP_PROGRAM_ID) return;
    x->changed = true;
    x->b = tile_builder_before(x->context->module, op);
    x->b.location = op->location;
    TileValue *rest = tile_op_operand(op, 0);
    const TileAttribute *programs = tile_op_get(op, TILE_ATTRIBUTE_PROGRAMS);
    for (unsigned i = op->result_count; i-- > 1;) {
        TileValue *extent = tile_op_named_at(op, TILE_OPERAND_EXTENTS, i);
        Position position;
        if (programs && i + 1u == op->result_count) {
            position = find_position(x, op, programs);
        } else {
            TileValue *above = divide(x, rest, extent);
            position = (Position){above, remainder_of(x, rest, above, extent)};
        }
        replace_result(op, i, position.column);
        rest = position.row;
    }
    replace_result(op, 0, rest);
    tile_op_erase(op);
}

TileResult tile_pass_expand_programs(TilePassContext *context, TileFunc *func) {
    Expansion x = {.context = context};
    tile_block_walk(&func->body, expand, &x);
    if (x.b.error) return tile_pass_fail(context, TILE_INTERNAL, NULL, "expand-programs: %s", x.b.error);
    return x.changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
