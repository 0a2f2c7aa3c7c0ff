/* Compile-time evaluation of the ops that were emitted for a constant expression, with tile_eval. */
#include "lang/ir/eval.h"
#include "parser/check/constant.h"
#include "parser/check/emit.h"
#include "parser/check/meaning.h"
#include "parser/check/report.h"

typedef struct Evaluation {
    TileArena *arena;
    TileMap known; /* pointers to their bits: values with several uses are computed once */
    uint64_t left; /* ops that may still be computed */
} Evaluation;

static bool evaluate(Evaluation *e, TileValue *value, uint64_t *bits);
static bool evaluate_block(Evaluation *e, const TileBlock *block);

static void set_known(Evaluation *e, TileValue *value, uint64_t bits) {
    uint64_t *known = tile_map_get(&e->known, value);
    if (known)
        *known = bits;
    else
        tile_map_set(&e->known, value, tile_arena_copy(e->arena, &bits, sizeof bits));
}

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

/* ---- loops and branches, as functions of constants have them ---- */

/* The operands of the op from `from` on; NULL if one is not known. */
static uint64_t *read_operands(Evaluation *e, const TileOp *op, unsigned from, unsigned count) {
    uint64_t *bits = TILE_NEW_ARRAY(e->arena, uint64_t, count + 1);
    for (unsigned i = 0; i < count; i++)
        if (!evaluate(e, tile_op_operand(op, from + i), &bits[i])) return NULL;
    return bits;
}

static bool set_results(Evaluation *e, const TileOp *op, const uint64_t *bits) {
    for (unsigned i = 0; bits && i < op->result_count; i++) set_known(e, &op->results[i], bits[i]);
    return bits != NULL;
}

static bool set_arguments(Evaluation *e, const TileBlock *block, unsigned from, const uint64_t *bits) {
    for (unsigned i = from; bits && i < block->argument_count; i++) set_known(e, block->arguments[i], bits[i - from]);
    return bits != NULL;
}

static bool evaluate_if(Evaluation *e, const TileOp *op) {
    uint64_t condition;
    if (!evaluate(e, tile_op_operand(op, 0), &condition)) return false;
    const TileBlock *side = &op->regions[!condition];
    return evaluate_block(e, side) && set_results(e, op, read_operands(e, side->last, 0, op->result_count));
}

static bool evaluate_while(Evaluation *e, const TileOp *op) {
    const TileBlock *test = &op->regions[0], *body = &op->regions[1];
    unsigned count = op->result_count;
    uint64_t *carried = read_operands(e, op, 0, count);
    while (set_arguments(e, test, 0, carried)) {
        uint64_t more;
        if (!evaluate_block(e, test) || !evaluate(e, tile_op_operand(test->last, 0), &more)) return false;
        carried = read_operands(e, test->last, 1, count);
        if (!more) return set_results(e, op, carried);
        if (!set_arguments(e, body, 0, carried) || !evaluate_block(e, body)) return false;
        carried = read_operands(e, body->last, 0, count);
    }
    return false;
}

static bool evaluate_for(Evaluation *e, const TileOp *op) {
    enum { BOUNDS = 3 };
    const TileBlock *body = &op->regions[0];
    uint64_t *bounds = read_operands(e, op, 0, BOUNDS), *carried = read_operands(e, op, BOUNDS, op->result_count);
    if (!bounds || !carried || (int64_t)bounds[2] < 1) return false;
    int64_t at = (int64_t)bounds[0], hi = (int64_t)bounds[1];
    for (bool past = false; at < hi && !past; past = __builtin_add_overflow(at, (int64_t)bounds[2], &at)) {
        set_known(e, body->arguments[0], (uint64_t)at);
        if (!set_arguments(e, body, 1, carried) || !evaluate_block(e, body)) return false;
        carried = read_operands(e, body->last, 0, op->result_count);
        if (!carried || e->left == 0) return false;
        e->left--;
    }
    return set_results(e, op, carried);
}

