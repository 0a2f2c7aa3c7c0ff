/* Purpose: take only the iterations of a loop in which something is done. A transposed convolution of stride 2 meets a position by every
 * second element of a window: its loop tests in each iteration whether a number that grows evenly is a multiple of 2, and passes on what it
 * carries if not. Such a loop begins with the first iteration in which it is, and takes two steps at a time. Parts of the condition that
 * are the same in all iterations are asked once, around the loop. So the products of a window are in loops without branches, and are joined.
 *
 * Before:
 *     func phase tile @k.0(%x: tensor<f32, 2, in>, %y: tensor<f32, 1, out>, %p: i64, %some: bool) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %two = const {value = 2} : i64
 *       %n = const {value = 8} : i64
 *       %none = const {value = 0.0} : f32[8]
 *       %R = dim %x {axis = 0} : i64
 *       %sum = for %zero, %R, %one, %none : f32[8] (%i: i64, %acc: f32[8]) {
 *         %row = sub %p, %i : i64
 *         %rest = rem %row, %two : i64
 *         %even = eq %rest, %zero : bool
 *         %all = and %some, %even : bool
 *         %next = if %all : f32[8] {
 *           %v = load_tile %x, %i, %zero, %one, %zero, %n {access = [index, range]} : f32[8]
 *           %more = add %acc, %v : f32[8]
 *           yield %more
 *         } {
 *           yield %acc
 *         }
 *         yield %next
 *       }
 *       store_tile %y, %sum, %zero, %one, %zero, %n {access = [range]}
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%x: tensor<f32, 2, in>, %y: tensor<f32, 1, out>, %p: i64, %some: bool) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 8} : i64
 *       %none = const {value = 0.0} : f32[8]
 *       %R = dim %x {axis = 0} : i64
 *       %0 = and %p, %one : i64
 *       %1 = const {value = 2} : i64
 *       %sum = if %some : f32[8] {
 *         %sum.1 = for %0, %R, %1, %none : f32[8] (%i: i64, %acc: f32[8]) {
 *           %v = load_tile %x, %i, %zero, %one, %zero, %n {access = [index, range]} : f32[8]
 *           %more = add %acc, %v : f32[8]
 *           yield %more
 *         }
 *         yield %sum.1
 *       } {
 *         yield %none
 *       }
 *       store_tile %y, %sum, %zero, %one, %zero, %n {access = [range]}
 *       return
 *     }
 * Run: --passes=cpu-steps,canonicalise,cse,dce
 * Needs: canonicalise ahead of it, which joins conditions; before cpu-place. Keeps: what is done in each iteration, in order; numbers that
 * wrap, since the divisor is a power of two. Cost: linear. */
#include <stdlib.h>

#include "cpu/passes.h"
#include "lang/ir/build.h"
#include "lang/ir/operands.h"

enum { MOST_DIVISOR = 8, MOST_PARTS = 8, MOST_RESULTS = 8, DEEPEST = 24, FARTHEST = 62 /* bits of a loop's end, from which no step wraps */ };

typedef struct Steps {
    TilePassContext *context;
    TileModule *module;
    TileOp *loop, *branch;
    TileValue *shared[MOST_PARTS], *others[MOST_PARTS]; /* parts of the condition: the same in all iterations, and what is left */
    unsigned shared_count, other_count;
    TileValue *number; /* has to be a multiple of the divisor; NULL: there is none */
    int64_t divisor, growth; /* of the number in each iteration */
    bool changed;
} Steps;

/* ---- which loops ---- */

static bool is_pure(const TileOp *op) { return (tile_op_info((TileOpId)op->id)->traits & TILE_TRAIT_PURE) && !op->region_count; }

static bool may_trap(const TileOp *op) {
    int64_t divisor;
    bool divides = op->id == TILE_OP_DIV || op->id == TILE_OP_REM;
    return divides && !(tile_value_integer(tile_op_operand(op, 1), &divisor) && divisor > 0);
}

/* A branch that only asks a second question where the answer to the first is yes. */
static bool is_question(const TileOp *op) {
    if (op->id != TILE_OP_IF || op->result_count != 1 || op->results[0].type->kind != TILE_TYPE_SCALAR) return false;
    if (op->results[0].type->scalar != TILE_BOOL || !tile_value_is_integer(tile_op_operand(op->regions[1].last, 0), 0)) return false;
    for (unsigned r = 0; r < 2; r++)
        for (const TileOp *inner = op->regions[r].first; inner != op->regions[r].last; inner = inner->next)
            if (!is_pure(inner) || may_trap(inner)) return false;
    return true;
}

