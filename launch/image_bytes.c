/* One description of the bytes serves both ways: each function below visits the members of one struct, and the stream
 * either takes a value from the struct, which then is not written to, or puts one there. */
#include "launch/image_bytes.h"

#include <string.h>

#include "base/temp.h"
#include "launch/host.h"

typedef struct Stream {
    TileArena *arena;
    TileText *out;              /* writing; NULL when reading */
    const unsigned char *bytes; /* reading */
    size_t at, size;
    const TilePhaseEntry *entries;
    size_t entry_count, next_entry;
    bool no_entries; /* of the variant at hand: it is a binary */
    bool damaged;
} Stream;

static uint64_t pass_number(Stream *s, uint64_t value, unsigned width) {
    if (s->out) {
        for (unsigned i = 0; i < width; i++) tile_text_add_char(s->out, (char)(value >> 8 * i));
        return value;
    }
    uint64_t result = 0;
    s->damaged |= s->size - s->at < width;
    if (s->damaged) return 0;
    for (unsigned i = 0; i < width; i++) result |= (uint64_t)s->bytes[s->at++] << 8 * i;
    return result;
}

/* A member that is an integer. */
#define NUMBER(s, member)                                                                                              \
    do {                                                                                                               \
        uint64_t number_ = pass_number(s, (uint64_t)(member), sizeof(member));                                         \
        if (!(s)->out) (member) = number_;                                                                             \
    } while (0)

/* The length of a list, bounded by the limit and by the number of bytes left. */
static uint32_t pass_count(Stream *s, uint32_t count, uint32_t limit) {
    count = (uint32_t)pass_number(s, count, sizeof count);
    if (s->out) return count;
    s->damaged |= count > limit || count > s->size - s->at;
    return s->damaged ? 0 : count;
}

/* A list: its count, followed by its items, which the caller visits. */
#define LIST(s, items, count, limit)                                                                                   \
    do {                                                                                                               \
        uint32_t count_ = pass_count(s, count, limit);                                                                 \
        if ((s)->out) break;                                                                                           \
        (count) = count_;                                                                                              \
        (items) = tile_arena_alloc((s)->arena, count_ * sizeof *(items));                                              \
    } while (0)

enum { ANY_COUNT = UINT32_MAX };

static void pass_text(Stream *s, const char **text) {
    uint32_t length = s->out && *text ? (uint32_t)strlen(*text) + 1 : 0;
    length = pass_count(s, length, ANY_COUNT);
    if (s->out) {
        if (length) tile_text_add_bytes(s->out, *text, length - 1);
        return;
    }
    *text = length ? tile_arena_string(s->arena, (const char *)s->bytes + s->at, length - 1) : NULL;
    s->at += length ? length - 1 : 0;
}

static void pass_texts(Stream *s, const char *const **texts, uint32_t count) {
    const char **list = s->out ? (const char **)*texts : TILE_NEW_ARRAY(s->arena, const char *, count);
    for (uint32_t i = 0; i < count && !s->damaged; i++) pass_text(s, &list[i]);
    if (!s->out) *texts = list;
}

static void pass_text_list(Stream *s, const char *const **texts, uint32_t *count) {
    uint32_t passed = pass_count(s, *count, ANY_COUNT);
    pass_texts(s, texts, passed);
    if (!s->out) *count = passed;
}

/* ---- signature ---- */

static void pass_parameter(Stream *s, TileImageParameter *parameter) {
    pass_text(s, &parameter->name);
    pass_text(s, &parameter->type_text);
    NUMBER(s, parameter->kind);
    NUMBER(s, parameter->access);
    NUMBER(s, parameter->rank);
    NUMBER(s, parameter->type);
    NUMBER(s, parameter->generic);
    NUMBER(s, parameter->format);
    s->damaged |= parameter->format >= TILE_IMAGE_FORMAT_COUNT;
    s->damaged |= parameter->rank > TILE_MAX_RANK || parameter->type >= TILE_HOST_TYPE_COUNT;
    if (!s->damaged) pass_texts(s, &parameter->dimensions, parameter->rank);
}

static void pass_generic(Stream *s, TileImageGeneric *generic) {
    pass_text(s, &generic->name);
    pass_text(s, &generic->class_text);
    NUMBER(s, generic->types);
}

static void pass_static(Stream *s, TileImageStatic *fixed) {
    pass_text(s, &fixed->name);
    NUMBER(s, fixed->parameter);
    NUMBER(s, fixed->axis);
}

