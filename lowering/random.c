/* Purpose: expand `rand` into the program of lang/scalar/random.def, on scalars and on vectors of any length. Lanes whose
 * indices follow one another share Philox's blocks of four words, so that a vector takes a quarter of the blocks.
 *
 * Run: --passes=random,canonicalise,dce
 *
 * Before:
 *     func phase machine @k.0(%y: ptr<global>) {
 *       %seed = const {value = 0} : vec<4 x i64>
 *       %index = iota : vec<4 x i64>
 *       %x = rand %seed, %index : vec<4 x f32>
 *       store %x, %y
 *       return
 *     }
 * After:
 *     func phase machine @k.0(%y: ptr<global>) {
 *       %0 = const {value = 0.88052016} : f32
 *       %1 = const {value = 0.73571277} : f32
 *       %2 = const {value = 0.6054818} : f32
 *       %3 = const {value = 0.39904642} : vec<4 x f32>
 *       %4 = insert %3, %0 {axis = 1} : vec<4 x f32>
 *       %5 = insert %4, %1 {axis = 2} : vec<4 x f32>
 *       %x = insert %5, %2 {axis = 3} : vec<4 x f32>
 *       store %x, %y
 *       return
 *     }
 * The block of index i has the counter i / 4, and word i mod 4 is the lane's. Where the first index of lanes that follow one
 * another is a multiple of four (always, or because the extents are, which a launch guards), they have the words of
 * whole blocks in order. Otherwise there is one block more, and the words move by the first index modulo four.
 *
 * Needs: no tile-typed values. Keeps: every result, bit for bit: lang/scalar/math.c runs the same program.
 * Cost: linear in lanes; about 100 ops for each `rand`. */
#include "lang/index/index.h"
#include "lang/scalar/scalar.h"
#include "lowering/emit.h"

enum { WORDS = 4, MOST_LANES = 64 };

typedef struct Program {
    TileEmitter *emitter;
    TileBuilder *builder;  /* the emitter's */
    const TileType *shape; /* of the blocks */
    bool words;      /* the numbers are the words themselves, as u32 */
    TileScalar word; /* that holds words: u32, or u64, in whose lanes a machine's vector multiplication gives the product */
} Program;

typedef TileValue *F, *U, *M, *W;
typedef struct {
    W word[WORDS];
} BLOCK;

static TileValue *constant(Program *program, TileScalar scalar, uint64_t bits) {
    return tile_emit_bits_like(program->emitter, program->shape, scalar, bits);
}

/* The low word of a U, or of a sum of two words. */
static W low_word(Program *program, TileValue *x) {
    if (program->word == TILE_U64) return tile_emit_with_bits(program->emitter, TILE_OP_AND, x, UINT32_MAX);
    return tile_build_convert(program->builder, x, program->word);
}

#define BINARY(id, x, y) tile_build_binary(program->builder, TILE_OP_##id, x, y)
#define K(number) constant(program, TILE_F32, tile_scalar_from_float(TILE_F32, number))
#define KU(number) constant(program, TILE_U64, number)
#define KW(number) constant(program, program->word, number)
#define MUL(x, y) BINARY(MUL, x, y)
#define SELECT(m, x, y) tile_build_ternary(program->builder, TILE_OP_SELECT, m, x, y)
#define UAND(x, y) BINARY(AND, x, y)
#define UEQ(x, y) BINARY(EQ, x, y)
#define USHR(x, count) tile_emit_with_bits(program->emitter, TILE_OP_SHR, x, count)
#define PRODUCT(x, y) BINARY(MUL, tile_build_convert(program->builder, x, TILE_U64), y)
#define HIGH(x) tile_build_convert(program->builder, USHR(x, 32), program->word)
#define LOW(x) low_word(program, x)
#define WADD(x, y) low_word(program, BINARY(ADD, x, y))
#define WXOR(x, y) BINARY(XOR, x, y)
#define WSHR(x, count) USHR(x, count)
#define SIGNED(x) tile_build_convert(program->builder, tile_build_convert(program->builder, x, TILE_I32), TILE_F32)

#define PARAMETERS(...) __VA_ARGS__
#define PROGRAM(name, R, parameters) static R random_##name(Program *program, PARAMETERS parameters)
#define CALL(name, ...) random_##name(program, __VA_ARGS__)
#include "lang/scalar/random.def"
#undef PROGRAM
#undef CALL

typedef struct Random {
    TileEmitter emitter;
    TileBuilder *builder;
    bool words; /* the op that is expanded gives words */
    TileIndices *always, *supposed; /* without and with the assumption that extents are multiples of WORDS */
} Random;

/* Lanes of a `rand` whose indices follow one another. */
typedef struct Run {
    TileValue *seed, *first; /* scalars: the seed, and the index of the first lane */
    int64_t lanes;
    int64_t divisor; /* 1, 2 or 4: divides the first index */
} Run;

