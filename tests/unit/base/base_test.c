#include <criterion/criterion.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include "base/list.h"
#include "base/map.h"
#include "base/print_line.h"
#include "base/records.h"
#include "base/string.h"

Test(status, texts_and_exit_codes) {
    cr_assert_str_eq(tile_status_text(TILE_OK), "success");
    cr_assert_eq(tile_status_exit_code(TILE_OK), 0);
    cr_assert_eq(tile_status_exit_code(TILE_INVALID_SOURCE), 1);
    cr_assert_eq(tile_status_exit_code(TILE_IO), 2);
    cr_assert_eq(tile_status_exit_code(TILE_INTERNAL), 3);
    cr_assert_eq(tile_status_exit_code((tile_status)12345), 3);
}

Test(arena, blocks_are_aligned_zeroed_and_apart) {
    TileArena *arena = tile_arena_create(NULL);
    unsigned char *previous = NULL;
    for (size_t size = 0; size < 5000; size += 37) {
        unsigned char *block = tile_arena_alloc(arena, size);
        cr_assert_eq((uintptr_t)block % 16, 0);
        for (size_t i = 0; i < size; i++) cr_assert_eq(block[i], 0);
        memset(block, 0xff, size);
        cr_assert_neq(block, previous);
        previous = block;
    }
    tile_arena_destroy(arena);
}

Test(arena, growing_keeps_what_was_there) {
    TileArena *arena = tile_arena_create(NULL);
    TILE_LIST(int) list = {0};
    for (int i = 0; i < 10000; i++) tile_list_push(arena, &list, i);
    for (int i = 0; i < 10000; i++) cr_assert_eq(list.items[i], i);
    tile_arena_destroy(arena);
}

Test(arena, the_last_list_grows_where_it_lies) {
    TileArena *arena = tile_arena_create(NULL);
    TILE_LIST(int) list = {0}, other = {0};
    tile_list_push(arena, &list, 0);
    int *first = list.items;
    for (int i = 1; i < 500; i++) tile_list_push(arena, &list, i);
    cr_assert_eq(list.items, first);
    tile_list_push(arena, &other, -1);
    for (int i = 500; i < 100000; i++) tile_list_push(arena, &list, i);
    cr_assert_neq(list.items, first);
    for (int i = 0; i < 100000; i++) cr_assert_eq(list.items[i], i);
    cr_assert_eq(other.items[0], -1);
    tile_arena_destroy(arena);
}

/* Each round allocates blocks of every size, and one with a size of its own; after a reset the next round uses the same
 * memory. */
static size_t fill(TileArena *arena, char **first, char byte) {
    *first = tile_arena_take(arena, 100);
    memset(*first, byte, 100);
    for (int i = 0; i < 90; i++) memset(tile_arena_take(arena, 100 * 1000), byte, 100 * 1000);
    memset(tile_arena_take(arena, 3 << 20), byte, 3 << 20);
    char *zeroed = tile_arena_alloc(arena, 5000);
    for (int i = 0; i < 5000; i++) cr_assert_eq(zeroed[i], 0);
    return tile_arena_bytes(arena);
}

Test(arena, a_reset_keeps_the_memory) {
    TileArena *arena = tile_arena_create(NULL);
    char *first, *again;
    size_t bytes = fill(arena, &first, 1);
    for (int i = 0; i < 5; i++) {
        tile_arena_reset(arena);
        cr_assert_eq(tile_arena_bytes(arena), 0);
        cr_assert_eq(fill(arena, &again, 2), bytes);
        cr_assert_eq(again, first);
    }
    tile_arena_reset(arena);
    tile_arena_destroy(arena);
}

Test(arena, past_its_limit_it_jumps_to_the_guard) {
    TileArena *arena = tile_arena_create(NULL);
    jmp_buf guard;
    volatile int allocated = 0;
    tile_arena_set_guard(arena, &guard);
    tile_arena_set_limit(arena, 1 << 20);
    if (!setjmp(guard)) {
        for (;;) {
            tile_arena_alloc(arena, 1000);
            allocated++;
        }
    }
    cr_assert_gt(allocated, 100);
    cr_assert_leq(tile_arena_bytes(arena), 1 << 20);
    if (!setjmp(guard)) {
        tile_arena_alloc(arena, SIZE_MAX - 4);
        cr_assert_fail("an impossible size was allocated");
    }
    tile_arena_destroy(arena);
}

