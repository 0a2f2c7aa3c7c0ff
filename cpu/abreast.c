/* Purpose: compute several short rows at a time. A row of one vector whose elements are a chain of functions, each of which waits
 * for the one before, takes longer than its instructions: a processor looks ahead a few hundred of them, not as far as the next
 * row but one. Rows side by side in one longer vector, which the back end cuts into registers, do not wait for each other.
 *
 * Run: --passes=cpu-abreast,canonicalise,cse,dce --target=avx512
 * Before:
 *     func phase machine @k.0(%x: ptr<global>, %y: ptr<global>, %n: i64) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %row = const {value = 16} : i64
 *       for %zero, %n, %one {loop = parallel} (%i: i64) {
 *         %a = mul %i, %row : i64
 *         %p = ptr_add %x, %a : ptr<global>
 *         %v = load %p : vec<4 x f32>
 *         %b = sin %v : vec<4 x f32>
 *         %c = exp %b : vec<4 x f32>
 *         %d = cos %c : vec<4 x f32>
 *         %e = exp %d : vec<4 x f32>
 *         %q = ptr_add %y, %a : ptr<global>
 *         store %e, %q
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func phase machine @k.0(%x: ptr<global>, %y: ptr<global>, %n: i64) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %row = const {value = 16} : i64
 *       %0 = const {value = -1} : i64
 *       %1 = add %n, %0 : i64
 *       %2 = const {value = 2} : i64
 *       for %zero, %1, %2 (%3: i64) {
 *         %4 = add %3, %one : i64
 *         %5 = min %4, %1 : i64
 *         %6 = mul %3, %row : i64
 *         %7 = mul %5, %row : i64
 *         %8 = ptr_add %x, %6 : ptr<global>
 *         %9 = ptr_add %x, %7 : ptr<global>
 *         %10 = load %8 : vec<4 x f32>
 *         %11 = load %9 : vec<4 x f32>
 *         %12 = shuffle %10, %11 {axes = [0, 1, 2, 3, 4, 5, 6, 7]} : vec<8 x f32>
 *         %13 = sin %12 : vec<8 x f32>
 *         %14 = exp %13 : vec<8 x f32>
 *         %15 = cos %14 : vec<8 x f32>
 *         %16 = exp %15 : vec<8 x f32>
 *         %17 = ptr_add %y, %6 : ptr<global>
 *         %18 = ptr_add %y, %7 : ptr<global>
 *         %19 = shuffle %16, %16 {axes = [0, 1, 2, 3]} : vec<4 x f32>
 *         store %19, %17
 *         %20 = shuffle %16, %16 {axes = [4, 5, 6, 7]} : vec<4 x f32>
 *         store %20, %18
 *         yield
 *       }
 *       %21 = max %1, %zero : i64
 *       %22 = add %21, %one : i64
 *       %23 = const {value = -2} : i64
 *       %24 = and %22, %23 : i64
 *       for %24, %n, %one (%i: i64) {
 *         %a = mul %i, %row : i64
 *         %p = ptr_add %x, %a : ptr<global>
 *         %v = load %p : vec<4 x f32>
 *         %b = sin %v : vec<4 x f32>
 *         %c = exp %b : vec<4 x f32>
 *         %d = cos %c : vec<4 x f32>
 *         %e = exp %d : vec<4 x f32>
 *         %q = ptr_add %y, %a : ptr<global>
 *         store %e, %q
 *         yield
 *       }
 *       return
 *     }
 * (The other passes simplify the result.) The last rows of a group may be the last row again: they store the same once more.
 * A single row that is left over, or the only one, is computed as before.
 *
 * What is the same for all rows is computed once; addresses, other scalars, and vectors that are shuffled are there for each row.
 * Rows are told by `loop = parallel` of cpu-vectorise, which no loop has afterwards.
 *
 * Needs: iterations that may run in any order, so that rows store to places of their own; inner loops and branches that are the
 * same for all rows. Keeps: the results of each element, and the order of each sum.
 * Cost: linear in the ops; a body is there twice, once with as many times the registers. */
#include "cpu/passes.h"
#include "lang/ir/build.h"
#include "lang/ir/operands.h"

