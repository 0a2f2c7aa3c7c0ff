/* Reductions, scans, folds and products. */
#include "make.h"

/* The shape with an additional axis. */
static Shape widened(Maker *m, const Shape *shape, int axis, int64_t most) {
    Shape wide = *shape;
    int64_t lanes = shape_lanes(shape), left = most / (lanes ? lanes : 1);
    for (int i = shape->rank; i > axis; i--) wide.extent[i] = wide.extent[i - 1];
    wide.extent[axis] = some_extent(m, left > 0 ? left : 1);
    if (chance(m, 10) && left > 3) wide.extent[axis] = extent_sum(some_extent(m, left / 2), some_extent(m, left / 2));
    wide.rank++;
    return wide;
}

static Type summed_type(Maker *m, Type to) {
    static const Type narrow[] = {TYPE_I8, TYPE_I16, TYPE_U8, TYPE_U16, TYPE_I32};
    return to == TYPE_I32 ? narrow[below(m, 5)] : to;
}

Expr *make_kept(Maker *m, Expr *x) {
    Shape truth = shape_with(x->shape, TYPE_BOOL);
    bool clean = m->clean;
    m->clean = true;
    Expr *condition = chance(m, 75) ? make_expr(m, &truth, 2) : make_loose(m, &truth, 1);
    m->clean = clean;
    if (condition->shape.rank == 0) return x;
    Expr *expr = finished(binary_expr(E_KEEP, x->shape, 0, x, condition));
    expr->tainted = x->tainted;
    unsigned axes = 0;
    for (int i = 0; i < x->shape.rank; i++)
        if (!extent_is_one(condition->shape.extent[i]) || extent_is_one(x->shape.extent[i])) axes |= 1u << i;
    sources_add(&expr->valid, (Source){(uint32_t)(m->serial++ * 7919 + 13), (uint8_t)axes, false});
    return expr;
}

static bool choose_reduction(Maker *m, Type to, Reduction *reduction, Type *from) {
    *from = to;
    if (to == TYPE_BOOL) {
        *reduction = chance(m, 50) ? REDUCE_ANY : REDUCE_ALL;
        return true;
    }
    if (to == TYPE_I64 && chance(m, 40)) {
        *reduction = chance(m, 50) ? REDUCE_ARGMIN : REDUCE_ARGMAX;
        *from = some_number(m);
        return true;
    }
    bool is_float = type_is_float(to), sums = is_float ? !m->clean : type_bytes(to) >= 4;
    switch (below(m, 6)) {
    case 0:
    case 1:
        *reduction = REDUCE_SUM;
        *from = summed_type(m, to);
        return sums;
    case 2:
        *reduction = REDUCE_PROD;
        *from = summed_type(m, to);
        return sums;
    case 3: *reduction = REDUCE_MEAN; return is_float && !m->clean;
    default: *reduction = chance(m, 50) ? REDUCE_MIN : REDUCE_MAX; return true;
    }
}

Expr *make_reduction(Maker *m, const Shape *shape, int depth) {
    Reduction reduction;
    Type from;
    if (type_is_f8(shape->scalar) || shape->rank == MAX_AXES || !choose_reduction(m, shape->scalar, &reduction, &from))
        return NULL;
    bool one = reduction == REDUCE_ARGMIN || reduction == REDUCE_ARGMAX;
    int axis = (int)below(m, (unsigned)(shape->rank + 1)), second = -1;
    Shape wide = shape_with(widened(m, shape, axis, m->most_lanes), from);
    if (!one && wide.rank < MAX_AXES && chance(m, 25)) {
        second = (int)below(m, (unsigned)(wide.rank + 1));
        wide = shape_with(widened(m, &wide, second, m->most_lanes), from);
        if (second <= axis) axis++;
    }
    Expr *x = make_expr(m, &wide, depth - 1);
    if (chance(m, 22)) x = make_kept(m, x);
    Expr *expr = unary_expr(E_REDUCE, *shape, (int)reduction, x);
    expr->from_end = chance(m, 20);
    expr->axis[0] = axis;
    expr->axes = 1;
    if (second >= 0) expr->axis[expr->axes++] = second;
    int map[MAX_AXES] = {0}, next = 0;
    for (int i = 0; i < wide.rank; i++) map[i] = i == axis || i == second ? -1 : next++;
    expr->valid = sources_map(&x->valid, map);
    expr->bare = expr->axes == wide.rank;
    bool sums = reduction == REDUCE_SUM || reduction == REDUCE_PROD || reduction == REDUCE_MEAN;
    expr->tainted = x->tainted || (sums && type_is_float(from));
    return expr;
}

