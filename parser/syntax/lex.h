/* Tokens of a .tile text. The whole text is scanned at once; names and values are not copied from the text. */
#ifndef TILE_PARSER_SYNTAX_LEX_H
#define TILE_PARSER_SYNTAX_LEX_H

#include "base/diagnostic.h"

/* X(ID, text) */
#define TILE_KEYWORD_LIST(X)                                                                                           \
    X(KERNEL, "kernel")                                                                                                \
    X(FN, "fn")                                                                                                        \
    X(CONST, "const")                                                                                                  \
    X(STATIC, "static")                                                                                                \
    X(REQUIRE, "require")                                                                                              \
    X(ALLOW, "allow")                                                                                                  \
    X(TUNE, "tune")                                                                                                    \
    X(GRID, "grid")                                                                                                    \
    X(IN, "in")                                                                                                        \
    X(OUT, "out")                                                                                                      \
    X(INOUT, "inout")                                                                                                  \
    X(TEMP, "temp")                                                                                                    \
    X(LET, "let")                                                                                                      \
    X(VAR, "var")                                                                                                      \
    X(FOR, "for")                                                                                                      \
    X(WHILE, "while")                                                                                                  \
    X(IF, "if")                                                                                                        \
    X(ELSE, "else")                                                                                                    \
    X(RETURN, "return")                                                                                                \
    X(BREAK, "break")                                                                                                  \
    X(CONTINUE, "continue")                                                                                            \
    X(IMPORT, "import")                                                                                                \
    X(EXPORT, "export")                                                                                                \
    X(UNSAFE, "unsafe")                                                                                                \
    X(ASSERT, "assert")                                                                                                \
    X(STATIC_ASSERT, "static_assert")                                                                                  \
    X(TEST, "test")                                                                                                    \
    X(SKIP, "skip")                                                                                                    \
    X(TRUE, "true")                                                                                                    \
    X(FALSE, "false")                                                                                                  \
    X(INF, "inf")                                                                                                      \
    X(NAN, "nan")

/* Names that have a meaning in some places only. The parser asks for each where it stands; editors show them. */
#define TILE_PLACE_WORD_LIST(X)                                                                                        \
    X("approx") X("as") X("cpu") X("gpu") X("ordered") X("overlap") X("range") X("run") X("step") X("where")

#define TILE_PUNCTUATION_LIST(X)                                                                                       \
    X(LEFT_PAREN, "(")                                                                                                 \
    X(RIGHT_PAREN, ")")                                                                                                \
    X(LEFT_BRACKET, "[")                                                                                               \
    X(RIGHT_BRACKET, "]")                                                                                              \
    X(LEFT_BRACE, "{")                                                                                                 \
    X(RIGHT_BRACE, "}")                                                                                                \
    X(COMMA, ",")                                                                                                      \
    X(SEMICOLON, ";")                                                                                                  \
    X(COLON, ":")                                                                                                      \
    X(DOT, ".")                                                                                                        \
    X(DOTS, "..")                                                                                                      \
    X(ELLIPSIS, "...")                                                                                                 \
    X(ARROW, "->")                                                                                                     \
    X(UNDERSCORE, "_")                                                                                                 \
    X(ASSIGN, "=")                                                                                                     \
    X(PLUS_ASSIGN, "+=")                                                                                               \
    X(MINUS_ASSIGN, "-=")                                                                                              \
    X(STAR_ASSIGN, "*=")                                                                                               \
    X(SLASH_ASSIGN, "/=")                                                                                              \
    X(PERCENT_ASSIGN, "%=")                                                                                            \
    X(AMPERSAND_ASSIGN, "&=")                                                                                          \
    X(BAR_ASSIGN, "|=")                                                                                                \
    X(CARET_ASSIGN, "^=")                                                                                              \
    X(SHL_ASSIGN, "<<=")                                                                                               \
    X(SHR_ASSIGN, ">>=")                                                                                               \
    X(PLUS, "+")                                                                                                       \
    X(MINUS, "-")                                                                                                      \
    X(STAR, "*")                                                                                                       \
    X(SLASH, "/")                                                                                                      \
    X(PERCENT, "%")                                                                                                    \
    X(AT, "@")                                                                                                         \
    X(BANG, "!")                                                                                                       \
    X(TILDE, "~")                                                                                                      \
    X(AMPERSAND, "&")                                                                                                  \
    X(BAR, "|")                                                                                                        \
    X(CARET, "^")                                                                                                      \
    X(SHL, "<<")                                                                                                       \
    X(SHR, ">>")                                                                                                       \
    X(AND, "&&")                                                                                                       \
    X(OR, "||")                                                                                                        \
    X(EQUAL, "==")                                                                                                     \
    X(NOT_EQUAL, "!=")                                                                                                 \
    X(LESS, "<")                                                                                                       \
    X(LESS_EQUAL, "<=")                                                                                                \
    X(GREATER, ">")                                                                                                    \
    X(GREATER_EQUAL, ">=")

typedef enum TileTokenKind {
    TILE_TOKEN_END, /* of the text */
    TILE_TOKEN_NAME,
    TILE_TOKEN_INTEGER,
    TILE_TOKEN_FLOAT,
    TILE_TOKEN_STRING,
    TILE_TOKEN_QUESTION, /* of no right program: `c ? a : b`, as in C */
    TILE_TOKEN_NEWLINE, /* created by the parser's cursor only: a newline that ends a statement */
#define TILE_TOKEN_ENUM(id, text) TILE_TOKEN_##id,
    TILE_KEYWORD_LIST(TILE_TOKEN_ENUM) TILE_PUNCTUATION_LIST(TILE_TOKEN_ENUM)
#undef TILE_TOKEN_ENUM
        TILE_TOKEN_COUNT
} TileTokenKind;

typedef struct TileToken {
    uint8_t kind;
    bool newline;    /* preceded by a newline that may end a statement */
    bool line_break; /* preceded by any newline */
    uint32_t begin, end;
} TileToken;

/* Consecutive `///` lines, and the index of the token that follows. */
typedef struct TileDocComment {
    uint32_t token;
    uint32_t begin, end;
} TileDocComment;

typedef struct TileTokens {
    TILE_LIST(TileToken) list; /* ends in TILE_TOKEN_END */
    TILE_LIST(TileDocComment) docs;
    TILE_LIST(uint32_t) open_texts; /* start offsets of unterminated string literals */
} TileTokens;

/* Offsets have 32 bits: no configured limit is greater. */
enum { TILE_MAX_SOURCE = 1024 * 1024 * 1024 };

/* Other characters are reported and skipped. `file` is the text's index in the diagnostics. */
void tile_lex(TileArena *arena, TileDiagnostics *diagnostics, uint32_t file, TileTokens *tokens);

/* "`+`", "a name", "end of file": for messages. */
const char *tile_token_words(TileTokenKind kind);
/* The spelling of a keyword or punctuation mark; "" for others. */
const char *tile_token_text(TileTokenKind kind);

#endif
