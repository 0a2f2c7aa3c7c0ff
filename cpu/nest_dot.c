/* Operands and accumulators of dot.
 *
 * An operand that is a plain load is read in place, through any permutation; any other operand is first stored in a
 * buffer. The accumulator is a buffer that is updated in place: if possible that of the loop that carries it. */
#include <string.h>

#include "cpu/nest.h"
#include "cpu/panel.h"
#include "cpu/target.h"
#include "lang/ir/operands.h"
#include "lang/scalar/scalar.h"

/* ---- operands ---- */

/* fill(x, 0), of either sign, along the contracted axis and perhaps others. If both operands have it, the loop over k
 * excludes these lanes instead. */
typedef struct Fill {
    TileOp *op; /* NULL: there is none */
    NestAtoms bounds;
    bool negative, only; /* the sign of 0; along no other axis */
} Fill;

static Fill contracted_fill(const TileValue *value, unsigned axis) {
    Fill none = {0}, fill = {.op = tile_value_def(value, TILE_OP_FILL)};
    uint64_t bits;
    if (!fill.op || !tile_value_bits(tile_op_operand(fill.op, 1), &bits)) return none;
    if (tile_scalar_to_double(value->type->scalar, bits) != 0) return none;
    const TileAttribute *axes = tile_op_get(fill.op, TILE_ATTRIBUTE_AXES);
    fill.negative = bits != 0;
    fill.only = axes->count == 1;
    for (unsigned i = 0; i < axes->count; i++) {
        if (axes->integers[i] != axis) continue;
        nest_atoms_add(&fill.bounds, tile_fill_lo(fill.op, i), tile_fill_hi(fill.op, i), value->type->extent[axis]);
        return fill;
    }
    return none;
}

/* Does the loop over k leave out what both fill? A sum of -0 stays what it is where the products that are left out are -0. */
static bool is_left_out(const Fill *a, const Fill *b) {
    if (!a->op || !b->op || !nest_atoms_equal(&a->bounds, &b->bounds)) return false;
    return (a->only && b->only) || a->negative != b->negative;
}

static TileValue *without(const Fill *fill, TileValue *value) { return fill->only ? tile_op_operand(fill->op, 0) : value; }

static bool is_plain_load(const TileValue *value) {
    const TileOp *op = tile_value_def(value, TILE_OP_LOAD_TILE);
    if (!op || op->results[0].type->scalar == TILE_BOOL) return false;
    const TileAttribute *access = tile_op_get(op, TILE_ATTRIBUTE_ACCESS),
                        *parts = tile_op_get(op, TILE_ATTRIBUTE_PARTS);
    for (unsigned i = 0; i < access->count; i++)
        if (access->integers[i] == TILE_ACCESS_GATHER) return false;
    return !parts || !parts->count;
}

/* Copies one element that a loop carries in a scalar to a buffer. */
static void copy_operand(Nest *n, NestOperand *o, TileOp *dot) {
    NestStatement *copy = nest_statement(n, NEST_COPY, dot, NULL);
    o->copy = nest_buffer(n, o->value->type, 0);
    copy->copies = TILE_NEW(n->arena, NestCopy);
    *copy->copies = (NestCopy){o->value, o->copy};
    copy->copy_count = 1;
}

static void resolve(Nest *n, NestOperand *o, TileValue *value, TileOp *dot) {
    unsigned rank = value->type->rank;
    for (unsigned i = 0; i < rank; i++) o->axis[i] = (int8_t)i;
    for (TileOp *op = value->op; op && op->id == TILE_OP_PERMUTE && !nest_info(n, value)->statement; op = value->op) {
        const TileAttribute *axes = tile_op_get(op, TILE_ATTRIBUTE_AXES);
        for (unsigned i = 0; i < rank; i++) o->axis[i] = (int8_t)axes->integers[o->axis[i]];
        value = tile_op_operand(op, 0);
    }
    o->value = value;
    const NestInfo *info = nest_info(n, value);
    o->view = !info->statement && !info->slot && is_plain_load(value) && !nest_is_clobbered(n, value, dot);
    if (!o->view) nest_keep(n, value);
    if (!info->statement && !info->slot && !o->view) copy_operand(n, o, dot);
    const NestAtoms *atoms = nest_atoms(n, value);
    for (unsigned i = 0; i < rank; i++) o->atoms[i] = atoms[o->axis[i]];
}

