/* Purpose: sum squares of differences in the loop in front, which goes over the same elements for their mean: so they are read once. The mean is not known there; the mean of the loop's first
 * tile stands for it, as `shift`. With n numbers x, of which the differences from the shift sum up to s, and their squares to q, the squares of the differences from any number m sum up to
 * q - d (2 s - n d), where d = m - shift. The shift is the mean of some of the numbers: squares from it sum up to at most 2 (1 + n / tile) of what they are from the mean, so that no more is
 * cancelled than what a sum of n / tile numbers loses by being rounded (decision 187). The sum of x is s + n * shift then. Not where a later loop loads the same once more, as norms do.
 *
 * Before:
 *     func kernel tile @k(%x: tensor<f32, 3, in> {noalias}, %y: tensor<f32, 1, out> {noalias}) {
 *       %B = dim %x {axis = 0} : i64
 *       %C = dim %x {axis = 1} : i64
 *       %N = dim %x {axis = 2} : i64
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %64 = const {value = 64} : i64
 *       %none = const {value = 0.0} : f32
 *       %numbers = mul %B, %N : i64
 *       grid %C (%c: i64) {
 *         %sum = for %zero, %B, %one, %none : f32 (%b: i64, %sum.1: f32) {
 *           %sum.2 = for %zero, %N, %64, %sum.1 : f32 (%n: i64, %sum.3: f32) {
 *             %left = sub %N, %n : i64
 *             %hi = min %left, %64 : i64
 *             %v = load_tile %x, %b, %c, %n, %one, %zero, %hi {access = [index, index, range]} : f32[64]
 *             %w = fill %v, %none, %zero, %hi {axes = [0]} : f32[64]
 *             %s = reduce %w {axis = 0, kind = sum} : f32
 *             %sum.4 = add %sum.3, %s : f32
 *             yield %sum.4
 *           }
 *           yield %sum.2
 *         }
 *         %count = convert %numbers : f32
 *         %mean = div %sum, %count : f32
 *         %all = splat %mean : f32[64]
 *         %squares = for %zero, %B, %one, %none : f32 (%b.1: i64, %squares.1: f32) {
 *           %squares.2 = for %zero, %N, %64, %squares.1 : f32 (%n.1: i64, %squares.3: f32) {
 *             %left.1 = sub %N, %n.1 : i64
 *             %hi.1 = min %left.1, %64 : i64
 *             %v.1 = load_tile %x, %b.1, %c, %n.1, %one, %zero, %hi.1 {access = [index, index, range]} : f32[64]
 *             %d = sub %v.1, %all : f32[64]
 *             %dd = mul %d, %d : f32[64]
 *             %w.1 = fill %dd, %none, %zero, %hi.1 {axes = [0]} : f32[64]
 *             %s.1 = reduce %w.1 {axis = 0, kind = sum} : f32
 *             %squares.4 = add %squares.3, %s.1 : f32
 *             yield %squares.4
 *           }
 *           yield %squares.2
 *         }
 *         store_tile %y, %squares, %c {access = [index]}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func kernel tile @k(%x: tensor<f32, 3, in> {noalias}, %y: tensor<f32, 1, out> {noalias}) {
 *       %B = dim %x {axis = 0} : i64
 *       %C = dim %x {axis = 1} : i64
 *       %N = dim %x {axis = 2} : i64
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %0 = const {value = 64} : i64
 *       %none = const {value = 0.0} : f32
 *       %numbers = mul %B, %N : i64
 *       grid %C (%c: i64) {
 *         %1 = lt %zero, %B : bool
 *         %2 = lt %zero, %N : bool
 *         %3 = and %1, %2 : bool
 *         %4 = if %3 : f32 {
 *           %hi.1 = min %N, %0 : i64
 *           %v.1 = load_tile %x, %zero, %c, %zero, %one, %zero, %hi.1 {access = [index, index, range]} : f32[64]
 *           %5 = fill %v.1, %none, %zero, %hi.1 {axes = [0]} : f32[64]
 *           %6 = reduce %5 {axis = 0, kind = sum} : f32
 *           %7 = max %hi.1, %one : i64
 *           %8 = convert %7 : f32
 *           %9 = div %6, %8 : f32
 *           %10 = const {value = inf} : f32
 *           %11 = abs %9 : f32
 *           %12 = lt %11, %10 : bool
 *           %13 = select %12, %9, %none : f32
 *           yield %13
 *         } {
 *           yield %none
 *         }
 *         %14, %15, %16 = for %zero, %B, %one, %none, %none, %zero : f32, f32, i64 (%b: i64, %17: f32, %18: f32, %19: i64) {
 *           %20, %21, %22 = for %zero, %N, %0, %17, %18, %19 : f32, f32, i64 (%n: i64, %23: f32, %24: f32, %25: i64) {
 *             %left = sub %N, %n : i64
 *             %hi = min %left, %0 : i64
 *             %v = load_tile %x, %b, %c, %n, %one, %zero, %hi {access = [index, index, range]} : f32[64]
 *             %26 = splat %4 : f32[64]
 *             %27 = sub %v, %26 : f32[64]
 *             %28 = fill %27, %none, %zero, %hi {axes = [0]} : f32[64]
 *             %29 = reduce %28 {axis = 0, kind = sum} : f32
 *             %30 = mul %27, %27 : f32[64]
 *             %31 = fill %30, %none, %zero, %hi {axes = [0]} : f32[64]
 *             %32 = reduce %31 {axis = 0, kind = sum} : f32
 *             %33 = max %hi, %zero : i64
 *             %34 = add %23, %29 : f32
 *             %35 = add %24, %32 : f32
 *             %36 = add %25, %33 : i64
 *             yield %34, %35, %36
 *           }
 *           yield %20, %21, %22
 *         }
 *         %37 = convert %16 : f32
 *         %38 = fma %37, %4, %14 : f32
 *         %sum = add %38, %none : f32
 *         %count = convert %numbers : f32
 *         %mean = div %sum, %count : f32
 *         %39 = sub %mean, %4 : f32
 *         %40 = const {value = 2.0} : f32
 *         %41 = mul %37, %39 : f32
 *         %42 = neg %41 : f32
 *         %43 = fma %14, %40, %42 : f32
 *         %44 = neg %39 : f32
 *         %45 = fma %44, %43, %15 : f32
 *         %46 = gt %16, %zero : bool
 *         %47 = select %46, %45, %none : f32
 *         %squares = add %47, %none : f32
 *         store_tile %y, %squares, %c {access = [index]}
 *         yield
 *       }
 *       return
 *     }
 * Run: --passes=gpu-one-pass,canonicalise,cse,dce
 * Of loops in one another alone: a single one goes over a row, which stays in registers where it is short enough (gpu-keep-rows), or in a cluster's (gpu-share-rows).
 *
 * Needs: licm and cse, so that bounds of both loops are the same values. Keeps: tile form; all sums but for rounding. Cost: linear. */
