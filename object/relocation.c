#include "object/relocation.h"

#include <elf.h>
#include <string.h>

/* jmp *slot(%rip); int3; int3 */
static void write_x86_64_stub(char *code, uint64_t stub, uint64_t slot) {
    int32_t distance = (int32_t)(slot - (stub + 6));
    memcpy(code, "\xff\x25", 2);
    memcpy(code + 2, &distance, sizeof distance);
    memcpy(code + 6, "\xcc\xcc", 2);
}

static const TileRelocation x86_64[] = {
#define X86_64(type, bytes, how) {type, bytes, TILE_RELOCATION_##how},
#include "object/relocations.def"
};

static const TileRelocationTable tables[] = {
    {EM_X86_64, x86_64, sizeof x86_64 / sizeof *x86_64, R_X86_64_64, R_X86_64_RELATIVE, R_X86_64_GLOB_DAT,
     write_x86_64_stub},
};

const TileRelocationTable *tile_relocation_table_find(uint16_t machine) {
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (tables[i].machine == machine) return &tables[i];
    return NULL;
}

const TileRelocation *tile_relocation_find(const TileRelocationTable *table, uint32_t type) {
    for (size_t i = 0; i < table->count; i++)
        if (table->relocations[i].type == type) return &table->relocations[i];
    return NULL;
}
