#include "lang/layout/layout.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- evaluation and queries ---- */

static uint32_t piece_count(const TileLayout *layout) {
    uint32_t count = 1;
    for (unsigned a = 0; a < layout->rank; a++) count *= layout->pieces[a];
    return count;
}

uint32_t tile_layout_registers(const TileLayout *layout) {
    return piece_count(layout) << layout->bits[TILE_LAYOUT_REGISTER];
}

int64_t tile_layout_extent(const TileLayout *layout, unsigned axis) {
    return (int64_t)layout->pieces[axis] << layout->log_extent[axis];
}

static uint32_t join_input(const TileLayout *layout, TileLayoutInput place) {
    uint32_t low = (UINT32_C(1) << layout->bits[TILE_LAYOUT_REGISTER]) - 1;
    return (place.reg & low) | place.lane << tile_layout_first_bit(layout, TILE_LAYOUT_LANE) |
           place.warp << tile_layout_first_bit(layout, TILE_LAYOUT_WARP) |
           place.block << tile_layout_first_bit(layout, TILE_LAYOUT_BLOCK);
}

void tile_layout_apply(const TileLayout *layout, TileLayoutInput place, int64_t *index) {
    uint32_t output = tile_linear_apply(&layout->map, join_input(layout, place));
    uint32_t piece = place.reg >> layout->bits[TILE_LAYOUT_REGISTER];
    for (unsigned a = layout->rank; a-- > 0;) {
        uint32_t mask = (UINT32_C(1) << layout->log_extent[a]) - 1;
        index[a] = (int64_t)(output & mask) + ((int64_t)(piece % layout->pieces[a]) << layout->log_extent[a]);
        output >>= layout->log_extent[a];
        piece /= layout->pieces[a];
    }
}

static bool same_shape(const TileLayout *a, const TileLayout *b) {
    return a->rank == b->rank && memcmp(a->log_extent, b->log_extent, a->rank) == 0 &&
           memcmp(a->pieces, b->pieces, a->rank) == 0;
}

bool tile_layout_equal(const TileLayout *a, const TileLayout *b) {
    return same_shape(a, b) && memcmp(a->bits, b->bits, sizeof a->bits) == 0 && tile_linear_equal(&a->map, &b->map);
}

TileLayout tile_layout_without_copies(const TileLayout *layout) {
    TileLayout result = *layout;
    result.map = tile_linear_zero(0, layout->map.outputs);
    for (unsigned i = 0; i < layout->map.inputs; i++) {
        if (i < layout->bits[TILE_LAYOUT_REGISTER] && !layout->map.column[i])
            result.bits[TILE_LAYOUT_REGISTER]--;
        else
            result.map.column[result.map.inputs++] = layout->map.column[i];
    }
    return result;
}

bool tile_layout_same_elements(const TileLayout *a, const TileLayout *b) {
    TileLayout x = tile_layout_without_copies(a), y = tile_layout_without_copies(b);
    return tile_layout_equal(&x, &y);
}

bool tile_layout_is_surjective(const TileLayout *layout) {
    return tile_linear_rank(&layout->map) == layout->map.outputs;
}

/* Does a warp hold nothing but padding? Of each axis the least index counts. */
static bool holds_padding(const TileLayout *layout, uint32_t first, const int64_t *extent) {
    unsigned threads = tile_layout_first_bit(layout, TILE_LAYOUT_WARP);
    for (unsigned a = 0; a < layout->rank; a++) {
        unsigned low = tile_layout_axis_bit(layout, a);
        uint32_t mask = (UINT32_C(1) << layout->log_extent[a]) - 1;
        TileLinearSpan own = {0};
        for (unsigned i = 0; i < threads; i++) tile_span_add(&own, layout->map.column[i] >> low & mask);
        if ((int64_t)tile_span_reduce(&own, first >> low & mask) >= extent[a]) return true;
    }
    return false;
}

bool tile_layout_is_complete(const TileLayout *layout, uint32_t warps, const int64_t *extent) {
    unsigned threads = tile_layout_first_bit(layout, TILE_LAYOUT_WARP);
    TileLinearSpan own = {0};
    for (unsigned i = 0; i < threads; i++) tile_span_add(&own, layout->map.column[i]);
    for (uint32_t warp = warps; warp < UINT32_C(1) << layout->bits[TILE_LAYOUT_WARP]; warp++) {
        uint32_t first = tile_linear_apply(&layout->map, warp << threads);
        bool held = holds_padding(layout, first, extent);
        for (uint32_t other = 0; other < warps && !held; other++)
            held = tile_span_has(&own, first ^ tile_linear_apply(&layout->map, other << threads));
        if (!held) return false;
    }
    return true;
}

