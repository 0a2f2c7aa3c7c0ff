/* Purpose: merge accesses to every second element, or every third. Two stores whose last ranges have a step of 2 and begin one
 * element apart, and are the same otherwise, write neighbours: they become one store of both tiles' elements alternately. Two
 * such loads of small elements become one, and parts of it. So do steps of 4 that begin two elements apart, and so on; and three
 * stores with a step of 3. A GPU moves neighbouring elements of a thread as vectors; elements at a distance are moved one by one,
 * each by a sector's part. Elements of rows that are as short and have no gaps between them lie at such a distance, too: x[n, 0]
 * and x[n, 1].
 *
 * Before:
 *     func phase tile @k.0(%x: tensor<f32, 1, in> {noalias}, %y: tensor<f32, 1, out> {noalias}, %begin: i64, %end: i64) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %two = const {value = 2} : i64
 *       %n = const {value = 32} : i64
 *       %v = load_tile %x, %begin, %one, %zero, %n {access = [range]} : f32[32]
 *       %w = neg %v : f32[32]
 *       %next = add %begin, %one : i64
 *       store_tile %y, %v, %begin, %two, %zero, %n {access = [range]}
 *       store_tile %y, %w, %next, %two, %zero, %n {access = [range]}
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%x: tensor<f32, 1, in> {noalias}, %y: tensor<f32, 1, out> {noalias}, %begin: i64, %end: i64) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %two = const {value = 2} : i64
 *       %n = const {value = 32} : i64
 *       %v = load_tile %x, %begin, %one, %zero, %n {access = [range]} : f32[32]
 *       %w = neg %v : f32[32]
 *       %next = add %begin, %one : i64
 *       %0 = reshape %v : f32[32, 1]
 *       %1 = reshape %w : f32[32, 1]
 *       %2 = cat %0, %1 {axis = 1} : f32[32, 2]
 *       %3 = reshape %2 : f32[64]
 *       %4 = const {value = 2} : i64
 *       %5 = const {value = 1} : i64
 *       %6 = mul %zero, %4 : i64
 *       %7 = mul %n, %4 : i64
 *       store_tile %y, %3, %begin, %5, %6, %7 {access = [range]}
 *       return
 *     }
 * Needs: canonicalise and cse, so that equal operands are one value. Keeps: tile form. Cost: linear: between two accesses
 * that are merged there are at most MOST_BETWEEN ops. */
#include <limits.h>

#include "lang/index/index.h"
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "lowering/memory.h"
#include "ptx/passes.h"

enum { MOST_BETWEEN = 64, LARGEST_STEP = 16, MOST_PARTS = 7 };

/* Loads whose neighbouring lanes are less than 16 bytes apart stay, unless of small elements, or stores have been merged,
 * to whose threads they then come in pairs: their sectors are whole in the L1 cache, where the other load finds them. Stores do
 * not meet there. Lanes further apart than that ask the L1 cache for more lines than the memory delivers meanwhile. */
enum { MOST_LOADED_BYTES = 2, LEAST_BYTES_APART = 16 };

/* An access whose last dimension is a range with a constant step. So many as `parts` access all elements at smaller steps: `parts` is
 * the least prime factor of the step, so that larger powers of two are merged by pairs, whose elements stay in their threads. */
typedef struct Strided {
    TileOp *op;
    const TileType *type; /* of the tile */
    TileAccessIndex last;
    int64_t step, parts;
} Strided;

/* Accesses that complement each other, in the order of their first elements, and the first and the last of them in the block. */
typedef struct Group {
    Strided parts[MOST_PARTS];
    unsigned count, early, late;
} Group;

static int64_t least_factor(int64_t number) {
    int64_t factor = 2;
    while (number % factor) factor++;
    return factor;
}

