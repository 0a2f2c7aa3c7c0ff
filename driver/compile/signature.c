/* The signatures of a program's kernels, by which the launcher checks arguments. */
#include <string.h>

#include "driver/compile/backend.h"

typedef struct Builder {
    TileUnit *unit;
    TileArena *arena; /* of the input: signatures live as long as the library */
    const TileKernelInfo *kernel;
    TILE_LIST(TileImageParameter) parameters;
    TILE_LIST(TileImageGeneric) generics;
    TILE_LIST(TileImageStatic) statics;
} Builder;

static const char *keep(Builder *b, const char *text) { return tile_arena_string(b->arena, text, strlen(text)); }

static const TileBinding *find_binding(const Builder *b, const char *name) {
    const TileInput *input = b->unit->input;
    for (size_t i = 0; i < b->kernel->chosen.count; i++)
        if (strcmp(b->kernel->chosen.items[i].name, name) == 0) return &b->kernel->chosen.items[i];
    for (size_t i = input->binding_count; i-- > 0;)
        if (strcmp(input->bindings[i].name, name) == 0) return &input->bindings[i];
    return NULL;
}

/* The index of a type parameter among those that arguments bind; -1 if a setting binds it. */
static int open_generic(const Builder *b, const char *name) {
    for (size_t i = 0; i < b->generics.count; i++)
        if (strcmp(b->generics.items[i].name, name) == 0) return (int)i;
    return -1;
}

/* A setting must bind a type parameter to a type of its class. */
static tile_status check_setting(Builder *b, const TileKernelGeneric *generic, const TileBinding *binding) {
    if (binding->kind == TILE_BINDING_TYPE && (generic->types >> binding->type & 1)) return TILE_OK;
    tile_text_format(&b->unit->message, "%s: %s must be %s", b->kernel->name, generic->name, generic->class);
    if (binding->kind == TILE_BINDING_TYPE)
        tile_text_format(&b->unit->message, ", not %s", tile_scalar_name(binding->type));
    else
        tile_text_add(&b->unit->message, ", a type such as f32");
    return TILE_INVALID_ARGUMENT;
}

static tile_status add_generics(Builder *b) {
    for (size_t i = 0; i < b->kernel->generics.count; i++) {
        const TileKernelGeneric *generic = &b->kernel->generics.items[i];
        if (generic->kind != TILE_GENERIC_TYPE) continue;
        const TileBinding *binding = find_binding(b, generic->name);
        if (binding) {
            TILE_TRY(check_setting(b, generic, binding));
            continue;
        }
        TileImageGeneric open = {keep(b, generic->name), keep(b, generic->class), generic->types};
        tile_list_push(b->arena, &b->generics, open);
    }
    return TILE_OK;
}

/* The element type: a type of the language, a free type parameter, or one that a setting binds. */
static tile_status set_type(Builder *b, TileImageParameter *parameter, const TileKernelParameter *info) {
    static const uint8_t formats[TILE_FORMAT_COUNT] = {[TILE_FORMAT_I4] = TILE_IMAGE_I4,
                                                       [TILE_FORMAT_U4] = TILE_IMAGE_U4,
                                                       [TILE_FORMAT_F4E2M1] = TILE_IMAGE_F4E2M1,
                                                       [TILE_FORMAT_F8E8M0] = TILE_IMAGE_F8E8M0};
    const char *type = info->type;
    TileScalar scalar = info->scalar;
    parameter->type_text = keep(b, type);
    parameter->generic = (int8_t)open_generic(b, type);
    if (parameter->generic >= 0) return TILE_OK;
    const TileBinding *binding = find_binding(b, type);
    if (binding && binding->kind == TILE_BINDING_TYPE)
        scalar = binding->type;
    else if (!info->format && !tile_scalar_find(type, strlen(type), &scalar)) {
        tile_text_format(&b->unit->message, "%s: %s: '%s' is no type that the launcher knows", b->kernel->name,
                         parameter->name, type);
        return TILE_INVALID_ARGUMENT;
    }
    parameter->type = (uint8_t)scalar;
    parameter->format = formats[info->format];
    return TILE_OK;
}

static tile_status add_parameter(Builder *b, const TileKernelParameter *info) {
    static const uint8_t access[] = {[TILE_ACCESS_IN] = TILE_PARAMETER_IN,
                                     [TILE_ACCESS_OUT] = TILE_PARAMETER_OUT,
                                     [TILE_ACCESS_INOUT] = TILE_PARAMETER_INOUT};
    if (info->is_const && find_binding(b, info->name)) return TILE_OK;
    TileImageParameter parameter = {.name = keep(b, info->name)};
    parameter.kind = info->is_tensor ? TILE_PARAMETER_TENSOR : TILE_PARAMETER_SCALAR;
    parameter.access = info->is_tensor ? access[info->access] : TILE_PARAMETER_IN;
    parameter.rank = info->is_tensor ? (uint8_t)info->rank : 0;
    TILE_TRY(set_type(b, &parameter, info));
    const char **dimensions = TILE_NEW_ARRAY(b->arena, const char *, TILE_MAX_RANK);
    for (unsigned i = 0; i < parameter.rank; i++) dimensions[i] = keep(b, info->dims[i]);
    parameter.dimensions = dimensions;
    tile_list_push(b->arena, &b->parameters, parameter);
    return TILE_OK;
}

