/* Products that are zero: what they would add to a column is computed once for all programs, and added behind the loops. */
#include "lowering/left_out.h"

#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "lowering/each.h"
#include "lowering/memory.h"
#include "lowering/zero_operand.h"

enum { MOST_LOOPS = 6, DEEPEST = 24, MOST_AXES = 5, LANES = 128, STEP = 16, PART = 32, ANSWERS = 1024 };
static const uint64_t NEGATIVE_ZERO = 0x80000000;

/* A product whose left operand may be zero, the loops around it that only add up its sums, the innermost first, and how its right
 * operand is loaded: along `k` and `n`, axes of the tensor, whose other axes have indices. */
typedef struct Chain {
    TileOp *dot, *load, *loops[MOST_LOOPS];
    unsigned count;
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    unsigned rank, k, n;
    int64_t lanes; /* columns that a program of the grid of its own adds up */
    TileValue *condition;
} Chain;

typedef struct Zeros {
    TilePassContext *context;
    TileFunc *kernel;
    TileMap map; /* values of the loops to their copies */
} Zeros;

/* ---- which products ---- */

static bool is_zero(const TileValue *value) {
    uint64_t bits;
    return tile_value_bits(value, &bits) && bits == 0;
}

/* The load of the right operand, which is filled along k with 0 at most. `turned`: k is its second axis. */
static TileOp *load_of(const TileOp *dot, bool *turned) {
    TileOp *op = tile_op_operand(dot, 1)->op;
    *turned = false;
    for (; op && (op->id == TILE_OP_FILL || op->id == TILE_OP_PERMUTE); op = tile_op_operand(op, 0)->op)
        *turned ^= op->id == TILE_OP_PERMUTE && tile_op_get(op, TILE_ATTRIBUTE_AXES)->integers[0] != 0;
    return op && op->id == TILE_OP_LOAD_TILE ? op : NULL;
}

/* Does the loop go over all of the tensor's axis? */
static bool is_whole_axis(const Zeros *z, const TileOp *loop, const TileValue *tensor, unsigned axis) {
    const TileValue *extent = tile_op_operand(loop, 1);
    if (!tile_value_is_integer(tile_op_operand(loop, 0), 0)) return false;
    for (const TileUse *use = tensor->first_use; use; use = use->next) {
        const TileOp *op = use->user;
        if (op->block != &z->kernel->body || tile_op_integer(op, TILE_ATTRIBUTE_AXIS, -1) != axis) continue;
        if (op->id == TILE_OP_DIM && &op->results[0] == extent) return true;
        if (op->id == TILE_OP_CHECK_DIM && tile_op_operand(op, 1) == extent) return true;
    }
    return false;
}

/* NULL: what products of zeros add can be computed ahead. */
static const char *why_not_ahead(const Zeros *z, Chain *chain) {
    bool turned;
    chain->load = load_of(chain->dot, &turned);
    if (!chain->load || chain->load->results[0].type->rank != 2) return "its right operand is computed";
    const TileValue *tensor = tile_op_operand(chain->load, 0);
    chain->rank = tile_access_read(chain->load, chain->indices);
    if (tensor->op || tensor->type->access != TILE_ACCESS_IN || chain->rank > MOST_AXES) return "its right operand is no argument";
    if (chain->load->attribute_count != 1) return "its right operand has a mask";
    for (const TileOp *op = z->kernel->body.first; op; op = op->next)
        if (tile_memory_is_written(op, tensor)) return "its right operand is written";
    bool found_k = false;
    for (unsigned d = 0; d < chain->rank; d++) {
        const TileAccessIndex *index = &chain->indices[d];
        if (index->kind == TILE_ACCESS_INDEX) continue;
        if (index->kind != TILE_ACCESS_RANGE || !tile_value_is_integer(index->step, 1)) return "its right operand is gathered";
        if (index->axis != (int)turned) {
            chain->n = d;
            continue;
        }
        chain->k = d;
        found_k = index->first == chain->loops[0]->regions[0].arguments[0];
    }
    if (!found_k || !is_whole_axis(z, chain->loops[0], tensor, chain->k)) return "its loop does not go over all of k";
    return NULL;
}

