/* Products of warpgroups: what they compute, the order of asynchronous accesses, pending sums, and misuse. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/gpu/wgmma_data.h"
#include "tests/unit/lang/executing.h"

TestSuite(execute_wgmma, .init = executing_set_up, .fini = executing_tear_down);

enum { SEEDS = 4, THREADS = 128, BYTES = 16384 }; /* seed 0: round robin */

/* Two warpgroups have 8 KiB of shared memory each, at %mine, in which each thread has stored 64 bytes of ones of f16.
 * %d describes it, for a and b, and %d2 the 32 bytes of k behind. %theirs is in the other warpgroup's memory. */
static const char head[] =
    "func kernel tile @k(%%x: tensor<i32, 1, inout>) {\n  %%n = const {value = 1} : i64\n"
    "  grid %%n (%%i: i64) {\n    yield\n  }\n  return\n}\n"
    "func phase machine @k.0(%%x: ptr<global>, %%x.dim0: i64, %%x.stride0: i64, %%begin: i64, %%end: i64, "
    "%%shared: ptr<shared>) kernel = @k phase = 0 threads = 256 registers = 128 scratch_bytes = 16400 {\n"
    "  %%thread = thread : i32\n  %%all = convert %%thread : i64\n  %%zero = const {value = 0} : i64\n"
    "  %%one = const {value = 1} : i64\n  %%four = const {value = 4} : i64\n  %%seven = const {value = 7} : i64\n"
    "  %%k127 = const {value = 127} : i64\n  %%k64 = const {value = 64} : i64\n  %%k8192 = const {value = 8192} : i64\n"
    "  %%k16384 = const {value = 16384} : i64\n  %%p0 = const {value = 0} : i32\n\n"
    "  %%t = and %%all, %%k127 : i64\n  %%group = shr %%all, %%seven : i64\n  %%at = mul %%group, %%k8192 : i64\n"
    "  %%first = eq %%group, %%zero : bool\n  %%is0 = eq %%all, %%zero : bool\n"
    "  %%mine = ptr_add %%shared, %%at : ptr<shared>\n  %%back = sub %%k8192, %%at : i64\n"
    "  %%others = ptr_add %%shared, %%back : ptr<shared>\n  %%to = mul %%t, %%k64 : i64\n"
    "  %%own = ptr_add %%mine, %%to : ptr<shared>\n  %%theirs = ptr_add %%others, %%to : ptr<shared>\n"
    "  %%ones = const {value = 1.0} : vec<32 x f16>\n  %%word = const {value = 1.0} : f16\n"
    "  %%wide = const {value = 1.0} : vec<4 x f32>\n  %%a = const {value = 1.0} : vec<8 x f16>\n"
    "  %%half = const {value = 1.0} : vec<16 x f16>\n  %%k32 = const {value = 32} : i64\n"
    "  %%own32 = ptr_add %%own, %%k32 : ptr<shared>\n  %%t0 = eq %%t, %%zero : bool\n"
    "  %%bytes = const {value = 8192} : i32\n  %%all_ones = const {value = -1} : i64\n"
    "  %%bar = ptr_add %%shared, %%k16384 : ptr<shared>\n"
    "  %%d = wgmma_descriptor %%mine {swizzle = 128, stride = 1024, leading = 16} : i64\n"
    "  %%two = const {value = 2} : i64\n  %%d2 = add %%d, %%two : i64\n"
    "  %%xo = mul %%all, %%k64 : i64\n  %%block = block : i64\n  %%bo = mul %%block, %%k16384 : i64\n"
    "  %%xb = add %%xo, %%bo : i64\n  %%result = ptr_add %%x, %%xb : ptr<global>\n%s  return\n}\n";

