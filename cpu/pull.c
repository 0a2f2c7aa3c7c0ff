/* The value of a tile at one point, as scalar ops. */
#include <string.h>

#include "cpu/nest.h"
#include "lang/ir/operands.h"

/* ---- memoisation by point ---- */

/* The point of a tile. Along an axis of one element every index is 0, so it is normalised. */
static void point_of(const TileValue *value, TileValue *const *index, TileValue **point) {
    for (unsigned i = 0; i < TILE_MAX_TILE_RANK; i++)
        point[i] = i < nest_rank(value->type) && value->type->extent[i] > 1 ? index[i] : NULL;
}

void nest_remember(Nest *n, TileValue *value, TileValue *const *index, TileValue *result) {
    NestInfo *info = nest_info(n, value);
    NestMemo memo = {.number = value->number, .next = info->memo, .value = result};
    point_of(value, index, memo.index);
    tile_list_push(n->arena, &n->memo, memo);
    info->memo = (int32_t)n->memo.count;
}

void nest_forget(Nest *n, uint32_t count) {
    while (n->memo.count > count) {
        const NestMemo *memo = &n->memo.items[--n->memo.count];
        n->infos[memo->number].memo = memo->next;
    }
}

static TileValue *recall(Nest *n, const TileValue *value, TileValue *const *index) {
    TileValue *point[TILE_MAX_TILE_RANK];
    point_of(value, index, point);
    for (int32_t i = nest_info(n, value)->memo; i; i = n->memo.items[i - 1].next)
        if (memcmp(n->memo.items[i - 1].index, point, sizeof point) == 0)
            return n->memo.items[i - 1].value;
    return NULL;
}

/* ---- sums ---- */

static TileValue *known_sum(const Nest *n, const NestSum *sum) {
    for (size_t i = n->sums.count; i-- > 0;)
        if (memcmp(&n->sums.items[i].sum, sum, sizeof *sum) == 0) return n->sums.items[i].value;
    return NULL;
}

TileValue *nest_sum_value(Nest *n, const NestSum *sum) {
    unsigned terms = 0, level = 0;
    for (unsigned i = 1; i < n->open_count; i++)
        if (sum->scale[i]) level = i, terms++;
    if (!terms) return nest_constant(n, sum->constant);
    if (terms == 1 && sum->scale[level] == 1 && !sum->constant) return n->open[level].index;
    TileValue *value = known_sum(n, sum);
    if (value) return value;
    for (unsigned i = 1; i < n->open_count; i++) {
        if (!sum->scale[i]) continue;
        TileValue *term = nest_binary(n, TILE_OP_MUL, n->open[i].index, nest_constant(n, sum->scale[i]));
        value = value ? nest_binary(n, TILE_OP_ADD, value, term) : term;
    }
    value = nest_binary(n, TILE_OP_ADD, value, nest_constant(n, sum->constant));
    tile_list_push(n->arena, &n->sums, (NestKnown){*sum, value});
    return value;
}

/* ---- guards ---- */

/* lo <= index < hi as a bool; NULL: it certainly holds. */
static TileValue *inside(Nest *n, TileValue *index, TileValue *lo, TileValue *hi, int64_t extent) {
    NestAtoms wanted = {0};
    nest_atoms_add(&wanted, lo, hi, extent);
    if (!wanted.count) return NULL;
    for (unsigned i = 1; i < n->open_count; i++) {
        if (n->open[i].index != index) continue;
        NestAtoms both = n->open[i].level->atoms;
        nest_atoms_join(&both, &wanted, extent);
        if (nest_atoms_equal(&both, &n->open[i].level->atoms)) return NULL;
    }
    int64_t low, high, at;
    bool fixed = tile_value_integer(index, &at);
    bool above = tile_value_integer(lo, &low) && low <= (fixed ? at : 0);
    bool below = tile_value_integer(hi, &high) && high > (fixed ? at : extent - 1);
    if (above && below) return NULL;
    TileValue *from[] = {index, nest_scalar(n, lo)}, *to[] = {index, nest_scalar(n, hi)};
    TileValue *first = above ? NULL : nest_op(n, TILE_OP_GE, from, 2, TILE_BOOL, NULL);
    TileValue *second = below ? NULL : nest_op(n, TILE_OP_LT, to, 2, TILE_BOOL, NULL);
    if (!first || !second) return first ? first : second;
    TileValue *operands[] = {first, second};
    return nest_op(n, TILE_OP_AND, operands, 2, TILE_BOOL, NULL);
}

