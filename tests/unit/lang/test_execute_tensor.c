/* Copies by tensor maps in the emulator: what they compute, what orders them, and misuse. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "lang/ir/tensor_map.h"
#include "tests/gpu/boxes.h"
#include "tests/unit/lang/executing.h"

TestSuite(execute_tensor, .init = executing_set_up, .fini = executing_tear_down);

enum { SEEDS = 4 }; /* seed 0: round robin */

typedef struct Run {
    unsigned char *x, *y;
    int32_t *at;
    uint32_t box_bytes;
    TileExecutorArgument arguments[4];
} Run;

static Run prepare(const Boxes *boxes) {
    int64_t bytes = boxes_tensor_bytes(boxes);
    Run run = {.box_bytes = boxes_bytes(boxes)};
    run.x = aligned_alloc(128, (size_t)(bytes + 127) / 128 * 128);
    run.y = malloc((size_t)BOX_PROGRAMS * run.box_bytes);
    run.at = malloc(BOX_PROGRAMS * boxes_numbers(boxes) * sizeof *run.at);
    for (int64_t i = 0; i < bytes; i++) run.x[i] = (unsigned char)(1 + i % 251);
    for (unsigned p = 0; p < BOX_PROGRAMS; p++) box_coordinates(boxes, p, run.at + p * boxes_numbers(boxes));
    TileExecutorTensor *x = &run.arguments[0].tensor;
    *x = (TileExecutorTensor){.data = run.x, .above = (uint64_t)bytes};
    memcpy(x->extent, boxes->extent, sizeof boxes->extent);
    memcpy(x->stride, boxes->stride, sizeof boxes->stride);
    int64_t rank = boxes_numbers(boxes), words = run.box_bytes / BOX_WORD;
    run.arguments[1].tensor = (TileExecutorTensor){.data = run.at,
                                                   .above = (uint64_t)(BOX_PROGRAMS * rank) * sizeof *run.at,
                                                   .extent = {BOX_PROGRAMS, rank},
                                                   .stride = {rank * (int64_t)sizeof *run.at, sizeof *run.at}};
    run.arguments[2].tensor = (TileExecutorTensor){.data = run.y,
                                                   .above = (uint64_t)BOX_PROGRAMS * run.box_bytes,
                                                   .extent = {BOX_PROGRAMS, words},
                                                   .stride = {run.box_bytes, BOX_WORD}};
    TileExecutorTensor *over = &run.arguments[3].tensor; /* of which nothing but extents is read */
    *over = (TileExecutorTensor){.data = run.x, .above = (uint64_t)bytes};
    memcpy(over->extent, boxes->count, sizeof boxes->count);
    return run;
}

static void release(Run *run) {
    free(run->x);
    free(run->y);
    free(run->at);
}

static TileExecution execute(const char *text, const Run *run, uint64_t seed, TileText *message) {
    return tile_execute_kernel(read_func(text, "boxes"), run->arguments,
                               &(TileExecutorOptions){.seed = seed, .phases = true}, message);
}

Test(execute_tensor, boxes_are_copied) {
    for (unsigned i = 0; i < BOX_CASES; i++) {
        const Boxes *boxes = &box_cases[i];
        Run run = prepare(boxes);
        unsigned char *expected = malloc(run.box_bytes);
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            TileText message = {.arena = executing.arena};
            memset(run.y, 0xaa, (size_t)BOX_PROGRAMS * run.box_bytes);
            cr_assert_eq(execute(boxes_text(executing.arena, boxes, ""), &run, seed, &message), TILE_EXECUTION_DONE,
                         "case %u: %s", i, tile_text_get(&message));
            for (unsigned p = 0; p < BOX_PROGRAMS; p++) {
                boxes_expect(boxes, run.x, run.at + p * boxes_numbers(boxes), expected);
                cr_expect_eq(memcmp(run.y + p * run.box_bytes, expected, run.box_bytes), 0, "case %u, program %u", i,
                             p);
            }
        }
        free(expected);
        release(&run);
    }
}

/* ---- stores ---- */

#define WAIT "      store_commit\n      store_wait {pending = 0}"

/* The run's arguments for one program: boxes of several programs may overlap. */
static Run only(const Run *run, const Boxes *boxes, unsigned program) {
    Run one = *run;
    TileExecutorTensor *at = &one.arguments[1].tensor, *y = &one.arguments[2].tensor;
    at->data = run->at + program * boxes_numbers(boxes);
    at->above = boxes_numbers(boxes) * sizeof *run->at;
    y->data = run->y + program * run->box_bytes;
    y->above = run->box_bytes;
    at->extent[0] = y->extent[0] = 1;
    return one;
}

