/* tilec build: code ahead of time, for linking. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/list.h"
#include "tile/build.h"
#include "launch/environment.h"
#include "tools/archive.h"
#include "tools/file.h"
#include "tools/ptxas.h"
#include "tools/replace.h"
#include "tools/session.h"
#include "tools/unfinished.h"

enum { MAX_OUTPUTS = 3 }; /* object, header, dependencies */

typedef TILE_LIST(const char *) Words;

typedef struct Build {
    TileSession *session;
    TileArena *arena;
    Words files, targets, exports, variants, plugins;
    TILE_LIST(TileSetting) settings;
    const char *output, *header, *dependency_file;
    bool dependencies, json, no_cubin;
    uint32_t flags;
    TileReplacement replacements[MAX_OUTPUTS];
    int replacement_count;
} Build;

/* ---- words ---- */

static const struct {
    const char *word;
    uint32_t flag;
} flags[] = {
    {"-shared", TILE_BUILD_SHARED},
    {"--shared", TILE_BUILD_SHARED},
    {"--bare", TILE_BUILD_BARE},
    {"--no-general", TILE_BUILD_NO_GENERAL},
    {"-g", TILE_BUILD_LINES},
    {"--debug", TILE_BUILD_DEBUG},
    {"--no-contract", TILE_BUILD_NO_CONTRACT},
};

static bool take_flag(Build *build, const char *word) {
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        if (strcmp(word, flags[i].word) != 0) continue;
        build->flags |= flags[i].flag;
        return true;
    }
    if (strcmp(word, "-MD") == 0)
        build->dependencies = true;
    else if (strcmp(word, "--no-cubin") == 0)
        build->no_cubin = true;
    else if (strcmp(word, "--emit=json") == 0)
        build->json = true;
    else
        return false;
    return true;
}

static void split_targets(Build *build, const char *list) {
    for (;;) {
        size_t length = strcspn(list, ",");
        tile_list_push(build->arena, &build->targets, tile_arena_string(build->arena, list, length));
        if (!list[length]) return;
        list += length + 1;
    }
}

static void take_value(Build *build, const char *option, const char *value) {
    if (strcmp(option, "-o") == 0)
        build->output = value;
    else if (strcmp(option, "--header") == 0)
        build->header = value;
    else if (strcmp(option, "--export") == 0)
        tile_list_push(build->arena, &build->exports, value);
    else if (strcmp(option, "--variant") == 0)
        tile_list_push(build->arena, &build->variants, value);
    else if (strcmp(option, "-MF") == 0)
        build->dependency_file = value;
    else if (strcmp(option, "--load-pass") == 0)
        tile_list_push(build->arena, &build->plugins, value);
    else
        split_targets(build, value);
}

/* Options with a value take it after `=` or as the next word. *next is the word after the option. */
static int take_option(Build *build, const char *word, const char *next, bool *took_next) {
    static const char *const valued[] = {"-o", "--header", "--export", "--variant", "-MF", "--load-pass", "--target"};
    if (take_flag(build, word)) return 0;
    for (size_t i = 0; i < sizeof valued / sizeof *valued; i++) {
        const char *value = tile_option_value(word, valued[i]);
        if (strcmp(word, valued[i]) == 0) {
            if (!next)
                return tile_session_fail(build->session, TILE_INVALID_ARGUMENT,
                                         "%s needs a value; see `tilec help build`", word);
            *took_next = true;
            value = next;
        }
        if (!value) continue;
        take_value(build, valued[i], value);
        return 0;
    }
    return tile_session_unknown(build->session, word);
}

static int read_words(Build *build, char **words, int count) {
    for (int i = 0; i < count; i++) {
        char *equals = strchr(words[i], '=');
        bool took_next = false;
        int failed = 0;
        if (*words[i] == '-' && words[i][1])
            failed = take_option(build, words[i], i + 1 < count ? words[i + 1] : NULL, &took_next);
        else if (equals) {
            *equals = 0;
            const char *name = strncmp(words[i], "const.", 6) == 0 ? words[i] + 6 : words[i];
            tile_list_push(build->arena, &build->settings, (TileSetting){name, equals + 1});
        } else
            tile_list_push(build->arena, &build->files, words[i]);
        if (failed) return failed;
        i += took_next;
    }
    if (build->files.count) return 0;
    return tile_session_fail(build->session, TILE_INVALID_ARGUMENT, "no file; see `tilec help build`");
}

