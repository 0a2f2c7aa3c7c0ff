/* Linear maps over F2: bits in, bits out, addition being exclusive or. They say where the elements of a tile lie, on
 * registers, lanes, warps and in shared memory; layouts (lang/layout/layout.h) are such maps with names for their bits.
 *
 * Source of the idea: "Linear Layouts: Robust Code Generation of Efficient Tensor Computation Using F2" (Zhou et al.,
 * 2025). All functions are pure. */
#ifndef TILE_LANG_LAYOUT_LINEAR_H
#define TILE_LANG_LAYOUT_LINEAR_H

#include <stdbool.h>
#include <stdint.h>

enum { TILE_LINEAR_BITS = 32 };

/* The image of input bit i is column[i]; columns from `inputs` on are zero. */
typedef struct TileLinear {
    uint8_t inputs, outputs; /* numbers of bits */
    uint32_t column[TILE_LINEAR_BITS];
} TileLinear;

TileLinear tile_linear_zero(unsigned inputs, unsigned outputs);
TileLinear tile_linear_identity(unsigned bits);
uint32_t tile_linear_apply(const TileLinear *map, uint32_t input);
bool tile_linear_equal(const TileLinear *a, const TileLinear *b);
/* outer(inner(x)). The inner map has as many outputs as the outer one has inputs. */
TileLinear tile_linear_compose(const TileLinear *outer, const TileLinear *inner);

/* Dimension of the image. */
unsigned tile_linear_rank(const TileLinear *map);
/* The columns are a basis of the inputs that go to 0. */
TileLinear tile_linear_kernel(const TileLinear *map);
/* A map x with a(x(i)) == b(i) for all i, which uses a's earliest independent columns; false where b's image is not
 * inside of a's. Both have the same number of outputs. */
bool tile_linear_divide(const TileLinear *a, const TileLinear *b, TileLinear *x);
/* From outputs back to inputs: map(inverse(map(i))) == map(i) for all i. What lies outside of the image goes where its
 * part inside goes, so for an invertible map it is the inverse. */
TileLinear tile_linear_pseudo_inverse(const TileLinear *map);
/* Is the whole map `factor` on its lowest bits beside a rest that leaves these outputs alone? Then that rest, on the
 * remaining bits: map(i, j) = factor(i) | rest(j) << factor.outputs. */
bool tile_linear_divide_left(const TileLinear *map, const TileLinear *factor, TileLinear *rest);

/* Vectors that span a subspace, reduced: each has a leading bit that no other one has. */
typedef struct TileLinearSpan {
    uint8_t dimension;
    uint32_t vector[TILE_LINEAR_BITS];
} TileLinearSpan;

/* What is left of a vector after the span's vectors were subtracted: 0 where it lies in the span. */
uint32_t tile_span_reduce(const TileLinearSpan *span, uint32_t vector);
/* False, and nothing changes, where the vector lies in the span already. */
bool tile_span_add(TileLinearSpan *span, uint32_t vector);
static inline bool tile_span_has(const TileLinearSpan *span, uint32_t vector) {
    return !tile_span_reduce(span, vector);
}
/* Vectors that are in both. */
TileLinearSpan tile_span_intersect(const TileLinearSpan *a, const TileLinearSpan *b);

#endif