/* Are these the same comparison? */
static bool is_same(const TileValue *x, const TileValue *y) {
    if (x == y) return true;
    const TileOp *a = x->op, *b = y->op;
    if (!a || !b || a->id != b->id || (a->id != TILE_OP_LT && a->id != TILE_OP_GE)) return false;
    return tile_op_operand(a, 0) == tile_op_operand(b, 0) && tile_op_operand(a, 1) == tile_op_operand(b, 1);
}

static TileValue *build_and(Nest *n, TileValue *x, TileValue *y) {
    TileValue *operands[] = {x, y};
    if (!x || !y || is_same(x, y)) return x ? x : y;
    return nest_op(n, TILE_OP_AND, operands, 2, TILE_BOOL, NULL);
}

/* guard && own, where `own`, a mask of the program, may be poison if the guard is false. */
static TileValue *guarded(Nest *n, TileValue *guard, TileValue *own) {
    if (!guard || !own || is_same(guard, own)) return guard ? guard : own;
    TileValue *operands[] = {guard, own, nest_bits(n, TILE_BOOL, 0)};
    return nest_op(n, TILE_OP_SELECT, operands, 3, TILE_BOOL, NULL);
}

/* The condition that all of the indices are in bounds; NULL: they certainly are. */
static TileValue *loose_guard(Nest *n, TileValue *const *index, unsigned rank) {
    TileValue *guard = NULL;
    for (unsigned i = 0; i < rank; i++)
        for (size_t k = n->loose.count; k-- > 0;)
            if (n->loose.items[k].index == index[i]) guard = build_and(n, guard, n->loose.items[k].inside);
    return guard;
}

/* Records that an index is in bounds only if the guard is true, since it is computed from such indices. */
static TileValue *loosen(Nest *n, TileValue *index, TileValue *guard) {
    int64_t number;
    if (guard && !tile_value_integer(index, &number)) tile_list_push(n->arena, &n->loose, (NestLoose){index, guard});
    return index;
}

/* The bounds of the atom. In blocks, an end beyond the extent is not rounded, which could overflow. */
static void atom_bounds(Nest *n, const NestAtom *atom, int64_t extent, TileValue **first, TileValue **end) {
    *first = nest_scalar(n, atom->lo);
    *end = nest_scalar(n, atom->hi);
    if (atom->block == 1) return;
    TileValue *whole = nest_constant(n, -atom->block);
    *end = nest_binary(n, TILE_OP_MIN, *end, nest_constant(n, extent));
    *end = nest_binary(n, TILE_OP_AND, nest_binary(n, TILE_OP_ADD, *end, nest_constant(n, atom->block - 1)), whole);
    if (!tile_value_is_integer(*first, 0)) *first = nest_binary(n, TILE_OP_AND, *first, whole);
}

void nest_bounds(Nest *n, const NestAtoms *atoms, int64_t extent, TileValue **lo, TileValue **hi) {
    TileValue *low = nest_constant(n, 0), *high = NULL;
    for (unsigned i = 0; i < atoms->count; i++) {
        TileValue *first, *end;
        atom_bounds(n, &atoms->items[i], extent, &first, &end);
        if (!tile_value_is_integer(first, 0))
            low = tile_value_is_integer(low, 0) ? first : nest_binary(n, TILE_OP_MAX, low, first);
        high = high ? nest_binary(n, TILE_OP_MIN, high, end) : end;
    }
    if (!high) high = nest_constant(n, extent);
    if (!tile_value_is_integer(low, 0)) high = nest_binary(n, TILE_OP_MAX, high, low);
    *lo = low;
    *hi = high;
}

/* ---- memory ---- */

static TileScalar stored_as(TileScalar scalar) { return scalar == TILE_BOOL ? TILE_U8 : scalar; }

