/* Purpose: expand the software pipeline of a loop whose ops have stages. An iteration of the pipelined loop runs the
 * last stage for its own index, and stage 0 for an iteration that is as many later as the last stage's number; ahead of
 * the loop, a prologue runs stage 0 for the first iterations. There is no epilogue: past the last iteration stage 0
 * copies nothing, but still advances slots of channels and reads fragments, whose values are not used.
 *
 * Before:
 *     func phase tile @k.0(%a: tensor<f16, 2, in> {noalias}, %c: tensor<f32, 2, out> {noalias}, %end: i64) threads = 64
 *                          {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 16} : i64
 *       %acc = const {value = 0.0} : f32[16, 16]
 *       %channel = channel {slots = 2} : channel<f16[16, 16], swizzle 32 rows>
 *       %sum = for %zero, %end, %n, %acc : f32[16, 16] (%k: i64, %acc.1: f32[16, 16]) {
 *         %free = channel_acquire %channel {stage = 0, cluster = 1} : ptr<shared, f16[16, 16], swizzle 32 rows>
 *         copy_tile %a, %free, %zero, %one, %zero, %n, %k, %one, %zero, %n {access = [range, range], types = [f16[16,
 *             16]], stage = 0, cluster = 2}
 *         channel_commit %free {stage = 0, cluster = 3}
 *         %full = channel_wait %channel {stage = 1, cluster = 0} : ptr<shared, f16[16, 16], swizzle 32 rows>
 *         %x = shared_tile %full : f16[16, 16]
 *         %y = permute %x {axes = [1, 0]} : f16[16, 16]
 *         %acc.2 = dot %x, %y, %acc.1 {instruction = mma} : f32[16, 16]
 *         channel_release %full
 *         yield %acc.2
 *       }
 *       store_tile %c, %sum, %zero, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]}
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%a: tensor<f16, 2, in> {noalias}, %c: tensor<f32, 2, out> {noalias}, %end: i64) threads = 64
 *                          {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 16} : i64
 *       %acc = const {value = 0.0} : f32[16, 16]
 *       %channel = channel {slots = 2} : channel<f16[16, 16], swizzle 32 rows>
 *       %0 = const {value = 1} : i64
 *       %1 = const {value = 1} : i64
 *       %2 = const {value = 0} : i64
 *       for %2, %1, %0 (%3: i64) {
 *         %4 = const {value = 16} : i64
 *         %5 = mul %3, %4 : i64
 *         %6 = sub %end, %zero : i64
 *         %7 = bitcast %6 : u64
 *         %8 = bitcast %5 : u64
 *         %9 = gt %7, %8 : bool
 *         %10 = lt %zero, %end : bool
 *         %11 = and %10, %9 : bool
 *         %12 = add %zero, %5 : i64
 *         %free = channel_acquire %channel, %3 : ptr<shared, f16[16, 16], swizzle 32 rows>
 *         if %11 {
 *           copy_tile %a, %free, %zero, %one, %zero, %n, %12, %one, %zero, %n {access = [range, range], types =
 *               [f16[16, 16]]}
 *           yield
 *         } {
 *           yield
 *         }
 *         channel_commit %free
 *         yield
 *       }
 *       %13 = const {value = 0} : i64
 *       %sum, %14 = for %zero, %end, %n, %acc, %13 : f32[16, 16], i64 (%k: i64, %acc.1: f32[16, 16], %15: i64) {
 *         %16 = const {value = 0} : i64
 *         %17 = const {value = 1} : i64
 *         %18 = const {value = 1} : i64
 *         %19 = sub %15, %18 : i64
 *         %20 = eq %15, %16 : bool
 *         %21 = select %20, %17, %19 : i64
 *         %22 = const {value = 1} : i64
 *         %23 = eq %15, %22 : bool
 *         %24 = const {value = 1} : i64
 *         %25 = add %15, %24 : i64
 *         %26 = const {value = 0} : i64
 *         %27 = select %23, %26, %25 : i64
 *         %full = channel_wait %channel, %15 {pending = 0} : ptr<shared, f16[16, 16], swizzle 32 rows>
 *         %28 = const {value = 16} : i64
 *         %29 = sub %end, %k : i64
 *         %30 = bitcast %29 : u64
 *         %31 = bitcast %28 : u64
 *         %32 = gt %30, %31 : bool
 *         %33 = add %k, %28 : i64
 *         %free.1 = channel_acquire %channel, %21 {ahead = 1} : ptr<shared, f16[16, 16], swizzle 32 rows>
 *         if %32 {ahead = 1} {
 *           copy_tile %a, %free.1, %zero, %one, %zero, %n, %33, %one, %zero, %n {access = [range, range], types =
 *               [f16[16, 16]]}
 *           yield
 *         } {
 *           yield
 *         }
 *         channel_commit %free.1 {ahead = 1}
 *         %x = shared_tile %full : f16[16, 16]
 *         %y = permute %x {axes = [1, 0]} : f16[16, 16]
 *         %acc.2 = dot %x, %y, %acc.1 {instruction = mma} : f32[16, 16]
 *         channel_release %full
 *         yield %acc.2, %27
 *       }
 *       store_tile %c, %sum, %zero, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]}
 *       return
 *     }
 * Within an iteration, ops with lower clusters come first, and stage 0 comes before all ops without a cluster; if ops
 * of the last stage have a higher cluster, stage 0 comes directly before the first of them. Values that stage 0 defines
 * for other ops become loop-carried, and stage 0 then is for the next iteration.
 *
 * Needs: stage 0 and one other. Ops of stage 0 depend, in their own iteration, only on values that are computed from
 * the induction variable, or, if they define values for others, on values that are available at their new position.
 * Keeps: the form. Cost: linear in the body; the prologue is a copy of stage 0. */
