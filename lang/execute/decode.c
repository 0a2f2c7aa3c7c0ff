/* Decoding: properties of an op that are the same in every execution are computed once. */
#include <string.h>

#include "lang/execute/state.h"
#include "lang/scalar/scalar.h"

typedef struct Decoder {
    TileExecutor *e;
    ExecProgram *program;
    uint32_t grids;
    bool combiner; /* inside a combiner: values have a lane for each of TILE_FOLD_BLOCK applications */
} Decoder;

static uint32_t lanes_of(const TileExecutor *e, const TileType *type) {
    if (type->kind == TILE_TYPE_POINTER) return 2;
    if (type->kind == TILE_TYPE_CHANNEL) return 1; /* the number of its object */
    int64_t lanes = tile_type_lanes(type);
    if (type->scalable) lanes *= e->options.vector_scale;
    return (uint32_t)lanes;
}

static uint32_t register_lanes(const Decoder *d, const TileType *type) {
    return d->combiner ? TILE_FOLD_BLOCK : lanes_of(d->e, type);
}

/* ---- maps from lanes of the result to lanes of operands ---- */

/* Lane index[..] of a tile of these extents is the operand's lane at + sum(index[i] * stride[i]). */
static const uint32_t *strided_map(Decoder *d, unsigned rank, const int64_t *extent, const int64_t *stride,
                                   int64_t at) {
    size_t lanes = 1, next = 0;
    for (unsigned i = 0; i < rank; i++) lanes *= (size_t)extent[i];
    uint32_t *map = TILE_NEW_ARRAY(d->e->arena, uint32_t, lanes);
    int64_t index[TILE_MAX_TILE_RANK] = {0};
    while (next < lanes) {
        map[next++] = (uint32_t)at;
        for (unsigned i = rank; i-- > 0;) {
            at += stride[i];
            if (++index[i] < extent[i]) break;
            at -= extent[i] * stride[i];
            index[i] = 0;
        }
    }
    return map;
}

static void row_major(const TileType *type, int64_t *stride) {
    int64_t next = 1;
    for (unsigned i = type->rank; i-- > 0;) {
        stride[i] = next;
        next *= type->extent[i];
    }
}

/* Rows of x and y alternately: a row consists of the concatenated axis and those behind it. */
static const uint32_t *cat_map(Decoder *d, const TileOp *op) {
    const TileType *x = op->operands[0].value->type, *y = op->operands[1].value->type;
    int64_t axis = tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0), row[2] = {x->extent[axis], y->extent[axis]};
    for (unsigned i = (unsigned)axis + 1; i < x->rank; i++)
        for (unsigned k = 0; k < 2; k++) row[k] *= x->extent[i];
    uint32_t lanes = lanes_of(d->e, op->results[0].type), first = lanes_of(d->e, x);
    uint32_t *map = TILE_NEW_ARRAY(d->e->arena, uint32_t, lanes);
    for (uint32_t i = 0; i < lanes; i++) {
        int64_t number = i / (row[0] + row[1]), at = i % (row[0] + row[1]);
        map[i] = (uint32_t)(at < row[0] ? number * row[0] + at : first + number * row[1] + at - row[0]);
    }
    return map;
}

static const uint32_t *slice_map(Decoder *d, const TileOp *op) {
    const TileType *to = op->results[0].type;
    int64_t stride[TILE_MAX_TILE_RANK] = {0}, offset = tile_op_integer(op, TILE_ATTRIBUTE_OFFSET, 0);
    row_major(op->operands[0].value->type, stride);
    return strided_map(d, to->rank, to->extent, stride, offset * stride[tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0)]);
}

static const uint32_t *flip_map(Decoder *d, const TileOp *op) {
    const TileType *to = op->results[0].type;
    int64_t stride[TILE_MAX_TILE_RANK] = {0}, axis = tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0);
    row_major(to, stride);
    int64_t last = (to->extent[axis] - 1) * stride[axis];
    stride[axis] = -stride[axis];
    return strided_map(d, to->rank, to->extent, stride, last);
}

