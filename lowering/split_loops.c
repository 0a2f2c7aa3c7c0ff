/* Purpose: split loops into a main loop, whose iterations process full blocks, and a remainder. In `for i = lo to hi
 * step B` ranges end at min(B, hi - i), which is B in all iterations but the last; in the main loop these bounds are
 * constants. Ranges that begin at max(0, c - i) also need a loop ahead, of the iterations before that is 0.
 *
 * Before:
 *     func kernel tile @k(%x: tensor<f32, 1, in>, %y: tensor<f32, 1, out>, %one: i64) {
 *       %n = dim %x {axis = 0} : i64
 *       %zero = const {value = 0} : i64
 *       %eight = const {value = 8} : i64
 *       grid %one (%p: i64) {
 *         for %zero, %n, %eight (%i: i64) {
 *           %left = sub %n, %i : i64
 *           %hi = min %left, %eight : i64
 *           %v = load_tile %x, %i, %one, %zero, %hi {access = [range]} : f32[8]
 *           store_tile %y, %v, %i, %one, %zero, %hi {access = [range]}
 *           yield
 *         }
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func kernel tile @k(%x: tensor<f32, 1, in>, %y: tensor<f32, 1, out>, %one: i64) {
 *       %n = dim %x {axis = 0} : i64
 *       %zero = const {value = 0} : i64
 *       %eight = const {value = 8} : i64
 *       grid %one (%p: i64) {
 *         %0 = const {value = 0} : i64
 *         %1 = max %n, %0 : i64
 *         %2 = div %1, %eight : i64
 *         %i = mul %2, %eight : i64
 *         %hi = const {value = 8} : i64
 *         for %zero, %i, %eight (%i.1: i64) {
 *           %left = sub %n, %i.1 : i64
 *           %hi.1 = min %left, %eight : i64
 *           %v = load_tile %x, %i.1, %one, %zero, %hi {access = [range]} : f32[8]
 *           store_tile %y, %v, %i.1, %one, %zero, %hi {access = [range]}
 *           yield
 *         }
 *         %3 = lt %i, %n : bool
 *         if %3 {
 *           %left.1 = sub %n, %i : i64
 *           %hi.2 = min %left.1, %eight : i64
 *           %v.1 = load_tile %x, %i, %one, %zero, %hi.2 {access = [range]} : f32[8]
 *           store_tile %y, %v.1, %i, %one, %zero, %hi.2 {access = [range]}
 *           yield
 *         } {
 *           yield
 *         }
 *         yield
 *       }
 *       return
 *     }
 * Needs: canonical form. Splits innermost loops of moderate size if settings.split_loops asks for it, or if tiles are
 * reshaped: a loop nest tests at its boundary which lanes are valid, but it cannot for lanes that a reshape moves to
 * other axes. Loops with a dot are not split: their whole k loop becomes one micro-kernel. (GPUs have masks, and do not
 * run this pass.) Keeps: the order of all iterations. Cost: up to three copies of a loop's body. */
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "lowering/memory.h"
#include "lowering/pass.h"

enum { MAX_BODY = 128, MAX_BOUNDS = 16 };

/* A bound of a range that depends on the induction variable i: `value` equals `full` while rest - i is at least
 * `full` (upper bounds), or once rest - i is at most `full` (lower ones). */
typedef struct Bound {
    TileValue *value;
    int64_t full;
    TileValue *falling; /* rest - i, in the body */
    TileValue *rest;    /* ahead of the loop; set when the loop is split */
} Bound;

typedef struct Split {
    TilePassContext *context;
    TileOp *loop;
    TileValue *index;
    int64_t step;
    TileBuilder builder;  /* ahead of the loop */
    TileIndexView inside; /* index sums in the loop */
    unsigned ops, upper_count, lower_count;
    Bound upper[MAX_BOUNDS], lower[MAX_BOUNDS];
    bool unfit, outer; /* has an inner loop or a dot; has an inner loop */
    bool wanted;       /* the settings ask for it, or a loop nest cannot mask its ranges */
} Split;

/* Is the value rest - i, where rest is loop-invariant? */
static bool falls(Split *split, const TileValue *value) {
    const TileSum *sum = tile_index_sum(&split->inside, value);
    bool found = false;
    for (uint32_t i = 0; i < sum->count; i++) {
        const TileProduct *product = &sum->products[i];
        for (uint32_t k = 0; k < product->degree; k++) {
            const TileValue *symbol = product->symbols[k]->value;
            if (symbol == split->index) {
                if (found || product->degree != 1 || product->factor != -1) return false;
                found = true;
            } else if (!symbol || !tile_value_outside(symbol, split->loop)) {
                return false;
            }
        }
    }
    return found;
}

