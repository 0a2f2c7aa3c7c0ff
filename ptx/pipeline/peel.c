/* Purpose: expand a software pipeline of two stages whose first one must not run past the last iteration: the first
 * stage of the first iteration is peeled off ahead of the loop, the second stage of the last one behind it, and in
 * between an iteration runs the second stage for its own index and the first for the next. What the second stage takes
 * of the first is loop-carried. A loop without iterations skips all of it. Where all ops have one stage, clusters are
 * the order of the loop's body, and nothing is peeled. Tiles of iterations that another one follows are whole.
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
 * A dot_wait is told how many products were begun between its own and itself. Where the next product begins before sums are used up, these
 * lie in other registers than its own: the loop carries them, and ahead of it they are moved.
 *
 * Needs: gpu-dot-stages. Keeps: tile form. Cost: linear in the loops' bodies. */
#include "lang/ir/operands.h"
#include "lowering/each.h"
#include "ptx/passes.h"
#include "ptx/target/dot.h"

enum { FIRST_STAGE, MOST_STAGES = 3, MOST_CLUSTERS = 16 };

/* A value of the body that later stages take, and how many iterations it is carried for until the last of them has. */
typedef struct Given {
    TileValue *value;
    int64_t stage; /* whose it is */
    int64_t far;
} Given;

typedef TILE_LIST(Given) Givens;

typedef struct Peel {
    TilePassContext *context;
    TileOp *loop;
    TileBlock *body;
    int64_t last;    /* stage */
    unsigned count;  /* loop-carried values */
    int64_t *owners; /* of each: the stage that computes it */
    Givens given;
    int64_t user;    /* the stage whose ops are being looked at */
    bool moved;      /* sums of what is being built are used beside the next products, outside of the loop */
    bool followed;   /* another iteration follows that of the ops which are being cloned */
    TileBuilder b;
} Peel;

/* What the loop carries, and what is carried beside that from stage to stage: of each given value one for each iteration. */
typedef struct State {
    TileValue **carried, **given[MOST_STAGES];
} State;

static int64_t stage_of(const TileOp *op) { return tile_op_integer(op, TILE_ATTRIBUTE_STAGE, -1); }
static int64_t cluster_of(const TileOp *op) { return tile_op_integer(op, TILE_ATTRIBUTE_CLUSTER, 0); }

/* ---- what goes from stage to stage ---- */

static bool is_of_body(const Peel *p, const TileValue *value) { return tile_value_block(value) == p->body; }

/* The stage that computes what is carried in this place: the first one, where it is another carried value of it, or comes from outside. */
static int64_t owner_of(const Peel *p, unsigned slot) {
    const TileValue *next = tile_op_operand(p->body->last, slot);
    for (unsigned i = 0; i < p->count && !next->op && next->block == p->body && next->index; i++)
        next = tile_op_operand(p->body->last, next->index - 1);
    return next->op && next->op->block == p->body ? stage_of(next->op) : FIRST_STAGE;
}

static void find_carried(Peel *p) {
    for (unsigned i = 0; i < p->count; i++) p->owners[i] = owner_of(p, i);
}

/* The stage whose value it is: the index is the first one's. */
static int64_t home_of(const Peel *p, const TileValue *value) {
    if (value->op) return stage_of(value->op);
    return value->index ? p->owners[value->index - 1] : FIRST_STAGE;
}

static void give(TileOp *op, void *state) {
    Peel *p = state;
    for (unsigned i = 0; i < op->operand_count; i++) {
        TileValue *value = tile_op_operand(op, i);
        if (!is_of_body(p, value) || home_of(p, value) >= p->user) continue;
        Given given = {value, home_of(p, value), p->user - home_of(p, value)};
        Given *known = NULL;
        for (size_t k = 0; k < p->given.count && !known; k++)
            if (p->given.items[k].value == value) known = &p->given.items[k];
        if (!known)
            tile_list_push(p->context->scratch, &p->given, given);
        else if (known->far < given.far)
            known->far = given.far;
    }
}

