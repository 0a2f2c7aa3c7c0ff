/* Every state of a kernel's IR, from the tile form to the final machine form, is valid and has a text that reads back
 * to itself. */
#ifndef TESTS_KERNELS_STATES_H
#define TESTS_KERNELS_STATES_H

#include "tile/tile.h"

/* Lowers a kernel of a file for a CPU target, pass by pass. `specialised`: its tensors are contiguous and aligned to 64
 * bytes. `settings` bind every type parameter and static dimension. False, with the reason (terminated, at most `size`
 * bytes), if a state is not valid. */
bool states_check(TileCompiler *compiler, const char *path, const char *kernel, const char *target,
                  const TileSetting *settings, size_t setting_count, bool specialised, char *reason, size_t size);

#endif
