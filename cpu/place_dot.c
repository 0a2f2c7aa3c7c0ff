/* Decisions on products: which operands they read in place, in which buffers they accumulate, and by which instruction.
 *
 * An operand that is a plain load is read in place, through any permutation; any other operand is first stored in a
 * buffer. The accumulator is a buffer that is updated in place: if possible that of the loop that carries it. */
#include "cpu/nest.h"
#include "cpu/target.h"
#include "lang/ir/operands.h"
#include "lang/scalar/scalar.h"

/* ---- instructions ---- */

/* Cycles of a product of these extents on registers, for AMX and for fused multiply-adds of vectors of 32-bit numbers. A
 * tile register has 16 rows of 64 bytes, and an instruction takes a cycle for each row of c; two fmas begin in a cycle. */
enum { AMX_ROWS = 16, AMX_COLUMNS = 16, AMX_BYTES = 64, FMAS = 2, WORD = 4, GAIN = 2 /* what AMX has to be better by: it pads */ };

static int64_t parts(int64_t extent, int64_t part) { return (extent + part - 1) / part; }

static double cycles_amx(int64_t m, int64_t n, int64_t k, int64_t bytes) {
    return (double)parts(m, AMX_ROWS) * AMX_ROWS * (double)parts(n, AMX_COLUMNS) * (double)parts(k, AMX_BYTES / bytes);
}

static double cycles_fma(const TileTarget *target, int64_t m, int64_t n, int64_t k) {
    return (double)m * (double)parts(n, target->vector_bytes / 4) * (double)k / FMAS;
}

/* By words of vectors, of which one begins in a cycle where an fma does. Operands are packed by groups of the bytes of a tile
 * register's row, as for AMX, however few k there are: that counts as half of a group's words. */
static double cycles_vnni(const TileTarget *target, int64_t m, int64_t n, int64_t k, int64_t bytes) {
    int64_t words = parts(k, WORD / bytes), packed = parts(k, AMX_BYTES / bytes) * AMX_BYTES / WORD / 2;
    return cycles_fma(target, m, n, words > packed ? words : packed);
}

/* Why the product is not computed by words of vectors; NULL: it is, or nobody would expect it. */
static const char *why_not_vnni(const Nest *n, const TileOp *dot, bool *vnni) {
    const TileTarget *target = n->context->target;
    const TileType *left = tile_op_operand(dot, 0)->type, *sum = dot->results[0].type;
    TileScalar a = left->scalar, b = tile_op_operand(dot, 1)->type->scalar;
    *vnni = false;
    if (!target || !tile_cpu_vnni_multiplies(target, a, b, sum->scalar)) return NULL;
    if (a == TILE_BF16 && tile_op_integer(dot, TILE_ATTRIBUTE_ORDERED, 0)) return "words have an order of their own";
    int64_t rows = left->extent[sum->rank - 2], columns = sum->extent[sum->rank - 1], depth = left->extent[sum->rank - 1];
    *vnni = cycles_vnni(target, rows, columns, depth, tile_scalar_bytes(a)) < cycles_fma(target, rows, columns, depth);
    return *vnni ? NULL : "mostly padding would be packed";
}

/* Why the product is not computed by AMX; NULL: it is, or nobody would expect it. */
static const char *why_not_amx(const Nest *n, const TileOp *dot, bool *amx) {
    const TileTarget *target = n->context->target;
    const TileType *left = tile_op_operand(dot, 0)->type, *sum = dot->results[0].type;
    TileScalar a = left->scalar, b = tile_op_operand(dot, 1)->type->scalar;
    unsigned rank = sum->rank;
    bool floats = a == TILE_BF16;
    *amx = false;
    if (!target || !target->has_amx || !tile_cpu_amx_multiplies(a, b, sum->scalar)) return NULL;
    if (floats && tile_op_integer(dot, TILE_ATTRIBUTE_ORDERED, 0)) return "AMX has an order of its own";
    int64_t rows = left->extent[rank - 2], columns = sum->extent[rank - 1], depth = left->extent[rank - 1];
    *amx = GAIN * cycles_amx(rows, columns, depth, tile_scalar_bytes(a)) < cycles_fma(target, rows, columns, depth);
    return *amx ? NULL : "AMX would mostly multiply padding";
}

static const char *order_words(Nest *n, const TileOp *dot, bool amx, bool vnni, const char *other,
                               const char *why_not) {
    if (vnni) return "by pairs of k, the odd one of each pair first";
    if (amx) return "by AMX, which adds up 32 products at a time, even and odd ones apart";
    const char *order = tile_op_integer(dot, TILE_ATTRIBUTE_ORDERED, 0) ? "one fma after the other, as `ordered` says"
                                                                        : "one fma after the other";
    return why_not ? tile_arena_format(n->arena, "%s, not by %s: %s", order, other, why_not) : order;
}

static void choose_instruction(Nest *n, TileOp *dot) {
    bool amx, vnni = false;
    const char *why_not = why_not_amx(n, dot, &amx), *other = "AMX";
    if (!amx && !why_not) {
        why_not = why_not_vnni(n, dot, &vnni);
        other = "words of vectors";
    }
    if (amx) nest_say(n, dot, TILE_ATTRIBUTE_INSTRUCTION, TILE_INSTRUCTION_AMX);
    if (vnni) nest_say(n, dot, TILE_ATTRIBUTE_INSTRUCTION, TILE_INSTRUCTION_VNNI);
    if (tile_scalar_is_float(dot->results[0].type->scalar))
        tile_remark_order(n->context, n->func, dot, "dot", order_words(n, dot, amx, vnni, other, why_not));
}

