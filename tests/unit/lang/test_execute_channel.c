/* Channels: slots are used cyclically; an op that would wait forever, or lose a slot, is a fault. */
#include <criterion/criterion.h>

#include "tests/unit/lang/executing.h"

TestSuite(execute_channel, .init = executing_set_up, .fini = executing_tear_down);

enum { ROWS = 8, COLUMNS = 4 };

/* FILL k copies row k of x to the next slot, TAKE k waits for a slot and stores it to row k of y. */
#define SLOT "ptr<shared, f32[1, 4]>"
#define TOUCH(k) "  %%r" k " = const {value = " k "} : i64\n"
#define ROW(k) "%%r" k ", %%one, %%zero, %%one, %%zero, %%one, %%zero, %%four"
#define ACQUIRE(k, slot) TOUCH(k) "  %%p" k " = channel_acquire %%ch" slot " : " SLOT "\n"
#define COPY(k) "  copy_tile %%x, %%p" k ", " ROW(k) " {access = [range, range], types = [f32[1, 4]]}\n"
#define FILL(k, slot) ACQUIRE(k, slot) COPY(k) "  channel_commit %%p" k "\n"
#define WAIT(k, slot, more) "  %%q" k " = channel_wait %%ch" slot more " : " SLOT "\n"
#define TAKE(k, slot, more)                                                                                            \
    WAIT(k, slot, more)                                                                                                \
    "  %%t" k " = shared_tile %%q" k " : f32[1, 4]\n  store_tile %%y, %%t" k                                           \
    ", " ROW(k) " {access = [range, range]}\n  channel_release %%q" k "\n"

static float x[ROWS * COLUMNS], y[ROWS * COLUMNS];

static TileExecution run(const char *body, TileText *message) {
    static const char source[] =
        "func kernel tile @k(%%x: tensor<f32, 2, in>, %%y: tensor<f32, 2, out>) {\n  %%n = const {value = 1} : i64\n"
        "  grid %%n (%%i: i64) {\n    yield\n  }\n  return\n}\n"
        "func phase tile @k.0(%%x: tensor<f32, 2, in>, %%y: tensor<f32, 2, out>, %%begin: i64, %%end: i64) kernel = @k "
        "phase = 0 threads = 32 {\n  %%zero = const {value = 0} : i64\n  %%one = const {value = 1} : i64\n"
        "  %%four = const {value = 4} : i64\n  %%ch = channel {slots = 2} : channel<f32[1, 4]>\n%s  return\n}\n";
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        x[i] = (float)i;
        y[i] = -1;
    }
    TileExecutorArgument arguments[] = {{.tensor = matrix(x, ROWS, COLUMNS)}, {.tensor = matrix(y, ROWS, COLUMNS)}};
    const char *plain = tile_arena_format(executing.arena, body, 0);
    TileFunc *kernel = read_func(tile_arena_format(executing.arena, source, plain), "k");
    return tile_execute_kernel(kernel, arguments, &(TileExecutorOptions){.phases = true}, message);
}

static void expect_fault(const char *body, const char *wanted) {
    TileText message = {.arena = executing.arena};
    cr_expect_neq(run(body, &message), TILE_EXECUTION_DONE, "wanted `%s`", wanted);
    cr_expect(strstr(tile_text_get(&message), wanted), "wanted `%s`, got: %s", wanted, tile_text_get(&message));
}

Test(execute_channel, slots_arrive_in_order) {
    TileText message = {.arena = executing.arena};
    cr_assert_eq(run(FILL("0", "") FILL("1", "") TAKE("0", "", " {pending = 1}") FILL("2", ", %%zero")
                         TAKE("1", ", %%one", " {pending = 1}") TAKE("2", ", %%zero", ""),
                     &message),
                 TILE_EXECUTION_DONE, "%s", tile_text_get(&message));
    for (int i = 0; i < ROWS * COLUMNS; i++) cr_expect_eq(y[i], i < 3 * COLUMNS ? x[i] : -1, "element %d", i);
}

Test(execute_channel, faults) {
    expect_fault(FILL("0", "") FILL("1", "") FILL("2", ""), "waits for ever: no slot is released");
    expect_fault(FILL("0", "") TOUCH("1") TAKE("0", "", "") TAKE("1", "", ""), "waits for ever: no slot is committed");
    expect_fault(FILL("0", "") TAKE("0", "", " {pending = 1}"), "0 slots were committed after it, not 1");
    expect_fault(FILL("0", ", %%one"), "slot 1 is not the next one, which is 0");
    expect_fault(FILL("0", "") TAKE("0", ", %%one", ""), "slot 1 is not the next one, which is 0");
    expect_fault(ACQUIRE("0", "") ACQUIRE("1", "") "  channel_commit %%p0\n  channel_commit %%p1\n",
                 "the slot before it is not committed");
    expect_fault(FILL("0", "") FILL("1", "") WAIT("0", "", "")
                     WAIT("1", "", "") "  channel_release %%q0\n  channel_release %%q1\n",
                 "the slot before it is not released");
    expect_fault(ACQUIRE("0", "") "  channel_commit %%p0\n" TAKE("0", "", ""), "poison");
}
