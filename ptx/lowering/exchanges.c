/* Conversions by exchanges between lanes.
 *
 * Conversions between layouts that differ in which bits of an element's index are of the register's number and which are of the
 * lane's, of elements of 8 bits: a thread's neighbours are exchanged together. Words have halves from registers that
 * differ in one bit of their number, which takes the place of a bit of the lane's by one exchange of halves of two words (attention: weights
 * of 8 bits, from a product's sums to the next one's operand). No barrier is needed, nor shared memory. */
#include "ptx/lowering/machine.h"
#include "ptx/target/shuffles.h"

/* Of elements of 16 bits, a word has two: more exchanges than vectors through shared memory take instructions (measured: sorts of rows of
 * bf16 took 1.1 times as long). */
enum { WORD_BITS = 32, WIDEST = 8, MOST_SWAPS = 2, MOST_BITS = TILE_LINEAR_BITS, MOST_ELEMENTS = 4 };

/* Inputs of a layout by number: bits of registers, then those of lanes. */
typedef struct Exchanges {
    unsigned registers, lanes;  /* bits */
    unsigned has[MOST_BITS];    /* the place in the wanted layout of what is in this place so far */
    unsigned half;              /* bits of the register's number, from the lowest one on, that tell elements of half a word apart */
    unsigned bit;               /* the one that tells halves apart */
    unsigned swaps[MOST_SWAPS]; /* bits of the lane's number that it takes the place of, one after the other */
    unsigned count;
} Exchanges;

/* Is each bit of the wanted layout one bit of the given one? */
static bool read_bits(Exchanges *x, const TileLayout *from, const TileLayout *to) {
    TileLinear source;
    if (tile_layout_conversion(from, to, &source) != TILE_CONVERSION_SHUFFLES) return false;
    x->registers = from->bits[TILE_LAYOUT_REGISTER];
    x->lanes = from->bits[TILE_LAYOUT_LANE];
    if (to->bits[TILE_LAYOUT_REGISTER] != x->registers || source.inputs != source.outputs) return false;
    uint32_t seen = 0;
    for (unsigned i = 0; i < source.inputs; i++) {
        uint32_t bit = source.column[i];
        bool moves = i < x->registers + x->lanes;
        if (!bit || bit & (bit - 1) || bit & seen || (!moves && bit != UINT32_C(1) << i)) return false;
        seen |= bit;
        if (moves) x->has[__builtin_ctz(bit)] = i;
    }
    return true;
}

static unsigned place_of(const Exchanges *x, unsigned wanted) {
    unsigned place = 0;
    while (x->has[place] != wanted) place++;
    return place;
}

/* The swaps that bring all bits of lanes to their places. A bit that is in another lane's place, or another register's, has to go through
 * that of halves: that is not done. */
static bool find_swaps(Exchanges *x) {
    for (bool more = true; more;) {
        more = false;
        for (unsigned lane = x->registers; lane < x->registers + x->lanes; lane++) {
            unsigned place = place_of(x, lane);
            if (place >= x->registers) continue;
            if (!x->count) x->bit = place;
            if (x->count == MOST_SWAPS || place != x->bit || place < x->half) return false;
            x->swaps[x->count++] = lane - x->registers;
            x->has[place] = x->has[lane];
            x->has[lane] = lane;
            more = true;
        }
    }
    for (unsigned lane = x->registers; lane < x->registers + x->lanes; lane++)
        if (x->has[lane] != lane) return false;
    return true;
}

/* The register of the wanted layout that an element is in, which swaps have left in register `reg`. */
static uint32_t wanted_register(const Exchanges *x, uint32_t reg) {
    uint32_t wanted = 0;
    for (unsigned i = 0; i < x->registers; i++) wanted |= (reg >> i & 1) << x->has[i];
    return wanted;
}

static void exchange_two(Gpu *gpu, TileValue **words, unsigned lane) {
    TileValue *bit = gpu_binary(gpu, TILE_OP_AND, gpu->thread, gpu_i64(gpu, INT64_C(1) << lane));
    const TileType *i32 = tile_type_scalar(gpu->module->context, TILE_I32), *types[] = {words[0]->type, words[0]->type};
    TileValue *operands[] = {words[0], words[1], gpu_binary(gpu, TILE_OP_NE, bit, gpu_i64(gpu, 0)),
                             tile_build_integer(&gpu->b, i32, INT64_C(1) << lane)};
    TileOp *made = tile_build_op(&gpu->b, TILE_OP_EXCHANGE_HALVES, operands, 4, NULL, 0, types, 2);
    for (unsigned i = 0; made && i < 2; i++) words[i] = tile_op_result(made, i);
}

