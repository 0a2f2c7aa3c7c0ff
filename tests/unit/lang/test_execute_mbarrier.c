/* Mbarriers and bulk copies: the order that they establish, races that only clocks detect, and misuse. */
#include <criterion/criterion.h>

#include "tests/gpu/mbarriers.h"
#include "tests/unit/lang/executing.h"

TestSuite(execute_mbarrier, .init = executing_set_up, .fini = executing_tear_down);

enum { SEEDS = 4, WORDS_OF_BLOCK = 128, ALL_WORDS = 3 * WORDS_OF_BLOCK }; /* seed 0: round robin */

/* %own is the thread's 4 bytes of shared memory, which contain its number, %twin those of the thread with the same lane
 * in the other warp, %line the block's words of x, %mine the thread's word of these. Before a barrier, the first thread
 * has initialised %bar, at byte 512, with COUNT arrivals, and %more, at byte 520, with one. */
static const char head[] =
    "func kernel tile @k(%%x: tensor<i32, 1, inout>) {\n  %%n = const {value = 1} : i64\n"
    "  grid %%n (%%i: i64) {\n    yield\n  }\n  return\n}\n"
    "func phase machine @k.0(%%x: ptr<global>, %%x.dim0: i64, %%x.stride0: i64, %%begin: i64, %%end: i64, "
    "%%shared: ptr<shared>) kernel = @k phase = 0 threads = 64 scratch_bytes = 1024 {\n"
    "  %%thread = thread : i32\n  %%t = convert %%thread : i64\n  %%zero = const {value = 0} : i64\n"
    "  %%one = const {value = 1} : i64\n  %%four = const {value = 4} : i64\n  %%warp = const {value = 32} : i64\n"
    "  %%five = const {value = 5} : i64\n  %%last = const {value = 63} : i64\n  %%p0 = const {value = 0} : i32\n"
    "  %%p1 = const {value = 1} : i32\n  %%all = const {value = 256} : i32\n  %%some = const {value = 24} : i32\n"
    "  %%512 = const {value = 512} : i64\n  %%520 = const {value = 520} : i64\n"
    "  %%o = mul %%t, %%four : i64\n  %%own = ptr_add %%shared, %%o : ptr<shared>\n"
    "  %%lane = xor %%t, %%warp : i64\n  %%lo = mul %%lane, %%four : i64\n"
    "  %%twin = ptr_add %%shared, %%lo : ptr<shared>\n  %%block = block : i64\n  %%bo = mul %%block, %%512 : i64\n"
    "  %%line = ptr_add %%x, %%bo : ptr<global>\n  %%mine = ptr_add %%line, %%o : ptr<global>\n"
    "  %%bar = ptr_add %%shared, %%512 : ptr<shared>\n  %%more = ptr_add %%shared, %%520 : ptr<shared>\n"
    "  %%first = lt %%t, %%warp : bool\n  %%is0 = eq %%t, %%zero : bool\n  %%is5 = eq %%t, %%five : bool\n"
    "  %%is63 = eq %%t, %%last : bool\n  store %%thread, %%own\n"
    "  if %%is0 {\n    mbarrier_init %%bar {count = %u}\n    mbarrier_init %%more {count = 1}\n    yield\n  } {\n"
    "    yield\n  }\n  fence_async\n  barrier\n%s  return\n}\n";

static _Alignas(16) int32_t data[ALL_WORDS];

static TileExecution run(unsigned count, const char *body, uint64_t seed, TileText *message) {
    for (int32_t i = 0; i < ALL_WORDS; i++) data[i] = 1000 + i;
    TileExecutorArgument argument = {
        .tensor = {.data = data, .above = sizeof data, .extent = {ALL_WORDS}, .stride = {sizeof *data}}};
    TileFunc *kernel = read_func(tile_arena_format(executing.arena, head, count, body), "k");
    return tile_execute_kernel(kernel, &argument, &(TileExecutorOptions){.seed = seed, .phases = true}, message);
}

static void expect_good(unsigned count, const char *body) {
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        TileText message = {.arena = executing.arena};
        cr_expect_eq(run(count, body, seed, &message), TILE_EXECUTION_DONE, "seed %u: %s", (unsigned)seed,
                     tile_text_get(&message));
    }
}

