/* What the example programs share: one .tile file compiled, tensors from .npy files and new ones, launches by name.
 * All of it lives until example_close. A function that cannot do its work says why and ends the program. */
#ifndef EXAMPLES_EXAMPLE_H
#define EXAMPLES_EXAMPLE_H

#include "tile/tile.h"

typedef struct Example Example;

/* Compiles FOLDER/FILE; target NULL is this machine's processor. */
Example *example_open(const char *folder, const char *file, const char *target);
void example_close(Example *example);

/* FOLDER/FILE.npy with its own type and shape, of its first axis only what lies from `first` on. */
DLTensor *example_load(Example *example, const char *file, int64_t first);
/* A new tensor of zeros: example_tensor(example, example_f32, 597, 64). */
#define example_tensor(example, type, ...)                                                                             \
    example_make(example, type, (int)EXAMPLE_COUNT(int64_t, __VA_ARGS__), (int64_t[]){__VA_ARGS__})
DLTensor *example_make(Example *example, DLDataType type, int rank, const int64_t *shape);

/* Runs a kernel or an export on tensors: example_launch(example, "softmax", x, y). */
#define example_launch(example, kernel, ...)                                                                           \
    example_run(example, kernel, (DLTensor *[]){__VA_ARGS__}, EXAMPLE_COUNT(DLTensor *, __VA_ARGS__))
void example_run(Example *example, const char *kernel, DLTensor *const *tensors, size_t count);

double example_seconds(void);

#define EXAMPLE_COUNT(Type, ...) (sizeof((Type[]){__VA_ARGS__}) / sizeof(Type))

static const DLDataType example_f32 = {kDLFloat, 32, 1}, example_i64 = {kDLInt, 64, 1};

#endif
