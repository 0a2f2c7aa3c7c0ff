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
/* Reports types that are reserved for the future. */
bool tile_is_future_type(const char *name);
TileMeaning tile_fail_future_type(TileChecker *c, TileSpan span, const char *name);
TileMeaning tile_fail_type(TileChecker *c, TileSpan span, const char *name);
bool tile_class_types(const char *class, uint32_t *types);
/* "float": the classes by number, NULL behind the last. */
const char *tile_class_at(size_t index);
/* Is it a value of 8-bit floats, which are computed in f32? */
bool tile_is_float8(const TileMeaning *m);

#endif
