/* Purpose: divide programs into bands that threads can share. A grid may have fewer programs than there are threads,
 * while each program has a loop whose trip count grows with a tensor. Where the lanes of a tile do not depend on one
 * another along an axis, a band of neighbouring lanes is computed by itself: the range of a phase then counts bands
 * (TileFunc.bands of each program), and each program computes those of its bands that are in the range. Results do not
 * depend on the ranges. Rows that a program reads more than once are taken one at a time where those of a program are
 * more than the L1 cache holds.
 *
 * Before:
 *     func kernel tile @k(%x: tensor<f32, 2, in> {noalias}, %y: tensor<f32, 1, out> {noalias}) {
 *       %n = dim %x {axis = 1} : i64
 *       grid %n (%i: i64) {
 *         yield
 *       }
 *       return
 *     }
 *     func phase tile @k.0(%x: tensor<f32, 2, in> {role = data, argument = 0, noalias},
 *       %y: tensor<f32, 1, out> {role = data, argument = 1, noalias}, %begin: i64 {role = begin},
 *       %end: i64 {role = end}) kernel = @k phase = 0 {
 *       %m = dim %x {axis = 0} : i64
 *       %0 = const {value = 0} : i64
 *       %1 = const {value = 1} : i64
 *       %64 = const {value = 64} : i64
 *       %zero = const {value = 0.0} : f32[64]
 *       for %begin, %end, %1 (%program: i64) {
 *         %first = mul %program, %64 : i64
 *         %sum = for %0, %m, %1, %zero : f32[64] (%j: i64, %sum.1: f32[64]) {
 *           %v = load_tile %x, %j, %first, %1, %0, %64 {access = [index, range]} : f32[64]
 *           %next = add %sum.1, %v : f32[64]
 *           yield %next
 *         }
 *         store_tile %y, %sum, %first, %1, %0, %64 {access = [range]}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func kernel tile @k(%x: tensor<f32, 2, in> {noalias}, %y: tensor<f32, 1, out> {noalias}) {
 *       %n = dim %x {axis = 1} : i64
 *       grid %n (%i: i64) {
 *         yield
 *       }
 *       return
 *     }
 *     func phase tile @k.0(%x: tensor<f32, 2, in> {role = data, argument = 0, noalias},
 *       %y: tensor<f32, 1, out> {role = data, argument = 1, noalias}, %begin: i64 {role = begin},
 *       %end: i64 {role = end}) kernel = @k phase = 0 bands = 2 {
 *       %m = dim %x {axis = 0} : i64
 *       %0 = const {value = 0} : i64
 *       %1 = const {value = 1} : i64
 *       %64 = const {value = 64} : i64
 *       %zero = const {value = 0.0} : f32[64]
 *       %2 = const {value = 2} : i64
 *       %3 = div %begin, %2 : i64
 *       %4 = const {value = 1} : i64
 *       %5 = add %end, %4 : i64
 *       %6 = div %5, %2 : i64
 *       for %3, %6, %1 (%program: i64) {
 *         %7 = mul %program, %2 : i64
 *         %8 = sub %begin, %7 : i64
 *         %9 = const {value = 0} : i64
 *         %10 = max %8, %9 : i64
 *         %11 = const {value = 32} : i64
 *         %12 = mul %10, %11 : i64
 *         %13 = sub %end, %7 : i64
 *         %14 = min %13, %2 : i64
 *         %15 = mul %14, %11 : i64
 *         %first = mul %program, %64 : i64
 *         %sum = for %0, %m, %1, %zero : f32[64] (%j: i64, %sum.1: f32[64]) {
 *           %16 = max %0, %12 : i64
 *           %17 = min %64, %15 : i64
 *           %v = load_tile %x, %j, %first, %1, %16, %17 {access = [index, range]} : f32[64]
 *           %next = add %sum.1, %v : f32[64]
 *           yield %next
 *         }
 *         %18 = max %0, %12 : i64
 *         %19 = min %64, %15 : i64
 *         store_tile %y, %sum, %first, %1, %18, %19 {access = [range]}
 *         yield
 *       }
 *       return
 *     }
 * Needs: programs, before cpu-updates. Keeps: tile form. Cost: nearly linear. */
#include "cpu/lines.h"
#include "cpu/passes.h"
#include "lang/ir/build.h"
#include "lang/ir/operands.h"

