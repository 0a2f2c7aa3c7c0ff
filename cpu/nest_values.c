/* The validity of tile values, and the values that a statement reads at each point. */
#include <string.h>

#include "cpu/nest.h"
#include "lang/ir/eval.h"
#include "lang/ir/operands.h"
#include "lang/scalar/scalar.h"

/* ---- atoms ---- */

bool nest_is_single(const TileType *type) { return tile_type_lanes(type) == 1; }

static void load_atoms(const TileOp *op, NestAtoms *atoms) {
    TileAccessIndex dimensions[TILE_MAX_TENSOR_RANK];
    unsigned count = tile_access_read(op, dimensions);
    const TileType *type = op->results[0].type;
    if (tile_op_named(op, TILE_OPERAND_FILLING)) return;
    for (unsigned d = 0; d < count; d++)
        if (dimensions[d].kind == TILE_ACCESS_RANGE)
            nest_atoms_add(&atoms[dimensions[d].axis], dimensions[d].lo,
                           dimensions[d].hi, type->extent[dimensions[d].axis]);
}

/* Reshapes among axes of extent 1 move the bounds of one axis to another without a trace, so those that a fill
 * replaces may be at any axis of extent 1. */
static void fill_atoms(const TileOp *op, NestAtoms *atoms) {
    const TileType *type = op->results[0].type;
    const TileAttribute *axes = tile_op_get(op, TILE_ATTRIBUTE_AXES);
    bool single = false;
    for (unsigned i = 0; i < axes->count; i++) {
        atoms[axes->integers[i]].count = 0;
        single = single || type->extent[axes->integers[i]] == 1;
    }
    for (unsigned i = 0; single && i < type->rank; i++)
        if (type->extent[i] == 1) atoms[i].count = 0;
}

static void dot_atoms(Nest *n, TileValue *value, NestAtoms *atoms) {
    const NestStatement *s = nest_info(n, value)->statement;
    unsigned rank = value->type->rank;
    for (unsigned i = 0; s && i < rank; i++) {
        if (i != rank - 1) nest_atoms_join(&atoms[i], &s->a.atoms[i], value->type->extent[i]);
        if (i != rank - 2) nest_atoms_join(&atoms[i], &s->b.atoms[i], value->type->extent[i]);
    }
    nest_atoms_join(&atoms[rank - 2], &nest_atoms(n, tile_op_named(value->op, TILE_OPERAND_SUM))[rank - 2],
                    value->type->extent[rank - 2]);
    nest_atoms_join(&atoms[rank - 1], &nest_atoms(n, tile_op_named(value->op, TILE_OPERAND_SUM))[rank - 1],
                    value->type->extent[rank - 1]);
}

/* The atoms that two values have in common, along all axes but `skip` (-1: along all). */
static void common_atoms(Nest *n, TileValue *x_value, TileValue *y_value, int64_t skip, NestAtoms *atoms) {
    const TileType *type = x_value->type;
    const NestAtoms *x = nest_atoms(n, x_value), *y = nest_atoms(n, y_value);
    for (unsigned a = 0; a < type->rank; a++)
        for (unsigned i = 0; a != skip && i < x[a].count; i++)
            if (nest_atoms_have(&y[a], &x[a].items[i]))
                nest_atoms_add_atom(&atoms[a], &x[a].items[i], type->extent[a]);
}

static void elementwise_atoms(Nest *n, const TileOp *op, NestAtoms *atoms) {
    const TileType *type = op->results[0].type;
    bool select = op->id == TILE_OP_SELECT; /* a lane may be valid in one arm only */
    for (unsigned i = 0; i < (select ? 1 : op->operand_count); i++) {
        TileValue *operand = tile_op_operand(op, i);
        if (!tile_type_is_tile(operand->type)) continue;
        const NestAtoms *from = nest_atoms(n, operand);
        for (unsigned a = 0; a < type->rank; a++) nest_atoms_join(&atoms[a], &from[a], type->extent[a]);
    }
    if (select) common_atoms(n, tile_op_named(op, TILE_OPERAND_X), tile_op_named(op, TILE_OPERAND_Y), -1, atoms);
}

