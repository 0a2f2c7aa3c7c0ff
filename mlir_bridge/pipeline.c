/* MLIR's part: structured control flow to branches, and the arithmetic of loop counters that this leaves behind. All
 * other ops are exported directly to the LLVM dialect, one to one; exported to arith, math and vector they would need
 * four more conversions. */
#include "mlir-c/Conversion.h"
#include "mlir-c/Pass.h"
#include "mlir_bridge/context.h"

/* On a branch the translation reads inherent hints only; the loop's discardable one is made inherent. */
static MlirWalkResult adopt_hint(MlirOperation op, void *state) {
    const TileBridge *bridge = state;
    MlirStringRef name = mlirIdentifierStr(bridge->names[NAME_LOOP_HINT]);
    MlirAttribute hint = mlirOperationGetDiscardableAttributeByName(op, name);
    if (hint.ptr) {
        mlirOperationRemoveDiscardableAttributeByName(op, name);
        mlirOperationSetInherentAttributeByName(op, mlirIdentifierStr(bridge->names[NAME_LOOP_ANNOTATION]), hint);
    }
    return MlirWalkResultAdvance;
}

bool bridge_run_passes(TileBridge *bridge, MlirModule module) {
    MlirPassManager passes = mlirPassManagerCreate(bridge->mlir);
    mlirPassManagerEnableVerifier(passes, false);
    mlirPassManagerAddOwnedPass(passes, mlirCreateConversionSCFToControlFlowPass());
    mlirPassManagerAddOwnedPass(passes, mlirCreateConversionArithToLLVMConversionPass());
    mlirPassManagerAddOwnedPass(passes, mlirCreateConversionConvertControlFlowToLLVMPass());
    MlirLogicalResult result = mlirPassManagerRunOnOp(passes, mlirModuleGetOperation(module));
    mlirPassManagerDestroy(passes);
    if (bridge->unrolls) mlirOperationWalk(mlirModuleGetOperation(module), adopt_hint, bridge, MlirWalkPreOrder);
    return mlirLogicalResultIsSuccess(result);
}
