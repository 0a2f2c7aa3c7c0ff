/* Tokens of the text form: a hand-written lexer. */
#include <ctype.h>
#include <stdarg.h>
#include <string.h>

#include "lang/ir/read.h"
#include "lang/scalar/scalar.h"

void tile_read_fail_at(Reader *r, uint32_t line, uint32_t column, const char *format, ...) {
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
            tile_read_fail(r, "a string that does not end on its line, or an escape other than \\n \\\" \\\\ \\xNN");
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

void tile_read_advance(Reader *r) {
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
        if (!r->token.length && !r->token.quoted) tile_read_fail(r, "a name has to follow %c", c);
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

/* ---- helpers ---- */

static bool at(const Reader *r, TokenKind kind, const char *text) {
    return r->token.kind == kind && strlen(text) == r->token.length &&
           memcmp(r->token.text, text, r->token.length) == 0;
}
bool tile_read_at_mark(const Reader *r, const char *mark) { return at(r, TOKEN_MARK, mark); }
bool tile_read_at_word(const Reader *r, const char *word) { return at(r, TOKEN_WORD, word); }

bool tile_read_accept(Reader *r, const char *mark) {
    if (!tile_read_at_mark(r, mark)) return false;
    tile_read_advance(r);
    return true;
}

void tile_read_expect(Reader *r, const char *mark) {
    if (!tile_read_accept(r, mark)) tile_read_fail(r, "expected `%s`", mark);
}

bool tile_read_accept_word(Reader *r, const char *word) {
    if (!tile_read_at_word(r, word)) return false;
    tile_read_advance(r);
    return true;
}

/* The index of the current word among `count` words; after an error, the last one. */
unsigned tile_read_choice(Reader *r, const char *const *words, unsigned count, const char *what) {
    for (unsigned i = 0; i < count; i++)
        if (tile_read_accept_word(r, words[i])) return i;
    tile_read_fail(r, "expected %s", what);
    return count - 1;
}

const char *tile_read_intern(Reader *r, const Token *token) {
    return tile_intern(r->context->strings, token->text, token->length);
}

int64_t tile_read_integer(Reader *r) {
    uint64_t bits = 0;
    if (r->token.kind != TOKEN_NUMBER || !tile_scalar_read(TILE_I64, r->token.text, r->token.length, &bits))
        tile_read_fail(r, "expected an integer of 64 bits");
    else
        tile_read_advance(r);
    return (int64_t)bits;
}

uint32_t tile_read_small(Reader *r) {
    int64_t value = tile_read_integer(r);
    if (value < 0 || value > UINT32_MAX) tile_read_fail(r, "the number before this is out of range");
    return (uint32_t)value;
}
