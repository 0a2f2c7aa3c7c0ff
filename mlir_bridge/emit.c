/* LLVM's part: translation to LLVM IR, a reduced pipeline, code generation. */
#include <stdlib.h>
#include <string.h>

#include "llvm-c/Analysis.h"
#include "llvm-c/Core.h"
#include "llvm-c/Target.h"
#include "llvm-c/Transforms/PassBuilder.h"
#include "mlir-c/Target/LLVMIR.h"
#include "mlir_bridge/context.h"
#include "mlir_bridge/register.h"

typedef struct Emission {
    TileBridge *bridge;
    MlirModule mlir;
    TileCodeKind kind;
    void (*make)(LLVMModuleRef module, const void *state); /* instead of translating `mlir` */
    const void *make_state;
    TileCode *code;
    LLVMContextRef context;
    LLVMModuleRef module;
    unsigned left_out; /* passes of LLVM's code generation */
    bool failed;       /* there was a diagnostic of severity error */
} Emission;

static void take_diagnostic(LLVMDiagnosticInfoRef diagnostic, void *state) {
    Emission *emission = state;
    if (LLVMGetDiagInfoSeverity(diagnostic) != LLVMDSError) return;
    char *text = LLVMGetDiagInfoDescription(diagnostic);
    bridge_complain(emission->bridge, "LLVM: %s", text);
    LLVMDisposeMessage(text);
    emission->failed = true;
}

/* Does the asm access registers only? One that clobbers memory says so. */
static bool is_register_asm(LLVMValueRef called) {
    size_t length;
    return strstr(LLVMGetInlineAsmConstraintString(called, &length), "~{memory}") == NULL;
}

/* On a GPU the other asms are for all threads that come there together: LLVM must not copy one into two branches. */
static void mark_asm(const Emission *emission, LLVMValueRef call) {
    if (is_register_asm(LLVMGetCalledValue(call)))
        bridge_mark_asm(emission->context, call);
    else if (emission->bridge->architecture == TILE_ARCHITECTURE_NVPTX)
        LLVMAddCallSiteAttribute(call, LLVMAttributeFunctionIndex,
                                 bridge_enum_attribute(emission->context, "convergent", 0));
}

static void mark_calls(const Emission *emission, LLVMValueRef function) {
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block))
        for (LLVMValueRef i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i))
            if (LLVMIsACallInst(i) && LLVMIsAInlineAsm(LLVMGetCalledValue(i))) mark_asm(emission, i);
}

/* Parameters that are passed by value are tensor maps: the code uses the bytes in the place where the launch has put
 * them, and does not change them. MLIR's dialect has no attribute for that. */
static void mark_constants(LLVMContextRef context, LLVMValueRef function) {
    static const char name[] = "nvvm.grid_constant";
    unsigned by_value = LLVMGetEnumAttributeKindForName("byval", strlen("byval"));
    for (unsigned i = 1; i <= LLVMCountParams(function); i++)
        if (LLVMGetEnumAttributeAtIndex(function, i, by_value))
            LLVMAddAttributeAtIndex(function, i, LLVMCreateStringAttribute(context, name, strlen(name), "", 0));
}

static void mark_functions(Emission *emission) {
    for (LLVMValueRef function = LLVMGetFirstFunction(emission->module); function;
         function = LLVMGetNextFunction(function)) {
        if (LLVMIsDeclaration(function)) continue;
        LLVMAddTargetDependentFunctionAttr(function, "target-cpu", emission->bridge->cpu);
        if (*emission->bridge->features)
            LLVMAddTargetDependentFunctionAttr(function, "target-features", emission->bridge->features);
        LLVMAddAttributeAtIndex(function, LLVMAttributeFunctionIndex, bridge_enum_attribute(emission->context, "nounwind", 0));
        mark_constants(emission->context, function);
        mark_calls(emission, function);
    }
}

/* Our own passes have done the main optimisations; LLVM's simplify the result and bring loops into the form that code
 * generation needs. Measured on softmax: instcombine and gvn add 4 ms to 18 and change no instruction that counts.
 * None of these passes reorders floating-point arithmetic. */
static const char pipeline[] = "function(sroa,early-cse<memssa>,simplifycfg,loop-mssa(loop-rotate,licm),"
                               "early-cse<memssa>,simplifycfg)";
/* Runs after it if there are loops to unroll. */
static const char unrolling[] = "function(loop-unroll,early-cse<memssa>,simplifycfg)";

static bool run_llvm_passes(Emission *emission, const char *passes) {
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMErrorRef error = LLVMRunPasses(emission->module, passes, emission->bridge->machine, options);
    LLVMDisposePassBuilderOptions(options);
    if (!error) return true;
    char *text = LLVMGetErrorMessage(error);
    bridge_complain(emission->bridge, "LLVM: %s", text);
    LLVMDisposeErrorMessage(text);
    return false;
}

static bool take_bytes(Emission *emission, const char *bytes, size_t size) {
    emission->code->data = malloc(size + 1);
    if (!emission->code->data) return false;
    memcpy(emission->code->data, bytes, size);
    emission->code->data[size] = 0;
    emission->code->size = size;
    return true;
}

static void take_code(const char *bytes, size_t size, void *state) { take_bytes(state, bytes, size); }

static tile_status write_code(Emission *emission) {
    if (emission->kind == TILE_CODE_LLVM) {
        char *text = LLVMPrintModuleToString(emission->module);
        bool taken = take_bytes(emission, text, strlen(text));
        LLVMDisposeMessage(text);
        return taken ? TILE_OK : TILE_OUT_OF_MEMORY;
    }
    bool assembly = emission->kind != TILE_CODE_OBJECT;
    if (!tile_generate_code(emission->bridge->machine, emission->module, assembly, emission->left_out, take_code, emission))
        return TILE_BACKEND;
    return emission->code->data ? TILE_OK : TILE_OUT_OF_MEMORY;
}

