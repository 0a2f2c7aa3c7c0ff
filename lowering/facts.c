#include "lowering/facts.h"

#include "lang/ir/build.h"

/* Sums and products of bounds, and differences of any two 64-bit numbers, are exact in this. */
typedef __int128 Wide;

enum { MAX_ASSUMPTIONS = 64, MAX_DEPTH = 64, MAX_DIFFERENCE_DEPTH = 6, MAX_DIFFERENCE_STEPS = 256 };

typedef struct Assumption {
    uint32_t parameter, dimension;
} Assumption;

struct TileFacts {
    TileArena *arena;
    TileFunc *func;
    TileMap known; /* TileValue to TileFact */
    Assumption assumptions[MAX_ASSUMPTIONS];
    unsigned assumption_count, depth;
    unsigned steps;  /* left for the difference at hand: min and max branch */
    int64_t divisor; /* that extents of machine form are supposed to have, or 0 */
};

TileFacts *tile_facts_create(TileArena *arena, TileFunc *func) {
    TileFacts *facts = TILE_NEW(arena, TileFacts);
    *facts = (TileFacts){.arena = arena, .func = func};
    tile_map_init(&facts->known, arena);
    return facts;
}

void tile_facts_use(TileFacts *facts, uint64_t because) {
    for (unsigned i = 0; i < facts->assumption_count; i++)
        if (because >> i & 1)
            facts->func->parameters[facts->assumptions[i].parameter].used_extent |= 1u
                                                                                    << facts->assumptions[i].dimension;
}

void tile_facts_suppose(TileFacts *facts, int64_t divisor) { facts->divisor = divisor; }

bool tile_facts_ask(TileFacts *facts, uint64_t because) {
    bool hold = true;
    for (unsigned i = 0; i < facts->assumption_count; i++) {
        if (!(because >> i & 1)) continue;
        TileParameter *parameter = &facts->func->parameters[facts->assumptions[i].parameter];
        parameter->asked_multiple |= (uint32_t)facts->divisor;
        int64_t known = parameter->facts.multiple[0];
        hold &= known != TILE_UNKNOWN && known % facts->divisor == 0;
    }
    for (unsigned i = 0; i < facts->assumption_count && hold; i++)
        if (because >> i & 1)
            facts->func->parameters[facts->assumptions[i].parameter].used_multiple |= (uint32_t)facts->divisor;
    return hold;
}

/* ---- numbers ---- */

static int64_t greatest_divisor(int64_t a, int64_t b) {
    uint64_t x = a < 0 ? -(uint64_t)a : (uint64_t)a, y = b < 0 ? -(uint64_t)b : (uint64_t)b;
    while (y) {
        uint64_t rest = x % y;
        x = y;
        y = rest;
    }
    return x > INT64_MAX ? 1 : (int64_t)x;
}

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

static TileFact whole(const TileType *type) {
    TileFact fact = {INT64_MIN, INT64_MAX, 1, 0};
    unsigned bits =
        type->kind == TILE_TYPE_POINTER || type->kind == TILE_TYPE_TENSOR ? 64 : tile_scalar_bits(type->scalar);
    if (bits == 64 || tile_scalar_is_float(type->scalar)) return fact;
    bool is_signed = tile_scalar_class(type->scalar) == TILE_CLASS_SIGNED;
    fact.hi = (INT64_C(1) << (is_signed ? bits - 1 : bits)) - 1;
    fact.lo = is_signed ? -fact.hi - 1 : 0;
    return fact;
}

/* The fact when the type holds all of the range. Else the value may have wrapped, which leaves of what divides it the
 * power of two. */