static void pass_signature(Stream *s, TileImageSignature *signature) {
    pass_text(s, &signature->name);
    pass_text(s, &signature->text);
    pass_text(s, &signature->refused);
    NUMBER(s, signature->overlap);
    NUMBER(s, signature->gpu);
    LIST(s, signature->parameters, signature->parameter_count, TILE_MAX_PARAMETERS);
    for (uint32_t i = 0; i < signature->parameter_count; i++)
        pass_parameter(s, (TileImageParameter *)&signature->parameters[i]);
    LIST(s, signature->generics, signature->generic_count, TILE_MAX_GENERICS);
    for (uint32_t i = 0; i < signature->generic_count; i++)
        pass_generic(s, (TileImageGeneric *)&signature->generics[i]);
    LIST(s, signature->statics, signature->static_count, TILE_MAX_STATICS);
    for (uint32_t i = 0; i < signature->static_count; i++) {
        pass_static(s, (TileImageStatic *)&signature->statics[i]);
        s->damaged |= signature->statics[i].parameter >= signature->parameter_count;
    }
}

/* ---- code ---- */

static void pass_op(Stream *s, TileHostInstruction *at) {
    const char *name = s->out ? tile_host_op_name((TileHostOp)at->op) : NULL;
    pass_text(s, &name);
    if (!s->out) at->op = (uint8_t)(name ? tile_host_op_find(name) : TILE_HOST_OP_COUNT);
}

static void pass_instruction(Stream *s, TileHostInstruction *at) {
    pass_op(s, at);
    NUMBER(s, at->type);
    NUMBER(s, at->from);
    NUMBER(s, at->approx);
    NUMBER(s, at->a);
    NUMBER(s, at->b);
    NUMBER(s, at->c);
    NUMBER(s, at->bits);
}

static void pass_named(Stream *s, const TileHostNamed **named, uint32_t *count) {
    LIST(s, *named, *count, ANY_COUNT);
    for (uint32_t i = 0; i < *count; i++) {
        TileHostNamed *at = (TileHostNamed *)&(*named)[i];
        pass_text(s, &at->name);
        NUMBER(s, at->value);
        NUMBER(s, at->type);
    }
}

static void pass_dimension(Stream *s, TileImageDimension *dimension) {
    NUMBER(s, dimension->parameter);
    NUMBER(s, dimension->axis);
    NUMBER(s, dimension->expected);
    pass_text(s, &dimension->text);
    NUMBER(s, dimension->origin);
    pass_named(s, &dimension->named, &dimension->named_count);
}

static void pass_require(Stream *s, TileImageRequire *require) {
    NUMBER(s, require->condition);
    pass_text(s, &require->text);
    pass_named(s, &require->named, &require->named_count);
    NUMBER(s, require->chooses);
}

static void pass_temp(Stream *s, TileImageTemp *temp) {
    pass_text(s, &temp->name);
    NUMBER(s, temp->type);
    NUMBER(s, temp->rank);
    NUMBER(s, temp->align);
    s->damaged |= temp->rank > TILE_MAX_RANK || temp->type >= TILE_HOST_TYPE_COUNT || !tile_temp_is_align(temp->align);
    for (unsigned i = 0; i < temp->rank && !s->damaged; i++) NUMBER(s, temp->extents[i]);
}

static void pass_phase(Stream *s, TileImagePhase *phase) {
    NUMBER(s, phase->scratch_bytes);
    NUMBER(s, phase->bands);
    NUMBER(s, phase->rank);
    s->damaged |= phase->rank > TILE_MAX_GRID_RANK;
    for (unsigned i = 0; i < phase->rank && !s->damaged; i++) NUMBER(s, phase->extents[i]);
    pass_text_list(s, &phase->assertions, &phase->assertion_count);
    pass_text_list(s, &phase->prints, &phase->print_count);
    if (s->out || s->no_entries) return;
    s->damaged |= s->next_entry >= s->entry_count;
    if (!s->damaged) phase->entry = s->entries[s->next_entry++];
}

/* ---- soundness of what was read ---- */

static bool has_value(const TileImageCode *code, uint32_t value, TileHostType type) {
    return value < code->host_count && code->host[value].type == type;
}

static bool are_named_sound(const TileImageCode *code, const TileHostNamed *named, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (!named[i].name || named[i].type >= TILE_HOST_TYPE_COUNT ||
            !has_value(code, named[i].value, (TileHostType)named[i].type))
            return false;
    return true;
}

static bool is_dimension_sound(const TileImageCode *code, const TileImageDimension *at,
                               const TileImageSignature *signature) {
    return at->text && at->parameter < signature->parameter_count && at->origin < (int)signature->parameter_count &&
           signature->parameters[at->parameter].kind == TILE_PARAMETER_TENSOR &&
           at->axis < signature->parameters[at->parameter].rank && has_value(code, at->expected, TILE_HOST_I64) &&
           are_named_sound(code, at->named, at->named_count);
}

