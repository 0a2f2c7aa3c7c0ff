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
#include "lang/ir/operands.h"
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

static bool is_of_programs(const TileOp *op) { return tile_loop_is_of_programs(op); }

static bool contains(const TileOp *op, bool (*is)(const TileOp *op)) {
    if (is(op)) return true;
    for (unsigned i = 0; i < op->region_count; i++)
        for (const TileOp *inner = op->regions[i].first; inner; inner = inner->next)
            if (contains(inner, is)) return true;
    return false;
}

static bool is_other_access(const TileOp *op) {
    return !op->region_count && tile_op_reaches_memory(op) && op->id != TILE_OP_COPY_TENSOR && op->id != TILE_OP_PREFETCH_TENSOR;
}

static void wait_before(TileModule *module, TileOp *op) {
    TileBuilder b = tile_builder_before(module, op);
    tile_build_op(&b, TILE_OP_GRID_WAIT, NULL, 0, NULL, 0, NULL, 0);
}

/* Lets the block wait in front of what first reaches memory; in a loop over programs each of them does. */
static void wait_inside(TileModule *module, TileBlock *block) {
    TileOp *first = block->first;
    while (first && !tile_op_reaches_memory(first)) first = first->next;
    if (!first) return;
    bool later = false;
    for (const TileOp *op = first->next; op; op = op->next) later |= tile_op_reaches_memory(op);
    if (later || !contains(first, is_of_programs)) wait_before(module, first);
    else
        for (unsigned i = 0; i < first->region_count; i++) wait_inside(module, &first->regions[i]);
}

/* Partitions wait each by itself. One that only copies by maps computes its first program's places before that. Others wait at their beginning: nothing
 * keeps the back end from loading what nobody writes in front of a wait that is close, and those that multiply are held up by the copies anyway. */
static bool wait_in_partitions(TileModule *module, TileOp *wait) {
    TileOp *partitions = wait->next;
    if (!tile_op_is(partitions, TILE_OP_PARTITIONS)) return false;
    for (const TileOp *op = partitions->next; op; op = op->next)
        if (tile_op_reaches_memory(op)) return false;
    for (unsigned i = 0; i < partitions->region_count; i++) {
        TileBlock *region = &partitions->regions[i];
        TileOp *first = region->first;
        bool others = false;
        for (const TileOp *op = region->first; op; op = op->next) others |= contains(op, is_other_access);
        if (first->id == TILE_OP_SET_REGISTERS) first = first->next;
        if (others) wait_before(module, first);
        else wait_inside(module, region);
    }
    tile_op_erase(wait);
    return true;
}

TileResult tile_pass_gpu_wait(TilePassContext *context, TileFunc *func) {
    TileOp *wait = func->kind == TILE_FUNC_PHASE ? find_wait(func) : NULL, *next = wait ? wait->next : NULL;
    while (next && next->next && tile_op_precedes_grid_wait(next)) next = next->next;
    if (!next) return TILE_RESULT_UNCHANGED;
    TileOp *before = next->previous;
    if (next->id == TILE_OP_IF) move_out(next, &next->regions[0]);
    bool moves = next->previous != wait || before != wait;
    if (moves) {
        tile_op_detach(wait);
        tile_op_insert_before(wait, next);
    }
    bool inside = wait_in_partitions(context->module, wait);
    return moves || inside ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
