/* Purpose: find ahead of loops over a window where no mask is needed. Such a loop has a branch (`masked`) for the positions at which all
 * its rows lie inside of a tensor, and tests it in each iteration, once more for each block of channels and each row of the window. In
 * which iterations its condition holds is found by a loop that only tests, as far out as what it tests is known. If it holds in all
 * of them, a version of the loops runs that tests nothing. Else the loop compares its index with the first stretch of iterations in
 * which it holds. A part of the condition that is the same in all iterations is asked once, ahead of the loop.
 *
 * Run: --passes=cpu-inside,canonicalise,dce
 * Before:
 *     func phase machine @k.0(%x: ptr<global>, %y: ptr<global>, %n: i64, %first: i64, %end: i64, %row: bool) {
 *       %zero = const {value = 0} : i64
 *       %four = const {value = 4} : i64
 *       %none = const {value = 0.0} : f32
 *       loop %zero, %four {loop = parallel, extent = 4} (%c: i64) {
 *         %o = mul %c, %four : i64
 *         %p = ptr_add %x, %o : ptr<global>
 *         %sum = loop %zero, %n, %none {loop = sequential, extent = 64} : f32 (%i: i64, %s: f32) {
 *           %begun = ge %i, %first : bool
 *           %left = lt %i, %end : bool
 *           %inside = and %begun, %left : bool
 *           %all = and %inside, %row : bool
 *           %t = if %all {masked = 1} : f32 {
 *             %a = load %p : f32
 *             %u = add %s, %a : f32
 *             yield %u
 *           } {
 *             %a = load %p, %inside, %none {parts = [mask, fill]} : f32
 *             %u = add %s, %a : f32
 *             yield %u
 *           }
 *           yield %t
 *         }
 *         %q = ptr_add %y, %o : ptr<global>
 *         store %sum, %q
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func phase machine @k.0(%x: ptr<global>, %y: ptr<global>, %n: i64, %first: i64, %end: i64, %row: bool) {
 *       %zero = const {value = 0} : i64
 *       %four = const {value = 4} : i64
 *       %none = const {value = 0.0} : f32
 *       %0, %1 = loop %zero, %n, %n, %n {loop = sequential, extent = 9223372036854775807} : i64, i64 (%2: i64, %n.1: i64, %n.2: i64) {
 *         %begun = ge %2, %first : bool
 *         %left = lt %2, %end : bool
 *         %3 = and %begun, %left : bool
 *         %4 = select %3, %2, %n : i64
 *         %5 = min %n.1, %4 : i64
 *         %6 = lt %5, %2 : bool
 *         %7 = select %3, %n, %2 : i64
 *         %8 = select %6, %7, %n : i64
 *         %9 = min %n.2, %8 : i64
 *         yield %5, %9
 *       }
 *       %10 = eq %0, %zero : bool
 *       %11 = eq %1, %n : bool
 *       %12 = and %10, %11 : bool
 *       loop %zero, %four {loop = parallel, extent = 4} (%c: i64) {
 *         %o = mul %c, %four : i64
 *         %p = ptr_add %x, %o : ptr<global>
 *         %sum = if %12 : f32 {
 *           %sum.1 = if %row : f32 {
 *             %sum.2 = loop %zero, %n, %none {loop = sequential, extent = 64} : f32 (%i: i64, %s: f32) {
 *               %a = load %p : f32
 *               %u = add %s, %a : f32
 *               yield %u
 *             }
 *             yield %sum.2
 *           } {
 *             %sum.3 = loop %zero, %n, %none {loop = sequential, extent = 64} : f32 (%i.1: i64, %s.1: f32) {
 *               %begun.1 = ge %i.1, %first : bool
 *               %left.1 = lt %i.1, %end : bool
 *               %inside = and %begun.1, %left.1 : bool
 *               %a.1 = load %p, %inside, %none {parts = [mask, fill]} : f32
 *               %u.1 = add %s.1, %a.1 : f32
 *               yield %u.1
 *             }
 *             yield %sum.3
 *           }
 *           yield %sum.1
 *         } {
 *           %13 = select %row, %1, %0 : i64
 *           %sum.4 = loop %zero, %n, %none {loop = sequential, extent = 64} : f32 (%i.2: i64, %s.2: f32) {
 *             %begun.2 = ge %i.2, %first : bool
 *             %left.2 = lt %i.2, %end : bool
 *             %inside.1 = and %begun.2, %left.2 : bool
 *             %14 = ge %i.2, %0 : bool
 *             %15 = lt %i.2, %13 : bool
 *             %16 = and %14, %15 : bool
 *             %t = if %16 {masked = 1} : f32 {
 *               %a.2 = load %p : f32
 *               %u.2 = add %s.2, %a.2 : f32
 *               yield %u.2
 *             } {
 *               %a.3 = load %p, %inside.1, %none {parts = [mask, fill]} : f32
 *               %u.3 = add %s.2, %a.3 : f32
 *               yield %u.3
 *             }
 *             yield %t
 *           }
 *           yield %sum.4
 *         }
 *         %q = ptr_add %y, %o : ptr<global>
 *         store %sum, %q
 *         yield
 *       }
 *       return
 *     }
 * Needs: cpu-interchange before it, which makes such loops; canonicalise behind it, for what the constants leave. Keeps: the order of
 * the iterations. The first block of a branch may be left out where it would run: nothing is assumed of how the condition varies, and with
 * `masked` the other block computes the same.
 * Cost: linear; a loop's body is there three times, if it has at most MOST_OPS ops. */
