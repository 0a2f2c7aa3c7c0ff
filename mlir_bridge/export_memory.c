/* Addresses, loads and stores. A bool is one bit in a register and a byte in memory. */
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "mlir_bridge/export.h"

/* The optional operands of an access. */
typedef struct Parts {
    MlirValue mask, fill; /* null: absent; the fill has the value's type */
    bool fill_is_zero;
} Parts;

static TileScalar memory_scalar(TileScalar scalar) { return scalar == TILE_BOOL ? TILE_U8 : scalar; }

static MlirValue to_memory(Exporter *exporter, const TileType *type, MlirValue value) {
    if (type->scalar != TILE_BOOL) return value;
    return export_build(exporter, "llvm.zext", export_type_like(exporter, type, TILE_U8), VALUES(value), NO_ATTRIBUTES);
}

static MlirValue from_memory(Exporter *exporter, const TileType *type, MlirValue value) {
    if (type->scalar != TILE_BOOL) return value;
    MlirValue zero = export_splat_integer(exporter, type, TILE_U8, 0);
    return export_compare(exporter, false, ICMP_NE, export_type(exporter, type), value, zero);
}

static bool is_zero(const TileValue *value) {
    const TileOp *splat = tile_value_def(value, TILE_OP_SPLAT);
    return tile_value_is_integer(splat ? tile_op_operand(splat, 0) : value, 0);
}

static Parts read_parts(Exporter *exporter, const TileOp *op, const TileType *type) {
    TileValue *filling = tile_op_named(op, TILE_OPERAND_FILLING);
    Parts result = {{NULL}, {NULL}, false};
    if (tile_op_named(op, TILE_OPERAND_MASK)) result.mask = named_of(exporter, op, TILE_OPERAND_MASK);
    if (!filling) return result;
    bool spread = type->kind == TILE_TYPE_VECTOR && filling->type->kind == TILE_TYPE_SCALAR;
    MlirValue value = named_of(exporter, op, TILE_OPERAND_FILLING);
    result.fill_is_zero = is_zero(filling);
    result.fill = spread ? export_broadcast(exporter, value, export_type(exporter, type), type->extent[0]) : value;
    return result;
}

static MlirValue poison_of(Exporter *exporter, MlirType type) {
    return export_build(exporter, "llvm.mlir.poison", type, NO_VALUES, NO_ATTRIBUTES);
}

/* The alignment in bytes: the op's attribute, or the element's size. */
static int64_t alignment_of(const TileOp *op, const TileType *type) {
    int64_t align = tile_op_integer(op, TILE_ATTRIBUTE_ALIGN, 0);
    return align > 0 ? align : tile_scalar_bytes(type->scalar);
}

static bool is_streaming(const TileOp *op) {
    return tile_op_integer(op, TILE_ATTRIBUTE_CACHE, TILE_CACHE_DEFAULT) == TILE_CACHE_STREAM;
}

/* dynamic byte offset(s) from a pointer */
MlirValue export_offset_pointer(Exporter *exporter, MlirType result, MlirValue pointer, MlirValue offset) {
    int32_t dynamic = INT32_MIN;
    return export_build(
        exporter, "llvm.getelementptr", result, VALUES(pointer, offset),
        ATTRIBUTES(named(exporter, NAME_CONSTANT_INDICES, mlirDenseI32ArrayGet(exporter->mlir, 1, &dynamic)),
                   named(exporter, NAME_ELEMENT_TYPE, mlirTypeAttrGet(scalar_of(exporter, TILE_I8))),
                   named(exporter, NAME_NO_WRAP, export_integer(exporter, TILE_I32, 0))));
}

void export_ptr_add(Exporter *exporter, const TileOp *op) {
    set_result(exporter, op, 0,
               export_offset_pointer(exporter, export_type(exporter, tile_op_result(op, 0)->type),
                                     operand_of(exporter, op, 0), operand_of(exporter, op, 1)));
}

