/* Purpose: go through programs axis by axis. A program's number along each axis of its grid is a remainder of its number among all, and a
 * processor divides in 10 to 20 cycles, which wait for one another: programs of a few vectors take as long as that. So the loop over programs
 * becomes one for each axis. Nothing is divided but where a loop does not begin with the axis, or ends ahead of it; and what follows from outer
 * axes alone, such as where a row begins, is computed where they change, by licm.
 *
 * Run: --passes=cpu-by-axes,licm,dce --target=avx512
 * Before:
 *     func phase machine @k.0(%x: ptr<global>, %row: i64, %n: i64, %begin: i64 {role = begin}, %end: i64 {role = end}) {
 *       %one = const {value = 1} : i64
 *       %u = bitcast %n : u64
 *       for %begin, %end, %one (%program: i64) {
 *         %v = bitcast %program : u64
 *         %q = div %v, %u {program_axis = 1} : u64
 *         %i = bitcast %q : i64
 *         %first = mul %i, %n : i64
 *         %j = sub %program, %first {program_axis = 1} : i64
 *         %a = mul %i, %row : i64
 *         %p = ptr_add %x, %a : ptr<global>
 *         %r = ptr_add %p, %j : ptr<global>
 *         store %j, %r
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func phase machine @k.0(%x: ptr<global>, %row: i64, %n: i64, %begin: i64 {role = begin}, %end: i64 {role = end}) {
 *       %u = bitcast %n : u64
 *       %0 = bitcast %end : u64
 *       %1 = const {value = 1} : u64
 *       %2 = sub %u, %1 : u64
 *       %3 = ge %2, %0 : bool
 *       %4 = select %3, %0, %u : u64
 *       %5 = bitcast %4 : i64
 *       %6 = bitcast %begin : u64
 *       %7 = bitcast %end : u64
 *       %8 = bitcast %5 : u64
 *       %9 = div %6, %8 : u64
 *       %10 = bitcast %9 : i64
 *       %11 = const {value = 1} : u64
 *       %12 = sub %8, %11 : u64
 *       %13 = add %7, %12 : u64
 *       %14 = div %13, %8 : u64
 *       %15 = bitcast %14 : i64
 *       %16 = const {value = 1} : i64
 *       %17 = const {value = 0} : i64
 *       %18 = const {value = 1} : i64
 *       for %10, %15, %16 (%19: i64) {
 *         %20 = mul %19, %5 : i64
 *         %21 = sub %begin, %20 : i64
 *         %22 = max %21, %17 : i64
 *         %23 = sub %end, %20 : i64
 *         %24 = min %23, %5 : i64
 *         %q = bitcast %19 : u64
 *         %i = bitcast %q : i64
 *         %a = mul %i, %row : i64
 *         %p = ptr_add %x, %a : ptr<global>
 *         for %22, %24, %18 (%j: i64) {
 *           %r = ptr_add %p, %j : ptr<global>
 *           store %j, %r
 *           yield
 *         }
 *         yield
 *       }
 *       return
 *     }
 * Divisors may be any numbers: one that is 0, or greater than all programs, leaves all of them to the axis itself.
 * Needs: expand-programs, which marks the divisions of a program's number and what they leave (`program_axis`); licm behind it. Keeps: each program, in
 * order. Cost: linear. */
#include "cpu/passes.h"
#include "lang/ir/build.h"
#include "lang/ir/operands.h"

enum {
    MOST_AXES = 8,
    MOST_OPS = 256 /* of a program: longer ones take longer than what they divide, and need the registers */
};

/* The program's number, divided by those of the axes before it, counted from the last one. */
typedef struct Axis {
    TileOp *division;         /* by its extent: the number along the axes above */
    unsigned axis;            /* its number in the grid */
    TileValue *extent, *size; /* at most all programs; programs of one number along it */
    TileValue *whole;         /* programs of all of its numbers, or -1: more than there are */
} Axis;

typedef struct Axes {
    TilePassContext *context;
    TileOp *loop;
    TileBuilder b;
    Axis axes[MOST_AXES];
    unsigned count;
    TileValue *all; /* programs of a number along what is above the axes */
} Axes;

/* ---- which divisions ---- */

static TileValue *plain(TileValue *value) {
    while (value->op && value->op->id == TILE_OP_BITCAST && tile_type_is_scalar(value->type)) value = tile_op_operand(value->op, 0);
    return value;
}

/* Is the op one of those that `program_axis` marks, in the loop's own block? */
static unsigned axis_of(const Axes *x, const TileOp *op) {
    return op->block == &x->loop->regions[0] ? (unsigned)tile_op_integer(op, TILE_ATTRIBUTE_PROGRAM_AXIS, 0) : 0;
}

/* The quotient of the greatest axis below `below`. */
static TileOp *find_division(const Axes *x, unsigned below) {
    TileOp *found = NULL;
    for (TileOp *op = x->loop->regions[0].first; op; op = op->next) {
        unsigned axis = axis_of(x, op);
        if (op->id == TILE_OP_DIV && axis && axis < below && (!found || axis > axis_of(x, found))) found = op;
    }
    return found;
}