void nest_plan_dot(Nest *n, TileOp *op) {
    TileValue *value = tile_op_result(op, 0), *a = tile_op_operand(op, 0), *b = tile_op_operand(op, 1);
    unsigned rank = value->type->rank;
    NestStatement *copy = nest_statement(n, NEST_COPY, op, NULL);
    copy->copies = TILE_NEW(n->arena, NestCopy);
    copy->copies->value = tile_op_named(op, TILE_OPERAND_SUM);
    copy->copy_count = 1;
    copy->accumulator = true;
    NestOperand left = {0}, right = {0};
    Fill fill_a = contracted_fill(a, rank - 1), fill_b = contracted_fill(b, rank - 2);
    bool strip = is_left_out(&fill_a, &fill_b);
    resolve(n, &left, strip ? without(&fill_a, a) : a, op);
    resolve(n, &right, strip ? without(&fill_b, b) : b, op);
    int64_t extent = a->type->extent[rank - 1];
    if (strip) nest_atoms_join(&left.atoms[rank - 1], &fill_a.bounds, extent);
    NestStatement *dot = nest_statement(n, NEST_DOT, op, value);
    dot->a = left;
    dot->b = right;
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
        if (op != head || nest_info(n, start)->slot == buffer) copy->copy_count = 0;
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
    for (size_t i = 0; i < n->all.count; i++) {
        NestStatement *s = n->all.items[i];
        unsigned kept = 0;
        for (unsigned c = 0; s->kind == NEST_COPY && c < s->copy_count; c++) {
            const NestStatement *source = nest_info(n, s->copies[c].value)->statement;
            if (!source || !source->buffer || source->buffer != s->copies[c].to) s->copies[kept++] = s->copies[c];
        }
        s->copy_count = kept;
    }
}

/* ---- instructions ---- */

/* Cycles of a product of these extents on registers, for AMX and for fused multiply-adds of vectors of 32-bit numbers. A
 * tile register has 16 rows of 64 bytes, and an instruction takes a cycle for each row of c; two fmas begin in a cycle. */
enum { AMX_ROWS = 16, AMX_COLUMNS = 16, AMX_BYTES = 64, FMAS = 2, GAIN = 2 /* what AMX has to be better by: it pads */ };

static int64_t parts(int64_t extent, int64_t part) { return (extent + part - 1) / part; }

static double cycles_amx(int64_t m, int64_t n, int64_t k, int64_t bytes) {
    return (double)parts(m, AMX_ROWS) * AMX_ROWS * (double)parts(n, AMX_COLUMNS) * (double)parts(k, AMX_BYTES / bytes);
}

static double cycles_fma(const TileTarget *target, int64_t m, int64_t n, int64_t k) {
    return (double)m * (double)parts(n, target->vector_bytes / 4) * (double)k / FMAS;
}

/* Why the product is not computed by AMX; NULL: it is, or nobody would expect it. */
static const char *why_not_amx(const Nest *n, const NestStatement *s, bool *amx) {
    const TileTarget *target = n->context->target;
    TileScalar a = s->a.value->type->scalar, b = s->b.value->type->scalar, c = s->value->type->scalar;
    unsigned rank = s->value->type->rank;
    bool floats = a == TILE_BF16;
    *amx = false;
    if (!target || !target->has_amx || !tile_cpu_amx_multiplies(a, b, c)) return NULL;
    if (floats && tile_op_integer(s->op, TILE_ATTRIBUTE_ORDERED, 0)) return "AMX has an order of its own";
    const TileType *left = tile_op_operand(s->op, 0)->type;
    int64_t rows = left->extent[rank - 2], columns = s->value->type->extent[rank - 1], depth = left->extent[rank - 1];
    *amx = GAIN * cycles_amx(rows, columns, depth, tile_scalar_bytes(a)) < cycles_fma(target, rows, columns, depth);
    return *amx ? NULL : "AMX would mostly multiply padding";
}

