/* Loop versioning for remainders of an index, which rise and begin again at 0.
 *
 * Before:
 *     loop %lo, %hi {..} (%j: i64) {
 *       %x = sub %j, %shift : i64
 *       %r = rem %x, %n : i64
 *       .. an access at %r
 * After:
 *     if %n is not small {
 *       while %lo (%i) is less than %hi {
 *         %first = rem %i - %shift, %n : i64
 *         %end = min %hi, %i + %n - %first : i64
 *         loop %i, %end {..} (%j: i64) {
 *           %r = add %j, %first - %i : i64
 *           ..
 *         }
 *         the next one begins at %end
 *       }
 *     } {
 *       the original loop
 *     }
 * Within an inner loop the remainder rises by one in each iteration, so accesses at it are full vectors, and it is
 * divided once instead of for each element; quotients are the same throughout. */
#include "cpu/vectorise.h"
#include "lang/ir/operands.h"

enum { LEAST_DIVISOR = 64, LARGEST_STEP = 8, FEW_ITERATIONS = 16 };

typedef struct Wrap {
    TilePassContext *context;
    TileOp *loop, *op;  /* a remainder or quotient of an index of the loop */
    TileValue *divisor; /* not defined in the loop */
    int64_t step;       /* by which the dividend rises in each iteration */
} Wrap;

static bool find_wrap(Wrap *wrap) {
    TileStrides strides;
    tile_strides_init(&strides, wrap->context, wrap->loop);
    for (TileOp *op = wrap->loop->regions[0].first; op; op = op->next) {
        int64_t known;
        if ((op->id != TILE_OP_REM && op->id != TILE_OP_DIV) || op->results[0].type->scalar != TILE_I64) continue;
        TileSlope slope = tile_stride_of(&strides, tile_op_operand(op, 0));
        wrap->divisor = tile_op_operand(op, 1);
        if (slope.kind != TILE_SLOPE_AFFINE || slope.factor || slope.step < 1 || slope.step > LARGEST_STEP) continue;
        if (!tile_value_outside(wrap->divisor, wrap->loop)) continue;
        if (tile_value_integer(wrap->divisor, &known) && known < LEAST_DIVISOR) continue;
        wrap->op = op;
        wrap->step = slope.step;
        return true;
    }
    return false;
}

/* The value of the loop's body in the iteration that `map` has for the loop's index. */
static TileValue *copy_value(const Wrap *wrap, TileBuilder *b, TileMap *map, TileValue *value) {
    TileValue *known = tile_map_get(map, value);
    if (known || tile_value_outside(value, wrap->loop)) return known ? known : value;
    for (unsigned i = 0; i < value->op->operand_count; i++) copy_value(wrap, b, map, tile_op_operand(value->op, i));
    tile_builder_insert(b, tile_op_clone(wrap->context->module, value->op, map));
    return tile_map_get(map, value);
}

static TileValue *dividend_at(const Wrap *wrap, TileBuilder *b, TileValue *index) {
    TileMap map;
    tile_map_init(&map, wrap->context->scratch);
    tile_map_set(&map, wrap->loop->regions[0].arguments[0], index);
    return copy_value(wrap, b, &map, tile_op_operand(wrap->op, 0));
}

static TileValue *binary(TileBuilder *b, TileOpId id, TileValue *x, TileValue *y) { return tile_build_binary(b, id, x, y); }

