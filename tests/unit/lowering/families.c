/* Families of targets: the passes of their pipelines. */
#include <criterion/criterion.h>
#include <string.h>

#include "cpu/passes.h"
#include "ptx/passes.h"

static const TileFamily *const families[] = {&tile_cpu_family, &tile_ptx_family};

enum { FAMILY_COUNT = sizeof families / sizeof *families };

static bool is_run(const TilePassInfo *pass, const TileFamily *family, TileArena *arena) {
    TilePipeline pipeline = {0};
    TileText message = {.arena = arena};
    cr_assert_eq(tile_family_pipeline(family, NULL, &pipeline, arena, &message), TILE_OK, "%s",
                 tile_text_get(&message));
    for (size_t i = 0; i < pipeline.count; i++)
        if (pipeline.items[i] == pass) return true;
    return false;
}

/* A pass that is in no target's pipeline is not tested by any kernel. */
Test(families, some_target_runs_each_pass) {
    TileArena *arena = tile_arena_create(NULL);
    const TilePassTable *shared = tile_lowering_passes();
    for (size_t i = 0; i < shared->count; i++) {
        bool any = false;
        for (int f = 0; f < FAMILY_COUNT; f++) any |= is_run(&shared->passes[i], families[f], arena);
        cr_expect(any, "no target runs %s", shared->passes[i].name);
    }
    for (int f = 0; f < FAMILY_COUNT; f++)
        for (size_t i = 0; i < families[f]->passes->count; i++)
            cr_expect(is_run(&families[f]->passes->passes[i], families[f], arena), "%s does not run %s",
                      families[f]->name, families[f]->passes->passes[i].name);
    tile_arena_destroy(arena);
}

Test(families, each_target_is_found_by_its_name_and_in_one_family) {
    for (int f = 0; f < FAMILY_COUNT; f++) {
        const TileTarget *target;
        for (unsigned i = 0; (target = families[f]->target_at(i)); i++) {
            cr_expect_eq(target->kind, families[f]->kind, "%s", target->name);
            cr_expect(target->description && *target->description, "%s", target->name);
            for (int g = 0; g < FAMILY_COUNT; g++)
                cr_expect_eq(tile_family_target(families[g], target->name), f == g ? target : NULL, "%s", target->name);
        }
        cr_expect(families[f]->target_at(0), "%s has no target", families[f]->name);
    }
}
