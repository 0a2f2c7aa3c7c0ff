/* Integers of a function, as far as they follow from the extents of its tensors and constants. */
#include "ptx/model/numbers.h"

#include "lang/ir/eval.h"

static bool is_integer(const TileValue *value) {
    return tile_type_is_scalar(value->type) && tile_scalar_is_int(value->type->scalar);
}

/* Integers that the kernel is called with. What a grid has is what its kernel was given. */
static void set_arguments(GpuNumbers *numbers) {
    const TileFunc *func = numbers->func;
    bool phase = func->kind == TILE_FUNC_PHASE;
    for (uint32_t i = 0; i < func->body.argument_count; i++) {
        const TileParameter *parameter = &func->parameters[i];
        uint32_t argument = phase ? parameter->argument : i;
        bool given = is_integer(func->body.arguments[i]) && (!phase || parameter->role == TILE_ROLE_SCALAR) && argument < numbers->extents->count;
        if (given && numbers->extents->is_number[argument])
            gpu_number_set(numbers, func->body.arguments[i], numbers->extents->extent[argument][0]);
        else if (given && !phase)
            gpu_number_set(numbers, func->body.arguments[i], GPU_UNKNOWN_LENGTH);
    }
}

GpuNumbers gpu_numbers_create(TileFunc *func, const TileExtents *extents, TileArena *scratch) {
    uint32_t count = tile_func_number(func);
    GpuNumbers numbers = {.func = func,
                        .extents = extents,
                        .values = TILE_NEW_ARRAY(scratch, int64_t, count + 1),
                        .known = TILE_NEW_ARRAY(scratch, bool, count + 1),
                        .parts = TILE_NEW_ARRAY(scratch, int64_t, count + 1),
                        .sources = TILE_NEW_ARRAY(scratch, uint64_t, count + 1)};
    set_arguments(&numbers);
    return numbers;
}

void gpu_number_set(GpuNumbers *numbers, const TileValue *value, int64_t number) {
    numbers->values[value->number] = number;
    numbers->known[value->number] = true;
}

bool gpu_number_get(const GpuNumbers *numbers, const TileValue *value, int64_t *number) {
    if (!value || !numbers->known[value->number]) return false;
    *number = numbers->values[value->number];
    return true;
}

int64_t gpu_number_or(const GpuNumbers *numbers, const TileValue *value, int64_t otherwise) {
    int64_t number;
    return gpu_number_get(numbers, value, &number) ? number : otherwise;
}

bool gpu_number_length(const GpuNumbers *numbers, const TileValue *lo, const TileValue *hi, int64_t *length) {
    int64_t from, to, parts = numbers->parts[hi->number];
    if (!gpu_number_get(numbers, lo, &from) || !gpu_number_get(numbers, hi, &to)) return false;
    uint64_t first = numbers->sources[lo->number], last = numbers->sources[hi->number];
    bool segment = first && last && (first != last || (first & (first - 1)));
    *length = segment && parts < 1 ? 0 : segment ? (to + parts - 1) / parts : to - from; /* of no segments, none has a length */
    return true;
}

/* The argument that is the tensor; false: it is none. */
static bool find_argument(const GpuNumbers *numbers, const TileValue *tensor, uint32_t *argument) {
    if (tensor->block != &numbers->func->body) return false;
    bool phase = numbers->func->kind == TILE_FUNC_PHASE;
    *argument = phase ? numbers->func->parameters[tensor->index].argument : tensor->index;
    return *argument < numbers->extents->count;
}

static bool find_extent(const GpuNumbers *numbers, const TileOp *dim, int64_t *extent) {
    uint32_t argument;
    uint64_t axis = (uint64_t)tile_op_integer(dim, TILE_ATTRIBUTE_AXIS, 0);
    if (!find_argument(numbers, tile_op_operand(dim, 0), &argument) || axis >= numbers->extents->rank[argument]) return false;
    *extent = numbers->extents->extent[argument][axis];
    return true;
}

