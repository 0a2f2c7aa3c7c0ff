/* Tensors between guard pages: a view of memory in which every byte outside the view is checked. An access outside the
 * pages ends the process; a write between the elements is detected by array_check. */
#ifndef TESTS_KERNELS_ARRAY_H
#define TESTS_KERNELS_ARRAY_H

#include <stddef.h>

#include "tile/launch.h"
#include "values.h"

enum { ARRAY_MAX_RANK = 8 };

/* X(ID, name, may be an output): the memory layouts of a view. */
#define VIEW_LIST(X)                                                                                                   \
    X(CONTIGUOUS, "contiguous", true) /* row-major, no gaps */                                                         \
    X(ROWS, "rows", true)             /* row-major, gaps between the rows */                                           \
    X(TRANSPOSED, "transposed", true) /* the last two dimensions swapped */                                            \
    X(STRIDED, "strided", true)       /* every second element */                                                       \
    X(NEGATIVE, "negative", true)     /* negative strides in every dimension */                                        \
    X(BROADCAST, "broadcast", false)  /* stride 0 in the first dimension */                                            \
    X(REPEATED, "repeated", false)    /* stride 0 in the last dimension */

typedef enum View {
#define VIEW_ENUM(id, name, output) VIEW_##id,
    VIEW_LIST(VIEW_ENUM)
#undef VIEW_ENUM
        VIEW_COUNT
} View;

bool view_find(const char *name, View *view);
bool view_may_be_output(View view);

typedef enum Placement { PLACEMENT_BEGIN, PLACEMENT_END } Placement; /* which end is next to a guard page */

typedef struct Array {
    Type type;
    int rank;
    int64_t extent[ARRAY_MAX_RANK], stride[ARRAY_MAX_RANK]; /* strides in elements */
    int64_t count;                                          /* elements */
    unsigned char *map;                                     /* guard page, pages, guard page */
    size_t map_size;
    unsigned char *pages, *saved; /* the accessible memory, and a copy of it */
    size_t pages_size;
    unsigned char *lowest, *origin; /* the lowest byte of the view, and its element 0 */
    DLTensor tensor;                /* points into this struct */
} Array;

/* False, and nothing is allocated, if out of memory. The struct must not be moved. */
bool array_create(Array *array, Type type, int rank, const int64_t *extent, View view, Placement placement);
/* The same with any strides, in elements. */
bool array_create_strided(Array *array, Type type, int rank, const int64_t *extent, const int64_t *stride,
                          Placement placement);
void array_destroy(Array *array);

/* The element with this index in row-major order. */
void *array_at(const Array *array, int64_t index);

/* Saves all bytes; array_check compares with them and returns the number of bytes that must not change but did: any
 * byte of an input, bytes outside the view of an output. */
void array_save(Array *array);
size_t array_check(const Array *array, bool output);

#endif
