/* Loop versioning for quotients and remainders of an index, which rises, by a number that the loop does not change.
 *
 * Before:
 *     loop %lo, %hi {..} (%j: i64) {
 *       %x = sub %j, %shift : i64
 *       %r = rem %x, %n : i64
 *       .. an access at %r
 * After:
 *     if neither %x nor %n is far from 0 {
 *       if %n is not small {
 *         while %lo (%i) is less than %hi {
 *           %first = rem %i - %shift, %n : i64
 *           %end = min %hi, %i + %n - %first : i64
 *           loop %i, %end {..} (%j: i64) {
 *             %r = add %j, %first - %i : i64
 *             ..
 *           }
 *           the next one begins at %end
 *         }
 *       } {
 *         the loop with %r = %x - floor(f64(%x) / f64(%n)) * %n
 *       }
 *     } {
 *       the original loop, not in vectors
 *     }
 * Within an inner loop the remainder rises by one in each iteration, so accesses at it are full vectors, and it is
 * divided once instead of for each element; quotients are the same throughout. Several dividends of one divisor, such as
 * those of a window on a ring, rise together, until the first of their quotients is another one. Machines divide vectors of f64, but no
 * vectors of integers: below 2**51, the floor of a quotient that is rounded to f64 is that of the exact one, since that is
 * either an integer or further from the next one than an error of rounding. */
#include "cpu/vectorise.h"
#include "lang/ir/operands.h"

enum { LEAST_DIVISOR = 64, LARGEST_STEP = 8, FEW_ITERATIONS = 8, MOST_WRAPS = 16 };

/* An i64 added to FLOAT_BITS, as the bits of a f64, is the number plus 1.5 * 2**52, exactly if it is below 2**51. */
#define FLOAT_BITS INT64_C(0x4338000000000000)
#define FLOAT_OFFSET 0x1.8p52
#define FAR INT64_C(0x0007000000000000)

typedef struct Wrap {
    TileOp *op;   /* a remainder or quotient of an index of the loop, the first with its dividend */
    int64_t step; /* by which the dividend rises in each iteration */
} Wrap;

typedef struct Wraps {
    TilePassContext *context;
    TileOp *loop;
    TileValue *divisor; /* of all, not defined in the loop */
    Wrap wraps[MOST_WRAPS];
    unsigned count;
} Wraps;

static bool divides(const TileOp *op) {
    return (op->id == TILE_OP_REM || op->id == TILE_OP_DIV) && op->results[0].type->scalar == TILE_I64;
}

static bool has_dividend(const Wraps *x, const TileValue *dividend) {
    for (unsigned i = 0; i < x->count; i++)
        if (tile_op_operand(x->wraps[i].op, 0) == dividend) return true;
    return false;
}

static bool find_wraps(Wraps *x) {
    TileStrides strides;
    tile_strides_init(&strides, x->context, x->loop);
    for (TileOp *op = x->loop->regions[0].first; op && x->count < MOST_WRAPS; op = op->next) {
        int64_t known;
        if (!divides(op) || has_dividend(x, tile_op_operand(op, 0))) continue;
        TileSlope slope = tile_stride_of(&strides, tile_op_operand(op, 0));
        TileValue *divisor = tile_op_operand(op, 1);
        if (slope.kind != TILE_SLOPE_AFFINE || slope.factor || slope.step < 1 || slope.step > LARGEST_STEP) continue;
        if (!tile_value_outside(divisor, x->loop) || (x->divisor && divisor != x->divisor)) continue;
        if (tile_value_integer(divisor, &known) && known < LEAST_DIVISOR) continue;
        x->divisor = divisor;
        x->wraps[x->count++] = (Wrap){op, slope.step};
    }
    return x->count;
}

