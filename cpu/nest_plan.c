/* The plan of a nest: positions of ops, and a statement for each op that is one whatever its place: what places say that lives in
 * buffers is copied there. cpu-place plans before it decides on further values, and cpu-nest when it has read what was decided. */
#include <string.h>

#include "cpu/nest.h"
#include "lang/ir/operands.h"
#include "lang/scalar/scalar.h"

/* ---- positions ---- */

static void note_write(Nest *n, const TileValue *tensor, uint32_t position) {
    size_t i = 0;
    while (i < n->writes.count && n->writes.items[i].tensor != tensor) i++;
    if (i == n->writes.count) tile_list_push(n->arena, &n->writes, (NestWrites){.tensor = tensor});
    tile_list_push(n->arena, &n->writes.items[i].positions, position);
}

static void number_block(Nest *n, TileBlock *block) {
    for (TileOp *op = block->first; op; op = op->next) {
        uint32_t position = ++n->position;
        for (unsigned i = 0; i < op->result_count; i++) nest_info(n, &op->results[i])->position = position;
        if (op->id == TILE_OP_STORE_TILE || op->id == TILE_OP_ATOMIC_TILE)
            note_write(n, tile_op_operand(op, 0), position);
        NestSpan *span = TILE_NEW(n->arena, NestSpan);
        span->first = position;
        for (unsigned i = 0; nest_has_blocks(op) && i < op->region_count; i++) number_block(n, &op->regions[i]);
        span->last = n->position;
        tile_map_set(&n->spans, op, span);
    }
}

Nest nest_create(TilePassContext *context, TileFunc *func) {
    Nest n = {.context = context, .module = context->module, .arena = context->scratch, .func = func};
    n.value_count = tile_func_number(func);
    n.infos = TILE_NEW_ARRAY(n.arena, NestInfo, n.value_count + 1);
    n.entry.func = func;
    n.body = &func->body;
    tile_map_init(&n.statements, n.arena);
    tile_map_init(&n.spans, n.arena);
    tile_map_init(&n.constants, n.arena);
    number_block(&n, n.body);
    return n;
}

void nest_describe_tensors(Nest *n) {
    for (uint32_t i = 0; i < n->body->argument_count; i++) {
        NestTensor *tensor = TILE_NEW(n->arena, NestTensor);
        tensor->facts = n->func->parameters[i];
        nest_info(n, n->body->arguments[i])->tensor = tensor;
    }
}

/* ---- statements ---- */

static void plan_reads(Nest *n, TileOp *op) {
    for (unsigned i = 0; i < op->operand_count; i++)
        if (tile_type_is_tile(tile_op_operand(op, i)->type) && nest_is_single(tile_op_operand(op, i)->type)) {
            nest_statement(n, NEST_READ, op, NULL);
            return;
        }
}

static bool same_extents(const TileType *a, const TileType *b) {
    return a->rank == b->rank && memcmp(a->extent, b->extent, a->rank * sizeof *a->extent) == 0;
}

/* Values of one shape are copied in one nest, so that at each point all are read before any is written. */
static void plan_copy(Nest *n, TileOp *at, TileValue *value, NestBuffer *to) {
    if (nest_info(n, value)->slot == to) return;
    NestStatement *s = tile_map_get(&n->statements, at);
    while (s && (s->kind != NEST_COPY || !same_extents(s->copies[0].value->type, value->type))) s = s->next;
    if (!s) s = nest_statement(n, NEST_COPY, at, NULL);
    size_t bytes = s->copy_count * sizeof(NestCopy);
    if ((s->copy_count & (s->copy_count - 1)) == 0) /* full: the capacity is a power of two */
        s->copies = tile_arena_grow(n->arena, s->copies, bytes, bytes ? 2 * bytes : sizeof(NestCopy));
    s->copies[s->copy_count++] = (NestCopy){value, to};
}

static void plan_copies(Nest *n, TileOp *at, TileOperand name, const TileOp *owner) {
    for (unsigned i = 0; i < owner->result_count; i++) {
        NestBuffer *slot = nest_info(n, &owner->results[i])->slot;
        if (slot) plan_copy(n, at, tile_op_named_at(at, name, i), slot);
    }
}

/* Tiles are copied to buffers, in program order. */
static void plan_print(Nest *n, TileOp *op) {
    for (unsigned i = 0; i < op->operand_count; i++) {
        TileValue *value = tile_op_operand(op, i);
        if (!tile_type_is_tile(value->type)) continue;
        NestStatement *copy = nest_statement(n, NEST_COPY, op, NULL);
        copy->copies = TILE_NEW(n->arena, NestCopy);
        *copy->copies = (NestCopy){value, nest_buffer(n, value->type, 0)};
        copy->copy_count = 1;
    }
    nest_statement(n, NEST_PRINT, op, NULL);
}

