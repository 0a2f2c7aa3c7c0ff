/* Code generation from machine form: the only folder that uses MLIR and LLVM, and none of their types leave it.
 *
 * A bridge belongs to one thread at a time; any number of bridges run in parallel. It keeps an MLIR context and a
 * target machine from one emission to the next. Nothing is printed: the message of a failure is in the bridge.
 *
 * The native entry of a phase function is
 *     void NAME(const uint64_t *slots, int64_t begin, int64_t end, void *scratch)
 * with one 8-byte slot for each parameter before begin: a pointer, an i64, or a scalar in its low bytes. On a GPU it is
 * a kernel with these parameters one by one, begin and end after them. */
#ifndef TILE_MLIR_BRIDGE_BRIDGE_H
#define TILE_MLIR_BRIDGE_BRIDGE_H

#include "lang/ir/ir.h"
#include "lang/ir/target.h"
#include "object/code.h"
#include "tile/status.h"

typedef struct TileBridge TileBridge;

typedef enum TileCodeKind {
    TILE_CODE_MLIR,      /* text, as exported */
    TILE_CODE_MLIR_LLVM, /* text, after the MLIR passes */
    TILE_CODE_LLVM,      /* LLVM IR text, optimised */
    TILE_CODE_ASSEMBLY,  /* text */
    TILE_CODE_OBJECT,    /* relocatable ELF */
} TileCodeKind;

typedef struct TileBridgeOptions {
    size_t struct_size;
    bool line_info; /* DWARF from the locations of ops; on CPUs also variables */
} TileBridgeOptions;

/* Milliseconds of the last emission. */
typedef struct TileBridgeTimes {
    double make, verify, passes, translate, optimise, emit;
} TileBridgeTimes;

/* The symbol of a phase's entry: the function's name, with `$` for characters that PTX does not allow. */
void tile_bridge_symbol(const TileFunc *func, char *symbol, size_t size);

tile_status tile_bridge_create(TileBridge **bridge);
void tile_bridge_destroy(TileBridge *bridge);

/* Emits every phase function of the module; values are renumbered. `options` may be NULL. TILE_INTERNAL: an op is
 * left that an earlier pass should have replaced. TILE_BACKEND: LLVM fails. After a fatal error inside LLVM its state
 * is undefined, so every later emission of the process fails with TILE_BACKEND. */
tile_status tile_bridge_emit(TileBridge *bridge, TileModule *module, const TileTarget *target,
                             const TileBridgeOptions *options, TileCodeKind kind, TileCode *code);

/* A parameter of a typed function: a tensor, or a scalar of the language. */
typedef struct TileGlueParameter {
    bool is_tensor;
    TileScalar scalar;
} TileGlueParameter;

/* tile_status SYMBOL(const TileLaunchOptions *, parameters..) and tile_status SYMBOL_kernel(TileKernel **). */
typedef struct TileGlueFunction {
    const char *symbol;
    const TileGlueParameter *parameters;
    size_t parameter_count;
} TileGlueFunction;

/* The part of a linked object that is not a kernel's code: the image's bytes, the addresses of the entries, and the
 * typed functions, which call the launcher (include/tile/linked.h). */
typedef struct TileGlue {
    uint32_t version; /* of the image */
    const void *image;
    size_t image_bytes;
    const char *const *entries; /* symbols of other objects, in the order of the image's phases */
    size_t entry_count;
    const TileGlueFunction *functions;
    size_t function_count;
    bool plugin; /* it releases its state when it is unloaded */
} TileGlue;

/* As tile_bridge_emit with TILE_CODE_OBJECT. The code runs on any machine of the target's architecture. */
tile_status tile_bridge_emit_glue(TileBridge *bridge, const TileTarget *target, const TileGlue *glue, TileCode *code);
/* The message of the last emission's failure, or "". Valid until the next emission. */
const char *tile_bridge_message(const TileBridge *bridge);
TileBridgeTimes tile_bridge_times(const TileBridge *bridge);

#endif
