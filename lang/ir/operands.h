/* Which operand of an op is what, by name: the one decoder of operands (lang/ir/operands.def). Every function is pure. */
#ifndef TILE_LANG_IR_OPERANDS_H
#define TILE_LANG_IR_OPERANDS_H

#include "lang/ir/ir.h"

typedef enum TileOperand {
    TILE_OPERAND_NONE,
#define OPERAND(id, word) TILE_OPERAND_##id,
#include "lang/ir/operands.def"
    TILE_OPERAND_COUNT
} TileOperand;

/* The names of the op's operands, ended by TILE_OPERAND_NONE; NULL for an op of at most two, which has none. */
const uint8_t *tile_operand_names(TileOpId id);
const char *tile_operand_word(TileOperand name);

/* The number of the first operand of the name, and how many there are: 0 for an optional one that is absent, and where the
 * op has no operand of the name. */
unsigned tile_op_operands(const TileOp *op, TileOperand name, unsigned *count);
/* The operand, the first of several; NULL where it is absent. */
TileValue *tile_op_named(const TileOp *op, TileOperand name);
/* The i-th of several, which is there. */
TileValue *tile_op_named_at(const TileOp *op, TileOperand name, unsigned i);
/* Do the op's operands fit their names? Asked by the verifier, behind the op's own rule. */
bool tile_operands_fit(const TileOp *op);

/* What stands for one dimension of a tensor in an access (`access` of load_tile and its kin). */
typedef struct TileAccessIndex {
    TileName kind;    /* TILE_ACCESS_* */
    unsigned operand; /* the number of the first */
    int axis;         /* of the value; -1 for an index, which has none. Gathers of one access share an axis. */
    TileValue *first; /* INDEX and GATHER: the index */
    TileValue *step, *lo, *hi; /* RANGE; else NULL */
} TileAccessIndex;

/* The number of the first operand of the indices, and of the first behind them. */
static inline unsigned tile_access_first(const TileOp *op) {
    unsigned count;
    return tile_op_operands(op, TILE_OPERAND_INDICES, &count);
}
static inline unsigned tile_access_end(const TileOp *op) {
    unsigned count, first = tile_op_operands(op, TILE_OPERAND_INDICES, &count);
    return first + count;
}
/* The number of dimensions. */
unsigned tile_access_read(const TileOp *op, TileAccessIndex indices[TILE_MAX_TENSOR_RANK]);
/* The bounds of the value's axis where a range of the access makes it. */
bool tile_access_bounds(const TileOp *op, unsigned axis, TileValue **lo, TileValue **hi);

/* The i-th value that is carried into the first iteration, of an op that carries values: for, while, loop, fold_loop, condition. */
static inline TileValue *tile_loop_carried(const TileOp *op, unsigned i) {
    return tile_op_named_at(op, TILE_OPERAND_CARRIED, i);
}
/* The bounds of the i-th axis of a fill. */
static inline TileValue *tile_fill_lo(const TileOp *fill, unsigned i) {
    return tile_op_named_at(fill, TILE_OPERAND_BOUNDS, 2 * i);
}
static inline TileValue *tile_fill_hi(const TileOp *fill, unsigned i) {
    return tile_op_named_at(fill, TILE_OPERAND_BOUNDS, 2 * i + 1);
}

#endif
