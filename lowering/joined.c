/* Which axes of tiles become longer where programs are joined. Every axis of every tile is in a set with the axes that it
 * has to agree with; what loads and stores read by ranges decides which sets grow, and which have to stay. */
#include "lowering/joined.h"

#include "base/temp.h"
#include "lang/ir/build.h"
#include "lang/ir/operands.h"

static bool visit_block(TileJoin *join, TileBlock *block);

static bool refuse(TileJoin *join, const TileOp *place, const char *why) {
    if (!join->why) {
        join->why = why;
        join->place = place;
    }
    return false;
}

/* ---- sets of axes ---- */

static size_t root_of(const TileJoin *join, size_t axis) {
    while (join->axes.items[axis].parent != axis) axis = join->axes.items[axis].parent;
    return axis;
}

static size_t axis_of(TileJoin *join, const TileValue *tile, unsigned axis) {
    size_t first = (size_t)(uintptr_t)tile_map_get(&join->tiles, tile);
    if (!first) {
        first = join->axes.count + 1;
        for (size_t i = 0; i < tile->type->rank; i++) {
            TileJoinedAxis added = {.parent = first - 1 + i};
            tile_list_push(join->context->scratch, &join->axes, added);
        }
        tile_map_set(&join->tiles, tile, (void *)(uintptr_t)first);
    }
    return root_of(join, first - 1 + axis);
}

static void grow(TileJoin *join, const TileValue *tile, unsigned axis) {
    size_t at = axis_of(join, tile, axis);
    join->axes.items[at].grows = true;
}

static void stay(TileJoin *join, const TileValue *tile, unsigned axis) {
    size_t at = axis_of(join, tile, axis);
    join->axes.items[at].stays = true;
}

static void tie(TileJoin *join, const TileValue *x, unsigned x_axis, const TileValue *y, unsigned y_axis) {
    size_t one = axis_of(join, x, x_axis), other = axis_of(join, y, y_axis);
    join->axes.items[other].parent = one;
    join->axes.items[one].grows |= join->axes.items[other].grows;
    join->axes.items[one].stays |= join->axes.items[other].stays;
}

TileJoinPart tile_joined_part(const TileJoin *join, const TileValue *scalar) {
    return (TileJoinPart)(uintptr_t)tile_map_get(&join->parts, scalar);
}

static bool is_same(const TileJoin *join, const TileValue *scalar) { return tile_joined_part(join, scalar) == TILE_JOIN_SAME; }

bool tile_joined_is_any(const TileJoin *join, const TileValue *tile) {
    const TileOp *op = tile->op;
    return op && (op->id == TILE_OP_CONST || (op->id == TILE_OP_SPLAT && is_same(join, tile_op_operand(op, 0))));
}

bool tile_joined_grows(const TileJoin *join, const TileValue *tile, unsigned axis) {
    size_t first = (size_t)(uintptr_t)tile_map_get(&join->tiles, tile);
    return first && join->axes.items[root_of(join, first - 1 + axis)].grows;
}

/* The two tiles are alike, but for one that is the same whatever its extents are. */
static bool tie_all(TileJoin *join, const TileOp *op, const TileValue *x, const TileValue *y) {
    bool tiles = tile_type_is_tile(x->type);
    if (!tiles) return is_same(join, x) && is_same(join, y) ? true : refuse(join, op, "a scalar differs from one to the next");
    if (tile_joined_is_any(join, x) || tile_joined_is_any(join, y)) return true;
    for (unsigned i = 0; i < x->type->rank; i++) tie(join, x, i, y, i);
    return true;
}

/* ---- scalars ---- */

/* Does the number exclude no lane of a range of one or of several, or all of them? Or one of two such, which all share. */
static bool bounds_nothing(const TileJoin *join, const TileValue *value) {
    int64_t number;
    const TileOp *chosen = tile_value_def(value, TILE_OP_SELECT);
    if (chosen) return bounds_nothing(join, tile_op_named(chosen, TILE_OPERAND_X)) && bounds_nothing(join, tile_op_named(chosen, TILE_OPERAND_Y));
    return tile_value_integer(value, &number) && (number <= 0 || number >= join->size);
}

