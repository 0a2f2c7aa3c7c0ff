/* Purpose: ranges of one element become indices, in loads of tiles that a product takes as rows of fewer axes: a square of one row of
 * an image is loaded as a row, which later passes copy and pack as such. Where the element is not in its range, nothing is in that of
 * another axis.
 *
 * Run: --passes=cpu-axes --target=avx512
 * Before:
 *     func kernel tile @k(%x: tensor<f32, 3, in>, %y: tensor<f32, 2, out>, %i: i64, %hi: i64, %n: i64) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %none = const {value = 0.0} : f32
 *       %v = load_tile %x, %zero, %i, %one, %zero, %hi, %zero, %one, %zero, %n {access = [index, range, range]} : f32[1, 8]
 *       %f = fill %v, %none, %zero, %hi, %zero, %n {axes = [0, 1]} : f32[1, 8]
 *       %r = reshape %f : f32[8]
 *       store_tile %y, %r, %zero, %zero, %one, %zero, %n {access = [index, range]}
 *       return
 *     }
 * After:
 *     func kernel tile @k(%x: tensor<f32, 3, in>, %y: tensor<f32, 2, out>, %i: i64, %hi: i64, %n: i64) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %none = const {value = 0.0} : f32
 *       %0 = const {value = 0} : i64
 *       %1 = gt %hi, %0 : bool
 *       %2 = select %1, %i, %0 : i64
 *       %3 = select %1, %n, %0 : i64
 *       %v = load_tile %x, %zero, %2, %zero, %one, %zero, %3 {access = [index, index, range]} : f32[8]
 *       %4 = const {value = 0} : i64
 *       %5 = gt %hi, %4 : bool
 *       %6 = select %5, %n, %4 : i64
 *       %r = fill %v, %none, %zero, %6 {axes = [0]} : f32[8]
 *       store_tile %y, %r, %zero, %zero, %one, %zero, %n {access = [index, range]}
 *       return
 *     }
 * Needs: nothing. Keeps: tile form. Cost: linear. */
#include "cpu/passes.h"
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "lowering/each.h"

/* What becomes of the axes of a tile. */
typedef struct Axes {
    int64_t extent[TILE_MAX_TILE_RANK]; /* of those that stay */
    int to[TILE_MAX_TILE_RANK];         /* -1: it goes */
    unsigned count;
} Axes;

/* Axes of one element go, but for the last one. */
static Axes axes_of(const TileType *tile) {
    Axes axes = {.count = 0};
    for (unsigned a = 0; a < tile->rank; a++) {
        axes.to[a] = a + 1 < tile->rank && tile->extent[a] == 1 ? -1 : (int)axes.count;
        if (axes.to[a] >= 0) axes.extent[axes.count++] = tile->extent[a];
    }
    return axes;
}

static bool is_rows(const TileType *type, const Axes *axes) {
    if (type->rank != axes->count) return false;
    for (unsigned a = 0; a < axes->count; a++)
        if (type->extent[a] != axes->extent[a]) return false;
    return true;
}

/* Does everything that takes the tile fill it or make rows of it? */
static bool only_makes_rows(const TileValue *tile, const Axes *axes) {
    for (const TileUse *use = tile->first_use; use; use = use->next) {
        const TileOp *user = use->user;
        bool fills = user->id == TILE_OP_FILL && use->index == 0 && only_makes_rows(&user->results[0], axes);
        if (!fills && !(user->id == TILE_OP_RESHAPE && is_rows(user->results[0].type, axes))) return false;
    }
    return tile->first_use;
}

/* Is the one element in its range? `*inside` is what it was, or that as well; NULL: always. */
static void add_test(TileBuilder *b, TileValue *zero, TileValue *lo, TileValue *hi, TileValue **inside) {
    int64_t number;
    TileValue *tests[2] = {NULL, NULL};
    if (!tile_value_integer(lo, &number) || number > 0) tests[0] = tile_build_binary(b, TILE_OP_LE, lo, zero);
    if (!tile_value_integer(hi, &number) || number <= 0) tests[1] = tile_build_binary(b, TILE_OP_GT, hi, zero);
    for (unsigned i = 0; i < 2; i++)
        if (tests[i]) *inside = *inside ? tile_build_binary(b, TILE_OP_AND, *inside, tests[i]) : tests[i];
}

