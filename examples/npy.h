/* Dense tensors in memory and from .npy files, as the examples need them. Every function ends the program with a
 * message when it cannot do its work. */
#ifndef EXAMPLES_NPY_H
#define EXAMPLES_NPY_H

#include "tile/dlpack.h"

/* A new tensor of zeros, of rank 1 where columns is 0, else 2. */
DLTensor *npy_tensor(DLDataType type, int64_t rows, int64_t columns);

/* Rows from `first` on of FOLDER/NAME.npy, which must be of the tensor's type and row length. */
DLTensor *npy_load(const char *folder, const char *name, int64_t first, DLTensor *tensor);

void npy_destroy(DLTensor *tensor);

static const DLDataType npy_f32 = {kDLFloat, 32, 1}, npy_u8 = {kDLUInt, 8, 1}, npy_i64 = {kDLInt, 64, 1};

#endif
