/* Reading and making JSON (libjansson): members that may be missing or of another kind, texts that may be no UTF-8. */
#ifndef TILE_LSP_JSON_H
#define TILE_LSP_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The member at a path such as "textDocument.uri"; NULL if any part is missing. */
json_t *tile_json_at(const json_t *object, const char *path);
/* The text at the path, NULL if it is no text or has a zero byte. */
const char *tile_json_text_at(const json_t *object, const char *path);
/* The integer at the path, held between `least` and `most`; `otherwise` if it is none. */
int64_t tile_json_integer_at(const json_t *object, const char *path, int64_t least, int64_t most, int64_t otherwise);
bool tile_json_true_at(const json_t *object, const char *path);
/* Does the list at the path have this text? */
bool tile_json_lists(const json_t *object, const char *path, const char *text);

/* A text; bytes that are no UTF-8 become `?`. */
json_t *tile_json_text(const char *text, size_t length);
json_t *tile_json_string(const char *text);
/* Sets a member, taking the value over. */
void tile_json_set(json_t *object, const char *name, json_t *value);
void tile_json_add(json_t *list, json_t *value);

#endif