/* The register of an element of the word whose first element is in register `first`. */
static uint32_t register_of(const Exchanges *x, uint32_t first, uint32_t element) {
    uint32_t own = element & ((1u << x->half) - 1);
    return first | own | (element >> x->half) << x->bit;
}

/* Two words of a piece that begins with register `piece`, whose first elements are in these of its registers. */
static void exchange_words(Gpu *gpu, const Exchanges *x, TileValue *value, uint32_t piece, const uint32_t *first, TileValue **converted) {
    unsigned count = 2u << x->half;
    TileValue *words[2];
    int64_t lanes[MOST_ELEMENTS];
    for (unsigned w = 0; w < 2; w++) {
        for (unsigned i = 0; i < count; i++) lanes[i] = piece + register_of(x, first[w], i);
        words[w] = tile_build_shuffle(&gpu->b, value, value, lanes, count);
    }
    for (unsigned s = 0; s < x->count; s++) exchange_two(gpu, words, x->swaps[s]);
    for (unsigned w = 0; w < 2; w++)
        for (unsigned i = 0; i < count; i++)
            converted[piece + wanted_register(x, register_of(x, first[w], i))] = gpu_register(gpu, words[w], i);
}

static void exchange_piece(Gpu *gpu, const Exchanges *x, TileValue *value, uint32_t piece, TileValue **converted) {
    uint32_t first[2], inside = (1u << x->half) - 1 + (1u << x->bit);
    unsigned found = 0;
    for (uint32_t r = 0; r < 1u << x->registers; r++) {
        if (r & inside) continue;
        first[found++] = r;
        if (found == 2) exchange_words(gpu, x, value, piece, first, converted);
        found %= 2;
    }
}

/* Elements of a word each, where one bit of the register's number takes the place of one of the lane's: of the two elements that a thread has of such a pair of registers it
 * keeps the one, and gets another one for the other. */
static void swap_words(Gpu *gpu, const Exchanges *x, TileValue *value, uint32_t piece, TileValue *upper, TileValue **converted) {
    uint32_t bit = UINT32_C(1) << x->bit;
    for (uint32_t r = 0; r < 1u << x->registers; r++) {
        if (r & bit) continue;
        TileValue *first = gpu_register(gpu, value, piece + r), *second = gpu_register(gpu, value, piece + r + bit);
        TileValue *other = gpu_exchange(gpu, tile_build_ternary(&gpu->b, TILE_OP_SELECT, upper, first, second), UINT32_C(1) << x->swaps[0]);
        converted[piece + wanted_register(x, r)] = tile_build_ternary(&gpu->b, TILE_OP_SELECT, upper, other, first);
        converted[piece + wanted_register(x, r + bit)] = tile_build_ternary(&gpu->b, TILE_OP_SELECT, upper, second, other);
    }
}

TileValue *gpu_swap_words(Gpu *gpu, TileValue *value, const TileLayout *from, const TileLayout *to) {
    Exchanges x = {0};
    if (tile_scalar_bits(value->type->scalar) != WORD_BITS || from->map.inputs > MOST_BITS) return NULL;
    if (!read_bits(&x, from, to) || !find_swaps(&x) || x.count != 1) return NULL;
    uint32_t count = tile_layout_registers(from), piece = 1u << x.registers;
    TileValue **converted = TILE_NEW_ARRAY(gpu->arena, TileValue *, count);
    TileValue *bit = gpu_binary(gpu, TILE_OP_AND, gpu->thread, gpu_i64(gpu, INT64_C(1) << x.swaps[0])), *upper = gpu_binary(gpu, TILE_OP_NE, bit, gpu_i64(gpu, 0));
    for (uint32_t first = 0; first < count; first += piece) swap_words(gpu, &x, value, first, upper, converted);
    return gpu_join(gpu, converted, count);
}

TileValue *gpu_exchange_words(Gpu *gpu, TileValue *value, const TileLayout *from, const TileLayout *to) {
    Exchanges x = {0};
    TileScalar scalar = value->type->scalar;
    unsigned bits = tile_scalar_bits(scalar);
    if (scalar == TILE_BOOL || bits > WIDEST || from->map.inputs > MOST_BITS) return NULL;
    while (2 * bits << x.half < WORD_BITS) x.half++;
    if (!read_bits(&x, from, to) || x.registers < x.half + 2 || !find_swaps(&x)) return NULL;
    uint32_t count = tile_layout_registers(from), piece = 1u << x.registers;
    TileValue **converted = TILE_NEW_ARRAY(gpu->arena, TileValue *, count);
    for (uint32_t first = 0; first < count; first += piece) exchange_piece(gpu, &x, value, first, converted);
    return gpu_join(gpu, converted, count);
}

