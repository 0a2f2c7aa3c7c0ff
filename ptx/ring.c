/* Purpose: bring the operands of products in a loop to shared memory while earlier ones are multiplied. Each load
 * becomes a copy that is begun some trips ahead, into one of the slots of a ring; a trip waits for its own slot and
 * then begins the copies into the slot that the trip before it has left. One barrier a trip serves both: all threads'
 * copies have arrived, and nobody reads the old slot any more.
 *
 * Before:
 *     func phase tile @k.0(%a: tensor<f16, 2, in> {noalias}, %b: tensor<f16, 2, in> {noalias},
 *                          %c: tensor<f32, 2, out> {noalias}, %begin: i64, %end: i64) threads = 64 {
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
 *     func phase tile @k.0(%a: tensor<f16, 2, in> {noalias}, %b: tensor<f16, 2, in> {noalias}, %c: tensor<f32, 2,
 *                          out> {noalias}, %begin: i64, %end: i64) threads = 64 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 16} : i64
 *       %acc = const {value = 0.0} : f32[16, 16]
 *       %0 = buffer {bytes = 2048, align = 128, slots = 4} : ptr<shared, f16[16, 16], swizzle 32 rows>
 *       %1 = buffer {bytes = 2048, align = 128, slots = 4} : ptr<shared, f16[16, 16], swizzle 32 rows>
 *       %2 = const {value = 1} : i64
 *       %3 = const {value = 3} : i64
 *       %4 = const {value = 0} : i64
 *       for %4, %3, %2 (%5: i64) {
 *         %6 = const {value = 16} : i64
 *         %7 = mul %5, %6 : i64
 *         %8 = sub %end, %begin : i64
 *         %9 = bitcast %8 : u64
 *         %10 = bitcast %7 : u64
 *         %11 = gt %9, %10 : bool
 *         %12 = lt %begin, %end : bool
 *         %13 = and %12, %11 : bool
 *         %14 = add %begin, %7 : i64
 *         if %13 {
 *           %15 = const {value = 512} : i64
 *           %16 = mul %5, %15 : i64
 *           %17 = ptr_add %0, %16 : ptr<shared, f16[16, 16], swizzle 32 rows>
 *           copy_tile %a, %17, %zero, %one, %zero, %n, %14, %one, %zero, %n {access = [range, range],
 *               types = [f16[16, 16]]}
 *           %18 = const {value = 512} : i64
 *           %19 = mul %5, %18 : i64
 *           %20 = ptr_add %1, %19 : ptr<shared, f16[16, 16], swizzle 32 rows>
 *           copy_tile %b, %20, %14, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range],
 *               types = [f16[16, 16]]}
 *           yield
 *         } {
 *           yield
 *         }
 *         copy_commit
 *         yield
 *       }
 *       %21 = const {value = 0} : i64
 *       %sum, %22 = for %begin, %end, %n, %acc, %21 : f32[16, 16], i64 (%k: i64, %acc.1: f32[16, 16], %23: i64) {
 *         %24 = const {value = 1} : i64
 *         %25 = const {value = 0} : i64
 *         %26 = const {value = 3} : i64
 *         %27 = eq %23, %25 : bool
 *         %28 = eq %23, %26 : bool
 *         %29 = sub %23, %24 : i64
 *         %30 = select %27, %26, %29 : i64
 *         %31 = add %23, %24 : i64
 *         %32 = select %28, %25, %31 : i64
 *         copy_wait {pending = 2}
 *         barrier
 *         %33 = const {value = 48} : i64
 *         %34 = sub %end, %k : i64
 *         %35 = bitcast %34 : u64
 *         %36 = bitcast %33 : u64
 *         %37 = gt %35, %36 : bool
 *         %38 = add %k, %33 : i64
 *         if %37 {
 *           %39 = const {value = 512} : i64
 *           %40 = mul %30, %39 : i64
 *           %41 = ptr_add %0, %40 : ptr<shared, f16[16, 16], swizzle 32 rows>
 *           copy_tile %a, %41, %zero, %one, %zero, %n, %38, %one, %zero, %n {access = [range, range],
 *               types = [f16[16, 16]]}
 *           %42 = const {value = 512} : i64
 *           %43 = mul %30, %42 : i64
 *           %44 = ptr_add %1, %43 : ptr<shared, f16[16, 16], swizzle 32 rows>
 *           copy_tile %b, %44, %38, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range],
 *               types = [f16[16, 16]]}
 *           yield
 *         } {
 *           yield
 *         }
 *         copy_commit
 *         %45 = const {value = 512} : i64
 *         %46 = mul %23, %45 : i64
 *         %47 = ptr_add %0, %46 : ptr<shared, f16[16, 16], swizzle 32 rows>
 *         %48 = const {value = 512} : i64
 *         %49 = mul %23, %48 : i64
 *         %50 = ptr_add %1, %49 : ptr<shared, f16[16, 16], swizzle 32 rows>
 *         %x = shared_tile %47 : f16[16, 16]
 *         %y = shared_tile %50 : f16[16, 16]
 *         %acc.2 = dot %x, %y, %acc.1 {instruction = mma} : f32[16, 16]
 *         yield %acc.2, %32
 *       }
 *       store_tile %c, %sum, %zero, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]}
 *       return
 *     }
 * Needs: gpu-blocks. Keeps: tile form. Cost: linear in the loops' bodies. */
