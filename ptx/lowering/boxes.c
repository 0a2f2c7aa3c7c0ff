/* Copies and stores by tensor maps, in boxes. A tile lies in shared memory in panels of at most 128 bytes of each row,
 * and a box is at most 256 rows of a panel. */
#include <string.h>

#include "lang/ir/operands.h"
#include "lang/ir/tensor_map.h"
#include "ptx/lowering/access.h"
#include "ptx/pipeline/copies.h"
#include "ptx/target/map.h"

enum { GROUP_ROWS = 64 }; /* that a warpgroup multiplies at once */

typedef struct Boxes {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    unsigned rank;
    const TileType *tile;
    const TileType *stored; /* its rows */
    int64_t rows, columns;  /* of one box */
    int64_t apart;          /* rows of the tile between neighbouring ones of a box: 2: even rows come first, then odd ones */
    TileTensorMap map;
    bool outside[TILE_MAX_TENSOR_RANK]; /* its index may lie outside of the tensor */
    TileValue *parameter; /* the map's; NULL: there is no room for it */
    int64_t blocks;       /* of a cluster, each of which copies a part for all: 1: each copies for itself */
    TileName cache;       /* the L2 cache's policy */
    GpuCopyParts parts;
    TileValue *single;    /* of positions: the map whose boxes are one of them; else NULL */
    TileValue *row, *column; /* where the part of this block, or of this warpgroup, begins, i32; NULL: at 0 */
    TileValue *place;        /* i64: the byte where that lies; NULL: all store together */
    int64_t groups;          /* warpgroups that each store rows of their own, a box after every so many; 1: all store together */
} Boxes;

/* Rows of a box: all, or the most that share the tile's rows and end where the swizzle begins anew. */
static int64_t choose_rows(const TileType *tile) {
    int64_t rows = tile->extent[0];
    if (rows <= GPU_BOX_ROWS) return rows;
    rows = GPU_BOX_ROWS;
    while (tile->extent[0] % rows) rows -= TILE_MAP_SWIZZLE_ROWS;
    return rows;
}

/* Where a map in mode im2col has no corners for the positions, they are copied one by one. */
static void add_single(Gpu *gpu, const GpuTensor *tensor, Boxes *boxes) {
    TileTensorMap single = {.rank = boxes->rank, .swizzle = boxes->map.swizzle};
    memcpy(single.box, boxes->map.box, sizeof single.box);
    boxes->single = tile_func_add_map(gpu->func, tensor->parameter->argument, &single);
    if (!boxes->single) boxes->parameter = NULL;
}

/* All rows are one box of positions; those that are stored are all of the tensor, and the corners its own. */
static void choose_positions(const Gpu *gpu, Boxes *boxes, bool stored) {
    boxes->map.positions = (uint32_t)boxes->rows;
    for (unsigned d = 0; d + 1 < boxes->rank; d++) {
        int64_t step = 1;
        boxes->map.box[d] = 1;
        if (tile_value_integer(boxes->indices[d].step, &step)) boxes->map.step[d] = (uint32_t)step;
        if (!d) continue;
        const TileOp *count = tile_value_def(boxes->indices[d].hi, TILE_OP_DIM);
        const GpuTensor *of = tile_map_get(&gpu->tensors, tile_op_operand(count, 0));
        boxes->map.corner[d - 1] = stored ? 0 : (int32_t)tile_map_usual_corner(boxes->rank);
        boxes->map.over[d - 1].argument = of->parameter->argument;
        boxes->map.over[d - 1].axis = (uint32_t)tile_op_integer(count, TILE_ATTRIBUTE_AXIS, 0);
    }
}

