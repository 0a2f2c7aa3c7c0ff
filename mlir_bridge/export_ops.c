/* Elementwise and vector ops that need several MLIR ops, or attributes. */
#include <math.h>
#include <string.h>

#include "lang/ir/build.h"
#include "lang/scalar/scalar.h"
#include "mlir_bridge/export.h"

/* Half of the vector registers of a target without AVX-512. */
enum { MAX_ASM_REGISTERS = 8, WORD_BITS = 64 };

static MlirType result_type(Exporter *exporter, const TileOp *op) {
    return export_type(exporter, tile_op_result(op, 0)->type);
}

/* Has the back end arithmetic on this float? bf16 and f8 are only stored, moved and reinterpreted. */
static bool check_float(Exporter *exporter, const TileOp *op, TileScalar scalar) {
    if (scalar == TILE_F16 || scalar == TILE_F32 || scalar == TILE_F64 || !tile_scalar_is_float(scalar)) return true;
    export_fail(exporter, TILE_INTERNAL, op, "an earlier pass had to expand it for %s", tile_scalar_name(scalar));
    return false;
}

void export_neg(Exporter *exporter, const TileOp *op) {
    const TileType *type = tile_op_result(op, 0)->type;
    MlirValue x = operand_of(exporter, op, 0);
    if (!check_float(exporter, op, type->scalar)) return;
    MlirValue result;
    if (tile_scalar_is_float(type->scalar)) {
        result = export_build(exporter, "llvm.fneg", result_type(exporter, op), VALUES(x), NO_ATTRIBUTES);
    } else {
        MlirValue zero = export_splat_integer(exporter, type, type->scalar, 0);
        result = export_build(exporter, "llvm.sub", result_type(exporter, op), VALUES(zero, x), NO_ATTRIBUTES);
    }
    set_result(exporter, op, 0, result);
}

void export_not(Exporter *exporter, const TileOp *op) {
    const TileType *type = tile_op_result(op, 0)->type;
    MlirValue ones = export_splat_integer(exporter, type, type->scalar, -1);
    set_result(exporter, op, 0,
               export_build(exporter, "llvm.xor", result_type(exporter, op), VALUES(operand_of(exporter, op, 0), ones),
                            NO_ATTRIBUTES));
}

void export_abs(Exporter *exporter, const TileOp *op) {
    TileScalar scalar = tile_op_result(op, 0)->type->scalar;
    MlirValue x = operand_of(exporter, op, 0);
    if (!check_float(exporter, op, scalar)) return;
    if (tile_scalar_is_float(scalar)) {
        x = export_build(exporter, "llvm.intr.fabs", result_type(exporter, op), VALUES(x), NO_ATTRIBUTES);
    } else if (tile_scalar_class(scalar) == TILE_CLASS_SIGNED) {
        x = export_build(exporter, "llvm.intr.abs", result_type(exporter, op), VALUES(x),
                         ATTRIBUTES(named(exporter, NAME_MIN_IS_POISON, export_integer(exporter, TILE_BOOL, 0))));
    }
    set_result(exporter, op, 0, x);
}

void export_count_zeros(Exporter *exporter, const TileOp *op) {
    MlirValue x = operand_of(exporter, op, 0);
    const char *name = op->id == TILE_OP_CLZ ? "llvm.intr.ctlz" : "llvm.intr.cttz";
    MlirNamedAttribute zero = named(exporter, NAME_ZERO_IS_POISON, export_integer(exporter, TILE_BOOL, 0));
    set_result(exporter, op, 0, export_build(exporter, name, result_type(exporter, op), VALUES(x), ATTRIBUTES(zero)));
}

/* fma of f32 and f64 has one rounding; that of f16 is defined via f32, and expanded before. */
void export_fma(Exporter *exporter, const TileOp *op) {
    TileScalar scalar = tile_op_result(op, 0)->type->scalar;
    if (scalar != TILE_F32 && scalar != TILE_F64) {
        export_fail(exporter, TILE_INTERNAL, op, "an earlier pass had to expand it for %s", tile_scalar_name(scalar));
        return;
    }
    MlirValue result = export_build(
        exporter, "llvm.intr.fma", result_type(exporter, op),
        VALUES(named_of(exporter, op, TILE_OPERAND_X), named_of(exporter, op, TILE_OPERAND_Y),
               named_of(exporter, op, TILE_OPERAND_Z)), NO_ATTRIBUTES);
    set_result(exporter, op, 0, result);
}

