#include "ptx/grid/merges.h"

#include <math.h>

#include "lang/ir/eval.h"
#include "lang/ir/operands.h"
#include "lang/scalar/scalar.h"

enum { MOST_DEPTH = 24 };

typedef struct Finder {
    GpuMerge *merge;
    TileMap varying; /* what depends on carried values is mapped to the loop's variable */
} Finder;

static TileValue *carried_of(const GpuMerge *merge, unsigned i) { return gpu_merge_carried(merge, i); }
static TileValue *next_of(const GpuMerge *merge, unsigned i) { return gpu_merge_next(merge, i); }

/* ---- what depends on carried values ---- */

static bool varies(Finder *f, const TileValue *value) {
    return tile_map_get(&f->varying, value) != NULL;
}

static bool uses_varying(Finder *f, const TileOp *op) {
    for (unsigned i = 0; i < op->operand_count; i++)
        if (varies(f, tile_op_operand(op, i))) return true;
    for (unsigned r = 0; r < op->region_count; r++)
        for (const TileOp *inner = op->regions[r].first; inner; inner = inner->next)
            if (uses_varying(f, inner)) return true;
    return false;
}

/* In the body of a loop. Induction variables are functions of the iteration. */
static void find_varying(Finder *f, TileBlock *body) {
    bool outer = body == &f->merge->loop->regions[0];
    for (unsigned i = 1; i < body->argument_count; i++)
        if (!outer || f->merge->values[i - 1].rule != GPU_MERGE_INDUCTION)
            tile_map_set(&f->varying, body->arguments[i], body->arguments[0]);
    for (TileOp *op = body->first; op; op = op->next) {
        if (op->id == TILE_OP_FOR) find_varying(f, &op->regions[0]);
        if (!uses_varying(f, op)) continue;
        for (unsigned i = 0; i < op->result_count; i++)
            tile_map_set(&f->varying, &op->results[i], body->arguments[0]);
    }
}

/* ---- one op ---- */

/* The reduction by which an op combines its operand `index` with what comes next; -1: none. */
static int kind_of(const TileOp *op, unsigned index) {
    bool adds = op->id == TILE_OP_FMA || op->id == TILE_OP_DOT;
    if (adds) return index == 2 ? TILE_KIND_SUM : -1;
    return tile_eval_kind((TileOpId)op->id);
}

static int kind_of_loop(Finder *f, const TileOp *loop, unsigned i);

static int kind_of_next(Finder *f, const TileValue *carried, const TileValue *next, const TileBlock *body);

/* The reduction by which the op's operand `index`, which varies, is combined with the others: it is what is carried, or that
 * combined already, as in (carried + x) + y. */
static int kind_of_operand(Finder *f, const TileValue *carried, const TileOp *op, unsigned index, const TileBlock *body) {
    const TileValue *operand = tile_op_operand(op, index);
    int kind = kind_of(op, index);
    if (operand == carried || kind < 0) return kind;
    return tile_value_has_one_use(operand) && kind_of_next(f, carried, operand, body) == kind ? kind : -1;
}

/* The reduction by which the op combines what is carried with what depends on no carried value; also a loop that does so
 * in each of its iterations. -1: none. */
static int kind_of_next(Finder *f, const TileValue *carried, const TileValue *next, const TileBlock *body) {
    const TileOp *op = next->op;
    int kind = -1;
    if (!op || op->block != body || tile_op_integer(op, TILE_ATTRIBUTE_ORDERED, 0)) return -1;
    if (op->id == TILE_OP_FOR)
        return tile_loop_carried(op, next->index) == carried ? kind_of_loop(f, op, next->index) : -1;
    for (unsigned k = 0; k < op->operand_count; k++) {
        const TileValue *operand = tile_op_operand(op, k);
        if (operand != carried && !varies(f, operand)) continue;
        kind = kind < 0 ? kind_of_operand(f, carried, op, k, body) : -1;
        if (kind < 0) return -1;
    }
    return kind;
}

