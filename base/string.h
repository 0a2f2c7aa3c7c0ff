/* Text under construction, and interned strings: equal texts are equal pointers within one table. */
#ifndef TILE_BASE_STRING_H
#define TILE_BASE_STRING_H

#include <stdbool.h>

#include "base/arena.h"

/* A growing text in an arena; `text` is zero-terminated once something was added. */
typedef struct TileText {
    TileArena *arena;
    char *text;
    size_t length, capacity;
} TileText;

void tile_text_add(TileText *text, const char *string);
void tile_text_add_bytes(TileText *text, const char *bytes, size_t length);
void tile_text_add_char(TileText *text, char character);
/* Adds the string as a JSON string, in quotes. */
void tile_text_add_json(TileText *text, const char *string);
/* Adds the string, escaped for XML. */
void tile_text_add_xml(TileText *text, const char *string);
void tile_text_format(TileText *text, const char *format, ...) TILE_PRINTF(2, 3);
/* The text so far, "" when empty. */
const char *tile_text_get(const TileText *text);

typedef struct TileInterner TileInterner;
TileInterner *tile_interner_create(TileArena *arena);
/* Another table on top of one that nobody changes while it is used: texts that `below` has are its copies. So threads share
 * a table, each with its own on top. */
TileInterner *tile_interner_create_above(TileArena *arena, const TileInterner *below);
/* The one copy of this text, zero-terminated; NULL if there is none. Changes nothing. */
const char *tile_interned(const TileInterner *interner, const char *text, size_t length);
/* The one copy of this text, zero-terminated. */
const char *tile_intern(TileInterner *interner, const char *text, size_t length);
const char *tile_intern_string(TileInterner *interner, const char *text);

/* Edit distance in characters (insert, delete, replace), at most 3: for proposals. */
unsigned tile_edit_distance(const char *a, const char *b);

/* FNV-1a, for hash tables of the compiler. */
uint64_t tile_hash_bytes(const void *data, size_t size, uint64_t seed);

#endif
