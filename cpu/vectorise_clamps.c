/* Loop splitting for indices that are clamped or mirrored.
 *
 * Before:
 *     loop %lo, %hi {..} (%j: i64) {
 *       %x = add %j, %first : i64
 *       %y = max %x, %zero : i64
 *       %i = min %y, %last : i64
 *       .. an access at %i
 * After:
 *     %begin = the first iteration in which %x >= %zero, and %end behind the last one in which %x <= %last
 *     for %k = 0, 1 {
 *       loop %k == 0 ? %lo : %end, %k == 0 ? %begin : %hi {..} (%j: i64) {
 *         as before; of few iterations, not in vectors
 *       }
 *     }
 *     loop %begin, %end {..} (%j: i64) {
 *       %x = add %j, %first : i64
 *       .. an access at %x
 *     }
 * Where nothing is clamped, the index grows by one in each iteration, so the accesses are full vectors; gathers are left for
 * the few iterations before and behind. Where masks of accesses are true between borders, a loop is split in the same way, and has no
 * masks there. What is computed near a border: `max` and `min` with a bound, `abs`, and `select` by
 * a comparison with one. The index has to stay far from the ends of i64, which is tested ahead of the loop; else all
 * iterations are those at a border. */
#include "cpu/vectorise.h"
#include "lang/ir/operands.h"

/* MANY: of loops that are split where masks are true; shorter ones, of few whole vectors, are as fast with masks. */
enum { MANY = 96, FEWEST_ITERATIONS = 32, LARGEST_STEP = 8, FEW = 8, DEEPEST_CONDITION = 4, LONGEST_CHAIN = 8 };

/* Numbers between -FAR and FAR plus those of a loop's iterations, each times LARGEST_STEP, do not wrap. */
#define FAR (INT64_C(1) << 50)

typedef struct Clamps {
    TilePassContext *context;
    TileOp *loop, *inner; /* inner: the copy, in which nothing is clamped */
    TileStrides strides;  /* of the copy */
    TileBuilder before;   /* in front of both */
    TileValue *begin, *end, *near; /* of the inner loop; near (NULL: no): no index is far from 0 */
    bool masks;                    /* what the copy is without are masks */
} Clamps;

static TileValue *binary(Clamps *c, TileOpId id, TileValue *x, TileValue *y) { return tile_build_binary(&c->before, id, x, y); }
static TileValue *number(Clamps *c, int64_t value) { return tile_build_i64(&c->before, value); }

static bool is_index(const TileValue *value) { return value->type->kind == TILE_TYPE_SCALAR && value->type->scalar == TILE_I64; }

/* Can the value be computed ahead of the loop, whose iterations perhaps do not run? */
static bool is_computed(const Clamps *c, const TileValue *value, unsigned depth) {
    if (tile_value_outside(value, c->inner) || value == c->inner->regions[0].arguments[0]) return true;
    if (!value->op || value->op->region_count || !tile_op_is_pure(value->op) || depth == LONGEST_CHAIN) return false;
    for (unsigned i = 0; i < value->op->operand_count; i++)
        if (!is_computed(c, tile_op_operand(value->op, i), depth + 1)) return false;
    return true;
}

/* By how much the value grows in each iteration of the copy; 0: it does not, or by no number. */
static int64_t step_of(Clamps *c, TileValue *value) {
    if (!is_index(value) || !is_computed(c, value, 0)) return 0;
    TileSlope slope = tile_stride_of(&c->strides, value);
    bool small = slope.step >= -LARGEST_STEP && slope.step <= LARGEST_STEP;
    return slope.kind == TILE_SLOPE_AFFINE && !slope.factor && small ? slope.step : 0;
}

/* The inner loop is empty otherwise. Of masks a part may be poison where one in front of it is false. */
static void require(Clamps *c, TileValue *condition) {
    if (c->near && c->masks)
        c->near = tile_build_ternary(&c->before, TILE_OP_SELECT, c->near, condition, tile_build_bool(&c->before, false));
    else
        c->near = c->near ? binary(c, TILE_OP_AND, c->near, condition) : condition;
}

