/* Export of machine form to MLIR, one function at a time. */
#ifndef TILE_MLIR_BRIDGE_EXPORT_H
#define TILE_MLIR_BRIDGE_EXPORT_H

#include <string.h>

#include "base/records.h"
#include "lang/ir/operands.h"
#include "mlir_bridge/context.h"

enum { BRIDGE_SYMBOL_BYTES = 512 };

/* The parts of the export that differ between families of targets. */
typedef struct Exporter Exporter;
typedef struct ExportFamily {
    MlirType (*pointer)(const Exporter *exporter, TileSpace space);
    /* Exports ops for which the family has an instruction, regardless of mapping.def; false: the op is none of these.
     */
    bool (*instruction)(Exporter *exporter, const TileOp *op);
    void (*assertion)(Exporter *exporter, const TileOp *op);
    void (*opaque)(Exporter *exporter, const TileOp *op);
    /* LLVM's scope of an atomic update that orders no other accesses; NULL: updates are in order with all accesses of
     * all threads. */
    const char *relaxed_scope;
    /* Accesses of vectors of words in global memory may have a predicate, or a policy of the L2 cache. */
    bool predicated_words;
} ExportFamily;

/* export_family.c */
extern const ExportFamily export_cpu, export_gpu;
const ExportFamily *export_family_of(const TileTarget *target);

struct Exporter {
    TileBridge *bridge;
    MlirContext mlir;
    const TileTarget *target;
    const ExportFamily *family;
    const TileFunc *func;
    MlirBlock entry; /* of the body function: lane numbers are built at its front */
    MlirBlock block; /* the insertion point is its end */
    MlirLocation location;
    MlirAttribute scope;        /* debug information of the function; null without */
    MlirValue *values;          /* by the number of a value of the IR */
    MlirValue **lanes;          /* likewise: of the sums of wgmma, which are passed on lane by lane; else NULL */
    TileMap vector_types;       /* TileType to MlirType.ptr */
    MlirValue lane_numbers[64]; /* i64 constants, null until they are used */
    TileMap assertions;         /* ASSERT, PRINT_ITEMS and NEW_RECORD ops to their numbers */
    MlirValue records;          /* GPUs: the parameter, if the function has records */
    MlirValue evict_first, evict_last; /* likewise: policies of the L2 cache, null until they are used */
    TileRecords records_layout;
    bool lines;
    bool streams; /* there is a streaming store, which needs a fence */
    tile_status status;
};

/* Exports every phase function of the module. */
tile_status bridge_export(TileBridge *bridge, TileModule *source, const TileTarget *target, bool lines,
                          MlirModule module);

static inline MlirType no_type(void) { return (MlirType){NULL}; }
static inline MlirNamedAttribute named(const Exporter *exporter, BridgeName name, MlirAttribute attribute) {
    return mlirNamedAttributeGet(exporter->bridge->names[name], attribute);
}
static inline MlirType scalar_of(const Exporter *exporter, TileScalar scalar) {
    return exporter->bridge->scalars[scalar];
}
static inline bool is_x86(const Exporter *exporter) {
    return exporter->target->architecture == TILE_ARCHITECTURE_X86_64;
}

static inline MlirValue value_of(const Exporter *exporter, const TileValue *value) {
    return exporter->values[value->number];
}
static inline MlirValue operand_of(const Exporter *exporter, const TileOp *op, unsigned index) {
    return value_of(exporter, tile_op_operand(op, index));
}
static inline MlirValue named_of(const Exporter *exporter, const TileOp *op, TileOperand name) {
    unsigned count, first = tile_op_operands(op, name, &count);
    return operand_of(exporter, op, first);
}
static inline void set_result(Exporter *exporter, const TileOp *op, unsigned index, MlirValue value) {
    exporter->values[tile_op_result(op, index)->number] = value;
}

/* ---- export_build.c ---- */
/* Records a failure. The first one sets the status; its message names `op`. */
void export_fail(Exporter *exporter, tile_status status, const TileOp *op, const char *format, ...) TILE_PRINTF(4, 5);
/* Fails if the target lacks the instruction, as those before sm_90 do. */
bool export_need(Exporter *exporter, const TileOp *op, bool has, const char *what);
/* Builds an op at the end of the current block; without a result if `result` is null. */
MlirValue export_build(Exporter *exporter, const char *name, MlirType result, unsigned operand_count,
                       const MlirValue *operands, unsigned attribute_count, const MlirNamedAttribute *attributes);
