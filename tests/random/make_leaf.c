/* Nodes of expressions, what makes them valid, and those without operands. */
#include "make.h"

#include <string.h>

/* ---- nodes ---- */

Expr *new_expr(ExprKind kind, Shape shape) {
    Expr *expr = NEW(Expr);
    expr->kind = kind;
    expr->shape = shape;
    return expr;
}

static unsigned stretched_axes(const Shape *from, const Shape *to) {
    unsigned axes = 0;
    for (int i = 0; i < from->rank && i < to->rank; i++)
        if (extent_is_one(from->extent[i]) && !extent_is_one(to->extent[i])) axes |= 1u << i;
    return axes;
}

void add_operand(Expr *expr, Expr *operand) {
    expr->operand[expr->count++] = operand;
    expr->tainted = expr->tainted || operand->tainted;
}

Expr *finished(Expr *expr) {
    for (int i = 0; i < expr->count; i++) {
        Sources sources =
            sources_stretch(&expr->operand[i]->valid, stretched_axes(&expr->operand[i]->shape, &expr->shape));
        sources_join(&expr->valid, &sources);
    }
    return expr;
}

Expr *unary_expr(ExprKind kind, Shape shape, int op, Expr *x) {
    Expr *expr = new_expr(kind, shape);
    expr->op = op;
    add_operand(expr, x);
    return expr;
}

Expr *binary_expr(ExprKind kind, Shape shape, int op, Expr *x, Expr *y) {
    Expr *expr = unary_expr(kind, shape, op, x);
    add_operand(expr, y);
    return expr;
}

Expr *name_expr(Name *name) {
    Expr *expr = new_expr(E_NAME, name->shape);
    expr->name = name;
    expr->valid = name->valid;
    expr->tainted = name->tainted;
    return expr;
}

Expr *range_expr(Name *name) {
    Expr *expr = new_expr(E_RANGE, (Shape){TYPE_I64, 1, {name->size}});
    expr->name = name;
    expr->valid = name->valid;
    return expr;
}

Expr *extent_expr(const Extent *extent) {
    Expr *expr = new_expr(E_EXTENT, shape_scalar(TYPE_I64));
    expr->extent = extent;
    return expr;
}

Expr *literal_expr(Type type, uint64_t bits) {
    Expr *expr = new_expr(E_LITERAL, shape_scalar(type));
    expr->bits = bits;
    return expr;
}

Expr *integer_expr(int64_t value) {
    Expr *expr = literal_expr(TYPE_I64, (uint64_t)value);
    expr->bare = true;
    return expr;
}

/* ---- validity ---- */

Sources plain_sources(const Sources *sources) {
    Sources plain = {0};
    for (int i = 0; i < sources->count && i < MAX_SOURCES; i++)
        if (sources->items[i].plain) sources_add(&plain, sources->items[i]);
    return plain;
}

Expr *covered(Maker *m, Expr *expr, const Sources *within) {
    static const Sources none;
    if (sources_within(&expr->valid, within ? within : &none)) return expr;
    Type type = expr->shape.scalar;
    Expr *fill = literal_expr(type, some_literal(m, type));
    if (chance(m, 12)) {
        Shape scalar = shape_scalar(type);
        fill = make_expr(m, &scalar, 1);
        if (fill->valid.count) fill = literal_expr(type, some_literal(m, type));
    } else if (chance(m, 10) && expr->shape.rank) {
        Expr *tile = make_expr(m, &expr->shape, 1);
        if (!tile->valid.count) fill = tile;
    } else {
        fill->bare = !type_is_f8(type) && chance(m, 60);
    }
    Expr *result = binary_expr(E_ELSE, expr->shape, 0, expr, fill);
    result->from_end = chance(m, 50);
    return result;
}

/* ---- leaves ---- */

static Expr *some_name(Maker *m, const Shape *shape) {
    Name *found = NULL;
    int count = 0;
    for (int i = 0; i < m->scope_count; i++) {
        Name *name = m->scope[i];
        if (name->kind == NAME_RANGE || name->shape.scalar != shape->scalar || !shape_same(&name->shape, shape))
            continue;
        if (m->clean && name->tainted) continue;
        if (below(m, (unsigned)++count) == 0) found = name;
    }
    return found ? name_expr(found) : NULL;
}

