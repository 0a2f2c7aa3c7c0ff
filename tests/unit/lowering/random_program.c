#include "random_program.h"

#include <math.h>

#include "lang/scalar/scalar.h"

enum { MAX_POOL = 256, MAX_DEPTH = 3 };

uint64_t random_next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Special values, for which identities often fail: zeros, ones, infinities, NaN, extremes, subnormals. */
uint64_t random_bits(TileScalar scalar, uint64_t *state) {
    static const double floats[] = {0.0, -0.0, 1.0, -1.0, 0.5, 3.0, INFINITY, -INFINITY, NAN, 1e30, -1e-30, 1e-45};
    static const int64_t integers[] = {0, 1, -1, 2, 7, -8, INT64_MIN, INT64_MAX, INT32_MIN, INT32_MAX, 127, -128};
    unsigned bits = tile_scalar_bits(scalar);
    uint64_t mask = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1, choice = random_next(state);
    if (choice % 3 == 0) return random_next(state) & mask;
    if (tile_scalar_is_float(scalar)) return tile_scalar_from_double(scalar, floats[choice / 3 % 12]);
    return (uint64_t)integers[choice / 3 % 12] & mask;
}

/* Values in scope; those of a region are dropped at its end. */
typedef struct Program {
    TileBuilder builder;
    uint64_t *state;
    TileValue *pool[MAX_POOL];
    unsigned count;
} Program;

static unsigned below(Program *program, unsigned limit) { return (unsigned)(random_next(program->state) % limit); }

static void keep(Program *program, TileValue *value) {
    if (program->count < MAX_POOL) program->pool[program->count++] = value;
}

/* Half the time a recent one, so that there are chains of ops. */
static TileValue *any(Program *program) {
    unsigned recent = program->count < 6 ? program->count : 6;
    bool late = below(program, 2);
    return program->pool[late ? program->count - 1 - below(program, recent) : below(program, program->count)];
}

/* A value of the type, if a few random picks find one; else a constant. */
static TileValue *any_of(Program *program, const TileType *type) {
    for (int i = 0; i < 12; i++) {
        TileValue *value = any(program);
        if (value->type == type) return value;
    }
    return tile_build_bits(&program->builder, type, random_bits(type->scalar, program->state));
}

static const TileType *scalar_type(Program *program, TileScalar scalar) {
    return tile_type_scalar(program->builder.module->context, scalar);
}

/* min(max(value, 0), limit) */
static TileValue *clamped(Program *program, int64_t limit) {
    TileBuilder *b = &program->builder;
    TileValue *low =
        tile_build_binary(b, TILE_OP_MAX, any_of(program, scalar_type(program, TILE_I64)), tile_build_i64(b, 0));
    return tile_build_binary(b, TILE_OP_MIN, low, tile_build_i64(b, limit));
}

/* No copysign: its result depends on the sign of a NaN, which passes may change. */
static TileValue *build_arithmetic(Program *program) {
    static const TileOpId numbers[] = {TILE_OP_NEG, TILE_OP_ABS, TILE_OP_ADD, TILE_OP_SUB, TILE_OP_MUL,
                                       TILE_OP_DIV, TILE_OP_REM, TILE_OP_MIN, TILE_OP_MAX};
    static const TileOpId floats[] = {TILE_OP_FLOOR, TILE_OP_CEIL, TILE_OP_ROUND, TILE_OP_TRUNC, TILE_OP_FMA};
    static const TileOpId bits[] = {TILE_OP_NOT, TILE_OP_AND, TILE_OP_OR, TILE_OP_XOR, TILE_OP_SHL, TILE_OP_SHR};
    TileValue *x = any(program);
    bool is_float = tile_scalar_is_float(x->type->scalar), is_bool = x->type->scalar == TILE_BOOL;
    TileOpId id = numbers[below(program, 9)];
    if (is_bool)
        id = bits[below(program, 4)];
    else if (below(program, 3) == 0)
        id = is_float ? floats[below(program, 5)] : bits[below(program, 6)];
    TileValue *operands[3] = {x, any_of(program, x->type), any_of(program, x->type)};
    unsigned count = (unsigned)tile_op_info(id)->operands;
    return tile_build_op(&program->builder, id, operands, count, NULL, 0, NULL, 1)->results;
}

