/* The typed functions of a linked object, and the constants that they pass to the launcher. The types built here have
 * the layout of TileLinked in include/tile/linked.h and of TileArg in include/tile/launch.h. */
#include <stddef.h>
#include <string.h>

#include "llvm-c/Core.h"
#include "mlir_bridge/context.h"
#include "tile/linked.h"

_Static_assert(sizeof(TileLinked) == 40 && offsetof(TileLinked, image) == 8 &&
                   offsetof(TileLinked, image_bytes) == 16 && offsetof(TileLinked, entries) == 24 &&
                   offsetof(TileLinked, state) == 32,
               "what make_description lays out");
_Static_assert(sizeof(TileArg) == 16 && offsetof(TileArg, flags) == 4 && offsetof(TileArg, value) == 8,
               "what store_argument lays out");

typedef struct Maker {
    LLVMModuleRef module;
    LLVMContextRef context;
    LLVMBuilderRef builder;
    TileArena *arena;
    const TileGlue *glue;
    LLVMTypeRef pointer, i8, i16, i32, i64, f32, f64;
    LLVMTypeRef arg; /* TileArg */
    LLVMValueRef description;
} Maker;

/* The argument of `make`: a maker without its LLVM parts. */
typedef struct Order {
    TileArena *arena;
    const TileGlue *glue;
} Order;

/* ---- constants ---- */

static LLVMValueRef add_data(Maker *m, const char *name, LLVMValueRef value, bool is_constant) {
    LLVMValueRef global = LLVMAddGlobal(m->module, LLVMTypeOf(value), name);
    LLVMSetInitializer(global, value);
    LLVMSetGlobalConstant(global, is_constant);
    LLVMSetLinkage(global, LLVMInternalLinkage);
    return global;
}

static LLVMTypeRef entry_type(Maker *m) {
    LLVMTypeRef types[] = {m->pointer, m->i64, m->i64, m->pointer};
    return LLVMFunctionType(LLVMVoidTypeInContext(m->context), types, 4, false);
}

static LLVMValueRef make_entries(Maker *m) {
    size_t count = m->glue->entry_count;
    LLVMValueRef *entries = TILE_NEW_ARRAY(m->arena, LLVMValueRef, count);
    for (size_t i = 0; i < count; i++) {
        entries[i] = LLVMAddFunction(m->module, m->glue->entries[i], entry_type(m));
        /* The symbol is in the same object, so it is never resolved in another one. */
        LLVMSetVisibility(entries[i], LLVMHiddenVisibility);
    }
    return add_data(m, "tile.entries", LLVMConstArray2(m->pointer, entries, count), true);
}

/* A TileLinked. */
static void make_description(Maker *m) {
    const TileGlue *glue = m->glue;
    LLVMValueRef bytes = LLVMConstStringInContext2(m->context, glue->image, glue->image_bytes, true);
    LLVMValueRef image = add_data(m, "tile.image", bytes, true);
    LLVMValueRef state = add_data(m, "tile.state", LLVMConstNull(m->pointer), false);
    LLVMValueRef members[] = {LLVMConstInt(m->i32, glue->version, false),
                              LLVMConstInt(m->i32, glue->entry_count, false),
                              image,
                              LLVMConstInt(m->i64, glue->image_bytes, false),
                              make_entries(m),
                              state};
    m->description = add_data(m, "tile.linked", LLVMConstStructInContext(m->context, members, 6, false), true);
}

/* ---- functions ---- */

/* Scalars without a type in C are passed as float. */
static LLVMTypeRef scalar_type(const Maker *m, TileScalar scalar) {
    if (scalar == TILE_F64) return m->f64;
    if (tile_scalar_is_float(scalar)) return m->f32;
    switch (tile_scalar_bytes(scalar)) {
    case 1: return m->i8;
    case 2: return m->i16;
    case 4: return m->i32;
    default: return m->i64;
    }
}