TileValue *nest_buffer_pointer(Nest *n, NestBuffer *buffer) {
    TileBuilder b = tile_builder_at_end(n->module, &n->entry);
    if (buffer->pointer) return buffer->pointer;
    buffer->pointer = tile_build_buffer(&b, buffer->bytes, 64);
    if (buffer->passing) tile_op_set_integer(n->module, buffer->pointer->op, TILE_ATTRIBUTE_PASSING, 1);
    return buffer->pointer;
}

/* Adds index * stride for each entry, the outermost loop's first. */
static TileValue *add_offsets(Nest *n, TileValue *pointer, TileValue *const *index, TileValue *const *stride,
                              unsigned count) {
    TileValue *bytes[2 * TILE_MAX_TENSOR_RANK];
    for (unsigned i = 0; i < count; i++) bytes[i] = nest_binary(n, TILE_OP_MUL, index[i], stride[i]);
    for (unsigned level = 0; level < n->open_count; level++)
        for (unsigned i = 0; i < count; i++)
            if (nest_level(n, bytes[i]) == level) pointer = nest_offset(n, pointer, bytes[i]);
    return pointer;
}

TileValue *nest_buffer_address(Nest *n, NestBuffer *buffer, unsigned rank, TileValue *const *index) {
    TileValue *stride[TILE_MAX_TILE_RANK];
    for (unsigned i = 0; i < rank; i++) stride[i] = nest_constant(n, buffer->stride[i]);
    return add_offsets(n, nest_buffer_pointer(n, buffer), index, stride, rank);
}

TileValue *nest_stride(Nest *n, const TileValue *tensor, unsigned dimension) {
    const NestTensor *t = nest_info(n, tensor)->tensor;
    int64_t stride = t->facts.facts.stride[dimension];
    TileParameter *parameter = &n->func->parameters[t->parameter->index];
    parameter->asked_stride |= 1u << dimension;
    if (stride == TILE_UNKNOWN) return t->stride[dimension];
    parameter->used_stride |= 1u << dimension;
    return nest_constant(n, stride);
}

/* The bytes at a word times a stride, which are a word where no element of the tensor begins 2**31 bytes after its first one or later, for an index of
 * an element. NULL: the index is no word, or it is not known. */
static TileValue *bytes_in_words(Nest *n, const TileValue *tensor, TileValue *index, TileValue *stride) {
    const TileOp *widens = tile_value_def(index, TILE_OP_CONVERT);
    TileParameter *parameter = &n->func->parameters[nest_info(n, tensor)->tensor->parameter->index];
    if (!widens || tile_op_operand(widens, 0)->type->scalar != TILE_I32) return NULL;
    parameter->asked_narrow = true;
    if (!nest_info(n, tensor)->tensor->facts.facts.narrow) return NULL;
    parameter->used_narrow = true;
    TileValue *operands[] = {tile_op_operand(widens, 0), nest_op(n, TILE_OP_CONVERT, &stride, 1, TILE_I32, NULL)};
    TileValue *bytes = nest_op(n, TILE_OP_MUL, operands, 2, TILE_I32, NULL);
    return nest_op(n, TILE_OP_CONVERT, &bytes, 1, TILE_I64, NULL);
}