Test(string, text_grows_and_formats) {
    TileArena *arena = tile_arena_create(NULL);
    TileText text = {.arena = arena};
    cr_assert_str_eq(tile_text_get(&text), "");
    for (int i = 0; i < 1000; i++) tile_text_format(&text, "%d,", i);
    cr_assert_eq(text.length, strlen(text.text));
    cr_assert_eq(strncmp(text.text, "0,1,2,3,", 8), 0);
    char wide[600];
    memset(wide, 'x', sizeof wide - 1);
    wide[sizeof wide - 1] = 0;
    size_t before = text.length;
    tile_text_format(&text, "%s!", wide);
    cr_assert_eq(text.length, before + sizeof wide);
    tile_arena_destroy(arena);
}

Test(string, equal_texts_are_equal_pointers) {
    TileArena *arena = tile_arena_create(NULL);
    TileInterner *interner = tile_interner_create(arena);
    const char *first[1000];
    char name[32];
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "name%d", i);
        first[i] = tile_intern_string(interner, name);
    }
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "name%d", i);
        cr_assert_eq(tile_intern_string(interner, name), first[i]);
        cr_assert_str_eq(first[i], name);
    }
    cr_assert_eq(tile_intern(interner, "name7xyz", 5), first[7]);
    cr_assert_neq(tile_intern(interner, "a\0b", 3), tile_intern(interner, "a\0c", 3));
    tile_arena_destroy(arena);
}

Test(string, tables_on_top_of_one_that_is_shared) {
    TileArena *arena = tile_arena_create(NULL);
    TileInterner *below = tile_interner_create(arena);
    const char *shared = tile_intern_string(below, "shared");
    TileInterner *one = tile_interner_create_above(arena, below), *two = tile_interner_create_above(arena, below);
    const char *own = tile_intern_string(one, "own");
    cr_assert_eq(tile_intern_string(one, "shared"), shared);
    cr_assert_eq(tile_intern_string(two, "shared"), shared);
    cr_assert_eq(tile_interned(one, "own", 3), own);
    cr_assert_eq(tile_intern_string(one, "own"), own);
    cr_assert_null(tile_interned(below, "own", 3));
    cr_assert_null(tile_interned(two, "own", 3));
    cr_assert_neq(tile_intern_string(two, "own"), own);
    for (int i = 0; i < 1000; i++) tile_intern_string(one, tile_arena_format(arena, "n%d", i));
    cr_assert_eq(tile_interned(one, "shared", 6), shared);
    tile_arena_destroy(arena);
}

Test(map, finds_replaces_and_keeps_order) {
    TileArena *arena = tile_arena_create(NULL);
    TileMap map;
    int keys[2000];
    tile_map_init(&map, arena);
    cr_assert_null(tile_map_get(&map, &keys[0]));
    for (int i = 0; i < 2000; i++) tile_map_set(&map, &keys[i], &keys[1999 - i]);
    tile_map_set(&map, &keys[5], NULL);
    cr_assert_eq(map.count, 2000);
    for (int i = 0; i < 2000; i++) {
        cr_assert_eq(tile_map_get(&map, &keys[i]), i == 5 ? NULL : &keys[1999 - i]);
        cr_assert_eq(map.entries[i].key, &keys[i]);
    }
    cr_assert_not_null(tile_map_find(&map, &keys[5]));
    cr_assert_null(tile_map_find(&map, &map));
    tile_arena_destroy(arena);
}

Test(text, quoted_for_json_and_xml) {
    TileArena *arena = tile_arena_create(NULL);
    TileText json = {.arena = arena}, xml = {.arena = arena};
    tile_text_add_json(&json, "a\"\\\n");
    cr_assert_str_eq(tile_text_get(&json), "\"a\\\"\\\\\\u000a\"");
    tile_text_add_xml(&xml, "f[N<2 && M>1]");
    cr_assert_str_eq(tile_text_get(&xml), "f[N&lt;2 &amp;&amp; M>1]");
    tile_arena_destroy(arena);
}

static void keep_line(void *host, const char *line, size_t length) { tile_text_add_bytes(host, line, length); }

static const char *printed(TileArena *arena, const char *template, const uint64_t *const *items) {
    TileText text = {.arena = arena};
    tile_print_line(template, items, keep_line, &text);
    return tile_text_get(&text);
}