/* The rows of the grid one after the other; orders of programs change which run together, not what there is to do. */
static void split_program(GpuNumbers *numbers, const TileOp *op) {
    int64_t program;
    if (!gpu_number_get(numbers, tile_op_named(op, TILE_OPERAND_PROGRAM), &program)) return;
    for (unsigned i = op->result_count; i-- > 0;) {
        int64_t extent;
        if (!gpu_number_get(numbers, tile_op_named_at(op, TILE_OPERAND_EXTENTS, i), &extent) || extent < 1) return;
        gpu_number_set(numbers, &op->results[i], program % extent);
        program /= extent;
    }
}

/* What is known to be at most a number is taken to be that: lengths that tensors hold fill what they may. */
static void take_bound(GpuNumbers *numbers, const TileOp *op) {
    int64_t bound;
    bool integer = op->results[0].type->kind == TILE_TYPE_SCALAR && op->results[0].type->scalar == TILE_I64;
    for (unsigned i = 0; i < 2 && integer; i++)
        if (gpu_number_get(numbers, tile_op_operand(op, i), &bound)) gpu_number_set(numbers, &op->results[0], bound);
}

/* How numbers of several loads compare does not follow from their bounds. */
static bool compares_data(const GpuNumbers *numbers, const TileOp *op) {
    if (op->results[0].type->scalar != TILE_BOOL || op->operand_count != 2) return false;
    uint64_t x = numbers->sources[tile_op_operand(op, 0)->number], y = numbers->sources[tile_op_operand(op, 1)->number];
    return x && y && (x != y || (x & (x - 1)));
}

static void find_parts(GpuNumbers *numbers, const TileOp *op) {
    int64_t parts = 0;
    uint32_t argument;
    bool loads = op->id == TILE_OP_LOAD_TILE;
    if (!op->result_count || !tile_type_is_scalar(op->results[0].type)) return;
    uint64_t sources = loads ? UINT64_C(1) << op->results[0].number % 64 : 0;
    if (loads) parts = 1;
    if (loads && find_argument(numbers, tile_op_operand(op, 0), &argument))
        for (uint32_t i = 0; i < numbers->extents->rank[argument]; i++) parts *= numbers->extents->extent[argument][i];
    for (unsigned i = 0; i < op->operand_count && !loads; i++) {
        int64_t other = numbers->parts[tile_op_operand(op, i)->number];
        if (other > parts) parts = other;
        sources |= numbers->sources[tile_op_operand(op, i)->number];
    }
    numbers->parts[op->results[0].number] = parts;
    numbers->sources[op->results[0].number] = sources;
}

static void compute(GpuNumbers *numbers, const TileOp *op) {
    uint64_t operands[TILE_EVAL_MOST_OPERANDS], result;
    const TileType *type = op->results[0].type;
    if (op->operand_count > TILE_EVAL_MOST_OPERANDS || type->kind != TILE_TYPE_SCALAR || compares_data(numbers, op)) return;
    for (unsigned i = 0; i < op->operand_count; i++) {
        int64_t number;
        if (!gpu_number_get(numbers, tile_op_operand(op, i), &number)) {
            if (op->id == TILE_OP_MIN) take_bound(numbers, op);
            return;
        }
        operands[i] = (uint64_t)number;
    }
    if (tile_eval((TileOpId)op->id, tile_eval_operand_type(op), type->scalar, operands, &result))
        gpu_number_set(numbers, &op->results[0], (int64_t)result);
}

/* What the branch gives that is taken. */
static void take_branch(GpuNumbers *numbers, const TileOp *op) {
    int64_t condition, number;
    if (!op->result_count || !gpu_number_get(numbers, tile_op_operand(op, 0), &condition)) return;
    const TileBlock *taken = &op->regions[(condition & 1) == 0];
    for (const TileOp *inner = taken->first; inner; inner = inner->next) gpu_number_op(numbers, inner);
    for (unsigned i = 0; i < op->result_count; i++)
        if (gpu_number_get(numbers, tile_op_operand(taken->last, i), &number)) gpu_number_set(numbers, &op->results[i], number);
}

