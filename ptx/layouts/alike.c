#include "ptx/layouts/alike.h"

#include "lang/ir/build.h"

typedef struct Alike {
    TileIndices *indices;
    int64_t size;
    unsigned left; /* values that are still looked at */
} Alike;

static bool is_alike(Alike *alike, const TileValue *value);

static bool has_last_of(const TileType *a, const TileType *b) {
    return tile_type_is_tile(a) && tile_type_is_tile(b) && a->extent[a->rank - 1] == b->extent[b->rank - 1];
}

static bool is_multiple(Alike *alike, const TileValue *value) {
    TileIndexRange range = tile_index_range(alike->indices, value);
    return !range.because && range.multiple % alike->size == 0;
}

/* Is it a multiple of the groups' size in all elements, as far as a scalar or a constant says? */
static bool is_of_groups(Alike *alike, const TileValue *value) {
    int64_t number;
    const TileOp *op = value->op;
    if (tile_value_integer(value, &number)) return number % alike->size == 0;
    while (op && (op->id == TILE_OP_CONVERT || op->id == TILE_OP_BITCAST)) op = tile_op_operand(op, 0)->op;
    return op && op->id == TILE_OP_SPLAT && is_multiple(alike, tile_op_operand(op, 0));
}

/* Is it the place along the last axis, and a multiple of the groups' size that the elements of a group share? */
static bool is_place(Alike *alike, const TileValue *value) {
    const TileOp *op = value->op;
    if (!op || !alike->left) return false;
    alike->left--;
    switch (op->id) {
    case TILE_OP_IOTA: return (unsigned)tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0) + 1 == value->type->rank;
    case TILE_OP_CONVERT:
    case TILE_OP_BITCAST: return is_place(alike, tile_op_operand(op, 0));
    case TILE_OP_RESHAPE:
    case TILE_OP_BROADCAST: return has_last_of(value->type, tile_op_operand(op, 0)->type) && is_place(alike, tile_op_operand(op, 0));
    case TILE_OP_ADD:
        for (unsigned i = 0; i < 2; i++)
            if (is_of_groups(alike, tile_op_operand(op, i)) && is_place(alike, tile_op_operand(op, 1 - i))) return true;
    }
    return false;
}

/* Groups do not reach over the ends of rows that are put together, or parted. */
static bool keeps_groups(const Alike *alike, const TileValue *value, const TileValue *from) {
    if (!tile_type_is_tile(from->type)) return false;
    return value->type->extent[value->type->rank - 1] % alike->size == 0 && from->type->extent[from->type->rank - 1] % alike->size == 0;
}

static bool are_alike(Alike *alike, const TileOp *op) {
    for (unsigned i = 0; i < op->operand_count; i++)
        if (!is_alike(alike, tile_op_operand(op, i))) return false;
    return true;
}

static bool is_alike(Alike *alike, const TileValue *value) {
    const TileOp *op = value->op;
    if (!tile_type_is_tile(value->type) || value->type->extent[value->type->rank - 1] == 1) return true;
    if (!op || !alike->left) return false;
    alike->left--;
    switch (op->id) {
    case TILE_OP_CONST: return tile_value_bits(value, &(uint64_t){0});
    case TILE_OP_SPLAT: return true;
    case TILE_OP_IOTA: return (unsigned)tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0) + 1 != value->type->rank;
    case TILE_OP_RESHAPE: return keeps_groups(alike, value, tile_op_operand(op, 0)) && is_alike(alike, tile_op_operand(op, 0));
    case TILE_OP_BROADCAST:
    case TILE_OP_CONVERT_LAYOUT: return is_alike(alike, tile_op_operand(op, 0));
    case TILE_OP_IF:
        for (unsigned i = 0; i < op->region_count; i++)
            if (!is_alike(alike, tile_op_operand(op->regions[i].last, value->index))) return false;
        return true;
    case TILE_OP_DIV: /* no group reaches over a multiple of the divisor */
        if (is_of_groups(alike, tile_op_operand(op, 1)) && is_place(alike, tile_op_operand(op, 0))) return true;
    }
    return tile_op_info((TileOpId)op->id)->class == TILE_CLASS_ELEMENTWISE && are_alike(alike, op);
}

bool gpu_is_alike(TileIndices *indices, const TileValue *value, int64_t size) {
    enum { MOST_VALUES = 64 };
    Alike alike = {indices, size, MOST_VALUES};
    return is_alike(&alike, value);
}
