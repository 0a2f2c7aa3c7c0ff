#include "evaluate.h"

#include <string.h>

enum { MAX_WORK = 8000000 };

/* ---- values ---- */

Value *value_make(Type scalar, int rank, const int64_t *extent) {
    Value *value = NEW(Value);
    value->scalar = scalar;
    value->rank = rank;
    value->count = 1;
    for (int i = 0; i < rank; i++) {
        value->extent[i] = extent[i];
        value->count *= extent[i];
    }
    value->at = program_allocate((size_t)value->count * sizeof *value->at);
    return value;
}

static Value *make_shape(const Shape *shape) {
    int64_t extent[MAX_AXES];
    for (int i = 0; i < shape->rank; i++) extent[i] = extent_value(shape->extent[i]);
    return value_make(shape->scalar, shape->rank, extent);
}

Value *value_scalar(Type scalar, Number number) {
    Value *value = value_make(scalar, 0, NULL);
    value->at[0] = number;
    return value;
}

void index_of(const int64_t *extent, int rank, int64_t number, int64_t *index) {
    for (int i = rank - 1; i >= 0; i--) {
        index[i] = number % extent[i];
        number /= extent[i];
    }
}

int64_t offset_in(const int64_t *extent, int rank, const int64_t *index) {
    int64_t offset = 0;
    for (int i = 0; i < rank; i++) offset = offset * extent[i] + (extent[i] == 1 ? 0 : index[i]);
    return offset;
}

static int64_t mask_count(const Mask *mask, int rank) {
    int64_t count = 1;
    for (int i = 0; i < rank; i++) count *= mask->extent[i];
    return count;
}

/* Masks over the same axes are combined; one that is true everywhere is removed. */
static bool is_true(const Mask *mask, int rank) { return !memchr(mask->ok, 0, (size_t)mask_count(mask, rank)); }

/* One that is true everywhere is kept as well where there is room: what it depends on decides what a reduction behind a
 * sort skips, whatever its elements happen to be. */
void value_add_mask(Value *value, Mask mask) {
    for (int m = 0; m < value->mask_count; m++) {
        Mask *other = &value->masks[m];
        if (other->axes != mask.axes || memcmp(other->extent, mask.extent, (size_t)value->rank * sizeof(int64_t)) != 0)
            continue;
        int64_t count = mask_count(&mask, value->rank);
        bool *ok = program_allocate((size_t)count);
        for (int64_t i = 0; i < count; i++) ok[i] = other->ok[i] && mask.ok[i];
        other->ok = ok;
        return;
    }
    if (value->mask_count < MAX_MASKS) {
        value->masks[value->mask_count++] = mask;
        return;
    }
    int place = 0;
    while (place < MAX_MASKS && !is_true(&value->masks[place], value->rank)) place++;
    if (place < MAX_MASKS && !is_true(&mask, value->rank)) value->masks[place] = mask;
}

void value_add_masks(Value *value, const Value *more) {
    for (int m = 0; m < more->mask_count; m++) value_add_mask(value, more->masks[m]);
}

bool value_valid(const Value *value, const int64_t *index) {
    for (int m = 0; m < value->mask_count; m++)
        if (!value->masks[m].ok[offset_in(value->masks[m].extent, value->rank, index)]) return false;
    return true;
}

bool *masks_flat(const Value *value, unsigned touching) {
    bool *ok = program_allocate((size_t)value->count);
    memset(ok, 1, (size_t)value->count);
    int64_t index[MAX_AXES] = {0};
    for (int m = 0; m < value->mask_count; m++) {
        const Mask *mask = &value->masks[m];
        if (touching && !(mask->axes & touching)) continue;
        for (int64_t i = 0; i < value->count; i++) {
            index_of(value->extent, value->rank, i, index);
            ok[i] = ok[i] && mask->ok[offset_in(mask->extent, value->rank, index)];
        }
    }
    return ok;
}

