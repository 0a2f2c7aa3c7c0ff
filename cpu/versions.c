/* Loop versioning for strides that are likely, but not known, to be one element (TileParameter): one version for
 * these strides, and one for any; a test ahead of the loop selects. */
#include "cpu/vectorise.h"

/* Records the parameters that the strides of all accesses depend on. */
static void record_assumptions(TileStrides *strides, const TileBlock *block) {
    for (const TileOp *op = block->first; op; op = op->next) {
        if (op->id == TILE_OP_LOAD) tile_stride_of(strides, tile_op_operand(op, 0));
        if (op->id == TILE_OP_STORE) tile_stride_of(strides, tile_op_operand(op, 1));
        for (unsigned i = 0; i < op->region_count; i++) record_assumptions(strides, &op->regions[i]);
    }
}

static TileValue *are_as_assumed(TileBuilder *b, const TileStrides *strides) {
    TileValue *all = NULL;
    for (size_t i = 0; i < strides->assumed.count; i++) {
        TileValue *number = strides->assumed.items[i];
        TileValue *is = tile_build_binary(b, TILE_OP_EQ, number, tile_build_i64(b, tile_likely_number(number)));
        all = all ? tile_build_binary(b, TILE_OP_AND, all, is) : is;
    }
    return all;
}

static void emit_version(TileStrides *strides, TileOp *branch, unsigned region, const TileBuilder *like,
                         TileEmitLoop *emit, void *state, TileValue **results) {
    TileBuilder inner = tile_builder_at_end(like->module, &branch->regions[region]);
    inner.location = like->location;
    emit(state, strides, &inner, results);
    tile_build_end(&inner, TILE_OP_YIELD, results, branch->result_count);
}

void tile_emit_versions(TilePassContext *context, TileOp *loop, TileEmitLoop *emit, void *state) {
    TileStrides strides;
    TileBuilder b = tile_builder_before(context->module, loop);
    TileValue **results = TILE_NEW_ARRAY(context->scratch, TileValue *, loop->result_count + 1);
    tile_strides_init(&strides, context, loop);
    strides.assumes = true;
    for (unsigned i = 0; i < loop->region_count; i++) record_assumptions(&strides, &loop->regions[i]);
    strides.assumes = false;
    if (strides.assumed.count) {
        const TileType **types = TILE_NEW_ARRAY(context->scratch, const TileType *, loop->result_count + 1);
        for (unsigned i = 0; i < loop->result_count; i++) types[i] = loop->results[i].type;
        TileOp *branch = tile_build_if(&b, are_as_assumed(&b, &strides), types, loop->result_count);
        emit_version(&strides, branch, 0, &b, emit, state, results);
        tile_strides_init(&strides, context, loop);
        emit_version(&strides, branch, 1, &b, emit, state, results);
        for (unsigned i = 0; i < loop->result_count; i++) results[i] = &branch->results[i];
    } else {
        emit(state, &strides, &b, results);
    }
    for (unsigned i = 0; i < loop->result_count; i++) tile_value_replace(&loop->results[i], results[i]);
    tile_op_erase(loop);
}
