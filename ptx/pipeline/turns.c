/* Purpose: let parts of the warps that multiply take the programs of a block in turn, so that one program's products run
 * while what comes behind another one's is computed and stored. The `turns` of `partitions` say how many parts there are
 * (gpu-warpgroups has decided that, gpu-cut has written it down). All of them go through the loop over the block's
 * programs, which counts their places; in each place it is one part's `turn`, which executes the program. The others only
 * add the slots that it takes to their counts: these follow from the trip counts of the program's loops. A turn begins
 * with the first slot and ends behind the last product: who waits for a slot has to know that the round before is over,
 * since an mbarrier tells apart two rounds only.
 *
 * Run: --passes=gpu-turns,cse,dce
 * Before:
 *     func phase tile @k.0(%a: tensor<f16, 2, in> {noalias}, %c: tensor<f32, 2, out> {noalias}, %begin: i64, %end:
 *         i64, %depth: i64) turns = 2 threads = 128 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 64} : i64
 *       %acc = const {value = 0.0} : f32[64, 64]
 *       %0 = channel {slots = 2, group = 0} : channel<f16[64, 64], swizzle 128 panels>
 *       partitions {warps = [8, 4], turns = 2} {
 *         %1 = for %begin, %end, %one, %zero {resident = 1} : i64 (%p: i64, %2: i64) {
 *           %row = mul %p, %n : i64
 *           %sum, %3 = for %zero, %depth, %n, %acc, %2 : f32[64, 64], i64 (%k: i64, %acc.1: f32[64, 64], %4: i64) {
 *             %5 = channel_wait %0, %4 : ptr<shared, f16[64, 64], swizzle 128 panels>
 *             %6 = add %4, %one : i64
 *             %7 = const {value = 4} : i64
 *             %8 = eq %6, %7 : bool
 *             %9 = select %8, %zero, %6 : i64
 *             %x = shared_tile %5 : f16[64, 64]
 *             %s = dot %x, %x, %acc.1 {instruction = wgmma} : f32[64, 64]
 *             %10 = dot_wait %s {pending = 1} : f32[64, 64]
 *             channel_release %5 {pending = 1}
 *             yield %10, %9
 *           }
 *           %t = dot_wait %sum {pending = 0} : f32[64, 64]
 *           store_tile %c, %t, %row, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]}
 *           yield %3
 *         }
 *         yield
 *       } {
 *         %11 = for %begin, %end, %one, %zero {resident = 1} : i64 (%p.1: i64, %12: i64) {
 *           %13 = for %zero, %depth, %n, %12 : i64 (%k.1: i64, %14: i64) {
 *             %15 = channel_acquire %0, %14 : ptr<shared, f16[64, 64], swizzle 128 panels>
 *             %16 = add %14, %one : i64
 *             %17 = const {value = 4} : i64
 *             %18 = eq %16, %17 : bool
 *             %19 = select %18, %zero, %16 : i64
 *             copy_tile %a, %15, %zero, %one, %zero, %n, %k.1, %one, %zero, %n {access = [range, range], types =
 *                 [f16[64, 64]], tensor_map = 1}
 *             channel_commit %15
 *             yield %19
 *           }
 *           yield %13
 *         }
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%a: tensor<f16, 2, in> {noalias}, %c: tensor<f32, 2, out> {noalias}, %begin: i64, %end:
 *         i64, %depth: i64) turns = 2 threads = 128 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 64} : i64
 *       %acc = const {value = 0.0} : f32[64, 64]
 *       %0 = channel {slots = 2, group = 0} : channel<f16[64, 64], swizzle 128 panels>
 *       partitions {warps = [8, 4], turns = 2} {
 *         %1, %2 = for %begin, %end, %one, %zero, %zero {resident = 1} : i64, i64 (%p: i64, %3: i64, %4: i64) {
 *           %5 = sub %depth, %zero : i64
 *           %6 = max %5, %zero : i64
 *           %7 = sub %n, %one : i64
 *           %8 = add %6, %7 : i64
 *           %9 = div %8, %n : i64
 *           %10 = mul %9, %one : i64
 *           %11 = add %10, %zero : i64
 *           %12 = add %3, %11 : i64
 *           %13 = const {value = 4} : i64
 *           %14 = rem %12, %13 : i64
 *           %15 = add %4, %one : i64
 *           %16 = eq %15, %13 : bool
 *           %17 = select %16, %zero, %15 : i64
 *           %18 = turn %4 : bool
 *           if %18 {
 *             %row = mul %p, %n : i64
 *             turn_begin %4
 *             %sum, %19 = for %zero, %depth, %n, %acc, %3 : f32[64, 64], i64 (%k: i64, %acc.1: f32[64, 64], %20: i64)
 *                 {
 *               %21 = channel_wait %0, %20 : ptr<shared, f16[64, 64], swizzle 128 panels>
 *               %22 = add %20, %one : i64
 *               %23 = eq %22, %13 : bool
 *               %24 = select %23, %zero, %22 : i64
 *               %x = shared_tile %21 : f16[64, 64]
 *               %s = dot %x, %x, %acc.1 {instruction = wgmma} : f32[64, 64]
 *               %25 = dot_wait %s {pending = 1} : f32[64, 64]
 *               channel_release %21 {pending = 1}
 *               yield %25, %24
 *             }
 *             turn_end %4
 *             %t = dot_wait %sum {pending = 0} : f32[64, 64]
 *             store_tile %c, %t, %row, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]}
 *             yield
 *           } {
 *             yield
 *           }
 *           yield %14, %17
 *         }
 *         yield
 *       } {
 *         %26 = for %begin, %end, %one, %zero {resident = 1} : i64 (%p.1: i64, %27: i64) {
 *           %28 = for %zero, %depth, %n, %27 : i64 (%k.1: i64, %29: i64) {
 *             %30 = channel_acquire %0, %29 : ptr<shared, f16[64, 64], swizzle 128 panels>
 *             %31 = add %29, %one : i64
 *             %32 = const {value = 4} : i64
 *             %33 = eq %31, %32 : bool
 *             %34 = select %33, %zero, %31 : i64
 *             copy_tile %a, %30, %zero, %one, %zero, %n, %k.1, %one, %zero, %n {access = [range, range], types =
 *                 [f16[64, 64]], tensor_map = 1}
 *             channel_commit %30
 *             yield %34
 *           }
 *           yield %28
 *         }
 *         yield
 *       }
 *       return
 *     }
 * Needs: gpu-cut. Keeps: tile form. Cost: linear, for each group of channels. */
