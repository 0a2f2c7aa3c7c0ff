/* The executor's warp instructions compared with a GPU's results for the same inputs: tests/gpu/vectors.txt. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "lang/execute/execute.h"
#include "lang/ir/text.h"
#include "lang/ir/verify.h"
#include "tests/gpu/vectors.h"

enum { LINE_BYTES = 1 << 14 };

/* One block with one warp. %in and %out are the lane's words of x. */
static const char head[] =
    "func kernel tile @k(%%x: tensor<i32, 1, inout>) {\n  %%n = const {value = 1} : i64\n"
    "  grid %%n (%%i: i64) {\n    yield\n  }\n  return\n}\n"
    "func phase machine @k.0(%%x: ptr<global>, %%x.dim0: i64, %%x.stride0: i64, %%begin: i64, %%end: i64, "
    "%%shared: ptr<shared>) kernel = @k phase = 0 threads = 32 scratch_bytes = 512 {\n"
    "  %%thread = thread : i32\n  %%t = convert %%thread : i64\n  %%row = const {value = 48} : i64\n"
    "  %%o = mul %%t, %%row : i64\n  %%in = ptr_add %%x, %%o : ptr<global>\n"
    "  %%rows = const {value = 1536} : i64\n  %%out = ptr_add %%in, %%rows : ptr<global>\n"
    "%s  store %%r, %%out\n  return\n}\n";

/* Fragments in the order of a lane's words. */
#define PRODUCT(a, b, c, attributes)                                                                                   \
    "  %a = load %in : " a "\n  %n16 = const {value = 16} : i64\n  %pb = ptr_add %in, %n16 : ptr<global>\n"            \
    "  %b = load %pb : " b "\n  %n24 = const {value = 24} : i64\n  %pc = ptr_add %in, %n24 : ptr<global>\n"            \
    "  %c = load %pc : " c "\n  %r = mma %a, %b, %c " attributes ": " c "\n"
/* Each lane stores 16 bytes to shared memory, and gives the address of a row. */
#define MATRICES(type, attributes)                                                                                     \
    "  %v = load %in : vec<4 x i32>\n  %n16 = const {value = 16} : i64\n  %own = mul %t, %n16 : i64\n"                 \
    "  %place = ptr_add %shared, %own : ptr<shared>\n  store %v, %place\n  barrier\n"                                  \
    "  %pm = ptr_add %in, %n16 : ptr<global>\n  %m = load %pm : i32\n  %m64 = convert %m : i64\n"                      \
    "  %named = mul %m64, %n16 : i64\n  %address = ptr_add %shared, %named : ptr<shared>\n"                            \
    "  %r = load_matrix %address " attributes ": " type "\n"
/* Each lane gives the address of a row, and then loads its own 16 bytes. */
#define STORED_MATRICES(type, attributes)                                                                              \
    "  %v = load %in : " type "\n  %n16 = const {value = 16} : i64\n  %pm = ptr_add %in, %n16 : ptr<global>\n"         \
    "  %m = load %pm : i32\n  %m64 = convert %m : i64\n  %named = mul %m64, %n16 : i64\n"                              \
    "  %address = ptr_add %shared, %named : ptr<shared>\n  store_matrix %v, %address " attributes "\n  barrier\n"      \
    "  %own = mul %t, %n16 : i64\n  %place = ptr_add %shared, %own : ptr<shared>\n"                                    \
    "  %r = load %place : vec<4 x i32>\n"

#define LANES_OF_TWO(op)                                                                                               \
    "  %x0 = load %in : f32\n  %four = const {value = 4} : i64\n  %p = ptr_add %in, %four : ptr<global>\n"             \
    "  %x1 = load %p : f32\n  %r = " op " %x0, %x1 : f32\n"

