#include "ptx/schedule.h"

/* A region runs where its if has come to the condition, and the if itself runs; no parent: the copies exist. */
typedef struct Choice {
    const struct Choice *parent;
    TileValue *condition;
    bool otherwise;  /* the second region */
    TileValue *mask; /* NULL: not yet made */
} Choice;

/* A copy, or a region that stays one. */
typedef struct Piece {
    const TileOp *copy;
    TileBlock *region;
    Choice *choice;
} Piece;

typedef TILE_LIST(Piece) Pieces;

struct GpuSpread {
    TilePassContext *context;
    const TileOp *loop;
    TileMap *map;
    Pieces copies, regions;
    size_t next;
};

TileValue *gpu_follow(TilePassContext *context, TileBuilder *b, const TileOp *loop, TileMap *map, TileValue *value) {
    TileValue *made = tile_map_get(map, value);
    if (made) return made;
    if (tile_value_outside(value, loop)) return value;
    for (unsigned i = 0; i < value->op->operand_count; i++)
        gpu_follow(context, b, loop, map, tile_op_operand(value->op, i));
    TileOp *op = tile_op_clone(context->module, value->op, map);
    tile_builder_insert(b, op);
    return tile_op_result(op, 0);
}

/* ---- taking apart ---- */

static bool is_bare_if(const TileOp *op) { return op->id == TILE_OP_IF && op->result_count == 0; }

static bool has_copies(const TileBlock *block) {
    for (const TileOp *op = block->first; op; op = op->next) {
        if (op->id == TILE_OP_COPY_ASYNC) return true;
        for (unsigned i = 0; i < op->region_count; i++)
            if (has_copies(&op->regions[i])) return true;
    }
    return false;
}

/* Nothing but copies, what they need, and choices among them, whose regions are looked at by themselves. */
static bool comes_apart(const TileBlock *block) {
    for (const TileOp *op = block->first; op; op = op->next) {
        bool plain = tile_op_is_pure(op) && !op->region_count;
        bool copy = op->id == TILE_OP_COPY_ASYNC && !tile_op_get(op, TILE_ATTRIBUTE_PARTS);
        if (!plain && !copy && !is_bare_if(op) && op->id != TILE_OP_YIELD) return false;
    }
    return has_copies(block);
}

static bool does_nothing(const TileBlock *block) {
    for (const TileOp *op = block->first; op; op = op->next)
        if (op->id != TILE_OP_YIELD && (!tile_op_is_pure(op) || op->region_count)) return false;
    return true;
}

static void take_apart(GpuSpread *spread, TileBlock *block, Choice *choice) {
    TileArena *arena = spread->context->scratch;
    if (does_nothing(block)) return;
    if (!comes_apart(block)) {
        tile_list_push(arena, &spread->regions, ((Piece){.region = block, .choice = choice}));
        return;
    }
    for (TileOp *op = block->first; op; op = op->next) {
        if (op->id == TILE_OP_COPY_ASYNC)
            tile_list_push(arena, &spread->copies, ((Piece){.copy = op, .choice = choice}));
        for (unsigned i = 0; i < op->region_count; i++) {
            Choice *inner = TILE_NEW(arena, Choice);
            *inner = (Choice){choice, tile_op_operand(op, 0), i == 1, NULL};
            take_apart(spread, &op->regions[i], inner);
        }
    }
}

GpuSpread *gpu_spread_begin(TilePassContext *context, TileOp *loop, TileOp *copies, TileValue *exists, TileMap *map) {
    GpuSpread *spread = TILE_NEW(context->scratch, GpuSpread);
    *spread = (GpuSpread){.context = context, .loop = loop, .map = map};
    Choice *some = TILE_NEW(context->scratch, Choice);
    *some = (Choice){NULL, NULL, false, exists};
    for (unsigned i = 0; i < 2; i++) {
        Choice *choice = TILE_NEW(context->scratch, Choice);
        *choice = (Choice){some, tile_op_operand(copies, 0), i == 1, NULL};
        take_apart(spread, &copies->regions[i], choice);
    }
    return spread;
}

/* ---- putting in ---- */

