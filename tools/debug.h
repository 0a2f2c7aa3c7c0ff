/* tilec debug: what its files share. debug_values.c reads names and values, debug_stops.c knows where to stop,
 * debug_source.c shows the text, debug.c has the commands and the executor's observer. */
#ifndef TILE_TOOLS_DEBUG_H
#define TILE_TOOLS_DEBUG_H

#include "lang/execute/execute.h"
#include "lang/ir/statement.h"
#include "tools/session.h"

enum { TILE_DEBUG_MOST_RANK = TILE_MAX_TENSOR_RANK };

/* ---- values ---- */

typedef enum TileDebugKind { TILE_DEBUG_SCALAR, TILE_DEBUG_TILE, TILE_DEBUG_TENSOR, TILE_DEBUG_RANGE } TileDebugKind;

/* A name of a statement, as far as its type goes. */
typedef struct TileDebugName {
    const char *text; /* zero-terminated */
    TileDebugKind kind;
    TileValue *const *operands;
    const TileType *type;                 /* of the first one */
    int64_t extent[TILE_DEBUG_MOST_RANK]; /* tiles and tensors */
} TileDebugName;

/* The elements of a value that were asked for, in row-major order: those of a range are its five scalars. */
typedef struct TileDebugValue {
    TileDebugKind kind;
    TileScalar scalar;
    unsigned rank;
    int64_t extent[TILE_DEBUG_MOST_RANK];
    uint64_t count;
    uint64_t *bits;
    bool *defined; /* which elements have a value: the others lie beyond a range, or were not stored yet */
} TileDebugValue;

/* The names of the statement, in the arena. */
typedef TILE_LIST(TileDebugName) TileDebugNames;
void tile_debug_names(const TileExecutor *executor, const TileOp *statement, TileArena *arena, TileDebugNames *names);
/* Reads `NAME` or `NAME[3, 0:4, :]` as it stands at the statement; false, with the reason, if it cannot. */
bool tile_debug_read(const TileExecutor *executor, const TileOp *statement, const char *expression, TileArena *arena,
                     TileDebugValue *value, TileText *error);
/* Two readings of one expression: do they differ? */
bool tile_debug_differ(const TileDebugValue *a, const TileDebugValue *b);
/* "top: f32[4] = 1 2 3 4", on several lines where there are several rows; all elements, or the first ones of each axis.
 */
void tile_debug_print(TileText *text, const char *expression, const TileDebugValue *value, bool all);

/* ---- stops ---- */

/* Where a statement begins. */
typedef struct TileDebugPlace {
    const char *file;
    uint32_t line, column;
} TileDebugPlace;

typedef struct TileDebugStop {
    unsigned number;
    TileDebugPlace place;   /* breakpoints */
    const char *expression; /* what is watched; NULL: a breakpoint */
    const char *function;   /* that the expression is read in */
    bool has_value;
    TileDebugValue value;
    TileArena *arena; /* of the value */
} TileDebugStop;

TileDebugPlace tile_debug_place(const TileOp *statement);
/* The function that the statement stands in, in the arena. */
const char *tile_debug_function(const TileOp *statement, TileArena *arena);
/* The place that `LINE`, `FILE:LINE` or `FUNCTION` names, seen from the statement: of the first statement there. */
bool tile_debug_find_place(const TileOp *statement, const char *words, TileArena *arena, TileDebugPlace *place,
                           TileText *error);
static inline bool tile_debug_is_at(TileDebugPlace a, TileDebugPlace b) {
    return a.file == b.file && a.line == b.line && a.column == b.column;
}

/* ---- programs ---- */

/* The grid that the statement stands in, and the indices and numbers of its programs; the rank. */
unsigned tile_debug_program(const TileExecutor *executor, const TileOp *statement, TileBlock **body, int64_t *indices,
                            int64_t *counts);

/* ---- source ---- */

/* The lines from .. to, the line `at` marked; false if the text of the file is not there. */
bool tile_debug_list(TileArena *arena, const char *file, uint32_t from, uint32_t to, uint32_t at);

#endif
