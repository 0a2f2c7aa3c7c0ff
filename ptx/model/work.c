/* What one program of a phase does. The walk visits each op once: a loop counts as often as it runs, and its values are
 * those in the middle of its iteration space. */
#include <math.h>

#include "lang/ir/eval.h"
#include "ptx/layouts/blocked.h"
#include "ptx/model/model.h"
#include "ptx/model/numbers.h"
#include "ptx/model/products.h"
#include "ptx/pipeline/copies.h"
#include "ptx/target/dot.h"
#include "ptx/target/map.h"
#include "ptx/target/multiply_adds.h"

enum { UNKNOWN_TRIPS = 8, SECTOR_BYTES = 32, VECTOR_BYTES = 16, PREDICATED_BYTES = 8, SCHEDULERS = 4 };

/* Cycles until a result can be used, beyond those of issuing. */
enum { OF_OPERATION = 4, OF_MEMORY = 700, OF_EXCHANGE = 30, OF_BARRIER = 80, OF_CHANNEL = 30, OF_BEGINNING = 300, OF_PUT = 300 };

/* From the end of a warpgroup's products to the beginning of the next iteration's; and from one slot's beginning to the next's, at
 * least. */
enum { GROUP_WARPS = 4, OF_PRODUCTS = 160, OF_SLOT = 190 };

/* Of a loop that computes with the sums of products, whose tiles are copied ahead, by warps of their own or by all: waits, counts of slots, descriptors; a barrier, addresses. */
enum { OF_ITERATION = 100, OF_OWN_ITERATION = 40 };
/* Instructions of a warp: of a vector with its address and predicate, of an element by itself, of an element through shared memory and
 * back. */
enum { OF_VECTOR = 5, OF_ELEMENT = 12, OF_COPIED_ELEMENT = 70, OF_COPIED_WORD = 8, OF_TURNED_WORD = 6, OF_MOVE = 4, OF_UPDATE = 16, OF_PROGRAM = 50, OF_KEYS = 110 };

/* That each warp issues in an iteration for scalars: a quotient, by a number that is not known; the bounds along an axis of a tile of words
 * that is not whole or whose rows are of several axes. */
enum { OF_QUOTIENT = 25, OF_BOUNDS = 40 };

/* Slots that products read, on average, where those of one iteration stay under way until the next one's have begun. */
static const double HELD_IN_TURN = 1.3;

typedef struct Walk {
    const TilePtxTarget *target;
    GpuNumbers numbers;
    GpuWork *work;
    double *ready;  /* by TileValue.number: the cycle from which a value can be used */
    double times;   /* that the ops of the current block run in a program */
    double warps;   /* of the block, those with work of their own */
    double busy;    /* warps of one scheduler */
    double carried; /* registers of a thread that surrounding loops carry */
    double copied;  /* bytes that the current loop copies ahead in an iteration */
    double slots;   /* that they have, at least */
    double fill;    /* cycles until the first tiles come that warps of their own copy, once for a program */
    bool flows;     /* they copy for the current loop, and for the next loop while this one ends */
    int64_t program;
    double looped;  /* cycles until the last loop so far has ended */
    unsigned loops; /* around the current block, beside that of the programs */
    double sums;    /* of a thread, of the products so far */
    bool turns;     /* programs of a block multiply in turn */
    bool tensor_cores, neighbours, fits;
} Walk;

static double most(double a, double b) { return a > b ? a : b; }

/* ---- tiles ---- */

static double lanes_of(const TileType *type) { return tile_type_is_tile(type) ? (double)tile_type_lanes(type) : 1; }

/* Elements that a thread has; where a tile has fewer than there are threads, some threads repeat others' work. */
static double elements_of(const Walk *walk, const TileType *type) {
    double lanes = lanes_of(type), threads = walk->warps * TILE_WARP_THREADS;
    return lanes > threads ? lanes / threads : 1;
}

/* Is it computed again wherever it is used, or does it lie in shared memory? */
static bool takes_no_registers(const TileValue *value) {
    const TileOp *op = value->op;
    if (!tile_type_is_tile(value->type)) return true;
    if (!op) return false;
    switch (op->id) {
    case TILE_OP_CONST:
    case TILE_OP_IOTA:
    case TILE_OP_SPLAT:
    case TILE_OP_BROADCAST: return true;
    case TILE_OP_LOAD_TILE: return gpu_load_is_copied(op);
    case TILE_OP_FILL:
    case TILE_OP_RESHAPE:
    case TILE_OP_PERMUTE: return takes_no_registers(tile_op_operand(op, 0));
    }
    return false;
}

