#define _GNU_SOURCE
#include "driver/compile/cached.h"

#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "driver/compile/backend.h"
#include "lang/ir/text.h"
#include "launch/guard.h"
#include "launch/image_bytes.h"

/* ---- the name ---- */

typedef struct OwnNote {
    uintptr_t inside; /* an address of this compiler */
    const void *bytes;
    size_t size;
} OwnNote;

/* The linker's build id of a loaded file. */
static void find_note(const struct dl_phdr_info *info, const ElfW(Phdr) * header, OwnNote *note) {
    const char *at = (const char *)(info->dlpi_addr + header->p_vaddr), *end = at + header->p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
        const ElfW(Nhdr) *entry = (const void *)at;
        const char *name = at + sizeof *entry, *bytes = name + (entry->n_namesz + 3) / 4 * 4;
        if (entry->n_type == NT_GNU_BUILD_ID && entry->n_namesz == 4 && memcmp(name, "GNU", 4) == 0) {
            note->bytes = bytes;
            note->size = entry->n_descsz;
            return;
        }
        at = bytes + (entry->n_descsz + 3) / 4 * 4;
    }
}

static int visit_file(struct dl_phdr_info *info, size_t size, void *state) {
    OwnNote *note = state;
    bool ours = false;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        uintptr_t begin = info->dlpi_addr + header->p_vaddr;
        ours |= header->p_type == PT_LOAD && note->inside >= begin && note->inside - begin < header->p_memsz;
    }
    for (int i = 0; ours && i < info->dlpi_phnum && !note->bytes; i++)
        if (info->dlpi_phdr[i].p_type == PT_NOTE) find_note(info, &info->dlpi_phdr[i], note);
    return ours;
}

static void add_text(TileSha256 *hash, const char *text) { tile_sha256_add(hash, text, strlen(text) + 1); }

bool tile_cached_key(TileUnit *unit, const TileFunc *kernel, const TileImageSignature *signature,
                     const TileImageRequest *request, TileCodeKey *key) {
    OwnNote note = {.inside = (uintptr_t)(void *)visit_file};
    const TileInput *input = unit->input;
    const TileTarget *target = input->target;
    dl_iterate_phdr(visit_file, &note);
    if (!note.bytes) return false;
    TileSha256 hash;
    TileText text = {.arena = unit->arena};
    /* Locations are in messages of debug builds, and in GPU code for profilers. */
    bool places = (input->flags & TILE_COMPILE_DEBUG) || tile_unit_backend(unit)->places;
    tile_module_print(&text, unit->module, places ? TILE_PRINT_LOCATIONS : 0);
    tile_sha256_begin(&hash);
    tile_sha256_add(&hash, note.bytes, note.size);
    add_text(&hash, target->name);
    add_text(&hash, target->llvm_cpu);
    add_text(&hash, target->llvm_features);
    add_text(&hash, kernel->name);
    add_text(&hash, signature->text);
    add_text(&hash, tile_text_get(&text));
    if (places) add_text(&hash, input->file);
    tile_sha256_add(&hash, &input->flags, sizeof input->flags);
    tile_sha256_add(&hash, &signature->overlap, sizeof signature->overlap);
    tile_sha256_add(&hash, request->generics, signature->generic_count * sizeof *request->generics);
    tile_sha256_add(&hash, request->statics, signature->static_count * sizeof *request->statics);
    for (uint32_t i = 0; i < signature->parameter_count; i++) {
        bool likely = tile_image_tells_nothing(request->facts[i]);
        tile_sha256_add(&hash, &likely, sizeof likely);
    }
    tile_sha256_end(&hash, key->digest);
    return true;
}

/* ---- which code ----
 *
 * Which facts the code of an instance asks about is known only after it was compiled. So a file under the instance's key
 * lists the sets of facts that were asked about so far, and code is stored under such a set and its values: requests
 * that differ only in facts that no code asked about share their code. */

enum { MOST_QUESTIONS = 16 };

typedef struct Questions {
    uint64_t asked[MOST_QUESTIONS][TILE_MAX_PARAMETERS]; /* what came last first */
    uint32_t count;
} Questions;

static void key_of_code(const TileCodeKey *instance, const TileImageSignature *signature, const uint64_t *asked,
                        const TileImageRequest *request, TileCodeKey *key) {
    TileSha256 hash;
    tile_sha256_begin(&hash);
    tile_sha256_add(&hash, instance->digest, sizeof instance->digest);
    for (uint32_t i = 0; i < signature->parameter_count; i++) {
        uint64_t told = request->facts[i] & asked[i];
        uint64_t words[] = {asked[i], told, told & TILE_GUARD_VALUE ? (uint64_t)request->values[i] : 0};
        tile_sha256_add(&hash, words, sizeof words);
    }
    tile_sha256_end(&hash, key->digest);
}

/* ---- bytes ---- */

static void put_number(TileText *bytes, uint64_t number) {
    for (int i = 0; i < 8; i++) tile_text_add_char(bytes, (char)(number >> 8 * i));
}