/* Operands that are ready, a product of them, and its results. */
#define STORE "store %ones, %own\n"
#define READY STORE "fence_async\nbarrier\n"
#define MULTIPLY "%p = wgmma %d, %d {types = [f16, f16]} : vec<4 x f32>\n"
#define BEGIN "wgmma_fence\n" MULTIPLY "wgmma_commit\n"
#define WAIT "%s = wgmma_wait %p {pending = 0} : vec<4 x f32>\n"
#define KEEP(sums) "store " sums ", %result\n"
#define IF(condition, then) "if " condition " {\n" then "yield\n} {\nyield\n}\n"

static _Alignas(16) float data[2 * 256 * 16]; /* of two blocks */

static TileExecution run(const char *body, uint64_t seed, TileText *message) {
    memset(data, 0, sizeof data);
    TileExecutorArgument argument = {
        .tensor = {.data = data, .above = sizeof data, .extent = {2 * 256 * 16}, .stride = {sizeof *data}}};
    TileFunc *kernel = read_func(tile_arena_format(executing.arena, head, body), "k");
    return tile_execute_kernel(kernel, &argument, &(TileExecutorOptions){.seed = seed, .phases = true}, message);
}

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
        cr_expect_eq(run(body, seed, &message), TILE_EXECUTION_FAULT, "seed %u: %s", (unsigned)seed, body);
        cr_expect(strstr(tile_text_get(&message), wanted), "seed %u, wanted `%s`, got: %s", (unsigned)seed, wanted,
                  tile_text_get(&message));
    }
}

/* ---- products ---- */

Test(execute_wgmma, sums_are_added_to) {
    expect_good(READY BEGIN WAIT KEEP("%s"));
    cr_expect_eq(data[0], 16);
    expect_good(READY "wgmma_fence\n" MULTIPLY
                      "%q = wgmma %d, %d, %p {types = [f16, f16], parts = [init]} : vec<4 x f32>\nwgmma_commit\n"
                      "%s = wgmma_wait %q {pending = 0} : vec<4 x f32>\n" KEEP("%s"));
    cr_expect_eq(data[255 * 16 + 3], 32);
    expect_good(
        READY
        "%w = add %wide, %wide : vec<4 x f32>\nwgmma_fence\n"
        "%p = wgmma %a, %d, %w {types = [f16, f16], parts = [init]} : vec<4 x f32>\nwgmma_commit\n" WAIT KEEP("%s"));
    cr_expect_eq(data[16], 18);
}

/* ---- pending sums ---- */

Test(execute_wgmma, pending_sums_are_poison) {
    expect_fault(READY BEGIN KEEP("%p") WAIT, "poison");
    expect_fault(READY BEGIN "%h = add %p, %wide : vec<4 x f32>\n" KEEP("%h") WAIT, "poison");
    expect_fault(READY "wgmma_fence\n" MULTIPLY WAIT KEEP("%s"), "poison");
    expect_fault(READY BEGIN "%s = wgmma_wait %p {pending = 1} : vec<4 x f32>\n" KEEP("%s"), "poison");
    expect_fault(READY BEGIN, "the block ends while the product is under way");
}

Test(execute_wgmma, a_wait_leaves_the_latest_groups_under_way) {
#define MORE "%q = wgmma %d, %d {types = [f16, f16]} : vec<4 x f32>\nwgmma_commit\n"
#define EARLIER "%s = wgmma_wait %p {pending = 1} : vec<4 x f32>\n"
#define LATER "%r = wgmma_wait %q {pending = 0} : vec<4 x f32>\n"
    expect_good(READY BEGIN MORE EARLIER KEEP("%s") LATER KEEP("%r"));
    expect_good(READY BEGIN MORE "%s, %u = wgmma_wait %p, %q {pending = 1} : vec<4 x f32>, vec<4 x f32>\n" KEEP(
        "%s") "%r = wgmma_wait %u {pending = 0} : vec<4 x f32>\n" KEEP("%r"));
    expect_fault(READY BEGIN MORE "%r = wgmma_wait %q {pending = 1} : vec<4 x f32>\n" KEEP("%r") WAIT, "poison");
    cr_expect_eq(data[0], 0);
}

