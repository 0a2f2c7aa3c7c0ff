/* What a compilation has to say, rendered once and kept apart from the compilation's memory. */
#include <stdlib.h>
#include <string.h>

#include "driver/unit.h"

struct TileReport {
    size_t error_count;
    char *plain, *coloured, *json; /* NULL where memory ran out */
};

static TileReport *create_report(size_t error_count, const char *plain, const char *coloured, const char *json) {
    TileReport *report = calloc(1, sizeof *report);
    if (!report) return NULL;
    report->error_count = error_count;
    report->plain = strdup(plain);
    report->coloured = strdup(coloured);
    report->json = strdup(json);
    return report;
}

/* A message without a place becomes one more error. */
static void render(TileArena *arena, TileDiagnostics *list, const char *message, TileText texts[3]) {
    for (int i = 0; i < 3; i++) texts[i] = (TileText){.arena = arena};
    if (list && list->list.count) {
        tile_diagnostics_render(list, &texts[0], false);
        tile_diagnostics_render(list, &texts[1], true);
        tile_diagnostics_render_json(list, &texts[2]);
    }
    if (!*message) return;
    tile_text_format(&texts[0], "error: %s\n", message);
    tile_text_format(&texts[1], "\033[1;31merror:\033[0m %s\n", message);
    if (texts[2].length) {
        size_t end = (size_t)(strrchr(texts[2].text, ']') - texts[2].text);
        texts[2].length = end;
        tile_text_add(&texts[2], ",\n ");
    } else {
        tile_text_add(&texts[2], "[");
    }
    tile_text_add(&texts[2], "{\"severity\":\"error\",\"message\":");
    tile_text_add_json(&texts[2], message);
    tile_text_add(&texts[2], "}]\n");
}

TileReport *tile_report_from_unit(TileUnit *unit) {
    TileText texts[3];
    const char *message = tile_text_get(&unit->message);
    size_t errors = 0;
    for (size_t i = 0; unit->diagnostics && i < unit->diagnostics->list.count; i++)
        errors += unit->diagnostics->list.items[i]->severity == TILE_SEVERITY_ERROR;
    bool silent = !*message && (!unit->diagnostics || !unit->diagnostics->list.count);
    if (silent) return NULL;
    render(unit->arena, unit->diagnostics, message, texts);
    return create_report(errors + (*message != 0), texts[0].text, texts[1].text, texts[2].text);
}

TileReport *tile_report_from_text(const char *message) {
    TileArena *arena = tile_arena_create(NULL);
    jmp_buf guard;
    if (!arena || setjmp(guard)) {
        tile_arena_destroy(arena);
        return NULL;
    }
    tile_arena_set_guard(arena, &guard);
    TileText texts[3];
    render(arena, NULL, message, texts);
    TileReport *report = create_report(1, texts[0].text, texts[1].text, texts[2].text);
    tile_arena_destroy(arena);
    return report;
}

/* Both texts, with `between` between them instead of the last `cut` bytes of the first and the first byte of the
 * second; NULL where memory runs out, or ran out before. */
static char *join_texts(const char *first, const char *second, size_t cut, const char *between) {
    if (!first || !second) return NULL;
    size_t length = strlen(first) - cut;
    char *joined = malloc(length + strlen(between) + strlen(second) + 1);
    if (!joined) return NULL;
    memcpy(joined, first, length);
    strcpy(joined + length, between);
    strcat(joined, second + (cut ? 1 : 0));
    return joined;
}

TileReport *tile_report_join(TileReport *first, TileReport *second) {
    if (!first || !second) return first ? first : second;
    TileReport *joined = calloc(1, sizeof *joined);
    if (joined) {
        joined->error_count = first->error_count + second->error_count;
        joined->plain = join_texts(first->plain, second->plain, 0, "");
        joined->coloured = join_texts(first->coloured, second->coloured, 0, "");
        joined->json = join_texts(first->json, second->json, 2, ",\n ");
    }
    tile_report_destroy(first);
    tile_report_destroy(second);
    return joined;
}

const char *tile_report_text(TileReport *report, bool colour) {
    const char *text = colour ? report->coloured : report->plain;
    return text ? text : "error: out of memory\n";
}

const char *tile_report_json(TileReport *report) { return report->json ? report->json : "[]\n"; }
size_t tile_report_error_count(const TileReport *report) { return report->error_count; }

void tile_report_destroy(TileReport *report) {
    if (!report) return;
    free(report->plain);
    free(report->coloured);
    free(report->json);
    free(report);
}
