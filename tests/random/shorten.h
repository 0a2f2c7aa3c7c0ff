/* Cuts a program that fails down to a smaller one that fails in the same way. */
#ifndef TESTS_RANDOM_SHORTEN_H
#define TESTS_RANDOM_SHORTEN_H

#include "trial.h"

/* Changes the trial's program; *verdict is what is wrong with it. */
void shorten(Trial *trial, const Target *target, Verdict *shared, Verdict *verdict);

#endif