/* With every seed, whichever thread is first. */
static void expect_fault(unsigned count, const char *body, const char *wanted) {
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        TileText message = {.arena = executing.arena};
        cr_expect_eq(run(count, body, seed, &message), TILE_EXECUTION_FAULT, "seed %u: %s", (unsigned)seed, body);
        cr_expect(strstr(tile_text_get(&message), wanted), "seed %u, wanted `%s`, got: %s", (unsigned)seed, wanted,
                  tile_text_get(&message));
    }
}

#define IF(condition, then, otherwise) "if " condition " {\n" then "yield\n} {\n" otherwise "yield\n}\n"
#define PASS "store %thread, %own\nmbarrier_arrive %bar\n"
#define TAKE "%v = load %twin : i32\nstore %v, %mine\n"

/* ---- arrivals and waits ---- */

Test(execute_mbarrier, who_waits_sees_what_was_done_before_the_arrivals) {
    expect_good(32, IF("%first", PASS, "mbarrier_wait %bar, %p0\n" TAKE));
    cr_expect_eq(data[40], 8);
    expect_fault(32, IF("%first", PASS, TAKE), "nor does this thread know of it by an mbarrier");
    expect_fault(32, IF("%first", PASS, "mbarrier_wait %bar, %p1\n" TAKE), "a race: ");
    expect_fault(32, IF("%first", "mbarrier_arrive %bar\nstore %thread, %own\n", "mbarrier_wait %bar, %p0\n" TAKE),
                 "a race: ");
    expect_fault(64, IF("%first", PASS, "mbarrier_arrive %bar\n" TAKE), "a race: ");
}

/* One arrival less than there are threads: the last thread arrives in a later phase. */
Test(execute_mbarrier, a_phase_orders_the_arrivals_of_it_alone) {
    expect_fault(31, IF("%first", PASS, "mbarrier_wait %bar, %p0\n" TAKE), "a race: ");
    expect_fault(33, IF("%first", PASS, "mbarrier_wait %bar, %p0\n" TAKE),
                 ": 0 .. 31 at the end; 32 .. 63 at `mbarrier_wait %bar, %p0`, where phase 0 of `mbarrier_init %bar "
                 "{count = 33}` lacks 1 of 33 arrivals");
}

Test(execute_mbarrier, phases_and_parities) {
    expect_good(64, "mbarrier_wait %bar, %p1\n");
    expect_good(64, "store %thread, %own\nmbarrier_arrive %bar\nmbarrier_wait %bar, %p0\n%v = load %twin : i32\n"
                    "mbarrier_arrive %bar\nmbarrier_wait %bar, %p1\nstore %v, %own\nmbarrier_arrive %bar\n"
                    "mbarrier_wait %bar, %p0\n%w = load %twin : i32\nstore %w, %mine\n");
    cr_expect_eq(data[40], 40);
    expect_fault(64,
                 "mbarrier_arrive %bar\nmbarrier_wait %bar, %p0\nmbarrier_arrive %bar\nmbarrier_wait %bar, %p1\n"
                 "mbarrier_wait %bar, %p0\n",
                 "where phase 2 of `mbarrier_init %bar {count = 64}` lacks 64 of 64 arrivals");
    expect_fault(64,
                 "store %thread, %own\nmbarrier_arrive %bar\nmbarrier_wait %bar, %p0\n%v = load %twin : i32\n"
                 "store %v, %own\n",
                 "a race: ");
}

/* The first warp signals thread 63, which signals the others. */
Test(execute_mbarrier, what_is_known_is_passed_on) {
    static const char told[] =
        IF("%first", PASS,
           IF("%is63", "mbarrier_wait %bar, %p0\nmbarrier_arrive %more\n", "") "mbarrier_wait %more, %p0\n" TAKE);
    expect_good(32, told);
    expect_fault(32, IF("%first", PASS, IF("%is63", "mbarrier_arrive %more\n", "") "mbarrier_wait %more, %p0\n" TAKE),
                 "a race: ");
}

