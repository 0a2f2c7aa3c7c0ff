/* How fast this CPU's instructions are, where its features do not tell. */
#ifndef TILE_BASE_CPU_PROBE_H
#define TILE_BASE_CPU_PROBE_H

#include <stdbool.h>
#include <stdint.h>

/* Does `vdpbf16ps`, which adds two products to each lane, take less time than the two multiply-adds of f32 that do the same and
 * the conversions that these need? On some CPUs it takes the time of one, on others that of two. Requires AVX-512 with bf16; else
 * false. */
bool tile_cpu_multiplies_words(void);
/* The same by the clock's ticks that as many of both took. */
bool tile_cpu_is_word_fast(uint64_t word, uint64_t multiply_add);

#endif
