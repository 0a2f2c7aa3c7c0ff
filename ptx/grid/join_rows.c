/* Purpose: take several iterations of a loop together as rows of its tiles, where a tile has fewer elements than a warp has in vectors of 16 bytes, and each iteration
 * goes through windows that borders clip, as pools of images do that have their channels last. A warp that loads 4 bytes a thread has a quarter of the bytes in
 * flight, and computes indices for each. The windows become straight lines, of which an iteration's own positions are masked.
 *
 * Before:
 *     func kernel tile @k(%x: tensor<f32, 2, in> {noalias}, %y: tensor<f32, 2, out> {noalias}) {
 *       %W = dim %x {axis = 0} : i64
 *       %Q = dim %y {axis = 0} : i64
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %two = const {value = 2} : i64
 *       %n = const {value = 32} : i64
 *       %least = const {value = -inf} : f32[32]
 *       grid %one (%p: i64) {
 *         for %zero, %Q, %one (%q: i64) {
 *           %last = add %q, %two : i64
 *           %hi = min %W, %last : i64
 *           %top = for %q, %hi, %one, %least : f32[32] (%j: i64, %t: f32[32]) {
 *             %v = load_tile %x, %j, %zero, %one, %zero, %n {access = [index, range]} : f32[32]
 *             %w = max %t, %v : f32[32]
 *             yield %w
 *           }
 *           store_tile %y, %top, %q, %zero, %one, %zero, %n {access = [index, range]}
 *           yield
 *         }
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func kernel tile @k(%x: tensor<f32, 2, in> {noalias}, %y: tensor<f32, 2, out> {noalias}) {
 *       %W = dim %x {axis = 0} : i64
 *       %Q = dim %y {axis = 0} : i64
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 32} : i64
 *       grid %one (%p: i64) {
 *         %0 = const {value = 4} : i64
 *         for %zero, %Q, %0 (%q: i64) {
 *           %1 = sub %Q, %q : i64
 *           %2 = const {value = -1} : i64
 *           %3 = add %1, %2 : i64
 *           %4 = splat %3 : i64[4]
 *           %5 = iota {axis = 0} : i64[4]
 *           %6 = min %5, %4 : i64[4]
 *           %7 = const {value = 0} : i64[4]
 *           %8 = max %6, %7 : i64[4]
 *           %9 = splat %q : i64[4]
 *           %10 = add %8, %9 : i64[4]
 *           %11 = const {value = 2} : i64[4]
 *           %12 = add %10, %11 : i64[4]
 *           %13 = splat %W : i64[4]
 *           %14 = min %13, %12 : i64[4]
 *           %15 = sub %14, %10 : i64[4]
 *           %16 = const {value = -1} : i64[4]
 *           %17 = add %15, %16 : i64[4]
 *           %18 = le %7, %17 : bool[4]
 *           %19 = const {value = 1} : i64[4]
 *           %20 = le %19, %17 : bool[4]
 *           %21 = add %10, %19 : i64[4]
 *           %22 = reshape %18 : bool[4, 1]
 *           %23 = broadcast %22 : bool[4, 32]
 *           %24 = load_tile %x, %10, %zero, %one, %zero, %n, %23 {access = [gather, range], parts = [mask]} : f32[4, 32]
 *           %25 = reshape %20 : bool[4, 1]
 *           %26 = broadcast %25 : bool[4, 32]
 *           %27 = load_tile %x, %21, %zero, %one, %zero, %n, %26 {access = [gather, range], parts = [mask]} : f32[4, 32]
 *           %28 = const {value = -inf} : f32[4, 32]
 *           %29 = max %28, %24 : f32[4, 32]
 *           %30 = select %23, %29, %28 : f32[4, 32]
 *           %31 = max %30, %27 : f32[4, 32]
 *           %32 = select %26, %31, %30 : f32[4, 32]
 *           %33 = min %1, %0 : i64
 *           store_tile %y, %32, %q, %one, %zero, %33, %zero, %one, %zero, %n {access = [range, range]}
 *           yield
 *         }
 *         yield
 *       }
 *       return
 *     }
 * Run: --passes=gpu-join-rows,canonicalise,cse,dce
 * Needs: licm, facts. Keeps: tile form; each element is computed by the same ops in the same order. Cost: linear in the ops that it makes, of 16 positions at most. */
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "lowering/iterations.h"
#include "ptx/grid/joined.h"
#include "ptx/grid/open_windows.h"
#include "ptx/passes.h"

typedef struct Search {
    TilePassContext *context;
    TileFunc *func;
    bool changed;
} Search;

/* As many as fill a warp's vectors; not more than the loop has, if its bounds tell. */
static int64_t rows_of(Search *search, const TileOp *loop, int64_t positions) {
    int64_t rows = gpu_windows_rows((TileBlock *)&loop->regions[0], positions);
    int64_t most = tile_most_iterations(tile_pass_indices(search->context, search->func), loop, rows);
    while (most && rows > most) rows /= 2;
    return rows;
}

static void try_loop(Search *search, TileOp *loop) {
    int64_t positions = gpu_windows_positions(search->context, search->func, &loop->regions[0]), step, rows;
    if (positions < 2 || loop->result_count || loop->attribute_count) return;
    if (!tile_value_integer(tile_op_named(loop, TILE_OPERAND_STEP), &step) || step != 1 || (rows = rows_of(search, loop, positions)) < 2) return;
    TileOp *copy = gpu_windows_open(search->context, search->func, loop);
    TileJoin join = {.context = search->context, .around = copy, .number = copy->regions[0].arguments[0], .numbers = true};
    if (!gpu_join_as_rows(&join, rows, NULL)) {
        tile_pass_remark(search->context, loop, TILE_DECISION_NOT_JOINED, "the loop", "%s", join.why);
        tile_op_erase(copy);
        return;
    }
    tile_pass_remark(search->context, loop, TILE_DECISION_ITERATIONS_JOINED, "the loop", "%lld as rows, their windows of %lld positions as a line", (long long)rows, (long long)positions);
    tile_op_erase(loop);
    search->changed = true;
}

static void visit(Search *search, TileBlock *block) {
    for (TileOp *op = block->first, *next; op; op = next) {
        next = op->next;
        for (unsigned r = 0; r < op->region_count; r++) visit(search, &op->regions[r]);
        if (op->id == TILE_OP_FOR) try_loop(search, op);
    }
}

TileResult tile_pass_gpu_join_rows(TilePassContext *context, TileFunc *func) {
    Search search = {.context = context, .func = func};
    if (func->kind != TILE_FUNC_KERNEL) return TILE_RESULT_UNCHANGED;
    for (TileOp *op = func->body.first; op; op = op->next)
        if (op->id == TILE_OP_GRID) visit(&search, &op->regions[0]);
    return search.changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
