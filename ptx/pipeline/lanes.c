/* Purpose: split loop-carried long vectors into scalars. A thread's sums of a tile are one vector, of which each
 * instruction uses some lanes and defines new ones. If no op of the body uses more lanes at once, the back end need not
 * build and take apart a long vector in each iteration. In that case elementwise ops on such vectors are split as well,
 * and extracted lanes are forwarded from the values that were inserted.
 *
 * Before:
 *     func phase machine @k.0(%c: ptr<global>, %n: i64, %shared: ptr<shared>) threads = 32 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %first = const {value = 0.0} : vec<16 x f32>
 *       %sums = for %zero, %n, %one, %first : vec<16 x f32> (%k: i64, %acc: vec<16 x f32>) {
 *         %a = shuffle %acc, %acc {axes = [0, 1, 2, 3, 4, 5, 6, 7]} : vec<8 x f32>
 *         %b = shuffle %acc, %acc {axes = [8, 9, 10, 11, 12, 13, 14, 15]} : vec<8 x f32>
 *         %s = neg %a : vec<8 x f32>
 *         %t = neg %b : vec<8 x f32>
 *         %next = shuffle %s, %t {axes = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]} : vec<16 x f32>
 *         yield %next
 *       }
 *       store %sums, %c
 *       return
 *     }
 * After:
 *     func phase machine @k.0(%c: ptr<global>, %n: i64, %shared: ptr<shared>) threads = 32 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %first = const {value = 0.0} : vec<16 x f32>
 *       %0 = extract %first {axis = 0} : f32
 *       %1 = extract %first {axis = 1} : f32
 *       %2 = extract %first {axis = 2} : f32
 *       %3 = extract %first {axis = 3} : f32
 *       %4 = extract %first {axis = 4} : f32
 *       %5 = extract %first {axis = 5} : f32
 *       %6 = extract %first {axis = 6} : f32
 *       %7 = extract %first {axis = 7} : f32
 *       %8 = extract %first {axis = 8} : f32
 *       %9 = extract %first {axis = 9} : f32
 *       %10 = extract %first {axis = 10} : f32
 *       %11 = extract %first {axis = 11} : f32
 *       %12 = extract %first {axis = 12} : f32
 *       %13 = extract %first {axis = 13} : f32
 *       %14 = extract %first {axis = 14} : f32
 *       %15 = extract %first {axis = 15} : f32
 *       %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31 = for %zero, %n, %one, %0,
 *           %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15 : f32, f32, f32, f32, f32, f32, f32,
 *           f32, f32, f32, f32, f32, f32, f32, f32, f32 (%k: i64, %32: f32, %33: f32, %34: f32, %35: f32, %36:
 *           f32, %37: f32, %38: f32, %39: f32, %40: f32, %41: f32, %42: f32, %43: f32, %44: f32, %45: f32, %46:
 *           f32, %47: f32) {
 *         %48 = splat %32 : vec<8 x f32>
 *         %49 = insert %48, %33 {axis = 1} : vec<8 x f32>
 *         %50 = insert %49, %34 {axis = 2} : vec<8 x f32>
 *         %51 = insert %50, %35 {axis = 3} : vec<8 x f32>
 *         %52 = insert %51, %36 {axis = 4} : vec<8 x f32>
 *         %53 = insert %52, %37 {axis = 5} : vec<8 x f32>
 *         %54 = insert %53, %38 {axis = 6} : vec<8 x f32>
 *         %a = insert %54, %39 {axis = 7} : vec<8 x f32>
 *         %55 = splat %40 : vec<8 x f32>
 *         %56 = insert %55, %41 {axis = 1} : vec<8 x f32>
 *         %57 = insert %56, %42 {axis = 2} : vec<8 x f32>
 *         %58 = insert %57, %43 {axis = 3} : vec<8 x f32>
 *         %59 = insert %58, %44 {axis = 4} : vec<8 x f32>
 *         %60 = insert %59, %45 {axis = 5} : vec<8 x f32>
 *         %61 = insert %60, %46 {axis = 6} : vec<8 x f32>
 *         %b = insert %61, %47 {axis = 7} : vec<8 x f32>
 *         %s = neg %a : vec<8 x f32>
 *         %t = neg %b : vec<8 x f32>
 *         %62 = extract %s {axis = 0} : f32
 *         %63 = extract %s {axis = 1} : f32
 *         %64 = extract %s {axis = 2} : f32
 *         %65 = extract %s {axis = 3} : f32
 *         %66 = extract %s {axis = 4} : f32
 *         %67 = extract %s {axis = 5} : f32
 *         %68 = extract %s {axis = 6} : f32
 *         %69 = extract %s {axis = 7} : f32
 *         %70 = extract %t {axis = 0} : f32
 *         %71 = extract %t {axis = 1} : f32
 *         %72 = extract %t {axis = 2} : f32
 *         %73 = extract %t {axis = 3} : f32
 *         %74 = extract %t {axis = 4} : f32
 *         %75 = extract %t {axis = 5} : f32
 *         %76 = extract %t {axis = 6} : f32
 *         %77 = extract %t {axis = 7} : f32
 *         yield %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77
 *       }
 *       %78 = splat %16 : vec<16 x f32>
 *       %79 = insert %78, %17 {axis = 1} : vec<16 x f32>
 *       %80 = insert %79, %18 {axis = 2} : vec<16 x f32>
 *       %81 = insert %80, %19 {axis = 3} : vec<16 x f32>
 *       %82 = insert %81, %20 {axis = 4} : vec<16 x f32>
 *       %83 = insert %82, %21 {axis = 5} : vec<16 x f32>
 *       %84 = insert %83, %22 {axis = 6} : vec<16 x f32>
 *       %85 = insert %84, %23 {axis = 7} : vec<16 x f32>
 *       %86 = insert %85, %24 {axis = 8} : vec<16 x f32>
 *       %87 = insert %86, %25 {axis = 9} : vec<16 x f32>
 *       %88 = insert %87, %26 {axis = 10} : vec<16 x f32>
 *       %89 = insert %88, %27 {axis = 11} : vec<16 x f32>
 *       %90 = insert %89, %28 {axis = 12} : vec<16 x f32>
 *       %91 = insert %90, %29 {axis = 13} : vec<16 x f32>
 *       %92 = insert %91, %30 {axis = 14} : vec<16 x f32>
 *       %sums = insert %92, %31 {axis = 15} : vec<16 x f32>
 *       store %sums, %c
 *       return
 *     }
 * Needs: gpu-machine. Keeps: machine form. Cost: the number of extracted lanes times the length of vectors. */