void export_isnan(Exporter *exporter, const TileOp *op) {
    MlirValue x = operand_of(exporter, op, 0);
    if (!check_float(exporter, op, tile_op_operand(op, 0)->type->scalar)) return;
    set_result(exporter, op, 0, export_compare(exporter, true, FCMP_UNO, result_type(exporter, op), x, x));
}

static MlirValue splat_bits(Exporter *exporter, const TileType *type, TileScalar scalar, uint64_t bits) {
    MlirType made = export_type_like(exporter, type, scalar);
    if (type->kind == TILE_TYPE_VECTOR || !mlirTypeIsAFloat(scalar_of(exporter, scalar)))
        return export_constant(exporter, made, export_splat_attribute(exporter, type, scalar, bits));
    TileScalar same_width = scalar == TILE_F16 ? TILE_U16 : (scalar == TILE_F32 ? TILE_U32 : TILE_U64);
    MlirValue integer = export_constant(exporter, scalar_of(exporter, same_width),
                                        mlirIntegerAttrGet(scalar_of(exporter, same_width), (int64_t)bits));
    return export_build(exporter, "llvm.bitcast", made, VALUES(integer), NO_ATTRIBUTES);
}

void export_isinf(Exporter *exporter, const TileOp *op) {
    const TileType *type = tile_op_operand(op, 0)->type;
    if (!check_float(exporter, op, type->scalar)) return;
    MlirValue magnitude = export_build(exporter, "llvm.intr.fabs", export_type(exporter, type),
                                       VALUES(operand_of(exporter, op, 0)), NO_ATTRIBUTES);
    uint64_t infinity = tile_scalar_greatest(type->scalar);
    MlirValue bound = splat_bits(exporter, type, type->scalar, infinity);
    set_result(exporter, op, 0, export_compare(exporter, true, FCMP_OEQ, result_type(exporter, op), magnitude, bound));
}

/* ---- convert ---- */

/* A conversion to bool is x != 0, which is true for NaN. */
static MlirValue convert_to_bool(Exporter *exporter, const TileOp *op, const TileType *from) {
    bool is_float = tile_scalar_is_float(from->scalar);
    MlirValue zero = splat_bits(exporter, from, from->scalar, 0);
    return export_compare(exporter, is_float, is_float ? FCMP_UNE : ICMP_NE, result_type(exporter, op),
                          operand_of(exporter, op, 0), zero);
}

/* Truncates and saturates, NaN becomes 0. */
static MlirValue convert_to_integer(Exporter *exporter, const TileOp *op, TileScalar to) {
    bool is_signed = tile_scalar_class(to) == TILE_CLASS_SIGNED;
    return export_intrinsic(exporter, is_signed ? "llvm.fptosi.sat" : "llvm.fptoui.sat", result_type(exporter, op),
                            VALUES(operand_of(exporter, op, 0)));
}

static MlirValue build_select(Exporter *exporter, MlirValue condition, MlirValue x, MlirValue y) {
    return export_build(exporter, "llvm.select", mlirValueGetType(x), VALUES(condition, x, y), NO_ATTRIBUTES);
}

/* The same for vectors on x86, whose instruction does not saturate; LLVM would convert lane by lane. */
static MlirValue convert_lanes(Exporter *exporter, const TileOp *op, const TileType *from, TileScalar to) {
    bool is_signed = tile_scalar_class(to) == TILE_CLASS_SIGNED;
    unsigned bits = tile_scalar_bits(to) - is_signed;
    double limit = ldexp(1, (int)bits);
    MlirValue x = operand_of(exporter, op, 0);
    MlirType logical = export_type_like(exporter, from, TILE_BOOL), type = result_type(exporter, op);
    MlirValue zero = splat_bits(exporter, from, from->scalar, 0);
    MlirValue hi = splat_bits(exporter, from, from->scalar, tile_scalar_from_double(from->scalar, limit));
    MlirValue lo = splat_bits(exporter, from, from->scalar, tile_scalar_from_double(from->scalar, is_signed ? -limit : 0));
    MlirValue below = export_compare(exporter, true, FCMP_OLT, logical, x, hi);
    MlirValue above = export_compare(exporter, true, FCMP_OGE, logical, x, lo);
    MlirValue inside = export_build(exporter, "llvm.and", logical, VALUES(below, above), NO_ATTRIBUTES);
    MlirValue result = export_build(exporter, is_signed ? "llvm.fptosi" : "llvm.fptoui", type,
                                    VALUES(build_select(exporter, inside, x, zero)), NO_ATTRIBUTES);
    uint64_t greatest = UINT64_MAX >> (64 - bits);
    result = build_select(exporter, export_compare(exporter, true, FCMP_OGE, logical, x, hi),
                          splat_bits(exporter, from, to, greatest), result);
    if (!is_signed) return result;
    return build_select(exporter, export_compare(exporter, true, FCMP_OLT, logical, x, lo),
                        splat_bits(exporter, from, to, greatest + 1), result);
}

