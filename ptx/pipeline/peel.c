/* Purpose: expand a software pipeline of two stages whose first one must not run past the last iteration: the first
 * stage of the first iteration is peeled off ahead of the loop, the second stage of the last one behind it, and in
 * between an iteration runs the second stage for its own index and the first for the next. What the second stage takes
 * of the first is loop-carried. A loop without iterations skips all of it. Where all ops have one stage, clusters are
 * the order of the loop's body, and nothing is peeled.
 *
 * Before:
 *     func phase tile @k.0(%end: i64) threads = 128 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %acc = const {value = 0.0} : f32[64, 64]
 *       %q = channel {slots = 1, group = 0} : channel<f16[64, 64], swizzle 128 panels>
 *       %k = channel {slots = 2, group = 1} : channel<f16[64, 64], swizzle 128 panels>
 *       %v = channel {slots = 2, group = 2} : channel<f16[64, 64], swizzle 128 panels>
 *       %0 = channel_wait %q, %zero : ptr<shared, f16[64, 64], swizzle 128 panels>
 *       %x = shared_tile %0 : f16[64, 64]
 *       %sum = for %zero, %end, %one, %acc : f32[64, 64] (%i: i64, %acc.1: f32[64, 64]) {
 *         %1 = channel_wait %k, %i {stage = 0, cluster = 0} : ptr<shared, f16[64, 64], swizzle 128 panels>
 *         %y = shared_tile %1 {stage = 0, cluster = 0} : f16[64, 64]
 *         %2 = dot %x, %y, %acc {instruction = wgmma, stage = 0, cluster = 0} : f32[64, 64]
 *         %s = dot_wait %2 {pending = 0, stage = 0, cluster = 2} : f32[64, 64]
 *         channel_release %1 {stage = 0, cluster = 2}
 *         %p = convert %s {stage = 0, cluster = 2} : f16[64, 64]
 *         %3 = channel_wait %v, %i {stage = 1, cluster = 1} : ptr<shared, f16[64, 64], swizzle 128 panels>
 *         %z = shared_tile %3 {stage = 1, cluster = 1} : f16[64, 64]
 *         %4 = dot %p, %z, %acc.1 {instruction = wgmma, stage = 1, cluster = 1} : f32[64, 64]
 *         %t = dot_wait %4 {pending = 0, stage = 1, cluster = 3} : f32[64, 64]
 *         channel_release %3 {stage = 1, cluster = 3}
 *         yield %t
 *       }
 *       channel_release %0
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%end: i64) threads = 128 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %acc = const {value = 0.0} : f32[64, 64]
 *       %q = channel {slots = 1, group = 0} : channel<f16[64, 64], swizzle 128 panels>
 *       %k = channel {slots = 2, group = 1} : channel<f16[64, 64], swizzle 128 panels>
 *       %v = channel {slots = 2, group = 2} : channel<f16[64, 64], swizzle 128 panels>
 *       %0 = channel_wait %q, %zero : ptr<shared, f16[64, 64], swizzle 128 panels>
 *       %x = shared_tile %0 : f16[64, 64]
 *       %1 = lt %zero, %end : bool
 *       %sum = if %1 : f32[64, 64] {
 *         %2 = channel_wait %k, %zero : ptr<shared, f16[64, 64], swizzle 128 panels>
 *         %y = shared_tile %2 : f16[64, 64]
 *         %3 = dot %x, %y, %acc {instruction = wgmma} : f32[64, 64]
 *         %s = dot_wait %3 {pending = 0} : f32[64, 64]
 *         channel_release %2
 *         %p = convert %s : f16[64, 64]
 *         %4 = sub %end, %one : i64
 *         %5, %6, %7 = for %zero, %4, %one, %acc, %zero, %p : f32[64, 64], i64, f16[64, 64] (%8: i64, %acc.1: f32[64,
 *             64], %zero.1: i64, %p.1: f16[64, 64]) {
 *           %9 = add %8, %one : i64
 *           %10 = channel_wait %k, %9 : ptr<shared, f16[64, 64], swizzle 128 panels>
 *           %y.1 = shared_tile %10 : f16[64, 64]
 *           %11 = dot %x, %y.1, %acc {instruction = wgmma} : f32[64, 64]
 *           %12 = channel_wait %v, %zero.1 : ptr<shared, f16[64, 64], swizzle 128 panels>
 *           %z = shared_tile %12 : f16[64, 64]
 *           %13 = dot %p.1, %z, %acc.1 {instruction = wgmma} : f32[64, 64]
 *           %s.1 = dot_wait %11 {pending = 1} : f32[64, 64]
 *           channel_release %10
 *           %p.2 = convert %s.1 : f16[64, 64]
 *           %t = dot_wait %13 {pending = 0} : f32[64, 64]
 *           channel_release %12
 *           yield %t, %9, %p.2
 *         }
 *         %14 = channel_wait %v, %6 : ptr<shared, f16[64, 64], swizzle 128 panels>
 *         %z.1 = shared_tile %14 : f16[64, 64]
 *         %15 = dot %7, %z.1, %5 {instruction = wgmma} : f32[64, 64]
 *         %t.1 = dot_wait %15 {pending = 0} : f32[64, 64]
 *         channel_release %14
 *         yield %t.1
 *       } {
 *         yield %acc
 *       }
 *       channel_release %0
 *       return
 *     }
 * A dot_wait is told how many products were begun between its own and itself.
 *
 * Needs: gpu-dot-stages. Keeps: tile form. Cost: linear in the loops' bodies. */
