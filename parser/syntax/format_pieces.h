/* Inside of the formatter: a text as a row of tokens and comments, each with what the layout has to know. A `;` is no
 * piece: the newline that stands for it does its work. */
#ifndef TILE_PARSER_SYNTAX_FORMAT_PIECES_H
#define TILE_PARSER_SYNTAX_FORMAT_PIECES_H

#include "parser/syntax/lex.h"

enum { TILE_TAB = 4 };

typedef enum TilePieceKind {
    TILE_PIECE_TOKEN,
    TILE_PIECE_LINE_COMMENT, /* ends its line */
    TILE_PIECE_BLOCK_COMMENT
} TilePieceKind;

/* What a piece does for the layout. */
typedef enum TilePieceRole {
    TILE_ROLE_PLAIN,
    TILE_ROLE_OPEN,        /* ( [ and the { of tune candidates */
    TILE_ROLE_CLOSE,       /* their partners */
    TILE_ROLE_OPEN_BLOCK,  /* { before statements */
    TILE_ROLE_CLOSE_BLOCK, /* its partner */
    TILE_ROLE_COMMA,
    TILE_ROLE_UNARY,
    TILE_ROLE_BINARY,
    TILE_ROLE_ASSIGN,
    TILE_ROLE_WORD /* a keyword, or a name that serves as one: step, where, as, run */
} TilePieceRole;

typedef struct TilePiece {
    uint8_t kind;                   /* TilePieceKind */
    uint8_t token;                  /* TileTokenKind */
    uint8_t role;                   /* TilePieceRole */
    bool line_break;                /* stands on a new line in the text */
    bool blank;                     /* behind an empty line */
    bool starts;                    /* the first token of an item, a clause or a statement, or a comment before it */
    bool item, clause;              /* `starts`: of which kind; neither: a statement */
    bool body;                      /* OPEN_BLOCK: it ends a header */
    bool header;                    /* within a header: from `kernel` or `fn` to the brace of the body */
    bool break_before;              /* begins a line */
    bool inline_block;              /* OPEN_BLOCK: its statements stay on the line */
    uint32_t gap;                   /* blanks before it in the text, on its line */
    uint32_t column;                /* in the text */
    uint32_t partner;               /* brackets: the other one */
    uint32_t before, after, around; /* OPEN_BLOCK: of the same if and its elses, and the enclosing one; 0 for none */
    uint32_t begin, end;
} TilePiece;

typedef struct TilePieces {
    TileArena *arena;
    const char *text;
    TILE_LIST(TilePiece) list;
} TilePieces;

/* The tokens are those of a text without errors of syntax. */
void tile_pieces_make(TilePieces *pieces, const TileTokens *tokens, size_t length);
/* Spreads a block over several lines, and with it the other blocks of its if and those around it. The least index of a
 * block that changed. */
uint32_t tile_pieces_spread(TilePieces *pieces, uint32_t index);
/* Does a blank stand between this piece and the one before, when both are on one line? */
bool tile_pieces_space(const TilePieces *pieces, uint32_t index);

#endif
