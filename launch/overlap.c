/* Two views share a byte where
 *     base_a + sum stride_a[i] * x[i] + p  =  base_b + sum stride_b[j] * y[j] + q
 * has a solution within the extents and 0 <= p, q < size of an element. Replacing a variable by limit - variable where
 * its coefficient is negative makes all coefficients positive, and the question is: does
 *     sum c[k] * z[k] = target,  0 <= z[k] <= limit[k]
 * have a solution? It is decided by a depth-first search over the coefficients, largest first. The range of the
 * remaining terms bounds each variable to a few values, and their gcd leaves every n-th of those. */
#include "launch/overlap.h"

#include <stdlib.h>

enum { MAX_TERMS = 2 * TILE_MAX_RANK + 2, SEARCH_LIMIT = 100000 };

typedef unsigned __int128 wide;

typedef struct Term {
    uint64_t coefficient, limit;
} Term;

typedef struct Equation {
    Term terms[MAX_TERMS];
    unsigned count;
    wide reach[MAX_TERMS + 1];       /* greatest sum of this and the following terms */
    uint64_t divisor[MAX_TERMS + 1]; /* gcd of this and the following coefficients; 0 past the end */
    unsigned steps;
} Equation;

static uint64_t common_divisor(uint64_t a, uint64_t b) {
    while (b) {
        uint64_t remainder = a % b;
        a = b;
        b = remainder;
    }
    return a;
}

static void add_term(Equation *equation, uint64_t coefficient, uint64_t limit) {
    if (coefficient && limit) equation->terms[equation->count++] = (Term){coefficient, limit};
}

static int larger_first(const void *a, const void *b) {
    const Term *x = a, *y = b;
    return (x->coefficient < y->coefficient) - (x->coefficient > y->coefficient);
}

static void prepare(Equation *equation) {
    qsort(equation->terms, equation->count, sizeof(Term), larger_first);
    unsigned kept = 0; /* merge terms with equal coefficients */
    for (unsigned i = 0; i < equation->count; i++) {
        if (kept && equation->terms[kept - 1].coefficient == equation->terms[i].coefficient)
            equation->terms[kept - 1].limit += equation->terms[i].limit;
        else
            equation->terms[kept++] = equation->terms[i];
    }
    equation->count = kept;
    equation->reach[kept] = 0;
    equation->divisor[kept] = 0;
    for (unsigned i = kept; i-- > 0;) {
        const Term *term = &equation->terms[i];
        equation->reach[i] = equation->reach[i + 1] + (wide)term->coefficient * term->limit;
        equation->divisor[i] = common_divisor(term->coefficient, equation->divisor[i + 1]);
    }
}

/* The least z >= from with z * coefficient = target modulo divisor; false if there is none below from + divisor. */
static bool first_fitting(uint64_t coefficient, wide target, uint64_t divisor, uint64_t from, uint64_t *z,
                          Equation *equation) {
    uint64_t wanted = (uint64_t)(target % divisor), step = coefficient % divisor;
    uint64_t value = (uint64_t)((wide)step * (from % divisor) % divisor);
    uint64_t period = divisor / common_divisor(divisor, step);
    for (uint64_t i = 0; i < period; i++) {
        if (value == wanted) return *z = from + i, true;
        if (++equation->steps > SEARCH_LIMIT) return false;
        value = (uint64_t)(((wide)value + step) % divisor);
    }
    return false;
}

static bool search(Equation *equation, unsigned at, wide target) {
    if (target == 0) return true;
    if (at == equation->count || target > equation->reach[at] || target % equation->divisor[at]) return false;
    if (++equation->steps > SEARCH_LIMIT) return false;
    const Term *term = &equation->terms[at];
    wide rest = equation->reach[at + 1];
    wide most = target / term->coefficient;
    if (most > term->limit) most = term->limit;
    uint64_t least = target > rest ? (uint64_t)((target - rest + term->coefficient - 1) / term->coefficient) : 0;
    uint64_t divisor = equation->divisor[at + 1], stride = 1, z = least;
    if (divisor) {
        if (!first_fitting(term->coefficient, target, divisor, least, &z, equation)) return false;
        stride = divisor / common_divisor(divisor, term->coefficient % divisor);
    }
    for (wide value = z; value <= most; value += stride) {
        if (search(equation, at + 1, target - value * term->coefficient)) return true;
        if (equation->steps > SEARCH_LIMIT) return false;
    }
    return false;
}

