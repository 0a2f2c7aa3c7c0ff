/* Purpose: a relocatable x86-64 object becomes callable code in one mapping: text, read-only data and data each on
 * pages of their own, so that nothing is ever writable and executable at once. References to the few functions that
 * code generation may call (memcpy and its kin) go through stubs, since libc may lie further than 2 GiB away. */
#include "mlir_bridge/load.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef enum Region { REGION_TEXT, REGION_CONSTANT, REGION_DATA, REGION_COUNT, REGION_NONE } Region;

/* A stub is `jmp *[rip]` and the address; a slot of it also serves as the symbol's entry of the offset table. */
enum { STUB_BYTES = 16, STUB_ADDRESS = 8 };

typedef struct Symbol {
    const char *name;
    void *address;
} Symbol;

struct TileLoaded {
    char *base;
    size_t bytes;
    Symbol *symbols;
    size_t symbol_count;
    char *names;
};

typedef struct Loader {
    const char *object;
    size_t size;
    const Elf64_Shdr *sections;
    size_t section_count;
    const Elf64_Sym *symbols;
    size_t symbol_count;
    const char *names;
    size_t names_bytes;
    uint64_t *offset; /* of each section in the mapping */
    uint8_t *region;  /* of each section */
    uint64_t region_start[REGION_COUNT], region_bytes[REGION_COUNT];
    uint64_t stubs; /* offset of the first one in the mapping, one for each symbol */
    char *base;
    TileText *message;
} Loader;

static tile_status bad_object(Loader *loader, const char *why) {
    tile_text_format(loader->message, "the object cannot be loaded: %s", why);
    return TILE_BACKEND;
}

/* The functions that LLVM may call of its own accord. */
static const Symbol runtime[] = {{"memcpy", memcpy}, {"memmove", memmove}, {"memset", memset}};

static bool inside(const Loader *loader, uint64_t offset, uint64_t size) {
    return offset <= loader->size && size <= loader->size - offset;
}

static tile_status read_header(Loader *loader) {
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)loader->object;
    if (loader->size < sizeof *header) return bad_object(loader, "it is too short");
    if ((uintptr_t)loader->object % 8 != 0) return bad_object(loader, "it is not aligned to 8 bytes in memory");
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
        header->e_type != ET_REL)
        return bad_object(loader, "it is no relocatable 64-bit ELF file");
    if (header->e_machine != EM_X86_64) return bad_object(loader, "it is not for x86-64");
    if (header->e_shentsize != sizeof(Elf64_Shdr) || header->e_shoff % 8 != 0 ||
        !inside(loader, header->e_shoff, (uint64_t)header->e_shnum * sizeof(Elf64_Shdr)))
        return bad_object(loader, "its section table lies outside of it");
    loader->sections = (const Elf64_Shdr *)(loader->object + header->e_shoff);
    loader->section_count = header->e_shnum;
    for (size_t i = 0; i < loader->section_count; i++) {
        const Elf64_Shdr *section = &loader->sections[i];
        if (section->sh_type != SHT_NOBITS && section->sh_type != SHT_NULL &&
            !inside(loader, section->sh_offset, section->sh_size))
            return bad_object(loader, "a section lies outside of it");
    }
    return TILE_OK;
}

static tile_status read_symbols(Loader *loader) {
    for (size_t i = 0; i < loader->section_count; i++) {
        const Elf64_Shdr *section = &loader->sections[i];
        if (section->sh_type != SHT_SYMTAB) continue;
        if (section->sh_entsize != sizeof(Elf64_Sym) || section->sh_offset % 8 != 0 ||
            section->sh_link >= loader->section_count)
            return bad_object(loader, "its symbol table is damaged");
        const Elf64_Shdr *names = &loader->sections[section->sh_link];
        if (names->sh_type != SHT_STRTAB || !names->sh_size || loader->object[names->sh_offset + names->sh_size - 1])
            return bad_object(loader, "its names are damaged");
        loader->symbols = (const Elf64_Sym *)(loader->object + section->sh_offset);
        loader->symbol_count = section->sh_size / sizeof(Elf64_Sym);
        loader->names = loader->object + names->sh_offset;
        loader->names_bytes = names->sh_size;
    }
    if (!loader->symbols) return bad_object(loader, "it has no symbols");
    for (size_t i = 0; i < loader->symbol_count; i++)
        if (loader->symbols[i].st_name >= loader->names_bytes) return bad_object(loader, "its names are damaged");
    return TILE_OK;
}

/* ---- layout ---- */

static Region region_of(const Elf64_Shdr *section) {
    if (!(section->sh_flags & SHF_ALLOC) || section->sh_type == SHT_X86_64_UNWIND) return REGION_NONE;
    if (section->sh_flags & SHF_EXECINSTR) return REGION_TEXT;
    return section->sh_flags & SHF_WRITE ? REGION_DATA : REGION_CONSTANT;
}

