/* Blocks of a cluster: arrivals in each block, barriers of the cluster and of one block, and shared memory that has gone. */
#include "tests/unit/lang/executing.h"

TestSuite(execute_cluster, .init = executing_set_up, .fini = executing_tear_down);

enum { SEEDS = 8, BLOCKS = 4 }; /* seed 0: round robin. With others a launch may have a cluster more than it has programs for */

/* Two blocks, a cluster. %first: is it the first thread of its block? %mine is the block's word of x, %rank its number in the cluster. The
 * first thread has initialised %bar with two arrivals in front of BEFORE. */
static const char text[] =
    "func kernel tile @k(%%x: tensor<i32, 1, inout>) {\n  %%n = const {value = 2} : i64\n"
    "  grid %%n (%%i: i64) {\n    yield\n  }\n  return\n}\n"
    "func phase machine @k.0(%%x: ptr<global>, %%x.dim0: i64, %%x.stride0: i64, %%begin: i64, %%end: i64, "
    "%%shared: ptr<shared>) kernel = @k phase = 0 cluster = 2 threads = 128 scratch_bytes = 64 {\n"
    "  %%thread = thread : i32\n  %%zero = const {value = 0} : i32\n  %%four = const {value = 4} : i64\n"
    "  %%one = const {value = 1} : i32\n  %%sixteen = const {value = 16} : i64\n"
    "  %%first = eq %%thread, %%zero : bool\n  %%block = block : i64\n  %%offset = mul %%block, %%four : i64\n"
    "  %%mine = ptr_add %%x, %%offset : ptr<global>\n  %%word = ptr_add %%shared, %%sixteen : ptr<shared>\n"
    "  if %%first {\n    mbarrier_init %%shared {count = 2}\n    yield\n  } {\n    yield\n  }\n"
    "  %s\n  %%rank = cluster_rank : i32\n  %%is0 = eq %%rank, %%zero : bool\n"
    "  if %%first {\n    %s\n    yield\n  } {\n    yield\n  }\n  %s\n  return\n}\n";

static int32_t words[BLOCKS];

static TileExecution run(const char *before, const char *body, const char *behind, uint64_t seed, TileText *message) {
    TileExecutorArgument argument = {
        .tensor = {.data = words, .above = sizeof words, .extent = {BLOCKS}, .stride = {sizeof *words}}};
    memset(words, 0, sizeof words);
    TileFunc *kernel = read_func(tile_arena_format(executing.arena, text, before, body, behind), "k");
    return tile_execute_kernel(kernel, &argument, &(TileExecutorOptions){.seed = seed, .phases = true}, message);
}

static const char barrier[] = "cluster_barrier", arrive[] = "mbarrier_arrive %shared {multicast = 2}\n    mbarrier_wait %shared, %zero\n"
                                                            "    %more = add %rank, %one : i32\n    store %more, %mine";

Test(execute_cluster, arrivals_count_in_each_block) {
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        TileText message = {.arena = executing.arena};
        cr_expect_eq(run(barrier, arrive, barrier, seed, &message), TILE_EXECUTION_DONE, "%s", tile_text_get(&message));
        cr_expect_eq(words[0], 1);
        cr_expect_eq(words[1], 2);
    }
}

/* In how many of the runs with different seeds is there a fault with these words? */
static unsigned count_faults(const char *before, const char *body, const char *behind, const char *wanted) {
    unsigned faults = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        TileText message = {.arena = executing.arena};
        bool fails = run(before, body, behind, seed, &message) == TILE_EXECUTION_FAULT;
        faults += fails && strstr(tile_text_get(&message), wanted) != NULL;
    }
    return faults;
}

/* A barrier of one block does not tell the other that the mbarrier is there: whoever comes first finds none, or one that it does not know of. */
Test(execute_cluster, blocks_meet_before_they_arrive) {
    unsigned none = count_faults("barrier", arrive, barrier, "there is no mbarrier"), races = count_faults("barrier", arrive, barrier, "a race");
    cr_expect_eq(none + races, SEEDS);
}

/* The other block's arrival comes when this one, which waits for nobody, may have ended. */
Test(execute_cluster, shared_memory_goes_with_its_block) {
    static const char only_0[] = "if %is0 {\n      mbarrier_arrive %shared {multicast = 2}\n      yield\n    } {\n      yield\n    }";
    cr_expect_eq(count_faults(barrier, only_0, barrier, ""), 0);
    cr_expect_gt(count_faults(barrier, only_0, "barrier", "has ended"), 0);
}

Test(execute_cluster, all_threads_come_to_its_barrier) {
    cr_expect_eq(count_faults(barrier, "cluster_barrier", "barrier", "not all threads of the cluster come here"), SEEDS);
}

/* Each block has a shared memory of its own. */
Test(execute_cluster, shared_memory_is_the_blocks_own) {
    static const char body[] = "store %rank, %word\n    %read = load %word : i32\n    store %read, %mine";
    TileText message = {.arena = executing.arena};
    cr_expect_eq(run(barrier, body, barrier, 0, &message), TILE_EXECUTION_DONE, "%s", tile_text_get(&message));
    cr_expect_eq(words[0], 0);
    cr_expect_eq(words[1], 1);
}