static TileValue *build_choice(Program *program) {
    TileValue *x = any(program), *y = any_of(program, x->type);
    TileBuilder *b = &program->builder;
    if (below(program, 2)) return tile_build_binary(b, (TileOpId)(TILE_OP_EQ + below(program, 6)), x, y);
    const TileType *condition = tile_type_with_scalar(b->module->context, x->type, TILE_BOOL);
    return tile_build_ternary(b, TILE_OP_SELECT, any_of(program, condition), x, y);
}

static TileValue *build_conversion(Program *program) {
    static const TileScalar scalars[] = {TILE_I64, TILE_I32, TILE_I8, TILE_U8, TILE_F32, TILE_F16, TILE_BF16, TILE_F64};
    return tile_build_convert(&program->builder, any(program), scalars[below(program, 8)]);
}

static TileValue *build_fill(Program *program, TileValue *x) {
    TileValue *bounds[4];
    int64_t axes[2] = {0, 1};
    for (unsigned i = 0; i < x->type->rank; i++) {
        bounds[2 * i] = below(program, 2) ? tile_build_i64(&program->builder, 0) : clamped(program, x->type->extent[i]);
        bounds[2 * i + 1] = clamped(program, x->type->extent[i]);
    }
    TileValue *value = any_of(program, scalar_type(program, x->type->scalar));
    return tile_build_fill(&program->builder, x, value, axes, bounds, x->type->rank);
}

/* The lanes of one tile up to an index along an axis, and those of another one from there on. */
static TileValue *build_parts(Program *program, TileValue *x) {
    TileBuilder *b = &program->builder;
    TileValue *y = any_of(program, x->type);
    int64_t axis = below(program, x->type->rank), extent = x->type->extent[axis];
    if (extent == 1) return x;
    int64_t middle = 1 + below(program, (unsigned)extent - 1);
    TileValue *first = tile_build_slice(b, x, axis, 0, middle);
    TileValue *second = tile_build_slice(b, y, axis, below(program, (unsigned)middle + 1), extent - middle);
    return tile_build_cat(b, first, second, axis);
}

/* Tiles are [4, 8], [4, 1], [8], [8, 4], and their reductions. */
static TileValue *build_shape(Program *program) {
    static const int64_t wide[] = {4, 8}, column[] = {4, 1}, turned[] = {1, 0};
    TileBuilder *b = &program->builder;
    TileContext *context = b->module->context;
    TileValue *x = any(program);
    if (tile_type_is_scalar(x->type)) {
        const TileType *type = tile_type_tile(context, x->type->scalar, 2, below(program, 2) ? wide : column);
        return tile_build_splat(b, x, type);
    }
    unsigned choice = below(program, 6);
    if (choice == 5) return build_parts(program, x);
    if (choice == 0) return build_fill(program, x);
    if (choice == 1 && x->type->scalar != TILE_BOOL)
        return tile_build_reduce(b, x, below(program, 2) ? TILE_KIND_SUM : TILE_KIND_MAX, x->type->rank - 1);
    if (x->type->rank == 1) return tile_build_reshape(b, x, 2, (int64_t[]){x->type->extent[0], 1});
    if (choice == 2) return tile_build_permute(b, x, turned);
    if (x->type->extent[1] == 1) return tile_build_broadcast(b, x, (int64_t[]){x->type->extent[0], 8});
    return choice == 3 ? tile_build_reshape(b, x, 1, (int64_t[]){x->type->extent[0] * x->type->extent[1]}) : x;
}

static void build_ops(Program *program, unsigned ops, unsigned depth);

