#include "ptx/pipeline/loop.h"
#include "lang/ir/operands.h"
#include "lowering/memory.h"

TileOp *gpu_loop_carry(TilePassContext *context, TileOp *loop, TileValue *const *first, unsigned more) {
    unsigned count = loop->result_count;
    TileValue **carried = TILE_NEW_ARRAY(context->scratch, TileValue *, count + more);
    for (unsigned i = 0; i < count; i++) carried[i] = tile_loop_carried(loop, i);
    for (unsigned i = 0; i < more; i++) carried[count + i] = first[i];
    TileBuilder b = tile_builder_before(context->module, loop);
    TileOp *wider = tile_build_for(&b, tile_op_operand(loop, 0), tile_op_operand(loop, 1),
                                   tile_op_named(loop, TILE_OPERAND_STEP), carried, count + more);
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

TileOp *gpu_branch_widen(TilePassContext *context, TileOp *branch, const TileType *type) {
    unsigned count = branch->result_count;
    const TileType **types = TILE_NEW_ARRAY(context->scratch, const TileType *, count + 1);
    for (unsigned i = 0; i < count; i++) types[i] = branch->results[i].type;
    types[count] = type;
    TileBuilder b = tile_builder_before(context->module, branch);
    b.location = branch->location;
    TileOp *wider = tile_build_if(&b, tile_op_operand(branch, 0), types, count + 1);
    for (unsigned i = 0; i < branch->attribute_count; i++) tile_op_set(context->module, wider, branch->attributes[i]);
    for (unsigned i = 0; i < 2; i++) tile_block_splice(&wider->regions[i], &branch->regions[i]);
    for (unsigned i = 0; i < count; i++) {
        wider->results[i].name = branch->results[i].name;
        tile_value_replace(&branch->results[i], &wider->results[i]);
    }
    tile_op_erase(branch);
    return wider;
}

/* ---- clones of ops ---- */

bool gpu_loads_constant(const TileOp *op) {
    return op->id == TILE_OP_LOAD_TILE && !tile_type_is_tile(op->results[0].type) && tile_memory_is_constant(tile_op_operand(op, 0));
}

bool gpu_follows_index(const TileValue *value, const TileOp *loop, bool loads) {
    if (tile_value_outside(value, loop)) return true;
    if (!value->op) return value->index == 0;
    if (value->op->block != &loop->regions[0]) return false;
    if (!(tile_op_info(value->op->id)->traits & TILE_TRAIT_PURE) && !(loads && gpu_loads_constant(value->op))) return false;
    for (unsigned i = 0; i < value->op->operand_count; i++)
        if (!gpu_follows_index(tile_op_operand(value->op, i), loop, loads)) return false;
    return true;
}

TileValue *gpu_follow(GpuCopies *copies, TileBuilder *b, TileValue *value) {
    TileValue *made = tile_map_get(copies->map, value);
    if (made) return made;
    if (tile_value_outside(value, copies->outer)) return value;
    bool again = value->op && !value->op->region_count &&
                 (tile_op_is_pure(value->op) || gpu_loads_constant(value->op));
    if (!again) {
        copies->failed = true;
        return value;
    }
    for (unsigned i = 0; i < value->op->operand_count; i++) gpu_follow(copies, b, tile_op_operand(value->op, i));
    TileOp *op = tile_op_clone(copies->context->module, value->op, copies->map);
    tile_builder_insert(b, op);
    return tile_op_result(op, value->index);
}

/* The state of cloning a region: operands from outside of it are cloned, too. */
typedef struct Inner {
    GpuCopies *copies;
    TileBuilder *b;
    const TileBlock *region;
} Inner;

static void follow_operands(TileOp *op, void *state) {
    Inner *inner = state;
    for (unsigned i = 0; i < op->operand_count; i++) {
        TileValue *value = tile_op_operand(op, i);
        if (!tile_block_inside(tile_value_block(value), inner->region)) gpu_follow(inner->copies, inner->b, value);
    }
}

void gpu_follow_region(GpuCopies *copies, TileBuilder *b, TileBlock *region) {
    tile_block_walk(region, follow_operands, &(Inner){copies, b, region});
}

TileMap gpu_copy_map(TileArena *arena, const TileMap *map) {
    TileMap copy;
    tile_map_init(&copy, arena);
    for (size_t i = 0; i < map->count; i++) tile_map_set(&copy, map->entries[i].key, map->entries[i].value);
    return copy;
}

void gpu_copy_region(GpuCopies *copies, TileBlock *region, TileBlock *to) {
    TileModule *module = copies->context->module;
    TileMap map = gpu_copy_map(copies->context->scratch, copies->map);
    GpuCopies own = {copies->context, copies->outer, &map, false};
    TileBuilder b = tile_builder_at_end(module, to);
    Inner inner = {&own, &b, region};
    for (TileOp *op = region->first; op; op = op->next) {
        follow_operands(op, &inner);
        for (unsigned i = 0; i < op->region_count; i++) tile_block_walk(&op->regions[i], follow_operands, &inner);
        tile_builder_insert(&b, tile_op_clone(module, op, &map));
    }
    copies->failed |= own.failed;
}