/* The machine form of an instruction; for some, several ops. */
static const struct {
    const char *name, *body;
} forms[] = {
    {"shfl.bfly.b32", "  %v = load %in : i32\n  %four = const {value = 4} : i64\n"
                      "  %p = ptr_add %in, %four : ptr<global>\n  %m = load %p : i32\n  %r = exchange %v, %m : i32\n"},
    {"mma.m16n8k16.f16", PRODUCT("vec<8 x f16>", "vec<4 x f16>", "vec<4 x f32>", "")},
    {"mma.m16n8k16.bf16", PRODUCT("vec<8 x bf16>", "vec<4 x bf16>", "vec<4 x f32>", "")},
    {"mma.m16n8k8.tf32", PRODUCT("vec<4 x f32>", "vec<2 x f32>", "vec<4 x f32>", "{precision = tf32} ")},
    {"mma.m16n8k32.s8", PRODUCT("vec<16 x i8>", "vec<8 x i8>", "vec<4 x i32>", "")},
    {"mma.m16n8k32.e4m3", PRODUCT("vec<16 x f8e4m3>", "vec<8 x f8e4m3>", "vec<4 x f32>", "")},
    {"mma.m16n8k32.e5m2", PRODUCT("vec<16 x f8e5m2>", "vec<8 x f8e5m2>", "vec<4 x f32>", "")},
    {"ldmatrix.x4", MATRICES("vec<4 x i32>", "")},
    {"ldmatrix.x4.trans", MATRICES("vec<8 x i16>", "{transposed = 1} ")},
    {"ldmatrix.x4.trans", MATRICES("vec<16 x i8>", "{transposed = 1} ")},
    {"stmatrix.x4", STORED_MATRICES("vec<4 x i32>", "")},
    {"stmatrix.x4.trans", STORED_MATRICES("vec<8 x i16>", "{transposed = 1}")},
    {"stmatrix.x4.trans", STORED_MATRICES("vec<16 x i8>", "{transposed = 1}")},
    {"min.NaN.f32", LANES_OF_TWO("minimum")},
    {"max.NaN.f32", LANES_OF_TWO("maximum")},
    {"ex2.approx.ftz.f32", "  %x0 = load %in : f32\n  %r = ex2_approx %x0 : f32\n"},
    {"rcp.approx.ftz.f32", "  %x0 = load %in : f32\n  %r = rcp_approx %x0 : f32\n"},
    {"cvt.rn.tf32.f32", "  %x0 = load %in : f32\n  %r = round_tf32 %x0 : f32\n"},
    {"cvt.rna.tf32.f32", "  %x0 = load %in : f32\n  %r = round_tf32_away %x0 : f32\n"},
};

/* No op has the semantics of these. */
static const char *const without[] = {"shfl.idx.b32", "shfl.up.b32", "shfl.down.b32", "mma.m16n8k8.f16",
                                      "mma.m16n8k8.bf16"};

static bool is_without(const char *name) {
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        if (strcmp(without[i], name) == 0) return true;
    return false;
}

/* Input words, then output words, as in the kernel. */
typedef struct Words {
    uint32_t in[VECTOR_LANES][VECTOR_MOST_WORDS], out[VECTOR_LANES][VECTOR_MOST_WORDS];
} Words;

static void execute(const char *body, Words *words) {
    TileArena *arena = tile_arena_create(NULL);
    TileContext *context = tile_ir_context_create();
    TileText message = {.arena = arena};
    TileModule *module = NULL;
    char *text = tile_arena_format(arena, head, body);
    cr_assert_eq(tile_module_read(context, text, strlen(text), &module, &message), TILE_OK, "%s",
                 tile_text_get(&message));
    cr_assert(tile_module_verify(module, &message), "%s", tile_text_get(&message));
    TileExecutorArgument argument = {
        .tensor = {.data = words, .above = sizeof *words, .extent = {sizeof *words / 4}, .stride = {4}}};
    TileExecutorOptions options = {.phases = true};
    TileFunc *kernel = tile_func_find(module, tile_intern_string(context->strings, "k"));
    cr_assert_eq(tile_execute_kernel(kernel, &argument, &options, &message), TILE_EXECUTION_DONE, "%s",
                 tile_text_get(&message));
    tile_module_destroy(module);
    tile_ir_context_destroy(context);
    tile_arena_destroy(arena);
}

static const VectorCase *find_case(const char *name) {
    for (unsigned i = 0; i < vector_case_count; i++)
        if (strcmp(vector_cases[i].name, name) == 0) return &vector_cases[i];
    return NULL;
}

/* ---- comparing ---- */

static float as_float(uint32_t word) {
    float number;
    memcpy(&number, &word, sizeof number);
    return number;
}

/* Sums of floating point products: a tensor core adds in its own order, and truncates. `magnitude` is the sum of the
 * magnitudes. */
static bool is_near(uint32_t word, uint32_t wanted, uint32_t magnitude) {
    float a = as_float(word), b = as_float(wanted), most = as_float(magnitude);
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
    if (word == wanted || !isfinite(most)) return true; /* if sums may overflow, the order matters */
    return fabsf(a - b) <= ldexpf(most, -20);
}