static bool are_extents_sound(const TileImageCode *code, const uint32_t *extents, unsigned rank) {
    for (unsigned i = 0; i < rank; i++)
        if (!has_value(code, extents[i], TILE_HOST_I64)) return false;
    return true;
}

static bool is_code_sound(const TileImageCode *code, const TileImageSignature *signature) {
    bool sound = tile_host_is_sound(code->host, code->host_count, signature);
    for (uint32_t i = 0; i < code->dimension_count && sound; i++)
        sound = is_dimension_sound(code, &code->dimensions[i], signature);
    for (uint32_t i = 0; i < code->require_count && sound; i++)
        sound = code->requires[i].text && has_value(code, code->requires[i].condition, TILE_HOST_BOOL) &&
                are_named_sound(code, code->requires[i].named, code->requires[i].named_count);
    for (uint32_t i = 0; i < code->temp_count && sound; i++)
        sound = are_extents_sound(code, code->temps[i].extents, code->temps[i].rank);
    for (uint32_t i = 0; i < code->phase_count && sound; i++)
        sound = are_extents_sound(code, code->phases[i].extents, code->phases[i].rank);
    return sound;
}

static void pass_code(Stream *s, TileImageCode *code, const TileImageSignature *signature) {
    LIST(s, code->host, code->host_count, ANY_COUNT);
    for (uint32_t i = 0; i < code->host_count; i++) pass_instruction(s, (TileHostInstruction *)&code->host[i]);
    LIST(s, code->dimensions, code->dimension_count, ANY_COUNT);
    for (uint32_t i = 0; i < code->dimension_count; i++) pass_dimension(s, (TileImageDimension *)&code->dimensions[i]);
    LIST(s, code->requires, code->require_count, ANY_COUNT);
    for (uint32_t i = 0; i < code->require_count; i++) pass_require(s, (TileImageRequire *)&code->requires[i]);
    LIST(s, code->temps, code->temp_count, ANY_COUNT);
    for (uint32_t i = 0; i < code->temp_count; i++) pass_temp(s, (TileImageTemp *)&code->temps[i]);
    LIST(s, code->phases, code->phase_count, ANY_COUNT);
    for (uint32_t i = 0; i < code->phase_count; i++) pass_phase(s, (TileImagePhase *)&code->phases[i]);
    LIST(s, code->order, code->order_count, TILE_MAX_PARAMETERS);
    for (uint32_t i = 0; i < code->order_count; i++) {
        NUMBER(s, ((uint8_t *)code->order)[i]);
        s->damaged |= code->order[i] >= signature->parameter_count;
    }
    for (uint32_t i = 0; i < signature->parameter_count; i++) NUMBER(s, code->need[i]);
    if (!s->out) s->damaged = s->damaged || !is_code_sound(code, signature);
}

/* Binaries are not copied. */
static void pass_bytes(Stream *s, const void **data, uint32_t *size) {
    uint32_t passed = pass_count(s, *size, ANY_COUNT);
    if (s->out) {
        tile_text_add_bytes(s->out, *data, passed);
        return;
    }
    *data = passed ? s->bytes + s->at : NULL;
    *size = passed;
    s->at += passed;
}

static void pass_ptx(Stream *s, TileImageBinary *binary) {
    uint32_t whole = binary->ptx_bytes + 1;
    const void *data = binary->ptx;
    pass_bytes(s, &data, &whole);
    s->damaged |= !whole || ((const char *)data)[whole - 1];
    if (s->out || s->damaged) return;
    binary->ptx = data;
    binary->ptx_bytes = whole - 1;
}

static void pass_map(Stream *s, TileImageMap *map) {
    NUMBER(s, map->slot);
    NUMBER(s, map->rank);
    NUMBER(s, map->element_bytes);
    NUMBER(s, map->swizzle);
    NUMBER(s, map->cut);
    unsigned bytes = map->element_bytes;
    s->damaged |= map->rank < 1 || map->rank > TILE_MAP_MOST_RANK || (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8);
    s->damaged |= map->swizzle && map->swizzle != 32 && map->swizzle != 64 && map->swizzle != 128;
    for (unsigned i = 0; i < map->rank && !s->damaged; i++) {
        NUMBER(s, map->box[i]);
        NUMBER(s, map->step[i]);
    }
    NUMBER(s, map->positions);
    s->damaged |= map->positions > TILE_MAP_MOST_POSITIONS || (map->positions && map->rank < TILE_MAP_LEAST_IMAGE_RANK);
    for (unsigned i = 0; i < tile_image_map_axes(map) && !s->damaged; i++) {
        NUMBER(s, map->corner[i]);
        NUMBER(s, map->over[i]);
    }
}