Test(execute_wgmma, pending_sums_are_taken_once) {
    static const char taken[] = "another wgmma or wgmma_wait of this warpgroup has taken";
#define ADD(name, sums) "%" name " = wgmma %d, %d, %" sums " {types = [f16, f16], parts = [init]} : vec<4 x f32>\n"
    expect_fault(READY "wgmma_fence\n" MULTIPLY ADD("q", "p") ADD("r", "p") "wgmma_commit\n", taken);
    expect_fault(READY BEGIN WAIT "%s2 = wgmma_wait %p {pending = 0} : vec<4 x f32>\n", taken);
    expect_fault(READY "wgmma_fence\n" MULTIPLY ADD("q", "p") "wgmma_commit\n" WAIT, taken);
    expect_fault(READY BEGIN "%low = shuffle %p, %p {axes = [0, 0, 2, 3]} : vec<4 x f32>\n"
                             "%s = wgmma_wait %low {pending = 0} : vec<4 x f32>\n",
                 "only some of the lanes");
    /* In a loop they are carried on. */
    expect_good(READY BEGIN "%c = for %zero, %four, %one, %p : vec<4 x f32> (%k: i64, %v: vec<4 x f32>) {\n" ADD(
        "q", "v") "wgmma_commit\n%w = wgmma_wait %q {pending = 1} : vec<4 x f32>\nwgmma_fence\nyield %w\n}\n"
                  "%s = wgmma_wait %c {pending = 0} : vec<4 x f32>\n" KEEP("%s"));
    cr_expect_eq(data[0], 80);
}

/* ---- fences of registers ---- */

Test(execute_wgmma, registers_need_a_fence) {
    static const char first[] = "in front of the first wgmma, or behind a wgmma_wait",
                      since[] = "since the last wgmma_fence";
    expect_fault(READY MULTIPLY, first);
    expect_fault(READY BEGIN WAIT MORE, first);
    expect_good(READY BEGIN WAIT "wgmma_fence\n" MORE LATER);
    expect_fault(READY "wgmma_fence\n%w = add %wide, %wide : vec<4 x f32>\n"
                       "%p = wgmma %d, %d, %w {types = [f16, f16], parts = [init]} : vec<4 x f32>\n",
                 since);
    expect_fault(READY "wgmma_fence\n%w = add %a, %a : vec<8 x f16>\n"
                       "%p = wgmma %w, %d {types = [f16, f16]} : vec<4 x f32>\n",
                 since);
    expect_good(READY "%w = add %a, %a : vec<8 x f16>\nwgmma_fence\n"
                      "%p = wgmma %w, %d {types = [f16, f16]} : vec<4 x f32>\nwgmma_commit\n" WAIT);
    /* Sums that a loop carries are as old as what goes into it, and what it yields. */
    expect_fault(READY "wgmma_fence\n%w = add %wide, %wide : vec<4 x f32>\n"
                       "%c = for %zero, %one, %one, %w : vec<4 x f32> (%k: i64, %v: vec<4 x f32>) {\n" ADD(
                           "q", "v") "yield %q\n}\n",
                 since);
    expect_fault(READY BEGIN WAIT "wgmma_fence\n"
                                  "%c = for %zero, %one, %one, %s : vec<4 x f32> (%k: i64, %v: vec<4 x f32>) {\n"
                                  "%w = add %v, %wide : vec<4 x f32>\nyield %w\n}\n" ADD("q", "c"),
                 since);
}

/* ---- memory ---- */

