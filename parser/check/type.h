/* Types: their names, operands of a common type, conversions. */
#ifndef TILE_PARSER_CHECK_TYPE_H
#define TILE_PARSER_CHECK_TYPE_H

#include "parser/check/check.h"

static inline bool tile_is_scalar_value(const TileMeaning *m) { return m->kind == TILE_MEANING_VALUE && m->rank == 0; }
/* Literals are converted to the type of the typed operands; all must have a common element type. False if an error was
 * reported. */
bool tile_unify_scalars(TileChecker *c, TileMeaning *operands, const TileExpr *const *exprs, unsigned count,
                        TileSpan span);
TileMeaning tile_convert(TileChecker *c, TileMeaning m, TileScalar to, TileSpan span);
bool tile_find_type(TileChecker *c, const char *name, TileScalar *scalar);
/* The element type of a tensor. */
bool tile_find_element(TileChecker *c, const char *name, TileScalar *scalar, TileFormat *format);
/* Reports a tensor of packed elements without an axis, and tells whether it is one. */
bool tile_fail_single(TileChecker *c, const TileTypeExpr *type, TileFormat format);
/* Reports the name of a format where a value's type stands. */
TileMeaning tile_fail_format(TileChecker *c, TileSpan span, const char *name);
TileMeaning tile_fail_type(TileChecker *c, TileSpan span, const char *name);
bool tile_class_types(const char *class, uint32_t *types);
/* "float": the classes by number, NULL behind the last. */
const char *tile_class_at(size_t index);
/* Is it a value of 8-bit floats, which are computed in f32? */
bool tile_is_float8(const TileMeaning *m);

#endif
