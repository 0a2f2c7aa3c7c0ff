/* Purpose: make one loop of loops that only go through the iterations of an inner one, whose operands of products are
 * copied ahead: over a window and over channels. Copies for the first channels of the next position then are in flight
 * during the products of this one, where each inner loop waited for its first copies; and what threads keep for
 * each of the loops is that of one.
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
 * Cost: linear; a division for each loop that is joined, in each iteration. */
#include "lang/ir/operands.h"
#include "ptx/passes.h"
#include "ptx/pipeline/copies.h"

enum { MOST_LOOPS = 4 };

/* Loops of which each goes through the next one and nothing else, the outermost first. */
typedef struct Nest {
    TileOp *loops[MOST_LOOPS];
    unsigned count;
} Nest;

/* ---- which loops ---- */

static bool is_counted(const TileOp *op) {
    int64_t step;
    return op->id == TILE_OP_FOR && !op->attribute_count && tile_value_integer(tile_op_named(op, TILE_OPERAND_STEP), &step) &&
           step > 0;
}

/* The loop that the outer one goes through, with all that it carries and nothing but scalars beside it; NULL: none. */
static TileOp *only_loop(const TileOp *outer) {
    const TileBlock *body = &outer->regions[0];
    const TileOp *yield = body->last;
    TileOp *inner = NULL;
    for (TileOp *op = body->first; op != yield; op = op->next) {
        if (is_counted(op) && !inner) {
            inner = op;
            continue;
        }
        if (!tile_op_is_pure(op) || op->region_count) return NULL;
        for (unsigned i = 0; i < op->result_count; i++)
            if (tile_type_is_tile(op->results[i].type)) return NULL;
    }
    if (!inner || inner->result_count != outer->result_count || !outer->result_count) return NULL;
    for (unsigned i = 0; i < outer->result_count; i++) {
        const TileValue *carried = body->arguments[1 + i];
        bool passed = tile_loop_carried(inner, i) == carried && carried->first_use && !carried->first_use->next &&
                      tile_op_named_at(yield, TILE_OPERAND_VALUES, i) == &inner->results[i] &&
                      inner->results[i].first_use && !inner->results[i].first_use->next;
        if (!passed) return NULL;
    }
    return inner;
}

/* Are products computed in the loop by all warps, from loads that are copied to shared memory? Warps that copy for others run across the
 * ends of loops. Loops that compute with the sums of fused multiply-adds take long for an iteration: there it pays less than the registers
 * that it takes (gradients of attention in f32 took 1.1 times as long). */
static bool copies_ahead(TileOp *loop) {
    bool copies = false, uses = gpu_loops_use_sums(&loop->regions[0]);
    for (const TileOp *op = loop->regions[0].first; op; op = op->next) {
        if (op->id == TILE_OP_FOR || (op->id == TILE_OP_DOT && (gpu_dot_is_wgmma(op) || (uses && !gpu_dot_is_mma(op))))) return false;
        copies |= op->id == TILE_OP_LOAD_TILE && gpu_load_is_copied(op);
    }
    return copies;
}

/* Are all bounds known before the nest? */
static bool has_fixed_bounds(const TileOp *loop, const TileOp *outermost) {
    return tile_value_outside(tile_op_operand(loop, 0), outermost) && tile_value_outside(tile_op_operand(loop, 1), outermost) &&
           tile_value_outside(tile_op_named(loop, TILE_OPERAND_STEP), outermost);
}

static bool find_nest(TileOp *op, Nest *nest) {
    nest->count = 0;
    for (TileOp *loop = is_counted(op) && !tile_loop_is_of_programs(op) ? op : NULL; loop; loop = only_loop(loop)) {
        if (nest->count == MOST_LOOPS || !has_fixed_bounds(loop, op)) return false;
        nest->loops[nest->count++] = loop;
    }
    return nest->count > 1 && copies_ahead(nest->loops[nest->count - 1]);
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

static TileValue *trip_count(TileBuilder *b, const TileOp *loop) {
    TileValue *length = tile_build_binary(b, TILE_OP_SUB, tile_op_operand(loop, 1), tile_op_operand(loop, 0)),
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
 * the loop has no iteration: its body may be computed ahead of the test for that. */
static void build_indices(TileBuilder *b, const Nest *nest, TileValue *const *divisors, TileValue *number) {
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

static void join(TilePassContext *context, Nest *nest) {
    TileOp *outermost = nest->loops[0], *innermost = nest->loops[nest->count - 1];
    TileBuilder b = tile_builder_before(context->module, outermost);
    tile_pass_remark(context, innermost, TILE_DECISION_LOOPS_JOINED, "the loop", "%u of them", nest->count);
    b.location = innermost->location;
    TileValue *divisors[MOST_LOOPS], *all = NULL, **carried = TILE_NEW_ARRAY(context->scratch, TileValue *, outermost->result_count);
    for (unsigned i = 0; i < nest->count; i++) {
        TileValue *count = trip_count(&b, nest->loops[i]);
        all = all ? tile_build_binary(&b, TILE_OP_MUL, all, count) : count;
        divisors[i] = tile_build_binary(&b, TILE_OP_MAX, count, integer(&b, 1));
    }
    for (unsigned i = 0; i < outermost->result_count; i++) carried[i] = tile_loop_carried(outermost, i);
    TileOp *joined = tile_build_for(&b, integer(&b, 0), all, integer(&b, 1), carried, outermost->result_count);
    TileBlock *body = &joined->regions[0];
    TileBuilder inside = tile_builder_at_end(context->module, body);
    inside.location = innermost->location;
    build_indices(&inside, nest, divisors, body->arguments[0]);
    for (unsigned i = 0; i < outermost->result_count; i++)
        tile_value_replace(innermost->regions[0].arguments[1 + i], body->arguments[1 + i]);
    move_bodies(nest, body);
    for (unsigned i = 0; i < outermost->result_count; i++) {
        joined->results[i].name = outermost->results[i].name;
        tile_value_replace(&outermost->results[i], &joined->results[i]);
    }
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
