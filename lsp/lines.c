/* Positions in a text: as bytes here, as a line and so many code units in it for editors. */
#include "lsp/lines.h"

#include <string.h>

size_t tile_lines_count(const char *text, size_t length) {
    size_t count = 1;
    for (const char *at = text, *end = text + length; at < end && (at = memchr(at, '\n', (size_t)(end - at))); at++)
        count++;
    return count;
}

void tile_lines_find(TileLines *lines, const char *text, size_t length, size_t *starts) {
    size_t count = 0;
    starts[count++] = 0;
    for (const char *at = text, *end = text + length; at < end && (at = memchr(at, '\n', (size_t)(end - at))); at++)
        starts[count++] = (size_t)(at + 1 - text);
    *lines = (TileLines){text, length, starts, count};
}

/* Does a character begin here? All bytes that follow a first byte do not. */
static bool begins(char c) { return ((unsigned char)c & 0xc0) != 0x80; }

static int64_t units_of(char first, TileEncoding encoding) {
    bool far = (unsigned char)first >= 0xf0; /* above U+FFFF: two units of UTF-16 */
    return encoding == TILE_ENCODING_UTF16 && far ? 2 : 1;
}

static size_t line_end(const TileLines *lines, size_t line) {
    size_t end = line + 1 < lines->count ? lines->starts[line + 1] - 1 : lines->length;
    if (end > lines->starts[line] && end < lines->length && lines->text[end - 1] == '\r') end--;
    return end;
}

TilePosition tile_lines_position(const TileLines *lines, size_t offset, TileEncoding encoding) {
    size_t low = 0, high = lines->count;
    if (offset > lines->length) offset = lines->length;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (lines->starts[middle] <= offset)
            low = middle;
        else
            high = middle;
    }
    TilePosition position = {(int64_t)low, 0};
    if (encoding == TILE_ENCODING_UTF8) return position.unit = (int64_t)(offset - lines->starts[low]), position;
    for (size_t i = lines->starts[low]; i < offset; i++)
        if (begins(lines->text[i])) position.unit += units_of(lines->text[i], encoding);
    return position;
}

size_t tile_lines_offset(const TileLines *lines, TilePosition position, TileEncoding encoding) {
    if (position.line < 0) return 0;
    if ((uint64_t)position.line >= lines->count) return lines->length;
    size_t at = lines->starts[position.line], end = line_end(lines, (size_t)position.line);
    if (position.unit <= 0) return at;
    if (encoding == TILE_ENCODING_UTF8) {
        at = (uint64_t)position.unit < end - at ? at + (size_t)position.unit : end;
        while (at > lines->starts[position.line] && at < lines->length && !begins(lines->text[at])) at--;
        return at;
    }
    for (int64_t units = 0; at < end; at++) {
        if (!begins(lines->text[at])) continue;
        if (units + units_of(lines->text[at], encoding) > position.unit) break;
        units += units_of(lines->text[at], encoding);
        if (units == position.unit) {
            at++;
            while (at < end && !begins(lines->text[at])) at++;
            break;
        }
    }
    return at;
}
