/* Blocks of a cluster, as inline assembly: MLIR's llvm dialect has no ops for them. */
#include "mlir_bridge/export.h"

#include <inttypes.h>

/* Threads of a warp may come to it one by one. Mbarriers that have been made in front of it are there for other blocks behind it. */
void export_cluster_barrier(Exporter *exporter, const TileOp *op) {
    if (!export_need(exporter, op, exporter->target->has_tma, "clusters of blocks")) return;
    export_asm(exporter, "fence.mbarrier_init.release.cluster; barrier.cluster.arrive; barrier.cluster.wait;", "~{memory}", no_type(), NO_VALUES);
}

void export_cluster_rank(Exporter *exporter, const TileOp *op) {
    set_result(exporter, op, 0, export_intrinsic(exporter, "llvm.nvvm.read.ptx.sreg.cluster.ctarank", scalar_of(exporter, TILE_I32), NO_VALUES));
}

void export_load_peer(Exporter *exporter, const TileOp *op) {
    if (!export_need(exporter, op, exporter->target->has_tma, "clusters of blocks")) return;
    ExportAddress place = export_address(exporter, op);
    const TileType *type = op->results[0].type;
    bool word = tile_scalar_bits(type->scalar) == 32;
    const char *text = tile_arena_format(exporter->bridge->arena,
                                         "{ .reg .b64 place, there; add.u64 place, $1, %" PRId64 "; mapa.shared::cluster.u64 there, place, %d; ld.shared::cluster.%s $0, [there]; }",
                                         place.offset, (int)tile_op_integer(op, TILE_ATTRIBUTE_RANK, 0), word ? "b32" : "b64");
    MlirValue loaded = export_asm(exporter, text, word ? "=r,l,~{memory}" : "=l,l,~{memory}", scalar_of(exporter, word ? TILE_I32 : TILE_I64), 1, &place.address);
    set_result(exporter, op, 0, export_same_bits(exporter, loaded, export_type(exporter, type)));
}

/* Without `.release.cluster`, which would wait for the thread's accesses to global memory: what is released are reads of shared
 * memory. */
void export_cluster_arrive(Exporter *exporter, const TileOp *op) {
    if (!export_need(exporter, op, exporter->target->has_tma, "clusters of blocks")) return;
    ExportAddress place = export_address(exporter, op);
    TileText text = {.arena = exporter->bridge->arena};
    tile_text_format(&text, "{ .reg .b64 place, there; add.u64 place, $0, %" PRId64 ";", place.offset);
    for (int64_t rank = 0; rank < tile_op_integer(op, TILE_ATTRIBUTE_MULTICAST, 1); rank++)
        tile_text_format(&text, " mapa.shared::cluster.u64 there, place, %d; mbarrier.arrive.shared::cluster.b64 _, [there];", (int)rank);
    tile_text_add(&text, " }");
    export_asm(exporter, tile_text_get(&text), "l,~{memory}", no_type(), 1, &place.address);
}
