/* Purpose: test once for a whole block whether a mask has any effect (loop unswitching, for masks). Few blocks have
 * lanes past the end of a range, or keys that a query must not see; all others skip the fill or select, and the ops
 * that serve it alone.
 *
 * Before:
 *     func phase tile @k.0(%x: tensor<f32, 2, out> {noalias}, %begin: i64, %end: i64) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 32} : i64
 *       %f = const {value = 0.0} : f32
 *       %v = const {value = 1.0} : f32[32, 32]
 *       %w = fill %v, %f, %zero, %end {axes = [1]} : f32[32, 32]
 *       store_tile %x, %w, %begin, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]}
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%x: tensor<f32, 2, out> {noalias}, %begin: i64, %end: i64) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 32} : i64
 *       %f = const {value = 0.0} : f32
 *       %v = const {value = 1.0} : f32[32, 32]
 *       %0 = const {value = 32} : i64
 *       %1 = ge %end, %0 : bool
 *       %w = if %1 : f32[32, 32] {
 *         yield %v
 *       } {
 *         %w.1 = fill %v, %f, %zero, %end {axes = [1]} : f32[32, 32]
 *         yield %w.1
 *       }
 *       store_tile %x, %w, %begin, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]}
 *       return
 *     }
 * A select is skipped where its comparisons of indices hold for all lanes. Later uses of the tile take it filled where
 * that changes no result, so that the unfilled tile is not live beside the filled one.
 *
 * A fill of a load's undefined lanes, also of indices that are converted, becomes the load's own (`parts = [fill]`): the code for a tile that is not whole
 * decides for each lane anyway, and the value costs nothing there. Such a fill needs no test of its own.
 *
 * A scan or fold by any other function is there twice, without its mask and with it. A fold of what a scan combines is brought to the scan and shares
 * its branch: its results are what the scan ends with, and gpu-machine computes both at once.
 *
 * A scan or fold whose combiner is one op, such as a sum, and whose mask excludes elements past a range's end, gets its
 * excluded elements filled with the identity element instead; that fill is then skipped like the others.
 *
 * A load or update whose mask compares indices, as that of a gather along an index tile that is computed from a range, is there
 * twice, without its mask and with it. Where only some of the mask's parts compare indices, and data decides the others, the first has
 * these others as its mask.
 *
 * Needs: gpu-dot-operands, which looks for fills. Keeps: tile form. Cost: linear. */
#include "lang/ir/build.h"
#include "lang/ir/eval.h"
#include "lang/ir/operands.h"
#include "ptx/passes.h"
#include "ptx/grid/masks.h"
#include "ptx/grid/scans.h"

enum { MOST_DEPTH = 16, MOST_USES = 64 };

/* ---- the branch ---- */

/* Sinks ops whose only use is this op. */
static void sink_operands(TileOp *op) {
    for (unsigned i = 0; i < op->operand_count; i++) {
        TileValue *value = tile_op_operand(op, i);
        TileOp *source = value->op;
        bool own = source && source->block && !source->region_count && source->result_count == 1 &&
                   tile_value_has_one_use(value) && tile_op_is_pure(source) && tile_type_is_tile(value->type);
        if (!own || i == (op->id == TILE_OP_SELECT ? 1u : 0u)) continue;
        tile_op_detach(source);
        tile_op_insert_before(source, op);
        sink_operands(source);
    }
}

/* Does the op, or an op around it, follow `first` in the block of `first`? */
static bool runs_after(const TileOp *op, const TileOp *first) {
    while (op && op->block != first->block) op = op->block->op;
    for (const TileOp *next = first->next; op && next; next = next->next)
        if (next == op) return true;
    return false;
}

/* ---- undefined lanes ---- */

/* The lanes lo .. hi along an axis of a tile. */
typedef struct Bounds {
    unsigned axis;
    const TileValue *lo, *hi;
} Bounds;

/* A load leaves the lanes outside of its range undefined. Is its range along the axis equal to the bounds? */
static bool load_is_bounded(const TileOp *load, const Bounds *bounds) {
    TileValue *lo, *hi;
    if (tile_op_has_part(load, TILE_PARTS_FILL)) return false;
    return tile_access_bounds(load, bounds->axis, &lo, &hi) && lo == bounds->lo && hi == bounds->hi;
}

/* The load whose elements are filled, as they are or converted to another type of integers, and the value of the fill as one of them; NULL: there
 * is none, or no element has that value behind the conversion. */