uint32_t tile_layout_free_bits(const TileLayout *layout, TileLayoutDim dim) {
    unsigned first = tile_layout_first_bit(layout, dim);
    uint32_t bits = 0;
    for (unsigned i = 0; i < layout->bits[dim]; i++)
        if (!layout->map.column[first + i]) bits |= UINT32_C(1) << i;
    return bits;
}

/* ---- building ---- */

static unsigned ceil_log2(int64_t value) {
    unsigned log = 0;
    while ((INT64_C(1) << log) < value) log++;
    return log;
}

/* 96 is 3 pieces of 32; 100 would be 25 pieces of 4, and is padded to one of 128. */
static void split_extent(int64_t extent, uint8_t *log_extent, uint8_t *pieces) {
    enum { MOST_PIECES = 11 };
    unsigned log = (unsigned)__builtin_ctzll((unsigned long long)extent);
    int64_t odd = extent >> log;
    bool exact = odd <= MOST_PIECES && log >= 3;
    *log_extent = (uint8_t)(exact ? log : ceil_log2(extent));
    *pieces = (uint8_t)(exact ? odd : 1);
}

unsigned tile_layout_log_extent(int64_t extent) {
    uint8_t log, pieces;
    split_extent(extent, &log, &pieces);
    return log;
}

static TileLayout layout_of_shape(const TileLayoutShape *shape) {
    TileLayout layout = {.rank = shape->rank};
    unsigned outputs = 0;
    for (unsigned a = 0; a < shape->rank; a++) {
        split_extent(shape->extent[a], &layout.log_extent[a], &layout.pieces[a]);
        outputs += layout.log_extent[a];
    }
    layout.map = tile_linear_zero(0, outputs);
    return layout;
}

/* Assigns the bits of each axis from the lowest on; an axis without unassigned bits gets replication. */
typedef struct Builder {
    TileLayout layout;
    unsigned used[TILE_MAX_TILE_RANK];
    TileLinear parts[TILE_LAYOUT_DIMS];
} Builder;

static void add_column(Builder *builder, TileLayoutDim dim, uint32_t column) {
    TileLinear *part = &builder->parts[dim];
    part->column[part->inputs++] = column;
}

static uint32_t next_bit(Builder *builder, unsigned axis) {
    const TileLayout *layout = &builder->layout;
    if (builder->used[axis] >= layout->log_extent[axis]) return 0;
    return UINT32_C(1) << (tile_layout_axis_bit(layout, axis) + builder->used[axis]++);
}

static void add_bits(Builder *builder, TileLayoutDim dim, unsigned axis, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        uint32_t bit = next_bit(builder, axis);
        if (bit || dim != TILE_LAYOUT_REGISTER) add_column(builder, dim, bit);
    }
}

/* Assigns the remaining bits to registers, axes in `order` from the fastest on. */
static TileLayout finish(Builder *builder, const uint8_t *order) {
    TileLayout *layout = &builder->layout;
    for (unsigned i = 0; i < layout->rank; i++) {
        unsigned axis = order ? order[i] : layout->rank - 1 - i;
        add_bits(builder, TILE_LAYOUT_REGISTER, axis, layout->log_extent[axis] - builder->used[axis]);
    }
    for (unsigned d = 0; d < TILE_LAYOUT_DIMS; d++) {
        const TileLinear *part = &builder->parts[d];
        layout->bits[d] = part->inputs;
        for (unsigned i = 0; i < part->inputs; i++) layout->map.column[layout->map.inputs++] = part->column[i];
    }
    return *layout;
}

TileLayout tile_layout_blocked(const TileLayoutShape *shape, const TileLayoutBlocked *blocked) {
    Builder builder = {.layout = layout_of_shape(shape)};
    const uint8_t *powers[] = {blocked->elements, blocked->lanes, blocked->warps};
    static const TileLayoutDim dims[] = {TILE_LAYOUT_REGISTER, TILE_LAYOUT_LANE, TILE_LAYOUT_WARP};
    for (unsigned p = 0; p < 3; p++)
        for (unsigned i = 0; i < shape->rank; i++)
            add_bits(&builder, dims[p], blocked->order[i], powers[p][blocked->order[i]]);
    return finish(&builder, blocked->order);
}

