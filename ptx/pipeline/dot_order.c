/* Purpose: decide the order in which the ops of a loop with several products run, so that products are under way while
 * what follows from others is computed. A product begins as soon as what it takes is there: products that take nothing
 * that another product of the iteration gave begin first, one behind the other. Then the iteration waits for products in
 * the order in which they were begun; behind each wait come the products that it makes possible, and then all else
 * that it makes possible. Loads from memory that this takes stand in front of the wait. Loops for which gpu-dot-stages
 * has decided are left alone.
 *
 * Before:
 *     func phase tile @k.0(%end: i64) threads = 128 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %acc = const {value = 0.0} : f32[64, 64]
 *       %q = channel {slots = 1, group = 0} : channel<f16[64, 64], swizzle 128 panels>
 *       %k = channel {slots = 2, group = 1} : channel<f16[64, 64], swizzle 128 panels>
 *       %0 = channel_wait %q, %zero : ptr<shared, f16[64, 64], swizzle 128 panels>
 *       %x = shared_tile %0 : f16[64, 64]
 *       %sum = for %zero, %end, %one, %acc : f32[64, 64] (%i: i64, %acc.1: f32[64, 64]) {
 *         %1 = channel_wait %k, %i : ptr<shared, f16[64, 64], swizzle 128 panels>
 *         %y = shared_tile %1 : f16[64, 64]
 *         %2 = dot %x, %y, %acc {instruction = wgmma} : f32[64, 64]
 *         %s = dot_wait %2 {pending = 0} : f32[64, 64]
 *         %e = exp %s : f32[64, 64]
 *         %3 = dot %y, %x, %acc {instruction = wgmma} : f32[64, 64]
 *         %d = dot_wait %3 {pending = 0} : f32[64, 64]
 *         %f = mul %e, %d : f32[64, 64]
 *         %p = convert %f : f16[64, 64]
 *         %4 = dot %p, %y, %acc.1 {instruction = wgmma} : f32[64, 64]
 *         %t = dot_wait %4 {pending = 0} : f32[64, 64]
 *         channel_release %1
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
 *       %0 = channel_wait %q, %zero : ptr<shared, f16[64, 64], swizzle 128 panels>
 *       %x = shared_tile %0 : f16[64, 64]
 *       %sum = for %zero, %end, %one, %acc : f32[64, 64] (%i: i64, %acc.1: f32[64, 64]) {
 *         %1 = channel_wait %k, %i {stage = 0, cluster = 0} : ptr<shared, f16[64, 64], swizzle 128 panels>
 *         %y = shared_tile %1 {stage = 0, cluster = 0} : f16[64, 64]
 *         %2 = dot %x, %y, %acc {instruction = wgmma, stage = 0, cluster = 0} : f32[64, 64]
 *         %s = dot_wait %2 {pending = 0, stage = 0, cluster = 3} : f32[64, 64]
 *         %e = exp %s {stage = 0, cluster = 4} : f32[64, 64]
 *         %3 = dot %y, %x, %acc {instruction = wgmma, stage = 0, cluster = 1} : f32[64, 64]
 *         %d = dot_wait %3 {pending = 0, stage = 0, cluster = 6} : f32[64, 64]
 *         %f = mul %e, %d {stage = 0, cluster = 7} : f32[64, 64]
 *         %p = convert %f {stage = 0, cluster = 7} : f16[64, 64]
 *         %4 = dot %p, %y, %acc.1 {instruction = wgmma, stage = 0, cluster = 7} : f32[64, 64]
 *         %t = dot_wait %4 {pending = 0, stage = 0, cluster = 10} : f32[64, 64]
 *         channel_release %1 {stage = 0, cluster = 11}
 *         yield %t
 *       }
 *       channel_release %0
 *       return
 *     }
 * Needs: gpu-dot-stages; in partitions, behind gpu-cut. Keeps: tile form. Cost: for each product, the square of the loop's
 * ops. */
#include "lang/ir/operands.h"
#include "lowering/each.h"
#include "ptx/passes.h"
#include "ptx/target/dot.h"

enum { LEAST_PRODUCTS = 2, MOST_PRODUCTS = 16 };

typedef struct Order {
    TilePassContext *context;
    TileBlock *body;
    TileMap cluster;              /* TileOp of the body to itself: it has its place */
    TileOp *begun[MOST_PRODUCTS]; /* products that have their place, in this order */
    unsigned count, waited;       /* of these; those whose wait has its place */
    int64_t at;                   /* the cluster that ops are placed in */
    bool overlap;                 /* something is under way while something else is computed, or begun */
    const char *why;              /* the order stays as it is */
} Order;

/* ---- what an op stands behind ---- */

/* The op of the body that is, or contains, the user. */
static TileOp *op_of_body(const Order *o, TileOp *op) {
    while (op && op->block != o->body) op = op->block->op;
    return op;
}

static bool is_product(const TileOp *op) { return op->id == TILE_OP_DOT && gpu_dot_is_wgmma(op); }