enum {
    LEAST_BYTES =
        128, /* of a band, where its lanes are neighbours in memory: two cache lines, which are fetched together */
    MOST_BANDS = 64, /* of a program */
    LEAST_OWN = 4,   /* a band's work over what other bands repeat of it */
    COSTLY = 8       /* elements' worth of one of a function such as exp */
};

typedef struct Bands {
    TilePassContext *context;
    TileFunc *func;
    TileOp *loop; /* over programs */
    TileLines lines;
    TILE_LIST(TileOp *) accesses; /* loads and stores */
    TILE_LIST(TileOp *) fills;
    const char *reason; /* why not; NULL: nothing stands in the way so far */
    const TileOp *culprit;
    bool joined;          /* programs of the text are one, along the last dimension of what they store: bands are rows, which it has whatever the columns are */
    const TileOp *shared; /* a load of what other bands would store */
    TILE_LIST(TileOp *) repeated; /* ops in loops of a program whose trip counts are no constants */
} Bands;

static void decline(Bands *bands, const TileOp *op, const char *reason) {
    if (bands->reason) return;
    bands->reason = reason;
    bands->culprit = op;
}

/* ---- what the phase does ---- */

static bool is_constant_loop(const TileOp *op) {
    int64_t number;
    return tile_value_integer(tile_op_named(op, TILE_OPERAND_LO), &number) &&
           tile_value_integer(tile_op_named(op, TILE_OPERAND_HI), &number);
}

static bool is_inside_growing_loop(const Bands *bands, const TileOp *op) {
    for (const TileOp *outer = op->block->op; outer && outer != bands->loop; outer = outer->block->op)
        if (outer->id == TILE_OP_WHILE || (outer->id == TILE_OP_FOR && !is_constant_loop(outer))) return true;
    return false;
}

static void visit(TileOp *op, void *state) {
    Bands *bands = state;
    if (op->id == TILE_OP_LOAD_TILE || op->id == TILE_OP_STORE_TILE) {
        tile_list_push(bands->context->scratch, &bands->accesses, op);
    } else if (op->region_count == 0 && tile_op_writes(op)) {
        decline(bands, op, "it does more than to load and to store");
    }
    if (op->id == TILE_OP_FILL) tile_list_push(bands->context->scratch, &bands->fills, op);
    if (is_inside_growing_loop(bands, op)) tile_list_push(bands->context->scratch, &bands->repeated, op);
    if (!tile_lines_add(&bands->lines, op)) decline(bands, op, "its lanes are not followed here");
}

static TileParameter *parameter_of(const Bands *bands, const TileOp *access) {
    TileValue *tensor = tile_op_named(access, TILE_OPERAND_TENSOR);
    return tensor->block == &bands->func->body ? &bands->func->parameters[tensor->index] : NULL;
}

static void check_memory(Bands *bands) {
    for (size_t i = 0; i < bands->accesses.count; i++) {
        const TileOp *store = bands->accesses.items[i];
        const TileParameter *parameter = store->id == TILE_OP_STORE_TILE ? parameter_of(bands, store) : NULL;
        if (store->id == TILE_OP_STORE_TILE && (!parameter || !parameter->noalias))
            decline(bands, store, "what it stores to may be loaded through another tensor");
    }
}

/* ---- which axis ---- */

/* The axis of the access whose lanes are those of the line, by a range; NULL: there is none, or more than one. */
static const TileAccessIndex *range_of(Bands *bands, const TileOp *op, TileLine line,
                                       TileAccessIndex indices[TILE_MAX_TENSOR_RANK], bool *is_last) {
    const TileValue *value =
        op->id == TILE_OP_LOAD_TILE ? tile_op_result(op, 0) : tile_op_named(op, TILE_OPERAND_VALUE);
    unsigned rank = tile_access_read(op, indices);
    const TileAccessIndex *found = NULL;
    for (unsigned d = 0; d < rank; d++) {
        if (indices[d].axis < 0 || !tile_type_is_tile(value->type)) continue;
        if (tile_lines_of(&bands->lines, value, (unsigned)indices[d].axis) != line) continue;
        if (found || indices[d].kind != TILE_ACCESS_RANGE) return NULL;
        found = &indices[d];
        if (is_last) *is_last = d + 1 == rank;
    }
    return found;
}

