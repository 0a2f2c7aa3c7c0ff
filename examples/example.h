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
/* Runs a kernel or an export on tensors and gives its result, the last parameter, whose type and shape follow from the
 * others: example_call(example, "softmax", x). */
#define example_call(example, kernel, ...)                                                                             \
    example_run(example, kernel, (DLTensor *[]){__VA_ARGS__}, sizeof((DLTensor *[]){__VA_ARGS__}) / sizeof(DLTensor *))
DLTensor *example_run(Example *example, const char *kernel, DLTensor *const *tensors, size_t count);
/* What the calls took so far, in seconds, compiling not counted. */
double example_seconds(const Example *example);

#endif