#include "lowering/each.h"
#include "lang/ir/operands.h"
#include "ptx/pipeline/loop.h"
#include "ptx/passes.h"

/* Vectors with more lanes are long, and split into parts of this many. */
enum { PART_LANES = 8, MOST_OPERANDS = 3 };

static bool is_long(const TileType *type) {
    return type->kind == TILE_TYPE_VECTOR && !type->scalable && tile_type_lanes(type) > PART_LANES;
}

static bool takes_lanes(const TileOp *op) { return op->id == TILE_OP_EXTRACT || op->id == TILE_OP_SHUFFLE; }

/* Do all uses of the value extract lanes? */
static bool goes_in_parts(const TileValue *value) {
    for (const TileUse *use = value->first_use; use; use = use->next)
        if (!takes_lanes(use->user)) return false;
    return true;
}

/* ---- lanes ---- */

/* A lane of a vector: the scalar that was inserted, or else extracted. */
static TileValue *lane_of(TileBuilder *b, TileValue *vector, int64_t lane) {
    for (const TileOp *op = vector->op; op; op = vector->op) {
        if (op->id == TILE_OP_SPLAT) return tile_op_operand(op, 0);
        if (op->id == TILE_OP_INSERT) {
            if (tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0) == lane) return tile_op_operand(op, 1);
            vector = tile_op_operand(op, 0);
        } else if (op->id == TILE_OP_SHUFFLE) {
            int64_t from = tile_op_get(op, TILE_ATTRIBUTE_AXES)->integers[lane],
                    first = tile_type_lanes(tile_op_operand(op, 0)->type);
            vector = tile_op_operand(op, from >= first);
            lane = from >= first ? from - first : from;
        } else {
            break;
        }
    }
    return tile_build_extract(b, vector, lane);
}

