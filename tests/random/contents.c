#include "contents.h"

#include <math.h>
#include <string.h>

/* ---- contents of tensors ---- */

static uint64_t index_bits(Random *random, const Tensor *tensor) {
    int64_t inside = (int64_t)(random_next(random) % (uint64_t)tensor->limit);
    if (random_unit(random) < 0.12) inside = random_hostile(random, tensor->type, tensor->limit);
    if (random_unit(random) < 0.02) inside = (INT64_C(1) << 62) + 1;
    return number_from_integer(tensor->type, inside);
}

static uint64_t integer_bits(Random *random, const Tensor *tensor) {
    if (tensor->data == DATA_INDEX) return index_bits(random, tensor);
    uint64_t raw = random_next(random);
    if (tensor->data == DATA_BITS) return number_from_integer(tensor->type, (Wide)(raw >> (raw & 63)));
    if (tensor->data == DATA_WIDE) return number_from_integer(tensor->type, (Wide)raw);
    return number_from_integer(tensor->type, (Wide)(raw >> 8) % 21 - (type_is_signed(tensor->type) ? 8 : 0));
}

/* Most numbers have few significant bits, so that sums of them are exact. */
static uint64_t float_bits(Random *random, const Tensor *tensor) {
    uint64_t raw = random_next(random);
    double small = (double)((int64_t)(raw >> 8) % 33 - 16) * ((raw & 3) ? 0.5 : 0.25);
    Type type = tensor->type;
    switch (tensor->data) {
    case DATA_SPECIAL:
        if (random_unit(random) < 0.15) small = random_special(random, type, SPECIAL_ALL);
        raw = 0;
        value_store(type, &raw, small);
        return raw;
    case DATA_WIDE: return number_from(type, ldexp(random_normal(random), (int)(raw % 24) - 12));
    case DATA_BITS: {
        uint64_t bits = raw >> (64 - 8 * type_bytes(type));
        return isnan(number_value(type, bits)) ? number_from(type, NAN) : bits;
    }
    default: return number_from(type, small);
    }
}

/* ---- packed numbers ---- */

const char *tensor_word(const Tensor *tensor) {
    static const char *const words[] = {
        [PACKING_I4] = "i4", [PACKING_U4] = "u4", [PACKING_F4] = "f4e2m1", [PACKING_E8] = "f8e8m0"};
    return tensor->packing ? words[tensor->packing] : type_name(tensor->type);
}

static bool has_halves(const Tensor *tensor) { return packing_has_halves(tensor->packing); }

/* The byte of an element of a packed tensor, whose array is one of bytes. */
static unsigned char *byte_of(const Contents *contents, const Tensor *tensor, const Array *array, int64_t element) {
    int64_t last = contents->extent[tensor->rank - 1], row = element / last, column = element % last;
    return array_at(array, row * array->extent[tensor->rank - 1] + (has_halves(tensor) ? column / 2 : column));
}

