/* From the work of programs to the time of a launch. */
#include <math.h>

#include "lang/ir/operands.h"
#include "ptx/model/model.h"
#include "ptx/model/numbers.h"
#include "ptx/target/map.h"
#include "ptx/passes.h"
#include "ptx/target/dot.h"
#include "ptx/target/multiply_adds.h"

enum {
    MOST_SAMPLES = 4,
    MOST_PARTS = 16, /* likewise, where programs are parts of others */
    FEW_VECTORS = 2,
    MOST_VECTORS = 4,
    INSTRUCTIONS_CYCLE = 4,
    BLOCK_CYCLES = 145, /* from one block of products that comes to a multiprocessor to the next, behind those of the first round: an H200 starts 1.6 in a nanosecond */
    SMALL_BLOCK_CYCLES = 100, OF_BLOCKS_WARP = 20, /* the same of blocks without products and of their warps, from the launch's beginning: copies of 32 rows of 128 KB take 9.7 us in blocks of one warp and 7.4 in 1,024 blocks of eight */
    CACHED_CODE = 800, /* instructions; what is longer waits for itself, the more the longer */
    LONG_CODE = 8000,
};

static const double IN_STEP = 2.5; /* µs: parts of loops are equally long, so that all blocks of a round end together, and those that follow begin together: meanwhile little is
                                    * loaded. Measured: sums of columns in parts of one round take 45.6 and 46.8, of two to four 49.5 to 52.3 */
static const double CLUSTER = 2.0; /* µs until the blocks of clusters have met, and while they wait for one another; measured: small products, 1.5 to 3.3 longer than the model says without it */
enum { THREE_WARPGROUPS = 3 * TILE_WARPGROUP_THREADS, FEW_OF_CLUSTERS = 2 };

static const double LAUNCH = 3.0, NEXT_GRID = 1.5, BEHIND_PRODUCTS = 2.5, SHARPNESS = 4, STAYING_SHARPNESS = 6,
                    ROUND_SHARPNESS = 2.25, NEXT_ROUND_SHARPER = 1.75, /* of blocks that are all there at a time: they wait together */
                    ALONE_SHARPNESS = 12, MULTIPLYING_SHARPNESS = 8, THREE_SHARPNESS = 12, /* of three warpgroups two compute while one waits, */
                    MORE_ISSUED = 1.3, /* if instructions take so much longer than products */
                    LAST_SHARE = 0.5, /* of the longest of uneven programs: so long the last blocks of a multiprocessor have fewer beside them */
                    FASTER = 1.8, /* the L2 cache than the memory */
                    IN_TURN = 1.8, /* of blocks of a warp that stay: nothing of the next program is loaded before the last one's store. Measured: 1.5 µs for each of 256 and 512 bytes, where the model says 0.7 */
                    OF_VECTOR = 0.02, /* measured: threads that move four vectors each take 1.04 times as long as with two */
                    TIGHT = 0.5; /* of shared memory: operands of products that are in it for the model; what else is there may be as much */

static const double LATER = 0.6; /* µs: blocks that stay come to the multiprocessors while the launch in front still runs, others behind its end (decision 146) */

static double most(double a, double b) { return a > b ? a : b; }
static double least(double a, double b) { return a < b ? a : b; }

/* ---- the kernel: its grids and temporaries ---- */

typedef struct Host {
    GpuNumbers numbers;
    TileExtents *extents;                /* temporaries behind the parameters */
    int64_t programs[TILE_MOST_EXTENTS]; /* of each grid; 0: unknown or none */
    int64_t last[TILE_MOST_EXTENTS];     /* of them, those along its last axis */
    uint32_t grids;
} Host;

/* Rows of a temporary follow one another, unless they are to begin at multiples of something. */
static uint8_t grain_of_temp(const TileOp *temp, const TileExtents *extents, uint32_t argument) {
    int64_t row = tile_scalar_bytes(temp->results[0].type->scalar), align = tile_op_integer(temp, TILE_ATTRIBUTE_ALIGN, 1);
    if (extents->rank[argument]) row *= extents->extent[argument][extents->rank[argument] - 1];
    int64_t bits = align >= TILE_LINE_BYTES ? TILE_LINE_BYTES : row | TILE_LINE_BYTES;
    return (uint8_t)(bits & -bits);
}

