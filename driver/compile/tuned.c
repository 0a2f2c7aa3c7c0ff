#include "driver/compile/tuned.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "driver/compile/backend.h"
#include "launch/cuda.h"
#include "launch/settings.h"
#include "launch/variants.h"

enum { MOST_POINTS = 4096, SPACE_DIGITS = 12 };

/* ---- names of things ---- */

static bool is_for(const TileKernelTune *tune, const TileTarget *target) {
    return !tune->target || strcmp(tune->target, tile_backend_of(target)->family->name) == 0;
}

static void add_text(TileSha256 *hash, const char *text) { tile_sha256_add(hash, text, strlen(text) + 1); }

/* A hash of the tune clauses: rows with another hash are for another kernel of the same name. NULL without clauses. */
static const char *space_of(TileArena *arena, const TileKernelInfo *kernel, const TileTarget *target) {
    uint8_t digest[TILE_SHA256_BYTES];
    char digits[2 * TILE_SHA256_BYTES + 1];
    bool any = false;
    TileSha256 hash;
    tile_sha256_begin(&hash);
    for (size_t i = 0; i < kernel->tunes.count; i++) {
        const TileKernelTune *tune = &kernel->tunes.items[i];
        if (!is_for(tune, target)) continue;
        any = true;
        add_text(&hash, tune->name);
        add_text(&hash, tune->where ? tune->where : "");
        tile_sha256_add(&hash, tune->candidates.items, tune->candidates.count * sizeof *tune->candidates.items);
    }
    tile_sha256_end(&hash, digest);
    for (int i = 0; i < TILE_SHA256_BYTES; i++) snprintf(digits + 2 * i, 3, "%02x", digest[i]);
    return any ? tile_arena_string(arena, digits, SPACE_DIGITS) : NULL;
}

/* The machine on which the target's code would run, for GPUs the device of this number; NULL: none. */
static const char *device_of(TileArena *arena, const TileTarget *target, int number) {
    const char *device = tile_target_obstacle(target) ? NULL : tile_backend_of(target)->device(arena, number);
    return device ? tile_arena_format(arena, "%s, %s", target->name, device) : NULL;
}

/* Those of this machine. */
typedef struct Devices {
    const char *names[TILE_CUDA_MOST_DEVICES];
    int count;
} Devices;

static void find_devices(TileArena *arena, const TileTarget *target, Devices *devices) {
    int most = (int)tile_backend_of(target)->most_devices;
    for (devices->count = 0; devices->count < most; devices->count++)
        if (!(devices->names[devices->count] = device_of(arena, target, devices->count))) return;
}

/* The numbers of the devices that the row is for, as a set. "avx512, *": all that run such code. */
static uint64_t devices_of(const char *row, const TileTarget *target, const Devices *here) {
    size_t length = strlen(target->name);
    uint64_t found = 0;
    if (strncmp(row, target->name, length) == 0 && strcmp(row + length, ", *") == 0) return UINT64_MAX;
    for (int i = 0; i < here->count; i++) found |= (uint64_t)(strcmp(row, here->names[i]) == 0) << i;
    return found;
}

/* ---- sizes ---- */

static bool is_name(const char *text) {
    size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    return length && !text[length] && !(*text >= '0' && *text <= '9');
}

static bool has_size(const TileTunedKernel *tuned, const TileImageSignature *signature, const char *name) {
    for (uint32_t i = 0; i < tuned->size_count; i++)
        if (strcmp(tuned->sizes[i].name, name) == 0) return true;
    for (uint32_t i = 0; i < signature->static_count; i++)
        if (strcmp(signature->statics[i].name, name) == 0) return true;
    return false;
}

/* Dimensions with a name and no fixed value, each once. */
static void find_sizes(const TileImageSignature *signature, TileTunedKernel *tuned) {
    for (uint32_t i = 0; i < signature->parameter_count; i++) {
        const TileImageParameter *parameter = &signature->parameters[i];
        for (uint16_t k = 0; k < parameter->rank && tuned->size_count < TILE_MAX_TUNED_SIZES; k++)
            if (is_name(parameter->dimensions[k]) && !has_size(tuned, signature, parameter->dimensions[k]))
                tuned->sizes[tuned->size_count++] = (TileTunedSize){parameter->dimensions[k], (uint16_t)i, k};
    }
}

