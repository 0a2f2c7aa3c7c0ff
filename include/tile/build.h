/* Compiling kernels ahead of time: a relocatable object with code for several targets, which links with
 * libtile_launch alone, and a C header with a typed function for each export. docs/linking.md. */
#ifndef TILE_BUILD_H
#define TILE_BUILD_H

#include "tile/tile.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TileBuildSource {
    const char *text;
    size_t length;
    const char *file; /* names the text in diagnostics; imports are looked up in its folder */
} TileBuildSource;

enum {
    TILE_BUILD_NO_GENERAL = 1, /* only the requested variants */
    TILE_BUILD_BARE = 2,       /* the code of each grid as a global function, and nothing else: docs/abi.md */
    TILE_BUILD_SHARED = 4,     /* a shared object instead of a relocatable one */
    TILE_BUILD_LINES = 8,      /* lines and variables for debuggers; the code is the same */
    TILE_BUILD_DEBUG = 16,     /* assertions hold */
    TILE_BUILD_NO_CONTRACT = 32
};

/* Assembles zero-terminated PTX into a cubin, as ptxas of the CUDA toolkit does. The cubin lives until tile_build
 * returns; `error` receives the message of a failure. */
typedef tile_status (*TileAssemble)(void *host, const char *ptx, const void **cubin, size_t *size, TileError *error);

/* Members after struct_size may be left zero. */
typedef struct TileBuildOptions {
    size_t struct_size;
    const char *const *targets; /* names of CPU targets of one architecture, and of GPU targets; none: avx2, avx512 */
    size_t target_count;
    const char *const *exports; /* "softmax[f32]", "softmax[bf16, BM = 4] as half"; none: the texts' export items */
    size_t export_count;
    const char *const *variants; /* "general", "contiguous", "x: align 16, N % 16 == 0"; none: contiguous, general */
    size_t variant_count;
    const TileSetting *settings; /* for every export that has such a name */
    size_t setting_count;
    const char *name; /* of the header, or of the shared object: "kernels.h", "kernels.so"; NULL: "kernels" */
    uint32_t flags;
    TileAssemble assemble; /* GPU targets; NULL: objects have PTX alone, which the driver assembles when it is loaded */
    void *assemble_host;
} TileBuildOptions;

typedef struct TileBuild TileBuild;

/* Builds one object from all texts. The same input gives the same bytes. *build is set on success only; *report as for
 * tile_compile. TILE_INVALID_SOURCE: errors in a text, an export or a variant. TILE_INVALID_ARGUMENT: an unsuitable
 * target, setting or flag. TILE_UNSUPPORTED, TILE_OUT_OF_MEMORY, TILE_BACKEND, TILE_INTERNAL. */
TILE_API tile_status tile_build(TileCompiler *compiler, const TileBuildSource *sources, size_t source_count,
                                const TileBuildOptions *options, TileBuild **build,
                                TileReport **report) TILE_MUST_CHECK;
/* NULL is allowed. */
TILE_API void tile_build_destroy(TileBuild *build);

/* The object's bytes, borrowed from the build. size must not be NULL. */
TILE_API const void *tile_build_object(const TileBuild *build, size_t *size);
/* The C header, borrowed from the build. */
TILE_API const char *tile_build_header(const TileBuild *build);
/* A description of the exports, for callers that launch by themselves: parameters, checks, grids, scratch, temporaries
 * and symbols as JSON (docs/abi.md). Borrowed from the build. */
TILE_API const char *tile_build_json(const TileBuild *build);
/* The files that were read in addition to the texts; NULL past the end. */
TILE_API const char *tile_build_dependency(const TileBuild *build, size_t index);

#ifdef __cplusplus
}
#endif
#endif
