/* The formatter's layout: lines, their indentation, and where to break a line that is too long. */
#include "parser/syntax/format.h"

#include <string.h>

#include "parser/syntax/format_pieces.h"
#include "parser/syntax/syntax.h"
#include "parser/syntax/print.h"

/* An open bracket. */
typedef struct Frame {
    bool block;
    bool placed;      /* brackets: `content` has been set */
    uint32_t base;    /* indentation of a line that begins with the closing bracket */
    uint32_t content; /* indentation of lines within */
    uint32_t hanging; /* brackets: indentation of inner lines, if the first inner token begins a line */
    uint32_t column;  /* brackets: its own column */
    uint32_t first;   /* blocks: kind of the first token of the enclosing statement */
} Frame;

typedef TILE_LIST(Frame) FrameList;

typedef struct Line {
    size_t begin, end; /* in the output text, without a comment at the end of the line */
    uint32_t width;
    uint32_t comment; /* index of the comment at the end; 0 for none */
    bool blank;       /* preceded by an empty line */
} Line;

typedef struct Layout {
    TilePieces *pieces;
    TileText text; /* of the lines, without line breaks */
    FrameList frames, saved;
    TILE_LIST(Line) lines;
    uint32_t indent, column; /* of the current line */
    bool opened;             /* the previous token opened a block */
} Layout;

static Frame *top(Layout *layout) { return &layout->frames.items[layout->frames.count - 1]; }

/* ---- indentation ---- */

/* Continuation lines of a statement are indented deeper than the lines of a block that the statement opens. */
static uint32_t continuation(const Frame *frame, bool header) {
    if (header) return 2 * TILE_FORMAT_INDENT;
    switch (frame->first) {
    case TILE_TOKEN_FOR:
    case TILE_TOKEN_STATIC:
    case TILE_TOKEN_WHILE:
    case TILE_TOKEN_GRID:
    case TILE_TOKEN_IF: return 2 * TILE_FORMAT_INDENT;
    default: return TILE_FORMAT_INDENT;
    }
}

static uint32_t indentation(Layout *layout, const TilePiece *piece) {
    Frame *frame = top(layout);
    bool token = piece->kind == TILE_PIECE_TOKEN;
    if (token && (piece->role == TILE_ROLE_CLOSE || piece->role == TILE_ROLE_CLOSE_BLOCK)) return frame->base;
    if (!frame->block) return frame->placed ? frame->content : frame->hanging;
    if (piece->clause) return frame->content + TILE_FORMAT_INDENT;
    if (piece->starts || piece->token == TILE_TOKEN_RIGHT_BRACE || piece->token == TILE_TOKEN_END)
        return frame->content;
    if (piece->body) return token ? frame->content : frame->content + TILE_FORMAT_INDENT;
    if (piece->token == TILE_TOKEN_ELSE && piece->role == TILE_ROLE_WORD) return frame->content;
    return frame->content + continuation(frame, piece->header);
}

/* ---- one line ---- */

static uint32_t text_width(const char *text, uint32_t begin, uint32_t end) {
    uint32_t width = 0;
    for (uint32_t i = begin; i < end; i++) width += (text[i] & 0xc0) != 0x80;
    return width;
}

/* The width of the output's last line, from `begin` on. */
static uint32_t last_width(const TileText *text, size_t begin) {
    size_t at = text->length;
    while (at > begin && text->text[at - 1] != '\n') at--;
    return text_width(text->text, (uint32_t)at, (uint32_t)text->length);
}

static void add_blanks(TileText *text, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) tile_text_add_char(text, ' ');
}

