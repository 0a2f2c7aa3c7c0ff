/* Purpose: decide that each iteration of a loop of products begins at the end of the iteration before it. The head of
 * an iteration waits for its copies, begins those of a later iteration and loads the first fragments; at the start of
 * the body, it would leave tensor cores idle. As stage 0 it runs between the last fragments' loads and their products,
 * and the first fragments are loop-carried. Its copies shall then be interleaved with these products.
 *
 * Before:
 *     func phase machine @k.0(%from: ptr<global>, %c: ptr<global>, %n: i64, %shared: ptr<shared>) threads = 32 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %bytes = const {value = 1024} : i64
 *       %chunk = const {value = 16} : i32
 *       %first = const {value = 0.0} : vec<4 x f32>
 *       %sums, %end = for %zero, %n, %one, %first, %zero : vec<4 x f32>, i64 (%k: i64, %acc: vec<4 x f32>, %slot: i64)
 *           {
 *         %next = sub %one, %slot : i64
 *         copy_wait {pending = 0}
 *         barrier
 *         %later = add %k, %one : i64
 *         %some = lt %later, %n : bool
 *         if %some {ahead = 1} {
 *           %0 = mul %next, %bytes : i64
 *           %to = ptr_add %shared, %0 : ptr<shared>
 *           %1 = mul %later, %bytes : i64
 *           %place = ptr_add %from, %1 : ptr<global>
 *           copy_async %to, %place, %chunk {bytes = 16}
 *           yield
 *         } {
 *           yield
 *         }
 *         copy_commit {ahead = 1}
 *         %2 = mul %slot, %bytes : i64
 *         %p = ptr_add %shared, %2 : ptr<shared>
 *         %a = load_matrix %p : vec<8 x f16>
 *         %b = load_matrix %p : vec<4 x f16>
 *         %s = mma %a, %b, %acc : vec<4 x f32>
 *         %b.1 = load_matrix %p {transposed = 1} : vec<4 x f16>
 *         %t = mma %a, %b.1, %s : vec<4 x f32>
 *         yield %t, %next
 *       }
 *       store %sums, %c
 *       return
 *     }
 * After:
 *     func phase machine @k.0(%from: ptr<global>, %c: ptr<global>, %n: i64, %shared: ptr<shared>) threads = 32 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %bytes = const {value = 1024} : i64
 *       %chunk = const {value = 16} : i32
 *       %first = const {value = 0.0} : vec<4 x f32>
 *       %sums, %end = for %zero, %n, %one, %first, %zero : vec<4 x f32>, i64 (%k: i64, %acc: vec<4 x f32>, %slot: i64)
 *           {
 *         %next = sub %one, %slot : i64
 *         copy_wait {pending = 0, stage = 0, cluster = 0}
 *         barrier {stage = 0, cluster = 0}
 *         %later = add %k, %one : i64
 *         %some = lt %later, %n : bool
 *         if %some {stage = 0, cluster = 2, ahead = 1, spread = 1} {
 *           %0 = mul %next, %bytes : i64
 *           %to = ptr_add %shared, %0 : ptr<shared>
 *           %1 = mul %later, %bytes : i64
 *           %place = ptr_add %from, %1 : ptr<global>
 *           copy_async %to, %place, %chunk {bytes = 16}
 *           yield
 *         } {
 *           yield
 *         }
 *         copy_commit {stage = 0, cluster = 3, ahead = 1}
 *         %2 = mul %slot, %bytes : i64
 *         %p = ptr_add %shared, %2 : ptr<shared>
 *         %a = load_matrix %p {stage = 0, cluster = 1} : vec<8 x f16>
 *         %b = load_matrix %p {stage = 0, cluster = 1} : vec<4 x f16>
 *         %s = mma %a, %b, %acc : vec<4 x f32>
 *         %b.1 = load_matrix %p {transposed = 1} : vec<4 x f16>
 *         %t = mma %a, %b.1, %s {stage = 1, cluster = 4} : vec<4 x f32>
 *         yield %t, %next
 *       }
 *       store %sums, %c
 *       return
 *     }
 * The order of all memory accesses is kept, but for loads of fragments and copies to other slots, and for copies and
 * the accesses beside them in a branch, which are to other addresses. After the last iteration a head runs once more:
 * it copies nothing, and the fragments that it loads are not used. If the body has another barrier, which was between
 * these loads and the ops after the loop, a barrier is inserted after the loop, unless one is there before memory is touched.
 *
 * Needs: gpu-machine; `ahead` on ops that gpu-expand cloned for later iterations. Keeps: machine form. Cost: linear in
 * the body.
 */
