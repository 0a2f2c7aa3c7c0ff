/* Products of warpgroups as PTX: the kernels of wgmma_kernels.h and wgmma_roles.h compile for sm_90a and fail with the
 * reason for other targets; ptxas, if installed, accepts the PTX and has nothing to say about products that wait for
 * one another; and a GPU, if there is one that has them, gives the results of a reference in double precision. The
 * emulator has to give them, too; what it reports is tested by tests/unit/lang/test_execute_wgmma.c.
 *
 * usage: tile_wgmma_tests [all | NUMBER | record FILE [I N]]: all kernels, of which some are left out where there is no
 * GPU; or the text and the PTX of one; or what the GPU makes of single steps, to FILE, of every N-th kernel from I on
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lang/execute/execute.h"
#include "lang/ir/text.h"
#include "lang/ir/verify.h"
#include "launch/cuda.h"
#include "mlir_bridge/bridge.h"
#include "ptx/target/target.h"
#include "tests/gpu/wgmma_data.h"
#include "tools/ptxas.h"

/* ---- cases ---- */

enum { MOST_CASES = 512, FLIGHT_COLUMNS = 96 };

typedef struct Cases {
    WgmmaCase items[MOST_CASES];
    unsigned count;
} Cases;

static const unsigned columns[] = {8, 64, 96, 192, 256};
static const unsigned swizzles[] = {0, 32, 64, 128};

enum { COLUMNS = sizeof columns / sizeof *columns, SWIZZLES = 4 };

static void add_case(Cases *cases, unsigned pair, unsigned n, WgmmaPlace a, WgmmaPlace b, bool registers) {
    cases->items[cases->count++] = (WgmmaCase){.types = {wgmma_pairs[pair][0], wgmma_pairs[pair][1]},
                                               .columns = n,
                                               .places = {a, b},
                                               .registers = registers,
                                               .flights = n <= FLIGHT_COLUMNS};
}

/* A single step of every pair of types; every pair and number of columns, `a` in shared memory and in registers; every
 * place of either operand of 16 bits with every other's; the other types in every swizzle. */
static void make_cases(Cases *cases) {
    const WgmmaPlace usual = {128, false};
    for (unsigned pair = 0; pair < WGMMA_PAIRS; pair++)
        for (unsigned registers = 0; registers < 2; registers++)
            cases->items[cases->count++] = wgmma_single(pair, registers);
    for (unsigned pair = 0; pair < WGMMA_PAIRS; pair++)
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
    for (unsigned pair = 2; pair < WGMMA_PAIRS; pair++)
        for (unsigned s = 0; s + 1 < SWIZZLES; s++)
            add_case(cases, pair, 64, (WgmmaPlace){swizzles[s], false}, (WgmmaPlace){swizzles[(s + pair) % 3], false},
                     false);
}

/* ---- kernels ---- */

typedef struct Trial {
    TileArena *arena; /* of one kernel */
    TileBridge *bridge;
    Cases cases;
    unsigned number; /* of the kernel: those with roles stand behind the others */
    unsigned tried, failures, assembled, ran;
    FILE *recorded; /* or NULL */
    uint32_t emulated[WGMMA_MOST_SUMS];
    double most[TILE_SCALAR_COUNT]; /* the greatest differences, by the type of `a` */
    WgmmaData data;
} Trial;

static const WgmmaCase *case_of(const Trial *trial) {
    return trial->number < trial->cases.count ? &trial->cases.items[trial->number] : NULL;
}

static WgmmaRoles roles_of(const Trial *trial) { return (WgmmaRoles)(trial->number - trial->cases.count); }

static const char *name_of(const Trial *trial) {
    const WgmmaCase *item = case_of(trial);
    if (item) return wgmma_case_name(trial->arena, item);
    return roles_of(trial) == WGMMA_RING ? "ring" : "chain";
}

static const char *text_of(const Trial *trial) {
    const WgmmaCase *item = case_of(trial);
    return item ? wgmma_kernel_text(trial->arena, item) : wgmma_roles_text(trial->arena, roles_of(trial));
}