/* The operand's atoms, mapped to the axes of the result. */
static void moved_atoms(Nest *n, TileValue *value, NestAtoms *atoms) {
    const TileOp *op = value->op;
    TileValue *operand = tile_op_operand(op, 0);
    if (!tile_type_is_tile(operand->type)) return;
    const NestAtoms *from = nest_atoms(n, operand);
    const TileType *type = value->type;
    int64_t axis = tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0);
    int8_t map[TILE_MAX_TILE_RANK];
    if (op->id == TILE_OP_BROADCAST) {
        for (unsigned i = 0; i < type->rank; i++)
            if (operand->type->extent[i] == type->extent[i]) atoms[i] = from[i];
    } else if (op->id == TILE_OP_PERMUTE) {
        const TileAttribute *axes = tile_op_get(op, TILE_ATTRIBUTE_AXES);
        for (unsigned i = 0; i < type->rank; i++) atoms[i] = from[axes->integers[i]];
    } else if (op->id == TILE_OP_RESHAPE && nest_reshape_map(operand->type, type, map)) {
        for (unsigned i = 0; i < operand->type->rank; i++)
            if (map[i] >= 0) atoms[map[i]] = from[i];
    } else if (op->id == TILE_OP_SLICE || op->id == TILE_OP_FLIP) {
        for (unsigned i = 0; i < type->rank; i++)
            if (i != axis) atoms[i] = from[i];
    } else if (op->id == TILE_OP_REDUCE || op->id == TILE_OP_ARG_REDUCE) {
        for (unsigned i = 0; tile_type_is_tile(type) && i < type->rank; i++) atoms[i] = from[i + (i >= axis)];
    } else if (op->id == TILE_OP_FILL) {
        memcpy(atoms, from, sizeof *from * type->rank);
        fill_atoms(op, atoms);
    }
}

/* By axis: the atoms of all tiles that are folded. */
static void folded_atoms(Nest *n, const TileOp *op, NestAtoms *atoms) {
    const TileType *type = tile_op_operand(op, 0)->type;
    for (unsigned i = 0; i < op->result_count; i++) {
        const NestAtoms *from = nest_atoms(n, tile_op_operand(op, i));
        for (unsigned a = 0; a < type->rank; a++) nest_atoms_join(&atoms[a], &from[a], type->extent[a]);
    }
}

static void fold_result_atoms(Nest *n, const TileOp *op, NestAtoms *atoms) {
    NestAtoms folded[TILE_MAX_TILE_RANK] = {0};
    unsigned axis = (unsigned)tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0), next = 0;
    folded_atoms(n, op, folded);
    for (unsigned a = 0; a < tile_op_operand(op, 0)->type->rank; a++)
        if (a != axis || op->id == TILE_OP_SCAN) atoms[next++] = folded[a];
}

/* Of the atoms of a value that a region yields, only those with bounds defined outside of the op count. */
static void join_outer(Nest *n, NestAtoms *atoms, TileValue *value, const TileOp *owner) {
    const NestAtoms *from = nest_atoms(n, value);
    for (unsigned a = 0; a < value->type->rank; a++)
        for (unsigned i = 0; i < from[a].count; i++) {
            const NestAtom *atom = &from[a].items[i];
            if (tile_value_outside(atom->lo, owner) && tile_value_outside(atom->hi, owner))
                nest_atoms_add_atom(&atoms[a], atom, value->type->extent[a]);
        }
}

/* Validity is static: an atom holds if it holds for the initial value and in all branches and iterations. For a
 * loop-carried value, `atoms` has its own atoms when its successor is visited. */
static void region_atoms(Nest *n, const TileValue *value, NestAtoms *atoms) {
    const TileOp *owner = value->op ? value->op : value->block->op;
    if (!owner) return;
    unsigned slot = value->op ? value->index : value->index - 1;
    if (owner->id == TILE_OP_FOR) join_outer(n, atoms, tile_loop_carried(owner, slot), owner);
    for (unsigned r = 0; r < owner->region_count && owner->id != TILE_OP_WHILE; r++)
        join_outer(n, atoms, tile_op_operand(owner->regions[r].last, slot), owner);
}

/* If there are too many atoms, others are dropped: what is not read may not have been computed. */
static void put_needs_first(Nest *n, const TileValue *value, NestAtoms *atoms) {
    NestAtoms needs[TILE_MAX_TILE_RANK] = {0};
    nest_join_needs(n, value, NULL, needs);
    for (unsigned a = 0; a < value->type->rank; a++) {
        if (!needs[a].count) continue;
        nest_atoms_join(&needs[a], &atoms[a], value->type->extent[a]);
        atoms[a] = needs[a];
    }
}

