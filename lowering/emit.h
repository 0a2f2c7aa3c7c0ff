/* What passes that expand ops share: a builder and constants made once for a function. */
#ifndef TILE_LOWERING_EMIT_H
#define TILE_LOWERING_EMIT_H

#include "lang/ir/build.h"
#include "lowering/pass.h"

typedef struct TileConstant {
    const TileType *type;
    uint64_t bits;
    TileValue *value;
} TileConstant;

typedef struct TileEmitter {
    TileBuilder builder; /* where ops go */
    TileBuilder front;   /* where constants go: the front of the function, so that each stands there once */
    TileArena *arena;
    TILE_LIST(TileConstant) constants;
    TileTarget target; /* no facts where there is none */
    bool changed;
    const char *error; /* the first complaint of either builder */
} TileEmitter;

TileEmitter tile_emitter_create(TilePassContext *context, TileFunc *func);
/* Ops go before `op` from now on. */
void tile_emit_before(TileEmitter *emitter, TileOp *op);
/* `with` takes the place of the op's only result; the op goes. */
void tile_emit_replace(TileEmitter *emitter, TileOp *op, TileValue *with);
/* What the pass returns. */
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

/* `convert` in terms that need no bf16 or f8 arithmetic and round once (legalise_convert.c). */
TileValue *tile_emit_convert(TileEmitter *emitter, TileValue *x, TileScalar to);

#endif
