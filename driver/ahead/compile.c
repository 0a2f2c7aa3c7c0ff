/* From texts to exports, and from an export to code for each variant and target. */
#include <stdlib.h>
#include <string.h>

#include "driver/ahead/ahead.h"
#include "driver/compile/backend.h"
#include "driver/compile/ir_text.h"
#include "launch/guard.h"
#include "parser/syntax/syntax.h"

/* The build's arena may run out of memory inside of a unit: it then has the unit's guard. */
static tile_status run_unit(TileBuild *build, TileInput *input, tile_status (*body)(TileUnit *unit, void *state),
                            void *state, TileReport **report) {
    TileReport *said = NULL;
    tile_status status = tile_unit_run(input, body, state, &said);
    tile_arena_set_guard(build->arena, build->guard);
    *report = tile_report_join(*report, said);
    return status;
}

static tile_status create_input(TileBuild *build, const TileBuildSource *source, const TileTarget *target,
                                TileInput **input, TileReport **report) {
    TileCompileOptions options = {.struct_size = sizeof options,
                                  .file = source->file,
                                  .target = target ? target->name : "interp",
                                  .settings = build->options.settings,
                                  .setting_count = build->options.setting_count};
    if (build->options.flags & TILE_BUILD_DEBUG) options.flags |= TILE_COMPILE_DEBUG;
    if (build->options.flags & TILE_BUILD_NO_CONTRACT) options.flags |= TILE_COMPILE_NO_CONTRACT;
    tile_status status = tile_input_create(build->compiler, source->text, source->length, &options, input, report);
    if (status != TILE_OK) return status;
    (*input)->lines = build->options.flags & TILE_BUILD_LINES;
    (*input)->ahead = true;
    tile_list_push(build->arena, &build->inputs, *input);
    return TILE_OK;
}

/* ---- listing ---- */

typedef struct Listing {
    TileBuild *build;
    const TileBuildSource *source;
    size_t export_count, dependency_count; /* before this text */
    bool *taken;                           /* for each requested export: the text has its kernel */
} Listing;

static const char *keep(TileBuild *build, const char *text) {
    return text ? tile_arena_string(build->arena, text, strlen(text)) : NULL;
}

static const TileKernelInfo *find_kernel(const TileProgramInfo *program, const char *name) {
    for (size_t i = 0; i < program->kernels.count; i++)
        if (strcmp(program->kernels.items[i].name, name) == 0) return &program->kernels.items[i];
    return NULL;
}

/* With several texts, an export belongs to the one that has its kernel; with one text, its checker reports errors. */
static bool concerns(const TileBuild *build, const TileUnit *unit, const char *text) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    if (build->source_count == 1) return true;
    size_t length = strspn(text, letters);
    const char *name = tile_intern(unit->ast->names, text, length);
    const TileAst *module = text[length] == '.' ? tile_find_module(unit->ast, name) : unit->ast;
    if (text[length] == '.')
        name = tile_intern(unit->ast->names, text + length + 1, strspn(text + length + 1, letters));
    const TileItem *item = module ? tile_map_get(&module->named, name) : NULL;
    return item && item->kind == TILE_ITEM_KERNEL;
}

/* `taken`: for each requested export, whether the text has its kernel; or NULL. */
static tile_status graft_exports(const TileBuild *build, TileUnit *unit, bool *taken) {
    const TileBuildOptions *options = &build->options;
    for (size_t i = 0; i < options->export_count; i++) {
        bool found = concerns(build, unit, options->exports[i]);
        if (taken) taken[i] = found;
        if (found) TILE_TRY(tile_parse_exports(unit->diagnostics, unit->ast, TILE_EXPORT_PLACE, options->exports[i]));
    }
    return TILE_OK;
}

/* Does the export, a setting or any variant bind the name? (The general variant is left out where it does not.) */
static bool has_value(const Listing *listing, const TileExportInfo *export, const char *name) {
    const TileBuild *build = listing->build;
    for (size_t i = 0; i < export->bindings.count; i++)
        if (strcmp(export->bindings.items[i].name, name) == 0) return true;
    for (size_t i = 0; i < build->options.setting_count; i++)
        if (strcmp(build->options.settings[i].name, name) == 0) return true;
    for (size_t i = 0; i < build->variants.count; i++)
        if (tile_ahead_value(&build->variants.items[i], name)) return true;
    return false;
}

