/* Accesses of neighbouring elements. Loads whose addresses grow by several elements from lane to lane, and which
 * together read all of these, are full vectors from memory, from which shuffles take each load's lanes; likewise
 * stores. So memory is read and written without gathers where the elements of one point are neighbours: pairs, pixels
 * of several channels, blocks of a transform, columns of a matrix. */
#include "cpu/vectorise.h"
#include "lang/index/index.h"
#include "lang/ir/operands.h"

enum {
    MOST_PARTS = 12,
    LEAST_OF_ROW = 3, /* elements of 32 bits: two gathers take as long as a load for each lane */
    MOST_OF_ROW = 32,
    MOST_OF_ODD_RANGE = 8, /* a vector of them takes a shuffle for each element but one */
};

TileScalar tile_access_scalar(const TileOp *op) {
    return op->id == TILE_OP_LOAD ? op->results[0].type->scalar : tile_op_operand(op, 0)->type->scalar;
}

static bool is_access(const TileOp *op) { return op->id == TILE_OP_LOAD || op->id == TILE_OP_STORE; }

bool tile_access_is_turned(const TileOp *op, TileStrides *of_next, TileStrides *of_lanes) {
    TileValue *address = tile_op_named(op, TILE_OPERAND_ADDRESS);
    int64_t bytes = tile_scalar_bytes(tile_access_scalar(op));
    TileSlope along = tile_stride_of(of_next, address), across = tile_stride_of(of_lanes, address);
    bool near = !across.factor && across.step >= -2 * bytes && across.step <= 2 * bytes;
    return along.kind == TILE_SLOPE_AFFINE && !along.factor && along.step == bytes && across.kind == TILE_SLOPE_AFFINE && !near;
}

static TileSlope slope_of(TileStrides *strides, const TileOp *op) {
    return tile_stride_of(strides, tile_op_named(op, TILE_OPERAND_ADDRESS));
}

/* From lane to lane the address grows by this number of elements, a power of two or few; 0: by another number. */
static int64_t elements_between(TileStrides *strides, const TileOp *op) {
    TileSlope slope = slope_of(strides, op);
    int64_t bytes = tile_scalar_bytes(tile_access_scalar(op)), count = slope.step / bytes;
    bool is = slope.kind == TILE_SLOPE_AFFINE && !slope.factor && count > 1 && count <= TILE_GROUP_MEMBERS;
    bool fits = (count & (count - 1)) == 0 || count <= MOST_OF_ODD_RANGE;
    return is && fits && slope.step % bytes == 0 ? count : 0;
}

bool tile_group_mask(TileStrides *strides, const TileOp *op, TileValue **index, TileValue **limit) {
    *index = *limit = NULL;
    if (!tile_op_has_part(op, TILE_PARTS_MASK)) return true;
    const TileOp *below = tile_value_def(tile_op_named(op, TILE_OPERAND_MASK), TILE_OP_LT);
    int64_t count = elements_between(strides, op);
    if (!below || !count || tile_op_operand(below, 0)->type->scalar != TILE_I64) return false;
    *index = tile_op_operand(below, 0);
    *limit = tile_op_operand(below, 1);
    TileSlope slope = tile_stride_of(strides, *index);
    return slope.kind == TILE_SLOPE_AFFINE && !slope.factor && slope.step == count &&
           tile_stride_of(strides, *limit).kind == TILE_SLOPE_UNIFORM;
}

/* The bytes that are added to a pointer, one after the other: the constants among them, as one, and the others. */
typedef struct Parts {
    TileValue *base, *values[MOST_PARTS];
    unsigned count;
    int64_t constant;
} Parts;

static Parts parts_of(TileValue *pointer) {
    Parts parts = {.base = pointer};
    int64_t number;
    for (const TileOp *add; parts.count < MOST_PARTS && (add = tile_value_def(parts.base, TILE_OP_PTR_ADD));) {
        if (!tile_value_integer(tile_op_operand(add, 1), &number))
            parts.values[parts.count++] = tile_op_operand(add, 1);
        else if (__builtin_add_overflow(parts.constant, number, &parts.constant))
            break;
        parts.base = tile_op_operand(add, 0);
    }
    return parts;
}

