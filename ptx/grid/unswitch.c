/* Purpose: where a block that multiplies has several masks one after the other, make two versions of what is computed
 * from the first of them on, and test once which one to run (loop unswitching, for masks). Few iterations have lanes
 * past the end of a range, or keys that a query must not see; in all others the ops between are one straight line,
 * which the assembler's scheduler can mix, while the tensor cores work.
 *
 * Before:
 *     func phase tile @k.0(%x: tensor<f32, 2, out> {noalias}, %a: tensor<f16, 2, in> {noalias}, %end: i64) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 32} : i64
 *       %f = const {value = 0.0} : f32
 *       %g = const {value = 1.0} : f32
 *       %acc = const {value = 0.0} : f32[32, 32]
 *       %t = load_tile %a, %zero, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]} : f16[32, 32]
 *       %v = dot %t, %t, %acc : f32[32, 32]
 *       %w = fill %v, %f, %zero, %end {axes = [1]} : f32[32, 32]
 *       %e = exp2 %w : f32[32, 32]
 *       %z = fill %e, %g, %zero, %end {axes = [1]} : f32[32, 32]
 *       store_tile %x, %z, %zero, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]}
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%x: tensor<f32, 2, out> {noalias}, %a: tensor<f16, 2, in> {noalias}, %end: i64) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 32} : i64
 *       %f = const {value = 0.0} : f32
 *       %g = const {value = 1.0} : f32
 *       %acc = const {value = 0.0} : f32[32, 32]
 *       %t = load_tile %a, %zero, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]} : f16[32, 32]
 *       %v = dot %t, %t, %acc : f32[32, 32]
 *       %0 = const {value = 32} : i64
 *       %1 = ge %end, %0 : bool
 *       %2 = const {value = 32} : i64
 *       %3 = ge %end, %2 : bool
 *       %4 = and %1, %3 : bool
 *       %z = if %4 {masked = 1} : f32[32, 32] {
 *         %e = exp2 %v : f32[32, 32]
 *         yield %e
 *       } {
 *         %w = fill %v, %f, %zero, %end {axes = [1]} : f32[32, 32]
 *         %e.1 = exp2 %w : f32[32, 32]
 *         %z.1 = fill %e.1, %g, %zero, %end {axes = [1]} : f32[32, 32]
 *         yield %z.1
 *       }
 *       store_tile %x, %z, %zero, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]}
 *       return
 *     }
 * Where nothing multiplies, loads and stores of tiles are among these ops, if a reduction stands between two that access tiles as large as
 * one another: one version is for tiles whose lanes all exist, so that no access has a branch of its own, which would yield all elements. Without a
 * reduction all of them are in registers together anyway.
 *
 * Needs: gpu-dot-operands, which looks for fills. Keeps: tile form. Cost: linear; these ops are there twice. */
#include "lang/ir/layout_rules.h"
#include "lang/ir/operands.h"
#include "ptx/grid/masks.h"
#include "ptx/passes.h"

enum { LEAST_LANES = 256 };

/* The ops from the first mask of a block to the last one that can be copied. */
typedef struct Masked {
    TileOp *first, *end; /* the op after the last */
    unsigned masks;
    bool reduces, again; /* behind a reduction a tile is accessed that is as large as those in front of it, of so many lanes */
    int64_t lanes;
    bool accesses; /* loads and stores are among them, and ask too */
    TileMap inside; /* the ops */
} Masked;

/* Ops that both versions can have: they compute tiles, and nothing waits, moves or multiplies; where nothing multiplies, loads and
 * stores of tiles as well. */
static bool can_be_copied(const TileOp *op, bool accesses) {
    if (op->id == TILE_OP_LOAD_TILE || op->id == TILE_OP_STORE_TILE) return accesses && tile_accessed_tile(op);
    TileOpClass class = tile_op_info((TileOpId)op->id)->class;
    bool computes = class == TILE_CLASS_ELEMENTWISE || class == TILE_CLASS_SHAPE || op->id == TILE_OP_CONST ||
                    op->id == TILE_OP_REDUCE;
    return computes && !op->region_count && tile_op_is_pure(op);
}

