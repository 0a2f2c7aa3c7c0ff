/* The reader of the text form: a lexer and recursive descent by hand. After the first error the rest of the text
 * counts as its end, so every loop ends without a check of its own. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lang/layout.h"
#include "lang/scalar/scalar.h"
#include "lang/text.h"

enum { DEEPEST_NESTING = 200 };
static const int64_t most_lanes = (int64_t)1 << 31;

typedef enum TokenKind {
    TOKEN_END,
    TOKEN_WORD,
    TOKEN_VALUE,
    TOKEN_SYMBOL,
    TOKEN_NUMBER,
    TOKEN_STRING,
    TOKEN_MARK
} TokenKind;

typedef struct Token {
    TokenKind kind;
    const char *text; /* without sigil and quotes */
    size_t length;
    bool quoted;
    size_t start; /* in the text */
    uint32_t line, column;
} Token;

/* An attribute whose bits can be read only when the type of the result is known. */
typedef struct Attribute {
    TileAttribute attribute;
    Token word;
} Attribute;

typedef struct PhaseOf {
    TileFunc *phase;
    Token kernel;
} PhaseOf;

typedef struct Reader {
    TileContext *context;
    TileModule *module;
    TileArena *scratch;
    const char *text;
    size_t length, position, line_start;
    uint32_t line;
    Token token;
    TileText *errors;
    bool failed;
    TileFunc *func;
    TileMap values;                  /* from key_of a name to the value; NULL once it is out of sight */
    TILE_LIST(const char *) visible; /* keys of names in the order of definition */
    unsigned depth;
    TILE_LIST(TileValue *) operands;
    TILE_LIST(Attribute) attributes;
    TILE_LIST(const TileType *) types;
    TILE_LIST(Token) names;
    uint32_t file; /* the context's number of this text; 0: ops do not say where in it they stand */
    TILE_LIST(const TileLayout *) layouts; /* of the function, by number */
    TILE_LIST(uint32_t) files;             /* the context's numbers of the files that the text names */
    TILE_LIST(PhaseOf) phases;             /* whose kernels are to be found */
} Reader;

/* ---- lexer ---- */

static void fail_at(Reader *r, uint32_t line, uint32_t column, const char *format, ...) TILE_PRINTF(4, 5);

static void fail_at(Reader *r, uint32_t line, uint32_t column, const char *format, ...) {
    if (r->failed) return;
    r->failed = true;
    r->position = r->length;
    r->token = (Token){.kind = TOKEN_END, .text = "", .start = r->length, .line = line, .column = column};
    if (!r->errors) return;
    va_list arguments;
    va_start(arguments, format);
    tile_text_format(r->errors, "%u:%u: ", line, column);
    tile_text_add(r->errors, tile_arena_format_list(r->scratch, format, arguments));
    tile_text_add_char(r->errors, '\n');
    va_end(arguments);
}

#define fail(r, ...) fail_at((r), (r)->token.line, (r)->token.column, __VA_ARGS__)

static int peek(const Reader *r, size_t ahead) {
    return r->position + ahead < r->length ? (unsigned char)r->text[r->position + ahead] : -1;
}

static void skip_space(Reader *r) {
    for (;;) {
        int c = peek(r, 0);
        if (c == '\n') {
            r->line++;
            r->line_start = r->position + 1;
        } else if (c == '/' && peek(r, 1) == '/') {
            while (peek(r, 1) >= 0 && peek(r, 1) != '\n') r->position++;
        } else if (c != ' ' && c != '\t' && c != '\r') {
            return;
        }
        r->position++;
    }
}

static bool is_name_character(int c) { return c >= 0 && (isalnum(c) || c == '_' || c == '.'); }

static void lex_name(Reader *r) {
    r->token.text = r->text + r->position;
    while (is_name_character(peek(r, 0))) r->position++;
    r->token.length = (size_t)(r->text + r->position - r->token.text);
}

