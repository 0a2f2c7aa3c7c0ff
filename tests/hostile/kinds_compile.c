/* Arguments of tile/tile.h, tile/build.h and tile/pass.h's loading. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hostile/define.h"

static const char kernel_text[] = "kernel scale(x: in f32[N], y: out f32[N], by: f32) tune B in {16, 64} {\n"
                                  "    grid n in tiles(N, B) { y[n] = by * x[n] }\n"
                                  "}\n"
                                  "export scale\n";

/* ---- texts ---- */

DEFINE_KIND(compiler, v->pointer = tile_fixture_compiler(), REFUSE_NULL)
DEFINE_KIND(text, v->pointer = (char *)kernel_text, REFUSE_NULL)
DEFINE_KIND(length, v->integer = sizeof kernel_text - 1,
            REFUSE("SIZE_MAX", v->integer = -1) REFUSE("INT64_MAX", v->integer = INT64_MAX)
                REFUSE("2**32 - 1", v->integer = UINT32_MAX) REFUSE("2**28 + 1", v->integer = (1 << 28) + 1)
                    REFUSE("in the middle of a word", v->integer = 3) MAY("0", v->integer = 0))
DEFINE_KIND(source_path, v->pointer = getenv("TILE_HOSTILE_SOURCE"),
            REFUSE_NULL REFUSE("empty", v->pointer = "") REFUSE("a folder", v->pointer = "/")
                REFUSE("no file", v->pointer = "/no/such/file.tile"))
DEFINE_KIND(plugin_path, v->pointer = getenv("TILE_HOSTILE_PASSES"),
            REFUSE_NULL REFUSE("empty", v->pointer = "") REFUSE("a folder", v->pointer = "/")
                REFUSE("no file", v->pointer = "/no/such/passes.so"))
DEFINE_KIND(stage, v->integer = TILE_STAGE_TILE,
            REFUSE("-1", v->integer = -1) REFUSE("99", v->integer = 99) REFUSE("INT_MIN", v->integer = INT32_MIN))

/* ---- where results go ---- */

DEFINE_KIND(library_out, v->pointer = &tile_fixture.library_out, REFUSE_NULL)
DEFINE_KIND(report_out, v->pointer = &tile_fixture.report_out, TAKE_NULL)
DEFINE_KIND(compiler_out, v->pointer = &tile_fixture.compiler_out, REFUSE_NULL)
DEFINE_KIND(string_out, v->pointer = &tile_fixture.string_out, REFUSE_NULL)
DEFINE_KIND(build_out, v->pointer = &tile_fixture.build_out, REFUSE_NULL)
DEFINE_KIND(own_string, v->pointer = strdup("text"), free(v->pointer); TAKE_NULL)
DEFINE_STRUCT_KIND(target_out, TileTargetInfo, (TileTargetInfo){0}, REFUSE_NULL)
DEFINE_STRUCT_KIND(limit_out, TileLimitInfo, (TileLimitInfo){0}, REFUSE_NULL)
static size_t found_size;
DEFINE_KIND(size_out, v->pointer = &found_size, REFUSE_NULL)

/* ---- compilers of one call ---- */

static TileCompiler *make_compiler(void) {
    TileCompiler *compiler = NULL;
    tile_fixture_need(tile_compiler_create(NULL, &compiler) == TILE_OK, "compiler");
    return compiler;
}

DEFINE_KIND(own_compiler, v->pointer = make_compiler(), tile_compiler_destroy(v->pointer); TAKE_NULL)
DEFINE_KIND(own_compiler_kept, v->pointer = tile_fixture.own_compiler = make_compiler(), REFUSE_NULL)

/* ---- passes ---- */

static void run_pass(TileIr *ir, void *host) { (void)ir, (void)host; }

#define SANE_PASS                                                                                                      \
    ((TilePass){.struct_size = sizeof(TilePass), .name = "hostile", .doc = "none", .after = "dce", .run = run_pass})
#define HOSTILE_PASS                                                                                                   \
    REFUSE_SIZES                                                                                                       \
    REFUSE("name NULL", s->name = NULL)                                                                                \
    REFUSE("an empty name", s->name = "")                                                                              \
    REFUSE("a name with blanks", s->name = "a b")                                                                      \
    REFUSE("a name that there is", s->name = "dce")                                                                    \
    REFUSE("run NULL", s->run = NULL) REFUSE("no place", s->after = NULL) REFUSE("two places", s->before = "dce")      \
        REFUSE("a place that is none", s->after = "no-such-pass") REFUSE("an empty place", s->after = "")              \
            TAKE("doc NULL", s->doc = NULL)
