/* Products of warpgroups as PTX: the kernels of wgmma_kernels.h compile for sm_90a and fail with the reason for other
 * targets; ptxas, if installed, accepts the PTX without notes on how it had to serialise products; and a GPU, if there
 * is one that has them, gives the results of a reference in double precision. The emulator has to give them, too.
 *
 * usage: tile_wgmma_tests [all | NUMBER]: all kernels, where without a GPU some do; or the text and PTX of one */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lang/execute/execute.h"
#include "lang/ir/text.h"
#include "lang/ir/verify.h"
#include "lang/scalar/scalar.h"
#include "launch/cuda.h"
#include "mlir_bridge/bridge.h"
#include "ptx/target/target.h"
#include "tests/gpu/wgmma_kernels.h"
#include "tools/ptxas.h"

typedef struct Trial {
    TileArena *arena; /* of one case */
    TileBridge *bridge;
    unsigned cases, failures, assembled, ran;
} Trial;

static void fail(Trial *trial, const WgmmaCase *item, const char *where, const char *why) {
    printf("FAIL %s, %s: %s\n", wgmma_case_name(trial->arena, item), where, why);
    trial->failures++;
}

/* ---- cases ---- */

enum { MOST_CASES = 512, FLIGHT_COLUMNS = 96 };

typedef struct Cases {
    WgmmaCase items[MOST_CASES];
    unsigned count;
} Cases;

static const TileScalar pairs[][2] = {
    {TILE_F16, TILE_F16},       {TILE_BF16, TILE_BF16},     {TILE_F32, TILE_F32},       {TILE_F8E4M3, TILE_F8E4M3},
    {TILE_F8E4M3, TILE_F8E5M2}, {TILE_F8E5M2, TILE_F8E4M3}, {TILE_F8E5M2, TILE_F8E5M2}, {TILE_I8, TILE_I8},
    {TILE_I8, TILE_U8},         {TILE_U8, TILE_I8},         {TILE_U8, TILE_U8}};
static const unsigned columns[] = {8, 64, 96, 192, 256};
static const unsigned swizzles[] = {0, 32, 64, 128};

enum { PAIRS = sizeof pairs / sizeof *pairs, COLUMNS = sizeof columns / sizeof *columns, SWIZZLES = 4 };

static void add_case(Cases *cases, unsigned pair, unsigned n, WgmmaPlace a, WgmmaPlace b, bool registers) {
    cases->items[cases->count++] = (WgmmaCase){.types = {pairs[pair][0], pairs[pair][1]},
                                               .columns = n,
                                               .places = {a, b},
                                               .registers = registers,
                                               .flights = n <= FLIGHT_COLUMNS};
}

/* Every pair of types and number of columns, `a` in shared memory and in registers; every place of either operand of
 * 16 bits with every other's; the other types in every swizzle. */
static void make_cases(Cases *cases) {
    const WgmmaPlace usual = {128, false};
    for (unsigned pair = 0; pair < PAIRS; pair++)
        for (unsigned n = 0; n < COLUMNS; n++)
            for (unsigned registers = 0; registers < 2; registers++)
                add_case(cases, pair, columns[n], usual, usual, registers);
    for (unsigned a = 0; a < 2 * SWIZZLES; a++)
        for (unsigned b = 0; b < 2 * SWIZZLES; b++)
            add_case(cases, a % 2, columns[(a + b) % COLUMNS], (WgmmaPlace){swizzles[a / 2], a % 2},
                     (WgmmaPlace){swizzles[b / 2], b % 2}, false);
    for (unsigned place = 0; place < 2 * SWIZZLES; place++)
        for (unsigned n = 0; n < COLUMNS; n++) {
            WgmmaPlace other = {swizzles[place / 2], place % 2};
            add_case(cases, (place + n) % 2, columns[n], other, other, false);
            add_case(cases, (place + n + 1) % 2, columns[n], usual, other, true);
        }
    for (unsigned pair = 2; pair < PAIRS; pair++)
        for (unsigned s = 0; s + 1 < SWIZZLES; s++)
            add_case(cases, pair, 64, (WgmmaPlace){swizzles[s], false}, (WgmmaPlace){swizzles[(s + pair) % 3], false},
                     false);
}

/* ---- data and reference ---- */

enum { MOST_LENGTH = WGMMA_K_BYTES, MOST_SUMS = WGMMA_ROWS * WGMMA_MOST_COLUMNS };

