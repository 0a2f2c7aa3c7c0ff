/* Purpose: decide which loads of a loop are copied to shared memory some iterations before products take them from
 * there, and how many iterations: their latency. Vectors that tensor maps copy, for what is computed beside products, are such
 * loads, too. It is as great as the slots allow that the copies of so many iterations
 * and of the one that is read take in shared memory; by maps in a loop that computes with the sums of products no greater than a copy takes
 * in iterations.
 *
 * Before:
 *     func phase tile @k.0(%a: tensor<f16, 2, in> {noalias}, %b: tensor<f16, 2, in> {noalias}, %c: tensor<f32, 2, out>
 *                          {noalias}, %begin: i64, %end: i64) threads = 64 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 16} : i64
 *       %acc = const {value = 0.0} : f32[16, 16]
 *       %sum = for %begin, %end, %n, %acc : f32[16, 16] (%k: i64, %acc.1: f32[16, 16]) {
 *         %x = load_tile %a, %zero, %one, %zero, %n, %k, %one, %zero, %n {access = [range, range]} : f16[16, 16]
 *         %y = load_tile %b, %k, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]} : f16[16, 16]
 *         %acc.2 = dot %x, %y, %acc.1 {instruction = mma} : f32[16, 16]
 *         yield %acc.2
 *       }
 *       store_tile %c, %sum, %zero, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]}
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%a: tensor<f16, 2, in> {noalias}, %b: tensor<f16, 2, in> {noalias}, %c: tensor<f32, 2, out>
 *                          {noalias}, %begin: i64, %end: i64) threads = 64 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 16} : i64
 *       %acc = const {value = 0.0} : f32[16, 16]
 *       %sum = for %begin, %end, %n, %acc : f32[16, 16] (%k: i64, %acc.1: f32[16, 16]) {
 *         %x = load_tile %a, %zero, %one, %zero, %n, %k, %one, %zero, %n {access = [range, range], latency = 3} : f16[16,
 *             16]
 *         %y = load_tile %b, %k, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range], latency = 3} : f16[16,
 *             16]
 *         %acc.2 = dot %x, %y, %acc.1 {instruction = mma} : f32[16, 16]
 *         yield %acc.2
 *       }
 *       store_tile %c, %sum, %zero, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]}
 *       return
 *     }
 * Needs: gpu-blocks, gpu-threads. Keeps: tile form. Cost: linear in the loops' bodies. */
#include "lowering/memory.h"
#include "lang/ir/operands.h"
#include "ptx/pipeline/copies.h"
#include "ptx/pipeline/loop.h"
#include "ptx/passes.h"
#include "ptx/target/map.h"
#include "ptx/target/multiply_adds.h"
#include "ptx/target/target.h"

/* Threads that copy tiles themselves keep the addresses of each; a warp that has maps copy them keeps none, so that all positions of
 * an unrolled window can be copied ahead. */
enum { MOST_LOADS = 8, MOST_MAP_LOADS = 64, MOST_SLOTS = 4, MOST_MAP_SLOTS = 8, ENOUGH_MAP_SLOTS = 4, LEAST_SLOTS = 2, LARGEST_STEP = 1 << 30, SMALL_BLOCK = 128, MBARRIERS = 1024, MBARRIERS_OF_A_SLOT = 16 };

typedef struct Candidate {
    TilePassContext *context;
    TileFunc *func;
    TileOp *loop;
    TileOp *loads[MOST_MAP_LOADS];
    unsigned count;
    int64_t bytes; /* of one slot for each load */
    bool wgmma;    /* computes the products */
} Candidate;

/* ---- which loops ---- */

