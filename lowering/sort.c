/* Purpose: expand `sort` into a bitonic network of tiles, of log2(n) (log2(n) + 1) / 2 steps for n lanes.
 *
 * Run: --passes=sort,canonicalise,dce
 *
 * Before:
 *     func phase tile @k.0(%x: tensor<i32, 1, inout>) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 2} : i64
 *       %v = load_tile %x, %zero, %one, %zero, %n {access = [range]} : i32[2]
 *       %s = sort %v {axis = 0} : i32[2]
 *       store_tile %x, %s, %zero, %one, %zero, %n {access = [range]}
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%x: tensor<i32, 1, inout>) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 2} : i64
 *       %v = load_tile %x, %zero, %one, %zero, %n {access = [range]} : i32[2]
 *       %0 = reshape %v : i32[1, 1, 2, 1]
 *       %1 = slice %0 {axis = 2, offset = 0} : i32[1, 1, 1, 1]
 *       %2 = slice %0 {axis = 2, offset = 1} : i32[1, 1, 1, 1]
 *       %3 = min %1, %2 : i32[1, 1, 1, 1]
 *       %4 = max %1, %2 : i32[1, 1, 1, 1]
 *       %5 = cat %3, %4 {axis = 2} : i32[1, 1, 2, 1]
 *       %s = reshape %5 : i32[2]
 *       store_tile %x, %s, %zero, %one, %zero, %n {access = [range]}
 *       return
 *     }
 * Keys become signed integers in whose order they are sorted: floats by their bits, NaNs as the greatest. Where tiles move
 * with the keys, the lane's number stands behind the key, in one integer if it fits, so that no two are equal and the order is
 * stable. A step compares lanes whose numbers differ in one bit. Runs that have to descend hold the complements of their
 * integers, so that all pairs are ordered alike. Lanes that the mask excludes, and those that are added up to a power of two,
 * have the greatest key and number. If fewer lanes are wanted, runs of so many are sorted and merged, and of two runs the
 * half that comes first is kept.
 *
 * Needs: nothing. Keeps: every result but the bits of NaNs. Cost: about 10 ops for each step. */
#include "lang/scalar/scalar.h"
#include "lowering/emit.h"

enum { AXIS = 1, RANK = 3, HALVES = 2, VIEW_RANK = 4, MOST_PARTS = TILE_MAX_FOLD + 1, MOST_BITS = 64 };

/* The state of the network: tiles [outer, lanes, inner]. */
typedef struct Network {
    TileEmitter *emitter;
    TileBuilder *b;
    TileValue *part[MOST_PARTS];
    unsigned ordered; /* the first parts, which are compared one after the other; the others move with them */
    unsigned count;
    int64_t outer, lanes, inner;
    unsigned turned;          /* so many bits of a lane's number are the lowest ones of its place in the tile */
    uint8_t place[MOST_BITS]; /* of each bit of a lane's number: which bit of its place in the tile it is */
} Network;

/* How keys are integers. */
typedef struct Keys {
    TileScalar own, integer; /* of the keys; of the integers */
    bool descending;
} Keys;

static const TileType *tile_of(const Network *n, TileScalar scalar, int64_t outer, int64_t lanes, int64_t inner) {
    return tile_type_tile(n->b->module->context, scalar, RANK, (const int64_t[]){outer, lanes, inner});
}

static int64_t power_above(int64_t number) {
    int64_t power = 1;
    while (power < number) power *= 2;
    return power;
}

static unsigned log2_of(int64_t power) { return (unsigned)__builtin_ctzll((uint64_t)power); }

static TileValue *binary(const Network *n, TileOpId id, TileValue *x, TileValue *y) {
    return tile_build_binary(n->b, id, x, y);
}

static TileValue *with(const Network *n, TileOpId id, TileValue *x, uint64_t bits) {
    return binary(n, id, x, tile_build_bits(n->b, x->type, bits & tile_scalar_mask(x->type->scalar)));
}

static TileValue *select(const Network *n, TileValue *condition, TileValue *x, TileValue *y) {
    return tile_build_ternary(n->b, TILE_OP_SELECT, condition, x, y);
}

/* ---- keys as integers ---- */

static TileScalar signed_of(TileScalar scalar) {
    switch (tile_scalar_bits(scalar)) {
    case 64: return TILE_I64;
    case 32: return TILE_I32;
    case 16: return TILE_I16;
    default: return TILE_I8;
    }
}

static bool is_unsigned(TileScalar scalar) { return tile_scalar_class(scalar) == TILE_CLASS_UNSIGNED; }

