/* Blocks of threads: data races of each kind, and barriers that not all threads reach, are reported; correct programs
 * are not. */
#include <criterion/criterion.h>

#include "tests/unit/lang/executing.h"

TestSuite(execute_block, .init = executing_set_up, .fini = executing_tear_down);

enum { THREADS = 64, PROGRAMS = 3 };

/* A launch of PROGRAMS blocks of THREADS threads. %t is the thread's number, %own its 4 bytes of shared memory, %next
 * those of the next thread (cyclically); %at and %mine are 4 bytes of x for each thread of each block. */
static const char head[] =
    "func kernel tile @k(%%x: tensor<i32, 1, inout>) {\n  %%n = const {value = 3} : i64\n"
    "  grid %%n (%%i: i64) {\n    yield\n  }\n  return\n}\n"
    "func phase machine @k.0(%%x: ptr<global>, %%x.dim0: i64, %%x.stride0: i64, %%begin: i64, %%end: i64, "
    "%%shared: ptr<shared>) kernel = @k phase = 0 threads = 64 scratch_bytes = 1024 {\n"
    "  %%thread = thread : i32\n  %%t = convert %%thread : i64\n  %%zero = const {value = 0} : i64\n"
    "  %%one = const {value = 1} : i64\n  %%four = const {value = 4} : i64\n  %%mask = const {value = 63} : i64\n"
    "  %%warp = const {value = 32} : i64\n  %%o = mul %%t, %%four : i64\n  %%own = ptr_add %%shared, %%o : "
    "ptr<shared>\n"
    "  %%t1 = add %%t, %%one : i64\n  %%n1 = and %%t1, %%mask : i64\n  %%no = mul %%n1, %%four : i64\n"
    "  %%next = ptr_add %%shared, %%no : ptr<shared>\n"
    "  %%block = block : i64\n  %%blocks = block_count : i64\n  %%row = const {value = 256} : i64\n"
    "  %%bo = mul %%block, %%row : i64\n  %%line = ptr_add %%x, %%bo : ptr<global>\n"
    "  %%mine = ptr_add %%line, %%o : ptr<global>\n  %%first = lt %%t, %%warp : bool\n  %%is0 = eq %%t, %%zero : bool\n"
    "%s  return\n}\n";

static int32_t data[(PROGRAMS + 1) * THREADS];

static TileMaskedCounts masked; /* of the last run */

static TileExecution run(const char *body, uint64_t seed, TileText *message) {
    masked = (TileMaskedCounts){0};
    memset(data, 0, sizeof data);
    TileExecutorArgument argument = {
        .tensor = {.data = data, .above = sizeof data, .extent = {(PROGRAMS + 1) * THREADS}, .stride = {sizeof *data}}};
    TileFunc *kernel = read_func(tile_arena_format(executing.arena, head, body), "k");
    return tile_execute_kernel(kernel, &argument,
                               &(TileExecutorOptions){.seed = seed, .phases = true, .masked = &masked},
                               message);
}

enum { SEEDS = 6 }; /* seed 0: round robin */

static void expect_good(const char *body) {
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        TileText message = {.arena = executing.arena};
        cr_expect_eq(run(body, seed, &message), TILE_EXECUTION_DONE, "seed %u: %s", (unsigned)seed,
                     tile_text_get(&message));
    }
}

/* With every seed, whichever thread is first. */
static void expect_fault(const char *body, const char *wanted) {
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        TileText message = {.arena = executing.arena};
        cr_expect_eq(run(body, seed, &message), TILE_EXECUTION_FAULT, "seed %u", (unsigned)seed);
        cr_expect(strstr(tile_text_get(&message), wanted), "seed %u, wanted `%s`, got: %s", (unsigned)seed, wanted,
                  tile_text_get(&message));
    }
}

/* ---- programs ---- */

/* The loop over programs of which a block has one may not begin a second one. */
Test(execute_block, a_block_has_one_program) {
    expect_good("for %block, %end, %blocks {one_program = 1} (%p: i64) {\nyield\n}\n");
    expect_fault("for %block, %end, %one {one_program = 1} (%p: i64) {\nyield\n}\n", "the block has a second program");
}

/* ---- races ---- */

