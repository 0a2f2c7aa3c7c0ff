/* Purpose: let a block collect its atomic updates of a few elements, such as the bins of a histogram, in its own shared
 * memory. Then updates of one element by many threads meet in their multiprocessor and not in the one place that all
 * multiprocessors share, and each block updates the tensor once at its end. Each dimension of the tensor has an index tile; the
 * elements are numbered with the last one varying fastest. Blocks stay (`resident`) and take several
 * programs, since each of them has all elements to update. Whether it pays depends on numbers of the launch; so the code
 * has both forms, and each block chooses.
 *
 * Where the program has other accesses to the tensor, or updates a row of it, a tile of updates of few elements is combined
 * in shared memory by itself (`in_shared`): the block updates each element of the tensor once behind it.
 *
 * Before:
 *     func phase tile @k.0(%x: tensor<i32, 1, in> {noalias}, %y: tensor<i32, 1, inout> {noalias}, %begin: i64, %end: i64) {
 *       %one = const {value = 1} : i64
 *       %zero = const {value = 0} : i64
 *       %n = const {value = 32} : i64
 *       %w = const {value = 1} : i32[32]
 *       %b = block : i64
 *       %c = block_count : i64
 *       %first = add %begin, %b : i64
 *       for %first, %end, %c {one_program = 1} (%program: i64) {
 *         %v = load_tile %x, %program, %one, %zero, %n {access = [range]} : i32[32]
 *         %i = convert %v : i64[32]
 *         %old = atomic_tile %y, %w, %i {access = [gather], update = add} : i32[32]
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%x: tensor<i32, 1, in> {noalias}, %y: tensor<i32, 1, inout> {noalias}, %begin: i64, %end: i64) resident = 1 {
 *       %one = const {value = 1} : i64
 *       %zero = const {value = 0} : i64
 *       %n = const {value = 32} : i64
 *       %w = const {value = 1} : i32[32]
 *       %b = block : i64
 *       %c = block_count : i64
 *       %first = add %begin, %b : i64
 *       for %first, %end, %c {resident = 1} (%program: i64) {
 *         %v = load_tile %x, %program, %one, %zero, %n {access = [range]} : i32[32]
 *         %i = convert %v : i64[32]
 *         %old = atomic_tile %y, %w, %i {access = [gather], update = add, collected = 8192} : i32[32]
 *         yield
 *       }
 *       return
 *     }
 * Needs: gpu-blocks. Keeps: tile form. Cost: linear, times the number of atomic ops. */
#include "lang/ir/build.h"
#include "lang/index/index.h"
#include "lang/ir/operands.h"
#include "lowering/memory.h"
#include "ptx/passes.h"

/* 32 KiB: as many threads are there at a time as without, since blocks that collect have 256 or more (gpu-threads). */
enum { MOST_ELEMENTS = 8192, MOST_OF_A_TILE = 2048 };

typedef struct Collect {
    TilePassContext *context;
    TileFunc *func;
    TileIndices *indices;
    bool collects, combines;
} Collect;

typedef struct Others {
    const TileOp *update;
    bool found;
} Others;

/* Does another op read or write the tensor? Updates that are collected come to it late. */
static void look_for_others(TileOp *op, void *state) {
    Others *others = state;
    const TileValue *tensor = tile_op_operand(others->update, 0);
    if (op == others->update || op->region_count) return;
    others->found |= tile_memory_is_written(op, tensor);
    others->found |= tile_op_reads(op) && tile_memory_overlaps(tensor, tile_memory_tensor(op));
}

/* Shared memory has instructions for integers of 32 bits, and adds f32. */
static bool is_updated_in_shared(const TileOp *update) {
    TileScalar scalar = update->results[0].type->scalar;
    bool adds = tile_op_get(update, TILE_ATTRIBUTE_UPDATE)->integer == TILE_UPDATE_ADD;
    return scalar == TILE_I32 || scalar == TILE_U32 || (scalar == TILE_F32 && adds);
}

