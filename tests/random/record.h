/* A failing program on disk: its text, and its arguments. */
#ifndef TESTS_RANDOM_RECORD_H
#define TESTS_RANDOM_RECORD_H

#include "trial.h"

/* Describes tensors and scalars, as comments. */
void record_describe(const Program *program, const Target *target, char *words, size_t size);
/* Writes BASE.tile and, for each input tensor, BASE.NAME.npy with its elements in row-major order: the view is only
 * described in a comment. The text has the command that runs it. */
void record_write(Program *program, const Target *target, const Verdict *verdict, const char *base);

#endif
