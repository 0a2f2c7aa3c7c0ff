/* Functions: the body with attributes of its parameters, the native entry that loads its arguments from slots, and
 * the export of ops by the mapping table. */
#include "mlir_bridge/export.h"

#include <string.h>

#include "lang/ir/assertion.h"

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

/* ---- ops by the table ---- */

static void export_direct(Exporter *exporter, const TileOp *op, const char *const names[4]) {
    const TileValue *result = tile_op_result(op, 0);
    TileScalar scalar = result->type->scalar;
    const char *name = NULL;
    switch (tile_scalar_class(scalar)) {
    case TILE_CLASS_FLOAT: name = names[0]; break;
    case TILE_CLASS_SIGNED: name = names[1]; break;
    case TILE_CLASS_UNSIGNED: name = names[2]; break;
    case TILE_CLASS_BOOL: name = names[3]; break;
    }
    bool storage_only = tile_scalar_is_float(scalar) && scalar != TILE_F16 && scalar != TILE_F32 && scalar != TILE_F64;
    if (!name || (storage_only && op->id != TILE_OP_SELECT)) {
        export_fail(exporter, TILE_INTERNAL, op, "an earlier pass had to expand it for %s", tile_scalar_name(scalar));
        return;
    }
    MlirValue operands[3];
    for (unsigned i = 0; i < op->operand_count; i++) operands[i] = operand_of(exporter, op, i);
    set_result(
        exporter, op, 0,
        export_build(exporter, name, export_type(exporter, result->type), op->operand_count, operands, NO_ATTRIBUTES));
}

static void export_comparison(Exporter *exporter, const TileOp *op, int64_t float_predicate, int64_t signed_predicate,
                              int64_t unsigned_predicate) {
    TileScalar scalar = tile_op_operand(op, 0)->type->scalar;
    TileScalarClass class = tile_scalar_class(scalar);
    bool is_float = class == TILE_CLASS_FLOAT;
    if (is_float && tile_scalar_bits(scalar) < 16 + (scalar == TILE_BF16)) {
        export_fail(exporter, TILE_INTERNAL, op, "an earlier pass had to expand it for %s", tile_scalar_name(scalar));
        return;
    }
    int64_t predicate =
        is_float ? float_predicate : (class == TILE_CLASS_SIGNED ? signed_predicate : unsigned_predicate);
    set_result(exporter, op, 0,
               export_compare(exporter, is_float, predicate, export_type(exporter, tile_op_result(op, 0)->type),
                              operand_of(exporter, op, 0), operand_of(exporter, op, 1)));
}

