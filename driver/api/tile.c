/* The public API: text to library, files, and code that a library compiles on demand. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/compile/image.h"
#include "driver/compile/choice.h"
#include "launch/clock.h"
#include "launch/options.h"

/* ---- code on demand ---- */

typedef struct Demand {
    const TileImageSignature *signature;
    const TileImageRequest *request;
    TileImageCode *code;
} Demand;

/* A repeated search may find other constants, unless they are pinned. */
static tile_status add_tuned(TileUnit *unit, const TileTunedRow *row, const char *kernel, TileBinding *bindings,
                             size_t *count) {
    if (!row) return TILE_OK;
    if (unit->input->compiler->settings.deterministic && !row->pinned && !row->predicted) {
        tile_text_format(&unit->message,
                         "%s has constants for such arguments in %s that are not pinned, which the setting "
                         "`deterministic` refuses; pin them (`tilec tune --pin`), or set TILE_TUNING=off",
                         kernel, row->file);
        return TILE_UNSUPPORTED;
    }
    for (size_t i = 0; i < row->constant_count; i++) bindings[(*count)++] = row->constants[i];
    return TILE_OK;
}

static tile_status build_demand(TileUnit *unit, void *state) {
    Demand *demand = state;
    const TileImageSignature *signature = demand->signature;
    TileProgramInfo program = {0};
    if (demand->code) demand->code->destroy(demand->code);
    demand->code = NULL;
    TILE_TRY(tile_unit_list(unit, &program));
    const TileKernelInfo *kernel = &program.kernels.items[signature - unit->input->signatures];
    uint32_t number = (uint32_t)(signature - unit->input->signatures);
    const TileTunedRow *row = tile_chosen_row(unit->input, number, demand->request->tuned);
    TileBinding *bindings = TILE_NEW_ARRAY(unit->arena, TileBinding,
                                           TILE_MAX_GENERICS + TILE_MAX_STATICS + (row ? row->constant_count : 0));
    size_t count = 0;
    for (uint32_t i = 0; i < signature->generic_count; i++)
        bindings[count++] = (TileBinding){.name = signature->generics[i].name,
                                          .kind = TILE_BINDING_TYPE,
                                          .type = (TileScalar)demand->request->generics[i]};
    for (uint32_t i = 0; i < signature->static_count; i++)
        bindings[count++] = tile_static_binding(signature, i, demand->request->statics[i]);
    TILE_TRY(add_tuned(unit, row, kernel->name, bindings, &count));
    TileImageJob job = {.unit = unit,
                        .kernel = kernel,
                        .signature = signature,
                        .request = demand->request,
                        .bindings = bindings,
                        .binding_count = count,
                        .schedule = tile_chosen_schedule(unit->input, number, demand->request->tuned)};
    return tile_image_build(&job, &demand->code);
}

static tile_status compile_on_demand(void *state, uint32_t kernel, const TileImageRequest *request,
                                     TileImageCode **code, TileReport **report) {
    TileInput *input = state;
    Demand demand = {&input->signatures[kernel], request, NULL};
    tile_status status = tile_unit_run(input, build_demand, &demand, report);
    if (status == TILE_OK)
        *code = demand.code;
    else if (demand.code)
        demand.code->destroy(demand.code);
    return status;
}

static void destroy_input(void *state) {
    tile_choices_destroy(((TileInput *)state)->choices);
    tile_input_destroy(state);
}

/* ---- libraries ---- */

static tile_status check_program(TileUnit *unit, void *state) {
    TileProgramInfo program = {0};
    TILE_TRY(tile_unit_check(unit, &program));
    TILE_TRY(tile_unit_check_settings(unit, &program));
    TILE_TRY(tile_signatures_create(unit, &program, true, state));
    TILE_TRY(tile_tuned_load(unit, &program));
    TILE_TRY(tile_choices_create(unit, &program));
    tile_input_step(unit->input, TILE_STEP_CHECK, &unit->clock);
    return TILE_OK;
}

static tile_status check_target(const TileInput *input, TileReport **report) {
    if (!input->target || (input->flags & TILE_COMPILE_EMULATE) || input->foreign) return TILE_OK;
    const char *obstacle = tile_target_obstacle(input->target);
    if (!obstacle) obstacle = tile_target_limit(input->target, input->compiler->settings.cpu_capability);
    if (!obstacle) return TILE_OK;
    char text[256];
    snprintf(text, sizeof text, "the target '%s' cannot run here: %s", input->target->name, obstacle);
    *report = tile_report_from_text(text);
    return TILE_UNAVAILABLE;
}

static tile_status compile(TileCompiler *compiler, const char *text, size_t length, const TileCompileOptions *options,
                           TileLibrary **library, TileReport **report) {
    TileInput *input;
    uint32_t count = 0;
    TILE_TRY(tile_input_create(compiler, text, length, options, &input, report));
    tile_status status = check_target(input, report);
    if (status == TILE_OK) status = tile_unit_run(input, check_program, &count, report);
    if (status != TILE_OK) {
        destroy_input(input);
        return status;
    }
    TileImageSource source = {.compile = compile_on_demand,
                              .destroy = destroy_input,
                              .state = input,
                              .settings = &compiler->settings,
                              .choose = input->tuned || input->choices ? tile_choose : NULL};
    return tile_library_create(input->signatures, count, source, library);
}

