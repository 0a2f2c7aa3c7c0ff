/* The interface between an object made by `tilec build` and libtile_launch. Programs call the typed functions of the
 * object's own header, which call these; only those that write such objects need this file. docs/linking.md. */
#ifndef TILE_LINKED_H
#define TILE_LINKED_H

#include "tile/launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The description of one object, in its constant data. */
typedef struct TileLinked {
    uint32_t version; /* of the image's bytes */
    uint32_t entry_count;
    const void *image; /* the kernels' signatures and variants */
    uint64_t image_bytes;
    const void *const *entries; /* the code of each grid of each variant */
    void **state;               /* the object's only variable: NULL before the first use */
} TileLinked;

/* Runs the kernel of this number, on the GPU where its tensors lie on one and the object has code for it: tile_launch,
 * with as many arguments as the kernel has parameters. Beside tile_launch's statuses, TILE_UNAVAILABLE: the object has
 * no code for this CPU or GPU; TILE_UNSUPPORTED: it has no variant that serves these arguments, or was made for another
 * version of this library. */
TILE_API tile_status tile_linked_launch(const TileLinked *object, uint32_t kernel, const TileArg *arguments,
                                        const TileLaunchOptions *options) TILE_MUST_CHECK;
/* The kernel itself, the one for CPUs where the object has code for both, for all else that launch.h does with kernels;
 * it lives until the program ends, or the plugin that it came with is unloaded. `error` may be NULL. */
TILE_API tile_status tile_linked_kernel(const TileLinked *object, uint32_t kernel, TileKernel **result,
                                        TileError *error) TILE_MUST_CHECK;
/* Releases what the first use allocated. No launch may be running or follow. Does nothing at the end of the process,
 * where exit handlers run: launches may be running then. NULL is allowed. */
TILE_API void tile_linked_release(const TileLinked *object);

#ifdef __cplusplus
}
#endif
#endif