static TileOverlap solve(Equation *equation, wide target) {
    prepare(equation);
    equation->steps = 0;
    if (search(equation, 0, target)) return TILE_OVERLAP_SHARED;
    return equation->steps > SEARCH_LIMIT ? TILE_OVERLAP_UNDECIDED : TILE_OVERLAP_NONE;
}

static uint64_t magnitude(int64_t stride) { return stride < 0 ? 0 - (uint64_t)stride : (uint64_t)stride; }

static void add_view(Equation *equation, const TileView *view) {
    for (int i = 0; i < view->rank; i++) add_term(equation, magnitude(view->stride[i]), (uint64_t)view->extent[i] - 1);
}

/* The granularity in bytes: strides, distances and sizes of elements are multiples of it. */
static uint64_t common_step(const TileView *view, uint64_t step) {
    step = common_divisor(tile_host_type_bytes(view->type), step);
    for (int i = 0; i < view->rank; i++)
        if (view->extent[i] > 1) step = common_divisor(magnitude(view->stride[i]), step);
    return step;
}

TileOverlap tile_views_overlap(const TileView *a, const TileView *b) {
    if (a->low == a->high || b->low == b->high) return TILE_OVERLAP_NONE;
    if (a->low >= b->high || b->low >= a->high) return TILE_OVERLAP_NONE;
    /* From a's lowest address upwards and from b's highest downwards: the terms must sum up to the distance. */
    uint64_t step = common_step(a, common_step(b, 0));
    wide distance = (wide)b->high - a->low;
    step = common_divisor((uint64_t)distance, step);
    Equation equation = {.count = 0};
    add_view(&equation, a);
    add_view(&equation, b);
    add_term(&equation, step, (tile_host_type_bytes(a->type) + tile_host_type_bytes(b->type)) / step - 2);
    return solve(&equation, distance - step);
}

/* Does each stride exceed the range of the smaller ones? Then no two elements overlap. */
static bool nested(const TileView *view) {
    wide reach = tile_host_type_bytes(view->type);
    int axis = view->rank;
    while (axis > 0) { /* usually the strides increase from the last dimension to the first */
        uint64_t stride = magnitude(view->stride[axis - 1]), limit = (uint64_t)view->extent[axis - 1] - 1;
        if (limit && stride < reach) break;
        reach += (wide)stride * limit;
        axis--;
    }
    if (axis == 0) return true;
    Equation strides = {.count = 0};
    for (int i = 0; i < view->rank; i++)
        if (view->extent[i] > 1 && view->stride[i] == 0) return false;
    add_view(&strides, view);
    qsort(strides.terms, strides.count, sizeof(Term), larger_first);
    reach = tile_host_type_bytes(view->type);
    for (unsigned i = strides.count; i-- > 0;) {
        if (strides.terms[i].coefficient < reach) return false;
        reach += (wide)strides.terms[i].coefficient * strides.terms[i].limit;
    }
    return true;
}

/* Searches two overlapping elements that agree in the dimensions before `first` and differ in `first` by 1 + z. The
 * differences in the other dimensions, -limit .. limit, and between their bytes are shifted to begin at 0. */
static TileOverlap differ_from(const TileView *view, int first) {
    Equation equation = {.count = 0};
    uint64_t size = tile_host_type_bytes(view->type), step = common_step(view, 0);
    uint64_t stride = magnitude(view->stride[first]);
    if (view->extent[first] < 2) return TILE_OVERLAP_NONE;
    wide target = size - step;
    add_term(&equation, step, 2 * (size / step - 1));
    add_term(&equation, stride, (uint64_t)view->extent[first] - 2);
    for (int i = first + 1; i < view->rank; i++) {
        uint64_t limit = (uint64_t)view->extent[i] - 1;
        add_term(&equation, magnitude(view->stride[i]), 2 * limit);
        target += (wide)magnitude(view->stride[i]) * limit;
    }
    return stride <= target ? solve(&equation, target - stride) : TILE_OVERLAP_NONE;
}

TileOverlap tile_view_overlaps_itself(const TileView *view) {
    if (view->low == view->high || nested(view)) return TILE_OVERLAP_NONE;
    TileOverlap result = TILE_OVERLAP_NONE;
    for (int first = 0; first < view->rank && result != TILE_OVERLAP_SHARED; first++) {
        TileOverlap found = differ_from(view, first);
        if (found != TILE_OVERLAP_NONE) result = found;
    }
    return result;
}
