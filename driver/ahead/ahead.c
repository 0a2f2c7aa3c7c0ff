/* The public API for code made ahead of time: texts to one object, a header and a description. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "driver/ahead/ahead.h"
#include "driver/compile/backend.h"
#include "launch/image_bytes.h"
#include "launch/options.h"
#include "object/share.h"

/* ---- options ---- */

static tile_status add_target(TileBuild *build, const char *name) {
    const TileTarget *target;
    TILE_TRY(tile_target_choose(name, NULL, &target, &build->message));
    if (!target) {
        tile_text_format(&build->message, "the target '%s' has no code to link", name);
        return TILE_INVALID_ARGUMENT;
    }
    const TileBackend *backend = tile_backend_of(target);
    if (!backend->linked && (build->options.flags & TILE_BUILD_BARE)) {
        tile_text_format(&build->message, "--bare is code of CPUs: `tilec emit %s` prints that of '%s'",
                         tile_stage_name(backend->listing), name);
        return TILE_INVALID_ARGUMENT;
    }
    for (size_t i = 0; i < build->targets.count; i++) {
        const TileTarget *other = build->targets.items[i];
        if (other == target) return TILE_OK;
        if (!backend->linked || !tile_ahead_is_linked(other) || other->architecture == target->architecture) continue;
        tile_text_format(&build->message, "'%s' and '%s' are for different kinds of CPU; an object holds code for one",
                         other->name, name);
        return TILE_INVALID_ARGUMENT;
    }
    /* Linked targets first; each family in the order of its table, better ones later. */
    size_t at = build->targets.count;
    tile_list_push(build->arena, &build->targets, target);
    for (; at > 0; at--) {
        const TileTarget *other = build->targets.items[at - 1];
        if (tile_ahead_is_linked(other) != backend->linked ? !backend->linked : other < target) break;
        build->targets.items[at] = other;
    }
    build->targets.items[at] = target;
    return TILE_OK;
}

/* The target of the object's own functions. */
static const TileTarget *host_target(const TileBuild *build) {
    const TileTarget *first = build->targets.items[0];
    return tile_ahead_is_linked(first) ? first : tile_backend_cpu.family->target_at(0);
}

static tile_status choose_targets(TileBuild *build) {
    static const char *const usual[] = {"avx2", "avx512"};
    const TileBuildOptions *options = &build->options;
    const char *const *names = options->target_count ? options->targets : usual;
    size_t count = options->target_count ? options->target_count : sizeof usual / sizeof *usual;
    for (size_t i = 0; i < count; i++) TILE_TRY(add_target(build, names[i]));
    return TILE_OK;
}

static tile_status refuse_named(TileBuild *build, const char *what, const char *name) {
    tile_text_format(&build->message, "%s '%s'", what, name);
    return TILE_INVALID_ARGUMENT;
}

static tile_status check_found(TileBuild *build) {
    const TileBuildOptions *options = &build->options;
    for (size_t i = 0; i < options->export_count; i++)
        if (!build->export_found[i]) return refuse_named(build, "no file has the kernel of", options->exports[i]);
    for (size_t i = 0; i < options->setting_count; i++)
        if (!build->setting_used[i])
            return refuse_named(build, "no kernel has a generic, constant, static or tune name",
                                options->settings[i].name);
    if (build->exports.count) return TILE_OK;
    tile_text_add(&build->message, "nothing is exported: write `export softmax[f32]` in the file, or --export "
                                   "'softmax[f32]'");
    return TILE_INVALID_ARGUMENT;
}

/* ---- symbols ---- */

/* The label, usable in a symbol. */
static const char *variant_word(TileBuild *build, const TileImageVariant *variant) {
    size_t number = 0;
    if (strcmp(variant->label, "general") == 0 || strcmp(variant->label, "contiguous") == 0) return variant->label;
    while (build->variants.items[number].label != variant->label) number++;
    return tile_arena_format(build->arena, "v%zu", number);
}

/* softmax_f32_avx2_general_0: a global symbol when bare, a local one for debuggers otherwise. */
static void name_phases(TileBuild *build, const TileAheadExport *export, TileAheadCode *code) {
    const char *target = build->targets.items[code->variant.target]->name;
    code->symbols = TILE_NEW_ARRAY(build->arena, const char *, code->variant.code.phase_count);
    for (uint32_t i = 0; i < code->variant.code.phase_count; i++)
        code->symbols[i] = tile_arena_format(build->arena, "%s_%s_%s_%u", export->symbol, target,
                                             variant_word(build, &code->variant), i);
}

static TileMergeInput merge_input(TileBuild *build, const TileAheadExport *export, TileAheadCode *code) {
    name_phases(build, export, code);
    uint32_t count = code->variant.code.phase_count;
    TileMergeName *names = TILE_NEW_ARRAY(build->arena, TileMergeName, count);
    for (uint32_t i = 0; i < count; i++)
        names[i] = (TileMergeName){tile_arena_format(build->arena, "%s.%u", export->function, i), code->symbols[i]};
    return (TileMergeInput){.object = code->object.data,
                            .size = code->object.size,
                            .names = names,
                            .name_count = count,
                            .hides = !(build->options.flags & TILE_BUILD_BARE)};
}