static bool is_bound(const TileJoin *join, const TileValue *value) {
    TileJoinPart part = tile_joined_part(join, value);
    return part == TILE_JOIN_LEFT || part == TILE_JOIN_BOUND || (part == TILE_JOIN_SAME && bounds_nothing(join, value));
}

static TileJoinPart part_of_sum(const TileOp *op, TileJoinPart x, TileJoinPart y) {
    bool adds = op->id == TILE_OP_ADD;
    if (y == TILE_JOIN_SAME && (x == TILE_JOIN_FIRST || x == TILE_JOIN_LEFT || x == TILE_JOIN_POINT)) return x;
    if (adds && x == TILE_JOIN_SAME && (y == TILE_JOIN_FIRST || y == TILE_JOIN_LEFT || y == TILE_JOIN_POINT)) return y;
    return !adds && x == TILE_JOIN_SAME && y == TILE_JOIN_FIRST ? TILE_JOIN_LEFT : TILE_JOIN_OTHER;
}

static TileJoinPart part_of_select(const TileJoin *join, const TileOp *op) {
    const TileValue *x = tile_op_named(op, TILE_OPERAND_X), *y = tile_op_named(op, TILE_OPERAND_Y);
    TileJoinPart test = tile_joined_part(join, tile_op_operand(op, 0)), part = tile_joined_part(join, x);
    int64_t other;
    if (test == TILE_JOIN_SAME) return join->size && is_bound(join, x) && is_bound(join, y) ? TILE_JOIN_BOUND : TILE_JOIN_OTHER;
    if (test != TILE_JOIN_TEST || !is_same(join, y)) return TILE_JOIN_OTHER;
    if (part == TILE_JOIN_POINT) return TILE_JOIN_SAFE;
    bool none = tile_value_integer(y, &other) && other <= 0;
    return part == TILE_JOIN_SAME && none ? TILE_JOIN_LIMITED : TILE_JOIN_OTHER;
}

static TileJoinPart part_of(const TileJoin *join, const TileOp *op) {
    const TileValue *x = tile_op_operand(op, 0), *y = op->operand_count > 1 ? tile_op_operand(op, 1) : NULL;
    TileJoinPart of_x = tile_joined_part(join, x), of_y = y ? tile_joined_part(join, y) : TILE_JOIN_SAME;
    if (op->id == TILE_OP_ADD || op->id == TILE_OP_SUB) return part_of_sum(op, of_x, of_y);
    if (op->id == TILE_OP_SELECT) return part_of_select(join, op);
    if (op->id == TILE_OP_MIN || op->id == TILE_OP_MAX)
        return is_bound(join, x) && is_bound(join, y) ? TILE_JOIN_BOUND : TILE_JOIN_OTHER;
    if (op->id == TILE_OP_MUL && join->size && x == join->number && tile_value_is_integer(y, join->scale ? join->scale : join->size))
        return TILE_JOIN_FIRST;
    if (op->id == TILE_OP_GE || op->id == TILE_OP_LT)
        return of_x == TILE_JOIN_POINT && of_y == TILE_JOIN_SAME ? TILE_JOIN_TEST : TILE_JOIN_OTHER;
    if (op->id == TILE_OP_AND) return of_x == TILE_JOIN_TEST && of_y == TILE_JOIN_TEST ? TILE_JOIN_TEST : TILE_JOIN_OTHER;
    return TILE_JOIN_OTHER;
}

static bool has_tiles(const TileOp *op) {
    for (unsigned i = 0; i < op->operand_count; i++)
        if (tile_type_is_tile(tile_op_operand(op, i)->type)) return true;
    for (unsigned i = 0; i < op->result_count; i++)
        if (tile_type_is_tile(op->results[i].type)) return true;
    return false;
}

/* Ahead of all tiles. Of branches and loops, whose results have to be the same, see visit_if and visit_for. */
static void visit_scalar(TileOp *op, void *state) {
    TileJoin *join = state;
    bool same = true;
    if (op->region_count || has_tiles(op)) return;
    for (unsigned i = 0; i < op->operand_count; i++) same &= is_same(join, tile_op_operand(op, i));
    if (same) return;
    TileJoinPart part = part_of(join, op);
    for (unsigned i = 0; i < op->result_count; i++) tile_map_set(&join->parts, &op->results[i], (void *)(uintptr_t)part);
}

/* ---- tiles ---- */

