/* Purpose: insert waits for products by wgmma, which are asynchronous: their sums are pending until a dot_wait. A sum
 * that is only added to by the next product needs none between the two, unless that has sums of its own (8-bit floats).
 * Slots of channels that the product has read are released behind the wait, and those that are read in a loop, behind
 * the loop: what comes next is copied while results are stored. Lines and numbers that an iteration loads behind a wait are
 * loaded in front of it.
 *
 * Before:
 *     func phase tile @k.0(%a: tensor<f16, 2, in> {noalias}, %c: tensor<f32, 2, out> {noalias}) threads = 128 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 64} : i64
 *       %acc = const {value = 0.0} : f32[64, 64]
 *       %x = load_tile %a, %zero, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range], tensor_map = 1} :
 *           f16[64, 64]
 *       %s = dot %x, %x, %acc {instruction = wgmma} : f32[64, 64]
 *       %t = dot %x, %x, %s {instruction = wgmma} : f32[64, 64]
 *       store_tile %c, %t, %zero, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]}
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%a: tensor<f16, 2, in> {noalias}, %c: tensor<f32, 2, out> {noalias}) threads = 128 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 64} : i64
 *       %acc = const {value = 0.0} : f32[64, 64]
 *       %x = load_tile %a, %zero, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range], tensor_map = 1} :
 *           f16[64, 64]
 *       %s = dot %x, %x, %acc {instruction = wgmma} : f32[64, 64]
 *       %t = dot %x, %x, %s {instruction = wgmma} : f32[64, 64]
 *       %t.1 = dot_wait %t {pending = 0} : f32[64, 64]
 *       store_tile %c, %t.1, %zero, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]}
 *       return
 *     }
 * Needs: gpu-warpgroups. Keeps: tile form. Cost: linear. */
#include "lang/ir/operands.h"
#include "lowering/each.h"
#include "lowering/memory.h"
#include "ptx/passes.h"
#include "ptx/pipeline/copies.h"
#include "ptx/target/dot.h"
#include "ptx/target/map.h"

static bool is_read_by(const TileValue *value, const TileOp *op) {
    for (const TileUse *use = value->first_use; use; use = use->next) {
        const TileOp *user = use->user;
        while (user && user != op && user->block != op->block) user = user->block->op;
        if (user == op || (use->user->id == TILE_OP_PERMUTE && is_read_by(&use->user->results[0], op))) return true;
    }
    return false;
}

/* Does the op, or one in its regions, read the tile where it lies in shared memory? */
static bool reads(const TileOp *op, const TileOp *shared) { return is_read_by(&shared->results[0], op); }

/* Is the sum used by nothing but the next product in the same block? */
static bool goes_on(const TileOp *dot) {
    const TileUse *use = dot->results[0].first_use;
    return use && !use->next && use->user->id == TILE_OP_DOT && use->user->block == dot->block &&
           gpu_dot_is_wgmma(use->user) && !gpu_dot_promotes(use->user) &&
           tile_op_named(use->user, TILE_OPERAND_SUM) == &dot->results[0];
}

/* Moves the release of the operand's slot behind the wait, unless the slot is read later. */
static void release_early(const TileValue *operand, TileOp *wait) {
    bool transposed;
    const TileOp *shared = gpu_find_shared(operand, &transposed);
    TileValue *slot = shared ? tile_op_operand(shared, 0) : NULL;
    TileOp *release = NULL;
    for (const TileUse *use = slot ? slot->first_use : NULL; use; use = use->next)
        if (use->user->id == TILE_OP_CHANNEL_RELEASE && use->user->block == wait->block) release = use->user;
    for (const TileOp *op = wait->next; release && op != release; op = op->next)
        if (reads(op, shared)) return;
    if (!release || release == wait->next) return;
    tile_op_detach(release);
    tile_op_insert_after(release, wait);
}

/* Does the op, or one in its regions, take the slot or a tile in it? */
static bool takes(const TileOp *op, const TileValue *slot) {
    if (is_read_by(slot, op)) return true;
    for (const TileUse *use = slot->first_use; use; use = use->next)
        if (use->user->id == TILE_OP_SHARED_TILE && reads(op, use->user)) return true;
    return false;
}

/* All products of a loop are waited for in it. */
static bool try_release(TilePassContext *context, TileOp *release, const char **error) {
    (void)context, (void)error;
    TileOp *last = release->previous;
    while (last && !takes(last, tile_op_operand(release, 0))) last = last->previous;
    if (!last || !last->region_count || last == release->previous) return false;
    tile_op_detach(release);
    tile_op_insert_after(release, last);
    return true;
}

