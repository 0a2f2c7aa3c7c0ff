/* A loop of products whose parts the blocks of a cluster compute: there is no second grid, and what is combined does not go through memory. Behind the loop each block
 * has a slice of each tile, which it combines of what all of them have (`cluster_reduce` with an axis) and stores. */
#include "ptx/grid/cluster_parts.h"

#include "lang/ir/build.h"
#include "lang/ir/eval.h"
#include "lang/ir/operands.h"
#include "ptx/grid/slices.h"
#include "ptx/passes.h"
#include "ptx/target/peers.h"
#include "ptx/target/target.h"

/* Is the operand of 8 or 16 bits, as a map copies it: as it was loaded, turned, as rows of other axes, with zeros in place of lanes that are not there? */
static bool is_copied(const TileValue *operand) {
    enum { MOST_BITS = 16 };
    const TileOp *op = operand->op;
    while (op && (op->id == TILE_OP_PERMUTE || op->id == TILE_OP_RESHAPE || op->id == TILE_OP_FILL)) op = tile_op_operand(op, 0)->op;
    return op && op->id == TILE_OP_LOAD_TILE && tile_scalar_bits(operand->type->scalar) <= MOST_BITS;
}

static void look_for_others(TileOp *op, void *found) {
    if (op->id == TILE_OP_DOT) *(bool *)found |= !is_copied(tile_op_operand(op, 0)) || !is_copied(tile_op_operand(op, 1));
}

/* Products of 32 bits go by multiply-adds, and operands that are computed pass through shared memory of their own: measured, such products took 1.3 times as long as in parts without clusters. */
bool gpu_split_wants_cluster(const GpuSplit *split) {
    bool others = false;
    tile_block_walk(&split->loop->regions[0], look_for_others, &others);
    return split->kernel->cluster > 1 && split->context->target && tile_ptx_target_of(split->context->target)->has_clusters && gpu_split_multiplies(split) && !others;
}

static bool is_power(int64_t number) { return number > 0 && (number & (number - 1)) == 0; }

/* Each block loads words of its rows, or columns, from the others' shared memory. */
static bool has_parts(const GpuSplit *split, const GpuSlices *slices, unsigned i) {
    const TileType *type = split->loop->results[i].type;
    int axis = gpu_slices_axis(slices, &split->loop->results[i]);
    bool words = tile_type_is_tile(type) && (tile_scalar_bits(type->scalar) == 32 || tile_scalar_bits(type->scalar) == 64);
    return words && axis >= 0 && split->merge.values[i].rule == GPU_MERGE_OP && type->rank == 2 && is_power(type->extent[0]) && is_power(type->extent[1]) &&
           type->extent[axis] % split->kernel->cluster == 0;
}

static bool has_loop_behind(const TileOp *op) {
    for (op = op->next; op; op = op->next)
        if (op->id == TILE_OP_FOR || op->id == TILE_OP_WHILE) return true;
    return false;
}

const char *gpu_split_why_not_in_cluster(GpuSplit *split) {
    GpuSlices slices;
    if (!is_power(split->kernel->cluster)) return "their number is no power of two";
    if (!gpu_split_is_counted(split, split->loop)) return "the loop's bounds differ from program to program";
    if (!split->merge.simple || split->merge.inductions || has_loop_behind(split->loop)) return "what they compute is not only combined and stored";
    if (gpu_slices_find(&slices, split->context, split->grid, split->loop, 1) < split->kernel->cluster) return "what they store has no part for each of them";
    for (unsigned i = 0; i < split->merge.count; i++)
        if (!has_parts(split, &slices, i)) return "what the loop carries has no part for each of them";
    return NULL;
}

/* What all blocks have, and what the loop began with. */
static void combine(GpuSplit *split, TileValue *const *begun, const int *axes) {
    TileOp *loop = split->loop;
    TileModule *module = split->context->module;
    TileBuilder b = tile_builder_before(module, loop->next);
    TileValue *all[TILE_MAX_FOLD];
    int64_t offset = 0;
    b.location = loop->location;
    for (unsigned i = 0; i < loop->result_count; i++) {
        TileValue *result = &loop->results[i];
        TileAttribute attributes[] = {{.key = TILE_ATTRIBUTE_KIND, .integer = split->merge.values[i].kind},
                                      {.key = TILE_ATTRIBUTE_OFFSET, .integer = offset},
                                      {.key = TILE_ATTRIBUTE_AXIS, .integer = axes[i]}};
        all[i] = tile_op_result(tile_build_op(&b, TILE_OP_CLUSTER_REDUCE, &result, 1, attributes, 3, &result->type, 1), 0);
        offset += gpu_peer_bytes(result->type);
    }
    for (unsigned i = 0; i < loop->result_count; i++) {
        uint64_t bits;
        const TileOp *made = all[i]->op;
        TileName kind = split->merge.values[i].kind;
        bool nothing = tile_value_bits(begun[i], &bits) && bits == tile_eval_identity(kind, all[i]->type->scalar);
        TileValue *sum = nothing ? all[i] : tile_build_binary(&b, tile_eval_combiner(kind), begun[i], all[i]);
        for (TileUse *use = loop->results[i].first_use, *next; use; use = next) {
            next = use->next;
            if (use->user != made) tile_op_set_operand(use->user, use->index, sum);
        }
    }
}

void gpu_split_in_cluster(GpuSplit *split) {
    TileModule *module = split->context->module;
    int64_t blocks = split->kernel->cluster;
    TileOp *grid = split->grid, *loop = split->loop;
    TileBuilder host = tile_builder_before(module, grid);
    TileValue *begun[TILE_MAX_FOLD];
    int axes[TILE_MAX_FOLD];
    GpuSlices slices;
    gpu_slices_find(&slices, split->context, grid, loop, 1);
    for (unsigned i = 0; i < loop->result_count; i++) {
        begun[i] = tile_loop_carried(loop, i);
        axes[i] = gpu_slices_axis(&slices, &loop->results[i]);
    }
    gpu_split_find_nest(split);
    for (unsigned k = 0; k < split->depth; k++) tile_op_set_integer(module, split->nest[k], TILE_ATTRIBUTE_PART, TILE_PART_OF_SUMS);
    gpu_split_share_nest(split, &host, blocks);
    split->parts = tile_build_i64(&host, blocks);
    TileValue *part = gpu_split_widen_grid(split, grid);
    TileBuilder b = tile_builder_before(module, loop);
    gpu_split_begin(split, &b, loop, NULL);
    gpu_split_narrow_nest(split, &b, loop, part, split->trips[0]);
    combine(split, begun, axes);
    gpu_slices_divide_by(&slices, split->context, grid, blocks, part);
    tile_op_set_integer(module, grid, TILE_ATTRIBUTE_MULTICAST, blocks);
}
