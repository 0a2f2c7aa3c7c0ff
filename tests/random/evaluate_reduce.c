/* Reductions, scans, folds and products. */
#include <math.h>
#include <string.h>

#include "evaluate.h"

/* ---- reductions ---- */

/* The state of one element of the result. */
typedef struct Tally {
    Sum sum;
    Product product;
    Wide integer;
    Number best;
    int64_t place, count;
    bool any, nan;
} Tally;

static Tally empty_tally(Reduction reduction) {
    Tally tally = {.product = {.total = 1}};
    tally.integer = reduction == REDUCE_PROD || reduction == REDUCE_ALL;
    return tally;
}

static void take_best(Tally *tally, bool largest, Type type, Number x, int64_t place) {
    bool nan = number_is_nan(type, x.bits);
    if (x.off > 0) tally->best.off = INFINITY;
    if (!tally->any) {
        *tally = (Tally){.best = {x.bits, x.off > 0 ? INFINITY : x.off}, .place = place, .any = true, .nan = nan};
        return;
    }
    if (isinf(tally->best.off)) return;
    if (tally->nan) return;
    Number more = number_binary(largest ? OP_GT : OP_LT, type, x, tally->best);
    if (nan || more.bits) {
        tally->best = x;
        tally->place = place;
    } else if (type_is_float(type) && number_value(type, x.bits) == 0 && number_value(type, tally->best.bits) == 0 &&
               (x.bits != tally->best.bits || x.off < 0)) {
        tally->best.off = SIGN;
    }
    tally->nan = nan;
}

static void take(Tally *tally, const Expr *expr, Type type, Number x, int64_t place) {
    tally->count++;
    switch ((Reduction)expr->op) {
    case REDUCE_SUM:
    case REDUCE_MEAN:
        if (type_is_float(type))
            sum_add(&tally->sum, type, x);
        else if (x.off != 0)
            tally->sum.unknown = true;
        else
            tally->integer += number_integer(type, x.bits);
        break;
    case REDUCE_PROD:
        if (type_is_float(type))
            product_times(&tally->product, type, x);
        else if (x.off != 0)
            tally->sum.unknown = true;
        else
            tally->integer = (int64_t)(uint64_t)(tally->integer * number_integer(type, x.bits));
        break;
    case REDUCE_ANY:
    case REDUCE_ALL: {
        bool wanted = expr->op == REDUCE_ANY;
        if (x.off != 0)
            tally->sum.unknown = true;
        else if ((x.bits != 0) == wanted)
            tally->integer = wanted, tally->any = true;
        break;
    }
    default: take_best(tally, expr->op == REDUCE_MAX || expr->op == REDUCE_ARGMAX, type, x, place);
    }
}

static Type accumulator_of(Type type) { return type == TYPE_F64 ? TYPE_F64 : TYPE_F32; }

/* The sum of a narrow float may be rounded before the division. */
static Number mean(const Tally *tally, Type type) {
    if (tally->count == 0) return (Number){number_from(type, NAN), 0};
    Type wide = accumulator_of(type);
    Number sum = sum_result(&tally->sum, wide, wide), count = {number_from(wide, (double)tally->count), 0};
    Number once = number_convert(type, wide, number_binary(OP_DIV, wide, sum, count));
    if (wide == type) return once;
    Number rounded = number_convert(type, wide, sum), few = {number_from(type, (double)tally->count), 0};
    Number twice = number_binary(OP_DIV, type, rounded, few);
    if (once.off == 0 && twice.off == 0 && number_agrees(type, once, twice.bits)) return once;
    if (isinf(once.off) || isinf(twice.off) || !isfinite(number_value(type, once.bits))) return once;
    double off = fmax(fmax(once.off, twice.off), 0); /* negative: the sign of a zero is unknown */
    return number_off(type, number_value(type, once.bits), off + 2 * number_ulp(type, number_value(type, once.bits)));
}