#define VALUES(...)                                                                                                    \
    (sizeof((MlirValue[]){__VA_ARGS__}) / sizeof(MlirValue)), (const MlirValue[]) { __VA_ARGS__ }
#define ATTRIBUTES(...)                                                                                                \
    (sizeof((MlirNamedAttribute[]){__VA_ARGS__}) / sizeof(MlirNamedAttribute)), (const MlirNamedAttribute[]) {         \
        __VA_ARGS__                                                                                                    \
    }
#define NO_VALUES 0, NULL
#define NO_ATTRIBUTES 0, NULL
/* A call of an LLVM intrinsic that the dialect has no op for. */
MlirValue export_intrinsic(Exporter *exporter, const char *name, MlirType result, unsigned operand_count,
                           const MlirValue *operands);
/* An asm; a structure if it has several results. Without ~{memory} among the constraints it accesses registers only. */
MlirValue export_pure_asm(Exporter *exporter, const char *text, const char *constraints, MlirType result, unsigned count, const MlirValue *operands);
MlirValue export_asm(Exporter *exporter, const char *text, const char *constraints, MlirType result, unsigned count,
                     const MlirValue *operands);
/* The MLIR type of a value. */
MlirType export_type(Exporter *exporter, const TileType *type);
/* A vector (or scalar) of the shape of `type`. */
MlirType export_type_like(Exporter *exporter, const TileType *type, TileScalar scalar);
MlirAttribute export_integer(const Exporter *exporter, TileScalar scalar, int64_t value);
MlirValue export_constant(Exporter *exporter, MlirType type, MlirAttribute value);
/* The attribute of a splat constant with these bits, of type `scalar`, in the shape of `type`. */
MlirAttribute export_splat_attribute(Exporter *exporter, const TileType *type, TileScalar scalar, uint64_t bits);
/* Likewise a splat of the integer. */
MlirValue export_splat_integer(Exporter *exporter, const TileType *type, TileScalar scalar, int64_t value);
MlirValue export_compare(Exporter *exporter, bool is_float, int64_t predicate, MlirType result, MlirValue x,
                         MlirValue y);
/* An address of an instruction. A constant offset becomes an immediate of the instruction, so that it needs no register,
 * wherever the addition has been moved to. */
typedef struct ExportAddress {
    MlirValue address;
    int64_t offset;
} ExportAddress;
/* That of the op's first operand. */
ExportAddress export_address(Exporter *exporter, const TileOp *op);
/* An i64 constant; those below 64 are cached. */
MlirValue export_lane_number(Exporter *exporter, int64_t lane);
MlirValue export_broadcast(Exporter *exporter, MlirValue scalar, MlirType vector, int64_t lanes);
MlirType export_vector_of(Exporter *exporter, TileScalar scalar, int64_t lanes);
MlirValue export_empty_vector(Exporter *exporter, MlirType type);
MlirValue export_insert_lane(Exporter *exporter, MlirValue vector, MlirType type, MlirValue lane, int64_t number);
MlirValue export_lane(Exporter *exporter, MlirValue vector, MlirType type, int64_t lane);
MlirValue export_same_bits(Exporter *exporter, MlirValue value, MlirType type);
MlirValue export_field(Exporter *exporter, MlirValue structure, MlirType type, unsigned number);
/* A region of this block, terminated by a yield of `value` (null: of nothing); and an scf.if. */
MlirRegion export_simple_region(Exporter *exporter, MlirBlock block, MlirValue value);
MlirValue export_scf_if(Exporter *exporter, MlirValue condition, MlirType result, MlirRegion then,
                        MlirRegion otherwise);
/* Builds an llvm.func with one block, and sets the insertion point to it. */
MlirBlock export_begin_function(Exporter *exporter, MlirModule module, const char *symbol, bool internal,
                                unsigned parameter_count, const MlirType *types, const MlirAttribute *arguments);

/* ---- export_debug.c ---- */
MlirLocation export_location(Exporter *exporter, TileLocation place);
/* That of the exporter's function. */
MlirAttribute export_scope(Exporter *exporter, const char *symbol);
/* From here on the variable of the value's name is this value, if it has a name and is a scalar. */
void export_variable(Exporter *exporter, const TileValue *value);
/* The function's parameters, at its begin. */
void export_parameter_variables(Exporter *exporter);

/* ---- export_ops.c ---- */
/* `opaque` for vectors in registers, and for lanes that are threads. */
void export_vector_opaque(Exporter *exporter, const TileOp *op);
void export_thread_opaque(Exporter *exporter, const TileOp *op);