/* A tile of more axes than two is one box of all its rows. */
static Boxes choose_boxes(Gpu *gpu, const TileOp *op, const TileType *tile, const TileType *stored, int64_t groups) {
    bool panels = stored->swizzle == TILE_SWIZZLE_PANELS;
    unsigned panel = panels ? (unsigned)TILE_CHUNK_BYTES << stored->log_chunks : 0;
    Boxes boxes = {.tile = tile,
                   .stored = stored,
                   .groups = groups,
                   .columns = panels ? panel / tile_scalar_bytes(tile->scalar) : stored->extent[1]};
    boxes.rank = tile_access_read(op, boxes.indices);
    boxes.blocks = tile_op_integer(op, TILE_ATTRIBUTE_MULTICAST, 1);
    boxes.cache = op->id == TILE_OP_COPY_TILE ? (TileName)tile_op_integer(op, TILE_ATTRIBUTE_CACHE, TILE_CACHE_DEFAULT) : TILE_CACHE_DEFAULT;
    boxes.parts = boxes.blocks > 1 ? gpu_parts_of_copy(tile, boxes.blocks) : GPU_PARTS_NONE;
    boxes.rows = tile->rank != 2 ? stored->extent[0] : groups > 1 ? GROUP_ROWS : choose_rows(tile);
    if (boxes.parts == GPU_PARTS_ROWS) boxes.rows /= boxes.blocks;
    boxes.apart = tile_op_get(op, TILE_ATTRIBUTE_PAIRS) ? 2 : 1;
    boxes.rows /= boxes.apart;
    boxes.map = (TileTensorMap){.rank = boxes.rank, .swizzle = panel};
    if (boxes.indices[0].kind == TILE_ACCESS_POSITION) choose_positions(gpu, &boxes, op->id == TILE_OP_STORE_TILE);
    for (unsigned d = 0; d < boxes.rank; d++) {
        int axis = boxes.indices[d].axis;
        if (boxes.indices[d].kind == TILE_ACCESS_POSITION) continue;
        int64_t rows = axis < 0 ? 1 : tile->rank > 2 ? tile->extent[axis] : boxes.rows;
        boxes.map.box[d] = (uint32_t)(axis + 1 == (int)tile->rank ? boxes.columns : rows);
        boxes.map.step[d] = (uint32_t)(gpu_step_of_index(&boxes.indices[d]) * (axis == 0 ? boxes.apart : 1));
    }
    const TileAttribute *outside = tile_op_get(op, TILE_ATTRIBUTE_OUTSIDE), *cut = tile_op_get(op, TILE_ATTRIBUTE_CUT);
    for (unsigned i = 0; cut && i < cut->count; i++) boxes.map.cut |= UINT32_C(1) << cut->integers[i];
    for (unsigned i = 0; outside && i < outside->count; i++) boxes.outside[outside->integers[i]] = true;
    const GpuTensor *tensor = tile_map_get(&gpu->tensors, tile_op_operand(op, 0));
    boxes.parameter = tile_func_add_map(gpu->func, tensor->parameter->argument, &boxes.map);
    if (boxes.map.positions && op->id == TILE_OP_COPY_TILE) add_single(gpu, tensor, &boxes);
    if (!boxes.parameter) gpu_refuse(gpu, op, "needs more tensor maps than a kernel may have");
    return boxes;
}

/* The index, or another one that is as far outside. */
static TileValue *in_word(Gpu *gpu, TileValue *index) {
    index = gpu_binary(gpu, TILE_OP_MAX, index, gpu_i64(gpu, INT32_MIN));
    index = gpu_binary(gpu, TILE_OP_MIN, index, gpu_i64(gpu, INT32_MAX - TILE_MAP_MOST_EXTENT));
    return tile_build_convert(&gpu->b, index, TILE_I32);
}

/* Where the box begins along a dimension. A shifted range may begin far outside of the tensor, where no word can say; and so may an index
 * that `outside` says of. */
static TileValue *first_word(Gpu *gpu, const TileAccessIndex *index, bool outside) {
    TileValue *first = gpu_value(gpu, index->first);
    bool far = outside || (index->kind == TILE_ACCESS_RANGE && !tile_value_integer(index->lo, &(int64_t){0}));
    return far ? in_word(gpu, first) : tile_build_convert(&gpu->b, first, TILE_I32);
}

