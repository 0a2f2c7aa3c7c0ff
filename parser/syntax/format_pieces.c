/* The structure that the formatter needs, found from the tokens. The text has been parsed without errors, so each
 * bracket has its partner; the parser's rule about newlines determines where statements begin. */
#include "parser/syntax/format_pieces.h"

#include <string.h>

/* ---- the sequence of tokens and comments ---- */

typedef struct Trivia {
    uint32_t at, column;
    unsigned breaks; /* line breaks since the previous piece */
    uint32_t gap;
} Trivia;

static void step(Trivia *trivia, char c) {
    trivia->at++;
    if (c == '\n') {
        trivia->breaks++;
        trivia->column = trivia->gap = 0;
    } else if (c == '\t') {
        uint32_t next = trivia->column / TILE_TAB * TILE_TAB + TILE_TAB;
        trivia->gap += next - trivia->column;
        trivia->column = next;
    } else if (c == ' ') {
        trivia->gap++;
        trivia->column++;
    }
}

static TilePiece *add_piece(TilePieces *pieces, Trivia *trivia, TilePiece piece) {
    piece.line_break = trivia->breaks > 0 || !pieces->list.count;
    piece.blank = trivia->breaks > 1;
    piece.gap = trivia->gap;
    piece.column = trivia->column;
    tile_list_push(pieces->arena, &pieces->list, piece);
    for (uint32_t i = piece.begin; i < piece.end; i++) { /* counts UTF-8 characters */
        if (pieces->text[i] == '\n')
            trivia->column = 0;
        else
            trivia->column += (pieces->text[i] & 0xc0) != 0x80;
    }
    trivia->at = piece.end;
    trivia->breaks = trivia->gap = 0;
    return &pieces->list.items[pieces->list.count - 1];
}

static void add_comment(TilePieces *pieces, Trivia *trivia, uint32_t limit) {
    const char *text = pieces->text;
    uint32_t end = trivia->at + 2;
    bool line = text[trivia->at + 1] == '/';
    if (line)
        while (end < limit && text[end] != '\n') end++;
    else
        while (!(text[end] == '*' && text[end + 1] == '/')) end++;
    if (!line) end += 2;
    add_piece(pieces, trivia,
              (TilePiece){
                  .kind = line ? TILE_PIECE_LINE_COMMENT : TILE_PIECE_BLOCK_COMMENT, .begin = trivia->at, .end = end});
}

static void add_trivia(TilePieces *pieces, Trivia *trivia, uint32_t limit) {
    while (trivia->at < limit)
        if (pieces->text[trivia->at] == '/')
            add_comment(pieces, trivia, limit);
        else
            step(trivia, pieces->text[trivia->at]);
}

/* ---- roles ---- */

static bool is_word(const TilePieces *pieces, const TilePiece *piece, const char *word) {
    return piece->end - piece->begin == strlen(word) &&
           memcmp(pieces->text + piece->begin, word, piece->end - piece->begin) == 0;
}

/* Can an expression end with this token? Then a sign after it is a binary operator. */
static bool ends_operand(const TilePiece *piece) {
    if (!piece || piece->role == TILE_ROLE_WORD) return false;
    switch (piece->token) {
    case TILE_TOKEN_NAME:
    case TILE_TOKEN_INTEGER:
    case TILE_TOKEN_FLOAT:
    case TILE_TOKEN_STRING:
    case TILE_TOKEN_RIGHT_PAREN:
    case TILE_TOKEN_RIGHT_BRACKET:
    case TILE_TOKEN_RIGHT_BRACE:
    case TILE_TOKEN_UNDERSCORE:
    case TILE_TOKEN_TRUE:
    case TILE_TOKEN_FALSE:
    case TILE_TOKEN_INF:
    case TILE_TOKEN_NAN:
    case TILE_TOKEN_SKIP: return true;
    default: return false;
    }
}