static uint8_t power_of(int64_t extent) {
    return extent < 2 ? 0 : (uint8_t)(64 - __builtin_clzll((uint64_t)extent - 1));
}

/* ---- the value of a static ---- */

static TileHostType static_type(const TileImageSignature *signature, uint32_t index) {
    const TileImageStatic *fixed = &signature->statics[index];
    return fixed->axis < 0 ? (TileHostType)signature->parameters[fixed->parameter].type : TILE_HOST_I64;
}

TileBinding tile_static_binding(const TileImageSignature *signature, uint32_t index, int64_t value) {
    TileBinding binding = {.name = signature->statics[index].name, .kind = TILE_BINDING_INTEGER, .integer = value};
    TileHostType type = static_type(signature, index);
    if (type == TILE_HOST_BOOL) {
        binding.kind = TILE_BINDING_BOOL;
        binding.truth = value != 0;
    } else if (tile_host_type_class(type) == TILE_HOST_CLASS_FLOAT) {
        binding.kind = TILE_BINDING_FLOAT;
        memcpy(&binding.number, &value, sizeof value);
    }
    return binding;
}

/* ---- instances as text ---- */

static void add_item(TileText *text, const TileBinding *binding) {
    tile_text_format(text, "%s%s=", text->length ? " " : "", binding->name);
    tile_binding_print(text, binding);
}

static bool is_tuned_name(const TileKernelInfo *kernel, const TileTarget *target, const char *name) {
    for (size_t i = 0; i < kernel->tunes.count; i++)
        if (is_for(&kernel->tunes.items[i], target) && strcmp(kernel->tunes.items[i].name, name) == 0) return true;
    return false;
}

/* A name of the tune clauses that the export or a setting binds; NULL: none. */
static const char *decided_name(const TileInput *input, const TileKernelInfo *kernel) {
    for (size_t i = 0; i < kernel->chosen.count; i++)
        if (is_tuned_name(kernel, input->target, kernel->chosen.items[i].name)) return kernel->chosen.items[i].name;
    for (size_t i = 0; i < input->binding_count; i++)
        if (is_tuned_name(kernel, input->target, input->bindings[i].name)) return input->bindings[i].name;
    return NULL;
}

/* The bindings of the export and the settings, then those of the arguments. */
static const char *instance_of(TileArena *arena, const TileInput *input, const TileKernelInfo *kernel,
                               const TileImageSignature *signature, const uint8_t *generics, const int64_t *statics) {
    TileText text = {.arena = arena};
    for (size_t i = 0; i < kernel->chosen.count; i++) add_item(&text, &kernel->chosen.items[i]);
    for (size_t i = 0; i < input->binding_count; i++) {
        bool chosen = !tile_kernel_has_setting(kernel, input->bindings[i].name);
        for (size_t k = 0; k < kernel->chosen.count; k++)
            chosen |= strcmp(kernel->chosen.items[k].name, input->bindings[i].name) == 0;
        if (!chosen) add_item(&text, &input->bindings[i]);
    }
    for (uint32_t i = 0; i < signature->generic_count; i++)
        tile_text_format(&text, "%s%s=%s", text.length ? " " : "", signature->generics[i].name,
                         tile_scalar_name((TileScalar)generics[i]));
    for (uint32_t i = 0; i < signature->static_count; i++) {
        TileBinding binding = tile_static_binding(signature, i, statics[i]);
        add_item(&text, &binding);
    }
    return text.length ? tile_tuning_clean(arena, tile_text_get(&text)) : "-";
}

static const char *shape_of(TileArena *arena, const TileTunedKernel *tuned, const uint8_t *sizes) {
    TileText text = {.arena = arena};
    for (uint32_t i = 0; i < tuned->size_count; i++)
        tile_text_format(&text, "%s%s<=%llu", i ? " " : "", tuned->sizes[i].name, 1ULL << sizes[i]);
    return text.length ? tile_text_get(&text) : "-";
}

