/* Purpose: fetch ahead what the next program goes through at many places at a time. The processor itself fetches ahead
 * what is accessed from the first element to the last one. Where a loop accesses a row at 8 places and more, as the
 * first and the last steps of a transform do, it does not see that, and each line that is not in the L2 cache is waited
 * for. So each such access also fetches what the next program accesses at its place, while there is much else to
 * compute.
 *
 * Run: --passes=cpu-prefetch --target=avx512
 * Before:
 *     func phase machine @k.0(%x: ptr<global>, %row: i64, %begin: i64 {role = begin}, %end: i64 {role = end}) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %four = const {value = 4} : i64
 *       %width = const {value = 16} : i64
 *       %far = const {value = 1024} : i64
 *       %v = const {value = 0.0} : vec<16 x f32>
 *       for %begin, %end, %one (%program: i64) {
 *         %a = mul %program, %row : i64
 *         %p = ptr_add %x, %a : ptr<global>
 *         for %zero, %far, %width (%i: i64) {
 *           %b = mul %i, %four : i64
 *           %p0 = ptr_add %p, %b : ptr<global>
 *           store %v, %p0
 *           %p1 = ptr_add %p0, %far : ptr<global>
 *           store %v, %p1
 *           %p2 = ptr_add %p1, %far : ptr<global>
 *           store %v, %p2
 *           %p3 = ptr_add %p2, %far : ptr<global>
 *           store %v, %p3
 *           %p4 = ptr_add %p3, %far : ptr<global>
 *           store %v, %p4
 *           %p5 = ptr_add %p4, %far : ptr<global>
 *           store %v, %p5
 *           %p6 = ptr_add %p5, %far : ptr<global>
 *           store %v, %p6
 *           %p7 = ptr_add %p6, %far : ptr<global>
 *           store %v, %p7
 *           yield
 *         }
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func phase machine @k.0(%x: ptr<global>, %row: i64, %begin: i64 {role = begin}, %end: i64 {role = end}) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %four = const {value = 4} : i64
 *       %width = const {value = 16} : i64
 *       %far = const {value = 1024} : i64
 *       %v = const {value = 0.0} : vec<16 x f32>
 *       for %begin, %end, %one (%program: i64) {
 *         %a = mul %program, %row : i64
 *         %p = ptr_add %x, %a : ptr<global>
 *         %0 = add %program, %one : i64
 *         %1 = mul %0, %row : i64
 *         %2 = sub %1, %a : i64
 *         for %zero, %far, %width (%i: i64) {
 *           %b = mul %i, %four : i64
 *           %p0 = ptr_add %p, %b : ptr<global>
 *           %3 = ptr_add %p0, %2 : ptr<global>
 *           prefetch %3 {cache = l2}
 *           store %v, %p0
 *           %p1 = ptr_add %p0, %far : ptr<global>
 *           %4 = ptr_add %p1, %2 : ptr<global>
 *           prefetch %4 {cache = l2}
 *           store %v, %p1
 *           %p2 = ptr_add %p1, %far : ptr<global>
 *           %5 = ptr_add %p2, %2 : ptr<global>
 *           prefetch %5 {cache = l2}
 *           store %v, %p2
 *           %p3 = ptr_add %p2, %far : ptr<global>
 *           %6 = ptr_add %p3, %2 : ptr<global>
 *           prefetch %6 {cache = l2}
 *           store %v, %p3
 *           %p4 = ptr_add %p3, %far : ptr<global>
 *           %7 = ptr_add %p4, %2 : ptr<global>
 *           prefetch %7 {cache = l2}
 *           store %v, %p4
 *           %p5 = ptr_add %p4, %far : ptr<global>
 *           %8 = ptr_add %p5, %2 : ptr<global>
 *           prefetch %8 {cache = l2}
 *           store %v, %p5
 *           %p6 = ptr_add %p5, %far : ptr<global>
 *           %9 = ptr_add %p6, %2 : ptr<global>
 *           prefetch %9 {cache = l2}
 *           store %v, %p6
 *           %p7 = ptr_add %p6, %far : ptr<global>
 *           %10 = ptr_add %p7, %2 : ptr<global>
 *           prefetch %10 {cache = l2}
 *           store %v, %p7
 *           yield
 *         }
 *         yield
 *       }
 *       return
 *     }
 * An address that depends on what memory holds is not known ahead, and a loop deeper in loops takes too long.
 *
 * In the same way a loop over blocks of rows, of which each vector of columns is added up by itself, reads a piece of each
 * row, then the next pieces: it also fetches the next block's, if the tensor is far larger than the L2 cache.
 * Needs: nothing. Keeps: every result. Cost: linear in the ops. */
#include "base/list.h"
#include "cpu/passes.h"
#include "lang/ir/build.h"
#include "lang/ir/operands.h"