static void require_near(Clamps *c, TileValue *x) {
    int64_t known;
    if (tile_value_integer(x, &known) && known > -FAR && known < FAR) return;
    TileValue *low = binary(c, TILE_OP_GT, x, number(c, -FAR)), *high = binary(c, TILE_OP_LT, x, number(c, FAR));
    require(c, binary(c, TILE_OP_AND, low, high));
}

/* The iterations in which x >= bound, or x <= bound. */
static void narrow(Clamps *c, TileValue *x, TileValue *bound, bool above) {
    int64_t step = step_of(c, x), size = step < 0 ? -step : step;
    TileValue *lo = tile_op_operand(c->loop, 0), *first = tile_loop_value_at(c->context, c->inner, &c->before, x, lo);
    require_near(c, first);
    require_near(c, bound);
    bool begins = above == (step > 0);
    TileValue *left = step > 0 ? binary(c, TILE_OP_SUB, bound, first) : binary(c, TILE_OP_SUB, first, bound);
    if (begins) left = binary(c, TILE_OP_ADD, left, number(c, size - 1));
    if (size > 1) left = binary(c, TILE_OP_DIV, left, number(c, size));
    TileValue *at = binary(c, TILE_OP_ADD, lo, begins ? left : binary(c, TILE_OP_ADD, left, number(c, 1)));
    if (begins)
        c->begin = binary(c, TILE_OP_MAX, c->begin, at);
    else
        c->end = binary(c, TILE_OP_MIN, c->end, at);
}

/* x ? bound as x >= bound + *more or x <= bound + *more; false: it is no such comparison. */
static bool read_comparison(TileOpId id, bool holds, bool swapped, bool *above, int64_t *more) {
    bool less = id == TILE_OP_LT || id == TILE_OP_LE, strict = id == TILE_OP_LT || id == TILE_OP_GT;
    if (!less && id != TILE_OP_GT && id != TILE_OP_GE) return false;
    bool below = less != swapped;
    if (!holds) below = !below, strict = !strict;
    *above = !below;
    *more = !strict ? 0 : below ? -1 : 1;
    return true;
}

/* Can the iterations in which the bool has this value be found? Then, if `finds`, finds them. */
static bool find_condition(Clamps *c, TileValue *condition, bool holds, bool finds, unsigned depth) {
    const TileOp *op = condition->op;
    if (c->masks && holds && tile_value_outside(condition, c->inner)) {
        if (finds) require(c, condition);
        return true;
    }
    if (!op || tile_value_outside(condition, c->inner) || depth == DEEPEST_CONDITION) return false;
    bool chosen = op->id == TILE_OP_SELECT && tile_value_is_integer(tile_op_named(op, TILE_OPERAND_Y), 0);
    if (c->masks && holds && chosen)
        return find_condition(c, tile_op_operand(op, 0), holds, finds, depth + 1) &&
               find_condition(c, tile_op_operand(op, 1), holds, finds, depth + 1);
    if (op->id == TILE_OP_NOT) return find_condition(c, tile_op_operand(op, 0), !holds, finds, depth + 1);
    if (op->id == (holds ? TILE_OP_AND : TILE_OP_OR))
        return find_condition(c, tile_op_operand(op, 0), holds, finds, depth + 1) &&
               find_condition(c, tile_op_operand(op, 1), holds, finds, depth + 1);
    bool above, swapped;
    int64_t more;
    if (op->operand_count != 2) return false;
    TileValue *x = tile_op_operand(op, 0), *bound = tile_op_operand(op, 1);
    swapped = tile_value_outside(x, c->inner);
    if (swapped) x = tile_op_operand(op, 1), bound = tile_op_operand(op, 0);
    if (!tile_value_outside(bound, c->inner) || !step_of(c, x)) return false;
    if (!read_comparison((TileOpId)op->id, holds, swapped, &above, &more)) return false;
    if (finds) narrow(c, x, more ? binary(c, TILE_OP_ADD, bound, number(c, more)) : bound, above);
    return true;
}