static TileOp *filled_load(const TileOp *fill, uint64_t *bits) {
    const TileValue *filled = tile_op_operand(fill, 0);
    const TileOp *convert = tile_value_def(filled, TILE_OP_CONVERT);
    if (convert && (!tile_value_has_one_use(filled) || convert->block != fill->block)) return NULL;
    const TileValue *loaded = convert ? tile_op_operand(convert, 0) : filled;
    TileOp *load = loaded->op;
    if (!tile_value_def(loaded, TILE_OP_LOAD_TILE) || !tile_value_has_one_use(loaded) || load->block != fill->block) return NULL;
    if (!tile_value_bits(tile_op_operand(fill, 1), bits)) return NULL;
    if (!convert) return load;
    TileScalar from = loaded->type->scalar, to = filled->type->scalar;
    uint64_t back, with = *bits;
    if (!tile_scalar_is_int(from) || !tile_scalar_is_int(to) || !tile_eval(TILE_OP_CONVERT, to, from, &with, bits)) return NULL;
    return tile_eval(TILE_OP_CONVERT, from, to, bits, &back) && back == with ? load : NULL;
}

/* Can the load leave the value of the fill, a constant, where it leaves lanes undefined, and is the fill its only use? */
static bool fills_undefined(const TileOp *fill) {
    uint64_t bits;
    const TileOp *load = filled_load(fill, &bits);
    const TileAttribute *axes = tile_op_get(fill, TILE_ATTRIBUTE_AXES);
    if (!load) return false;
    if (tile_op_get(load, TILE_ATTRIBUTE_PARTS) || tile_op_get(load, TILE_ATTRIBUTE_TENSOR_MAP)) return false;
    for (unsigned i = 0; i < axes->count; i++) {
        const Bounds bounds = {(unsigned)axes->integers[i], tile_fill_lo(fill, i), tile_fill_hi(fill, i)};
        if (!load_is_bounded(load, &bounds)) return false;
    }
    return true;
}

static void give_to_load(TileModule *module, TileOp *fill) {
    const int64_t part = TILE_PARTS_FILL;
    uint64_t bits = 0;
    TileOp *load = filled_load(fill, &bits);
    TileBuilder b = tile_builder_before(module, load);
    tile_op_add_operand(module, load, tile_build_bits(&b, tile_type_scalar(module->context, load->results[0].type->scalar), bits));
    tile_op_set_integers(module, load, TILE_ATTRIBUTE_PARTS, &part, 1);
    tile_value_replace(&fill->results[0], tile_op_operand(fill, 0));
    tile_op_erase(fill);
}

/* Is every lane outside of the bounds undefined? Such lanes come from loads, and elementwise ops propagate them. Of a
 * select both arms must have them. */
static bool is_bounded(const TileValue *value, const Bounds *bounds, unsigned depth) {
    const TileOp *op = value->op;
    if (!op || !depth) return false;
    if (op->id == TILE_OP_LOAD_TILE) return load_is_bounded(op, bounds);
    if (tile_op_info(op->id)->class != TILE_CLASS_ELEMENTWISE) return false;
    bool both_arms = op->id == TILE_OP_SELECT;
    for (unsigned i = both_arms; i < op->operand_count; i++) {
        bool bounded = is_bounded(tile_op_operand(op, i), bounds, depth - 1);
        if (bounded != both_arms) return bounded;
    }
    return both_arms;
}

static bool fills_along(const TileOp *fill, const Bounds *bounds) {
    const TileAttribute *axes = tile_op_get(fill, TILE_ATTRIBUTE_AXES);
    for (unsigned i = 0; i < axes->count; i++)
        if (axes->integers[i] == bounds->axis && tile_fill_lo(fill, i) == bounds->lo &&
            tile_fill_hi(fill, i) == bounds->hi)
            return true;
    return false;
}

/* Does no result depend on the lanes outside of the bounds that the use reads? A fill with the same bounds replaces
 * them. `budget` is how many more uses are examined. */
static bool ignores_outside(const TileUse *use, const Bounds *bounds, unsigned *budget) {
    const TileOp *user = use->user;
    if (!*budget) return false;
    --*budget;
    if (user->id == TILE_OP_FILL) return use->index == 0 && fills_along(user, bounds);
    if (tile_op_info(user->id)->class != TILE_CLASS_ELEMENTWISE) return false;
    for (const TileUse *next = user->results[0].first_use; next; next = next->next)
        if (!ignores_outside(next, bounds, budget)) return false;
    return true;
}

/* Replaces uses after the fill by the filled value where the filled lanes make no difference: these are undefined in
 * the tile, or another fill replaces what is computed from them. Otherwise a thread would keep both values. */