static double registers_of(Walk *walk, const TileValue *value) {
    if (takes_no_registers(value)) return 0;
    double elements = elements_of(walk, value->type);
    if (elements > walk->target->registers_thread) walk->fits = false;
    return elements * (double)tile_scalar_bytes(value->type->scalar) / 4;
}

/* What a loop carries is counted with the loop, and takes the place of what it was before. */
static bool is_carried(const TileValue *value) {
    bool next = tile_value_has_one_use(value) && value->first_use->user->id == TILE_OP_YIELD;
    return !value->op || next;
}

static void count_registers(Walk *walk, const TileOp *op) {
    double live = walk->carried, most_live = walk->target->registers_thread - GPU_OTHER_REGISTERS;
    for (unsigned i = 0; i < op->operand_count; i++)
        if (!is_carried(tile_op_operand(op, i))) live += registers_of(walk, tile_op_operand(op, i));
    for (unsigned i = 0; i < op->result_count; i++)
        if (!is_carried(&op->results[i])) live += registers_of(walk, &op->results[i]);
    if (walk->work->multiplies && walk->loops == 0 && live > most_live) live = most_live; /* behind products sums are stored and loaded once */
    walk->work->registers = most(walk->work->registers, live);
}

/* ---- time ---- */

static double ready_operands(const Walk *walk, const TileOp *op, double begin) {
    for (unsigned i = 0; i < op->operand_count; i++) begin = most(begin, walk->ready[tile_op_operand(op, i)->number]);
    return begin;
}

/* Each thread issues so many instructions, and the result is ready `latency` cycles after the last one. */
static double issue(Walk *walk, const TileOp *op, double begin, double instructions, double latency) {
    walk->work->instructions += walk->times * walk->warps * instructions;
    walk->work->code += instructions;
    if (walk->loops == 0) walk->work->beside += instructions * walk->busy;
    double end = ready_operands(walk, op, begin) + instructions * walk->busy + latency;
    for (unsigned i = 0; i < op->result_count; i++) walk->ready[op->results[i].number] = end;
    return end;
}

/* ---- elementwise ---- */

static double instructions_of(const TileOp *op) {
    bool approx = tile_op_integer(op, TILE_ATTRIBUTE_APPROX, 0) != 0;
    static const struct {
        uint8_t exact, approx;
    } rows[TILE_OP_COUNT] = {
#define INSTRUCTIONS(id, exact_, approx_) [TILE_OP_##id] = {exact_, approx_},
#include "ptx/model/costs.def"
#undef INSTRUCTIONS
    };
    double count = approx ? rows[op->id].approx : rows[op->id].exact;
    return count ? count : 1;
}

/* Scalars are computed once for a warp, by another unit, beside the tiles, but quotients. */
static double do_elementwise(Walk *walk, const TileOp *op, double begin) {
    const TileType *type = op->results[0].type;
    bool quotient = (op->id == TILE_OP_DIV || op->id == TILE_OP_REM) && walk->loops && !tile_value_def(tile_op_operand(op, 1), TILE_OP_CONST);
    if (!tile_type_is_tile(type)) return issue(walk, op, begin, quotient ? OF_QUOTIENT : 0, OF_OPERATION);
    double width = tile_scalar_bits(type->scalar) == 64 ? 2 : 1;
    double keys = op->id == TILE_OP_RAND ? OF_KEYS : 0; /* of the rounds, which each thread computes once */
    return issue(walk, op, begin, width * instructions_of(op) * elements_of(walk, type) + keys, OF_OPERATION);
}

/* ---- memory ---- */

typedef struct Piece {
    double valid;   /* lanes of the tile that are inside */
    double bytes;   /* in sectors */
    double vectors; /* accesses of a thread's, if all threads take part */
    bool whole;     /* no lane is outside, and rows are aligned: vectors move without questions */
    double lines;   /* bytes of all lines of the L2 cache of which the rows of boxes have a part */
    double even;    /* bytes of vectors that have a predicate each and that rows consist of; 0: elements */
    double pieces;  /* a thread has so many neighbours, which it moves one by one */
} Piece;

static double count_valid(const Walk *walk, const TileAccessIndex *index, double extent) {
    int64_t length;
    if (!gpu_number_length(&walk->numbers, index->lo, index->hi, &length)) return extent;
    double count = (double)length;
    return count < 0 ? 0 : count > extent ? extent : count;
}

static double round_up(double value, double to) {
    int64_t pieces = (int64_t)((value + to - 1) / to);
    return (double)pieces * to;
}

/* What divides the addresses of the tensor's rows, in bytes. */
static unsigned grain_of(const Walk *walk, const TileOp *op) {
    const TileValue *tensor = tile_op_operand(op, 0);
    const TileExtents *extents = walk->numbers.extents;
    if (tensor->block != &walk->numbers.func->body) return 1;
    uint32_t argument = walk->numbers.func->parameters[tensor->index].argument;
    return argument < extents->count && extents->grain[argument] ? extents->grain[argument] : TILE_LINE_BYTES;
}