/* The operand that a select has in the inner loop: the only one that grows, or that which rises; NULL: neither. */
static TileValue *chosen_operand(Clamps *c, const TileOp *select) {
    TileValue *yes = tile_op_named(select, TILE_OPERAND_X), *no = tile_op_named(select, TILE_OPERAND_Y);
    int64_t of_yes = step_of(c, yes), of_no = step_of(c, no);
    if ((of_yes > 0) == (of_no > 0) && of_yes && of_no) return NULL;
    TileValue *chosen = of_yes > of_no ? of_yes > 0 ? yes : no : of_no > 0 ? no : yes;
    bool found = step_of(c, chosen) && find_condition(c, tile_op_operand(select, 0), chosen == yes, false, 0);
    return found ? chosen : NULL;
}

/* What the op is where nothing is clamped, after narrowing the inner loop to these iterations; NULL: it is another op. */
static TileValue *unclamped(Clamps *c, TileOp *op) {
    if (op->result_count != 1 || !is_index(&op->results[0])) return NULL;
    if (op->id == TILE_OP_ABS && step_of(c, tile_op_operand(op, 0))) {
        narrow(c, tile_op_operand(op, 0), number(c, 0), true);
        return tile_op_operand(op, 0);
    }
    if (op->id == TILE_OP_MAX || op->id == TILE_OP_MIN) {
        bool second = tile_value_outside(tile_op_operand(op, 0), c->inner);
        TileValue *x = tile_op_operand(op, second), *bound = tile_op_operand(op, !second);
        if (!step_of(c, x) || !tile_value_outside(bound, c->inner)) return NULL;
        narrow(c, x, bound, op->id == TILE_OP_MAX);
        return x;
    }
    TileValue *chosen = op->id == TILE_OP_SELECT ? chosen_operand(c, op) : NULL;
    if (chosen) find_condition(c, tile_op_operand(op, 0), chosen == tile_op_named(op, TILE_OPERAND_X), true, 0);
    return chosen;
}

static int64_t cost_of(Clamps *c, TileOp *loop) {
    TileStrides strides;
    bool far = false;
    tile_strides_init(&strides, c->context, loop);
    strides.assumes = true;
    return tile_access_cost(&strides, &loop->regions[0], &far);
}

/* Replaces what is clamped in the copy; false: nothing is. */
static bool unclamp(Clamps *c) {
    bool any = false;
    for (TileOp *op = c->inner->regions[0].first, *next; op; op = next) {
        next = op->next;
        TileValue *value = unclamped(c, op);
        if (!value) continue;
        tile_value_replace(&op->results[0], value);
        tile_op_erase(op);
        any = true;
    }
    return any;
}

/* The mask, and what it is a conjunction of, is true in the copy. */
static void set_true(Clamps *c, TileValue *mask, unsigned depth) {
    TileOp *op = mask->op;
    if (!op || tile_value_outside(mask, c->inner) || depth == DEEPEST_CONDITION) return;
    bool both = op->id == TILE_OP_AND || op->id == TILE_OP_SELECT;
    TileValue *parts[2] = {both ? tile_op_operand(op, 0) : NULL, both ? tile_op_operand(op, 1) : NULL};
    TileBuilder b = tile_builder_before(c->context->module, c->inner->regions[0].first);
    tile_value_set_true(mask, tile_build_bool(&b, true));
    for (unsigned i = 0; both && i < 2; i++) set_true(c, parts[i], depth + 1);
}

/* Its mask, if the iterations in which that is true can be found; NULL: it has no such mask. */
static TileValue *found_mask(Clamps *c, const TileOp *op) {
    bool access = op->id == TILE_OP_LOAD || op->id == TILE_OP_STORE;
    if (!access || !tile_op_has_part(op, TILE_PARTS_MASK)) return NULL;
    TileValue *mask = tile_op_named(op, TILE_OPERAND_MASK);
    return find_condition(c, mask, true, false, 0) ? mask : NULL;
}