#include "ptx/pipeline/copies.h"
#include "lang/ir/operands.h"
#include "lowering/each.h"
#include "ptx/pipeline/loop.h"
#include "ptx/passes.h"

typedef TILE_LIST(TileOp *) Ops;
typedef TILE_LIST(TileValue *) Values;

typedef struct Expansion {
    TilePassContext *context;
    TileOp *loop;
    TileBlock *body;
    int64_t ahead;  /* iterations */
    Ops early, low; /* of stage 0; of the last stage, with lower clusters; both by cluster */
    TileOp *behind; /* of the last stage, with a higher cluster; NULL: none */
    Values given;   /* results of early ops with other users */
    int64_t slots;  /* of each channel whose slots are counted; 0: there is none */
    TileBuilder b;
    const char *error;
} Expansion;

/* The iteration for which early ops are cloned. */
typedef struct Iteration {
    GpuCopies copies;
    TileValue *number, *exists, *slot; /* exists: NULL until it is needed */
    TileValue *end;
    bool known_inside; /* operands of a branch's ops only are cloned inside of the branch */
    bool marks;
} Iteration;

/* ---- stages and clusters ---- */

static int64_t stage_of(const TileOp *op) { return tile_op_integer(op, TILE_ATTRIBUTE_STAGE, -1); }
static int64_t cluster_of(const TileOp *op) { return tile_op_integer(op, TILE_ATTRIBUTE_CLUSTER, 0); }
static bool is_early(const Expansion *e, const TileOp *op) { return op->block == e->body && stage_of(op) == 0; }

/* Inserts the op after those of the same cluster. */
static void add_by_cluster(Expansion *e, Ops *ops, TileOp *op) {
    tile_list_push(e->context->scratch, ops, op);
    size_t at = ops->count - 1;
    for (; at && cluster_of(ops->items[at - 1]) > cluster_of(op); at--) ops->items[at] = ops->items[at - 1];
    ops->items[at] = op;
}

static bool find_early(Expansion *e) {
    for (TileOp *op = e->body->first; op; op = op->next) {
        if (stage_of(op) > e->ahead) e->ahead = stage_of(op);
        if (stage_of(op) == 0) add_by_cluster(e, &e->early, op);
    }
    return e->early.count && e->ahead > 0;
}