/* The widest vectors, of up to 8 bytes, in which rows begin and end; 0: they are single elements. */
static double even_bytes(unsigned grain, double element, double run) {
    unsigned bytes = grain < PREDICATED_BYTES ? grain : PREDICATED_BYTES;
    while (bytes > element && (int64_t)(run * element) % bytes) bytes /= 2;
    return bytes > element ? bytes : 0;
}

/* A row of a box, of at most a line's length, is asked for line by line, however little of each it has: rows that begin anywhere have
 * a part of one line more, most of them. */
static double bytes_of_lines(unsigned grain, double bytes) {
    double boxes = ceil(bytes / TILE_LINE_BYTES), row = bytes / boxes;
    double more = grain < TILE_LINE_BYTES ? (row - grain) / TILE_LINE_BYTES : 0;
    return boxes * TILE_LINE_BYTES * (1 + most(0, more));
}

static Piece look_at_access(const Walk *walk, const TileOp *op, const TileType *tile) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    unsigned rank = tile_access_read(op, indices), last = rank - 1;
    double element = (double)tile_scalar_bytes(tile->scalar), lanes = lanes_of(tile);
    Piece piece = {.valid = lanes, .whole = true};
    double run = 1; /* neighbouring elements */
    for (unsigned i = 0; i < rank; i++) {
        if (indices[i].kind != TILE_ACCESS_RANGE) continue;
        double extent = (double)tile->extent[indices[i].axis], valid = count_valid(walk, &indices[i], extent);
        piece.valid *= valid / extent;
        piece.whole &= valid == extent;
        if (i == last && gpu_number_or(&walk->numbers, indices[i].step, 1) == 1) run = valid;
    }
    bool rows = rank && indices[last].kind == TILE_ACCESS_RANGE && indices[last].axis == (int)tile->rank - 1;
    bool vectors = rows && !tile_op_has_part(op, TILE_PARTS_MASK);
    unsigned grain = tile_op_get(op, TILE_ATTRIBUTE_FLAT) ? VECTOR_BYTES : grain_of(walk, op);
    bool odd = rank > 1 && grain < PREDICATED_BYTES && !walk->neighbours; /* lanes have neighbours then */
    piece.whole &= vectors && (odd || grain >= VECTOR_BYTES);
    piece.even = vectors ? even_bytes(grain, element, run) : 0;
    piece.bytes = run > 0 ? piece.valid / run * round_up(run * element, SECTOR_BYTES) : 0;
    piece.lines = run > 0 ? piece.valid / run * bytes_of_lines(grain, run * element) : 0;
    double vector = odd ? most(1, grain / element) : VECTOR_BYTES / element;
    if (rows && (double)tile->extent[tile->rank - 1] < vector) vector = (double)tile->extent[tile->rank - 1];
    double held = elements_of(walk, tile);
    if (vector > held) vector = held;
    if (!rows || vector < 1) vector = 1;
    piece.vectors = held / vector;
    piece.pieces = rows && rank > 1 && grain < PREDICATED_BYTES && walk->neighbours ? vector : 1;
    return piece;
}

static void count_bytes(Walk *walk, const TileOp *op, const Piece *piece) {
    const TileValue *tensor = tile_op_operand(op, 0);
    walk->work->port += walk->times * (gpu_by_map(op) ? piece->lines / GPU_BOXES_BYTES_CYCLE : piece->bytes / GPU_PORT_BYTES_CYCLE);
    if (tensor->block == &walk->numbers.func->body)
        walk->work->moved[walk->numbers.func->parameters[tensor->index].argument] += walk->times * piece->bytes;
}

static double instructions_of_access(const Walk *walk, const Piece *piece, const TileType *tile) {
    double bytes = elements_of(walk, tile) * (double)tile_scalar_bytes(tile->scalar);
    if (piece->whole) return piece->vectors * OF_VECTOR;
    return piece->even > 0 ? most(1, bytes / piece->even) * (OF_VECTOR + 3) : elements_of(walk, tile) * OF_ELEMENT;
}

/* Threads read what they compute with as fragments: of 16 bits, by matrices, else in pairs. */
static double instructions_of_reading(const Walk *walk, const TileOp *load, const TileType *tile) {
    enum { OF_MATRICES = 8, PAIR = 2 };
    if (!gpu_load_is_computed(load)) return 0;
    return elements_of(walk, tile) / (tile_scalar_bits(tile->scalar) == 16 ? OF_MATRICES : PAIR);
}