#include "ptx/pipeline/turns.h"
#include "lang/ir/operands.h"
#include "ptx/passes.h"
#include "ptx/pipeline/copies.h"
#include "ptx/pipeline/loop.h"
#include "ptx/target/map.h"

/* ---- takes ---- */

enum { ANY_GROUP = -1, NO_GROUP = -2 };

/* The group of the channel whose slot the op waits for. */
static int64_t group_of(const TileOp *op) {
    const TileOp *channel = op->id == TILE_OP_CHANNEL_WAIT ? tile_value_def(tile_op_operand(op, 0), TILE_OP_CHANNEL) : NULL;
    return channel ? tile_op_integer(channel, TILE_ATTRIBUTE_GROUP, NO_GROUP) : NO_GROUP;
}

static bool is_take(const TileOp *op, int64_t group) {
    int64_t own = group_of(op);
    if (group != ANY_GROUP) return own == group;
    return own >= 0 || (op->id == TILE_OP_LOAD_TILE && gpu_by_map(op));
}

static bool has_take(const TileOp *op, int64_t group) {
    if (is_take(op, group)) return true;
    for (unsigned i = 0; i < op->region_count; i++)
        for (const TileOp *inner = op->regions[i].first; inner; inner = inner->next)
            if (has_take(inner, group)) return true;
    return false;
}

/* ---- can they be counted? ---- */

/* Is the value known when the program begins? */
static bool is_known(const TileValue *value, const TileOp *programs) {
    if (tile_value_outside(value, programs)) return true;
    if (!value->op) return value->block == &programs->regions[0];
    if (!tile_op_is_pure(value->op) || value->op->region_count || tile_type_is_tile(value->type)) return false;
    for (unsigned i = 0; i < value->op->operand_count; i++)
        if (!is_known(tile_op_operand(value->op, i), programs)) return false;
    return true;
}

static const char *why_not_in(const TileBlock *block, const TileOp *programs) {
    for (const TileOp *op = block->first; op; op = op->next) {
        if (!op->region_count || !has_take(op, ANY_GROUP)) continue;
        if (op->id != TILE_OP_FOR) return "a product stands in a branch";
        for (unsigned i = 0; i < 3; i++)
            if (!is_known(tile_op_operand(op, i), programs))
                return "the trip count of a loop of products is not known when a program begins";
        const char *why = why_not_in(&op->regions[0], programs);
        if (why) return why;
    }
    return NULL;
}

