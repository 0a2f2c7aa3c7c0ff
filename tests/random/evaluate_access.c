/* Loads, stores and updates: the element that each lane accesses, if any. */
#include <math.h>
#include <string.h>

#include "contents.h"
#include "evaluate.h"

typedef struct Places {
    Value *shape;     /* extents and masks; its numbers are not used */
    int64_t *element; /* -1: none */
} Places;

/* Lanes of one axis of the access: their indices in the dimension; -1: out of bounds. */
typedef struct Lanes {
    int axis; /* -1: a scalar index, or one that shares the axis of another one */
    int64_t count;
    int64_t *index;
} Lanes;

static int64_t inside(Wide index, int64_t extent) { return index >= 0 && index < extent ? (int64_t)index : -1; }

static void add_lanes_mask(Value *shape, const Lanes *lanes) {
    Mask mask = {.axes = lanes->axis >= 0 ? 1u << lanes->axis : 0, .ok = program_allocate((size_t)lanes->count)};
    for (int i = 0; i < MAX_AXES; i++) mask.extent[i] = 1;
    if (lanes->axis >= 0) mask.extent[lanes->axis] = lanes->count;
    for (int64_t i = 0; i < lanes->count; i++) mask.ok[i] = lanes->index[i] >= 0;
    value_add_mask(shape, mask);
}

/* A lane whose index overflows 64 bits may count as out of bounds; if the wrapped index is in bounds, either is
 * correct. With large steps, the first index may have wrapped. */
static Lanes range_lanes(Evaluator *e, const Expr *entry, int64_t extent) {
    RangeValue range = evaluate_range(e, entry);
    Lanes lanes = {.count = range.size, .index = program_allocate((size_t)range.size * sizeof(int64_t))};
    for (int64_t i = 0; i < range.size; i++) {
        Wide index = (Wide)range.first + (Wide)range.step * i;
        bool great = range.step > INT64_C(1) << 48 || range.step < -(INT64_C(1) << 48);
        if ((index != (int64_t)index || (great && i > 0)) && inside((int64_t)(uint64_t)index, extent) >= 0)
            e->undecided = true;
        lanes.index[i] = i < range.valid ? inside(index, extent) : -1;
    }
    return lanes;
}

static Lanes tile_lanes(Evaluator *e, const Expr *entry, int64_t extent) {
    Value *value = evaluate(e, entry);
    bool *ok = masks_flat(value, 0);
    Lanes lanes = {.count = value->count, .index = program_allocate((size_t)value->count * sizeof(int64_t))};
    for (int64_t i = 0; i < value->count; i++) {
        if (ok[i] && value->at[i].off != 0) e->undecided = true;
        lanes.index[i] = ok[i] ? inside(number_integer(value->scalar, value->at[i].bits), extent) : -1;
    }
    return lanes;
}

static bool is_range(const Expr *entry) { return entry->kind >= E_RANGE && entry->kind <= E_COLON; }

static Places resolve(Evaluator *e, const Expr *access) {
    const Tensor *tensor = access->tensor;
    const Contents *contents = tensor->now;
    Lanes lanes[MAX_DIMENSIONS];
    int64_t extent[MAX_AXES] = {0};
    int rank = 0, gathered = -1;
    for (int d = 0; d < tensor->rank; d++) {
        const Expr *entry = access->operand[d];
        if (is_range(entry)) {
            lanes[d] = range_lanes(e, entry, contents->extent[d]);
            lanes[d].axis = rank;
        } else {
            lanes[d] = tile_lanes(e, entry, contents->extent[d]);
            lanes[d].axis = entry->shape.rank == 0 ? -1 : gathered >= 0 ? gathered : rank;
            if (entry->shape.rank) gathered = lanes[d].axis;
        }
        if (lanes[d].axis == rank) extent[rank++] = lanes[d].count;
    }
    Places places = {.shape = value_make(tensor->type, rank, extent)};
    for (int d = 0; d < tensor->rank; d++) add_lanes_mask(places.shape, &lanes[d]);
    places.element = program_allocate((size_t)places.shape->count * sizeof(int64_t));
    int64_t index[MAX_AXES] = {0};
    for (int64_t i = 0; i < places.shape->count; i++) {
        index_of(extent, rank, i, index);
        int64_t at = 0;
        bool ok = true;
        for (int d = 0; d < tensor->rank; d++) {
            int64_t here = lanes[d].index[lanes[d].axis < 0 ? 0 : index[lanes[d].axis]];
            ok = ok && here >= 0;
            at = at * contents->extent[d] + here;
        }
        places.element[i] = ok ? at : -1;
    }
    return places;
}

/* gather(tensor, i, j, ..) and scatter. */
static Places resolve_flat(Evaluator *e, const Expr *access) {
    const Tensor *tensor = access->tensor;
    const Contents *contents = tensor->now;
    Value *indices[MAX_DIMENSIONS];
    bool *ok[MAX_DIMENSIONS];
    for (int d = 0; d < tensor->rank; d++) {
        const Expr *from = access->operand[d];
        indices[d] = value_stretch(evaluate(e, from), &from->shape, &access->shape);
        ok[d] = masks_flat(indices[d], 0);
    }
    int64_t extent[MAX_AXES];
    for (int i = 0; i < access->shape.rank; i++) extent[i] = extent_value(access->shape.extent[i]);
    Places places = {.shape = value_make(tensor->type, access->shape.rank, extent)};
    places.element = program_allocate((size_t)places.shape->count * sizeof(int64_t));
    Mask mask = {.axes = (1u << access->shape.rank) - 1, .ok = program_allocate((size_t)places.shape->count)};
    memcpy(mask.extent, places.shape->extent, sizeof mask.extent);
    for (int64_t i = 0; i < places.shape->count; i++) {
        int64_t at = 0;
        bool all = true;
        for (int d = 0; d < tensor->rank; d++) {
            Number number = indices[d]->at[i];
            if (ok[d][i] && number.off != 0) e->undecided = true;
            int64_t here = inside(number_integer(indices[d]->scalar, number.bits), contents->extent[d]);
            all = all && ok[d][i] && here >= 0;
            at = at * contents->extent[d] + here;
        }
        mask.ok[i] = all;
        places.element[i] = all ? at : -1;
    }
    value_add_mask(places.shape, mask);
    for (int d = 0; d < tensor->rank; d++) value_add_masks(places.shape, indices[d]); /* along the axes that these depend on */
    return places;
}