static bool read_strided(TileOp *op, Strided *strided) {
    if (op->id != TILE_OP_LOAD_TILE && op->id != TILE_OP_STORE_TILE) return false;
    const TileValue *tile = op->id == TILE_OP_LOAD_TILE ? &op->results[0] : tile_op_named(op, TILE_OPERAND_VALUE);
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    if (!tile_type_is_tile(tile->type) || tile->type->rank == TILE_MAX_TILE_RANK) return false;
    if (tile_op_get(op, TILE_ATTRIBUTE_PARTS)) return false;
    unsigned rank = tile_access_read(op, indices);
    *strided = (Strided){.op = op, .type = tile->type, .last = indices[rank - 1]};
    if (strided->last.kind != TILE_ACCESS_RANGE || !tile_value_integer(strided->last.step, &strided->step)) return false;
    if (strided->step < 2 || strided->step > LARGEST_STEP) return false;
    strided->parts = least_factor(strided->step);
    return strided->parts <= MOST_PARTS;
}

/* Are the indices of all dimensions but the last the same? `*distance`: how many elements b begins behind a. */
static bool is_same_row(TileIndices *indices, const Strided *a, const Strided *b, int64_t *distance) {
    unsigned before = a->last.operand - tile_access_first(a->op);
    if (tile_op_operand(a->op, 0) != tile_op_operand(b->op, 0)) return false;
    if (b->last.operand - tile_access_first(b->op) != before) return false;
    for (unsigned i = 0; i < before; i++) {
        const TileValue *index = tile_op_named_at(a->op, TILE_OPERAND_INDICES, i);
        if (!tile_value_is_same(index, tile_op_named_at(b->op, TILE_OPERAND_INDICES, i))) return false;
    }
    return tile_index_offset(indices, b->last.first, a->last.first, distance);
}

/* Do they access every so manieth element of the same ones? `*part`: how many parts b's elements lie behind a's. */
static bool complement(TileIndices *indices, const Strided *a, const Strided *b, int64_t *part) {
    int64_t distance, apart = a->step / a->parts;
    if (a->op->id != b->op->id || a->type != b->type || a->step != b->step) return false;
    if (!tile_index_offset(indices, a->last.lo, b->last.lo, &distance) || distance) return false;
    if (!tile_index_offset(indices, a->last.hi, b->last.hi, &distance) || distance) return false;
    if (!is_same_row(indices, a, b, &distance)) return false;
    *part = distance / apart;
    return distance % apart == 0 && *part && *part > -a->parts && *part < a->parts;
}

/* Are there no elements that both access: is the distance no multiple of what divides both steps? */
static bool is_apart(TileIndices *indices, const Strided *a, const Strided *b) {
    int64_t distance, divisor = a->step, rest = b->step;
    while (rest) {
        int64_t next = divisor % rest;
        divisor = rest;
        rest = next;
    }
    return is_same_row(indices, a, b, &distance) && distance % divisor;
}

/* May the op, between two accesses, read or write what they do, so that they cannot be one? */
static bool conflicts(TileIndices *indices, TileOp *between, const Strided *access) {
    const TileValue *tensor = tile_op_operand(access->op, 0);
    Strided other;
    if (read_strided(between, &other) && is_apart(indices, &other, access)) return false;
    if (tile_memory_is_written(between, tensor)) return true;
    if (access->op->id == TILE_OP_LOAD_TILE) return false;
    if (between->region_count) return tile_op_reads(between);
    return tile_op_reads(between) && tile_memory_overlaps(tensor, tile_memory_tensor(between));
}

/* May the accesses become one: stores where the last of them is, loads where the first is? */
static bool may_meet(TileIndices *indices, const Group *group) {
    TileOp *first = group->parts[group->early].op, *last = group->parts[group->late].op;
    for (unsigned i = 0; i < group->count; i++) {
        const Strided *part = &group->parts[i];
        bool stores = part->op->id == TILE_OP_STORE_TILE;
        TileOp *op = stores ? part->op : first;
        for (const TileOp *end = stores ? last : part->op; op != end; op = op->next)
            if (op != part->op && conflicts(indices, op, part)) return false;
    }
    return true;
}

/* The parts that have been found, if some of them in a row are all that there are. `found` is numbered from the one that lies as
 * far before the last access as it can. */