void export_is_aligned(Exporter *exporter, const TileOp *op) {
    const TileType *result = tile_op_result(op, 0)->type;
    MlirValue address = export_build(exporter, "llvm.ptrtoint", scalar_of(exporter, TILE_I64),
                                     VALUES(operand_of(exporter, op, 0)), NO_ATTRIBUTES);
    MlirValue below =
                  export_splat_integer(exporter, result, TILE_I64, tile_op_integer(op, TILE_ATTRIBUTE_ALIGN, 1) - 1),
              zero = export_splat_integer(exporter, result, TILE_I64, 0);
    MlirValue rest =
        export_build(exporter, "llvm.and", scalar_of(exporter, TILE_I64), VALUES(address, below), NO_ATTRIBUTES);
    set_result(exporter, op, 0, export_compare(exporter, false, ICMP_EQ, export_type(exporter, result), rest, zero));
}

/* ---- loads ---- */

static MlirValue build_load(Exporter *exporter, const TileOp *op, MlirType type, const TileType *element) {
    MlirNamedAttribute attributes[2] = {
        named(exporter, NAME_ALIGNMENT, export_integer(exporter, TILE_I64, alignment_of(op, element)))};
    unsigned count = 1;
    if (is_streaming(op)) attributes[count++] = named(exporter, NAME_NONTEMPORAL, exporter->bridge->unit);
    return export_build(exporter, "llvm.load", type, VALUES(operand_of(exporter, op, 0)), count, attributes);
}

/* A masked load of a scalar is a branch. */
static MlirValue build_scalar_masked_load(Exporter *exporter, const TileOp *op, const TileType *type, Parts parts) {
    MlirType memory = scalar_of(exporter, memory_scalar(type->scalar));
    MlirBlock outer = exporter->block, then = mlirBlockCreate(0, NULL, NULL),
              otherwise = mlirBlockCreate(0, NULL, NULL);
    exporter->block = then;
    MlirValue loaded = from_memory(exporter, type, build_load(exporter, op, memory, type));
    exporter->block = otherwise;
    MlirValue fill = parts.fill.ptr ? parts.fill : poison_of(exporter, export_type(exporter, type));
    exporter->block = outer;
    MlirRegion regions[2] = {export_simple_region(exporter, then, loaded),
                             export_simple_region(exporter, otherwise, fill)};
    return export_scf_if(exporter, parts.mask, export_type(exporter, type), regions[0], regions[1]);
}

/* SVE holds narrow integers in wider lanes. If they are used as signed numbers, LLVM 22 makes the load
 * sign-extending, but does not sign-extend its fill. So a fill that this would change is selected after the load. */
static bool is_fill_apart(const TileType *type, Parts parts) {
    return parts.fill.ptr && type->scalable && !tile_scalar_is_float(type->scalar) && !parts.fill_is_zero;
}

/* A masked load or gather: address(es), mask, and the fill of inactive lanes. */
static MlirValue build_masked_load(Exporter *exporter, const TileOp *op, const char *name, const TileType *type,
                                   MlirValue address, Parts parts) {
    MlirType memory = export_type_like(exporter, type, memory_scalar(type->scalar));
    MlirValue fill = parts.fill.ptr ? to_memory(exporter, type, parts.fill) : poison_of(exporter, memory);
    bool apart = is_fill_apart(type, parts);
    MlirAttribute align = export_integer(exporter, TILE_I32, alignment_of(op, type));
    MlirValue value = export_build(exporter, name, memory,
                                   VALUES(address, parts.mask, apart ? poison_of(exporter, memory) : fill),
                                   ATTRIBUTES(named(exporter, NAME_ALIGNMENT, align)));
    if (apart) value = export_build(exporter, "llvm.select", memory, VALUES(parts.mask, value, fill), NO_ATTRIBUTES);
    return from_memory(exporter, type, value);
}