#include "lowering/memory.h"
#include "ptx/copies.h"
#include "ptx/loop.h"
#include "ptx/passes.h"
#include "ptx/target.h"

enum { MOST_LOADS = 8, MOST_STAGES = 4, LEAST_STAGES = 2, LARGEST_STEP = 1 << 30, SMALL_BLOCK = 128 };

typedef struct Ring {
    TilePassContext *context;
    TileFunc *func;
    TileOp *loop;
    TileOp *loads[MOST_LOADS];
    const TileType *types[MOST_LOADS]; /* of their places */
    TileValue *buffers[MOST_LOADS];
    int64_t bytes[MOST_LOADS], step;
    unsigned count;
    int64_t stages;
    TileBuilder b;
} Ring;

/* ---- which loops ---- */

/* Is the value known before the loop, or computed in its body from the index alone? */
static bool follows_index(const TileValue *value, const TileOp *loop) {
    if (tile_value_outside(value, loop)) return true;
    if (!value->op) return value->index == 0;
    if (value->op->block != &loop->regions[0] || !(tile_op_info(value->op->id)->traits & TILE_TRAIT_PURE)) return false;
    for (unsigned i = 0; i < value->op->operand_count; i++)
        if (!follows_index(tile_op_operand(value->op, i), loop)) return false;
    return true;
}

static bool can_run_ahead(const TileOp *load, const TileOp *loop) {
    if (!gpu_load_is_copied(load) || tile_memory_is_written(loop, tile_op_operand(load, 0))) return false;
    for (unsigned i = 1; i < load->operand_count; i++)
        if (!follows_index(tile_op_operand(load, i), loop)) return false;
    return true;
}

static int64_t stage_bytes(const Ring *ring) {
    int64_t bytes = 0;
    for (unsigned i = 0; i < ring->count; i++) bytes += ring->bytes[i];
    return bytes;
}

/* Shared memory of the function that is spoken for: buffers, and tiles of loads that will have one. */
static int64_t taken_bytes(TileContext *context, const TileBlock *block) {
    int64_t bytes = 0;
    for (const TileOp *op = block->first; op; op = op->next) {
        if (op->id == TILE_OP_BUFFER) bytes += tile_op_integer(op, TILE_ATTRIBUTE_BYTES, 0);
        if (gpu_load_is_copied(op)) bytes += gpu_place_bytes(gpu_shared_type(context, op->results[0].type));
        for (unsigned i = 0; i < op->region_count; i++) bytes += taken_bytes(context, &op->regions[i]);
    }
    return bytes;
}

/* As many slots as leave room for a second small block on the same multiprocessor; 0: not even two fit. */
static int64_t choose_stages(const Ring *ring) {
    const TilePtxTarget *target = tile_ptx_target_of(ring->context->target);
    int64_t threads = ring->func->threads, stage = stage_bytes(ring), limit = target->shared_block_bytes,
            other = taken_bytes(ring->context->module->context, &ring->func->body) - stage;
    if (limit < other + LEAST_STAGES * stage || ring->func->stages == 1) return 0;
    int64_t most = (limit - other) / stage, wanted = ring->func->stages;
    if (wanted) return wanted < most ? wanted : most;
    int64_t share = threads <= SMALL_BLOCK ? target->shared_core_bytes / 2 - target->shared_reserved_bytes : limit;
    int64_t stages = ((share < limit ? share : limit) - other) / stage;
    return stages < LEAST_STAGES ? LEAST_STAGES : stages > MOST_STAGES ? MOST_STAGES : stages;
}