/* One of the readers does not arrive; no schedule hides that. */
Test(execute_mbarrier, every_reader_counts) {
#define READ "%a = load %shared : i32\n"
    static const char write[] = IF("%is63", "mbarrier_wait %bar, %p0\nstore %thread, %shared\n", "");
    expect_good(32, tile_arena_format(executing.arena, "%s%s", IF("%first", READ "mbarrier_arrive %bar\n", ""), write));
    expect_fault(31,
                 tile_arena_format(executing.arena, "%s%s",
                                   IF("%first", READ IF("%is5", "", "mbarrier_arrive %bar\n"), ""), write),
                 "which thread 5 of the same block");
    expect_fault(32,
                 tile_arena_format(executing.arena, "%s%s",
                                   IF("%first", "mbarrier_arrive %bar\n" IF("%is5", READ, ""), ""), write),
                 "a race: ");
}

Test(execute_mbarrier, barriers_order_all_as_ever) {
    expect_good(32, IF("%first", PASS, "") "barrier\nmbarrier_wait %bar, %p0\n%v = load %twin : i32\n" IF(
                        "%first", "", "store %v, %mine\n"));
    expect_good(32, IF("%first", "store %thread, %own\n",
                       "") "barrier\n" IF("%first", "", TAKE) "barrier\n" IF("%first", "", "store %thread, %twin\n"));
    expect_fault(32,
                 IF("%first", "", "store %thread, %own\n") "barrier\n" IF(
                     "%first", PASS, "mbarrier_wait %bar, %p0\nstore %thread, %own\n") TAKE,
                 "a race: ");
}

/* ---- bulk copies ---- */

#define COPY "mbarrier_arrive %bar {bytes = 256}\ncopy_bulk %shared, %line, %all, %bar\n"

Test(execute_mbarrier, bulk_copies_arrive_for_who_waits) {
    expect_good(1, IF("%is0", COPY, "") "mbarrier_wait %bar, %p0\n" TAKE);
    cr_expect_eq(data[40], 1008);
    expect_good(1, IF("%is0", "copy_bulk %shared, %line, %all, %bar\nmbarrier_arrive %bar {bytes = 256}\n",
                      "") "mbarrier_wait %bar, %p0\n" TAKE);
    expect_good(1, IF("%is0", "copy_bulk %shared, %line, %all, %bar\nmbarrier_expect %bar, %all\nmbarrier_arrive %bar\n",
                      "") "mbarrier_wait %bar, %p0\n" TAKE);
    static const char alone[] = "nobody has waited for the copy's mbarrier";
    expect_fault(1, IF("%is0", COPY, "") TAKE, "a race: ");
    expect_fault(1, IF("%is0", COPY, "") "barrier\n" TAKE, alone);
    expect_fault(1, IF("%is0", COPY TAKE, ""), alone);
    expect_fault(1, IF("%is0", COPY "store %thread, %own\n", ""), alone);
    expect_fault(2, IF("%is0", COPY COPY, ""), alone);
    expect_fault(1,
                 IF("%is0", "mbarrier_arrive %bar\ncopy_bulk %shared, %line, %all, %bar\n",
                    "") "mbarrier_wait %bar, %p0\n%v = load %twin : i32\n",
                 "a race: ");
}

/* Thread 0 has waited: threads that it signals are ordered after the copy, others are not. */
Test(execute_mbarrier, a_copy_that_was_waited_for_is_ordered_as_the_wait_is) {
    expect_good(
        1, IF("%is0", COPY "mbarrier_wait %bar, %p0\nmbarrier_arrive %more\n", "") "mbarrier_wait %more, %p0\n" TAKE);
    expect_good(1, IF("%is0", COPY "mbarrier_wait %bar, %p0\n", "") "barrier\n" TAKE);
    expect_fault(1, IF("%is0", COPY "mbarrier_wait %bar, %p0\n", "%v = load %twin : i32\n"), "a race: ");
    expect_fault(1,
                 IF("%is0", COPY,
                    IF("%is63", "mbarrier_wait %bar, %p0\nstore %thread, %own\n", "")
                        IF("%is5",
                           "mbarrier_wait %bar, %p0\n%b = load %own : i32\n"
                           "%c = load %shared : vec<64 x i32>\n",
                           "")),
                 "a race: ");
}

