#include "tests/gpu/wgmma_data.h"

#include <string.h>

#include "lang/scalar/scalar.h"

enum { MOST_ROWS = 2 * WGMMA_ROWS, MOST_K = WGMMA_RING_TILES * WGMMA_TILE_K, TILE = WGMMA_TILE_K };

/* ---- elements ---- */

/* SplitMix64. */
static uint32_t next(uint64_t *state) {
    uint64_t bits = *state += UINT64_C(0x9e3779b97f4a7c15);
    bits = (bits ^ bits >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ bits >> 27) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)(bits >> 32);
}

/* Magnitudes are 2^low and up to 2^(low + span). */
static double make_number(uint32_t random, int low, int span) {
    double number = 1 + (random >> 8 & 0x3fffff) / 4194304.0;
    for (int i = (int)(random & 0xff) % span + low; i; i += i < 0 ? 1 : -1) number *= i < 0 ? 0.5 : 2;
    return number;
}

static unsigned mantissa_bits(TileScalar scalar) {
    if (scalar == TILE_F8E4M3 || scalar == TILE_F8E5M2) return scalar == TILE_F8E4M3 ? 3 : 2;
    return scalar == TILE_F16 ? 10 : scalar == TILE_BF16 ? 7 : 23;
}

/* Around the least normal number; of one operand or both, so that products or sums are subnormal, too. */
static uint32_t make_tiny(TileScalar scalar, uint32_t random) {
    unsigned bits = tile_scalar_bits(scalar), mantissa = mantissa_bits(scalar);
    uint32_t sign = random >> 31 << (bits - 1), exponent = (random >> 27 & 7) << mantissa;
    return sign | (exponent + (random & ((UINT32_C(1) << mantissa) - 1)));
}

static uint32_t make_element(TileScalar scalar, WgmmaKind kind, uint64_t *state) {
    uint32_t random = next(state);
    unsigned bits = tile_scalar_bits(scalar);
    bool is_int = tile_scalar_is_int(scalar);
    if (kind == WGMMA_BITS || (kind != WGMMA_INTEGERS && is_int)) return random >> (32 - bits);
    if (kind == WGMMA_TINY) return make_tiny(scalar, random);
    double number = random % 5;
    if (kind == WGMMA_NUMBERS) number = make_number(random, -6, 8);
    if (kind == WGMMA_WIDE) number = make_number(random, -8, 16);
    if (random >> 31 && scalar != TILE_U8) number = -number;
    return (uint32_t)tile_scalar_from_double(scalar, number);
}

static void make_elements(TileScalar scalar, WgmmaKind kind, uint64_t *state, unsigned count, uint32_t *elements) {
    for (unsigned i = 0; i < count; i++) elements[i] = make_element(scalar, kind, state);
}

static double number_of(TileScalar scalar, uint32_t bits) {
    uint64_t wide = tile_scalar_convert(scalar, TILE_F64, bits);
    double number;
    memcpy(&number, &wide, sizeof number);
    return number;
}

/* As a product sees it. */
static double value_of(TileScalar scalar, uint32_t bits) {
    return number_of(scalar, scalar == TILE_F32 ? bits & ~0x1fffu : bits);
}

/* ---- products ---- */

/* Rows of a and columns of b, of `length` elements each, which lie one behind the other. */
typedef struct Product {
    double a[MOST_ROWS * MOST_K], b[WGMMA_MOST_COLUMNS * MOST_K];
    unsigned columns, length;
    double sums[WGMMA_ROWS * WGMMA_MOST_COLUMNS]; /* that are added to */
} Product;

static void set_values(TileScalar scalar, const uint32_t *bits, unsigned count, double *values) {
    for (unsigned i = 0; i < count; i++) values[i] = value_of(scalar, bits[i]);
}

static double add_up(const Product *p, unsigned row, unsigned column, double *magnitude) {
    double sum = p->sums[row * p->columns + column];
    *magnitude = sum < 0 ? -sum : sum;
    for (unsigned k = 0; k < p->length; k++) {
        double product = p->a[row * p->length + k] * p->b[column * p->length + k];
        sum += product;
        *magnitude += product < 0 ? -product : product;
    }
    return sum;
}

/* Two bits less than the sums themselves: the steps of k are added, too. */
static double most_error(TileScalar scalar, WgmmaKind kind) {
    if (kind == WGMMA_INTEGERS || tile_scalar_is_int(scalar)) return 0;
    return tile_scalar_bits(scalar) == 8 ? 0x1p-9 : 0x1p-20;
}

void wgmma_make_data(const WgmmaCase *item, WgmmaKind kind, unsigned number, WgmmaData *data) {
    static uint32_t a[WGMMA_ROWS * WGMMA_K_BYTES], b[WGMMA_MOST_COLUMNS * WGMMA_K_BYTES], sums[WGMMA_MOST_SUMS];
    static Product p;
    uint64_t state = (uint64_t)number << 32 | kind;
    const TileScalar *types = item->types;
    bool tiny = kind == WGMMA_TINY && (types[1] == TILE_BF16 || types[1] == TILE_F32);
    memset(&p, 0, sizeof p);
    p.columns = item->columns;
    p.length = wgmma_length(item);
    data->is_float = tile_scalar_is_float(types[0]);
    data->count = WGMMA_ROWS * item->columns;
    make_elements(types[0], kind, &state, WGMMA_ROWS * p.length, a);
    make_elements(types[1], tiny ? WGMMA_NUMBERS : kind, &state, item->columns * p.length, b);
    make_elements(data->is_float ? TILE_F32 : TILE_I32, kind, &state, data->count, sums);
    set_values(types[0], a, WGMMA_ROWS * p.length, p.a);
    set_values(types[1], b, item->columns * p.length, p.b);
    for (unsigned i = 0; i < data->count && item->single; i++)
        p.sums[i] = number_of(data->is_float ? TILE_F32 : TILE_I32, sums[i]);
    for (unsigned i = 0; i < data->count; i++)
        data->sums[i] = add_up(&p, i / p.columns, i % p.columns, &data->magnitudes[i]);
    data->most = most_error(types[0], kind);
    data->image_bytes = wgmma_image_bytes(item);
    wgmma_make_image(item, a, b, sums, data->image);
}

