#include "tools/tile_opt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/passes.h"
#include "ptx/passes.h"
#include "lang/ir/text.h"
#include "lang/ir/verify.h"
#include "tools/tile_run.h"

static const char usage[] =
    "usage: tile-opt FILE|- [--passes=a,b,c] [--pipeline=cpu|gpu] [--target=NAME] [--verify-only] "
    "[--locations]\n"
    "                [--dump-after=PASS|all] [--stop-after=PASS] [--skip=a,b] [--limit=N]\n"
    "                [--no-contract] [--debug] [--no-split] [--run=FUNC:ARGUMENT,..] [--times] [--rename=SEED] [--between=a,b]\n"
    "                [--remarks]\n"
    "Reads IR text, runs the passes, verifying after each, and prints IR text. With --run, the function has to leave\n"
    "the same bits before and after the passes; see tools/tile_run.h for the arguments. With --times, there are no limits and\n"
    "nothing is verified, and instead of the IR it prints a line for each pass: the ops behind it, nanoseconds, its name.\n"
    "With --between, these passes run behind each of the others, too. With --rename, all names are others after each\n"
    "pass, and plain ones at the end; with 0 only the latter. With --remarks, what passes decided and declined stands in\n"
    "front of the IR, a comment for each.\n";

typedef struct Request {
    const char *path, *passes, *pipeline, *between, *run;
    const TileTarget *target;
    TilePassOptions options;
    TilePassSettings settings;
    unsigned print;
    bool verify_only, times, remarks, help;
    TileArena *arena;
    TileText *errors;
} Request;

bool tile_opt_read_file(const char *path, TileText *text, TileText *errors) {
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (!file) {
        tile_text_format(errors, "%s: %s\n", path, strerror(errno));
        return false;
    }
    char buffer[4096];
    for (size_t got; (got = fread(buffer, 1, sizeof buffer, file)) > 0;) tile_text_add_bytes(text, buffer, got);
    bool good = !ferror(file);
    if (!good) tile_text_format(errors, "%s: cannot be read\n", path);
    if (file != stdin) fclose(file);
    return good;
}

/* ---- arguments ---- */

/* The text after `name` if the argument begins with it, else NULL. */
static const char *option(const char *argument, const char *name) {
    size_t length = strlen(name);
    return strncmp(argument, name, length) == 0 ? argument + length : NULL;
}

static void add_skips(Request *request, const char *names) {
    TILE_LIST(const char *) list = {0};
    while (*names) {
        size_t length = strcspn(names, ",");
        tile_list_push(request->arena, &list, tile_arena_string(request->arena, names, length));
        names += length;
        if (*names == ',') names++;
    }
    request->options.skip = list.items;
    request->options.skip_count = list.count;
}

static bool read_limit(Request *request, const char *text) {
    char *end;
    errno = 0;
    request->options.limit = strtoull(text, &end, 10);
    request->options.limited = true;
    return *text >= '0' && *text <= '9' && !*end && !errno;
}

static bool read_names(Request *request, const char *text) {
    char *end;
    errno = 0;
    request->options.names = strtoull(text, &end, 10);
    request->options.rename = true;
    return *text >= '0' && *text <= '9' && !*end && !errno;
}

static bool read_switch(Request *request, const char *argument) {
    static const char *const words[] = {"--verify-only", "--locations", "--no-contract",
                                        "--debug",       "--no-split",  "--mark-padding",
                                        "--times",       "--help",      "--remarks"};
    unsigned number = 0;
    while (number < sizeof words / sizeof *words && strcmp(argument, words[number]) != 0) number++;
    switch (number) {
    case 0: request->verify_only = true; return true;
    case 1: request->print |= TILE_PRINT_LOCATIONS; return true;
    case 2: request->settings.no_contract = true; return true;
    case 3: request->settings.debug = true; return true;
    case 4: request->settings.split_loops = false; return true;
    case 5: request->settings.mark_padding = true; return true;
    case 6:
        request->times = request->options.counts = true;
        request->options.verify = false;
        return true;
    case 7: request->help = true; return true;
    case 8: request->remarks = true; return true;
    default: return false;
    }
}

static const TileFamily *const families[] = {&tile_cpu_family, &tile_ptx_family};

enum { FAMILY_COUNT = sizeof families / sizeof *families, TABLE_COUNT = 1 + FAMILY_COUNT };

