#include "tools/source.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lang/ir/build.h"
#include "lang/scalar/scalar.h"
#include "parser/syntax/ast.h"
#include "tools/npy.h"

/* ---- reading the text ---- */

static const char *const generator_names[TILE_GENERATOR_COUNT] = {
#define TILE_GENERATOR_NAME(id, name, doc) name,
    TILE_GENERATOR_LIST(TILE_GENERATOR_NAME)
#undef TILE_GENERATOR_NAME
};

static tile_status fail(TileText *error, const char *what, const char *at) {
    tile_text_format(error, "%s at '%s'", what, *at ? at : "the end");
    return TILE_INVALID_ARGUMENT;
}

static const char *skip_spaces(const char *at) {
    while (*at == ' ') at++;
    return at;
}

static bool read_integer(const char **at, int64_t *value) {
    char *end;
    errno = 0;
    *value = strtoll(*at, &end, 10);
    if (end == *at || errno) return false;
    *at = skip_spaces(end);
    return true;
}

/* Reads `[3, 4]`, and moves *at past it. */
static tile_status read_shape(const char **at, unsigned *rank, int64_t *extent, TileText *error) {
    const char *start = *at;
    *rank = 0;
    if (**at != '[') return fail(error, "expected a shape such as [3,4]", *at);
    *at = skip_spaces(*at + 1);
    while (**at != ']') {
        if (*rank == TILE_MAX_TENSOR_RANK) return fail(error, "more than 8 dimensions", start);
        const char *begin = *at;
        if (!read_integer(at, &extent[*rank]) || extent[*rank] < 0) return fail(error, "expected an extent, 0 or more,", begin);
        (*rank)++;
        if (**at == ',')
            *at = skip_spaces(*at + 1);
        else if (**at != ']')
            return fail(error, "expected ',' or ']'", *at);
    }
    (*at)++;
    return TILE_OK;
}

static tile_status read_type(const char **at, TileScalar *type, TileText *error) {
    size_t length = 0;
    while (isalnum((unsigned char)(*at)[length]) || (*at)[length] == '_') length++;
    if (!tile_scalar_find(*at, length, type)) {
        const char *own = tile_foreign_type(error->arena, tile_arena_string(error->arena, *at, length));
        return fail(error, tile_arena_format(error->arena, "expected an element type such as %s", own ? own : "f32"), *at);
    }
    *at += length;
    return TILE_OK;
}

/* Elements that kernels take as bytes: the type becomes u8; *shared is the number of them that share one. */
static tile_status read_element(const char **at, TileScalar *type, int64_t *shared, TileText *error) {
    static const struct {
        const char *name;
        int64_t shared;
    } formats[] = {{"i4", 2}, {"u4", 2}, {"f4e2m1", 2}, {"f8e8m0", 1}};
    *shared = 0;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        size_t length = strlen(formats[i].name);
        if (strncmp(*at, formats[i].name, length) != 0 || isalnum((unsigned char)(*at)[length])) continue;
        *at += length;
        *type = TILE_U8;
        *shared = formats[i].shared;
        return TILE_OK;
    }
    return read_type(at, type, error);
}

static tile_status parse_generated(const char *at, TileSource *source, TileText *error) {
    int64_t shared;
    const char *start = at;
    source->kind = TILE_SOURCE_GENERATED;
    TILE_TRY(read_element(&at, &source->type, &shared, error));
    if (shared && source->generator != TILE_GENERATOR_ZEROS)
        return fail(error, "such elements are made up as zeros only, and their bytes by randint:u8[..](0,256)", start);
    TILE_TRY(read_shape(&at, &source->rank, source->extent, error));
    if (shared == 2 && source->rank) {
        int64_t *last = &source->extent[source->rank - 1];
        *last = *last / 2 + *last % 2;
    }
    if (source->generator == TILE_GENERATOR_RANDINT) {
        if (*at != '(') return fail(error, "randint needs (lo,hi)", at);
        at = skip_spaces(at + 1);
        if (!read_integer(&at, &source->lo) || *at++ != ',' || !read_integer(&at, &source->hi) || *at++ != ')')
            return fail(error, "expected (lo,hi)", at);
        if (source->lo >= source->hi) return fail(error, "randint needs lo < hi", at);
    }
    if (tile_array_count(source->type, source->rank, source->extent) < 0) {
        tile_text_add(error, "the shape is too large");
        return TILE_INVALID_ARGUMENT;
    }
    source->suffix = at;
    return TILE_OK;
}

/* A path ends at the last ".npy" that is followed by a type, a view or nothing; other paths (devices, pipes) contain a
 * slash and go to the end or the first colon. */
static size_t path_length(const char *text) {
    size_t length = 0;
    for (const char *at = text; (at = strstr(at, ".npy")) != NULL; at += 4)
        if (strchr(":[.*", at[4])) length = (size_t)(at + 4 - text); /* strchr finds the end of the text, too */
    if (!length && strchr(text, '/')) length = strcspn(text, ":");
    return length;
}

