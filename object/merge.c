#include "object/merge.h"

#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/map.h"
#include "object/elf.h"

typedef struct Piece {
    TileElf elf;
    const TileMergeInput *input;
    uint32_t *section_map, *symbol_map; /* to indices in the result; 0: dropped */
} Piece;

typedef struct OutputSection {
    Elf64_Shdr header;
    const Piece *piece; /* the input whose bytes these are, or NULL */
    const char *bytes;
} OutputSection;

typedef struct Merger {
    TileArena *arena;
    TileText *message;
    Piece *pieces;
    size_t piece_count;
    TILE_LIST(OutputSection) sections;
    TILE_LIST(Elf64_Sym) symbols;
    TileText names, section_names;
    TileInterner *interner;
    TileMap global; /* interned name to the index of the symbol with this name */
    uint32_t local_count;
    uint16_t machine;
    uint32_t flags;
} Merger;

static tile_status refuse(Merger *m, const char *why) {
    tile_text_format(m->message, "objects cannot be merged: %s", why);
    return TILE_BACKEND;
}

/* ---- reading ---- */

static tile_status read_piece(Merger *m, Piece *piece) {
    const char *wrong = tile_elf_read(&piece->elf, piece->input->object, piece->input->size);
    if (wrong) return refuse(m, wrong);
    const Elf64_Ehdr *header = piece->elf.header;
    if (piece != m->pieces && (header->e_machine != m->machine || header->e_flags != m->flags))
        return refuse(m, "they are for different machines");
    m->machine = header->e_machine;
    m->flags = header->e_flags;
    piece->section_map = TILE_NEW_ARRAY(m->arena, uint32_t, piece->elf.section_count);
    piece->symbol_map = TILE_NEW_ARRAY(m->arena, uint32_t, piece->elf.symbol_count);
    return TILE_OK;
}

/* ---- sections ---- */

static uint32_t add_name(TileText *names, const char *name) {
    if (!names->length) tile_text_add_char(names, 0);
    if (!*name) return 0;
    uint32_t at = (uint32_t)names->length;
    tile_text_add_bytes(names, name, strlen(name) + 1);
    return at;
}

static uint32_t add_section(Merger *m, OutputSection section, const char *name) {
    section.header.sh_name = add_name(&m->section_names, name);
    tile_list_push(m->arena, &m->sections, section);
    return (uint32_t)m->sections.count - 1;
}

/* Is the section copied? Symbol, string and relocation tables are built anew; address-significance tables are of little
 * use for so few symbols. */
static bool is_kept(const Elf64_Shdr *section, const char *name) {
    switch (section->sh_type) {
    case SHT_NULL:
    case SHT_SYMTAB:
    case SHT_STRTAB:
    case SHT_RELA: return false;
    default: return section->sh_type < SHT_LOOS && strcmp(name, ".note.GNU-stack") != 0;
    }
}

static tile_status add_sections(Merger *m, Piece *piece) {
    for (size_t i = 1; i < piece->elf.section_count; i++) {
        const Elf64_Shdr *section = &piece->elf.sections[i];
        const char *name = tile_elf_section_name(&piece->elf, i);
        if (section->sh_type == SHT_GROUP || section->sh_type == SHT_REL)
            return refuse(m, "one has sections of a kind that is not emitted");
        bool unwinds = section->sh_type == SHT_X86_64_UNWIND && m->machine == EM_X86_64;
        if (!unwinds && !is_kept(section, name)) continue;
        OutputSection copy = {.header = *section, .piece = piece, .bytes = piece->elf.bytes + section->sh_offset};
        piece->section_map[i] = add_section(m, copy, name);
    }
    return TILE_OK;
}

/* ---- symbols ---- */

static const char *new_name(Merger *m, const Piece *piece, const Elf64_Sym *symbol) {
    const char *name = tile_elf_symbol_name(&piece->elf, (size_t)(symbol - piece->elf.symbols));
    for (size_t i = 0; i < piece->input->name_count; i++)
        if (strcmp(piece->input->names[i].from, name) == 0) name = piece->input->names[i].to;
    return tile_intern_string(m->interner, name);
}

static void add_symbol(Merger *m, Piece *piece, size_t index, const char *name, unsigned binding) {
    Elf64_Sym symbol = piece->elf.symbols[index];
    if (tile_elf_is_in_section(&symbol))
        symbol.st_shndx = (Elf64_Half)piece->section_map[symbol.st_shndx];
    symbol.st_info = ELF64_ST_INFO(binding, ELF64_ST_TYPE(symbol.st_info));
    symbol.st_name = add_name(&m->names, name);
    piece->symbol_map[index] = (uint32_t)m->symbols.count;
    if (binding != STB_LOCAL || ELF64_ST_BIND(piece->elf.symbols[index].st_info) != STB_LOCAL)
        tile_map_set(&m->global, name, (void *)(uintptr_t)m->symbols.count);
    tile_list_push(m->arena, &m->symbols, symbol);
}

