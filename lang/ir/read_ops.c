/* Ops with their names, attributes and regions, by recursive descent. */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "lang/ir/read.h"
#include "lang/scalar/scalar.h"

enum { DEEPEST_NESTING = 200 };

static int64_t read_name(Reader *r, TileAttributeKey key) {
    if (r->token.kind == TOKEN_NUMBER) return tile_read_integer(r);
    int64_t name = r->token.kind == TOKEN_WORD ? tile_name_find(key, r->token.text, r->token.length) : -1;
    if (name < 0)
        tile_read_fail(r, "expected a word that `%s` may be", tile_attribute_name(key));
    else
        tile_read_advance(r);
    return name;
}

static void read_integers(Reader *r, TileAttribute *attribute, bool names) {
    TILE_LIST(int64_t) values = {0};
    tile_read_expect(r, "[");
    if (!tile_read_at_mark(r, "]")) {
        do tile_list_push(r->scratch, &values, names ? read_name(r, attribute->key) : tile_read_integer(r));
        while (tile_read_accept(r, ","));
    }
    tile_read_expect(r, "]");
    attribute->integers = values.items;
    attribute->count = (uint32_t)values.count;
}

static void read_types(Reader *r, TileAttribute *attribute) {
    TILE_LIST(const TileType *) types = {0};
    tile_read_expect(r, "[");
    if (!tile_read_at_mark(r, "]")) {
        do tile_list_push(r->scratch, &types, tile_read_type(r));
        while (tile_read_accept(r, ","));
    }
    tile_read_expect(r, "]");
    attribute->types = types.items;
    attribute->count = (uint32_t)types.count;
}

static const char *read_text(Reader *r) {
    if (r->token.kind != TOKEN_STRING) tile_read_fail(r, "expected a text in quotes");
    const char *text = tile_arena_string(r->scratch, r->token.text, r->token.length);
    tile_read_advance(r);
    return text;
}

static void read_texts(Reader *r, TileAttribute *attribute) {
    TILE_LIST(const char *) texts = {0};
    tile_read_expect(r, "[");
    if (!tile_read_at_mark(r, "]")) {
        do tile_list_push(r->scratch, &texts, read_text(r));
        while (tile_read_accept(r, ","));
    }
    tile_read_expect(r, "]");
    attribute->texts = texts.items;
    attribute->count = (uint32_t)texts.count;
}

/* A number, a word, or bits(0x..): the text up to the next delimiter. */
static Token read_bits(Reader *r) {
    Token word = r->token;
    bool raw = tile_read_at_word(r, "bits");
    if (word.kind != TOKEN_WORD && word.kind != TOKEN_NUMBER) tile_read_fail(r, "expected a number");
    tile_read_advance(r);
    if (raw) {
        tile_read_expect(r, "(");
        if (r->token.kind != TOKEN_NUMBER)
            tile_read_fail(r, "expected a number");
        else
            tile_read_advance(r);
        word.length = r->failed ? 0 : r->token.start + 1 - word.start;
        tile_read_expect(r, ")");
    }
    return word;
}

static void read_attribute(Reader *r) {
    Attribute item = {0};
    TileAttributeKey key = tile_attribute_find(r->token.text, r->token.length);
    if (r->token.kind != TOKEN_WORD || key == TILE_ATTRIBUTE_COUNT) {
        tile_read_fail(r, "expected the name of an attribute");
        return;
    }
    for (size_t i = 0; i < r->attributes.count; i++)
        if (r->attributes.items[i].attribute.key == key)
            tile_read_fail(r, "`%s` is given twice", tile_attribute_name(key));
    item.attribute.key = key;
    tile_read_advance(r);
    tile_read_expect(r, "=");
    switch (tile_attribute_storage(key)) {
    case TILE_STORAGE_BITS: item.word = read_bits(r); break;
    case TILE_STORAGE_INT: item.attribute.integer = tile_read_integer(r); break;
    case TILE_STORAGE_NAME: item.attribute.integer = read_name(r, key); break;
    case TILE_STORAGE_INTS: read_integers(r, &item.attribute, false); break;
    case TILE_STORAGE_NAMES: read_integers(r, &item.attribute, true); break;
    case TILE_STORAGE_TYPES: read_types(r, &item.attribute); break;
    case TILE_STORAGE_TEXT: item.attribute.text = read_text(r); break;
    case TILE_STORAGE_TEXTS: read_texts(r, &item.attribute); break;
    }
    tile_list_push(r->scratch, &r->attributes, item);
}