static Program program_of(Random *random, const TileType *shape) {
    TileScalar word = random->emitter.target.word_registers ? TILE_U32 : TILE_U64;
    return (Program){&random->emitter, random->builder, shape, random->words, word};
}

/* What the op gives for a word. */
static TileValue *number_of(Program *program, W word) {
    if (!program->words) return random_number(program, word);
    return program->word == TILE_U32 ? word : tile_build_convert(program->builder, word, TILE_U32);
}

static TileValue *number_at(Program *program, U seed, U index) {
    return number_of(program, random_word_at(program, seed, index));
}

/* ---- what is known of lanes ---- */

static bool is_followed(const TileOp *op) {
    return tile_op_info((TileOpId)op->id)->class == TILE_CLASS_ELEMENTWISE && op->result_count == 1 &&
           (op->id == TILE_OP_ADD || op->id == TILE_OP_SUB || op->id == TILE_OP_MUL || op->id == TILE_OP_SHL ||
            op->id == TILE_OP_CONVERT);
}

static TileValue *lane_of(Random *random, TileValue *vector, int64_t lane);

/* The same for a lane that a scalar was taken from. */
static TileValue *scalar_of(Random *random, TileValue *scalar) {
    const TileOp *op = tile_value_def(scalar, TILE_OP_EXTRACT);
    return op ? lane_of(random, tile_op_operand(op, 0), tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0)) : scalar;
}

/* A lane of a vector as a scalar of its own, so that sums can be compared. */
static TileValue *lane_of(Random *random, TileValue *vector, int64_t lane) {
    TileBuilder *b = random->builder;
    uint64_t bits;
    if (vector->type->kind != TILE_TYPE_VECTOR) return vector;
    TileOp *op = vector->op;
    const TileType *type = tile_type_scalar(b->module->context, vector->type->scalar);
    if (tile_value_bits(vector, &bits)) return tile_emit_bits(&random->emitter, type, bits);
    if (!op) return tile_build_extract(b, vector, lane);
    if (op->id == TILE_OP_SPLAT) return scalar_of(random, tile_op_operand(op, 0));
    if (op->id == TILE_OP_IOTA) return tile_emit_bits(&random->emitter, type, (uint64_t)lane);
    if (op->id == TILE_OP_INSERT) {
        bool here = tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0) == lane;
        return here ? scalar_of(random, tile_op_operand(op, 1)) : lane_of(random, tile_op_operand(op, 0), lane);
    }
    if (op->id == TILE_OP_SHUFFLE) {
        int64_t from = tile_op_get(op, TILE_ATTRIBUTE_AXES)->integers[lane];
        int64_t first = tile_type_lanes(tile_op_operand(op, 0)->type);
        return lane_of(random, tile_op_operand(op, from >= first), from >= first ? from - first : from);
    }
    if (!is_followed(op)) return tile_build_extract(b, vector, lane);
    TileValue *x = lane_of(random, tile_op_operand(op, 0), lane);
    if (op->id == TILE_OP_CONVERT) return tile_build_convert(b, x, vector->type->scalar);
    return tile_build_binary(b, (TileOpId)op->id, x, lane_of(random, tile_op_operand(op, 1), lane));
}

static bool is_ahead_by(Random *random, const TileValue *a, const TileValue *b, int64_t distance) {
    int64_t found;
    return (a == b && !distance) || (tile_index_offset(random->always, a, b, &found) && found == distance);
}

static int64_t divisor_of(Random *random, const TileValue *index) {
    TileIndexRange range = tile_index_range(random->supposed, index);
    if (range.multiple % WORDS == 0 && tile_index_ask(random->supposed, range.because)) return WORDS;
    int64_t multiple = tile_index_range(random->always, index).multiple;
    return multiple % WORDS == 0 ? WORDS : multiple % 2 == 0 ? 2 : 1;
}

/* Whole blocks that hold the words of a run, wherever in the first block it begins. */
static int64_t blocks_of(const Run *run) { return (run->lanes + 2 * WORDS - 1 - run->divisor) / WORDS; }