static void visit_host(TileOp *op, void *state) {
    Host *host = state;
    gpu_number_op(&host->numbers, op);
    if (op->id == TILE_OP_TEMP && host->extents->count < TILE_MOST_EXTENTS) {
        uint32_t argument = host->extents->count++;
        host->extents->rank[argument] = op->operand_count;
        for (unsigned i = 0; i < op->operand_count; i++)
            host->extents->extent[argument][i] = gpu_number_or(&host->numbers, tile_op_operand(op, i), 1);
        host->extents->grain[argument] = grain_of_temp(op, host->extents, argument);
    }
    if (op->id != TILE_OP_GRID || host->grids == TILE_MOST_EXTENTS) return;
    int64_t programs = 1, last = 1;
    for (unsigned i = 0; i < op->operand_count; i++) {
        last = gpu_number_or(&host->numbers, tile_op_operand(op, i), 1);
        programs *= last;
    }
    host->last[host->grids] = last;
    host->programs[host->grids++] = programs;
}

/* ---- a launch ---- */

static void find_wgmma(TileOp *op, void *found) { *(bool *)found |= op->id == TILE_OP_DOT && gpu_dot_is_wgmma(op); }

static void find_product(TileOp *op, void *found) { *(bool *)found |= op->id == TILE_OP_DOT; }

static bool has_products(TileFunc *phase) {
    bool found = false;
    tile_block_walk(&phase->body, find_product, &found);
    return found;
}

static bool has_wgmma(TileFunc *phase) {
    bool found = false;
    tile_block_walk(&phase->body, find_wgmma, &found);
    return found;
}

/* Several blocks share a multiprocessor where all threads have registers enough; one has them moved among its warps. */
static double blocks_of_partitions(const TilePtxTarget *target, TileFunc *phase, const GpuWork *work) {
    int64_t threads = (int64_t)phase->threads * (phase->turns > 1 ? phase->turns : 1) + TILE_WARPGROUP_THREADS, blocks = target->threads_core / threads;
    GpuDots dots = gpu_find_dots(phase, &phase->body);
    double sums = (double)(dots.sums / phase->threads + dots.promoted), registers = most(work->registers + GPU_OTHER_REGISTERS, sums + GPU_BESIDE_SUMS);
    while (blocks > 1 && registers > (double)gpu_first_registers(target, blocks * threads)) blocks--;
    return (double)blocks;
}

/* A thread's, if it may have as many as it likes. Where nothing is multiplied, ptxas moves loads and stores to where tiles that are live at once in the
 * text are not: measured, of 50 kernels. */
static double registers_of(TileFunc *phase, const GpuWork *work) {
    const double LIVE = 0.75;
    return (has_products(phase) ? 1 : LIVE) * work->registers + GPU_OTHER_REGISTERS;
}

static double blocks_of_core(const TilePtxTarget *target, TileFunc *phase, const GpuWork *work) {
    double threads = phase->threads;
    double limit = least(target->registers_thread, floor(target->registers / threads));
    double registers = least(limit, ceil(registers_of(phase, work) / 8) * 8);
    double blocks = least(target->blocks_core, floor(target->threads_core / threads));
    blocks = least(blocks, has_wgmma(phase) ? blocks_of_partitions(target, phase, work)
                                 : floor(target->registers / (registers * threads)));
    if (work->shared > 0)
        blocks = least(blocks, floor(target->shared_core_bytes / (work->shared + target->shared_reserved_bytes)));
    return most(1, blocks);
}

static void find_loop(TileOp *op, void *found) { *(bool *)found |= op->id == TILE_OP_WHILE || (op->id == TILE_OP_FOR && !tile_loop_is_of_programs(op)); }

/* Blocks that a multiprocessor must have room for, so that all programs are there at a time, as the model takes them to be; 0 where ptxas can hardly take so many registers that
 * there is none, and for programs without loops, of which the next one begins whenever one ends. It takes as many as it likes, and knows nothing of how many programs there are: 71 for sums of
 * columns in blocks of 256 threads, of which there are 512 then in two rounds. With 64 it spills nothing. */
static uint32_t blocks_together(const TilePtxTarget *target, TileFunc *phase, const GpuWork *work, double programs, double blocks) {
    const double AT_MOST = 2; /* times what the model takes a thread to need */
    double wanted = ceil(programs / target->cores);
    bool loops = false;
    tile_block_walk(&phase->body, find_loop, &loops);
    if (wanted < 2 || wanted > blocks || !loops || has_products(phase) || phase->resident || phase->cluster > 1) return 0;
    return floor(target->registers / (wanted * phase->threads)) < least(target->registers_thread, AT_MOST * registers_of(phase, work)) ? (uint32_t)wanted : 0;
}

