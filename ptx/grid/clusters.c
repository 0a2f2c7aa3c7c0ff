/* Purpose: make room for clusters: fill rows of programs up to whole clusters of blocks. Where products take one operand by the row
 * and the other by the column of programs, neighbouring rows of a column have the same second operand, and their blocks can load it
 * together (gpu-multicast). Blocks of a cluster have to come to each copy together, and so there are as many rows of programs as
 * clusters take: a program of the last row may have no elements at all, and stores none.
 *
 * The wish is the function's `cluster`: of the kernel's author, or of the model, which knows how many programs there are.
 *
 * Before:
 *     func kernel tile @k(%a: tensor<f16, 2, in> {noalias}, %b: tensor<f16, 2, in> {noalias}, %c: tensor<f32, 2, out> {noalias}) cluster = 2 {
 *       %M = dim %a {axis = 0} : i64
 *       %N = dim %b {axis = 1} : i64
 *       %K = dim %a {axis = 1} : i64
 *       check_dim %b, %K {axis = 0, text = "K"}
 *       check_dim %c, %M {axis = 0, text = "M"}
 *       check_dim %c, %N {axis = 1, text = "N"}
 *       %63 = const {value = 63} : i64
 *       %64 = const {value = 64} : i64
 *       %0 = add %M, %63 : i64
 *       %rows = div %0, %64 : i64
 *       %1 = add %N, %63 : i64
 *       %columns = div %1, %64 : i64
 *       grid %rows, %columns (%m: i64, %n: i64) {
 *         %zero = const {value = 0} : i64
 *         %one = const {value = 1} : i64
 *         %none = const {value = 0.0} : f32[64, 64]
 *         %i = mul %m, %64 : i64
 *         %j = mul %n, %64 : i64
 *         %2 = sub %M, %i : i64
 *         %3 = min %2, %64 : i64
 *         %4 = sub %N, %j : i64
 *         %5 = min %4, %64 : i64
 *         %sum = for %zero, %K, %64, %none : f32[64, 64] (%k: i64, %acc: f32[64, 64]) {
 *           %6 = sub %K, %k : i64
 *           %7 = min %6, %64 : i64
 *           %x = load_tile %a, %i, %one, %zero, %3, %k, %one, %zero, %7 {access = [range, range]} : f16[64, 64]
 *           %y = load_tile %b, %k, %one, %zero, %7, %j, %one, %zero, %5 {access = [range, range]} : f16[64, 64]
 *           %8 = dot %x, %y, %acc : f32[64, 64]
 *           yield %8
 *         }
 *         store_tile %c, %sum, %i, %one, %zero, %3, %j, %one, %zero, %5 {access = [range, range]}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func kernel tile @k(%a: tensor<f16, 2, in> {noalias}, %b: tensor<f16, 2, in> {noalias}, %c: tensor<f32, 2, out> {noalias}) cluster = 2 {
 *       %M = dim %a {axis = 0} : i64
 *       %N = dim %b {axis = 1} : i64
 *       %K = dim %a {axis = 1} : i64
 *       check_dim %b, %K {axis = 0, text = "K"}
 *       check_dim %c, %M {axis = 0, text = "M"}
 *       check_dim %c, %N {axis = 1, text = "N"}
 *       %0 = const {value = 63} : i64
 *       %1 = const {value = 64} : i64
 *       %2 = add %M, %0 : i64
 *       %rows = div %2, %1 : i64
 *       %3 = add %N, %0 : i64
 *       %columns = div %3, %1 : i64
 *       %4 = const {value = 1} : i64
 *       %5 = add %rows, %4 : i64
 *       %6 = const {value = 2} : i64
 *       %7 = div %5, %6 : i64
 *       %8 = mul %7, %6 : i64
 *       grid %8, %columns {multicast = 2} (%m: i64, %n: i64) {
 *         %zero = const {value = 0} : i64
 *         %one = const {value = 1} : i64
 *         %none = const {value = 0.0} : f32[64, 64]
 *         %i = mul %m, %1 : i64
 *         %j = mul %n, %1 : i64
 *         %9 = sub %M, %i : i64
 *         %10 = min %9, %1 : i64
 *         %11 = sub %N, %j : i64
 *         %12 = min %11, %1 : i64
 *         %sum = for %zero, %K, %1, %none : f32[64, 64] (%k: i64, %acc: f32[64, 64]) {
 *           %13 = sub %K, %k : i64
 *           %14 = min %13, %1 : i64
 *           %x = load_tile %a, %i, %one, %zero, %10, %k, %one, %zero, %14 {access = [range, range]} : f16[64, 64]
 *           %y = load_tile %b, %k, %one, %zero, %14, %j, %one, %zero, %12 {access = [range, range]} : f16[64, 64]
 *           %15 = dot %x, %y, %acc : f32[64, 64]
 *           yield %15
 *         }
 *         store_tile %c, %sum, %i, %one, %zero, %10, %j, %one, %zero, %12 {access = [range, range]}
 *         yield
 *       }
 *       return
 *     }
 * Run: --passes=gpu-clusters --target=sm_90a
 * Needs: facts, which gives bounds their form. Keeps: tile form; programs that there were run once, and others store nothing. Cost: linear.
 */
