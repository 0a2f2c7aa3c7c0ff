#include "driver/compile/own_pass.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "driver/compile/backend.h"
#include "driver/compile/ir.h"
#include "lang/ir/program.h"
#include "lang/ir/text.h"
#include "launch/options.h"
#include "launch/report.h"

/* ---- running ---- */

static const char *text_of(const TilePassContext *context) {
    TileText text = {.arena = context->scratch};
    tile_module_print(&text, context->module, TILE_PRINT_LOCATIONS);
    return tile_text_get(&text);
}

/* Kernels that still have their grids are verified like IR text from outside. */
static TileComplaints complaints_about(const TilePassContext *context) {
    TileComplaints complaints = tile_module_complaints(context->module, context->scratch);
    bool whole = !complaints.count;
    for (const TileFunc *func = context->module->first; func; func = func->next)
        whole = whole && func->kind != TILE_FUNC_PHASE;
    return whole ? tile_program_complaints(context->module, context->scratch) : complaints;
}

static TileResult blame(TilePassContext *context, const TilePass *pass, const TileComplaints *complaints) {
    TileText text = {.arena = context->scratch};
    for (size_t i = 0; i < complaints->count; i++)
        tile_text_format(&text, "\n  %s: %s", complaints->items[i].func->name, complaints->items[i].words);
    return tile_pass_fail(context, TILE_INVALID_ARGUMENT, complaints->items[0].op,
                          "the pass '%s', which is not the compiler's own, leaves what is no IR:%s", pass->name,
                          tile_text_get(&text));
}

/* Whether the pass has changed something is found by comparing texts. */
static TileResult run_own(TilePassContext *context, TileFunc *func) {
    const TilePass *pass = &((const TileOwnPass *)context->info)->given;
    const char *before = text_of(context);
    TileIr ir = {.arena = context->scratch,
                 .context = context->module->context,
                 .module = context->module,
                 .func = func,
                 .at = tile_builder_at_end(context->module, &func->body),
                 .message = ""};
    context->module->spent = NULL; /* no longjmp through functions of other projects */
    pass->run(&ir, pass->host);
    if (ir.status == TILE_OK && ir.open.count)
        return tile_pass_fail(context, TILE_INVALID_ARGUMENT, ir.open.items[0].op, "the pass '%s': no tile_ir_end",
                              pass->name);
    if (ir.status != TILE_OK)
        return tile_pass_fail(context, ir.status, NULL, "the pass '%s': %s", pass->name, ir.message);
    if (strcmp(before, text_of(context)) == 0) return TILE_RESULT_UNCHANGED;
    TileComplaints complaints = complaints_about(context);
    return complaints.count ? blame(context, pass, &complaints) : TILE_RESULT_CHANGED;
}

/* ---- position in the pipeline ---- */

/* Is there a pass of this name, for any target or added before? */
static bool is_pass(const TileCompiler *compiler, const char *name) {
    const TilePassTable *tables[TILE_PASS_TABLES];
    tile_pass_tables(tables);
    for (size_t i = 0; i < compiler->passes.count; i++)
        if (strcmp(compiler->passes.items[i]->info.name, name) == 0) return true;
    return tile_pass_find(tables, TILE_PASS_TABLES, name, strlen(name)) != NULL;
}

/* The position of the pass in the pipeline; its length + 1 if the pipeline lacks the pass that it refers to. */
static size_t find_place(const TilePipeline *pipeline, const TilePass *pass) {
    size_t place = pipeline->count + 1;
    for (size_t i = 0; i < pipeline->count; i++) {
        if (strcmp(pipeline->items[i]->name, pass->before ? pass->before : pass->after) != 0) continue;
        if (pass->before) return i;
        place = i + 1;
    }
    return place;
}

void tile_own_pass_place(const TileCompiler *compiler, TileArena *arena, TilePipeline *pipeline) {
    for (size_t k = 0; k < compiler->passes.count; k++) {
        const TileOwnPass *pass = compiler->passes.items[k];
        size_t place = find_place(pipeline, &pass->given);
        if (place > pipeline->count) continue;
        /* Passes after the same pass keep the order in which they were added. */
        while (pass->given.after && place < pipeline->count && pipeline->items[place]->stage == TILE_STAGE_OWN) place++;
        tile_list_push(arena, pipeline, NULL);
        for (size_t i = pipeline->count - 1; i > place; i--) pipeline->items[i] = pipeline->items[i - 1];
        pipeline->items[place] = &pass->info;
    }
}

/* ---- adding ---- */

static tile_status refuse(TileText *why, const char *format, const char *name, const char *other) {
    tile_text_format(why, format, name, other);
    return TILE_INVALID_ARGUMENT;
}