static const TileTarget *find_target(const char *name) {
    const TileTarget *target = NULL;
    for (unsigned i = 0; i < FAMILY_COUNT && !target; i++) target = tile_family_target(families[i], name);
    return target;
}

static bool read_argument(Request *request, const char *argument) {
    const char *value;
    if ((value = option(argument, "--passes="))) {
        request->passes = value;
    } else if ((value = option(argument, "--pipeline="))) {
        request->pipeline = value;
    } else if ((value = option(argument, "--between="))) {
        request->between = value;
    } else if ((value = option(argument, "--target="))) {
        request->target = find_target(value);
        return request->target != NULL;
    } else if ((value = option(argument, "--dump-after="))) {
        request->options.dump_after = value;
    } else if ((value = option(argument, "--stop-after="))) {
        request->options.stop_after = value;
    } else if ((value = option(argument, "--run="))) {
        request->run = value;
    } else if ((value = option(argument, "--skip="))) {
        add_skips(request, value);
    } else if ((value = option(argument, "--limit="))) {
        return read_limit(request, value);
    } else if ((value = option(argument, "--rename="))) {
        return read_names(request, value);
    } else if (read_switch(request, argument)) {
        return true;
    } else if (!request->path && (argument[0] != '-' || argument[1] == 0)) {
        request->path = argument;
    } else {
        return false;
    }
    return true;
}

static bool read_arguments(Request *request, int count, const char *const *arguments) {
    for (int i = 0; i < count; i++)
        if (!read_argument(request, arguments[i])) {
            tile_text_format(request->errors, "tile-opt: `%s` is not understood\n%s", arguments[i], usage);
            return false;
        }
    if (!request->path && !request->help) tile_text_format(request->errors, "tile-opt: no file given\n%s", usage);
    return request->path || request->help;
}

/* ---- work ---- */

static tile_status add_pipeline(Request *request, TilePipeline *pipeline, TileText *message) {
    for (unsigned i = 0; i < FAMILY_COUNT; i++)
        if (strcmp(request->pipeline, families[i]->name) == 0)
            return tile_family_pipeline(families[i], request->target, pipeline, request->arena, message);
    tile_text_format(message, "there is no pipeline `%s`", request->pipeline);
    return TILE_NOT_FOUND;
}

/* Inserts the passes of `--between` after each pass of the pipeline but the last. */
static tile_status interleave(Request *request, const TilePassTable *const *tables, TilePipeline *pipeline,
                              TileText *message) {
    TilePipeline between = {0};
    TILE_TRY(tile_pipeline_read(&between, request->arena, tables, TABLE_COUNT, request->between, message));
    tile_pipeline_interleave(pipeline, request->arena, between.items, between.count);
    return TILE_OK;
}

static tile_status make_pipeline(Request *request, TilePipeline *pipeline) {
    const TilePassTable *tables[TABLE_COUNT] = {tile_lowering_passes()};
    TileText message = {.arena = request->arena};
    tile_status status = TILE_OK;
    for (unsigned i = 0; i < FAMILY_COUNT; i++) tables[1 + i] = families[i]->passes;
    if (request->passes)
        status = tile_pipeline_read(pipeline, request->arena, tables, TABLE_COUNT, request->passes, &message);
    if (status == TILE_OK && request->pipeline)
        status = add_pipeline(request, pipeline, &message);
    if (status == TILE_OK && request->between) status = interleave(request, tables, pipeline, &message);
    if (status != TILE_OK) tile_text_format(request->errors, "tile-opt: %s\n", tile_text_get(&message));
    return status;
}

static void print_times(const TilePassReport *report, TileText *output) {
    for (size_t i = 0; i < report->times.count; i++) {
        const TilePassTime *time = &report->times.items[i];
        tile_text_format(output, "%llu %.0f %s\n", (unsigned long long)time->ops, time->seconds * 1e9, time->pass->name);
    }
}

static void print_remarks(const TileRemarks *remarks, TileText *output) {
    for (size_t i = 0; i < remarks->count; i++) {
        if (remarks->items[i].kind != TILE_REMARK_DECISION) continue;
        tile_text_format(output, "// @%s: ", remarks->items[i].func->name);
        tile_remark_print(output, &remarks->items[i]);
        tile_text_add(output, "\n");
    }
}

