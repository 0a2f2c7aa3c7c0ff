/* Products of words in vectors: compiled instructions give the bits of the executor, for random and special numbers. Skipped
 * where the machine lacks them. */
#include <string.h>

#include "base/cpu.h"
#include "lang/execute/execute.h"
#include "lang/scalar/scalar.h"
#include "support.h"

static const TileTarget target = {.name = "avx512bf16",
                                  .triple = "x86_64-unknown-linux-gnu",
                                  .llvm_cpu = "x86-64-v4",
                                  .llvm_features = "-prefer-256-bit,+avx512bf16,+avx512vnni",
                                  .vector_bytes = 64,
                                  .has_masks = true,
                                  .has_vnni = true,
                                  .has_bf16_dot = true};

enum { LANES = 16, ROUNDS = 600 };

static const char function[] =
    "func phase machine @f(%%a: ptr<global>, %%b: ptr<global>, %%c: ptr<global>, %%begin: i64, %%end: i64, %%scratch: ptr<scratch>) {\n"
    "  %%x = load %%a : vec<%u x u32>\n"
    "  %%y = load %%b : vec<%u x u32>\n"
    "  %%s = load %%c : vec<%u x %s>\n"
    "  %%r = dot_words %%x, %%y, %%s {types = [%s, %s]} : vec<%u x %s>\n"
    "  store %%r, %%c\n"
    "  return\n"
    "}\n";

typedef struct Vectors {
    uint32_t a[LANES], b[LANES], c[LANES];
} Vectors;

/* Random bits; exponents whose products are near 2**-126, near 1 and near the greatest; special numbers. */
static uint32_t random_pair(uint64_t *state, unsigned kind) {
    static const uint16_t special[] = {0x0000, 0x8000, 0x7f80, 0xff80, 0x7fc0, 0x0001, 0x8001, 0x007f, 0x0080, 0x7f7f, 0xff7f, 0x3f80, 0xbf80};
    static const uint16_t exponent[] = {0, 0, 59, 187, 122};
    uint32_t word = 0;
    for (unsigned i = 0; i < 2; i++) {
        uint64_t bits = next_random(state);
        uint16_t number = (uint16_t)(bits >> 30), step = (uint16_t)(bits >> 20 & 7);
        if (kind == 1) number = special[(bits >> 20) % (sizeof special / sizeof *special)];
        if (kind > 1) number = (uint16_t)((number & 0x807f) | (uint32_t)(exponent[kind] + step) << 7);
        word |= (uint32_t)number << 16 * i;
    }
    return word;
}

static uint32_t random_sum(uint64_t *state, unsigned kind) {
    uint32_t low = (uint32_t)(next_random(state) >> 16);
    if (kind == 0) return low;
    if (kind == 2) return (low & 0x807fffff) | (low >> 8 & 3) << 23; /* about 2**-126 */
    return (random_pair(state, kind) & 0xffff0000) | (low & 0xffff);
}

static void execute(TileFunc *func, Vectors *v) {
    TileExecutor *executor = tile_executor_create(func, NULL);
    uint32_t *const arrays[] = {v->a, v->b, v->c};
    for (unsigned i = 0; i < 3; i++) tile_executor_bind_pointer(executor, i, arrays[i], 0, sizeof v->a, true);
    for (unsigned i = 3; i < 5; i++) tile_executor_bind_scalar(executor, i, 0);
    tile_executor_bind_pointer(executor, 5, v->a, 0, 0, false);
    TileExecution state = tile_executor_run(executor, UINT64_MAX);
    cr_assert_eq(state, TILE_EXECUTION_DONE, "%s", tile_executor_message(executor));
    tile_executor_destroy(executor);
}

static bool is_nan(uint32_t bits) { return (bits & 0x7fffffff) > 0x7f800000; }

static void compare(const char *a, const char *b, const char *sum, bool floats, unsigned lanes) {
    const char *why_not = tile_cpu_why_not("avx512bf16");
    if (why_not) cr_skip_test("avx512bf16: %s", why_not);
    TileArena *arena = tile_arena_create(NULL);
    Compiled compiled = compile_text(tile_arena_format(arena, function, lanes, lanes, lanes, sum, a, b, lanes, sum), &target);
    Entry entry = find_entry(&compiled, "f");
    uint64_t state = 88172645463325252u;
    for (unsigned round = 0; round < ROUNDS; round++) {
        Vectors machine, executed;
        for (unsigned l = 0; l < LANES; l++) {
            machine.a[l] = floats ? random_pair(&state, round % 5) : (uint32_t)next_random(&state);
            machine.b[l] = floats ? random_pair(&state, round % 5) : (uint32_t)next_random(&state);
            machine.c[l] = floats ? random_sum(&state, round % 5) : (uint32_t)next_random(&state);
        }
        executed = machine;
        const uint64_t slots[] = {SLOT(machine.a), SLOT(machine.b), SLOT(machine.c)};
        entry(slots, 0, 0, NULL);
        execute(compiled.module->first, &executed);
        for (unsigned l = 0; l < LANES; l++)
            cr_assert(machine.c[l] == executed.c[l] || (floats && is_nan(machine.c[l]) && is_nan(executed.c[l])),
                      "%s %s, %u lanes, round %u, lane %u: %#x, executed %#x", a, b, lanes, round, l, machine.c[l], executed.c[l]);
    }
    release_compiled(&compiled);
    tile_arena_destroy(arena);
}

Test(words, bf16) { compare("bf16", "bf16", "f32", true, LANES); }
Test(words, bytes) { compare("u8", "i8", "i32", false, LANES); }
Test(words, bf16_by_halves) { compare("bf16", "bf16", "f32", true, LANES / 2); }
Test(words, bytes_by_halves) { compare("u8", "i8", "i32", false, LANES / 2); }
