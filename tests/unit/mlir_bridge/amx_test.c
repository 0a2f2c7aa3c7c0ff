/* Tile registers of AMX: compiled instructions give the bits of the executor, for random and special numbers. Skipped
 * where the machine has no AMX. */
#include <string.h>

#include "base/cpu.h"
#include "lang/execute/execute.h"
#include "lang/scalar/scalar.h"
#include "support.h"

static const TileTarget amx = {.name = "amx",
                               .triple = "x86_64-unknown-linux-gnu",
                               .llvm_cpu = "x86-64-v4",
                               .llvm_features = "+amx-tile,+amx-bf16,+amx-int8",
                               .vector_bytes = 64,
                               .has_masks = true,
                               .has_amx = true};

enum { BYTES = 1024, ROW = 64, ROUNDS = 40 };

static const char function[] =
    "func phase machine @f(%%config: ptr<global>, %%a: ptr<global>, %%b: ptr<global>, %%c: ptr<global>, "
    "%%begin: i64, %%end: i64, %%scratch: ptr<scratch>"
    ") {\n"
    "  %%row = const {value = 64} : i64\n"
    "  amx_configure %%config\n"
    "  amx_load %%c, %%row {tile_registers = [0]}\n"
    "  amx_load %%a, %%row {tile_registers = [5]}\n"
    "  amx_load %%b, %%row {tile_registers = [7]}\n"
    "  amx_dot {tile_registers = [0, 5, 7], types = [%s, %s]}\n"
    "  amx_store %%c, %%row {tile_registers = [0]}\n"
    "  amx_release\n"
    "  return\n"
    "}\n";

typedef struct Matrices {
    uint8_t config[64], a[BYTES], b[BYTES], c[BYTES];
} Matrices;

/* Random bits; exponents near 0, near those whose products are subnormal, and near the greatest; special numbers. */
static uint16_t random_bf16(uint64_t *state, unsigned kind) {
    static const uint16_t special[] = {0x0000, 0x8000, 0x7f80, 0xff80, 0x7fc0, 0x0001, 0x8001,
                                       0x007f, 0x0080, 0x7f7f, 0xff7f, 0x3f80, 0xbf80, 0x1f80};
    uint64_t bits = next_random(state);
    uint16_t number = (uint16_t)(bits & 0x80ff), step = (uint16_t)(bits >> 20 & 7);
    switch (kind) {
    case 0: return (uint16_t)(bits >> 30);
    case 1: return special[(bits >> 20) % (sizeof special / sizeof *special)];
    case 2: return (uint16_t)(number | (59 + step) << 7);  /* products about 2**-126 */
    case 3: return (uint16_t)(number | (187 + step) << 7); /* products about 2**127 */
    case 4: return (uint16_t)(number | (step % 3) << 7);
    default: return (uint16_t)(number | (122 + step) << 7);
    }
}

static void fill(Matrices *m, bool floats, unsigned kind, uint64_t *state) {
    for (unsigned i = 0; i < BYTES; i += 2) {
        uint16_t x = (uint16_t)next_random(state), y = (uint16_t)next_random(state);
        if (floats) x = random_bf16(state, kind), y = random_bf16(state, kind);
        memcpy(m->a + i, &x, sizeof x);
        memcpy(m->b + i, &y, sizeof y);
    }
    for (unsigned i = 0; i < BYTES; i += 4) {
        uint32_t sum = (uint32_t)(next_random(state) >> 16);
        if (floats && kind > 1) sum = (uint32_t)random_bf16(state, kind == 2 ? 4 : kind) << 16 | (sum & 0xffff);
        memcpy(m->c + i, &sum, sizeof sum);
    }
}

/* Shapes that fit: rows of c and a, columns of c and b, and words along k. */
static void configure(Matrices *m, uint64_t *state) {
    unsigned rows = 1 + next_random(state) % 16, columns = 1 + next_random(state) % 16,
             words = 1 + next_random(state) % 16;
    if (next_random(state) % 2) rows = columns = words = 16;
    memset(m->config, 0, sizeof m->config);
    m->config[0] = 1;
    m->config[16] = (uint8_t)(4 * columns);
    m->config[16 + 10] = (uint8_t)(4 * words);
    m->config[16 + 14] = (uint8_t)(4 * columns);
    m->config[48] = m->config[48 + 5] = (uint8_t)rows;
    m->config[48 + 7] = (uint8_t)words;
}