static TileFact within(const TileType *type, Wide lo, Wide hi, int64_t multiple, uint64_t because) {
    TileFact all = whole(type);
    if (lo < all.lo || hi > all.hi || type->scalar == TILE_U64) {
        all.multiple = multiple > 0 ? multiple & -multiple : 1;
        all.because = all.multiple > 1 ? because : 0;
        return all;
    }
    TileFact fact = {(int64_t)lo, (int64_t)hi, multiple, because};
    if (lo == hi) fact.multiple = (int64_t)lo < 0 && (int64_t)lo != INT64_MIN ? -(int64_t)lo : (int64_t)lo;
    return fact.multiple < 0 ? (TileFact){fact.lo, fact.hi, 1, because} : fact;
}

/* ---- one op each ---- */

static TileFact product(const TileType *type, TileFact a, TileFact b) {
    Wide corners[] = {(Wide)a.lo * b.lo, (Wide)a.lo * b.hi, (Wide)a.hi * b.lo, (Wide)a.hi * b.hi};
    Wide lo = corners[0], hi = corners[0];
    for (int i = 1; i < 4; i++) {
        if (corners[i] < lo) lo = corners[i];
        if (corners[i] > hi) hi = corners[i];
    }
    Wide multiple = (Wide)a.multiple * b.multiple;
    return within(type, lo, hi, multiple > INT64_MAX ? 1 : (int64_t)multiple, a.because | b.because);
}

static TileFact quotient(const TileType *type, TileFact a, TileFact b) {
    if (b.lo <= 0) { /* by 0 it is 0, and by anything else no greater, whatever the sign */
        Wide size = -(Wide)a.lo > a.hi ? -(Wide)a.lo : a.hi;
        return within(type, -size, size, 1, a.because);
    }
    int64_t lo = least(floor_div(a.lo, b.lo), floor_div(a.lo, b.hi));
    int64_t hi = most(floor_div(a.hi, b.lo), floor_div(a.hi, b.hi));
    bool exact = tile_fact_is_constant(b) && a.multiple % b.lo == 0;
    return within(type, lo, hi, exact ? a.multiple / b.lo : 1, a.because | b.because);
}

static TileFact remainder_of(const TileType *type, TileFact a, TileFact b) {
    if (b.lo <= 0) return whole(type);
    uint64_t because = a.because | b.because;
    int64_t divisor = greatest_divisor(a.multiple, b.multiple);
    if (tile_fact_is_constant(b) && divisor == b.lo) return within(type, 0, 0, 0, because);
    if (a.lo >= 0 && a.hi < b.lo) return within(type, a.lo, a.hi, a.multiple, because);
    return within(type, 0, a.lo >= 0 ? least(a.hi, b.hi - 1) : b.hi - 1, divisor, because);
}

static TileFact either(const TileType *type, TileFact a, TileFact b) {
    return within(type, least(a.lo, b.lo), most(a.hi, b.hi), greatest_divisor(a.multiple, b.multiple),
                  a.because | b.because);
}

static TileFact shifted(const TileType *type, const TileOp *op, TileFact a, TileFact b) {
    if (!tile_fact_is_constant(b) || b.lo < 0 || b.lo > 62) return whole(type);
    TileFact power = {INT64_C(1) << b.lo, INT64_C(1) << b.lo, INT64_C(1) << b.lo, b.because};
    return op->id == TILE_OP_SHL ? product(type, a, power) : quotient(type, a, power);
}

static TileFact common_bits(const TileType *type, TileFact a, TileFact b) {
    if (a.lo < 0 && b.lo < 0) return whole(type);
    int64_t hi = a.lo < 0 ? b.hi : b.lo < 0 ? a.hi : least(a.hi, b.hi);
    return within(type, 0, hi, 1, a.because | b.because);
}

