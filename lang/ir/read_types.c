/* Types, as the printer prints them. */
#include <string.h>

#include "lang/ir/read.h"

static TileScalar read_scalar(Reader *r) {
    TileScalar scalar = TILE_I64;
    if (r->token.kind != TOKEN_WORD || !tile_scalar_find(r->token.text, r->token.length, &scalar))
        tile_read_fail(r, "expected a type");
    else
        tile_read_advance(r);
    return scalar;
}

static int64_t read_extent(Reader *r) {
    int64_t extent = tile_read_integer(r);
    if (extent < 1 || extent > TILE_READ_MOST_LANES)
        tile_read_fail(r, "an extent lies between 1 and %lld", (long long)TILE_READ_MOST_LANES);
    return extent;
}

static const TileLayout *layout_of_number(Reader *r) {
    uint32_t number = tile_read_small(r);
    if (!r->failed && number >= r->layouts.count) tile_read_fail(r, "the function has no layout %u", number);
    return r->failed ? NULL : r->layouts.items[number];
}

static const TileType *read_tile(Reader *r, TileScalar scalar) {
    int64_t extent[TILE_MAX_TILE_RANK] = {0}, lanes = 1;
    unsigned rank = 0;
    do {
        if (rank == TILE_MAX_TILE_RANK) {
            tile_read_fail(r, "a tile has at most %d axes", TILE_MAX_TILE_RANK);
            return tile_type_scalar(r->context, scalar);
        }
        extent[rank] = read_extent(r);
        if (!r->failed && extent[rank] > TILE_READ_MOST_LANES / lanes)
            tile_read_fail(r, "the tile has too many elements");
        if (r->failed) return tile_type_scalar(r->context, scalar);
        lanes *= extent[rank++];
    } while (tile_read_accept(r, ","));
    tile_read_expect(r, "]");
    const TileType *type = tile_type_tile(r->context, scalar, rank, extent);
    return tile_read_accept_word(r, "layout") ? tile_type_with_layout(r->context, type, layout_of_number(r)) : type;
}

static const TileType *read_vector(Reader *r) {
    tile_read_expect(r, "<");
    bool scalable = tile_read_accept(r, "[");
    int64_t lanes = read_extent(r);
    if (scalable) tile_read_expect(r, "]");
    if (!tile_read_accept_word(r, "x")) tile_read_fail(r, "expected `x`");
    TileScalar scalar = read_scalar(r);
    tile_read_expect(r, ">");
    return tile_type_vector(r->context, scalar, r->failed ? 1 : lanes, scalable);
}

static const TileType *read_tensor(Reader *r) {
    static const char *const words[] = {"in", "out", "inout", "temp"};
    tile_read_expect(r, "<");
    TileScalar scalar = read_scalar(r);
    tile_read_expect(r, ",");
    uint32_t rank = tile_read_small(r);
    if (rank > TILE_MAX_TENSOR_RANK) tile_read_fail(r, "a tensor has at most %d dimensions", TILE_MAX_TENSOR_RANK);
    tile_read_expect(r, ",");
    unsigned access = tile_read_choice(r, words, 4, "in, out, inout or temp");
    tile_read_expect(r, ">");
    return tile_type_tensor(r->context, scalar, r->failed ? 0 : rank, (TileAccess)access);
}

static void read_swizzle(Reader *r, TileType *type) {
    static const char *const words[] = {"rows", "words", "bytes", "panels", "columns"};
    int64_t bytes = tile_read_integer(r);
    while (type->log_chunks < TILE_MAX_LOG_CHUNKS && bytes > TILE_CHUNK_BYTES << type->log_chunks) type->log_chunks++;
    type->swizzle = (uint8_t)(TILE_SWIZZLE_ROWS + tile_read_choice(r, words, 5, "rows, words, bytes, panels or columns"));
    if (bytes != TILE_CHUNK_BYTES << type->log_chunks || !type->log_chunks != (type->swizzle == TILE_SWIZZLE_COLUMNS))
        tile_read_fail(r, "a swizzle is of 32, 64 or 128 bytes, that of columns of 16");
}

/* The tile that a pointer into shared memory points to, or that a channel's slots hold. */
static void read_stored(Reader *r, TileType *type) {
    TileScalar scalar = read_scalar(r);
    tile_read_expect(r, "[");
    const TileType *tile = r->failed ? NULL : read_tile(r, scalar);
    if (!r->failed && (tile->rank != 2 || tile->layout))
        tile_read_fail(r, "what lies in shared memory has two axes, and no layout");
    if (r->failed) return;
    type->scalar = scalar;
    type->rank = tile->rank;
    memcpy(type->extent, tile->extent, sizeof type->extent);
    if (!tile_read_accept(r, ",")) return;
    if (!tile_read_accept_word(r, "swizzle")) tile_read_fail(r, "expected `swizzle`");
    read_swizzle(r, type);
    if (!r->failed && type->extent[1] * tile_scalar_bytes(scalar) % (TILE_CHUNK_BYTES << type->log_chunks))
        tile_read_fail(r, "the swizzle does not divide a row");
}

static const TileType *read_pointer(Reader *r) {
    static const char *const spaces[] = {"global", "shared", "scratch", "map"};
    tile_read_expect(r, "<");
    TileSpace space = (TileSpace)tile_read_choice(r, spaces, 4, "global, shared, scratch or map");
    TileType type = {.kind = TILE_TYPE_POINTER, .space = (uint8_t)space};
    if (space == TILE_SPACE_SHARED && tile_read_accept(r, ",")) read_stored(r, &type);
    tile_read_expect(r, ">");
    return r->failed ? tile_type_pointer(r->context, space) : tile_type_intern(r->context->types, &type);
}

static const TileType *read_channel(Reader *r) {
    TileType type = {.kind = TILE_TYPE_CHANNEL};
    tile_read_expect(r, "<");
    read_stored(r, &type);
    tile_read_expect(r, ">");
    return r->failed ? tile_type_scalar(r->context, TILE_I64) : tile_type_intern(r->context->types, &type);
}

const TileType *tile_read_type(Reader *r) {
    if (tile_read_accept_word(r, "tensor")) return read_tensor(r);
    if (tile_read_accept_word(r, "vec")) return read_vector(r);
    if (tile_read_accept_word(r, "ptr")) return read_pointer(r);
    if (tile_read_accept_word(r, "channel")) return read_channel(r);
    TileScalar scalar = read_scalar(r);
    return tile_read_accept(r, "[") ? read_tile(r, scalar) : tile_type_scalar(r->context, scalar);
}
