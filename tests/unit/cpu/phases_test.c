/* Every state between the passes of the CPU pipeline computes what the kernel computes, bit for bit.
 *
 * Each file of tests/unit/cpu/kernels is a kernel in tile form with lines such as
 *     // SHAPES: 3x70 3x70 scalar
 * one run each: the extents of its tensors in order, and `scalar` for a scalar, which is small and positive. Tensors
 * whose strides the kernel does not fix are run contiguous and transposed. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/passes.h"
#include "cpu/target.h"
#include "lang/execute/execute.h"
#include "lang/scalar/scalar.h"
#include "lang/ir/text.h"
#include "lang/ir/verify.h"

enum { MAX_ARGUMENTS = 12, GUARD = 64 };

typedef struct Run {
    TileExecutorArgument arguments[MAX_ARGUMENTS];
    uint8_t *memory[MAX_ARGUMENTS];
    uint64_t size[MAX_ARGUMENTS];
    unsigned count;
} Run;

static char *read_file(TileArena *arena, const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    cr_assert(file, "cannot open %s", path);
    char *text = tile_arena_alloc(arena, 1 << 20);
    *size = fread(text, 1, (1 << 20) - 1, file);
    fclose(file);
    return text;
}

static TileModule *read_module(TileContext *context, const char *text, size_t size) {
    TileModule *module = NULL;
    TileText errors = {.arena = context->arena};
    tile_status status = tile_module_read(context, text, size, &module, &errors);
    cr_assert_eq(status, TILE_OK, "%s", tile_text_get(&errors));
    return module;
}

static uint64_t next_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static void fill_memory(uint8_t *memory, uint64_t elements, TileScalar scalar, bool output, uint64_t seed) {
    static const double special[] = {-0.0, 0.0, INFINITY, -INFINITY, NAN};
    unsigned bytes = tile_scalar_bytes(scalar);
    for (uint64_t i = 0; i < elements; i++) {
        double number = ((double)next_random(&seed) / (1u << 30) - 1) * (tile_scalar_is_float(scalar) ? 3 : 50);
        if (scalar == TILE_BOOL) number = number > 0;
        if (tile_scalar_is_float(scalar) && next_random(&seed) % 16 == 0) number = special[next_random(&seed) % 5];
        uint64_t bits = output ? 0 : tile_scalar_from_double(scalar, number);
        memcpy(memory + i * bytes, &bits, bytes);
    }
}

/* Extents such as 3x70, at *shapes; `transposed`: the first dimension is contiguous. */
static void make_tensor(Run *run, TileArena *arena, const TileFunc *func, unsigned index, const char *shape,
                        bool transposed) {
    const TileType *type = func->body.arguments[index]->type;
    const TileTensorFacts *facts = &func->parameters[index].facts;
    TileExecutorTensor *tensor = &run->arguments[index].tensor;
    uint64_t elements = 1;
    for (unsigned d = 0; d < type->rank; d++) {
        char *end;
        tensor->extent[d] = strtoll(shape, &end, 10);
        shape = end + (*end == 'x');
        elements *= (uint64_t)tensor->extent[d];
        transposed &= facts->stride[d] == TILE_UNKNOWN;
    }
    int64_t stride = tile_scalar_bytes(type->scalar);
    for (unsigned i = 0; i < type->rank; i++) {
        unsigned d = transposed ? i : type->rank - 1 - i;
        tensor->stride[d] = stride;
        stride *= tensor->extent[d];
    }
    run->size[index] = elements * tile_scalar_bytes(type->scalar);
    run->memory[index] = tile_arena_alloc(arena, run->size[index] + 2 * GUARD);
    tensor->data = run->memory[index] + GUARD;
    tensor->above = run->size[index];
    fill_memory(tensor->data, elements, type->scalar, type->access == TILE_ACCESS_OUT, index + 1);
}

