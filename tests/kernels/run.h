/* Running one row of the matrix and judging what it did. */
#ifndef TESTS_KERNELS_RUN_H
#define TESTS_KERNELS_RUN_H

#include "granted.h"
#include "matrix.h"
#include "reviewed.h"

enum { MAX_REASON = 2000 };

typedef struct Session Session; /* a compiler, and what it compiled last */

/* `stdlib` is the directory of the standard library; `grant` says what compilers hear of arguments. With
 * `reviewed` (borrowed; or NULL) canonicalise, cse and dce run between all passes, and change no decision but those.
 * NULL, after a message, when it cannot be made. */
Session *session_create(const char *stdlib, Grant grant, const Reviewed *reviewed);
void session_destroy(Session *session);

/* Can the row's target run on this machine? Otherwise `reason` says why not. */
bool session_can_run(Session *session, const Row *row, char *reason);
/* Is it a failure where it cannot? */
bool session_has_to_run(const Row *row);

/* False, with the reason (terminated), when the row fails. Rows that differ in the target alone must come one after
 * the other: their results have to be the same bits. */
bool session_run(Session *session, const Row *row, char *reason);
/* How many operations the last row ran under a mask; of emulated targets only. */
uint64_t session_masked(const Session *session);

#endif
