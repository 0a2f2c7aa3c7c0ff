/* What loads, stores and updates of tiles take. */
#include <math.h>

#include "ptx/model/walk.h"
#include "ptx/pipeline/copies.h"
#include "ptx/target/map.h"

enum { SECTOR_BYTES = 32, PREDICATED_BYTES = 8 };

/* Instructions of a warp: of an element by itself, of an element through shared memory and back. */
enum { OF_ELEMENT = 12, OF_COPIED_ELEMENT = 70, OF_COPIED_WORD = 8, OF_TURNED_WORD = 6, OF_UPDATE = 16 };

/* That each warp issues in an iteration for the bounds along an axis of a tile of words that is not whole or whose rows are of several axes. */
enum { OF_BOUNDS = 80 };

/* Cycles of the port for a row of less than a line, however little that is. Measured: transforms of columns take 72, 36 and 28 us with 4, 8 and 16 columns of f32 a program, norms of 8 neighbouring channels
 * 77 in f32 and 83 in bf16. */
static const double OF_NARROW_ROW = 2.5;

/* That each warp issues to ask for each axis whether a tile of a window lies inside: of elements of 16 bits, for each load by itself; others ask together (gpu-inside). Counted in SASS of
 * 5 and 7 positions. Threads that have more than a vector ask for no less: measured, Sobel's filter of two vectors a thread takes 39 us, of one 31. */
enum { OF_TEST = 20, OF_SHARED_TEST = 6 };

typedef struct Piece {
    double valid;   /* lanes of the tile that are inside */
    double bytes;   /* in sectors */
    double vectors; /* accesses of a thread's, if all threads take part */
    bool whole;     /* no lane is outside, and rows are aligned: vectors move without questions */
    double lines;   /* bytes of all lines of the L2 cache of which the rows of boxes have a part */
    double even;    /* bytes of vectors that have a predicate each and that rows consist of; 0: elements */
    double pieces;  /* a thread has so many neighbours, which it moves one by one */
    double narrow;  /* rows of less than a line of the L2 cache, between which others lie */
    double tests;   /* axes along which something may be outside in front of the tensor too, as in a window */
} Piece;

