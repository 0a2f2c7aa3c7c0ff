#include "launch/report.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/string.h"
#include "launch/image.h"
#include "launch/options.h"

struct TileReport {
    _Atomic size_t holders;
    size_t error_count;
    char *plain, *coloured, *json; /* NULL where memory ran out */
};

TileReport *tile_report_create(size_t error_count, const char *plain, const char *coloured, const char *json) {
    TileReport *report = calloc(1, sizeof *report);
    if (!report) return NULL;
    atomic_init(&report->holders, 1);
    report->error_count = error_count;
    report->plain = strdup(plain);
    report->coloured = strdup(coloured);
    report->json = strdup(json);
    return report;
}

/* An error, with a location or without (file NULL). */
typedef struct Error {
    const char *message, *file;
    size_t file_length;
    unsigned line, column;
} Error;

static void render_json(TileText *json, const Error *error, const char *file) {
    tile_text_add(json, "[{\"severity\":\"error\"");
    if (file) {
        tile_text_add(json, ",\"code\":\"assertion-failed\",\"file\":");
        tile_text_add_json(json, file);
        tile_text_format(json, ",\"line\":%u,\"column\":%u", error->line, error->column);
    }
    tile_text_add(json, ",\"message\":");
    tile_text_add_json(json, error->message);
    tile_text_add(json, "}]\n");
}

static TileReport *render(TileArena *arena, const Error *error) {
    const char *file = error->file ? tile_arena_string(arena, error->file, error->file_length) : NULL;
    const char *place = file ? tile_arena_format(arena, "%s:%u:%u: ", file, error->line, error->column) : "";
    const char *code = file ? " [assertion-failed]" : "";
    const char *plain = tile_arena_format(arena, "%serror: %s%s\n", place, error->message, code);
    const char *coloured =
        tile_arena_format(arena, "\033[1m%s\033[31merror:\033[0m %s%s\n", place, error->message, code);
    TileText json = {.arena = arena};
    render_json(&json, error, file);
    return tile_report_create(1, plain, coloured, tile_text_get(&json));
}

static TileReport *make_report(const Error *error) {
    TileArena *arena = tile_arena_create(NULL);
    jmp_buf guard;
    if (!arena || setjmp(guard)) {
        tile_arena_destroy(arena);
        return NULL;
    }
    tile_arena_set_guard(arena, &guard);
    TileReport *report = render(arena, error);
    tile_arena_destroy(arena);
    return report;
}

TileReport *tile_report_from_text(const char *message) { return make_report(&(Error){.message = message}); }

/* "kernel: file:line:column: assertion failed: text", as launch.h says. */
static TileReport *report_launch_error(const char *message) {
    const char *file = strstr(message, ": "), *words = strstr(message, ": assertion failed: "), *at = words;
    Error error = {.message = message};
    int colons = 0;
    while (words && at > file && (colons += at[-1] == ':') < 2) at--;
    bool placed = colons == 2 && at > file + 3 && sscanf(at, "%u:%u", &error.line, &error.column) == 2;
    if (!placed) return make_report(&error);
    error.file = file + 2;
    error.file_length = (size_t)(at - 1 - error.file);
    error.message = words + 2;
    return make_report(&error);
}

TileReport *tile_report_hold(TileReport *report) {
    if (report) atomic_fetch_add(&report->holders, 1);
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
        atomic_init(&joined->holders, 1);
        joined->error_count = first->error_count + second->error_count;
        joined->plain = join_texts(first->plain, second->plain, 0, "");
        joined->coloured = join_texts(first->coloured, second->coloured, 0, "");
        joined->json = join_texts(first->json, second->json, 2, ",\n ");
    }
    tile_report_destroy(first);
    tile_report_destroy(second);
    return joined;
}

const char *tile_next_mistake(const char *message) {
    const char *colon = strstr(message, ": ");
    size_t prefix = colon ? (size_t)(colon - message) + 2 : 0;
    for (const char *end = strchr(message, '\n'); end && prefix; end = strchr(end + 1, '\n'))
        if (strncmp(end + 1, message, prefix) == 0) return end + 1;
    return NULL;
}

TileReport *tile_report_from_launch(const char *message) {
    TileReport *report = NULL;
    for (const char *next; (next = tile_next_mistake(message)); message = next) {
        char *one = strndup(message, (size_t)(next - message - 1));
        if (one) report = tile_report_join(report, report_launch_error(one));
        free(one);
    }
    return tile_report_join(report, report_launch_error(message));
}

const char *tile_report_text(TileReport *report, bool colour) {
    if (!report) return "";
    const char *text = colour ? report->coloured : report->plain;
    return text ? text : "error: out of memory\n";
}

const char *tile_report_json(TileReport *report) { return report && report->json ? report->json : "[]\n"; }
size_t tile_report_error_count(const TileReport *report) { return report ? report->error_count : 0; }

void tile_report_destroy(TileReport *report) {
    if (!report || atomic_fetch_sub(&report->holders, 1) > 1) return;
    free(report->plain);
    free(report->coloured);
    free(report->json);
    free(report);
}

/* ---- calls ---- */

bool tile_call_begin(TileCall *call, const TileLaunchOptions *given) {
    if (!tile_options_read(&call->options, sizeof call->options, given)) return false;
    call->given = call->options.error;
    call->options.error = &call->error;
    call->error.status = TILE_OK;
    call->error.message[0] = 0;
    if (call->options.report) *call->options.report = NULL;
    return true;
}

tile_status tile_call_end(TileCall *call, tile_status status) {
    if (status == TILE_OK) return status;
    if (status == TILE_NOT_FOUND && (call->options.flags & TILE_LAUNCH_REMEMBERED)) return status; /* it is no failure */
    if (!call->error.message[0]) tile_error_set(&call->error, status, "%s", tile_status_text(status));
    if (call->given) *call->given = call->error;
    TileReport **report = call->options.report;
    if (report && !*report) *report = tile_report_from_launch(call->error.message);
    return status;
}