/* Copies run beside the products: they take a share of an iteration's time only if they come too late. */
static double do_copied(Walk *walk, const TileOp *op, double begin, const Piece *piece, const TileType *tile, double bounds) {
    int64_t slots = tile_op_integer(op, TILE_ATTRIBUTE_LATENCY, 0) + 1;
    walk->work->shared += (double)slots * lanes_of(tile) * (double)tile_scalar_bytes(tile->scalar);
    walk->copied += slots > 1 ? piece->bytes : 0;
    walk->flows |= gpu_by_map(op);
    if (slots > 1 && (walk->slots == 0 || (double)slots < walk->slots)) walk->slots = (double)slots;
    bool words = tile_scalar_bytes(tile->scalar) >= 4, turned = gpu_load_is_turned(op);
    double instructions = gpu_by_map(op) ? instructions_of_reading(walk, op, tile)
                          : turned       ? elements_of(walk, tile) * (piece->whole ? OF_TURNED_WORD : OF_COPIED_WORD + OF_TURNED_WORD)
                          : piece->whole ? piece->vectors * OF_VECTOR
                                         : elements_of(walk, tile) * (words ? OF_COPIED_WORD : OF_COPIED_ELEMENT);
    return issue(walk, op, begin, instructions + bounds, slots > 1 ? OF_CHANNEL : OF_MEMORY + OF_BARRIER);
}

/* What is loaded for each sum comes with the share of the memory that a multiprocessor has. A value and its address take a register
 * each; where these do not suffice, loads wait for one another. */
static void count_awaited(Walk *walk, const TileType *tile, const Piece *piece) {
    enum { REGISTERS_OF_LOADED = 2, OTHERS = 28, MOST_REGISTERS = 240 };
    const double OF_LACKING = 1.5;
    const TilePtxTarget *target = walk->target;
    double share = target->memory_gbs * 1e3 / (target->cores * target->clock_mhz), held = elements_of(walk, tile);
    double lacking = most(0, walk->sums + REGISTERS_OF_LOADED * held + OTHERS - MOST_REGISTERS) / MOST_REGISTERS;
    double awaited = (OF_MEMORY + piece->bytes / share) * (1 + OF_LACKING * lacking);
    walk->work->awaited = most(walk->work->awaited, awaited);
}

static bool feeds_products_only(const TileValue *value) {
    for (const TileUse *use = value->first_use; use; use = use->next)
        if (use->user->id != TILE_OP_DOT && !((use->user->id == TILE_OP_FILL || use->user->id == TILE_OP_RESHAPE) &&
                                              feeds_products_only(&use->user->results[0])))
            return false;
    return true;
}

static double do_load(Walk *walk, const TileOp *op, double begin) {
    const TileType *tile = op->results[0].type;
    if (!tile_type_is_tile(tile)) return issue(walk, op, begin, 0, OF_MEMORY);
    Piece piece = look_at_access(walk, op, tile);
    count_bytes(walk, op, &piece);
    bool ahead = tile_op_get(op, TILE_ATTRIBUTE_LATENCY) != NULL;
    bool words = tile_scalar_bytes(tile->scalar) >= 4 && walk->loops && !gpu_by_map(op) && feeds_products_only(&op->results[0]);
    double bounds = words && (!piece.whole || tile->rank > 2) ? tile->rank * OF_BOUNDS : 0;
    if (gpu_load_is_copied(op) || ahead) return do_copied(walk, op, begin, &piece, tile, bounds);
    if (walk->loops == 0 && tile->rank > 1) count_awaited(walk, tile, &piece);
    return issue(walk, op, begin, instructions_of_access(walk, &piece, tile) + bounds, OF_MEMORY);
}

static double do_store(Walk *walk, const TileOp *op, double begin) {
    enum { LEAST_EXCHANGED = 4096 };
    const TileType *tile = tile_op_named(op, TILE_OPERAND_VALUE)->type;
    if (!tile_type_is_tile(tile)) return issue(walk, op, begin, OF_VECTOR, 0);
    Piece piece = look_at_access(walk, op, tile);
    count_bytes(walk, op, &piece);
    if (op->id == TILE_OP_ATOMIC_TILE) return issue(walk, op, begin, elements_of(walk, tile) * OF_UPDATE, OF_MEMORY);
    if (gpu_by_map(op)) walk->work->shared += lanes_of(tile) * (double)tile_scalar_bytes(tile->scalar);
    double instructions = instructions_of_access(walk, &piece, tile);
    if (tile_op_get(op, TILE_ATTRIBUTE_FLAT) && piece.whole) walk->work->vectors = most(walk->work->vectors, piece.vectors);
    bool exchanged = tile->extent[tile->rank - 1] >= LEAST_EXCHANGED; /* ptx/lowering/turned.c */
    if (piece.pieces > 1 && walk->loops && !exchanged) /* of each sector a piece for each of a thread's neighbours; else lanes get neighbours */
        walk->work->port += walk->times * piece.bytes * (piece.pieces - 1) / GPU_PORT_BYTES_CYCLE;
    else if (piece.pieces > 1 && !walk->loops)
        instructions += elements_of(walk, tile) * (1 + 1 / piece.pieces);
    return issue(walk, op, begin, instructions, piece.pieces > 1 && !walk->loops ? OF_BARRIER : 0);
}