Test(execute_mbarrier, nobody_writes_what_is_being_copied) {
    static const char other[] = IF("%is0", COPY "store %thread, %mine\n", "");
    expect_fault(1, other, "writes bytes");
    expect_good(1, IF("%is0", COPY "mbarrier_wait %bar, %p0\nstore %thread, %mine\n", ""));
    expect_fault(1, IF("%is0", COPY, IF("%is63", "store %thread, %mine\n", "")), "a race: ");
    expect_fault(1, "%w = load %own : i32\n" IF("%is0", COPY "mbarrier_wait %bar, %p0\n", ""), "a race: ");
    expect_good(1, "store %thread, %own\nfence_async\nbarrier\n%w = load %own : i32\nbarrier\n" IF(
                       "%is0", COPY "mbarrier_wait %bar, %p0\n", ""));
    expect_fault(1, "store %thread, %own\nbarrier\n" IF("%is0", COPY "mbarrier_wait %bar, %p0\n", ""),
                 "this op is asynchronous, and no fence_async stands behind the other");
    expect_fault(1, "store %thread, %mine\nfence_async\nbarrier\n" IF("%is0", COPY "mbarrier_wait %bar, %p0\n", ""),
                 "this op is asynchronous, and fence_async is for shared memory");
}

Test(execute_mbarrier, what_a_phase_lacks_is_said) {
    expect_fault(1, IF("%is0", "mbarrier_expect %bar, %all\nmbarrier_arrive %bar\n", "") "mbarrier_wait %bar, %p0\n", "lacks 256 bytes");
    expect_fault(1, IF("%is0", "copy_bulk %shared, %line, %all, %bar\n", "") "mbarrier_wait %bar, %p0\n",
                 "lacks 1 of 1 arrivals and an arrival that speaks of 256 bytes, which have come");
    expect_fault(
        1,
        IF("%is0", "mbarrier_arrive %bar {bytes = 512}\ncopy_bulk %shared, %line, %all, %bar\n",
           "") "mbarrier_wait %bar, %p0 @5:7\n",
        "0 .. 63 at `5:7: mbarrier_wait %bar, %p0`, where phase 0 of `mbarrier_init %bar {count = 1}` lacks 256 "
        "bytes");
    expect_fault(2, IF("%is0", "mbarrier_arrive %bar {bytes = 512}\n", "") "mbarrier_wait %bar, %p0\n",
                 "lacks 1 of 2 arrivals and 512 bytes");
    TileText message = {.arena = executing.arena};
    cr_expect_eq(run(1, IF("%is0", COPY, ""), 0, &message), TILE_EXECUTION_FAULT);
    cr_expect(strstr(tile_text_get(&message), "the block ends while the copy is under way"), "%s",
              tile_text_get(&message));
}

/* ---- misuse ---- */

Test(execute_mbarrier, misuse) {
    expect_fault(1, "mbarrier_arrive %shared\n", "there is no mbarrier at byte 0");
    expect_fault(1, "%q = ptr_add %bar, %four : ptr<shared>\nmbarrier_arrive %q\n", "not aligned to 8 bytes");
    expect_fault(1, IF("%is0", "mbarrier_init %bar {count = 1}\n", ""),
                 "there is an mbarrier already, of `mbarrier_init");
    expect_fault(1, IF("%is0", "store %thread, %bar\nmbarrier_arrive %bar\n", ""),
                 "something else has been written to");
    expect_fault(64, "mbarrier_arrive %bar\nstore %thread, %bar\n", "a race: ");
    expect_fault(64, "mbarrier_arrive %bar\n%v = load %bar : i32\n", "a race: ");
    expect_fault(1, IF("%is0", "%v = load %bar : i32\nstore %v, %mine\n", ""), "poison");
    expect_fault(1, IF("%is0", "mbarrier_arrive %bar {bytes = 16}\nmbarrier_arrive %bar\n", ""),
                 "all 1 arrivals of the phase have come, and it still lacks 16 bytes");
    expect_fault(1, "mbarrier_wait %bar, %thread\n", "the parity is");
    expect_fault(2, IF("%is0", "mbarrier_arrive %bar {bytes = 1048575}\nmbarrier_arrive %bar {bytes = 1}\n", ""),
                 "counts to 1048575 bytes");
    expect_fault(1, "copy_bulk %shared, %line, %some, %bar\n", "copies 24 bytes");
    expect_fault(1, "copy_bulk %shared, %line, %p0, %bar\n", "copies 0 bytes");
    expect_fault(1, "%q = ptr_add %shared, %four : ptr<shared>\ncopy_bulk %q, %line, %all, %bar\n",
                 "not aligned to 16 bytes");
    expect_fault(1, "%q = ptr_add %line, %four : ptr<global>\ncopy_bulk %shared, %q, %all, %bar\n",
                 "not aligned to 16 bytes");
    expect_fault(1,
                 "%q = ptr_add %shared, %512 : ptr<shared>\n%r = ptr_add %q, %512 : ptr<shared>\n"
                 "copy_bulk %r, %line, %all, %bar\n",
                 "accesses bytes 1024");
    expect_fault(1,
                 IF("%is0",
                    "%s = const {value = 528} : i64\n%q = ptr_add %shared, %s : ptr<shared>\n"
                    "mbarrier_init %q {count = 1}\n",
                    "%s = const {value = 528} : i64\n"
                    "%q = ptr_add %shared, %s : ptr<shared>\nmbarrier_wait %q, %p1\n"),
                 "");
}