Test(execute_block, barriers_order_shared_memory) {
    expect_good("store %thread, %own\nbarrier\n%v = load %next : i32\nbarrier\nstore %v, %own\n"
                "%w = load %own : i32\nstore %w, %mine\n");
    cr_expect_eq(data[5], 6);
    cr_expect_eq(data[THREADS - 1], 0);
    expect_fault("store %thread, %own\n%v = load %next : i32\n", "of %shared, which thread");
    expect_fault("store %thread, %own\nbarrier\n%v = load %next : i32\nstore %v, %own\n", "no barrier stands between");
    expect_fault("store %thread, %own\nstore %thread, %next\n", "wrote at `store %thread");
}

/* The report has both ops with their locations, the threads and the bytes. */
Test(execute_block, both_sides_of_a_race_are_named) {
    TileText message = {.arena = executing.arena};
    run("store %thread, %own @7:3\nbarrier\n%v = load %next : i32 @8:5\n"
        "store %v, %own @9:1\n",
        0, &message);
    const char *text = tile_text_get(&message);
    cr_expect(strstr(text,
                     "9:1: k.0: store %v, %own: a race: thread 0 of block 0 writes bytes 0 .. 4 of %shared, which "
                     "thread 63 of the same block 0 read at `8:5: %v = load %next : i32`; no barrier stands "
                     "between"),
              "%s", text);
}

/* Two stores of the same value are a race, too; a store by a single thread is not. */
Test(execute_block, equal_values_race_too) {
    expect_fault("store %thread, %shared\n", "writes bytes 0 .. 4 of %shared");
    expect_fault("%c = const {value = 1} : i32\nstore %c, %shared\n", "writes bytes 0 .. 4 of %shared");
    expect_good("store %thread, %shared, %is0 {parts = [mask]}\nbarrier\n%v = load %shared : i32\nstore %v, %mine\n");
}

Test(execute_block, accesses_of_other_sizes_overlap) {
    expect_fault("%b = convert %thread : u8\n%q = ptr_add %own, %one : ptr<shared>\nstore %b, %q\n"
                 "%v = load %next : i32\n",
                 "a race: ");
    expect_fault("%v = load %own : vec<2 x i32>\nstore %thread, %own\n", "a race: ");
    expect_good("%b = convert %thread : u8\n%q = ptr_add %shared, %t : ptr<shared>\nstore %b, %q\nbarrier\n"
                "%v = load %shared : vec<64 x u8>\n");
    expect_good("%v = load %mine : i32\nstore %thread, %mine\n%w = load %mine : vec<4 x u8>\nstore %w, %mine\n");
}

/* A shuffle does not order memory accesses. */
Test(execute_block, exchanges_order_no_memory) {
    expect_fault("store %thread, %own\n%c = const {value = 1} : i32\n%v = exchange %thread, %c : i32\n"
                 "%w = load %next : i32\n",
                 "a race: ");
}

/* A barrier of a warp orders what its lanes access, and no others. */
Test(execute_block, barriers_of_warps) {
    expect_good("store %thread, %own\nwarp_barrier\n%k = xor %t, %one : i64\n%ko = mul %k, %four : i64\n"
                "%q = ptr_add %shared, %ko : ptr<shared>\n%w = load %q : i32\nwarp_barrier\nstore %w, %own\n");
    expect_fault("store %thread, %own\nwarp_barrier\n%w = load %next : i32\n", "a race: ");
    expect_fault("if %is0 {\nyield\n} {\nwarp_barrier\nyield\n}\n", "not all lanes");
}

Test(execute_block, nothing_orders_blocks) {
    expect_good("store %thread, %mine\nbarrier\n%v = load %line : i32\nstore %v, %own\n");
    TileText message = {.arena = executing.arena};
    static const char *const bodies[] = {
        "store %thread, %x, %is0 {parts = [mask]}\n",
        "%v = load %x : i32\nbarrier\nstore %thread, %line, %is0 {parts = [mask]}\n",
        "store %thread, %line, %is0 {parts = [mask]}\nbarrier\n%v = load %x : i32\n",
    };
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        message.length = 0;
        cr_expect_eq(run(bodies[i], 0, &message), TILE_EXECUTION_RACE);
        cr_expect(strstr(tile_text_get(&message), "nothing orders the blocks of a launch"), "%s",
                  tile_text_get(&message));
    }
}

