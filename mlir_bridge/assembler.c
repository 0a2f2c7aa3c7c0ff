/* Rewrites of instructions that ptxas miscompiles; runs after LLVM's optimiser and before its code generator.
 *
 * Seen in the machine code of ptxas 12.8, 12.9 and 13.0, also of the driver's, for sm_90 and later:
 *   - A packed addition of 16-bit integers (add.s16x2) with a constant: if only one half of the result is used, the
 *     constant becomes 0. So integers of 16 bits and less are added one by one.
 *   - min(min(a, -b), c), or max, of signed integers of 16 or 32 bits: the negation is lost where the three become one
 *     instruction (VIMNMX3). The code generator, which runs later, also makes such minima of comparisons. So every -b
 *     becomes ~b + 1 inside of an asm: outside, the code generator would make a negation of it again.
 *   - min(a, b) == b, or max, of 16-bit integers, packed or not, of which one half is used: the minimum writes the
 *     comparisons of both halves (VIMNMX.S16x2) to the same predicate, and the other half's wins. So minima and maxima
 *     of 16 bits and less are computed in 32 bits.
 *   - abs of the least 16-bit integer, extended with its sign: the machine computes abs in 32 bits, and the extension of
 *     its result to 32 or 64 bits is left out, which gives 32768. So abs, too, is computed in 32 bits and cut to 16.
 * Code for an older GPU may run on these, too, so every GPU gets the same code. */
#include <string.h>

#include "llvm-c/Core.h"
#include "mlir_bridge/context.h"

enum { PACKED_BITS = 16, FUSED_BITS = 32, INTRINSICS = 5 };

/* An intrinsic that is computed in 32 bits if its type has 16 bits or less. */
typedef struct Widened {
    const char *name;
    LLVMOpcode extension; /* of its first `operands` operands */
    unsigned operands;
} Widened;

static const Widened widened[INTRINSICS] = {{"llvm.smin", LLVMSExt, 2},
                                            {"llvm.smax", LLVMSExt, 2},
                                            {"llvm.umin", LLVMZExt, 2},
                                            {"llvm.umax", LLVMZExt, 2},
                                            {"llvm.abs", LLVMSExt, 1}};

typedef struct Rewriter {
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef builder;
    unsigned intrinsics[INTRINSICS]; /* numbers of the rows of `widened` */
} Rewriter;

static LLVMTypeRef element_type(LLVMTypeRef type) {
    return LLVMGetTypeKind(type) == LLVMVectorTypeKind ? LLVMGetElementType(type) : type;
}

static bool is_integer(LLVMTypeRef type, unsigned most_bits) {
    LLVMTypeRef element = element_type(type);
    return LLVMGetTypeKind(element) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(element) <= most_bits;
}

static LLVMValueRef lane_number(const Rewriter *r, unsigned lane) {
    return LLVMConstInt(LLVMInt32TypeInContext(r->context), lane, false);
}

/* The operand's element; a constant's is a constant. */
static LLVMValueRef element_of(const Rewriter *r, LLVMValueRef operand, unsigned lane) {
    if (LLVMGetTypeKind(LLVMTypeOf(operand)) != LLVMVectorTypeKind) return operand;
    return LLVMBuildExtractElement(r->builder, operand, lane_number(r, lane), "");
}

static bool is_minus_one(LLVMValueRef value) { return LLVMIsAConstantInt(value) && LLVMConstIntGetSExtValue(value) == -1; }

/* The value that an operation on elements negates, or NULL. */
static LLVMValueRef negated(LLVMOpcode op, LLVMValueRef left, LLVMValueRef right) {
    if (op == LLVMSub) return LLVMIsAConstantInt(left) && LLVMIsNull(left) ? right : NULL;
    if (op != LLVMMul) return NULL;
    return is_minus_one(left) ? right : is_minus_one(right) ? left : NULL;
}

static LLVMValueRef build_negation(const Rewriter *r, LLVMValueRef value) {
    LLVMTypeRef type = LLVMTypeOf(value);
    bool wide = LLVMGetIntTypeWidth(type) > PACKED_BITS;
    LLVMTypeRef own = wide ? LLVMInt32TypeInContext(r->context) : LLVMInt16TypeInContext(r->context);
    const char *text = wide ? "not.b32 $0, $1; add.s32 $0, $0, 1;" : "not.b16 $0, $1; add.s16 $0, $0, 1;";
    const char *constraints = wide ? "=r,r" : "=h,h";
    LLVMTypeRef signature = LLVMFunctionType(own, &own, 1, false);
    LLVMValueRef code = LLVMGetInlineAsm(signature, text, strlen(text), constraints, strlen(constraints), false, false,
                                         LLVMInlineAsmDialectATT, false);
    LLVMValueRef input = LLVMBuildZExtOrBitCast(r->builder, value, own, "");
    LLVMValueRef call = LLVMBuildCall2(r->builder, signature, code, &input, 1, "");
    bridge_mark_asm(r->context, call);
    return LLVMBuildTruncOrBitCast(r->builder, call, type, "");
}

