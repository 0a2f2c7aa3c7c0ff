/* Purpose: choose the layouts of anchors, the ops that demand one. From here on a tile's layout is part of its type; a
 * type without a layout is undecided. Loads, stores and updates are coalesced: vectors of up to 16 bytes a thread,
 * neighbouring lanes along the last axis. Sums of products for tensor cores are fragments of mma; those of fused
 * multiply-adds are blocks that are nearly squares (ptx/target/multiply_adds.c); all others follow
 * from the layout of the function's largest tile. How warps divide a product is written onto it (`warps`, `pairs`);
 * gpu-machine carries it out. Between anchors and other ops conversions are inserted, from and to layouts that
 * gpu-propagate decides on.
 *
 * Before:
 *     func phase tile @k.0(%x: tensor<f32, 1, inout>, %begin: i64, %end: i64) threads = 64 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 1024} : i64
 *       %v = load_tile %x, %zero, %one, %zero, %n {access = [range]} : f32[1024]
 *       %w = neg %v : f32[1024]
 *       store_tile %x, %w, %zero, %one, %zero, %n {access = [range]}
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%x: tensor<f32, 1, inout>, %begin: i64, %end: i64) threads = 64 {
 *       layout 0 = [1024] register 1 2 256 512 lane 4 8 16 32 64 warp 128 block
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 1024} : i64
 *       %v = load_tile %x, %zero, %one, %zero, %n {access = [range]} : f32[1024] layout 0
 *       %0 = convert_layout %v : f32[1024]
 *       %w = neg %0 : f32[1024]
 *       %1 = convert_layout %w : f32[1024] layout 0
 *       store_tile %x, %1, %zero, %one, %zero, %n {access = [range]}
 *       return
 *     }
 * The layouts of smaller tiles follow from that of the largest: a tile with the same extents but for one axis gets the
 * slice, so that what is computed of a row is in the lanes that hold the row. A tile of one axis that could be a slice
 * along either axis of a product's sum is taken as one value for each row, not for each column.
 *
 * Needs: gpu-threads. Keeps: tile form. Cost: linear. */
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "lowering/memory.h"
#include "ptx/layouts/blocked.h"
#include "ptx/layouts/singles.h"
#include "ptx/layouts/vectors.h"
#include "ptx/layouts/widest.h"
#include "ptx/passes.h"
#include "ptx/target/dot.h"
#include "ptx/target/map.h"

/* A tile's shape with its layout, from which the layouts of other tiles are derived. */
typedef struct Base {
    TileLayoutShape shape;
    TileLayout layout;
} Base;

typedef struct Anchor {
    TilePassContext *context;
    TileModule *module;
    TileFunc *func;
    const TilePtxTarget *target;
    GpuDots dots;
    Base bases[GPU_MOST_DOTS]; /* that of the largest tile first */
    unsigned base_count;
    unsigned log_warps, log_vector, log_rows; /* elements of one access of a thread, and rows of its accesses */
    unsigned log_together; /* elements along the largest tile's last axis that a thread has together; 0: others may have them */
    bool neighbours; /* threads have vectors of neighbours, also where rows are odd */
    bool singles;    /* lanes have them, since most accesses are of single elements */
    bool changed;
    const char *error;
    const TileType *part; /* of sums, which each block of a cluster combines; NULL: there is none */
} Anchor;

/* ---- which layout ---- */

/* Of a tile that is transposed a thread holds a block of rows and columns, so that it accesses shared memory in
 * vectors both before and after the transposition. */
static unsigned choose_log_rows(const Anchor *anchor, const GpuSurvey *survey) {
    unsigned log = gpu_floor_log2(tile_type_lanes(survey->largest)),
             others = anchor->log_vector + TILE_LANE_BITS + anchor->log_warps;
    return survey->transposes && log > others ? gpu_least(log - others, anchor->log_vector) : 0;
}

typedef struct Rows {
    TileFunc *func;
    unsigned bytes; /* rows of all tensors are multiples of so many, as far as that matters */
} Rows;

/* Are the tensor's rows no multiples of 8 bytes, so that no such vectors lie in all of them? Asks for the facts. */
static void look_for_odd_rows(TileOp *op, void *state) {
    Rows *rows = state;
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    const TileValue *tile = tile_accessed_tile(op);
    if (!tile || op->id == TILE_OP_ATOMIC_TILE || tile_op_operand(op, 0)->block != &rows->func->body) return;
    TileParameter *parameter = &rows->func->parameters[tile_op_operand(op, 0)->index];
    unsigned rank = tile_access_read(op, indices), last = rank - 1, bytes = tile_scalar_bytes(tile->type->scalar);
    if (tile_op_get(op, TILE_ATTRIBUTE_FLAT)) return; /* no rows, but all elements in turn */
    bool in_rows = rank > 1 && indices[last].kind == TILE_ACCESS_RANGE && indices[last].axis + 1 == tile->type->rank;
    /* Nothing is known where code is for any tensor. */
    if (!in_rows || parameter->facts.stride[last] != bytes) return;
    for (unsigned wanted = GPU_PREDICATED_BYTES; wanted > bytes; wanted /= 2) parameter->asked_multiple |= wanted / bytes;
    int64_t multiple = parameter->facts.multiple[last];
    if (multiple == TILE_UNKNOWN) return;
    if (multiple * bytes < rows->bytes) rows->bytes = (unsigned)multiple * bytes;
    /* The layout relies on it: where rows are odd, it would move their elements in pieces. */
    unsigned relied = multiple * bytes < GPU_PREDICATED_BYTES ? (unsigned)multiple : GPU_PREDICATED_BYTES / bytes;
    if (relied > 1) parameter->used_multiple |= relied;
}

