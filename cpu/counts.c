/* Purpose: count in memory. How often each of many numbers occurs is written as a sum of comparisons of each element with each number (`histogram`,
 * `sum(where(x[:, None] == i, 1, 0), axis = 0)`): a loop over the numbers, and in it one over the elements. Each element is equal to one number at most,
 * which it says itself; so the loop over the elements stands in front, and adds 1 to that number's count.
 *
 * Run: --passes=cpu-counts,canonicalise,cse,dce --target=avx512
 * Before:
 *     func phase machine @k.0(%x: ptr<global>, %y: ptr<global>, %n: i64) {
 *       %c0 = const {value = 0} : i64
 *       %c4 = const {value = 4} : i64
 *       %all = const {value = 256} : i64
 *       %none = const {value = 0} : i32
 *       loop %c0, %all {loop = parallel, extent = 256} (%j: i64) {
 *         %number = convert %j : i32
 *         %count = loop %c0, %n, %none {loop = reduce, extent = 1000, combine = [sum], order = serial} : i32 (%i: i64, %0: i32) {
 *           %p = ptr_add %x, %i : ptr<global>
 *           %v = load %p : u8
 *           %w = convert %v : i32
 *           %same = eq %w, %number : bool
 *           %one = convert %same : i32
 *           yield %one
 *         }
 *         %o = mul %j, %c4 : i64
 *         %q = ptr_add %y, %o : ptr<global>
 *         store %count, %q
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func phase machine @k.0(%x: ptr<global>, %y: ptr<global>, %n: i64) {
 *       %0 = buffer {bytes = 1024, align = 64} : ptr<scratch>
 *       %1 = const {value = 0} : i32
 *       %c4 = const {value = 4} : i64
 *       %2 = const {value = 1} : i64
 *       %3 = const {value = 1} : i32
 *       %c0 = const {value = 0} : i64
 *       %all = const {value = 256} : i64
 *       loop %c0, %all {loop = parallel, extent = 256} (%4: i64) {
 *         %5 = mul %4, %c4 : i64
 *         %6 = ptr_add %0, %5 : ptr<scratch>
 *         store %1, %6
 *         yield
 *       }
 *       for %c0, %n, %2 (%7: i64) {
 *         %p = ptr_add %x, %7 : ptr<global>
 *         %v = load %p : u8
 *         %8 = convert %v : i64
 *         %9 = lt %8, %all : bool
 *         %10 = ge %8, %c0 : bool
 *         %11 = and %10, %9 : bool
 *         if %11 {
 *           %12 = mul %8, %c4 : i64
 *           %13 = ptr_add %0, %12 : ptr<scratch>
 *           %14 = load %13 : i32
 *           %15 = add %14, %3 : i32
 *           store %15, %13
 *           yield
 *         } {
 *           yield
 *         }
 *         yield
 *       }
 *       loop %c0, %all {loop = parallel, extent = 256} (%j: i64) {
 *         %o = mul %j, %c4 : i64
 *         %16 = ptr_add %0, %o : ptr<scratch>
 *         %count = load %16 : i32
 *         %q = ptr_add %y, %o : ptr<global>
 *         store %count, %q
 *         yield
 *       }
 *       return
 *     }
 * Sums of integers are the same in any order. Not for few numbers: a register compares an element with several of them at once.
 * Needs: canonicalise, cse. Keeps: every result, bit for bit. Cost: linear. */
#include "cpu/passes.h"
#include "lang/ir/operands.h"
#include "lang/scalar/scalar.h"
#include "lowering/each.h"
#include "lowering/emit.h"

enum {
    MOST_RESULTS = 64,
    MOST_CONDITIONS = 6,
    ALIGN = 64,
    WORTH = 4 /* registers of numbers, from which on one update takes less than all comparisons */
};

/* One sum: of the elements that are equal to the number, under conditions. */
typedef struct Sum {
    const TileValue *element, *conditions[MOST_CONDITIONS];
    unsigned condition_count;
} Sum;

typedef struct Counts {
    TilePassContext *context;
    TileEmitter *emitter;
    TileOp *numbers, *elements; /* the loops */
    TileMap by_number;          /* values inside of the loop over elements that differ from number to number */
    Sum sums[MOST_RESULTS];
} Counts;

