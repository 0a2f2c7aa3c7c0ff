/* Sorts, shifts, counts, and where a value is valid. */
#include "make.h"

static void new_source(Maker *m, Expr *expr, unsigned axes) {
    sources_add(&expr->valid, (Source){(uint32_t)(m->serial++ * 7919 + 13), (uint8_t)axes, false});
}

/* The valid elements come first along the axis: where a range ends, they did so before. `fewer`: not all lanes are kept. */
static void first_ones(Maker *m, Expr *expr, const Expr *x, int axis, bool fewer) {
    bool plain = !fewer, touched = sources_touch(&x->valid, 1u << axis);
    for (int i = 0; i < x->valid.count && i < MAX_SOURCES; i++)
        plain = plain && (!(x->valid.items[i].axes >> axis & 1) || x->valid.items[i].plain);
    int map[MAX_AXES] = {0, 1, 2, 3, 4};
    map[axis] = -1;
    expr->valid = touched && !plain ? sources_map(&x->valid, map) : x->valid;
    unsigned axes = 0;
    for (int i = 0; i < x->valid.count && i < MAX_SOURCES; i++)
        if (x->valid.items[i].axes >> axis & 1) axes |= x->valid.items[i].axes;
    if (touched && !plain) new_source(m, expr, axes);
    expr->bare = !touched || plain;
}

/* What is sorted has to be exact. */
static Expr *sorted_operand(Maker *m, const Shape *shape, int depth) {
    bool clean = m->clean;
    m->clean = true;
    Expr *x = make_expr(m, shape, depth - 1);
    m->clean = clean;
    if (x->valid.count < MAX_SOURCES && chance(m, 30)) x = make_kept(m, x);
    return x->valid.count > MAX_SOURCES ? covered(m, x, NULL) : x;
}

/* Equal elements are many in types that have few, the greatest ones among them. */
static Type some_key(Maker *m) {
    static const Type few[] = {TYPE_BOOL, TYPE_I8, TYPE_U8, TYPE_F8E4M3};
    return chance(m, 50) ? few[below(m, 4)] : some_type(m);
}

static Expr *make_sort(Maker *m, const Shape *shape, int depth, bool places) {
    Shape inner = shape_with(*shape, places ? some_key(m) : shape->scalar);
    Expr *x = sorted_operand(m, &inner, depth), *expr = unary_expr(E_SORT, *shape, 0, x);
    expr->scan = places;
    expr->axis[0] = (int)below(m, (unsigned)shape->rank);
    expr->from_end = chance(m, 20);
    expr->reverse = chance(m, 40);
    first_ones(m, expr, x, expr->axis[0], false);
    return expr;
}

static Expr *make_moved(Maker *m, const Shape *shape, int depth) {
    int axis = (int)below(m, (unsigned)shape->rank);
    int64_t extent = extent_value(shape->extent[axis]);
    if (extent < 2) return NULL;
    Expr *x = make_expr(m, shape, depth - 1);
    if (sources_touch(&x->valid, 1u << axis) || x->valid.count > MAX_SOURCES) x = covered(m, x, NULL);
    Expr *expr = finished(unary_expr(E_MOVED, *shape, 1 + (int)below(m, (unsigned)(extent - 1)), x));
    if (chance(m, 50)) expr->op = -expr->op;
    expr->axis[0] = axis;
    expr->from_end = chance(m, 20);
    new_source(m, expr, 1u << axis);
    return expr;
}

static Expr *make_valid(Maker *m, const Shape *shape, int depth) {
    Shape inner = shape_with(*shape, some_type(m));
    bool clean = m->clean;
    m->clean = false;
    Expr *x = make_expr(m, &inner, depth - 1);
    m->clean = clean;
    return x->valid.count > MAX_SOURCES ? NULL : unary_expr(E_VALID, *shape, 0, x);
}

/* An exact value of this shape. */
static Expr *exact(Maker *m, const Shape *shape, int depth) {
    bool clean = m->clean;
    m->clean = true;
    Expr *x = make_expr(m, shape, depth);
    m->clean = clean;
    if (x->kind == E_LITERAL) x->bare = false;
    return x->valid.count > MAX_SOURCES ? covered(m, x, NULL) : x;
}