/* ---- reductions ---- */

/* Threads lie along the last axis first, a vector each, then along the others. */
static double do_reduction(Walk *walk, const TileOp *op, double begin) {
    const TileType *tile = tile_op_operand(op, 0)->type;
    unsigned axis = (unsigned)tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0);
    double threads = walk->warps * TILE_WARP_THREADS, held = elements_of(walk, tile), across;
    double vector = VECTOR_BYTES / (double)tile_scalar_bytes(tile->scalar);
    double row = (double)tile->extent[tile->rank - 1] / (held < vector ? held : vector);
    double along = row < threads ? (row < 1 ? 1 : row) : threads; /* threads of a row */
    across = axis + 1 == tile->rank ? along : threads / along;
    for (unsigned i = tile->rank - 1u; i > axis + 1u; i--) across = most(1, across / (double)tile->extent[i - 1]);
    if (across > (double)tile->extent[axis]) across = (double)tile->extent[axis];
    double lanes = axis + 1 == tile->rank ? most(1, across < TILE_WARP_THREADS ? across : TILE_WARP_THREADS)
                                          : most(1, TILE_WARP_THREADS / along);
    if (walk->tensor_cores) lanes = across = axis + 1 == tile->rank ? 4 : 8;
    double warps = across / lanes, steps = 0, combine = op->id == TILE_OP_REDUCE ? 1 : 4;
    for (double n = 1; n < lanes; n *= 2) steps++;
    double results = most(1, held * across / (double)tile->extent[axis]);
    double instructions = combine * (held + 2 * steps * results),
           latency = OF_OPERATION + steps * combine * OF_EXCHANGE;
    if (warps > 1) {
        instructions += OF_MOVE * results + combine * warps * results;
        latency += 2 * OF_BARRIER;
    }
    return issue(walk, op, begin, instructions, latency);
}

/* ---- products ---- */

/* Operands in registers pass through shared memory. Products that are not laid out for the banks of the register file take longer. */
static double do_multiply_adds(Walk *walk, const TileOp *dot, double begin, double k) {
    enum { STEPS = 4, OF_STORE = 2, OF_WAITS = 50 }; /* waits, barriers, and what begins again behind them */
    const double SHOWN = 0.35; /* of waiting, where a scheduler has other warps of the block */
    static const double OF_ROWS[] = {1.06, 1.06, 1.09}; /* so many operands along k, which lie in one bank of the register file */
    const TileType *result = dot->results[0].type;
    bool large = gpu_multiplies_matrices(dot) && !walk->work->uses_sums; /* loops that compute with the sums are counted by what they wait for */
    double of_banks = walk->work->uses_sums ? 1.1 : OF_ROWS[gpu_small_rows_along_k(dot)];
    bool banks = gpu_turns_rows(dot, tile_op_operand(dot, 0)->type) || (walk->work->uses_sums && result->scalar != TILE_F32);
    double sums = elements_of(walk, result), step = gpu_product_instructions(sums) * (banks ? 1 : of_banks), stored = large ? OF_WAITS : 0,
           code = walk->work->code;
    walk->work->multiplies |= large;
    for (unsigned i = 0; i < 2; i++) {
        const TileType *type = tile_op_operand(dot, i)->type;
        if (takes_no_registers(tile_op_operand(dot, i))) continue;
        stored += OF_STORE * elements_of(walk, type);
        walk->work->shared += lanes_of(type) * (double)tile_scalar_bytes(type->scalar);
    }
    double waits = k * step * (gpu_product_wait(large, sums) - 1) * walk->busy * (walk->busy > 1 ? SHOWN : 1), end = issue(walk, dot, begin, k * step + stored, 2 * OF_BARRIER + waits);
    walk->work->code = code + stored + STEPS * step;
    walk->work->registers = most(walk->work->registers, walk->carried + 4 * sqrt(sums));
    return end;
}

/* Two that go on side by side, and now and then wait for each other. */
static double smooth_most(double a, double b) {
    const double sharpness = 6;
    return pow(pow(a, sharpness) + pow(b, sharpness), 1 / sharpness);
}

