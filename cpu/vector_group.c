/* Accesses of neighbouring elements. Loads whose addresses grow by several elements from lane to lane, and which
 * together read all of these, are full vectors from memory, from which shuffles take each load's lanes; likewise
 * stores. So memory is read and written without gathers where the elements of one point are neighbours: pairs, pixels of
 * several channels, blocks of a transform, columns of a matrix. */
#include "cpu/vectorise.h"
#include "lang/index/index.h"
#include "lang/ir/operands.h"

enum { MOST_PARTS = 12 };

static TileScalar scalar_of(const TileOp *op) {
    return op->id == TILE_OP_LOAD ? op->results[0].type->scalar : tile_op_operand(op, 0)->type->scalar;
}

/* An access of one element without a mask. */
static bool is_plain(const TileOp *op) {
    return (op->id == TILE_OP_LOAD || op->id == TILE_OP_STORE) && !tile_op_has_part(op, TILE_PARTS_MASK);
}

/* From lane to lane the address grows by this number of elements, a power of two; 0: by another number. */
static int64_t elements_between(TileStrides *strides, const TileOp *op) {
    TileSlope slope = tile_stride_of(strides, tile_op_named(op, TILE_OPERAND_ADDRESS));
    int64_t bytes = tile_scalar_bytes(scalar_of(op)), count = slope.step / bytes;
    bool is = slope.kind == TILE_SLOPE_AFFINE && !slope.factor && count > 1 && count <= TILE_GROUP_MEMBERS;
    return is && slope.step % bytes == 0 && (count & (count - 1)) == 0 ? count : 0;
}

/* The bytes that are added to a pointer, one after the other; returns what they are added to. */
static TileValue *parts_of(TileValue *pointer, TileValue **parts, unsigned *count) {
    *count = 0;
    for (const TileOp *add; *count < MOST_PARTS && (add = tile_value_def(pointer, TILE_OP_PTR_ADD));) {
        parts[(*count)++] = tile_op_operand(add, 1);
        pointer = tile_op_operand(add, 0);
    }
    return pointer;
}

/* Is a = b + *distance? Addresses whose sums are too long for the analysis are compared part by part. */
static bool find_distance(TileIndices *indices, TileValue *a, TileValue *b, int64_t *distance) {
    TileValue *parts[MOST_PARTS], *others[MOST_PARTS];
    unsigned count, other_count;
    if (tile_index_offset(indices, a, b, distance)) return true;
    if (parts_of(a, parts, &count) != parts_of(b, others, &other_count) || count != other_count) return false;
    *distance = 0;
    for (unsigned i = 0; i < count; i++) {
        int64_t own = 0;
        unsigned k = 0;
        while (k < other_count && !tile_index_offset(indices, parts[i], others[k], &own)) k++;
        if (k == other_count || __builtin_add_overflow(*distance, own, distance)) return false;
        others[k] = others[--other_count];
    }
    return true;
}

/* Adds the accesses of the block like `first`, from it on; another access of their kind that may lie between them in
 * memory ends the search. */
static void collect(TileStrides *strides, TileOp *first, int64_t count, TileGroup *group) {
    TileIndices *indices = strides->slopes.view.indices;
    TileValue *start = tile_op_named(first, TILE_OPERAND_ADDRESS);
    int64_t bytes = tile_scalar_bytes(scalar_of(first)), low = 0, distance;
    TileOp *found[2 * TILE_GROUP_MEMBERS] = {NULL}; /* by distance + count */
    for (TileOp *op = first; op; op = op->next) {
        if (op->region_count || (op->id != first->id && (op->id == TILE_OP_STORE || first->id == TILE_OP_STORE) &&
                                 (op->id == TILE_OP_STORE || op->id == TILE_OP_LOAD)))
            break;
        if (op->id != first->id) continue;
        bool like = is_plain(op) && scalar_of(op) == scalar_of(first) && elements_between(strides, op) == count &&
                    find_distance(indices, tile_op_named(op, TILE_OPERAND_ADDRESS), start, &distance) &&
                    distance % bytes == 0 && distance / bytes > -count && distance / bytes < count;
        if (!like && op->id == TILE_OP_STORE) break;
        if (!like || found[distance / bytes + count]) continue;
        found[distance / bytes + count] = op;
        if (distance / bytes < low) low = distance / bytes;
    }
    for (int64_t i = 0; i < count; i++) {
        TileOp *op = found[low + i + count];
        if (!op) return;
        group->members[i] = op;
    }
    group->count = (unsigned)count;
}

bool tile_group_find(TileStrides *strides, TileOp *first, TileGroup *group) {
    group->count = 0;
    if (!is_plain(first)) return false;
    int64_t count = elements_between(strides, first);
    if (count) collect(strides, first, count, group);
    return group->count != 0;
}

/* ---- shuffles ---- */

/* Every second lane of the two, from lane `from` on. */
static TileValue *every_second(TileBuilder *b, TileValue *x, TileValue *y, int64_t from) {
    int64_t lanes[TILE_STRIPES], width = x->type->extent[0];
    for (int64_t i = 0; i < width; i++) lanes[i] = from + 2 * i;
    return tile_build_shuffle(b, x, y, lanes, (unsigned)width);
}

void tile_group_split(TileBuilder *b, TileValue **vectors, unsigned count, unsigned parts) {
    TileValue *halves[2 * TILE_GROUP_MEMBERS];
    if (parts == 1) return;
    for (unsigned i = 0; i < count / 2; i++) {
        halves[i] = every_second(b, vectors[2 * i], vectors[2 * i + 1], 0);
        halves[count / 2 + i] = every_second(b, vectors[2 * i], vectors[2 * i + 1], 1);
    }
    tile_group_split(b, halves, count / 2, parts / 2);
    tile_group_split(b, halves + count / 2, count / 2, parts / 2);
    unsigned each = count / parts; /* vectors of each part */
    for (unsigned part = 0; part < parts; part++)
        for (unsigned i = 0; i < each; i++)
            vectors[part * each + i] = halves[(part & 1u) * (count / 2) + part / 2 * each + i];
}

/* The lanes of the two in turn: the first or second half of them. */
static TileValue *in_turn(TileBuilder *b, TileValue *x, TileValue *y, int64_t from) {
    int64_t lanes[TILE_STRIPES], width = x->type->extent[0];
    for (int64_t i = 0; i < width; i++) lanes[i] = (from + i) / 2 + (i & 1) * width;
    return tile_build_shuffle(b, x, y, lanes, (unsigned)width);
}

void tile_group_merge(TileBuilder *b, TileValue **vectors, unsigned count, unsigned parts) {
    TileValue *halves[2 * TILE_GROUP_MEMBERS];
    if (parts == 1) return;
    unsigned each = count / parts;
    int64_t width = vectors[0]->type->extent[0];
    for (unsigned part = 0; part < parts; part++)
        for (unsigned i = 0; i < each; i++)
            halves[(part & 1u) * (count / 2) + part / 2 * each + i] = vectors[part * each + i];
    tile_group_merge(b, halves, count / 2, parts / 2);
    tile_group_merge(b, halves + count / 2, count / 2, parts / 2);
    for (unsigned i = 0; i < count / 2; i++) {
        vectors[2 * i] = in_turn(b, halves[i], halves[count / 2 + i], 0);
        vectors[2 * i + 1] = in_turn(b, halves[i], halves[count / 2 + i], width);
    }
}
