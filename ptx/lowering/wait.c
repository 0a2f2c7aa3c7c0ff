/* Purpose: wait for the grid before as late as possible. A later grid's blocks are on the device while the grid before still runs, and
 * what a program computes of its number needs nothing of that grid: divisions, of which its addresses are made, and which each take a
 * hundred cycles. Mbarriers are made before it, too. So the wait moves behind what accesses no memory but barriers; and what stands first in
 * a branch that it comes to, and is pure, moves in front of the branch.
 *
 * Before:
 *     func phase machine @k.1(%x: ptr<global> {role = data}, %n: i64, %begin: i64, %end: i64) threads = 32 {
 *       grid_wait
 *       %0 = block : i64
 *       %program = add %begin, %0 : i64
 *       %1 = lt %program, %end : bool
 *       if %1 {
 *         %2 = div %program, %n : i64
 *         %3 = ptr_add %x, %2 : ptr<global>
 *         %4 = load %3 : f32
 *         store %4, %x
 *         yield
 *       } {
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func phase machine @k.1(%x: ptr<global> {role = data, argument = 0}, %n: i64, %begin: i64, %end: i64) threads = 32 {
 *       %0 = block : i64
 *       %program = add %begin, %0 : i64
 *       %1 = lt %program, %end : bool
 *       %2 = div %program, %n : i64
 *       %3 = ptr_add %x, %2 : ptr<global>
 *       grid_wait
 *       if %1 {
 *         %4 = load %3 : f32
 *         store %4, %x
 *         yield
 *       } {
 *         yield
 *       }
 *       return
 *     }
 * Needs: gpu-once. Keeps: machine form; the wait stands at the top, and no memory is accessed in front of it. Cost: linear. */
#include "lang/ir/build.h"
#include "ptx/passes.h"

static TileOp *find_wait(const TileFunc *func) {
    TileOp *op = func->body.first;
    while (op && op->id != TILE_OP_GRID_WAIT) op = op->next;
    return op;
}

/* Moves ops that begin the block in front of the branch that it is of. */
static void move_out(TileOp *branch, const TileBlock *block) {
    for (TileOp *op = block->first; op->id != TILE_OP_YIELD && tile_op_is_pure(op); op = block->first) {
        tile_op_detach(op);
        tile_op_insert_before(op, branch);
    }
}

TileResult tile_pass_gpu_wait(TilePassContext *context, TileFunc *func) {
    (void)context;
    TileOp *wait = func->kind == TILE_FUNC_PHASE ? find_wait(func) : NULL, *next = wait ? wait->next : NULL;
    while (next && next->next && tile_op_precedes_grid_wait(next)) next = next->next;
    if (!next) return TILE_RESULT_UNCHANGED;
    TileOp *before = next->previous;
    if (next->id == TILE_OP_IF) move_out(next, &next->regions[0]);
    if (next->previous == wait && before == wait) return TILE_RESULT_UNCHANGED;
    tile_op_detach(wait);
    tile_op_insert_before(wait, next);
    return TILE_RESULT_CHANGED;
}