Test(execute_block, atomic_updates_race_with_other_accesses_only) {
    expect_good("%a = atomic %x, %thread {update = add} : i32\n");
    expect_good("%a = atomic %shared, %is0 {update = read, parts = [mask]} : i32\n");
    expect_good("%a = atomic %line, %thread {update = add} : i32\nbarrier\n%v = load %line : i32\nstore %v, %own\n");
    cr_expect_eq(data[0], THREADS * (THREADS - 1) / 2);
    expect_fault("%a = atomic %line, %thread {update = add} : i32\n%v = load %line : i32\n", "a race: ");
    expect_fault("%a = atomic %line, %thread {update = add} : i32\nstore %thread, %line, %is0 {parts = [mask]}\n",
                 "a race: ");
}

Test(execute_block, shared_memory_is_new_in_each_block) {
    expect_fault("%v = load %own : i32\nstore %v, %mine\nstore %thread, %own\n", "stores a lane that is poison");
    expect_fault("%again = lt %zero, %block : bool\n%c = const {value = 0} : i32\nif %again {\n"
                 "%v = load %own : i32\nstore %v, %mine\nyield\n} {\nstore %c, %mine\nyield\n}\nstore %thread, %own\n",
                 "stores a lane that is poison");
}

/* ---- barriers ---- */

Test(execute_block, barriers_in_branches) {
    expect_good("%yes = lt %zero, %four : bool\nif %yes {\nbarrier\nyield\n} {\nyield\n}\n");
    expect_fault("if %first {\nbarrier\nyield\n} {\nyield\n}\n",
                 "a deadlock: not all threads of the block come here; threads of block");
    expect_fault("if %first {\nbarrier\nyield\n} {\nyield\n}\n", ": 0 .. 31 at `barrier`; 32 .. 63 at the end");
    expect_fault("if %first {\nbarrier @1:2\nyield\n} {\nbarrier @3:4\nyield\n}\n",
                 ": 0 .. 31 at `1:2: barrier`; 32 .. 63 at `3:4: barrier`");
    expect_fault("for %zero, %t, %one (%i: i64) {\nbarrier\nyield\n}\n", ": 0 at the end; 1 .. 63 at `barrier`");
}

Test(execute_block, exchanges) {
    expect_good("%c = const {value = 1} : i32\n%v = exchange %thread, %c : i32\nstore %v, %mine\n");
    cr_expect_eq(data[6], 7);
    expect_good("%c = const {value = 31} : i32\nif %first {\n%v = exchange %thread, %c : i32\nstore %v, %mine\nyield\n"
                "} {\nyield\n}\n");
    cr_expect_eq(data[0], 31);
    expect_fault("%c = const {value = 1} : i32\nif %is0 {\nyield\n} {\n%v = exchange %thread, %c : i32\nyield\n}\n",
                 "a deadlock: not all lanes of the warp come here");
    expect_fault("%c = const {value = 32} : i32\n%v = exchange %thread, %c : i32\n", "no lane of a warp");
}

/* x of lane t is t and t + 100, y is t + 200 and t + 300. */
#define HALVES(upper)                                                                                                  \
    "%t16 = convert %thread : i16\n%h = const {value = 100} : i16\n%x1 = add %t16, %h : i16\n%y0 = add %x1, %h : i16\n" \
    "%y1 = add %y0, %h : i16\n%x2 = splat %t16 : vec<2 x i16>\n%y2 = splat %y0 : vec<2 x i16>\n"                       \
    "%xv = insert %x2, %x1 {axis = 1} : vec<2 x i16>\n%yv = insert %y2, %y1 {axis = 1} : vec<2 x i16>\n"               \
    "%two = const {value = 2} : i64\n%bit = and %t, %two : i64\n%odd = ne %bit, %zero : bool\n" upper