/* ---- panels ---- */

static bool is_tile_float(const TileValue *value) { return tile_scalar_is_float(value->type->scalar); }

/* Is the value computed for this operand of the dot alone, which takes it as it is? */
static bool is_operand(const NestStatement *s, const NestOperand *operand, const NestOperand *other) {
    return operand->value == s->value && other->value != s->value && s->value->type->rank == 2 && operand->axis[0] == 0;
}

/* Has the machine's L2 cache space for the panel beside another one? */
static NestBuffer *panel(Nest *n, const TileType *type, TileScalar scalar, int64_t row, int64_t size) {
    int64_t cache = n->context->target ? n->context->target->l2_bytes : 0, bytes = tile_scalar_bytes(scalar);
    if (size > cache / 2) return NULL;
    NestBuffer *buffer = nest_buffer(n, type, 0);
    *buffer = (NestBuffer){.scalar = scalar, .stride = {row, bytes}, .bytes = size};
    return buffer;
}

/* Does the loop around the dot only pass on its sum? Otherwise products are not joined. */
static bool only_adds(const TileOp *dot) {
    const TileValue *start = tile_op_named(dot, TILE_OPERAND_SUM), *sum = tile_op_result(dot, 0);
    return !start->op && start->block == dot->block && tile_value_has_one_use(sum) && sum->first_use->user == dot->block->last;
}

/* Rows of a in a loop's small products have space for those of the iterations that are multiplied together, and b has space for
 * their rows, both in the type in which they are multiplied. */
NestBuffer *nest_dot_panel(Nest *n, const NestStatement *s) {
    const NestStatement *dot = s->consumers.count == 1 ? s->consumers.items[0] : NULL;
    bool amx;
    if (s->kind != NEST_KEEP || !dot || dot->kind != NEST_DOT) return NULL;
    bool a = is_operand(s, &dot->a, &dot->b), b = is_operand(s, &dot->b, &dot->a);
    if ((!a && !b) || !is_tile_float(s->value) || !is_tile_float(dot->value)) return NULL;
    if (!tile_op_is(dot->op->block->op, TILE_OP_FOR)) return NULL;
    why_not_amx(n, dot, &amx);
    if (amx) return NULL;
    const TileType *type = s->value->type;
    TileScalar scalar = dot->value->type->scalar;
    int64_t bytes = tile_scalar_bytes(scalar), line = CPU_PANEL_PAD_BYTES;
    if (bytes < tile_scalar_bytes(type->scalar) || type->extent[a] * bytes > CPU_PANEL_DEPTH_BYTES / 2) return NULL;
    if (a) {
        int64_t row = CPU_PANEL_DEPTH_BYTES + CPU_PANEL_PAD_BYTES;
        return panel(n, type, scalar, row, row * (type->extent[0] + CPU_PANEL_ROWS));
    }
    int64_t row = (type->extent[1] * bytes + line - 1) / line * line;
    if (row > CPU_PANEL_WIDTH_BYTES || !only_adds(dot->op)) return NULL;
    return panel(n, type, scalar, row, row * CPU_PANEL_DEPTH_BYTES / bytes + CPU_PANEL_TAIL_BYTES);
}

static const char *order_words(Nest *n, const NestStatement *s, bool amx, const char *why_not) {
    if (amx) return "by AMX, which adds up 32 products at a time, even and odd ones apart";
    const char *order = tile_op_integer(s->op, TILE_ATTRIBUTE_ORDERED, 0) ? "one fma after the other, as `ordered` says"
                                                                        : "one fma after the other";
    return why_not ? tile_arena_format(n->arena, "%s, not by AMX: %s", order, why_not) : order;
}

/* ---- code ---- */

