/* What the programs of a launch on a GPU have to say: the assertion that failed first, with the values that its message
 * shows, and the lines that they print. Compiled code writes it to memory of the GPU, which the launcher gives it for
 * one launch and reads when the launch is over; the executor does both.
 *
 * The memory begins with a header of 64-bit words, all 0 at first. Behind it stand the record of the failed assertion's
 * values, room for the lines' records, and a spare place that takes what nobody shall see: records for which there is
 * no room, and the values of other assertions. A record is a word, the number (1, 2, ..) of its template among those of
 * the phase, and the packed items of that template (base/print_line.h). Lines follow one another; in the place of the
 * first one that found no room, as far as there is one, stands a 0.
 *
 * The program that claims the first word is the one whose assertion counts. */
#ifndef TILE_BASE_RECORDS_H
#define TILE_BASE_RECORDS_H

#include "base/print_line.h"

/* Bytes of the header: */
enum {
    TILE_RECORDS_OWNER = 0,     /* number of the block that claimed it, plus 1 */
    TILE_RECORDS_ASSERTION = 8, /* number (1, 2, ..) of the assertion that failed */
    TILE_RECORDS_USED = 16,     /* bytes of lines, those that found no room included */
    TILE_RECORDS_MISSING = 24,  /* lines that found no room */
    TILE_RECORDS_VALUES = 32,   /* here their record begins */
    TILE_RECORDS_CLEARED = 40   /* so many bytes have to be 0 before the launch */
};

typedef struct TileRecords {
    uint64_t lines, lines_bytes, spare; /* bytes at which they begin, and that there are */
    uint64_t bytes;                     /* of all */
} TileRecords;

/* Of a phase with these templates. */
TileRecords tile_records(const char *const *templates, size_t count);
/* Of a template's record, its number included. */
uint64_t tile_record_bytes(const char *template);

/* How many bytes of it there are to be read, as the header says. */
uint64_t tile_records_written(const TileRecords *records, const void *header);
/* The number of the assertion that failed; 0: none. */
int64_t tile_records_assertion(const void *memory);
/* Hands over what the failed assertion's message shows of values, as a line, if anything. */
void tile_records_values(const TileRecords *records, const void *memory, const char *const *templates, size_t count,
                         TilePrintLine print, void *host);
/* Hands over the lines; those that found no room are counted in one more, which names the kernel. */
void tile_records_lines(const TileRecords *records, const void *memory, const char *const *templates, size_t count,
                        const char *kernel, TilePrintLine print, void *host);

#endif