static tile_status run_passes(Request *request, TileModule *module, TileText *output) {
    TilePipeline pipeline = {0};
    TILE_TRY(make_pipeline(request, &pipeline));
    TilePassContext context = tile_pass_context(module, request->arena, request->target);
    context.settings = request->settings;
    TileLimits most = tile_usual_limits;
    for (int i = 0; request->times && i < TILE_LIMIT_COUNT; i++) most.most[i] = UINT64_MAX;
    most.most[TILE_LIMIT_TILE_REGISTERS] = tile_usual_limits.most[TILE_LIMIT_TILE_REGISTERS];
    context.limits = &most;
    TileRemarks remarks = {0};
    if (request->remarks) context.remarks = &remarks;
    TilePassReport report = tile_pass_report(request->arena);
    tile_status status = tile_passes_run(&context, pipeline.items, pipeline.count, &request->options, &report);
    tile_text_add(output, tile_text_get(&report.dump));
    if (request->times) print_times(&report, output);
    print_remarks(&remarks, output);
    if (status != TILE_OK) tile_text_format(request->errors, "tile-opt: %s\n", tile_text_get(&context.message));
    return status;
}

/* In order, and in a random order in several ranges of programs. */
static bool same_runs(Request *request, TileRun *run, TileModule *module, const TileRunOutcome *before) {
    static const TileExecutorOptions ways[] = {{.seed = 0}, {.seed = 7, .chunks = 3, .vector_scale = 2}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        TileRunOutcome after;
        if (!tile_run_execute(run, module, &ways[i], &after, request->errors)) return false;
        if (!tile_run_same(run, before, &after, request->errors)) return false;
    }
    return true;
}

static tile_status transform(Request *request, TileModule *module, TileText *output) {
    if (!request->run) return run_passes(request, module, output);
    TileRunOutcome before;
    TileRun *run = tile_run_create(request->arena, module, request->run, request->errors);
    if (!run) return TILE_INVALID_ARGUMENT;
    if (!tile_run_execute(run, module, &(TileExecutorOptions){0}, &before, request->errors)) return TILE_INVALID_SOURCE;
    TILE_TRY(run_passes(request, module, output));
    return same_runs(request, run, module, &before) ? TILE_OK : TILE_INTERNAL;
}

/* Every state of the IR must print, read back and print the same. */
static tile_status check_round_trip(Request *request, TileContext *context, const TileModule *module) {
    TileText text = {.arena = request->arena}, again = {.arena = request->arena};
    TileModule *copy;
    tile_module_print(&text, module, 0);
    tile_status status = tile_module_read(context, tile_text_get(&text), text.length, &copy, request->errors);
    if (status == TILE_OK) tile_module_print(&again, copy, 0);
    tile_module_destroy(copy);
    if (status == TILE_OK && strcmp(tile_text_get(&text), tile_text_get(&again)) == 0) return TILE_OK;
    tile_text_add(request->errors, "tile-opt: the text does not read back to the same module\n");
    return TILE_INTERNAL;
}

static tile_status work(Request *request, TileContext *context, TileText *output) {
    TileText source = {.arena = request->arena}, complaints = {.arena = request->arena};
    if (!tile_opt_read_file(request->path, &source, request->errors)) return TILE_IO;
    TileModule *module;
    tile_status status = tile_module_read(context, tile_text_get(&source), source.length, &module, &complaints);
    if (status == TILE_OK && !tile_module_verify(module, &complaints)) status = TILE_INVALID_SOURCE;
    if (status != TILE_OK) tile_text_format(request->errors, "%s:%s", request->path, tile_text_get(&complaints));
    if (status == TILE_OK && !request->verify_only) {
        status = transform(request, module, output);
        if (request->times) {
            tile_module_destroy(module);
            return status;
        }
        if (status == TILE_OK) status = check_round_trip(request, context, module);
        if (status == TILE_OK) tile_module_print(output, module, request->print);
    }
    tile_module_destroy(module);
    return status;
}

int tile_opt(int count, const char *const *arguments, TileText *output, TileText *errors) {
    Request request = {.options = {.verify = true}, .settings = {.split_loops = true}, .errors = errors};
    request.arena = tile_arena_create(NULL);
    TileContext *context = tile_ir_context_create();
    tile_status status = request.arena && context ? TILE_OK : TILE_OUT_OF_MEMORY;
    if (status == TILE_OK && !read_arguments(&request, count, arguments)) status = TILE_INVALID_ARGUMENT;
    if (status == TILE_OK && request.help)
        tile_text_add(output, usage);
    else if (status == TILE_OK)
        status = work(&request, context, output);
    tile_ir_context_destroy(context);
    tile_arena_destroy(request.arena);
    return tile_status_exit_code(status);
}
