/* Purpose: compute neighbouring programs of a grid together, where their products are small: tiles of 32 x 32 sums read each
 * operand 32 times from shared memory and keep a warp busy with copies, barriers and indices. Programs that differ along an
 * axis of which each has a range become one with a longer range; those that differ by a row become one with several
 * rows (joined_rows.c: whatever is computed of a row's number); and iterations of the loop that multiplies become one with more of k. `joined_rows` and `joined_columns` of the kernel say how
 * many rows and columns of sums products should have: the model has compared them.
 *
 * Before:
 *     func kernel tile @k(%a: tensor<f16, 3, in>, %b: tensor<f16, 2, in>, %c: tensor<f32, 3, out> {noalias}) joined_rows
 *         = 64 joined_columns = 16 {
 *       %H = dim %a {axis = 0} : i64
 *       %W = dim %a {axis = 1} : i64
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %16 = const {value = 16} : i64
 *       %acc = const {value = 0.0} : f32[16, 16]
 *       grid %H (%h: i64) {
 *         %hi = min %W, %16 : i64
 *         %x = load_tile %a, %h, %zero, %one, %zero, %hi, %zero, %one, %zero, %16 {access = [index, range, range]} : f16[16, 16]
 *         %y = load_tile %b, %zero, %one, %zero, %16, %zero, %one, %zero, %16 {access = [range, range]} : f16[16, 16]
 *         %s = dot %x, %y, %acc : f32[16, 16]
 *         store_tile %c, %s, %h, %zero, %one, %zero, %hi, %zero, %one, %zero, %16 {access = [index, range, range]}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func kernel tile @k(%a: tensor<f16, 3, in>, %b: tensor<f16, 2, in>, %c: tensor<f32, 3, out> {noalias}) joined_rows = 64 joined_columns = 16 {
 *       %H = dim %a {axis = 0} : i64
 *       %W = dim %a {axis = 1} : i64
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %0 = const {value = 16} : i64
 *       %1 = const {value = 3} : i64
 *       %2 = add %H, %1 : i64
 *       %3 = const {value = 4} : i64
 *       %4 = div %2, %3 : i64
 *       grid %4 (%h: i64) {
 *         %5 = mul %h, %3 : i64
 *         %6 = sub %H, %5 : i64
 *         %hi = min %W, %0 : i64
 *         %7 = min %6, %3 : i64
 *         %x = load_tile %a, %5, %one, %zero, %7, %zero, %one, %zero, %hi, %zero, %one, %zero, %0 {access = [range, range, range]} : f16[4, 16, 16]
 *         %x.1 = reshape %x : f16[64, 16]
 *         %y = load_tile %b, %zero, %one, %zero, %0, %zero, %one, %zero, %0 {access = [range, range]} : f16[16, 16]
 *         %8 = const {value = 0.0} : f32[64, 16]
 *         %s = dot %x.1, %y, %8 : f32[64, 16]
 *         %9 = reshape %s : f32[4, 16, 16]
 *         store_tile %c, %9, %5, %one, %zero, %7, %zero, %one, %zero, %hi, %zero, %one, %zero, %0 {access = [range, range, range]}
 *         yield
 *       }
 *       return
 *     }
 * Run: --passes=gpu-join-programs,cse,dce
 * Needs: inline, cse; bounds in the form that facts gives them. Keeps: tile form; each element of a result has the same
 * products in the same order. Cost: linear for each axis of a grid. */
#include "base/temp.h"
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "ptx/grid/joined.h"
#include "ptx/grid/open_windows.h"
#include "lowering/memory.h"
#include "ptx/passes.h"

/* ---- axes of grids ---- */

typedef struct Joining {
    TilePassContext *context;
    TileIndexView view;
    TileFunc *func;
    TileProducts products;
    const char *why; /* of an axis that stays */
    bool changed, programs, relaxed; /* programs: of a grid have been joined */
    bool any_lanes; /* joined, as many as were wanted */
    int64_t rows; /* that grids with windows have got, however many lanes were wanted */
} Joining;