/* Runs in the order of their lanes; returns their number. *shared: do they need fewer blocks than there are lanes? */
static unsigned find_runs(Random *random, const TileOp *op, Run *runs, bool *shared) {
    TileValue *seeds = tile_op_operand(op, 0), *indices = tile_op_operand(op, 1);
    int64_t lanes = tile_type_lanes(indices->type), blocks = 0;
    unsigned count = 0;
    for (int64_t lane = 0; lane < lanes; lane++) {
        TileValue *seed = lane_of(random, seeds, lane), *index = lane_of(random, indices, lane);
        Run *last = count ? &runs[count - 1] : NULL;
        if (last && is_ahead_by(random, seed, last->seed, 0) && is_ahead_by(random, index, last->first, last->lanes))
            last->lanes++;
        else
            runs[count++] = (Run){seed, index, 1, 1};
    }
    for (unsigned i = 0; i < count; i++) {
        if (runs[i].lanes > 1) runs[i].divisor = divisor_of(random, runs[i].first);
        blocks += runs[i].lanes > 1 ? blocks_of(&runs[i]) : 1;
    }
    *shared = blocks < lanes;
    return count;
}

/* ---- shared blocks ---- */

/* Lanes first .. first + count of a vector. */
static TileValue *part(Random *random, TileValue *vector, int64_t first, int64_t count) {
    int64_t lanes[MOST_LANES + 2 * WORDS];
    if (!first && count == tile_type_lanes(vector->type)) return vector;
    for (int64_t i = 0; i < count; i++) lanes[i] = first + i;
    return tile_build_shuffle(random->builder, vector, vector, lanes, (unsigned)count);
}

/* The lanes of both vectors alternately. */
static TileValue *interleave(Random *random, TileValue *x, TileValue *y) {
    int64_t lanes[MOST_LANES + 2 * WORDS], count = tile_type_lanes(x->type);
    for (int64_t i = 0; i < 2 * count; i++) lanes[i] = i / 2 + i % 2 * count;
    return tile_build_shuffle(random->builder, x, y, lanes, (unsigned)(2 * count));
}

/* The numbers of all words of blocks, in order; blocks is the number of lanes. */
static TileValue *numbers_in_order(Random *random, Program *program, const BLOCK *block, int64_t blocks) {
    TileValue *x[WORDS];
    for (unsigned i = 0; i < WORDS; i++) x[i] = number_of(program, block->word[i]);
    if (blocks > 1) return interleave(random, interleave(random, x[0], x[2]), interleave(random, x[1], x[3]));
    const TileType *type = tile_type_vector(random->builder->module->context, x[0]->type->scalar, WORDS, false);
    TileValue *joined = tile_build_splat(random->builder, x[0], type);
    for (unsigned i = 1; i < WORDS; i++) joined = tile_build_insert(random->builder, joined, x[i], i);
    return joined;
}

static TileValue *expand_blocks(Random *random, U seed, U index, int64_t blocks);

/* The same block by block, where registers have one word each: a product of vectors would be two, of its upper and its lower half. */
static TileValue *expand_each_block(Random *random, U seed, U index, int64_t blocks) {
    TileBuilder *b = random->builder;
    TileValue *joined = NULL;
    for (int64_t k = 0; k < blocks; k++) {
        U first = tile_emit_with_bits(&random->emitter, TILE_OP_ADD, index, (uint64_t)(k * WORDS));
        TileValue *numbers = expand_blocks(random, seed, first, 1);
        const TileType *type = tile_type_vector(b->module->context, numbers->type->scalar, blocks * WORDS, false);
        for (int64_t i = 0; i < WORDS; i++) {
            TileValue *x = tile_build_extract(b, numbers, i);
            joined = joined ? tile_build_insert(b, joined, x, k * WORDS + i) : tile_build_splat(b, x, type);
        }
    }
    return joined;
}

/* The numbers of `blocks` blocks from that of `index`, a u64, on. Indices wrap before they are divided by four. */
static TileValue *expand_blocks(Random *random, U seed, U index, int64_t blocks) {
    TileBuilder *b = random->builder;
    const TileType *shape = index->type;
    U counter = index;
    if (blocks > 1 && random->emitter.target.word_registers) return expand_each_block(random, seed, index, blocks);
    if (blocks > 1) {
        shape = tile_type_vector(b->module->context, TILE_U64, blocks, false);
        seed = tile_build_splat(b, seed, shape);
        U steps = tile_emit_with_bits(&random->emitter, TILE_OP_MUL, tile_build_iota(b, shape, 0), WORDS);
        counter = tile_emit_binary(&random->emitter, TILE_OP_ADD, tile_build_splat(b, counter, shape), steps);
    }
    counter = tile_emit_with_bits(&random->emitter, TILE_OP_SHR, counter, 2);
    Program program = program_of(random, shape);
    BLOCK block = random_philox(&program, seed, counter);
    return numbers_in_order(random, &program, &block, blocks);
}