Expr *make_running(Maker *m, const Shape *shape, int depth) {
    Type to = shape->scalar;
    if (shape->rank == 0 || type_is_f8(to) || to == TYPE_BOOL) return NULL;
    if (type_is_float(to) ? m->clean : type_bytes(to) < 4) return NULL;
    Shape inner = shape_with(*shape, summed_type(m, to));
    Expr *x = make_expr(m, &inner, depth - 1);
    if (chance(m, 15)) x = make_kept(m, x);
    Expr *expr = finished(unary_expr(E_RUNNING, *shape, chance(m, 60) ? REDUCE_SUM : REDUCE_PROD, x));
    expr->from_end = chance(m, 20);
    expr->axis[0] = (int)below(m, (unsigned)shape->rank);
    expr->reverse = chance(m, 35);
    expr->exclusive = chance(m, 35);
    expr->tainted = x->tainted || type_is_float(to);
    return expr;
}

/* ---- folds ---- */

static bool fold_takes(FoldKind kind, Type type, bool clean) {
    bool is_int = type_is_int(type), is_float = type_is_float(type) && !type_is_f8(type);
    switch (kind) {
    case FOLD_SUM:
    case FOLD_PRODUCT: return is_int || (is_float && !clean);
    case FOLD_LARGEST:
    case FOLD_LEAST: return is_int || is_float;
    case FOLD_XOR:
    case FOLD_OR: return is_int || type == TYPE_BOOL;
    case FOLD_FIRST:
    case FOLD_LAST: return !type_is_f8(type);
    case FOLD_DIVISOR: return type == TYPE_U8 || type == TYPE_U16 || type == TYPE_U32;
    default: return is_int;
    }
}

static Type part_type(FoldKind kind, Type type, int part) { return kind == FOLD_BEST && part == 1 ? TYPE_I64 : type; }

/* Folds values of this shape along an axis, which is removed unless it is a scan. */
static Expr *new_fold(Maker *m, FoldKind kind, const Shape *whole, int axis, bool scan, int depth) {
    Expr *expr = new_expr(E_FOLD, *whole);
    expr->from_end = chance(m, 15);
    expr->op = (int)kind;
    expr->parts = fold_parts(kind);
    expr->scan = scan;
    expr->axis[0] = axis;
    Sources all = {0};
    for (int p = 0; p < expr->parts; p++) {
        Shape inner = shape_with(*whole, part_type(kind, whole->scalar, p));
        Expr *x = p == 0 ? make_expr(m, &inner, depth - 1) : make_loose(m, &inner, depth - 1);
        if (x->kind == E_LITERAL) x->bare = false;
        if (p == 0 && chance(m, 15)) x = make_kept(m, x);
        add_operand(expr, x);
    }
    finished(expr);
    all = expr->valid;
    expr->reverse = scan && chance(m, 35);
    expr->exclusive = scan && chance(m, 30);
    Shape line = shape_without(*whole, axis);
    bool plain = true;
    for (int i = 0; i < all.count && i < MAX_SOURCES; i++)
        plain = plain && (!(all.items[i].axes >> axis & 1) || all.items[i].plain);
    expr->keep = expr->exclusive || (!scan && !plain) || chance(m, 50);
    int map[MAX_AXES] = {0, 1, 2, 3, 4};
    for (int i = axis; i < MAX_AXES && !scan; i++) map[i] = i == axis ? -1 : i - 1;
    expr->valid = sources_map(&all, map);
    for (int p = 0; p < expr->parts && expr->keep; p++) {
        Shape inner = shape_with(line, part_type(kind, whole->scalar, p));
        Expr *x = covered(m, make_loose(m, &inner, 1), NULL);
        if (x->kind == E_LITERAL) x->bare = false;
        add_operand(expr, x);
    }
    if (!scan) expr->shape = line;
    for (int p = 0; p < expr->parts; p++) expr->part[p] = shape_with(expr->shape, part_type(kind, whole->scalar, p));
    expr->bare = chance(m, 60);
    bool sums = kind == FOLD_SUM || kind == FOLD_PRODUCT;
    expr->tainted = expr->tainted || (sums && type_is_float(whole->scalar));
    return expr;
}