static uint64_t greatest_of(TileScalar integer) { return (UINT64_C(1) << (tile_scalar_bits(integer) - 1)) - 1; }

/* The bits of infinity: those of a NaN are greater. */
static uint64_t infinity_bits(TileScalar scalar) { return tile_scalar_from_double(scalar, __builtin_inf()); }

/* The magnitude of a negative float grows as the number falls. */
static TileValue *turn_negative(const Network *n, TileValue *bits) {
    TileScalar integer = bits->type->scalar;
    TileValue *sign = with(n, TILE_OP_SHR, bits, tile_scalar_bits(integer) - 1);
    return binary(n, TILE_OP_XOR, bits, with(n, TILE_OP_AND, sign, greatest_of(integer)));
}

static TileValue *to_integers(const Network *n, const Keys *keys, TileValue *x) {
    uint64_t greatest = greatest_of(keys->integer);
    if (keys->own == TILE_BOOL) x = tile_build_convert(n->b, x, keys->integer);
    if (tile_scalar_is_float(keys->own) && tile_scalar_bits(keys->own) == 8) x = tile_build_convert(n->b, x, TILE_F16);
    TileScalar scalar = x->type->scalar;
    TileValue *bits = scalar == keys->integer ? x : tile_build_bitcast(n->b, x, keys->integer), *key = bits;
    if (tile_scalar_is_float(scalar))
        key = turn_negative(n, bits);
    else if (is_unsigned(scalar))
        key = with(n, TILE_OP_XOR, bits, ~greatest);
    if (keys->descending) key = with(n, TILE_OP_XOR, key, UINT64_MAX);
    if (!tile_scalar_is_float(scalar)) return key;
    TileValue *magnitude = with(n, TILE_OP_AND, bits, greatest);
    return select(n, with(n, TILE_OP_GT, magnitude, infinity_bits(scalar)),
                  tile_build_bits(n->b, key->type, greatest), key);
}

static TileValue *from_integers(const Network *n, const Keys *keys, TileValue *key) {
    bool narrow = tile_scalar_is_float(keys->own) && tile_scalar_bits(keys->own) == 8;
    TileScalar scalar = narrow ? TILE_F16 : keys->own == TILE_BOOL ? TILE_I8 : keys->own;
    if (keys->descending) key = with(n, TILE_OP_XOR, key, UINT64_MAX);
    if (tile_scalar_is_float(scalar))
        key = turn_negative(n, key);
    else if (is_unsigned(scalar))
        key = with(n, TILE_OP_XOR, key, ~greatest_of(keys->integer));
    if (scalar != keys->integer) key = tile_build_bitcast(n->b, key, scalar);
    return scalar == keys->own ? key : tile_build_convert(n->b, key, keys->own);
}

/* ---- steps ---- */

/* A part as [outer, lanes / (2 distance), 2, distance * inner]: lanes whose numbers differ in the bit are `distance` apart. */
static TileValue *halves_of(const Network *n, TileValue *x, unsigned bit) {
    int64_t distance = INT64_C(1) << n->place[bit];
    return tile_build_reshape(
        n->b, x, VIEW_RANK,
        (const int64_t[]){n->outer, n->lanes / (2 * distance), 2, distance * n->inner});
}

static TileValue *whole(const Network *n, TileValue *x) {
    return tile_build_reshape(n->b, x, RANK, (const int64_t[]){n->outer, n->lanes, n->inner});
}

/* Is x before y? */
static TileValue *is_before(const Network *n, TileValue *const *x, TileValue *const *y) {
    TileValue *before = binary(n, TILE_OP_LT, x[0], y[0]);
    if (n->ordered == 1) return before;
    TileValue *equal = binary(n, TILE_OP_EQ, x[0], y[0]);
    return binary(n, TILE_OP_OR, before, binary(n, TILE_OP_AND, equal, binary(n, TILE_OP_LT, x[1], y[1])));
}

/* The bit is no more part of a lane's number. */
static void drop_bit(Network *n, unsigned bit) {
    unsigned count = log2_of(n->lanes), place = n->place[bit];
    for (unsigned i = bit; i + 1 < count; i++) n->place[i] = n->place[i + 1];
    for (unsigned i = 0; i + 1 < count; i++) n->place[i] -= n->place[i] > place;
    n->lanes /= 2;
}