static unsigned count_ops(const TileBlock *block) {
    unsigned count = 0;
    for (const TileOp *op = block->first; op; op = op->next) {
        count++;
        for (unsigned i = 0; i < op->region_count; i++) count += count_ops(&op->regions[i]);
    }
    return count;
}

/* Is there something to gain? Numbers that are known are divided by a multiplication. Each axis's dividend is what the one behind it left. */
static bool find_axes(Axes *x) {
    int64_t number;
    bool divides = false;
    unsigned below = MOST_AXES + 1;
    const TileValue *value = x->loop->regions[0].arguments[0];
    for (TileOp *division; x->count < MOST_AXES && (division = find_division(x, below)); value = &division->results[0]) {
        if (plain(tile_op_operand(division, 0)) != value || !tile_value_outside(tile_op_operand(division, 1), x->loop)) break;
        below = axis_of(x, division);
        x->axes[x->count++] = (Axis){.division = division, .axis = below};
        divides |= !tile_value_integer(tile_op_operand(division, 1), &number);
    }
    unsigned ops = divides ? count_ops(&x->loop->regions[0]) : 0;
    if (ops <= MOST_OPS) return divides;
    tile_pass_remark(x->context, x->loop, TILE_DECISION_NOT_BY_AXES, "the grid", "a program has %u ops, more than %d", ops, MOST_OPS);
    return false;
}

/* ---- sizes ---- */

static TileValue *binary(Axes *x, TileOpId id, TileValue *left, TileValue *right) { return tile_build_binary(&x->b, id, left, right); }

static TileValue *number_like(Axes *x, const TileValue *like, int64_t number) { return tile_build_integer(&x->b, like->type, number); }

static TileValue *divide_up(Axes *x, TileValue *number, TileValue *by) {
    return binary(x, TILE_OP_DIV, binary(x, TILE_OP_ADD, number, binary(x, TILE_OP_SUB, by, number_like(x, by, 1))), by);
}

/* Of one number along each axis, how many programs; at most `end`, so that nothing wraps. In unsigned numbers. */
static void find_sizes(Axes *x) {
    TileValue *end = tile_build_bitcast(&x->b, tile_op_operand(x->loop, 1), TILE_U64), *size = number_like(x, end, 1);
    for (unsigned i = 0; i < x->count; i++) {
        Axis *axis = &x->axes[i];
        TileValue *extent = tile_op_operand(axis->division, 1);
        TileValue *beyond = binary(x, TILE_OP_GE, binary(x, TILE_OP_SUB, extent, number_like(x, extent, 1)), end); /* 0, too */
        TileValue *own = tile_build_ternary(&x->b, TILE_OP_SELECT, beyond, end, extent), *next = own;
        axis->whole = own;
        if (i) {
            TileValue *more = binary(x, TILE_OP_LT, binary(x, TILE_OP_DIV, end, size), own);
            TileValue *whole = binary(x, TILE_OP_MUL, size, own);
            next = tile_build_ternary(&x->b, TILE_OP_SELECT, more, end, whole);
            axis->whole = tile_build_ternary(&x->b, TILE_OP_SELECT, more, number_like(x, whole, UINT64_MAX), whole);
        }
        axis->extent = tile_build_bitcast(&x->b, own, TILE_I64);
        axis->size = tile_build_bitcast(&x->b, size, TILE_I64);
        axis->whole = tile_build_bitcast(&x->b, axis->whole, TILE_I64);
        size = next;
    }
    x->all = tile_build_bitcast(&x->b, size, TILE_I64);
}

/* ---- loops ---- */

typedef struct Range {
    TileValue *first, *end;
} Range;

static TileValue *enter_loop(Axes *x, Range range) {
    TileOp *loop = tile_build_for(&x->b, range.first, range.end, number_like(x, range.first, 1), NULL, 0);
    TileBuilder outer = x->b;
    x->b = tile_builder_at_end(outer.module, &loop->regions[0]);
    x->b.location = outer.location;
    x->b.error = outer.error;
    return loop->regions[0].arguments[0];
}

/* The programs of one number, each of so many, counted from its first. */
static Range within(Axes *x, Range range, TileValue *number, TileValue *size) {
    TileValue *before = binary(x, TILE_OP_MUL, number, size);
    TileValue *first = binary(x, TILE_OP_MAX, binary(x, TILE_OP_SUB, range.first, before), number_like(x, before, 0));
    return (Range){first, binary(x, TILE_OP_MIN, binary(x, TILE_OP_SUB, range.end, before), size)};
}

static Range divide_range(Axes *x, Range range, TileValue *size) {
    TileValue *first = tile_build_bitcast(&x->b, range.first, TILE_U64), *end = tile_build_bitcast(&x->b, range.end, TILE_U64);
    TileValue *by = tile_build_bitcast(&x->b, size, TILE_U64);
    first = binary(x, TILE_OP_DIV, first, by);
    return (Range){tile_build_bitcast(&x->b, first, TILE_I64), tile_build_bitcast(&x->b, divide_up(x, end, by), TILE_I64)};
}