static bool is_scalar(const TileOp *op) {
    for (unsigned i = 0; i < op->operand_count; i++)
        if (tile_type_is_tile(tile_op_operand(op, i)->type)) return false;
    return op->result_count == 1 && !tile_type_is_tile(op->results[0].type);
}

static bool is_inside(const Masked *masked, const TileOp *op) { return op && tile_map_get(&masked->inside, op); }

static bool asks(GpuMasks *masks, const TileOp *op, bool accesses) { return accesses ? gpu_access_has_test(op) : gpu_mask_has_test(masks, op); }

static void find_masks(GpuMasks *masks, TileOp *op, Masked *masked, bool accesses) {
    *masked = (Masked){.first = op, .accesses = accesses};
    tile_map_init(&masked->inside, masks->context->scratch);
    for (; can_be_copied(op, accesses); op = op->next) {
        tile_map_set(&masked->inside, op, op);
        masked->masks += asks(masks, op, accesses);
        masked->reduces |= op->id == TILE_OP_REDUCE;
        if (!accesses || !asks(masks, op, accesses)) continue;
        int64_t lanes = tile_type_lanes(tile_accessed_tile(op)->type);
        if (!masked->reduces && lanes > masked->lanes) masked->lanes = lanes;
        masked->again |= masked->reduces && lanes >= masked->lanes && lanes >= LEAST_LANES;
    }
    masked->end = op;
}

/* Scalars that are computed between the masks move in front of them, since the test takes some. */
static void hoist_scalars(Masked *masked) {
    for (TileOp *op = masked->first, *next; op != masked->end; op = next) {
        next = op->next;
        bool moves = op != masked->first && is_scalar(op);
        for (unsigned i = 0; moves && i < op->operand_count; i++)
            moves = !is_inside(masked, tile_op_operand(op, i)->op);
        if (!moves) continue;
        tile_op_detach(op);
        tile_op_insert_before(op, masked->first);
        tile_map_set(&masked->inside, op, NULL);
    }
}

/* The condition that no mask changes a lane; NULL: it depends on what is computed between them. */
static TileValue *build_test(GpuMasks *masks, const Masked *masked) {
    TileOp *previous = masked->first->previous;
    TileValue *idle = NULL;
    for (TileOp *op = masked->first; op != masked->end; op = op->next) {
        if (!asks(masks, op, masked->accesses)) continue;
        if (masked->accesses) {
            idle = gpu_access_build_test(masks, op, masked->first, idle);
            continue;
        }
        TileValue *own = gpu_mask_build_test(masks, op, masked->first);
        idle = idle ? tile_build_binary(&masks->b, TILE_OP_AND, idle, own) : own;
    }
    bool early = true;
    for (TileOp *op = masked->first->previous; op != previous; op = op->previous)
        for (unsigned i = 0; i < op->operand_count; i++) early &= !is_inside(masked, tile_op_operand(op, i)->op);
    for (TileOp *op = masked->first->previous, *before; !early && op != previous; op = before) {
        before = op->previous;
        tile_op_erase(op);
    }
    return early ? idle : NULL;
}

static bool is_used_outside(const Masked *masked, const TileValue *value) {
    for (const TileUse *use = value->first_use; use; use = use->next)
        if (!is_inside(masked, use->user)) return true;
    return false;
}

typedef TILE_LIST(TileValue *) Values;
typedef TILE_LIST(const TileType *) Types;

/* The version without masks, which runs where `idle` holds. */
static void build_unmasked(GpuMasks *masks, const Masked *masked, const TileValue *idle, const Values *results, TileBlock *region) {
    TilePassContext *context = masks->context;
    TileMap map;
    tile_map_init(&map, context->scratch);
    for (const TileOp *op = masked->first; op != masked->end; op = op->next) {
        if (masked->accesses ? gpu_fill_is_idle_where(op, idle) : gpu_mask_has_test(masks, op)) {
            TileValue *kept = tile_op_operand(op, gpu_mask_kept(op)), *copy = tile_map_get(&map, kept);
            tile_map_set(&map, &op->results[0], copy ? copy : kept);
            continue;
        }
        TileOp *copy = tile_op_clone(context->module, op, &map);
        tile_op_append(copy, region);
        if (masked->accesses) gpu_access_make_whole(masks, copy);
    }
    Values values = {0};
    for (size_t i = 0; i < results->count; i++)
        tile_list_push(context->scratch, &values, (TileValue *)tile_map_get(&map, results->items[i]));
    TileBuilder b = tile_builder_at_end(context->module, region);
    tile_build_end(&b, TILE_OP_YIELD, values.items, (unsigned)values.count);
    if (b.error) masks->b.error = b.error;
}