/* The place of the first position along a dimension, from the map's corner on; and how far from there the window lies. */
static TileValue *first_position(Gpu *gpu, const Boxes *boxes, unsigned d) {
    TileValue *number = gpu_value(gpu, boxes->indices[d].first);
    int64_t step = tile_map_step(&boxes->map, d), corner = d ? boxes->map.corner[d - 1] : 0;
    if (step > 1) number = gpu_binary(gpu, TILE_OP_MUL, number, gpu_i64(gpu, step));
    if (corner) number = gpu_binary(gpu, TILE_OP_ADD, number, gpu_i64(gpu, corner));
    return tile_build_convert(&gpu->b, number, TILE_I32);
}

static TileValue *offset_of_positions(Gpu *gpu, const Boxes *boxes, unsigned axis) {
    TileValue *added = gpu_value(gpu, boxes->indices[1 + axis].lo);
    return tile_build_convert(&gpu->b, gpu_binary(gpu, TILE_OP_SUB, added, gpu_i64(gpu, boxes->map.corner[axis])), TILE_I32);
}

/* An op with `fixed` operands, and the coordinates of the box behind them. */
static void build_box(Gpu *gpu, TileOpId id, const Boxes *boxes, TileValue *const *fixed, unsigned count, int64_t row,
                      int64_t column) {
    TileValue *operands[3 + 2 * TILE_MAX_TENSOR_RANK];
    const TileType *word = tile_type_scalar(gpu->module->context, TILE_I32);
    for (unsigned i = 0; i < count; i++) operands[i] = fixed[i];
    for (unsigned d = 0; d < boxes->rank; d++) {
        int axis = boxes->indices[d].axis;
        if (boxes->indices[d].kind == TILE_ACCESS_POSITION) {
            operands[count + d] = first_position(gpu, boxes, d);
            continue;
        }
        int64_t step = tile_map_step(&boxes->map, d) / (axis == 0 ? boxes->apart : 1), more = axis + 1 == (int)boxes->tile->rank ? column : axis ? 0 : row * step;
        TileValue *first = first_word(gpu, &boxes->indices[d], boxes->outside[d]);
        TileValue *part = axis + 1 == (int)boxes->tile->rank ? boxes->column : axis ? NULL : boxes->row;
        if (part && step > 1) part = gpu_binary(gpu, TILE_OP_MUL, part, tile_build_integer(&gpu->b, word, step));
        if (part) first = gpu_binary(gpu, TILE_OP_ADD, first, part);
        operands[count + d] = more ? gpu_binary(gpu, TILE_OP_ADD, first, tile_build_integer(&gpu->b, word, more)) : first;
    }
    TileAttribute attributes[2];
    unsigned given = 0;
    if (boxes->blocks > 1) attributes[given++] = (TileAttribute){.key = TILE_ATTRIBUTE_MULTICAST, .integer = boxes->blocks};
    if (boxes->cache != TILE_CACHE_DEFAULT) attributes[given++] = (TileAttribute){.key = TILE_ATTRIBUTE_CACHE, .integer = boxes->cache};
    unsigned offsets = id == TILE_OP_STORE_TENSOR ? 0 : tile_map_image_axes(&boxes->map);
    for (unsigned i = 0; i < offsets; i++) operands[count + boxes->rank + i] = offset_of_positions(gpu, boxes, i);
    tile_build_op(&gpu->b, id, operands, count + boxes->rank + offsets, attributes, given, NULL, 0);
}

/* Does the box begin in the range along the tile's axis? */
static TileValue *begins_inside(Gpu *gpu, const Boxes *boxes, int axis, int64_t at) {
    TileValue *inside = NULL, *first = gpu_i64(gpu, at);
    if (axis == 0 && boxes->row) first = gpu_binary(gpu, TILE_OP_ADD, first, tile_build_convert(&gpu->b, boxes->row, TILE_I64));
    if (axis == 0 && boxes->map.positions) return gpu_binary(gpu, TILE_OP_LT, gpu_value(gpu, boxes->indices[0].first), gpu_value(gpu, boxes->indices[0].hi));
    for (unsigned d = 0; d < boxes->rank; d++)
        if (boxes->indices[d].axis == axis) inside = gpu_binary(gpu, TILE_OP_LT, first, gpu_value(gpu, boxes->indices[d].hi));
    return inside;
}