static TileValue *mask_of(GpuSpread *spread, TileBuilder *b, Choice *choice) {
    if (choice->mask) return choice->mask;
    TileValue *condition = gpu_follow(spread->context, b, spread->loop, spread->map, choice->condition);
    if (choice->otherwise) condition = tile_build_unary(b, TILE_OP_NOT, condition);
    choice->mask = tile_build_binary(b, TILE_OP_AND, mask_of(spread, b, (Choice *)choice->parent), condition);
    return choice->mask;
}

/* An op of a region that is being copied, and what it takes from outside of the region. */
typedef struct Inner {
    GpuSpread *spread;
    TileBuilder *b;
    TileMap *map;
    const TileBlock *region;
} Inner;

static void follow_operands(TileOp *op, void *state) {
    Inner *inner = state;
    for (unsigned i = 0; i < op->operand_count; i++) {
        TileValue *value = tile_op_operand(op, i);
        if (!tile_block_inside(tile_value_block(value), inner->region))
            gpu_follow(inner->spread->context, inner->b, inner->spread->loop, inner->map, value);
    }
}

/* What only this region needs is made inside. */
static void copy_region(GpuSpread *spread, const TileBlock *region, TileBlock *to) {
    TileMap map;
    tile_map_init(&map, spread->context->scratch);
    for (size_t i = 0; i < spread->map->count; i++)
        tile_map_set(&map, spread->map->entries[i].key, spread->map->entries[i].value);
    TileBuilder b = tile_builder_at_end(spread->context->module, to);
    Inner inner = {spread, &b, &map, region};
    for (TileOp *op = region->first; op; op = op->next) {
        follow_operands(op, &inner);
        for (unsigned i = 0; i < op->region_count; i++) tile_block_walk(&op->regions[i], follow_operands, &inner);
        tile_builder_insert(&b, tile_op_clone(spread->context->module, op, &map));
    }
}

static TileBuilder open_branch(GpuSpread *spread, TileBuilder *b, TileValue *condition) {
    TileOp *branch = tile_build_if(b, condition, NULL, 0);
    TileBuilder inside = tile_builder_at_end(spread->context->module, &branch->regions[1]);
    tile_build_end(&inside, TILE_OP_YIELD, NULL, 0);
    return tile_builder_at_end(spread->context->module, &branch->regions[0]);
}

/* All of them behind one branch, which is rarely taken. */
void gpu_spread_branches(GpuSpread *spread, TileBuilder *b) {
    TileValue *some = NULL;
    for (size_t i = 0; i < spread->regions.count; i++) {
        TileValue *mask = mask_of(spread, b, spread->regions.items[i].choice);
        some = some ? tile_build_binary(b, TILE_OP_OR, some, mask) : mask;
    }
    if (!some) return;
    TileBuilder outer = open_branch(spread, b, some);
    for (size_t i = 0; i < spread->regions.count; i++) {
        const Piece *piece = &spread->regions.items[i];
        TileBuilder inner = open_branch(spread, &outer, piece->choice->mask);
        copy_region(spread, piece->region, inner.block);
    }
    tile_build_end(&outer, TILE_OP_YIELD, NULL, 0);
    if (!b->error) b->error = outer.error;
}

unsigned gpu_spread_count(const GpuSpread *spread) { return (unsigned)spread->copies.count; }

void gpu_spread_copy(GpuSpread *spread, TileBuilder *b) {
    const Piece *piece = &spread->copies.items[spread->next++];
    TileValue *mask = mask_of(spread, b, piece->choice);
    for (unsigned i = 0; i < piece->copy->operand_count; i++)
        gpu_follow(spread->context, b, spread->loop, spread->map, tile_op_operand(piece->copy, i));
    TileOp *copy = tile_op_clone(spread->context->module, piece->copy, spread->map);
    int64_t parts = TILE_PARTS_MASK;
    tile_op_add_operand(spread->context->module, copy, mask);
    tile_op_set(spread->context->module, copy,
                (TileAttribute){.key = TILE_ATTRIBUTE_PARTS, .count = 1, .integers = &parts});
    tile_builder_insert(b, copy);
}