static void plan_region_op(Nest *n, TileOp *op) {
    plan_reads(n, op);
    if (op->id == TILE_OP_FOR || op->id == TILE_OP_WHILE) plan_copies(n, op, TILE_OPERAND_CARRIED, op);
    for (unsigned r = 0; r < op->region_count; r++) {
        TileOp *end = op->regions[r].last;
        plan_reads(n, end);
        if (end->id == TILE_OP_YIELD || end->id == TILE_OP_CONDITION)
            plan_copies(n, end, end->id == TILE_OP_CONDITION ? TILE_OPERAND_CARRIED : TILE_OPERAND_VALUES, op);
    }
}

static void plan_fold(Nest *n, TileOp *op) {
    NestStatement *whole = nest_statement(n, op->id == TILE_OP_SCAN ? NEST_SCAN : NEST_FOLD, op, tile_op_result(op, 0));
    for (unsigned i = 1; i < op->result_count; i++)
        nest_statement(n, NEST_PART, op, tile_op_result(op, i))->whole = whole;
}

/* ---- operands of dot ---- */

NestFill nest_contracted_fill(const TileValue *value, unsigned axis) {
    NestFill none = {0}, fill = {.op = tile_value_def(value, TILE_OP_FILL)};
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
bool nest_left_out(const NestFill *a, const NestFill *b) {
    if (!a->op || !b->op || !nest_atoms_equal(&a->bounds, &b->bounds)) return false;
    return (a->only && b->only) || a->negative != b->negative;
}

/* Copies one element that a loop carries in a scalar to a buffer. */
static void copy_operand(Nest *n, NestOperand *o, TileOp *dot) {
    NestStatement *copy = nest_statement(n, NEST_COPY, dot, NULL);
    o->copy = nest_buffer(n, o->value->type, 0);
    copy->copies = TILE_NEW(n->arena, NestCopy);
    *copy->copies = (NestCopy){o->value, o->copy};
    copy->copy_count = 1;
}

TileValue *nest_operand_of(Nest *n, TileValue *value, int8_t *axis) {
    unsigned rank = value->type->rank;
    for (unsigned i = 0; i < rank; i++) axis[i] = (int8_t)i;
    for (TileOp *op = value->op; op && op->id == TILE_OP_PERMUTE && !nest_info(n, value)->statement; op = value->op) {
        const TileAttribute *axes = tile_op_get(op, TILE_ATTRIBUTE_AXES);
        for (unsigned i = 0; i < rank; i++) axis[i] = (int8_t)axes->integers[axis[i]];
        value = tile_op_operand(op, 0);
    }
    return value;
}

TileValue *nest_without(const NestFill *fill, TileValue *value) {
    return fill->op && fill->only ? tile_op_operand(fill->op, 0) : value;
}

static NestOperand plan_operand(Nest *n, TileValue *value, TileOp *dot, bool in_place) {
    NestOperand o = {.view = in_place};
    o.value = nest_operand_of(n, value, o.axis);
    const NestInfo *info = nest_info(n, o.value);
    if (!o.view) nest_keep(n, o.value);
    if (!info->statement && !info->slot && !o.view) copy_operand(n, &o, dot);
    const NestAtoms *atoms = nest_atoms(n, o.value);
    for (unsigned i = 0; i < value->type->rank; i++) o.atoms[i] = atoms[o.axis[i]];
    return o;
}

static void plan_dot(Nest *n, TileOp *op) {
    TileValue *value = tile_op_result(op, 0), *a = tile_op_operand(op, 0), *b = tile_op_operand(op, 1);
    const TileAttribute *in_place = tile_op_get(op, TILE_ATTRIBUTE_IN_PLACE);
    unsigned rank = value->type->rank;
    if (!in_place) {
        n->failure = "a product does not say how it reads its operands: cpu-place has not run";
        return;
    }
    NestStatement *copy = nest_statement(n, NEST_COPY, op, NULL);
    copy->copies = TILE_NEW(n->arena, NestCopy);
    copy->copies->value = tile_op_named(op, TILE_OPERAND_SUM);
    copy->copy_count = 1;
    copy->accumulator = true;
    NestFill fill_a = {0}, fill_b = {0};
    if (tile_op_integer(op, TILE_ATTRIBUTE_TRIMMED, 0)) {
        fill_a = nest_contracted_fill(a, rank - 1);
        fill_b = nest_contracted_fill(b, rank - 2);
        if (!nest_left_out(&fill_a, &fill_b)) n->failure = "a product leaves out lanes that its operands do not fill alike";
    }
    NestOperand left = plan_operand(n, nest_without(&fill_a, a), op, in_place->integers[0]);
    NestOperand right = plan_operand(n, nest_without(&fill_b, b), op, in_place->integers[1]);
    nest_atoms_join(&left.atoms[rank - 1], &fill_a.bounds, a->type->extent[rank - 1]);
    NestStatement *dot = nest_statement(n, NEST_DOT, op, value);
    dot->a = left;
    dot->b = right;
}

void nest_plan_op(Nest *n, TileOp *op) {
    TileValue *result = op->result_count ? tile_op_result(op, 0) : NULL;
    if (op->id == TILE_OP_STORE_TILE) nest_statement(n, NEST_STORE, op, NULL);
    if (op->id == TILE_OP_ATOMIC_TILE) nest_statement(n, NEST_ATOMIC, op, result);
    if (op->id == TILE_OP_REDUCE) nest_statement(n, NEST_REDUCE, op, result);
    if (op->id == TILE_OP_ARG_REDUCE) nest_statement(n, NEST_ARG_REDUCE, op, result);
    if (tile_op_combiner(op)) plan_fold(n, op);
    if (op->id == TILE_OP_DOT) plan_dot(n, op);
    if (op->id == TILE_OP_PRINT) plan_print(n, op);
    if (op->id == TILE_OP_RESHAPE && !tile_type_is_tile(result->type)) nest_statement(n, NEST_SCALAR, op, result);
    if (nest_has_blocks(op)) plan_region_op(n, op);
}

static const NestBuffer *held_in(Nest *n, const TileValue *value) {
    const NestInfo *info = nest_info(n, value);
    if (info->slot) return info->slot;
    return info->statement && info->statement->kind == NEST_DOT ? info->statement->buffer : NULL;
}

void nest_drop_copies(Nest *n) {
    for (size_t i = 0; i < n->all.count; i++) {
        NestStatement *s = n->all.items[i];
        unsigned kept = 0;
        for (unsigned c = 0; s->kind == NEST_COPY && c < s->copy_count; c++)
            if (held_in(n, s->copies[c].value) != s->copies[c].to) s->copies[kept++] = s->copies[c];
        if (s->kind == NEST_COPY) s->copy_count = kept;
    }
}

/* ---- loops and readers ---- */

static void set_levels(Nest *n, NestStatement *s) {
    s->level_count = s->parallel_count = 0;
    switch (s->kind) {
    case NEST_SCALAR:
    case NEST_READ:
    case NEST_DOT:
    case NEST_PRINT: break;
    case NEST_STORE: nest_store_levels(s); break;
    case NEST_ATOMIC: nest_atomic_levels(s); break;
    case NEST_KEEP: nest_levels(s, s->value->type, nest_atoms(n, s->value), -1); break;
    case NEST_COPY: nest_copy_levels(n, s); break;
    case NEST_REDUCE:
    case NEST_ARG_REDUCE: nest_reduce_levels(n, s); break;
    case NEST_FOLD:
    case NEST_SCAN: nest_fold_levels(n, s); break;
    case NEST_PART:
        s->level_count = s->whole->level_count;
        s->parallel_count = s->whole->parallel_count;
        memcpy(s->levels, s->whole->levels, sizeof s->levels);
        memcpy(s->axis, s->whole->axis, sizeof s->axis);
        break;
    }
}

/* The loops of a block of points are inside of the others. */
static void leave_to_block(NestStatement *s) {
    unsigned kept = 0;
    while (kept < s->level_count && (!s->block || s->axis[kept] < (int)s->block->first_axis)) kept++;
    if (s->block) s->level_count = s->parallel_count = kept;
}

/* In program order, so that the recursion is shallow. */
static void find_atoms(Nest *n, TileBlock *block) {
    for (TileOp *op = block->first; op; op = op->next) {
        for (unsigned i = 0; nest_has_blocks(op) && i < op->region_count; i++) find_atoms(n, &op->regions[i]);
        for (unsigned i = 0; i < op->result_count; i++) nest_atoms(n, &op->results[i]);
    }
}

void nest_analyse(Nest *n) {
    for (uint32_t i = 0; i < n->value_count; i++) n->infos[i].atoms = NULL;
    find_atoms(n, n->body);
    for (size_t i = 0; i < n->all.count; i++) {
        set_levels(n, n->all.items[i]);
        leave_to_block(n->all.items[i]);
        nest_collect_leaves(n, n->all.items[i]);
    }
}

void nest_collect_consumers(Nest *n) {
    for (size_t i = 0; i < n->all.count; i++) {
        NestStatement *s = n->all.items[i];
        for (size_t l = 0; l < s->leaves.count; l++) {
            NestStatement *source = nest_info(n, s->leaves.items[l].value)->statement;
            if (source && source != s) tile_list_push(n->arena, &source->consumers, s);
        }
    }
}
