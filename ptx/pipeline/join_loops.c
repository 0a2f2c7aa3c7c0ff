/* Purpose: make one loop of loops that only go through the iterations of an inner one, whose operands of products are
 * copied ahead: over a window and over channels. Copies for the first channels of the next position then are in flight
 * during the products of this one, where each inner loop waited for its first copies; and what threads keep for
 * each of the loops is that of one. Two loops are also joined where the inner one ends with what is left of the outer one's length, of
 * which each iteration takes so much and the last one less, or has no iteration under a condition: pages and the tokens of each. It then
 * has as many iterations each time, of which those behind its end change nothing; what is left is computed of the outer loop's number.
 *
 * Before:
 *     func phase tile @k.0(%a: tensor<f16, 3, in> {noalias}, %b: tensor<f16, 2, in> {noalias}, %c: tensor<f32, 2, out>
 *                          {noalias}, %begin: i64, %end: i64) threads = 64 {
 *       %S = dim %a {axis = 0} : i64
 *       %C = dim %a {axis = 2} : i64
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 16} : i64
 *       %acc = const {value = 0.0} : f32[16, 16]
 *       %sum = for %zero, %S, %one, %acc : f32[16, 16] (%j: i64, %acc.1: f32[16, 16]) {
 *         %w = add %begin, %j : i64
 *         %sum.1 = for %zero, %C, %n, %acc.1 : f32[16, 16] (%k: i64, %acc.2: f32[16, 16]) {
 *           %x = load_tile %a, %w, %zero, %one, %zero, %n, %k, %one, %zero, %n {access = [index, range, range]} : f16[16, 16]
 *           %y = load_tile %b, %k, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]} : f16[16, 16]
 *           %acc.3 = dot %x, %y, %acc.2 {instruction = mma} : f32[16, 16]
 *           yield %acc.3
 *         }
 *         yield %sum.1
 *       }
 *       store_tile %c, %sum, %zero, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]}
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%a: tensor<f16, 3, in> {noalias}, %b: tensor<f16, 2, in> {noalias}, %c: tensor<f32, 2, out>
 *                          {noalias}, %begin: i64, %end: i64) threads = 64 {
 *       %S = dim %a {axis = 0} : i64
 *       %C = dim %a {axis = 2} : i64
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 16} : i64
 *       %acc = const {value = 0.0} : f32[16, 16]
 *       %0 = max %S, %zero : i64
 *       %1 = max %C, %zero : i64
 *       %2 = const {value = 15} : i64
 *       %3 = add %1, %2 : i64
 *       %4 = bitcast %3 : u64
 *       %5 = const {value = 16} : u64
 *       %6 = div %4, %5 : u64
 *       %7 = bitcast %6 : i64
 *       %8 = mul %0, %7 : i64
 *       %9 = max %7, %one : i64
 *       %sum = for %zero, %8, %one, %acc : f32[16, 16] (%10: i64, %acc.1: f32[16, 16]) {
 *         %11 = bitcast %10 : u64
 *         %12 = bitcast %9 : u64
 *         %13 = div %11, %12 : u64
 *         %j = bitcast %13 : i64
 *         %14 = mul %j, %9 : i64
 *         %15 = sub %10, %14 : i64
 *         %k = mul %15, %n : i64
 *         %w = add %begin, %j : i64
 *         %x = load_tile %a, %w, %zero, %one, %zero, %n, %k, %one, %zero, %n {access = [index, range, range]} : f16[16, 16]
 *         %y = load_tile %b, %k, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]} : f16[16, 16]
 *         %acc.3 = dot %x, %y, %acc.1 {instruction = mma} : f32[16, 16]
 *         yield %acc.3
 *       }
 *       store_tile %c, %sum, %zero, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]}
 *       return
 *     }
 * Run: --passes=gpu-join-loops,canonicalise,cse,dce
 * Needs: gpu-threads and gpu-warpgroups, which choose the instruction. Keeps: tile form, and the order of all iterations.
 * Cost: linear; a division for each loop that is joined, in each iteration; a selection for each element that is carried where the inner
 * loop's end varies. */
