#include "base/diagnostic.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    TileSeverity severity;
    const char *format;
} codes[TILE_DIAGNOSTIC_COUNT] = {
#define DIAGNOSTIC(code, name, severity, format) {name, TILE_SEVERITY_##severity, format},
#include "base/diagnostics.def"
#undef DIAGNOSTIC
};

const char *tile_diagnostic_name(TileDiagnosticCode code) { return codes[code].name; }

TileDiagnostics *tile_diagnostics_create(TileArena *arena) {
    TileDiagnostics *list = TILE_NEW(arena, TileDiagnostics);
    list->arena = arena;
    list->limits = &tile_usual_limits;
    tile_list_push(arena, &list->files, (TileSourceFile){.name = "", .text = ""});
    return list;
}

uint32_t tile_diagnostics_add_file(TileDiagnostics *list, const char *name, const char *text, size_t length) {
    tile_list_push(list->arena, &list->files, (TileSourceFile){.name = name, .text = text, .length = length});
    return (uint32_t)list->files.count - 1;
}

static bool already_there(const TileDiagnostics *list, TileDiagnosticCode code, TileSpan span) {
    for (size_t i = 0; i < list->list.count; i++) {
        const TileDiagnostic *other = list->list.items[i];
        if (other->code == code && memcmp(&other->span, &span, sizeof span) == 0) return true;
    }
    return false;
}

/* Length of the UTF-8 character at the start; 0 if it is malformed, or a control character. */
static unsigned visible_bytes(const char *text, size_t length) {
    const unsigned char *byte = (const unsigned char *)text;
    if (byte[0] < 0x80) return byte[0] >= 0x20 && byte[0] != 0x7f;
    unsigned count = byte[0] >= 0xf0 ? 4 : byte[0] >= 0xe0 ? 3 : 2;
    if (byte[0] < 0xc2 || byte[0] > 0xf4 || count > length) return 0;
    for (unsigned i = 1; i < count; i++)
        if ((byte[i] & 0xc0) != 0x80) return 0;
    bool control = byte[0] == 0xc2 && byte[1] < 0xa0, overlong = byte[0] == 0xe0 && byte[1] < 0xa0;
    bool surrogate = byte[0] == 0xed && byte[1] > 0x9f;
    bool range = (byte[0] == 0xf0 && byte[1] < 0x90) || (byte[0] == 0xf4 && byte[1] > 0x8f);
    return control || overlong || surrogate || range ? 0 : count;
}

/* Text of a program in a message may contain any bytes: those that are not printable are written as \x1b. */
static const char *escape_message(TileArena *arena, const char *message) {
    TileText text = {.arena = arena};
    size_t length = strlen(message), at = 0;
    while (at < length) {
        bool space = message[at] == '\n' || message[at] == '\t';
        unsigned count = space ? 1 : visible_bytes(message + at, length - at);
        if (count)
            tile_text_add_bytes(&text, message + at, count);
        else
            tile_text_format(&text, "\\x%02x", (unsigned char)message[at]);
        at += count ? count : 1;
    }
    return tile_text_get(&text);
}

/* Names in messages are truncated: one may be as long as the file. */
enum { LONGEST_MESSAGE = 1000 };

static const char *format_message(TileArena *arena, const char *format, va_list arguments) {
    const char *message = tile_arena_format_list(arena, format, arguments);
    size_t length = strnlen(message, LONGEST_MESSAGE + 1);
    if (length <= LONGEST_MESSAGE) return escape_message(arena, message);
    while (((unsigned char)message[--length] & 0xc0) == 0x80) continue;
    return escape_message(arena, tile_arena_format(arena, "%.*s...", (int)length, message));
}

TileDiagnostic *tile_diagnose(TileDiagnostics *list, TileDiagnosticCode code, TileSpan span, ...) {
    TileSourceFile *file = &list->files.items[span.file];
    TileSeverity severity = codes[code].severity;
    uint32_t *count = severity == TILE_SEVERITY_ERROR ? &file->errors : &file->warnings;
    if (severity == TILE_SEVERITY_ERROR) list->error_count++;
    if (*count >= TILE_MAX_FILE_ERRORS) return NULL;
    if (already_there(list, code, span)) return NULL;
    TileDiagnostic *diagnostic = TILE_NEW(list->arena, TileDiagnostic);
    diagnostic->code = code;
    diagnostic->severity = severity;
    diagnostic->span = span;
    va_list arguments;
    va_start(arguments, span);
    diagnostic->message = format_message(list->arena, codes[code].format, arguments);
    va_end(arguments);
    tile_list_push(list->arena, &list->list, diagnostic);
    (*count)++;
    return diagnostic;
}