static void open_frame(Layout *layout, const TilePiece *piece) {
    Frame *outer = top(layout);
    Frame frame = {.block = piece->role == TILE_ROLE_OPEN_BLOCK, .column = layout->column};
    if (frame.block) {
        frame.base = outer->block ? outer->content : layout->indent;
        frame.content = frame.base + TILE_FORMAT_INDENT;
    } else {
        frame.base = layout->indent;
        frame.hanging = layout->indent + TILE_FORMAT_INDENT;
        if (outer->block && piece->header)
            frame.hanging = outer->content + 2 * TILE_FORMAT_INDENT;
        else if (outer->block)
            frame.hanging = layout->indent + continuation(outer, false);
    }
    tile_list_push(layout->pieces->arena, &layout->frames, frame);
}

/* Updates the stack of brackets for `piece`, which has been placed at the current column. */
static void follow(Layout *layout, const TilePiece *piece, bool first) {
    Frame *frame = top(layout);
    if (!frame->block && !frame->placed && (first || piece->kind != TILE_PIECE_LINE_COMMENT)) {
        frame->placed = true;
        frame->content = first ? frame->hanging : layout->column;
    }
    if (piece->kind != TILE_PIECE_TOKEN) return;
    layout->opened = piece->role == TILE_ROLE_OPEN_BLOCK;
    if (piece->starts && frame->block) frame->first = piece->token;
    if (piece->token == TILE_TOKEN_FOR && frame->first == TILE_TOKEN_NAME)
        frame->first = piece->token; /* ordered for */
    if (piece->role == TILE_ROLE_CLOSE || piece->role == TILE_ROLE_CLOSE_BLOCK) layout->frames.count--;
    if (piece->role == TILE_ROLE_OPEN || piece->role == TILE_ROLE_OPEN_BLOCK) open_frame(layout, piece);
}

/* Later lines of a comment are moved by as much as its first line; trailing blanks are removed. */
static void add_comment(Layout *layout, const TilePiece *piece) {
    const char *text = layout->pieces->text;
    int64_t shift = (int64_t)layout->column - piece->column;
    for (uint32_t begin = piece->begin; begin < piece->end;) {
        uint32_t end = begin, next;
        while (end < piece->end && text[end] != '\n') end++;
        next = end + 1;
        int64_t blanks = 0;
        if (begin > piece->begin) {
            tile_text_add_char(&layout->text, '\n');
            for (; begin < end && (text[begin] == ' ' || text[begin] == '\t'); begin++)
                blanks = text[begin] == ' ' ? blanks + 1 : blanks / TILE_TAB * TILE_TAB + TILE_TAB;
            blanks += shift;
        }
        while (end > begin && (text[end - 1] == ' ' || text[end - 1] == '\t' || text[end - 1] == '\r')) end--;
        if (end > begin && blanks > 0) add_blanks(&layout->text, (uint32_t)blanks);
        tile_text_add_bytes(&layout->text, text + begin, end - begin);
        if (next > piece->end) break;
        begin = next;
    }
}

static bool is_trailing(const TilePieces *pieces, uint32_t index) {
    const TilePiece *piece = &pieces->list.items[index];
    if (piece->kind == TILE_PIECE_TOKEN || piece->break_before) return false;
    if (memchr(pieces->text + piece->begin, '\n', piece->end - piece->begin)) return false;
    return index + 1 == pieces->list.count || pieces->list.items[index + 1].break_before;
}

/* ---- choosing a line break ---- */

enum { NOWHERE = 1000, PER_BRACKET = 10, FAR_BRACKET = 60 };

/* The precedence of an operator: the lower, the better a break before it. */
static unsigned operator_cost(TileTokenKind kind) {
    switch (kind) {
    case TILE_TOKEN_ELSE: return 1;
    case TILE_TOKEN_OR:
    case TILE_TOKEN_AND: return 2;
    case TILE_TOKEN_EQUAL:
    case TILE_TOKEN_NOT_EQUAL:
    case TILE_TOKEN_LESS:
    case TILE_TOKEN_LESS_EQUAL:
    case TILE_TOKEN_GREATER:
    case TILE_TOKEN_GREATER_EQUAL: return 3;
    case TILE_TOKEN_PLUS:
    case TILE_TOKEN_MINUS: return 4;
    default: return 5;
    }
}