void masks_map(Value *to, const Value *from, const int *map) {
    for (int m = 0; m < from->mask_count; m++) {
        const Mask *old = &from->masks[m];
        Mask mask = {0};
        bool gone = false;
        for (int i = 0; i < to->rank; i++) mask.extent[i] = 1;
        for (int i = 0; i < from->rank; i++) {
            bool depends = old->axes >> i & 1;
            gone = gone || (depends && map[i] < 0);
            if (map[i] >= 0) mask.extent[map[i]] = old->extent[i];
            if (depends && map[i] >= 0) mask.axes |= 1u << map[i];
        }
        if (gone) continue;
        int64_t count = mask_count(old, from->rank), there[MAX_AXES] = {0}, here[MAX_AXES] = {0};
        mask.ok = program_allocate((size_t)count);
        for (int64_t i = 0; i < count; i++) {
            index_of(old->extent, from->rank, i, there);
            for (int k = 0; k < from->rank; k++)
                if (map[k] >= 0) here[map[k]] = there[k];
            mask.ok[offset_in(mask.extent, to->rank, here)] = old->ok[i];
        }
        value_add_mask(to, mask);
    }
}

Value *value_stretch(const Value *value, const Shape *from, const Shape *to) {
    if (from->rank == to->rank && shape_same(from, to)) return (Value *)value;
    Shape shape = shape_with(*to, value->scalar);
    Value *result = make_shape(&shape);
    int64_t index[MAX_AXES] = {0};
    for (int64_t i = 0; i < result->count; i++) {
        index_of(result->extent, result->rank, i, index);
        result->at[i] = value->at[from->rank ? offset_in(value->extent, value->rank, index) : 0];
    }
    for (int m = 0; m < value->mask_count; m++) {
        Mask mask = value->masks[m];
        for (int i = from->rank; i < to->rank; i++) mask.extent[i] = 1;
        for (int i = 0; i < from->rank; i++)
            if (extent_is_one(from->extent[i]) && !extent_is_one(to->extent[i])) mask.axes &= ~(1u << i);
        value_add_mask(result, mask);
    }
    return result;
}

/* ---- unknown decisions ---- */

static Number certain(Evaluator *e, const Value *value) {
    Number number = value->at[0];
    if (number.off != 0) e->undecided = true;
    return number;
}

int64_t evaluate_i64(Evaluator *e, const Expr *expr) {
    Value *value = evaluate(e, expr);
    return (int64_t)number_integer(value->scalar, certain(e, value).bits);
}

bool evaluate_truth(Evaluator *e, const Expr *expr) {
    Value *value = evaluate(e, expr);
    int64_t index[MAX_AXES] = {0};
    if (!value_valid(value, index)) e->uncovered = true;
    return certain(e, value).bits != 0;
}

/* ---- ranges ---- */

static int64_t wrapped(Wide value) { return (int64_t)(uint64_t)value; }

RangeValue evaluate_range(Evaluator *e, const Expr *expr) {
    switch (expr->kind) {
    case E_RANGE: return *(RangeValue *)expr->name->now;
    case E_COLON: {
        int64_t size = extent_value(expr->extent);
        return (RangeValue){0, 1, size, size};
    }
    case E_SPAN: {
        int64_t size = extent_value(expr->extent);
        return (RangeValue){evaluate_i64(e, expr->operand[0]), 1, size, size};
    }
    case E_SPAN_TO: {
        int64_t lo = evaluate_i64(e, expr->operand[0]), hi = evaluate_i64(e, expr->operand[1]);
        int64_t size = extent_value(expr->extent);
        Wide left = (Wide)hi - lo;
        return (RangeValue){lo, 1, size, left < 0 ? 0 : left > size ? size : (int64_t)left};
    }
    default: break;
    }
    RangeValue range = evaluate_range(e, expr->operand[0]);
    int64_t by = evaluate_i64(e, expr->operand[1]);
    switch (expr->op) {
    case OP_ADD: range.first = wrapped((Wide)range.first + by); break;
    case OP_SUB:
        if (expr->reverse) {
            range.first = wrapped((Wide)by - range.first);
            range.step = wrapped(-(Wide)range.step);
        } else {
            range.first = wrapped((Wide)range.first - by);
        }
        break;
    default: range.first = wrapped((Wide)range.first * by); range.step = wrapped((Wide)range.step * by);
    }
    return range;
}

static Value *range_indices(const RangeValue *range) {
    Value *value = value_make(TYPE_I64, 1, &range->size);
    Mask mask = {.axes = 1, .extent = {range->size}, .ok = program_allocate((size_t)range->size)};
    for (int64_t i = 0; i < range->size; i++) {
        value->at[i].bits = (uint64_t)wrapped((Wide)range->first + (Wide)range->step * i);
        mask.ok[i] = i < range->valid;
    }
    value_add_mask(value, mask);
    return value;
}

