/* The server's parts that clients cannot look at one by one: places in texts, names of files, frames of messages, and that
 * the language has a word of help for each of its functions. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lsp/help.h"
#include "lsp/lines.h"
#include "lsp/uri.h"
#include "lsp/wire.h"
#include "parser/check/builtin.h"

/* ---- places ---- */

static const char text[] = "ab\nc\xc3\xa9\xf0\x9f\x98\x80z\r\n\nlast";

static TileLines lines_of(const char *of, size_t length) {
    TileLines lines;
    size_t *starts = malloc(tile_lines_count(of, length) * sizeof *starts);
    tile_lines_find(&lines, of, length, starts);
    return lines;
}

Test(lines, positions_in_each_encoding) {
    TileLines lines = lines_of(text, sizeof text - 1);
    size_t z = (size_t)(strchr(text, 'z') - text);
    cr_assert_eq(lines.count, 4);
    const int64_t units[] = {[TILE_ENCODING_UTF16] = 4, [TILE_ENCODING_UTF8] = 7, [TILE_ENCODING_UTF32] = 3};
    for (int e = 0; e < 3; e++) {
        TilePosition at = tile_lines_position(&lines, z, (TileEncoding)e);
        cr_assert(at.line == 1 && at.unit == units[e], "encoding %d: %lld", e, (long long)at.unit);
    }
    free(lines.starts);
}

Test(lines, every_character_has_a_place_that_leads_back) {
    TileLines lines = lines_of(text, sizeof text - 1);
    for (int e = 0; e < 3; e++)
        for (size_t i = 0; i < sizeof text; i++) {
            bool inside = i < sizeof text - 1 && ((unsigned char)text[i] & 0xc0) == 0x80;
            bool behind_return = i && text[i - 1] == '\r'; /* the end of a line is before both */
            if (inside || behind_return) continue;
            TilePosition at = tile_lines_position(&lines, i, (TileEncoding)e);
            cr_assert_eq(tile_lines_offset(&lines, at, (TileEncoding)e), i, "encoding %d, byte %zu", e, i);
        }
    free(lines.starts);
}

Test(lines, places_that_are_not_there) {
    TileLines lines = lines_of(text, sizeof text - 1);
    size_t whole = sizeof text - 1, line_end = (size_t)(strchr(text, '\r') - text);
    for (int e = 0; e < 3; e++) {
        TileEncoding encoding = (TileEncoding)e;
        cr_assert_eq(tile_lines_offset(&lines, (TilePosition){-1, 5}, encoding), 0);
        cr_assert_eq(tile_lines_offset(&lines, (TilePosition){INT64_MAX, 0}, encoding), whole);
        cr_assert_eq(tile_lines_offset(&lines, (TilePosition){1, INT64_MAX}, encoding), line_end);
        cr_assert_eq(tile_lines_offset(&lines, (TilePosition){0, 99}, encoding), 2);
        cr_assert_eq(tile_lines_offset(&lines, (TilePosition){3, -7}, encoding), whole - 4);
    }
    /* Within a character: before it. */
    size_t far = (size_t)(strchr(text, '\xf0') - text);
    cr_assert_eq(tile_lines_offset(&lines, (TilePosition){1, 3}, TILE_ENCODING_UTF16), far);
    cr_assert_eq(tile_lines_offset(&lines, (TilePosition){1, 5}, TILE_ENCODING_UTF8), far);
    free(lines.starts);
    TileLines none = lines_of("", 0);
    cr_assert_eq(tile_lines_offset(&none, (TilePosition){0, 3}, TILE_ENCODING_UTF16), 0);
    free(none.starts);
}

/* ---- names of files ---- */

