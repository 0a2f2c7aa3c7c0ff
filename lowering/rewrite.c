#include "lowering/rewrite.h"

enum {
#define OP(id, mnemonic, class, operands, results, regions, forms, traits, rule, attributes, doc) id = TILE_OP_##id,
#include "lang/ir/ops.def"
#undef OP
    X = TILE_REWRITE_X,
    Y = TILE_REWRITE_Y,
    Z = TILE_REWRITE_Z,
    W = TILE_REWRITE_W,
    C = TILE_REWRITE_C,
    D = TILE_REWRITE_D,
    ZERO = TILE_REWRITE_ZERO,
    ONE = TILE_REWRITE_ONE,
    MINUS_ONE = TILE_REWRITE_MINUS_ONE,
    MINUS_ZERO = TILE_REWRITE_MINUS_ZERO,
    ONES = TILE_REWRITE_ONES
};

enum {
    INT = TILE_REWRITE_INT,
    FLOAT = TILE_REWRITE_FLOAT,
    BOOL = TILE_REWRITE_BOOL,
    NUM = INT | FLOAT,
    BITS = INT | BOOL
};

static const TileRewrite rewrites[] = {
#define P(...)                                                                                                         \
    { __VA_ARGS__ }
#define REWRITE(name, types, pattern, replacement) {#name, types, pattern, replacement},
#include "lowering/rewrites.def"
#undef REWRITE
#undef P
};

const TileRewrite *tile_rewrites(size_t *count) {
    *count = sizeof rewrites / sizeof *rewrites;
    return rewrites;
}

uint64_t tile_rewrite_constant(unsigned code, TileScalar scalar) {
    unsigned bits = tile_scalar_bits(scalar);
    switch (code) {
    case ONE: return tile_scalar_from_integer(scalar, 1);
    case MINUS_ONE: return tile_scalar_from_integer(scalar, -1);
    case MINUS_ZERO: return UINT64_C(1) << (bits - 1);
    case ONES: return bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    default: return 0;
    }
}

bool tile_rewrite_takes(const TileRewrite *rewrite, TileScalar scalar) {
    if (scalar == TILE_BOOL) return (rewrite->types & BOOL) != 0;
    if (tile_scalar_is_float(scalar)) return tile_scalar_bits(scalar) >= 16 && (rewrite->types & FLOAT);
    return (rewrite->types & INT) != 0;
}

/* Matching walks the codes and the values side by side. Each bit of `swaps` exchanges the operands of one
 * commutative operation of the pattern, in the order of the codes. */
typedef struct Match {
    const uint8_t *at;
    unsigned swaps, commutative;
    TileValue *bound[TILE_REWRITE_END - TILE_OP_COUNT];
} Match;

static bool match_leaf(Match *match, unsigned code, TileValue *value) {
    uint64_t bits;
    bool is_constant = tile_value_bits(value, &bits);
    if (code >= ZERO) return is_constant && bits == tile_rewrite_constant(code, value->type->scalar);
    if ((code == C || code == D) && !is_constant) return false;
    TileValue **bound = &match->bound[code - X];
    if (!*bound) *bound = value;
    return *bound == value;
}

static bool match_op(Match *match, const TileOp *op);

static bool match_value(Match *match, TileValue *value) {
    if (*match->at >= TILE_OP_COUNT) return match_leaf(match, *match->at++, value);
    return value->op && value->op->id == *match->at && match_op(match, value->op);
}

/* The current code is the op's. */
static bool match_op(Match *match, const TileOp *op) {
    match->at++;
    bool swap = false;
    if (tile_op_info((TileOpId)op->id)->traits & TILE_TRAIT_COMMUTATIVE)
        swap = match->swaps >> match->commutative++ & 1u;
    for (unsigned i = 0; i < op->operand_count; i++)
        if (!match_value(match, tile_op_operand(op, swap && i < 2 ? 1 - i : i))) return false;
    return true;
}

static bool match_row(const TileRewrite *rewrite, const TileOp *op, Match *match) {
    unsigned swaps = 0;
    do {
        *match = (Match){.at = rewrite->pattern, .swaps = swaps};
        if (match_op(match, op)) return true;
        swaps++;
    } while (swaps < 1u << match->commutative);
    return false;
}

/* `type` is that of the value to be built. Replacements have no constants in comparisons. */
static TileValue *build(TileBuilder *builder, Match *match, const TileType *type) {
    unsigned code = *match->at++;
    if (code >= ZERO) return tile_build_bits(builder, type, tile_rewrite_constant(code, type->scalar));
    if (code >= X) return match->bound[code - X];
    TileValue *operands[3];
    unsigned count = (unsigned)tile_op_info((TileOpId)code)->operands;
    for (unsigned i = 0; i < count; i++) operands[i] = build(builder, match, type);
    return tile_build_op(builder, (TileOpId)code, operands, count, NULL, 0, NULL, 1)->results;
}

TileValue *tile_rewrite_op(TileBuilder *builder, const TileOp *op) {
    if (tile_op_info((TileOpId)op->id)->class != TILE_CLASS_ELEMENTWISE || op->operand_count > 3) return NULL;
    TileScalar scalar = tile_op_operand(op, 0)->type->scalar;
    for (size_t i = 0; i < sizeof rewrites / sizeof *rewrites; i++) {
        if (rewrites[i].pattern[0] != op->id || !tile_rewrite_takes(&rewrites[i], scalar)) continue;
        Match match;
        if (!match_row(&rewrites[i], op, &match)) continue;
        match.at = rewrites[i].replacement;
        return build(builder, &match, op->results[0].type);
    }
    return NULL;
}
