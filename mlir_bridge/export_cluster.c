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

/* The peer's address is the same for all that is loaded near it. */
void export_load_peer(Exporter *exporter, const TileOp *op) {
    enum { MOST_WORDS = 4 };
    static const char *const loads[MOST_WORDS + 1] = {NULL, "b32 $0, [$1+%" PRId64 "];", "v2.b32 {$0, $1}, [$2+%" PRId64 "];", NULL, "v4.b32 {$0, $1, $2, $3}, [$4+%" PRId64 "];"},
                      *const registers[MOST_WORDS + 1] = {NULL, "=r,l,~{memory}", "=r,=r,l,~{memory}", NULL, "=r,=r,=r,=r,l,~{memory}"};
    if (!export_need(exporter, op, exporter->target->has_tma, "clusters of blocks")) return;
    TileArena *arena = exporter->bridge->arena;
    ExportAddress place = export_address(exporter, op);
    const TileType *type = op->results[0].type;
    bool words = tile_scalar_bits(type->scalar) == 32;
    unsigned count = words ? (unsigned)tile_type_lanes(type) : 1;
    const char *find = tile_arena_format(arena, "mapa.shared::cluster.u64 $0, $1, %d;", (int)tile_op_integer(op, TILE_ATTRIBUTE_RANK, 0)),
               *load = tile_arena_format(arena, words ? loads[count] : "b64 $0, [$1+%" PRId64 "];", place.offset);
    MlirValue there = export_pure_asm(exporter, find, "=l,l", scalar_of(exporter, TILE_I64), 1, &place.address),
              loaded = export_asm(exporter, tile_arena_format(arena, "ld.shared::cluster.%s", load), words ? registers[count] : "=l,l,~{memory}",
                                  words ? export_words_type(exporter, count) : scalar_of(exporter, TILE_I64), 1, &there);
    if (words) loaded = export_join_words(exporter, loaded, count);
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