static void hand_over(TileReport *report, TileReport **wanted) {
    if (wanted)
        *wanted = report;
    else
        tile_report_destroy(report);
}

tile_status tile_compile(TileCompiler *compiler, const char *text, size_t length, const TileCompileOptions *options,
                         TileLibrary **library, TileReport **report) {
    int saved = errno;
    TileReport *own = NULL;
    tile_status status = library ? compile(compiler, text, length, options, library, &own) : TILE_INVALID_ARGUMENT;
    hand_over(own, report);
    errno = saved;
    return status;
}

TileMaskedCounts tile_library_masked(const TileLibrary *library) {
    TileInput *input = tile_library_source(library);
    return (TileMaskedCounts){atomic_load(&input->masked_lanes), atomic_load(&input->masked_data)};
}

TileStepTimes tile_library_times(const TileLibrary *library) {
    TileInput *input = tile_library_source(library);
    TileStepTimes times;
    for (int i = 0; i < TILE_STEP_COUNT; i++) times.seconds[i] = (double)atomic_load(&input->step_ns[i]) * 1e-9;
    return times;
}

typedef struct NameQuestion {
    const char *name;
    bool found;
} NameQuestion;

static tile_status find_setting(TileUnit *unit, void *state) {
    NameQuestion *question = state;
    TileProgramInfo program = {0};
    TILE_TRY(tile_unit_list(unit, &program));
    question->found = tile_unit_names_setting(&program, question->name);
    return TILE_OK;
}

bool tile_library_has_setting(const TileLibrary *library, const char *name) {
    NameQuestion question = {.name = name};
    return tile_unit_run(tile_library_source(library), find_setting, &question, NULL) != TILE_OK || question.found;
}

/* ---- files ---- */

bool tile_standard_text_at(size_t index, TileStandardText *text) {
    if (!text) return false;
    for (const TileStandardFile *file = tile_standard_library; file->name; file++) {
        if (index--) continue;
        *text = (TileStandardText){file->name, file->text, file->length};
        return true;
    }
    return false;
}

/* Allocates *text. */
static tile_status read_source(const char *path, char **text, size_t *length) {
    FILE *file = fopen(path, "rb");
    if (!file) return errno == ENOENT ? TILE_NOT_FOUND : TILE_IO;
    size_t capacity = 1 << 16;
    char *data = malloc(capacity);
    *length = 0;
    while (data) {
        *length += fread(data + *length, 1, capacity - *length, file);
        if (*length < capacity || capacity > TILE_MOST_SOURCE_BYTES) break;
        capacity *= 2;
        char *larger = realloc(data, capacity);
        if (!larger) free(data);
        data = larger;
    }
    bool failed = ferror(file) || *length > TILE_MOST_SOURCE_BYTES;
    fclose(file);
    if (data && !failed)
        *text = data;
    else
        free(data);
    return !data ? TILE_OUT_OF_MEMORY : failed ? TILE_IO : TILE_OK;
}

/* Is it the file of a module of the standard library, by its name? Then it is somewhere else: in the compiler. */
static const char *library_words(const char *path, char *words, size_t size) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t length = strcspn(name, ".");
    for (const TileStandardFile *file = tile_standard_library; file->name; file++)
        if (strncmp(file->name, name, length) == 0 && (!file->name[length] || file->name[length] == '.')) {
            snprintf(words, size, "; kernels of the library's `%.*s` are reached from a file that says `import %.*s`, as FILE:%.*s.KERNEL",
                     (int)length, name, (int)length, name, (int)length, name);
            return words;
        }
    return "";
}

tile_status tile_compile_file(TileCompiler *compiler, const char *path, const TileCompileOptions *given,
                              TileLibrary **library, TileReport **report) {
    int saved = errno;
    char *text = NULL, words[4600], hint[300];
    size_t length = 0;
    if (report) *report = NULL;
    TileCompileOptions options;
    if (!compiler || !path || !library || !tile_options_read(&options, sizeof options, given))
        return TILE_INVALID_ARGUMENT;
    options.struct_size = sizeof options;
    if (!options.file) options.file = path;
    tile_status status = read_source(path, &text, &length);
    if (status == TILE_OK) {
        status = tile_compile(compiler, text, length, &options, library, report);
        free(text);
    } else {
        bool missing = status == TILE_NOT_FOUND;
        snprintf(words, sizeof words, "cannot read %s: %s%s", path, missing ? "there is no such file" : tile_status_text(status),
                 missing ? library_words(path, hint, sizeof hint) : "");
        hand_over(tile_report_from_text(words), report);
    }
    errno = saved;
    return status;
}