#include "lang/ir/operands.h"
#include "lowering/each.h"
#include "ptx/passes.h"
#include "ptx/target/dot.h"

enum { FIRST_STAGE, SECOND_STAGE, MOST_CLUSTERS = 16 };

typedef TILE_LIST(TileValue *) Values;

typedef struct Peel {
    TilePassContext *context;
    TileOp *loop;
    TileBlock *body;
    unsigned count;       /* loop-carried values */
    bool *second;         /* of each: the second stage computes it */
    Values given;         /* values of the body, of the first stage, that the second one takes */
    TileBuilder b;
} Peel;

static int64_t stage_of(const TileOp *op) { return tile_op_integer(op, TILE_ATTRIBUTE_STAGE, -1); }
static int64_t cluster_of(const TileOp *op) { return tile_op_integer(op, TILE_ATTRIBUTE_CLUSTER, 0); }

/* ---- what goes from stage to stage ---- */

/* Is the value of the second stage: made by its ops, or carried by it? */
static bool is_of_second(const Peel *p, const TileValue *value) {
    if (value->op) return value->op->block == p->body && stage_of(value->op) == SECOND_STAGE;
    return value->block == p->body && value->index > 0 && p->second[value->index - 1];
}

static bool is_of_body(const Peel *p, const TileValue *value) { return tile_value_block(value) == p->body; }

static void find_carried(Peel *p) {
    for (unsigned i = 0; i < p->count; i++) {
        const TileValue *next = tile_op_operand(p->body->last, i);
        p->second[i] = next->op && next->op->block == p->body && stage_of(next->op) == SECOND_STAGE;
    }
}

static void give(TileOp *op, void *state) {
    Peel *p = state;
    for (unsigned i = 0; i < op->operand_count; i++) {
        TileValue *value = tile_op_operand(op, i);
        bool known = !is_of_body(p, value) || is_of_second(p, value);
        for (size_t k = 0; k < p->given.count && !known; k++) known = p->given.items[k] == value;
        if (!known) tile_list_push(p->context->scratch, &p->given, value);
    }
}

static void find_given(Peel *p) {
    for (TileOp *op = p->body->first; op; op = op->next) {
        if (stage_of(op) != SECOND_STAGE) continue;
        give(op, p);
        for (unsigned i = 0; i < op->region_count; i++) tile_block_walk(&op->regions[i], give, p);
    }
}

/* ---- clones ---- */

/* Products that are begun between the wait's own and the wait. */
static void count_pending(TileOp *wait) {
    int64_t pending = 0;
    const TileOp *own = tile_op_operand(wait, 0)->op;
    for (const TileOp *op = wait->previous; op && op != own; op = op->previous)
        pending += op->id == TILE_OP_DOT && gpu_dot_is_wgmma(op);
    tile_op_set_integer(tile_op_func(wait)->module, wait, TILE_ATTRIBUTE_PENDING, pending);
}

