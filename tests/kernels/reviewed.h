/* A list of decisions that may differ: lines with kernel, target, kind and reason, separated by tabs. */
#ifndef TESTS_KERNELS_REVIEWED_H
#define TESTS_KERNELS_REVIEWED_H

#include "matrix.h"

typedef struct Reviewed Reviewed;

/* NULL, after a message. The parent process sees what child processes record. */
Reviewed *reviewed_read(const char *path);
void reviewed_destroy(Reviewed *reviewed);

/* The kinds that may differ for the row, a bit for each. */
unsigned reviewed_kinds(const Reviewed *reviewed, const Row *row, const char *target);
/* Records that these do. */
void reviewed_note(const Reviewed *reviewed, const Row *row, const char *target, unsigned kinds);
/* Is each line about a row of the matrix, and did the decision differ in one of those that were run, if there were any?
 * With `few`, when not all types and sizes were run, only the former. False, after listing the lines. */
bool reviewed_all_apply(const Reviewed *reviewed, const Matrix *matrix, bool few);

#endif
