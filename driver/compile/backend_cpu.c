/* CPUs: objects, linked into this process or into a library. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "cpu/passes.h"
#include "driver/compile/backend.h"
#include "driver/cache/tuning.h"
#include "launch/variants.h"

static const char *obstacle(const TileTarget *target) { return tile_cpu_why_not(target->name); }

static const char *limit(const TileTarget *target, const char *most) {
    return tile_cpu_limit_why_not(target->name, most);
}

static const char *surpassed(const TileTarget *target) { return tile_cpu_surpassed_by(target->name); }

static const char *none(const char *most) {
    const char *why_not = tile_cpu_limit_why_not("avx2", most);
    return why_not ? why_not : "no CPU target runs on this machine: all need at least AVX2 and FMA";
}

/* "model name : AMD EPYC 7B13" */
static const char *cpu_model(TileArena *arena) {
    static const char name[] = "model name";
    char line[256];
    const char *model = NULL;
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file && !model && fgets(line, sizeof line, file)) {
        const char *colon = strncmp(line, name, sizeof name - 1) == 0 ? strchr(line, ':') : NULL;
        if (colon) model = tile_arena_string(arena, colon + 2, strcspn(colon + 2, "\n"));
    }
    if (file) fclose(file);
    return model ? tile_tuning_clean(arena, model) : "CPU";
}

static const char *device(TileArena *arena, int number) {
    return tile_arena_format(arena, "%s, %d threads", cpu_model(arena), tile_thread_pool_size(NULL));
}

static const char *symbol(const TileFunc *phase, TileArena *arena) { return phase->name; }

static tile_status show(const TileBackendCode *code, const TileBackendLoaded *loaded, TileText *message) {
    TilePlace *places = calloc(code->phase_count, sizeof *places);
    if (!places) return TILE_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < code->phase_count; i++) {
        places[i].symbol = code->phases[i].symbol;
        memcpy(&places[i].address, &loaded->entries[i], sizeof places[i].address);
    }
    tile_status status = tile_loaded_show(loaded->native, code->data, code->size, places, code->phase_count, message);
    free(places);
    return status;
}

static tile_status load(const TileBackendCode *code, TileBackendLoaded *loaded, TileText *message) {
    TILE_TRY(tile_object_load(code->data, code->size, &loaded->native, message));
    for (uint32_t i = 0; i < code->phase_count; i++) {
        void *entry;
        TILE_TRY(tile_loaded_find(loaded->native, code->phases[i].symbol, &entry, message));
        memcpy(&loaded->entries[i], &entry, sizeof entry);
    }
    return code->shown && code->phase_count ? show(code, loaded, message) : TILE_OK;
}

const TileBackend tile_backend_cpu = {.family = &tile_cpu_family,
                                      .best = "cpu",
                                      .best_description = "the best of the CPU targets that this machine can run",
                                      .obstacle = obstacle,
                                      .limit = limit,
                                      .surpassed = surpassed,
                                      .none = none,
                                      .most_devices = 1,
                                      .device = device,
                                      .listing = TILE_STAGE_ASM,
                                      .code = TILE_CODE_OBJECT,
                                      .linked = true,
                                      .emulated = true,
                                      .symbol = symbol,
                                      .load = load};
