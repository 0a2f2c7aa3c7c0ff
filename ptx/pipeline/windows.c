/* Purpose: load the elements of a window together. A loop over a window that the tensor's borders clip has few iterations, how many
 * depends on the program, and each waits for what it loads. Where the bounds show that there are never more than a few, all their
 * loads come first, and what is carried follows iteration by iteration, in the order that it had. An iteration that a clipped
 * window does not have loads what the last one loads, so no address is outside, and what it computes is not taken. Loops that
 * stand within one another, with bounds that the outer ones do not change, are one window.
 *
 * Before:
 *     func phase tile @k.0(%x: tensor<f32, 2, in> {noalias}, %y: tensor<f32, 1, out> {noalias}, %p: i64, %begin: i64, %end: i64) threads = 32 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %two = const {value = 2} : i64
 *       %n = const {value = 128} : i64
 *       %m = dim %x {axis = 0} : i64
 *       %least = const {value = -inf} : f32[128]
 *       %lo = max %p, %zero : i64
 *       %above = add %p, %two : i64
 *       %hi = min %m, %above : i64
 *       %top = for %lo, %hi, %one, %least : f32[128] (%i: i64, %before: f32[128]) {
 *         %v = load_tile %x, %i, %zero, %one, %zero, %n {access = [index, range]} : f32[128]
 *         %w = max %before, %v : f32[128]
 *         yield %w
 *       }
 *       store_tile %y, %top, %zero, %one, %zero, %n {access = [range]}
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%x: tensor<f32, 2, in> {noalias}, %y: tensor<f32, 1, out> {noalias}, %p: i64, %begin: i64, %end: i64) threads = 32 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %two = const {value = 2} : i64
 *       %n = const {value = 128} : i64
 *       %m = dim %x {axis = 0} : i64
 *       %least = const {value = -inf} : f32[128]
 *       %lo = max %p, %zero : i64
 *       %above = add %p, %two : i64
 *       %hi = min %m, %above : i64
 *       %0 = lt %lo, %hi : bool
 *       %1 = const {value = 1} : i64
 *       %2 = sub %hi, %lo : i64
 *       %3 = sub %2, %1 : i64
 *       %top = if %0 : f32[128] {
 *         %4 = const {value = 1} : i64
 *         %5 = le %4, %3 : bool
 *         %6 = const {value = 1} : i64
 *         %7 = min %6, %3 : i64
 *         %8 = add %lo, %7 : i64
 *         %v = load_tile %x, %lo, %zero, %one, %zero, %n {access = [index, range]} : f32[128]
 *         %v.1 = load_tile %x, %8, %zero, %one, %zero, %n {access = [index, range]} : f32[128]
 *         %w = max %least, %v : f32[128]
 *         %w.1 = max %w, %v.1 : f32[128]
 *         %9 = splat %5 : bool[128]
 *         %10 = select %9, %w.1, %w : f32[128]
 *         yield %10
 *       } {
 *         yield %least
 *       }
 *       store_tile %y, %top, %zero, %one, %zero, %n {access = [range]}
 *       return
 *     }
 * Needs: gpu-threads, licm; bounds whose sums are recognised. Keeps: tile form, and the order of what is carried. Cost: linear in
 * the ops that it makes, MOST_OPS for a window. */
#include "lang/index/index.h"
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "lowering/iterations.h"
#include "ptx/passes.h"

/* Elements of a thread are registers, which all iterations need at once. */
enum { MOST_LEVELS = 3, MOST_ITERATIONS = 16, MOST_ELEMENTS = 64, MOST_OPS = 192, MOST_CARRIED = 8 };

typedef struct Level {
    TileOp *loop;
    int64_t most;           /* iterations */
    TileValue *lo, *spare;  /* the first index, and how many follow it */
} Level;

typedef struct Window {
    TilePassContext *context;
    TileFunc *func;
    TileIndices *indices;
    Level levels[MOST_LEVELS]; /* outer ones first */
    unsigned count;
    TileMap late; /* ops that wait for what is carried */
    int64_t iterations, elements, ops;
    bool loads;
} Window;

/* ---- which loops are a window ---- */

/* The only op with regions of the loop's body, where what it yields is all that the body yields; NULL: there is none. *other:
 * there are ops of which it is not known that they may be executed again. */
static TileOp *find_inner(const TileOp *loop, bool *other) {
    const TileBlock *body = &loop->regions[0];
    TileOp *inner = NULL;
    for (TileOp *op = body->first; op != body->last; op = op->next) {
        if (op->id == TILE_OP_FOR && !inner && op->result_count == loop->result_count)
            inner = op;
        else if (op->region_count || (op->id != TILE_OP_LOAD_TILE && !tile_op_is_pure(op)))
            *other = true;
    }
    for (unsigned i = 0; inner && i < inner->result_count; i++)
        if (tile_op_named_at(body->last, TILE_OPERAND_VALUES, i) != &inner->results[i] || tile_loop_carried(inner, i) != body->arguments[1 + i])
            *other = true;
    return inner;
}