/* Of a thread's neighbours in the access's rows: where those are odd, fewer of a store. The layout of a load decides on the
 * order of sums of what is loaded. */
static unsigned vector_bytes(TileFunc *func, TileOp *op) {
    Rows rows = {func, GPU_PREDICATED_BYTES};
    if (op->id == TILE_OP_STORE_TILE) look_for_odd_rows(op, &rows);
    return rows.bytes < GPU_PREDICATED_BYTES ? rows.bytes : GPU_ACCESS_BYTES;
}

static void look_for_join(TileOp *op, void *found) { *(bool *)found |= op->id == TILE_OP_CAT; }

/* Where rows are odd, the lanes of a warp have neighbouring elements, or pairs of those where rows are pairs: a thread that
 * had more neighbours would load them one by one, each time far from those of other lanes. Not so where the order of a sum
 * follows from the layout: it must not depend on the variant of the code that happens to serve a launch. Nor where random numbers
 * are drawn, of which four neighbours take as long as one. */
static unsigned log_vector_of(TilePassContext *context, TileFunc *func, const GpuSurvey *survey, bool *singles) {
    Rows rows = {func, GPU_PREDICATED_BYTES};
    bool strided = gpu_stores_in_steps(&func->body);
    if (strided && !survey->combines && !survey->draws && !survey->transposes) return 0;
    if (!survey->combines && !survey->draws) tile_block_walk(&func->body, look_for_odd_rows, &rows);
    bool odd = rows.bytes < GPU_PREDICATED_BYTES;
    unsigned bytes = odd ? rows.bytes : GPU_ACCESS_BYTES, element = odd ? survey->least_bytes : gpu_widest_bytes(func, survey);
    /* Of elements of 16 bits, pairs in lanes that are neighbours took longer (0.87 to 0.94 times the speed), those of 32 bits less
     * (1.1 to 1.8 times). */
    bool words = survey->least_bytes >= sizeof(uint32_t), joins = false;
    tile_block_walk(&func->body, look_for_join, &joins); /* whose parts a thread has together */
    *singles = words && !joins && !survey->combines && !survey->draws && !survey->transposes && gpu_moves_singles(tile_pass_indices(context, func), &func->body);
    if (*singles) bytes = 0;
    return bytes > element ? gpu_floor_log2(bytes / element) : 0;
}

/* Of a tile that has fewer vectors than there are threads, each thread has a shorter one: otherwise some threads would repeat what others do. */
static unsigned shorten_vector(const TileLayoutShape *shape, unsigned log_vector, unsigned log_warps) {
    unsigned log = 0, threads = TILE_LANE_BITS + log_warps;
    for (unsigned a = 0; a < shape->rank; a++) log += gpu_log_divided(shape->extent[a]);
    return log > threads ? gpu_least(log - threads, log_vector) : 0;
}

/* From which the layouts of smaller tiles follow. */
static TileLayout base_layout(const Anchor *anchor, const TileType *type) {
    const GpuSums *multiplied = &anchor->dots.multiplied;
    return multiplied->count ? gpu_columns_layout(multiplied, type) : gpu_sum_layout(&anchor->dots, type);
}

/* Where other tiles are joined along the largest one's last axis, or cut out of it, a thread has vectors of what is joined, and all that lies together, however short vectors
 * are: the layout of those tiles follows, and would have the same element in several lanes otherwise. So does that of what they are computed with, as a row for all. */
static void keep_together(Anchor *anchor, const TileType *largest) {
    Base *base = &anchor->bases[0];
    TileLayoutShape rows = base->shape;
    anchor->log_together = gpu_log_together(anchor->func, largest);
    if (!anchor->log_together) return;
    rows.extent[--rows.rank - 1] *= largest->extent[largest->rank - 1];
    TileLayout joined = gpu_spread(&rows, anchor->log_vector > anchor->log_together ? anchor->log_vector : anchor->log_together, 0, anchor->func->threads);
    if (!tile_layout_reshape(&joined, &base->shape, &base->layout))
        base->layout = gpu_spread(&base->shape, anchor->log_together, 0, anchor->func->threads);
    TileLayout parts = tile_layout_slice(&base->layout, base->shape.rank - 1u);
    anchor->bases[anchor->base_count] = (Base){base->shape, tile_layout_without_copies(&parts)};
    anchor->bases[anchor->base_count++].shape.rank--;
}

