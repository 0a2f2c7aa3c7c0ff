/* Purpose: distribute the programs of a phase over the blocks of a launch, cyclically: block b runs the programs
 * begin + b, begin + b + blocks, .. A launch has a block for each program, which the loop's attribute says: in machine
 * form it has at most one iteration, and gpu-once makes a branch of it. In tile form, one block runs all programs.
 *
 * Before:
 *     func phase tile @k.0(%x: tensor<f32, 1, inout>, %begin: i64, %end: i64) {
 *       %one = const {value = 1} : i64
 *       for %begin, %end, %one (%program: i64) {
 *         %v = load_tile %x, %program {access = [index]} : f32
 *         %w = neg %v : f32
 *         store_tile %x, %w, %program {access = [index]}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%x: tensor<f32, 1, inout>, %begin: i64, %end: i64) {
 *       %one = const {value = 1} : i64
 *       %0 = block : i64
 *       %1 = add %begin, %0 : i64
 *       %2 = block_count : i64
 *       for %1, %end, %2 {one_program = 1} (%program: i64) {
 *         %v = load_tile %x, %program {access = [index]} : f32
 *         %w = neg %v : f32
 *         store_tile %x, %w, %program {access = [index]}
 *         yield
 *       }
 *       return
 *     }
 * Needs: the pass programs. Keeps: tile form.
 * Cost: constant. */
#include "lang/ir/build.h"
#include "ptx/passes.h"

static TileValue *build_number(TileBuilder *b, TileOpId id) {
    return tile_op_result(tile_build_op(b, id, NULL, 0, NULL, 0, NULL, 1), 0);
}

TileResult tile_pass_gpu_blocks(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    TileValue *begin = func->body.arguments[func->body.argument_count - 2];
    TileUse *use = begin->first_use;
    if (!use || use->next || use->user->id != TILE_OP_FOR || use->index != 0) return TILE_RESULT_UNCHANGED;
    TileOp *loop = use->user;
    TileBuilder b = tile_builder_before(context->module, loop);
    TileValue *first = tile_build_binary(&b, TILE_OP_ADD, begin, build_number(&b, TILE_OP_BLOCK));
    TileValue *count = build_number(&b, TILE_OP_BLOCK_COUNT);
    tile_op_set_operand(loop, 0, first);
    tile_op_set_operand(loop, 2, count);
    tile_op_set_integer(context->module, loop, TILE_ATTRIBUTE_ONE_PROGRAM, 1);
    return TILE_RESULT_CHANGED;
}