static bool find_loads(Ring *ring) {
    if (!tile_value_integer(tile_op_operand(ring->loop, 2), &ring->step) || ring->step > LARGEST_STEP) return false;
    for (TileOp *op = ring->loop->regions[0].first; op; op = op->next) {
        if (ring->count == MOST_LOADS || !can_run_ahead(op, ring->loop)) continue;
        ring->types[ring->count] = gpu_shared_type(ring->context->module->context, op->results[0].type);
        ring->bytes[ring->count] = gpu_place_bytes(ring->types[ring->count]);
        ring->loads[ring->count++] = op;
    }
    if (!ring->count) return false;
    ring->stages = choose_stages(ring);
    return ring->stages > 0;
}

/* ---- copies of a trip ---- */

static void clone_index_code(Ring *ring, const TileValue *value, TileMap *map) {
    if (tile_value_outside(value, ring->loop) || !value->op || tile_map_get(map, value)) return;
    for (unsigned i = 0; i < value->op->operand_count; i++) clone_index_code(ring, tile_op_operand(value->op, i), map);
    tile_builder_insert(&ring->b, tile_op_clone(ring->context->module, value->op, map));
}

static TileValue *slot_place(Ring *ring, unsigned load, TileValue *slot) {
    TileValue *bytes = tile_build_i64(&ring->b, ring->bytes[load]);
    return tile_build_ptr_add(&ring->b, ring->buffers[load], tile_build_binary(&ring->b, TILE_OP_MUL, slot, bytes));
}

/* Where the trip is none, copies nothing; a group is closed in any case, so that they can be counted. */
static void build_copies(Ring *ring, TileValue *exists, TileValue *index, TileValue *slot) {
    TileBuilder outer = ring->b;
    TileOp *choice = tile_build_if(&outer, exists, NULL, 0);
    ring->b.block = &choice->regions[0];
    ring->b.before = NULL;
    TileMap map;
    tile_map_init(&map, ring->context->scratch);
    tile_map_set(&map, ring->loop->regions[0].arguments[0], index);
    for (unsigned i = 0; i < ring->count; i++) {
        for (unsigned o = 1; o < ring->loads[i]->operand_count; o++)
            clone_index_code(ring, tile_op_operand(ring->loads[i], o), &map);
        gpu_build_copy(&ring->b, ring->loads[i], slot_place(ring, i, slot), &map);
    }
    tile_build_end(&ring->b, TILE_OP_YIELD, NULL, 0);
    ring->b.block = &choice->regions[1];
    tile_build_end(&ring->b, TILE_OP_YIELD, NULL, 0);
    outer.error = ring->b.error ? ring->b.error : outer.error;
    ring->b = outer;
    gpu_build_plain(&ring->b, TILE_OP_COPY_COMMIT);
}

/* Is from + distance < to, where from < to is certain or asked for? Their difference fits into 64 bits without a sign.
 */
static TileValue *reaches(Ring *ring, TileValue *from, TileValue *to, TileValue *distance, bool certain) {
    TileBuilder *b = &ring->b;
    TileValue *left = tile_build_bitcast(b, tile_build_binary(b, TILE_OP_SUB, to, from), TILE_U64);
    TileValue *far = tile_build_binary(b, TILE_OP_GT, left, tile_build_bitcast(b, distance, TILE_U64));
    if (certain) return far;
    return tile_build_binary(b, TILE_OP_AND, tile_build_binary(b, TILE_OP_LT, from, to), far);
}

/* ---- the loop ---- */

