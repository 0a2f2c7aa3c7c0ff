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
    int64_t stride[ARRAY_MAX_RANK] = {0};
    set_strides(tensor, contents->extent, stride);
    Placement placement = tensor->view == LIE_OFFSET ? PLACEMENT_END : tensor->placement;
    if (!array_create_strided(array, tensor->type, tensor->rank, contents->extent, stride, placement)) return false;
    for (int64_t i = 0; i < contents->count; i++)
        memcpy(array_at(array, i), &contents->at[i].bits, type_bytes(tensor->type));
    /* Where elements have the same address, the last one is stored. */
    for (int64_t i = 0; i < contents->count && tensor->view == LIE_REPEATED; i++) {
        contents->at[i].bits = 0;
        memcpy(&contents->at[i].bits, array_at(array, i), type_bytes(tensor->type));
    }
    array_save(array);
    return true;
}
