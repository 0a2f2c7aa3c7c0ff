/* Purpose: merge stores of neighbours along an index. Stores that differ in their last index alone, `y[n, 0]`, `y[n, 1]`
 * and so on, write elements that lie side by side, each by its own narrow store; they become one store of a tile with one
 * more axis. What they store is computed once, for the longer tile, where all of it is computed the same way: from the
 * same values, from loads along an index, or from loads of every so manieth element. So nothing passes between threads,
 * and one vector is moved where there were many elements.
 *
 * Before:
 *     func kernel tile @k(%x: tensor<f32, 1, in> {noalias}, %y: tensor<f32, 2, out> {noalias}) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %two = const {value = 2} : i64
 *       grid %one (%p: i64) {
 *         %n = const {value = 32} : i64
 *         %v = load_tile %x, %zero, %two, %zero, %n {access = [range]} : f32[32]
 *         %w = neg %v : f32[32]
 *         store_tile %y, %w, %zero, %one, %zero, %n, %zero {access = [range, index]}
 *         %v.1 = load_tile %x, %one, %two, %zero, %n {access = [range]} : f32[32]
 *         %w.1 = neg %v.1 : f32[32]
 *         store_tile %y, %w.1, %zero, %one, %zero, %n, %one {access = [range, index]}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func kernel tile @k(%x: tensor<f32, 1, in> {noalias}, %y: tensor<f32, 2, out> {noalias}) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %two = const {value = 2} : i64
 *       grid %one (%p: i64) {
 *         %n = const {value = 32} : i64
 *         %v = load_tile %x, %zero, %two, %zero, %n {access = [range]} : f32[32]
 *         %w = neg %v : f32[32]
 *         %v.1 = load_tile %x, %one, %two, %zero, %n {access = [range]} : f32[32]
 *         %w.1 = neg %v.1 : f32[32]
 *         %0 = const {value = 1} : i64
 *         %1 = const {value = 2} : i64
 *         %2 = mul %zero, %1 : i64
 *         %3 = mul %n, %1 : i64
 *         %4 = load_tile %x, %zero, %0, %2, %3 {access = [range]} : f32[64]
 *         %5 = reshape %4 : f32[32, 2]
 *         %6 = neg %5 : f32[32, 2]
 *         %7 = const {value = 1} : i64
 *         %8 = const {value = 0} : i64
 *         %9 = const {value = 2} : i64
 *         store_tile %y, %6, %zero, %one, %zero, %n, %zero, %7, %8, %9 {access = [range, range]}
 *         yield
 *       }
 *       return
 *     }
 * Needs: canonicalise and cse, so that equal indices are one value; dce behind it drops the narrow loads. Keeps: tile form, effects and their order. Cost: linear:
 * between the first and the last of the stores there are at most MOST_BETWEEN ops, and what they store is looked at once. */
#include <string.h>

#include "lang/index/index.h"
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "lowering/memory.h"
#include "ptx/passes.h"

enum { MOST_BETWEEN = 256, MOST_TOGETHER = 16, MOST_ELEMENTS = 4096 };

/* Stores, or what they store, in the order of the elements that they write. */
typedef struct Group {
    unsigned count;
    TileOp *ops[MOST_TOGETHER];
} Group;

typedef struct Pass {
    TilePassContext *context;
    TileIndices *indices;
    TileOp *last;   /* the last store of the group, where the tile will be stored */
    TileMap narrow; /* stores that stay, for none of them is merged with some of its neighbours only */
} Pass;

static bool has_distance(Pass *pass, const TileValue *a, const TileValue *b, int64_t expected) {
    int64_t distance;
    return tile_index_offset(pass->indices, a, b, &distance) && distance == expected;
}

