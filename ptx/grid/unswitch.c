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
 * From a load with a mask of its own on, as of a gather, loads are among these ops, and their masks and ranges are tested as well: a
 * branch for each would have all loaded elements in registers at its end, where the product takes what is computed from them.
 *
 * Where nothing multiplies, loads and stores of tiles are among these ops, if a reduction stands between two that access tiles as large as
 * one another: one version is for tiles whose lanes all exist, so that no access has a branch of its own, which would yield all elements. Without a
 * reduction all of them are in registers together anyway.
 *
 * Where a block waits for one product while another is under way, and for that later (gpu-dot-stages), one mask behind either wait is enough: ops that
 * stand behind a branch's end are not moved in front of it, so that the second wait stays behind what has to come before it, and what is computed
 * behind it stands in one straight line with the mask.
 *
 * Needs: gpu-dot-operands, which looks for fills. Keeps: tile form. Cost: linear; these ops are there twice. */
#include "lang/ir/layout_rules.h"
#include "lang/ir/operands.h"
#include "ptx/grid/masks.h"
#include "ptx/passes.h"
#include "ptx/target/dot.h"

enum { LEAST_LANES = 256 };

/* What is there twice: what computes, where a block multiplies; with the loads, from one on whose own mask asks; or, where nothing
 * multiplies, with all accesses. */
typedef enum Kind { COMPUTED, LOADED, ACCESSED } Kind;

/* The ops from the first mask of a block to the last one that can be copied. */
typedef struct Masked {
    TileOp *first, *end; /* the op after the last */
    unsigned masks;
    bool reduces, again; /* behind a reduction a tile is accessed that is as large as those in front of it, of so many lanes */
    int64_t lanes;
    Kind kind;
    TileMap inside; /* the ops */
} Masked;

/* Names an operand of the product that is in shared memory: where loads are, this stands between, and moves in front. */
static bool names_operand(const TileOp *op) {
    return op->id == TILE_OP_SHARED_TILE || op->id == TILE_OP_PTR_ADD || (op->id == TILE_OP_PERMUTE && gpu_stays_shared(op));
}

/* Ops that both versions can have: they compute tiles, and nothing waits, moves or multiplies; and loads and stores of tiles, if asked for. */
static bool can_be_copied(const TileOp *op, Kind kind) {
    if (names_operand(op)) return kind == LOADED;
    if (op->id == TILE_OP_STORE_TILE) return kind == ACCESSED && tile_accessed_tile(op);
    if (op->id == TILE_OP_LOAD_TILE)
        return tile_accessed_tile(op) && (kind == ACCESSED || (kind == LOADED && !tile_op_get(op, TILE_ATTRIBUTE_TENSOR_MAP)));
    TileOpClass class = tile_op_info((TileOpId)op->id)->class;
    bool computes = class == TILE_CLASS_ELEMENTWISE || class == TILE_CLASS_SHAPE || op->id == TILE_OP_CONST || op->id == TILE_OP_DIM ||
                    op->id == TILE_OP_REDUCE;
    return computes && !op->region_count && tile_op_is_pure(op);
}

static bool is_scalar(const TileOp *op) {
    for (unsigned i = 0; i < op->operand_count; i++)
        if (tile_type_is_tile(tile_op_operand(op, i)->type)) return false;
    return op->result_count == 1 && !tile_type_is_tile(op->results[0].type);
}

static bool is_inside(const Masked *masked, const TileOp *op) { return op && tile_map_get(&masked->inside, op); }

/* Do ranges of a load or store of this kind ask? */
static bool ranges_ask(const TileOp *op, Kind kind) {
    return kind == ACCESSED ? gpu_access_has_test(op) : kind == LOADED && op->id == TILE_OP_LOAD_TILE && gpu_access_has_test(op);
}

/* Does a mask, of the op or that it is? */
static bool mask_asks(GpuMasks *masks, const TileOp *op, Kind kind) {
    return kind != ACCESSED && (gpu_mask_has_test(masks, op) || (kind == LOADED && gpu_load_mask_is_testable(masks, op)));
}

static bool asks(GpuMasks *masks, const TileOp *op, Kind kind) { return ranges_ask(op, kind) || mask_asks(masks, op, kind); }

static void find_masks(GpuMasks *masks, TileOp *op, Masked *masked, Kind kind) {
    *masked = (Masked){.first = op, .kind = kind};
    tile_map_init(&masked->inside, masks->context->scratch);
    for (; can_be_copied(op, kind); op = op->next) {
        tile_map_set(&masked->inside, op, op);
        masked->masks += asks(masks, op, kind);
        masked->reduces |= op->id == TILE_OP_REDUCE;
        if (kind != ACCESSED || !asks(masks, op, kind)) continue;
        int64_t lanes = tile_type_lanes(tile_accessed_tile(op)->type);
        if (!masked->reduces && lanes > masked->lanes) masked->lanes = lanes;
        masked->again |= masked->reduces && lanes >= masked->lanes && lanes >= LEAST_LANES;
    }
    masked->end = op;
}

/* Scalars that are computed between the masks move in front of them, since the test takes some. False if an operand in shared memory
 * cannot. */
