/* Statements that compute several points of a tile together.
 *
 * Changes of shape, permutations, slices and concatenations of tiles whose extents are powers of two move the bits of an
 * element's position. An op that concatenates two halves reads one of them where a bit is 0, the other where it is 1: if
 * the bit is a constant, nothing is left of the op. So a chain of such ops, as a Fourier transform or a sorting network
 * has, is computed for all values of the few bits that it fixes, whose elements are then in registers; loops run over the
 * other bits. A value at which a chain would need more points than there are registers is kept in memory, and a block of
 * other bits begins.
 *
 * Vectors take consecutive bits that are not fixed, `lanes` of them. If they are not the lowest bits, all bits below
 * them are fixed too, since then the vectors of all points cover memory without gaps, and are transposed in registers
 * (vector_group.c). */
#include <string.h>

#include "cpu/nest.h"
#include "lang/ir/operands.h"

enum { SMALL_BITS = 3, MOST_PARTS = 6 /* ops below one another */ };

static unsigned log2_of(int64_t number) { return (unsigned)__builtin_ctzll((uint64_t)number); }

static bool is_power(int64_t number) { return number > 0 && (number & (number - 1)) == 0; }

/* The number of bits of a position; -1: the tile's extents are no powers of two. */
static int bits_of(const TileType *type) {
    unsigned bits = 0;
    for (unsigned i = 0; i < nest_rank(type); i++) {
        if (!is_power(type->extent[i])) return -1;
        bits += log2_of(type->extent[i]);
    }
    return bits <= NEST_BITS ? (int)bits : -1;
}

/* The lowest bit of an axis. */
static unsigned lowest_bit(const TileType *type, unsigned axis) {
    unsigned bit = 0;
    for (unsigned i = axis + 1; i < type->rank; i++) bit += log2_of(type->extent[i]);
    return bit;
}

NestBlock *nest_block_of(const NestStatement *s) {
    NestBlock *block = s->block;
    while (block && block->joined) block = block->joined;
    return block;
}

static NestBlock *root_of(NestBlock *block) {
    while (block && block->joined) block = block->joined;
    return block;
}

/* ---- how many points ---- */

/* The bits that the lanes of a vector take: as many as there are, but of small tiles half of all. */
static unsigned lane_bits(const Nest *n, const NestBlock *block) {
    unsigned bytes = n->context->target ? n->context->target->vector_bytes : 64;
    unsigned most = log2_of(bytes / 4), half = (unsigned)__builtin_popcount(block->may) / 2;
    return half < most ? half : most;
}

static unsigned registers(const Nest *n) { return n->context->target ? n->context->target->vector_registers : 32; }

/* The bits from `bit` on that are in one axis with it. */
static unsigned bits_above(const TileType *type, unsigned bit) {
    unsigned low = 0;
    for (unsigned i = type->rank; i-- > 0;) {
        unsigned count = log2_of(type->extent[i]);
        if (bit < low + count) return low + count - bit;
        low += count;
    }
    return 0;
}

/* Adds the bits below the lanes; false: nothing is left for the lanes. *lane: the first bit of the lanes. Of vectors that
 * are transposed the bits of one suffice. */
static bool complete(const Nest *n, const NestBlock *block, uint32_t cuts, uint32_t *fixed, unsigned *lane) {
    unsigned lanes = lane_bits(n, block), count = (unsigned)bits_of(block->type);
    for (unsigned first = 0; first + lanes <= count; first++) {
        uint32_t low = (1u << lanes) - 1, run = low << first, below = (1u << first) - 1;
        if ((*fixed & run) || (cuts & run & (run << 1)) || bits_above(block->type, first) < lanes) continue;
        if (first > lanes) below = low;
        if ((block->may & (run | below)) != (run | below)) return false;
        *fixed |= below;
        *lane = first;
        return true;
    }
    *lane = 0;
    return false;
}