/* A box that is stored begins in the tensor. */
static void store_box(Gpu *gpu, const Boxes *boxes, TileValue *const *fixed, int64_t row, int64_t column) {
    TileBuilder outer;
    int last = (int)boxes->tile->rank - 1;
    TileValue *inside = NULL;
    for (int axis = 0; axis <= last; axis++)
        inside = gpu_and(gpu, inside, begins_inside(gpu, boxes, axis, axis == last ? column : axis ? 0 : row));
    TileOp *branch = inside ? gpu_begin_branch(gpu, inside, &outer) : NULL;
    build_box(gpu, TILE_OP_STORE_TENSOR, boxes, fixed, 2, row, column);
    if (branch) gpu_end_branch(gpu, branch, &outer);
}

/* Columns of a tile in shared memory; the place is that of the first one. */
typedef struct Columns {
    int64_t begin, end;
} Columns;

/* The block's part of what a cluster copies together: every so-manieth panel, or so many rows of each. Returns the part's place. */
static TileValue *choose_part(Gpu *gpu, Boxes *boxes, TileValue *place) {
    bool panels = boxes->parts == GPU_PARTS_PANELS;
    int64_t bytes = tile_map_box_bytes(&boxes->map, boxes->tile->scalar) * (panels ? boxes->stored->extent[0] / boxes->rows : 1);
    const TileType *word = tile_type_scalar(gpu->module->context, TILE_I32);
    TileValue *rank = tile_op_result(tile_build_op(&gpu->b, TILE_OP_CLUSTER_RANK, NULL, 0, NULL, 0, NULL, 1), 0);
    TileValue *first = gpu_binary(gpu, TILE_OP_MUL, rank, tile_build_integer(&gpu->b, word, panels ? boxes->columns : boxes->rows));
    *(panels ? &boxes->column : &boxes->row) = first;
    return tile_build_ptr_add(&gpu->b, place, gpu_binary(gpu, TILE_OP_MUL, tile_build_convert(&gpu->b, rank, TILE_I64), gpu_i64(gpu, bytes)));
}

/* The first block of 64 rows that the thread's warpgroup stores. */
static void choose_own_rows(Gpu *gpu, Boxes *boxes) {
    int64_t bytes = tile_map_box_bytes(&boxes->map, boxes->tile->scalar);
    boxes->place = gpu_binary(gpu, TILE_OP_MUL, gpu->warpgroup, gpu_i64(gpu, bytes));
    boxes->row = tile_build_convert(&gpu->b, gpu_binary(gpu, TILE_OP_MUL, gpu->warpgroup, gpu_i64(gpu, GROUP_ROWS)), TILE_I32);
}

/* Panels lie one after another, and so do the boxes of a panel. `mbarrier`: of a copy; NULL: stores. */
static void build_boxes(Gpu *gpu, const Boxes *boxes, Columns columns, TileValue *place, TileValue *mbarrier) {
    int64_t box_bytes = tile_map_box_bytes(&boxes->map, boxes->tile->scalar), rows = boxes->stored->extent[0];
    int64_t wide = boxes->columns * (boxes->parts == GPU_PARTS_PANELS ? boxes->blocks : 1),
            high = boxes->rows * (boxes->parts == GPU_PARTS_ROWS ? boxes->blocks : 1) * boxes->groups;
    for (int64_t column = columns.begin; column < columns.end; column += wide)
        for (int64_t row = 0; row < rows; row += high) {
            int64_t offset = ((column - columns.begin) / boxes->columns * (rows / boxes->rows) + row / boxes->rows) * box_bytes;
            TileValue *at = offset ? tile_build_ptr_add(&gpu->b, place, gpu_i64(gpu, offset)) : place;
            TileValue *copy[] = {at, boxes->parameter, mbarrier}, *store[] = {boxes->parameter, at};
            if (mbarrier)
                build_box(gpu, TILE_OP_COPY_TENSOR, boxes, copy, 3, boxes->apart > 1 ? row / boxes->rows : row, column);
            else
                store_box(gpu, boxes, store, row, column);
        }
}