/* NULL: its updates can be collected. */
static const char *obstacle(const Collect *collect, const TileOp *update) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    if (tile_op_get(update, TILE_ATTRIBUTE_UPDATE)->integer == TILE_UPDATE_CAS || update->results[0].first_use)
        return "its old values are used";
    if (!is_updated_in_shared(update)) return "it neither updates integers of 32 bits nor adds f32";
    unsigned rank = tile_access_read(update, indices);
    for (unsigned d = 0; d < rank || !d; d++)
        if (!rank || indices[d].kind != TILE_ACCESS_GATHER) return "its places are not those of an index tile for each dimension";
    Others others = {.update = update};
    tile_block_walk(&collect->func->body, look_for_others, &others);
    return others.found ? "the grid has other accesses to the tensor" : NULL;
}

static void look_for_products(TileOp *op, void *state) {
    bool *found = state;
    *found |= op->id == TILE_OP_DOT;
}

/* How many elements from the first on a tile of updates may have places in, if all its lanes are known to have them in few
 * elements of one row, each of which several update; else 0. Warps of a grid with products may do work of their own, and do
 * not meet. */
static int64_t count_places(const Collect *collect, const TileOp *update) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    TileScalar scalar = update->results[0].type->scalar;
    if (tile_op_get(update, TILE_ATTRIBUTE_UPDATE)->integer == TILE_UPDATE_CAS || update->results[0].first_use) return 0;
    if (scalar != TILE_I32 && scalar != TILE_U32) return 0;
    unsigned rank = tile_access_read(update, indices);
    if (!rank || indices[rank - 1].kind != TILE_ACCESS_GATHER) return 0;
    for (unsigned i = 0; i + 1 < rank; i++)
        if (indices[i].kind != TILE_ACCESS_INDEX) return 0;
    bool products = false;
    tile_block_walk(&collect->func->body, look_for_products, &products);
    TileIndexRange range = tile_index_range(collect->indices, indices[rank - 1].first);
    bool few = range.lo >= 0 && range.hi < MOST_OF_A_TILE && tile_type_lanes(update->results[0].type) / 2 > range.hi;
    if (products || !few) return 0;
    tile_index_use(collect->indices, range.because);
    return range.hi + 1;
}

/* Combines a tile's updates; false: it does not. */
static bool combine_tile(Collect *collect, TileOp *update) {
    int64_t places = count_places(collect, update);
    const char *name = tile_op_operand(update, 0)->name;
    if (!places) return false;
    tile_pass_remark(collect->context, update, TILE_DECISION_IN_SHARED, name ? name : "a tensor", "%lld elements",
                     (long long)places);
    tile_op_set_integer(collect->context->module, update, TILE_ATTRIBUTE_IN_SHARED, places);
    collect->combines = true;
    return true;
}

static void look_at_update(TileOp *op, void *state) {
    Collect *collect = state;
    if (op->id != TILE_OP_ATOMIC_TILE) return;
    const char *why = obstacle(collect, op), *name = tile_op_operand(op, 0)->name;
    if (why) {
        if (combine_tile(collect, op)) return;
        tile_pass_remark(collect->context, op, TILE_DECISION_NOT_COLLECTED, name ? name : "a tensor", "%s", why);
        return;
    }
    tile_pass_remark(collect->context, op, TILE_DECISION_COLLECTED, name ? name : "a tensor", "up to %d elements",
                     MOST_ELEMENTS);
    tile_op_set_integer(collect->context->module, op, TILE_ATTRIBUTE_COLLECTED, MOST_ELEMENTS);
    collect->collects = true;
}

TileResult tile_pass_gpu_collect(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    Collect collect = {.context = context, .func = func, .indices = tile_pass_indices(context, func)};
    for (TileOp *loop = func->body.first; loop; loop = loop->next) {
        if (!tile_op_integer(loop, TILE_ATTRIBUTE_ONE_PROGRAM, 0)) continue;
        tile_block_walk(&loop->regions[0], look_at_update, &collect);
        if (!collect.collects) continue;
        tile_op_clear(loop, TILE_ATTRIBUTE_ONE_PROGRAM);
        tile_op_set_integer(context->module, loop, TILE_ATTRIBUTE_RESIDENT, 1);
        func->resident = true;
    }
    return collect.collects || collect.combines ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