static bool is_of_all_stores(Bands *bands, TileLine line) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    for (size_t i = 0; i < bands->accesses.count; i++) {
        const TileOp *op = bands->accesses.items[i];
        if (op->id == TILE_OP_STORE_TILE && !range_of(bands, op, line, indices, NULL)) return false;
    }
    return true;
}

/* Is the value the same for all that a program does? */
static bool is_of_program(const Bands *bands, const TileValue *value) {
    const TileBlock *block = value->op ? value->op->block : value->block;
    return block == &bands->loop->regions[0] || tile_value_outside(value, bands->loop);
}

/* Have both accesses the line along the same dimension of their tensor, each lane at the same place in all iterations? */
static bool is_at_same_places(Bands *bands, const TileOp *load, const TileOp *store, TileLine line) {
    TileAccessIndex own[TILE_MAX_TENSOR_RANK], other[TILE_MAX_TENSOR_RANK];
    const TileAccessIndex *x = range_of(bands, load, line, own, NULL), *y = range_of(bands, store, line, other, NULL);
    if (!x || !y || x - own != y - other) return false;
    for (unsigned i = 0; i < 2; i++) { /* where the range begins, and its step */
        const TileValue *value = tile_op_operand(load, x->operand + i);
        if (!tile_value_is_same(value, tile_op_operand(store, y->operand + i)) || !is_of_program(bands, value)) return false;
    }
    return true;
}

/* A thread may load what another one stores only if both are the same band's. */
static bool is_apart(Bands *bands, TileLine line) {
    for (size_t i = 0; i < bands->accesses.count; i++) {
        const TileOp *store = bands->accesses.items[i];
        for (size_t k = 0; store->id == TILE_OP_STORE_TILE && k < bands->accesses.count; k++) {
            const TileOp *load = bands->accesses.items[k];
            bool loads = load->id == TILE_OP_LOAD_TILE && parameter_of(bands, load) == parameter_of(bands, store);
            if (!loads || is_at_same_places(bands, load, store, line)) continue;
            bands->shared = load;
            return false;
        }
    }
    return true;
}

typedef struct Choice {
    TileLine line;
    int64_t lanes;      /* of the axis */
    int64_t least;      /* of a band */
    int64_t own, again; /* work that is divided, and work that each band does as all others do */
} Choice;

static int64_t lanes_of(const TileValue *value) {
    return tile_type_is_tile(value->type) ? tile_type_lanes(value->type) : 0;
}

/* In elements; of a product, in fused multiply-adds. */
static int64_t work_of(const TileOp *op) {
    int64_t most = 0;
    for (unsigned i = 0; i < op->operand_count + op->result_count; i++) {
        bool operand = i < op->operand_count;
        int64_t lanes = lanes_of(operand ? tile_op_operand(op, i) : tile_op_result(op, i - op->operand_count));
        if (lanes > most) most = lanes;
    }
    if (op->id == TILE_OP_DOT) {
        const TileType *a = tile_op_named(op, TILE_OPERAND_A)->type;
        return lanes_of(tile_op_result(op, 0)) * a->extent[a->rank - 1];
    }
    return tile_op_info((TileOpId)op->id)->traits & TILE_TRAIT_COSTLY ? COSTLY * most : most;
}

static bool has_line(Bands *bands, const TileValue *value, TileLine line) {
    for (unsigned i = 0; tile_type_is_tile(value->type) && i < value->type->rank; i++)
        if (tile_lines_of(&bands->lines, value, i) == line) return true;
    return false;
}

static bool is_divided(Bands *bands, const TileOp *op, TileLine line) {
    if (op->result_count) return has_line(bands, tile_op_result(op, 0), line);
    return op->id == TILE_OP_STORE_TILE && has_line(bands, tile_op_named(op, TILE_OPERAND_VALUE), line);
}

static void weigh(Bands *bands, Choice *choice) {
    for (size_t i = 0; i < bands->repeated.count; i++) {
        const TileOp *op = bands->repeated.items[i];
        if (tile_op_info((TileOpId)op->id)->class == TILE_CLASS_CONTROL) continue;
        *(is_divided(bands, op, choice->line) ? &choice->own : &choice->again) += work_of(op);
    }
}