static bool only_same_scalars(TileJoin *join, const TileOp *op) {
    for (unsigned i = 0; i < op->operand_count; i++)
        if (!tile_type_is_tile(tile_op_operand(op, i)->type) && !is_same(join, tile_op_operand(op, i)))
            return refuse(join, op, "a scalar that differs from one to the next is no bound of a range");
    return true;
}

/* `first` of a range, and the numbers of its lanes, are its places: lanes of neighbours follow one another. */
static bool is_places(const TileJoin *join, const TileOp *op) {
    if (op->id != TILE_OP_ADD || !tile_type_is_tile(op->results[0].type)) return false;
    for (unsigned i = 0; i < 2; i++) {
        const TileOp *first = tile_value_def(tile_op_operand(op, i), TILE_OP_SPLAT),
                     *lanes = tile_value_def(tile_op_operand(op, 1 - i), TILE_OP_IOTA);
        if (first && lanes && tile_joined_part(join, tile_op_operand(first, 0)) == TILE_JOIN_FIRST) return true;
    }
    return false;
}

/* Lanes of a range that its bound lets through, for which a mask asks where lanes are gathered. */
static bool is_limit(const TileJoin *join, const TileOp *op) {
    if (op->id != TILE_OP_LT || !tile_type_is_tile(op->results[0].type)) return false;
    const TileOp *lanes = tile_value_def(tile_op_operand(op, 0), TILE_OP_IOTA), *bound = tile_value_def(tile_op_operand(op, 1), TILE_OP_SPLAT);
    if (!lanes || !bound || !join->size || op->results[0].type->extent[tile_op_integer(lanes, TILE_ATTRIBUTE_AXIS, 0)] != join->size) return false;
    TileJoinPart part = tile_joined_part(join, tile_op_operand(bound, 0));
    return part == TILE_JOIN_LEFT || part == TILE_JOIN_BOUND;
}

static bool visit_elementwise(TileJoin *join, const TileOp *op) {
    const TileValue *result = &op->results[0];
    if (!only_same_scalars(join, op)) return false;
    for (unsigned i = 0; i < op->operand_count; i++)
        if (tile_type_is_tile(tile_op_operand(op, i)->type)) tie_all(join, op, tile_op_operand(op, i), result);
    return true;
}

/* The numbers of lanes are those of one's own range, unless they are counted from its first place. */
static bool visit_iota(TileJoin *join, const TileOp *op) {
    unsigned axis = (unsigned)tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0);
    bool places = op->results[0].first_use != NULL;
    for (const TileUse *use = op->results[0].first_use; use; use = use->next) places &= is_places(join, use->user) || is_limit(join, use->user);
    for (unsigned i = 0; i < op->results[0].type->rank; i++)
        if (i == axis ? !places : !join->numbers) stay(join, &op->results[0], i);
    if (places) grow(join, &op->results[0], axis);
    return true;
}

static bool visit_splat(TileJoin *join, const TileOp *op) {
    if (is_same(join, tile_op_operand(op, 0))) return true;
    for (const TileUse *use = op->results[0].first_use; use; use = use->next)
        if (!is_places(join, use->user) && !is_limit(join, use->user)) return refuse(join, op, "a tile of a number that differs from one to the next");
    return true;
}

/* Axes that are merged or split: the outermost one has neighbours behind one another. That may be one of a single row, if rows
 * are what neighbours become. */
static bool visit_reshape(TileJoin *join, const TileOp *op) {
    const TileValue *x = tile_op_operand(op, 0), *y = &op->results[0];
    unsigned i = 0, k = 0;
    if (!tile_type_is_tile(x->type) || !tile_type_is_tile(y->type)) return only_same_scalars(join, op);
    while (i < x->type->rank || k < y->type->rank) {
        int64_t left = i < x->type->rank ? x->type->extent[i] : 1, right = k < y->type->rank ? y->type->extent[k] : 1;
        if (left == 1 && right != 1 && i < x->type->rank && join->size) {
            stay(join, x, i++);
            continue;
        }
        if (right == 1 && left != 1 && k < y->type->rank) {
            stay(join, y, k++);
            continue;
        }
        if (i < x->type->rank && k < y->type->rank) tie(join, x, i, y, k);
        for (i++, k++; left != right;) {
            bool more = left < right;
            if (more ? i == x->type->rank : k == y->type->rank) return refuse(join, op, "a reshape");
            if (more)
                left *= x->type->extent[i], stay(join, x, i++);
            else
                right *= y->type->extent[k], stay(join, y, k++);
        }
    }
    return true;
}