/* The loop has no bounds that vary: other values that it carries would make them. */
static int kind_of_loop(Finder *f, const TileOp *loop, unsigned i) {
    const TileBlock *body = &loop->regions[0];
    for (TileOperand bound = TILE_OPERAND_LO; bound <= TILE_OPERAND_STEP; bound++)
        if (varies(f, tile_op_named(loop, bound))) return -1;
    return kind_of_next(f, body->arguments[1 + i], tile_op_operand(body->last, i), body);
}

/* Is the i-th value that the loop carries combined with what depends on no carried value? */
static bool find_op(Finder *f, unsigned i) {
    const TileOp *loop = f->merge->state_loop;
    int kind = tile_op_integer(loop, TILE_ATTRIBUTE_ORDERED, 0) ? -1 : kind_of_loop(f, loop, f->merge->values[i].state);
    f->merge->values[i].rule = GPU_MERGE_OP;
    f->merge->values[i].kind = (TileName)kind;
    return kind >= 0;
}

/* ---- folds ---- */

static bool is_of_fold(Finder *f, const TileOp *fold, unsigned at, unsigned *carried) {
    const TileValue *init = tile_op_named_at(fold, TILE_OPERAND_INIT, at);
    for (unsigned i = 0; i < f->merge->count; i++) {
        if (init != carried_of(f->merge, i)) continue;
        *carried = i;
        return next_of(f->merge, i) == &fold->results[at] && tile_value_has_one_use(init) &&
               tile_value_has_one_use(&fold->results[at]);
    }
    return false;
}

/* Does the fold take all of its initial values from the iteration before, and nothing else that varies? */
static bool find_fold(Finder *f, unsigned i) {
    TileOp *fold = next_of(f->merge, i)->op;
    GpuMerge *merge = f->merge;
    unsigned carried, number = merge->fold_count;
    if (!fold || fold->id != TILE_OP_FOLD || !tile_op_has_part(fold, TILE_PARTS_INIT)) return false;
    if (fold->block != &merge->state_loop->regions[0] || merge->count + number >= TILE_MAX_FOLD) return false;
    if (fold->result_count >= TILE_MAX_FOLD) return false;
    for (unsigned k = 0; k < fold->result_count; k++)
        if (varies(f, tile_op_operand(fold, k))) return false;
    if (tile_op_has_part(fold, TILE_PARTS_MASK) && varies(f, tile_op_named(fold, TILE_OPERAND_MASK))) return false;
    for (unsigned k = 0; k < fold->result_count; k++) {
        if (!is_of_fold(f, fold, k, &carried)) return false;
        GpuMerged *value = &merge->values[carried];
        *value = (GpuMerged){.rule = GPU_MERGE_FOLD, .state = value->state, .fold = number, .at = k};
    }
    merge->folds[merge->fold_count++] = fold;
    return true;
}

static bool is_found_fold(const GpuMerge *merge, unsigned i) {
    for (unsigned k = 0; k < merge->fold_count; k++)
        if (next_of(merge, i)->op == merge->folds[k]) return true;
    return false;
}

/* ---- choices ---- */

static bool is_nan_test(const TileValue *value, const TileValue *of) {
    const TileOp *op = tile_value_def(value, TILE_OP_ISNAN);
    return op && tile_op_operand(op, 0) == of;
}

/* Is x strictly greater, or less, than y; or is x alone a NaN? Then the first of equals stays, and what a part begins
 * with may be chosen in several parts: it replaces nothing. */
static bool is_strictly_better(const TileValue *better, const TileValue *x, const TileValue *y) {
    const TileOp *op = better->op;
    if (!op || op->operand_count != 2) return false;
    const TileValue *a = tile_op_operand(op, 0), *b = tile_op_operand(op, 1);
    if (op->id == TILE_OP_GT || op->id == TILE_OP_LT) return (a == x && b == y) || (a == y && b == x);
    if (op->id == TILE_OP_OR)
        return (is_strictly_better(a, x, y) && tile_value_def(b, TILE_OP_AND) && is_strictly_better(b, x, y)) ||
               (is_strictly_better(b, x, y) && tile_value_def(a, TILE_OP_AND) && is_strictly_better(a, x, y));
    if (op->id != TILE_OP_AND) return false;
    for (unsigned k = 0; k < 2; k++) {
        const TileOp *other = tile_value_def(k ? a : b, TILE_OP_NOT);
        if (other && is_nan_test(k ? b : a, x) && is_nan_test(tile_op_operand(other, 0), y)) return true;
    }
    return false;
}