const char *gpu_why_not_counted(const TileOp *loop) { return why_not_in(&loop->regions[0], loop); }

/* ---- how many slots a program takes ---- */

typedef struct Turns {
    TilePassContext *context;
    int64_t count; /* of parts */
    TileOp *loop;  /* over the programs */
    TileBuilder b; /* in front of the program's first op */
    TileMap map;
} Turns;

static TileValue *build(Turns *t, TileOpId id, TileValue *x, TileValue *y) { return tile_build_binary(&t->b, id, x, y); }

static TileValue *build_number(Turns *t, int64_t number) { return tile_build_i64(&t->b, number); }

/* The value at the beginning of the program. */
static TileValue *follow(Turns *t, TileValue *value) {
    GpuCopies copies = {.context = t->context, .outer = t->loop, .map = &t->map};
    return gpu_follow(&copies, &t->b, value);
}

static TileValue *count_trips(Turns *t, const TileOp *loop) {
    TileValue *lo = follow(t, tile_op_operand(loop, 0)), *hi = follow(t, tile_op_operand(loop, 1)),
              *step = follow(t, tile_op_named(loop, TILE_OPERAND_STEP));
    TileValue *length = build(t, TILE_OP_MAX, build(t, TILE_OP_SUB, hi, lo), build_number(t, 0));
    TileValue *up = build(t, TILE_OP_ADD, length, build(t, TILE_OP_SUB, step, build_number(t, 1)));
    return build(t, TILE_OP_DIV, up, step);
}

/* Slots of the group's channels that the block takes, of all channels together. */
static TileValue *count_takes(Turns *t, const TileBlock *block, int64_t group) {
    int64_t own = 0;
    TileValue *sum = NULL;
    for (const TileOp *op = block->first; op; op = op->next) {
        own += is_take(op, group);
        if (!op->region_count || !has_take(op, group)) continue;
        TileValue *inner = build(t, TILE_OP_MUL, count_trips(t, op), count_takes(t, &op->regions[0], group));
        sum = sum ? build(t, TILE_OP_ADD, sum, inner) : inner;
    }
    TileValue *number = build_number(t, own);
    return sum ? build(t, TILE_OP_ADD, sum, number) : number;
}

/* ---- counts that the loop carries ---- */

typedef struct Ring {
    int64_t group, channels, slots;
} Ring;

static void look_at_channel(TileOp *op, void *state) {
    Ring *ring = state;
    if (op->id != TILE_OP_CHANNEL || tile_op_integer(op, TILE_ATTRIBUTE_GROUP, NO_GROUP) != ring->group) return;
    ring->channels++;
    ring->slots = tile_op_integer(op, TILE_ATTRIBUTE_SLOTS, 1);
}

static TileOp *first_take(const TileBlock *block, int64_t group) {
    for (TileOp *op = block->first; op; op = op->next) {
        if (is_take(op, group)) return op;
        for (unsigned i = 0; i < op->region_count; i++) {
            TileOp *found = first_take(&op->regions[i], group);
            if (found) return found;
        }
    }
    return NULL;
}

/* The place among the loop's carried values of the count with which a program's first take begins. */
static bool find_carried(const Turns *t, const TileOp *take, unsigned *slot) {
    const TileValue *count = tile_op_operand(take, 1);
    while (!count->op && count->block->op && count->block != &t->loop->regions[0] && count->index)
        count = tile_loop_carried(count->block->op, count->index - 1);
    if (count->op || count->block != &t->loop->regions[0] || !count->index) return false;
    *slot = count->index - 1;
    return true;
}

/* The count behind the program, in place of the one that its loops give. */
static bool advance(Turns *t, TileFunc *func, int64_t group) {
    Ring ring = {.group = group};
    unsigned slot;
    TileBlock *body = &t->loop->regions[0];
    const TileOp *take = first_take(body, group);
    if (!take) return true;
    tile_block_walk(&func->body, look_at_channel, &ring);
    if (!find_carried(t, take, &slot)) return false;
    TileValue *taken = count_takes(t, body, group);
    if (ring.channels > 1) taken = build(t, TILE_OP_DIV, taken, build_number(t, ring.channels));
    TileValue *count = build(t, TILE_OP_ADD, body->arguments[slot + 1], taken);
    tile_op_set_operand(body->last, slot, build(t, TILE_OP_REM, count, build_number(t, 2 * ring.slots)));
    return true;
}