TileValue *nest_address(Nest *n, const TileOp *op, TileValue *const *index, TileValue **mask, unsigned *level) {
    TileAccessIndex dimensions[TILE_MAX_TENSOR_RANK];
    unsigned count = tile_access_read(op, dimensions), parts = 0;
    TileValue *at[2 * TILE_MAX_TENSOR_RANK], *stride[2 * TILE_MAX_TENSOR_RANK];
    const TileType *type = op->id == TILE_OP_STORE_TILE ? tile_op_operand(op, 1)->type : op->results[0].type;
    *mask = NULL;
    *level = 0;
    for (unsigned d = 0; d < count; d++) {
        TileValue *const first = dimensions[d].first;
        stride[parts] = nest_stride(n, tile_op_operand(op, 0), d);
        if (dimensions[d].kind == TILE_ACCESS_GATHER) {
            at[parts] = nest_pull(n, first, &index[dimensions[d].axis]);
            TileValue *bytes = bytes_in_words(n, tile_op_operand(op, 0), at[parts], stride[parts]);
            if (bytes) at[parts] = bytes, stride[parts] = nest_constant(n, 1);
            parts++;
            continue;
        }
        at[parts++] = nest_scalar(n, first);
        if (dimensions[d].kind == TILE_ACCESS_INDEX) continue;
        TileValue *lane = index[dimensions[d].axis];
        TileValue *step = nest_scalar(n, dimensions[d].step);
        if (nest_level(n, lane) > *level) *level = nest_level(n, lane);
        at[parts] = lane;
        stride[parts] = nest_binary(n, TILE_OP_MUL, step, stride[parts - 1]);
        parts++;
        TileValue *lo = dimensions[d].lo,
                  *hi = dimensions[d].hi;
        *mask = build_and(n, *mask, inside(n, lane, lo, hi, type->extent[dimensions[d].axis]));
    }
    TileValue *tile_mask = tile_op_named(op, TILE_OPERAND_MASK);
    if (tile_mask) *mask = guarded(n, *mask, nest_pull(n, tile_mask, index));
    return add_offsets(n, nest_info(n, tile_op_operand(op, 0))->tensor->pointer, at, stride, parts);
}

/* Loads inside of open[level] only: the memory may not be written before. */
static TileValue *load(Nest *n, TileScalar scalar, TileValue *address, TileValue *mask, TileValue *fill, unsigned level,
                       const TileOp *like) {
    TileValue *operands[3] = {address, mask ? mask : address, fill ? fill : address};
    if (fill && scalar == TILE_BOOL) operands[2] = fill = nest_op(n, TILE_OP_CONVERT, &fill, 1, TILE_U8, NULL);
    for (unsigned i = 0; i < 3; i++)
        if (nest_level(n, operands[i]) > level) level = nest_level(n, operands[i]);
    TileBuilder b = nest_builder_at(n, level, like);
    const TileType *type = tile_type_scalar(n->module->context, stored_as(scalar));
    TileValue *value = tile_build_load(&b, type, address, mask, mask ? fill : NULL, 0);
    return scalar == TILE_BOOL ? nest_op(n, TILE_OP_CONVERT, &value, 1, TILE_BOOL, NULL) : value;
}

void nest_store(Nest *n, TileValue *value, TileValue *address, TileValue *mask, const TileOp *like) {
    if (value->type->scalar == TILE_BOOL) value = nest_op(n, TILE_OP_CONVERT, &value, 1, TILE_U8, NULL);
    TileBuilder b = nest_builder_at(n, n->open_count - 1, like);
    tile_build_store(&b, value, address, mask, 0);
}

/* ---- values ---- */

static TileValue *load_point(Nest *n, TileValue *value, TileValue *const *index, TileValue *guard, TileValue *fill) {
    const TileOp *op = value->op;
    guard = build_and(n, loose_guard(n, index, nest_rank(value->type)), guard);
    unsigned level;
    TileValue *mask, *address = nest_address(n, op, index, &mask, &level), *own = tile_op_named(op, TILE_OPERAND_FILLING);
    if (!fill && own) fill = nest_scalar(n, own);
    return load(n, value->type->scalar, address, guarded(n, guard, mask), fill, level, op);
}

TileValue *nest_load_scalar(Nest *n, TileValue *value) { return load_point(n, value, NULL, NULL, NULL); }

static TileValue *fill_point(Nest *n, const TileOp *op, TileValue *const *index) {
    const TileAttribute *axes = tile_op_get(op, TILE_ATTRIBUTE_AXES);
    TileValue *operand = tile_op_operand(op, 0), *guard = NULL;
    for (unsigned i = 0; i < axes->count; i++) {
        int64_t axis = axes->integers[i];
        guard = build_and(
            n, guard, inside(n, index[axis], tile_fill_lo(op, i), tile_fill_hi(op, i), operand->type->extent[axis]));
    }
    if (!guard) return nest_pull(n, operand, index);
    TileValue *value = nest_scalar(n, tile_op_operand(op, 1));
    const TileOp *from = tile_value_def(operand, TILE_OP_LOAD_TILE);
    bool plain = from && !nest_info(n, operand)->statement && !tile_op_named(from, TILE_OPERAND_FILLING);
    if (plain) return load_point(n, operand, index, guard, value);
    TileValue *operands[] = {guard, nest_pull(n, operand, index), value};
    return nest_op(n, TILE_OP_SELECT, operands, 3, operand->type->scalar, op);
}

