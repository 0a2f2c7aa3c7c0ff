/* Debug information: locations of ops, the scope that a function is for them, and variables: the scalars that kept the
 * names of the source. They are said beside the code, which is the same without. */
#include "mlir_bridge/export.h"

#include "lang/ir/tensor_map.h"

static MlirAttribute debug_file(Exporter *exporter, uint32_t number) {
    const char *path = number ? exporter->func->module->context->files.items[number] : "";
    MlirAttribute name = mlirStringAttrGet(exporter->mlir, text_ref(path)),
                  folder = mlirStringAttrGet(exporter->mlir, text_ref(""));
    return mlirLLVMDIFileAttrGet(exporter->mlir, name, folder);
}

/* The translation takes the file from the scope, so lines of another file than the function's get a scope of their
 * own. */
MlirLocation export_location(Exporter *exporter, TileLocation place) {
    const char *file = exporter->func->module->context->files.items[place.file];
    MlirLocation location = mlirLocationFileLineColGet(exporter->mlir, text_ref(file), place.line, place.column);
    if (!exporter->scope.ptr || place.file == exporter->func->location.file) return location;
    MlirAttribute scope =
        mlirLLVMDILexicalBlockFileAttrGet(exporter->mlir, exporter->scope, debug_file(exporter, place.file), 0);
    return mlirLocationFusedGet(exporter->mlir, 1, &location, scope);
}

/* DWARF of one function: a compile unit and a subprogram. PTX gets line directives only: ptxas does not optimise code
 * with more debug information. */
MlirAttribute export_scope(Exporter *exporter, const char *symbol) {
    enum { C99 = 0x0c /* DW_LANG_C99 */, DEFINITION_OPTIMISED = 8 | 16 };
    MlirContext mlir = exporter->mlir;
    const TileFunc *func = exporter->func;
    MlirAttribute name = mlirStringAttrGet(mlir, text_ref(symbol)), none = mlirStringAttrGet(mlir, text_ref("")),
                  file = debug_file(exporter, func->location.file);
    MlirAttribute unit = mlirLLVMDICompileUnitAttrGet(
        mlir, mlirDisctinctAttrCreate(exporter->bridge->unit), C99, file, mlirStringAttrGet(mlir, text_ref("tilec")),
        true, func->threads ? MlirLLVMDIEmissionKindDebugDirectivesOnly : MlirLLVMDIEmissionKindFull,
        MlirLLVMDINameTableKindNone, none);
    MlirAttribute null_type = mlirLLVMDINullTypeAttrGet(mlir);
    MlirAttribute type = mlirLLVMDISubroutineTypeAttrGet(mlir, 0, 1, &null_type);
    return mlirLLVMDISubprogramAttrGet(mlir, none, false, mlirDisctinctAttrCreate(exporter->bridge->unit), unit, file,
                                       name, name, file, func->location.line, func->location.line, DEFINITION_OPTIMISED,
                                       type, 0, NULL, 0, NULL);
}

/* ---- variables ---- */

/* DW_ATE of the element type; DWARF has no bf16 and no f8: their bits are shown. */
static enum MlirLLVMTypeEncoding encoding_of(TileScalar scalar) {
    switch (tile_scalar_class(scalar)) {
    case TILE_CLASS_BOOL: return MlirLLVMTypeEncodingBoolean;
    case TILE_CLASS_SIGNED: return MlirLLVMTypeEncodingSigned;
    case TILE_CLASS_UNSIGNED: return MlirLLVMTypeEncodingUnsigned;
    case TILE_CLASS_FLOAT: break;
    }
    bool known = scalar == TILE_F16 || scalar == TILE_F32 || scalar == TILE_F64;
    return known ? MlirLLVMTypeEncodingFloatT : MlirLLVMTypeEncodingUnsigned;
}

static MlirAttribute debug_scalar(Exporter *exporter, TileScalar scalar) {
    enum { BASE_TYPE = 0x24 /* DW_TAG_base_type */ };
    MlirAttribute name = mlirStringAttrGet(exporter->mlir, text_ref(tile_scalar_name(scalar)));
    return mlirLLVMDIBasicTypeAttrGet(exporter->mlir, BASE_TYPE, name, 8u * tile_scalar_bytes(scalar),
                                      encoding_of(scalar));
}