Test(execute_wgmma, ordinary_writes_need_a_fence_and_order) {
    static const char fence[] = "no fence_async stands behind the other";
    expect_fault(STORE "barrier\n" BEGIN WAIT, fence);
    expect_fault("fence_async\n" STORE "barrier\n" BEGIN WAIT, fence);
    expect_fault(STORE IF("%is0", "fence_async\n") "barrier\n" BEGIN WAIT, fence);
    expect_fault(STORE "barrier\nfence_async\n" IF("%is0", "store %word, %own\n") "barrier\n" BEGIN WAIT, fence);
    expect_fault(STORE "fence_async\n" BEGIN WAIT, "a race: ");
    expect_fault(STORE "barrier\nbarrier\n" BEGIN WAIT, fence);
    expect_good(STORE "barrier\nfence_async\nbarrier\n" BEGIN WAIT);
    expect_good(STORE "fence_async\nbarrier\nbarrier\n" BEGIN WAIT);
    expect_good(STORE "fence_async\nbarrier {number = 3, threads = 256}\n" BEGIN WAIT);
    expect_good(STORE
                "fence_async\nbarrier {number = 3, threads = 256}\nbarrier {number = 3, threads = 256}\n" BEGIN WAIT);
    expect_fault(STORE "barrier {number = 3, threads = 256}\n" BEGIN WAIT, fence);
    expect_fault(STORE "barrier {number = 3, threads = 256}\nfence_async\n" BEGIN WAIT, fence);
}

Test(execute_wgmma, nobody_writes_what_a_product_reads) {
    static const char waited[] = "no wgmma_wait has waited for the product";
    expect_fault(READY BEGIN STORE WAIT, waited);
    expect_fault(READY BEGIN IF("%is0", "store %word, %own\n") WAIT, waited);
    expect_fault(READY BEGIN "barrier\n" STORE WAIT, waited);
    expect_fault(READY BEGIN WAIT "store %ones, %theirs\n", "a race: ");
    expect_good(READY BEGIN WAIT IF("%is0", "store %word, %own\n"));
    expect_good(READY BEGIN WAIT "barrier\nstore %ones, %theirs\n");
    expect_good(READY BEGIN WAIT "barrier {number = 1, threads = 256}\nstore %ones, %theirs\n");
    expect_good(READY BEGIN "%v = load %own : vec<32 x f16>\n" WAIT);
}

/* A wait that leaves a group under way says nothing of what that reads: bytes 32 to 64 of the first row. */
Test(execute_wgmma, a_wait_is_for_its_groups) {
#define TWO BEGIN "%q = wgmma %d2, %d2 {types = [f16, f16]} : vec<4 x f32>\nwgmma_commit\n" EARLIER
    expect_good(READY TWO IF("%t0", "store %half, %own\n") LATER);
    expect_fault(READY TWO IF("%t0", "store %half, %own32\n") LATER, "no wgmma_wait has waited for the product");
    expect_good(READY TWO LATER IF("%t0", "store %half, %own32\n"));
}

/* The first warpgroup waits for its copy; only who has waited may multiply. */
Test(execute_wgmma, copies_are_waited_for_by_all_threads) {
#define COPY(fence)                                                                                                    \
    IF("%is0", "mbarrier_init %bar {count = 1}\n" fence)                                                               \
    "barrier\n" IF("%is0", "mbarrier_arrive %bar {bytes = 8192}\ncopy_bulk %shared, %x, %bytes, %bar\n")
#define PRODUCT "wgmma_fence\n" MULTIPLY "wgmma_commit\n" WAIT
    expect_good(COPY("fence_async\n") IF("%first", "mbarrier_wait %bar, %p0\n" PRODUCT));
    expect_fault(COPY("") IF("%first", "mbarrier_wait %bar, %p0\n" PRODUCT), "no fence_async stands behind the other");
    expect_fault(COPY("fence_async\n") IF("%first", PRODUCT), "nobody has waited for the copy's mbarrier");
    expect_fault(COPY("fence_async\n") IF("%first", IF("%is0", "mbarrier_wait %bar, %p0\n") PRODUCT), "a race: ");
    expect_good(COPY("fence_async\n") IF(
        "%first", IF("%is0", "mbarrier_wait %bar, %p0\n") "barrier {number = 2, threads = 128}\n" PRODUCT));
}