#include "lang/ir/operands.h"
#include "ptx/passes.h"
#include "ptx/pipeline/copies.h"
#include "ptx/pipeline/loop.h"

enum { MOST_LOOPS = 4 };

/* Loops of which each goes through the next one and nothing else, the outermost first. */
typedef struct Nest {
    TileOp *loops[MOST_LOOPS];
    unsigned count;
    TileValue *limit; /* where the innermost's iterations end but for the last ones; NULL: its own bound is known before the nest */
} Nest;

/* ---- what the outermost loop carries beside ---- */

static bool is_same(const TileValue *x, const TileValue *y) {
    int64_t a, b;
    return x == y || (tile_value_integer(x, &a) && tile_value_integer(y, &b) && a == b);
}

/* Is the scalar that the loop carries the one before and this much more, or less? Gives the op, else NULL. */
static const TileOp *induction(const TileOp *loop, unsigned i) {
    const TileValue *carried = loop->regions[0].arguments[1 + i],
                    *next = tile_op_named_at(loop->regions[0].last, TILE_OPERAND_VALUES, i);
    const TileOp *op = next->op;
    if (!op || (op->id != TILE_OP_ADD && op->id != TILE_OP_SUB) || tile_type_is_tile(next->type)) return NULL;
    if (next->type->scalar != TILE_I64 || tile_op_operand(op, 0) != carried) return NULL;
    return tile_value_outside(tile_op_operand(op, 1), loop) ? op : NULL;
}

/* Is it a value that the loop carries, which each iteration makes less by this much? */
static bool falls_by(const TileValue *value, const TileValue *by, const TileOp *loop) {
    if (value->op || tile_value_block(value) != &loop->regions[0] || !value->index) return false;
    const TileOp *op = induction(loop, (unsigned)value->index - 1);
    int64_t less, number;
    if (!op) return false;
    if (op->id == TILE_OP_SUB) return is_same(tile_op_operand(op, 1), by);
    return tile_value_integer(tile_op_operand(op, 1), &less) && tile_value_integer(by, &number) && less == -number;
}

/* What the i-th region of a scalar choice gives. */
static TileValue *chosen(const TileOp *op, uint32_t result, unsigned i) {
    if (op->id == TILE_OP_SELECT) return tile_op_operand(op, 1 + i);
    return tile_op_named_at(op->regions[i].last, TILE_OPERAND_VALUES, result);
}

/* Where the inner loop's iterations end in all iterations of the outer one but for the last, and for those in which it has none: the
 * smaller one of this and of what is left, which falls by this. NULL: that is not how it ends. */
static TileValue *limit_of(const TileValue *end, const TileOp *inner, const TileOp *outer) {
    const TileOp *op = end->op;
    if (!op || tile_value_outside(end, outer)) return NULL;
    if (op->id == TILE_OP_SELECT || op->id == TILE_OP_IF) {
        for (unsigned i = 0; i < 2; i++)
            if (is_same(chosen(op, end->index, 1 - i), tile_op_operand(inner, 0)))
                return limit_of(chosen(op, end->index, i), inner, outer);
        return NULL;
    }
    for (unsigned i = 0; i < 2 && op->id == TILE_OP_MIN; i++)
        if (tile_value_outside(tile_op_operand(op, i), outer) && falls_by(tile_op_operand(op, 1 - i), tile_op_operand(op, i), outer))
            return tile_op_operand(op, i);
    return NULL;
}

/* ---- which loops ---- */

/* Of what passes say of a loop, only that programs share its iterations is as true of the joined one. */
static bool is_counted(const TileOp *op) {
    int64_t step;
    if (op->attribute_count > (tile_op_get(op, TILE_ATTRIBUTE_PART) ? 1u : 0u)) return false;
    return op->id == TILE_OP_FOR && tile_value_integer(tile_op_named(op, TILE_OPERAND_STEP), &step) &&
           step > 0;
}

