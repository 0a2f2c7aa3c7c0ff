/* NumPy's .npy files, versions 1 to 3 (numpy.lib.format): read by mapping them, written whole or not at all. */
#ifndef TILE_TOOLS_NPY_H
#define TILE_TOOLS_NPY_H

#include "tools/array.h"
#include "tools/replace.h"

/* Maps the file copy-on-write (`writable`: a private copy that the caller may change) and describes it as an
 * array; Fortran order becomes strides. `named` (or TILE_SCALAR_COUNT) is the element type that the user gave:
 * it has to be the file's, or bf16 and f8 for files of 2 and 1 bytes. Every size is checked against the file's. */
tile_status tile_npy_read(const char *path, TileScalar named, TileArray *array, TileText *error);

/* Writes the array under a temporary name and flushes it to the disk. On failure nothing is left behind. */
tile_status tile_npy_write(TileReplacement *writer, const char *path, const TileArray *array, TileText *error);

#endif