static const uint32_t *make_map(Decoder *d, const TileOp *op) {
    const TileType *from = op->operands[0].value->type, *to = op->results[0].type;
    const TileAttribute *axes = tile_op_get(op, TILE_ATTRIBUTE_AXES);
    int64_t own[TILE_MAX_TILE_RANK] = {0}, stride[TILE_MAX_TILE_RANK] = {0};
    if (op->id == TILE_OP_CAT) return cat_map(d, op);
    if (op->id == TILE_OP_SLICE) return slice_map(d, op);
    if (op->id == TILE_OP_FLIP) return flip_map(d, op);
    if (op->id == TILE_OP_BROADCAST || op->id == TILE_OP_PERMUTE) {
        row_major(from, own);
        for (unsigned i = 0; i < to->rank; i++)
            stride[i] = op->id == TILE_OP_PERMUTE ? own[axes->integers[i]] : from->extent[i] == 1 ? 0 : own[i];
        return strided_map(d, to->rank, to->extent, stride, 0);
    }
    uint32_t lanes = lanes_of(d->e, to), *map = TILE_NEW_ARRAY(d->e->arena, uint32_t, lanes);
    for (uint32_t i = 0; i < lanes; i++) {
        if (op->id == TILE_OP_SHUFFLE)
            map[i] = (uint32_t)axes->integers[i];
        else
            map[i] = op->id == TILE_OP_EXTRACT ? (uint32_t)tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0) : i;
    }
    return map;
}

/* ---- handlers ---- */

static const ExecHandler handlers[TILE_OP_COUNT] = {
#define EXECUTE(id, function) [TILE_OP_##id] = tile_exec_##function,
#include "lang/execute/execute.def"
#undef EXECUTE
};

static bool is_constant(TileOpId id) { return id == TILE_OP_CONST || id == TILE_OP_IOTA || id == TILE_OP_VSCALE; }

bool tile_executor_knows(TileOpId id) {
    return handlers[id] || is_constant(id) || tile_op_info(id)->class == TILE_CLASS_ELEMENTWISE;
}

static bool refuse(TileExecutor *e, const ExecInstruction *in) {
    return tile_exec_fault(e, in, "the executor does not know this operation");
}

static ExecHandler handler_of(TileOpId id) {
    if (!tile_executor_knows(id)) return refuse;
    return handlers[id] ? handlers[id] : tile_exec_elementwise;
}

/* ---- instructions ---- */

static uint32_t add_register(Decoder *d, uint64_t lanes) {
    ExecProgram *program = d->program;
    program->registers[program->register_count] = (ExecRegister){program->lane_count, (uint32_t)lanes};
    program->lane_count += lanes;
    return program->register_count++;
}

/* A yield that reads an operand which it overwrites as an argument of the region: all operands are read first. */
static bool overwrites_what_it_reads(const TileOp *op) {
    const TileBlock *block = op->block;
    if (!block->op) return false;
    for (unsigned i = 0; i < op->operand_count; i++)
        for (unsigned r = 0; r < block->op->region_count; r++)
            if (op->operands[i].value->block == &block->op->regions[r]) return true;
    return false;
}

static void find_parts(ExecInstruction *in) {
    const TileAttribute *parts = tile_op_get(in->op, TILE_ATTRIBUTE_PARTS);
    int next = (int)(in->operand_count - (parts ? parts->count : 0));
    in->mask = in->fill = -1;
    for (unsigned i = 0; parts && i < parts->count; i++) {
        if (parts->integers[i] == TILE_PARTS_MASK)
            in->mask = next++;
        else
            in->fill = next++;
    }
}

/* What the mask of an access depends on. An op that makes a mask runs under none: what it masks does, and other ops choose by it, as by any comparison. */
static ExecMask reason_of(Decoder *d, const ExecInstruction *in) {
    const TileOp *op = in->op;
    return in->mask < 0 ? EXEC_MASK_NONE : tile_exec_mask_of(d->e, op, op->operands[in->mask].value);
}

/* Registers for an op's own state: the object of a buffer, the accumulators of a reduction loop; of a fold_loop, the
 * values of its points and, after those, their results. */
static void add_hidden(Decoder *d, ExecInstruction *in) {
    const TileOp *op = in->op;
    if (op->id == TILE_OP_FOLD_LOOP)
        in->hidden = add_register(d, (uint64_t)(op->regions[1].argument_count + 1) *
                                         (uint64_t)tile_op_integer(op, TILE_ATTRIBUTE_EXTENT, 0));
    if (op->id == TILE_OP_BUFFER || op->id == TILE_OP_CHANNEL) in->hidden = add_register(d, 1);
    if (op->id != TILE_OP_LOOP) return;
    in->stripes = tile_op_integer(op, TILE_ATTRIBUTE_ORDER, TILE_ORDER_SERIAL) == TILE_ORDER_STRIPES;
    in->hidden = add_register(d, (uint64_t)op->result_count * (in->stripes ? TILE_STRIPES : 1));
}

