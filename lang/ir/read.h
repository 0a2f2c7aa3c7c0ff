/* Internals of the reader of the text form, shared by its files; private to lang/. After the first error the current
 * token is the end of the text, so loops need no error check to terminate. */
#ifndef TILE_LANG_IR_READ_H
#define TILE_LANG_IR_READ_H

#include "lang/layout/layout.h"
#include "lang/ir/text.h"

/* The greatest number of elements of a tile. */
#define TILE_READ_MOST_LANES ((int64_t)1 << 31)

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

/* An attribute whose bits can only be read once the type of the result is known. */
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
    TileMap values;                  /* key_of(name) to the value; NULL once it is out of scope */
    TILE_LIST(const char *) visible; /* keys of names in scope, in order of definition */
    unsigned depth;
    TILE_LIST(TileValue *) operands;
    TILE_LIST(Attribute) attributes;
    TILE_LIST(const TileType *) types;
    TILE_LIST(Token) names;
    uint32_t file; /* the context's index of this text; 0: ops get no location in the text */
    TILE_LIST(const TileLayout *) layouts; /* of the function, by number */
    TILE_LIST(uint32_t) files;             /* the context's indices of the files that the text lists */
    TILE_LIST(PhaseOf) phases;             /* phases whose kernels are resolved at the end */
} Reader;

/* ---- read_lex.c: tokens, and short sequences of them ---- */

/* Records the first error only; afterwards the reader is at the end of the text. */
void tile_read_fail_at(Reader *r, uint32_t line, uint32_t column, const char *format, ...) TILE_PRINTF(4, 5);
#define tile_read_fail(r, ...) tile_read_fail_at((r), (r)->token.line, (r)->token.column, __VA_ARGS__)
/* Advances to the next token. */
void tile_read_advance(Reader *r);
/* Is the current token this mark, or this word? `accept` consumes it if so; `expect` fails if not. */
bool tile_read_at_mark(const Reader *r, const char *mark);
bool tile_read_at_word(const Reader *r, const char *word);
bool tile_read_accept(Reader *r, const char *mark);
void tile_read_expect(Reader *r, const char *mark);
bool tile_read_accept_word(Reader *r, const char *word);
/* The index of the current word in a list of allowed ones; `what` describes them in a message. */
unsigned tile_read_choice(Reader *r, const char *const *words, unsigned count, const char *what);
const char *tile_read_intern(Reader *r, const Token *token);
int64_t tile_read_integer(Reader *r);
uint32_t tile_read_small(Reader *r);

/* ---- read_types.c ---- */

const TileType *tile_read_type(Reader *r);

/* ---- read_ops.c: attributes, values and ops ---- */

/* Reads optional `{key = value, ..}` into the reader; and sets those attributes on an op whose types are known. */
void tile_read_attributes(Reader *r);
void tile_read_set_attributes(Reader *r, TileOp *op);
/* A name of digits only, as the printer gives to values without a hint. */
bool tile_read_is_number(const Token *token);
void tile_read_define(Reader *r, const Token *token, TileValue *value);
Token tile_read_value_name(Reader *r);
/* Reads an op and appends it to the block. */
void tile_read_op(Reader *r, TileBlock *block);
TileLocation tile_read_location(Reader *r, const Token *begin);

#endif