/* NULL: its copy can begin some iterations before. */
static const char *why_not_ahead(const TileOp *load, const TileOp *loop) {
    int64_t step;
    if (!tile_value_integer(tile_op_named(loop, TILE_OPERAND_STEP), &step) || step > LARGEST_STEP)
        return "the step of the loop is not a constant";
    if (tile_memory_is_written(loop, tile_op_operand(load, 0))) return "the loop may write to the memory that is loaded";
    for (unsigned i = 1; i < load->operand_count; i++)
        if (!gpu_follows_index(tile_op_operand(load, i), loop, !gpu_by_map(load))) return "its address depends on more than the loop's induction variable";
    return NULL;
}

/* An operand of products, or what warps of their own have copied of that which is computed with beside them. */
static bool is_copied(const TileOp *op) {
    return gpu_load_is_copied(op) || (gpu_by_map(op) && gpu_load_is_moved(op));
}

static int64_t slot_bytes(TileContext *context, const TileOp *load) {
    return gpu_shared_bytes(gpu_slot_type(context, load));
}

/* Where a product by fused multiply-adds puts an operand that is no copied tile. */
static int64_t operand_bytes(TileContext *context, const TileOp *dot, unsigned i) {
    bool transposed;
    const TileValue *source = gpu_multiplied_source(tile_op_operand(dot, i), &transposed), *tile = source;
    while (tile->op && tile->op->id == TILE_OP_FILL) tile = tile_op_operand(tile->op, 0);
    bool copied = tile->op && tile->op->id == TILE_OP_LOAD_TILE && gpu_load_is_copied(tile->op);
    if (copied || gpu_dot_is_mma(dot)) return 0;
    if (source->type->rank != 2) return tile_type_lanes(source->type) * tile_scalar_bytes(source->type->scalar);
    return gpu_shared_bytes(gpu_put_type(context, source->type, transposed != (i == 0), gpu_turns_rows(dot, source->type)));
}

static bool is_inside(const TileOp *op, const TileOp *outer) {
    while (op && op != outer) op = op->block->op;
    return op != NULL;
}

/* Shared memory that is spoken for: slots of all loads that are copied, and operands in registers. `beside`: that which is so while
 * this loop runs; loops in front of it and behind it have theirs in the same place, as gpu-shared allocates it. NULL: of all, since the
 * channels of partitions are there all the time. */
static int64_t taken_bytes(const TileFunc *func, TileContext *context, const TileBlock *block, const TileOp *beside) {
    int64_t bytes = 0;
    for (const TileOp *op = block->first; op; op = op->next) {
        int64_t slots = tile_op_integer(op, TILE_ATTRIBUTE_LATENCY, 0) + 1;
        if (is_copied(op) || slots > 1) bytes += slots * slot_bytes(context, op);
        for (unsigned i = 0; i < 2 && op->id == TILE_OP_DOT; i++) bytes += operand_bytes(context, op, i);
        if (op->id == TILE_OP_DOT) bytes += gpu_put_bytes(context, op);
        if (op->id == TILE_OP_DOT && gpu_dot_parts(op) > 1) bytes += gpu_stored_bytes(op->results[0].type); /* as they are added up */
        if (op->id == TILE_OP_STORE_TILE && gpu_by_map(op))
            bytes += gpu_map_stored_bytes(gpu_turns(func), tile_op_named(op, TILE_OPERAND_VALUE)->type);
        if (op->id == TILE_OP_STORE_TILE && gpu_by_rows(op))
            bytes += gpu_turns(func) * gpu_stored_bytes(tile_op_named(op, TILE_OPERAND_VALUE)->type);
        if (beside && op->id == TILE_OP_FOR && !is_inside(beside, op) && !is_inside(op, beside)) continue;
        for (unsigned i = 0; i < op->region_count; i++) bytes += taken_bytes(func, context, &op->regions[i], beside);
    }
    return bytes;
}

/* Slots by maps of a loop that computes with the sums of its products: as many as let a copy come while the products of the iterations
 * ahead of it run. What is left of the shared memory is the L1 cache's, through which what threads load themselves comes, and
 * registers that do not suffice. */