/* Does a block of ops have products, and load a tile beside them that no map copies? */
static bool loads_beside_products(const TileBlock *block) {
    bool multiplies = false, loads = false;
    for (const TileOp *op = block->first; op; op = op->next) {
        multiplies |= op->id == TILE_OP_DOT;
        loads |= op->id == TILE_OP_LOAD_TILE && op->results[0].type->rank > 1 && !gpu_by_map(op);
        for (unsigned i = 0; i < op->region_count; i++)
            if (loads_beside_products(&op->regions[i])) return true;
    }
    return multiplies && loads;
}

/* A thread's registers that do not fit are stored and loaded again. Those of warps that multiply by wgmma hold the sums, as
 * gpu-warpgroups has made sure, and what is computed of sums takes their place; but not what is loaded beside products. */
static double spills_of(const TilePtxTarget *target, TileFunc *phase, const GpuWork *work) {
    if (has_wgmma(phase) && !loads_beside_products(&phase->body)) return 0;
    double limit = least(target->registers_thread, floor(target->registers / most(1, phase->threads)));
    return most(0, registers_of(phase, work) - limit) / limit;
}

/* Products of blocks that stay have registers for their sums, or no such code (gpu-warpgroups). What stands in front of and behind a loop that computes
 * with the sums of products by warpgroups is read once for many iterations. */
static double slower_of(const TilePtxTarget *target, TileFunc *phase, const GpuWork *work) {
    double code = has_wgmma(phase) && work->uses_sums ? work->looped : work->code;
    return (1 + 3 * spills_of(target, phase, work)) * (1 + most(0, code - CACHED_CODE) / LONG_CODE);
}

static double bytes_of(const TileExtents *extents, uint32_t argument, double element) {
    double bytes = element;
    for (uint32_t i = 0; i < extents->rank[argument]; i++) bytes *= (double)extents->extent[argument][i];
    return bytes;
}

/* Measured: sums of columns of bf16 65536 x 256 take 23 to 25.4 us by 32 columns, half a line, and 20.5 to 22.8 by 64, in as many programs; of products of two such matrices 35.1 and 30.9. Less than that, since few long programs take
 * longer than the model says: of a matrix and a vector by 32 columns in 256 programs 70, by 64 in 128 programs 124 us. */
static const double OF_HALF_LINES = 1.05;

/* What comes from the memory: each tensor once, as far as the L2 cache keeps what other programs want as well; of rows of which each program has less than a line the other
 * part comes at another time. */
static double memory_bytes(const TileFunc *phase, const TileExtents *extents, const GpuWork *work, double programs) {
    double bytes = 0;
    for (uint32_t i = 0; i < phase->body.argument_count; i++) {
        const TileParameter *parameter = &phase->parameters[i];
        if (parameter->role != TILE_ROLE_DATA || parameter->argument >= extents->count) continue;
        double element = (double)tile_scalar_bytes(phase->body.arguments[i]->type->scalar);
        bytes += least(programs * work->moved[parameter->argument], bytes_of(extents, parameter->argument, element)) * (work->narrow[parameter->argument] ? OF_HALF_LINES : 1);
    }
    return bytes;
}

/* The share of what is read again that the L2 cache no longer has, where the programs that are there together go through so many bytes meanwhile. A line that comes in
 * takes any line's place: what was read is still there, with the chance h, behind (1 - h) bytes of misses, if h = exp(-(1 - h) bytes / size). Both
 * halves of the cache have what multiprocessors of both read, so that the size is that of one half. */
static double share_missed(const TilePtxTarget *target, double bytes) {
    enum { STEPS = 32 };
    double fill = 2 * bytes / target->cache_bytes, hit = 0;
    if (fill <= 1) return 0;
    for (unsigned i = 0; i < STEPS; i++) hit = exp(-(1 - hit) * fill);
    return 1 - hit;
}

/* What programs read again, as bytes from the memory that would take as long. What neighbours read as well, of windows and of sectors, comes soon after, and from a
 * cache. What a program goes through once more comes from the L2 cache, if that still has it after all that the programs at a time have gone through
 * meanwhile. Tensors that are small stay; products have a port of their own. */