/* Is the divisor large enough, and is the dividend so far from the largest number that it does not wrap? */
static TileValue *build_test(const Wrap *wrap, TileBuilder *b) {
    TileValue *first = dividend_at(wrap, b, tile_op_operand(wrap->loop, 0)), *far = tile_build_i64(b, INT64_C(1) << 62);
    TileValue *large = binary(b, TILE_OP_GE, wrap->divisor, tile_build_i64(b, LEAST_DIVISOR * wrap->step));
    TileValue *low = binary(b, TILE_OP_GE, first, tile_build_unary(b, TILE_OP_NEG, far));
    return binary(b, TILE_OP_AND, large, binary(b, TILE_OP_AND, low, binary(b, TILE_OP_LT, first, far)));
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

/* Replaces a value that is certainly true, and what follows from that. */
static void replace_true(TileValue *value, TileValue *yes) {
    for (TileUse *use = value->first_use, *next; use; use = next) {
        next = use->next;
        TileOp *op = use->user;
        bool both = op->id == TILE_OP_AND && tile_op_operand(op, 0) != tile_op_operand(op, 1);
        if (both) tile_value_replace(&op->results[0], tile_op_operand(op, use->index == 0));
        if (op->id == TILE_OP_SELECT && use->index == 0) tile_value_replace(&op->results[0], tile_op_operand(op, 1));
    }
    tile_value_replace(value, yes);
}

/* The remainder is not less than 0 and less than the divisor. */
static void fold_bounds(const Wrap *wrap, TileValue *rest, TileValue *yes) {
    TileUse *uses[16];
    unsigned count = 0;
    for (TileUse *use = rest->first_use; use && count < 16; use = use->next)
        if (use->index == 0 && (use->user->id == TILE_OP_GE || use->user->id == TILE_OP_LT)) uses[count++] = use;
    for (unsigned i = 0; i < count; i++) {
        TileOp *op = uses[i]->user;
        TileValue *bound = tile_op_operand(op, 1);
        if (op->id == TILE_OP_GE ? tile_value_is_integer(bound, 0) : bound == wrap->divisor)
            replace_true(&op->results[0], yes);
    }
}

/* The loop over one rise of the remainder, from %i on; *end: where it ends. */
static TileOp *build_rise(const Wrap *wrap, TileBuilder *b, TileValue *i, TileValue **end) {
    TileModule *module = wrap->context->module;
    TileValue *step = tile_build_i64(b, wrap->step), *dividend = dividend_at(wrap, b, i);
    TileValue *quotient = binary(b, TILE_OP_DIV, dividend, wrap->divisor);
    TileValue *first = binary(b, TILE_OP_SUB, dividend, binary(b, TILE_OP_MUL, quotient, wrap->divisor));
    TileValue *count = binary(b, TILE_OP_SUB, wrap->divisor, first), *yes = tile_build_bool(b, true);
    if (wrap->step > 1) count = binary(b, TILE_OP_DIV, binary(b, TILE_OP_ADD, count, tile_build_i64(b, wrap->step - 1)), step);
    *end = binary(b, TILE_OP_MIN, tile_op_operand(wrap->loop, 1), binary(b, TILE_OP_ADD, i, count));
    TileValue *shift = binary(b, TILE_OP_SUB, first, wrap->step > 1 ? binary(b, TILE_OP_MUL, i, step) : i);
    TileMap map;
    tile_map_init(&map, wrap->context->scratch);
    TileOp *rise = tile_op_clone(module, wrap->loop, &map);
    tile_builder_insert(b, rise);
    tile_op_set_operand(rise, 0, i);
    tile_op_set_operand(rise, 1, *end);
    TileBuilder inner = tile_builder_before(module, rise->regions[0].first);
    TileValue *index = rise->regions[0].arguments[0];
    TileValue *rest = binary(&inner, TILE_OP_ADD, wrap->step > 1 ? binary(&inner, TILE_OP_MUL, index, step) : index, shift);
    for (TileOp *op = wrap->loop->regions[0].first; op; op = op->next) {
        bool same = (op->id == TILE_OP_REM || op->id == TILE_OP_DIV) && tile_op_operand(op, 1) == wrap->divisor &&
                    tile_op_operand(op, 0) == tile_op_operand(wrap->op, 0);
        if (!same) continue;
        TileValue *copy = tile_map_get(&map, &op->results[0]);
        tile_value_replace(copy, op->id == TILE_OP_REM ? rest : quotient);
        tile_op_erase(copy->op);
    }
    fold_bounds(wrap, rest, yes);
    tile_block_walk(&rise->regions[0], drop_mask, NULL);
    return rise;
}

TileOp *tile_vectorise_split_wraps(TilePassContext *context, TileOp *loop) {
    Wrap wrap = {.context = context, .loop = loop};
    TileModule *module = context->module;
    bool parallel = tile_loop_kind(loop) == TILE_LOOP_KIND_PARALLEL && !loop->result_count;
    if (!parallel || tile_loop_extent(loop) <= FEW_ITERATIONS || !find_wrap(&wrap)) return NULL;
    TileBuilder b = tile_builder_before(module, loop);
    TileOp *branch = tile_build_if(&b, build_test(&wrap, &b), NULL, 0);
    TileBuilder inner = tile_builder_at_end(module, &branch->regions[0]);
    inner.location = loop->location;
    TileValue *lo = tile_op_operand(loop, 0), *end;
    TileOp *rises = tile_build_while(&inner, &lo, 1);
    tile_build_end(&inner, TILE_OP_YIELD, NULL, 0);
    inner = tile_builder_at_end(module, &rises->regions[0]);
    inner.location = loop->location;
    TileValue *at = rises->regions[0].arguments[0];
    TileValue *go_on[] = {binary(&inner, TILE_OP_LT, at, tile_op_operand(loop, 1)), at};
    tile_build_end(&inner, TILE_OP_CONDITION, go_on, 2);
    inner = tile_builder_at_end(module, &rises->regions[1]);
    inner.location = loop->location;
    TileOp *rise = build_rise(&wrap, &inner, rises->regions[1].arguments[0], &end);
    tile_build_end(&inner, TILE_OP_YIELD, &end, 1);
    tile_op_detach(loop);
    tile_op_append(loop, &branch->regions[1]);
    inner = tile_builder_at_end(module, &branch->regions[1]);
    tile_build_end(&inner, TILE_OP_YIELD, NULL, 0);
    return rise;
}
