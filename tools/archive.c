#include "tools/archive.h"

#include <elf.h>
#include <string.h>

#include "base/list.h"

typedef TILE_LIST(const char *) Names;

/* Reads a struct at an offset of the object; false if it is out of bounds. */
static bool read_at(const unsigned char *object, size_t size, uint64_t offset, void *into, size_t bytes) {
    if (offset > size || bytes > size - offset) return false;
    memcpy(into, object + offset, bytes);
    return true;
}

/* Symbols that others can link to. */
static bool add_symbols(const unsigned char *object, size_t size, const Elf64_Shdr *table, const Elf64_Shdr *strings,
                        TileArena *arena, Names *names) {
    if (strings->sh_offset > size || strings->sh_size > size - strings->sh_offset) return false;
    for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= table->sh_size; at += sizeof(Elf64_Sym)) {
        Elf64_Sym symbol;
        if (!read_at(object, size, table->sh_offset + at, &symbol, sizeof symbol)) return false;
        unsigned binding = ELF64_ST_BIND(symbol.st_info);
        if ((binding != STB_GLOBAL && binding != STB_WEAK) || symbol.st_shndx == SHN_UNDEF) continue;
        if (symbol.st_name >= strings->sh_size) return false;
        const char *name = (const char *)object + strings->sh_offset + symbol.st_name;
        size_t length = strnlen(name, strings->sh_size - symbol.st_name);
        tile_list_push(arena, names, tile_arena_string(arena, name, length));
    }
    return true;
}

static bool find_symbols(const unsigned char *object, size_t size, TileArena *arena, Names *names) {
    Elf64_Ehdr header;
    Elf64_Shdr section, strings;
    if (!read_at(object, size, 0, &header, sizeof header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return false;
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) return false;
    for (unsigned i = 0; i < header.e_shnum; i++) {
        if (!read_at(object, size, header.e_shoff + i * sizeof section, &section, sizeof section)) return false;
        if (section.sh_type != SHT_SYMTAB) continue;
        uint64_t at = header.e_shoff + section.sh_link * sizeof strings;
        if (!read_at(object, size, at, &strings, sizeof strings)) return false;
        if (!add_symbols(object, size, &section, &strings, arena, names)) return false;
    }
    return true;
}

/* The 60-byte header of a member, without time and owner, so that equal objects make equal archives. */
static void add_header(TileText *bytes, const char *name, size_t size) {
    tile_text_format(bytes, "%-16s%-12d%-6d%-6d%-8s%-10zu`\n", name, 0, 0, 0, "644", size);
}

static void add_word(TileText *bytes, size_t word) {
    for (int shift = 24; shift >= 0; shift -= 8) tile_text_add_char(bytes, (char)(word >> shift));
}

/* Members begin at even offsets. */
static void add_padding(TileText *bytes) {
    if (bytes->length % 2) tile_text_add_char(bytes, '\n');
}

tile_status tile_archive_make(const void *object, size_t size, TileText *bytes) {
    enum { MAGIC = 8, HEADER = 60 };
    Names names = {0};
    if (!find_symbols(object, size, bytes->arena, &names)) return TILE_INTERNAL;
    size_t index = 4 + 4 * names.count;
    for (size_t i = 0; i < names.count; i++) index += strlen(names.items[i]) + 1;
    tile_text_add(bytes, "!<arch>\n");
    add_header(bytes, "/", index);
    add_word(bytes, names.count);
    for (size_t i = 0; i < names.count; i++) add_word(bytes, MAGIC + HEADER + index + index % 2);
    for (size_t i = 0; i < names.count; i++) tile_text_add_bytes(bytes, names.items[i], strlen(names.items[i]) + 1);
    add_padding(bytes);
    add_header(bytes, "kernels.o/", size);
    tile_text_add_bytes(bytes, object, size);
    add_padding(bytes);
    return TILE_OK;
}
