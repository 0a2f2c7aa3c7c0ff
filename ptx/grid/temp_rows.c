/* Purpose: decide that rows of a temporary begin at multiples of 128 bytes where a loop loads vectors of it beside products
 * for tensor cores: a tensor map can describe it then, and warps that copy operands copy these vectors, too. Where a loop's products take tiles
 * of it as operands, rows begin at multiples of 16 bytes, which is all that a map needs.
 *
 * Run: --passes=gpu-temp-rows --target=sm_90a
 * Before:
 *     func kernel tile @k(%x: tensor<f16, 2, in>, %y: tensor<f32, 2, out>) {
 *       %one = const {value = 1} : i64
 *       %zero = const {value = 0} : i64
 *       %n = const {value = 64} : i64
 *       %acc = const {value = 0.0} : f32[64, 64]
 *       %d = temp %n, %n : tensor<f32, 2, temp>
 *       grid %one (%p: i64) {
 *         %sum = for %zero, %n, %one, %acc : f32[64, 64] (%i: i64, %s: f32[64, 64]) {
 *           %a = load_tile %x, %i, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]} : f16[64, 64]
 *           %t = dot %a, %a, %s : f32[64, 64]
 *           %v = load_tile %d, %i, %zero, %one, %zero, %n {access = [index, range]} : f32[64]
 *           %r = reshape %v : f32[1, 64]
 *           %b = broadcast %r : f32[64, 64]
 *           %u = add %t, %b : f32[64, 64]
 *           yield %u
 *         }
 *         store_tile %y, %sum, %zero, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func kernel tile @k(%x: tensor<f16, 2, in>, %y: tensor<f32, 2, out>) {
 *       %one = const {value = 1} : i64
 *       %zero = const {value = 0} : i64
 *       %n = const {value = 64} : i64
 *       %acc = const {value = 0.0} : f32[64, 64]
 *       %d = temp %n, %n {align = 128} : tensor<f32, 2, temp>
 *       grid %one (%p: i64) {
 *         %sum = for %zero, %n, %one, %acc : f32[64, 64] (%i: i64, %s: f32[64, 64]) {
 *           %a = load_tile %x, %i, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]} : f16[64, 64]
 *           %t = dot %a, %a, %s : f32[64, 64]
 *           %v = load_tile %d, %i, %zero, %one, %zero, %n {access = [index, range]} : f32[64]
 *           %r = reshape %v : f32[1, 64]
 *           %b = broadcast %r : f32[64, 64]
 *           %u = add %t, %b : f32[64, 64]
 *           yield %u
 *         }
 *         store_tile %y, %sum, %zero, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]}
 *         yield
 *       }
 *       return
 *     }
 * Needs: nothing. Keeps: tile form. Cost: linear in the uses of temporaries. */
#include "base/tensor_map.h"
#include "lang/ir/operands.h"
#include "ptx/passes.h"
#include "ptx/target/dot.h"

enum { ROW_BYTES = 128 };

static bool multiplies(const TileBlock *block, const TilePtxTarget *target) {
    for (const TileOp *op = block->first; op; op = op->next)
        if (op->id == TILE_OP_DOT && gpu_dot_takes_maps(target, op)) return true;
    return false;
}

static bool is_loaded_beside(const TileOp *temp, const TilePtxTarget *target) {
    for (const TileUse *use = temp->results[0].first_use; use; use = use->next) {
        const TileOp *load = use->user;
        bool vector = load->id == TILE_OP_LOAD_TILE && tile_type_is_tile(load->results[0].type) && load->results[0].type->rank == 1;
        if (vector && tile_op_is(load->block->op, TILE_OP_FOR) && multiplies(load->block, target)) return true;
    }
    return false;
}

/* Does a product take the tile, as it is or turned, as rows of other axes, or with zeros in place of lanes that are not there? */
static bool is_operand(const TileValue *tile, const TilePtxTarget *target) {
    bool found = false;
    for (const TileUse *use = tile->first_use; use && !found; use = use->next) {
        const TileOp *user = use->user;
        bool passes = user->id == TILE_OP_PERMUTE || user->id == TILE_OP_RESHAPE || (user->id == TILE_OP_FILL && use->index == 0);
        found = user->id == TILE_OP_DOT ? use->index < 2 && gpu_dot_takes_maps(target, user) : passes && is_operand(&user->results[0], target);
    }
    return found;
}

static bool is_multiplied(const TileOp *temp, const TilePtxTarget *target) {
    for (const TileUse *use = temp->results[0].first_use; use; use = use->next) {
        const TileOp *load = use->user;
        bool tile = load->id == TILE_OP_LOAD_TILE && tile_type_is_tile(load->results[0].type) && load->results[0].type->rank > 1;
        if (tile && tile_op_is(load->block->op, TILE_OP_FOR) && is_operand(&load->results[0], target)) return true;
    }
    return false;
}

TileResult tile_pass_gpu_temp_rows(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_KERNEL || !gpu_copies_by_maps(context->target)) return TILE_RESULT_UNCHANGED;
    const TilePtxTarget *target = tile_ptx_target_of(context->target);
    bool changed = false;
    for (TileOp *op = func->body.first; op; op = op->next) {
        bool plain = op->id == TILE_OP_TEMP && op->results[0].type->rank > 1 && !tile_op_get(op, TILE_ATTRIBUTE_ALIGN) &&
                     !tile_op_get(op, TILE_ATTRIBUTE_OWN);
        int64_t align = !plain ? 0 : is_loaded_beside(op, target) ? ROW_BYTES : is_multiplied(op, target) ? TILE_MAP_GRAIN : 0;
        if (!align) continue;
        tile_op_set_integer(context->module, op, TILE_ATTRIBUTE_ALIGN, align);
        changed = true;
    }
    return changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