static int64_t slots_of_iterations(const Candidate *candidate) {
    int64_t slots = gpu_slots_of_products(tile_ptx_target_of(candidate->context->target), &candidate->loop->regions[0]);
    return slots && slots < MOST_MAP_SLOTS ? slots : MOST_MAP_SLOTS;
}

/* Do parts of a loop, of which there are several for each multiprocessor, multiply by one warpgroup? It waits for its products in each iteration, and nobody else has any
 * for the tensor cores meanwhile, but a second block. */
static bool is_part_of_one_warpgroup(const Candidate *candidate) {
    const TileFunc *func = candidate->func;
    bool many = func->kernel && func->kernel->least_programs >= 2 * tile_ptx_target_of(candidate->context->target)->cores, part = false;
    for (const TileOp *loop = candidate->loop; loop; loop = loop->block->op)
        part |= loop->id == TILE_OP_FOR && tile_op_integer(loop, TILE_ATTRIBUTE_PART, 0) == TILE_PART_OF_SUMS;
    return candidate->wgmma && many && part && func->threads == TILE_WARPGROUP_THREADS && func->turns < 2;
}

/* As many slots as leave room for a second small block on the same multiprocessor; 0: not even two fit. */
static int64_t choose_slots(const Candidate *candidate) {
    const TilePtxTarget *target = tile_ptx_target_of(candidate->context->target);
    const TileFunc *func = candidate->func;
    bool maps = gpu_by_map(candidate->loads[0]);
    int64_t each = candidate->bytes, limit = target->shared_block_bytes - (maps ? MBARRIERS : 0),
            other = taken_bytes(func, candidate->context->module->context, &func->body, maps ? NULL : candidate->loop) - each;
    if (limit < other + LEAST_SLOTS * each || func->stages == 1) return 0;
    int64_t most = (limit - other) / (each + (maps ? MBARRIERS_OF_A_SLOT * candidate->count : 0)), wanted = func->stages;
    if (wanted) return wanted < most ? wanted : most;
    if (maps) {
        bool uses = gpu_loops_use_sums(&candidate->loop->regions[0]);
        wanted = uses ? slots_of_iterations(candidate) : MOST_MAP_SLOTS;
        int64_t half = (target->shared_core_bytes / 2 - target->shared_reserved_bytes - MBARRIERS - other) / (each + MBARRIERS_OF_A_SLOT * candidate->count);
        if (!uses && half >= ENOUGH_MAP_SLOTS && half < most && is_part_of_one_warpgroup(candidate)) most = half;
        return wanted < most ? wanted : most;
    }
    int64_t blocks = gpu_blocks_of_sums(target, func, &func->body);
    if (!blocks) blocks = func->threads <= SMALL_BLOCK ? 2 : 1;
    int64_t share = blocks > 1 ? target->shared_core_bytes / blocks - target->shared_reserved_bytes : limit;
    int64_t slots = ((share < limit ? share : limit) - other) / each;
    for (unsigned i = 0; i < candidate->count; i++) /* words come through the L1 cache, to which slots leave no room */
        if (gpu_load_is_turned(candidate->loads[i])) return LEAST_SLOTS;
    return slots < LEAST_SLOTS ? LEAST_SLOTS : slots > MOST_SLOTS ? MOST_SLOTS : slots;
}

static void decline(Candidate *candidate, const TileOp *load, const char *why) {
    tile_pass_remark(candidate->context, load, TILE_DECISION_NOT_COPIED_AHEAD, tile_op_operand(load, 0)->name, "%s",
                     why);
}

/* Is it one of what a product takes that is computed on its way, and do threads copy it? Those that multiply by wgmma copy
 * nothing: the others do, by maps. */
static bool passes_through(Candidate *candidate, const TileOp *load) {
    return !candidate->wgmma && gpu_load_is_computed(load) && gpu_load_has_whole_chunks(candidate->func, load);
}