static void use_filled(TileValue *value, const TileOp *fill, TileValue *filled) {
    const TileAttribute *axes = tile_op_get(fill, TILE_ATTRIBUTE_AXES);
    bool undefined = true;
    Bounds bounds[TILE_MAX_TILE_RANK];
    for (unsigned i = 0; i < axes->count; i++) {
        bounds[i] =
            (Bounds){(unsigned)axes->integers[i], tile_fill_lo(fill, i), tile_fill_hi(fill, i)};
        undefined &= is_bounded(value, &bounds[i], MOST_DEPTH);
    }
    for (TileUse *use = value->first_use, *next; use; use = next) {
        unsigned budget = MOST_USES, ignored = 0;
        next = use->next;
        if (!runs_after(use->user, filled->op)) continue;
        while (ignored < axes->count && ignores_outside(use, &bounds[ignored], &budget)) ignored++;
        if (undefined || ignored == axes->count) tile_op_set_operand(use->user, use->index, filled);
    }
}

/* Ops that share a branch: one, or a scan and the fold of what it combines. */
typedef struct Group {
    TileOp *ops[2];
    unsigned count, result_count;
    TileValue *results[2 * TILE_MAX_FOLD];
} Group;

static Group group_of(TileOp *op, TileOp *other) {
    Group group = {.ops = {op, other}, .count = other ? 2 : 1};
    if (op->id == TILE_OP_ATOMIC_TILE) return group; /* nobody takes its result */
    for (unsigned k = 0; k < group.count; k++)
        for (unsigned i = 0; i < group.ops[k]->result_count; i++) group.results[group.result_count++] = &group.ops[k]->results[i];
    return group;
}

static void yield_results(GpuMasks *masks, const Group *group, TileBlock *block) {
    TileBuilder b = tile_builder_at_end(masks->context->module, block);
    b.location = group->ops[0]->location;
    tile_build_end(&b, TILE_OP_YIELD, (TileValue **)(uintptr_t)group->results, group->result_count);
}

/* Moves the ops into the second arm of an `if`, whose first arm is still empty. */
static TileOp *move_into_branch(GpuMasks *masks, const Group *group, TileValue *idle) {
    const TileType *types[2 * TILE_MAX_FOLD];
    for (unsigned i = 0; i < group->result_count; i++) types[i] = group->results[i]->type;
    TileOp *branch = tile_build_if(&masks->b, idle, types, group->result_count);
    for (unsigned i = 0; i < group->result_count; i++) {
        branch->results[i].name = group->results[i]->name;
        tile_value_replace(group->results[i], &branch->results[i]);
    }
    for (unsigned k = 0; k < group->count; k++) {
        tile_op_detach(group->ops[k]);
        tile_op_append(group->ops[k], &branch->regions[1]);
    }
    yield_results(masks, group, &branch->regions[1]);
    return branch;
}

static void build_branch(GpuMasks *masks, TileOp *op, TileValue *idle, unsigned kept) {
    Group group = group_of(op, NULL);
    TileOp *branch = move_into_branch(masks, &group, idle);
    TileValue *value = tile_op_operand(op, kept);
    TileBuilder b = tile_builder_at_end(masks->context->module, &branch->regions[0]);
    b.location = op->location;
    tile_build_end(&b, TILE_OP_YIELD, &value, 1);
    sink_operands(op);
    if (op->id == TILE_OP_FILL) use_filled(tile_op_operand(op, kept), op, &branch->results[0]);
}

/* ---- folds and scans ---- */

static bool is_fold(const TileOp *op) { return op->id == TILE_OP_SCAN || op->id == TILE_OP_FOLD; }

/* Folds that share a mask compute their own, in their second arm. */
static void own_mask(TileModule *module, const Group *group, const TileOp *mask, TileMap *map) {
    if (tile_value_has_one_use(&mask->results[0])) return;
    TileOp *own = tile_op_clone(module, mask, map);
    unsigned count;
    tile_op_insert_before(own, group->ops[0]);
    for (unsigned k = 0; k < group->count; k++)
        tile_op_set_operand(group->ops[k], tile_op_operands(group->ops[k], TILE_OPERAND_MASK, &count), &own->results[0]);
}

/* The fold of what the scan combines, which is the next op (bring_together); NULL: there is none. */
static TileOp *fold_of_scan(GpuMasks *masks, const TileOp *scan) {
    return scan->next && gpu_scan_matches_fold(scan, scan->next, masks->context->scratch) ? scan->next : NULL;
}

/* The first arm has the folds without their mask: then no element needs to be selected, and what the combiner computes of
 * constants, such as counts of elements, is constant. */
