/* Runs kernels from text by the executor of tile form, which defines what a program means. */
#ifndef TILE_TESTS_PARSER_RUNNING_H
#define TILE_TESTS_PARSER_RUNNING_H

#include "lang/execute/execute.h"
#include "parser/check/program.h"
#include "parser/syntax/syntax.h"

/* A contiguous tensor, or a scalar if data is NULL. */
typedef struct RunArgument {
    void *data;
    unsigned bytes, rank;
    int64_t extent[TILE_MAX_TILE_RANK];
    uint64_t bits;
} RunArgument;

#define VECTOR(array)                                                                                                  \
    ((RunArgument){.data = (array), .bytes = sizeof *(array), .rank = 1, .extent = {sizeof(array) / sizeof *(array)}})
#define MATRIX(array)                                                                                                  \
    ((RunArgument){.data = (array),                                                                                    \
                   .bytes = sizeof **(array),                                                                          \
                   .rank = 2,                                                                                          \
                   .extent = {sizeof(array) / sizeof *(array), sizeof *(array) / sizeof **(array)}})
#define INTEGER(value) ((RunArgument){.bits = (uint64_t)(value)})

/* Runs the text's single kernel; the test fails on any error. Bindings are given as "A=1,T=f32". */
void run_kernel(const char *text, const char *bindings, const RunArgument *arguments, unsigned count);
/* The same for a named kernel of a text that may import the standard library; returns the outcome. */
TileExecution run_named(const char *text, const char *kernel, const char *bindings, const RunArgument *arguments,
                        unsigned count);
#define RUN(text, bindings, ...)                                                                                       \
    run_kernel(text, bindings, (RunArgument[]){__VA_ARGS__}, sizeof((RunArgument[]){__VA_ARGS__}) / sizeof(RunArgument))

/* The diagnostics of a text as printed, "" if there are none; in the arena. */
const char *check_text(TileArena *arena, const char *name, const char *text, size_t length, tile_status *status);
/* Loads imports: modules of stdlib and paths; in the arena. */
TileImporter test_importer(TileArena *arena);
char *read_file(TileArena *arena, const char *path, size_t *length);
const char *source_directory(void);
/* "A=1,T=f32" as bindings; returns their number. */
unsigned read_bindings(TileArena *arena, const char *text, TileBinding *bindings);

#endif
