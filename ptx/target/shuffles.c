#include "ptx/target/shuffles.h"

/* Each exchange of a word takes as long as a word from shared memory. */
enum { MOST_SHUFFLES = 4, WORD_BITS = 32 };

uint32_t gpu_shuffles_change(const GpuShuffles *shuffles, const TileLayout *from, const TileLayout *to, unsigned bit) {
    unsigned own = tile_layout_first_bit(from, TILE_LAYOUT_LANE) + bit;
    return shuffles->source.column[tile_layout_first_bit(to, TILE_LAYOUT_LANE) + bit] ^ UINT32_C(1) << own;
}

/* Finds what the thread changes. False: other warps have some of the elements. */
static bool find_changes(const TileLayout *from, const TileLayout *to, GpuShuffles *shuffles) {
    *shuffles = (GpuShuffles){0};
    TileConversionKind kind = tile_layout_conversion(from, to, &shuffles->source);
    if (kind == TILE_CONVERSION_SHARED) return false;
    unsigned own = tile_layout_first_bit(to, TILE_LAYOUT_LANE), first = tile_layout_first_bit(from, TILE_LAYOUT_LANE);
    uint32_t registers = (UINT32_C(1) << first) - 1;
    for (unsigned i = 0; i + own < to->map.inputs; i++) {
        uint32_t change = gpu_shuffles_change(shuffles, from, to, i);
        shuffles->varying |= change & registers;
        shuffles->lanes |= (change & ~registers) != 0;
    }
    return true;
}

bool gpu_find_shuffles(const TileLayout *from, const TileLayout *to, unsigned scalar_bits, GpuShuffles *shuffles) {
    if (!find_changes(from, to, shuffles)) return false;
    for (unsigned a = 0; a < from->rank; a++)
        if (from->pieces[a] != 1) return false;
    unsigned words = scalar_bits > WORD_BITS ? scalar_bits / WORD_BITS : 1;
    uint64_t count = (uint64_t)tile_layout_registers(to) * words << __builtin_popcount(shuffles->varying);
    return count <= MOST_SHUFFLES;
}

bool gpu_converts_in_warp(const TileLayout *from, const TileLayout *to, unsigned scalar_bits) {
    GpuShuffles shuffles;
    if (!find_changes(from, to, &shuffles)) return false;
    return (!shuffles.varying && !shuffles.lanes) || gpu_find_shuffles(from, to, scalar_bits, &shuffles);
}
