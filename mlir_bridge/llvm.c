/* LLVM in this process: its initialisation, its fatal errors, the target machine, attributes. */
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "llvm-c/Core.h"
#include "llvm-c/ErrorHandling.h"
#include "llvm-c/Target.h"
#include "mlir_bridge/context.h"
#include "mlir_bridge/register.h"

/* LLVM's fatal-error handler and its list of targets are global to the process, and the handler has no user data:
 * hence the only mutable state of this folder outside of a bridge. */
static pthread_once_t initialised = PTHREAD_ONCE_INIT;
static atomic_bool untrusted; /* a longjmp left LLVM: its locks and tables are in an undefined state */

typedef struct Emergency {
    jmp_buf exit;
    char reason[512];
} Emergency;
static _Thread_local Emergency *emergency;

static void leave_llvm(const char *reason) {
    if (!emergency) return;
    atomic_store(&untrusted, true);
    strncpy(emergency->reason, reason, sizeof emergency->reason - 1);
    longjmp(emergency->exit, 1);
}

static void initialise_llvm(void) {
    LLVMInstallFatalErrorHandler(leave_llvm);
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
}

void bridge_initialise_llvm(void) { pthread_once(&initialised, initialise_llvm); }

tile_status bridge_run_guarded(TileBridge *bridge, BridgeGuarded guarded) {
    Emergency *exit = calloc(1, sizeof *exit);
    if (!exit) return TILE_OUT_OF_MEMORY;
    tile_status status;
    if (setjmp(exit->exit) == 0) {
        emergency = exit;
        status = guarded.run(guarded.state);
    } else {
        bridge_complain(bridge, "LLVM: %s", exit->reason);
        bridge->machine = NULL;
        status = TILE_BACKEND;
    }
    emergency = NULL;
    free(exit);
    return status;
}

/* ---- the target machine ---- */

void bridge_drop_target(TileBridge *bridge) {
    if (bridge->machine) LLVMDisposeTargetMachine(bridge->machine);
    free(bridge->triple);
    free(bridge->cpu);
    free(bridge->features);
    bridge->machine = NULL;
    bridge->triple = bridge->cpu = bridge->features = NULL;
}

static bool is_current_target(const TileBridge *bridge, const TileTarget *target) {
    return bridge->machine && strcmp(bridge->triple, target->triple) == 0 &&
           strcmp(bridge->cpu, target->llvm_cpu) == 0 && strcmp(bridge->features, target->llvm_features) == 0;
}

static tile_status create_machine(void *state) {
    TileBridge *bridge = state;
    if (!tile_target_names_known(bridge->triple, bridge->cpu, bridge->features)) {
        bridge_complain(bridge, "LLVM does not know the target %s, CPU '%s', features '%s'", bridge->triple,
                        bridge->cpu, bridge->features);
        return TILE_UNSUPPORTED;
    }
    LLVMTargetRef target;
    char *error = NULL;
    if (LLVMGetTargetFromTriple(bridge->triple, &target, &error)) {
        bridge_complain(bridge, "LLVM: %s", error);
        LLVMDisposeMessage(error);
        return TILE_BACKEND;
    }
    bridge->machine = LLVMCreateTargetMachine(target, bridge->triple, bridge->cpu, bridge->features,
                                              LLVMCodeGenLevelDefault, LLVMRelocPIC, LLVMCodeModelDefault);
    return bridge->machine ? TILE_OK : TILE_BACKEND;
}

tile_status bridge_set_target(TileBridge *bridge, const TileTarget *target) {
    bridge_initialise_llvm();
    if (atomic_load(&untrusted)) {
        bridge_complain(bridge, "LLVM failed fatally earlier in this process and cannot be used again");
        return TILE_BACKEND;
    }
    bridge->architecture = target->architecture;
    bridge->vector_bytes = target->vector_bytes;
    bridge->has_masks = target->has_masks;
    if (is_current_target(bridge, target)) return TILE_OK;
    bridge_drop_target(bridge);
    bridge->triple = strdup(target->triple);
    bridge->cpu = strdup(target->llvm_cpu);
    bridge->features = strdup(target->llvm_features);
    if (!bridge->triple || !bridge->cpu || !bridge->features) return TILE_OUT_OF_MEMORY;
    return bridge_run_guarded(bridge, (BridgeGuarded){create_machine, bridge});
}

/* ---- attributes ---- */

LLVMAttributeRef bridge_enum_attribute(LLVMContextRef context, const char *name, uint64_t value) {
    return LLVMCreateEnumAttribute(context, LLVMGetEnumAttributeKindForName(name, strlen(name)), value);
}

void bridge_mark_asm(LLVMContextRef context, LLVMValueRef call) {
    enum { MEMORY_NONE = 0 };
    LLVMAddCallSiteAttribute(call, LLVMAttributeFunctionIndex, bridge_enum_attribute(context, "memory", MEMORY_NONE));
    LLVMAddCallSiteAttribute(call, LLVMAttributeFunctionIndex, bridge_enum_attribute(context, "nounwind", 0));
}
