/* Kernels for NVIDIA GPUs. Their parameters are those of the phase, in the order of 8-byte slots; their shared memory is
 * dynamic. */
#include "mlir_bridge/export.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void tile_bridge_symbol(const TileFunc *func, char *symbol, size_t size) {
    snprintf(symbol, size, "%s", func->name);
    if (!func->threads) return;
    for (char *at = symbol; *at; at++)
        if (!(*at >= 'a' && *at <= 'z') && !(*at >= 'A' && *at <= 'Z') && !(*at >= '0' && *at <= '9') && *at != '_')
            *at = '$';
}

/* extern shared memory, of the size that the launch passes. */
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

/* A pair of a name and a text. */
static MlirAttribute function_attribute(Exporter *exporter, const char *name, const char *text) {
    MlirAttribute pair[2] = {mlirStringAttrGet(exporter->mlir, text_ref(name)), mlirStringAttrGet(exporter->mlir, text_ref(text))};
    return mlirArrayAttrGet(exporter->mlir, 2, pair);
}

/* The assembler lets threads change the number of their registers only if it knows how many they begin with. A launch finds
 * the size of a cluster in the code. */
static void mark_kernel(Exporter *exporter, MlirOperation kernel, const TileFunc *func) {
    MlirContext mlir = exporter->mlir;
    MlirAttribute attributes[4];
    unsigned count = 0;
    TileArena *arena = exporter->bridge->arena;
    attributes[count++] = function_attribute(exporter, "nvvm.reqntid", tile_arena_format(arena, "%" PRIu32, func->threads));
    if (func->registers)
        attributes[count++] = function_attribute(exporter, "nvvm.maxnreg", tile_arena_format(arena, "%" PRIu32, func->registers));
    else if (func->blocks_together[0])
        attributes[count++] = function_attribute(exporter, "nvvm.minctasm", tile_arena_format(arena, "%" PRIu32, func->blocks_together[0]));
    if (func->cluster > 1)
        attributes[count++] = function_attribute(exporter, "nvvm.cluster_dim", tile_arena_format(arena, "%" PRIu32 ",1,1", func->cluster));
    mlirOperationSetInherentAttributeByName(kernel, text_ref("passthrough"), mlirArrayAttrGet(mlir, count, attributes));
    mlirOperationSetInherentAttributeByName(kernel, text_ref("CConv"),
                                            mlirLLVMCConvAttrGet(mlir, MlirLLVMCConvPTX_Kernel));
}

/* The records' address is the last parameter, in the position of the shared memory. */
static MlirBlock begin_kernel(Exporter *exporter, TileFunc *func, MlirModule module, const char *symbol,
                              const MlirType *types, const MlirAttribute *attributes) {
    unsigned count = func->body.argument_count;
    if (!export_begin_records(exporter, func))
        return export_begin_function(exporter, module, symbol, false, count - 1, types, attributes);
    MlirType *all = TILE_NEW_ARRAY(exporter->bridge->arena, MlirType, count);
    MlirAttribute *both = TILE_NEW_ARRAY(exporter->bridge->arena, MlirAttribute, count);
    memcpy(all, types, count * sizeof *all);
    memcpy(both, attributes, count * sizeof *both);
    all[count - 1] = exporter->bridge->gpu_pointers[BRIDGE_GLOBAL];
    both[count - 1] = mlirDictionaryAttrGet(exporter->mlir, 0, NULL);
    MlirBlock block = export_begin_function(exporter, module, symbol, false, count, all, both);
    exporter->records = mlirBlockGetArgument(block, count - 1);
    return block;
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
    MlirBlock block = begin_kernel(exporter, func, module, symbol, types, attributes);
    mark_kernel(exporter, mlirBlockGetParentOperation(block), func);
    for (unsigned i = 0; i + 1 < count; i++)
        exporter->values[func->body.arguments[i]->number] = mlirBlockGetArgument(block, i);
    MlirAttribute global = mlirFlatSymbolRefAttrGet(exporter->mlir, text_ref(shared));
    exporter->values[func->body.arguments[count - 1]->number] =
        export_build(exporter, "llvm.mlir.addressof", types[count - 1], NO_VALUES,
                     ATTRIBUTES(named(exporter, NAME_GLOBAL_NAME, global)));
    export_block(exporter, &func->body);
}
