/* Kernels for NVIDIA GPUs, and what threads of a block do there. Parameters of the kernel are those of the phase, in
 * 8-byte slots' order; its shared memory is the block's dynamic one. */
#include "mlir_bridge/export.h"

#include <stdio.h>
#include <string.h>

/* ---- threads ---- */

static MlirValue special_register(Exporter *exporter, const char *name) {
    return export_intrinsic(exporter, name, scalar_of(exporter, TILE_I32), NO_VALUES);
}

static void set_wide(Exporter *exporter, const TileOp *op, MlirValue word) {
    set_result(exporter, op, 0,
               export_build(exporter, "llvm.zext", scalar_of(exporter, TILE_I64), VALUES(word), NO_ATTRIBUTES));
}

void export_thread(Exporter *exporter, const TileOp *op) {
    set_result(exporter, op, 0, special_register(exporter, "llvm.nvvm.read.ptx.sreg.tid.x"));
}

void export_block_number(Exporter *exporter, const TileOp *op) {
    set_wide(exporter, op, special_register(exporter, "llvm.nvvm.read.ptx.sreg.ctaid.x"));
}

void export_block_count(Exporter *exporter, const TileOp *op) {
    set_wide(exporter, op, special_register(exporter, "llvm.nvvm.read.ptx.sreg.nctaid.x"));
}

static MlirValue word(Exporter *exporter, int64_t value) {
    return export_build(exporter, "llvm.mlir.constant", scalar_of(exporter, TILE_I32), NO_VALUES,
                        ATTRIBUTES(named(exporter, NAME_VALUE, export_integer(exporter, TILE_I32, value))));
}

void export_barrier(Exporter *exporter, const TileOp *op) {
    (void)op;
    export_intrinsic(exporter, "llvm.nvvm.barrier.cta.sync.aligned.all", no_type(), VALUES(word(exporter, 0)));
}

void export_exchange(Exporter *exporter, const TileOp *op) {
    enum { ALL_LANES = -1, CLAMP = 31 };
    bool is_float = tile_op_result(op, 0)->type->scalar == TILE_F32;
    const char *name = is_float ? "llvm.nvvm.shfl.sync.bfly.f32" : "llvm.nvvm.shfl.sync.bfly.i32";
    set_result(exporter, op, 0,
               export_intrinsic(exporter, name, export_type(exporter, tile_op_result(op, 0)->type),
                                VALUES(word(exporter, ALL_LANES), operand_of(exporter, op, 0),
                                       operand_of(exporter, op, 1), word(exporter, CLAMP))));
}

/* ---- kernels ---- */

void tile_bridge_symbol(const TileFunc *func, char *symbol, size_t size) {
    snprintf(symbol, size, "%s", func->name);
    if (!func->threads) return;
    for (char *at = symbol; *at; at++)
        if (!(*at >= 'a' && *at <= 'z') && !(*at >= 'A' && *at <= 'Z') && !(*at >= '0' && *at <= '9') && *at != '_')
            *at = '$';
}

/* extern shared memory: as much as the launch asks for. */
static void declare_shared(Exporter *exporter, MlirModule module, const char *symbol) {
    MlirContext mlir = exporter->mlir;
    MlirOperationState state = mlirOperationStateGet(text_ref("llvm.mlir.global"), exporter->location);
    MlirType bytes = mlirLLVMArrayTypeGet(scalar_of(exporter, TILE_I8), 0);
    MlirNamedAttribute attributes[] = {
        named(exporter, NAME_GLOBAL_TYPE, mlirTypeAttrGet(bytes)),
        named(exporter, NAME_SYMBOL, mlirStringAttrGet(mlir, text_ref(symbol))),
        named(exporter, NAME_LINKAGE, mlirLLVMLinkageAttrGet(mlir, MlirLLVMLinkageExternal)),
        named(exporter, NAME_ADDRESS_SPACE, export_integer(exporter, TILE_I32, BRIDGE_SHARED)),
        named(exporter, NAME_ALIGNMENT, export_integer(exporter, TILE_I64, 1024))};
    mlirOperationStateAddAttributes(&state, sizeof attributes / sizeof *attributes, attributes);
    MlirRegion none = mlirRegionCreate();
    mlirOperationStateAddOwnedRegions(&state, 1, &none);
    mlirBlockAppendOwnedOperation(mlirModuleGetBody(module), mlirOperationCreate(&state));
}

static void mark_kernel(Exporter *exporter, MlirOperation kernel, const TileFunc *func) {
    MlirContext mlir = exporter->mlir;
    char threads[16];
    snprintf(threads, sizeof threads, "%u", func->threads);
    MlirAttribute pair[2] = {mlirStringAttrGet(mlir, text_ref("nvvm.reqntid")),
                             mlirStringAttrGet(mlir, text_ref(threads))};
    MlirAttribute both = mlirArrayAttrGet(mlir, 2, pair);
    mlirOperationSetInherentAttributeByName(kernel, text_ref("passthrough"), mlirArrayAttrGet(mlir, 1, &both));
    mlirOperationSetInherentAttributeByName(kernel, text_ref("CConv"),
                                            mlirLLVMCConvAttrGet(mlir, MlirLLVMCConvPTX_Kernel));
}

void export_kernel(Exporter *exporter, TileFunc *func, MlirModule module, const MlirType *types,
                   const MlirAttribute *attributes) {
    unsigned count = func->body.argument_count;
    const TileType *last = count ? func->body.arguments[count - 1]->type : NULL;
    if (!last || last->kind != TILE_TYPE_POINTER || last->space != TILE_SPACE_SHARED) {
        export_fail(exporter, TILE_INTERNAL, NULL, "a GPU phase's last parameter is its shared memory");
        return;
    }
    char symbol[BRIDGE_SYMBOL_BYTES], shared[BRIDGE_SYMBOL_BYTES + sizeof "$shared"];
    tile_bridge_symbol(func, symbol, sizeof symbol);
    snprintf(shared, sizeof shared, "%s$shared", symbol);
    declare_shared(exporter, module, shared);
    MlirBlock block = export_begin_function(exporter, module, symbol, false, count - 1, types, attributes);
    mark_kernel(exporter, mlirBlockGetParentOperation(block), func);
    for (unsigned i = 0; i + 1 < count; i++)
        exporter->values[func->body.arguments[i]->number] = mlirBlockGetArgument(block, i);
    MlirAttribute global = mlirFlatSymbolRefAttrGet(exporter->mlir, text_ref(shared));
    exporter->values[func->body.arguments[count - 1]->number] =
        export_build(exporter, "llvm.mlir.addressof", types[count - 1], NO_VALUES,
                     ATTRIBUTES(named(exporter, NAME_GLOBAL_NAME, global)));
    export_block(exporter, &func->body);
}