static double count_valid(const GpuWalk *walk, const TileAccessIndex *index, double extent) {
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
static unsigned grain_of(const GpuWalk *walk, const TileOp *op) {
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
    return boxes * TILE_LINE_BYTES * (1 + gpu_most(0, more));
}

/* ---- gathers ---- */

/* By how much an index changes from a lane to its neighbour, at most, but for a few lanes, as those at which a remainder begins again; HUGE_VAL: by anything, as
 * one that is loaded. */
static double slope_of(const GpuWalk *walk, const TileValue *value, unsigned depth) {
    enum { MOST_DEPTH = 16 };
    const TileOp *op = value->op;
    int64_t number;
    if (!tile_type_is_tile(value->type) || !op || op->id == TILE_OP_SPLAT || op->id == TILE_OP_CONST) return tile_type_is_tile(value->type) && !op ? HUGE_VAL : 0;
    if (op->id == TILE_OP_IOTA) return 1;
    if (op->id == TILE_OP_FILL) return depth == MOST_DEPTH ? HUGE_VAL : slope_of(walk, tile_op_operand(op, 0), depth + 1);
    bool shape = op->id == TILE_OP_RESHAPE || op->id == TILE_OP_BROADCAST;
    if (depth == MOST_DEPTH || (!shape && tile_op_info(op->id)->class != TILE_CLASS_ELEMENTWISE)) return HUGE_VAL;
    double slopes[3] = {0}, sum = 0;
    const TileValue *last = NULL;
    for (unsigned i = 0; i < op->operand_count; i++) {
        last = tile_op_operand(op, i);
        sum += slopes[i] = slope_of(walk, last, depth + 1);
    }
    if (sum == 0 || op->operand_count == 1) return sum; /* also of abs and neg */
    const TileOp *uniform = tile_value_def(last, TILE_OP_SPLAT);
    bool known = tile_value_integer(last, &number) || (uniform && gpu_number_get(&walk->numbers, tile_op_operand(uniform, 0), &number));
    double factor = known && number ? fabs((double)number) : 1;
    if (op->id == TILE_OP_ADD || op->id == TILE_OP_SUB) return sum;
    if (op->id == TILE_OP_MIN || op->id == TILE_OP_MAX) return gpu_most(slopes[0], slopes[1]);
    if (op->id == TILE_OP_SELECT) return gpu_most(slopes[1], slopes[2]);
    if (slopes[1] > 0) return HUGE_VAL;
    if (op->id == TILE_OP_REM) return slopes[0];
    return op->id == TILE_OP_DIV ? slopes[0] / factor : op->id == TILE_OP_MUL && known ? slopes[0] * factor : HUGE_VAL;
}

/* An index before it was repeated for lanes of another one. */
static const TileValue *distinct_lanes(const TileValue *index) {
    const TileOp *shape = tile_value_def(index, TILE_OP_RESHAPE), *repeated = tile_value_def(shape ? tile_op_operand(shape, 0) : index, TILE_OP_BROADCAST);
    return repeated ? tile_op_operand(repeated, 0) : index;
}

/* Sectors of a row of S in which n lanes lie: where their indices follow one another as many as these are long, else, anywhere, S (1 - exp(-n / S)). */
static double sectors_of_row(const GpuWalk *walk, const TileValue *index, double lanes, double sectors, double element) {
    double slope = slope_of(walk, index, 0), anywhere = sectors * (1 - exp(-lanes / sectors)), near = 1 + lanes * slope * element / SECTOR_BYTES;
    return near < anywhere ? near : anywhere;
}

/* Lanes that are gathered along the last dimension share sectors, which a block's own cache keeps for its other lanes: of so many sectors for each lane. */
static double share_of_gathered(const GpuWalk *walk, const TileOp *op, const TileAccessIndex *indices, unsigned rank, const TileType *tile) {
    const TileValue *tensor = tile_op_operand(op, 0);
    const TileExtents *extents = walk->numbers.extents;
    unsigned last = rank - 1;
    if (op->id != TILE_OP_LOAD_TILE || indices[last].kind != TILE_ACCESS_GATHER || tensor->block != &walk->numbers.func->body) return 1;
    uint32_t argument = walk->numbers.func->parameters[tensor->index].argument;
    if (argument >= extents->count || extents->rank[argument] != rank) return 1;
    double element = (double)tile_scalar_bytes(tile->scalar), lanes = (double)tile->extent[indices[last].axis], rows = 1, all = 1;
    double sectors = ceil((double)extents->extent[argument][last] * element / SECTOR_BYTES);
    for (unsigned d = 0; d < last; d++) {
        if (indices[d].kind != TILE_ACCESS_GATHER) continue;
        rows *= gpu_walk_lanes(distinct_lanes(indices[d].first)->type);
        all *= (double)extents->extent[argument][d];
    }
    const TileValue *index = distinct_lanes(indices[last].first);
    double own = gpu_walk_lanes(index->type);
    if (sectors < 1 || all < 1) return 1;
    if (rows * own <= lanes) return rows * sectors_of_row(walk, index, own, sectors, element) / lanes; /* each row's lanes are those of all rows */
    return sectors_of_row(walk, indices[last].first, lanes, sectors * all, element) / lanes;
}

/* ---- an access ---- */

/* Bytes from a lane to the next, of a tensor of places that are stored or loaded one by one, or of a range in steps; 0: it is none of these. */
static double spacing_of(const GpuWalk *walk, const TileOp *op, const TileAccessIndex *indices, unsigned rank, const TileType *tile) {
    const TileValue *tensor = tile_op_operand(op, 0);
    const TileExtents *extents = walk->numbers.extents;
    double element = (double)tile_scalar_bytes(tile->scalar);
    unsigned last = rank - 1;
    if (indices[last].kind == TILE_ACCESS_RANGE) return (double)gpu_number_or(&walk->numbers, indices[last].step, 0) * element;
    bool places = rank > 1 && indices[last].kind == TILE_ACCESS_INDEX && indices[last - 1].kind == TILE_ACCESS_RANGE &&
                  indices[last - 1].axis == (int)tile->rank - 1 && tensor->block == &walk->numbers.func->body;
    uint32_t argument = places ? walk->numbers.func->parameters[tensor->index].argument : 0;
    if (!places || argument >= extents->count || extents->rank[argument] != rank) return 0;
    return (double)gpu_number_or(&walk->numbers, indices[last - 1].step, 0) * (double)extents->extent[argument][last] * element;
}

/* Does the mask say the same of all lanes of a line, so that these are still moved in vectors? */
static bool is_same_along_line(const TileValue *mask, unsigned depth) {
    const TileOp *op = mask->op;
    if (!op || op->id == TILE_OP_CONST || op->id == TILE_OP_SPLAT) return op != NULL;
    if (op->id == TILE_OP_BROADCAST) {
        const TileType *type = tile_op_operand(op, 0)->type;
        return type->extent[type->rank - 1] == 1 || (depth && is_same_along_line(tile_op_operand(op, 0), depth - 1));
    }
    bool same = depth && tile_op_info((TileOpId)op->id)->class == TILE_CLASS_ELEMENTWISE;
    for (unsigned i = 0; same && i < op->operand_count; i++) same = is_same_along_line(tile_op_operand(op, i), depth - 1);
    return same;
}

static bool has_mask_of_elements(const TileOp *op) {
    enum { DEPTH = 4 };
    return tile_op_has_part(op, TILE_PARTS_MASK) && !is_same_along_line(tile_op_named(op, TILE_OPERAND_MASK), DEPTH);
}

/* Elements of a row that a box copies for so many: whole panels, as far as the tensor goes. */
static double copied_of_row(const GpuWalk *walk, const TileOp *op, const TileAccessIndex *last, const TileType *tile, double valid) {
    const TileValue *tensor = tile_op_operand(op, 0);
    const TileExtents *extents = walk->numbers.extents;
    double element = (double)tile_scalar_bytes(tile->scalar), extent = (double)tile->extent[tile->rank - 1];
    bool known = tensor->block == &walk->numbers.func->body && last->axis == (int)tile->rank - 1;
    uint32_t argument = known ? walk->numbers.func->parameters[tensor->index].argument : 0;
    if (!known || argument >= extents->count || op->id != TILE_OP_LOAD_TILE || tile->rank < 2) return valid;
    GpuSharedTile slot = gpu_shared_tile(gpu_copied_panel_type(walk->numbers.func->module->context, tile));
    double left = (double)(extents->extent[argument][extents->rank[argument] - 1] - gpu_number_or(&walk->numbers, last->first, 0));
    double all = (double)(slot.panels * slot.columns);
    return all * element > extent * element ? gpu_most(valid, all < left ? all : left) : valid;
}

/* How much longer lines take where a box has rows of many images, of which it has all channels: those of one square lie near one another, others come from
 * elsewhere. Measured: gradients of weights, 256 x 56 x 56 x 64 with squares of 8, 4 and 1 (207, 211, 228 us), and 256 x 28 x 28 x 128 with 4 and 1 (120, 128). */
static double apart(const GpuWalk *walk, const TileOp *op, unsigned rank, const TileType *tile) {
    enum { TOGETHER = 64, OF_IMAGES = 4 };
    const double OF_HALF = 0.04;
    const TileExtents *extents = walk->numbers.extents;
    const TileValue *tensor = tile_op_operand(op, 0);
    if (!gpu_by_map(op) || tile->rank < OF_IMAGES || tensor->block != &walk->numbers.func->body) return 1;
    uint32_t argument = walk->numbers.func->parameters[tensor->index].argument;
    bool all = argument < extents->count && extents->rank[argument] == rank && extents->extent[argument][rank - 1] <= tile->extent[tile->rank - 1];
    int64_t near = 1;
    for (unsigned a = 1; a + 1 < tile->rank; a++) near *= tile->extent[a];
    double longer = 1;
    for (; all && near < TOGETHER; near *= 2) longer += OF_HALF;
    return longer;
}

/* Is a row of so many elements of the tensor a part of a longer one? */
static bool is_part_of_row(const GpuWalk *walk, const TileOp *op, unsigned rank, double run) {
    const TileValue *tensor = tile_op_operand(op, 0);
    const TileExtents *extents = walk->numbers.extents;
    if (tensor->block != &walk->numbers.func->body || walk->products || gpu_by_map(op)) return false;
    uint32_t argument = walk->numbers.func->parameters[tensor->index].argument;
    return argument < extents->count && extents->rank[argument] == rank && (double)extents->extent[argument][rank - 1] > run;
}

static Piece look_at_access(const GpuWalk *walk, const TileOp *op, const TileType *tile) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    unsigned rank = tile_access_read(op, indices), last = rank - 1;
    double element = (double)tile_scalar_bytes(tile->scalar), lanes = gpu_walk_lanes(tile);
    Piece piece = {.valid = lanes, .whole = true};
    double run = 1; /* neighbouring elements */
    unsigned windows = 0;
    for (unsigned i = 0; i < rank; i++) {
        if (indices[i].kind != TILE_ACCESS_RANGE) continue;
        double extent = (double)tile->extent[indices[i].axis], valid = count_valid(walk, &indices[i], extent);
        piece.valid *= valid / extent;
        piece.whole &= valid == extent;
        if (i == last && gpu_number_or(&walk->numbers, indices[i].step, 1) == 1) run = valid;
        int64_t lo;
        windows += !tile_value_integer(indices[i].lo, &lo);
    }
    piece.tests = walk->products ? 0 : windows;
    if (run > 1 && run * element < TILE_LINE_BYTES && rank > 1 && is_part_of_row(walk, op, rank, run)) piece.narrow = piece.valid / run;
    bool rows = rank && indices[last].kind == TILE_ACCESS_RANGE && indices[last].axis == (int)tile->rank - 1;
    bool vectors = rows && !has_mask_of_elements(op);
    unsigned grain = tile_op_get(op, TILE_ATTRIBUTE_FLAT) ? GPU_VECTOR_BYTES : grain_of(walk, op);
    bool odd = rank > 1 && grain < PREDICATED_BYTES && !walk->neighbours; /* lanes have neighbours then */
    piece.even = vectors ? even_bytes(grain, element, run) : 0;
    piece.bytes = run > 0 ? piece.valid / run * round_up(run * element, SECTOR_BYTES) : 0;
    double spacing = rank && run == 1 ? spacing_of(walk, op, indices, rank, tile) : 0;
    if (spacing > 0 && spacing < SECTOR_BYTES) piece.bytes = piece.valid * spacing;
    if (rank) piece.bytes *= share_of_gathered(walk, op, indices, rank, tile);
    double copied = gpu_by_map(op) && run > 1 ? copied_of_row(walk, op, &indices[last], tile, run) : run;
    piece.lines = run > 0 ? piece.valid / run * bytes_of_lines(grain, copied * element) * apart(walk, op, rank, tile) : 0;
    double vector = odd ? gpu_most(1, grain / element) : GPU_VECTOR_BYTES / element;
    if (rows && (double)tile->extent[tile->rank - 1] < vector) vector = (double)tile->extent[tile->rank - 1];
    double held = gpu_walk_elements(walk, tile);
    if (vector > held) vector = held;
    if (!rows || vector < 1) vector = 1;
    piece.whole &= vectors && (odd || grain >= vector * element); /* threads that have less than a vector of 16 bytes ask for no more alignment than that */
    piece.vectors = held / vector;
    piece.pieces = rows && rank > 1 && grain < PREDICATED_BYTES && walk->neighbours ? vector : 1;
    return piece;
}

