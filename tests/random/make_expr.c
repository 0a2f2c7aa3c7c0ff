/* Expressions of any type and shape. */
#include "make.h"

#include <string.h>

/* ---- elementwise ---- */

static Expr *make_pair(Maker *m, ExprKind kind, const Shape *shape, Type operands, int op, int depth) {
    Shape inner = shape_with(*shape, operands);
    Expr *exact = make_expr(m, &inner, depth - 1);
    bool swap = chance(m, 40) && op != OP_BOTH && op != OP_EITHER;
    Expr *loose;
    if (kind == E_BINARY && chance(m, 20) && operands != TYPE_BOOL) {
        loose = literal_expr(operands, some_literal(m, operands));
        bool negative = !type_is_float(operands) && number_integer(operands, loose->bits) < 0;
        loose->bare = !negative && exact->kind != E_LITERAL;
        if (number_is_nan(operands, loose->bits)) loose->bare = false;
    } else {
        loose = make_loose(m, &inner, depth - 1);
    }
    return finished(binary_expr(kind, *shape, op, swap ? loose : exact, swap ? exact : loose));
}

static Expr *arithmetic(Maker *m, const Shape *shape, int depth) {
    static const Op ints[] = {OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_REM, OP_AND, OP_OR,
                              OP_XOR, OP_SHL, OP_SHR, OP_ADD, OP_SUB, OP_MUL};
    static const Op floats[] = {OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_ADD, OP_SUB, OP_MUL, OP_REM};
    bool is_int = type_is_int(shape->scalar);
    Op op = is_int ? ints[below(m, 13)] : floats[below(m, m->clean ? 7 : 8)];
    Expr *expr = make_pair(m, E_BINARY, shape, shape->scalar, (int)op, depth);
    expr->tainted = expr->tainted || (op == OP_REM && !is_int);
    return expr;
}

static Expr *unary(Maker *m, const Shape *shape, int depth) {
    static const Op whole[] = {OP_ABS, OP_POPCOUNT, OP_CLZ, OP_CTZ};
    static const Op exact[] = {OP_ABS, OP_FLOOR, OP_CEIL, OP_ROUND, OP_TRUNC, OP_SQRT};
    Expr *x = make_expr(m, shape, depth - 1);
    if (chance(m, 30) && !(x->kind == E_LITERAL && x->bare)) return finished(unary_expr(E_UNARY, *shape, OP_NEG, x));
    if (type_is_int(shape->scalar))
        return chance(m, 40) ? finished(unary_expr(E_UNARY, *shape, OP_NOT, x))
                             : finished(unary_expr(E_CALL, *shape, whole[below(m, 4)], x));
    if (m->clean || chance(m, 55)) return finished(unary_expr(E_CALL, *shape, exact[below(m, 6)], x));
    Op op = (Op)(OP_RSQRT + below(m, OP_POW - OP_RSQRT));
    Expr *expr = finished(unary_expr(chance(m, 15) ? E_APPROXIMATE : E_CALL, *shape, op, x));
    expr->tainted = true;
    return expr;
}

static Expr *call(Maker *m, const Shape *shape, int depth) {
    bool is_float = type_is_float(shape->scalar);
    switch (below(m, 5)) {
    case 0:
    case 1: return make_pair(m, E_CALL, shape, shape->scalar, chance(m, 50) ? OP_MIN : OP_MAX, depth);
    case 2: {
        Expr *expr = make_pair(m, E_CLAMP, shape, shape->scalar, 0, depth);
        Expr *high = make_loose(m, shape, depth - 1);
        add_operand(expr, high);
        return finished(expr);
    }
    case 3:
        if (!is_float) return make_pair(m, E_CALL, shape, shape->scalar, chance(m, 50) ? OP_CDIV : OP_MULHI, depth);
        if (chance(m, 60) || m->clean) {
            Expr *expr = make_pair(m, E_CALL, shape, shape->scalar, OP_FMA, depth);
            add_operand(expr, make_loose(m, shape, depth - 1));
            return finished(expr);
        } else {
            Expr *expr = make_pair(m, E_CALL, shape, shape->scalar, (Op)(OP_POW + below(m, OP_MULHI - OP_POW)), depth);
            expr->tainted = true;
            return expr;
        }
    default:
        if (!is_float) return arithmetic(m, shape, depth);
        Expr *expr = make_pair(m, E_CALL, shape, shape->scalar, OP_COPYSIGN, depth);
        expr->tainted = true; /* the sign of a NaN is unknown */
        return m->clean ? arithmetic(m, shape, depth) : expr;
    }
}