static int hex_digit(int c) {
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int lex_escape(Reader *r) {
    int c = peek(r, 0);
    r->position++;
    if (c == 'n') return '\n';
    if (c == '"' || c == '\\') return c;
    int high = hex_digit(peek(r, 0)), low = hex_digit(peek(r, 1));
    if (c != 'x' || high < 0 || low < 0 || (high | low) == 0) return -1;
    r->position += 2;
    return high * 16 + low;
}

/* At the opening quote. */
static void lex_string(Reader *r) {
    TileText text = {.arena = r->scratch};
    r->position++;
    for (;;) {
        int c = peek(r, 0);
        r->position++;
        if (c == '"') break;
        bool unfinished = c == '\n';
        if (c == '\\') c = lex_escape(r);
        if (c <= 0 || unfinished) {
            fail(r, "a string that does not end on its line, or an escape other than \\n \\\" \\\\ \\xNN");
            return;
        }
        tile_text_add_char(&text, (char)c);
    }
    r->token.text = tile_text_get(&text);
    r->token.length = text.length;
    r->token.quoted = true;
}

static void lex_number(Reader *r) {
    r->token.text = r->text + r->position++;
    while (is_name_character(peek(r, 0)) ||
           ((peek(r, 0) == '+' || peek(r, 0) == '-') && tolower(r->text[r->position - 1]) == 'e'))
        r->position++;
    r->token.length = (size_t)(r->text + r->position - r->token.text);
}

static void advance(Reader *r) {
    skip_space(r);
    uint32_t column = (uint32_t)(r->position - r->line_start) + 1;
    r->token = (Token){.kind = TOKEN_END, .text = "", .start = r->position, .line = r->line, .column = column};
    int c = peek(r, 0);
    if (c < 0) return;
    if (c == '%' || c == '@') {
        r->token.kind = c == '%' ? TOKEN_VALUE : TOKEN_SYMBOL;
        r->position++;
        if (peek(r, 0) == '"')
            lex_string(r);
        else
            lex_name(r);
        if (!r->token.length && !r->token.quoted) fail(r, "a name has to follow %c", c);
    } else if (c == '"') {
        r->token.kind = TOKEN_STRING;
        lex_string(r);
    } else if (isdigit(c) || (c == '-' && is_name_character(peek(r, 1)))) {
        r->token.kind = TOKEN_NUMBER;
        lex_number(r);
    } else if (is_name_character(c)) {
        r->token.kind = TOKEN_WORD;
        lex_name(r);
    } else {
        bool arrow = c == '-' && peek(r, 1) == '>';
        r->token.kind = TOKEN_MARK;
        r->token.text = r->text + r->position;
        r->token.length = arrow ? 2 : 1;
        r->position += r->token.length;
    }
}

/* ---- small pieces ---- */

static bool at(const Reader *r, TokenKind kind, const char *text) {
    return r->token.kind == kind && strlen(text) == r->token.length &&
           memcmp(r->token.text, text, r->token.length) == 0;
}
static bool at_mark(const Reader *r, const char *mark) { return at(r, TOKEN_MARK, mark); }
static bool at_word(const Reader *r, const char *word) { return at(r, TOKEN_WORD, word); }

static bool accept(Reader *r, const char *mark) {
    if (!at_mark(r, mark)) return false;
    advance(r);
    return true;
}

static void expect(Reader *r, const char *mark) {
    if (!accept(r, mark)) fail(r, "expected `%s`", mark);
}

static bool accept_word(Reader *r, const char *word) {
    if (!at_word(r, word)) return false;
    advance(r);
    return true;
}

/* The number of the word among `count` words; the last one when there is none, after an error. */
static unsigned read_choice(Reader *r, const char *const *words, unsigned count, const char *what) {
    for (unsigned i = 0; i < count; i++)
        if (accept_word(r, words[i])) return i;
    fail(r, "expected %s", what);
    return count - 1;
}

static const char *intern(Reader *r, const Token *token) {
    return tile_intern(r->context->strings, token->text, token->length);
}

static int64_t read_integer(Reader *r) {
    uint64_t bits = 0;
    if (r->token.kind != TOKEN_NUMBER || !tile_scalar_read(TILE_I64, r->token.text, r->token.length, &bits))
        fail(r, "expected an integer of 64 bits");
    else
        advance(r);
    return (int64_t)bits;
}

static uint32_t read_small(Reader *r) {
    int64_t value = read_integer(r);
    if (value < 0 || value > UINT32_MAX) fail(r, "the number before this is out of range");
    return (uint32_t)value;
}

/* ---- types ---- */

static TileScalar read_scalar(Reader *r) {
    TileScalar scalar = TILE_I64;
    if (r->token.kind != TOKEN_WORD || !tile_scalar_find(r->token.text, r->token.length, &scalar))
        fail(r, "expected a type");
    else
        advance(r);
    return scalar;
}

static int64_t read_extent(Reader *r) {
    int64_t extent = read_integer(r);
    if (extent < 1 || extent > most_lanes) fail(r, "an extent lies between 1 and %lld", (long long)most_lanes);
    return extent;
}

static const TileLayout *layout_of_number(Reader *r) {
    uint32_t number = read_small(r);
    if (!r->failed && number >= r->layouts.count) fail(r, "the function has no layout %u", number);
    return r->failed ? NULL : r->layouts.items[number];
}

static const TileType *read_tile(Reader *r, TileScalar scalar) {
    int64_t extent[TILE_MAX_TILE_RANK] = {0}, lanes = 1;
    unsigned rank = 0;
    do {
        if (rank == TILE_MAX_TILE_RANK) {
            fail(r, "a tile has at most %d axes", TILE_MAX_TILE_RANK);
            return tile_type_scalar(r->context, scalar);
        }
        extent[rank] = read_extent(r);
        if (!r->failed && extent[rank] > most_lanes / lanes) fail(r, "the tile has too many elements");
        if (r->failed) return tile_type_scalar(r->context, scalar);
        lanes *= extent[rank++];
    } while (accept(r, ","));
    expect(r, "]");
    const TileType *type = tile_type_tile(r->context, scalar, rank, extent);
    return accept_word(r, "layout") ? tile_type_with_layout(r->context, type, layout_of_number(r)) : type;
}

static const TileType *read_vector(Reader *r) {
    expect(r, "<");
    bool scalable = accept(r, "[");
    int64_t lanes = read_extent(r);
    if (scalable) expect(r, "]");
    if (!accept_word(r, "x")) fail(r, "expected `x`");
    TileScalar scalar = read_scalar(r);
    expect(r, ">");
    return tile_type_vector(r->context, scalar, r->failed ? 1 : lanes, scalable);
}

static const TileType *read_tensor(Reader *r) {
    static const char *const words[] = {"in", "out", "inout", "temp"};
    expect(r, "<");
    TileScalar scalar = read_scalar(r);
    expect(r, ",");
    uint32_t rank = read_small(r);
    if (rank > TILE_MAX_TENSOR_RANK) fail(r, "a tensor has at most %d dimensions", TILE_MAX_TENSOR_RANK);
    expect(r, ",");
    unsigned access = read_choice(r, words, 4, "in, out, inout or temp");
    expect(r, ">");
    return tile_type_tensor(r->context, scalar, r->failed ? 0 : rank, (TileAccess)access);
}

static void read_swizzle(Reader *r, TileType *type) {
    static const char *const words[] = {"rows", "words", "bytes"};
    int64_t bytes = read_integer(r);
    while (type->log_chunks < TILE_MAX_LOG_CHUNKS && bytes > TILE_CHUNK_BYTES << type->log_chunks) type->log_chunks++;
    if (!type->log_chunks || bytes != TILE_CHUNK_BYTES << type->log_chunks)
        fail(r, "a swizzle is of 32, 64 or 128 bytes");
    type->swizzle = (uint8_t)(TILE_SWIZZLE_ROWS + read_choice(r, words, 3, "rows, words or bytes"));
}

/* What lies at a pointer into shared memory, or in a channel's slots. */
static void read_stored(Reader *r, TileType *type) {
    TileScalar scalar = read_scalar(r);
    expect(r, "[");
    const TileType *tile = r->failed ? NULL : read_tile(r, scalar);
    if (!r->failed && (tile->rank != 2 || tile->layout))
        fail(r, "what lies in shared memory has two axes, and no layout");
    if (r->failed) return;
    type->scalar = scalar;
    type->rank = tile->rank;
    memcpy(type->extent, tile->extent, sizeof type->extent);
    if (!accept(r, ",")) return;
    if (!accept_word(r, "swizzle")) fail(r, "expected `swizzle`");
    read_swizzle(r, type);
    if (!r->failed && type->extent[1] * tile_scalar_bytes(scalar) % (TILE_CHUNK_BYTES << type->log_chunks))
        fail(r, "the swizzle does not divide a row");
}

static const TileType *read_pointer(Reader *r) {
    static const char *const spaces[] = {"global", "shared", "scratch"};
    expect(r, "<");
    TileSpace space = (TileSpace)read_choice(r, spaces, 3, "global, shared or scratch");
    TileType type = {.kind = TILE_TYPE_POINTER, .space = (uint8_t)space};
    if (space == TILE_SPACE_SHARED && accept(r, ",")) read_stored(r, &type);
    expect(r, ">");
    return r->failed ? tile_type_pointer(r->context, space) : tile_type_intern(r->context->types, &type);
}

static const TileType *read_channel(Reader *r) {
    TileType type = {.kind = TILE_TYPE_CHANNEL};
    expect(r, "<");
    read_stored(r, &type);
    expect(r, ">");
    return r->failed ? tile_type_scalar(r->context, TILE_I64) : tile_type_intern(r->context->types, &type);
}

static const TileType *read_type(Reader *r) {
    if (accept_word(r, "tensor")) return read_tensor(r);
    if (accept_word(r, "vec")) return read_vector(r);
    if (accept_word(r, "ptr")) return read_pointer(r);
    if (accept_word(r, "channel")) return read_channel(r);
    TileScalar scalar = read_scalar(r);
    return accept(r, "[") ? read_tile(r, scalar) : tile_type_scalar(r->context, scalar);
}

/* ---- attributes ---- */

static int64_t read_name(Reader *r, TileAttributeKey key) {
    if (r->token.kind == TOKEN_NUMBER) return read_integer(r);
    int64_t name = r->token.kind == TOKEN_WORD ? tile_name_find(key, r->token.text, r->token.length) : -1;
    if (name < 0)
        fail(r, "expected a word that `%s` may be", tile_attribute_name(key));
    else
        advance(r);
    return name;
}

static void read_integers(Reader *r, TileAttribute *attribute, bool names) {
    TILE_LIST(int64_t) values = {0};
    expect(r, "[");
    if (!at_mark(r, "]")) {
        do tile_list_push(r->scratch, &values, names ? read_name(r, attribute->key) : read_integer(r));
        while (accept(r, ","));
    }
    expect(r, "]");
    attribute->integers = values.items;
    attribute->count = (uint32_t)values.count;
}

static void read_types(Reader *r, TileAttribute *attribute) {
    TILE_LIST(const TileType *) types = {0};
    expect(r, "[");
    if (!at_mark(r, "]")) {
        do tile_list_push(r->scratch, &types, read_type(r));
        while (accept(r, ","));
    }
    expect(r, "]");
    attribute->types = types.items;
    attribute->count = (uint32_t)types.count;
}

/* A number, a word, or bits(0x..): taken as it stands up to what follows it. */
static Token read_bits(Reader *r) {
    Token word = r->token;
    bool raw = at_word(r, "bits");
    if (word.kind != TOKEN_WORD && word.kind != TOKEN_NUMBER) fail(r, "expected a number");
    advance(r);
    if (raw) {
        expect(r, "(");
        if (r->token.kind != TOKEN_NUMBER)
            fail(r, "expected a number");
        else
            advance(r);
        word.length = r->failed ? 0 : r->token.start + 1 - word.start;
        expect(r, ")");
    }
    return word;
}

static void read_attribute(Reader *r) {
    Attribute item = {0};
    TileAttributeKey key = tile_attribute_find(r->token.text, r->token.length);
    if (r->token.kind != TOKEN_WORD || key == TILE_ATTRIBUTE_COUNT) {
        fail(r, "expected the name of an attribute");
        return;
    }
    for (size_t i = 0; i < r->attributes.count; i++)
        if (r->attributes.items[i].attribute.key == key) fail(r, "`%s` is given twice", tile_attribute_name(key));
    item.attribute.key = key;
    advance(r);
    expect(r, "=");
    switch (tile_attribute_storage(key)) {
    case TILE_STORAGE_BITS: item.word = read_bits(r); break;
    case TILE_STORAGE_INT: item.attribute.integer = read_integer(r); break;
    case TILE_STORAGE_NAME: item.attribute.integer = read_name(r, key); break;
    case TILE_STORAGE_INTS: read_integers(r, &item.attribute, false); break;
    case TILE_STORAGE_NAMES: read_integers(r, &item.attribute, true); break;
    case TILE_STORAGE_TYPES: read_types(r, &item.attribute); break;
    case TILE_STORAGE_TEXT:
        if (r->token.kind != TOKEN_STRING) fail(r, "expected a text in quotes");
        item.attribute.text = tile_arena_string(r->scratch, r->token.text, r->token.length);
        advance(r);
        break;
    }
    tile_list_push(r->scratch, &r->attributes, item);
}

static void read_attributes(Reader *r) {
    do read_attribute(r);
    while (accept(r, ","));
}

/* `{ word =` opens attributes, any other `{` a region. */
static bool at_attributes(Reader *r) {
    if (!at_mark(r, "{")) return false;
    Reader before = *r;
    advance(r);
    bool word = r->token.kind == TOKEN_WORD;
    advance(r);
    bool result = word && at_mark(r, "=");
    if (r->failed) return false;
    *r = before;
    return result;
}

static void set_attributes(Reader *r, TileOp *op) {
    for (size_t i = 0; i < r->attributes.count; i++) {
        Attribute *item = &r->attributes.items[i];
        if (tile_attribute_storage(item->attribute.key) == TILE_STORAGE_BITS) {
            const TileType *type = op->result_count ? op->results[0].type : NULL;
            TileScalar scalar = type ? type->scalar : TILE_U64;
            if (!tile_scalar_read(scalar, item->word.text, item->word.length, &item->attribute.bits))
                fail_at(r, item->word.line, item->word.column, "no value of type %s", tile_scalar_name(scalar));
        }
        tile_op_set(r->module, op, item->attribute);
    }
}

/* ---- values and ops ---- */

/* `%0` and `%"0"` differ, and numbers are no hints. */
static bool is_number(const Token *token) { return !token->quoted && isdigit((unsigned char)token->text[0]); }

static const char *key_of(Reader *r, const Token *token) {
    char sort = is_number(token) ? '#' : '%';
    const char *text = tile_arena_format(r->scratch, "%c%.*s", sort, (int)token->length, token->text);
    return tile_intern_string(r->context->strings, text);
}

static void define(Reader *r, const Token *token, TileValue *value) {
    const char *key = key_of(r, token);
    if (tile_map_get(&r->values, key))
        fail_at(r, token->line, token->column, "%%%.*s is defined twice", (int)token->length, token->text);
    tile_map_set(&r->values, key, value);
    tile_list_push(r->scratch, &r->visible, key);
    if (!is_number(token)) value->name = intern(r, token);
}

/* Names end with the region that they are defined in. */
static void hide(Reader *r, size_t count) {
    while (r->visible.count > count) tile_map_set(&r->values, r->visible.items[--r->visible.count], NULL);
}

static Token read_value_name(Reader *r) {
    Token token = r->token;
    if (token.kind != TOKEN_VALUE)
        fail(r, "expected a value");
    else
        advance(r);
    return token;
}

/* On the line of the op's name: a value on the next one is a result of the next op. */
static void read_operands(Reader *r, uint32_t line) {
    if (r->token.kind != TOKEN_VALUE || r->token.line != line) return;
    do {
        Token token = read_value_name(r);
        if (r->failed) return;
        TileValue *value = tile_map_get(&r->values, key_of(r, &token));
        if (!value)
            fail_at(r, token.line, token.column, "%%%.*s is not defined", (int)token.length, token.text);
        else
            tile_list_push(r->scratch, &r->operands, value);
    } while (accept(r, ","));
}

static void read_op(Reader *r, TileBlock *block);

/* The context's number of a file: of those that the text names, where it names any. */
static uint32_t file_number(const Reader *r, uint32_t number) {
    if (r->files.count) return number && number <= r->files.count ? r->files.items[number - 1] : 0;
    return number < r->context->files.count ? number : 0;
}

/* The `@file:line:column` of an op or a function; else the place of what begins with the token. */
static TileLocation read_location(Reader *r, const Token *begin) {
    uint64_t number = 0;
    if (r->token.kind != TOKEN_SYMBOL || r->token.quoted)
        return r->file ? (TileLocation){r->file, begin->line, begin->column} : (TileLocation){0};
    if (!tile_scalar_read(TILE_U32, r->token.text, r->token.length, &number)) fail(r, "expected @line:column");
    advance(r);
    expect(r, ":");
    TileLocation location = {1, (uint32_t)number, read_small(r)};
    if (accept(r, ":")) location = (TileLocation){location.line, location.column, read_small(r)};
    location.file = file_number(r, location.file);
    return location;
}

static void read_region(Reader *r, TileBlock *block) {
    size_t outside = r->visible.count;
    if (accept(r, "(")) {
        do {
            Token token = read_value_name(r);
            expect(r, ":");
            const TileType *type = read_type(r);
            if (!r->failed) define(r, &token, tile_block_add_argument(r->module, block, type, NULL));
        } while (accept(r, ","));
        expect(r, ")");
    }
    expect(r, "{");
    if (++r->depth > DEEPEST_NESTING) fail(r, "regions are nested too deeply");
    while (!r->failed && !at_mark(r, "}")) read_op(r, block);
    r->depth--;
    hide(r, outside);
    expect(r, "}");
}

static void read_result_names(Reader *r) {
    if (r->token.kind != TOKEN_VALUE) return;
    do {
        Token token = read_value_name(r);
        if (!r->failed) tile_list_push(r->scratch, &r->names, token);
    } while (accept(r, ","));
    expect(r, "=");
}

static TileOp *make_op(Reader *r, TileOpId id) {
    if (r->names.count != r->types.count)
        fail(r, "the op has %zu results, but %zu types", r->names.count, r->types.count);
    if (r->types.count > UINT16_MAX) fail(r, "the op has too many results");
    if (r->failed) return NULL;
    TileOp *op = tile_op_create(r->module, id, (TileLocation){0}, r->operands.items, (unsigned)r->operands.count,
                                r->types.items, (unsigned)r->types.count);
    set_attributes(r, op);
    return op;
}

static void read_op(Reader *r, TileBlock *block) {
    Token begin = r->token;
    r->operands.count = r->attributes.count = r->types.count = r->names.count = 0;
    read_result_names(r);
    TileOpId id = r->token.kind == TOKEN_WORD ? tile_op_find(r->token.text, r->token.length) : TILE_OP_COUNT;
    if (id == TILE_OP_COUNT) {
        fail(r, "expected an operation");
        return;
    }
    uint32_t line = r->token.line;
    advance(r);
    read_operands(r, line);
    if (at_attributes(r)) {
        expect(r, "{");
        read_attributes(r);
        expect(r, "}");
    }
    if (accept(r, ":")) {
        do tile_list_push(r->scratch, &r->types, read_type(r));
        while (accept(r, ","));
    }
    TileOp *op = make_op(r, id);
    if (!op) return;
    Token *names = tile_arena_copy(r->scratch, r->names.items, r->names.count * sizeof *names);
    op->location = read_location(r, &begin);
    tile_op_append(op, block);
    for (unsigned i = 0; i < op->region_count && !r->failed; i++) read_region(r, &op->regions[i]);
    for (unsigned i = 0; i < op->result_count && !r->failed; i++) define(r, &names[i], &op->results[i]);
}

/* ---- functions ---- */

static bool read_dimension_fact(Reader *r, const Token *name, const char *prefix, int64_t *values) {
    size_t length = strlen(prefix);
    if (name->length != length + 1 || memcmp(name->text, prefix, length) != 0) return false;
    int dimension = name->text[length] - '0';
    if (dimension < 0 || dimension >= TILE_MAX_TENSOR_RANK) return false;
    expect(r, "=");
    values[dimension] = read_integer(r);
    return true;
}

static bool read_number_fact(Reader *r, const Token *name, const char *word, uint32_t *value) {
    if (name->length != strlen(word) || memcmp(name->text, word, name->length) != 0) return false;
    expect(r, "=");
    *value = read_small(r);
    return true;
}

static void read_role(Reader *r, TileParameter *parameter) {
    expect(r, "=");
    Token word = r->token;
    TileParameterRole role = tile_role_find(word.text, word.length);
    if (word.kind != TOKEN_WORD || role == TILE_ROLE_COUNT) fail(r, "no parameter has such a role");
    if (r->failed) return;
    parameter->role = role;
    advance(r);
}

static void read_fact(Reader *r, TileParameter *parameter) {
    Token name = r->token;
    if (accept_word(r, "role")) {
        read_role(r, parameter);
    } else if (accept_word(r, "narrow")) {
        parameter->facts.narrow = true;
    } else if (accept_word(r, "used_narrow")) {
        parameter->used_narrow = true;
    } else if (accept_word(r, "asked_narrow")) {
        parameter->asked_narrow = true;
    } else if (accept_word(r, "noalias")) {
        parameter->noalias = true;
    } else if (accept_word(r, "readonly")) {
        parameter->readonly = true;
    } else if (name.kind != TOKEN_WORD) {
        fail(r, "expected a fact about the parameter");
    } else {
        advance(r);
        if (!read_dimension_fact(r, &name, "stride", parameter->facts.stride) &&
            !read_dimension_fact(r, &name, "extent", parameter->facts.extent) &&
            !read_dimension_fact(r, &name, "multiple", parameter->facts.multiple) &&
            !read_number_fact(r, &name, "argument", &parameter->argument) &&
            !read_number_fact(r, &name, "axis", &parameter->axis) &&
            !read_number_fact(r, &name, "align", &parameter->facts.align) &&
            !read_number_fact(r, &name, "used_align", &parameter->used_align) &&
            !read_number_fact(r, &name, "used_stride", &parameter->used_stride) &&
            !read_number_fact(r, &name, "used_extent", &parameter->used_extent) &&
            !read_number_fact(r, &name, "asked_align", &parameter->asked_align) &&
            !read_number_fact(r, &name, "asked_stride", &parameter->asked_stride) &&
            !read_number_fact(r, &name, "used_multiple", &parameter->used_multiple) &&
            !read_number_fact(r, &name, "asked_multiple", &parameter->asked_multiple) &&
            !read_number_fact(r, &name, "likely_stride", &parameter->likely_stride) &&
            !read_number_fact(r, &name, "likely", &parameter->likely))
            fail_at(r, name.line, name.column, "no fact about a parameter is called so");
    }
}

static void read_parameter(Reader *r) {
    Token token = read_value_name(r);
    expect(r, ":");
    const TileType *type = read_type(r);
    if (r->failed) return;
    if (is_number(&token)) {
        fail_at(r, token.line, token.column, "a parameter needs a name");
        return;
    }
    TileValue *value = tile_func_add_parameter(r->func, intern(r, &token), type);
    define(r, &token, value);
    if (!accept(r, "{")) return;
    do read_fact(r, &r->func->parameters[value->index]);
    while (accept(r, ","));
    expect(r, "}");
}

/* `word = number`; 0 where the word does not stand there. */
static uint32_t read_count(Reader *r, const char *word, int64_t most, const char *limits) {
    if (!accept_word(r, word)) return 0;
    expect(r, "=");
    int64_t count = read_integer(r);
    if (count < 1 || count > most) fail(r, "%s", limits);
    return (uint32_t)count;
}

/* `kernel = @name phase = number`; the kernel may stand anywhere in the text. */
static void read_kernel(Reader *r) {
    if (!accept_word(r, "kernel")) return;
    expect(r, "=");
    if (r->token.kind != TOKEN_SYMBOL) fail(r, "expected the name of a kernel");
    if (r->failed) return;
    tile_list_push(r->scratch, &r->phases, ((PhaseOf){r->func, r->token}));
    advance(r);
    if (!accept_word(r, "phase")) fail(r, "expected `phase`");
    expect(r, "=");
    r->func->phase = read_small(r);
}

static void find_kernels(Reader *r) {
    for (size_t i = 0; i < r->phases.count && !r->failed; i++) {
        const PhaseOf *of = &r->phases.items[i];
        of->phase->kernel = tile_func_find(r->module, intern(r, &of->kernel));
        if (!of->phase->kernel) fail_at(r, of->kernel.line, of->kernel.column, "no function is called so");
    }
}

static void read_func_types(Reader *r) {
    r->types.count = 0;
    if (accept(r, "->")) {
        do tile_list_push(r->scratch, &r->types, read_type(r));
        while (accept(r, ","));
    }
    r->func->result_count = (uint32_t)r->types.count;
    r->func->result_types = tile_arena_copy(r->module->arena, r->types.items, r->types.count * sizeof *r->types.items);
    read_kernel(r);
    r->func->warps = read_count(r, "warps", TILE_MAX_THREADS / TILE_WARP_THREADS, "a block has 1 to 32 warps");
    r->func->stages = read_count(r, "stages", TILE_MAX_STAGES, "a loop has 1 to 16 stages");
    r->func->stream = read_count(r, "stream", 1, "`stream` is 1 where it stands") != 0;
    r->func->threads = read_count(r, "threads", TILE_MAX_THREADS, "a block has 1 to 1024 threads");
    if (!accept_word(r, "scratch_bytes")) return;
    expect(r, "=");
    int64_t bytes = read_integer(r);
    if (bytes < 0) fail(r, "scratch_bytes is negative");
    r->func->scratch_bytes = (uint64_t)bytes;
}

static bool at_layout_text(const Reader *r) {
    return r->token.kind == TOKEN_NUMBER || at_word(r, "register") || at_word(r, "lane") || at_word(r, "warp") ||
           at_word(r, "block");
}

/* `layout 0 = [64] register 1 lane 2 ..`, as lang/layout.h writes it. */
static void read_layout(Reader *r) {
    uint32_t number = read_small(r);
    if (number != r->layouts.count) fail(r, "layouts are numbered in order, from 0 on");
    expect(r, "=");
    size_t start = r->token.start;
    while (r->token.kind != TOKEN_END && !at_mark(r, "]")) advance(r);
    expect(r, "]");
    while (at_layout_text(r)) advance(r);
    if (r->failed) return;
    TileLayout layout;
    if (tile_layout_read(tile_arena_string(r->scratch, r->text + start, r->token.start - start), &layout))
        tile_list_push(r->scratch, &r->layouts, tile_layout_intern(r->context->types, &layout));
    else
        fail(r, "expected a layout before this");
}

static void read_func(Reader *r) {
    static const char *const kinds[] = {"kernel", "device", "phase"};
    static const char *const forms[] = {"tile", "machine"};
    Token begin = r->token;
    if (!accept_word(r, "func")) {
        fail(r, "expected `func`");
        return;
    }
    unsigned kind = read_choice(r, kinds, 3, "kernel, device or phase");
    unsigned form = read_choice(r, forms, 2, "tile or machine");
    if (r->token.kind != TOKEN_SYMBOL) fail(r, "expected the name of a function");
    if (r->failed) return;
    r->func = tile_func_create(r->module, intern(r, &r->token), (TileFuncKind)kind,
                               form == 0 ? TILE_FORM_TILE : TILE_FORM_MACHINE);
    tile_map_init(&r->values, r->scratch);
    r->visible.count = r->layouts.count = 0;
    advance(r);
    expect(r, "(");
    if (!at_mark(r, ")")) {
        do read_parameter(r);
        while (accept(r, ","));
    }
    expect(r, ")");
    read_func_types(r);
    r->func->location = read_location(r, &begin);
    expect(r, "{");
    while (accept_word(r, "layout")) read_layout(r);
    while (!r->failed && !at_mark(r, "}")) read_op(r, &r->func->body);
    expect(r, "}");
}

/* `file "name"`: the next number of locations. */
static void read_file(Reader *r) {
    if (r->func) fail(r, "files stand before functions");
    advance(r);
    if (r->token.kind != TOKEN_STRING) fail(r, "expected the name of a file in quotes");
    if (r->failed) return;
    tile_list_push(r->scratch, &r->files, (uint32_t)r->context->files.count);
    tile_list_push(r->context->arena, &r->context->files, intern(r, &r->token));
    advance(r);
}

tile_status tile_module_read_file(TileContext *context, uint32_t file, const char *text, size_t length,
                                  TileModule **module, TileText *errors) {
    *module = NULL;
    Reader r = {.context = context, .text = text, .length = length, .line = 1, .errors = errors, .file = file};
    r.module = tile_module_create(context);
    if (!r.module) return TILE_OUT_OF_MEMORY;
    r.scratch = tile_arena_create(context->arena);
    if (!r.scratch) {
        tile_module_destroy(r.module);
        return TILE_OUT_OF_MEMORY;
    }
    advance(&r);
    while (r.token.kind != TOKEN_END) {
        if (at_word(&r, "file"))
            read_file(&r);
        else
            read_func(&r);
    }
    find_kernels(&r);
    tile_arena_destroy(r.scratch);
    if (r.failed) {
        tile_module_destroy(r.module);
        return TILE_INVALID_SOURCE;
    }
    *module = r.module;
    return TILE_OK;
}

tile_status tile_module_read(TileContext *context, const char *text, size_t length, TileModule **module,
                             TileText *errors) {
    return tile_module_read_file(context, 0, text, length, module, errors);
}

/* `file`, or `func` before a kind: no text of the language begins so. */
bool tile_text_is_ir(const char *text, size_t length) {
    TileArena *scratch = tile_arena_create(NULL);
    jmp_buf guard;
    if (!scratch || setjmp(guard)) {
        tile_arena_destroy(scratch);
        return false;
    }
    tile_arena_set_guard(scratch, &guard);
    Reader r = {.scratch = scratch, .text = text, .length = length, .line = 1};
    advance(&r);
    bool func = at_word(&r, "func"), file = at_word(&r, "file");
    advance(&r);
    bool is_ir = (file && r.token.kind == TOKEN_STRING) ||
                 (func && (at_word(&r, "kernel") || at_word(&r, "device") || at_word(&r, "phase")));
    tile_arena_destroy(scratch);
    return is_ir;
}

/* ---- pieces of a text ---- */

const TileType *tile_type_read(TileContext *context, const char *text, TileText *errors) {
    Reader r = {.context = context, .text = text, .length = strlen(text), .line = 1, .errors = errors};
    r.scratch = tile_arena_create(context->arena);
    if (!r.scratch) return NULL;
    advance(&r);
    const TileType *type = read_type(&r);
    if (r.token.kind != TOKEN_END) fail(&r, "expected the end of the type");
    tile_arena_destroy(r.scratch);
    return r.failed ? NULL : type;
}

bool tile_op_read_attributes(TileModule *module, TileOp *op, const char *text, TileText *errors) {
    Reader r = {.context = module->context, .module = module, .text = text, .length = strlen(text), .line = 1};
    r.errors = errors;
    r.scratch = tile_arena_create(module->arena);
    if (!r.scratch) return false;
    advance(&r);
    if (r.token.kind != TOKEN_END) read_attributes(&r);
    if (r.token.kind != TOKEN_END) fail(&r, "expected the end of the attributes");
    if (!r.failed) set_attributes(&r, op);
    tile_arena_destroy(r.scratch);
    return !r.failed;
}