enum {
    WINDOW = 400,        /* instructions that a processor has under way, half of those that work on vectors twice in a cycle */
    MOST_TOGETHER = 4,   /* rows, and registers of a value */
    MOST_COLUMNS = TILE_STRIPES, /* lanes of all rows together */
    IN_FUNCTION = 3,     /* registers that a function has beside what is alive around it */
};

typedef struct Abreast {
    TilePassContext *context;
    TileModule *module;
    TileOp *rows;       /* the loop */
    int64_t together;   /* rows */
    TileMap by_row;     /* values that differ from row to row */
    TileMap apart;      /* of these, those that grow with the number of the row */
    TileMap depth;      /* cycles from the row's first load until the value is there, plus 1 */
    int64_t longest;    /* of these */
    int64_t registers;  /* of the widest vector, 0: there is none */
    int64_t columns;    /* of the longest vector */
    unsigned alive;     /* vectors at a time */
    bool has_functions; /* of vectors */
    const char *reason; /* that rows cannot be computed together; NULL: none */
    TileMap shared;     /* old values that are the same for all rows to new ones */
    TileMap whole;      /* old vectors to those of all rows */
    TileMap own[MOST_TOGETHER]; /* old values to those of each row */
} Abreast;

static bool is_vector(const TileValue *value) { return value->type->kind == TILE_TYPE_VECTOR; }
static bool differs(const Abreast *x, const TileValue *value) { return tile_map_get(&x->by_row, value) != NULL; }
static bool is_apart(const Abreast *x, const TileValue *value) { return tile_map_get(&x->apart, value) != NULL; }

/* ---- which rows ---- */

static bool operands_differ(const Abreast *x, const TileOp *op) {
    for (unsigned i = 0; i < op->operand_count; i++)
        if (differs(x, tile_op_operand(op, i))) return true;
    return false;
}

static bool uses_rows(const Abreast *x, const TileOp *op) {
    if (operands_differ(x, op)) return true;
    for (unsigned i = 0; i < op->region_count; i++)
        for (const TileOp *inner = op->regions[i].first; inner; inner = inner->next)
            if (uses_rows(x, inner)) return true;
    return false;
}

/* Cycles until the op's result is there, on processors of these years. */
static int64_t latency_of(const TileOp *op) {
    enum { LOAD = 6, DIVIDE = 16, FUNCTION = 60, SIMPLE = 4 };
    if (op->id == TILE_OP_LOAD || op->id == TILE_OP_GATHER) return LOAD;
    if (op->id == TILE_OP_DIV || op->id == TILE_OP_SQRT || op->id == TILE_OP_REM || op->id == TILE_OP_RSQRT) return DIVIDE;
    return tile_op_info((TileOpId)op->id)->traits & TILE_TRAIT_COSTLY ? FUNCTION : SIMPLE;
}

static int64_t depth_of(const Abreast *x, const TileValue *value) {
    return (int64_t)(intptr_t)tile_map_get(&x->depth, value);
}

static void note(Abreast *x, TileValue *value, int64_t depth) {
    tile_map_set(&x->by_row, value, value);
    tile_map_set(&x->depth, value, (void *)(intptr_t)depth);
    if (depth > x->longest) x->longest = depth;
    if (!is_vector(value)) return;
    int64_t lanes = value->type->extent[0], bytes = value->type->scalar == TILE_BOOL ? 1 : (int64_t)tile_scalar_bytes(value->type->scalar);
    int64_t whole = (int64_t)x->context->target->vector_bytes, registers = (lanes * bytes + whole - 1) / whole;
    if (lanes > x->columns) x->columns = lanes;
    if (registers > x->registers) x->registers = registers;
}

/* Does the op's result grow with the row's number, if one of its operands does and the other is the same for all rows? */
static void note_place(Abreast *x, TileOp *op) {
    bool sum = op->id == TILE_OP_ADD || op->id == TILE_OP_MUL || op->id == TILE_OP_PTR_ADD || op->id == TILE_OP_SUB || op->id == TILE_OP_SHL;
    if (!sum || is_vector(&op->results[0])) return;
    TileValue *a = tile_op_operand(op, 0), *b = tile_op_operand(op, 1);
    bool either = op->id != TILE_OP_SHL && op->id != TILE_OP_SUB;
    if ((is_apart(x, a) && !differs(x, b)) || (either && is_apart(x, b) && !differs(x, a))) tile_map_set(&x->apart, &op->results[0], op);
}

static void look_at_block(Abreast *x, TileBlock *block);

