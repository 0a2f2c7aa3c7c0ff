/* What the text of a `statement` says: `softmax(M, n.., top)` is the function, and the names in scope, the outermost
 * first. A name stands for one operand, a tensor, a tile or a scalar; a range, written with `..`, for five scalars. */
#ifndef TILE_LANG_IR_STATEMENT_H
#define TILE_LANG_IR_STATEMENT_H

#include <stdbool.h>
#include <stddef.h>

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
    const char *text;
    size_t length;
    bool is_range;
    unsigned operands;
} TileStatementName;

/* The part of the text behind the function, for tile_statement_next; `""` or the end of the function if there is none.
 */
const char *tile_statement_names(const char *text);
/* The next name; false behind the last, and then *rest is "" if the text was well-formed. */
bool tile_statement_next(const char **rest, TileStatementName *name);

#endif