/* ---- rows for a kernel ---- */

/* The value after `NAME=` in the text, up to the next blank; NULL if the name is missing. */
static const char *value_of(TileArena *arena, const char *text, const char *name, const char *sign) {
    size_t length = strlen(name), sign_length = strlen(sign);
    while (*text) {
        size_t item = strcspn(text, " ");
        if (item > length + sign_length && strncmp(text, name, length) == 0 &&
            strncmp(text + length, sign, sign_length) == 0)
            return tile_arena_string(arena, text + length + sign_length, item - length - sign_length);
        text += item + (text[item] == ' ');
    }
    return NULL;
}

static bool read_static(const TileImageSignature *signature, uint32_t index, const char *text, int64_t *value) {
    TileBinding binding = tile_binding_read(signature->statics[index].name, text);
    TileHostType type = static_type(signature, index);
    double number = binding.kind == TILE_BINDING_FLOAT ? binding.number : (double)binding.integer;
    bool is_float = tile_host_type_class(type) == TILE_HOST_CLASS_FLOAT;
    if (type == TILE_HOST_BOOL) {
        *value = binding.truth;
        return binding.kind == TILE_BINDING_BOOL;
    }
    *value = binding.integer;
    if (is_float) memcpy(value, &number, sizeof number);
    return binding.kind == TILE_BINDING_INTEGER || (is_float && binding.kind == TILE_BINDING_FLOAT);
}

static bool read_instance(const TileInput *input, const TileKernelInfo *kernel, const TileImageSignature *signature,
                          const TileTuningRow *given, TileTunedRow *row) {
    for (uint32_t i = 0; i < signature->generic_count; i++) {
        const char *value = value_of(input->arena, given->instance, signature->generics[i].name, "=");
        TileScalar type;
        if (!value || !tile_scalar_find(value, strlen(value), &type)) return false;
        row->generics[i] = (uint8_t)type;
    }
    for (uint32_t i = 0; i < signature->static_count; i++) {
        const char *value = value_of(input->arena, given->instance, signature->statics[i].name, "=");
        if (!value || !read_static(signature, i, value, &row->statics[i])) return false;
    }
    const char *same = instance_of(input->arena, input, kernel, signature, row->generics, row->statics);
    return strcmp(same, given->instance) == 0;
}

static bool read_sizes(TileArena *arena, const TileTunedKernel *tuned, const char *shape, TileTunedRow *row) {
    for (uint32_t i = 0; i < tuned->size_count; i++) {
        const char *value = value_of(arena, shape, tuned->sizes[i].name, "<=");
        if (!value) return false;
        row->sizes[i] = power_of(strtoll(value, NULL, 10));
    }
    return strcmp(shape_of(arena, tuned, row->sizes), shape) == 0;
}

/* Does the row have each name of the clauses once, and no other? */
static bool read_constants(const TileInput *input, const TileKernelInfo *kernel, const char *text, TileTunedRow *row) {
    TILE_LIST(TileBinding) constants = {0};
    size_t wanted = 0, items = 1;
    for (size_t i = 0; i < kernel->tunes.count; i++) {
        const TileKernelTune *tune = &kernel->tunes.items[i];
        if (!is_for(tune, input->target)) continue;
        const char *value = value_of(input->arena, text, tune->name, "=");
        wanted++;
        if (!value) return false;
        TileBinding binding = {.name = tile_arena_string(input->arena, tune->name, strlen(tune->name)),
                               .kind = TILE_BINDING_INTEGER,
                               .integer = strtoll(value, NULL, 10)};
        tile_list_push(input->arena, &constants, binding);
    }
    for (const char *at = text; *at; at++) items += *at == ' ';
    row->constants = constants.items;
    row->constant_count = constants.count;
    return items == wanted;
}

typedef TILE_LIST(TileBinding) Bindings;