/* Without `and not isnan(top)`, where a maximum or minimum is carried: from a NaN on nothing is chosen, by a later part either. */
static const TileValue *without_guard(const Finder *f, const TileValue *better) {
    const TileOp *both = tile_value_def(better, TILE_OP_AND);
    for (unsigned k = 0; both && k < 2; k++) {
        const TileOp *no = tile_value_def(tile_op_operand(both, k), TILE_OP_NOT);
        for (unsigned i = 0; no && i < f->merge->count; i++) {
            const GpuMerged *value = &f->merge->values[i];
            bool extreme = value->rule == GPU_MERGE_OP && (value->kind == TILE_KIND_MAX || value->kind == TILE_KIND_MIN);
            if (extreme && is_nan_test(tile_op_operand(no, 0), carried_of(f->merge, i))) return tile_op_operand(both, !k);
        }
    }
    return better;
}

/* The select that replaces the carried value by one that does not vary. */
static TileOp *find_select(Finder *f, unsigned i) {
    TileOp *select = tile_value_def(next_of(f->merge, i), TILE_OP_SELECT);
    bool plain = select && select->block == &f->merge->state_loop->regions[0] &&
                 tile_op_named(select, TILE_OPERAND_Y) == carried_of(f->merge, i) &&
                 !varies(f, tile_op_named(select, TILE_OPERAND_X));
    return plain ? select : NULL;
}

static bool find_choice(Finder *f, unsigned i) {
    TileOp *select = find_select(f, i);
    for (unsigned k = 0; select && k < f->merge->count; k++) {
        TileOp *key = find_select(f, k);
        if (!key || tile_op_operand(key, 0) != tile_op_operand(select, 0)) continue;
        const TileValue *better = without_guard(f, tile_op_operand(key, 0));
        if (!is_strictly_better(better, tile_op_operand(key, 1), carried_of(f->merge, k))) continue;
        f->merge->values[i].rule = GPU_MERGE_CHOICE;
        f->merge->values[i].key = k;
        return true;
    }
    return false;
}

/* ---- rescaled sums ---- */

/* A value of one iteration as a function of the base that it subtracts in exponents. */
typedef enum Form {
    FORM_OTHER,
    FORM_FREE,   /* does not vary */
    FORM_SCALED, /* a sum of products with exp(.. - base) */
    FORM_SUM,    /* the carried sum times a factor, and such a value */
} Form;

typedef struct Rescaling {
    Finder *f;
    const TileValue *sum;  /* as carried */
    const TileValue *base; /* what exponents subtract; NULL: none was seen */
    const TileValue *scale; /* the constant by which differences are multiplied; NULL: none */
    TileValue *factor;
    unsigned exp; /* TileOpId */
} Rescaling;

static TileValue *without_shape(TileValue *value) {
    while (value->op && (value->op->id == TILE_OP_BROADCAST || value->op->id == TILE_OP_RESHAPE ||
                         value->op->id == TILE_OP_SPLAT))
        value = tile_op_operand(value->op, 0);
    return value;
}

/* What is subtracted in x - base or fma(x, y, -base); NULL: nothing. */
static TileValue *subtrahend(const TileOp *op) {
    if (op->id == TILE_OP_SUB) return without_shape(tile_op_operand(op, 1));
    if (op->id != TILE_OP_FMA) return NULL;
    TileOp *neg = tile_value_def(without_shape(tile_op_named(op, TILE_OPERAND_Z)), TILE_OP_NEG);
    return neg ? without_shape(tile_op_operand(neg, 0)) : NULL;
}

static bool is_positive(const TileValue *value) {
    uint64_t bits;
    return tile_value_bits(value, &bits) && tile_scalar_to_double(value->type->scalar, bits) > 0 &&
           tile_scalar_to_double(value->type->scalar, bits) < 1e30;
}