/* The lesser and the greater of lanes whose numbers differ in the bit. With `lesser` those alone, of half as many lanes. */
static void order_halves(Network *n, unsigned bit, bool lesser) {
    TileValue *low[MOST_PARTS], *high[MOST_PARTS], *take = NULL;
    for (unsigned i = 0; i < n->count; i++) {
        TileValue *halves = halves_of(n, n->part[i], bit);
        low[i] = tile_build_slice(n->b, halves, HALVES, 0, 1);
        high[i] = tile_build_slice(n->b, halves, HALVES, 1, 1);
    }
    if (n->count > 1) take = is_before(n, high, low);
    if (lesser) drop_bit(n, bit);
    for (unsigned i = 0; i < n->count; i++) {
        TileValue *first = take ? select(n, take, high[i], low[i]) : binary(n, TILE_OP_MIN, low[i], high[i]);
        if (!lesser) {
            TileValue *second = take ? select(n, take, low[i], high[i]) : binary(n, TILE_OP_MAX, low[i], high[i]);
            first = tile_build_cat(n->b, first, second, HALVES);
        }
        n->part[i] = whole(n, first);
    }
}

/* The same where lanes are held by threads: each lane takes that of the other or keeps its own, and all stay where they are. */
static void order_lanes(Network *n, unsigned bit) {
    TileValue *own[MOST_PARTS], *other[MOST_PARTS], *take = NULL;
    const TileType *pair = tile_type_tile(n->b->module->context, TILE_I32, VIEW_RANK, (const int64_t[]){1, 1, 2, 1});
    TileValue *upper = with(n, TILE_OP_NE, tile_build_iota(n->b, pair, HALVES), 0);
    for (unsigned i = 0; i < n->count; i++) {
        own[i] = halves_of(n, n->part[i], bit);
        other[i] = tile_build_flip(n->b, own[i], HALVES);
    }
    upper = tile_build_broadcast(n->b, upper, own[0]->type->extent);
    if (n->count > 1) take = binary(n, TILE_OP_XOR, is_before(n, other, own), upper);
    for (unsigned i = 0; i < n->count; i++) {
        TileValue *lane = take ? select(n, take, other[i], own[i])
                               : select(n, upper, binary(n, TILE_OP_MAX, own[i], other[i]),
                                        binary(n, TILE_OP_MIN, own[i], other[i]));
        n->part[i] = whole(n, lane);
    }
}

static void order(Network *n, unsigned bit) {
    if (n->emitter->target.exchanges_lanes)
        order_lanes(n, bit);
    else
        order_halves(n, bit, false);
}

/* Merges runs of 2^(log_run - 1) lanes. */
static void merge(Network *n, unsigned log_run) {
    for (unsigned bit = log_run; bit-- > 0;) order(n, bit);
}

/* A bit of each number. */
static TileValue *bit_of(const Network *n, TileValue *number, unsigned bit) {
    return with(n, TILE_OP_AND, bit ? with(n, TILE_OP_SHR, number, bit) : number, 1);
}

/* Complements the lanes in whose numbers an odd number of the bits, one or two from `low` on, is 1. */
static void complement(Network *n, unsigned low, unsigned bits) {
    unsigned first = n->place[low], second = n->place[low + bits - 1], lowest = first < second ? first : second;
    int64_t blocks = n->lanes >> lowest;
    TileScalar index = TILE_I32;
    TileValue *number = tile_build_iota(n->b, tile_of(n, index, 1, blocks, 1), AXIS);
    TileValue *odd = bit_of(n, number, first - lowest);
    if (bits == 2) odd = binary(n, TILE_OP_XOR, odd, bit_of(n, number, second - lowest));
    odd = binary(n, TILE_OP_SUB, tile_build_bits(n->b, odd->type, 0), odd);
    for (unsigned i = 0; i < n->ordered; i++) {
        TileScalar scalar = n->part[i]->type->scalar;
        const int64_t view[] = {n->outer, blocks, n->inner << lowest};
        TileValue *mask = scalar == index ? odd : tile_build_convert(n->b, odd, scalar);
        TileValue *x = tile_build_reshape(n->b, n->part[i], RANK, view);
        n->part[i] = whole(n, binary(n, TILE_OP_XOR, x, tile_build_broadcast(n->b, mask, view)));
    }
}

/* Sorts runs of 2^log_run lanes; where there are several, every other one descends. */
static void sort_runs(Network *n, unsigned log_run) {
    unsigned all = log2_of(n->lanes);
    if (!log_run) return;
    if (all > 1) complement(n, 1, 1);
    for (unsigned run = 1; run <= log_run; run++) {
        merge(n, run);
        bool last = run == log_run;
        if (run < all) complement(n, run, last || run + 1 == all ? 1 : 2);
    }
}