static void add_choices(TileUnit *unit, const TileKernelInfo *kernel, const TileImageSignature *signature,
                        const uint8_t *generics, Bindings *all) {
    const TileInput *input = unit->input;
    for (size_t i = 0; i < kernel->chosen.count; i++) tile_list_push(unit->arena, all, kernel->chosen.items[i]);
    for (size_t i = 0; i < input->binding_count; i++) tile_list_push(unit->arena, all, input->bindings[i]);
    for (uint32_t i = 0; i < signature->generic_count; i++)
        tile_list_push(unit->arena, all,
                       (TileBinding){.name = signature->generics[i].name,
                                     .kind = TILE_BINDING_TYPE,
                                     .type = (TileScalar)generics[i]});
}

static tile_status find_points(TileUnit *unit, const TileKernelInfo *kernel, const Bindings *bindings, size_t most,
                               TileTunePoints *found) {
    TileLowerOptions options = {
        .target = tile_unit_backend(unit)->family->name, .bindings = bindings->items, .binding_count = bindings->count};
    return tile_list_points(unit->diagnostics, kernel->ast, kernel->item, &options, most, found);
}

tile_status tile_tuned_points(TileUnit *unit, const TileKernelInfo *kernel, const TileImageSignature *signature,
                              const uint8_t *generics, TileTunePoints *points) {
    Bindings bindings = {0};
    add_choices(unit, kernel, signature, generics, &bindings);
    return find_points(unit, kernel, &bindings, MOST_POINTS, points);
}

bool tile_tuned_is_free(const TileInput *input, const TileKernelInfo *kernel, const TileImageSignature *signature) {
    return !signature->refused && !decided_name(input, kernel);
}

/* A row written by hand may have constants that `where` excludes. */
static bool is_point(TileUnit *unit, const TileKernelInfo *kernel, const TileImageSignature *signature,
                     const TileTunedRow *row) {
    Bindings bindings = {0};
    TileTunePoints found;
    add_choices(unit, kernel, signature, row->generics, &bindings);
    for (size_t i = 0; i < row->constant_count; i++) tile_list_push(unit->arena, &bindings, row->constants[i]);
    return find_points(unit, kernel, &bindings, 1, &found) == TILE_OK && found.points.count == 1;
}

static void add_rows(TileUnit *unit, const TileKernelInfo *kernel, const TileImageSignature *signature,
                     const TileTuning *tuning, const char *file, const Devices *here, bool pinned,
                     TileTunedKernel *tuned) {
    const TileInput *input = unit->input;
    const char *space = space_of(unit->arena, kernel, input->target);
    if (!space || signature->refused || decided_name(input, kernel)) return;
    for (size_t i = 0; i < tuning->rows.count; i++) {
        const TileTuningRow *given = &tuning->rows.items[i];
        TileTunedRow row = {
            .file = file, .pinned = pinned || given->pinned, .devices = devices_of(given->device, input->target, here)};
        if (strcmp(given->kernel, kernel->item->name) != 0 || strcmp(given->space, space) != 0 || !row.devices)
            continue;
        if (read_instance(input, kernel, signature, given, &row) &&
            read_sizes(input->arena, tuned, given->shape, &row) &&
            read_constants(input, kernel, given->constants, &row) && is_point(unit, kernel, signature, &row))
            tile_list_push(input->arena, &tuned->rows, row);
    }
}

/* Pinned rows win. */
static void sort_rows(TileArena *arena, TileTunedKernel *tuned) {
    TileTunedRow *sorted = TILE_NEW_ARRAY(arena, TileTunedRow, tuned->rows.count);
    size_t count = 0;
    for (int pinned = 1; pinned >= 0; pinned--)
        for (size_t i = 0; i < tuned->rows.count; i++)
            if (tuned->rows.items[i].pinned == pinned) sorted[count++] = tuned->rows.items[i];
    tuned->rows.items = sorted;
}

/* ---- loading ---- */

typedef struct Sources {
    TileTuning own, named;
    const char *own_path, *named_path;
} Sources;

const char *tile_tuned_path(const TileCodeCache *cache, TileArena *arena) {
    return cache ? tile_arena_format(arena, "%s/tuning.txt", tile_code_cache_folder(cache)) : NULL;
}

