/* The file's layout is that of the mapped memory: offset = address - base. In order: headers and tables, constants;
 * code and stubs; data that is read-only after relocation; data. */
#include "object/share.h"

#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "object/elf.h"
#include "object/relocation.h"

enum { PAGE = 4096, SLOT_BYTES = 8 };

typedef enum Region { REGION_CONSTANT, REGION_TEXT, REGION_RELRO, REGION_DATA, REGION_COUNT, REGION_NONE } Region;

typedef struct Sharer {
    TileArena *arena;
    TileText *message;
    const TileShareOptions *options;
    TileElf elf;
    const TileRelocationTable *types;
    uint8_t *region;   /* of each section */
    uint64_t *address; /* of each section */
    uint32_t *slot;    /* of each symbol: index of its slot in the global offset table + 1, or 0 */
    uint32_t *dynamic; /* of each symbol: its index in the dynamic symbol table, or 0 */
    uint32_t slot_count, relocation_count;
    TILE_LIST(Elf64_Sym) dynamic_symbols;
    TileText dynamic_names;
    TILE_LIST(Elf64_Rela) relocations;
    TILE_LIST(Elf64_Dyn) entries;
    uint32_t bucket_count;
    uint64_t dynsym, hash, dynstr, rela, stubs, slots, table;  /* addresses */
    uint64_t begin[REGION_COUNT], end[REGION_COUNT], file_end; /* file_end: where the trailing zeros begin, which are
                                                                * not in the file */
    char *out;
} Sharer;

static tile_status refuse(Sharer *s, const char *why) {
    tile_text_format(s->message, "no shared object can be made: %s", why);
    return TILE_UNSUPPORTED;
}

/* ---- reading ---- */

static tile_status read_object(Sharer *s, const TileCode *object) {
    const char *wrong = tile_elf_read(&s->elf, object->data, object->size);
    if (wrong) return refuse(s, wrong);
    s->types = tile_relocation_table_find(s->elf.header->e_machine);
    if (!s->types) return refuse(s, "it is made for x86-64 only");
    s->region = TILE_NEW_ARRAY(s->arena, uint8_t, s->elf.section_count);
    s->address = TILE_NEW_ARRAY(s->arena, uint64_t, s->elf.section_count);
    s->slot = TILE_NEW_ARRAY(s->arena, uint32_t, s->elf.symbol_count);
    s->dynamic = TILE_NEW_ARRAY(s->arena, uint32_t, s->elf.symbol_count);
    return TILE_OK;
}

/* Symbols without a section or with one that is not mapped have no address. */
static tile_status check_symbols(Sharer *s) {
    for (size_t i = 1; i < s->elf.symbol_count; i++) {
        const Elf64_Sym *symbol = &s->elf.symbols[i];
        bool file = ELF64_ST_TYPE(symbol->st_info) == STT_FILE && i < s->elf.first_global;
        if (symbol->st_shndx == SHN_UNDEF || file) continue;
        if (!tile_elf_is_in_section(symbol)) return refuse(s, "a symbol has no section");
        if (i >= s->elf.first_global && s->region[symbol->st_shndx] == REGION_NONE)
            return refuse(s, "a symbol is in a section that is not mapped");
    }
    return TILE_OK;
}

static Region region_of(const Sharer *s, size_t index) {
    const Elf64_Shdr *section = &s->elf.sections[index];
    bool settled = strncmp(tile_elf_section_name(&s->elf, index), ".data.rel.ro", 12) == 0 || section->sh_type == SHT_FINI_ARRAY;
    if (!(section->sh_flags & SHF_ALLOC)) return REGION_NONE;
    if (section->sh_flags & SHF_EXECINSTR) return REGION_TEXT;
    if (!(section->sh_flags & SHF_WRITE)) return REGION_CONSTANT;
    return settled ? REGION_RELRO : REGION_DATA;
}

static bool is_undefined(const Sharer *s, size_t symbol) { return s->elf.symbols[symbol].st_shndx == SHN_UNDEF; }