/* ---- operands ---- */

static bool is_plain_load(const TileValue *value) {
    const TileOp *op = tile_value_def(value, TILE_OP_LOAD_TILE);
    if (!op || op->results[0].type->scalar == TILE_BOOL) return false;
    const TileAttribute *access = tile_op_get(op, TILE_ATTRIBUTE_ACCESS),
                        *parts = tile_op_get(op, TILE_ATTRIBUTE_PARTS);
    for (unsigned i = 0; i < access->count; i++)
        if (access->integers[i] == TILE_ACCESS_GATHER) return false;
    return !parts || !parts->count;
}

/* Is the operand read in place? Otherwise the plan keeps it. */
static bool place_operand(Nest *n, TileValue *value, const TileOp *dot) {
    int8_t axis[TILE_MAX_TILE_RANK];
    value = nest_operand_of(n, value, axis);
    const NestInfo *info = nest_info(n, value);
    return !info->statement && !info->slot && is_plain_load(value) && !nest_is_clobbered(n, value, dot);
}

/* fill(x, 0), of either sign, along the contracted axis and perhaps others: if both operands have it, the loop over k
 * excludes these lanes instead. */
static void trim(Nest *n, TileOp *dot, TileValue **a, TileValue **b) {
    unsigned rank = dot->results[0].type->rank;
    NestFill left = nest_contracted_fill(*a, rank - 1), right = nest_contracted_fill(*b, rank - 2);
    if (!nest_left_out(&left, &right)) return;
    *a = nest_without(&left, *a);
    *b = nest_without(&right, *b);
    nest_say(n, dot, TILE_ATTRIBUTE_TRIMMED, 1);
}

void nest_place_dot(Nest *n, TileOp *dot) {
    TileValue *a = tile_op_operand(dot, 0), *b = tile_op_operand(dot, 1);
    trim(n, dot, &a, &b);
    int64_t in_place[2];
    in_place[0] = place_operand(n, a, dot);
    in_place[1] = place_operand(n, b, dot);
    nest_say_list(n, dot, TILE_ATTRIBUTE_IN_PLACE, in_place, 2);
    choose_instruction(n, dot);
}

/* ---- accumulators ---- */

/* Is the dot the only reader of the loop-carried value, possibly through elementwise ops? */
static bool feeds_only(const TileValue *value, const TileOp *dot) {
    while (tile_value_has_uses(value)) {
        if (!tile_value_has_one_use(value)) return false;
        const TileOp *user = value->first_use->user;
        if (user == dot) return value->first_use->index == 2;
        bool pointwise = tile_op_info(user->id)->class == TILE_CLASS_ELEMENTWISE && user->block == dot->block;
        if (!pointwise) return false;
        value = tile_op_result(user, 0);
    }
    return true;
}

/* The dot that accumulates onto this one's result and is its only reader; NULL: there is none. */
static TileOp *next_in_chain(const TileOp *dot) {
    const TileValue *value = tile_op_result(dot, 0);
    if (!tile_value_has_one_use(value)) return NULL;
    TileOp *user = value->first_use->user;
    bool accumulates = user->id == TILE_OP_DOT && value->first_use->index == 2 && user->block == dot->block;
    return accumulates ? user : NULL;
}

static NestBuffer *loop_buffer(Nest *n, const TileOp *head, const TileOp *last) {
    const TileOp *owner = last->block->op;
    const TileValue *value = tile_op_result(last, 0);
    if (!owner || owner->id != TILE_OP_FOR) return NULL;
    for (const TileUse *use = value->first_use; use; use = use->next) {
        if (use->user != last->block->last) continue;
        const TileValue *carried = last->block->arguments[use->index + 1];
        if (feeds_only(carried, head)) return nest_info(n, carried)->slot;
    }
    return NULL;
}

static void join_chain(Nest *n, const TileOp *head) {
    const TileOp *last = head;
    for (const TileOp *next; (next = next_in_chain(last));) last = next;
    TileValue *start = tile_op_named(head, TILE_OPERAND_SUM);
    NestBuffer *buffer = loop_buffer(n, head, last);
    if (!buffer && start->op && tile_value_has_one_use(start)) buffer = nest_info(n, start)->slot;
    if (!buffer) buffer = nest_buffer(n, start->type, 0);
    for (const TileOp *op = head;; op = next_in_chain(op)) {
        NestStatement *copy = tile_map_get(&n->statements, op);
        while (copy->kind != NEST_COPY) copy = copy->next;
        copy->copies->to = buffer;
        nest_info(n, tile_op_result(op, 0))->statement->buffer = buffer;
        if (op == last) break;
    }
}

static bool heads_chain(const TileOp *dot) {
    const TileOp *before = tile_value_def(tile_op_named(dot, TILE_OPERAND_SUM), TILE_OP_DOT);
    return !before || next_in_chain(before) != dot;
}

void nest_join_dots(Nest *n) {
    for (size_t i = 0; i < n->all.count; i++)
        if (n->all.items[i]->kind == NEST_DOT && heads_chain(n->all.items[i]->op)) join_chain(n, n->all.items[i]->op);
    nest_drop_copies(n);
}
