/* The pass runner. */
#include "lowering/pass.h"

#include <string.h>
#include <time.h>

#include "lang/ir/text.h"
#include "lang/ir/verify.h"
#include "lowering/analyses.h"
#include "lowering/excess.h"
#include "lowering/rename.h"

TilePassContext tile_pass_context(TileModule *module, TileArena *scratch, const TileTarget *target) {
    TilePassContext context = {.module = module,
                               .scratch = scratch,
                               .target = target,
                               .limits = &tile_usual_limits,
                               .message = {.arena = scratch}};
    tile_map_init(&context.indices, scratch);
    return context;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static bool is_named(const char *name, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

TilePassReport tile_pass_report(TileArena *arena) {
    return (TilePassReport){.arena = arena, .dump = {.arena = arena}, .reproducer = {.arena = arena}};
}

typedef struct Run {
    TilePassContext *context;
    const TilePassOptions *options;
    TilePassReport *report;
    uint64_t done;       /* number of pairs of a pass and a function so far */
    const char *before;  /* with verify: the module's text before the current pass */
    TileKeptNames *kept; /* with restore: the names to restore */
} Run;

static const char *module_text(Run *run) {
    TileText text = {.arena = run->context->scratch};
    tile_module_print(&text, run->context->module, 0);
    return tile_text_get(&text);
}

static void write_reproducer(Run *run, const TilePassInfo *info) {
    TileText *text = &run->report->reproducer;
    tile_text_format(text, "// RUN: tile-opt %%s --passes=%s", info->name);
    if (run->context->target) tile_text_format(text, " --target=%s", run->context->target->name);
    tile_text_format(text, "\n// In function %s: ", run->context->func->name);
    for (const char *at = tile_text_get(&run->context->message); *at; at++) {
        tile_text_add_char(text, *at);
        if (*at == '\n' && at[1]) tile_text_add(text, "// ");
    }
    tile_text_add(text, "\n");
    tile_text_add(text, run->before);
}

/* Did the pass report truly whether it changed anything? Callers iterate up to a fixpoint by that answer. */
static tile_status check_reported_change(Run *run, const TilePassInfo *info, TileResult result) {
    const char *after = module_text(run);
    bool same = strcmp(run->before, after) == 0;
    if (same != (result == TILE_RESULT_UNCHANGED)) {
        tile_text_format(&run->context->message, "pass %s says that it changed %s, but it did%s", info->name,
                         result == TILE_RESULT_UNCHANGED ? "nothing" : "something", same ? " not" : "");
        return TILE_INTERNAL;
    }
    run->before = after;
    return TILE_OK;
}

static tile_status check_result(Run *run, const TilePassInfo *info, TileResult result) {
    TilePassContext *context = run->context;
    if (result == TILE_RESULT_FAILED) return context->failure;
    if (!run->options->verify) return TILE_OK;
    if (!tile_module_verify(context->module, &context->message)) return TILE_INTERNAL;
    TILE_TRY(check_reported_change(run, info, result));
    return tile_analyses_check(context, info);
}

static tile_status run_on_func(Run *run, const TilePassInfo *info, TileFunc *func) {
    TilePassContext *context = run->context;
    context->info = info;
    context->func = func;
    double start = now();
    TileResult result = tile_excess_check(context, tile_excess_run(context, func, info->run));
    TilePassTime time = {info, func->name, now() - start, result, 0};
    tile_list_push(run->report->arena, &run->report->times, time);
    tile_analyses_expire(context, info, result);
    tile_status status = check_result(run, info, result);
    if (status != TILE_OK && run->options->verify) write_reproducer(run, info);
    context->failure = status;
    context->func = NULL;
    return status;
}

/* Functions that the pass itself adds or removes are not visited. */
static tile_status run_pass(Run *run, const TilePassInfo *info) {
    TileModule *module = run->context->module;
    TILE_LIST(TileFunc *) funcs = {0};
    for (TileFunc *func = module->first; func; func = func->next)
        if (func->form & info->input) tile_list_push(run->context->scratch, &funcs, func);
    for (size_t i = 0; i < funcs.count; i++) {
        if (funcs.items[i]->removed) continue;
        if (run->options->limited && run->done >= run->options->limit) return TILE_OK;
        run->done++;
        TILE_TRY(run_on_func(run, info, funcs.items[i]));
    }
    size_t times = run->report->times.count;
    if (run->options->counts && times) run->report->times.items[times - 1].ops = tile_excess_count(module);
    return TILE_OK;
}

static bool is_word(const char *word, const char *name) { return word && strcmp(word, name) == 0; }

static void dump(Run *run, const TilePassInfo *info) {
    if (!is_word(run->options->dump_after, info->name) && !is_word(run->options->dump_after, "all")) return;
    tile_text_format(&run->report->dump, "// after %s\n", info->name);
    tile_module_print(&run->report->dump, run->context->module, 0);
}

/* The text before the next pass has the new names. */
static void rename_all(Run *run, uint64_t seed) {
    tile_module_rename(run->context->module, run->context->scratch, seed, run->kept);
    if (run->options->verify) run->before = module_text(run);
}

tile_status tile_passes_run(TilePassContext *context, const TilePassInfo *const *pipeline, size_t count,
                            const TilePassOptions *options, TilePassReport *report) {
    Run run = {.context = context, .options = options, .report = report};
    if (options->restore) run.kept = tile_module_keep_names(context->module, context->scratch);
    if (options->verify) run.before = module_text(&run);
    for (size_t i = 0; i < count; i++) {
        const TilePassInfo *info = pipeline[i];
        if (!is_named(info->name, options->skip, options->skip_count)) {
            TILE_TRY(run_pass(&run, info));
            dump(&run, info);
        }
        if (options->names) rename_all(&run, options->names + i);
        if (is_word(options->stop_after, info->name)) break;
    }
    if (options->rename) rename_all(&run, 0);
    if (run.kept) tile_module_restore_names(context->module, context->scratch, run.kept);
    return TILE_OK;
}
