/* Packed numbers, products with scales, drawn numbers, and the parts of floats. */
#include <math.h>

#include "contents.h"
#include "evaluate.h"

/* ---- packed numbers ---- */

/* Bytes hold pairs along the last axis, the lower half first; the others stay. */
static Value *packing_value(Evaluator *e, const Expr *expr) {
    Value *v = evaluate(e, expr->operand[0]);
    bool packs = expr->kind == E_PACK;
    int64_t extent[MAX_AXES];
    for (int i = 0; i < v->rank; i++) extent[i] = extent_value(expr->shape.extent[i]);
    Value *result = value_make(expr->shape.scalar, v->rank, extent);
    for (int64_t i = 0; i < result->count; i++) {
        Number *at = &result->at[i];
        if (packs) {
            Number low = v->at[2 * i], high = v->at[2 * i + 1];
            bool known = low.off == 0 && high.off == 0;
            unsigned code = known ? packing_code((Packing)expr->op, v->scalar, low.bits) : 0;
            if (known) code |= packing_code((Packing)expr->op, v->scalar, high.bits) << 4;
            *at = known ? (Number){code, 0} : number_unknown();
        } else {
            Number byte = v->at[i / 2];
            unsigned code = (unsigned)(i % 2 ? byte.bits >> 4 : byte.bits & 15);
            *at = byte.off == 0 ? (Number){packing_number((Packing)expr->op, code), 0} : number_unknown();
        }
    }
    int map[MAX_AXES] = {0, 1, 2, 3, 4};
    map[v->rank - 1] = -1;
    masks_map(result, v, map);
    return result;
}

/* ---- drawn numbers ---- */

static Number normal(int64_t seed, int64_t index) {
    double u = number_value(TYPE_F32, number_random(seed, index).bits);
    Number x = number_unary(OP_ERFINV, TYPE_F32, (Number){number_from(TYPE_F32, 2 * u - 1 + 0x1p-24), 0});
    double value = number_value(TYPE_F32, x.bits) * sqrt(2);
    return number_off(TYPE_F32, value, 2 * fmax(x.off, 0) + 2 * number_ulp(TYPE_F32, value));
}

static Value *drawn_value(Evaluator *e, const Expr *expr) {
    Value *v[4] = {NULL};
    int64_t extent[MAX_AXES];
    for (int i = 0; i < expr->shape.rank; i++) extent[i] = extent_value(expr->shape.extent[i]);
    Value *result = value_make(expr->shape.scalar, expr->shape.rank, extent);
    for (int i = 0; i < expr->count; i++) {
        const Expr *from = expr->operand[i];
        v[i] = value_stretch(evaluate(e, from), &from->shape, &expr->shape);
        value_add_masks(result, v[i]);
    }
    for (int64_t i = 0; i < result->count; i++) {
        Number *at = &result->at[i];
        if (v[0]->at[i].off != 0 || v[1]->at[i].off != 0) {
            *at = number_unknown();
            continue;
        }
        int64_t seed = (int64_t)number_integer(v[0]->scalar, v[0]->at[i].bits);
        int64_t index = (int64_t)number_integer(v[1]->scalar, v[1]->at[i].bits);
        if (expr->kind == E_NORMAL) {
            *at = normal(seed, index);
            continue;
        }
        Type type = result->scalar;
        Wide low = number_integer(type, v[2]->at[i].bits), high = number_integer(type, v[3]->at[i].bits);
        *at = (Number){number_from_integer(type, low + ((Wide)number_word(seed, index) * (high - low) >> 32)), 0};
    }
    return result;
}

/* The order in which the words sort; equal ones keep theirs. */
static Value *shuffled_value(Evaluator *e, const Expr *expr) {
    int64_t seed = evaluate_i64(e, expr->operand[0]), first = evaluate_i64(e, expr->operand[1]);
    int64_t count = extent_value(expr->shape.extent[0]);
    Value *result = value_make(TYPE_I64, 1, &count);
    for (int64_t i = 0; i < count; i++) {
        uint32_t word = number_word(seed, (int64_t)((uint64_t)first + (uint64_t)i));
        int64_t place = i;
        for (; place > 0; place--) {
            uint64_t before = result->at[place - 1].bits;
            if (number_word(seed, (int64_t)((uint64_t)first + before)) <= word) break;
            result->at[place] = result->at[place - 1];
        }
        result->at[place] = (Number){(uint64_t)i, 0};
    }
    return result;
}