#include "cpu/passes.h"
#include "lang/ir/build.h"
#include "lang/ir/operands.h"

enum { MOST_OPS = 400, MOST_PARTS = 16, MOST_RESULTS = 16, DEEPEST = 24 };

typedef struct Inside {
    TilePassContext *context;
    TileModule *module;
    TileOp *loop, *branch;
    TileValue *index;
    /* Of which the condition is the conjunction. */
    TileValue *shared[MOST_PARTS], *varying[MOST_PARTS]; /* the same in all iterations, or not */
    unsigned shared_count, varying_count;
    TileOp *outer; /* the outermost sequential loop around the loop */
    TileOp *place; /* what varies is known before it */
    TileMap moved; /* values to what they are there */
    bool changed;
} Inside;

/* ---- what is tested ---- */

static bool is_sequential(const TileOp *op) {
    return op->id == TILE_OP_LOOP && tile_op_integer(op, TILE_ATTRIBUTE_LOOP_KIND, 0) == TILE_LOOP_KIND_SEQUENTIAL;
}

static bool is_both(const TileOp *op) {
    return op && (op->id == TILE_OP_AND || (op->id == TILE_OP_SELECT && tile_value_is_integer(tile_op_named(op, TILE_OPERAND_Y), 0)));
}

static bool add_part(Inside *s, TileValue *value, unsigned depth) {
    bool shared = tile_value_outside(value, s->loop);
    if (!shared && is_both(value->op) && depth < DEEPEST)
        return add_part(s, tile_op_operand(value->op, 0), depth + 1) && add_part(s, tile_op_operand(value->op, 1), depth + 1);
    TileValue **list = shared ? s->shared : s->varying;
    unsigned *count = shared ? &s->shared_count : &s->varying_count;
    for (unsigned i = 0; i < *count; i++)
        if (list[i] == value) return true;
    if (*count == MOST_PARTS) return false;
    list[(*count)++] = value;
    return true;
}

static bool may_trap(const TileOp *op) {
    bool divides = op->id == TILE_OP_DIV || op->id == TILE_OP_REM;
    return divides && !tile_scalar_is_float(op->results[0].type->scalar);
}

/* Can the value be computed ahead of the op, for an iteration of any number? */
static bool can_move(const Inside *s, const TileValue *value, const TileOp *ahead_of, unsigned depth) {
    const TileOp *op = value->op;
    if (tile_value_outside(value, ahead_of) || value == s->index) return true;
    bool pure = op && (tile_op_info((TileOpId)op->id)->traits & TILE_TRAIT_PURE) && !op->region_count && op->result_count == 1;
    if (!pure || may_trap(op) || depth == DEEPEST) return false;
    for (unsigned i = 0; i < op->operand_count; i++)
        if (!can_move(s, tile_op_operand(op, i), ahead_of, depth + 1)) return false;
    return true;
}

