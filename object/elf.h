/* Reader of 64-bit little-endian ELF relocatable objects. Private to object/. */
#ifndef TILE_OBJECT_ELF_H
#define TILE_OBJECT_ELF_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct TileElf {
    const char *bytes; /* owned by the caller, aligned to 8 */
    size_t size;
    const Elf64_Ehdr *header;
    const Elf64_Shdr *sections;
    size_t section_count;
    const Elf64_Sym *symbols;
    size_t symbol_count, first_global;
    const char *names, *section_names; /* end with a zero byte each */
    size_t names_bytes, section_names_bytes;
} TileElf;

/* NULL, or what is wrong. If NULL: each section is inside the file and has a name and a valid alignment; each symbol
 * has a name and, unless undefined or absolute, an existing section; relocations refer to existing symbols and
 * sections. */
const char *tile_elf_read(TileElf *elf, const void *bytes, size_t size);

static inline const char *tile_elf_section_name(const TileElf *elf, size_t section) {
    return elf->section_names + elf->sections[section].sh_name;
}
static inline const char *tile_elf_symbol_name(const TileElf *elf, size_t symbol) {
    return elf->names + elf->symbols[symbol].st_name;
}
/* The relocations of a section of type SHT_RELA. */
static inline const Elf64_Rela *tile_elf_relocations(const TileElf *elf, const Elf64_Shdr *section, size_t *count) {
    *count = section->sh_size / sizeof(Elf64_Rela);
    return (const Elf64_Rela *)(elf->bytes + section->sh_offset);
}
static inline bool tile_elf_is_in_section(const Elf64_Sym *symbol) {
    return symbol->st_shndx != SHN_UNDEF && symbol->st_shndx < SHN_LORESERVE;
}

/* Rounds `value` up to a multiple of `align`, which is 0 or a power of two. */
static inline uint64_t tile_elf_round_up(uint64_t value, uint64_t align) {
    return align > 1 ? (value + align - 1) / align * align : value;
}

#endif