/* ---- fragments ---- */

/* The 8 x 4 lanes of all fragments: two bits along the axis of packed elements, three along the other one. */
static void add_lanes(Builder *builder, unsigned packed, unsigned other) {
    add_bits(builder, TILE_LAYOUT_LANE, packed, 2);
    add_bits(builder, TILE_LAYOUT_LANE, other, 3);
}

/* Paired: the lowest bit of columns selects one of two instructions, that of rows one of an instruction's halves. */
static void add_accumulator(Builder *builder, unsigned m, unsigned n, TileFragmentPlan plan) {
    add_bits(builder, TILE_LAYOUT_REGISTER, n, plan.pairs_n ? 2 : 1);
    if (plan.pairs_m) add_bits(builder, TILE_LAYOUT_REGISTER, m, 1);
    add_lanes(builder, n, m);
    if (!plan.pairs_m) add_bits(builder, TILE_LAYOUT_REGISTER, m, 1);
}

/* Consecutive k in a register of 32 bits, then the eight rows below, then the other half of k: of elements of 64 bits, which take
 * two, that is the next instruction's k. */
static void add_operand_a(Builder *builder, unsigned m, unsigned k, unsigned log_packed, TileFragmentPlan plan) {
    add_bits(builder, TILE_LAYOUT_REGISTER, k, log_packed);
    if (plan.pairs_m) add_bits(builder, TILE_LAYOUT_REGISTER, m, 1);
    add_lanes(builder, k, m);
    if (!plan.pairs_m) add_bits(builder, TILE_LAYOUT_REGISTER, m, 1);
    add_bits(builder, TILE_LAYOUT_REGISTER, k, 1);
}

static void add_operand_b(Builder *builder, unsigned k, unsigned n, unsigned log_packed, TileFragmentPlan plan) {
    add_bits(builder, TILE_LAYOUT_REGISTER, k, log_packed);
    if (plan.pairs_n) add_bits(builder, TILE_LAYOUT_REGISTER, n, 1);
    add_lanes(builder, k, n);
    add_bits(builder, TILE_LAYOUT_REGISTER, k, 1);
}

TileLayout tile_layout_fragment(const TileLayoutShape *shape, TileFragment fragment, unsigned scalar_bits,
                                TileFragmentPlan plan) {
    Builder builder = {.layout = layout_of_shape(shape)};
    unsigned row = shape->rank - 2u, column = shape->rank - 1u, log_packed = scalar_bits < 32 ? ceil_log2(32 / (int64_t)scalar_bits) : 0;
    /* The axis that warps of each kind divide; an operand has only one of the two. */
    unsigned m = row, n = column;
    bool has_m = true, has_n = true;
    switch (fragment) {
    case TILE_FRAGMENT_MMA_A:
    case TILE_FRAGMENT_WGMMA_A:
        add_operand_a(&builder, row, column, log_packed, plan);
        has_n = false;
        break;
    case TILE_FRAGMENT_MMA_B:
        add_operand_b(&builder, row, column, log_packed, plan);
        has_m = false;
        break;
    case TILE_FRAGMENT_MMA_C:
    case TILE_FRAGMENT_WGMMA_C: add_accumulator(&builder, row, column, plan); break;
    }
    if (fragment == TILE_FRAGMENT_WGMMA_C) /* an instruction has all columns; the next warpgroup has the next rows */
        add_bits(&builder, TILE_LAYOUT_REGISTER, n, builder.layout.log_extent[n]);
    for (unsigned i = 0; i < plan.log_warps_m; i++)
        add_column(&builder, TILE_LAYOUT_WARP, has_m ? next_bit(&builder, m) : 0);
    unsigned log_depth = builder.layout.log_extent[column];
    if (plan.log_parts && log_depth > plan.log_parts + builder.used[column])
        add_bits(&builder, TILE_LAYOUT_REGISTER, column, log_depth - plan.log_parts - builder.used[column]);
    for (unsigned i = 0; i < plan.log_parts; i++) add_column(&builder, TILE_LAYOUT_WARP, next_bit(&builder, column));
    for (unsigned i = 0; i < plan.log_warps_n; i++)
        add_column(&builder, TILE_LAYOUT_WARP, has_n ? next_bit(&builder, n) : 0);
    return finish(&builder, NULL);
}