static Choice measure(Bands *bands, TileLine line, int64_t lanes) {
    Choice choice = {.line = line, .lanes = lanes, .least = tile_lines_is_product(&bands->lines, line) ? 16 : 1};
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    for (size_t i = 0; i < bands->accesses.count; i++) {
        const TileOp *op = bands->accesses.items[i];
        bool is_last = false, has = range_of(bands, op, line, indices, &is_last) != NULL;
        const TileType *type =
            op->id == TILE_OP_LOAD_TILE ? tile_op_result(op, 0)->type : tile_op_named(op, TILE_OPERAND_VALUE)->type;
        int64_t least = is_last && has ? LEAST_BYTES / (int64_t)tile_scalar_bytes(type->scalar) : 1;
        if (least > choice.least) choice.least = least;
    }
    while (choice.lanes / choice.least > MOST_BANDS) choice.least *= 2;
    weigh(bands, &choice);
    return choice;
}

/* The axis of the first store that leaves bands the least to do that others do as well; lanes 0: there is none. */
static Choice choose(Bands *bands) {
    Choice best = {.lanes = 0};
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    const TileOp *store = NULL;
    for (size_t i = 0; i < bands->accesses.count && !store; i++)
        if (bands->accesses.items[i]->id == TILE_OP_STORE_TILE) store = bands->accesses.items[i];
    if (!store) return best;
    const TileValue *value = tile_op_named(store, TILE_OPERAND_VALUE);
    unsigned rank = tile_access_read(store, indices);
    for (unsigned d = 0; d < rank; d++) {
        if (indices[d].kind != TILE_ACCESS_RANGE) continue;
        TileLine line = tile_lines_of(&bands->lines, value, (unsigned)indices[d].axis);
        if (tile_lines_is_mixed(&bands->lines, line) || !is_of_all_stores(bands, line) || !is_apart(bands, line)) continue;
        Choice choice = measure(bands, line, value->type->extent[indices[d].axis]);
        if (choice.own < LEAST_OWN * choice.again || choice.lanes / choice.least < 2) continue;
        bool later = choice.again < best.again || (choice.again == best.again && !bands->joined);
        if (!best.lanes || later) best = choice;
    }
    return best;
}

/* ---- rows that are read again ---- */

/* The loop of the program, over a part of a tensor, that the op is in; NULL: none. */
static const TileOp *pass_of(const Bands *bands, const TileOp *op) {
    const TileOp *found = NULL;
    for (const TileOp *outer = op->block->op; outer && outer != bands->loop; outer = outer->block->op)
        if (outer->id == TILE_OP_WHILE || (outer->id == TILE_OP_FOR && !is_constant_loop(outer))) found = outer;
    return found;
}

/* Does a loop behind the load's read the same rows of the tensor? */
static bool is_read_again(Bands *bands, size_t load, TileLine line) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    const TileOp *op = bands->accesses.items[load], *pass = pass_of(bands, op);
    for (size_t i = 0; i < bands->accesses.count; i++) {
        const TileOp *other = bands->accesses.items[i];
        if (other->id != TILE_OP_LOAD_TILE || parameter_of(bands, other) != parameter_of(bands, op)) continue;
        if (i < load) return false; /* which was asked before */
        const TileOp *behind = pass_of(bands, other);
        if (behind && pass != behind && range_of(bands, other, line, indices, NULL)) return true;
    }
    return false;
}

/* The bytes that the load has in all iterations of a program; NULL: what is known before the programs does not tell. */
static TileValue *bytes_in_program(const Bands *bands, TileBuilder *b, const TileOp *load) {
    const TileType *type = tile_op_result(load, 0)->type;
    int64_t step;
    TileValue *bytes = tile_build_i64(b, lanes_of(tile_op_result(load, 0)) * (int64_t)tile_scalar_bytes(type->scalar));
    for (const TileOp *outer = load->block->op; outer != bands->loop; outer = outer->block->op) {
        if (outer->id != TILE_OP_FOR) return NULL;
        TileValue *lo = tile_op_named(outer, TILE_OPERAND_LO), *hi = tile_op_named(outer, TILE_OPERAND_HI);
        TileValue *by = tile_op_named(outer, TILE_OPERAND_STEP);
        if (!tile_value_integer(by, &step) || !tile_value_outside(lo, bands->loop) || !tile_value_outside(hi, bands->loop))
            return NULL;
        bytes = tile_build_binary(b, TILE_OP_MUL, bytes, tile_build_binary(b, TILE_OP_SUB, hi, lo));
        bytes = tile_build_binary(b, TILE_OP_DIV, bytes, by);
    }
    return bytes;
}