/* Builds rest ahead of the loop. */
static TileValue *build_rest(Split *split, const TileValue *value) {
    const TileSum *sum = tile_index_sum(&split->inside, value);
    TileBuilder *b = &split->builder;
    TileValue *rest = NULL;
    for (uint32_t i = 0; i < sum->count; i++) {
        const TileProduct *product = &sum->products[i];
        if (product->symbols[0]->value == split->index) continue;
        TileValue *term = product->symbols[0]->value;
        for (uint32_t k = 1; k < product->degree; k++)
            term = tile_build_binary(b, TILE_OP_MUL, term, product->symbols[k]->value);
        bool minus = product->factor == -1;
        if (!minus && product->factor != 1)
            term = tile_build_binary(b, TILE_OP_MUL, term, tile_build_i64(b, product->factor));
        if (rest)
            rest = tile_build_binary(b, minus ? TILE_OP_SUB : TILE_OP_ADD, rest, term);
        else
            rest = minus ? tile_build_unary(b, TILE_OP_NEG, term) : term;
    }
    if (!rest) return tile_build_i64(b, sum->constant);
    return sum->constant ? tile_build_binary(b, TILE_OP_ADD, rest, tile_build_i64(b, sum->constant)) : rest;
}

static bool is_seen(const Bound *bounds, unsigned count, const TileValue *value) {
    for (unsigned i = 0; i < count; i++)
        if (bounds[i].value == value) return true;
    return false;
}

/* Returns e of max(e, constant) or min(e, constant), or NULL. */
static TileValue *match_constant(TileValue *value, TileOpId id, int64_t *constant) {
    TileOp *op = tile_value_def(value, id);
    return op && tile_value_integer(tile_op_operand(op, 1), constant) ? tile_op_operand(op, 0) : NULL;
}

/* min(e, lanes) or min(max(e, 0), lanes): `lanes` once e >= lanes. */
static void note_upper(Split *split, TileValue *hi, int64_t lanes) {
    int64_t least, zero;
    TileValue *e = match_constant(hi, TILE_OP_MIN, &least);
    if (!e || least != lanes || is_seen(split->upper, split->upper_count, hi)) return;
    TileValue *inner = match_constant(e, TILE_OP_MAX, &zero);
    if (inner && zero == 0) e = inner;
    if (!falls(split, e) || split->upper_count == MAX_BOUNDS) return;
    split->upper[split->upper_count++] = (Bound){hi, lanes, e, NULL};
}

/* max(e, 0) or min(max(e, 0), lanes): 0 once e <= 0. */
static void note_lower(Split *split, TileValue *lo, int64_t lanes) {
    int64_t least, zero;
    TileValue *e = match_constant(lo, TILE_OP_MIN, &least);
    e = match_constant(e && least == lanes ? e : lo, TILE_OP_MAX, &zero);
    if (!e || zero != 0 || is_seen(split->lower, split->lower_count, lo) || !falls(split, e)) return;
    if (split->lower_count < MAX_BOUNDS) split->lower[split->lower_count++] = (Bound){lo, 0, e, NULL};
}

static void note_bounds(Split *split, TileValue *lo, TileValue *hi, int64_t lanes) {
    if (!tile_value_outside(lo, split->loop)) note_lower(split, lo, lanes);
    if (!tile_value_outside(hi, split->loop)) note_upper(split, hi, lanes);
}

/* Has the result other axes than the operand, apart from axes of one element? */
static bool has_other_axes(const TileOp *reshape) {
    const TileType *from = tile_op_operand(reshape, 0)->type, *to = reshape->results[0].type;
    unsigned i = 0, k = 0;
    for (;;) {
        while (i < from->rank && from->extent[i] == 1) i++;
        while (k < to->rank && to->extent[k] == 1) k++;
        if (i == from->rank || k == to->rank) return i != from->rank || k != to->rank;
        if (from->extent[i++] != to->extent[k++]) return true;
    }
}

static void examine(TileOp *op, void *state) {
    Split *split = state;
    TileValue *lo, *hi;
    split->ops++;
    if (op->id == TILE_OP_FOR || op->id == TILE_OP_WHILE) split->unfit = split->outer = true;
    if (op->id == TILE_OP_DOT) split->unfit = true;
    if (op->id == TILE_OP_RESHAPE && has_other_axes(op)) split->wanted = true;
    if (tile_op_get(op, TILE_ATTRIBUTE_ACCESS)) {
        const TileType *type = op->id == TILE_OP_STORE_TILE ? tile_op_operand(op, 1)->type : op->results[0].type;
        for (unsigned axis = 0; axis < type->rank; axis++)
            if (tile_access_bounds(op, axis, &lo, &hi)) note_bounds(split, lo, hi, type->extent[axis]);
    } else if (op->id == TILE_OP_FILL) {
        const TileAttribute *axes = tile_op_get(op, TILE_ATTRIBUTE_AXES);
        for (unsigned i = 0; i < axes->count; i++)
            note_bounds(split, tile_fill_lo(op, i), tile_fill_hi(op, i),
                        op->results[0].type->extent[axes->integers[i]]);
    }
}

