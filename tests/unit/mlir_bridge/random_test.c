/* Random functions of mapped ops, loops and branches: native code gives the executor's bits. If not, the function is
 * printed. */
#include <stdlib.h>
#include <string.h>

#include "lang/execute/execute.h"
#include "lang/scalar/scalar.h"
#include "lang/ir/text.h"
#include "support.h"

enum { FUNCTIONS = 24, OPS = 40, POOL = 512, MEMORY = 4096, INPUTS = 4 };

static const TileScalar types[] = {TILE_BOOL, TILE_I8,  TILE_U16, TILE_I32, TILE_U32,
                                   TILE_I64,  TILE_U64, TILE_F16, TILE_F32, TILE_F64};
enum { TYPE_COUNT = sizeof types / sizeof types[0] };

/* The text under construction and the values in scope: of type `types[t]`, scalar or vector. */
typedef struct Maker {
    TileText text;
    uint64_t state;
    unsigned lanes, next, depth;
    unsigned values[TYPE_COUNT][2][POOL], counts[TYPE_COUNT][2];
} Maker;

static unsigned pick(Maker *m, unsigned below) { return (unsigned)(next_random(&m->state) % below); }

static unsigned type_index(TileScalar scalar) {
    unsigned t = 0;
    while (types[t] != scalar) t++;
    return t;
}

static const char *type_name(const Maker *m, unsigned t, bool vector) {
    if (!vector) return tile_scalar_name(types[t]);
    return tile_arena_format(m->text.arena, "vec<%u x %s>", m->lanes, tile_scalar_name(types[t]));
}

static unsigned define(Maker *m, unsigned t, bool vector) {
    if (m->counts[t][vector] < POOL) m->values[t][vector][m->counts[t][vector]++] = m->next;
    return m->next++;
}

static unsigned use(Maker *m, unsigned t, bool vector) { return m->values[t][vector][pick(m, m->counts[t][vector])]; }

static unsigned add_constant(Maker *m, unsigned t, bool vector, uint64_t number) {
    TileText value = {.arena = m->text.arena};
    uint64_t bits = tile_scalar_is_float(types[t]) ? tile_scalar_from_double(types[t], (double)number)
                                                   : number & tile_scalar_mask(types[t]);
    tile_scalar_print(&value, types[t], bits);
    unsigned result = define(m, t, vector);
    tile_text_format(&m->text, "%%v%u = const {value = %s} : %s\n", result, tile_text_get(&value),
                     type_name(m, t, vector));
    return result;
}

static void add_op(Maker *m, const char *name, unsigned count, const unsigned *operands, unsigned t, bool vector) {
    TileText line = {.arena = m->text.arena};
    for (unsigned i = 0; i < count; i++) tile_text_format(&line, i ? ", %%v%u" : " %%v%u", operands[i]);
    tile_text_format(&m->text, "%%v%u = %s%s : %s\n", define(m, t, vector), name, tile_text_get(&line),
                     type_name(m, t, vector));
}

/* ---- single ops ---- */

static void add_arithmetic(Maker *m, unsigned t, bool vector) {
    static const char *const of_floats[] = {"add", "sub", "mul", "div"};
    static const char *const of_integers[] = {"add", "sub", "mul", "min", "max", "and", "or", "xor", "shl", "shr"};
    static const char *const of_bools[] = {"and", "or", "xor"};
    unsigned operands[2] = {use(m, t, vector), use(m, t, vector)};
    if (types[t] == TILE_BOOL) {
        add_op(m, of_bools[pick(m, 3)], 2, operands, t, vector);
    } else if (tile_scalar_is_float(types[t])) {
        add_op(m, of_floats[pick(m, 4)], 2, operands, t, vector);
    } else {
        const char *name = of_integers[pick(m, 10)];
        if (name[0] == 's' && name[1] == 'h') {
            unsigned count[2] = {operands[1], add_constant(m, t, vector, tile_scalar_bits(types[t]) - 1)};
            add_op(m, "and", 2, count, t, vector);
            operands[1] = m->next - 1;
        }
        add_op(m, name, 2, operands, t, vector);
    }
}