/* Is a = b + *distance? Addresses whose sums are too long for the analysis are compared part by part. */
static bool find_distance(TileIndices *indices, TileValue *a, TileValue *b, int64_t *distance) {
    if (tile_index_offset(indices, a, b, distance)) return true;
    Parts parts = parts_of(a), others = parts_of(b);
    if (parts.base != others.base || parts.count != others.count) return false;
    if (__builtin_sub_overflow(parts.constant, others.constant, distance)) return false;
    for (unsigned i = 0; i < parts.count; i++) {
        int64_t own = 0;
        unsigned k = 0;
        while (k < others.count && !tile_index_offset(indices, parts.values[i], others.values[k], &own)) k++;
        if (k == others.count || __builtin_add_overflow(*distance, own, distance)) return false;
        others.values[k] = others.values[--others.count];
    }
    return true;
}

/* Is the element that is `distance` ahead of the one of `first` masked by the same limit, and filled with the same
 * value? */
static bool is_masked_alike(TileStrides *strides, const TileOp *op, const TileOp *first, int64_t distance) {
    TileValue *index, *limit, *first_index, *first_limit, *fill = tile_op_named(op, TILE_OPERAND_FILLING);
    TileValue *first_fill = tile_op_named(first, TILE_OPERAND_FILLING);
    int64_t between;
    if (!tile_group_mask(strides, op, &index, &limit) || !tile_group_mask(strides, first, &first_index, &first_limit))
        return false;
    if (!index != !first_index || !fill != !first_fill) return false;
    if (fill && (!tile_value_is_same(fill, first_fill) || tile_stride_of(strides, fill).kind != TILE_SLOPE_UNIFORM))
        return false;
    return !index ||
           (limit == first_limit && tile_index_offset(strides->slopes.view.indices, index, first_index, &between) &&
            between == distance);
}

static bool is_alike(TileStrides *strides, const TileOp *op, const TileOp *first, int64_t *distance) {
    TileSlope own = slope_of(strides, op), slope = slope_of(strides, first);
    int64_t bytes = tile_scalar_bytes(tile_access_scalar(first));
    if (tile_access_scalar(op) != tile_access_scalar(first) || own.kind != slope.kind || own.step != slope.step ||
        own.factor != slope.factor)
        return false;
    if (!find_distance(strides->slopes.view.indices, tile_op_named(op, TILE_OPERAND_ADDRESS),
                       tile_op_named(first, TILE_OPERAND_ADDRESS), distance) ||
        *distance % bytes)
        return false;
    *distance /= bytes;
    return is_masked_alike(strides, op, first, *distance);
}

/* The tensor's parameter that the pointer is derived from; NULL: it points into a buffer, or may be of several tensors. *root: what
 * it is derived from. */
static const TileParameter *parameter_of(const TileValue *pointer, const TileValue **root) {
    for (const TileOp *add; (add = tile_value_def(pointer, TILE_OP_PTR_ADD));) pointer = tile_op_operand(add, 0);
    *root = pointer;
    bool argument = !pointer->op && !pointer->block->op && pointer->type->space == TILE_SPACE_GLOBAL;
    return argument ? &pointer->block->func->parameters[pointer->index] : NULL;
}

/* Are the two in different memory: of different tensors, one of which shares its memory with no other, or of a tensor and
 * in a buffer? */
static bool are_elsewhere(const TileOp *a, const TileOp *b) {
    const TileValue *root, *other;
    const TileParameter *x = parameter_of(tile_op_named(a, TILE_OPERAND_ADDRESS), &root),
                        *y = parameter_of(tile_op_named(b, TILE_OPERAND_ADDRESS), &other);
    bool known = (x || root->type->space != TILE_SPACE_GLOBAL) && (y || other->type->space != TILE_SPACE_GLOBAL);
    if (root == other || !known || (!x && !y)) return false;
    return !x || !y || x->noalias || y->noalias;
}