static void put_bytes(TileText *bytes, const void *data, size_t size) {
    put_number(bytes, size);
    tile_text_add_bytes(bytes, data, size);
}

static void put_maps(TileText *bytes, const TileCudaPhase *phase) {
    put_number(bytes, phase->map_count);
    for (uint32_t i = 0; i < phase->map_count; i++) {
        const TileImageMap *map = &phase->maps[i];
        put_number(bytes, map->slot);
        put_number(bytes, map->rank);
        put_number(bytes, map->element_bytes);
        put_number(bytes, map->swizzle);
        put_number(bytes, map->cut);
        for (unsigned d = 0; d < map->rank; d++) {
            put_number(bytes, map->box[d]);
            put_number(bytes, map->step[d]);
        }
        put_number(bytes, map->positions);
        for (unsigned d = 0; d < tile_image_map_axes(map); d++) {
            put_number(bytes, (uint16_t)map->corner[d]);
            put_number(bytes, map->over[d]);
        }
    }
}

static void put_code(TileUnit *unit, const TileCodeKey *key, const TileImageSignature *signature,
                     const TileImageCode *code, const TileCached *cached) {
    TileImageVariant variant = {
        .code = *code, .label = "", .statics = TILE_NEW_ARRAY(unit->arena, int64_t, TILE_MAX_STATICS)};
    TileImageKernel kernel = {.symbol = "", .signature = *signature, .variants = &variant, .variant_count = 1};
    TileImage image = {.kernels = &kernel, .kernel_count = 1};
    TileText image_bytes = {.arena = unit->arena}, bytes = {.arena = unit->arena};
    tile_image_write(&image, &image_bytes);
    put_number(&bytes, cached->phase_count);
    for (uint32_t i = 0; i < cached->phase_count; i++) {
        put_bytes(&bytes, cached->phases[i].symbol, strlen(cached->phases[i].symbol) + 1);
        put_number(&bytes, cached->phases[i].threads);
        put_number(&bytes, cached->phases[i].shared_bytes);
        put_number(&bytes, cached->phases[i].waits);
        put_number(&bytes, cached->phases[i].resident);
        put_maps(&bytes, &cached->phases[i]);
    }
    for (uint32_t i = 0; i < signature->parameter_count; i++) put_number(&bytes, code->asked[i]);
    put_bytes(&bytes, image_bytes.text, image_bytes.length);
    put_bytes(&bytes, cached->code, cached->code_bytes);
    const char *label = tile_arena_format(unit->arena, "%s %s", signature->name, unit->input->target->name);
    tile_code_cache_put(unit->input->compiler->cache, key, label, bytes.text, bytes.length);
}

typedef struct Bytes {
    const unsigned char *at, *end;
    bool damaged;
} Bytes;

static uint64_t get_number(Bytes *bytes) {
    uint64_t number = 0;
    bytes->damaged |= bytes->end - bytes->at < 8;
    for (int i = 0; i < 8 && !bytes->damaged; i++) number |= (uint64_t)*bytes->at++ << 8 * i;
    return number;
}

static const void *get_bytes(Bytes *bytes, size_t *size) {
    uint64_t count = get_number(bytes);
    const void *data = bytes->at;
    bytes->damaged |= count > (uint64_t)(bytes->end - bytes->at);
    *size = bytes->damaged ? 0 : count;
    bytes->at += *size;
    return data;
}

static void get_maps(Bytes *bytes, TileArena *arena, TileCudaPhase *phase) {
    uint64_t count = get_number(bytes);
    bytes->damaged |= count > TILE_MAX_MAPS;
    if (bytes->damaged) return;
    TileImageMap *maps = TILE_NEW_ARRAY(arena, TileImageMap, count);
    for (uint64_t i = 0; i < count; i++) {
        maps[i].slot = (uint32_t)get_number(bytes);
        maps[i].rank = (uint8_t)get_number(bytes);
        maps[i].element_bytes = (uint8_t)get_number(bytes);
        maps[i].swizzle = (uint8_t)get_number(bytes);
        maps[i].cut = (uint8_t)get_number(bytes);
        bytes->damaged |= maps[i].rank > TILE_MAP_MOST_RANK;
        for (unsigned d = 0; d < maps[i].rank && !bytes->damaged; d++) {
            maps[i].box[d] = (uint16_t)get_number(bytes);
            maps[i].step[d] = (uint8_t)get_number(bytes);
        }
        maps[i].positions = (uint16_t)get_number(bytes);
        for (unsigned d = 0; d < tile_image_map_axes(&maps[i]) && !bytes->damaged; d++) {
            maps[i].corner[d] = (int16_t)get_number(bytes);
            maps[i].over[d] = (uint32_t)get_number(bytes);
        }
    }
    phase->maps = maps;
    phase->map_count = (uint32_t)count;
}

