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
    size_t item;             /* the first token of the current item */
    const TileItem *current; /* it, where its body is parsed */
    uint32_t item_errors;    /* how many errors there were before the item */
    bool header;             /* newlines are ignored */
    bool newline_taken;      /* the newline before the current token has been consumed */
    bool compares;           /* an `=` in the expression can only be meant as `==` */
} TileParser;

/* The cursor. A newline that ends a statement is a token. */
TileTokenKind tile_parse_peek(const TileParser *parser);
/* The kind of the token at distance `ahead`, newlines ignored. */
TileTokenKind tile_parse_peek_ahead(const TileParser *parser, size_t ahead);
TileSpan tile_parse_span(const TileParser *parser);
uint32_t tile_parse_last_end(const TileParser *parser);
void tile_parse_advance(TileParser *parser);
/* Is the current token this name, which has a meaning here? */
bool tile_parse_at_word(const TileParser *parser, const char *word);
/* The same of a word of another language, which is only reported. */
bool tile_parse_at_foreign(const TileParser *parser, const char *word);
/* Consumes the token if it is the current one. */
bool tile_parse_accept(TileParser *parser, TileTokenKind kind);
/* Reports that the current token begins no item. */
TileDiagnostic *tile_parse_fail_item(TileParser *parser);
/* Consumes the token, or reports that it is missing. */
bool tile_parse_expect(TileParser *parser, TileTokenKind kind);
/* Reports an error; returns NULL if in panic mode. */
TileDiagnostic *tile_parse_fail(TileParser *parser, const char *expected);
/* Proposes to join the line that begins with an operator to the previous one, unless that ends in a comment. */
void tile_parse_propose_join(TileParser *parser, TileDiagnostic *d, TileSpan operator);
TileNameRef tile_parse_name(TileParser *parser);
const char *tile_parse_string(TileParser *parser);
TileSpan tile_parse_span_from(const TileParser *parser, TileSpan begin);
/* The token that closes the bracket at `at`, on its line; another one if none does. */
size_t tile_parse_closing(const TileParser *parser, size_t at, TileTokenKind kind);
/* False, with a message, if nested too deeply; otherwise tile_parse_leave has to follow. */
bool tile_parse_enter(TileParser *parser);
static inline void tile_parse_leave(TileParser *parser) { parser->depth--; }

/* ---- words and forms of other languages (parse_foreign.c): reported with an edit, and then understood ---- */

/* The current token as an operator: `and` and `or` are those that they mean. */
TileTokenKind tile_parse_operator(const TileParser *parser);
/* Reports the current token if it is such a word for `meant`. */
void tile_parse_report_operator(TileParser *parser, TileTokenKind meant);
/* `not x` */
bool tile_parse_at_not(const TileParser *parser);
void tile_parse_report_not(TileParser *parser, TileSpan word, const TileExpr *operand);
/* `x ** y` */
void tile_parse_report_power(TileParser *parser, TileSpan op, const TileExpr *left, const TileExpr *right);
/* `value if c else other`; `rest` is what follows `if`. */
void tile_parse_report_ternary(TileParser *parser, TileSpan word, const TileExpr *value, const TileExpr *rest);
/* `condition ? value : other`; `other` is NULL where the colon lacks. */
void tile_parse_report_choice(TileParser *parser, TileSpan op, const TileExpr *condition, const TileExpr *value,
                              const TileExpr *other);
/* `v as f32`: what stands behind the value is skipped. */
void tile_parse_skip_as(TileParser *parser, const TileExpr *operand);
/* `i++` and `i--` as a statement: skips it. */
bool tile_parse_skip_increment(TileParser *parser);
/* `lambda a, b: ..`, `|a, b| ..`, `(a, b) => ..` */
bool tile_parse_fail_lambda(TileParser *parser);
/* `<>` and `===`: reports and consumes the second part, and returns what is meant; else `kind`. `op` is the first part.
 */