TileLayout tile_layout_sums(const TileLayoutShape *shape, const TileSumsPlan *plan) {
    Builder builder = {.layout = layout_of_shape(shape)};
    for (unsigned a = 2; a-- > 0;) add_bits(&builder, TILE_LAYOUT_REGISTER, a, plan->elements[a]);
    for (unsigned i = 0; i < TILE_LANE_BITS; i++)
        for (unsigned a = 0; a < 2; a++) add_bits(&builder, TILE_LAYOUT_LANE, a, i < plan->lanes[a]);
    for (unsigned a = 0; a < 2; a++) add_bits(&builder, TILE_LAYOUT_WARP, a, plan->warps[a]);
    return finish(&builder, NULL);
}

/* ---- layouts of results ---- */

/* Concatenates the bits of the axes of an index in another order; axis -1 has no bits. */
static uint32_t rearrange(const TileLayout *from, const TileLayout *to, const int *axes, uint32_t output) {
    uint32_t result = 0;
    for (unsigned a = 0; a < to->rank; a++) {
        if (axes[a] < 0) continue;
        uint32_t mask = (UINT32_C(1) << from->log_extent[axes[a]]) - 1;
        result |= (output >> tile_layout_axis_bit(from, (unsigned)axes[a]) & mask) << tile_layout_axis_bit(to, a);
    }
    return result;
}

/* Result axis i is axis axes[i], or a new one of extent 1 if that is -1. Registers keep their order, which is right for
 * pieces only if the axes that have several keep theirs. */
static TileLayout select_axes(const TileLayout *layout, const int *axes, unsigned rank) {
    TileLayout result = {.rank = (uint8_t)rank};
    memcpy(result.bits, layout->bits, sizeof result.bits);
    result.map = tile_linear_zero(layout->map.inputs, 0);
    for (unsigned a = 0; a < rank; a++) {
        result.log_extent[a] = axes[a] < 0 ? 0 : layout->log_extent[axes[a]];
        result.pieces[a] = axes[a] < 0 ? 1 : layout->pieces[axes[a]];
        result.map.outputs = (uint8_t)(result.map.outputs + result.log_extent[a]);
    }
    for (unsigned i = 0; i < layout->map.inputs; i++)
        result.map.column[i] = rearrange(layout, &result, axes, layout->map.column[i]);
    return result;
}

TileLayout tile_layout_slice(const TileLayout *layout, unsigned axis) {
    int axes[TILE_MAX_TILE_RANK];
    unsigned rank = 0;
    for (unsigned a = 0; a < layout->rank; a++)
        if (a != axis) axes[rank++] = (int)a;
    if (!rank) axes[rank++] = -1; /* a tile has at least one axis */
    return select_axes(layout, axes, rank);
}

TileLayout tile_layout_expand(const TileLayout *layout, unsigned axis) {
    int axes[TILE_MAX_TILE_RANK];
    for (unsigned a = 0; a <= layout->rank; a++) axes[a] = a == axis ? -1 : (int)(a - (a > axis));
    return select_axes(layout, axes, layout->rank + 1u);
}

TileLayout tile_layout_permute(const TileLayout *layout, const unsigned *axes) {
    int chosen[TILE_MAX_TILE_RANK];
    for (unsigned a = 0; a < layout->rank; a++) chosen[a] = (int)axes[a];
    return select_axes(layout, chosen, layout->rank);
}

/* An input bit is taken out of, or put into, the registers, and an output bit at the top of the axis. */
bool tile_layout_halve(const TileLayout *layout, unsigned axis, TileLayout *half) {
    if (layout->pieces[axis] != 1 || !layout->log_extent[axis]) return false;
    unsigned top = tile_layout_axis_bit(layout, axis) + layout->log_extent[axis] - 1u, found = layout->map.inputs;
    uint32_t bit = UINT32_C(1) << top;
    for (unsigned i = 0; i < layout->map.inputs; i++) {
        if (!(layout->map.column[i] & bit)) continue;
        if (i >= layout->bits[TILE_LAYOUT_REGISTER] || layout->map.column[i] != bit || found < layout->map.inputs)
            return false;
        found = i;
    }
    if (found == layout->map.inputs) return false;
    *half = *layout;
    half->bits[TILE_LAYOUT_REGISTER]--;
    half->log_extent[axis]--;
    half->map = tile_linear_zero(layout->map.inputs - 1u, layout->map.outputs - 1u);
    for (unsigned i = 0; i < half->map.inputs; i++) {
        uint32_t column = layout->map.column[i + (i >= found)];
        half->map.column[i] = (column & (bit - 1)) | (column >> 1 & ~(bit - 1));
    }
    return true;
}