/* Half of the registers hold points, unless vectors need more of them to be transposed: twice as many points would save few
 * passes through memory, and take twice the code. */
static bool has_room(const Nest *n, const NestBlock *block, uint32_t fixed, uint32_t cuts, unsigned statements) {
    unsigned lane;
    bool small = __builtin_popcount(block->may) <= SMALL_BITS; /* vectors of rows */
    if (!complete(n, block, cuts, &fixed, &lane) && !small) return false;
    unsigned points = 1u << __builtin_popcount(fixed);
    return (uint64_t)statements * points <= registers(n) / 2 || points <= 1u << lane_bits(n, block);
}

/* ---- placement ---- */

NestBits nest_bits_own(void) {
    NestBits bits;
    for (unsigned i = 0; i < NEST_BITS; i++) bits.bit[i] = (int8_t)i;
    return bits;
}

static const TileType *type_of(const NestStatement *s) {
    if (s->kind == NEST_STORE) return tile_op_operand(s->op, 1)->type;
    if (s->kind == NEST_KEEP) return s->value->type;
    return NULL;
}

/* The axes from the last one on whose loops have all lanes. */
static uint32_t free_bits(const NestStatement *s, const TileType *type) {
    uint32_t bits = 0;
    for (unsigned axis = type->rank; axis-- > 0;) {
        for (unsigned l = 0; l < s->level_count; l++)
            if (s->axis[l] == (int)axis && s->levels[l].atoms.count) return bits;
        bits |= (uint32_t)(type->extent[axis] - 1) << lowest_bit(type, axis);
    }
    return bits;
}

/* Bits that are neighbours in the block and not in what is read are not of one loop, whose index would have to be divided. */
static void cut(NestBlock *block, const NestBits *bits) {
    uint32_t cuts = block->cuts;
    unsigned count = NEST_BITS;
    while (count && bits->bit[count - 1] < 0) count--;
    for (unsigned i = 0; i < count; i++) {
        int bit = bits->bit[i], above = i + 1 < count ? bits->bit[i + 1] : NEST_FIXED, below = i ? bits->bit[i - 1] : NEST_FIXED;
        if (bit >= 0 && above != bit + 1) cuts |= 1u << (bit + 1);
        if (bit >= 0 && below != bit - 1) cuts |= 1u << bit;
    }
    block->cuts = cuts;
}

void nest_bits_start(Nest *n, NestStatement *s) {
    const TileType *type = type_of(s);
    if (!type || !tile_type_is_tile(type) || bits_of(type) <= 0) return;
    NestStatement probe = *s;
    probe.level_count = probe.parallel_count = 0;
    if (s->kind == NEST_STORE)
        nest_store_levels(&probe);
    else
        nest_levels(&probe, type, nest_atoms(n, s->value), -1);
    s->block = TILE_NEW(n->arena, NestBlock);
    *s->block = (NestBlock){.type = type, .may = free_bits(&probe, type), .statements = 1};
    if (s->kind != NEST_KEEP) return;
    NestInfo *info = nest_info(n, s->value);
    if (info->bits_of && !info->scattered) cut(root_of(info->bits_of), info->bits);
    info->bits = TILE_NEW(n->arena, NestBits);
    *info->bits = nest_bits_own();
    info->bits_of = s->block;
    info->scattered = false;
}

static bool same_shape(const TileType *a, const TileType *b) {
    return a->rank == b->rank && memcmp(a->extent, b->extent, a->rank * sizeof *a->extent) == 0;
}

/* Lets the statements of both compute their points together. */
static bool join(const Nest *n, NestBlock *block, NestBlock *other) {
    if (block == other) return true;
    unsigned statements = block->statements + other->statements;
    uint32_t fixed = block->fixed | other->fixed;
    if (block->may != other->may || !same_shape(block->type, other->type) || !has_room(n, block, fixed, 0, statements))
        return false;
    other->joined = block;
    block->fixed = fixed;
    block->cuts |= other->cuts;
    block->statements = statements;
    return true;
}

