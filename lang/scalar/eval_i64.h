/* The rows of eval.def on i64, inline: each launch evaluates host programs and addresses with these. */
#ifndef TILE_LANG_SCALAR_EVAL_I64_H
#define TILE_LANG_SCALAR_EVAL_I64_H

#include "lang/scalar/eval.h"

static inline uint64_t tile_floor_quotient(uint64_t x, uint64_t y) {
    if (y == 0) return 0;
    if ((int64_t)y == -1) return 0 - x; /* overflow of INT64_MIN / -1 is undefined in C; here it wraps */
    int64_t quotient = (int64_t)x / (int64_t)y, remainder = (int64_t)x % (int64_t)y;
    return (uint64_t)(quotient - (remainder != 0 && ((int64_t)x < 0) != ((int64_t)y < 0)));
}

static inline uint64_t tile_floor_remainder(uint64_t x, uint64_t y) {
    return y == 0 ? 0 : x - tile_floor_quotient(x, y) * y;
}

__extension__ typedef __int128 TileProduct;
__extension__ typedef unsigned __int128 TileUnsignedProduct;

/* The upper half of a product; the operands are extended to 64 bits by their sign. */
static inline uint64_t tile_signed_high(uint64_t x, uint64_t y, unsigned width) {
    return (uint64_t)((TileProduct)(int64_t)x * (int64_t)y >> width);
}
static inline uint64_t tile_unsigned_high(uint64_t x, uint64_t y, unsigned width) {
    return (uint64_t)((TileUnsignedProduct)x * y >> width);
}

/* Of numbers without bits above the width. */
static inline uint64_t tile_count_ones(uint64_t x) { return (uint64_t)__builtin_popcountll(x); }
static inline uint64_t tile_leading_zeros(uint64_t x, unsigned width) {
    return x ? (uint64_t)__builtin_clzll(x) - (64 - width) : width;
}
static inline uint64_t tile_trailing_zeros(uint64_t x, unsigned width) {
    return x ? (uint64_t)__builtin_ctzll(x) : width;
}
#define TILE_CUT(x, width) ((x) & (UINT64_MAX >> (64 - (width))))

/* False if the operation is not defined on integers. */
static inline bool tile_eval_op_i64(TileEvalOp op, uint64_t x, uint64_t y, uint64_t *result) {
    enum { WIDTH = 64 };
    switch ((int)op) {
#define S(x) ((int64_t)(x))
#define EVAL_INT(id, operands, kind, signed_, unsigned_)                                                               \
    case TILE_EVAL_##id:                                                                                               \
        *result = (uint64_t)(signed_);                                                                                 \
        return true;
#include "lang/scalar/eval.def"
#undef S
    default: return false;
    }
}

#endif
