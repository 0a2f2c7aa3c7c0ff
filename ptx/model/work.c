/* What one program of a phase does. The walk visits each op once: a loop counts as often as it runs, and its values are
 * those in the middle of its iteration space. */
#include <math.h>

#include "lang/ir/eval.h"
#include "ptx/layouts/blocked.h"
#include "ptx/model/products.h"
#include "ptx/model/walk.h"
#include "ptx/passes.h"
#include "ptx/pipeline/copies.h"
#include "ptx/target/dot.h"
#include "ptx/target/map.h"
#include "ptx/target/multiply_adds.h"

enum { UNKNOWN_TRIPS = 8, SCHEDULERS = 4 };

/* Cycles until a result can be used, beyond those of issuing. */
enum { OF_BEGINNING = 300, OF_PUT = 300 };

/* From the end of a warpgroup's products to the beginning of the next iteration's; and from one slot's beginning to the next's, at
 * least. */
enum { GROUP_WARPS = 4, OF_PRODUCTS = 160, OF_SLOT = 190 };

/* Of a loop that computes with the sums of products, whose tiles are copied ahead, by warps of their own or by all: waits, counts of slots, descriptors; a barrier, addresses. */
enum { OF_ITERATION = 150, OF_OWN_ITERATION = 40 };

/* Instructions of a warp; those of a quotient, by a number that is not known, each warp issues in an iteration. */
enum { OF_MOVE = 4, OF_PROGRAM = 50, OF_KEYS = 110, OF_QUOTIENT = 25 };

/* Of a grid with more axes than two: for each a quotient of the program's number, strides and bounds, as counted in SASS. What a program begins with has those
 * of two. */
enum { OF_AXIS = 35, AXES_OF_PROGRAM = 2 };

/* Slots that products read, on average, where those of one iteration stay under way until the next one's have begun. */
static const double HELD_IN_TURN = 1.3;

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
static double do_elementwise(GpuWalk *walk, const TileOp *op, double begin) {
    const TileType *type = op->results[0].type;
    bool quotient = (op->id == TILE_OP_DIV || op->id == TILE_OP_REM) && walk->loops && !tile_value_def(tile_op_operand(op, 1), TILE_OP_CONST);
    if (!tile_type_is_tile(type)) return gpu_walk_issue(walk, op, begin, quotient ? OF_QUOTIENT : 0, GPU_OF_OPERATION);
    double width = tile_scalar_bits(type->scalar) == 64 ? 2 : 1;
    double keys = op->id == TILE_OP_RAND ? OF_KEYS : 0; /* of the rounds, which each thread computes once */
    return gpu_walk_issue(walk, op, begin, width * instructions_of(op) * gpu_walk_elements(walk, type) + keys, GPU_OF_OPERATION);
}

/* ---- reductions ---- */

/* Does the reduction take what each thread has of rows of a product's sums, which are cut into pieces, lanes and neighbours (gpu-late-sums)? */
static bool stays_in_threads(const TileOp *reduce) {
    const TileOp *cut = tile_op_operand(reduce, 0)->op;
    if (tile_op_is(cut, TILE_OP_REDUCE)) cut = tile_op_operand(cut, 0)->op;
    if (!tile_op_is(cut, TILE_OP_RESHAPE) || cut->results[0].type->rank != 4) return false;
    const TileType *rows = tile_op_operand(cut, 0)->type, *pieces = cut->results[0].type;
    return rows->rank == 2 && rows->extent[0] == pieces->extent[0];
}

/* Threads lie along the last axis first, a vector each, then along the others. */
static double do_reduction(GpuWalk *walk, const TileOp *op, double begin) {
    const TileType *tile = tile_op_operand(op, 0)->type;
    unsigned axis = (unsigned)tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0);
    double threads = walk->warps * TILE_WARP_THREADS, held = gpu_walk_elements(walk, tile), across;
    double vector = GPU_VECTOR_BYTES / (double)tile_scalar_bytes(tile->scalar);
    double row = (double)tile->extent[tile->rank - 1] / (held < vector ? held : vector);
    double along = row < threads ? (row < 1 ? 1 : row) : threads; /* threads of a row */
    across = axis + 1 == tile->rank ? along : threads / along;
    for (unsigned i = tile->rank - 1u; i > axis + 1u; i--) across = gpu_most(1, across / (double)tile->extent[i - 1]);
    if (across > (double)tile->extent[axis]) across = (double)tile->extent[axis];
    double lanes = axis + 1 == tile->rank ? gpu_most(1, across < TILE_WARP_THREADS ? across : TILE_WARP_THREADS)
                                          : gpu_most(1, TILE_WARP_THREADS / along);
    if (walk->tensor_cores) lanes = across = stays_in_threads(op) ? 1 : axis + 1 == tile->rank ? 4 : 8;
    double warps = across / lanes, steps = 0, combine = op->id == TILE_OP_REDUCE ? 1 : 4;
    for (double n = 1; n < lanes; n *= 2) steps++;
    double results = gpu_most(1, held * across / (double)tile->extent[axis]);
    double instructions = combine * (held + 2 * steps * results),
           latency = GPU_OF_OPERATION + steps * combine * GPU_OF_EXCHANGE;
    if (warps > 1) {
        instructions += OF_MOVE * results + combine * warps * results;
        latency += 2 * GPU_OF_BARRIER;
    }
    return gpu_walk_issue(walk, op, begin, instructions, latency);
}

