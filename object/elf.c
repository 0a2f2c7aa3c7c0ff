#include "object/elf.h"

#include <string.h>

enum { MOST_BYTES = 1 << 30, MOST_ALIGN = 1 << 16 }; /* of a section */

static bool is_inside(const TileElf *elf, uint64_t offset, uint64_t size) {
    return offset <= elf->size && size <= elf->size - offset;
}

static const char *read_header(TileElf *elf) {
    const Elf64_Ehdr *header = elf->header;
    if (elf->size < sizeof *header || memcmp(header->e_ident, ELFMAG, SELFMAG) ||
        header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB || header->e_type != ET_REL)
        return "one is no relocatable 64-bit ELF file";
    if (header->e_shentsize != sizeof(Elf64_Shdr) || header->e_shoff % 8 || header->e_shnum == 0 ||
        header->e_shstrndx >= header->e_shnum || !is_inside(elf, header->e_shoff, header->e_shnum * sizeof(Elf64_Shdr)))
        return "a section table is damaged";
    elf->sections = (const Elf64_Shdr *)(elf->bytes + header->e_shoff);
    elf->section_count = header->e_shnum;
    return NULL;
}

static const char *read_names(const TileElf *elf, size_t section, const char **names, size_t *bytes) {
    const Elf64_Shdr *table = &elf->sections[section];
    if (table->sh_type != SHT_STRTAB || !table->sh_size || elf->bytes[table->sh_offset + table->sh_size - 1])
        return "names are damaged";
    *names = elf->bytes + table->sh_offset;
    *bytes = table->sh_size;
    return NULL;
}

static const char *check_section(const TileElf *elf, const Elf64_Shdr *section) {
    if (section->sh_name >= elf->section_names_bytes) return "names are damaged";
    if (section->sh_size > MOST_BYTES || section->sh_addralign > MOST_ALIGN ||
        (section->sh_addralign & (section->sh_addralign - 1)))
        return "a section is damaged";
    if (!is_inside(elf, section->sh_offset, section->sh_type == SHT_NOBITS ? 0 : section->sh_size))
        return "a section lies outside of its file";
    if ((section->sh_flags & SHF_LINK_ORDER) && section->sh_link >= elf->section_count)
        return "a section refers to one that does not exist";
    return NULL;
}

static const char *read_symbols(TileElf *elf, const Elf64_Shdr *section) {
    if (section->sh_entsize != sizeof(Elf64_Sym) || section->sh_link >= elf->section_count || section->sh_offset % 8)
        return "a symbol table is damaged";
    elf->symbols = (const Elf64_Sym *)(elf->bytes + section->sh_offset);
    elf->symbol_count = section->sh_size / sizeof(Elf64_Sym);
    elf->first_global = section->sh_info;
    if (elf->first_global > elf->symbol_count) return "a symbol table is damaged";
    return read_names(elf, section->sh_link, &elf->names, &elf->names_bytes);
}

static const char *check_symbols(const TileElf *elf) {
    for (size_t i = 1; i < elf->symbol_count; i++) {
        const Elf64_Sym *symbol = &elf->symbols[i];
        if (symbol->st_name >= elf->names_bytes ||
            (tile_elf_is_in_section(symbol) && symbol->st_shndx >= elf->section_count))
            return "a symbol is damaged";
    }
    return NULL;
}

static const char *check_relocations(const TileElf *elf, const Elf64_Shdr *section) {
    if (section->sh_info >= elf->section_count || section->sh_entsize != sizeof(Elf64_Rela) || section->sh_offset % 8)
        return "relocations are damaged";
    size_t count;
    const Elf64_Rela *relocations = tile_elf_relocations(elf, section, &count);
    for (size_t i = 0; i < count; i++)
        if (ELF64_R_SYM(relocations[i].r_info) >= elf->symbol_count) return "a relocation refers to no symbol";
    return NULL;
}

const char *tile_elf_read(TileElf *elf, const void *bytes, size_t size) {
    *elf = (TileElf){.bytes = bytes, .size = size, .header = bytes};
    const char *wrong = read_header(elf);
    if (wrong) return wrong;
    const Elf64_Shdr *names = &elf->sections[elf->header->e_shstrndx];
    if (!is_inside(elf, names->sh_offset, names->sh_size)) return "a section lies outside of its file";
    wrong = read_names(elf, elf->header->e_shstrndx, &elf->section_names, &elf->section_names_bytes);
    for (size_t i = 1; i < elf->section_count && !wrong; i++) wrong = check_section(elf, &elf->sections[i]);
    for (size_t i = 1; i < elf->section_count && !wrong; i++)
        if (elf->sections[i].sh_type == SHT_SYMTAB) wrong = read_symbols(elf, &elf->sections[i]);
    if (wrong) return wrong;
    if (!elf->symbols) return "one has no symbols";
    wrong = check_symbols(elf);
    for (size_t i = 1; i < elf->section_count && !wrong; i++)
        if (elf->sections[i].sh_type == SHT_RELA) wrong = check_relocations(elf, &elf->sections[i]);
    return wrong;
}
