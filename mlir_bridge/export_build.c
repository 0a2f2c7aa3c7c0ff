/* What the export of all ops is made of: MLIR ops at the insertion point, types, constants, lanes of vectors. */
#include "mlir_bridge/export.h"

#include "lang/ir/build.h"

void export_fail(Exporter *exporter, tile_status status, const TileOp *op, const char *format, ...) {
    if (exporter->status != TILE_OK) return;
    exporter->status = status;
    va_list arguments;
    va_start(arguments, format);
    const char *text = tile_arena_format_list(exporter->bridge->arena, format, arguments);
    va_end(arguments);
    if (op)
        bridge_complain(exporter->bridge, "%s: `%s` at %u:%u: %s", exporter->func->name, tile_op_info(op->id)->mnemonic,
                        op->location.line, op->location.column, text);
    else
        bridge_complain(exporter->bridge, "%s: %s", exporter->func->name, text);
}

MlirValue export_build(Exporter *exporter, const char *name, MlirType result, unsigned operand_count,
                       const MlirValue *operands, unsigned attribute_count, const MlirNamedAttribute *attributes) {
    MlirOperationState state = mlirOperationStateGet(text_ref(name), exporter->location);
    if (result.ptr) mlirOperationStateAddResults(&state, 1, &result);
    mlirOperationStateAddOperands(&state, operand_count, operands);
    mlirOperationStateAddAttributes(&state, attribute_count, attributes);
    MlirOperation op = mlirOperationCreate(&state);
    mlirBlockAppendOwnedOperation(exporter->block, op);
    return result.ptr ? mlirOperationGetResult(op, 0) : (MlirValue){NULL};
}

MlirValue export_intrinsic(Exporter *exporter, const char *name, MlirType result, unsigned operand_count,
                           const MlirValue *operands) {
    MlirContext mlir = exporter->mlir;
    int32_t segments[2] = {(int32_t)operand_count, 0};
    return export_build(exporter, "llvm.call_intrinsic", result, operand_count, operands,
                        ATTRIBUTES(named(exporter, NAME_INTRINSIC, mlirStringAttrGet(mlir, text_ref(name))),
                                   named(exporter, NAME_SEGMENTS, mlirDenseI32ArrayGet(mlir, 2, segments)),
                                   named(exporter, NAME_BUNDLES, mlirDenseI32ArrayGet(mlir, 0, NULL))));
}

bool export_need(Exporter *exporter, const TileOp *op, bool has, const char *what) {
    if (has) return true;
    export_fail(exporter, TILE_UNSUPPORTED, op, "the target %s has no %s; sm_90a is the first that has",
                exporter->target->name, what);
    return false;
}

MlirValue export_asm(Exporter *exporter, const char *text, const char *constraints, MlirType result, unsigned count,
                     const MlirValue *operands) {
    MlirContext mlir = exporter->mlir;
    return export_build(exporter, "llvm.inline_asm", result, count, operands,
                        ATTRIBUTES(named(exporter, NAME_ASM, mlirStringAttrGet(mlir, text_ref(text))),
                                   named(exporter, NAME_CONSTRAINTS, mlirStringAttrGet(mlir, text_ref(constraints))),
                                   named(exporter, NAME_SIDE_EFFECTS, exporter->bridge->unit)));
}

MlirValue export_pure_asm(Exporter *exporter, const char *text, const char *constraints, MlirType result, unsigned count, const MlirValue *operands) {
    MlirContext mlir = exporter->mlir;
    return export_build(exporter, "llvm.inline_asm", result, count, operands,
                        ATTRIBUTES(named(exporter, NAME_ASM, mlirStringAttrGet(mlir, text_ref(text))),
                                   named(exporter, NAME_CONSTRAINTS, mlirStringAttrGet(mlir, text_ref(constraints)))));
}

/* ---- types ---- */

MlirAttribute export_integer(const Exporter *exporter, TileScalar scalar, int64_t value) {
    return mlirIntegerAttrGet(scalar_of(exporter, scalar), value);
}

static MlirType vector_type(Exporter *exporter, TileScalar scalar, int64_t lanes, bool scalable) {
    return mlirVectorTypeGetScalable(1, &lanes, &scalable, scalar_of(exporter, scalar));
}

MlirType export_type(Exporter *exporter, const TileType *type) {
    if (type->kind == TILE_TYPE_SCALAR) return scalar_of(exporter, type->scalar);
    if (type->kind == TILE_TYPE_POINTER) return exporter->family->pointer(exporter, (TileSpace)type->space);
    if (type->kind != TILE_TYPE_VECTOR) {
        export_fail(exporter, TILE_INTERNAL, NULL, "a type of tile form is left in machine form");
        return scalar_of(exporter, TILE_I64);
    }
    TileMapEntry *known = tile_map_find(&exporter->vector_types, type);
    if (known) return (MlirType){known->value};
    MlirType made = vector_type(exporter, type->scalar, type->extent[0], type->scalable);
    tile_map_set(&exporter->vector_types, type, (void *)made.ptr);
    return made;
}