static TileValue *if_inside(TileBuilder *b, TileValue *inside, TileValue *value, TileValue *zero) {
    return inside ? tile_build_ternary(b, TILE_OP_SELECT, inside, value, zero) : value;
}

/* The load of the rows. */
static TileValue *build_load(TileBuilder *b, TileOp *load, const Axes *axes) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    TileValue *operands[1 + 4 * TILE_MAX_TENSOR_RANK] = {tile_op_operand(load, 0)}, *inside = NULL, *zero = tile_build_i64(b, 0);
    int64_t access[TILE_MAX_TENSOR_RANK];
    unsigned rank = tile_access_read(load, indices), count = 1;
    for (unsigned d = 0; d < rank; d++)
        if (indices[d].axis >= 0 && axes->to[indices[d].axis] < 0) add_test(b, zero, indices[d].lo, indices[d].hi, &inside);
    for (unsigned d = 0; d < rank; d++) {
        bool goes = indices[d].axis >= 0 && axes->to[indices[d].axis] < 0;
        access[d] = goes ? TILE_ACCESS_INDEX : indices[d].kind;
        operands[count++] = goes ? if_inside(b, inside, indices[d].first, zero) : indices[d].first;
        if (access[d] != TILE_ACCESS_RANGE) continue;
        operands[count++] = indices[d].step;
        operands[count++] = indices[d].lo;
        operands[count++] = axes->to[indices[d].axis] ? indices[d].hi : if_inside(b, inside, indices[d].hi, zero);
    }
    const TileType *type = tile_type_tile(b->module->context, load->results[0].type->scalar, axes->count, axes->extent);
    TileAttribute *attributes = TILE_NEW_ARRAY(b->module->arena, TileAttribute, load->attribute_count);
    for (unsigned i = 0; i < load->attribute_count; i++) {
        attributes[i] = load->attributes[i];
        if (attributes[i].key == TILE_ATTRIBUTE_ACCESS) attributes[i].integers = access;
    }
    TileOp *made = tile_build_op(b, TILE_OP_LOAD_TILE, operands, count, attributes, load->attribute_count, &type, 1);
    if (!made) return NULL;
    tile_op_result(made, 0)->name = load->results[0].name;
    return tile_op_result(made, 0);
}

/* The same fill of the rows: where the element of an axis that goes is outside, all lanes along the first one are. */
static TileValue *build_fill(TileBuilder *b, TileOp *fill, TileValue *rows, const Axes *axes) {
    const TileAttribute *old = tile_op_get(fill, TILE_ATTRIBUTE_AXES);
    TileValue *operands[2 + 2 * TILE_MAX_TILE_RANK] = {rows, tile_op_operand(fill, 1)}, *inside = NULL, *zero = tile_build_i64(b, 0);
    int64_t kept[TILE_MAX_TILE_RANK];
    unsigned count = 0;
    bool first = false;
    for (unsigned i = 0; i < old->count; i++) {
        first |= axes->to[old->integers[i]] == 0;
        if (axes->to[old->integers[i]] < 0) add_test(b, zero, tile_fill_lo(fill, i), tile_fill_hi(fill, i), &inside);
    }
    if (inside && !first) {
        operands[2] = zero;
        operands[3] = if_inside(b, inside, tile_build_i64(b, axes->extent[0]), zero);
        kept[count++] = 0;
    }
    for (unsigned i = 0; i < old->count; i++) {
        int axis = axes->to[old->integers[i]];
        if (axis < 0) continue;
        operands[2 + 2 * count] = tile_fill_lo(fill, i);
        operands[3 + 2 * count] = axis ? tile_fill_hi(fill, i) : if_inside(b, inside, tile_fill_hi(fill, i), zero);
        kept[count++] = axis;
    }
    TileAttribute attribute = {.key = TILE_ATTRIBUTE_AXES, .count = count, .integers = kept};
    return count ? tile_op_result(tile_build_op(b, TILE_OP_FILL, operands, 2 + 2 * count, &attribute, 1, NULL, 1), 0) : rows;
}