#include "ptx/grid/clusters.h"

#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "lang/ir/layout_rules.h"
#include "ptx/passes.h"
#include "ptx/target/target.h"

bool gpu_row_varies(GpuRow *row, const TileValue *value) {
    static const char yes, no;
    if (value == row->number) return true;
    const void *known = tile_map_get(&row->known, value);
    if (known) return known == &yes;
    const TileOp *op = value->op, *loop = op ? NULL : value->block->op;
    bool counts = loop && loop->id == TILE_OP_FOR, found = op ? op->id == TILE_OP_BLOCK || op->region_count : counts && value->index;
    tile_map_set(&row->known, value, (void *)&yes); /* what is carried around a loop */
    if (counts) op = loop; /* a number between its bounds */
    for (unsigned i = 0; op && op != row->number->op && !found && i < (counts ? 3 : op->operand_count); i++)
        found = gpu_row_varies(row, tile_op_operand(op, i));
    tile_map_set(&row->known, value, (void *)(found ? &yes : &no));
    return found;
}

bool gpu_row_varies_in(GpuRow *row, const TileOp *access) {
    bool found = false;
    for (unsigned i = tile_access_first(access); i < tile_access_end(access) && !found; i++)
        found = gpu_row_varies(row, tile_op_operand(access, i));
    return found;
}

typedef struct Clusters {
    GpuRow row;
    const TileOp *grid;
    unsigned axis; /* of rows */
    TileIndexView view;
    const TileValue *limit; /* rows are those of so many elements, each has `size` of them */
    int64_t size;
    unsigned shared;  /* loads of loops that are the same in all rows */
    const char *why;  /* NULL: there can be more rows */
    const TileOp *place;
} Clusters;

static void refuse(Clusters *c, const TileOp *place, const char *why) {
    if (c->why) return;
    c->why = why;
    c->place = place;
}

/* ---- rows without elements ---- */

/* The value that the sum is, without factor and constant; NULL: it is another one. */
static const TileValue *single(const TileSum *sum, int64_t factor, int64_t constant) {
    bool one = sum->count == 1 && sum->constant == constant && sum->products[0].factor == factor && sum->products[0].degree == 1;
    return one ? sum->products[0].symbols[0]->value : NULL;
}

/* The rows are as many as `size` elements each of `limit` elements make up. */
static bool read_rows(Clusters *c) {
    const TileValue *rows = tile_op_operand(c->grid, c->axis);
    const TileOp *division = tile_value_def(rows, TILE_OP_DIV);
    if (!division || !tile_value_integer(tile_op_operand(division, 1), &c->size) || c->size < 1) return false;
    c->limit = single(tile_index_sum(&c->view, tile_op_operand(division, 0)), 1, c->size - 1);
    return c->limit != NULL;
}

/* Does the range end where the rows' elements do? Then it is empty in rows behind the last one. */
static bool ends_with_rows(Clusters *c, const TileAccessIndex *index, const TileValue *bound) {
    const TileOp *least = tile_value_def(bound, TILE_OP_MIN);
    if (least && (ends_with_rows(c, index, tile_op_operand(least, 0)) || ends_with_rows(c, index, tile_op_operand(least, 1)))) return true;
    const TileSum *end = tile_sum_add(tile_index_table(c->view.indices), tile_index_sum(&c->view, bound), tile_index_sum(&c->view, index->first));
    return single(end, 1, 0) == c->limit;
}

static bool is_empty_behind(Clusters *c, const TileAccessIndex *index) {
    return index->kind == TILE_ACCESS_RANGE && tile_value_is_integer(index->step, 1) && tile_value_is_integer(index->lo, 0) &&
           single(tile_index_sum(&c->view, index->first), c->size, 0) == c->row.number && ends_with_rows(c, index, index->hi);
}