static bool visit_broadcast(TileJoin *join, const TileOp *op) {
    const TileValue *x = tile_op_operand(op, 0), *y = &op->results[0];
    for (unsigned i = 0; i < x->type->rank; i++)
        if (x->type->extent[i] == y->type->extent[i])
            tie(join, x, i, y, i);
        else
            stay(join, x, i);
    return true;
}

static bool visit_permute(TileJoin *join, const TileOp *op) {
    const TileAttribute *axes = tile_op_get(op, TILE_ATTRIBUTE_AXES);
    for (unsigned i = 0; i < axes->count; i++) tie(join, tile_op_operand(op, 0), (unsigned)axes->integers[i], &op->results[0], i);
    return true;
}

/* Lanes of the second tile stand behind those of the first. */
static bool visit_cat(TileJoin *join, const TileOp *op) {
    unsigned along = (unsigned)tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0);
    for (unsigned i = 0; i < op->operand_count; i++) {
        const TileValue *x = tile_op_operand(op, i);
        if (tile_joined_is_any(join, x)) return refuse(join, op, "a constant beside other lanes");
        for (unsigned k = 0; k < x->type->rank; k++)
            if (k == along)
                stay(join, x, k);
            else
                tie(join, x, k, &op->results[0], k);
    }
    stay(join, &op->results[0], along);
    return true;
}

static bool visit_fill(TileJoin *join, const TileOp *op) {
    const TileAttribute *axes = tile_op_get(op, TILE_ATTRIBUTE_AXES);
    if (!is_same(join, tile_op_named(op, TILE_OPERAND_FILLING))) return refuse(join, op, "what fills differs");
    tie_all(join, op, tile_op_operand(op, 0), &op->results[0]);
    for (unsigned i = 0; i < axes->count; i++) {
        const TileValue *lo = tile_fill_lo(op, i), *hi = tile_fill_hi(op, i);
        if (is_same(join, lo) && is_same(join, hi)) continue;
        if (is_same(join, lo) && tile_joined_part(join, hi) == TILE_JOIN_LIMITED) continue; /* see check_fill */
        if (!join->size || !is_bound(join, lo) || !is_bound(join, hi)) return refuse(join, op, "a bound of a fill");
        grow(join, &op->results[0], (unsigned)axes->integers[i]);
    }
    return true;
}

static bool visit_reduce(TileJoin *join, const TileOp *op) {
    const TileValue *x = tile_op_operand(op, 0);
    unsigned axis = (unsigned)tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0);
    stay(join, x, axis);
    for (unsigned i = 0; tile_type_is_tile(op->results[0].type) && i < op->results[0].type->rank; i++)
        tie(join, x, i < axis ? i : i + 1, &op->results[0], i);
    return true;
}

/* The same, of values and of the numbers that stand for them. */
static bool visit_arg_reduce(TileJoin *join, const TileOp *op) {
    unsigned axis = (unsigned)tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0);
    for (unsigned k = 0; k < op->operand_count; k++) {
        const TileValue *x = tile_op_operand(op, k);
        if (tile_joined_is_any(join, x)) return refuse(join, op, "a constant beside a tile");
        stay(join, x, axis);
        for (unsigned i = 0; i < x->type->rank; i++)
            if (i != axis && tile_type_is_tile(op->results[0].type)) tie(join, x, i, &op->results[0], i < axis ? i : i - 1);
    }
    return true;
}

/* Lanes along the axis are chosen, or put behind others; the other axes are as they were. */
static bool visit_along(TileJoin *join, const TileOp *op) {
    unsigned axis = (unsigned)tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0);
    const TileValue *result = &op->results[0];
    stay(join, result, axis);
    for (unsigned k = 0; k < op->operand_count; k++) {
        if (tile_joined_is_any(join, tile_op_operand(op, k))) return refuse(join, op, "a constant beside a tile");
        stay(join, tile_op_operand(op, k), axis);
        for (unsigned i = 0; i < result->type->rank; i++)
            if (i != axis) tie(join, tile_op_operand(op, k), i, result, i);
    }
    return true;
}