/* The first trips' copies. */
static void build_prologue(Ring *ring) {
    TileBuilder *b = &ring->b;
    TileValue *lo = tile_op_operand(ring->loop, 0), *hi = tile_op_operand(ring->loop, 1);
    for (unsigned i = 0; i < ring->count; i++)
        ring->buffers[i] = gpu_build_buffer(b, ring->types[i], ring->bytes[i], GPU_TILE_ALIGN, ring->stages);
    TileOp *first =
        tile_build_for(b, tile_build_i64(b, 0), tile_build_i64(b, ring->stages - 1), tile_build_i64(b, 1), NULL, 0);
    TileBuilder outer = ring->b;
    ring->b.block = &first->regions[0];
    ring->b.before = NULL;
    TileValue *slot = first->regions[0].arguments[0];
    TileValue *distance = tile_build_binary(b, TILE_OP_MUL, slot, tile_build_i64(b, ring->step));
    TileValue *exists = reaches(ring, lo, hi, distance, false);
    build_copies(ring, exists, tile_build_binary(b, TILE_OP_ADD, lo, distance), slot);
    tile_build_end(b, TILE_OP_YIELD, NULL, 0);
    outer.error = b->error ? b->error : outer.error;
    ring->b = outer;
}

static void build_trip(Ring *ring) {
    TileBuilder *b = &ring->b;
    TileBlock *body = &ring->loop->regions[0];
    TileValue *index = body->arguments[0], *slot = body->arguments[body->argument_count - 1];
    *b = tile_builder_before(ring->context->module, body->first);
    TileValue *one = tile_build_i64(b, 1), *zero = tile_build_i64(b, 0), *last = tile_build_i64(b, ring->stages - 1);
    TileValue *is_first = tile_build_binary(b, TILE_OP_EQ, slot, zero),
              *is_last = tile_build_binary(b, TILE_OP_EQ, slot, last);
    TileValue *left =
        tile_build_ternary(b, TILE_OP_SELECT, is_first, last, tile_build_binary(b, TILE_OP_SUB, slot, one));
    TileValue *next =
        tile_build_ternary(b, TILE_OP_SELECT, is_last, zero, tile_build_binary(b, TILE_OP_ADD, slot, one));
    gpu_build_wait(b, ring->stages - 2);
    gpu_build_plain(b, TILE_OP_BARRIER);
    TileValue *distance = tile_build_i64(b, (ring->stages - 1) * ring->step);
    TileValue *exists = reaches(ring, index, tile_op_operand(ring->loop, 1), distance, true);
    build_copies(ring, exists, tile_build_binary(b, TILE_OP_ADD, index, distance), left);
    TileValue *places[MOST_LOADS];
    for (unsigned i = 0; i < ring->count; i++) places[i] = slot_place(ring, i, slot);
    for (unsigned i = 0; i < ring->count; i++) gpu_replace_load(b, ring->loads[i], places[i]);
    tile_op_add_operand(ring->context->module, body->last, next);
}

static bool try_loop(TilePassContext *context, TileFunc *func, TileOp *loop, const char **error) {
    Ring ring = {.context = context, .func = func, .loop = loop};
    if (loop->id != TILE_OP_FOR || !find_loads(&ring)) return false;
    ring.b = tile_builder_before(context->module, loop);
    build_prologue(&ring);
    TileValue *slot = tile_build_i64(&ring.b, 0);
    ring.loop = gpu_loop_carry(context, loop, &slot, 1);
    build_trip(&ring);
    if (ring.b.error) *error = ring.b.error;
    return true;
}

/* Inner loops first: what an inner one takes is no longer the outer one's. */
static bool walk(TilePassContext *context, TileFunc *func, TileBlock *block, const char **error) {
    bool changed = false;
    for (TileOp *op = block->first, *next; op; op = next) {
        next = op->next;
        for (unsigned i = 0; i < op->region_count; i++) changed |= walk(context, func, &op->regions[i], error);
        changed |= try_loop(context, func, op, error);
    }
    return changed;
}

TileResult tile_pass_gpu_pipeline(TilePassContext *context, TileFunc *func) {
    const char *error = NULL;
    if (func->kind != TILE_FUNC_PHASE || !gpu_find_dots(func, &func->body).count) return TILE_RESULT_UNCHANGED;
    bool changed = walk(context, func, &func->body, &error);
    if (error) return tile_pass_fail(context, TILE_INTERNAL, NULL, "gpu-pipeline: %s", error);
    return changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