/* The blocks of a cluster meet, and each thread loads what each of them has. */
static double do_cluster_reduction(GpuWalk *walk, const TileOp *op, double begin) {
    enum { OF_PLACE = 3, OF_MEETING = 900 };
    double held = gpu_walk_elements(walk, op->results[0].type), blocks = walk->cluster;
    return gpu_walk_issue(walk, op, begin, held * blocks * OF_PLACE, OF_MEETING);
}

/* ---- products ---- */

/* Operands in registers pass through shared memory. Products that are not laid out for the banks of the register file take longer. */
static double do_multiply_adds(GpuWalk *walk, const TileOp *dot, double begin, double k) {
    enum { STEPS = 4, OF_STORE = 2, OF_WAITS = 50 }; /* waits, barriers, and what begins again behind them */
    const double SHOWN = 0.35; /* of waiting, where a scheduler has other warps of the block */
    static const double OF_ROWS[] = {1.06, 1.06, 1.09}; /* so many operands along k, which lie in one bank of the register file */
    const TileType *result = dot->results[0].type;
    bool large = gpu_multiplies_matrices(dot) && !walk->work->uses_sums; /* loops that compute with the sums are counted by what they wait for */
    double of_banks = walk->work->uses_sums ? 1.1 : OF_ROWS[gpu_small_rows_along_k(dot)];
    bool banks = gpu_turns_rows(dot, tile_op_operand(dot, 0)->type) || (walk->work->uses_sums && result->scalar != TILE_F32);
    double sums = gpu_walk_elements(walk, result), step = gpu_product_instructions(sums) * (banks ? 1 : of_banks), stored = large ? OF_WAITS : 0,
           code = walk->work->code;
    walk->work->multiplies |= large;
    for (unsigned i = 0; i < 2; i++) {
        const TileType *type = tile_op_operand(dot, i)->type;
        if (gpu_walk_takes_no_registers(tile_op_operand(dot, i))) continue;
        stored += OF_STORE * gpu_walk_elements(walk, type);
        walk->work->shared += gpu_walk_lanes(type) * (double)tile_scalar_bytes(type->scalar);
    }
    double waits = k * step * (gpu_product_wait(large, sums) - 1) * walk->busy * (walk->busy > 1 ? SHOWN : 1), end = gpu_walk_issue(walk, dot, begin, k * step + stored, 2 * GPU_OF_BARRIER + waits);
    walk->work->code = code + stored + STEPS * step;
    walk->work->registers = gpu_most(walk->work->registers, walk->carried + 4 * sqrt(sums));
    return end;
}

/* Two that go on side by side, and now and then wait for each other. */
static double smooth_most(double a, double b) {
    const double sharpness = 6;
    return pow(pow(a, sharpness) + pow(b, sharpness), 1 / sharpness);
}

/* A warpgroup waits for its products before it begins those of the next iteration, unless programs take turns. Meanwhile others'
 * are under way. Where a loop computes with the sums, chains of ops say when. */
static double cycles_of_groups(const GpuWalk *walk, const TileOp *dot, double cycles) {
    double groups = gpu_most(1, walk->warps / GROUP_WARPS);
    bool waits = !walk->turns || gpu_operand_is_computed(dot, 0);
    if (walk->work->uses_sums) return cycles;
    return gpu_most(gpu_most(cycles, OF_SLOT), waits ? cycles / groups + OF_PRODUCTS : 0);
}