/* ---- the parts of floats ---- */

static Value *ldexp_value(Evaluator *e, const Expr *expr) {
    Value *v = evaluate(e, expr->operand[0]), *n = evaluate(e, expr->operand[1]), *result = value_make(v->scalar, v->rank, v->extent);
    for (int64_t i = 0; i < result->count; i++) {
        Wide by = number_integer(n->scalar, n->at[i].bits);
        int exponent = by > 5000 ? 5000 : by < -5000 ? -5000 : (int)by;
        bool known = v->at[i].off <= 0 && n->at[i].off == 0;
        double value = ldexp(number_value(v->scalar, v->at[i].bits), exponent);
        result->at[i] = known ? (Number){number_from(v->scalar, value), v->at[i].off} : number_unknown();
    }
    value_add_masks(result, v);
    value_add_masks(result, n);
    return result;
}

void evaluate_frexp(Evaluator *e, const Expr *expr, Value **parts) {
    Value *v = evaluate(e, expr->operand[0]);
    parts[0] = value_make(v->scalar, v->rank, v->extent);
    parts[1] = value_make(TYPE_I32, v->rank, v->extent);
    for (int64_t i = 0; i < v->count; i++) {
        double value = number_value(v->scalar, v->at[i].bits);
        int exponent = 0;
        bool finite = isfinite(value) && value != 0, known = v->at[i].off == 0;
        double fraction = finite ? frexp(value, &exponent) : value;
        parts[0]->at[i] = known ? (Number){finite ? number_from(v->scalar, fraction) : v->at[i].bits, 0} : number_unknown();
        parts[1]->at[i] = known ? (Number){number_from_integer(TYPE_I32, exponent), 0} : number_unknown();
    }
    value_add_masks(parts[0], v);
    value_add_masks(parts[1], v);
}

/* ---- products with scales ---- */

static Number scale_of(const Value *scales, Number number) {
    if (scales->scalar != TYPE_U8) return number_convert(TYPE_F32, scales->scalar, number);
    if (number.off != 0) return number_unknown();
    return (Number){packing_number(PACKING_E8, (unsigned)number.bits), 0};
}

/* The operand times its scales in f32, rounded to the type; each scale belongs to neighbours along the axis. */
static Value *apply_scales(Evaluator *e, const Expr *operand, const Expr *scales, int axis, Type to) {
    Value *v = evaluate(e, operand), *s = scales ? evaluate(e, scales) : NULL;
    Value *result = value_make(to, v->rank, v->extent);
    int64_t index[MAX_AXES] = {0};
    for (int64_t i = 0; i < v->count; i++) {
        Number x = number_convert(s ? TYPE_F32 : to, v->scalar, v->at[i]);
        if (s) {
            index_of(v->extent, v->rank, i, index);
            index[axis] /= v->extent[axis] / s->extent[axis];
            x = number_binary(OP_MUL, TYPE_F32, x, scale_of(s, s->at[offset_in(s->extent, s->rank, index)]));
            x = number_convert(to, TYPE_F32, x);
        }
        result->at[i] = x;
    }
    value_add_masks(result, v);
    return result;
}

static Value *scaled_value(Evaluator *e, const Expr *expr) {
    int next = 2, rank = expr->shape.rank;
    const Expr *sums = expr->keep ? expr->operand[next++] : NULL;
    const Expr *left = expr->scan ? expr->operand[next++] : NULL, *right = expr->exclusive ? expr->operand[next] : NULL;
    Value *a = apply_scales(e, expr->operand[0], left, rank - 1, expr->to);
    Value *b = apply_scales(e, expr->operand[1], right, rank - 2, expr->to);
    Value *acc = sums ? value_stretch(evaluate(e, sums), &sums->shape, &expr->shape) : NULL;
    return evaluate_product(a, b, acc, &expr->shape, PRECISION_FULL);
}

Value *evaluate_packed(Evaluator *e, const Expr *expr) {
    if (expr->kind == E_SCALED) return scaled_value(e, expr);
    if (expr->kind == E_SHUFFLED) return shuffled_value(e, expr);
    if (expr->kind == E_LDEXP) return ldexp_value(e, expr);
    return expr->kind == E_PACK || expr->kind == E_UNPACK ? packing_value(e, expr) : drawn_value(e, expr);
}