/* Iterations of a loop have the sum in common, programs nothing along k. */
static bool visit_dot(TileJoin *join, const TileOp *op) {
    const TileValue *a = tile_op_operand(op, 0), *b = tile_op_operand(op, 1), *sum = &op->results[0];
    unsigned rank = a->type->rank;
    bool loop = join->around->id == TILE_OP_FOR;
    if (tile_joined_is_any(join, a) || tile_joined_is_any(join, b)) return refuse(join, op, "a product by a constant");
    tie_all(join, op, tile_op_named(op, TILE_OPERAND_SUM), sum);
    for (unsigned i = 0; i + 1 < rank; i++) tie(join, a, i, sum, i);
    for (unsigned i = 0; i < rank; i++)
        if (i != rank - 2) tie(join, b, i, sum, i);
    tie(join, a, rank - 1, b, rank - 2);
    if (!loop) stay(join, a, rank - 1);
    for (unsigned i = 0; loop && i < rank; i++) stay(join, sum, i);
    return true;
}

/* ---- memory ---- */

/* The range behind a point, whose lanes become rows of several points; NULL: there is none at once behind it. */
static const TileAccessIndex *next_range(const TileAccessIndex *indices, unsigned rank, unsigned d) {
    for (unsigned i = d + 1; i < rank; i++)
        if (indices[i].kind != TILE_ACCESS_INDEX) return indices[i].kind == TILE_ACCESS_RANGE ? &indices[i] : NULL;
    return NULL;
}

static bool is_tested(const TileJoin *join, const TileAccessIndex *indices, unsigned rank, const TileValue *test) {
    for (unsigned i = 0; i < rank; i++)
        if (indices[i].hi && tile_joined_part(join, indices[i].hi) == TILE_JOIN_LIMITED && tile_op_operand(indices[i].hi->op, 0) == test)
            return true;
    return false;
}

static bool visit_point(TileJoin *join, const TileOp *op, const TileValue *tile, const TileAccessIndex *indices, unsigned rank,
                        unsigned d) {
    TileJoinPart part = tile_joined_part(join, indices[d].first);
    const TileAccessIndex *range = next_range(indices, rank, d);
    if (part != TILE_JOIN_POINT && part != TILE_JOIN_SAFE) return refuse(join, op, "an index is no sum of the program's number");
    if (!range || tile->type->rank == TILE_MAX_TILE_RANK) return refuse(join, op, "no range is behind the index");
    if (part == TILE_JOIN_SAFE && !is_tested(join, indices, rank, tile_op_operand(indices[d].first->op, 0)))
        return refuse(join, op, "an index differs by a condition");
    grow(join, tile, (unsigned)range->axis);
    return true;
}

static bool visit_range(TileJoin *join, const TileOp *op, const TileValue *tile, const TileAccessIndex *index) {
    TileJoinPart first = tile_joined_part(join, index->first), hi = tile_joined_part(join, index->hi);
    bool same = is_same(join, index->step) && (first == TILE_JOIN_SAME || first == TILE_JOIN_FIRST);
    if (!same) return refuse(join, op, "a range begins at no sum of the program's number");
    if (first == TILE_JOIN_SAME) {
        if (!is_same(join, index->lo) || (hi != TILE_JOIN_SAME && hi != TILE_JOIN_LIMITED)) return refuse(join, op, "bounds of a range");
        if (join->size) stay(join, tile, (unsigned)index->axis);
        return true;
    }
    if (!tile_value_is_integer(index->step, 1) || tile->type->extent[index->axis] != join->size)
        return refuse(join, op, "ranges of neighbours do not follow one another");
    if (!is_bound(join, index->lo) || !is_bound(join, index->hi)) return refuse(join, op, "bounds of a range");
    grow(join, tile, (unsigned)index->axis);
    return true;
}

/* Rows of points are merged with one axis: all others have what each one has. */
static void stay_but(TileJoin *join, const TileValue *tile, const TileAccessIndex *merged) {
    for (unsigned i = 0; i < tile->type->rank; i++)
        if (!merged || i != (unsigned)merged->axis) stay(join, tile, i);
}

