/* Linear maps over F2: from bits to bits, where addition is exclusive or. They describe which register, lane, warp and
 * address of shared memory holds an element of a tile; layouts (lang/layout/layout.h) are such maps with names for
 * their bits.
 *
 * Source: "Linear Layouts: Robust Code Generation of Efficient Tensor Computation Using F2" (Zhou et al., 2025). All
 * functions are pure. */
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

/* The dimension of the image. */
unsigned tile_linear_rank(const TileLinear *map);
/* The columns are a basis of the kernel: the inputs that are mapped to 0. */
TileLinear tile_linear_kernel(const TileLinear *map);
/* A map x with a(x(i)) == b(i) for all i, which uses a's earliest independent columns; false if b's image is not
 * contained in a's. Both have the same number of outputs. */
bool tile_linear_divide(const TileLinear *a, const TileLinear *b, TileLinear *x);
/* A pseudo-inverse: map(inverse(map(i))) == map(i) for all i; the inverse of an invertible map. Outputs outside of the
 * image are mapped as their component in the image. */
TileLinear tile_linear_pseudo_inverse(const TileLinear *map);
/* Does `factor` divide the map: is the map `factor` on its lowest bits, and are those outputs zero for the other bits?
 * Then `rest` is the map of the other bits: map(i, j) = factor(i) | rest(j) << factor.outputs. */
bool tile_linear_divide_left(const TileLinear *map, const TileLinear *factor, TileLinear *rest);

/* A reduced basis of a subspace: each vector has a leading bit that no other one has. */
typedef struct TileLinearSpan {
    uint8_t dimension;
    uint32_t vector[TILE_LINEAR_BITS];
} TileLinearSpan;

/* Reduces a vector by the basis: 0 if it is in the subspace. */
uint32_t tile_span_reduce(const TileLinearSpan *span, uint32_t vector);
/* Adds a vector to the basis; false if it is in the subspace already. */
bool tile_span_add(TileLinearSpan *span, uint32_t vector);
static inline bool tile_span_has(const TileLinearSpan *span, uint32_t vector) {
    return !tile_span_reduce(span, vector);
}
/* The intersection of two subspaces. */
TileLinearSpan tile_span_intersect(const TileLinearSpan *a, const TileLinearSpan *b);

#endif
