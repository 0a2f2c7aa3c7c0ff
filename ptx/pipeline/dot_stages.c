/* Purpose: decide that a loop's first product of the next iteration is under way during the second product of this one.
 * Where a product takes what another one of the same iteration gave (attention: weights of scores), the second product
 * and what follows from it belong to stage 1, and all else to stage 0, which runs an iteration ahead. In an iteration
 * of the staged loop come, by clusters: the first product of the next iteration, without its wait; what the second
 * product needs, and that product; the wait for the first one, behind which the second is pending, and what is computed
 * of its sums while tensor cores work on the second; the wait for that; the conversion of what the next second product
 * takes in registers, which the pending one still reads before. Where rows of the first product's sums are reduced before the second one takes
 * what is made of them, as to their maxima, and that takes as long as the second product, only these reductions stand in front of the second wait:
 * exponentials, which keep a unit of few lanes busy, are computed behind it, so that they mix with conversions.
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
 *         %1 = channel_wait %k, %i : ptr<shared, f16[64, 64], swizzle 128 panels>
 *         %y = shared_tile %1 : f16[64, 64]
 *         %2 = dot %x, %y, %acc {instruction = wgmma} : f32[64, 64]
 *         %s = dot_wait %2 {pending = 0} : f32[64, 64]
 *         channel_release %1
 *         %p = convert %s : f16[64, 64]
 *         %3 = channel_wait %v, %i : ptr<shared, f16[64, 64], swizzle 128 panels>
 *         %z = shared_tile %3 : f16[64, 64]
 *         %4 = dot %p, %z, %acc.1 {instruction = wgmma} : f32[64, 64]
 *         %t = dot_wait %4 {pending = 0} : f32[64, 64]
 *         channel_release %3
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
 *       %sum = for %zero, %end, %one, %acc : f32[64, 64] (%i: i64, %acc.1: f32[64, 64]) {
 *         %1 = channel_wait %k, %i {stage = 0, cluster = 0} : ptr<shared, f16[64, 64], swizzle 128 panels>
 *         %y = shared_tile %1 {stage = 0, cluster = 0} : f16[64, 64]
 *         %2 = dot %x, %y, %acc {instruction = wgmma, stage = 0, cluster = 0} : f32[64, 64]
 *         %s = dot_wait %2 {pending = 0, stage = 0, cluster = 2} : f32[64, 64]
 *         channel_release %1 {stage = 0, cluster = 2}
 *         %p = convert %s {stage = 0, cluster = 4} : f16[64, 64]
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
 * Where several warpgroups multiply, they take turns: a turn begins in front of the first product and ends behind the second, so that while
 * tensor cores have those of one warpgroup, others compute with the sums of theirs.
 *
 * Needs: gpu-dot-waits; in partitions, behind gpu-cut. Keeps: tile form. Cost: the square of the loop's ops. */
#include "lang/ir/operands.h"
#include "lowering/each.h"
#include "ptx/passes.h"
#include "ptx/target/dot.h"

/* In an iteration of the staged loop, from the first to the last. */
enum { CLUSTER_FIRST_DOT, CLUSTER_SECOND_DOT, CLUSTER_FIRST_WAIT, CLUSTER_SECOND_WAIT, CLUSTER_OPERAND };
enum { FIRST_STAGE, SECOND_STAGE };

typedef struct Stages {
    TilePassContext *context;
    TileOp *loop;
    TileBlock *body;
    TileOp *first, *second; /* products */
    TileOp *first_wait, *second_wait;
    TileMap dependent; /* TileOp of the body to itself: it depends on the second product */
    TileMap reduced;   /* likewise: what the second product takes needs rows of the first one's sums reduced, and these the op */
} Stages;

/* ---- dependence ---- */

static TileOp *wait_of(const TileOp *dot) {
    const TileUse *use = dot->results[0].first_use;
    return use && !use->next && use->user->id == TILE_OP_DOT_WAIT && use->user->block == dot->block ? use->user : NULL;
}

/* The op of the body that is, or contains, the user. */
static TileOp *op_of_body(const Stages *s, TileOp *op) {
    while (op && op->block != s->body) op = op->block->op;
    return op;
}

static void mark(Stages *s, TileOp *op);

