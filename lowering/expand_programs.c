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
 *         %2 = div %0, %1 {program_axis = 1} : u64
 *         %i = bitcast %2 : i64
 *         %3 = mul %i, %n : i64
 *         %j = sub %program, %3 {program_axis = 1} : i64
 *         %v = load_tile %x, %i, %j {access = [index, index]} : f32
 *         %w = neg %v : f32
 *         store_tile %x, %w, %i, %j {access = [index, index]}
 *         yield
 *       }
 *       return
 *     }
 * Where the target divides words only (`divides_words`), a branch asks once whether the number and all extents are so small that words do for
 * all axes; else numbers of 64 bits are divided, by a routine each. Functions with products have no such branch, unless warpgroups of a program take turns with them.
 *
 * Needs: nothing. Keeps: tile form. Cost: linear. */
#include "base/limits.h"
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "lowering/pass.h"

typedef struct Expansion {
    TilePassContext *context;
    TileBuilder b;
    bool words; /* the target divides words only */
    bool changed;
} Expansion;

static TileValue *binary(Expansion *x, TileOpId id, TileValue *left, TileValue *right) {
    return tile_build_binary(&x->b, id, left, right);
}

/* A number beside others, of their type. */
static TileValue *number_like(Expansion *x, const TileValue *like, int64_t number) {
    return tile_build_integer(&x->b, like->type, number);
}

static TileBuilder in_region(const TileBuilder *outer, TileOp *branch, unsigned region) {
    TileBuilder b = tile_builder_at_end(outer->module, &branch->regions[region]);
    b.location = outer->location;
    b.error = outer->error;
    return b;
}

/* Neither is negative in a running program, so an unsigned division is exact. A word that divides is known not to be 0. */
static TileValue *divide(Expansion *x, TileValue *left, TileValue *right) {
    if (left->type->scalar != TILE_I64) return binary(x, TILE_OP_DIV, left, binary(x, TILE_OP_MAX, right, number_like(x, right, 1)));
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
    TileValue *blocks, *last; /* of rounds: their number, and the range's end; else NULL */
} Order;

typedef struct Position {
    TileValue *row, *column;
} Position;

static TileValue *if_whole(Expansion *x, const Order *order, TileValue *then, TileValue *otherwise) {
    return tile_build_ternary(&x->b, TILE_OP_SELECT, order->whole, then, otherwise);
}

static TileValue *shift_by(Expansion *x, TileValue *value, unsigned log) { return binary(x, TILE_OP_SHR, value, number_like(x, value, log)); }

/* The quotient by the rows of a group, which are as many as are numbered together, a power of two, but in the last one: no division then. Nor where a group of more rows than
 * `least` has half as many, as the one of a grid that has no more. */
static TileValue *divide_by_group(Expansion *x, TileValue *within, TileValue *size, int64_t together, int64_t least) {
    unsigned log = 0;
    while ((INT64_C(2) << log) <= together) log++;
    if (INT64_C(1) << log != together || x->words) return divide(x, within, size);
    TileBuilder outer = x->b;
    TileOp *branch = tile_build_if(&outer, binary(x, TILE_OP_EQ, size, number_like(x, size, together)), &within->type, 1);
    x->b = in_region(&outer, branch, 0);
    TileValue *quotient = shift_by(x, within, log);
    tile_build_end(&x->b, TILE_OP_YIELD, &quotient, 1);
    x->b = in_region(&x->b, branch, 1);
    quotient = together > least ? divide_by_group(x, within, size, together / 2, least) : divide(x, within, size);
    tile_build_end(&x->b, TILE_OP_YIELD, &quotient, 1);
    outer.error = x->b.error;
    x->b = outer;
    return tile_op_result(branch, 0);
}

/* Some rows at a time, column by column; the last column first (`backwards`), where its programs take longest. One row at a time is
 * row by row: so the divisions are the same in both orders, and none waits for another to no purpose. */