static bool try_dot(TilePassContext *context, TileOp *dot, const char **error) {
    const TileUse *only = tile_value_has_one_use(&dot->results[0]) ? dot->results[0].first_use : NULL;
    if (!gpu_dot_is_wgmma(dot) || goes_on(dot) || (only && only->user->id == TILE_OP_DOT_WAIT)) return false;
    TileBuilder b = tile_builder_before(context->module, dot->next);
    b.location = dot->location;
    TileValue *sum = &dot->results[0];
    TileAttribute pending = {.key = TILE_ATTRIBUTE_PENDING, .integer = 0};
    TileOp *wait = tile_build_op(&b, TILE_OP_DOT_WAIT, &sum, 1, &pending, 1, NULL, 1);
    if (b.error) *error = b.error;
    if (!wait) return false;
    TileValue *complete = tile_op_result(wait, 0);
    tile_value_replace(sum, complete);
    tile_op_set_operand(wait, 0, sum);
    complete->name = sum->name;
    for (unsigned i = 0; i < 2; i++) release_early(tile_op_operand(dot, i), wait);
    return true;
}

/* ---- loads while products run ---- */

static bool stands_before(const TileOp *op, const TileOp *place) {
    while (op && op != place) op = op->next;
    return op != NULL;
}

/* Is the value known at the place, or computed from what is, by ops that may move there? */
static bool is_known(const TileValue *value, const TileOp *place) {
    const TileOp *op = value->op;
    if (!op || op->block != place->block || stands_before(op, place)) return true;
    bool known = tile_op_is_pure(op) && !op->region_count;
    for (unsigned i = 0; known && i < op->operand_count; i++) known = is_known(tile_op_operand(op, i), place);
    return known;
}

/* With what it takes. */
static void move_before(TileOp *op, TileOp *place) {
    if (op->block != place->block || stands_before(op, place)) return;
    for (unsigned i = 0; i < op->operand_count; i++)
        if (tile_op_operand(op, i)->op) move_before(tile_op_operand(op, i)->op, place);
    tile_op_detach(op);
    tile_op_insert_before(op, place);
}

/* A line, or a number, of memory that nothing writes is loaded before an iteration waits for its product, but behind what begins
 * that: what is computed with it need not be there any sooner. Registers are not the worse for it: whoever takes the line with
 * the sum has both. */
static bool try_load(TilePassContext *context, TileOp *load, const char **error) {
    (void)context, (void)error;
    if (load->results[0].type->rank > 1 || gpu_by_map(load) || tile_op_get(load, TILE_ATTRIBUTE_LATENCY)) return false;
    if (!load->block->op || !tile_memory_is_constant(tile_op_operand(load, 0))) return false;
    TileOp *wait = load->previous;
    while (wait && wait->id != TILE_OP_DOT_WAIT) wait = wait->previous;
    for (unsigned i = 0; wait && i < load->operand_count; i++)
        if (!is_known(tile_op_operand(load, i), wait)) wait = NULL;
    if (!wait) return false;
    move_before(load, wait);
    return true;
}

/* ---- products that stay under way ---- */

/* Is the value yielded in this place of the loop's carried values, and not used otherwise? */
static bool goes_to(const TileValue *value, const TileOp *loop, unsigned slot) {
    const TileUse *use = value->first_use;
    return use && !use->next && use->user == loop->regions[0].last && use->index == slot;
}

/* Does the loop carry the sum from this product to that of the next iteration, and use it for nothing else? */
static bool is_carried_on(const TileOp *loop, const TileOp *dot) {
    const TileValue *sum = tile_op_named(dot, TILE_OPERAND_SUM);
    const TileUse *given = dot->results[0].first_use;
    if (!gpu_dot_is_wgmma(dot) || gpu_dot_promotes(dot) || dot->block != &loop->regions[0]) return false;
    if (sum->op || sum->block != dot->block || !sum->index || !tile_value_has_one_use(sum)) return false;
    return given && !given->next && given->user->id == TILE_OP_DOT_WAIT && goes_to(&given->user->results[0], loop, sum->index - 1);
}

/* 0: registers that a product under way reads must not be written for the next one. `put`: what one takes is computed. */
static unsigned count_dots(const TileOp *loop, bool *put) {
    unsigned count = 0;
    for (const TileOp *op = loop->regions[0].first; op; op = op->next) {
        if (op->region_count) return 0;
        if (op->id != TILE_OP_DOT || !gpu_dot_is_mma(op)) continue;
        if (!is_carried_on(loop, op) || gpu_operand_is_computed(op, 0)) return 0;
        *put |= gpu_operand_is_computed(op, 1);
        count++;
    }
    return count;
}