enum { LEAST_PLACES = 8, MOST_LOOPS = 2, MOST_CLONES = 32, LINE_BYTES = 64, LEAST_AHEAD = 1 << 14, BLOCKS_AHEAD = 4, LARGE = 8 /* L2 caches */ };

/* What accesses have in common that go through one tensor: the address in the block of the program. */
typedef struct Base {
    TileValue *address;
    unsigned places;
    TileValue *ahead; /* how far ahead the next program's is, in bytes; NULL: not known */
} Base;

typedef struct Fetch {
    TileModule *module;
    TileFunc *func;
    const TileTarget *target;
    TileArena *arena;
    const TileOp *programs; /* the loop over them, or over blocks of rows */
    bool changed;
    TileValue *from[MOST_CLONES], *to[MOST_CLONES]; /* values of this program, and of the next one */
    unsigned count;
} Fetch;

typedef TILE_LIST(Base) Bases;

/* ---- the next program ---- */

static const TileBlock *program_block(const Fetch *f) { return &f->programs->regions[0]; }

static bool is_outside(const Fetch *f, const TileValue *value) { return tile_value_outside(value, f->programs); }

static TileValue *remember(Fetch *f, TileValue *value, TileValue *next) {
    f->changed = true;
    if (f->count == MOST_CLONES) return NULL;
    f->from[f->count] = value;
    f->to[f->count++] = next;
    return next;
}

/* A number of this program as it is in the next one; NULL: it is none that is computed from the program alone. */
static TileValue *next_of(Fetch *f, TileBuilder *b, TileValue *value, unsigned depth) {
    for (unsigned i = 0; i < f->count; i++)
        if (f->from[i] == value) return f->to[i];
    if (is_outside(f, value)) return value;
    const TileOp *op = value->op;
    TileValue *operands[TILE_MAX_FOLD];
    if (value == f->programs->regions[0].arguments[0])
        return remember(f, value,
                        tile_build_binary(b, TILE_OP_ADD, value, tile_op_named(f->programs, TILE_OPERAND_STEP)));
    if (!op || op->block != program_block(f) || op->operand_count > TILE_MAX_FOLD || depth == MOST_CLONES) return NULL;
    TileOpClass class = tile_op_info((TileOpId)op->id)->class;
    if (op->region_count || (class != TILE_CLASS_ELEMENTWISE && op->id != TILE_OP_CONST)) return NULL;
    bool divides = op->id == TILE_OP_DIV || op->id == TILE_OP_REM;
    if (divides && !is_outside(f, tile_op_operand(op, 1))) return NULL; /* the next program's may be 0 */
    for (unsigned i = 0; i < op->operand_count; i++)
        if (!(operands[i] = next_of(f, b, tile_op_operand(op, i), depth + 1))) return NULL;
    const TileType *type = value->type;
    TileOp *clone =
        tile_build_op(b, (TileOpId)op->id, operands, op->operand_count, op->attributes, op->attribute_count, &type, 1);
    return remember(f, value, tile_op_result(clone, 0));
}

/* How many bytes the address is ahead in the next program; NULL: it is the same there, or not known. */
static TileValue *bytes_ahead(Fetch *f, TileBuilder *b, TileValue *address) {
    TileValue *sum = NULL;
    for (const TileOp *add; !is_outside(f, address); address = tile_op_operand(add, 0)) {
        add = tile_value_def(address, TILE_OP_PTR_ADD);
        if (!add) return NULL;
        TileValue *bytes = tile_op_operand(add, 1);
        if (is_outside(f, bytes)) continue;
        TileValue *next = next_of(f, b, bytes, 0);
        if (!next) return NULL;
        TileValue *more = tile_build_binary(b, TILE_OP_SUB, next, bytes);
        sum = sum ? tile_build_binary(b, TILE_OP_ADD, sum, more) : more;
    }
    return sum;
}

/* ---- accesses ---- */

/* The address of a vector in memory that all programs share; NULL: it is something else. */
static TileValue *accessed(const TileOp *op) {
    if (op->id != TILE_OP_LOAD && op->id != TILE_OP_STORE) return NULL;
    const TileType *type = op->id == TILE_OP_LOAD ? op->results[0].type : tile_op_operand(op, 0)->type;
    TileValue *address = tile_op_named(op, TILE_OPERAND_ADDRESS);
    return type->kind == TILE_TYPE_VECTOR && address->type->space == TILE_SPACE_GLOBAL ? address : NULL;
}

/* The part of the address that the program alone decides on. */
static TileValue *base_of(const Fetch *f, TileValue *address) {
    while (!is_outside(f, address) && tile_value_block(address) != program_block(f)) {
        const TileOp *add = tile_value_def(address, TILE_OP_PTR_ADD);
        if (!add) return NULL;
        address = tile_op_operand(add, 0);
    }
    return address;
}