static TileFact compare(TileFacts *facts, const TileOp *op, const TileType *type) {
    const TileValue *x = tile_op_operand(op, 0), *y = tile_op_operand(op, 1);
    if (tile_scalar_is_float(x->type->scalar) || x->type->scalar == TILE_U64) return whole(type);
    TileFact d = tile_facts_difference(facts, x, y);
    bool is_true, is_false;
    switch (op->id) {
    case TILE_OP_EQ: is_true = d.lo == 0 && d.hi == 0, is_false = d.lo > 0 || d.hi < 0; break;
    case TILE_OP_NE: is_true = d.lo > 0 || d.hi < 0, is_false = d.lo == 0 && d.hi == 0; break;
    case TILE_OP_LT: is_true = d.hi < 0, is_false = d.lo >= 0; break;
    case TILE_OP_LE: is_true = d.hi <= 0, is_false = d.lo > 0; break;
    case TILE_OP_GT: is_true = d.lo > 0, is_false = d.hi <= 0; break;
    default: is_true = d.lo >= 0, is_false = d.hi < 0; break;
    }
    return is_true || is_false ? within(type, is_true, is_true, 1, d.because) : whole(type);
}

static TileFact extent_of(TileFacts *facts, const TileOp *dim) {
    const TileValue *tensor = tile_op_operand(dim, 0);
    uint32_t dimension = (uint32_t)tile_op_integer(dim, TILE_ATTRIBUTE_AXIS, 0);
    TileFact fact = {0, TILE_MAX_EXTENT, 1, 0};
    if (!tensor->block || tensor->block != &facts->func->body || facts->assumption_count == MAX_ASSUMPTIONS)
        return fact;
    int64_t extent = facts->func->parameters[tensor->index].facts.extent[dimension];
    if (extent == TILE_UNKNOWN) return fact;
    facts->assumptions[facts->assumption_count] = (Assumption){tensor->index, dimension};
    return (TileFact){extent, extent, extent, UINT64_C(1) << facts->assumption_count++};
}

/* Bounds of a loop's number or a program's number. */
static TileFact index_of(TileFacts *facts, const TileValue *index) {
    const TileOp *op = index->block->op;
    const TileFact zero = {0, 0, 0, 0}, one = {1, 1, 1, 0};
    TileFact lo = zero, hi, step = one;
    if (op->id == TILE_OP_GRID) {
        hi = tile_facts_get(facts, tile_op_operand(op, index->index));
    } else {
        lo = tile_facts_get(facts, tile_op_operand(op, 0));
        hi = tile_facts_get(facts, tile_op_operand(op, 1));
        if (op->id == TILE_OP_FOR) step = tile_facts_get(facts, tile_op_operand(op, 2));
    }
    uint64_t because = lo.because | hi.because | step.because;
    int64_t multiple = greatest_divisor(lo.multiple, step.multiple);
    return (TileFact){lo.lo, most(lo.lo, hi.hi == INT64_MIN ? hi.hi : hi.hi - 1), multiple ? multiple : 1, because};
}

/* An extent of machine form. */
static TileFact supposed_extent(TileFacts *facts, const TileValue *value) {
    bool extent = facts->func->parameters[value->index].role == TILE_ROLE_EXTENT;
    if (!extent || facts->assumption_count == MAX_ASSUMPTIONS) return whole(value->type);
    facts->assumptions[facts->assumption_count] = (Assumption){value->index, 0};
    return (TileFact){0, TILE_MAX_EXTENT, facts->divisor, UINT64_C(1) << facts->assumption_count++};
}

static TileFact argument_fact(TileFacts *facts, const TileValue *value) {
    const TileOp *op = value->block->op;
    if (!op && facts->divisor && value->block == &facts->func->body) return supposed_extent(facts, value);
    bool is_index =
        op && (op->id == TILE_OP_GRID || ((op->id == TILE_OP_FOR || op->id == TILE_OP_LOOP) && value->index == 0));
    return is_index ? index_of(facts, value) : whole(value->type);
}

static TileFact yielded_fact(TileFacts *facts, const TileOp *op, const TileValue *value) {
    return either(value->type, tile_facts_get(facts, tile_op_operand(op->regions[0].last, value->index)),
                  tile_facts_get(facts, tile_op_operand(op->regions[1].last, value->index)));
}

