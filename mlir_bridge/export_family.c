/* The differences between phases of CPUs and GPUs in MLIR. */
#include "mlir_bridge/export.h"

const ExportFamily *export_family_of(const TileTarget *target) {
    static const ExportFamily *const families[] = {[TILE_TARGET_CPU] = &export_cpu, [TILE_TARGET_GPU] = &export_gpu};
    return families[target->kind];
}

/* ---- CPUs: one address space, and vectors that are registers ---- */

static MlirType only_pointer(const Exporter *exporter, TileSpace space) { return exporter->bridge->pointer; }

static bool no_instruction(Exporter *exporter, const TileOp *op) { return false; }

const ExportFamily export_cpu = {.pointer = only_pointer,
                                 .instruction = no_instruction,
                                 .assertion = export_scratch_assert,
                                 .opaque = export_vector_opaque};

/* ---- GPUs: address spaces, and lanes that are threads of a block ---- */

static MlirType pointer_to(const Exporter *exporter, TileSpace space) {
    switch (space) {
    case TILE_SPACE_GLOBAL: return exporter->bridge->gpu_pointers[BRIDGE_GLOBAL];
    case TILE_SPACE_SHARED: return exporter->bridge->gpu_pointers[BRIDGE_SHARED];
    case TILE_SPACE_MAP:
    case TILE_SPACE_SCRATCH: break;
    }
    return exporter->bridge->gpu_pointers[BRIDGE_GENERIC];
}

const ExportFamily export_gpu = {.pointer = pointer_to,
                                 .instruction = export_instruction,
                                 .assertion = export_block_assert,
                                 .opaque = export_thread_opaque,
                                 .relaxed_scope = "device",
                                 .predicated_words = true};
