/* Purpose: compute no function twice whose arguments differ only where a condition of whole rows holds. A row's maximum that
 * is -inf is replaced by 0, so that no -inf - -inf appears, but not where the result may be NaN; both are
 * exponentials of the same differences in all other rows. The second one is computed where there is such a row, else
 * it is the first.
 *
 * Before:
 *     func kernel tile @k(%x: tensor<f32, 2, in>, %y: tensor<f32, 2, out>) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 256} : i64
 *       %none = const {value = -inf} : f32[1]
 *       %nothing = const {value = 0.0} : f32[1]
 *       grid %n (%m: i64) {
 *         %v = load_tile %x, %m, %one, %zero, %one, %zero, %one, %zero, %n {access = [range, range]} : f32[1, 256]
 *         %top = reduce %v {axis = 1, kind = max} : f32[1]
 *         %empty = eq %top, %none : bool[1]
 *         %base = select %empty, %nothing, %top : f32[1]
 *         %0 = reshape %base : f32[1, 1]
 *         %1 = broadcast %0 : f32[1, 256]
 *         %2 = sub %v, %1 : f32[1, 256]
 *         %e = exp %2 : f32[1, 256]
 *         %3 = reshape %top : f32[1, 1]
 *         %4 = broadcast %3 : f32[1, 256]
 *         %5 = sub %v, %4 : f32[1, 256]
 *         %f = exp %5 : f32[1, 256]
 *         %both = add %e, %f : f32[1, 256]
 *         store_tile %y, %both, %m, %one, %zero, %one, %zero, %one, %zero, %n {access = [range, range]}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func kernel tile @k(%x: tensor<f32, 2, in>, %y: tensor<f32, 2, out>) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 256} : i64
 *       %none = const {value = -inf} : f32[1]
 *       %nothing = const {value = 0.0} : f32[1]
 *       grid %n (%m: i64) {
 *         %v = load_tile %x, %m, %one, %zero, %one, %zero, %one, %zero, %n {access = [range, range]} : f32[1, 256]
 *         %top = reduce %v {axis = 1, kind = max} : f32[1]
 *         %empty = eq %top, %none : bool[1]
 *         %base = select %empty, %nothing, %top : f32[1]
 *         %0 = reshape %base : f32[1, 1]
 *         %1 = broadcast %0 : f32[1, 256]
 *         %2 = sub %v, %1 : f32[1, 256]
 *         %e = exp %2 : f32[1, 256]
 *         %3 = reshape %top : f32[1, 1]
 *         %4 = broadcast %3 : f32[1, 256]
 *         %5 = sub %v, %4 : f32[1, 256]
 *         %6 = const {value = false} : bool
 *         %7 = fill %empty, %6, %zero, %one {axes = [0]} : bool[1]
 *         %8 = reduce %7 {axis = 0, kind = any, piecewise = 1} : bool
 *         %f = if %8 : f32[1, 256] {
 *           %f.1 = exp %5 : f32[1, 256]
 *           yield %f.1
 *         } {
 *           yield %e
 *         }
 *         %both = add %e, %f : f32[1, 256]
 *         store_tile %y, %both, %m, %one, %zero, %one, %zero, %one, %zero, %n {access = [range, range]}
 *         yield
 *       }
 *       return
 *     }
 * Needs: cse, so that what is the same is one value; gpu-short-rows, which brings both into one block. Keeps: tile form, and
 * all bits. Cost: linear. */
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "lowering/memory.h"
#include "ptx/passes.h"

enum { MOST_DEPTH = 6, LEAST_ELEMENTS = 8, MOST_EARLIER = 8 };

/* ---- which ops ---- */

static bool have_same_attributes(const TileOp *x, const TileOp *y) {
    if (x->attribute_count != y->attribute_count) return false;
    for (unsigned i = 0; i < x->attribute_count; i++) {
        TileAttributeKey key = x->attributes[i].key;
        bool plain = key == TILE_ATTRIBUTE_APPROX || key == TILE_ATTRIBUTE_SMALL || key == TILE_ATTRIBUTE_FUSE;
        if (!plain || tile_op_integer(x, key, 0) != tile_op_integer(y, key, 0)) return false;
    }
    return true;
}

/* Are the values equal where the condition does not hold? All choices between them depend on one. */
static bool agree(const TileValue *a, const TileValue *b, TileValue **condition, unsigned depth) {
    const TileOp *x = a->op, *y = b->op;
    if (a == b) return true;
    if (!x || !depth || a->type != b->type) return false;
    if (x->id == TILE_OP_SELECT && tile_op_named(x, TILE_OPERAND_Y) == b) {
        TileValue *own = tile_op_operand(x, 0);
        if (*condition && *condition != own) return false;
        *condition = own;
        return true;
    }
    const TileOpInfo *info = tile_op_info((TileOpId)x->id);
    bool follows = info->class == TILE_CLASS_ELEMENTWISE || x->id == TILE_OP_RESHAPE || x->id == TILE_OP_BROADCAST || x->id == TILE_OP_SPLAT;
    if (!y || x->id != y->id || !follows || x->operand_count != y->operand_count) return false;
    if (!have_same_attributes(x, y)) return false;
    for (unsigned i = 0; i < x->operand_count; i++)
        if (!agree(tile_op_operand(x, i), tile_op_operand(y, i), condition, depth - 1)) return false;
    return true;
}

