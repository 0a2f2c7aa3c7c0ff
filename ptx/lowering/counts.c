/* Purpose: carry small counts as words. Slots of a ring are counted from 0 to a constant and from 0 again, by 64 bits as all indices are; loops
 * and branches carry them in two registers, and compare and choose both halves.
 *
 * Before:
 *     func phase machine @k.0(%n: i64) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %six = const {value = 6} : i64
 *       %end = for %zero, %n, %one, %zero : i64 (%i: i64, %count: i64) {
 *         %slot = convert %count : u32
 *         %next = add %count, %one : i64
 *         %last = eq %next, %six : bool
 *         %again = select %last, %zero, %next : i64
 *         yield %again
 *       }
 *       return
 *     }
 * After:
 *     func phase machine @k.0(%n: i64) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %six = const {value = 6} : i64
 *       %0 = const {value = 0} : i32
 *       %end = for %zero, %n, %one, %0 : i32 (%i: i64, %count: i32) {
 *         %count.1 = convert %count : i64
 *         %slot = convert %count.1 : u32
 *         %next = add %count.1, %one : i64
 *         %last = eq %next, %six : bool
 *         %again = select %last, %zero, %next : i64
 *         %1 = const {value = 1} : i32
 *         %2 = add %count, %1 : i32
 *         %3 = const {value = 6} : i32
 *         %4 = eq %2, %3 : bool
 *         %5 = const {value = 0} : i32
 *         %6 = select %4, %5, %2 : i32
 *         yield %6
 *       }
 *       %end.1 = convert %end : i64
 *       return
 *     }
 * Needs: gpu-machine. Keeps: machine form. Cost: linear, times the depth of loops and branches. */
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "ptx/passes.h"

enum { NOT_SMALL = -1, ROUNDS = 16 };

/* A value that a loop carries, or that a branch gives: no greater than `most` so far. */
typedef struct Carried {
    TileOp *op;
    unsigned index;
    int64_t most;
} Carried;

typedef struct Counts {
    TilePassContext *context;
    TileMap found; /* of results and of arguments */
    TILE_LIST(Carried *) items;
    const char *error;
} Counts;

static TileValue *argument_of(const Carried *c) { return c->op->id == TILE_OP_FOR ? c->op->regions[0].arguments[1 + c->index] : NULL; }

static void collect(TileOp *op, void *state) {
    Counts *counts = state;
    if (op->id != TILE_OP_FOR && op->id != TILE_OP_IF) return;
    for (unsigned i = 0; i < op->result_count; i++) {
        const TileType *type = op->results[i].type;
        if (type->kind != TILE_TYPE_SCALAR || type->scalar != TILE_I64) continue;
        Carried *c = TILE_NEW(counts->context->scratch, Carried);
        *c = (Carried){op, i, 0};
        tile_list_push(counts->context->scratch, &counts->items, c);
        tile_map_set(&counts->found, &op->results[i], c);
        if (argument_of(c)) tile_map_set(&counts->found, argument_of(c), c);
    }
}

/* ---- what is small ---- */

/* One more, or 0 where that is the end: `select n == end, c, n` of n = x + 1. */
static bool is_next(const TileValue *value, TileValue **before, int64_t *first, int64_t *end) {
    int64_t one;
    const TileOp *select = tile_value_def(value, TILE_OP_SELECT);
    const TileOp *same = select ? tile_value_def(tile_op_named(select, TILE_OPERAND_CONDITION), TILE_OP_EQ) : NULL;
    const TileOp *next = same ? tile_value_def(tile_op_operand(same, 0), TILE_OP_ADD) : NULL;
    if (!next || tile_op_named(select, TILE_OPERAND_Y) != tile_op_operand(same, 0)) return false;
    *before = tile_op_operand(next, 0);
    return tile_value_integer(tile_op_operand(next, 1), &one) && one == 1 && tile_value_integer(tile_op_operand(same, 1), end) &&
           tile_value_integer(tile_op_named(select, TILE_OPERAND_X), first) && *first >= 0 && *first < *end && *end <= INT32_MAX;
}

static int64_t most_of(const Counts *counts, const TileValue *value) {
    const Carried *c = tile_map_get(&counts->found, value);
    TileValue *before;
    int64_t number, first, end;
    if (c) return c->most;
    if (tile_value_integer(value, &number)) return number >= 0 && number <= INT32_MAX ? number : NOT_SMALL;
    if (!is_next(value, &before, &first, &end)) return NOT_SMALL;
    int64_t most = most_of(counts, before);
    return most != NOT_SMALL && most < end ? end - 1 : NOT_SMALL;
}

static int64_t greater(int64_t a, int64_t b) { return a == NOT_SMALL || b == NOT_SMALL ? NOT_SMALL : a > b ? a : b; }

