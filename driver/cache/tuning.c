#include "driver/cache/tuning.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIELDS = 10, VERSION = 1, LARGEST_FILE = 1 << 26 };
static const char heading[] = "tile-tuning ";
static const char columns[] =
    "# kernel\ttune clauses\tinstance\tshape\tdevice\tconstants\tseconds\tof the default\tmeasured\tpinned";

const char *tile_tuning_clean(TileArena *arena, const char *text) {
    char *clean = tile_arena_string(arena, text, strlen(text));
    for (char *at = clean; *at; at++)
        if ((unsigned char)*at < ' ') *at = ' ';
    return clean;
}

/* ---- one row ---- */

static bool read_seconds(const char *text, double *seconds) {
    char *end;
    *seconds = strtod(text, &end);
    return end != text && !*end && *seconds >= 0;
}

static bool read_count(const char **text, unsigned *count) {
    char *end;
    unsigned long number = strtoul(*text, &end, 10);
    bool good = **text >= '0' && **text <= '9' && number <= UINT32_MAX;
    *count = (unsigned)number;
    *text = end;
    return good;
}

static bool read_measured(const char *text, TileTuningRow *row) {
    bool good = read_count(&text, &row->measured) && *text == '/';
    text += good;
    return good && read_count(&text, &row->total) && !*text && row->measured <= row->total;
}

/* NAME=integer, blanks between. */
static bool are_constants(const char *text) {
    if (!*text) return false;
    while (*text) {
        size_t name = strcspn(text, "= "), digits;
        if (!name || text[name] != '=') return false;
        text += name + 1;
        text += *text == '-';
        digits = strspn(text, "0123456789");
        if (!digits || (text[digits] && text[digits] != ' ')) return false;
        text += digits + (text[digits] == ' ');
    }
    return true;
}

static bool read_row(TileTuning *tuning, const char *line, size_t length) {
    const char *fields[FIELDS];
    const char *end = line + length;
    for (int i = 0; i < FIELDS; i++) {
        const char *tab = i + 1 < FIELDS ? memchr(line, '\t', (size_t)(end - line)) : end;
        if (!tab) return false;
        fields[i] = tile_arena_string(tuning->arena, line, (size_t)(tab - line));
        if (!*fields[i]) return false;
        line = tab + 1;
    }
    TileTuningRow row = {.kernel = fields[0],
                         .space = fields[1],
                         .instance = fields[2],
                         .shape = fields[3],
                         .device = fields[4],
                         .constants = fields[5],
                         .pinned = strcmp(fields[9], "pinned") == 0};
    bool good = are_constants(row.constants) && read_seconds(fields[6], &row.seconds) &&
                read_seconds(fields[7], &row.usual_seconds) && read_measured(fields[8], &row) &&
                (row.pinned || strcmp(fields[9], "-") == 0);
    if (good) tile_tuning_put(tuning, &row);
    return good;
}

static void print_row(TileText *text, const TileTuningRow *row) {
    tile_text_format(text, "%s\t%s\t%s\t%s\t%s\t%s\t%.4g\t%.4g\t%u/%u\t%s\n", row->kernel, row->space, row->instance,
                     row->shape, row->device, row->constants, row->seconds, row->usual_seconds, row->measured,
                     row->total, row->pinned ? "pinned" : "-");
}

/* ---- files ---- */

static tile_status check_heading(const char *path, const char *text, size_t length, TileText *message) {
    size_t begin = sizeof heading - 1;
    char *end;
    if (length < begin + 2 || memcmp(text, heading, begin) != 0) {
        tile_text_format(message, "%s is no tuning file: it does not begin with `%s%d`", path, heading, VERSION);
        return TILE_INVALID_ARGUMENT;
    }
    unsigned long version = strtoul(text + begin, &end, 10);
    if (version == VERSION && *end == '\n') return TILE_OK;
    tile_text_format(message, "%s is a tuning file of version %.*s, and this program knows version %d", path,
                     (int)strcspn(text + begin, "\n"), text + begin, VERSION);
    return TILE_INVALID_ARGUMENT;
}

static void read_line(TileTuning *tuning, const char *line, size_t length, bool ends, unsigned number) {
    bool remark = !length || *line == '#';
    if (!remark && ends && read_row(tuning, line, length)) return;
    if (!remark && !tuning->bad_line) tuning->bad_line = number;
    if (length == sizeof columns - 1 && memcmp(line, columns, length) == 0) return;
    tile_list_push(tuning->arena, &tuning->others, tile_arena_string(tuning->arena, line, length));
}

tile_status tile_tuning_parse(TileTuning *tuning, const char *path, const char *text, size_t length,
                              TileText *message) {
    const char *end = text + length;
    if (!length) return TILE_OK;
    TILE_TRY(check_heading(path, text, length, message));
    unsigned number = 2;
    for (const char *line = strchr(text, '\n') + 1; line < end; number++) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        read_line(tuning, line, (size_t)((stop ? stop : end) - line), stop != NULL, number);
        line = stop ? stop + 1 : end;
    }
    return TILE_OK;
}

static tile_status read_stream(FILE *file, TileText *text) {
    char part[4096];
    size_t length;
    while ((length = fread(part, 1, sizeof part, file))) {
        if (text->length + length > LARGEST_FILE) return TILE_IO;
        tile_text_add_bytes(text, part, length);
    }
    return ferror(file) ? TILE_IO : TILE_OK;
}

tile_status tile_tuning_read(TileTuning *tuning, const char *path, TileText *message) {
    TileText text = {.arena = tuning->arena};
    FILE *file = fopen(path, "rbe");
    if (!file && errno == ENOENT) return TILE_OK;
    tile_status status = file ? read_stream(file, &text) : TILE_IO;
    int reason = errno;
    if (file) fclose(file);
    if (status == TILE_OK) return tile_tuning_parse(tuning, path, tile_text_get(&text), text.length, message);
    tile_text_format(message, "cannot read %s: %s", path, strerror(reason ? reason : EFBIG));
    return status;
}

void tile_tuning_print(const TileTuning *tuning, TileText *text) {
    tile_text_format(text, "%s%d\n%s\n", heading, VERSION, columns);
    for (size_t i = 0; i < tuning->others.count; i++) tile_text_format(text, "%s\n", tuning->others.items[i]);
    for (size_t i = 0; i < tuning->rows.count; i++) print_row(text, &tuning->rows.items[i]);
}

/* ---- rows ---- */

bool tile_tuning_same(const TileTuningRow *a, const TileTuningRow *b) {
    return strcmp(a->kernel, b->kernel) == 0 && strcmp(a->space, b->space) == 0 &&
           strcmp(a->instance, b->instance) == 0 && strcmp(a->shape, b->shape) == 0 &&
           strcmp(a->device, b->device) == 0;
}

TileTuningRow *tile_tuning_find(const TileTuning *tuning, const TileTuningRow *key) {
    for (size_t i = 0; i < tuning->rows.count; i++)
        if (tile_tuning_same(&tuning->rows.items[i], key)) return &tuning->rows.items[i];
    return NULL;
}

bool tile_tuning_put(TileTuning *tuning, const TileTuningRow *row) {
    TileTuningRow *there = tile_tuning_find(tuning, row);
    if (!there) {
        tile_list_push(tuning->arena, &tuning->rows, *row);
        return true;
    }
    bool kept = !row->pinned && (there->pinned || there->measured > row->measured);
    if (!kept) *there = *row;
    return !kept;
}
