/* Sums of products by fused multiply-adds on their way to memory. A store takes four neighbours from four registers in order,
 * so the assembler keeps them there throughout the loop of products: the sum of an even column in an even register. There
 * the column's element of `b`, loaded in the same way, is in an even register, too, and the product waits for a bank of the
 * register file that has to deliver both. So sums leave the loop with neighbours exchanged, through shared memory, where each
 * thread stores its own and loads them again in the order of columns: odd columns then are in even registers. */
#include "ptx/lowering/access.h"
#include "ptx/target/multiply_adds.h"

enum { VECTOR = 4, MOST_TOGETHER = 8 };

/* Do neighbouring registers have neighbouring columns, four of them? */
static bool is_in_vectors(const TileLayout *layout) {
    return layout->rank == 2 && tile_layout_vector(layout, 1, VECTOR) == VECTOR && tile_layout_registers(layout) % VECTOR == 0;
}

static TileValue *swapped(Gpu *gpu, TileValue *value, uint32_t first) {
    TileValue *registers[VECTOR];
    for (uint32_t i = 0; i < VECTOR; i++) registers[i] = gpu_register(gpu, value, first + (i ^ 1));
    return gpu_join(gpu, registers, VECTOR);
}

TileValue *gpu_settle_sums(Gpu *gpu, TileValue *value, const TileValue *old) {
    const TileLayout *layout = old->type->layout;
    if (!gpu_is_multiplied_sum(old) || !is_in_vectors(layout)) return value;
    uint32_t count = tile_layout_registers(layout), vectors = count / VECTOR,
             most = vectors < MOST_TOGETHER ? vectors : MOST_TOGETHER;
    int64_t threads = TILE_WARP_THREADS << gpu->log_warps, bytes = VECTOR * tile_scalar_bytes(old->type->scalar);
    TileValue **registers = TILE_NEW_ARRAY(gpu->arena, TileValue *, count);
    const TileType *type = tile_type_vector(gpu->module->context, old->type->scalar, VECTOR, false);
    for (uint32_t begin = 0; begin < vectors; begin += most) {
        uint32_t together = vectors - begin < most ? vectors - begin : most; /* 12 vectors are 8 and 4 */
        gpu_open_shared(gpu, (uint64_t)(threads * bytes * together), GPU_VECTOR_ALIGN);
        TileValue *own = tile_build_ptr_add(&gpu->b, gpu->shared, gpu_binary(gpu, TILE_OP_MUL, gpu->thread, gpu_i64(gpu, bytes)));
        for (uint32_t i = 0; i < together; i++)
            tile_build_store(&gpu->b, swapped(gpu, value, (begin + i) * VECTOR),
                             tile_build_ptr_add(&gpu->b, own, gpu_i64(gpu, i * threads * bytes)), NULL, bytes);
        for (uint32_t i = 0; i < together; i++) {
            TileValue *loaded = tile_build_load(&gpu->b, type, tile_build_ptr_add(&gpu->b, own, gpu_i64(gpu, i * threads * bytes)), NULL, NULL, bytes);
            for (uint32_t k = 0; k < VECTOR; k++) registers[(begin + i) * VECTOR + k] = gpu_register(gpu, loaded, k ^ 1);
        }
    }
    return gpu_join(gpu, registers, count);
}