/* ---- barriers of a part of a block ---- */

Test(execute_wgmma, named_barriers_order_who_comes) {
#define READ "%v = load %own : vec<32 x f16>\n"
#define SOME "barrier {number = 1, threads = 128}\n"
    static const char within[] = IF("%first", STORE SOME "%back_at = sub %k8192, %k64 : i64\n"
                                                         "%far = sub %back_at, %to : i64\n"
                                                         "%q = ptr_add %mine, %far : ptr<shared>\n"
                                                         "%v = load %q : vec<32 x f16>\n");
    expect_good(within);
    expect_fault(STORE IF("%first", SOME) "%v = load %theirs : vec<32 x f16>\n", "a race: ");
    expect_good(STORE "barrier {number = 15, threads = 256}\n%v = load %theirs : vec<32 x f16>\n");
    expect_fault(IF("%first", "barrier {number = 1, threads = 160}\n"), "not as many threads come to the barrier");
    expect_fault(SOME IF("%first", "barrier {number = 1, threads = 256}\n"), "");
    expect_fault("if %first {\nbarrier {number = 1, threads = 128}\nbarrier {number = 1, threads = 256}\nyield\n} {\n"
                 "barrier {number = 1, threads = 224}\nyield\n}\n",
                 "at the barrier of this number");
    /* Two numbers are two barriers. */
    expect_good("if %first {\nbarrier {number = 1, threads = 128}\nyield\n} {\nbarrier {number = 2, threads = 128}\n"
                "yield\n}\nbarrier\n");
}

Test(execute_wgmma, registers_come_from_who_releases_them) {
#define SET(first, second) "if %first {\n" first "yield\n} {\n" second "yield\n}\n"
    expect_good(SET("set_registers {registers = 40, release = 1}\n", "set_registers {registers = 216}\n"));
    expect_fault(SET("set_registers {registers = 40, release = 1}\n", "set_registers {registers = 224}\n"),
                 "other warpgroups keep too many registers");
    expect_fault(SET("", "set_registers {registers = 136}\n"), "other warpgroups keep too many registers");
    expect_fault("set_registers {registers = 136, release = 1}\n", "the threads have 128 registers before");
    expect_fault("set_registers {registers = 120}\n", "the threads have 128 registers before");
    expect_fault(IF("%is0", "set_registers {registers = 40, release = 1}\n"),
                 "not all threads of the warpgroup come here");
}

Test(execute_wgmma, misuse) {
    expect_fault(READY "wgmma_fence\n%q = add %d, %all : i64\n%p = wgmma %q, %d {types = [f16, f16]} : vec<4 x f32>\n",
                 "have different descriptors");
    expect_fault(READY "wgmma_fence\n%p = wgmma %all_ones, %d {types = [f16, f16]} : vec<4 x f32>\n",
                 "describes no matrix");
    expect_fault(READY "wgmma_fence\n%q = add %d, %k8192 : i64\n"
                       "%p = wgmma %q, %d {types = [f16, f16]} : vec<4 x f32>\n",
                 "of a memory object of 16400 bytes");
    expect_fault(
        "%q = wgmma_descriptor %shared {swizzle = 0, stride = 0, leading = 0} : i64\n" IF("%is0", "wgmma_fence\n"),
        "not all threads of the warpgroup come here");
    expect_fault(READY IF("%is0", BEGIN), "not all threads of the warpgroup come here");
    expect_fault(IF("%is0", "%v = load %own : vec<32 x f16>\n") "fence_async\nbarrier\n" BEGIN WAIT KEEP("%s"),
                 "poison");
}

/* ---- sums ---- */

enum { LINE_BYTES = 1 << 13, SINGLE_SUMS = 8 * WGMMA_ROWS };

static bool is_nan(uint32_t bits) { return (bits & 0x7fffffff) > 0x7f800000; }