static bool can_test_ahead_of(const Inside *s, const TileOp *place) {
    for (unsigned i = 0; i < 2; i++)
        if (!can_move(s, tile_op_operand(s->loop, i), place, 0)) return false;
    for (unsigned i = 0; i < s->varying_count; i++)
        if (!can_move(s, s->varying[i], place, 0)) return false;
    return true;
}

static void count_op(TileOp *op, void *state) {
    (void)op;
    ++*(unsigned *)state;
}

/* The loop's only branch between masks, by a condition that changes in the loop: both of its blocks compute the same where it holds. */
static TileOp *find_branch(const TileOp *loop) {
    TileOp *found = NULL;
    for (TileOp *op = loop->regions[0].first; op; op = op->next) {
        if (op->id != TILE_OP_IF || !tile_op_get(op, TILE_ATTRIBUTE_MASKED) || tile_value_outside(tile_op_operand(op, 0), loop)) continue;
        if (found) return NULL;
        found = op;
    }
    return found;
}

/* Which loop, and where its condition is known: beyond a loop around it at least, else as much would be tested as before. */
static bool find(Inside *s, TileOp *loop) {
    unsigned ops = 0;
    s->loop = loop;
    s->branch = find_branch(loop);
    s->index = loop->regions[0].arguments[0];
    s->shared_count = s->varying_count = 0;
    if (!s->branch || !add_part(s, tile_op_operand(s->branch, 0), 0) || !s->varying_count) return false;
    tile_block_walk(&loop->regions[0], count_op, &ops);
    if (ops > MOST_OPS || !can_test_ahead_of(s, loop)) return false;
    s->place = loop;
    for (TileOp *around = loop->block->op; around && can_test_ahead_of(s, around); around = around->block->op) s->place = around;
    s->outer = loop;
    while (s->outer != s->place && is_sequential(s->outer->block->op)) s->outer = s->outer->block->op;
    return s->place != loop && s->outer->result_count <= MOST_RESULTS && loop->result_count <= MOST_RESULTS;
}

/* ---- code ---- */

/* A loop that finds the first iteration in which the condition holds, and the first one behind it in which it does not: its
 * results. */
static TileOp *build_search(Inside *s) {
    TileBuilder b = tile_builder_before(s->module, s->place);
    b.location = s->loop->location;
    tile_map_init(&s->moved, s->context->scratch);
    TileValue *lo = tile_build_again(&b, &s->moved, tile_op_operand(s->loop, 0), s->place), *hi = tile_build_again(&b, &s->moved, tile_op_operand(s->loop, 1), s->place);
    TileOp *search = tile_build_loop(&b, TILE_LOOP_KIND_SEQUENTIAL, lo, hi, INT64_MAX, (TileValue *[]){hi, hi}, 2);
    TileBuilder in = tile_builder_at_end(s->module, &search->regions[0]);
    in.location = b.location;
    TileValue *index = search->regions[0].arguments[0], *holds = NULL;
    tile_map_set(&s->moved, s->index, index);
    for (unsigned i = 0; i < s->varying_count; i++) {
        TileValue *part = tile_build_again(&in, &s->moved, s->varying[i], s->place);
        holds = holds ? tile_build_binary(&in, TILE_OP_AND, holds, part) : part;
    }
    TileValue *first = tile_build_ternary(&in, TILE_OP_SELECT, holds, index, hi);
    first = tile_build_binary(&in, TILE_OP_MIN, search->regions[0].arguments[1], first);
    TileValue *begun = tile_build_binary(&in, TILE_OP_LT, first, index);
    TileValue *end = tile_build_ternary(&in, TILE_OP_SELECT, holds, hi, index);
    end = tile_build_ternary(&in, TILE_OP_SELECT, begun, end, hi);
    end = tile_build_binary(&in, TILE_OP_MIN, search->regions[0].arguments[2], end);
    tile_build_end(&in, TILE_OP_YIELD, (TileValue *[]){first, end}, 2);
    return search;
}

static TileValue *in_copy(const TileMap *map, TileValue *value) {
    TileValue *copy = tile_map_get(map, value);
    return copy ? copy : value;
}

