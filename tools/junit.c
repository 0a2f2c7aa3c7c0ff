/* Results of tests as JUnit's XML. */
#include "tools/junit.h"

#include <string.h>

static const char *copy(TileArena *arena, const char *text) { return text ? tile_arena_string(arena, text, strlen(text)) : NULL; }

void tile_junit_add(TileJunit *junit, const TileJunitCase *given) {
    TileJunitCase own = *given;
    own.suite = copy(junit->arena, given->suite);
    own.name = copy(junit->arena, given->name);
    own.target = copy(junit->arena, given->target);
    own.failure = copy(junit->arena, given->failure);
    tile_list_push(junit->arena, &junit->cases, own);
}

/* Escaped, and without characters that XML has no form for. */
static void add_text(TileText *text, const char *words) {
    TileText plain = {.arena = text->arena};
    for (; *words; words++)
        tile_text_add_char(&plain, (unsigned char)*words < 0x20 && !strchr("\t\n\r", *words) ? '?' : *words);
    tile_text_add_xml(text, tile_text_get(&plain));
}

typedef struct Sums {
    unsigned tests, failures, errors;
    double seconds;
} Sums;

static Sums add_up(const TileJunit *junit, size_t first, size_t end) {
    Sums sums = {0};
    for (size_t i = first; i < end; i++) {
        const TileJunitCase *c = &junit->cases.items[i];
        sums.tests++;
        sums.failures += c->failure && c->target;
        sums.errors += c->failure && !c->target;
        sums.seconds += c->seconds;
    }
    return sums;
}

static void add_sums(TileText *text, const Sums *sums) {
    tile_text_format(text, " tests=\"%u\" failures=\"%u\" errors=\"%u\" time=\"%.6f\">\n", sums->tests, sums->failures,
                     sums->errors, sums->seconds);
}

static void add_case(TileText *text, const TileJunitCase *c) {
    tile_text_add(text, "    <testcase classname=\"");
    add_text(text, c->suite);
    tile_text_add(text, "\" name=\"");
    add_text(text, c->name);
    if (c->target) tile_text_format(text, " [%s]", c->target);
    tile_text_format(text, "\" time=\"%.6f\"%s", c->seconds, c->failure ? ">\n" : "/>\n");
    if (!c->failure) return;
    const char *element = c->target ? "failure" : "error";
    const char *line = tile_arena_string(text->arena, c->failure, strcspn(c->failure, "\n"));
    tile_text_format(text, "      <%s message=\"", element);
    add_text(text, line);
    tile_text_add(text, "\">");
    add_text(text, c->failure);
    tile_text_format(text, "</%s>\n    </testcase>\n", element);
}

void tile_junit_print(const TileJunit *junit, TileText *text) {
    Sums all = add_up(junit, 0, junit->cases.count);
    tile_text_add(text, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"tilec test\"");
    add_sums(text, &all);
    for (size_t first = 0, end; first < junit->cases.count; first = end) {
        const char *suite = junit->cases.items[first].suite;
        for (end = first; end < junit->cases.count && strcmp(junit->cases.items[end].suite, suite) == 0;) end++;
        Sums sums = add_up(junit, first, end);
        tile_text_add(text, "  <testsuite name=\"");
        add_text(text, suite);
        tile_text_add(text, "\"");
        add_sums(text, &sums);
        for (size_t i = first; i < end; i++) add_case(text, &junit->cases.items[i]);
        tile_text_add(text, "  </testsuite>\n");
    }
    tile_text_add(text, "</testsuites>\n");
}
