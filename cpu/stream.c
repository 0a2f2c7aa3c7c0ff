/* Purpose: write past the caches what they will not hold. A store to a line that is not in a cache first reads the line,
 * which then waits in the cache until it is written back: of a copy of a large tensor a third of what goes over the memory's
 * bus is read for nothing, and drives out what else was there. Where a tensor has so many bytes that none of it would still
 * be in a cache for its next reader, its lines are written as a whole, by streaming stores. Whether it has is known at run
 * time; a branch on that costs less than the store.
 *
 * Run: --passes=cpu-stream --target=avx512
 * Before:
 *     func phase machine @k.0(%x: ptr<global> {role = data, argument = 0, noalias, readonly}, %y: ptr<global> {role = data, argument = 1, noalias}, %n: i64 {role = extent, argument = 1, axis = 0}) {
 *       %zero = const {value = 0} : i64
 *       %four = const {value = 4} : i64
 *       %step = const {value = 64} : i64
 *       for %zero, %n, %step (%i: i64) {
 *         %b = mul %i, %four : i64
 *         %p = ptr_add %x, %b : ptr<global>
 *         %v = load %p : vec<64 x f32>
 *         %q = ptr_add %y, %b : ptr<global>
 *         store %v, %q
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func phase machine @k.0(%x: ptr<global> {role = data, argument = 0, noalias, readonly}, %y: ptr<global> {role = data, argument = 1, noalias}, %n: i64 {role = extent, argument = 1, axis = 0}) {
 *       %0 = const {value = 4} : i64
 *       %1 = mul %0, %n : i64
 *       %2 = const {value = 16777216} : i64
 *       %3 = ge %1, %2 : bool
 *       %zero = const {value = 0} : i64
 *       %four = const {value = 4} : i64
 *       %step = const {value = 64} : i64
 *       for %zero, %n, %step (%i: i64) {
 *         %b = mul %i, %four : i64
 *         %p = ptr_add %x, %b : ptr<global>
 *         %v = load %p : vec<64 x f32>
 *         %q = ptr_add %y, %b : ptr<global>
 *         %4 = is_aligned %q {align = 64} : bool
 *         %5 = and %3, %4 : bool
 *         if %5 {
 *           store %v, %q {align = 64, cache = stream}
 *           yield
 *         } {
 *           store %v, %q
 *           yield
 *         }
 *         yield
 *       }
 *       return
 *     }
 * A tensor of which the phase also reads is left alone: its lines are in a cache already, or will be wanted there. So are
 * loops that go from page to page, or compute so much that the memory has time.
 * Needs: nothing. Keeps: every result. Cost: linear in the ops. */
#include "cpu/passes.h"
#include "lang/ir/build.h"
#include "lang/ir/operands.h"

enum {
    LINE_BYTES = 64,
    MOST_OPS = 20, /* of a register each, for a line: of more the memory is not what takes the time */
    MOST_APART = 4 /* vectors that an iteration has */
};

typedef struct Stream {
    TilePassContext *context;
    TileModule *module;
    TileFunc *func;
    TileMap read;  /* data parameters that something else than a store uses */
    TileMap large; /* data parameters to bools: have they too many bytes for a cache? */
    bool changed;
} Stream;

/* The parameter that the pointer points into; NULL: it points elsewhere. */
static TileValue *tensor_of(const Stream *x, TileValue *pointer) {
    while (pointer->op && pointer->op->id == TILE_OP_PTR_ADD) pointer = tile_op_operand(pointer->op, 0);
    return pointer->op || pointer->block != &x->func->body ? NULL : pointer;
}

static void note_use(TileOp *op, void *state) {
    Stream *x = state;
    if (op->id == TILE_OP_PTR_ADD || op->id == TILE_OP_IS_ALIGNED || op->id == TILE_OP_PREFETCH) return;
    for (unsigned i = 0; i < op->operand_count; i++) {
        TileValue *operand = tile_op_operand(op, i);
        if (operand->type->kind != TILE_TYPE_POINTER) continue;
        TileValue *tensor = tensor_of(x, operand);
        bool stored = op->id == TILE_OP_STORE && operand == tile_op_named(op, TILE_OPERAND_ADDRESS);
        if (tensor && !stored) tile_map_set(&x->read, tensor, tensor);
    }
}

/* Does the tensor have so many bytes that none of them would be read in a cache? */
static TileValue *is_large(Stream *x, TileValue *tensor, unsigned element) {
    TileValue *found = tile_map_get(&x->large, tensor);
    if (found) return found;
    TileBuilder b = tile_builder_before(x->module, x->func->body.first);
    uint32_t argument = x->func->parameters[tensor->index].argument;
    TileValue *bytes = tile_build_i64(&b, element);
    for (unsigned i = 0; i < x->func->body.argument_count; i++) {
        const TileParameter *extent = &x->func->parameters[i];
        if (extent->role == TILE_ROLE_EXTENT && extent->argument == argument)
            bytes = tile_build_binary(&b, TILE_OP_MUL, bytes, x->func->body.arguments[i]);
    }
    found = tile_build_binary(&b, TILE_OP_GE, bytes, tile_build_i64(&b, (int64_t)x->context->target->far_bytes));
    tile_map_set(&x->large, tensor, found);
    return found;
}