static TileFact chosen_fact(const TileType *type, TileFact condition, TileFact x, TileFact y) {
    if (!tile_fact_is_constant(condition)) return either(type, x, y);
    TileFact chosen = condition.lo ? x : y;
    chosen.because |= condition.because;
    return chosen;
}

/* x * (n / d) is no more than n where 0 <= x <= d, as the begin of a group out of d. */
static bool product_of_groups(TileFacts *facts, const TileValue *x, const TileValue *groups, TileFact *fact) {
    const TileOp *div = tile_value_def(groups, TILE_OP_DIV);
    if (!div || tile_facts_get(facts, x).lo < 0) return false;
    TileFact n = tile_facts_get(facts, tile_op_operand(div, 0));
    TileFact rest = tile_facts_difference(facts, tile_op_operand(div, 1), x);
    *fact = (TileFact){0, n.hi, 1, n.because | rest.because};
    return n.lo >= 0 && rest.lo >= 0;
}

static TileFact multiplied(TileFacts *facts, const TileOp *op, const TileType *type, TileFact a, TileFact b) {
    TileFact fact = product(type, a, b), groups;
    for (unsigned i = 0; i < 2 && fact.hi == INT64_MAX; i++) {
        if (!product_of_groups(facts, tile_op_operand(op, i), tile_op_operand(op, 1 - i), &groups)) continue;
        groups.because |= fact.because;
        groups.multiple = fact.multiple;
        return groups;
    }
    return fact;
}

static TileFact binary_fact(TileFacts *facts, const TileOp *op, const TileType *type) {
    TileFact a = tile_facts_get(facts, tile_op_operand(op, 0)), b = tile_facts_get(facts, tile_op_operand(op, 1));
    uint64_t because = a.because | b.because;
    int64_t divisor = greatest_divisor(a.multiple, b.multiple);
    switch (op->id) {
    case TILE_OP_ADD: return within(type, (Wide)a.lo + b.lo, (Wide)a.hi + b.hi, divisor, because);
    case TILE_OP_MUL: return multiplied(facts, op, type, a, b);
    case TILE_OP_DIV: return quotient(type, a, b);
    case TILE_OP_REM: return remainder_of(type, a, b);
    case TILE_OP_MIN: return within(type, least(a.lo, b.lo), least(a.hi, b.hi), divisor, because);
    case TILE_OP_MAX: return within(type, most(a.lo, b.lo), most(a.hi, b.hi), divisor, because);
    case TILE_OP_SHL:
    case TILE_OP_SHR: return shifted(type, op, a, b);
    case TILE_OP_AND: return common_bits(type, a, b);
    case TILE_OP_OR:
        if (type->scalar == TILE_BOOL) return within(type, a.lo | b.lo, a.hi | b.hi, 1, because);
        return whole(type);
    default: return whole(type);
    }
}

static TileFact converted(const TileOp *op, const TileType *type, TileFact x) {
    const TileType *from = tile_op_operand(op, 0)->type;
    if (tile_scalar_is_float(from->scalar) || from->scalar == TILE_U64) return whole(type);
    if (type->scalar != TILE_BOOL) return within(type, x.lo, x.hi, x.multiple, x.because);
    return x.lo > 0 || x.hi < 0 ? within(type, 1, 1, 1, x.because) : whole(type);
}

static TileFact subtraction(TileFacts *facts, const TileOp *op, const TileType *type);

