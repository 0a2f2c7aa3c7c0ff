/* Merging the results of a loop's parts, by the rules that merges.c has found. */
#include "lang/ir/eval.h"
#include "lang/ir/operands.h"
#include "lang/scalar/scalar.h"
#include "ptx/grid/merges.h"

/* ---- copies of what an iteration does ---- */

/* The value as it follows from others, which `map` has, and from constants; for one lane. */
static TileValue *copy_scalar(TileBuilder *b, TileMap *map, TileValue *value) {
    TileContext *context = b->module->context;
    const TileType *type = tile_type_scalar(context, value->type->scalar);
    TileValue *known = tile_map_get(map, value), *operands[3];
    uint64_t bits;
    if (known) return known;
    const TileOp *op = value->op;
    if (tile_value_bits(value, &bits))
        known = tile_build_bits(b, type, bits);
    else if (op->id == TILE_OP_BROADCAST || op->id == TILE_OP_RESHAPE || op->id == TILE_OP_SPLAT)
        known = copy_scalar(b, map, tile_op_operand(op, 0));
    else {
        for (unsigned i = 0; i < op->operand_count; i++) operands[i] = copy_scalar(b, map, tile_op_operand(op, i));
        known = &tile_build_op(b, (TileOpId)op->id, operands, op->operand_count, op->attributes, op->attribute_count,
                               &type, 1)->results[0];
    }
    tile_map_set(map, value, known);
    return known;
}

/* The value as it follows from others, which `map` has, and from what is defined outside of the loop. */
static TileValue *copy_tile(const GpuMerge *merge, TileBuilder *b, TileMap *map, TileValue *value) {
    TileValue *known = tile_map_get(map, value);
    if (known || tile_value_outside(value, merge->loop)) return known ? known : value;
    for (unsigned i = 0; i < value->op->operand_count; i++) copy_tile(merge, b, map, tile_op_operand(value->op, i));
    tile_builder_insert(b, tile_op_clone(b->module, value->op, map));
    return tile_map_get(map, value);
}

static TileValue *copy(const GpuMerge *merge, TileBuilder *b, TileMap *map, TileValue *value) {
    return merge->tiles ? copy_tile(merge, b, map, value) : copy_scalar(b, map, value);
}

/* 0 where the value is -inf, but for lanes of which the exception holds, a scalar or NULL. */
static TileValue *build_guard(TileBuilder *b, TileValue *value, TileValue *exception) {
    const TileType *type = value->type;
    TileValue *none = tile_build_bits(b, type, tile_scalar_least(type->scalar));
    TileValue *is_none = tile_build_binary(b, TILE_OP_EQ, value, none), *zero = tile_build_bits(b, type, 0);
    if (exception) {
        TileValue *rule = tile_build_unary(b, TILE_OP_NOT, exception);
        if (tile_type_is_tile(type)) rule = tile_build_splat(b, rule, is_none->type);
        is_none = tile_build_binary(b, TILE_OP_AND, is_none, rule);
    }
    return tile_build_ternary(b, TILE_OP_SELECT, is_none, zero, value);
}

static void replace_in(TileOp *op, TileValue *value, TileValue *with) {
    for (unsigned i = 0; i < op->operand_count; i++)
        if (tile_op_operand(op, i) == value) tile_op_set_operand(op, i, with);
}

void gpu_merge_guard(const GpuMerge *merge, TileModule *module, TileMap *map, TileValue *is_first) {
    for (unsigned i = 0; i < merge->count; i++) {
        GpuMergeBase base = merge->values[i].base;
        if (base == GPU_MERGE_BASE_GUARDED) continue;
        TileValue *next = tile_map_get(map, gpu_merge_next(merge, i));
        TileBuilder b = tile_builder_before(module, next->op->next);
        b.location = next->op->location;
        TileValue *guarded = build_guard(&b, next, base == GPU_MERGE_BASE_BARE ? is_first : NULL);
        tile_value_replace(next, guarded);
        for (TileOp *op = next->op->next; op != guarded->op->next; op = op->next) replace_in(op, guarded, next);
        replace_in(next->op->block->last, guarded, next);
    }
}

