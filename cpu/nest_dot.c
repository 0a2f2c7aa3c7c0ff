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

/* ---- panels ---- */

static bool is_tile_float(const TileValue *value) { return tile_scalar_is_float(value->type->scalar); }

/* Are its panels made of words of the operands' own elements? */
static bool takes_words(const TileOp *dot) {
    int64_t instruction = tile_op_integer(dot, TILE_ATTRIBUTE_INSTRUCTION, TILE_INSTRUCTION_FMA);
    return instruction == TILE_INSTRUCTION_AMX || instruction == TILE_INSTRUCTION_VNNI;
}

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

/* AMX, and vectors of words, take rows of a in the type that they have. */
static NestBuffer *panel_of_words(Nest *n, const TileOp *dot, const TileType *type) {
    bool amx = tile_op_integer(dot, TILE_ATTRIBUTE_INSTRUCTION, TILE_INSTRUCTION_FMA) == TILE_INSTRUCTION_AMX;
    int64_t depth = amx ? CPU_PANEL_AMX_DEPTH_BYTES : CPU_PANEL_DEPTH_BYTES;
    int64_t bytes = tile_scalar_bytes(type->scalar), row = depth + CPU_PANEL_PAD_BYTES;
    if (type->extent[1] * bytes > depth / 2) return NULL;
    return panel(n, type, type->scalar, row, row * (type->extent[0] + CPU_PANEL_ROWS));
}

/* Rows of a in a loop's small products have space for those of the iterations that are multiplied together, and b has space for
 * their rows, both in the type in which they are multiplied. */
NestBuffer *nest_dot_panel(Nest *n, const NestStatement *s) {
    const NestStatement *dot = s->consumers.count == 1 ? s->consumers.items[0] : NULL;
    if (s->kind != NEST_KEEP || !dot || dot->kind != NEST_DOT) return NULL;
    bool a = is_operand(s, &dot->a, &dot->b), b = is_operand(s, &dot->b, &dot->a);
    if ((!a && !b) || !tile_op_is(dot->op->block->op, TILE_OP_FOR) || !only_adds(dot->op)) return NULL;
    if (takes_words(dot->op)) return a ? panel_of_words(n, dot->op, s->value->type) : NULL;
    if (!is_tile_float(s->value) || !is_tile_float(dot->value)) return NULL;
    const TileType *type = s->value->type;
    TileScalar scalar = dot->value->type->scalar;
    int64_t bytes = tile_scalar_bytes(scalar), line = CPU_PANEL_PAD_BYTES;
    if (bytes < tile_scalar_bytes(type->scalar) || type->extent[a] * bytes > CPU_PANEL_DEPTH_BYTES / 2) return NULL;
    if (a) {
        int64_t row = CPU_PANEL_DEPTH_BYTES + CPU_PANEL_PAD_BYTES;
        return panel(n, type, scalar, row, row * (type->extent[0] + CPU_PANEL_ROWS));
    }
    int64_t row = (type->extent[1] * bytes + line - 1) / line * line;
    if (row > CPU_PANEL_WIDTH_BYTES) return NULL;
    return panel(n, type, scalar, row, row * CPU_PANEL_DEPTH_BYTES / bytes + CPU_PANEL_TAIL_BYTES);
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
                        TileValue *const *size) {
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
    if (takes_words(s->op)) attributes[count++] = *tile_op_get(s->op, TILE_ATTRIBUTE_INSTRUCTION);
    TileBuilder builder = tile_builder_at_end(n->module, n->open[0].block);
    builder.location = s->op->location;
    tile_build_op(&builder, TILE_OP_DOT_BLOCK, operands, 14, attributes, count, NULL, 0);
}

void nest_emit_dot(Nest *n, NestStatement *s) {
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
    build_block(n, s, &a, &b, &c, size);
    for (unsigned i = 0; i + 2 < rank; i++) {
        TileBlock *block = n->open[0].block;
        TileBuilder end = tile_builder_at_end(n->module, block);
        tile_build_end(&end, TILE_OP_YIELD, NULL, 0);
        n->open[0].block = block->op->block;
    }
    n->open[0].block = outside;
    nest_forget(n, memo);
}
