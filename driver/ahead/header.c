/* The C header of an object made ahead of time. */
#include <string.h>

#include "driver/ahead/ahead.h"

const char *tile_ahead_scalar_type(TileHostType type) {
    static const char *const names[TILE_HOST_TYPE_COUNT] = {
        [TILE_HOST_BOOL] = "bool",    [TILE_HOST_I8] = "int8_t",    [TILE_HOST_I16] = "int16_t",
        [TILE_HOST_I32] = "int32_t",  [TILE_HOST_I64] = "int64_t",  [TILE_HOST_U8] = "uint8_t",
        [TILE_HOST_U16] = "uint16_t", [TILE_HOST_U32] = "uint32_t", [TILE_HOST_U64] = "uint64_t",
        [TILE_HOST_F8E4M3] = "float", [TILE_HOST_F8E5M2] = "float", [TILE_HOST_F16] = "float",
        [TILE_HOST_BF16] = "float",   [TILE_HOST_F32] = "float",    [TILE_HOST_F64] = "double",
    };
    return names[type];
}

/* Text inside a comment, each line prefixed with " * ". */
static void add_comment(TileText *text, const char *words) {
    for (const char *at = words; *at; at++) {
        if (*at == '\n')
            tile_text_add(text, at[1] == '\n' || !at[1] ? "\n *" : "\n * ");
        else if (*at == '/' && at > words && at[-1] == '*')
            tile_text_add(text, " /");
        else
            tile_text_add_char(text, *at);
    }
}

static void add_shape(TileText *text, const TileImageParameter *parameter) {
    tile_text_format(text, "%s", tile_host_type_name((TileHostType)parameter->type));
    if (parameter->kind != TILE_PARAMETER_TENSOR) return;
    tile_text_add_char(text, '[');
    for (int i = 0; i < parameter->rank; i++) tile_text_format(text, "%s%s", i ? ", " : "", parameter->dimensions[i]);
    tile_text_add_char(text, ']');
}

static void add_doc(TileText *text, const TileAheadExport *export) {
    static const char *const access[] = {
        [TILE_PARAMETER_IN] = "read", [TILE_PARAMETER_OUT] = "written", [TILE_PARAMETER_INOUT] = "read and written"};
    tile_text_add(text, "/** ");
    add_comment(text, export->doc ? export->doc : export->kernel);
    tile_text_add(text, "\n *");
    for (uint32_t i = 0; i < export->signature.parameter_count; i++) {
        const TileImageParameter *parameter = &export->signature.parameters[i];
        TileText shape = {.arena = text->arena};
        add_shape(&shape, parameter);
        tile_text_format(text, "\n * %s: ", parameter->name);
        add_comment(text, tile_text_get(&shape));
        if (parameter->kind == TILE_PARAMETER_TENSOR) tile_text_format(text, ", %s", access[parameter->access]);
    }
    tile_text_add(text, " */\n");
}

static void add_launch(TileText *text, const TileAheadExport *export) {
    tile_text_format(text, "tile_status %s(const TileLaunchOptions *options", export->symbol);
    for (uint32_t i = 0; i < export->signature.parameter_count; i++) {
        const TileImageParameter *parameter = &export->signature.parameters[i];
        bool taken = tile_is_reserved_in_c(parameter->name) || strcmp(parameter->name, "options") == 0;
        tile_text_add(text, ", ");
        if (parameter->kind == TILE_PARAMETER_TENSOR)
            tile_text_add(text, "const DLTensor *");
        else
            tile_text_format(text, "%s ", tile_ahead_scalar_type((TileHostType)parameter->type));
        tile_text_format(text, "%s%s", parameter->name, taken ? "_" : "");
    }
    tile_text_add(text, ") TILE_MUST_CHECK;\n");
    tile_text_format(text, "tile_status %s_kernel(TileKernel **kernel, TileError *error) TILE_MUST_CHECK;\n",
                     export->symbol);
}

static void add_bare(TileText *text, const TileAheadExport *export) {
    for (size_t i = 0; i < export->made.count; i++)
        for (uint32_t k = 0; k < export->made.items[i].variant.code.phase_count; k++)
            tile_text_format(text, "void %s(const uint64_t *slots, int64_t begin, int64_t end, void *scratch);\n",
                             export->made.items[i].symbols[k]);
}

/* "my-kernels.h" as part of a macro's name. */
static const char *guard_name(TileBuild *build) {
    const char *name = build->options.name ? build->options.name : "kernels";
    char *guard = tile_arena_format(build->arena, "TILE_BUILD_%s", name);
    for (char *at = guard; *at; at++) {
        if (*at >= 'a' && *at <= 'z') *at = (char)(*at - 'a' + 'A');
        if (!(*at >= 'A' && *at <= 'Z') && !(*at >= '0' && *at <= '9')) *at = '_';
    }
    return guard;
}

void tile_ahead_write_header(TileBuild *build) {
    bool bare = build->options.flags & TILE_BUILD_BARE;
    TileText text = {.arena = build->arena};
    const char *guard = guard_name(build);
    tile_text_add(&text, bare ? "/* Made by tilec. The functions' ABI is that of docs/abi.md. */\n"
                              : "/* Made by tilec; to be linked with libtile_launch.\n"
                                " *\n"
                                " * NAME(options, ..) checks its arguments and runs the kernel, as tile_launch in "
                                "tile/launch.h does; options may be\n"
                                " * NULL. NAME_kernel gives the kernel itself, for tile_prepare, tile_kernel_stats and "
                                "the like; error may be NULL.");
    if (!bare && tile_ahead_has_data(build))
        tile_text_format(
            &text, "\n * Tensors that lie on an NVIDIA GPU (kDLCUDA) run it there, queued on options->stream%s.",
            tile_ahead_has_linked(build) ? "; NAME_kernel is the one for CPUs" : "; there is no code for CPUs");
    if (!bare) tile_text_add(&text, " */\n");
    tile_text_format(&text, "#ifndef %s\n#define %s\n\n#include <stdbool.h>\n#include <stdint.h>\n%s\n", guard, guard,
                     bare ? "" : "\n#include <tile/launch.h>\n");
    tile_text_add(&text, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n");
    for (size_t i = 0; i < build->exports.count; i++) {
        const TileAheadExport *export = build->exports.items[i];
        tile_text_add_char(&text, '\n');
        add_doc(&text, export);
        if (bare)
            add_bare(&text, export);
        else
            add_launch(&text, export);
    }
    tile_text_add(&text, "\n#ifdef __cplusplus\n}\n#endif\n#endif\n");
    build->header = tile_text_get(&text);
}