/* A second operand that is computed on its way is stored in vectors, and all threads wait for all. */
static double put_operand(GpuWalk *walk, const TileOp *dot, double ready) {
    const TileType *type = tile_op_operand(dot, 1)->type;
    double bytes = gpu_walk_lanes(type) * (double)tile_scalar_bytes(type->scalar);
    double instructions = OF_MOVE * bytes / GPU_VECTOR_BYTES / (walk->warps * TILE_WARP_THREADS);
    walk->work->shared += (double)gpu_put_slots(dot) * bytes;
    walk->work->instructions += walk->times * walk->warps * instructions;
    walk->work->code += instructions;
    return ready + instructions * walk->busy + OF_PUT;
}

/* How many times as long it takes where a thread has not registers enough for sums, and for what it computes. */
static double slower_by_spills(const GpuWalk *walk, const TileOp *dot) {
    enum { OTHERS = 28, MOST_REGISTERS = 232 };
    const double OF_LACKING = 12;
    double held = gpu_walk_elements(walk, dot->results[0].type) + OTHERS;
    for (unsigned i = 0; i < 2; i++)
        if (gpu_operand_is_computed(dot, i)) held += gpu_walk_elements(walk, tile_op_operand(dot, i)->type);
    return 1 + OF_LACKING * gpu_most(0, held - MOST_REGISTERS) / MOST_REGISTERS;
}

/* Sums that others are added to as soon as an instruction has computed them. Measured, 8192 x 8192 x 8192 and 4096 x 4096 x 4096 by 128 x 256, 128 x 192 and 128 x 128: tensor cores have
 * nothing to do for as long as that takes, and for somewhat less where other instructions of the warps are under way. */
static double add_promoted(GpuWalk *walk, const TileOp *dot, double cycles) {
    const double TOGETHER = 0.8;
    if (!gpu_dot_promoted(dot)) return cycles;
    double added = gpu_walk_elements(walk, dot->results[0].type);
    walk->work->instructions += walk->times * walk->warps * added;
    walk->work->code += added;
    return cycles + added * walk->busy * (gpu_promoted_together(dot) > 1 ? TOGETHER : 1);
}

/* What the next product takes is computed while this one is under way, but takes as long as both: measured, 4096 x 4096 x 4096 with weights
 * of 8 bits, and with those of 4 bits. */
static double do_wgmma(GpuWalk *walk, const TileOp *dot, double begin, double cycles) {
    double ready = gpu_walk_ready(walk, dot, begin), product = add_promoted(walk, dot, cycles_of_groups(walk, dot, cycles));
    if (!gpu_operand_is_computed(dot, 1)) return ready + product;
    return begin + (put_operand(walk, dot, ready) + product - begin) * slower_by_spills(walk, dot);
}

static double do_dot(GpuWalk *walk, const TileOp *dot, double begin) {
    const TileType *a = tile_op_operand(dot, 0)->type;
    bool cores = gpu_dot_is_mma(dot);
    double k = (double)a->extent[a->rank - 1] / (double)gpu_dot_parts(dot), products = gpu_walk_lanes(dot->results[0].type) * k;
    if (cores && a->extent[0] < 16) products *= 16.0 / (double)a->extent[0];
    double step = 32.0 / (double)tile_scalar_bytes(a->scalar); /* of an instruction, along k */
    if (cores && k < step) products *= step / k;
    double cycles = products / gpu_product_rate(walk->target, dot);
    if (!cores) return do_multiply_adds(walk, dot, begin, k);
    cycles = gpu_dot_is_wgmma(dot) ? smooth_most(cycles, gpu_product_shared_cycles(dot)) : gpu_most(cycles, gpu_product_shared_cycles(dot));
    walk->work->tensor += walk->times * cycles;
    walk->sums = gpu_most(walk->sums, gpu_walk_elements(walk, dot->results[0].type) * gpu_most(1, (double)tile_scalar_bytes(dot->results[0].type->scalar) / 4));
    walk->wgmma = gpu_dot_is_wgmma(dot);
    double share = walk->warps < SCHEDULERS ? SCHEDULERS / walk->warps : 1;
    double end = gpu_dot_is_wgmma(dot) ? do_wgmma(walk, dot, begin, cycles)
                                       : gpu_walk_ready(walk, dot, begin) + cycles * share + GPU_OF_EXCHANGE;
    walk->ready[dot->results[0].number] = end;
    return end;
}

/* ---- shapes ---- */

static bool moves_elements(const TileOp *op) { return op->id == TILE_OP_PERMUTE || op->id == TILE_OP_SLICE || op->id == TILE_OP_CAT; }