/* Is so much of the loop accesses whose masks are others in other iterations that it is faster without? A mask of 16 bits takes as
 * long as two of 32. */
static bool has_many_masks(Clamps *c) {
    unsigned masks = 0, accesses = 0;
    for (const TileOp *op = c->inner->regions[0].first; op; op = op->next) {
        const TileValue *mask = found_mask(c, op);
        bool load = op->id == TILE_OP_LOAD;
        if (!load && op->id != TILE_OP_STORE) continue;
        const TileType *type = load ? op->results[0].type : tile_op_operand(op, 0)->type;
        accesses++;
        if (mask && !tile_value_outside(mask, c->inner)) masks += tile_scalar_bytes(type->scalar) < 4 ? 2 : 1;
    }
    return masks && 2 * masks >= accesses;
}

/* Removes the masks of accesses of the copy, after narrowing it to where they are true. */
static void unmask(Clamps *c) {
    for (TileOp *op = c->inner->regions[0].first; op; op = op->next) {
        TileValue *mask = found_mask(c, op);
        if (!mask) continue;
        unsigned first = op->id == TILE_OP_LOAD ? 1 : 2;
        find_condition(c, mask, true, true, 0);
        while (op->operand_count > first) tile_op_remove_operand(op, first);
        tile_op_clear(op, TILE_ATTRIBUTE_PARTS);
        set_true(c, mask, 0);
    }
    for (TileOp *op = c->inner->regions[0].last, *previous; op; op = previous) { /* comparisons would count as work of 64 bits */
        previous = op->previous;
        bool dead = op->result_count == 1 && !op->region_count && tile_op_is_pure(op) && !tile_value_has_uses(op->results);
        if (dead) tile_op_erase(op);
    }
}

/* A branch on whether the loop has many iterations, with the loop in it; returns the copy on the other side. */
static TileOp *branch_of_many(TilePassContext *context, TileOp *loop) {
    TileBuilder b = tile_builder_before(context->module, loop);
    TileMap map;
    tile_map_init(&map, context->scratch);
    TileValue *count = tile_build_binary(&b, TILE_OP_SUB, tile_op_operand(loop, 1), tile_op_operand(loop, 0));
    TileOp *branch = tile_build_if(&b, tile_build_binary(&b, TILE_OP_GE, count, tile_build_i64(&b, MANY)), NULL, 0);
    TileOp *loops[] = {loop, tile_op_clone(context->module, loop, &map)};
    tile_op_detach(loop);
    for (unsigned side = 0; side < 2; side++) {
        tile_op_append(loops[side], &branch->regions[side]);
        TileBuilder end = tile_builder_at_end(context->module, &branch->regions[side]);
        tile_build_end(&end, TILE_OP_YIELD, NULL, 0);
    }
    return loops[1];
}

/* The loop over the two parts at the borders. The original loop becomes its body, and a copy of it, which is returned, for
 * parts of few iterations. */
static TileOp *build_borders(Clamps *c) {
    TileModule *module = c->context->module;
    TileMap map;
    TileOp *around = tile_build_for(&c->before, number(c, 0), number(c, 2), number(c, 1), NULL, 0);
    TileBuilder b = tile_builder_at_end(module, &around->regions[0]);
    b.location = c->loop->location;
    TileValue *first = tile_build_binary(&b, TILE_OP_EQ, around->regions[0].arguments[0], tile_build_i64(&b, 0));
    TileValue *lo = tile_build_ternary(&b, TILE_OP_SELECT, first, tile_op_operand(c->loop, 0), c->end);
    TileValue *hi = tile_build_ternary(&b, TILE_OP_SELECT, first, c->begin, tile_op_operand(c->loop, 1));
    tile_op_set_operand(c->loop, 0, lo);
    tile_op_set_operand(c->loop, 1, hi);
    TileValue *left = tile_build_binary(&b, TILE_OP_SUB, hi, lo);
    TileOp *branch = tile_build_if(&b, tile_build_binary(&b, TILE_OP_LT, left, tile_build_i64(&b, FEW)), NULL, 0);
    tile_build_end(&b, TILE_OP_YIELD, NULL, 0);
    tile_op_detach(c->loop);
    tile_op_append(c->loop, &branch->regions[1]);
    tile_map_init(&map, c->context->scratch);
    TileOp *few = tile_op_clone(module, c->loop, &map);
    tile_op_append(few, &branch->regions[0]);
    for (unsigned r = 0; r < 2; r++) {
        b = tile_builder_at_end(module, &branch->regions[r]);
        tile_build_end(&b, TILE_OP_YIELD, NULL, 0);
    }
    return few;
}

