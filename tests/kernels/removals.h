/* Does the emulated GPU notice each op that orders threads and that is missing? */
#ifndef TESTS_KERNELS_REMOVALS_H
#define TESTS_KERNELS_REMOVALS_H

#include "run.h"

/* Runs the row, then once without each such op of its code, under several schedules, until a race, a fault or a value that is not
 * defined is reported. Results that are wrong without a report are a failure, and so is another count of what goes unnoticed than
 * the text of the list has for the kernel and its types and target (tests/gpu/removal.h). Prints how many ops there are, how many
 * of them are listed, and how many the row does not reach, of which nothing is said. */
bool removals_run(Session *session, const Row *row, const char *list, char *reason);
/* The text of a list, behind a line break; NULL, after a message. The caller frees it. */
char *removals_read(const char *path);

#endif