/* ---- the image and its glue ---- */

/* The export's linked code, or with `data` its code for devices. */
static TileImageKernel make_kernel(TileBuild *build, const TileAheadExport *export, bool data) {
    TileImageKernel kernel = {.symbol = export->symbol, .signature = export->signature};
    TileImageVariant *variants = TILE_NEW_ARRAY(build->arena, TileImageVariant, export->made.count);
    for (size_t i = 0; i < export->made.count; i++)
        if ((export->made.items[i].variant.binary != NULL) == data)
            variants[kernel.variant_count++] = export->made.items[i].variant;
    kernel.variants = variants;
    kernel.signature.gpu = data;
    return kernel;
}

static TileImage make_image(TileBuild *build) {
    TileImageKernel *kernels = TILE_NEW_ARRAY(build->arena, TileImageKernel, 2 * build->exports.count);
    const char **targets = TILE_NEW_ARRAY(build->arena, const char *, build->targets.count);
    uint32_t count = 0;
    for (size_t i = 0; i < build->targets.count; i++) targets[i] = build->targets.items[i]->name;
    for (size_t i = 0; i < build->exports.count && tile_ahead_has_linked(build); i++)
        kernels[count++] = make_kernel(build, build->exports.items[i], false);
    for (size_t i = 0; i < build->exports.count && tile_ahead_has_data(build); i++)
        kernels[count++] = make_kernel(build, build->exports.items[i], true);
    return (TileImage){targets, kernels, (uint32_t)build->targets.count, count};
}

static TileGlueFunction glue_function(TileBuild *build, const TileAheadExport *export) {
    const TileImageSignature *signature = &export->signature;
    TileGlueParameter *parameters = TILE_NEW_ARRAY(build->arena, TileGlueParameter, signature->parameter_count);
    for (uint32_t i = 0; i < signature->parameter_count; i++)
        parameters[i] = (TileGlueParameter){signature->parameters[i].kind == TILE_PARAMETER_TENSOR,
                                            (TileScalar)signature->parameters[i].type};
    return (TileGlueFunction){export->symbol, parameters, signature->parameter_count};
}

static tile_status emit_glue(TileBuild *build, const char *const *entries, size_t entry_count, TileCode *code) {
    TileText bytes = {.arena = build->arena};
    TileImage image = make_image(build);
    TileBridge *bridge;
    tile_image_write(&image, &bytes);
    TileGlueFunction *functions = TILE_NEW_ARRAY(build->arena, TileGlueFunction, build->exports.count);
    for (size_t i = 0; i < build->exports.count; i++) functions[i] = glue_function(build, build->exports.items[i]);
    TileGlue glue = {.version = TILE_IMAGE_VERSION,
                     .image = bytes.text,
                     .image_bytes = bytes.length,
                     .entries = entries,
                     .entry_count = entry_count,
                     .functions = functions,
                     .function_count = build->exports.count,
                     .plugin = build->options.flags & TILE_BUILD_SHARED};
    TILE_TRY(tile_compiler_take_bridge(build->compiler, &bridge));
    tile_status status = tile_bridge_emit_glue(bridge, host_target(build), &glue, code);
    if (status != TILE_OK) tile_text_add(&build->message, tile_bridge_message(bridge));
    tile_compiler_give_bridge(build->compiler, bridge);
    return status;
}

/* ---- the object ---- */

static tile_status merge_objects(TileBuild *build, TileCode *glue) {
    TILE_LIST(TileMergeInput) inputs = {0};
    TILE_LIST(const char *) entries = {0};
    for (size_t i = 0; i < build->exports.count; i++) {
        TileAheadExport *export = build->exports.items[i];
        for (size_t k = 0; k < export->made.count; k++) {
            TileAheadCode *code = &export->made.items[k];
            if (code->variant.binary) continue;
            tile_list_push(build->arena, &inputs, merge_input(build, export, code));
            for (uint32_t p = 0; p < code->variant.code.phase_count; p++)
                tile_list_push(build->arena, &entries, code->symbols[p]);
        }
    }
    if (!(build->options.flags & TILE_BUILD_BARE)) {
        TILE_TRY(emit_glue(build, entries.items, entries.count, glue));
        TileMergeInput input = {.object = glue->data, .size = glue->size};
        tile_list_push(build->arena, &inputs, input);
    }
    return tile_objects_merge(inputs.items, inputs.count, &build->object, &build->message);
}

static tile_status make_shared(TileBuild *build) {
    TileShareOptions options = {.name = build->options.name ? build->options.name : "kernels.so",
                                .needed = TILE_LAUNCH_LIBRARY};
    TileCode shared;
    TILE_TRY(tile_object_share(&build->object, &options, &shared, &build->message));
    tile_code_release(&build->object);
    build->object = shared;
    return TILE_OK;
}

static tile_status make_object(TileBuild *build) {
    TileCode glue = {0};
    tile_status status = merge_objects(build, &glue);
    tile_code_release(&glue);
    if (status == TILE_OK && (build->options.flags & TILE_BUILD_SHARED)) status = make_shared(build);
    return status;
}

