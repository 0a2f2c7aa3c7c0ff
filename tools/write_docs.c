/* Prints docs/ops.md from the op table; tests compare the checked-in file with this program's output. */
#include <stdio.h>

#include "lang/ir.h"

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
};

static const char *form_text(unsigned forms) {
    if (forms == TILE_FORM_TILE) return "tile";
    return forms == TILE_FORM_MACHINE ? "machine" : "both";
}

static void print_attributes(TileOpId id) {
    const char *separator = "";
    for (int key = 0; key < TILE_ATTRIBUTE_COUNT; key++) {
        if (!tile_op_allows(id, (TileAttributeKey)key)) continue;
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

int main(void) {
    printf("# Operations of the IR\n\nMade from `lang/ops.def` by `tile-write-docs`; a test keeps it up to date. `?` "
           "marks an optional "
           "attribute.\n");
    for (size_t s = 0; s < sizeof sections / sizeof *sections; s++) {
        printf("\n## %s\n\n| operation | form | attributes | meaning |\n|---|---|---|---|\n", sections[s].title);
        for (int id = 0; id < TILE_OP_COUNT; id++)
            if (tile_op_info((TileOpId)id)->class == sections[s].class) print_row((TileOpId)id);
    }
    return 0;
}