#include <math.h>

#include "lang/ir/build.h"
#include "lang/ir/eval.h"
#include "lang/ir/operands.h"
#include "lowering/memory.h"
#include "ptx/grid/grid_parts.h"
#include "ptx/passes.h"

enum { MOST_SQUARES = 2, MOST_CHAIN = 2 * TILE_MAX_TILE_RANK, OF_SQUARE = 3 };

/* A value that the later loop carries: squares of v - mean, filled with 0 and summed up by a chain of ops. */
typedef struct Square {
    TileValue *v, *mean;
    TileOp *chain[MOST_CHAIN]; /* the innermost first */
    unsigned length;
    bool sums[TILE_MAX_TILE_RANK];            /* the axis of v is one of those that are summed up */
    TileValue *lo[TILE_MAX_TILE_RANK], *hi[TILE_MAX_TILE_RANK]; /* of its lanes that count; NULL: all do */
    TileValue *shift;                         /* as the loop's result is shaped */
    int sum;                                  /* the earlier loop carries the sum of v there; -1: nowhere */
} Square;

typedef struct Again {
    const TileValue *tensor;
    bool found;
} Again;

typedef struct OnePass {
    TilePassContext *context;
    TileModule *module;
    TileOp *grid;
    TileOp *earlier[GPU_MOST_NESTED], *later[GPU_MOST_NESTED]; /* the outermost first */
    unsigned depth, count;
    Square squares[MOST_SQUARES];
} OnePass;

