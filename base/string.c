#include "base/string.h"

#include <stdio.h>
#include <string.h>

void tile_text_add_bytes(TileText *text, const char *bytes, size_t length) {
    if (text->length + length + 1 > text->capacity) {
        size_t wanted = text->capacity ? text->capacity * 2 : 256;
        if (wanted < text->length + length + 1) wanted = text->length + length + 1;
        text->text = tile_arena_grow(text->arena, text->text, text->length, wanted);
        text->capacity = wanted;
    }
    if (length) memcpy(text->text + text->length, bytes, length);
    text->length += length;
    text->text[text->length] = 0;
}

void tile_text_add(TileText *text, const char *string) { tile_text_add_bytes(text, string, strlen(string)); }
void tile_text_add_char(TileText *text, char character) { tile_text_add_bytes(text, &character, 1); }
void tile_text_add_json(TileText *text, const char *string) {
    tile_text_add_char(text, '"');
    for (const char *c = string; *c; c++) {
        if (*c == '"' || *c == '\\')
            tile_text_format(text, "\\%c", *c);
        else if ((unsigned char)*c < 0x20)
            tile_text_format(text, "\\u%04x", *c);
        else
            tile_text_add_char(text, *c);
    }
    tile_text_add_char(text, '"');
}

void tile_text_add_xml(TileText *text, const char *string) {
    for (const char *c = string; *c; c++) {
        if (*c == '<')
            tile_text_add(text, "&lt;");
        else if (*c == '&')
            tile_text_add(text, "&amp;");
        else if (*c == '"')
            tile_text_add(text, "&quot;");
        else
            tile_text_add_char(text, *c);
    }
}

const char *tile_text_get(const TileText *text) { return text->text ? text->text : ""; }

void tile_text_format(TileText *text, const char *format, ...) {
    va_list arguments;
    char buffer[256];
    va_start(arguments, format);
    int length = vsnprintf(buffer, sizeof buffer, format, arguments);
    va_end(arguments);
    if (length < 0) return;
    if ((size_t)length < sizeof buffer) {
        tile_text_add_bytes(text, buffer, (size_t)length);
        return;
    }
    va_start(arguments, format);
    tile_text_add(text, tile_arena_format_list(text->arena, format, arguments));
    va_end(arguments);
}

uint64_t tile_hash_bytes(const void *data, size_t size, uint64_t seed) {
    const unsigned char *bytes = data;
    uint64_t hash = 0xcbf29ce484222325u ^ seed;
    for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return hash;
}

typedef struct Entry {
    const char *text;
    size_t length;
    uint64_t hash;
} Entry;

struct TileInterner {
    TileArena *arena;
    const TileInterner *below; /* or NULL */
    Entry *entries;
    size_t capacity, count;
};

TileInterner *tile_interner_create(TileArena *arena) {
    TileInterner *interner = TILE_NEW(arena, TileInterner);
    interner->arena = arena;
    interner->capacity = 256;
    interner->entries = TILE_NEW_ARRAY(arena, Entry, interner->capacity);
    return interner;
}

TileInterner *tile_interner_create_above(TileArena *arena, const TileInterner *below) {
    TileInterner *interner = tile_interner_create(arena);
    interner->below = below;
    return interner;
}

static Entry *find_entry(Entry *entries, size_t capacity, const char *text, size_t length, uint64_t hash) {
    size_t slot = (size_t)hash & (capacity - 1);
    while (entries[slot].text && !(entries[slot].hash == hash && entries[slot].length == length &&
                                   memcmp(entries[slot].text, text, length) == 0))
        slot = (slot + 1) & (capacity - 1);
    return &entries[slot];
}

static void grow_interner(TileInterner *interner) {
    size_t capacity = interner->capacity * 2;
    Entry *entries = TILE_NEW_ARRAY(interner->arena, Entry, capacity);
    for (size_t i = 0; i < interner->capacity; i++) {
        Entry *old = &interner->entries[i];
        if (old->text) *find_entry(entries, capacity, old->text, old->length, old->hash) = *old;
    }
    interner->entries = entries;
    interner->capacity = capacity;
}

static const char *find_text(const TileInterner *interner, const char *text, size_t length, uint64_t hash) {
    const char *found = NULL;
    for (; interner && !found; interner = interner->below)
        found = find_entry(interner->entries, interner->capacity, text, length, hash)->text;
    return found;
}

const char *tile_interned(const TileInterner *interner, const char *text, size_t length) {
    return find_text(interner, text, length, tile_hash_bytes(text, length, 0));
}

const char *tile_intern(TileInterner *interner, const char *text, size_t length) {
    if (interner->count * 4 >= interner->capacity * 3) grow_interner(interner);
    uint64_t hash = tile_hash_bytes(text, length, 0);
    const char *below = find_text(interner->below, text, length, hash);
    if (below) return below;
    Entry *entry = find_entry(interner->entries, interner->capacity, text, length, hash);
    if (!entry->text) {
        *entry = (Entry){tile_arena_string(interner->arena, text, length), length, hash};
        interner->count++;
    }
    return entry->text;
}

const char *tile_intern_string(TileInterner *interner, const char *text) {
    return tile_intern(interner, text, strlen(text));
}

unsigned tile_edit_distance(const char *a, const char *b) {
    enum { LONGEST = 31 };
    unsigned row[LONGEST + 1];
    size_t la = strlen(a), lb = strlen(b);
    if (la > LONGEST || lb > LONGEST || la > lb + 2 || lb > la + 2) return 3;
    for (size_t k = 0; k <= lb; k++) row[k] = (unsigned)k;
    for (size_t i = 1; i <= la; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i;
        for (size_t k = 1; k <= lb; k++) {
            unsigned cost = diagonal + (a[i - 1] != b[k - 1]);
            diagonal = row[k];
            if (row[k - 1] + 1 < cost) cost = row[k - 1] + 1;
            if (row[k] + 1 < cost) cost = row[k] + 1;
            row[k] = cost;
        }
    }
    return row[lb];
}