static Value *load(const Places *places, const Tensor *tensor) {
    const Contents *contents = tensor->now;
    for (int64_t i = 0; i < places->shape->count; i++)
        places->shape->at[i] = places->element[i] >= 0 ? contents->at[places->element[i]] : (Number){0, 0};
    return places->shape;
}

Value *evaluate_load(Evaluator *e, const Expr *expr) {
    Places places = resolve(e, expr);
    return load(&places, expr->tensor);
}

Value *evaluate_gather(Evaluator *e, const Expr *expr) {
    Places places = resolve_flat(e, expr);
    return load(&places, expr->tensor);
}

/* ---- stores ---- */

static bool same_number(Number a, Number b) { return a.bits == b.bits && a.off == 0 && b.off == 0; }

/* If several lanes store to one element, any of them may be the last. */
static void put(Evaluator *e, Contents *contents, int64_t element, Number number) {
    bool again = contents->lane[element] == e->stores;
    e->meets = e->meets || again;
    if (again && !same_number(contents->at[element], number)) number = number_unknown();
    contents->at[element] = number;
    contents->lane[element] = e->stores;
}

static void store(Evaluator *e, const Places *places, const Tensor *tensor, const Value *value, bool skip) {
    Contents *contents = tensor->now;
    bool *ok = masks_flat(value, 0);
    e->stores++;
    for (int64_t i = 0; i < places->shape->count && !e->undecided; i++) {
        if (places->element[i] < 0) continue;
        if (ok[i])
            put(e, contents, places->element[i], contents_kept(tensor, value->at[i]));
        else if (!skip)
            e->uncovered = true;
    }
}

void evaluate_store(Evaluator *e, const Expr *target, const Expr *expr, int op, bool skip) {
    Value *value = value_stretch(evaluate(e, expr), &expr->shape, &target->shape);
    Places places = resolve(e, target);
    if (op >= 0) {
        Value *old = load(&places, target->tensor), *result = value_make(old->scalar, old->rank, old->extent);
        for (int64_t i = 0; i < result->count; i++)
            result->at[i] = number_binary((Op)op, old->scalar, old->at[i], value->at[i]);
        value_add_masks(result, value);
        value = result;
    }
    store(e, &places, target->tensor, value, skip);
}

void evaluate_scatter(Evaluator *e, const Expr *target, const Expr *expr) {
    Value *value = value_stretch(evaluate(e, expr), &expr->shape, &target->shape);
    Places places = resolve_flat(e, target);
    store(e, &places, target->tensor, value, false);
}

/* ---- updates ---- */

static bool is_subnormal(Number x) {
    enum { EXPONENT = 0x7f800000, SIGN_OF_F32 = 31 };
    return !(x.bits & EXPONENT) && (x.bits & ~(UINT64_C(1) << SIGN_OF_F32));
}

/* GPUs take subnormal f32 for zeros when they add in memory. */
static Number updated(Update update, Type type, Number old, Number value) {
    Op op = update == UPDATE_ADD ? OP_ADD : update == UPDATE_MAX ? OP_MAX : OP_MIN;
    Number result = number_binary(op, type, old, value);
    bool flushed = is_subnormal(old) || is_subnormal(value) || is_subnormal(result);
    if (update == UPDATE_ADD && type == TYPE_F32 && flushed) result.off = fmax(result.off, 0) + 0x1p-124;
    return result;
}

static Number exchanged(Type type, Number old, Number expected, Number value) {
    if (old.off != 0 || expected.off != 0 || number_is_nan(type, expected.bits)) return number_unknown();
    return old.bits == expected.bits ? value : old; /* bitwise; NaN is never expected */
}

Value *evaluate_atomic(Evaluator *e, const Expr *expr, bool skip) {
    const Expr *target = expr->operand[0], *last = expr->operand[expr->count - 1], *middle = expr->operand[1];
    Value *value = value_stretch(evaluate(e, last), &last->shape, &target->shape);
    Value *expected = value_stretch(evaluate(e, middle), &middle->shape, &target->shape);
    Places places = resolve(e, target);
    bool *ok = masks_flat(value, 0), *sure = masks_flat(expected, 0);
    Contents *contents = target->tensor->now;
    Value *old = places.shape;
    e->stores++;
    for (int64_t i = 0; i < old->count && !e->undecided; i++) {
        if (places.element[i] < 0) continue;
        if (!(ok[i] && sure[i])) {
            e->uncovered = e->uncovered || !skip;
            continue;
        }
        Number *at = &contents->at[places.element[i]];
        bool again = contents->lane[places.element[i]] == e->stores;
        old->at[i] = again ? number_unknown() : *at;
        *at = expr->op == UPDATE_CAS
                  ? (again ? number_unknown() : exchanged(old->scalar, *at, expected->at[i], value->at[i]))
                  : updated((Update)expr->op, old->scalar, *at, value->at[i]);
        contents->lane[places.element[i]] = e->stores;
    }
    value_add_masks(old, value);
    value_add_masks(old, expected);
    return old;
}