static void set_module_target(Emission *emission) {
    const char *name = emission->bridge->source_name;
    LLVMSetModuleIdentifier(emission->module, name, strlen(name));
    LLVMSetSourceFileName(emission->module, name, strlen(name));
    LLVMSetTarget(emission->module, emission->bridge->triple);
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(emission->bridge->machine);
    LLVMSetModuleDataLayout(emission->module, layout);
    LLVMDisposeTargetData(layout);
    mark_functions(emission);
}

/* Code of calls only, so nothing is optimised. */
static tile_status run_making(Emission *emission) {
    emission->module = LLVMModuleCreateWithNameInContext("", emission->context);
    set_module_target(emission);
    emission->make(emission->module, emission->make_state);
    mark_functions(emission);
    char *error = NULL;
    if (LLVMVerifyModule(emission->module, LLVMReturnStatusAction, &error)) {
        bridge_complain(emission->bridge, "LLVM: %s", error);
        LLVMDisposeMessage(error);
        return TILE_INTERNAL;
    }
    LLVMDisposeMessage(error);
    tile_status status = write_code(emission);
    return status == TILE_OK && emission->failed ? TILE_BACKEND : status;
}

/* Numbers of instructions of larger modules.
 *
 * On GPUs straight-line strength reduction takes a third and more of the compile time there. Products and attention are such
 * modules, and run as fast without it; cross_entropy, a smaller one, would take 315 us instead of 263.
 *
 * On x86 strength reduction of loops takes a third of the compile time of products, attention and convolutions, which run as
 * fast without it, with fewer registers in memory: the machine's addresses have a scaled index and an offset. gemv, smaller,
 * would lose 5 %. Where products are in tile registers, each waits for its addresses; not tried there. */
enum { MANY_ON_GPUS = 2000, MANY_ON_X86 = 700 };

static unsigned count_instructions(LLVMModuleRef module) {
    unsigned count = 0;
    for (LLVMValueRef function = LLVMGetFirstFunction(module); function; function = LLVMGetNextFunction(function))
        for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block))
            for (LLVMValueRef op = LLVMGetFirstInstruction(block); op; op = LLVMGetNextInstruction(op)) count++;
    return count;
}

static unsigned choose_left_out(const Emission *emission) {
    const TileBridge *bridge = emission->bridge;
    unsigned count = count_instructions(emission->module), left_out = 0;
    if (count > MANY_ON_GPUS) left_out |= TILE_LEAVE_STRAIGHT_LINES;
    bool x86 = bridge->architecture == TILE_ARCHITECTURE_X86_64 && !bridge->tile_registers;
    return x86 && count > MANY_ON_X86 ? left_out | TILE_LEAVE_LOOPS : left_out;
}

static tile_status run_emission(Emission *emission) {
    if (emission->make) return run_making(emission);
    TileBridgeTimes *times = &emission->bridge->times;
    double start = bridge_milliseconds();
    emission->module = mlirTranslateModuleToLLVMIR(mlirModuleGetOperation(emission->mlir), emission->context);
    if (!emission->module) {
        bridge_complain(emission->bridge, "MLIR's translation to LLVM IR failed");
        return TILE_INTERNAL;
    }
    set_module_target(emission);
    double translated = bridge_milliseconds();
    times->translate = translated - start;
    if (!run_llvm_passes(emission, pipeline)) return TILE_BACKEND;
    if (emission->bridge->unrolls && !run_llvm_passes(emission, unrolling)) return TILE_BACKEND;
    bridge_harden_masks(emission->bridge, emission->module);
    bridge_avoid_assembler_faults(emission->bridge, emission->module);
    bridge_widen_upper_halves(emission->bridge, emission->module);
    emission->left_out = choose_left_out(emission);
    double optimised = bridge_milliseconds();
    times->optimise = optimised - translated;
    tile_status status = write_code(emission);
    times->emit = bridge_milliseconds() - optimised;
    /* A failure of instruction selection is a diagnostic, although the call succeeds. */
    return status == TILE_OK && emission->failed ? TILE_BACKEND : status;
}

static tile_status generate(void *state) {
    Emission *emission = state;
    emission->context = LLVMContextCreate();
    LLVMContextSetDiagnosticHandler(emission->context, take_diagnostic, emission);
    tile_status status = run_emission(emission);
    if (emission->module) LLVMDisposeModule(emission->module);
    LLVMContextDispose(emission->context);
    return status;
}

tile_status bridge_generate(TileBridge *bridge, MlirModule mlir, TileCodeKind kind, TileCode *code) {
    Emission *emission = TILE_NEW(bridge->arena, Emission);
    *emission = (Emission){.bridge = bridge, .mlir = mlir, .kind = kind, .code = code};
    tile_status status = bridge_run_guarded(bridge, (BridgeGuarded){generate, emission});
    if (status != TILE_OK) tile_code_release(code);
    return status;
}

tile_status bridge_generate_with(TileBridge *bridge, void (*make)(LLVMModuleRef module, const void *state),
                                 const void *state, TileCode *code) {
    Emission *emission = TILE_NEW(bridge->arena, Emission);
    *emission = (Emission){.bridge = bridge, .kind = TILE_CODE_OBJECT, .make = make, .make_state = state, .code = code};
    bridge->source_name = "";
    tile_status status = bridge_run_guarded(bridge, (BridgeGuarded){generate, emission});
    if (status != TILE_OK) tile_code_release(code);
    return status;
}