Test(execute_tensor, boxes_are_stored) {
    static const char *const waits[] = {WAIT, "      store_commit\n      store_wait {pending = 0, read = 1}"};
    for (unsigned i = 0; i < BOX_CASES; i++) {
        const Boxes *boxes = &box_cases[i];
        if (!boxes_are_stored(boxes)) continue;
        Run run = prepare(boxes);
        for (unsigned p = 0; p < BOX_PROGRAMS; p++) box_coordinates_inside(boxes, p, run.at + p * boxes_numbers(boxes));
        size_t bytes = (size_t)boxes_tensor_bytes(boxes);
        unsigned char *expected = malloc(bytes);
        for (size_t k = 0; k < (size_t)BOX_PROGRAMS * run.box_bytes; k++) run.y[k] = (unsigned char)(k % 253);
        for (unsigned p = 0; p < BOX_PROGRAMS; p++) {
            TileText message = {.arena = executing.arena};
            Run one = only(&run, boxes, p);
            memcpy(expected, run.x, bytes);
            boxes_expect_stored(boxes, run.y + p * run.box_bytes, run.at + p * boxes_numbers(boxes), expected);
            cr_assert_eq(execute(boxes_store_text(executing.arena, boxes, "", waits[p % 2]), &one, p % SEEDS, &message),
                         TILE_EXECUTION_DONE, "case %u: %s", i, tile_text_get(&message));
            cr_expect_eq(memcmp(run.x, expected, bytes), 0, "case %u, program %u", i, p);
        }
        free(expected);
        release(&run);
    }
}

/* ---- order ---- */

static const Boxes small = {.scalar = TILE_F32, .rank = 2, .box = {4, 8}, .swizzle = 32, .extent = {6, 12}, .stride = {48, 4}};

static void expect(const char *text, TileExecution state, const char *wanted) {
    Run run = prepare(&small), one = only(&run, &small, 0);
    memset(run.y, 1, (size_t)BOX_PROGRAMS * run.box_bytes);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        TileText message = {.arena = executing.arena};
        cr_expect_eq(execute(text, &one, seed, &message), state, "seed %u: %s\n%s", (unsigned)seed,
                     tile_text_get(&message), text);
        cr_expect(strstr(tile_text_get(&message), wanted), "wanted `%s`, got: %s", wanted, tile_text_get(&message));
    }
    release(&run);
}

/* The text with the first `old` replaced. */
static const char *replaced(const char *text, const char *old, const char *new) {
    const char *at = strstr(text, old);
    cr_assert(at, "%s", old);
    return tile_arena_format(executing.arena, "%.*s%s%s", (int)(at - text), text, new, at + strlen(old));
}

static const char *parts(const char *const *list) {
    TileText text = {.arena = executing.arena};
    for (; *list; list++) tile_text_add(&text, *list);
    return boxes_store_text(executing.arena, &small, "", tile_text_get(&text));
}

#define PARTS(...) parts((const char *const[]){head, __VA_ARGS__, NULL})

Test(execute_tensor, a_store_is_under_way_until_it_was_waited_for) {
    static const char touch[] = "      store %thread, %shared\n", look[] = "      %g = load %xp : f32\n",
                      commit[] = "      store_commit\n";
    const char *head = "      %xo = mul %block, %x.stride0 : i64\n      %xp = ptr_add %x, %xo : ptr<global>\n";
    const char *read = "      store_wait {pending = 0, read = 1}\n", *done = "      store_wait {pending = 0}\n";
    expect(PARTS(commit, read, touch), TILE_EXECUTION_DONE, "");
    expect(PARTS(commit, touch, read), TILE_EXECUTION_FAULT, "no store_wait has waited for the store");
    expect(PARTS(commit, "      store_wait {pending = 1, read = 1}\n", touch, read), TILE_EXECUTION_FAULT, "a race: ");
    expect(PARTS(commit, done, look), TILE_EXECUTION_DONE, "");
    expect(PARTS(commit, read, look), TILE_EXECUTION_FAULT, "no store_wait has waited for the store");
    expect(PARTS(commit), TILE_EXECUTION_FAULT, "the thread ends while the store may read shared memory");
    expect(PARTS(read), TILE_EXECUTION_FAULT, "the thread ends while the store may read shared memory");
    expect(PARTS(commit, commit, "      store_wait {pending = 1}\n", look), TILE_EXECUTION_DONE, "");
}