/* A loop or branch that all rows go through alike. */
static void look_into(Abreast *x, TileOp *op) {
    bool loop = op->id == TILE_OP_FOR;
    unsigned bounds = loop ? 3 : 1;
    for (unsigned i = 0; i < bounds; i++)
        if (differs(x, tile_op_operand(op, i))) x->reason = "an inner loop or branch differs from row to row";
    for (unsigned i = 0; loop && i < op->result_count; i++)
        note(x, op->regions[0].arguments[1 + i], depth_of(x, tile_op_operand(op, bounds + i)));
    for (unsigned r = 0; r < op->region_count && !x->reason; r++) look_at_block(x, &op->regions[r]);
    for (unsigned i = 0; i < op->result_count && !x->reason; i++) {
        int64_t depth = 0;
        for (unsigned r = 0; r < op->region_count; r++) {
            int64_t there = depth_of(x, tile_op_operand(op->regions[r].last, i));
            if (there > depth) depth = there;
        }
        note(x, &op->results[i], depth);
    }
}

static void look_at(Abreast *x, TileOp *op) {
    bool reads = op->id == TILE_OP_LOAD || op->id == TILE_OP_GATHER;
    if (op->id == TILE_OP_STORE) {
        if (!is_apart(x, tile_op_named(op, TILE_OPERAND_ADDRESS))) x->reason = "rows store to one place";
        return;
    }
    if (!uses_rows(x, op) && (tile_op_is_pure(op) || reads)) return;
    if (op->id == TILE_OP_FOR || op->id == TILE_OP_IF) {
        look_into(x, op);
        return;
    }
    if (op->region_count || op->id == TILE_OP_RAND || !(tile_op_is_pure(op) || reads)) {
        x->reason = "one of its ops is not for several rows";
        return;
    }
    int64_t depth = 0;
    for (unsigned i = 0; i < op->operand_count; i++)
        if (depth_of(x, tile_op_operand(op, i)) > depth) depth = depth_of(x, tile_op_operand(op, i));
    for (unsigned i = 0; i < op->result_count; i++) note(x, &op->results[i], depth + latency_of(op));
    x->has_functions |= (tile_op_info((TileOpId)op->id)->traits & TILE_TRAIT_COSTLY) && op->result_count && is_vector(&op->results[0]);
    note_place(x, op);
}

/* The number of the op in the block that the user is in, or is inside of. */
static intptr_t number_in(const TileMap *numbers, const TileBlock *block, const TileOp *user) {
    while (user->block != block) user = user->block->op;
    return (intptr_t)tile_map_get(numbers, user);
}

static void count_alive(Abreast *x, const TileBlock *block) {
    TileMap numbers;
    intptr_t count = 0;
    tile_map_init(&numbers, x->context->scratch);
    for (const TileOp *op = block->first; op; op = op->next) tile_map_set(&numbers, op, (void *)++count);
    int *change = TILE_NEW_ARRAY(x->context->scratch, int, (size_t)count + 2), alive = 0;
    for (const TileOp *op = block->first; op; op = op->next) {
        for (unsigned i = 0; i < op->result_count; i++) {
            const TileValue *value = &op->results[i];
            intptr_t from = (intptr_t)tile_map_get(&numbers, op), last = from;
            if (!is_vector(value) || value->type->scalar == TILE_BOOL || !differs(x, value)) continue;
            for (const TileUse *use = value->first_use; use; use = use->next)
                if (number_in(&numbers, block, use->user) > last) last = number_in(&numbers, block, use->user);
            change[from]++;
            change[last]--;
        }
    }
    for (intptr_t i = 1; i <= count; i++) {
        alive += change[i];
        if (alive > (int)x->alive) x->alive = (unsigned)alive;
    }
}

static void look_at_block(Abreast *x, TileBlock *block) {
    for (TileOp *op = block->first; op != block->last && !x->reason; op = op->next) look_at(x, op);
    if (!x->reason) count_alive(x, block);
}

/* As many rows as wait for each other, have registers, and fit into vectors. */
static int64_t choose_together(const Abreast *x) {
    int64_t together = MOST_TOGETHER, have = x->context->target->vector_registers;
    while (together > 1 && (together * x->registers > MOST_TOGETHER || together * x->columns > MOST_COLUMNS ||
                            together * x->registers * (x->alive + IN_FUNCTION) > have))
        together /= 2;
    while (together > 2 && x->longest * 4 < WINDOW * together) together /= 2;
    return together;
}

