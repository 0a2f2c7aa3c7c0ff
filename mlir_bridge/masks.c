/* Masked accesses of x86, after LLVM's optimiser and before its code generator.
 *
 * LLVM 22 generates wrong code where it analyses single lanes of a mask during instruction selection:
 *   - AVX2: a mask wider than a register is split, and lanes that turn out to be false may become undefined. A load
 *     whose first and last lane are not known to be false becomes a load of the whole register, which may access memory
 *     that the program does not own; if the load keeps its memory operand, of unknown size, a later pass aborts.
 *   - AVX-512: integers are narrowed as they are stored (vpmovdw). If one lane of such a store is left, it is stored in
 *     its original width, and overwrites the memory behind it. And a load whose lanes are permuted, by a shuffle or by
 *     narrowing of integers, and then selected by the same mask becomes a masked shuffle of memory (vpshufd), which
 *     reads all lanes, also those of an unmapped page.
 *   - AVX-512: a comparison of bytes that fill less than a register compares the whole register. A shuffle of such a
 *     mask that shifts zeros in (kshiftrw) shifts in the result of the lanes behind the last one.
 * So constant parts of a mask are used here, one register at a time, and the code generator gets the other parts from
 * behind an empty asm, which it cannot analyse. An access of elements that the target has no masks for is not changed:
 * another pass makes a branch for each lane of it. Neither is a load on AVX-512 whose lanes are not permuted. */
#include <limits.h>
#include <string.h>

#include "base/list.h"
#include "llvm-c/Core.h"
#include "mlir_bridge/context.h"

enum { ASM_BITS = 128 }; /* the narrowest vector operand of an asm */

/* The registers of a mask that has passed through an asm. */
typedef struct Known {
    LLVMValueRef mask;
    unsigned lanes;
    unsigned bits; /* of an element of the access; 0: a predicate register */
    LLVMValueRef *pieces;
} Known;

typedef struct Masks {
    TileBridge *bridge;
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef builder;
    unsigned load, store; /* intrinsics */
    TILE_LIST(Known) known;
} Masks;

/* An access that is split into registers. */
typedef struct Access {
    LLVMValueRef call, pointer, mask, other; /* other: the fill of a load, the value of a store */
    bool is_load;
    LLVMTypeRef element;
    unsigned lanes, bits; /* lanes of the vector; bits of an element */
    unsigned piece_lanes;
    uint64_t align;
} Access;

static unsigned bits_of(LLVMTypeRef element) {
    switch (LLVMGetTypeKind(element)) {
    case LLVMHalfTypeKind: return 16;
    case LLVMFloatTypeKind: return 32;
    case LLVMDoubleTypeKind: return 64;
    case LLVMIntegerTypeKind: return LLVMGetIntTypeWidth(element);
    default: return 0;
    }
}

static LLVMTypeRef integers(const Masks *m, unsigned bits, unsigned lanes) {
    return LLVMVectorType(LLVMIntTypeInContext(m->context, bits), lanes);
}

/* Lanes [first, first + count) of a vector; of a constant, a constant. */
static LLVMValueRef take_lanes(Masks *m, LLVMValueRef vector, unsigned first, unsigned count) {
    LLVMTypeRef type = LLVMTypeOf(vector);
    if (LLVMGetVectorSize(type) == count) return vector;
    LLVMValueRef *lanes = TILE_NEW_ARRAY(m->bridge->arena, LLVMValueRef, count);
    for (unsigned i = 0; i < count; i++) lanes[i] = LLVMConstInt(LLVMInt32TypeInContext(m->context), first + i, false);
    return LLVMBuildShuffleVector(m->builder, vector, LLVMGetPoison(type), LLVMConstVector(lanes, count), "");
}

static LLVMValueRef join(Masks *m, LLVMValueRef a, LLVMValueRef b) {
    unsigned of_a = LLVMGetVectorSize(LLVMTypeOf(a)), count = of_a + LLVMGetVectorSize(LLVMTypeOf(b));
    LLVMValueRef *lanes = TILE_NEW_ARRAY(m->bridge->arena, LLVMValueRef, count);
    for (unsigned i = 0; i < count; i++) lanes[i] = LLVMConstInt(LLVMInt32TypeInContext(m->context), i, false);
    return LLVMBuildShuffleVector(m->builder, a, b, LLVMConstVector(lanes, count), "");
}

/* ---- masks ---- */