/* ---- turns ---- */

static TileOp *build_order(Turns *t, TileOpId id, TileOp *before, TileValue *place) {
    TileBuilder b = tile_builder_before(t->context->module, before);
    TileOp *op = tile_build_op(&b, id, &place, 1, NULL, 0, NULL, 0);
    if (b.error) t->b.error = b.error;
    return op;
}

/* The program's own ops, from `first` on, go into a branch that those take whose turn it is. */
static void move_program(Turns *t, TileOp *first, TileValue *place) {
    TileBlock *body = &t->loop->regions[0];
    TileOp *last = first, *begin = NULL, *end = NULL;
    TileValue *mine = tile_op_result(tile_build_op(&t->b, TILE_OP_TURN, &place, 1, NULL, 0, NULL, 1), 0);
    TileOp *branch = tile_build_if(&t->b, mine, NULL, 0);
    for (TileOp *op = first; op != body->last; op = op->next) {
        if (!has_take(op, ANY_GROUP)) continue;
        begin = begin ? begin : op;
        end = op;
    }
    build_order(t, TILE_OP_TURN_END, end->next, place);
    TileOp *begun = build_order(t, TILE_OP_TURN_BEGIN, begin, place);
    if (begin == first) last = begun;
    for (TileOp *op = last, *next; op != body->last; op = next) {
        next = op->next;
        tile_op_detach(op);
        tile_op_append(op, &branch->regions[0]);
    }
    for (unsigned i = 0; i < 2; i++) {
        TileBuilder b = tile_builder_at_end(t->context->module, &branch->regions[i]);
        tile_build_end(&b, TILE_OP_YIELD, NULL, 0);
        if (b.error) t->b.error = b.error;
    }
}

static TileValue *next_place(Turns *t, TileValue *place) {
    TileValue *next = build(t, TILE_OP_ADD, place, build_number(t, 1));
    TileValue *again = build(t, TILE_OP_EQ, next, build_number(t, 2 * t->count));
    return tile_build_ternary(&t->b, TILE_OP_SELECT, again, build_number(t, 0), next);
}

static TileOp *find_programs(const TileOp *partitions) {
    for (TileOp *op = partitions->regions[0].first; op; op = op->next)
        if (tile_loop_is_of_programs(op)) return op;
    return NULL;
}

static void count_groups(TileOp *op, void *count) {
    int64_t end = op->id == TILE_OP_CHANNEL ? tile_op_integer(op, TILE_ATTRIBUTE_GROUP, NO_GROUP) + 1 : 0;
    if (end > *(int64_t *)count) *(int64_t *)count = end;
}

/* NULL, or what is wrong. */
static const char *take_turns(Turns *t, TileFunc *func) {
    int64_t groups = 0;
    TileBuilder b = tile_builder_before(t->context->module, t->loop);
    TileValue *zero = tile_build_i64(&b, 0);
    if (b.error) return b.error;
    t->loop = gpu_loop_carry(t->context, t->loop, &zero, 1);
    TileBlock *body = &t->loop->regions[0];
    TileValue *place = body->arguments[body->argument_count - 1];
    TileOp *first = body->first;
    tile_map_init(&t->map, t->context->scratch);
    t->b = tile_builder_before(t->context->module, first);
    tile_block_walk(&func->body, count_groups, &groups);
    for (int64_t group = 0; group < groups; group++)
        if (!advance(t, func, group)) return "a count of slots does not come from the loop over the programs";
    tile_op_add_operand(t->context->module, body->last, next_place(t, place));
    move_program(t, first, place);
    return t->b.error;
}

TileResult tile_pass_gpu_turns(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    TileOp *partitions = func->body.first;
    while (partitions && partitions->id != TILE_OP_PARTITIONS) partitions = partitions->next;
    int64_t count = partitions ? tile_op_integer(partitions, TILE_ATTRIBUTE_TURNS, 1) : 1;
    if (count < 2) return TILE_RESULT_UNCHANGED;
    Turns turns = {.context = context, .count = count, .loop = find_programs(partitions)};
    const char *error = turns.loop ? gpu_why_not_counted(turns.loop) : "no loop takes the programs of a block";
    if (!error) error = take_turns(&turns, func);
    return error ? tile_pass_fail(context, TILE_INTERNAL, turns.loop, "gpu-turns: %s", error) : TILE_RESULT_CHANGED;
}