/* Is the value another one in each of the loop's iterations, as far as `depth` ops tell? */
static bool varies_in(const TileValue *value, const TileOp *loop, unsigned depth) {
    enum { BOUNDS = 3 };
    if (tile_value_outside(value, loop)) return false;
    const TileOp *op = value->op ? value->op : value->block->op;
    bool counted = !value->op && op != loop && op->id == TILE_OP_FOR && value->index == 0; /* from a bound to a bound, which may be the same ones */
    if (depth == 0 || (!value->op && !counted) || (value->op && op->region_count)) return true;
    for (unsigned i = 0; i < (counted ? BOUNDS : op->operand_count); i++)
        if (varies_in(tile_op_operand(op, i), loop, depth - 1)) return true;
    return false;
}

/* Does the access move other bytes in each of the loop's iterations? */
static bool depends_on(const TileOp *op, const TileOp *loop) {
    enum { DEPTH = 8 };
    const TileValue *stored = op->id == TILE_OP_LOAD_TILE ? NULL : tile_op_named(op, TILE_OPERAND_VALUE);
    for (unsigned i = 0; i < op->operand_count; i++) {
        const TileValue *operand = tile_op_operand(op, i);
        if (operand != stored && varies_in(operand, loop, DEPTH)) return true;
    }
    return false;
}

