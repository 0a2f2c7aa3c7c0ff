/* Shared by passes that expand ops: a builder, and constants that are built once for a function. */
#ifndef TILE_LOWERING_EMIT_H
#define TILE_LOWERING_EMIT_H

#include "lang/index/index.h"
#include "lang/ir/build.h"
#include "lowering/pass.h"

typedef struct TileConstant {
    const TileType *type;
    uint64_t bits;
    TileValue *value;
} TileConstant;

typedef struct TileEmitter {
    TileBuilder builder; /* of ops */
    TileBuilder front;   /* of constants: the front of the function, each once */
    TileArena *arena;
    TILE_LIST(TileConstant) constants;
    TileTarget target; /* all zero if no target is chosen */
    TileIndices *indices; /* for passes that need ranges */
    bool changed;
    const char *error; /* the first error of either builder */
} TileEmitter;

TileEmitter tile_emitter_create(TilePassContext *context, TileFunc *func);
/* Further ops are inserted before `op`. */
void tile_emit_before(TileEmitter *emitter, TileOp *op);
/* Replaces the op's only result by `with`, and erases the op. */
void tile_emit_replace(TileEmitter *emitter, TileOp *op, TileValue *with);
/* The result of the pass. */
TileResult tile_emit_finish(TileEmitter *emitter, TilePassContext *context);

TileValue *tile_emit_bits(TileEmitter *emitter, const TileType *type, uint64_t bits);
/* A constant of the shape of `like`. */
TileValue *tile_emit_bits_like(TileEmitter *emitter, const TileType *like, TileScalar scalar, uint64_t bits);
TileValue *tile_emit_i64(TileEmitter *emitter, int64_t value);

static inline TileValue *tile_emit_unary(TileEmitter *emitter, TileOpId id, TileValue *x) {
    return tile_build_unary(&emitter->builder, id, x);
}
static inline TileValue *tile_emit_binary(TileEmitter *emitter, TileOpId id, TileValue *x, TileValue *y) {
    return tile_build_binary(&emitter->builder, id, x, y);
}
static inline TileValue *tile_emit_select(TileEmitter *emitter, TileValue *condition, TileValue *x, TileValue *y) {
    return tile_build_ternary(&emitter->builder, TILE_OP_SELECT, condition, x, y);
}
/* x op bits, the second operand a constant of x's type. */
TileValue *tile_emit_with_bits(TileEmitter *emitter, TileOpId id, TileValue *x, uint64_t bits);

/* Expands `convert` into ops that need no bf16 or f8 arithmetic, with one rounding (legalise_convert.c). */
TileValue *tile_emit_convert(TileEmitter *emitter, TileValue *x, TileScalar to);

#endif