static Expr *filled(Maker *m, const Shape *shape) {
    if (shape->rank == 0) return literal_expr(shape->scalar, some_literal(m, shape->scalar));
    if (chance(m, 25) || (type_is_f8(shape->scalar) && chance(m, 50))) return new_expr(E_ZEROS, *shape);
    Shape scalar = shape_scalar(shape->scalar);
    Expr *value = some_name(m, &scalar);
    if (!value || value->valid.count || chance(m, 70))
        value = literal_expr(shape->scalar, some_literal(m, shape->scalar));
    return unary_expr(E_FULL, *shape, 0, value);
}

static Name *indexing_range(Maker *m, const Extent *size) {
    for (int i = m->scope_count - 1; i >= 0; i--)
        if (m->scope[i]->kind == NAME_RANGE && extent_same(m->scope[i]->size, size) && chance(m, 60))
            return m->scope[i];
    return NULL;
}

/* Lane indices: r.idx or iota, converted. */
static Expr *places(Maker *m, const Shape *shape) {
    if (shape->rank != 1) return NULL;
    Shape whole = shape_with(*shape, TYPE_I64);
    Name *range = indexing_range(m, shape->extent[0]);
    Expr *expr = range ? unary_expr(E_IDX, whole, 0, range_expr(range)) : new_expr(E_IOTA, whole);
    if (range && chance(m, 30)) expr = unary_expr(E_IDX, whole, 0, make_range(m, shape->extent[0], 1));
    expr->tainted = false;
    if (expr->kind == E_IDX) expr->valid = expr->operand[0]->valid;
    if (shape->scalar == TYPE_I64) return expr;
    return finished(unary_expr(E_CONVERT, *shape, 0, expr));
}

static Expr *some_scalar(Maker *m) {
    switch (below(m, 4)) {
    case 0: return extent_expr(m->dims[below(m, (unsigned)m->dim_count)]);
    case 1: return extent_expr(m->pool[below(m, (unsigned)m->pool_count)]);
    default:
        for (int i = m->scope_count - 1; i >= 0; i--)
            if (m->scope[i]->kind == NAME_RANGE && chance(m, 40))
                return unary_expr(m->scope[i]->limit && chance(m, 30) ? E_END
                                  : chance(m, 80)                     ? E_START
                                                                      : E_SIZE,
                                  shape_scalar(TYPE_I64), 0, range_expr(m->scope[i]));
        return extent_expr(m->dims[0]);
    }
}

/* An operand that is not folded: usually a parameter. */
static Expr *local_leaf(Maker *m, const Shape *shape) {
    Expr *expr = chance(m, 80) ? some_name(m, shape) : NULL;
    if (expr) return expr;
    Name *name = m->scope[below(m, (unsigned)m->scope_count)];
    Type from = name->shape.scalar, to = shape->scalar;
    if (to == TYPE_BOOL) {
        Expr *limit = literal_expr(from, some_literal(m, from));
        return finished(binary_expr(E_BINARY, *shape, OP_EQ + (int)below(m, 6), name_expr(name), limit));
    }
    return chance(m, 50) ? finished(unary_expr(E_CONVERT, *shape, 0, name_expr(name)))
                         : literal_expr(to, some_literal(m, to));
}

Expr *make_leaf(Maker *m, const Shape *shape, int depth) {
    Expr *expr = NULL;
    if (m->in_function) return local_leaf(m, shape);
    if (chance(m, 35)) expr = some_name(m, shape);
    if (!expr && shape->rank == 0 && shape->scalar == TYPE_I64 && chance(m, 60)) expr = some_scalar(m);
    if (!expr && type_is_int(shape->scalar) && chance(m, 20)) expr = places(m, shape);
    if (!expr && m->indexing < 4 && chance(m, 85)) {
        expr = make_load(m, shape, depth);
        if (expr && expr->valid.count && chance(m, 45)) {
            Sources plain = plain_sources(&expr->valid);
            expr = covered(m, expr, chance(m, 70) ? &plain : NULL);
        }
    }
    return expr ? expr : filled(m, shape);
}
