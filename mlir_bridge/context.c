#include "mlir_bridge/context.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mlir-c/Diagnostics.h"
#include "mlir-c/Dialect/Arith.h"
#include "mlir-c/Dialect/ControlFlow.h"
#include "mlir-c/Dialect/SCF.h"
#include "mlir_bridge/export.h"
#include "mlir_bridge/register.h"

double bridge_milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

void bridge_complain(TileBridge *bridge, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    if (bridge->message.length) tile_text_add_char(&bridge->message, '\n');
    tile_text_add(&bridge->message, tile_arena_format_list(bridge->arena, format, arguments));
    va_end(arguments);
}

void bridge_text_callback(MlirStringRef text, void *state) { tile_text_add_bytes(state, text.data, text.length); }

static MlirLogicalResult take_diagnostic(MlirDiagnostic diagnostic, void *state) {
    TileBridge *bridge = state;
    if (!bridge->arena) return mlirLogicalResultSuccess();
    if (mlirDiagnosticGetSeverity(diagnostic) == MlirDiagnosticError) {
        TileText text = {.arena = bridge->arena};
        mlirDiagnosticPrint(diagnostic, bridge_text_callback, &text);
        bridge_complain(bridge, "MLIR: %s", tile_text_get(&text));
    }
    return mlirLogicalResultSuccess();
}

/* Only the dialects of the exporter and the passes: fewer dialects start faster. */
static MlirContext create_mlir_context(void) {
    MlirDialectRegistry registry = mlirDialectRegistryCreate();
    mlirDialectHandleInsertDialect(mlirGetDialectHandle__llvm__(), registry);
    mlirDialectHandleInsertDialect(mlirGetDialectHandle__scf__(), registry);
    mlirDialectHandleInsertDialect(mlirGetDialectHandle__arith__(), registry);
    mlirDialectHandleInsertDialect(mlirGetDialectHandle__cf__(), registry);
    tile_register_translations(registry);
    MlirContext context = mlirContextCreateWithRegistry(registry, false);
    mlirDialectRegistryDestroy(registry);
    if (!mlirContextIsNull(context)) mlirContextLoadAllAvailableDialects(context);
    return context;
}

static MlirType scalar_type(MlirContext context, TileScalar scalar) {
    switch (scalar) {
    case TILE_F16: return mlirF16TypeGet(context);
    case TILE_F32: return mlirF32TypeGet(context);
    case TILE_F64: return mlirF64TypeGet(context);
    default: return mlirIntegerTypeGet(context, tile_scalar_bits(scalar));
    }
}

static void cache_types(TileBridge *bridge) {
    static const char *const names[NAME_COUNT] = {
#define BRIDGE_NAME_TEXT(id, text) text,
        TILE_BRIDGE_NAMES(BRIDGE_NAME_TEXT)
#undef BRIDGE_NAME_TEXT
    };
    for (int i = 0; i < NAME_COUNT; i++) bridge->names[i] = mlirIdentifierGet(bridge->mlir, text_ref(names[i]));
    for (int i = 0; i < TILE_SCALAR_COUNT; i++) bridge->scalars[i] = scalar_type(bridge->mlir, (TileScalar)i);
    bridge->unknown = mlirLocationUnknownGet(bridge->mlir);
    bridge->nothing = mlirLLVMVoidTypeGet(bridge->mlir);
    bridge->pointer = mlirLLVMPointerTypeGet(bridge->mlir, 0);
    for (unsigned i = 0; i < BRIDGE_SPACES; i++) bridge->gpu_pointers[i] = mlirLLVMPointerTypeGet(bridge->mlir, i);
    bridge->unit = mlirUnitAttrGet(bridge->mlir);
}

