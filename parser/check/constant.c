/* Compile-time evaluation of the ops that were emitted for a constant expression, with tile_eval. */
#include "lang/ir/eval.h"
#include "parser/check/constant.h"
#include "parser/check/emit.h"
#include "parser/check/meaning.h"

typedef struct Evaluation {
    TileArena *arena;
    TileMap known; /* pointers to their bits: values with several uses are computed once */
} Evaluation;

static bool evaluate(Evaluation *e, TileValue *value, uint64_t *bits);

/* A product that is an operand of a sum, to be fused without rounding as by the pass `contract`; `negated` counts
 * negations. */
static TileOp *fused_product(TileValue *value, bool *negated) {
    TileOp *op = value->op;
    for (*negated = false; tile_op_is(op, TILE_OP_NEG); op = tile_op_operand(op, 0)->op) *negated = !*negated;
    bool fused = tile_op_is(op, TILE_OP_MUL) && tile_op_integer(op, TILE_ATTRIBUTE_FUSE, 0);
    return fused && tile_value_has_one_use(op->results) ? op : NULL;
}

static bool negate(TileScalar scalar, uint64_t *bits) { return tile_eval(TILE_OP_NEG, scalar, scalar, bits, bits); }

/* x * y + z; false if no operand of the sum is such a product. */
static bool evaluate_fused(Evaluation *e, const TileOp *sum, uint64_t *bits, bool *known) {
    TileScalar scalar = sum->results[0].type->scalar;
    if (sum->id != TILE_OP_ADD && sum->id != TILE_OP_SUB) return false;
    for (unsigned side = 0; side < 2; side++) {
        bool negated;
        const TileOp *product = fused_product(tile_op_operand(sum, side), &negated);
        if (!product) continue;
        uint64_t v[3];
        *known = evaluate(e, tile_op_operand(product, 0), &v[0]) && evaluate(e, tile_op_operand(product, 1), &v[1]) &&
                 evaluate(e, tile_op_operand(sum, 1 - side), &v[2]);
        bool subtracts = sum->id == TILE_OP_SUB;
        if (*known && (negated != (subtracts && side == 1))) *known = negate(scalar, &v[0]);
        if (*known && subtracts && side == 0) *known = negate(scalar, &v[2]);
        *known = *known && tile_eval(TILE_OP_FMA, scalar, scalar, v, bits);
        return true;
    }
    return false;
}

static bool evaluate_op(Evaluation *e, const TileOp *op, uint64_t *bits) {
    enum { MOST_OPERANDS = 3 };
    uint64_t operands[MOST_OPERANDS];
    bool known = false;
    bool has_meaning = tile_op_info((TileOpId)op->id)->class == TILE_CLASS_ELEMENTWISE && op->id != TILE_OP_OPAQUE &&
                       op->operand_count <= MOST_OPERANDS && !tile_op_integer(op, TILE_ATTRIBUTE_APPROX, 0);
    if (!has_meaning || op->results[0].type->kind != TILE_TYPE_SCALAR) return false;
    if (evaluate_fused(e, op, bits, &known)) return known;
    for (unsigned i = 0; i < op->operand_count; i++)
        if (!evaluate(e, tile_op_operand(op, i), &operands[i])) return false;
    TileScalar operand = tile_op_operand(op, op->id == TILE_OP_SELECT ? 1 : 0)->type->scalar;
    return tile_eval((TileOpId)op->id, operand, op->results[0].type->scalar, operands, bits);
}

static bool evaluate(Evaluation *e, TileValue *value, uint64_t *bits) {
    if (tile_value_bits(value, bits)) return true;
    const uint64_t *known = tile_map_get(&e->known, value);
    if (known) return *bits = *known, true;
    if (!value->op || !evaluate_op(e, value->op, bits)) return false;
    tile_map_set(&e->known, value, tile_arena_copy(e->arena, bits, sizeof *bits));
    return true;
}

bool tile_make_constant(TileChecker *c, TileMeaning *m) {
    int64_t number;
    if (m->kind != TILE_MEANING_VALUE || m->rank || m->valid) return false;
    if (m->constant || (m->sum && tile_sum_known(&c->sums, m->sum, &number))) return true;
    Evaluation evaluation = {.arena = c->arena};
    uint64_t bits;
    tile_map_init(&evaluation.known, c->arena);
    if (!evaluate(&evaluation, tile_emit_value(c, m), &bits)) return false;
    *m = m->sum ? tile_sum_meaning(tile_sum_integer(&c->sums, (int64_t)bits))
                : tile_bits_meaning((TileScalar)m->scalar, bits);
    return true;
}