#include "ptx/pipeline/copies.h"
#include "lowering/each.h"
#include "ptx/passes.h"

enum { MOST_LOADS = 64, MOST_LATER = 8 };

/* In an iteration of the pipelined loop, from the first to the last. */
enum { CLUSTER_ARRIVAL, CLUSTER_LOADS, CLUSTER_COPIES, CLUSTER_COMMIT, CLUSTER_PRODUCTS };

typedef struct Rotation {
    TilePassContext *context;
    TileOp *loop;
    TileBlock *body;
    TileOp *wait, *barrier, *later[MOST_LATER]; /* the head: for this iteration's copies; ops for a later iteration */
    unsigned later_count;
    TileOp *behind;            /* the op after the head */
    TileOp *first, *last;      /* products: the first one, and the first of the last step */
    TileOp *loads[MOST_LOADS]; /* of the first step's fragments */
    unsigned count;
} Rotation;

/* ---- the parts of the body ---- */

static bool is_effect(const TileOp *op) { return !tile_op_is_pure(op); }

static bool is_bare_if(const TileOp *op) { return op->id == TILE_OP_IF && op->result_count == 0; }

static bool does_nothing(const TileBlock *block) {
    for (const TileOp *op = block->first; op; op = op->next)
        if (op->id != TILE_OP_YIELD && is_effect(op)) return false;
    return true;
}

/* Is the op for a later iteration: a commit of a group, or copies under the condition that the iteration exists? */
static bool is_for_later(const TileOp *op) {
    if (tile_op_integer(op, TILE_ATTRIBUTE_AHEAD, 0) == 0) return false;
    return op->id == TILE_OP_COPY_COMMIT || (is_bare_if(op) && does_nothing(&op->regions[1]));
}

/* The first ops of the body with effects. */
static bool find_head(Rotation *r) {
    TileOp *op = r->body->first;
    for (; op; op = op->next) {
        if (!is_effect(op)) continue;
        if (!r->wait && op->id == TILE_OP_COPY_WAIT)
            r->wait = op;
        else if (r->wait && !r->barrier && op->id == TILE_OP_BARRIER)
            r->barrier = op;
        else if (r->barrier && r->later_count < MOST_LATER && is_for_later(op))
            r->later[r->later_count++] = op;
        else
            break;
    }
    r->behind = op;
    return op && r->later_count && r->later[r->later_count - 1]->id == TILE_OP_COPY_COMMIT;
}

static bool is_added_to(const Rotation *r, const TileOp *mma) {
    for (const TileUse *use = mma->results[0].first_use; use; use = use->next)
        if (use->user->id == TILE_OP_MMA && use->user->block == r->body && use->index == 2) return true;
    return false;
}

/* The products of the last step are those whose sums no other product of the body adds to, with only pure ops between
 * and after them. */
static bool find_products(Rotation *r) {
    for (TileOp *op = r->behind; op && !r->first; op = op->next)
        if (op->id == TILE_OP_MMA) r->first = op;
    for (TileOp *op = r->body->last; r->first && op != r->first->previous; op = op->previous) {
        if (op->id == TILE_OP_YIELD) continue;
        if (op->id != TILE_OP_MMA && is_effect(op)) break;
        if (op->id == TILE_OP_MMA && is_added_to(r, op)) break;
        if (op->id == TILE_OP_MMA) r->last = op;
        if (op == r->first) break;
    }
    return r->first && r->last;
}

