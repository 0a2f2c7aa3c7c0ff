/* Grids run as phase functions (see docs/adr/0003-phases-and-slots.md), in either form: each range of programs is a
 * call, whose arguments are computed from the kernel's. */
#include "lang/execute/state.h"
#include "lang/ir/operands.h"
#include "lang/ir/tensor_map.h"

bool tile_exec_start_phases(TileExecutor *e, const ExecInstruction *in, int64_t programs) {
    const ExecFrame *outer = tile_exec_frame(e);
    return tile_exec_push(
               e, &(ExecFrame){
                      .activation = outer->activation, .owner = in, .active = outer->active, .end = programs}) != NULL;
}

typedef struct Binder {
    TileExecutor *e;
    const ExecInstruction *grid;
    ExecActivation *phase;
    uint32_t next; /* the parameter of the phase */
    bool failed;
} Binder;

/* The register of the next parameter, if it has this kind of type. */
static bool next_parameter(Binder *b, TileTypeKind kind, ExecValue *value) {
    const TileFunc *func = b->phase->program->func;
    if (b->failed) return false;
    if (b->next >= func->body.argument_count || func->body.arguments[b->next]->type->kind != kind) {
        b->failed = true;
        return tile_exec_fault(b->e, b->grid, "parameter %u of %s is not what it has to be", b->next, func->name);
    }
    *value = tile_exec_register(b->phase, b->phase->program->body.first_argument + b->next++);
    return true;
}

/* Checks the facts that the phase relies on. */
static void bind_integer(Binder *b, int64_t integer) {
    ExecValue value;
    if (!next_parameter(b, TILE_TYPE_SCALAR, &value)) return;
    tile_exec_set_scalar(value, (uint64_t)integer);
    const TileParameter *parameter = &b->phase->program->func->parameters[b->next - 1];
    for (uint32_t divisor = 2; divisor && divisor <= parameter->used_multiple; divisor *= 2) {
        if (!(parameter->used_multiple & divisor) || integer % divisor == 0) continue;
        b->failed = true;
        tile_exec_fault(b->e, b->grid, "%s is %lld where the function assumes a multiple of %u", parameter->name,
                        (long long)integer, divisor);
        return;
    }
}

static void bind_pointer(Binder *b, uint32_t object, int64_t offset) {
    ExecValue value;
    if (!next_parameter(b, TILE_TYPE_POINTER, &value)) return;
    value.lanes[0] = object;
    value.lanes[1] = (uint64_t)offset;
    *value.any = 0;
}

/* A tensor parameter in tile form; pointer, extents and strides in machine form. */
static void bind_tensor(Binder *b, uint32_t number, unsigned rank) {
    const TileFunc *func = b->phase->program->func;
    ExecValue value;
    if (b->next < func->body.argument_count && func->body.arguments[b->next]->type->kind == TILE_TYPE_TENSOR) {
        if (next_parameter(b, TILE_TYPE_TENSOR, &value)) tile_exec_set_scalar(value, number);
        return;
    }
    const ExecTensor *tensor = &b->e->tensors[number];
    bind_pointer(b, tensor->object, tensor->offset);
    for (unsigned d = 0; d < rank; d++) bind_integer(b, tensor->extent[d]);
    for (unsigned d = 0; d < rank; d++) bind_integer(b, tensor->stride[d]);
}

/* A temp that is created after the grid has no memory yet: it is not bound. */
static void bind_temps(Binder *b, const TileFunc *kernel) {
    bool after = false;
    for (const TileOp *op = kernel->body.first; op && !b->failed; op = op->next) {
        after |= op == b->grid->op;
        if (op->id != TILE_OP_TEMP) continue;
        uint32_t number = (uint32_t)tile_exec_value(b->e, op->results[0].number).lanes[0];
        ExecTensor nothing = {0};
        if (after && (!tile_exec_add_object(b->e, &(ExecObject){.dead = true}, &nothing.object) ||
                      !tile_exec_add_tensor(b->e, &nothing, &number))) {
            b->failed = true;
            return;
        }
        bind_tensor(b, number, op->results[0].type->rank);
    }
}