static void expect_recorded(const WgmmaCase *item, WgmmaKind kind, unsigned number, const uint32_t *recorded) {
    static WgmmaData made;
    wgmma_make_data(item, kind, number, &made);
    TileExecutorTensor x = {
        .data = made.image, .above = made.image_bytes, .extent = {(int64_t)made.image_bytes / 4}, .stride = {4}};
    TileExecutorTensor y = {.data = made.out, .above = 4 * made.count, .extent = {made.count}, .stride = {4}};
    TileExecutorArgument arguments[] = {{.tensor = x}, {.tensor = y}};
    TileFunc *kernel = read_func(wgmma_kernel_text(executing.arena, item), NULL);
    TileText message = {.arena = executing.arena};
    cr_assert_eq(tile_execute_kernel(kernel, arguments, &(TileExecutorOptions){.phases = true}, &message),
                 TILE_EXECUTION_DONE, "%s", tile_text_get(&message));
    unsigned wrong = 0;
    for (unsigned i = 0; i < SINGLE_SUMS; i++)
        wrong += made.out[i] != recorded[i] && !(is_nan(made.out[i]) && is_nan(recorded[i]));
    cr_expect_eq(wrong, 0, "%s, kind %u: %u of %u sums are not those of the GPU",
                 wgmma_case_name(executing.arena, item), kind, wrong, SINGLE_SUMS);
}

/* wgmma_vectors.txt: a pair of types, the kind of data, and what tile_wgmma_tests got for a single step on an H100. */
Test(execute_wgmma, sums_are_those_of_a_gpu) {
    static char line[LINE_BYTES];
    unsigned count = 0;
    FILE *file =
        fopen(tile_arena_format(executing.arena, "%s/tests/gpu/wgmma_vectors.txt", getenv("TILE_SOURCE_DIR")), "r");
    cr_assert(file);
    for (; fgets(line, sizeof line, file); count++) {
        uint32_t sums[SINGLE_SUMS];
        char *at = line;
        unsigned pair = (unsigned)strtoul(at, &at, 10), kind = (unsigned)strtoul(at, &at, 10);
        for (unsigned i = 0; i < SINGLE_SUMS; i++) sums[i] = (uint32_t)strtoul(at, &at, 16);
        cr_assert(pair < WGMMA_FLOAT_PAIRS && kind < WGMMA_RECORDED && *at == '\n');
        WgmmaCase item = wgmma_single(pair, false);
        expect_recorded(&item, (WgmmaKind)kind, 2 * pair, sums);
    }
    fclose(file);
    cr_expect_eq(count, WGMMA_FLOAT_PAIRS * (WGMMA_RECORDED - WGMMA_WIDE));
}

/* ---- kernels ---- */

enum { KERNELS = WGMMA_ROLES + 2 };

static const WgmmaCase cases[] = {
    {.types = {TILE_F16, TILE_F16}, .columns = 24, .places = {{64, true}, {32, false}}, .flights = true},
    {.types = {TILE_U8, TILE_I8}, .columns = 16, .places = {{0, false}, {128, false}}, .registers = true}};

static const char *text_of(unsigned kernel) {
    return kernel < WGMMA_ROLES ? wgmma_roles_text(executing.arena, (WgmmaRoles)kernel)
                                : wgmma_kernel_text(executing.arena, &cases[kernel - WGMMA_ROLES]);
}

static bool orders(const TileOp *op) {
    return tile_op_is_of_warpgroup((TileOpId)op->id)
               ? op->id != TILE_OP_WGMMA
               : op->id == TILE_OP_BARRIER || op->id == TILE_OP_FENCE_ASYNC || op->id == TILE_OP_COPY_COMMIT ||
                     op->id == TILE_OP_COPY_WAIT || op->id == TILE_OP_MBARRIER_INIT ||
                     op->id == TILE_OP_MBARRIER_ARRIVE || op->id == TILE_OP_MBARRIER_WAIT ||
                     op->id == TILE_OP_COPY_BULK;
}

typedef struct Search {
    unsigned left;
    TileOp *found;
} Search;

