/* Statements and their buffers, and the writes between two ops: what placement, fusion and dots ask. */
#include "cpu/nest.h"
#include "lang/ir/operands.h"

enum { LONGEST_STEP = 1 << 24 }; /* times the lanes of a tile it does not wrap */

NestStatement *nest_statement(Nest *n, NestStatementKind kind, TileOp *op, TileValue *value) {
    NestStatement *s = TILE_NEW(n->arena, NestStatement);
    *s = (NestStatement){.kind = kind, .op = op, .value = value};
    if (value) nest_info(n, value)->statement = s;
    if (value && kind == NEST_KEEP) op = value->op;
    s->op = op;
    NestStatement *first = tile_map_get(&n->statements, op);
    if (!first) {
        tile_map_set(&n->statements, op, s);
    } else {
        while (first->next) first = first->next;
        first->next = s;
    }
    tile_list_push(n->arena, &n->all, s);
    return s;
}

void nest_keep(Nest *n, TileValue *value) {
    NestInfo *info = nest_info(n, value);
    bool carried = !value->op || nest_has_blocks(value->op); /* one element, in a scalar */
    if (!info->statement && !info->slot && !carried) nest_statement(n, NEST_KEEP, value->op, value);
}

NestBuffer *nest_buffer(Nest *n, const TileType *type, unsigned collapsed) {
    NestBuffer *buffer = TILE_NEW(n->arena, NestBuffer);
    *buffer = (NestBuffer){.scalar = type->scalar, .bytes = tile_scalar_bytes(type->scalar)};
    for (unsigned i = type->rank; i-- > 0;) {
        if (collapsed >> i & 1u) continue;
        buffer->stride[i] = buffer->bytes;
        buffer->bytes *= type->extent[i];
    }
    return buffer;
}

void nest_give_buffer(Nest *n, NestStatement *s, unsigned shared) {
    unsigned collapsed = 0;
    for (unsigned l = 0; l < shared && l < s->parallel_count; l++) collapsed |= 1u << s->axis[l];
    s->buffer = nest_buffer(n, s->value->type, collapsed);
    s->buffer->passing = s->kind == NEST_KEEP;
}

unsigned nest_shared_loops(const NestStatement *s, const NestStatement *other) {
    unsigned shared = 0;
    while (shared < s->level_count && shared < other->level_count && s->nodes[shared] &&
           s->nodes[shared] == other->nodes[shared])
        shared++;
    return shared;
}

/* ---- writes ---- */

bool nest_tensors_overlap(Nest *n, const TileValue *a, const TileValue *b) {
    if (a == b) return true;
    return !nest_info(n, a)->tensor->facts.noalias && !nest_info(n, b)->tensor->facts.noalias;
}

/* The value without the numbers that are added to it, whose sum is added to *more. */
static const TileValue *strip_numbers(const TileValue *value, int64_t *more) {
    int64_t number;
    for (const TileOp *add; (add = tile_value_def(value, TILE_OP_ADD));) {
        unsigned other = tile_value_integer(tile_op_operand(add, 1), &number) ? 0 : 1;
        if (!tile_value_integer(tile_op_operand(add, 1 - other), &number) || __builtin_add_overflow(*more, number, more)) break;
        value = tile_op_operand(add, other);
    }
    return value;
}

/* Is a = b + *distance? */
static bool find_distance(const TileValue *a, const TileValue *b, int64_t *distance) {
    int64_t of_a = 0, of_b = 0;
    if (tile_value_integer(a, &of_a) && tile_value_integer(b, &of_b)) return !__builtin_sub_overflow(of_a, of_b, distance);
    of_a = of_b = 0;
    return strip_numbers(a, &of_a) == strip_numbers(b, &of_b) && !__builtin_sub_overflow(of_a, of_b, distance);
}

/* Have the two accesses no index of this dimension in common: other integers, or ranges that pass each other? */
static bool are_apart(const TileAccessIndex *a, const TileAccessIndex *b) {
    int64_t distance, step, other;
    if (a->kind != b->kind || a->kind == TILE_ACCESS_GATHER || !find_distance(a->first, b->first, &distance)) return false;
    if (a->kind == TILE_ACCESS_INDEX) return distance != 0;
    bool known = tile_value_integer(a->step, &step) && tile_value_integer(b->step, &other) && step == other;
    return known && step > 1 && step <= LONGEST_STEP && distance % step != 0;
}

bool nest_stores_are_apart(const TileOp *a, const TileOp *b) {
    TileAccessIndex of_a[TILE_MAX_TENSOR_RANK], of_b[TILE_MAX_TENSOR_RANK];
    if (tile_op_operand(a, 0) != tile_op_operand(b, 0)) return false;
    unsigned rank = tile_access_read(a, of_a);
    tile_access_read(b, of_b);
    for (unsigned d = 0; d < rank; d++)
        if (are_apart(&of_a[d], &of_b[d])) return true;
    return false;
}

static uint32_t position_of(const Nest *n, const TileOp *op) {
    return ((const NestSpan *)tile_map_get(&n->spans, op))->first;
}

/* Is the tensor written after the position `first` and before `last`? */
static bool is_written(const NestWrites *writes, uint32_t first, uint32_t last) {
    size_t low = 0, high = writes->positions.count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (writes->positions.items[middle] > first)
            high = middle;
        else
            low = middle + 1;
    }
    return low < writes->positions.count && writes->positions.items[low] < last;
}

static bool writes_between(Nest *n, const TileValue *tensor, uint32_t first, uint32_t last) {
    for (size_t i = 0; i < n->writes.count; i++)
        if (is_written(&n->writes.items[i], first, last) && nest_tensors_overlap(n, tensor, n->writes.items[i].tensor))
            return true;
    return false;
}

bool nest_is_clobbered(Nest *n, const TileValue *load, const TileOp *at) {
    const TileValue *tensor = tile_op_operand(load->op, 0);
    if (writes_between(n, tensor, nest_info(n, load)->position, position_of(n, at))) return true;
    for (const TileBlock *block = at->block; block != load->op->block && block->op; block = block->op->block) {
        const NestSpan *span = tile_map_get(&n->spans, block->op);
        bool repeats = block->op->id == TILE_OP_FOR || block->op->id == TILE_OP_WHILE;
        if (repeats && writes_between(n, tensor, span->first, span->last + 1)) return true;
    }
    return false;
}