typedef enum Kind { KIND_INTEGERS, KIND_NUMBERS, KINDS } Kind;

typedef struct Data {
    uint32_t a[WGMMA_ROWS * MOST_LENGTH], b[WGMMA_MOST_COLUMNS * MOST_LENGTH];
    double sums[MOST_SUMS], magnitudes[MOST_SUMS];
    unsigned char *image;
    uint32_t *out;
} Data;

/* SplitMix64. */
static uint32_t next(uint64_t *state) {
    uint64_t bits = *state += UINT64_C(0x9e3779b97f4a7c15);
    bits = (bits ^ bits >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ bits >> 27) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)(bits >> 32);
}

/* Integers of a few bits, whose sums are exact; or any bits of the type up to about 2^6 in magnitude. */
static uint32_t make_element(TileScalar scalar, Kind kind, uint64_t *state) {
    uint32_t random = next(state);
    if (kind == KIND_NUMBERS && tile_scalar_is_int(scalar)) return random & 0xff;
    double number = random % 5;
    if (kind == KIND_NUMBERS) number = (1 + (random >> 8 & 0xfffff) / 1048576.0) * (1 << (random & 7)) / 64;
    if (random >> 31 && scalar != TILE_U8) number = -number;
    return (uint32_t)tile_scalar_from_double(scalar, number);
}

static double value_of(TileScalar scalar, uint32_t bits) {
    uint64_t wide = tile_scalar_convert(scalar, TILE_F64, scalar == TILE_F32 ? bits & ~0x1fffu : bits);
    double number;
    memcpy(&number, &wide, sizeof number);
    return number;
}

static void make_data(const WgmmaCase *item, Kind kind, unsigned number, Data *data) {
    uint64_t state = (uint64_t)number << 32 | kind;
    unsigned length = wgmma_length(item);
    for (unsigned i = 0; i < WGMMA_ROWS * length; i++) data->a[i] = make_element(item->types[0], kind, &state);
    for (unsigned i = 0; i < item->columns * length; i++) data->b[i] = make_element(item->types[1], kind, &state);
    for (unsigned row = 0; row < WGMMA_ROWS; row++)
        for (unsigned column = 0; column < item->columns; column++) {
            double sum = 0, magnitude = 0;
            for (unsigned k = 0; k < length; k++) {
                double product = value_of(item->types[0], data->a[row * length + k]) *
                                 value_of(item->types[1], data->b[column * length + k]);
                sum += product;
                magnitude += product < 0 ? -product : product;
            }
            data->sums[row * item->columns + column] = sum;
            data->magnitudes[row * item->columns + column] = magnitude;
        }
    wgmma_make_image(item, data->a, data->b, data->image);
}

/* The greatest error, in parts of the sum of the magnitudes. */
static double measure(const WgmmaCase *item, const Data *data) {
    double most = 0;
    bool is_float = tile_scalar_is_float(item->types[0]);
    for (unsigned i = 0; i < WGMMA_ROWS * item->columns; i++) {
        float number;
        memcpy(&number, &data->out[i], sizeof number);
        double got = is_float ? number : (double)(int32_t)data->out[i], error = got - data->sums[i];
        error = (error < 0 ? -error : error) / (data->magnitudes[i] ? data->magnitudes[i] : 1);
        if (!(error <= most)) most = error;
    }
    return most;
}

/* ---- code ---- */

typedef struct Code {
    TileContext *context;
    TileModule *module;
    const char *ptx;
} Code;

static bool read_kernel(Trial *trial, const WgmmaCase *item, Code *code) {
    TileText errors = {.arena = trial->arena};
    const char *text = wgmma_kernel_text(trial->arena, item);
    code->context = tile_ir_context_create();
    if (code->context && tile_module_read(code->context, text, strlen(text), &code->module, &errors) == TILE_OK &&
        tile_module_verify(code->module, &errors))
        return true;
    fail(trial, item, "the reader", tile_text_get(&errors));
    return false;
}