TileValue *tile_loop_value_at(TilePassContext *context, const TileOp *loop, TileBuilder *b, TileValue *value,
                              TileValue *index) {
    TileMap map;
    tile_map_init(&map, context->scratch);
    tile_map_set(&map, loop->regions[0].arguments[0], index);
    return tile_build_again(b, &map, value, loop);
}

static TileValue *dividend_at(const Wraps *x, const Wrap *wrap, TileBuilder *b, TileValue *index) {
    return tile_loop_value_at(x->context, x->loop, b, tile_op_operand(wrap->op, 0), index);
}

static TileValue *binary(TileBuilder *b, TileOpId id, TileValue *x, TileValue *y) { return tile_build_binary(b, id, x, y); }

/* Is the divisor positive, and are it and the dividends in all iterations not far from 0? The number of iterations is. */
static TileValue *build_range_test(const Wraps *x, TileBuilder *b) {
    TileValue *far = tile_build_i64(b, FAR), *positive = binary(b, TILE_OP_GT, x->divisor, tile_build_i64(b, 0));
    TileValue *near = binary(b, TILE_OP_AND, positive, binary(b, TILE_OP_LT, x->divisor, far));
    for (unsigned i = 0; i < x->count; i++) {
        TileValue *first = dividend_at(x, &x->wraps[i], b, tile_op_operand(x->loop, 0));
        TileValue *low = binary(b, TILE_OP_GE, first, tile_build_unary(b, TILE_OP_NEG, far));
        near = binary(b, TILE_OP_AND, near, binary(b, TILE_OP_AND, low, binary(b, TILE_OP_LT, first, far)));
    }
    return near;
}

/* The accesses whose masks became true have none. */
static void drop_mask(TileOp *op, void *state) {
    (void)state;
    if ((op->id != TILE_OP_LOAD && op->id != TILE_OP_STORE) || !tile_op_has_part(op, TILE_PARTS_MASK)) return;
    if (!tile_value_is_integer(tile_op_named(op, TILE_OPERAND_MASK), 1)) return;
    unsigned first = op->id == TILE_OP_LOAD ? 1 : 2;
    while (op->operand_count > first) tile_op_remove_operand(op, first);
    tile_op_clear(op, TILE_ATTRIBUTE_PARTS);
}

/* Replaces comparisons by which lo <= value < hi. */
static void fold_bounds(TileValue *value, const TileValue *lo, const TileValue *hi, TileValue *yes) {
    TileUse *uses[16];
    unsigned count = 0;
    for (TileUse *use = value->first_use; use && count < 16; use = use->next)
        if (use->index == 0 && (use->user->id == TILE_OP_GE || use->user->id == TILE_OP_LT)) uses[count++] = use;
    for (unsigned i = 0; i < count; i++) {
        TileOp *op = uses[i]->user;
        if (tile_value_is_same(tile_op_operand(op, 1), op->id == TILE_OP_GE ? lo : hi)) tile_value_set_true(&op->results[0], yes);
    }
}

void tile_loop_drop_masks(TilePassContext *context, TileOp *loop) {
    TileBuilder b = tile_builder_before(context->module, loop);
    TileValue *yes = tile_build_bool(&b, true), *index = loop->regions[0].arguments[0];
    fold_bounds(index, tile_op_operand(loop, 0), tile_op_operand(loop, 1), yes);
    tile_block_walk(&loop->regions[0], drop_mask, NULL);
}

static TileOp *copy_loop(const Wraps *x, TileBuilder *b, TileMap *map) {
    tile_map_init(map, x->context->scratch);
    TileOp *copy = tile_op_clone(x->context->module, x->loop, map);
    tile_builder_insert(b, copy);
    return copy;
}

