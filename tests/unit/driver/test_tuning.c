/* Tuning files: reading valid and damaged ones, and the precedence of rows. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "driver/cache/tuning.h"

#define HEAD "tile-tuning 1\n"
#define ROW(kernel, constants, measured, pinned)                                                                       \
    kernel "\tabc\tT=f32\tN<=64\tavx2, CPU, 2 threads\t" constants "\t0.001\t0.002\t" measured "\t" pinned

static TileTuning none(void) { return (TileTuning){.arena = tile_arena_create(NULL)}; }

static tile_status parse(TileTuning *tuning, const char *text) {
    TileText message = {.arena = tuning->arena};
    return tile_tuning_parse(tuning, "file", text, strlen(text), &message);
}

static const char *print(const TileTuning *tuning) {
    TileText text = {.arena = tuning->arena};
    tile_tuning_print(tuning, &text);
    return tile_text_get(&text);
}

static void expect_refused(const char *text, const char *words) {
    TileTuning tuning = none();
    TileText message = {.arena = tuning.arena};
    cr_expect(tile_tuning_parse(&tuning, "file", text, strlen(text), &message) == TILE_INVALID_ARGUMENT);
    cr_expect(strstr(tile_text_get(&message), words) != NULL, "`%s` is not in `%s`", words, tile_text_get(&message));
    tile_arena_destroy(tuning.arena);
}

Test(tuning, what_is_written_is_read_again) {
    TileTuning tuning = none(), again = none();
    cr_assert(parse(&tuning, HEAD "# a remark\n" ROW("k", "BM=64 BN=-1", "3/8",
                                                     "-") "\n" ROW("j", "B=1", "8/8", "pinned") "\n") == TILE_OK);
    cr_assert(tuning.rows.count == 2 && tuning.bad_line == 0);
    const TileTuningRow *row = &tuning.rows.items[0];
    cr_expect_str_eq(row->kernel, "k");
    cr_expect_str_eq(row->constants, "BM=64 BN=-1");
    cr_expect(row->seconds == 0.001 && row->usual_seconds == 0.002 && row->measured == 3 && row->total == 8);
    cr_expect(!row->pinned && tuning.rows.items[1].pinned);
    const char *text = print(&tuning);
    cr_expect(strstr(text, "# a remark\n") != NULL);
    cr_assert(parse(&again, text) == TILE_OK);
    cr_expect_str_eq(print(&again), text);
    tile_arena_destroy(tuning.arena);
    tile_arena_destroy(again.arena);
}

Test(tuning, an_empty_file_has_no_rows) {
    TileTuning tuning = none();
    cr_expect(parse(&tuning, "") == TILE_OK && parse(&tuning, HEAD) == TILE_OK && tuning.rows.count == 0);
    tile_arena_destroy(tuning.arena);
}

Test(tuning, other_files_and_versions_are_refused) {
    expect_refused("kernel k\n", "file is no tuning file");
    expect_refused("tile-tuning", "file is no tuning file");
    expect_refused("tile-tuning 2\n" ROW("k", "B=1", "1/1", "-") "\n",
                   "of version 2, and this program knows version 1");
    expect_refused("tile-tuning 1 beta\n", "of version 1 beta");
    expect_refused("tile-tuning 1", "file is no tuning file");
}

/* Of every prefix of a file, all but the last, incomplete line are read; that line is kept. */
Test(tuning, a_file_that_was_cut_off_loses_the_unfinished_row) {
    const char *whole = HEAD ROW("k", "B=64", "8/8", "-") "\n" ROW("j", "B=128", "8/8", "-") "\n";
    size_t first = strlen(HEAD ROW("k", "B=64", "8/8", "-") "\n");
    for (size_t length = strlen(HEAD); length < strlen(whole); length++) {
        TileTuning tuning = none();
        char *part = tile_arena_string(tuning.arena, whole, length);
        cr_assert(parse(&tuning, part) == TILE_OK);
        cr_assert(tuning.rows.count == (length >= first), "%zu bytes: %zu rows", length, tuning.rows.count);
        for (size_t i = 0; i < tuning.rows.count; i++) cr_expect_str_eq(tuning.rows.items[i].constants, "B=64");
        tile_arena_destroy(tuning.arena);
    }
}