/* ---- what the later loop carries ---- */

static bool is_sum(const TileOp *op) {
    return tile_op_integer(op, TILE_ATTRIBUTE_KIND, TILE_KIND_SUM) == TILE_KIND_SUM && !tile_op_integer(op, TILE_ATTRIBUTE_ORDERED, 0);
}

static bool is_zero(const TileValue *value) {
    uint64_t bits;
    return tile_value_bits(value, &bits) && bits == 0;
}

/* From what is added inward: sums and fills with 0, each for the next alone. NULL: something else is added. */
static TileOp *find_chain(Square *square, TileValue *added) {
    TileOp *chain[MOST_CHAIN];
    unsigned length = 0;
    for (TileOp *op = added->op; op; op = tile_op_operand(op, 0)->op) {
        if (op->id == TILE_OP_MUL) {
            for (unsigned i = 0; i < length; i++) square->chain[i] = chain[length - 1 - i];
            square->length = length;
            return tile_op_operand(op, 0) == tile_op_operand(op, 1) ? op : NULL;
        }
        bool is = op->id == TILE_OP_REDUCE ? is_sum(op) : op->id == TILE_OP_FILL && is_zero(tile_op_operand(op, 1));
        if (!is || length == MOST_CHAIN || !tile_value_has_one_use(&op->results[0])) return NULL;
        chain[length++] = op;
    }
    return NULL;
}

/* Which axes are summed up, and which lanes count; false: lanes that do not are left in the result. */
static bool find_axes(Square *square) {
    unsigned rank = square->v->type->rank, axis[TILE_MAX_TILE_RANK], left = rank;
    for (unsigned a = 0; a < rank; a++) axis[a] = a;
    for (unsigned i = 0; i < square->length; i++) {
        const TileOp *op = square->chain[i];
        if (op->id == TILE_OP_REDUCE) {
            unsigned at = (unsigned)tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0);
            square->sums[axis[at]] = true;
            for (left--; at < left; at++) axis[at] = axis[at + 1];
            continue;
        }
        const TileAttribute *axes = tile_op_get(op, TILE_ATTRIBUTE_AXES);
        for (unsigned k = 0; k < axes->count; k++) {
            unsigned a = axis[axes->integers[k]];
            if (square->hi[a]) return false;
            square->lo[a] = tile_fill_lo(op, k);
            square->hi[a] = tile_fill_hi(op, k);
        }
    }
    for (unsigned a = 0; a < rank; a++)
        if (square->hi[a] && !square->sums[a]) return false;
    return true;
}

/* Is it the same along all axes that are summed up? */
static bool is_one_for_all(const Square *square) {
    const TileOp *op = square->mean->op;
    if (!op || op->id == TILE_OP_SPLAT) return op != NULL;
    if (op->id != TILE_OP_BROADCAST) return false;
    const TileType *type = tile_op_operand(op, 0)->type;
    for (unsigned a = 0; a < type->rank; a++)
        if ((type->extent[a] == 1) != square->sums[a] && square->v->type->extent[a] != 1) return false;
    return true;
}

static bool find_square(OnePass *o, unsigned i, Square *square) {
    const TileOp *innermost = o->later[o->depth - 1], *top = o->later[0];
    TileValue *carried = innermost->regions[0].arguments[1 + i], *next = tile_op_named_at(innermost->regions[0].last, TILE_OPERAND_VALUES, i);
    *square = (Square){.v = NULL};
    if (!next->op || next->op->id != TILE_OP_ADD || next->op->block != &innermost->regions[0] || !tile_value_has_one_use(carried) || !tile_value_has_one_use(next)) return false;
    unsigned other = tile_op_operand(next->op, 0) == carried;
    if (tile_op_operand(next->op, !other) != carried || carried->type->scalar != TILE_F32) return false;
    const TileOp *product = find_chain(square, tile_op_operand(next->op, other));
    const TileOp *difference = product ? tile_value_def(tile_op_operand(product, 0), TILE_OP_SUB) : NULL;
    if (!difference || !tile_type_is_tile(difference->results[0].type)) return false;
    bool turned = tile_value_outside(tile_op_operand(difference, 0), top);
    square->v = tile_op_operand(difference, turned);
    square->mean = tile_op_operand(difference, !turned);
    return !tile_value_outside(square->v, top) && tile_value_outside(square->mean, top) && find_axes(square) && is_one_for_all(square);
}