/* Keeps the first 2^log_run lanes. */
static void keep_first(Network *n, unsigned log_run) {
    int64_t run = INT64_C(1) << log_run;
    while (n->lanes > run) {
        order_halves(n, log_run, true);
        bool more = n->lanes > run;
        if (more && log_run) complement(n, log_run, 1);
        merge(n, log_run);
        if (more && log_run) complement(n, log_run, 1);
    }
}

/* ---- the op ---- */

/* The extent of an axis, with further lanes of these bits. */
static TileValue *pad_axis(const Network *n, TileValue *x, unsigned axis, int64_t extent, uint64_t bits) {
    TileType more = *x->type;
    more.extent[axis] = extent - more.extent[axis];
    if (!more.extent[axis]) return x;
    const TileType *type = tile_type_intern(n->b->module->context->types, &more);
    return tile_build_cat(n->b, x, tile_build_bits(n->b, type, bits), axis);
}

/* An operand as [outer, lanes, inner], each a power of two. */
static TileValue *padded(const Network *n, TileValue *x, const int64_t *extent, uint64_t bits) {
    const int64_t wanted[] = {n->outer, n->lanes, n->inner};
    x = tile_build_reshape(n->b, x, RANK, extent);
    for (unsigned axis = 0; axis < RANK; axis++) x = pad_axis(n, x, axis, wanted[axis], bits);
    return x;
}

/* The lanes' numbers; those that the mask excludes come behind all others. */
static TileValue *lane_numbers(const Network *n, TileValue *mask) {
    const int64_t extent[] = {n->outer, n->lanes, n->inner};
    TileValue *number = tile_build_iota(n->b, tile_of(n, TILE_I32, 1, n->lanes, 1), AXIS);
    number = tile_build_broadcast(n->b, number, extent);
    return mask ? select(n, mask, number, with(n, TILE_OP_ADD, number, (uint64_t)n->lanes)) : number;
}

/* Vectors hold lanes whose places differ in the lowest bits: the highest bits of their numbers, in which the fewest steps
 * compare. Where a key lies before the first step says nothing of its number, so that only the result is permuted. */
static void place_bits(Network *n, bool all) {
    unsigned bits = log2_of(n->lanes), bytes = n->emitter->target.vector_bytes, lanes = bytes ? log2_of(bytes / 4) : 0;
    bool turns = all && !n->emitter->target.exchanges_lanes && n->inner == 1 && 2 * lanes <= bits;
    n->turned = turns ? lanes : 0;
    for (unsigned i = 0; i < bits; i++) n->place[i] = (uint8_t)((i + n->turned) % bits);
}

/* The lanes in the order of their numbers. */
static TileValue *in_order(const Network *n, TileValue *x) {
    int64_t turned = INT64_C(1) << n->turned;
    if (!n->turned) return x;
    x = tile_build_reshape(n->b, x, VIEW_RANK, (const int64_t[]){n->outer, n->lanes / turned, turned, n->inner});
    return whole(n, tile_build_permute(n->b, x, (const int64_t[]){0, 2, 1, 3}));
}

typedef struct Sort {
    Network network;
    TileOp *op;
    Keys keys;
    int64_t axis, extent[RANK]; /* of the operands, as [outer, lanes, inner] */
    TileValue *number;          /* the lanes' numbers before; NULL: not needed */
    bool packed;                /* key and number are one integer */
    unsigned number_bits;
    TileScalar wide; /* of that */
} Sort;

/* Is it the lane's number, which the network moves anyway? */
static bool is_number(const Sort *s, const TileValue *value) {
    const TileOp *iota = tile_value_def(value, TILE_OP_IOTA);
    return iota && tile_op_integer(iota, TILE_ATTRIBUTE_AXIS, 0) == s->axis;
}

static void add_part(Network *n, TileValue *value) { n->part[n->count++] = value; }

/* The keys, with their numbers where they are needed. */
static void add_keys(Sort *s, TileValue *key, TileValue *mask) {
    Network *n = &s->network;
    bool numbered = s->op->result_count > 1;
    if (mask) key = select(n, mask, key, tile_build_bits(n->b, key->type, greatest_of(s->keys.integer)));
    n->ordered = 1;
    if (!numbered) {
        add_part(n, key);
        return;
    }
    s->number = lane_numbers(n, mask);
    s->number_bits = log2_of(n->lanes) + (mask != NULL);
    unsigned bits = tile_scalar_bits(s->keys.integer) + s->number_bits;
    s->packed = bits <= 64;
    s->wide = bits <= 32 ? TILE_I32 : TILE_I64;
    if (s->packed) {
        TileValue *high = with(n, TILE_OP_SHL, tile_build_convert(n->b, key, s->wide), s->number_bits);
        TileValue *low = s->wide == TILE_I32 ? s->number : tile_build_convert(n->b, s->number, s->wide);
        add_part(n, binary(n, TILE_OP_OR, high, low));
        return;
    }
    add_part(n, key);
    add_part(n, s->number);
    n->ordered = 2;
}

