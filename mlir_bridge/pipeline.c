/* MLIR's part of the way: structured control flow to branches, and the little arithmetic of loop counters that this
 * leaves behind. All else is exported in the LLVM dialect, whose ops stand one to one for those of machine form;
 * coming from arith, math and vector they would take four conversions more. */
#include "mlir-c/Conversion.h"
#include "mlir-c/Pass.h"
#include "mlir_bridge/context.h"

/* On a branch the translation reads a hint that is part of the op only; what came along with the loop is not. */
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
