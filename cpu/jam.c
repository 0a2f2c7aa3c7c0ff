/* Purpose: take several rows at a time where they load the same. Each row of a product of a matrix and a vector goes through
 * the vector again: half of its loads, and in bf16 half of its conversions. And where rows are cut into pieces that fit into
 * a tile, one row's piece after the other, the memory sees pieces of a few lines and fetches none of them ahead. Rows side
 * by side in one loop share what does not differ between them, and are as many streams that go on from piece to piece
 * (loops over rows are unrolled, and the copies of the loop inside of them jammed into one).
 *
 * Run: --passes=cpu-jam --target=avx512
 * Before:
 *     func phase machine @k.0(%a: ptr<global>, %x: ptr<global>, %y: ptr<global>, %stride: i64, %m: i64, %k: i64) {
 *       %zero = const {value = 0} : i64
 *       %four = const {value = 4} : i64
 *       %none = const {value = 0.0} : f32
 *       loop %zero, %m {extent = 16, loop = parallel} (%i: i64) {
 *         %o = mul %i, %stride : i64
 *         %row = ptr_add %a, %o : ptr<global>
 *         %s = loop %zero, %k, %none {loop = reduce, extent = 1024, combine = [sum], order = stripes} : f32 (%j: i64, %t: f32) {
 *           %b = mul %j, %four : i64
 *           %p = ptr_add %row, %b : ptr<global>
 *           %v = load %p : f32
 *           %q = ptr_add %x, %b : ptr<global>
 *           %w = load %q : f32
 *           %c = mul %v, %w : f32
 *           yield %c
 *         }
 *         %d = mul %i, %four : i64
 *         %r = ptr_add %y, %d : ptr<global>
 *         store %s, %r
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func phase machine @k.0(%a: ptr<global>, %x: ptr<global>, %y: ptr<global>, %stride: i64, %m: i64, %k: i64) {
 *       %zero = const {value = 0} : i64
 *       %four = const {value = 4} : i64
 *       %none = const {value = 0.0} : f32
 *       %0 = const {value = 4} : i64
 *       %1 = const {value = 0} : i64
 *       %3 = sub %m, %zero : i64
 *       %4 = max %3, %1 : i64
 *       %5 = const {value = -4} : i64
 *       %6 = and %4, %5 : i64
 *       %7 = add %zero, %6 : i64
 *       for %zero, %7, %0 (%8: i64) {
 *         %9 = const {value = 1} : i64
 *         %10 = add %8, %9 : i64
 *         %11 = const {value = 2} : i64
 *         %12 = add %8, %11 : i64
 *         %13 = const {value = 3} : i64
 *         %14 = add %8, %13 : i64
 *         %o = mul %8, %stride : i64
 *         %o.1 = mul %10, %stride : i64
 *         %o.2 = mul %12, %stride : i64
 *         %o.3 = mul %14, %stride : i64
 *         %row = ptr_add %a, %o : ptr<global>
 *         %row.1 = ptr_add %a, %o.1 : ptr<global>
 *         %row.2 = ptr_add %a, %o.2 : ptr<global>
 *         %row.3 = ptr_add %a, %o.3 : ptr<global>
 *         %15, %16, %17, %18 = loop %zero, %k, %none, %none, %none, %none {loop = reduce, extent = 1024, combine = [sum, sum, sum, sum], order = stripes} : f32, f32, f32, f32 (%19: i64, %none.1: f32, %none.2: f32, %none.3: f32, %none.4: f32) {
 *           %b = mul %19, %four : i64
 *           %p = ptr_add %row, %b : ptr<global>
 *           %p.1 = ptr_add %row.1, %b : ptr<global>
 *           %p.2 = ptr_add %row.2, %b : ptr<global>
 *           %p.3 = ptr_add %row.3, %b : ptr<global>
 *           %v = load %p : f32
 *           %v.1 = load %p.1 : f32
 *           %v.2 = load %p.2 : f32
 *           %v.3 = load %p.3 : f32
 *           %q = ptr_add %x, %b : ptr<global>
 *           %w = load %q : f32
 *           %c = mul %v, %w : f32
 *           %c.1 = mul %v.1, %w : f32
 *           %c.2 = mul %v.2, %w : f32
 *           %c.3 = mul %v.3, %w : f32
 *           yield %c, %c.1, %c.2, %c.3
 *         }
 *         %d = mul %8, %four : i64
 *         %d.1 = mul %10, %four : i64
 *         %d.2 = mul %12, %four : i64
 *         %d.3 = mul %14, %four : i64
 *         %r = ptr_add %y, %d : ptr<global>
 *         %r.1 = ptr_add %y, %d.1 : ptr<global>
 *         %r.2 = ptr_add %y, %d.2 : ptr<global>
 *         %r.3 = ptr_add %y, %d.3 : ptr<global>
 *         store %15, %r
 *         store %16, %r.1
 *         store %17, %r.2
 *         store %18, %r.3
 *         yield
 *       }
 *       loop %7, %m {loop = parallel, extent = 16} (%i: i64) {
 *         %o.4 = mul %i, %stride : i64
 *         %row.4 = ptr_add %a, %o.4 : ptr<global>
 *         %s = loop %zero, %k, %none {loop = reduce, extent = 1024, combine = [sum], order = stripes} : f32 (%j: i64, %t: f32) {
 *           %b.1 = mul %j, %four : i64
 *           %p.4 = ptr_add %row.4, %b.1 : ptr<global>
 *           %v.4 = load %p.4 : f32
 *           %q.1 = ptr_add %x, %b.1 : ptr<global>
 *           %w.1 = load %q.1 : f32
 *           %c.4 = mul %v.4, %w.1 : f32
 *           yield %c.4
 *         }
 *         %d.4 = mul %i, %four : i64
 *         %r.4 = ptr_add %y, %d.4 : ptr<global>
 *         store %s, %r.4
 *         yield
 *       }
 *       return
 *     }
 * Rows that are left over follow by themselves.
 *
 * Needs: nothing. Keeps: every sum's order. Cost: linear; the body of a loop is there once more, with as many copies of what
 * differs from row to row. */
