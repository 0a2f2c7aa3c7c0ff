/* What is in a tensor before a program runs, and how it lies in memory. */
#ifndef TESTS_RANDOM_CONTENTS_H
#define TESTS_RANDOM_CONTENTS_H

#include "evaluate.h"

/* The same ones each time. */
Contents *contents_make(const Tensor *tensor);
/* Makes the array as the tensor's view says, with the contents. Where elements share a place they become equal. */
bool contents_place(Contents *contents, const Tensor *tensor, Array *array);

#endif