const NestAtoms *nest_atoms(Nest *n, TileValue *value) {
    NestInfo *info = nest_info(n, value);
    if (info->atoms) return info->atoms;
    NestAtoms *atoms = TILE_NEW_ARRAY(n->arena, NestAtoms, TILE_MAX_TILE_RANK);
    info->atoms = atoms;
    const TileOp *op = value->op;
    if (!tile_type_is_tile(value->type)) return atoms;
    nest_join_needs(n, value, NULL, atoms);
    if (!op || nest_has_blocks(op)) {
        region_atoms(n, value, atoms);
    } else if (tile_op_combiner(op)) {
        fold_result_atoms(n, op, atoms);
    } else if (op->id == TILE_OP_LOAD_TILE || op->id == TILE_OP_ATOMIC_TILE) {
        load_atoms(op, atoms);
    } else if (op->id == TILE_OP_DOT) {
        dot_atoms(n, value, atoms);
    } else if (op->id == TILE_OP_CAT) {
        common_atoms(n, tile_op_operand(op, 0), tile_op_operand(op, 1), tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0),
                     atoms);
    } else if (tile_op_info(op->id)->class == TILE_CLASS_ELEMENTWISE) {
        elementwise_atoms(n, op, atoms);
    } else if (op->operand_count && op->id != TILE_OP_SPLAT) {
        moved_atoms(n, value, atoms);
    }
    put_needs_first(n, value, atoms);
    return atoms;
}

/* ---- levels and maps ---- */

void nest_levels(NestStatement *s, const TileType *type, const NestAtoms *atoms, int skip) {
    int axis = 0; /* of the value, which lacks the axis that is skipped */
    for (int i = 0; tile_type_is_tile(type) && i < type->rank; i++) {
        if (i == skip) continue;
        if (type->extent[i] > 1 || atoms[i].count) {
            s->levels[s->level_count] =
                (NestLevel){.extent = type->extent[i], .atoms = atoms[i], .kind = TILE_LOOP_KIND_PARALLEL};
            s->axis[s->level_count++] = (int8_t)axis;
        }
        axis++;
    }
    s->parallel_count = s->level_count;
}

/* Only lanes within the destination's range are stored, whatever other lanes of the value hold. */
void nest_store_levels(NestStatement *s) {
    TileAccessIndex dimensions[TILE_MAX_TENSOR_RANK];
    NestAtoms atoms[TILE_MAX_TILE_RANK] = {0};
    unsigned count = tile_access_read(s->op, dimensions);
    const TileType *type = tile_op_operand(s->op, 1)->type;
    for (unsigned d = 0; d < count; d++)
        if (dimensions[d].kind == TILE_ACCESS_RANGE)
            nest_atoms_add(&atoms[dimensions[d].axis], dimensions[d].lo,
                           dimensions[d].hi, type->extent[dimensions[d].axis]);
    nest_levels(s, type, atoms, -1);
}

/* Lanes of an update without atomic accesses are in parallel along ranges, whose elements differ; others may meet. */
void nest_atomic_levels(NestStatement *s) {
    TileAccessIndex dimensions[TILE_MAX_TENSOR_RANK];
    unsigned count = tile_access_read(s->op, dimensions);
    bool parallel[TILE_MAX_TILE_RANK] = {false};
    int64_t step;
    nest_store_levels(s);
    for (unsigned d = 0; d < count; d++)
        if (dimensions[d].kind == TILE_ACCESS_RANGE && tile_value_integer(dimensions[d].step, &step) && step)
            parallel[dimensions[d].axis] = true;
    for (unsigned l = 0; tile_op_get(s->op, TILE_ATTRIBUTE_ALONE) && l < s->level_count; l++)
        if (!parallel[s->axis[l]]) s->levels[l].kind = TILE_LOOP_KIND_SEQUENTIAL;
}