/* Other conversions; NULL: the types have the same representation. */
static const char *conversion_name(TileScalar from, TileScalar to) {
    unsigned from_bits = tile_scalar_bits(from), to_bits = tile_scalar_bits(to);
    bool from_signed = tile_scalar_class(from) == TILE_CLASS_SIGNED;
    if (tile_scalar_is_float(from))
        return from_bits == to_bits ? NULL : (from_bits < to_bits ? "llvm.fpext" : "llvm.fptrunc");
    if (tile_scalar_is_float(to)) return from_signed ? "llvm.sitofp" : "llvm.uitofp";
    if (from_bits == to_bits) return NULL;
    return from_bits > to_bits ? "llvm.trunc" : (from_signed ? "llvm.sext" : "llvm.zext");
}

/* Are two registers of words narrowed to one of halves? One shuffle does that, where LLVM 22 makes five instructions of a
 * truncation: each register is narrowed, and the two are put together. */
static bool narrows_registers(const Exporter *exporter, const TileType *from, const TileType *to) {
    if (!is_x86(exporter) || !exporter->target->has_masks || from->kind != TILE_TYPE_VECTOR) return false;
    bool words = tile_scalar_is_int(from->scalar) && tile_scalar_is_int(to->scalar) && tile_scalar_bits(from->scalar) == 32 &&
                 tile_scalar_bits(to->scalar) == 16;
    return words && (uint64_t)from->extent[0] * 2 >= exporter->target->vector_bytes;
}

/* The lower halves of all words. */
static MlirValue lower_halves(Exporter *exporter, const TileType *to, MlirValue x) {
    TileType halves = *to;
    halves.extent[0] *= 2;
    int32_t *mask = TILE_NEW_ARRAY(exporter->bridge->arena, int32_t, to->extent[0]);
    for (int64_t i = 0; i < to->extent[0]; i++) mask[i] = (int32_t)(2 * i);
    x = export_build(exporter, "llvm.bitcast", export_type_like(exporter, &halves, to->scalar), VALUES(x), NO_ATTRIBUTES);
    return export_build(exporter, "llvm.shufflevector", export_type(exporter, to), VALUES(x, x),
                        ATTRIBUTES(named(exporter, NAME_MASK, mlirDenseI32ArrayGet(exporter->mlir, to->extent[0], mask))));
}

void export_convert(Exporter *exporter, const TileOp *op) {
    const TileType *from = tile_op_operand(op, 0)->type, *to = tile_op_result(op, 0)->type;
    MlirValue x = operand_of(exporter, op, 0);
    if (from != to) {
        if (!check_float(exporter, op, from->scalar) || !check_float(exporter, op, to->scalar)) return;
        const char *name = conversion_name(from->scalar, to->scalar);
        if (to->scalar == TILE_BOOL)
            x = convert_to_bool(exporter, op, from);
        else if (narrows_registers(exporter, from, to))
            x = lower_halves(exporter, to, x);
        else if (tile_scalar_is_float(from->scalar) && !tile_scalar_is_float(to->scalar))
            x = is_x86(exporter) && from->kind == TILE_TYPE_VECTOR && from->scalar != TILE_F16
                    ? convert_lanes(exporter, op, from, to->scalar)
                    : convert_to_integer(exporter, op, to->scalar);
        else if (name)
            x = export_build(exporter, name, result_type(exporter, op), VALUES(x), NO_ATTRIBUTES);
    }
    set_result(exporter, op, 0, x);
}