/* Rows whose chain is shorter than what is under way at a time are there together without this. */
static bool decide(Abreast *x, TileOp *op) {
    bool rows = op->id == TILE_OP_FOR && tile_op_integer(op, TILE_ATTRIBUTE_LOOP_KIND, -1) == TILE_LOOP_KIND_PARALLEL;
    if (!rows || op->result_count || !tile_value_is_integer(tile_op_named(op, TILE_OPERAND_STEP), 1)) return false;
    *x = (Abreast){.context = x->context, .module = x->module, .rows = op};
    TileMap *maps[] = {&x->by_row, &x->apart, &x->depth, &x->shared, &x->whole};
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) tile_map_init(maps[i], x->context->scratch);
    TileValue *index = op->regions[0].arguments[0];
    note(x, index, 1);
    tile_map_set(&x->apart, index, index);
    look_at_block(x, &op->regions[0]);
    if (!x->has_functions || x->longest <= WINDOW / 2) return false;
    x->together = x->reason ? 1 : choose_together(x);
    if (!x->reason && x->together < 2) x->reason = "there are no registers for a second one";
    if (x->reason)
        tile_pass_remark(x->context, op, TILE_DECISION_NOT_ABREAST, "the loop", "%s", x->reason);
    else
        tile_pass_remark(x->context, op, TILE_DECISION_ABREAST, "the loop", "%lld", (long long)x->together);
    return !x->reason;
}

/* ---- values of several rows ---- */

static TileValue *shared(const Abreast *x, TileValue *value) {
    TileValue *found = tile_map_get(&x->shared, value);
    return found ? found : value;
}

static const TileType *whole_type(const Abreast *x, const TileType *type) {
    return tile_type_vector(x->module->context, type->scalar, type->extent[0] * x->together, false);
}

/* Lanes from `first` on of two vectors, one behind the other, `count` of them, again and again from `first + length` on. */
static TileValue *lanes_of(TileBuilder *b, TileValue *one, TileValue *other, int64_t first, int64_t count, int64_t length) {
    int64_t lanes[MOST_COLUMNS];
    for (int64_t i = 0; i < count; i++) lanes[i] = first + i % length;
    return tile_build_shuffle(b, one, other, lanes, (unsigned)count);
}

/* The value, a vector or another, of one row. */
static TileValue *part(const Abreast *x, TileBuilder *b, TileValue *value, int64_t row) {
    if (!differs(x, value)) return shared(x, value);
    TileValue *own = tile_map_get(&x->own[row], value), *whole = tile_map_get(&x->whole, value);
    int64_t lanes = is_vector(value) ? value->type->extent[0] : 1;
    return own ? own : lanes_of(b, whole, whole, row * lanes, lanes, lanes);
}

/* The vector of all rows. */
static TileValue *whole(const Abreast *x, TileBuilder *b, TileValue *value) {
    TileValue *found = tile_map_get(&x->whole, value), *parts[MOST_TOGETHER];
    int64_t lanes = value->type->extent[0], count = x->together;
    if (found) return found;
    if (!differs(x, value)) {
        const TileOp *splat = tile_value_def(value, TILE_OP_SPLAT), *constant = tile_value_def(value, TILE_OP_CONST);
        if (splat) return tile_build_splat(b, shared(x, tile_op_operand(splat, 0)), whole_type(x, value->type));
        if (constant) return tile_build_bits(b, whole_type(x, value->type), tile_op_get(constant, TILE_ATTRIBUTE_VALUE)->bits);
        return lanes_of(b, shared(x, value), shared(x, value), 0, count * lanes, lanes);
    }
    for (int64_t i = 0; i < count; i++) parts[i] = part(x, b, value, i);
    for (; count > 1; count /= 2, lanes *= 2)
        for (int64_t i = 0; i < count / 2; i++) parts[i] = lanes_of(b, parts[2 * i], parts[2 * i + 1], 0, 2 * lanes, 2 * lanes);
    return parts[0];
}

/* ---- code of several rows ---- */

static void emit_block(Abreast *x, TileBuilder *b, const TileBlock *block);

