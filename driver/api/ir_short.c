/* Building kernels for include/tile/ir.h: calls that build several operations. All of them use the others, which ignore
 * NULL operands after an error. */
#include <stdio.h>

#include "base/limits.h"
#include "driver/compile/ir.h"

TileIrValue *tile_ir_unary(TileIr *ir, const char *op, TileIrValue *x) { return tile_ir_op(ir, op, &x, 1, NULL, NULL); }

TileIrValue *tile_ir_binary(TileIr *ir, const char *op, TileIrValue *x, TileIrValue *y) {
    TileIrValue *operands[] = {x, y};
    return tile_ir_op(ir, op, operands, 2, NULL, NULL);
}

TileIrValue *tile_ir_convert(TileIr *ir, TileIrValue *x, const char *element) {
    const TileType *type = x ? tile_ir_with_element(ir, x->type, element) : NULL;
    return type && type == x->type ? x : tile_ir_op(ir, "convert", &x, 1, NULL, type);
}

TileIrValue *tile_ir_reduce(TileIr *ir, const char *kind, TileIrValue *x, int64_t axis) {
    char attributes[64];
    snprintf(attributes, sizeof attributes, "kind = %.20s, axis = %lld", kind ? kind : "", (long long)axis);
    return tile_ir_op(ir, "reduce", &x, 1, attributes, NULL);
}

TileIrValue *tile_ir_broadcast(TileIr *ir, TileIrValue *x, const TileIrType *type) {
    if (!x || !type) return tile_ir_op(ir, "broadcast", &x, 1, NULL, type);
    const char *element = tile_scalar_name(x->type->scalar);
    int64_t extents[TILE_MAX_TILE_RANK];
    unsigned missing = type->rank > x->type->rank ? type->rank - x->type->rank : 0;
    const TileType *wanted = tile_ir_with_element(ir, type, element);
    if (x->type == wanted) return x;
    if (tile_type_is_scalar(x->type)) return tile_ir_op(ir, "splat", &x, 1, NULL, wanted);
    for (unsigned i = 0; i < type->rank; i++) extents[i] = i < missing ? 1 : x->type->extent[i - missing];
    if (missing) x = tile_ir_op(ir, "reshape", &x, 1, NULL, tile_ir_tile_type(ir, element, extents, type->rank));
    return x && x->type == wanted ? x : tile_ir_op(ir, "broadcast", &x, 1, NULL, wanted);
}

TileIrValue *tile_ir_tiles(TileIr *ir, TileIrValue *extent, int64_t block) {
    if (block < 1 || block > TILE_MAX_EXTENT) tile_ir_mistake(ir, "tile_ir_tiles: a block has 1 to 2**47 elements");
    if (tile_ir_status(ir) != TILE_OK) return NULL;
    TileIrValue *size = tile_ir_integer(ir, "i64", block), *rest = tile_ir_integer(ir, "i64", block - 1);
    return tile_ir_binary(ir, "div", tile_ir_binary(ir, "add", extent, rest), size);
}

void tile_ir_require(TileIr *ir, TileIrValue *condition, const char *text) {
    char attribute[512] = "text = \"";
    size_t length = 8;
    for (const char *at = text ? text : ""; *at && length < sizeof attribute - 8; at++) {
        if (*at == '"' || *at == '\\') attribute[length++] = '\\';
        attribute[length++] = *at == '\n' ? ' ' : *at;
    }
    snprintf(attribute + length, sizeof attribute - length, "\"");
    tile_ir_op(ir, "require", &condition, 1, attribute, NULL);
}

/* ---- tensors ---- */

/* Provably not negative: counts and sizes, and sums and products of such. */
static bool is_natural(const TileValue *value, unsigned depth) {
    int64_t constant;
    if (!value || depth > 8) return false;
    if (value->block) {
        const TileOp *op = value->block->op;
        if (!op || value->index) return op && op->id == TILE_OP_GRID;
        return op->id == TILE_OP_GRID || (op->id == TILE_OP_FOR && is_natural(tile_op_operand(op, 0), depth + 1));
    }
    if (tile_value_integer(value, &constant)) return constant >= 0;
    if (value->op->id == TILE_OP_DIM) return true;
    if (value->op->id != TILE_OP_ADD && value->op->id != TILE_OP_MUL) return false;
    return is_natural(tile_op_operand(value->op, 0), depth + 1) && is_natural(tile_op_operand(value->op, 1), depth + 1);
}

/* The operands of an access, and its attribute. */
typedef struct Access {
    TileIrValue *operands[2 + 4 * TILE_MAX_RANK];
    TileIrValue *bounds[2 * TILE_MAX_RANK]; /* lo, hi for each axis */
    unsigned operand_count, axis_count;
    int64_t extents[TILE_MAX_RANK]; /* of the axes */
    char text[16 * TILE_MAX_RANK];
} Access;

