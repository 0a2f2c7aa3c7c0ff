/* Which lanes of a tile anybody reads.
 *
 * A program that covers the end of a tensor with a whole tile, as convolutions do with ranges that step over their input,
 * computes lanes that it does not store: rows beyond the last one, or channels beyond those of the other operand of a dot.
 * What a store's range leaves out need not be computed, nor what that alone would read. So the bounds that all readers of a
 * value have in common are bounds of its loops, beside those of its validity.
 *
 * Values are visited backward. What a loop carries is assumed to be read as the loop's result is; where its body reads
 * more of it, the function is visited again, without that assumption. */
#include "cpu/nest.h"
#include "lang/ir/operands.h"
#include "lang/scalar/scalar.h"

enum {
    MOST = 2,  /* bounds of an axis: they come before those of validity, none of which is lost for them */
    ROUNDS = 3, /* visits; in the last one nothing is assumed */
    DEEPEST = 6, /* ops of scalars that a bound takes */
    DEEPEST_MASK = 8 /* ops of a mask in which bounds are looked for */
};

typedef struct Needs {
    Nest *n;
    unsigned round;
    bool failed;
} Needs;

/* A reader needs these lanes of the value; `axes` NULL: all. */
static void need(const Needs *needs, TileValue *value, const NestAtoms *axes) {
    if (!tile_type_is_tile(value->type)) return;
    NestInfo *info = nest_info(needs->n, value);
    bool first = !info->needs;
    if (first) info->needs = TILE_NEW_ARRAY(needs->n->arena, NestAtoms, TILE_MAX_TILE_RANK);
    for (unsigned a = 0; a < value->type->rank; a++) {
        NestAtoms *own = &info->needs[a], kept = {0};
        for (unsigned i = 0; axes && value->type->extent[a] > 1 && i < axes[a].count && kept.count < MOST; i++)
            if (first || nest_atoms_have(own, &axes[a].items[i])) kept.items[kept.count++] = axes[a].items[i];
        *own = kept;
    }
}

static void need_all(const Needs *needs, const TileOp *op) {
    for (unsigned i = 0; i < op->operand_count; i++) need(needs, tile_op_operand(op, i), NULL);
}

static void range_needs(const TileOp *op, const TileType *type, NestAtoms *axes) {
    TileAccessIndex dimensions[TILE_MAX_TENSOR_RANK];
    unsigned count = tile_access_read(op, dimensions);
    for (unsigned d = 0; d < count; d++)
        if (dimensions[d].kind == TILE_ACCESS_RANGE)
            nest_atoms_add(&axes[dimensions[d].axis], dimensions[d].lo, dimensions[d].hi,
                           type->extent[dimensions[d].axis]);
}

/* Is the comparison false in lanes of its first operand that a fill has replaced? Then the bounds of the fill are bounds of lanes. */
static void compared_needs(const TileOp *op, NestAtoms *axes) {
    const TileOp *fill = tile_value_def(tile_op_operand(op, 0), TILE_OP_FILL);
    const TileAttribute *filled = fill ? tile_op_get(fill, TILE_ATTRIBUTE_AXES) : NULL;
    int64_t x, y;
    if (!fill || filled->count != 1 || !tile_value_integer(tile_op_operand(fill, 1), &x) || !tile_value_integer(tile_op_operand(op, 1), &y)) return;
    bool holds = op->id == TILE_OP_LT ? x < y : op->id == TILE_OP_LE ? x <= y : op->id == TILE_OP_GT ? x > y : x >= y;
    int64_t axis = filled->integers[0];
    if (!holds) nest_atoms_add(&axes[axis], tile_fill_lo(fill, 0), tile_fill_hi(fill, 0), fill->results[0].type->extent[axis]);
}

/* Adds bounds outside of which the mask is false, by axis: those of index tiles, which an index that no dimension has replaces in lanes that
 * there are not. */