/* NULL if the target has no such products, which the message has to say. */
static const char *emit(Trial *trial, const WgmmaCase *item, const Code *code, const TileTarget *target) {
    TileCode emitted = {0};
    const char *ptx = NULL;
    tile_status status = tile_bridge_emit(trial->bridge, code->module, target, NULL, TILE_CODE_ASSEMBLY, &emitted);
    const char *said = tile_bridge_message(trial->bridge);
    if (status == TILE_OK) ptx = tile_arena_string(trial->arena, emitted.data, emitted.size);
    bool right = target->has_wgmma ? status == TILE_OK
                                   : status == TILE_UNSUPPORTED && strstr(said, "sm_90a is the first that has");
    if (!right) fail(trial, item, target->name, *said ? said : "compiles");
    tile_code_release(&emitted);
    return ptx;
}

/* The assembler's remarks that products wait for one another, C7508 to C7519. */
static void assemble(Trial *trial, const WgmmaCase *item, const char *ptx) {
    TileAssembly assembly;
    TileText error = {.arena = trial->arena};
    tile_status status = tile_ptxas_run(trial->arena, ptx, false, &assembly, &error);
    if (status == TILE_NOT_FOUND) return;
    trial->assembled += status == TILE_OK;
    if (status != TILE_OK)
        fail(trial, item, "ptxas", tile_text_get(&error));
    else if (strstr(assembly.notes, "C75"))
        fail(trial, item, "ptxas", assembly.notes);
}

/* ---- results ---- */

static size_t sums_bytes(const WgmmaCase *item) { return (size_t)WGMMA_ROWS * item->columns * sizeof(uint32_t); }

/* By how much sums may differ from exact ones, in parts of their magnitude: log2. */
static int allowed(const WgmmaCase *item, Kind kind) {
    if (kind == KIND_INTEGERS || tile_scalar_is_int(item->types[0])) return -1000;
    return tile_scalar_bits(item->types[0]) == 8 ? -11 : -20;
}

static void compare(Trial *trial, const WgmmaCase *item, Kind kind, const Data *data, const char *where) {
    double error = measure(item, data), most = 1;
    int bits = allowed(item, kind);
    for (int i = 0; i > bits && i > -60; i--) most /= 2;
    if (bits < -60) most = 0;
    if (!(error <= most)) fail(trial, item, where, tile_arena_format(trial->arena, "differs by %g", error));
}

static void emulate(Trial *trial, const WgmmaCase *item, const Code *code, Kind kind, Data *data) {
    size_t image = wgmma_image_bytes(item), out = sums_bytes(item);
    TileExecutorArgument arguments[2] = {
        {.tensor = {.data = data->image, .above = image, .extent = {(int64_t)image / 4}, .stride = {4}}},
        {.tensor = {.data = data->out, .above = out, .extent = {(int64_t)out / 4}, .stride = {4}}}};
    TileText message = {.arena = trial->arena};
    TileExecutorOptions options = {.phases = true, .seed = kind};
    memset(data->out, 0xff, out);
    if (tile_execute_kernel(code->module->first, arguments, &options, &message) == TILE_EXECUTION_DONE)
        compare(trial, item, kind, data, "the emulator");
    else
        fail(trial, item, "the emulator", tile_text_get(&message));
}

/* ---- on a GPU ---- */

typedef struct Device {
    TileCudaScope scope;
    void *x, *y;
    TileError error;
} Device;

enum { DYNAMIC_SHARED_LIMIT = 8 }; /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */

static bool launch(Device *device, const WgmmaCase *item, const TileFunc *phase, const char *ptx, Data *data) {
    void *library, *kernel;
    int64_t words = (int64_t)wgmma_image_bytes(item) / 4, sums = WGMMA_ROWS * (int64_t)item->columns, stride = 4,
            begin = 0, end = 1;
    void *parameters[] = {&device->x, &words, &stride, &device->y, &sums, &stride, &begin, &end};
    char symbol[64];
    tile_bridge_symbol(phase, symbol, sizeof symbol);
    const TileCudaDriver *driver = tile_cuda_driver();
    int result = driver->library_load(&library, ptx, NULL, NULL, 0, NULL, NULL, 0);
    if (tile_cuda_check(result, phase->name, &device->error) != TILE_OK) return false;
    result = driver->library_kernel(&kernel, library, symbol);
    if (result == TILE_CUDA_SUCCESS)
        result = driver->kernel_set(DYNAMIC_SHARED_LIMIT, (int)phase->scratch_bytes, kernel, 0);
    if (result == TILE_CUDA_SUCCESS)
        result = driver->launch(kernel, 1, 1, 1, phase->threads, 1, 1, (unsigned)phase->scratch_bytes, NULL, parameters,
                                NULL);
    bool good = tile_cuda_check(result, phase->name, &device->error) == TILE_OK;
    if (good) good = tile_device_read(0, data->out, device->y, sums_bytes(item), &device->error) == TILE_OK;
    driver->library_unload(library);
    return good;
}