static void choose_bases(Anchor *anchor, TileFunc *func) {
    anchor->log_warps = gpu_log_shared_warps(func->threads);
    anchor->dots = gpu_find_dots(func, &func->body);
    for (unsigned i = 0; i < anchor->dots.count; i++) {
        const TileType *type = anchor->dots.types[i];
        anchor->bases[anchor->base_count++] = (Base){tile_layout_shape(type), base_layout(anchor, type)};
    }
    if (anchor->dots.count && !anchor->dots.multiplied.count) return;
    GpuSurvey survey = gpu_survey(&func->body);
    anchor->neighbours = survey.combines || survey.draws;
    anchor->log_vector = log_vector_of(anchor->context, func, &survey, &anchor->singles);
    if (anchor->dots.count || !survey.largest) return;
    survey.largest = gpu_moved_shape(func, &survey);
    TileLayoutShape shape = tile_layout_shape(survey.largest);
    anchor->log_vector = gpu_least(anchor->log_vector, gpu_log_vector_of_computed(func, survey.largest));
    anchor->log_vector = shorten_vector(&shape, anchor->log_vector, anchor->log_warps);
    anchor->log_rows = choose_log_rows(anchor, &survey);
    anchor->base_count = 1;
    anchor->bases[0] = (Base){shape, gpu_spread(&shape, anchor->log_vector, anchor->log_rows, func->threads)};
    if (!survey.combines && !survey.draws && !survey.transposes) keep_together(anchor, survey.largest);
}

/* Has the tile the shape, less the axis `without`? An extent of 1 stands for any extent. */
static bool fits(const TileLayoutShape *shape, const TileType *tile, unsigned without) {
    unsigned axis = 0;
    for (unsigned a = 0; a < shape->rank; a++) {
        if (a == without) continue;
        if (tile->extent[axis] != shape->extent[a] && tile->extent[axis] != 1) return false;
        axis++;
    }
    return true;
}

static TileLayout flatten_ones(TileLayout layout, const TileType *tile) {
    for (unsigned a = 0; a < tile->rank; a++) {
        if (tile->extent[a] != 1 || tile_layout_extent(&layout, a) == 1) continue;
        TileLayout without = tile_layout_slice(&layout, a);
        layout = tile->rank == 1 ? without : tile_layout_expand(&without, a);
    }
    return tile_layout_without_copies(&layout);
}

/* Are the tile's rows the sums of a product in another shape? */
static const TileLayout *sums_of(const Anchor *anchor, const TileType *tile) {
    const TileType *rows = tile->rank > 2 ? gpu_rows_type(anchor->module->context, tile) : NULL;
    for (unsigned i = 0; rows && i < anchor->dots.count; i++)
        if (tile_type_same_shape(rows, anchor->dots.types[i])) return &anchor->bases[i].layout;
    return NULL;
}

enum { NO_AXIS = TILE_MAX_TILE_RANK };

/* The axis of extent 1 that the reshape inserts; NO_AXIS: it is none of these, or it could be several. */
static unsigned inserted_axis(const TileOp *reshape) {
    const TileType *from = tile_op_operand(reshape, 0)->type, *to = reshape->results[0].type;
    unsigned found = NO_AXIS;
    for (unsigned without = 0; from->rank + 1 == to->rank && without < to->rank; without++) {
        bool same = to->extent[without] == 1;
        for (unsigned a = 0; a < from->rank; a++) same &= from->extent[a] == to->extent[a + (a >= without)];
        if (same && found != NO_AXIS) return NO_AXIS;
        if (same) found = without;
    }
    return found;
}

/* The axis of larger tiles that the value lacks, since it is added along it to what has that axis: where their extents are
 * equal, rows and columns look alike. NO_AXIS: nothing says so. */
static unsigned lacking_axis(const TileValue *value, unsigned steps) {
    for (const TileUse *use = value->first_use; steps && use; use = use->next) {
        const TileOp *user = use->user;
        bool passes = user->id == TILE_OP_CONVERT_LAYOUT || tile_op_info((TileOpId)user->id)->class == TILE_CLASS_ELEMENTWISE;
        unsigned axis = user->id == TILE_OP_RESHAPE ? inserted_axis(user) : NO_AXIS;
        if (passes && user->result_count == 1) axis = lacking_axis(&user->results[0], steps - 1);
        if (axis != NO_AXIS) return axis;
    }
    return NO_AXIS;
}