static tile_status read_named(TileUnit *unit, const char *path, Sources *sources) {
    sources->named_path = tile_arena_string(unit->input->arena, path, strlen(path));
    FILE *file = fopen(path, "re");
    if (!file) {
        tile_text_format(&unit->message, "cannot read %s, which the setting `tuning` names", path);
        return TILE_NOT_FOUND;
    }
    fclose(file);
    TILE_TRY(tile_tuning_read(&sources->named, path, &unit->message));
    if (!sources->named.bad_line) return TILE_OK;
    tile_text_format(&unit->message, "%s, which the setting `tuning` names: line %u is no row of a tuning file", path,
                     sources->named.bad_line);
    return TILE_INVALID_ARGUMENT;
}

static void read_own(TileUnit *unit, Sources *sources) {
    const TileCompiler *compiler = unit->input->compiler;
    TileText why = {.arena = unit->arena};
    sources->own_path = tile_tuned_path(compiler->cache, unit->input->arena);
    if (!sources->own_path) return;
    if (tile_tuning_read(&sources->own, sources->own_path, &why) != TILE_OK)
        tile_log(&compiler->settings, TILE_LOG_COMPILE, "%s", tile_text_get(&why));
    else if (sources->own.bad_line)
        tile_log(&compiler->settings, TILE_LOG_COMPILE, "%s: line %u is no row of a tuning file", sources->own_path,
                 sources->own.bad_line);
}

static tile_status load_guarded(TileUnit *unit, const TileProgramInfo *program) {
    TileInput *input = unit->input;
    const char *named = input->compiler->settings.tuning;
    Sources sources = {.own = {.arena = unit->arena}, .named = {.arena = unit->arena}};
    if (!input->target || (named && strcmp(named, "off") == 0)) return TILE_OK;
    if (named) TILE_TRY(read_named(unit, named, &sources));
    read_own(unit, &sources);
    if (!sources.own.rows.count && !sources.named.rows.count) return TILE_OK;
    Devices here;
    find_devices(unit->arena, input->target, &here);
    TileTunedKernel *tuned = TILE_NEW_ARRAY(input->arena, TileTunedKernel, program->kernels.count);
    size_t found = 0;
    for (size_t i = 0; i < program->kernels.count; i++) {
        const TileKernelInfo *kernel = &program->kernels.items[i];
        find_sizes(&input->signatures[i], &tuned[i]);
        add_rows(unit, kernel, &input->signatures[i], &sources.named, sources.named_path, &here, true, &tuned[i]);
        add_rows(unit, kernel, &input->signatures[i], &sources.own, sources.own_path, &here, false, &tuned[i]);
        sort_rows(input->arena, &tuned[i]);
        found += tuned[i].rows.count;
    }
    if (found) input->tuned = tuned;
    return TILE_OK;
}

tile_status tile_tuned_load(TileUnit *unit, const TileProgramInfo *program) {
    tile_arena_set_guard(unit->input->arena, &unit->guard);
    tile_status status = load_guarded(unit, program);
    tile_arena_set_guard(unit->input->arena, NULL);
    return status;
}

/* ---- choosing ---- */

static bool fits(const TileTunedRow *row, const TileImageSignature *signature, const TileImageRequest *request,
                 const uint8_t *sizes, uint32_t size_count, int device) {
    uint64_t differ = !(row->devices >> device & 1);
    for (uint32_t i = 0; i < signature->generic_count; i++) differ |= row->generics[i] ^ request->generics[i];
    for (uint32_t i = 0; i < signature->static_count; i++) differ |= (uint64_t)(row->statics[i] ^ request->statics[i]);
    for (uint32_t i = 0; i < size_count; i++) differ |= row->sizes[i] ^ sizes[i];
    return differ == 0;
}

static void read_powers(const TileTunedKernel *tuned, const TileView *views, uint8_t *sizes) {
    for (uint32_t i = 0; i < tuned->size_count; i++)
        sizes[i] = power_of(views[tuned->sizes[i].parameter].extent[tuned->sizes[i].axis]);
}