static void try_axis(Joining *joining, TileOp *grid, unsigned axis, int64_t size) {
    TilePassContext *context = joining->context;
    TileJoin join = {.context = context, .around = grid, .number = grid->regions[0].arguments[axis], .size = size, .numbers = true};
    if (!tile_can_join(&join)) {
        joining->why = join.why;
        return;
    }
    int64_t factor = tile_neighbours_wanted(&join, &joining->products, joining->func->joined_rows, joining->func->joined_columns, false);
    if (factor < 2) return;
    tile_pass_remark(context, grid, TILE_DECISION_PROGRAMS_JOINED, "the grid", "%lld along its axis %u", (long long)factor, axis);
    tile_join_neighbours(&join, factor, tile_op_operand(grid, axis));
    joining->changed = true;
}

/* Before anything is joined, while what the analysis knows of integers holds. */
static void try_lanes(Joining *joining, TileOp *grid, unsigned axis) {
    TileValue *number = grid->regions[0].arguments[axis];
    TileJoin join = {.context = joining->context, .around = grid, .number = number, .size = tile_range_size(number), .numbers = true};
    if (join.size && tile_can_join(&join)) joining->relaxed |= gpu_keep_unread_lanes(&join, &joining->view);
}

/* Rows first: the last axis of which programs have one each lies nearest to their ranges. */
static void visit_grid(Joining *joining, TileOp *grid) {
    bool changed = joining->changed;
    joining->products = tile_find_products(&grid->regions[0]);
    joining->changed = false;
    if (joining->products.count && !joining->products.all)
        tile_pass_remark(joining->context, grid, TILE_DECISION_NOT_JOINED, "the grid", "%s", "its products have more than two axes, or are many");
    if (joining->products.all && joining->products.count) {
        for (unsigned axis = 0; axis < grid->operand_count; axis++) try_lanes(joining, grid, axis);
        for (unsigned axis = grid->operand_count; axis-- > 0;) try_axis(joining, grid, axis, 0);
        for (unsigned axis = grid->operand_count; axis-- > 0;) {
            int64_t size = tile_range_size(grid->regions[0].arguments[axis]);
            if (size) try_axis(joining, grid, axis, size);
        }
        bool short_axis = joining->func->joined_columns == 1; /* so k may be, of groups of few channels */
        bool programs = joining->changed, iterations = !short_axis && gpu_join_iterations(joining->context, &grid->regions[0]);
        joining->changed |= iterations;
        joining->programs |= programs;
        if (!programs)
            tile_pass_remark(joining->context, grid, TILE_DECISION_NOT_JOINED, "the grid", "%s",
                             joining->why ? joining->why : "its products have as many rows and columns");
    }
    joining->changed |= changed;
}

/* ---- programs without products ---- */

static void find_largest(TileOp *op, void *state) {
    int64_t *largest = state;
    for (unsigned i = 0; i < op->result_count; i++) {
        const TileType *type = op->results[i].type;
        if (tile_type_is_tile(type) && tile_type_lanes(type) > *largest) *largest = tile_type_lanes(type);
    }
}

static void find_loop(TileOp *op, void *found) {
    bool loops = op->id == TILE_OP_FOR || op->id == TILE_OP_WHILE;
    *(bool *)found |= loops && !tile_goes_through_list(op);
}

/* What goes through windows has several neighbours as rows, as many as give the threads of a warp vectors: its loads are in flight together. */
static void join_windows(Joining *joining, TileOp *grid, unsigned axis) {
    TileBlock *body = &grid->regions[0];
    int64_t positions = gpu_windows_positions(joining->context, joining->func, body), rows = positions > 1 ? gpu_windows_rows(body, positions) : 1;
    if (rows < 2) return;
    TileOp *copy = gpu_windows_open(joining->context, joining->func, grid);
    TileJoin join = {.context = joining->context, .around = copy, .number = copy->regions[0].arguments[axis], .numbers = true};
    bool joined = gpu_join_as_rows(&join, rows, tile_op_operand(copy, axis));
    if (joined)
        tile_pass_remark(joining->context, grid, TILE_DECISION_PROGRAMS_JOINED, "the grid", "%lld along its axis %u, as rows, their windows of %lld positions as a line",
                         (long long)rows, axis, (long long)positions);
    else
        tile_pass_remark(joining->context, grid, TILE_DECISION_NOT_JOINED, "the grid", "%s", join.why);
    tile_op_erase(joined ? grid : copy);
    joining->changed |= joined;
    if (joined) joining->rows = rows;
}

