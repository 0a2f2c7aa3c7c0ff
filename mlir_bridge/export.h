/* Building MLIR from machine form, one function at a time. */
#ifndef TILE_MLIR_BRIDGE_EXPORT_H
#define TILE_MLIR_BRIDGE_EXPORT_H

#include <string.h>

#include "base/records.h"
#include "lang/ir/operands.h"
#include "mlir_bridge/context.h"

enum { BRIDGE_SYMBOL_BYTES = 512 };

/* How a family's phases and some of their ops look in MLIR. */
typedef struct Exporter Exporter;
typedef struct ExportFamily {
    MlirType (*pointer)(const Exporter *exporter, TileSpace space);
    /* What the family has an instruction for, whatever mapping.def says; false: the op is none of these. */
    bool (*instruction)(Exporter *exporter, const TileOp *op);
    void (*assertion)(Exporter *exporter, const TileOp *op);
    void (*opaque)(Exporter *exporter, const TileOp *op);
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
    MlirBlock entry; /* of the body function: lane numbers stand at its front */
    MlirBlock block; /* where ops go */
    MlirLocation location;
    MlirAttribute scope;        /* debug information of the function; null without */
    MlirValue *values;          /* by the number of a value of the IR */
    TileMap vector_types;       /* TileType to MlirType.ptr */
    MlirValue lane_numbers[64]; /* i64 constants, null until asked for */
    TileMap assertions;         /* ASSERT, PRINT_ITEMS and NEW_RECORD ops to their numbers */
    MlirValue records;          /* GPUs: the parameter, where the function has anything to say */
    TileRecords records_layout;
    bool lines;
    bool streams; /* a store went past the caches and has to be fenced */
    tile_status status;
};

/* Exports every phase function of the module. */
tile_status bridge_export(TileBridge *bridge, TileModule *source, const TileTarget *target, bool lines,
                          MlirModule module);

/* The first complaint sets the status; `op` is named in it. */
void export_fail(Exporter *exporter, tile_status status, const TileOp *op, const char *format, ...) TILE_PRINTF(4, 5);

/* llvm.func with one block; the exporter goes on in it. */
MlirBlock export_begin_function(Exporter *exporter, MlirModule module, const char *symbol, bool internal,
                                unsigned parameter_count, const MlirType *types, const MlirAttribute *arguments);
/* export_gpu.c: the whole function of a phase that has threads. */
void export_kernel(Exporter *exporter, TileFunc *func, MlirModule module, const MlirType *types,
                   const MlirAttribute *attributes);
/* What GPUs have an instruction for and CPUs do not; false: the op is none of these. */
bool export_instruction(Exporter *exporter, const TileOp *op);
/* A load of constant global memory that says how long the L2 cache shall keep it; false: there is nothing to say. */
bool export_hinted_load(Exporter *exporter, const TileOp *op);
bool export_hinted_store(Exporter *exporter, const TileOp *op);

/* export_records.c: what is false of a block's assertion is noted; whether the function says anything at all. */
void export_block_assert(Exporter *exporter, const TileOp *op);
bool export_begin_records(Exporter *exporter, TileFunc *func);
/* i64; bool. */
MlirValue export_block_index(Exporter *exporter);
MlirValue export_is_first_thread(Exporter *exporter);

/* An op at the end of the current block; the result is null where `result` is. */
MlirValue export_build(Exporter *exporter, const char *name, MlirType result, unsigned operand_count,
                       const MlirValue *operands, unsigned attribute_count, const MlirNamedAttribute *attributes);
/* A call of LLVM's intrinsic, for those that the dialect has no op for. */
MlirValue export_intrinsic(Exporter *exporter, const char *name, MlirType result, unsigned operand_count,
                           const MlirValue *operands);
#define VALUES(...)                                                                                                    \
    (sizeof((MlirValue[]){__VA_ARGS__}) / sizeof(MlirValue)), (const MlirValue[]) { __VA_ARGS__ }