#include "base/list.h"
#include "cpu/vectorise.h"
#include "lang/ir/operands.h"

enum {
    MOST_ROWS = 4,
    PART_OF_L1 = 4, /* that what rows share may have, so that it stays there */
    STAY = 2 /* values of a row that are in registers at a time, beside its sums and what rows share */
};

typedef struct Jam {
    TilePassContext *context;
    TileModule *module;
    TileMap by_row;         /* values that differ from row to row */
    unsigned sums;          /* registers of a row's sums */
    unsigned vector;        /* registers of the longest vector */
    unsigned loops;         /* along the rows, */
    const TileOp *own;      /* a load of them of a row's own elements, */
    unsigned shared;        /* and loads that are the same for all rows, */
    int64_t shared_bytes;   /* of so many bytes for each element of a row */
    const TileOp *length;   /* the loop whose bounds are those of a row */
    TileMap rows[MOST_ROWS]; /* old values to those of each row */
    unsigned together;
    bool changed;
} Jam;

/* ---- which rows ---- */

static bool differs(const Jam *x, const TileValue *value) { return tile_map_get(&x->by_row, value) != NULL; }

static bool is_simple(const TileOp *op) {
    return tile_op_info((TileOpId)op->id)->class == TILE_CLASS_ELEMENTWISE || op->id == TILE_OP_CONST || op->id == TILE_OP_PTR_ADD ||
           op->id == TILE_OP_LOAD;
}

static void note(Jam *x, TileOp *op) {
    bool any = false;
    for (unsigned i = 0; i < op->operand_count; i++) any |= differs(x, tile_op_operand(op, i));
    for (unsigned i = 0; any && i < op->result_count; i++) tile_map_set(&x->by_row, &op->results[i], op);
}

/* Registers of a vector along the row. */
static unsigned registers_of(const Jam *x, const TileOp *loop, const TileType *type) {
    int64_t lanes = tile_loop_extent(loop) < TILE_STRIPES ? tile_loop_extent(loop) : TILE_STRIPES;
    int64_t whole = (int64_t)x->context->target->vector_bytes;
    return (unsigned)((lanes * (int64_t)tile_scalar_bytes(type->scalar) + whole - 1) / whole);
}