/* ---- a ring buffer ---- */

enum { TILES = 12, WORDS = TILES * MBARRIER_TILE };

static bool is_mbarrier(const TileOp *op) {
    return op->id == TILE_OP_BARRIER || op->id == TILE_OP_MBARRIER_INIT || op->id == TILE_OP_MBARRIER_ARRIVE || op->id == TILE_OP_MBARRIER_EXPECT ||
           op->id == TILE_OP_MBARRIER_WAIT || op->id == TILE_OP_COPY_BULK || op->id == TILE_OP_FENCE_ASYNC;
}

typedef struct Search {
    unsigned left;
    TileOp *found;
} Search;

static void look_at(TileOp *op, void *state) {
    Search *search = state;
    if (is_mbarrier(op) && !--search->left) search->found = op;
}

/* Removes the op with this number, from 1, of those that order threads; false: there is none. 0: removes nothing. */
static bool run_tiles(const char *text, unsigned number, uint64_t seed, TileExecution *state, TileText *message) {
    static _Alignas(16) int32_t x[WORDS], y[WORDS];
    for (int32_t i = 0; i < WORDS; i++) x[i] = 7 * i, y[i] = 0;
    TileExecutorArgument arguments[] = {
        {.tensor = {.data = x, .above = sizeof x, .extent = {WORDS}, .stride = {sizeof *x}}},
        {.tensor = {.data = y, .above = sizeof y, .extent = {WORDS}, .stride = {sizeof *y}}}};
    TileFunc *kernel = read_func(text, NULL);
    Search search = {.left = number};
    tile_block_walk(&kernel->next->body, look_at, &search);
    if (number && !search.found) return false;
    if (number) tile_op_erase(search.found);
    *state = tile_execute_kernel(kernel, arguments, &(TileExecutorOptions){.seed = seed, .phases = true}, message);
    for (int32_t i = 0; i < WORDS && *state == TILE_EXECUTION_DONE; i++) {
        int32_t beside = i / MBARRIER_TILE * MBARRIER_TILE + (i + 1) % MBARRIER_TILE;
        cr_expect_eq(y[i], x[i] + 10 * x[beside], "y[%d] is %d", i, y[i]);
    }
    return true;
}

static void expect_right(const char *text) {
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        TileText message = {.arena = executing.arena};
        TileExecution state;
        run_tiles(text, 0, seed, &state, &message);
        cr_expect_eq(state, TILE_EXECUTION_DONE, "seed %u: %s", (unsigned)seed, tile_text_get(&message));
    }
}

Test(execute_mbarrier, rings_are_right) {
    expect_right(mbarrier_ring);
    expect_right(mbarrier_alternate);
}

static void expect_noticed(const char *text, unsigned ops) {
    unsigned number = 1;
    TileExecution state;
    for (TileText message = {.arena = executing.arena}; run_tiles(text, number, number % 2, &state, &message); number++)
        cr_expect_eq(state, TILE_EXECUTION_FAULT, "without op %u nothing is reported", number);
    cr_expect_eq(number - 1, ops);
}

Test(execute_mbarrier, nothing_of_a_ring_can_be_left_out) {
    expect_noticed(mbarrier_ring, 11);
    expect_noticed(mbarrier_alternate, 7);
}
