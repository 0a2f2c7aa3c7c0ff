/* Purpose: go through rows that lie one behind the other as through one. A loop over rows begins the loop along each of them, and ends it with what is
 * left of a vector: of rows with few elements that takes most of the time. Where each element is computed by itself, from the elements at its own place, and
 * every tensor has its rows one behind the other, the first row has the elements of all rows, and there is no other. Whether tensors have, and whether
 * a row is gone along from its first element to its last, is asked at run time; the loops stay as they are, but for how far they go.
 *
 * Run: --passes=cpu-flatten --target=avx512
 * Before:
 *     func phase machine @k.0(%x: ptr<global>, %y: ptr<global>, %from: i64, %to: i64, %m: i64, %n: i64) {
 *       %zero = const {value = 0} : i64
 *       %four = const {value = 4} : i64
 *       loop %zero, %m {loop = parallel, extent = 64} (%i: i64) {
 *         %o = mul %i, %from : i64
 *         %p = ptr_add %x, %o : ptr<global>
 *         %u = mul %i, %to : i64
 *         %q = ptr_add %y, %u : ptr<global>
 *         loop %zero, %n {loop = parallel, extent = 2048} (%j: i64) {
 *           %b = mul %j, %four : i64
 *           %r = ptr_add %p, %b : ptr<global>
 *           %v = load %r : f32
 *           %w = add %v, %v : f32
 *           %s = ptr_add %q, %b : ptr<global>
 *           store %w, %s
 *           yield
 *         }
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func phase machine @k.0(%x: ptr<global>, %y: ptr<global>, %from: i64, %to: i64, %m: i64, %n: i64) {
 *       %zero = const {value = 0} : i64
 *       %four = const {value = 4} : i64
 *       %0 = sub %m, %zero : i64
 *       %1 = const {value = 1} : i64
 *       %2 = add %zero, %1 : i64
 *       %3 = const {value = 0} : i64
 *       %4 = eq %zero, %3 : bool
 *       %5 = const {value = 4} : i64
 *       %6 = mul %n, %5 : i64
 *       %7 = eq %from, %6 : bool
 *       %8 = and %4, %7 : bool
 *       %9 = const {value = 4} : i64
 *       %10 = mul %n, %9 : i64
 *       %11 = eq %to, %10 : bool
 *       %12 = and %8, %11 : bool
 *       %13 = mul %0, %n : i64
 *       %14 = select %12, %13, %n : i64
 *       %15 = min %2, %m : i64
 *       %16 = select %12, %15, %m : i64
 *       loop %zero, %16 {loop = parallel, extent = 64} (%i: i64) {
 *         %o = mul %i, %from : i64
 *         %p = ptr_add %x, %o : ptr<global>
 *         %u = mul %i, %to : i64
 *         %q = ptr_add %y, %u : ptr<global>
 *         loop %zero, %14 {loop = parallel, extent = 131072} (%j: i64) {
 *           %b = mul %j, %four : i64
 *           %r = ptr_add %p, %b : ptr<global>
 *           %v = load %r : f32
 *           %w = add %v, %v : f32
 *           %s = ptr_add %q, %b : ptr<global>
 *           store %w, %s
 *           yield
 *         }
 *         yield
 *       }
 *       return
 *     }
 * Loops beside products stay: cpu-dot looks for those that clear and finish its sums.
 *
 * Needs: nothing. Keeps: each element, in the same order. Cost: linear; some comparisons for each time that the loops begin. */
#include "base/map.h"
#include "cpu/vectorise.h"
#include "lang/ir/operands.h"

enum {
    FEWEST = 128 /* elements that a row may have: for less, loops along rows are code of their own (cpu-vectorise) */
};

typedef struct Row {
    TileValue *stride; /* in bytes, from one row to the next */
    int64_t bytes;     /* from one element to the next */
} Row;

typedef struct Flatten {
    TilePassContext *context;
    TileOp *rows, *columns;
    TileMap places; /* values of the inner loop that are computed from the numbers of the row and of the column, and nothing but parts of addresses */
    TILE_LIST(Row) list;
    bool changed;
} Flatten;

static TileValue *number_of(const TileOp *loop) { return loop->regions[0].arguments[0]; }

static bool is_parallel(const TileOp *op) {
    return op->id == TILE_OP_LOOP && !op->result_count && tile_loop_kind(op) == TILE_LOOP_KIND_PARALLEL;
}

static bool is_simple(const TileOp *op) {
    return tile_op_info((TileOpId)op->id)->class == TILE_CLASS_ELEMENTWISE || op->id == TILE_OP_CONST || op->id == TILE_OP_PTR_ADD;
}

/* ---- what the loops do ---- */

/* The loop along a row, which is the only one; in front of it there are the places of the row. NULL: there are others. */
static TileOp *loop_within(TileOp *rows) {
    TileOp *found = NULL;
    TileBlock *body = &rows->regions[0];
    for (TileOp *op = body->first; op != body->last; op = op->next) {
        if (!is_simple(op) && (found || !is_parallel(op))) return NULL;
        if (!is_simple(op)) found = op;
    }
    return found;
}

/* The factor by which the number is multiplied in the offset; NULL: it is something else. */
static TileValue *factor_of(TileValue *offset, const TileValue *number) {
    TileOp *mul = tile_value_def(offset, TILE_OP_MUL);
    for (unsigned i = 0; mul && i < 2; i++)
        if (tile_op_operand(mul, i) == number) return tile_op_operand(mul, 1 - i);
    return NULL;
}