/* Can the value be computed again behind the loops? */
static bool can_copy(const TileValue *value, const TileOp *outermost, unsigned depth) {
    const TileOp *op = value->op;
    if (tile_value_outside(value, outermost)) return true;
    if (!op) return value->index == 0; /* the number of an iteration */
    if (!tile_op_is_pure(op) || op->region_count || depth == DEEPEST) return false;
    for (unsigned i = 0; i < op->operand_count; i++)
        if (!can_copy(tile_op_operand(op, i), outermost, depth + 1)) return false;
    return true;
}

static bool can_copy_all(const Chain *chain) {
    const TileOp *outermost = chain->loops[chain->count - 1];
    bool can = can_copy(chain->condition, outermost, 0);
    for (unsigned d = 0; d < chain->rank; d++) {
        const TileAccessIndex *index = &chain->indices[d];
        if (index->kind == TILE_ACCESS_INDEX) can = can && can_copy(index->first, outermost, 0);
    }
    const TileAccessIndex *n = &chain->indices[chain->n];
    can = can && tile_value_outside(n->first, outermost) && tile_value_outside(n->lo, outermost) && tile_value_outside(n->hi, outermost);
    for (unsigned i = 1; can && i < chain->count; i++)
        for (unsigned k = 0; k < 3; k++) can = can && can_copy(tile_op_operand(chain->loops[i], k), outermost, 0);
    return can;
}

/* ---- what products of zeros add to a column ---- */

/* Of each column; and, of each program that adds up a part of k, the sum of its columns. NULL: programs add up all of k. */
typedef struct Sums {
    TileValue *temp, *answers;
} Sums;

typedef struct Access {
    TileValue *operands[2 + 4 * MOST_AXES];
    int64_t kinds[MOST_AXES];
    unsigned count, axes;
} Access;

static void add_index(Access *access, TileValue *index) {
    access->kinds[access->axes++] = TILE_ACCESS_INDEX;
    access->operands[access->count++] = index;
}

static void add_range(TileBuilder *b, Access *access, TileValue *first, TileValue *lo, TileValue *hi) {
    access->kinds[access->axes++] = TILE_ACCESS_RANGE;
    access->operands[access->count++] = first;
    access->operands[access->count++] = tile_build_i64(b, 1);
    access->operands[access->count++] = lo;
    access->operands[access->count++] = hi;
}

static TileOp *build_access(TileBuilder *b, TileOpId id, const Access *access, const TileType *result) {
    TileAttribute kinds = {.key = TILE_ATTRIBUTE_ACCESS, .count = access->axes, .integers = access->kinds};
    return tile_build_op(b, id, access->operands, access->count, &kinds, 1, &result, result != NULL);
}

static TileValue *rest(TileBuilder *b, TileValue *extent, TileValue *first, int64_t most) {
    TileValue *left = tile_build_binary(b, TILE_OP_SUB, extent, first);
    return tile_build_binary(b, TILE_OP_MIN, left, tile_build_i64(b, most));
}

/* 0 times rows and columns of the right operand from the place on, added up along k: STEP rows at most, or PART. */
static TileValue *build_nothing(TileBuilder *b, const Chain *chain, TileValue *const *place, TileValue *const *extents, int64_t most) {
    TileContext *context = b->module->context;
    TileValue *zero = tile_build_i64(b, 0), *rows = rest(b, extents[chain->k], place[chain->k], most);
    TileValue *columns = rest(b, extents[chain->n], place[chain->n], chain->lanes);
    Access from = {.operands = {tile_op_operand(chain->load, 0)}, .count = 1};
    for (unsigned d = 0; d < chain->rank; d++) {
        if (d == chain->k || d == chain->n)
            add_range(b, &from, place[d], zero, d == chain->k ? rows : columns);
        else
            add_index(&from, place[d]);
    }
    bool turned = chain->n < chain->k;
    const int64_t shape[] = {turned ? chain->lanes : most, turned ? most : chain->lanes};
    TileScalar scalar = tile_op_operand(chain->load, 0)->type->scalar;
    TileValue *tile = tile_op_result(build_access(b, TILE_OP_LOAD_TILE, &from, tile_type_tile(context, scalar, 2, shape)), 0);
    TileValue *nothing = tile_build_number(b, tile_type_scalar(context, scalar), -1); /* makes -0, which adds nothing */
    TileValue *bounds[] = {zero, turned ? columns : rows, zero, turned ? rows : columns};
    tile = tile_build_fill(b, tile, nothing, (const int64_t[]){0, 1}, bounds, 2);
    tile = tile_build_convert(b, tile, TILE_F32);
    tile = tile_build_binary(b, TILE_OP_MUL, tile, tile_build_bits(b, tile->type, 0));
    return tile_build_reduce(b, tile, TILE_KIND_SUM, turned);
}

