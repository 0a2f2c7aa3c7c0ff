/* The C interface of register.cc. */
#ifndef TILE_MLIR_BRIDGE_REGISTER_H
#define TILE_MLIR_BRIDGE_REGISTER_H

#include <stdbool.h>

#include "llvm-c/Types.h"
#include "mlir-c/IR.h"

#ifdef __cplusplus
extern "C" {
#endif

void tile_register_translations(MlirDialectRegistry registry);
/* Does LLVM know the triple, the CPU and each feature ("+a,-b")? For unknown names it would print a warning or end
 * the process. The targets must be initialised. */
bool tile_target_names_known(const char *triple, const char *cpu, const char *features);
/* Disables straight-line strength reduction in the NVPTX back end: its time is superlinear in a function's size. */
void tile_skip_strength_reduction(LLVMContextRef context);

#ifdef __cplusplus
}
#endif

#endif