MlirType export_type_like(Exporter *exporter, const TileType *type, TileScalar scalar) {
    if (type->kind != TILE_TYPE_VECTOR) return scalar_of(exporter, scalar);
    return vector_type(exporter, scalar, type->extent[0], type->scalable);
}

/* ---- values ---- */

MlirValue export_constant(Exporter *exporter, MlirType type, MlirAttribute value) {
    return export_build(exporter, "llvm.mlir.constant", type, NO_VALUES,
                        ATTRIBUTES(named(exporter, NAME_VALUE, value)));
}

/* Elements are raw bytes: a conversion to double would lose the payload of a NaN. */
MlirAttribute export_splat_attribute(Exporter *exporter, const TileType *type, TileScalar scalar, uint64_t bits) {
    MlirType element = scalar_of(exporter, scalar);
    if (type->kind == TILE_TYPE_VECTOR) {
        MlirType vector = export_type_like(exporter, type, scalar);
        if (scalar == TILE_BOOL) return mlirDenseElementsAttrBoolSplatGet(vector, bits & 1);
        return mlirDenseElementsAttrRawBufferGet(vector, tile_scalar_bytes(scalar), &bits);
    }
    return mlirIntegerAttrGet(element, (int64_t)bits);
}

MlirValue export_splat_integer(Exporter *exporter, const TileType *type, TileScalar scalar, int64_t value) {
    return export_constant(exporter, export_type_like(exporter, type, scalar),
                           export_splat_attribute(exporter, type, scalar, (uint64_t)value));
}

MlirValue export_compare(Exporter *exporter, bool is_float, int64_t predicate, MlirType result, MlirValue x,
                         MlirValue y) {
    return export_build(exporter, is_float ? "llvm.fcmp" : "llvm.icmp", result, VALUES(x, y),
                        ATTRIBUTES(named(exporter, NAME_PREDICATE, export_integer(exporter, TILE_I64, predicate))));
}

ExportAddress export_address(Exporter *exporter, const TileOp *op) {
    const TileOp *add = tile_value_def(tile_op_operand(op, 0), TILE_OP_PTR_ADD);
    ExportAddress place = {.offset = 0};
    bool fixed = add && tile_value_integer(tile_op_operand(add, 1), &place.offset);
    place.address = operand_of(exporter, fixed ? add : op, 0);
    return place;
}

/* ---- lanes ---- */

MlirValue export_lane_number(Exporter *exporter, int64_t lane) {
    bool cached = lane < (int64_t)(sizeof exporter->lane_numbers / sizeof exporter->lane_numbers[0]);
    if (cached && exporter->lane_numbers[lane].ptr) return exporter->lane_numbers[lane];
    MlirNamedAttribute value = named(exporter, NAME_VALUE, export_integer(exporter, TILE_I64, lane));
    MlirType type = scalar_of(exporter, TILE_I64);
    MlirOperationState state = mlirOperationStateGet(text_ref("llvm.mlir.constant"), exporter->bridge->unknown);
    mlirOperationStateAddResults(&state, 1, &type);
    mlirOperationStateAddAttributes(&state, 1, &value);
    MlirOperation op = mlirOperationCreate(&state);
    mlirBlockInsertOwnedOperation(exporter->entry, 0, op);
    MlirValue result = mlirOperationGetResult(op, 0);
    if (cached) exporter->lane_numbers[lane] = result;
    return result;
}

MlirValue export_broadcast(Exporter *exporter, MlirValue scalar, MlirType vector, int64_t lanes) {
    MlirValue poison = export_build(exporter, "llvm.mlir.poison", vector, NO_VALUES, NO_ATTRIBUTES);
    MlirValue first = export_build(exporter, "llvm.insertelement", vector,
                                   VALUES(poison, scalar, export_lane_number(exporter, 0)), NO_ATTRIBUTES);
    int32_t *zeros = TILE_NEW_ARRAY(exporter->bridge->arena, int32_t, lanes);
    return export_build(exporter, "llvm.shufflevector", vector, VALUES(first, poison),
                        ATTRIBUTES(named(exporter, NAME_MASK, mlirDenseI32ArrayGet(exporter->mlir, lanes, zeros))));
}