/* Calls body for every relocation of mapped sections, until one fails. */
static tile_status each_relocation(Sharer *s, tile_status (*body)(Sharer *s, const Elf64_Rela *rela, size_t section)) {
    for (size_t i = 1; i < s->elf.section_count; i++) {
        const Elf64_Shdr *section = &s->elf.sections[i];
        if (section->sh_type != SHT_RELA) continue;
        if (s->region[section->sh_info] == REGION_NONE)
            return refuse(s, "it would need debug information; build without -g");
        size_t count;
        const Elf64_Rela *relas = tile_elf_relocations(&s->elf, section, &count);
        for (size_t k = 0; k < count; k++) TILE_TRY(body(s, &relas[k], section->sh_info));
    }
    return TILE_OK;
}

/* ---- sizes of tables ---- */

static tile_status count_one(Sharer *s, const Elf64_Rela *rela, size_t section) {
    size_t symbol = ELF64_R_SYM(rela->r_info);
    const TileRelocation *row = tile_relocation_find(s->types, (uint32_t)ELF64_R_TYPE(rela->r_info));
    if (!row) return refuse(s, "the code has a relocation of an unknown kind");
    if (!is_undefined(s, symbol) && !tile_elf_is_in_section(&s->elf.symbols[symbol]))
        return refuse(s, "a relocation refers to a symbol without a section");
    const Elf64_Shdr *target = &s->elf.sections[section];
    if (target->sh_type == SHT_NOBITS || rela->r_offset > target->sh_size || row->bytes > target->sh_size - rela->r_offset)
        return refuse(s, "a relocation lies outside of its section");
    if (row->how == TILE_RELOCATION_ABSOLUTE) {
        s->relocation_count++;
        return TILE_OK;
    }
    if ((row->how == TILE_RELOCATION_SLOT || is_undefined(s, symbol)) && !s->slot[symbol]) {
        s->slot[symbol] = ++s->slot_count;
        s->relocation_count++;
    }
    return TILE_OK;
}

static uint32_t add_dynamic_name(Sharer *s, const char *name) {
    uint32_t at = (uint32_t)s->dynamic_names.length;
    tile_text_add_bytes(&s->dynamic_names, name, strlen(name) + 1);
    return at;
}

/* Adds all global symbols, defined and undefined. */
static void collect_symbols(Sharer *s) {
    Elf64_Sym none = {0};
    tile_list_push(s->arena, &s->dynamic_symbols, none);
    add_dynamic_name(s, "");
    for (size_t i = s->elf.first_global; i < s->elf.symbol_count; i++) {
        Elf64_Sym symbol = s->elf.symbols[i];
        symbol.st_name = add_dynamic_name(s, s->elf.names + s->elf.symbols[i].st_name);
        s->dynamic[i] = (uint32_t)s->dynamic_symbols.count;
        tile_list_push(s->arena, &s->dynamic_symbols, symbol);
    }
    s->bucket_count = (uint32_t)s->dynamic_symbols.count / 2 + 1;
}

/* ---- layout ---- */

static uint64_t place(uint64_t *at, uint64_t size, uint64_t align) {
    uint64_t begin = tile_elf_round_up(*at, align);
    *at = begin + size;
    return begin;
}

static void place_sections(Sharer *s, Region region, bool zeros, uint64_t *at) {
    for (size_t i = 1; i < s->elf.section_count; i++) {
        const Elf64_Shdr *section = &s->elf.sections[i];
        if (s->region[i] == region && (section->sh_type == SHT_NOBITS) == zeros)
            s->address[i] = place(at, section->sh_size, section->sh_addralign);
    }
}

enum { PROGRAM_HEADERS = 6, DYNAMIC_ENTRIES = 16 };

