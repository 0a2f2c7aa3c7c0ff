/* The C face of register.cc. */
#ifndef TILE_MLIR_BRIDGE_REGISTER_H
#define TILE_MLIR_BRIDGE_REGISTER_H

#include <stdbool.h>

#include "llvm-c/Types.h"
#include "mlir-c/IR.h"

#ifdef __cplusplus
extern "C" {
#endif

void tile_register_translations(MlirDialectRegistry registry);
/* Does LLVM know the triple, the CPU and each feature ("+a,-b")? A name that it does not know would make it print
 * a warning or end the process. The targets must be initialised. */
bool tile_target_names_known(const char *triple, const char *cpu, const char *features);
/* Has the NVPTX back end leave out "straight-line strength reduction", whose time grows faster than a function does. */
void tile_skip_strength_reduction(LLVMContextRef context);

#ifdef __cplusplus
}
#endif

#endif