/* ---- parameters of a spread function ---- */

static const char *source_text(const Builder *b, TileSpan span) {
    const TileSourceFile *file = &b->unit->diagnostics->files.items[span.file];
    return tile_arena_string(b->unit->arena, file->text + span.begin, span.end - span.begin);
}

static tile_status add_function_parameter(Builder *b, const TileParam *param) {
    static const uint8_t access[] = {
        [TILE_WORD_IN] = TILE_ACCESS_IN, [TILE_WORD_OUT] = TILE_ACCESS_OUT, [TILE_WORD_INOUT] = TILE_ACCESS_INOUT};
    const TileTypeExpr *type = param->type;
    TileKernelParameter info = {.name = param->name, .type = type->name ? type->name : "function"};
    info.is_tensor = type->access != TILE_WORD_NONE;
    info.access = info.is_tensor ? (TileAccess)access[type->access] : TILE_ACCESS_IN;
    info.rank = (unsigned)type->extents.count;
    for (unsigned i = 0; i < info.rank && i < TILE_MAX_RANK; i++)
        info.dims[i] = source_text(b, type->extents.items[i]->span);
    tile_kernel_parameter_bytes(&info, b->unit->arena, type);
    return add_parameter(b, &info);
}

/* `...epi`: the function's parameters beyond those that the kernel's declaration of epi names. */
static tile_status add_spread(Builder *b, const char *generic) {
    const TileGeneric *declared = NULL;
    const TileBinding *binding = find_binding(b, generic);
    const char *name = binding && binding->kind == TILE_BINDING_FUNCTION ? binding->function : NULL;
    for (size_t i = 0; i < b->kernel->generics.count; i++)
        if (!name && strcmp(b->kernel->generics.items[i].name, generic) == 0)
            name = b->kernel->generics.items[i].function;
    for (size_t i = 0; i < b->kernel->item->generics.count; i++)
        if (strcmp(b->kernel->item->generics.items[i].name, generic) == 0)
            declared = &b->kernel->item->generics.items[i];
    const TileItem *function = name ? tile_find_function(b->kernel->ast, name) : NULL;
    if (!function || !declared || !declared->type) {
        tile_text_format(&b->unit->message, "%s: %s%s%s", b->kernel->name, name ? "there is no function " : "",
                         name ? name : generic, name ? "" : " has no default and no setting");
        return TILE_INVALID_ARGUMENT;
    }
    for (size_t i = declared->type->items.count; i < function->params.count; i++)
        TILE_TRY(add_function_parameter(b, &function->params.items[i]));
    return TILE_OK;
}

/* ---- one kernel ---- */

/* The parameters in source order, with spreads expanded. */
static tile_status add_parameters(Builder *b) {
    const TileItem *item = b->kernel->item;
    size_t next = 0;
    if (!item)
        for (; next < b->kernel->parameters.count; next++)
            TILE_TRY(add_parameter(b, &b->kernel->parameters.items[next]));
    for (size_t i = 0; item && i < item->params.count; i++) {
        if (item->params.items[i].spread)
            TILE_TRY(add_spread(b, item->params.items[i].name));
        else
            TILE_TRY(add_parameter(b, &b->kernel->parameters.items[next++]));
    }
    return TILE_OK;
}

/* Where a static name is bound first: a dimension of that name, or a scalar. */
static void add_static(Builder *b, const char *name) {
    for (size_t i = 0; i < b->parameters.count; i++) {
        const TileImageParameter *parameter = &b->parameters.items[i];
        TileImageStatic found = {parameter->name, (uint16_t)i, -1};
        if (parameter->kind == TILE_PARAMETER_SCALAR && strcmp(parameter->name, name) == 0) {
            tile_list_push(b->arena, &b->statics, found);
            return;
        }
        for (int k = 0; k < parameter->rank; k++) {
            if (strcmp(parameter->dimensions[k], name)) continue;
            found = (TileImageStatic){parameter->dimensions[k], (uint16_t)i, (int16_t)k};
            tile_list_push(b->arena, &b->statics, found);
            return;
        }
    }
}

static void add_statics(Builder *b) {
    for (size_t i = 0; i < b->kernel->statics.count; i++)
        if (!find_binding(b, b->kernel->statics.items[i])) add_static(b, b->kernel->statics.items[i]);
    for (size_t i = 0; i < b->kernel->parameters.count; i++) {
        const TileKernelParameter *parameter = &b->kernel->parameters.items[i];
        bool listed = false;
        for (size_t k = 0; k < b->statics.count; k++) listed |= strcmp(b->statics.items[k].name, parameter->name) == 0;
        if (!listed && (parameter->is_const || parameter->is_static) && !find_binding(b, parameter->name))
            add_static(b, parameter->name);
    }
}

