/* The builder of include/tile/ir.h: what its parts share. */
#ifndef TILE_DRIVER_COMPILE_IR_H
#define TILE_DRIVER_COMPILE_IR_H

#include "lang/ir/build.h"
#include "tile/ir.h"

/* An operation with regions that is being built. */
typedef struct TileIrRegion {
    TileOp *op;
    unsigned number; /* of the region at hand */
} TileIrRegion;

typedef struct TileIrDimension {
    const char *name; /* interned */
    TileValue *extent;
} TileIrDimension;

struct TileIr {
    TileArena *arena; /* of lists and messages */
    TileContext *context;
    TileModule *module;
    TileFunc *func;    /* the current kernel, or NULL */
    TileBuilder at;    /* where operations go */
    unsigned op_count; /* in the kernel */
    TILE_LIST(TileIrRegion) open;
    TILE_LIST(TileIrDimension) dimensions; /* of the kernel */
    tile_status status;
    const char *message;
    jmp_buf *guards[3]; /* the arenas' guard outside of a call */
};

/* Begins a call that builds something: false after an error. `guard`, set by the caller, is where the call continues if
 * memory runs out; tile_ir_run_out must follow there, else tile_ir_leave. */
bool tile_ir_enter(TileIr *ir, jmp_buf *guard);
void tile_ir_leave(TileIr *ir);
void tile_ir_run_out(TileIr *ir);

/* Does it belong to this builder? Between tile_ir_enter and tile_ir_leave. */
bool tile_ir_owns_type(TileIr *ir, const TileType *type);
bool tile_ir_owns_value(const TileIr *ir, const TileValue *value);
bool tile_ir_owns_op(const TileIr *ir, const TileOp *op);

/* An error outside of tile_ir_enter and tile_ir_leave. */
void tile_ir_mistake(TileIr *ir, const char *words);
/* Keeps the first mistake. */
void tile_ir_fail(TileIr *ir, const char *format, ...) TILE_PRINTF(2, 3);

#endif
