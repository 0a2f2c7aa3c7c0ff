/* Purpose: let a program take lanes of one remainder, where a product takes elements by the remainder of a lane's place: a
 * transposed convolution of stride 2 meets even places by some of the window and odd ones by the others, so that half of each operand
 * was zeros. Programs of a grid take every second place instead, each of one remainder: what was a condition of each lane
 * is one of all, places by their quotient are neighbours, and products by zeros are left out (gpu-zeros).
 *
 * Before:
 *     func kernel tile @k(%x: tensor<f16, 2, in>, %w: tensor<f16, 2, in>, %y: tensor<f32, 2, out> {noalias}) {
 *       %Q = dim %y {axis = 0} : i64
 *       %W = dim %x {axis = 0} : i64
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %15 = const {value = 15} : i64
 *       %16 = const {value = 16} : i64
 *       %two = const {value = 2} : i64[16]
 *       %none = const {value = 0} : i64[16]
 *       %acc = const {value = 0.0} : f32[16, 16]
 *       %nothing = const {value = 0.0} : f16[16, 16]
 *       %up = add %Q, %15 : i64
 *       %n = div %up, %16 : i64
 *       grid %n (%q: i64) {
 *         %m = mul %q, %16 : i64
 *         %base = splat %m : i64[16]
 *         %lanes = iota {axis = 0} : i64[16]
 *         %place = add %base, %lanes : i64[16]
 *         %half = rem %place, %two : i64[16]
 *         %even = eq %half, %none : bool[16]
 *         %at = div %place, %two : i64[16]
 *         %most = splat %W : i64[16]
 *         %inside = lt %at, %most : bool[16]
 *         %column = reshape %inside : bool[16, 1]
 *         %mask = broadcast %column : bool[16, 16]
 *         %e = reshape %even : bool[16, 1]
 *         %f = broadcast %e : bool[16, 16]
 *         %a = load_tile %x, %at, %zero, %one, %zero, %16, %mask {access = [gather, range], parts = [mask]} : f16[16, 16]
 *         %v = select %f, %a, %nothing : f16[16, 16]
 *         %b = load_tile %w, %zero, %one, %zero, %16, %zero, %one, %zero, %16 {access = [range, range]} : f16[16, 16]
 *         %s = dot %v, %b, %acc : f32[16, 16]
 *         %left = sub %Q, %m : i64
 *         %hi = min %left, %16 : i64
 *         store_tile %y, %s, %m, %one, %zero, %hi, %zero, %one, %zero, %16 {access = [range, range]}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func kernel tile @k(%x: tensor<f16, 2, in>, %w: tensor<f16, 2, in>, %y: tensor<f32, 2, out> {noalias}) {
 *       %Q = dim %y {axis = 0} : i64
 *       %W = dim %x {axis = 0} : i64
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %0 = const {value = 15} : i64
 *       %1 = const {value = 16} : i64
 *       %acc = const {value = 0.0} : f32[16, 16]
 *       %nothing = const {value = 0.0} : f16[16, 16]
 *       %up = add %Q, %0 : i64
 *       %n = div %up, %1 : i64
 *       %2 = const {value = 2} : i64
 *       %3 = add %n, %one : i64
 *       %4 = div %3, %2 : i64
 *       %5 = mul %4, %2 : i64
 *       grid %5 (%q: i64) {
 *         %6 = div %q, %2 : i64
 *         %7 = mul %6, %2 : i64
 *         %8 = sub %q, %7 : i64
 *         %9 = const {value = 32} : i64
 *         %10 = mul %6, %9 : i64
 *         %m = add %10, %8 : i64
 *         %11 = rem %m, %2 : i64
 *         %12 = eq %11, %zero : bool
 *         %13 = div %m, %2 : i64
 *         %14 = sub %W, %13 : i64
 *         %15 = min %14, %1 : i64
 *         %a = load_tile %x, %13, %one, %zero, %15, %zero, %one, %zero, %1 {access = [range, range]} : f16[16, 16]
 *         %16 = splat %12 : bool[16, 16]
 *         %v = select %16, %a, %nothing : f16[16, 16]
 *         %b = load_tile %w, %zero, %one, %zero, %1, %zero, %one, %zero, %1 {access = [range, range]} : f16[16, 16]
 *         %s = dot %v, %b, %acc : f32[16, 16]
 *         %left = sub %Q, %m : i64
 *         %hi = min %left, %9 : i64
 *         %17 = add %hi, %one : i64
 *         %18 = div %17, %2 : i64
 *         store_tile %y, %s, %m, %2, %zero, %18, %zero, %one, %zero, %1 {access = [range, range]}
 *         yield
 *       }
 *       return
 *     }
 * Run: --passes=remainders,canonicalise,cse,dce
 * Needs: inline, cse; bounds in the form that facts gives them. Keeps: tile form; each element of a result is computed as
 * before. Cost: linear for each axis of a grid. */
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "lowering/lines.h"

