/* The contents of tensors before a program runs, and their memory layout. */
#ifndef TESTS_RANDOM_CONTENTS_H
#define TESTS_RANDOM_CONTENTS_H

#include "evaluate.h"

/* The same ones in each call. */
Contents *contents_make(const Tensor *tensor);
/* Creates the array with the tensor's view, and the contents. Elements with the same address become equal. */
bool contents_place(Contents *contents, const Tensor *tensor, Array *array);

/* What a load gives for a code, and the code of a number. */
uint64_t packing_number(Packing packing, unsigned code);
unsigned packing_code(Packing packing, Type type, uint64_t bits);

/* What is left of a number that is stored to the tensor. */
Number contents_kept(const Tensor *tensor, Number number);
/* The bits of an element in memory. */
uint64_t contents_bits(const Contents *contents, const Tensor *tensor, const Array *array, int64_t element);
/* Is the half behind an odd number of packed numbers what it has to be: 0 where the number before it was stored, else what it was? */
bool contents_padded(const Contents *contents, const Tensor *tensor, const Array *array);

/* The element type in the text. */
const char *tensor_word(const Tensor *tensor);

#endif