/* The wait for the product, or for the one that alone adds to its sums; NULL: there is none in the body. */
static TileOp *wait_of(const TileOp *dot) {
    const TileUse *use = tile_value_has_one_use(&dot->results[0]) ? dot->results[0].first_use : NULL;
    if (!use || use->user->block != dot->block) return NULL;
    if (use->user->id == TILE_OP_DOT_WAIT) return use->user;
    return is_product(use->user) ? wait_of(use->user) : NULL;
}

typedef void (*Visit)(Order *o, TileOp *op, void *state);

/* Those who read the slot, or the tile that lies in it, in front of the op: a product reads until it has been waited for. */
static void visit_readers(Order *o, const TileValue *value, const TileOp *release, Visit visit, void *state) {
    for (const TileUse *use = value->first_use; use; use = use->next) {
        TileOp *user = op_of_body(o, use->user);
        if (!user || user == release) continue;
        visit(o, user, state);
        if (is_product(user) && wait_of(user)) visit(o, wait_of(user), state);
        if (user->id == TILE_OP_SHARED_TILE || user->id == TILE_OP_PERMUTE) visit_readers(o, &user->results[0], release, visit, state);
    }
}

/* A tile is read behind what clears part of its slot. */
static void visit_clears(Order *o, const TileOp *shared, Visit visit, void *state) {
    for (const TileUse *use = tile_op_operand(shared, 0)->first_use; use; use = use->next)
        if (use->user->id == TILE_OP_CLEAR_TILE && use->user->block == o->body) visit(o, use->user, state);
}

typedef struct Operands {
    Order *order;
    Visit visit;
    void *state;
} Operands;

static void visit_operands(TileOp *op, void *state) {
    const Operands *operands = state;
    for (unsigned i = 0; i < op->operand_count; i++) {
        TileOp *from = op_of_body(operands->order, tile_op_operand(op, i)->op);
        if (from) operands->visit(operands->order, from, operands->state);
    }
    for (unsigned i = 0; i < op->region_count; i++) tile_block_walk(&op->regions[i], visit_operands, state);
}

/* All ops of the body that have to stand in front of the op. */
static void visit_earlier(Order *o, TileOp *op, Visit visit, void *state) {
    Operands operands = {o, visit, state};
    visit_operands(op, &operands);
    if (op->id == TILE_OP_SHARED_TILE) visit_clears(o, op, visit, state);
    if (op->id == TILE_OP_CHANNEL_RELEASE) visit_readers(o, tile_op_operand(op, 0), op, visit, state);
}

static bool is_placed(const Order *o, const TileOp *op) { return tile_map_get(&o->cluster, op) != NULL; }

typedef struct Blocked {
    TileMap seen;
    const TileOp *but; /* a wait that counts as placed */
    bool blocked;
} Blocked;

static void look_for_wait(Order *o, TileOp *op, void *state) {
    Blocked *b = state;
    if (b->blocked || is_placed(o, op) || op == b->but || tile_map_get(&b->seen, op)) return;
    tile_map_set(&b->seen, op, op);
    b->blocked = op->id == TILE_OP_DOT_WAIT;
    if (!b->blocked) visit_earlier(o, op, look_for_wait, b);
}

/* Does the op stand behind a wait that has no place yet, other than this one? */
static bool is_blocked(Order *o, TileOp *op, const TileOp *but) {
    Blocked b = {.but = but};
    tile_map_init(&b.seen, o->context->scratch);
    look_for_wait(o, op, &b);
    return b.blocked;
}

/* ---- places ---- */

/* Gives the op the current cluster, after all that has to stand in front of it. */
static void place(Order *o, TileOp *op, void *state) {
    if (is_placed(o, op)) return;
    tile_map_set(&o->cluster, op, op);
    visit_earlier(o, op, place, state);
    tile_op_set_integer(o->context->module, op, TILE_ATTRIBUTE_STAGE, 0);
    tile_op_set_integer(o->context->module, op, TILE_ATTRIBUTE_CLUSTER, o->at);
    if (is_product(op) && o->count < MOST_PRODUCTS) o->begun[o->count++] = op;
}

/* Products that nothing keeps from beginning, each in a cluster of its own. */
static void place_products(Order *o) {
    for (TileOp *op = o->body->first; op != o->body->last; op = op->next) {
        if (!is_product(op) || is_placed(o, op) || is_blocked(o, op, NULL)) continue;
        place(o, op, NULL);
        o->at++;
    }
}

static void place_load(Order *o, TileOp *op, void *state) {
    TileMap *seen = state;
    if (is_placed(o, op) || tile_map_get(seen, op)) return;
    tile_map_set(seen, op, op);
    if (op->id == TILE_OP_LOAD_TILE)
        place(o, op, NULL);
    else
        visit_earlier(o, op, place_load, seen);
}

