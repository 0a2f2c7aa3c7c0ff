// Parts of MLIR and LLVM without a C API: single translations to LLVM IR (the C API registers all of them, which would
// link every dialect), whether LLVM knows the name of a CPU or a feature, and code generation that leaves passes out.
#include "mlir_bridge/register.h"

#include <memory>

#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Pass.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
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
// The pass manager of code generation; it takes all passes but some.
class SomePasses final : public llvm::legacy::PassManager {
  public:
    SomePasses(unsigned left_out) : left_out(left_out) {}
    void add(llvm::Pass *pass) override {
        if (leaves_out(pass->getPassName()))
            delete pass;
        else
            PassManager::add(pass);
    }

  private:
    unsigned left_out;

    bool leaves_out(llvm::StringRef name) const {
        return (left_out & TILE_LEAVE_STRAIGHT_LINES && name == "Straight line strength reduction") ||
               (left_out & TILE_LEAVE_LOOPS &&
                (name == "Loop Strength Reduction" || name == "Canonicalize Freeze Instructions in Loops"));
    }
};
} // namespace

extern "C" bool tile_generate_code(LLVMTargetMachineRef machine, LLVMModuleRef module, bool assembly, unsigned left_out,
                                   void (*take)(const char *bytes, size_t size, void *state), void *state) {
    auto *target = reinterpret_cast<llvm::TargetMachine *>(machine);
    llvm::SmallVector<char, 0> code;
    llvm::raw_svector_ostream stream(code);
    SomePasses passes(left_out);
    auto kind = assembly ? llvm::CodeGenFileType::AssemblyFile : llvm::CodeGenFileType::ObjectFile;
    if (target->addPassesToEmitFile(passes, stream, nullptr, kind)) return false;
    passes.run(*llvm::unwrap(module));
    take(code.data(), code.size(), state);
    return true;
}