static bool is_fixed(const NestBlock *block, int bit) { return bit < 0 || (block->fixed >> bit & 1u); }

/* Positions that differ in constants alone are computed for the same points. */
static bool merge(const NestBlock *block, NestBits *into, const NestBits *more) {
    for (unsigned i = 0; i < NEST_BITS; i++) {
        if (into->bit[i] == more->bit[i]) continue;
        if (!is_fixed(block, into->bit[i]) || !is_fixed(block, more->bit[i])) return false;
        into->bit[i] = NEST_FIXED;
    }
    return true;
}

bool nest_bits_mark(Nest *n, TileValue *value, NestBlock *block, const NestBits *bits) {
    NestInfo *info = nest_info(n, value);
    block = root_of(block);
    if (!block || !bits || info->scattered || (info->puller && !info->bits_of)) {
        info->scattered = true;
        return false;
    }
    if (!info->bits_of) {
        info->bits = TILE_NEW(n->arena, NestBits);
        *info->bits = *bits;
        info->bits_of = block;
        return true;
    }
    NestBlock *first = root_of(info->bits_of);
    if (!join(n, first, block) || !merge(first, info->bits, bits)) info->scattered = true;
    return !info->scattered;
}

bool nest_bits_together(const Nest *n, const TileValue *value) {
    const NestInfo *info = &n->infos[value->number];
    const NestBlock *block = root_of(info->bits_of);
    return block && block->fixed && !info->scattered;
}

bool nest_bits_apart(const Nest *n, const TileValue *value) {
    const NestInfo *info = &n->infos[value->number];
    const NestBlock *block = nest_block_of(info->puller);
    return block && block->fixed && info->scattered;
}

unsigned nest_bits_positions(const Nest *n, const TileValue *value) {
    const NestInfo *info = &n->infos[value->number];
    const NestBlock *block = root_of(info->bits_of);
    unsigned positions = 1;
    if (!block || info->scattered) return positions;
    for (int i = bits_of(value->type); i-- > 0;) positions <<= is_fixed(block, info->bits->bit[i]);
    return positions;
}

/* ---- through ops ---- */


static NestBits no_bits(void) {
    NestBits bits;
    memset(bits.bit, NEST_FIXED, sizeof bits.bit);
    return bits;
}

static bool slice_bits(const TileOp *op, const NestBits *bits, NestBits *read) {
    const TileType *from = tile_op_operand(op, 0)->type, *to = op->results[0].type;
    unsigned axis = (unsigned)tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0), next = 0;
    if (tile_op_integer(op, TILE_ATTRIBUTE_OFFSET, 0) % to->extent[axis]) return false;
    for (unsigned i = from->rank, bit = 0; i-- > 0; bit += log2_of(from->extent[i]))
        for (unsigned k = 0; k < log2_of(to->extent[i]); k++) read->bit[bit + k] = bits->bit[next++];
    return true;
}

/* A half of `cat`. */
static bool half_bits(const TileOp *op, const NestBits *bits, NestBits *read) {
    const TileType *from = tile_op_operand(op, 0)->type, *to = op->results[0].type;
    unsigned axis = (unsigned)tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0), next = 0;
    if (2 * from->extent[axis] != to->extent[axis]) return false;
    for (unsigned i = from->rank, bit = 0; i-- > 0; bit += log2_of(to->extent[i]))
        for (unsigned k = 0; k < log2_of(from->extent[i]); k++) read->bit[next++] = bits->bit[bit + k];
    return true;
}