/* ---- the whole way ---- */

static tile_status run_build(TileBuild *build, const TileBuildSource *sources, TileReport **report) {
    const TileBuildOptions *options = &build->options;
    if ((options->flags & TILE_BUILD_BARE) && (options->flags & TILE_BUILD_SHARED)) {
        tile_text_add(&build->message, "bare code is linked by whoever launches it: -shared does not go with --bare");
        return TILE_INVALID_ARGUMENT;
    }
    build->setting_used = TILE_NEW_ARRAY(build->arena, bool, options->setting_count);
    build->export_found = TILE_NEW_ARRAY(build->arena, bool, options->export_count);
    TILE_TRY(choose_targets(build));
    TILE_TRY(tile_ahead_variants(build));
    for (size_t i = 0; i < build->source_count; i++) TILE_TRY(tile_ahead_list(build, &sources[i], report));
    TILE_TRY(check_found(build));
    for (size_t i = 0; i < build->exports.count; i++)
        TILE_TRY(tile_ahead_compile(build, build->exports.items[i], report));
    TILE_TRY(make_object(build));
    tile_ahead_write_header(build);
    tile_ahead_write_json(build);
    return TILE_OK;
}

static tile_status run_guarded(TileBuild *build, const TileBuildSource *sources, TileReport **report) {
    jmp_buf guard;
    if (setjmp(guard)) return TILE_OUT_OF_MEMORY;
    build->guard = &guard;
    tile_arena_set_guard(build->arena, &guard);
    tile_status status = run_build(build, sources, report);
    if (build->message.length) *report = tile_report_join(*report, tile_report_from_text(build->message.text));
    tile_arena_set_guard(build->arena, NULL);
    build->guard = NULL;
    return status;
}

static TileBuild *create_build(TileCompiler *compiler, size_t source_count) {
    TileBuild *build = calloc(1, sizeof *build);
    if (!build) return NULL;
    build->arena = tile_arena_create(NULL);
    if (!build->arena) {
        free(build);
        return NULL;
    }
    build->message.arena = build->arena;
    build->source_count = source_count;
    build->compiler = compiler;
    tile_compiler_retain(compiler);
    return build;
}

static bool are_sources(const TileBuildSource *sources, size_t count) {
    if (!count || !tile_is_list(sources, count)) return false;
    for (size_t i = 0; i < count; i++)
        if (!sources[i].text) return false;
    return true;
}

static bool are_texts(const char *const *texts, size_t count) {
    if (!tile_is_list(texts, count)) return false;
    for (size_t i = 0; i < count; i++)
        if (!texts[i]) return false;
    return true;
}

static bool are_options(const TileBuildOptions *options) {
    const uint32_t flags = TILE_BUILD_NO_GENERAL | TILE_BUILD_BARE | TILE_BUILD_SHARED | TILE_BUILD_LINES |
                           TILE_BUILD_DEBUG | TILE_BUILD_NO_CONTRACT;
    return !(options->flags & ~flags) && are_texts(options->targets, options->target_count) &&
           are_texts(options->exports, options->export_count) && are_texts(options->variants, options->variant_count) &&
           tile_are_settings(options->settings, options->setting_count);
}

tile_status tile_build(TileCompiler *compiler, const TileBuildSource *sources, size_t source_count,
                       const TileBuildOptions *given, TileBuild **result, TileReport **report) {
    int saved = errno;
    TileReport *own = NULL;
    TileBuildOptions options;
    if (report) *report = NULL;
    if (!compiler || !result || !are_sources(sources, source_count) ||
        !tile_options_read(&options, sizeof options, given) || !are_options(&options))
        return TILE_INVALID_ARGUMENT;
    TileBuild *build = create_build(compiler, source_count);
    if (!build) return TILE_OUT_OF_MEMORY;
    build->options = options;
    tile_status status = run_guarded(build, sources, &own);
    if (status == TILE_OK)
        *result = build;
    else
        tile_build_destroy(build);
    if (report)
        *report = own;
    else
        tile_report_destroy(own);
    errno = saved;
    return status;
}

void tile_build_destroy(TileBuild *build) {
    if (!build) return;
    for (size_t i = 0; i < build->exports.count; i++)
        for (size_t k = 0; k < build->exports.items[i]->made.count; k++)
            tile_code_release(&build->exports.items[i]->made.items[k].object);
    for (size_t i = 0; i < build->inputs.count; i++) tile_input_destroy(build->inputs.items[i]);
    tile_code_release(&build->object);
    tile_compiler_destroy(build->compiler);
    tile_arena_destroy(build->arena);
    free(build);
}

const void *tile_build_object(const TileBuild *build, size_t *size) {
    if (size) *size = build ? build->object.size : 0;
    return build && size ? build->object.data : NULL;
}

const char *tile_build_header(const TileBuild *build) { return build ? build->header : NULL; }
const char *tile_build_json(const TileBuild *build) { return build ? build->json : NULL; }

const char *tile_build_dependency(const TileBuild *build, size_t index) {
    return build && index < build->dependencies.count ? build->dependencies.items[index] : NULL;
}