static TileOp *copy_op(TileBuilder *b, const TileOp *op, TileValue *const *operands, const TileType *type) {
    return tile_build_op(b, (TileOpId)op->id, operands, op->operand_count, op->attributes, op->attribute_count, type ? &type : NULL,
                         op->result_count);
}

static void emit_simple(Abreast *x, TileBuilder *b, const TileOp *op) {
    TileValue **operands = TILE_NEW_ARRAY(x->context->scratch, TileValue *, op->operand_count + 1u);
    TileValue *result = op->result_count ? tile_op_result(op, 0) : NULL;
    bool elementwise = tile_op_info((TileOpId)op->id)->class == TILE_CLASS_ELEMENTWISE;
    if (result && is_vector(result) && elementwise) {
        for (unsigned i = 0; i < op->operand_count; i++) operands[i] = whole(x, b, tile_op_operand(op, i));
        tile_map_set(&x->whole, result, tile_op_result(copy_op(b, op, operands, whole_type(x, result->type)), 0));
        return;
    }
    for (int64_t row = 0; row < x->together; row++) {
        for (unsigned i = 0; i < op->operand_count; i++) operands[i] = part(x, b, tile_op_operand(op, i), row);
        TileOp *copy = copy_op(b, op, operands, result ? result->type : NULL);
        if (result) tile_map_set(&x->own[row], result, tile_op_result(copy, 0));
    }
}

/* What a loop carries or a region yields: a vector as that of all rows, another value of each row. */
static unsigned flatten(const Abreast *x, TileBuilder *b, const TileOp *op, unsigned first, TileValue **values) {
    unsigned count = 0;
    for (unsigned i = first; i < op->operand_count; i++) {
        TileValue *value = tile_op_operand(op, i);
        if (is_vector(value)) values[count++] = whole(x, b, value);
        for (int64_t row = 0; !is_vector(value) && row < x->together; row++) values[count++] = part(x, b, value, row);
    }
    return count;
}

/* Notes the new values of those that were flattened. `made`: the first; returns the one behind them. */
static TileValue *take(Abreast *x, TileValue *old, TileValue *made) {
    if (is_vector(old)) tile_map_set(&x->whole, old, made);
    for (int64_t row = 0; !is_vector(old) && row < x->together; row++) tile_map_set(&x->own[row], old, made++);
    return is_vector(old) ? made + 1 : made;
}

static void emit_region(Abreast *x, TileBuilder b, const TileBlock *from, TileBlock *to) {
    TileValue **values = TILE_NEW_ARRAY(x->context->scratch, TileValue *, (size_t)from->last->operand_count * MOST_TOGETHER + 1u);
    TileBuilder inner = tile_builder_at_end(x->module, to);
    inner.location = b.location;
    emit_block(x, &inner, from);
    unsigned count = flatten(x, &inner, from->last, 0, values);
    tile_build_end(&inner, TILE_OP_YIELD, values, count);
}

static void emit_for(Abreast *x, TileBuilder *b, const TileOp *op) {
    enum { BOUNDS = 3 };
    TileValue **carried = TILE_NEW_ARRAY(x->context->scratch, TileValue *, (size_t)op->operand_count * MOST_TOGETHER);
    TileValue *bounds[BOUNDS];
    for (unsigned i = 0; i < BOUNDS; i++) bounds[i] = shared(x, tile_op_operand(op, i));
    unsigned count = flatten(x, b, op, BOUNDS, carried);
    TileOp *made = tile_build_for(b, bounds[0], bounds[1], bounds[2], carried, count);
    const TileBlock *from = &op->regions[0];
    TileBlock *to = &made->regions[0];
    tile_map_set(&x->shared, from->arguments[0], to->arguments[0]);
    for (unsigned i = 0, next = 1; i < op->result_count; i++) {
        TileValue *old = from->arguments[1 + i];
        bool vector = is_vector(old);
        if (vector) tile_map_set(&x->whole, old, to->arguments[next++]);
        for (int64_t row = 0; !vector && row < x->together; row++) tile_map_set(&x->own[row], old, to->arguments[next++]);
    }
    emit_region(x, *b, from, to);
    TileValue *result = made->results;
    for (unsigned i = 0; i < op->result_count; i++) result = take(x, &op->results[i], result);
}