static void permuted_bits(const TileOp *op, const NestBits *bits, NestBits *read) {
    const TileAttribute *axes = tile_op_get(op, TILE_ATTRIBUTE_AXES);
    const TileType *from = tile_op_operand(op, 0)->type, *to = op->results[0].type;
    for (unsigned i = 0; i < to->rank; i++) {
        unsigned axis = (unsigned)axes->integers[i];
        for (unsigned k = 0; k < log2_of(to->extent[i]); k++)
            read->bit[lowest_bit(from, axis) + k] = bits->bit[lowest_bit(to, i) + k];
    }
}

static void broadcast_bits(const TileOp *op, const NestBits *bits, NestBits *read) {
    const TileType *from = tile_op_operand(op, 0)->type, *to = op->results[0].type;
    for (unsigned i = 0; i < from->rank; i++)
        for (unsigned k = 0; k < log2_of(from->extent[i]); k++)
            read->bit[lowest_bit(from, i) + k] = bits->bit[lowest_bit(to, i) + k];
}

bool nest_bits_through(const TileOp *op, unsigned operand, const NestBits *bits, NestBits *read) {
    const TileType *from = tile_op_operand(op, operand)->type;
    if (!bits || bits_of(from) < 0 || bits_of(op->results[0].type) < 0) return false;
    *read = no_bits();
    if (op->id == TILE_OP_SLICE) return slice_bits(op, bits, read);
    if (op->id == TILE_OP_CAT) return half_bits(op, bits, read);
    if (op->id == TILE_OP_PERMUTE) {
        permuted_bits(op, bits, read);
    } else if (op->id == TILE_OP_BROADCAST) {
        broadcast_bits(op, bits, read);
    } else {
        if (op->id != TILE_OP_RESHAPE && tile_op_info((TileOpId)op->id)->class != TILE_CLASS_ELEMENTWISE) return false;
        *read = *bits;
    }
    return true;
}

bool nest_bits_halves(const TileOp *cat) {
    const TileType *type = cat->results[0].type;
    int64_t axis = tile_op_integer(cat, TILE_ATTRIBUTE_AXIS, 0);
    return bits_of(type) > 0 && 2 * tile_op_operand(cat, 0)->type->extent[axis] == type->extent[axis];
}

/* The bit that chooses between the halves. */
static int halves_bit(const TileOp *cat, const NestBits *bits) {
    const TileType *type = cat->results[0].type;
    unsigned axis = (unsigned)tile_op_integer(cat, TILE_ATTRIBUTE_AXIS, 0);
    return bits->bit[lowest_bit(type, axis) + log2_of(type->extent[axis]) - 1];
}

/* The bits of the value, and of those from which it comes by moves alone: where these are parts of it, a part that is kept
 * in memory by itself would be read by choices between parts. */
static uint32_t bits_of_parts(const TileOp *op, const NestBits *bits, unsigned depth) {
    NestBits read;
    bool halves = op->id == TILE_OP_CAT && nest_bits_halves(op);
    int bit = halves ? halves_bit(op, bits) : NEST_FIXED;
    uint32_t found = bit >= 0 ? 1u << bit : 0;
    for (unsigned i = 0; i < op->operand_count && depth && (halves || op->id == TILE_OP_RESHAPE || op->id == TILE_OP_PERMUTE); i++) {
        const TileValue *part = tile_op_operand(op, i);
        if (part->op && tile_value_has_one_use(part) && nest_bits_through(op, i, bits, &read))
            found |= bits_of_parts(part->op, &read, depth - 1);
    }
    return found;
}

bool nest_bits_fix(Nest *n, const TileOp *op) {
    const NestInfo *info = nest_info(n, tile_op_result(op, 0));
    if (op->id != TILE_OP_CAT || !info->bits_of || info->scattered || !nest_bits_halves(op)) return true;
    int bit = halves_bit(op, info->bits);
    NestBlock *block = root_of(info->bits_of);
    if (is_fixed(block, bit)) return true;
    uint32_t parts = block->fixed | bits_of_parts(op, info->bits, MOST_PARTS);
    if ((block->may & parts) != parts || !has_room(n, block, parts, 0, block->statements)) return false;
    block->fixed |= 1u << bit;
    return true;
}

