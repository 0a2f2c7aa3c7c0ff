/* Numbers that GPU code computes in words of 32 bits. */
#ifndef TILE_BASE_WORDS_H
#define TILE_BASE_WORDS_H

#include <stdint.h>

/* No extent of a tensor that is narrow is greater: places a tile's extent behind its end, or a window's, are words as well. */
enum { TILE_GREATEST_NARROW_EXTENT = INT32_MAX - UINT16_MAX };

#endif