static unsigned depth(const Layout *layout) {
    unsigned count = 0;
    for (size_t i = layout->frames.count; i-- > 0 && !layout->frames.items[i].block;) count++;
    return count;
}

/* The cost of a break before the piece. */
static unsigned break_cost(Layout *layout, uint32_t index) {
    const TilePiece *piece = &layout->pieces->list.items[index], *last = piece - 1;
    unsigned cost = PER_BRACKET * depth(layout);
    const Frame *frame = top(layout);
    if (piece->kind != TILE_PIECE_TOKEN || last->kind != TILE_PIECE_TOKEN) return NOWHERE;
    if (piece->role == TILE_ROLE_CLOSE || piece->role == TILE_ROLE_CLOSE_BLOCK) return NOWHERE;
    if (piece->token == TILE_TOKEN_ELSE) return piece->role == TILE_ROLE_WORD ? NOWHERE : cost + 1;
    if (piece->header && frame->block && piece->token == TILE_TOKEN_ARROW) return cost + 15;
    if (piece->header && frame->block && piece->role == TILE_ROLE_WORD && piece->token == TILE_TOKEN_NAME)
        return cost + 3; /* where */
    switch ((TilePieceRole)last->role) {
    case TILE_ROLE_COMMA: return cost;
    case TILE_ROLE_BINARY:
        return last->token == TILE_TOKEN_ELSE || last->token == TILE_TOKEN_ARROW ? NOWHERE
                                                                                 : cost + operator_cost(last->token);
    case TILE_ROLE_ASSIGN: return cost + 25;
    case TILE_ROLE_OPEN:
        if (piece->header && frame->column > FAR_BRACKET && layout->frames.count == 2) return cost - 1;
        return cost + 6;
    default: return NOWHERE;
    }
}

typedef struct Choice {
    uint32_t index;
    unsigned cost;
    bool spread; /* instead, a block is put on lines of its own */
} Choice;

static void consider(Layout *layout, Choice *choice, uint32_t index) {
    const TilePiece *piece = &layout->pieces->list.items[index];
    if (choice->spread) return;
    if (piece->kind == TILE_PIECE_TOKEN && piece->role == TILE_ROLE_OPEN_BLOCK && piece->inline_block) {
        *choice = (Choice){index, 0, true};
        return;
    }
    unsigned cost = break_cost(layout, index);
    if (cost < NOWHERE && cost <= choice->cost && indentation(layout, piece) < layout->column)
        *choice = (Choice){index, cost, false};
}

/* One empty line between statements and between items is kept, none at the ends of a block or within a header. */
static bool keeps_blank(Layout *layout, const TilePiece *piece) {
    if (!piece->blank || !layout->lines.count || layout->opened || !top(layout)->block) return false;
    if (piece->kind == TILE_PIECE_TOKEN && piece->role == TILE_ROLE_CLOSE_BLOCK) return false;
    return !piece->header || piece->item;
}

/* Lays out the line that begins at `*index` and advances `*index` past it. False: it is too long, and `*choice` is what
 * to change. */