static void mask_needs(const TileValue *mask, NestAtoms *axes, unsigned depth) {
    const TileOp *op = mask->op;
    if (!op || !depth) return;
    NestAtoms inner[TILE_MAX_TILE_RANK] = {0};
    int8_t map[TILE_MAX_TILE_RANK];
    const TileType *from = op->operand_count ? tile_op_operand(op, 0)->type : NULL, *to = mask->type;
    if (op->id == TILE_OP_AND) {
        for (unsigned i = 0; i < 2; i++) mask_needs(tile_op_operand(op, i), axes, depth - 1);
    } else if (op->id == TILE_OP_LT || op->id == TILE_OP_LE || op->id == TILE_OP_GT || op->id == TILE_OP_GE) {
        if (tile_scalar_class(from->scalar) == TILE_CLASS_SIGNED) compared_needs(op, axes);
    } else if ((op->id == TILE_OP_BROADCAST || op->id == TILE_OP_RESHAPE) && nest_rank(from)) {
        mask_needs(tile_op_operand(op, 0), inner, depth - 1);
        if (op->id == TILE_OP_RESHAPE) nest_reshape_map(from, to, map);
        for (unsigned i = 0; i < from->rank; i++) {
            int8_t axis = op->id == TILE_OP_RESHAPE ? map[i] : from->extent[i] == to->extent[i] ? (int8_t)i : NEST_REGROUPED;
            if (axis >= 0) nest_atoms_join(&axes[axis], &inner[i], to->extent[axis]);
        }
    }
}

/* Values that choose elements or lanes are read as a whole. */
static void store_needs(const Needs *needs, const TileOp *op) {
    NestAtoms axes[TILE_MAX_TILE_RANK] = {0};
    const TileValue *mask = tile_op_has_part(op, TILE_PARTS_MASK) ? tile_op_named(op, TILE_OPERAND_MASK) : NULL;
    range_needs(op, tile_op_operand(op, 1)->type, axes);
    if (mask) mask_needs(mask, axes, DEEPEST_MASK);
    for (unsigned i = 0; i < op->operand_count; i++) need(needs, tile_op_operand(op, i), i == 1 ? axes : NULL);
}

/* What is behind a change of shape, by axis of the operand. */
static void moved_needs(const Needs *needs, const TileOp *op, const NestAtoms *result) {
    TileValue *operand = tile_op_operand(op, 0);
    const TileType *from = operand->type, *to = op->results[0].type;
    NestAtoms axes[TILE_MAX_TILE_RANK] = {0};
    int8_t map[TILE_MAX_TILE_RANK];
    const TileAttribute *order = tile_op_get(op, TILE_ATTRIBUTE_AXES);
    bool simple = op->id == TILE_OP_RESHAPE && nest_rank(to) && nest_reshape_map(from, to, map);
    for (unsigned i = 0; i < nest_rank(from); i++) {
        if (op->id == TILE_OP_PERMUTE)
            axes[order->integers[i]] = result[i];
        else if (op->id == TILE_OP_BROADCAST && from->extent[i] == to->extent[i])
            axes[i] = result[i];
        else if (simple && map[i] >= 0)
            axes[i] = result[map[i]];
    }
    need(needs, operand, axes);
}

/* Lanes outside of the bounds are replaced. */
static void fill_needs(const Needs *needs, const TileOp *op, const NestAtoms *result) {
    const TileAttribute *filled = tile_op_get(op, TILE_ATTRIBUTE_AXES);
    const TileType *type = op->results[0].type;
    NestAtoms axes[TILE_MAX_TILE_RANK];
    for (unsigned i = 0; i < type->rank; i++) axes[i] = result[i];
    for (unsigned i = 0; i < filled->count; i++)
        nest_atoms_add(&axes[filled->integers[i]], tile_fill_lo(op, i), tile_fill_hi(op, i),
                       type->extent[filled->integers[i]]);
    need(needs, tile_op_operand(op, 0), axes);
}

/* All that is combined, of the rows whose result is read. */
static void reduce_needs(const Needs *needs, const TileOp *op, const NestAtoms *result) {
    unsigned axis = (unsigned)tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0), rank = tile_op_operand(op, 0)->type->rank;
    for (unsigned i = 0; i < op->operand_count; i++) {
        NestAtoms axes[TILE_MAX_TILE_RANK] = {0};
        for (unsigned a = 0; a < rank; a++)
            if (a != axis) axes[a] = result[a - (a > axis)];
        need(needs, tile_op_operand(op, i), axes);
    }
}