double wgmma_measure(const WgmmaData *data) {
    double most = 0;
    for (unsigned i = 0; i < data->count; i++) {
        float number;
        memcpy(&number, &data->out[i], sizeof number);
        double got = data->is_float ? number : (double)(int32_t)data->out[i], error = got - data->sums[i];
        if (!data->is_float && (error == 4294967296.0 || error == -4294967296.0)) error = 0; /* they wrap */
        error = (error < 0 ? -error : error) / (data->magnitudes[i] > 0 ? data->magnitudes[i] : 1);
        if (!(error <= most)) most = error;
    }
    return most;
}

/* ---- kernels with roles ---- */

/* A tile of bf16, 64 rows (or columns, of b) of 64 elements of k, with swizzle 128. */
static void place_tile(bool transposed, const uint32_t *elements, unsigned pitch, unsigned char *image) {
    static unsigned char both[WGMMA_MOST_IMAGE];
    uint32_t tile[TILE * TILE];
    WgmmaCase item = {.types = {TILE_BF16, TILE_BF16}, .columns = TILE, .places = {{128, false}, {128, transposed}}};
    for (unsigned row = 0; row < TILE; row++) memcpy(&tile[row * TILE], &elements[row * pitch], TILE * sizeof *tile);
    wgmma_make_image(&item, tile, tile, NULL, both);
    memcpy(image, both + WGMMA_TILE_BYTES / 2, WGMMA_TILE_BYTES / 2);
}

static void add_all(const Product *p, WgmmaData *data) {
    for (unsigned i = 0; i < data->count; i++) data->sums[i] = add_up(p, i / TILE, i % TILE, &data->magnitudes[i]);
}

static void make_ring(WgmmaKind kind, WgmmaData *data) {
    static uint32_t a[TILE * MOST_K], b[TILE * MOST_K];
    static Product p;
    uint64_t state = kind;
    memset(&p, 0, sizeof p);
    p.columns = TILE;
    p.length = MOST_K;
    make_elements(TILE_BF16, kind, &state, TILE * MOST_K, a);
    make_elements(TILE_BF16, kind, &state, TILE * MOST_K, b);
    set_values(TILE_BF16, a, TILE * MOST_K, p.a);
    set_values(TILE_BF16, b, TILE * MOST_K, p.b);
    data->count = TILE * TILE;
    add_all(&p, data);
    data->image_bytes = (size_t)WGMMA_RING_TILES * WGMMA_TILE_BYTES;
    for (unsigned i = 0; i < WGMMA_RING_TILES; i++) {
        unsigned char *image = data->image + (size_t)i * WGMMA_TILE_BYTES;
        place_tile(false, a + i * TILE, MOST_K, image);
        place_tile(false, b + i * TILE, MOST_K, image + WGMMA_TILE_BYTES / 2);
    }
}

/* The first products are rounded to bf16, so that those of numbers may differ by a unit of it. */
static void make_chain(WgmmaKind kind, WgmmaData *data) {
    static uint32_t a[MOST_ROWS * TILE], w0[TILE * TILE], w1[TILE * TILE];
    static Product p;
    uint64_t state = kind;
    memset(&p, 0, sizeof p);
    p.columns = p.length = TILE;
    make_elements(TILE_BF16, kind, &state, MOST_ROWS * TILE, a);
    make_elements(TILE_BF16, kind, &state, TILE * TILE, w0);
    make_elements(TILE_BF16, kind, &state, TILE * TILE, w1);
    set_values(TILE_BF16, a, MOST_ROWS * TILE, p.a);
    set_values(TILE_BF16, w0, TILE * TILE, p.b);
    data->count = MOST_ROWS * TILE;
    add_all(&p, data);
    for (unsigned i = 0; i < data->count; i++)
        p.a[i] = value_of(TILE_BF16, (uint32_t)tile_scalar_from_double(TILE_BF16, data->sums[i]));
    set_values(TILE_BF16, w1, TILE * TILE, p.b);
    add_all(&p, data);
    data->image_bytes = 2 * WGMMA_TILE_BYTES;
    place_tile(false, a, TILE, data->image);
    place_tile(false, a + TILE * TILE, TILE, data->image + WGMMA_TILE_BYTES / 2);
    place_tile(false, w0, TILE, data->image + WGMMA_TILE_BYTES);
    place_tile(true, w1, TILE, data->image + WGMMA_TILE_BYTES * 3 / 2);
}

void wgmma_make_roles_data(WgmmaRoles kernel, WgmmaKind kind, WgmmaData *data) {
    data->is_float = true;
    data->most = kind == WGMMA_INTEGERS ? 0 : kernel == WGMMA_RING ? 0x1p-20 : 0x1p-8;
    if (kernel == WGMMA_RING)
        make_ring(kind, data);
    else
        make_chain(kind, data);
}
