/* Shared by the executor's tests: reading functions, binding matrices. */
#ifndef TILE_TESTS_UNIT_LANG_EXECUTING_H
#define TILE_TESTS_UNIT_LANG_EXECUTING_H

#include <criterion/criterion.h>
#include <string.h>

#include "lang/execute/execute.h"
#include "lang/scalar/scalar.h"
#include "lang/ir/text.h"
#include "lang/ir/verify.h"

typedef struct Executing {
    TileContext *context;
    TileArena *arena;
    TileModule *module; /* the last one that was read */
    TILE_LIST(TileModule *) modules;
} Executing;

extern Executing executing;

void executing_set_up(void);
void executing_tear_down(void);
/* A verified function, from the text form. */
TileFunc *read_func(const char *source, const char *name);
/* A contiguous f32 matrix; a vector has one column. */
TileExecutorTensor matrix(void *data, int64_t rows, int64_t columns);
uint64_t float_bits(float value);
/* Runs the module's first function, a kernel, and expects this outcome, with a message that contains the text. */
void expect_kernel(const char *source, const TileExecutorArgument *arguments, const TileExecutorOptions *options,
                   TileExecution expected, const char *message);

#endif