/* The sum of one part, as its top becomes that of both. */
static TileValue *build_factor(const GpuMerge *merge, TileBuilder *b, TileArena *scratch, unsigned i,
                               TileValue *const *part, TileValue *const *result) {
    TileMap map;
    tile_map_init(&map, scratch);
    for (unsigned k = 0; k < merge->count; k++) {
        if (merge->values[k].rule != GPU_MERGE_OP) continue;
        tile_map_set(&map, gpu_merge_carried(merge, k), part[k]);
        bool bare = merge->values[k].base != GPU_MERGE_BASE_GUARDED;
        tile_map_set(&map, gpu_merge_next(merge, k), bare ? build_guard(b, result[k], NULL) : result[k]);
    }
    return copy(merge, b, &map, merge->values[i].factor);
}

static TileValue *build_choice(const GpuMerge *merge, TileBuilder *b, TileArena *scratch, unsigned i,
                               TileValue *const *left, TileValue *const *right) {
    TileMap map;
    unsigned key = merge->values[i].key;
    const TileOp *select = gpu_merge_next(merge, key)->op;
    tile_map_init(&map, scratch);
    for (unsigned k = 0; k < merge->count; k++)
        if (merge->values[k].rule == GPU_MERGE_OP) tile_map_set(&map, gpu_merge_carried(merge, k), left[k]);
    tile_map_set(&map, gpu_merge_carried(merge, key), left[key]);
    tile_map_set(&map, tile_op_operand(select, 1), right[key]);
    TileValue *better = copy(merge, b, &map, tile_op_operand(select, 0));
    return tile_build_ternary(b, TILE_OP_SELECT, better, right[i], left[i]);
}

/* Where one of the two is not there, the other one stands: `present` of left and right. */
static void combine_present(TileBuilder *b, const TileBlock *combiner, TileValue *const *present,
                            TileValue *const *left, TileValue *const *right, TileValue **result) {
    tile_build_combined(b, combiner, left, right, result);
    for (unsigned k = 0; k < combiner->argument_count / 2; k++) {
        TileValue *one = tile_build_ternary(b, TILE_OP_SELECT, present[0], result[k], right[k]);
        result[k] = tile_build_ternary(b, TILE_OP_SELECT, present[1], one, left[k]);
    }
}

static void build_fold(const GpuMerge *merge, TileBuilder *b, unsigned number, TileValue *const *left,
                       TileValue *const *right, TileValue **result) {
    TileValue *from[2][TILE_MAX_FOLD], *to[TILE_MAX_FOLD],
        *present[2] = {left[merge->count + number], right[merge->count + number]};
    for (unsigned i = 0; i < merge->count; i++) {
        const GpuMerged *value = &merge->values[i];
        if (value->rule != GPU_MERGE_FOLD || value->fold != number) continue;
        from[0][value->at] = left[i];
        from[1][value->at] = right[i];
    }
    combine_present(b, &merge->folds[number]->regions[0], present, from[0], from[1], to);
    for (unsigned i = 0; i < merge->count; i++)
        if (merge->values[i].rule == GPU_MERGE_FOLD && merge->values[i].fold == number)
            result[i] = to[merge->values[i].at];
    result[merge->count + number] = tile_build_binary(b, TILE_OP_OR, present[0], present[1]);
}

void gpu_merge_build(const GpuMerge *merge, TileBuilder *b, TileArena *scratch, TileValue *const *left,
                     TileValue *const *right, TileValue **result) {
    for (unsigned i = 0; i < merge->count; i++) {
        const GpuMerged *value = &merge->values[i];
        if (value->rule == GPU_MERGE_OP)
            result[i] = tile_build_binary(b, tile_eval_combiner(value->kind), left[i], right[i]);
        if (value->rule == GPU_MERGE_CHOICE) result[i] = build_choice(merge, b, scratch, i, left, right);
    }
    for (unsigned i = 0; i < merge->count; i++) {
        if (merge->values[i].rule != GPU_MERGE_RESCALED) continue;
        TileValue *x = build_factor(merge, b, scratch, i, left, result),
                  *y = build_factor(merge, b, scratch, i, right, result);
        result[i] = tile_build_ternary(b, TILE_OP_FMA, left[i], x, tile_build_binary(b, TILE_OP_MUL, right[i], y));
    }
    for (unsigned number = 0; number < merge->fold_count; number++) build_fold(merge, b, number, left, right, result);
}

/* ---- whether there are elements ---- */