/* A warpgroup waits for its products before it begins those of the next iteration, unless programs take turns. Meanwhile others'
 * are under way. Where a loop computes with the sums, chains of ops say when. */
static double cycles_of_groups(const Walk *walk, const TileOp *dot, double cycles) {
    double groups = most(1, walk->warps / GROUP_WARPS);
    bool waits = !walk->turns || gpu_operand_is_computed(dot, 0);
    if (walk->work->uses_sums) return cycles;
    return most(most(cycles, OF_SLOT), waits ? cycles / groups + OF_PRODUCTS : 0);
}

/* A second operand that is computed on its way is stored in vectors, and all threads wait for all. */
static double put_operand(Walk *walk, const TileOp *dot, double ready) {
    const TileType *type = tile_op_operand(dot, 1)->type;
    double bytes = lanes_of(type) * (double)tile_scalar_bytes(type->scalar);
    double instructions = OF_MOVE * bytes / VECTOR_BYTES / (walk->warps * TILE_WARP_THREADS);
    walk->work->shared += (double)gpu_put_slots(dot) * bytes;
    walk->work->instructions += walk->times * walk->warps * instructions;
    walk->work->code += instructions;
    return ready + instructions * walk->busy + OF_PUT;
}

/* How many times as long it takes where a thread has not registers enough for sums, and for what it computes. */
static double slower_by_spills(const Walk *walk, const TileOp *dot) {
    enum { OTHERS = 28, MOST_REGISTERS = 232 };
    const double OF_LACKING = 12;
    double held = elements_of(walk, dot->results[0].type) + OTHERS;
    for (unsigned i = 0; i < 2; i++)
        if (gpu_operand_is_computed(dot, i)) held += elements_of(walk, tile_op_operand(dot, i)->type);
    return 1 + OF_LACKING * most(0, held - MOST_REGISTERS) / MOST_REGISTERS;
}

/* What the next product takes is computed while this one is under way, but takes as long as both: measured, 4096 x 4096 x 4096 with weights
 * of 8 bits, and with those of 4 bits. */
static double do_wgmma(Walk *walk, const TileOp *dot, double begin, double cycles) {
    double ready = ready_operands(walk, dot, begin), product = cycles_of_groups(walk, dot, cycles);
    if (!gpu_operand_is_computed(dot, 1)) return ready + product;
    return begin + (put_operand(walk, dot, ready) + product - begin) * slower_by_spills(walk, dot);
}

static double do_dot(Walk *walk, const TileOp *dot, double begin) {
    const TileType *a = tile_op_operand(dot, 0)->type;
    bool cores = gpu_dot_is_mma(dot);
    double k = (double)a->extent[a->rank - 1], products = lanes_of(dot->results[0].type) * k;
    if (cores && a->extent[0] < 16) products *= 16.0 / (double)a->extent[0];
    double step = 32.0 / (double)tile_scalar_bytes(a->scalar); /* of an instruction, along k */
    if (cores && k < step) products *= step / k;
    double cycles = products / gpu_product_rate(walk->target, dot);
    if (!cores) return do_multiply_adds(walk, dot, begin, k);
    cycles = gpu_dot_is_wgmma(dot) ? smooth_most(cycles, gpu_product_shared_cycles(dot)) : most(cycles, gpu_product_shared_cycles(dot));
    walk->work->tensor += walk->times * cycles;
    walk->sums = most(walk->sums, elements_of(walk, dot->results[0].type));
    double share = walk->warps < SCHEDULERS ? SCHEDULERS / walk->warps : 1;
    double end = gpu_dot_is_wgmma(dot) ? do_wgmma(walk, dot, begin, cycles)
                                       : ready_operands(walk, dot, begin) + cycles * share + OF_EXCHANGE;
    walk->ready[dot->results[0].number] = end;
    return end;
}

/* ---- shapes ---- */

static double do_shape(Walk *walk, const TileOp *op, double begin) {
    bool moves = op->id == TILE_OP_PERMUTE || op->id == TILE_OP_SLICE || op->id == TILE_OP_CAT;
    if (op->id == TILE_OP_FILL && !feeds_products_only(&op->results[0]))
        return issue(walk, op, begin, 2 * elements_of(walk, op->results[0].type), OF_OPERATION);
    if (!moves || feeds_products_only(&op->results[0])) return issue(walk, op, begin, 0, 0);
    return issue(walk, op, begin, OF_MOVE * elements_of(walk, op->results[0].type), OF_BARRIER);
}

/* ---- control ---- */

static double do_block(Walk *walk, const TileBlock *block, double begin);

static void set_arguments(Walk *walk, const TileBlock *block, double ready) {
    for (unsigned i = 0; i < block->argument_count; i++) walk->ready[block->arguments[i]->number] = ready;
}

