#include "ptx/loop.h"

TileOp *gpu_loop_carry(TilePassContext *context, TileOp *loop, TileValue *const *first, unsigned more) {
    unsigned count = loop->operand_count - 3;
    TileValue **carried = TILE_NEW_ARRAY(context->scratch, TileValue *, count + more);
    for (unsigned i = 0; i < count; i++) carried[i] = tile_op_operand(loop, 3 + i);
    for (unsigned i = 0; i < more; i++) carried[count + i] = first[i];
    TileBuilder b = tile_builder_before(context->module, loop);
    TileOp *wider = tile_build_for(&b, tile_op_operand(loop, 0), tile_op_operand(loop, 1), tile_op_operand(loop, 2),
                                   carried, count + more);
    for (unsigned i = 0; i < loop->attribute_count; i++) tile_op_set(context->module, wider, loop->attributes[i]);
    tile_block_splice(&wider->regions[0], &loop->regions[0]);
    for (unsigned i = 0; i <= count; i++) {
        wider->regions[0].arguments[i]->name = loop->regions[0].arguments[i]->name;
        tile_value_replace(loop->regions[0].arguments[i], wider->regions[0].arguments[i]);
    }
    for (unsigned i = 0; i < count; i++) {
        wider->results[i].name = loop->results[i].name;
        tile_value_replace(&loop->results[i], &wider->results[i]);
    }
    tile_op_erase(loop);
    return wider;
}