#define ATTRIBUTES(...)                                                                                                \
    (sizeof((MlirNamedAttribute[]){__VA_ARGS__}) / sizeof(MlirNamedAttribute)), (const MlirNamedAttribute[]) {         \
        __VA_ARGS__                                                                                                    \
    }
#define NO_VALUES 0, NULL
#define NO_ATTRIBUTES 0, NULL
static inline MlirType no_type(void) { return (MlirType){NULL}; }
static inline MlirNamedAttribute named(const Exporter *exporter, BridgeName name, MlirAttribute attribute) {
    return mlirNamedAttributeGet(exporter->bridge->names[name], attribute);
}
static inline MlirType scalar_of(const Exporter *exporter, TileScalar scalar) {
    return exporter->bridge->scalars[scalar];
}
static inline bool is_x86(const Exporter *exporter) { return strncmp(exporter->target->triple, "x86_64", 6) == 0; }
/* The MLIR type of a value. */
MlirType export_type(Exporter *exporter, const TileType *type);
/* A vector (or scalar) of the shape of `type`. */
MlirType export_type_like(Exporter *exporter, const TileType *type, TileScalar scalar);
MlirAttribute export_integer(const Exporter *exporter, TileScalar scalar, int64_t value);

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

/* Exports the ops of a block at the end of the current one. */
void export_block(Exporter *exporter, const TileBlock *block);

/* export_ops.c */
MlirValue export_constant(Exporter *exporter, MlirType type, MlirAttribute value);
/* Every lane the integer, whose bits are those of `scalar`, in the shape of `type`. */
MlirValue export_splat_integer(Exporter *exporter, const TileType *type, TileScalar scalar, int64_t value);
MlirValue export_compare(Exporter *exporter, bool is_float, int64_t predicate, MlirType result, MlirValue x,
                         MlirValue y);
/* An i64 constant below 64, or any other. */
MlirValue export_lane_number(Exporter *exporter, int64_t lane);
MlirValue export_broadcast(Exporter *exporter, MlirValue scalar, MlirType vector, int64_t lanes);

/* export_memory.c: a pointer of the type `result`, so many bytes (i64) behind another; and updates of a word of 64 bits
 * that order nothing else, which give what was there. */
MlirValue export_offset_pointer(Exporter *exporter, MlirType result, MlirValue pointer, MlirValue offset);
MlirValue export_relaxed_swap(Exporter *exporter, MlirValue pointer, MlirValue expected, MlirValue value);
MlirValue export_relaxed_add(Exporter *exporter, MlirValue pointer, MlirValue value);

/* The assertion's number goes to the scratch of the thread (export_control.c); what `opaque` is where a vector is
 * registers, and where lanes are threads (export_ops.c). */
void export_scratch_assert(Exporter *exporter, const TileOp *op);
void export_vector_opaque(Exporter *exporter, const TileOp *op);
void export_thread_opaque(Exporter *exporter, const TileOp *op);

/* export_control.c: a region with this block, ended by the yield of `value` (null: of nothing); and an scf.if. */
MlirRegion export_simple_region(Exporter *exporter, MlirBlock block, MlirValue value);
MlirValue export_choice(Exporter *exporter, MlirValue condition, MlirType result, MlirRegion then,
                        MlirRegion otherwise);

/* Predicates of llvm.icmp and llvm.fcmp. */
enum { ICMP_EQ, ICMP_NE, ICMP_SLT, ICMP_SLE, ICMP_SGT, ICMP_SGE, ICMP_ULT, ICMP_ULE, ICMP_UGT, ICMP_UGE };
enum { FCMP_OEQ = 1, FCMP_OGT = 2, FCMP_OGE = 3, FCMP_OLT = 4, FCMP_OLE = 5, FCMP_UNE = 13, FCMP_UNO = 14 };

/* The functions that mapping.def names, in export_ops.c, export_control.c and export_memory.c. */
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