void export_bitcast(Exporter *exporter, const TileOp *op) {
    MlirValue x = operand_of(exporter, op, 0);
    MlirType type = result_type(exporter, op);
    bool same = mlirTypeEqual(mlirValueGetType(x), type);
    set_result(exporter, op, 0, same ? x : export_build(exporter, "llvm.bitcast", type, VALUES(x), NO_ATTRIBUTES));
}

/* The lanes [first, first + count) of the concatenation of two vectors. */
static MlirValue take_lanes(Exporter *exporter, MlirType type, MlirValue a, MlirValue b, int64_t first, int64_t count) {
    int32_t *mask = TILE_NEW_ARRAY(exporter->bridge->arena, int32_t, count);
    for (int64_t i = 0; i < count; i++) mask[i] = (int32_t)(first + i);
    return export_build(exporter, "llvm.shufflevector", type, VALUES(a, b),
                        ATTRIBUTES(named(exporter, NAME_MASK, mlirDenseI32ArrayGet(exporter->mlir, count, mask))));
}

static const char *vector_constraint(const Exporter *exporter) { return is_x86(exporter) ? "v" : "w"; }

/* An empty asm that reads and writes `count` registers. It is opaque to the optimiser, and never reordered with
 * another, so that groups of vectors are computed in lockstep. */
static void build_empty_asm(Exporter *exporter, const char *constraint, MlirType type, unsigned count,
                            MlirValue *values) {
    TileText constraints = {.arena = exporter->bridge->arena};
    for (unsigned i = 0; i < count; i++) tile_text_format(&constraints, i ? ",=%s" : "=%s", constraint);
    for (unsigned i = 0; i < count; i++) tile_text_format(&constraints, ",%u", i);
    MlirType types[MAX_ASM_REGISTERS];
    for (unsigned i = 0; i < count; i++) types[i] = type;
    MlirType result = count == 1 ? type : mlirLLVMStructTypeLiteralGet(exporter->mlir, count, types, false);
    MlirAttribute text = mlirStringAttrGet(exporter->mlir, text_ref(tile_text_get(&constraints)));
    MlirValue all = export_build(exporter, "llvm.inline_asm", result, count, values,
                                 ATTRIBUTES(named(exporter, NAME_ASM, mlirStringAttrGet(exporter->mlir, text_ref(""))),
                                            named(exporter, NAME_CONSTRAINTS, text),
                                            named(exporter, NAME_SIDE_EFFECTS, exporter->bridge->unit)));
    for (int64_t i = 0; i < count; i++)
        values[i] =
            count == 1
                ? all
                : export_build(exporter, "llvm.extractvalue", type, VALUES(all),
                               ATTRIBUTES(named(exporter, NAME_POSITION, mlirDenseI64ArrayGet(exporter->mlir, 1, &i))));
}

/* A vector of several registers passes through one asm, so that no part of it is computed ahead. */
static MlirValue build_wide_opaque(Exporter *exporter, const TileType *type, MlirValue x, unsigned count) {
    int64_t lanes = type->extent[0] / count;
    TileType part = *type;
    part.extent[0] = lanes;
    MlirType register_type = export_type_like(exporter, &part, type->scalar);
    MlirValue parts[MAX_ASM_REGISTERS];
    for (unsigned i = 0; i < count; i++) parts[i] = take_lanes(exporter, register_type, x, x, i * lanes, lanes);
    build_empty_asm(exporter, vector_constraint(exporter), register_type, count, parts);
    for (; count > 1; count /= 2) {
        lanes *= 2;
        part.extent[0] = lanes;
        for (unsigned i = 0; i < count / 2; i++)
            parts[i] = take_lanes(exporter, export_type_like(exporter, &part, type->scalar), parts[2 * i],
                                  parts[2 * i + 1], 0, lanes);
    }
    return parts[0];
}

void export_opaque(Exporter *exporter, const TileOp *op) { exporter->family->opaque(exporter, op); }

/* Each lane is a register of its own. */
static MlirValue hold_lanes(Exporter *exporter, const TileType *type, MlirValue x) {
    MlirType lane_type = scalar_of(exporter, type->scalar), vector = export_type(exporter, type);
    for (int64_t i = 0; i < tile_type_lanes(type); i++) {
        MlirValue lane = type->kind == TILE_TYPE_SCALAR ? x : export_lane(exporter, x, lane_type, i);
        lane = export_asm(exporter, "", "=f,0", lane_type, 1, &lane);
        x = type->kind == TILE_TYPE_SCALAR ? lane : export_insert_lane(exporter, x, vector, lane, i);
    }
    return x;
}

