/* Runs one row of the matrix and checks its results. */
#ifndef TESTS_KERNELS_RUN_H
#define TESTS_KERNELS_RUN_H

#include "granted.h"
#include "lang/execute/execute.h"
#include "matrix.h"
#include "reviewed.h"

enum { MAX_REASON = 2000 };

typedef struct Session Session; /* a compiler, and a cache of libraries */

/* `stdlib` is the directory of the standard library; `grant`: the facts that compilers are given about arguments. With
 * `reviewed` (borrowed; or NULL), canonicalise, cse and dce run between all passes, and may change only those
 * decisions. NULL, after a message, if it cannot be created. */
Session *session_create(const char *stdlib, Grant grant, const Reviewed *reviewed);
void session_destroy(Session *session);

/* Can this machine run the row's target? Otherwise `reason` says why not. */
bool session_can_run(Session *session, const Row *row, char *reason);
/* Is it a failure if it cannot? */
bool session_has_to_run(const Row *row);

/* Do every second row's programs run in several ranges in the executor, as threads would share them? Yes, unless told
 * otherwise. */
void session_divide(Session *session, bool divide);
/* Compiles libraries anew from now on. */
void session_forget(Session *session);
/* Its settings count for what is compiled from now on. */
TileCompiler *session_compiler(Session *session);
/* False, with the reason (terminated), if the row fails. Rows that differ only in the target must be consecutive: their
 * results have to be the same bits. */
bool session_run(Session *session, const Row *row, char *reason);
/* Masked operations of the last row; for emulated targets only. */
TileMaskedCounts session_masked(const Session *session);

#endif