/* Of a base with one axis more. `without`: which one; NO_AXIS: the last one that fits. */
static bool slice_base(const Anchor *anchor, const TileType *tile, unsigned without, TileLayout *layout) {
    for (unsigned back = 1; back <= TILE_MAX_TILE_RANK; back++)
        for (unsigned i = 0; i < anchor->base_count; i++) {
            const TileLayoutShape *shape = &anchor->bases[i].shape;
            if (tile->rank + 1 != shape->rank || back > shape->rank || !fits(shape, tile, shape->rank - back)) continue;
            if (without != NO_AXIS && shape->rank - back != without) continue;
            *layout = flatten_ones(tile_layout_slice(&anchor->bases[i].layout, shape->rank - back), tile);
            return true;
        }
    return false;
}

/* `lacking`: the axis that the tile lacks of a larger one, if that is known. */
static TileLayout choose_layout(const Anchor *anchor, const TileType *tile, unsigned lacking) {
    const TileLayout *sums = sums_of(anchor, tile);
    TileLayoutShape extents = tile_layout_shape(tile);
    TileLayout reshaped;
    if (sums && tile_layout_reshape(sums, &extents, &reshaped)) return reshaped;
    for (unsigned i = 0; i < anchor->dots.count; i++)
        if (tile_type_same_shape(tile, anchor->dots.types[i]))
            return anchor->dots.multiplied.count ? gpu_multiplied_layout(&anchor->dots.multiplied, tile) : anchor->bases[i].layout;
    for (unsigned i = 0; i < anchor->base_count; i++) {
        const TileLayoutShape *shape = &anchor->bases[i].shape;
        if (tile->rank == shape->rank && fits(shape, tile, shape->rank))
            return flatten_ones(anchor->bases[i].layout, tile);
    }
    TileLayout sliced;
    if (slice_base(anchor, tile, lacking, &sliced) || slice_base(anchor, tile, NO_AXIS, &sliced)) return sliced;
    if (anchor->dots.count && tile->rank == 2) return gpu_sum_layout(&anchor->dots, tile);
    TileLayoutShape own = tile_layout_shape(tile);
    unsigned threads = TILE_LANE_BITS + anchor->log_warps, log = gpu_floor_log2(tile_type_lanes(tile));
    return gpu_spread(&own, log > threads ? gpu_least(log - threads, anchor->log_vector) : 0, anchor->log_rows,
                      anchor->func->threads);
}

/* ---- what demands one ---- */

static TileValue *convert(Anchor *anchor, TileBuilder *b, TileValue *value, const TileType *type) {
    TileValue *converted = tile_op_result(tile_build_op(b, TILE_OP_CONVERT_LAYOUT, &value, 1, NULL, 0, &type, 1), 0);
    if (b->error) anchor->error = b->error;
    return converted;
}

/* A constant is there once more, in the layout: whoever else has it, such as a loop that carries sums, has its own. */
static void anchor_operand(Anchor *anchor, TileOp *op, unsigned index, const TileLayout *layout) {
    TileValue *value = tile_op_operand(op, index);
    if (!tile_type_is_tile(value->type)) return;
    anchor->changed = true;
    TileBuilder b = tile_builder_before(anchor->module, op);
    const TileType *type = tile_type_with_layout(anchor->module->context, value->type, layout);
    uint64_t bits;
    bool constant = op->id == TILE_OP_DOT && tile_value_bits(value, &bits);
    tile_op_set_operand(op, index, constant ? tile_build_bits(&b, type, bits) : convert(anchor, &b, value, type));
}

static void anchor_result(Anchor *anchor, TileOp *op, const TileLayout *layout) {
    TileValue *value = &op->results[0];
    const TileType *undecided = value->type;
    value->type = tile_type_with_layout(anchor->module->context, undecided, layout);
    anchor->changed = true;
    if (!tile_value_has_uses(value)) return;
    TileBuilder b = tile_builder_before(anchor->module, op->next);
    TileValue *converted = convert(anchor, &b, value, undecided);
    tile_value_replace(value, converted);
    tile_op_set_operand(converted->op, 0, value);
    converted->name = NULL;
}

/* Shared memory that a block may use without lowering occupancy. Registers limit the number of blocks on a
 * multiprocessor too; a thread has at least those of its sums. */
static int64_t free_bytes(const Anchor *anchor) {
    enum { OTHER_REGISTERS = 32 };
    const TilePtxTarget *target = anchor->target;
    uint32_t threads = anchor->func->threads;
    uint32_t sums = (uint32_t)(tile_type_lanes(anchor->dots.types[0]) / threads) + OTHER_REGISTERS;
    uint32_t blocks =
        target->registers / (threads * (sums < target->registers_thread ? sums : target->registers_thread));
    if (blocks > target->threads_core / threads) blocks = target->threads_core / threads;
    uint32_t bytes = target->shared_core_bytes / (blocks ? blocks : 1) - target->shared_reserved_bytes;
    return bytes < target->shared_block_bytes ? bytes : target->shared_block_bytes;
}