static void find_loads(Candidate *candidate) {
    for (TileOp *op = candidate->loop->regions[0].first; op; op = op->next) {
        if (!is_copied(op) && !passes_through(candidate, op)) continue;
        const char *why = why_not_ahead(op, candidate->loop);
        if (!why && candidate->count >= (gpu_by_map(op) ? MOST_MAP_LOADS : MOST_LOADS))
            why = "the loop already copies the maximum number of tiles ahead";
        if (why) {
            decline(candidate, op, why);
            continue;
        }
        candidate->bytes += slot_bytes(candidate->context->module->context, op);
        candidate->loads[candidate->count++] = op;
    }
}

/* Operands that pass through registers on their way to the product. */
static void remark_operands(Candidate *candidate) {
    for (const TileOp *dot = candidate->loop->regions[0].first; dot; dot = dot->next) {
        if (!gpu_dot_reads_shared(dot)) continue;
        for (unsigned i = 0; i < 2; i++) {
            const TileOp *between, *load = gpu_operand_load(dot, i, &between);
            if (!load || is_copied(load) || passes_through(candidate, load)) continue;
            if (candidate->wgmma && gpu_load_is_computed(load))
                decline(candidate, load, "no tensor map copies it, and warps that multiply by wgmma copy nothing");
            else if (between)
                tile_pass_remark(candidate->context, load, TILE_DECISION_NOT_COPIED_AHEAD,
                                 tile_op_operand(load, 0)->name,
                                 "`%s` on its way to the product, or another use of it, requires it in registers",
                                 tile_op_info(between->id)->mnemonic);
            else
                decline(candidate, load, "a mask, a gather or another use of it requires it in registers");
        }
    }
}

static void remark_slots(Candidate *candidate, int64_t slots) {
    for (unsigned i = 0; i < candidate->count; i++) {
        const TileOp *load = candidate->loads[i];
        if (slots)
            tile_pass_remark(candidate->context, load, TILE_DECISION_COPIED_AHEAD, tile_op_operand(load, 0)->name,
                             "%lld iteration%s ahead, %lld slots of %lld bytes", (long long)slots - 1, slots == 2 ? "" : "s",
                             (long long)slots, (long long)slot_bytes(candidate->context->module->context, load));
        else
            decline(candidate, load,
                    candidate->func->stages == 1 ? "`stages` is 1" : "shared memory has no room for the tiles of two iterations");
    }
}

/* Registers were shared out (gpu-threads) among blocks for which these slots may leave no room: the threads of those that are there have theirs. */
static void share_registers(const Candidate *candidate) {
    const TilePtxTarget *target = tile_ptx_target_of(candidate->context->target);
    TileFunc *func = candidate->func;
    if (!func->registers) return;
    int64_t bytes = taken_bytes(func, candidate->context->module->context, &func->body, candidate->loop) + target->shared_reserved_bytes;
    int64_t blocks = bytes < target->shared_core_bytes ? target->shared_core_bytes / bytes : 1;
    int64_t registers = target->registers / (blocks * func->threads) & ~INT64_C(7);
    if (registers >= target->registers_thread) func->registers = 0;
    else if (registers > func->registers) func->registers = (uint32_t)registers;
}

static bool try_loop(TilePassContext *context, TileFunc *func, TileOp *loop) {
    Candidate candidate = {.context = context, .func = func, .loop = loop};
    if (loop->id != TILE_OP_FOR || tile_loop_is_of_programs(loop)) return false;
    for (const TileOp *op = loop->regions[0].first; op; op = op->next)
        candidate.wgmma |= op->id == TILE_OP_DOT && gpu_dot_is_wgmma(op);
    find_loads(&candidate);
    if (context->remarks) remark_operands(&candidate);
    int64_t slots = candidate.count ? choose_slots(&candidate) : 0;
    remark_slots(&candidate, slots);
    if (!slots) return false;
    for (unsigned i = 0; i < candidate.count; i++)
        tile_op_set_integer(context->module, candidate.loads[i], TILE_ATTRIBUTE_LATENCY, slots - 1);
    share_registers(&candidate);
    return true;
}