static bool is_defined_globally(const Elf64_Sym *symbol) {
    return ELF64_ST_BIND(symbol->st_info) != STB_LOCAL && symbol->st_shndx != SHN_UNDEF;
}

static tile_status check_symbols(Merger *m, const Piece *piece) {
    for (size_t i = 1; i < piece->elf.symbol_count; i++) {
        const Elf64_Sym *symbol = &piece->elf.symbols[i];
        if (!is_defined_globally(symbol)) continue;
        const char *name = new_name(m, piece, symbol);
        if (tile_map_get(&m->global, name)) {
            tile_text_format(m->message, "two kernels would have the symbol `%s`", name);
            return TILE_INVALID_ARGUMENT;
        }
        tile_map_set(&m->global, name, m);
    }
    return TILE_OK;
}

/* Local symbols have to precede global ones in the table: `global` selects which are added. */
static void add_symbols(Merger *m, Piece *piece, bool global) {
    for (size_t i = 1; i < piece->elf.symbol_count; i++) {
        const Elf64_Sym *symbol = &piece->elf.symbols[i];
        unsigned type = ELF64_ST_TYPE(symbol->st_info);
        if (type == STT_FILE || (tile_elf_is_in_section(symbol) && !piece->section_map[symbol->st_shndx])) continue;
        if (ELF64_ST_BIND(symbol->st_info) == STB_LOCAL) {
            if (!global) add_symbol(m, piece, i, tile_elf_symbol_name(&piece->elf, i), STB_LOCAL);
        } else if (symbol->st_shndx != SHN_UNDEF && global != piece->input->hides) {
            add_symbol(m, piece, i, new_name(m, piece, symbol), global ? STB_GLOBAL : STB_LOCAL);
        }
    }
}

/* Undefined symbols that another input defines are replaced by its symbol; others become undefined symbols of the
 * result. */
static void resolve_references(Merger *m, Piece *piece) {
    for (size_t i = 1; i < piece->elf.symbol_count; i++) {
        const Elf64_Sym *symbol = &piece->elf.symbols[i];
        if (symbol->st_shndx != SHN_UNDEF || ELF64_ST_BIND(symbol->st_info) == STB_LOCAL) continue;
        const char *name = new_name(m, piece, symbol);
        void *known = tile_map_get(&m->global, name);
        if (known)
            piece->symbol_map[i] = (uint32_t)(uintptr_t)known;
        else
            add_symbol(m, piece, i, name, ELF64_ST_BIND(symbol->st_info));
    }
}

static void number_symbols(Merger *m) {
    Elf64_Sym none = {0};
    tile_map_init(&m->global, m->arena); /* check_symbols used it for another purpose */
    tile_list_push(m->arena, &m->symbols, none);
    for (size_t i = 0; i < m->piece_count; i++) add_symbols(m, &m->pieces[i], false);
    m->local_count = (uint32_t)m->symbols.count;
    for (size_t i = 0; i < m->piece_count; i++) add_symbols(m, &m->pieces[i], true);
    for (size_t i = 0; i < m->piece_count; i++) resolve_references(m, &m->pieces[i]);
}

/* ---- relocations ---- */

static tile_status add_relocations(Merger *m, const Piece *piece, const Elf64_Shdr *section, uint32_t symbol_table) {
    uint32_t target = piece->section_map[section->sh_info];
    if (!target) return TILE_OK;
    size_t count;
    const Elf64_Rela *given = tile_elf_relocations(&piece->elf, section, &count);
    Elf64_Rela *relas = TILE_NEW_ARRAY(m->arena, Elf64_Rela, count);
    for (size_t i = 0; i < count; i++) {
        size_t symbol = ELF64_R_SYM(given[i].r_info);
        if (symbol && !piece->symbol_map[symbol])
            return refuse(m, "a relocation refers to something that is left out");
        relas[i] = given[i];
        relas[i].r_info = ELF64_R_INFO((uint64_t)piece->symbol_map[symbol], ELF64_R_TYPE(given[i].r_info));
    }
    OutputSection made = {.header = *section, .bytes = (const char *)relas};
    made.header.sh_info = target;
    made.header.sh_link = symbol_table;
    add_section(m, made, piece->elf.section_names + section->sh_name);
    return TILE_OK;
}

static tile_status add_all_relocations(Merger *m, uint32_t symbol_table) {
    for (size_t i = 0; i < m->piece_count; i++)
        for (size_t k = 1; k < m->pieces[i].elf.section_count; k++)
            if (m->pieces[i].elf.sections[k].sh_type == SHT_RELA)
                TILE_TRY(add_relocations(m, &m->pieces[i], &m->pieces[i].elf.sections[k], symbol_table));
    return TILE_OK;
}

/* ---- output ---- */

static OutputSection table(uint32_t type, const void *bytes, size_t size, size_t entry, size_t align) {
    return (OutputSection){.header = {.sh_type = type, .sh_size = size, .sh_entsize = entry, .sh_addralign = align},
                           .bytes = bytes};
}

