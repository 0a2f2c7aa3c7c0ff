/* cpu-dot: after the pass, dot_block gives the same bits as before, for partial blocks and panels, with operands of any
 * stride and every type, and accesses only its operands and c. */
#include <string.h>

#include "lang/scalar/scalar.h"
#include "tests/unit/cpu/passing.h"

enum { GUARD = 64 }; /* bytes on both sides of c that must not change */

typedef struct Dot {
    TileScalar a, b, c;
    int64_t m, n, k, m_max, n_max, k_max;
    const char *precision;
    bool transposed_a, transposed_b; /* column-major instead of row-major */
    int64_t gap;                     /* elements between neighbours, of the operands */
    const char *instruction;         /* amx, vnni; NULL: fma */
} Dot;

/* The target, and the vector length in units of 128 bits, if it is scalable. */
typedef struct Machine {
    const char *target;
    unsigned vector_scale;
} Machine;

/* An array of `rows` by `columns`, with byte strides. */
typedef struct Array {
    char *data;
    uint64_t size;
    int64_t row, column;
} Array;

static Array make_array(TileArena *arena, int64_t rows, int64_t columns, TileScalar scalar, bool transposed,
                        int64_t gap) {
    int64_t size = tile_scalar_bytes(scalar) * (gap + 1);
    Array array = {.size = (uint64_t)(rows * columns * size), .row = columns * size, .column = size};
    if (transposed) array.row = size, array.column = rows * size;
    array.data = tile_arena_alloc(arena, array.size + 2 * GUARD);
    array.data += GUARD;
    return array;
}

/* Small numbers: products of random bits would mostly be infinite. */
static void fill_array(Array *array, TileScalar scalar, uint64_t *random) {
    unsigned size = tile_scalar_bytes(scalar);
    for (uint64_t at = 0; at < array->size; at += size) {
        double value = (double)(passing_random(random) % 4001) / 1000 - 2;
        uint64_t bits = tile_scalar_is_float(scalar) ? tile_scalar_from_double(scalar, value)
                                                     : passing_random(random) & tile_scalar_mask(scalar);
        memcpy(array->data + at, &bits, size);
    }
}

/* With `known`, unit strides are constants, as in code for contiguous tensors. */
static void write_dot(TileText *text, const Dot *dot, const Array *a, const Array *b, bool known) {
    tile_text_add(text, "func phase machine @d(%a: ptr<global>, %ar: i64, %ac: i64, %b: ptr<global>, %br: i64, %bc: "
                        "i64, %c: ptr<scratch>, %cr: i64, %m: i64, %n: i64, %k: i64) {\n"
                        "  %0 = const {value = 0} : i64\n");
    tile_text_format(text, "  %%sa = const {value = %u} : i64\n  %%sb = const {value = %u} : i64\n",
                     tile_scalar_bytes(dot->a), tile_scalar_bytes(dot->b));
    bool turned_a = a->row < a->column, turned_b = b->row < b->column;
    tile_text_format(text, "  dot_block %%a, %s, %s, %%b, %s, %s", known && turned_a ? "%sa" : "%ar",
                     known && !turned_a ? "%sa" : "%ac", known && turned_b ? "%sb" : "%br",
                     known && !turned_b ? "%sb" : "%bc");
    tile_text_format(text,
                     ", %%c, %%cr, %%m, %%n, %%k, %%0, %%0, %%0 "
                     "{types = [%s, %s, %s], extents = [%lld, %lld, %lld], precision = %s%s}\n  return\n}\n",
                     tile_scalar_name(dot->a), tile_scalar_name(dot->b), tile_scalar_name(dot->c),
                     (long long)dot->m_max, (long long)dot->n_max, (long long)dot->k_max, dot->precision,
                     dot->instruction ? tile_arena_format(text->arena, ", instruction = %s", dot->instruction) : "");
}

static void run_dot(const Passing *passing, unsigned vector_scale, const Dot *dot, const Array *a, const Array *b,
                    const Array *c) {
    TileExecutor *executor = passing_executor(passing, vector_scale);
    const Array *arrays[] = {a, b, c};
    const int64_t scalars[] = {a->row, a->column, b->row, b->column, c->row, dot->m, dot->n, dot->k};
    static const unsigned pointer_at[] = {0, 3, 6}, scalar_at[] = {1, 2, 4, 5, 7, 8, 9, 10};
    for (unsigned i = 0; i < 3; i++)
        tile_executor_bind_pointer(executor, pointer_at[i], arrays[i]->data, 0, arrays[i]->size, i == 2);
    for (unsigned i = 0; i < 8; i++) tile_executor_bind_scalar(executor, scalar_at[i], (uint64_t)scalars[i]);
    passing_execute(executor);
}