static double bytes_read_again(const TilePtxTarget *target, TileFunc *phase, const TileExtents *extents, const GpuWork *work, double programs) {
    enum { LEAST_BYTES = 4 << 20, MOST_TIMES = 2 };
    double shared = 0, passes = 0, between = 0, together = target->cores * blocks_of_core(target, phase, work);
    for (uint32_t i = 0; i < phase->body.argument_count && !has_products(phase); i++) {
        const TileParameter *parameter = &phase->parameters[i];
        if (parameter->role != TILE_ROLE_DATA || parameter->argument >= extents->count) continue;
        double once = bytes_of(extents, parameter->argument, (double)tile_scalar_bytes(phase->body.arguments[i]->type->scalar));
        double moved = programs * work->moved[parameter->argument], own = programs * work->own[parameter->argument], again = moved - once;
        if (once <= LEAST_BYTES || again <= 0) continue;
        double more = least(again, moved - own);
        passes += more;
        shared += least(again - more, MOST_TIMES * once);
        if (more > 0) between += least(own, once) * least(1, together / programs);
    }
    return shared / FASTER + passes * (1 / FASTER + (1 - 1 / FASTER) * share_missed(target, between));
}

static void add_work(GpuWork *sum, const GpuWork *work, double share) {
    sum->instructions += share * work->instructions;
    sum->kept |= work->kept;
    sum->reloads |= work->reloads;
    sum->keeps |= work->keeps;
    sum->singles |= work->singles;
    sum->code = most(sum->code, work->code);
    sum->tensor += share * work->tensor;
    sum->port += share * work->port;
    sum->longest_port = most(sum->longest_port, work->port);
    sum->stored += share * work->stored;
    sum->latency += share * work->latency;
    sum->beginning += share * work->beginning;
    sum->beside += share * work->beside;
    sum->awaited += share * work->awaited;
    sum->vectors = most(sum->vectors, work->vectors);
    sum->uses_sums |= work->uses_sums;
    sum->multiplies |= work->multiplies;
    sum->registers = most(sum->registers, work->registers);
    sum->shared = most(sum->shared, work->shared);
    sum->positions |= work->positions;
    for (unsigned i = 0; i < TILE_MOST_EXTENTS; i++) {
        sum->moved[i] += share * work->moved[i];
        sum->narrow[i] |= work->narrow[i];
        sum->own[i] += share * work->own[i];
    }
}

static void look_for_uneven(TileOp *op, void *found) {
    *(bool *)found |= op->id == TILE_OP_PROGRAM_ID && tile_op_get(op, TILE_ATTRIBUTE_UNEVEN);
}

/* Do programs take the longer, or the shorter, the greater their last index? So gpu-order has found. */
static bool has_uneven_programs(TileFunc *phase) {
    bool found = false;
    tile_block_walk(&phase->body, look_for_uneven, &found);
    return found;
}

/* The latency of the longest of uneven programs: the first or the last of the grid. */
static bool find_longest(const TilePtxTarget *target, TileFunc *phase, const TileExtents *extents, int64_t programs, TileArena *scratch,
                         double *longest) {
    for (int64_t i = 0; i < 2; i++) {
        GpuWork work;
        if (!gpu_work_count(target, phase, extents, i * (programs - 1), scratch, &work)) return false;
        *longest = most(*longest, work.latency);
    }
    return true;
}

static void look_for_parts(TileOp *op, void *found) { *(bool *)found |= op->id == TILE_OP_FOR && tile_op_get(op, TILE_ATTRIBUTE_PART); }

static bool has_parts(TileFunc *phase) {
    bool parts = false;
    tile_block_walk(&phase->body, look_for_parts, &parts);
    return parts;
}

static void look_for_sums(TileOp *op, void *found) {
    *(bool *)found |= op->id == TILE_OP_FOR && tile_op_integer(op, TILE_ATTRIBUTE_PART, 0) == TILE_PART_OF_SUMS;
}

/* Has the grid several parts of each program's sums, the last extent? Those of products may be in another order. */
static bool splits_sums(TileFunc *phase, int64_t last) {
    bool sums = false;
    if (last > 1 && !has_products(phase)) tile_block_walk(&phase->body, look_for_sums, &sums);
    return sums;
}

/* How many parts of one program's loop are neighbours in a grid that is split for many programs (gpu-split-grids); else 1. Of many parts the last ones have
 * little to do, or nothing, so that four programs may be any of them; and so of loops whose bounds are a program's, as those of causal attention. */