static Run make_run(TileArena *arena, const TileFunc *func, const char *shapes, bool transposed) {
    Run run = {.count = func->body.argument_count};
    char word[64];
    int used;
    for (unsigned i = 0; i < run.count; i++) {
        cr_assert_eq(sscanf(shapes, " %63s%n", word, &used), 1, "too few shapes for %s", func->name);
        shapes += used;
        const TileType *type = func->body.arguments[i]->type;
        if (type->kind == TILE_TYPE_TENSOR)
            make_tensor(&run, arena, func, i, word, transposed);
        else
            run.arguments[i].bits = tile_scalar_from_double(type->scalar, tile_scalar_is_float(type->scalar) ? .25 : 3);
    }
    return run;
}

static void execute(TileFunc *kernel, Run *run, bool phases, const char *what) {
    TileContext *context = kernel->module->context;
    TileText message = {.arena = context->arena};
    TileExecutorOptions options = {.phases = phases, .chunks = 2, .seed = phases ? 7 : 0};
    TileExecution result = tile_execute_kernel(kernel, run->arguments, &options, &message);
    cr_assert_eq(result, TILE_EXECUTION_DONE, "%s: %s", what, tile_text_get(&message));
}

/* Guards are compared bytewise; of elements, all NaNs are equal. */
static void compare(const TileFunc *func, const Run *wanted, const Run *found, const char *what) {
    for (unsigned i = 0; i < wanted->count; i++) {
        const TileType *type = func->body.arguments[i]->type;
        if (type->kind != TILE_TYPE_TENSOR) continue;
        const uint8_t *a = wanted->memory[i], *b = found->memory[i];
        unsigned bytes = tile_scalar_bytes(type->scalar);
        bool guards =
            memcmp(a, b, GUARD) == 0 && memcmp(a + GUARD + wanted->size[i], b + GUARD + wanted->size[i], GUARD) == 0;
        cr_assert(guards, "%s: argument %u: memory beside it was written", what, i);
        for (uint64_t k = 0; k < wanted->size[i]; k += bytes) {
            uint64_t x = 0, y = 0;
            memcpy(&x, a + GUARD + k, bytes);
            memcpy(&y, b + GUARD + k, bytes);
            cr_assert(tile_scalar_same(type->scalar, x, y), "%s: argument %u, element %llu: %llx instead of %llx", what,
                      i, (unsigned long long)(k / bytes), (unsigned long long)y, (unsigned long long)x);
        }
    }
}

/* Passes after which no phase can replace the grids yet. */
static bool has_phases(const TileModule *module) {
    for (const TileFunc *func = module->first; func; func = func->next)
        if (func->kind == TILE_FUNC_PHASE) return true;
    return false;
}

/* Has a tensor of several dimensions whose strides the caller chooses. */
static bool can_be_transposed(const TileFunc *func) {
    for (unsigned i = 0; i < func->body.argument_count; i++) {
        const TileType *type = func->body.arguments[i]->type;
        for (unsigned d = 0; type->kind == TILE_TYPE_TENSOR && type->rank > 1 && d < type->rank; d++)
            if (func->parameters[i].facts.stride[d] == TILE_UNKNOWN) return true;
    }
    return false;
}

enum { MAX_TRIALS = 32 };

/* Arguments of a run of the kernel, and the kernel's own results for them. */
typedef struct Trial {
    const char *shapes;
    bool transposed;
    Run wanted;
} Trial;

typedef struct Kernel {
    const char *path, *text;
    size_t size;
    TileContext *context;
    TileFunc *func;
    Trial trials[MAX_TRIALS];
    unsigned trial_count;
} Kernel;

