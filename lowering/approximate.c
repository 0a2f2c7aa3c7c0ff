/* Purpose: take the fast forms of exp, exp2, sigmoid, tanh and erf of f32 (`approx`) where their results are only rounded to floats
 * of at most 16 bits: a few units of the last place of f32 are less than a thousandth of one of theirs.
 *
 * What a value goes through on its way may add, multiply, divide, choose and reduce, also in loops, and take roots and logarithms:
 * none of that makes more of an error of the function than of the rounding of its own result. Where it is compared, converted to
 * an integer, or an exponent, the exact form stays.
 *
 * Before:
 *     func kernel tile @k(%x: f32, %y: tensor<bf16, 0, out>, %z: tensor<f32, 0, out>) {
 *       grid {
 *         %a = sigmoid %x : f32
 *         %b = mul %x, %a : f32
 *         %c = convert %b : bf16
 *         store_tile %y, %c {access = []}
 *         %d = exp %x : f32
 *         store_tile %z, %d {access = []}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func kernel tile @k(%x: f32, %y: tensor<bf16, 0, out>, %z: tensor<f32, 0, out>) {
 *       grid {
 *         %a = sigmoid %x {approx = 1} : f32
 *         %b = mul %x, %a : f32
 *         %c = convert %b : bf16
 *         store_tile %y, %c {access = []}
 *         %d = exp %x : f32
 *         store_tile %z, %d {access = []}
 *         yield
 *       }
 *       return
 *     }
 * 1 + tanh x, as in the usual approximation of gelu, becomes 2 sigmoid 2x: a third of the instructions, and nothing cancels where tanh x is
 * near -1.
 *
 * A quotient by a constant becomes the product with its reciprocal, rounded to f32, where only 16 bits of it matter in the same way, or where
 * it is the argument of an approximate tanh or erf alone, which makes no more of its error of 1.5 units: a division is eight instructions.
 *
 * What goes into exponents alone, of which 16 bits matter, may be off by 2^-16 wherever it lies: the error of e^x is that of x. So a tanh whose
 * multiples, by up to 128, do so, as the soft caps of attention, is 2 sigmoid 2x - 1, whose error is that of 1 also near 0, where most
 * arguments are (`small`). e^(x - y), where x is known to be small, is 2^(x / ln 2 - y / ln 2): one fma for each x where y is that of a whole row. An x that is
 * itself a factor times s and a term, and of which otherwise maxima are taken, is no fma of its own: maxima are those of s.
 *
 * Needs: inline, contract. Keeps: all other ops. Cost: linear in the ops, times the depth of the loops, and for each tanh the ops behind it. */
#include <math.h>

#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "lang/scalar/scalar.h"
#include "lowering/pass.h"

typedef struct Approximation {
    TilePassContext *context;
    TileMap exact; /* values of which more than 16 bits matter */
    bool changed;
} Approximation;

static bool is_exact(const Approximation *a, const TileValue *value) { return tile_map_get(&a->exact, value) != NULL; }

static void need(Approximation *a, TileValue *value) {
    if (is_exact(a, value)) return;
    tile_map_set(&a->exact, value, value);
    a->changed = true;
}

static bool is_narrow(const TileType *type) {
    return tile_scalar_is_float(type->scalar) && tile_scalar_bits(type->scalar) <= 16;
}

/* Does an error of the operand remain as small in the op's results? */
static bool passes(const TileOp *op, unsigned index) {
    switch (op->id) {
    case TILE_OP_ADD:
    case TILE_OP_SUB:
    case TILE_OP_MUL:
    case TILE_OP_DIV:
    case TILE_OP_FMA:
    case TILE_OP_NEG:
    case TILE_OP_SQRT:
    case TILE_OP_RSQRT:
    case TILE_OP_LOG:
    case TILE_OP_LOG2:
    case TILE_OP_LOG1P:
    case TILE_OP_TANH:
    case TILE_OP_ERF:
    case TILE_OP_ABS:
    case TILE_OP_MIN:
    case TILE_OP_MAX:
    case TILE_OP_SPLAT:
    case TILE_OP_BROADCAST:
    case TILE_OP_RESHAPE:
    case TILE_OP_PERMUTE:
    case TILE_OP_REDUCE:
    case TILE_OP_FILL: return true;
    case TILE_OP_SELECT: return index > 0;
    case TILE_OP_DOT: return index == 2; /* sums that it goes on from */
    default: return false;
    }
}