Test(execute_block, exchanges_of_halves) {
    expect_good(HALVES("%c = const {value = 2} : i32\n%a, %b = exchange_halves %xv, %yv, %odd, %c : vec<2 x i16>, vec<2 x i16>\n"
                       "store %a, %mine\n"));
    cr_expect_eq(data[1], 1 | 3 << 16);
    cr_expect_eq(data[3], 101 | 103 << 16);
    expect_good(HALVES("%c = const {value = 2} : i32\n%a, %b = exchange_halves %xv, %yv, %odd, %c : vec<2 x i16>, vec<2 x i16>\n"
                       "store %b, %mine\n"));
    cr_expect_eq(data[1], 201 | 203 << 16);
    cr_expect_eq(data[3], 301 | 303 << 16);
    expect_fault(HALVES("%c = const {value = 2} : i32\nif %is0 {\nyield\n} {\n%a, %b = exchange_halves %xv, %yv, %odd, %c : "
                        "vec<2 x i16>, vec<2 x i16>\nyield\n}\n"),
                 "a deadlock: not all lanes of the warp come here");
    expect_fault(HALVES("%c = const {value = 32} : i32\n%a, %b = exchange_halves %xv, %yv, %odd, %c : vec<2 x i16>, vec<2 x i16>\n"),
                 "no lane of a warp");
}

/* A warp may run before others have started: with a seed, the scheduler does that too, and no result changes. */
Test(execute_block, warps_meet_alone) {
    expect_fault("%c = const {value = 1} : i32\nif %first {\n%v = exchange %thread, %c : i32\nstore %v, %own\nbarrier\n"
                 "yield\n} {\n%v = exchange %thread, %c : i32\nyield\n}\n",
                 "32 .. 63 at the end");
}

/* ---- copies ---- */

/* Each thread copies its 4 bytes of x, which are its number, to its 4 bytes of shared memory. */
#define COPY "store %thread, %mine\nbarrier\n%w = const {value = 4} : i32\ncopy_async %own, %mine, %w {bytes = 4}\n"

Test(execute_block, copies_arrive_for_who_waits) {
    expect_good(COPY "copy_commit\ncopy_wait {pending = 0}\nbarrier\n%v = load %next : i32\nbarrier\n"
                     "store %v, %mine\n");
    cr_expect_eq(data[5], 6);
    expect_fault(COPY "copy_commit\ncopy_wait {pending = 0}\n%v = load %next : i32\n", "no barrier stands between");
}

/* The last copies may still be pending if groups are left pending; uncommitted ones always may. */
Test(execute_block, copies_are_poison_until_they_are_waited_for) {
    TileText message = {.arena = executing.arena};
    static const char *const waits[] = {"copy_commit\n", "copy_commit\ncopy_wait {pending = 1}\n",
                                        "copy_wait {pending = 0}\n"};
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        const char *body =
            tile_arena_format(executing.arena, "%s%s%%v = load %%own : i32\nstore %%v, %%mine\n", COPY, waits[i]);
        message.length = 0;
        cr_expect_eq(run(body, 0, &message), TILE_EXECUTION_FAULT, "%s", waits[i]);
        cr_expect(strstr(tile_text_get(&message), "poison"), "%s", tile_text_get(&message));
    }
    expect_good(COPY "copy_commit\ncopy_commit\ncopy_wait {pending = 1}\n%v = load %own : i32\nstore %v, %mine\n");
}

Test(execute_block, nobody_touches_what_is_being_copied) {
    expect_fault(COPY "copy_commit\nbarrier\n%v = load %next : i32\ncopy_wait {pending = 0}\n", "a race: ");
    expect_fault(COPY "copy_commit\nbarrier\nstore %thread, %next\ncopy_wait {pending = 0}\n", "a race: ");
    expect_fault("%v = load %next : i32\n%w = const {value = 4} : i32\ncopy_async %own, %mine, %w {bytes = 4}\n",
                 "a race: ");
}

/* If the other thread's access was during the copy, the report says so. */
Test(execute_block, reports_name_who_touched_it) {
    TileText message = {.arena = executing.arena};
    run(COPY "copy_commit\nbarrier\n%v = load %next : i32\ncopy_wait {pending = 0}\n", 0, &message);
    cr_expect(
        strstr(tile_text_get(&message), "while that was under way thread 62 read there at `%v = load %next : i32`"),
        "%s", tile_text_get(&message));
}

Test(execute_block, copies_are_filled_up_with_zeros) {
    expect_good("%c = const {value = -1} : i32\nstore %c, %mine\nbarrier\n%w = const {value = 2} : i32\n"
                "copy_async %own, %mine, %w {bytes = 4}\ncopy_commit\ncopy_wait {pending = 0}\n"
                "%v = load %own : i32\nstore %v, %mine\n");
    cr_expect_eq(data[7], 0xffff);
    expect_fault("%w = const {value = 5} : i32\ncopy_async %own, %mine, %w {bytes = 4}\n", "copies 5 bytes");
    expect_fault("%w = const {value = 4} : i32\n%q = ptr_add %own, %one : ptr<shared>\n"
                 "copy_async %q, %mine, %w {bytes = 4}\n",
                 "not aligned to 4 bytes");
}