static void finish_region(Program *program, TileBlock *region, TileValue *const *like, unsigned count, unsigned depth) {
    TileBuilder outer = program->builder;
    unsigned in_scope = program->count;
    program->builder = tile_builder_at_end(outer.module, region);
    for (unsigned i = 0; i < region->argument_count; i++) keep(program, region->arguments[i]);
    build_ops(program, 6, depth + 1);
    TileValue *yielded[2];
    for (unsigned i = 0; i < count; i++) yielded[i] = any_of(program, like[i]->type);
    tile_build_end(&program->builder, TILE_OP_YIELD, yielded, count);
    program->count = in_scope;
    program->builder = outer;
}

static void build_region_op(Program *program, unsigned depth) {
    TileBuilder *b = &program->builder;
    TileValue *carried[2] = {any(program), any(program)};
    TileOp *op;
    if (below(program, 2)) {
        TileValue *hi = below(program, 2) ? tile_build_i64(b, below(program, 4)) : clamped(program, 3);
        op = tile_build_for(b, tile_build_i64(b, 0), hi, tile_build_i64(b, 1 + below(program, 2)), carried, 2);
    } else {
        const TileType *types[2] = {carried[0]->type, carried[1]->type};
        op = tile_build_if(b, any_of(program, scalar_type(program, TILE_BOOL)), types, 2);
    }
    for (unsigned r = 0; r < op->region_count; r++) finish_region(program, &op->regions[r], carried, 2, depth);
    keep(program, &op->results[0]);
    keep(program, &op->results[1]);
}

/* A while loop with a trip count of at most three, counted by its first loop-carried value. Condition and body pass on
 * their argument, the initial value, or some other value. */
static void build_while(Program *program, unsigned depth) {
    TileValue *carried[2] = {tile_build_i64(&program->builder, 0), any(program)};
    TileOp *op = tile_build_while(&program->builder, carried, 2);
    TileBuilder outer = program->builder;
    int64_t limit = below(program, 4);
    for (unsigned r = 0; r < 2; r++) {
        TileBlock *region = &op->regions[r];
        TileValue *count = region->arguments[0], *same[2] = {region->arguments[1], carried[1]};
        unsigned in_scope = program->count;
        TileBuilder *b = &program->builder;
        *b = tile_builder_at_end(outer.module, region);
        keep(program, region->arguments[1]);
        build_ops(program, 3, depth + 1);
        TileValue *value = below(program, 2) ? any_of(program, carried[1]->type) : same[below(program, 2)];
        if (r == 0)
            tile_build_end(
                b, TILE_OP_CONDITION,
                (TileValue *[]){tile_build_binary(b, TILE_OP_LT, count, tile_build_i64(b, limit)), count, value}, 3);
        else
            tile_build_end(b, TILE_OP_YIELD,
                           (TileValue *[]){tile_build_binary(b, TILE_OP_ADD, count, tile_build_i64(b, 1)), value}, 2);
        program->count = in_scope;
    }
    program->builder = outer;
    keep(program, &op->results[1]);
}

static void build_ops(Program *program, unsigned ops, unsigned depth) {
    for (unsigned i = 0; i < ops; i++) {
        unsigned choice = below(program, 12);
        if (choice < 5)
            keep(program, build_arithmetic(program));
        else if (choice < 7)
            keep(program, build_choice(program));
        else if (choice < 8)
            keep(program, build_conversion(program));
        else if (choice < 9)
            keep(program, tile_build_bits(&program->builder, any(program)->type, random_next(program->state) & 1));
        else if (choice < 11)
            keep(program, build_shape(program));
        else if (depth < MAX_DEPTH && below(program, 4))
            build_region_op(program, depth);
        else if (depth < MAX_DEPTH)
            build_while(program, depth);
    }
}