/* The values that a yield gives the op around it: its results, and what a loop carries to its next iteration. */
static bool is_yield_of(const TileOp *op) {
    const TileOp *around = op->id == TILE_OP_YIELD ? op->block->op : NULL;
    return around && (around->id == TILE_OP_FOR || around->id == TILE_OP_IF);
}

static bool matters(const Approximation *a, const TileOp *op, unsigned index) {
    if (op->id == TILE_OP_CONVERT && is_narrow(op->results[0].type)) return false;
    if (op->id == TILE_OP_STATEMENT) return false; /* who looks at a kernel's steps sees what it computes without them */
    if (is_yield_of(op)) {
        const TileOp *around = op->block->op;
        return is_exact(a, &around->results[index]) ||
               (around->id == TILE_OP_FOR && is_exact(a, op->block->arguments[1 + index]));
    }
    if (op->id == TILE_OP_FOR) {
        unsigned count, first = tile_op_operands(op, TILE_OPERAND_CARRIED, &count);
        return index < first || is_exact(a, op->regions[0].arguments[1 + index - first]) || is_exact(a, &op->results[index - first]);
    }
    return !passes(op, index) || is_exact(a, &op->results[0]);
}

/* From the last op to the first, so that users come before what they use. */
static void find_exact(Approximation *a, TileBlock *block) {
    for (TileOp *op = block->last; op; op = op->previous) {
        for (unsigned r = op->region_count; r-- > 0;) find_exact(a, &op->regions[r]);
        for (unsigned i = 0; i < op->operand_count; i++)
            if (matters(a, op, i)) need(a, tile_op_operand(op, i));
    }
}

/* The constant in each lane; false: it is none. */
static bool read_constant(const TileValue *value, float *number) {
    uint64_t bits;
    while (value->op && (value->op->id == TILE_OP_SPLAT || value->op->id == TILE_OP_BROADCAST)) value = tile_op_operand(value->op, 0);
    if (value->type->scalar != TILE_F32 || !tile_value_bits(value, &bits)) return false;
    *number = (float)tile_scalar_to_double(TILE_F32, bits);
    return true;
}

/* By how much is a value multiplied on its way into an exponent at most? It is followed through all that takes it. */
typedef struct Way {
    const Approximation *a;
    TileMap factors; /* of values: a double */
} Way;

enum { MOST_FACTOR = 128 };

static bool ends_in_exponents(Way *way, const TileValue *value, double factor);

/* What a yield gives is the loop's result, and what its next iteration begins with. */
static bool yield_ends(Way *way, const TileOp *yield, unsigned index, double factor) {
    const TileOp *around = yield->block->op;
    if (!is_yield_of(yield) || !ends_in_exponents(way, &around->results[index], factor)) return false;
    return around->id == TILE_OP_IF || ends_in_exponents(way, yield->block->arguments[1 + index], factor);
}

static bool is_infinite(const TileValue *value) {
    float number;
    return read_constant(value, &number) && isinf(number);
}

static bool is_extreme(const TileOp *reduce) {
    int64_t kind = tile_op_integer(reduce, TILE_ATTRIBUTE_KIND, TILE_KIND_SUM);
    return kind == TILE_KIND_MAX || kind == TILE_KIND_MIN;
}