static void emit_if(Abreast *x, TileBuilder *b, const TileOp *op) {
    const TileType **types = TILE_NEW_ARRAY(x->context->scratch, const TileType *, (size_t)op->result_count * MOST_TOGETHER + 1u);
    unsigned count = 0;
    for (unsigned i = 0; i < op->result_count; i++) {
        const TileValue *old = &op->results[i];
        if (is_vector(old)) types[count++] = whole_type(x, old->type);
        for (int64_t row = 0; !is_vector(old) && row < x->together; row++) types[count++] = old->type;
    }
    TileOp *made = tile_build_if(b, shared(x, tile_op_operand(op, 0)), types, count);
    for (unsigned r = 0; r < op->region_count; r++) emit_region(x, *b, &op->regions[r], &made->regions[r]);
    TileValue *result = made->results;
    for (unsigned i = 0; i < op->result_count; i++) result = take(x, &op->results[i], result);
}

/* What is the same for all rows, once. */
static void emit_shared(Abreast *x, TileBuilder *b, const TileOp *op) {
    TileOp *copy = tile_op_clone(x->module, op, &x->shared);
    tile_builder_insert(b, copy);
}

static void emit_block(Abreast *x, TileBuilder *b, const TileBlock *block) {
    for (const TileOp *op = block->first; op != block->last; op = op->next) {
        b->location = op->location;
        if (!uses_rows(x, op))
            emit_shared(x, b, op);
        else if (op->id == TILE_OP_FOR)
            emit_for(x, b, op);
        else if (op->id == TILE_OP_IF)
            emit_if(x, b, op);
        else
            emit_simple(x, b, op);
    }
}

/* The loop over groups of rows, in front of that over rows, which is left with a single one, or none. */
static void make_groups(Abreast *x) {
    TileOp *rows = x->rows;
    TileBuilder b = tile_builder_before(x->module, rows);
    TileValue *lo = tile_op_operand(rows, 0), *hi = tile_op_operand(rows, 1), *index = rows->regions[0].arguments[0];
    TileValue *last = tile_build_binary(&b, TILE_OP_SUB, hi, tile_build_i64(&b, 1)), *each = tile_build_i64(&b, x->together);
    TileOp *loop = tile_build_for(&b, lo, last, each, NULL, 0);
    TileBuilder inner = tile_builder_at_end(x->module, &loop->regions[0]);
    inner.location = rows->location;
    TileValue *first = loop->regions[0].arguments[0];
    for (int64_t row = 0; row < x->together; row++) {
        tile_map_init(&x->own[row], x->context->scratch);
        TileValue *next = row ? tile_build_binary(&inner, TILE_OP_ADD, first, tile_build_i64(&inner, row)) : first;
        tile_map_set(&x->own[row], index, row ? tile_build_binary(&inner, TILE_OP_MIN, next, last) : next);
    }
    emit_block(x, &inner, &rows->regions[0]);
    tile_build_end(&inner, TILE_OP_YIELD, NULL, 0);
    TileValue *count = tile_build_binary(&b, TILE_OP_MAX, tile_build_binary(&b, TILE_OP_SUB, last, lo), tile_build_i64(&b, 0));
    TileValue *up = tile_build_binary(&b, TILE_OP_ADD, count, tile_build_i64(&b, x->together - 1));
    TileValue *done = tile_build_binary(&b, TILE_OP_AND, up, tile_build_i64(&b, -x->together));
    tile_op_set_operand(rows, 0, tile_build_binary(&b, TILE_OP_ADD, lo, done));
}

static void visit_block(Abreast *x, TileBlock *block, bool *changed) {
    for (TileOp *op = block->first, *next; op; op = next) {
        next = op->next;
        bool grouped = decide(x, op);
        if (grouped) make_groups(x);
        for (unsigned i = 0; i < op->region_count && !grouped; i++) visit_block(x, &op->regions[i], changed);
        if (op->id != TILE_OP_FOR || !tile_op_get(op, TILE_ATTRIBUTE_LOOP_KIND)) continue;
        tile_op_clear(op, TILE_ATTRIBUTE_LOOP_KIND);
        *changed = true;
    }
}

TileResult tile_pass_cpu_abreast(TilePassContext *context, TileFunc *func) {
    Abreast x = {.context = context, .module = context->module};
    bool changed = false;
    if (!context->target) return tile_pass_fail(context, TILE_INTERNAL, NULL, "cpu-abreast needs a target");
    visit_block(&x, &func->body, &changed);
    return changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