/* What a program reads of its rows and reads again, in bytes; NULL: nothing, or it is not known, or rows load the same,
 * which is loaded once for several of them. */
static TileValue *bytes_again(Bands *bands, TileBuilder *b, TileLine line) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    TileValue *sum = NULL;
    for (size_t i = 0; i < bands->accesses.count; i++) {
        const TileOp *op = bands->accesses.items[i];
        if (op->id != TILE_OP_LOAD_TILE || !pass_of(bands, op)) continue;
        if (!range_of(bands, op, line, indices, NULL)) return NULL;
        TileValue *bytes = is_read_again(bands, i, line) ? bytes_in_program(bands, b, op) : NULL;
        if (bytes) sum = sum ? tile_build_binary(b, TILE_OP_ADD, sum, bytes) : bytes;
    }
    return sum;
}

/* Puts the loop over programs into one over the range's bands, which are taken one at a time where the rows of a program
 * do not stay in the L1 cache until they are read again, and one of them does; else the range is one step. */
static void take_one_at_a_time(Bands *bands, TileLine line, int64_t count) {
    TileOp *loop = bands->loop;
    TileBuilder b = tile_builder_before(bands->context->module, loop);
    TileValue *again = bytes_again(bands, &b, line);
    if (!again) return;
    TileValue *begin = tile_op_named(loop, TILE_OPERAND_LO), *end = tile_op_named(loop, TILE_OPERAND_HI);
    int64_t cache = (int64_t)bands->context->target->l1_bytes;
    TileValue *one = tile_build_i64(&b, 1);
    TileValue *all = tile_build_binary(&b, TILE_OP_MAX, tile_build_binary(&b, TILE_OP_SUB, end, begin), one);
    TileValue *large = tile_build_binary(&b, TILE_OP_GE, again, tile_build_i64(&b, cache));
    TileValue *fits = tile_build_binary(&b, TILE_OP_LE, again, tile_build_i64(&b, cache * count));
    TileValue *step = tile_build_ternary(&b, TILE_OP_SELECT, tile_build_binary(&b, TILE_OP_AND, large, fits), one, all);
    TileOp *steps = tile_build_for(&b, begin, end, step, NULL, 0);
    TileBuilder inside = tile_builder_at_end(bands->context->module, &steps->regions[0]);
    TileValue *from = steps->regions[0].arguments[0];
    TileValue *to = tile_build_binary(&inside, TILE_OP_MIN, tile_build_binary(&inside, TILE_OP_ADD, from, step), end);
    TileOp *yield = tile_build_end(&inside, TILE_OP_YIELD, NULL, 0);
    tile_op_detach(loop);
    tile_op_insert_before(loop, yield);
    tile_op_set_operand(loop, 0, from);
    tile_op_set_operand(loop, 1, to);
    tile_pass_remark(bands->context, loop, TILE_DECISION_ONE_AT_A_TIME, "each program", "%s", "it reads its rows more than once");
}

/* ---- the transformation ---- */

static TileValue *role_of(const TileFunc *func, TileParameterRole role) {
    for (uint32_t i = 0; i < func->body.argument_count; i++)
        if (func->parameters[i].role == role) return func->body.arguments[i];
    return NULL;
}

/* Lanes first .. last of a program, those of its bands in the range. */
static void bound_lanes(Bands *bands, int64_t count, int64_t least, TileValue **first, TileValue **last) {
    TileOp *loop = bands->loop;
    TileValue *begin = tile_op_named(loop, TILE_OPERAND_LO), *end = tile_op_named(loop, TILE_OPERAND_HI);
    TileBuilder b = tile_builder_before(bands->context->module, loop);
    TileValue *many = tile_build_i64(&b, count), *programs = tile_build_binary(&b, TILE_OP_DIV, begin, many);
    TileValue *past = tile_build_binary(&b, TILE_OP_ADD, end, tile_build_i64(&b, count - 1));
    tile_op_set_operand(loop, 0, programs);
    tile_op_set_operand(loop, 1, tile_build_binary(&b, TILE_OP_DIV, past, many));
    b = tile_builder_before(bands->context->module, loop->regions[0].first);
    TileValue *before = tile_build_binary(&b, TILE_OP_MUL, loop->regions[0].arguments[0], many);
    TileValue *from = tile_build_binary(&b, TILE_OP_SUB, begin, before);
    from = tile_build_binary(&b, TILE_OP_MAX, from, tile_build_i64(&b, 0));
    TileValue *lanes = tile_build_i64(&b, least);
    *first = tile_build_binary(&b, TILE_OP_MUL, from, lanes);
    TileValue *to = tile_build_binary(&b, TILE_OP_SUB, end, before);
    to = tile_build_binary(&b, TILE_OP_MIN, to, many);
    *last = tile_build_binary(&b, TILE_OP_MUL, to, lanes);
}