static void refuse_open(TileUnit *unit, const TileExportInfo *export, const char *name, const char *value) {
    TileDiagnostic *d =
        tile_diagnose(unit->diagnostics, TILE_DIAGNOSTIC_EXPORT_OPEN, export->span, name, export->kernel);
    tile_diagnostic_note(unit->diagnostics, d, (TileSpan){0}, "write `%s[%s%s = %s]`", export->kernel,
                         export->bindings.count ? ".., " : "", name, value);
}

static void check_class(TileUnit *unit, const TileKernelGeneric *generic, const TileExportInfo *export) {
    for (size_t i = 0; i < export->bindings.count; i++) {
        const TileBinding *binding = &export->bindings.items[i];
        if (strcmp(binding->name, generic->name) != 0) continue;
        bool fits = binding->kind == TILE_BINDING_TYPE && (generic->types >> binding->type & 1);
        const char *type = binding->kind == TILE_BINDING_TYPE ? tile_scalar_name(binding->type) : "the value";
        if (fits) continue;
        tile_diagnose(unit->diagnostics, TILE_DIAGNOSTIC_CLASS_MISMATCH, export->span, type, generic->name,
                      export->kernel);
    }
}

static void check_values(const Listing *listing, TileUnit *unit, const TileKernelInfo *kernel,
                         const TileExportInfo *export) {
    for (size_t i = 0; i < kernel->generics.count; i++) {
        const TileKernelGeneric *generic = &kernel->generics.items[i];
        if (generic->kind == TILE_GENERIC_TYPE) check_class(unit, generic, export);
        if (generic->has_default || has_value(listing, export, generic->name)) continue;
        refuse_open(unit, export, generic->name, generic->kind == TILE_GENERIC_TYPE ? "f32" : "..");
    }
    for (size_t i = 0; i < kernel->statics.count; i++)
        if (!has_value(listing, export, kernel->statics.items[i]))
            refuse_open(unit, export, kernel->statics.items[i], "..");
    for (size_t i = 0; i < kernel->parameters.count; i++) {
        const TileKernelParameter *parameter = &kernel->parameters.items[i];
        if (parameter->is_const && !parameter->is_static && !has_value(listing, export, parameter->name))
            refuse_open(unit, export, parameter->name, "..");
    }
}

/* The parser checks names within one text only. */
static void check_name(const TileBuild *build, TileUnit *unit, const TileExportInfo *export) {
    for (size_t i = 0; i < build->exports.count; i++)
        if (strcmp(build->exports.items[i]->symbol, export->name) == 0)
            tile_diagnose(unit->diagnostics, TILE_DIAGNOSTIC_EXPORT_NAME, export->span, export->name,
                          "is the name of two exports");
}

static void add_export(Listing *listing, const TileKernelInfo *kernel, const TileExportInfo *export) {
    TileBuild *build = listing->build;
    TileAheadExport *added = TILE_NEW(build->arena, TileAheadExport);
    added->source = listing->source;
    added->symbol = keep(build, export->name);
    added->kernel = keep(build, kernel->name);
    added->function = keep(build, kernel->item ? kernel->item->name : kernel->name);
    added->doc = keep(build, kernel->doc);
    for (size_t i = 0; i < export->bindings.count; i++) {
        TileBinding binding = export->bindings.items[i];
        binding.name = keep(build, binding.name);
        if (binding.kind == TILE_BINDING_FUNCTION) binding.function = keep(build, binding.function);
        tile_list_push(build->arena, &added->bindings, binding);
    }
    tile_list_push(build->arena, &build->exports, added);
}

static void keep_dependencies(Listing *listing, const TileUnit *unit) {
    for (size_t i = 1; i < unit->diagnostics->files.count; i++) {
        const char *name = unit->diagnostics->files.items[i].name;
        if (i == unit->ast->file || *name == '<' || strcmp(name, TILE_EXPORT_PLACE) == 0) continue;
        tile_list_push(listing->build->arena, &listing->build->dependencies, keep(listing->build, name));
    }
}

static tile_status list_text(Listing *listing, TileUnit *unit, TileProgramInfo *program) {
    TILE_TRY(tile_check_module(unit->context, unit->diagnostics, unit->ast, unit->verify, NULL, NULL));
    keep_dependencies(listing, unit);
    TILE_TRY(graft_exports(listing->build, unit, listing->taken));
    return tile_list_kernels(unit->diagnostics, unit->ast, program);
}