static void mark_users(Stages *s, const TileValue *value) {
    for (const TileUse *use = value->first_use; use; use = use->next) {
        TileOp *user = op_of_body(s, use->user);
        if (!user) continue;
        if (user == s->body->last)
            mark_users(s, s->body->arguments[1 + use->index]);
        else
            mark(s, user);
    }
}

/* The op, and what uses its results in this or a later iteration. */
static void mark(Stages *s, TileOp *op) {
    if (tile_map_get(&s->dependent, op)) return;
    tile_map_set(&s->dependent, op, op);
    for (unsigned i = 0; i < op->result_count; i++) mark_users(s, &op->results[i]);
}

static bool is_dependent(const Stages *s, const TileOp *op) { return tile_map_get(&s->dependent, op) != NULL; }

/* Is everything that uses the op in the second stage? What clears or releases a slot goes with those that read it. */
static bool serves_second(const Stages *s, const TileOp *op) {
    bool any = false;
    for (unsigned i = 0; i < op->result_count; i++)
        for (const TileUse *use = op->results[i].first_use; use; use = use->next, any = true) {
            const TileOp *user = op_of_body(s, use->user);
            if (tile_op_is(user, TILE_OP_CHANNEL_RELEASE) || tile_op_is(user, TILE_OP_CLEAR_TILE)) continue;
            if (!user || user == s->body->last || !is_dependent(s, user)) return false;
        }
    return any;
}

/* A slot of shared memory that only the second product reads, or a tile that is larger than what it is made of. */
static bool belongs_to_second(const Stages *s, const TileOp *op) {
    if (!serves_second(s, op)) return false;
    if (op->id == TILE_OP_CHANNEL_WAIT || op->id == TILE_OP_SHARED_TILE) return true;
    return op->id == TILE_OP_BROADCAST || op->id == TILE_OP_RESHAPE || op->id == TILE_OP_SPLAT ||
           (op->id == TILE_OP_PERMUTE && gpu_stays_shared(op)) || op->id == TILE_OP_CONST;
}

/* ---- which loops ---- */

static bool depends_on(const Stages *s, const TileOp *op, const TileValue *on) {
    for (unsigned i = 0; i < op->operand_count; i++) {
        const TileValue *value = tile_op_operand(op, i);
        if (value == on) return true;
        bool inside = value->op && value->op->block == s->body;
        if (inside && depends_on(s, value->op, on)) return true;
    }
    return false;
}

static bool find_products(Stages *s) {
    unsigned count = 0;
    for (TileOp *op = s->body->first; op; op = op->next) {
        if (op->id == TILE_OP_FOR || op->id == TILE_OP_WHILE) return false;
        if (op->id != TILE_OP_DOT || !gpu_dot_is_wgmma(op)) continue;
        *(count ? &s->second : &s->first) = op;
        count++;
    }
    if (count != 2) return false;
    s->first_wait = wait_of(s->first);
    s->second_wait = wait_of(s->second);
    return s->first_wait && s->second_wait && depends_on(s, s->second, &s->first_wait->results[0]);
}

/* Does the second stage read what lies in the slot, as it lies or with its axes exchanged? */
static bool is_read_late(const Stages *s, const TileValue *value) {
    for (const TileUse *use = value->first_use; use; use = use->next) {
        TileOp *user = op_of_body(s, use->user);
        if (user && is_dependent(s, user)) return true;
        bool same = use->user->id == TILE_OP_SHARED_TILE || use->user->id == TILE_OP_PERMUTE;
        if (same && is_read_late(s, &use->user->results[0])) return true;
    }
    return false;
}

/* Is the slot released with the first product, and read by the second, which runs an iteration later? */
static bool is_released_early(const Stages *s, const TileOp *op) {
    return op->id == TILE_OP_CHANNEL_RELEASE && !is_dependent(s, op) && is_read_late(s, tile_op_operand(op, 0));
}

static const char *why_not(Stages *s) {
    mark(s, s->second);
    for (bool more = true; more;) {
        more = false;
        for (TileOp *op = s->body->last; op; op = op->previous)
            if (!is_dependent(s, op) && op != s->body->last && belongs_to_second(s, op)) {
                mark(s, op);
                more = true;
            }
    }
    if (is_dependent(s, s->first)) return "the first product depends on the second of the iteration before";
    for (const TileOp *op = s->body->first; op != s->body->last; op = op->next) {
        bool effect = !tile_op_is_pure(op) && op->id != TILE_OP_CHANNEL_WAIT && op->id != TILE_OP_SHARED_TILE &&
                      op->id != TILE_OP_CHANNEL_RELEASE && op->id != TILE_OP_DOT_WAIT && op->id != TILE_OP_LOAD_TILE &&
                      op->id != TILE_OP_CLEAR_TILE;
        if (effect) return "it has other effects, whose order would change";
        if (is_released_early(s, op)) return "both products read one tile in shared memory";
    }
    return NULL;
}

