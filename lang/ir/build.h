/* Checked construction of ops. A builder infers result types by the op's type rule and inserts at its position.
 *
 * An ill-formed op is a bug of the compiler: the builder records the first complaint in `error`, still inserts the op
 * with the requested result type (or that of its first operand), and the verifier reports the op. So callers need not
 * check after each op. */
#ifndef TILE_LANG_IR_BUILD_H
#define TILE_LANG_IR_BUILD_H

#include "lang/ir/ir.h"

typedef struct TileBuilder {
    TileModule *module;
    TileBlock *block;
    TileOp *before; /* insert before this op; NULL: at the end of the block */
    TileLocation location;
    const char *error;
} TileBuilder;

static inline TileBuilder tile_builder_at_end(TileModule *module, TileBlock *block) {
    return (TileBuilder){.module = module, .block = block};
}
static inline TileBuilder tile_builder_before(TileModule *module, TileOp *op) {
    return (TileBuilder){.module = module, .block = op->block, .before = op, .location = op->location};
}

/* Applies the type rule of an op that has its operands and attributes: infers result types that are NULL, checks those
 * that are given, and checks operands, attributes and region arguments. NULL if the op is valid, else a complaint in
 * static storage or in the arena of the op's module. */
const char *tile_op_check(TileModule *module, const TileOp *op, const TileType **result_types);

/* The general builder: result_types may be NULL where the rule infers them. Attributes are copied. */
TileOp *tile_build_op(TileBuilder *builder, TileOpId id, TileValue *const *operands, unsigned operand_count,
                      const TileAttribute *attributes, unsigned attribute_count, const TileType *const *result_types,
                      unsigned result_count);
void tile_builder_insert(TileBuilder *builder, TileOp *op);
/* The value once more, computed of what `map` has for values that the op `outermost` contains: its ops, and those that they take, are
 * cloned where they are not in the map yet, which they join. What is defined outside of `outermost` stays. The ops are pure, or read what
 * is the same there. */
TileValue *tile_build_again(TileBuilder *builder, TileMap *map, TileValue *value, const TileOp *outermost);

/* Ops with one result. */
TileValue *tile_build_unary(TileBuilder *builder, TileOpId id, TileValue *x);
TileValue *tile_build_binary(TileBuilder *builder, TileOpId id, TileValue *x, TileValue *y);
TileValue *tile_build_ternary(TileBuilder *builder, TileOpId id, TileValue *x, TileValue *y, TileValue *z);
/* Changes the element type and keeps the shape: `convert` or `bitcast`. */
TileValue *tile_build_convert(TileBuilder *builder, TileValue *x, TileScalar to);
TileValue *tile_build_bitcast(TileBuilder *builder, TileValue *x, TileScalar to);

/* Constants of any scalar, tile or vector type; a number is rounded to the element type. */
TileValue *tile_build_bits(TileBuilder *builder, const TileType *type, uint64_t bits);
TileValue *tile_build_integer(TileBuilder *builder, const TileType *type, int64_t value);
TileValue *tile_build_number(TileBuilder *builder, const TileType *type, double value);
TileValue *tile_build_i64(TileBuilder *builder, int64_t value);
TileValue *tile_build_bool(TileBuilder *builder, bool value);
/* The bits of a scalar constant (the value of `const`); false if the value is not a constant. */
bool tile_value_bits(const TileValue *value, uint64_t *bits);
/* The same for integers and bools, extended to 64 bits by the type's signedness. */
bool tile_value_integer(const TileValue *value, int64_t *integer);
bool tile_value_is_integer(const TileValue *value, int64_t integer);
/* Are these the same value, or constants of one type with the same bits? */
bool tile_value_is_same(const TileValue *x, const TileValue *y);
bool tile_attribute_is_same(const TileAttribute *a, const TileAttribute *b);
/* Are two combiners equal up to renaming, or both NULL? */
bool tile_combiner_is_same(const TileBlock *a, const TileBlock *b, TileArena *scratch);