static LLVMValueRef hide(Masks *m, LLVMValueRef value, const char *constraints) {
    LLVMTypeRef type = LLVMTypeOf(value), function = LLVMFunctionType(type, &type, 1, false);
    LLVMValueRef empty = LLVMGetInlineAsm(function, "", 0, constraints, strlen(constraints), false, false,
                                          LLVMInlineAsmDialectATT, false);
    LLVMValueRef call = LLVMBuildCall2(m->builder, function, empty, &value, 1, "");
    bridge_mark_asm(m->context, call);
    return call;
}

/* Hides the lanes of a predicate register. */
static LLVMValueRef hide_predicate(Masks *m, LLVMValueRef mask) {
    unsigned lanes = LLVMGetVectorSize(LLVMTypeOf(mask));
    LLVMTypeRef bits = LLVMIntTypeInContext(m->context, lanes), byte = LLVMInt8TypeInContext(m->context);
    LLVMValueRef value = LLVMBuildBitCast(m->builder, mask, bits, "");
    if (lanes < CHAR_BIT) value = LLVMBuildZExt(m->builder, value, byte, "");
    value = hide(m, value, "=k,0");
    if (lanes < CHAR_BIT) value = LLVMBuildTrunc(m->builder, value, bits, "");
    return LLVMBuildBitCast(m->builder, value, LLVMTypeOf(mask), "");
}

/* Hides the signs of the lanes of vectors, which AVX2 uses as masks. */
static void hide_signs(Masks *m, LLVMValueRef mask, unsigned bits, unsigned lanes, unsigned count,
                       LLVMValueRef *pieces) {
    LLVMValueRef wide = LLVMBuildSExt(m->builder, mask, integers(m, bits, lanes * count), "");
    for (unsigned i = 0; i < count; i++) {
        LLVMValueRef signs = hide(m, take_lanes(m, wide, i * lanes, lanes), "=x,0");
        pieces[i] = LLVMBuildICmp(m->builder, LLVMIntSLT, signs, LLVMConstNull(LLVMTypeOf(signs)), "");
    }
}

/* Sets the insertion point directly after the value, so that what is built dominates all of its uses. */
static void position_after(Masks *m, LLVMValueRef value) {
    LLVMValueRef next = LLVMGetNextInstruction(value);
    while (LLVMIsAPHINode(next)) next = LLVMGetNextInstruction(next);
    LLVMPositionBuilderBefore(m->builder, next);
}

/* The mask's registers. Pieces that are uniform constants stay constants. */
static LLVMValueRef *mask_pieces(Masks *m, const Access *access) {
    unsigned lanes = access->piece_lanes, count = access->lanes / lanes;
    unsigned bits = m->bridge->has_masks ? 0 : access->bits;
    for (size_t i = m->known.count; i > 0; i--) {
        const Known *known = &m->known.items[i - 1];
        if (known->mask == access->mask && known->lanes == lanes && known->bits == bits) return known->pieces;
    }
    LLVMValueRef *pieces = TILE_NEW_ARRAY(m->bridge->arena, LLVMValueRef, count);
    unsigned wide = bits && bits * lanes < ASM_BITS ? ASM_BITS / lanes : bits;
    bool varying = LLVMIsAInstruction(access->mask) != NULL; /* later accesses share the pieces */
    if (varying) position_after(m, access->mask);
    if (varying && bits) {
        hide_signs(m, access->mask, wide, lanes, count, pieces);
    } else {
        for (unsigned i = 0; i < count; i++) {
            LLVMValueRef piece = take_lanes(m, access->mask, i * lanes, lanes);
            bool uniform = LLVMIsNull(piece) || piece == LLVMConstAllOnes(LLVMTypeOf(piece));
            if (uniform)
                pieces[i] = piece;
            else if (bits)
                hide_signs(m, piece, wide, lanes, 1, &pieces[i]);
            else
                pieces[i] = hide_predicate(m, piece);
        }
    }
    LLVMPositionBuilderBefore(m->builder, access->call);
    if (varying)
        tile_list_push(m->bridge->arena, &m->known,
                       (Known){.mask = access->mask, .lanes = lanes, .bits = bits, .pieces = pieces});
    return pieces;
}

/* ---- accesses ---- */

static LLVMAttributeRef align_attribute(const Masks *m, uint64_t align) {
    return LLVMCreateEnumAttribute(m->context, LLVMGetEnumAttributeKindForName("align", strlen("align")), align);
}

/* The alignment at a byte offset from an aligned address. */
static uint64_t align_at(uint64_t align, uint64_t offset) {
    uint64_t step = offset & (~offset + 1);
    return offset && step < align ? step : align;
}

