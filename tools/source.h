/* What stands to the right of ARG= for a tensor: a file, made-up data, or `@`, with an optional type, shape or view.
 *
 *     a.npy   a.npy:bf16[::2].T   out.npy:f32[10,10]   rand:f32[4096,1000]   randint:i32[9](0,5)   @ */
#ifndef TILE_TOOLS_SOURCE_H
#define TILE_TOOLS_SOURCE_H

#include "tools/array.h"

#define TILE_GENERATOR_LIST(X)                                                                                         \
    X(RAND, "rand", "uniform in [0, 1)")                                                                               \
    X(RANDN, "randn", "normal, mean 0, variance 1")                                                                    \
    X(ZEROS, "zeros", "all 0")                                                                                         \
    X(ONES, "ones", "all 1")                                                                                           \
    X(ARANGE, "arange", "0, 1, 2, .. in row-major order")                                                              \
    X(RANDINT, "randint", "integers from lo up to, but without, hi: randint:i32[9](lo,hi)")

typedef enum TileGenerator {
#define TILE_GENERATOR_ENUM(id, name, doc) TILE_GENERATOR_##id,
    TILE_GENERATOR_LIST(TILE_GENERATOR_ENUM)
#undef TILE_GENERATOR_ENUM
        TILE_GENERATOR_COUNT
} TileGenerator;

typedef enum TileSourceKind { TILE_SOURCE_FILE, TILE_SOURCE_GENERATED, TILE_SOURCE_DISCARD } TileSourceKind;

typedef struct TileSource {
    TileSourceKind kind;
    const char *path; /* files */
    TileGenerator generator;
    TileScalar type;    /* TILE_SCALAR_COUNT if none is named */
    const char *suffix; /* what follows the type: a view of an input, or the shape of an output */
    int64_t lo, hi;     /* randint */
    unsigned rank;      /* generated data */
    int64_t extent[TILE_MAX_TENSOR_RANK];
} TileSource;

tile_status tile_source_parse(const char *text, TileSource *source, TileText *error);
/* Reads `[3,4]` as a shape, for outputs; an empty suffix leaves *given false. */
tile_status tile_source_shape(const TileSource *source, bool *given, unsigned *rank, int64_t *extent, TileText *error);

/* Creates an input. *base owns the memory; *view is the argument's part of it. `seed` and `stream` select the random
 * numbers. */
tile_status tile_source_load(const TileSource *source, uint64_t seed, uint64_t stream, TileArray *base, TileArray *view,
                             TileText *error);

#endif