static void dot_needs(const Needs *needs, const TileOp *op, const NestAtoms *result) {
    unsigned rank = op->results[0].type->rank;
    NestAtoms left[TILE_MAX_TILE_RANK] = {0}, right[TILE_MAX_TILE_RANK] = {0};
    for (unsigned i = 0; i + 2 < rank; i++) left[i] = right[i] = result[i];
    left[rank - 2] = result[rank - 2];
    right[rank - 1] = result[rank - 1];
    need(needs, tile_op_operand(op, 0), left);
    need(needs, tile_op_operand(op, 1), right);
    need(needs, tile_op_named(op, TILE_OPERAND_SUM), result);
}

/* All lanes of what it yields and carries may be read, but those that no reader of its result needs. */
static void block_needs(Needs *needs, TileBlock *block);

/* Is the value carried only for the next iteration? */
static bool is_unread(const Needs *needs, const TileOp *op, unsigned i) {
    return needs->round + 1 < ROUNDS && !op->results[i].first_use && tile_type_is_tile(op->results[i].type);
}

/* Of what nobody reads behind the loop, the next iteration needs what it reads of it. The producers of what is yielded have been
 * visited: if it is needed where it was not before, they are again. */
static void unread_needs(Needs *needs, TileOp *op, unsigned i) {
    TileBlock *body = &op->regions[0];
    TileValue *yielded = tile_op_operand(body->last, i);
    const NestInfo *argument = nest_info(needs->n, body->arguments[i + 1]), *info = nest_info(needs->n, yielded);
    if (!argument->needs) return;
    NestAtoms before[TILE_MAX_TILE_RANK] = {0};
    bool known = info->needs != NULL;
    for (unsigned a = 0; known && a < yielded->type->rank; a++) before[a] = info->needs[a];
    need(needs, yielded, argument->needs);
    need(needs, tile_loop_carried(op, i), argument->needs);
    for (unsigned a = 0; a < yielded->type->rank; a++)
        if (!known || !nest_atoms_equal(&before[a], &info->needs[a])) needs->failed = true;
}

static void for_needs(Needs *needs, TileOp *op) {
    TileBlock *body = &op->regions[0];
    for (unsigned i = 0; i < op->result_count; i++) {
        const NestAtoms *result = nest_info(needs->n, &op->results[i])->needs;
        if (is_unread(needs, op, i)) continue;
        if (needs->round + 1 == ROUNDS) result = NULL;
        need(needs, tile_op_operand(body->last, i), result);
        need(needs, tile_loop_carried(op, i), result);
    }
    block_needs(needs, body);
    for (unsigned i = 0; i < op->result_count; i++) {
        TileValue *carried = body->arguments[i + 1];
        if (is_unread(needs, op, i)) unread_needs(needs, op, i);
        NestInfo *result = nest_info(needs->n, &op->results[i]), *argument = nest_info(needs->n, carried);
        if (!tile_type_is_tile(carried->type) || !result->needs || !argument->needs) continue;
        for (unsigned a = 0; a < carried->type->rank; a++)
            for (unsigned k = 0; k < result->needs[a].count; k++)
                if (!nest_atoms_have(&argument->needs[a], &result->needs[a].items[k])) needs->failed = true;
    }
}

static void branch_needs(Needs *needs, TileOp *op) {
    for (unsigned r = 0; r < op->region_count; r++) {
        for (unsigned i = 0; i < op->result_count; i++)
            need(needs, tile_op_operand(op->regions[r].last, i), nest_info(needs->n, &op->results[i])->needs);
        block_needs(needs, &op->regions[r]);
    }
}

static void other_blocks(Needs *needs, TileOp *op) {
    need_all(needs, op);
    for (unsigned r = 0; r < op->region_count; r++) {
        if (tile_op_combiner(op)) continue;
        need_all(needs, op->regions[r].last);
        block_needs(needs, &op->regions[r]);
    }
}

static bool is_terminator(const TileOp *op) { return tile_op_info((TileOpId)op->id)->traits & TILE_TRAIT_TERMINATOR; }

