/* Purpose: replace calls of device functions by their bodies, and remove device functions without callers.
 *
 * Before:
 *     func device tile @twice(%x: f32) -> f32 {
 *       %y = add %x, %x : f32
 *       return %y
 *     }
 *     func kernel tile @k(%a: f32, %out: tensor<f32, 0, out>) {
 *       grid {
 *         %b = call %a {callee = "twice"} : f32
 *         store_tile %out, %b {access = []}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func kernel tile @k(%a: f32, %out: tensor<f32, 0, out>) {
 *       grid {
 *         %y = add %a, %a : f32
 *         store_tile %out, %y {access = []}
 *         yield
 *       }
 *       return
 *     }
 * Needs: calls that do not recurse. Keeps: the order of effects. Cost: the size of the result. */
#include <string.h>

#include "lowering/pass.h"

typedef struct Inliner {
    TilePassContext *context;
    TileMap state; /* of device functions: DONE: no calls are left in the body; ACTIVE: it is being inlined */
    bool changed, failed;
} Inliner;

/* Values of `state`. */
static void *const ACTIVE = (void *)1;
static void *const DONE = (void *)2;

static void inline_block(Inliner *inliner, TileBlock *block);

static void inline_call(Inliner *inliner, TileOp *call) {
    TilePassContext *context = inliner->context;
    const char *name = tile_op_get(call, TILE_ATTRIBUTE_CALLEE)->text;
    TileFunc *callee = tile_func_find(context->module, name);
    if (!callee || callee->kind != TILE_FUNC_DEVICE || tile_map_get(&inliner->state, callee) == ACTIVE) {
        tile_pass_fail(context, TILE_INTERNAL, call, "%s `%s`", callee ? "recursive call of" : "call of unknown", name);
        inliner->failed = true;
        return;
    }
    if (!tile_map_get(&inliner->state, callee)) {
        tile_map_set(&inliner->state, callee, ACTIVE);
        inline_block(inliner, &callee->body);
        tile_map_set(&inliner->state, callee, DONE);
    }
    TileMap map;
    tile_map_init(&map, context->scratch);
    for (unsigned i = 0; i < call->operand_count; i++)
        tile_map_set(&map, callee->body.arguments[i], tile_op_operand(call, i));
    const TileOp *end = callee->body.last;
    for (const TileOp *op = callee->body.first; op != end; op = op->next)
        tile_op_insert_before(tile_op_clone(context->module, op, &map), call);
    for (unsigned i = 0; i < call->result_count; i++) {
        TileValue *value = tile_op_operand(end, i), *copy = tile_map_get(&map, value);
        tile_value_replace(&call->results[i], copy ? copy : value);
    }
    tile_op_erase(call);
    inliner->changed = true;
}

static void inline_block(Inliner *inliner, TileBlock *block) {
    for (TileOp *op = block->first, *next; op && !inliner->failed; op = next) {
        next = op->next;
        for (unsigned r = 0; r < op->region_count; r++) inline_block(inliner, &op->regions[r]);
        if (op->id == TILE_OP_CALL) inline_call(inliner, op);
    }
}

static void note_callee(TileOp *op, void *state) {
    if (op->id == TILE_OP_CALL) tile_map_set(state, tile_op_get(op, TILE_ATTRIBUTE_CALLEE)->text, ACTIVE);
}

static void remove_dead_functions(Inliner *inliner) {
    TileMap called; /* interned names */
    tile_map_init(&called, inliner->context->scratch);
    for (TileFunc *func = inliner->context->module->first; func; func = func->next)
        tile_block_walk(&func->body, note_callee, &called);
    for (TileFunc *func = inliner->context->module->first, *next; func; func = next) {
        next = func->next;
        if (func->kind != TILE_FUNC_DEVICE || tile_map_get(&called, func->name)) continue;
        tile_func_remove(func);
        inliner->changed = true;
    }
}

TileResult tile_pass_inline(TilePassContext *context, TileFunc *func) {
    if (func->kind == TILE_FUNC_DEVICE) return TILE_RESULT_UNCHANGED;
    Inliner inliner = {.context = context};
    tile_map_init(&inliner.state, context->scratch);
    inline_block(&inliner, &func->body);
    if (inliner.failed) return TILE_RESULT_FAILED;
    remove_dead_functions(&inliner);
    return inliner.changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