static bool fill_group(Group *group, const Strided *found, const unsigned *order, unsigned parts) {
    unsigned first = parts - 1;
    while (first && found[first - 1].op) first--;
    *group = (Group){.count = parts};
    for (unsigned i = 0; i < parts; i++) {
        if (first + i >= 2 * parts - 1 || !found[first + i].op) return false;
        group->parts[i] = found[first + i];
        if (order[first + i] > order[first + group->early]) group->early = i;
        if (order[first + i] < order[first + group->late]) group->late = i;
    }
    return true;
}

/* This access and those before it, in its block, that complement it, where no op between reads or writes the same memory. */
static bool find_group(TileIndices *indices, const Strided *strided, Group *group) {
    Strided found[2 * MOST_PARTS - 1] = {0}, other;
    unsigned order[2 * MOST_PARTS - 1] = {0}, far = 0, parts = (unsigned)strided->parts;
    found[parts - 1] = *strided;
    for (TileOp *op = strided->op->previous; op && far++ < MOST_BETWEEN; op = op->previous) {
        int64_t part;
        if (read_strided(op, &other) && complement(indices, strided, &other, &part)) {
            unsigned at = (unsigned)(parts - 1 + part);
            if (!found[at].op) found[at] = other, order[at] = far;
            if (fill_group(group, found, order, parts)) return may_meet(indices, group);
        } else if (conflicts(indices, op, strided)) {
            return false;
        }
    }
    return false;
}

static TileValue *reshape_axis(TileBuilder *b, TileValue *value, unsigned axis, int64_t first, int64_t second) {
    int64_t extent[TILE_MAX_TILE_RANK];
    const TileType *type = value->type;
    unsigned rank = 0;
    for (unsigned a = 0; a < type->rank; a++) {
        if (a == axis) extent[rank++] = first;
        if (a != axis) extent[rank++] = type->extent[a];
        if (a == axis && second) extent[rank++] = second;
        if (a == axis && !second) a++; /* two axes become one */
    }
    return tile_build_reshape(b, value, rank, extent);
}

/* The elements of all along the axis, in turn. Threads join halves of their own registers: up to a power of two the last tile is there
 * more than once, and is left out again. */
static TileValue *alternate(TileBuilder *b, const Group *group, unsigned axis) {
    TileValue *parts[2 * MOST_PARTS];
    int64_t extent = group->parts[0].type->extent[axis];
    unsigned count = 1;
    while (count < group->count) count *= 2;
    for (unsigned i = 0; i < count; i++) {
        TileOp *op = group->parts[i < group->count ? i : group->count - 1].op;
        parts[i] = reshape_axis(b, tile_op_named(op, TILE_OPERAND_VALUE), axis, extent, 1);
    }
    for (; count > 1; count /= 2)
        for (unsigned i = 0; i < count / 2; i++) parts[i] = tile_build_cat(b, parts[2 * i], parts[2 * i + 1], axis + 1);
    TileValue *all = parts[0];
    if (all->type->extent[axis + 1] > group->count) all = tile_build_slice(b, all, axis + 1, 0, group->count);
    return reshape_axis(b, all, axis, group->count * extent, 0);
}

/* Makes the access one of all: from the first element of them, with a part of the step, to so many more. */
static void widen(TileBuilder *b, const Strided *access, TileValue *first) {
    TileValue *factor = tile_build_i64(b, access->parts);
    unsigned at = access->last.operand;
    tile_op_set_operand(access->op, at, first);
    tile_op_set_operand(access->op, at + 1, tile_build_i64(b, access->step / access->parts));
    tile_op_set_operand(access->op, at + 2, tile_build_binary(b, TILE_OP_MUL, access->last.lo, factor));
    tile_op_set_operand(access->op, at + 3, tile_build_binary(b, TILE_OP_MUL, access->last.hi, factor));
}

/* The last store stores all. */
static void merge_stores(TileBuilder *b, const Group *group) {
    const Strided *late = &group->parts[group->late];
    tile_op_set_operand(late->op, 1, alternate(b, group, (unsigned)late->last.axis));
    widen(b, late, group->parts[0].last.first);
    for (unsigned i = 0; i < group->count; i++)
        if (i != group->late) tile_op_erase(group->parts[i].op);
}