tile_status tile_bridge_create(TileBridge **result) {
    *result = NULL;
    TileBridge *bridge = calloc(1, sizeof *bridge);
    if (!bridge) return TILE_OUT_OF_MEMORY;
    bridge->mlir = create_mlir_context();
    if (mlirContextIsNull(bridge->mlir)) {
        free(bridge);
        return TILE_OUT_OF_MEMORY;
    }
    mlirContextAttachDiagnosticHandler(bridge->mlir, take_diagnostic, bridge, NULL);
    cache_types(bridge);
    *result = bridge;
    return TILE_OK;
}

void tile_bridge_destroy(TileBridge *bridge) {
    if (!bridge) return;
    bridge_drop_target(bridge);
    mlirContextDestroy(bridge->mlir);
    tile_arena_destroy(bridge->arena);
    free(bridge);
}

static tile_status print_module(MlirModule module, bool locations, TileBridge *bridge, TileCode *code) {
    TileText text = {.arena = bridge->arena};
    MlirOpPrintingFlags flags = mlirOpPrintingFlagsCreate();
    if (locations) mlirOpPrintingFlagsEnableDebugInfo(flags, true, true);
    mlirOperationPrintWithFlags(mlirModuleGetOperation(module), flags, bridge_text_callback, &text);
    mlirOpPrintingFlagsDestroy(flags);
    code->data = malloc(text.length + 1);
    if (!code->data) return TILE_OUT_OF_MEMORY;
    memcpy(code->data, tile_text_get(&text), text.length + 1);
    code->size = text.length;
    return TILE_OK;
}

/* The part of an emission between the arena's guard and the release of the MLIR module. */
static tile_status emit_module(TileBridge *bridge, TileModule *source, const TileTarget *target,
                               const TileBridgeOptions *options, TileCodeKind kind, MlirModule module, TileCode *code) {
    bool lines = options && options->line_info;
    double start = bridge_milliseconds();
    TILE_TRY(bridge_export(bridge, source, target, lines, module));
    double made = bridge_milliseconds();
    bridge->times.make = made - start;
    if (!mlirOperationVerify(mlirModuleGetOperation(module))) {
        bridge_complain(bridge, "the exported module breaks a rule of MLIR");
        return TILE_INTERNAL;
    }
    double verified = bridge_milliseconds();
    bridge->times.verify = verified - made;
    if (kind == TILE_CODE_MLIR) return print_module(module, lines, bridge, code);
    if (!bridge_run_passes(bridge, module)) {
        bridge_complain(bridge, "MLIR's passes failed");
        return TILE_INTERNAL;
    }
    bridge->times.passes = bridge_milliseconds() - verified;
    if (kind == TILE_CODE_MLIR_LLVM) return print_module(module, lines, bridge, code);
    return bridge_generate(bridge, module, kind, code);
}

bool bridge_begin(TileBridge *bridge) {
    tile_arena_destroy(bridge->arena);
    bridge->message = (TileText){0};
    bridge->times = (TileBridgeTimes){0};
    bridge->unrolls = false;
    bridge->arena = tile_arena_create(NULL);
    bridge->message.arena = bridge->arena;
    return bridge->arena != NULL;
}

tile_status tile_bridge_emit(TileBridge *bridge, TileModule *source, const TileTarget *target,
                             const TileBridgeOptions *options, TileCodeKind kind, TileCode *code) {
    *code = (TileCode){0};
    if (!bridge_begin(bridge)) return TILE_OUT_OF_MEMORY;
    MlirModule module = mlirModuleCreateEmpty(bridge->unknown);
    jmp_buf guard;
    tile_status status;
    if (setjmp(guard) == 0) {
        tile_arena_set_guard(bridge->arena, &guard);
        status = bridge_set_target(bridge, target);
        if (status == TILE_OK) status = emit_module(bridge, source, target, options, kind, module, code);
    } else {
        status = TILE_OUT_OF_MEMORY;
    }
    tile_arena_set_guard(bridge->arena, NULL);
    mlirModuleDestroy(module);
    return status;
}

const char *tile_bridge_message(const TileBridge *bridge) { return tile_text_get(&bridge->message); }
TileBridgeTimes tile_bridge_times(const TileBridge *bridge) { return bridge->times; }