void tile_read_attributes(Reader *r) {
    do read_attribute(r);
    while (tile_read_accept(r, ","));
}

/* `{ word =` opens attributes, any other `{` a region. */
static bool at_attributes(Reader *r) {
    if (!tile_read_at_mark(r, "{")) return false;
    Reader before = *r;
    tile_read_advance(r);
    bool word = r->token.kind == TOKEN_WORD;
    tile_read_advance(r);
    bool result = word && tile_read_at_mark(r, "=");
    if (r->failed) return false;
    *r = before;
    return result;
}

void tile_read_set_attributes(Reader *r, TileOp *op) {
    for (size_t i = 0; i < r->attributes.count; i++) {
        Attribute *item = &r->attributes.items[i];
        if (tile_attribute_storage(item->attribute.key) == TILE_STORAGE_BITS) {
            const TileType *type = op->result_count ? op->results[0].type : NULL;
            TileScalar scalar = type ? type->scalar : TILE_U64;
            if (!tile_scalar_read(scalar, item->word.text, item->word.length, &item->attribute.bits))
                tile_read_fail_at(r, item->word.line, item->word.column, "no value of type %s",
                                  tile_scalar_name(scalar));
        }
        tile_op_set(r->module, op, item->attribute);
    }
}

/* ---- values and ops ---- */

/* `%0` and `%"0"` differ; names that are numbers are no hints. */
bool tile_read_is_number(const Token *token) { return !token->quoted && isdigit((unsigned char)token->text[0]); }

static const char *key_of(Reader *r, const Token *token) {
    char sort = tile_read_is_number(token) ? '#' : '%';
    const char *text = tile_arena_format(r->scratch, "%c%.*s", sort, (int)token->length, token->text);
    return tile_intern_string(r->context->strings, text);
}

void tile_read_define(Reader *r, const Token *token, TileValue *value) {
    const char *key = key_of(r, token);
    if (tile_map_get(&r->values, key))
        tile_read_fail_at(r, token->line, token->column, "%%%.*s is defined twice", (int)token->length, token->text);
    tile_map_set(&r->values, key, value);
    tile_list_push(r->scratch, &r->visible, key);
    if (!tile_read_is_number(token)) value->name = tile_read_intern(r, token);
}

/* A name's scope ends with the region that defines it. */
static void hide(Reader *r, size_t count) {
    while (r->visible.count > count) tile_map_set(&r->values, r->visible.items[--r->visible.count], NULL);
}

Token tile_read_value_name(Reader *r) {
    Token token = r->token;
    if (token.kind != TOKEN_VALUE)
        tile_read_fail(r, "expected a value");
    else
        tile_read_advance(r);
    return token;
}

/* Operands must be on the line of the op's name: a value on the next line is a result of the next op. */
static void read_operands(Reader *r, uint32_t line) {
    if (r->token.kind != TOKEN_VALUE || r->token.line != line) return;
    do {
        Token token = tile_read_value_name(r);
        if (r->failed) return;
        TileValue *value = tile_map_get(&r->values, key_of(r, &token));
        if (!value)
            tile_read_fail_at(r, token.line, token.column, "%%%.*s is not defined", (int)token.length, token.text);
        else
            tile_list_push(r->scratch, &r->operands, value);
    } while (tile_read_accept(r, ","));
}

void tile_read_op(Reader *r, TileBlock *block);

/* The context's index of a file: one of those that the text lists, if it lists any. */
static uint32_t file_number(const Reader *r, uint32_t number) {
    if (r->files.count) return number && number <= r->files.count ? r->files.items[number - 1] : 0;
    return number < r->context->files.count ? number : 0;
}