static double run_region(Walk *walk, const TileBlock *block, double begin, double times) {
    double outer = walk->times;
    walk->times *= times;
    set_arguments(walk, block, begin);
    double end = do_block(walk, block, begin);
    walk->times = outer;
    return end;
}

static bool multiplies(const TileBlock *body) {
    for (const TileOp *op = body->first; op; op = op->next)
        if (op->id == TILE_OP_DOT && gpu_dot_is_mma(op)) return true;
    return false;
}

/* How often a loop runs, and its induction variable in the middle of the whole iterations and in the last one, which may be `partial`. */
typedef struct Trips {
    double count;
    int64_t middle, last;
    bool known, partial;
} Trips;

static Trips trips_of(Walk *walk, const TileOp *loop) {
    int64_t lo, length, step;
    const TileValue *induction = loop->regions[0].arguments[0], *first = tile_op_named(loop, TILE_OPERAND_LO);
    if (tile_loop_is_of_programs(loop)) return (Trips){1, walk->program, walk->program, true, false};
    bool stepped = gpu_number_get(&walk->numbers, tile_op_named(loop, TILE_OPERAND_STEP), &step) && step >= 1;
    if (!stepped || !gpu_number_get(&walk->numbers, first, &lo) || !gpu_number_length(&walk->numbers, first, tile_op_named(loop, TILE_OPERAND_HI), &length))
        return (Trips){.count = stepped && step > 1 ? ceil((double)GPU_UNKNOWN_LENGTH / (double)step) : UNKNOWN_TRIPS};
    int64_t trips = length > 0 ? (length + step - 1) / step : 0;
    bool partial = trips > 1 && length % step && !multiplies(&loop->regions[0]);
    walk->numbers.parts[induction->number] = walk->numbers.parts[first->number];
    walk->numbers.sources[induction->number] = walk->numbers.sources[first->number];
    return (Trips){(double)trips, lo + (trips - partial) / 2 * step, lo + (trips - 1) * step, true, partial};
}

/* The cycles of an iteration, on average. The last one moves and computes what it has; the code is the same. */
static double do_iterations(Walk *walk, const TileOp *loop, double begin, Trips trips) {
    const TileBlock *body = &loop->regions[0];
    if (trips.known) gpu_number_set(&walk->numbers, body->arguments[0], trips.middle);
    double whole = run_region(walk, body, begin, trips.count - trips.partial) - begin, code = walk->work->code, last = whole;
    if (trips.partial) {
        gpu_number_set(&walk->numbers, body->arguments[0], trips.last);
        last = run_region(walk, body, begin, 1) - begin;
        walk->work->code = code;
    }
    return whole + (trips.count > 0 ? (last - whole) / trips.count : 0);
}

/* Iterations of a loop follow one another at least so far apart that what they copy ahead arrives. A loop waits for its
 * first tiles, unless warps of their own have them copied, which go from one loop to the next. */
static double do_for(Walk *walk, const TileOp *loop, double begin) {
    bool flows = walk->flows;
    double carried = walk->carried, copied = walk->copied, slots = walk->slots;
    begin = ready_operands(walk, loop, begin);
    /* Products that take what an earlier loop gave wait for it once, not in each iteration. */
    if (multiplies(&loop->regions[0])) begin = most(begin, walk->looped);
    Trips runs = trips_of(walk, loop);
    double trips = runs.count;
    for (unsigned i = 0; i < loop->result_count; i++) walk->carried += registers_of(walk, &loop->results[i]);
    walk->copied = walk->slots = 0;
    walk->flows = false;
    walk->loops += !tile_loop_is_of_programs(loop);
    double body = do_iterations(walk, loop, begin, runs);
    double fill = walk->slots > 0 ? OF_MEMORY + walk->copied / GPU_PORT_BYTES_CYCLE : 0;
    if (walk->flows) walk->fill = most(walk->fill, fill);
    if (walk->slots > 1 && walk->work->uses_sums)
        walk->work->instructions += walk->times * trips * walk->warps * (walk->flows ? OF_ITERATION : OF_OWN_ITERATION);
    double held = walk->turns ? HELD_IN_TURN : 1;
    double end =
        begin + (walk->flows ? 0 : fill) + trips * (walk->slots > 1 ? most(body, fill / (walk->slots - held)) : body);
    walk->loops -= !tile_loop_is_of_programs(loop);
    walk->carried = carried;
    walk->copied = copied;
    walk->slots = slots;
    walk->flows = flows;
    walk->looped = tile_loop_is_of_programs(loop) ? 0 : end;
    for (unsigned i = 0; i < loop->result_count; i++) walk->ready[loop->results[i].number] = end;
    return end;
}