void tile_diagnostic_note(TileDiagnostics *list, TileDiagnostic *diagnostic, TileSpan span, const char *format, ...) {
    if (!diagnostic) return;
    va_list arguments;
    va_start(arguments, format);
    const char *message = format_message(list->arena, format, arguments);
    va_end(arguments);
    tile_list_push(list->arena, &diagnostic->notes, (TileNote){span, message});
}

void tile_diagnostic_edit(TileDiagnostics *list, TileDiagnostic *diagnostic, TileSpan span, const char *format, ...) {
    if (!diagnostic) return;
    va_list arguments;
    va_start(arguments, format);
    diagnostic->replacement = tile_arena_format_list(list->arena, format, arguments);
    va_end(arguments);
    diagnostic->has_edit = true;
    diagnostic->edit = span;
}

void tile_diagnostic_note_limit(TileDiagnostics *list, TileDiagnostic *diagnostic, TileLimitId limit) {
    tile_diagnostic_note(list, diagnostic, (TileSpan){0}, "`--limit=%s=N` raises the limit", tile_limit_name(limit));
}

TileDiagnosticsMark tile_diagnostics_mark(const TileDiagnostics *list) {
    return (TileDiagnosticsMark){list->list.count, list->error_count};
}

void tile_diagnostics_rewind(TileDiagnostics *list, TileDiagnosticsMark mark) {
    for (size_t i = mark.count; i < list->list.count; i++) {
        const TileDiagnostic *dropped = list->list.items[i];
        TileSourceFile *file = &list->files.items[dropped->span.file];
        if (dropped->severity == TILE_SEVERITY_ERROR)
            file->errors--;
        else
            file->warnings--;
    }
    list->list.count = mark.count;
    list->error_count = mark.error_count;
}

void tile_diagnostics_withdraw(TileDiagnostics *list, const TileDiagnostic *newest) {
    if (!list->list.count || list->list.items[list->list.count - 1] != newest) return;
    tile_diagnostics_rewind(list, (TileDiagnosticsMark){list->list.count - 1, list->error_count - 1});
}

static bool stands_before(const TileSpan *a, const TileSpan *b) {
    return a->file != b->file ? a->file < b->file : a->begin < b->begin;
}

void tile_diagnostics_sort(TileDiagnostics *list) {
    for (size_t i = 1; i < list->list.count; i++) {
        TileDiagnostic *moved = list->list.items[i];
        size_t k = i;
        for (; k > 0 && stands_before(&moved->span, &list->list.items[k - 1]->span); k--)
            list->list.items[k] = list->list.items[k - 1];
        list->list.items[k] = moved;
    }
}

static void find_lines(TileDiagnostics *list, TileSourceFile *file) {
    TILE_LIST(uint32_t) lines = {0};
    tile_list_push(list->arena, &lines, 0);
    for (size_t i = 0; i < file->length; i++)
        if (file->text[i] == '\n') tile_list_push(list->arena, &lines, (uint32_t)i + 1);
    file->lines = lines.items;
    file->line_count = (uint32_t)lines.count;
    file->last_column = 1;
}

/* The index of the line that contains the offset. Tries the last result first, since queries mostly go forward in the
 * text. */
static uint32_t line_index(TileDiagnostics *list, TileSourceFile *file, uint32_t offset) {
    if (!file->lines) find_lines(list, file);
    uint32_t low = 0, high = file->line_count;
    uint32_t last = file->last_line;
    for (uint32_t near = last; near < last + 4 && near < file->line_count && file->lines[near] <= offset; near++)
        if (near + 1 == file->line_count || offset < file->lines[near + 1]) return file->last_line = near;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (file->lines[middle] <= offset)
            low = middle;
        else
            high = middle;
    }
    return file->last_line = low;
}

/* Continuation bytes are 10xxxxxx; eight bytes are counted at a time. */
static uint32_t characters(const char *text, uint32_t length) {
    const uint64_t ones = 0x0101010101010101u;
    uint32_t count = length, i = 0;
    for (; i + 8 <= length; i += 8) {
        uint64_t bytes;
        memcpy(&bytes, text + i, sizeof bytes);
        count -= (uint32_t)((bytes >> 7 & ~(bytes >> 6) & ones) * ones >> 56);
    }
    for (; i < length; i++) count -= ((unsigned char)text[i] & 0xc0) == 0x80;
    return count;
}

