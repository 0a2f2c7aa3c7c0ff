#include "base/print_line.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Tiles of more elements show the first and last few of each axis. */
enum { MOST_ELEMENTS = 1000, MOST_IN_A_MESSAGE = 8, EDGE = 3 };

static const char *read_extents(const char *at, TilePrintPlace *place) {
    while (place->rank < TILE_PRINT_RANK) {
        char *end;
        int64_t extent = strtoll(at, &end, 10);
        place->extent[place->rank++] = extent;
        place->lanes *= (size_t)extent;
        at = end;
        if (*at != 'x') break;
        at++;
    }
    return at;
}

void tile_print_assertion(TileText *template, unsigned line, unsigned column) {
    tile_text_format(template, "{!%u:%u}", line, column);
}

bool tile_print_is_assertion(const char *template, unsigned *line, unsigned *column) {
    unsigned ignored;
    return sscanf(template, "{!%u:%u}", line ? line : &ignored, column ? column : &ignored) == 2;
}

/* The rest of the template after the prefix of an assertion's. */
static const char *body_of(const char *template) {
    return tile_print_is_assertion(template, NULL, NULL) ? strchr(template, '}') + 1 : template;
}

bool tile_print_next(const char **template, TilePrintPlace *place) {
    const char *at = body_of(*template);
    for (; *at; at++) {
        if (*at != '{') continue;
        if (*++at != '{') break;
    }
    if (!*at) return false;
    *place = (TilePrintPlace){.kind = *at++, .lanes = 1};
    if (*at == ':') at = read_extents(at + 1, place);
    if (*at == '?' || *at == '!') {
        place->masked = true;
        place->first = *at++ == '!';
    }
    *template = *at == '}' ? at + 1 : at;
    return true;
}

unsigned tile_print_count(const char *template) {
    unsigned count = 0;
    TilePrintPlace place;
    while (tile_print_next(&template, &place)) count += 1u + place.masked;
    return count;
}

/* ---- packed items ---- */

int64_t tile_print_packed_extent(const TilePrintPlace *place, bool message, unsigned axis) {
    size_t most = message ? MOST_IN_A_MESSAGE : MOST_ELEMENTS;
    bool cut = !place->first && place->lanes > most && place->extent[axis] > 2 * EDGE;
    return cut ? 2 * EDGE : place->extent[axis];
}

static size_t packed_lanes(const TilePrintPlace *place, bool message) {
    size_t lanes = 1;
    for (unsigned i = 0; i < place->rank; i++) lanes *= (size_t)tile_print_packed_extent(place, message, i);
    return lanes;
}

size_t tile_print_packed_words(const char *template) {
    bool message = tile_print_is_assertion(template, NULL, NULL);
    size_t words = 0;
    TilePrintPlace place;
    while (tile_print_next(&template, &place)) words += packed_lanes(&place, message) * (1u + place.masked);
    return words;
}

/* ---- text ---- */

typedef struct Line {
    char *text;
    size_t length, capacity;
    bool message, packed;
} Line;

static void add(Line *line, const char *text, size_t length) {
    if (line->length + length > line->capacity) {
        size_t capacity = 2 * (line->length + length) + 256;
        char *larger = realloc(line->text, capacity);
        if (!larger) return;
        line->text = larger;
        line->capacity = capacity;
    }
    memcpy(line->text + line->length, text, length);
    line->length += length;
}

static void add_text(Line *line, const char *text) { add(line, text, strlen(text)); }

/* The shortest decimal that round-trips; with a point in any locale. */
static void add_float(Line *line, double number, bool single) {
    char digits[40], *from = digits, *to = digits;
    if (isnan(number)) {
        add_text(line, "nan");
        return;
    }
    bool whole = fabs(number) < 1e15 && number == floor(number);
    if (whole) snprintf(digits, sizeof digits, "%.0f", number);
    for (int precision = 1; !whole && precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, number);
        double back = strtod(digits, NULL);
        if (single ? (float)back == (float)number : back == number) break;
    }
    for (bool inside = false; *from; from++) {
        bool plain = strchr("0123456789+-einf", *from) != NULL;
        if (plain) *to++ = *from;
        if (!plain && !inside) *to++ = '.';
        inside = !plain;
    }
    add(line, digits, (size_t)(to - digits));
}