static int64_t count_parts(const TilePtxTarget *target, TileFunc *phase, int64_t programs, int64_t last, bool mirrored) {
    enum { MANY = 4 /* for each multiprocessor */ };
    if (last < 2 || !has_parts(phase)) return 1;
    if (mirrored) return last;
    return programs > MANY * (int64_t)target->cores && !has_products(phase) ? last : 1;
}

/* Programs spread over the grid, in no step with its rows. Where loops may be longer with a greater index, as those of attention, half of them are as
 * far from the grid's end as the others are from its beginning (`mirrored`): then their mean is that of all. */
static int64_t sampled(int64_t number, int64_t programs, bool mirrored) {
    double place = mirrored ? 0.118 + 0.618 * (double)(number / 2) : 0.5 + 0.618 * (double)number;
    int64_t program = (int64_t)((place - floor(place)) * (double)programs);
    return mirrored && number % 2 ? programs - 1 - program : program;
}

static bool sample(const TilePtxTarget *target, TileFunc *phase, const TileExtents *extents, int64_t programs, int64_t last,
                   TileArena *scratch, GpuWork *sum, double *longest) {
    bool uneven = has_uneven_programs(phase), mirrored = uneven || gpu_loops_use_sums(&phase->body);
    int64_t parts = count_parts(target, phase, programs, last, mirrored), limit = parts > 1 ? MOST_PARTS : MOST_SAMPLES, samples = programs < limit ? programs : limit;
    *sum = (GpuWork){.registers = 0};
    *longest = 0;
    for (int64_t i = 0; i < samples; i++) {
        int64_t program = samples == programs ? i : sampled(i, programs, mirrored);
        if (parts > 1 && samples < programs) program += (2 * i + 1) * parts / (2 * samples) - program % parts;
        GpuWork work;
        if (!gpu_work_count(target, phase, extents, program, scratch, &work)) return false;
        *longest = most(*longest, work.latency);
        add_work(sum, &work, 1.0 / (double)samples);
    }
    return !uneven || find_longest(target, phase, extents, programs, scratch, longest);
}

/* ---- products of blocks that stay ---- */

/* A warp that computes an epilogue waits for the result of most of its instructions: each takes some cycles, or as many as there are warps of its scheduler. */
static double epilogue_of(const TileFunc *phase, const GpuWork *work) {
    enum { OF_INSTRUCTION = 3 };
    double warps = most(1, (double)phase->threads / TILE_WARP_THREADS / INSTRUCTIONS_CYCLE);
    return work->beside / warps * most(warps, OF_INSTRUCTION);
}

/* Cycles in which such a block executes so many programs, one after the other or in turn. Between the products
 * of one program and of the next, warps wait for each other, for the room of results and for first tiles. Turns hide this, and a
 * part of the computing: the tensor cores are slower while other warps compute. */
static double cycles_of_programs(const TileFunc *phase, const GpuWork *work, double programs) {
    enum { BETWEEN = 1000, OF_POSITIONS = 800 /* measured: 48 programs of 64 positions each took 22 us more than without */ };
    const double SHOWN = 0.5;
    double products = most(work->latency - work->beginning - work->beside, work->tensor) + work->awaited + (work->positions ? OF_POSITIONS : 0), epilogue = epilogue_of(phase, work);
    if (phase->turns < 2) return work->beginning + programs * (products + epilogue + BETWEEN);
    double own = (products + epilogue + BETWEEN) / phase->turns; /* of its warps, which have every second program */
    return work->beginning + programs * most(products + SHOWN * epilogue, own) + (1 - SHOWN) * epilogue + BETWEEN;
}

/* ---- what leaves the cache first ---- */

/* What the kernel's phases have in common. */
typedef struct Whole {
    double longest; /* of the phases so far, which says how many programs there are */
    double once[TILE_MOST_EXTENTS], moved[TILE_MOST_EXTENTS]; /* bytes of each tensor, and those that all phases move */
    bool stored[TILE_MOST_EXTENTS], multiplies;
} Whole;