/* ---- the loops ---- */

static TileValue *binary(Split *split, TileOpId id, TileValue *x, TileValue *y) {
    return tile_build_binary(&split->builder, id, x, y);
}

/* The first value lo + k * step of the induction variable that is not below `limit`. */
static TileValue *build_first_from(Split *split, TileValue *limit) {
    TileValue *lo = tile_op_operand(split->loop, 0), *step = tile_op_named(split->loop, TILE_OPERAND_STEP);
    TileValue *above =
        binary(split, TILE_OP_MAX, binary(split, TILE_OP_SUB, limit, lo), tile_build_i64(&split->builder, 0));
    TileValue *rounded = binary(split, TILE_OP_ADD, above, tile_build_i64(&split->builder, split->step - 1));
    TileValue *trip_count = binary(split, TILE_OP_DIV, rounded, step);
    return binary(split, TILE_OP_ADD, lo, binary(split, TILE_OP_MUL, trip_count, step));
}

/* Has the remainder at most one iteration? The common case: all ranges end at the loop's own bound. */
static bool has_one_remainder_iteration(const Split *split) {
    for (unsigned i = 0; i < split->upper_count; i++)
        if (!tile_value_is_same(split->upper[i].rest, tile_op_operand(split->loop, 1)) ||
            split->upper[i].full != split->step)
            return false;
    return true;
}

/* The upper bound of the main loop. */
static TileValue *build_main_end(Split *split) {
    TileValue *lo = tile_op_operand(split->loop, 0), *hi = tile_op_operand(split->loop, 1);
    TileValue *step = tile_op_named(split->loop, TILE_OPERAND_STEP);
    if (!split->upper_count) return hi;
    if (has_one_remainder_iteration(split)) {
        TileValue *zero = tile_build_i64(&split->builder, 0);
        TileValue *length = tile_value_is_integer(lo, 0) ? hi : binary(split, TILE_OP_SUB, hi, lo);
        length = binary(split, TILE_OP_MAX, length, zero);
        TileValue *full = binary(split, TILE_OP_MUL, binary(split, TILE_OP_DIV, length, step), step);
        return tile_value_is_integer(lo, 0) ? full : binary(split, TILE_OP_ADD, full, lo);
    }
    TileValue *limit = hi;
    for (unsigned i = 0; i < split->upper_count; i++) {
        TileValue *below = tile_build_i64(&split->builder, 1 - split->upper[i].full);
        limit = binary(split, TILE_OP_MIN, limit, binary(split, TILE_OP_ADD, split->upper[i].rest, below));
    }
    return build_first_from(split, limit);
}

static TileValue *build_head_end(Split *split, TileValue *main_end) {
    TileValue *from = split->lower[0].rest;
    for (unsigned i = 1; i < split->lower_count; i++) from = binary(split, TILE_OP_MAX, from, split->lower[i].rest);
    return binary(split, TILE_OP_MIN, build_first_from(split, from), main_end);
}

/* A copy of the loop over [lo, hi), whose initial values are `carried`; these become its results. */
static TileOp *copy_loop(Split *split, TileValue *lo, TileValue *hi, TileValue **carried, TileMap *map) {
    tile_map_init(map, split->context->scratch);
    TileOp *copy = tile_op_clone(split->context->module, split->loop, map);
    tile_builder_insert(&split->builder, copy);
    tile_op_set_operand(copy, 0, lo);
    tile_op_set_operand(copy, 1, hi);
    for (unsigned i = 0; i < copy->result_count; i++) {
        tile_op_set_operand(copy, 3 + i, carried[i]);
        carried[i] = &copy->results[i];
    }
    return copy;
}

static void make_bounds_constant(Split *split, const Bound *bounds, unsigned count, TileOp *copy, const TileMap *map) {
    TileBuilder builder = tile_builder_before(split->context->module, copy);
    for (unsigned i = 0; i < count; i++)
        tile_value_replace(tile_map_get(map, bounds[i].value), tile_build_i64(&builder, bounds[i].full));
}