/* The load of a tile of the value's shape that it is computed of, element by element; NULL: none. */
static const TileOp *load_of(const TileValue *value, unsigned depth) {
    const TileOp *op = value->op;
    if (!op || !depth) return NULL;
    if (op->id == TILE_OP_LOAD_TILE) return op;
    if (tile_op_info((TileOpId)op->id)->class != TILE_CLASS_ELEMENTWISE) return NULL;
    for (unsigned i = 0; i < op->operand_count; i++) {
        const TileOp *load = tile_type_same_shape(tile_op_operand(op, i)->type, value->type)
                                 ? load_of(tile_op_operand(op, i), depth - 1) : NULL;
        if (load) return load;
    }
    return NULL;
}

/* Is the condition one of rows, or of all of the tile? */
static bool is_of_rows(const TileValue *condition, const TileType *tile) {
    const TileType *type = condition->type;
    if (!tile_type_is_tile(type)) return true;
    return type->rank == 1 && tile->rank == 2 && type->extent[0] == tile->extent[0] && tile->extent[1] >= LEAST_ELEMENTS;
}

/* ---- one of them ---- */

/* Does the condition hold in a row that there is? NULL: its rows are not known. */
static TileValue *build_any(TileBuilder *b, TileValue *condition, const TileOp *op) {
    if (!tile_type_is_tile(condition->type)) return condition;
    const TileOp *load = load_of(&op->results[0], MOST_DEPTH);
    TileValue *bounds[2];
    int64_t axis = 0;
    if (!load || tile_op_has_part(load, TILE_PARTS_MASK) || !tile_access_bounds(load, 0, &bounds[0], &bounds[1])) return NULL;
    TileValue *no = tile_build_bool(b, false);
    TileValue *any = tile_build_reduce(b, tile_build_fill(b, condition, no, &axis, bounds, 1), TILE_KIND_ANY, 0);
    tile_op_set_integer(b->module, any->op, TILE_ATTRIBUTE_PIECEWISE, 1); /* no row of data, for which a warp would do */
    return any;
}

/* The op, computed again only where the condition holds. */
static bool reuse(TilePassContext *context, TileOp *op, TileValue *first, TileValue *condition) {
    TileBuilder b = tile_builder_before(context->module, op);
    b.location = op->location;
    TileValue *any = build_any(&b, condition, op), *result = &op->results[0];
    if (!any) return false;
    tile_pass_remark(context, op, TILE_DECISION_COMPUTED_ONCE, result->name ? result->name : tile_op_info((TileOpId)op->id)->mnemonic,
                     "where no row is an exception");
    TileOp *choice = tile_build_if(&b, any, &result->type, 1);
    tile_value_replace(result, &choice->results[0]);
    choice->results[0].name = result->name;
    TileBuilder then = tile_builder_at_end(context->module, &choice->regions[0]),
                otherwise = tile_builder_at_end(context->module, &choice->regions[1]);
    then.location = otherwise.location = op->location;
    tile_op_detach(op);
    tile_op_append(op, &choice->regions[0]);
    tile_build_end(&then, TILE_OP_YIELD, &result, 1);
    tile_build_end(&otherwise, TILE_OP_YIELD, &first, 1);
    return true;
}

static bool is_costly(const TileOp *op) {
    const TileOpInfo *info = tile_op_info((TileOpId)op->id);
    return info->class == TILE_CLASS_ELEMENTWISE && (info->traits & TILE_TRAIT_FUNCTION) && (info->traits & TILE_TRAIT_COSTLY) &&
           tile_type_is_tile(op->results[0].type);
}

/* Those of the block that came last. */
typedef struct Earlier {
    TileOp *ops[MOST_EARLIER];
    unsigned count;
} Earlier;

static bool try_op(TilePassContext *context, TileOp *op, const Earlier *earlier) {
    unsigned count = earlier->count < MOST_EARLIER ? earlier->count : MOST_EARLIER;
    for (unsigned i = 0; i < count; i++) {
        TileOp *other = earlier->ops[i];
        TileValue *condition = NULL;
        if (other->id != op->id || !agree(&other->results[0], &op->results[0], &condition, MOST_DEPTH)) continue;
        if (condition && is_of_rows(condition, op->results[0].type)) return reuse(context, op, &other->results[0], condition);
    }
    return false;
}

static bool visit(TilePassContext *context, TileBlock *block) {
    Earlier earlier = {.count = 0};
    bool changed = false;
    for (TileOp *op = block->first, *next; op; op = next) {
        next = op->next;
        for (unsigned i = 0; i < op->region_count; i++) changed |= visit(context, &op->regions[i]);
        if (!is_costly(op)) continue;
        if (try_op(context, op, &earlier))
            changed = true;
        else
            earlier.ops[earlier.count++ % MOST_EARLIER] = op;
    }
    return changed;
}

TileResult tile_pass_gpu_agree(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_KERNEL) return TILE_RESULT_UNCHANGED;
    return visit(context, &func->body) ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
