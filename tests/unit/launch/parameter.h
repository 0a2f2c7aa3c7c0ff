/* Parameters of signatures that tests make by hand. */
#ifndef TILE_TESTS_LAUNCH_PARAMETER_H
#define TILE_TESTS_LAUNCH_PARAMETER_H

#include "launch/image.h"

/* A tensor of f32; ACCESS is IN, OUT or INOUT, and DIMENSIONS an array of as many names as its rank. */
#define F32_TENSOR(NAME, ACCESS, DIMENSIONS)                                                                           \
    {                                                                                                                  \
        .name = NAME, .type_text = "f32", .dimensions = DIMENSIONS, .kind = TILE_PARAMETER_TENSOR,                     \
        .access = TILE_PARAMETER_##ACCESS, .rank = sizeof(DIMENSIONS) / sizeof *(DIMENSIONS), .type = TILE_HOST_F32,   \
        .generic = -1                                                                                                  \
    }

#define SCALAR(NAME, TYPE, TEXT)                                                                                       \
    { .name = NAME, .type_text = TEXT, .kind = TILE_PARAMETER_SCALAR, .type = TILE_HOST_##TYPE, .generic = -1 }

#endif