/* Accesses of the block, by the number of elements that they are ahead of the first one, plus TILE_GROUP_MEMBERS. */
typedef struct Neighbours {
    TileOp *at[2 * TILE_GROUP_MEMBERS];
} Neighbours;

/* Finds the accesses like `first`, from it on and less than `reach` elements away. Another access of the same memory, of which
 * one is a store, ends the search: the group is moved past it. */
static void find_neighbours(TileStrides *strides, TileOp *first, int64_t reach, Neighbours *found) {
    *found = (Neighbours){{NULL}};
    for (TileOp *op = first; op; op = op->next) {
        if (op->region_count) break;
        if (!is_access(op)) continue;
        int64_t distance = 0;
        bool alike = op->id == first->id && is_alike(strides, op, first, &distance) && distance > -reach && distance < reach;
        bool stores = op->id == TILE_OP_STORE || first->id == TILE_OP_STORE;
        if (!alike && stores && !are_elsewhere(op, first)) break;
        if (alike && !found->at[distance + TILE_GROUP_MEMBERS]) found->at[distance + TILE_GROUP_MEMBERS] = op;
    }
}

static bool has_all(const Neighbours *found, int64_t low, int64_t count) {
    for (int64_t i = low; i < low + count; i++)
        if (!found->at[i]) return false;
    return true;
}

/* All elements between those of neighbouring lanes. Of more loads one after the other, groups begin at the first of them, in whatever order
 * they are in the block: of four, two pairs, and no pair between two single ones. */
static void collect_range(TileStrides *strides, TileOp *first, int64_t count, TileGroup *group) {
    Neighbours found;
    find_neighbours(strides, first, first->id == TILE_OP_LOAD ? TILE_GROUP_MEMBERS : count, &found);
    int64_t begin = TILE_GROUP_MEMBERS, low;
    while (begin > 0 && found.at[begin - 1]) begin--;
    low = TILE_GROUP_MEMBERS - (TILE_GROUP_MEMBERS - begin) % count;
    if (!has_all(&found, low, count)) low = TILE_GROUP_MEMBERS - count + 1;
    while (low <= TILE_GROUP_MEMBERS && !has_all(&found, low, count)) low++;
    if (low > TILE_GROUP_MEMBERS) return;
    for (int64_t i = 0; i < count; i++) group->members[i] = found.at[low + i];
    group->count = (unsigned)count;
}

/* Some elements one after the other, which a lane moves faster together than all lanes do one by one. */
static void collect_row(TileStrides *strides, TileOp *first, TileGroup *group) {
    Neighbours found;
    unsigned least = tile_scalar_bytes(tile_access_scalar(first)) < 4 ? 2 : LEAST_OF_ROW;
    find_neighbours(strides, first, MOST_OF_ROW, &found);
    int64_t low = TILE_GROUP_MEMBERS, high = low + 1;
    while (found.at[low - 1]) low--;
    while (high < 2 * TILE_GROUP_MEMBERS && found.at[high]) high++;
    if (high - low > MOST_OF_ROW) high = low + MOST_OF_ROW;
    if (high <= TILE_GROUP_MEMBERS || high - low < least) return;
    for (int64_t i = low; i < high; i++) group->members[i - low] = found.at[i];
    group->count = (unsigned)(high - low);
    group->rows = true;
}