MlirType export_vector_of(Exporter *exporter, TileScalar scalar, int64_t lanes) {
    return mlirVectorTypeGet(1, &lanes, scalar_of(exporter, scalar));
}

MlirValue export_empty_vector(Exporter *exporter, MlirType type) {
    return export_build(exporter, "llvm.mlir.poison", type, NO_VALUES, NO_ATTRIBUTES);
}

MlirValue export_insert_lane(Exporter *exporter, MlirValue vector, MlirType type, MlirValue lane, int64_t number) {
    return export_build(exporter, "llvm.insertelement", type,
                        VALUES(vector, lane, export_lane_number(exporter, number)), NO_ATTRIBUTES);
}

MlirValue export_lane(Exporter *exporter, MlirValue vector, MlirType type, int64_t lane) {
    return export_build(exporter, "llvm.extractelement", type, VALUES(vector, export_lane_number(exporter, lane)),
                        NO_ATTRIBUTES);
}

MlirValue export_same_bits(Exporter *exporter, MlirValue value, MlirType type) {
    return export_build(exporter, "llvm.bitcast", type, VALUES(value), NO_ATTRIBUTES);
}

MlirValue export_field(Exporter *exporter, MlirValue structure, MlirType type, unsigned number) {
    int64_t position = number;
    return export_build(exporter, "llvm.extractvalue", type, VALUES(structure),
                        ATTRIBUTES(named(exporter, NAME_POSITION, mlirDenseI64ArrayGet(exporter->mlir, 1, &position))));
}

/* ---- regions and functions ---- */

MlirRegion export_simple_region(Exporter *exporter, MlirBlock block, MlirValue value) {
    MlirBlock outer = exporter->block;
    exporter->block = block;
    export_build(exporter, "scf.yield", no_type(), value.ptr ? 1 : 0, &value, NO_ATTRIBUTES);
    exporter->block = outer;
    MlirRegion region = mlirRegionCreate();
    mlirRegionAppendOwnedBlock(region, block);
    return region;
}

MlirValue export_scf_if(Exporter *exporter, MlirValue condition, MlirType result, MlirRegion then,
                        MlirRegion otherwise) {
    MlirRegion regions[2] = {then, otherwise};
    MlirOperationState state = mlirOperationStateGet(text_ref("scf.if"), exporter->location);
    mlirOperationStateAddOperands(&state, 1, &condition);
    if (result.ptr) mlirOperationStateAddResults(&state, 1, &result);
    mlirOperationStateAddOwnedRegions(&state, 2, regions);
    MlirOperation made = mlirOperationCreate(&state);
    mlirBlockAppendOwnedOperation(exporter->block, made);
    return result.ptr ? mlirOperationGetResult(made, 0) : (MlirValue){NULL};
}

MlirBlock export_begin_function(Exporter *exporter, MlirModule module, const char *symbol, bool internal,
                                unsigned parameter_count, const MlirType *types, const MlirAttribute *arguments) {
    TileBridge *bridge = exporter->bridge;
    MlirType type = mlirLLVMFunctionTypeGet(bridge->nothing, parameter_count, types, false);
    MlirLLVMLinkage linkage = internal ? MlirLLVMLinkageInternal : MlirLLVMLinkageExternal;
    MlirLocation location = exporter->location;
    if (exporter->scope.ptr) location = mlirLocationFusedGet(exporter->mlir, 1, &location, exporter->scope);
    MlirOperationState state = mlirOperationStateGet(text_ref("llvm.func"), location);
    MlirNamedAttribute attributes[] = {
        named(exporter, NAME_SYMBOL, mlirStringAttrGet(exporter->mlir, text_ref(symbol))),
        named(exporter, NAME_FUNCTION_TYPE, mlirTypeAttrGet(type)),
        named(exporter, NAME_LINKAGE, mlirLLVMLinkageAttrGet(exporter->mlir, linkage)),
        named(exporter, NAME_ARGUMENTS, mlirArrayAttrGet(exporter->mlir, parameter_count, arguments))};
    mlirOperationStateAddAttributes(&state, 4, attributes);
    MlirLocation *locations = TILE_NEW_ARRAY(bridge->arena, MlirLocation, parameter_count);
    for (unsigned i = 0; i < parameter_count; i++) locations[i] = exporter->location;
    MlirBlock block = mlirBlockCreate(parameter_count, types, locations);
    MlirRegion region = mlirRegionCreate();
    mlirRegionAppendOwnedBlock(region, block);
    mlirOperationStateAddOwnedRegions(&state, 1, &region);
    mlirBlockAppendOwnedOperation(mlirModuleGetBody(module), mlirOperationCreate(&state));
    exporter->block = exporter->entry = block;
    return block;
}