static bool use_ends(Way *way, const TileUse *use, double factor) {
    const TileOp *op = use->user;
    unsigned count, first, index = use->index;
    float number;
    switch (op->id) {
    case TILE_OP_EXP:
    case TILE_OP_EXP2: return op->results[0].type->scalar == TILE_F32 && !is_exact(way->a, &op->results[0]);
    case TILE_OP_EQ:
    case TILE_OP_NE: return is_infinite(tile_op_operand(op, 1 - index));
    case TILE_OP_YIELD: return yield_ends(way, op, index, factor);
    case TILE_OP_FOR:
        first = tile_op_operands(op, TILE_OPERAND_CARRIED, &count);
        return index >= first && ends_in_exponents(way, op->regions[0].arguments[1 + index - first], factor) &&
               ends_in_exponents(way, &op->results[index - first], factor);
    case TILE_OP_MUL:
        return read_constant(tile_op_operand(op, 1 - index), &number) && ends_in_exponents(way, &op->results[0], factor * fabs(number));
    case TILE_OP_FMA:
        if (index < 2 && !read_constant(tile_op_operand(op, 1 - index), &number)) return false;
        return ends_in_exponents(way, &op->results[0], index < 2 ? factor * fabs(number) : factor);
    case TILE_OP_REDUCE:
        return is_extreme(op) && ends_in_exponents(way, &op->results[0], factor);
    case TILE_OP_SELECT: return index > 0 && ends_in_exponents(way, &op->results[0], factor);
    case TILE_OP_ADD:
    case TILE_OP_SUB:
    case TILE_OP_NEG:
    case TILE_OP_MIN:
    case TILE_OP_MAX:
    case TILE_OP_SPLAT:
    case TILE_OP_BROADCAST:
    case TILE_OP_RESHAPE:
    case TILE_OP_PERMUTE:
    case TILE_OP_FILL: return ends_in_exponents(way, &op->results[0], factor);
    default: return false;
    }
}

static bool ends_in_exponents(Way *way, const TileValue *value, double factor) {
    const double *known = tile_map_get(&way->factors, value);
    if (known && *known >= factor) return true;
    if (factor > MOST_FACTOR || !(factor > 0)) return false;
    double *mine = TILE_NEW(way->a->context->scratch, double);
    *mine = factor;
    tile_map_set(&way->factors, value, mine);
    for (const TileUse *use = value->first_use; use; use = use->next)
        if (!use_ends(way, use, factor)) return false;
    return true;
}

static bool is_cap(const Approximation *a, const TileOp *tanh) {
    Way way = {.a = a};
    if (tanh->id != TILE_OP_TANH || tanh->results[0].type->scalar != TILE_F32 || !tanh->results[0].first_use) return false;
    tile_map_init(&way.factors, a->context->scratch);
    return ends_in_exponents(&way, &tanh->results[0], 1);
}

static void mark(TileOp *op, void *state) {
    Approximation *a = state;
    switch (op->id) {
    case TILE_OP_EXP:
    case TILE_OP_EXP2:
    case TILE_OP_SIGMOID:
    case TILE_OP_TANH:
    case TILE_OP_ERF: break;
    default: return;
    }
    const TileValue *result = &op->results[0];
    if (result->type->scalar != TILE_F32 || tile_op_get(op, TILE_ATTRIBUTE_APPROX)) return;
    if (is_exact(a, result) && !is_cap(a, op)) return;
    tile_op_set_integer(a->context->module, op, TILE_ATTRIBUTE_APPROX, 1);
    a->changed = true;
}

/* The tanh of 1 + tanh x, if it is approximated, and used for nothing else; NULL: the op is no such sum. */
static TileOp *find_tanh(const TileOp *op) {
    const uint64_t ONE = 0x3f800000;
    if (op->id != TILE_OP_ADD || op->results[0].type->scalar != TILE_F32) return NULL;
    for (unsigned i = 0; i < 2; i++) {
        TileOp *tanh = tile_value_def(tile_op_operand(op, i), TILE_OP_TANH);
        uint64_t bits;
        bool one = tile_value_bits(tile_op_operand(op, 1 - i), &bits) && bits == ONE;
        if (tanh && one && tile_op_get(tanh, TILE_ATTRIBUTE_APPROX) && tile_value_has_one_use(&tanh->results[0])) return tanh;
    }
    return NULL;
}

static void replace_tanh(TileModule *module, TileOp *sum, TileOp *tanh) {
    const uint64_t TWO = 0x40000000;
    const TileAttribute approximate = {.key = TILE_ATTRIBUTE_APPROX, .integer = 1};
    TileBuilder b = tile_builder_before(module, sum);
    b.location = tanh->location;
    TileValue *two = tile_build_bits(&b, tanh->results[0].type, TWO),
              *twice = tile_build_binary(&b, TILE_OP_MUL, tile_op_operand(tanh, 0), two);
    TileOp *sigmoid = tile_build_op(&b, TILE_OP_SIGMOID, &twice, 1, &approximate, 1, &twice->type, 1);
    tile_value_replace(&sum->results[0], tile_build_binary(&b, TILE_OP_MUL, &sigmoid->results[0], two));
    tile_op_erase(sum);
    tile_op_erase(tanh);
}

/* ---- quotients ---- */