bool tile_group_find(TileStrides *strides, TileOp *first, TileGroup *group) {
    TileValue *index, *limit;
    group->count = 0;
    group->rows = false;
    if (!is_access(first) || !tile_group_mask(strides, first, &index, &limit)) return false;
    TileSlope slope = slope_of(strides, first);
    bool near = !slope.factor && slope.step == (int64_t)tile_scalar_bytes(tile_access_scalar(first));
    if (slope.kind != TILE_SLOPE_AFFINE || near) return false;
    int64_t count = elements_between(strides, first);
    if (count) collect_range(strides, first, count, group);
    if (!group->count && !index) collect_row(strides, first, group);
    for (group->parts = 1; group->parts < group->count;) group->parts *= 2;
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

/* Where lane i of the result is: in which vector, and which lane of it. */
typedef struct Place {
    int64_t vector, lane;
} Place;

/* A vector of lanes from any places in so many vectors: those of the first two, then those of each further one. */
static TileValue *collect_lanes(TileBuilder *b, TileValue *const *vectors, unsigned count, const Place *places) {
    int64_t lanes[TILE_STRIPES], width = vectors[0]->type->extent[0];
    TileValue *result = vectors[0];
    for (unsigned v = 1; v < count; v++) {
        for (int64_t i = 0; i < width; i++) {
            bool here = places[i].vector == v, before = v > 1 || places[i].vector > v;
            lanes[i] = here ? width + places[i].lane : before ? i : places[i].lane;
        }
        result = tile_build_shuffle(b, result, vectors[v], lanes, (unsigned)width);
    }
    return result;
}

void tile_group_split_odd(TileBuilder *b, TileValue **vectors, unsigned count) {
    TileValue *parts[MOST_OF_ODD_RANGE];
    Place places[TILE_STRIPES];
    int64_t width = vectors[0]->type->extent[0];
    for (unsigned part = 0; part < count; part++) {
        for (int64_t i = 0; i < width; i++) places[i] = (Place){(i * count + part) / width, (i * count + part) % width};
        parts[part] = collect_lanes(b, vectors, count, places);
    }
    for (unsigned i = 0; i < count; i++) vectors[i] = parts[i];
}

void tile_group_merge_odd(TileBuilder *b, TileValue **vectors, unsigned count) {
    TileValue *merged[MOST_OF_ODD_RANGE];
    Place places[TILE_STRIPES];
    int64_t width = vectors[0]->type->extent[0];
    for (unsigned k = 0; k < count; k++) {
        for (int64_t i = 0; i < width; i++) places[i] = (Place){(k * width + i) % count, (k * width + i) / count};
        merged[k] = collect_lanes(b, vectors, count, places);
    }
    for (unsigned i = 0; i < count; i++) vectors[i] = merged[i];
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

/* The lanes first .. first + count of two vectors that follow one another. */
static TileValue *lanes_from(TileBuilder *b, TileValue *x, TileValue *y, int64_t first, int64_t count) {
    int64_t lanes[TILE_STRIPES];
    for (int64_t i = 0; i < count; i++) lanes[i] = first + i;
    return tile_build_shuffle(b, x, y, lanes, (unsigned)count);
}

/* Joins neighbouring vectors until they have so many lanes. Returns how many are left. */
static int64_t join_vectors(TileBuilder *b, TileValue **vectors, int64_t count, int64_t lanes) {
    for (int64_t own = vectors[0]->type->extent[0]; own < lanes; own *= 2, count /= 2)
        for (int64_t i = 0; i < count / 2; i++)
            vectors[i] = lanes_from(b, vectors[2 * i], vectors[2 * i + 1], 0, 2 * own);
    return count;
}

/* Cuts vectors into pieces of so many lanes. */
static void cut_vectors(TileBuilder *b, TileValue *const *vectors, int64_t count, int64_t lanes, TileValue **pieces) {
    int64_t each = vectors[0]->type->extent[0] / lanes;
    for (int64_t i = 0; i < count * each; i++) {
        TileValue *whole = vectors[i / each];
        pieces[i] = each == 1 ? whole : lanes_from(b, whole, whole, i % each * lanes, lanes);
    }
}

void tile_group_from_rows(TileBuilder *b, TileValue *const *rows, unsigned parts, int64_t width, TileValue **vectors) {
    TileValue *joined[TILE_STRIPES];
    for (int64_t i = 0; i < width; i++) joined[i] = rows[i];
    cut_vectors(b, joined, join_vectors(b, joined, width, width), width, vectors);
}

void tile_group_to_rows(TileBuilder *b, TileValue *const *vectors, unsigned parts, int64_t width, TileValue **rows) {
    TileValue *joined[TILE_GROUP_MEMBERS];
    for (unsigned i = 0; i < parts; i++) joined[i] = vectors[i];
    cut_vectors(b, joined, join_vectors(b, joined, parts, parts), parts, rows);
}