uint32_t tile_tuned_find(const TileInput *input, uint32_t kernel, const TileImageRequest *request,
                         const TileView *views) {
    const TileTunedKernel *tuned = input->tuned ? &input->tuned[kernel] : NULL;
    uint8_t sizes[TILE_MAX_TUNED_SIZES];
    if (!tuned || !tuned->rows.count) return 0;
    int device = tile_views_device(&input->signatures[kernel], views);
    if (device < 0 || device >= TILE_CUDA_MOST_DEVICES) return 0; /* the launch reports the error */
    read_powers(tuned, views, sizes);
    for (size_t i = 0; i < tuned->rows.count; i++)
        if (fits(&tuned->rows.items[i], &input->signatures[kernel], request, sizes, tuned->size_count, device))
            return (uint32_t)i + 1;
    return 0;
}

/* ---- the search space ---- */

typedef struct Question {
    const TileKernel *kernel;
    const TileImageRequest *request;
    const TileView *views;
    TileArena *arena;
    TileTunedSpace *space;
} Question;

static tile_status list_points(TileUnit *unit, const TileKernelInfo *kernel, const Question *question) {
    TileTunePoints found;
    TILE_TRY(tile_tuned_points(unit, kernel, question->kernel->signature, question->request->generics, &found));
    TileTunePoints *points = &question->space->points;
    *points = (TileTunePoints){.names = {0}};
    for (size_t i = 0; i < found.names.count; i++)
        tile_list_push(question->arena, &points->names,
                       tile_arena_string(question->arena, found.names.items[i], strlen(found.names.items[i])));
    for (size_t i = 0; i < found.points.count; i++)
        tile_list_push(question->arena, &points->points,
                       tile_arena_copy(question->arena, found.points.items[i], found.names.count * sizeof(int64_t)));
    return TILE_OK;
}

static tile_status refuse(TileUnit *unit, const TileKernelInfo *kernel, const char *name) {
    if (name)
        tile_text_format(&unit->message, "%s: `%s` is set; a search needs all names of the tune clause free",
                         kernel->name, name);
    else
        tile_text_format(&unit->message, "%s has no tune clause for %s: nothing can be tuned", kernel->name,
                         unit->input->target ? unit->input->target->name : "the interpreter");
    return TILE_INVALID_ARGUMENT;
}

static tile_status find_space(TileUnit *unit, void *state) {
    const Question *question = state;
    const TileInput *input = unit->input;
    const TileImageSignature *signature = question->kernel->signature;
    TileProgramInfo program = {0};
    TileTunedKernel tuned = {.size_count = 0};
    uint8_t sizes[TILE_MAX_TUNED_SIZES];
    TILE_TRY(tile_unit_list(unit, &program));
    const TileKernelInfo *kernel = &program.kernels.items[question->kernel->index];
    const char *space = input->target ? space_of(question->arena, kernel, input->target) : NULL;
    const char *decided = space ? decided_name(input, kernel) : NULL;
    if (!space || decided) return refuse(unit, kernel, decided);
    find_sizes(signature, &tuned);
    read_powers(&tuned, question->views, sizes);
    TileTuningRow *key = &question->space->key;
    const char *device = device_of(question->arena, input->target, tile_views_device(signature, question->views));
    *key = (TileTuningRow){.kernel = tile_arena_string(question->arena, kernel->item->name, strlen(kernel->item->name)),
                           .space = space,
                           .instance = instance_of(question->arena, input, kernel, signature,
                                                   question->request->generics, question->request->statics),
                           .shape = shape_of(question->arena, &tuned, sizes),
                           .device = device ? device : "-"};
    return list_points(unit, kernel, question);
}

tile_status tile_tuned_space(const TileLibrary *library, const TileKernel *kernel, const TileArg *arguments,
                             size_t count, TileArena *arena, TileTunedSpace *space, TileError *error,
                             TileReport **report) {
    TileView views[TILE_MAX_PARAMETERS];
    TileImageRequest request;
    TILE_TRY(tile_arguments_read(kernel->signature, arguments, count, false, views, &request, error));
    tile_variant_request(kernel, views, &request);
    Question question = {kernel, &request, views, arena, space};
    return tile_unit_run(tile_library_source(library), find_space, &question, report);
}
