/* Kernels from text to results, by the executor of tile form: what a program means. */
#ifndef TILE_TESTS_PARSER_RUNNING_H
#define TILE_TESTS_PARSER_RUNNING_H

#include "lang/execute/execute.h"
#include "parser/check/program.h"
#include "parser/syntax/syntax.h"

/* A contiguous tensor, or a scalar where data is NULL. */
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

/* Runs the only kernel of the text; anything that goes wrong fails the test. "A=1,T=f32" binds. */
void run_kernel(const char *text, const char *bindings, const RunArgument *arguments, unsigned count);
/* The same, of a named kernel of a text that may import the standard library; gives how it ended. */
TileExecution run_named(const char *text, const char *kernel, const char *bindings, const RunArgument *arguments,
                        unsigned count);
#define RUN(text, bindings, ...)                                                                                       \
    run_kernel(text, bindings, (RunArgument[]){__VA_ARGS__}, sizeof((RunArgument[]){__VA_ARGS__}) / sizeof(RunArgument))

/* Diagnostics of a text as people see them, "" when there are none; in the arena. */
const char *check_text(TileArena *arena, const char *name, const char *text, size_t length, tile_status *status);
/* Reads stdlib modules and paths for imports, all in the arena. */
TileImporter test_importer(TileArena *arena);
char *read_file(TileArena *arena, const char *path, size_t *length);
const char *source_directory(void);
/* "A=1,T=f32" as bindings; returns the count. */
unsigned read_bindings(TileArena *arena, const char *text, TileBinding *bindings);

#endif
