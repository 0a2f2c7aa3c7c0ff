/* Products whose depth warpgroups share. A product of 64 rows keeps one warpgroup busy, which reads what its first operand is computed of, computes it,
 * multiplies and waits, one after the other. With a second one, for the other half of k, one computes while the other multiplies. Each has
 * sums of its own, which are rows of one tile in the loop, and are added up behind it. */
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "ptx/pipeline/copies.h"
#include "ptx/pipeline/warpgroups.h"

enum { PARTS = 2 /* more have too little to do between two waits (measured) */, STEP_BYTES = 32, LEAST_STEPS = 2 /* of a part */, SUM = 2 };

typedef TILE_LIST(TileOp *) Dots;

typedef struct Depth {
    TilePassContext *context;
    Dots dots;
} Depth;

static void find_dot(TileOp *op, void *state) {
    Depth *depth = state;
    if (op->id == TILE_OP_DOT && gpu_dot_is_mma(op)) tile_list_push(depth->context->scratch, &depth->dots, op);
}

/* The place in the loop around it in which the product's sums, and they alone, are carried; 0: there is none. */
static unsigned place_of_sums(const TileOp *dot) {
    const TileOp *loop = dot->block->op;
    const TileValue *before = tile_op_operand(dot, SUM);
    const TileUse *use = dot->results[0].first_use;
    if (!tile_op_is(loop, TILE_OP_FOR) || tile_loop_is_of_programs(loop) || before->op || before->block != dot->block || !before->index) return 0;
    bool alone = use && !use->next && tile_value_has_one_use(before);
    return alone && use->user == loop->regions[0].last && use->index + 1 == before->index ? before->index : 0;
}

static bool begins_at_zero(const TileOp *dot, unsigned place) {
    const TileOp *constant = tile_value_def(tile_loop_carried(dot->block->op, place - 1), TILE_OP_CONST);
    return constant && !tile_op_get(constant, TILE_ATTRIBUTE_VALUE)->bits;
}

static bool can_share(const TileOp *dot) {
    const TileType *a = tile_op_operand(dot, 0)->type;
    int64_t depth = a->extent[1], bytes = depth * tile_scalar_bytes(a->scalar);
    unsigned place = place_of_sums(dot);
    bool whole = !(depth & (depth - 1)) && bytes % (PARTS * LEAST_STEPS * STEP_BYTES) == 0;
    return whole && place && begins_at_zero(dot, place) && !gpu_dot_promotes(dot) && gpu_operand_is_computed(dot, 0) && !gpu_operand_is_computed(dot, 1);
}

/* Behind the loop the sums of all parts become those of the product. */
static void add_up(TileBuilder *b, TileValue *sums, const TileType *type) {
    const TileUse *first = sums->first_use;
    if (!first) return;
    TileValue *parts = tile_build_reshape(b, sums, 3, (int64_t[]){PARTS, type->extent[0], type->extent[1]});
    TileValue *all = tile_build_reduce(b, parts, TILE_KIND_SUM, 0);
    tile_value_replace(sums, all);
    tile_op_set_operand(parts->op, 0, sums);
}

static const char *share(Depth *depth, TileOp *dot) {
    TileModule *module = depth->context->module;
    TileOp *loop = dot->block->op;
    unsigned place = place_of_sums(dot);
    const TileType *type = dot->results[0].type,
                   *wide = tile_type_tile(module->context, type->scalar, 2, (int64_t[]){PARTS * type->extent[0], type->extent[1]});
    TileBuilder b = tile_builder_before(module, loop);
    b.location = dot->location;
    unsigned count, first = tile_op_operands(loop, TILE_OPERAND_CARRIED, &count);
    tile_op_set_operand(loop, first + place - 1, tile_build_bits(&b, wide, 0));
    loop->regions[0].arguments[place]->type = wide;
    dot->results[0].type = wide;
    loop->results[place - 1].type = wide;
    tile_op_set_integer(module, dot, TILE_ATTRIBUTE_K_PARTS, PARTS);
    b = tile_builder_before(module, loop->next);
    b.location = dot->location;
    add_up(&b, &loop->results[place - 1], type);
    return b.error;
}

int64_t gpu_share_depth(TilePassContext *context, TileFunc *func, const char **error) {
    Depth depth = {.context = context};
    tile_block_walk(&func->body, find_dot, &depth);
    for (size_t i = 0; i < depth.dots.count; i++)
        if (!can_share(depth.dots.items[i])) return 1;
    for (size_t i = 0; i < depth.dots.count && !*error; i++) *error = share(&depth, depth.dots.items[i]);
    return PARTS;
}