static void move_masked(GpuMasks *masks, const Masked *masked, const Values *results, TileBlock *region) {
    for (TileOp *op = masked->first, *next; op != masked->end; op = next) {
        next = op->next;
        tile_op_detach(op);
        tile_op_append(op, region);
    }
    TileBuilder b = tile_builder_at_end(masks->context->module, region);
    tile_build_end(&b, TILE_OP_YIELD, results->items, (unsigned)results->count);
    if (b.error) masks->b.error = b.error;
}

static void build_versions(GpuMasks *masks, Masked *masked, TileValue *idle) {
    TilePassContext *context = masks->context;
    Values results = {0};
    Types types = {0};
    for (TileOp *op = masked->first; op != masked->end; op = op->next) {
        for (unsigned i = 0; i < op->result_count; i++) {
            if (!is_used_outside(masked, &op->results[i])) continue;
            tile_list_push(context->scratch, &results, &op->results[i]);
            tile_list_push(context->scratch, &types, op->results[i].type);
        }
    }
    TileBuilder b = tile_builder_before(context->module, masked->first);
    b.location = masked->first->location;
    TileOp *branch = tile_build_if(&b, idle, types.items, (unsigned)types.count);
    if (b.error) masks->b.error = b.error;
    if (!branch) return;
    tile_op_set_integer(context->module, branch, TILE_ATTRIBUTE_MASKED, 1);
    for (size_t i = 0; i < results.count; i++) {
        branch->results[i].name = results.items[i]->name;
        for (TileUse *use = results.items[i]->first_use, *next; use; use = next) {
            next = use->next;
            if (!is_inside(masked, use->user)) tile_op_set_operand(use->user, use->index, &branch->results[i]);
        }
    }
    build_unmasked(masks, masked, idle, &results, &branch->regions[0]);
    move_masked(masks, masked, &results, &branch->regions[1]);
}

static bool multiplies(const TileBlock *block) {
    for (const TileOp *op = block->first; op; op = op->next)
        if (op->id == TILE_OP_DOT) return true;
    return false;
}

static void find_product(TileOp *op, void *found) { *(bool *)found |= op->id == TILE_OP_DOT; }

/* Two versions from this op on; returns the op behind them. */
static TileOp *make_versions(GpuMasks *masks, TileOp *op, bool accesses, bool *changed) {
    Masked masked;
    find_masks(masks, op, &masked, accesses);
    if (masked.masks < 2 || (accesses && !masked.again)) return masked.end;
    hoist_scalars(&masked);
    TileValue *idle = build_test(masks, &masked);
    if (idle) build_versions(masks, &masked, idle);
    *changed |= idle != NULL;
    return masked.end;
}

static bool walk(GpuMasks *masks, TileBlock *block, bool accesses) {
    bool changed = false, here = accesses || multiplies(block);
    for (TileOp *op = block->first, *next; op; op = next) {
        next = op->next;
        for (unsigned i = 0; i < op->region_count; i++) changed |= walk(masks, &op->regions[i], accesses);
        if (here && asks(masks, op, accesses)) next = make_versions(masks, op, accesses, &changed);
    }
    return changed;
}

TileResult tile_pass_gpu_unswitch(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    GpuMasks masks;
    gpu_masks_init(&masks, context, func);
    bool product = false;
    tile_block_walk(&func->body, find_product, &product);
    bool changed = walk(&masks, &func->body, !product);
    if (masks.b.error) return tile_pass_fail(context, TILE_INTERNAL, NULL, "gpu-unswitch: %s", masks.b.error);
    return changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