static bool visit_access(TileJoin *join, const TileOp *op, const TileValue *tile) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    const TileAccessIndex *merged = NULL;
    unsigned rank = tile_access_read(op, indices), points = 0;
    if (!tile_type_is_tile(tile->type)) return only_same_scalars(join, op);
    if (op->id == TILE_OP_STORE_TILE && tile_joined_is_any(join, tile)) return refuse(join, op, "a constant is stored");
    const TileOp *temp = tile_value_def(tile_op_operand(op, 0), TILE_OP_TEMP);
    if (temp && tile_op_get(temp, TILE_ATTRIBUTE_OWN)) return refuse(join, op, "a temporary of each program's own");
    if (op->attribute_count > 1 + tile_op_has_part(op, TILE_PARTS_MASK)) return refuse(join, op, "an access with attributes");
    for (unsigned d = 0; d < rank; d++) {
        bool tiled = tile_type_is_tile(indices[d].first->type);
        if (indices[d].kind == TILE_ACCESS_RANGE && !visit_range(join, op, tile, &indices[d])) return false;
        if (indices[d].kind == TILE_ACCESS_GATHER && tiled && !tile_joined_is_any(join, indices[d].first)) {
            if (indices[d].first->type->rank != 1) return refuse(join, op, "it gathers");
            tie(join, indices[d].first, 0, tile, (unsigned)indices[d].axis);
        } else if (tiled) {
            stay(join, tile, (unsigned)indices[d].axis);
        }
        if (tiled || indices[d].kind == TILE_ACCESS_RANGE || is_same(join, indices[d].first)) continue;
        if (join->size || points++) return refuse(join, op, "an index is no range");
        if (!visit_point(join, op, tile, indices, rank, d)) return false;
        merged = next_range(indices, rank, d);
    }
    if (!join->size) stay_but(join, tile, merged);
    if (tile_op_has_part(op, TILE_PARTS_MASK)) {
        if (points) return refuse(join, op, "an access with a mask");
        tie_all(join, op, tile_op_named(op, TILE_OPERAND_MASK), tile);
    }
    return !tile_op_has_part(op, TILE_PARTS_FILL) || refuse(join, op, "an access with a value for other lanes");
}

/* ---- control ---- */

static bool visit_for(TileJoin *join, TileOp *op) {
    TileBlock *body = &op->regions[0];
    for (unsigned i = 0; i < op->operand_count; i++)
        if (!tile_type_is_tile(tile_op_operand(op, i)->type) && !is_same(join, tile_op_operand(op, i)))
            return refuse(join, op, "the bounds of a loop differ from one to the next");
    if (!visit_block(join, body)) return false;
    for (unsigned i = 0; i < op->result_count; i++) {
        const TileValue *result = &op->results[i], *passed = tile_op_named_at(body->last, TILE_OPERAND_VALUES, i);
        bool alike = tie_all(join, op, body->arguments[1 + i], result) && tie_all(join, op, tile_loop_carried(op, i), result) &&
                     tie_all(join, op, passed, result);
        if (!alike) return false;
    }
    return true;
}

static bool visit_if(TileJoin *join, TileOp *op) {
    if (!is_same(join, tile_op_operand(op, 0))) return refuse(join, op, "a branch");
    for (unsigned r = 0; r < op->region_count; r++) {
        if (!visit_block(join, &op->regions[r])) return false;
        for (unsigned i = 0; i < op->result_count; i++)
            if (!tie_all(join, op, tile_op_named_at(op->regions[r].last, TILE_OPERAND_VALUES, i), &op->results[i])) return false;
    }
    return true;
}

/* A change of shape, of a tile that does not become longer by itself. */
static bool is_shape_of_any(TileJoin *join, const TileOp *op) {
    bool shape = op->id == TILE_OP_RESHAPE || op->id == TILE_OP_BROADCAST || op->id == TILE_OP_PERMUTE || op->id == TILE_OP_REDUCE;
    if (!shape || !tile_joined_is_any(join, tile_op_operand(op, 0))) return false;
    for (unsigned i = 0; tile_type_is_tile(op->results[0].type) && i < op->results[0].type->rank; i++)
        stay(join, &op->results[0], i);
    return true;
}