static void lay_out(Sharer *s) {
    uint64_t at = sizeof(Elf64_Ehdr) + PROGRAM_HEADERS * sizeof(Elf64_Phdr);
    s->begin[REGION_CONSTANT] = 0;
    s->dynsym = place(&at, s->dynamic_symbols.count * sizeof(Elf64_Sym), 8);
    s->hash = place(&at, (2 + s->bucket_count + s->dynamic_symbols.count) * sizeof(uint32_t), 8);
    s->rela = place(&at, s->relocation_count * sizeof(Elf64_Rela), 8);
    s->dynstr = place(&at, s->dynamic_names.length, 1);
    place_sections(s, REGION_CONSTANT, false, &at);
    s->end[REGION_CONSTANT] = at;
    s->begin[REGION_TEXT] = at = tile_elf_round_up(at, PAGE);
    place_sections(s, REGION_TEXT, false, &at);
    s->stubs = place(&at, s->slot_count * TILE_STUB_BYTES, 16);
    s->end[REGION_TEXT] = at;
    s->begin[REGION_RELRO] = at = tile_elf_round_up(at, PAGE);
    place_sections(s, REGION_RELRO, false, &at);
    s->slots = place(&at, s->slot_count * SLOT_BYTES, 8);
    s->table = place(&at, DYNAMIC_ENTRIES * sizeof(Elf64_Dyn), 8);
    s->end[REGION_RELRO] = at = tile_elf_round_up(at, PAGE); /* protected in whole pages */
    s->begin[REGION_DATA] = at;
    place_sections(s, REGION_DATA, false, &at);
    s->file_end = at;
    place_sections(s, REGION_DATA, true, &at);
    s->end[REGION_DATA] = at;
}

/* ---- relocations ---- */

static uint64_t symbol_address(const Sharer *s, size_t symbol) {
    const Elf64_Sym *at = &s->elf.symbols[symbol];
    return is_undefined(s, symbol) ? 0 : s->address[at->st_shndx] + at->st_value;
}

static uint64_t slot_address(const Sharer *s, size_t symbol) {
    return s->slots + (s->slot[symbol] - 1) * (uint64_t)SLOT_BYTES;
}

/* Adds a dynamic relocation: the eight bytes at `where` are set to the symbol's address at load time. */
static void add_relocation(Sharer *s, uint64_t where, size_t symbol, int64_t addend, uint32_t kind) {
    Elf64_Rela rela = {.r_offset = where};
    if (is_undefined(s, symbol)) {
        rela.r_info = ELF64_R_INFO((uint64_t)s->dynamic[symbol], kind);
        rela.r_addend = addend;
    } else {
        rela.r_info = ELF64_R_INFO(UINT64_C(0), s->types->relative);
        rela.r_addend = (int64_t)symbol_address(s, symbol) + addend;
    }
    tile_list_push(s->arena, &s->relocations, rela);
}

static tile_status relocate_one(Sharer *s, const Elf64_Rela *rela, size_t section) {
    size_t symbol = ELF64_R_SYM(rela->r_info);
    uint64_t where = s->address[section] + rela->r_offset, target = symbol_address(s, symbol);
    const TileRelocation *row = tile_relocation_find(s->types, (uint32_t)ELF64_R_TYPE(rela->r_info));
    switch ((TileRelocationHow)row->how) {
    case TILE_RELOCATION_ABSOLUTE:
        add_relocation(s, where, symbol, rela->r_addend, s->types->absolute);
        return TILE_OK;
    case TILE_RELOCATION_SLOT: target = slot_address(s, symbol); break;
    case TILE_RELOCATION_RELATIVE:
        if (is_undefined(s, symbol)) target = s->stubs + (s->slot[symbol] - 1) * (uint64_t)TILE_STUB_BYTES;
        break;
    }
    int64_t value = (int64_t)(target + (uint64_t)rela->r_addend - where);
    int32_t narrow = (int32_t)value;
    if (narrow != value) return refuse(s, "it is larger than 2 GiB");
    memcpy(s->out + where, &narrow, sizeof narrow);
    return TILE_OK;
}

/* Stubs for calls to other libraries. */
static void write_stubs(Sharer *s) {
    for (size_t i = 0; i < s->elf.symbol_count; i++) {
        if (!s->slot[i]) continue;
        uint64_t stub = s->stubs + (s->slot[i] - 1) * (uint64_t)TILE_STUB_BYTES;
        s->types->write_stub(s->out + stub, stub, slot_address(s, i));
        add_relocation(s, slot_address(s, i), i, 0, s->types->slot);
    }
}