static Expr *choice(Maker *m, const Shape *shape, int depth) {
    Shape truth = shape_with(*shape, TYPE_BOOL);
    Expr *expr = new_expr(E_WHERE, *shape);
    int exact = (int)below(m, 3);
    add_operand(expr, exact == 0 ? make_expr(m, &truth, depth - 1) : make_loose(m, &truth, depth - 1));
    add_operand(expr, exact == 1 ? make_expr(m, shape, depth - 1) : make_loose(m, shape, depth - 1));
    add_operand(expr, exact == 2 ? make_expr(m, shape, depth - 1) : make_loose(m, shape, depth - 1));
    return finished(expr);
}

/* An inexact float must not decide anything: its conversion to an integer may give any number. */
static Expr *conversion(Maker *m, const Shape *shape, int depth) {
    Type from = some_type(m);
    if (from == shape->scalar) from = some_type(m);
    Shape inner = shape_with(*shape, from);
    Expr *x = make_expr(m, &inner, depth - 1);
    if (x->kind == E_LITERAL && x->bare) x->bare = false;
    return finished(unary_expr(E_CONVERT, *shape, 0, x));
}

static Expr *same_bits(Maker *m, const Shape *shape, int depth) {
    static const Type by_width[4][5] = {{TYPE_I8, TYPE_U8, TYPE_F8E4M3, TYPE_F8E5M2, TYPE_I8},
                                        {TYPE_I16, TYPE_U16, TYPE_F16, TYPE_BF16, TYPE_U16},
                                        {TYPE_I32, TYPE_U32, TYPE_F32, TYPE_I32, TYPE_U32},
                                        {TYPE_I64, TYPE_U64, TYPE_F64, TYPE_I64, TYPE_U64}};
    if (shape->scalar == TYPE_BOOL) return NULL;
    int width = __builtin_ctz(type_bytes(shape->scalar));
    Shape inner = shape_with(*shape, by_width[width][below(m, 5)]);
    if (m->clean && type_is_float(inner.scalar)) return NULL;
    Expr *expr = finished(unary_expr(E_BITCAST, *shape, 0, make_expr(m, &inner, depth - 1)));
    expr->tainted = expr->tainted || type_is_float(inner.scalar);
    return expr;
}

static Expr *random_numbers(Maker *m, const Shape *shape, int depth) {
    if (shape->scalar != TYPE_F32 || m->in_function) return NULL;
    Shape index = shape_with(*shape, some_int(m)), seed = shape_with(*shape, some_int(m));
    Expr *expr = new_expr(E_RAND, *shape);
    add_operand(expr, make_loose(m, &seed, depth - 1));
    add_operand(expr, make_expr(m, &index, depth - 1));
    return finished(expr);
}

static Expr *comparison(Maker *m, const Shape *shape, int depth) {
    Type type = some_number(m);
    Expr *expr = make_pair(m, E_BINARY, shape, type, OP_EQ + (int)below(m, 6), depth);
    return expr;
}

static Expr *truth(Maker *m, const Shape *shape, int depth) {
    switch (below(m, 8)) {
    case 0:
    case 1: return make_pair(m, E_BINARY, shape, TYPE_BOOL, chance(m, 50) ? OP_BOTH : OP_EITHER, depth);
    case 2: {
        static const Op bits[] = {OP_AND, OP_OR, OP_XOR, OP_EQ, OP_NE};
        return make_pair(m, E_BINARY, shape, TYPE_BOOL, (int)bits[below(m, 5)], depth);
    }
    case 3: return finished(unary_expr(E_UNARY, *shape, OP_UNTRUE, make_expr(m, shape, depth - 1)));
    case 4: {
        Shape inner = shape_with(*shape, some_float(m));
        return finished(
            unary_expr(E_CALL, *shape, chance(m, 50) ? OP_ISNAN : OP_ISINF, make_expr(m, &inner, depth - 1)));
    }
    default: return comparison(m, shape, depth);
    }
}

/* ---- functions that lift ---- */

static bool uses(const Expr *expr, const Name *name) {
    if (expr->name == name) return true;
    for (int i = 0; i < expr->count; i++)
        if (uses(expr->operand[i], name)) return true;
    return false;
}