void export_load(Exporter *exporter, const TileOp *op) {
    const TileType *type = tile_op_result(op, 0)->type;
    Parts parts = read_parts(exporter, op, type);
    MlirValue result;
    if (parts.mask.ptr ? export_predicated_load(exporter, op) : export_hinted_load(exporter, op)) return;
    if (!parts.mask.ptr) {
        MlirType memory = export_type_like(exporter, type, memory_scalar(type->scalar));
        result = from_memory(exporter, type, build_load(exporter, op, memory, type));
    } else if (type->kind == TILE_TYPE_SCALAR) {
        result = build_scalar_masked_load(exporter, op, type, parts);
    } else {
        result = build_masked_load(exporter, op, "llvm.intr.masked.load", type, operand_of(exporter, op, 0), parts);
    }
    set_result(exporter, op, 0, result);
}

static MlirValue all_lanes(Exporter *exporter, const TileType *type) {
    return export_splat_integer(exporter, type, TILE_BOOL, 1);
}

static MlirValue gather_addresses(Exporter *exporter, const TileType *type, MlirValue pointer, MlirValue offsets) {
    int64_t lanes = type->extent[0];
    bool scalable = type->scalable;
    MlirType pointers = mlirVectorTypeGetScalable(1, &lanes, &scalable, exporter->bridge->pointer);
    return export_offset_pointer(exporter, pointers, pointer, offsets);
}

void export_gather(Exporter *exporter, const TileOp *op) {
    const TileType *type = tile_op_result(op, 0)->type;
    Parts parts = read_parts(exporter, op, type);
    if (!parts.mask.ptr) parts.mask = all_lanes(exporter, type);
    MlirValue addresses = gather_addresses(exporter, type, operand_of(exporter, op, 0), operand_of(exporter, op, 1));
    set_result(exporter, op, 0, build_masked_load(exporter, op, "llvm.intr.masked.gather", type, addresses, parts));
}

/* ---- stores ---- */

static void build_store(Exporter *exporter, const TileOp *op, const TileType *type, MlirValue value) {
    MlirNamedAttribute attributes[2] = {
        named(exporter, NAME_ALIGNMENT, export_integer(exporter, TILE_I64, alignment_of(op, type)))};
    unsigned count = 1;
    if (is_streaming(op)) {
        attributes[count++] = named(exporter, NAME_NONTEMPORAL, exporter->bridge->unit);
        exporter->streams = true;
    }
    export_build(exporter, "llvm.store", no_type(), VALUES(value, operand_of(exporter, op, 1)), count, attributes);
}

static void build_scalar_masked_store(Exporter *exporter, const TileOp *op, const TileType *type, MlirValue value,
                                      MlirValue mask) {
    MlirBlock outer = exporter->block, then = mlirBlockCreate(0, NULL, NULL),
              otherwise = mlirBlockCreate(0, NULL, NULL);
    exporter->block = then;
    build_store(exporter, op, type, value);
    exporter->block = outer;
    MlirValue none = {NULL};
    MlirRegion stores = export_simple_region(exporter, then, none);
    export_scf_if(exporter, mask, no_type(), stores, export_simple_region(exporter, otherwise, none));
}

void export_store(Exporter *exporter, const TileOp *op) {
    const TileType *type = tile_op_operand(op, 0)->type;
    Parts parts = read_parts(exporter, op, type);
    MlirValue value = to_memory(exporter, type, operand_of(exporter, op, 0));
    if (parts.mask.ptr ? export_predicated_store(exporter, op) : export_hinted_store(exporter, op)) return;
    if (!parts.mask.ptr) {
        build_store(exporter, op, type, value);
    } else if (type->kind == TILE_TYPE_SCALAR) {
        build_scalar_masked_store(exporter, op, type, value, parts.mask);
    } else {
        MlirAttribute align = export_integer(exporter, TILE_I32, alignment_of(op, type));
        export_build(exporter, "llvm.intr.masked.store", no_type(),
                     VALUES(value, operand_of(exporter, op, 1), parts.mask),
                     ATTRIBUTES(named(exporter, NAME_ALIGNMENT, align)));
    }
}