static bool find_levels(Window *w, TileOp *outermost) {
    w->iterations = 1;
    for (TileOp *loop = outermost; loop;) {
        bool other = false;
        if (w->count == MOST_LEVELS || !loop->result_count || loop->result_count > MOST_CARRIED || tile_loop_is_of_programs(loop)) return false;
        bool bounded = tile_value_outside(tile_op_named(loop, TILE_OPERAND_LO), outermost) &&
                       tile_value_outside(tile_op_named(loop, TILE_OPERAND_HI), outermost);
        int64_t most = bounded ? tile_most_iterations(w->indices, loop, MOST_ITERATIONS) : 0;
        if (!most || w->iterations * most > MOST_ITERATIONS) return false;
        w->levels[w->count++] = (Level){.loop = loop, .most = most};
        w->iterations *= most;
        loop = find_inner(loop, &other);
        if (other) return false;
    }
    return true;
}

/* ---- what comes first ---- */

static bool is_carried(const Window *w, const TileValue *value) {
    for (unsigned l = 0; l < w->count; l++) {
        const TileBlock *body = &w->levels[l].loop->regions[0];
        for (unsigned i = 0; i < w->levels[l].loop->result_count; i++)
            if (value == body->arguments[1 + i]) return true;
    }
    return value->op && tile_map_get(&w->late, value->op) != NULL;
}

static bool is_late(const Window *w, const TileOp *op) {
    for (unsigned i = 0; i < op->operand_count; i++)
        if (is_carried(w, tile_op_operand(op, i))) return true;
    return false;
}

/* Do lanes exchange what they compute? Then an iteration waits for more than its loads. */
static bool exchanges(const TileOp *op) {
    TileOpClass class = tile_op_info((TileOpId)op->id)->class;
    return class == TILE_CLASS_REDUCE || op->id == TILE_OP_DOT || op->id == TILE_OP_FOLD || op->id == TILE_OP_SCAN;
}

static bool look_at_level(Window *w, unsigned level, int64_t times) {
    TileBlock *body = &w->levels[level].loop->regions[0];
    for (TileOp *op = body->first; op != body->last; op = op->next) {
        if (op->region_count) continue;
        if (exchanges(op)) return false;
        w->ops += times;
        bool late = is_late(w, op);
        if (late) tile_map_set(&w->late, op, op);
        if (op->id != TILE_OP_LOAD_TILE) continue;
        const TileType *type = op->results[0].type;
        if (late || !tile_type_is_tile(type)) return false;
        int64_t elements = (tile_type_lanes(type) + w->func->threads - 1) / w->func->threads;
        w->elements += times * (tile_scalar_bytes(type->scalar) > 4 ? 2 * elements : elements);
        w->loads = true;
    }
    return true;
}

/* Requires `find_levels`. */
static bool pays(Window *w) {
    int64_t times = 1;
    for (unsigned l = 0; l < w->count; l++) {
        times *= w->levels[l].most;
        if (!look_at_level(w, l, times)) return false;
    }
    return w->loads && w->iterations > 1 && w->elements <= MOST_ELEMENTS && w->ops <= MOST_OPS;
}

/* ---- the copies ---- */

static TileValue *mapped(const TileMap *map, TileValue *value) {
    TileValue *copy = tile_map_get(map, value);
    return copy ? copy : value;
}

/* Is there a k-th iteration of the level? NULL: always. */
static TileValue *is_there(TileBuilder *b, const Level *level, int64_t k) {
    return k ? tile_build_binary(b, TILE_OP_LE, tile_build_i64(b, k), level->spare) : NULL;
}

static TileValue *index_of(TileBuilder *b, const Level *level, int64_t k) {
    if (!k) return level->lo;
    return tile_build_binary(b, TILE_OP_ADD, level->lo, tile_build_binary(b, TILE_OP_MIN, tile_build_i64(b, k), level->spare));
}

/* The k-th iteration of each level, of the iteration-th of all. */
static void split_iteration(const Window *w, int64_t iteration, int64_t *ks) {
    for (unsigned l = w->count; l--; iteration /= w->levels[l].most) ks[l] = iteration % w->levels[l].most;
}

static void copy_ops(const Window *w, TileBuilder *b, TileMap *map, bool late) {
    for (unsigned l = 0; l < w->count; l++) {
        const TileBlock *body = &w->levels[l].loop->regions[0];
        for (const TileOp *op = body->first; op != body->last; op = op->next)
            if (!op->region_count && late == (tile_map_get(&w->late, op) != NULL)) tile_builder_insert(b, tile_op_clone(w->context->module, op, map));
    }
}