/* ---- which loops ---- */

static bool is_plain(const TileOp *loop) { return loop->id == TILE_OP_FOR && loop->result_count && !loop->attribute_count && !tile_op_writes(loop); }

/* Are both loops of one nest each, through the same iterations? */
static bool are_alike(OnePass *o, TileOp *earlier, TileOp *later) {
    const TileOp *outer = earlier, *other = later;
    for (o->depth = 0; earlier && later && o->depth < GPU_MOST_NESTED; earlier = gpu_split_inner_loop(earlier), later = gpu_split_inner_loop(later)) {
        if (!is_plain(earlier) || !is_plain(later)) return false;
        for (TileOperand bound = TILE_OPERAND_LO; bound <= TILE_OPERAND_STEP; bound++) {
            TileValue *mine = tile_op_named(earlier, bound), *its = tile_op_named(later, bound);
            if (!tile_value_is_same(mine, its) || !tile_value_outside(mine, outer) || !tile_value_outside(its, other)) return false;
        }
        o->earlier[o->depth] = earlier;
        o->later[o->depth++] = later;
    }
    return !earlier && !later && o->depth > 1;
}

static bool is_in_front(const TileOp *op, const TileOp *end) {
    if (op->block != end->block) return true; /* it is around, or in front of the grid */
    for (const TileOp *at = op; at; at = at->next)
        if (at == end) return true;
    return false;
}

/* Is all that the value is computed of in the later loops, but for their iterations, there in front of the earlier ones? */
static bool is_known_before(const OnePass *o, const TileValue *value) {
    if (!value->op) return true; /* an iteration, or a program */
    if (tile_value_outside(value, o->later[0])) return is_in_front(value->op, o->earlier[0]);
    if (value->op->region_count || !(value->op->id == TILE_OP_LOAD_TILE || tile_op_is_pure(value->op))) return false;
    for (unsigned i = 0; i < value->op->operand_count; i++)
        if (!is_known_before(o, tile_op_operand(value->op, i))) return false;
    return true;
}

static bool can_move(const OnePass *o, const Square *square) {
    for (unsigned a = 0; a < square->v->type->rank; a++)
        if (square->hi[a] && (!is_known_before(o, square->lo[a]) || !is_known_before(o, square->hi[a]))) return false;
    return is_known_before(o, square->v);
}

/* ---- sums of the same numbers ---- */

static bool is_alike(const OnePass *o, const TileValue *mine, const TileValue *its);

/* Of operands from `first` on. */
static bool are_alike_ops(const OnePass *o, const TileOp *mine, const TileOp *its, unsigned first) {
    if (mine->id != its->id || mine->region_count || mine->operand_count != its->operand_count || mine->attribute_count != its->attribute_count) return false;
    for (unsigned i = 0; i < mine->attribute_count; i++)
        if (!tile_attribute_is_same(&mine->attributes[i], &its->attributes[i])) return false;
    for (unsigned i = first; i < mine->operand_count; i++)
        if (!is_alike(o, tile_op_operand(mine, i), tile_op_operand(its, i))) return false;
    return true;
}

/* Is it in an iteration of the earlier loops what the other is in that of the later ones? */
static bool is_alike(const OnePass *o, const TileValue *mine, const TileValue *its) {
    for (unsigned k = 0; k < o->depth; k++)
        if (its == o->later[k]->regions[0].arguments[0]) return mine == o->earlier[k]->regions[0].arguments[0];
    if (tile_value_is_same(mine, its)) return true;
    if (tile_value_outside(its, o->later[0]) || !mine->op || !its->op) return false;
    return mine->type == its->type && mine->index == its->index && are_alike_ops(o, mine->op, its->op, 0);
}

