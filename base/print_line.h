/* What `print` writes: a template with a place for each value, and the values as words of 64 bits. Shared by the
 * launcher, which machine code calls, and the executor.
 *
 * A place is {kind}, {kind:4x64} for a tile of these extents, and has a ? before the } where a second item says by a
 * word for each element whether it is valid. Kinds: i a signed and u an unsigned integer, b a bool, d an f64, f an f64
 * that holds an f32. {{ is a brace. A ! instead of the ? shows only the first element whose word in the second item is
 * not 0, and its place.
 *
 * A template that begins with {!12:9} is no line of its own: it has the values of the assertion in line 12, column 9,
 * which is about to fail, for its message. */
#ifndef TILE_BASE_PRINT_LINE_H
#define TILE_BASE_PRINT_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/string.h"

/* Takes one whole line, its newline included. */
typedef void (*TilePrintLine)(void *host, const char *line, size_t length);

enum { TILE_PRINT_RANK = 5 };

typedef struct TilePrintPlace {
    char kind;
    bool masked, first;
    unsigned rank;
    int64_t extent[TILE_PRINT_RANK];
    size_t lanes;
} TilePrintPlace;

/* The next place of a template, which is moved behind it; false where there is none. */
bool tile_print_next(const char **template, TilePrintPlace *place);
/* Begins a template of an assertion's values. */
void tile_print_assertion(TileText *template, unsigned line, unsigned column);
/* Is this one? Of which assertion, if it is (line and column may be NULL). */
bool tile_print_is_assertion(const char *template, unsigned *line, unsigned *column);
/* How many items the places take. */
unsigned tile_print_count(const char *template);
/* Where memory runs out the line is cut. */
void tile_print_line(const char *template, const uint64_t *const *items, TilePrintLine print, void *host);

/* Items are packed where they stand one behind the other, each with the elements that the line shows and no others: of
 * a large tile the first and last few of each axis, but all where the first one of some is looked for. How many there
 * are along an axis; `message`: in the message of an assertion, which shows fewer. */
int64_t tile_print_packed_extent(const TilePrintPlace *place, bool message, unsigned axis);
size_t tile_print_packed_words(const char *template);
void tile_print_packed_line(const char *template, const uint64_t *words, TilePrintLine print, void *host);
/* Where the element with index i is among those of a packed axis; it is one of them. */
static inline int64_t tile_print_packed_index(int64_t i, int64_t extent, int64_t packed) {
    return i < packed / 2 ? i : i - (extent - packed);
}

#endif
