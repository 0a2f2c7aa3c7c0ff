/* Relocation types of the architectures. Private to object/. */
#ifndef TILE_OBJECT_RELOCATION_H
#define TILE_OBJECT_RELOCATION_H

#include <stddef.h>
#include <stdint.h>

typedef enum TileRelocationHow { TILE_RELOCATION_ABSOLUTE, TILE_RELOCATION_RELATIVE, TILE_RELOCATION_SLOT } TileRelocationHow;

typedef struct TileRelocation {
    uint32_t type;
    uint8_t bytes; /* number of bytes that it changes */
    uint8_t how;   /* TileRelocationHow */
} TileRelocation;

enum { TILE_STUB_BYTES = 8 };

typedef struct TileRelocationTable {
    uint16_t machine; /* e_machine */
    const TileRelocation *relocations;
    size_t count;
    uint32_t absolute, relative, slot; /* the dynamic linker's relocation types: S + A; base + A; S into a slot */
    /* Writes a stub of TILE_STUB_BYTES bytes at address `stub`, which jumps to the address in the slot. */
    void (*write_stub)(char *code, uint64_t stub, uint64_t slot);
} TileRelocationTable;

/* NULL if the machine is not supported. */
const TileRelocationTable *tile_relocation_table_find(uint16_t machine);
/* NULL for a type that the compiler does not emit. */
const TileRelocation *tile_relocation_find(const TileRelocationTable *table, uint32_t type);

#endif
