/* Purpose: exclude that an induction variable overflows. `for` runs i = lo, lo + step, .. below hi in unbounded
 * integers; machine code adds the step in 64 bits and compares, which does not terminate if i wraps. Unless facts
 * exclude that, a loop counts from -1 to its trip count instead, or if that may exceed i64, tests in each iteration
 * whether another step fits.
 *
 * Before:
 *     func kernel tile @k(%y: tensor<f32, 1, out>, %lo: i64, %hi: i64, %f: f32) {
 *       %one = const {value = 1} : i64
 *       %four = const {value = 4} : i64
 *       grid %one (%p: i64) {
 *         for %lo, %hi, %four (%i: i64) {
 *           store_tile %y, %f, %i {access = [index]}
 *           yield
 *         }
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func kernel tile @k(%y: tensor<f32, 1, out>, %lo: i64, %hi: i64, %f: f32) {
 *       %one = const {value = 1} : i64
 *       %four = const {value = 4} : i64
 *       grid %one (%p: i64) {
 *         %0 = const {value = 1} : i64
 *         %1 = const {value = -1} : i64
 *         %2 = sub %hi, %lo : i64
 *         %3 = sub %2, %0 : i64
 *         %4 = bitcast %3 : u64
 *         %5 = bitcast %four : u64
 *         %6 = div %4, %5 : u64
 *         %7 = bitcast %6 : i64
 *         %8 = lt %lo, %hi : bool
 *         %9 = select %8, %7, %1 : i64
 *         for %1, %9, %0 (%i: i64) {
 *           %10 = add %i, %0 : i64
 *           %11 = mul %10, %four : i64
 *           %i.1 = add %lo, %11 : i64
 *           store_tile %y, %f, %i.1 {access = [index]}
 *           yield
 *         }
 *         yield
 *       }
 *       return
 *     }
 * Needs: nothing. Keeps: the iterations and their order. Cost: linear; a loop that counts has a division ahead of it
 * and a product in each iteration. Loops with bounds that are dimensions, literals or sums of few of these do not
 * change. */
#include "lang/ir/build.h"
#include "lang/index/index.h"
#include "lang/ir/operands.h"
#include "lowering/pass.h"

typedef struct Exact {
    TileOp *loop;
    TileValue *lo, *hi, *step;
    bool countable;
    TileBuilder builder; /* in front of the loop */
} Exact;

typedef struct Search {
    TilePassContext *context;
    TileIndices *facts;
    TILE_LIST(Exact) found;
} Search;

/* Software pipelining computes induction variables some iterations ahead. */
enum { ITERATIONS_AHEAD = 64 };

static bool may_overflow(TileIndices *facts, const Exact *exact) {
    if (tile_value_is_integer(exact->step, 1)) return false;
    TileIndexRange hi = tile_index_range(facts, exact->hi), step = tile_index_range(facts, exact->step);
    if ((__int128)hi.hi + (__int128)step.hi * ITERATIONS_AHEAD > INT64_MAX) return true;
    tile_index_use(facts, hi.because | step.because);
    return false;
}

/* Is the trip count certainly less than the number of integers in i64 from -1 on? */
static bool is_countable(TileIndices *facts, const Exact *exact) {
    TileIndexRange step = tile_index_range(facts, exact->step), span = tile_index_difference(facts, exact->hi, exact->lo);
    if (step.lo < 2 && span.hi == INT64_MAX) return false; /* nothing is known */
    tile_index_use(facts, step.lo < 2 ? span.because : step.because);
    return true;
}

static TileValue *binary(TileBuilder *b, TileOpId id, TileValue *x, TileValue *y) {
    return tile_build_binary(b, id, x, y);
}

/* The new induction variable runs from -1 up to the trip count less 1, exclusive: (hi - lo - 1) / step, which fits
 * where the trip count itself might not. A difference of two i64, the greater one first, fits into u64. */