/* Does the earlier loop add to its i-th value what the chain makes of v? */
static bool is_sum_of(const OnePass *o, const Square *square, unsigned i) {
    const TileOp *innermost = o->earlier[o->depth - 1];
    const TileValue *carried = innermost->regions[0].arguments[1 + i], *next = tile_op_named_at(innermost->regions[0].last, TILE_OPERAND_VALUES, i);
    if (!next->op || next->op->id != TILE_OP_ADD || !tile_value_has_one_use(carried) || !tile_value_has_one_use(next)) return false;
    const TileValue *added = tile_op_operand(next->op, tile_op_operand(next->op, 0) == carried);
    for (unsigned k = square->length; k-- > 0; added = tile_op_operand(added->op, 0))
        if (!added->op || !are_alike_ops(o, added->op, square->chain[k], 1)) return false;
    return is_alike(o, added, square->v);
}

static void find_sum(OnePass *o, Square *square) {
    square->sum = -1;
    for (unsigned i = 0; i < o->earlier[0]->result_count && square->sum < 0; i++)
        if (is_sum_of(o, square, i)) square->sum = (int)i;
}

/* ---- whether it pays ---- */

static void look_for_loads(TileOp *op, void *data) {
    Again *again = data;
    again->found |= op->id == TILE_OP_LOAD_TILE && tile_op_operand(op, 0) == again->tensor;
}

/* Do later ops load the same tensor again? Then a program's elements have to be near in any case, and computing in one pass takes longer than the second one. Measured: norms of groups of bf16 1.1 to
 * 1.3 times as long. */
static bool is_loaded_behind(const OnePass *o, const TileValue *value) {
    if (!value->op || tile_value_outside(value, o->later[0])) return false;
    if (value->op->id == TILE_OP_LOAD_TILE) {
        Again again = {.tensor = tile_op_operand(value->op, 0)};
        for (TileOp *op = o->later[0]->next; op; op = op->next) {
            look_for_loads(op, &again);
            for (unsigned r = 0; r < op->region_count; r++) tile_block_walk(&op->regions[r], look_for_loads, &again);
        }
        return again.found;
    }
    for (unsigned i = 0; i < value->op->operand_count; i++)
        if (is_loaded_behind(o, tile_op_operand(value->op, i))) return true;
    return false;
}

static bool finds(OnePass *o, TileOp *earlier, TileOp *later) {
    for (const TileOp *op = earlier; op != later; op = op->next)
        if (tile_op_writes(op)) return false;
    if (!are_alike(o, earlier, later) || later->result_count > MOST_SQUARES || earlier->result_count + OF_SQUARE * later->result_count > TILE_MAX_FOLD) return false;
    o->count = later->result_count;
    for (unsigned i = 0; i < o->count; i++)
        if (!find_square(o, i, &o->squares[i]) || !can_move(o, &o->squares[i])) return false;
    for (unsigned i = 0; i < o->count; i++)
        if (is_loaded_behind(o, o->squares[i].v)) {
            tile_pass_remark(o->context, later, TILE_DECISION_TWO_PASSES, "the loop", "%s", "what is behind it loads that once more");
            return false;
        }
    for (unsigned i = 0; i < o->count; i++) find_sum(o, &o->squares[i]);
    return true;
}

/* ---- what is computed of an iteration ---- */

/* The chain once more, of another tile. */
static TileValue *build_chain(const OnePass *o, TileBuilder *b, const Square *square, TileMap *map, TileValue *value) {
    for (unsigned i = 0; i < square->length; i++) {
        TileOp *op = square->chain[i];
        if (op->id == TILE_OP_REDUCE) {
            value = tile_build_reduce(b, value, TILE_KIND_SUM, tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0));
            continue;
        }
        const TileAttribute *axes = tile_op_get(op, TILE_ATTRIBUTE_AXES);
        TileValue *bounds[2 * TILE_MAX_TILE_RANK];
        for (unsigned k = 0; k < axes->count; k++) {
            bounds[2 * k] = tile_build_again(b, map, tile_fill_lo(op, k), o->later[0]);
            bounds[2 * k + 1] = tile_build_again(b, map, tile_fill_hi(op, k), o->later[0]);
        }
        value = tile_build_fill(b, value, tile_build_number(b, tile_type_scalar(o->module->context, value->type->scalar), 0), axes->integers, bounds, axes->count);
    }
    return value;
}