/* The larger one of what the branches yield, where both are known: a length, or none. */
static void number_result(Walk *walk, const TileOp *op, unsigned i) {
    int64_t a, b;
    if (gpu_number_get(&walk->numbers, tile_op_operand(op->regions[0].last, i), &a) &&
        gpu_number_get(&walk->numbers, tile_op_operand(op->regions[1].last, i), &b))
        gpu_number_set(&walk->numbers, &op->results[i], a > b ? a : b);
}

/* Does a program go on where data say so, as where a segment has such rows, and else do nothing? Then it is taken to go on. */
static bool is_guard(const Walk *walk, const TileOp *op) {
    return walk->numbers.sources[tile_op_operand(op, 0)->number] && op->regions[1].first == op->regions[1].last;
}

static double do_if(Walk *walk, const TileOp *op, double begin) {
    double taken = gpu_number_share(&walk->numbers, op), end = begin = ready_operands(walk, op, begin), mean = begin;
    if (taken < 0 && is_guard(walk, op)) taken = 1;
    for (unsigned i = 0; i < 2; i++) {
        double share = taken < 0 ? 0.5 : i == 0 ? taken : 1 - taken;
        if (share <= 0) continue;
        double last = run_region(walk, &op->regions[i], begin, share);
        mean += share * (last - begin);
        end = most(end, last);
    }
    if (taken > 0 && taken < 1) end = mean;
    for (unsigned i = 0; i < op->result_count; i++) {
        walk->ready[op->results[i].number] = end;
        number_result(walk, op, i);
    }
    return end;
}

static double do_others(Walk *walk, const TileOp *op, double begin) {
    double end = begin = ready_operands(walk, op, begin);
    double times = op->id == TILE_OP_WHILE ? UNKNOWN_TRIPS : 1;
    for (unsigned i = 0; i < op->region_count; i++) {
        double body = run_region(walk, &op->regions[i], begin, times) - begin;
        end += times * body;
    }
    for (unsigned i = 0; i < op->result_count; i++) walk->ready[op->results[i].number] = end;
    return end;
}

static double do_op(Walk *walk, const TileOp *op, double begin) {
    gpu_number_op(&walk->numbers, op);
    if (tile_op_info((TileOpId)op->id)->class == TILE_CLASS_ELEMENTWISE) return do_elementwise(walk, op, begin);
    switch (op->id) {
    case TILE_OP_LOAD_TILE: return do_load(walk, op, begin);
    case TILE_OP_STORE_TILE:
    case TILE_OP_ATOMIC_TILE: return do_store(walk, op, begin);
    case TILE_OP_REDUCE:
    case TILE_OP_ARG_REDUCE:
    case TILE_OP_FOLD:
    case TILE_OP_SCAN: return do_reduction(walk, op, begin);
    case TILE_OP_DOT: return do_dot(walk, op, begin);
    case TILE_OP_FOR: return do_for(walk, op, begin);
    case TILE_OP_IF: return do_if(walk, op, begin);
    }
    if (tile_op_info((TileOpId)op->id)->class == TILE_CLASS_SHAPE) return do_shape(walk, op, begin);
    return do_others(walk, op, begin);
}

static double do_block(Walk *walk, const TileBlock *block, double begin) {
    double end = begin;
    for (const TileOp *op = block->first; op; op = op->next) {
        end = most(end, do_op(walk, op, begin));
        count_registers(walk, op);
    }
    return end;
}

bool gpu_work_count(const TilePtxTarget *target, TileFunc *phase, const TileExtents *extents, int64_t program,
                    TileArena *scratch, GpuWork *work) {
    *work = (GpuWork){.registers = 0};
    double warps = phase->threads ? phase->threads / TILE_WARP_THREADS : 1;
    GpuSurvey survey = gpu_survey(&phase->body);
    GpuDots dots = gpu_find_dots(phase, &phase->body);
    Walk walk = {.target = target,
                 .numbers = gpu_numbers_create(phase, extents, scratch),
                 .work = work,
                 .times = 1,
                 .warps = warps,
                 .busy = most(1, warps / SCHEDULERS),
                 .program = program,
                 .turns = phase->turns > 1,
                 .neighbours = survey.combines || survey.draws,
                 .tensor_cores = dots.count && !dots.multiplied.count,
                 .fits = true};
    work->uses_sums = gpu_loops_use_sums(&phase->body);
    walk.ready = TILE_NEW_ARRAY(scratch, double, tile_func_number(phase) + 1);
    work->instructions = warps * OF_PROGRAM;
    double end = do_block(&walk, &phase->body, 0);
    work->beginning = OF_BEGINNING + walk.fill;
    work->latency = work->beginning + end;
    return walk.fits;
}