static TileValue *choose(TileBuilder *b, TileValue *condition, TileValue *value, TileValue *before) {
    if (!condition) return value;
    if (tile_type_is_tile(value->type))
        condition = tile_build_splat(b, condition, tile_type_with_scalar(b->module->context, value->type, TILE_BOOL));
    return tile_build_ternary(b, TILE_OP_SELECT, condition, value, before);
}

static void fill(Window *w, TileBlock *region) {
    TileBuilder b = tile_builder_at_end(w->context->module, region);
    TileMap maps[MOST_ITERATIONS];
    TileValue *values[MOST_CARRIED], *conditions[MOST_ITERATIONS];
    const TileOp *inner = w->levels[w->count - 1].loop;
    int64_t ks[MOST_LEVELS];
    b.location = w->levels[0].loop->location;
    for (int64_t n = 0; n < w->iterations; n++) {
        split_iteration(w, n, ks);
        tile_map_init(&maps[n], w->context->scratch);
        conditions[n] = NULL;
        for (unsigned l = 0; l < w->count; l++) {
            TileValue *there = is_there(&b, &w->levels[l], ks[l]);
            conditions[n] = conditions[n] && there ? tile_build_binary(&b, TILE_OP_AND, conditions[n], there) : conditions[n] ? conditions[n] : there;
            tile_map_set(&maps[n], w->levels[l].loop->regions[0].arguments[0], index_of(&b, &w->levels[l], ks[l]));
        }
    }
    for (int64_t n = 0; n < w->iterations; n++) copy_ops(w, &b, &maps[n], false);
    for (unsigned v = 0; v < inner->result_count; v++) values[v] = tile_loop_carried(w->levels[0].loop, v);
    for (int64_t n = 0; n < w->iterations; n++) {
        for (unsigned l = 0; l < w->count; l++)
            for (unsigned v = 0; v < inner->result_count; v++) tile_map_set(&maps[n], w->levels[l].loop->regions[0].arguments[1 + v], values[v]);
        copy_ops(w, &b, &maps[n], true);
        for (unsigned v = 0; v < inner->result_count; v++) {
            TileValue *yielded = tile_op_named_at(inner->regions[0].last, TILE_OPERAND_VALUES, v);
            values[v] = choose(&b, conditions[n], mapped(&maps[n], yielded), values[v]);
        }
    }
    tile_build_end(&b, TILE_OP_YIELD, values, inner->result_count);
}

static void replace(Window *w) {
    TileOp *loop = w->levels[0].loop;
    TileBuilder b = tile_builder_before(w->context->module, loop);
    const TileType *types[MOST_CARRIED];
    TileValue *initial[MOST_CARRIED], *runs = NULL;
    for (unsigned l = 0; l < w->count; l++) {
        Level *level = &w->levels[l];
        TileValue *hi = tile_op_named(level->loop, TILE_OPERAND_HI);
        level->lo = tile_op_named(level->loop, TILE_OPERAND_LO);
        TileValue *one = tile_build_binary(&b, TILE_OP_LT, level->lo, hi);
        runs = runs ? tile_build_binary(&b, TILE_OP_AND, runs, one) : one;
        level->spare = tile_build_binary(&b, TILE_OP_SUB, tile_build_binary(&b, TILE_OP_SUB, hi, level->lo), tile_build_i64(&b, 1));
    }
    for (unsigned v = 0; v < loop->result_count; v++) {
        types[v] = loop->results[v].type;
        initial[v] = tile_loop_carried(loop, v);
    }
    TileOp *branch = tile_build_if(&b, runs, types, loop->result_count);
    TileBuilder otherwise = tile_builder_at_end(w->context->module, &branch->regions[1]);
    otherwise.location = loop->location;
    fill(w, &branch->regions[0]);
    tile_build_end(&otherwise, TILE_OP_YIELD, initial, loop->result_count);
    for (unsigned v = 0; v < loop->result_count; v++) {
        branch->results[v].name = loop->results[v].name;
        tile_value_replace(&loop->results[v], &branch->results[v]);
    }
    tile_op_erase(loop);
}

/* ---- the pass ---- */

/* Outer loops first: with the ones in them they may be one window. */
static bool visit(TilePassContext *context, TileFunc *func, TileBlock *block) {
    bool changed = false;
    for (TileOp *op = block->first, *next; op; op = next) {
        next = op->next;
        Window w = {.context = context, .func = func, .indices = tile_pass_indices(context, func)};
        tile_map_init(&w.late, context->scratch);
        if (op->id == TILE_OP_FOR && find_levels(&w, op) && pays(&w)) {
            tile_pass_remark(context, op, TILE_DECISION_LOADED_TOGETHER, "the window", "%lld elements", (long long)w.iterations);
            replace(&w);
            changed = true;
            continue;
        }
        for (unsigned r = 0; r < op->region_count; r++) changed |= visit(context, func, &op->regions[r]);
    }
    return changed;
}

TileResult tile_pass_gpu_windows(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE || !func->threads) return TILE_RESULT_UNCHANGED;
    return visit(context, func, &func->body) ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