/* Have both accesses the same dimensions up to the last one, which has another first element? */
static bool is_same_row(Pass *pass, const TileOp *a, const TileOp *b, int64_t *distance) {
    TileAccessIndex of_a[TILE_MAX_TENSOR_RANK], of_b[TILE_MAX_TENSOR_RANK];
    unsigned rank = tile_access_read(a, of_a);
    if (tile_op_operand(a, 0) != tile_op_operand(b, 0) || tile_access_read(b, of_b) != rank) return false;
    for (unsigned d = 0; d < rank; d++) {
        if (of_a[d].kind != of_b[d].kind || of_a[d].axis != of_b[d].axis) return false;
        bool ranges = of_a[d].kind == TILE_ACCESS_RANGE;
        if (ranges && (!has_distance(pass, of_a[d].step, of_b[d].step, 0) ||
                       !has_distance(pass, of_a[d].lo, of_b[d].lo, 0) || !has_distance(pass, of_a[d].hi, of_b[d].hi, 0)))
            return false;
        if (d + 1 == rank) break;
        if (of_a[d].kind == TILE_ACCESS_GATHER ? of_a[d].first != of_b[d].first
                                               : !has_distance(pass, of_a[d].first, of_b[d].first, 0))
            return false;
    }
    return of_a[rank - 1].kind != TILE_ACCESS_GATHER &&
           tile_index_offset(pass->indices, of_b[rank - 1].first, of_a[rank - 1].first, distance);
}

static TileAccessIndex last_index(const TileOp *access) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    return indices[tile_access_read(access, indices) - 1];
}

static bool is_plain(const TileOp *access) {
    return !tile_op_get(access, TILE_ATTRIBUTE_PARTS) && !tile_op_get(access, TILE_ATTRIBUTE_FLAT);
}

/* Does the store write one element along the last dimension? */
static bool is_narrow(const TileOp *op) {
    if (op->id != TILE_OP_STORE_TILE || !is_plain(op)) return false;
    const TileType *type = tile_op_named(op, TILE_OPERAND_VALUE)->type;
    return tile_type_is_tile(type) && type->rank < TILE_MAX_TILE_RANK && last_index(op).kind == TILE_ACCESS_INDEX;
}

static bool conflicts(const TileOp *between, const TileValue *tensor) {
    if (tile_memory_is_written(between, tensor)) return true;
    if (between->region_count) return tile_op_reads(between);
    return tile_op_reads(between) && tile_memory_overlaps(tensor, tile_memory_tensor(between));
}

/* The stores before the last one that write beside it, where nothing between reads or writes the same memory. */
static void find_group(Pass *pass, Group *group) {
    TileOp *near[2 * MOST_TOGETHER - 1] = {[MOST_TOGETHER - 1] = pass->last};
    const TileType *type = tile_op_named(pass->last, TILE_OPERAND_VALUE)->type;
    unsigned left = MOST_BETWEEN, first = MOST_TOGETHER - 1;
    for (TileOp *op = pass->last->previous; op && left--; op = op->previous) {
        int64_t distance;
        bool beside = is_narrow(op) && tile_op_named(op, TILE_OPERAND_VALUE)->type == type &&
                      is_same_row(pass, pass->last, op, &distance) && distance > -MOST_TOGETHER &&
                      distance < MOST_TOGETHER && !near[MOST_TOGETHER - 1 + distance];
        if (beside)
            near[MOST_TOGETHER - 1 + distance] = op;
        else if (conflicts(op, tile_op_operand(pass->last, 0)))
            break;
    }
    while (first && near[first - 1]) first--;
    *group = (Group){0};
    for (unsigned i = first; i < 2 * MOST_TOGETHER - 1 && near[i] && group->count < MOST_TOGETHER; i++)
        group->ops[group->count++] = near[i];
}

/* ---- what is stored ---- */

static const TileType *longer(Pass *pass, const TileType *type, int64_t count) {
    int64_t extent[TILE_MAX_TILE_RANK];
    for (unsigned a = 0; a < type->rank; a++) extent[a] = type->extent[a];
    extent[type->rank] = count;
    return tile_type_tile(pass->context->module->context, type->scalar, type->rank + 1, extent);
}

