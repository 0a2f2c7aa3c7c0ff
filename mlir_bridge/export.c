/* Functions: the body with attributes of its parameters, and the native entry that loads its arguments from slots. */
#include "mlir_bridge/export.h"

#include "lang/ir/assertion.h"

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
    export_parameter_variables(exporter);
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
    if (exporter->lines) exporter->scope = export_scope(exporter, func->threads ? symbol : body);
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