void tile_source_position(TileDiagnostics *list, uint32_t number, uint32_t offset, uint32_t *line, uint32_t *column) {
    TileSourceFile *file = &list->files.items[number];
    if (offset > file->length) offset = (uint32_t)file->length;
    uint32_t index = line_index(list, file, offset);
    bool behind = file->lines[index] <= file->last_offset && file->last_offset <= offset; /* the last place, in its line */
    uint32_t from = behind ? file->last_offset : file->lines[index];
    *line = index + 1;
    *column = file->last_column = (behind ? file->last_column : 1) + characters(file->text + from, offset - from);
    file->last_offset = offset;
}

TileSpan tile_source_span(TileDiagnostics *list, const char *name, uint32_t line, uint32_t column) {
    uint32_t number = (uint32_t)list->files.count - 1;
    while (number && strcmp(list->files.items[number].name, name) != 0) number--;
    TileSourceFile *file = &list->files.items[number];
    if (number && !file->lines) find_lines(list, file);
    if (!number || !line || line > file->line_count) return (TileSpan){0};
    uint32_t at = file->lines[line - 1];
    while (at < file->length && column > 1)
        if (((unsigned char)file->text[++at] & 0xc0) != 0x80) column--;
    return (TileSpan){number, at, at};
}

/* ---- rendering ---- */

static const char *severity_word(TileSeverity severity) {
    return severity == TILE_SEVERITY_ERROR ? "error" : "warning";
}

static uint32_t line_end(const TileSourceFile *file, uint32_t index) {
    uint32_t end = index + 1 < file->line_count ? file->lines[index + 1] - 1 : (uint32_t)file->length;
    if (end > file->lines[index] && file->text[end - 1] == '\r') end--;
    return end;
}

/* Control characters become '?'. So does the first byte of a malformed character, since columns count bytes that begin
 * one. */
static void add_visible(TileText *text, const char *bytes, uint32_t length) {
    for (uint32_t i = 0; i < length;) {
        unsigned count = bytes[i] == '\t' ? 1 : visible_bytes(bytes + i, length - i);
        if (count)
            tile_text_add_bytes(text, bytes + i, count);
        else if (((unsigned char)bytes[i] & 0xc0) != 0x80)
            tile_text_add_char(text, '?');
        i += count ? count : 1;
    }
}

/* Line breaks as in the text. */
static void add_one_line(TileText *text, const char *bytes, uint32_t length) {
    while (length) {
        const char *end = memchr(bytes, '\n', length);
        uint32_t line = end ? (uint32_t)(end - bytes) : length;
        add_visible(text, bytes, line);
        if (end) tile_text_add(text, "\\n");
        bytes += line + (end != NULL);
        length -= line + (end != NULL);
    }
}

static void add_line_and_carets(TileDiagnostics *list, TileText *text, TileSpan span, bool colour) {
    TileSourceFile *file = &list->files.items[span.file];
    uint32_t begin = span.begin < file->length ? span.begin : (uint32_t)file->length;
    uint32_t index = line_index(list, file, begin);
    uint32_t start = file->lines[index], end = line_end(file, index);
    enum { LONGEST = 400 };
    if (begin > end) begin = end;
    if (end - start > LONGEST && begin - start > LONGEST / 2) {
        start = begin - LONGEST / 2;
        while (start < begin && ((unsigned char)file->text[start] & 0xc0) == 0x80) start++;
    }
    if (end - start > LONGEST) end = start + LONGEST;
    while (end > begin && end < file->length && ((unsigned char)file->text[end] & 0xc0) == 0x80) end--;
    tile_text_format(text, "%5u | ", index + 1);
    add_visible(text, file->text + start, end - start);
    tile_text_add(text, "\n      | ");
    for (uint32_t i = start; i < begin; i++) {
        if (((unsigned char)file->text[i] & 0xc0) == 0x80) continue;
        tile_text_add_char(text, file->text[i] == '\t' ? '\t' : ' ');
    }
    uint32_t stop = span.end < end ? span.end : end;
    uint32_t carets = stop > begin ? characters(file->text + begin, stop - begin) : 1;
    if (colour) tile_text_add(text, "\033[1;32m");
    for (uint32_t i = 0; i < carets; i++) tile_text_add_char(text, i ? '~' : '^');
    if (colour) tile_text_add(text, "\033[0m");
    tile_text_add_char(text, '\n');
}

static void add_place(TileDiagnostics *list, TileText *text, TileSpan span) {
    uint32_t line, column;
    tile_source_position(list, span.file, span.begin, &line, &column);
    tile_text_format(text, "%s:%u:%u: ", list->files.items[span.file].name, line, column);
}