/* Does the op change the shape of what another such op has moved? One conversion of layouts does both. */
static bool follows_move(const TileOp *op) {
    const TileOp *before = tile_op_operand(op, 0)->op;
    while (before && before->id == TILE_OP_RESHAPE) before = tile_op_operand(before, 0)->op;
    return before && moves_elements(before);
}

static double do_shape(GpuWalk *walk, const TileOp *op, double begin) {
    bool moves = moves_elements(op) && !follows_move(op);
    if (op->id == TILE_OP_FILL && !gpu_walk_feeds_products(&op->results[0]))
        return gpu_walk_issue(walk, op, begin, 2 * gpu_walk_elements(walk, op->results[0].type), GPU_OF_OPERATION);
    if (!moves || gpu_walk_feeds_products(&op->results[0])) return gpu_walk_issue(walk, op, begin, 0, 0);
    return gpu_walk_issue(walk, op, begin, OF_MOVE * gpu_walk_elements(walk, op->results[0].type), GPU_OF_BARRIER);
}

/* ---- control ---- */

static double do_block(GpuWalk *walk, const TileBlock *block, double begin);

static void set_arguments(GpuWalk *walk, const TileBlock *block, double ready) {
    for (unsigned i = 0; i < block->argument_count; i++) walk->ready[block->arguments[i]->number] = ready;
}