static void open_network(Sort *s) {
    Network *n = &s->network;
    const TileType *type = tile_op_operand(s->op, 0)->type;
    unsigned count = s->op->result_count;
    s->axis = tile_op_integer(s->op, TILE_ATTRIBUTE_AXIS, 0);
    s->extent[0] = s->extent[2] = 1;
    for (int64_t i = 0; i < type->rank; i++)
        if (i != s->axis) s->extent[i < s->axis ? 0 : 2] *= type->extent[i];
    s->extent[AXIS] = type->extent[s->axis];
    n->outer = power_above(s->extent[0]);
    n->lanes = power_above(s->extent[AXIS]);
    n->inner = power_above(s->extent[2]);
    bool narrow = tile_scalar_is_float(type->scalar) && tile_scalar_bits(type->scalar) == 8;
    s->keys = (Keys){type->scalar, narrow ? TILE_I16 : signed_of(type->scalar),
                     tile_op_integer(s->op, TILE_ATTRIBUTE_DESCENDING, 0) != 0};
    bool masked = tile_op_has_part(s->op, TILE_PARTS_MASK);
    TileValue *mask = masked ? padded(n, tile_op_operand(s->op, count), s->extent, 1) : NULL;
    TileValue *key = to_integers(n, &s->keys, tile_op_operand(s->op, 0));
    add_keys(s, padded(n, key, s->extent, greatest_of(s->keys.integer)), mask);
    for (unsigned i = 1; i < count; i++)
        if (!is_number(s, tile_op_operand(s->op, i))) add_part(n, padded(n, tile_op_operand(s->op, i), s->extent, 0));
}

static TileValue *result_of(const Sort *s, TileValue *x, unsigned i) {
    const Network *n = &s->network;
    const TileType *type = s->op->results[i].type;
    const int64_t kept[] = {s->extent[0], type->extent[s->axis], s->extent[2]};
    x = in_order(n, x);
    for (unsigned axis = 0; axis < RANK; axis++)
        if (x->type->extent[axis] != kept[axis]) x = tile_build_slice(n->b, x, axis, 0, kept[axis]);
    return tile_build_reshape(n->b, x, type->rank, type->extent);
}

static void close_network(Sort *s) {
    Network *n = &s->network;
    TileValue *key = n->part[0], *number = n->ordered == 2 ? n->part[1] : NULL;
    unsigned next = n->ordered;
    if (s->packed) {
        number = with(n, TILE_OP_AND, key, (UINT64_C(1) << s->number_bits) - 1);
        key = tile_build_convert(n->b, with(n, TILE_OP_SHR, key, s->number_bits), s->keys.integer);
    }
    for (unsigned i = 0; i < s->op->result_count; i++) {
        TileValue *operand = tile_op_operand(s->op, i), *x = NULL;
        TileScalar scalar = operand->type->scalar;
        if (i == 0)
            x = from_integers(n, &s->keys, result_of(s, key, i));
        else if (!is_number(s, operand))
            x = result_of(s, n->part[next++], i);
        else
            x = number->type->scalar == scalar ? result_of(s, number, i)
                                               : tile_build_convert(n->b, result_of(s, number, i), scalar);
        tile_value_replace(&s->op->results[i], x);
    }
}

static void expand(TileOp *op, void *state) {
    if (op->id != TILE_OP_SORT) return;
    TileEmitter *emitter = state;
    tile_emit_before(emitter, op);
    Sort s = {.network = {.emitter = emitter, .b = &emitter->builder}, .op = op};
    open_network(&s);
    Network *n = &s.network;
    int64_t kept = power_above(op->results[0].type->extent[s.axis]);
    place_bits(n, kept == n->lanes);
    sort_runs(n, log2_of(kept));
    keep_first(n, log2_of(kept));
    close_network(&s);
    tile_op_erase(op);
    emitter->changed = true;
}

TileResult tile_pass_sort(TilePassContext *context, TileFunc *func) {
    TileEmitter emitter = tile_emitter_create(context, func);
    tile_block_walk(&func->body, expand, &emitter);
    return tile_emit_finish(&emitter, context);
}
