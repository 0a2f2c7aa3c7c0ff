/* Operands by name: the only decoder of operand lists (lang/ir/operands.def). Every function is pure. */
#ifndef TILE_LANG_IR_OPERANDS_H
#define TILE_LANG_IR_OPERANDS_H

#include "lang/ir/ir.h"

typedef enum TileOperand {
    TILE_OPERAND_NONE,
#define OPERAND(id, word) TILE_OPERAND_##id,
#include "lang/ir/operands.def"
    TILE_OPERAND_COUNT
} TileOperand;

/* The names of the op's operands, ended by TILE_OPERAND_NONE; NULL for ops of at most two, which have no names. */
const uint8_t *tile_operand_names(TileOpId id);
const char *tile_operand_word(TileOperand name);

/* The index of the first operand of this name, and how many there are: 0 if an optional one is absent, or if the op has
 * none of this name. */
unsigned tile_op_operands(const TileOp *op, TileOperand name, unsigned *count);
/* The (first) operand of this name; NULL if absent. */
TileValue *tile_op_named(const TileOp *op, TileOperand name);
/* The i-th operand of this name, which must exist. */
TileValue *tile_op_named_at(const TileOp *op, TileOperand name, unsigned i);
/* Do the op's operands match their names? The verifier calls this after the op's type rule. */
bool tile_operands_fit(const TileOp *op);

/* The operands for one dimension of a tensor in an access (`access` of load_tile and similar ops).
 * A POSITION: dimensions that share an axis, along which lanes go through positions one after the other, as through a batch of images: the last
 * of these dimensions first, of `hi` positions each, behind the last of which the dimension before goes on by one. The first dimension has no
 * end. The element is that with the index number * step + lo; where it lies outside of the tensor, what is loaded is 0, and nothing is stored. */
typedef struct TileAccessIndex {
    TileName kind;    /* TILE_ACCESS_* */
    unsigned operand; /* the index of the first one */
    int axis;         /* of the value; -1 for an index, which drops its dimension. Gathers of one access share an
                       * axis, and so do positions. */
    TileValue *first; /* INDEX and GATHER: the index; POSITION: the first number */
    TileValue *step, *lo, *hi; /* of a RANGE or POSITION; else NULL */
} TileAccessIndex;

/* How many operands a dimension has. */
static inline unsigned tile_access_operands(int64_t kind) { return kind == TILE_ACCESS_RANGE || kind == TILE_ACCESS_POSITION ? 4 : 1; }

/* The index of the first operand that is an index, and of the first operand after them. */
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
/* The bounds of the value's axis, if a range of the access defines it. */
bool tile_access_bounds(const TileOp *op, unsigned axis, TileValue **lo, TileValue **hi);

/* The initial value of loop-carried value i, of an op with such values: for, while, loop, fold_loop, condition. */
static inline TileValue *tile_loop_carried(const TileOp *op, unsigned i) {
    return tile_op_named_at(op, TILE_OPERAND_CARRIED, i);
}
/* Is it the loop over the programs of a GPU's block? */
bool tile_loop_is_of_programs(const TileOp *op);
/* Is the op in another loop of the function, which may execute it several times for a program? */
bool tile_op_is_repeated(const TileOp *op);
/* The bounds of the i-th axis of a fill. */
static inline TileValue *tile_fill_lo(const TileOp *fill, unsigned i) {
    return tile_op_named_at(fill, TILE_OPERAND_BOUNDS, 2 * i);
}
static inline TileValue *tile_fill_hi(const TileOp *fill, unsigned i) {
    return tile_op_named_at(fill, TILE_OPERAND_BOUNDS, 2 * i + 1);
}

#endif