typedef struct Strided {
    TileValue *pointer, *stride[TILE_MAX_TILE_RANK]; /* by axis of the operand */
} Strided;

static TileValue *moved(Nest *n, TileValue *pointer, TileValue *lanes, TileValue *stride) {
    return nest_offset(n, pointer, nest_binary(n, TILE_OP_MUL, lanes, stride));
}

static Strided view(Nest *n, const NestOperand *o) {
    const TileOp *op = o->value->op;
    TileAccessIndex dimensions[TILE_MAX_TENSOR_RANK];
    unsigned count = tile_access_read(op, dimensions);
    Strided result = {.pointer = nest_info(n, tile_op_operand(op, 0))->tensor->pointer};
    TileValue *by_axis[TILE_MAX_TILE_RANK] = {0};
    for (unsigned d = 0; d < count; d++) {
        TileValue *stride = nest_stride(n, tile_op_operand(op, 0), d);
        TileValue *first = nest_scalar(n, dimensions[d].first);
        result.pointer = moved(n, result.pointer, first, stride);
        if (dimensions[d].axis < 0) continue;
        TileValue *step = nest_scalar(n, dimensions[d].step);
        by_axis[dimensions[d].axis] = nest_binary(n, TILE_OP_MUL, step, stride);
    }
    for (unsigned i = 0; i < o->value->type->rank; i++) result.stride[i] = by_axis[o->axis[i]];
    return result;
}

static Strided in_buffer(Nest *n, NestBuffer *buffer, const int8_t *axis, unsigned rank) {
    Strided result = {.pointer = nest_buffer_pointer(n, buffer)};
    for (unsigned i = 0; i < rank; i++) result.stride[i] = nest_constant(n, buffer->stride[axis ? axis[i] : (int)i]);
    return result;
}

static Strided operand(Nest *n, const NestOperand *o) {
    if (o->view) return view(n, o);
    const NestInfo *info = nest_info(n, o->value);
    if (o->copy) return in_buffer(n, o->copy, o->axis, o->value->type->rank);
    return in_buffer(n, info->slot ? info->slot : info->statement->buffer, o->axis, o->value->type->rank);
}

static TileValue *size_between(Nest *n, TileValue *lo, TileValue *hi) {
    return nest_binary(n, TILE_OP_MAX, nest_binary(n, TILE_OP_SUB, hi, lo), nest_constant(n, 0));
}

/* Opens a loop over one leading axis, which all three share. */
static void enter_batch(Nest *n, const NestAtoms *atoms, int64_t extent, Strided *parts[3], unsigned axis) {
    TileValue *lo, *hi;
    nest_bounds(n, atoms, extent, &lo, &hi);
    TileBuilder b = nest_builder(n, NULL, 0, NULL);
    b = tile_builder_at_end(n->module, n->open[0].block);
    TileOp *loop = tile_build_for(&b, lo, hi, nest_constant(n, 1), NULL, 0);
    n->open[0].block = &loop->regions[0];
    for (unsigned i = 0; i < 3; i++)
        parts[i]->pointer = moved(n, parts[i]->pointer, loop->regions[0].arguments[0], parts[i]->stride[axis]);
}

/* The type in which the operand is in memory. */
static TileScalar scalar_of(Nest *n, const NestOperand *o) {
    const NestStatement *source = nest_info(n, o->value)->statement;
    return source && source->buffer && !o->view ? source->buffer->scalar : o->value->type->scalar;
}