/* The indices of an element of `from` at the position of an element of `to`, by sums; false: not known. */
static bool reshape_by_sums(Nest *n, const TileType *from, const TileType *to, TileValue *const *index,
                            TileValue **inner) {
    NestSum position = {0}, parts[TILE_MAX_TILE_RANK];
    int64_t stride = 1;
    for (unsigned i = to->rank; i-- > 0; stride *= to->extent[i]) {
        NestSum one;
        if (!nest_sum(n, index[i], &one) || !nest_sum_add(&position, &one, stride)) return false;
    }
    for (unsigned i = from->rank; i-- > 1;) {
        NestSum whole = position;
        if (!nest_sum_split(n, &whole, from->extent[i], &position, &parts[i])) return false;
    }
    parts[0] = position;
    for (unsigned i = 0; i < from->rank; i++) inner[i] = nest_sum_value(n, &parts[i]);
    return true;
}

/* Are elements of these axes, from `first` on, at their row-major positions in the buffer? */
static bool is_row_major(const NestBuffer *buffer, const TileType *type, unsigned first) {
    int64_t bytes = tile_scalar_bytes(buffer->scalar);
    for (unsigned i = type->rank; i-- > first; bytes *= type->extent[i])
        if (buffer->stride[i] != bytes && type->extent[i] > 1) return false;
    return true;
}

/* The element of a kept tile at the position of an element of `to`, which needs no indices of the tile: NULL: it is not
 * kept in this order. */
static TileValue *load_reshaped(Nest *n, TileValue *operand, const TileType *to, TileValue *const *index) {
    const NestInfo *info = nest_info(n, operand);
    const TileType *from = operand->type;
    NestBuffer *buffer = info->slot ? info->slot : info->statement ? info->statement->buffer : NULL;
    unsigned same = 0;
    while (same < from->rank && same < to->rank && from->extent[same] == to->extent[same]) same++;
    if (!buffer || info->mapped || !is_row_major(buffer, from, same)) return NULL;
    TileValue *bytes[TILE_MAX_TILE_RANK + 1], *position = nest_constant(n, 0);
    for (unsigned i = 0; i < to->rank; i++) {
        if (i < same)
            bytes[i] = nest_constant(n, buffer->stride[i]);
        else
            position = nest_binary(n, TILE_OP_ADD, nest_binary(n, TILE_OP_MUL, position, nest_constant(n, to->extent[i])),
                                   index[i]);
    }
    NestSum sum;
    TileValue *at[TILE_MAX_TILE_RANK + 1];
    memcpy(at, index, same * sizeof *index);
    at[same] = nest_sum(n, position, &sum) ? nest_sum_value(n, &sum) : position;
    bytes[same] = nest_constant(n, tile_scalar_bytes(buffer->scalar));
    return load(n, buffer->scalar, add_offsets(n, nest_buffer_pointer(n, buffer), at, bytes, same + 1),
                loose_guard(n, index, to->rank), NULL,
                info->statement && n->current ? nest_shared_loops(info->statement, n->current) : 0, operand->op);
}

/* The row-major position of a point along some axes. */
static TileValue *position_of(Nest *n, const TileType *type, TileValue *const *index, unsigned first, unsigned end) {
    TileValue *position = nest_constant(n, 0);
    for (unsigned i = first; i < end; i++)
        position = nest_binary(n, TILE_OP_ADD, nest_binary(n, TILE_OP_MUL, position, nest_constant(n, type->extent[i])), index[i]);
    return position;
}

