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
#include "lowering/nest.h"
#include "ptx/passes.h"
#include "ptx/pipeline/copies.h"
#include "ptx/pipeline/loop.h"

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
    if (op->id == TILE_OP_SELECT) return tile_op_named(op, i ? TILE_OPERAND_Y : TILE_OPERAND_X);
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

static bool is_counted(const TileOp *op) {
    int64_t step;
    return op->id == TILE_OP_FOR && tile_value_integer(tile_op_named(op, TILE_OPERAND_STEP), &step) && step > 0;
}

/* What a joined loop can say of its iterations: that programs share them. */
static bool has_attributes_of(const TileOp *loop, const TileOp *outermost) {
    int64_t part = tile_op_integer(outermost, TILE_ATTRIBUTE_PART, 0);
    return loop->attribute_count == (part != 0) && tile_op_integer(loop, TILE_ATTRIBUTE_PART, 0) == part;
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

static bool find_nest(TileOp *op, TileNest *nest) {
    nest->count = 0;
    for (TileOp *loop = op->id == TILE_OP_FOR && !tile_loop_is_of_programs(op) ? op : NULL; loop; loop = tile_nest_next(loop)) {
        bool joins = nest->count < TILE_MOST_NESTED && is_counted(loop) && has_attributes_of(loop, op) && has_fixed_bounds(loop, op);
        if (!joins) return false;
        nest->loops[nest->count++] = loop;
    }
    return nest->count > 1 && copies_ahead(nest->loops[nest->count - 1], false);
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
static bool passes_all(const TileOp *outer, const TileOp *inner) {
    const TileBlock *body = &outer->regions[0];
    unsigned k = 0;
    for (unsigned i = 0; i < outer->result_count; i++) {
        const TileValue *carried = body->arguments[1 + i];
        bool passed = k < inner->result_count && tile_loop_carried(inner, k) == carried && carried->first_use &&
                      !carried->first_use->next &&
                      tile_op_named_at(body->last, TILE_OPERAND_VALUES, i) == &inner->results[k] &&
                      inner->results[k].first_use && !inner->results[k].first_use->next;
        if (!passed && !induction(outer, i)) return false;
        k += passed;
    }
    return k && k == inner->result_count;
}

/* Are the loop's iterations a program's as a whole, or shared out as those of the outer one are? */
static bool goes_with(const TileOp *loop, const TileOp *outer) { return !loop->attribute_count || has_attributes_of(loop, outer); }

/* The loop that the outer one goes through, with all that it carries but for inductions, and nothing but scalars beside it; NULL: none. */
static TileOp *page_loop(const TileOp *outer) {
    const TileBlock *body = &outer->regions[0];
    TileOp *inner = NULL;
    for (TileOp *op = body->first; op != body->last; op = op->next) {
        if (is_counted(op) && goes_with(op, outer) && !inner) {
            inner = op;
            continue;
        }
        if (!is_scalar(op) && !is_choice(op)) return NULL;
    }
    return inner && passes_all(outer, inner) ? inner : NULL;
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

/* A loop over pages and the one over the tokens of each, which ends where a limit says that is known before both, or before. */
typedef struct Pages {
    TileNest nest;
    TileValue *limit; /* NULL: all bounds are known */
} Pages;

static bool find_pages(TileOp *op, Pages *pages) {
    *pages = (Pages){.nest = {.count = 2}};
    if (!is_counted(op) || tile_loop_is_of_programs(op) || !has_attributes_of(op, op)) return false;
    TileOp *inner = page_loop(op);
    if (!inner || !has_fixed_bounds(op, op) || page_loop(inner)) return false;
    pages->nest.loops[0] = op;
    pages->nest.loops[1] = inner;
    if (has_fixed_bounds(inner, op)) return !tile_op_get(op, TILE_ATTRIBUTE_PART) && copies_ahead(inner, false);
    if (!tile_value_outside(tile_op_operand(inner, 0), op) || !tile_value_outside(tile_op_named(inner, TILE_OPERAND_STEP), op))
        return false;
    pages->limit = limit_of(tile_op_operand(inner, 1), inner, op);
    return pages->limit && is_idle_behind(inner) && copies_ahead(inner, true);
}

/* ---- one loop ---- */

static TileValue *integer(TileBuilder *b, int64_t number) {
    return tile_build_integer(b, tile_type_scalar(b->module->context, TILE_I64), number);
}

static TileValue *trip_count(TileBuilder *b, const TileOp *loop, TileValue *end) {
    TileValue *length = tile_build_binary(b, TILE_OP_SUB, end, tile_op_operand(loop, 0)),
              *step = tile_op_named(loop, TILE_OPERAND_STEP);
    length = tile_build_binary(b, TILE_OP_MAX, length, integer(b, 0));
    if (tile_value_is_integer(step, 1)) return length;
    TileValue *more = tile_build_binary(b, TILE_OP_SUB, step, integer(b, 1));
    TileValue *of = tile_build_bitcast(b, tile_build_binary(b, TILE_OP_ADD, length, more), TILE_U64);
    return tile_build_bitcast(b, tile_build_binary(b, TILE_OP_DIV, of, tile_build_bitcast(b, step, TILE_U64)), TILE_I64);
}

static void join(TilePassContext *context, TileNest *nest) {
    TileBuilder b = tile_builder_before(context->module, nest->loops[0]);
    b.location = nest->loops[nest->count - 1]->location;
    tile_pass_remark(context, nest->loops[nest->count - 1], TILE_DECISION_LOOPS_JOINED, "the loop", "%u of them", nest->count);
    for (unsigned i = 0; i < nest->count; i++) nest->trips[i] = trip_count(&b, nest->loops[i], tile_op_operand(nest->loops[i], 1));
    tile_nest_join(nest, context->module, context->scratch, &b);
}

/* ---- pages ---- */

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

/* Is what the outer loop carries what the inner one carries as its k-th? */
static bool is_passed(const TileNest *nest, unsigned i, unsigned k) {
    return k < nest->loops[1]->result_count &&
           tile_op_named_at(nest->loops[0]->regions[0].last, TILE_OPERAND_VALUES, i) == &nest->loops[1]->results[k];
}

static TileOp *build_joined(TilePassContext *context, TileBuilder *b, const Pages *pages) {
    const TileNest *nest = &pages->nest;
    TileOp *outer = nest->loops[0], *inner = nest->loops[1];
    TileValue **carried = TILE_NEW_ARRAY(context->scratch, TileValue *, inner->result_count);
    for (unsigned i = 0, k = 0; i < outer->result_count; i++)
        if (is_passed(nest, i, k)) carried[k++] = tile_loop_carried(outer, i);
    TileValue *all = tile_build_binary(b, TILE_OP_MUL, nest->trips[0], nest->trips[1]);
    TileOp *joined = tile_build_for(b, integer(b, 0), all, integer(b, 1), carried, inner->result_count);
    for (unsigned i = 0; i < outer->attribute_count; i++) tile_op_set(context->module, joined, outer->attributes[i]);
    return joined;
}

static void join_pages(TilePassContext *context, Pages *pages) {
    TileNest *nest = &pages->nest;
    TileOp *outer = nest->loops[0], *inner = nest->loops[1];
    TileBuilder b = tile_builder_before(context->module, outer);
    tile_pass_remark(context, inner, TILE_DECISION_LOOPS_JOINED, "the loop", "%u of them", nest->count);
    b.location = inner->location;
    choose_scalars(context, outer);
    TileValue *divisors[2];
    for (unsigned i = 0; i < 2; i++) {
        bool limited = pages->limit && i;
        nest->trips[i] = trip_count(&b, nest->loops[i], limited ? pages->limit : tile_op_operand(nest->loops[i], 1));
        divisors[i] = tile_build_binary(&b, TILE_OP_MAX, nest->trips[i], integer(&b, 1));
    }
    TileOp *joined = build_joined(context, &b, pages);
    TileBlock *body = &joined->regions[0];
    TileBuilder inside = tile_builder_at_end(context->module, body);
    inside.location = inner->location;
    if (pages->limit) keep_behind_end(context->module, &inner->regions[0], inner);
    for (unsigned i = 0; i < inner->result_count; i++)
        tile_value_replace(inner->regions[0].arguments[1 + i], body->arguments[1 + i]);
    TileValue *number = tile_nest_build_indices(&inside, nest, divisors, body->arguments[0]);
    for (unsigned i = 0, k = 0; i < outer->result_count; i++) {
        TileValue *result = &outer->results[i], *argument = outer->regions[0].arguments[1 + i];
        if (is_passed(nest, i, k)) {
            joined->results[k].name = result->name;
            tile_value_replace(result, &joined->results[k++]);
            continue;
        }
        TileBuilder behind = tile_builder_before(context->module, outer);
        if (result->first_use) tile_value_replace(result, value_behind(&behind, outer, i, nest->trips[0]));
        TileValue *value = value_behind(&inside, outer, i, number);
        value->name = argument->name;
        tile_value_replace(argument, value);
    }
    tile_nest_move_bodies(nest, body);
    tile_op_erase(outer);
}

static bool visit(TilePassContext *context, TileBlock *block) {
    bool changed = false;
    for (TileOp *op = block->first, *next; op; op = next) {
        TileNest nest;
        next = op->next;
        if (find_nest(op, &nest)) {
            join(context, &nest);
            changed = true;
            continue;
        }
        Pages pages;
        if (find_pages(op, &pages)) {
            join_pages(context, &pages);
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