Test(execute_tensor, stores_see_what_was_written_before_a_fence) {
    const char *good = boxes_store_text(executing.arena, &small, "", WAIT);
    expect(good, TILE_EXECUTION_DONE, "");
    expect(replaced(good, "fence_async\n", ""), TILE_EXECUTION_FAULT, "no fence_async stands behind the other");
    expect(replaced(good, "    barrier\n", ""), TILE_EXECUTION_FAULT, "");
    expect(replaced(good, "fence_async\n    barrier\n", "barrier\n    fence_async\n"), TILE_EXECUTION_FAULT,
           "no fence_async stands behind the other");
}

/* Each op of the copy that orders something, taken out. */
Test(execute_tensor, nothing_of_a_copy_can_be_left_out) {
    const char *good = boxes_text(executing.arena, &small, "");
    expect(good, TILE_EXECUTION_DONE, "");
    expect(replaced(good, "      fence_async\n", ""), TILE_EXECUTION_FAULT, "no fence_async stands behind the other");
    expect(replaced(good, "    barrier\n", ""), TILE_EXECUTION_FAULT, "");
    expect(replaced(good, "    mbarrier_wait %bar, %p0\n", ""), TILE_EXECUTION_FAULT, "");
    expect(replaced(good, "      mbarrier_arrive %bar {bytes = 128}\n", ""), TILE_EXECUTION_FAULT, "a deadlock: ");
    expect(replaced(good, "{bytes = 128}", "{bytes = 112}"), TILE_EXECUTION_FAULT, "a deadlock: ");
    expect(replaced(good, "{bytes = 128}", "{bytes = 256}"), TILE_EXECUTION_FAULT, "lacks 128 bytes");
}

/* ---- misuse ---- */

Test(execute_tensor, misuse) {
    const char *good = boxes_text(executing.arena, &small, ""),
               *stores = boxes_store_text(executing.arena, &small, "", WAIT);
    static const char moved[] = "%sixteen = const {value = 16} : i64\n%low = ptr_add %shared, %sixteen : ptr<shared>\n";
    const char *low =
        replaced(good, "copy_tensor %shared", tile_arena_format(executing.arena, "%scopy_tensor %%low", moved));
    expect(low, TILE_EXECUTION_FAULT, "the place is not aligned to 256 bytes");
    low = replaced(stores, "store_tensor %x.map, %shared",
                   tile_arena_format(executing.arena, "%sstore_tensor %%x.map, %%low", moved));
    expect(low, TILE_EXECUTION_FAULT, "the place is not aligned to 256 bytes");
    expect(replaced(good, ", %c1", ", %p3"), TILE_EXECUTION_FAULT, "begins at byte 12 along the last axis");
    expect(replaced(stores, ", %c1", ", %p3"), TILE_EXECUTION_FAULT, "begins at byte 12 along the last axis");
    expect(replaced(good, "scratch_bytes = 144", "scratch_bytes = 136"), TILE_EXECUTION_DONE, "");
    expect(replaced(stores, "tensor<f32, 2, out>", "tensor<f32, 2, in>"), TILE_EXECUTION_FAULT, "only read");
    expect(replaced(stores, "store %v, %to\n", ""), TILE_EXECUTION_FAULT, "is poison");
}

/* ---- positions ---- */

static const Boxes pictures = {.scalar = TILE_F32, .rank = 4, .box = {1, 1, 1, 8}, .swizzle = 32, .extent = {2, 5, 7, 8}, .stride = {1120, 224, 32, 4},
                               .step = {1, 2, 1, 1}, .positions = 12, .corner = {-1, -3}, .count = {3, 7}};

/* A copy of program 0 with this coordinate, or offset, or number of positions along an axis. */
static void expect_positions(unsigned number, int32_t is, unsigned axis, int64_t count, TileExecution state, const char *wanted) {
    Run run = prepare(&pictures), one = only(&run, &pictures, 0);
    const int32_t good[] = {0, -1, -3, 0, 1, 3};
    TileText message = {.arena = executing.arena};
    memcpy(run.at, good, sizeof good);
    run.at[number] = is;
    one.arguments[3].tensor.extent[axis] = count;
    cr_expect_eq(execute(boxes_text(executing.arena, &pictures, ""), &one, 0, &message), state, "%s", tile_text_get(&message));
    cr_expect(strstr(tile_text_get(&message), wanted), "wanted `%s`, got: %s", wanted, tile_text_get(&message));
    release(&run);
}