/* Is the value taken by nothing but functions whose results' relative error is at most that of their argument, and which are approximate
 * themselves? */
static bool is_argument(const TileValue *value) {
    if (!value->first_use) return false;
    for (const TileUse *use = value->first_use; use; use = use->next) {
        bool function = use->user->id == TILE_OP_TANH || use->user->id == TILE_OP_ERF;
        if (!function || !tile_op_get(use->user, TILE_ATTRIBUTE_APPROX)) return false;
    }
    return true;
}

/* A number by which nothing becomes infinite, or 0, that the quotient would not be. */
static bool is_usual(float number) { return isnormal(number) && isnormal(1 / number); }

static bool try_quotient(const Approximation *a, TileOp *op) {
    float number;
    if (op->id != TILE_OP_DIV || op->results[0].type->scalar != TILE_F32) return false;
    if (is_exact(a, &op->results[0]) && !is_argument(&op->results[0])) return false;
    if (!read_constant(tile_op_operand(op, 1), &number) || !is_usual(number)) return false;
    TileBuilder b = tile_builder_before(a->context->module, op);
    b.location = op->location;
    TileValue *inverse = tile_build_bits(&b, op->results[0].type, tile_scalar_from_double(TILE_F32, 1 / number));
    tile_value_replace(&op->results[0], tile_build_binary(&b, TILE_OP_MUL, tile_op_operand(op, 0), inverse));
    tile_op_erase(op);
    return true;
}

/* ---- exponents ---- */

/* The tanh of a product with a constant, or which the op is itself, if there is no such product. */
static TileOp *tanh_of(TileOp *op, float *factor) {
    *factor = 1;
    for (unsigned i = 0; i < 2 && op->id == TILE_OP_MUL; i++) {
        TileOp *tanh = tile_value_def(tile_op_operand(op, i), TILE_OP_TANH);
        if (tanh && tile_value_has_one_use(&tanh->results[0]) && read_constant(tile_op_operand(op, 1 - i), factor)) return tanh;
    }
    const TileUse *use = op->id == TILE_OP_TANH ? op->results[0].first_use : NULL;
    if (!use) return NULL;
    bool later = use->user->id == TILE_OP_MUL && !use->next && read_constant(tile_op_operand(use->user, 1 - use->index), factor);
    return later ? NULL : op;
}

/* The value twice, where it is a product with a constant by another constant. */
static TileValue *build_twice(TileBuilder *b, TileValue *x) {
    TileOp *product = tile_value_def(x, TILE_OP_MUL);
    float number;
    for (unsigned i = 0; product && i < 2; i++)
        if (read_constant(tile_op_operand(product, i), &number) && is_usual(2 * number))
            return tile_build_binary(b, TILE_OP_MUL, tile_op_operand(product, 1 - i), tile_build_number(b, x->type, 2 * number));
    return tile_build_binary(b, TILE_OP_MUL, x, tile_build_number(b, x->type, 2));
}

/* c tanh x = 2 c sigmoid 2x - c. Most scores are much smaller than what bounds them. */
static bool try_cap(const Approximation *a, TileOp *op) {
    const TileAttribute small[] = {{.key = TILE_ATTRIBUTE_APPROX, .integer = 1}, {.key = TILE_ATTRIBUTE_SMALL, .integer = 1}};
    float factor;
    TileOp *tanh = tanh_of(op, &factor);
    if (!tanh || !is_cap(a, tanh)) return false;
    TileBuilder b = tile_builder_before(a->context->module, op);
    b.location = tanh->location;
    TileValue *x = build_twice(&b, tile_op_operand(tanh, 0));
    TileOp *sigmoid = tile_build_op(&b, TILE_OP_SIGMOID, &x, 1, small, sizeof small / sizeof *small, &x->type, 1);
    TileValue *range = tile_build_number(&b, x->type, 2 * factor), *least = tile_build_number(&b, x->type, -factor);
    TileValue *capped = tile_build_ternary(&b, TILE_OP_FMA, &sigmoid->results[0], range, least);
    capped->name = op->results[0].name;
    tile_value_replace(&op->results[0], capped);
    tile_op_erase(op);
    if (tanh != op) tile_op_erase(tanh);
    return true;
}