static void pass_binary(Stream *s, TileImageBinary *binary) {
    pass_ptx(s, binary);
    pass_bytes(s, &binary->cubin, &binary->cubin_bytes);
    NUMBER(s, binary->capability);
    NUMBER(s, binary->alone);
    LIST(s, binary->entries, binary->entry_count, ANY_COUNT);
    for (uint32_t i = 0; i < binary->entry_count && !s->damaged; i++) {
        TileImageEntry *entry = (TileImageEntry *)&binary->entries[i];
        pass_text(s, &entry->symbol);
        NUMBER(s, entry->threads);
        NUMBER(s, entry->waits);
        NUMBER(s, entry->resident);
        LIST(s, entry->maps, entry->map_count, TILE_MAX_MAPS);
        for (uint32_t k = 0; k < entry->map_count && !s->damaged; k++) pass_map(s, (TileImageMap *)&entry->maps[k]);
        s->damaged |= !entry->symbol;
    }
}

/* Words of a launch's slots. */
static uint64_t count_slots(const TileImageCode *code, const TileImageSignature *signature) {
    uint64_t count = 0;
    for (uint32_t i = 0; i < code->order_count; i++) {
        const TileImageParameter *parameter = &signature->parameters[code->order[i]];
        count += parameter->kind == TILE_PARAMETER_TENSOR ? 1 + 2u * parameter->rank : 1;
    }
    for (uint32_t i = 0; i < code->temp_count; i++) count += 1 + 2u * code->temps[i].rank;
    return count;
}

static bool are_maps_sound(const TileImageVariant *variant, const TileImageSignature *signature) {
    uint64_t slots = count_slots(&variant->code, signature);
    bool sound = true;
    for (uint32_t i = 0; i < variant->binary->entry_count; i++) {
        const TileImageEntry *entry = &variant->binary->entries[i];
        for (uint32_t k = 0; k < entry->map_count; k++) {
            const TileImageMap *map = &entry->maps[k];
            sound &= (uint64_t)map->slot + 1 + 2u * map->rank <= slots;
            for (unsigned d = 0; d < tile_image_map_axes(map); d++) sound &= map->over[d] < slots;
        }
    }
    return sound;
}

static void pass_variant(Stream *s, TileImageVariant *variant, const TileImageSignature *signature) {
    s->no_entries = pass_number(s, variant->binary != NULL, 1);
    if (s->no_entries && !s->out) variant->binary = TILE_NEW(s->arena, TileImageBinary);
    if (s->no_entries) pass_binary(s, (TileImageBinary *)variant->binary);
    pass_code(s, &variant->code, signature);
    s->damaged |= s->no_entries && variant->binary->entry_count != variant->code.phase_count;
    if (s->no_entries && !s->damaged) s->damaged = !are_maps_sound(variant, signature);
    pass_text(s, &variant->label);
    NUMBER(s, variant->target);
    if (!s->out) variant->statics = TILE_NEW_ARRAY(s->arena, int64_t, signature->static_count);
    for (uint32_t i = 0; i < signature->static_count; i++) NUMBER(s, ((int64_t *)variant->statics)[i]);
}

static void pass_kernel(Stream *s, TileImageKernel *kernel) {
    pass_text(s, &kernel->symbol);
    pass_signature(s, &kernel->signature);
    LIST(s, kernel->variants, kernel->variant_count, ANY_COUNT);
    for (uint32_t i = 0; i < kernel->variant_count && !s->damaged; i++)
        pass_variant(s, (TileImageVariant *)&kernel->variants[i], &kernel->signature);
}

static void pass_image(Stream *s, TileImage *image) {
    pass_text_list(s, &image->targets, &image->target_count);
    LIST(s, image->kernels, image->kernel_count, ANY_COUNT);
    for (uint32_t i = 0; i < image->kernel_count && !s->damaged; i++)
        pass_kernel(s, (TileImageKernel *)&image->kernels[i]);
}

void tile_image_write(const TileImage *image, TileText *bytes) {
    Stream stream = {.out = bytes};
    pass_image(&stream, (TileImage *)image); /* which is only read */
}

tile_status tile_image_read(TileArena *arena, const void *bytes, size_t size, const TilePhaseEntry *entries,
                            size_t entry_count, TileImage *image) {
    Stream stream = {.arena = arena, .bytes = bytes, .size = size, .entries = entries, .entry_count = entry_count};
    *image = (TileImage){0};
    pass_image(&stream, image);
    bool whole = stream.at == size && stream.next_entry == entry_count;
    return stream.damaged || !whole ? TILE_INTERNAL : TILE_OK;
}