static Value *range_field(Evaluator *e, const Expr *expr) {
    RangeValue range = evaluate_range(e, expr->operand[0]);
    if (expr->kind == E_IDX) return range_indices(&range);
    int64_t value = expr->kind == E_START  ? range.first
                    : expr->kind == E_SIZE ? range.size
                                           : wrapped((Wide)range.first + range.valid);
    return value_scalar(TYPE_I64, (Number){(uint64_t)value, 0});
}

/* ---- elementwise ---- */

/* The value of the operand; it lives as long as the expression. */
static Value *operand(Evaluator *e, const Expr *expr, int i) {
    const Expr *from = expr->operand[i];
    return value_stretch(evaluate(e, from), &from->shape, &expr->shape);
}

/* A product that is an operand of a sum, possibly negated; it is fused with the sum. */
static const Expr *fused_product(const Expr *expr, bool *negative) {
    *negative = false;
    while (expr->kind == E_UNARY && expr->op == OP_NEG && !expr->outlined) {
        *negative = !*negative;
        expr = expr->operand[0];
    }
    bool is_product = expr->kind == E_BINARY && expr->op == OP_MUL && type_is_float(expr->shape.scalar) &&
                      !type_is_f8(expr->shape.scalar); /* each operation on f8 is rounded */
    return is_product && !expr->outlined ? expr : NULL;
}

static Number flipped(Type type, Number x, bool negative) { return negative ? number_unary(OP_NEG, type, x) : x; }

static Value *fused_sum(Evaluator *e, const Expr *expr, const Expr *product, bool negative, int other) {
    Type type = expr->shape.scalar;
    const Expr *p = product->operand[0], *q = product->operand[1];
    Value *x = value_stretch(evaluate(e, p), &p->shape, &expr->shape);
    Value *y = value_stretch(evaluate(e, q), &q->shape, &expr->shape), *z = operand(e, expr, other);
    Value *result = make_shape(&expr->shape);
    bool minus = expr->op == OP_SUB, flip = negative != (minus && other == 0);
    for (int64_t i = 0; i < result->count; i++)
        result->at[i] =
            number_fma(type, flipped(type, x->at[i], flip), y->at[i], flipped(type, z->at[i], minus && other == 1));
    value_add_masks(result, x);
    value_add_masks(result, y);
    value_add_masks(result, z);
    return result;
}

static Value *binary(Evaluator *e, const Expr *expr) {
    Type type = expr->operand[0]->shape.scalar;
    bool negative;
    if ((expr->op == OP_ADD || expr->op == OP_SUB) && expr->kind == E_BINARY && type_is_float(type))
        for (int i = 0; i < 2; i++) {
            const Expr *product = fused_product(expr->operand[i], &negative);
            if (product) return fused_sum(e, expr, product, negative, 1 - i);
        }
    Value *x = operand(e, expr, 0), *y = operand(e, expr, 1), *result = make_shape(&expr->shape);
    for (int64_t i = 0; i < result->count; i++) result->at[i] = number_binary((Op)expr->op, type, x->at[i], y->at[i]);
    value_add_masks(result, x);
    value_add_masks(result, y);
    return result;
}

static Number choose(Number condition, Number yes, Number no) {
    if (condition.off != 0) return yes.bits == no.bits && yes.off == 0 && no.off == 0 ? yes : number_unknown();
    return condition.bits ? yes : no;
}

static Value *elementwise(Evaluator *e, const Expr *expr) {
    Value *v[3], *result = make_shape(&expr->shape);
    for (int i = 0; i < expr->count; i++) {
        v[i] = operand(e, expr, i);
        value_add_masks(result, v[i]);
    }
    Type from = expr->operand[0]->shape.scalar, to = expr->shape.scalar;
    for (int64_t i = 0; i < result->count; i++) {
        Number x = v[0]->at[i], *at = &result->at[i];
        switch (expr->kind) {
        case E_WHERE: *at = choose(x, v[1]->at[i], v[2]->at[i]); break;
        case E_CLAMP: *at = number_binary(OP_MIN, to, number_binary(OP_MAX, to, x, v[1]->at[i]), v[2]->at[i]); break;
        case E_CONVERT: *at = number_convert(to, from, x); break;
        case E_BITCAST: *at = number_bitcast(to, from, x); break;
        case E_APPROXIMATE: *at = number_unknown(); break;
        case E_RAND:
            *at = x.off != 0 || v[1]->at[i].off != 0
                      ? number_unknown()
                      : number_random((int64_t)number_integer(from, x.bits),
                                      (int64_t)number_integer(expr->operand[1]->shape.scalar, v[1]->at[i].bits));
            break;
        default:
            *at = expr->op == OP_FMA ? number_fma(to, x, v[1]->at[i], v[2]->at[i])
                  : expr->count == 2 ? number_binary((Op)expr->op, from, x, v[1]->at[i])
                                     : number_unary((Op)expr->op, from, x);
        }
    }
    return result;
}