/* Is the load where the last store is, and is its tensor the same there? */
static bool is_late(Pass *pass, const TileOp *load) {
    unsigned left = MOST_BETWEEN;
    if (load->block != pass->last->block) return false;
    for (const TileOp *op = load->next; op && left--; op = op->next) {
        if (op == pass->last) return true;
        if (tile_memory_is_written(op, tile_op_operand(load, 0))) return false;
    }
    return false;
}

/* Do the loads have neighbours of one another, in turn: along an index, or each every so manieth element? */
static bool are_loads_beside(Pass *pass, const Group *group) {
    TileAccessIndex last = last_index(group->ops[0]);
    int64_t step;
    bool ranges = last.kind == TILE_ACCESS_RANGE;
    if (ranges && (!tile_value_integer(last.step, &step) || step != group->count)) return false;
    if (ranges && last.axis + 1 != (int)group->ops[0]->results[0].type->rank) return false;
    for (unsigned i = 0; i < group->count; i++) {
        int64_t distance;
        if (!is_plain(group->ops[i]) || !is_late(pass, group->ops[i])) return false;
        if (!is_same_row(pass, group->ops[0], group->ops[i], &distance) || distance != i) return false;
    }
    return true;
}

static bool is_same_attribute(const TileAttribute *a, const TileAttribute *b) {
    switch (tile_attribute_storage(a->key)) {
    case TILE_STORAGE_BITS: return a->bits == b->bits;
    case TILE_STORAGE_INT:
    case TILE_STORAGE_NAME: return a->integer == b->integer;
    case TILE_STORAGE_INTS:
    case TILE_STORAGE_NAMES: return a->count == b->count && !memcmp(a->integers, b->integers, a->count * sizeof *a->integers);
    case TILE_STORAGE_TEXT:
    case TILE_STORAGE_TEXTS:
    case TILE_STORAGE_TYPES: return false;
    }
    return false;
}

static bool are_same_attributes(const TileOp *a, const TileOp *b) {
    if (a->attribute_count != b->attribute_count) return false;
    for (unsigned i = 0; i < a->attribute_count; i++) {
        const TileAttribute *other = tile_op_get(b, a->attributes[i].key);
        if (!other || !is_same_attribute(&a->attributes[i], other)) return false;
    }
    return true;
}

/* Ops that compute each element from those at the same place, once for each store. */
static bool are_alike(const Group *group) {
    const TileOp *first = group->ops[0];
    bool of_scalars = first->id == TILE_OP_FILL || first->id == TILE_OP_CONST || first->id == TILE_OP_SPLAT;
    if (!of_scalars && tile_op_info((TileOpId)first->id)->class != TILE_CLASS_ELEMENTWISE) return false;
    for (unsigned i = 1; i < group->count; i++) {
        const TileOp *op = group->ops[i];
        if (op->operand_count != first->operand_count || op->result_count != 1 || !are_same_attributes(first, op)) return false;
    }
    return true;
}

static bool can_join(Pass *pass, TileValue *const *values, unsigned count);

static bool can_join_operand(Pass *pass, const Group *group, unsigned index) {
    TileValue *values[MOST_TOGETHER];
    bool same = true;
    for (unsigned i = 0; i < group->count; i++) {
        values[i] = tile_op_operand(group->ops[i], index);
        same &= tile_value_is_same(values[0], values[i]) ||
                (values[0]->type->scalar == TILE_I64 && !tile_type_is_tile(values[0]->type) &&
                 has_distance(pass, values[0], values[i], 0));
    }
    return tile_type_is_tile(values[0]->type) ? can_join(pass, values, group->count) : same;
}