static void export_op(Exporter *exporter, const TileOp *op) {
    if (exporter->family->instruction(exporter, op)) return;
    switch ((TileOpId)op->id) {
#define DIRECT(id, float_name, signed_name, unsigned_name, bool_name)                                                  \
    case TILE_OP_##id:                                                                                                 \
        export_direct(exporter, op, (const char *const[4]){float_name, signed_name, unsigned_name, bool_name});        \
        return;
#define COMPARE(id, float_predicate, signed_predicate, unsigned_predicate)                                             \
    case TILE_OP_##id:                                                                                                 \
        export_comparison(exporter, op, FCMP_##float_predicate, ICMP_##signed_predicate, ICMP_##unsigned_predicate);   \
        return;
#define CUSTOM(id, function)                                                                                           \
    case TILE_OP_##id:                                                                                                 \
        export_##function(exporter, op);                                                                               \
        return;
#define GONE(id, pass)                                                                                                 \
    case TILE_OP_##id:                                                                                                 \
        export_fail(exporter, TILE_INTERNAL, op, "the pass %s had to replace it", pass);                               \
        return;
#include "mlir_bridge/mapping.def"
#undef DIRECT
#undef COMPARE
#undef CUSTOM
#undef GONE
    default: export_fail(exporter, TILE_INTERNAL, op, "an op of tile form is left in machine form"); return;
    }
}

static MlirAttribute debug_file(Exporter *exporter, uint32_t number) {
    const char *path = number ? exporter->func->module->context->files.items[number] : "";
    MlirAttribute name = mlirStringAttrGet(exporter->mlir, text_ref(path)),
                  folder = mlirStringAttrGet(exporter->mlir, text_ref(""));
    return mlirLLVMDIFileAttrGet(exporter->mlir, name, folder);
}

/* The translation takes the file from the scope, so lines of another file than the function's get a scope of their
 * own. */
static MlirLocation location_of(Exporter *exporter, TileLocation place) {
    const char *file = exporter->func->module->context->files.items[place.file];
    MlirLocation location = mlirLocationFileLineColGet(exporter->mlir, text_ref(file), place.line, place.column);
    if (!exporter->scope.ptr || place.file == exporter->func->location.file) return location;
    MlirAttribute scope =
        mlirLLVMDILexicalBlockFileAttrGet(exporter->mlir, exporter->scope, debug_file(exporter, place.file), 0);
    return mlirLocationFusedGet(exporter->mlir, 1, &location, scope);
}

void export_block(Exporter *exporter, const TileBlock *block) {
    TileLocation last = {0};
    for (const TileOp *op = block->first; op && exporter->status == TILE_OK; op = op->next) {
        if (exporter->lines && op->location.file && memcmp(&last, &op->location, sizeof last) != 0) {
            last = op->location;
            exporter->location = location_of(exporter, last);
        }
        export_op(exporter, op);
    }
}

/* ---- functions ---- */

static MlirAttribute parameter_attributes(Exporter *exporter, const TileParameter *parameter, const TileType *type) {
    MlirNamedAttribute attributes[3];
    intptr_t count = 0;
    if (type->kind == TILE_TYPE_POINTER && type->space == TILE_SPACE_MAP) {
        MlirType map = mlirLLVMArrayTypeGet(scalar_of(exporter, TILE_I8), TILE_MAP_BYTES);
        attributes[count++] = named(exporter, NAME_BY_VALUE, mlirTypeAttrGet(map));
        attributes[count++] = named(exporter, NAME_ALIGN, export_integer(exporter, TILE_I64, TILE_MAP_ALIGN));
    } else if (type->kind == TILE_TYPE_POINTER) {
        int64_t align = type->space == TILE_SPACE_SCRATCH ? 64 : parameter->used_align;
        if (align > 1) attributes[count++] = named(exporter, NAME_ALIGN, export_integer(exporter, TILE_I64, align));
        if (parameter->noalias || type->space == TILE_SPACE_SCRATCH)
            attributes[count++] = named(exporter, NAME_NOALIAS, exporter->bridge->unit);
        if (parameter->readonly) attributes[count++] = named(exporter, NAME_READONLY, exporter->bridge->unit);
    }
    return mlirDictionaryAttrGet(exporter->mlir, count, attributes);
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

static bool is_phase_signature(const TileFunc *func) {
    unsigned count = func->body.argument_count;
    if (count < 3) return false;
    const TileType *begin = func->body.arguments[count - 3]->type, *end = func->body.arguments[count - 2]->type,
                   *scratch = func->body.arguments[count - 1]->type;
    return begin->kind == TILE_TYPE_SCALAR && begin->scalar == TILE_I64 && begin == end &&
           scratch->kind == TILE_TYPE_POINTER && scratch->space == TILE_SPACE_SCRATCH;
}

static void export_body(Exporter *exporter, TileFunc *func, MlirModule module, const char *symbol,
                        const MlirType *types, const MlirAttribute *arguments) {
    unsigned count = func->body.argument_count;
    MlirBlock block = export_begin_function(exporter, module, symbol, true, count, types, arguments);
    for (unsigned i = 0; i < count; i++)
        exporter->values[func->body.arguments[i]->number] = mlirBlockGetArgument(block, i);
    export_block(exporter, &func->body);
}

/* Loads a slot's value: the low bytes of eight. */
static MlirValue load_slot(Exporter *exporter, MlirValue slots, unsigned index, const TileType *type) {
    int32_t offset = (int32_t)index * 8;
    MlirValue address = export_build(
        exporter, "llvm.getelementptr", exporter->bridge->pointer, VALUES(slots),
        ATTRIBUTES(named(exporter, NAME_CONSTANT_INDICES, mlirDenseI32ArrayGet(exporter->mlir, 1, &offset)),
                   named(exporter, NAME_ELEMENT_TYPE, mlirTypeAttrGet(scalar_of(exporter, TILE_I8))),
                   named(exporter, NAME_NO_WRAP, export_integer(exporter, TILE_I32, 0))));
    bool is_bool = type->kind == TILE_TYPE_SCALAR && type->scalar == TILE_BOOL;
    MlirType loaded = is_bool ? scalar_of(exporter, TILE_I8) : export_type(exporter, type);
    MlirValue value = export_build(exporter, "llvm.load", loaded, VALUES(address),
                                   ATTRIBUTES(named(exporter, NAME_ALIGNMENT, export_integer(exporter, TILE_I64, 8))));
    if (!is_bool) return value;
    return export_build(exporter, "llvm.trunc", scalar_of(exporter, TILE_BOOL), VALUES(value), NO_ATTRIBUTES);
}

static void export_entry(Exporter *exporter, const TileFunc *func, MlirModule module, const char *body) {
    TileBridge *bridge = exporter->bridge;
    MlirType types[4] = {bridge->pointer, scalar_of(exporter, TILE_I64), scalar_of(exporter, TILE_I64),
                         bridge->pointer};
    MlirAttribute none = mlirDictionaryAttrGet(exporter->mlir, 0, NULL), arguments[4] = {none, none, none, none};
    MlirBlock block = export_begin_function(exporter, module, func->name, false, 4, types, arguments);
    unsigned count = func->body.argument_count;
    MlirValue *values = TILE_NEW_ARRAY(bridge->arena, MlirValue, count);
    for (unsigned i = 0; i + 3 < count; i++)
        values[i] = load_slot(exporter, mlirBlockGetArgument(block, 0), i, func->body.arguments[i]->type);
    for (unsigned i = 0; i < 3; i++) values[count - 3 + i] = mlirBlockGetArgument(block, i + 1);
    int32_t segments[2] = {(int32_t)count, 0};
    export_build(exporter, "llvm.call", no_type(), count, values,
                 ATTRIBUTES(named(exporter, NAME_CALLEE, mlirFlatSymbolRefAttrGet(exporter->mlir, text_ref(body))),
                            named(exporter, NAME_SEGMENTS, mlirDenseI32ArrayGet(exporter->mlir, 2, segments)),
                            named(exporter, NAME_BUNDLES, mlirDenseI32ArrayGet(exporter->mlir, 0, NULL))));
    if (exporter->streams && is_x86(exporter)) {
        /* The lock that hands results to another thread does not order streaming stores of x86, but those of AArch64.
         */
        export_intrinsic(exporter, "llvm.x86.sse.sfence", no_type(), NO_VALUES);
    }
    export_build(exporter, "llvm.return", no_type(), NO_VALUES, NO_ATTRIBUTES);
}

/* DWARF of one function: a compile unit and a subprogram, for line tables only. PTX gets line directives only: ptxas
 * does not optimise code with more debug information. */
static MlirAttribute debug_scope(Exporter *exporter, const char *symbol) {
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

static void number_assertions(Exporter *exporter, TileFunc *func) {
    TileArena *arena = exporter->bridge->arena;
    TileAssertions assertions = tile_func_assertions(func, arena);
    tile_map_init(&exporter->assertions, arena);
    for (size_t i = 0; i < assertions.count; i++)
        tile_map_set(&exporter->assertions, assertions.items[i], (void *)(uintptr_t)(i + 1));
    TileAssertions prints = tile_func_prints(func, arena);
    for (size_t i = 0; i < prints.count; i++)
        tile_map_set(&exporter->assertions, prints.items[i], (void *)(uintptr_t)(i + 1));
}

static void export_phase(Exporter *exporter, TileFunc *func, MlirModule module) {
    TileArena *arena = exporter->bridge->arena;
    if (!func->threads && !is_phase_signature(func)) {
        export_fail(exporter, TILE_INTERNAL, NULL, "a phase's last parameters are begin, end (i64) and scratch");
        return;
    }
    const char *body = tile_arena_format(arena, "%s.body", func->name);
    uint32_t values = tile_func_number(func);
    exporter->values = TILE_NEW_ARRAY(arena, MlirValue, values);
    exporter->lanes = TILE_NEW_ARRAY(arena, MlirValue *, values);
    number_assertions(exporter, func);
    unsigned count = func->body.argument_count;
    MlirType *types = TILE_NEW_ARRAY(arena, MlirType, count);
    for (unsigned i = 0; i < count; i++) types[i] = export_type(exporter, func->body.arguments[i]->type);
    char symbol[BRIDGE_SYMBOL_BYTES];
    tile_bridge_symbol(func, symbol, sizeof symbol);
    if (exporter->lines) exporter->scope = debug_scope(exporter, func->threads ? symbol : body);
    MlirAttribute *arguments = TILE_NEW_ARRAY(arena, MlirAttribute, count);
    for (unsigned i = 0; i < count; i++)
        arguments[i] = parameter_attributes(exporter, &func->parameters[i], func->body.arguments[i]->type);
    if (func->threads)
        export_kernel(exporter, func, module, types, arguments);
    else
        export_body(exporter, func, module, body, types, arguments);
    exporter->scope = (MlirAttribute){NULL};
    exporter->location = exporter->bridge->unknown;
    if (exporter->status == TILE_OK && !func->threads) export_entry(exporter, func, module, body);
}

tile_status bridge_export(TileBridge *bridge, TileModule *source, const TileTarget *target, bool lines,
                          MlirModule module) {
    bool any = false;
    for (TileFunc *func = source->first; func; func = func->next) {
        if (func->kind != TILE_FUNC_PHASE) continue;
        if (!any)
            bridge->source_name = func->location.file ? source->context->files.items[func->location.file] : func->name;
        any = true;
        Exporter exporter = {.bridge = bridge,
                             .mlir = bridge->mlir,
                             .target = target,
                             .family = export_family_of(target),
                             .func = func,
                             .location = bridge->unknown,
                             .lines = lines};
        tile_map_init(&exporter.vector_types, bridge->arena);
        export_phase(&exporter, func, module);
        if (exporter.status != TILE_OK) return exporter.status;
    }
    if (any) return TILE_OK;
    bridge_complain(bridge, "the module has no phase function to emit");
    return TILE_INTERNAL;
}