static TileArgKind argument_kind(const TileGlueParameter *parameter) {
    if (parameter->is_tensor) return TILE_ARG_TENSOR;
    switch (tile_scalar_class(parameter->scalar)) {
    case TILE_CLASS_FLOAT: return TILE_ARG_NUMBER;
    case TILE_CLASS_SIGNED: return TILE_ARG_INTEGER;
    case TILE_CLASS_UNSIGNED: return TILE_ARG_UNSIGNED;
    case TILE_CLASS_BOOL: break;
    }
    return TILE_ARG_BOOL;
}

/* The parameter as the 8 bytes of TileArg's value. */
static LLVMValueRef widen(Maker *m, LLVMValueRef value, TileArgKind kind) {
    switch (kind) {
    case TILE_ARG_INTEGER: return LLVMBuildSExt(m->builder, value, m->i64, "");
    case TILE_ARG_UNSIGNED: return LLVMBuildZExt(m->builder, value, m->i64, "");
    case TILE_ARG_NUMBER: return LLVMBuildFPExt(m->builder, value, m->f64, "");
    case TILE_ARG_BOOL:
        value = LLVMBuildICmp(m->builder, LLVMIntNE, value, LLVMConstNull(m->i8), "");
        return LLVMBuildZExt(m->builder, value, m->i64, "");
    case TILE_ARG_TENSOR:
    case TILE_ARG_NONE: break;
    }
    return value;
}

static void store_argument(Maker *m, LLVMValueRef list, LLVMTypeRef list_type, unsigned index,
                           const TileGlueParameter *parameter, LLVMValueRef value) {
    TileArgKind kind = argument_kind(parameter);
    for (unsigned member = 0; member < 3; member++) {
        LLVMValueRef path[] = {LLVMConstInt(m->i64, 0, false), LLVMConstInt(m->i64, index, false),
                               LLVMConstInt(m->i32, member, false)};
        LLVMValueRef place = LLVMBuildInBoundsGEP2(m->builder, list_type, list, path, 3, "");
        LLVMValueRef stored = member == 2 ? widen(m, value, kind) : LLVMConstInt(m->i32, member ? 0 : kind, false);
        LLVMBuildStore(m->builder, stored, place);
    }
}

static LLVMValueRef begin_function(Maker *m, const char *name, LLVMTypeRef type) {
    LLVMValueRef function = LLVMAddFunction(m->module, name, type);
    LLVMPositionBuilderAtEnd(m->builder, LLVMAppendBasicBlockInContext(m->context, function, ""));
    return function;
}

static LLVMValueRef launcher_function(Maker *m, const char *name, LLVMTypeRef type) {
    LLVMValueRef known = LLVMGetNamedFunction(m->module, name);
    return known ? known : LLVMAddFunction(m->module, name, type);
}

/* tile_status SYMBOL(const TileLaunchOptions *options, ..) */
static void make_launch(Maker *m, unsigned number) {
    const TileGlueFunction *made = &m->glue->functions[number];
    unsigned count = (unsigned)made->parameter_count;
    LLVMTypeRef *types = TILE_NEW_ARRAY(m->arena, LLVMTypeRef, count + 1);
    types[0] = m->pointer;
    for (unsigned i = 0; i < count; i++)
        types[i + 1] = made->parameters[i].is_tensor ? m->pointer : scalar_type(m, made->parameters[i].scalar);
    LLVMValueRef function = begin_function(m, made->symbol, LLVMFunctionType(m->i32, types, count + 1, false));
    LLVMTypeRef list_type = LLVMArrayType2(m->arg, count ? count : 1);
    LLVMValueRef list = LLVMBuildAlloca(m->builder, list_type, "");
    for (unsigned i = 0; i < count; i++)
        store_argument(m, list, list_type, i, &made->parameters[i], LLVMGetParam(function, i + 1));
    LLVMTypeRef takes[] = {m->pointer, m->i32, m->pointer, m->pointer};
    LLVMTypeRef type = LLVMFunctionType(m->i32, takes, 4, false);
    LLVMValueRef given[] = {m->description, LLVMConstInt(m->i32, number, false), list, LLVMGetParam(function, 0)};
    LLVMValueRef callee = launcher_function(m, "tile_linked_launch", type);
    LLVMBuildRet(m->builder, LLVMBuildCall2(m->builder, type, callee, given, 4, ""));
}

