/* What a row's target says of how its kernel runs and is judged. */
#ifndef TESTS_KERNELS_ROW_TARGET_H
#define TESTS_KERNELS_ROW_TARGET_H

#include "matrix.h"

/* The name of a target with a prefix: the executor runs machine form for it. */
bool row_is_emulated(const Row *row);
/* "sve" in "machine.sve.256"; the suffix is a vector length. */
void row_target_name(const Row *row, char *name, size_t size);
/* In bits; 0 if the target's vectors have a fixed length. */
unsigned row_vector_length(const Row *row);
/* Runs on the GPU, on copies of the arrays. */
bool row_is_on_device(const Row *row);
/* On GPUs the order of a reduction depends on the layout: its bits differ from those of other targets. */
bool row_has_own_order(const Row *row);
/* Of a processor that is not this machine's. */
bool row_is_foreign(const Row *row);
/* AMX, and products of words by AVX-512 with bf16, add in orders of their own, and take 0 for subnormals: their bits are compared
 * with those of the executor on the same target's machine form. The target's name, or NULL. */
const char *row_own_words(const Row *row);

#endif