static Base *find_base(Fetch *f, Bases *bases, TileValue *address) {
    TileValue *base = base_of(f, address);
    if (!base) return NULL;
    for (size_t i = 0; i < bases->count; i++)
        if (bases->items[i].address == base) return &bases->items[i];
    tile_list_push(f->arena, bases, (Base){.address = base});
    return &bases->items[bases->count - 1];
}

static void fetch_block(Fetch *f, TileOp *outer, TileBlock *block) {
    Bases bases = {0};
    for (TileOp *op = block->first; op; op = op->next) {
        TileValue *address = accessed(op);
        Base *base = address ? find_base(f, &bases, address) : NULL;
        if (base) base->places++;
    }
    TileBuilder front = tile_builder_before(f->module, outer);
    for (size_t i = 0; i < bases.count; i++)
        if (bases.items[i].places >= LEAST_PLACES)
            bases.items[i].ahead = bytes_ahead(f, &front, bases.items[i].address);
    for (TileOp *op = block->first; op; op = op->next) {
        TileValue *address = accessed(op);
        const Base *base = address ? find_base(f, &bases, address) : NULL;
        if (!base || !base->ahead) continue;
        TileBuilder b = tile_builder_before(f->module, op);
        TileValue *ahead = tile_build_ptr_add(&b, address, base->ahead);
        const TileAttribute cache = {.key = TILE_ATTRIBUTE_CACHE, .integer = TILE_CACHE_L2};
        tile_build_op(&b, TILE_OP_PREFETCH, &ahead, 1, &cache, 1, NULL, 0);
        f->changed = true;
    }
}

/* Loops without loops in them, below `outer`, an op of the program's block. */
static void fetch_loops(Fetch *f, TileOp *outer, TileOp *op, unsigned depth) {
    if (op->id != TILE_OP_FOR || depth == MOST_LOOPS) return;
    bool innermost = true;
    for (TileOp *inner = op->regions[0].first; inner; inner = inner->next) {
        innermost = innermost && !inner->region_count;
        fetch_loops(f, outer, inner, depth + 1);
    }
    if (innermost) fetch_block(f, outer, &op->regions[0]);
}

/* ---- blocks of rows ---- */

static TileValue *extents_of(TileBuilder *b, const TileFunc *func, uint32_t argument, TileValue *bytes) {
    for (unsigned i = 0; i < func->body.argument_count; i++)
        if (func->parameters[i].role == TILE_ROLE_EXTENT && func->parameters[i].argument == argument)
            bytes = tile_build_binary(b, TILE_OP_MUL, bytes, func->body.arguments[i]);
    return bytes;
}

/* Is the tensor that the address is in far larger than the L2 cache? NULL: that is not known. */
static TileValue *is_large(Fetch *f, TileBuilder *b, const TileOp *load) {
    const TileValue *base = tile_op_named(load, TILE_OPERAND_ADDRESS);
    while (base->op && base->op->id == TILE_OP_PTR_ADD) base = tile_op_operand(base->op, 0);
    if (base->op || base->block != &f->func->body || f->func->parameters[base->index].role != TILE_ROLE_DATA) return NULL;
    TileValue *bytes = tile_build_i64(b, tile_scalar_bytes(load->results[0].type->scalar));
    bytes = extents_of(b, f->func, f->func->parameters[base->index].argument, bytes);
    return tile_build_binary(b, TILE_OP_GT, bytes, tile_build_i64(b, LARGE * (int64_t)f->target->l2_bytes));
}

/* Does the loop go through as many rows as an iteration of the blocks has? */
static bool is_over_rows(const Fetch *f, const TileOp *loop) {
    const TileOp *least = tile_value_def(tile_op_named(loop, TILE_OPERAND_HI), TILE_OP_MIN);
    int64_t step, rows;
    if (!tile_value_integer(tile_op_named(f->programs, TILE_OPERAND_STEP), &step) || step < 2) return false;
    const TileValue *most = least ? tile_op_operand(least, 1) : tile_op_named(loop, TILE_OPERAND_HI);
    return tile_value_integer(most, &rows) && rows == step && tile_value_is_integer(tile_op_named(loop, TILE_OPERAND_STEP), 1);
}

/* The product of the row's number and a stride, which the address of a row has; false: it has another form. */
static bool goes_by_rows(const TileOp *loop, const TileValue *address) {
    for (; address->op && address->op->id == TILE_OP_PTR_ADD; address = tile_op_operand(address->op, 0)) {
        const TileOp *product = tile_value_def(tile_op_operand(address->op, 1), TILE_OP_MUL);
        if (!product || tile_op_operand(product, 0) != loop->regions[0].arguments[0]) continue;
        return tile_value_outside(tile_op_operand(product, 1), loop) && !tile_value_def(tile_op_operand(product, 1), TILE_OP_CONST);
    }
    return false;
}