/* How many lanes count for each element of the result. */
static TileValue *build_count(const OnePass *o, TileBuilder *b, const Square *square, TileMap *map) {
    TileValue *count = tile_build_i64(b, 1), *zero = tile_build_i64(b, 0);
    for (unsigned a = 0; a < square->v->type->rank; a++) {
        TileValue *lanes = tile_build_i64(b, square->v->type->extent[a]);
        if (!square->sums[a]) continue;
        if (square->hi[a]) {
            TileValue *hi = tile_build_again(b, map, square->hi[a], o->later[0]), *lo = tile_build_again(b, map, square->lo[a], o->later[0]);
            lanes = tile_build_binary(b, TILE_OP_SUB, tile_build_binary(b, TILE_OP_MIN, hi, lanes), tile_build_binary(b, TILE_OP_MAX, lo, zero));
            lanes = tile_build_binary(b, TILE_OP_MAX, lanes, zero);
        }
        count = tile_build_binary(b, TILE_OP_MUL, count, lanes);
    }
    return count;
}

/* A scalar for each element of the result. */
static TileValue *build_like(TileBuilder *b, TileValue *scalar, const TileType *type) { return tile_type_is_tile(type) ? tile_build_splat(b, scalar, type) : scalar; }

/* For each lane of v what there is for the result. */
static TileValue *build_for_lanes(TileBuilder *b, const Square *square, TileValue *value) {
    const TileType *type = square->v->type;
    int64_t extent[TILE_MAX_TILE_RANK];
    if (!tile_type_is_tile(value->type)) return tile_build_splat(b, value, type);
    for (unsigned a = 0; a < type->rank; a++) extent[a] = square->sums[a] ? 1 : type->extent[a];
    return tile_build_broadcast(b, tile_build_reshape(b, value, type->rank, extent), type->extent);
}

/* And the other way round: what is the same for all lanes that are summed up. */
static TileValue *build_of_lanes(TileBuilder *b, const TileValue *mean, const TileType *type) {
    TileValue *value = tile_op_operand(mean->op, 0);
    if (mean->op->id == TILE_OP_SPLAT) return build_like(b, value, type);
    return tile_build_reshape(b, value, tile_type_is_tile(type) ? type->rank : 0, type->extent);
}

/* ---- the shift ---- */

/* The mean of the first iteration's tile, or 0 where there is none, or none that is finite: sums of infinities are what they were then. */
static void build_shift(OnePass *o, Square *square, const TileType *type) {
    TileBuilder b = tile_builder_before(o->module, o->earlier[0]);
    TileValue *some = tile_build_bool(&b, true);
    TileMap map;
    tile_map_init(&map, o->context->scratch);
    for (unsigned k = 0; k < o->depth; k++) {
        TileValue *lo = tile_op_named(o->later[k], TILE_OPERAND_LO), *hi = tile_op_named(o->later[k], TILE_OPERAND_HI);
        some = tile_build_binary(&b, TILE_OP_AND, some, tile_build_binary(&b, TILE_OP_LT, lo, hi));
        tile_map_set(&map, o->later[k]->regions[0].arguments[0], lo);
    }
    TileOp *choice = tile_build_if(&b, some, &type, 1);
    TileBuilder there = tile_builder_at_end(o->module, &choice->regions[0]), none = tile_builder_at_end(o->module, &choice->regions[1]);
    there.location = none.location = b.location;
    TileValue *sum = build_chain(o, &there, square, &map, tile_build_again(&there, &map, square->v, o->later[0]));
    TileValue *count = tile_build_binary(&there, TILE_OP_MAX, build_count(o, &there, square, &map), tile_build_i64(&there, 1));
    TileValue *mean = tile_build_binary(&there, TILE_OP_DIV, sum, build_like(&there, tile_build_convert(&there, count, type->scalar), type));
    TileValue *zero = tile_build_number(&none, type, 0), *finite = tile_build_binary(&there, TILE_OP_LT, tile_build_unary(&there, TILE_OP_ABS, mean), tile_build_number(&there, type, INFINITY));
    mean = tile_build_ternary(&there, TILE_OP_SELECT, finite, mean, tile_build_number(&there, type, 0));
    tile_build_end(&there, TILE_OP_YIELD, &mean, 1);
    tile_build_end(&none, TILE_OP_YIELD, &zero, 1);
    square->shift = &choice->results[0];
}

