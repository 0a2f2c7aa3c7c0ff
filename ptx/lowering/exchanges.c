/* Conversions between layouts that differ in which bits of an element's index are of the register's number and which are of the
 * lane's, of elements that are narrower than a word: several of them are exchanged at a time. A bit of one kind takes the place
 * of one of the other by one exchange of half of the words with the lane whose number differs in that bit (attention: weights of 8 bits,
 * from a product's sums to the next one's operand). No barrier is needed, nor shared memory. */
#include "ptx/lowering/machine.h"

enum { WORD_BITS = 32, MOST_SWAPS = 2, MOST_BITS = TILE_LINEAR_BITS };

/* Bit `reg` of the register's number and bit `lane` of the lane's take each other's place. */
typedef struct Swap {
    unsigned reg, lane;
} Swap;

/* Inputs of a layout by number: bits of registers, then those of lanes. */
typedef struct Exchanges {
    unsigned registers, lanes;       /* bits */
    unsigned has[MOST_BITS];         /* the place in the wanted layout of what is in this place so far */
    Swap swaps[MOST_SWAPS];
    unsigned count;
    unsigned packed[2], packed_count; /* bits of the register's number that tell elements of a word apart */
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

/* The swaps that bring all bits of lanes to their places. A bit that is in another lane's place has to go through a register:
 * that is not done. */
static bool find_swaps(Exchanges *x) {
    for (bool more = true; more;) {
        more = false;
        for (unsigned lane = x->registers; lane < x->registers + x->lanes; lane++) {
            unsigned place = place_of(x, lane);
            if (place >= x->registers) continue;
            if (x->count == MOST_SWAPS) return false;
            x->swaps[x->count++] = (Swap){place, lane - x->registers};
            x->has[place] = x->has[lane];
            x->has[lane] = lane;
            more = true;
        }
    }
    for (unsigned lane = x->registers; lane < x->registers + x->lanes; lane++)
        if (x->has[lane] != lane) return false;
    return true;
}

/* Words are of neighbours, as far as these stay in one thread. */
static void choose_packed(Exchanges *x, unsigned bits) {
    for (unsigned i = 0; i < x->registers && (bits << x->packed_count) < WORD_BITS; i++) {
        bool swapped = false;
        for (unsigned s = 0; s < x->count; s++) swapped |= x->swaps[s].reg == i;
        if (!swapped) x->packed[x->packed_count++] = i;
    }
}

/* The register of this element of the word that begins in `first`. */
static uint32_t packed_register(const Exchanges *x, uint32_t first, uint32_t element) {
    for (unsigned i = 0; i < x->packed_count; i++) first |= (element >> i & 1) << x->packed[i];
    return first;
}

static bool begins_word(const Exchanges *x, uint32_t reg) {
    for (unsigned i = 0; i < x->packed_count; i++)
        if (reg >> x->packed[i] & 1) return false;
    return true;
}

/* Shifts of elements, that the back end makes moves of bytes. */
static TileValue *shifted(Gpu *gpu, TileOpId id, TileValue *word, unsigned bits) {
    return bits ? gpu_binary(gpu, id, word, tile_build_integer(&gpu->b, word->type, bits)) : word;
}

static TileScalar plain_type(TileScalar scalar) { return tile_scalar_bits(scalar) == 8 ? TILE_U8 : TILE_U16; }

static TileValue *pack_word(Gpu *gpu, const Exchanges *x, TileValue *value, uint32_t first) {
    TileValue *word = NULL;
    for (uint32_t i = 0; i < 1u << x->packed_count; i++) {
        TileValue *element = gpu_register(gpu, value, packed_register(x, first, i));
        TileScalar scalar = element->type->scalar, plain = plain_type(scalar);
        if (scalar != plain) element = tile_build_bitcast(&gpu->b, element, plain);
        element = shifted(gpu, TILE_OP_SHL, tile_build_convert(&gpu->b, element, TILE_U32), i * tile_scalar_bits(scalar));
        word = word ? gpu_binary(gpu, TILE_OP_OR, word, element) : element;
    }
    return word;
}

static TileValue *element_of(Gpu *gpu, TileValue *word, uint32_t number, TileScalar scalar) {
    TileScalar plain = plain_type(scalar);
    TileValue *element = shifted(gpu, TILE_OP_SHR, word, number * tile_scalar_bits(scalar));
    element = tile_build_convert(&gpu->b, element, plain);
    return scalar == plain ? element : tile_build_bitcast(&gpu->b, element, scalar);
}

/* The register of the wanted layout that an element is in, which swaps have left in register `reg`. */
static uint32_t wanted_register(const Exchanges *x, uint32_t reg) {
    uint32_t wanted = 0;
    for (unsigned i = 0; i < x->registers; i++) wanted |= (reg >> i & 1) << x->has[i];
    return wanted;
}

/* Registers of a piece, from `first` on; words by the number of their first register. */
static void exchange_piece(Gpu *gpu, const Exchanges *x, TileValue *value, uint32_t first, TileValue **converted) {
    uint32_t count = 1u << x->registers;
    TileScalar scalar = value->type->scalar;
    TileValue **words = TILE_NEW_ARRAY(gpu->arena, TileValue *, count);
    for (uint32_t r = 0; r < count; r++) words[r] = begins_word(x, r) ? pack_word(gpu, x, value, first + r) : NULL;
    for (unsigned s = 0; s < x->count; s++)
        for (uint32_t r = 0; r < count; r++)
            if (words[r] && !(r >> x->swaps[s].reg & 1))
                gpu_exchange_with_lane(gpu, &words[r], &words[r | UINT32_C(1) << x->swaps[s].reg], x->swaps[s].lane);
    for (uint32_t r = 0; r < count; r++)
        for (uint32_t i = 0; words[r] && i < 1u << x->packed_count; i++)
            converted[first + wanted_register(x, packed_register(x, r, i))] = element_of(gpu, words[r], i, scalar);
}

TileValue *gpu_exchange_words(Gpu *gpu, TileValue *value, const TileLayout *from, const TileLayout *to) {
    Exchanges x = {0};
    TileScalar scalar = value->type->scalar;
    unsigned bits = tile_scalar_bits(scalar);
    if (scalar == TILE_BOOL || bits >= WORD_BITS || from->map.inputs > MOST_BITS) return NULL;
    if (!read_bits(&x, from, to) || !find_swaps(&x)) return NULL;
    choose_packed(&x, bits);
    if (bits << x.packed_count != WORD_BITS) return NULL;
    uint32_t count = tile_layout_registers(from);
    TileValue **converted = TILE_NEW_ARRAY(gpu->arena, TileValue *, count);
    for (uint32_t first = 0; first < count; first += 1u << x.registers) exchange_piece(gpu, &x, value, first, converted);
    return gpu_join(gpu, converted, count);
}
