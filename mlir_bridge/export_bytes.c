/* Bytes that become f32 on GPUs. Of two bytes in the lower half of a word the first is the mantissa of 2^23 and more, and the other one, where it
 * stands, that of 2^15 and more: one instruction for each, which adds 128 to a byte with a sign, and an addition of floats, which takes off what is
 * too much. Conversions take eight times as long as additions. */
#include "mlir_bridge/export.h"

enum { SIGN = 128, LOWER = 0x4b000000, UPPER = 0x47000000, BYTE = 0xff, HALF_BITS = 16, IN_HALF = 2, IN_WORD = 4 };

static MlirValue word(Exporter *exporter, int64_t value) { return export_constant(exporter, scalar_of(exporter, TILE_I32), export_integer(exporter, TILE_I32, value)); }

/* Of how many lanes that are loaded or computed together is this one? */
static int64_t count_together(const TileValue *x, int64_t lane) {
    while (x->op && (x->op->id == TILE_OP_INSERT || x->op->id == TILE_OP_SPLAT)) {
        bool own = x->op->id == TILE_OP_SPLAT || tile_op_integer(x->op, TILE_ATTRIBUTE_AXIS, 0) == lane;
        x = tile_op_operand(x->op, own && x->op->id == TILE_OP_INSERT ? 1 : 0);
        if (x->type->kind == TILE_TYPE_SCALAR) return x->op && x->op->id == TILE_OP_EXTRACT ? tile_type_lanes(tile_op_operand(x->op, 0)->type) : 1;
    }
    return tile_type_lanes(x->type);
}

/* So many lanes as an integer. */
static MlirValue take(Exporter *exporter, const TileOp *op, int64_t first, int64_t count, TileScalar as) {
    TileScalar from = tile_op_operand(op, 0)->type->scalar;
    MlirType byte = scalar_of(exporter, from), bytes = export_vector_of(exporter, from, count);
    MlirValue x = operand_of(exporter, op, 0), taken = export_empty_vector(exporter, bytes);
    for (int64_t i = 0; i < count; i++) taken = export_insert_lane(exporter, taken, bytes, export_lane(exporter, x, byte, first + i), i);
    return export_same_bits(exporter, taken, scalar_of(exporter, as));
}

/* A word whose lower half has these two lanes. */
static MlirValue take_pair(Exporter *exporter, const TileOp *op, int64_t first) {
    const TileValue *x = tile_op_operand(op, 0);
    MlirType i32 = scalar_of(exporter, TILE_I32);
    int64_t place = first % IN_WORD;
    if (first - place + IN_WORD > tile_type_lanes(x->type) || count_together(x, first) % IN_WORD)
        return export_build(exporter, "llvm.zext", i32, VALUES(take(exporter, op, first, IN_HALF, TILE_I16)), NO_ATTRIBUTES);
    MlirValue four = take(exporter, op, first - place, IN_WORD, TILE_I32);
    return place ? export_build(exporter, "llvm.lshr", i32, VALUES(four, word(exporter, HALF_BITS)), NO_ATTRIBUTES) : four;
}

static MlirValue to_float(Exporter *exporter, MlirValue pair, bool upper, int64_t sign) {
    MlirType i32 = scalar_of(exporter, TILE_I32), f32 = scalar_of(exporter, TILE_F32);
    unsigned shift = upper ? HALF_BITS / IN_HALF : 0;
    MlirValue mask = word(exporter, (int64_t)BYTE << shift), more = word(exporter, (upper ? UPPER : LOWER) + (sign << shift));
    MlirValue bits = export_pure_asm(exporter, "lop3.b32 $0, $1, $2, $3, 0x6a;", "=r,r,n,r", i32, VALUES(pair, mask, more)); /* (pair & mask) ^ more */
    return export_build(exporter, "llvm.fsub", f32, VALUES(export_same_bits(exporter, bits, f32), export_same_bits(exporter, more, f32)), NO_ATTRIBUTES);
}

bool export_bytes_to_floats(Exporter *exporter, const TileOp *op) {
    const TileType *from = op->operand_count ? tile_op_operand(op, 0)->type : NULL;
    bool bytes = from && (from->scalar == TILE_I8 || from->scalar == TILE_U8) && from->kind == TILE_TYPE_VECTOR && tile_type_lanes(from) % IN_HALF == 0;
    if (!bytes || op->id != TILE_OP_CONVERT || op->results[0].type->scalar != TILE_F32) return false;
    MlirType vector = export_type(exporter, op->results[0].type);
    MlirValue result = export_empty_vector(exporter, vector);
    for (int64_t i = 0; i < tile_type_lanes(from); i += IN_HALF) {
        MlirValue pair = take_pair(exporter, op, i);
        for (int upper = 0; upper < IN_HALF; upper++) {
            MlirValue number = to_float(exporter, pair, upper, from->scalar == TILE_I8 ? SIGN : 0);
            result = export_insert_lane(exporter, result, vector, number, i + upper);
        }
    }
    set_result(exporter, op, 0, result);
    return true;
}
