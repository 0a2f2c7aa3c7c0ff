/* How blocks of grids that start early are spread over the multiprocessors. */
#include "launch/cuda_blocks.h"
#include "tests/unit/cuda/scene.h"

/* An H200's. */
enum { MULTIPROCESSORS = 132, SHARED = 228 * 1024, RESERVED = 1024, MOST = 227 * 1024 };

static unsigned that_fit(uint32_t bytes, unsigned by_registers) {
    unsigned fit = SHARED / (bytes + RESERVED);
    return fit < by_registers ? fit : by_registers;
}

/* As many multiprocessors as needed have one block less than others, and no more shared memory is taken than for that. */
Test(cuda_blocks, fill_multiprocessors_evenly) {
    for (uint32_t bytes = 0; bytes <= MOST; bytes += 4321)
        for (unsigned by_registers = 1; by_registers <= 16; by_registers += 3) {
            const TileCudaSpread spread = {MULTIPROCESSORS, that_fit(bytes, by_registers), SHARED, RESERVED};
            for (unsigned blocks = 1; blocks < 132 * 20; blocks += 37) {
                unsigned each = (blocks + MULTIPROCESSORS - 1) / MULTIPROCESSORS;
                uint32_t found = tile_cuda_spread_bytes(&spread, bytes, blocks);
                cr_assert(found >= bytes && found <= MOST);
                unsigned fit = that_fit(found, by_registers);
                cr_assert(fit == (each < spread.fit ? each : spread.fit), "%u bytes, %u blocks: %u fit", bytes, blocks, fit);
                cr_assert(found == bytes || that_fit(found - 128, by_registers) > fit);
            }
        }
}

Test(cuda_blocks, of_clusters_are_not_spread) {
    const TileCudaSpread spread = {0};
    cr_assert(tile_cuda_spread_bytes(&spread, 1000, 7) == 1000);
}

/* Four programs on four multiprocessors, of which two fit on each. */
static void launch_twice(Scene *scene) {
    set(scene, 0);
    scene->extent = 4;
    cr_assert(launch(scene) == TILE_OK, "%s", scene->error.message);
    cr_expect(fake_cuda_launch(0)->shared_bytes == 100, "nothing runs beside the first grid");
}

Test(cuda_blocks, of_grids_that_start_early_are_kept_apart) {
    Scene scene = {.maker = {.shared_bytes = 100, .waits = true}};
    launch_twice(&scene);
    unsigned bytes = fake_cuda_launch(1)->shared_bytes;
    cr_expect(2 * (bytes + RESERVED) > SHARED && bytes < SHARED / 2, "%u", bytes);
    strike(&scene);
}

Test(cuda_blocks, of_grids_that_start_behind_the_one_before_need_nothing) {
    Scene scene = {.maker = {.shared_bytes = 100}};
    launch_twice(&scene);
    cr_expect(fake_cuda_launch(1)->shared_bytes == 0);
    strike(&scene);
}
