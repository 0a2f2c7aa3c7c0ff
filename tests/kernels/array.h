/* Tensors between guard pages: a view of memory in which every byte that the view does not own is watched. Reading or
 * writing outside of the pages ends the process; writing between the elements is found by array_check. */
#ifndef TESTS_KERNELS_ARRAY_H
#define TESTS_KERNELS_ARRAY_H

#include <stddef.h>

#include "tile/launch.h"
#include "values.h"

enum { ARRAY_MAX_RANK = 8 };

/* X(ID, name, may be an output): how elements lie in memory. */
#define VIEW_LIST(X)                                                                                                   \
    X(CONTIGUOUS, "contiguous", true) /* row-major, no gaps */                                                         \
    X(ROWS, "rows", true)             /* row-major, gaps between the rows */                                           \
    X(TRANSPOSED, "transposed", true) /* the last two dimensions exchanged */                                          \
    X(STRIDED, "strided", true)       /* every second element */                                                       \
    X(NEGATIVE, "negative", true)     /* backwards in every dimension */                                               \
    X(BROADCAST, "broadcast", false)  /* the first dimension repeats itself */                                         \
    X(REPEATED, "repeated", false)    /* the last dimension repeats itself */

typedef enum View {
#define VIEW_ENUM(id, name, output) VIEW_##id,
    VIEW_LIST(VIEW_ENUM)
#undef VIEW_ENUM
        VIEW_COUNT
} View;

bool view_find(const char *name, View *view);
bool view_may_be_output(View view);

typedef enum Placement { PLACEMENT_BEGIN, PLACEMENT_END } Placement; /* which end touches a guard page */

typedef struct Array {
    Type type;
    int rank;
    int64_t extent[ARRAY_MAX_RANK], stride[ARRAY_MAX_RANK]; /* strides in elements */
    int64_t count;                                          /* elements */
    unsigned char *map;                                     /* guard page, pages, guard page */
    size_t map_size;
    unsigned char *pages, *saved; /* what may be touched, and a copy of it */
    size_t pages_size;
    unsigned char *lowest, *origin; /* the lowest byte of the view, and its element 0 */
    DLTensor tensor;                /* points into this struct */
} Array;

/* False, with nothing made, when memory runs out. The struct must not move. */
bool array_create(Array *array, Type type, int rank, const int64_t *extent, View view, Placement placement);
/* The same with any strides, in elements. */
bool array_create_strided(Array *array, Type type, int rank, const int64_t *extent, const int64_t *stride,
                          Placement placement);
void array_destroy(Array *array);

/* Element number `index` in row-major order. */
void *array_at(const Array *array, int64_t index);

/* Remembers all bytes; array_check compares with them and gives the number of bytes that changed although they
 * should not: all of them for an input, those outside of the view for an output. */
void array_save(Array *array);
size_t array_check(const Array *array, bool output);

#endif