/* ---- matrices ---- */

Test(execute_block, matrices_take_whole_warps_and_aligned_rows) {
    static const char rows[] = "%sixteen = const {value = 16} : i64\n%at = mul %t, %sixteen : i64\n"
                               "%rows = ptr_add %shared, %at : ptr<shared>\n";
    expect_fault(tile_arena_format(executing.arena,
                                   "%sif %%is0 {\nyield\n} {\n%%m = load_matrix %%rows : i32\nyield\n}\n", rows),
                 "a deadlock: not all lanes of the warp come here");
    expect_fault("%m = load_matrix %own : i32\n", "not aligned to 16 bytes");
    expect_fault("store %thread, %own\n%m = load_matrix %shared : i32\n", "a race: ");
    expect_fault(
        tile_arena_format(executing.arena, "%sif %%is0 {\nyield\n} {\nstore_matrix %%thread, %%rows\nyield\n}\n", rows),
        "a deadlock: not all lanes of the warp come here");
    expect_fault("store_matrix %thread, %own\n", "not aligned to 16 bytes");
    expect_fault(
        tile_arena_format(executing.arena, "%sstore_matrix %%thread, %%rows\n%%v = load %%shared : i32\n", rows),
        "a race: ");
}

/* ---- masks ---- */

static void expect_masked(const char *body, uint64_t lanes, uint64_t by_data) {
    TileText message = {.arena = executing.arena};
    cr_expect_eq(run(body, 0, &message), TILE_EXECUTION_DONE, "%s", tile_text_get(&message));
    cr_expect_eq(masked.lanes, lanes, "%s: %llu", body, (unsigned long long)masked.lanes);
    cr_expect_eq(masked.data, by_data, "%s: %llu", body, (unsigned long long)masked.data);
}

/* A mask that selects threads, the same in every block, does not count as masking existing elements; all others do, those
 * that depend on what was loaded by themselves. */
Test(execute_block, a_choice_of_threads_is_no_mask) {
    enum { ALL = PROGRAMS * THREADS };
    expect_masked("store %thread, %mine\n", 0, 0);
    expect_masked("store %thread, %mine, %is0 {parts = [mask]}\n", 0, 0);
    expect_masked("store %thread, %mine, %first {parts = [mask]}\nstore %thread, %own, %is0 {parts = [mask]}\n", 0, 0);
    expect_masked("%l = const {value = 31} : i64\n%lane = and %t, %l : i64\n%leads = eq %lane, %zero : bool\n"
                  "store %thread, %mine, %leads {parts = [mask]}\n",
                  0, 0);
    expect_masked("%in = lt %t, %x.dim0 : bool\nstore %thread, %mine, %in {parts = [mask]}\n", ALL, 0);
    expect_masked("%in = lt %block, %x.dim0 : bool\n%both = and %is0, %in : bool\n"
                  "store %thread, %mine, %both {parts = [mask]}\n",
                  ALL, 0);
    expect_masked("%all = lt %t, %row : bool\nstore %thread, %mine, %all {parts = [mask]}\n", ALL, 0);
    expect_masked("%yes = const {value = true} : bool\nstore %thread, %mine, %yes {parts = [mask]}\n", ALL, 0);
    expect_masked("%v = load %mine : i32\n%c = convert %v : bool\n%any = or %c, %is0 : bool\n"
                  "store %thread, %mine, %any {parts = [mask]}\n",
                  0, ALL);
    expect_masked("%v = load %mine : i32\n%c = convert %v : bool\n%in = lt %t, %x.dim0 : bool\n%both = and %c, %in : bool\n"
                  "store %thread, %mine, %both {parts = [mask]}\n",
                  ALL, 0);
    expect_masked("%v = load %mine : i32\n%c = convert %v : bool\n%both = and %c, %is0 : bool\n"
                  "store %thread, %mine, %both {parts = [mask]}\n",
                  0, ALL);
    expect_masked("store %thread, %own\n%v = load %own : i32\n%c = convert %v : bool\n"
                  "store %thread, %mine, %c {parts = [mask]}\n",
                  ALL, 0);
}