/* The difference of exp(difference), or of exp(difference * k) with a constant k > 0. */
static const TileOp *difference_of(const TileOp *exp, const TileValue **scale) {
    const TileValue *exponent = tile_op_operand(exp, 0);
    const TileOp *product = tile_value_def(exponent, TILE_OP_MUL);
    *scale = NULL;
    for (unsigned i = 0; product && i < 2; i++) {
        const TileOp *difference = tile_value_def(tile_op_operand(product, i), TILE_OP_SUB);
        if (!difference || !is_positive(without_shape(tile_op_operand(product, !i)))) continue;
        *scale = without_shape(tile_op_operand(product, !i));
        return difference;
    }
    return exponent->op;
}

static bool is_same_scale(const TileValue *x, const TileValue *y) {
    uint64_t bits, other;
    if (!x || !y) return x == y;
    return tile_value_bits(x, &bits) && tile_value_bits(y, &other) && bits == other && x->type->scalar == y->type->scalar;
}

/* exp(x - base), where x does not vary; all with one factor of the difference. */
static Form form_of_exp(Rescaling *r, const TileOp *exp) {
    const TileValue *scale;
    const TileOp *difference = difference_of(exp, &scale);
    const TileValue *base = difference ? subtrahend(difference) : NULL;
    if (!base || !varies(r->f, base)) return FORM_OTHER;
    if (r->base && (r->base != base || r->exp != exp->id || !is_same_scale(r->scale, scale))) return FORM_OTHER;
    for (unsigned i = 0; i < (difference->id == TILE_OP_FMA ? 2u : 1u); i++)
        if (varies(r->f, tile_op_operand(difference, i))) return FORM_OTHER;
    r->base = base;
    r->scale = scale;
    r->exp = exp->id;
    return FORM_SCALED;
}

static Form form_of(Rescaling *r, TileValue *value, unsigned depth);

static Form form_of_product(Rescaling *r, TileValue *x, TileValue *y, unsigned depth) {
    if (y == r->sum || form_of(r, y, depth) == FORM_SCALED) {
        TileValue *swapped = x;
        x = y;
        y = swapped;
    }
    if (x == r->sum && !r->factor && y != x) {
        r->factor = y;
        return FORM_SUM;
    }
    return form_of(r, x, depth) == FORM_SCALED && !varies(r->f, y) ? FORM_SCALED : FORM_OTHER;
}

static Form form_of_sum(Form x, Form y) {
    if (x == FORM_SCALED && y == FORM_SCALED) return FORM_SCALED;
    return (x == FORM_SUM && y == FORM_SCALED) || (x == FORM_SCALED && y == FORM_SUM) ? FORM_SUM : FORM_OTHER;
}

/* 0 or -0. */
static bool is_zero(const TileValue *value) {
    uint64_t bits;
    return tile_value_bits(value, &bits) && tile_scalar_to_double(value->type->scalar, bits) == 0;
}

/* a @ b + c, of which a or b is a sum of products with exp(.. - base). */
static Form form_of_dot(Rescaling *r, const TileOp *dot, unsigned depth) {
    TileValue *a = tile_op_named(dot, TILE_OPERAND_A), *b = tile_op_named(dot, TILE_OPERAND_B),
              *c = tile_op_named(dot, TILE_OPERAND_SUM);
    if (tile_op_integer(dot, TILE_ATTRIBUTE_ORDERED, 0) || varies(r->f, a) == varies(r->f, b)) return FORM_OTHER;
    return form_of_sum(form_of(r, varies(r->f, a) ? a : b, depth), form_of(r, c, depth));
}

