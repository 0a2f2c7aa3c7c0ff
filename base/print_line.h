/* The format of `print`: a template with a field for each value, and the values as 64-bit words. Shared by the
 * launcher, which machine code calls, and the executor.
 *
 * A field is {kind}, or {kind:4x64} for a tile of these extents. A ? before the } means that a second item has a
 * word for each element that says whether it is valid. A ! instead of the ? shows only the first element whose word in
 * the second item is not 0, and its index. Kinds: i a signed and u an unsigned integer, b a bool, d an f64, f an f64
 * that holds an f32. {{ is a brace.
 *
 * A template that begins with {!12:9} is no line of its own: it has the values for the message of the assertion in line
 * 12, column 9, which is about to fail. */
#ifndef TILE_BASE_PRINT_LINE_H
#define TILE_BASE_PRINT_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/string.h"

/* Receives one whole line, including its newline. */
typedef void (*TilePrintLine)(void *host, const char *line, size_t length);

enum { TILE_PRINT_RANK = 5 };

typedef struct TilePrintPlace {
    char kind;
    bool masked, first;
    unsigned rank;
    int64_t extent[TILE_PRINT_RANK];
    size_t lanes;
} TilePrintPlace;

/* The next field of a template, and moves past it; false if there is none. */
bool tile_print_next(const char **template, TilePrintPlace *place);
/* Begins a template of an assertion's values. */
void tile_print_assertion(TileText *template, unsigned line, unsigned column);
/* Is this a template of an assertion's values, and of which one (line and column may be NULL)? */
bool tile_print_is_assertion(const char *template, unsigned *line, unsigned *column);
/* Number of items that the fields take. */
unsigned tile_print_count(const char *template);
/* If memory runs out the line is truncated. */
void tile_print_line(const char *template, const uint64_t *const *items, TilePrintLine print, void *host);

/* Packed items follow one another, each with only the elements that the line shows: of a large tile the first and last
 * few of each axis, but all of them if the first one with some property is searched. The number of elements along an
 * axis; `message`: in the message of an assertion, which shows fewer. */
int64_t tile_print_packed_extent(const TilePrintPlace *place, bool message, unsigned axis);
size_t tile_print_packed_words(const char *template);
void tile_print_packed_line(const char *template, const uint64_t *words, TilePrintLine print, void *host);
/* The position of element i among those of a packed axis, which includes it. */
static inline int64_t tile_print_packed_index(int64_t i, int64_t extent, int64_t packed) {
    return i < packed / 2 ? i : i - (extent - packed);
}

#endif