/* The value that a dimension is checked to equal, so that equal dimensions are one value; else its own extent. */
static TileIrValue *extent_of(TileIr *ir, TileIrValue *tensor, unsigned dimension) {
    TileIrValue *known = NULL;
    char axis[32];
    for (const TileUse *use = tensor ? tensor->first_use : NULL; use; use = use->next) {
        const TileOp *op = use->user;
        bool here = use->index == 0 && tile_op_integer(op, TILE_ATTRIBUTE_AXIS, -1) == (int64_t)dimension;
        if (!here || !ir->at.block || !tile_block_inside(ir->at.block, op->block)) continue;
        if (op->id == TILE_OP_CHECK_DIM) return tile_op_operand(op, 1);
        if (op->id == TILE_OP_DIM) known = tile_op_result(op, 0);
    }
    snprintf(axis, sizeof axis, "axis = %u", dimension);
    return known ? known : tile_ir_op(ir, "dim", &tensor, 1, axis, NULL);
}

/* The part of a range's lanes lo .. hi that is inside the dimension. */
static void add_range(TileIr *ir, Access *access, TileIrValue *tensor, unsigned dimension, const TileIrIndex *index) {
    TileIrValue *zero = tile_ir_integer(ir, "i64", 0), *lanes = tile_ir_integer(ir, "i64", index->lanes), *lo = zero;
    TileIrValue *extent = extent_of(ir, tensor, dimension);
    TileIrValue *rest = tile_ir_binary(ir, "min", tile_ir_binary(ir, "sub", extent, index->first), lanes);
    TileIrValue *hi = tile_ir_binary(ir, "max", rest, zero);
    if (!is_natural(index->first, 0)) {
        TileIrValue *before = tile_ir_binary(ir, "max", tile_ir_binary(ir, "sub", zero, index->first), zero);
        lo = tile_ir_binary(ir, "min", before, lanes);
    }
    TileIrValue *operands[] = {index->first, tile_ir_integer(ir, "i64", 1), lo, hi};
    for (unsigned i = 0; i < 4; i++) access->operands[access->operand_count++] = operands[i];
    access->bounds[2 * access->axis_count] = lo;
    access->bounds[2 * access->axis_count + 1] = hi;
    access->extents[access->axis_count++] = index->lanes;
}

/* False after a mistake. */
static bool add_indices(TileIr *ir, Access *access, TileIrValue *tensor, const TileIrIndex *indices, unsigned count) {
    int length = snprintf(access->text, sizeof access->text, "access = [");
    if (count > TILE_MAX_RANK || (count && !indices)) tile_ir_mistake(ir, "the indices of a tensor are no list");
    if (tile_ir_status(ir) != TILE_OK) return false;
    for (unsigned i = 0; i < count; i++) {
        if (indices[i].lanes < 0) tile_ir_mistake(ir, "an index has a negative number of lanes");
        bool range = indices[i].lanes > 0;
        if (range)
            add_range(ir, access, tensor, i, &indices[i]);
        else
            access->operands[access->operand_count++] = indices[i].first;
        length += snprintf(access->text + length, sizeof access->text - (size_t)length, "%s%s", i ? ", " : "",
                           range ? "range" : "index");
    }
    snprintf(access->text + length, sizeof access->text - (size_t)length, "]");
    return tile_ir_status(ir) == TILE_OK;
}

TileIrValue *tile_ir_load(TileIr *ir, TileIrValue *tensor, const TileIrIndex *indices, unsigned count,
                          TileIrValue *fill) {
    Access access = {.operands = {tensor}, .operand_count = 1};
    if (!add_indices(ir, &access, tensor, indices, count) || !tensor)
        return tile_ir_op(ir, "load_tile", &tensor, 1, NULL, NULL);
    const TileType *type =
        tile_ir_tile_type(ir, tile_scalar_name(tensor->type->scalar), access.extents, access.axis_count);
    TileIrValue *loaded = tile_ir_op(ir, "load_tile", access.operands, access.operand_count, access.text, type);
    if (!fill || !access.axis_count) return loaded;
    TileIrValue *operands[2 + 2 * TILE_MAX_RANK] = {loaded, fill};
    char axes[64];
    int length = snprintf(axes, sizeof axes, "axes = [");
    for (unsigned i = 0; i < access.axis_count; i++) {
        operands[2 + 2 * i] = access.bounds[2 * i];
        operands[3 + 2 * i] = access.bounds[2 * i + 1];
        length += snprintf(axes + length, sizeof axes - (size_t)length, "%s%u", i ? ", " : "", i);
    }
    snprintf(axes + length, sizeof axes - (size_t)length, "]");
    return tile_ir_op(ir, "fill", operands, 2 + 2 * access.axis_count, axes, NULL);
}

static bool has_lanes(const Access *access, const TileType *type) {
    bool same = type->rank == access->axis_count && (tile_type_is_scalar(type) || tile_type_is_tile(type));
    for (unsigned i = 0; same && i < access->axis_count; i++) same = type->extent[i] == access->extents[i];
    return same;
}

void tile_ir_store(TileIr *ir, TileIrValue *tensor, TileIrValue *value, const TileIrIndex *indices, unsigned count) {
    Access access = {.operands = {tensor, value}, .operand_count = 2};
    bool good = add_indices(ir, &access, tensor, indices, count);
    if (good && value && !has_lanes(&access, value->type))
        tile_ir_mistake(ir, "tile_ir_store: the value has other lanes than the indices");
    tile_ir_op(ir, "store_tile", access.operands, access.operand_count, good ? access.text : NULL, NULL);
}
