/* NVIDIA GPUs: PTX, which the driver of CUDA assembles, or an assembler before that. */
#include "driver/compile/backend.h"
#include "driver/cache/tuning.h"
#include "launch/cuda.h"
#include "ptx/passes.h"

/* Code for plain capabilities runs on later GPUs too; `a` means that one alone. */
static const char *obstacle(const TileTarget *target) {
    const char *why_not = tile_cuda_why_not();
    if (why_not) return why_not;
    int wanted = (int)target->compute_capability, there = tile_cuda_capability(0);
    if (target->exact_capability ? there == wanted : there >= wanted) return NULL;
    return "the GPU has another compute capability";
}

static const char *limit(const TileTarget *target, const char *most) { return NULL; }

static const char *none(const char *most) {
    const char *why_not = tile_cuda_why_not();
    return why_not ? why_not : "the GPU is older than compute capability 8.0";
}

static const char *device(TileArena *arena, int number) {
    char model[128];
    return tile_cuda_device_name(number, model, sizeof model) ? tile_tuning_clean(arena, model) : NULL;
}

static const char *symbol(const TileFunc *phase, TileArena *arena) {
    enum { SYMBOL_BYTES = 512 };
    char *text = tile_arena_alloc(arena, SYMBOL_BYTES);
    tile_bridge_symbol(phase, text, SYMBOL_BYTES);
    return text;
}

static tile_status load(const TileBackendCode *code, TileBackendLoaded *loaded, TileText *message) {
    loaded->device = tile_cuda_module_create(code->data, code->size, code->phases, code->phase_count);
    return loaded->device ? TILE_OK : TILE_OUT_OF_MEMORY;
}

const TileBackend tile_backend_ptx = {.family = &tile_ptx_family,
                                      .best = "cuda",
                                      .best_description = "the best GPU target for the NVIDIA GPU of this machine",
                                      .obstacle = obstacle,
                                      .limit = limit,
                                      .none = none,
                                      .most_devices = TILE_CUDA_MOST_DEVICES,
                                      .device = device,
                                      .listing = TILE_STAGE_PTX,
                                      .code = TILE_CODE_ASSEMBLY,
                                      .own_memory = true,
                                      .places = true,
                                      .explained = true,
                                      .has_tf32 = true,
                                      .symbol = symbol,
                                      .load = load};
