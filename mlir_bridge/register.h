/* The C interface of register.cc. */
#ifndef TILE_MLIR_BRIDGE_REGISTER_H
#define TILE_MLIR_BRIDGE_REGISTER_H

#include <stdbool.h>
#include <stddef.h>

#include "llvm-c/TargetMachine.h"
#include "llvm-c/Types.h"
#include "mlir-c/IR.h"

#ifdef __cplusplus
extern "C" {
#endif

void tile_register_translations(MlirDialectRegistry registry);
/* Does LLVM know the triple, the CPU and each feature ("+a,-b")? For unknown names it would print a warning or end
 * the process. The targets must be initialised. */
bool tile_target_names_known(const char *triple, const char *cpu, const char *features);
/* Passes of LLVM's code generation that may be left out. */
enum {
    TILE_LEAVE_STRAIGHT_LINES = 1 << 0, /* strength reduction of straight lines, of the NVPTX back end */
    TILE_LEAVE_LOOPS = 1 << 1           /* strength reduction of loops, and what prepares them for it */
};

/* Generates code; the bytes are `take`'s during the call. False: the target has no such code. */
bool tile_generate_code(LLVMTargetMachineRef machine, LLVMModuleRef module, bool assembly, unsigned left_out,
                        void (*take)(const char *bytes, size_t size, void *state), void *state);

#ifdef __cplusplus
}
#endif

#endif