static void op_needs(Needs *needs, TileOp *op) {
    const NestAtoms *result = op->result_count == 1 ? nest_info(needs->n, &op->results[0])->needs : NULL;
    if (op->id == TILE_OP_FOR) {
        for_needs(needs, op);
    } else if (op->id == TILE_OP_IF) {
        branch_needs(needs, op);
    } else if (op->region_count) {
        other_blocks(needs, op);
    } else if (op->id == TILE_OP_STORE_TILE) {
        store_needs(needs, op);
    } else if (is_terminator(op)) {
        return; /* of a block: its op knows who reads the values */
    } else if (!result || !tile_type_is_tile(op->results[0].type)) {
        need_all(needs, op);
    } else if (op->id == TILE_OP_FILL) {
        fill_needs(needs, op, result);
    } else if (op->id == TILE_OP_DOT) {
        dot_needs(needs, op, result);
    } else if (op->id == TILE_OP_REDUCE) {
        reduce_needs(needs, op, result);
    } else if (op->id == TILE_OP_BROADCAST || op->id == TILE_OP_PERMUTE || op->id == TILE_OP_RESHAPE) {
        moved_needs(needs, op, result);
    } else if (tile_op_info((TileOpId)op->id)->class == TILE_CLASS_ELEMENTWISE) {
        for (unsigned i = 0; i < op->operand_count; i++) need(needs, tile_op_operand(op, i), result);
    } else {
        need_all(needs, op);
    }
}

static void note_products(const Needs *needs, const TileOp *op) {
    bool multiplied = op->id == TILE_OP_DOT || (op->result_count && nest_info(needs->n, &op->results[0])->multiplied);
    for (unsigned i = 0; multiplied && i < op->operand_count; i++)
        nest_info(needs->n, tile_op_operand(op, i))->multiplied = true;
}

static void block_needs(Needs *needs, TileBlock *block) {
    for (TileOp *op = block->last; op; op = op->previous) {
        note_products(needs, op);
        op_needs(needs, op);
    }
}

/* ---- bounds ---- */

/* Is the bound known at the op, or can it be computed there? */
static bool is_known(Nest *n, const TileValue *bound, const TileOp *at, unsigned depth) {
    int64_t number;
    if (tile_value_integer(bound, &number)) return true;
    const TileBlock *block = tile_value_block(bound); /* cpu-nest has moved the ops out of the one of the function's arguments */
    if (block->op && !tile_block_inside(at->block, block)) return false;
    if (!bound->op) return true;
    const NestSpan *span = tile_map_get(&n->spans, bound->op), *own = tile_map_get(&n->spans, at);
    if (span->last < own->first) return true;
    bool computed = tile_op_info((TileOpId)bound->op->id)->class == TILE_CLASS_ELEMENTWISE;
    if (!computed || depth == DEEPEST) return false;
    for (unsigned i = 0; i < bound->op->operand_count; i++)
        if (!is_known(n, tile_op_operand(bound->op, i), at, depth + 1)) return false;
    return true;
}

void nest_join_needs(Nest *n, const TileValue *value, const TileOp *at, NestAtoms *atoms) {
    const NestAtoms *needs = nest_info(n, value)->needs;
    if (!needs) return;
    if (!at) at = value->op ? value->op : value->block->op;
    /* Vectors run over the last axis, and whole ones are faster than a loop and a rest, unless each lane is multiplied many
     * times. */
    unsigned last = value->type->rank - 1u;
    bool exact = nest_info(n, value)->multiplied || tile_value_def(value, TILE_OP_DOT);
    for (unsigned a = 0; a < value->type->rank; a++)
        for (unsigned i = 0; i < needs[a].count; i++) {
            NestAtom atom = needs[a].items[i];
            int64_t extent = value->type->extent[a];
            if (a == last && !exact) atom.block = TILE_STRIPES;
            if (extent <= atom.block || extent % atom.block) continue;
            if (is_known(n, atom.lo, at, 0) && is_known(n, atom.hi, at, 0)) nest_atoms_add_atom(&atoms[a], &atom, extent);
        }
}

void nest_find_needs(Nest *n) {
    Needs needs = {.n = n};
    do {
        needs.failed = false;
        block_needs(&needs, n->body);
        needs.round++;
    } while (needs.failed && needs.round < ROUNDS);
}