/* The else of an if is between two blocks; any other else is an operator. */
static TilePieceRole keyword_role(TileTokenKind kind, const TilePiece *last, const TileToken *next) {
    switch (kind) {
    case TILE_TOKEN_ELSE:
        return last && last->role == TILE_ROLE_CLOSE_BLOCK &&
                       (next->kind == TILE_TOKEN_LEFT_BRACE || next->kind == TILE_TOKEN_IF)
                   ? TILE_ROLE_WORD
                   : TILE_ROLE_BINARY;
    case TILE_TOKEN_TRUE:
    case TILE_TOKEN_FALSE:
    case TILE_TOKEN_INF:
    case TILE_TOKEN_NAN:
    case TILE_TOKEN_SKIP: return TILE_ROLE_PLAIN;
    default: return TILE_ROLE_WORD;
    }
}

static TilePieceRole name_role(const TilePieces *pieces, const TilePiece *last, const TilePiece *piece,
                               const TileToken *next) {
    bool behind = ends_operand(last) && !piece->starts;
    if (behind && (is_word(pieces, piece, "step") || is_word(pieces, piece, "where") || is_word(pieces, piece, "as")))
        return TILE_ROLE_WORD;
    if (!behind && next->kind == TILE_TOKEN_NAME && !next->newline && is_word(pieces, piece, "run"))
        return TILE_ROLE_WORD;
    return TILE_ROLE_PLAIN;
}

static TilePieceRole mark_role(TileTokenKind kind, const TilePiece *last, bool starts) {
    bool behind = ends_operand(last) && !starts;
    switch (kind) {
    case TILE_TOKEN_LEFT_PAREN:
    case TILE_TOKEN_LEFT_BRACKET: return TILE_ROLE_OPEN;
    case TILE_TOKEN_LEFT_BRACE: return last && last->token == TILE_TOKEN_IN ? TILE_ROLE_OPEN : TILE_ROLE_OPEN_BLOCK;
    case TILE_TOKEN_RIGHT_PAREN:
    case TILE_TOKEN_RIGHT_BRACKET: return TILE_ROLE_CLOSE;
    case TILE_TOKEN_COMMA: return TILE_ROLE_COMMA;
    case TILE_TOKEN_BANG:
    case TILE_TOKEN_TILDE: return TILE_ROLE_UNARY;
    case TILE_TOKEN_MINUS: return behind ? TILE_ROLE_BINARY : TILE_ROLE_UNARY;
    case TILE_TOKEN_COLON:
    case TILE_TOKEN_DOT:
    case TILE_TOKEN_DOTS:
    case TILE_TOKEN_ELLIPSIS:
    case TILE_TOKEN_UNDERSCORE: return TILE_ROLE_PLAIN;
    default: return kind >= TILE_TOKEN_ASSIGN && kind <= TILE_TOKEN_SHR_ASSIGN ? TILE_ROLE_ASSIGN : TILE_ROLE_BINARY;
    }
}

/* ---- brackets, statements, headers ---- */

typedef struct Open {
    uint32_t index;
    uint32_t block; /* the block that was closed last in this bracket, if an else may follow; 0: none */
    unsigned statements;
    bool header; /* the bracket is in a header, which continues after it */
} Open;

typedef struct Structure {
    TilePieces *pieces;
    TILE_LIST(Open) stack;
    Open file;
    bool header, separated;     /* separated: preceded by a `;` */
    unsigned ifs;               /* ifs in the header, outside of brackets, whose blocks have not begun */
    bool clauses;               /* the header has clauses */
    uint32_t last;              /* the previous token, plus 1; 0 at the beginning */
    TILE_LIST(uint32_t) spread; /* blocks that cannot be on one line */
} Structure;

static Open *top(Structure *s) { return s->stack.count ? &s->stack.items[s->stack.count - 1] : &s->file; }

static bool in_block(Structure *s) {
    return !s->stack.count || s->pieces->list.items[top(s)->index].role == TILE_ROLE_OPEN_BLOCK;
}

