/* The public compiler object, and inputs: copies of a text and its options. */
#include "driver/compile/compiler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "driver/compile/own_pass.h"
#include "driver/compile/unit.h"
#include "lang/ir/text.h"
#include "launch/clock.h"
#include "launch/environment.h"
#include "launch/options.h"
#include "launch/settings.h"

static void keep_text(TileArena *arena, const char **text) {
    if (*text) *text = tile_arena_string(arena, *text, strlen(*text));
}

static bool are_options(const TileCompilerOptions *options) {
    if (!tile_is_list(options->import_paths, options->import_path_count)) return false;
    for (size_t i = 0; i < options->import_path_count; i++)
        if (!options->import_paths[i]) return false;
    return tile_is_list(options->passes, options->pass_count); /* tile_compiler_add_pass checks each */
}

bool tile_limit_at(size_t index, TileLimitInfo *info) {
    if (index >= TILE_LIMIT_COUNT || !info) return false;
    TileLimitId id = (TileLimitId)index;
    *info = (TileLimitInfo){tile_limit_name(id), tile_limit_words(id), tile_usual_limits.most[id]};
    return true;
}

static bool read_limits(TileLimits *limits, const TileCompilerOptions *options) {
    *limits = tile_usual_limits;
    if (!tile_is_list(options->limits, options->limit_count)) return false;
    for (size_t i = 0; i < options->limit_count; i++) {
        const TileLimit *limit = &options->limits[i];
        TileLimitId id;
        if (!limit->name || !tile_limit_find(limit->name, strlen(limit->name), &id)) return false;
        limits->most[id] = limit->value;
    }
    return true;
}

tile_status tile_compiler_create(const TileCompilerOptions *given, TileCompiler **compiler) {
    TileCompilerOptions options;
    if (!compiler || !tile_options_read(&options, sizeof options, given) || !are_options(&options))
        return TILE_INVALID_ARGUMENT;
    TileCompiler *created = calloc(1, sizeof *created);
    if (!created) return TILE_OUT_OF_MEMORY;
    if (!tile_settings_merge(&created->settings, options.settings) || !read_limits(&created->limits, &options)) {
        free(created);
        return TILE_INVALID_ARGUMENT;
    }
    jmp_buf guard;
    created->arena = tile_arena_create(NULL);
    if (!created->arena || setjmp(guard)) {
        tile_arena_destroy(created->arena);
        free(created);
        return TILE_OUT_OF_MEMORY;
    }
    tile_arena_set_guard(created->arena, &guard);
    const char **paths = TILE_NEW_ARRAY(created->arena, const char *, options.import_path_count);
    for (size_t i = 0; i < options.import_path_count; i++)
        paths[i] = tile_arena_string(created->arena, options.import_paths[i], strlen(options.import_paths[i]));
    keep_text(created->arena, &created->settings.cpu_capability);
    keep_text(created->arena, &created->settings.tuning);
    tile_arena_set_guard(created->arena, NULL);
    created->import_paths = paths;
    created->import_path_count = options.import_path_count;
    created->debugger = tile_variable_switch(TILE_VARIABLE_DEBUGGER, &created->settings);
    /* Code of the cache has neither lines nor variables. */
    if (!created->debugger) created->cache = tile_code_cache_open(&created->settings, NULL, 0);
    atomic_store(&created->references, 1);
    pthread_mutex_init(&created->mutex, NULL);
    tile_status status = TILE_OK;
    for (size_t i = 0; i < options.pass_count && status == TILE_OK; i++)
        status = tile_compiler_add_pass(created, options.passes[i], NULL);
    if (status == TILE_OK)
        *compiler = created;
    else
        tile_compiler_destroy(created);
    return status;
}

void tile_compiler_emulate(TileCompiler *compiler, const TileForeign *foreign, unsigned vector_scale) {
    compiler->foreign = foreign;
    compiler->vector_scale = vector_scale;
}

void tile_compiler_warn_of(TileCompiler *compiler, const char *kernel) { compiler->warn_of = kernel; }

void tile_compiler_schedule(TileCompiler *compiler, uint64_t seed) { compiler->schedule_seed = seed; }
void tile_compiler_divide(TileCompiler *compiler, unsigned ranges) { compiler->ranges = ranges; }
void tile_compiler_slack(TileCompiler *compiler, const TileSlack *slack) { compiler->slack = slack; }

void tile_compiler_observe(TileCompiler *compiler, const struct TileExecutionObserver *observer) {
    compiler->observer = observer;
}

void tile_compiler_mark_padding(TileCompiler *compiler, bool mark) { compiler->mark_padding = mark; }

void tile_compiler_rename(TileCompiler *compiler, uint64_t seed) { compiler->names = seed; }

void tile_compiler_between(TileCompiler *compiler, const struct TilePassInfo *const *passes, size_t count) {
    compiler->between = passes;
    compiler->between_count = count;
}

void tile_compiler_behind(TileCompiler *compiler, const struct TilePassInfo *const *passes, size_t count) {
    compiler->behind = passes;
    compiler->behind_count = count;
}

void tile_compiler_hold(TileCompiler *compiler, void (*hold)(bool held)) {
    compiler->hold = hold;
    if (compiler->cache) tile_code_cache_hold(compiler->cache, hold);
}

void tile_compiler_retain(TileCompiler *compiler) { atomic_fetch_add(&compiler->references, 1); }