bool tile_layout_double(const TileLayout *layout, unsigned axis, TileLayout *whole) {
    unsigned registers = layout->bits[TILE_LAYOUT_REGISTER],
             top = tile_layout_axis_bit(layout, axis) + layout->log_extent[axis];
    if (layout->pieces[axis] != 1 || layout->map.inputs + 1u > TILE_LINEAR_BITS) return false;
    if (layout->map.outputs + 1u > TILE_LINEAR_BITS) return false;
    uint32_t bit = UINT32_C(1) << top;
    *whole = *layout;
    whole->bits[TILE_LAYOUT_REGISTER]++;
    whole->log_extent[axis]++;
    whole->map = tile_linear_zero(layout->map.inputs + 1u, layout->map.outputs + 1u);
    for (unsigned i = 0; i < layout->map.inputs; i++) {
        uint32_t column = layout->map.column[i];
        whole->map.column[i + (i >= registers)] = (column & (bit - 1)) | (column & ~(bit - 1)) << 1;
    }
    whole->map.column[registers] = bit;
    return true;
}

/* Along one axis, how many positions a piece is long with all axes behind it; 0: several axes have pieces. */
static uint64_t piece_length(const TileLayout *layout) {
    unsigned axis = 0, found = 0;
    for (unsigned a = 0; a < layout->rank; a++)
        if (layout->pieces[a] != 1) axis = a, found++;
    return found > 1 ? 0 : UINT64_C(1) << (tile_layout_axis_bit(layout, axis) + layout->log_extent[axis]);
}

/* Does each piece have the same elements, as that of [32, 3*32] has those of [32, 3*16, 2]? */
static bool has_same_pieces(const TileLayout *a, const TileLayout *b) {
    uint64_t length = piece_length(a);
    return piece_count(a) == piece_count(b) && (piece_count(a) == 1 || (length && length == piece_length(b)));
}

bool tile_layout_reshape(const TileLayout *layout, const TileLayoutShape *shape, TileLayout *result) {
    TileLayout reshaped = layout_of_shape(shape);
    if (!has_same_pieces(layout, &reshaped) || reshaped.map.outputs != layout->map.outputs) return false;
    for (unsigned a = 0; a < shape->rank; a++)
        if (tile_layout_extent(&reshaped, a) != shape->extent[a]) return false; /* padding would move elements */
    reshaped.map = layout->map;
    memcpy(reshaped.bits, layout->bits, sizeof reshaped.bits);
    *result = reshaped;
    return true;
}

/* ---- instructions ---- */

unsigned tile_layout_vector(const TileLayout *layout, unsigned axis, unsigned limit) {
    unsigned count = 0, bit = tile_layout_axis_bit(layout, axis);
    while (count < layout->bits[TILE_LAYOUT_REGISTER] && count < layout->log_extent[axis] && (2u << count) <= limit &&
           layout->map.column[count] == UINT32_C(1) << (bit + count))
        count++;
    return 1u << count;
}

/* Maps each input of `to` to an input of `from` that holds the same element: one with the same lane, warp and block
 * bits, corrected by the first `usable` input bits of `from`, its registers or registers and lanes. */
static bool find_source(const TileLayout *from, const TileLayout *to, unsigned usable, TileLinear *source) {
    TileLinear columns = tile_linear_zero(usable, from->map.outputs), wanted = to->map;
    memcpy(columns.column, from->map.column, usable * sizeof *columns.column);
    unsigned shared_bits[TILE_LAYOUT_DIMS] = {0};
    for (unsigned d = TILE_LAYOUT_LANE; d < TILE_LAYOUT_DIMS; d++) {
        unsigned a = tile_layout_first_bit(from, d), b = tile_layout_first_bit(to, d);
        if (from->bits[d] != to->bits[d]) return false;
        shared_bits[d] = a - b;
        for (unsigned i = 0; i < to->bits[d]; i++) wanted.column[b + i] ^= from->map.column[a + i];
    }
    if (!tile_linear_divide(&columns, &wanted, source)) return false;
    source->inputs = to->map.inputs;
    source->outputs = from->map.inputs;
    for (unsigned d = TILE_LAYOUT_LANE; d < TILE_LAYOUT_DIMS; d++) {
        unsigned b = tile_layout_first_bit(to, d);
        for (unsigned i = 0; i < to->bits[d]; i++) source->column[b + i] ^= UINT32_C(1) << (b + i + shared_bits[d]);
    }
    return true;
}

