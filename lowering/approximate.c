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
 * Needs: inline. Keeps: all other ops. Cost: linear in the ops, times the depth of the loops. */
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
    if (result->type->scalar != TILE_F32 || is_exact(a, result) || tile_op_get(op, TILE_ATTRIBUTE_APPROX)) return;
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

/* The constant in each lane; false: it is none. */
static bool read_constant(const TileValue *value, float *number) {
    uint64_t bits;
    while (value->op && (value->op->id == TILE_OP_SPLAT || value->op->id == TILE_OP_BROADCAST)) value = tile_op_operand(value->op, 0);
    if (value->type->scalar != TILE_F32 || !tile_value_bits(value, &bits)) return false;
    *number = (float)tile_scalar_to_double(TILE_F32, bits);
    return true;
}

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

/* ---- what is replaced by other ops ---- */

static bool replace_ops(const Approximation *a, TileBlock *block) {
    bool changed = false;
    for (TileOp *op = block->first, *next; op; op = next) {
        next = op->next;
        for (unsigned r = 0; r < op->region_count; r++) changed |= replace_ops(a, &op->regions[r]);
        TileOp *tanh = find_tanh(op);
        if (tanh) replace_tanh(a->context->module, op, tanh);
        changed |= tanh || try_quotient(a, op);
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