static void count_iterations(Exact *exact) {
    TileBuilder *b = &exact->builder;
    TileOp *loop = exact->loop;
    TileBlock *body = &loop->regions[0];
    TileValue *one = tile_build_i64(b, 1), *before = tile_build_i64(b, -1);
    TileValue *span = binary(b, TILE_OP_SUB, binary(b, TILE_OP_SUB, exact->hi, exact->lo), one);
    TileValue *unsigned_span = tile_build_bitcast(b, span, TILE_U64);
    TileValue *steps = binary(b, TILE_OP_DIV, unsigned_span, tile_build_bitcast(b, exact->step, TILE_U64));
    steps = tile_build_bitcast(b, steps, TILE_I64);
    TileValue *some = binary(b, TILE_OP_LT, exact->lo, exact->hi);
    TileValue *end = tile_build_ternary(b, TILE_OP_SELECT, some, steps, before);
    TileBuilder inside = *b;
    inside.block = body;
    inside.before = body->first;
    TileValue *k = body->arguments[0], *number = binary(&inside, TILE_OP_ADD, k, one);
    TileOp *first_use = number->op;
    TileValue *index = binary(&inside, TILE_OP_MUL, number, exact->step);
    index = binary(&inside, TILE_OP_ADD, exact->lo, index);
    tile_value_replace(k, index);
    tile_op_set_operand(first_use, 0, k);
    tile_op_set_operand(loop, 0, before);
    tile_op_set_operand(loop, 1, end);
    tile_op_set_operand(loop, 2, one);
}

/* while more { body; more = hi - i > step; i = i + step }, where the difference is unsigned. */
static void test_each_iteration(TilePassContext *context, Exact *exact) {
    TileBuilder *b = &exact->builder;
    TileOp *loop = exact->loop;
    TileBlock *body = &loop->regions[0];
    unsigned carried = loop->result_count;
    TileArena *scratch = context->scratch;
    TileValue **first = TILE_NEW_ARRAY(scratch, TileValue *, carried + 2);
    TileValue **next = TILE_NEW_ARRAY(scratch, TileValue *, carried + 2);
    first[0] = binary(b, TILE_OP_LT, exact->lo, exact->hi);
    first[1] = exact->lo;
    for (unsigned i = 0; i < carried; i++) first[2 + i] = tile_loop_carried(loop, i);
    TileOp *made = tile_build_while(b, first, carried + 2);
    TileBlock *test = &made->regions[0], *iteration = &made->regions[1];
    TileBuilder inside = tile_builder_at_end(context->module, test);
    inside.location = loop->location;
    TileValue **passed = TILE_NEW_ARRAY(scratch, TileValue *, carried + 3);
    passed[0] = test->arguments[0];
    for (unsigned i = 0; i < carried + 2; i++) passed[1 + i] = test->arguments[i];
    tile_build_end(&inside, TILE_OP_CONDITION, passed, carried + 3);

    for (unsigned i = 0; i <= carried; i++) tile_value_replace(body->arguments[i], iteration->arguments[1 + i]);
    for (unsigned i = 0; i < carried; i++) next[2 + i] = tile_op_operand(body->last, i);
    tile_op_erase(body->last);
    tile_block_splice(iteration, body);
    inside.block = iteration;
    inside.before = NULL;
    TileValue *at = iteration->arguments[1];
    TileValue *left = tile_build_bitcast(&inside, binary(&inside, TILE_OP_SUB, exact->hi, at), TILE_U64);
    next[0] = binary(&inside, TILE_OP_GT, left, tile_build_bitcast(&inside, exact->step, TILE_U64));
    next[1] = binary(&inside, TILE_OP_ADD, at, exact->step);
    tile_build_end(&inside, TILE_OP_YIELD, next, carried + 2);
    for (unsigned i = 0; i < carried; i++) tile_value_replace(&loop->results[i], &made->results[2 + i]);
    tile_op_erase(loop);
}

/* Facts are queried before the function is changed. */
static void consider(TileOp *op, void *state) {
    Search *search = state;
    if (op->id != TILE_OP_FOR) return;
    Exact exact = {.loop = op, .lo = tile_op_operand(op, 0), .hi = tile_op_operand(op, 1)};
    exact.step = tile_op_named(op, TILE_OPERAND_STEP);
    if (!may_overflow(search->facts, &exact)) return;
    exact.countable = is_countable(search->facts, &exact);
    tile_list_push(search->context->scratch, &search->found, exact);
}

TileResult tile_pass_exact_loops(TilePassContext *context, TileFunc *func) {
    Search search = {.context = context, .facts = tile_pass_indices(context, func)};
    tile_block_walk(&func->body, consider, &search);
    for (size_t i = 0; i < search.found.count; i++) {
        Exact *exact = &search.found.items[i];
        exact->builder = tile_builder_before(context->module, exact->loop);
        if (exact->countable)
            count_iterations(exact);
        else
            test_each_iteration(context, exact);
    }
    return search.found.count ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
