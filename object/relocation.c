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

static const TileArchitecture architectures[] = {
    {EM_X86_64, x86_64, sizeof x86_64 / sizeof *x86_64, R_X86_64_64, R_X86_64_RELATIVE, R_X86_64_GLOB_DAT,
     write_x86_64_stub},
};

const TileArchitecture *tile_architecture_find(uint16_t machine) {
    for (size_t i = 0; i < sizeof architectures / sizeof *architectures; i++)
        if (architectures[i].machine == machine) return &architectures[i];
    return NULL;
}

const TileRelocation *tile_relocation_find(const TileArchitecture *architecture, uint32_t type) {
    for (size_t i = 0; i < architecture->count; i++)
        if (architecture->relocations[i].type == type) return &architecture->relocations[i];
    return NULL;
}