/* tile_status SYMBOL_kernel(TileKernel **kernel, TileError *error) */
static void make_kernel(Maker *m, unsigned number) {
    const char *name = tile_arena_format(m->arena, "%s_kernel", m->glue->functions[number].symbol);
    LLVMTypeRef types[] = {m->pointer, m->pointer}, takes[] = {m->pointer, m->i32, m->pointer, m->pointer};
    LLVMValueRef function = begin_function(m, name, LLVMFunctionType(m->i32, types, 2, false));
    LLVMTypeRef type = LLVMFunctionType(m->i32, takes, 4, false);
    LLVMValueRef given[] = {m->description, LLVMConstInt(m->i32, number, false), LLVMGetParam(function, 0),
                            LLVMGetParam(function, 1)};
    LLVMValueRef callee = launcher_function(m, "tile_linked_kernel", type);
    LLVMBuildRet(m->builder, LLVMBuildCall2(m->builder, type, callee, given, 4, ""));
}

/* Runs when the plugin is unloaded. */
static void make_release(Maker *m) {
    LLVMTypeRef nothing = LLVMVoidTypeInContext(m->context);
    LLVMTypeRef plain = LLVMFunctionType(nothing, NULL, 0, false);
    LLVMTypeRef type = LLVMFunctionType(nothing, &m->pointer, 1, false);
    LLVMValueRef function = begin_function(m, "tile.release", plain);
    LLVMSetLinkage(function, LLVMInternalLinkage);
    LLVMBuildCall2(m->builder, type, launcher_function(m, "tile_linked_release", type), &m->description, 1, "");
    LLVMBuildRetVoid(m->builder);
    LLVMValueRef list = add_data(m, "tile.unload", LLVMConstArray2(m->pointer, &function, 1), false);
    LLVMSetSection(list, ".fini_array");
}

static void make(LLVMModuleRef module, const void *state) {
    const Order *order = state;
    LLVMContextRef context = LLVMGetModuleContext(module);
    Maker m = {.module = module,
               .context = context,
               .builder = LLVMCreateBuilderInContext(context),
               .arena = order->arena,
               .glue = order->glue,
               .pointer = LLVMPointerTypeInContext(context, 0),
               .i8 = LLVMInt8TypeInContext(context),
               .i16 = LLVMInt16TypeInContext(context),
               .i32 = LLVMInt32TypeInContext(context),
               .i64 = LLVMInt64TypeInContext(context),
               .f32 = LLVMFloatTypeInContext(context),
               .f64 = LLVMDoubleTypeInContext(context)};
    LLVMTypeRef members[] = {m.i32, m.i32, m.i64};
    m.arg = LLVMStructTypeInContext(context, members, 3, false);
    make_description(&m);
    for (unsigned i = 0; i < m.glue->function_count; i++) {
        make_launch(&m, i);
        make_kernel(&m, i);
    }
    if (m.glue->plugin) make_release(&m);
    LLVMDisposeBuilder(m.builder);
}

tile_status tile_bridge_emit_glue(TileBridge *bridge, const TileTarget *target, const TileGlue *glue, TileCode *code) {
    *code = (TileCode){0};
    if (!bridge_begin(bridge)) return TILE_OUT_OF_MEMORY;
    jmp_buf guard;
    if (setjmp(guard)) return TILE_OUT_OF_MEMORY;
    tile_arena_set_guard(bridge->arena, &guard);
    TileTarget plain = *target;
    plain.llvm_cpu =
        "generic"; /* any machine of the architecture: so the launcher reports missing features, instead of a trap */
    plain.llvm_features = "";
    Order order = {bridge->arena, glue};
    tile_status status = bridge_set_target(bridge, &plain);
    if (status == TILE_OK) status = bridge_generate_with(bridge, make, &order, code);
    tile_arena_set_guard(bridge->arena, NULL);
    return status;
}
