/* The values in the message of a failed assertion: the same text from machine code, from the executor running machine
 * form, and from the interpreter. */
#include <criterion/criterion.h>
#include <string.h>

#include "effects.h"

static const char text[] = "fn below(x: f32, most: f32) -> f32 {\n"
                           "    assert(x < most)\n"
                           "    return x\n"
                           "}\n"
                           "kernel k(x: in f32[N, M], n: i64, limit: f32, on: bool)\n"
                           "{\n"
                           "    grid (i, j) in (tiles(N, 4), tiles(M, 8)) {\n"
                           "        let v = x[i, j]\n"
                           "        assert(n <= 4, \"few\", N, M % 3, limit / 2)\n"
                           "        assert(on)\n"
                           "        assert(n >= 0 && limit > 0.5, \"both {parts}\")\n"
                           "        assert(all(v < limit), \"small\")\n"
                           "        assert(all(below(v, 90) == v))\n"
                           "    }\n"
                           "}\n";

enum { ROWS = 6, COLUMNS = 19 };

typedef struct Failing {
    int64_t n;
    double limit;
    bool on;
    float last; /* x[5, 18]; the others are small */
    const char *message;
} Failing;

static void check_message(Way way, const Failing *failing) {
    static float x[ROWS * COLUMNS];
    Array array;
    TileError error = {.message = ""};
    for (int i = 0; i < ROWS * COLUMNS; i++) x[i] = 0.25f;
    x[ROWS * COLUMNS - 1] = failing->last;
    way.flags |= TILE_COMPILE_DEBUG;
    Program program = compile_way(text, &way);
    array_of(&array, x, kDLFloat, 32, 2, (int64_t[]){ROWS, COLUMNS});
    TileArg args[] = {TILE_TENSOR(&array.dl), TILE_INTEGER(failing->n), TILE_NUMBER(failing->limit),
                      TILE_TRUTH(failing->on)};
    TileReport *report = NULL;
    TileLaunchOptions options = {.struct_size = sizeof options, .error = &error, .report = &report};
    tile_status status = tile_launch(program.kernel, args, 4, &options);
    cr_expect_str_eq(error.message, failing->message, "%s: %s", way.target, error.message);
    cr_expect_eq(status, *failing->message ? TILE_INVALID_ARGUMENT : TILE_OK);
    cr_expect_eq(!report, !*failing->message);
    if (report) cr_expect_not_null(strstr(tile_report_json(report), "\"code\":\"assertion-failed\",\"file\":\""));
    tile_report_destroy(report);
    release_program(&program);
}

Test(assertions, show_values) {
    static const Failing cases[] = {
        {4, 1, true, 0, ""},
        {7, 1, true, 0, "k: <text>:9:9: assertion failed: few, where n = 7, N = 6, M % 3 = 1, limit / 2 = 0.5"},
        {3, 1, false, 0, "k: <text>:10:9: assertion failed: on"},
        {3, 0.5, true, 0, "k: <text>:11:9: assertion failed: both {parts}, where n = 3, limit = 0.5"},
        {3, 80, true, 85, "k: <text>:12:9: assertion failed: small, where v = 85 at [1, 2], limit = 80"},
        {3, 95, true, 91, "k: <text>:2:5: assertion failed: x < most, where x = 91 at [1, 2], most = 90"},
    };
    for (int w = 0; w < WAYS_WITH_GPU; w++)
        for (size_t i = 0; way_usable(&all_ways[w]) && i < sizeof cases / sizeof *cases; i++)
            check_message(all_ways[w], &cases[i]);
}