static TileFact op_fact(TileFacts *facts, const TileOp *op, const TileValue *value) {
    const TileType *type = value->type;
    int64_t constant;
    switch (op->id) {
    case TILE_OP_CONST:
        return tile_value_integer(value, &constant) ? within(type, constant, constant, 1, 0) : whole(type);
    case TILE_OP_DIM: return extent_of(facts, op);
    case TILE_OP_IOTA:
        if (type->scalable) return whole(type);
        return within(type, 0, type->extent[tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0)] - 1, 1, 0);
    case TILE_OP_SPLAT:
    case TILE_OP_BROADCAST:
    case TILE_OP_RESHAPE:
    case TILE_OP_SLICE:
    case TILE_OP_PERMUTE: return tile_facts_get(facts, tile_op_operand(op, 0));
    case TILE_OP_IF: return yielded_fact(facts, op, value);
    case TILE_OP_SUB: return subtraction(facts, op, type);
    case TILE_OP_EQ:
    case TILE_OP_NE:
    case TILE_OP_LT:
    case TILE_OP_LE:
    case TILE_OP_GT:
    case TILE_OP_GE: return compare(facts, op, type);
    case TILE_OP_CONVERT: return converted(op, type, tile_facts_get(facts, tile_op_operand(op, 0)));
    default: break;
    }
    if (tile_op_info((TileOpId)op->id)->class != TILE_CLASS_ELEMENTWISE) return whole(type);
    TileFact x = tile_facts_get(facts, tile_op_operand(op, 0));
    switch (op->id) {
    case TILE_OP_NEG: return within(type, -(Wide)x.hi, -(Wide)x.lo, x.multiple, x.because);
    case TILE_OP_ABS: /* the least integer has no positive counterpart */
        if (x.lo >= 0) return x;
        return within(type, 0, -(Wide)x.lo > x.hi ? -(Wide)x.lo : x.hi, x.multiple, x.because);
    case TILE_OP_NOT: return type->scalar == TILE_BOOL ? within(type, 1 - x.hi, 1 - x.lo, 1, x.because) : whole(type);
    case TILE_OP_SELECT:
        return chosen_fact(type, x, tile_facts_get(facts, tile_op_operand(op, 1)),
                           tile_facts_get(facts, tile_op_operand(op, 2)));
    default: return op->operand_count == 2 ? binary_fact(facts, op, type) : whole(type);
    }
}

/* The extent of a temporary, which a launch checks before any grid; phases have none of their own. */
static bool is_extent(const TileFacts *facts, const TileValue *value) {
    if (facts->func->kind == TILE_FUNC_PHASE) return false;
    for (const TileUse *use = value->first_use; use; use = use->next)
        if (use->user->id == TILE_OP_TEMP) return true;
    return false;
}

TileFact tile_facts_get(TileFacts *facts, const TileValue *value) {
    if (value->type->kind == TILE_TYPE_POINTER || value->type->kind == TILE_TYPE_TENSOR ||
        tile_scalar_is_float(value->type->scalar) || facts->depth > MAX_DEPTH)
        return whole(value->type);
    TileFact *known = tile_map_get(&facts->known, value);
    if (known) return *known;
    facts->depth++;
    TileFact fact = value->op ? op_fact(facts, value->op, value) : argument_fact(facts, value);
    facts->depth--;
    if ((fact.lo < 0 || fact.hi > TILE_MAX_EXTENT) && is_extent(facts, value)) {
        if (fact.lo < 0) fact.lo = 0;
        if (fact.hi > TILE_MAX_EXTENT) fact.hi = TILE_MAX_EXTENT;
    }
    known = TILE_NEW(facts->arena, TileFact);
    *known = fact;
    tile_map_set(&facts->known, value, known);
    return fact;
}

/* ---- differences ---- */

/* The least that a difference can be. */
typedef struct Least {
    Wide least;
    uint64_t because;
} Least;

static Least greater(Least a, Least b) { return b.least > a.least ? b : a; }
static Least smaller(Least a, Least b) { return (Least){a.least < b.least ? a.least : b.least, a.because | b.because}; }

/* x >= y + 1 where y runs up to x. */
static bool is_below_bound(const TileValue *y, const TileValue *x) {
    if (!y->block || !y->block->op) return false;
    const TileOp *op = y->block->op;
    if (op->id == TILE_OP_GRID) return tile_value_is_same(tile_op_operand(op, y->index), x);
    return (op->id == TILE_OP_FOR || op->id == TILE_OP_LOOP) && y->index == 0 &&
           tile_value_is_same(tile_op_operand(op, 1), x);
}