/* The address is that of an element of a row: a place that all rows share, a row's distance from the first one, and an element's. */
static bool add_address(Flatten *x, TileValue *address) {
    TileValue *stride = NULL;
    int64_t bytes = 0;
    for (; address->op && address->op->id == TILE_OP_PTR_ADD; address = tile_op_operand(address->op, 0)) {
        TileValue *offset = tile_op_operand(address->op, 1), *row = factor_of(offset, number_of(x->rows)), *column = factor_of(offset, number_of(x->columns));
        if (tile_value_outside(offset, x->rows)) continue;
        if (column ? bytes || !tile_value_integer(column, &bytes) || bytes <= 0 : !row || stride || !tile_value_outside(row, x->rows)) return false;
        if (!column) stride = row;
    }
    if (!stride || !bytes || !tile_value_outside(address, x->rows)) return false;
    for (size_t i = 0; i < x->list.count; i++)
        if (x->list.items[i].stride == stride && x->list.items[i].bytes == bytes) return true;
    tile_list_push(x->context->scratch, &x->list, ((Row){stride, bytes}));
    return true;
}

/* Is the value one of the row's or of the element's place, which only addresses may be made of? */
static bool is_place(const Flatten *x, const TileValue *value) {
    if (value == number_of(x->rows) || value == number_of(x->columns) || tile_map_get(&x->places, value)) return true;
    return !tile_value_outside(value, x->rows) && tile_value_outside(value, x->columns);
}

static bool is_part_of_address(const TileOp *op) { return op->id == TILE_OP_PTR_ADD || (op->id == TILE_OP_MUL && !op->results[0].type->rank); }

static bool look_at(Flatten *x, TileOp *op) {
    bool loads = op->id == TILE_OP_LOAD, access = loads || op->id == TILE_OP_STORE, place = false;
    if (access && (tile_op_has_part(op, TILE_PARTS_MASK) || !add_address(x, tile_op_named(op, TILE_OPERAND_ADDRESS)))) return false;
    if (!access && !is_simple(op)) return false;
    for (unsigned i = 0; i < op->operand_count; i++)
        if (!access || tile_op_operand(op, i) != tile_op_named(op, TILE_OPERAND_ADDRESS)) place |= is_place(x, tile_op_operand(op, i));
    if (!place) return true;
    if (access || !is_part_of_address(op)) return false;
    tile_map_set(&x->places, &op->results[0], op);
    return true;
}

static bool find_rows(Flatten *x, TileOp *rows) {
    TileOp *columns = is_parallel(rows) ? loop_within(rows) : NULL;
    if (!columns || tile_loop_extent(columns) < FEWEST || !tile_loop_extent(rows)) return false;
    x->rows = rows;
    x->columns = columns;
    x->list.count = 0;
    tile_map_init(&x->places, x->context->scratch);
    for (unsigned i = 0; i < 2; i++)
        if (!tile_value_outside(tile_op_operand(columns, i), rows)) return false;
    TileBlock *body = &columns->regions[0];
    for (TileOp *op = body->first; op != body->last; op = op->next)
        if (!look_at(x, op)) return false;
    return x->list.count > 0;
}

/* ---- one row ---- */

/* Do all tensors have their rows one behind the other, and is a row gone along as a whole? */
static TileValue *build_condition(const Flatten *x, TileBuilder *b, TileValue *length) {
    TileValue *all = tile_build_binary(b, TILE_OP_EQ, tile_op_operand(x->columns, 0), tile_build_i64(b, 0));
    for (size_t i = 0; i < x->list.count; i++) {
        TileValue *bytes = tile_build_binary(b, TILE_OP_MUL, length, tile_build_i64(b, x->list.items[i].bytes));
        all = tile_build_binary(b, TILE_OP_AND, all, tile_build_binary(b, TILE_OP_EQ, x->list.items[i].stride, bytes));
    }
    return all;
}

static void flatten(Flatten *x) {
    TileBuilder b = tile_builder_before(x->context->module, x->rows);
    TileValue *first = tile_op_operand(x->rows, 0), *end = tile_op_operand(x->rows, 1), *length = tile_op_operand(x->columns, 1);
    TileValue *count = tile_build_binary(&b, TILE_OP_SUB, end, first), *next = tile_build_binary(&b, TILE_OP_ADD, first, tile_build_i64(&b, 1));
    TileValue *one = build_condition(x, &b, length);
    TileValue *all = tile_build_binary(&b, TILE_OP_MUL, count, length);
    tile_op_set_operand(x->columns, 1, tile_build_ternary(&b, TILE_OP_SELECT, one, all, length));
    tile_op_set_operand(x->rows, 1, tile_build_ternary(&b, TILE_OP_SELECT, one, tile_build_binary(&b, TILE_OP_MIN, next, end), end));
    tile_op_set_integer(x->context->module, x->columns, TILE_ATTRIBUTE_EXTENT, tile_loop_extent(x->rows) * tile_loop_extent(x->columns));
    tile_pass_remark(x->context, x->rows, TILE_DECISION_ONE_ROW, "the loop", "%lld rows", (long long)tile_loop_extent(x->rows));
    x->changed = true;
}

static void find_product(TileOp *op, void *state) {
    bool *found = state;
    *found |= op->id == TILE_OP_DOT_BLOCK;
}

static void visit(TileOp *op, void *state) {
    Flatten *x = state;
    if (find_rows(x, op)) flatten(x);
}

TileResult tile_pass_cpu_flatten(TilePassContext *context, TileFunc *func) {
    Flatten x = {.context = context};
    bool multiplies = false;
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    tile_block_walk(&func->body, find_product, &multiplies);
    if (multiplies) return TILE_RESULT_UNCHANGED;
    tile_block_walk(&func->body, visit, &x);
    return x.changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
