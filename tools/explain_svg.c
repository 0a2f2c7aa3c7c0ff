/* tilec explain --svg: each layout as a table of the tile's elements, with the thread and register that hold each one,
 * and its bank if the tile is row-major in shared memory. */
#include <string.h>

#include "lang/layout/layout.h"
#include "tools/explain.h"

enum {
    CELL_WIDTH = 46,
    CELL_HEIGHT = 26,
    MARGIN = 24,
    TITLE = 44,
    MOST_ROWS = 32, /* what is shown of a tile */
    MOST_COLUMNS = 64,
    BANKS = 32,
    BANK_BYTES = 4,
    HUES = 360
};

/* The first thread and register of each element that is shown. */
typedef struct Picture {
    TileLayout layout;
    unsigned rows, columns;             /* of the tile: all axes but the last are one */
    unsigned shown_rows, shown_columns; /* of them */
    TileLayoutInput places[MOST_ROWS * MOST_COLUMNS];
    bool held[MOST_ROWS * MOST_COLUMNS];
} Picture;

static unsigned least(unsigned a, unsigned b) { return a < b ? a : b; }

static void hold(Picture *picture, TileLayoutInput place) {
    int64_t index[TILE_MAX_TILE_RANK] = {0}, row = 0;
    const TileLayout *layout = &picture->layout;
    tile_layout_apply(layout, place, index);
    for (unsigned axis = 0; axis + 1u < layout->rank; axis++)
        row = row * tile_layout_extent(layout, axis) + index[axis];
    int64_t column = index[layout->rank - 1u];
    if (row >= picture->shown_rows || column >= picture->shown_columns) return;
    size_t at = (size_t)(row * MOST_COLUMNS + column);
    if (picture->held[at]) return; /* copies */
    picture->held[at] = true;
    picture->places[at] = place;
}

static bool read_picture(const char *text, Picture *picture) {
    memset(picture, 0, sizeof *picture);
    TileLayout *layout = &picture->layout;
    if (!tile_layout_read(text, layout)) return false;
    picture->rows = 1;
    for (unsigned axis = 0; axis + 1u < layout->rank; axis++)
        picture->rows *= (unsigned)tile_layout_extent(layout, axis);
    picture->columns = (unsigned)tile_layout_extent(layout, layout->rank - 1u);
    picture->shown_rows = least(picture->rows, MOST_ROWS);
    picture->shown_columns = least(picture->columns, MOST_COLUMNS);
    for (uint32_t warp = 0; warp < 1u << layout->bits[TILE_LAYOUT_WARP]; warp++)
        for (uint32_t lane = 0; lane < 1u << layout->bits[TILE_LAYOUT_LANE]; lane++)
            for (uint32_t reg = 0; reg < tile_layout_registers(layout); reg++)
                hold(picture, (TileLayoutInput){.reg = reg, .lane = lane, .warp = warp});
    return true;
}

/* A thread has one colour; adjacent threads have similar ones. */
static void add_cell(TileText *svg, const Picture *picture, unsigned row, unsigned column, unsigned top,
                     unsigned scalar_bytes) {
    size_t at = (size_t)row * MOST_COLUMNS + column;
    unsigned x = MARGIN + column * CELL_WIDTH, y = top + row * CELL_HEIGHT;
    if (!picture->held[at]) {
        tile_text_format(svg, "<rect x=\"%u\" y=\"%u\" width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n", x, y,
                         CELL_WIDTH, CELL_HEIGHT);
        return;
    }
    TileLayoutInput place = picture->places[at];
    unsigned bank = (row * picture->columns + column) * scalar_bytes / BANK_BYTES % BANKS;
    unsigned hue = place.lane * HUES / TILE_LANES, light = 88 - place.warp % 4 * 8;
    tile_text_format(svg,
                     "<rect x=\"%u\" y=\"%u\" width=\"%d\" height=\"%d\" fill=\"hsl(%u,60%%,%u%%)\"/>"
                     "<text x=\"%u\" y=\"%u\">t%u r%u</text><text class=\"bank\" x=\"%u\" y=\"%u\">%u</text>\n",
                     x, y, CELL_WIDTH, CELL_HEIGHT, hue, light, x + 3, y + 11, place.warp * TILE_LANES + place.lane,
                     place.reg, x + 3, y + 22, bank);
}

static unsigned height_of(const Picture *picture) { return TITLE + picture->shown_rows * CELL_HEIGHT + MARGIN; }

static void add_picture(TileText *svg, const Picture *picture, const TileExplainedLayout *layout, const char *phase,
                        unsigned top) {
    const TileRemark *tile = &layout->tiles.items[0];
    tile_text_format(svg, "<text class=\"title\" x=\"%d\" y=\"%u\">", MARGIN, top + 16);
    tile_text_add_xml(svg, phase);
    tile_text_format(svg, ": %s %s, line %u", tile_scalar_name(tile->scalar), tile->name, tile->place.line);
    if (layout->tiles.count > 1) tile_text_format(svg, ", and %zu more", layout->tiles.count - 1);
    if (picture->shown_rows < picture->rows || picture->shown_columns < picture->columns)
        tile_text_format(svg, "; the first %u x %u of %u x %u", picture->shown_rows, picture->shown_columns,
                         picture->rows, picture->columns);
    tile_text_format(svg, "</text>\n<text class=\"layout\" x=\"%d\" y=\"%u\">", MARGIN, top + 34);
    tile_text_add_xml(svg, layout->layout);
    tile_text_add(svg, "</text>\n");
    for (unsigned row = 0; row < picture->shown_rows; row++)
        for (unsigned column = 0; column < picture->shown_columns; column++)
            add_cell(svg, picture, row, column, top + TITLE, tile_scalar_bytes(tile->scalar));
}

void tile_explain_draw(const TileExplanation *explanation, TileText *svg) {
    TileText body = {.arena = explanation->arena};
    Picture *picture = TILE_NEW(explanation->arena, Picture);
    unsigned top = MARGIN + 20, width = 640;
    for (size_t i = 0; i < explanation->phases.count; i++) {
        const TileExplainedPhase *phase = &explanation->phases.items[i];
        for (size_t k = 0; k < phase->layouts.count; k++) {
            if (!read_picture(phase->layouts.items[k].layout, picture)) continue;
            add_picture(&body, picture, &phase->layouts.items[k], phase->name, top);
            top += height_of(picture);
            unsigned wide = 2 * MARGIN + picture->shown_columns * CELL_WIDTH;
            if (wide > width) width = wide;
        }
    }
    tile_text_format(svg,
                     "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" font-family=\"sans-serif\" "
                     "font-size=\"9\">\n<style>rect{stroke:#888888;stroke-width:0.5}.title{font-size:13px}"
                     ".layout{font-family:monospace;font-size:11px}.bank{fill:#555555}</style>\n"
                     "<rect width=\"%u\" height=\"%u\" fill=\"#ffffff\" stroke=\"none\"/>\n"
                     "<text class=\"title\" x=\"%d\" y=\"%d\">",
                     width, top, width, top, MARGIN, MARGIN);
    tile_text_add_xml(svg, explanation->kernel);
    tile_text_format(svg,
                     " for %s: thread and register of each element; below, its bank in shared memory, row after "
                     "row</text>\n",
                     explanation->target);
    tile_text_add(svg, tile_text_get(&body));
    tile_text_add(svg, "</svg>\n");
}