/* The element of each group along the axis. */
static TileValue *take(TileBuilder *b, TileValue *all, unsigned axis, unsigned which, unsigned count) {
    int64_t extent = all->type->extent[axis] / count;
    TileValue *groups = reshape_axis(b, all, axis, extent, count);
    return reshape_axis(b, tile_build_slice(b, groups, axis + 1, which, 1), axis, extent, 0);
}

/* The first load loads all; it is returned. */
static TileOp *merge_loads(TileModule *module, const Group *group) {
    const Strided *early = &group->parts[group->early];
    TileBuilder b = tile_builder_before(module, early->op);
    unsigned axis = (unsigned)early->last.axis;
    int64_t extent[TILE_MAX_TILE_RANK];
    for (unsigned a = 0; a < early->type->rank; a++) extent[a] = early->type->extent[a] * (a == axis ? group->count : 1);
    const TileType *wide = tile_type_tile(module->context, early->type->scalar, early->type->rank, extent);
    TileValue *first = early->last.first;
    if (group->early) first = tile_build_binary(&b, TILE_OP_SUB, first, tile_build_i64(&b, group->early * early->step / early->parts));
    TileValue *operands[3 + 4 * TILE_MAX_TENSOR_RANK];
    for (unsigned i = 0; i < early->op->operand_count; i++) operands[i] = tile_op_operand(early->op, i);
    b.location = early->op->location;
    Strided all = *early;
    all.op = tile_build_op(&b, TILE_OP_LOAD_TILE, operands, early->op->operand_count, early->op->attributes,
                           early->op->attribute_count, &wide, 1);
    TileBuilder before = tile_builder_before(module, all.op);
    widen(&before, &all, first);
    for (unsigned i = 0; i < group->count; i++) {
        TileOp *part = group->parts[i].op;
        tile_value_replace(&part->results[0], take(&b, &all.op->results[0], axis, i, group->count));
    }
    for (unsigned i = 0; i < group->count; i++) tile_op_erase(group->parts[i].op);
    return all.op;
}

/* ---- short rows ---- */

/* Goes from row to row of a tensor without gaps, to one element of each, as by steps through its elements. */
static bool step_over_rows(TileFunc *func, TileModule *module, TileOp *op) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    const TileValue *tensor = tile_op_operand(op, 0);
    unsigned rank = tensor->type->rank;
    int64_t step;
    if (tensor->op || rank < 2 || tile_op_get(op, TILE_ATTRIBUTE_FLAT) || tile_op_get(op, TILE_ATTRIBUTE_PARTS)) return false;
    tile_access_read(op, indices);
    const TileAccessIndex *row = &indices[rank - 2], *last = &indices[rank - 1];
    if (row->kind != TILE_ACCESS_RANGE || last->kind != TILE_ACCESS_INDEX || !tile_value_integer(row->step, &step)) return false;
    TileParameter *parameter = &func->parameters[tensor->index];
    int64_t bytes = tile_scalar_bytes(tensor->type->scalar), stride = parameter->facts.stride[rank - 2], length = stride / bytes;
    if (!(parameter->facts.dense >> (rank - 2) & 1) || stride == TILE_UNKNOWN) return false;
    if (length < 2 || length > LARGEST_STEP || step < 1 || step > LARGEST_STEP) return false;
    parameter->used_dense |= 1u << (rank - 2);
    int64_t kinds[TILE_MAX_TENSOR_RANK];
    for (unsigned d = 0; d < rank; d++) kinds[d] = tile_op_get(op, TILE_ATTRIBUTE_ACCESS)->integers[d];
    kinds[rank - 2] = TILE_ACCESS_INDEX;
    kinds[rank - 1] = TILE_ACCESS_RANGE;
    TileBuilder b = tile_builder_before(module, op);
    TileValue *first = tile_build_binary(&b, TILE_OP_MUL, row->first, tile_build_i64(&b, length));
    TileValue *range[] = {tile_build_i64(&b, 0), tile_build_binary(&b, TILE_OP_ADD, first, last->first),
                          tile_build_i64(&b, step * length), row->lo, row->hi};
    for (unsigned i = 0; i < sizeof range / sizeof *range; i++) tile_op_set_operand(op, row->operand + i, range[i]);
    tile_op_set_integers(module, op, TILE_ATTRIBUTE_ACCESS, kinds, rank);
    tile_op_set_integer(module, op, TILE_ATTRIBUTE_FLAT, rank - 2);
    return true;
}