TileFunc *random_function(TileModule *module, uint64_t *state) {
    static const TileScalar parameters[] = {TILE_I64, TILE_I64, TILE_F32, TILE_F32, TILE_BOOL, TILE_I32, TILE_F16};
    TileFunc *func = tile_func_create(module, "f", TILE_FUNC_DEVICE, TILE_FORM_TILE);
    Program program = {.builder = tile_builder_at_end(module, &func->body), .state = state};
    for (unsigned i = 0; i < 7; i++)
        keep(&program, tile_func_add_parameter(func, "p", scalar_type(&program, parameters[i])));
    build_ops(&program, 24, 0);
    TileValue *results[4];
    func->result_types = TILE_NEW_ARRAY(module->arena, const TileType *, 4);
    for (unsigned i = 0; i < 4; i++) {
        results[i] = program.pool[program.count - 1 - below(&program, program.count < 12 ? program.count : 12)];
        func->result_types[i] = results[i]->type;
    }
    func->result_count = 4;
    tile_build_end(&program.builder, TILE_OP_RETURN, results, 4);
    return func;
}

/* ---- kernels ---- */

/* Bounds of the lanes of a range of `lanes` from `first` that are in [0, extent). */
static void build_bounds(TileBuilder *b, TileValue *first, TileValue *extent, int64_t lanes, TileValue **range) {
    TileValue *zero = tile_build_i64(b, 0), *all = tile_build_i64(b, lanes);
    TileValue *lo = tile_build_binary(b, TILE_OP_MAX, tile_build_binary(b, TILE_OP_SUB, zero, first), zero);
    TileValue *left = tile_build_binary(b, TILE_OP_MAX, tile_build_binary(b, TILE_OP_SUB, extent, first), zero);
    range[0] = first;
    range[1] = tile_build_i64(b, 1);
    range[2] = tile_build_binary(b, TILE_OP_MIN, lo, all);
    range[3] = tile_build_binary(b, TILE_OP_MIN, left, all);
}

static TileValue *build_number_of_blocks(TileBuilder *b, TileValue *extent, int64_t size) {
    TileValue *above = tile_build_binary(b, TILE_OP_ADD, extent, tile_build_i64(b, size - 1));
    return tile_build_binary(b, TILE_OP_DIV, above, tile_build_i64(b, size));
}

static void build_access(TileBuilder *b, TileValue *tensor, TileValue *value, TileValue *const *ranges, unsigned rank,
                         const TileType *type, TileValue **loaded) {
    static const int64_t access[] = {TILE_ACCESS_RANGE, TILE_ACCESS_RANGE};
    TileAttribute attribute = {.key = TILE_ATTRIBUTE_ACCESS, .count = rank, .integers = access};
    TileValue *operands[10] = {tensor};
    unsigned count = 1;
    if (value) operands[count++] = value;
    for (unsigned i = 0; i < 4 * rank; i++) operands[count++] = ranges[i];
    TileOp *op = tile_build_op(b, value ? TILE_OP_STORE_TILE : TILE_OP_LOAD_TILE, operands, count, &attribute, 1, &type,
                               value ? 0 : 1);
    if (loaded) *loaded = op->results;
}

