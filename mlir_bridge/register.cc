// Parts of MLIR and LLVM without a C API: single translations to LLVM IR (the C API registers all of them, which would
// link every dialect), whether LLVM knows the name of a CPU or a feature, and disabling a pass of a back end.
#include "mlir_bridge/register.h"

#include <memory>

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/OptBisect.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/TargetParser/Triple.h"
#include "mlir/CAPI/IR.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"

extern "C" void tile_register_translations(MlirDialectRegistry registry) {
    mlir::registerBuiltinDialectTranslation(*unwrap(registry));
    mlir::registerLLVMDialectTranslation(*unwrap(registry));
}

static bool knows_feature(const llvm::MCSubtargetInfo &info, llvm::StringRef name) {
    for (const llvm::SubtargetFeatureKV &feature : info.getAllProcessorFeatures())
        if (name == feature.Key) return true;
    return false;
}

extern "C" bool tile_target_names_known(const char *triple, const char *cpu, const char *features) {
    std::string error;
    llvm::Triple parsed(triple);
    const llvm::Target *target = llvm::TargetRegistry::lookupTarget(parsed, error);
    if (!target) return false;
    std::unique_ptr<llvm::MCSubtargetInfo> info(target->createMCSubtargetInfo(parsed, "", ""));
    if (!info || !info->isCPUStringValid(cpu)) return false;
    llvm::SmallVector<llvm::StringRef, 8> list;
    llvm::StringRef(features).split(list, ',', -1, false);
    for (llvm::StringRef word : list)
        if (!(word.consume_front("+") || word.consume_front("-")) || !knows_feature(*info, word)) return false;
    return true;
}

namespace {
struct WithoutStrengthReduction final : llvm::OptPassGate {
    bool shouldRunPass(llvm::StringRef pass, llvm::StringRef) const override {
        return pass != "slsr"; // straight-line strength reduction, which NVPTX and AMDGPU run
    }
    bool isEnabled() const override { return true; }
};
} // namespace

extern "C" void tile_skip_strength_reduction(LLVMContextRef context) {
    static WithoutStrengthReduction gate; // without state
    llvm::unwrap(context)->setOptPassGate(gate);
}