/* Are the tiles computed the same way, so that one longer tile can be, without elements passing between threads? */
static bool can_join(Pass *pass, TileValue *const *values, unsigned count) {
    Group group = {.count = count};
    bool same = true;
    for (unsigned i = 0; i < count; i++) {
        same &= values[i] == values[0];
        group.ops[i] = values[i]->op;
        if (values[i]->type != values[0]->type) return false;
    }
    if (same) return true;
    for (unsigned i = 0; i < count; i++)
        if (!group.ops[i] || group.ops[i]->id != group.ops[0]->id || !tile_value_has_one_use(values[i])) return false;
    if (group.ops[0]->id == TILE_OP_LOAD_TILE) return are_loads_beside(pass, &group);
    if (!are_alike(&group)) return false;
    for (unsigned i = 0; i < group.ops[0]->operand_count; i++)
        if (!can_join_operand(pass, &group, i)) return false;
    return true;
}

/* ---- the tile with one more axis ---- */

/* Replaces the last index of an access, which is copied, by a range; returns how many operands there are. */
static unsigned widen(TileBuilder *b, const TileOp *access, unsigned count, TileValue **operands) {
    TileAccessIndex last = last_index(access);
    unsigned end = last.operand;
    for (unsigned i = 0; i <= end; i++) operands[i] = tile_op_operand(access, i);
    TileValue *factor = NULL;
    bool ranges = last.kind == TILE_ACCESS_RANGE;
    operands[end + 1] = tile_build_i64(b, 1);
    if (ranges) factor = tile_build_i64(b, count);
    operands[end + 2] = ranges ? tile_build_binary(b, TILE_OP_MUL, last.lo, factor) : tile_build_i64(b, 0);
    operands[end + 3] = ranges ? tile_build_binary(b, TILE_OP_MUL, last.hi, factor) : tile_build_i64(b, count);
    return end + 4;
}

static void set_last_range(TileModule *module, TileOp *access) {
    const TileAttribute *kinds = tile_op_get(access, TILE_ATTRIBUTE_ACCESS);
    int64_t names[TILE_MAX_TENSOR_RANK];
    for (unsigned d = 0; d < kinds->count; d++) names[d] = kinds->integers[d];
    TileAttribute attribute = *kinds;
    names[kinds->count - 1] = TILE_ACCESS_RANGE;
    attribute.integers = names;
    tile_op_set(module, access, attribute);
}

static TileValue *join_loads(Pass *pass, TileBuilder *b, TileOp *load, unsigned count) {
    TileValue *operands[1 + 4 * TILE_MAX_TENSOR_RANK];
    const TileType *type = load->results[0].type, *whole = longer(pass, type, count), *wide = whole;
    unsigned operand_count = widen(b, load, count, operands);
    if (last_index(load).kind == TILE_ACCESS_RANGE) {
        int64_t extent[TILE_MAX_TILE_RANK];
        for (unsigned a = 0; a < type->rank; a++) extent[a] = type->extent[a] * (a + 1 == type->rank ? count : 1);
        wide = tile_type_tile(pass->context->module->context, type->scalar, type->rank, extent);
    }
    TileOp *joined = tile_op_create(pass->context->module, TILE_OP_LOAD_TILE, load->location, operands, operand_count, &wide, 1);
    for (unsigned i = 0; i < load->attribute_count; i++) tile_op_set(pass->context->module, joined, load->attributes[i]);
    set_last_range(pass->context->module, joined);
    tile_builder_insert(b, joined);
    return wide == whole ? &joined->results[0] : tile_build_reshape(b, &joined->results[0], whole->rank, whole->extent);
}