static void note_tensors(Whole *whole, TileFunc *phase, const TileExtents *extents, const GpuWork *work, double programs) {
    whole->multiplies |= has_products(phase);
    for (uint32_t i = 0; i < phase->body.argument_count; i++) {
        const TileParameter *parameter = &phase->parameters[i];
        const TileType *type = phase->body.arguments[i]->type;
        if (parameter->role != TILE_ROLE_DATA || parameter->argument >= extents->count) continue;
        whole->once[parameter->argument] = bytes_of(extents, parameter->argument, (double)tile_scalar_bytes(type->scalar));
        whole->moved[parameter->argument] += programs * work->moved[parameter->argument];
        whole->stored[parameter->argument] |= type->access != TILE_ACCESS_IN;
    }
}

/* Had lines that are read once better make room first? Then they take the place of one another, not of what earlier kernels wrote to the cache, which need not go
 * to the memory while this one runs. What is less than the cache may be wanted by the next kernel, from there; of much more, that is a small part, and each such
 * load takes a little longer (decision 23). What this kernel stores takes those places in any case, and where computing takes longer there is time for both. */
static bool leaves_first(const TilePtxTarget *target, const Whole *whole, const TileEstimate *estimate) {
    enum { MOST_CACHES = 4, LEAST_READ = 8 };
    const double ONCE = 1.1, MOST_SHARE = 0.6;
    double read = 0, stored = 0;
    for (uint32_t i = 0; i < TILE_MOST_EXTENTS; i++)
        if (whole->stored[i]) stored += least(whole->moved[i], whole->once[i]);
        else if (whole->moved[i] <= ONCE * whole->once[i]) read += whole->moved[i];
    return !whole->multiplies && estimate->memory >= MOST_SHARE * estimate->time && read > target->cache_bytes &&
           read <= MOST_CACHES * target->cache_bytes && stored * LEAST_READ <= read;
}

/* The same of products by tensor cores whose launch the memory bounds, as those of few rows are: operands that are larger than the cache, of which all programs
 * together read each element once. Others stay, which many programs read. */
static uint32_t read_once(const TilePtxTarget *target, const Whole *whole, const TileEstimate *estimate) {
    enum { MOST_CACHES = 4, MOST_BITS = 31 };
    const double ONCE = 1.1, MOST_SHARE = 0.6;
    uint32_t arguments = 0;
    for (uint32_t i = 0; i < TILE_MOST_EXTENTS && i < MOST_BITS && whole->multiplies; i++) {
        bool large = whole->once[i] > target->cache_bytes && whole->once[i] <= MOST_CACHES * target->cache_bytes;
        if (large && !whole->stored[i] && whole->moved[i] <= ONCE * whole->once[i]) arguments |= UINT32_C(1) << i;
    }
    return estimate->memory >= MOST_SHARE * estimate->time ? arguments : 0;
}

/* ---- who waits ---- */

/* Do others compute while a program waits, or is the memory busy? Not where few programs come to a multiprocessor: registers that one of them takes are taken from
 * nobody. Nor where all are there at a time and, as the model has it, the launch waits for longer than it computes and than the memory is busy. */
static bool is_busy(const TilePtxTarget *target, const TileEstimate *estimate) {
    enum { FEW = 4 };
    if (estimate->programs > estimate->together) return true;
    return estimate->programs > FEW * target->cores && estimate->waiting < most(estimate->compute, estimate->memory);
}

/* ---- grids that combine parts ---- */

typedef struct Combined {
    bool found;
    const TileValue *parts; /* the temporary that has them */
} Combined;

static void find_parts(TileOp *op, void *data) {
    Combined *combined = data;
    if (op->id == TILE_OP_LOAD_TILE && !combined->parts) combined->parts = tile_op_operand(op, 0);
}

static void look_for_combined(TileOp *op, void *data) {
    Combined *combined = data;
    if (op->id != TILE_OP_FOR || tile_op_integer(op, TILE_ATTRIBUTE_PART, 0) != TILE_PART_OVER_SUMS) return;
    combined->found = true;
    tile_block_walk(&op->regions[0], find_parts, combined);
}

/* Does the i-th grid combine the parts of sums that the grid in front of it computes, several for each of its own programs, as the text has them? Then their number
 * decides how it is divided: the temporary has a row of parts for each. */