static Function *new_function(Maker *m, Type result) {
    Maker inner = *m;
    Function *function = NEW(Function);
    Name *name = new_name(m, NAME_LOCAL, "fn");
    memcpy(function->text, name->text, sizeof function->text);
    function->result = result;
    function->count = 1 + (int)below(m, 3);
    inner.in_function = true;
    inner.clean = true;
    inner.scope_count = 0;
    bool loops = chance(m, 25);
    for (int i = 0; i < function->count; i++) {
        function->names[i] = new_name(m, NAME_LOCAL, "a");
        function->names[i]->shape = shape_scalar(i == 0 && loops ? result : some_number(m));
        if (!loops || i) enter(&inner, function->names[i]);
    }
    if (loops) {
        function->variable = new_name(m, NAME_LOCAL, "r");
        function->variable->shape = shape_scalar(result);
        enter(&inner, function->variable);
        function->iterations = 1 + (int)below(m, 5);
    }
    Shape scalar = shape_scalar(result), condition = shape_scalar(TYPE_BOOL);
    inner.serial = m->serial;
    if (loops || chance(m, 40)) {
        function->condition = make_expr(&inner, &condition, 2);
        if (!loops) function->first = make_expr(&inner, &scalar, 2);
    }
    function->body = make_expr(&inner, &scalar, 3);
    for (int i = loops ? 1 : 0; i < function->count; i++) {
        if (uses(function->body, function->names[i])) continue;
        Expr *value = name_expr(function->names[i]);
        if (value->shape.scalar != result) value = unary_expr(E_CONVERT, scalar, 0, value);
        function->body = binary_expr(E_CALL, scalar, chance(m, 50) ? OP_MIN : OP_MAX, function->body, value);
    }
    if (loops && !uses(function->body, function->variable))
        function->body = binary_expr(E_CALL, scalar, OP_MAX, function->body, name_expr(function->variable));
    m->serial = inner.serial;
    m->random = inner.random;
    m->program->functions[m->program->function_count++] = function;
    return function;
}

static Expr *function_call(Maker *m, const Shape *shape, int depth) {
    if (chance(m, 30)) return make_guarded_call(m, shape, depth);
    if (m->in_function || shape->scalar == TYPE_BOOL || type_is_f8(shape->scalar)) return NULL;
    Function *function = NULL;
    for (int i = 0; i < m->program->function_count; i++)
        if (!m->program->functions[i]->tensor && m->program->functions[i]->result == shape->scalar && chance(m, 70))
            function = m->program->functions[i];
    if (!function && m->program->function_count == MAX_FUNCTIONS) return NULL;
    if (!function) function = new_function(m, shape->scalar);
    Expr *expr = new_expr(E_FUNCTION, *shape);
    expr->function = function;
    int exact = (int)below(m, (unsigned)function->count);
    for (int i = 0; i < function->count; i++) {
        Shape argument = shape_with(*shape, function->names[i]->shape.scalar);
        if (i != exact && chance(m, 30)) argument.rank = 0;
        Expr *value = make_expr(m, &argument, depth - 1);
        if (value->kind == E_LITERAL) value->bare = false;
        if (shape->rank == 0 && function->condition) value = covered(m, value, NULL);
        add_operand(expr, value);
    }
    return finished(expr);
}

/* ---- shapes ---- */

static Expr *permuted(Maker *m, const Shape *shape, int depth) {
    if (shape->rank < 2) return NULL;
    Expr *expr = new_expr(E_PERMUTE, *shape);
    Shape inner = *shape;
    int map[MAX_AXES] = {0};
    for (int i = 0; i < shape->rank; i++) expr->axis[i] = i;
    for (int i = shape->rank - 1; i > 0; i--) {
        int k = (int)below(m, (unsigned)(i + (shape->rank > 2))), other = expr->axis[i];
        expr->axis[i] = expr->axis[k];
        expr->axis[k] = other;
    }
    for (int i = 0; i < shape->rank; i++) {
        inner.extent[expr->axis[i]] = shape->extent[i];
        map[expr->axis[i]] = i;
    }
    Expr *x = make_expr(m, &inner, depth - 1);
    add_operand(expr, x);
    expr->valid = sources_map(&x->valid, map);
    expr->bare = shape->rank == 2 && expr->axis[0] == 1 && chance(m, 70);
    return expr;
}