static Form form_of(Rescaling *r, TileValue *value, unsigned depth) {
    if (!varies(r->f, value)) return FORM_FREE;
    const TileOp *op = value->op;
    if (!op || !depth--) return FORM_OTHER;
    TileValue *x = op->operand_count ? tile_op_operand(op, 0) : NULL;
    switch (op->id) {
    case TILE_OP_EXP:
    case TILE_OP_EXP2: return form_of_exp(r, op);
    case TILE_OP_MUL: return form_of_product(r, x, tile_op_operand(op, 1), depth);
    case TILE_OP_ADD: return form_of_sum(form_of(r, x, depth), form_of(r, tile_op_operand(op, 1), depth));
    case TILE_OP_FMA:
        return form_of_sum(form_of_product(r, x, tile_op_operand(op, 1), depth),
                           form_of(r, tile_op_named(op, TILE_OPERAND_Z), depth));
    case TILE_OP_REDUCE:
        if (tile_op_integer(op, TILE_ATTRIBUTE_KIND, TILE_KIND_SUM) != TILE_KIND_SUM) return FORM_OTHER;
        return form_of(r, x, depth) == FORM_SCALED ? FORM_SCALED : FORM_OTHER;
    case TILE_OP_FILL:
        if (!is_zero(tile_op_operand(op, 1))) return FORM_OTHER;
        return form_of(r, x, depth) == FORM_SCALED ? FORM_SCALED : FORM_OTHER;
    case TILE_OP_DOT: return form_of_dot(r, op, depth);
    case TILE_OP_CONVERT:
        if (!tile_scalar_is_float(x->type->scalar) || !tile_scalar_is_float(value->type->scalar)) return FORM_OTHER;
        return form_of(r, x, depth) == FORM_SCALED ? FORM_SCALED : FORM_OTHER;
    case TILE_OP_BROADCAST:
    case TILE_OP_PERMUTE:
    case TILE_OP_RESHAPE: return form_of(r, x, depth) == FORM_SCALED ? FORM_SCALED : FORM_OTHER;
    }
    return FORM_OTHER;
}

/* The carried value whose next one this is, a maximum; -1: none. */
static int top_of(const Finder *f, const TileValue *next) {
    for (unsigned i = 0; i < f->merge->count; i++) {
        const GpuMerged *value = &f->merge->values[i];
        if (next == next_of(f->merge, i) && value->rule == GPU_MERGE_OP && value->kind == TILE_KIND_MAX) return (int)i;
    }
    return -1;
}

/* Is it true where the value is -inf: value == -inf, or abs(value) == inf? */
static bool finds_infinity(const TileValue *condition, const TileValue *value) {
    const TileOp *op = tile_value_def(condition, TILE_OP_EQ);
    if (!op) return false;
    const TileOp *abs = tile_value_def(tile_op_operand(op, 0), TILE_OP_ABS);
    TileScalar scalar = value->type->scalar;
    uint64_t bits, least = tile_scalar_least(scalar), greatest = tile_scalar_greatest(scalar);
    if (!tile_value_bits(tile_op_operand(op, 1), &bits)) return false;
    return abs ? tile_op_operand(abs, 0) == value && bits == greatest
               : tile_op_operand(op, 0) == value && bits == least;
}

/* The top of which this is a function: next, or a constant where next is infinite. So no -inf - -inf appears, and a part
 * may begin with -inf. -1: it is anything else. */
static int guarded_top(const Finder *f, const TileValue *value) {
    const TileOp *select = tile_value_def(value, TILE_OP_SELECT);
    if (!select || !is_zero(tile_op_named(select, TILE_OPERAND_X))) return -1;
    const TileValue *next = tile_op_named(select, TILE_OPERAND_Y);
    int top = top_of(f, next);
    return top >= 0 && finds_infinity(tile_op_named(select, TILE_OPERAND_CONDITION), next) ? top : -1;
}

/* The top that this is. The launch's first part begins as the loop does, the others with -inf, so that has to be known. */
static int bare_top(const Finder *f, const TileValue *value) {
    int top = top_of(f, value);
    uint64_t bits;
    if (top < 0 || !tile_value_bits(tile_loop_carried(f->merge->loop, (unsigned)top), &bits)) return -1;
    TileScalar scalar = value->type->scalar;
    double first = tile_scalar_to_double(scalar, bits);
    if (bits != tile_scalar_least(scalar) && !(first > -INFINITY && first < INFINITY)) return -1;
    f->merge->values[top].base = bits == tile_scalar_least(scalar) ? GPU_MERGE_BASE_BARE : GPU_MERGE_BASE_FINITE;
    return top;
}

