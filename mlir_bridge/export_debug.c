/* Debug information: locations of ops, and the scope that a function is for them. */
#include "mlir_bridge/export.h"

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

/* DWARF of one function: a compile unit and a subprogram, for line tables only. PTX gets line directives only: ptxas
 * does not optimise code with more debug information. */
MlirAttribute export_scope(Exporter *exporter, const char *symbol) {
    enum { C99 = 0x0c /* DW_LANG_C99 */, DEFINITION_OPTIMISED = 8 | 16 };
    MlirContext mlir = exporter->mlir;
    const TileFunc *func = exporter->func;
    MlirAttribute name = mlirStringAttrGet(mlir, text_ref(symbol)), none = mlirStringAttrGet(mlir, text_ref("")),
                  file = debug_file(exporter, func->location.file);
    MlirAttribute unit = mlirLLVMDICompileUnitAttrGet(
        mlir, mlirDisctinctAttrCreate(exporter->bridge->unit), C99, file, mlirStringAttrGet(mlir, text_ref("tilec")),
        true, func->threads ? MlirLLVMDIEmissionKindDebugDirectivesOnly : MlirLLVMDIEmissionKindLineTablesOnly,
        MlirLLVMDINameTableKindNone, none);
    MlirAttribute null_type = mlirLLVMDINullTypeAttrGet(mlir);
    MlirAttribute type = mlirLLVMDISubroutineTypeAttrGet(mlir, 0, 1, &null_type);
    return mlirLLVMDISubprogramAttrGet(mlir, none, false, mlirDisctinctAttrCreate(exporter->bridge->unit), unit, file,
                                       name, name, file, func->location.line, func->location.line, DEFINITION_OPTIMISED,
                                       type, 0, NULL, 0, NULL);
}