static Expr *fold_of(Maker *m, FoldKind kind, const Shape *shape, int depth) {
    bool scan = shape->rank > 0 && chance(m, 45);
    if (!fold_takes(kind, shape->scalar, m->clean) || (!scan && shape->rank == MAX_AXES)) return NULL;
    int axis = (int)below(m, (unsigned)(shape->rank + !scan));
    Shape whole = scan ? *shape : shape_with(widened(m, shape, axis, m->most_lanes), shape->scalar);
    return new_fold(m, kind, &whole, axis, scan, depth);
}

Expr *make_fold(Maker *m, const Shape *shape, int depth) {
    return fold_of(m, (FoldKind)below(m, FOLD_AFFINE), shape, depth);
}

static Expr *make_split(Maker *m, const Shape *shape, int depth) {
    if (shape->rank == MAX_AXES || 2 * shape_lanes(shape) > m->most_lanes || type_is_f8(shape->scalar)) return NULL;
    Shape wide = *shape;
    wide.extent[wide.rank++] = extent_literal(2);
    Expr *x = make_expr(m, &wide, depth - 1);
    if (sources_touch(&x->valid, 1u << shape->rank)) x = covered(m, x, NULL);
    Expr *expr = finished(unary_expr(E_SPLIT, *shape, 0, x));
    expr->parts = 2;
    expr->part[0] = expr->part[1] = *shape;
    return expr;
}

Expr *make_parts(Maker *m, const Shape *shape, int depth) {
    Expr *expr = chance(m, 40)   ? make_first(m, shape, depth)
                 : chance(m, 40) ? make_float_parts(m, shape, depth)
                 : chance(m, 40)
                     ? make_split(m, shape, depth)
                     : fold_of(m, (FoldKind)(FOLD_AFFINE + below(m, FOLD_COUNT - FOLD_AFFINE)), shape, depth);
    if (expr) expr->several = true;
    return expr;
}

/* ---- products ---- */

static bool choose_product(Maker *m, Type to, Type *a, Type *b) {
    static const Type floats[] = {TYPE_F16, TYPE_BF16, TYPE_F32, TYPE_F8E4M3, TYPE_F8E5M2, TYPE_F16, TYPE_F32};
    if (to == TYPE_I32) {
        *a = chance(m, 50) ? TYPE_I8 : TYPE_U8;
        *b = chance(m, 50) ? TYPE_I8 : TYPE_U8;
        return true;
    }
    *a = *b = to == TYPE_F64 ? TYPE_F64 : floats[below(m, 7)];
    return (to == TYPE_F32 || to == TYPE_F64) && !m->clean;
}

/* A mask that depends on more axes than the contracted one is rejected. */
Expr *make_factor(Maker *m, const Shape *shape, int axis, int depth) {
    Expr *x = make_expr(m, shape, depth - 1);
    for (int i = 0; i < x->valid.count && i < MAX_SOURCES; i++) {
        Source source = x->valid.items[i];
        bool several = source.axes & (source.axes - 1);
        if ((source.axes >> axis & 1) && several) return covered(m, x, NULL);
    }
    return x->valid.count > MAX_SOURCES ? covered(m, x, NULL) : x;
}

/* A side of a product: its shape, which of its axes is contracted, and which of the result's each other one is. */
typedef struct Side {
    Shape shape;
    int axis, map[MAX_AXES];
} Side;