/* Accesses of one block are to neighbours, as those of windows; those of different blocks are to the same elements, once more. */
static void count_own(GpuWalk *walk, const TileOp *op, uint32_t argument, double bytes) {
    double times = walk->times;
    for (const GpuAround *around = walk->around; around; around = around->outer)
        if (!depends_on(op, around->op)) times /= gpu_most(1, around->trips);
    if (walk->last[argument] != op->block) walk->beside[argument] = 0;
    walk->last[argument] = op->block;
    walk->beside[argument] += times * bytes;
    walk->work->own[argument] = gpu_most(walk->work->own[argument], walk->beside[argument]);
}

static bool goes_by_positions(const TileOp *op) {
    const TileAttribute *kinds = tile_op_get(op, TILE_ATTRIBUTE_ACCESS);
    for (uint32_t d = 0; kinds && d < kinds->count; d++)
        if (kinds->integers[d] == TILE_ACCESS_POSITION) return true;
    return false;
}

static void count_bytes(GpuWalk *walk, const TileOp *op, const Piece *piece) {
    walk->work->positions |= goes_by_positions(op);
    const TileValue *tensor = tile_op_operand(op, 0);
    double by_bytes = gpu_by_map(op) ? piece->lines / (double)(tile_op_integer(op, TILE_ATTRIBUTE_MULTICAST, 1) * GPU_BOXES_BYTES_CYCLE) : piece->bytes / GPU_PORT_BYTES_CYCLE;
    walk->work->port += walk->times * gpu_most(by_bytes, piece->narrow * OF_NARROW_ROW);
    if (tensor->block != &walk->numbers.func->body) return;
    uint32_t argument = walk->numbers.func->parameters[tensor->index].argument;
    walk->work->moved[argument] += walk->times * piece->bytes;
    walk->work->narrow[argument] |= piece->narrow > 0 && op->id == TILE_OP_LOAD_TILE;
    count_own(walk, op, argument, piece->bytes);
}

