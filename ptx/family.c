/* The table of the GPU passes and their order. */
#include "ptx/passes.h"

#include "ptx/target/dot.h"
#include "ptx/target/target.h"

enum { TILE = TILE_FORM_TILE, MACHINE = TILE_FORM_MACHINE, BOTH = TILE_FORM_TILE | TILE_FORM_MACHINE };

static const TilePassInfo passes[] = {
#define PASS(id, name, stage, input, output, needs, keeps, doc)                                                            \
    {name, doc, TILE_STAGE_##stage, input, output, TILE_ANALYSIS_##needs, TILE_ANALYSIS_##keeps, tile_pass_##id},
#include "ptx/passes.def"
#undef PASS
};

static const TilePassTable table = {passes, sizeof passes / sizeof *passes};

static const char *pipeline(const TileTarget *target) {
    return "inline,contract,approximate,specialise,sort,canonicalise,cse,strides,facts,exact-loops,unroll,canonicalise,cse,gpu-neighbours,remainders,licm,canonicalise,cse,dce,gpu-flatten,gpu-one-pass,gpu-short-rows,gpu-zeros,gpu-join-programs,gpu-share-loops,dce,gpu-pack,gpu-precompute,gpu-temp-rows,gpu-positions,canonicalise,cse,dce,gpu-join-iterations,gpu-join-rows,gpu-alike,dce,gpu-agree,gpu-share-rows,gpu-split-grids,gpu-clusters,dce,gpu-launch-values,dce,"
           "programs,gpu-blocks,gpu-once,gpu-interleave,gpu-collect,gpu-threads,gpu-stay,gpu-tensor-maps,gpu-transpose,gpu-warpgroups,gpu-join-loops,gpu-order,gpu-multicast,gpu-pairs,gpu-places,gpu-late-sums,gpu-keep-rows,canonicalise,cse,dce,gpu-loads-first,gpu-windows,gpu-ahead,"
           "gpu-latencies,gpu-channels,gpu-gather-positions,gpu-dot-waits,gpu-partitions,gpu-cut,gpu-turns,gpu-dot-stages,gpu-dot-order,gpu-peel,gpu-stages,gpu-expand,gpu-dot-operands,gpu-puts,gpu-copy-groups,gpu-straight,gpu-inside,gpu-unswitch,gpu-whole,gpu-narrow,gpu-words,gpu-cache,expand-programs,canonicalise,cse,dce,"
           "gpu-anchor,gpu-propagate,cse,gpu-rematerialise,gpu-convert-later,dce,gpu-fetch,canonicalise,dce,"
           "gpu-machine,canonicalise,cse,dce,gpu-meet,gpu-shared,gpu-barriers,canonicalise,cse,licm,dce,gpu-join-branches,cse,gpu-join-branches,gpu-into-branches,gpu-schedule,gpu-expand,canonicalise,gpu-spread,gpu-lanes,dce,"
           "atomics,gpu-math,random,math,cse,licm,dce,"
           "legalise,gpu-once,gpu-wait,gpu-late-numbers,gpu-counts,gpu-again,dce";
}

static const TileTarget *target_at(unsigned index) {
    unsigned count;
    const TilePtxTarget *targets = tile_ptx_targets(&count);
    return index < count ? &targets[index].target : NULL;
}

typedef struct Products {
    bool any, tensor_cores;
} Products;

static void look_for_product(TileOp *op, void *found) {
    Products *products = found;
    products->any |= op->id == TILE_OP_DOT;
    products->tensor_cores |= op->id == TILE_OP_DOT && gpu_dot_is_mma(op);
}

static Products find_products(const TileModule *module) {
    Products found = {false, false};
    for (TileFunc *func = module->first; func; func = func->next)
        if (func->kind == TILE_FUNC_PHASE) tile_block_walk(&func->body, look_for_product, &found);
    return found;
}

/* A block for each multiprocessor, where blocks are large, or several. Of blocks that only load and combine eight have as many bytes in flight as the
 * memory needs; products have their operands copied ahead. Two blocks of multiply-adds, with 128 sums a thread, are all that a multiprocessor has registers for. */
static uint32_t least_programs(const TileTarget *target, const TileModule *plain, unsigned index) {
    enum { MOST = 3 };
    static const uint32_t blocks[MOST] = {1, 4, 8}, of_tensor_cores[MOST] = {1, 4}, of_multiply_adds[MOST] = {1, 2, 4};
    const Products products = find_products(plain);
    if (index >= MOST) return 0;
    return (products.tensor_cores ? of_tensor_cores : products.any ? of_multiply_adds : blocks)[index] * tile_ptx_target_of(target)->cores;
}

static bool has_room(const TileTarget *target, const TileFunc *phase) {
    return phase->scratch_bytes <= tile_ptx_target_of(target)->shared_block_bytes;
}

/* One warpgroup, or two. */
static uint32_t turning_warps(unsigned index) {
    static const uint32_t warps[] = {4, 8};
    return index < sizeof warps / sizeof *warps ? warps[index] : 0;
}

/* Of wgmma, by one warpgroup or two, of products whose other axis is short or long. */
static bool joined(unsigned index, uint32_t *rows, uint32_t *columns) {
    static const uint32_t sizes[][2] = {{64, 64}, {128, 64}, {64, 128}, {128, 128}, {128, 256}, {256, 64}, {128, 1}, {256, 1}};
    if (index >= sizeof sizes / sizeof *sizes) return false;
    *rows = sizes[index][0];
    *columns = sizes[index][1];
    return true;
}

/* Of four warps, each of whose threads moves two vectors of 16 bytes of 16-bit elements, or of eight; of programs that go through lists, a warp's or two. */
static bool joined_lanes(unsigned index, bool lists, uint32_t *lanes, uint32_t *axis) {
    static const uint32_t light[][2] = {{2048, 1}, {2048, 2}, {4096, 1}, {4096, 2}}, of_lists[][2] = {{256, 1}, {512, 1}};
    if (index >= (lists ? sizeof of_lists / sizeof *of_lists : sizeof light / sizeof *light)) return false;
    const uint32_t *size = lists ? of_lists[index] : light[index];
    *lanes = size[0];
    *axis = size[1];
    return true;
}

/* Blocks that share the loops of a program. */
static uint32_t sharing(unsigned index) {
    static const uint32_t blocks[] = {4, 8};
    return index < sizeof blocks / sizeof *blocks ? blocks[index] : 0;
}

const TileFamily tile_ptx_family = {.kind = TILE_TARGET_GPU,
                                    .name = "gpu",
                                    .title = "GPU",
                                    .folder = "ptx",
                                    .passes = &table,
                                    .target_at = target_at,
                                    .pipeline = pipeline,
                                    .estimated_behind = "gpu-latencies",
                                    .least_programs = least_programs,
                                    .packs = true,
                                    .joined = joined,
                                    .joined_lanes = joined_lanes,
                                    .turning_warps = turning_warps,
                                    .most_warps = 16,
                                    .cluster = 2,
                                    .sharing = sharing,
                                    .estimate = gpu_estimate,
                                    .measured_behind = "gpu-shared",
                                    .has_room = has_room};
