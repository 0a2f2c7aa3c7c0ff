#include "lowering/emit.h"

TileEmitter tile_emitter_create(TilePassContext *context, TileFunc *func) {
    TileModule *module = context->module;
    TileEmitter emitter = {.builder = tile_builder_at_end(module, &func->body),
                           .front = tile_builder_at_end(module, &func->body),
                           .arena = context->scratch,
                           .target = context->target ? *context->target : (TileTarget){0}};
    emitter.front.before = func->body.first;
    return emitter;
}

static void keep_error(TileEmitter *emitter) {
    if (!emitter->error) emitter->error = emitter->builder.error ? emitter->builder.error : emitter->front.error;
}

void tile_emit_before(TileEmitter *emitter, TileOp *op) {
    keep_error(emitter);
    emitter->builder = tile_builder_before(emitter->builder.module, op);
}

void tile_emit_replace(TileEmitter *emitter, TileOp *op, TileValue *with) {
    TileValue *result = tile_op_result(op, 0);
    if (!with->name) with->name = result->name;
    tile_value_replace(result, with);
    if (emitter->front.before == op) emitter->front.before = op->next;
    tile_op_erase(op);
    emitter->changed = true;
}

TileResult tile_emit_finish(TileEmitter *emitter, TilePassContext *context) {
    keep_error(emitter);
    if (emitter->error) return tile_pass_fail(context, TILE_INTERNAL, NULL, "%s", emitter->error);
    return emitter->changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}

TileValue *tile_emit_bits(TileEmitter *emitter, const TileType *type, uint64_t bits) {
    for (size_t i = 0; i < emitter->constants.count; i++) {
        const TileConstant *constant = &emitter->constants.items[i];
        if (constant->type == type && constant->bits == bits) return constant->value;
    }
    TileValue *value = tile_build_bits(&emitter->front, type, bits);
    tile_list_push(emitter->arena, &emitter->constants, (TileConstant){type, bits, value});
    return value;
}

TileValue *tile_emit_bits_like(TileEmitter *emitter, const TileType *like, TileScalar scalar, uint64_t bits) {
    return tile_emit_bits(emitter, tile_type_with_scalar(emitter->builder.module->context, like, scalar), bits);
}

TileValue *tile_emit_i64(TileEmitter *emitter, int64_t value) {
    return tile_emit_bits(emitter, tile_type_scalar(emitter->builder.module->context, TILE_I64), (uint64_t)value);
}

TileValue *tile_emit_with_bits(TileEmitter *emitter, TileOpId id, TileValue *x, uint64_t bits) {
    return tile_emit_binary(emitter, id, x, tile_emit_bits(emitter, x->type, bits));
}