static void add_unary(Maker *m, unsigned t, bool vector) {
    static const char *const of_floats[] = {"neg", "abs", "floor", "ceil", "round", "trunc", "sqrt"};
    static const char *const of_integers[] = {"neg", "abs", "not"};
    unsigned x = use(m, t, vector);
    if (types[t] == TILE_BOOL)
        add_op(m, "not", 1, &x, t, vector);
    else if (tile_scalar_is_float(types[t]))
        add_op(m, of_floats[pick(m, 7)], 1, &x, t, vector);
    else
        add_op(m, of_integers[pick(m, 3)], 1, &x, t, vector);
}

static void add_comparison(Maker *m, unsigned t, bool vector) {
    static const char *const names[] = {"eq", "ne", "lt", "le", "gt", "ge"};
    unsigned operands[2] = {use(m, t, vector), use(m, t, vector)};
    bool equality = types[t] == TILE_BOOL;
    add_op(m, names[pick(m, equality ? 2 : 6)], 2, operands, type_index(TILE_BOOL), vector);
}

static void add_select(Maker *m, unsigned t, bool vector) {
    unsigned operands[3] = {use(m, type_index(TILE_BOOL), vector && pick(m, 4)), use(m, t, vector), use(m, t, vector)};
    add_op(m, "select", 3, operands, t, vector);
}

static void add_conversion(Maker *m, unsigned t, bool vector) {
    unsigned to = pick(m, TYPE_COUNT), x = use(m, t, vector);
    if (types[t] == TILE_F64 && types[to] == TILE_F16) to = t;
    add_op(m, "convert", 1, &x, to, vector);
}

static void add_fma(Maker *m, unsigned t, bool vector) {
    unsigned f = type_index(types[t] == TILE_F64 ? TILE_F64 : TILE_F32);
    unsigned operands[3] = {use(m, f, vector), use(m, f, vector), use(m, f, vector)};
    add_op(m, "fma", 3, operands, f, vector);
}

static void add_lanes(Maker *m, unsigned t, bool vector) {
    unsigned x = use(m, t, true), y = use(m, t, true), s = use(m, t, false), result;
    switch (pick(m, 4)) {
    case 0: add_op(m, "splat", 1, &s, t, true); return;
    case 1:
        result = define(m, t, false);
        tile_text_format(&m->text, "%%v%u = extract %%v%u {axis = %u} : %s\n", result, x, pick(m, m->lanes),
                         type_name(m, t, false));
        return;
    case 2:
        result = define(m, t, true);
        tile_text_format(&m->text, "%%v%u = insert %%v%u, %%v%u {axis = %u} : %s\n", result, x, s, pick(m, m->lanes),
                         type_name(m, t, true));
        return;
    default:
        result = define(m, t, true);
        tile_text_format(&m->text, "%%v%u = shuffle %%v%u, %%v%u {axes = [", result, x, y);
        for (unsigned i = 0; i < m->lanes; i++) tile_text_format(&m->text, i ? ", %u" : "%u", pick(m, 2 * m->lanes));
        tile_text_format(&m->text, "]} : %s\n", type_name(m, t, true));
    }
}

/* ---- regions ---- */

static void add_ops(Maker *m, unsigned count);

/* Ops of a region; their values are not visible after it. Returns a value of the type from inside. */
static unsigned add_region(Maker *m, unsigned t, bool vector) {
    unsigned counts[TYPE_COUNT][2];
    memcpy(counts, m->counts, sizeof counts);
    m->depth++;
    add_ops(m, 6);
    m->depth--;
    unsigned result = use(m, t, vector);
    memcpy(m->counts, counts, sizeof counts);
    return result;
}