static void add_number(Line *line, char kind, uint64_t bits) {
    char digits[24];
    double number;
    memcpy(&number, &bits, sizeof number);
    switch (kind) {
    case 'b': add_text(line, bits ? "true" : "false"); return;
    case 'f':
    case 'd': add_float(line, number, kind == 'f'); return;
    case 'u': snprintf(digits, sizeof digits, "%llu", (unsigned long long)bits); break;
    default: snprintf(digits, sizeof digits, "%lld", (long long)bits); break;
    }
    add_text(line, digits);
}

/* `lanes` consecutive elements from `first` on. */
static void add_elements(Line *line, const TilePrintPlace *place, const uint64_t *items, const uint64_t *mask,
                         unsigned axis, size_t first, size_t lanes) {
    if (axis == place->rank) {
        if (mask && !mask[first])
            add_text(line, "_");
        else
            add_number(line, place->kind, items[first]);
        return;
    }
    int64_t extent = place->extent[axis], shown = tile_print_packed_extent(place, line->message, axis);
    size_t each = lanes / (size_t)(line->packed ? shown : extent);
    add_text(line, "[");
    for (int64_t i = 0; i < shown; i++) {
        if (i) add_text(line, ", ");
        if (i == EDGE && shown < extent) add_text(line, "..., ");
        int64_t at = i < EDGE || line->packed ? i : i + extent - shown;
        add_elements(line, place, items, mask, axis + 1, first + (size_t)at * each, each);
    }
    add_text(line, "]");
}

/* 7 at [0, 3] */
static void add_first(Line *line, const TilePrintPlace *place, const uint64_t *items, const uint64_t *chosen) {
    size_t lane = 0, rest;
    while (lane + 1 < place->lanes && !chosen[lane]) lane++;
    add_number(line, place->kind, items[lane]);
    size_t lanes = place->lanes;
    rest = lane;
    for (unsigned i = 0; i < place->rank; i++) {
        char index[32];
        lanes /= (size_t)place->extent[i];
        snprintf(index, sizeof index, "%s%zu", i ? ", " : " at [", rest / lanes);
        add_text(line, index);
        rest %= lanes;
    }
    if (place->rank) add_text(line, "]");
}

/* Up to the next field; {{ is one brace. */
static void add_words(Line *line, const char *from) {
    for (; *from; from++) {
        if (*from == '{' && *++from != '{') return;
        add(line, from, 1);
    }
}

/* Each item of the field has `lanes` words. */
static void add_place(Line *line, const TilePrintPlace *place, const uint64_t *items, const uint64_t *mask,
                      size_t lanes) {
    if (place->first)
        add_first(line, place, items, mask);
    else
        add_elements(line, place, items, mask, 0, 0, lanes);
}

static void hand_over(Line *line, TilePrintLine print, void *host) {
    add_text(line, "\n");
    if (line->text) print(host, line->text, line->length);
    free(line->text);
}

void tile_print_line(const char *template, const uint64_t *const *items, TilePrintLine print, void *host) {
    Line line = {.message = tile_print_is_assertion(template, NULL, NULL)};
    TilePrintPlace place;
    template = body_of(template);
    for (;;) {
        add_words(&line, template);
        if (!tile_print_next(&template, &place)) break;
        add_place(&line, &place, items[0], place.masked ? items[1] : NULL, place.lanes);
        items += 1 + place.masked;
    }
    hand_over(&line, print, host);
}

void tile_print_packed_line(const char *template, const uint64_t *words, TilePrintLine print, void *host) {
    Line line = {.message = tile_print_is_assertion(template, NULL, NULL), .packed = true};
    TilePrintPlace place;
    template = body_of(template);
    for (;;) {
        add_words(&line, template);
        if (!tile_print_next(&template, &place)) break;
        size_t lanes = packed_lanes(&place, line.message);
        add_place(&line, &place, words, place.masked ? words + lanes : NULL, lanes);
        words += lanes * (1u + place.masked);
    }
    hand_over(&line, print, host);
}
