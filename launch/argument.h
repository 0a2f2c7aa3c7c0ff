/* Arguments of a launch, read once into views, with all checks that concern a single argument. */
#ifndef TILE_LAUNCH_ARGUMENT_H
#define TILE_LAUNCH_ARGUMENT_H

#include "launch/image.h"

/* An argument: a tensor with byte strides, or a scalar. */
typedef struct TileView {
    char *data; /* element 0 */
    int64_t extent[TILE_MAX_RANK];
    int64_t stride[TILE_MAX_RANK]; /* bytes; arbitrary for dimensions with fewer than two elements */
    uint64_t low, high;            /* addresses of the first byte and past the last one; equal if it is empty */
    uint64_t scalar;               /* scalars: value for the host program (see TileHostOp) */
    uint64_t word, offer;          /* tensors: facts (guard.h) */
    uint8_t type;                  /* TileHostType */
    uint8_t rank;
    bool known; /* false: TILE_ARG_NONE, allowed by tile_kernel_infer only */
    bool tensor;
    int device;    /* of a tensor on a GPU: the GPU's number */
    bool imagined; /* it has no memory, and `data` is only a place apart from all others */
} TileView;

enum {
    TILE_READ_PARTIAL =
        1,               /* TILE_ARG_NONE is allowed; type parameters that no argument binds are TILE_HOST_TYPE_COUNT */
    TILE_READ_SHAPES = 2 /* data may be NULL: the view is then imagined, on 128 bytes, apart from all others */
};

/* Fills views (one per parameter) and request->generics. */
tile_status tile_arguments_read(const TileImageSignature *signature, const TileArg *arguments, size_t count,
                                unsigned mode, TileView *views, TileImageRequest *request, TileError *error);

/* The number of the GPU that the tensors are on; 0 for CPU kernels, and without tensors. */
int tile_views_device(const TileImageSignature *signature, const TileView *views);

/* A scalar's bits in its own type, low bytes first. */
uint64_t tile_scalar_slot(TileHostType type, uint64_t value);

#endif