static void add_branch(Maker *m, unsigned t, bool vector) {
    unsigned condition = use(m, type_index(TILE_BOOL), false), result = m->next++;
    tile_text_format(&m->text, "%%v%u = if %%v%u : %s {\n", result, condition, type_name(m, t, vector));
    tile_text_format(&m->text, "yield %%v%u\n} {\n", add_region(m, t, vector));
    tile_text_format(&m->text, "yield %%v%u\n}\n", add_region(m, t, vector));
    if (m->counts[t][vector] < POOL) m->values[t][vector][m->counts[t][vector]++] = result;
}

static void add_loop(Maker *m, unsigned t, bool vector) {
    unsigned i64 = type_index(TILE_I64), start = use(m, t, vector), saved = m->counts[i64][0];
    unsigned lo = add_constant(m, i64, false, pick(m, 3)), hi = add_constant(m, i64, false, pick(m, 9));
    unsigned step = add_constant(m, i64, false, 1 + pick(m, 3)), result = m->next++;
    m->counts[i64][0] = saved;
    const char *type = type_name(m, t, vector);
    unsigned carried_saved = m->counts[t][vector], counter = define(m, i64, false), carried = define(m, t, vector);
    tile_text_format(&m->text, "%%v%u = for %%v%u, %%v%u, %%v%u, %%v%u : %s (%%v%u: i64, %%v%u: %s) {\n", result, lo,
                     hi, step, start, type, counter, carried, type);
    tile_text_format(&m->text, "yield %%v%u\n}\n", add_region(m, t, vector));
    m->counts[i64][0] = saved;
    m->counts[t][vector] = carried_saved;
    if (t == i64 && !vector) m->counts[t][vector] = saved;
    if (m->counts[t][vector] < POOL) m->values[t][vector][m->counts[t][vector]++] = result;
}

static void add_ops(Maker *m, unsigned count) {
    typedef void (*Adder)(Maker *, unsigned, bool);
    static const Adder adders[] = {add_arithmetic, add_arithmetic, add_arithmetic, add_unary, add_comparison,
                                   add_select,     add_conversion, add_fma,        add_lanes};
    for (unsigned i = 0; i < count; i++) {
        unsigned t = pick(m, TYPE_COUNT);
        bool vector = pick(m, 3) != 0;
        unsigned kind = pick(m, 16);
        if (kind == 0 && m->depth < 2)
            add_branch(m, t, vector);
        else if (kind == 1 && m->depth < 2)
            add_loop(m, t, vector);
        else
            adders[pick(m, sizeof adders / sizeof adders[0])](m, t, vector);
    }
}

/* ---- functions ---- */

/* Loads of each type from the input, the ops, stores of one value of each type to the output. */
static void add_function(Maker *m, unsigned number) {
    unsigned offset = 0, stored = 0;
    memset(m->counts, 0, sizeof m->counts);
    tile_text_format(&m->text, "func phase machine @f%u(%%x: ptr<global>, %%y: ptr<global>, %s) {\n", number,
                     PARAMETERS);
    for (unsigned t = 0; t < TYPE_COUNT; t++)
        for (int vector = 0; vector < 2; vector++)
            for (int i = 0; i < INPUTS; i++) {
                unsigned at = m->next++;
                tile_text_format(&m->text,
                                 "%%o%u = const {value = %u} : i64\n%%p%u = ptr_add %%x, %%o%u : ptr<global>\n", at,
                                 offset, at, at);
                unsigned value = define(m, t, vector);
                tile_text_format(&m->text, "%%v%u = load %%p%u : %s\n", value, at, type_name(m, t, vector));
                offset += 8;
            }
    add_ops(m, OPS);
    for (unsigned t = 0; t < TYPE_COUNT; t++)
        for (int vector = 0; vector < 2; vector++) {
            unsigned at = m->next++, value = m->values[t][vector][m->counts[t][vector] - 1];
            tile_text_format(&m->text, "%%o%u = const {value = %u} : i64\n%%p%u = ptr_add %%y, %%o%u : ptr<global>\n",
                             at, stored, at, at);
            tile_text_format(&m->text, "store %%v%u, %%p%u\n", value, at);
            stored += vector ? 8 * m->lanes : 8;
        }
    cr_assert(offset + 8 * m->lanes <= MEMORY && stored <= MEMORY);
    tile_text_add(&m->text, "return\n}\n");
}