/* Axes that hold the same lanes have the same index; of others the row-major position is computed, and split by the extents of the operand's. */
static void reshape_by_groups(Nest *n, const TileType *from, const TileType *to, TileValue *const *index, TileValue *guard, TileValue **inner) {
    unsigned i = 0, j = 0;
    int8_t axis[TILE_MAX_TILE_RANK];
    nest_reshape_map(from, to, axis);
    while (i < from->rank) {
        unsigned first = i, other = j;
        nest_reshape_group(from, to, &i, &j);
        TileValue *position = NULL;
        for (unsigned a = i; a-- > first;) {
            if (axis[a] != NEST_REGROUPED) {
                inner[a] = axis[a] < 0 ? nest_constant(n, 0) : index[axis[a]];
                continue;
            }
            if (!position) position = position_of(n, to, index, other, j);
            TileValue *extent = nest_constant(n, from->extent[a]);
            inner[a] = loosen(n, a > first ? nest_binary(n, TILE_OP_REM, position, extent) : position, guard);
            if (a > first) position = nest_binary(n, TILE_OP_DIV, position, extent);
        }
    }
}

static TileValue *reshape_point(Nest *n, const TileOp *op, TileValue *const *index) {
    TileValue *operand = tile_op_operand(op, 0), *inner[TILE_MAX_TILE_RANK];
    const TileType *from = operand->type, *to = op->results[0].type;
    int8_t axis[TILE_MAX_TILE_RANK];
    unsigned rank = nest_rank(operand->type);
    if (nest_reshape_map(from, to, axis)) {
        for (unsigned i = 0; i < rank; i++) inner[i] = axis[i] < 0 ? nest_constant(n, 0) : index[axis[i]];
        return nest_pull(n, operand, inner);
    }
    TileValue *guard = loose_guard(n, index, to->rank);
    if (!guard && reshape_by_sums(n, from, to, index, inner)) return nest_pull(n, operand, inner);
    TileValue *loaded = load_reshaped(n, operand, to, index);
    if (loaded) return loaded;
    reshape_by_groups(n, from, to, index, guard, inner);
    return nest_pull(n, operand, inner);
}

static TileValue *moved_point(Nest *n, const TileOp *op, TileValue *const *index) {
    TileValue *operand = tile_op_operand(op, 0), *inner[TILE_MAX_TILE_RANK];
    const TileAttribute *axes = tile_op_get(op, TILE_ATTRIBUTE_AXES);
    const TileType *from = operand->type, *to = op->results[0].type;
    if (op->id == TILE_OP_RESHAPE) return reshape_point(n, op, index);
    for (unsigned i = 0; i < from->rank; i++) {
        if (op->id == TILE_OP_PERMUTE)
            inner[axes->integers[i]] = index[i];
        else
            inner[i] = from->extent[i] != to->extent[i] ? nest_constant(n, 0) : index[i];
    }
    return nest_pull(n, operand, inner);
}

static TileValue *slice_point(Nest *n, const TileOp *op, TileValue *const *index) {
    TileValue *operand = tile_op_operand(op, 0), *inner[TILE_MAX_TILE_RANK];
    int64_t axis = tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0);
    memcpy(inner, index, nest_rank(operand->type) * sizeof *index);
    int64_t offset = tile_op_integer(op, TILE_ATTRIBUTE_OFFSET, 0);
    TileValue *guard = loose_guard(n, &index[axis], 1);
    NestSum sum, more = {.constant = offset};
    if (!guard && nest_sum(n, index[axis], &sum) && nest_sum_add(&sum, &more, 1))
        inner[axis] = nest_sum_value(n, &sum);
    else
        inner[axis] = loosen(n, nest_binary(n, TILE_OP_ADD, inner[axis], nest_constant(n, offset)), guard);
    return nest_pull(n, operand, inner);
}

/* An operand of `cat` at index - offset, read only where `inside` holds. The index must be a value of its own: loads
 * at a shared one would be guarded, too. */
static TileValue *part_point(Nest *n, TileValue *part, int64_t axis, TileValue *const *index, int64_t offset,
                             TileValue *inside) {
    TileValue *inner[TILE_MAX_TILE_RANK], *operands[] = {index[axis], nest_constant(n, offset)};
    memcpy(inner, index, nest_rank(part->type) * sizeof *index);
    TileValue *guard = build_and(n, loose_guard(n, &index[axis], 1), inside);
    if (part->type->extent[axis] == 1)
        inner[axis] = nest_constant(n, 0);
    else
        inner[axis] = loosen(n, nest_op(n, TILE_OP_SUB, operands, 2, TILE_I64, NULL), guard);
    return nest_pull(n, part, inner);
}