void tile_diagnostic_render(TileDiagnostics *list, const TileDiagnostic *diagnostic, TileText *text, bool colour) {
    bool error = diagnostic->severity == TILE_SEVERITY_ERROR;
    if (colour) tile_text_add(text, "\033[1m");
    if (diagnostic->span.file) add_place(list, text, diagnostic->span);
    if (colour) tile_text_add(text, error ? "\033[31m" : "\033[35m");
    tile_text_format(text, "%s: ", severity_word(diagnostic->severity));
    if (colour) tile_text_add(text, "\033[0;1m");
    tile_text_format(text, "%s [%s]\n", diagnostic->message, codes[diagnostic->code].name);
    if (colour) tile_text_add(text, "\033[0m");
    if (diagnostic->span.file) add_line_and_carets(list, text, diagnostic->span, colour);
    for (size_t i = 0; i < diagnostic->notes.count; i++) {
        const TileNote *note = &diagnostic->notes.items[i];
        if (note->span.file) add_place(list, text, note->span);
        tile_text_format(text, colour ? "\033[1;36mnote:\033[0m %s\n" : "note: %s\n", note->message);
        if (note->span.file) add_line_and_carets(list, text, note->span, colour);
    }
    if (!diagnostic->has_edit) return;
    add_place(list, text, diagnostic->edit);
    const TileSourceFile *file = &list->files.items[diagnostic->edit.file];
    uint32_t length = diagnostic->edit.end - diagnostic->edit.begin;
    bool removes = diagnostic->replacement[0] == 0;
    const char *shown = removes ? file->text + diagnostic->edit.begin : diagnostic->replacement;
    tile_text_add(text, colour ? "\033[1;32medit:\033[0m " : "edit: ");
    tile_text_add(text, length == 0 ? "insert `" : removes ? "remove `" : "write `");
    add_one_line(text, shown, removes ? length : (uint32_t)strlen(shown));
    tile_text_add(text, "`\n");
}

void tile_diagnostics_render(TileDiagnostics *list, TileText *text, bool colour) {
    for (size_t i = 0; i < list->list.count; i++) tile_diagnostic_render(list, list->list.items[i], text, colour);
}

static void add_json_span(TileDiagnostics *list, TileText *text, TileSpan span) {
    uint32_t line = 0, column = 0, end_line = 0, end_column = 0;
    if (span.file) {
        tile_source_position(list, span.file, span.begin, &line, &column);
        tile_source_position(list, span.file, span.end, &end_line, &end_column);
    }
    tile_text_add(text, "\"file\":");
    tile_text_add_json(text, list->files.items[span.file].name);
    tile_text_format(text, ",\"begin\":%u,\"end\":%u,\"line\":%u,\"column\":%u,\"end_line\":%u,\"end_column\":%u",
                     span.begin, span.end, line, column, end_line, end_column);
}

void tile_diagnostic_render_json(TileDiagnostics *list, const TileDiagnostic *diagnostic, TileText *text) {
    tile_text_format(text, "{\"severity\":\"%s\",\"code\":\"%s\",", severity_word(diagnostic->severity),
                     codes[diagnostic->code].name);
    add_json_span(list, text, diagnostic->span);
    tile_text_add(text, ",\"message\":");
    tile_text_add_json(text, diagnostic->message);
    tile_text_add(text, ",\"notes\":[");
    for (size_t i = 0; i < diagnostic->notes.count; i++) {
        tile_text_add(text, i ? ",{" : "{");
        add_json_span(list, text, diagnostic->notes.items[i].span);
        tile_text_add(text, ",\"message\":");
        tile_text_add_json(text, diagnostic->notes.items[i].message);
        tile_text_add_char(text, '}');
    }
    tile_text_add_char(text, ']');
    if (diagnostic->has_edit) {
        tile_text_add(text, ",\"edit\":{");
        add_json_span(list, text, diagnostic->edit);
        tile_text_add(text, ",\"replacement\":");
        tile_text_add_json(text, diagnostic->replacement);
        tile_text_add_char(text, '}');
    }
    tile_text_add_char(text, '}');
}

void tile_diagnostics_render_json(TileDiagnostics *list, TileText *text) {
    tile_text_add_char(text, '[');
    for (size_t i = 0; i < list->list.count; i++) {
        if (i) tile_text_add(text, ",\n ");
        tile_diagnostic_render_json(list, list->list.items[i], text);
    }
    tile_text_add(text, "]\n");
}