static double instructions_of_access(const GpuWalk *walk, const Piece *piece, const TileType *tile) {
    double bytes = gpu_walk_elements(walk, tile) * (double)tile_scalar_bytes(tile->scalar);
    if (piece->whole) return piece->vectors * GPU_OF_VECTOR;
    return piece->even > 0 ? gpu_most(1, bytes / piece->even) * (GPU_OF_VECTOR + 3) : gpu_walk_elements(walk, tile) * OF_ELEMENT;
}

/* Threads read what they compute with as fragments: of 16 bits, by matrices, else in pairs. */
static double instructions_of_reading(const GpuWalk *walk, const TileOp *load, const TileType *tile) {
    enum { OF_MATRICES = 8, PAIR = 2 };
    if (!gpu_load_is_computed(load) && !gpu_load_is_added(load)) return 0;
    return gpu_walk_elements(walk, tile) / (tile_scalar_bits(tile->scalar) == 16 ? OF_MATRICES : PAIR);
}

/* Copies run beside the products: they take a share of an iteration's time only if they come too late. */
static double do_copied(GpuWalk *walk, const TileOp *op, double begin, const Piece *piece, const TileType *tile, double bounds) {
    int64_t slots = tile_op_integer(op, TILE_ATTRIBUTE_LATENCY, 0) + 1;
    walk->work->shared += (double)slots * gpu_walk_lanes(tile) * (double)tile_scalar_bytes(tile->scalar);
    walk->copied += slots > 1 ? piece->bytes : 0;
    walk->flows |= gpu_by_map(op);
    if (slots > 1 && (walk->slots == 0 || (double)slots < walk->slots)) walk->slots = (double)slots;
    bool words = tile_scalar_bytes(tile->scalar) >= 4, turned = gpu_load_is_turned(op);
    double instructions = gpu_by_map(op) ? instructions_of_reading(walk, op, tile)
                          : turned       ? gpu_walk_elements(walk, tile) * (piece->whole ? OF_TURNED_WORD : OF_COPIED_WORD + OF_TURNED_WORD)
                          : piece->whole ? piece->vectors * GPU_OF_VECTOR
                                         : gpu_walk_elements(walk, tile) * (words ? OF_COPIED_WORD : OF_COPIED_ELEMENT);
    return gpu_walk_issue(walk, op, begin, instructions + bounds, slots > 1 ? GPU_OF_CHANNEL : GPU_OF_MEMORY + GPU_OF_BARRIER);
}