/* Moves the op to where a branch has it, and builds what the branch yields. */
static void close(Inside *s, TileOp *op, TileBlock *region) {
    TileValue *results[MOST_RESULTS];
    tile_op_detach(op);
    tile_op_append(op, region);
    for (unsigned i = 0; i < op->result_count; i++) results[i] = tile_op_result(op, i);
    TileBuilder end = tile_builder_at_end(s->module, region);
    end.location = op->location;
    tile_build_end(&end, TILE_OP_YIELD, results, op->result_count);
}

/* A branch in the op's place, whose first version is the copy. */
static void choose(Inside *s, TileBuilder *b, TileValue *condition, TileOp *copy, TileOp *op) {
    const TileType *types[MOST_RESULTS];
    for (unsigned i = 0; i < op->result_count; i++) types[i] = tile_op_result(op, i)->type;
    TileOp *made = tile_build_if(b, condition, types, op->result_count);
    for (unsigned i = 0; i < op->result_count; i++) tile_value_replace(tile_op_result(op, i), tile_op_result(made, i));
    close(s, copy, &made->regions[0]);
    close(s, op, &made->regions[1]);
}

static TileOp *copy_loop(Inside *s, TileOp *loop, TileMap *map) {
    tile_map_init(map, s->context->scratch);
    TileOp *made = tile_op_clone(s->module, loop, map);
    tile_op_insert_before(made, loop);
    return made;
}

static TileValue *shared_part(Inside *s, TileBuilder *b, const TileMap *map) {
    TileValue *all = NULL;
    for (unsigned i = 0; i < s->shared_count; i++) {
        TileValue *part = in_copy(map, s->shared[i]);
        all = all ? tile_build_binary(b, TILE_OP_AND, all, part) : part;
    }
    return all;
}

/* The loop where all iterations are within the stretch: without a test of any. */
static void build_within(Inside *s, TileOp *loop, const TileMap *map) {
    TileBuilder b = tile_builder_before(s->module, loop);
    TileValue *yes = tile_build_bool(&b, true), *no = tile_build_bool(&b, false), *all = shared_part(s, &b, map);
    TileMap again;
    if (all) {
        TileOp *copy = copy_loop(s, loop, &again);
        tile_op_set_operand(find_branch(copy), 0, yes);
        tile_op_set_operand(find_branch(loop), 0, no);
        choose(s, &b, all, copy, loop);
    } else {
        tile_op_set_operand(find_branch(loop), 0, yes);
    }
}

static void split(Inside *s) {
    TileOp *search = build_search(s), *outer = s->outer;
    TileValue *first = tile_op_result(search, 0), *end = tile_op_result(search, 1);
    TileBuilder at_search = tile_builder_before(s->module, s->place), b = tile_builder_before(s->module, outer);
    TileValue *lo = tile_op_operand(search, 0), *hi = tile_op_operand(search, 1);
    TileValue *begins = tile_build_binary(&at_search, TILE_OP_EQ, first, lo), *ends = tile_build_binary(&at_search, TILE_OP_EQ, end, hi);
    TileValue *all = tile_build_binary(&at_search, TILE_OP_AND, begins, ends);
    TileMap map;
    TileOp *copy = copy_loop(s, outer, &map);
    choose(s, &b, all, copy, outer);
    build_within(s, in_copy(&map, s->index)->block->op, &map);
    tile_map_init(&map, s->context->scratch);
    TileBuilder before = tile_builder_before(s->module, s->loop), in = tile_builder_before(s->module, s->branch);
    TileValue *some = shared_part(s, &before, &map);
    if (some) end = tile_build_ternary(&before, TILE_OP_SELECT, some, end, first);
    begins = tile_build_binary(&in, TILE_OP_GE, s->index, first);
    ends = tile_build_binary(&in, TILE_OP_LT, s->index, end);
    tile_op_set_operand(s->branch, 0, tile_build_binary(&in, TILE_OP_AND, begins, ends));
    s->changed = true;
}

/* ---- the pass ---- */

static void visit(Inside *s, TileBlock *block) {
    for (TileOp *op = block->first, *next; op; op = next) {
        next = op->next;
        for (unsigned r = 0; r < op->region_count; r++) visit(s, &op->regions[r]);
        if (is_sequential(op) && find(s, op)) split(s);
    }
}

TileResult tile_pass_cpu_inside(TilePassContext *context, TileFunc *func) {
    Inside s = {.context = context, .module = context->module};
    visit(&s, &func->body);
    return s.changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
