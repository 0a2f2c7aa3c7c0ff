/* What the language itself names: built-in functions and types. */
#include "lsp/help.h"

#include <string.h>

#include "lang/scalar/scalar.h"
#include "parser/check/builtin.h"
#include "parser/check/type.h"

typedef struct Help {
    const char *name, *form, *words;
} Help;

static const Help helps[] = {
#define HELP(name, form, words) {name, form, words},
#include "lsp/help.def"
#undef HELP
};

static const Help *find_help(const char *name) {
    for (size_t i = 0; i < sizeof helps / sizeof *helps; i++)
        if (strcmp(helps[i].name, name) == 0) return &helps[i];
    return NULL;
}

const char *tile_help_form(const char *name) {
    const Help *help = find_help(name);
    return help ? help->form : NULL;
}

const char *tile_help_words(const char *name) {
    const Help *help = find_help(name);
    const TileBuiltin *builtin = tile_find_builtin(name);
    if (help || !builtin || builtin->op == TILE_OP_COUNT) return help ? help->words : NULL;
    return tile_op_info(builtin->op)->doc;
}

static const char *type_markdown(TileArena *arena, const char *name) {
    TileScalar scalar;
    uint32_t types = 0;
    if (tile_scalar_find(name, strlen(name), &scalar))
        return tile_arena_format(arena, "```tile\n%s\n```\n\nelements of %u bits\n", name, tile_scalar_bits(scalar));
    if (!tile_class_types(name, &types)) return NULL;
    TileText text = {.arena = arena};
    tile_text_format(&text, "```tile\n%s\n```\n\na class of types:", name);
    for (int s = 0; s < TILE_SCALAR_COUNT; s++)
        if (types >> s & 1u) tile_text_format(&text, " %s", tile_scalar_name((TileScalar)s));
    tile_text_add(&text, "\n");
    return tile_text_get(&text);
}

const char *tile_help_markdown(TileArena *arena, const char *name) {
    if (!tile_find_builtin(name)) return type_markdown(arena, name);
    const char *form = tile_help_form(name), *words = tile_help_words(name);
    const char *call = form ? form : tile_arena_format(arena, "%s(v)", name);
    return tile_arena_format(arena, "```tile\n%s\n```\n\n%s\n", call, words ? words : "a built-in function");
}
