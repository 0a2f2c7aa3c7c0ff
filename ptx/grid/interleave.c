/* Purpose: merge accesses to every second element. Two stores whose last ranges have a step of 2 and begin one element
 * apart, and are the same otherwise, write neighbours: they become one store of both tiles' elements alternately. Two
 * such loads of small elements become one, and parts of it. So do steps of 4 that begin two elements apart, and so on. A GPU moves
 * neighbouring elements of a thread as vectors; elements at a distance are moved one by one, each by a sector's part.
 * Elements of rows that are as short and have no gaps between them lie at such a distance, too: x[n, 0] and x[n, 1].
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

enum { MOST_BETWEEN = 64, LARGEST_STEP = 16 };

/* Loads whose neighbouring lanes are less than 16 bytes apart stay, unless of small elements, or stores have been merged,
 * to whose threads they then come in pairs: their sectors are whole in the L1 cache, where the other load finds them. Stores do
 * not meet there. Lanes further apart than that ask the L1 cache for more lines than the memory delivers meanwhile. */
enum { MOST_LOADED_BYTES = 2, LEAST_BYTES_APART = 16 };

/* An access whose last dimension is a range with a constant even step. */
typedef struct Strided {
    TileOp *op;
    const TileType *type; /* of the tile */
    TileAccessIndex last;
    int64_t step;
} Strided;