Test(tuning, lines_that_are_no_rows_count_for_nothing_and_are_kept) {
    static const char *const lines[] = {
        "k",
        "k\tabc",
        ROW("k", "B=", "8/8", "-"),
        ROW("k", "B", "8/8", "-"),
        ROW("k", "=1", "8/8", "-"),
        ROW("k", "B=1x", "8/8", "-"),
        ROW("k", "B=1", "9/8", "-"),
        ROW("k", "B=1", "8", "-"),
        ROW("k", "B=1", "-1/8", "-"),
        ROW("k", "B=1", "8/8", "yes"),
        ROW("k", "B=1", "8/8", ""),
        ROW("", "B=1", "8/8", "-"),
        ROW("k", "B=1", "8/8", "-\tmore"),
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        TileTuning tuning = none();
        const char *text = tile_arena_format(tuning.arena, HEAD "%s\n" ROW("j", "B=1", "1/1", "-") "\n", lines[i]);
        cr_assert(parse(&tuning, text) == TILE_OK);
        cr_expect(tuning.rows.count == 1 && tuning.bad_line == 2, "`%s`: line %u", lines[i], tuning.bad_line);
        cr_expect(strstr(print(&tuning), tile_arena_format(tuning.arena, "\n%s\n", lines[i])) != NULL);
        tile_arena_destroy(tuning.arena);
    }
}

/* With random bytes changed: no rows are read that were not in the file, and nothing crashes. */
Test(tuning, damaged_files_are_read_as_far_as_they_are_good) {
    const char *whole = HEAD ROW("k", "B=64", "8/8", "-") "\n" ROW("j", "B=128", "8/8", "pinned") "\n";
    size_t length = strlen(whole);
    uint64_t seed = 1;
    for (int round = 0; round < 20000; round++) {
        TileTuning tuning = none();
        TileText message = {.arena = tuning.arena};
        char *text = tile_arena_string(tuning.arena, whole, length);
        for (int i = 0; i < 3; i++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
            text[(seed >> 33) % length] = (char)(seed >> 20);
        }
        if (tile_tuning_parse(&tuning, "file", text, length, &message) == TILE_OK)
            cr_assert(tuning.rows.count + tuning.others.count <= 8);
        tile_arena_destroy(tuning.arena);
    }
}

static TileTuningRow row_of(const char *constants, unsigned measured, bool pinned) {
    return (TileTuningRow){.kernel = "k",
                           .space = "s",
                           .instance = "-",
                           .shape = "-",
                           .device = "d",
                           .constants = constants,
                           .measured = measured,
                           .total = 8,
                           .pinned = pinned};
}

static void expect_put(TileTuning *tuning, TileTuningRow row, bool taken, const char *constants) {
    cr_expect(tile_tuning_put(tuning, &row) == taken, "%s", row.constants);
    cr_assert(tuning->rows.count == 1);
    cr_expect_str_eq(tuning->rows.items[0].constants, constants);
}

Test(tuning, rows_win_that_are_pinned_or_of_more_points) {
    TileTuning tuning = none();
    expect_put(&tuning, row_of("B=1", 3, false), true, "B=1");
    expect_put(&tuning, row_of("B=2", 2, false), false, "B=1");
    expect_put(&tuning, row_of("B=3", 3, false), true, "B=3");
    expect_put(&tuning, row_of("B=4", 8, false), true, "B=4");
    expect_put(&tuning, row_of("B=5", 1, true), true, "B=5");
    expect_put(&tuning, row_of("B=6", 8, false), false, "B=5");
    expect_put(&tuning, row_of("B=7", 8, true), true, "B=7");
    TileTuningRow other = row_of("B=8", 8, false);
    other.shape = "N<=2";
    cr_expect(tile_tuning_put(&tuning, &other) && tuning.rows.count == 2);
    tile_arena_destroy(tuning.arena);
}