/* Only lanes that are invalid in all values are excluded. An accumulator is copied only where the dot has results. */
void nest_copy_levels(Nest *n, NestStatement *s) {
    if (!s->copy_count) return;
    const TileType *type = s->copies[0].value->type;
    NestAtoms atoms[TILE_MAX_TILE_RANK];
    TileValue *first = s->copies[0].value;
    memcpy(atoms, nest_atoms(n, s->accumulator ? tile_op_result(s->op, 0) : first), sizeof atoms);
    /* A constant is computed where it is copied. */
    if (s->copy_count == 1 && tile_value_def(first, TILE_OP_CONST)) nest_join_needs(n, first, s->op, atoms);
    for (unsigned i = 1; i < s->copy_count; i++)
        for (unsigned a = 0; a < type->rank; a++) {
            const NestAtoms *other = &nest_atoms(n, s->copies[i].value)[a];
            unsigned kept = 0;
            for (unsigned k = 0; k < atoms[a].count; k++)
                if (nest_atoms_have(other, &atoms[a].items[k])) atoms[a].items[kept++] = atoms[a].items[k];
            atoms[a].count = kept;
        }
    nest_levels(s, type, atoms, -1);
}

/* A fill with the identity element is replaced by bounds of the loop that exclude its lanes. */
static void trim_reduction(const NestStatement *s, TileName kind, int64_t axis, NestAtoms *atoms) {
    const TileOp *fill = tile_value_def(tile_op_operand(s->op, 0), TILE_OP_FILL);
    uint64_t bits;
    if (!fill || !tile_value_bits(tile_op_operand(fill, 1), &bits)) return;
    TileScalar scalar = fill->results[0].type->scalar;
    bool zero = kind == TILE_KIND_SUM && tile_scalar_is_float(scalar) && bits == tile_scalar_from_double(scalar, -0.0);
    if (bits != tile_eval_identity(kind, scalar) && !zero) return;
    const TileAttribute *axes = tile_op_get(fill, TILE_ATTRIBUTE_AXES);
    for (unsigned i = 0; i < axes->count; i++)
        if (axes->integers[i] == axis)
            nest_atoms_add(atoms, tile_fill_lo(fill, i), tile_fill_hi(fill, i),
                           fill->results[0].type->extent[axis]);
}

void nest_reduce_levels(Nest *n, NestStatement *s) {
    TileValue *operand = tile_op_operand(s->op, 0);
    const TileType *type = operand->type;
    int64_t axis = tile_op_integer(s->op, TILE_ATTRIBUTE_AXIS, 0);
    TileName kind = (TileName)tile_op_integer(s->op, TILE_ATTRIBUTE_KIND, TILE_KIND_SUM);
    nest_levels(s, type, nest_atoms(n, operand), (int)axis);
    NestLevel *level = &s->levels[s->level_count];
    *level = (NestLevel){.extent = type->extent[axis],
                         .atoms = nest_atoms(n, operand)[axis],
                         .kind = TILE_LOOP_KIND_REDUCE,
                         .order = axis == type->rank - 1 ? TILE_ORDER_STRIPES : TILE_ORDER_SERIAL};
    const char *words = n->lowers && n->context->remarks ? tile_reduction_words(n->context, s->op) : NULL;
    if (words)
        tile_remark_order(n->context, n->func, s->op, words,
                          level->order == TILE_ORDER_STRIPES ? "64 stripes, then halved" : "one after the other");
    trim_reduction(s, kind, axis, &level->atoms);
    s->axis[s->level_count++] = -1;
}

/* ---- folds ---- */

bool nest_is_scan(const NestStatement *s) { return s->kind == NEST_SCAN || (s->whole && s->whole->kind == NEST_SCAN); }

/* Moves the parts of a mask that are bounds along the axis to the atoms; true: nothing else is left of the mask. */
static bool trim_mask(const TileValue *mask, int64_t axis, NestAtoms *atoms) {
    const TileOp *op = mask->op;
    if (tile_value_is_integer(mask, 1)) return true;
    if (!op) return false;
    if (op->id == TILE_OP_AND) {
        bool left = trim_mask(tile_op_operand(op, 0), axis, atoms);
        return trim_mask(tile_op_operand(op, 1), axis, atoms) && left;
    }
    if (op->id == TILE_OP_SELECT && tile_value_is_integer(tile_op_named(op, TILE_OPERAND_Y), 0)) {
        bool left = trim_mask(tile_op_operand(op, 0), axis, atoms);
        return trim_mask(tile_op_operand(op, 1), axis, atoms) && left;
    }
    if (op->id != TILE_OP_FILL || !tile_value_is_integer(tile_op_operand(op, 1), 0)) return false;
    const TileAttribute *axes = tile_op_get(op, TILE_ATTRIBUTE_AXES);
    bool all = trim_mask(tile_op_operand(op, 0), axis, atoms);
    for (unsigned i = 0; i < axes->count; i++) {
        NestAtoms before;
        int64_t extent = mask->type->extent[axis];
        TileValue *lo = tile_fill_lo(op, i), *hi = tile_fill_hi(op, i);
        if (axes->integers[i] == axis) nest_atoms_add(atoms, lo, hi, extent);
        before = *atoms; /* it is included, unless there were too many */
        nest_atoms_add(&before, lo, hi, extent);
        all = all && axes->integers[i] == axis && before.count == atoms->count && atoms->count < NEST_ATOMS;
    }
    return all;
}