/* A scalar that may be computed again for each iteration of the inner loop, also where nobody asks for it. */
static bool is_scalar(const TileOp *op) {
    for (unsigned i = 0; i < op->result_count; i++)
        if (tile_type_is_tile(op->results[i].type)) return false;
    if (gpu_loads_constant(op)) return true;
    return tile_op_is_pure(op) && !op->region_count;
}

/* A choice between scalars, both of which may be computed. */
static bool is_choice(const TileOp *op) {
    if (op->id != TILE_OP_IF || !op->result_count || op->attribute_count) return false;
    for (unsigned i = 0; i < 2; i++)
        for (const TileOp *of = op->regions[i].first; of != op->regions[i].last; of = of->next)
            if (!tile_op_is_pure(of) || !is_scalar(of) || of->id == TILE_OP_DIV || of->id == TILE_OP_REM) return false;
    return true;
}

/* Does the inner loop carry, in this order, all that the outer one does but for inductions? */
static bool passes_all(const TileOp *outer, const TileOp *inner, bool inductions) {
    const TileBlock *body = &outer->regions[0];
    unsigned k = 0;
    for (unsigned i = 0; i < outer->result_count; i++) {
        const TileValue *carried = body->arguments[1 + i];
        bool passed = k < inner->result_count && tile_loop_carried(inner, k) == carried && carried->first_use &&
                      !carried->first_use->next &&
                      tile_op_named_at(body->last, TILE_OPERAND_VALUES, i) == &inner->results[k] &&
                      inner->results[k].first_use && !inner->results[k].first_use->next;
        if (!passed && !(inductions && induction(outer, i))) return false;
        k += passed;
    }
    return k && k == inner->result_count;
}

/* The loop that the outer one goes through, with all that it carries and nothing but scalars beside it; NULL: none. */
static TileOp *only_loop(const TileOp *outer, bool outermost) {
    const TileBlock *body = &outer->regions[0];
    TileOp *inner = NULL;
    for (TileOp *op = body->first; op != body->last; op = op->next) {
        if (is_counted(op) && !inner) {
            inner = op;
            continue;
        }
        if (!is_scalar(op) && !(outermost && is_choice(op))) return NULL;
    }
    return inner && passes_all(outer, inner, outermost) ? inner : NULL;
}

/* Are products computed in the loop by all warps, from loads that are copied to shared memory? Warps that copy for others run across the
 * ends of loops. Loops that compute with the sums of fused multiply-adds take long for an iteration: there it pays less than the registers
 * that it takes (gradients of attention in f32 took 1.1 times as long). */
static bool copies_ahead(TileOp *loop, bool limited) {
    bool copies = false, uses = gpu_loops_use_sums(&loop->regions[0]);
    for (const TileOp *op = loop->regions[0].first; op; op = op->next) {
        if (op->id == TILE_OP_FOR || (op->id == TILE_OP_DOT && (gpu_dot_is_wgmma(op) || (uses && !limited && !gpu_dot_is_mma(op))))) return false;
        copies |= op->id == TILE_OP_LOAD_TILE && gpu_load_is_copied(op);
    }
    return copies;
}

/* Are all bounds known before the nest? */
static bool has_fixed_bounds(const TileOp *loop, const TileOp *outermost) {
    return tile_value_outside(tile_op_operand(loop, 0), outermost) && tile_value_outside(tile_op_operand(loop, 1), outermost) &&
           tile_value_outside(tile_op_named(loop, TILE_OPERAND_STEP), outermost);
}