static bool is_multiplied(const TileValue *tile) {
    for (const TileUse *use = tile->first_use; use; use = use->next) {
        if (use->user->id == TILE_OP_DOT && use->index < 2 && gpu_dot_reads_shared(use->user)) return true;
        if (use->user->id == TILE_OP_PERMUTE && is_multiplied(&use->user->results[0])) return true;
    }
    return false;
}

/* Does a product read the slot where it lies? It may be cleared before, and threads may read it, too. */
static bool is_read_by_products(const TileOp *release) {
    for (const TileUse *use = tile_op_operand(release, 0)->first_use; use; use = use->next)
        if (use->user->id == TILE_OP_SHARED_TILE && is_multiplied(&use->user->results[0])) return true;
    return false;
}

/* Have the channels of what the loop's products read slots enough? One more of them is in use then. Measured: of three slots two are not enough. One
 * warpgroup alone leaves the tensor cores idle from each iteration to the next. */
static bool has_slots(const TileOp *loop) {
    enum { LEAST = 5, LEAST_OF_ONE = 4 };
    int64_t least = tile_op_func(loop)->threads <= TILE_WARPGROUP_THREADS ? LEAST_OF_ONE : LEAST;
    bool any = false;
    for (const TileOp *op = loop->regions[0].first; op; op = op->next) {
        if (op->id != TILE_OP_CHANNEL_RELEASE || !is_read_by_products(op)) continue;
        const TileOp *wait = tile_value_def(tile_op_operand(op, 0), TILE_OP_CHANNEL_WAIT);
        const TileOp *channel = wait ? tile_value_def(tile_op_operand(wait, 0), TILE_OP_CHANNEL) : NULL;
        if (!channel || tile_op_integer(channel, TILE_ATTRIBUTE_SLOTS, 1) < least) return false;
        any = true;
    }
    return any;
}

/* The products of an iteration stay under way until those of the next one have begun: while the warps wait for a slot and
 * begin them, the tensor cores have something to do. Other warpgroups do not give them that where programs take turns, or where
 * all of them compute a part of what each multiplies; and where they begin and end their products together, not all of the time. */
static bool try_overlap(TilePassContext *context, TileOp *loop, const char **error) {
    bool put = false;
    unsigned count = tile_loop_is_of_programs(loop) ? 0 : count_dots(loop, &put);
    if (!count || !(put || gpu_turns(tile_op_func(loop)) > 1 || has_slots(loop))) return false;
    for (TileOp *op = loop->regions[0].first; op; op = op->next) {
        if (op->id == TILE_OP_CHANNEL_RELEASE && is_read_by_products(op))
            tile_op_set_integer(context->module, op, TILE_ATTRIBUTE_PENDING, 1);
        if (op->id != TILE_OP_DOT_WAIT) continue;
        tile_op_set_integer(context->module, op, TILE_ATTRIBUTE_PENDING, count);
        TileBuilder b = tile_builder_before(context->module, loop->next);
        TileValue *sum = &loop->results[op->results[0].first_use->index];
        TileAttribute none = {.key = TILE_ATTRIBUTE_PENDING, .integer = 0};
        TileOp *wait = tile_build_op(&b, TILE_OP_DOT_WAIT, &sum, 1, &none, 1, NULL, 1);
        if (b.error) *error = b.error;
        if (!wait) return false;
        tile_value_replace(sum, tile_op_result(wait, 0));
        tile_op_set_operand(wait, 0, sum);
    }
    return true;
}

TileResult tile_pass_gpu_dot_waits(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    TileResult waits = tile_try_each(context, func, TILE_OP_DOT, try_dot, "gpu-dot-waits");
    if (waits != TILE_RESULT_CHANGED) return waits;
    TileResult loads = tile_try_each(context, func, TILE_OP_LOAD_TILE, try_load, "gpu-dot-waits");
    if (loads == TILE_RESULT_FAILED) return loads;
    TileResult releases = tile_try_each(context, func, TILE_OP_CHANNEL_RELEASE, try_release, "gpu-dot-waits");
    if (releases == TILE_RESULT_FAILED) return releases;
    TileResult overlap = tile_try_each(context, func, TILE_OP_FOR, try_overlap, "gpu-dot-waits");
    return overlap == TILE_RESULT_UNCHANGED ? waits : overlap;
}
