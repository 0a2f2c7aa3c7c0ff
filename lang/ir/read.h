/* Internals of the reader of the text form, shared by its files; private to lang/. After the first error the rest of
 * the text counts as its end, so every loop ends without a check of its own. */
#ifndef TILE_LANG_IR_READ_H
#define TILE_LANG_IR_READ_H

#include "lang/layout/layout.h"
#include "lang/ir/text.h"

/* Elements of a tile at most. */
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

/* ---- read_lex.c: tokens, and pieces of a few of them ---- */

/* The first error counts; after it the text has ended. */
void tile_read_fail_at(Reader *r, uint32_t line, uint32_t column, const char *format, ...) TILE_PRINTF(4, 5);
#define tile_read_fail(r, ...) tile_read_fail_at((r), (r)->token.line, (r)->token.column, __VA_ARGS__)
/* To the next token. */
void tile_read_advance(Reader *r);
/* Is the token this mark, or this word? `accept` goes on behind it if so, `expect` fails if not. */
bool tile_read_at_mark(const Reader *r, const char *mark);
bool tile_read_at_word(const Reader *r, const char *word);
bool tile_read_accept(Reader *r, const char *mark);
void tile_read_expect(Reader *r, const char *mark);
bool tile_read_accept_word(Reader *r, const char *word);
/* The number of the word among those that may stand here; `what` names them in a message. */
unsigned tile_read_choice(Reader *r, const char *const *words, unsigned count, const char *what);
const char *tile_read_intern(Reader *r, const Token *token);
int64_t tile_read_integer(Reader *r);
uint32_t tile_read_small(Reader *r);

/* ---- read_types.c ---- */

const TileType *tile_read_type(Reader *r);

/* ---- read_ops.c: attributes, values and ops ---- */

/* `{key = value, ..}`, which may be missing: into the reader, and from there to an op whose types are known. */
void tile_read_attributes(Reader *r);
void tile_read_set_attributes(Reader *r, TileOp *op);
/* A name of digits alone, which the printer gives to values without one. */
bool tile_read_is_number(const Token *token);
void tile_read_define(Reader *r, const Token *token, TileValue *value);
Token tile_read_value_name(Reader *r);
/* The op, at the end of the block. */
void tile_read_op(Reader *r, TileBlock *block);
TileLocation tile_read_location(Reader *r, const Token *begin);

#endif
