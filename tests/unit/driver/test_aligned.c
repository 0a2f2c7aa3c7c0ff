/* Code without facts about strides and alignment checks them at run time: tensors that are contiguous and aligned to 16
 * bytes, or to 8, are accessed with vectors, others element by element under a mask, which the executor counts. */
#include "effects.h"

/* A matrix that begins `skip` elements after a multiple of 64 bytes. */
typedef struct View {
    int64_t skip, row, column; /* in elements */
    bool in_vectors;
} View;

static Program compile_limited(const char *text) {
    Program program = {0};
    TileReport *report = NULL;
    TileSettings settings = {.struct_size = sizeof settings, .variant_limit = 1};
    TileCompilerOptions limited = {.struct_size = sizeof limited, .settings = &settings};
    TileCompileOptions options = {.struct_size = sizeof options, .target = "sm_80", .flags = TILE_COMPILE_EMULATE};
    cr_assert_eq(tile_compiler_create(&limited, &program.compiler), TILE_OK);
    tile_status status = tile_compile(program.compiler, text, strlen(text), &options, &program.library, &report);
    cr_assert_eq(status, TILE_OK, "%s", report ? tile_report_text(report, false) : "");
    tile_report_destroy(report);
    cr_assert_eq(tile_library_kernel(program.library, NULL, &program.kernel), TILE_OK);
    return program;
}

static void view_of(Array *array, void *data, uint8_t code, uint8_t bits, const int64_t *shape, const View *view) {
    array_of(array, (char *)data + view->skip * bits / 8, code, bits, 2, shape);
    array->strides[0] = view->row;
    array->strides[1] = view->column;
}

/* The number of masked operations. */
static uint64_t launch_counted(const Program *program, const TileArg *args, size_t count) {
    TileMaskedCounts before = tile_library_masked(program->library);
    launch_with(program, args, count, NULL);
    TileMaskedCounts after = tile_library_masked(program->library);
    return after.lanes + after.data - before.lanes - before.data;
}

/* The first view uses up the limit of one special variant. */
Test(aligned, elements_or_vectors) {
    static const char text[] = "kernel k(x: in i16[M, N], y: out i16[M, N])\n    tune BM in {1}, BN in {1024}\n{\n"
                               "    grid (m, n) in (tiles(M, BM), tiles(N, BN)) { y[m, n] = x[m, n] + x[m, n] }\n}\n";
    enum { ROWS = 2, COLUMNS = 1024, ELEMENTS = ROWS * COLUMNS };
    static const View views[] = {{0, 4096, 2, false},    {0, COLUMNS, 1, true},     {1, COLUMNS, 1, false},
                                 {4, COLUMNS, 1, true},  {8, COLUMNS + 8, 1, true}, {0, COLUMNS + 1, 1, false},
                                 {2048, -1024, 1, true}, {0, COLUMNS + 4, 1, true}, {0, COLUMNS + 2, 1, false}};
    enum { VIEWS = sizeof views / sizeof *views };
    static const int64_t shape[] = {ROWS, COLUMNS};
    static _Alignas(64) int16_t x[8192], y[8192], wanted[8192];
    Program program = compile_limited(text);
    for (int i = 0; i < 8192; i++) x[i] = (int16_t)(7 * i);
    for (size_t i = 0; i < VIEWS; i++) {
        for (size_t j = 0; j < (i ? VIEWS : 1); j++) {
            Array arrays[2];
            view_of(&arrays[0], x, kDLInt, 16, shape, &views[i]);
            view_of(&arrays[1], y, kDLInt, 16, shape, &views[j]);
            for (int k = 0; k < 8192; k++) y[k] = wanted[k] = -1;
            for (int64_t m = 0; m < ROWS; m++)
                for (int64_t n = 0; n < COLUMNS; n++)
                    wanted[views[j].skip + m * views[j].row + n * views[j].column] =
                        (int16_t)(2 * x[views[i].skip + m * views[i].row + n * views[i].column]);
            TileArg args[] = {TILE_TENSOR(&arrays[0].dl), TILE_TENSOR(&arrays[1].dl)};
            uint64_t masked = launch_counted(&program, args, 2);
            cr_assert(memcmp(y, wanted, sizeof y) == 0, "views %zu and %zu", i, j);
            uint64_t expected = (views[i].in_vectors ? 0 : ELEMENTS) + (views[j].in_vectors ? 0 : ELEMENTS);
            cr_expect(!i || masked == expected, "views %zu and %zu: %llu under a mask, not %llu", i, j,
                      (unsigned long long)masked, (unsigned long long)expected);
        }
    }
    release_program(&program);
}

/* Operands of products, copied to shared memory in chunks of 16 bytes or element by element. */
Test(aligned, copies_of_products) {
    static const char text[] = "kernel k(a: in f16[M, K], b: in f16[K, N], c: out f32[M, N])\n"
                               "    tune BM in {32}, BN in {32}, BK in {32}, warps in {1}, stages in {2}\n{\n"
                               "    grid (m, n) in (tiles(M, BM), tiles(N, BN)) {\n"
                               "        var acc = zeros[BM, BN](f32)\n"
                               "        for k in tiles(K, BK) { acc = dot(a[m, k], b[k, n], acc) }\n"
                               "        c[m, n] = acc\n    }\n}\n";
    enum { SIZE = 64, ROOM = 2 * SIZE * SIZE };
    static const View views[] = {
        {0, 2 * SIZE, 2, false}, {0, SIZE, 1, true}, {1, SIZE, 1, false}, {0, SIZE + 1, 1, false}};
    static const uint16_t halves[] = {0x0000, 0x3c00, 0x4000, 0x4200}; /* 0, 1, 2, 3 */
    static const int64_t shape[] = {SIZE, SIZE};
    static _Alignas(64) uint16_t operand[ROOM];
    static _Alignas(64) float c[SIZE * SIZE];
    Program program = compile_limited(text);
    for (int i = 0; i < ROOM; i++) operand[i] = halves[(i * i / 5 + i) % 4];
    uint64_t least = 0;
    for (size_t v = 0; v < sizeof views / sizeof *views; v++) {
        const View *view = &views[v];
        Array arrays[3];
        view_of(&arrays[0], operand, kDLFloat, 16, shape, view);
        view_of(&arrays[1], operand, kDLFloat, 16, shape, view);
        view_of(&arrays[2], c, kDLFloat, 32, shape, &views[1]);
        TileArg args[] = {TILE_TENSOR(&arrays[0].dl), TILE_TENSOR(&arrays[1].dl), TILE_TENSOR(&arrays[2].dl)};
        uint64_t masked = launch_counted(&program, args, 3);
        for (int64_t m = 0; m < SIZE; m++)
            for (int64_t n = 0; n < SIZE; n++) {
                int sum = 0;
                for (int64_t k = 0; k < SIZE; k++) {
                    int64_t x = view->skip + m * view->row + k * view->column,
                            y = view->skip + k * view->row + n * view->column;
                    sum += (int)((x * x / 5 + x) % 4 * ((y * y / 5 + y) % 4));
                }
                cr_assert_float_eq(c[m * SIZE + n], (float)sum, 0, "view %zu", v);
            }
        if (view->in_vectors) least = masked;
        uint64_t copied = 2u * SIZE * SIZE * (SIZE / 32);
        cr_expect(v < 2 || masked >= least + copied, "view %zu: %llu under a mask, %llu in chunks", v,
                  (unsigned long long)masked, (unsigned long long)least);
    }
    release_program(&program);
}