static bool is_loop(const TileOp *op, TileName kind) {
    return op->id == TILE_OP_LOOP && tile_op_integer(op, TILE_ATTRIBUTE_LOOP_KIND, -1) == (int64_t)kind;
}

/* ---- what is counted ---- */

/* Is it the number itself? */
static bool is_number(const Counts *x, const TileValue *value) {
    const TileOp *convert = tile_value_def(value, TILE_OP_CONVERT);
    if (convert) value = tile_op_operand(convert, 0);
    return value == x->numbers->regions[0].arguments[0];
}

/* Is the value the same for all numbers, and there in front of the loop over them, or computed for each element? */
static bool is_of_element(Counts *x, const TileValue *value) {
    if (tile_value_outside(value, x->numbers)) return true;
    return !tile_value_outside(value, x->elements) && !tile_map_get(&x->by_number, value);
}

static bool add_condition(Counts *x, Sum *sum, const TileValue *condition) {
    if (!is_of_element(x, condition) || sum->condition_count == MOST_CONDITIONS) return false;
    sum->conditions[sum->condition_count++] = condition;
    return true;
}

/* The element is equal to the number, and the conditions hold. */
static bool read_comparison(Counts *x, Sum *sum, const TileValue *value) {
    const TileOp *op = value->op;
    if (!op) return false;
    if (op->id == TILE_OP_SELECT && tile_value_is_integer(tile_op_named(op, TILE_OPERAND_Y), 0))
        return add_condition(x, sum, tile_op_operand(op, 0)) && read_comparison(x, sum, tile_op_operand(op, 1));
    for (unsigned i = 0; op->id == TILE_OP_AND && i < 2; i++) {
        if (!is_of_element(x, tile_op_operand(op, i))) continue;
        return add_condition(x, sum, tile_op_operand(op, i)) && read_comparison(x, sum, tile_op_operand(op, 1 - i));
    }
    for (unsigned i = 0; op->id == TILE_OP_EQ && i < 2; i++) {
        const TileValue *element = tile_op_operand(op, i);
        bool wide = tile_scalar_is_int(element->type->scalar) && tile_scalar_bits(element->type->scalar) >= 32; /* each number has bits of its own */
        if (!wide || !is_number(x, tile_op_operand(op, 1 - i)) || !is_of_element(x, element)) continue;
        sum->element = element;
        return true;
    }
    return false;
}

/* Marks what differs from number to number; false: there is more than numbers, comparisons and loads in the loop. */
static bool mark(Counts *x) {
    for (TileOp *op = x->elements->regions[0].first; op != x->elements->regions[0].last; op = op->next) {
        bool differs = false, pure = tile_op_info((TileOpId)op->id)->traits & TILE_TRAIT_PURE;
        if ((!pure && op->id != TILE_OP_LOAD) || op->region_count || op->result_count != 1) return false;
        for (unsigned i = 0; i < op->operand_count; i++) {
            const TileValue *operand = tile_op_operand(op, i);
            bool inside = !tile_value_outside(operand, x->elements);
            differs |= inside ? tile_map_get(&x->by_number, operand) != NULL : !tile_value_outside(operand, x->numbers);
        }
        if (differs) tile_map_set(&x->by_number, &op->results[0], op);
        if (differs && op->id == TILE_OP_LOAD) return false;
    }
    return true;
}

static bool is_sum_of_ones(Counts *x, unsigned i) {
    const TileOp *convert = tile_value_def(tile_op_operand(x->elements->regions[0].last, i), TILE_OP_CONVERT);
    const TileValue *argument = x->elements->regions[0].arguments[1 + i];
    bool whole = tile_scalar_is_int(argument->type->scalar) && argument->type == x->elements->results[0].type && !tile_value_has_uses(argument);
    bool from_none = tile_value_is_integer(tile_loop_carried(x->elements, i), 0);
    if (!whole || !from_none || !convert || tile_op_get(x->elements, TILE_ATTRIBUTE_COMBINE)->integers[i] != TILE_COMBINE_SUM) return false;
    return tile_op_operand(convert, 0)->type->scalar == TILE_BOOL && read_comparison(x, &x->sums[i], tile_op_operand(convert, 0));
}