static Expr *make_stretched(Maker *m, const Shape *shape, int depth) {
    Shape inner = *shape;
    for (int i = 0; i < shape->rank; i++)
        if (chance(m, 40)) inner.extent[i] = extent_literal(1);
    if (chance(m, 20)) inner.rank = 0;
    Expr *x = make_expr(m, &inner, depth - 1);
    if (x->kind == E_LITERAL) x->bare = false;
    return x->shape.rank == inner.rank ? finished(unary_expr(E_STRETCH, *shape, 0, x)) : NULL;
}

/* All sources of tiles are gone; what is invalid as a whole stays so. */
static Sources conditions_of(const Sources *sources) {
    static const int none[] = {-1, -1, -1, -1, -1};
    return sources_map(sources, none);
}

static Expr *make_counted(Maker *m, const Shape *shape, int depth) {
    Shape inner = some_shape(m, some_int(m), 3);
    if (inner.rank == 0) return NULL;
    Expr *x = exact(m, &inner, depth - 1);
    if (chance(m, 25)) x = make_kept(m, x);
    if (x->valid.count > MAX_SOURCES) return NULL;
    Expr *expr = unary_expr(E_COUNTED, *shape, 0, x);
    expr->valid = conditions_of(&x->valid);
    return expr;
}

/* Among elements that are in order, of which the last ones may be invalid. */
static Expr *make_placed(Maker *m, const Shape *shape, int depth) {
    Shape line = {.scalar = some_number(m), .rank = 1, .extent = {some_extent(m, m->most_lanes < 64 ? m->most_lanes : 64)}};
    Expr *sorted = make_sort(m, &line, depth - 1, false);
    sorted->reverse = false;
    Shape inner = shape_with(*shape, line.scalar);
    Expr *v = exact(m, &inner, depth - 1), *expr = binary_expr(E_PLACED, *shape, 0, sorted, v);
    expr->reverse = chance(m, 40);
    expr->valid = conditions_of(&sorted->valid);
    sources_join(&expr->valid, &v->valid);
    return expr;
}

Expr *make_arranged(Maker *m, const Shape *shape, int depth) {
    if (shape->scalar == TYPE_I64 && chance(m, 25)) return make_placed(m, shape, depth);
    if (shape->rank == 0) return NULL;
    if (shape->scalar == TYPE_I32 && shape->rank == 1 && chance(m, 60)) return make_counted(m, shape, depth);
    if (chance(m, 20)) return make_stretched(m, shape, depth);
    if (shape->scalar == TYPE_BOOL && chance(m, 70)) return make_valid(m, shape, depth);
    if (shape->scalar == TYPE_BOOL || chance(m, 40)) return make_moved(m, shape, depth);
    if (chance(m, 40)) return make_sort(m, shape, depth, false);
    Shape places = shape_with(*shape, TYPE_I64);
    Expr *at = make_sort(m, &places, depth, true);
    return shape->scalar == TYPE_I64 ? at : finished(unary_expr(E_CONVERT, *shape, 0, at));
}

/* (values, places), of up to twice as many lanes along an axis and some more. */
Expr *make_first(Maker *m, const Shape *shape, int depth) {
    if (shape->rank == 0 || 2 * shape_lanes(shape) > m->most_lanes) return NULL;
    int axis = (int)below(m, (unsigned)shape->rank);
    Shape wide = *shape;
    if (chance(m, 70)) wide.extent[axis] = extent_sum(shape->extent[axis], some_extent(m, extent_value(shape->extent[axis])));
    Expr *x = sorted_operand(m, &wide, depth), *expr = unary_expr(E_FIRST, *shape, 0, x);
    expr->axis[0] = axis;
    expr->from_end = chance(m, 20);
    first_ones(m, expr, x, axis, true);
    expr->parts = 2;
    expr->part[0] = *shape;
    expr->part[1] = shape_with(*shape, TYPE_I64);
    return expr;
}