uint64_t packing_number(Packing packing, unsigned code) {
    static const double numbers[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    switch (packing) {
    case PACKING_NONE:
    case PACKING_U4: return code;
    case PACKING_I4: return number_from_integer(TYPE_I8, code < 8 ? (Wide)code : (Wide)code - 16);
    case PACKING_F4: return number_from(TYPE_F8E4M3, code < 8 ? numbers[code] : copysign(numbers[code - 8], -1));
    case PACKING_E8: return number_from(TYPE_F32, code == 255 ? NAN : ldexp(1, (int)code - 127));
    }
    return 0;
}

/* Powers of two are mostly near 1, so that sums of them are exact. */
static unsigned packed_code(Random *random, const Tensor *tensor) {
    unsigned raw = (unsigned)(random_next(random) >> 20);
    if (tensor->packing != PACKING_E8) return raw & 15;
    return random_unit(random) < 0.04 ? raw & 255 : 124 + (raw & 7);
}

static unsigned code_of(const Tensor *tensor, uint64_t bits) {
    unsigned code = 0;
    while (packing_number(tensor->packing, code) != bits) code++;
    return code;
}

static void place_packed(const Contents *contents, const Tensor *tensor, Array *array) {
    int64_t last = contents->extent[tensor->rank - 1];
    /* The half behind an odd number of elements is nobody's. */
    for (int64_t i = 0; i < array->count; i++) *(unsigned char *)array_at(array, i) = has_halves(tensor) ? 0xf0 : 0;
    for (int64_t i = 0; i < contents->count; i++) {
        unsigned code = code_of(tensor, contents->at[i].bits);
        unsigned char *byte = byte_of(contents, tensor, array, i);
        if (!has_halves(tensor))
            *byte = (unsigned char)code;
        else if (i % last % 2)
            *byte = (unsigned char)((*byte & 0x0f) | code << 4);
        else
            *byte = (unsigned char)((*byte & 0xf0) | code);
    }
}

/* To nearest, ties to even; what is greater than all is the greatest. */
static unsigned f4_code(double size) {
    unsigned code = 0;
    for (unsigned next = 1; next < 8; next++) {
        double above = number_value(TYPE_F8E4M3, packing_number(PACKING_F4, next));
        double below = number_value(TYPE_F8E4M3, packing_number(PACKING_F4, code));
        double middle = (above + below) / 2;
        if (size > middle || (size == middle && next % 2 == 0)) code = next;
    }
    return code;
}

unsigned packing_code(Packing packing, Type type, uint64_t bits) {
    if (packing != PACKING_F4) return (unsigned)bits & 15;
    double value = number_value(type, bits);
    return isnan(value) ? 7 : f4_code(fabs(value)) | (signbit(value) ? 8 : 0);
}

Number contents_kept(const Tensor *tensor, Number number) {
    if (!tensor->packing) return number;
    if (number.off != 0) return number_unknown();
    return (Number){packing_number(tensor->packing, packing_code(tensor->packing, tensor->type, number.bits)), 0};
}

uint64_t contents_bits(const Contents *contents, const Tensor *tensor, const Array *array, int64_t element) {
    uint64_t bits = 0;
    if (!tensor->packing) {
        memcpy(&bits, array_at(array, element), type_bytes(tensor->type));
        return bits;
    }
    unsigned byte = *byte_of(contents, tensor, array, element);
    bool upper = has_halves(tensor) && element % contents->extent[tensor->rank - 1] % 2;
    return packing_number(tensor->packing, upper ? byte >> 4 : has_halves(tensor) ? byte & 15 : byte);
}

bool contents_padded(const Contents *contents, const Tensor *tensor, const Array *array) {
    int64_t last = tensor->rank ? contents->extent[tensor->rank - 1] : 0;
    if (!has_halves(tensor) || last % 2 == 0) return true;
    for (int64_t i = last - 1; i < contents->count; i += last)
        if (*byte_of(contents, tensor, array, i) >> 4 != (contents->lane[i] ? 0 : 15)) return false;
    return true;
}

Contents *contents_make(const Tensor *tensor) {
    Contents *contents = NEW(Contents);
    contents->count = 1;
    for (int i = 0; i < tensor->rank; i++) {
        contents->extent[i] = extent_value(tensor->dim[i]);
        contents->count *= contents->extent[i];
    }
    contents->at = program_allocate((size_t)contents->count * sizeof *contents->at);
    contents->lane = program_allocate((size_t)contents->count * sizeof *contents->lane);
    Random random = random_create(tensor->seed);
    for (int64_t i = 0; i < contents->count; i++) {
        Number *at = &contents->at[i];
        if (tensor->role == TENSOR_TEMP)
            *at = number_unknown();
        else if (tensor->packing)
            at->bits = packing_number(tensor->packing, packed_code(&random, tensor));
        else if (tensor->type == TYPE_BOOL)
            at->bits = random_next(&random) >> 20 & 1;
        else
            at->bits = type_is_float(tensor->type) ? float_bits(&random, tensor) : integer_bits(&random, tensor);
    }
    return contents;
}

/* ---- memory layout ---- */

static void set_strides(const Tensor *tensor, const int64_t *extent, int64_t *stride) {
    int order[MAX_DIMENSIONS]; /* innermost first */
    for (int i = 0; i < tensor->rank; i++) order[i] = tensor->rank - 1 - i;
    Random random = random_create(tensor->seed ^ 99);
    for (int i = tensor->rank - 1; i > 0 && tensor->view == LIE_PERMUTED; i--) {
        int k = (int)(random_next(&random) % (uint64_t)(i + 1)), other = order[i];
        order[i] = order[k];
        order[k] = other;
    }
    int64_t step = tensor->view == LIE_SPREAD ? 2 + (int64_t)(tensor->seed % 2) : 1;
    for (int i = 0; i < tensor->rank; i++) {
        stride[order[i]] = step;
        step *= extent[order[i]] > 0 ? extent[order[i]] : 1;
        if (tensor->view == LIE_ROWS && i == 0) step += 1 + (int64_t)(tensor->seed % 7);
        if (tensor->view == LIE_OFFSET && i == 0) step += 1 - step % 2;
        if (tensor->view == LIE_BACKWARDS && (tensor->seed >> i & 1 || i == 0)) stride[order[i]] = -stride[order[i]];
    }
    if (tensor->view == LIE_REPEATED && tensor->rank) stride[tensor->seed % (uint64_t)tensor->rank] = 0;
}

bool contents_place(Contents *contents, const Tensor *tensor, Array *array) {
    int64_t stride[ARRAY_MAX_RANK] = {0}, extent[MAX_DIMENSIONS];
    memcpy(extent, contents->extent, sizeof extent);
    if (has_halves(tensor)) extent[tensor->rank - 1] = (extent[tensor->rank - 1] + 1) / 2;
    set_strides(tensor, extent, stride);
    Placement placement = tensor->view == LIE_OFFSET ? PLACEMENT_END : tensor->placement;
    Type type = tensor->packing ? TYPE_U8 : tensor->type;
    if (!array_create_strided(array, type, tensor->rank, extent, stride, placement)) return false;
    if (tensor->packing) place_packed(contents, tensor, array);
    for (int64_t i = 0; i < contents->count && !tensor->packing; i++)
        memcpy(array_at(array, i), &contents->at[i].bits, type_bytes(tensor->type));
    /* Where elements have the same address, the last one is stored. */
    for (int64_t i = 0; i < contents->count && tensor->view == LIE_REPEATED; i++) {
        contents->at[i].bits = 0;
        memcpy(&contents->at[i].bits, array_at(array, i), type_bytes(tensor->type));
    }
    array_save(array);
    return true;
}