void gpu_number_op(GpuNumbers *numbers, const TileOp *op) {
    int64_t extent;
    bool elementwise = op->result_count && tile_op_info((TileOpId)op->id)->class == TILE_CLASS_ELEMENTWISE;
    if (elementwise || op->id == TILE_OP_LOAD_TILE) find_parts(numbers, op);
    if (elementwise) compute(numbers, op);
    if (op->id == TILE_OP_CONST && op->results[0].type->kind == TILE_TYPE_SCALAR)
        gpu_number_set(numbers, &op->results[0], (int64_t)tile_op_get(op, TILE_ATTRIBUTE_VALUE)->bits);
    if (op->id == TILE_OP_DIM && find_extent(numbers, op, &extent)) gpu_number_set(numbers, &op->results[0], extent);
    if (op->id == TILE_OP_PROGRAM_ID) split_program(numbers, op);
    if (op->id == TILE_OP_IF) take_branch(numbers, op);
}

/* ---- shares of iterations ---- */

enum { MOST_LOOPS = 3, MOST_TRIPS = 16, DEEPEST = 16 };

/* Loops around a branch with few iterations, the innermost first, and the numbers that they are at. */
typedef struct Window {
    const TileOp *loops[MOST_LOOPS];
    int64_t lo[MOST_LOOPS], step[MOST_LOOPS], trips[MOST_LOOPS], at[MOST_LOOPS];
    unsigned count;
} Window;

static Window find_window(const GpuNumbers *numbers, const TileOp *branch) {
    Window window = {.count = 0};
    for (const TileOp *op = branch->block->op; op && window.count < MOST_LOOPS; op = op->block->op) {
        int64_t lo, hi, step;
        bool known = op->id == TILE_OP_FOR && !tile_loop_is_of_programs(op) && gpu_number_get(numbers, tile_op_operand(op, 0), &lo) &&
                     gpu_number_get(numbers, tile_op_operand(op, 1), &hi) && gpu_number_get(numbers, tile_op_named(op, TILE_OPERAND_STEP), &step);
        if (!known || step < 1 || hi <= lo || (hi - lo + step - 1) / step > MOST_TRIPS) continue;
        unsigned i = window.count++;
        window.loops[i] = op;
        window.lo[i] = lo, window.step[i] = step, window.trips[i] = (hi - lo + step - 1) / step;
    }
    return window;
}

/* The value in that iteration; false: it does not follow from the numbers. */
static bool value_at(const GpuNumbers *numbers, const Window *window, const TileValue *value, unsigned depth, uint64_t *result) {
    const TileOp *op = value->op;
    int64_t number;
    for (unsigned i = 0; i < window->count; i++)
        if (window->loops[i]->regions[0].arguments[0] == value) return *result = (uint64_t)window->at[i], true;
    uint64_t operands[TILE_EVAL_MOST_OPERANDS];
    bool computed = op && tile_op_info((TileOpId)op->id)->class == TILE_CLASS_ELEMENTWISE && op->operand_count <= TILE_EVAL_MOST_OPERANDS;
    if (!window->count || !computed || tile_value_outside(value, window->loops[window->count - 1]))
        return gpu_number_get(numbers, value, &number) ? (*result = (uint64_t)number, true) : false;
    for (unsigned i = 0; i < op->operand_count; i++)
        if (depth == DEEPEST || !value_at(numbers, window, tile_op_operand(op, i), depth + 1, &operands[i])) return false;
    return tile_eval((TileOpId)op->id, tile_eval_operand_type(op), value->type->scalar, operands, result);
}

static bool next_iteration(Window *window, int64_t *number) {
    for (unsigned i = 0; i < window->count; i++) {
        bool more = ++number[i] < window->trips[i];
        if (!more) number[i] = 0;
        window->at[i] = window->lo[i] + number[i] * window->step[i];
        if (more) return true;
    }
    return false;
}

double gpu_number_share(const GpuNumbers *numbers, const TileOp *branch) {
    Window window = find_window(numbers, branch);
    int64_t number[MOST_LOOPS] = {0}, all = 0, taken = 0;
    for (unsigned i = 0; i < window.count; i++) window.at[i] = window.lo[i];
    do {
        uint64_t condition;
        if (!value_at(numbers, &window, tile_op_operand(branch, 0), 0, &condition)) return -1;
        all++;
        taken += condition & 1;
    } while (next_iteration(&window, number));
    return (double)taken / (double)all;
}