/* Replaces the copies of the remainder and the quotient in a copy of the loop. */
static void replace_divisions(const Wraps *x, const Wrap *wrap, TileMap *map, TileValue *rest, TileValue *quotient) {
    for (TileOp *op = wrap->op; op; op = op->next) {
        if (!divides(op) || tile_op_operand(op, 1) != x->divisor) continue;
        if (tile_op_operand(op, 0) != tile_op_operand(wrap->op, 0)) continue;
        TileValue *copy = tile_map_get(map, &op->results[0]);
        tile_value_replace(copy, op->id == TILE_OP_REM ? rest : quotient);
        tile_op_erase(copy->op);
    }
}

/* What a dividend's remainder is at an index of a rise that begins at %i: index * step + shift. */
typedef struct Rise {
    TileValue *quotient, *shift;
} Rise;

/* *end becomes where the quotient is another one, if that is before it. */
static Rise begin_rise(const Wraps *x, const Wrap *wrap, TileBuilder *b, TileValue *i, TileValue **end) {
    TileValue *step = tile_build_i64(b, wrap->step), *dividend = dividend_at(x, wrap, b, i);
    TileValue *quotient = binary(b, TILE_OP_DIV, dividend, x->divisor);
    TileValue *first = binary(b, TILE_OP_SUB, dividend, binary(b, TILE_OP_MUL, quotient, x->divisor));
    TileValue *count = binary(b, TILE_OP_SUB, x->divisor, first);
    if (wrap->step > 1) count = binary(b, TILE_OP_DIV, binary(b, TILE_OP_ADD, count, tile_build_i64(b, wrap->step - 1)), step);
    *end = binary(b, TILE_OP_MIN, *end, binary(b, TILE_OP_ADD, i, count));
    return (Rise){quotient, binary(b, TILE_OP_SUB, first, wrap->step > 1 ? binary(b, TILE_OP_MUL, i, step) : i)};
}

/* The loop over one rise of all remainders, from %i on; *end: where the first of them ends. */
static TileOp *build_rise(const Wraps *x, TileBuilder *b, TileValue *i, TileValue **end) {
    Rise rises[MOST_WRAPS];
    *end = tile_op_operand(x->loop, 1);
    for (unsigned k = 0; k < x->count; k++) rises[k] = begin_rise(x, &x->wraps[k], b, i, end);
    TileValue *yes = tile_build_bool(b, true), *none = tile_build_i64(b, 0);
    TileMap map;
    TileOp *rise = copy_loop(x, b, &map);
    tile_op_set_operand(rise, 0, i);
    tile_op_set_operand(rise, 1, *end);
    TileBuilder inner = tile_builder_before(x->context->module, rise->regions[0].first);
    TileValue *index = rise->regions[0].arguments[0];
    for (unsigned k = 0; k < x->count; k++) {
        int64_t step = x->wraps[k].step;
        TileValue *steps = step > 1 ? binary(&inner, TILE_OP_MUL, index, tile_build_i64(&inner, step)) : index;
        TileValue *rest = binary(&inner, TILE_OP_ADD, steps, rises[k].shift);
        replace_divisions(x, &x->wraps[k], &map, rest, rises[k].quotient);
        fold_bounds(rest, none, x->divisor, yes);
    }
    tile_block_walk(&rise->regions[0], drop_mask, NULL);
    return rise;
}

/* The loop over all rises. */
static TileOp *build_rises(const Wraps *x, TileBuilder *b) {
    TileModule *module = x->context->module;
    TileValue *lo = tile_op_operand(x->loop, 0), *end;
    TileOp *rises = tile_build_while(b, &lo, 1);
    TileBuilder inner = tile_builder_at_end(module, &rises->regions[0]);
    inner.location = b->location;
    TileValue *at = rises->regions[0].arguments[0];
    TileValue *go_on[] = {binary(&inner, TILE_OP_LT, at, tile_op_operand(x->loop, 1)), at};
    tile_build_end(&inner, TILE_OP_CONDITION, go_on, 2);
    inner = tile_builder_at_end(module, &rises->regions[1]);
    inner.location = b->location;
    TileOp *rise = build_rise(x, &inner, rises->regions[1].arguments[0], &end);
    tile_build_end(&inner, TILE_OP_YIELD, &end, 1);
    return rise;
}