/* Is the difference that of what the base is of the old top, and the base: old - base, (old - base) * k, or old * k - base with k > 0? */
static bool is_rescaling(const Rescaling *r) {
    const TileOp *exp = without_shape(r->factor)->op, *scaled = tile_value_def(r->base, TILE_OP_MUL);
    const TileValue *scale = NULL;
    const TileOp *difference = exp && exp->id == r->exp ? difference_of(exp, &scale) : NULL;
    if (!difference || subtrahend(difference) != r->base || !is_same_scale(scale, r->scale)) return false;
    unsigned at = scaled && is_positive(tile_op_operand(scaled, 0));
    if (scaled && !is_positive(tile_op_operand(scaled, !at))) return false;
    const TileValue *base = scaled ? tile_op_operand(scaled, at) : r->base;
    int top = guarded_top(r->f, base);
    if (top < 0) top = bare_top(r->f, base);
    if (top < 0) return false;
    const TileValue *old = carried_of(r->f->merge, (unsigned)top), *x = tile_op_operand(difference, 0);
    if (difference->id == TILE_OP_SUB && !scaled) return x == old;
    if (difference->id != TILE_OP_FMA || !scaled) return false;
    const TileValue *y = tile_op_operand(difference, 1), *k = tile_op_operand(scaled, !at);
    return (x == old && tile_value_is_same(y, k)) || (y == old && tile_value_is_same(x, k));
}

static bool find_rescaled(Finder *f, unsigned i) {
    Rescaling r = {.f = f, .sum = carried_of(f->merge, i)};
    if (form_of(&r, next_of(f->merge, i), MOST_DEPTH) != FORM_SUM || !r.base || !is_rescaling(&r)) return false;
    f->merge->values[i].rule = GPU_MERGE_RESCALED;
    f->merge->values[i].factor = r.factor;
    return true;
}

/* ---- all values ---- */

typedef struct Loaded {
    uint64_t most, all; /* lanes of the largest tile, and of all */
} Loaded;

static void count_loaded(TileOp *op, void *state) {
    Loaded *loaded = state;
    if (op->id != TILE_OP_LOAD_TILE || !tile_type_is_tile(op->results[0].type)) return;
    uint64_t lanes = (uint64_t)tile_type_lanes(op->results[0].type);
    loaded->all += lanes;
    if (lanes > loaded->most) loaded->most = lanes;
}

/* Values of one shape that depend on each other are merged by a fold, others, and those that are nearly as many as what an iteration
 * loads, one part after the other: a part has to do more than that. */
static const char *obstacle_of_shapes(GpuMerge *merge) {
    enum { LEAST_SHARE = 16 };
    uint64_t most = 1;
    Loaded loaded = {0, 0};
    tile_block_walk(&merge->loop->regions[0], count_loaded, &loaded);
    const TileType *first = NULL;
    merge->tiles = merge->inductions;
    for (unsigned i = 0; i < merge->count; i++) {
        const TileType *type = merge->loop->results[i].type;
        if (merge->values[i].rule == GPU_MERGE_INDUCTION) continue;
        if (!first) first = type;
        merge->tiles |= !tile_type_same_shape(type, first);
        if (!tile_type_is_tile(type)) continue;
        if (type->rank == TILE_MAX_TILE_RANK) return "the values that it carries have too many axes";
        if ((uint64_t)tile_type_lanes(type) > most) most = (uint64_t)tile_type_lanes(type);
    }
    bool many = !merge->tiles && most > 1 && LEAST_SHARE * most > loaded.most;
    uint64_t lanes = many ? loaded.all : loaded.most;
    merge->tiles |= many;
    if (many && !loaded.all) return "it loads nothing, and carries tiles";
    if (merge->tiles && merge->fold_count) return "the values that it carries differ in kind, or are many";
    if (merge->tiles && lanes) merge->least_trips = (int64_t)((LEAST_SHARE * most + lanes - 1) / lanes);
    return NULL;
}

/* ---- induction variables and loops in loops ---- */

static TileValue *argument_of(const GpuMerge *merge, unsigned i) { return merge->loop->regions[0].arguments[1 + i]; }

/* Does the i-th value that the loop carries change by the same number in each iteration, and is it used for more than
 * that? */
