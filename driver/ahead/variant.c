/* Variants: what their texts say, and what that means for one kernel. */
#include <stdlib.h>
#include <string.h>

#include "driver/ahead/ahead.h"
#include "launch/guard.h"

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

static bool is_word_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Copies the text, trimmed. */
static const char *take_trimmed(TileArena *arena, const char *begin, const char *end) {
    while (begin < end && is_blank(*begin)) begin++;
    while (end > begin && is_blank(end[-1])) end--;
    return tile_arena_string(arena, begin, (size_t)(end - begin));
}

static tile_status refuse(TileBuild *build, const char *variant, const char *item, const char *why) {
    tile_text_format(&build->message, "variant '%s': '%s' %s", variant, item, why);
    return TILE_INVALID_ARGUMENT;
}

static tile_status read_align(TileBuild *build, const char *variant, const char *item, const char *what,
                              TileAheadDemand *demand) {
    char *end;
    unsigned long bytes = strncmp(what, "align ", 6) == 0 ? strtoul(what + 6, &end, 10) : 0;
    demand->kind = TILE_AHEAD_ALIGN;
    if (!bytes || *end) return refuse(build, variant, item, "is neither 'NAME: align BYTES' nor 'NAME: contiguous'");
    if (bytes < 2 || bytes > 128 || (bytes & (bytes - 1)))
        return refuse(build, variant, item, "names an alignment that is no power of two from 2 to 128");
    demand->align = (unsigned)bytes;
    return TILE_OK;
}

/* NAME: align N, NAME: contiguous */
static tile_status read_fact(TileBuild *build, const char *variant, const char *item, const char *colon,
                             TileAheadDemand *demand) {
    demand->name = take_trimmed(build->arena, item, colon);
    const char *what = take_trimmed(build->arena, colon + 1, item + strlen(item));
    demand->kind = TILE_AHEAD_CONTIGUOUS;
    if (strcmp(what, "contiguous") == 0) return TILE_OK;
    return read_align(build, variant, item, what, demand);
}

/* NAME = value has a single `=`; with more or other signs it is a condition. */
static const char *find_assignment(const char *item) {
    const char *at = item;
    while (is_word_char(*at)) at++;
    const char *end = at;
    while (is_blank(*at)) at++;
    return end > item && *at == '=' && at[1] != '=' ? at : NULL;
}

static tile_status read_item(TileBuild *build, TileAheadVariant *variant, const char *item) {
    TileAheadDemand demand = {.kind = TILE_AHEAD_CONDITION, .value = item};
    const char *colon = strchr(item, ':'), *equals = find_assignment(item);
    if (!*item) return refuse(build, variant->label, item, "says nothing");
    if (strcmp(item, "general") == 0) return TILE_OK;
    if (strcmp(item, "contiguous") == 0)
        demand.kind = TILE_AHEAD_CONTIGUOUS;
    else if (strncmp(item, "align ", 6) == 0)
        TILE_TRY(read_align(build, variant->label, item, item, &demand));
    else if (colon)
        TILE_TRY(read_fact(build, variant->label, item, colon, &demand));
    else if (equals) {
        demand.kind = TILE_AHEAD_VALUE;
        demand.name = take_trimmed(build->arena, item, equals);
        demand.value = take_trimmed(build->arena, equals + 1, item + strlen(item));
    }
    tile_list_push(build->arena, &variant->demands, demand);
    return TILE_OK;
}

/* Commas inside brackets do not separate items. */
static const char *find_end(const char *text) {
    int depth = 0;
    for (; *text; text++) {
        depth += *text == '(' || *text == '[';
        depth -= *text == ')' || *text == ']';
        if (*text == ',' && depth == 0) break;
    }
    return text;
}

static tile_status read_variant(TileBuild *build, const char *text) {
    TileAheadVariant variant = {.label = take_trimmed(build->arena, text, text + strlen(text))};
    for (const char *begin = variant.label;; begin++) {
        const char *end = find_end(begin);
        TILE_TRY(read_item(build, &variant, take_trimmed(build->arena, begin, end)));
        if (!*end) break;
        begin = end;
    }
    for (size_t i = 0; i < build->variants.count; i++)
        if (strcmp(build->variants.items[i].label, variant.label) == 0) return TILE_OK;
    tile_list_push(build->arena, &build->variants, variant);
    return TILE_OK;
}

tile_status tile_ahead_variants(TileBuild *build) {
    const TileBuildOptions *options = &build->options;
    bool given = options->variant_count != 0, general = !(options->flags & TILE_BUILD_NO_GENERAL);
    /* Code for GPUs needs no other facts where addresses are aligned, as those of allocations are. */
    if (!given && tile_ahead_has_data(build)) TILE_TRY(read_variant(build, "contiguous, align 16"));
    if (!given) TILE_TRY(read_variant(build, "contiguous"));
    for (size_t i = 0; i < options->variant_count; i++) TILE_TRY(read_variant(build, options->variants[i]));
    return general ? read_variant(build, "general") : TILE_OK;
}