/* By how much an integer grows when the loop's index grows by 1; false: that is not known. */
static bool slope_of(const TileOp *loop, const TileValue *value, int64_t *slope) {
    int64_t left, right;
    *slope = value == loop->regions[0].arguments[0];
    if (*slope || tile_value_outside(value, loop)) return true;
    const TileOp *op = value->op;
    if (!op || op->operand_count != 2) return op && op->id == TILE_OP_CONST;
    bool known = slope_of(loop, tile_op_operand(op, 0), &left) && slope_of(loop, tile_op_operand(op, 1), &right);
    if (!known || (!left && !right)) return known;
    if (op->id == TILE_OP_MUL && !right && tile_value_integer(tile_op_operand(op, 1), &right)) return !__builtin_mul_overflow(left, right, slope);
    if (op->id == TILE_OP_PTR_ADD || op->id == TILE_OP_ADD) return !__builtin_add_overflow(left, right, slope);
    return false;
}

/* How many registers the ops of a block have as their results. */
static int64_t count_registers(const Stream *x, const TileBlock *block) {
    int64_t count = 0, whole = (int64_t)x->context->target->vector_bytes;
    for (const TileOp *op = block->first; op; op = op->next) {
        for (unsigned i = 0; i < op->region_count; i++) count += count_registers(x, &op->regions[i]);
        const TileType *type = op->result_count && !op->region_count ? op->results[0].type : NULL;
        if (!type || type->kind != TILE_TYPE_VECTOR || type->scalar == TILE_BOOL || op->id == TILE_OP_BITCAST || op->id == TILE_OP_CONST) continue;
        count += (type->extent[0] * (int64_t)tile_scalar_bytes(type->scalar) + whole - 1) / whole;
    }
    return count;
}

/* Does the loop around the store write line after line, and compute little meanwhile? */
static bool is_stream(const Stream *x, const TileOp *store, int64_t bytes) {
    const TileOp *loop = store->block->op;
    int64_t slope, step;
    while (loop && loop->id != TILE_OP_FOR) loop = loop->block->op;
    if (!loop || !tile_value_integer(tile_op_named(loop, TILE_OPERAND_STEP), &step)) return false;
    if (!slope_of(loop, tile_op_named(store, TILE_OPERAND_ADDRESS), &slope) || __builtin_mul_overflow(slope, step, &slope)) return false;
    bool near = slope >= bytes && slope <= MOST_APART * bytes;
    return near && count_registers(x, &loop->regions[0]) <= MOST_OPS * slope / LINE_BYTES;
}

/* The tensor, if the op stores whole lines of one that is only written; else NULL. */
static TileValue *streamed(const Stream *x, const TileOp *op) {
    if (op->id != TILE_OP_STORE || tile_op_has_part(op, TILE_PARTS_MASK) || tile_op_get(op, TILE_ATTRIBUTE_CACHE)) return NULL;
    const TileType *type = tile_op_operand(op, 0)->type;
    if (type->kind != TILE_TYPE_VECTOR || type->scalar == TILE_BOOL) return NULL;
    int64_t bytes = type->extent[0] * (int64_t)tile_scalar_bytes(type->scalar);
    if (bytes % LINE_BYTES || !is_stream(x, op, bytes)) return NULL;
    TileValue *tensor = tensor_of(x, tile_op_named(op, TILE_OPERAND_ADDRESS));
    const TileParameter *parameter = tensor ? &x->func->parameters[tensor->index] : NULL;
    return parameter && parameter->role == TILE_ROLE_DATA && parameter->noalias && !tile_map_get(&x->read, tensor) ? tensor : NULL;
}

/* The store, in a branch whose other side streams. */
static void branch(Stream *x, TileOp *store, TileValue *tensor) {
    TileValue *value = tile_op_operand(store, 0), *address = tile_op_named(store, TILE_OPERAND_ADDRESS);
    TileValue *large = is_large(x, tensor, tile_scalar_bytes(value->type->scalar));
    TileBuilder b = tile_builder_before(x->module, store);
    b.location = store->location;
    TileValue *whole = tile_build_binary(&b, TILE_OP_AND, large, tile_build_is_aligned(&b, address, LINE_BYTES));
    TileOp *made = tile_build_if(&b, whole, NULL, 0);
    TileBuilder inside = tile_builder_at_end(x->module, &made->regions[0]);
    inside.location = store->location;
    TileOp *stream = tile_build_store(&inside, value, address, NULL, LINE_BYTES);
    tile_op_set_integer(x->module, stream, TILE_ATTRIBUTE_CACHE, TILE_CACHE_STREAM);
    tile_op_detach(store);
    tile_op_append(store, &made->regions[1]);
    for (unsigned i = 0; i < 2; i++) {
        TileBuilder end = tile_builder_at_end(x->module, &made->regions[i]);
        tile_build_end(&end, TILE_OP_YIELD, NULL, 0);
    }
    x->changed = true;
}

static void visit_block(Stream *x, TileBlock *block) {
    for (TileOp *op = block->first, *next; op; op = next) {
        next = op->next;
        TileValue *tensor = streamed(x, op);
        if (tensor) branch(x, op, tensor);
        for (unsigned i = 0; !tensor && i < op->region_count; i++) visit_block(x, &op->regions[i]);
    }
}

TileResult tile_pass_cpu_stream(TilePassContext *context, TileFunc *func) {
    Stream x = {.context = context, .module = context->module, .func = func};
    if (func->kind != TILE_FUNC_PHASE || !context->target || !context->target->far_bytes) return TILE_RESULT_UNCHANGED;
    tile_map_init(&x.read, context->scratch);
    tile_map_init(&x.large, context->scratch);
    tile_block_walk(&func->body, note_use, &x);
    visit_block(&x, &func->body);
    return x.changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