static tile_status lay_out(Merger *m, uint32_t *name_table) {
    OutputSection nothing = {.header = {.sh_type = SHT_NULL}};
    add_section(m, nothing, "");
    for (size_t i = 0; i < m->piece_count; i++) TILE_TRY(add_sections(m, &m->pieces[i]));
    number_symbols(m);
    OutputSection stack = table(SHT_PROGBITS, "", 0, 0, 1); /* without this section, linkers make the stack
                                                             * executable */
    add_section(m, stack, ".note.GNU-stack");
    size_t symbol_bytes = m->symbols.count * sizeof(Elf64_Sym);
    uint32_t symbols =
        add_section(m, table(SHT_SYMTAB, m->symbols.items, symbol_bytes, sizeof(Elf64_Sym), 8), ".symtab");
    uint32_t names = add_section(m, table(SHT_STRTAB, m->names.text, m->names.length, 0, 1), ".strtab");
    m->sections.items[symbols].header.sh_link = names;
    m->sections.items[symbols].header.sh_info = m->local_count;
    TILE_TRY(add_all_relocations(m, symbols));
    *name_table = add_section(m, table(SHT_STRTAB, NULL, 0, 0, 1), ".shstrtab");
    if (m->sections.count >= SHN_LORESERVE) return refuse(m, "there are too many sections");
    m->sections.items[*name_table].bytes = m->section_names.text;
    m->sections.items[*name_table].header.sh_size = m->section_names.length;
    return TILE_OK;
}

static size_t set_offsets(Merger *m) {
    size_t at = sizeof(Elf64_Ehdr);
    for (size_t i = 1; i < m->sections.count; i++) {
        Elf64_Shdr *header = &m->sections.items[i].header;
        at = tile_elf_round_up(at, header->sh_addralign);
        header->sh_offset = at;
        const Piece *piece = m->sections.items[i].piece;
        if (piece && (header->sh_flags & SHF_LINK_ORDER)) header->sh_link = piece->section_map[header->sh_link];
        if (header->sh_type != SHT_NOBITS) at += header->sh_size;
    }
    return tile_elf_round_up(at, 8);
}

static tile_status write_object(Merger *m, uint32_t name_table, TileCode *merged) {
    size_t table_offset = set_offsets(m), size = table_offset + m->sections.count * sizeof(Elf64_Shdr);
    char *data = calloc(1, size + 1);
    if (!data) return TILE_OUT_OF_MEMORY;
    Elf64_Ehdr header = {.e_type = ET_REL,
                         .e_machine = m->machine,
                         .e_version = EV_CURRENT,
                         .e_shoff = table_offset,
                         .e_flags = m->flags,
                         .e_ehsize = sizeof header,
                         .e_shentsize = sizeof(Elf64_Shdr),
                         .e_shnum = (Elf64_Half)m->sections.count,
                         .e_shstrndx = (Elf64_Half)name_table};
    memcpy(header.e_ident, m->pieces[0].elf.bytes, EI_NIDENT);
    memcpy(data, &header, sizeof header);
    for (size_t i = 0; i < m->sections.count; i++) {
        const OutputSection *section = &m->sections.items[i];
        if (section->header.sh_type != SHT_NOBITS && section->header.sh_size)
            memcpy(data + section->header.sh_offset, section->bytes, section->header.sh_size);
        memcpy(data + table_offset + i * sizeof(Elf64_Shdr), &section->header, sizeof(Elf64_Shdr));
    }
    *merged = (TileCode){data, size};
    return TILE_OK;
}

static tile_status merge(Merger *m, TileCode *merged) {
    uint32_t name_table;
    tile_map_init(&m->global, m->arena);
    for (size_t i = 0; i < m->piece_count; i++) {
        TILE_TRY(read_piece(m, &m->pieces[i]));
        TILE_TRY(check_symbols(m, &m->pieces[i]));
    }
    TILE_TRY(lay_out(m, &name_table));
    return write_object(m, name_table, merged);
}

tile_status tile_objects_merge(const TileMergeInput *inputs, size_t count, TileCode *merged, TileText *message) {
    Merger m = {.arena = tile_arena_create(NULL), .message = message, .piece_count = count};
    *merged = (TileCode){0};
    jmp_buf guard;
    if (!m.arena || setjmp(guard)) {
        tile_arena_destroy(m.arena);
        return TILE_OUT_OF_MEMORY;
    }
    tile_arena_set_guard(m.arena, &guard);
    m.interner = tile_interner_create(m.arena);
    m.names.arena = m.section_names.arena = m.arena;
    m.pieces = TILE_NEW_ARRAY(m.arena, Piece, count);
    for (size_t i = 0; i < count; i++)
        m.pieces[i] = (Piece){.input = &inputs[i]};
    tile_status status = merge(&m, merged);
    tile_arena_destroy(m.arena);
    return status;
}