/* Elements of 8 bits should be loaded late: one by one they need four times the registers that they fill. */
static bool is_fragment_load(const TileOp *op) {
    if (op->id == TILE_OP_LOAD_MATRIX) return true;
    return op->id == TILE_OP_LOAD && op->operand_count == 1 &&
           tile_op_operand(op, 0)->type->space == TILE_SPACE_SHARED &&
           tile_scalar_bytes(op->results[0].type->scalar) >= 4;
}

/* Is the value computed by pure ops of the body from values ahead of the loop and from arguments? The induction
 * variable is one of these only if `numbered`. */
static bool is_computed(const Rotation *r, const TileValue *value, bool numbered) {
    if (tile_value_outside(value, r->loop)) return true;
    if (!value->op) return value->block == r->body && (numbered || value->index > 0);
    if (value->op->block != r->body || value->op->region_count || is_effect(value->op)) return false;
    for (unsigned i = 0; i < value->op->operand_count; i++)
        if (!is_computed(r, tile_op_operand(value->op, i), numbered)) return false;
    return true;
}

/* Loads of fragments before the first product and before all other ops with effects. */
static bool find_loads(Rotation *r) {
    for (TileOp *op = r->behind; op != r->first; op = op->next) {
        if (!is_effect(op)) continue;
        if (!is_fragment_load(op)) break;
        if (r->count == MOST_LOADS || !is_computed(r, tile_op_operand(op, 0), false)) return false;
        r->loads[r->count++] = op;
    }
    return r->count > 0;
}

/* ---- values that are available before the last products ---- */

/* Does the predicate hold for all values of the body that the op and its regions use? */
typedef struct Taken {
    const Rotation *rotation;
    bool (*holds)(const Rotation *r, const TileValue *value);
    bool all;
} Taken;

static void look_at_operands(TileOp *op, void *state) {
    Taken *taken = state;
    for (unsigned i = 0; i < op->operand_count; i++) {
        const TileValue *value = tile_op_operand(op, i);
        if (tile_value_block(value) == taken->rotation->body) taken->all &= taken->holds(taken->rotation, value);
    }
}

static void look_at(Taken *taken, TileOp *op) {
    look_at_operands(op, taken);
    for (unsigned i = 0; i < op->region_count; i++) tile_block_walk(&op->regions[i], look_at_operands, taken);
}

static bool is_computed_by_number(const Rotation *r, const TileValue *value) { return is_computed(r, value, true); }

static bool can_follow(const Rotation *r) {
    Taken taken = {r, is_computed_by_number, true};
    for (unsigned i = 0; i < r->later_count; i++) look_at(&taken, r->later[i]);
    return taken.all;
}

/* A value that the next iteration begins with must be computed before the last step. */
static bool is_known_early(const Rotation *r, const TileValue *value) {
    if (tile_value_outside(value, r->loop) || !value->op) return true;
    for (const TileOp *op = r->last; op; op = op->next)
        if (op == value->op) return false;
    return value->op->block == r->body;
}

/* Only arguments that the head uses must be available; others may be computed later. */
static bool uses_only_known(const Rotation *r, const TileValue *value) {
    if (tile_value_outside(value, r->loop)) return true;
    if (!value->op) return value->index == 0 || is_known_early(r, tile_op_operand(r->body->last, value->index - 1));
    for (unsigned i = 0; i < value->op->operand_count; i++)
        if (!uses_only_known(r, tile_op_operand(value->op, i))) return false;
    return true;
}

static bool is_known(const Rotation *r) {
    Taken taken = {r, uses_only_known, true};
    for (unsigned i = 0; i < r->count; i++) look_at(&taken, r->loads[i]);
    for (unsigned i = 0; i < r->later_count; i++) look_at(&taken, r->later[i]);
    return taken.all;
}