/* Is a buffer allocated ahead of the op in a loop around it, so that shared memory is in use at the op? */
static bool has_buffers_around(const TileOp *op) {
    for (const TileOp *parent = op->block->op; parent; parent = parent->block->op)
        for (const TileOp *other = parent->block->first; other != parent; other = other->next)
            if (other->id == TILE_OP_BUFFER || other->id == TILE_OP_CHANNEL) return true;
    return false;
}

/* In a fragment of sums four lanes hold eight contiguous elements. Where these are less than a sector of memory,
 * results are stored by rows instead, and what is added to them is loaded by rows: both are converted through shared
 * memory, provided that no operand is there at the time. */
static bool sums_use_rows(const Anchor *anchor, const TileOp *op, const TileType *tile, const TileLayout *layout) {
    enum { NEIGHBOURS = 8, SECTOR_BYTES = 32 };
    int64_t bytes = tile_type_lanes(tile) * tile_scalar_bytes(tile->scalar);
    if (NEIGHBOURS * tile_scalar_bytes(tile->scalar) >= SECTOR_BYTES) return false;
    for (unsigned a = 0; a < tile->rank; a++)
        if (layout->pieces[a] != 1 || tile_layout_extent(layout, a) != tile->extent[a]) return false;
    if (bytes < (int64_t)GPU_ACCESS_BYTES << (TILE_LANE_BITS + anchor->log_warps)) return false;
    return bytes <= free_bytes(anchor) && !has_buffers_around(op);
}

/* Is the access coalesced by rows although the function has products for tensor cores? Operands that are not copied
 * to shared memory are loaded so: the elementwise ops between the load and shared memory take any layout. */
static bool accesses_rows(const Anchor *anchor, const TileOp *op, const TileType *tile, const TileLayout *layout) {
    bool is_sum = op->id == TILE_OP_STORE_TILE;
    if (gpu_by_rows(op)) return true;
    for (unsigned i = 0; i < anchor->dots.count; i++) is_sum |= tile_type_same_shape(tile, anchor->dots.types[i]);
    is_sum |= sums_of(anchor, tile) != NULL;
    if (!anchor->dots.count || tile->rank < 2 || op->id == TILE_OP_ATOMIC_TILE) return false;
    if (tile->rank > 2 && !sums_of(anchor, tile)) return false;
    return !is_sum || sums_use_rows(anchor, op, tile, layout);
}

/* Rows in vectors of so many bytes a thread. */
static TileLayout rows_of(const Anchor *anchor, const TileType *tile, unsigned bytes) {
    TileLayoutShape shape = tile_layout_shape(tile);
    unsigned log = gpu_floor_log2(tile_type_lanes(tile)), threads = TILE_LANE_BITS + anchor->log_warps,
             widest = bytes > tile_scalar_bytes(tile->scalar) ? gpu_floor_log2(bytes / tile_scalar_bytes(tile->scalar)) : 0;
    return gpu_spread(&shape, log > threads ? gpu_least(log - threads, widest) : 0, 0, anchor->func->threads);
}

/* Is it a store of odd rows in a function whose sums or random numbers decide the layout? By that, each lane would write a piece of a sector for
 * each of a thread's neighbours; so the tile is converted to a layout in which lanes are neighbours. In a loop that takes longer
 * (measured: 0.83 to 1 times the speed; elsewhere 1.0 to 1.7 times), and long rows have exchanges between lanes there. */
static bool is_stored_in_pieces(const Anchor *anchor, TileOp *op) {
    return op->id == TILE_OP_STORE_TILE && anchor->neighbours && !anchor->dots.count && !tile_op_is_repeated(op) &&
           vector_bytes(anchor->func, op) < GPU_PREDICATED_BYTES;
}

/* What is gathered along one index tile for rows and columns is where these are. */
static bool takes_gathered_shape(const Anchor *anchor, const TileOp *op, const TileType *tile, TileLayout *layout) {
    const TileType *shaped = anchor->dots.count ? NULL : gpu_gathered_shape(op);
    TileLayoutShape extents = tile_layout_shape(tile);
    TileLayout other = shaped ? choose_layout(anchor, shaped, NO_AXIS) : (TileLayout){0};
    return shaped && tile_layout_reshape(&other, &extents, layout);
}

/* What is joined with other tiles, element by element, is where these elements of the joined tile are. */
static bool takes_joined_shape(const Anchor *anchor, const TileOp *op, TileLayout *layout) {
    const TileType *pairs, *joined = anchor->dots.count || !op->result_count ? NULL : gpu_joined_shape(&op->results[0], &pairs);
    if (!joined) return false;
    TileLayoutShape extents = tile_layout_shape(pairs);
    TileLayout whole = choose_layout(anchor, joined, NO_AXIS), apart;
    if (!tile_layout_reshape(&whole, &extents, &apart)) return false;
    apart = tile_layout_slice(&apart, pairs->rank - 1u);
    *layout = tile_layout_without_copies(&apart);
    return true;
}

