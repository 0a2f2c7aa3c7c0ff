/* Interior tiles have no masks: tests/interior.tsv. */
#ifndef TESTS_KERNELS_INTERIOR_H
#define TESTS_KERNELS_INTERIOR_H

#include "run.h"

/* Runs the row's kernel on every emulated target, like session_run, and counts masked operations (TileMaskedCounts): at
 * most as many as in the field `target` ("avx2=4 sm_80=96", of masks that data decides "sm_80.data=256"; 0 for targets that
 * are not in it), and at least one if there is an entry. With only=cpu or only=gpu, only those targets. */
bool interior_run(Session *session, const Row *row, char *reason);

#endif