const TileType *gpu_merge_type(const GpuMerge *merge, TileContext *context, unsigned i) {
    const TileType *type = merge->loop->results[i < merge->count ? i : 0].type;
    return i < merge->count ? type : tile_type_with_scalar(context, type, TILE_BOOL);
}

/* Replaces a fold by one that also has, in front of its values, whether there are any: so its init, of which that is
 * `present`, may be none. Returns the new one. */
static TileOp *add_presence(TileBuilder *b, TileOp *fold, TileValue *present) {
    TileModule *module = b->module;
    unsigned count = fold->result_count;
    TileValue *values[TILE_MAX_FOLD], *init[TILE_MAX_FOLD] = {present}, *result[TILE_MAX_FOLD];
    values[0] = tile_build_bits(
        b, tile_type_with_scalar(module->context, tile_op_operand(fold, 0)->type, TILE_BOOL), 1);
    for (unsigned k = 0; k < count; k++) {
        values[1 + k] = tile_op_operand(fold, k);
        init[1 + k] = tile_op_named_at(fold, TILE_OPERAND_INIT, k);
    }
    TileFoldParts parts = {.values = values, .init = init, .count = count + 1,
                           .mask = tile_op_has_part(fold, TILE_PARTS_MASK) ? tile_op_named(fold, TILE_OPERAND_MASK) : NULL,
                           .axis = tile_op_integer(fold, TILE_ATTRIBUTE_AXIS, 0)};
    TileOp *wider = tile_build_fold(b, TILE_OP_FOLD, &parts);
    TileValue **arguments = wider->regions[0].arguments, *both[2] = {arguments[0], arguments[count + 1]};
    TileBuilder inner = tile_builder_at_end(module, &wider->regions[0]);
    inner.location = fold->location;
    combine_present(&inner, &fold->regions[0], both, arguments + 1, arguments + count + 2, result + 1);
    result[0] = tile_build_binary(&inner, TILE_OP_OR, both[0], both[1]);
    tile_build_end(&inner, TILE_OP_YIELD, result, count + 1);
    for (unsigned k = 0; k < count; k++) tile_value_replace(&fold->results[k], &wider->results[1 + k]);
    tile_op_erase(fold);
    return wider;
}

TileOp *gpu_merge_carry_presence(const GpuMerge *merge, TileBuilder *b, TileOp *loop) {
    TileModule *module = b->module;
    TileBlock *body = &loop->regions[0];
    TileValue *carried[TILE_MAX_FOLD], *next[TILE_MAX_FOLD];
    unsigned count = merge->count, all = gpu_merge_value_count(merge);
    for (unsigned i = 0; i < all; i++)
        carried[i] = i < count ? tile_loop_carried(loop, i) : tile_build_bits(b, gpu_merge_type(merge, module->context, i), 0);
    TileOp *wider = tile_build_for(b, tile_op_named(loop, TILE_OPERAND_LO), tile_op_named(loop, TILE_OPERAND_HI),
                                   tile_op_named(loop, TILE_OPERAND_STEP), carried, all);
    TileBlock *to = &wider->regions[0];
    for (unsigned i = 0; i < body->argument_count; i++) tile_value_replace(body->arguments[i], to->arguments[i]);
    for (unsigned i = 0; i < count; i++) {
        next[i] = tile_op_operand(body->last, i);
        tile_value_replace(&loop->results[i], &wider->results[i]);
    }
    for (unsigned number = 0; number < merge->fold_count; number++) {
        unsigned first = 0; /* a value of the fold; the clone has the same one */
        while (merge->values[first].rule != GPU_MERGE_FOLD || merge->values[first].fold != number) first++;
        TileOp *fold = next[first]->op;
        TileBuilder inner = tile_builder_before(module, fold);
        fold = add_presence(&inner, fold, to->arguments[1 + count + number]);
        next[count + number] = &fold->results[0];
        for (unsigned i = 0; i < count; i++)
            if (merge->values[i].rule == GPU_MERGE_FOLD && merge->values[i].fold == number)
                next[i] = &fold->results[1 + merge->values[i].at];
    }
    tile_op_erase(body->last);
    tile_block_splice(to, body);
    TileBuilder end = tile_builder_at_end(module, to);
    end.location = loop->location;
    tile_build_end(&end, TILE_OP_YIELD, next, all);
    tile_op_erase(loop);
    return wider;
}