static bool uses_carried(const TileOp *loop) {
    const TileBlock *body = &loop->regions[0];
    for (unsigned i = 1; i < body->argument_count; i++)
        if (body->arguments[i]->first_use) return true;
    return false;
}

/* Can the loop along a row be one with those of other rows? */
static bool look_at_loop(Jam *x, TileOp *loop) {
    if (!tile_loop_in_stripes(loop) || uses_carried(loop)) return false;
    if (differs(x, tile_op_operand(loop, 0)) || differs(x, tile_op_operand(loop, 1))) return false;
    for (TileOp *op = loop->regions[0].first; op != loop->regions[0].last; op = op->next) {
        if (!is_simple(op) || tile_op_info((TileOpId)op->id)->traits & TILE_TRAIT_COSTLY) return false;
        note(x, op);
        if (op->id != TILE_OP_LOAD) continue;
        if (differs(x, tile_op_named(op, TILE_OPERAND_ADDRESS))) {
            x->own = op;
        } else {
            x->shared++;
            x->shared_bytes += tile_scalar_bytes(op->results[0].type->scalar);
        }
    }
    for (unsigned i = 0; i < loop->result_count; i++) {
        unsigned registers = registers_of(x, loop, loop->results[i].type);
        x->sums += registers;
        if (registers > x->vector) x->vector = registers;
        tile_map_set(&x->by_row, &loop->results[i], loop);
    }
    x->loops++;
    return true;
}

static bool look_at_block(Jam *x, const TileBlock *block, bool whole) {
    for (TileOp *op = block->first; op != block->last; op = op->next) {
        bool asks = (op->id == TILE_OP_LOAD || op->id == TILE_OP_STORE) && tile_op_has_part(op, TILE_PARTS_MASK);
        bool good = (is_simple(op) || op->id == TILE_OP_STORE) && !asks; /* cpu-vectorise has a loop twice whose rows may not exist */
        if (op->id == TILE_OP_LOOP) {
            good = look_at_loop(x, op);
            if (!x->length) x->length = op;
        } else if (op->id == TILE_OP_FOR && !whole && !op->result_count) { /* over pieces of the row */
            for (unsigned i = 0; i < op->operand_count; i++)
                if (differs(x, tile_op_operand(op, i))) return false;
            if (!x->length) x->length = op;
            good = look_at_block(x, &op->regions[0], true);
        } else {
            note(x, op);
        }
        if (!good) return false;
    }
    return true;
}

/* How many rows at a time: 1 if one by one. */
static unsigned choose_together(const Jam *x) {
    unsigned together = MOST_ROWS, each = x->vector * (STAY + x->shared);
    while (together > 1 && together * x->sums + each > x->context->target->vector_registers) together /= 2;
    return together;
}

static bool decide(Jam *x, TileOp *rows) {
    if (rows->id != TILE_OP_LOOP || tile_loop_kind(rows) != TILE_LOOP_KIND_PARALLEL || tile_loop_extent(rows) < 2) return false;
    x->sums = x->vector = x->shared = x->loops = 0;
    x->own = x->length = NULL;
    x->shared_bytes = 0;
    tile_map_init(&x->by_row, x->context->scratch);
    tile_map_set(&x->by_row, rows->regions[0].arguments[0], rows);
    if (!look_at_block(x, &rows->regions[0], false) || !x->loops || !x->own || !x->shared) return false;
    x->together = choose_together(x);
    while ((int64_t)x->together > tile_loop_extent(rows)) x->together /= 2;
    if (x->together > 1)
        tile_pass_remark(x->context, rows, TILE_DECISION_ROWS_TOGETHER, "the loop", "%u", x->together);
    else
        tile_pass_remark(x->context, rows, TILE_DECISION_ROWS_APART, "the loop", "there are no registers for a second one");
    return x->together > 1;
}

/* ---- several rows ---- */

static TileValue *of_row(const Jam *x, unsigned row, TileValue *value) {
    TileValue *found = tile_map_get(&x->rows[row], value);
    return found ? found : value;
}