void export_scatter(Exporter *exporter, const TileOp *op) {
    const TileType *type = tile_op_operand(op, 0)->type;
    Parts parts = read_parts(exporter, op, type);
    if (!parts.mask.ptr) parts.mask = all_lanes(exporter, type);
    MlirValue addresses = gather_addresses(exporter, type, named_of(exporter, op, TILE_OPERAND_ADDRESS), named_of(exporter, op, TILE_OPERAND_OFFSETS));
    MlirAttribute align = export_integer(exporter, TILE_I32, alignment_of(op, type));
    export_build(exporter, "llvm.intr.masked.scatter", no_type(),
                 VALUES(to_memory(exporter, type, operand_of(exporter, op, 0)), addresses, parts.mask),
                 ATTRIBUTES(named(exporter, NAME_ALIGNMENT, align)));
}

void export_prefetch(Exporter *exporter, const TileOp *op) {
    int64_t locality = 3;
    switch ((TileName)tile_op_integer(op, TILE_ATTRIBUTE_CACHE, TILE_CACHE_DEFAULT)) {
    case TILE_CACHE_STREAM: locality = 0; break;
    case TILE_CACHE_L2: locality = 2; break;
    default: break;
    }
    enum { DATA_CACHE = 1 };
    export_build(exporter, "llvm.intr.prefetch", no_type(), VALUES(operand_of(exporter, op, 0)),
                 ATTRIBUTES(named(exporter, NAME_WRITES, export_integer(exporter, TILE_I32, 0)),
                            named(exporter, NAME_LOCALITY, export_integer(exporter, TILE_I32, locality)),
                            named(exporter, NAME_CACHE, export_integer(exporter, TILE_I32, DATA_CACHE))));
}

/* ---- atomics ---- */

/* LLVM's numbers. An update is a release of the program's earlier writes, and an acquire of other programs'. */
enum { ORDER_MONOTONIC = 2, ORDER_ACQUIRE_RELEASE = 6 };
enum { UPDATE_ADD = 1, UPDATE_MAX = 7, UPDATE_MIN = 8, UPDATE_UMAX = 9, UPDATE_UMIN = 10, UPDATE_FADD = 11 };

static MlirNamedAttribute ordering(const Exporter *exporter, BridgeName name, int64_t order) {
    return named(exporter, name, export_integer(exporter, TILE_I64, order));
}

/* The order that goes with a family's scope. */
static int64_t order_of(const char *scope) { return scope ? ORDER_MONOTONIC : ORDER_ACQUIRE_RELEASE; }

/* The scope of an op; that of all threads where it is NULL. */
static MlirNamedAttribute scope_of(const Exporter *exporter, const char *scope) {
    return named(exporter, NAME_SCOPE_NAME, mlirStringAttrGet(exporter->mlir, text_ref(scope ? scope : "")));
}

static MlirValue build_swap(Exporter *exporter, MlirType type, int64_t order, const char *scope, MlirValue pointer,
                            MlirValue expected, MlirValue value, MlirNamedAttribute align) {
    MlirType parts[] = {type, scalar_of(exporter, TILE_BOOL)};
    MlirType pair = mlirLLVMStructTypeLiteralGet(exporter->mlir, 2, parts, false);
    MlirValue swapped = export_build(exporter, "llvm.cmpxchg", pair, VALUES(pointer, expected, value),
                                     ATTRIBUTES(ordering(exporter, NAME_SUCCESS_ORDERING, order),
                                                ordering(exporter, NAME_FAILURE_ORDERING, ORDER_MONOTONIC),
                                                scope_of(exporter, scope), align));
    int64_t first = 0;
    return export_build(exporter, "llvm.extractvalue", type, VALUES(swapped),
                        ATTRIBUTES(named(exporter, NAME_POSITION, mlirDenseI64ArrayGet(exporter->mlir, 1, &first))));
}