TileValue *tile_build_splat(TileBuilder *builder, TileValue *scalar, const TileType *type);
TileValue *tile_build_iota(TileBuilder *builder, const TileType *type, int64_t axis);
TileValue *tile_build_broadcast(TileBuilder *builder, TileValue *x, const int64_t *extent);
TileValue *tile_build_reshape(TileBuilder *builder, TileValue *x, unsigned rank, const int64_t *extent);
TileValue *tile_build_permute(TileBuilder *builder, TileValue *x, const int64_t *axes);
/* bounds: lo, hi for each axis in axes. */
/* A slice of `extent` lanes of one axis, from lane `offset` on; the concatenation of two tiles along an axis. */
TileValue *tile_build_slice(TileBuilder *builder, TileValue *x, int64_t axis, int64_t offset, int64_t extent);
TileValue *tile_build_flip(TileBuilder *builder, TileValue *x, int64_t axis);
TileValue *tile_build_cat(TileBuilder *builder, TileValue *x, TileValue *y, int64_t axis);
TileValue *tile_build_fill(TileBuilder *builder, TileValue *x, TileValue *value, const int64_t *axes,
                           TileValue *const *bounds, unsigned axis_count);
TileValue *tile_build_reduce(TileBuilder *builder, TileValue *x, TileName kind, int64_t axis);
/* A fold or scan: `mask` and `init` may be NULL. Its region has the arguments of the combiner and no ops yet. */
typedef struct TileFoldParts {
    TileValue *const *values, *const *init;
    TileValue *mask;
    unsigned count;
    int64_t axis;
    bool reverse, exclusive;
} TileFoldParts;
TileOp *tile_build_fold(TileBuilder *builder, TileOpId id, const TileFoldParts *parts);
TileValue *tile_build_dot(TileBuilder *builder, TileValue *a, TileValue *b, TileValue *acc);
TileValue *tile_build_dim(TileBuilder *builder, TileValue *tensor, int64_t axis);

/* Control flow: the op is inserted; its regions have their arguments and no ops yet. */
TileOp *tile_build_for(TileBuilder *builder, TileValue *lo, TileValue *hi, TileValue *step, TileValue *const *carried,
                       unsigned carried_count);
TileOp *tile_build_if(TileBuilder *builder, TileValue *condition, const TileType *const *result_types,
                      unsigned result_count);
TileOp *tile_build_while(TileBuilder *builder, TileValue *const *carried, unsigned carried_count);
TileOp *tile_build_grid(TileBuilder *builder, TileValue *const *extents, unsigned count);
TileOp *tile_build_loop(TileBuilder *builder, TileName kind, TileValue *lo, TileValue *hi, int64_t extent,
                        TileValue *const *carried, unsigned carried_count);
/* A fold or scan as a loop over the points of tiles, with its combiner; `init` may be NULL. The other regions have
 * their arguments and no ops yet. */
TileOp *tile_build_fold_loop(TileBuilder *builder, TileValue *lo, TileValue *hi, int64_t extent, TileValue *const *init,
                             const TileOp *fold);
/* Inlines a combiner's ops, less its terminator, on other arguments, and gives the values that it would yield. With
 * vectors as arguments the ops become vector ops. */
void tile_build_combined(TileBuilder *builder, const TileBlock *combiner, TileValue *const *left,
                         TileValue *const *right, TileValue **result);
/* Terminators: yield, return. */
TileOp *tile_build_end(TileBuilder *builder, TileOpId id, TileValue *const *values, unsigned count);

/* Ops of machine form. */
TileValue *tile_build_ptr_add(TileBuilder *builder, TileValue *pointer, TileValue *bytes);
TileValue *tile_build_is_aligned(TileBuilder *builder, TileValue *pointer, int64_t align);
TileValue *tile_build_buffer(TileBuilder *builder, int64_t bytes, int64_t align);
/* mask and fill may be NULL; fill requires mask. `align` is in bytes; 0: the element's size. */
TileValue *tile_build_load(TileBuilder *builder, const TileType *type, TileValue *pointer, TileValue *mask,
                           TileValue *fill, int64_t align);
TileOp *tile_build_store(TileBuilder *builder, TileValue *value, TileValue *pointer, TileValue *mask, int64_t align);
TileValue *tile_build_extract(TileBuilder *builder, TileValue *vector, int64_t lane);
TileValue *tile_build_insert(TileBuilder *builder, TileValue *vector, TileValue *scalar, int64_t lane);
TileValue *tile_build_shuffle(TileBuilder *builder, TileValue *a, TileValue *b, const int64_t *lanes, unsigned count);

/* The bits of an integer converted to a scalar type: integers wrap, floats round. For doubles see
 * lang/scalar/scalar.h. */
uint64_t tile_scalar_from_integer(TileScalar scalar, int64_t value);

#endif