static bool visit_op(TileJoin *join, TileOp *op) {
    if (op->id == TILE_OP_FOR) return visit_for(join, op);
    if (op->id == TILE_OP_IF) return visit_if(join, op);
    if (op->id == TILE_OP_LOAD_TILE) return visit_access(join, op, &op->results[0]);
    if (op->id == TILE_OP_STORE_TILE && join->around->id == TILE_OP_GRID)
        return visit_access(join, op, tile_op_named(op, TILE_OPERAND_VALUE));
    if (!tile_op_is_pure(op)) return refuse(join, op, "an op with an effect of its own");
    if (!has_tiles(op)) return true;
    if (op->id == TILE_OP_CONST) return true;
    if (op->id == TILE_OP_SPLAT) return visit_splat(join, op);
    if (op->id == TILE_OP_IOTA) return visit_iota(join, op);
    if (is_shape_of_any(join, op)) return true;
    if (op->id == TILE_OP_RESHAPE) return visit_reshape(join, op);
    if (op->id == TILE_OP_BROADCAST) return visit_broadcast(join, op);
    if (op->id == TILE_OP_PERMUTE) return visit_permute(join, op);
    if (op->id == TILE_OP_CAT) return visit_cat(join, op);
    if (op->id == TILE_OP_FILL) return visit_fill(join, op);
    if (op->id == TILE_OP_REDUCE) return visit_reduce(join, op);
    if (op->id == TILE_OP_ARG_REDUCE) return visit_arg_reduce(join, op);
    if (op->id == TILE_OP_SLICE || op->id == TILE_OP_CAT) return visit_along(join, op);
    if (op->id == TILE_OP_DOT) return visit_dot(join, op);
    if (tile_op_info(op->id)->class == TILE_CLASS_ELEMENTWISE) return is_places(join, op) || visit_elementwise(join, op);
    return refuse(join, op, "an op whose lanes depend on one another");
}

static bool visit_block(TileJoin *join, TileBlock *block) {
    for (TileOp *op = block->first; op; op = op->next)
        if (!(tile_op_info(op->id)->traits & TILE_TRAIT_TERMINATOR) && !visit_op(join, op)) return false;
    return true;
}

/* ---- what sets of axes decide ---- */

static unsigned count_growing(const TileJoin *join, const TileValue *tile) {
    unsigned count = 0;
    for (unsigned i = 0; i < tile->type->rank; i++) count += tile_joined_grows(join, tile, i);
    return count;
}

/* Is it the value, in lanes of ranges? */
static bool is_scaled(const TileJoin *join, const TileValue *scaled, const TileValue *value) {
    const TileOp *mul = tile_value_def(scaled, TILE_OP_MUL);
    if (join->scale <= 1) return scaled == value;
    return mul && tile_op_operand(mul, 0) == value && tile_value_is_integer(tile_op_operand(mul, 1), join->scale);
}

/* Does the bound leave out what lies beyond the loop's end? Then iterations that there are not add nothing. */
static bool ends_with_loop(const TileJoin *join, const TileValue *bound) {
    const TileOp *op = bound->op;
    if (!op || tile_value_outside(bound, join->around)) return false;
    if (op->id == TILE_OP_SELECT) /* by a condition that all iterations share; else nothing is inside */
        return ends_with_loop(join, tile_op_named(op, TILE_OPERAND_X)) && tile_value_is_integer(tile_op_named(op, TILE_OPERAND_Y), 0);
    if (op->id == TILE_OP_MIN) return ends_with_loop(join, tile_op_operand(op, 0)) || ends_with_loop(join, tile_op_operand(op, 1));
    return op->id == TILE_OP_SUB && is_scaled(join, tile_op_operand(op, 0), tile_op_operand(join->around, 1)) &&
           is_scaled(join, tile_op_operand(op, 1), join->number);
}

static void check_end(TileOp *op, void *state) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    TileJoin *join = state;
    if (op->id != TILE_OP_LOAD_TILE) return;
    unsigned rank = tile_access_read(op, indices);
    for (unsigned d = 0; d < rank; d++)
        if (tile_joined_part(join, indices[d].first) != TILE_JOIN_SAME && !ends_with_loop(join, indices[d].hi))
            refuse(join, op, "a range does not end with the loop");
}