/* Is it no more than the loop's end less its index? */
static bool ends_with(const TileValue *value, const TileOp *loop) {
    const TileOp *op = value->op;
    if (!op) return false;
    if (op->id == TILE_OP_MIN) return ends_with(tile_op_operand(op, 0), loop) || ends_with(tile_op_operand(op, 1), loop);
    return op->id == TILE_OP_SUB && tile_op_operand(op, 0) == tile_op_operand(loop, 1) &&
           tile_op_operand(op, 1) == loop->regions[0].arguments[0];
}

/* Would iterations behind the loop's end load nothing, and do nothing else that anybody could notice? */
static bool is_idle_behind(const TileOp *loop) {
    for (const TileOp *op = loop->regions[0].first; op; op = op->next) {
        bool ends = tile_op_is_pure(op);
        TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
        unsigned rank = op->id == TILE_OP_LOAD_TILE ? tile_access_read(op, indices) : 0;
        for (unsigned i = 0; i < rank; i++) ends |= indices[i].kind == TILE_ACCESS_RANGE && ends_with(indices[i].hi, loop);
        if (!ends) return false;
    }
    return true;
}

/* May the innermost loop end where another number says, which is known before the nest? */
static bool find_limit(Nest *nest) {
    const TileOp *inner = nest->loops[1], *outer = nest->loops[0];
    if (nest->count != 2 || !tile_value_outside(tile_op_operand(inner, 0), outer) ||
        !tile_value_outside(tile_op_named(inner, TILE_OPERAND_STEP), outer))
        return false;
    nest->limit = limit_of(tile_op_operand(inner, 1), inner, outer);
    return nest->limit && is_idle_behind(inner);
}

static bool find_nest(TileOp *op, Nest *nest) {
    *nest = (Nest){.count = 0};
    bool fixed = true;
    for (TileOp *loop = is_counted(op) && !tile_loop_is_of_programs(op) ? op : NULL; loop; loop = only_loop(loop, loop == op)) {
        if (nest->count == MOST_LOOPS || !fixed) return false;
        nest->loops[nest->count++] = loop;
        fixed = has_fixed_bounds(loop, op);
    }
    if (nest->count < 2 || (fixed ? tile_op_get(op, TILE_ATTRIBUTE_PART) != NULL : !find_limit(nest))) return false;
    return copies_ahead(nest->loops[nest->count - 1], nest->limit);
}

/* ---- one loop ---- */

static TileValue *integer(TileBuilder *b, int64_t number) {
    return tile_build_integer(b, tile_type_scalar(b->module->context, TILE_I64), number);
}

/* x / y of integers that are not negative. */
static TileValue *quotient(TileBuilder *b, TileValue *x, TileValue *y) {
    TileValue *of = tile_build_bitcast(b, x, TILE_U64), *by = tile_build_bitcast(b, y, TILE_U64);
    return tile_build_bitcast(b, tile_build_binary(b, TILE_OP_DIV, of, by), TILE_I64);
}

static TileValue *trip_count(TileBuilder *b, const TileOp *loop, TileValue *end) {
    TileValue *length = tile_build_binary(b, TILE_OP_SUB, end, tile_op_operand(loop, 0)),
              *step = tile_op_named(loop, TILE_OPERAND_STEP);
    length = tile_build_binary(b, TILE_OP_MAX, length, integer(b, 0));
    if (tile_value_is_integer(step, 1)) return length;
    TileValue *more = tile_build_binary(b, TILE_OP_SUB, step, integer(b, 1));
    return quotient(b, tile_build_binary(b, TILE_OP_ADD, length, more), step);
}

/* lo + number * step */
static TileValue *index_of(TileBuilder *b, const TileOp *loop, TileValue *number) {
    TileValue *lo = tile_op_operand(loop, 0), *step = tile_op_named(loop, TILE_OPERAND_STEP);
    TileValue *index = tile_value_is_integer(step, 1) ? number : tile_build_binary(b, TILE_OP_MUL, number, step);
    return tile_value_is_integer(lo, 0) ? index : tile_build_binary(b, TILE_OP_ADD, lo, index);
}

