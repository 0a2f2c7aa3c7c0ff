/* Purpose: choose the L2 cache policy of loads and stores of tiles: `cache = l2` where the program reads the elements
 * again, `cache = stream` where no program does, or, of operands of products (`once`), where no other does.
 *
 * Before:
 *     func phase tile @k.0(%x: tensor<f32, 2, in> {noalias, readonly}, %y: tensor<f32, 1, out> {noalias}, %begin: i64,
 *       %end: i64) stream = 1 threads = 32 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 64} : i64
 *       %0 = block : i64
 *       %1 = add %begin, %0 : i64
 *       %2 = block_count : i64
 *       for %1, %end, %2 {one_program = 1} (%program: i64) {
 *         %v = load_tile %x, %program, %zero, %one, %zero, %n {access = [index, range]} : f32[64]
 *         %s = reduce %v {axis = 0, kind = sum} : f32
 *         store_tile %y, %s, %program {access = [index]}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%x: tensor<f32, 2, in> {noalias, readonly}, %y: tensor<f32, 1, out> {noalias}, %begin: i64,
 *       %end: i64) stream = 1 threads = 32 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 64} : i64
 *       %0 = block : i64
 *       %1 = add %begin, %0 : i64
 *       %2 = block_count : i64
 *       for %1, %end, %2 {one_program = 1} (%program: i64) {
 *         %v = load_tile %x, %program, %zero, %one, %zero, %n {access = [index, range], cache = stream} : f32[64]
 *         %s = reduce %v {axis = 0, kind = sum} : f32
 *         store_tile %y, %s, %program {access = [index]}
 *         yield
 *       }
 *       return
 *     }
 * Needs: gpu-blocks; program_id not expanded. Keeps: tile form. A policy is a hint: only speed depends on it.
 * Cost: each load of a tensor is compared with its other uses, 64 at most. */
#include "ptx/passes.h"
#include "ptx/grid/reuse.h"

typedef struct Caches {
    TilePassContext *context;
    const TileFunc *func;
    TileIndices *indices;
    bool reads_again, changed;
} Caches;

static void set_cache(Caches *caches, TileOp *op, TileName cache) {
    if (cache == TILE_CACHE_DEFAULT) return;
    tile_op_set_integer(caches->context->module, op, TILE_ATTRIBUTE_CACHE, cache);
    caches->changed = true;
}

/* Is the tensor constant while the phase runs: read-only and not aliased? */
static bool is_constant(const Caches *caches, const TileOp *load) {
    const TileParameter *parameter = &caches->func->parameters[tile_op_operand(load, 0)->index];
    return parameter->readonly && parameter->noalias;
}

/* Is it a copy by a map of an operand of which all programs read each element once? */
static bool is_copied_once(const Caches *caches, const TileOp *op) {
    enum { MOST_BITS = 31 };
    if (op->id != TILE_OP_COPY_TILE || !tile_op_get(op, TILE_ATTRIBUTE_TENSOR_MAP) || !is_constant(caches, op)) return false;
    uint32_t argument = caches->func->parameters[tile_op_operand(op, 0)->index].argument;
    return argument < MOST_BITS && caches->func->once >> argument & 1;
}

static void decide(TileOp *op, void *state) {
    Caches *caches = state;
    if (is_copied_once(caches, op)) set_cache(caches, op, TILE_CACHE_STREAM);
    if (op->id == TILE_OP_LOAD_TILE && tile_type_is_tile(op->results[0].type) && is_constant(caches, op))
        set_cache(caches, op, gpu_load_reuse(caches->indices, caches->func, op));
    if (op->id == TILE_OP_STORE_TILE && tile_type_is_tile(tile_op_operand(op, 1)->type))
        set_cache(caches, op, gpu_store_reuse(op, caches->reads_again));
}

TileResult tile_pass_gpu_cache(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    Caches caches = {.context = context, .func = func, .indices = tile_pass_indices(context, func)};
    caches.reads_again = gpu_reads_again(caches.indices, func);
    tile_block_walk(&func->body, decide, &caches);
    return caches.changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