/* ---- positions ---- */

static TileValue *is_between(Gpu *gpu, TileValue *value, int64_t lo, int64_t hi) {
    return gpu_and(gpu, gpu_binary(gpu, TILE_OP_GE, value, gpu_i64(gpu, lo)), gpu_binary(gpu, TILE_OP_LE, value, gpu_i64(gpu, hi)));
}

/* Has the map corners for the positions, and is what is added to them an offset from the near one? The launcher has made it as well as that can be. */
static TileValue *has_corners(Gpu *gpu, const TileOp *op, const Boxes *boxes) {
    const GpuTensor *tensor = tile_map_get(&gpu->tensors, tile_op_operand(op, 0));
    int64_t most = INT64_C(1) << tile_map_corner_bits(boxes->rank);
    TileValue *fits = NULL;
    for (unsigned d = 1; d + 1 < boxes->rank; d++) {
        int64_t corner = boxes->map.corner[d - 1], step = tile_map_step(&boxes->map, d);
        TileValue *count = gpu_value(gpu, boxes->indices[d].hi), *far = gpu_binary(gpu, TILE_OP_SUB, count, gpu_i64(gpu, 1));
        if (step > 1) far = gpu_binary(gpu, TILE_OP_MUL, far, gpu_i64(gpu, step));
        far = gpu_binary(gpu, TILE_OP_SUB, far, tensor->extent[d]);
        fits = gpu_and(gpu, fits, is_between(gpu, far, -most / 2 - corner - 1, most / 2 - corner - 2));
        fits = gpu_and(gpu, fits, is_between(gpu, gpu_value(gpu, boxes->indices[d].lo), corner, corner + most - 1));
    }
    return fits;
}

/* The index along a dimension of the position that lies so many behind the first one, of which `rest` goes on in the dimension before. */
static TileValue *index_of_position(Gpu *gpu, const TileAccessIndex *position, bool first, TileValue **rest) {
    TileValue *number = gpu_binary(gpu, TILE_OP_ADD, gpu_value(gpu, position->first), *rest), *count = gpu_value(gpu, position->hi);
    if (!first) {
        *rest = gpu_binary(gpu, TILE_OP_DIV, number, count);
        number = gpu_binary(gpu, TILE_OP_REM, number, count);
    }
    TileValue *index = gpu_binary(gpu, TILE_OP_MUL, number, gpu_value(gpu, position->step));
    return in_word(gpu, gpu_binary(gpu, TILE_OP_ADD, index, gpu_value(gpu, position->lo)));
}

/* A box for each position, in a loop. */
static void copy_single(Gpu *gpu, const Boxes *boxes, Columns columns, TileValue *place, TileValue *mbarrier) {
    TileOp *loop = tile_build_for(&gpu->b, gpu_i64(gpu, 0), gpu_i64(gpu, boxes->rows), gpu_i64(gpu, 1), NULL, 0);
    TileBuilder outer = gpu->b;
    TileValue *rest = loop->regions[0].arguments[0], *index[TILE_MAX_TENSOR_RANK];
    unsigned last = boxes->rank - 1;
    int64_t row_bytes = boxes->columns * (int64_t)tile_scalar_bytes(boxes->tile->scalar);
    gpu->b = tile_builder_at_end(gpu->module, &loop->regions[0]);
    TileValue *row = gpu_binary(gpu, TILE_OP_MUL, rest, gpu_i64(gpu, row_bytes));
    for (unsigned d = last; d-- > 0;) index[d] = index_of_position(gpu, &boxes->indices[d], !d, &rest);
    for (int64_t column = columns.begin; column < columns.end; column += boxes->columns) {
        TileValue *operands[3 + TILE_MAX_TENSOR_RANK] = {NULL, boxes->single, mbarrier}, *begin = first_word(gpu, &boxes->indices[last], false);
        TileValue *from = gpu_binary(gpu, TILE_OP_ADD, row, gpu_i64(gpu, (column - columns.begin) / boxes->columns * boxes->rows * row_bytes));
        operands[0] = tile_build_ptr_add(&gpu->b, place, from);
        for (unsigned d = 0; d < last; d++) operands[3 + d] = index[d];
        operands[3 + last] = column ? gpu_binary(gpu, TILE_OP_ADD, begin, tile_build_integer(&gpu->b, begin->type, column)) : begin;
        tile_build_op(&gpu->b, TILE_OP_COPY_TENSOR, operands, 3 + boxes->rank, NULL, 0, NULL, 0);
    }
    tile_build_end(&gpu->b, TILE_OP_YIELD, NULL, 0);
    gpu->b = outer;
}