static bool evaluate_control(Evaluation *e, const TileOp *op) {
    if (tile_op_is(op, TILE_OP_IF)) return evaluate_if(e, op);
    if (tile_op_is(op, TILE_OP_WHILE)) return evaluate_while(e, op);
    return tile_op_is(op, TILE_OP_FOR) && evaluate_for(e, op);
}

/* The ops of a region, but its last one, again with each iteration. */
static bool evaluate_block(Evaluation *e, const TileBlock *block) {
    for (const TileOp *op = block->first; op != block->last; op = op->next) {
        uint64_t bits;
        if (e->left == 0) return false;
        e->left--;
        if (op->id == TILE_OP_STATEMENT) continue; /* looked at where the value is not constant: it computes nothing */
        if (op->region_count) {
            if (!evaluate_control(e, op)) return false;
        } else if (op->result_count == 1) {
            if (tile_value_bits(op->results, &bits)) continue;
            if (!evaluate_op(e, op, &bits)) return false;
            set_known(e, op->results, bits);
        } else {
            return false;
        }
    }
    return true;
}

static bool evaluate(Evaluation *e, TileValue *value, uint64_t *bits) {
    if (tile_value_bits(value, bits)) return true;
    const uint64_t *known = tile_map_get(&e->known, value);
    if (known) return *bits = *known, true;
    if (!value->op) return false;
    if (value->op->region_count) {
        if (!evaluate_control(e, value->op)) return false;
        known = tile_map_get(&e->known, value);
        return known && (*bits = *known, true);
    }
    if (!evaluate_op(e, value->op, bits)) return false;
    set_known(e, value, *bits);
    return true;
}

bool tile_make_constant(TileChecker *c, TileMeaning *m) {
    int64_t number;
    if (m->kind != TILE_MEANING_VALUE || m->rank || m->valid) return false;
    if (m->constant || (m->sum && tile_sum_known(&c->sums, m->sum, &number))) return true;
    uint64_t most = c->diagnostics->limits->most[TILE_LIMIT_OPERATIONS], bits;
    Evaluation evaluation = {.arena = c->arena, .left = most};
    tile_map_init(&evaluation.known, c->arena);
    bool known = evaluate(&evaluation, tile_emit_value(c, m), &bits);
    tile_spend(c, (most - evaluation.left) / 8);
    if (!known) return false;
    *m = m->sum ? tile_sum_meaning(tile_sum_integer(&c->sums, (int64_t)bits))
                : tile_bits_meaning((TileScalar)m->scalar, bits);
    return true;
}

/* Does the value come of a loop, which no launcher computes? `seen` has what has been looked at. */
static bool comes_of_loop(const TileValue *value, TileMap *seen) {
    const TileOp *op = value->op;
    if (!op || tile_map_get(seen, op)) return false;
    tile_map_set(seen, op, (void *)op);
    if (tile_op_is(op, TILE_OP_FOR) || tile_op_is(op, TILE_OP_WHILE)) return true;
    for (unsigned i = 0; i < op->operand_count; i++)
        if (comes_of_loop(tile_op_operand(op, i), seen)) return true;
    for (unsigned k = 0; k < op->region_count; k++)
        for (const TileOp *inner = op->regions[k].first; inner; inner = inner->next)
            for (unsigned i = 0; i < inner->operand_count; i++)
                if (comes_of_loop(tile_op_operand(inner, i), seen)) return true;
    return false;
}

bool tile_check_host_value(TileChecker *c, TileMeaning *m, TileSpan span) {
    TileMap seen;
    tile_map_init(&seen, c->arena);
    if (m->kind != TILE_MEANING_VALUE || m->rank || m->constant) return true;
    if (!comes_of_loop(tile_emit_value(c, m), &seen) || tile_make_constant(c, m)) return true;
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_HOST_STATEMENT, span, "a loop");
    tile_diagnostic_note(c->diagnostics, d, (TileSpan){0},
                         "what a loop gives is known here only if all that it depends on is known at compile time");
    tile_report(c, d);
    return false;
}