enum { MOST_DIVISOR = 8 };

/* ---- which axes ---- */

typedef struct Search {
    const TileJoin *join;
    int64_t divisor; /* 0: none is found */
    bool multiplies, rows; /* rows: a tensor's rows lie along the axis */
} Search;

static void look(TileOp *op, void *state) {
    Search *search = state;
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    search->multiplies |= op->id == TILE_OP_DOT && tile_joined_grows(search->join, &op->results[0], op->results[0].type->rank - 2u);
    if (op->id == TILE_OP_REM && tile_type_is_tile(op->results[0].type) && op->results[0].type->rank == 1) {
        const TileOp *by = tile_value_def(tile_op_operand(op, 1), TILE_OP_CONST);
        uint64_t divisor = by ? tile_op_get(by, TILE_ATTRIBUTE_VALUE)->bits : 0;
        bool fits = divisor >= 2 && divisor <= MOST_DIVISOR && op->results[0].type->scalar == TILE_I64;
        if (fits && tile_joined_grows(search->join, &op->results[0], 0) && !search->divisor) search->divisor = (int64_t)divisor;
    }
    if (op->id != TILE_OP_LOAD_TILE && op->id != TILE_OP_STORE_TILE) return;
    unsigned rank = tile_access_read(op, indices);
    search->rows |= rank && indices[rank - 1].kind == TILE_ACCESS_RANGE && tile_joined_part(search->join, indices[rank - 1].first) == TILE_JOIN_FIRST;
}

/* ---- every so manieth lane ---- */

typedef struct Dealing {
    TileJoin *join;
    int64_t divisor;
    TileValue *left; /* places from the program's first one on, of all that programs have */
    TILE_LIST(TileOp *) ops;
} Dealing;

static void collect(TileOp *op, void *state) {
    Dealing *d = state;
    tile_list_push(d->join->context->scratch, &d->ops, op);
}

/* So many lanes are before the bound. */
static TileValue *lanes_before(const Dealing *d, TileBuilder *b, TileValue *bound) {
    TileValue *more = tile_build_binary(b, TILE_OP_ADD, bound, tile_build_i64(b, d->divisor - 1));
    return tile_build_binary(b, TILE_OP_DIV, more, tile_build_i64(b, d->divisor));
}

static void deal_bound(const Dealing *d, TileOp *op, unsigned operand) {
    TileBuilder b = tile_builder_before(d->join->context->module, op);
    TileValue *bound = tile_op_operand(op, operand);
    if (tile_joined_part(d->join, bound) == TILE_JOIN_SAME) return; /* it excludes no lane, or all */
    tile_op_set_operand(op, operand, lanes_before(d, &b, bound));
}

static void deal_access(const Dealing *d, TileOp *op) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    unsigned rank = tile_access_read(op, indices);
    TileBuilder b = tile_builder_before(d->join->context->module, op);
    for (unsigned i = 0; i < rank; i++) {
        if (indices[i].kind != TILE_ACCESS_RANGE || tile_joined_part(d->join, indices[i].first) != TILE_JOIN_FIRST) continue;
        unsigned at = indices[i].operand;
        tile_op_set_operand(op, at + 1, tile_build_i64(&b, d->divisor));
        deal_bound(d, op, at + 2);
        if (tile_joined_part(d->join, indices[i].hi) == TILE_JOIN_SAME) {
            TileValue *all = tile_build_binary(&b, TILE_OP_MIN, d->left, tile_build_i64(&b, d->join->size * d->divisor));
            tile_op_set_operand(op, at + 3, lanes_before(d, &b, all));
        } else {
            deal_bound(d, op, at + 3);
        }
    }
}

static void deal_fill(const Dealing *d, TileOp *op) {
    const TileAttribute *axes = tile_op_get(op, TILE_ATTRIBUTE_AXES);
    unsigned count, first = tile_op_operands(op, TILE_OPERAND_BOUNDS, &count);
    for (unsigned i = 0; i < axes->count; i++) {
        if (!tile_joined_grows(d->join, &op->results[0], (unsigned)axes->integers[i])) continue;
        deal_bound(d, op, first + 2 * i);
        deal_bound(d, op, first + 2 * i + 1);
    }
}

