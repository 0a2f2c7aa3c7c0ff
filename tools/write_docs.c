/* tile-write-docs ops|passes: prints docs/ops.md or docs/passes.md from the tables; tests compare the checked-in
 * files with this program's output. */
#include <stdio.h>
#include <string.h>

#include "cpu/passes.h"
#include "ptx/passes.h"

static const struct {
    TileOpClass class;
    const char *title;
} sections[] = {
    {TILE_CLASS_ELEMENTWISE, "Elementwise"},
    {TILE_CLASS_SHAPE, "Making and reshaping"},
    {TILE_CLASS_REDUCE, "Reductions"},
    {TILE_CLASS_MEMORY, "Memory"},
    {TILE_CLASS_HOST, "Host"},
    {TILE_CLASS_CONTROL, "Control"},
    {TILE_CLASS_NEST, "Loop nests"},
    {TILE_CLASS_VECTOR, "Vectors"},
    {TILE_CLASS_BLOCK, "Blocks of threads"},
};

static const char *form_text(unsigned forms) {
    if (forms == TILE_FORM_TILE) return "tile";
    return forms == TILE_FORM_MACHINE ? "machine" : "both";
}

static void print_attributes(TileOpId id) {
    const char *separator = "";
    for (int key = 0; key < TILE_ATTRIBUTE_COUNT; key++) {
        if (!tile_op_allows(id, (TileAttributeKey)key) || tile_attribute_is_general((TileAttributeKey)key)) continue;
        bool required = (tile_op_info(id)->required >> key & 1u) != 0;
        printf("%s%s%s", separator, tile_attribute_name((TileAttributeKey)key), required ? "" : "?");
        separator = ", ";
    }
}

/* A bar would end the column of the table. */
static void print_cell(const char *text) {
    for (; *text; text++) {
        if (*text == '|') putchar('\\');
        putchar(*text);
    }
}

static void print_row(TileOpId id) {
    const TileOpInfo *info = tile_op_info(id);
    printf("| `%s` | %s | ", info->mnemonic, form_text(info->forms));
    print_attributes(id);
    printf(" | ");
    print_cell(info->doc);
    printf(" |\n");
}

static void print_ops(void) {
    printf("# Operations of the IR\n\nMade from `lang/ir/ops.def` by `tile-write-docs ops`; a test keeps it up to date. "
           "`?` marks an optional attribute. Any operation may have");
    const char *separator = " ";
    for (int key = 0; key < TILE_ATTRIBUTE_COUNT; key++) {
        if (!tile_attribute_is_general((TileAttributeKey)key)) continue;
        printf("%s`%s`", separator, tile_attribute_name((TileAttributeKey)key));
        separator = ", ";
    }
    printf(", which schedules write.\n");
    for (size_t s = 0; s < sizeof sections / sizeof *sections; s++) {
        printf("\n## %s\n\n| operation | form | attributes | meaning |\n|---|---|---|---|\n", sections[s].title);
        for (int id = 0; id < TILE_OP_COUNT; id++)
            if (tile_op_info((TileOpId)id)->class == sections[s].class) print_row((TileOpId)id);
    }
}

static const char *analysis_text(unsigned analyses) { return analyses & TILE_ANALYSIS_INDICES ? "indices" : ""; }

static void print_passes_of(const TilePassTable *table, const char *folder) {
    printf("\n## %s/\n\n| pass | takes | leaves | needs | keeps | does |\n|---|---|---|---|---|---|\n", folder);
    for (size_t i = 0; i < table->count; i++) {
        const TilePassInfo *pass = &table->passes[i];
        printf("| `%s` | %s | %s | %s | %s | ", pass->name, form_text(pass->input), form_text(pass->output),
               analysis_text(pass->needs), analysis_text(pass->keeps));
        print_cell(pass->doc);
        printf(" |\n");
    }
}

static void print_pipeline(const char *name, const TilePipeline *pipeline) {
    printf("\n## The %s pipeline\n\n", name);
    for (size_t i = 0; i < pipeline->count; i++) printf("%s`%s`", i ? " → " : "", pipeline->items[i]->name);
    printf("\n");
}

static int print_passes(void) {
    TileArena *arena = tile_arena_create(NULL);
    if (!arena) return 2;
    static const TileFamily *const families[] = {&tile_cpu_family, &tile_ptx_family};
    TileText message = {.arena = arena};
    tile_status status = TILE_OK;
    printf("# Passes\n\nMade from `lowering/passes.def`, `cpu/passes.def` and `ptx/passes.def` by `tile-write-docs passes`; a test keeps "
           "it up to date. The opening comment of a pass's file shows a function before and after it, and a test holds "
           "it to that. `tile-opt FILE --passes=a,b` runs passes on IR text, `--pipeline=cpu` or `gpu` all "
           "of a family's. Needs: the analyses that a pass asks for; keeps: those that hold as before when it has changed "
           "something (`lang/index/index.h`).\n");
    print_passes_of(tile_lowering_passes(), "lowering");
    for (int i = 0; i < 2; i++) print_passes_of(families[i]->passes, families[i]->folder);
    for (int i = 0; i < 2 && status == TILE_OK; i++) {
        TilePipeline pipeline = {0};
        status = tile_family_pipeline(families[i], NULL, &pipeline, arena, &message);
        print_pipeline(families[i]->title, &pipeline);
    }
    tile_arena_destroy(arena);
    return tile_status_exit_code(status);
}

int main(int count, char **arguments) {
    if (count == 2 && strcmp(arguments[1], "passes") == 0) return print_passes();
    if (count == 2 && strcmp(arguments[1], "ops") == 0) {
        print_ops();
        return 0;
    }
    fprintf(stderr, "usage: tile-write-docs ops|passes\n");
    return 1;
}