static int64_t most_carried(const Counts *counts, const Carried *c) {
    const TileOp *op = c->op;
    int64_t most = most_of(counts, tile_op_named_at(op->regions[0].last, TILE_OPERAND_VALUES, c->index));
    const TileValue *other = op->id == TILE_OP_FOR ? tile_loop_carried(op, c->index)
                                                   : tile_op_named_at(op->regions[1].last, TILE_OPERAND_VALUES, c->index);
    return greater(c->most, greater(most, most_of(counts, other)));
}

/* Each is 0 at first, and grows until all agree. */
static void find_most(Counts *counts) {
    bool changed = true;
    for (unsigned round = 0; changed; round++) {
        changed = false;
        for (size_t i = 0; i < counts->items.count; i++) {
            Carried *c = counts->items.items[i];
            int64_t most = round < ROUNDS ? most_carried(counts, c) : NOT_SMALL;
            changed |= most != c->most;
            c->most = most;
        }
    }
}

/* ---- words ---- */

static TileValue *word_of(TileBuilder *b, TileValue *value) {
    TileValue *before;
    int64_t number, first, end;
    const TileOp *convert = tile_value_def(value, TILE_OP_CONVERT);
    const TileType *word = tile_type_scalar(b->module->context, TILE_I32);
    if (value->type == word) return value;
    if (convert && tile_op_operand(convert, 0)->type == word) return tile_op_operand(convert, 0);
    if (tile_value_integer(value, &number)) return tile_build_integer(b, word, number);
    if (!is_next(value, &before, &first, &end)) return tile_build_convert(b, value, TILE_I32);
    TileValue *one = tile_build_integer(b, word, 1), *next = tile_build_binary(b, TILE_OP_ADD, word_of(b, before), one);
    TileValue *last = tile_build_binary(b, TILE_OP_EQ, next, tile_build_integer(b, word, end));
    return tile_build_ternary(b, TILE_OP_SELECT, last, tile_build_integer(b, word, first), next);
}

/* The value is a word now; who takes it gets 64 bits. */
static void make_word(Counts *counts, TileBuilder *b, TileValue *value) {
    const TileType *word = tile_type_scalar(counts->context->module->context, TILE_I32);
    TileValue *zero = tile_build_integer(b, word, 0), *wide = tile_build_convert(b, zero, TILE_I64);
    tile_value_replace(value, wide);
    tile_op_set_operand(wide->op, 0, value);
    tile_op_erase(zero->op);
    value->type = word;
}

static void narrow_results(Counts *counts, const Carried *c) {
    TileModule *module = counts->context->module;
    TileBuilder behind = tile_builder_before(module, c->op->next);
    make_word(counts, &behind, &c->op->results[c->index]);
    if (argument_of(c)) {
        TileBuilder b = tile_builder_before(module, c->op->regions[0].first);
        make_word(counts, &b, argument_of(c));
        if (b.error) counts->error = b.error;
    }
    if (behind.error) counts->error = behind.error;
}

static void narrow_operands(Counts *counts, const Carried *c) {
    TileModule *module = counts->context->module;
    for (unsigned r = 0; r < c->op->region_count; r++) {
        TileOp *yield = c->op->regions[r].last;
        TileBuilder b = tile_builder_before(module, yield);
        tile_op_set_operand(yield, c->index, word_of(&b, tile_op_named_at(yield, TILE_OPERAND_VALUES, c->index)));
        if (b.error) counts->error = b.error;
    }
    if (c->op->id != TILE_OP_FOR) return;
    unsigned count, first = tile_op_operands(c->op, TILE_OPERAND_CARRIED, &count);
    TileBuilder b = tile_builder_before(module, c->op);
    tile_op_set_operand(c->op, first + c->index, word_of(&b, tile_loop_carried(c->op, c->index)));
    if (b.error) counts->error = b.error;
}

TileResult tile_pass_gpu_counts(TilePassContext *context, TileFunc *func) {
    Counts counts = {.context = context};
    bool changed = false;
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    tile_map_init(&counts.found, context->scratch);
    tile_block_walk(&func->body, collect, &counts);
    find_most(&counts);
    for (size_t i = 0; i < counts.items.count; i++) {
        if (counts.items.items[i]->most == NOT_SMALL) continue;
        narrow_results(&counts, counts.items.items[i]);
        changed = true;
    }
    for (size_t i = 0; i < counts.items.count; i++)
        if (counts.items.items[i]->most != NOT_SMALL) narrow_operands(&counts, counts.items.items[i]);
    if (counts.error) return tile_pass_fail(context, TILE_INTERNAL, NULL, "gpu-counts: %s", counts.error);
    return changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