static Number extreme_of(Type type, bool greatest) {
    if (type_is_float(type)) return (Number){number_from(type, greatest ? INFINITY : -INFINITY), 0};
    int width = (int)type_bytes(type) * 8;
    bool is_signed = type_is_signed(type);
    Wide most = ((Wide)1 << (is_signed ? width - 1 : width)) - 1;
    return (Number){number_from_integer(type, greatest ? most : is_signed ? -most - 1 : 0), 0};
}

static Number result_of(const Tally *tally, const Expr *expr, Type type) {
    Type to = expr->shape.scalar;
    bool is_float = type_is_float(type);
    switch ((Reduction)expr->op) {
    case REDUCE_SUM:
        if (is_float) return sum_result(&tally->sum, accumulator_of(type), to);
        break;
    case REDUCE_PROD:
        if (is_float) return product_result(&tally->product, accumulator_of(type), to, tally->count);
        break;
    case REDUCE_MEAN: return mean(tally, to);
    case REDUCE_ANY:
    case REDUCE_ALL:
        if (tally->any) return (Number){expr->op == REDUCE_ANY, 0};
        return tally->sum.unknown ? number_unknown() : (Number){expr->op == REDUCE_ALL, 0};
    case REDUCE_MIN: return tally->any ? tally->best : extreme_of(type, true);
    case REDUCE_MAX: return tally->any ? tally->best : extreme_of(type, false);
    default:
        if (tally->any && isinf(tally->best.off)) return number_unknown();
        return (Number){(uint64_t)tally->place, 0};
    }
    return tally->sum.unknown ? number_unknown() : (Number){number_from_integer(to, tally->integer), 0};
}

Value *evaluate_reduce(Evaluator *e, const Expr *expr) {
    Value *v = evaluate(e, expr->operand[0]);
    unsigned axes = 0;
    int map[MAX_AXES] = {0};
    int64_t extent[MAX_AXES] = {0}, index[MAX_AXES] = {0}, there[MAX_AXES] = {0};
    for (int i = 0; i < expr->axes; i++) axes |= 1u << expr->axis[i];
    int rank = 0;
    for (int i = 0; i < v->rank; i++) {
        bool gone = axes >> i & 1;
        map[i] = gone ? -1 : rank;
        if (!gone || expr->keep) extent[rank++] = gone ? 1 : v->extent[i];
    }
    Value *result = value_make(expr->shape.scalar, rank, extent);
    Tally *tallies = program_allocate((size_t)result->count * sizeof *tallies);
    for (int64_t i = 0; i < result->count; i++) tallies[i] = empty_tally((Reduction)expr->op);
    bool *ok = masks_flat(v, axes);
    for (int64_t i = 0; i < v->count; i++) {
        if (!ok[i]) continue;
        index_of(v->extent, v->rank, i, index);
        for (int k = 0; k < v->rank; k++)
            if (map[k] >= 0)
                there[map[k]] = index[k];
            else if (expr->keep)
                there[k] = 0;
        take(&tallies[offset_in(extent, rank, there)], expr, v->scalar, v->at[i], index[expr->axis[0]]);
    }
    for (int64_t i = 0; i < result->count; i++) result->at[i] = result_of(&tallies[i], expr, v->scalar);
    masks_map(result, v, map);
    return result;
}

/* ---- scans ---- */

Lines lines_of(const Value *v, int axis) {
    Lines lines = {1, v->extent[axis], 1};
    for (int i = axis + 1; i < v->rank; i++) lines.step *= v->extent[i];
    lines.count = v->count / lines.length;
    return lines;
}

static int64_t line_begin(const Lines *lines, int64_t line) {
    return line / lines->step * lines->step * lines->length + line % lines->step;
}

Value *evaluate_running(Evaluator *e, const Expr *expr) {
    Value *v = evaluate(e, expr->operand[0]);
    Value *result = value_make(expr->shape.scalar, v->rank, v->extent);
    int axis = expr->axis[0];
    Lines lines = lines_of(v, axis);
    bool *ok = masks_flat(v, 1u << axis);
    Expr as = *expr;
    as.op = expr->op == REDUCE_PROD ? REDUCE_PROD : REDUCE_SUM;
    for (int64_t line = 0; line < lines.count; line++) {
        Tally tally = empty_tally((Reduction)as.op);
        for (int64_t i = 0; i < lines.length; i++) {
            int64_t at = line_begin(&lines, line) + (expr->reverse ? lines.length - 1 - i : i) * lines.step;
            if (expr->exclusive) result->at[at] = result_of(&tally, &as, v->scalar);
            if (ok[at]) take(&tally, &as, v->scalar, v->at[at], 0);
            if (!expr->exclusive) result->at[at] = result_of(&tally, &as, v->scalar);
        }
    }
    value_add_masks(result, v);
    return result;
}