static uint64_t round_up(uint64_t value, uint64_t align) { return (value + align - 1) & ~(align - 1); }

static tile_status lay_out(Loader *loader) {
    enum { LARGEST = 1 << 30 };
    for (size_t i = 0; i < loader->section_count; i++) {
        const Elf64_Shdr *section = &loader->sections[i];
        Region region = region_of(section);
        loader->region[i] = (uint8_t)region;
        if (region == REGION_NONE) continue;
        uint64_t align = section->sh_addralign ? section->sh_addralign : 1;
        if ((align & (align - 1)) || align > 4096) return bad_object(loader, "a section has an odd alignment");
        uint64_t at = round_up(loader->region_bytes[region], align);
        if (section->sh_size > LARGEST || at + section->sh_size > LARGEST)
            return bad_object(loader, "a section is too large");
        loader->offset[i] = at;
        loader->region_bytes[region] = at + section->sh_size;
    }
    loader->stubs = round_up(loader->region_bytes[REGION_TEXT], STUB_BYTES);
    loader->region_bytes[REGION_TEXT] = loader->stubs + loader->symbol_count * STUB_BYTES;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), start = 0;
    for (int r = 0; r < REGION_COUNT; r++) {
        loader->region_start[r] = start;
        start = round_up(start + loader->region_bytes[r], page);
    }
    for (size_t i = 0; i < loader->section_count; i++)
        if (loader->region[i] != REGION_NONE) loader->offset[i] += loader->region_start[loader->region[i]];
    return TILE_OK;
}

static uint64_t mapping_bytes(const Loader *loader) {
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    return round_up(loader->region_start[REGION_DATA] + loader->region_bytes[REGION_DATA], page);
}

/* ---- linking ---- */

/* The address of a symbol; NULL when nothing defines it. */
static char *symbol_address(const Loader *loader, const Elf64_Sym *symbol) {
    if (symbol->st_shndx == SHN_UNDEF) {
        const char *name = loader->names + symbol->st_name;
        for (size_t i = 0; i < sizeof runtime / sizeof runtime[0]; i++)
            if (strcmp(runtime[i].name, name) == 0) return runtime[i].address;
        return NULL;
    }
    if (symbol->st_shndx >= loader->section_count || loader->region[symbol->st_shndx] == REGION_NONE) return NULL;
    if (symbol->st_value > loader->sections[symbol->st_shndx].sh_size) return NULL;
    return loader->base + loader->offset[symbol->st_shndx] + symbol->st_value;
}

static char *make_stub(Loader *loader, size_t symbol, const char *address) {
    static const unsigned char jump[6] = {0xff, 0x25, STUB_ADDRESS - 6, 0, 0, 0};
    char *stub = loader->base + loader->stubs + symbol * STUB_BYTES;
    memcpy(stub, jump, sizeof jump);
    memcpy(stub + STUB_ADDRESS, &address, sizeof address);
    return stub;
}

static bool fits_32(int64_t value) { return value == (int32_t)value; }

static tile_status relocate(Loader *loader, const Elf64_Rela *rela, size_t target) {
    size_t index = ELF64_R_SYM(rela->r_info), width = ELF64_R_TYPE(rela->r_info) == R_X86_64_64 ? 8 : 4;
    uint64_t limit = loader->sections[target].sh_size;
    if (index >= loader->symbol_count || rela->r_offset > limit || limit - rela->r_offset < width)
        return bad_object(loader, "a relocation lies outside of its section");
    char *place = loader->base + loader->offset[target] + rela->r_offset;
    char *address = symbol_address(loader, &loader->symbols[index]);
    if (!address) {
        tile_text_format(loader->message, "the object cannot be loaded: `%s` is not defined",
                         loader->names + loader->symbols[index].st_name);
        return TILE_BACKEND;
    }
    int64_t value = (int64_t)((uint64_t)(uintptr_t)address + (uint64_t)rela->r_addend);
    int64_t relative = value - (int64_t)(uintptr_t)place;
    switch (ELF64_R_TYPE(rela->r_info)) {
    case R_X86_64_64: memcpy(place, &value, 8); return TILE_OK;
    case R_X86_64_PLT32:
    case R_X86_64_PC32:
        if (!fits_32(relative))
            relative =
                (int64_t)(uintptr_t)make_stub(loader, index, address) + rela->r_addend - (int64_t)(uintptr_t)place;
        break;
    case R_X86_64_GOTPCREL:
    case R_X86_64_GOTPCRELX:
    case R_X86_64_REX_GOTPCRELX:
        relative = (int64_t)(uintptr_t)(make_stub(loader, index, address) + STUB_ADDRESS) + rela->r_addend -
                   (int64_t)(uintptr_t)place;
        break;
    default: return bad_object(loader, "it has a relocation of an unknown kind");
    }
    int32_t narrow = (int32_t)relative;
    memcpy(place, &narrow, 4);
    return TILE_OK;
}