/* Threads need no lockstep. */
void export_thread_opaque(Exporter *exporter, const TileOp *op) {
    const TileType *type = tile_op_result(op, 0)->type;
    MlirValue x = operand_of(exporter, op, 0);
    if (type->scalar == TILE_F32 && tile_op_get(op, TILE_ATTRIBUTE_EACH)) x = hold_lanes(exporter, type, x);
    if (type->kind == TILE_TYPE_SCALAR && type->scalar == TILE_I64)
        build_empty_asm(exporter, "l", result_type(exporter, op), 1, &x);
    set_result(exporter, op, 0, x);
}

void export_vector_opaque(Exporter *exporter, const TileOp *op) {
    const TileType *type = tile_op_result(op, 0)->type;
    MlirValue x = operand_of(exporter, op, 0);
    uint64_t width = exporter->target->vector_bytes * 8u, count = 1;
    bool vector = type->kind == TILE_TYPE_VECTOR, fits = type->scalar != TILE_BOOL && type->scalar != TILE_F16;
    if (vector) {
        uint64_t bits = (uint64_t)type->extent[0] * tile_scalar_bits(type->scalar);
        count = bits > width ? bits / width : 1;
        fits = type->scalar != TILE_BOOL && !type->scalable && bits >= 128 && (bits & (bits - 1)) == 0 &&
               count <= MAX_ASM_REGISTERS;
    }
    if (!fits) {
        export_fail(exporter, TILE_INTERNAL, op, "the value does not fill registers of the target");
        return;
    }
    if (count > 1)
        x = build_wide_opaque(exporter, type, x, (unsigned)count);
    else
        build_empty_asm(exporter, vector || tile_scalar_is_float(type->scalar) ? vector_constraint(exporter) : "r",
                        result_type(exporter, op), 1, &x);
    set_result(exporter, op, 0, x);
}

/* ---- building and reshaping vectors ---- */

void export_const(Exporter *exporter, const TileOp *op) {
    const TileType *type = tile_op_result(op, 0)->type;
    uint64_t bits = tile_op_get(op, TILE_ATTRIBUTE_VALUE)->bits;
    set_result(exporter, op, 0, splat_bits(exporter, type, type->scalar, bits));
}

void export_splat(Exporter *exporter, const TileOp *op) {
    const TileType *type = tile_op_result(op, 0)->type;
    uint64_t bits;
    MlirValue result;
    if (type->kind != TILE_TYPE_VECTOR)
        result = operand_of(exporter, op, 0);
    else if (tile_value_bits(tile_op_operand(op, 0), &bits))
        result = splat_bits(exporter, type, type->scalar, bits);
    else
        result = export_broadcast(exporter, operand_of(exporter, op, 0), export_type(exporter, type), type->extent[0]);
    set_result(exporter, op, 0, result);
}

/* 0, 1, 2, .. in an integer type of the given width. */
static MlirValue build_iota(Exporter *exporter, const TileType *type, TileScalar scalar) {
    MlirType vector = export_type_like(exporter, type, scalar);
    if (type->scalable) return export_build(exporter, "llvm.intr.stepvector", vector, NO_VALUES, NO_ATTRIBUTES);
    size_t lanes = (size_t)type->extent[0], bytes = tile_scalar_bytes(scalar);
    unsigned char *elements = TILE_NEW_ARRAY(exporter->bridge->arena, unsigned char, lanes *bytes);
    for (size_t i = 0; i < lanes; i++) memcpy(elements + i * bytes, &i, bytes);
    return export_constant(exporter, vector, mlirDenseElementsAttrRawBufferGet(vector, lanes * bytes, elements));
}

void export_iota(Exporter *exporter, const TileOp *op) {
    const TileType *type = tile_op_result(op, 0)->type;
    set_result(exporter, op, 0, build_iota(exporter, type, type->scalar));
}