/* ---- the loops ---- */

static void add_run(NestBlock *block, unsigned shift, unsigned bits) {
    if (block->run_count == NEST_RUNS) return;
    block->shift[block->run_count] = (uint8_t)shift;
    block->runs[block->run_count++] = (NestLevel){.extent = INT64_C(1) << bits, .kind = TILE_LOOP_KIND_PARALLEL};
}

/* The runs of bits of an axis that are not fixed, the highest first. */
static void add_runs(NestBlock *block, unsigned axis) {
    unsigned low = lowest_bit(block->type, axis), end = low + log2_of(block->type->extent[axis]);
    while (end > low) {
        unsigned first = end;
        while (first > low && !(block->fixed >> (first - 1) & 1u) && (first == end || !(block->cuts >> first & 1u))) first--;
        if (first < end) add_run(block, first, end - first);
        bool fixed = first > low && block->fixed >> (first - 1) & 1u;
        end = first - fixed;
    }
}

/* The run of the lanes becomes the innermost one. */
static void move_last(NestBlock *block, unsigned lane) {
    for (unsigned i = 0; i + 1 < block->run_count; i++) {
        if (block->shift[i] != lane) continue;
        NestLevel level = block->runs[i];
        memmove(&block->runs[i], &block->runs[i + 1], (block->run_count - i - 1) * sizeof level);
        memmove(&block->shift[i], &block->shift[i + 1], block->run_count - i - 1);
        block->runs[block->run_count - 1] = level;
        block->shift[block->run_count - 1] = (uint8_t)lane;
    }
}

static uint32_t axis_bits(const TileType *type, unsigned axis) {
    return (uint32_t)(type->extent[axis] - 1) << lowest_bit(type, axis);
}

static void find_first_axis(NestBlock *block) {
    while (!(block->fixed & axis_bits(block->type, block->first_axis))) block->first_axis++;
}

/* A run ends below a bit that is fixed, the next run, or the next axis. */
static unsigned run_bits(const NestBlock *block, unsigned bit, uint32_t begun) {
    unsigned count = bits_above(block->type, bit), end = 1;
    while (end < count && !(block->fixed >> (bit + end) & 1u) && !(begun >> (bit + end) & 1u)) end++;
    return end;
}

NestBlock *nest_block_with(Nest *n, const NestStatement *s, uint32_t fixed, const int64_t *runs, unsigned count) {
    NestBlock *block = TILE_NEW(n->arena, NestBlock);
    *block = (NestBlock){.type = type_of(s), .fixed = fixed, .decided = true};
    uint32_t begun = 0;
    for (unsigned i = 0; i < count; i++) begun |= 1u << runs[i];
    for (unsigned i = 0; i < count; i++) add_run(block, (unsigned)runs[i], run_bits(block, (unsigned)runs[i], begun));
    find_first_axis(block);
    return block;
}

static void decide_runs(const Nest *n, NestBlock *block) {
    unsigned lane;
    if (!has_room(n, block, block->fixed, block->cuts, block->statements)) block->cuts = 0;
    complete(n, block, block->cuts, &block->fixed, &lane);
    find_first_axis(block);
    for (unsigned axis = block->first_axis; axis < block->type->rank; axis++) add_runs(block, axis);
    move_last(block, lane);
    block->decided = true;
}

void nest_bits_finish(Nest *n) {
    for (uint32_t i = 0; i < n->value_count; i++)
        if (n->infos[i].bits_of && !n->infos[i].scattered) cut(root_of(n->infos[i].bits_of), n->infos[i].bits);
    for (size_t i = 0; i < n->all.count; i++) {
        NestStatement *s = n->all.items[i];
        NestBlock *block = nest_block_of(s);
        s->block = block && block->fixed ? block : NULL;
        if (s->block && !block->decided) decide_runs(n, block);
    }
}
