/* Shortens a failing program to a smaller one that fails in the same way. */
#ifndef TESTS_RANDOM_SHORTEN_H
#define TESTS_RANDOM_SHORTEN_H

#include "trial.h"

/* Modifies the trial's program; *verdict is its failure. */
void shorten(Trial *trial, const Target *target, Verdict *shared, Verdict *verdict);

#endif