static void execute(TileFunc *func, Matrices *m) {
    TileExecutor *executor = tile_executor_create(func, NULL);
    uint8_t *const arrays[] = {m->config, m->a, m->b, m->c};
    for (unsigned i = 0; i < 4; i++)
        tile_executor_bind_pointer(executor, i, arrays[i], 0, i ? BYTES : sizeof m->config, true);
    for (unsigned i = 4; i < 6; i++) tile_executor_bind_scalar(executor, i, 0);
    tile_executor_bind_pointer(executor, 6, m->config, 0, 0, false);
    TileExecution state = tile_executor_run(executor, UINT64_MAX);
    cr_assert_eq(state, TILE_EXECUTION_DONE, "%s", tile_executor_message(executor));
    tile_executor_destroy(executor);
}

static bool same(const uint8_t *x, const uint8_t *y, bool floats) {
    for (unsigned i = 0; i < BYTES; i += 4) {
        uint32_t p, q;
        memcpy(&p, x + i, sizeof p);
        memcpy(&q, y + i, sizeof q);
        bool nan = floats && (p & 0x7fffffff) > 0x7f800000 && (q & 0x7fffffff) > 0x7f800000;
        if (p != q && !nan) return false;
    }
    return true;
}

static void compare(const char *a, const char *b, bool floats) {
    const char *why_not = tile_cpu_why_not("amx");
    if (why_not) cr_skip_test("amx: %s", why_not);
    TileArena *arena = tile_arena_create(NULL);
    Compiled compiled = compile_text(tile_arena_format(arena, function, a, b), &amx);
    Entry entry = find_entry(&compiled, "f");
    uint64_t state = 88172645463325252u;
    for (unsigned round = 0; round < ROUNDS; round++) {
        Matrices machine, executed;
        memset(&machine, 0, sizeof machine);
        fill(&machine, floats, round % 6, &state);
        configure(&machine, &state);
        executed = machine;
        const uint64_t slots[] = {SLOT(machine.config), SLOT(machine.a), SLOT(machine.b), SLOT(machine.c)};
        entry(slots, 0, 0, NULL);
        execute(compiled.module->first, &executed);
        cr_assert(same(machine.c, executed.c, floats), "%s %s, round %u", a, b, round);
    }
    release_compiled(&compiled);
    tile_arena_destroy(arena);
}

Test(amx, bf16) { compare("bf16", "bf16", true); }
Test(amx, signed_bytes) { compare("i8", "i8", false); }
Test(amx, unsigned_bytes) { compare("u8", "u8", false); }
Test(amx, mixed_bytes) {
    compare("u8", "i8", false);
    compare("i8", "u8", false);
}

/* A sum below the least normal number is 0, also where as a subnormal it is rounded to that number. */
Test(amx, least_normal_number) {
    const char *why_not = tile_cpu_why_not("amx");
    if (why_not) cr_skip_test("amx: %s", why_not);
    TileArena *arena = tile_arena_create(NULL);
    const char *text = tile_arena_format(arena, function, "bf16", "bf16");
    Compiled compiled = compile_text(text, &amx);
    Entry entry = find_entry(&compiled, "f");
    for (int exponent = 146; exponent < 155; exponent++)
        for (int half = 0; half < 2; half++) {
            Matrices machine;
            memset(&machine, 0, sizeof machine);
            machine.config[0] = 1;
            for (unsigned i = 0; i < 8; i++) machine.config[16 + 2 * i] = ROW, machine.config[48 + i] = ROW / 4;
            const double numbers[] = {0x1p-63, half ? 1.5 : 1}; /* 2**-126 and -1 or -1.5 times 2**-exponent */
            uint16_t first = (uint16_t)tile_scalar_from_double(TILE_BF16, numbers[0]), second, third;
            second = (uint16_t)tile_scalar_from_double(TILE_BF16, numbers[1] * 0x1p-75);
            third = (uint16_t)((uint16_t)(127 - (exponent - 75)) << 7 | 0x8000);
            memcpy(machine.a, &first, 2), memcpy(machine.b, &first, 2);
            memcpy(machine.a + 4, &second, 2), memcpy(machine.b + ROW, &third, 2);
            Matrices executed = machine;
            const uint64_t slots[] = {SLOT(machine.config), SLOT(machine.a), SLOT(machine.b), SLOT(machine.c)};
            entry(slots, 0, 0, NULL);
            execute(compiled.module->first, &executed);
            cr_expect(same(machine.c, executed.c, true), "2**-126 - %g * 2**-%d", numbers[1], exponent);
        }
    release_compiled(&compiled);
    tile_arena_destroy(arena);
}