/* Loads x at an offset, applies a few ops that keep invalid lanes invalid, stores the result and adds it to a sum. */
static TileValue *build_row_part(Program *program, TileFunc *func, TileValue *const *rows, TileValue *n,
                                 TileValue *sums) {
    TileBuilder *b = &program->builder;
    TileContext *context = b->module->context;
    const TileType *type = tile_type_tile(context, TILE_F32, 2, (int64_t[]){2, 8});
    TileValue *columns = tile_build_dim(b, func->body.arguments[0], 1), *ranges[8], *v, *w;
    TileValue *first = tile_build_binary(b, TILE_OP_ADD, n, tile_build_i64(b, (int64_t)below(program, 7) - 3));
    for (unsigned i = 0; i < 4; i++) ranges[i] = rows[i];
    build_bounds(b, first, columns, 8, ranges + 4);
    build_access(b, func->body.arguments[0], NULL, ranges, 2, type, &v);
    TileValue *same = tile_build_convert(b, tile_build_convert(b, v, TILE_BF16), TILE_F32);
    switch (below(program, 5)) {
    case 0: v = tile_build_binary(b, TILE_OP_MUL, v, v); break;
    case 1: v = tile_build_unary(b, TILE_OP_NEG, v); break;
    case 2: v = tile_build_unary(b, TILE_OP_EXP, v); break;
    case 3: v = tile_build_binary(b, TILE_OP_MUL, same, tile_build_unary(b, TILE_OP_ABS, v)); break;
    default: break;
    }
    bool largest = below(program, 2);
    TileValue *fill = tile_build_number(b, scalar_type(program, TILE_F32), largest ? -INFINITY : 0);
    w = tile_build_fill(b, v, fill, (int64_t[]){1}, ranges + 6, 1);
    TileValue *sum = tile_build_reduce(b, w, largest ? TILE_KIND_MAX : TILE_KIND_SUM, 1);
    TileValue *zero = tile_build_number(b, scalar_type(program, TILE_F32), 0);
    TileValue *stored = tile_build_fill(b, v, zero, (int64_t[]){1}, ranges + 6, 1);
    build_bounds(b, n, columns, 8, ranges + 4);
    build_access(b, func->body.arguments[1], stored, ranges, 2, type, NULL);
    return tile_build_binary(b, largest ? TILE_OP_MAX : TILE_OP_ADD, sums, sum);
}

TileFunc *random_kernel(TileModule *module, uint64_t *state) {
    TileContext *context = module->context;
    TileFunc *func = tile_func_create(module, "k", TILE_FUNC_KERNEL, TILE_FORM_TILE);
    TileValue *x = tile_func_add_parameter(func, "x", tile_type_tensor(context, TILE_F32, 2, TILE_ACCESS_IN));
    tile_func_add_parameter(func, "y", tile_type_tensor(context, TILE_F32, 2, TILE_ACCESS_OUT));
    TileValue *s = tile_func_add_parameter(func, "s", tile_type_tensor(context, TILE_F32, 1, TILE_ACCESS_OUT));
    for (unsigned i = 0; i < 3; i++) func->parameters[i].noalias = true;
    Program program = {.builder = tile_builder_at_end(module, &func->body), .state = state};
    TileBuilder *b = &program.builder, host;
    TileValue *m = tile_build_dim(b, x, 0), *n = tile_build_dim(b, x, 1), *blocks = build_number_of_blocks(b, m, 2);
    TileOp *grid = tile_build_grid(b, &blocks, 1);
    host = *b;
    *b = tile_builder_at_end(module, &grid->regions[0]);
    TileValue *first = tile_build_binary(b, TILE_OP_MUL, grid->regions[0].arguments[0], tile_build_i64(b, 2)), *rows[4];
    build_bounds(b, first, m, 2, rows);
    const TileType *type = tile_type_tile(context, TILE_F32, 1, (int64_t[]){2});
    TileValue *sums = tile_build_number(b, type, 0);
    TileOp *loop = tile_build_for(b, tile_build_i64(b, 0), n, tile_build_i64(b, 8), &sums, 1);
    TileBuilder after = *b;
    *b = tile_builder_at_end(module, &loop->regions[0]);
    TileValue *i = loop->regions[0].arguments[0], *carried = loop->regions[0].arguments[1];
    unsigned parts = 1 + below(&program, 2);
    for (unsigned part = 0; part < parts; part++) carried = build_row_part(&program, func, rows, i, carried);
    tile_build_end(b, TILE_OP_YIELD, &carried, 1);
    *b = after;
    build_access(b, s, loop->results, rows, 1, type, NULL);
    tile_build_end(b, TILE_OP_YIELD, NULL, 0);
    *b = host;
    tile_build_end(b, TILE_OP_RETURN, NULL, 0);
    return func;
}