/* ---- the decision ---- */

static void set_stage(Rotation *r, TileOp *op, int64_t stage, int64_t cluster) {
    tile_op_set_integer(r->context->module, op, TILE_ATTRIBUTE_STAGE, stage);
    tile_op_set_integer(r->context->module, op, TILE_ATTRIBUTE_CLUSTER, cluster);
}

static void set_stages(Rotation *r) {
    set_stage(r, r->wait, 0, CLUSTER_ARRIVAL);
    set_stage(r, r->barrier, 0, CLUSTER_ARRIVAL);
    for (unsigned i = 0; i < r->count; i++) set_stage(r, r->loads[i], 0, CLUSTER_LOADS);
    for (unsigned i = 0; i < r->later_count; i++) {
        TileOp *op = r->later[i];
        bool copies = op->id == TILE_OP_IF;
        set_stage(r, op, 0, copies ? CLUSTER_COPIES : CLUSTER_COMMIT);
        if (copies) tile_op_set_integer(r->context->module, op, TILE_ATTRIBUTE_SPREAD, 1);
    }
    for (TileOp *op = r->last; op; op = op->next)
        if (op->id == TILE_OP_MMA) set_stage(r, op, 1, CLUSTER_PRODUCTS);
}

static void count_barrier(TileOp *op, void *count) { *(unsigned *)count += op->id == TILE_OP_BARRIER; }

/* Do threads meet behind the loop, or end, before they touch memory? */
static bool meets_behind(const TileOp *loop) {
    const TileOp *op = loop->next;
    while (op && tile_op_is_pure(op)) op = op->next;
    return op && (tile_op_is_block_barrier(op) || op->id == TILE_OP_RETURN);
}

/* Ops after the loop may write memory that the last head has read. */
static void build_last_barrier(Rotation *r, const char **error) {
    unsigned barriers = 0;
    tile_block_walk(r->body, count_barrier, &barriers);
    if (barriers == 1 || meets_behind(r->loop)) return;
    TileBuilder b = tile_builder_before(r->context->module, r->loop->next);
    b.location = r->loop->location;
    gpu_build_plain(&b, TILE_OP_BARRIER);
    if (b.error) *error = b.error;
}

/* Is it a loop of products that waits for its copies? No other loop has anything to begin ahead. */
static bool waits_for_copies(const Rotation *r) {
    bool waits = false, multiplies = false;
    for (const TileOp *op = r->body->first; op; op = op->next) {
        waits |= op->id == TILE_OP_COPY_WAIT;
        multiplies |= op->id == TILE_OP_MMA;
    }
    return waits && multiplies;
}

static const char *why_not(Rotation *r) {
    if (!find_head(r)) return "other ops precede its copies, or no copy is started ahead";
    if (!find_products(r)) return "other ops follow its products";
    if (!find_loads(r)) return "the first product's operands do not come from shared memory alone";
    if (!can_follow(r)) return "the copies of a later iteration depend on what an earlier one loads";
    if (!is_known(r)) return "what the next iteration needs first is known only after the products";
    return NULL;
}

static bool try_loop(TilePassContext *context, TileOp *loop, const char **error) {
    Rotation r = {.context = context, .loop = loop, .body = &loop->regions[0]};
    if (!waits_for_copies(&r)) return false;
    const char *why = why_not(&r);
    if (why) {
        tile_pass_remark(context, loop, TILE_DECISION_NO_FRAGMENTS_AHEAD, "the loop", "%s", why);
        return false;
    }
    tile_pass_remark(context, loop, TILE_DECISION_FRAGMENTS_AHEAD, "the loop", "it carries %u fragments", r.count);
    set_stages(&r);
    build_last_barrier(&r, error);
    return true;
}

TileResult tile_pass_gpu_schedule(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE || !func->threads) return TILE_RESULT_UNCHANGED;
    return tile_try_each(context, func, TILE_OP_FOR, try_loop, "gpu-schedule");
}