DEFINE_STRUCT_KIND(pass, TilePass, SANE_PASS, REFUSE_NULL HOSTILE_PASS)

/* ---- options of compilers ---- */

static TileSettings settings;
static const char *paths[2];
static TilePass listed_pass;
static const TilePass *passes[2];
static TileLimit listed_limit;

static TileCompilerOptions make_compiler_options(void) {
    settings = (TileSettings){.struct_size = sizeof settings};
    paths[0] = paths[1] = "/tmp";
    listed_pass = SANE_PASS;
    passes[0] = &listed_pass;
    listed_limit = (TileLimit){"machine-operations", 1000};
    return (TileCompilerOptions){.struct_size = sizeof(TileCompilerOptions),
                                 .import_paths = paths,
                                 .import_path_count = 2,
                                 .settings = &settings,
                                 .passes = passes,
                                 .pass_count = 1,
                                 .limits = &listed_limit,
                                 .limit_count = 1};
}

#define HOSTILE_SETTINGS                                                                                               \
    TAKE("settings NULL", s->settings = NULL)                                                                          \
    REFUSE("settings of struct_size 0", settings.struct_size = 0)                                                      \
    REFUSE("settings of struct_size SIZE_MAX", settings.struct_size = SIZE_MAX)                                        \
    REFUSE("on_miss 99", *(int *)&settings.on_miss = 99)                                                               \
    REFUSE("on_miss -1", *(int *)&settings.on_miss = -1)                                                               \
    REFUSE("variant_limit -1", settings.variant_limit = -1)                                                            \
    REFUSE("variant_limit INT_MIN", settings.variant_limit = INT32_MIN)                                                \
    TAKE("variant_limit INT_MAX", settings.variant_limit = INT32_MAX)                                                  \
    REFUSE("threads INT_MIN", settings.threads = INT32_MIN)                                                            \
    REFUSE("all logs", settings.log = UINT32_MAX) TAKE("a capability that is none", settings.cpu_capability = "none")  \
        TAKE("a tuning file that is none", settings.tuning = "/no/such/file")
#define HOSTILE_LISTS                                                                                                  \
    REFUSE("paths NULL", s->import_paths = NULL)                                                                       \
    REFUSE("SIZE_MAX paths", s->import_path_count = SIZE_MAX)                                                          \
    REFUSE("2**60 paths", s->import_path_count = (size_t)1 << 60)                                                      \
    REFUSE("a path NULL", paths[1] = NULL)                                                                             \
    REFUSE("passes NULL", s->passes = NULL) REFUSE("SIZE_MAX passes", s->pass_count = SIZE_MAX)                        \
        REFUSE("a pass NULL", passes[0] = NULL) REFUSE("a pass without name", listed_pass.name = NULL)                 \
            REFUSE("limits NULL", s->limits = NULL) REFUSE("SIZE_MAX limits", s->limit_count = SIZE_MAX)               \
                REFUSE("a limit without name", listed_limit.name = NULL)                                               \
                    REFUSE("a limit that is none", listed_limit.name = "none")                                         \
                        TAKE("a limit of UINT64_MAX", listed_limit.value = UINT64_MAX)
DEFINE_STRUCT_KIND(compiler_options, TileCompilerOptions, make_compiler_options(),
                   TAKE_NULL REFUSE_SIZES HOSTILE_SETTINGS HOSTILE_LISTS)

/* ---- options of compilations ---- */

static TileSetting given_settings[2];

static TileCompileOptions make_compile_options(void) {
    given_settings[0] = (TileSetting){"B", "64"};
    return (TileCompileOptions){.struct_size = sizeof(TileCompileOptions),
                                .file = "hostile.tile",
                                .settings = given_settings,
                                .setting_count = 1};
}

#define HOSTILE_COMPILATION                                                                                            \
    TAKE_NULL                                                                                                          \
    REFUSE_SIZES                                                                                                       \
    TAKE("file NULL", s->file = NULL)                                                                                  \
    MAY("an empty file", s->file = "")                                                                                 \
    TAKE("target NULL", s->target = NULL)                                                                              \
    REFUSE("an empty target", s->target = "") REFUSE("a target that is none", s->target = "no such target")            \
        REFUSE("all flags", s->flags = UINT32_MAX) REFUSE("settings NULL", s->settings = NULL; s->setting_count = 1)   \
            REFUSE("SIZE_MAX settings", s->setting_count = SIZE_MAX)                                                   \
                REFUSE("2**60 settings", s->setting_count = (size_t)1 << 60)
