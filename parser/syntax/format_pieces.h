/* Internals of the formatter: a text as a sequence of tokens and comments, with the properties that the layout needs.
 * There is no piece for a `;`: it is replaced by a newline. */
#ifndef TILE_PARSER_SYNTAX_FORMAT_PIECES_H
#define TILE_PARSER_SYNTAX_FORMAT_PIECES_H

#include "parser/syntax/lex.h"

enum { TILE_TAB = 4 };

typedef enum TilePieceKind {
    TILE_PIECE_TOKEN,
    TILE_PIECE_LINE_COMMENT, /* extends to the end of the line */
    TILE_PIECE_BLOCK_COMMENT
} TilePieceKind;

/* The role of a piece in the layout. */
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
    bool line_break;                /* on a new line in the text */
    bool blank;                     /* after an empty line */
    bool starts;                    /* first token of an item, a clause or a statement, or a comment before that */
    bool item, clause;              /* with `starts`: of which kind; neither: a statement */
    bool body;                      /* OPEN_BLOCK: the header ends with it */
    bool header;                    /* in a header: from `kernel` or `fn` to the brace of the body */
    bool break_before;              /* begins a line */
    bool inline_block;              /* OPEN_BLOCK: its statements are on the same line */
    uint32_t gap;                   /* blanks before it, on its line in the text */
    uint32_t column;                /* in the text */
    uint32_t partner;               /* brackets: the other one */
    uint32_t before, after, around; /* OPEN_BLOCK: the previous and next block of the same if, and the enclosing block;
                                     * 0 for none */
    uint32_t begin, end;
} TilePiece;

typedef struct TilePieces {
    TileArena *arena;
    const char *text;
    TILE_LIST(TilePiece) list;
} TilePieces;

/* The tokens must be those of a text without syntax errors. */
void tile_pieces_make(TilePieces *pieces, const TileTokens *tokens, size_t length);
/* Puts a block on lines of its own, together with the other blocks of its if and the enclosing blocks. Returns the
 * least index of a changed block. */
uint32_t tile_pieces_spread(TilePieces *pieces, uint32_t index);
/* Is there a blank between this piece and the previous one, if both are on one line? */
bool tile_pieces_space(const TilePieces *pieces, uint32_t index);

#endif