/* The element where all points of the loops are in one operand; NULL: they may be in both. */
static TileValue *cat_of_one(Nest *n, const TileOp *op, int64_t axis, TileValue *const *index) {
    TileValue *x = tile_op_operand(op, 0), *inner[TILE_MAX_TILE_RANK];
    int64_t middle = x->type->extent[axis], least, greatest;
    NestSum sum, start = {.constant = -middle};
    if (!nest_sum(n, index[axis], &sum) || !nest_sum_range(n, &sum, &least, &greatest)) return NULL;
    bool first = greatest < middle;
    if ((!first && least < middle) || (!first && !nest_sum_add(&sum, &start, 1))) return NULL;
    memcpy(inner, index, nest_rank(x->type) * sizeof *index);
    if (!first) inner[axis] = nest_sum_value(n, &sum);
    return nest_pull(n, first ? x : tile_op_operand(op, 1), inner);
}

static TileValue *cat_point(Nest *n, const TileOp *op, TileValue *const *index) {
    int64_t axis = tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0);
    TileValue *x = tile_op_operand(op, 0), *y = tile_op_operand(op, 1), *one = cat_of_one(n, op, axis, index);
    int64_t middle = x->type->extent[axis];
    if (one) return one;
    TileValue *bound[] = {index[axis], nest_constant(n, middle)};
    TileValue *first = nest_op(n, TILE_OP_LT, bound, 2, TILE_BOOL, op);
    TileValue *second = nest_op(n, TILE_OP_GE, bound, 2, TILE_BOOL, op);
    TileValue *operands[] = {first, part_point(n, x, axis, index, 0, first),
                             part_point(n, y, axis, index, middle, second)};
    return nest_op(n, TILE_OP_SELECT, operands, 3, x->type->scalar, op);
}

static TileValue *flip_point(Nest *n, const TileOp *op, TileValue *const *index) {
    TileValue *operand = tile_op_operand(op, 0), *inner[TILE_MAX_TILE_RANK];
    int64_t axis = tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0);
    memcpy(inner, index, nest_rank(operand->type) * sizeof *index);
    TileValue *guard = loose_guard(n, &index[axis], 1), *last = nest_constant(n, operand->type->extent[axis] - 1);
    inner[axis] = loosen(n, nest_binary(n, TILE_OP_SUB, last, index[axis]), guard);
    return nest_pull(n, operand, inner);
}

static TileValue *iota_point(Nest *n, const TileValue *value, TileValue *const *index) {
    TileValue *at = index[tile_op_integer(value->op, TILE_ATTRIBUTE_AXIS, 0)];
    return value->type->scalar == TILE_I64 ? at : nest_op(n, TILE_OP_CONVERT, &at, 1, value->type->scalar, NULL);
}

/* The comparison where it is the same for all points of the loops; NULL: it is not, or no comparison. */
static TileValue *compared_point(Nest *n, TileOpId id, const NestSum *sum, int64_t y) {
    int64_t least, greatest;
    if (!nest_sum_range(n, sum, &least, &greatest)) return NULL;
    bool same = least == greatest && least == y, apart = y < least || y > greatest;
    switch ((int)id) {
    case TILE_OP_EQ: return same || apart ? nest_bits(n, TILE_BOOL, same) : NULL;
    case TILE_OP_NE: return same || apart ? nest_bits(n, TILE_BOOL, apart) : NULL;
    case TILE_OP_LT: return greatest < y || least >= y ? nest_bits(n, TILE_BOOL, greatest < y) : NULL;
    case TILE_OP_GE: return greatest < y || least >= y ? nest_bits(n, TILE_BOOL, least >= y) : NULL;
    case TILE_OP_LE: return greatest <= y || least > y ? nest_bits(n, TILE_BOOL, greatest <= y) : NULL;
    case TILE_OP_GT: return greatest <= y || least > y ? nest_bits(n, TILE_BOOL, least > y) : NULL;
    default: return NULL;
    }
}

/* An op on indices, which are sums, and comparisons and choices that follow from them; NULL: none of these. So what
 * depends on the bits of an index that are constants, or on those of an outer loop, is not computed lane by lane. */
