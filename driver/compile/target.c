/* Targets by name, and whether they can run here. */
#include <string.h>

#include "driver/compile/backend.h"

static const char interpreter[] = "interp";

const char *tile_target_obstacle(const TileTarget *target) { return tile_backend_of(target)->obstacle(target); }

const char *tile_target_limit(const TileTarget *target, const char *most) {
    return tile_backend_of(target)->limit(target, most);
}

/* The last target that runs here, unless the code of another one is faster; NULL: none. */
static const TileTarget *best_of(const TileBackend *backend, const char *most) {
    const TileTarget *target, *best = NULL;
    for (unsigned i = 0; (target = backend->family->target_at(i)); i++)
        if (!backend->obstacle(target) && !backend->limit(target, most)) best = target;
    const char *faster = best && backend->surpassed ? backend->surpassed(best) : NULL;
    target = faster ? tile_family_target(backend->family, faster) : NULL;
    return target && !backend->obstacle(target) && !backend->limit(target, most) ? target : best;
}

/* For each family the alias of its best target, then its targets; the interpreter last. */
bool tile_target_at(size_t index, TileTargetInfo *info) {
    const TileBackend *backend;
    if (!info) return false;
    for (unsigned i = 0; (backend = tile_backend_at(i)); i++) {
        if (index-- == 0) {
            const char *why_not = best_of(backend, NULL) ? NULL : backend->obstacle(backend->family->target_at(0));
            *info = (TileTargetInfo){backend->best, backend->best_description, !why_not, why_not};
            return true;
        }
        const TileTarget *target;
        for (unsigned k = 0; (target = backend->family->target_at(k)); k++) {
            if (index-- > 0) continue;
            const char *why_not = backend->obstacle(target);
            *info = (TileTargetInfo){target->name, target->description, !why_not, why_not};
            return true;
        }
    }
    if (index == 0) *info = (TileTargetInfo){interpreter, "the reference interpreter", true, NULL};
    return index == 0;
}

static tile_status refuse(const char *name, TileText *why) {
    TileTargetInfo info;
    tile_text_format(why, "there is no target '%s'; targets are", name);
    for (size_t i = 0; tile_target_at(i, &info); i++) tile_text_format(why, "%s %s", i ? "," : "", info.name);
    return TILE_INVALID_ARGUMENT;
}

tile_status tile_target_choose(const char *name, const char *capability, const TileTarget **target, TileText *why) {
    const TileBackend *backend;
    *target = NULL;
    if (!name) name = tile_backend_cpu.best;
    if (strcmp(name, interpreter) == 0) return TILE_OK;
    for (unsigned i = 0; (backend = tile_backend_at(i)); i++) {
        bool best = strcmp(name, backend->best) == 0;
        *target = best ? best_of(backend, capability) : tile_family_target(backend->family, name);
        if (*target) return TILE_OK;
        if (!best) continue;
        tile_text_add(why, backend->none(capability));
        return TILE_UNAVAILABLE;
    }
    return refuse(name, why);
}
