/* Shared by the tests of CPU passes: reading functions, running passes, executing. */
#ifndef TILE_TESTS_UNIT_CPU_PASSING_H
#define TILE_TESTS_UNIT_CPU_PASSING_H

#include <criterion/criterion.h>

#include "cpu/passes.h"
#include "cpu/target.h"
#include "lang/execute/execute.h"

/* A verified module from text form, in a context of its own. */
typedef struct Passing {
    TileContext *context;
    TileModule *module;
} Passing;

Passing passing_read(const char *text);
void passing_release(Passing *passing);
/* Runs passes by name, with verification after each; the test fails if one fails. */
void passing_run(Passing *passing, const char *passes, const TileTarget *target);
/* Runs the module's first function, whose parameters are all bound; the test fails unless it finishes. Scalable vectors
 * have this many times their minimum length. */
TileExecutor *passing_executor(const Passing *passing, unsigned vector_scale);
void passing_execute(TileExecutor *executor);

/* A repeatable sequence, and random bits of a type in which special numbers are frequent. */
uint64_t passing_random(uint64_t *state);
uint64_t passing_bits(uint64_t *state, TileScalar scalar);

#endif