/* Are the access's rows what a thread has together, behind one another? A store moves such a piece at once, or another layout is better for it. */
static bool takes_pieces(const Anchor *anchor, TileOp *op, const TileType *tile, TileLayout *layout) {
    TileLayoutShape shape = anchor->bases[0].shape, extents = tile_layout_shape(tile);
    bool rows = anchor->log_together && tile->rank + 1 == shape.rank && op->id != TILE_OP_ATOMIC_TILE;
    for (unsigned a = 0; rows && a + 1 < tile->rank; a++) rows = tile->extent[a] == shape.extent[a];
    if (!rows || !tile_layout_reshape(&anchor->bases[0].layout, &extents, layout)) return false;
    return op->id == TILE_OP_LOAD_TILE || vector_bytes(anchor->func, op) >= tile_scalar_bytes(tile->scalar) << anchor->log_together;
}

static TileLayout choose_access_layout(const Anchor *anchor, TileOp *op, const TileType *tile) {
    if (anchor->part && tile_type_same_shape(tile, anchor->part)) return rows_of(anchor, anchor->part, GPU_ACCESS_BYTES);
    enum { MOST_STEPS = 4 };
    TileLayout other;
    if (takes_gathered_shape(anchor, op, tile, &other) || takes_joined_shape(anchor, op, &other) || takes_pieces(anchor, op, tile, &other)) return other;
    if (is_stored_in_pieces(anchor, op)) return rows_of(anchor, tile, vector_bytes(anchor->func, op));
    unsigned lacking = op->result_count == 1 ? lacking_axis(&op->results[0], MOST_STEPS) : NO_AXIS;
    TileLayout layout = choose_layout(anchor, tile, lacking);
    return accesses_rows(anchor, op, tile, &layout) ? rows_of(anchor, tile, vector_bytes(anchor->func, op)) : gpu_widen_sums(anchor->func, op, &layout);
}

/* Remarks on an access narrower than 16 bytes although each thread has enough elements: they are not contiguous. */
static void remark_access(const Anchor *anchor, const TileOp *op, const TileType *tile, const TileLayout *layout) {
    unsigned bytes = tile_scalar_bytes(tile->scalar), last = tile->rank - 1u;
    unsigned side = tile_layout_vector(layout, last, GPU_ACCESS_BYTES / bytes);
    int64_t own = tile_type_lanes(tile) >> (TILE_LANE_BITS + anchor->log_warps);
    if (side * bytes >= GPU_ACCESS_BYTES || own * bytes < GPU_ACCESS_BYTES) return;
    if (op->id == TILE_OP_ATOMIC_TILE || gpu_by_map(op)) return;
    const char *name = tile_op_operand(op, 0)->name;
    const char *why = tile->extent[last] * bytes < GPU_ACCESS_BYTES ? "the last axis of the block is shorter"
                      : anchor->singles ? "neighbours are in neighbouring lanes, since most accesses of the grid move single elements"
                      : anchor->dots.count                          ? "it has the layout of a product's accumulator"
                                                                    : "it has the layout of the largest tile of the grid";
    tile_pass_remark(anchor->context, op, TILE_DECISION_NARROW_ACCESS, name ? name : "an access",
                     "%u elements of %u bytes side by side: %s", side, bytes, why);
}

/* What each block of a cluster combines of products' sums is loaded, computed with and stored in rows. */
static void look_for_part(TileOp *op, void *part) {
    if (op->id == TILE_OP_CLUSTER_REDUCE && tile_op_get(op, TILE_ATTRIBUTE_AXIS)) *(const TileType **)part = op->results[0].type;
}

/* What is stored by rows stays as the sums are until it has the width of its elements in memory: there is shared memory for no more. */
static void anchor_stored(Anchor *anchor, const TileOp *store) {
    TileOp *made = tile_op_named(store, TILE_OPERAND_VALUE)->op;
    if (!made || made->block != store->block || tile_op_info((TileOpId)made->id)->class != TILE_CLASS_ELEMENTWISE) return;
    TileLayout layout = choose_layout(anchor, made->results[0].type, NO_AXIS);
    anchor_result(anchor, made, &layout);
}

/* The values and the mask of an access get its layout; its indices may have any. */
static void anchor_access(Anchor *anchor, TileOp *op) {
    const TileValue *tile = tile_accessed_tile(op);
    if (!tile) return;
    TileLayout layout = choose_access_layout(anchor, op, tile->type);
    if (gpu_by_rows(op)) anchor_stored(anchor, op);
    remark_access(anchor, op, tile->type, &layout);
    unsigned first = tile_access_first(op), end = tile_access_end(op);
    for (unsigned i = 1; i < op->operand_count; i++)
        if (i < first || i >= end) anchor_operand(anchor, op, i, &layout);
    if (op->result_count) anchor_result(anchor, op, &layout);
}