/* ---- the decision ---- */

static bool comes_before(const TileOp *op, const TileOp *other) {
    for (const TileOp *next = op; next; next = next->next)
        if (next == other) return true;
    return false;
}

/* Does the op give the second product an operand in registers, as a conversion of 32 bits to less, and nothing else? */
static bool gives_operand(const Stages *s, const TileOp *op) {
    bool narrow = op->result_count == 1 && tile_type_is_tile(op->results[0].type) && op->results[0].first_use &&
                  tile_scalar_bytes(op->results[0].type->scalar) < sizeof(float);
    if (!narrow || !tile_op_is_pure(op)) return false;
    for (const TileUse *use = op->results[0].first_use; use; use = use->next)
        if (use->user != s->second && (use->user->block != s->body || !gives_operand(s, use->user))) return false;
    return true;
}

/* Is the op, which may be NULL, computed of the first product's sums, and not seen yet? */
static bool is_new(const Stages *s, TileMap *seen, TileOp *op) {
    if (!op || op->block != s->body || tile_map_get(seen, op) || comes_before(op, s->first)) return false;
    tile_map_set(seen, op, op);
    return true;
}

static void mark_reduced(Stages *s, TileOp *op) {
    if (!is_new(s, &s->reduced, op)) return;
    for (unsigned i = 0; i < op->operand_count; i++) mark_reduced(s, tile_op_operand(op, i)->op);
}

/* Looks for reductions among what the op is computed of. */
static void find_reduced(Stages *s, TileMap *seen, TileOp *op) {
    if (!is_new(s, seen, op)) return;
    if (op->id == TILE_OP_REDUCE) mark_reduced(s, op);
    for (unsigned i = 0; i < op->operand_count; i++) find_reduced(s, seen, tile_op_operand(op, i)->op);
}

/* Do reductions of the first product's rows hide the second product? A warpgroup's maximum of an element takes two cycles, and as many again go by
 * until lanes have exchanged theirs; in a cycle tensor cores multiply 4096 pairs of bytes, or half as many of 16 bits. */
static bool is_hidden(const Stages *s) {
    enum { PAIRS_OF_BYTES = 4096, GROUP_ROWS = 64, CYCLES = 4 };
    const TileType *taken = tile_op_operand(s->second, 0)->type, *sums = s->second->results[0].type;
    int64_t each = GROUP_ROWS * taken->extent[1] / TILE_WARPGROUP_THREADS;
    return GROUP_ROWS * taken->extent[1] * sums->extent[1] * tile_scalar_bytes(taken->scalar) / PAIRS_OF_BYTES <= CYCLES * each;
}

/* Is the op, of the first stage, computed behind both waits? */
static bool is_behind_both(const Stages *s, const TileOp *op) {
    bool behind = s->reduced.count && op->id != TILE_OP_DOT_WAIT && !comes_before(op, s->first) && !tile_map_get(&s->reduced, op);
    return behind || gives_operand(s, op);
}

/* Is what lies in the slot read behind both waits? It is released there then. */
static bool is_read_behind_both(const Stages *s, const TileValue *slot) {
    for (const TileUse *use = slot->first_use; use; use = use->next) {
        const TileOp *user = op_of_body(s, use->user);
        if (!user || user->id == TILE_OP_CHANNEL_RELEASE || is_dependent(s, user)) continue;
        if (is_behind_both(s, user) || (gpu_stays_shared(user) && is_read_behind_both(s, &user->results[0]))) return true;
    }
    return false;
}

/* A second product whose sums are added to others (8-bit floats) is waited for first, if no rows are reduced meanwhile: these sums, and what it takes
 * in registers, would otherwise lie beside all that is computed of the first one's. */
