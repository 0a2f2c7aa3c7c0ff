/* Records of a launch on a GPU: the first assertion that failed, with the values that its message shows, and the lines
 * that programs print. Compiled code writes them to memory of the GPU, which the launcher provides for one launch and
 * reads when the launch has ended; so does the executor.
 *
 * The memory begins with a header of 64-bit words, all 0 at first. After it come the record of the failed assertion's
 * values, room for the lines' records, and a dummy record that nobody reads: it takes records without room, and the
 * values of other assertions. A record is a word, the number (1, 2, ..) of its template among those of the phase, and
 * the packed items of that template (base/print_line.h). Lines follow one another; if there is room for a word after
 * the last line that had room, it is 0. The program that claims the first word is the one whose assertion counts. */
#ifndef TILE_BASE_RECORDS_H
#define TILE_BASE_RECORDS_H

#include "base/print_line.h"

/* Bytes of the header: */
enum {
    TILE_RECORDS_OWNER = 0,     /* number of the claiming block, plus 1 */
    TILE_RECORDS_ASSERTION = 8, /* number (1, 2, ..) of the assertion that failed */
    TILE_RECORDS_USED = 16,     /* bytes of all lines, including those without room */
    TILE_RECORDS_MISSING = 24,  /* lines that found no room */
    TILE_RECORDS_VALUES = 32,   /* here their record begins */
    TILE_RECORDS_CLEARED = 40   /* bytes that must be 0 before the launch */
};

typedef struct TileRecords {
    uint64_t lines, lines_bytes, spare; /* their offset and size in bytes */
    uint64_t bytes;                     /* of all */
} TileRecords;

/* The memory's layout for a phase with these templates. */
TileRecords tile_records(const char *const *templates, size_t count);
/* Bytes of a template's record, including its number. */
uint64_t tile_record_bytes(const char *template);

/* Number of bytes that are to be read, by the header. */
uint64_t tile_records_written(const TileRecords *records, const void *header);
/* The number of the assertion that failed; 0: none. */
int64_t tile_records_assertion(const void *memory);
/* Hands over the values of the failed assertion's message as a line, if it shows any. */
void tile_records_values(const TileRecords *records, const void *memory, const char *const *templates, size_t count,
                         TilePrintLine print, void *host);
/* Hands over the lines; one more line, with the kernel's name, counts those without room. */
void tile_records_lines(const TileRecords *records, const void *memory, const char *const *templates, size_t count,
                        const char *kernel, TilePrintLine print, void *host);

#endif
