#include "base/records.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { WORD = 8, LEAST_LINES = 1 << 20 };

static bool is_line(const char *template) { return !tile_print_is_assertion(template, NULL, NULL); }

uint64_t tile_record_bytes(const char *template) { return WORD * (1 + (uint64_t)tile_print_packed_words(template)); }

TileRecords tile_records(const char *const *templates, size_t count) {
    uint64_t values = WORD, line = 0, lines = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t bytes = tile_record_bytes(templates[i]);
        uint64_t *most = is_line(templates[i]) ? &line : &values;
        if (bytes > *most) *most = bytes;
    }
    if (line) lines = line > LEAST_LINES ? line : LEAST_LINES;
    TileRecords records = {.lines = TILE_RECORDS_VALUES + values, .lines_bytes = lines};
    records.spare = records.lines + lines;
    records.bytes = records.spare + (line > values ? line : values);
    return records;
}

/* ---- reading ---- */

static uint64_t word_at(const void *memory, uint64_t offset) {
    uint64_t word;
    memcpy(&word, (const char *)memory + offset, sizeof word);
    return word;
}

uint64_t tile_records_written(const TileRecords *records, const void *header) {
    uint64_t used = word_at(header, TILE_RECORDS_USED);
    if (used) return records->lines + (used < records->lines_bytes ? used : records->lines_bytes);
    return word_at(header, TILE_RECORDS_VALUES) ? records->lines : TILE_RECORDS_CLEARED;
}

int64_t tile_records_assertion(const void *memory) { return (int64_t)word_at(memory, TILE_RECORDS_ASSERTION); }

static const uint64_t *items_at(const void *memory, uint64_t record) {
    return (const uint64_t *)(const void *)((const char *)memory + record + WORD);
}

void tile_records_values(const TileRecords *records, const void *memory, const char *const *templates, size_t count,
                         TilePrintLine print, void *host) {
    uint64_t number = word_at(memory, TILE_RECORDS_VALUES);
    if (!number || number > count) return;
    const char *template = templates[number - 1];
    if (TILE_RECORDS_VALUES + tile_record_bytes(template) <= records->lines)
        tile_print_packed_line(template, items_at(memory, TILE_RECORDS_VALUES), print, host);
}

static void count_missing(const TileRecords *records, uint64_t missing, const char *kernel, TilePrintLine print,
                          void *host) {
    char line[256];
    int length = snprintf(line, sizeof line,
                          "%.100s: %" PRIu64 " more line%s found no room in the %" PRIu64 " KiB of a launch\n", kernel,
                          missing, missing == 1 ? "" : "s", records->lines_bytes / 1024);
    if (missing) print(host, line, (size_t)length);
}

void tile_records_lines(const TileRecords *records, const void *memory, const char *const *templates, size_t count,
                        const char *kernel, TilePrintLine print, void *host) {
    uint64_t at = records->lines, end = tile_records_written(records, memory);
    while (at + WORD <= end) {
        uint64_t number = word_at(memory, at);
        if (!number || number > count) break; /* the first one without room */
        const char *template = templates[number - 1];
        if (at + tile_record_bytes(template) > end) break;
        tile_print_packed_line(template, items_at(memory, at), print, host);
        at += tile_record_bytes(template);
    }
    count_missing(records, word_at(memory, TILE_RECORDS_MISSING), kernel, print, host);
}