TileConversionKind tile_layout_conversion(const TileLayout *from, const TileLayout *to, TileLinear *source) {
    if (!same_shape(from, to)) return TILE_CONVERSION_SHARED;
    if (tile_layout_equal(from, to)) {
        *source = tile_linear_identity(from->map.inputs);
        return TILE_CONVERSION_NONE;
    }
    unsigned registers = from->bits[TILE_LAYOUT_REGISTER];
    if (find_source(from, to, registers, source)) return TILE_CONVERSION_REGISTERS;
    if (find_source(from, to, registers + from->bits[TILE_LAYOUT_LANE], source)) return TILE_CONVERSION_SHUFFLES;
    return TILE_CONVERSION_SHARED;
}

/* ---- text ---- */

static const char *const dim_names[TILE_LAYOUT_DIMS] = {"register", "lane", "warp", "block"};

void tile_layout_print(TileText *text, const TileLayout *layout) {
    for (unsigned a = 0; a < layout->rank; a++) {
        tile_text_add(text, a ? ", " : "[");
        if (layout->pieces[a] > 1) tile_text_format(text, "%u*", layout->pieces[a]);
        tile_text_format(text, "%u", 1u << layout->log_extent[a]);
    }
    tile_text_add(text, "]");
    unsigned column = 0;
    for (unsigned d = 0; d < TILE_LAYOUT_DIMS; d++) {
        tile_text_format(text, " %s", dim_names[d]);
        for (unsigned i = 0; i < layout->bits[d]; i++)
            tile_text_format(text, " %" PRIu32, layout->map.column[column++]);
    }
}

static void skip_blanks(const char **at) {
    while (**at == ' ' || **at == '\t' || **at == '\n' || **at == '\r') (*at)++;
}

/* At most nine digits: every number in a layout is below 2^30. */
static bool read_number(const char **at, uint32_t *number) {
    skip_blanks(at);
    unsigned digits = 0;
    for (*number = 0; **at >= '0' && **at <= '9'; (*at)++, digits++) {
        if (digits == 9) return false;
        *number = *number * 10 + (uint32_t)(**at - '0');
    }
    return digits > 0;
}

static bool read_axis(const char **at, TileLayout *layout) {
    uint32_t number, pieces = 1;
    if (layout->rank == TILE_MAX_TILE_RANK || !read_number(at, &number)) return false;
    if (**at == '*') {
        pieces = number;
        (*at)++;
        if (!read_number(at, &number)) return false;
    }
    if (!number || (number & (number - 1)) || pieces % 2 == 0 || pieces > UINT8_MAX) return false;
    layout->log_extent[layout->rank] = (uint8_t)__builtin_ctz(number);
    layout->pieces[layout->rank] = (uint8_t)pieces;
    layout->map.outputs = (uint8_t)(layout->map.outputs + layout->log_extent[layout->rank]);
    layout->rank++;
    return layout->map.outputs < 30;
}

static bool read_dim(const char **at, TileLayoutDim dim, TileLayout *layout) {
    skip_blanks(at);
    size_t length = strlen(dim_names[dim]);
    if (strncmp(*at, dim_names[dim], length) != 0) return false;
    *at += length;
    uint32_t column;
    while (skip_blanks(at), **at >= '0' && **at <= '9') {
        if (layout->map.inputs == TILE_LINEAR_BITS || !read_number(at, &column)) return false;
        if (column >> layout->map.outputs) return false;
        layout->map.column[layout->map.inputs++] = column;
        layout->bits[dim]++;
    }
    return true;
}

bool tile_layout_read(const char *text, TileLayout *layout) {
    const char *at = text;
    *layout = (TileLayout){0};
    skip_blanks(&at);
    do {
        if (*at++ != (layout->rank ? ',' : '[')) return false;
        if (!read_axis(&at, layout)) return false;
        skip_blanks(&at);
    } while (*at != ']');
    at++;
    for (unsigned d = 0; d < TILE_LAYOUT_DIMS; d++)
        if (!read_dim(&at, d, layout)) return false;
    skip_blanks(&at);
    return !*at;
}
