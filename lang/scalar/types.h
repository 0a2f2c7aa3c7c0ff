/* The scalar types of the language. */
#ifndef TILE_LANG_SCALAR_TYPES_H
#define TILE_LANG_SCALAR_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(ID, mnemonic, bits, class): the scalar types of the language. */
#define TILE_SCALAR_LIST(X)                                                                                            \
    X(BOOL, "bool", 1, BOOL)                                                                                           \
    X(I8, "i8", 8, SIGNED)                                                                                             \
    X(I16, "i16", 16, SIGNED)                                                                                          \
    X(I32, "i32", 32, SIGNED)                                                                                          \
    X(I64, "i64", 64, SIGNED)                                                                                          \
    X(U8, "u8", 8, UNSIGNED)                                                                                           \
    X(U16, "u16", 16, UNSIGNED)                                                                                        \
    X(U32, "u32", 32, UNSIGNED)                                                                                        \
    X(U64, "u64", 64, UNSIGNED)                                                                                        \
    X(F8E4M3, "f8e4m3", 8, FLOAT)                                                                                      \
    X(F8E5M2, "f8e5m2", 8, FLOAT)                                                                                      \
    X(F16, "f16", 16, FLOAT)                                                                                           \
    X(BF16, "bf16", 16, FLOAT)                                                                                         \
    X(F32, "f32", 32, FLOAT)                                                                                           \
    X(F64, "f64", 64, FLOAT)

typedef enum TileScalar {
#define TILE_SCALAR_ENUM(id, mnemonic, bits, class) TILE_##id,
    TILE_SCALAR_LIST(TILE_SCALAR_ENUM)
#undef TILE_SCALAR_ENUM
        TILE_SCALAR_COUNT
} TileScalar;

typedef enum TileScalarClass {
    TILE_CLASS_BOOL,
    TILE_CLASS_SIGNED,
    TILE_CLASS_UNSIGNED,
    TILE_CLASS_FLOAT
} TileScalarClass;

const char *tile_scalar_name(TileScalar scalar);
static inline unsigned tile_scalar_bits(TileScalar scalar) {
    static const uint8_t widths[TILE_SCALAR_COUNT] = {
#define TILE_SCALAR_BITS(id, mnemonic, bits, class) bits,
        TILE_SCALAR_LIST(TILE_SCALAR_BITS)
#undef TILE_SCALAR_BITS
    };
    return widths[scalar];
}
/* Size in memory: a bool takes a byte. */
unsigned tile_scalar_bytes(TileScalar scalar);
TileScalarClass tile_scalar_class(TileScalar scalar);
static inline bool tile_scalar_is_float(TileScalar s) { return tile_scalar_class(s) == TILE_CLASS_FLOAT; }
static inline bool tile_scalar_is_int(TileScalar s) {
    return tile_scalar_class(s) == TILE_CLASS_SIGNED || tile_scalar_class(s) == TILE_CLASS_UNSIGNED;
}
/* False if no scalar type has this name. */
bool tile_scalar_find(const char *name, size_t length, TileScalar *scalar);

#endif