/* ---- tables ---- */

/* The hash function of System V ABI hash tables. */
static uint32_t hash_name(const char *name) {
    uint32_t hash = 0;
    for (; *name; name++) {
        hash = (hash << 4) + (unsigned char)*name;
        uint32_t high = hash & 0xf0000000u;
        hash = (hash ^ high >> 24) & ~high;
    }
    return hash;
}

static void write_hash(Sharer *s) {
    uint32_t count = (uint32_t)s->dynamic_symbols.count;
    uint32_t *table = (uint32_t *)(void *)(s->out + s->hash), *buckets = table + 2, *chains = buckets + s->bucket_count;
    table[0] = s->bucket_count;
    table[1] = count;
    for (uint32_t i = 1; i < count; i++) {
        uint32_t bucket = hash_name(s->dynamic_names.text + s->dynamic_symbols.items[i].st_name) % s->bucket_count;
        chains[i] = buckets[bucket];
        buckets[bucket] = i;
    }
}

/* The sections of the result that have section headers. */
typedef enum ResultSection {
    RESULT_NONE,
    RESULT_DYNSYM,
    RESULT_DYNSTR,
    RESULT_HASH,
    RESULT_RELA,
    RESULT_CONSTANT,
    RESULT_TEXT,
    RESULT_RELRO,
    RESULT_DYNAMIC,
    RESULT_DATA,
    RESULT_NAMES,
    RESULT_COUNT
} ResultSection;

static void write_symbols(Sharer *s) {
    static const uint16_t sections[REGION_COUNT] = {RESULT_CONSTANT, RESULT_TEXT, RESULT_RELRO, RESULT_DATA};
    for (size_t i = 1; i < s->dynamic_symbols.count; i++) {
        Elf64_Sym *symbol = &s->dynamic_symbols.items[i];
        if (symbol->st_shndx == SHN_UNDEF) continue;
        symbol->st_value += s->address[symbol->st_shndx];
        symbol->st_shndx = sections[s->region[symbol->st_shndx]];
    }
    memcpy(s->out + s->dynsym, s->dynamic_symbols.items, s->dynamic_symbols.count * sizeof(Elf64_Sym));
    memcpy(s->out + s->dynstr, s->dynamic_names.text, s->dynamic_names.length);
    memcpy(s->out + s->rela, s->relocations.items, s->relocations.count * sizeof(Elf64_Rela));
}

static void add_entry(Sharer *s, int64_t tag, uint64_t value) {
    Elf64_Dyn entry = {.d_tag = tag, .d_un = {.d_val = value}};
    tile_list_push(s->arena, &s->entries, entry);
}

static void write_dynamic(Sharer *s, uint32_t needed, uint32_t name) {
    add_entry(s, DT_NEEDED, needed);
    add_entry(s, DT_SONAME, name);
    add_entry(s, DT_HASH, s->hash);
    add_entry(s, DT_STRTAB, s->dynstr);
    add_entry(s, DT_SYMTAB, s->dynsym);
    add_entry(s, DT_STRSZ, s->dynamic_names.length);
    add_entry(s, DT_SYMENT, sizeof(Elf64_Sym));
    add_entry(s, DT_RELA, s->rela);
    add_entry(s, DT_RELASZ, s->relocations.count * sizeof(Elf64_Rela));
    add_entry(s, DT_RELAENT, sizeof(Elf64_Rela));
    for (size_t i = 1; i < s->elf.section_count; i++) {
        if (s->elf.sections[i].sh_type != SHT_FINI_ARRAY) continue;
        add_entry(s, DT_FINI_ARRAY, s->address[i]);
        add_entry(s, DT_FINI_ARRAYSZ, s->elf.sections[i].sh_size);
    }
    add_entry(s, DT_FLAGS, DF_BIND_NOW);
    add_entry(s, DT_FLAGS_1, DF_1_NOW);
    add_entry(s, DT_NULL, 0);
    memcpy(s->out + s->table, s->entries.items, s->entries.count * sizeof(Elf64_Dyn));
}

