/* tilec explain: the decisions for a kernel, a target and arguments, and their reasons. Nothing runs, and no GPU is
 * needed. */
#include "tools/explain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/flops.h"
#include "tools/program.h"
#include "tools/ptxas.h"
#include "tools/replace.h"

typedef struct ExplainOptions {
    bool json;
    const char *svg, *html;
} ExplainOptions;

static int read_words(TileProgram *program, ExplainOptions *options, char **words, int count) {
    for (int i = 0; i < count; i++) {
        const char *format = tile_option_value(words[i], "--format"), *svg = tile_option_value(words[i], "--svg");
        const char *html = tile_option_value(words[i], "--html");
        bool taken = true;
        if (svg && *svg)
            options->svg = svg;
        else if (html && *html)
            options->html = html;
        else if (format && (strcmp(format, "json") == 0 || strcmp(format, "text") == 0))
            options->json = *format == 'j';
        else {
            int failed = format || svg || html ? tile_session_unknown(program->session, words[i])
                                       : tile_program_word(program, words[i], &taken);
            if (failed) return failed;
        }
        if (!taken) return tile_session_unknown(program->session, words[i]);
    }
    return 0;
}

/* ---- the assembler's figures ---- */

/* In assembly `.` is `$`. */
static const char *find_entry(const char *notes, const char *phase) {
    static const char begin[] = "Compiling entry function '";
    size_t length = strlen(phase);
    while ((notes = strstr(notes, begin))) {
        notes += strlen(begin);
        size_t i = 0;
        while (i < length && (notes[i] == phase[i] || notes[i] == '$')) i++;
        if (i == length && notes[i] == '\'') return notes;
    }
    return NULL;
}

TileAssemblyFigures tile_assembly_figures(const char *notes, const char *phase) {
    TileAssemblyFigures figures = {0};
    const char *entry = find_entry(notes, phase);
    const char *frame = entry ? strstr(entry, "properties for") : NULL, *used = entry ? strstr(entry, "Used ") : NULL;
    unsigned loads;
    if (frame) frame = strchr(frame, '\n');
    if (!frame || !used) return figures;
    figures.known = sscanf(used, "Used %u registers", &figures.registers) == 1 &&
                    sscanf(frame, " %u bytes stack frame, %u bytes spill stores, %u bytes spill loads",
                           &figures.stack_bytes, &figures.spilled_bytes, &loads) == 3;
    return figures;
}

/* NULL if they are known, else the reason. */
static const char *assemble(TileSession *session, const TileExplanation *explanation, TileAssemblyFigures *figures) {
    TileText error = {.arena = session->arena};
    TileAssembly assembly;
    if (!explanation->ptx) return NULL;
    if (tile_ptxas_run(session->arena, explanation->ptx, true, &assembly, &error) != TILE_OK)
        return tile_text_get(&error);
    for (size_t i = 0; i < explanation->phases.count; i++)
        figures[i] = tile_assembly_figures(assembly.notes, explanation->phases.items[i].name);
    return NULL;
}

/* ---- the command ---- */

static int draw(TileSession *session, const TileExplanation *explanation, const char *path) {
    TileText svg = {.arena = session->arena}, error = {.arena = session->arena};
    if (!explanation->ptx)
        return tile_session_fail(session, TILE_INVALID_ARGUMENT,
                                 "--svg draws the layouts of tiles on GPUs; name one, as in --target=sm_80");
    tile_explain_draw(explanation, &svg);
    tile_status status = tile_file_write(path, svg.text, svg.length, &error);
    return status == TILE_OK ? 0 : tile_session_fail(session, status, "%s", tile_text_get(&error));
}

static int write_page(TileProgram *program, const TileExplanation *explanation, const TileAssemblyFigures *figures,
                      const char *missing, const char *path) {
    TileSession *session = program->session;
    TileExplainedWork work = {.bytes = tile_traffic_of_program(program)};
    work.has_flops = tile_flops_of_program(program, &work.flops) == TILE_FLOPS_COUNTED;
    work.roof = tile_explain_roof(explanation, &work);
    TileText page = {.arena = session->arena}, error = {.arena = session->arena};
    tile_status status = tile_explain_page(explanation, figures, missing, &work, &page);
    if (status == TILE_OK) status = tile_file_write(path, page.text, page.length, &error);
    if (status == TILE_OK) return 0;
    return tile_session_fail(session, status, "%s", error.length ? tile_text_get(&error) : tile_status_text(status));
}

static int report(TileProgram *program, const TileExplanation *explanation, const ExplainOptions *options) {
    TileSession *session = program->session;
    TileAssemblyFigures *figures = TILE_NEW_ARRAY(session->arena, TileAssemblyFigures, explanation->phases.count + 1);
    int failed = options->svg ? draw(session, explanation, options->svg) : 0;
    if (failed) return failed;
    const char *missing = assemble(session, explanation, figures);
    if (options->html) failed = write_page(program, explanation, figures, missing, options->html);
    if (options->html) return failed;
    if (options->json)
        tile_explain_print_json(explanation, figures, missing);
    else
        tile_explain_print(stdout, explanation, figures, missing);
    return tile_session_finish(session);
}

static int explain(TileProgram *program, const ExplainOptions *options) {
    TileSession *session = program->session;
    TileExplanation explanation = {.arena = session->arena, .texts = options->html};
    tile_compiler_explain(program->compiler, &explanation); /* shapes of results may already need the code */
    int failed = tile_program_load(program, 0);
    if (failed) {
        tile_compiler_explain(program->compiler, NULL);
        return failed;
    }
    TileError error = {0};
    TileReport *said = NULL;
    TileLaunchOptions launch = {.struct_size = sizeof launch, .error = &error, .report = &said};
    tile_status status = tile_prepare(program->kernel, tile_program_args(program), program->argument_count, &launch);
    tile_compiler_explain(program->compiler, NULL);
    if (status != TILE_OK) return tile_program_refuse(program, status, &error, said);
    if (!explanation.done)
        return tile_session_fail(session, TILE_INVALID_ARGUMENT,
                                 "the reference interpreter runs the tile form as it is: nothing is decided");
    return report(program, &explanation, options);
}

/* Code for the executor is compiled by the same passes, and needs no machine that can run it. */
int tile_command_explain(TileSession *session, char **words, int count) {
    TileProgram program = {.session = session};
    ExplainOptions options = {0};
    int failed = read_words(&program, &options, words, count);
    if (failed) return failed;
    program.options.flags |= TILE_COMPILE_EMULATE;
    failed = tile_program_open(&program, session);
    if (!failed) failed = explain(&program, &options);
    tile_program_close(&program);
    return failed;
}
