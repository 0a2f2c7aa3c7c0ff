/* Places that a loop carries beside a least, or greatest, value: `place = where(v < least, at, place); least = min(least, v)`. What replaces a place is a
 * choice by a key, but for a NaN, from which on the minimum is NaN and nothing is replaced. */
#include "ptx/grid/choices.h"

#include "lang/ir/operands.h"

typedef struct Choice {
    TileOp *better;    /* v < least, or v > greatest */
    TileValue *v;
    unsigned extreme;  /* what the loop carries: the least, or greatest, value so far */
} Choice;

static TileValue *next_of(const TileOp *loop, unsigned i) { return tile_op_operand(loop->regions[0].last, i); }

/* Is the op `v < carried` and the carried value's next one min(carried, v); or the same of the greatest? */
static bool is_extreme(const TileOp *loop, TileOp *better, unsigned k, Choice *choice) {
    TileValue *carried = loop->regions[0].arguments[1 + k];
    const TileOp *next = next_of(loop, k)->op;
    if (better->id != TILE_OP_LT && better->id != TILE_OP_GT) return false;
    bool turned = tile_op_operand(better, 0) == carried, less = (better->id == TILE_OP_LT) != turned;
    TileValue *v = tile_op_operand(better, turned);
    if (tile_op_operand(better, !turned) != carried || !next || next->id != (less ? TILE_OP_MIN : TILE_OP_MAX)) return false;
    bool same = (tile_op_operand(next, 0) == carried && tile_op_operand(next, 1) == v) ||
                (tile_op_operand(next, 1) == carried && tile_op_operand(next, 0) == v);
    if (same) *choice = (Choice){better, v, k};
    return same;
}

/* The comparison by which the i-th value is replaced. */
static bool find_choice(const TileOp *loop, unsigned i, Choice *choice) {
    const TileOp *select = tile_value_def(next_of(loop, i), TILE_OP_SELECT);
    if (!select || tile_op_named(select, TILE_OPERAND_Y) != loop->regions[0].arguments[1 + i]) return false;
    TileOp *better = tile_op_named(select, TILE_OPERAND_CONDITION)->op;
    for (unsigned k = 0; better && better->block == &loop->regions[0] && k < loop->result_count; k++)
        if (k != i && is_extreme(loop, better, k, choice)) return true;
    return false;
}

/* The same comparison with the key, which is what was chosen last, where no NaN has come. */
static TileValue *build_better(TileBuilder *b, const Choice *choice, TileValue *key, TileValue *extreme) {
    TileValue *operands[2] = {choice->v, key};
    bool turned = tile_op_operand(choice->better, 1) == choice->v;
    TileValue *better = tile_build_binary(b, (TileOpId)choice->better->id, operands[turned], operands[!turned]);
    if (!tile_scalar_is_float(key->type->scalar)) return better;
    return tile_build_binary(b, TILE_OP_AND, better, tile_build_unary(b, TILE_OP_NOT, tile_build_unary(b, TILE_OP_ISNAN, extreme)));
}

/* A loop that carries one value more, with the body of the other. */
static TileOp *carry_key(TileModule *module, TileOp *loop, const Choice *choice) {
    TileBuilder before = tile_builder_before(module, loop);
    TileBlock *body = &loop->regions[0];
    TileValue *values[TILE_MAX_FOLD + 1];
    unsigned count = loop->result_count;
    before.location = loop->location;
    for (unsigned i = 0; i < count; i++) values[i] = tile_loop_carried(loop, i);
    values[count] = values[choice->extreme];
    TileOp *wider = tile_build_for(&before, tile_op_named(loop, TILE_OPERAND_LO), tile_op_named(loop, TILE_OPERAND_HI),
                                   tile_op_named(loop, TILE_OPERAND_STEP), values, count + 1);
    TileBlock *to = &wider->regions[0];
    for (unsigned i = 0; i < loop->attribute_count; i++) tile_op_set(module, wider, loop->attributes[i]);
    for (unsigned i = 0; i < body->argument_count; i++) tile_value_replace(body->arguments[i], to->arguments[i]);
    for (unsigned i = 0; i < count; i++) tile_value_replace(&loop->results[i], &wider->results[i]);
    TileValue *key = to->arguments[1 + count];
    TileBuilder b = tile_builder_before(module, choice->better->next);
    b.location = choice->better->location;
    TileValue *better = build_better(&b, choice, key, to->arguments[1 + choice->extreme]);
    tile_value_replace(&choice->better->results[0], better);
    values[count] = tile_build_ternary(&b, TILE_OP_SELECT, better, choice->v, key);
    for (unsigned i = 0; i < count; i++) values[i] = tile_op_operand(body->last, i);
    tile_op_erase(body->last);
    tile_block_splice(to, body);
    TileBuilder end = tile_builder_at_end(module, to);
    end.location = wider->location;
    tile_build_end(&end, TILE_OP_YIELD, values, count + 1);
    tile_op_erase(loop);
    return wider;
}

TileOp *gpu_choices_carry_keys(TileModule *module, TileOp *loop) {
    Choice choice;
    for (unsigned i = 0; i < loop->result_count && loop->result_count < TILE_MAX_FOLD; i++)
        if (find_choice(loop, i, &choice)) loop = carry_key(module, loop, &choice);
    return loop;
}