static TileValue *join(Pass *pass, TileBuilder *b, TileValue *const *values, unsigned count) {
    TileOp *op = values[0]->op;
    const TileType *type = longer(pass, values[0]->type, count);
    bool same = true;
    for (unsigned i = 0; i < count; i++) same &= values[i] == values[0];
    if (same) {
        int64_t extent[TILE_MAX_TILE_RANK];
        for (unsigned a = 0; a < type->rank; a++) extent[a] = a + 1 == type->rank ? 1 : type->extent[a];
        return tile_build_broadcast(b, tile_build_reshape(b, values[0], type->rank, extent), type->extent);
    }
    if (op->id == TILE_OP_LOAD_TILE) return join_loads(pass, b, op, count);
    TileValue **operands = TILE_NEW_ARRAY(pass->context->scratch, TileValue *, op->operand_count + 1);
    for (unsigned i = 0; i < op->operand_count; i++) {
        TileValue *parts[MOST_TOGETHER];
        for (unsigned k = 0; k < count; k++) parts[k] = tile_op_operand(values[k]->op, i);
        operands[i] = tile_type_is_tile(parts[0]->type) ? join(pass, b, parts, count) : parts[0];
    }
    return &tile_build_op(b, (TileOpId)op->id, operands, op->operand_count, op->attributes, op->attribute_count, &type, 1)->results[0];
}

/* The one store. */
static TileOp *merge(Pass *pass, const Group *group) {
    TileModule *module = pass->context->module;
    TileBuilder b = tile_builder_before(module, pass->last);
    TileValue *values[MOST_TOGETHER], *operands[2 + 4 * TILE_MAX_TENSOR_RANK];
    for (unsigned i = 0; i < group->count; i++) values[i] = tile_op_named(group->ops[i], TILE_OPERAND_VALUE);
    TileValue *joined = join(pass, &b, values, group->count);
    unsigned operand_count = widen(&b, group->ops[0], group->count, operands);
    operands[1] = joined;
    TileOp *store = tile_op_create(module, TILE_OP_STORE_TILE, pass->last->location, operands, operand_count, NULL, 0);
    for (unsigned i = 0; i < pass->last->attribute_count; i++) tile_op_set(module, store, pass->last->attributes[i]);
    set_last_range(module, store);
    tile_op_insert_before(store, pass->last);
    for (unsigned i = 0; i < group->count; i++) tile_op_erase(group->ops[i]);
    return store;
}

/* NULL: they can be merged; else why not. */
static const char *find_obstacle(Pass *pass, const Group *group) {
    TileValue *values[MOST_TOGETHER];
    if (group->count & (group->count - 1)) return "their number is no power of two";
    for (unsigned i = 0; i < group->count; i++) values[i] = tile_op_named(group->ops[i], TILE_OPERAND_VALUE);
    if (tile_type_lanes(values[0]->type) * group->count > MOST_ELEMENTS) return "their elements are too many for a tile";
    return can_join(pass, values, group->count) ? NULL : "what they store is not computed in the same way";
}

/* From the end, so that the last store of a group comes first. */
static bool visit(Pass *pass, TileBlock *block) {
    bool changed = false;
    for (TileOp *op = block->last, *previous; op; op = previous) {
        Group group;
        previous = op->previous;
        for (unsigned i = 0; i < op->region_count; i++) changed |= visit(pass, &op->regions[i]);
        if (!is_narrow(op) || tile_map_get(&pass->narrow, op)) continue;
        pass->last = op;
        find_group(pass, &group);
        if (group.count < 2) continue;
        const char *obstacle = find_obstacle(pass, &group), *name = tile_op_operand(op, 0)->name;
        if (obstacle) {
            tile_pass_remark(pass->context, op, TILE_DECISION_NOT_NEIGHBOURS, name, "%s", obstacle);
            for (unsigned i = 0; i < group.count; i++) tile_map_set(&pass->narrow, group.ops[i], op);
            continue;
        }
        tile_pass_remark(pass->context, op, TILE_DECISION_NEIGHBOURS, name, "%u stores", group.count);
        previous = merge(pass, &group)->previous;
        changed = true;
    }
    return changed;
}

TileResult tile_pass_gpu_neighbours(TilePassContext *context, TileFunc *func) {
    Pass pass = {.context = context, .indices = tile_pass_indices(context, func)};
    tile_map_init(&pass.narrow, context->scratch);
    return visit(&pass, &func->body) ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