static TileValue *join(TileBuilder *b, TileValue *const *lanes, const TileType *type) {
    TileValue *value = tile_build_splat(b, lanes[0], type);
    for (int64_t i = 1; i < tile_type_lanes(type); i++) value = tile_build_insert(b, value, lanes[i], i);
    return value;
}

/* Erases ops that build a vector without uses. */
static void drop(TileValue *value) {
    while (value->op && !tile_value_has_uses(value) &&
           (value->op->id == TILE_OP_INSERT || value->op->id == TILE_OP_SPLAT || value->op->id == TILE_OP_SHUFFLE)) {
        TileOp *op = value->op;
        value = tile_op_operand(op, 0);
        tile_op_erase(op);
    }
}

/* Forwards inserted values to ops that extract a few lanes. */
static void forward(TilePassContext *context, TileValue *value) {
    for (TileUse *use = value->first_use, *next; use; use = next) {
        TileOp *user = use->user;
        for (next = use->next; next && next->user == user;) next = next->next;
        if (!takes_lanes(user)) continue;
        TileValue *taken = &user->results[0], *lanes[PART_LANES];
        bool extracts = user->id == TILE_OP_EXTRACT;
        int64_t count = tile_type_lanes(taken->type);
        if (count > PART_LANES) continue;
        TileBuilder b = tile_builder_before(context->module, user);
        for (int64_t i = 0; i < count; i++)
            lanes[i] =
                extracts ? lane_of(&b, value, tile_op_integer(user, TILE_ATTRIBUTE_AXIS, 0)) : lane_of(&b, taken, i);
        tile_value_replace(taken, extracts ? lanes[0] : join(&b, lanes, taken->type));
        tile_op_erase(user);
    }
}

/* ---- elementwise ops ---- */

static const TileType *part_type(const TilePassContext *context, const TileType *type) {
    return tile_type_vector(context->module->context, type->scalar, PART_LANES, false);
}

/* Splits an elementwise op; returns the op that follows. */
static TileOp *split_op(TilePassContext *context, TileOp *op) {
    TileValue *result = &op->results[0], *lanes[PART_LANES], *operands[MOST_OPERANDS];
    TileBuilder b = tile_builder_before(context->module, op);
    int64_t count = tile_type_lanes(result->type);
    TileValue **all = TILE_NEW_ARRAY(context->scratch, TileValue *, count);
    const TileType *type = part_type(context, result->type);
    for (int64_t first = 0; first < count; first += PART_LANES) {
        for (unsigned k = 0; k < op->operand_count; k++) {
            TileValue *operand = tile_op_operand(op, k);
            for (unsigned i = 0; i < PART_LANES; i++) lanes[i] = lane_of(&b, operand, first + i);
            operands[k] = join(&b, lanes, part_type(context, operand->type));
        }
        TileOp *part =
            tile_build_op(&b, op->id, operands, op->operand_count, op->attributes, op->attribute_count, &type, 1);
        for (unsigned i = 0; i < PART_LANES; i++) all[first + i] = tile_build_extract(&b, tile_op_result(part, 0), i);
    }
    TileValue *joined = join(&b, all, result->type);
    tile_value_replace(result, joined);
    tile_op_erase(op);
    forward(context, joined);
    return joined->op->next;
}

static bool is_put_together(const TileValue *value) {
    return value->op && (value->op->id == TILE_OP_INSERT || value->op->id == TILE_OP_SPLAT);
}

