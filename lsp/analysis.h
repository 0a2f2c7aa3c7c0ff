/* What is known of a text: its tree and those of its imports, its diagnostics, and, once they are asked for, where names
 * stand and what the checker found. */
#ifndef TILE_LSP_ANALYSIS_H
#define TILE_LSP_ANALYSIS_H

#include <setjmp.h>

#include "driver/compile/import.h"
#include "lsp/lines.h"
#include "parser/check/program.h"
#include "parser/syntax/mentions.h"

typedef struct TileAnalysis {
    TileArena *arena;
    jmp_buf guard; /* where memory that runs out leads to */
    TileContext *context;
    TileImportSearch search;
    TileDiagnostics *diagnostics;
    TileAst *ast;
    TileMentions *mentions;       /* NULL: not asked for yet */
    TileAnnotations *annotations; /* likewise */
    TileLines **lines;            /* of each file, likewise; as many as `files` */
    size_t files;
    bool imported;                /* all imports were found, and have no errors of syntax */
    bool checked;
} TileAnalysis;

/* Parses a copy of the text, and its imports. NULL if memory runs out. */
TileAnalysis *tile_analysis_create(const TileImportSearch *search, const char *path, const char *text, size_t length);
void tile_analysis_destroy(TileAnalysis *analysis);
/* Reports the errors of the whole file, once. False if memory runs out; then it is to be destroyed. */
bool tile_analysis_check(TileAnalysis *analysis);
/* NULL if memory runs out. */
const TileMentions *tile_analysis_mentions(TileAnalysis *analysis);
const TileAnnotations *tile_analysis_annotations(TileAnalysis *analysis);
/* Of a file of the diagnostics; NULL if memory runs out. */
const TileLines *tile_analysis_lines(TileAnalysis *analysis, uint32_t file);
/* Has it read the file at this path? */
bool tile_analysis_reads(const TileAnalysis *analysis, const char *path);
/* The text of the span. */
const char *tile_analysis_text(const TileAnalysis *analysis, TileArena *arena, TileSpan span);
/* Has the standard library the file? */
bool tile_analysis_is_standard(const TileAnalysis *analysis, uint32_t file);

#endif