static void remark_fold(Nest *n, const NestStatement *s) {
    if (!n->lowers || !n->context->remarks) return;
    TileName order = s->levels[s->level_count].order;
    tile_remark_order(n->context, n->func, s->op, tile_reduction_words(n->context, s->op),
                      order == TILE_ORDER_PREFIX       ? "blocks of 16, each by growing groups"
                      : order == TILE_ORDER_NEIGHBOURS ? "blocks of 64, each by neighbours"
                                                       : "one after the other");
}

void nest_fold_levels(Nest *n, NestStatement *s) {
    const TileType *type = tile_op_operand(s->op, 0)->type;
    int64_t axis = tile_op_integer(s->op, TILE_ATTRIBUTE_AXIS, 0);
    NestAtoms atoms[TILE_MAX_TILE_RANK] = {0};
    folded_atoms(n, s->op, atoms);
    nest_levels(s, type, atoms, (int)axis);
    for (unsigned l = 0; nest_is_scan(s) && l < s->level_count; l++)
        s->axis[l] = (int8_t)(s->axis[l] + (s->axis[l] >= axis));
    s->masked = tile_op_has_part(s->op, TILE_PARTS_MASK) &&
                !trim_mask(tile_op_named(s->op, TILE_OPERAND_MASK), axis, &atoms[axis]);
    s->levels[s->level_count] = (NestLevel){.extent = type->extent[axis],
                                            .atoms = atoms[axis],
                                            .kind = TILE_LOOP_KIND_SEQUENTIAL,
                                            .order = TILE_ORDER_SERIAL};
    if (axis == type->rank - 1)
        s->levels[s->level_count].order = nest_is_scan(s) ? TILE_ORDER_PREFIX : TILE_ORDER_NEIGHBOURS;
    remark_fold(n, s);
    s->axis[s->level_count++] = nest_is_scan(s) ? (int8_t)axis : -1;
}

NestMap nest_map(const NestStatement *s, unsigned rank) {
    NestMap map;
    for (unsigned i = 0; i < TILE_MAX_TILE_RANK; i++) map.level[i] = NEST_FIXED;
    for (unsigned l = 0; l < s->level_count; l++)
        if (s->axis[l] >= 0 && s->axis[l] < (int)rank) map.level[s->axis[l]] = (int8_t)l;
    for (unsigned i = s->block ? s->block->first_axis : rank; i < rank; i++) map.level[i] = NEST_OTHER;
    return map;
}

bool nest_map_is_identity(const NestStatement *s, const NestMap *map, unsigned rank) {
    NestMap own = nest_map(s, rank);
    if (s->block) return false;
    return memcmp(own.level, map->level, rank) == 0;
}

/* ---- leaves ---- */

static void walk(Nest *n, NestStatement *s, TileValue *value, NestMap map);

static void walk_scalar(Nest *n, NestStatement *s, TileValue *value) {
    NestMap fixed;
    memset(fixed.level, NEST_FIXED, sizeof fixed.level);
    walk(n, s, value, fixed);
}