/* The same of all rows. */
static TileValue *build_whole(TileBuilder *b, const Chain *chain, TileValue **place, TileValue *const *extents) {
    const TileType *lanes = tile_type_tile(b->module->context, TILE_F32, 1, &chain->lanes);
    TileValue *none = tile_build_number(b, lanes, -0.0);
    TileOp *loop = tile_build_for(b, tile_build_i64(b, 0), extents[chain->k], tile_build_i64(b, STEP), &none, 1);
    TileBuilder in = tile_builder_at_end(b->module, &loop->regions[0]);
    in.location = b->location;
    place[chain->k] = loop->regions[0].arguments[0];
    TileValue *sum = build_nothing(&in, chain, place, extents, STEP);
    sum = tile_build_binary(&in, TILE_OP_ADD, loop->regions[0].arguments[1], sum);
    tile_build_end(&in, TILE_OP_YIELD, &sum, 1);
    return tile_op_result(loop, 0);
}

/* The sum of a program's columns goes to its own place. */
static void build_answer(TileBuilder *b, const TileOp *grid, TileValue *answers, TileValue *sum) {
    TileValue *number = tile_build_i64(b, 0);
    for (unsigned i = 0; i < grid->operand_count; i++) {
        number = tile_build_binary(b, TILE_OP_MUL, number, tile_op_operand(grid, i));
        number = tile_build_binary(b, TILE_OP_ADD, number, grid->regions[0].arguments[i]);
    }
    Access to = {.operands = {answers, tile_build_reduce(b, sum, TILE_KIND_SUM, 0)}, .count = 2};
    add_index(&to, number);
    build_access(b, TILE_OP_STORE_TILE, &to, NULL);
}

/* One program: the sums of `lanes` columns, at one place of all axes but n, and of k, of which it has all rows or a part. */
static void build_program(TileBuilder *b, const Chain *chain, TileOp *grid, const Sums *sums, TileValue *const *extents) {
    TileValue *zero = tile_build_i64(b, 0), *place[MOST_AXES], *part = NULL;
    unsigned next = 0;
    for (unsigned d = 0; d < chain->rank; d++)
        if (d != chain->k || sums->answers) place[d] = grid->regions[0].arguments[next++];
    place[chain->n] = tile_build_binary(b, TILE_OP_MUL, place[chain->n], tile_build_i64(b, chain->lanes));
    if (sums->answers) {
        part = place[chain->k];
        place[chain->k] = tile_build_binary(b, TILE_OP_MUL, part, tile_build_i64(b, PART));
    }
    TileValue *sum = part ? build_nothing(b, chain, place, extents, PART) : build_whole(b, chain, place, extents);
    Access to = {.operands = {sums->temp, sum}, .count = 2};
    for (unsigned d = 0; d < chain->rank; d++) {
        if (d == chain->n)
            add_range(b, &to, place[d], zero, rest(b, extents[d], place[d], chain->lanes));
        else if (d != chain->k || part)
            add_index(&to, d == chain->k ? part : place[d]);
    }
    build_access(b, TILE_OP_STORE_TILE, &to, NULL);
    if (part) build_answer(b, grid, sums->answers, sum);
    tile_build_end(b, TILE_OP_YIELD, NULL, 0);
}