static tile_status list_ir(Listing *listing, TileUnit *unit, TileProgramInfo *program) {
    const TileBuildOptions *options = &listing->build->options;
    tile_ir_text_list(unit, program);
    return tile_ir_text_exports(unit, options->exports, options->export_count, listing->taken, program);
}

static tile_status list_exports(TileUnit *unit, void *state) {
    Listing *listing = state;
    TileBuild *build = listing->build;
    TileProgramInfo program = {0};
    uint32_t before = unit->diagnostics->error_count;
    tile_arena_set_guard(build->arena, &unit->guard);
    build->exports.count = listing->export_count;
    build->dependencies.count = listing->dependency_count;
    TILE_TRY(unit->ast ? list_text(listing, unit, &program) : list_ir(listing, unit, &program));
    for (size_t i = 0; i < program.exports.count; i++) {
        const TileExportInfo *export = &program.exports.items[i];
        if (build->options.export_count && unit->ast && export->span.file == unit->ast->file) continue;
        const TileKernelInfo *kernel = find_kernel(&program, export->kernel);
        check_values(listing, unit, kernel, export);
        check_name(build, unit, export);
        add_export(listing, kernel, export);
    }
    for (size_t i = 0; i < build->options.setting_count; i++)
        for (size_t k = 0; k < program.kernels.count; k++)
            if (tile_kernel_has_setting(&program.kernels.items[k], build->options.settings[i].name))
                build->setting_used[i] = true;
    return unit->diagnostics->error_count == before ? TILE_OK : TILE_INVALID_SOURCE;
}

tile_status tile_ahead_list(TileBuild *build, const TileBuildSource *source, TileReport **report) {
    Listing listing = {.build = build,
                       .source = source,
                       .export_count = build->exports.count,
                       .dependency_count = build->dependencies.count,
                       .taken = TILE_NEW_ARRAY(build->arena, bool, build->options.export_count)};
    TileInput *input;
    TILE_TRY(create_input(build, source, NULL, &input, report));
    tile_status status = run_unit(build, input, list_exports, &listing, report);
    for (size_t i = 0; i < build->options.export_count; i++) build->export_found[i] |= listing.taken[i];
    return status;
}

/* ---- compiling ---- */

typedef struct Job {
    TileBuild *build;
    TileAheadExport *export;
    const TileAheadVariant *variant;
    const TileImageSignature *signature;
    TileImageVariant made;
    TileCode object;
} Job;

static tile_status find_signature(TileUnit *unit, const TileProgramInfo *program, Job *job,
                                  const TileKernelInfo **kernel) {
    uint32_t count;
    *kernel = find_kernel(program, job->export->kernel);
    TILE_TRY(tile_signatures_create(unit, program, true, &count));
    job->signature = &unit->input->signatures[*kernel - program->kernels.items];
    if (!job->signature->refused) return TILE_OK;
    tile_text_add(&unit->message, job->signature->refused);
    return TILE_INVALID_ARGUMENT;
}

/* Binds the signature's statics to the variant's values. */
static tile_status bind_statics(TileUnit *unit, Job *job, TileBinding *bindings) {
    const TileImageSignature *signature = job->signature;
    int64_t *values = TILE_NEW_ARRAY(job->build->arena, int64_t, signature->static_count);
    for (uint32_t i = 0; i < signature->static_count; i++) {
        const TileImageStatic *fixed = &signature->statics[i];
        const char *value = tile_ahead_value(job->variant, fixed->name);
        if (!value) {
            tile_text_format(&unit->message, "variant '%s': %s needs a value for '%s'; write '%s = ..'",
                             job->variant->label, job->export->symbol, fixed->name, fixed->name);
            return TILE_INVALID_ARGUMENT;
        }
        bindings[i] = tile_binding_read(fixed->name, value);
        TILE_TRY(tile_ahead_static(unit, signature, i, &bindings[i], &values[i]));
    }
    job->made.statics = values;
    return TILE_OK;
}