static void build_block(Nest *n, const NestStatement *s, const Strided *a, const Strided *b, const Strided *c,
                        TileValue *const *size, bool amx) {
    unsigned rank = s->value->type->rank;
    TileValue *zero = nest_constant(n, 0);
    TileValue *operands[] = {a->pointer,
                             a->stride[rank - 2],
                             a->stride[rank - 1],
                             b->pointer,
                             b->stride[rank - 2],
                             b->stride[rank - 1],
                             c->pointer,
                             c->stride[rank - 2],
                             size[0],
                             size[1],
                             size[2],
                             zero,
                             zero,
                             zero};
    const TileType *types[] = {tile_type_scalar(n->module->context, scalar_of(n, &s->a)),
                               tile_type_scalar(n->module->context, scalar_of(n, &s->b)),
                               tile_type_scalar(n->module->context, s->value->type->scalar)};
    const int64_t *left = tile_op_operand(s->op, 0)->type->extent, *right = tile_op_operand(s->op, 1)->type->extent;
    int64_t extents[] = {left[rank - 2], right[rank - 1], left[rank - 1]};
    TileAttribute attributes[5] = {
        {.key = TILE_ATTRIBUTE_TYPES, .count = 3, .types = types},
        {.key = TILE_ATTRIBUTE_EXTENTS, .count = 3, .integers = extents},
    };
    const TileAttributeKey kept[] = {TILE_ATTRIBUTE_PRECISION, TILE_ATTRIBUTE_ORDERED};
    unsigned count = 2;
    for (unsigned i = 0; i < 2; i++) {
        const TileAttribute *attribute = tile_op_get(s->op, kept[i]);
        if (attribute) attributes[count++] = *attribute;
    }
    if (amx) attributes[count++] = (TileAttribute){.key = TILE_ATTRIBUTE_INSTRUCTION, .integer = TILE_INSTRUCTION_AMX};
    TileBuilder builder = tile_builder_at_end(n->module, n->open[0].block);
    builder.location = s->op->location;
    tile_build_op(&builder, TILE_OP_DOT_BLOCK, operands, 14, attributes, count, NULL, 0);
}

void nest_emit_dot(Nest *n, NestStatement *s) {
    bool amx;
    const char *why_not = why_not_amx(n, s, &amx);
    if (tile_scalar_is_float(s->value->type->scalar))
        tile_remark_order(n->context, n->func, s->op, "dot", order_words(n, s, amx, why_not));
    const TileType *type = s->value->type;
    unsigned rank = type->rank;
    TileBlock *outside = n->open[0].block;
    Strided a = operand(n, &s->a), b = operand(n, &s->b), c = in_buffer(n, s->buffer, NULL, rank);
    Strided *parts[3] = {&a, &b, &c};
    const NestAtoms *atoms = nest_atoms(n, s->value);
    NestAtoms inner = s->a.atoms[rank - 1];
    int64_t depth = tile_op_operand(s->op, 0)->type->extent[rank - 1];
    nest_atoms_join(&inner, &s->b.atoms[rank - 2], depth);
    TileValue *lo[3], *hi[3], *size[3];
    nest_bounds(n, &atoms[rank - 2], type->extent[rank - 2], &lo[0], &hi[0]);
    nest_bounds(n, &atoms[rank - 1], type->extent[rank - 1], &lo[1], &hi[1]);
    nest_bounds(n, &inner, depth, &lo[2], &hi[2]);
    for (unsigned i = 0; i < 3; i++) size[i] = size_between(n, lo[i], hi[i]);
    a.pointer = moved(n, moved(n, a.pointer, lo[0], a.stride[rank - 2]), lo[2], a.stride[rank - 1]);
    b.pointer = moved(n, moved(n, b.pointer, lo[2], b.stride[rank - 2]), lo[1], b.stride[rank - 1]);
    c.pointer = moved(n, moved(n, c.pointer, lo[0], c.stride[rank - 2]), lo[1], c.stride[rank - 1]);
    unsigned memo = (unsigned)n->memo.count;
    for (unsigned i = 0; i + 2 < rank; i++) enter_batch(n, &atoms[i], type->extent[i], parts, i);
    build_block(n, s, &a, &b, &c, size, amx);
    for (unsigned i = 0; i + 2 < rank; i++) {
        TileBlock *block = n->open[0].block;
        TileBuilder end = tile_builder_at_end(n->module, block);
        tile_build_end(&end, TILE_OP_YIELD, NULL, 0);
        n->open[0].block = block->op->block;
    }
    n->open[0].block = outside;
    nest_forget(n, memo);
}