static NestMap mapped_through(const TileOp *op, const NestMap *map) {
    const TileType *from = tile_op_operand(op, 0)->type, *to = op->results[0].type;
    NestMap result;
    memset(result.level, NEST_FIXED, sizeof result.level);
    int8_t axis[TILE_MAX_TILE_RANK];
    const TileAttribute *axes = tile_op_get(op, TILE_ATTRIBUTE_AXES);
    unsigned rank = tile_type_is_tile(from) ? from->rank : 0;
    if (op->id == TILE_OP_RESHAPE) nest_reshape_map(from, to, axis);
    bool parts = op->id == TILE_OP_SLICE || op->id == TILE_OP_CAT || op->id == TILE_OP_FLIP;
    for (unsigned i = 0; i < rank; i++) {
        if (parts)
            result.level[i] = tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0) == (int64_t)i ? NEST_OTHER : map->level[i];
        else if (op->id == TILE_OP_BROADCAST)
            result.level[i] = from->extent[i] == 1 && to->extent[i] != 1 ? NEST_FIXED : map->level[i];
        else if (op->id == TILE_OP_PERMUTE)
            result.level[axes->integers[i]] = map->level[i];
        else if (axis[i] == NEST_REGROUPED)
            result.level[i] = NEST_OTHER;
        else
            result.level[i] = axis[i] < 0 ? NEST_FIXED : map->level[axis[i]];
    }
    return result;
}

static void walk_access(Nest *n, NestStatement *s, const TileOp *op, const NestMap *map) {
    TileAccessIndex dimensions[TILE_MAX_TENSOR_RANK];
    unsigned count = tile_access_read(op, dimensions);
    for (unsigned d = 0; d < count; d++) {
        unsigned operands = dimensions[d].kind == TILE_ACCESS_RANGE ? 4 : 1;
        for (unsigned i = 0; i < operands; i++) {
            NestMap inner = *map;
            if (dimensions[d].kind == TILE_ACCESS_GATHER) inner.level[0] = map->level[dimensions[d].axis];
            walk(n, s, tile_op_operand(op, dimensions[d].operand + i), inner);
        }
    }
    for (unsigned i = tile_access_end(op); i < op->operand_count; i++) walk(n, s, tile_op_operand(op, i), *map);
}

static void walk_operands(Nest *n, NestStatement *s, const TileOp *op, const NestMap *map) {
    bool moves = op->id == TILE_OP_BROADCAST || op->id == TILE_OP_PERMUTE || op->id == TILE_OP_RESHAPE ||
                 op->id == TILE_OP_SLICE || op->id == TILE_OP_CAT || op->id == TILE_OP_FLIP;
    for (unsigned i = 0; i < op->operand_count; i++)
        walk(n, s, tile_op_operand(op, i), moves ? mapped_through(op, map) : *map);
}

static void walk(Nest *n, NestStatement *s, TileValue *value, NestMap map) {
    NestInfo *info = nest_info(n, value);
    if (tile_value_def(value, TILE_OP_CONST) && !info->statement) return;
    if (info->stamp == n->stamp && memcmp(&info->leaf_map, &map, sizeof map) == 0) return;
    info->stamp = n->stamp;
    info->leaf_map = map;
    bool leaf =
        !tile_type_is_tile(value->type) || info->statement || info->slot || !value->op || value->op->region_count;
    bool load = tile_value_def(value, TILE_OP_LOAD_TILE) != NULL;
    if (leaf || load) tile_list_push(n->arena, &s->leaves, (NestLeaf){value, map});
    if (leaf) return;
    if (load)
        walk_access(n, s, value->op, &map);
    else
        walk_operands(n, s, value->op, &map);
}

static void walk_levels(Nest *n, NestStatement *s) {
    for (unsigned l = 0; l < s->level_count; l++)
        for (unsigned i = 0; i < s->levels[l].atoms.count; i++) {
            walk_scalar(n, s, s->levels[l].atoms.items[i].lo);
            walk_scalar(n, s, s->levels[l].atoms.items[i].hi);
        }
}

/* The operand of a reduction is indexed by the last level along the reduced axis. */
static NestMap reduced_map(const NestStatement *s, unsigned rank, int64_t axis) {
    NestMap value = nest_map(s, rank), map = value;
    for (unsigned i = 0; i < rank; i++) map.level[i] = value.level[i - (i > (unsigned)axis)];
    map.level[axis] = (int8_t)(s->level_count - 1);
    if (s->axis[s->level_count - 1] >= 0) return value; /* a scan keeps its axis */
    return map;
}

/* The initial value of a fold does not have the axis. */
static void walk_fold(Nest *n, NestStatement *s) {
    const TileOp *op = s->op;
    unsigned rank = tile_op_operand(op, 0)->type->rank;
    unsigned axis = (unsigned)tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0);
    unsigned points = op->result_count + tile_op_has_part(op, TILE_PARTS_MASK);
    NestMap map = reduced_map(s, rank, axis), line = map;
    for (unsigned i = axis; i + 1 < rank; i++) line.level[i] = map.level[i + 1];
    line.level[rank - 1] = NEST_FIXED;
    for (unsigned i = 0; i < op->operand_count; i++) walk(n, s, tile_op_operand(op, i), i < points ? map : line);
}

