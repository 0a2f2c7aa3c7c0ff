/* Archives of one object, as `ar` makes them, with the symbol index that linkers read. */
#ifndef TILE_TOOLS_ARCHIVE_H
#define TILE_TOOLS_ARCHIVE_H

#include "base/string.h"
#include "tile/status.h"

/* Adds the archive's bytes. TILE_INTERNAL if the object is no relocatable 64-bit little-endian ELF file. */
tile_status tile_archive_make(const void *object, size_t size, TileText *bytes);

#endif