/* Bytes that are also valid bools are 0 or 1; floats of moderate size are more frequent than random bits. */
static void fill_input(unsigned char *x, uint64_t *state) {
    for (int i = 0; i < MEMORY / 8; i++) {
        uint64_t bits = next_random(state);
        double number = (double)(int64_t)bits * 0x1p-58;
        float single = (float)number;
        if (bits & 1) memcpy(x + 8 * i, &number, 8);
        if (!(bits & 1)) memcpy(x + 8 * i, &single, 4), memcpy(x + 8 * i + 4, &bits, 4);
    }
}

static void execute(TileFunc *func, unsigned char *x, unsigned char *y) {
    TileExecutor *executor = tile_executor_create(func, NULL);
    tile_executor_bind_pointer(executor, 0, x, 0, MEMORY, false);
    tile_executor_bind_pointer(executor, 1, y, 0, MEMORY, true);
    tile_executor_bind_scalar(executor, 2, 0);
    tile_executor_bind_scalar(executor, 3, 1);
    tile_executor_bind_pointer(executor, 4, y, 0, 0, true);
    TileExecution result = tile_executor_run(executor, 0);
    cr_assert(result == TILE_EXECUTION_DONE, "%s", tile_executor_message(executor));
    tile_executor_destroy(executor);
}

static bool same_results(const Maker *m, const unsigned char *a, const unsigned char *b) {
    unsigned at = 0;
    for (unsigned t = 0; t < TYPE_COUNT; t++)
        for (int vector = 0; vector < 2; vector++) {
            unsigned bytes = tile_scalar_bytes(types[t]);
            for (unsigned lane = 0; lane < (vector ? m->lanes : 1); lane++) {
                uint64_t p = 0, q = 0;
                memcpy(&p, a + at + lane * bytes, bytes);
                memcpy(&q, b + at + lane * bytes, bytes);
                if (!tile_scalar_same(types[t], p, q)) return false;
            }
            at += vector ? 8 * m->lanes : 8;
        }
    return true;
}

static void check_random(unsigned lanes, uint64_t seed) {
    TileArena *arena = tile_arena_create(NULL);
    Maker *m = TILE_NEW(arena, Maker);
    *m = (Maker){.text = {.arena = arena}, .state = seed, .lanes = lanes};
    for (unsigned i = 0; i < FUNCTIONS; i++) add_function(m, i);
    for (const TileTarget *const *target = usable_targets(); *target; target++) {
        Compiled compiled = compile_text(tile_text_get(&m->text), *target);
        uint64_t state = seed;
        for (TileFunc *func = compiled.module->first; func; func = func->next) {
            unsigned char x[MEMORY], native[MEMORY] = {0}, reference[MEMORY] = {0};
            fill_input(x, &state);
            execute(func, x, reference);
            find_entry(&compiled, func->name)((uint64_t[]){SLOT(x), SLOT(native)}, 0, 1, NULL);
            if (same_results(m, native, reference)) continue;
            TileText text = {.arena = arena};
            tile_func_print(&text, func, 0);
            cr_assert_fail("%s, seed %lu:\n%s", (*target)->name, seed, tile_text_get(&text));
        }
        release_compiled(&compiled);
    }
    tile_arena_destroy(arena);
}

Test(random, lanes_4) { check_random(4, 1); }
Test(random, lanes_8) { check_random(8, 2); }
Test(random, lanes_16) { check_random(16, 3); }
Test(random, lanes_32) { check_random(32, 4); }
