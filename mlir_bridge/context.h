/* The state of a bridge: one MLIR context, with cached types and identifiers. */
#ifndef TILE_MLIR_BRIDGE_CONTEXT_H
#define TILE_MLIR_BRIDGE_CONTEXT_H

#include "llvm-c/TargetMachine.h"
#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"
#include "mlir-c/Dialect/LLVM.h"
#include "mlir-c/IR.h"

#include "mlir_bridge/bridge.h"

/* X(ID, text): the attribute names in use. */
#define TILE_BRIDGE_NAMES(X)                                                                                           \
    X(VALUE, "value")                                                                                                  \
    X(BIN_OP, "bin_op")                                                                                                \
    X(SCOPE_NAME, "syncscope")                                                                                         \
    X(ORDERING, "ordering")                                                                                            \
    X(SUCCESS_ORDERING, "success_ordering")                                                                            \
    X(FAILURE_ORDERING, "failure_ordering")                                                                            \
    X(PREDICATE, "predicate")                                                                                          \
    X(ALIGNMENT, "alignment")                                                                                          \
    X(NONTEMPORAL, "nontemporal")                                                                                      \
    X(CONSTANT_INDICES, "rawConstantIndices")                                                                          \
    X(ELEMENT_TYPE, "elem_type")                                                                                       \
    X(NO_WRAP, "noWrapFlags")                                                                                          \
    X(MASK, "mask")                                                                                                    \
    X(SYMBOL, "sym_name")                                                                                              \
    X(FUNCTION_TYPE, "function_type")                                                                                  \
    X(LINKAGE, "linkage")                                                                                              \
    X(ARGUMENTS, "arg_attrs")                                                                                          \
    X(NOALIAS, "llvm.noalias")                                                                                         \
    X(READONLY, "llvm.readonly")                                                                                       \
    X(BY_VALUE, "llvm.byval")                                                                                          \
    X(ALIGN, "llvm.align")                                                                                             \
    X(ASM, "asm_string")                                                                                               \
    X(CONSTRAINTS, "constraints")                                                                                      \
    X(SIDE_EFFECTS, "has_side_effects")                                                                                \
    X(SEGMENTS, "operandSegmentSizes")                                                                                 \
    X(BUNDLES, "op_bundle_sizes")                                                                                      \
    X(MIN_IS_POISON, "is_int_min_poison")                                                                              \
    X(ZERO_IS_POISON, "is_zero_poison")                                                                                \
    X(WRITES, "rw")                                                                                                    \
    X(LOCALITY, "hint")                                                                                                \
    X(CACHE, "cache")                                                                                                  \
    X(POSITION, "position")                                                                                            \
    X(CALLEE, "callee")                                                                                                \
    X(INTRINSIC, "intrin")                                                                                             \
    X(GLOBAL_TYPE, "global_type")                                                                                      \
    X(GLOBAL_NAME, "global_name")                                                                                      \
    X(ADDRESS_SPACE, "addr_space")                                                                                     \
    X(LOOP_ANNOTATION, "loop_annotation")                                                                              \
    X(LOOP_HINT, "llvm.loop_annotation")                                                                               \
    X(VARIABLE, "varInfo")                                                                                             \
    X(EXPRESSION, "locationExpr")

typedef enum BridgeName {
#define BRIDGE_NAME_ENUM(id, text) NAME_##id,
    TILE_BRIDGE_NAMES(BRIDGE_NAME_ENUM)
#undef BRIDGE_NAME_ENUM
        NAME_COUNT
} BridgeName;

/* Address spaces of NVPTX. */
enum { BRIDGE_GENERIC = 0, BRIDGE_GLOBAL = 1, BRIDGE_SHARED = 3, BRIDGE_SPACES };

struct TileBridge {
    MlirContext mlir;
    MlirLocation unknown;
    MlirType nothing, pointer;
    MlirType gpu_pointers[BRIDGE_SPACES]; /* by address space of a GPU */
    MlirType scalars[TILE_SCALAR_COUNT];  /* a value's type; bf16 and f8 are integers of their width */
    MlirAttribute unit;
    MlirIdentifier names[NAME_COUNT];
    LLVMTargetMachineRef machine; /* for the target below */
    char *triple, *cpu, *features;
    TileArchitecture architecture;
    uint32_t vector_bytes;
    bool has_masks;
    TileArena *arena; /* of the last emission: the message and the exporter's tables */
    TileText message;
    TileBridgeTimes times;
    const char *source_name; /* the emitted module's source file, or a function's name */
    bool unrolls;            /* the emitted module has loops to unroll */
    bool tile_registers;     /* it has products in tile registers of AMX */
};

/* context.c */
/* Creates the MLIR context and what is cached of it; false: out of memory. */
bool bridge_create_context(TileBridge *bridge);
/* Discards the last emission; false: out of memory. */
bool bridge_begin(TileBridge *bridge);
/* Adds a line to the bridge's message. */
void bridge_complain(TileBridge *bridge, const char *format, ...) TILE_PRINTF(2, 3);
double bridge_milliseconds(void);

static inline MlirStringRef text_ref(const char *text) { return mlirStringRefCreateFromCString(text); }
/* MLIR's printers call this with a TileText. */
void bridge_text_callback(MlirStringRef text, void *state);

/* pipeline.c: lowers scf to the LLVM dialect. */
bool bridge_run_passes(TileBridge *bridge, MlirModule module);

/* llvm.c */
/* Initialises LLVM once in a process. Thread-safe. */
void bridge_initialise_llvm(void);
tile_status bridge_set_target(TileBridge *bridge, const TileTarget *target);
void bridge_drop_target(TileBridge *bridge);
typedef struct BridgeGuarded {
    tile_status (*run)(void *state);
    void *state;
} BridgeGuarded;
/* Runs a function inside of LLVM; a fatal error becomes TILE_BACKEND, and all memory of LLVM is leaked. */
tile_status bridge_run_guarded(TileBridge *bridge, BridgeGuarded guarded);
LLVMAttributeRef bridge_enum_attribute(LLVMContextRef context, const char *name, uint64_t value);
/* Marks an asm that accesses no memory: by default LLVM assumes that it does, and moves no load across it. */
void bridge_mark_asm(LLVMContextRef context, LLVMValueRef call);

/* emit.c */
tile_status bridge_generate(TileBridge *bridge, MlirModule module, TileCodeKind kind, TileCode *code);
/* The same for a module that `make` fills, inside of LLVM's error guard and without optimisation. */
tile_status bridge_generate_with(TileBridge *bridge, void (*make)(LLVMModuleRef module, const void *state),
                                 const void *state, TileCode *code);
/* masks.c: runs after the optimiser and before the code generator. */
void bridge_harden_masks(TileBridge *bridge, LLVMModuleRef module);
/* assembler.c: likewise. */
void bridge_avoid_assembler_faults(TileBridge *bridge, LLVMModuleRef module);
/* halves.c: likewise. */
void bridge_widen_upper_halves(TileBridge *bridge, LLVMModuleRef module);

#endif