static void find_late(Expansion *e) {
    int64_t first = cluster_of(e->early.items[0]), last = cluster_of(e->early.items[e->early.count - 1]);
    for (TileOp *op = e->body->first; op; op = op->next) {
        int64_t stage = stage_of(op), cluster = cluster_of(op);
        if (stage <= 0) continue;
        if (stage != e->ahead) e->error = "a loop has two stages";
        if (cluster < first) add_by_cluster(e, &e->low, op);
        if (cluster > last && !e->behind) e->behind = op;
        if (cluster >= first && cluster <= last) e->error = "a cluster is of one stage";
    }
}

static void find_given(Expansion *e) {
    for (size_t i = 0; i < e->early.count; i++)
        for (unsigned k = 0; k < e->early.items[i]->result_count; k++) {
            TileValue *value = &e->early.items[i]->results[k];
            bool given = false;
            for (const TileUse *use = value->first_use; use; use = use->next) given |= !is_early(e, use->user);
            if (given) tile_list_push(e->context->scratch, &e->given, value);
        }
    if (e->given.count && e->ahead > 1) e->error = "a value can be handed to the next iteration only";
}

static void count_slots(Expansion *e, const Ops *ops) {
    for (size_t i = 0; i < ops->count; i++) {
        const TileOp *op = ops->items[i], *channel;
        if (op->id != TILE_OP_CHANNEL_ACQUIRE && op->id != TILE_OP_CHANNEL_WAIT) continue;
        channel = tile_value_def(tile_op_operand(op, 0), TILE_OP_CHANNEL);
        int64_t slots = channel ? tile_op_integer(channel, TILE_ATTRIBUTE_SLOTS, 1) : 0;
        if (slots <= e->ahead || (e->slots && e->slots != slots)) e->error = "channels of a loop have other slots";
        e->slots = slots;
    }
}

/* ---- ops of another iteration ---- */

/* Does the op also run past the last iteration? Collective ops and those that count do; shared memory that is read
 * then holds stale values. */
static bool runs_always(const TileOp *op) {
    bool channel = op->id == TILE_OP_CHANNEL_ACQUIRE || op->id == TILE_OP_CHANNEL_COMMIT;
    bool groups = op->id == TILE_OP_COPY_WAIT || op->id == TILE_OP_COPY_COMMIT || op->id == TILE_OP_BARRIER;
    bool reads = op->id == TILE_OP_LOAD_MATRIX ||
                 (op->id == TILE_OP_LOAD && tile_op_operand(op, 0)->type->space == TILE_SPACE_SHARED);
    return channel || groups || reads;
}

/* Is from + distance < to? If `certain`, from < to holds, otherwise it is tested. Their difference fits into 64 bits
 * unsigned. */
static TileValue *build_reaches(TileBuilder *b, TileValue *from, TileValue *to, TileValue *distance, bool certain) {
    TileValue *left = tile_build_bitcast(b, tile_build_binary(b, TILE_OP_SUB, to, from), TILE_U64);
    TileValue *far = tile_build_binary(b, TILE_OP_GT, left, tile_build_bitcast(b, distance, TILE_U64));
    if (certain) return far;
    return tile_build_binary(b, TILE_OP_AND, tile_build_binary(b, TILE_OP_LT, from, to), far);
}

/* Does the iteration exist? One step past the last iteration does not overflow (exact-loops). */
static TileValue *exists_of(Iteration *iteration, TileBuilder *b) {
    if (!iteration->exists) iteration->exists = tile_build_binary(b, TILE_OP_LT, iteration->number, iteration->end);
    return iteration->exists;
}

static void mark_copy(Expansion *e, const Iteration *iteration, TileOp *op) {
    tile_op_clear(op, TILE_ATTRIBUTE_STAGE);
    tile_op_clear(op, TILE_ATTRIBUTE_CLUSTER);
    int64_t ahead = tile_op_integer(op, TILE_ATTRIBUTE_AHEAD, 0) + e->ahead;
    tile_op_clear(op, TILE_ATTRIBUTE_AHEAD);
    if (iteration->marks) tile_op_set_integer(e->context->module, op, TILE_ATTRIBUTE_AHEAD, ahead);
}