static Position by_groups(Expansion *x, const Order *order, int64_t together, int64_t fewest, bool backwards) {
    TileValue *one = number_like(x, order->program, 1);
    TileValue *many = if_whole(x, order, number_like(x, order->program, together), number_like(x, order->program, order->least));
    TileValue *first = divide(x, order->program, binary(x, TILE_OP_MUL, order->columns, many));
    first = binary(x, TILE_OP_MUL, first, many);
    TileValue *size = binary(x, TILE_OP_MIN, binary(x, TILE_OP_SUB, order->rows, first), many);
    TileValue *within = binary(x, TILE_OP_SUB, order->program, binary(x, TILE_OP_MUL, first, order->columns));
    TileValue *column = divide_by_group(x, within, size, together, fewest), *row = binary(x, TILE_OP_ADD, remainder_of(x, within, column, size), first);
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
static TileValue *fold_rounds(Expansion *x, const Order *order) {
    TileValue *program = order->program, *one = number_like(x, program, 1);
    TileValue *round = divide(x, program, order->blocks), *first = binary(x, TILE_OP_MUL, round, order->blocks);
    TileValue *end = binary(x, TILE_OP_MIN, binary(x, TILE_OP_ADD, first, order->blocks), order->last);
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
    order.blocks = tile_op_named(op, TILE_OPERAND_BLOCKS);
    if (order.blocks) order.last = end;
    return order;
}

/* Its row among all rows, and its column. */
static Position find_position(Expansion *x, const TileOp *op, Order order, int64_t programs) {
    int64_t together = tile_op_integer(op, TILE_ATTRIBUTE_TOGETHER, TILE_PROGRAM_ROWS);
    bool backwards = programs == TILE_PROGRAMS_LONGEST_FIRST, uneven = tile_op_get(op, TILE_ATTRIBUTE_UNEVEN) != NULL;
    if (order.blocks) order.program = if_whole(x, &order, fold_rounds(x, &order), order.program);
    return programs == TILE_PROGRAMS_COLUMNS ? by_columns(x, &order) : by_groups(x, &order, together, uneven ? together : TILE_PROGRAM_ROWS, backwards);
}

/* What a place is computed of, all of one type. */
typedef struct Numbers {
    Order order; /* without one of its own: the program alone */
    TileValue *extents[TILE_MAX_GRID_RANK]; /* but of the first axis */
    TileValue *programs[TILE_MAX_GRID_RANK]; /* words: of which the axis and those behind it have so many */
    bool ordered;
} Numbers;

/* Says what a division and what it leaves are, for those who go through the programs by a loop for each axis (cpu-by-axes). */
static void mark_axis(const Expansion *x, const Position *position, unsigned axis) {
    TileOp *quotient = tile_value_def(position->row, TILE_OP_BITCAST);
    quotient = quotient ? tile_op_operand(quotient, 0)->op : NULL;
    if (x->words || !quotient || quotient->id != TILE_OP_DIV) return;
    tile_op_set_integer(x->context->module, quotient, TILE_ATTRIBUTE_PROGRAM_AXIS, axis);
    tile_op_set_integer(x->context->module, position->column->op, TILE_ATTRIBUTE_PROGRAM_AXIS, axis);
}

/* The program's number along each axis. */
static void find_places(Expansion *x, const TileOp *op, const Numbers *numbers, TileValue **places) {
    TileValue *rest = numbers->order.program;
    for (unsigned i = op->result_count; i-- > 1;) {
        Position position;
        if (numbers->ordered && i + 1u == op->result_count) {
            position = find_position(x, op, numbers->order, tile_op_integer(op, TILE_ATTRIBUTE_PROGRAMS, 0));
        } else {
            TileValue *above = divide(x, rest, numbers->extents[i]);
            position = (Position){above, remainder_of(x, rest, above, numbers->extents[i])};
            mark_axis(x, &position, i);
        }
        places[i] = position.column;
        rest = position.row;
    }
    places[0] = rest;
}

/* ---- words ---- */

enum { MOST_NUMBERS = 2 * TILE_MAX_GRID_RANK + 5 };

/* Each axis by a division of the program's number, so that none waits for another. Programs of the grid's first row, which is often the only
 * one, divide nothing. */
static void find_apart(Expansion *x, const TileOp *op, const Numbers *numbers, TileValue **places) {
    TileBuilder outer = x->b;
    TileValue *program = numbers->order.program;
    unsigned last = op->result_count - 1u;
    const TileType *types[TILE_MAX_GRID_RANK];
    for (unsigned i = 0; i < last; i++) types[i] = program->type;
    TileOp *branch = tile_build_if(&outer, binary(x, TILE_OP_LT, program, numbers->programs[last]), types, last);
    x->b = in_region(&outer, branch, 0);
    for (unsigned i = 0; i < last; i++) places[i] = number_like(x, program, 0);
    tile_build_end(&x->b, TILE_OP_YIELD, places, last);
    x->b = in_region(&x->b, branch, 1);
    for (unsigned i = 0; i < last; i++) places[i] = divide(x, program, numbers->programs[i + 1]);
    tile_build_end(&x->b, TILE_OP_YIELD, places, last);
    outer.error = x->b.error;
    x->b = outer;
    for (unsigned i = last + 1; i-- > 0;) {
        TileValue *number = i < last ? tile_op_result(branch, i) : program;
        places[i] = i ? remainder_of(x, number, tile_op_result(branch, i - 1), numbers->extents[i]) : number;
    }
}

/* Those that have to be words. How many of them a test has to look at. */
static unsigned list_numbers(Numbers *numbers, unsigned rank, TileValue **list[MOST_NUMBERS], unsigned *all) {
    Order *order = &numbers->order;
    TileValue **others[] = {&order->program, &order->rows, &order->columns, &order->blocks, &order->last};
    unsigned count = 0;
    for (unsigned i = 0; i < sizeof others / sizeof *others; i++)
        if (*others[i]) list[count++] = others[i];
    if (!numbers->ordered) list[count++] = &numbers->programs[1];
    unsigned asked = count; /* those behind are no greater */
    for (unsigned i = 1; i < rank; i++) list[count++] = &numbers->extents[i];
    for (unsigned i = 2; i < rank && !numbers->ordered; i++) list[count++] = &numbers->programs[i];
    if (all) *all = count;
    return asked;
}

/* Are all numbers so small that products of them and of the rows that are numbered together are words? A grid has less than 2^63 programs, which the
 * launcher sees to, and a program that runs is one of at least 1 along each axis: so no product wraps, and none of its factors is greater. */
static TileValue *are_few(Expansion *x, const TileOp *op, Numbers numbers) {
    TileValue **list[MOST_NUMBERS], *any = NULL;
    unsigned count = list_numbers(&numbers, op->result_count, list, NULL);
    for (unsigned i = 0; i < count; i++) any = any ? binary(x, TILE_OP_OR, any, *list[i]) : *list[i];
    int64_t most = INT32_MAX;
    for (int64_t n = numbers.ordered ? tile_op_integer(op, TILE_ATTRIBUTE_TOGETHER, TILE_PROGRAM_ROWS) : 1; n > 1; n = (n + 1) / 2) most /= 2;
    TileValue *bits = tile_build_bitcast(&x->b, any, TILE_U64);
    return binary(x, TILE_OP_LE, bits, tile_build_integer(&x->b, bits->type, most));
}

/* In words where programs are few, which one test decides for all axes: as numbers of 64 bits otherwise. */
static void find_in_words(Expansion *x, const TileOp *op, Numbers numbers, TileValue **places) {
    TileValue **list[MOST_NUMBERS];
    unsigned rank = op->result_count;
    const TileType *types[TILE_MAX_GRID_RANK];
    for (unsigned i = 0; i < rank; i++) types[i] = numbers.order.program->type;
    for (unsigned i = rank; i-- > 1 && !numbers.ordered;)
        numbers.programs[i] = i + 1 < rank ? binary(x, TILE_OP_MUL, numbers.programs[i + 1], numbers.extents[i]) : numbers.extents[i];
    TileValue *few = are_few(x, op, numbers);
    TileBuilder outer = x->b;
    TileOp *branch = tile_build_if(&outer, few, types, rank);
    x->b = in_region(&outer, branch, 1);
    find_places(x, op, &numbers, places);
    tile_build_end(&x->b, TILE_OP_YIELD, places, rank);
    x->b = in_region(&x->b, branch, 0);
    unsigned count;
    list_numbers(&numbers, rank, list, &count);
    for (unsigned i = 0; i < count; i++) *list[i] = tile_build_convert(&x->b, *list[i], TILE_U32);
    if (numbers.ordered)
        find_places(x, op, &numbers, places);
    else
        find_apart(x, op, &numbers, places);
    for (unsigned i = 0; i < rank; i++) places[i] = tile_build_convert(&x->b, places[i], TILE_I64);
    tile_build_end(&x->b, TILE_OP_YIELD, places, rank);
    outer.error = x->b.error;
    x->b = outer;
    for (unsigned i = 0; i < rank; i++) places[i] = tile_op_result(branch, i);
}

/* ---- all ---- */

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
    Numbers numbers = {.order.program = tile_op_operand(op, 0), .ordered = tile_op_get(op, TILE_ATTRIBUTE_PROGRAMS) != NULL};
    if (numbers.ordered) numbers.order = read_order(x, op);
    for (unsigned i = 1; i < op->result_count; i++) numbers.extents[i] = tile_op_named_at(op, TILE_OPERAND_EXTENTS, i);
    TileValue *places[TILE_MAX_GRID_RANK];
    if (x->words && op->result_count > 1)
        find_in_words(x, op, numbers, places);
    else
        find_places(x, op, &numbers, places);
    for (unsigned i = op->result_count; i-- > 0;) replace_result(op, i, places[i]);
    tile_op_erase(op);
}

typedef struct Products {
    bool any, in_turn; /* warpgroups of a program take turns with them */
} Products;

static void find_products(TileOp *op, void *state) {
    Products *found = state;
    found->any |= op->id == TILE_OP_DOT;
    found->in_turn |= op->id == TILE_OP_TURN_BEGIN && tile_op_get(op, TILE_ATTRIBUTE_TURNS);
}

/* Programs with products are long, and a branch in front of them costs their loops registers: measured, attention in f32 took 1.08 to 1.2
 * times as long, and products of 1024 cubed whose blocks stay 1.02. Where warpgroups take turns, each goes from program to program by itself, and would wait
 * for divisions one after the other each time. */
TileResult tile_pass_expand_programs(TilePassContext *context, TileFunc *func) {
    Expansion x = {.context = context};
    Products products = {.any = false};
    tile_block_walk(&func->body, find_products, &products);
    x.words = (!products.any || products.in_turn) && context->target && context->target->divides_words;
    tile_block_walk(&func->body, expand, &x);
    if (x.b.error) return tile_pass_fail(context, TILE_INTERNAL, NULL, "expand-programs: %s", x.b.error);
    return x.changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
