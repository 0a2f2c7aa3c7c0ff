/* The bridge: from a module of machine form to MLIR, through its passes, to LLVM. */
#include "mlir_bridge/bridge.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "mlir_bridge/context.h"
#include "mlir_bridge/export.h"

tile_status tile_bridge_create(TileBridge **result) {
    *result = NULL;
    TileBridge *bridge = calloc(1, sizeof *bridge);
    if (!bridge) return TILE_OUT_OF_MEMORY;
    if (!bridge_create_context(bridge)) {
        free(bridge);
        return TILE_OUT_OF_MEMORY;
    }
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