/* Evaluated for each element, with scalars. */
static Number call_function(Evaluator *e, const Function *function, const Value *const *arguments, int64_t at) {
    for (int k = 0; k < function->count; k++)
        function->names[k]->now = value_scalar(arguments[k]->scalar, arguments[k]->at[at]);
    if (function->iterations) {
        function->variable->now = function->names[0]->now;
        for (int i = 0; i < function->iterations; i++) {
            Number go = evaluate(e, function->condition)->at[0];
            if (go.off != 0) return number_unknown();
            if (!go.bits) break;
            function->variable->now = evaluate(e, function->body);
        }
        return ((Value *)function->variable->now)->at[0];
    }
    if (!function->condition) return evaluate(e, function->body)->at[0];
    Number truth = evaluate(e, function->condition)->at[0];
    return choose(truth, evaluate(e, function->first)->at[0], evaluate(e, function->body)->at[0]);
}

static Value *lifted(Evaluator *e, const Expr *expr) {
    const Value *arguments[4];
    Value *result = make_shape(&expr->shape);
    for (int i = 0; i < expr->count; i++) {
        arguments[i] = operand(e, expr, i);
        value_add_masks(result, arguments[i]);
    }
    for (int64_t i = 0; i < result->count; i++) result->at[i] = call_function(e, expr->function, arguments, i);
    return result;
}

/* ---- validity ---- */

static Value *keep(Evaluator *e, const Expr *expr) {
    Value *v = operand(e, expr, 0), *c = operand(e, expr, 1), *result = make_shape(&expr->shape);
    memcpy(result->at, v->at, (size_t)v->count * sizeof *v->at);
    value_add_masks(result, v);
    value_add_masks(result, c);
    /* Validity does not depend on the axes that the condition is broadcast along. */
    const Shape *from = &expr->operand[1]->shape;
    Mask mask = {.ok = program_allocate((size_t)result->count)};
    for (int i = 0; i < result->rank; i++) {
        bool stretched = extent_is_one(from->extent[i]) && !extent_is_one(expr->shape.extent[i]);
        mask.extent[i] = stretched ? 1 : result->extent[i];
        if (!stretched) mask.axes |= 1u << i;
    }
    bool *known = masks_flat(c, 0);
    int64_t index[MAX_AXES] = {0};
    for (int64_t i = 0; i < result->count; i++) {
        index_of(result->extent, result->rank, i, index);
        if (known[i] && c->at[i].off != 0) e->undecided = true;
        mask.ok[offset_in(mask.extent, result->rank, index)] = known[i] && c->at[i].bits;
    }
    value_add_mask(result, mask);
    return result;
}

static Value *fill(Evaluator *e, const Expr *expr) {
    Value *v = operand(e, expr, 0), *f = operand(e, expr, 1), *result = make_shape(&expr->shape);
    bool *ok = masks_flat(v, 0), *ours = masks_flat(f, 0);
    bool all = true;
    for (int64_t i = 0; i < result->count; i++) {
        result->at[i] = ok[i] ? v->at[i] : f->at[i];
        ours[i] = ours[i] || ok[i];
        all = all && ours[i];
    }
    Mask mask = {.axes = (1u << result->rank) - 1, .ok = ours};
    memcpy(mask.extent, result->extent, sizeof mask.extent);
    if (!all) value_add_mask(result, mask);
    return result;
}

/* ---- shapes ---- */

static Value *iota(const Expr *expr) {
    Value *result = make_shape(&expr->shape);
    for (int64_t i = 0; i < result->count; i++) result->at[i].bits = (uint64_t)i;
    return result;
}

