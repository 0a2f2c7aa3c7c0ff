/* A relocatable object file of 64 bits, little-endian ELF: where its tables are. Private to object/. */
#ifndef TILE_OBJECT_ELF_H
#define TILE_OBJECT_ELF_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct TileElf {
    const char *bytes; /* of the caller, aligned to 8 */
    size_t size;
    const Elf64_Ehdr *header;
    const Elf64_Shdr *sections;
    size_t section_count;
    const Elf64_Sym *symbols;
    size_t symbol_count, first_global;
    const char *names, *section_names; /* each ends with a zero byte */
    size_t names_bytes, section_names_bytes;
} TileElf;

/* NULL, or in words what is wrong. Afterwards each section lies inside of the file, has a name and a sane alignment; each
 * symbol has a name and, where it is in a section, one that exists; relocations refer to symbols and sections that exist. */
const char *tile_elf_read(TileElf *elf, const void *bytes, size_t size);

static inline const char *tile_elf_section_name(const TileElf *elf, size_t section) {
    return elf->section_names + elf->sections[section].sh_name;
}
static inline const char *tile_elf_symbol_name(const TileElf *elf, size_t symbol) {
    return elf->names + elf->symbols[symbol].st_name;
}
/* Of a section of type SHT_RELA. */
static inline const Elf64_Rela *tile_elf_relocations(const TileElf *elf, const Elf64_Shdr *section, size_t *count) {
    *count = section->sh_size / sizeof(Elf64_Rela);
    return (const Elf64_Rela *)(elf->bytes + section->sh_offset);
}
static inline bool tile_elf_is_in_section(const Elf64_Sym *symbol) {
    return symbol->st_shndx != SHN_UNDEF && symbol->st_shndx < SHN_LORESERVE;
}

/* The least multiple of `align` that is not below `value`; `align` is 0 or a power of two. */
static inline uint64_t tile_elf_round_up(uint64_t value, uint64_t align) {
    return align > 1 ? (value + align - 1) / align * align : value;
}

#endif