/* A tile that a map copies beside a loop's last products, for what is computed with their sums behind it. */
static double do_added(GpuWalk *walk, const TileOp *op, double begin, const TileType *tile) {
    walk->work->shared += gpu_walk_lanes(tile) * (double)tile_scalar_bytes(tile->scalar);
    return gpu_walk_issue(walk, op, begin, instructions_of_reading(walk, op, tile), GPU_OF_CHANNEL);
}

/* What is loaded for each sum comes with the share of the memory that a multiprocessor has. A value and its address take a register
 * each; where these do not suffice, loads wait for one another. */
static void count_awaited(GpuWalk *walk, const TileType *tile, const Piece *piece) {
    enum { REGISTERS_OF_LOADED = 2, OTHERS = 28, MOST_REGISTERS = 240 };
    const double OF_LACKING = 1.5;
    const TilePtxTarget *target = walk->target;
    double share = target->memory_gbs * 1e3 / (target->cores * target->clock_mhz), held = gpu_walk_elements(walk, tile);
    double lacking = gpu_most(0, walk->sums + REGISTERS_OF_LOADED * held + OTHERS - MOST_REGISTERS) / MOST_REGISTERS;
    double awaited = (GPU_OF_MEMORY + piece->bytes / share) * (1 + OF_LACKING * lacking);
    walk->work->awaited = gpu_most(walk->work->awaited, awaited);
}

/* Rows of 16 bits that begin anywhere are loaded element by element (ptx/lowering/widths.c: in loops, but for tiles of one axis), all at once. */
static bool loads_singles(const GpuWalk *walk, const Piece *piece, const TileType *tile) {
    return piece->pieces > 1 && walk->loops && tile->rank > 1 && tile_scalar_bytes(tile->scalar) < sizeof(uint32_t);
}

/* Axes whose bounds are asked for: where a square of an image has one more of one element, for the image, there is nothing to ask. */
static unsigned count_axes(const TileType *tile) {
    enum { OF_SQUARE = 3 };
    unsigned count = tile->rank;
    for (unsigned a = 0; a < tile->rank && count > OF_SQUARE; a++) count -= tile->extent[a] == 1;
    return count;
}

static double bytes_of_thread(const GpuWalk *walk, const TileType *tile) { return gpu_walk_elements(walk, tile) * (double)tile_scalar_bytes(tile->scalar); }