static bool begins_item(const TilePiece *last, TileTokenKind kind) {
    switch (kind) {
    case TILE_TOKEN_KERNEL:
    case TILE_TOKEN_FN:
    case TILE_TOKEN_IMPORT:
    case TILE_TOKEN_EXPORT:
    case TILE_TOKEN_CONST:
    case TILE_TOKEN_TEST:
    case TILE_TOKEN_STATIC_ASSERT: return !last || (last->token != TILE_TOKEN_COLON && last->token != TILE_TOKEN_ARROW);
    default: return false;
    }
}

static bool begins_clause(TileTokenKind kind) {
    return kind == TILE_TOKEN_STATIC || kind == TILE_TOKEN_REQUIRE || kind == TILE_TOKEN_ALLOW ||
           kind == TILE_TOKEN_TUNE;
}

static void find_start(Structure *s, TilePiece *piece, const TilePiece *last, const TileToken *token) {
    TileTokenKind kind = (TileTokenKind)token->kind;
    bool outside = in_block(s);
    piece->header = s->header;
    if (s->header) {
        piece->clause = piece->starts = outside && begins_clause(kind);
        s->clauses |= piece->clause;
    } else if (!s->stack.count) {
        piece->item = piece->starts = begins_item(last, kind);
        if (piece->item && (kind == TILE_TOKEN_KERNEL || kind == TILE_TOKEN_FN)) {
            s->header = piece->header = true;
            s->clauses = false;
            s->ifs = 0;
        }
    } else if (outside && kind != TILE_TOKEN_RIGHT_BRACE) {
        bool first = last == &s->pieces->list.items[top(s)->index];
        piece->starts = first || s->separated || (token->newline && kind != TILE_TOKEN_ELSE);
        if (piece->starts) top(s)->statements++;
    }
    if (piece->starts) top(s)->block = 0;
}

/* Does this brace end the header? */
static bool opens_body(const Structure *s, const TilePiece *piece, const TilePiece *last) {
    return piece->header && !s->stack.count && !s->ifs && last->token != TILE_TOKEN_ELSE;
}

/* A line begins where the syntax requires it, or where it allows it and the author chose it. */
static bool break_wanted(Structure *s, const TilePiece *piece, const TilePiece *last) {
    bool first = s->stack.count && last == &s->pieces->list.items[top(s)->index];
    if (piece->starts) return !first; /* the first statement of a block is handled with the block */
    if (piece->role == TILE_ROLE_OPEN_BLOCK) return opens_body(s, piece, last) && (s->clauses || piece->line_break);
    if (!piece->line_break || !last || last->role == TILE_ROLE_WORD || last->role == TILE_ROLE_UNARY) return false;
    if (piece->role == TILE_ROLE_CLOSE || last->role == TILE_ROLE_OPEN || last->role == TILE_ROLE_COMMA) return true;
    if (piece->role == TILE_ROLE_BINARY || last->role == TILE_ROLE_BINARY || last->role == TILE_ROLE_ASSIGN)
        return true;
    if (!piece->header || !in_block(s)) return false;
    return piece->role == TILE_ROLE_OPEN || is_word(s->pieces, piece, "where");
}

static uint32_t enclosing_block(Structure *s) {
    for (size_t i = s->stack.count; i-- > 0;)
        if (s->pieces->list.items[s->stack.items[i].index].role == TILE_ROLE_OPEN_BLOCK) return s->stack.items[i].index;
    return 0;
}

static void open_bracket(Structure *s, uint32_t index, const TilePiece *last) {
    TilePiece *pieces = s->pieces->list.items, *piece = &pieces[index];
    if (piece->role == TILE_ROLE_OPEN_BLOCK) {
        piece->inline_block = true;
        piece->around = enclosing_block(s);
        piece->before = top(s)->block;
        if (piece->before) pieces[piece->before].after = index;
        piece->body = opens_body(s, piece, last);
        s->header = false;
        if (!s->stack.count && s->ifs && last->token != TILE_TOKEN_ELSE) s->ifs--;
    }
    tile_list_push(s->pieces->arena, &s->stack, (Open){.index = index, .header = piece->header && !piece->body});
}