void tile_compiler_destroy(TileCompiler *compiler) {
    if (!compiler || atomic_fetch_sub(&compiler->references, 1) > 1) return;
    for (int i = 0; i < compiler->idle_count; i++) tile_bridge_destroy(compiler->idle[i]);
    pthread_mutex_destroy(&compiler->mutex);
    tile_code_cache_close(compiler->cache);
    tile_own_pass_unload(compiler);
    tile_arena_destroy(compiler->arena);
    free(compiler);
}

tile_status tile_compiler_take_bridge(TileCompiler *compiler, TileBridge **bridge) {
    *bridge = NULL;
    pthread_mutex_lock(&compiler->mutex);
    if (compiler->idle_count) *bridge = compiler->idle[--compiler->idle_count];
    pthread_mutex_unlock(&compiler->mutex);
    return *bridge ? TILE_OK : tile_bridge_create(bridge);
}

void tile_compiler_give_bridge(TileCompiler *compiler, TileBridge *bridge) {
    pthread_mutex_lock(&compiler->mutex);
    bool kept = compiler->idle_count < TILE_IDLE_BRIDGES;
    if (kept) compiler->idle[compiler->idle_count++] = bridge;
    pthread_mutex_unlock(&compiler->mutex);
    if (!kept) tile_bridge_destroy(bridge);
}

/* ---- inputs ---- */

static void copy_settings(TileInput *input, const TileCompileOptions *options) {
    TileBinding *bindings = TILE_NEW_ARRAY(input->arena, TileBinding, options->setting_count);
    for (size_t i = 0; i < options->setting_count; i++) {
        const TileSetting *setting = &options->settings[i];
        const char *name = tile_arena_string(input->arena, setting->name, strlen(setting->name));
        bindings[i] = tile_binding_read(name, tile_arena_string(input->arena, setting->value, strlen(setting->value)));
    }
    input->bindings = bindings;
    input->binding_count = options->setting_count;
}

static tile_status fill_input(TileInput *input, const char *text, size_t length, const TileCompileOptions *options,
                              TileReport **report) {
    jmp_buf guard;
    if (setjmp(guard)) return TILE_OUT_OF_MEMORY;
    tile_arena_set_guard(input->arena, &guard);
    TileText why = {.arena = input->arena};
    tile_status status =
        tile_target_choose(options->target, input->compiler->settings.cpu_capability, &input->target, &why);
    if (status != TILE_OK) {
        *report = tile_report_from_text(tile_text_get(&why));
        return status;
    }
    const char *file = options->file ? options->file : "<text>";
    input->file = tile_arena_string(input->arena, file, strlen(file));
    input->text = tile_arena_string(input->arena, text, length);
    input->length = length;
    input->is_ir = tile_text_is_ir(text, length);
    input->flags = options->flags;
    input->lines = input->compiler->debugger;
    input->foreign = input->compiler->foreign;
    input->vector_scale = input->compiler->vector_scale;
    input->schedule_seed = input->compiler->schedule_seed;
    input->ranges = input->compiler->ranges;
    input->mark_padding = input->compiler->mark_padding;
    input->slack = input->compiler->slack;
    copy_settings(input, options);
    tile_arena_set_guard(input->arena, NULL);
    return TILE_OK;
}

bool tile_are_settings(const TileSetting *settings, size_t count) {
    if (!tile_is_list(settings, count)) return false;
    for (size_t i = 0; i < count; i++)
        if (!settings[i].name || !settings[i].value) return false;
    return true;
}

static bool are_input_options(const TileCompileOptions *options) {
    const uint32_t flags = TILE_COMPILE_NO_CONTRACT | TILE_COMPILE_DEBUG | TILE_COMPILE_EMULATE;
    return !(options->flags & ~flags) && tile_are_settings(options->settings, options->setting_count);
}

tile_status tile_input_create(TileCompiler *compiler, const char *text, size_t length, const TileCompileOptions *given,
                              TileInput **input, TileReport **report) {
    TileCompileOptions options;
    *report = NULL;
    if (!compiler || !text || !tile_options_read(&options, sizeof options, given) || !are_input_options(&options))
        return TILE_INVALID_ARGUMENT;
    if (length > TILE_MOST_SOURCE_BYTES) {
        *report = tile_report_from_text("the text is longer than 256 MiB");
        return TILE_INVALID_ARGUMENT;
    }
    TileInput *created = calloc(1, sizeof *created);
    if (!created) return TILE_OUT_OF_MEMORY;
    tile_compiler_retain(compiler);
    created->compiler = compiler;
    created->arena = tile_arena_create(NULL);
    tile_status status = created->arena ? fill_input(created, text, length, &options, report) : TILE_OUT_OF_MEMORY;
    if (status == TILE_OK)
        *input = created;
    else
        tile_input_destroy(created);
    return status;
}

void tile_input_destroy(TileInput *input) {
    tile_arena_destroy(input->arena);
    tile_compiler_destroy(input->compiler);
    free(input);
}

void tile_input_step(TileInput *input, TileStep step, uint64_t *clock) {
    uint64_t now = tile_clock_ns();
    atomic_fetch_add_explicit(&input->step_ns[step], now - *clock, memory_order_relaxed);
    *clock = now;
}

void tile_input_bind(TileInput *input, const TileBinding *bindings, size_t count) {
    TileBinding *all = TILE_NEW_ARRAY(input->arena, TileBinding, input->binding_count + count);
    memcpy(all, input->bindings, input->binding_count * sizeof *all);
    if (count) memcpy(all + input->binding_count, bindings, count * sizeof *all);
    input->bindings = all;
    input->binding_count += count;
}
