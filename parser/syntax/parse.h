/* Internals of the parser: recursive descent over the tokens of one text.
 *
 * After an error the parser is in panic mode: nothing is consumed or reported until the next statement or item
 * (tile_parse_resume_*). So one mistake gives one message. */
#ifndef TILE_PARSER_SYNTAX_PARSE_H
#define TILE_PARSER_SYNTAX_PARSE_H

#include "parser/syntax/ast.h"

typedef struct TileParser {
    TileArena *arena;
    TileDiagnostics *diagnostics;
    TileAst *ast;
    const char *text;
    TileTokens tokens;
    size_t position;
    size_t next_doc;
    uint32_t file;
    unsigned depth;
    bool panic;
    size_t item;          /* the first token of the current item */
    uint32_t item_errors; /* how many errors there were before the item */
    bool header;          /* newlines are ignored */
    bool newline_taken;   /* the newline before the current token has been consumed */
} TileParser;

/* The cursor. A newline that ends a statement is a token. */
TileTokenKind tile_parse_peek(const TileParser *parser);
/* The kind of the token at distance `ahead`, newlines ignored. */
TileTokenKind tile_parse_peek_ahead(const TileParser *parser, size_t ahead);
TileSpan tile_parse_span(const TileParser *parser);
uint32_t tile_parse_last_end(const TileParser *parser);
void tile_parse_advance(TileParser *parser);
/* Consumes the token if it is the current one. */
bool tile_parse_accept(TileParser *parser, TileTokenKind kind);
/* Reports that the current token begins no item. */
void tile_parse_fail_item(TileParser *parser);
/* Consumes the token, or reports that it is missing. */
bool tile_parse_expect(TileParser *parser, TileTokenKind kind);
/* Reports an error; returns NULL if in panic mode. */
TileDiagnostic *tile_parse_fail(TileParser *parser, const char *expected);
/* Proposes to join the line that begins with an operator to the previous one, unless that ends in a comment. */
void tile_parse_propose_join(TileParser *parser, TileDiagnostic *d, TileSpan operator);
TileNameRef tile_parse_name(TileParser *parser);
const char *tile_parse_string(TileParser *parser);
TileSpan tile_parse_span_from(const TileParser *parser, TileSpan begin);
/* False, with a message, if nested too deeply; otherwise tile_parse_leave has to follow. */
bool tile_parse_enter(TileParser *parser);
static inline void tile_parse_leave(TileParser *parser) { parser->depth--; }

void tile_parse_resume_statement(TileParser *parser);
void tile_parse_resume_item(TileParser *parser, size_t begin);
/* Is this a keyword that begins an item, on a new line? */
bool tile_parse_at_item(const TileParser *parser);

TileExpr *tile_parse_expression(TileParser *parser);
void tile_parse_arguments(TileParser *parser, TileExpr *call);
TileTypeExpr *tile_parse_type(TileParser *parser);
TileSequence *tile_parse_sequence(TileParser *parser);
/* Reports an expression without effect where a statement is expected. */
void tile_parse_check_effect(TileParser *parser, const TileExpr *expr);
void tile_parse_check_sequence_effect(TileParser *parser, const TileSequence *sequence);
TileItem *tile_parse_item(TileParser *parser);
/* Parses what follows the word `export`. */
void tile_parse_export_list(TileParser *parser, TileItem *item);

/* A file of a program: all files share one table of names. */
tile_status tile_parse_program_file(TileArena *arena, TileDiagnostics *diagnostics, TileInterner *names,
                                    const char *name, const char *text, size_t length, TileAst **out);

#endif
