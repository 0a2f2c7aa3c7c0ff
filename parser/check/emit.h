/* Emission of sums and values as ops. Each is emitted once per block in which it is visible. */
#ifndef TILE_PARSER_CHECK_EMIT_H
#define TILE_PARSER_CHECK_EMIT_H

#include "parser/check/check.h"

void tile_emit_at(TileChecker *c, TileSpan span);
/* Counts work and emitted ops; beyond the limit an error is reported and further statements are skipped. */
void tile_spend(TileChecker *c, size_t ops);
static inline bool tile_is_spent(const TileChecker *c) {
    return c->op_count >= c->diagnostics->limits->most[TILE_LIMIT_OPERATIONS];
}
/* A symbol for an i64 of the IR; if it is a conversion of a narrower integer, it has that type's range. */
TileSymbol *tile_value_symbol(TileChecker *c, const char *name, TileValue *value);
TileValue *tile_emit_sum(TileChecker *c, const TileSum *sum);
/* An f64 that is at least the sum of the magnitudes of the sum's terms. */
TileValue *tile_emit_magnitude(TileChecker *c, const TileSum *sum);
/* The IR value of a VALUE meaning. */
TileValue *tile_emit_value(TileChecker *c, const TileMeaning *meaning);
const TileType *tile_meaning_type(TileChecker *c, const TileMeaning *meaning);
int64_t tile_extent_value(TileChecker *c, const TileSum *extent);
TileValue *tile_emit_unary(TileChecker *c, TileOpId id, TileValue *x);
TileValue *tile_emit_binary(TileChecker *c, TileOpId id, TileValue *x, TileValue *y);
TileValue *tile_emit_select(TileChecker *c, TileValue *condition, TileValue *x, TileValue *y);
TileBuilder *tile_emitter(TileChecker *c); /* the builder, with its insertion point set */
/* A value that is cached for an enclosing block, or NULL; and an entry for it. `slot` is stored with the key. */
TileValue *tile_cache_get(TileChecker *c, const void *key, size_t slot);
void tile_cache_set(TileChecker *c, const void *key, size_t *slot, TileValue *value);
/* Erases the ops of a block that was emitted tentatively. */
void tile_discard_block(TileBlock *block);
/* Constructors of meanings. */
TileMeaning tile_value_meaning(TileChecker *c, TileValue *value, const TileSum *const *extent,
                               const TileValidity *valid);
TileMeaning tile_scalar_meaning(TileChecker *c, TileValue *value, const TileValidity *valid);

#endif
