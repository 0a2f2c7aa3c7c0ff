#include "lang/ir/eval.h"

/* ---- mapping of ops to scalar operations ---- */

/* The operation's number + 1. This does not compile if an elementwise op of ops.def has no row in eval.def or
 * math.def. */
#define ROW_ELEMENTWISE(id) [TILE_OP_##id] = TILE_EVAL_##id + 1,
#define ROW_SHAPE(id)
#define ROW_REDUCE(id)
#define ROW_MEMORY(id)
#define ROW_CONTROL(id)
#define ROW_HOST(id)
#define ROW_NEST(id)
#define ROW_VECTOR(id)
#define ROW_BLOCK(id)
static const uint8_t evals[TILE_OP_COUNT] = {
#define OP(id, mnemonic, class, operands, results, regions, forms, traits, rule, attributes, doc) ROW_##class(id)
#include "lang/ir/ops.def"
#undef OP
};

static const uint16_t ids[TILE_EVAL_COUNT] = {
#define EVAL_OP(id, operands) [TILE_EVAL_##id] = TILE_OP_##id,
#include "lang/scalar/eval_ops.def"
};

/* Both tables have the same operations, with equally many operands. */
#define EVAL_OP(id, count) enum { OPERANDS_##id = count };
#include "lang/scalar/eval_ops.def"
#define SAME_COUNT_ELEMENTWISE(id, count)                                                                              \
    _Static_assert(OPERANDS_##id == (count), #id " has as many operands in ops.def as in eval.def or math.def");
#define SAME_COUNT_SHAPE(id, count)
#define SAME_COUNT_REDUCE(id, count)
#define SAME_COUNT_MEMORY(id, count)
#define SAME_COUNT_CONTROL(id, count)
#define SAME_COUNT_HOST(id, count)
#define SAME_COUNT_NEST(id, count)
#define SAME_COUNT_VECTOR(id, count)
#define SAME_COUNT_BLOCK(id, count)
#define OP(id, mnemonic, class, operands, results, regions, forms, traits, rule, attributes, doc)                      \
    SAME_COUNT_##class(id, operands)
#include "lang/ir/ops.def"
#undef OP

TileEvalOp tile_eval_op_of(TileOpId id) { return evals[id] ? (TileEvalOp)(evals[id] - 1) : TILE_EVAL_COUNT; }
TileOpId tile_eval_op_id(TileEvalOp op) { return (TileOpId)ids[op]; }

TileScalar tile_eval_operand_type(const TileOp *op) {
    return op->operands[op->id == TILE_OP_SELECT ? 1 : 0].value->type->scalar;
}

/* ---- evaluating ---- */

TileEvalLoop tile_eval_loop(TileOpId id, TileScalar from, TileScalar to, bool approx) {
    return evals[id] ? tile_eval_op_loop(tile_eval_op_of(id), from, to, approx) : NULL;
}

bool tile_eval(TileOpId id, TileScalar operand_type, TileScalar result_type, const uint64_t *operands,
               uint64_t *result) {
    TileEvalLoop loop = tile_eval_loop(id, operand_type, result_type, false);
    if (!loop) return false;
    const uint64_t *in[TILE_EVAL_MOST_OPERANDS];
    for (int i = 0; i < TILE_EVAL_MOST_OPERANDS; i++) in[i] = i < tile_op_info(id)->operands ? &operands[i] : operands;
    loop(operand_type, result_type, in, result, 1);
    return true;
}

/* ---- reductions ---- */

TileReduction tile_eval_reduction(int64_t kind) {
    switch (kind) {
#define REDUCTION(id, name, op, identity, order, repeats)                                                              \
    case TILE_KIND_##id:                                                                                               \
    case TILE_COMBINE_##id: return TILE_REDUCTION_##id;
#include "lang/scalar/reductions.def"
    default: return TILE_REDUCTION_SUM;
    }
}

TileOpId tile_eval_combiner(int64_t kind) { return tile_eval_op_id(tile_reduction_op(tile_eval_reduction(kind))); }

int tile_eval_kind(TileOpId id) {
#define REDUCTION(kind, name, op, identity, order, repeats)                                                            \
    if (id == tile_eval_op_id(TILE_EVAL_##op)) return TILE_KIND_##kind;
#include "lang/scalar/reductions.def"
    return -1;
}

uint64_t tile_eval_identity(int64_t kind, TileScalar scalar) {
    return tile_reduction_identity(tile_eval_reduction(kind), scalar);
}

uint64_t tile_eval_update(int64_t update, TileScalar scalar, uint64_t old, uint64_t value, uint64_t expected) {
    uint64_t operands[] = {old, value}, result = old;
    TileOpId combiner = TILE_OP_ADD;
    if (update == TILE_UPDATE_READ) return old;
    if (update == TILE_UPDATE_CAS) return old == expected ? value : old;
    if (update == TILE_UPDATE_MIN) combiner = TILE_OP_MIN;
    if (update == TILE_UPDATE_MAX) combiner = TILE_OP_MAX;
    tile_eval(combiner, scalar, scalar, operands, &result);
    return result;
}