static TileValue *build_temp(TileBuilder *host, TileValue **sizes, unsigned count) {
    const TileType *type = tile_type_tensor(host->module->context, TILE_F32, count, TILE_ACCESS_TEMP);
    return tile_op_result(tile_build_op(host, TILE_OP_TEMP, sizes, count, NULL, 0, &type, 1), 0);
}

/* The temporary has the tensor's axes, of which k is left out, or has its parts. `parts`: by programs of their own, each of which says whether
 * it has found anything but zeros. */
static Sums build_sums(Zeros *z, const Chain *chain, TileOp *grid, bool parts) {
    TileModule *module = z->context->module;
    TileBuilder host = tile_builder_before(module, grid);
    TileValue *tensor = tile_op_operand(chain->load, 0), *extents[MOST_AXES], *sizes[MOST_AXES], *programs[MOST_AXES];
    unsigned count = 0;
    for (unsigned d = 0; d < chain->rank; d++) {
        extents[d] = tile_build_dim(&host, tensor, d);
        if (d == chain->k && !parts) continue;
        sizes[count] = programs[count] = extents[d];
        const int64_t many = d == chain->k ? PART : chain->lanes;
        if (d == chain->n || d == chain->k) {
            TileValue *more = tile_build_binary(&host, TILE_OP_ADD, extents[d], tile_build_i64(&host, many - 1));
            programs[count] = tile_build_binary(&host, TILE_OP_DIV, more, tile_build_i64(&host, many));
        }
        if (d == chain->k) sizes[count] = programs[count];
        count++;
    }
    Sums sums = {.temp = build_temp(&host, sizes, count)};
    if (parts) {
        TileValue *all = programs[0];
        for (unsigned i = 1; i < count; i++) all = tile_build_binary(&host, TILE_OP_MUL, all, programs[i]);
        sums.answers = build_temp(&host, &all, 1);
    }
    TileOp *made = tile_build_grid(&host, programs, count);
    TileBuilder b = tile_builder_at_end(module, &made->regions[0]);
    b.location = chain->dot->location;
    build_program(&b, chain, made, &sums, extents);
    return sums;
}

/* ---- is there anything but zeros? ---- */

/* A number, which is none if one of the answers is none, and 0 if not: the sum of all. One program has it. */
static TileValue *build_question(Zeros *z, const Chain *chain, TileOp *grid, TileValue *answers) {
    TileModule *module = z->context->module;
    TileBuilder host = tile_builder_before(module, grid);
    TileValue *one = tile_build_i64(&host, 1), *total = build_temp(&host, &one, 1), *extent = tile_build_dim(&host, answers, 0);
    TileOp *made = tile_build_grid(&host, &one, 1);
    TileBuilder b = tile_builder_at_end(module, &made->regions[0]);
    b.location = chain->dot->location;
    const int64_t shape = ANSWERS;
    TileValue *zero = tile_build_i64(&b, 0), *none = tile_build_number(&b, tile_type_tile(module->context, TILE_F32, 1, &shape), 0);
    TileOp *loop = tile_build_for(&b, zero, extent, tile_build_i64(&b, ANSWERS), &none, 1);
    TileBuilder in = tile_builder_at_end(module, &loop->regions[0]);
    in.location = b.location;
    TileValue *place = loop->regions[0].arguments[0], *bounds[] = {zero, rest(&in, extent, place, ANSWERS)};
    Access from = {.operands = {answers}, .count = 1};
    add_range(&in, &from, place, bounds[0], bounds[1]);
    TileValue *tile = tile_op_result(build_access(&in, TILE_OP_LOAD_TILE, &from, none->type), 0);
    tile = tile_build_fill(&in, tile, tile_build_number(&in, tile_type_scalar(module->context, TILE_F32), 0), (const int64_t[]){0}, bounds, 1);
    TileValue *sum = tile_build_binary(&in, TILE_OP_ADD, loop->regions[0].arguments[1], tile);
    tile_build_end(&in, TILE_OP_YIELD, &sum, 1);
    Access to = {.operands = {total, tile_build_reduce(&b, tile_op_result(loop, 0), TILE_KIND_SUM, 0)}, .count = 2};
    add_index(&to, tile_build_i64(&b, 0));
    build_access(&b, TILE_OP_STORE_TILE, &to, NULL);
    tile_build_end(&b, TILE_OP_YIELD, NULL, 0);
    return total;
}