/* ---- the earlier loop ---- */

/* What an iteration adds: differences, their squares, how many. */
static void add_iteration(OnePass *o, TileOp *yield, TileValue *const *carried) {
    TileBuilder b = tile_builder_before(o->module, yield);
    TileMap map;
    tile_map_init(&map, o->context->scratch);
    for (unsigned k = 0; k < o->depth; k++) tile_map_set(&map, o->later[k]->regions[0].arguments[0], o->earlier[k]->regions[0].arguments[0]);
    for (unsigned i = 0; i < o->count; i++) {
        const Square *square = &o->squares[i];
        b.location = square->chain[square->length - 1]->location;
        TileValue *d = tile_build_binary(&b, TILE_OP_SUB, tile_build_again(&b, &map, square->v, o->later[0]), build_for_lanes(&b, square, square->shift));
        TileValue *added[OF_SQUARE] = {build_chain(o, &b, square, &map, d), build_chain(o, &b, square, &map, tile_build_binary(&b, TILE_OP_MUL, d, d)), build_count(o, &b, square, &map)};
        for (unsigned k = 0; k < OF_SQUARE; k++)
            tile_op_add_operand(o->module, yield, tile_build_binary(&b, TILE_OP_ADD, carried[OF_SQUARE * i + k], added[k]));
        if (square->sum >= 0) tile_op_set_operand(yield, (unsigned)square->sum, yield->block->arguments[1 + square->sum]);
    }
}

/* The k-th loop of the earlier nest carries what squares need as well. */
static TileOp *widen(OnePass *o, unsigned k, TileValue *const *begin) {
    TileOp *loop = o->earlier[k];
    TileBlock *body = &loop->regions[0];
    TileBuilder b = tile_builder_before(o->module, loop);
    TileValue *carried[TILE_MAX_FOLD];
    unsigned count = loop->result_count, more = OF_SQUARE * o->count;
    for (unsigned i = 0; i < count + more; i++) carried[i] = i < count ? tile_loop_carried(loop, i) : begin[i - count];
    TileOp *wider = tile_build_for(&b, tile_op_named(loop, TILE_OPERAND_LO), tile_op_named(loop, TILE_OPERAND_HI), tile_op_named(loop, TILE_OPERAND_STEP), carried, count + more);
    TileBlock *to = &wider->regions[0];
    for (unsigned i = 0; i < body->argument_count; i++) tile_value_replace(body->arguments[i], to->arguments[i]);
    for (unsigned i = 0; i < count; i++) tile_value_replace(&loop->results[i], &wider->results[i]);
    tile_block_splice(to, body);
    tile_op_erase(loop);
    o->earlier[k] = wider;
    if (k + 1 == o->depth) {
        add_iteration(o, to->last, to->arguments + 1 + count);
        return wider;
    }
    TileOp *inner = widen(o, k + 1, to->arguments + 1 + count);
    for (unsigned i = 0; i < more; i++) tile_op_add_operand(o->module, to->last, &inner->results[inner->result_count - more + i]);
    return wider;
}

/* ---- the pass ---- */