/* ---- of few registers ---- */

/* How a thread finds what it wants. */
typedef struct Wants {
    Gpu *gpu;
    const TileLayout *from, *to;
    const GpuShuffles *shuffles;
    unsigned registers;          /* bits of the number of a register of `from` */
    TileValue *lanes;            /* i32: of its own number and the other lane's, exclusive or; NULL: it is the thread's own */
    TileValue *upper[MOST_BITS]; /* bool: is the bit of the register's number another than the lowest thread's? Of those that vary */
} Wants;

static TileValue *thread_bit(Gpu *gpu, unsigned bit) {
    TileValue *shifted = gpu_binary(gpu, TILE_OP_SHR, gpu->thread, gpu_i64(gpu, bit));
    return tile_build_convert(&gpu->b, gpu_binary(gpu, TILE_OP_AND, shifted, gpu_i64(gpu, 1)), TILE_I32);
}

static TileValue *exclusive_or(Gpu *gpu, TileValue *x, TileValue *y) { return x ? gpu_binary(gpu, TILE_OP_XOR, x, y) : y; }

static void find_wants(Wants *w) {
    Gpu *gpu = w->gpu;
    const TileType *i32 = tile_type_scalar(gpu->module->context, TILE_I32);
    for (unsigned i = 0; i + tile_layout_first_bit(w->to, TILE_LAYOUT_LANE) < w->to->map.inputs; i++) {
        uint32_t change = gpu_shuffles_change(w->shuffles, w->from, w->to, i), lanes = change >> w->registers;
        if (!change) continue;
        TileValue *bit = thread_bit(gpu, i);
        if (lanes) w->lanes = exclusive_or(gpu, w->lanes, gpu_binary(gpu, TILE_OP_MUL, bit, tile_build_integer(&gpu->b, i32, lanes)));
        for (unsigned k = 0; k < w->registers; k++)
            if (change >> k & 1) w->upper[k] = exclusive_or(gpu, w->upper[k], bit);
    }
    for (unsigned k = 0; k < w->registers; k++)
        if (w->upper[k]) w->upper[k] = gpu_binary(gpu, TILE_OP_NE, w->upper[k], tile_build_integer(&gpu->b, i32, 0));
}

/* The element that register `at` of its lane has, the varying bits from `bit` on being the thread's. */
static TileValue *take(const Wants *w, TileValue *value, uint32_t at, unsigned bit) {
    Gpu *gpu = w->gpu;
    while (bit < w->registers && !w->upper[bit]) bit++;
    if (bit < w->registers) {
        TileValue *lower = take(w, value, at, bit + 1), *upper = take(w, value, at ^ UINT32_C(1) << bit, bit + 1);
        return tile_build_ternary(&gpu->b, TILE_OP_SELECT, w->upper[bit], upper, lower);
    }
    uint32_t lanes = at >> w->registers;
    const TileType *i32 = tile_type_scalar(gpu->module->context, TILE_I32);
    TileValue *own = gpu_register(gpu, value, at & ((UINT32_C(1) << w->registers) - 1));
    if (!w->lanes) return lanes ? gpu_exchange(gpu, own, lanes) : own;
    return gpu_exchange_with(gpu, own, lanes ? gpu_binary(gpu, TILE_OP_XOR, w->lanes, tile_build_integer(&gpu->b, i32, lanes)) : w->lanes);
}

TileValue *gpu_shuffle(Gpu *gpu, TileValue *value, const TileLayout *from, const TileLayout *to) {
    GpuShuffles shuffles;
    if (!gpu_find_shuffles(from, to, tile_scalar_bits(value->type->scalar), &shuffles)) return NULL;
    Wants w = {gpu, from, to, &shuffles, tile_layout_first_bit(from, TILE_LAYOUT_LANE), NULL, {NULL}};
    uint32_t count = tile_layout_registers(to);
    TileValue **converted = TILE_NEW_ARRAY(gpu->arena, TileValue *, count);
    find_wants(&w);
    for (uint32_t r = 0; r < count; r++) converted[r] = take(&w, value, tile_linear_apply(&shuffles.source, r), 0);
    return gpu_join(gpu, converted, count);
}