static bool read_strided(TileOp *op, Strided *strided) {
    if (op->id != TILE_OP_LOAD_TILE && op->id != TILE_OP_STORE_TILE) return false;
    const TileValue *tile = op->id == TILE_OP_LOAD_TILE ? &op->results[0] : tile_op_named(op, TILE_OPERAND_VALUE);
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    if (!tile_type_is_tile(tile->type) || tile->type->rank == TILE_MAX_TILE_RANK) return false;
    if (tile_op_get(op, TILE_ATTRIBUTE_PARTS)) return false;
    unsigned rank = tile_access_read(op, indices);
    *strided = (Strided){.op = op, .type = tile->type, .last = indices[rank - 1]};
    return strided->last.kind == TILE_ACCESS_RANGE && tile_value_integer(strided->last.step, &strided->step) &&
           strided->step > 0 && strided->step <= LARGEST_STEP && strided->step % 2 == 0;
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

/* Do they access every second element of the same ones? `*second`: b's are those behind a's. */
static bool complement(TileIndices *indices, const Strided *a, const Strided *b, bool *second) {
    int64_t distance;
    if (a->op->id != b->op->id || a->type != b->type || a->step != b->step) return false;
    if (!tile_index_offset(indices, a->last.lo, b->last.lo, &distance) || distance) return false;
    if (!tile_index_offset(indices, a->last.hi, b->last.hi, &distance) || distance) return false;
    if (!is_same_row(indices, a, b, &distance)) return false;
    *second = distance > 0;
    return distance == a->step / 2 || distance == -a->step / 2;
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

/* May the early access stand where the late one does? A store goes there, a load stays. */
static bool may_move(TileIndices *indices, const Strided *early, const TileOp *late) {
    if (late->id == TILE_OP_LOAD_TILE) return true;
    for (TileOp *op = early->op->next; op != late; op = op->next)
        if (conflicts(indices, op, early)) return false;
    return true;
}

/* The access before this one, in its block, that complements it, where no op between reads or writes the same memory. */
static bool find_partner(TileIndices *indices, const Strided *strided, Strided *partner, bool *second) {
    unsigned left = MOST_BETWEEN;
    for (TileOp *op = strided->op->previous; op && left--; op = op->previous) {
        if (read_strided(op, partner) && complement(indices, partner, strided, second))
            return may_move(indices, partner, strided->op);
        if (conflicts(indices, op, strided)) return false;
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

/* The elements of both along the axis, alternately. */
static TileValue *alternate(TileBuilder *b, TileValue *x, TileValue *y, unsigned axis) {
    int64_t extent = x->type->extent[axis];
    TileValue *even = reshape_axis(b, x, axis, extent, 1), *odd = reshape_axis(b, y, axis, extent, 1);
    TileValue *both = tile_build_cat(b, even, odd, axis + 1);
    return reshape_axis(b, both, axis, 2 * extent, 0);
}

/* Makes the access one of both: from the first element of the two, with half the step, to twice as many. */
static void widen(TileBuilder *b, const Strided *access, TileValue *first) {
    TileValue *two = tile_build_i64(b, 2);
    unsigned at = access->last.operand;
    tile_op_set_operand(access->op, at, first);
    tile_op_set_operand(access->op, at + 1, tile_build_i64(b, access->step / 2));
    tile_op_set_operand(access->op, at + 2, tile_build_binary(b, TILE_OP_MUL, access->last.lo, two));
    tile_op_set_operand(access->op, at + 3, tile_build_binary(b, TILE_OP_MUL, access->last.hi, two));
}

/* The later store stores both. */
static void merge_stores(TileBuilder *b, const Strided *early, const Strided *late, bool second) {
    TileValue *x = tile_op_named(early->op, TILE_OPERAND_VALUE), *y = tile_op_named(late->op, TILE_OPERAND_VALUE);
    unsigned axis = (unsigned)late->last.axis;
    tile_op_set_operand(late->op, 1, second ? alternate(b, x, y, axis) : alternate(b, y, x, axis));
    widen(b, late, second ? early->last.first : late->last.first);
    tile_op_erase(early->op);
}

/* The element of each pair along the axis. */
static TileValue *take(TileBuilder *b, TileValue *both, unsigned axis, int64_t which) {
    int64_t extent = both->type->extent[axis] / 2;
    TileValue *pairs = reshape_axis(b, both, axis, extent, 2);
    return reshape_axis(b, tile_build_slice(b, pairs, axis + 1, which, 1), axis, extent, 0);
}

/* The earlier load loads both; it is returned. */
static TileOp *merge_loads(TileModule *module, const Strided *early, const Strided *late, bool second) {
    TileBuilder b = tile_builder_before(module, early->op);
    unsigned axis = (unsigned)early->last.axis;
    int64_t extent[TILE_MAX_TILE_RANK];
    for (unsigned a = 0; a < early->type->rank; a++) extent[a] = early->type->extent[a] * (a == axis ? 2 : 1);
    const TileType *wide = tile_type_tile(module->context, early->type->scalar, early->type->rank, extent);
    TileValue *first = early->last.first;
    if (!second) first = tile_build_binary(&b, TILE_OP_SUB, first, tile_build_i64(&b, early->step / 2));
    TileValue *operands[3 + 4 * TILE_MAX_TENSOR_RANK];
    for (unsigned i = 0; i < early->op->operand_count; i++) operands[i] = tile_op_operand(early->op, i);
    b.location = early->op->location;
    Strided both = *early;
    both.op = tile_build_op(&b, TILE_OP_LOAD_TILE, operands, early->op->operand_count, early->op->attributes,
                            early->op->attribute_count, &wide, 1);
    TileBuilder before = tile_builder_before(module, both.op);
    widen(&before, &both, first);
    TileValue *even = take(&b, &both.op->results[0], axis, 0), *odd = take(&b, &both.op->results[0], axis, 1);
    tile_value_replace(&early->op->results[0], second ? even : odd);
    tile_value_replace(&late->op->results[0], second ? odd : even);
    tile_op_erase(early->op);
    tile_op_erase(late->op);
    return both.op;
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

static void merge(Walk *w, const Strided *early, const Strided *late, bool second) {
    TileModule *module = w->context->module;
    tile_pass_remark(w->context, late->op, TILE_DECISION_INTERLEAVED, tile_op_operand(late->op, 0)->name, "step %lld",
                     (long long)late->step);
    if (late->op->id == TILE_OP_STORE_TILE) {
        TileBuilder b = tile_builder_before(module, late->op);
        merge_stores(&b, early, late, second);
    } else {
        TileOp *both = merge_loads(module, early, late, second);
        tile_map_set(&w->merged, both, both);
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

static bool is_worth(const Walk *w, const Strided *access, const Strided *partner) {
    unsigned bytes = tile_scalar_bytes(access->type->scalar);
    if (bytes <= w->most_bytes) return true;
    if (bytes * access->step >= LEAST_BYTES_APART) return !is_multiplied(&access->op->results[0]);
    return tile_map_get(&w->merged, access->op) && tile_map_get(&w->merged, partner->op);
}

/* A merged store may complement an earlier one; a merged load, which stays at the earlier place, may do so in the next
 * walk. */
static bool walk(Walk *w, TileBlock *block) {
    bool changed = false;
    for (TileOp *op = block->first, *next; op; op = next) {
        Strided strided, partner;
        bool second;
        next = op->next;
        for (unsigned i = 0; i < op->region_count; i++) changed |= walk(w, &op->regions[i]);
        if (op->id != w->id || !read_strided(op, &strided)) continue;
        if (!find_partner(w->indices, &strided, &partner, &second) || !is_worth(w, &strided, &partner)) continue;
        merge(w, &partner, &strided, second);
        if (w->id == TILE_OP_STORE_TILE) next = op;
        changed = true;
    }
    return changed;
}

TileResult tile_pass_gpu_interleave(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    bool rows = step_over_rows_in(context, func, &func->body);
    Walk w = {.context = context, .indices = tile_pass_indices(context, func), .id = TILE_OP_STORE_TILE, .most_bytes = UINT_MAX};
    bool stores = walk(&w, &func->body), loads = false;
    w.id = TILE_OP_LOAD_TILE;
    if (!stores) w.most_bytes = MOST_LOADED_BYTES;
    tile_map_init(&w.merged, context->scratch);
    while (walk(&w, &func->body)) loads = true;
    return rows || stores || loads ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