/* Is there one? Loaded in front of the loops, whose sums it is asked for behind them. */
static TileValue *ask(Zeros *z, const Chain *chain, TileValue *total) {
    TileBuilder b = tile_builder_before(z->context->module, chain->loops[chain->count - 1]);
    b.location = chain->dot->location;
    Access from = {.operands = {total}, .count = 1};
    add_index(&from, tile_build_i64(&b, 0));
    TileValue *number = tile_op_result(build_access(&b, TILE_OP_LOAD_TILE, &from, tile_type_scalar(b.module->context, TILE_F32)), 0);
    return tile_build_binary(&b, TILE_OP_NE, number, number);
}

/* ---- the sums behind the loops ---- */

/* What was left out of a place, or of its part. */
static TileValue *load_left(Zeros *z, TileBuilder *b, const Chain *chain, const Sums *sums, TileValue *part, const TileType *type) {
    Access access = {.operands = {sums->temp}, .count = 1};
    for (unsigned d = 0; d < chain->rank; d++) {
        const TileAccessIndex *index = &chain->indices[d];
        if (d == chain->n)
            add_range(b, &access, index->first, index->lo, index->hi);
        else if (d != chain->k)
            add_index(&access, tile_build_again(b, &z->map, index->first, chain->loops[chain->count - 1]));
        else if (part)
            add_index(&access, part);
    }
    return tile_op_result(build_access(b, TILE_OP_LOAD_TILE, &access, type), 0);
}

static TileValue *add_left(Zeros *z, TileBuilder *b, const Chain *chain, const Sums *sums, TileValue *part, TileValue *before) {
    TileValue *left = load_left(z, b, chain, sums, part, before->type);
    TileValue *condition = tile_build_splat(b, tile_build_again(b, &z->map, chain->condition, chain->loops[chain->count - 1]),
                                            tile_type_with_scalar(b->module->context, before->type, TILE_BOOL));
    left = tile_build_ternary(b, TILE_OP_SELECT, condition, tile_build_number(b, before->type, -0.0), left);
    return tile_build_binary(b, TILE_OP_ADD, before, left);
}

/* Of all parts of k, one after the other. */
static TileValue *add_parts(Zeros *z, TileBuilder *outer, const Chain *chain, const Sums *sums, TileValue *before) {
    TileValue *count = tile_build_dim(outer, sums->temp, chain->k);
    TileOp *loop = tile_build_for(outer, tile_build_i64(outer, 0), count, tile_build_i64(outer, 1), &before, 1);
    TileBuilder b = tile_builder_at_end(z->context->module, &loop->regions[0]);
    b.location = outer->location;
    TileValue *own = add_left(z, &b, chain, sums, loop->regions[0].arguments[0], loop->regions[0].arguments[1]);
    tile_build_end(&b, TILE_OP_YIELD, &own, 1);
    return tile_op_result(loop, 0);
}

/* The loops once more but for that over k, from number `depth` inward, which add up what was left out. */
static TileValue *build_loops(Zeros *z, TileBuilder *outer, const Chain *chain, unsigned depth, const Sums *sums, TileValue *before) {
    const TileOp *old = chain->loops[depth], *outermost = chain->loops[chain->count - 1];
    TileValue *range[3];
    for (unsigned i = 0; i < 3; i++) range[i] = tile_build_again(outer, &z->map, tile_op_operand(old, i), outermost);
    TileOp *loop = tile_build_for(outer, range[0], range[1], range[2], &before, 1);
    TileBuilder b = tile_builder_at_end(z->context->module, &loop->regions[0]);
    b.location = old->location;
    tile_map_set(&z->map, old->regions[0].arguments[0], loop->regions[0].arguments[0]);
    TileValue *own = loop->regions[0].arguments[1];
    if (depth > 1) own = build_loops(z, &b, chain, depth - 1, sums, own);
    else own = sums->answers ? add_parts(z, &b, chain, sums, own) : add_left(z, &b, chain, sums, NULL, own);
    tile_build_end(&b, TILE_OP_YIELD, &own, 1);
    return tile_op_result(loop, 0);
}

