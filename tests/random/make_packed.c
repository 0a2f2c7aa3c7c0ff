/* Packed numbers, products with scales, drawn numbers, and the parts of floats. */
#include "make.h"

/* Valid and exact: whole bytes, scales and drawn numbers move or decide. */
static Expr *exact(Maker *m, const Shape *shape, int depth) {
    bool clean = m->clean;
    m->clean = true;
    Expr *x = covered(m, make_expr(m, shape, depth), NULL);
    m->clean = clean;
    if (x->kind == E_LITERAL) x->bare = false;
    return x;
}

/* ---- packed numbers ---- */

/* Half of the extent, where that can be written; NULL: it cannot. */
static const Extent *half_of(const Extent *extent) {
    if (extent->kind == EXTENT_LITERAL) return extent->literal % 2 ? NULL : extent_literal(extent->literal / 2);
    if (extent->kind != EXTENT_PRODUCT) return NULL;
    const Extent *a = extent->a, *b = extent->b;
    if (a->kind == EXTENT_LITERAL && a->literal == 2) return b;
    return b->kind == EXTENT_LITERAL && b->literal == 2 ? a : NULL;
}

static Expr *unpacked(Maker *m, const Shape *shape, int depth) {
    static const Packing formats[TYPE_COUNT] = {[TYPE_I8] = PACKING_I4, [TYPE_U8] = PACKING_U4, [TYPE_F8E4M3] = PACKING_F4};
    const Extent *half = half_of(shape->extent[shape->rank - 1]);
    if (!half || extent_value(half) < 1) return NULL;
    Shape bytes = shape_with(*shape, TYPE_U8);
    bytes.extent[shape->rank - 1] = half;
    return finished(unary_expr(E_UNPACK, *shape, (int)formats[shape->scalar], exact(m, &bytes, depth - 1)));
}

static Expr *packed(Maker *m, const Shape *shape, int depth) {
    static const Type floats[] = {TYPE_F32, TYPE_F16, TYPE_BF16, TYPE_F8E4M3, TYPE_F8E5M2};
    if (2 * shape_lanes(shape) > m->most_lanes) return NULL;
    Packing format = (Packing)(PACKING_I4 + (int)below(m, 3));
    Shape numbers = shape_with(*shape, format == PACKING_F4 ? floats[below(m, 5)] : some_int(m));
    const Extent **last = &numbers.extent[shape->rank - 1];
    *last = extent_product(extent_literal(2), *last);
    return finished(unary_expr(E_PACK, *shape, (int)format, exact(m, &numbers, depth - 1)));
}

/* ---- drawn numbers ---- */

static Expr *drawn(Maker *m, const Shape *shape, int depth) {
    Type type = shape->scalar;
    Shape index = shape_with(*shape, some_int(m)), seed = shape_with(*shape, some_int(m));
    Expr *expr = new_expr(type == TYPE_F32 ? E_NORMAL : E_DRAWN, *shape);
    add_operand(expr, exact(m, chance(m, 50) ? &seed : &(Shape){.scalar = seed.scalar}, depth - 1));
    add_operand(expr, exact(m, &index, depth - 1));
    if (type == TYPE_F32) {
        finished(expr)->tainted = true;
        return expr;
    }
    int64_t low = type_is_signed(type) ? (int64_t)below(m, 40) - 20 : (int64_t)below(m, 40), high = low + 1 + below(m, 80);
    add_operand(expr, literal_expr(type, number_from_integer(type, low)));
    add_operand(expr, literal_expr(type, number_from_integer(type, high)));
    return finished(expr);
}

static Expr *shuffled(Maker *m, const Shape *shape) {
    Shape seed = shape_scalar(some_int(m)), index = shape_scalar(some_int(m));
    Expr *a = exact(m, &seed, 1), *b = exact(m, &index, 1);
    return finished(binary_expr(E_SHUFFLED, *shape, 0, a, b));
}

Expr *make_drawn(Maker *m, const Shape *shape, int depth) {
    Type type = shape->scalar;
    if (m->in_function) return NULL;
    if (type == TYPE_I64 && shape->rank == 1 && shape_lanes(shape) <= 128 && chance(m, 40)) return shuffled(m, shape);
    return type_is_int(type) || (type == TYPE_F32 && !m->clean) ? drawn(m, shape, depth) : NULL;
}

/* ---- the parts of floats ---- */

Expr *make_scaled_float(Maker *m, const Shape *shape, int depth) {
    if (!type_is_float(shape->scalar) || m->in_function) return NULL;
    Shape exponents = shape_with(*shape, some_int(m));
    Expr *x = make_expr(m, shape, depth - 1), *n = exact(m, &exponents, depth - 1);
    if (x->kind == E_LITERAL) x->bare = false;
    return finished(binary_expr(E_LDEXP, *shape, 0, x, n));
}

