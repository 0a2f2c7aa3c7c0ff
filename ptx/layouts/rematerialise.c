/* Purpose: rematerialise values in another layout where computing them again is cheaper than a conversion: constants,
 * indices, splats, and elementwise ops and changes of shape on these; where the conversion goes through shared memory also loads
 * of no more elements than there are threads, also through index tiles, of which each thread then loads one vector for itself: a multiprocessor's own cache has them, and
 * no barrier is waited for. The ops of the first layout are left to dce.
 *
 * Before:
 *     func phase tile @k.0(%x: tensor<i64, 1, inout>, %begin: i64, %end: i64) threads = 32 {
 *       layout 0 = [64] register 32 lane 1 2 4 8 16 warp block
 *       layout 1 = [64] register 1 lane 2 4 8 16 32 warp block
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 64} : i64
 *       %i = iota : i64[64] layout 0
 *       %first = splat %begin : i64[64] layout 0
 *       %sum = add %i, %first : i64[64] layout 0
 *       %0 = convert_layout %sum : i64[64] layout 1
 *       store_tile %x, %0, %begin, %one, %zero, %n {access = [range]}
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%x: tensor<i64, 1, inout>, %begin: i64, %end: i64) threads = 32 {
 *       layout 0 = [64] register 32 lane 1 2 4 8 16 warp block
 *       layout 1 = [64] register 1 lane 2 4 8 16 32 warp block
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 64} : i64
 *       %i = iota : i64[64] layout 0
 *       %first = splat %begin : i64[64] layout 0
 *       %sum = add %i, %first : i64[64] layout 0
 *       %i.1 = iota : i64[64] layout 1
 *       %first.1 = splat %begin : i64[64] layout 1
 *       %sum.1 = add %i.1, %first.1 : i64[64] layout 1
 *       store_tile %x, %sum.1, %begin, %one, %zero, %n {access = [range]}
 *       return
 *     }
 * Needs: gpu-propagate. Keeps: tile form. Cost: linear in the conversions. */
#include "lang/ir/build.h"
#include "lang/ir/layout_rules.h"
#include "lowering/each.h"
#include "ptx/passes.h"
#include "ptx/target/map.h"
#include "ptx/target/shuffles.h"

enum { MOST_OPS = 12, MOST_OPERANDS = 3 + 4 * TILE_MAX_TENSOR_RANK };

typedef struct Remake {
    TilePassContext *context;
    TileBuilder b;
    TileMap made; /* values to their copies in the wanted layouts */
    unsigned ops;
    int64_t most_loaded; /* elements of a tile that is loaded once more; 0: none is */
} Remake;

static bool is_load(const TileOp *op) { return op->id == TILE_OP_LOAD_TILE; }

/* Memory is as it was where the first load stands, and so does the second. Its place is there, and that of its indices. */
static bool can_load_again(const Remake *r, const TileOp *load, const TileLayout *layout) {
    enum { VECTOR_BYTES = 16 }; /* more than one of a thread cost more than the way through shared memory (measured) */
    const TileType *type = load->results[0].type;
    bool ahead = tile_op_get(load, TILE_ATTRIBUTE_LATENCY) != NULL || gpu_by_map(load);
    bool vector = tile_layout_registers(layout) * tile_scalar_bytes(type->scalar) <= VECTOR_BYTES;
    return tile_type_is_tile(type) && tile_type_lanes(type) <= r->most_loaded && vector && !ahead;
}

static bool is_simple(const Remake *r, const TileOp *op, const TileLayout *layout) {
    switch (op->id) {
    case TILE_OP_LOAD_TILE: return can_load_again(r, op, layout);
    case TILE_OP_CONST:
    case TILE_OP_SPLAT:
    case TILE_OP_IOTA:
    case TILE_OP_BROADCAST:
    case TILE_OP_RESHAPE:
    case TILE_OP_PERMUTE: return true;
    default: break;
    }
    const TileOpInfo *info = tile_op_info(op->id);
    return info->class == TILE_CLASS_ELEMENTWISE && !(info->traits & TILE_TRAIT_COSTLY);
}

/* The layout that an operand needs for the result to have `layout`. */
static bool operand_layout(const TileOp *op, unsigned index, const TileLayout *layout, TileLayout *wanted) {
    TileLayout given;
    *wanted = *layout;
    if (!tile_layout_of_operand(op, index, layout, wanted))
        return op->id != TILE_OP_RESHAPE && op->id != TILE_OP_PERMUTE; /* elementwise: the same layout */
    return op->id == TILE_OP_BROADCAST || is_load(op) ||
           (tile_layout_of_result(op, wanted, &given) && tile_layout_equal(&given, layout));
}