/* ---- names of outputs ---- */

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The path with another extension: "a/k.tile" becomes "a/k.o". */
static const char *with_ending(Build *build, const char *path, const char *ending) {
    const char *dot = strrchr(base_name(path), '.');
    size_t length = dot ? (size_t)(dot - path) : strlen(path);
    return tile_arena_format(build->arena, "%.*s%s", (int)length, path, ending);
}

static bool is_archive(const Build *build) {
    const char *dot = build->output ? strrchr(base_name(build->output), '.') : NULL;
    return dot && strcmp(dot, ".a") == 0;
}

static int name_outputs(Build *build) {
    const char *usual = build->flags & TILE_BUILD_SHARED ? ".so" : ".o";
    if (!build->output && !build->json) build->output = base_name(with_ending(build, build->files.items[0], usual));
    if (is_archive(build) && build->flags & TILE_BUILD_SHARED)
        return tile_session_fail(build->session, TILE_INVALID_ARGUMENT,
                                 "%s is the name of an archive, and -shared makes a plugin", build->output);
    if (build->dependency_file) build->dependencies = true;
    if (!build->dependencies || build->dependency_file) return 0;
    if (!build->output) return tile_session_fail(build->session, TILE_INVALID_ARGUMENT, "-MD needs -o, or -MF FILE");
    build->dependency_file = with_ending(build, build->output, ".d");
    return 0;
}

/* ---- outputs: all of them or none ---- */

static tile_status write_output(Build *build, const char *path, const void *bytes, size_t size, TileText *error) {
    TileReplacement *file = &build->replacements[build->replacement_count++];
    errno = 0;
    int descriptor = tile_replacement_open(file, path, build->arena);
    FILE *stream = descriptor < 0 ? NULL : fdopen(descriptor, "wb");
    bool good = stream && fwrite(bytes, 1, size, stream) == size && fflush(stream) == 0 &&
                (fsync(descriptor) == 0 || errno == EINVAL);
    int reason = errno;
    if (stream && fclose(stream) != 0 && good) {
        good = false;
        reason = errno;
    }
    if (good) return TILE_OK;
    tile_text_format(error, "%s: cannot write: %s", path, strerror(reason));
    return TILE_IO;
}

/* A name as make reads it. */
static void add_make_name(TileText *text, const char *name) {
    for (; *name; name++) {
        if (*name == ' ' || *name == '#') tile_text_add_char(text, '\\');
        if (*name == '$') tile_text_add_char(text, '$');
        tile_text_add_char(text, *name);
    }
}

static const char *dependency_text(Build *build, const TileBuild *made) {
    TileText text = {.arena = build->arena};
    add_make_name(&text, build->output ? build->output : build->header);
    tile_text_add_char(&text, ':');
    for (size_t i = 0; i < build->files.count; i++) {
        tile_text_add_char(&text, ' ');
        add_make_name(&text, build->files.items[i]);
    }
    for (size_t i = 0; tile_build_dependency(made, i); i++) {
        tile_text_add(&text, " \\\n  ");
        add_make_name(&text, tile_build_dependency(made, i));
    }
    tile_text_add_char(&text, '\n');
    return tile_text_get(&text);
}

static tile_status write_outputs(Build *build, const TileBuild *made, TileText *error) {
    size_t size;
    const void *object = tile_build_object(made, &size);
    TileText archive = {.arena = build->arena};
    if (build->output && is_archive(build)) {
        TILE_TRY(tile_archive_make(object, size, &archive));
        object = archive.text;
        size = archive.length;
    }
    if (build->output) TILE_TRY(write_output(build, build->output, object, size, error));
    if (build->header) {
        const char *header = tile_build_header(made);
        TILE_TRY(write_output(build, build->header, header, strlen(header), error));
    }
    if (build->dependencies) {
        const char *text = dependency_text(build, made);
        TILE_TRY(write_output(build, build->dependency_file, text, strlen(text), error));
    }
    return TILE_OK;
}