static Value *reshaped(Evaluator *e, const Expr *expr) {
    const Shape *from = &expr->operand[0]->shape, *to = &expr->shape;
    Value *v = evaluate(e, expr->operand[0]), *result = make_shape(to);
    memcpy(result->at, v->at, (size_t)v->count * sizeof *v->at);
    int map[MAX_AXES] = {-1, -1, -1, -1, -1}, front = 0, back = 0;
    for (; front < from->rank && front < to->rank && extent_same(from->extent[front], to->extent[front]); front++)
        map[front] = front;
    for (; back < from->rank - front && back < to->rank - front &&
           extent_same(from->extent[from->rank - 1 - back], to->extent[to->rank - 1 - back]);
         back++)
        map[from->rank - 1 - back] = to->rank - 1 - back;
    masks_map(result, v, map);
    return result;
}

/* Result axis i is operand axis axis[i]; for E_AXES, axis[i] tells whether it is new. */
static Value *moved(Evaluator *e, const Expr *expr) {
    Value *v = evaluate(e, expr->operand[0]), *result = make_shape(&expr->shape);
    int map[MAX_AXES] = {0}, next = 0;
    for (int i = 0; i < expr->shape.rank; i++) {
        if (expr->kind == E_PERMUTE)
            map[expr->axis[i]] = i;
        else if (!expr->axis[i])
            map[next++] = i;
    }
    int64_t here[MAX_AXES] = {0}, there[MAX_AXES] = {0};
    for (int64_t i = 0; i < result->count; i++) {
        index_of(result->extent, result->rank, i, here);
        for (int k = 0; k < v->rank; k++) there[k] = here[map[k]];
        result->at[i] = v->at[offset_in(v->extent, v->rank, there)];
    }
    masks_map(result, v, map);
    return result;
}

static Value *joined(Evaluator *e, const Expr *expr) {
    Value *result = make_shape(&expr->shape), *sides[2];
    static const int map[] = {0, 1, 2, 3, 4};
    Shape half = expr->shape;
    half.rank--;
    for (int s = 0; s < 2; s++) {
        sides[s] = value_stretch(evaluate(e, expr->operand[s]), &expr->operand[s]->shape, &half);
        for (int64_t i = 0; i < sides[s]->count; i++) result->at[2 * i + s] = sides[s]->at[i];
        masks_map(result, sides[s], map);
    }
    return result;
}

static void split(Evaluator *e, const Expr *expr, Value **parts) {
    Value *v = evaluate(e, expr->operand[0]);
    static const int map[] = {0, 1, 2, 3, 4};
    for (int s = 0; s < 2; s++) {
        parts[s] = make_shape(&expr->part[s]);
        for (int64_t i = 0; i < parts[s]->count; i++) parts[s]->at[i] = v->at[2 * i + s];
        masks_map(parts[s], v, map);
    }
}

static Value *chained(Evaluator *e, const Expr *expr) {
    Value *result = make_shape(&expr->shape);
    int axis = expr->axis[0];
    int64_t begin = 0, index[MAX_AXES] = {0};
    int map[MAX_AXES] = {0, 1, 2, 3, 4};
    map[axis] = -1; /* operands are valid along it: what is known of that is about other extents */
    for (int k = 0; k < expr->count; k++) {
        Value *v = evaluate(e, expr->operand[k]);
        for (int64_t i = 0; i < v->count; i++) {
            index_of(v->extent, v->rank, i, index);
            index[axis] += begin;
            result->at[offset_in(result->extent, result->rank, index)] = v->at[i];
        }
        begin += v->extent[axis];
        masks_map(result, v, map);
    }
    return result;
}

/* ---- all ---- */

static Value *full(Evaluator *e, const Expr *expr) {
    Value *result = make_shape(&expr->shape);
    if (expr->kind == E_ZEROS) return result;
    return value_stretch(evaluate(e, expr->operand[0]), &expr->operand[0]->shape, &expr->shape);
}

/* Of literals; of && and || the left operand is enough if it decides. */
static bool is_constant(Evaluator *e, const Expr *expr) {
    bool joined = expr->kind == E_BINARY && (expr->op == OP_BOTH || expr->op == OP_EITHER);
    if (joined && is_constant(e, expr->operand[0]) &&
        evaluate_truth(e, expr->operand[0]) == (expr->op == OP_EITHER))
        return true;
    bool constant = expr->kind == E_LITERAL || expr->kind == E_BINARY || expr->kind == E_UNARY;
    for (int i = 0; i < MAX_OPERANDS && expr->operand[i] && constant; i++) constant = is_constant(e, expr->operand[i]);
    return constant;
}