static TileValue *fold_point(Nest *n, const TileOp *op, TileValue *const *operands) {
    int64_t x, y;
    NestSum sum, result;
    if (op->id == TILE_OP_SELECT && tile_value_integer(operands[0], &x)) return operands[x ? 1 : 2];
    if (op->operand_count != 2 || operands[0]->type->scalar != TILE_I64 || !tile_value_integer(operands[1], &y)) return NULL;
    if (!nest_sum(n, operands[0], &sum)) return NULL;
    if (nest_sum_apply(n, (TileOpId)op->id, &sum, y, &result)) return nest_sum_value(n, &result);
    return compared_point(n, (TileOpId)op->id, &sum, y);
}

TileValue *nest_compute(Nest *n, TileValue *value, TileValue *const *index) {
    const TileOp *op = value->op;
    NestInfo *info = nest_info(n, value);
    uint64_t bits;
    if (op && tile_value_bits(value, &bits)) {
        if (!info->mapped) info->mapped = nest_bits(n, value->type->scalar, bits);
        return info->mapped;
    }
    if (op && op->id == TILE_OP_SPLAT) return nest_scalar(n, tile_op_operand(op, 0));
    if (op && op->id == TILE_OP_IOTA) return iota_point(n, value, index);
    if (op && op->id == TILE_OP_LOAD_TILE) return load_point(n, value, index, NULL, NULL);
    if (op && op->id == TILE_OP_FILL) return fill_point(n, op, index);
    if (op && op->id == TILE_OP_SLICE) return slice_point(n, op, index);
    if (op && op->id == TILE_OP_CAT) return cat_point(n, op, index);
    if (op && op->id == TILE_OP_FLIP) return flip_point(n, op, index);
    if (op && (op->id == TILE_OP_BROADCAST || op->id == TILE_OP_RESHAPE || op->id == TILE_OP_PERMUTE))
        return moved_point(n, op, index);
    if (!op || tile_op_info(op->id)->class != TILE_CLASS_ELEMENTWISE) {
        n->failure = "a tile is used before it is computed";
        return nest_bits(n, value->type->scalar, 0);
    }
    TileValue *operands[4];
    for (unsigned i = 0; i < op->operand_count; i++) operands[i] = nest_pull(n, tile_op_operand(op, i), index);
    TileValue *folded = fold_point(n, op, operands);
    return folded ? folded : nest_op(n, (TileOpId)op->id, operands, op->operand_count, value->type->scalar, op);
}

TileValue *nest_pull(Nest *n, TileValue *value, TileValue *const *index) {
    if (!tile_type_is_tile(value->type)) return nest_scalar(n, value);
    NestInfo *info = nest_info(n, value);
    if (info->mapped) return info->mapped;
    TileValue *known = recall(n, value, index);
    if (known) return known;
    NestBuffer *buffer = info->slot ? info->slot : info->statement ? info->statement->buffer : NULL;
    if (buffer)
        known = load(n, buffer->scalar, nest_buffer_address(n, buffer, value->type->rank, index),
                     loose_guard(n, index, value->type->rank), NULL,
                     info->statement && n->current ? nest_shared_loops(info->statement, n->current) : 0, value->op);
    else if (info->statement)
        n->failure = "a kept tile has no memory";
    else
        known = nest_compute(n, value, index);
    if (!known) return nest_bits(n, value->type->scalar, 0);
    nest_remember(n, value, index, known);
    return known;
}

void nest_point(Nest *n, const NestStatement *s, unsigned rank, TileValue **index) {
    for (unsigned i = 0; i < rank; i++) index[i] = nest_constant(n, 0);
    for (unsigned l = 0; l < s->level_count && l + 1 < n->open_count; l++)
        if (s->axis[l] >= 0) index[s->axis[l]] = n->open[l + 1].index;
}

TileValue *nest_first_lane(Nest *n, TileValue *value) {
    TileValue *index[TILE_MAX_TILE_RANK];
    for (unsigned i = 0; i < TILE_MAX_TILE_RANK; i++) index[i] = nest_constant(n, 0);
    return nest_pull(n, value, index);
}