/* ---- variants of a kernel ---- */

const char *tile_ahead_value(const TileAheadVariant *variant, const char *name) {
    for (size_t i = 0; i < variant->demands.count; i++)
        if (variant->demands.items[i].kind == TILE_AHEAD_VALUE && strcmp(variant->demands.items[i].name, name) == 0)
            return variant->demands.items[i].value;
    return NULL;
}

tile_status tile_ahead_static(TileUnit *unit, const TileImageSignature *signature, uint32_t index,
                              const TileBinding *binding, int64_t *value) {
    const TileImageStatic *fixed = &signature->statics[index];
    TileHostType type = fixed->axis < 0 ? (TileHostType)signature->parameters[fixed->parameter].type : TILE_HOST_I64;
    bool is_float = tile_host_type_class(type) == TILE_HOST_CLASS_FLOAT;
    double number = binding->kind == TILE_BINDING_INTEGER ? (double)binding->integer : binding->number;
    TileBindingKind wanted = type == TILE_HOST_BOOL ? TILE_BINDING_BOOL : TILE_BINDING_INTEGER;
    if (binding->kind == wanted || (is_float && binding->kind == TILE_BINDING_FLOAT)) {
        *value = wanted == TILE_BINDING_BOOL ? binding->truth : binding->integer;
        if (is_float) memcpy(value, &number, sizeof number);
        return TILE_OK;
    }
    tile_text_format(&unit->message, "%s: '%s' needs a value of type %s", signature->name, fixed->name,
                     tile_host_type_name(type));
    return TILE_INVALID_ARGUMENT;
}

static void grant_contiguous(const TileImageParameter *parameter, uint64_t *facts) {
    if (parameter->kind == TILE_PARAMETER_TENSOR && parameter->rank)
        *facts |= tile_guard_dimension(parameter->rank - 1u, TILE_GUARD_STRIDE_UNIT);
}

static void grant_to_all(const TileAheadDemand *demand, const TileImageSignature *signature,
                         TileImageRequest *request) {
    for (uint32_t i = 0; i < signature->parameter_count; i++) {
        if (signature->parameters[i].kind != TILE_PARAMETER_TENSOR) continue;
        if (demand->kind == TILE_AHEAD_CONTIGUOUS)
            grant_contiguous(&signature->parameters[i], &request->facts[i]);
        else
            request->facts[i] |= tile_guard_align(demand->align);
    }
}

static tile_status grant_one(TileUnit *unit, const TileAheadVariant *variant, const TileAheadDemand *demand,
                             const TileImageSignature *signature, TileImageRequest *request) {
    int number = tile_image_parameter(signature, demand->name);
    if (number < 0 || signature->parameters[number].kind != TILE_PARAMETER_TENSOR) {
        tile_text_format(&unit->message, "variant '%s': %s has no tensor '%s'", variant->label, signature->name,
                         demand->name);
        return TILE_INVALID_ARGUMENT;
    }
    if (demand->kind == TILE_AHEAD_CONTIGUOUS)
        grant_contiguous(&signature->parameters[number], &request->facts[number]);
    else
        request->facts[number] |= tile_guard_align(demand->align);
    return TILE_OK;
}

/* Contiguous and aligned to 16 bytes: then the other strides, too, shall be such that a tensor map describes it. */
static void grant_maps(const TileImageSignature *signature, TileImageRequest *request) {
    const uint64_t aligned = TILE_GUARD_ALIGN & ~(tile_guard_align(16) - 1);
    for (uint32_t i = 0; i < signature->parameter_count; i++) {
        unsigned rank = signature->parameters[i].rank;
        if (signature->parameters[i].kind != TILE_PARAMETER_TENSOR || rank < 1 || rank > TILE_MAP_MOST_RANK) continue;
        bool contiguous = request->facts[i] & tile_guard_dimension(rank - 1, TILE_GUARD_STRIDE_UNIT);
        if (contiguous && (request->facts[i] & aligned)) request->facts[i] |= TILE_GUARD_MAP;
    }
}

tile_status tile_ahead_grant(TileUnit *unit, const TileAheadVariant *variant, const TileImageSignature *signature,
                             TileImageRequest *request) {
    *request = (TileImageRequest){.facts = {0}};
    for (size_t i = 0; i < variant->demands.count; i++) {
        const TileAheadDemand *demand = &variant->demands.items[i];
        if (demand->kind != TILE_AHEAD_CONTIGUOUS && demand->kind != TILE_AHEAD_ALIGN) continue;
        if (demand->name)
            TILE_TRY(grant_one(unit, variant, demand, signature, request));
        else
            grant_to_all(demand, signature, request);
    }
    if (signature->maps) grant_maps(signature, request);
    return TILE_OK;
}
