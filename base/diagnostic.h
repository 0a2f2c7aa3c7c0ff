/* Diagnostics: what is wrong with a source text, where, why, and what would put it right.
 *
 * A list collects them; nothing is printed here, rendering gives text. A file reports at most
 * TILE_MAX_FILE_ERRORS errors and as many warnings. Codes, severities and words stand in diagnostics.def. */
#ifndef TILE_BASE_DIAGNOSTIC_H
#define TILE_BASE_DIAGNOSTIC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/limits.h"
#include "base/list.h"
#include "base/string.h"

enum { TILE_MAX_FILE_ERRORS = 20 };

typedef enum TileSeverity { TILE_SEVERITY_ERROR, TILE_SEVERITY_WARNING } TileSeverity;

typedef enum TileDiagnosticCode {
#define DIAGNOSTIC(code, name, severity, format) TILE_DIAGNOSTIC_##code,
#include "base/diagnostics.def"
#undef DIAGNOSTIC
    TILE_DIAGNOSTIC_COUNT
} TileDiagnosticCode;

/* Bytes begin .. end of a file of the list; files count from 1, 0 is nowhere. */
typedef struct TileSpan {
    uint32_t file, begin, end;
} TileSpan;

typedef struct TileNote {
    TileSpan span;
    const char *message;
} TileNote;

typedef struct TileDiagnostic {
    TileDiagnosticCode code;
    TileSeverity severity;
    TileSpan span;
    const char *message;
    TILE_LIST(TileNote) notes;
    bool has_edit;
    TileSpan edit; /* the range to replace; empty to insert */
    const char *replacement;
} TileDiagnostic;

typedef struct TileSourceFile {
    const char *name, *text;
    size_t length;
    uint32_t *lines; /* offset of the first byte of each line; made on first use */
    uint32_t line_count, last_line;
    uint32_t errors, warnings;
} TileSourceFile;

typedef struct TileDiagnostics {
    TileArena *arena;
    TILE_LIST(TileSourceFile) files; /* items[0] is unused */
    TILE_LIST(TileDiagnostic *) list;
    uint32_t error_count;     /* also those that are not in the list, being too many or there already */
    uint64_t work;            /* operations that the check of the files has taken so far */
    const TileLimits *limits; /* on the work with these files; the usual ones, where nobody sets others */
} TileDiagnostics;

TileDiagnostics *tile_diagnostics_create(TileArena *arena);
/* Name and text are borrowed and must outlive the list; the text need not end in a zero byte. Returns the
 * number of the file. */
uint32_t tile_diagnostics_add_file(TileDiagnostics *list, const char *name, const char *text, size_t length);

/* Adds a diagnostic; the arguments are those of the code's format. Returns NULL, which the calls below accept,
 * when the file has reached its limit or already has the same one at the same place. */
TileDiagnostic *tile_diagnose(TileDiagnostics *list, TileDiagnosticCode code, TileSpan span, ...);
/* Another place that helps to understand; a span of file 0 makes a note without a place. */
void tile_diagnostic_note(TileDiagnostics *list, TileDiagnostic *diagnostic, TileSpan span, const char *format, ...)
    TILE_PRINTF(4, 5);
/* What to write instead of the bytes of `span`. */
void tile_diagnostic_edit(TileDiagnostics *list, TileDiagnostic *diagnostic, TileSpan span, const char *format, ...)
    TILE_PRINTF(4, 5);

/* The note that says how to raise the limit that was gone past. */
void tile_diagnostic_note_limit(TileDiagnostics *list, TileDiagnostic *diagnostic, TileLimitId limit);

const char *tile_diagnostic_name(TileDiagnosticCode code);

/* A mark and the way back to it: drops what was added since. */
typedef struct TileDiagnosticsMark {
    size_t count;
    uint32_t error_count;
} TileDiagnosticsMark;
TileDiagnosticsMark tile_diagnostics_mark(const TileDiagnostics *list);
/* Takes back the newest diagnostic, an error. */
void tile_diagnostics_withdraw(TileDiagnostics *list, const TileDiagnostic *newest);
void tile_diagnostics_rewind(TileDiagnostics *list, TileDiagnosticsMark mark);
/* By file and place; of one place, as they were found. */
void tile_diagnostics_sort(TileDiagnostics *list);

/* Line and column of an offset, from 1; columns count characters. */
void tile_source_position(TileDiagnostics *list, uint32_t file, uint32_t offset, uint32_t *line, uint32_t *column);

/* One character of a file of this name; of no file where the list has none. Line and column count from 1. */
TileSpan tile_source_span(TileDiagnostics *list, const char *name, uint32_t line, uint32_t column);

/* For people: file:line:column, the line, a caret range, notes and the proposed edit. */
void tile_diagnostics_render(TileDiagnostics *list, TileText *text, bool colour);
/* For editors: one JSON array. */
void tile_diagnostics_render_json(TileDiagnostics *list, TileText *text);
/* One diagnostic, as an object of that array. */
void tile_diagnostic_render_json(TileDiagnostics *list, const TileDiagnostic *diagnostic, TileText *text);
/* One diagnostic, in the form for people. */
void tile_diagnostic_render(TileDiagnostics *list, const TileDiagnostic *diagnostic, TileText *text, bool colour);

#endif