/* ---- folds ---- */

static Number times(Type t, Number a, Number b) { return number_binary(OP_MUL, t, a, b); }
static Number plus(Type t, Number a, Number b) { return number_binary(OP_ADD, t, a, b); }

/* left = f(left, right) */
static void combine(FoldKind kind, const Type *t, Number *left, const Number *right) {
    Number l[MAX_PARTS];
    memcpy(l, left, sizeof l);
    switch (kind) {
    case FOLD_SUM: left[0] = plus(t[0], l[0], right[0]); break;
    case FOLD_PRODUCT: left[0] = times(t[0], l[0], right[0]); break;
    case FOLD_LARGEST: left[0] = number_binary(OP_MAX, t[0], l[0], right[0]); break;
    case FOLD_LEAST: left[0] = number_binary(OP_MIN, t[0], l[0], right[0]); break;
    case FOLD_XOR: left[0] = number_binary(OP_XOR, t[0], l[0], right[0]); break;
    case FOLD_OR: left[0] = number_binary(OP_OR, t[0], l[0], right[0]); break;
    case FOLD_FIRST: break;
    case FOLD_LAST: left[0] = right[0]; break;
    case FOLD_DIVISOR: {
        uint64_t u = l[0].bits, v = right[0].bits;
        bool known = l[0].off == 0 && right[0].off == 0;
        for (uint64_t rest; v; u = v, v = rest) rest = u % v;
        left[0] = known ? (Number){u, 0} : number_unknown();
        break;
    }
    case FOLD_AFFINE:
        left[0] = times(t[0], l[0], right[0]);
        left[1] = plus(t[0], times(t[0], l[1], right[0]), right[1]);
        break;
    case FOLD_BEST: {
        Number later = number_binary(OP_GE, t[0], right[0], l[0]);
        if (later.off != 0)
            left[0] = left[1] = number_unknown();
        else if (later.bits)
            memcpy(left, right, 2 * sizeof *left);
        break;
    }
    case FOLD_EDGES:
        left[0] = number_binary(OP_MIN, t[0], l[0], right[0]);
        left[1] = number_binary(OP_MAX, t[1], l[1], right[1]);
        left[2] = plus(t[2], l[2], right[2]);
        break;
    case FOLD_MATRIX:
        left[0] = times(t[0], l[0], right[0]);
        left[1] = plus(t[0], times(t[0], l[0], right[1]), times(t[0], l[1], right[2]));
        left[2] = times(t[0], l[2], right[2]);
        break;
    case FOLD_COUNT: break;
    }
}

/* The result of a line. A sum or product of floats is exact if every order gives the same. */
typedef struct Running {
    FoldKind kind;
    int parts;
    const Type *types;
    bool any, is_float;
    int64_t count;
    Number now[MAX_PARTS];
    Sum sum;
    Product product;
} Running;

static void running_take(Running *r, const Number *values) {
    r->count++;
    if (r->is_float && r->kind == FOLD_SUM) {
        sum_add(&r->sum, r->types[0], values[0]);
        /* The fold of -0 and -0 is -0; the identity element of `sum` is not used in a fold. */
        r->now[0] = sum_result(&r->sum, r->types[0], r->types[0]);
        if (r->now[0].off == 0 && number_value(r->types[0], r->now[0].bits) == 0) r->now[0].off = SIGN;
        r->any = true;
        return;
    }
    if (r->is_float && r->kind == FOLD_PRODUCT) {
        product_times(&r->product, r->types[0], values[0]);
        r->now[0] = product_result(&r->product, r->types[0], r->types[0], r->count);
        r->any = true;
        return;
    }
    if (r->any)
        combine(r->kind, r->types, r->now, values);
    else
        memcpy(r->now, values, sizeof r->now);
    r->any = true;
}

