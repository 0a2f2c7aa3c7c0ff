/* From machine form to code, through the bridge. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/compile/backend.h"
#include "lang/ir/text.h"

static bool write_text(char *path, const char *text) {
    int descriptor = mkstemp(path);
    FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "w");
    bool written = file && fputs(text, file) >= 0;
    if (descriptor >= 0 && !file) close(descriptor);
    written &= file && fclose(file) == 0;
    if (descriptor >= 0 && !written) unlink(path);
    return written;
}

void tile_unit_write_reproducer(TileUnit *unit, const char *text) {
    const char *folder = getenv("TMPDIR");
    char *path = tile_arena_format(unit->arena, "%s/tile-reproducer-XXXXXX", folder && *folder ? folder : "/tmp");
    void (*hold)(bool held) = unit->input->compiler->hold;
    if (hold) hold(true);
    bool written = write_text(path, text);
    if (hold) hold(false);
    if (written) tile_text_format(&unit->message, "\nwhat shows the error is in %s", path);
}

/* Adds the times of MLIR and LLVM as the bridge measured them; the clock then shows the rest of its work. */
static void add_times(TileUnit *unit) {
    TileBridgeTimes times = tile_bridge_times(unit->bridge);
    uint64_t mlir = (uint64_t)(1e6 * (times.make + times.verify + times.passes));
    uint64_t llvm = (uint64_t)(1e6 * (times.translate + times.optimise));
    atomic_fetch_add_explicit(&unit->input->step_ns[TILE_STEP_MLIR], mlir, memory_order_relaxed);
    atomic_fetch_add_explicit(&unit->input->step_ns[TILE_STEP_LLVM], llvm, memory_order_relaxed);
    unit->clock += mlir + llvm;
}

tile_status tile_unit_emit(TileUnit *unit, TileCodeKind kind) {
    if (!unit->bridge) TILE_TRY(tile_compiler_take_bridge(unit->input->compiler, &unit->bridge));
    tile_code_release(&unit->code);
    /* Profilers of GPUs find the kernel's text by line information, which costs nothing at run time. */
    const TileTarget *target = unit->input->target;
    const TileBackend *backend = tile_backend_of(target);
    bool places = backend && backend->places && kind == TILE_CODE_ASSEMBLY && !unit->input->ahead;
    const TileExplanation *explanation = unit->input->compiler->explanation;
    places = places || (explanation && explanation->texts && kind == TILE_CODE_ASSEMBLY);
    TileBridgeOptions options = {.struct_size = sizeof options, .line_info = unit->input->lines || places};
    tile_status status = tile_bridge_emit(unit->bridge, unit->module, target, &options, kind, &unit->code);
    add_times(unit);
    tile_input_step(unit->input, TILE_STEP_CODE, &unit->clock);
    if (status == TILE_OK) return TILE_OK;
    tile_text_add(&unit->message, tile_bridge_message(unit->bridge));
    if (status == TILE_INTERNAL || status == TILE_BACKEND) {
        TileText text = {.arena = unit->arena};
        tile_module_print(&text, unit->module, 0);
        tile_unit_write_reproducer(unit, tile_text_get(&text));
    }
    return status;
}
