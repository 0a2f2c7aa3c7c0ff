/* The ops of a block, by the mapping table. */
#include "mlir_bridge/export.h"

#include <string.h>

static void export_direct(Exporter *exporter, const TileOp *op, const char *const names[4]) {
    const TileValue *result = tile_op_result(op, 0);
    TileScalar scalar = result->type->scalar;
    const char *name = NULL;
    switch (tile_scalar_class(scalar)) {
    case TILE_CLASS_FLOAT: name = names[0]; break;
    case TILE_CLASS_SIGNED: name = names[1]; break;
    case TILE_CLASS_UNSIGNED: name = names[2]; break;
    case TILE_CLASS_BOOL: name = names[3]; break;
    }
    bool storage_only = tile_scalar_is_float(scalar) && scalar != TILE_F16 && scalar != TILE_F32 && scalar != TILE_F64;
    if (!name || (storage_only && op->id != TILE_OP_SELECT)) {
        export_fail(exporter, TILE_INTERNAL, op, "an earlier pass had to expand it for %s", tile_scalar_name(scalar));
        return;
    }
    MlirValue operands[3];
    for (unsigned i = 0; i < op->operand_count; i++) operands[i] = operand_of(exporter, op, i);
    set_result(
        exporter, op, 0,
        export_build(exporter, name, export_type(exporter, result->type), op->operand_count, operands, NO_ATTRIBUTES));
}

static void export_comparison(Exporter *exporter, const TileOp *op, int64_t float_predicate, int64_t signed_predicate,
                              int64_t unsigned_predicate) {
    TileScalar scalar = tile_op_operand(op, 0)->type->scalar;
    TileScalarClass class = tile_scalar_class(scalar);
    bool is_float = class == TILE_CLASS_FLOAT;
    if (is_float && tile_scalar_bits(scalar) < 16 + (scalar == TILE_BF16)) {
        export_fail(exporter, TILE_INTERNAL, op, "an earlier pass had to expand it for %s", tile_scalar_name(scalar));
        return;
    }
    int64_t predicate =
        is_float ? float_predicate : (class == TILE_CLASS_SIGNED ? signed_predicate : unsigned_predicate);
    set_result(exporter, op, 0,
               export_compare(exporter, is_float, predicate, export_type(exporter, tile_op_result(op, 0)->type),
                              operand_of(exporter, op, 0), operand_of(exporter, op, 1)));
}

static void export_op(Exporter *exporter, const TileOp *op) {
    if (exporter->family->instruction(exporter, op)) return;
    switch ((TileOpId)op->id) {
#define DIRECT(id, float_name, signed_name, unsigned_name, bool_name)                                                  \
    case TILE_OP_##id:                                                                                                 \
        export_direct(exporter, op, (const char *const[4]){float_name, signed_name, unsigned_name, bool_name});        \
        return;
#define COMPARE(id, float_predicate, signed_predicate, unsigned_predicate)                                             \
    case TILE_OP_##id:                                                                                                 \
        export_comparison(exporter, op, FCMP_##float_predicate, ICMP_##signed_predicate, ICMP_##unsigned_predicate);   \
        return;
#define CUSTOM(id, function)                                                                                           \
    case TILE_OP_##id:                                                                                                 \
        export_##function(exporter, op);                                                                               \
        return;
#define GONE(id, pass)                                                                                                 \
    case TILE_OP_##id:                                                                                                 \
        export_fail(exporter, TILE_INTERNAL, op, "the pass %s had to replace it", pass);                               \
        return;
#include "mlir_bridge/mapping.def"
#undef DIRECT
#undef COMPARE
#undef CUSTOM
#undef GONE
    default: export_fail(exporter, TILE_INTERNAL, op, "an op of tile form is left in machine form"); return;
    }
}

void export_block(Exporter *exporter, const TileBlock *block) {
    TileLocation last = {0};
    for (const TileOp *op = block->first; op && exporter->status == TILE_OK; op = op->next) {
        if (exporter->lines && op->location.file && memcmp(&last, &op->location, sizeof last) != 0) {
            last = op->location;
            exporter->location = export_location(exporter, last);
        }
        export_op(exporter, op);
        for (unsigned i = 0; i < op->result_count && exporter->status == TILE_OK; i++)
            export_variable(exporter, tile_op_result(op, i));
    }
}