/* Can the value be computed again in the layout? Counts the ops that it takes. */
static bool can_remake(Remake *r, const TileValue *value, const TileLayout *layout) {
    if (!tile_type_is_tile(value->type) || tile_layout_equal(value->type->layout, layout)) return true;
    if (!value->op || !is_simple(r, value->op, layout) || ++r->ops > MOST_OPS) return false;
    for (unsigned i = 0; i < value->op->operand_count; i++) {
        TileLayout wanted;
        const TileValue *operand = tile_op_operand(value->op, i);
        if (!tile_type_is_tile(operand->type)) continue;
        if (!operand_layout(value->op, i, layout, &wanted) || !can_remake(r, operand, &wanted)) return false;
    }
    return true;
}

/* Requires can_remake. What a load takes is made where it stands, for it alone: other loads may stand before. */
static TileValue *remake(Remake *r, TileBuilder *at, TileValue *value, const TileLayout *layout) {
    if (!tile_type_is_tile(value->type) || tile_layout_equal(value->type->layout, layout)) return value;
    const TileType *type = tile_type_with_layout(r->context->module->context, value->type, layout);
    TileValue *made = at == &r->b ? tile_map_get(&r->made, value) : NULL;
    if (made && made->type == type) return made;
    TileBuilder first = tile_builder_before(r->context->module, value->op), *b = is_load(value->op) ? &first : at;
    TileValue *operands[MOST_OPERANDS];
    for (unsigned i = 0; i < value->op->operand_count; i++) {
        TileLayout wanted = *layout;
        operands[i] = tile_op_operand(value->op, i);
        if (tile_type_is_tile(operands[i]->type)) operand_layout(value->op, i, layout, &wanted);
        operands[i] = remake(r, b, operands[i], &wanted);
    }
    b->location = value->op->location;
    TileOp *op = tile_build_op(b, (TileOpId)value->op->id, operands, value->op->operand_count,
                               value->op->attributes, value->op->attribute_count, &type, 1);
    op->results[0].name = value->name;
    if (b->error) r->b.error = b->error;
    if (at == &r->b) tile_map_set(&r->made, value, &op->results[0]);
    return &op->results[0];
}

static bool try_conversion(TilePassContext *context, TileOp *op, const char **error) {
    Remake r = {.context = context, .b = tile_builder_before(context->module, op)};
    tile_map_init(&r.made, context->scratch);
    TileValue *value = tile_op_operand(op, 0);
    const TileLayout *layout = op->results[0].type->layout;
    if (!layout || !value->type->layout) return false;
    if (!gpu_converts_in_warp(value->type->layout, layout, tile_scalar_bits(value->type->scalar))) r.most_loaded = tile_op_func(op)->threads;
    if (!can_remake(&r, value, layout)) return false;
    tile_value_replace(&op->results[0], remake(&r, &r.b, value, layout));
    tile_op_erase(op);
    if (r.b.error) *error = r.b.error;
    return true;
}

/* A tile of no more elements than threads that passes through shared memory to be stored in vectors, where as it is its threads
 * store it by few accesses. */
static bool try_store(TilePassContext *context, TileOp *store, const char **error) {
    enum { MOST_ACCESSES = 2, VECTOR_BYTES = 16 };
    (void)error;
    const TileValue *value = tile_op_operand(store, 1);
    TileOp *convert = value->op;
    if (!convert || convert->id != TILE_OP_CONVERT_LAYOUT || gpu_by_map(store) || gpu_by_rows(store)) return false;
    for (unsigned i = 0; i < store->operand_count; i++)
        if (tile_op_operand(store, i) != value && tile_type_is_tile(tile_op_operand(store, i)->type)) return false;
    TileValue *given = tile_op_operand(convert, 0);
    const TileLayout *layout = given->type->layout;
    unsigned bytes = tile_scalar_bytes(value->type->scalar);
    if (!layout || !value->type->layout || tile_type_lanes(value->type) > tile_op_func(store)->threads) return false;
    if (gpu_converts_in_warp(layout, value->type->layout, tile_scalar_bits(value->type->scalar))) return false;
    unsigned vector = tile_layout_vector(layout, layout->rank - 1u, VECTOR_BYTES / bytes);
    if (tile_layout_registers(layout) / vector > MOST_ACCESSES) return false;
    tile_op_set_operand(store, 1, given);
    return true;
}

TileResult tile_pass_gpu_rematerialise(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    TileResult stores = tile_try_each(context, func, TILE_OP_STORE_TILE, try_store, "gpu-rematerialise");
    if (stores == TILE_RESULT_FAILED) return stores;
    TileResult conversions = tile_try_each(context, func, TILE_OP_CONVERT_LAYOUT, try_conversion, "gpu-rematerialise");
    return conversions == TILE_RESULT_UNCHANGED ? stores : conversions;
}