/* The `@file:line:column` of an op or a function; without one, the location of the given token. */
TileLocation tile_read_location(Reader *r, const Token *begin) {
    uint64_t number = 0;
    if (r->token.kind != TOKEN_SYMBOL || r->token.quoted)
        return r->file ? (TileLocation){r->file, begin->line, begin->column} : (TileLocation){0};
    if (!tile_scalar_read(TILE_U32, r->token.text, r->token.length, &number))
        tile_read_fail(r, "expected @line:column");
    tile_read_advance(r);
    tile_read_expect(r, ":");
    TileLocation location = {1, (uint32_t)number, tile_read_small(r)};
    if (tile_read_accept(r, ":")) location = (TileLocation){location.line, location.column, tile_read_small(r)};
    location.file = file_number(r, location.file);
    return location;
}

static void read_region(Reader *r, TileBlock *block) {
    size_t outside = r->visible.count;
    if (tile_read_accept(r, "(")) {
        do {
            Token token = tile_read_value_name(r);
            tile_read_expect(r, ":");
            const TileType *type = tile_read_type(r);
            if (!r->failed) tile_read_define(r, &token, tile_block_add_argument(r->module, block, type, NULL));
        } while (tile_read_accept(r, ","));
        tile_read_expect(r, ")");
    }
    tile_read_expect(r, "{");
    if (++r->depth > DEEPEST_NESTING) tile_read_fail(r, "regions are nested too deeply");
    while (!r->failed && !tile_read_at_mark(r, "}")) tile_read_op(r, block);
    r->depth--;
    hide(r, outside);
    tile_read_expect(r, "}");
}

static void read_result_names(Reader *r) {
    if (r->token.kind != TOKEN_VALUE) return;
    do {
        Token token = tile_read_value_name(r);
        if (!r->failed) tile_list_push(r->scratch, &r->names, token);
    } while (tile_read_accept(r, ","));
    tile_read_expect(r, "=");
}

static TileOp *make_op(Reader *r, TileOpId id) {
    if (r->names.count != r->types.count)
        tile_read_fail(r, "the op has %zu results, but %zu types", r->names.count, r->types.count);
    if (r->types.count > UINT16_MAX) tile_read_fail(r, "the op has too many results");
    if (r->failed) return NULL;
    TileOp *op = tile_op_create(r->module, id, (TileLocation){0}, r->operands.items, (unsigned)r->operands.count,
                                r->types.items, (unsigned)r->types.count);
    tile_read_set_attributes(r, op);
    return op;
}

void tile_read_op(Reader *r, TileBlock *block) {
    Token begin = r->token;
    r->operands.count = r->attributes.count = r->types.count = r->names.count = 0;
    read_result_names(r);
    TileOpId id = r->token.kind == TOKEN_WORD ? tile_op_find(r->token.text, r->token.length) : TILE_OP_COUNT;
    if (id == TILE_OP_COUNT) {
        tile_read_fail(r, "expected an operation");
        return;
    }
    uint32_t line = r->token.line;
    tile_read_advance(r);
    read_operands(r, line);
    if (at_attributes(r)) {
        tile_read_expect(r, "{");
        tile_read_attributes(r);
        tile_read_expect(r, "}");
    }
    if (tile_read_accept(r, ":")) {
        do tile_list_push(r->scratch, &r->types, tile_read_type(r));
        while (tile_read_accept(r, ","));
    }
    TileOp *op = make_op(r, id);
    if (!op) return;
    Token *names = tile_arena_copy(r->scratch, r->names.items, r->names.count * sizeof *names);
    op->location = tile_read_location(r, &begin);
    tile_op_append(op, block);
    for (unsigned i = 0; i < op->region_count && !r->failed; i++) read_region(r, &op->regions[i]);
    for (unsigned i = 0; i < op->result_count && !r->failed; i++) tile_read_define(r, &names[i], &op->results[i]);
}
