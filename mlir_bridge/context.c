/* The MLIR context of a bridge, and the messages and times of an emission. */
#include "mlir_bridge/context.h"

#include <time.h>

#include "mlir-c/Diagnostics.h"
#include "mlir-c/Dialect/Arith.h"
#include "mlir-c/Dialect/ControlFlow.h"
#include "mlir-c/Dialect/SCF.h"
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

bool bridge_create_context(TileBridge *bridge) {
    bridge->mlir = create_mlir_context();
    if (mlirContextIsNull(bridge->mlir)) return false;
    mlirContextAttachDiagnosticHandler(bridge->mlir, take_diagnostic, bridge, NULL);
    cache_types(bridge);
    return true;
}

bool bridge_begin(TileBridge *bridge) {
    tile_arena_destroy(bridge->arena);
    bridge->message = (TileText){0};
    bridge->times = (TileBridgeTimes){0};
    bridge->unrolls = bridge->tile_registers = false;
    bridge->arena = tile_arena_create(NULL);
    bridge->message.arena = bridge->arena;
    return bridge->arena != NULL;
}