/* The row of `widened` of a call with a type of 16 bits or less, else -1. */
static int find_widened(const Rewriter *r, LLVMValueRef instruction) {
    LLVMValueRef callee = LLVMIsACallInst(instruction) ? LLVMGetCalledValue(instruction) : NULL;
    unsigned id = callee && LLVMIsAFunction(callee) ? LLVMGetIntrinsicID(callee) : 0;
    if (!id || !is_integer(LLVMTypeOf(instruction), PACKED_BITS)) return -1;
    for (int i = 0; i < INTRINSICS; i++)
        if (id == r->intrinsics[i]) return i;
    return -1;
}

/* The same intrinsic of 32 bits; an operand that is not extended is a flag. */
static LLVMValueRef build_widened(const Rewriter *r, int row, LLVMValueRef left, LLVMValueRef right) {
    LLVMTypeRef own = LLVMTypeOf(left), i32 = LLVMInt32TypeInContext(r->context);
    const Widened *w = &widened[row];
    LLVMValueRef operands[] = {LLVMBuildCast(r->builder, w->extension, left, i32, ""),
                               w->operands > 1 ? LLVMBuildCast(r->builder, w->extension, right, i32, "") : right};
    LLVMValueRef callee = LLVMGetIntrinsicDeclaration(r->module, r->intrinsics[row], &i32, 1);
    LLVMTypeRef type = LLVMIntrinsicGetType(r->context, r->intrinsics[row], &i32, 1);
    return LLVMBuildTrunc(r->builder, LLVMBuildCall2(r->builder, type, callee, operands, 2, ""), own, "");
}

static LLVMValueRef build_element(const Rewriter *r, LLVMValueRef instruction, LLVMValueRef left, LLVMValueRef right) {
    int row = find_widened(r, instruction);
    if (row >= 0) return build_widened(r, row, left, right);
    LLVMOpcode op = LLVMGetInstructionOpcode(instruction);
    LLVMValueRef source = negated(op, left, right);
    return source ? build_negation(r, source) : LLVMBuildBinOp(r->builder, op, left, right, "");
}

static LLVMValueRef constant_element(LLVMValueRef operand, unsigned lane) {
    if (LLVMGetTypeKind(LLVMTypeOf(operand)) != LLVMVectorTypeKind || !LLVMIsConstant(operand)) return operand;
    LLVMValueRef element = LLVMGetAggregateElement(operand, lane);
    return element ? element : operand;
}

/* Is it a packed addition, or is an element of it a negation? */
static bool is_affected_arithmetic(LLVMValueRef instruction) {
    LLVMOpcode op = LLVMGetInstructionOpcode(instruction);
    if (op != LLVMAdd && op != LLVMSub && op != LLVMMul) return false;
    LLVMTypeRef type = LLVMTypeOf(instruction);
    bool vector = LLVMGetTypeKind(type) == LLVMVectorTypeKind;
    if (op != LLVMMul && vector && is_integer(type, PACKED_BITS)) return true;
    if (op == LLVMAdd || !is_integer(type, FUSED_BITS)) return false;
    LLVMValueRef left = LLVMGetOperand(instruction, 0), right = LLVMGetOperand(instruction, 1);
    for (unsigned lane = 0; lane < (vector ? LLVMGetVectorSize(type) : 1); lane++)
        if (negated(op, constant_element(left, lane), constant_element(right, lane))) return true;
    return false;
}

static void rewrite(const Rewriter *r, LLVMValueRef instruction) {
    LLVMValueRef left = LLVMGetOperand(instruction, 0), right = LLVMGetOperand(instruction, 1);
    LLVMTypeRef type = LLVMTypeOf(instruction);
    bool vector = LLVMGetTypeKind(type) == LLVMVectorTypeKind;
    LLVMValueRef result = vector ? LLVMGetPoison(type) : NULL;
    LLVMPositionBuilderBefore(r->builder, instruction);
    for (unsigned lane = 0; vector && lane < LLVMGetVectorSize(type); lane++) {
        LLVMValueRef element = build_element(r, instruction, element_of(r, left, lane), element_of(r, right, lane));
        result = LLVMBuildInsertElement(r->builder, result, element, lane_number(r, lane), "");
    }
    if (!vector) result = build_element(r, instruction, left, right);
    LLVMReplaceAllUsesWith(instruction, result);
    LLVMInstructionEraseFromParent(instruction);
}

void bridge_avoid_assembler_faults(TileBridge *bridge, LLVMModuleRef module) {
    if (bridge->architecture != TILE_ARCHITECTURE_NVPTX) return;
    Rewriter r = {.context = LLVMGetModuleContext(module), .module = module};
    r.builder = LLVMCreateBuilderInContext(r.context);
    for (int i = 0; i < INTRINSICS; i++)
        r.intrinsics[i] = LLVMLookupIntrinsicID(widened[i].name, strlen(widened[i].name));
    for (LLVMValueRef function = LLVMGetFirstFunction(module); function; function = LLVMGetNextFunction(function))
        for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block))
            for (LLVMValueRef next, i = LLVMGetFirstInstruction(block); i; i = next) {
                next = LLVMGetNextInstruction(i);
                if (is_affected_arithmetic(i) || find_widened(&r, i) >= 0) rewrite(&r, i);
            }
    LLVMDisposeBuilder(r.builder);
}