static bool find_induction(GpuMerge *merge, unsigned i) {
    const TileValue *carried = argument_of(merge, i), *next = tile_op_operand(merge->loop->regions[0].last, i);
    const TileOp *op = next->op;
    if (next->type->kind != TILE_TYPE_SCALAR || next->type->scalar != TILE_I64 || !op) return false;
    if (tile_value_has_one_use(carried)) return false;
    if (op->id != TILE_OP_ADD && op->id != TILE_OP_SUB) return false;
    unsigned at = op->id == TILE_OP_ADD && tile_op_operand(op, 0) != carried;
    if (tile_op_operand(op, at) != carried || !tile_value_outside(tile_op_operand(op, !at), merge->loop)) return false;
    merge->values[i] = (GpuMerged){.rule = GPU_MERGE_INDUCTION};
    return true;
}

/* The place of the value among those that the op carries, which is a loop's first value; -1: elsewhere, or used twice. */
static int place_in(const TileOp *loop, const TileValue *carried) {
    for (unsigned k = 0; k < loop->result_count; k++)
        if (tile_loop_carried(loop, k) == carried && tile_value_has_one_use(carried)) return (int)k;
    return -1;
}

/* A loop in it through which all else that it carries goes: what that one carries is merged as the inner loop says. */
static void find_inner(Finder *f) {
    GpuMerge *merge = f->merge;
    const TileOp *yield = merge->loop->regions[0].last;
    TileOp *inner = NULL;
    unsigned at[TILE_MAX_FOLD], count = 0;
    for (unsigned i = 0; i < merge->count; i++) {
        const TileValue *next = tile_op_operand(yield, i);
        if (merge->values[i].rule == GPU_MERGE_INDUCTION) continue;
        if (!next->op || next->op->id != TILE_OP_FOR || (inner && inner != next->op)) return;
        inner = next->op;
        int place = place_in(inner, argument_of(merge, i));
        if (inner->block != yield->block || place < 0 || (unsigned)place != next->index) return;
        at[i] = (unsigned)place;
        count++;
    }
    if (!inner || count != inner->result_count || tile_op_integer(inner, TILE_ATTRIBUTE_ORDERED, 0)) return;
    for (TileOperand bound = TILE_OPERAND_LO; bound <= TILE_OPERAND_STEP; bound++)
        if (varies(f, tile_op_named(inner, bound))) return;
    merge->state_loop = inner;
    for (unsigned i = 0; i < merge->count; i++)
        if (merge->values[i].rule != GPU_MERGE_INDUCTION) merge->values[i].state = at[i];
}

static bool find_rules(Finder *f) {
    GpuMerge *merge = f->merge;
    bool found[TILE_MAX_FOLD];
    merge->simple = true;
    for (unsigned i = 0; i < merge->count; i++) {
        bool induction = merge->values[i].rule == GPU_MERGE_INDUCTION;
        found[i] = induction || find_op(f, i);
        merge->simple &= found[i];
        merge->inductions |= induction;
    }
    for (unsigned i = 0; i < merge->count; i++) {
        if (!found[i]) found[i] = is_found_fold(merge, i) || find_fold(f, i) || find_choice(f, i) || find_rescaled(f, i);
        if (!found[i]) return false;
    }
    return true;
}

const char *gpu_merge_find(GpuMerge *merge, TileOp *loop, TileArena *scratch) {
    *merge = (GpuMerge){.loop = loop, .state_loop = loop, .count = loop->result_count, .least_trips = 1};
    Finder f = {.merge = merge};
    for (unsigned i = 0; i < merge->count; i++)
        if (!find_induction(merge, i)) merge->values[i] = (GpuMerged){.rule = GPU_MERGE_NONE, .state = i};
    tile_map_init(&f.varying, scratch);
    find_varying(&f, &loop->regions[0]);
    if (!find_rules(&f)) {
        find_inner(&f);
        if (merge->state_loop == loop || !find_rules(&f) || merge->fold_count)
            return "a value that it carries is more than combined once in each iteration";
    }
    return merge->simple ? NULL : obstacle_of_shapes(merge);
}