static MlirAttribute debug_pointer(Exporter *exporter, TileScalar scalar) {
    enum { POINTER_TYPE = 0x0f /* DW_TAG_pointer_type */ };
    MlirAttribute none = mlirStringAttrGet(exporter->mlir, text_ref(""));
    return mlirLLVMDIDerivedTypeAttrGet(exporter->mlir, POINTER_TYPE, none, debug_scalar(exporter, scalar), 64, 0, 0,
                                        MLIR_CAPI_DWARF_ADDRESS_SPACE_NULL, mlirAttributeGetNull());
}

static void build_variable(Exporter *exporter, const char *name, MlirAttribute type, MlirValue value) {
    MlirContext mlir = exporter->mlir;
    const TileLocation *at = &exporter->func->location;
    MlirAttribute variable =
        mlirLLVMDILocalVariableAttrGet(mlir, exporter->scope, mlirStringAttrGet(mlir, text_ref(name)),
                                       debug_file(exporter, at->file), at->line, 0, 0, type, 0);
    export_build(exporter, "llvm.intr.dbg.value", no_type(), VALUES(value),
                 ATTRIBUTES(named(exporter, NAME_VARIABLE, variable),
                            named(exporter, NAME_EXPRESSION, mlirLLVMDIExpressionAttrGet(mlir, 0, NULL))));
}

/* Where has the exporter variables: in functions of CPUs, if lines are asked for. */
static bool has_variables(const Exporter *exporter) { return exporter->scope.ptr && !exporter->func->threads; }

void export_variable(Exporter *exporter, const TileValue *value) {
    if (!has_variables(exporter) || !value->name || value->type->kind != TILE_TYPE_SCALAR) return;
    build_variable(exporter, value->name, debug_scalar(exporter, value->type->scalar), value_of(exporter, value));
}

typedef struct DimensionName {
    uint32_t argument, axis;
    const char *name;
} DimensionName;

/* The name of the kernel's dimension: `N` of `%N = dim %x {axis = 1}`. */
static void find_dimension(TileOp *op, void *state) {
    DimensionName *wanted = state;
    if (op->id != TILE_OP_DIM || tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0) != wanted->axis) return;
    const TileValue *tensor = tile_op_operand(op, 0);
    if (tensor->block && !tensor->block->op && tensor->index == wanted->argument && tile_op_result(op, 0)->name)
        wanted->name = tile_op_result(op, 0)->name;
}

/* A tensor is a pointer to its first element; an extent that is a dimension of the kernel has its name. */
static void parameter_variable(Exporter *exporter, const TileParameter *parameter, const TileValue *value) {
    TileFunc *kernel = exporter->func->kernel;
    const TileType *tensor = tile_func_argument_type(exporter->func, parameter->argument);
    DimensionName dimension = {parameter->argument, parameter->axis, NULL};
    if (parameter->role == TILE_ROLE_DATA && tensor)
        build_variable(exporter, parameter->name, debug_pointer(exporter, tensor->scalar), value_of(exporter, value));
    if (parameter->role == TILE_ROLE_SCALAR) export_variable(exporter, value);
    if (parameter->role != TILE_ROLE_EXTENT || !kernel) return;
    tile_block_walk(&kernel->body, find_dimension, &dimension);
    if (!dimension.name) return;
    build_variable(exporter, dimension.name, debug_scalar(exporter, TILE_I64), value_of(exporter, value));
}

void export_parameter_variables(Exporter *exporter) {
    const TileFunc *func = exporter->func;
    if (!has_variables(exporter)) return;
    MlirLocation location = exporter->location;
    exporter->location = export_location(exporter, func->location);
    for (uint32_t i = 0; i < func->body.argument_count; i++)
        parameter_variable(exporter, &func->parameters[i], func->body.arguments[i]);
    exporter->location = location;
}