/* The axis's numbers of these programs: mostly it is gone through as a whole. */
static Range numbers_of(Axes *x, Range range, const Axis *axis) {
    TileValue *zero = number_like(x, axis->whole, 0), *rest = binary(x, TILE_OP_OR, range.first, binary(x, TILE_OP_SUB, axis->whole, range.end));
    const TileType *types[] = {zero->type, zero->type};
    TileOp *branch = tile_build_if(&x->b, binary(x, TILE_OP_EQ, rest, zero), types, 2);
    TileBuilder outer = x->b;
    x->b = tile_builder_at_end(outer.module, &branch->regions[0]);
    tile_build_end(&x->b, TILE_OP_YIELD, (TileValue *[]){zero, axis->extent}, 2);
    x->b = tile_builder_at_end(outer.module, &branch->regions[1]);
    Range own = divide_range(x, range, axis->size);
    tile_build_end(&x->b, TILE_OP_YIELD, (TileValue *[]){own.first, own.end}, 2);
    outer.error = outer.error ? outer.error : x->b.error;
    x->b = outer;
    return (Range){tile_op_result(branch, 0), tile_op_result(branch, 1)};
}

/* What is the program's number along the axis is the index. */
static void replace_places(const Axes *x, const Axis *axis, TileValue *index) {
    for (TileOp *op = x->loop->regions[0].first; op; op = op->next) {
        if (op->id != TILE_OP_SUB || axis_of(x, op) != axis->axis) continue;
        if (!index->name) index->name = op->results[0].name;
        tile_value_replace(&op->results[0], index);
    }
}

static void move_body(Axes *x, TileValue *number) {
    TileBlock *body = &x->loop->regions[0];
    tile_value_replace(body->arguments[0], number);
    for (TileOp *op = body->first, *next; op != body->last; op = next) {
        next = op->next;
        tile_op_detach(op);
        tile_builder_insert(&x->b, op);
    }
}

static void close(Axes *x) {
    for (TileBlock *block = x->b.block; block != x->loop->block; block = block->op->block) {
        TileBuilder b = tile_builder_at_end(x->b.module, block);
        tile_build_end(&b, TILE_OP_YIELD, NULL, 0);
    }
}

static void split(Axes *x) {
    x->b = tile_builder_before(x->context->module, x->loop);
    x->b.location = x->loop->location;
    find_sizes(x);
    Range range = {tile_op_operand(x->loop, 0), tile_op_operand(x->loop, 1)};
    TileValue *number = enter_loop(x, divide_range(x, range, x->all)), *indices[MOST_AXES], *above[MOST_AXES];
    range = within(x, range, number, x->all);
    for (unsigned i = x->count; i-- > 0;) {
        const Axis *axis = &x->axes[i];
        above[i] = number;
        indices[i] = enter_loop(x, i ? numbers_of(x, range, axis) : range);
        number = binary(x, TILE_OP_ADD, binary(x, TILE_OP_MUL, number, axis->extent), indices[i]);
        if (i) range = within(x, range, indices[i], axis->size);
    }
    for (unsigned i = 0; i < x->count; i++) {
        replace_places(x, &x->axes[i], indices[i]);
        TileValue *quotient = &x->axes[i].division->results[0];
        TileBuilder before = tile_builder_before(x->context->module, x->axes[i].division);
        tile_value_replace(quotient, tile_build_bitcast(&before, above[i], TILE_U64));
    }
    move_body(x, number);
    close(x);
    tile_op_erase(x->loop);
}

/* From the range's first program on, or of programs that have been joined, from the first that has bands in the range. */
static bool is_over_programs(const TileFunc *func, const TileOp *op) {
    const TileValue *begin = op->id == TILE_OP_FOR && !op->result_count ? tile_op_operand(op, 0) : NULL;
    if (!begin || !tile_value_is_integer(tile_op_named(op, TILE_OPERAND_STEP), 1)) return false;
    if (tile_op_get(op, TILE_ATTRIBUTE_JOINED)) return true;
    return !begin->op && begin->block == &func->body && func->parameters[begin->index].role == TILE_ROLE_BEGIN;
}

TileResult tile_pass_cpu_by_axes(TilePassContext *context, TileFunc *func) {
    for (TileOp *op = func->kind == TILE_FUNC_PHASE ? func->body.first : NULL; op; op = op->next) {
        Axes x = {.context = context, .loop = op};
        if (!is_over_programs(func, op) || !find_axes(&x)) continue;
        tile_pass_remark(context, op, TILE_DECISION_BY_AXES, "the grid", "%u axes are loops of their own", x.count + 1);
        split(&x);
        if (x.b.error) return tile_pass_fail(context, TILE_INTERNAL, NULL, "cpu-by-axes: %s", x.b.error);
        return TILE_RESULT_CHANGED;
    }
    return TILE_RESULT_UNCHANGED;
}