static void build_fold_branch(GpuMasks *masks, TileOp *op, TileOp *mask, TileValue *idle) {
    TileModule *module = masks->context->module;
    TileMap map;
    tile_map_init(&map, masks->context->scratch);
    Group group = group_of(op, fold_of_scan(masks, op));
    TileOp *whole[2] = {NULL, NULL};
    for (unsigned k = 0; k < group.count; k++) whole[k] = tile_op_clone(module, group.ops[k], &map);
    TileOp *branch = move_into_branch(masks, &group, idle);
    for (unsigned k = 0; k < group.count; k++) {
        tile_op_append(whole[k], &branch->regions[0]);
        gpu_mask_remove(module, whole[k]);
    }
    Group wholes = group_of(whole[0], whole[1]);
    yield_results(masks, &wholes, &branch->regions[0]);
    own_mask(module, &group, mask, &map);
    if (!tile_value_has_uses(&mask->results[0])) tile_op_erase(mask);
    for (unsigned k = 0; k < group.count; k++) sink_operands(group.ops[k]);
}

/* The op that masks a fold or scan, and might keep all of its elements; NULL: none. */
static TileOp *mask_of_fold(GpuMasks *masks, const TileOp *op) {
    if (!is_fold(op) || !tile_op_has_part(op, TILE_PARTS_MASK)) return NULL;
    TileOp *mask = tile_op_named(op, TILE_OPERAND_MASK)->op;
    uint64_t kept;
    bool plain = mask && gpu_mask_has_test(masks, mask) &&
                 tile_value_bits(tile_op_operand(mask, gpu_mask_kept(mask)), &kept) && kept;
    return plain ? mask : NULL;
}

/* Is the op used as the mask of folds and scans only? */
static bool masks_folds(GpuMasks *masks, const TileOp *op) {
    for (const TileUse *use = op->results[0].first_use; use; use = use->next)
        if (mask_of_fold(masks, use->user) != op) return false;
    return op->results[0].first_use != NULL;
}

/* The fill that computes the mask of a scan or fold, and the identity element of its combiner; NULL: there is none. */
static TileOp *find_mask(const TileOp *op, uint64_t *identity) {
    if (!is_fold(op) || !tile_op_has_part(op, TILE_PARTS_MASK)) return NULL;
    uint64_t kept, filled;
    TileOp *mask = tile_value_def(tile_op_named(op, TILE_OPERAND_MASK), TILE_OP_FILL);
    bool plain = mask && tile_value_bits(tile_op_operand(mask, 0), &kept) && kept &&
                 tile_value_bits(tile_op_operand(mask, 1), &filled) && !filled;
    return plain && gpu_scan_op(op, identity) != TILE_OP_COUNT ? mask : NULL;
}

static bool fill_elements(TilePassContext *context, TileOp *op) {
    uint64_t identity;
    TileOp *mask = find_mask(op, &identity);
    if (!mask) return false;
    TileBuilder b = tile_builder_before(context->module, op);
    const TileAttribute *axes = tile_op_get(mask, TILE_ATTRIBUTE_AXES);
    TileValue *elements = tile_op_operand(op, 0), *bounds[2 * TILE_MAX_TILE_RANK];
    const TileType *scalar = tile_type_scalar(context->module->context, elements->type->scalar);
    for (unsigned i = 0; i < 2 * axes->count; i++) bounds[i] = tile_op_named_at(mask, TILE_OPERAND_BOUNDS, i);
    TileValue *with = tile_build_bits(&b, scalar, identity);
    tile_op_set_operand(op, 0, tile_build_fill(&b, elements, with, axes->integers, bounds, axes->count));
    gpu_mask_remove(context->module, op);
    if (!mask->results[0].first_use) tile_op_erase(mask);
    return true;
}

static bool fill_scans(TilePassContext *context, TileBlock *block) {
    bool changed = false;
    for (TileOp *op = block->first; op; op = op->next) {
        for (unsigned i = 0; i < op->region_count; i++) changed |= fill_scans(context, &op->regions[i]);
        changed |= fill_elements(context, op);
    }
    return changed;
}

/* A fold of what a scan combines comes directly behind it: both have the same operands, so where the one is, the other can be. */
static bool bring_together(TilePassContext *context, TileBlock *block) {
    bool changed = false;
    for (TileOp *op = block->first, *next; op; op = next) {
        next = op->next;
        for (unsigned i = 0; i < op->region_count; i++) changed |= bring_together(context, &op->regions[i]);
        if (op->id != TILE_OP_FOLD) continue;
        TileOp *scan = block->first;
        while (scan && !gpu_scan_matches_fold(scan, op, context->scratch)) scan = scan->next;
        if (!scan || scan->next == op) continue;
        changed = true;
        bool before = false;
        for (const TileOp *other = block->first; other != op; other = other->next) before |= other == scan;
        TileOp *moved = before ? op : scan;
        if (moved == next) next = next->next;
        tile_op_detach(moved);
        tile_op_insert_before(moved, before ? scan->next : op);
    }
    return changed;
}