Expr *make_float_parts(Maker *m, const Shape *shape, int depth) {
    if (!type_is_float(shape->scalar)) return NULL;
    Expr *expr = finished(unary_expr(E_FREXP, *shape, 0, exact(m, shape, depth)));
    expr->parts = 2;
    expr->part[0] = *shape;
    expr->part[1] = shape_with(*shape, TYPE_I32);
    return expr;
}

/* ---- products with scales ---- */

static Type some_factor(Maker *m) {
    static const Type types[] = {TYPE_I8, TYPE_U8, TYPE_F8E4M3, TYPE_F8E5M2, TYPE_F16, TYPE_BF16, TYPE_F32, TYPE_I16};
    return types[below(m, 8)];
}

/* Powers of two as bytes are near 1 but for some; as floats they are whatever comes. */
static Expr *some_scales(Maker *m, Shape shape, int depth) {
    static const Type types[] = {TYPE_U8, TYPE_U8, TYPE_F32, TYPE_F16, TYPE_BF16};
    shape.scalar = types[below(m, 5)];
    Expr *x = exact(m, &shape, depth);
    if (shape.scalar != TYPE_U8 || chance(m, 5)) return x;
    Expr *near = new_expr(E_CLAMP, shape);
    add_operand(near, x);
    add_operand(near, literal_expr(TYPE_U8, 122));
    add_operand(near, literal_expr(TYPE_U8, 131));
    return finished(near);
}

Expr *make_scaled_product(Maker *m, const Shape *shape, int depth) {
    static const Type types[] = {TYPE_BF16, TYPE_BF16, TYPE_F16, TYPE_F32};
    int rank = shape->rank;
    if (shape->scalar != TYPE_F32 || rank < 2 || rank >= MAX_AXES || m->clean || m->in_function) return NULL;
    int64_t rows = extent_value(shape->extent[rank - 2]), columns = extent_value(shape->extent[rank - 1]);
    int64_t most = 2 * m->most_lanes / (shape_lanes(shape) / (rows < columns ? rows : columns));
    const Extent *groups = chance(m, 40) ? some_extent(m, 16) : extent_literal(1 + below(m, 5));
    const Extent *k = extent_product(groups, extent_literal((int64_t)1 << below(m, 5)));
    if (groups->kind == EXTENT_LITERAL) k = extent_literal(extent_value(k));
    if (extent_value(k) > most) return NULL;
    Shape left = shape_with(*shape, some_factor(m)), right = shape_with(*shape, some_factor(m));
    left.extent[rank - 1] = right.extent[rank - 2] = k;
    Shape left_scales = left, right_scales = right;
    left_scales.extent[rank - 1] = right_scales.extent[rank - 2] = groups;
    Expr *expr = new_expr(E_SCALED, *shape), *a = make_factor(m, &left, rank - 1, depth), *b = make_factor(m, &right, rank - 2, depth);
    expr->to = types[below(m, 4)];
    expr->keep = chance(m, 40);
    expr->scan = chance(m, 60);
    expr->exclusive = !expr->scan || chance(m, 60);
    Expr *sums = expr->keep ? make_expr(m, shape, depth - 1) : NULL;
    if (sums && sums->kind == E_LITERAL) sums->bare = false;
    if (sums) expr->valid = sums->valid;
    int left_map[MAX_AXES] = {0, 1, 2, 3, 4}, right_map[MAX_AXES] = {0, 1, 2, 3, 4};
    left_map[rank - 1] = right_map[rank - 2] = -1;
    Sources a_valid = sources_map(&a->valid, left_map), b_valid = sources_map(&b->valid, right_map);
    sources_join(&expr->valid, &a_valid);
    sources_join(&expr->valid, &b_valid);
    add_operand(expr, a);
    add_operand(expr, b);
    if (sums) add_operand(expr, sums);
    if (expr->scan) add_operand(expr, some_scales(m, left_scales, depth - 1));
    if (expr->exclusive) add_operand(expr, some_scales(m, right_scales, depth - 1));
    expr->tainted = true;
    return expr;
}

Expr *make_packed(Maker *m, const Shape *shape, int depth) {
    Type type = shape->scalar;
    if (m->in_function || shape->rank == 0 || shape->rank >= MAX_AXES) return NULL;
    if (type == TYPE_F32) return make_scaled_product(m, shape, depth);
    if (type == TYPE_U8 && chance(m, 60)) return packed(m, shape, depth);
    return type == TYPE_I8 || type == TYPE_U8 || type == TYPE_F8E4M3 ? unpacked(m, shape, depth) : NULL;
}