static void make_data(Trial *trial, WgmmaKind kind) {
    const WgmmaCase *item = case_of(trial);
    if (item)
        wgmma_make_data(item, kind, trial->number, &trial->data);
    else
        wgmma_make_roles_data(roles_of(trial), kind, &trial->data);
    memset(trial->data.out, 0xff, sizeof trial->data.out);
}

static unsigned kinds_of(const Trial *trial) {
    const WgmmaCase *item = case_of(trial);
    return item && item->single ? WGMMA_RECORDED : WGMMA_KINDS;
}

static void fail(Trial *trial, const char *where, const char *why) {
    printf("FAIL %u, %s, %s: %s\n", trial->number, name_of(trial), where, why);
    trial->failures++;
}

/* ---- code ---- */

typedef struct Code {
    TileContext *context;
    TileModule *module;
    const char *ptx;
} Code;

static bool read_kernel(Trial *trial, Code *code) {
    TileText errors = {.arena = trial->arena};
    const char *text = text_of(trial);
    code->context = tile_ir_context_create();
    if (code->context && tile_module_read(code->context, text, strlen(text), &code->module, &errors) == TILE_OK &&
        tile_module_verify(code->module, &errors))
        return true;
    fail(trial, "the reader", tile_text_get(&errors));
    return false;
}

/* NULL if the target has no such products, which the message has to say. */
static const char *emit(Trial *trial, const Code *code, const TileTarget *target) {
    TileCode emitted = {0};
    const char *ptx = NULL;
    tile_status status = tile_bridge_emit(trial->bridge, code->module, target, NULL, TILE_CODE_ASSEMBLY, &emitted);
    const char *said = tile_bridge_message(trial->bridge);
    if (status == TILE_OK) ptx = tile_arena_string(trial->arena, emitted.data, emitted.size);
    bool right = target->has_wgmma ? status == TILE_OK
                                   : status == TILE_UNSUPPORTED && strstr(said, "sm_90a is the first that has");
    if (!right) fail(trial, target->name, *said ? said : "compiles");
    tile_code_release(&emitted);
    return ptx;
}

/* The assembler's remarks that products wait for one another, C7508 to C7519. */
static void assemble(Trial *trial, const char *ptx) {
    TileAssembly assembly;
    TileText error = {.arena = trial->arena};
    tile_status status = tile_ptxas_run(trial->arena, ptx, false, &assembly, &error);
    if (status == TILE_NOT_FOUND) return;
    trial->assembled += status == TILE_OK;
    if (status != TILE_OK)
        fail(trial, "ptxas", tile_text_get(&error));
    else if (strstr(assembly.notes, "C75"))
        fail(trial, "ptxas", assembly.notes);
}

/* ---- results ---- */

static void compare(Trial *trial, WgmmaKind kind, const char *where) {
    if (kind >= WGMMA_KINDS) return;
    const WgmmaCase *item = case_of(trial);
    double error = wgmma_measure(&trial->data);
    if (item && error > trial->most[item->types[0]]) trial->most[item->types[0]] = error;
    if (!(error <= trial->data.most)) fail(trial, where, tile_arena_format(trial->arena, "differs by %g", error));
}

static size_t sums_bytes(const Trial *trial) { return trial->data.count * sizeof *trial->data.out; }

static void emulate(Trial *trial, const Code *code, WgmmaKind kind) {
    WgmmaData *data = &trial->data;
    make_data(trial, kind);
    TileExecutorTensor x = {
        .data = data->image, .above = data->image_bytes, .extent = {(int64_t)data->image_bytes / 4}, .stride = {4}};
    TileExecutorTensor y = {.data = data->out, .above = sums_bytes(trial), .extent = {data->count}, .stride = {4}};
    TileExecutorArgument arguments[2] = {{.tensor = x}, {.tensor = y}};
    TileText message = {.arena = trial->arena};
    TileExecutorOptions options = {.phases = true, .seed = kind};
    if (tile_execute_kernel(code->module->first, arguments, &options, &message) == TILE_EXECUTION_DONE)
        compare(trial, kind, "the emulator");
    else
        fail(trial, "the emulator", tile_text_get(&message));
    memcpy(trial->emulated, data->out, sums_bytes(trial));
}