static Running running_begin(const Expr *expr, const Type *types, Value *const *initial, int64_t line) {
    Running r = {.kind = (FoldKind)expr->op, .parts = expr->parts, .types = types, .product = {.total = 1}};
    r.is_float = type_is_float(types[0]);
    if (!expr->keep) return r;
    Number values[MAX_PARTS] = {{0, 0}};
    for (int p = 0; p < r.parts; p++) values[p] = initial[p]->at[line];
    running_take(&r, values);
    return r;
}

static void fold_line(const Expr *expr, Running *r, Value *const *v, const bool *ok, const Lines *lines, int64_t line,
                      Value **parts) {
    for (int64_t i = 0; i < lines->length; i++) {
        int64_t at = line_begin(lines, line) + (expr->reverse ? lines->length - 1 - i : i) * lines->step;
        Number values[MAX_PARTS] = {{0, 0}};
        for (int p = 0; p < r->parts; p++) {
            values[p] = v[p]->at[at];
            if (expr->scan && expr->exclusive) parts[p]->at[at] = r->now[p];
        }
        if (ok[at]) running_take(r, values);
        for (int p = 0; p < r->parts && expr->scan && !expr->exclusive; p++) parts[p]->at[at] = r->now[p];
    }
    for (int p = 0; p < r->parts && !expr->scan; p++) parts[p]->at[line] = r->now[p];
}

void evaluate_fold(Evaluator *e, const Expr *expr, Value **parts) {
    Value *v[MAX_PARTS], *initial[MAX_PARTS] = {NULL};
    Type types[MAX_PARTS];
    int axis = expr->axis[0], map[MAX_AXES] = {0};
    const Shape whole = expr->operand[0]->shape, line_shape = shape_without(whole, axis);
    for (int i = 0; i < whole.rank; i++) map[i] = i < axis || expr->scan ? i : i - 1;
    if (!expr->scan) map[axis] = -1;
    Value *all = value_make(TYPE_BOOL, 0, NULL);
    for (int p = 0; p < expr->parts; p++) {
        const Expr *from = expr->operand[p];
        types[p] = from->shape.scalar;
        v[p] = value_stretch(evaluate(e, from), &from->shape, &whole);
        if (p == 0) all = value_make(TYPE_BOOL, v[0]->rank, v[0]->extent);
        value_add_masks(all, v[p]);
        if (!expr->keep) continue;
        from = expr->operand[expr->parts + p];
        initial[p] = value_stretch(evaluate(e, from), &from->shape, &line_shape);
    }
    Lines lines = lines_of(all, axis);
    int64_t extent[MAX_AXES] = {0};
    for (int i = 0; i < whole.rank; i++)
        if (map[i] >= 0) extent[map[i]] = all->extent[i];
    for (int p = 0; p < expr->parts; p++) {
        parts[p] = value_make(types[p], whole.rank - !expr->scan, extent);
        masks_map(parts[p], all, map);
        for (int q = 0; q < expr->parts && initial[q]; q++) {
            int from_line[MAX_AXES];
            for (int i = 0; i < MAX_AXES; i++) from_line[i] = i >= axis && expr->scan ? i + 1 : i;
            masks_map(parts[p], initial[q], from_line);
        }
    }
    bool *ok = masks_flat(all, 1u << axis);
    for (int64_t line = 0; line < lines.count; line++) {
        Running running = running_begin(expr, types, initial, line);
        fold_line(expr, &running, v, ok, &lines, line, parts);
    }
}

/* ---- products ---- */

/* tf32 has 11 significant bits; numbers below 2**-136 are lost; the rounding of ties depends on the target. */
static Number to_tf32(Number x, Precision precision) {
    double value = number_value(TYPE_F32, x.bits);
    bool full = precision == PRECISION_FULL || precision == PRECISION_ORDERED;
    if (full || !isfinite(value) || value == 0) return x;
    int exponent;
    double scaled = ldexp(frexp(fabs(value), &exponent), 11);
    if (scaled == floor(scaled) && exponent > -125) return x;
    double off = precision == PRECISION_TF32 ? ldexp(1, exponent - 11) : ldexp(1, exponent - 20);
    x.off = (x.off > 0 ? x.off : 0) + fmax(off, ldexp(1, -136));
    return x;
}