static bool lay_line(Layout *layout, uint32_t *index, Choice *choice) {
    TilePieces *pieces = layout->pieces;
    Line line = {.begin = layout->text.length, .blank = keeps_blank(layout, &pieces->list.items[*index])};
    bool fits = true;
    const uint32_t start = *index;
    for (uint32_t i = start;; i++) {
        const TilePiece *piece = &pieces->list.items[i];
        bool first = i == start, trailing = !first && is_trailing(pieces, i);
        if (first)
            layout->column = layout->indent = indentation(layout, piece);
        else
            layout->column += tile_pieces_space(pieces, i);
        if (!first && !trailing && (fits || choice->cost == NOWHERE)) consider(layout, choice, i);
        uint32_t width = text_width(pieces->text, piece->begin, piece->end);
        if (piece->kind == TILE_PIECE_TOKEN && layout->column + width > TILE_FORMAT_COLUMNS) fits = false;
        if (!fits && choice->cost < NOWHERE) return false;
        follow(layout, piece, first);
        if (trailing) {
            line.comment = i;
        } else {
            add_blanks(&layout->text, first ? layout->indent : tile_pieces_space(pieces, i));
            if (piece->kind == TILE_PIECE_TOKEN) {
                tile_text_add_bytes(&layout->text, pieces->text + piece->begin, piece->end - piece->begin);
                layout->column += width;
            } else {
                add_comment(layout, piece);
                layout->column = last_width(&layout->text, line.begin);
            }
            line.width = layout->column;
        }
        line.end = layout->text.length;
        *index = i + 1;
        if (*index == pieces->list.count || pieces->list.items[*index].break_before) break;
    }
    tile_list_push(pieces->arena, &layout->lines, line);
    return true;
}

static void copy_frames(TileArena *arena, FrameList *to, const FrameList *from) {
    to->count = 0;
    for (size_t i = 0; i < from->count; i++) tile_list_push(arena, to, from->items[i]);
}

static void begin_layout(Layout *layout) {
    layout->text.length = layout->lines.count = layout->frames.count = 0;
    tile_list_push(layout->pieces->arena, &layout->frames, (Frame){.block = true});
}

static void lay_out(Layout *layout) {
    TilePieces *pieces = layout->pieces;
    begin_layout(layout);
    for (uint32_t i = 0; i < pieces->list.count;) {
        Choice choice = {.cost = NOWHERE};
        size_t length = layout->text.length;
        uint32_t next = i;
        bool opened = layout->opened;
        copy_frames(pieces->arena, &layout->saved, &layout->frames);
        if (lay_line(layout, &next, &choice)) {
            i = next;
            continue;
        }
        copy_frames(pieces->arena, &layout->frames, &layout->saved);
        layout->text.length = length;
        layout->opened = opened;
        if (!choice.spread) {
            pieces->list.items[choice.index].break_before = true;
        } else if (tile_pieces_spread(pieces, choice.index) < i) { /* earlier lines have to be laid out again */
            begin_layout(layout);
            i = 0;
        }
    }
}

/* ---- the lines of the text ---- */

/* Comments at the ends of neighbouring lines that were aligned stay aligned; others keep their distance from the
 * code. */
static size_t align_comments(const Layout *layout, size_t first, uint32_t *column) {
    const TilePiece *pieces = layout->pieces->list.items;
    const Line *lines = layout->lines.items;
    uint32_t widest = 0, gap = UINT32_MAX;
    size_t end = first;
    for (; end < layout->lines.count && lines[end].comment; end++) {
        const TilePiece *comment = &pieces[lines[end].comment];
        if (comment->column != pieces[lines[first].comment].column) break;
        uint32_t own = comment->gap ? comment->gap : 1;
        if (own < gap) gap = own;
        if (lines[end].width > widest) widest = lines[end].width;
    }
    *column = widest + gap;
    return end;
}

static void add_line(Layout *layout, const Line *line, uint32_t comment_column, TileText *out) {
    tile_text_add_bytes(out, layout->text.text + line->begin, line->end - line->begin);
    if (line->comment) {
        const TilePiece *comment = &layout->pieces->list.items[line->comment];
        size_t begin = layout->text.length;
        add_comment(layout, comment);
        add_blanks(out, comment_column - line->width);
        tile_text_add_bytes(out, layout->text.text + begin, layout->text.length - begin);
    }
    tile_text_add_char(out, '\n');
}

static void add_lines(Layout *layout, TileText *out) {
    size_t aligned = 0;
    uint32_t column = 0;
    for (size_t i = 0; i < layout->lines.count; i++) {
        const Line *line = &layout->lines.items[i];
        if (line->blank) tile_text_add_char(out, '\n');
        if (line->comment && i >= aligned) aligned = align_comments(layout, i, &column);
        add_line(layout, line, column, out);
    }
}