static void bound_operands(Bands *bands, TileOp *op, unsigned lo, TileValue *first, TileValue *last) {
    TileBuilder b = tile_builder_before(bands->context->module, op);
    tile_op_set_operand(op, lo, tile_build_binary(&b, TILE_OP_MAX, tile_op_operand(op, lo), first));
    tile_op_set_operand(op, lo + 1, tile_build_binary(&b, TILE_OP_MIN, tile_op_operand(op, lo + 1), last));
}

/* Lanes that a band does not have may be filled as well as not: then the lanes of a fill are those of what it fills. */
static void bound_fill(Bands *bands, TileOp *fill, const Choice *choice, TileValue *first, TileValue *last) {
    const TileAttribute *axes = tile_op_get(fill, TILE_ATTRIBUTE_AXES);
    unsigned count, bounds = tile_op_operands(fill, TILE_OPERAND_BOUNDS, &count);
    for (unsigned i = 0; i < axes->count; i++)
        if (tile_lines_of(&bands->lines, tile_op_result(fill, 0), (unsigned)axes->integers[i]) == choice->line)
            bound_operands(bands, fill, bounds + 2 * i, first, last);
}

static void divide(Bands *bands, const Choice *choice) {
    int64_t count = (choice->lanes + choice->least - 1) / choice->least;
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    TileValue *first, *last;
    bands->func->bands = (uint32_t)count;
    if (choice->least == 1 && !bands->joined) take_one_at_a_time(bands, choice->line, count);
    bound_lanes(bands, count, choice->least, &first, &last);
    for (size_t i = 0; i < bands->accesses.count; i++) {
        TileOp *op = bands->accesses.items[i];
        const TileAccessIndex *range = range_of(bands, op, choice->line, indices, NULL);
        if (range) bound_operands(bands, op, range->operand + 2, first, last);
    }
    for (size_t i = 0; i < bands->fills.count; i++) bound_fill(bands, bands->fills.items[i], choice, first, last);
}

/* The loop over the range's programs, which `programs` has written. */
static TileOp *program_loop(const TileFunc *func) {
    const TileValue *begin = role_of(func, TILE_ROLE_BEGIN), *end = role_of(func, TILE_ROLE_END);
    for (TileOp *op = func->body.first; op; op = op->next)
        if (op->id == TILE_OP_FOR && tile_op_named(op, TILE_OPERAND_LO) == begin &&
            tile_op_named(op, TILE_OPERAND_HI) == end && op->result_count == 0)
            return op;
    return NULL;
}

TileResult tile_pass_cpu_bands(TilePassContext *context, TileFunc *func) {
    Bands bands = {.context = context, .func = func};
    if (func->kind != TILE_FUNC_PHASE || func->bands || !(bands.loop = program_loop(func)))
        return TILE_RESULT_UNCHANGED;
    tile_lines_init(&bands.lines, func, context->scratch);
    tile_block_walk(&bands.loop->regions[0], visit, &bands);
    bands.joined = tile_op_get(bands.loop, TILE_ATTRIBUTE_JOINED) != NULL;
    if (!bands.repeated.count && !bands.joined) return TILE_RESULT_UNCHANGED;
    check_memory(&bands);
    Choice choice = {.lanes = 0};
    if (!bands.reason) choice = choose(&bands);
    if (choice.lanes) divide(&bands, &choice);
    if (func->bands) {
        tile_pass_remark(context, bands.loop, TILE_DECISION_IN_BANDS, "each program", "%u of them", func->bands);
        return TILE_RESULT_CHANGED;
    }
    if (bands.shared) decline(&bands, bands.shared, "it loads what it stores");
    decline(&bands, bands.loop,
            "along each axis of what it stores, lanes depend on one another or bands would repeat work");
    tile_pass_remark(context, bands.culprit, TILE_DECISION_NOT_IN_BANDS, "each program", "%s", bands.reason);
    return TILE_RESULT_UNCHANGED;
}
