#include "lang/layout/linear.h"

#include <string.h>

TileLinear tile_linear_zero(unsigned inputs, unsigned outputs) {
    return (TileLinear){.inputs = (uint8_t)inputs, .outputs = (uint8_t)outputs};
}

TileLinear tile_linear_identity(unsigned bits) {
    TileLinear map = tile_linear_zero(bits, bits);
    for (unsigned i = 0; i < bits; i++) map.column[i] = UINT32_C(1) << i;
    return map;
}

uint32_t tile_linear_apply(const TileLinear *map, uint32_t input) {
    uint32_t output = 0;
    for (unsigned i = 0; input; i++, input >>= 1)
        if (input & 1) output ^= map->column[i];
    return output;
}

bool tile_linear_equal(const TileLinear *a, const TileLinear *b) {
    return a->inputs == b->inputs && a->outputs == b->outputs &&
           memcmp(a->column, b->column, a->inputs * sizeof *a->column) == 0;
}

TileLinear tile_linear_compose(const TileLinear *outer, const TileLinear *inner) {
    TileLinear map = tile_linear_zero(inner->inputs, outer->outputs);
    for (unsigned i = 0; i < inner->inputs; i++) map.column[i] = tile_linear_apply(outer, inner->column[i]);
    return map;
}

/* ---- elimination ---- */

/* An echelon form of a map's columns: the vector whose leading bit is b, and an input that it is the image of. */
typedef struct Echelon {
    uint32_t vector[TILE_LINEAR_BITS], source[TILE_LINEAR_BITS];
} Echelon;

static unsigned leading_bit(uint32_t vector) { return 31u - (unsigned)__builtin_clz(vector); }

/* Reduces a vector by the echelon form; *source accumulates the inputs used. */
static uint32_t reduce(const Echelon *echelon, uint32_t vector, uint32_t *source) {
    uint32_t rest = 0;
    while (vector) {
        unsigned bit = leading_bit(vector);
        if (echelon->vector[bit]) {
            vector ^= echelon->vector[bit];
            *source ^= echelon->source[bit];
        } else {
            rest |= UINT32_C(1) << bit;
            vector &= ~(UINT32_C(1) << bit);
        }
    }
    return rest;
}

/* Adds the columns in order. If one depends on those before it, `kernel` gets the combination. */
static unsigned eliminate(const TileLinear *map, Echelon *echelon, TileLinear *kernel) {
    unsigned rank = 0;
    *echelon = (Echelon){0};
    for (unsigned i = 0; i < map->inputs; i++) {
        uint32_t source = UINT32_C(1) << i, vector = reduce(echelon, map->column[i], &source);
        if (vector) {
            unsigned bit = leading_bit(vector);
            echelon->vector[bit] = vector;
            echelon->source[bit] = source;
            rank++;
        } else if (kernel) {
            kernel->column[kernel->inputs++] = source;
        }
    }
    return rank;
}

unsigned tile_linear_rank(const TileLinear *map) {
    Echelon echelon;
    return eliminate(map, &echelon, NULL);
}

TileLinear tile_linear_kernel(const TileLinear *map) {
    Echelon echelon;
    TileLinear kernel = tile_linear_zero(0, map->inputs);
    eliminate(map, &echelon, &kernel);
    return kernel;
}

bool tile_linear_divide(const TileLinear *a, const TileLinear *b, TileLinear *x) {
    Echelon echelon;
    eliminate(a, &echelon, NULL);
    *x = tile_linear_zero(b->inputs, a->inputs);
    for (unsigned i = 0; i < b->inputs; i++)
        if (reduce(&echelon, b->column[i], &x->column[i])) return false;
    return true;
}

TileLinear tile_linear_pseudo_inverse(const TileLinear *map) {
    Echelon echelon;
    eliminate(map, &echelon, NULL);
    TileLinear inverse = tile_linear_zero(map->outputs, map->inputs);
    for (unsigned i = 0; i < map->outputs; i++) reduce(&echelon, UINT32_C(1) << i, &inverse.column[i]);
    return inverse;
}

bool tile_linear_divide_left(const TileLinear *map, const TileLinear *factor, TileLinear *rest) {
    if (factor->inputs > map->inputs || factor->outputs > map->outputs) return false;
    uint32_t low = factor->outputs < 32 ? (UINT32_C(1) << factor->outputs) - 1 : UINT32_MAX;
    for (unsigned i = 0; i < factor->inputs; i++)
        if (map->column[i] != factor->column[i]) return false;
    TileLinear found = tile_linear_zero(map->inputs - factor->inputs, map->outputs - factor->outputs);
    for (unsigned i = factor->inputs; i < map->inputs; i++) {
        if (map->column[i] & low) return false;
        found.column[i - factor->inputs] = factor->outputs < 32 ? map->column[i] >> factor->outputs : 0;
    }
    *rest = found;
    return true;
}

/* ---- spans ---- */

uint32_t tile_span_reduce(const TileLinearSpan *span, uint32_t vector) {
    for (unsigned i = 0; i < span->dimension; i++)
        if (vector >> leading_bit(span->vector[i]) & 1) vector ^= span->vector[i];
    return vector;
}

bool tile_span_add(TileLinearSpan *span, uint32_t vector) {
    vector = tile_span_reduce(span, vector);
    if (!vector) return false;
    unsigned bit = leading_bit(vector);
    for (unsigned i = 0; i < span->dimension; i++)
        if (span->vector[i] >> bit & 1) span->vector[i] ^= vector;
    span->vector[span->dimension++] = vector;
    return true;
}

/* Zassenhaus: a combination of a's and b's vectors that is 0 gives an element of both. */
TileLinearSpan tile_span_intersect(const TileLinearSpan *a, const TileLinearSpan *b) {
    TileLinearSpan both = {0};
    TileLinear all = tile_linear_zero(0, TILE_LINEAR_BITS);
    unsigned taken = a->dimension;
    for (unsigned i = 0; i < a->dimension; i++) all.column[all.inputs++] = a->vector[i];
    Echelon echelon;
    eliminate(&all, &echelon, NULL);
    for (unsigned i = 0; i < b->dimension; i++) {
        uint32_t source = 0, vector = reduce(&echelon, b->vector[i], &source);
        if (vector) {
            unsigned bit = leading_bit(vector);
            echelon.vector[bit] = vector;
            echelon.source[bit] = source; /* of b's vectors nothing is recorded: only a's part is the result */
            continue;
        }
        uint32_t element = 0;
        for (unsigned k = 0; k < taken; k++)
            if (source >> k & 1) element ^= a->vector[k];
        if (element) tile_span_add(&both, element);
    }
    return both;
}