static TileOp *clone_op(Expansion *e, Iteration *iteration, TileBuilder *b, const TileOp *op) {
    for (unsigned i = 0; i < op->operand_count; i++) gpu_follow(&iteration->copies, b, tile_op_operand(op, i));
    TileOp *clone = tile_op_clone(e->context->module, op, iteration->copies.map);
    bool counts = op->id == TILE_OP_CHANNEL_ACQUIRE && op->operand_count == 1;
    if (counts) tile_op_add_operand(e->context->module, clone, iteration->slot);
    tile_builder_insert(b, clone);
    return clone;
}

static void end_branch(Expansion *e, TileOp *choice, unsigned region) {
    TileBuilder b = tile_builder_at_end(e->context->module, &choice->regions[region]);
    tile_build_end(&b, TILE_OP_YIELD, NULL, 0);
}

/* Clones consecutive ops that must not run past the last iteration into one branch. Returns the index of the next op.
 */
static size_t clone_in_branch(Expansion *e, Iteration *iteration, size_t first) {
    TileOp *choice = tile_build_if(&e->b, exists_of(iteration, &e->b), NULL, 0);
    TileBuilder b = tile_builder_at_end(e->context->module, &choice->regions[0]);
    TileMap map = gpu_copy_map(e->context->scratch, iteration->copies.map), *outer = iteration->copies.map;
    size_t i = first;
    iteration->copies.map = &map;
    for (; i < e->early.count && !runs_always(e->early.items[i]) && !e->early.items[i]->region_count; i++) {
        TileOp *clone = clone_op(e, iteration, &b, e->early.items[i]);
        tile_op_clear(clone, TILE_ATTRIBUTE_STAGE);
        tile_op_clear(clone, TILE_ATTRIBUTE_CLUSTER);
    }
    iteration->copies.map = outer;
    end_branch(e, choice, 0);
    end_branch(e, choice, 1);
    mark_copy(e, iteration, choice);
    if (b.error) e->error = b.error;
    return i;
}

/* A branch without results is only taken if the iteration exists. */
static void clone_branch(Expansion *e, Iteration *iteration, TileOp *op) {
    TileValue *condition = gpu_follow(&iteration->copies, &e->b, tile_op_operand(op, 0));
    for (unsigned i = 0; i < op->region_count && !iteration->known_inside; i++)
        gpu_follow_region(&iteration->copies, &e->b, &op->regions[i]);
    condition = tile_build_binary(&e->b, TILE_OP_AND, exists_of(iteration, &e->b), condition);
    TileOp *made = tile_build_if(&e->b, condition, NULL, 0);
    made->location = op->location;
    for (unsigned i = 0; i < op->attribute_count; i++) tile_op_set(e->context->module, made, op->attributes[i]);
    mark_copy(e, iteration, made);
    for (unsigned i = 0; i < op->region_count; i++)
        gpu_copy_region(&iteration->copies, &op->regions[i], &made->regions[i]);
}

static void clone_early(Expansion *e, Iteration *iteration) {
    for (size_t i = 0; i < e->early.count;) {
        TileOp *op = e->early.items[i];
        if (runs_always(op)) {
            mark_copy(e, iteration, clone_op(e, iteration, &e->b, op));
            i++;
        } else if (op->id == TILE_OP_IF && !op->result_count) {
            clone_branch(e, iteration, op);
            i++;
        } else if (op->region_count || op->result_count) {
            e->error = "an op that cannot be left out runs ahead";
            return;
        } else {
            i = clone_in_branch(e, iteration, i);
        }
    }
    if (iteration->copies.failed) e->error = "what runs ahead takes what is not known there";
}

/* ---- slots ---- */

/* Slots are used cyclically: an argument of the loop is the slot that this iteration reads; the acquired slot is
 * `ahead` later. */
