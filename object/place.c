#include "object/place.h"

#include <string.h>

#include "object/elf.h"

/* A section is loaded as a whole, so that one symbol tells its address. */
static const char *place_symbol(const TileElf *elf, Elf64_Shdr *sections, const TilePlace *place) {
    for (size_t i = elf->first_global; i < elf->symbol_count; i++) {
        const Elf64_Sym *symbol = &elf->symbols[i];
        if (!tile_elf_is_in_section(symbol) || strcmp(tile_elf_symbol_name(elf, i), place->symbol) != 0) continue;
        Elf64_Shdr *section = &sections[symbol->st_shndx];
        uint64_t address = (uint64_t)(uintptr_t)place->address - symbol->st_value;
        if (section->sh_addr && section->sh_addr != address) return "a section was not loaded as a whole";
        section->sh_addr = address;
        return NULL;
    }
    return "a symbol is missing";
}

tile_status tile_object_place(char *object, size_t size, const TilePlace *places, size_t count, TileText *message) {
    TileElf elf;
    const char *wrong = tile_elf_read(&elf, object, size);
    Elf64_Shdr *sections = wrong ? NULL : (Elf64_Shdr *)(object + elf.header->e_shoff);
    for (size_t i = 0; !wrong && i < elf.section_count; i++) sections[i].sh_addr = 0;
    for (size_t i = 0; !wrong && i < count; i++) wrong = place_symbol(&elf, sections, &places[i]);
    for (size_t i = 0; !wrong && i < elf.section_count; i++)
        if (!sections[i].sh_addr) sections[i].sh_flags &= ~(uint64_t)SHF_ALLOC;
    if (!wrong) return TILE_OK;
    tile_text_format(message, "debuggers cannot be told of the code: %s", wrong);
    return TILE_BACKEND;
}
