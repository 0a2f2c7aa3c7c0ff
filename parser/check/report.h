/* Reporting, and descriptions of meanings. */
#ifndef TILE_PARSER_CHECK_REPORT_H
#define TILE_PARSER_CHECK_REPORT_H

#include "parser/check/check.h"

static inline TileMeaning tile_error_meaning(void) { return (TileMeaning){.kind = TILE_MEANING_ERROR}; }
static inline TileMeaning tile_nothing(void) { return (TileMeaning){.kind = TILE_MEANING_NOTHING}; }
static inline bool tile_is_error(const TileMeaning *m) { return m->kind == TILE_MEANING_ERROR; }
/* Reports and returns the error meaning. */
#define tile_fail(c, code, span, ...)                                                                                  \
    (tile_report((c), tile_diagnose((c)->diagnostics, TILE_DIAGNOSTIC_##code, (span), ##__VA_ARGS__)),                 \
     tile_error_meaning())
/* Adds notes with the calls that lead to the location. */
TileDiagnostic *tile_report(TileChecker *c, TileDiagnostic *diagnostic);
/* Reports that a call of `name` has `given` arguments instead of `least` to `most`. */
TileDiagnostic *tile_report_count(TileChecker *c, TileSpan span, const char *name, unsigned least, unsigned most,
                                  unsigned given);
/* The diagnostic that was reported last, if it has this code and place; what stands around it may know an edit. */
TileDiagnostic *tile_reported_last(TileChecker *c, TileDiagnosticCode code, TileSpan span);
/* For messages: "f32[BM, BN]", "a range of BM", .. */
const char *tile_meaning_words(TileChecker *c, const TileMeaning *meaning);
const char *tile_sum_words(TileChecker *c, const TileSum *sum);
const char *tile_span_text(TileChecker *c, TileSpan span);
/* "1 entry", "2 entries". */
const char *tile_count_words(TileChecker *c, size_t count, const char *one, const char *more);
/* Reports a side effect, `what`, in a branch of which both sides are executed. False if an error was reported. */
bool tile_may_act(TileChecker *c, TileSpan span, const char *what);

#endif