/* What an operand is computed of, in the product's block. */
typedef struct Sources {
    bool tiles, sums; /* that threads read or load; of other products, or carried by the loop */
} Sources;

static void find_sources(const TileValue *value, const TileOp *dot, TileMap *seen, Sources *sources) {
    const TileOp *op = value->op;
    if (!tile_type_is_tile(value->type) || tile_map_get(seen, value)) return;
    tile_map_set(seen, (void *)(uintptr_t)value, seen);
    if (op && !tile_block_inside(op->block, dot->block)) return;
    sources->tiles |= op && (op->id == TILE_OP_SHARED_TILE || op->id == TILE_OP_LOAD_TILE);
    sources->sums |= !op || op->id == TILE_OP_FOR || op->id == TILE_OP_WHILE || op->id == TILE_OP_DOT || op->id == TILE_OP_DOT_WAIT;
    for (unsigned i = 0; op && op->id == TILE_OP_IF && i < op->region_count; i++)
        find_sources(tile_op_operand(op->regions[i].last, value->index), dot, seen, sources);
    for (unsigned i = 0; op && tile_op_is_pure(op) && i < op->operand_count; i++)
        find_sources(tile_op_operand(op, i), dot, seen, sources);
}

/* What is computed of tiles on its way to wgmma is computed as the fragments that this takes; what is made of another product's sums, as these are. */
static void anchor_computed(Anchor *anchor, TileOp *dot) {
    bool transposed;
    Sources sources = {0};
    TileMap seen;
    tile_map_init(&seen, anchor->context->scratch);
    if (!gpu_dot_is_wgmma(dot) || gpu_find_shared(tile_op_operand(dot, 0), &transposed)) return;
    find_sources(tile_op_operand(dot, 0), dot, &seen, &sources);
    if (!sources.tiles || sources.sums) return;
    TileLayout layout = gpu_first_fragments(dot, &anchor->dots.plan);
    anchor_operand(anchor, dot, 0, &layout);
}

/* Sums whose columns lie in pairs have a layout of their own, others that of their shape. */
static TileLayout layout_of_sums(const Anchor *anchor, const TileValue *sums) {
    return gpu_lie_in_pairs(sums) ? gpu_paired_layout(&anchor->dots, sums->type) : choose_layout(anchor, sums->type, NO_AXIS);
}

static void anchor_dot(Anchor *anchor, TileOp *op) {
    const GpuSums *multiplied = &anchor->dots.multiplied;
    bool own = multiplied->count && op->results[0].type->rank == 2;
    TileLayout layout = own ? gpu_product_layout(multiplied, op) : layout_of_sums(anchor, &op->results[0]);
    anchor_computed(anchor, op);
    anchor_operand(anchor, op, 2, &layout);
    anchor_result(anchor, op, &layout);
}

/* The sum goes through as it is. */
static void anchor_wait(Anchor *anchor, TileOp *op) {
    TileLayout layout = layout_of_sums(anchor, &op->results[0]);
    anchor_operand(anchor, op, 0, &layout);
    anchor_result(anchor, op, &layout);
}

static void anchor_definition(Anchor *anchor, TileOp *op) {
    TileLayout layout = choose_layout(anchor, op->results[0].type, NO_AXIS);
    anchor_result(anchor, op, &layout);
}

static bool is_in_panels(const TileOp *shared) { return tile_op_operand(shared, 0)->type->swizzle == TILE_SWIZZLE_PANELS; }

/* What has been copied to shared memory ahead of its way to a product is read in vectors. */
static void anchor_shared(Anchor *anchor, TileOp *op) {
    TileLayout layout = rows_of(anchor, op->results[0].type, GPU_ACCESS_BYTES);
    anchor_result(anchor, op, &layout);
}

/* It is stored in vectors. */
static void anchor_put(Anchor *anchor, TileOp *op) {
    TileLayout layout = rows_of(anchor, tile_op_named(op, TILE_OPERAND_VALUE)->type, GPU_ACCESS_BYTES);
    anchor_operand(anchor, op, 1, &layout);
}

static void anchor_block(Anchor *anchor, TileBlock *block);

/* Does the loop store tiles of odd rows, in a function where a sum or random numbers decide the layout, though none in the loop or behind it? Then
 * it has a layout of its own, in which lanes are neighbours, and no sum gets another order by that. */
