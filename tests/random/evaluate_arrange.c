/* Sorts, shifts, counts, and where a value is valid. */
#include <math.h>
#include <string.h>

#include "evaluate.h"

/* Does the later element of the line come before the earlier one? NaNs are last; -0 is below +0. */
static bool overtakes(Type type, Number later, Number earlier, bool descending) {
    if (!type_is_float(type)) {
        Wide x = number_integer(type, later.bits), y = number_integer(type, earlier.bits);
        return descending ? x > y : x < y;
    }
    double x = number_value(type, later.bits), y = number_value(type, earlier.bits);
    if (isnan(x) || isnan(y)) return !isnan(x);
    if (x == y) return x == 0 && signbit(x) != signbit(y) && !signbit(x) == descending;
    return descending ? x > y : x < y;
}

/* The lanes of a line from its first lane on: the valid ones in order, then the others; *known: is the order? */
static int64_t sort_line(const Value *v, const bool *ok, const Lines *lines, int64_t begin, bool descending, int64_t *order,
                         bool *known) {
    int64_t count = 0;
    *known = true;
    for (int64_t i = 0; i < lines->length; i++) {
        int64_t at = begin + i * lines->step, place = count;
        if (!ok[at]) continue;
        *known = *known && v->at[at].off == 0;
        while (place > 0 && overtakes(v->scalar, v->at[at], v->at[begin + order[place - 1] * lines->step], descending)) place--;
        memmove(order + place + 1, order + place, (size_t)(count - place) * sizeof *order);
        order[place] = i;
        count++;
    }
    return count;
}

/* Masks that do not depend on the axis stay; `first` is true for as many lanes of a line as were valid, which depends on the
 * axes that the others depend on. Where the valid lanes were the first ones before, all masks stay. */
static void set_masks(Value *result, const Value *v, int axis, const bool *first, bool stay) {
    Mask mask = {.axes = 1u << axis};
    for (int k = 0; k < v->mask_count; k++) {
        bool touches = v->masks[k].axes >> axis & 1;
        if (stay || !touches) value_add_mask(result, v->masks[k]);
        if (touches) mask.axes |= v->masks[k].axes;
    }
    if (stay) return;
    int64_t count = 1, index[MAX_AXES] = {0};
    for (int i = 0; i < v->rank; i++) count *= mask.extent[i] = mask.axes >> i & 1 ? result->extent[i] : 1;
    mask.ok = program_allocate((size_t)count);
    for (int64_t i = 0; i < count; i++) {
        index_of(mask.extent, v->rank, i, index);
        mask.ok[i] = first[offset_in(result->extent, v->rank, index)];
    }
    value_add_mask(result, mask);
}

void evaluate_order(Evaluator *e, const Expr *expr, Value **parts) {
    Value *v = evaluate(e, expr->operand[0]);
    int axis = expr->axis[0];
    bool descending = expr->kind == E_FIRST || expr->reverse;
    int64_t extent[MAX_AXES];
    memcpy(extent, v->extent, sizeof extent);
    extent[axis] = extent_value(expr->shape.extent[axis]);
    Value *values = value_make(v->scalar, v->rank, extent), *places = value_make(TYPE_I64, v->rank, extent);
    Lines lines = lines_of(v, axis), kept = lines_of(values, axis);
    bool *ok = masks_flat(v, 1u << axis), *first = program_allocate((size_t)values->count);
    int64_t *order = program_allocate((size_t)(lines.length + 1) * sizeof *order);
    for (int64_t line = 0; line < lines.count; line++) {
        int64_t outer = line / lines.step, inner = line % lines.step, begin = outer * lines.step * lines.length + inner;
        bool known;
        int64_t count = sort_line(v, ok, &lines, begin, descending, order, &known);
        for (int64_t i = 0; i < kept.length; i++) {
            int64_t at = outer * lines.step * kept.length + inner + i * lines.step;
            first[at] = i < count;
            values->at[at] = places->at[at] = number_unknown();
            if (i >= count || !known) continue;
            values->at[at] = v->at[begin + order[i] * lines.step];
            places->at[at] = (Number){(uint64_t)order[i], 0};
        }
    }
    set_masks(values, v, axis, first, expr->bare);
    set_masks(places, v, axis, first, expr->bare);
    parts[0] = expr->kind == E_SORT && expr->scan ? places : values;
    if (expr->kind == E_FIRST) parts[1] = places;
}