double gpu_walk_load(GpuWalk *walk, const TileOp *op, double begin) {
    const TileType *tile = op->results[0].type;
    if (!tile_type_is_tile(tile)) return gpu_walk_issue(walk, op, begin, 0, GPU_OF_MEMORY);
    Piece piece = look_at_access(walk, op, tile);
    count_bytes(walk, op, &piece);
    bool ahead = tile_op_get(op, TILE_ATTRIBUTE_LATENCY) != NULL;
    bool words = tile_scalar_bytes(tile->scalar) >= 4 && walk->loops && !gpu_by_map(op) && gpu_walk_feeds_products(&op->results[0]);
    double bounds = words && (!piece.whole || tile->rank > 2) ? count_axes(tile) * OF_BOUNDS : 0;
    if (gpu_load_is_copied(op) || ahead) return do_copied(walk, op, begin, &piece, tile, bounds);
    if (gpu_by_map(op) && gpu_load_is_added(op)) return do_added(walk, op, begin, tile);
    if (walk->loops == 0 && tile->rank > 1) count_awaited(walk, tile, &piece);
    double tests = piece.tests * (tile_scalar_bytes(tile->scalar) < sizeof(uint32_t) ? OF_TEST : OF_SHARED_TEST) * gpu_most(1, bytes_of_thread(walk, tile) / GPU_VECTOR_BYTES);
    walk->work->singles |= loads_singles(walk, &piece, tile);
    return gpu_walk_issue(walk, op, begin, instructions_of_access(walk, &piece, tile) + bounds + tests, GPU_OF_MEMORY);
}

/* Cycles of the multiprocessor for sums of wgmma that go to memory without a way through shared memory, narrower than a sector is for four
 * lanes: a warp's store has a part of each of eight rows. Measured: products of 872 x 3312 x 216 and of 7360 x 320 x 64, 128 x 192 and 128 x 256 at
 * a time, take 4.1 to 5.4 us more. */
static double cycles_of_fragments(const GpuWalk *walk, const TileOp *store, const TileType *tile) {
    enum { OF_STORE = 19, LANES = 2 * TILE_WARP_THREADS, BYTES = 2 };
    bool apart = walk->wgmma && store->id == TILE_OP_STORE_TILE && !gpu_by_map(store) && !gpu_by_rows(store);
    return apart && tile->rank > 1 && tile_scalar_bytes(tile->scalar) == BYTES ? gpu_walk_lanes(tile) / LANES * OF_STORE : 0;
}

double gpu_walk_store(GpuWalk *walk, const TileOp *op, double begin) {
    enum { LEAST_EXCHANGED = 4096 };
    const TileType *tile = tile_op_named(op, TILE_OPERAND_VALUE)->type;
    if (!tile_type_is_tile(tile)) return gpu_walk_issue(walk, op, begin, GPU_OF_VECTOR, 0);
    Piece piece = look_at_access(walk, op, tile);
    count_bytes(walk, op, &piece);
    if (op->id == TILE_OP_ATOMIC_TILE) return gpu_walk_issue(walk, op, begin, gpu_walk_elements(walk, tile) * OF_UPDATE, GPU_OF_MEMORY);
    if (gpu_by_map(op)) walk->work->shared += gpu_walk_lanes(tile) * (double)tile_scalar_bytes(tile->scalar);
    double instructions = instructions_of_access(walk, &piece, tile), fragments = cycles_of_fragments(walk, op, tile);
    walk->work->port += walk->times * fragments;
    walk->work->stored += walk->times * piece.bytes;
    if (tile_op_get(op, TILE_ATTRIBUTE_FLAT) && piece.whole) walk->work->vectors = gpu_most(walk->work->vectors, piece.vectors);
    bool exchanged = tile->extent[tile->rank - 1] >= LEAST_EXCHANGED; /* ptx/lowering/turned.c */
    if (piece.pieces > 1 && walk->loops && !exchanged) /* of each sector a piece for each of a thread's neighbours; else lanes get neighbours */
        walk->work->port += walk->times * piece.bytes * (piece.pieces - 1) / GPU_PORT_BYTES_CYCLE;
    else if (piece.pieces > 1 && !walk->loops)
        instructions += gpu_walk_elements(walk, tile) * (1 + 1 / piece.pieces);
    return gpu_walk_issue(walk, op, begin, instructions, fragments + (piece.pieces > 1 && !walk->loops ? GPU_OF_BARRIER : 0));
}
