/* Purpose: contract a product and the sum that it is an operand of into an fma, as the language demands (one rounding,
 * on every target).
 *
 * Only the parser knows which products are operands of a sum in the same expression: it marks them `fuse`. If both
 * operands of an addition are marked, the left one is fused. This pass runs once, before any pass that could merge or
 * move a product, and removes all marks, whether or not it fuses.
 *
 * Before:
 *     func kernel tile @k(%x: f32, %y: f32, %z: f32, %out: tensor<f32, 0, out>) {
 *       grid {
 *         %p = mul %x, %y {fuse = 1} : f32
 *         %s = sub %p, %z : f32
 *         store_tile %out, %s {access = []}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func kernel tile @k(%x: f32, %y: f32, %z: f32, %out: tensor<f32, 0, out>) {
 *       grid {
 *         %0 = neg %z : f32
 *         %s = fma %x, %y, %0 : f32
 *         store_tile %out, %s {access = []}
 *         yield
 *       }
 *       return
 *     }
 * Needs: runs before all passes that change arithmetic. Keeps: all other ops. Cost: linear. */
#include "lang/ir/build.h"
#include "lowering/pass.h"

typedef struct Contraction {
    TilePassContext *context;
    bool changed;
} Contraction;

enum { MAX_CHAIN = 4 };

/* A product behind splats, broadcasts, reshapes and negations: `chain` has those, outermost first. A marked product may have
 * several uses, if equal ones were merged: all of them are such sums. */
typedef struct Product {
    TileOp *mul;
    TileOp *chain[MAX_CHAIN];
    unsigned length;
} Product;

static bool find_product(TileValue *value, Product *product) {
    product->length = 0;
    for (;;) {
        TileOp *op = value->op;
        if (!op) return false;
        switch (op->id) {
        case TILE_OP_MUL:
            product->mul = op;
            return tile_scalar_is_float(value->type->scalar) && tile_op_integer(op, TILE_ATTRIBUTE_FUSE, 0);
        case TILE_OP_SPLAT:
        case TILE_OP_BROADCAST:
        case TILE_OP_RESHAPE:
        case TILE_OP_NEG:
            if (product->length == MAX_CHAIN) return false;
            product->chain[product->length++] = op;
            value = tile_op_operand(op, 0);
            continue;
        default: return false;
        }
    }
}

/* The factor that takes a negation: a constant, of which another constant is made, or the first. */
static unsigned factor_to_negate(const Product *product) {
    return tile_value_def(tile_op_operand(product->mul, 1), TILE_OP_CONST) ? 1 : 0;
}

/* A factor with the product's changes of shape and, if it is the one to negate, its negations. */
static TileValue *apply_chain(TileBuilder *builder, const Product *product, unsigned side) {
    TileValue *factor = tile_op_operand(product->mul, side);
    bool negates = side == factor_to_negate(product);
    for (unsigned i = product->length; i-- > 0;) {
        TileOp *shape = product->chain[i];
        if (shape->id == TILE_OP_NEG) {
            if (negates) factor = tile_build_unary(builder, TILE_OP_NEG, factor);
        } else {
            const TileType *type = shape->results[0].type;
            factor = tile_build_op(builder, (TileOpId)shape->id, &factor, 1, NULL, 0, &type, 1)->results;
        }
    }
    return factor;
}

/* What no other sum uses. */
static void erase_product(Product *product) {
    for (unsigned i = 0; i <= product->length; i++) {
        TileOp *op = i < product->length ? product->chain[i] : product->mul;
        if (op->results[0].first_use) return;
        tile_op_erase(op);
    }
}

/* x * y + z, x * y - z = x * y + -z, z - x * y = -x * y + z, z - x * 4 = x * -4 + z */
static void fuse(Contraction *contraction, TileOp *sum, Product *product, unsigned side) {
    TileBuilder builder = tile_builder_before(contraction->context->module, sum);
    TileValue *factors[] = {apply_chain(&builder, product, 0), apply_chain(&builder, product, 1)};
    TileValue *z = tile_op_operand(sum, 1 - side);
    if (sum->id == TILE_OP_SUB) {
        TileValue **negated = side == 0 ? &z : &factors[factor_to_negate(product)];
        *negated = tile_build_unary(&builder, TILE_OP_NEG, *negated);
    }
    tile_value_replace(sum->results, tile_build_ternary(&builder, TILE_OP_FMA, factors[0], factors[1], z));
    tile_op_erase(sum);
    erase_product(product);
    contraction->changed = true;
}

static void contract_block(Contraction *contraction, TileBlock *block) {
    for (TileOp *op = block->first, *next; op; op = next) {
        next = op->next;
        for (unsigned r = 0; r < op->region_count; r++) contract_block(contraction, &op->regions[r]);
        if (op->id != TILE_OP_ADD && op->id != TILE_OP_SUB) continue;
        Product product;
        for (unsigned side = 0; side < 2; side++)
            if (find_product(tile_op_operand(op, side), &product)) {
                fuse(contraction, op, &product, side);
                break;
            }
    }
}

static void unmark(TileOp *op, void *state) {
    Contraction *contraction = state;
    if (!tile_op_get(op, TILE_ATTRIBUTE_FUSE)) return;
    tile_op_clear(op, TILE_ATTRIBUTE_FUSE);
    contraction->changed = true;
}

TileResult tile_pass_contract(TilePassContext *context, TileFunc *func) {
    Contraction contraction = {context, false};
    if (!context->settings.no_contract) contract_block(&contraction, &func->body);
    tile_block_walk(&func->body, unmark, &contraction);
    return contraction.changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
