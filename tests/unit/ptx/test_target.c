/* The table of GPUs is consistent. */
#include <criterion/criterion.h>
#include <string.h>

#include "ptx/target/target.h"

Test(target, rows) {
    unsigned count;
    const TilePtxTarget *targets = tile_ptx_targets(&count);
    cr_assert_eq(count, 4);
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