/* Inner loops first: they have the first choice of the shared memory. */
static bool walk(TilePassContext *context, TileFunc *func, TileBlock *block) {
    bool changed = false;
    for (TileOp *op = block->first; op; op = op->next) {
        for (unsigned i = 0; i < op->region_count; i++) changed |= walk(context, func, &op->regions[i]);
        changed |= try_loop(context, func, op);
    }
    return changed;
}

/* How many divisors of extents have been asked for. */
static unsigned count_asked(const TileFunc *func) {
    unsigned count = 0;
    for (uint32_t i = 0; i < func->body.argument_count; i++)
        count += (unsigned)__builtin_popcount(func->parameters[i].asked_multiple);
    return count;
}

/* ---- the next program's tiles ---- */

enum { MOST_FOR_MASKS = 128 };

static void look_for_indices(TileOp *op, void *found) { *(bool *)found |= op->id == TILE_OP_IOTA; }

/* Registers of a thread that are no sums of a product, for each that multiplies. */
static void add_sums(TileOp *op, void *registers) {
    if (op->id == TILE_OP_DOT && gpu_dot_is_wgmma(op)) *(int64_t *)registers += tile_type_lanes(op->results[0].type);
}

static int64_t registers_beside_sums(TilePassContext *context, TileFunc *func) {
    int64_t sums = 0, multiplying = func->threads, copying = TILE_WARPGROUP_THREADS;
    int64_t first = gpu_first_registers(tile_ptx_target_of(context->target), multiplying + copying);
    tile_block_walk(&func->body, add_sums, &sums);
    return (first * (multiplying + copying) - gpu_copying_registers(0, multiplying) * copying - sums) / multiplying;
}

/* What a program of a block that stays loads once, outside of loops, is copied while the program before is computed, where shared memory has
 * room for both. Where tiles of indices are computed, only beside few sums: with the registers that masks take, the place of a slot, no
 * constant then, was one too many (causal attention of 16k keys with 128 elements a head took 1.1 times as long, others 0.97 to 0.99 times). */
static bool take_next(TilePassContext *context, TileFunc *func, TileOp *programs) {
    int64_t limit = tile_ptx_target_of(context->target)->shared_block_bytes - MBARRIERS,
            bytes = taken_bytes(func, context->module->context, &func->body, NULL);
    bool changed = false, indices = false;
    tile_block_walk(&programs->regions[0], look_for_indices, &indices);
    indices = indices && registers_beside_sums(context, func) < MOST_FOR_MASKS;
    for (TileOp *op = programs->regions[0].first; op && !indices; op = op->next) {
        bool once = op->id == TILE_OP_LOAD_TILE && gpu_by_map(op) && is_copied(op) && !gpu_load_is_added(op) && !tile_op_get(op, TILE_ATTRIBUTE_LATENCY);
        int64_t more = once ? slot_bytes(context->module->context, op) : 0;
        if (!once || bytes + more > limit) continue;
        tile_op_set_integer(context->module, op, TILE_ATTRIBUTE_LATENCY, 1);
        tile_pass_remark(context, op, TILE_DECISION_COPIED_BEFORE, tile_op_operand(op, 0)->name, "2 slots of %d bytes", (int)more);
        bytes += more;
        changed = true;
    }
    return changed;
}

TileResult tile_pass_gpu_latencies(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE || !gpu_find_dots(func, &func->body).count) return TILE_RESULT_UNCHANGED;
    unsigned asked = count_asked(func);
    bool changed = walk(context, func, &func->body);
    for (TileOp *op = func->body.first; op; op = op->next)
        if (op->id == TILE_OP_FOR && tile_op_integer(op, TILE_ATTRIBUTE_RESIDENT, 0)) changed |= take_next(context, func, op);
    return changed || count_asked(func) != asked ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