/* A setting that contradicts the export. */
static tile_status check_chosen(Builder *b) {
    const TileInput *input = b->unit->input;
    for (size_t i = 0; i < b->kernel->chosen.count; i++) {
        const TileBinding *chosen = &b->kernel->chosen.items[i];
        TileText ours = {.arena = b->unit->arena}, given = {.arena = b->unit->arena};
        tile_binding_print(&ours, chosen);
        for (size_t k = 0; k < input->binding_count; k++) {
            if (strcmp(input->bindings[k].name, chosen->name)) continue;
            given.length = 0;
            tile_binding_print(&given, &input->bindings[k]);
            if (strcmp(tile_text_get(&given), tile_text_get(&ours)) == 0) continue;
            tile_text_format(&b->unit->message, "%s: %s is %s, as exported, and cannot be set to %s", b->kernel->name,
                             chosen->name, tile_text_get(&ours), tile_text_get(&given));
            return TILE_INVALID_ARGUMENT;
        }
    }
    return TILE_OK;
}

static bool exceeds(const Builder *b, unsigned count, const char *what, unsigned most) {
    if (count > most)
        tile_diagnose(b->unit->diagnostics, TILE_DIAGNOSTIC_MANY_PARAMETERS, b->kernel->item->name_span, b->kernel->name,
                      count, what, most);
    return count > most;
}

static tile_status build_signature(TileUnit *unit, const TileKernelInfo *kernel, TileImageSignature *signature) {
    Builder b = {.unit = unit, .arena = unit->input->arena, .kernel = kernel};
    TILE_TRY(check_chosen(&b));
    TILE_TRY(add_generics(&b));
    TILE_TRY(add_parameters(&b));
    add_statics(&b);
    if (exceeds(&b, (unsigned)b.parameters.count, "parameters", TILE_MAX_PARAMETERS) ||
        exceeds(&b, (unsigned)b.generics.count, "types that stay open", TILE_MAX_GENERICS) ||
        exceeds(&b, (unsigned)b.statics.count, "static values", TILE_MAX_STATICS))
        return TILE_INVALID_SOURCE;
    *signature = (TileImageSignature){.name = keep(&b, kernel->name),
                                      .text = keep(&b, kernel->signature),
                                      .parameters = b.parameters.items,
                                      .generics = b.generics.items,
                                      .statics = b.statics.items,
                                      .parameter_count = (uint32_t)b.parameters.count,
                                      .generic_count = (uint32_t)b.generics.count,
                                      .static_count = (uint32_t)b.statics.count};
    for (size_t i = 0; i < kernel->overlaps.count; i++) {
        int number = tile_image_parameter(signature, kernel->overlaps.items[i]);
        if (number >= 0) signature->overlap |= UINT64_C(1) << number;
    }
    return TILE_OK;
}

tile_status tile_signatures_create(TileUnit *unit, const TileProgramInfo *program, bool described,
                                   uint32_t *count) {
    TileArena *arena = unit->input->arena;
    tile_arena_set_guard(arena, &unit->guard);
    TileImageSignature *signatures = TILE_NEW_ARRAY(arena, TileImageSignature, program->kernels.count);
    for (size_t i = 0; i < program->kernels.count; i++) {
        const TileKernelInfo *kernel = &program->kernels.items[i];
        tile_status status = build_signature(unit, kernel, &signatures[i]);
        if (status != TILE_OK && program->kernels.count == 1) return status;
        if (status == TILE_OK) continue;
        /* Settings apply to all kernels of a text; a kernel that a setting does not fit is refused when it is used. */
        const char *why = tile_arena_string(arena, unit->message.text, unit->message.length);
        const char *name = tile_arena_string(arena, kernel->name, strlen(kernel->name));
        const char *text = tile_arena_string(arena, kernel->signature, strlen(kernel->signature));
        signatures[i] = (TileImageSignature){.name = name, .text = text, .refused = why};
        unit->message = (TileText){.arena = unit->arena};
    }
    for (size_t i = 0; described && i < program->kernels.count; i++)
        tile_interface_describe(unit, &program->kernels.items[i], &signatures[i]);
    tile_arena_set_guard(arena, NULL);
    const TileBackend *backend = tile_unit_backend(unit);
    bool gpu = backend && backend->own_memory && !(unit->input->flags & TILE_COMPILE_EMULATE);
    for (size_t i = 0; i < program->kernels.count; i++) {
        signatures[i].gpu = gpu;
        signatures[i].maps = backend && unit->input->target->has_tma;
        signatures[i].exported = program->kernels.items[i].is_export;
    }
    unit->input->signatures = signatures;
    *count = (uint32_t)program->kernels.count;
    return TILE_OK;
}