static void close_bracket(Structure *s, uint32_t index) {
    TilePiece *pieces = s->pieces->list.items;
    Open open = *top(s);
    bool block = pieces[open.index].role == TILE_ROLE_OPEN_BLOCK, spread = open.statements > 1;
    s->stack.count--;
    pieces[index].partner = open.index;
    pieces[open.index].partner = index;
    pieces[index].role = block ? TILE_ROLE_CLOSE_BLOCK : TILE_ROLE_CLOSE;
    s->header = open.header;
    if (!block) return;
    top(s)->block = open.index;
    for (uint32_t i = open.index + 1; i <= index; i++) spread |= pieces[i].line_break;
    if (spread) tile_list_push(s->pieces->arena, &s->spread, open.index);
}

static void add_token(Structure *s, Trivia *trivia, const TileToken *token) {
    TilePiece *piece =
        add_piece(s->pieces, trivia, (TilePiece){.token = token->kind, .begin = token->begin, .end = token->end});
    uint32_t index = (uint32_t)s->pieces->list.count - 1;
    const TilePiece *last = s->last ? &s->pieces->list.items[s->last - 1] : NULL;
    find_start(s, piece, last, token);
    if (token->kind == TILE_TOKEN_NAME)
        piece->role = (uint8_t)name_role(s->pieces, last, piece, token + 1);
    else if (token->kind >= TILE_TOKEN_LEFT_PAREN)
        piece->role = (uint8_t)mark_role(token->kind, last, piece->starts);
    else if (token->kind >= TILE_TOKEN_KERNEL)
        piece->role = (uint8_t)keyword_role(token->kind, last, token + 1);
    bool closes = token->kind == TILE_TOKEN_RIGHT_PAREN || token->kind == TILE_TOKEN_RIGHT_BRACKET ||
                  token->kind == TILE_TOKEN_RIGHT_BRACE;
    if (closes) close_bracket(s, index);
    piece->break_before = break_wanted(s, piece, last);
    if (piece->role == TILE_ROLE_OPEN || piece->role == TILE_ROLE_OPEN_BLOCK) open_bracket(s, index, last);
    s->ifs += token->kind == TILE_TOKEN_IF && piece->header && !s->stack.count;
    s->last = index + 1;
    s->separated = false;
}

/* ---- comments ---- */

static bool joins_blocks(const TilePiece *piece) {
    return piece->token == TILE_TOKEN_ELSE && piece->role == TILE_ROLE_WORD;
}

/* A comment is laid out like the token that it precedes, to which it belongs. */
static void place_comments(TilePieces *pieces) {
    TilePiece *items = pieces->list.items;
    for (size_t i = pieces->list.count; i-- > 0;) {
        TilePiece *piece = &items[i];
        if (piece->kind == TILE_PIECE_TOKEN) continue;
        piece->break_before = piece->line_break;
        if (i + 1 == pieces->list.count) continue;
        const TilePiece *next = &items[i + 1];
        piece->token = next->token;
        piece->starts = next->starts;
        piece->item = next->item;
        piece->clause = next->clause;
        piece->header = next->header;
        piece->body = next->body;
        if (joins_blocks(next)) piece->role = next->role;
    }
    for (size_t i = 1; i < pieces->list.count; i++) {
        const TilePiece *last = &items[i - 1];
        if (last->kind == TILE_PIECE_LINE_COMMENT) items[i].break_before = true;
        bool leads = last->kind == TILE_PIECE_BLOCK_COMMENT && last->break_before && !items[i].line_break;
        if (leads) items[i].break_before = false;
    }
}

/* The first line in a block: a comment on the brace's line stays there. */
static void break_after_brace(TilePieces *pieces, uint32_t index) {
    TilePiece *items = pieces->list.items;
    uint32_t first = index + 1;
    while (items[first].kind != TILE_PIECE_TOKEN && !items[first].line_break && items[first + 1].line_break) first++;
    items[first].break_before = true;
}