/* One op of what all rows share, else one for each. */
static void copy_op(Jam *x, TileBuilder *b, const TileOp *op) {
    bool each = !op->result_count || differs(x, tile_op_result(op, 0));
    for (unsigned row = 0; row < (each ? x->together : 1); row++) tile_builder_insert(b, tile_op_clone(x->module, op, &x->rows[row]));
    for (unsigned row = 1; !each && row < x->together; row++)
        for (unsigned i = 0; i < op->result_count; i++)
            tile_map_set(&x->rows[row], tile_op_result(op, i), of_row(x, 0, tile_op_result(op, i)));
}

/* The loops along the rows as one. */
static void copy_loop(Jam *x, TileBuilder *b, const TileOp *loop) {
    unsigned carried = loop->result_count, all = carried * x->together;
    const TileAttribute *combine = tile_op_get(loop, TILE_ATTRIBUTE_COMBINE);
    TileValue **values = TILE_NEW_ARRAY(x->context->scratch, TileValue *, all);
    int64_t *how = TILE_NEW_ARRAY(x->context->scratch, int64_t, all);
    for (unsigned i = 0; i < all; i++) {
        values[i] = of_row(x, i / carried, tile_loop_carried(loop, i % carried));
        how[i] = combine->integers[i % carried];
    }
    TileOp *made = tile_build_loop(b, TILE_LOOP_KIND_REDUCE, of_row(x, 0, tile_op_operand(loop, 0)), of_row(x, 0, tile_op_operand(loop, 1)),
                                   tile_op_integer(loop, TILE_ATTRIBUTE_EXTENT, 0), values, all);
    tile_op_set_integers(x->module, made, TILE_ATTRIBUTE_COMBINE, how, all);
    tile_op_set_integer(x->module, made, TILE_ATTRIBUTE_ORDER, TILE_ORDER_STRIPES);
    for (unsigned row = 0; row < x->together; row++)
        tile_map_set(&x->rows[row], loop->regions[0].arguments[0], made->regions[0].arguments[0]);
    TileBuilder inside = tile_builder_at_end(x->module, &made->regions[0]);
    for (const TileOp *op = loop->regions[0].first; op != loop->regions[0].last; op = op->next) copy_op(x, &inside, op);
    for (unsigned i = 0; i < all; i++) values[i] = of_row(x, i / carried, tile_op_operand(loop->regions[0].last, i % carried));
    tile_build_end(&inside, TILE_OP_YIELD, values, all);
    for (unsigned i = 0; i < all; i++) tile_map_set(&x->rows[i / carried], tile_op_result(loop, i % carried), &made->results[i]);
}

/* All ops but the terminator. */
static void copy_block(Jam *x, TileBuilder *b, const TileBlock *block) {
    for (const TileOp *op = block->first; op != block->last; op = op->next) {
        b->location = op->location;
        if (op->id == TILE_OP_LOOP) {
            copy_loop(x, b, op);
        } else if (op->id == TILE_OP_FOR) {
            TileOp *made = tile_build_for(b, of_row(x, 0, tile_op_operand(op, 0)), of_row(x, 0, tile_op_operand(op, 1)),
                                          of_row(x, 0, tile_op_named(op, TILE_OPERAND_STEP)), NULL, 0);
            TileBuilder inside = tile_builder_at_end(x->module, &made->regions[0]);
            for (unsigned row = 0; row < x->together; row++)
                tile_map_set(&x->rows[row], op->regions[0].arguments[0], made->regions[0].arguments[0]);
            copy_block(x, &inside, &op->regions[0]);
            tile_build_end(&inside, TILE_OP_YIELD, NULL, 0);
        } else {
            copy_op(x, b, op);
        }
    }
}

/* ---- where one row at a time is faster ---- */

static const TileValue *base_of(const TileValue *pointer) {
    while (pointer->op && pointer->op->id == TILE_OP_PTR_ADD) pointer = tile_op_operand(pointer->op, 0);
    return pointer;
}

