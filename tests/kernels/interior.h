/* Tiles that lie wholly inside of their tensors carry no masks: tests/interior.tsv. */
#ifndef TESTS_KERNELS_INTERIOR_H
#define TESTS_KERNELS_INTERIOR_H

#include "run.h"

/* Runs the row's kernel on every emulated target, as session_run does, and counts what runs under a mask, which chooses
 * among lanes that exist or not, and not among threads that hold the same element (TileExecutorOptions.masked): at most
 * as much as the field `target` says ("avx2=4 sm_80=96"; nothing where it is silent), and something where it says so.
 * With only=cpu or only=gpu the others are left out. */
bool interior_run(Session *session, const Row *row, char *reason);

#endif