/* The loops' numbers are the digits of the joined loop's, the innermost the lowest. Divisors are at least 1, also where
 * the loop has no iteration: its body may be computed ahead of the test for that. Gives the outermost's. */
static TileValue *build_indices(TileBuilder *b, const Nest *nest, TileValue *const *divisors, TileValue *number) {
    for (unsigned i = nest->count; i-- > 0;) {
        TileOp *loop = nest->loops[i];
        TileValue *digit = number;
        if (i) {
            TileValue *rest = quotient(b, number, divisors[i]);
            digit = tile_build_binary(b, TILE_OP_SUB, number, tile_build_binary(b, TILE_OP_MUL, rest, divisors[i]));
            number = rest;
        }
        TileValue *index = index_of(b, loop, digit);
        index->name = index->op == digit->op ? index->name : loop->regions[0].arguments[0]->name;
        tile_value_replace(loop->regions[0].arguments[0], index);
    }
    return number;
}

/* The value of an induction behind so many iterations. */
static TileValue *value_behind(TileBuilder *b, const TileOp *loop, unsigned i, TileValue *iterations) {
    const TileOp *op = induction(loop, i);
    TileValue *by = tile_build_binary(b, TILE_OP_MUL, iterations, tile_op_operand(op, 1));
    return tile_build_binary(b, op->id, tile_loop_carried(loop, i), by);
}

/* Makes selections of the choices between scalars. */
static void choose_scalars(TilePassContext *context, TileOp *outermost) {
    for (TileOp *op = outermost->regions[0].first, *next; op; op = next) {
        next = op->next;
        if (op->id != TILE_OP_IF) continue;
        TileBuilder b = tile_builder_before(context->module, op);
        b.location = op->location;
        for (unsigned i = 0; i < 2; i++)
            for (TileOp *of = op->regions[i].first, *behind; of != op->regions[i].last; of = behind) {
                behind = of->next;
                tile_op_detach(of);
                tile_builder_insert(&b, of);
            }
        for (unsigned i = 0; i < op->result_count; i++) {
            TileValue *value = tile_build_ternary(&b, TILE_OP_SELECT, tile_op_operand(op, 0), chosen(op, i, 0), chosen(op, i, 1));
            tile_value_replace(&op->results[i], value);
        }
        tile_op_erase(op);
    }
}

/* Moves the ops of all bodies into one, in their order. */
static void move_bodies(const Nest *nest, TileBlock *body) {
    for (unsigned i = 0; i < nest->count; i++) {
        TileBlock *from = &nest->loops[i]->regions[0];
        for (TileOp *op = from->first, *next; op; op = next) {
            next = op->next;
            bool is_rest = i + 1 < nest->count && (op == nest->loops[i + 1] || !next);
            if (is_rest) continue;
            tile_op_detach(op);
            tile_op_append(op, body);
        }
    }
}

/* Iterations behind the innermost loop's end change nothing. */
static void keep_behind_end(TileModule *module, TileBlock *body, const TileOp *inner) {
    TileBuilder b = tile_builder_before(module, body->last);
    b.location = inner->location;
    TileValue *exists = tile_build_binary(&b, TILE_OP_LT, inner->regions[0].arguments[0], tile_op_operand(inner, 1));
    for (unsigned i = 0; i < body->last->operand_count; i++) {
        TileValue *next = tile_op_operand(body->last, i), *condition = exists;
        if (tile_type_is_tile(next->type))
            condition = tile_build_splat(&b, exists, tile_type_with_scalar(module->context, next->type, TILE_BOOL));
        tile_op_set_operand(body->last, i, tile_build_ternary(&b, TILE_OP_SELECT, condition, next, body->arguments[1 + i]));
    }
}

/* The joined loop, as yet without its body. */
typedef struct Joined {
    TileOp *loop;
    TileValue *iterations; /* of the outermost loop */
    TileValue *divisors[MOST_LOOPS];
} Joined;