static void note_split(TileEstimate *estimate, TileFunc *phase, const Host *host, uint32_t i) {
    Combined combined = {0};
    unsigned number = 0;
    tile_block_walk(&phase->body, look_for_combined, &combined);
    if (i == 0 || !combined.found || !combined.parts || combined.parts->block != &phase->body) return;
    uint32_t argument = phase->parameters[combined.parts->index].argument;
    if (argument >= host->extents->count || !host->extents->rank[argument]) return;
    int64_t programs = host->extents->extent[argument][0];
    uint32_t split = 1;
    while (2 * (int64_t)split <= programs) split *= 2;
    while (number < TILE_MOST_SPLITS && estimate->split_programs[number]) number++;
    if (number < TILE_MOST_SPLITS) estimate->split_programs[number] = split;
}

/* ---- who goes on meanwhile ---- */

/* Programs without loops load, then compute, then store: where one or few blocks are on a multiprocessor at a time, little of that goes on beside another one's. Measured: images
 * of three channels, 378 programs of 1,024 threads take 19.2 to 22 us, where the memory and the waiting are 8.5 and 5.7; in small blocks 16.5. */
static double sharpness_of_few(TileFunc *phase, double blocks) {
    static const double OF_BLOCKS[] = {1, 1, 1.3, 2};
    bool loops = false;
    tile_block_walk(&phase->body, find_loop, &loops);
    return loops || has_products(phase) || blocks >= 4 ? INFINITY : OF_BLOCKS[(int)blocks]; /* infinite: it is as sharp as for other reasons */
}

/* Blocks that come together load, wait and compute together, the less so the more rounds of them there are. */
static double sharpness_of_rounds(double rounds) { return least(SHARPNESS, ROUND_SHARPNESS + NEXT_ROUND_SHARPER * most(0, rounds - 1)); }

/* Cycles of a multiprocessor until all of its blocks have come: none loads anything before that. */
static double coming_of(TileFunc *phase, double busiest, double blocks) {
    if (phase->resident) return 0;
    if (has_products(phase)) return most(0, busiest - blocks) * BLOCK_CYCLES;
    return busiest * (SMALL_BLOCK_CYCLES + OF_BLOCKS_WARP * (double)phase->threads / TILE_WARP_THREADS);
}

/* ---- products of blocks that do not stay ---- */

/* Cycles in which a multiprocessor that has one such block at a time loads nothing: at the end of one, and at the beginning of the next. */
static double between_blocks(const TileFunc *phase, const GpuWork *work, double rounds, double blocks) {
    return phase->resident || blocks > 1 ? 0 : (rounds - 1) * (work->beginning + epilogue_of(phase, work));
}

/* ---- the whole kernel ---- */