static bool hoist_scalars(Masked *masked) {
    bool named = true;
    for (TileOp *op = masked->first, *next; op != masked->end; op = next) {
        next = op->next;
        bool names = names_operand(op), moves = op != masked->first && (names || is_scalar(op));
        for (unsigned i = 0; moves && i < op->operand_count; i++)
            moves = !is_inside(masked, tile_op_operand(op, i)->op);
        named &= moves || !names;
        if (!moves) continue;
        tile_op_detach(op);
        tile_op_insert_before(op, masked->first);
        tile_map_set(&masked->inside, op, NULL);
    }
    return named;
}

/* The condition that no mask changes a lane; NULL: it depends on what is computed between them. */
static TileValue *build_test(GpuMasks *masks, const Masked *masked) {
    TileOp *previous = masked->first->previous;
    TileValue *idle = NULL;
    for (TileOp *op = masked->first; op != masked->end; op = op->next) {
        if (ranges_ask(op, masked->kind)) idle = gpu_access_build_test(masks, op, masked->first, idle);
        if (!mask_asks(masks, op, masked->kind)) continue;
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

/* Does the op give what it is given where no mask changes a lane? */
static bool is_idle(GpuMasks *masks, const Masked *masked, const TileOp *op, const TileValue *idle) {
    if (masked->kind != COMPUTED && gpu_fill_is_idle_where(op, idle)) return true;
    return masked->kind != ACCESSED && gpu_mask_has_test(masks, op);
}

/* The version without masks, which runs where `idle` holds. */
static void build_unmasked(GpuMasks *masks, const Masked *masked, const TileValue *idle, const Values *results, TileBlock *region) {
    TilePassContext *context = masks->context;
    TileMap map;
    tile_map_init(&map, context->scratch);
    for (const TileOp *op = masked->first; op != masked->end; op = op->next) {
        if (is_idle(masks, masked, op, idle)) {
            TileValue *kept = tile_op_operand(op, gpu_mask_kept(op)), *copy = tile_map_get(&map, kept);
            tile_map_set(&map, &op->results[0], copy ? copy : kept);
            continue;
        }
        TileOp *copy = tile_op_clone(context->module, op, &map);
        tile_op_append(copy, region);
        if (ranges_ask(op, masked->kind)) gpu_access_make_whole(masks, copy);
        if (masked->kind == LOADED && gpu_load_mask_is_testable(masks, op)) gpu_mask_remove(context->module, copy);
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

/* Is a loaded tile used behind the branch, at whose end all of it would be in registers? What is computed from it, for a product, is there
 * anyway. */
static bool yields_loads(const Masked *masked) {
    for (const TileOp *op = masked->first; op != masked->end; op = op->next)
        if (op->id == TILE_OP_LOAD_TILE && is_used_outside(masked, &op->results[0])) return true;
    return false;
}

/* Is the op computed behind a wait for a product while another is under way, or behind the wait for that? */
static bool is_between_waits(const TileOp *op) {
    while (op && !(op->id == TILE_OP_DOT_WAIT && tile_op_integer(op, TILE_ATTRIBUTE_PENDING, 0) > 0)) op = op->previous;
    return op != NULL;
}

/* Does the op compute what masks are made of? */
static bool makes_mask(const TileOp *op) { return op->result_count == 1 && !tile_scalar_is_float(op->results[0].type->scalar); }

/* The first op of what is computed behind the last wait; where another product is under way, of what the mask is made of: the rest is there once. */
static TileOp *find_begin(TileOp *op) {
    const TileOp *wait = op;
    while (wait && wait->id != TILE_OP_DOT_WAIT) wait = wait->previous;
    bool last = wait && tile_op_integer(wait, TILE_ATTRIBUTE_PENDING, 0) == 0;
    while (op->previous && can_be_copied(op->previous, COMPUTED) && op->previous->id != TILE_OP_CONST && (last || makes_mask(op->previous)))
        op = op->previous;
    return op;
}

/* Two versions from this op on; returns the op behind them. */
static TileOp *make_versions(GpuMasks *masks, TileOp *op, Kind kind, bool *changed) {
    Masked masked;
    bool between = kind == COMPUTED && is_between_waits(op);
    if (between) op = find_begin(op);
    find_masks(masks, op, &masked, kind);
    if (kind == LOADED && yields_loads(&masked)) return op->next;
    if (masked.masks < (between ? 1 : 2) || (kind == ACCESSED && !masked.again)) return masked.end;
    TileValue *idle = hoist_scalars(&masked) ? build_test(masks, &masked) : NULL;
    if (idle) build_versions(masks, &masked, idle);
    *changed |= idle != NULL;
    return masked.end;
}

static bool walk(GpuMasks *masks, TileBlock *block, bool accesses) {
    bool changed = false, here = accesses || multiplies(block);
    for (TileOp *op = block->first, *next; op; op = next) {
        next = op->next;
        for (unsigned i = 0; i < op->region_count; i++) changed |= walk(masks, &op->regions[i], accesses);
        Kind kind = accesses ? ACCESSED : gpu_load_mask_is_testable(masks, op) ? LOADED : COMPUTED;
        if (here && asks(masks, op, kind)) next = make_versions(masks, op, kind, &changed);
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