static bool step_over_rows_in(TilePassContext *context, TileFunc *func, TileBlock *block) {
    bool changed = false;
    for (TileOp *op = block->first; op; op = op->next) {
        for (unsigned i = 0; i < op->region_count; i++) changed |= step_over_rows_in(context, func, &op->regions[i]);
        if (op->id != TILE_OP_LOAD_TILE && op->id != TILE_OP_STORE_TILE) continue;
        changed |= step_over_rows(func, context->module, op);
    }
    return changed;
}

/* ---- the pass ---- */

typedef struct Walk {
    TilePassContext *context;
    TileIndices *indices;
    TileOpId id;         /* of the accesses that are merged */
    unsigned most_bytes; /* of elements of loads that are merged in any case */
    TileMap merged;      /* loads that are made of others */
} Walk;

static void merge(Walk *w, const Group *group) {
    TileModule *module = w->context->module;
    const Strided *late = &group->parts[group->late];
    tile_pass_remark(w->context, late->op, TILE_DECISION_INTERLEAVED, tile_op_operand(late->op, 0)->name, "step %lld",
                     (long long)late->step);
    if (late->op->id == TILE_OP_STORE_TILE) {
        TileBuilder b = tile_builder_before(module, late->op);
        merge_stores(&b, group);
    } else {
        TileOp *all = merge_loads(module, group);
        tile_map_set(&w->merged, all, all);
    }
}

/* Operands of products are copied to shared memory as they lie, not by registers. */
static bool is_multiplied(const TileValue *value) {
    for (const TileUse *use = value->first_use; use; use = use->next) {
        const TileOp *user = use->user;
        if (user->id == TILE_OP_DOT) return true;
        if ((user->id == TILE_OP_FILL || user->id == TILE_OP_PERMUTE) && is_multiplied(&user->results[0])) return true;
    }
    return false;
}

/* Parts of a load that are no halves would pass between threads. */
static bool is_worth(const Walk *w, const Group *group) {
    const Strided *access = &group->parts[group->late];
    unsigned bytes = tile_scalar_bytes(access->type->scalar);
    if (access->op->id == TILE_OP_STORE_TILE) return true;
    if (access->parts != 2) return false;
    if (bytes <= w->most_bytes) return true;
    if (bytes * access->step >= LEAST_BYTES_APART) return !is_multiplied(&access->op->results[0]);
    return tile_map_get(&w->merged, group->parts[0].op) && tile_map_get(&w->merged, group->parts[1].op);
}

/* A merged store may complement an earlier one; a merged load, which stays at the earlier place, may do so in the next
 * walk. */
static bool walk(Walk *w, TileBlock *block) {
    bool changed = false;
    for (TileOp *op = block->first, *next; op; op = next) {
        Strided strided;
        Group group;
        next = op->next;
        for (unsigned i = 0; i < op->region_count; i++) changed |= walk(w, &op->regions[i]);
        if (op->id != w->id || !read_strided(op, &strided)) continue;
        if (!find_group(w->indices, &strided, &group) || !is_worth(w, &group)) continue;
        merge(w, &group);
        if (w->id == TILE_OP_STORE_TILE) next = op;
        changed = true;
    }
    return changed;
}

TileResult tile_pass_gpu_interleave(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    bool rows = step_over_rows_in(context, func, &func->body);
    Walk w = {.context = context, .indices = tile_pass_indices(context, func), .id = TILE_OP_STORE_TILE};
    bool stores = walk(&w, &func->body), loads = false;
    w.id = TILE_OP_LOAD_TILE;
    w.most_bytes = stores ? UINT_MAX : MOST_LOADED_BYTES;
    tile_map_init(&w.merged, context->scratch);
    while (walk(&w, &func->body)) loads = true;
    return rows || stores || loads ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