/* The sum that all results are added up to, so that one count does for them; NULL: they are not. */
static const TileValue *total_of(const TileValue *value) {
    while (tile_value_has_one_use(value) && value->first_use->user->id == TILE_OP_ADD) value = &value->first_use->user->results[0];
    return value;
}

static const char *find(Counts *x) {
    const TileOp *loop = x->elements;
    if (loop->result_count > MOST_RESULTS) return "more sums are computed beside each other than are followed";
    for (unsigned i = 0; i < 2; i++)
        if (!tile_value_outside(tile_op_operand(loop, i), x->numbers)) return "each number has elements of its own";
    if (!mark(x)) return "more is done for each element than to compare it";
    for (unsigned i = 0; i < loop->result_count; i++)
        if (!is_sum_of_ones(x, i)) return "";
    for (unsigned i = 1; i < loop->result_count; i++)
        if (total_of(&loop->results[i]) != total_of(&loop->results[0])) return "several counts are used by themselves";
    int64_t numbers = tile_op_integer(x->numbers, TILE_ATTRIBUTE_EXTENT, 0);
    int64_t lanes = x->context->target->vector_bytes / tile_scalar_bytes(loop->results[0].type->scalar);
    return numbers > WORTH * lanes ? NULL : "a register compares an element with several of the few numbers";
}

/* ---- code ---- */

static TileValue *place_of(Counts *x, TileBuilder *b, TileValue *counts, TileValue *number) {
    int64_t bytes = tile_scalar_bytes(x->elements->results[0].type->scalar);
    return tile_build_ptr_add(b, counts, tile_build_binary(b, TILE_OP_MUL, number, tile_emit_i64(x->emitter, bytes)));
}

static void clear_counts(Counts *x, TileValue *counts, TileValue *zero) {
    TileBuilder b = tile_builder_before(x->emitter->builder.module, x->numbers);
    b.location = x->elements->location;
    TileOp *loop = tile_build_loop(&b, TILE_LOOP_KIND_PARALLEL, tile_op_operand(x->numbers, 0), tile_op_operand(x->numbers, 1),
                                   tile_op_integer(x->numbers, TILE_ATTRIBUTE_EXTENT, 0), NULL, 0);
    TileBuilder inside = tile_builder_at_end(b.module, &loop->regions[0]);
    tile_build_store(&inside, zero, place_of(x, &inside, counts, loop->regions[0].arguments[0]), NULL, 0);
    tile_build_end(&inside, TILE_OP_YIELD, NULL, 0);
}

/* The value for one element, with all that it is computed from in the loop. */
static TileValue *copy_value(Counts *x, TileBuilder *b, const TileValue *value, TileMap *map) {
    TileValue *found = tile_map_get(map, value);
    if (found || tile_value_outside(value, x->elements)) return found ? found : (TileValue *)value;
    for (unsigned i = 0; i < value->op->operand_count; i++) copy_value(x, b, tile_op_operand(value->op, i), map);
    tile_builder_insert(b, tile_op_clone(b->module, value->op, map));
    return tile_map_get(map, value);
}

/* Ops are inserted into the first region; returns the builder behind the branch. */
static TileBuilder begin_branch(TileBuilder *b, TileValue *condition) {
    TileBuilder outer = *b;
    TileOp *branch = tile_build_if(&outer, condition, NULL, 0);
    TileBuilder no = tile_builder_at_end(b->module, &branch->regions[1]);
    tile_build_end(&no, TILE_OP_YIELD, NULL, 0);
    *b = tile_builder_at_end(b->module, &branch->regions[0]);
    b->location = outer.location;
    return outer;
}