void export_extract(Exporter *exporter, const TileOp *op) {
    MlirValue lane = export_lane_number(exporter, tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0));
    set_result(exporter, op, 0,
               export_build(exporter, "llvm.extractelement", result_type(exporter, op),
                            VALUES(operand_of(exporter, op, 0), lane), NO_ATTRIBUTES));
}

void export_insert(Exporter *exporter, const TileOp *op) {
    MlirValue lane = export_lane_number(exporter, tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0));
    set_result(exporter, op, 0,
               export_build(exporter, "llvm.insertelement", result_type(exporter, op),
                            VALUES(operand_of(exporter, op, 0), operand_of(exporter, op, 1), lane), NO_ATTRIBUTES));
}

void export_shuffle(Exporter *exporter, const TileOp *op) {
    const TileAttribute *lanes = tile_op_get(op, TILE_ATTRIBUTE_AXES);
    int32_t *mask = TILE_NEW_ARRAY(exporter->bridge->arena, int32_t, lanes->count);
    for (unsigned i = 0; i < lanes->count; i++) mask[i] = (int32_t)lanes->integers[i];
    MlirType type = result_type(exporter, op);
    MlirNamedAttribute attribute = named(exporter, NAME_MASK, mlirDenseI32ArrayGet(exporter->mlir, lanes->count, mask));
    MlirValue result = export_build(exporter, "llvm.shufflevector", type,
                                    VALUES(operand_of(exporter, op, 0), operand_of(exporter, op, 1)), 1, &attribute);
    bool scalar = tile_op_result(op, 0)->type->kind == TILE_TYPE_SCALAR;
    set_result(exporter, op, 0, result);
    if (scalar) export_fail(exporter, TILE_INTERNAL, op, "a shuffle to one lane is an extract");
}

/* The integer type with the width of the elements that a mask selects: compared in it, the lanes of the mask have the
 * same layout in registers as the elements. */
static TileScalar chosen_integer(const TileValue *mask) {
    for (const TileUse *use = mask->first_use; use; use = use->next) {
        const TileOp *user = use->user;
        const TileType *type = user->id == TILE_OP_STORE    ? tile_op_operand(user, 0)->type
                               : user->id == TILE_OP_SELECT ? tile_op_operand(user, 1)->type
                               : user->result_count         ? tile_op_result(user, 0)->type
                                                            : mask->type;
        switch (tile_scalar_bits(type->scalar)) {
        case 8: return type->extent[0] < 128 ? TILE_I8 : TILE_I16;
        case 16: return TILE_I16;
        case 32: return TILE_I32;
        case 64: return TILE_I64;
        default: break;
        }
    }
    return TILE_I32;
}

/* If masks are predicates, the compared integers must fill a register: LLVM 22 compares a part of a register as a
 * whole, with true for the other lanes, and a shuffle that shifts zeros into the mask (kshiftrw) shifts in these
 * instead. */
static TileScalar mask_integer(const Exporter *exporter, const TileValue *mask) {
    enum { REGISTER_BITS = 128 };
    TileScalar integer = chosen_integer(mask);
    int64_t bits = REGISTER_BITS / mask->type->extent[0];
    if (!exporter->target->has_masks || bits <= (int64_t)tile_scalar_bits(integer)) return integer;
    return bits >= 64 ? TILE_I64 : bits == 32 ? TILE_I32 : TILE_I16;
}

/* The number of lanes is known at run time only. A limit below the base leaves no lane active; the intrinsic's
 * comparison is unsigned. */
static MlirValue build_scalable_mask(Exporter *exporter, const TileOp *op) {
    MlirType i64 = scalar_of(exporter, TILE_I64);
    MlirValue zero = export_lane_number(exporter, 0), base = operand_of(exporter, op, 0);
    MlirValue limit = export_build(exporter, "llvm.intr.smax", i64, VALUES(operand_of(exporter, op, 1), base), NO_ATTRIBUTES);
    MlirValue left = export_build(exporter, "llvm.sub", i64, VALUES(limit, base), NO_ATTRIBUTES);
    return export_build(exporter, "llvm.intr.get.active.lane.mask", result_type(exporter, op), VALUES(zero, left),
                        NO_ATTRIBUTES);
}