/* The greatest magnitude that the value can have, where it is finite; INFINITY: nobody knows. */
static double most_of(const TileValue *value, unsigned depth) {
    enum { MOST_DEPTH = 8 };
    const TileOp *op = value->op;
    float number;
    if (read_constant(value, &number)) return isfinite(number) ? fabs(number) : isinf(number) ? 0 : INFINITY;
    if (!op || depth == MOST_DEPTH) return INFINITY;
    double of[3] = {0};
    for (unsigned i = 0; i < op->operand_count && i < 3; i++) of[i] = most_of(tile_op_operand(op, i), depth + 1);
    switch (op->id) {
    case TILE_OP_TANH:
    case TILE_OP_SIGMOID:
    case TILE_OP_ERF:
    case TILE_OP_SIN:
    case TILE_OP_COS: return 1;
    case TILE_OP_MUL: return of[0] * of[1];
    case TILE_OP_FMA: return of[0] * of[1] + of[2];
    case TILE_OP_ADD:
    case TILE_OP_SUB: return of[0] + of[1];
    case TILE_OP_MIN:
    case TILE_OP_MAX: return fmax(of[0], of[1]);
    case TILE_OP_SELECT: return fmax(of[1], of[2]);
    case TILE_OP_NEG:
    case TILE_OP_ABS:
    case TILE_OP_SPLAT:
    case TILE_OP_BROADCAST:
    case TILE_OP_RESHAPE:
    case TILE_OP_PERMUTE: return of[0];
    default: return INFINITY;
    }
}

/* The value times a number, and one more, computed where it has the fewest elements. */
static TileValue *build_affine(TileBuilder *b, TileValue *value, double number, double more) {
    const TileOp *op = value->op;
    const TileType *type = value->type;
    if (op && op->id == TILE_OP_BROADCAST) return tile_build_broadcast(b, build_affine(b, tile_op_operand(op, 0), number, more), type->extent);
    if (op && op->id == TILE_OP_RESHAPE) return tile_build_reshape(b, build_affine(b, tile_op_operand(op, 0), number, more), type->rank, type->extent);
    if (op && op->id == TILE_OP_SPLAT) return tile_build_splat(b, build_affine(b, tile_op_operand(op, 0), number, more), type);
    TileValue *factor = tile_build_number(b, type, number);
    return more != 0 ? tile_build_ternary(b, TILE_OP_FMA, value, factor, tile_build_number(b, type, more)) : tile_build_binary(b, TILE_OP_MUL, value, factor);
}

/* The greatest of all elements of the value that a use takes, or of those that a fill with -inf leaves; NULL: it takes another. */
static TileOp *maximum_of(const TileUse *use) {
    if (use->user->id == TILE_OP_FILL && !use->index && is_infinite(tile_op_operand(use->user, 1)) && tile_value_has_one_use(&use->user->results[0]))
        use = use->user->results[0].first_use;
    bool greatest = use->user->id == TILE_OP_REDUCE && tile_op_integer(use->user, TILE_ATTRIBUTE_KIND, TILE_KIND_SUM) == TILE_KIND_MAX;
    return greatest ? use->user : NULL;
}

/* A value that is s * factor + term, of constants, the factor above 0, or -inf where a choice says so, and that is used for its maxima and for
 * one difference alone. */
typedef struct Affine {
    TileOp *sum, *choice;
    float factor, term;
} Affine;

static bool find_affine(TileValue *x, const TileOp *difference, Affine *affine) {
    TileOp *choice = tile_value_def(x, TILE_OP_SELECT);
    if (choice && !is_infinite(tile_op_named(choice, TILE_OPERAND_Y))) choice = NULL;
    TileOp *sum = tile_value_def(choice ? tile_op_named(choice, TILE_OPERAND_X) : x, TILE_OP_FMA);
    *affine = (Affine){.sum = sum, .choice = choice};
    if (!sum || (choice && !tile_value_has_one_use(&sum->results[0]))) return false;
    if (!read_constant(tile_op_named(sum, TILE_OPERAND_Y), &affine->factor) || !read_constant(tile_op_named(sum, TILE_OPERAND_Z), &affine->term)) return false;
    if (!is_usual(affine->factor) || affine->factor < 0 || !isfinite(affine->term)) return false;
    for (const TileUse *use = x->first_use; use; use = use->next)
        if (use->user != difference && !maximum_of(use)) return false;
    return true;
}

