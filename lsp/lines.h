/* Positions in a text: as bytes here, as a line and so many code units in it for editors. */
#ifndef TILE_LSP_LINES_H
#define TILE_LSP_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The code units that an editor counts (positionEncoding of the protocol). */
typedef enum TileEncoding { TILE_ENCODING_UTF16, TILE_ENCODING_UTF8, TILE_ENCODING_UTF32 } TileEncoding;

typedef struct TileLines {
    const char *text;
    size_t length;
    size_t *starts; /* of the lines */
    size_t count;
} TileLines;

typedef struct TilePosition {
    int64_t line, unit; /* from 0 */
} TilePosition;

/* How many lines a text has. */
size_t tile_lines_count(const char *text, size_t length);
/* Fills `starts`, which has room for so many. */
void tile_lines_find(TileLines *lines, const char *text, size_t length, size_t *starts);
TilePosition tile_lines_position(const TileLines *lines, size_t offset, TileEncoding encoding);
/* The byte at a position; one behind the end of its line is that end. */
size_t tile_lines_offset(const TileLines *lines, TilePosition position, TileEncoding encoding);

#endif
