/* Search for imports: in the importing file's folder, in the compiler's folders, then in the built-in standard
 * library. */
#ifndef TILE_DRIVER_COMPILE_IMPORT_H
#define TILE_DRIVER_COMPILE_IMPORT_H

#include "parser/syntax/syntax.h"
#include "tile/tile.h"

typedef struct TileImportSearch {
    const TileCompiler *compiler;
    TileArena *arena; /* of the texts that are read */
    /* A text that stands for the file at this path, as an editor has it; false if there is none. May be NULL. */
    bool (*open)(void *state, TileArena *arena, const char *path, const char **text, size_t *length);
    void *state;
} TileImportSearch;

/* The search has to outlive the importer. */
TileImporter tile_import_search(TileImportSearch *search);
const TileLimits *tile_compiler_limits(const TileCompiler *compiler);
/* The text of "<stdlib>/math.tile"; false if the library has no such file. */
bool tile_import_standard(const char *name, const char **text, size_t *length);
/* "math.tile": the files of the library by number; NULL behind the last. */
const char *tile_import_standard_at(size_t index);

#endif