static bool can_split(const TileOp *op) {
    if (tile_op_info(op->id)->class != TILE_CLASS_ELEMENTWISE || op->operand_count > MOST_OPERANDS) return false;
    if (op->result_count != 1 || !is_long(op->results[0].type)) return false;
    for (unsigned i = 0; i < op->operand_count; i++)
        if (!is_put_together(tile_op_operand(op, i)) || !is_long(tile_op_operand(op, i)->type)) return false;
    return tile_type_lanes(op->results[0].type) % PART_LANES == 0 && goes_in_parts(&op->results[0]);
}

static void split_block(TilePassContext *context, TileBlock *block) {
    for (TileOp *op = block->first; op;) {
        for (unsigned i = 0; i < op->region_count; i++) split_block(context, &op->regions[i]);
        if (op->id == TILE_OP_INSERT && is_long(op->results[0].type)) forward(context, &op->results[0]);
        op = can_split(op) ? split_op(context, op) : op->next;
    }
}

/* ---- loops ---- */

static void replace(TileValue *vector, TileValue *joined) {
    joined->name = vector->name;
    tile_value_replace(vector, joined);
}

/* Makes the lanes of a vector loop-carried instead of the vector; a vector is built of them where it was used. */
static TileOp *carry_lanes(TilePassContext *context, TileOp *loop, unsigned number) {
    const TileType *type = loop->results[number].type;
    unsigned count = (unsigned)tile_type_lanes(type), before = loop->result_count;
    TileValue **lanes = TILE_NEW_ARRAY(context->scratch, TileValue *, count);
    TileBuilder b = tile_builder_before(context->module, loop);
    for (unsigned i = 0; i < count; i++) lanes[i] = lane_of(&b, tile_loop_carried(loop, number), i);
    loop = gpu_loop_carry(context, loop, lanes, count);
    TileBlock *body = &loop->regions[0];
    TileValue *yielded = tile_op_operand(body->last, number);
    b = tile_builder_before(context->module, body->last);
    for (unsigned i = 0; i < count; i++) tile_op_add_operand(context->module, body->last, lane_of(&b, yielded, i));
    for (unsigned i = 0; i < count; i++) lanes[i] = &loop->results[before + i];
    b = tile_builder_before(context->module, loop->next);
    replace(&loop->results[number], join(&b, lanes, type));
    for (unsigned i = 0; i < count; i++) lanes[i] = body->arguments[1 + before + i];
    b = tile_builder_before(context->module, body->first);
    TileValue *joined = join(&b, lanes, type);
    replace(body->arguments[1 + number], joined);
    forward(context, joined);
    drop(joined);
    tile_op_remove_operand(body->last, number);
    drop(yielded);
    tile_op_remove_operand(loop, 3 + number);
    tile_block_remove_argument(body, 1 + number);
    tile_op_remove_result(loop, number);
    return loop;
}

static bool try_loop(TilePassContext *context, TileOp *loop, const char **error) {
    (void)error; /* building cannot fail */
    bool changed = false;
    for (unsigned i = 0; i < loop->result_count;) {
        const TileOp *made = tile_op_operand(loop->regions[0].last, i)->op;
        bool in_parts = is_long(loop->results[i].type) && goes_in_parts(loop->regions[0].arguments[1 + i]) && made &&
                        (made->id == TILE_OP_INSERT || made->id == TILE_OP_SHUFFLE);
        if (in_parts) loop = carry_lanes(context, loop, i);
        i += !in_parts;
        changed |= in_parts;
    }
    return changed;
}

TileResult tile_pass_gpu_lanes(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE || !func->threads) return TILE_RESULT_UNCHANGED;
    TileResult result = tile_try_each(context, func, TILE_OP_FOR, try_loop, "gpu-lanes");
    if (result == TILE_RESULT_CHANGED) split_block(context, &func->body);
    return result;
}
