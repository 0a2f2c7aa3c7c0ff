/* The upper half of a word as an f32, which is how a bf16 that lies there is widened; runs after LLVM's optimiser and before its code generator.
 *
 * A pair of bf16 is one register. LLVM takes its halves apart, extends each to 32 bits and shifts it by 16. ptxas makes one instruction of that for the
 * lower half, and two for the upper one, which is already where it belongs: the word without its lower half is the same in one. Where threads
 * compute with tiles of bf16 beside products, each instruction for each element counts (decision 169). */
#include "llvm-c/Core.h"
#include "mlir_bridge/context.h"

enum { HALF_BITS = 16, WORD_BITS = 32, UPPER_HALF = 0xffff0000 };

typedef struct Halves {
    LLVMContextRef context;
    LLVMBuilderRef builder;
} Halves;

static bool has_bits(LLVMTypeRef type, unsigned bits) {
    if (LLVMGetTypeKind(type) == LLVMVectorTypeKind) type = LLVMGetElementType(type);
    return LLVMGetTypeKind(type) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(type) == bits;
}

static bool is_vector(LLVMValueRef value) { return LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMVectorTypeKind; }

/* Is the value an instruction of this kind? */
static bool is(LLVMValueRef value, LLVMOpcode op) { return LLVMIsAInstruction(value) && LLVMGetInstructionOpcode(value) == op; }

/* A lane of a vector: the element that was inserted there; NULL: the vector came as a whole, or the lane is not known, and `vector` and `lane` are
 * where it comes from. */
static LLVMValueRef follow(LLVMValueRef *vector, unsigned *lane) {
    while (is(*vector, LLVMInsertElement)) {
        LLVMValueRef number = LLVMGetOperand(*vector, 2);
        if (!LLVMIsAConstantInt(number)) return NULL;
        if (LLVMConstIntGetZExtValue(number) == *lane) return LLVMGetOperand(*vector, 1);
        *vector = LLVMGetOperand(*vector, 0);
    }
    return NULL;
}

/* The word of which the lane is the upper half; NULL: it is none that is known. */
static LLVMValueRef word_of(const Halves *h, LLVMValueRef vector, unsigned lane) {
    LLVMValueRef element = follow(&vector, &lane);
    if (element) {
        if (!is(element, LLVMExtractElement) || !LLVMIsAConstantInt(LLVMGetOperand(element, 1))) return NULL;
        vector = LLVMGetOperand(element, 0);
        lane = (unsigned)LLVMConstIntGetZExtValue(LLVMGetOperand(element, 1));
        if (follow(&vector, &lane)) return NULL;
    }
    LLVMTypeRef i32 = LLVMInt32TypeInContext(h->context);
    unsigned halves = LLVMGetVectorSize(LLVMTypeOf(vector)), number = lane / 2;
    if (lane % 2 == 0 || halves % 2 || LLVMIsConstant(vector) || is(vector, LLVMInsertElement)) return NULL;
    LLVMValueRef source = is(vector, LLVMBitCast) ? LLVMGetOperand(vector, 0) : NULL;
    if (source && !is_vector(source) && has_bits(LLVMTypeOf(source), WORD_BITS)) return source;
    if (!source || !has_bits(LLVMTypeOf(source), WORD_BITS)) source = LLVMBuildBitCast(h->builder, vector, LLVMVectorType(i32, halves / 2), "");
    LLVMValueRef words = source, word = follow(&words, &number);
    return word ? word : LLVMBuildExtractElement(h->builder, source, LLVMConstInt(i32, lane / 2, false), "");
}

/* What is shifted by 16 in each lane, extended from 16 bits; NULL: the instruction does something else. */
static LLVMValueRef widened(LLVMValueRef shift) {
    if (!is(shift, LLVMShl) || !has_bits(LLVMTypeOf(shift), WORD_BITS) || !is(LLVMGetOperand(shift, 0), LLVMZExt)) return NULL;
    LLVMValueRef halves = LLVMGetOperand(LLVMGetOperand(shift, 0), 0), number = LLVMGetOperand(shift, 1);
    unsigned lanes = is_vector(shift) ? LLVMGetVectorSize(LLVMTypeOf(shift)) : 1;
    if (!has_bits(LLVMTypeOf(halves), HALF_BITS) || !LLVMIsConstant(number)) return NULL;
    for (unsigned lane = 0; lane < lanes; lane++) {
        LLVMValueRef element = is_vector(number) ? LLVMGetAggregateElement(number, lane) : number;
        if (!element || !LLVMIsAConstantInt(element) || LLVMConstIntGetZExtValue(element) != HALF_BITS) return NULL;
    }
    return halves;
}

static void rewrite(const Halves *h, LLVMValueRef shift, LLVMValueRef halves) {
    LLVMTypeRef i32 = LLVMInt32TypeInContext(h->context);
    LLVMValueRef result = shift;
    bool found = false;
    LLVMPositionBuilderBefore(h->builder, LLVMGetNextInstruction(shift));
    for (unsigned lane = 0; lane < LLVMGetVectorSize(LLVMTypeOf(shift)); lane++) {
        LLVMValueRef word = word_of(h, halves, lane);
        if (!word) continue;
        LLVMValueRef upper = LLVMBuildAnd(h->builder, word, LLVMConstInt(i32, UPPER_HALF, false), "");
        result = LLVMBuildInsertElement(h->builder, result, upper, LLVMConstInt(i32, lane, false), "");
        found = true;
    }
    if (!found) return;
    /* All uses but the first insertion's, which takes the lower halves of it. */
    LLVMValueRef last = result, first = result;
    while (LLVMGetOperand(first, 0) != shift) first = LLVMGetOperand(first, 0);
    LLVMReplaceAllUsesWith(shift, last);
    LLVMSetOperand(first, 0, shift);
}

void bridge_widen_upper_halves(TileBridge *bridge, LLVMModuleRef module) {
    if (bridge->architecture != TILE_ARCHITECTURE_NVPTX) return;
    Halves h = {.context = LLVMGetModuleContext(module)};
    h.builder = LLVMCreateBuilderInContext(h.context);
    for (LLVMValueRef function = LLVMGetFirstFunction(module); function; function = LLVMGetNextFunction(function))
        for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block))
            for (LLVMValueRef next, i = LLVMGetFirstInstruction(block); i; i = next) {
                next = LLVMGetNextInstruction(i);
                LLVMValueRef halves = is_vector(i) ? widened(i) : NULL;
                if (halves) rewrite(&h, i, halves);
            }
    LLVMDisposeBuilder(h.builder);
}
