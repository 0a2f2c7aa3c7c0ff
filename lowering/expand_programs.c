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

/* Is the range the whole grid? Only the whole grid is a permutation of itself in another order. */
static TileValue *is_whole_grid(Expansion *x, const TileOp *op, TileValue *rows, TileValue *columns) {
    TileValue *begin = tile_op_named(op, TILE_OPERAND_FIRST), *end = tile_op_named(op, TILE_OPERAND_LAST);
    TileValue *whole = binary(x, TILE_OP_EQ, binary(x, TILE_OP_MUL, rows, columns), end);
    return binary(x, TILE_OP_AND, binary(x, TILE_OP_EQ, begin, tile_build_i64(&x->b, 0)), whole);
}

typedef struct Position {
    TileValue *row, *column;
} Position;

/* Some rows at a time, column by column; the last column first (`backwards`), where its programs take longest. */
static Position by_groups(Expansion *x, TileValue *program, TileValue *rows, TileValue *columns, int64_t together, bool backwards) {
    TileValue *many = tile_build_i64(&x->b, together);
    TileValue *first = divide(x, program, binary(x, TILE_OP_MUL, columns, many));
    first = binary(x, TILE_OP_MUL, first, many);
    TileValue *size = binary(x, TILE_OP_MIN, binary(x, TILE_OP_SUB, rows, first), many);
    TileValue *within = binary(x, TILE_OP_SUB, program, binary(x, TILE_OP_MUL, first, columns));
    TileValue *quotient = divide(x, within, size), *row = remainder_of(x, within, quotient, size);
    if (!backwards) return (Position){binary(x, TILE_OP_ADD, row, first), quotient};
    TileValue *last = binary(x, TILE_OP_SUB, columns, tile_build_i64(&x->b, 1));
    return (Position){binary(x, TILE_OP_ADD, row, first), binary(x, TILE_OP_SUB, last, quotient)};
}

/* Column by column. */
static Position by_columns(Expansion *x, TileValue *program, TileValue *rows) {
    TileValue *column = divide(x, program, rows);
    return (Position){remainder_of(x, program, column, rows), column};
}

/* The number in a round of all blocks: in odd rounds that of the block which is as far from the round's end. So a block
 * that has a longer program than others in one round has a shorter one in the next. */
static TileValue *fold_rounds(Expansion *x, const TileOp *op, TileValue *program) {
    TileValue *blocks = tile_op_named(op, TILE_OPERAND_BLOCKS), *one = tile_build_i64(&x->b, 1);
    if (!blocks) return program;
    TileValue *round = divide(x, program, blocks), *first = binary(x, TILE_OP_MUL, round, blocks);
    TileValue *end = binary(x, TILE_OP_MIN, binary(x, TILE_OP_ADD, first, blocks), tile_op_named(op, TILE_OPERAND_LAST));
    TileValue *other = binary(x, TILE_OP_SUB, binary(x, TILE_OP_SUB, binary(x, TILE_OP_ADD, first, end), one), program);
    TileValue *odd = binary(x, TILE_OP_EQ, binary(x, TILE_OP_AND, round, one), one);
    return tile_build_ternary(&x->b, TILE_OP_SELECT, odd, other, program);
}

static Position apply_order(Expansion *x, const TileOp *op, TileValue *columns, Position position) {
    const TileAttribute *order = tile_op_get(op, TILE_ATTRIBUTE_PROGRAMS);
    if (!order) return position;
    TileValue *program = fold_rounds(x, op, tile_op_operand(op, 0)),
              *rows = divide(x, tile_op_named(op, TILE_OPERAND_LAST), columns);
    int64_t together = tile_op_integer(op, TILE_ATTRIBUTE_TOGETHER, TILE_PROGRAM_ROWS);
    TileValue *whole = is_whole_grid(x, op, rows, columns);
    bool backwards = order->integer == TILE_PROGRAMS_LONGEST_FIRST;
    Position other = order->integer == TILE_PROGRAMS_COLUMNS ? by_columns(x, program, rows)
                                                             : by_groups(x, program, rows, columns, together, backwards);
    position.row = tile_build_ternary(&x->b, TILE_OP_SELECT, whole, other.row, position.row);
    position.column = tile_build_ternary(&x->b, TILE_OP_SELECT, whole, other.column, position.column);
    return position;
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
    for (unsigned i = op->result_count; i-- > 1;) {
        TileValue *extent = tile_op_named_at(op, TILE_OPERAND_EXTENTS, i), *above = divide(x, rest, extent);
        Position position = {above, remainder_of(x, rest, above, extent)};
        if (i + 1u == op->result_count) position = apply_order(x, op, extent, position);
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
