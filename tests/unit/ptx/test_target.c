/* The table of GPUs is consistent, and warps share registers so that nobody waits for more than there are. */
#include <criterion/criterion.h>
#include <string.h>

#include "ptx/target/dot.h"
#include "ptx/target/target.h"

Test(target, rows) {
    unsigned count;
    const TilePtxTarget *targets = tile_ptx_targets(&count);
    cr_assert_eq(count, 6);
    for (unsigned i = 0; i < count; i++) {
        const TilePtxTarget *row = &targets[i];
        cr_assert_str_eq(row->target.llvm_cpu, row->target.name);
        cr_assert_eq(row->target.kind, TILE_TARGET_GPU);
        cr_assert_eq(row->shared_block_bytes + row->shared_reserved_bytes, row->shared_core_bytes);
        cr_assert_eq(tile_ptx_target_find(row->target.name), row);
        cr_assert(!row->target.has_wgmma || (row->target.has_tma && row->has_clusters), "%s", row->target.name);
    }
    cr_assert_null(tile_ptx_target_find("sm_90"));
}

/* What the multiplying threads ask for, set_registers, is what the copying ones have released: with more, a block waits
 * for ever. */
Test(target, registers) {
    enum { GROUP = 128, GRANULE = 8 };
    const TilePtxTarget *target = tile_ptx_target_find("sm_90a");
    for (int64_t groups = 2; groups <= 4; groups++)
        for (int64_t copies = 1; copies <= 8; copies++) {
            int64_t threads = (groups + 1) * GROUP, first = gpu_first_registers(target, threads);
            int64_t copying = gpu_copying_registers(copies, groups * GROUP);
            int64_t each = gpu_multiplying_registers(target, groups * GROUP, GROUP, copying);
            cr_assert_eq(copying % GRANULE, 0);
            cr_assert_eq(each % GRANULE, 0);
            cr_assert_leq(first * threads, target->registers);
            cr_assert_leq(each * groups * GROUP + copying * GROUP, first * threads, "%d groups, %d copies",
                          (int)groups, (int)copies);
            cr_assert_geq(each, first);
        }
}