/* `rows`: of the result, how many axes from the front on the side has before the contracted one. */
static Side make_side(const Shape *result, Type type, int rows, bool rest, const Extent *k) {
    Side side = {.shape = {.scalar = type}, .axis = rows};
    for (int i = 0; i < rows; i++) {
        side.map[side.shape.rank] = i;
        side.shape.extent[side.shape.rank++] = result->extent[i];
    }
    side.map[side.shape.rank] = -1;
    side.shape.extent[side.shape.rank++] = k;
    if (!rest) return side;
    side.map[side.shape.rank] = result->rank - 1;
    side.shape.extent[side.shape.rank++] = result->extent[result->rank - 1];
    return side;
}

/* A result of rank 2 may be one of two matrices, of any rank above 0 one of a vector on either side, of rank 0 of two
 * vectors. */
static bool choose_sides(Maker *m, const Shape *shape, Type a, Type b, const Extent *k, Side *left, Side *right) {
    int rank = shape->rank;
    bool matrices = rank >= 2 && (rank == MAX_AXES || chance(m, 75));
    if (!matrices && rank == MAX_AXES) return false;
    bool vector_right = !matrices && (rank == 0 || chance(m, 50));
    *left = make_side(shape, a, matrices ? rank - 1 : vector_right ? rank : 0, false, k);
    *right =
        vector_right ? make_side(shape, b, 0, false, k) : make_side(shape, b, matrices ? rank - 2 : rank - 1, true, k);
    return true;
}

Expr *make_dot(Maker *m, const Shape *shape, int depth) {
    Type a_type, b_type;
    Side left, right;
    int rank = shape->rank;
    if (!choose_product(m, shape->scalar, &a_type, &b_type)) return NULL;
    int64_t rows = rank > 1 ? extent_value(shape->extent[rank - 2]) : 1,
            columns = rank ? extent_value(shape->extent[rank - 1]) : 1;
    int64_t batch = shape_lanes(shape) / (rows * columns), widest = batch * (rank < 2         ? columns
                                                                             : rows > columns ? rows
                                                                                              : columns);
    int64_t most = m->most_lanes * 2 / (widest ? widest : 1);
    const Extent *k = chance(m, 60) ? some_extent(m, most < 64 ? most : 64) : extent_literal(1 + below(m, 40));
    if (extent_value(k) > most) k = extent_literal(1 + below(m, 4));
    if (!choose_sides(m, shape, a_type, b_type, k, &left, &right)) return NULL;
    if (shape_lanes(&left.shape) > 2 * m->most_lanes || shape_lanes(&right.shape) > 2 * m->most_lanes) return NULL;
    Expr *expr = new_expr(E_DOT, *shape), *a = make_factor(m, &left.shape, left.axis, depth),
         *b = make_factor(m, &right.shape, right.axis, depth);
    Sources a_valid = sources_map(&a->valid, left.map), b_valid = sources_map(&b->valid, right.map);
    if (chance(m, 45)) {
        add_operand(expr, chance(m, 70) ? make_expr(m, shape, depth - 1) : make_loose(m, shape, depth - 1));
        if (expr->operand[0]->shape.rank != rank) expr->operand[0] = make_expr(m, shape, 0);
        expr->tainted = expr->operand[0]->tainted;
        finished(expr);
        expr->operand[2] = expr->operand[0];
        expr->count = 3;
    } else {
        expr->count = 2;
    }
    expr->operand[0] = a;
    expr->operand[1] = b;
    sources_join(&expr->valid, &a_valid);
    sources_join(&expr->valid, &b_valid);
    if (a_type == TYPE_F32 && chance(m, 50)) expr->op = chance(m, 70) ? PRECISION_TF32 : PRECISION_TF32X3;
    if (type_is_float(a_type) && expr->op == PRECISION_FULL && chance(m, 20)) expr->op = PRECISION_ORDERED;
    expr->tainted = expr->tainted || a->tainted || b->tainted || type_is_float(shape->scalar);
    expr->bare = chance(m, 30);
    expr->reverse = chance(m, 30); /* by letters */
    return expr;
}
