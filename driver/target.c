/* The targets that can be asked for, and whether they can run here. */
#include <string.h>

#include "base/cpu.h"
#include "cpu/target.h"
#include "driver/compiler.h"

static const struct {
    const char *name, *description;
} known[] = {
    {"cpu", "the best of the CPU targets that this machine can run"},
    {"avx2", "x86-64 with AVX2 and FMA (x86-64-v3)"},
    {"avx512", "x86-64 with AVX-512 (x86-64-v4)"},
    {"avx512bf16", "x86-64 with AVX-512, bf16 and VNNI"},
    {"interp", "the reference interpreter"},
};

enum { KNOWN_COUNT = sizeof known / sizeof *known };

/* NULL: it can. */
static const char *why_not(const char *name) {
    if (strcmp(name, "interp") == 0) return NULL;
    if (strcmp(name, "cpu") != 0) return tile_cpu_why_not(name);
    return tile_cpu_target_native() ? NULL : tile_cpu_why_not("avx2");
}

bool tile_target_at(size_t index, TileTargetInfo *info) {
    if (index >= KNOWN_COUNT) return false;
    const char *why = why_not(known[index].name);
    *info = (TileTargetInfo){known[index].name, known[index].description, !why, why};
    return true;
}

tile_status tile_target_choose(const char *name, const TileTarget **target, TileText *why) {
    *target = NULL;
    if (!name) name = "cpu";
    if (strcmp(name, "interp") == 0) return TILE_OK;
    *target = strcmp(name, "cpu") == 0 ? tile_cpu_target_native() : tile_cpu_target_find(name);
    if (*target) return TILE_OK;
    if (strcmp(name, "cpu") == 0) {
        tile_text_add(why, "no CPU target runs on this machine: all need at least AVX2 and FMA");
        return TILE_UNAVAILABLE;
    }
    tile_text_format(why, "there is no target '%s'; targets are", name);
    for (size_t i = 0; i < KNOWN_COUNT; i++) tile_text_format(why, "%s %s", i ? "," : "", known[i].name);
    return TILE_INVALID_ARGUMENT;
}