static TileValue *acquired_slot(Expansion *e, TileValue *slot) {
    TileBuilder *b = &e->b;
    TileValue *zero = tile_build_i64(b, 0), *last = tile_build_i64(b, e->slots - 1);
    if (e->ahead == e->slots - 1) {
        TileValue *before = tile_build_binary(b, TILE_OP_SUB, slot, tile_build_i64(b, 1));
        return tile_build_ternary(b, TILE_OP_SELECT, tile_build_binary(b, TILE_OP_EQ, slot, zero), last, before);
    }
    TileValue *sum = tile_build_binary(b, TILE_OP_ADD, slot, tile_build_i64(b, e->ahead));
    TileValue *past = tile_build_binary(b, TILE_OP_GT, sum, last);
    TileValue *wrapped = tile_build_binary(b, TILE_OP_SUB, sum, tile_build_i64(b, e->slots));
    return tile_build_ternary(b, TILE_OP_SELECT, past, wrapped, sum);
}

static TileValue *next_slot(Expansion *e, TileValue *slot) {
    TileBuilder *b = &e->b;
    TileValue *is_last = tile_build_binary(b, TILE_OP_EQ, slot, tile_build_i64(b, e->slots - 1));
    TileValue *next = tile_build_binary(b, TILE_OP_ADD, slot, tile_build_i64(b, 1));
    return tile_build_ternary(b, TILE_OP_SELECT, is_last, tile_build_i64(b, 0), next);
}

/* ---- the loop ---- */

static void erase_early(Expansion *e) {
    for (size_t i = e->early.count; i-- > 0;) tile_op_erase(e->early.items[i]);
    for (TileOp *op = e->body->first; op; op = op->next) {
        tile_op_clear(op, TILE_ATTRIBUTE_STAGE);
        tile_op_clear(op, TILE_ATTRIBUTE_CLUSTER);
    }
}

/* Ops of lower clusters come first. They are waits, whose only operand is the slot. */
static void move_low(Expansion *e, TileValue *slot) {
    for (size_t i = 0; i < e->low.count; i++) {
        TileOp *op = e->low.items[i];
        bool waits = op->id == TILE_OP_CHANNEL_WAIT && op->operand_count == 1;
        if (!waits) e->error = "an op comes first that is no wait";
        if (waits) tile_op_add_operand(e->context->module, op, slot);
        if (waits) tile_op_set_integer(e->context->module, op, TILE_ATTRIBUTE_PENDING, e->ahead - 1);
        tile_builder_insert(&e->b, op);
    }
}

static Iteration iteration_of(Expansion *e, TileMap *map) {
    tile_map_init(map, e->context->scratch);
    return (Iteration){.copies = {e->context, e->loop, map, false}, .end = tile_op_operand(e->loop, 1)};
}

/* The prologue, a loop over the first iterations: stage 0 depends on their index only. */
static void build_prologue(Expansion *e) {
    TileBuilder outer = tile_builder_before(e->context->module, e->loop), *b = &e->b;
    TileMap map;
    Iteration iteration = iteration_of(e, &map);
    TileOp *first = tile_build_for(&outer, tile_build_i64(&outer, 0), tile_build_i64(&outer, e->ahead),
                                   tile_build_i64(&outer, 1), NULL, 0);
    int64_t step = 0;
    tile_value_integer(tile_op_named(e->loop, TILE_OPERAND_STEP), &step);
    *b = tile_builder_at_end(e->context->module, &first->regions[0]);
    b->location = e->loop->location;
    TileValue *lo = tile_op_operand(e->loop, 0);
    iteration.slot = first->regions[0].arguments[0];
    TileValue *distance = tile_build_binary(b, TILE_OP_MUL, iteration.slot, tile_build_i64(b, step));
    iteration.exists = build_reaches(b, lo, iteration.end, distance, false);
    iteration.number = tile_build_binary(b, TILE_OP_ADD, lo, distance);
    iteration.known_inside = true;
    tile_map_set(&map, e->body->arguments[0], iteration.number);
    clone_early(e, &iteration);
    tile_build_end(b, TILE_OP_YIELD, NULL, 0);
}