static void deal_lanes(const Dealing *d, TileOp *op) {
    TileBuilder b = tile_builder_before(d->join->context->module, op);
    b.before = op->next;
    TileValue *lanes = &op->results[0], *by = tile_build_integer(&b, lanes->type, d->divisor);
    TileValue *apart = tile_op_result(tile_build_op(&b, TILE_OP_MUL, (TileValue *[]){lanes, by}, 2, NULL, 0, &lanes->type, 1), 0);
    for (TileUse *use = lanes->first_use, *next; use; use = next) {
        next = use->next;
        if (use->user != apart->op) tile_op_set_operand(use->user, use->index, apart);
    }
}

static void deal_op(const Dealing *d, TileOp *op) {
    if (op->id == TILE_OP_LOAD_TILE || op->id == TILE_OP_STORE_TILE) deal_access(d, op);
    if (op->id == TILE_OP_FILL) deal_fill(d, op);
    bool grows = op->id == TILE_OP_IOTA && tile_joined_grows(d->join, &op->results[0], (unsigned)tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0));
    if (grows) deal_lanes(d, op);
}

/* Program q takes places of the remainder of q by the divisor, of as many ranges as that is. */
static void deal_programs(Dealing *d, unsigned axis) {
    TileJoin *join = d->join;
    TileOp *grid = join->around;
    TileBuilder host = tile_builder_before(join->context->module, grid),
                b = tile_builder_before(join->context->module, grid->regions[0].first);
    TileValue *programs = tile_op_operand(grid, axis), *number = join->number, *divisor = tile_build_i64(&host, d->divisor);
    TileValue *places = tile_build_binary(&host, TILE_OP_MUL, programs, tile_build_i64(&host, join->size));
    tile_op_set_operand(grid, axis, tile_build_binary(&host, TILE_OP_MUL, lanes_before(d, &host, programs), divisor));
    TileValue *group = tile_build_binary(&b, TILE_OP_DIV, number, divisor),
              *rest = tile_build_binary(&b, TILE_OP_SUB, number, tile_build_binary(&b, TILE_OP_MUL, group, divisor)),
              *first = tile_build_binary(&b, TILE_OP_MUL, group, tile_build_i64(&b, join->size * d->divisor));
    first = tile_build_binary(&b, TILE_OP_ADD, first, rest);
    d->left = tile_build_binary(&b, TILE_OP_SUB, places, first);
    tile_map_set(&join->parts, first, (void *)(uintptr_t)TILE_JOIN_FIRST);
    for (TileUse *use = number->first_use, *next; use; use = next) {
        next = use->next;
        bool places_it = use->user->id == TILE_OP_MUL && tile_joined_part(join, &use->user->results[0]) == TILE_JOIN_FIRST;
        if (places_it) tile_value_replace(&use->user->results[0], first);
    }
}

static bool try_axis(TilePassContext *context, TileOp *grid, unsigned axis) {
    TileValue *number = grid->regions[0].arguments[axis];
    TileJoin join = {.context = context, .around = grid, .number = number, .size = tile_range_size(number)};
    if (!join.size || !tile_can_join(&join)) return false;
    Search search = {.join = &join};
    tile_block_walk(&grid->regions[0], look, &search);
    if (!search.divisor || !search.multiplies) return false;
    if (search.rows) {
        tile_pass_remark(context, grid, TILE_DECISION_NOT_BY_REMAINDER, "the grid", "%s", "rows of a tensor lie along the axis");
        return false;
    }
    tile_pass_remark(context, grid, TILE_DECISION_BY_REMAINDER, "the grid", "of %lld, along its axis %u", (long long)search.divisor, axis);
    Dealing d = {.join = &join, .divisor = search.divisor};
    tile_block_walk(&grid->regions[0], collect, &d);
    tile_widen_joined(&join, d.divisor);
    deal_programs(&d, axis);
    for (size_t i = 0; i < d.ops.count; i++) deal_op(&d, d.ops.items[i]);
    tile_use_lines(&join);
    return true;
}

TileResult tile_pass_remainders(TilePassContext *context, TileFunc *func) {
    bool changed = false;
    if (func->kind != TILE_FUNC_KERNEL) return TILE_RESULT_UNCHANGED;
    for (TileOp *op = func->body.first; op; op = op->next)
        for (unsigned axis = 0; op->id == TILE_OP_GRID && axis < op->operand_count; axis++) changed |= try_axis(context, op, axis);
    return changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