/* Launchers make a map from the same words: the address, extents and strides of its tensor. */
static void bind_map(Binder *b) {
    const TileFunc *func = b->phase->program->func;
    uint32_t data, index = b->next;
    int64_t numbers[2 * TILE_MAP_MOST_RANK];
    const TileParameter *parameter = &func->parameters[index];
    const TileType *tensor = tile_func_argument_type(func, parameter->argument);
    if (!tensor || !tile_func_map_tensor(func, index, &data)) {
        b->failed = true;
        tile_exec_fault(b->e, b->grid, "%s is a map of no tensor", parameter->name);
        return;
    }
    uint32_t first = b->phase->program->body.first_argument + data, rank = parameter->map.rank;
    ExecValue address = tile_exec_register(b->phase, first);
    for (uint32_t i = 0; i < 2 * rank; i++) numbers[i] = (int64_t)tile_exec_register(b->phase, first + 1 + i).lanes[0];
    const unsigned char *base = b->e->objects[address.lanes[0]].base;
    bind_pointer(b, (uint32_t)address.lanes[0], (int64_t)address.lanes[1]);
    unsigned bytes = (unsigned)tile_scalar_bytes(tensor->scalar);
    if (b->failed || tile_map_fits((uintptr_t)base + address.lanes[1], rank, bytes, numbers, numbers + rank)) return;
    b->failed = true;
    tile_exec_fault(b->e, b->grid, "no tensor map describes %s", func->parameters[data].name);
}

static void bind_parameters(Binder *b, int64_t begin, int64_t end) {
    const TileFunc *kernel = b->e->func, *func = b->phase->program->func;
    for (uint32_t i = 0; i < kernel->body.argument_count && !b->failed; i++) {
        ExecValue from = tile_exec_register(b->e->root, b->e->root->program->body.first_argument + i), to;
        const TileType *type = kernel->body.arguments[i]->type;
        if (type->kind == TILE_TYPE_TENSOR)
            bind_tensor(b, (uint32_t)from.lanes[0], type->rank);
        else if (next_parameter(b, TILE_TYPE_SCALAR, &to))
            tile_exec_copy(from, to);
    }
    bind_temps(b, kernel);
    bind_integer(b, begin);
    bind_integer(b, end);
    while (!b->failed && b->next < func->body.argument_count && func->parameters[b->next].role == TILE_ROLE_MAP)
        bind_map(b);
    if (b->failed || b->next == func->body.argument_count) return;
    uint32_t scratch;
    if (func->threads) return; /* each block has its own */
    if (tile_exec_allocate(b->e, func->scratch_bytes, 64, true, &scratch))
        bind_pointer(b, scratch, 0);
    else
        b->failed = true;
    if (!b->failed && b->next != func->body.argument_count)
        b->failed = !tile_exec_fault(b->e, b->grid, "%s has too many parameters", func->name);
}

/* The row of a program among all rows, and its column, in an explicit order: that of the full grid, or, with `multicast`, of any
 * range, with so many rows together. */
static void order_place(const TileOp *op, int64_t rows, int64_t most, int64_t blocks, int64_t columns, int64_t *row, int64_t *column) {
    TileName order = (TileName)tile_op_integer(op, TILE_ATTRIBUTE_PROGRAMS, 0);
    int64_t end = rows * columns, program = *row * columns + *column;
    int64_t round = blocks ? program / blocks : 0, first_of_round = round * blocks;
    if (round % 2) program = first_of_round + (end - first_of_round < blocks ? end : first_of_round + blocks) - 1 - program;
    if (order == TILE_PROGRAMS_COLUMNS) {
        *column = program / rows;
        *row = program % rows;
        return;
    }
    int64_t first = program / columns / most * most, size = rows - first;
    if (size > most) size = most;
    int64_t within = program - first * columns;
    *row = first + within % size;
    *column = order == TILE_PROGRAMS_GROUPS ? within / size : columns - 1 - within / size;
}

