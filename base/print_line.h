/* What `print` writes: a template with a place for each value, and the values as words of 64 bits. Shared by the
 * launcher, which machine code calls, and the executor.
 *
 * A place is {kind}, {kind:4x64} for a tile of these extents, and has a ? before the } where a second item says by a
 * word for each element whether it is valid. Kinds: i a signed and u an unsigned integer, b a bool, d an f64, f an f64
 * that holds an f32. {{ is a brace. */
#ifndef TILE_BASE_PRINT_LINE_H
#define TILE_BASE_PRINT_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Takes one whole line, its newline included. */
typedef void (*TilePrintLine)(void *host, const char *line, size_t length);

enum { TILE_PRINT_RANK = 5 };

typedef struct TilePrintPlace {
    char kind;
    bool masked;
    unsigned rank;
    int64_t extent[TILE_PRINT_RANK];
    size_t lanes;
} TilePrintPlace;

/* The next place of a template, which is moved behind it; false where there is none. */
bool tile_print_next(const char **template, TilePrintPlace *place);
/* How many items the places take. */
unsigned tile_print_count(const char *template);
/* Where memory runs out the line is cut. */
void tile_print_line(const char *template, const uint64_t *const *items, TilePrintLine print, void *host);

#endif