static void replace(TileModule *module, TileValue *tile, TileValue *rows, const Axes *axes) {
    while (tile->first_use) {
        TileOp *user = tile->first_use->user;
        TileBuilder b = tile_builder_before(module, user);
        b.location = user->location;
        if (user->id == TILE_OP_FILL)
            replace(module, &user->results[0], build_fill(&b, user, rows, axes), axes);
        else
            tile_value_replace(&user->results[0], rows);
        tile_op_erase(user);
    }
}

static bool try_load(TilePassContext *context, TileOp *load, const char **error) { /* erases what stands behind the load */
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    Axes axes = axes_of(load->results[0].type);
    if (axes.count == load->results[0].type->rank || tile_op_get(load, TILE_ATTRIBUTE_PARTS) || !only_makes_rows(&load->results[0], &axes))
        return false;
    unsigned rank = tile_access_read(load, indices);
    for (unsigned d = 0; d < rank; d++)
        if (indices[d].kind == TILE_ACCESS_GATHER) return false;
    TileBuilder b = tile_builder_before(context->module, load);
    b.location = load->location;
    TileValue *rows = build_load(&b, load, &axes);
    if (b.error) *error = b.error;
    if (!rows) return false;
    replace(context->module, &load->results[0], rows, &axes);
    tile_op_erase(load);
    return true;
}

/* ---- products of such rows ---- */

enum { DEEPEST = 8 };

/* Are the numbers the same, as the ops that compute them say? */
static bool is_same_number(const TileValue *x, const TileValue *y, unsigned depth) {
    int64_t a, b;
    if (x == y) return true;
    if (tile_value_integer(x, &a) && tile_value_integer(y, &b)) return a == b;
    if (!depth || !x->op || !y->op || x->op->id != y->op->id || x->op->attribute_count || y->op->attribute_count) return false;
    if (tile_op_info((TileOpId)x->op->id)->class != TILE_CLASS_ELEMENTWISE || x->op->operand_count != y->op->operand_count) return false;
    for (unsigned i = 0; i < x->op->operand_count; i++)
        if (!is_same_number(tile_op_operand(x->op, i), tile_op_operand(y->op, i), depth - 1)) return false;
    return true;
}

/* Does a store take none of the lanes along the axis from the bound on? */
static bool stores_before(const TileOp *store, int axis, const TileValue *bound) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    unsigned rank = tile_access_read(store, indices);
    for (unsigned d = 0; d < rank; d++)
        if (indices[d].axis == axis && indices[d].kind == TILE_ACCESS_RANGE && is_same_number(indices[d].hi, bound, DEEPEST)) return true;
    return false;
}

static bool is_unread(const TileValue *sum, int axis, const TileValue *bound, unsigned depth);

/* The same of what one use of the sum computes. */
static bool is_unread_by(const TileUse *use, int axis, const TileValue *bound, unsigned depth) {
    const TileOp *user = use->user, *loop = user->block->op;
    if (user->id == TILE_OP_STORE_TILE) return stores_before(user, axis, bound);
    if (user->id == TILE_OP_CONVERT) return is_unread(&user->results[0], axis, bound, depth - 1);
    if (user->id == TILE_OP_DOT) return use->index == 2 && is_unread(&user->results[0], axis, bound, depth - 1);
    bool given = user->id == TILE_OP_YIELD && loop && loop->id == TILE_OP_FOR && use->index < loop->result_count;
    return given && is_unread(&loop->results[use->index], axis, bound, depth - 1);
}

/* Do no lanes along the axis from the bound on reach memory? Lanes stay apart on all ways to it that are known here. */
static bool is_unread(const TileValue *sum, int axis, const TileValue *bound, unsigned depth) {
    for (const TileUse *use = sum->first_use; use; use = use->next)
        if (!depth || !is_unread_by(use, axis, bound, depth)) return false;
    return true;
}

/* The fill that the operand is, perhaps transposed; `*flipped`: it is. NULL: it is none by 0. */
static TileOp *zeros_of(TileValue *operand, bool *flipped) {
    TileOp *permute = tile_value_def(operand, TILE_OP_PERMUTE);
    TileOp *fill = tile_value_def(permute ? tile_op_operand(permute, 0) : operand, TILE_OP_FILL);
    uint64_t bits;
    *flipped = permute != NULL;
    return fill && tile_value_bits(tile_op_operand(fill, 1), &bits) && !bits ? fill : NULL;
}