static Elf64_Phdr segment(uint32_t type, uint32_t flags, uint64_t begin, uint64_t file_end, uint64_t end,
                          uint64_t align) {
    return (Elf64_Phdr){.p_type = type,
                        .p_flags = flags,
                        .p_offset = begin,
                        .p_vaddr = begin,
                        .p_paddr = begin,
                        .p_filesz = file_end - begin,
                        .p_memsz = end - begin,
                        .p_align = align};
}

static void write_headers(Sharer *s, uint64_t section_table) {
    uint64_t text = s->end[REGION_TEXT], constant = s->end[REGION_CONSTANT], sealed = s->end[REGION_RELRO];
    uint64_t table_end = s->table + DYNAMIC_ENTRIES * sizeof(Elf64_Dyn);
    Elf64_Phdr segments[PROGRAM_HEADERS] = {
        segment(PT_LOAD, PF_R, 0, constant, constant, PAGE),
        segment(PT_LOAD, PF_R | PF_X, s->begin[REGION_TEXT], text, text, PAGE),
        segment(PT_LOAD, PF_R | PF_W, s->begin[REGION_RELRO], s->file_end, s->end[REGION_DATA], PAGE),
        segment(PT_DYNAMIC, PF_R | PF_W, s->table, table_end, table_end, 8),
        segment(PT_GNU_RELRO, PF_R, s->begin[REGION_RELRO], sealed, sealed, 1),
        {.p_type = PT_GNU_STACK, .p_flags = PF_R | PF_W, .p_align = 16}};
    Elf64_Ehdr header = *s->elf.header;
    header.e_type = ET_DYN;
    header.e_phoff = sizeof header;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = PROGRAM_HEADERS;
    header.e_shoff = section_table;
    header.e_shnum = RESULT_COUNT;
    header.e_shstrndx = RESULT_NAMES;
    memcpy(s->out, &header, sizeof header);
    memcpy(s->out + sizeof header, segments, sizeof segments);
}

static Elf64_Shdr describe(uint32_t name, uint32_t type, uint64_t flags, uint64_t begin, uint64_t end, uint64_t entry) {
    return (Elf64_Shdr){.sh_name = name,
                        .sh_type = type,
                        .sh_flags = flags,
                        .sh_addr = flags & SHF_ALLOC ? begin : 0,
                        .sh_offset = begin,
                        .sh_size = end - begin,
                        .sh_entsize = entry,
                        .sh_addralign = 8};
}

/* Names of the sections of the result, at fixed offsets. */
static const char result_names[] =
    "\0.dynsym\0.dynstr\0.hash\0.rela.dyn\0.rodata\0.text\0.data.rel.ro\0.dynamic\0.data\0"
    ".shstrtab";

static uint32_t name_at(const char *name) {
    for (size_t i = 1; i < sizeof result_names; i++)
        if (!result_names[i - 1] && strcmp(result_names + i, name) == 0) return (uint32_t)i;
    return 0;
}