/* The number along the last axis of the program in this row and column. */
static bool apply_order(TileExecutor *e, const ExecInstruction *in, int64_t columns, int64_t *row, int64_t *column) {
    const TileAttribute *order = tile_op_get(in->op, TILE_ATTRIBUTE_PROGRAMS);
    unsigned range = 1u + in->op->result_count;
    int64_t begin, end, blocks = 0, rows = 1, extent;
    bool folds = tile_op_named(in->op, TILE_OPERAND_BLOCKS) != NULL;
    if (!order) return true;
    if (!tile_exec_integer(e, in, range, "the range", &begin) || !tile_exec_integer(e, in, range + 1, "the range", &end))
        return false;
    if (folds && !tile_exec_integer(e, in, range + 2, "the blocks", &blocks)) return false;
    for (unsigned i = 0; i + 1u < in->op->result_count; i++) {
        if (!tile_exec_integer(e, in, 1 + i, "an extent", &extent)) return false;
        rows *= extent;
    }
    int64_t together = tile_op_integer(in->op, TILE_ATTRIBUTE_TOGETHER, TILE_PROGRAM_ROWS);
    if (begin || end != rows * columns) together = tile_op_integer(in->op, TILE_ATTRIBUTE_MULTICAST, 0);
    if (together) order_place(in->op, rows, together, blocks, columns, row, column);
    return true;
}

bool tile_exec_program_id(TileExecutor *e, const ExecInstruction *in) {
    int64_t rest, extent;
    if (!tile_exec_integer(e, in, 0, "the program", &rest)) return false;
    for (unsigned i = in->op->result_count; i-- > 1;) {
        if (!tile_exec_integer(e, in, 1 + i, "an extent", &extent)) return false;
        if (rest < 0 || extent <= 0) return tile_exec_fault(e, in, "there is no such program");
        int64_t number = rest % extent;
        rest /= extent;
        if (i + 1u == in->op->result_count && !apply_order(e, in, extent, &rest, &number)) return false;
        tile_exec_set_scalar(tile_exec_value(e, in->result + i), (uint64_t)number);
    }
    tile_exec_set_scalar(tile_exec_value(e, in->result), (uint64_t)rest);
    return true;
}

/* The end of the range that begins at `begin`. */
static int64_t range_end(TileExecutor *e, const TileFunc *func, int64_t begin, int64_t programs) {
    int64_t chunks = e->options.chunks && !func->threads ? e->options.chunks : 1, size = programs / chunks + (programs % chunks != 0);
    if (e->options.seed && chunks > 1) size = 1 + (int64_t)(tile_exec_random(e) % (uint64_t)(2 * size));
    return size < programs - begin ? begin + size : programs;
}

/* A launch has a block for each program. One whose blocks take several programs has as many blocks as run at a time: half of the programs
 * here; with a seed, any number. Clusters are whole. */
static int64_t block_count(TileExecutor *e, const TileFunc *func, int64_t programs) {
    int64_t count = programs, cluster = func->cluster > 1 ? func->cluster : 1;
    if (func->resident) count = e->options.seed ? 1 + (int64_t)(tile_exec_random(e) % (uint64_t)programs) : (programs + 1) / 2;
    return (count + cluster - 1) / cluster * cluster;
}

bool tile_exec_next_phase(TileExecutor *e) {
    ExecFrame *frame = tile_exec_frame(e);
    const ExecInstruction *grid = frame->owner;
    TileFunc *func = tile_func_phase(e->func, grid->number);
    if (frame->index < frame->end && !func)
        return tile_exec_fault(e, grid, "there is no phase %u of %s", grid->number, e->func->name);
    int64_t count = frame->end * (func && func->bands ? func->bands : 1);
    if (frame->index >= count) {
        e->depth--;
        return true;
    }
    int64_t begin = frame->index, end = range_end(e, func, begin, count);
    frame->index = end;
    ExecActivation *phase = tile_exec_activate(e, tile_exec_decode(e, func));
    if (!phase) return false;
    Binder binder = {.e = e, .grid = grid, .phase = phase};
    bind_parameters(&binder, begin, end);
    if (!binder.failed && func->threads && func->form == TILE_FORM_MACHINE) { /* else tiles are complete, for one
                                                                               * thread */
        bool done = tile_exec_blocks(e, grid, phase, block_count(e, func, end - begin));
        tile_exec_deactivate(e, phase);
        return done;
    }
    e->block_count = 1;
    if (!binder.failed &&
        tile_exec_push(e, &(ExecFrame){.activation = phase, .code = &phase->program->body, .active = frame->active}))
        return true;
    tile_exec_deactivate(e, phase);
    return false;
}