static Value *moved_value(Evaluator *e, const Expr *expr) {
    Value *v = evaluate(e, expr->operand[0]), *result = value_make(v->scalar, v->rank, v->extent);
    int axis = expr->axis[0];
    Mask mask = {.axes = 1u << axis};
    for (int i = 0; i < v->rank; i++) mask.extent[i] = i == axis ? v->extent[i] : 1;
    mask.ok = program_allocate((size_t)v->extent[axis]);
    int64_t index[MAX_AXES] = {0};
    for (int64_t i = 0; i < v->count; i++) {
        index_of(v->extent, v->rank, i, index);
        int64_t here = index[axis];
        index[axis] = here - expr->op;
        bool there = index[axis] >= 0 && index[axis] < v->extent[axis];
        mask.ok[here] = there;
        result->at[i] = there ? v->at[offset_in(v->extent, v->rank, index)] : number_unknown();
    }
    value_add_masks(result, v);
    value_add_mask(result, mask);
    return result;
}

static Value *valid_value(Evaluator *e, const Expr *expr) {
    Value *v = evaluate(e, expr->operand[0]), *result = value_make(TYPE_BOOL, v->rank, v->extent);
    int64_t index[MAX_AXES] = {0};
    for (int64_t i = 0; i < v->count; i++) {
        index_of(v->extent, v->rank, i, index);
        result->at[i] = (Number){value_valid(v, index), 0};
    }
    return result;
}

/* ---- counts ---- */

/* The elements that are not left out of a count: all axes are gone then. */
static bool *counted(const Value *v) { return masks_flat(v, (1u << v->rank) - 1); }

/* What is invalid as a whole stays so. */
static void keep_conditions(Value *result, const Value *v) {
    static const int none[] = {-1, -1, -1, -1, -1};
    masks_map(result, v, none);
}

static Value *counted_value(Evaluator *e, const Expr *expr) {
    Value *v = evaluate(e, expr->operand[0]);
    int64_t bins = extent_value(expr->shape.extent[0]);
    Value *result = value_make(TYPE_I32, 1, &bins);
    bool *ok = counted(v), known = true;
    for (int64_t i = 0; i < v->count; i++) {
        Wide bin = number_integer(v->scalar, v->at[i].bits);
        if (!ok[i]) continue;
        known = known && v->at[i].off == 0;
        if (bin >= 0 && bin < bins) result->at[bin].bits++;
    }
    for (int64_t i = 0; i < bins && !known; i++) result->at[i] = number_unknown();
    keep_conditions(result, v);
    return result;
}

/* NaN is behind all numbers. */
static bool stands_before(Type type, Number element, Number place, bool right) {
    if (!type_is_float(type)) {
        Wide x = number_integer(type, element.bits), y = number_integer(type, place.bits);
        return right ? x <= y : x < y;
    }
    double x = number_value(type, element.bits), y = number_value(type, place.bits);
    if (isnan(y)) return right || !isnan(x);
    return right ? x <= y : x < y;
}

static Value *placed_value(Evaluator *e, const Expr *expr) {
    Value *s = evaluate(e, expr->operand[0]), *v = evaluate(e, expr->operand[1]);
    Value *result = value_make(TYPE_I64, v->rank, v->extent);
    bool *ok = counted(s), known = true;
    for (int64_t k = 0; k < s->count; k++) known = known && (!ok[k] || s->at[k].off == 0);
    for (int64_t i = 0; i < v->count; i++) {
        uint64_t count = 0;
        for (int64_t k = 0; k < s->count; k++)
            count += ok[k] && stands_before(s->scalar, s->at[k], v->at[i], expr->reverse);
        result->at[i] = known && v->at[i].off <= 0 ? (Number){count, 0} : number_unknown();
    }
    keep_conditions(result, s);
    value_add_masks(result, v);
    return result;
}

Value *evaluate_arranged(Evaluator *e, const Expr *expr) {
    if (expr->kind == E_MOVED) return moved_value(e, expr);
    if (expr->kind == E_VALID) return valid_value(e, expr);
    return expr->kind == E_COUNTED ? counted_value(e, expr) : placed_value(e, expr);
}