/* `asked`: only where that holds; NULL: in any case. */
static TileOp *add_left_out(Zeros *z, const Chain *chain, const Sums *sums, TileValue *asked) {
    TileModule *module = z->context->module;
    TileOp *outermost = chain->loops[chain->count - 1];
    TileValue *sum = tile_op_result(outermost, 0);
    TileBuilder outer = tile_builder_before(module, outermost->next), b = outer;
    outer.location = chain->dot->location;
    TileOp *made = asked ? tile_build_if(&outer, asked, &sum->type, 1) : NULL;
    if (made) b = tile_builder_at_end(module, &made->regions[0]);
    b.location = chain->dot->location;
    tile_map_init(&z->map, z->context->scratch);
    const int64_t *extent = sum->type->extent, row[] = {1, extent[1]};
    const TileType *type = tile_type_tile(module->context, TILE_F32, 1, &extent[1]);
    TileValue *left = build_loops(z, &b, chain, chain->count - 1, sums, tile_build_number(&b, type, -0.0));
    left = tile_build_broadcast(&b, tile_build_reshape(&b, left, 2, row), extent);
    TileOp *all = tile_build_op(&b, TILE_OP_ADD, (TileValue *[]){sum, left}, 2, NULL, 0, &sum->type, 1);
    if (made) {
        TileBuilder second = tile_builder_at_end(module, &made->regions[1]);
        second.location = b.location;
        tile_build_end(&b, TILE_OP_YIELD, (TileValue *[]){tile_op_result(all, 0)}, 1);
        for (TileUse *use = sum->first_use, *next; use; use = next) {
            next = use->next;
            if (use->user != all) tile_op_set_operand(use->user, use->index, tile_op_result(made, 0));
        }
        tile_build_end(&second, TILE_OP_YIELD, &sum, 1);
        return made;
    }
    for (TileUse *use = sum->first_use, *next; use; use = next) {
        next = use->next;
        if (use->user != all) tile_op_set_operand(use->user, use->index, tile_op_result(all, 0));
    }
    return all;
}

/* A sum that is -0 has been left by an underflow, since it began at 0: whether a product of zeros would have made it 0 depends on which came last. So all
 * is added up again, in its order, if there is one: `again` is a copy of the outermost loop as it was. */
static void ask_for_negative_zeros(Zeros *z, TileOp *all, TileOp *again) {
    TileModule *module = z->context->module;
    TileValue *sum = tile_op_operand(all, 0), *result = tile_op_result(all, 0);
    TileBuilder b = tile_builder_before(module, all->next);
    b.location = all->location;
    TileValue *bits = tile_build_bitcast(&b, sum, TILE_U32);
    TileValue *found = tile_build_binary(&b, TILE_OP_EQ, bits, tile_build_bits(&b, bits->type, NEGATIVE_ZERO));
    for (unsigned i = 0; i < 2; i++) found = tile_build_reduce(&b, found, TILE_KIND_ANY, 0);
    TileOp *made = tile_build_if(&b, found, &result->type, 1);
    for (TileUse *use = result->first_use, *next; use; use = next) {
        next = use->next;
        tile_op_set_operand(use->user, use->index, tile_op_result(made, 0));
    }
    TileBuilder first = tile_builder_at_end(module, &made->regions[0]), second = tile_builder_at_end(module, &made->regions[1]);
    first.location = second.location = b.location;
    tile_builder_insert(&first, again);
    tile_build_end(&first, TILE_OP_YIELD, (TileValue *[]){tile_op_result(again, 0)}, 1);
    tile_build_end(&second, TILE_OP_YIELD, &result, 1);
}