/* The squares about the mean, where the later loop was. */
static void replace_square(OnePass *o, unsigned i, TileValue *const *sums) {
    const Square *square = &o->squares[i];
    TileOp *loop = o->later[0];
    TileValue *result = &loop->results[i], *some = sums[2], *first = sums[0];
    const TileType *type = result->type;
    TileBuilder b = tile_builder_before(o->module, loop);
    TileValue *d = tile_build_binary(&b, TILE_OP_SUB, build_of_lanes(&b, square->mean, type), square->shift);
    TileValue *count = build_like(&b, tile_build_convert(&b, some, type->scalar), type), *two = tile_build_number(&b, type, 2), *zero = tile_build_number(&b, type, 0);
    TileValue *less = tile_build_ternary(&b, TILE_OP_FMA, two, first, tile_build_unary(&b, TILE_OP_NEG, tile_build_binary(&b, TILE_OP_MUL, count, d)));
    TileValue *all = tile_build_ternary(&b, TILE_OP_FMA, tile_build_unary(&b, TILE_OP_NEG, d), less, sums[1]);
    TileValue *any = tile_build_binary(&b, TILE_OP_GT, some, tile_build_i64(&b, 0));
    if (tile_type_is_tile(type)) any = tile_build_splat(&b, any, tile_type_with_scalar(o->module->context, type, TILE_BOOL));
    tile_value_replace(result, tile_build_binary(&b, TILE_OP_ADD, tile_loop_carried(loop, i), tile_build_ternary(&b, TILE_OP_SELECT, any, all, zero)));
}

/* The sum of the numbers themselves, which the loop adds to nothing now. */
static void replace_sum(OnePass *o, const Square *square, TileOp *loop, TileValue *const *sums) {
    TileValue *result = &loop->results[square->sum], *begin = tile_loop_carried(loop, (unsigned)square->sum);
    TileBuilder b = tile_builder_before(o->module, loop->next);
    TileValue *count = build_like(&b, tile_build_convert(&b, sums[2], result->type->scalar), result->type);
    tile_value_replace(result, tile_build_binary(&b, TILE_OP_ADD, begin, tile_build_ternary(&b, TILE_OP_FMA, count, square->shift, sums[0])));
}

static void merge(OnePass *o) {
    TileValue *begin[TILE_MAX_FOLD];
    unsigned more = OF_SQUARE * o->count;
    for (unsigned i = 0; i < o->count; i++) {
        const TileType *type = o->later[0]->results[i].type;
        build_shift(o, &o->squares[i], type);
        TileBuilder b = tile_builder_before(o->module, o->earlier[0]);
        begin[OF_SQUARE * i] = begin[OF_SQUARE * i + 1] = tile_build_number(&b, type, 0);
        begin[OF_SQUARE * i + 2] = tile_build_i64(&b, 0);
    }
    TileOp *wider = widen(o, 0, begin);
    tile_pass_remark(o->context, o->later[0], TILE_DECISION_ONE_PASS, "the loop", "%s", "its squares are summed up about another number, and moved to the mean behind it");
    for (unsigned i = 0; i < o->count; i++) {
        TileValue *sums[OF_SQUARE];
        for (unsigned k = 0; k < OF_SQUARE; k++) sums[k] = &wider->results[wider->result_count - more + OF_SQUARE * i + k];
        if (o->squares[i].sum >= 0) replace_sum(o, &o->squares[i], wider, sums);
        replace_square(o, i, sums);
    }
    tile_op_erase(o->later[0]);
}

static bool visit(TilePassContext *context, TileOp *grid) {
    bool changed = false;
    for (TileOp *earlier = grid->regions[0].first; earlier; earlier = earlier->next)
        for (TileOp *later = earlier->id == TILE_OP_FOR ? earlier->next : NULL, *next; later; later = next) {
            OnePass o = {.context = context, .module = context->module, .grid = grid};
            next = later->next;
            if (later->id != TILE_OP_FOR || !finds(&o, earlier, later)) continue;
            merge(&o);
            earlier = o.earlier[0];
            changed = true;
        }
    return changed;
}

TileResult tile_pass_gpu_one_pass(TilePassContext *context, TileFunc *func) {
    bool changed = false;
    if (func->kind != TILE_FUNC_KERNEL) return TILE_RESULT_UNCHANGED;
    for (TileOp *op = func->body.first; op; op = op->next)
        if (op->id == TILE_OP_GRID) changed |= visit(context, op);
    return changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
