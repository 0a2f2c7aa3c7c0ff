/* Diagnostics: errors and warnings about a source text, with location, reason and proposed edit. A list collects them;
 * nothing is printed here, rendering gives text. At most TILE_MAX_FILE_ERRORS errors, and as many warnings, are
 * reported for a file. Codes, severities and messages are in diagnostics.def. */
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

/* Bytes begin .. end of a file of the list; files are numbered from 1, 0 means no location. */
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
    uint32_t *lines; /* offset of the first byte of each line; computed on first use */
    uint32_t line_count, last_line, last_offset, last_column; /* of the last place that was asked for */
    uint32_t errors, warnings;
} TileSourceFile;

typedef struct TileDiagnostics {
    TileArena *arena;
    TILE_LIST(TileSourceFile) files; /* items[0] is unused */
    TILE_LIST(TileDiagnostic *) list;
    uint32_t error_count;     /* includes those that were dropped: duplicates, and those beyond the limit */
    uint64_t work;            /* operations executed so far by the check of the files */
    const TileLimits *limits; /* limits on the work with these files; the defaults, unless set */
} TileDiagnostics;

TileDiagnostics *tile_diagnostics_create(TileArena *arena);
/* Name and text are borrowed and must outlive the list; the text need not be zero-terminated. Returns the number of the
 * file. */
uint32_t tile_diagnostics_add_file(TileDiagnostics *list, const char *name, const char *text, size_t length);

/* Adds a diagnostic; the arguments are those of the code's format. Returns NULL, which the calls below accept, if the
 * file has reached its limit or the same diagnostic is already there. */
TileDiagnostic *tile_diagnose(TileDiagnostics *list, TileDiagnosticCode code, TileSpan span, ...);
/* Adds a note, with another location; a span of file 0 makes a note without one. */
void tile_diagnostic_note(TileDiagnostics *list, TileDiagnostic *diagnostic, TileSpan span, const char *format, ...)
    TILE_PRINTF(4, 5);
/* Proposes an edit: the replacement for the bytes of `span`. */
void tile_diagnostic_edit(TileDiagnostics *list, TileDiagnostic *diagnostic, TileSpan span, const char *format, ...)
    TILE_PRINTF(4, 5);

/* Adds the note that says how to raise the limit that was exceeded. */
void tile_diagnostic_note_limit(TileDiagnostics *list, TileDiagnostic *diagnostic, TileLimitId limit);

const char *tile_diagnostic_name(TileDiagnosticCode code);

/* Marks the list, and drops what was added since a mark. */
typedef struct TileDiagnosticsMark {
    size_t count;
    uint32_t error_count;
} TileDiagnosticsMark;
TileDiagnosticsMark tile_diagnostics_mark(const TileDiagnostics *list);
/* Removes the newest diagnostic, an error. */
void tile_diagnostics_withdraw(TileDiagnostics *list, const TileDiagnostic *newest);
void tile_diagnostics_rewind(TileDiagnostics *list, TileDiagnosticsMark mark);
/* Sorts by file and location; stable. */
void tile_diagnostics_sort(TileDiagnostics *list);

/* Line and column of an offset, from 1; columns count characters. */
void tile_source_position(TileDiagnostics *list, uint32_t file, uint32_t offset, uint32_t *line, uint32_t *column);

/* The span of one character of the file of this name; of no file if the list has none. Line and column count from 1. */
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