static void find_given(Peel *p) {
    for (TileOp *op = p->body->first; op; op = op->next) {
        p->user = stage_of(op);
        if (p->user <= FIRST_STAGE) continue;
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

static bool is_rest(const Peel *p, const TileValue *value) {
    const TileOp *rest = tile_value_def(value, TILE_OP_SUB);
    return rest && tile_op_operand(rest, 0) == tile_op_operand(p->loop, 1) && tile_op_operand(rest, 1) == p->body->arguments[0];
}

/* The length of what is left of the loop's range, a step at most: that of an iteration's tiles, which are whole if another iteration
 * follows. */
static bool is_length(const Peel *p, const TileOp *op) {
    int64_t step, other;
    if (op->id != TILE_OP_MIN || !tile_value_integer(tile_op_named(p->loop, TILE_OPERAND_STEP), &step)) return false;
    for (unsigned i = 0; i < 2; i++)
        if (is_rest(p, tile_op_operand(op, i)) && tile_value_integer(tile_op_operand(op, 1 - i), &other) && other == step) return true;
    return false;
}

static void clone_op(Peel *p, const TileOp *op, TileMap *map) {
    if (p->followed && is_length(p, op)) {
        tile_map_set(map, &op->results[0], tile_op_named(p->loop, TILE_OPERAND_STEP));
        return;
    }
    TileOp *clone = tile_op_clone(p->context->module, op, map);
    tile_op_clear(clone, TILE_ATTRIBUTE_STAGE);
    tile_op_clear(clone, TILE_ATTRIBUTE_CLUSTER);
    tile_builder_insert(&p->b, clone);
    if (clone->id != TILE_OP_DOT_WAIT) return;
    count_pending(clone);
    if (p->moved) tile_op_set_integer(p->context->module, clone, TILE_ATTRIBUTE_MOVED, 1);
}

static void clone_stage(Peel *p, int64_t stage, int64_t cluster, TileMap *map) {
    for (const TileOp *op = p->body->first; op != p->body->last; op = op->next)
        if (stage_of(op) == stage && cluster_of(op) == cluster) clone_op(p, op, map);
}

/* A value of the body as the map has it; others stay. */
static TileValue *mapped(TileMap *map, TileValue *value) {
    TileValue *found = tile_map_get(map, value);
    return found ? found : value;
}

/* ---- the loop ---- */

static State new_state(Peel *p) {
    State state = {.carried = TILE_NEW_ARRAY(p->context->scratch, TileValue *, p->count + 1)};
    for (int64_t far = 0; far < MOST_STAGES; far++)
        state.given[far] = TILE_NEW_ARRAY(p->context->scratch, TileValue *, p->given.count + 1);
    return state;
}

/* What the state has of stages that have begun by `turn`, one value after the other: those carried, and those given. */
static unsigned list_state(const Peel *p, const State *state, int64_t turn, TileValue **values) {
    unsigned count = 0;
    for (unsigned i = 0; i < p->count; i++) values[count++] = state->carried[i];
    for (size_t k = 0; k < p->given.count; k++)
        for (int64_t far = 1; far <= p->given.items[k].far; far++)
            if (p->given.items[k].stage + far - 1 <= turn) values[count++] = state->given[far - 1][k];
    return count;
}

static State state_of_list(Peel *p, int64_t turn, TileValue *const *values) {
    State state = new_state(p);
    unsigned count = 0;
    for (unsigned i = 0; i < p->count; i++) state.carried[i] = values[count++];
    for (size_t k = 0; k < p->given.count; k++)
        for (int64_t far = 1; far <= p->given.items[k].far; far++)
            if (p->given.items[k].stage + far - 1 <= turn) state.given[far - 1][k] = values[count++];
    return state;
}

/* The values as the ops of a stage take them. */
static void begin_map(Peel *p, int64_t stage, const State *state, TileValue *index, TileMap *map) {
    tile_map_init(map, p->context->scratch);
    if (stage == FIRST_STAGE) tile_map_set(map, p->body->arguments[0], index);
    for (unsigned i = 0; i < p->count; i++)
        if (p->owners[i] == stage) tile_map_set(map, p->body->arguments[1 + i], state->carried[i]);
    for (size_t k = 0; k < p->given.count; k++) {
        int64_t far = stage - p->given.items[k].stage;
        if (far >= 1 && far <= p->given.items[k].far) tile_map_set(map, p->given.items[k].value, state->given[far - 1][k]);
    }
}

/* What is given when all stages up to `last` have run, each an iteration further. */
static void give_on(Peel *p, int64_t last, TileMap *maps, const State *state, State *next) {
    for (size_t k = 0; k < p->given.count; k++) {
        const Given *given = &p->given.items[k];
        if (given->stage <= last) next->given[0][k] = mapped(&maps[given->stage], given->value);
        for (int64_t far = 1; far < given->far; far++) next->given[far][k] = state->given[far - 1][k];
    }
}

/* What is given when this stage alone has run: it hands on what it has taken. */
static void give_behind(Peel *p, int64_t stage, TileMap *maps, const State *state, State *next) {
    for (size_t k = 0; k < p->given.count; k++) {
        const Given *given = &p->given.items[k];
        int64_t far = stage - given->stage;
        for (int64_t i = 0; i < given->far; i++) next->given[i][k] = state->given[i][k];
        if (far == 0) next->given[0][k] = mapped(&maps[stage], given->value);
        if (far > 0 && far < given->far) next->given[far][k] = state->given[far - 1][k];
    }
}

/* Stages from the first to the last of these, either from stage 0 on, of iteration `index`, each of the iteration behind that of the stage
 * before it, or one stage. */
static void build_round(Peel *p, int64_t first, int64_t last, TileValue *index, State *state) {
    TileMap maps[MOST_STAGES];
    State next = new_state(p);
    for (int64_t stage = first; stage <= last; stage++) begin_map(p, stage, state, index, &maps[stage]);
    for (int64_t cluster = 0; cluster < MOST_CLUSTERS; cluster++)
        for (int64_t stage = first; stage <= last; stage++) {
            p->followed = first == FIRST_STAGE && stage > FIRST_STAGE;
            clone_stage(p, stage, cluster, &maps[stage]);
        }
    for (unsigned i = 0; i < p->count; i++) {
        bool runs = p->owners[i] >= first && p->owners[i] <= last;
        next.carried[i] = runs ? mapped(&maps[p->owners[i]], tile_op_operand(p->body->last, i)) : state->carried[i];
    }
    if (first == FIRST_STAGE)
        give_on(p, last, maps, state, &next);
    else
        give_behind(p, first, maps, state, &next);
    *state = next;
}

static TileValue *build_loop_end(Peel *p, TileValue *end, int64_t iterations) {
    TileValue *step = tile_op_named(p->loop, TILE_OPERAND_STEP);
    for (int64_t i = 0; i < iterations; i++) end = tile_build_binary(&p->b, TILE_OP_SUB, end, step);
    return end;
}

/* All stages, from the iteration on that is `p->last` ahead of the loop's first one. */
static void build_loop(Peel *p, State *state) {
    TileValue *lo = tile_op_operand(p->loop, 0), *step = tile_op_named(p->loop, TILE_OPERAND_STEP),
              *hi = build_loop_end(p, tile_op_operand(p->loop, 1), p->last),
              **values = TILE_NEW_ARRAY(p->context->scratch, TileValue *, p->count + MOST_STAGES * p->given.count + 1);
    unsigned all = list_state(p, state, p->last, values);
    TileOp *loop = tile_build_for(&p->b, lo, hi, step, values, all);
    for (unsigned i = 0; i < p->loop->attribute_count; i++) tile_op_set(p->context->module, loop, p->loop->attributes[i]);
    loop->location = p->loop->location;
    TileBuilder outer = p->b;
    p->b = tile_builder_at_end(p->context->module, &loop->regions[0]);
    p->b.location = p->loop->location;
    TileValue *next = loop->regions[0].arguments[0];
    for (int64_t i = 0; i < p->last; i++) next = tile_build_binary(&p->b, TILE_OP_ADD, next, step);
    State inner = state_of_list(p, p->last, loop->regions[0].arguments + 1);
    build_round(p, FIRST_STAGE, p->last, next, &inner);
    list_state(p, &inner, p->last, values);
    tile_build_end(&p->b, TILE_OP_YIELD, values, all);
    outer.error = p->b.error ? p->b.error : outer.error;
    p->b = outer;
    for (unsigned i = 0; i < all; i++) values[i] = &loop->results[i];
    *state = state_of_list(p, p->last, values);
}

/* Sums that the loop gives go on in other registers than those of its products. */
static void move_sums(Peel *p, State *state) {
    TileAttribute attributes[] = {{.key = TILE_ATTRIBUTE_PENDING, .integer = 0}, {.key = TILE_ATTRIBUTE_MOVED, .integer = 1}};
    for (size_t k = 0; k < p->given.count; k++) {
        if (!tile_value_def(p->given.items[k].value, TILE_OP_DOT_WAIT)) continue;
        TileOp *wait = tile_build_op(&p->b, TILE_OP_DOT_WAIT, &state->given[0][k], 1, attributes, 2, NULL, 1);
        state->given[0][k] = tile_op_result(wait, 0);
    }
}

/* Opens the branch that runs if there is an iteration behind this one, begins the stages up to `turn` one behind the other, and the loop
 * behind the last of them; then stages that nothing follows end, one behind the other. Without such an iteration the state stays. */
static void build_from(Peel *p, int64_t turn, TileValue *index, State *state) {
    TileValue *hi = tile_op_operand(p->loop, 1), *step = tile_op_named(p->loop, TILE_OPERAND_STEP),
              **values = TILE_NEW_ARRAY(p->context->scratch, TileValue *, p->count + MOST_STAGES * p->given.count + 1);
    unsigned all = list_state(p, state, turn - 1, values);
    const TileType **types = TILE_NEW_ARRAY(p->context->scratch, const TileType *, all + 1);
    for (unsigned i = 0; i < all; i++) types[i] = values[i]->type;
    TileOp *branch = tile_build_if(&p->b, tile_build_binary(&p->b, TILE_OP_LT, index, hi), types, all);
    TileBuilder outer = p->b;
    p->b = tile_builder_at_end(p->context->module, &branch->regions[1]);
    p->b.location = p->loop->location;
    tile_build_end(&p->b, TILE_OP_YIELD, values, all);
    p->b.block = &branch->regions[0];
    p->b.before = NULL;
    State inner = *state;
    p->moved = turn + 1 < p->last;
    build_round(p, FIRST_STAGE, turn, index, &inner);
    p->moved = false;
    if (turn + 1 < p->last)
        build_from(p, turn + 1, tile_build_binary(&p->b, TILE_OP_ADD, index, step), &inner);
    else
        build_loop(p, &inner);
    if (turn > FIRST_STAGE && turn + 1 == p->last) move_sums(p, &inner);
    for (int64_t stage = turn + 1; stage <= p->last; stage++) build_round(p, stage, stage, NULL, &inner);
    list_state(p, &inner, turn - 1, values);
    tile_build_end(&p->b, TILE_OP_YIELD, values, all);
    outer.error = p->b.error ? p->b.error : outer.error;
    p->b = outer;
    for (unsigned i = 0; i < all; i++) values[i] = tile_op_result(branch, i);
    *state = state_of_list(p, turn - 1, values);
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
    p.last = last_stage(p.body);
    if (p.last == FIRST_STAGE) {
        order_body(p.body);
        return true;
    }
    p.owners = TILE_NEW_ARRAY(context->scratch, int64_t, p.count + 1);
    find_carried(&p);
    find_given(&p);
    p.b = tile_builder_before(context->module, loop);
    p.b.location = loop->location;
    State state = new_state(&p);
    for (unsigned i = 0; i < p.count; i++) state.carried[i] = tile_loop_carried(loop, i);
    build_from(&p, FIRST_STAGE, tile_op_operand(loop, 0), &state);
    for (unsigned i = 0; i < p.count; i++) {
        state.carried[i]->name = loop->results[i].name;
        tile_value_replace(&loop->results[i], state.carried[i]);
    }
    tile_op_erase(loop);
    if (p.b.error) *error = p.b.error;
    return true;
}

TileResult tile_pass_gpu_peel(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    return tile_try_each(context, func, TILE_OP_FOR, try_loop, "gpu-peel");
}