/* NAME = value must name a static. */
static tile_status check_demands(TileUnit *unit, const Job *job, const TileKernelInfo *kernel) {
    for (size_t i = 0; i < job->variant->demands.count; i++) {
        const TileAheadDemand *demand = &job->variant->demands.items[i];
        if (demand->kind == TILE_AHEAD_CONDITION && !unit->ast) {
            tile_text_format(&unit->message, "variant '%s': text of the IR has no conditions such as '%s'",
                             job->variant->label, demand->value);
            return TILE_UNSUPPORTED;
        }
        if (demand->kind == TILE_AHEAD_CONDITION)
            TILE_TRY(tile_parse_condition(unit->diagnostics, unit->ast, kernel->ast, kernel->item->name,
                                          TILE_VARIANT_PLACE, demand->value));
        if (demand->kind != TILE_AHEAD_VALUE) continue;
        bool known = false;
        for (uint32_t k = 0; k < job->signature->static_count; k++)
            known |= strcmp(job->signature->statics[k].name, demand->name) == 0;
        if (known) continue;
        tile_text_format(&unit->message,
                         "variant '%s': '%s' is no static dimension or const parameter of %s that is still open; a "
                         "condition is written '%s == %s'",
                         job->variant->label, demand->name, job->export->symbol, demand->name, demand->value);
        return TILE_INVALID_ARGUMENT;
    }
    return TILE_OK;
}

/* ---- code that is data ---- */

static tile_status assemble(TileUnit *unit, const TileBuild *build, TileImageBinary *binary) {
    const void *cubin = NULL;
    size_t size = 0;
    TileError error = {.status = TILE_OK};
    if (!build->options.assemble) return TILE_OK;
    tile_status status = build->options.assemble(build->options.assemble_host, binary->ptx, &cubin, &size, &error);
    if (status != TILE_OK) {
        tile_text_format(&unit->message, "%s", *error.message ? error.message : tile_status_text(status));
        return status;
    }
    binary->cubin = tile_arena_copy(build->arena, cubin, size);
    binary->cubin_bytes = (uint32_t)size;
    return TILE_OK;
}

static tile_status keep_binary(TileUnit *unit, Job *job, const TileFunc *func) {
    TileArena *arena = job->build->arena;
    TileImageBinary *binary = TILE_NEW(arena, TileImageBinary);
    const TileTarget *target = unit->input->target;
    uint32_t count = job->made.code.phase_count;
    const TileCudaPhase *phases = tile_image_list_phases(unit, func, arena, count);
    TileImageEntry *entries = TILE_NEW_ARRAY(arena, TileImageEntry, count);
    for (uint32_t i = 0; i < count; i++)
        entries[i] = (TileImageEntry){.symbol = phases[i].symbol,
                                      .threads = phases[i].threads,
                                      .waits = phases[i].waits,
                                      .resident = phases[i].resident,
                                      .map_count = phases[i].map_count,
                                      .maps = phases[i].maps};
    *binary = (TileImageBinary){.ptx = tile_arena_string(arena, unit->code.data, unit->code.size),
                                .ptx_bytes = (uint32_t)unit->code.size,
                                .capability = target->compute_capability,
                                .alone = target->exact_capability,
                                .entries = entries,
                                .entry_count = count};
    job->made.binary = binary;
    return assemble(unit, job->build, binary);
}

static tile_status compile_body(TileUnit *unit, void *state) {
    Job *job = state;
    TileProgramInfo program = {0};
    const TileKernelInfo *kernel;
    TileImageRequest request;
    tile_arena_set_guard(job->build->arena, &unit->guard);
    tile_code_release(&job->object);
    job->made = (TileImageVariant){.label = job->variant->label};
    if (unit->ast) TILE_TRY(graft_exports(job->build, unit, NULL)); /* which bring kernels of imports */
    if (unit->ast)
        TILE_TRY(tile_list_kernels(unit->diagnostics, unit->ast, &program));
    else
        tile_ir_text_list(unit, &program);
    TILE_TRY(find_signature(unit, &program, job, &kernel));
    TILE_TRY(check_demands(unit, job, kernel));
    TileBinding statics[TILE_MAX_STATICS];
    TILE_TRY(bind_statics(unit, job, statics));
    TILE_TRY(tile_ahead_grant(unit, job->variant, job->signature, &request));
    TileImageJob image = {.unit = unit,
                          .kernel = kernel,
                          .signature = job->signature,
                          .request = &request,
                          .bindings = statics,
                          .binding_count = job->signature->static_count,
                          .kind = tile_unit_backend(unit)->code,
                          .code = &job->made.code,
                          .arena = job->build->arena};
    TILE_TRY(tile_image_run(&image, TILE_IMAGE_EMIT));
    if (!tile_ahead_is_linked(unit->input->target)) return keep_binary(unit, job, image.func);
    job->object = unit->code;
    unit->code = (TileCode){0};
    return TILE_OK;
}

