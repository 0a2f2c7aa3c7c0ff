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

/* A function of the module, its text, and what the current pass says it did to it. */
typedef struct Claim {
    const TileFunc *func;
    size_t begin, end; /* of its text */
    bool visited, changed;
} Claim;

/* All functions of the module, in their order. */
typedef struct State {
    TileText text;
    TILE_LIST(Claim) claims;
} State;

typedef struct Run {
    TilePassContext *context;
    const TilePassOptions *options;
    TilePassReport *report;
    uint64_t done;       /* number of pairs of a pass and a function so far */
    State states[2];     /* with verify: what was before the current pass, and memory for what is behind it */
    State *before;       /* one of them */
    TileKeptNames *kept; /* with restore: the names to restore */
} Run;

static State *print_state(Run *run) {
    State *state = &run->states[run->before == &run->states[0]];
    TileArena *arena = run->context->scratch;
    state->text.arena = arena;
    state->text.length = state->claims.count = 0;
    for (const TileFunc *func = run->context->module->first; func; func = func->next) {
        if (state->text.length) tile_text_add(&state->text, "\n");
        Claim claim = {.func = func, .begin = state->text.length};
        tile_func_print(&state->text, func, 0);
        claim.end = state->text.length;
        tile_list_push(arena, &state->claims, claim);
    }
    return state;
}

static void write_reproducer(Run *run, const TilePassInfo *info) {
    TileText *text = &run->report->reproducer;
    tile_text_format(text, "// RUN: tile-opt %%s --passes=%s", info->name);
    if (run->context->target) tile_text_format(text, " --target=%s", run->context->target->name);
    tile_text_add(text, "\n// ");
    if (run->context->func) tile_text_format(text, "In function %s: ", run->context->func->name);
    for (const char *at = tile_text_get(&run->context->message); *at; at++) {
        tile_text_add_char(text, *at);
        if (*at == '\n' && at[1]) tile_text_add(text, "// ");
    }
    tile_text_add(text, "\n");
    tile_text_add(text, tile_text_get(&run->before->text));
}

/* NULL: the function was added since. */
static Claim *find_claim(State *state, const TileFunc *func) {
    for (size_t i = 0; i < state->claims.count; i++)
        if (state->claims.items[i].func == func) return &state->claims.items[i];
    return NULL;
}

static bool same_text(const State *before, const Claim *claim, const State *after, const Claim *now) {
    size_t length = claim->end - claim->begin;
    return now->end - now->begin == length &&
           memcmp(before->text.text + claim->begin, after->text.text + now->begin, length) == 0;
}

static tile_status complain(Run *run, const TilePassInfo *info, const Claim *claim, bool changed) {
    tile_text_format(&run->context->message, "pass %s says that it changed %s, but it did%s", info->name,
                     changed ? "something" : "nothing", changed ? " not" : "");
    if (claim) tile_text_format(&run->context->message, " (@%s)", claim->func->name);
    return TILE_INTERNAL;
}

/* Has the pass run on a phase of the kernel, and said that it changed it? */
static bool phase_changed(const State *before, const TileFunc *kernel) {
    for (size_t i = 0; i < before->claims.count; i++) {
        const Claim *claim = &before->claims.items[i];
        if (claim->func->kernel == kernel && claim->changed) return true;
    }
    return false;
}

/* Did the pass report truly what it changed? Callers iterate up to a fixpoint by that answer. When it says that it changed a
 * function it may also have added and removed functions, and have written into those on which it did not run and into the
 * kernel whose phase it is: facts that the phase relies on. */
static tile_status check_claims(Run *run, const TilePassInfo *info, State *after) {
    const Claim *idle = NULL, *hidden = NULL; /* that it says it changed, and did not; and the opposite */
    bool claimed = false, others = after->claims.count != run->before->claims.count;
    for (size_t i = 0; i < run->before->claims.count; i++) {
        const Claim *claim = &run->before->claims.items[i], *now = find_claim(after, claim->func);
        bool same = now && same_text(run->before, claim, after, now), secret = !same && !claim->changed;
        bool excused = !now || !claim->visited || phase_changed(run->before, claim->func);
        claimed |= claim->changed;
        if (same && claim->changed) idle = claim;
        if (secret && !excused) hidden = claim;
        others |= secret || now != &after->claims.items[i];
    }
    if (hidden) return complain(run, info, hidden, false);
    if (idle && !others) return complain(run, info, idle, true);
    return others && !claimed ? complain(run, info, NULL, false) : TILE_OK;
}

/* With verify, behind each pass, when it has run on all functions: so each of them is printed once. */
static tile_status check_pass(Run *run, const TilePassInfo *info) {
    TilePassContext *context = run->context;
    if (!tile_module_verify(context->module, &context->message)) return TILE_INTERNAL;
    State *after = print_state(run);
    TILE_TRY(check_claims(run, info, after));
    run->before = after;
    return tile_analyses_check(context, info);
}

/* Writes a reproducer where the pass failed, or where what it has left is wrong. */
static tile_status end_run(Run *run, const TilePassInfo *info, tile_status status) {
    if (status != TILE_OK && run->options->verify) write_reproducer(run, info);
    run->context->failure = status;
    run->context->func = NULL;
    return status;
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
    Claim *claim = run->options->verify ? find_claim(run->before, func) : NULL;
    if (claim) claim->visited = true, claim->changed = result == TILE_RESULT_CHANGED;
    return end_run(run, info, result == TILE_RESULT_FAILED ? context->failure : TILE_OK);
}

/* Functions that the pass itself adds or removes are not visited. */
static tile_status run_pass(Run *run, const TilePassInfo *info) {
    TileModule *module = run->context->module;
    TILE_LIST(TileFunc *) funcs = {0};
    for (TileFunc *func = module->first; func; func = func->next)
        if (func->form & info->input) tile_list_push(run->context->scratch, &funcs, func);
    for (size_t i = 0; i < funcs.count; i++) {
        if (funcs.items[i]->removed) continue;
        if (run->options->limited && run->done >= run->options->limit) break;
        run->done++;
        TILE_TRY(run_on_func(run, info, funcs.items[i]));
    }
    if (run->options->verify && funcs.count) TILE_TRY(end_run(run, info, check_pass(run, info)));
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
    if (run->options->verify) run->before = print_state(run);
}

tile_status tile_passes_run(TilePassContext *context, const TilePassInfo *const *pipeline, size_t count,
                            const TilePassOptions *options, TilePassReport *report) {
    Run run = {.context = context, .options = options, .report = report};
    if (options->restore) run.kept = tile_module_keep_names(context->module, context->scratch);
    if (options->verify) run.before = print_state(&run);
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