static bool starts_at(const TileValue *x, const TileValue *y) {
    if (!x->block || !x->block->op || x->index != 0) return false;
    const TileOp *op = x->block->op;
    return (op->id == TILE_OP_FOR || op->id == TILE_OP_LOOP) && tile_value_is_same(tile_op_operand(op, 0), y);
}

/* y = p * B where p runs over the (x + B - 1) / B blocks of x: a block starts before the end. */
static bool is_block_start(const TileValue *y, const TileValue *x) {
    const TileOp *mul = tile_value_def(y, TILE_OP_MUL);
    int64_t size, above, divisor;
    if (!mul || !tile_value_integer(tile_op_operand(mul, 1), &size) || size < 1) return false;
    const TileValue *p = tile_op_operand(mul, 0);
    if (!p->block || !p->block->op || p->block->op->id != TILE_OP_GRID) return false;
    const TileOp *blocks = tile_value_def(tile_op_operand(p->block->op, p->index), TILE_OP_DIV);
    const TileOp *sum = blocks ? tile_value_def(tile_op_operand(blocks, 0), TILE_OP_ADD) : NULL;
    return sum && tile_value_integer(tile_op_operand(blocks, 1), &divisor) && divisor == size &&
           tile_value_is_same(tile_op_operand(sum, 0), x) && tile_value_integer(tile_op_operand(sum, 1), &above) &&
           above == size - 1;
}

/* y = x / size * size, without wrapping. */
static bool is_rounded_down(TileFacts *facts, const TileValue *y, const TileValue *x, int64_t *size) {
    const TileOp *mul = tile_value_def(y, TILE_OP_MUL);
    const TileOp *div = mul ? tile_value_def(tile_op_operand(mul, 0), TILE_OP_DIV) : NULL;
    if (!div || !tile_value_is_same(tile_op_operand(div, 0), x) ||
        !tile_value_is_same(tile_op_operand(div, 1), tile_op_operand(mul, 1)))
        return false;
    bool known = tile_value_integer(tile_op_operand(mul, 1), size) && *size > 0;
    return known && (Wide)tile_facts_get(facts, x).lo - *size >= whole(x->type).lo;
}

/* value = of + constant, without wrapping. */
static bool is_offset(TileFacts *facts, const TileValue *value, const TileValue **of, int64_t *constant) {
    const TileOp *add = tile_value_def(value, TILE_OP_ADD);
    if (!add || !tile_value_integer(tile_op_operand(add, 1), constant)) return false;
    *of = tile_op_operand(add, 0);
    TileFact fact = tile_facts_get(facts, *of), all = whole(value->type);
    return (Wide)fact.lo + *constant >= all.lo && (Wide)fact.hi + *constant <= all.hi;
}

/* value = of + rest, without wrapping. */
static bool is_sum_with(TileFacts *facts, const TileValue *value, const TileValue *of, TileFact *rest) {
    const TileOp *add = tile_value_def(value, TILE_OP_ADD);
    if (!add) return false;
    for (unsigned i = 0; i < 2; i++) {
        if (tile_op_operand(add, i) != of) continue;
        TileFact a = tile_facts_get(facts, of), all = whole(value->type);
        *rest = tile_facts_get(facts, tile_op_operand(add, 1 - i));
        return (Wide)a.lo + rest->lo >= all.lo && (Wide)a.hi + rest->hi <= all.hi;
    }
    return false;
}

static Least difference(TileFacts *facts, const TileValue *x, const TileValue *y, unsigned depth);