/* The bytes of the tensor that the rows are in; NULL: not known. */
static TileValue *tensor_bytes(const Jam *x, TileBuilder *b, TileFunc *func) {
    const TileValue *base = base_of(tile_op_named(x->own, TILE_OPERAND_ADDRESS));
    if (base->op || base->block != &func->body) return NULL;
    const TileParameter *tensor = &func->parameters[base->index];
    if (tensor->role != TILE_ROLE_DATA) return NULL;
    TileValue *bytes = tile_build_i64(b, tile_scalar_bytes(x->own->results[0].type->scalar));
    for (unsigned i = 0; i < func->body.argument_count; i++)
        if (func->parameters[i].role == TILE_ROLE_EXTENT && func->parameters[i].argument == tensor->argument)
            bytes = tile_build_binary(b, TILE_OP_MUL, bytes, func->body.arguments[i]);
    return bytes;
}

/* Rows that no cache holds are read fastest as one stream, if what they share stays in the L1 cache beside it. NULL: always
 * together. */
static TileValue *is_one_stream(const Jam *x, TileBuilder *b, const TileOp *rows) {
    const TileTarget *target = x->context->target;
    const TileValue *lo = tile_op_operand(x->length, 0), *hi = tile_op_operand(x->length, 1);
    TileValue *bytes = tensor_bytes(x, b, rows->block->func);
    if (!bytes || !tile_value_outside(lo, rows) || !tile_value_outside(hi, rows)) return NULL;
    TileValue *length = tile_build_binary(b, TILE_OP_SUB, tile_op_operand(x->length, 1), tile_op_operand(x->length, 0));
    TileValue *shared = tile_build_binary(b, TILE_OP_MUL, length, tile_build_i64(b, x->shared_bytes));
    TileValue *stays = tile_build_binary(b, TILE_OP_LE, shared, tile_build_i64(b, (int64_t)target->l1_bytes / PART_OF_L1));
    TileValue *large = tile_build_binary(b, TILE_OP_GT, bytes, tile_build_i64(b, (int64_t)target->l2_bytes));
    return tile_build_binary(b, TILE_OP_AND, large, stays);
}

/* Groups of rows in front of the loop, which is left with the last rows. */
static void jam(Jam *x, TileOp *rows) {
    TileBuilder b = tile_builder_before(x->module, rows);
    TileValue *lo = tile_op_operand(rows, 0), *hi = tile_op_operand(rows, 1), *step = tile_build_i64(&b, x->together), *none = tile_build_i64(&b, 0);
    TileValue *stream = is_one_stream(x, &b, rows);
    TileValue *count = tile_build_binary(&b, TILE_OP_MAX, tile_build_binary(&b, TILE_OP_SUB, hi, lo), none);
    if (stream) count = tile_build_ternary(&b, TILE_OP_SELECT, stream, none, count);
    TileValue *whole = tile_build_binary(&b, TILE_OP_AND, count, tile_build_i64(&b, -(int64_t)x->together));
    TileValue *end = tile_build_binary(&b, TILE_OP_ADD, lo, whole);
    TileOp *groups = tile_build_for(&b, lo, end, step, NULL, 0);
    TileBuilder inside = tile_builder_at_end(x->module, &groups->regions[0]);
    for (unsigned row = 0; row < x->together; row++) {
        TileValue *index = groups->regions[0].arguments[0];
        if (row) index = tile_build_binary(&inside, TILE_OP_ADD, index, tile_build_i64(&inside, row));
        tile_map_init(&x->rows[row], x->context->scratch);
        tile_map_set(&x->rows[row], rows->regions[0].arguments[0], index);
    }
    copy_block(x, &inside, &rows->regions[0]);
    tile_build_end(&inside, TILE_OP_YIELD, NULL, 0);
    tile_op_set_operand(rows, 0, end);
    x->changed = true;
}

static void visit_block(Jam *x, TileBlock *block) {
    for (TileOp *op = block->first; op; op = op->next) {
        if (decide(x, op)) {
            jam(x, op);
            continue;
        }
        for (unsigned i = 0; i < op->region_count; i++) visit_block(x, &op->regions[i]);
    }
}

TileResult tile_pass_cpu_jam(TilePassContext *context, TileFunc *func) {
    Jam x = {.context = context, .module = context->module};
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    visit_block(&x, &func->body);
    return x.changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