Test(execute_tensor, positions_that_a_map_has) {
    expect_positions(1, -1, 0, 3, TILE_EXECUTION_DONE, "");
    expect_positions(1, 3, 0, 3, TILE_EXECUTION_DONE, "");
    expect_positions(1, 5, 0, 3, TILE_EXECUTION_FAULT, "the first position, 5 along axis 1, is none of the map's");
    expect_positions(1, 0, 0, 3, TILE_EXECUTION_FAULT, "the first position, 0 along axis 1, is none of the map's");
    expect_positions(2, -4, 0, 3, TILE_EXECUTION_FAULT, "the first position, -4 along axis 2, is none of the map's");
    expect_positions(2, 4, 0, 3, TILE_EXECUTION_FAULT, "the first position, 4 along axis 2, is none of the map's");
    expect_positions(4, 255, 0, 3, TILE_EXECUTION_DONE, "");
    expect_positions(4, 256, 0, 3, TILE_EXECUTION_FAULT, "the offset 256 along axis 1 is not less than 256");
    expect_positions(5, -1, 0, 3, TILE_EXECUTION_FAULT, "the offset -1 along axis 2 is not less than 256");
    expect_positions(0, 0, 1, 137, TILE_EXECUTION_DONE, "");
    expect_positions(0, 0, 1, 138, TILE_EXECUTION_FAULT, "no corner of a map says that there are");
    expect_positions(0, 0, 0, 68, TILE_EXECUTION_FAULT, "no corner of a map says that there are");
    expect_positions(0, 0, 0, 67, TILE_EXECUTION_DONE, "");
    expect_positions(0, 0, 1, 0, TILE_EXECUTION_FAULT, "no corner of a map says that there are");
}

/* Of the tensor whose rows are no multiple of 16 bytes, and of boxes that begin outside. */
Test(execute_tensor, boxes_that_are_not_stored) {
    const Boxes *boxes = &box_cases[1];
    cr_assert(!boxes_are_stored(boxes));
    for (unsigned change = 0; change < 4; change++) {
        Run run = prepare(change ? &small : boxes), one = only(&run, change ? &small : boxes, 0);
        TileText message = {.arena = executing.arena};
        run.at[0] = change == 1 ? -1 : change == 2 ? 6 : 0;
        run.at[1] = change == 3 ? 12 : 0;
        const char *text = boxes_store_text(executing.arena, change ? &small : boxes, "", WAIT);
        cr_expect_eq(execute(text, &one, 0, &message), TILE_EXECUTION_FAULT);
        const char *wanted = change ? "begins outside of the tensor" : "no multiple of 16";
        cr_expect(strstr(tile_text_get(&message), wanted), "%s", tile_text_get(&message));
        release(&run);
    }
}

/* What no map describes is found when the phase is called. */
Test(execute_tensor, tensors_without_a_map) {
    const char *good = boxes_text(executing.arena, &small, "");
    for (unsigned change = 0; change < 7; change++) {
        Run run = prepare(&small), one = only(&run, &small, 0);
        TileExecutorTensor *x = &one.arguments[0].tensor;
        TileText message = {.arena = executing.arena};
        switch (change) {
        case 0:
            x->data = run.x + 4;
            x->above -= 4;
            x->extent[0] = 5;
            break;
        case 1: x->stride[0] = 36; break;
        case 2: x->stride[0] = 0; break;
        case 3:
            x->stride[1] = 8;
            x->extent[1] = 4;
            break;
        case 4:
            x->stride[0] = -48;
            x->data = run.x + 240;
            x->below = 240;
            x->above -= 240;
            break;
        case 5: x->extent[0] = 0; break;
        case 6:
            x->extent[0] = 1;
            x->stride[0] = 3;
            break; /* of which it does not matter */
        }
        TileExecution state = execute(good, &one, 0, &message);
        cr_expect_eq(state, change == 6 ? TILE_EXECUTION_DONE : TILE_EXECUTION_FAULT, "change %u: %s", change,
                     tile_text_get(&message));
        cr_expect(change == 6 || strstr(tile_text_get(&message), "no tensor map describes x"), "%s",
                  tile_text_get(&message));
        release(&run);
    }
}