static void copy_positions(Gpu *gpu, const TileOp *op, const Boxes *boxes, Columns columns, TileValue *place, TileValue *mbarrier) {
    TileBuilder outer;
    TileOp *branch = gpu_begin_branch(gpu, has_corners(gpu, op, boxes), &outer);
    build_boxes(gpu, boxes, columns, place, mbarrier);
    gpu->b = tile_builder_at_end(gpu->module, &branch->regions[1]);
    copy_single(gpu, boxes, columns, place, mbarrier);
    gpu_end_branch(gpu, branch, &outer);
}

/* Of rows that the tensor does not have no bytes come. All rows are one box of each panel. */
static void miss_rows(Gpu *gpu, const TileOp *op, const Boxes *boxes) {
    const TileAttribute *cut = tile_op_get(op, TILE_ATTRIBUTE_CUT);
    const GpuTensor *tensor = tile_map_get(&gpu->tensors, tile_op_operand(op, 0));
    GpuSharedTile slot = gpu_shared_tile(boxes->stored);
    int64_t bytes = slot.row_bytes * slot.panels;
    for (unsigned i = 0; cut && i < cut->count; i++) {
        TileValue *rows = gpu_binary(gpu, TILE_OP_MIN, tensor->extent[cut->integers[i]], gpu_i64(gpu, boxes->rows));
        TileValue *missing = gpu_binary(gpu, TILE_OP_MUL, gpu_binary(gpu, TILE_OP_SUB, gpu_i64(gpu, boxes->rows), rows), gpu_i64(gpu, bytes));
        gpu_miss_bytes(gpu, tile_op_named(op, TILE_OPERAND_PLACE)->op, tile_build_convert(&gpu->b, missing, TILE_I32));
    }
}

void gpu_copy_by_map(Gpu *gpu, TileOp *op) {
    const TileValue *place = tile_op_named(op, TILE_OPERAND_PLACE);
    Boxes boxes = choose_boxes(gpu, op, tile_op_get(op, TILE_ATTRIBUTE_TYPES)->types[0], place->type, 1);
    Columns all = {0, place->type->extent[1]};
    if (!boxes.parameter) return;
    TileValue *to = gpu_value(gpu, place);
    if (boxes.blocks > 1) to = choose_part(gpu, &boxes, to);
    if (boxes.map.positions)
        copy_positions(gpu, op, &boxes, all, to, gpu_filled_mbarrier(gpu, place->op));
    else
        build_boxes(gpu, &boxes, all, to, gpu_filled_mbarrier(gpu, place->op));
    miss_rows(gpu, op, &boxes);
}

/* ---- stores ---- */

enum { LOG_GROUP_ROWS = 6, LOG_GROUP_WARPS = 2 };

/* Has a warpgroup every so-manieth block of 64 rows of the tile, as it has the sums of products? Then a bit of a warp's number beyond those of
 * one warpgroup is one of the block's number, and nothing else is. */
static bool deals_rows(const TileLayout *layout, int64_t groups) {
    unsigned first = tile_layout_axis_bit(layout, 0) + LOG_GROUP_ROWS, warp = tile_layout_first_bit(layout, TILE_LAYOUT_WARP) + LOG_GROUP_WARPS;
    uint32_t dealt = 1;
    unsigned bits = 0;
    while (dealt < groups) dealt *= 2, bits++;
    if (layout->pieces[0] != 1 || layout->map.inputs < warp + bits || layout->bits[TILE_LAYOUT_WARP] != LOG_GROUP_WARPS + bits) return false;
    for (unsigned i = 0; i < layout->map.inputs; i++) {
        uint32_t block = layout->map.column[i] >> first & (dealt - 1);
        if (block != (i >= warp && i < warp + bits ? UINT32_C(1) << (i - warp) : 0)) return false;
    }
    return true;
}