static void clone_op(Peel *p, const TileOp *op, TileMap *map) {
    TileOp *clone = tile_op_clone(p->context->module, op, map);
    tile_op_clear(clone, TILE_ATTRIBUTE_STAGE);
    tile_op_clear(clone, TILE_ATTRIBUTE_CLUSTER);
    tile_builder_insert(&p->b, clone);
    if (clone->id == TILE_OP_DOT_WAIT) count_pending(clone);
}

static void clone_stage(Peel *p, int64_t stage, int64_t cluster, TileMap *map) {
    for (const TileOp *op = p->body->first; op != p->body->last; op = op->next)
        if (stage_of(op) == stage && (cluster < 0 || cluster_of(op) == cluster)) clone_op(p, op, map);
}

/* A value of the body as the map has it; others stay. */
static TileValue *mapped(TileMap *map, TileValue *value) {
    TileValue *found = tile_map_get(map, value);
    return found ? found : value;
}

/* The values that the stage carries to the next iteration. */
static void take_carried(Peel *p, TileMap *map, bool second, TileValue **values) {
    for (unsigned i = 0; i < p->count; i++)
        if (p->second[i] == second) values[i] = mapped(map, tile_op_operand(p->body->last, i));
}

static void set_arguments(Peel *p, TileMap *map, TileValue *index, TileValue *const *carried) {
    tile_map_set(map, p->body->arguments[0], index);
    for (unsigned i = 0; i < p->count; i++) tile_map_set(map, p->body->arguments[1 + i], carried[i]);
}

/* ---- the loop ---- */

/* `values`: those carried, then those given; in and out. */
static void build_loop(Peel *p, TileValue **values) {
    unsigned all = p->count + (unsigned)p->given.count;
    TileValue *lo = tile_op_operand(p->loop, 0), *hi = tile_op_operand(p->loop, 1),
              *step = tile_op_named(p->loop, TILE_OPERAND_STEP);
    TileOp *loop = tile_build_for(&p->b, lo, tile_build_binary(&p->b, TILE_OP_SUB, hi, step), step, values, all);
    for (unsigned i = 0; i < p->loop->attribute_count; i++) tile_op_set(p->context->module, loop, p->loop->attributes[i]);
    loop->location = p->loop->location;
    TileBuilder outer = p->b;
    p->b = tile_builder_at_end(p->context->module, &loop->regions[0]);
    p->b.location = p->loop->location;
    TileMap first, second;
    tile_map_init(&first, p->context->scratch);
    tile_map_init(&second, p->context->scratch);
    TileValue **arguments = loop->regions[0].arguments;
    TileValue *next = tile_build_binary(&p->b, TILE_OP_ADD, arguments[0], step);
    set_arguments(p, &first, next, arguments + 1);
    set_arguments(p, &second, arguments[0], arguments + 1);
    for (size_t i = 0; i < p->given.count; i++) tile_map_set(&second, p->given.items[i], arguments[1 + p->count + i]);
    for (int64_t cluster = 0; cluster < MOST_CLUSTERS; cluster++) {
        clone_stage(p, FIRST_STAGE, cluster, &first);
        clone_stage(p, SECOND_STAGE, cluster, &second);
    }
    TileValue **yielded = TILE_NEW_ARRAY(p->context->scratch, TileValue *, all);
    take_carried(p, &first, false, yielded);
    take_carried(p, &second, true, yielded);
    for (size_t i = 0; i < p->given.count; i++) yielded[p->count + i] = mapped(&first, p->given.items[i]);
    tile_build_end(&p->b, TILE_OP_YIELD, yielded, all);
    outer.error = p->b.error ? p->b.error : outer.error;
    p->b = outer;
    for (unsigned i = 0; i < all; i++) values[i] = &loop->results[i];
}

