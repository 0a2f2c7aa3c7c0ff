/* A program that failed, on disk: its text, and what it ran with. */
#ifndef TESTS_RANDOM_RECORD_H
#define TESTS_RANDOM_RECORD_H

#include "trial.h"

/* What the tensors and scalars are, as comments. */
void record_describe(const Program *program, const Target *target, char *words, size_t size);
/* Writes BASE.tile and, for each tensor that is given, BASE.NAME.npy with its elements in row-major order: the view is
 * only described. The text has the command that runs it. */
void record_write(Program *program, const Target *target, const Verdict *verdict, const char *base);

#endif
