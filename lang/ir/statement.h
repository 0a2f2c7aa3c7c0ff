/* The names of a `statement`, the outermost first. A name stands for one operand, a tensor, a tile or a scalar; a range
 * for five scalars. */
#ifndef TILE_LANG_IR_STATEMENT_H
#define TILE_LANG_IR_STATEMENT_H

#include "lang/ir/ir.h"

/* The operands of a range, in order: lane l has the index first + l * step, and exists if from <= l < to, where there
 * are `lanes` of them. */
typedef enum TileStatementRange {
    TILE_STATEMENT_FIRST,
    TILE_STATEMENT_STEP,
    TILE_STATEMENT_FROM,
    TILE_STATEMENT_TO,
    TILE_STATEMENT_LANES,
    TILE_STATEMENT_RANGE_COUNT
} TileStatementRange;

typedef struct TileStatementName {
    const char *text; /* NULL behind the last */
    bool is_range;
    uint32_t index;
    uint32_t operand, operands; /* the first, and how many */
} TileStatementName;

/* The name behind `last`, or the first if its text is NULL. */
TileStatementName tile_statement_next(const TileOp *statement, const TileStatementName *last);

#endif
