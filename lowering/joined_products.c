/* Which products are computed together with those of neighbouring iterations: what has few k for each iteration of a loop waits and counts as often
 * as what has many. */
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "lang/scalar/scalar.h"
#include "lowering/joined.h"

typedef struct Loops {
    TilePassContext *context;
    const TileJoinedDepth *depth;
    bool changed;
} Loops;

static void find_dot(TileOp *op, void *state) {
    TileProducts *products = state;
    if (op->id != TILE_OP_DOT) return;
    products->all &= products->count < sizeof products->dots / sizeof *products->dots && op->results[0].type->rank == 2;
    if (products->all) products->dots[products->count++] = op;
}

TileProducts tile_find_products(TileBlock *block) {
    TileProducts products = {.all = true};
    tile_block_walk(block, find_dot, &products);
    return products;
}

int64_t tile_neighbours_wanted(const TileJoin *join, const TileProducts *products, int64_t rows, int64_t columns, bool reaches) {
    int64_t fewest = 0;
    for (unsigned i = 0; i < products->count; i++) {
        const TileValue *sum = &products->dots[i]->results[0];
        for (unsigned axis = 0; axis < 2; axis++) {
            if (!tile_joined_grows(join, sum, axis)) continue;
            int64_t extent = sum->type->extent[axis], count = ((axis ? columns : rows) + (reaches ? extent - 1 : 0)) / extent;
            if (!fewest || count < fewest) fewest = count;
            if (!fewest) return 1;
        }
    }
    return fewest ? fewest : 1;
}

typedef struct Ranges {
    const TileJoin *join;
    bool loads_all, stores_some; /* is a range loaded, or filled, whole; is one stored as far as there are lanes */
} Ranges;

static void find_range(TileOp *op, void *state) {
    Ranges *ranges = state;
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    /* What is filled along k adds nothing, and is left out of products. */
    bool fills = op->id == TILE_OP_FILL && ranges->join->around->id == TILE_OP_GRID;
    const TileAttribute *axes = fills ? tile_op_get(op, TILE_ATTRIBUTE_AXES) : NULL;
    for (unsigned i = 0; axes && i < axes->count; i++)
        ranges->loads_all |= tile_joined_grows(ranges->join, &op->results[0], (unsigned)axes->integers[i]);
    if (op->id != TILE_OP_LOAD_TILE && op->id != TILE_OP_STORE_TILE) return;
    unsigned rank = tile_access_read(op, indices);
    for (unsigned d = 0; d < rank; d++) {
        if (indices[d].kind != TILE_ACCESS_RANGE || tile_joined_part(ranges->join, indices[d].first) != TILE_JOIN_FIRST) continue;
        bool whole = tile_joined_part(ranges->join, indices[d].hi) == TILE_JOIN_SAME;
        ranges->loads_all |= op->id == TILE_OP_LOAD_TILE && whole;
        ranges->stores_some |= op->id == TILE_OP_STORE_TILE && !whole;
    }
}

bool tile_joined_is_bounded(const TileJoin *join) {
    Ranges ranges = {.join = join, .stores_some = join->around->id != TILE_OP_GRID};
    tile_block_walk(&join->around->regions[0], find_range, &ranges);
    return !ranges.loads_all || !ranges.stores_some;
}

/* As many iterations as each product needs to have as many k as are wanted. */
static int64_t iterations_wanted(const Loops *loops, const TileJoin *join, const TileProducts *products) {
    int64_t most = 0;
    for (unsigned i = 0; i < products->count; i++) {
        const TileValue *a = tile_op_operand(products->dots[i], 0);
        int64_t factor = loops->depth->wanted(loops->context, products->dots[i]) / a->type->extent[1];
        if (factor < 2 || !tile_joined_grows(join, a, 1)) return 1;
        if (!most || factor < most) most = factor;
    }
    return most;
}

/* By what the induction variable is multiplied wherever it is used: each iteration has so many elements, as of numbers that
 * are two in a byte; 1: not by one number. */
static int64_t factor_of(const TileValue *number) {
    int64_t common = 0, factor;
    for (const TileUse *use = number->first_use; use; use = use->next) {
        bool multiplied = use->user->id == TILE_OP_MUL && !use->index && tile_value_integer(tile_op_operand(use->user, 1), &factor);
        if (!multiplied || factor < 1 || (common && factor != common)) return 1;
        common = factor;
    }
    return common ? common : 1;
}

/* Is each product added to what the loop carries, which it is the next of? Then those of several iterations follow one another as before; other sums
 * would be rounded elsewhere. */
static bool is_in_order(const TileOp *loop, const TileProducts *products) {
    const TileBlock *body = &loop->regions[0];
    for (unsigned i = 0; i < products->count; i++) {
        const TileOp *dot = products->dots[i];
        const TileValue *sum = tile_op_named(dot, TILE_OPERAND_SUM);
        bool carried = !sum->op && tile_value_block(sum) == body && sum->index && tile_value_has_one_use(sum);
        if (!carried || tile_op_operand(body->last, sum->index - 1) != &dot->results[0]) return false;
    }
    return true;
}

static void try_loop(Loops *loops, TileOp *loop) {
    int64_t step;
    TileJoin join = {.context = loops->context, .around = loop, .number = loop->regions[0].arguments[0]};
    TileProducts products = tile_find_products(&loop->regions[0]);
    if (!products.all || !products.count || loop->attribute_count) return;
    if (!tile_value_integer(tile_op_named(loop, TILE_OPERAND_STEP), &step) || step < 1) return;
    join.scale = factor_of(join.number);
    join.size = step * join.scale;
    if (join.size < 2 || !tile_can_join(&join) || (loops->depth->bounded && !tile_joined_is_bounded(&join))) return;
    int64_t factor = iterations_wanted(loops, &join, &products);
    if (factor < 2) return;
    if (loops->depth->in_order && !is_in_order(loop, &products)) {
        tile_pass_remark(loops->context, loop, TILE_DECISION_NOT_JOINED, "the loop", "%s", "what an iteration multiplies is rounded before it is added to what others did");
        return;
    }
    tile_join_neighbours(&join, factor, NULL);
    TileBuilder b = tile_builder_before(loops->context->module, loop);
    tile_op_set_operand(loop, 2, tile_build_i64(&b, step * factor));
    loops->changed = true;
}

static void visit_loop(TileOp *op, void *state) {
    if (op->id == TILE_OP_FOR) try_loop(state, op);
}

bool tile_join_iterations(TilePassContext *context, TileBlock *block, const TileJoinedDepth *depth) {
    Loops loops = {.context = context, .depth = depth};
    tile_block_walk(block, visit_loop, &loops);
    return loops.changed;
}