/* The place of the axis among those of the fill; -1: it is not there. */
static int place_of(const TileOp *fill, int64_t axis) {
    const TileAttribute *axes = tile_op_get(fill, TILE_ATTRIBUTE_AXES);
    for (unsigned i = 0; i < axes->count; i++)
        if (axes->integers[i] == axis) return (int)i;
    return -1;
}

/* Is the first bound at most the second in any case: that one, or the lesser of it and others, or that or nothing? */
static bool is_at_most(const TileValue *x, const TileValue *y, unsigned depth) {
    if (is_same_number(x, y, DEEPEST)) return true;
    const TileOp *least = tile_value_def(x, TILE_OP_MIN), *choice = tile_value_def(x, TILE_OP_SELECT);
    if (depth && least) return is_at_most(tile_op_operand(least, 0), y, depth - 1) || is_at_most(tile_op_operand(least, 1), y, depth - 1);
    int64_t none;
    bool chosen = depth && choice && tile_value_integer(tile_op_named(choice, TILE_OPERAND_Y), &none) && none <= 0;
    return chosen && is_at_most(tile_op_named(choice, TILE_OPERAND_X), y, depth - 1);
}

/* A right operand that is 0 behind a bound along k alone, where the left one is 0 as well: cpu-place leaves these out of the
 * product. The left operand is said to be what it is there; columns that nothing stores need no 0. */
static bool try_dot(TilePassContext *context, TileOp *dot, const char **error) {
    bool left_flipped, right_flipped;
    TileOp *left = zeros_of(tile_op_operand(dot, 0), &left_flipped), *right = zeros_of(tile_op_operand(dot, 1), &right_flipped);
    if (dot->results[0].type->rank != 2 || !left || !right || right_flipped || !tile_value_has_one_use(&right->results[0])) return false;
    int k = place_of(right, 0), columns = place_of(right, 1), left_k = place_of(left, left_flipped ? 0 : 1);
    if (k < 0 || columns < 0 || left_k < 0 || !tile_value_is_integer(tile_fill_lo(right, (unsigned)k), 0)) return false;
    if (!tile_value_is_integer(tile_fill_lo(right, (unsigned)columns), 0)) return false;
    TileValue *hi = tile_fill_hi(right, (unsigned)k);
    if (!is_at_most(tile_fill_hi(left, (unsigned)left_k), hi, DEEPEST)) return false;
    if (!is_unread(&dot->results[0], 1, tile_fill_hi(right, (unsigned)columns), DEEPEST)) return false;
    TileBuilder b = tile_builder_before(context->module, dot);
    b.location = dot->location;
    TileValue *bounds[] = {tile_build_i64(&b, 0), hi};
    TileValue *a = tile_build_fill(&b, tile_op_operand(dot, 0), tile_op_operand(left, 1), (int64_t[]){1}, bounds, 1);
    TileValue *c = tile_build_fill(&b, tile_op_operand(right, 0), tile_op_operand(right, 1), (int64_t[]){0}, bounds, 1);
    if (b.error) *error = b.error;
    if (!a || !c) return false;
    tile_op_set_operand(dot, 0, a);
    tile_op_set_operand(dot, 1, c);
    return true;
}

TileResult tile_pass_cpu_axes(TilePassContext *context, TileFunc *func) {
    TileOps loads = tile_find_each(&func->body, TILE_OP_LOAD_TILE, context->scratch);
    const char *error = NULL;
    bool changed = false;
    for (size_t i = 0; i < loads.count && !error; i++) changed |= try_load(context, loads.items[i], &error);
    if (error) return tile_pass_fail(context, TILE_INTERNAL, NULL, "cpu-axes: %s", error);
    if (!changed) return TILE_RESULT_UNCHANGED;
    TileResult products = tile_try_each(context, func, TILE_OP_DOT, try_dot, "cpu-axes");
    return products == TILE_RESULT_UNCHANGED ? TILE_RESULT_CHANGED : products;
}
