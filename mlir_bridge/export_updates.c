/* Atomic updates that give no old values: `red`, relaxed, of vectors too, in global or shared memory. They are asm, since
 * LLVM has none. */
#include <inttypes.h>
#include <stdio.h>

#include "mlir_bridge/export.h"

enum { MOST_REGISTERS = 4, LIST_BYTES = 64, TEXT_BYTES = 240 };

/* Registers of the instruction: 16 bits as pairs, where there are several. */
typedef struct Registers {
    MlirValue values[MOST_REGISTERS];
    unsigned count;
    const char *constraint, *type; /* of each */
} Registers;

static const char *integer_type(TileName update, const TileType *type) {
    bool wide = tile_scalar_bits(type->scalar) == 64;
    if (update == TILE_UPDATE_ADD || tile_scalar_class(type->scalar) == TILE_CLASS_UNSIGNED) return wide ? "u64" : "u32";
    return wide ? "s64" : "s32";
}

static Registers split_pairs(Exporter *exporter, MlirValue value, const TileType *type) {
    unsigned lanes = (unsigned)tile_type_lanes(type);
    bool is_half = type->scalar == TILE_F16;
    Registers registers = {.count = lanes > 1 ? lanes / 2 : 1, .constraint = lanes > 1 ? "r" : "h"};
    MlirType word = scalar_of(exporter, lanes > 1 ? TILE_I32 : TILE_I16);
    if (lanes == 1) {
        registers.type = is_half ? "f16" : "bf16";
        registers.values[0] = export_same_bits(exporter, value, word);
        return registers;
    }
    registers.type = is_half ? "f16x2" : "bf16x2";
    bool single = registers.count == 1;
    MlirValue words = export_same_bits(exporter, value,
                                       single ? word : export_vector_of(exporter, TILE_I32, registers.count));
    for (unsigned i = 0; i < registers.count; i++)
        registers.values[i] = single ? words : export_lane(exporter, words, word, i);
    return registers;
}

static Registers split_value(Exporter *exporter, const TileOp *op) {
    const TileValue *operand = tile_op_named(op, TILE_OPERAND_VALUE);
    const TileType *type = operand->type;
    MlirValue value = value_of(exporter, operand);
    TileName update = (TileName)tile_op_integer(op, TILE_ATTRIBUTE_UPDATE, TILE_UPDATE_ADD);
    if (type->scalar == TILE_F16 || type->scalar == TILE_BF16) return split_pairs(exporter, value, type);
    Registers registers = {.count = (unsigned)tile_type_lanes(type)};
    bool wide = tile_scalar_bits(type->scalar) == 64;
    if (tile_scalar_is_float(type->scalar)) {
        registers.type = wide ? "f64" : "f32";
        registers.constraint = wide ? "d" : "f";
    } else {
        registers.type = integer_type(update, type);
        registers.constraint = wide ? "l" : "r";
    }
    for (unsigned i = 0; i < registers.count && i < MOST_REGISTERS; i++)
        registers.values[i] = registers.count == 1
                                  ? value
                                  : export_lane(exporter, value, scalar_of(exporter, type->scalar), i);
    return registers;
}

/* Narrower floats are not flushed: `noftz`, which PTX wants to be said. */
static const char *operation(TileName update, TileScalar scalar) {
    if (scalar == TILE_F16 || scalar == TILE_BF16) return "add.noftz";
    return update == TILE_UPDATE_MIN ? "min" : update == TILE_UPDATE_MAX ? "max" : "add";
}

/* The types and sizes that the target's facts allow; gpu-machine asks them. */
static bool is_instruction(const TileOp *op) {
    const TileType *type = tile_op_named(op, TILE_OPERAND_VALUE)->type;
    int64_t lanes = tile_type_lanes(type), bytes = lanes * tile_scalar_bytes(type->scalar);
    bool narrow = type->scalar == TILE_F16 || type->scalar == TILE_BF16;
    bool fits = narrow || (bytes / lanes >= 4 && (lanes == 1 || type->scalar == TILE_F32));
    return fits && bytes <= 16 && (lanes & (lanes - 1)) == 0;
}

void export_atomic_update(Exporter *exporter, const TileOp *op) {
    if (!is_instruction(op)) {
        export_fail(exporter, TILE_INTERNAL, op, "there is no such instruction");
        return;
    }
    TileName update = (TileName)tile_op_integer(op, TILE_ATTRIBUTE_UPDATE, TILE_UPDATE_ADD);
    TileScalar scalar = tile_op_named(op, TILE_OPERAND_VALUE)->type->scalar;
    bool masked = tile_op_has_part(op, TILE_PARTS_MASK);
    Registers registers = split_value(exporter, op);
    ExportAddress place = export_address(exporter, op);
    MlirValue operands[MOST_REGISTERS + 2] = {place.address};
    char text[TEXT_BYTES], constraints[LIST_BYTES], list[LIST_BYTES] = "", vector[16] = "";
    bool shared = tile_op_operand(op, 0)->type->space == TILE_SPACE_SHARED;
    int at = snprintf(constraints, sizeof constraints, "l"), end = 0;
    for (unsigned i = 0; i < registers.count; i++) {
        operands[i + 1] = registers.values[i];
        at += snprintf(constraints + at, sizeof constraints - (size_t)at, ",%s", registers.constraint);
        end += snprintf(list + end, sizeof list - (size_t)end, "%s$%u", i ? ", " : "", i + 1);
    }
    unsigned count = registers.count + 1;
    bool several = registers.count > 1;
    if (several) snprintf(vector, sizeof vector, ".v%u", registers.count);
    char guard[16] = "";
    if (masked) {
        snprintf(guard, sizeof guard, "@$%u ", count);
        operands[count++] = named_of(exporter, op, TILE_OPERAND_MASK);
    }
    snprintf(text, sizeof text, "%sred.relaxed.%s.%s%s.%s [$0+%" PRId64 "], %s%s%s;", guard,
             shared ? "cta.shared" : "gpu.global", operation(update, scalar), vector, registers.type, place.offset, several ? "{" : "", list,
             several ? "}" : "");
    snprintf(constraints + at, sizeof constraints - (size_t)at, "%s,~{memory}", masked ? ",b" : "");
    export_asm(exporter, text, constraints, no_type(), count, operands);
}