static tile_status check(const TileCompiler *compiler, const TilePass *pass, TileText *why) {
    static const char characters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    const char *place = pass->before ? pass->before : pass->after;
    if (!pass->name || !*pass->name || pass->name[strspn(pass->name, characters)])
        return refuse(why, "a pass needs a name of letters, digits and hyphens, not '%s'%s",
                      pass->name ? pass->name : "", "");
    if (!pass->run) return refuse(why, "the pass '%s' has nothing to run%s", pass->name, "");
    if (is_pass(compiler, pass->name)) return refuse(why, "there is a pass '%s' already%s", pass->name, "");
    if (!pass->before == !pass->after)
        return refuse(why, "the pass '%s' is either before or after another one%s", pass->name, "");
    if (!is_pass(compiler, place)) return refuse(why, "the pass '%s': there is no pass '%s'", pass->name, place);
    return TILE_OK;
}

static const char *keep(TileCompiler *compiler, const char *text) {
    return text ? tile_arena_string(compiler->arena, text, strlen(text)) : NULL;
}

tile_status tile_own_pass_add(TileCompiler *compiler, const TilePass *given, TileText *why) {
    TilePass pass;
    if (!given || !tile_options_read(&pass, sizeof pass, given))
        return refuse(why, "a pass of no version that is known%s%s", "", "");
    TILE_TRY(check(compiler, &pass, why));
    TileOwnPass *added = TILE_NEW(compiler->arena, TileOwnPass);
    pass.name = keep(compiler, pass.name);
    pass.doc = keep(compiler, pass.doc);
    pass.before = keep(compiler, pass.before);
    pass.after = keep(compiler, pass.after);
    *added = (TileOwnPass){.info = {.name = pass.name,
                                    .stage = TILE_STAGE_OWN,
                                    .doc = pass.doc ? pass.doc : "",
                                    .input = TILE_FORM_TILE | TILE_FORM_MACHINE,
                                    .output = TILE_FORM_TILE | TILE_FORM_MACHINE,
                                    .run = run_own},
                           .given = pass};
    tile_list_push(compiler->arena, &compiler->passes, added);
    return TILE_OK;
}

/* ---- shared objects ---- */

static tile_status find_list(void *object, const char *path, const TilePass *const **list, TileText *why) {
    const TilePass *const *(*passes)(void);
    const char *error = object ? NULL : dlerror();
    *(void **)&passes = object ? dlsym(object, "tile_passes") : NULL;
    *list = passes ? passes() : NULL;
    if (*list) return TILE_OK;
    if (error)
        tile_text_add(why, error); /* names the file */
    else
        tile_text_format(why, "%s: it has no list of passes, `tile_passes`", path);
    return TILE_IO;
}

static tile_status load_object(TileCompiler *compiler, const char *path, TileText *why) {
    const TilePass *const *list;
    /* A name without a slash is a file in the working directory, not a system library. */
    void *object =
        dlopen(strchr(path, '/') ? path : tile_arena_format(compiler->arena, "./%s", path), RTLD_NOW | RTLD_LOCAL);
    if (object) tile_list_push(compiler->arena, &compiler->plugins, object);
    TILE_TRY(find_list(object, path, &list, why));
    for (; *list; list++) {
        tile_status status = tile_own_pass_add(compiler, *list, why);
        if (status == TILE_OK) continue;
        tile_text_format(why, ", in %s", path);
        return status;
    }
    return TILE_OK;
}

/* ---- calls ---- */

/* One of both is NULL. */
static tile_status add(TileCompiler *compiler, const TilePass *pass, const char *path, TileReport **report) {
    jmp_buf guard;
    if (setjmp(guard)) {
        tile_arena_set_guard(compiler->arena, NULL);
        return TILE_OUT_OF_MEMORY;
    }
    tile_arena_set_guard(compiler->arena, &guard);
    TileText why = {.arena = compiler->arena};
    tile_status status = path ? load_object(compiler, path, &why) : tile_own_pass_add(compiler, pass, &why);
    tile_arena_set_guard(compiler->arena, NULL);
    if (report && why.length) *report = tile_report_from_text(tile_text_get(&why));
    return status;
}

tile_status tile_compiler_add_pass(TileCompiler *compiler, const TilePass *pass, TileReport **report) {
    if (report) *report = NULL;
    return compiler ? add(compiler, pass, NULL, report) : TILE_INVALID_ARGUMENT;
}

tile_status tile_compiler_load_passes(TileCompiler *compiler, const char *path, TileReport **report) {
    int saved = errno;
    if (report) *report = NULL;
    if (!compiler || !path) return TILE_INVALID_ARGUMENT;
    tile_status status = add(compiler, NULL, path, report);
    errno = saved;
    return status;
}

void tile_own_pass_unload(TileCompiler *compiler) {
    for (size_t i = compiler->plugins.count; i-- > 0;) dlclose(compiler->plugins.items[i]);
}