static void set_stage(const Stages *s, TileOp *op) {
    bool second = is_dependent(s, op), early = gpu_dot_promotes(s->second) && !s->reduced.count;
    int64_t cluster = second ? (comes_before(op, s->second) ? CLUSTER_SECOND_DOT : early ? CLUSTER_FIRST_WAIT : CLUSTER_SECOND_WAIT)
                             : (comes_before(op, s->first) ? CLUSTER_FIRST_DOT : early ? CLUSTER_SECOND_WAIT : CLUSTER_FIRST_WAIT);
    bool behind = op->id == TILE_OP_CHANNEL_RELEASE ? is_read_behind_both(s, tile_op_operand(op, 0)) : is_behind_both(s, op);
    if (!second && !early && behind) cluster = CLUSTER_OPERAND;
    tile_op_set_integer(s->context->module, op, TILE_ATTRIBUTE_STAGE, second ? SECOND_STAGE : FIRST_STAGE);
    tile_op_set_integer(s->context->module, op, TILE_ATTRIBUTE_CLUSTER, cluster);
}

/* ---- turns ---- */

/* Warpgroups of a block that multiply: 1: there is one, or they are no partition. */
static int64_t count_groups(const Stages *s) {
    enum { GROUP_WARPS = 4 };
    const TileOp *op = s->loop->block->op;
    while (op && op->id != TILE_OP_PARTITIONS) op = op->block->op;
    return op ? tile_op_get(op, TILE_ATTRIBUTE_WARPS)->integers[0] / GROUP_WARPS : 1;
}

static TileOp *build_turn(TileBuilder *b, TileOpId id, TileValue *place, int64_t groups, int64_t cluster) {
    TileAttribute attributes[] = {{.key = TILE_ATTRIBUTE_TURNS, .integer = groups},
                                  {.key = TILE_ATTRIBUTE_STAGE, .integer = FIRST_STAGE},
                                  {.key = TILE_ATTRIBUTE_CLUSTER, .integer = cluster}};
    return tile_build_op(b, id, &place, 1, attributes, 3, NULL, 0);
}

/* Warpgroups begin both products one after the other: while tensor cores work on those of one, others compute with the sums of theirs. The
 * number of the slot that the first product reads is even and odd in turn. */
static void take_turns(const Stages *s, const char **error) {
    bool transposed;
    int64_t groups = count_groups(s);
    const TileOp *shared = gpu_find_shared(tile_op_operand(s->first, 1), &transposed);
    const TileOp *wait = shared ? tile_op_operand(shared, 0)->op : NULL;
    if (groups < 2 || !tile_op_is(wait, TILE_OP_CHANNEL_WAIT) || wait->block != s->body || wait->operand_count < 2) return;
    TileBuilder b = tile_builder_before(s->context->module, s->first);
    b.location = s->loop->location;
    build_turn(&b, TILE_OP_TURN_BEGIN, tile_op_operand(wait, 1), groups, CLUSTER_FIRST_DOT);
    b.before = s->first_wait;
    build_turn(&b, TILE_OP_TURN_END, tile_op_operand(wait, 1), groups, CLUSTER_FIRST_WAIT);
    if (b.error) *error = b.error;
}

static bool try_loop(TilePassContext *context, TileOp *loop, const char **error) {
    Stages s = {.context = context, .loop = loop, .body = &loop->regions[0]};
    tile_map_init(&s.dependent, context->scratch);
    tile_map_init(&s.reduced, context->scratch);
    if (tile_loop_is_of_programs(loop) || !find_products(&s)) return false;
    if (tile_op_get(s.first, TILE_ATTRIBUTE_STAGE)) return false;
    const char *why = why_not(&s);
    if (why) {
        tile_pass_remark(context, loop, TILE_DECISION_PRODUCTS_IN_TURN, "the loop", "%s", why);
        return false;
    }
    TileMap seen;
    tile_map_init(&seen, context->scratch);
    if (is_hidden(&s)) find_reduced(&s, &seen, tile_op_operand(s.second, 0)->op);
    for (TileOp *op = s.body->first; op != s.body->last; op = op->next) set_stage(&s, op);
    take_turns(&s, error);
    tile_pass_remark(context, loop, TILE_DECISION_PRODUCTS_OVERLAP, "the loop", "two products are under way at a time");
    return true;
}

TileResult tile_pass_gpu_dot_stages(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    return tile_try_each(context, func, TILE_OP_FOR, try_loop, "gpu-dot-stages");
}