/* One row for each set of questions: the number of parameters, then a word for each. */
static void get_questions(TileUnit *unit, const TileCodeKey *instance, const TileImageSignature *signature,
                          Questions *questions) {
    size_t size = 0;
    free(unit->cached);
    unit->cached = tile_code_cache_get(unit->input->compiler->cache, instance, &size);
    const unsigned char *data = unit->cached;
    Bytes bytes = {data, data ? data + size : NULL, !data};
    for (questions->count = 0; questions->count < MOST_QUESTIONS; questions->count++) {
        bytes.damaged |= get_number(&bytes) != signature->parameter_count;
        for (uint32_t i = 0; i < signature->parameter_count; i++)
            questions->asked[questions->count][i] = get_number(&bytes);
        if (bytes.damaged) return; /* the end, too */
    }
}

static void put_questions(TileUnit *unit, const TileCodeKey *instance, const TileImageSignature *signature,
                          const uint64_t *asked) {
    Questions questions;
    TileText bytes = {.arena = unit->arena};
    size_t row = signature->parameter_count * sizeof *asked;
    get_questions(unit, instance, signature, &questions);
    for (uint32_t q = 0; q < questions.count; q++)
        if (memcmp(questions.asked[q], asked, row) == 0) return;
    for (uint32_t q = 0; q <= questions.count && q < MOST_QUESTIONS; q++) {
        const uint64_t *words = q ? questions.asked[q - 1] : asked;
        put_number(&bytes, signature->parameter_count);
        for (uint32_t i = 0; i < signature->parameter_count; i++) put_number(&bytes, words[i]);
    }
    const char *label =
        tile_arena_format(unit->arena, "%s %s, what its code asks", signature->name, unit->input->target->name);
    tile_code_cache_put(unit->input->compiler->cache, instance, label, bytes.text, bytes.length);
}

void tile_cached_put(TileUnit *unit, const TileCodeKey *instance, const TileImageSignature *signature,
                     const TileImageRequest *request, const TileImageCode *code, const TileCached *cached) {
    uint64_t asked[TILE_MAX_PARAMETERS];
    TileCodeKey key;
    for (uint32_t i = 0; i < signature->parameter_count; i++) asked[i] = code->asked[i] | code->need[i];
    key_of_code(instance, signature, asked, request, &key);
    put_code(unit, &key, signature, code, cached);
    put_questions(unit, instance, signature, asked);
}

/* The checksum was right, so malformed bytes are a compiler bug; the code is then compiled. */
static bool get_code(TileUnit *unit, const TileCodeKey *key, const TileImageSignature *signature, TileCached *cached) {
    size_t size = 0, length;
    free(unit->cached);
    unit->cached = tile_code_cache_get(unit->input->compiler->cache, key, &size);
    if (!unit->cached) return false;
    const unsigned char *data = unit->cached;
    Bytes bytes = {data, data + size, false};
    uint64_t count = get_number(&bytes);
    if (bytes.damaged || count > size) return false;
    TileCudaPhase *phases = TILE_NEW_ARRAY(unit->arena, TileCudaPhase, count);
    for (uint64_t i = 0; i < count && !bytes.damaged; i++) {
        phases[i].symbol = get_bytes(&bytes, &length);
        bytes.damaged |= !length || phases[i].symbol[length - 1];
        phases[i].threads = (uint32_t)get_number(&bytes);
        phases[i].shared_bytes = get_number(&bytes);
        phases[i].waits = get_number(&bytes) != 0;
        phases[i].resident = get_number(&bytes) != 0;
        get_maps(&bytes, unit->arena, &phases[i]);
    }
    *cached = (TileCached){.phases = phases, .phase_count = (uint32_t)count, .asked = bytes.at};
    for (uint32_t i = 0; i < signature->parameter_count; i++) get_number(&bytes);
    cached->image = get_bytes(&bytes, &cached->image_bytes);
    cached->code = get_bytes(&bytes, &cached->code_bytes);
    return !bytes.damaged && bytes.at == bytes.end;
}

bool tile_cached_get(TileUnit *unit, const TileCodeKey *instance, const TileImageSignature *signature,
                     const TileImageRequest *request, TileCached *cached) {
    Questions questions;
    TileCodeKey key;
    get_questions(unit, instance, signature, &questions);
    for (uint32_t q = 0; q < questions.count; q++) {
        key_of_code(instance, signature, questions.asked[q], request, &key);
        if (get_code(unit, &key, signature, cached)) return true;
    }
    return false;
}

tile_status tile_cached_read(const TileCached *cached, TileArena *arena, const TilePhaseEntry *entries,
                             const TileImageSignature *signature, TileImageCode *code) {
    TileImage image;
    void (*destroy)(TileImageCode * code) = code->destroy;
    TILE_TRY(tile_image_read(arena, cached->image, cached->image_bytes, entries, cached->phase_count, &image));
    bool fits = image.kernel_count == 1 && image.kernels[0].variant_count == 1 &&
                image.kernels[0].signature.parameter_count == signature->parameter_count;
    if (!fits) return TILE_INTERNAL;
    *code = image.kernels[0].variants[0].code;
    code->destroy = destroy;
    Bytes bytes = {cached->asked, (const unsigned char *)cached->asked + 8 * (size_t)signature->parameter_count, false};
    for (uint32_t i = 0; i < signature->parameter_count; i++) code->asked[i] = get_number(&bytes);
    return TILE_OK;
}