/* 1 more for the element's number, if all conditions hold and it is one of the loop's. The element may be poison where they do not. */
static void count_element(Counts *x, TileBuilder *b, const Sum *sum, TileValue *index, TileValue *counts) {
    TileValue *all = NULL;
    TileMap map;
    tile_map_init(&map, x->context->scratch);
    tile_map_set(&map, x->elements->regions[0].arguments[0], index);
    for (unsigned i = 0; i < sum->condition_count; i++) {
        TileValue *own = copy_value(x, b, sum->conditions[i], &map);
        all = all ? tile_build_ternary(b, TILE_OP_SELECT, all, own, tile_emit_bits(x->emitter, own->type, 0)) : own;
    }
    TileBuilder behind = all ? begin_branch(b, all) : *b;
    TileValue *element = tile_build_convert(b, copy_value(x, b, sum->element, &map), TILE_I64);
    TileValue *below = tile_build_binary(b, TILE_OP_LT, element, tile_op_operand(x->numbers, 1));
    TileBuilder after = begin_branch(b, tile_build_binary(b, TILE_OP_AND, tile_build_binary(b, TILE_OP_GE, element, tile_op_operand(x->numbers, 0)), below));
    const TileType *type = x->elements->results[0].type;
    TileValue *place = place_of(x, b, counts, element), *old = tile_build_load(b, type, place, NULL, NULL, 0);
    tile_build_store(b, tile_build_binary(b, TILE_OP_ADD, old, tile_emit_bits(x->emitter, type, 1)), place, NULL, 0);
    tile_build_end(b, TILE_OP_YIELD, NULL, 0);
    if (all) tile_build_end(&after, TILE_OP_YIELD, NULL, 0);
    *b = all ? behind : after;
}

static void count_elements(Counts *x, TileValue *counts) {
    TileModule *module = x->emitter->builder.module;
    TileBuilder b = tile_builder_before(module, x->numbers);
    b.location = x->elements->location;
    TileOp *loop = tile_build_for(&b, tile_op_operand(x->elements, 0), tile_op_operand(x->elements, 1), tile_emit_i64(x->emitter, 1), NULL, 0);
    TileBuilder inside = tile_builder_at_end(module, &loop->regions[0]);
    inside.location = b.location;
    for (unsigned i = 0; i < x->elements->result_count; i++) count_element(x, &inside, &x->sums[i], loop->regions[0].arguments[0], counts);
    tile_build_end(&inside, TILE_OP_YIELD, NULL, 0);
}

/* All counts are that of the first sum, which the others are added to. */
static void replace_sums(Counts *x, TileValue *counts, TileValue *zero) {
    TileOp *loop = x->elements;
    TileBuilder b = tile_builder_before(x->emitter->builder.module, loop);
    b.location = loop->location;
    TileValue *place = place_of(x, &b, counts, x->numbers->regions[0].arguments[0]);
    tile_value_replace(&loop->results[0], tile_build_load(&b, zero->type, place, NULL, NULL, 0));
    for (unsigned i = 1; i < loop->result_count; i++) tile_value_replace(&loop->results[i], zero);
    tile_op_erase(loop);
}

static void try_loop(TilePassContext *context, TileEmitter *emitter, TileOp *elements) {
    TileOp *numbers = elements->block->op;
    if (!is_loop(elements, TILE_LOOP_KIND_REDUCE) || !numbers || !is_loop(numbers, TILE_LOOP_KIND_PARALLEL)) return;
    Counts x = {.context = context, .emitter = emitter, .numbers = numbers, .elements = elements};
    tile_map_init(&x.by_number, context->scratch);
    const char *why = find(&x);
    if (why) {
        if (*why) tile_pass_remark(context, elements, TILE_DECISION_NOT_COUNTED, "the sum of comparisons", "%s", why);
        return;
    }
    tile_pass_remark(context, elements, TILE_DECISION_COUNTED, "the sum of comparisons", "%s", "");
    const TileType *type = elements->results[0].type;
    int64_t extent = tile_op_integer(numbers, TILE_ATTRIBUTE_EXTENT, 0);
    TileValue *counts = tile_build_buffer(&emitter->front, extent * tile_scalar_bytes(type->scalar), ALIGN), *zero = tile_emit_bits(emitter, type, 0);
    clear_counts(&x, counts, zero);
    count_elements(&x, counts);
    replace_sums(&x, counts, zero);
    emitter->changed = true;
}

TileResult tile_pass_cpu_counts(TilePassContext *context, TileFunc *func) {
    TileOps found = tile_find_each(&func->body, TILE_OP_LOOP, context->scratch);
    if (!found.count || !context->target) return TILE_RESULT_UNCHANGED;
    TileEmitter emitter = tile_emitter_create(context, func);
    for (size_t i = found.count; i-- > 0;) try_loop(context, &emitter, found.items[i]);
    return tile_emit_finish(&emitter, context);
}