/* The inner loop lies within the loop, and is empty where an index is far from 0. */
static void finish_bounds(Clamps *c) {
    TileValue *lo = tile_op_operand(c->loop, 0), *hi = tile_op_operand(c->loop, 1);
    c->begin = binary(c, TILE_OP_MIN, binary(c, TILE_OP_MAX, c->begin, lo), hi);
    if (c->near) c->begin = tile_build_ternary(&c->before, TILE_OP_SELECT, c->near, c->begin, hi);
    c->end = binary(c, TILE_OP_MAX, binary(c, TILE_OP_MIN, c->end, hi), c->begin);
    tile_op_set_operand(c->inner, 0, c->begin);
    tile_op_set_operand(c->inner, 1, c->end);
}

static bool may_split(const TileOp *loop) {
    bool parallel = tile_loop_kind(loop) == TILE_LOOP_KIND_PARALLEL && !loop->result_count;
    return parallel && tile_loop_extent(loop) >= FEWEST_ITERATIONS && !tile_op_get(loop, TILE_ATTRIBUTE_VECTOR);
}

static Clamps begin(TilePassContext *context, TileOp *loop, bool masks) {
    TileMap map;
    tile_map_init(&map, context->scratch);
    Clamps c = {.context = context, .loop = loop, .inner = tile_op_clone(context->module, loop, &map), .masks = masks};
    tile_op_insert_before(c.inner, loop);
    tile_strides_init(&c.strides, context, c.inner);
    c.before = tile_builder_before(context->module, c.inner);
    c.before.location = loop->location;
    c.begin = tile_op_operand(loop, 0);
    c.end = tile_op_operand(loop, 1);
    return c;
}

TileOp *tile_vectorise_split_clamps(TilePassContext *context, TileOp *loop, TileOp **few) {
    if (!may_split(loop)) return NULL;
    tile_loop_drop_masks(context, loop);
    Clamps c = begin(context, loop, false);
    bool clamped = unclamp(&c);
    if (!clamped || cost_of(&c, c.inner) >= cost_of(&c, loop)) {
        if (clamped)
            tile_pass_remark(context, loop, TILE_DECISION_NOT_AT_BORDERS, "the loop", "accesses between them would cost as much");
        tile_op_erase(c.inner); /* what was built in front of it is dead */
        return NULL;
    }
    tile_pass_remark(context, loop, TILE_DECISION_AT_BORDERS, "the loop", "between them no index is clamped or mirrored");
    finish_bounds(&c);
    *few = build_borders(&c);
    return c.inner;
}

TileOp *tile_vectorise_split_borders(TilePassContext *context, TileOp *loop, TileOp **few, TileOp **other) {
    if (!may_split(loop) || tile_loop_extent(loop) < MANY) return NULL;
    Clamps c = begin(context, loop, true);
    bool many = has_many_masks(&c);
    tile_op_erase(c.inner);
    if (!many) return NULL;
    *other = branch_of_many(context, loop);
    c = begin(context, loop, true);
    unmask(&c);
    tile_pass_remark(context, loop, TILE_DECISION_AT_BORDERS, "the loop", "between them no access has a mask");
    finish_bounds(&c);
    *few = build_borders(&c);
    return c.inner;
}