/* So many warpgroups, which take turns with their products, store rows of their own each, and wait for no other; 1: all threads of the program
 * store together. */
static int64_t count_storing(const Gpu *gpu, const TileOp *store) {
    const TileType *tile = tile_op_named(store, TILE_OPERAND_VALUE)->type;
    int64_t groups = gpu->groups_in_turn;
    bool positions = tile_op_get(store, TILE_ATTRIBUTE_ACCESS)->integers[0] == TILE_ACCESS_POSITION; /* one box of all rows */
    bool apart = groups > 1 && !positions && tile->rank == 2 && tile->extent[0] % (groups * GROUP_ROWS) == 0 && deals_rows(tile->layout, groups);
    return apart ? groups : 1;
}

void gpu_find_stored(TileOp *op, void *state) {
    Gpu *gpu = state;
    if (op->id != TILE_OP_STORE_TILE || !gpu_by_map(op)) return;
    const TileType *tile = tile_op_named(op, TILE_OPERAND_VALUE)->type;
    int64_t bytes = gpu_map_stored_bytes(gpu->turns, tile) / gpu->turns;
    TileValue *buffer = gpu_build_own_buffer(gpu, bytes, GPU_PANEL_ALIGN);
    int64_t groups = count_storing(gpu, op);
    if (groups > 1) tile_op_set_integer(gpu->module, buffer->op, TILE_ATTRIBUTE_BY_GROUP, groups);
    gpu->stores_apart |= groups > 1;
    tile_map_set(&gpu->stored, op, buffer);
}

/* One thread begins all stores, or one of each warpgroup its own, and so it alone knows when they have read shared memory. */
static TileOp *begin_storing_thread(Gpu *gpu, bool apart, TileBuilder *outer) {
    if (!apart) return gpu_begin_thread(gpu, 0, outer);
    TileValue *thread = gpu->thread;
    gpu->thread = gpu_binary(gpu, TILE_OP_AND, thread, gpu_i64(gpu, TILE_WARPGROUP_THREADS - 1));
    TileOp *branch = gpu_begin_thread(gpu, 0, outer);
    gpu->thread = thread;
    return branch;
}

static void wait_for_stores(Gpu *gpu, bool apart) {
    TileBuilder outer;
    TileAttribute attributes[] = {{.key = TILE_ATTRIBUTE_PENDING, .integer = 0}, {.key = TILE_ATTRIBUTE_READ, .integer = 1}};
    TileOp *branch = begin_storing_thread(gpu, apart, &outer);
    tile_build_op(&gpu->b, TILE_OP_STORE_WAIT, NULL, 0, attributes, 2, NULL, 0);
    gpu_end_branch(gpu, branch, &outer);
}

/* Shared memory must not go before it has been read. */
void gpu_end_stores(Gpu *gpu) {
    if (gpu->stored.count) wait_for_stores(gpu, gpu->stores_apart);
}

/* All threads of the program, or those of each warpgroup, meet. */
static void meet(Gpu *gpu, int64_t groups) {
    if (groups > 1)
        gpu_build_warpgroup_barrier(gpu, groups);
    else
        gpu_build_plain(&gpu->b, TILE_OP_BARRIER);
}

/* Stores 16 rows and 16 columns, or 8 where there are no more, by matrices of 8 x 8. */
static void store_block(Gpu *gpu, TileValue *value, const TileLayout *layout, const uint32_t *at, int64_t row,
                        int64_t column, TileValue *address) {
    enum { WORDS = 4, PACKED = 2, SIDE = 8 };
    TileValue *elements[WORDS * PACKED];
    int64_t columns = tile_layout_extent(layout, 1);
    unsigned count = column + SIDE < columns ? WORDS * PACKED : WORDS;
    for (unsigned i = 0; i < count; i++)
        elements[i] = gpu_register(gpu, value,
                                   at[(row + (i >> 1 & 1) * SIDE) * columns + column + (i >> 2) * SIDE + (i & 1)]);
    TileValue *operands[] = {gpu_join(gpu, elements, count), address};
    tile_build_op(&gpu->b, TILE_OP_STORE_MATRIX, operands, 2, NULL, 0, NULL, 0);
}