/* ---- on a GPU ---- */

enum { DYNAMIC_SHARED_LIMIT = 8 }; /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */

typedef struct Device {
    TileCudaScope scope;
    void *x, *y, *library, *kernel;
    TileError error;
} Device;

static bool load(Device *device, const TileFunc *phase, const char *ptx) {
    char symbol[64];
    tile_bridge_symbol(phase, symbol, sizeof symbol);
    const TileCudaDriver *driver = tile_cuda_driver();
    int result = driver->library_load(&device->library, ptx, NULL, NULL, 0, NULL, NULL, 0);
    if (tile_cuda_check(result, phase->name, &device->error) != TILE_OK) return false;
    result = driver->library_kernel(&device->kernel, device->library, symbol);
    if (result == TILE_CUDA_SUCCESS)
        result = driver->kernel_set(DYNAMIC_SHARED_LIMIT, (int)phase->scratch_bytes, device->kernel, 0);
    return tile_cuda_check(result, phase->name, &device->error) == TILE_OK;
}

static bool launch(Trial *trial, Device *device, const TileFunc *phase) {
    WgmmaData *data = &trial->data;
    int64_t words = (int64_t)data->image_bytes / 4, sums = data->count, stride = 4, begin = 0, end = 1;
    void *parameters[] = {&device->x, &words, &stride, &device->y, &sums, &stride, &begin, &end};
    if (tile_device_write(0, device->x, data->image, data->image_bytes, &device->error) != TILE_OK ||
        tile_device_write(0, device->y, data->out, sums_bytes(trial), &device->error) != TILE_OK)
        return false;
    int result = tile_cuda_driver()->launch(device->kernel, 1, 1, 1, phase->threads, 1, 1,
                                            (unsigned)phase->scratch_bytes, NULL, parameters, NULL);
    return tile_cuda_check(result, phase->name, &device->error) == TILE_OK &&
           tile_device_read(0, data->out, device->y, sums_bytes(trial), &device->error) == TILE_OK;
}

/* Sums of single steps of floats, for the tests of the emulator: the pair of types, the kind of data, and all sums. */
static void record(Trial *trial, WgmmaKind kind) {
    const WgmmaCase *item = case_of(trial);
    if (!trial->recorded || !item || !item->single || item->registers || !trial->data.is_float || kind < WGMMA_WIDE)
        return;
    fprintf(trial->recorded, "%u %u", trial->number / 2, kind);
    for (unsigned i = 0; i < trial->data.count; i++) fprintf(trial->recorded, " %x", trial->data.out[i]);
    fprintf(trial->recorded, "\n");
}

/* The emulator has every bit of a sum, but that it has one NaN only. */
static void compare_emulated(Trial *trial, WgmmaKind kind) {
    const WgmmaData *data = &trial->data;
    unsigned wrong = 0, first = 0;
    for (unsigned i = data->count; i-- > 0;) {
        uint32_t a = trial->emulated[i], b = data->out[i];
        bool nan = data->is_float && (a & 0x7fffffff) > 0x7f800000 && (b & 0x7fffffff) > 0x7f800000;
        if (a == b || nan) continue;
        wrong++;
        first = i;
    }
    if (wrong)
        fail(trial, "the GPU and the emulator",
             tile_arena_format(trial->arena, "%u of %u sums of kind %u differ, the first, %u, is %#x and %#x", wrong,
                               data->count, kind, first, data->out[first], trial->emulated[first]));
}

static void run(Trial *trial, Device *device, const Code *code) {
    const TileFunc *phase = code->module->first->next;
    bool good = load(device, phase, code->ptx);
    for (unsigned kind = 0; kind < kinds_of(trial) && good; kind++, trial->ran++) {
        emulate(trial, code, (WgmmaKind)kind);
        make_data(trial, (WgmmaKind)kind);
        good = launch(trial, device, phase);
        if (good) compare(trial, (WgmmaKind)kind, "the GPU");
        if (good) compare_emulated(trial, (WgmmaKind)kind);
        if (good) record(trial, (WgmmaKind)kind);
    }
    if (!good) fail(trial, "the GPU", device->error.message);
    if (device->library) tile_cuda_driver()->library_unload(device->library);
    device->library = NULL;
}

