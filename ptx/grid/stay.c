/* Purpose: let blocks stay (`resident`) where programs move few bytes and have no loop: a launch then has as many blocks as run at a
 * time, each of which takes programs in turn. A GPU starts at most a block in a cycle or so, over all its multiprocessors, which
 * is less than its memory needs of programs of a few hundred elements.
 *
 * Before:
 *     func phase tile @k.0(%x: tensor<f32, 1, in> {noalias}, %y: tensor<f32, 1, out> {noalias}, %begin: i64, %end: i64) threads = 32 {
 *       %one = const {value = 1} : i64
 *       %zero = const {value = 0} : i64
 *       %n = const {value = 128} : i64
 *       %b = block : i64
 *       %c = block_count : i64
 *       %first = add %begin, %b : i64
 *       for %first, %end, %c {one_program = 1} (%program: i64) {
 *         %i = mul %program, %n : i64
 *         %v = load_tile %x, %i, %one, %zero, %n {access = [range]} : f32[128]
 *         store_tile %y, %v, %i, %one, %zero, %n {access = [range]}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%x: tensor<f32, 1, in> {noalias}, %y: tensor<f32, 1, out> {noalias}, %begin: i64, %end: i64) threads = 32 resident = 1 {
 *       %one = const {value = 1} : i64
 *       %zero = const {value = 0} : i64
 *       %n = const {value = 128} : i64
 *       %b = block : i64
 *       %c = block_count : i64
 *       %first = add %begin, %b : i64
 *       for %first, %end, %c {resident = 1} (%program: i64) {
 *         %i = mul %program, %n : i64
 *         %v = load_tile %x, %i, %one, %zero, %n {access = [range]} : f32[128]
 *         store_tile %y, %v, %i, %one, %zero, %n {access = [range]}
 *         yield
 *       }
 *       return
 *     }
 * Needs: gpu-threads. Keeps: tile form. Cost: linear. */
#include "lang/ir/layout_rules.h"
#include "ptx/grid/clusters.h"
#include "ptx/passes.h"

/* In the time from one block to the next a multiprocessor moves 2.6 KB: measured, an H200 starts 1.6 blocks in a nanosecond. Programs
 * that move half of that, or compute, take as long as staying costs: registers for what is the same in all programs. */
enum { MOST_BYTES = 1024, MOST_THREADS = 32, MOST_COMPUTED = 0 };

typedef struct Program {
    int64_t bytes;
    unsigned computed; /* tiles, other than converted ones */
    bool other; /* it has a loop, a product, or what a block does once */
} Program;

static void look(TileOp *op, void *state) {
    Program *program = state;
    switch (op->id) {
    case TILE_OP_FOR:
    case TILE_OP_WHILE:
    case TILE_OP_DOT:
    case TILE_OP_ATOMIC_TILE:
    case TILE_OP_PRINT:
    case TILE_OP_ASSERT: program->other = true; return;
    default: break;
    }
    TileOpClass class = tile_op_info((TileOpId)op->id)->class;
    bool computes = (class == TILE_CLASS_ELEMENTWISE && op->id != TILE_OP_CONVERT) || class == TILE_CLASS_REDUCE;
    program->computed += computes && tile_type_is_tile(tile_op_operand(op, 0)->type);
    const TileValue *tile = op->id == TILE_OP_LOAD_TILE || op->id == TILE_OP_STORE_TILE ? tile_accessed_tile(op) : NULL;
    if (tile) program->bytes += tile_type_lanes(tile->type) * tile_scalar_bytes(tile->type->scalar);
}

TileResult tile_pass_gpu_stay(TilePassContext *context, TileFunc *func) {
    bool changed = false;
    if (func->kind != TILE_FUNC_PHASE || !func->threads || func->threads > MOST_THREADS || gpu_combines_in_cluster(&func->body)) return TILE_RESULT_UNCHANGED;
    for (TileOp *loop = func->body.first; loop; loop = loop->next) {
        Program program = {.bytes = 0};
        if (loop->id != TILE_OP_FOR || !tile_op_integer(loop, TILE_ATTRIBUTE_ONE_PROGRAM, 0)) continue;
        tile_block_walk(&loop->regions[0], look, &program);
        if (program.other || !program.bytes || program.bytes > MOST_BYTES || program.computed > MOST_COMPUTED) continue;
        tile_op_clear(loop, TILE_ATTRIBUTE_ONE_PROGRAM);
        tile_op_set_integer(context->module, loop, TILE_ATTRIBUTE_RESIDENT, 1);
        func->resident = changed = true;
        tile_pass_remark(context, loop, TILE_DECISION_STAYS, "the block", "a program moves %lld bytes", (long long)program.bytes);
    }
    return changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