static void write_sections(Sharer *s, uint64_t names, uint64_t section_table) {
    uint64_t symbols_end = s->dynsym + s->dynamic_symbols.count * sizeof(Elf64_Sym);
    uint64_t hash_end = s->hash + (2 + s->bucket_count + s->dynamic_symbols.count) * sizeof(uint32_t);
    uint64_t strings_end = s->dynstr + s->dynamic_names.length;
    uint64_t rela_end = s->rela + s->relocations.count * sizeof(Elf64_Rela), writable = SHF_ALLOC | SHF_WRITE;
    bool has_data = s->file_end > s->begin[REGION_DATA];
    Elf64_Shdr list[RESULT_COUNT] = {
        [RESULT_DYNSYM] =
            describe(name_at(".dynsym"), SHT_DYNSYM, SHF_ALLOC, s->dynsym, symbols_end, sizeof(Elf64_Sym)),
        [RESULT_DYNSTR] = describe(name_at(".dynstr"), SHT_STRTAB, SHF_ALLOC, s->dynstr, strings_end, 0),
        [RESULT_HASH] = describe(name_at(".hash"), SHT_HASH, SHF_ALLOC, s->hash, hash_end, 4),
        [RESULT_RELA] = describe(name_at(".rela.dyn"), SHT_RELA, SHF_ALLOC, s->rela, rela_end, sizeof(Elf64_Rela)),
        [RESULT_CONSTANT] =
            describe(name_at(".rodata"), SHT_PROGBITS, SHF_ALLOC, strings_end, s->end[REGION_CONSTANT], 0),
        [RESULT_TEXT] = describe(name_at(".text"), SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, s->begin[REGION_TEXT],
                                 s->end[REGION_TEXT], 0),
        [RESULT_RELRO] = describe(name_at(".data.rel.ro"), SHT_PROGBITS, writable, s->begin[REGION_RELRO], s->table, 0),
        [RESULT_DYNAMIC] = describe(name_at(".dynamic"), SHT_DYNAMIC, writable, s->table,
                                    s->table + DYNAMIC_ENTRIES * sizeof(Elf64_Dyn), sizeof(Elf64_Dyn)),
        [RESULT_DATA] = describe(name_at(".data"), has_data ? SHT_PROGBITS : SHT_NOBITS, writable,
                                 s->begin[REGION_DATA], has_data ? s->file_end : s->end[REGION_DATA], 0),
        [RESULT_NAMES] = describe(name_at(".shstrtab"), SHT_STRTAB, 0, names, names + sizeof result_names, 0)};
    list[RESULT_DYNSYM].sh_link = list[RESULT_DYNAMIC].sh_link = RESULT_DYNSTR;
    list[RESULT_DYNSYM].sh_info = 1; /* index of the first global symbol */
    list[RESULT_HASH].sh_link = list[RESULT_RELA].sh_link = RESULT_DYNSYM;
    memcpy(s->out + names, result_names, sizeof result_names);
    memcpy(s->out + section_table, list, sizeof list);
}

/* ---- the writer ---- */

static void copy_sections(Sharer *s) {
    for (size_t i = 1; i < s->elf.section_count; i++)
        if (s->region[i] != REGION_NONE && s->elf.sections[i].sh_type != SHT_NOBITS)
            memcpy(s->out + s->address[i], s->elf.bytes + s->elf.sections[i].sh_offset, s->elf.sections[i].sh_size);
}

static tile_status share(Sharer *s, const TileCode *object, TileCode *shared) {
    TILE_TRY(read_object(s, object));
    for (size_t i = 1; i < s->elf.section_count; i++) s->region[i] = (uint8_t)region_of(s, i);
    s->region[0] = REGION_NONE;
    TILE_TRY(check_symbols(s));
    TILE_TRY(each_relocation(s, count_one));
    collect_symbols(s);
    uint32_t needed = add_dynamic_name(s, s->options->needed), name = add_dynamic_name(s, s->options->name);
    lay_out(s);
    uint64_t names = s->file_end, section_table = tile_elf_round_up(names + sizeof result_names, 8);
    size_t size = section_table + RESULT_COUNT * sizeof(Elf64_Shdr);
    s->out = calloc(1, size);
    if (!s->out) return TILE_OUT_OF_MEMORY;
    *shared = (TileCode){s->out, size};
    copy_sections(s);
    TILE_TRY(each_relocation(s, relocate_one));
    write_stubs(s);
    write_symbols(s);
    write_hash(s);
    write_dynamic(s, needed, name);
    write_headers(s, section_table);
    write_sections(s, names, section_table);
    return TILE_OK;
}

tile_status tile_object_share(const TileCode *object, const TileShareOptions *options, TileCode *shared,
                              TileText *message) {
    Sharer s = {.arena = tile_arena_create(NULL), .message = message, .options = options};
    *shared = (TileCode){0};
    jmp_buf guard;
    if (!s.arena || setjmp(guard)) {
        tile_arena_destroy(s.arena);
        tile_code_release(shared);
        return TILE_OUT_OF_MEMORY;
    }
    tile_arena_set_guard(s.arena, &guard);
    s.dynamic_names.arena = s.arena;
    tile_status status = share(&s, object, shared);
    if (status != TILE_OK) tile_code_release(shared);
    tile_arena_destroy(s.arena);
    return status;
}