/* NULL: there is no GPU with such products. */
static Device *open_device(Device *device) {
    if (tile_cuda_why_not() || !tile_cuda_runs(0, 90, true)) return NULL;
    if (tile_cuda_enter(0, NULL, &device->scope, &device->error) != TILE_OK) return NULL;
    if (tile_device_allocate(0, WGMMA_MOST_IMAGE, &device->x, &device->error) == TILE_OK &&
        tile_device_allocate(0, WGMMA_MOST_SUMS * sizeof(uint32_t), &device->y, &device->error) == TILE_OK)
        return device;
    printf("the GPU is not used: %s\n", device->error.message);
    return NULL;
}

/* ---- all ---- */

static void try_kernel(Trial *trial, Device *device) {
    Code code = {0};
    unsigned count;
    const TilePtxTarget *targets = tile_ptx_targets(&count);
    trial->tried++;
    if (read_kernel(trial, &code)) {
        for (unsigned i = 0; i < count; i++) {
            const char *ptx = emit(trial, &code, &targets[i].target);
            if (ptx) code.ptx = ptx;
        }
        if (code.ptx && !device) assemble(trial, code.ptx);
        if (code.ptx && device) run(trial, device, &code);
        for (unsigned kind = 0; kind < kinds_of(trial) && !device; kind++) emulate(trial, &code, (WgmmaKind)kind);
    }
    tile_ir_context_destroy(code.context);
}

static void print_kernel(Trial *trial) {
    Code code = {0};
    printf("// %s\n%s", name_of(trial), text_of(trial));
    if (!read_kernel(trial, &code)) return;
    const char *ptx = emit(trial, &code, &tile_ptx_target_find("sm_90a")->target);
    if (ptx) fputs(ptx, stdout);
    tile_ir_context_destroy(code.context);
}

/* Without a GPU one kernel in so many; those with roles always. */
enum { STRIDE = 7 };

int main(int count, char **arguments) {
    Trial *trial = calloc(1, sizeof *trial);
    if (!trial || tile_bridge_create(&trial->bridge) != TILE_OK) return 2;
    const char *named = count > 1 ? arguments[1] : NULL;
    bool records = count >= 3 && strcmp(named, "record") == 0, all = records || (named && strcmp(named, "all") == 0);
    if (records) trial->recorded = fopen(arguments[2], "w");
    unsigned part = count == 5 ? (unsigned)strtoul(arguments[3], NULL, 10) : 0,
             parts = count == 5 ? (unsigned)strtoul(arguments[4], NULL, 10) : 1;
    Device storage = {0}, *device = !named || all ? open_device(&storage) : NULL;
    make_cases(&trial->cases);
    for (trial->number = 0; trial->number < trial->cases.count + WGMMA_ROLES; trial->number++) {
        bool chosen = all || device || trial->number % STRIDE == 0 || !case_of(trial);
        if (named && !all) chosen = strtoul(named, NULL, 10) == trial->number;
        if (!chosen || trial->number % parts != part) continue;
        trial->arena = tile_arena_create(NULL);
        if (named && !all)
            print_kernel(trial);
        else
            try_kernel(trial, device);
        tile_arena_destroy(trial->arena);
    }
    for (unsigned i = 0; i < TILE_SCALAR_COUNT && (!named || all); i++)
        if (trial->most[i] > 0)
            printf("%s: sums differ by %.3g of their magnitude at most\n", tile_scalar_name((TileScalar)i),
                   trial->most[i]);
    if (trial->recorded) fclose(trial->recorded);
    if (!named || all)
        printf("wgmma: %u of %u kernels, %u assembled, %u runs on a GPU, %u failures\n", trial->tried,
               trial->cases.count + WGMMA_ROLES, trial->assembled, trial->ran, trial->failures);
    if (device) tile_cuda_leave(&device->scope);
    tile_bridge_destroy(trial->bridge);
    int status = trial->failures != 0;
    free(trial);
    return status;
}
