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
    TileExecutorArgument arguments[3];
} Run;

static Run prepare(const Boxes *boxes) {
    int64_t bytes = boxes_tensor_bytes(boxes);
    Run run = {.box_bytes = boxes_bytes(boxes)};
    run.x = aligned_alloc(128, (size_t)(bytes + 127) / 128 * 128);
    run.y = malloc((size_t)BOX_PROGRAMS * run.box_bytes);
    run.at = malloc(BOX_PROGRAMS * boxes->rank * sizeof *run.at);
    for (int64_t i = 0; i < bytes; i++) run.x[i] = (unsigned char)(1 + i % 251);
    for (unsigned p = 0; p < BOX_PROGRAMS; p++) box_coordinates(boxes, p, run.at + p * boxes->rank);
    TileExecutorTensor *x = &run.arguments[0].tensor;
    *x = (TileExecutorTensor){.data = run.x, .above = (uint64_t)bytes};
    memcpy(x->extent, boxes->extent, sizeof boxes->extent);
    memcpy(x->stride, boxes->stride, sizeof boxes->stride);
    int64_t rank = boxes->rank, words = run.box_bytes / BOX_WORD;
    run.arguments[1].tensor = (TileExecutorTensor){.data = run.at,
                                                   .above = (uint64_t)(BOX_PROGRAMS * rank) * sizeof *run.at,
                                                   .extent = {BOX_PROGRAMS, rank},
                                                   .stride = {rank * (int64_t)sizeof *run.at, sizeof *run.at}};
    run.arguments[2].tensor = (TileExecutorTensor){.data = run.y,
                                                   .above = (uint64_t)BOX_PROGRAMS * run.box_bytes,
                                                   .extent = {BOX_PROGRAMS, words},
                                                   .stride = {run.box_bytes, BOX_WORD}};
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
                boxes_expect(boxes, run.x, run.at + p * boxes->rank, expected);
                cr_expect_eq(memcmp(run.y + p * run.box_bytes, expected, run.box_bytes), 0, "case %u, program %u", i,
                             p);
            }
        }
        free(expected);
        release(&run);
    }
}