/* ---- export_accesses.c ---- */
/* One word, or a structure of several; and such a structure's words as a vector, if there are several. */
MlirType export_words_type(Exporter *exporter, unsigned count);
MlirValue export_join_words(Exporter *exporter, MlirValue loaded, unsigned count);
/* The register of the op's L2 cache policy, made at the function's begin; null: it has none. */
MlirValue export_cache_policy(Exporter *exporter, const TileOp *op);
/* A load of constant global memory with an L2 cache policy; false: it has none. */
bool export_hinted_load(Exporter *exporter, const TileOp *op);
/* The same of a vector with a mask that is one bool for all lanes; false: it is none of so many words. */
bool export_predicated_load(Exporter *exporter, const TileOp *op);
bool export_predicated_store(Exporter *exporter, const TileOp *op);
bool export_hinted_store(Exporter *exporter, const TileOp *op);

/* ---- export_bytes.c ---- */
/* Exports a conversion of bytes to f32, of an even number of lanes; false: it is none. */
bool export_bytes_to_floats(Exporter *exporter, const TileOp *op);

/* ---- export_gpu.c ---- */
/* Exports ops for which GPUs have an instruction and CPUs do not; false: the op is none of these. */
bool export_instruction(Exporter *exporter, const TileOp *op);
/* An i64; a bool. */
MlirValue export_block_index(Exporter *exporter);
MlirValue export_is_first_thread(Exporter *exporter);
/* A bool: is the warp of the block one of the threads before `end`? */
MlirValue export_is_warp_below(Exporter *exporter, int64_t end);
/* An arrival at the mbarriers in one place of a cluster's blocks. */
void export_cluster_arrive(Exporter *exporter, const TileOp *op);

/* ---- export_wgmma.c ---- */
/* Is carried value i of the `for` passed on lane by lane? */
bool export_splits(const TileOp *loop, unsigned i);
/* Defines a value by its lanes, an array in the bridge's arena; also as a vector, if that is asked for. */
void export_define_lanes(Exporter *exporter, const TileValue *value, MlirValue *lanes);
/* The lanes of a vector. */
const MlirValue *export_lanes(Exporter *exporter, const TileValue *value);

/* ---- export_memory.c ---- */
/* A pointer of the type `result` at a byte offset (i64) from another; and relaxed atomic updates of a 64-bit word,
 * which return the old value. */
MlirValue export_offset_pointer(Exporter *exporter, MlirType result, MlirValue pointer, MlirValue offset);
MlirValue export_relaxed_swap(Exporter *exporter, MlirValue pointer, MlirValue expected, MlirValue value);
MlirValue export_relaxed_add(Exporter *exporter, MlirValue pointer, MlirValue value);

/* ---- export_control.c ---- */
/* Stores the assertion's number in the scratch of the thread. */
void export_scratch_assert(Exporter *exporter, const TileOp *op);

/* ---- export_records.c ---- */
/* Records a failed assertion of a block; begins the records of a function, if it has any. */
void export_block_assert(Exporter *exporter, const TileOp *op);
bool export_begin_records(Exporter *exporter, TileFunc *func);

/* ---- export_block.c ---- */
/* Exports the ops of a block at the end of the current one. */
void export_block(Exporter *exporter, const TileBlock *block);

/* ---- export_kernel.c ---- */
/* The whole function of a phase that has threads. */
void export_kernel(Exporter *exporter, TileFunc *func, MlirModule module, const MlirType *types,
                   const MlirAttribute *attributes);

/* Predicates of llvm.icmp and llvm.fcmp. */
enum { ICMP_EQ, ICMP_NE, ICMP_SLT, ICMP_SLE, ICMP_SGT, ICMP_SGE, ICMP_ULT, ICMP_ULE, ICMP_UGT, ICMP_UGE };
enum { FCMP_OEQ = 1, FCMP_OGT = 2, FCMP_OGE = 3, FCMP_OLT = 4, FCMP_OLE = 5, FCMP_UNE = 13, FCMP_UNO = 14 };

/* The functions of mapping.def, in export_*.c. */
#define DIRECT(id, float_name, signed_name, unsigned_name, bool_name)
#define COMPARE(id, float_predicate, signed_predicate, unsigned_predicate)
#define CUSTOM(id, function) void export_##function(Exporter *exporter, const TileOp *op);
#define GONE(id, pass)
#include "mlir_bridge/mapping.def"
#undef DIRECT
#undef COMPARE
#undef CUSTOM
#undef GONE

#endif
