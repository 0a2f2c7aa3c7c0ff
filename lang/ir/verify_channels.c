/* A slot of a channel has one owner at a time: the pointer of an acquire has one commit, that of a wait one release, in
 * the same block of ops, and no use after it. */
#include "lang/ir/verify.h"

static const TileOp *op_of_block(const TileOp *op, const TileBlock *block) {
    while (op && op->block != block) op = op->block->op;
    return op;
}

static bool comes_before(const TileOp *op, const TileOp *other) {
    while (op && op != other) op = op->next;
    return op && op == other;
}

/* Does every use of the value precede `end`? Uses of a tile that stays in the slot count, too. */
static bool is_used_before(const TileValue *value, const TileOp *end) {
    for (const TileUse *use = value->first_use; use; use = use->next) {
        if (use->user == end) continue;
        const TileOp *user = op_of_block(use->user, end->block);
        if (!user || !comes_before(user, end)) return false;
        bool stays = use->user->id == TILE_OP_SHARED_TILE || use->user->id == TILE_OP_PERMUTE;
        if (stays && !is_used_before(&use->user->results[0], end)) return false;
    }
    return true;
}

const char *tile_channel_misuse(const TileOp *op) {
    bool acquired = op->id == TILE_OP_CHANNEL_ACQUIRE;
    if (op->id == TILE_OP_CHANNEL_COMMIT || op->id == TILE_OP_CHANNEL_RELEASE) {
        int64_t pending = tile_op_integer(op, TILE_ATTRIBUTE_PENDING, 0);
        bool loops = op->block->op && op->block->op->id == TILE_OP_FOR;
        if (pending && (pending != 1 || !loops)) return "pending is 1, in a loop, where it stands";
        TileOpId id = op->id == TILE_OP_CHANNEL_COMMIT ? TILE_OP_CHANNEL_ACQUIRE : TILE_OP_CHANNEL_WAIT;
        return tile_value_def(tile_op_operand(op, 0), id) ? NULL : "needs the slot of an acquire, or of a wait";
    }
    if (!acquired && op->id != TILE_OP_CHANNEL_WAIT) return NULL;
    TileOpId id = acquired ? TILE_OP_CHANNEL_COMMIT : TILE_OP_CHANNEL_RELEASE;
    const TileOp *end = NULL;
    for (const TileUse *use = op->results[0].first_use; use; use = use->next) {
        bool ends = use->user->id == id && use->user->block == op->block;
        if (ends && end) return "the slot is given away twice";
        if (ends) end = use->user;
        bool fits = ends || (acquired ? use->user->id == TILE_OP_COPY_TILE
                                      : use->user->id == TILE_OP_SHARED_TILE || use->user->id == TILE_OP_CLEAR_TILE);
        if (!fits) return "the slot is used by what neither copies to it nor reads it";
    }
    if (!end) return acquired ? "the slot is never committed" : "the slot is never released";
    return is_used_before(&op->results[0], end) ? NULL : "the slot is used where it is no longer in hand";
}
