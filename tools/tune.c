/* tilec tune: measures the configurations of a kernel's tune clause, and stores the best for later launches. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tune.h"

/* What measures nothing. */
typedef struct FileWork {
    bool list;
    const char *export, *import, *pin, *forget;
} FileWork;

typedef struct Words {
    TileProgram *program;
    TileTuneOptions *options;
    FileWork *work;
} Words;

static int read_seconds(TileSession *session, const char *text, double *seconds) {
    char *end;
    *seconds = strtod(text, &end);
    if (end != text && !*end && *seconds > 0) return 0;
    return tile_session_fail(session, TILE_INVALID_ARGUMENT, "--seconds needs a number above 0");
}

static int read_seed(TileSession *session, const char *text, uint64_t *seed) {
    char *end;
    *seed = strtoull(text, &end, 0);
    if (end != text && !*end) return 0;
    return tile_session_fail(session, TILE_INVALID_ARGUMENT, "--seed needs a number of 64 bits");
}

/* The value of `--name=V` or `--name V`, which takes the next word; NULL: another word. */
static const char *value_of(const char *name, char **words, int count, int *i) {
    const char *value = tile_option_value(words[*i], name);
    if (value || strcmp(words[*i], name) != 0 || *i + 1 >= count) return value;
    return words[++*i];
}

static bool take_file(const Words *w, char **words, int count, int *i) {
    const struct {
        const char *name, **value;
    } options[] = {{"--file", &w->options->file},
                   {"--export", &w->work->export},
                   {"--import", &w->work->import},
                   {"--pin", &w->work->pin},
                   {"--forget", &w->work->forget}};
    for (size_t k = 0; k < sizeof options / sizeof *options; k++) {
        const char *value = value_of(options[k].name, words, count, i);
        if (!value) continue;
        *options[k].value = value;
        return true;
    }
    return false;
}

static int read_word(const Words *w, char **words, int count, int *i) {
    TileSession *session = w->program->session;
    const char *value;
    bool taken = true;
    if (strcmp(words[*i], "--list") == 0)
        w->work->list = true;
    else if (strcmp(words[*i], "--again") == 0)
        w->options->again = true;
    else if ((value = value_of("--seconds", words, count, i)))
        return read_seconds(session, value, &w->options->seconds);
    else if ((value = value_of("--seed", words, count, i)))
        return read_seed(session, value, &w->options->seed);
    else if (!take_file(w, words, count, i)) {
        int failed = tile_program_word(w->program, words[*i], &taken);
        if (failed) return failed;
    }
    return taken ? 0 : tile_session_unknown(session, words[*i]);
}

static int work_on_file(const Words *w) {
    TileSession *session = w->program->session;
    const FileWork *work = w->work;
    const char *path = tile_tune_path(session->arena, w->options->file);
    int asked =
        work->list + (work->export != NULL) + (work->import != NULL) + (work->pin != NULL) + (work->forget != NULL);
    if (asked > 1 || w->program->path)
        return tile_session_fail(session, TILE_INVALID_ARGUMENT,
                                 "--list, --export, --import, --pin and --forget each stand alone; see `tilec help "
                                 "tune`");
    if (work->list) return tile_tune_list(session, path);
    if (work->export) return tile_tune_export(session, path, work->export);
    if (work->forget) return tile_tune_forget(session, path, work->forget);
    return tile_tune_import(session, path, work->pin ? work->pin : work->import, work->pin != NULL);
}

static int search(TileProgram *program, const TileTuneOptions *options) {
    TileSession *session = program->session;
    TileSettings settings = {.struct_size = sizeof settings};
    if (tile_settings_read(&settings) == TILE_OK && settings.deterministic)
        return tile_session_fail(session, TILE_INVALID_ARGUMENT,
                                 "the setting `deterministic` refuses a search: measure without it, then `tilec tune "
                                 "--export` and `--pin` what it found");
    if (program->options.flags & TILE_COMPILE_EMULATE)
        return tile_session_fail(session, TILE_INVALID_ARGUMENT, "--emulate tells nothing of the time that code takes");
    int failed = tile_program_open(program, session);
    if (!failed) failed = tile_program_load(program, options->seed);
    return failed ? failed : tile_tune_search(program, options);
}

int tile_command_tune(TileSession *session, char **words, int count) {
    TileProgram program = {.session = session};
    TileTuneOptions options = {.seconds = 600};
    FileWork work = {.list = false};
    Words w = {&program, &options, &work};
    for (int i = 0; i < count; i++) {
        int failed = read_word(&w, words, count, &i);
        if (failed) return failed;
    }
    if (work.list || work.export || work.import || work.pin || work.forget) return work_on_file(&w);
    int failed = search(&program, &options);
    tile_program_close(&program);
    return failed;
}