/* One block more behind the numbers: a scalar, beside vectors of a length that machines have. */
static TileValue *append_block(Random *random, TileValue *numbers, U seed, U index) {
    int64_t count = tile_type_lanes(numbers->type);
    U after = tile_emit_with_bits(&random->emitter, TILE_OP_ADD, index, (uint64_t)count);
    TileValue *more = expand_blocks(random, seed, after, 1);
    int64_t lanes[MOST_LANES + 2 * WORDS];
    for (int64_t i = 0; i < count + WORDS; i++) lanes[i] = i < count ? i : 0;
    numbers = tile_build_shuffle(random->builder, numbers, numbers, lanes, (unsigned)(count + WORDS));
    for (int64_t i = 0; i < WORDS; i++)
        numbers = tile_build_insert(random->builder, numbers, tile_build_extract(random->builder, more, i), count + i);
    return numbers;
}

/* Moves the vector's lanes down by `bit`, to `count` lanes, where the index has that bit. */
static TileValue *move_down(Random *random, TileValue *vector, U index, int64_t bit, int64_t count) {
    TileValue *moves = tile_emit_with_bits(&random->emitter, TILE_OP_AND, index, (uint64_t)bit);
    moves = tile_emit_with_bits(&random->emitter, TILE_OP_NE, moves, 0);
    return tile_emit_select(&random->emitter, moves, part(random, vector, bit, count), part(random, vector, 0, count));
}

/* The numbers of a run's lanes; a scalar if it is one. */
static TileValue *expand_run(Random *random, const Run *run) {
    U seed = tile_build_bitcast(random->builder, run->seed, TILE_U64);
    U index = tile_build_bitcast(random->builder, run->first, TILE_U64);
    if (run->lanes == 1) {
        Program program = program_of(random, index->type);
        return number_at(&program, seed, index);
    }
    int64_t whole = (run->lanes + WORDS - 1) / WORDS;
    TileValue *numbers = expand_blocks(random, seed, index, whole);
    if (blocks_of(run) > whole) numbers = append_block(random, numbers, seed, index);
    if (run->divisor < WORDS) numbers = move_down(random, numbers, index, 2, run->lanes + (run->divisor < 2));
    if (run->divisor < 2) numbers = move_down(random, numbers, index, 1, run->lanes);
    return part(random, numbers, 0, run->lanes);
}

static TileValue *join(Random *random, const Run *runs, unsigned count, const TileType *type) {
    TileValue *joined = NULL;
    int64_t lane = 0;
    for (unsigned i = 0; i < count; i++) {
        TileValue *numbers = expand_run(random, &runs[i]);
        if (count == 1) return numbers;
        for (int64_t k = 0; k < runs[i].lanes; k++, lane++) {
            TileValue *x = runs[i].lanes > 1 ? tile_build_extract(random->builder, numbers, k) : numbers;
            joined = joined ? tile_build_insert(random->builder, joined, x, lane)
                            : tile_build_splat(random->builder, x, type);
        }
    }
    return joined;
}

/* ---- the pass ---- */

/* Each lane by itself. */
static TileValue *expand_lanes(Random *random, const TileOp *op) {
    TileBuilder *b = random->builder;
    const TileType *type = op->results[0].type;
    U seed = tile_build_bitcast(b, tile_op_operand(op, 0), TILE_U64), index = tile_build_bitcast(b, tile_op_operand(op, 1), TILE_U64);
    TileValue *joined = NULL;
    if (type->kind != TILE_TYPE_VECTOR || !random->emitter.target.word_registers) {
        Program program = program_of(random, type);
        return number_at(&program, seed, index);
    }
    for (int64_t lane = 0; lane < tile_type_lanes(type); lane++) {
        Program program = program_of(random, tile_type_scalar(b->module->context, type->scalar));
        TileValue *x = number_at(&program, tile_build_extract(b, seed, lane), tile_build_extract(b, index, lane));
        joined = joined ? tile_build_insert(b, joined, x, lane) : tile_build_splat(b, x, type);
    }
    return joined;
}

static void expand(TileOp *op, void *state) {
    if (op->id != TILE_OP_RAND) return;
    Random *random = state;
    const TileType *type = tile_op_result(op, 0)->type;
    Run runs[MOST_LANES];
    unsigned count = 0;
    bool shared = false;
    random->words = type->scalar == TILE_U32;
    tile_emit_before(&random->emitter, op);
    if (type->kind == TILE_TYPE_VECTOR && !type->scalable && tile_type_lanes(type) <= MOST_LANES)
        count = find_runs(random, op, runs, &shared);
    tile_emit_replace(&random->emitter, op, shared ? join(random, runs, count, type) : expand_lanes(random, op));
}

TileResult tile_pass_random(TilePassContext *context, TileFunc *func) {
    Random random = {.emitter = tile_emitter_create(context, func),
                     .always = tile_indices_create(context->scratch, func),
                     .supposed = tile_indices_suppose(context->scratch, func, WORDS)};
    random.builder = &random.emitter.builder;
    tile_block_walk(&func->body, expand, &random);
    return tile_emit_finish(&random.emitter, context);
}