/* Loads that the ops behind the wait take begin in front of it. */
static void place_loads(Order *o, const TileOp *wait) {
    TileMap seen;
    tile_map_init(&seen, o->context->scratch);
    for (TileOp *op = o->body->first; op != o->body->last; op = op->next)
        if (!is_placed(o, op) && op != wait && is_blocked(o, op, NULL) && !is_blocked(o, op, wait)) place_load(o, op, &seen);
    o->at++;
}

/* The wait for the product that was begun first, of those that are not waited for. */
static TileOp *next_wait(Order *o) {
    while (o->waited < o->count) {
        TileOp *wait = wait_of(o->begun[o->waited++]);
        if (!is_placed(o, wait)) return wait;
    }
    return NULL;
}

static void look_for_any_wait(Order *o, TileOp *op, void *state) {
    Blocked *b = state;
    if (b->blocked || tile_map_get(&b->seen, op)) return;
    tile_map_set(&b->seen, op, op);
    b->blocked = op->id == TILE_OP_DOT_WAIT;
    if (!b->blocked) visit_earlier(o, op, look_for_any_wait, b);
}

static void look_for_unplaced(Order *o, TileOp *op, void *found) { *(bool *)found |= !is_placed(o, op); }

/* Does the op follow from a product? What does not is computed where it is taken, and a slot is released when it is not
 * read any more. */
static bool is_due(Order *o, TileOp *op) {
    bool unplaced = false;
    Blocked b = {0};
    tile_map_init(&b.seen, o->context->scratch);
    if (op->id == TILE_OP_CHANNEL_RELEASE)
        visit_earlier(o, op, look_for_unplaced, &unplaced);
    else
        look_for_any_wait(o, op, &b);
    return op->id == TILE_OP_CHANNEL_RELEASE ? !unplaced : b.blocked;
}

/* Ops that nothing keeps from running; `all`: also those that nobody has taken. */
static void place_others(Order *o, bool all) {
    for (TileOp *op = o->body->first; op != o->body->last; op = op->next)
        if (!is_placed(o, op) && !is_product(op) && !is_blocked(o, op, NULL) && (all || is_due(o, op))) place(o, op, NULL);
    o->at++;
}

static void place_all(Order *o) {
    place_products(o);
    for (TileOp *wait; (wait = next_wait(o)) != NULL;) {
        o->overlap |= o->waited < o->count;
        place_loads(o, wait);
        place(o, wait, NULL);
        o->at++;
        place_products(o);
        place_others(o, false);
    }
    place_others(o, true);
}

/* ---- which loops ---- */

static bool may_move(const TileOp *op) {
    return tile_op_is_pure(op) || op->id == TILE_OP_CHANNEL_WAIT || op->id == TILE_OP_SHARED_TILE ||
           op->id == TILE_OP_CHANNEL_RELEASE || op->id == TILE_OP_DOT_WAIT || op->id == TILE_OP_LOAD_TILE ||
           op->id == TILE_OP_CLEAR_TILE;
}

/* Products of the body; 0: it is not a loop for this. */
static unsigned count_products(Order *o) {
    unsigned count = 0;
    for (TileOp *op = o->body->first; op != o->body->last; op = op->next) {
        if (op->id == TILE_OP_FOR || op->id == TILE_OP_WHILE || tile_op_get(op, TILE_ATTRIBUTE_STAGE)) return 0;
        if (!is_product(op)) continue;
        if (!wait_of(op) || tile_op_integer(wait_of(op), TILE_ATTRIBUTE_PENDING, 0)) return 0;
        count++;
    }
    return count;
}

static bool try_loop(TilePassContext *context, TileOp *loop, const char **error) {
    (void)error;
    Order o = {.context = context, .body = &loop->regions[0]};
    tile_map_init(&o.cluster, context->scratch);
    unsigned count = tile_loop_is_of_programs(loop) ? 0 : count_products(&o);
    if (count < LEAST_PRODUCTS || count > MOST_PRODUCTS) return false;
    for (const TileOp *op = o.body->first; op != o.body->last; op = op->next)
        if (!may_move(op)) o.why = "it has other effects, whose order would change";
    if (!o.why) place_all(&o);
    if (!o.why && !o.overlap) o.why = "each product takes what the one before it gave";
    for (TileOp *op = o.body->first; !o.overlap && op != o.body->last; op = op->next) {
        tile_op_clear(op, TILE_ATTRIBUTE_STAGE);
        tile_op_clear(op, TILE_ATTRIBUTE_CLUSTER);
    }
    if (o.why)
        tile_pass_remark(context, loop, TILE_DECISION_PRODUCTS_IN_TURN, "the loop", "%s", o.why);
    else
        tile_pass_remark(context, loop, TILE_DECISION_PRODUCTS_ORDERED, "the loop", "%u products of an iteration", count);
    return o.overlap;
}

TileResult tile_pass_gpu_dot_order(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    return tile_try_each(context, func, TILE_OP_FOR, try_loop, "gpu-dot-order");
}
