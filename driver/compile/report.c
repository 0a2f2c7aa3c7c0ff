/* Renders diagnostics and message of a compilation into a report that outlives its memory. */
#include "driver/compile/unit.h"

/* A message without a location becomes one more error. */
TileReport *tile_report_from_unit(TileUnit *unit) {
    TileText texts[3];
    TileReport *placed = NULL;
    const char *message = tile_text_get(&unit->message);
    size_t errors = 0, count = unit->diagnostics ? unit->diagnostics->list.count : 0;
    for (size_t i = 0; i < count; i++) errors += unit->diagnostics->list.items[i]->severity == TILE_SEVERITY_ERROR;
    for (int i = 0; i < 3; i++) texts[i] = (TileText){.arena = unit->arena};
    if (count) {
        tile_diagnostics_render(unit->diagnostics, &texts[0], false);
        tile_diagnostics_render(unit->diagnostics, &texts[1], true);
        tile_diagnostics_render_json(unit->diagnostics, &texts[2]);
        placed = tile_report_create(errors, texts[0].text, texts[1].text, texts[2].text);
    }
    return *message ? tile_report_join(placed, tile_report_from_text(message)) : placed;
}