/* Maxima of s * factor + term are those of s, times the factor and with the term, in every bit: rounding keeps the order. Returns s, or -inf. */
static TileValue *move_affine(const Approximation *a, TileValue *x, const TileOp *difference, const Affine *affine) {
    TileModule *module = a->context->module;
    TileBuilder b = tile_builder_before(module, affine->choice ? affine->choice : affine->sum->next);
    TileValue *s = tile_op_operand(affine->sum, 0);
    if (affine->choice) s = tile_build_ternary(&b, TILE_OP_SELECT, tile_op_named(affine->choice, TILE_OPERAND_CONDITION), s, tile_op_named(affine->choice, TILE_OPERAND_Y));
    for (TileUse *use = x->first_use, *next; use; use = next) {
        next = use->next;
        if (use->user == difference) continue;
        TileOp *reduce = maximum_of(use);
        TileValue *greatest = &reduce->results[0];
        TileBuilder behind = tile_builder_before(module, reduce->next);
        behind.location = reduce->location;
        TileValue *factor = tile_build_number(&behind, greatest->type, affine->factor), *term = tile_build_number(&behind, greatest->type, affine->term);
        TileValue *result = tile_build_ternary(&behind, TILE_OP_FMA, greatest, factor, term);
        tile_value_replace(greatest, result);
        tile_op_set_operand(result->op, 0, greatest);
        tile_op_set_operand(use->user, use->index, s);
    }
    return s;
}

/* e^(x - y), of which 16 bits matter, where x is at most 2^8 and y has fewer elements. Where y makes the error greater than 2^-14, the result is 0
 * or infinite either way. Where x is made of an s by a factor and a term, these are part of the one fma. */
static bool try_difference(const Approximation *a, TileOp *op) {
    static const double log2_of_e = 1.4426950408889634, most = 256;
    TileOp *difference = op->id == TILE_OP_EXP ? tile_value_def(tile_op_operand(op, 0), TILE_OP_SUB) : NULL;
    if (!difference || op->results[0].type->scalar != TILE_F32 || is_exact(a, &op->results[0]) || a->context->settings.no_contract) return false;
    TileValue *x = tile_op_operand(difference, 0), *y = tile_op_operand(difference, 1);
    const TileOp *wide = y->op;
    if (!wide || (wide->id != TILE_OP_BROADCAST && wide->id != TILE_OP_SPLAT) || most_of(x, 0) > most) return false;
    const TileAttribute approximate = {.key = TILE_ATTRIBUTE_APPROX, .integer = 1};
    TileBuilder b = tile_builder_before(a->context->module, op);
    b.location = op->location;
    Affine affine;
    double times = 1, more = 0;
    if (find_affine(x, difference, &affine)) {
        x = move_affine(a, x, difference, &affine);
        times = affine.factor;
        more = affine.term;
    }
    TileValue *factor = tile_build_number(&b, x->type, times * log2_of_e), *less = build_affine(&b, y, -log2_of_e, more * log2_of_e);
    TileValue *exponent = tile_build_ternary(&b, TILE_OP_FMA, x, factor, less);
    TileOp *power = tile_build_op(&b, TILE_OP_EXP2, &exponent, 1, &approximate, 1, &exponent->type, 1);
    power->results[0].name = op->results[0].name;
    tile_value_replace(&op->results[0], &power->results[0]);
    tile_op_erase(op);
    return true;
}

/* ---- what is replaced by other ops ---- */

static bool replace_ops(const Approximation *a, TileBlock *block) {
    bool changed = false;
    for (TileOp *op = block->first, *next; op; op = next) {
        next = op->next;
        for (unsigned r = 0; r < op->region_count; r++) changed |= replace_ops(a, &op->regions[r]);
        TileOp *tanh = find_tanh(op);
        if (tanh) replace_tanh(a->context->module, op, tanh);
        changed |= tanh || try_quotient(a, op) || try_cap(a, op) || try_difference(a, op);
    }
    return changed;
}

TileResult tile_pass_approximate(TilePassContext *context, TileFunc *func) {
    Approximation a = {.context = context, .changed = true};
    tile_map_init(&a.exact, context->scratch);
    while (a.changed) {
        a.changed = false;
        find_exact(&a, &func->body);
    }
    tile_block_walk(&func->body, mark, &a);
    a.changed |= replace_ops(&a, &func->body);
    return a.changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