/* As many along one axis as the largest tile needs to have as many elements as are wanted: with longer ranges, or more of the rows that they have, else as rows
 * of tiles that have an axis more. What has a loop but for those over windows is no small program. */
static void visit_light_grid(Joining *joining, TileOp *grid) {
    int64_t largest = 0, wanted = joining->func->joined_lanes, factor = 1;
    bool loops = false;
    tile_block_walk(&grid->regions[0], find_loop, &loops);
    tile_block_walk(&grid->regions[0], find_largest, &largest);
    if (!largest || grid->regions[0].argument_count < joining->func->joined_axis || tile_find_products(&grid->regions[0]).count) return;
    if (loops) {
        join_windows(joining, grid, grid->regions[0].argument_count - joining->func->joined_axis);
        return;
    }
    while (2 * factor * largest <= wanted) factor *= 2;
    if (factor == 1) return;
    unsigned axis = grid->regions[0].argument_count - joining->func->joined_axis;
    TileValue *number = grid->regions[0].arguments[axis];
    TileJoin join = {.context = joining->context, .around = grid, .number = number, .size = tile_range_size(number), .numbers = true};
    if (tile_can_join(&join)) {
        tile_pass_remark(joining->context, grid, TILE_DECISION_PROGRAMS_JOINED, "the grid", "%lld along its axis %u", (long long)factor, axis);
        tile_join_neighbours(&join, factor, tile_op_operand(grid, axis));
        joining->changed = joining->any_lanes = true;
        return;
    }
    TileJoin rows = {.context = joining->context, .around = grid, .number = number}, *last = join.size ? &join : &rows;
    if (gpu_join_as_rows(&rows, factor, tile_op_operand(grid, axis))) {
        tile_pass_remark(joining->context, grid, TILE_DECISION_PROGRAMS_JOINED, "the grid", "%lld along its axis %u, as rows", (long long)factor, axis);
        joining->changed = joining->any_lanes = true;
        return;
    }
    tile_pass_remark(joining->context, last->place ? last->place : grid, TILE_DECISION_NOT_JOINED, "the grid", "%s", last->why);
}

TileResult tile_pass_gpu_join_programs(TilePassContext *context, TileFunc *func) {
    Joining joining = {.context = context, .func = func};
    if (func->kind != TILE_FUNC_KERNEL || (!func->joined_rows && !func->joined_lanes)) return TILE_RESULT_UNCHANGED;
    tile_index_view_init(&joining.view, tile_pass_indices(context, func), NULL, false);
    for (TileOp *op = func->body.first, *next; op; op = next) {
        next = op->next;
        if (op->id == TILE_OP_GRID && func->joined_lanes)
            visit_light_grid(&joining, op);
        else if (op->id == TILE_OP_GRID)
            visit_grid(&joining, op);
    }
    if (func->joined_lanes) {
        if (!joining.changed) func->joined_lanes = func->joined_axis = 0;
        if (joining.rows && !joining.any_lanes) func->joined_lanes = (uint32_t)joining.rows; /* the same whatever was asked for */
    } else if (!joining.programs) { /* the same whatever was asked for */
        func->joined_rows = joining.changed ? GPU_ITERATIONS_JOINED : GPU_NOTHING_JOINED;
        func->joined_columns = func->joined_columns > 1 ? 2 : 1;
    }
    return TILE_RESULT_CHANGED;
}