static void check_dot(const Dot *dot, const Machine *machine, bool known, uint64_t *random) {
    TileArena *arena = tile_arena_create(NULL);
    TileText text = {.arena = arena};
    Array a = make_array(arena, dot->m, dot->k, dot->a, dot->transposed_a, dot->gap);
    Array b = make_array(arena, dot->k, dot->n, dot->b, dot->transposed_b, dot->gap);
    write_dot(&text, dot, &a, &b, known);
    Array before = make_array(arena, dot->m, dot->n_max + 1, dot->c, false, 0), after = before;
    fill_array(&a, dot->a, random);
    fill_array(&b, dot->b, random);
    fill_array(&before, dot->c, random);
    after.data = (char *)tile_arena_copy(arena, before.data - GUARD, before.size + 2 * GUARD) + GUARD;
    Passing passing = passing_read(tile_text_get(&text));
    run_dot(&passing, machine->vector_scale, dot, &a, &b, &before);
    passing_run(&passing, "cpu-dot", tile_cpu_target_find(machine->target));
    run_dot(&passing, machine->vector_scale, dot, &a, &b, &after);
    cr_expect(memcmp(before.data - GUARD, after.data - GUARD, before.size + 2 * GUARD) == 0,
              "%s: %lld x %lld x %lld of %s, turned %d %d", machine->target, (long long)dot->m, (long long)dot->n,
              (long long)dot->k, tile_scalar_name(dot->a), dot->transposed_a, dot->transposed_b);
    passing_release(&passing);
    tile_arena_destroy(arena);
}

/* By AMX, and by words of vectors: strides that are known have no gap. */
static void check_words(Dot dot, const char *instruction) {
    const Machine machine = {strcmp(instruction, "amx") == 0 ? "amx" : "avx512bf16", 1};
    uint64_t random = 88172645463325252u;
    dot.instruction = instruction;
    for (int layouts = 0; layouts < 4; layouts++) {
        dot.transposed_a = layouts & 1;
        dot.transposed_b = layouts >> 1;
        for (dot.gap = 0; dot.gap < 2; dot.gap++)
            for (int known = 0; known + dot.gap < 2; known++) check_dot(&dot, &machine, known, &random);
    }
}

static void check_all(Dot dot) {
    static const Machine machines[] = {{"avx2", 1}, {"avx512", 1}, {"sve", 1}, {"sve", 4}};
    uint64_t random = 88172645463325252u;
    for (int layouts = 0; layouts < 4; layouts++) {
        dot.transposed_a = layouts & 1;
        dot.transposed_b = layouts >> 1;
        for (int known = 0; known < 2; known++)
            for (unsigned i = 0; i < sizeof machines / sizeof *machines; i++)
                check_dot(&dot, &machines[i], known, &random);
    }
}

Test(dot, whole_blocks) { check_all((Dot){TILE_F32, TILE_F32, TILE_F32, 28, 64, 16, 28, 64, 16, "ieee", 0, 0, 0, 0}); }
Test(dot, edges_of_every_size) { check_all((Dot){TILE_F32, TILE_F32, TILE_F32, 17, 41, 19, 28, 64, 33, "ieee", 0, 0, 0, 0}); }
Test(dot, one_element) { check_all((Dot){TILE_F32, TILE_F32, TILE_F32, 1, 1, 1, 14, 32, 16, "ieee", 0, 0, 0, 0}); }
Test(dot, one_row) { check_all((Dot){TILE_F32, TILE_F32, TILE_F32, 1, 70, 9, 1, 96, 16, "ieee", 0, 0, 0, 0}); }
Test(dot, one_column) { check_all((Dot){TILE_F32, TILE_F32, TILE_F32, 20, 1, 9, 32, 1, 16, "ieee", 0, 0, 0, 0}); }
Test(dot, nothing) {
    check_all((Dot){TILE_F32, TILE_F32, TILE_F32, 4, 5, 0, 14, 32, 16, "ieee", 0, 0, 0, 0});
    check_all((Dot){TILE_F32, TILE_F32, TILE_F32, 0, 5, 3, 14, 32, 16, "ieee", 0, 0, 0, 0});
}
Test(dot, deeper_than_a_panel) { check_all((Dot){TILE_F32, TILE_F32, TILE_F32, 3, 17, 530, 3, 17, 600, "ieee", 0, 0, 0, 0}); }
Test(dot, wider_than_a_panel) { check_all((Dot){TILE_F32, TILE_F32, TILE_F32, 2, 1100, 3, 2, 1200, 4, "ieee", 0, 0, 0, 0}); }
Test(dot, other_types) {
    check_all((Dot){TILE_F64, TILE_F64, TILE_F64, 15, 19, 20, 28, 64, 33, "ieee", 0, 0, 0, 0});
    check_all((Dot){TILE_BF16, TILE_BF16, TILE_F32, 15, 35, 18, 28, 64, 33, "ieee", 0, 0, 0, 0});
    check_all((Dot){TILE_F16, TILE_F16, TILE_F32, 15, 35, 18, 28, 64, 33, "ieee", 0, 0, 0, 0});
    check_all((Dot){TILE_I8, TILE_I8, TILE_I32, 15, 35, 18, 28, 64, 33, "ieee", 0, 0, 0, 0});
    check_all((Dot){TILE_U8, TILE_I8, TILE_I32, 15, 35, 18, 28, 64, 33, "ieee", 0, 0, 0, 0});
}
Test(dot, tf32) {
    check_all((Dot){TILE_F32, TILE_F32, TILE_F32, 15, 35, 18, 28, 64, 33, "tf32", 0, 0, 0, 0});
    check_all((Dot){TILE_F32, TILE_F32, TILE_F32, 15, 35, 18, 28, 64, 33, "tf32x3", 0, 0, 0, 0});
}