static tile_status relocate_sections(Loader *loader) {
    for (size_t i = 0; i < loader->section_count; i++) {
        const Elf64_Shdr *section = &loader->sections[i];
        if (section->sh_type != SHT_RELA) continue;
        if (section->sh_info >= loader->section_count || section->sh_entsize != sizeof(Elf64_Rela) ||
            section->sh_offset % 8 != 0)
            return bad_object(loader, "its relocations are damaged");
        if (loader->region[section->sh_info] == REGION_NONE) continue;
        const Elf64_Rela *relas = (const Elf64_Rela *)(loader->object + section->sh_offset);
        for (size_t k = 0; k < section->sh_size / sizeof *relas; k++)
            TILE_TRY(relocate(loader, &relas[k], section->sh_info));
    }
    return TILE_OK;
}

static void copy_sections(Loader *loader) {
    for (size_t i = 0; i < loader->section_count; i++)
        if (loader->region[i] != REGION_NONE && loader->sections[i].sh_type != SHT_NOBITS)
            memcpy(loader->base + loader->offset[i], loader->object + loader->sections[i].sh_offset,
                   loader->sections[i].sh_size);
}

static tile_status protect(Loader *loader) {
    static const int protection[REGION_COUNT] = {PROT_READ | PROT_EXEC, PROT_READ, PROT_READ | PROT_WRITE};
    for (int r = 0; r < REGION_COUNT; r++)
        if (loader->region_bytes[r] &&
            mprotect(loader->base + loader->region_start[r], loader->region_bytes[r], protection[r]) != 0) {
            bad_object(loader, "the system refuses executable memory");
            return TILE_UNAVAILABLE;
        }
    return TILE_OK;
}

/* The global symbols, with copies of their names. */
static tile_status keep_symbols(const Loader *loader, TileLoaded *loaded) {
    loaded->names = malloc(loader->names_bytes + 1);
    loaded->symbols = calloc(loader->symbol_count + 1, sizeof *loaded->symbols);
    if (!loaded->names || !loaded->symbols) return TILE_OUT_OF_MEMORY;
    memcpy(loaded->names, loader->names, loader->names_bytes);
    for (size_t i = 0; i < loader->symbol_count; i++) {
        const Elf64_Sym *symbol = &loader->symbols[i];
        if (ELF64_ST_BIND(symbol->st_info) != STB_GLOBAL || symbol->st_shndx == SHN_UNDEF) continue;
        char *address = symbol_address(loader, symbol);
        if (address) loaded->symbols[loaded->symbol_count++] = (Symbol){loaded->names + symbol->st_name, address};
    }
    return TILE_OK;
}

static tile_status link_object(Loader *loader, TileLoaded *loaded) {
    TILE_TRY(read_header(loader));
    TILE_TRY(read_symbols(loader));
    loader->offset = calloc(loader->section_count + 1, sizeof *loader->offset);
    loader->region = calloc(loader->section_count + 1, sizeof *loader->region);
    if (!loader->offset || !loader->region) return TILE_OUT_OF_MEMORY;
    TILE_TRY(lay_out(loader));
    loaded->bytes = mapping_bytes(loader);
    void *base = mmap(NULL, loaded->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) return TILE_OUT_OF_MEMORY;
    loaded->base = loader->base = base;
    copy_sections(loader);
    TILE_TRY(relocate_sections(loader));
    TILE_TRY(keep_symbols(loader, loaded));
    return protect(loader);
}

tile_status tile_object_load(const void *object, size_t size, TileLoaded **result, TileText *message) {
    *result = NULL;
    TileLoaded *loaded = calloc(1, sizeof *loaded);
    if (!loaded) return TILE_OUT_OF_MEMORY;
    Loader loader = {.object = object, .size = size, .message = message};
    tile_status status = link_object(&loader, loaded);
    free(loader.offset);
    free(loader.region);
    if (status != TILE_OK) {
        tile_loaded_release(loaded);
        return status;
    }
    *result = loaded;
    return TILE_OK;
}

void *tile_loaded_find(const TileLoaded *loaded, const char *name) {
    for (size_t i = 0; i < loaded->symbol_count; i++)
        if (strcmp(loaded->symbols[i].name, name) == 0) return loaded->symbols[i].address;
    return NULL;
}

void tile_loaded_release(TileLoaded *loaded) {
    if (!loaded) return;
    if (loaded->base) munmap(loaded->base, loaded->bytes);
    free(loaded->symbols);
    free(loaded->names);
    free(loaded);
}