/* The lanes before `left` as bits of a word, which become a predicate by one move. */
static MlirValue build_bit_mask(Exporter *exporter, const TileType *type, MlirValue left) {
    int64_t lanes = type->extent[0];
    MlirType i64 = scalar_of(exporter, TILE_I64), word = mlirIntegerTypeGet(exporter->mlir, (unsigned)lanes);
    MlirValue one = export_lane_number(exporter, 1);
    MlirValue bits = export_build(exporter, "llvm.shl", i64, VALUES(one, left), NO_ATTRIBUTES);
    bits = export_build(exporter, "llvm.sub", i64, VALUES(bits, one), NO_ATTRIBUTES);
    if (lanes == WORD_BITS) { /* a shift by all bits is undefined */
        MlirValue all = export_build(exporter, "llvm.sub", i64, VALUES(export_lane_number(exporter, 0), one), NO_ATTRIBUTES);
        MlirValue some = export_compare(exporter, false, ICMP_ULT, scalar_of(exporter, TILE_BOOL), left, export_lane_number(exporter, WORD_BITS));
        bits = export_build(exporter, "llvm.select", i64, VALUES(some, bits, all), NO_ATTRIBUTES);
    } else {
        bits = export_build(exporter, "llvm.trunc", word, VALUES(bits), NO_ATTRIBUTES);
    }
    return export_same_bits(exporter, bits, export_type(exporter, type));
}

/* Comparing lane numbers takes an instruction for each register of them, and one to put its bits beside those of the others. */
static bool has_bit_masks(const Exporter *exporter, int64_t lanes, TileScalar number) {
    bool several = lanes * tile_scalar_bytes(number) > exporter->target->vector_bytes;
    return exporter->target->has_masks && is_x86(exporter) && several && (lanes == WORD_BITS / 4 || lanes == WORD_BITS / 2 || lanes == WORD_BITS);
}

/* Lane numbers compared with limit - base, clamped to the number of lanes. The greater of limit and base is no less than the base, and their
 * difference a number of 64 bits without a sign, whatever they are. */
void export_mask_lt(Exporter *exporter, const TileOp *op) {
    const TileType *type = tile_op_result(op, 0)->type;
    int64_t lanes = type->extent[0];
    TileScalar narrow = mask_integer(exporter, tile_op_result(op, 0));
    MlirType i64 = scalar_of(exporter, TILE_I64);
    if (type->scalable) {
        set_result(exporter, op, 0, build_scalable_mask(exporter, op));
        return;
    }
    MlirValue base = operand_of(exporter, op, 0), limit = operand_of(exporter, op, 1);
    limit = export_build(exporter, "llvm.intr.smax", i64, VALUES(limit, base), NO_ATTRIBUTES);
    MlirValue left = export_build(exporter, "llvm.sub", i64, VALUES(limit, base), NO_ATTRIBUTES);
    left = export_build(exporter, "llvm.intr.umin", i64, VALUES(left, export_lane_number(exporter, lanes)), NO_ATTRIBUTES);
    if (has_bit_masks(exporter, lanes, narrow)) {
        set_result(exporter, op, 0, build_bit_mask(exporter, type, left));
        return;
    }
    if (narrow != TILE_I64)
        left = export_build(exporter, "llvm.trunc", scalar_of(exporter, narrow), VALUES(left), NO_ATTRIBUTES);
    MlirValue bound = export_broadcast(exporter, left, export_type_like(exporter, type, narrow), lanes);
    MlirValue numbers = build_iota(exporter, type, narrow);
    set_result(exporter, op, 0, export_compare(exporter, false, ICMP_SLT, export_type(exporter, type), numbers, bound));
}

void export_vscale(Exporter *exporter, const TileOp *op) {
    set_result(exporter, op, 0,
               export_build(exporter, "llvm.intr.vscale", result_type(exporter, op), NO_VALUES, NO_ATTRIBUTES));
}

/* Frozen: the result is the condition of a branch, which must not depend on poison lanes. */
void export_any_lane(Exporter *exporter, const TileOp *op) {
    const TileType *type = tile_op_operand(op, 0)->type;
    MlirValue x = export_build(exporter, "llvm.freeze", export_type(exporter, type),
                               VALUES(operand_of(exporter, op, 0)), NO_ATTRIBUTES);
    if (type->kind == TILE_TYPE_VECTOR)
        x = export_build(exporter, "llvm.intr.vector.reduce.or", result_type(exporter, op), VALUES(x), NO_ATTRIBUTES);
    set_result(exporter, op, 0, x);
}