static void walk_dot(Nest *n, NestStatement *s) {
    NestOperand *operands[] = {&s->a, &s->b};
    NestMap other;
    memset(other.level, NEST_OTHER, sizeof other.level);
    for (unsigned i = 0; i < 2; i++) {
        walk(n, s, operands[i]->value, other);
        for (unsigned a = 0; a < TILE_MAX_TILE_RANK; a++)
            for (unsigned k = 0; k < operands[i]->atoms[a].count; k++) {
                walk_scalar(n, s, operands[i]->atoms[a].items[k].lo);
                walk_scalar(n, s, operands[i]->atoms[a].items[k].hi);
            }
    }
    TileValue *sum = tile_op_named(s->op, TILE_OPERAND_SUM); /* unless it is copied to the accumulator first */
    if (tile_value_def(sum, TILE_OP_DOT)) walk(n, s, sum, other);
}

static const NestBuffer *written_by(const NestStatement *s, const NestBuffer *buffer) {
    for (unsigned i = 0; i < s->copy_count; i++)
        if (s->copies[i].to == buffer) return buffer;
    return NULL;
}

bool nest_copy_crosses(Nest *n, const NestStatement *s, unsigned copy) {
    TileValue *value = s->copies[copy].value;
    NestStatement probe = *s;
    probe.copies = &s->copies[copy];
    probe.copy_count = 1;
    memset(&probe.leaves, 0, sizeof probe.leaves);
    nest_collect_leaves(n, &probe);
    const NestStatement *first = tile_map_get(&n->statements, s->op);
    for (size_t l = 0; l < probe.leaves.count; l++) {
        const NestLeaf *leaf = &probe.leaves.items[l];
        const NestBuffer *slot = nest_info(n, leaf->value)->slot;
        for (const NestStatement *other = first; slot && other; other = other->next) {
            bool here = other == s && nest_map_is_identity(s, &leaf->map, value->type->rank);
            if (!here && other->kind == NEST_COPY && written_by(other, slot)) return true;
        }
    }
    return false;
}

void nest_collect_leaves(Nest *n, NestStatement *s) {
    n->stamp++;
    s->leaves.count = 0;
    walk_levels(n, s);
    TileOp *op = s->op;
    switch (s->kind) {
    case NEST_SCALAR:
    case NEST_READ:
        for (unsigned i = 0; i < op->operand_count; i++)
            if (tile_type_lanes(tile_op_operand(op, i)->type) == 1) walk_scalar(n, s, tile_op_operand(op, i));
        break;
    case NEST_STORE:
    case NEST_ATOMIC: {
        NestMap map = nest_map(s, tile_op_operand(op, 1)->type->rank);
        for (unsigned i = 1; i < tile_access_first(op); i++) walk(n, s, tile_op_operand(op, i), map);
        walk_access(n, s, op, &map);
        break;
    }
    case NEST_REDUCE:
    case NEST_ARG_REDUCE: {
        unsigned rank = tile_op_operand(op, 0)->type->rank;
        NestMap map = reduced_map(s, rank, tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0));
        for (unsigned i = 0; i < op->operand_count; i++) walk(n, s, tile_op_operand(op, i), map);
        break;
    }
    case NEST_FOLD:
    case NEST_SCAN: walk_fold(n, s); break;
    case NEST_PART: break;
    case NEST_KEEP: {
        NestMap map = nest_map(s, s->value->type->rank);
        NestInfo *info = nest_info(n, s->value);
        info->statement = NULL; /* walk into the value itself */
        walk(n, s, s->value, map);
        info->statement = s;
        break;
    }
    case NEST_COPY:
        for (unsigned i = 0; i < s->copy_count; i++) {
            TileValue *value = s->copies[i].value;
            walk(n, s, value, nest_map(s, tile_type_is_tile(value->type) ? value->type->rank : 0));
        }
        break;
    case NEST_DOT: walk_dot(n, s); break;
    case NEST_PRINT:
        for (unsigned i = 0; i < op->operand_count; i++)
            if (!tile_type_is_tile(tile_op_operand(op, i)->type)) walk_scalar(n, s, tile_op_operand(op, i));
        break;
    }
}
