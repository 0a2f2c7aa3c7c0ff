/* Products of words: in vectors, and in tile registers of AMX, by LLVM's intrinsics on registers of given numbers: those on values of type x86_amx leave it
 * to LLVM to assign registers, to spill them and to configure. */
#include "mlir_bridge/export.h"

static MlirValue tile_register(Exporter *exporter, const TileOp *op, unsigned index) {
    int64_t number = tile_op_get(op, TILE_ATTRIBUTE_TILE_REGISTERS)->integers[index];
    return export_constant(exporter, scalar_of(exporter, TILE_I8), export_integer(exporter, TILE_I8, number));
}

static void call(Exporter *exporter, const TileOp *op, const char *name, unsigned count, const MlirValue *operands) {
    exporter->bridge->tile_registers = true;
    if (exporter->target->has_amx)
        export_intrinsic(exporter, name, no_type(), count, operands);
    else
        export_fail(exporter, TILE_UNSUPPORTED, op, "the target %s has no AMX", exporter->target->name);
}

void export_amx_configure(Exporter *exporter, const TileOp *op) {
    call(exporter, op, "llvm.x86.ldtilecfg", VALUES(operand_of(exporter, op, 0)));
}

void export_amx_release(Exporter *exporter, const TileOp *op) { call(exporter, op, "llvm.x86.tilerelease", NO_VALUES); }

void export_amx_zero(Exporter *exporter, const TileOp *op) {
    call(exporter, op, "llvm.x86.tilezero", VALUES(tile_register(exporter, op, 0)));
}

void export_amx_memory(Exporter *exporter, const TileOp *op) {
    const char *name = op->id == TILE_OP_AMX_LOAD ? "llvm.x86.tileloadd64" : "llvm.x86.tilestored64";
    call(exporter, op, name,
         VALUES(tile_register(exporter, op, 0), operand_of(exporter, op, 0), operand_of(exporter, op, 1)));
}

void export_amx_dot(Exporter *exporter, const TileOp *op) {
    static const char *const of_bytes[2][2] = {{"llvm.x86.tdpbuud", "llvm.x86.tdpbusd"},
                                               {"llvm.x86.tdpbsud", "llvm.x86.tdpbssd"}};
    const TileType *const *types = tile_op_get(op, TILE_ATTRIBUTE_TYPES)->types;
    bool is_signed[2];
    for (unsigned i = 0; i < 2; i++) is_signed[i] = tile_scalar_class(types[i]->scalar) == TILE_CLASS_SIGNED;
    const char *name = types[0]->scalar == TILE_BF16 ? "llvm.x86.tdpbf16ps" : of_bytes[is_signed[0]][is_signed[1]];
    call(exporter, op, name,
         VALUES(tile_register(exporter, op, 0), tile_register(exporter, op, 1), tile_register(exporter, op, 2)));
}

static MlirValue cast(Exporter *exporter, MlirValue value, MlirType type) {
    return export_build(exporter, "llvm.bitcast", type, VALUES(value), NO_ATTRIBUTES);
}

/* LLVM's intrinsics for a register of 512 bits, or of 256. */
void export_dot_words(Exporter *exporter, const TileOp *op) {
    enum { LANES = 16 };
    const int64_t lanes = tile_op_result(op, 0)->type->extent[0], pairs = 2 * lanes;
    bool half = lanes == LANES / 2, floats = tile_op_get(op, TILE_ATTRIBUTE_TYPES)->types[0]->scalar == TILE_BF16;
    bool has = floats ? exporter->target->has_bf16_dot : exporter->target->has_vnni;
    if (!export_need(exporter, op, has && (half || lanes == LANES), "products of so many words")) return;
    MlirType type = floats ? mlirVectorTypeGet(1, &pairs, mlirBF16TypeGet(exporter->mlir)) : export_vector_of(exporter, TILE_I8, 4 * lanes);
    MlirValue a = cast(exporter, named_of(exporter, op, TILE_OPERAND_A), type),
              b = cast(exporter, named_of(exporter, op, TILE_OPERAND_B), type);
    MlirType sums = export_type(exporter, tile_op_result(op, 0)->type);
    const char *of_bytes = half ? "llvm.x86.avx512.vpdpbusd.256" : "llvm.x86.avx512.vpdpbusd.512";
    const char *name = !floats ? of_bytes : half ? "llvm.x86.avx512bf16.dpbf16ps.256" : "llvm.x86.avx512bf16.dpbf16ps.512";
    set_result(exporter, op, 0,
               export_intrinsic(exporter, name, sums, VALUES(named_of(exporter, op, TILE_OPERAND_SUM), a, b)));
}