static void fetch_lines(Fetch *f, TileOp *load, TileValue *ahead, TileValue *large) {
    const TileType *type = load->results[0].type;
    int64_t bytes = type->extent[0] * (int64_t)tile_scalar_bytes(type->scalar);
    TileBuilder b = tile_builder_before(f->module, load);
    TileOp *branch = tile_build_if(&b, large, NULL, 0);
    TileBuilder inside = tile_builder_at_end(f->module, &branch->regions[0]), other = tile_builder_at_end(f->module, &branch->regions[1]);
    TileValue *pointer = tile_build_ptr_add(&inside, tile_op_named(load, TILE_OPERAND_ADDRESS), ahead);
    const TileAttribute cache = {.key = TILE_ATTRIBUTE_CACHE, .integer = TILE_CACHE_L2};
    for (int64_t at = 0; at < bytes; at += LINE_BYTES) {
        TileValue *line = at ? tile_build_ptr_add(&inside, pointer, tile_build_i64(&inside, at)) : pointer;
        tile_build_op(&inside, TILE_OP_PREFETCH, &line, 1, &cache, 1, NULL, 0);
    }
    tile_build_end(&inside, TILE_OP_YIELD, NULL, 0);
    tile_build_end(&other, TILE_OP_YIELD, NULL, 0);
    f->changed = true;
}

/* Small blocks are through before the next one's lines are there: some blocks ahead, then. */
static TileValue *far_enough(TileBuilder *b, TileValue *ahead) {
    TileValue *near = tile_build_binary(b, TILE_OP_LT, ahead, tile_build_i64(b, LEAST_AHEAD));
    return tile_build_ternary(b, TILE_OP_SELECT, near, tile_build_binary(b, TILE_OP_MUL, ahead, tile_build_i64(b, BLOCKS_AHEAD)), ahead);
}

/* The rows of the next block, for a loop over the rows of this one that is in `outer`, which stands in the loop over blocks. */
static void fetch_rows(Fetch *f, TileOp *outer, TileOp *rows) {
    TileBuilder front = tile_builder_before(f->module, outer);
    for (TileOp *op = rows->regions[0].first; op; op = op->next) {
        TileValue *address = op->id == TILE_OP_LOAD && !tile_op_has_part(op, TILE_PARTS_MASK) ? accessed(op) : NULL;
        if (!address || !goes_by_rows(rows, address)) continue;
        TileValue *base = base_of(f, address), *ahead = base ? bytes_ahead(f, &front, base) : NULL;
        TileValue *large = ahead ? is_large(f, &front, op) : NULL;
        if (large) fetch_lines(f, op, far_enough(&front, ahead), large);
    }
}

static void fetch_below(Fetch *f, TileOp *outer, TileBlock *block) {
    for (TileOp *op = block->first; op; op = op->next) {
        for (unsigned i = 0; op->id == TILE_OP_IF && i < op->region_count; i++) fetch_below(f, outer, &op->regions[i]);
        if (op->id == TILE_OP_FOR && is_over_rows(f, op)) fetch_rows(f, outer, op);
    }
}

static void fetch_blocks(Fetch *f, TileBlock *block) {
    for (TileOp *op = block->first; op; op = op->next) {
        for (unsigned i = 0; i < op->region_count; i++) fetch_blocks(f, &op->regions[i]);
        if (op->id != TILE_OP_FOR) continue;
        f->programs = op;
        f->count = 0;
        for (TileOp *outer = op->regions[0].first; outer; outer = outer->next)
            if (outer->id == TILE_OP_FOR) fetch_below(f, outer, &outer->regions[0]);
    }
}

static void fetch_programs(Fetch *f, TileOp *programs) {
    f->programs = programs;
    for (TileOp *op = programs->regions[0].first; op; op = op->next) {
        if (op->id != TILE_OP_FOR) continue;
        f->count = 0;
        fetch_loops(f, op, op, 0);
    }
}

TileResult tile_pass_cpu_prefetch(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    Fetch f = {.module = context->module, .arena = context->scratch, .func = func, .target = context->target};
    for (TileOp *op = func->body.first; op; op = op->next) {
        const TileValue *begin = op->id == TILE_OP_FOR ? tile_op_named(op, TILE_OPERAND_LO) : NULL;
        bool programs = begin && begin->block == &func->body && func->parameters[begin->index].role == TILE_ROLE_BEGIN;
        if (programs) fetch_programs(&f, op);
    }
    if (f.target) fetch_blocks(&f, &func->body);
    return f.changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