/* The same without signs. */
static void execute_magnitudes(const char *body, const Words *words, VectorType type, Words *magnitudes) {
    bool bytes = type == VECTOR_E4M3 || type == VECTOR_E5M2;
    uint32_t signs = type == VECTOR_TF32 ? 0x7fffffff : bytes ? 0x7f7f7f7f : 0x7fff7fff;
    unsigned operands = 6;
    *magnitudes = *words;
    for (unsigned lane = 0; lane < VECTOR_LANES; lane++)
        for (unsigned i = 0; i < VECTOR_MOST_WORDS; i++) magnitudes->in[lane][i] &= i < operands ? signs : 0x7fffffff;
    execute(body, magnitudes);
}

static bool is_float(VectorType type) { return type != VECTOR_B32 && type != VECTOR_S8; }

/* A line of the file. */
typedef struct Line {
    const VectorCase *item;
    VectorData data;
    unsigned number;
    const char *words;
} Line;

/* The error in ulp that the op's row in lang/ir/ops.def allows. */
static unsigned units_of(const char *name) {
    return strcmp(name, "ex2.approx.ftz.f32") == 0 ? 2 : strcmp(name, "rcp.approx.ftz.f32") == 0 ? 1 : 0;
}

/* Zeros, infinities and signs are exact, whatever the ulp; all NaNs are equal. */
static bool is_within(uint32_t word, uint32_t wanted, unsigned units) {
    float a = as_float(word), b = as_float(wanted);
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
    if (!isnormal(a) || !isnormal(b) || signbit(a) != signbit(b)) return word == wanted;
    return (word > wanted ? word - wanted : wanted - word) <= units;
}

/* Arithmetic on the words of one lane. */
static void compare_lanes(const Line *line, const char *body) {
    Words words = {0};
    unsigned units = units_of(line->item->name);
    vector_make(line->item, line->data, line->number, words.in);
    execute(body, &words);
    char *at = (char *)line->words;
    for (unsigned lane = 0; lane < VECTOR_LANES; lane++) {
        uint32_t expected = (uint32_t)strtoul(at, &at, 16), got = words.out[lane][0];
        cr_expect(is_within(got, expected, units), "%s of %x, %x: %x, and on the GPU %x", line->item->name,
                  words.in[lane][0], words.in[lane][1], got, expected);
    }
}

static Line read_line(const char *text) {
    static const char *const data_names[] = {"bits", "integers", "numbers", "specials"};
    char name[64], data_name[16];
    unsigned data = 0;
    int length;
    Line line;
    cr_assert_eq(sscanf(text, "%63s %15s %u%n", name, data_name, &line.number, &length), 3);
    line.item = find_case(name);
    cr_assert(line.item != NULL, "%s", name);
    while (strcmp(data_names[data], data_name) != 0) data++;
    line.data = (VectorData)data;
    line.words = text + length;
    return line;
}

static void compare_form(const Line *line, const char *body) {
    Words words = {0}, magnitudes;
    vector_make(line->item, line->data, line->number, words.in);
    bool near = is_float(line->item->type) && line->data != VECTOR_INTEGERS;
    if (near) execute_magnitudes(body, &words, line->item->type, &magnitudes);
    execute(body, &words);
    char *at = (char *)line->words;
    for (unsigned lane = 0; lane < VECTOR_LANES; lane++)
        for (unsigned i = 0; i < line->item->out; i++) {
            uint32_t expected = (uint32_t)strtoul(at, &at, 16), got = words.out[lane][i];
            cr_expect(near ? is_near(got, expected, magnitudes.out[lane][i]) : got == expected,
                      "%s %u: lane %u has %x, and on the GPU %x", line->item->name, line->number, lane, got, expected);
        }
}

static void compare(const char *text) {
    Line line = read_line(text);
    bool known = is_without(line.item->name);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (strcmp(forms[i].name, line.item->name) != 0) continue;
        known = true;
        /* Code rounds to tf32 first; for operands with more bits the instruction's result is unspecified. */
        if (line.item->type == VECTOR_F32)
            compare_lanes(&line, forms[i].body);
        else if (line.item->type != VECTOR_TF32 || line.data != VECTOR_BITS)
            compare_form(&line, forms[i].body);
    }
    cr_assert(known, "%s is no instruction of the executor's, nor known to be none", line.item->name);
}

Test(vectors, are_what_a_gpu_makes) {
    const char *folder = getenv("TILE_SOURCE_DIR");
    cr_assert(folder != NULL, "TILE_SOURCE_DIR names the source tree");
    char path[4096], *line = malloc(LINE_BYTES);
    snprintf(path, sizeof path, "%s/tests/gpu/vectors.txt", folder);
    FILE *file = fopen(path, "r");
    cr_assert(file != NULL, "%s", path);
    unsigned count = 0;
    for (; fgets(line, LINE_BYTES, file); count++) compare(line);
    fclose(file);
    free(line);
    cr_expect(count > 100, "%u vectors", count);
}