/* Valid where both sides are, whichever is selected. A constant condition selects text: the other side is not
 * compiled. */
static Value *chosen(Evaluator *e, const Expr *expr) {
    bool yes = evaluate_truth(e, expr->operand[0]);
    if (is_constant(e, expr->operand[0])) return evaluate(e, expr->operand[yes ? 1 : 2]);
    const Value *sides[2] = {evaluate(e, expr->operand[1]), evaluate(e, expr->operand[2])};
    Value *result = make_shape(&expr->shape);
    memcpy(result->at, sides[yes ? 0 : 1]->at, (size_t)result->count * sizeof *result->at);
    value_add_masks(result, sides[0]);
    value_add_masks(result, sides[1]);
    return result;
}

static Value *first_part(Evaluator *e, const Expr *expr) {
    Value *parts[MAX_PARTS];
    evaluate_parts(e, expr, parts);
    return parts[0];
}

Value *evaluate(Evaluator *e, const Expr *expr) {
    e->work += 1 + shape_lanes(&expr->shape);
    if (e->work > MAX_WORK) e->undecided = true;
    if (e->undecided) return make_shape(&expr->shape);
    switch (expr->kind) {
    case E_LITERAL: return value_scalar(expr->shape.scalar, (Number){expr->bits, 0});
    case E_NAME: return expr->name->now;
    case E_EXTENT: return value_scalar(TYPE_I64, (Number){(uint64_t)extent_value(expr->extent), 0});
    case E_BINARY: return binary(e, expr);
    case E_UNARY:
    case E_CALL:
    case E_APPROXIMATE:
    case E_WHERE:
    case E_CLAMP:
    case E_CONVERT:
    case E_BITCAST:
    case E_RAND: return elementwise(e, expr);
    case E_KEEP: return keep(e, expr);
    case E_ELSE: return fill(e, expr);
    case E_LOAD: return evaluate_load(e, expr);
    case E_GATHER: return evaluate_gather(e, expr);
    case E_ATOMIC: return evaluate_atomic(e, expr, expr->keep);
    case E_FULL:
    case E_ZEROS: return full(e, expr);
    case E_IOTA: return iota(expr);
    case E_RESHAPE: return reshaped(e, expr);
    case E_PERMUTE:
    case E_AXES: return moved(e, expr);
    case E_JOIN: return joined(e, expr);
    case E_CAT: return chained(e, expr);
    case E_REDUCE: return evaluate_reduce(e, expr);
    case E_RUNNING: return evaluate_running(e, expr);
    case E_DOT: return evaluate_dot(e, expr);
    case E_SCALED:
    case E_NORMAL:
    case E_DRAWN:
    case E_SHUFFLED:
    case E_LDEXP:
    case E_PACK:
    case E_UNPACK: return evaluate_packed(e, expr);
    case E_IF: return chosen(e, expr);
    case E_FUNCTION: return lifted(e, expr);
    case E_STRETCH: return value_stretch(evaluate(e, expr->operand[0]), &expr->operand[0]->shape, &expr->shape);
    case E_MOVED:
    case E_VALID:
    case E_COUNTED:
    case E_PLACED: return evaluate_arranged(e, expr);
    case E_SORT:
    case E_FIRST:
    case E_SPLIT:
    case E_FREXP:
    case E_FOLD: return first_part(e, expr);
    default: return expr->kind >= E_START ? range_field(e, expr) : make_shape(&expr->shape); /* an index entry: a range */
    }
}

void evaluate_parts(Evaluator *e, const Expr *expr, Value **parts) {
    if (e->undecided) {
        for (int i = 0; i < MAX_PARTS; i++) parts[i] = make_shape(i < expr->parts ? &expr->part[i] : &expr->shape);
        return;
    }
    if (expr->kind == E_SPLIT)
        split(e, expr, parts);
    else if (expr->kind == E_SORT || expr->kind == E_FIRST)
        evaluate_order(e, expr, parts);
    else if (expr->kind == E_FREXP)
        evaluate_frexp(e, expr, parts);
    else if (expr->kind == E_FOLD)
        evaluate_fold(e, expr, parts);
    else
        parts[0] = evaluate(e, expr);
}