TileTokenKind tile_parse_comparison(TileParser *parser, TileTokenKind kind, TileSpan op);
/* `a := 1` */
bool tile_parse_at_walrus(const TileParser *parser, const TileExpr *name);
void tile_parse_report_walrus(TileParser *parser, TileSpan name, TileSpan op);
/* `(float) x` */
bool tile_parse_at_cast(const TileParser *parser, const TileExpr *type);
void tile_parse_report_cast(TileParser *parser, const TileExpr *type, const TileExpr *operand);
/* `x[...]`, and `x[low:high]`, where either may be missing. */
void tile_parse_report_ellipsis(TileParser *parser, TileSpan span);
void tile_parse_report_slice(TileParser *parser, TileSpan span, const TileExpr *low, const TileExpr *high, bool stepped);
/* `x[i, mask = m, other = 0]`, at the first `=`. */
void tile_parse_fail_mask(TileParser *parser, const TileExpr *entry);
/* `a > 0 & a < 5`, where `&` binds before the comparisons: proposes `&&`. `middle` is what stands between both. */
bool tile_parse_report_loose_bits(TileParser *parser, TileDiagnostic *d, const TileExpr *middle);
/* `f32*`, at the star; `&[f32]` and `&mut [f32]`, at the ampersand; `const float *x`, at its first word. */
void tile_parse_fail_pointer(TileParser *parser, const TileTypeExpr *type);
bool tile_parse_fail_reference(TileParser *parser);
bool tile_parse_fail_pointer_parameter(TileParser *parser);
/* The header of a loop in parentheses, at the closing one. */
void tile_parse_report_wrapped(TileParser *parser, TileSpan open);
/* Reports `elif` and such words behind the block of an `if`, so that the token may be taken for an `if`. */
bool tile_parse_report_elif(TileParser *parser);
/* `low..=high`, from the second sign on, which is consumed. */
void tile_parse_skip_inclusive(TileParser *parser, TileSpan dots);
/* `__shared__ float s[64]` */
bool tile_parse_fail_shared(TileParser *parser);
/* Reports and consumes the word if a block follows: `while c do {`. */
void tile_parse_skip_word(TileParser *parser, const char *word);
/* `if c then a else b`; `rest` is what follows `then`. */
void tile_parse_report_then(TileParser *parser, TileSpan word, const TileExpr *rest);
/* `let mut a`: reports that `name` is no name. */
bool tile_parse_skip_mut(TileParser *parser, TileSpan let, TileNameRef name);
/* `float a = 1` */
bool tile_parse_at_declaration(const TileParser *parser, const TileExpr *type);
void tile_parse_report_declaration(TileParser *parser, const TileExpr *type, TileSpan name, const TileExpr *value);
/* `for (int i = low; condition; i += step)` */
void tile_parse_report_counted_loop(TileParser *parser, TileSpan header, TileSpan name, const TileExpr *low,
                                    const TileExpr *condition, const TileExpr *step);
/* Proposes the keyword for `def`, `void` and other words at the beginning of an item. */
void tile_parse_propose_item(TileParser *parser, TileDiagnostic *d);

/* ---- what stands in the wrong place (parse_misplaced.c) ---- */

/* Is this an item or a clause, where a statement stands? */
bool tile_parse_at_misplaced(const TileParser *parser);
void tile_parse_fail_misplaced(TileParser *parser);
/* Reports two statements on a line. */
bool tile_parse_separate(TileParser *parser);
/* Something else stands behind the statement: `a, b = b, a` and `return a, b`, whose parts stand in parentheses here. */
void tile_parse_fail_end(TileParser *parser, const TileStatement *statement);
/* Reports `assert c, "text"`, as in Python, without parentheses. */
bool tile_parse_fail_assertion(TileParser *parser);
/* Reports `= 2` behind a parameter, `static` and such words before one, and `f32 x[N]` as in C. */
void tile_parse_fail_default(TileParser *parser);
void tile_parse_fail_parameter_word(TileParser *parser);
void tile_parse_fail_typed_name(TileParser *parser, TileNameRef type);

void tile_parse_resume_statement(TileParser *parser);
void tile_parse_resume_item(TileParser *parser, size_t begin);
/* Is this a keyword that begins an item, on a new line? */
bool tile_parse_at_item(const TileParser *parser);

TileExpr *tile_parse_expression(TileParser *parser);
/* Of an argument or condition, in which an `=` is reported and taken for `==`. */
TileExpr *tile_parse_comparing(TileParser *parser);
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
