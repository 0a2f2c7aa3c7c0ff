/* The contents of tensors before a program runs, and their memory layout. */
#ifndef TESTS_RANDOM_CONTENTS_H
#define TESTS_RANDOM_CONTENTS_H

#include "evaluate.h"

/* The same ones in each call. */
Contents *contents_make(const Tensor *tensor);
/* Creates the array with the tensor's view, and the contents. Elements with the same address become equal. */
bool contents_place(Contents *contents, const Tensor *tensor, Array *array);

/* The element type in the text. */
const char *tensor_word(const Tensor *tensor);

#endif