/* The layout of the tile's rows, which are those of the product that it is made of. */
static TileLayout rows_layout(Gpu *gpu, const TileType *type) {
    TileLayout rows = *type->layout;
    TileLayoutShape shape = tile_layout_shape(gpu_rows_type(gpu->module->context, type));
    if (type->rank > 2) tile_layout_reshape(type->layout, &shape, &rows);
    return rows;
}

static void store_matrices(Gpu *gpu, TileValue *value, const TileType *type, Columns columns, TileValue *place) {
    enum { BLOCK = 16 };
    TileLayout sums = rows_layout(gpu, type), rows = gpu_lanes_of_rows(&sums);
    GpuSharedTile tile = gpu_shared_tile(gpu_panel_type(gpu->module->context, type));
    GpuTileAddresses places = gpu_tile_addresses(gpu, place, &tile, &rows, false);
    uint32_t *at = gpu_index_registers(gpu, &sums);
    for (uint32_t r = 0; r < tile_layout_registers(&sums); r++) {
        int64_t row = gpu_register_index(&sums, 0, r), column = gpu_register_index(&sums, 1, r);
        if (row % BLOCK == 0 && column % BLOCK == 0 && column >= columns.begin && column < columns.end)
            store_block(gpu, value, &sums, at, row, column, gpu_register_address(&places, r));
    }
}

/* The results lie in shared memory until others do in their place, a later part's or those of the next program: the stores
 * from there must have read theirs, and all threads that store there must know it. */
static void store_columns(Gpu *gpu, const TileOp *op, const Boxes *boxes, Columns columns) {
    const TileValue *stored = tile_op_named(op, TILE_OPERAND_VALUE);
    TileValue *place = tile_map_get(&gpu->stored, op);
    GpuSharedTile tile = gpu_shared_tile(boxes->stored);
    int64_t bytes = columns.begin / boxes->columns * tile.row_bytes * tile.shape.extent[0];
    TileBuilder outer;
    wait_for_stores(gpu, boxes->groups > 1);
    meet(gpu, boxes->groups);
    TileValue *origin = bytes ? tile_build_ptr_add(&gpu->b, place, gpu_i64(gpu, -bytes)) : place;
    store_matrices(gpu, gpu_value(gpu, stored), stored->type, columns, origin);
    gpu_build_plain(&gpu->b, TILE_OP_FENCE_ASYNC);
    meet(gpu, boxes->groups);
    TileOp *branch = begin_storing_thread(gpu, boxes->groups > 1, &outer);
    build_boxes(gpu, boxes, columns, boxes->groups > 1 ? tile_build_ptr_add(&gpu->b, place, boxes->place) : place, NULL);
    gpu_build_plain(&gpu->b, TILE_OP_STORE_COMMIT);
    gpu_end_branch(gpu, branch, &outer);
}

void gpu_store_by_map(Gpu *gpu, TileOp *op) {
    const TileValue *stored = tile_op_named(op, TILE_OPERAND_VALUE);
    int64_t groups = count_storing(gpu, op);
    Boxes boxes = choose_boxes(gpu, op, stored->type, gpu_panel_type(gpu->module->context, stored->type), groups);
    if (!boxes.parameter) return;
    const GpuTensor *tensor = tile_map_get(&gpu->tensors, tile_op_operand(op, 0));
    tensor->parameter->used_multiple |= TILE_CHUNK_BYTES / tile_scalar_bytes(stored->type->scalar);
    if (groups > 1) choose_own_rows(gpu, &boxes);
    int64_t parts = gpu_stored_parts(gpu->turns, stored->type), columns = boxes.stored->extent[1] / parts;
    for (int64_t part = 0; part < parts; part++)
        store_columns(gpu, op, &boxes, (Columns){part * columns, (part + 1) * columns});
}
