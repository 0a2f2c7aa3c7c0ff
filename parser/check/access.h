/* An access: the elements of a tensor that an index expression selects, and where they are valid. */
#ifndef TILE_PARSER_CHECK_ACCESS_H
#define TILE_PARSER_CHECK_ACCESS_H

#include "parser/check/check.h"

typedef struct TileAccessed {
    const TileTensor *tensor;
    TileSpan span;
    int64_t kinds[TILE_MAX_TENSOR_RANK];
    const TileRange *ranges[TILE_MAX_TENSOR_RANK]; /* RANGE */
    const TileSum *indices[TILE_MAX_TENSOR_RANK];  /* INDEX */
    TileValue *gathers[TILE_MAX_TENSOR_RANK];      /* GATHER: i64 tiles */
    bool agree[TILE_MAX_TENSOR_RANK];              /* GATHER: all valid indices are known to be equal */
    bool poisoned[TILE_MAX_TENSOR_RANK];           /* INDEX: a value that may be invalid itself */
    int axis_of[TILE_MAX_TENSOR_RANK];             /* RANGE, GATHER */
    int gather_axis;                               /* -1 if none */
    unsigned rank;
    const TileSum *extent[TILE_MAX_TILE_RANK];
    const TileValidity *valid;
    const TileValidity *chosen;  /* more, that holds for all elements that are used: the others become 0 */
    bool stores;                 /* without a mask that selects lanes */
    bool target;                 /* something is assigned to it */
    bool halved;                 /* the last dimension counts bytes of two elements, which `valid` counts */
    const TileMeaning *given;    /* the entries, where they have been checked before; or NULL */
    const TileValidity *implied; /* by the masks of the index tiles: where the index tiles are valid */
} TileAccessed;

typedef struct TileAccessOperands {
    TileValue *items[4 * TILE_MAX_TENSOR_RANK + 4];
    unsigned count;
    int64_t parts[1];
    unsigned part_count;
} TileAccessOperands;

TileValue *tile_access_index_mask(TileChecker *c, const TileMeaning *index, const TileSum *dim);
TileMeaning tile_access_sound_index(TileChecker *c, TileMeaning m);
bool tile_access_check_entries(TileChecker *c, const TileExpr *expr, TileAccessed *access);
void tile_access_push(TileAccessOperands *operands, TileValue *value);
void tile_access_add_operands(TileChecker *c, const TileAccessed *access, const TileValidity *valid,
                              TileAccessOperands *operands);
unsigned tile_access_attributes(const TileAccessed *access, const TileAccessOperands *operands,
                                TileAttribute *attributes);
TileMeaning tile_access_emit_load(TileChecker *c, const TileAccessed *access);
bool tile_access_may_read(TileChecker *c, const TileTensor *tensor, TileSpan span);
TileExpr *tile_access_whole_index(TileChecker *c, unsigned rank, TileSpan span);
bool tile_access_may_write(TileChecker *c, const TileTensor *tensor, TileSpan span);
bool tile_access_fit_value(TileChecker *c, const TileAccessed *access, TileMeaning *value, const TileExpr *expr);
void tile_access_emit_store(TileChecker *c, const TileAccessed *target, const TileMeaning *value,
                            const TileValidity *valid);
bool tile_access_check_covers(TileChecker *c, const TileAccessed *access, const TileMeaning *value,
                              const TileExpr *expr, bool skip, const TileValidity **valid);
void tile_access_report_meeting(TileChecker *c, TileSpan span);
void tile_access_store(TileChecker *c, const TileAccessed *access, TileMeaning value, const TileExpr *expr, bool skip);
bool tile_access_target(TileChecker *c, const TileExpr *target, TileAccessed *access);

#endif
