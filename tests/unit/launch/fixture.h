/* Kernels made by hand: signatures as the driver creates them, and C functions as their code. */
#ifndef TILE_TESTS_LAUNCH_FIXTURE_H
#define TILE_TESTS_LAUNCH_FIXTURE_H

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "launch/image.h"

/* row_copy[T: f32 | f16](x: in T[M, N], y: out T[M, N]) static dimensions none; one program a row.
 * The code copies rows of f32 for any strides. */
extern const TileImageSignature row_copy;

/* What the fixture's compiler was asked for, and its behaviour. */
typedef struct Compiler {
    const TileSettings *settings;
    _Atomic int compiled;
    _Atomic bool begun;   /* set at its first call */
    _Atomic int delay_ms; /* duration of a compilation */
    tile_status status;   /* result of a compilation */
    const char *message;
    bool relies;               /* the compiler asks for all facts, and the code relies on all that it was given */
    bool aligned; /* code asks for alignment alone, and relies on what it is granted */
    const TileImageCode *code; /* a template for the code; its entry and lists are shared */
    pthread_mutex_t mutex;     /* protects the following fields */
    TileImageRequest last;
} Compiler;

TileLibrary *make_library(const TileImageSignature *signature, Compiler *compiler);
/* The code of row_copy. */
const TileImageCode *row_copy_code(void);

/* A tensor on the CPU; extents and strides are copied to static storage in the caller's Tensor. */
typedef struct Tensor {
    DLTensor dl;
    int64_t shape[TILE_MAX_RANK], strides[TILE_MAX_RANK];
} Tensor;

/* `strides` NULL: contiguous, row-major. */
void make_tensor(Tensor *tensor, void *data, DLDataType type, int rank, const int64_t *shape, const int64_t *strides);
extern const DLDataType f32_type, f16_type, f64_type, i32_type;

#define SHAPE(...) ((const int64_t[]){__VA_ARGS__})

#endif