static void add_trials(Kernel *kernel) {
    TileArena *arena = kernel->context->arena;
    for (const char *line = kernel->text; (line = strstr(line, "// SHAPES:"));) {
        line += strlen("// SHAPES:");
        const char *shapes = tile_arena_string(arena, line, strcspn(line, "\n"));
        for (unsigned transposed = 0; transposed <= can_be_transposed(kernel->func); transposed++) {
            cr_assert(kernel->trial_count < MAX_TRIALS, "%s has too many shapes", kernel->path);
            Trial *trial = &kernel->trials[kernel->trial_count++];
            *trial = (Trial){shapes, transposed, make_run(arena, kernel->func, shapes, transposed)};
            execute(kernel->func, &trial->wanted, false, kernel->path);
        }
    }
    cr_assert(kernel->trial_count, "%s names no shapes", kernel->path);
}

/* Runs the state after a pass on the arguments of each trial. */
static void check_state(const Kernel *kernel, TileModule *module, const char *pass, const TileTarget *target) {
    for (unsigned i = 0; i < kernel->trial_count; i++) {
        const Trial *trial = &kernel->trials[i];
        TileArena *arena = tile_arena_create(NULL);
        Run found = make_run(arena, kernel->func, trial->shapes, trial->transposed);
        const char *what = tile_arena_format(arena, "%s (%s%s, %s) after %s", kernel->path, trial->shapes,
                                             trial->transposed ? ", transposed" : "", target->name, pass);
        execute(tile_func_find(module, kernel->func->name), &found, true, what);
        compare(kernel->func, &trial->wanted, &found, what);
        tile_arena_destroy(arena);
    }
}

static void check_target(const Kernel *kernel, const TileTarget *target) {
    TileContext *context = tile_ir_context_create();
    TileArena *arena = context->arena;
    TileModule *module = read_module(context, kernel->text, kernel->size);
    TilePassContext passes = tile_pass_context(module, arena, target);
    TilePipeline pipeline = {0};
    TileText message = {.arena = arena};
    cr_assert_eq(tile_family_pipeline(&tile_cpu_family, NULL, &pipeline, arena, &message), TILE_OK, "%s", tile_text_get(&message));
    for (size_t i = 0; i < pipeline.count; i++) {
        TilePassReport report = tile_pass_report(arena);
        const TilePassInfo *pass = pipeline.items[i];
        tile_status status = tile_passes_run(&passes, &pass, 1, &(TilePassOptions){.verify = true}, &report);
        cr_assert_eq(status, TILE_OK, "%s: %s: %s", kernel->path, pass->name, tile_text_get(&passes.message));
        if (has_phases(module)) check_state(kernel, module, pass->name, target);
    }
    tile_module_destroy(module);
    tile_ir_context_destroy(context);
}

static void check_file(const char *path) {
    TileContext *context = tile_ir_context_create();
    Kernel kernel = {.path = path, .context = context};
    kernel.text = read_file(context->arena, path, &kernel.size);
    kernel.func = read_module(context, kernel.text, kernel.size)->first;
    add_trials(&kernel);
    unsigned count;
    const TileTarget *targets = tile_cpu_targets(&count);
    for (unsigned t = 0; t < 2 && t < count; t++) check_target(&kernel, &targets[t]);
    tile_module_destroy(kernel.func->module);
    tile_ir_context_destroy(context);
}

Test(phases, compute_what_the_kernel_computes) {
    const char *source = getenv("TILE_SOURCE_DIR"), *only = getenv("TILE_ONLY");
    cr_assert(source, "TILE_SOURCE_DIR is not set");
    char folder[4096], path[8192];
    const char *given = getenv("TILE_KERNELS");
    snprintf(folder, sizeof folder, "%s%s", given ? given : source, given ? "" : "/tests/unit/cpu/kernels");
    DIR *directory = opendir(folder);
    cr_assert(directory, "cannot open %s", folder);
    for (struct dirent *entry; (entry = readdir(directory));) {
        if (!strstr(entry->d_name, ".tir") || (only && !strstr(entry->d_name, only + (*only == 0x2f)))) continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        check_file(path);
    }
    closedir(directory);
}