static void decode_types(ExecInstruction *in) {
    const TileOp *op = in->op;
    if (!op->operand_count || !op->result_count) return;
    in->from = tile_eval_operand_type(op);
    in->to = op->results[0].type->scalar;
    if (op->id == TILE_OP_REDUCE)
        in->loop =
            tile_eval_loop(tile_eval_combiner(tile_op_integer(op, TILE_ATTRIBUTE_KIND, 0)), in->from, in->to, false);
    else if (tile_op_info(op->id)->class == TILE_CLASS_ELEMENTWISE)
        in->loop = tile_eval_loop(op->id, in->from, in->to, tile_op_integer(op, TILE_ATTRIBUTE_APPROX, 0) != 0);
}

static void decode_block(Decoder *d, TileBlock *block, ExecCode *code);

static void decode_op(Decoder *d, TileOp *op, ExecInstruction *in) {
    *in = (ExecInstruction){.run = handler_of(op->id), .op = op, .operand_count = op->operand_count};
    in->operands = TILE_NEW_ARRAY(d->e->arena, uint32_t, op->operand_count);
    for (unsigned i = 0; i < op->operand_count; i++) in->operands[i] = op->operands[i].value->number;
    if (op->result_count) {
        in->result = op->results[0].number;
        in->lanes = register_lanes(d, op->results[0].type);
    }
    if (in->run == tile_exec_map) in->map = make_map(d, op);
    in->staged = (op->id == TILE_OP_YIELD || op->id == TILE_OP_CONDITION) && overwrites_what_it_reads(op);
    in->align = tile_op_integer(op, TILE_ATTRIBUTE_ALIGN, 1);
    if (in->align < 1) in->align = 1;
    if (op->id == TILE_OP_GRID) in->number = d->grids++;
    find_parts(in);
    if (d->e->options.masked) in->reason = reason_of(d, in);
    add_hidden(d, in);
    decode_types(in);
    in->regions = TILE_NEW_ARRAY(d->e->arena, ExecCode, op->region_count);
    for (unsigned i = 0; i < op->region_count; i++) {
        d->combiner = &op->regions[i] == tile_op_combiner(op);
        decode_block(d, &op->regions[i], &in->regions[i]);
        d->combiner = false;
    }
}

static void decode_block(Decoder *d, TileBlock *block, ExecCode *code) {
    uint32_t count = 0;
    for (TileOp *op = block->first; op; op = op->next) count += !is_constant(op->id);
    code->items = TILE_NEW_ARRAY(d->e->arena, ExecInstruction, count);
    code->argument_count = block->argument_count;
    code->first_argument = block->argument_count ? block->arguments[0]->number : 0;
    for (TileOp *op = block->first; op; op = op->next) {
        if (is_constant(op->id))
            tile_list_push(d->e->arena, &d->program->constants, op);
        else
            decode_op(d, op, &code->items[code->count++]);
    }
}

static uint32_t count_hidden(const TileBlock *block) {
    uint32_t count = 0;
    for (const TileOp *op = block->first; op; op = op->next) {
        count += op->id == TILE_OP_BUFFER || op->id == TILE_OP_CHANNEL || op->id == TILE_OP_LOOP ||
                 op->id == TILE_OP_FOLD_LOOP;
        for (unsigned i = 0; i < op->region_count; i++) count += count_hidden(&op->regions[i]);
    }
    return count;
}

static void add_value(Decoder *d, const TileValue *value) { add_register(d, register_lanes(d, value->type)); }

/* In the order of tile_func_number. */
static void add_values(Decoder *d, const TileBlock *block) {
    for (uint32_t i = 0; i < block->argument_count; i++) add_value(d, block->arguments[i]);
    for (const TileOp *op = block->first; op; op = op->next) {
        for (unsigned i = 0; i < op->result_count; i++) add_value(d, &op->results[i]);
        for (unsigned i = 0; i < op->region_count; i++) {
            d->combiner = &op->regions[i] == tile_op_combiner(op);
            add_values(d, &op->regions[i]);
            d->combiner = false;
        }
    }
}

static void find_products(TileOp *op, void *state) {
    bool *found = state;
    *found |= op->id == TILE_OP_WGMMA;
}

ExecProgram *tile_exec_decode(TileExecutor *e, TileFunc *func) {
    for (ExecProgram *program = e->programs; program; program = program->next)
        if (program->func == func) return program;
    ExecProgram *program = TILE_NEW(e->arena, ExecProgram);
    *program = (ExecProgram){.func = func, .next = e->programs, .vector_scale = e->options.vector_scale};
    e->programs = program;
    Decoder d = {.e = e, .program = program};
    tile_block_walk(&func->body, find_products, &program->times_registers);
    uint32_t values = tile_func_number(func);
    program->registers = TILE_NEW_ARRAY(e->arena, ExecRegister, values + count_hidden(&func->body));
    add_values(&d, &func->body);
    decode_block(&d, &func->body, &program->body);
    return program;
}