/* Splits an axis that is a product, or merges axes; the value has to be valid along them. */
static Expr *reshaped(Maker *m, const Shape *shape, int depth) {
    Shape inner = *shape;
    int at = -1;
    for (int i = 0; i < shape->rank; i++)
        if (shape->extent[i]->kind == EXTENT_PRODUCT) at = i;
    if (at >= 0 && shape->rank < MAX_AXES) {
        for (int i = shape->rank; i > at + 1; i--) inner.extent[i] = inner.extent[i - 1];
        inner.extent[at] = shape->extent[at]->a;
        inner.extent[at + 1] = shape->extent[at]->b;
        inner.rank++;
    } else if (shape->rank >= 2) {
        at = (int)below(m, (unsigned)(shape->rank - 1));
        inner = shape_without(inner, at);
        inner.extent[at] = extent_product(shape->extent[at], shape->extent[at + 1]);
    } else {
        return NULL;
    }
    Expr *x = make_expr(m, &inner, depth - 1), *expr = new_expr(E_RESHAPE, *shape);
    int map[MAX_AXES] = {-1, -1, -1, -1, -1}, front = 0, back = 0;
    for (; front < inner.rank && front < shape->rank && extent_same(inner.extent[front], shape->extent[front]); front++)
        map[front] = front;
    for (; back < inner.rank - front && back < shape->rank - front &&
           extent_same(inner.extent[inner.rank - 1 - back], shape->extent[shape->rank - 1 - back]);
         back++)
        map[inner.rank - 1 - back] = shape->rank - 1 - back;
    unsigned touched = 0;
    for (int i = 0; i < inner.rank; i++) touched |= map[i] < 0 ? 1u << i : 0;
    if (sources_touch(&x->valid, touched)) x = covered(m, x, NULL);
    add_operand(expr, x);
    expr->valid = sources_map(&x->valid, map);
    return expr;
}

static Expr *joined(Maker *m, const Shape *shape, int depth) {
    const Extent *last = shape->rank >= 2 ? shape->extent[shape->rank - 1] : NULL;
    if (!last || last->kind != EXTENT_LITERAL || last->literal != 2) return NULL;
    Shape half = shape_without(*shape, shape->rank - 1);
    Expr *expr = new_expr(E_JOIN, *shape);
    add_operand(expr, make_expr(m, &half, depth - 1));
    add_operand(expr, make_expr(m, &half, depth - 1));
    return finished(expr);
}

static Expr *chained(Maker *m, const Shape *shape, int depth) {
    for (int axis = 0; axis < shape->rank; axis++) {
        if (shape->extent[axis]->kind != EXTENT_SUM) continue;
        Expr *expr = new_expr(E_CAT, *shape);
        expr->from_end = chance(m, 20);
        expr->axis[0] = axis;
        for (int side = 0; side < 2; side++) {
            Shape part = *shape;
            part.extent[axis] = side ? shape->extent[axis]->b : shape->extent[axis]->a;
            Expr *x = make_expr(m, &part, depth - 1);
            if (sources_touch(&x->valid, 1u << axis)) x = covered(m, x, NULL);
            add_operand(expr, x);
        }
        return finished(expr);
    }
    return NULL;
}

static bool reads_memory(const Expr *expr) {
    bool reads = expr->kind == E_LOAD;
    for (int i = 0; i < expr->count && !reads; i++) reads = expr->operand[i] && reads_memory(expr->operand[i]);
    return reads;
}

/* A constant condition would select text, with the validity of the side that is compiled. */
static Expr *either(Maker *m, const Shape *shape, int depth) {
    if (m->in_function) return NULL;
    Expr *expr = new_expr(E_IF, *shape), *condition = make_decision(m, TYPE_BOOL, depth - 1);
    if (!reads_memory(condition)) return NULL;
    add_operand(expr, condition);
    for (int side = 0; side < 2; side++) {
        Expr *x = make_expr(m, shape, depth - 1);
        Sources plain = plain_sources(&x->valid);
        x = covered(m, x, &plain);
        if (x->kind == E_LITERAL) x->bare = false;
        add_operand(expr, x);
    }
    return finished(expr);
}

/* ---- all ---- */

static Expr *storage(Maker *m, const Shape *shape, int depth) {
    switch (below(m, 4)) {
    case 0: return choice(m, shape, depth);
    case 1: return conversion(m, shape, depth);
    case 2: return m->clean ? NULL : same_bits(m, shape, depth);
    default: return either(m, shape, depth);
    }
}