static TileValue *to_float(TileBuilder *b, TileValue *x) {
    TileValue *bits = binary(b, TILE_OP_ADD, x, tile_build_i64(b, FLOAT_BITS));
    TileValue *offset = tile_build_number(b, tile_type_scalar(b->module->context, TILE_F64), FLOAT_OFFSET);
    return binary(b, TILE_OP_SUB, tile_build_bitcast(b, bits, TILE_F64), offset);
}

static void divide_in_floats(const Wraps *x, const Wrap *wrap, TileMap *map, TileValue *divisor) {
    TileOp *first = ((TileValue *)tile_map_get(map, &wrap->op->results[0]))->op;
    TileBuilder inner = tile_builder_before(x->context->module, first);
    TileValue *dividend = tile_op_operand(first, 0);
    TileValue *quotient = tile_build_unary(&inner, TILE_OP_FLOOR, binary(&inner, TILE_OP_DIV, to_float(&inner, dividend), divisor));
    TileValue *offset = tile_build_number(&inner, quotient->type, FLOAT_OFFSET);
    quotient = tile_build_bitcast(&inner, binary(&inner, TILE_OP_ADD, quotient, offset), TILE_I64);
    quotient = binary(&inner, TILE_OP_SUB, quotient, tile_build_i64(&inner, FLOAT_BITS));
    TileValue *rest = binary(&inner, TILE_OP_SUB, dividend, binary(&inner, TILE_OP_MUL, quotient, x->divisor));
    replace_divisions(x, wrap, map, rest, quotient);
}

/* The loop with divisions of f64. */
static TileOp *build_in_floats(const Wraps *x, TileBuilder *b) {
    TileMap map;
    TileValue *divisor = to_float(b, x->divisor);
    TileOp *loop = copy_loop(x, b, &map);
    for (unsigned i = 0; i < x->count; i++) divide_in_floats(x, &x->wraps[i], &map, divisor);
    return loop;
}

static TileBuilder in_region(const Wraps *x, TileOp *branch, unsigned region) {
    TileBuilder b = tile_builder_at_end(x->context->module, &branch->regions[region]);
    b.location = x->loop->location;
    return b;
}

bool tile_vectorise_split_wraps(TilePassContext *context, TileOp *loop, TileOp **versions) {
    Wraps x = {.context = context, .loop = loop};
    bool parallel = tile_loop_kind(loop) == TILE_LOOP_KIND_PARALLEL && !loop->result_count;
    if (!parallel || tile_loop_extent(loop) < FEW_ITERATIONS || !find_wraps(&x)) return false;
    TileBuilder b = tile_builder_before(context->module, loop);
    TileOp *outer = tile_build_if(&b, build_range_test(&x, &b), NULL, 0);
    b = in_region(&x, outer, 0);
    int64_t step = 1;
    for (unsigned i = 0; i < x.count; i++) step = x.wraps[i].step > step ? x.wraps[i].step : step;
    TileValue *least = tile_build_i64(&b, LEAST_DIVISOR * step);
    TileOp *branch = tile_build_if(&b, binary(&b, TILE_OP_GE, x.divisor, least), NULL, 0);
    tile_build_end(&b, TILE_OP_YIELD, NULL, 0);
    b = in_region(&x, branch, 0);
    versions[0] = build_rises(&x, &b);
    tile_build_end(&b, TILE_OP_YIELD, NULL, 0);
    b = in_region(&x, branch, 1);
    versions[1] = build_in_floats(&x, &b);
    tile_build_end(&b, TILE_OP_YIELD, NULL, 0);
    tile_op_detach(loop);
    tile_op_append(loop, &outer->regions[1]);
    b = in_region(&x, outer, 1);
    tile_build_end(&b, TILE_OP_YIELD, NULL, 0);
    return true;
}