static LLVMValueRef load_piece(Masks *m, const Access *access, LLVMTypeRef type, LLVMValueRef pointer,
                               LLVMValueRef mask, unsigned first, uint64_t align) {
    LLVMValueRef fill = take_lanes(m, access->other, first, access->piece_lanes);
    if (LLVMIsNull(mask)) return fill;
    if (LLVMIsConstant(mask)) { /* and uniform */
        LLVMValueRef load = LLVMBuildLoad2(m->builder, type, pointer, "");
        LLVMSetAlignment(load, (unsigned)align);
        return load;
    }
    LLVMTypeRef types[] = {type, LLVMTypeOf(pointer)};
    LLVMValueRef callee = LLVMGetIntrinsicDeclaration(m->module, m->load, types, 2), given[] = {pointer, mask, fill};
    LLVMValueRef call = LLVMBuildCall2(m->builder, LLVMGlobalGetValueType(callee), callee, given, 3, "");
    LLVMAddCallSiteAttribute(call, 1, align_attribute(m, align));
    return call;
}

static void store_piece(Masks *m, const Access *access, LLVMTypeRef type, LLVMValueRef pointer, LLVMValueRef mask,
                        unsigned first, uint64_t align) {
    if (LLVMIsNull(mask)) return;
    LLVMValueRef value = take_lanes(m, access->other, first, access->piece_lanes);
    if (LLVMIsConstant(mask)) {
        LLVMSetAlignment(LLVMBuildStore(m->builder, value, pointer), (unsigned)align);
        return;
    }
    LLVMTypeRef types[] = {type, LLVMTypeOf(pointer)};
    LLVMValueRef callee = LLVMGetIntrinsicDeclaration(m->module, m->store, types, 2), given[] = {value, pointer, mask};
    LLVMValueRef call = LLVMBuildCall2(m->builder, LLVMGlobalGetValueType(callee), callee, given, 3, "");
    LLVMAddCallSiteAttribute(call, 2, align_attribute(m, align));
}

/* Vectors have a power of two of lanes, so that halves always match. */
static LLVMValueRef join_all(Masks *m, LLVMValueRef *parts, unsigned count) {
    for (; count > 1; count /= 2)
        for (unsigned i = 0; i < count / 2; i++) parts[i] = join(m, parts[2 * i], parts[2 * i + 1]);
    return parts[0];
}

static void replace_access(Masks *m, const Access *access) {
    LLVMPositionBuilderBefore(m->builder, access->call);
    LLVMValueRef *masks = mask_pieces(m, access);
    unsigned count = access->lanes / access->piece_lanes;
    LLVMTypeRef type = LLVMVectorType(access->element, access->piece_lanes);
    LLVMValueRef *parts = TILE_NEW_ARRAY(m->bridge->arena, LLVMValueRef, count);
    for (unsigned i = 0; i < count; i++) {
        uint64_t offset = (uint64_t)i * access->piece_lanes * access->bits / CHAR_BIT;
        uint64_t align = align_at(access->align, offset);
        LLVMValueRef step = LLVMConstInt(LLVMInt64TypeInContext(m->context), offset, false), pointer = access->pointer;
        if (offset) pointer = LLVMBuildGEP2(m->builder, LLVMInt8TypeInContext(m->context), pointer, &step, 1, "");
        unsigned first = i * access->piece_lanes;
        if (access->is_load)
            parts[i] = load_piece(m, access, type, pointer, masks[i], first, align);
        else
            store_piece(m, access, type, pointer, masks[i], first, align);
    }
    if (access->is_load) LLVMReplaceAllUsesWith(access->call, join_all(m, parts, count));
    LLVMInstructionEraseFromParent(access->call);
}

static uint64_t align_of(LLVMValueRef call, unsigned operand) {
    LLVMAttributeRef align =
        LLVMGetCallSiteEnumAttribute(call, operand + 1, LLVMGetEnumAttributeKindForName("align", strlen("align")));
    return align ? LLVMGetEnumAttributeValue(align) : 1;
}

/* Are lanes of the vector permuted or narrowed? */
static bool is_moved(LLVMValueRef vector) {
    for (LLVMUseRef use = LLVMGetFirstUse(vector); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        LLVMOpcode op = LLVMIsAInstruction(user) ? LLVMGetInstructionOpcode(user) : 0;
        if (op == LLVMTrunc || op == LLVMShuffleVector || op == LLVMBitCast) return true;
    }
    return false;
}