static Number dot_element(Precision precision, Type x, Type y, Type to, const Number *a, const Number *b, int64_t b_step,
                          const bool *ok, int64_t k_count, Number start) {
    if (!type_is_float(x)) {
        Wide total = number_integer(to, start.bits);
        bool unknown = start.off != 0;
        for (int64_t k = 0; k < k_count; k++) {
            if (!ok[k]) continue;
            unknown = unknown || a[k].off != 0 || b[k * b_step].off != 0;
            total += number_integer(x, a[k].bits) * number_integer(y, b[k * b_step].bits);
        }
        return unknown ? number_unknown() : (Number){number_from_integer(to, total), 0};
    }
    Sum sum = {0};
    sum_add(&sum, to, start);
    for (int64_t k = 0; k < k_count; k++)
        if (ok[k]) sum_add_product(&sum, x, to_tf32(a[k], precision), to_tf32(b[k * b_step], precision));
    Number result = sum_result(&sum, to, to);
    if (result.off == 0 && number_value(to, result.bits) == 0) result.off = SIGN;
    return result;
}

/* Steps of the contraction that are valid in both operands. */
static bool *valid_steps(const Value *a, const Value *b, int64_t count) {
    bool *ok = program_allocate((size_t)count);
    memset(ok, 1, (size_t)count);
    const Value *sides[] = {a, b};
    for (int s = 0; s < 2; s++) {
        unsigned axis = s == 0 ? (unsigned)a->rank - 1 : b->rank > 1 ? (unsigned)b->rank - 2 : 0;
        for (int m = 0; m < sides[s]->mask_count; m++)
            for (int64_t k = 0; k < count && sides[s]->masks[m].axes >> axis & 1; k++)
                ok[k] = ok[k] && sides[s]->masks[m].ok[k];
    }
    return ok;
}

Value *evaluate_product(const Value *a, const Value *b, const Value *acc, const Shape *shape, Precision precision) {
    bool rows = a->rank > 1, columns = b->rank > 1; /* a side without is a vector */
    int64_t k_count = a->extent[a->rank - 1], n = columns ? b->extent[b->rank - 1] : 1,
            m = rows ? a->extent[a->rank - 2] : 1;
    int64_t extent[MAX_AXES];
    int rank = shape->rank, left[MAX_AXES] = {0, 1, 2, 3, 4}, right[MAX_AXES] = {0, 1, 2, 3, 4};
    memcpy(extent, rows ? a->extent : b->extent, sizeof extent);
    if (columns) extent[rank - 1] = n;
    left[a->rank - 1] = right[columns ? b->rank - 2 : 0] = -1;
    if (columns) right[b->rank - 1] = rank - 1;
    bool *ok = valid_steps(a, b, k_count);
    Value *result = value_make(shape->scalar, rank, extent);
    for (int64_t i = 0; i < result->count; i++) {
        int64_t batch = i / (m * n), row = i / n % m, column = i % n;
        Number start = acc ? acc->at[i] : (Number){0, 0};
        result->at[i] = dot_element(precision, a->scalar, b->scalar, shape->scalar, a->at + (rows ? (batch * m + row) * k_count : 0),
                                    b->at + (columns ? batch * k_count * n : 0) + column, n, ok, k_count, start);
    }
    masks_map(result, a, left);
    masks_map(result, b, right);
    if (acc) value_add_masks(result, acc);
    return result;
}

Value *evaluate_dot(Evaluator *e, const Expr *expr) {
    Value *a = evaluate(e, expr->operand[0]), *b = evaluate(e, expr->operand[1]), *acc = NULL;
    if (expr->count == 3) {
        const Expr *from = expr->operand[2];
        acc = value_stretch(evaluate(e, from), &from->shape, &expr->shape);
    }
    return evaluate_product(a, b, acc, &expr->shape, (Precision)expr->op);
}