/* Along an axis that grows, a range's or a fill's bound has to exclude the same lanes as before. */
static void check_fill(TileOp *op, void *state) {
    TileJoin *join = state;
    const TileAttribute *axes = tile_op_get(op, TILE_ATTRIBUTE_AXES);
    if (op->id == TILE_OP_STORE_TILE && !count_growing(join, tile_op_named(op, TILE_OPERAND_VALUE)))
        refuse(join, op, "several store the same elements");
    for (unsigned i = 0; op->id == TILE_OP_FILL && i < axes->count; i++) {
        const TileValue *lo = tile_fill_lo(op, i), *hi = tile_fill_hi(op, i);
        bool grows = tile_joined_grows(join, &op->results[0], (unsigned)axes->integers[i]);
        if (join->size && grows && (!is_bound(join, lo) || !is_bound(join, hi))) refuse(join, op, "a bound of a fill");
        bool limited = tile_joined_part(join, hi) == TILE_JOIN_LIMITED || (!join->size && grows);
        if (limited && (count_growing(join, &op->results[0]) != 1 || op->results[0].type->rank == TILE_MAX_TILE_RANK))
            refuse(join, op, "a fill by a condition");
    }
}

bool tile_joined_spreads(const TileJoin *join, const TileValue *tile) {
    const TileOp *op = tile_value_def(tile, TILE_OP_BROADCAST);
    for (unsigned i = 0; op && i < tile->type->rank; i++)
        if (tile_joined_grows(join, tile, i) && tile_op_operand(op, 0)->type->extent[i] != 1) return false;
    return op != NULL;
}

/* An op has one rank of extents for all tiles: constants take it over. */
static bool is_consistent(TileJoin *join) {
    for (size_t i = 0; i < join->axes.count; i++) {
        const TileJoinedAxis *axis = &join->axes.items[root_of(join, i)];
        if (axis->grows && axis->stays) return refuse(join, join->around, "a tile of all would have other elements");
    }
    for (size_t i = 0; i < join->tiles.count; i++) {
        const TileValue *tile = join->tiles.entries[i].key;
        unsigned count = count_growing(join, tile);
        if (count > 1) return refuse(join, join->around, "rows of each one would meet columns of its neighbours");
        if (count && tile_value_outside(tile, join->around) && !tile_joined_spreads(join, tile))
            return refuse(join, join->around, "a tile from elsewhere");
    }
    return true;
}

static bool tie_places(TileJoin *join, TileBlock *block) {
    for (TileOp *op = block->first; op; op = op->next) {
        for (unsigned i = 0; i < op->region_count; i++) tie_places(join, &op->regions[i]);
        for (unsigned i = 0; is_places(join, op) && i < 2; i++)
            for (unsigned k = 0; k < op->results[0].type->rank; k++) tie(join, tile_op_operand(op, i), k, &op->results[0], k);
    }
    return true;
}

bool tile_can_join(TileJoin *join) {
    tile_map_init(&join->parts, join->context->scratch);
    tile_map_init(&join->tiles, join->context->scratch);
    bool loop = join->around->id == TILE_OP_FOR;
    bool first = loop ? join->scale <= 1 : join->size == 1;
    TileJoinPart part = !join->size ? TILE_JOIN_POINT : first ? TILE_JOIN_FIRST : TILE_JOIN_OTHER;
    tile_map_set(&join->parts, join->number, (void *)(uintptr_t)part);
    TileBlock *body = &join->around->regions[0];
    tile_block_walk(body, visit_scalar, join);
    if (!visit_block(join, body)) return false;
    for (unsigned i = 0; loop && i < join->around->result_count; i++) {
        const TileValue *result = body->arguments[1 + i];
        if (!tie_all(join, join->around, tile_op_named_at(body->last, TILE_OPERAND_VALUES, i), result)) return false;
        for (unsigned k = 0; tile_type_is_tile(result->type) && k < result->type->rank; k++) stay(join, result, k);
    }
    tie_places(join, body);
    if (!is_consistent(join)) return false;
    tile_block_walk(body, check_fill, join);
    if (loop) tile_block_walk(body, check_end, join);
    return !join->why;
}

int64_t tile_range_size(const TileValue *number) {
    int64_t size;
    for (const TileUse *use = number->first_use; use; use = use->next)
        if (use->user->id == TILE_OP_MUL && !use->index && tile_value_integer(tile_op_operand(use->user, 1), &size) && size > 1)
            return size;
    return 0;
}