/* Is the call an access whose mask the code generator would analyse? */
static bool read_access(const Masks *m, LLVMValueRef call, Access *access) {
    LLVMValueRef callee = LLVMGetCalledValue(call);
    unsigned id = LLVMIsAFunction(callee) ? LLVMGetIntrinsicID(callee) : 0;
    bool is_load = id == m->load, predicates = m->bridge->has_masks;
    if (!is_load && id != m->store) return false;
    unsigned pointer = is_load ? 0 : 1;
    *access = (Access){.call = call,
                       .pointer = LLVMGetOperand(call, pointer),
                       .mask = LLVMGetOperand(call, is_load ? 1 : 2),
                       .other = LLVMGetOperand(call, is_load ? 2 : 0),
                       .is_load = is_load,
                       .align = align_of(call, pointer)};
    LLVMTypeRef type = LLVMTypeOf(access->other);
    if (LLVMGetTypeKind(type) != LLVMVectorTypeKind) return false;
    access->element = LLVMGetElementType(type);
    access->bits = bits_of(access->element);
    access->lanes = LLVMGetVectorSize(type);
    unsigned fit = m->bridge->vector_bytes * CHAR_BIT / (access->bits ? access->bits : CHAR_BIT);
    access->piece_lanes = access->lanes < fit ? access->lanes : fit;
    bool is_integer = LLVMGetTypeKind(access->element) == LLVMIntegerTypeKind, half = access->bits == 16;
    bool narrowed = is_load ? is_moved(call) : access->bits < 64 && (is_integer || half);
    bool even = access->lanes > 1 && (access->lanes & (access->lanes - 1)) == 0;
    return even && (predicates ? narrowed : access->bits >= 32);
}

enum { MOST_STEPS = 8 }; /* depth of the search from a mask to its comparisons */

/* Does the mask depend on a comparison of less than a register? */
static bool compares_part(LLVMValueRef mask, unsigned steps) {
    if (!LLVMIsAInstruction(mask)) return false;
    switch (LLVMGetInstructionOpcode(mask)) {
    case LLVMICmp:
    case LLVMTrunc: {
        LLVMTypeRef type = LLVMTypeOf(LLVMGetOperand(mask, 0));
        return bits_of(LLVMGetElementType(type)) * LLVMGetVectorSize(type) < ASM_BITS;
    }
    case LLVMAnd:
    case LLVMOr:
    case LLVMXor:
    case LLVMSelect:
    case LLVMShuffleVector:
    case LLVMPHI:
        for (unsigned i = 0; i < (unsigned)LLVMGetNumOperands(mask); i++)
            if (!steps || compares_part(LLVMGetOperand(mask, i), steps - 1)) return true;
        return false;
    default: return false;
    }
}

/* A mask into which a shuffle shifts zeros passes through an asm first. */
static void harden_shuffle(Masks *m, LLVMValueRef shuffle) {
    LLVMValueRef mask = LLVMGetOperand(shuffle, 0), other = LLVMGetOperand(shuffle, 1);
    LLVMTypeRef type = LLVMTypeOf(mask);
    unsigned lanes = LLVMGetVectorSize(type);
    if (!m->bridge->has_masks || bits_of(LLVMGetElementType(type)) != 1) return;
    if (!LLVMIsConstant(other) || LLVMIsUndef(other) || lanes < 2 || (lanes & (lanes - 1))) return;
    if (!compares_part(mask, MOST_STEPS)) return;
    LLVMPositionBuilderBefore(m->builder, shuffle);
    LLVMSetOperand(shuffle, 0, hide_predicate(m, mask));
}

void bridge_harden_masks(TileBridge *bridge, LLVMModuleRef module) {
    if (bridge->architecture != TILE_ARCHITECTURE_X86_64) return;
    LLVMContextRef context = LLVMGetModuleContext(module);
    Masks m = {.bridge = bridge,
               .context = context,
               .module = module,
               .builder = LLVMCreateBuilderInContext(context),
               .load = LLVMLookupIntrinsicID("llvm.masked.load", strlen("llvm.masked.load")),
               .store = LLVMLookupIntrinsicID("llvm.masked.store", strlen("llvm.masked.store"))};
    for (LLVMValueRef function = LLVMGetFirstFunction(module); function; function = LLVMGetNextFunction(function)) {
        for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block))
            for (LLVMValueRef next, i = LLVMGetFirstInstruction(block); i; i = next) {
                next = LLVMGetNextInstruction(i);
                Access access;
                if (LLVMIsAShuffleVectorInst(i)) harden_shuffle(&m, i);
                if (LLVMIsACallInst(i) && read_access(&m, i, &access)) replace_access(&m, &access);
            }
        m.known.count = 0;
    }
    LLVMDisposeBuilder(m.builder);
}