uint32_t tile_pieces_spread(TilePieces *pieces, uint32_t index) {
    TilePiece *piece = &pieces->list.items[index];
    uint32_t least = index;
    if (!piece->inline_block) return least;
    piece->inline_block = false;
    break_after_brace(pieces, index);
    const TilePiece *last = &pieces->list.items[piece->partner - 1];
    bool led =
        last->kind == TILE_PIECE_BLOCK_COMMENT && last->break_before && !pieces->list.items[piece->partner].line_break;
    pieces->list.items[piece->partner].break_before = !led;
    const uint32_t others[] = {piece->before, piece->after, piece->around};
    for (int i = 0; i < 3; i++) {
        uint32_t reached = others[i] ? tile_pieces_spread(pieces, others[i]) : index;
        if (reached < least) least = reached;
    }
    return least;
}

void tile_pieces_make(TilePieces *pieces, const TileTokens *tokens, size_t length) {
    Structure s = {.pieces = pieces};
    Trivia trivia = {0};
    for (size_t i = 0; i < tokens->list.count && tokens->list.items[i].kind != TILE_TOKEN_END; i++) {
        const TileToken *token = &tokens->list.items[i];
        add_trivia(pieces, &trivia, token->begin);
        if (token->kind == TILE_TOKEN_SEMICOLON) {
            s.separated = true;
            trivia.at = token->end;
            trivia.column++;
        } else {
            add_token(&s, &trivia, token);
        }
    }
    add_trivia(pieces, &trivia, (uint32_t)length);
    place_comments(pieces);
    for (uint32_t i = 1; i < pieces->list.count; i++) { /* an else that must begin a line forces its block onto several
                                                         * lines */
        const TilePiece *piece = &pieces->list.items[i];
        if (!joins_blocks(piece) || !piece->break_before) continue;
        const TilePiece *last = piece;
        while (last->kind != TILE_PIECE_TOKEN || last == piece) last--;
        if (last->role == TILE_ROLE_CLOSE_BLOCK) tile_pieces_spread(pieces, last->partner);
    }
    for (size_t i = 0; i < s.spread.count; i++) tile_pieces_spread(pieces, s.spread.items[i]);
}

/* ---- blanks ---- */

static bool space_before_bracket(const TilePiece *last, const TilePiece *piece) {
    if (piece->token == TILE_TOKEN_LEFT_BRACE) return true;
    if (last->token == TILE_TOKEN_FN || last->token == TILE_TOKEN_ASSERT || last->token == TILE_TOKEN_STATIC_ASSERT)
        return false;
    return !ends_operand(last) || last->role == TILE_ROLE_CLOSE_BLOCK;
}

bool tile_pieces_space(const TilePieces *pieces, uint32_t index) {
    const TilePiece *piece = &pieces->list.items[index], *last = piece - 1;
    if (last->kind == TILE_PIECE_TOKEN && last->role == TILE_ROLE_OPEN) return false;
    if (piece->kind != TILE_PIECE_TOKEN) return true;
    if (piece->role == TILE_ROLE_CLOSE || piece->role == TILE_ROLE_COMMA) return false;
    if (last->kind != TILE_PIECE_TOKEN) return true;
    if (last->role == TILE_ROLE_UNARY || last->token == TILE_TOKEN_ELLIPSIS) return false;
    if (piece->token == TILE_TOKEN_DOT) return last->token == TILE_TOKEN_INTEGER; /* `1.` is not a number */
    if (piece->token == TILE_TOKEN_DOTS) return false;
    if (last->token == TILE_TOKEN_DOT || last->token == TILE_TOKEN_DOTS) return false;
    if (piece->token == TILE_TOKEN_COLON) return last->role == TILE_ROLE_COMMA;
    if (piece->role == TILE_ROLE_OPEN) return space_before_bracket(last, piece);
    return true;
}