static bool estimate_phase(const TilePtxTarget *target, TileFunc *phase, const TileExtents *extents, int64_t count, int64_t last,
                           TileArena *scratch, TileEstimate *estimate, Whole *whole) {
    GpuWork work;
    if (count < 1) return true;
    double latest; /* program */
    if (!sample(target, phase, extents, count, last, scratch, &work, &latest)) return false;
    estimate->spills |= spills_of(target, phase, &work) > 0;
    estimate->kept |= work.kept;
    estimate->reloads |= work.reloads;
    estimate->keeps |= work.keeps;
    estimate->singles |= work.singles;
    estimate->tight |= work.shared > TIGHT * target->shared_block_bytes;
    double programs = (double)count, blocks = blocks_of_core(target, phase, &work);
    if (phase->phase < TILE_MOST_SPLITS) estimate->blocks_together[phase->phase] = blocks_together(target, phase, &work, programs, blocks);
    double busiest = ceil(programs / target->cores), rounds = ceil(busiest / blocks), microsecond = target->clock_mhz;
    bool wgmma = has_wgmma(phase), one = rounds <= 1 && has_parts(phase), /* of which a block has one has nothing to hide */
         stays = wgmma && phase->resident && !work.uses_sums && !one;
    double slower = stays ? 1 : slower_of(target, phase, &work);
    bool alone_in_turn = phase->resident && phase->threads == TILE_WARP_THREADS && !has_products(phase);
    double waiting = (alone_in_turn ? IN_TURN : 1) * (stays ? cycles_of_programs(phase, &work, rounds) : most(rounds * work.latency, latest) * slower) / microsecond;
    double issue = busiest * work.instructions * slower / INSTRUCTIONS_CYCLE / microsecond,
           tensor = busiest * work.tensor / microsecond / 0.9;
    double moved = memory_bytes(phase, extents, &work, programs) + bytes_read_again(target, phase, extents, &work, programs);
    double memory = moved / (target->memory_gbs * 1e3), port = busiest > 1 ? busiest * work.port : work.longest_port; /* alone, as long as a whole tile's takes */
    port = (port + (wgmma ? between_blocks(phase, &work, rounds, blocks) : 0)) / microsecond;
    double compute = issue + tensor - 0.5 * least(issue, tensor);
    double coming = coming_of(phase, busiest, blocks) / microsecond;
    memory = most(memory, port) * (1 + OF_VECTOR * least(most(0, work.vectors - FEW_VECTORS), MOST_VECTORS - FEW_VECTORS));
    note_tensors(whole, phase, extents, &work, programs);
    estimate->splits |= splits_sums(phase, last);
    estimate->memory += memory;
    estimate->compute += compute;
    estimate->waiting += waiting;
    /* Warps of one block that multiply-add and compute with the sums wait for little else than their own instructions. */
    bool alone = blocks < 2 && work.uses_sums && gpu_find_sums(phase, &phase->body).count;
    bool three = wgmma && !stays && phase->threads == THREE_WARPGROUPS && issue > MORE_ISSUED * tensor;
    double sharpness = stays ? STAYING_SHARPNESS : three ? THREE_SHARPNESS : alone ? ALONE_SHARPNESS : work.multiplies ? MULTIPLYING_SHARPNESS : has_products(phase) ? SHARPNESS : sharpness_of_rounds(busiest / blocks);
    sharpness = least(sharpness, rounds > 1 ? sharpness_of_few(phase, blocks) : sharpness);
    double time = pow(pow(memory, sharpness) + pow(compute, sharpness) + pow(waiting, sharpness) + pow(coming, sharpness),
                      1 / sharpness);
    if (phase->cluster > 1) time += CLUSTER;
    if (rounds > 1 && (stays || !has_products(phase)) && has_parts(phase)) time += IN_STEP;
    /* What the last blocks of products store at their end: they are there at a time, and nothing else goes on beside it. Blocks that stay
     * store beside their next program's products. Measured: what tensor maps store is gone as soon as the L2 cache has it. */
    double storing = programs * work.stored / (target->memory_gbs * 1e3) / most(1, rounds - 1);
    if (has_products(phase) && (!stays || rounds <= 1)) time += wgmma ? storing / FASTER : storing;
    if (has_uneven_programs(phase)) time += LAST_SHARE * (1 - 1 / blocks) * latest * slower / microsecond;
    estimate->time += time;
    if (time <= whole->longest) return true;
    whole->longest = time;
    estimate->programs = programs;
    estimate->together = least(programs, blocks * target->cores);
    estimate->alone = programs <= target->cores;
    estimate->few = programs <= (phase->cluster > 1 ? FEW_OF_CLUSTERS : 1) * target->cores;
    return true;
}

bool gpu_estimate(const TileTarget *target, TileFunc *kernel, const TileExtents *extents, TileArena *scratch,
                  TileEstimate *estimate) {
    TileExtents *all = TILE_NEW(scratch, TileExtents);
    *all = *extents;
    Host host = {.numbers = gpu_numbers_create(kernel, all, scratch), .extents = all};
    tile_block_walk(&kernel->body, visit_host, &host);
    Whole whole = {.longest = 0};
    bool begun = false, behind_products = false; /* as measured: what combines parts of products begins so much later */
    *estimate = (TileEstimate){.time = LAUNCH, .launch = LAUNCH};
    for (uint32_t i = 0; i < host.grids; i++) {
        TileFunc *phase = tile_func_phase(kernel, i);
        bool runs = host.programs[i] > 0; /* no others are launched */
        if (begun && runs) estimate->time += NEXT_GRID + (behind_products ? BEHIND_PRODUCTS : 0);
        if (!begun && runs && phase && !phase->resident) estimate->time += LATER;
        behind_products = runs ? phase && has_products(phase) : behind_products;
        begun |= runs;
        if (phase && !estimate_phase(tile_ptx_target_of(target), phase, all, host.programs[i], host.last[i], scratch, estimate, &whole))
            return false;
        if (phase) note_split(estimate, phase, &host, i);
    }
    estimate->splits &= estimate->programs >= tile_ptx_target_of(target)->cores;
    estimate->streams = leaves_first(tile_ptx_target_of(target), &whole, estimate);
    estimate->once = read_once(tile_ptx_target_of(target), &whole, estimate);
    estimate->busy = is_busy(tile_ptx_target_of(target), estimate);
    return true;
}