/* Where the condition holds, what it chooses is the operand itself. */
static void take_chosen(TileOp *op, void *state) {
    const TileOp *chooser = op->id == TILE_OP_SELECT ? tile_value_def(tile_op_operand(op, 0), TILE_OP_SPLAT) : NULL;
    if (chooser && tile_op_operand(chooser, 0) == state) tile_value_replace(&op->results[0], tile_op_operand(op, 1));
}

/* The loop over k runs where the condition holds. */
static void branch(Zeros *z, const Chain *chain) {
    TileModule *module = z->context->module;
    TileOp *loop = chain->loops[0];
    TileValue *start = tile_loop_carried(loop, 0), *old = tile_op_result(loop, 0);
    TileBuilder b = tile_builder_before(module, loop);
    TileOp *made = tile_build_if(&b, chain->condition, &old->type, 1);
    tile_value_replace(old, tile_op_result(made, 0));
    TileBuilder first = tile_builder_at_end(module, &made->regions[0]), second = tile_builder_at_end(module, &made->regions[1]);
    tile_op_detach(loop);
    tile_op_append(loop, &made->regions[0]);
    tile_block_walk(&loop->regions[0], take_chosen, chain->condition);
    tile_build_end(&first, TILE_OP_YIELD, &old, 1);
    tile_build_end(&second, TILE_OP_YIELD, &start, 1);
}

/* ---- one product ---- */

static bool leave_out(TilePassContext *context, TileFunc *kernel, TileOp *grid, TileOp *dot, bool exact) {
    Zeros zeros = {.context = context, .kernel = kernel}, *z = &zeros;
    Chain chain = {.dot = dot};
    const TileType *sum = dot->results[0].type;
    chain.count = tile_adding_loops(chain.dot, chain.loops, MOST_LOOPS);
    if (chain.count < 2 || sum->rank != 2 || sum->scalar != TILE_F32) return false;
    chain.condition = tile_zero_unless(tile_op_operand(dot, 0), chain.loops[0]);
    if (!chain.condition || tile_value_outside(chain.condition, chain.loops[chain.count - 1])) return false;
    const char *why = is_zero(tile_loop_carried(chain.loops[chain.count - 1], 0)) ? why_not_ahead(z, &chain) : "its sum does not begin at 0";
    if (!why && !can_copy_all(&chain)) why = "its condition is computed in a branch";
    if (why) {
        tile_pass_remark(z->context, dot, TILE_DECISION_ZEROS_MULTIPLIED, "the product", "%s", why);
        return false;
    }
    tile_pass_remark(z->context, dot, TILE_DECISION_ZEROS_LEFT_OUT, "the product", "%s", "what infinities add is added behind the loops");
    /* a tile of the program's own, which its sizes divide, or one of as many threads as a block has */
    chain.lanes = exact ? sum->extent[1] : LANES;
    TileOp *again = NULL;
    if (exact) {
        tile_map_init(&z->map, context->scratch);
        again = tile_op_clone(context->module, chain.loops[chain.count - 1], &z->map);
    }
    const Sums sums = build_sums(z, &chain, grid, !exact);
    TileValue *asked = exact ? NULL : ask(z, &chain, build_question(z, &chain, grid, sums.answers));
    TileOp *all = add_left_out(z, &chain, &sums, asked);
    if (exact) ask_for_negative_zeros(z, all, again);
    branch(z, &chain);
    return true;
}

TileResult tile_leave_zeros_out(TilePassContext *context, TileFunc *func, bool exact) {
    bool changed = false;
    if (func->kind != TILE_FUNC_KERNEL) return TILE_RESULT_UNCHANGED;
    for (TileOp *op = func->body.first; op; op = op->next) {
        if (op->id != TILE_OP_GRID) continue;
        TileOps found = tile_find_each(&op->regions[0], TILE_OP_DOT, context->scratch);
        for (size_t i = 0; i < found.count; i++) changed |= leave_out(context, func, op, found.items[i], exact);
    }
    return changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