Test(print_line, places) {
    TileArena *arena = tile_arena_create(NULL);
    double numbers[] = {0.5, 2, -1, 4};
    uint64_t integers[20] = {7, UINT64_MAX, 3, 9}, some[4] = {0, 0, 1, 1}, words[4];
    const uint64_t *items[] = {integers, some, words, some};
    unsigned line = 0, column = 0;
    memcpy(words, numbers, sizeof words);
    cr_assert_str_eq(printed(arena, "{{n} = {i:2x2?}, {d:4?}", items), "{n} = [[_, _], [3, 9]], [_, _, -1, 4]\n");
    cr_assert_str_eq(printed(arena, "{!12:9}v = {i:2x2!}, {d:4!}", items), "v = 3 at [1, 0], -1 at [2]\n");
    cr_assert_str_eq(printed(arena, "{!1:2}{i:20}", items), "[7, -1, 3, ..., 0, 0, 0]\n");
    cr_assert_eq(tile_print_count("{!1:2}{i} {u:4!} {b?}"), 5);
    cr_assert(tile_print_is_assertion("{!12:9}", &line, &column) && line == 12 && column == 9);
    cr_assert(!tile_print_is_assertion("{i:4!}", NULL, NULL));
    cr_assert(!tile_print_is_assertion("k[{i}]: {{!1:2}", NULL, NULL));
    tile_arena_destroy(arena);
}

static const char *printed_packed(TileArena *arena, const char *template, const uint64_t *words) {
    TileText text = {.arena = arena};
    tile_print_packed_line(template, words, keep_line, &text);
    return tile_text_get(&text);
}

/* The same text as for all items, of which only the borders of a large tile are given. */
Test(print_line, packed_items) {
    enum { ROWS = 40, COLUMNS = 30, SHOWN = 6 };
    TileArena *arena = tile_arena_create(NULL);
    static uint64_t whole[ROWS * COLUMNS], mask[ROWS * COLUMNS], packed[2 * SHOWN * SHOWN + 1];
    const uint64_t *items[] = {whole, mask, whole + 1};
    const char *template = "x = {i:40x30?} n = {i}";
    TilePrintPlace place;
    const char *rest = template;
    cr_assert(tile_print_next(&rest, &place));
    cr_assert_eq(tile_print_packed_extent(&place, false, 0), SHOWN);
    cr_assert_eq(tile_print_packed_words(template), 2 * SHOWN * SHOWN + 1);
    for (uint64_t i = 0; i < ROWS * COLUMNS; i++) {
        whole[i] = i;
        mask[i] = i % 7 != 0;
    }
    for (int64_t i = 0; i < ROWS; i++)
        for (int64_t j = 0; j < COLUMNS; j++) {
            if ((i >= 3 && i < ROWS - 3) || (j >= 3 && j < COLUMNS - 3)) continue;
            int64_t at = tile_print_packed_index(i, ROWS, SHOWN) * SHOWN + tile_print_packed_index(j, COLUMNS, SHOWN);
            packed[at] = whole[i * COLUMNS + j];
            packed[SHOWN * SHOWN + at] = mask[i * COLUMNS + j];
        }
    packed[2 * SHOWN * SHOWN] = 1;
    cr_assert_str_eq(printed_packed(arena, template, packed), printed(arena, template, items));
    uint64_t words[] = {5, 6, 7, 8, 9, 10, 11, 12, 13, 0, 0, 0, 0, 0, 0, 1, 1, 1};
    cr_assert_eq(tile_print_packed_words("{!1:2}{i:9!}"), 18);
    cr_assert_str_eq(printed_packed(arena, "{!1:2}v = {i:9!}", words), "v = 11 at [6]\n");
    cr_assert_eq(tile_print_packed_words("{!1:2}{i:9}"), SHOWN);
    cr_assert_str_eq(printed_packed(arena, "{!1:2}{i:9}", words), "[5, 6, 7, ..., 8, 9, 10]\n");
    tile_arena_destroy(arena);
}

Test(records, places) {
    static const char *const silent[] = {"{!1:2}{i}"}, *const lines[] = {"a {i:4}", "{!1:2}{i:3!}", "b"};
    TileRecords none = tile_records(NULL, 0), some = tile_records(silent, 1), all = tile_records(lines, 3);
    cr_expect(none.lines_bytes == 0 && none.lines == TILE_RECORDS_CLEARED && none.bytes >= TILE_RECORDS_CLEARED);
    cr_expect(some.lines_bytes == 0 && some.lines == TILE_RECORDS_VALUES + 16);
    cr_expect(all.lines == TILE_RECORDS_VALUES + 56 && all.lines_bytes == 1 << 20);
    cr_expect(all.spare == all.lines + all.lines_bytes && all.bytes == all.spare + 56);
    uint64_t header[TILE_RECORDS_CLEARED / 8] = {0};
    cr_expect_eq(tile_records_written(&all, header), TILE_RECORDS_CLEARED);
    header[TILE_RECORDS_VALUES / 8] = 2;
    cr_expect_eq(tile_records_written(&all, header), all.lines);
    header[TILE_RECORDS_USED / 8] = 48;
    cr_expect_eq(tile_records_written(&all, header), all.lines + 48);
    header[TILE_RECORDS_USED / 8] = UINT64_MAX / 2;
    cr_expect_eq(tile_records_written(&all, header), all.spare);
}