/* Each access that depends on the row has to be one of no elements behind the last row. */
static void check_access(Clusters *c, const TileOp *op) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    unsigned rank = tile_access_read(op, indices);
    bool empty = false;
    if (!gpu_row_varies_in(&c->row, op)) {
        if (op->id == TILE_OP_STORE_TILE) refuse(c, op, "programs of several rows store the same");
        c->shared += op->block != &c->grid->regions[0] && tile_accessed_tile(op);
        return;
    }
    for (unsigned d = 0; d < rank; d++) {
        empty |= is_empty_behind(c, &indices[d]);
        bool gathers = indices[d].kind == TILE_ACCESS_GATHER && gpu_row_varies(&c->row, indices[d].first);
        if (gathers) refuse(c, op, "it gathers by the row");
    }
    if (!empty) refuse(c, op, "its range does not end with the rows");
}

static void check(TileOp *op, void *state) {
    Clusters *c = state;
    if (op->id == TILE_OP_LOAD_TILE || op->id == TILE_OP_STORE_TILE)
        check_access(c, op);
    else if (op->id == TILE_OP_FOR) {
        for (unsigned i = 0; i < 3; i++)
            if (gpu_row_varies(&c->row, tile_op_operand(op, i))) refuse(c, op, "its trip count differs from row to row");
    } else if (op->id == TILE_OP_IF) {
        if (gpu_row_varies(&c->row, tile_op_operand(op, 0))) refuse(c, op, "its condition differs from row to row");
    } else if (op->id == TILE_OP_WHILE || tile_op_reads(op) || tile_op_writes(op))
        refuse(c, op, "blocks of a cluster cannot do it together");
}

/* ---- the grid ---- */

/* The number in front of the op, rounded up to a multiple. */
static TileValue *round_up(TileModule *module, TileOp *before, TileValue *number, int64_t multiple) {
    TileBuilder b = tile_builder_before(module, before);
    TileValue *sum = tile_build_binary(&b, TILE_OP_ADD, number, tile_build_i64(&b, multiple - 1)), *by = tile_build_i64(&b, multiple);
    return tile_build_binary(&b, TILE_OP_MUL, tile_build_binary(&b, TILE_OP_DIV, sum, by), by);
}

/* NULL: the grid has whole clusters now. */
static const char *fill_clusters(TilePassContext *context, TileOp *grid, int64_t blocks, const TileOp **place) {
    uint32_t rank = grid->regions[0].argument_count;
    *place = grid;
    if (rank < 2) return "they have no rows and columns";
    unsigned axis = rank - 2u;
    Clusters c = {.grid = grid, .axis = axis};
    c.row.number = grid->regions[0].arguments[axis];
    tile_map_init(&c.row.known, context->scratch);
    tile_index_view_init(&c.view, tile_pass_indices(context, tile_op_func(grid)), NULL, false);
    if (!read_rows(&c)) return "rows have other elements than a tile each";
    tile_block_walk(&grid->regions[0], check, &c);
    if (c.place) *place = c.place;
    if (c.why) return c.why;
    if (!c.shared) return "no load of a loop is the same in all rows";
    tile_op_set_operand(grid, axis, round_up(context->module, grid, tile_op_operand(grid, axis), blocks));
    tile_op_set_integer(context->module, grid, TILE_ATTRIBUTE_MULTICAST, blocks);
    return NULL;
}

/* A grid of several is filled where it can be; if none can, no block is in a cluster. */
TileResult tile_pass_gpu_clusters(TilePassContext *context, TileFunc *func) {
    bool changed = false;
    if (func->kind != TILE_FUNC_KERNEL || !func->cluster || gpu_combines_in_cluster(&func->body)) return TILE_RESULT_UNCHANGED;
    bool can = tile_ptx_target_of(context->target)->has_clusters && gpu_copies_by_maps(context->target) && TILE_PROGRAM_ROWS % func->cluster == 0;
    for (TileOp *op = func->body.first; op && can && func->cluster > 1; op = op->next) {
        const TileOp *place;
        if (op->id != TILE_OP_GRID) continue;
        const char *why = fill_clusters(context, op, func->cluster, &place);
        if (why) tile_pass_remark(context, place, TILE_DECISION_NO_CLUSTERS, "programs", "%s", why);
        changed |= !why;
    }
    if (!changed) func->cluster = 0;
    return TILE_RESULT_CHANGED;
}