MlirValue export_relaxed_swap(Exporter *exporter, MlirValue pointer, MlirValue expected, MlirValue value) {
    MlirNamedAttribute align = named(exporter, NAME_ALIGNMENT, export_integer(exporter, TILE_I64, 8));
    return build_swap(exporter, scalar_of(exporter, TILE_I64), ORDER_MONOTONIC, NULL, pointer, expected, value, align);
}

MlirValue export_relaxed_add(Exporter *exporter, MlirValue pointer, MlirValue value) {
    return export_build(exporter, "llvm.atomicrmw", scalar_of(exporter, TILE_I64), VALUES(pointer, value),
                        ATTRIBUTES(ordering(exporter, NAME_BIN_OP, UPDATE_ADD),
                                   ordering(exporter, NAME_ORDERING, ORDER_MONOTONIC),
                                   named(exporter, NAME_ALIGNMENT, export_integer(exporter, TILE_I64, 8))));
}

/* LLVM's number of the update. */
static int64_t update_of(TileName update, TileScalar scalar) {
    TileScalarClass class = tile_scalar_class(scalar);
    if (update == TILE_UPDATE_ADD) return class == TILE_CLASS_FLOAT ? UPDATE_FADD : UPDATE_ADD;
    if (update == TILE_UPDATE_MAX) return class == TILE_CLASS_SIGNED ? UPDATE_MAX : UPDATE_UMAX;
    return class == TILE_CLASS_SIGNED ? UPDATE_MIN : UPDATE_UMIN;
}

/* For scalars, unmasked, floats only where the target adds them: the pass atomics has expanded all others. */
void export_atomic(Exporter *exporter, const TileOp *op) {
    const TileType *type = tile_op_result(op, 0)->type;
    TileName update = (TileName)tile_op_integer(op, TILE_ATTRIBUTE_UPDATE, TILE_UPDATE_ADD);
    MlirType result = export_type(exporter, type);
    MlirNamedAttribute align =
        named(exporter, NAME_ALIGNMENT, export_integer(exporter, TILE_I64, tile_scalar_bytes(type->scalar)));
    const char *scope = exporter->family->relaxed_scope;
    bool added = update == TILE_UPDATE_ADD && exporter->target->atomic_adds >> type->scalar & 1;
    if (tile_op_get(op, TILE_ATTRIBUTE_PARTS) || (!tile_scalar_is_int(type->scalar) && !added)) {
        export_fail(exporter, TILE_INTERNAL, op, "the pass atomics had to expand it");
        return;
    }
    if (update == TILE_UPDATE_CAS) {
        set_result(exporter, op, 0,
                   build_swap(exporter, result, order_of(scope), scope, operand_of(exporter, op, 0),
                              named_of(exporter, op, TILE_OPERAND_EXPECTED), named_of(exporter, op, TILE_OPERAND_VALUE), align));
        return;
    }
    if (update == TILE_UPDATE_READ) {
        set_result(exporter, op, 0,
                   export_build(exporter, "llvm.load", result, VALUES(operand_of(exporter, op, 0)),
                                ATTRIBUTES(align, ordering(exporter, NAME_ORDERING, ORDER_MONOTONIC),
                                           scope_of(exporter, scope))));
        return;
    }
    /* bf16 is an integer in all other ops. */
    bool brain = type->scalar == TILE_BF16;
    MlirType memory = brain ? mlirBF16TypeGet(exporter->mlir) : result;
    MlirValue value = operand_of(exporter, op, 1);
    if (brain) value = export_build(exporter, "llvm.bitcast", memory, VALUES(value), NO_ATTRIBUTES);
    value = export_build(exporter, "llvm.atomicrmw", memory, VALUES(operand_of(exporter, op, 0), value),
                         ATTRIBUTES(ordering(exporter, NAME_BIN_OP, update_of(update, type->scalar)),
                                    ordering(exporter, NAME_ORDERING, order_of(scope)), scope_of(exporter, scope), align));
    if (brain) value = export_build(exporter, "llvm.bitcast", result, VALUES(value), NO_ATTRIBUTES);
    set_result(exporter, op, 0, value);
}