tile_status tile_source_parse(const char *text, TileSource *source, TileText *error) {
    *source = (TileSource){.type = TILE_SCALAR_COUNT};
    for (int g = 0; g < TILE_GENERATOR_COUNT; g++) {
        size_t length = strlen(generator_names[g]);
        if (strncmp(text, generator_names[g], length) != 0 || text[length] != ':') continue;
        source->generator = (TileGenerator)g;
        return parse_generated(text + length + 1, source, error);
    }
    size_t length = path_length(text);
    if (*text == '@') {
        source->kind = TILE_SOURCE_DISCARD;
        length = 1;
    } else if (length) {
        source->kind = TILE_SOURCE_FILE;
        source->path = tile_arena_string(error->arena, text, length);
    } else {
        tile_text_format(
            error, "'%s' is no tensor: give a .npy file, made-up data such as rand:f32[3,4], or @ for a result", text);
        return TILE_INVALID_ARGUMENT;
    }
    const char *at = text + length;
    if (*at == ':') {
        at++;
        TILE_TRY(read_type(&at, &source->type, error));
    }
    source->suffix = at;
    return TILE_OK;
}

tile_status tile_source_shape(const TileSource *source, bool *given, unsigned *rank, int64_t *extent, TileText *error) {
    const char *at = source->suffix;
    *given = *at != 0;
    if (!*given) return TILE_OK;
    TILE_TRY(read_shape(&at, rank, extent, error));
    return *at ? fail(error, "expected the end", at) : TILE_OK;
}

/* ---- making data ---- */

/* SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014) of a counter. */
static uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

typedef struct Generation {
    const TileSource *source;
    uint64_t key;
} Generation;

static double uniform(const Generation *g, uint64_t index) { return (double)(mix(g->key + index) >> 11) * 0x1p-53; }

/* Uses as many leading bits as the type's significand holds, so that rounding never gives 1. */
static double uniform_below_one(const Generation *g, uint64_t index) {
    double value = uniform(g, index), scale = 0x1p53;
    TileScalar type = g->source->type;
    if (type == TILE_F32) scale = 0x1p24;
    if (type == TILE_F16) scale = 0x1p11;
    if (type == TILE_BF16) scale = 0x1p8;
    if (type == TILE_F8E4M3 || type == TILE_F8E5M2) scale = 0x1p3;
    return floor(value * scale) / scale;
}

/* Box and Muller's transform of two uniform numbers. */
static double normal(const Generation *g, uint64_t index) {
    double radius = sqrt(-2 * log(1 - uniform(g, 2 * index)));
    return radius * cos(6.283185307179586 * uniform(g, 2 * index + 1));
}

static uint64_t generate(const Generation *g, int64_t index) {
    const TileSource *source = g->source;
    switch (source->generator) {
    case TILE_GENERATOR_RAND: return tile_scalar_from_double(source->type, uniform_below_one(g, (uint64_t)index));
    case TILE_GENERATOR_RANDN: return tile_scalar_from_double(source->type, normal(g, (uint64_t)index));
    case TILE_GENERATOR_ZEROS: return 0;
    case TILE_GENERATOR_ONES: return tile_scalar_from_double(source->type, 1);
    case TILE_GENERATOR_ARANGE: return tile_scalar_from_integer(source->type, index);
    case TILE_GENERATOR_RANDINT: {
        uint64_t range = (uint64_t)source->hi - (uint64_t)source->lo;
        return tile_scalar_from_integer(source->type,
                                        (int64_t)((uint64_t)source->lo + mix(g->key + (uint64_t)index) % range));
    }
    case TILE_GENERATOR_COUNT: break;
    }
    return 0;
}

static void fill(const TileSource *source, uint64_t seed, uint64_t stream, TileArray *array) {
    Generation generation = {source, mix(mix(seed) + stream)};
    size_t size = tile_scalar_bytes(source->type);
    int64_t count = tile_array_count(source->type, source->rank, source->extent);
    for (int64_t i = 0; i < count; i++) {
        uint64_t bits = generate(&generation, i);
        memcpy(array->data + (size_t)i * size, &bits, size); /* little endian */
    }
}

tile_status tile_source_load(const TileSource *source, uint64_t seed, uint64_t stream, TileArray *base, TileArray *view,
                             TileText *error) {
    *base = (TileArray){0};
    if (source->kind == TILE_SOURCE_DISCARD) {
        tile_text_add(error, "@ is for results, not for data");
        return TILE_INVALID_ARGUMENT;
    }
    if (source->kind == TILE_SOURCE_FILE) {
        TILE_TRY(tile_npy_read(source->path, source->type, base, error));
    } else {
        TILE_TRY(tile_array_create(base, source->type, source->rank, source->extent, error));
        fill(source, seed, stream, base);
    }
    *view = *base;
    tile_status status = tile_array_view(view, source->suffix, error);
    if (status != TILE_OK) tile_array_release(base);
    return status;
}