static void run(Trial *trial, Device *device, const WgmmaCase *item, Kind kind, const Code *code, Data *data) {
    size_t out = sums_bytes(item);
    memset(data->out, 0xff, out);
    if (tile_device_write(0, device->x, data->image, wgmma_image_bytes(item), &device->error) != TILE_OK ||
        tile_device_write(0, device->y, data->out, out, &device->error) != TILE_OK ||
        !launch(device, item, code->module->first->next, code->ptx, data))
        fail(trial, item, "the GPU", device->error.message);
    else
        compare(trial, item, kind, data, "the GPU");
    trial->ran++;
}

enum { MOST_IMAGE = 1 << 17 };

/* NULL: there is no GPU with such products. */
static Device *open_device(Device *device) {
    if (tile_cuda_why_not() || !tile_cuda_runs(0, 90, true)) return NULL;
    if (tile_cuda_enter(0, NULL, &device->scope, &device->error) != TILE_OK) return NULL;
    if (tile_device_allocate(0, MOST_IMAGE, &device->x, &device->error) == TILE_OK &&
        tile_device_allocate(0, MOST_SUMS * sizeof(uint32_t), &device->y, &device->error) == TILE_OK)
        return device;
    printf("the GPU is not used: %s\n", device->error.message);
    return NULL;
}

/* ---- all ---- */

static void try_case(Trial *trial, Device *device, const WgmmaCase *item, unsigned number, Data *data) {
    Code code = {0};
    unsigned count;
    const TilePtxTarget *targets = tile_ptx_targets(&count);
    if (read_kernel(trial, item, &code)) {
        for (unsigned i = 0; i < count; i++) {
            const char *ptx = emit(trial, item, &code, &targets[i].target);
            if (ptx) code.ptx = ptx;
        }
        if (code.ptx && !device) assemble(trial, item, code.ptx);
        for (unsigned kind = 0; kind < KINDS; kind++) {
            make_data(item, (Kind)kind, number, data);
            emulate(trial, item, &code, (Kind)kind, data);
            if (device && code.ptx) run(trial, device, item, (Kind)kind, &code, data);
        }
    }
    tile_ir_context_destroy(code.context);
    trial->cases++;
}

static void print_case(Trial *trial, const WgmmaCase *item) {
    Code code = {0};
    printf("// %s\n%s", wgmma_case_name(trial->arena, item), wgmma_kernel_text(trial->arena, item));
    if (!read_kernel(trial, item, &code)) return;
    const char *ptx = emit(trial, item, &code, &tile_ptx_target_find("sm_90a")->target);
    if (ptx) fputs(ptx, stdout);
    tile_ir_context_destroy(code.context);
}

/* Without a GPU one case in so many. */
enum { STRIDE = 7 };

int main(int count, char **arguments) {
    static Cases cases;
    Trial trial = {0};
    Data *data = malloc(sizeof *data);
    if (!data || tile_bridge_create(&trial.bridge) != TILE_OK) return 2;
    data->image = malloc(MOST_IMAGE);
    data->out = malloc(MOST_SUMS * sizeof *data->out);
    Device storage = {0}, *device = count == 1 ? open_device(&storage) : NULL;
    make_cases(&cases);
    const char *named = count > 1 ? arguments[1] : NULL;
    bool all = device || (named && strcmp(named, "all") == 0);
    for (unsigned i = 0; i < cases.count; i++) {
        if (named && !all && strtoul(named, NULL, 10) != i) continue;
        if (!named && !all && i % STRIDE) continue;
        trial.arena = tile_arena_create(NULL);
        if (named && !all)
            print_case(&trial, &cases.items[i]);
        else
            try_case(&trial, device, &cases.items[i], i, data);
        tile_arena_destroy(trial.arena);
    }
    printf("wgmma: %u of %u kernels, %u assembled, %u runs on a GPU, %u failures\n", trial.cases, cases.count,
           trial.assembled, trial.ran, trial.failures);
    tile_bridge_destroy(trial.bridge);
    return trial.failures != 0;
}