/* ---- the whole text ---- */

typedef struct Reading {
    TileTokens tokens;
    TileAst *ast;
} Reading;

static tile_status read_text(TileArena *arena, TileDiagnostics *diagnostics, const char *name, const char *text,
                             size_t length, Reading *reading) {
    TILE_TRY(tile_parse_file(arena, diagnostics, name, text, length, &reading->ast));
    tile_lex(arena, diagnostics, reading->ast->file, &reading->tokens);
    return TILE_OK;
}

static void make_pieces(TileArena *arena, const Reading *reading, const char *text, size_t length, TilePieces *pieces) {
    *pieces = (TilePieces){.arena = arena, .text = text};
    tile_pieces_make(pieces, &reading->tokens, length);
}

/* Equal except for blanks at the beginnings and ends of lines: the only changes to comments. */
static bool same_text(const char *a, const char *a_end, const char *b, const char *b_end) {
    for (;;) {
        while (a < a_end && strchr(" \t\r\n", *a)) a++;
        while (b < b_end && strchr(" \t\r\n", *b)) b++;
        if (a == a_end || b == b_end) return a == a_end && b == b_end;
        if (*a++ != *b++) return false;
    }
}

static bool same_pieces(const TilePieces *a, const TilePieces *b) {
    if (a->list.count != b->list.count) return false;
    for (size_t i = 0; i < a->list.count; i++) {
        const TilePiece *x = &a->list.items[i], *y = &b->list.items[i];
        const char *from = a->text + x->begin, *to = b->text + y->begin;
        uint32_t length = x->end - x->begin;
        if (x->kind != y->kind) return false;
        if (x->kind != TILE_PIECE_TOKEN) {
            if (!same_text(from, a->text + x->end, to, b->text + y->end)) return false;
        } else if (y->end - y->begin != length || memcmp(from, to, length) != 0) {
            return false;
        }
    }
    return true;
}

static bool same_trees(TileArena *arena, const TileAst *a, const TileAst *b) {
    TileText before = {.arena = arena}, after = {.arena = arena};
    tile_ast_print(a, &before);
    tile_ast_print(b, &after);
    if (strcmp(tile_text_get(&before), tile_text_get(&after)) != 0) return false;
    for (size_t i = 0; i < a->items.count; i++) {
        const char *x = a->items.items[i]->doc, *y = b->items.items[i]->doc;
        if (!x != !y || (x && !same_text(x, x + strlen(x), y, y + strlen(y)))) return false;
    }
    return true;
}

static bool same_meaning(TileArena *arena, const Reading *reading, const TilePieces *pieces, const char *name,
                         const TileText *out) {
    TileDiagnostics *diagnostics = tile_diagnostics_create(arena);
    Reading again = {0};
    TilePieces found;
    if (read_text(arena, diagnostics, name, tile_text_get(out), out->length, &again) != TILE_OK) return false;
    make_pieces(arena, &again, tile_text_get(out), out->length, &found);
    return same_pieces(pieces, &found) && same_trees(arena, reading->ast, again.ast);
}

tile_status tile_format(TileArena *arena, TileDiagnostics *diagnostics, const char *name, const char *text,
                        size_t length, TileText *out) {
    Reading reading = {0};
    TilePieces pieces;
    TILE_TRY(read_text(arena, diagnostics, name, text, length, &reading));
    make_pieces(arena, &reading, text, length, &pieces);
    Layout layout = {.pieces = &pieces, .text = {.arena = arena}};
    *out = (TileText){.arena = arena};
    lay_out(&layout);
    add_lines(&layout, out);
    return same_meaning(arena, &reading, &pieces, name, out) ? TILE_OK : TILE_INTERNAL;
}