/* if main_end < hi { the body at main_end } else { the results of the main loop } */
static void finish_with_if(Split *split, TileValue *main_end, TileValue **carried) {
    TileOp *loop = split->loop;
    TileModule *module = split->context->module;
    const TileType **types = TILE_NEW_ARRAY(split->context->scratch, const TileType *, loop->result_count);
    for (unsigned i = 0; i < loop->result_count; i++) types[i] = loop->results[i].type;
    TileValue *some = binary(split, TILE_OP_LT, main_end, tile_op_operand(loop, 1));
    TileOp *tail = tile_build_if(&split->builder, some, types, loop->result_count);
    TileBlock *body = &loop->regions[0];
    tile_value_replace(body->arguments[0], main_end);
    for (unsigned i = 0; i < loop->result_count; i++) tile_value_replace(body->arguments[1 + i], carried[i]);
    tile_block_splice(&tail->regions[0], body);
    TileBuilder other = tile_builder_at_end(module, &tail->regions[1]);
    other.location = loop->location;
    tile_build_end(&other, TILE_OP_YIELD, carried, loop->result_count);
    for (unsigned i = 0; i < loop->result_count; i++) tile_value_replace(&loop->results[i], &tail->results[i]);
    tile_op_erase(loop);
}

static void finish(Split *split, TileValue *main_end, TileValue **carried) {
    TileOp *loop = split->loop;
    if (split->upper_count && has_one_remainder_iteration(split)) {
        finish_with_if(split, main_end, carried);
        return;
    }
    if (split->upper_count) {
        tile_op_set_operand(loop, 0, main_end);
        for (unsigned i = 0; i < loop->result_count; i++) tile_op_set_operand(loop, 3 + i, carried[i]);
        return;
    }
    for (unsigned i = 0; i < loop->result_count; i++) tile_value_replace(&loop->results[i], carried[i]);
    tile_op_erase(loop);
}

static void split_loop(Split *split) {
    TileOp *loop = split->loop;
    for (unsigned i = 0; i < split->upper_count; i++) split->upper[i].rest = build_rest(split, split->upper[i].falling);
    for (unsigned i = 0; i < split->lower_count; i++) split->lower[i].rest = build_rest(split, split->lower[i].falling);
    TileValue **carried = TILE_NEW_ARRAY(split->context->scratch, TileValue *, loop->result_count);
    for (unsigned i = 0; i < loop->result_count; i++) carried[i] = tile_loop_carried(loop, i);
    TileValue *start = tile_op_operand(loop, 0), *main_end = build_main_end(split);
    TileMap map;
    if (split->lower_count) {
        TileValue *head_end = build_head_end(split, main_end);
        copy_loop(split, start, head_end, carried, &map);
        start = head_end;
    }
    TileOp *main = copy_loop(split, start, main_end, carried, &map);
    make_bounds_constant(split, split->upper, split->upper_count, main, &map);
    make_bounds_constant(split, split->lower, split->lower_count, main, &map);
    finish(split, main_end, carried);
}

/* Remarks only on loops with ranges that a split would have made constant. */
static void remark_not_split(const Split *split) {
    bool served = split->wanted && split->upper_count + split->lower_count > 0;
    if (served && split->outer)
        tile_pass_remark(split->context, split->loop, TILE_DECISION_NOT_SPLIT, "the loop", "its body contains a loop");
    else if (served && !split->unfit && split->ops > MAX_BODY)
        tile_pass_remark(split->context, split->loop, TILE_DECISION_NOT_SPLIT, "the loop",
                         "its body has %u ops, and at most %u are copied", split->ops, (unsigned)MAX_BODY);
}

static bool consider(TilePassContext *context, TileOp *loop) {
    Split split = {.context = context,
                   .wanted = context->settings.split_loops,
                   .loop = loop,
                   .index = loop->regions[0].arguments[0],
                   .builder = tile_builder_before(context->module, loop)};
    if (!tile_value_integer(tile_op_named(loop, TILE_OPERAND_STEP), &split.step) || split.step < 1) return false;
    tile_index_view_init(&split.inside, tile_pass_indices(context, loop->block->func), loop, false);
    tile_block_walk(&loop->regions[0], examine, &split);
    if (split.unfit || !split.wanted || split.ops > MAX_BODY || split.upper_count + split.lower_count == 0) {
        remark_not_split(&split);
        return false;
    }
    split_loop(&split);
    return true;
}

static bool walk(TilePassContext *context, TileBlock *block) {
    bool changed = false;
    for (TileOp *op = block->first, *next; op; op = next) {
        next = op->next;
        for (unsigned r = 0; r < op->region_count; r++) changed |= walk(context, &op->regions[r]);
        if (op->id == TILE_OP_FOR) changed |= consider(context, op);
    }
    return changed;
}

TileResult tile_pass_split_loops(TilePassContext *context, TileFunc *func) {
    return walk(context, &func->body) ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