/* Both questions are asked. */
static void ask_both(TileModule *module, TileOp *op) {
    TileBlock *body = &op->regions[0];
    TileValue *second = tile_op_operand(body->last, 0);
    while (body->first != body->last) {
        TileOp *inner = body->first;
        tile_op_detach(inner);
        tile_op_insert_before(inner, op);
    }
    TileBuilder b = tile_builder_before(module, op);
    tile_value_replace(&op->results[0], tile_build_binary(&b, TILE_OP_AND, tile_op_operand(op, 0), second));
    tile_op_erase(op);
}

/* Nothing is done in an iteration but for one branch, whose other block passes on what the loop carries. */
static TileOp *find_branch(TileOp *loop) {
    TileBlock *body = &loop->regions[0];
    TileOp *found = NULL;
    for (TileOp *op = body->first; op != body->last; op = op->next) {
        if (is_pure(op) || op->id == TILE_OP_LOAD_TILE) continue;
        if (found || op->id != TILE_OP_IF) return NULL;
        found = op;
    }
    if (!found || found->result_count != loop->result_count || found->result_count > MOST_RESULTS) return NULL;
    for (const TileOp *op = found->regions[1].first; op != found->regions[1].last; op = op->next)
        if (!is_pure(op)) return NULL;
    for (unsigned i = 0; i < loop->result_count; i++) {
        bool passed = tile_op_operand(found->regions[1].last, i) == body->arguments[1 + i];
        if (!passed || tile_op_operand(body->last, i) != tile_op_result(found, i)) return NULL;
    }
    return found;
}

/* Is the part that a number which grows evenly is a multiple of a power of two, and meets one in each such stretch? */
static bool is_multiple(Steps *s, const TileValue *part) {
    const TileOp *equal = tile_value_def(part, TILE_OP_EQ), *rest = equal ? tile_value_def(tile_op_operand(equal, 0), TILE_OP_REM) : NULL;
    int64_t divisor, step;
    if (!rest || !tile_value_is_integer(tile_op_operand(equal, 1), 0) || !tile_value_integer(tile_op_operand(rest, 1), &divisor)) return false;
    if (divisor < 2 || divisor > MOST_DIVISOR || (divisor & (divisor - 1)) || rest->results[0].type->scalar != TILE_I64) return false;
    TileIndices *indices = tile_pass_indices(s->context, tile_op_func(s->loop));
    TileIndexRange end = tile_index_range(indices, tile_op_operand(s->loop, 1));
    if (!tile_value_integer(tile_op_named(s->loop, TILE_OPERAND_STEP), &step) || step <= 0 || step > INT32_MAX || end.hi >> FARTHEST) return false;
    TileSlopes slopes;
    tile_slopes_init(&slopes, indices, s->loop);
    TileSlope slope = tile_index_slope(&slopes, tile_op_operand(rest, 0));
    if (slope.kind != TILE_SLOPE_AFFINE || slope.factor || llabs(slope.step) > INT32_MAX || !(slope.step * step & 1)) return false;
    tile_index_use(indices, end.because);
    s->number = tile_op_operand(rest, 0);
    s->divisor = divisor;
    s->growth = slope.step * step;
    return true;
}

static bool add_part(Steps *s, TileValue *value, unsigned depth) {
    const TileOp *op = value->op;
    bool shared = tile_value_outside(value, s->loop);
    bool both = op && (op->id == TILE_OP_AND || (op->id == TILE_OP_SELECT && tile_value_is_integer(tile_op_named(op, TILE_OPERAND_Y), 0)));
    if (!shared && both && depth < DEEPEST)
        return add_part(s, tile_op_operand(op, 0), depth + 1) && add_part(s, tile_op_operand(op, 1), depth + 1);
    if (!shared && !s->number && is_multiple(s, value)) return true;
    TileValue **list = shared ? s->shared : s->others;
    unsigned *count = shared ? &s->shared_count : &s->other_count;
    if (*count == MOST_PARTS) return false;
    list[(*count)++] = value;
    return true;
}

static bool find(Steps *s, TileOp *loop) {
    s->loop = loop;
    s->branch = find_branch(loop);
    s->number = NULL;
    s->shared_count = s->other_count = 0;
    return s->branch && add_part(s, tile_op_operand(s->branch, 0), 0) && (s->number || s->shared_count);
}

/* ---- code ---- */

/* There may be no iteration. */
static bool can_copy(const Steps *s, const TileValue *value, unsigned depth) {
    const TileOp *op = value->op;
    if (tile_value_outside(value, s->loop) || value == s->loop->regions[0].arguments[0]) return true;
    if (!op || !is_pure(op) || op->result_count != 1 || may_trap(op) || depth == DEEPEST) return false;
    for (unsigned i = 0; i < op->operand_count; i++)
        if (!can_copy(s, tile_op_operand(op, i), depth + 1)) return false;
    return true;
}