static int finish(Build *build, const TileBuild *made) {
    TileText error = {.arena = build->arena};
    tile_status status = write_outputs(build, made, &error);
    tile_unfinished_hold(true);
    for (int i = 0; i < build->replacement_count; i++) {
        if (status == TILE_OK) status = tile_replacement_commit(&build->replacements[i], &error);
        if (status != TILE_OK) tile_replacement_abandon(&build->replacements[i]);
    }
    tile_unfinished_hold(false);
    if (status != TILE_OK) return tile_session_fail(build->session, status, "%s", tile_text_get(&error));
    if (build->json) fputs(tile_build_json(made), stdout);
    return tile_session_finish(build->session);
}

/* ---- building ---- */

/* For the build's GPU targets. */
static tile_status assemble(void *host, const char *ptx, const void **cubin, size_t *size, TileError *error) {
    const Build *build = host;
    TileAssembly assembly;
    TileText words = {.arena = build->arena};
    tile_status status = tile_ptxas_run(build->arena, ptx, build->flags & TILE_BUILD_LINES, &assembly, &words);
    if (status != TILE_OK) {
        error->status = status;
        snprintf(error->message, sizeof error->message, "%s", tile_text_get(&words));
        return status;
    }
    *cubin = assembly.cubin;
    *size = assembly.size;
    return TILE_OK;
}

static int run_build(Build *build, TileCompiler *compiler, const TileBuildSource *sources) {
    TileBuild *made = NULL;
    TileReport *report = NULL;
    const char *name = build->flags & TILE_BUILD_SHARED ? build->output : build->header;
    TileBuildOptions options = {.struct_size = sizeof options,
                                .targets = build->targets.items,
                                .target_count = build->targets.count,
                                .exports = build->exports.items,
                                .export_count = build->exports.count,
                                .variants = build->variants.items,
                                .variant_count = build->variants.count,
                                .settings = build->settings.items,
                                .setting_count = build->settings.count,
                                .name = name ? base_name(name) : NULL,
                                .flags = build->flags};
    if (!build->no_cubin && !tile_ptxas_find(build->arena))
        tile_variable_warn(TILE_VARIABLE_PTXAS, NULL, "the path of a program", "none: GPU targets have PTX alone");
    if (!build->no_cubin && tile_ptxas_find(build->arena)) {
        options.assemble = assemble;
        options.assemble_host = build;
    }
    tile_status status = tile_build(compiler, sources, build->files.count, &options, &made, &report);
    int exit_status = tile_session_report(build->session, status, report);
    if (status == TILE_OK) exit_status = finish(build, made);
    tile_build_destroy(made);
    return exit_status;
}

static int read_sources(Build *build, TileBuildSource *sources) {
    for (size_t i = 0; i < build->files.count; i++) {
        TileText error = {.arena = build->arena};
        char *text;
        tile_status status = tile_file_read(build->arena, build->files.items[i], &text, &sources[i].length, &error);
        if (status != TILE_OK) return tile_session_fail(build->session, status, "%s", tile_text_get(&error));
        sources[i].text = text;
        sources[i].file = build->files.items[i];
    }
    return 0;
}

int tile_command_build(TileSession *session, char **words, int count) {
    Build build = {.session = session, .arena = session->arena};
    TileCompiler *compiler = NULL;
    int failed = read_words(&build, words, count);
    if (!failed) failed = name_outputs(&build);
    if (failed) return failed;
    TileBuildSource *sources = TILE_NEW_ARRAY(session->arena, TileBuildSource, build.files.count);
    failed = read_sources(&build, sources);
    if (failed) return failed;
    failed = tile_session_compiler(session, build.plugins.items, build.plugins.count, &compiler);
    if (!failed) failed = run_build(&build, compiler, sources);
    tile_compiler_destroy(compiler);
    return failed;
}