enum { AMX_TYPES = 5, VNNI_TYPES = 4 }; /* of those of AMX: both bytes unsigned have no instruction */
static const TileScalar amx_types[][3] = {{TILE_BF16, TILE_BF16, TILE_F32}, {TILE_I8, TILE_I8, TILE_I32},
                                          {TILE_U8, TILE_I8, TILE_I32},     {TILE_I8, TILE_U8, TILE_I32},
                                          {TILE_U8, TILE_U8, TILE_I32}};

/* `m` and so on: of the product; `m_max` and so on: of its tile. */
static void check_types(const char *instruction, int64_t m, int64_t n, int64_t k, int64_t m_max, int64_t n_max, int64_t k_max) {
    bool amx = strcmp(instruction, "amx") == 0;
    for (unsigned t = 0; t < (amx ? AMX_TYPES : VNNI_TYPES); t++)
        check_words((Dot){amx_types[t][0], amx_types[t][1], amx_types[t][2], m, n, k, m_max, n_max, k_max, "ieee", 0, 0, 0, 0},
                    instruction);
}

/* One element, none, and more than a panel has. */
static void check_extremes(const char *instruction) {
    check_types(instruction, 1, 1, 1, 32, 32, 32);
    check_types(instruction, 4, 5, 0, 32, 32, 32);
    check_types(instruction, 0, 5, 3, 32, 32, 32);
    check_types(instruction, 3, 17, 1100, 16, 32, 1200);
    check_types(instruction, 2, 1100, 3, 16, 1200, 32);
}

Test(dot_amx, whole_blocks) { check_types("amx", 64, 64, 64, 64, 64, 64); }
Test(dot_amx, edges_of_every_size) { check_types("amx", 37, 43, 71, 112, 96, 128); }
Test(dot_amx, half_blocks) { check_types("amx", 48, 48, 96, 48, 48, 96); }
Test(dot_amx, single_tiles) { check_types("amx", 9, 13, 5, 16, 16, 32); }
Test(dot_amx, extremes) { check_extremes("amx"); }

Test(dot_vnni, whole_blocks) { check_types("vnni", 56, 64, 64, 56, 64, 64); }
Test(dot_vnni, edges_of_every_size) { check_types("vnni", 37, 43, 71, 112, 96, 128); }
Test(dot_vnni, narrow_blocks) { check_types("vnni", 48, 48, 96, 48, 48, 96); }
Test(dot_vnni, few_rows) { check_types("vnni", 3, 37, 65, 5, 40, 70); }
Test(dot_vnni, extremes) { check_extremes("vnni"); }

/* Extents, types and layouts by lot. */
static void check_random_products(const char *machine, const char *instruction, unsigned type_count) {
    uint64_t random = 2463534242u;
    for (int round = 0; round < 24; round++) {
        const TileScalar *types = amx_types[passing_random(&random) % type_count];
        int64_t size[3], most[3];
        for (int i = 0; i < 3; i++) {
            most[i] = 1 + (int64_t)(passing_random(&random) % (i == 2 ? 600 : 100));
            size[i] = (int64_t)(passing_random(&random) % (uint64_t)(most[i] + 1));
        }
        Dot dot = {types[0], types[1], types[2], size[0], size[1], size[2], most[0], most[1], most[2], "ieee",
                   passing_random(&random) % 2, passing_random(&random) % 2, (int64_t)(passing_random(&random) % 3), instruction};
        check_dot(&dot, &(Machine){machine, 1}, !dot.gap && passing_random(&random) % 2, &random);
    }
}

Test(dot_amx, random_products) { check_random_products("amx", "amx", AMX_TYPES); }
Test(dot_vnni, random_products) { check_random_products("avx512bf16", "vnni", VNNI_TYPES); }