/* Number of demands that the code makes of its arguments. */
static unsigned count_demands(const TileImageVariant *variant, const TileImageSignature *signature) {
    unsigned count = signature->static_count;
    for (uint32_t i = 0; i < signature->parameter_count; i++)
        count += (unsigned)__builtin_popcountll(variant->code.need[i]);
    for (uint32_t i = 0; i < variant->code.require_count; i++) count += variant->code.requires[i].chooses;
    return count;
}

/* Do both serve exactly the same arguments, on the same target? */
static bool same_demands(const TileImageVariant *a, const TileImageVariant *b, const TileImageSignature *signature) {
    for (uint32_t i = 0; i < a->code.require_count; i++)
        if (a->code.requires[i].chooses) return false;
    for (uint32_t i = 0; i < b->code.require_count; i++)
        if (b->code.requires[i].chooses) return false;
    return a->target == b->target &&
           memcmp(a->code.need, b->code.need, signature->parameter_count * sizeof *a->code.need) == 0 &&
           memcmp(a->statics, b->statics, signature->static_count * sizeof *a->statics) == 0;
}

static void name_entries(TileArena *arena, TileAheadCode *code) {
    const TileImageBinary *binary = code->variant.binary;
    code->symbols = TILE_NEW_ARRAY(arena, const char *, binary->entry_count);
    for (uint32_t i = 0; i < binary->entry_count; i++) code->symbols[i] = binary->entries[i].symbol;
}

/* Keeps the list sorted, most specialised first. Code with the same demands as other code in the list is dropped. */
static void add_variant(Job *job) {
    TileAheadExport *export = job->export;
    TileArena *arena = job->build->arena;
    size_t at = export->made.count;
    TileAheadCode code = {.variant = job->made, .object = job->object, .asked = job->variant->demands.count};
    job->object = (TileCode){0};
    if (job->made.binary) name_entries(arena, &code);
    for (size_t i = 0; i < export->made.count; i++) {
        TileAheadCode *same = &export->made.items[i];
        if (!same_demands(&same->variant, &code.variant, job->signature)) continue;
        if (code.asked < same->asked) { /* the additional demands made no difference */
            same->variant.label = code.variant.label;
            same->asked = code.asked;
        }
        tile_code_release(&code.object);
        return;
    }
    tile_list_push(arena, &export->made, code);
    unsigned demands = count_demands(&code.variant, job->signature);
    for (; at > 0 && count_demands(&export->made.items[at - 1].variant, job->signature) < demands; at--)
        export->made.items[at] = export->made.items[at - 1];
    export->made.items[at] = code;
}

/* The default general variant is left out where a static of the kernel has no value. */
static bool is_impossible(const TileBuild *build, const TileAheadVariant *variant,
                          const TileImageSignature *signature) {
    bool asked = false;
    for (size_t i = 0; i < build->options.variant_count; i++)
        asked |= strcmp(build->options.variants[i], "general") == 0;
    if (asked || strcmp(variant->label, "general") != 0 || !signature) return false;
    for (uint32_t i = 0; i < signature->static_count; i++)
        if (!tile_ahead_value(variant, signature->statics[i].name)) return true;
    return false;
}

static tile_status compile_for(TileBuild *build, TileAheadExport *export, uint32_t target, TileReport **report) {
    TileInput *input;
    TILE_TRY(create_input(build, export->source, build->targets.items[target], &input, report));
    tile_arena_set_guard(input->arena, build->guard);
    tile_input_bind(input, export->bindings.items, export->bindings.count);
    tile_arena_set_guard(input->arena, NULL);
    Job job = {.build = build, .export = export};
    for (size_t i = 0; i < build->variants.count; i++) {
        job.variant = &build->variants.items[i];
        if (is_impossible(build, job.variant, job.signature)) continue;
        TileReport *said = NULL;
        tile_status status = run_unit(build, input, compile_body, &job, &said);
        if (status != TILE_OK) {
            tile_code_release(&job.object);
            *report = tile_report_join(*report, said);
            return status;
        }
        tile_report_destroy(said); /* warnings were already reported by the listing */
        job.made.target = target;
        export->signature = *job.signature;
        add_variant(&job);
    }
    return TILE_OK;
}

tile_status tile_ahead_compile(TileBuild *build, TileAheadExport *export, TileReport **report) {
    for (uint32_t i = 0; i < build->targets.count; i++) TILE_TRY(compile_for(build, export, i, report));
    return TILE_OK;
}