/* ---- loads and updates ---- */

/* The first arm has the load or update without its mask, or with what was not tested of it. Index tiles stay in front of the branch: both arms read them. */
static void build_access_branch(GpuMasks *masks, TileOp *access, TileValue *idle) {
    TileModule *module = masks->context->module;
    TileMap map;
    tile_map_init(&map, masks->context->scratch);
    TileValue *rest = gpu_mask_build_rest(masks, access, access);
    TileOp *whole = tile_op_clone(module, access, &map);
    Group group = group_of(access, NULL), wholes = group_of(whole, NULL);
    TileOp *branch = move_into_branch(masks, &group, idle);
    tile_op_append(whole, &branch->regions[0]);
    unsigned count;
    if (rest)
        tile_op_set_operand(whole, tile_op_operands(whole, TILE_OPERAND_MASK, &count), rest);
    else
        gpu_mask_remove(module, whole);
    yield_results(masks, &wholes, &branch->regions[0]);
}

/* ---- selects ---- */

/* Does the condition compare indices? Other selects are not masks. */
static bool compares_indices(const TileValue *condition, unsigned depth) {
    const TileOp *op = condition->op;
    if (!op || !depth || !tile_type_is_tile(condition->type)) return false;
    switch ((TileOpId)op->id) {
    case TILE_OP_LT:
    case TILE_OP_LE:
    case TILE_OP_GT:
    case TILE_OP_GE:
    case TILE_OP_EQ:
    case TILE_OP_NE: return tile_op_operand(op, 0)->type->scalar == TILE_I64;
    case TILE_OP_AND:
    case TILE_OP_OR:
        return compares_indices(tile_op_operand(op, 0), depth - 1) ||
               compares_indices(tile_op_operand(op, 1), depth - 1);
    case TILE_OP_NOT:
    case TILE_OP_BROADCAST:
    case TILE_OP_RESHAPE: return compares_indices(tile_op_operand(op, 0), depth - 1);
    default: return false;
    }
}

static void remark_select(TilePassContext *context, const TileOp *select) {
    if (compares_indices(tile_op_operand(select, 0), MOST_DEPTH))
        tile_pass_remark(context, select, TILE_DECISION_MASK_BY_ELEMENT, "the mask", "%s",
                         "it is more than the `and` of `<`, `<=`, `>` and `>=` between sums of indices");
}

static bool try_op(GpuMasks *masks, TileOp *op) {
    if (op->id == TILE_OP_FILL && fills_undefined(op)) {
        give_to_load(masks->context->module, op);
        return true;
    }
    TileOp *mask = mask_of_fold(masks, op);
    if (mask) {
        build_fold_branch(masks, op, mask, gpu_mask_build_test(masks, mask, op));
        return true;
    }
    if (gpu_load_mask_has_test(masks, op) || gpu_update_mask_has_test(masks, op)) {
        build_access_branch(masks, op, gpu_mask_build_test(masks, op, op));
        return true;
    }
    bool tests = gpu_mask_has_test(masks, op);
    if (!tests && op->id == TILE_OP_SELECT && gpu_mask_is_large(op)) remark_select(masks->context, op);
    if (!tests || masks_folds(masks, op) || gpu_says_lanes(op)) return false; /* who takes a mask has the branch */
    build_branch(masks, op, gpu_mask_build_test(masks, op, op), gpu_mask_kept(op));
    return true;
}

static bool walk(GpuMasks *masks, TileBlock *block) {
    bool changed = false;
    for (TileOp *op = block->first, *next, *fold; op; op = next) {
        fold = op->id == TILE_OP_SCAN ? fold_of_scan(masks, op) : NULL;
        next = fold ? fold->next : op->next;
        unsigned regions = tile_op_get(op, TILE_ATTRIBUTE_MASKED) ? 1 : op->region_count;
        for (unsigned i = 0; i < regions; i++) changed |= walk(masks, &op->regions[i]);
        changed |= try_op(masks, op);
    }
    return changed;
}

TileResult tile_pass_gpu_whole(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    bool changed = fill_scans(context, &func->body);
    changed |= bring_together(context, &func->body);
    GpuMasks masks;
    gpu_masks_init(&masks, context, func);
    changed |= walk(&masks, &func->body);
    if (masks.b.error) return tile_pass_fail(context, TILE_INTERNAL, NULL, "gpu-whole: %s", masks.b.error);
    return changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