static Least structural(TileFacts *facts, const TileValue *x, const TileValue *y, Least best, unsigned depth) {
    const TileOp *op;
    const TileValue *of;
    int64_t constant;
    TileFact rest;
    if ((op = tile_value_def(y, TILE_OP_MIN)) || (op = tile_value_def(y, TILE_OP_MAX))) {
        Least a = difference(facts, x, tile_op_operand(op, 0), depth),
              b = difference(facts, x, tile_op_operand(op, 1), depth);
        best = greater(best, op->id == TILE_OP_MIN ? greater(a, b) : smaller(a, b));
    }
    if ((op = tile_value_def(x, TILE_OP_MIN)) || (op = tile_value_def(x, TILE_OP_MAX))) {
        Least a = difference(facts, tile_op_operand(op, 0), y, depth),
              b = difference(facts, tile_op_operand(op, 1), y, depth);
        best = greater(best, op->id == TILE_OP_MAX ? greater(a, b) : smaller(a, b));
    }
    if (is_offset(facts, x, &of, &constant)) {
        Least inner = difference(facts, of, y, depth);
        inner.least += constant;
        best = greater(best, inner);
    }
    if (is_offset(facts, y, &of, &constant)) {
        Least inner = difference(facts, x, of, depth);
        inner.least -= constant;
        best = greater(best, inner);
    }
    if (is_sum_with(facts, x, y, &rest)) best = greater(best, (Least){rest.lo, rest.because});
    if (is_sum_with(facts, y, x, &rest)) best = greater(best, (Least){-(Wide)rest.hi, rest.because});
    return best;
}

static Least difference(TileFacts *facts, const TileValue *x, const TileValue *y, unsigned depth) {
    if (tile_value_is_same(x, y)) return (Least){0, 0};
    TileFact a = tile_facts_get(facts, x), b = tile_facts_get(facts, y);
    Least best = {(Wide)a.lo - b.hi, a.because | b.because};
    if (is_below_bound(y, x) || is_block_start(y, x)) best = greater(best, (Least){1, 0});
    int64_t size;
    if (starts_at(x, y) || is_rounded_down(facts, y, x, &size)) best = greater(best, (Least){0, 0});
    if (is_rounded_down(facts, x, y, &size)) best = greater(best, (Least){1 - size, 0});
    if (!depth || !facts->steps) return best;
    facts->steps--;
    return structural(facts, x, y, best, depth - 1);
}

/* The bounds of x - y as exact numbers. */
static void bound_difference(TileFacts *facts, const TileValue *x, const TileValue *y, Wide *lo, Wide *hi,
                             uint64_t *because) {
    unsigned outer = facts->steps; /* a difference may ask for a comparison, and that for a difference */
    facts->steps = MAX_DIFFERENCE_STEPS;
    Least least = difference(facts, x, y, MAX_DIFFERENCE_DEPTH);
    facts->steps = MAX_DIFFERENCE_STEPS;
    Least opposite = difference(facts, y, x, MAX_DIFFERENCE_DEPTH);
    facts->steps = outer;
    *lo = least.least;
    *hi = -opposite.least;
    *because = least.because | opposite.because;
}

static TileFact subtraction(TileFacts *facts, const TileOp *op, const TileType *type) {
    const TileValue *x = tile_op_operand(op, 0), *y = tile_op_operand(op, 1);
    TileFact a = tile_facts_get(facts, x), b = tile_facts_get(facts, y);
    Wide lo, hi;
    uint64_t because;
    bound_difference(facts, x, y, &lo, &hi, &because);
    return within(type, lo, hi, greatest_divisor(a.multiple, b.multiple), because | a.because | b.because);
}

static int64_t saturated(Wide number) {
    return number < INT64_MIN ? INT64_MIN : number > INT64_MAX ? INT64_MAX : (int64_t)number;
}

TileFact tile_facts_difference(TileFacts *facts, const TileValue *x, const TileValue *y) {
    Wide lo, hi;
    uint64_t because;
    bound_difference(facts, x, y, &lo, &hi, &because);
    return (TileFact){saturated(lo), saturated(hi), 1, because};
}