/* The number times this, modulo the divisor, is how many iterations are ahead of the first in which it is a multiple. */
static int64_t factor_of(const Steps *s) {
    for (int64_t factor = 1; factor < s->divisor; factor += 2)
        if (((factor * s->growth + 1) & (s->divisor - 1)) == 0) return factor;
    return 1;
}

/* From the first iteration in which the number is a multiple, every so manieth. */
static void take_multiples(Steps *s) {
    TileBuilder b = tile_builder_before(s->module, s->loop);
    TileValue *lo = tile_op_operand(s->loop, 0), *step = tile_op_named(s->loop, TILE_OPERAND_STEP);
    TileMap map;
    tile_map_init(&map, s->context->scratch);
    tile_map_set(&map, s->loop->regions[0].arguments[0], lo);
    TileValue *first = tile_build_again(&b, &map, s->number, s->loop);
    first = tile_build_binary(&b, TILE_OP_MUL, first, tile_build_i64(&b, factor_of(s)));
    first = tile_build_binary(&b, TILE_OP_AND, first, tile_build_i64(&b, s->divisor - 1));
    first = tile_build_binary(&b, TILE_OP_MUL, first, step);
    tile_op_set_operand(s->loop, 0, tile_build_binary(&b, TILE_OP_ADD, lo, first));
    unsigned one, at = tile_op_operands(s->loop, TILE_OPERAND_STEP, &one);
    tile_op_set_operand(s->loop, at, tile_build_binary(&b, TILE_OP_MUL, step, tile_build_i64(&b, s->divisor)));
}

/* The branch's first block in its place. */
static void open_branch(Steps *s) {
    TileBlock *body = &s->branch->regions[0];
    for (unsigned i = 0; i < s->branch->result_count; i++)
        tile_value_replace(tile_op_result(s->branch, i), tile_op_operand(body->last, i));
    while (body->first != body->last) {
        TileOp *op = body->first;
        tile_op_detach(op);
        tile_op_insert_before(op, s->branch);
    }
    tile_op_erase(s->branch);
}

static TileValue *all_of(TileBuilder *b, TileValue *const *parts, unsigned count) {
    TileValue *all = NULL;
    for (unsigned i = 0; i < count; i++) all = all ? tile_build_binary(b, TILE_OP_AND, all, parts[i]) : parts[i];
    return all;
}

/* The loop in a branch, whose other block passes on what the loop begins with. */
static void close_around(Steps *s) {
    TileOp *loop = s->loop;
    TileBuilder b = tile_builder_before(s->module, loop);
    const TileType *types[MOST_RESULTS];
    TileValue *starts[MOST_RESULTS], *results[MOST_RESULTS];
    for (unsigned i = 0; i < loop->result_count; i++) {
        results[i] = tile_op_result(loop, i);
        starts[i] = tile_loop_carried(loop, i);
        types[i] = results[i]->type;
    }
    TileOp *made = tile_build_if(&b, all_of(&b, s->shared, s->shared_count), types, loop->result_count);
    for (unsigned i = 0; i < loop->result_count; i++) tile_value_replace(results[i], tile_op_result(made, i));
    tile_op_detach(loop);
    tile_op_append(loop, &made->regions[0]);
    TileBuilder first = tile_builder_at_end(s->module, &made->regions[0]), second = tile_builder_at_end(s->module, &made->regions[1]);
    first.location = second.location = loop->location;
    tile_build_end(&first, TILE_OP_YIELD, results, loop->result_count);
    tile_build_end(&second, TILE_OP_YIELD, starts, loop->result_count);
}

/* ---- the pass ---- */

static void visit(Steps *s, TileBlock *block) {
    for (TileOp *op = block->first, *next; op; op = next) {
        next = op->next;
        for (unsigned r = 0; r < op->region_count; r++) visit(s, &op->regions[r]);
        if (is_question(op) && tile_op_is(block->op, TILE_OP_FOR)) {
            ask_both(s->module, op);
            s->changed = true;
            continue;
        }
        if (op->id != TILE_OP_FOR || !find(s, op)) continue;
        if (s->number && !can_copy(s, s->number, 0)) continue;
        if (s->number) take_multiples(s);
        TileBuilder b = tile_builder_before(s->module, s->branch);
        if (s->other_count)
            tile_op_set_operand(s->branch, 0, all_of(&b, s->others, s->other_count));
        else
            open_branch(s);
        if (s->shared_count) close_around(s);
        s->changed = true;
    }
}

TileResult tile_pass_cpu_steps(TilePassContext *context, TileFunc *func) {
    Steps s = {.context = context, .module = context->module};
    visit(&s, &func->body);
    return s.changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