/* The first stage of the first iteration, the loop, the second stage of the last iteration. */
static void build_iterations(Peel *p) {
    TileMap first, second;
    tile_map_init(&first, p->context->scratch);
    tile_map_init(&second, p->context->scratch);
    TileValue **values = TILE_NEW_ARRAY(p->context->scratch, TileValue *, p->count + p->given.count);
    for (unsigned i = 0; i < p->count; i++) values[i] = tile_loop_carried(p->loop, i);
    set_arguments(p, &first, tile_op_operand(p->loop, 0), values);
    clone_stage(p, FIRST_STAGE, -1, &first);
    take_carried(p, &first, false, values);
    for (size_t i = 0; i < p->given.count; i++) values[p->count + i] = mapped(&first, p->given.items[i]);
    build_loop(p, values);
    set_arguments(p, &second, tile_op_operand(p->loop, 0), values);
    for (size_t i = 0; i < p->given.count; i++) tile_map_set(&second, p->given.items[i], values[p->count + i]);
    clone_stage(p, SECOND_STAGE, -1, &second);
    take_carried(p, &second, true, values);
    tile_build_end(&p->b, TILE_OP_YIELD, values, p->count);
}

/* ---- one stage ---- */

static int64_t last_stage(const TileBlock *body) {
    int64_t last = -1;
    for (const TileOp *op = body->first; op; op = op->next)
        if (stage_of(op) > last) last = stage_of(op);
    return last;
}

static int64_t last_cluster(const TileBlock *body) {
    int64_t last = 0;
    for (const TileOp *op = body->first; op; op = op->next)
        if (cluster_of(op) > last) last = cluster_of(op);
    return last;
}

/* Ops of a cluster keep their order. */
static void order_body(TileBlock *body) {
    TileOp *end = body->last;
    for (int64_t cluster = 0, clusters = last_cluster(body); cluster <= clusters; cluster++)
        for (TileOp *op = body->first, *next; op != end; op = next) {
            next = op->next;
            if (cluster_of(op) != cluster || stage_of(op) < 0) continue;
            tile_op_clear(op, TILE_ATTRIBUTE_STAGE);
            tile_op_clear(op, TILE_ATTRIBUTE_CLUSTER);
            tile_op_detach(op);
            tile_op_insert_before(op, end);
        }
    for (TileOp *op = body->first; op != end; op = op->next)
        if (op->id == TILE_OP_DOT_WAIT) count_pending(op);
}

static bool has_stages(const TileBlock *body) {
    for (const TileOp *op = body->first; op; op = op->next)
        if (op->id == TILE_OP_DOT_WAIT && stage_of(op) >= 0) return true;
    return false;
}

static bool try_loop(TilePassContext *context, TileOp *loop, const char **error) {
    Peel p = {.context = context, .loop = loop, .body = &loop->regions[0], .count = loop->result_count};
    if (!has_stages(p.body)) return false;
    if (last_stage(p.body) == FIRST_STAGE) {
        order_body(p.body);
        return true;
    }
    p.second = TILE_NEW_ARRAY(context->scratch, bool, p.count + 1);
    find_carried(&p);
    find_given(&p);
    p.b = tile_builder_before(context->module, loop);
    const TileType **types = TILE_NEW_ARRAY(context->scratch, const TileType *, p.count + 1);
    TileValue **initial = TILE_NEW_ARRAY(context->scratch, TileValue *, p.count + 1);
    for (unsigned i = 0; i < p.count; i++) {
        types[i] = loop->results[i].type;
        initial[i] = tile_loop_carried(loop, i);
    }
    TileValue *runs = tile_build_binary(&p.b, TILE_OP_LT, tile_op_operand(loop, 0), tile_op_operand(loop, 1));
    TileOp *branch = tile_build_if(&p.b, runs, types, p.count);
    p.b = tile_builder_at_end(context->module, &branch->regions[0]);
    p.b.location = loop->location;
    build_iterations(&p);
    p.b.block = &branch->regions[1];
    p.b.before = NULL;
    tile_build_end(&p.b, TILE_OP_YIELD, initial, p.count);
    for (unsigned i = 0; i < p.count; i++) {
        branch->results[i].name = loop->results[i].name;
        tile_value_replace(&loop->results[i], &branch->results[i]);
    }
    tile_op_erase(loop);
    if (p.b.error) *error = p.b.error;
    return true;
}

TileResult tile_pass_gpu_peel(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    return tile_try_each(context, func, TILE_OP_FOR, try_loop, "gpu-peel");
}
