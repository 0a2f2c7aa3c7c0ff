/* Reading and making JSON: members that may be missing or of another kind, texts that may be no UTF-8. */
#include "lsp/json.h"

#include <stdlib.h>
#include <string.h>

json_t *tile_json_at(const json_t *object, const char *path) {
    while (object) {
        size_t length = strcspn(path, ".");
        json_t *member = json_object_getn(object, path, length);
        if (!path[length]) return member;
        path += length + 1;
        object = member;
    }
    return NULL;
}

const char *tile_json_text_at(const json_t *object, const char *path) {
    const json_t *value = tile_json_at(object, path);
    const char *text = json_string_value(value);
    return text && strlen(text) == json_string_length(value) ? text : NULL;
}

int64_t tile_json_integer_at(const json_t *object, const char *path, int64_t least, int64_t most, int64_t otherwise) {
    const json_t *value = tile_json_at(object, path);
    if (!json_is_integer(value)) return otherwise;
    int64_t number = json_integer_value(value);
    return number < least ? least : number > most ? most : number;
}

bool tile_json_true_at(const json_t *object, const char *path) { return json_is_true(tile_json_at(object, path)); }

bool tile_json_lists(const json_t *object, const char *path, const char *text) {
    const json_t *list = tile_json_at(object, path);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *item = json_string_value(json_array_get(list, i));
        if (item && strcmp(item, text) == 0) return true;
    }
    return false;
}

json_t *tile_json_text(const char *text, size_t length) {
    json_t *value = json_stringn(text, length);
    if (value) return value;
    char *copy = strndup(text, length);
    for (size_t i = 0; copy && copy[i]; i++)
        if ((unsigned char)copy[i] >= 0x80) copy[i] = '?';
    value = copy ? json_string(copy) : NULL;
    free(copy);
    return value ? value : json_null();
}

json_t *tile_json_string(const char *text) { return tile_json_text(text, strlen(text)); }

void tile_json_set(json_t *object, const char *name, json_t *value) { json_object_set_new(object, name, value); }

void tile_json_add(json_t *list, json_t *value) { json_array_append_new(list, value); }
