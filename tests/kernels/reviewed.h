/* The decisions that differ, and may: a line for each kernel, target and kind, with its reason, between tabs. */
#ifndef TESTS_KERNELS_REVIEWED_H
#define TESTS_KERNELS_REVIEWED_H

#include "matrix.h"

typedef struct Reviewed Reviewed;

/* NULL, after a message. What children note, their parent sees. */
Reviewed *reviewed_read(const char *path);
void reviewed_destroy(Reviewed *reviewed);

/* The kinds that may differ for the row, a bit for each. */
unsigned reviewed_kinds(const Reviewed *reviewed, const Row *row, const char *target);
/* That these do. */
void reviewed_note(const Reviewed *reviewed, const Row *row, const char *target, unsigned kinds);
/* Is each line about a row of the matrix, and was it so in one of those that ran, if any did? With `few`, where not all
 * types and sizes did, only the former. False, after naming the lines. */
bool reviewed_all_apply(const Reviewed *reviewed, const Matrix *matrix, bool few);

#endif