Test(uri, paths) {
    static const char *const rows[][2] = {{"/a/./b//../c.tile", "/a/c.tile"}, {"/../../x", "/x"}, {"a/../../b", "../b"},
                                          {"./a/", "a"},                      {"/", "/"},       {"", ""},
                                          {"../../a", "../../a"},             {"a/..", ""}};
    TileArena *arena = tile_arena_create(NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_assert_str_eq(tile_path_normal(arena, rows[i][0]), rows[i][1]);
    tile_arena_destroy(arena);
}

Test(uri, there_and_back) {
    static const char *const rows[][2] = {
        {"file:///home/a%20b/c%C3%A9.tile", "/home/a b/c\xc3\xa9.tile"}, {"file:///a%2Fb%25", "/a/b%"},
        {"tile-stdlib:///math.tile", "<stdlib>/math.tile"},              {"file:///bad%zz%", "/bad%zz%"},
        {"untitled:Untitled-1", "untitled:Untitled-1"}};
    TileArena *arena = tile_arena_create(NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cr_assert_str_eq(tile_path_of_uri(arena, rows[i][0]), rows[i][1]);
        const char *again = tile_path_of_uri(arena, tile_uri_of_path(arena, rows[i][1]));
        cr_assert_str_eq(again, rows[i][1]);
    }
    cr_assert_str_eq(tile_path_of_uri(arena, "tile-stdlib:/math.tile"), "<stdlib>/math.tile");
    cr_assert_str_eq(tile_path_of_uri(arena, "file://machine/x.tile"), "/x.tile");
    tile_arena_destroy(arena);
}

/* ---- frames ---- */

/* What comes of these bytes, a piece of so many at a time: bodies with `|` between them, `!` for what is malformed. */
static void read_all(const char *bytes, size_t length, size_t piece, char *out) {
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    TileWire wire = {.in = ends[0], .out = -1};
    *out = 0;
    for (size_t at = 0; at <= length; at += piece) {
        size_t count = length - at < piece ? length - at : piece;
        if (count) cr_assert_eq(write(ends[1], bytes + at, count), (ssize_t)count);
        if (!count || at + count == length) close(ends[1]), ends[1] = -1;
        char *body = NULL;
        size_t size;
        TileWireResult result;
        while ((result = tile_wire_read(&wire, false, &body, &size)) != TILE_WIRE_NOTHING && result != TILE_WIRE_END) {
            strcat(out, result == TILE_WIRE_MESSAGE ? body : "!");
            strcat(out, "|");
            if (result == TILE_WIRE_MESSAGE) free(body);
        }
        if (ends[1] < 0) break;
    }
    close(ends[0]);
    tile_wire_release(&wire);
}

Test(wire, whole_messages_whatever_the_pieces) {
    static const char *const rows[][2] = {
        {"Content-Length: 3\r\n\r\n{1}Content-Length: 0\r\n\r\nContent-Length: 2\r\n\r\n[]", "{1}||[]|"},
        {"Content-Type: x\r\ncontent-LENGTH:2  \r\n\r\n[]", "[]|"},
        {"Content-Length: 2\n\n[]", "[]|"},
        {"nonsense\r\n\r\nContent-Length: 2\r\n\r\n[]", "!|[]|"},
        {"Content-Length: x\r\n\r\n{}Content-Length: 2\r\n\r\n[]", "!|[]|"},
        {"Content-Length: 99999999999999999999\r\n\r\n{}Content-Length: 2\r\n\r\n[]", "!|[]|"},
        {"Content-Length: 5\r\n\r\n{1", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t piece = 1; piece < 40; piece += 3) {
            char out[256];
            read_all(rows[i][0], strlen(rows[i][0]), piece, out);
            cr_assert_str_eq(out, rows[i][1], "row %zu, pieces of %zu: %s", i, piece, out);
        }
}

/* ---- help ---- */

Test(help, every_function_has_words) {
    TileArena *arena = tile_arena_create(NULL);
    size_t count = 0;
    for (; tile_builtin_at(count); count++) {
        const TileBuiltin *builtin = tile_builtin_at(count);
        const char *words = tile_help_words(builtin->name);
        cr_assert(words && *words, "lsp/help.def has no row for `%s`", builtin->name);
        bool plain = builtin->rule == TILE_BUILTIN_ELEMENTWISE && builtin->arity == 1;
        cr_assert(plain || tile_help_form(builtin->name), "lsp/help.def has no form of `%s`", builtin->name);
        cr_assert(strstr(tile_help_markdown(arena, builtin->name), builtin->name));
    }
    cr_assert_gt(count, 60);
    cr_assert_null(tile_help_markdown(arena, "nothing"));
    cr_assert_null(tile_help_words("nothing"));
    cr_assert(strstr(tile_help_markdown(arena, "float"), "bf16"));
    tile_arena_destroy(arena);
}