static bool finds_own_layout(const Anchor *anchor, TileOp *op, Anchor *own) {
    Rows rows = {anchor->func, GPU_PREDICATED_BYTES};
    if (!anchor->neighbours || anchor->dots.count || !gpu_only_stores(op)) return false;
    GpuSurvey survey = gpu_survey(&op->regions[0]);
    tile_block_walk(&op->regions[0], look_for_odd_rows, &rows);
    if (rows.bytes >= GPU_PREDICATED_BYTES || !survey.largest) return false;
    TileLayoutShape shape = tile_layout_shape(survey.largest);
    *own = *anchor;
    own->log_rows = 0;
    own->log_vector = rows.bytes > survey.least_bytes ? gpu_floor_log2(rows.bytes / survey.least_bytes) : 0;
    own->log_vector = shorten_vector(&shape, own->log_vector, anchor->log_warps);
    own->base_count = 1;
    own->bases[0] = (Base){shape, gpu_spread(&shape, own->log_vector, 0, anchor->func->threads)};
    return true;
}

static void anchor_regions(Anchor *anchor, TileOp *op) {
    Anchor own, *inner = finds_own_layout(anchor, op, &own) ? &own : anchor;
    for (unsigned i = 0; i < op->region_count; i++) anchor_block(inner, &op->regions[i]);
    anchor->changed |= inner->changed;
    anchor->error = inner->error;
}

static void anchor_block(Anchor *anchor, TileBlock *block) {
    for (TileOp *op = block->first, *next; op; op = next) {
        next = op->next;
        anchor_regions(anchor, op);
        switch (op->id) {
        case TILE_OP_LOAD_TILE:
        case TILE_OP_STORE_TILE:
        case TILE_OP_ATOMIC_TILE: anchor_access(anchor, op); break;
        case TILE_OP_DOT: anchor_dot(anchor, op); break;
        case TILE_OP_DOT_WAIT: anchor_wait(anchor, op); break;
        case TILE_OP_PUT_TILE: anchor_put(anchor, op); break;
        case TILE_OP_SHARED_TILE:
            /* A vector, and what a map has copied, is read as those have it who compute with it. */
            if (!gpu_stays_shared(op) && op->results[0].type->extent[0] > 1 && !is_in_panels(op)) anchor_shared(anchor, op);
            break;
        case TILE_OP_SLICE:
        case TILE_OP_CAT:
            if (!tile_op_cuts_registers(op)) anchor_definition(anchor, op);
            break;
        case TILE_OP_CLUSTER_REDUCE: /* a part of what the blocks have is loaded in vectors */
            if (tile_op_get(op, TILE_ATTRIBUTE_AXIS)) anchor_shared(anchor, op);
            break;
        default: break;
        }
    }
}

/* ---- tiles that are too large ---- */

static uint64_t registers_of(const TileType *type) {
    unsigned bytes = tile_scalar_bytes(type->scalar), word = sizeof(uint32_t);
    return (uint64_t)tile_type_lanes(type) * (bytes > word ? bytes / word : 1);
}

typedef struct Search {
    uint64_t most; /* registers */
    const TileOp *found;
    const TileType *type;
} Search;

/* The first op with a tile of more registers than there are. An element narrower than a register takes one. What products read
 * from shared memory takes none. */
static void look_for_large(TileOp *op, void *state) {
    Search *search = state;
    if (gpu_stays_shared(op)) return;
    for (unsigned i = 0; i < op->result_count && !search->found; i++) {
        const TileType *type = op->results[i].type;
        if (!tile_type_is_tile(type) || registers_of(type) <= search->most) continue;
        search->found = op;
        search->type = type;
    }
}

static TileResult refuse_large(TilePassContext *context, const TileFunc *func, const Search *search) {
    TileText type = {.arena = context->scratch};
    tile_type_print(&type, search->type);
    return tile_pass_exceed(context, TILE_LIMIT_TILE_REGISTERS, TILE_DIAGNOSTIC_TILE_TOO_LARGE, search->found->location,
                            "a tile of %s takes %llu registers, and the %u threads of a block have %llu on %s",
                            tile_text_get(&type), (unsigned long long)registers_of(search->type), func->threads,
                            (unsigned long long)search->most, context->target->name);
}

TileResult tile_pass_gpu_anchor(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    if (!func->threads) return tile_pass_fail(context, TILE_INTERNAL, NULL, "gpu-anchor: gpu-threads comes before");
    uint64_t limit = context->limits->most[TILE_LIMIT_TILE_REGISTERS];
    Search search = {.most = limit ? limit
                                   : (uint64_t)func->threads * tile_ptx_target_of(context->target)->registers_thread};
    tile_block_walk(&func->body, look_for_large, &search);
    if (search.found) return refuse_large(context, func, &search);
    Anchor anchor = {.context = context, .module = context->module, .func = func, .target = tile_ptx_target_of(context->target)};
    choose_bases(&anchor, func);
    tile_block_walk(&func->body, look_for_part, &anchor.part);
    gpu_set_plan(context->module, &func->body, &anchor.dots.plan);
    anchor.changed |= anchor.dots.count != 0;
    anchor_block(&anchor, &func->body);
    if (anchor.error) return tile_pass_fail(context, TILE_INTERNAL, NULL, "gpu-anchor: %s", anchor.error);
    return anchor.changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