static Joined build_joined(TilePassContext *context, TileBuilder *b, const Nest *nest) {
    TileOp *outermost = nest->loops[0], *innermost = nest->loops[nest->count - 1];
    TileValue *all = NULL, **carried = TILE_NEW_ARRAY(context->scratch, TileValue *, outermost->result_count);
    Joined joined = {NULL};
    unsigned count = 0;
    for (unsigned i = 0; i < nest->count; i++) {
        bool limited = nest->limit && i + 1 == nest->count;
        TileValue *trips = trip_count(b, nest->loops[i], limited ? nest->limit : tile_op_operand(nest->loops[i], 1));
        all = all ? tile_build_binary(b, TILE_OP_MUL, all, trips) : trips;
        joined.divisors[i] = tile_build_binary(b, TILE_OP_MAX, trips, integer(b, 1));
        if (!i) joined.iterations = trips;
    }
    for (unsigned i = 0; i < outermost->result_count && count < innermost->result_count; i++)
        if (tile_op_named_at(outermost->regions[0].last, TILE_OPERAND_VALUES, i) == &nest->loops[1]->results[count])
            carried[count++] = tile_loop_carried(outermost, i);
    joined.loop = tile_build_for(b, integer(b, 0), all, integer(b, 1), carried, count);
    for (unsigned i = 0; i < outermost->attribute_count; i++)
        tile_op_set(context->module, joined.loop, outermost->attributes[i]);
    return joined;
}

static void join(TilePassContext *context, Nest *nest) {
    TileOp *outermost = nest->loops[0], *innermost = nest->loops[nest->count - 1];
    TileBuilder b = tile_builder_before(context->module, outermost);
    tile_pass_remark(context, innermost, TILE_DECISION_LOOPS_JOINED, "the loop", "%u of them", nest->count);
    b.location = innermost->location;
    choose_scalars(context, outermost);
    Joined joined = build_joined(context, &b, nest);
    TileBlock *body = &joined.loop->regions[0];
    TileBuilder inside = tile_builder_at_end(context->module, body);
    inside.location = innermost->location;
    if (nest->limit) keep_behind_end(context->module, &innermost->regions[0], innermost);
    for (unsigned i = 0; i < innermost->result_count; i++)
        tile_value_replace(innermost->regions[0].arguments[1 + i], body->arguments[1 + i]);
    TileValue *number = build_indices(&inside, nest, joined.divisors, body->arguments[0]);
    for (unsigned i = 0, k = 0; i < outermost->result_count; i++) {
        TileValue *result = &outermost->results[i], *argument = outermost->regions[0].arguments[1 + i];
        if (k < innermost->result_count &&
            tile_op_named_at(outermost->regions[0].last, TILE_OPERAND_VALUES, i) == &nest->loops[1]->results[k]) {
            joined.loop->results[k].name = result->name;
            tile_value_replace(result, &joined.loop->results[k++]);
            continue;
        }
        TileBuilder behind = tile_builder_before(context->module, outermost);
        if (result->first_use) tile_value_replace(result, value_behind(&behind, outermost, i, joined.iterations));
        TileValue *value = value_behind(&inside, outermost, i, number);
        value->name = argument->name;
        tile_value_replace(argument, value);
    }
    move_bodies(nest, body);
    tile_op_erase(outermost);
}

static bool visit(TilePassContext *context, TileBlock *block) {
    bool changed = false;
    for (TileOp *op = block->first, *next; op; op = next) {
        Nest nest;
        next = op->next;
        if (find_nest(op, &nest)) {
            join(context, &nest);
            changed = true;
            continue;
        }
        for (unsigned i = 0; i < op->region_count; i++) changed |= visit(context, &op->regions[i]);
    }
    return changed;
}

TileResult tile_pass_gpu_join_loops(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE || !visit(context, &func->body)) return TILE_RESULT_UNCHANGED;
    return TILE_RESULT_CHANGED;
}