static double run_region(GpuWalk *walk, const TileBlock *block, double begin, double times) {
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

/* Of a list that a tensor says the place of: where the last iterations begin, which are fewer than `width` (gpu-ahead). */
static bool is_rest_of_list(const GpuWalk *walk, const TileValue *value, int64_t *width) {
    const TileOp *add = value->op, *groups = add && add->id == TILE_OP_ADD ? tile_op_operand(add, 1)->op : NULL;
    return walk->numbers.sources[value->number] && groups && groups->id == TILE_OP_MUL && tile_value_integer(tile_op_operand(groups, 1), width);
}

/* A list of unknown length is taken to have UNKNOWN_TRIPS elements, and half of what may be left of it. */
static bool counts_list(const GpuWalk *walk, const TileOp *loop, int64_t step, double *count) {
    const TileValue *lo = tile_op_named(loop, TILE_OPERAND_LO), *hi = tile_op_named(loop, TILE_OPERAND_HI);
    int64_t width, number;
    bool rest = is_rest_of_list(walk, lo, &width);
    if (rest) *count = ((double)width / (double)step - 1) / 2;
    if (rest || gpu_number_get(&walk->numbers, hi, &number) || !is_rest_of_list(walk, hi, &width)) return rest;
    *count = gpu_most(1, UNKNOWN_TRIPS / (double)width);
    return true;
}

static Trips trips_of(GpuWalk *walk, const TileOp *loop) {
    int64_t lo, length, step;
    double count;
    const TileValue *induction = loop->regions[0].arguments[0], *first = tile_op_named(loop, TILE_OPERAND_LO);
    if (tile_loop_is_of_programs(loop)) return (Trips){1, walk->program, walk->program, true, false};
    bool stepped = gpu_number_get(&walk->numbers, tile_op_named(loop, TILE_OPERAND_STEP), &step) && step >= 1;
    if (stepped && counts_list(walk, loop, step, &count)) return (Trips){.count = count};
    if (!stepped || !gpu_number_get(&walk->numbers, first, &lo) || !gpu_number_length(&walk->numbers, first, tile_op_named(loop, TILE_OPERAND_HI), &length))
        return (Trips){.count = stepped && step > 1 ? ceil((double)GPU_UNKNOWN_LENGTH / (double)step) : UNKNOWN_TRIPS};
    int64_t trips = length > 0 ? (length + step - 1) / step : 0;
    bool partial = trips > 1 && length % step && !multiplies(&loop->regions[0]);
    walk->numbers.parts[induction->number] = walk->numbers.parts[first->number];
    walk->numbers.sources[induction->number] = walk->numbers.sources[first->number];
    return (Trips){(double)trips, lo + (trips - partial) / 2 * step, lo + (trips - 1) * step, true, partial};
}

/* The cycles of an iteration, on average. The last one moves and computes what it has; the code is the same. */
static double do_iterations(GpuWalk *walk, const TileOp *loop, double begin, Trips trips) {
    const TileBlock *body = &loop->regions[0];
    if (trips.known) gpu_number_set(&walk->numbers, body->arguments[0], trips.middle);
    GpuAround around = {loop, trips.count, walk->around};
    if (!tile_loop_is_of_programs(loop)) walk->around = &around;
    double whole = run_region(walk, body, begin, trips.count - trips.partial) - begin, code = walk->work->code, last = whole;
    if (trips.partial) {
        gpu_number_set(&walk->numbers, body->arguments[0], trips.last);
        last = run_region(walk, body, begin, 1) - begin;
        walk->work->code = code;
    }
    walk->around = around.outer;
    return whole + (trips.count > 0 ? (last - whole) / trips.count : 0);
}

/* From when on everything is there that the loop's iterations take from outside of it: they wait for that once. */
static double ready_outside(const GpuWalk *walk, const TileOp *loop, const TileBlock *block, double begin) {
    for (const TileOp *op = block->first; op; op = op->next) {
        for (unsigned i = 0; i < op->operand_count; i++) {
            const TileValue *value = tile_op_operand(op, i);
            if (tile_value_outside(value, loop)) begin = gpu_most(begin, walk->ready[value->number]);
        }
        for (unsigned i = 0; i < op->region_count; i++) begin = ready_outside(walk, loop, &op->regions[i], begin);
    }
    return begin;
}

/* Iterations of a loop follow one another at least so far apart that what they copy ahead arrives. A loop waits for its
 * first tiles, unless warps of their own have them copied, which go from one loop to the next. */
static double do_for(GpuWalk *walk, const TileOp *loop, double begin) {
    bool flows = walk->flows, neighbours = walk->neighbours;
    double carried = walk->carried, copied = walk->copied, slots = walk->slots;
    begin = gpu_walk_ready(walk, loop, begin);
    begin = ready_outside(walk, loop, &loop->regions[0], begin);
    Trips runs = trips_of(walk, loop);
    double trips = runs.count;
    for (unsigned i = 0; i < loop->result_count; i++) walk->carried += gpu_walk_registers(walk, &loop->results[i]);
    walk->copied = walk->slots = 0;
    walk->flows = false;
    walk->neighbours &= walk->products || !gpu_only_stores(loop);
    walk->loops += !tile_loop_is_of_programs(loop);
    double body = do_iterations(walk, loop, begin, runs);
    double fill = walk->slots > 0 ? GPU_OF_MEMORY + walk->copied / GPU_PORT_BYTES_CYCLE : 0;
    if (walk->flows) walk->fill = gpu_most(walk->fill, fill);
    if (walk->slots > 1 && walk->work->uses_sums)
        walk->work->instructions += walk->times * trips * walk->warps * (walk->flows ? OF_ITERATION : OF_OWN_ITERATION);
    double held = walk->turns ? HELD_IN_TURN : 1;
    double end =
        begin + (walk->flows ? 0 : fill) + trips * (walk->slots > 1 ? gpu_most(body, fill / (walk->slots - held)) : body);
    walk->loops -= !tile_loop_is_of_programs(loop);
    walk->carried = carried;
    walk->copied = copied;
    walk->slots = slots;
    walk->flows = flows;
    walk->neighbours = neighbours;
    for (unsigned i = 0; i < loop->result_count; i++) walk->ready[loop->results[i].number] = end;
    return end;
}

/* The larger one of what the branches yield, where both are known: a length, or none. */
static void number_result(GpuWalk *walk, const TileOp *op, unsigned i) {
    int64_t a, b;
    if (gpu_number_get(&walk->numbers, tile_op_operand(op->regions[0].last, i), &a) &&
        gpu_number_get(&walk->numbers, tile_op_operand(op->regions[1].last, i), &b))
        gpu_number_set(&walk->numbers, &op->results[i], a > b ? a : b);
}

/* Does a program go on where data say so, as where a segment has such rows, and else do nothing? Then it is taken to go on. */
static bool is_guard(const GpuWalk *walk, const TileOp *op) {
    return walk->numbers.sources[tile_op_operand(op, 0)->number] && op->regions[1].first == op->regions[1].last;
}

/* Is something done only where a number is none, as what products of zeros and infinities add? */
static bool is_of_no_number(const TileOp *op) {
    const TileOp *test = tile_op_operand(op, 0)->op;
    return test && (test->id == TILE_OP_ISNAN || (test->id == TILE_OP_NE && tile_op_operand(test, 0) == tile_op_operand(test, 1)));
}

/* Rows that have a class are kept unless the launch's code is asked not to; others if it is asked to. */
static void note_kept(GpuWork *work, const TileOp *op, bool none) {
    int64_t kept = tile_op_integer(op, TILE_ATTRIBUTE_KEPT, 0);
    if (kept && !none) work->kept = true;
    if (kept == TILE_KEPT_OF_CLASS && none) work->reloads = true;
    if (kept == TILE_KEPT_OF_ANY && !none) work->keeps = true;
}

static double do_if(GpuWalk *walk, const TileOp *op, double begin) {
    double taken = gpu_number_share(&walk->numbers, op), end = begin = gpu_walk_ready(walk, op, begin), mean = begin;
    note_kept(walk->work, op, taken == 0);
    if (taken < 0 && is_of_no_number(op)) taken = 0;
    if (taken < 0 && is_guard(walk, op)) taken = 1;
    for (unsigned i = 0; i < 2; i++) {
        double share = taken < 0 ? 0.5 : i == 0 ? taken : 1 - taken;
        if (share <= 0) continue;
        double last = run_region(walk, &op->regions[i], begin, share);
        mean += share * (last - begin);
        end = gpu_most(end, last);
    }
    if (taken > 0 && taken < 1) end = mean;
    for (unsigned i = 0; i < op->result_count; i++) {
        walk->ready[op->results[i].number] = end;
        number_result(walk, op, i);
    }
    return end;
}

static double do_others(GpuWalk *walk, const TileOp *op, double begin) {
    double end = begin = gpu_walk_ready(walk, op, begin);
    double times = op->id == TILE_OP_WHILE ? UNKNOWN_TRIPS : 1;
    GpuAround around = {op, times, walk->around};
    walk->around = &around;
    for (unsigned i = 0; i < op->region_count; i++) {
        double body = run_region(walk, &op->regions[i], begin, times) - begin;
        end += times * body;
    }
    walk->around = around.outer;
    for (unsigned i = 0; i < op->result_count; i++) walk->ready[op->results[i].number] = end;
    return end;
}

static double do_op(GpuWalk *walk, const TileOp *op, double begin) {
    gpu_number_op(&walk->numbers, op);
    if (tile_op_info((TileOpId)op->id)->class == TILE_CLASS_ELEMENTWISE) return do_elementwise(walk, op, begin);
    switch (op->id) {
    case TILE_OP_LOAD_TILE: return gpu_walk_load(walk, op, begin);
    case TILE_OP_STORE_TILE:
    case TILE_OP_ATOMIC_TILE: return gpu_walk_store(walk, op, begin);
    case TILE_OP_REDUCE:
    case TILE_OP_ARG_REDUCE:
    case TILE_OP_FOLD:
    case TILE_OP_SCAN: return do_reduction(walk, op, begin);
    case TILE_OP_CLUSTER_REDUCE: return do_cluster_reduction(walk, op, begin);
    case TILE_OP_DOT: return do_dot(walk, op, begin);
    case TILE_OP_FOR: return do_for(walk, op, begin);
    case TILE_OP_IF: return do_if(walk, op, begin);
    case TILE_OP_PROGRAM_ID: return gpu_walk_issue(walk, op, begin, OF_AXIS * gpu_most(0, op->result_count - (double)AXES_OF_PROGRAM), 0);
    }
    if (tile_op_info((TileOpId)op->id)->class == TILE_CLASS_SHAPE) return do_shape(walk, op, begin);
    return do_others(walk, op, begin);
}

static double do_block(GpuWalk *walk, const TileBlock *block, double begin) {
    double end = begin;
    for (const TileOp *op = block->first; op; op = op->next) {
        end = gpu_most(end, do_op(walk, op, begin));
        gpu_walk_count_registers(walk, op);
    }
    return end;
}

bool gpu_work_count(const TilePtxTarget *target, TileFunc *phase, const TileExtents *extents, int64_t program,
                    TileArena *scratch, GpuWork *work) {
    *work = (GpuWork){.registers = 0};
    double warps = phase->threads ? phase->threads / TILE_WARP_THREADS : 1;
    GpuSurvey survey = gpu_survey(&phase->body);
    GpuDots dots = gpu_find_dots(phase, &phase->body);
    GpuWalk walk = {.target = target,
                 .numbers = gpu_numbers_create(phase, extents, scratch),
                 .work = work,
                 .times = 1,
                 .warps = warps,
                 .cluster = phase->cluster,
                 .busy = gpu_most(1, warps / SCHEDULERS),
                 .program = program,
                 .turns = phase->turns > 1,
                 .neighbours = survey.combines || survey.draws,
                 .products = dots.count > 0,
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