static Expr *shaped(Maker *m, const Shape *shape, int depth) {
    switch (below(m, 9)) {
    case 0:
    case 1: return permuted(m, shape, depth);
    case 2:
    case 3: return reshaped(m, shape, depth);
    case 4: return joined(m, shape, depth);
    case 5:
    case 6: return chained(m, shape, depth);
    case 7: return chance(m, 60) ? make_gather(m, shape, depth) : make_flat_load(m, shape, depth);
    default: return either(m, shape, depth);
    }
}

static Expr *computed(Maker *m, const Shape *shape, int depth) {
    if (chance(m, 4)) return make_drawn(m, shape, depth);
    if (chance(m, 3)) return make_scaled_float(m, shape, depth);
    if (shape->scalar == TYPE_BOOL) return chance(m, 15) ? choice(m, shape, depth) : truth(m, shape, depth);
    if (type_is_f8(shape->scalar) && chance(m, 40)) return storage(m, shape, depth);
    switch (below(m, 16)) {
    case 0:
    case 1:
    case 2:
    case 3: return arithmetic(m, shape, depth);
    case 4: return unary(m, shape, depth);
    case 5:
    case 6: return call(m, shape, depth);
    case 7:
    case 8: return choice(m, shape, depth);
    case 9:
    case 10: return conversion(m, shape, depth);
    case 11: return same_bits(m, shape, depth);
    case 12: return random_numbers(m, shape, depth);
    case 13: return function_call(m, shape, depth);
    default: return arithmetic(m, shape, depth);
    }
}

Expr *make_expr(Maker *m, const Shape *shape, int depth) {
    if (depth <= 0) return make_leaf(m, shape, depth);
    bool whole = !m->in_function;
    for (int tries = 0; tries < 3; tries++) {
        Expr *expr = NULL;
        unsigned kind = below(m, 100);
        if (kind < 16)
            expr = make_leaf(m, shape, depth);
        else if (kind < 28 && whole)
            expr = chance(m, 20) ? make_packed(m, shape, depth) : shaped(m, shape, depth);
        else if (kind < 42 && whole)
            expr = make_reduction(m, shape, depth);
        else if (kind < 50 && whole)
            expr = chance(m, 30) ? make_scaled_product(m, shape, depth) : make_dot(m, shape, depth);
        else if (kind < 54 && whole)
            expr = make_running(m, shape, depth);
        else if (kind < 58 && whole)
            expr = make_fold(m, shape, depth);
        else if (kind < 63 && whole)
            expr = make_arranged(m, shape, depth);
        else
            expr = computed(m, shape, depth);
        if (!expr || (m->clean && expr->tainted)) continue;
        if (expr->valid.count > MAX_SOURCES) expr = covered(m, expr, NULL);
        expr->outlined = whole && !expr->several && expr->kind != E_LITERAL && chance(m, 3);
        return expr;
    }
    return make_leaf(m, shape, depth);
}

Expr *make_loose(Maker *m, const Shape *shape, int depth) {
    if (shape->rank == 0 || m->in_function || chance(m, 55)) return make_expr(m, shape, depth);
    if (chance(m, 30)) {
        Shape scalar = shape_scalar(shape->scalar);
        return make_expr(m, &scalar, depth);
    }
    Expr *expr = new_expr(E_AXES, *shape);
    Shape inner = {.scalar = shape->scalar};
    int map[MAX_AXES] = {0};
    for (int i = 0; i < shape->rank; i++) {
        expr->axis[i] = chance(m, 45);
        if (expr->axis[i])
            expr->shape.extent[i] = extent_literal(1);
        else
            map[inner.rank] = i, inner.extent[inner.rank++] = shape->extent[i];
    }
    if (inner.rank == 0 || inner.rank == shape->rank) return make_expr(m, shape, depth);
    Expr *x = make_expr(m, &inner, depth);
    add_operand(expr, x);
    expr->valid = sources_map(&x->valid, map);
    return expr;
}

Expr *make_decision(Maker *m, Type type, int depth) {
    Shape scalar = shape_scalar(type);
    bool clean = m->clean;
    m->clean = true;
    Expr *expr = covered(m, make_expr(m, &scalar, depth), NULL);
    m->clean = clean;
    return expr;
}