static void look_at(TileOp *op, void *state) {
    Search *search = state;
    if (orders(op) && !--search->left) search->found = op;
}

static void take_out(TileOp *op) {
    for (unsigned i = 0; i < op->result_count; i++) tile_value_replace(&op->results[i], tile_op_operand(op, i));
    tile_op_erase(op);
}

/* Takes out the op with this number, from 1, of those that order accesses; NULL: there is none. 0: takes out nothing.
 */
static const char *run_kernel(unsigned kernel, unsigned number, uint64_t seed, TileExecution *state,
                              TileText *message) {
    static WgmmaData made;
    if (kernel < WGMMA_ROLES)
        wgmma_make_roles_data((WgmmaRoles)kernel, WGMMA_INTEGERS, &made);
    else
        wgmma_make_data(&cases[kernel - WGMMA_ROLES], WGMMA_INTEGERS, 0, &made);
    TileExecutorTensor x = {
        .data = made.image, .above = made.image_bytes, .extent = {(int64_t)made.image_bytes / 4}, .stride = {4}};
    TileExecutorTensor y = {.data = made.out, .above = 4 * made.count, .extent = {made.count}, .stride = {4}};
    TileExecutorArgument arguments[] = {{.tensor = x}, {.tensor = y}};
    TileFunc *func = read_func(text_of(kernel), NULL);
    Search search = {.left = number};
    tile_block_walk(&func->next->body, look_at, &search);
    if (number && !search.found) return NULL;
    const char *name = number ? tile_op_info((TileOpId)search.found->id)->mnemonic : "nothing";
    if (number) take_out(search.found);
    *state = tile_execute_kernel(func, arguments, &(TileExecutorOptions){.seed = seed, .phases = true}, message);
    if (*state == TILE_EXECUTION_DONE) cr_expect_eq(wgmma_measure(&made), 0);
    return name;
}

Test(execute_wgmma, kernels_are_right) {
    for (unsigned kernel = 0; kernel < KERNELS; kernel++)
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            TileText message = {.arena = executing.arena};
            TileExecution state;
            run_kernel(kernel, 0, seed, &state, &message);
            cr_expect_eq(state, TILE_EXECUTION_DONE, "kernel %u, seed %u: %s", kernel, (unsigned)seed,
                         tile_text_get(&message));
        }
}

/* Why an op can be left out without a report. */
static const struct {
    unsigned kernel, number;
    const char *reason;
} unneeded[] = {
    {WGMMA_RING, 11, "the warpgroup keeps the registers that it began with; ptxas sees that these have to do"},
    {WGMMA_ROLES + 1, 4, "its products belong to the next group, and the wait is for both"}};

static bool is_unneeded(unsigned kernel, unsigned number) {
    for (size_t i = 0; i < sizeof unneeded / sizeof *unneeded; i++)
        if (unneeded[i].kernel == kernel && unneeded[i].number == number) return true;
    return false;
}

static void expect_noticed(unsigned kernel, unsigned ops) {
    unsigned number = 1;
    TileExecution state;
    const char *name;
    for (TileText message = {.arena = executing.arena};
         (name = run_kernel(kernel, number, number % 2, &state, &message)); number++) {
        bool noticed = state == TILE_EXECUTION_FAULT;
        cr_expect(noticed != is_unneeded(kernel, number), "kernel %u without op %u, %s: %s", kernel, number, name,
                  noticed ? tile_text_get(&message) : "nothing is reported");
        message.length = 0;
    }
    cr_expect_eq(number - 1, ops, "kernel %u has %u ops", kernel, number - 1);
}

Test(execute_wgmma, nothing_of_the_kernels_can_be_left_out) {
    expect_noticed(WGMMA_RING, 21);
    expect_noticed(WGMMA_CHAIN, 13);
    expect_noticed(WGMMA_ROLES, 7);
    expect_noticed(WGMMA_ROLES + 1, 6);
}