DEFINE_STRUCT_KIND(compile_options, TileCompileOptions, make_compile_options(),
                   HOSTILE_COMPILATION REFUSE("a setting without name", given_settings[0].name = NULL)
                       REFUSE("a setting without value", given_settings[0].value = NULL)
                           REFUSE("an empty name", given_settings[0].name = "")
                               MAY("an empty value", given_settings[0].value = ""))
DEFINE_STRUCT_KIND(ir_options, TileCompileOptions,
                   ((TileCompileOptions){.struct_size = sizeof(TileCompileOptions), .file = "hostile.tir"}),
                   HOSTILE_COMPILATION REFUSE("a setting", s->settings = given_settings; s->setting_count = 1))
DEFINE_STRUCT_KIND(emit_options, TileEmitOptions,
                   ((TileEmitOptions){.struct_size = sizeof(TileEmitOptions), .stage = TILE_STAGE_TILE}),
                   REFUSE_NULL REFUSE_SIZES REFUSE("stage -1", *(int *)&s->stage = -1)
                       REFUSE("stage 99", *(int *)&s->stage = 99) TAKE("kernel NULL", s->kernel = NULL)
                           REFUSE("an empty kernel", s->kernel = "") REFUSE("a kernel that is none", s->kernel = "none")
                               REFUSE("a pass that is none", s->after = "none") REFUSE("an empty pass", s->after = ""))

/* ---- builds ---- */

static TileBuildSource sources[2];

static void make_build_sources(Value *v) {
    sources[0] = (TileBuildSource){kernel_text, sizeof kernel_text - 1, "hostile.tile"};
    v->pointer = sources;
}

static bool change_build_sources(Value *v, int number, const char **label, Expected *expected) {
    REFUSE_NULL
    REFUSE("text NULL", sources[0].text = NULL)
    REFUSE("length SIZE_MAX", sources[0].length = SIZE_MAX)
    REFUSE("length 2**32 - 1", sources[0].length = UINT32_MAX)
    REFUSE("length 0", sources[0].length = 0)
    TAKE("file NULL", sources[0].file = NULL)
    return false;
}
const Kind tile_kind_build_sources = {"sources", make_build_sources, change_build_sources};

DEFINE_KIND(source_count, v->integer = 1,
            REFUSE("0", v->integer = 0) REFUSE("SIZE_MAX", v->integer = -1)
                REFUSE("2**60", v->integer = INT64_C(1) << 60))

static const char *targets[1], *exports[1], *variants[1];
static TileSetting build_settings[1];

static TileBuildOptions make_build_options(void) {
    targets[0] = "avx2";
    exports[0] = "scale";
    variants[0] = "general";
    build_settings[0] = (TileSetting){"B", "64"};
    return (TileBuildOptions){.struct_size = sizeof(TileBuildOptions),
                              .targets = targets,
                              .target_count = 1,
                              .exports = exports,
                              .export_count = 1,
                              .variants = variants,
                              .variant_count = 1,
                              .settings = build_settings,
                              .setting_count = 1};
}

#define HOSTILE_LIST(list, count, first)                                                                               \
    REFUSE(#list " NULL", s->list = NULL)                                                                              \
    REFUSE("SIZE_MAX " #list, s->count = SIZE_MAX)                                                                     \
    REFUSE("2**60 " #list, s->count = (size_t)1 << 60)                                                                 \
    REFUSE("one of " #list " NULL", first = NULL) REFUSE("an empty one of " #list, first = "")
DEFINE_STRUCT_KIND(build_options, TileBuildOptions, make_build_options(),
                   TAKE_NULL REFUSE_SIZES HOSTILE_LIST(targets, target_count, targets[0])
                       HOSTILE_LIST(exports, export_count, exports[0])
                           HOSTILE_LIST(variants, variant_count, variants[0])
                               HOSTILE_LIST(settings, setting_count, build_settings[0].name)
                                   REFUSE("a setting without value", build_settings[0].value = NULL)
                                       REFUSE("all flags", s->flags = UINT32_MAX) TAKE("name NULL", s->name = NULL))

static TileBuild *make_build(void) {
    TileBuildSource source = {kernel_text, sizeof kernel_text - 1, "hostile.tile"};
    TileBuildOptions options = make_build_options();
    TileBuild *build = NULL;
    tile_status status = tile_build(tile_fixture_compiler(), &source, 1, &options, &build, NULL);
    tile_fixture_need(status == TILE_OK, "build");
    return build;
}

static TileBuild *kept_build(void) {
    if (!tile_fixture.build) tile_fixture.build = make_build();
    return tile_fixture.build;
}

DEFINE_KIND(own_build, v->pointer = make_build(), tile_build_destroy(v->pointer); TAKE_NULL)
DEFINE_KIND(build, v->pointer = kept_build(), REFUSE_NULL)