static void expand_copies(Expansion *e) {
    int64_t step = 0;
    if (!tile_value_integer(tile_op_named(e->loop, TILE_OPERAND_STEP), &step)) e->error = "the step is not known";
    if (e->behind) e->error = "what runs ahead gives nothing to ops behind it";
    if (e->error) return;
    build_prologue(e);
    TileBuilder before = tile_builder_before(e->context->module, e->loop);
    TileValue *slot = tile_build_i64(&before, 0), *next = NULL;
    e->loop = gpu_loop_carry(e->context, e->loop, &slot, 1);
    e->body = &e->loop->regions[0];
    for (size_t i = 0; i < e->low.count; i++) tile_op_detach(e->low.items[i]);
    const char *error = e->b.error;
    e->b = tile_builder_before(e->context->module, e->body->first);
    e->b.error = error;
    TileMap map;
    Iteration iteration = iteration_of(e, &map);
    slot = e->body->arguments[e->body->argument_count - 1];
    iteration.slot = acquired_slot(e, slot);
    next = next_slot(e, slot);
    move_low(e, slot);
    TileValue *index = e->body->arguments[0], *distance = tile_build_i64(&e->b, e->ahead * step);
    iteration.exists = build_reaches(&e->b, index, iteration.end, distance, true);
    iteration.number = tile_build_binary(&e->b, TILE_OP_ADD, index, distance);
    iteration.known_inside = iteration.marks = true;
    tile_map_set(&map, index, iteration.number);
    clone_early(e, &iteration);
    tile_op_add_operand(e->context->module, e->body->last, next);
    erase_early(e);
}

/* Values for the next iteration are loop-carried: the initial ones are computed ahead of the loop, from its initial
 * values. */
static void expand_values(Expansion *e) {
    TileMap map;
    Iteration iteration = iteration_of(e, &map);
    TileValue **first = TILE_NEW_ARRAY(e->context->scratch, TileValue *, e->given.count);
    if (e->slots || e->low.count || !e->behind) e->error = "values are given to ops that come behind what runs ahead";
    if (e->error) return;
    for (unsigned i = 0; i < e->body->argument_count; i++)
        tile_map_set(&map, e->body->arguments[i], i ? tile_loop_carried(e->loop, i - 1) : tile_op_operand(e->loop, 0));
    e->b = tile_builder_before(e->context->module, e->loop);
    iteration.number = tile_op_operand(e->loop, 0);
    clone_early(e, &iteration);
    for (size_t i = 0; i < e->given.count; i++) first[i] = tile_map_get(&map, e->given.items[i]);
    unsigned carried = e->body->argument_count;
    e->loop = gpu_loop_carry(e->context, e->loop, first, (unsigned)e->given.count);
    e->body = &e->loop->regions[0];
    const char *error = e->b.error;
    e->b = tile_builder_before(e->context->module, e->behind);
    e->b.error = error;
    iteration = iteration_of(e, &map);
    TileValue *step = tile_op_named(e->loop, TILE_OPERAND_STEP);
    iteration.number = tile_build_binary(&e->b, TILE_OP_ADD, e->body->arguments[0], step);
    iteration.known_inside = iteration.marks = true;
    tile_map_set(&map, e->body->arguments[0], iteration.number);
    for (unsigned i = 1; i < carried; i++)
        tile_map_set(&map, e->body->arguments[i], tile_op_operand(e->body->last, i - 1));
    clone_early(e, &iteration);
    for (size_t i = 0; i < e->given.count; i++) {
        TileValue *value = e->given.items[i], *argument = e->body->arguments[carried + i];
        argument->name = value->name;
        tile_op_add_operand(e->context->module, e->body->last, tile_map_get(&map, value));
        tile_value_replace(value, argument);
    }
    erase_early(e);
}

static bool try_loop(TilePassContext *context, TileOp *loop, const char **error) {
    Expansion e = {.context = context, .loop = loop, .body = &loop->regions[0]};
    if (!find_early(&e)) return false;
    find_late(&e);
    find_given(&e);
    count_slots(&e, &e.early);
    count_slots(&e, &e.low);
    if (!e.error && e.given.count)
        expand_values(&e);
    else if (!e.error)
        expand_copies(&e);
    if (e.error || e.b.error) *error = e.error ? e.error : e.b.error;
    return true;
}

TileResult tile_pass_gpu_expand(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    return tile_try_each(context, func, TILE_OP_FOR, try_loop, "gpu-expand");
}
